//! The CPU ports of n-body: an array of structures, and vectors of bodies.
//!
//! [`aos`] is the plain reference: one body after the other, one interaction after the other, with
//! the function that the kernels call. [`soa`] is written from the formula, with other operations
//! and another order of the sum. Each lane of a vector holds one body, to which all others are
//! broadcast, so the bits of a body depend neither on its neighbours nor on the number of threads.
#![forbid(unsafe_code)]

use crate::allocation::{reserve, zeroed};
use crate::simd::{InVectors, Value, dispatched, lanes, vectorised};
use crate::{Error, threads};
#[cfg(feature = "cases")]
use gpu_kernels::nbody::body_body;
use gpu_kernels::nbody::{Body, Real};
use pulp::{Simd, WithSimd};
use std::array;
use std::ops::Add;

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// The number of vectors of bodies that use each broadcast.
const VECTORS: usize = 2;

/// Bodies of a task: whole tiles for all instruction sets.
const GROUP: usize = VECTORS * MAX_LANES;

/// The number of bodies whose sum is added to the total; it equals the default tile of the mixed
/// kernel.
const BLOCK: usize = gpu_kernels::nbody::geometry::DEFAULT_BLOCK as usize;

/// The fewest interactions for which another thread is worthwhile.
const INTERACTIONS_PER_THREAD: usize = 1 << 15;

/// Accelerations of `bodies`, an array of structures, summed in the order of the array.
#[cfg(feature = "cases")]
pub(super) fn aos<T: OnCpu>(
    bodies: &[Body<T>],
    softening_squared: T,
    accelerations: &mut [[T; 3]],
) {
    for (acceleration, body) in accelerations.iter_mut().zip(bodies) {
        let position = body.position();
        let mut sum = [T::ZERO; 3];
        for other in bodies {
            sum = body_body(sum, position, *other, softening_squared);
        }
        *acceleration = sum;
    }
}

/// The CPU's vector code, compiled for each type in this crate instead of the caller's.
pub trait OnCpu: InVectors + Real + Into<f64> + Sync {
    /// [`of_some`].
    #[doc(hidden)]
    fn accelerations(
        targets: &[Body<Self>],
        bodies: &[Body<Self>],
        softening_squared: Self,
        out: &mut [[Self; 3]],
    );

    /// Kicks the velocities for the first time, then drifts the bodies for the second, with one
    /// fused multiply-add per component.
    fn kick_drift(
        accelerations: &[[Self; 3]],
        times: [Self; 2],
        velocities: &mut [[Self; 3]],
        bodies: &mut [Body<Self>],
    );
}

macro_rules! on_cpu {
    ($number:ty) => {
        impl OnCpu for $number {
            fn accelerations(
                targets: &[Body<Self>],
                bodies: &[Body<Self>],
                softening_squared: Self,
                out: &mut [[Self; 3]],
            ) {
                pull(targets, bodies, softening_squared, out);
            }

            fn kick_drift(
                accelerations: &[[Self; 3]],
                times: [Self; 2],
                velocities: &mut [[Self; 3]],
                bodies: &mut [Body<Self>],
            ) {
                kick_drift(accelerations, times, velocities, bodies);
            }
        }
    };
}

on_cpu!(f32);
on_cpu!(f64);

/// Accelerations of `bodies`, computed with vectors of bodies.
pub(super) fn soa<T: OnCpu>(
    bodies: &[Body<T>],
    softening_squared: T,
    accelerations: &mut [[T; 3]],
) {
    T::accelerations(bodies, bodies, softening_squared, accelerations);
}

/// Accelerations of `targets`, a part of `bodies`, with the bits of [`soa`].
pub(super) fn of_some<T: OnCpu>(
    targets: &[Body<T>],
    bodies: &[Body<T>],
    softening_squared: T,
    accelerations: &mut [[T; 3]],
) {
    T::accelerations(targets, bodies, softening_squared, accelerations);
}

/// Accelerations from interactions in f32; the sums over [`BLOCK`] bodies are added in f64.
pub(super) fn mixed(bodies: &[Body<f32>], softening_squared: f32, accelerations: &mut [[f64; 3]]) {
    pull(bodies, bodies, softening_squared, accelerations);
}

/// Calls `work` for groups of `results` with the index of each group's first element, on all
/// threads if the work is worth it.
fn in_groups<R: Send>(results: &mut [R], work: impl Fn(usize, &mut [R]) + Sync) {
    let n = results.len();
    let threads = threads::worth(n.saturating_mul(n), INTERACTIONS_PER_THREAD);
    threads::share_parts(threads, results, GROUP, work);
}

/// Tests whether the inverse root of |r|² + ε² can be estimated for all pairs of `bodies`.
struct Estimable<'a, T> {
    bodies: &'a [Body<T>],
    softening_squared: T,
}

impl<T: InVectors + Into<f64>> WithSimd for Estimable<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> bool {
        let Some(range) = T::estimable(simd) else {
            return false;
        };
        let least: f64 = self.softening_squared.into();
        // Two coordinates differ by at most twice the larger one. NaN fails the test.
        least >= *range.start()
            && self.bodies.iter().all(|body| {
                [body.x, body.y, body.z].into_iter().all(|coordinate| {
                    let coordinate: f64 = coordinate.into();
                    12.0 * coordinate * coordinate + least <= *range.end()
                })
            })
    }
}

/// The accelerations of `targets` by `bodies`, with interactions in `T`; the sums over [`BLOCK`]
/// bodies are added in `A`.
fn pull<T, A>(
    targets: &[Body<T>],
    bodies: &[Body<T>],
    softening_squared: T,
    accelerations: &mut [[A; 3]],
) where
    T: InVectors + Real + Into<f64> + Sync,
    A: From<T> + Add<Output = A> + Copy + Send,
{
    let estimated = dispatched(Estimable {
        bodies,
        softening_squared,
    });
    in_groups(accelerations, |first, accelerations| {
        dispatched(Pull {
            targets: &targets[first..][..accelerations.len()],
            bodies,
            softening_squared,
            estimated,
            accelerations,
        });
    });
}

/// The pull of `bodies` on `targets`.
struct Pull<'a, T, A> {
    targets: &'a [Body<T>],
    bodies: &'a [Body<T>],
    softening_squared: T,
    estimated: bool,
    accelerations: &'a mut [[A; 3]],
}

impl<T, A> WithSimd for Pull<'_, T, A>
where
    T: InVectors + Real,
    A: From<T> + Add<Output = A> + Copy,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.estimated {
            self.tiles::<S, true>(simd);
        } else {
            self.tiles::<S, false>(simd);
        }
    }
}

impl<T, A> Pull<'_, T, A>
where
    T: InVectors + Real,
    A: From<T> + Add<Output = A> + Copy,
{
    #[inline(always)]
    fn tiles<S: Simd, const ESTIMATED: bool>(self, simd: S) {
        let lanes = lanes::<S, T>();
        let targets = self.targets.chunks(VECTORS * lanes);
        for (targets, out) in targets.zip(self.accelerations.chunks_mut(VECTORS * lanes)) {
            let others = (self.bodies, self.softening_squared);
            if out.len() > lanes {
                pull_tile::<T, A, S, ESTIMATED, VECTORS>(simd, targets, others, out);
            } else {
                pull_tile::<T, A, S, ESTIMATED, 1>(simd, targets, others, out);
            }
        }
    }
}

/// A number for each lane of a tile.
type Row<T> = [T; GROUP];

/// The pull of `bodies` on at most `V` vectors of targets.
#[inline(always)]
fn pull_tile<T, A, S, const ESTIMATED: bool, const V: usize>(
    simd: S,
    targets: &[Body<T>],
    (bodies, softening_squared): (&[Body<T>], T),
    accelerations: &mut [[A; 3]],
) where
    T: InVectors + Real,
    A: From<T> + Add<Output = A> + Copy,
    S: Simd,
{
    let targets = Targets::<T, S, V>::new(simd, targets, softening_squared);
    let zero = T::ZERO.splat(simd);
    let mut totals = [[A::from(T::ZERO); GROUP]; 3];
    for block in bodies.chunks(BLOCK) {
        let mut sums = [[zero; 3]; V];
        let (pairs, last) = block.as_chunks::<2>();
        for [first, second] in pairs {
            add_pull::<T, S, ESTIMATED, false, V>(simd, first, targets, &mut sums);
            add_pull::<T, S, ESTIMATED, true, V>(simd, second, targets, &mut sums);
        }
        for body in last {
            add_pull::<T, S, ESTIMATED, false, V>(simd, body, targets, &mut sums);
        }
        for axis in 0..3 {
            let mut row: Row<T> = [T::ZERO; GROUP];
            for (lanes, sum) in T::vectors_mut::<S>(&mut row).iter_mut().zip(sums) {
                *lanes = T::lanes(sum[axis]);
            }
            for (total, sum) in totals[axis].iter_mut().zip(row).take(V * lanes::<S, T>()) {
                *total = *total + A::from(sum);
            }
        }
    }
    for (lane, acceleration) in accelerations.iter_mut().enumerate() {
        *acceleration = [totals[0][lane], totals[1][lane], totals[2][lane]];
    }
}

/// Adds the pull of `body` on `V` vectors of targets.
#[inline(always)]
fn add_pull<T, S, const ESTIMATED: bool, const SECOND: bool, const V: usize>(
    simd: S,
    body: &Body<T>,
    targets: Targets<T, S, V>,
    sums: &mut [[T::Vector<S>; 3]; V],
) where
    T: InVectors,
    S: Simd,
{
    let mass = body.mass.splat(simd);
    let from = [body.x.splat(simd), body.y.splat(simd), body.z.splat(simd)];
    for (sum, position) in sums.iter_mut().zip(targets.positions) {
        let (r, square) = separation(from, position, targets.softening_squared);
        let inverse = inverse_root::<T, S, ESTIMATED, SECOND>(square);
        // In this order no intermediate product overflows or underflows unless the result does.
        let s = (mass * inverse) * (inverse * inverse);
        for axis in 0..3 {
            sum[axis] = r[axis].fused(s, sum[axis]);
        }
    }
}

/// At most `V` vectors of bodies.
#[derive(Clone, Copy)]
struct Targets<T: InVectors, S: Simd, const V: usize> {
    /// Lanes without a body are at the origin.
    positions: [[T::Vector<S>; 3]; V],
    softening_squared: T::Vector<S>,
}

impl<T: InVectors + Real, S: Simd, const V: usize> Targets<T, S, V> {
    #[inline(always)]
    fn new(simd: S, bodies: &[Body<T>], softening_squared: T) -> Self {
        let mut rows: [Row<T>; 3] = [[T::ZERO; GROUP]; 3];
        for (lane, body) in bodies.iter().enumerate() {
            rows[0][lane] = body.x;
            rows[1][lane] = body.y;
            rows[2][lane] = body.z;
        }
        let positions = array::from_fn(
            #[inline(always)]
            |v| {
                array::from_fn(
                    #[inline(always)]
                    |axis| T::load(simd, T::vectors::<S>(&rows[axis])[v]),
                )
            },
        );
        Self {
            positions,
            softening_squared: softening_squared.splat(simd),
        }
    }
}

/// r and |r|² + ε².
#[inline(always)]
fn separation<V: Value>(from: [V; 3], to: [V; 3], softening_squared: V) -> ([V; 3], V) {
    let r = [from[0] - to[0], from[1] - to[1], from[2] - to[2]];
    let square = r[0].fused(r[0], r[1].fused(r[1], r[2].fused(r[2], softening_squared)));
    (r, square)
}

/// The inverse root for the first, third and so on of the attracting bodies of a block, or for the
/// `SECOND`, fourth and so on. In vectors of 32 bytes processors compute a root and a quotient for
/// these beside the estimates for the others; in vectors of 64 bytes that takes too long.
#[inline(always)]
fn inverse_root<T: InVectors, S: Simd, const ESTIMATED: bool, const SECOND: bool>(
    square: T::Vector<S>,
) -> T::Vector<S> {
    if SECOND && size_of::<S::f32s>() == 32 {
        T::inverse_root::<S, false>(square)
    } else {
        T::inverse_root::<S, ESTIMATED>(square)
    }
}

fn kick_drift<T: InVectors>(
    accelerations: &[[T; 3]],
    [kick, drift]: [T; 2],
    velocities: &mut [[T; 3]],
    bodies: &mut [Body<T>],
) {
    vectorised(
        #[inline(always)]
        || {
            let moved = accelerations.iter().zip(&mut *velocities);
            for ((acceleration, velocity), body) in moved.zip(&mut *bodies) {
                for axis in 0..3 {
                    velocity[axis] = acceleration[axis].fused(kick, velocity[axis]);
                }
                body.x = velocity[0].fused(drift, body.x);
                body.y = velocity[1].fused(drift, body.y);
                body.z = velocity[2].fused(drift, body.z);
            }
        },
    );
}

/// The potential of each body in f64, without its own contribution: `-Σ_{j≠i} m_j / √(|r|² + ε²)`.
pub(super) fn potentials<T: OnCpu>(
    bodies: &[Body<T>],
    softening_squared: f64,
    potentials: &mut [f64],
) -> Result<(), Error> {
    let mut wide = reserve(bodies.len())?;
    wide.extend(bodies.iter().map(|body| Body {
        x: body.x.into(),
        y: body.y.into(),
        z: body.z.into(),
        mass: body.mass.into(),
    }));
    wide_potentials(&wide, softening_squared, potentials);
    Ok(())
}

fn wide_potentials(bodies: &[Body<f64>], softening_squared: f64, potentials: &mut [f64]) {
    let estimated = dispatched(Estimable {
        bodies,
        softening_squared,
    });
    in_groups(potentials, |first, potentials| {
        dispatched(Potentials {
            first,
            bodies,
            softening_squared,
            estimated,
            potentials,
        });
    });
}

/// The potentials of the bodies from `first` on, as many as `results` holds.
struct Potentials<'a> {
    first: usize,
    bodies: &'a [Body<f64>],
    softening_squared: f64,
    estimated: bool,
    potentials: &'a mut [f64],
}

impl WithSimd for Potentials<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if self.estimated {
            self.tiles::<S, true>(simd);
        } else {
            self.tiles::<S, false>(simd);
        }
    }
}

impl Potentials<'_> {
    #[inline(always)]
    fn tiles<S: Simd, const ESTIMATED: bool>(self, simd: S) {
        let lanes = lanes::<S, f64>();
        let mut first = self.first;
        for out in self.potentials.chunks_mut(VECTORS * lanes) {
            let all = (self.bodies, self.softening_squared);
            if out.len() > lanes {
                potential_tile::<S, ESTIMATED, VECTORS>(simd, first, all, out);
            } else {
                potential_tile::<S, ESTIMATED, 1>(simd, first, all, out);
            }
            first += out.len();
        }
    }
}

/// The potentials of at most `V` vectors of bodies, from `first` on.
#[inline(always)]
fn potential_tile<S: Simd, const ESTIMATED: bool, const V: usize>(
    simd: S,
    first: usize,
    (bodies, softening_squared): (&[Body<f64>], f64),
    potentials: &mut [f64],
) {
    let own = first..first + potentials.len();
    let targets = Targets::<f64, S, V>::new(simd, &bodies[own.clone()], softening_squared);
    let zero = 0.0.splat(simd);
    let mut totals = [zero; V];
    for others in [&bodies[..own.start], &bodies[own.end..]] {
        for block in others.chunks(BLOCK) {
            let mut sums = [zero; V];
            let (pairs, last) = block.as_chunks::<2>();
            for [first, second] in pairs {
                add_potential::<S, ESTIMATED, false, V>(simd, first, targets, &mut sums);
                add_potential::<S, ESTIMATED, true, V>(simd, second, targets, &mut sums);
            }
            for body in last {
                add_potential::<S, ESTIMATED, false, V>(simd, body, targets, &mut sums);
            }
            for v in 0..V {
                totals[v] = totals[v] + sums[v];
            }
        }
    }
    for (lane, body) in bodies[own].iter().enumerate() {
        // The body itself, in its lane, gets no mass.
        let mut masses: Row<f64> = [body.mass; GROUP];
        masses[lane] = 0.0;
        let terms = potential::<S, ESTIMATED, false, V>(simd, body, targets);
        for v in 0..V {
            let mass = f64::load(simd, f64::vectors::<S>(&masses)[v]);
            totals[v] = mass.fused(terms[v], totals[v]);
        }
    }
    let mut row: Row<f64> = [0.0; GROUP];
    for (lanes, total) in f64::vectors_mut::<S>(&mut row).iter_mut().zip(totals) {
        *lanes = f64::lanes(total);
    }
    for (potential, sum) in potentials.iter_mut().zip(row) {
        *potential = -sum;
    }
}

/// Adds the potentials of `body` at `V` vectors of targets, without their sign.
#[inline(always)]
fn add_potential<S: Simd, const ESTIMATED: bool, const SECOND: bool, const V: usize>(
    simd: S,
    body: &Body<f64>,
    targets: Targets<f64, S, V>,
    sums: &mut [<f64 as InVectors>::Vector<S>; V],
) {
    let mass = body.mass.splat(simd);
    let terms = potential::<S, ESTIMATED, SECOND, V>(simd, body, targets);
    for v in 0..V {
        sums[v] = mass.fused(terms[v], sums[v]);
    }
}

/// The potentials of a mass of 1 at the position of `body`, without their sign.
#[inline(always)]
fn potential<S: Simd, const ESTIMATED: bool, const SECOND: bool, const V: usize>(
    simd: S,
    body: &Body<f64>,
    targets: Targets<f64, S, V>,
) -> [<f64 as InVectors>::Vector<S>; V] {
    let from = [body.x.splat(simd), body.y.splat(simd), body.z.splat(simd)];
    let mut potentials = [targets.softening_squared; V];
    for (potential, position) in potentials.iter_mut().zip(targets.positions) {
        let (_, square) = separation(from, position, targets.softening_squared);
        *potential = inverse_root::<f64, S, ESTIMATED, SECOND>(square);
    }
    potentials
}

/// `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`: half of the sum of all bodies' contributions, added in order.
pub(super) fn potential_energy<T: OnCpu>(
    bodies: &[Body<T>],
    softening_squared: f64,
) -> Result<f64, Error> {
    let mut shares = zeroed(bodies.len())?;
    potentials(bodies, softening_squared, &mut shares)?;
    let shares = bodies.iter().zip(shares);
    Ok(0.5
        * shares
            .map(|(body, potential)| body.mass.into() * potential)
            .sum::<f64>())
}

#[cfg(test)]
mod tests {
    use super::super::problem::{Reference, error_bound};
    use super::super::{Gravity, INTERACTION_ROUNDOFFS};
    use super::*;
    use crate::scalar::Scalar;
    use crate::test_cases;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    /// Sizes that fill no group, tile or block, and one vector or none.
    fn sizes() -> &'static [usize] {
        test_cases::either(
            &[1, 2, 3, 7, 17, 129, 300],
            &[1, 2, 3, 7, 17, 129, 1000, 1023],
        )
    }

    fn random_bodies<T: Scalar>(n: usize, scale: f64) -> Vec<Body<T>> {
        let mut generator = SplitMix64::seed_from_u64(n as u64);
        let mut number = |scale: f64| {
            let unit = (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            T::nearest(scale * (2.0 * unit - 1.0))
        };
        (0..n)
            .map(|_| Body {
                x: number(scale),
                y: number(scale),
                z: number(scale),
                mass: number(1.0),
            })
            .collect()
    }

    /// Calls `$check` with the vectors of each instruction set that this processor has.
    macro_rules! for_each_width {
        ($check:ident, $($argument:expr),+) => {
            $check(pulp::Scalar, $($argument),+);
            #[cfg(target_arch = "x86_64")]
            {
                if let Some(simd) = pulp::x86::V3::try_new() {
                    $check(simd, $($argument),+);
                }
                if let Some(simd) = pulp::x86::V4::try_new() {
                    $check(simd, $($argument),+);
                }
            }
        };
    }

    fn accelerations<S: Simd, T, A>(simd: S, bodies: &[Body<T>], softening: f64) -> Vec<[A; 3]>
    where
        T: Scalar,
        A: From<T> + Add<Output = A> + Copy,
    {
        let softening_squared = T::nearest(softening * softening);
        let mut out = vec![[A::from(T::nearest(f64::NAN)); 3]; bodies.len()];
        let estimable = Estimable {
            bodies,
            softening_squared,
        };
        let pull = Pull {
            targets: bodies,
            bodies,
            softening_squared,
            estimated: simd.vectorize(estimable),
            accelerations: &mut out,
        };
        simd.vectorize(pull);
        out
    }

    fn assert_close<A: Into<f64> + Copy>(given: &[[A; 3]], reference: &Reference, relative: f64) {
        let expected = reference.accelerations().iter().zip(reference.sizes());
        for (i, (given, (exact, size))) in given.iter().zip(expected).enumerate() {
            let square = |axis: usize| (given[axis].into() - exact[axis]).powi(2);
            let error = (square(0) + square(1) + square(2)).sqrt();
            assert!(
                error <= relative * size,
                "{i}: off by {error:e} of {size:e}"
            );
        }
    }

    /// Coordinates and softening: ordinary ones, and such as leave the range of f32 in f64.
    const SCALES: [(f64, f64); 2] = [(1.0, 0.05), (1e30, 1e28)];

    #[test]
    fn vectors_of_all_lengths_are_as_accurate_as_the_reference_asks() {
        fn plain<S: Simd, T: Scalar>(simd: S, bodies: &[Body<T>], softening: f64) {
            let reference = Reference::of(&Gravity::new(softening).unwrap(), bodies).unwrap();
            let given = accelerations::<S, T, T>(simd, bodies, softening);
            assert_close(&given, &reference, error_bound::<T>(bodies.len()));
        }
        fn mixed<S: Simd>(simd: S, bodies: &[Body<f32>], softening: f64) {
            let reference = Reference::of(&Gravity::new(softening).unwrap(), bodies).unwrap();
            let given = accelerations::<S, f32, f64>(simd, bodies, softening);
            let roundoffs = INTERACTION_ROUNDOFFS + BLOCK as f64;
            assert_close(&given, &reference, 1.01 * roundoffs * f32::UNIT_ROUNDOFF);
        }
        for &n in sizes() {
            for (scale, softening) in SCALES {
                let bodies = random_bodies::<f64>(n, scale);
                for_each_width!(plain, &bodies, softening);
            }
            let bodies = random_bodies::<f32>(n, 1.0);
            for_each_width!(plain, &bodies, 0.05);
            for_each_width!(mixed, &bodies, 0.05);
        }
    }

    #[test]
    fn potentials_by_vectors_of_all_lengths_are_those_by_definition() {
        fn check<S: Simd>(simd: S, bodies: &[Body<f64>], softening: f64) {
            let softening_squared = softening * softening;
            let mut given = vec![f64::NAN; bodies.len()];
            let estimable = Estimable {
                bodies,
                softening_squared,
            };
            simd.vectorize(Potentials {
                first: 0,
                bodies,
                softening_squared,
                estimated: simd.vectorize(estimable),
                potentials: &mut given,
            });
            for (i, given) in given.into_iter().enumerate() {
                let (mut sum, mut size) = (0.0, 0.0);
                for (_, other) in bodies.iter().enumerate().filter(|&(j, _)| j != i) {
                    let r = [
                        other.x - bodies[i].x,
                        other.y - bodies[i].y,
                        other.z - bodies[i].z,
                    ];
                    let square = r.iter().map(|x| x * x).sum::<f64>() + softening_squared;
                    let term = other.mass / square.sqrt();
                    sum -= term;
                    size += term.abs();
                }
                let roundoffs = 2.0 * (14.0 + bodies.len() as f64);
                let error = (given - sum).abs();
                assert!(
                    error <= roundoffs * f64::UNIT_ROUNDOFF * size,
                    "{i}: {error:e}"
                );
            }
        }
        for &n in sizes() {
            for (scale, softening) in SCALES {
                let bodies = random_bodies::<f64>(n, scale);
                for_each_width!(check, &bodies, softening);
            }
        }
    }

    #[test]
    fn threads_and_neighbours_do_not_change_bits() {
        let bodies = random_bodies::<f32>(1023, 1.0);
        let mut together = vec![[0.0; 3]; bodies.len()];
        soa(&bodies, 0.0025, &mut together);
        let mut alone = together.clone();
        for (target, out) in bodies.chunks(5).zip(alone.chunks_mut(5)) {
            dispatched(Pull {
                targets: target,
                bodies: &bodies,
                softening_squared: 0.0025,
                estimated: dispatched(Estimable {
                    bodies: &bodies,
                    softening_squared: 0.0025,
                }),
                accelerations: out,
            });
        }
        let bits = |all: &[[f32; 3]]| -> Vec<u32> {
            all.as_flattened().iter().map(|x| x.to_bits()).collect()
        };
        assert_eq!(bits(&together), bits(&alone));
    }

    #[test]
    fn what_leaves_the_range_of_estimates_is_small_or_zero() {
        // The square of the distance is infinite: the inverse root is zero, and no NaN.
        fn check<S: Simd>(simd: S, bodies: &[Body<f32>]) {
            let far = accelerations::<S, f32, f32>(simd, bodies, 1.0);
            assert_eq!(far, [[0.0; 3]; 2]);
        }
        let at = |x| Body {
            x,
            y: 0.0,
            z: 0.0,
            mass: 1.0,
        };
        for_each_width!(check, &[at(-1e30_f32), at(1e30)]);
    }
}
