//! The CPU ports: an array of structures, and vectors of bodies.
//!
//! [`aos`] is the plain reference: one body after the other, one interaction
//! after the other, by the function that the kernels call. [`soa`] is written
//! from the formula: other operations and another order of the sum. Each lane of a vector is
//! a body of its own, which all others are broadcast to, so that a body's bits depend neither
//! on its neighbours nor on the number of threads.
#![forbid(unsafe_code)]

use super::{Body, Real};
use crate::simd::{InVectors, Value, dispatched_widest, vectorised};
use gpu_kernels::nbody::body_body;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;
use std::array;
use std::ops::AddAssign;

/// The most lanes of a vector.
const MAX_LANES: usize = 16;

/// Vectors of bodies that each broadcast serves.
const VECTORS: usize = 2;

/// Bodies of a task: as many as fill whole tiles of all instruction sets.
const GROUP: usize = VECTORS * MAX_LANES;

/// Bodies whose sum is added to the total: as many as a tile of the mixed kernel has by
/// default.
const BLOCK: usize = super::DEFAULT_BLOCK as usize;

/// Interactions that are worth handing to another thread.
const INTERACTIONS_PER_TASK: usize = 1 << 16;

/// Up to so many interactions are done before another thread has begun.
const ALONE: usize = 1 << 17;

/// Accelerations of `bodies`, an array of structures, in the order of the array.
pub(super) fn aos<T: Real>(bodies: &[Body<T>], softening_squared: T, accelerations: &mut [[T; 3]]) {
    for (acceleration, body) in accelerations.iter_mut().zip(bodies) {
        let position = body.position();
        let mut sum = [T::ZERO; 3];
        for other in bodies {
            sum = body_body(sum, position, *other, softening_squared);
        }
        *acceleration = sum;
    }
}

/// What the CPU computes with vectors, compiled for each type here instead of where it is
/// used.
pub trait OnCpu: InVectors {
    /// [`soa`].
    #[doc(hidden)]
    fn accelerations(bodies: &[Body<Self>], softening_squared: Self, out: &mut [[Self; 3]])
    where
        Self: gpu_kernels::nbody::Real;
}

impl OnCpu for f32 {
    fn accelerations(bodies: &[Body<Self>], softening_squared: Self, out: &mut [[Self; 3]]) {
        pull(bodies, softening_squared, out);
    }
}

impl OnCpu for f64 {
    fn accelerations(bodies: &[Body<Self>], softening_squared: Self, out: &mut [[Self; 3]]) {
        pull(bodies, softening_squared, out);
    }
}

/// Accelerations of `bodies`, by vectors of them.
pub(super) fn soa<T: Real>(bodies: &[Body<T>], softening_squared: T, accelerations: &mut [[T; 3]]) {
    T::accelerations(bodies, softening_squared, accelerations);
}

/// Accelerations by interactions in f32, whose sums over [`BLOCK`] bodies are added in f64.
pub(super) fn mixed(bodies: &[Body<f32>], softening_squared: f32, accelerations: &mut [[f64; 3]]) {
    pull(bodies, softening_squared, accelerations);
}

/// Calls `work` for groups of `results` and the index of the first of each, on all threads if
/// there is work for more than one.
fn in_groups<R: Send>(results: &mut [R], work: impl Fn(usize, &mut [R]) + Sync) {
    let n = results.len();
    if n.saturating_mul(n) <= ALONE {
        return work(0, results);
    }
    results
        .par_chunks_mut(GROUP)
        .enumerate()
        .with_min_len(INTERACTIONS_PER_TASK.div_ceil(GROUP * n))
        .for_each(|(group, results)| work(group * GROUP, results));
}

/// Whether all |r|² + ε² of `bodies` lie where the inverse root can be estimated.
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
        // Two coordinates differ by at most twice the larger. NaN is nowhere.
        least >= *range.start()
            && self.bodies.iter().all(|body| {
                [body.x, body.y, body.z].into_iter().all(|coordinate| {
                    let coordinate: f64 = coordinate.into();
                    12.0 * coordinate * coordinate + least <= *range.end()
                })
            })
    }
}

/// The accelerations of `bodies` with interactions in `T`, whose sums over [`BLOCK`] bodies
/// are added in `A`.
fn pull<T, A>(bodies: &[Body<T>], softening_squared: T, accelerations: &mut [[A; 3]])
where
    T: InVectors + gpu_kernels::nbody::Real + Into<f64> + Sync,
    A: From<T> + AddAssign + Copy + Send,
{
    let estimated = dispatched_widest(Estimable {
        bodies,
        softening_squared,
    });
    in_groups(accelerations, |first, accelerations| {
        dispatched_widest(Pull {
            targets: &bodies[first..][..accelerations.len()],
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
    T: InVectors + gpu_kernels::nbody::Real,
    A: From<T> + AddAssign + Copy,
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
    T: InVectors + gpu_kernels::nbody::Real,
    A: From<T> + AddAssign + Copy,
{
    #[inline(always)]
    fn tiles<S: Simd, const ESTIMATED: bool>(self, simd: S) {
        let lanes = lanes::<T, S>();
        let whole = self.targets.len() / (VECTORS * lanes) * (VECTORS * lanes);
        let (targets, rest) = self.targets.split_at(whole);
        let (out, rest_out) = self.accelerations.split_at_mut(whole);
        let tiles = targets.chunks_exact(VECTORS * lanes);
        for (targets, out) in tiles.zip(out.chunks_exact_mut(VECTORS * lanes)) {
            let arguments = (self.bodies, self.softening_squared);
            pull_tile::<T, A, S, ESTIMATED, VECTORS>(simd, targets, arguments, out);
        }
        for (targets, out) in rest.chunks(lanes).zip(rest_out.chunks_mut(lanes)) {
            let arguments = (self.bodies, self.softening_squared);
            pull_tile::<T, A, S, ESTIMATED, 1>(simd, targets, arguments, out);
        }
    }
}

/// How many numbers a vector has.
#[inline(always)]
const fn lanes<T: InVectors, S: Simd>() -> usize {
    size_of::<T::Lanes<S>>() / size_of::<T>()
}

/// Numbers for each of the lanes of a tile.
type Row<T> = [T; GROUP];

/// The pull of `bodies` on at most `V` vectors of targets.
#[inline(always)]
fn pull_tile<T, A, S, const ESTIMATED: bool, const V: usize>(
    simd: S,
    targets: &[Body<T>],
    (bodies, softening_squared): (&[Body<T>], T),
    accelerations: &mut [[A; 3]],
) where
    T: InVectors + gpu_kernels::nbody::Real,
    A: From<T> + AddAssign + Copy,
    S: Simd,
{
    let positions = positions::<T, S, V>(simd, targets);
    let zero = T::ZERO.splat(simd);
    let softening_squared = softening_squared.splat(simd);
    let mut totals = [[A::from(T::ZERO); GROUP]; 3];
    for block in bodies.chunks(BLOCK) {
        let mut sums = [[zero; 3]; V];
        for body in block {
            let mass = body.mass.splat(simd);
            let from = [body.x, body.y, body.z];
            let from: [T::Vector<S>; 3] = [
                from[0].splat(simd),
                from[1].splat(simd),
                from[2].splat(simd),
            ];
            for v in 0..V {
                let (r, square) = separation(from, positions[v], softening_squared);
                let inverse = T::inverse_root::<S, ESTIMATED>(square);
                // In this order no product leaves the range where the result does not.
                let s = (mass * inverse) * (inverse * inverse);
                for axis in 0..3 {
                    sums[v][axis] = r[axis].fused(s, sums[v][axis]);
                }
            }
        }
        for axis in 0..3 {
            let mut row: Row<T> = [T::ZERO; GROUP];
            for v in 0..V {
                T::vectors_mut::<S>(&mut row)[v] = T::lanes(sums[v][axis]);
            }
            for (total, sum) in totals[axis].iter_mut().zip(row).take(V * lanes::<T, S>()) {
                *total += A::from(sum);
            }
        }
    }
    for (lane, acceleration) in accelerations.iter_mut().enumerate() {
        *acceleration = [totals[0][lane], totals[1][lane], totals[2][lane]];
    }
}

/// The coordinates of at most `V` vectors of bodies. Where there are fewer, a lane is at the
/// origin.
#[inline(always)]
fn positions<T, S, const V: usize>(simd: S, bodies: &[Body<T>]) -> [[T::Vector<S>; 3]; V]
where
    T: InVectors + gpu_kernels::nbody::Real,
    S: Simd,
{
    let mut rows: [Row<T>; 3] = [[T::ZERO; GROUP]; 3];
    for (lane, body) in bodies.iter().enumerate() {
        rows[0][lane] = body.x;
        rows[1][lane] = body.y;
        rows[2][lane] = body.z;
    }
    array::from_fn(
        #[inline(always)]
        |v| {
            array::from_fn(
                #[inline(always)]
                |axis| T::load(simd, T::vectors::<S>(&rows[axis])[v]),
            )
        },
    )
}

/// r and |r|² + ε².
#[inline(always)]
fn separation<V: Value>(from: [V; 3], to: [V; 3], softening_squared: V) -> ([V; 3], V) {
    let r = [from[0] - to[0], from[1] - to[1], from[2] - to[2]];
    let square = r[0].fused(r[0], r[1].fused(r[1], r[2].fused(r[2], softening_squared)));
    (r, square)
}

/// Kicks the velocities for the first time, then lets the bodies drift for the
/// second: one fused multiply-add per component.
pub(super) fn kick_drift<T: Real>(
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

/// The potential of each body in f64, without its own: `-Σ_{j≠i} m_j / √(|r|² + ε²)`.
pub(super) fn potentials<T: Real>(
    bodies: &[Body<T>],
    softening_squared: f64,
    potentials: &mut [f64],
) {
    let wide: Vec<Body<f64>> = bodies
        .iter()
        .map(|body| Body {
            x: body.x.into(),
            y: body.y.into(),
            z: body.z.into(),
            mass: body.mass.into(),
        })
        .collect();
    wide_potentials(&wide, softening_squared, potentials);
}

fn wide_potentials(bodies: &[Body<f64>], softening_squared: f64, potentials: &mut [f64]) {
    let estimated = dispatched_widest(Estimable {
        bodies,
        softening_squared,
    });
    in_groups(potentials, |first, potentials| {
        dispatched_widest(Potentials {
            first,
            bodies,
            softening_squared,
            estimated,
            potentials,
        });
    });
}

/// The potentials of the bodies from `first` on, as many as there is room for.
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
        let lanes = lanes::<f64, S>();
        let mut first = self.first;
        for out in self.potentials.chunks_mut(VECTORS * lanes) {
            let arguments = (self.bodies, self.softening_squared);
            if out.len() > lanes {
                potential_tile::<S, ESTIMATED, VECTORS>(simd, first, arguments, out);
            } else {
                potential_tile::<S, ESTIMATED, 1>(simd, first, arguments, out);
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
    let positions = positions::<f64, S, V>(simd, &bodies[own.clone()]);
    let zero = 0.0.splat(simd);
    let softening_squared = softening_squared.splat(simd);
    let mut totals = [zero; V];
    for others in [&bodies[..own.start], &bodies[own.end..]] {
        for block in others.chunks(BLOCK) {
            let mut sums = [zero; V];
            for body in block {
                let mass = body.mass.splat(simd);
                let terms = potential::<S, ESTIMATED, V>(simd, body, positions, softening_squared);
                for v in 0..V {
                    sums[v] = mass.fused(terms[v], sums[v]);
                }
            }
            for v in 0..V {
                totals[v] = totals[v] + sums[v];
            }
        }
    }
    for (lane, body) in bodies[own].iter().enumerate() {
        // The body itself, in its lane, has no mass.
        let mut masses: Row<f64> = [body.mass; GROUP];
        masses[lane] = 0.0;
        let terms = potential::<S, ESTIMATED, V>(simd, body, positions, softening_squared);
        for v in 0..V {
            let mass = f64::load(simd, f64::vectors::<S>(&masses)[v]);
            totals[v] = mass.fused(terms[v], totals[v]);
        }
    }
    let mut row: Row<f64> = [0.0; GROUP];
    for v in 0..V {
        f64::vectors_mut::<S>(&mut row)[v] = f64::lanes(totals[v]);
    }
    for (potential, sum) in potentials.iter_mut().zip(row) {
        *potential = -sum;
    }
}

/// The potential of a mass of 1 at the place of `body`, without its sign.
#[inline(always)]
fn potential<S: Simd, const ESTIMATED: bool, const V: usize>(
    simd: S,
    body: &Body<f64>,
    positions: [[<f64 as InVectors>::Vector<S>; 3]; V],
    softening_squared: <f64 as InVectors>::Vector<S>,
) -> [<f64 as InVectors>::Vector<S>; V] {
    let from = [body.x.splat(simd), body.y.splat(simd), body.z.splat(simd)];
    let mut potentials = [softening_squared; V];
    for v in 0..V {
        let (_, square) = separation(from, positions[v], softening_squared);
        potentials[v] = f64::inverse_root::<S, ESTIMATED>(square);
    }
    potentials
}

/// `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`, half of the sum of all shares, which are added in order.
pub(super) fn potential_energy<T: Real>(bodies: &[Body<T>], softening_squared: f64) -> f64 {
    let mut shares = vec![0.0; bodies.len()];
    potentials(bodies, softening_squared, &mut shares);
    let shares = bodies.iter().zip(shares);
    0.5 * shares
        .map(|(body, potential)| body.mass.into() * potential)
        .sum::<f64>()
}
