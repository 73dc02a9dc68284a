//! Initial systems for n-body, and reference accelerations for checking results.
//!
//! [`Cluster::plummer`] is the usual test problem of stellar dynamics: a sphere with a density
//! proportional to `(1 + r²)^(-5/2)`, and with the velocities that keep it in equilibrium.
//! [`Cluster::cold_disc`] is a disc of bodies on circular orbits. [`Reference`] has the
//! accelerations of given bodies in f64, computed directly from the formula, and the error bounds
//! for an implementation.

use super::check::{self, OPERATION};
use super::leapfrog::kinetic_energy;
use super::{Body, Gravity, INTERACTION_ROUNDOFFS, cpu};
use crate::allocation::reserve;
use crate::argument::Argument;
use crate::scalar::Scalar;
use crate::{Error, Errors};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rayon::prelude::*;
use std::f64::consts::{PI, TAU};

/// Bodies and their velocities.
///
/// ```
/// use halo_gpu::nbody::problem::Cluster;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // Two clusters on their way towards each other, the one turned by a right angle.
/// let quarter = std::f64::consts::FRAC_PI_2;
/// let still = Cluster::<f64>::plummer(50, 1)?;
/// let left = still.clone().turned(quarter).moved([-5.0, 0.0, 0.0], [0.3, 0.0, 0.0]);
/// let right = Cluster::plummer(30, 2)?.moved([5.0, 0.0, 0.0], [-0.3, 0.0, 0.0]);
/// let both = left.and(right);
/// assert_eq!((both.bodies.len(), both.velocities.len()), (80, 80));
///
/// // What was along z is along x.
/// assert!((both.bodies[7].x - (still.bodies[7].z - 5.0)).abs() < 1e-14);
/// let momentum: f64 = (0..50).map(|i| both.bodies[i].mass * both.velocities[i][0]).sum();
/// assert!((momentum - 0.3).abs() < 1e-14);
/// // Turning keeps the energy; a speed of 0.3 and a mass of 1 are 0.045, twice.
/// let own = still.kinetic_energy() + Cluster::<f64>::plummer(30, 2)?.kinetic_energy();
/// assert!((both.kinetic_energy() - own - 0.09).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster<T> {
    /// The bodies.
    pub bodies: Vec<Body<T>>,
    /// Their velocities, one for each.
    pub velocities: Vec<[T; 3]>,
}

impl<T: Scalar> Cluster<T> {
    /// A Plummer sphere of `n` bodies of mass 1/n, drawn at random from `seed`.
    ///
    /// The recipe is that of Aarseth, Hénon and Wielen, "A comparison of numerical methods for the
    /// study of star cluster dynamics", Astron. Astrophys. 37 (1974), appendix: radii by inverting
    /// the mass distribution, directions uniform on the sphere, speeds by rejection. Bodies farther
    /// out than ten times the sphere's scale length are drawn again. Then the centre of mass is put
    /// at rest at the origin.
    ///
    /// Units are those of N-body work: total mass 1, gravitational constant 1, and for many bodies
    /// without softening an energy of -1/4 (potential -1/2, kinetic 1/4). The same seed gives the
    /// same cluster, up to the last bits of the platform's `sin`, `cos` and `powf`; f32 and f64
    /// give the same cluster up to rounding.
    ///
    /// ```
    /// use halo_gpu::nbody::problem::Cluster;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let cluster = Cluster::<f64>::plummer(1000, 1)?;
    /// assert_eq!(cluster.bodies[0].mass, 0.001);
    /// let centre: f64 = cluster.bodies.iter().map(|body| body.mass * body.x).sum();
    /// assert!(centre.abs() < 1e-15);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] for no bodies, [`Error::IndexOverflow`] for too many,
    /// [`Error::HostOutOfMemory`] if there is not enough memory.
    pub fn plummer(n: usize, seed: u64) -> Result<Self, Error> {
        check::count(n)?;
        // Allocates everything first, so that an error wastes no work.
        let mut states: Vec<[f64; 6]> = reserve(n)?;
        let (mut bodies, mut velocities) = (reserve(n)?, reserve(n)?);
        let mut random = SplitMix64::seed_from_u64(seed);
        states.extend((0..n).map(|_| plummer_state(&mut random)));

        for axis in 0..6 {
            let mean = states.iter().map(|state| state[axis]).sum::<f64>() / n as f64;
            for state in &mut states {
                state[axis] -= mean;
            }
        }
        let mass = T::nearest(1.0 / n as f64);
        bodies.extend(states.iter().map(|&[x, y, z, ..]| Body {
            x: T::nearest(x),
            y: T::nearest(y),
            z: T::nearest(z),
            mass,
        }));
        velocities.extend(
            states
                .iter()
                .map(|&[.., u, v, w]| [u, v, w].map(T::nearest)),
        );
        Ok(Self { bodies, velocities })
    }

    /// A disc of bodies on circles around a heavy one, in the plane z = 0, all moving
    /// counterclockwise: the usual thin-disc model of a galaxy.
    ///
    /// Body 0 rests at the origin. The others have the distances and directions of H. Vogel's
    /// spiral ("A better way to construct the sunflower head", Math. Biosci. 44 (1979)), which
    /// spreads them evenly over the ring: no two are close, and nothing is random. Each has the
    /// speed of **centrifugal balance**, v² = r a, where a is the inward part of its acceleration
    /// by all the others, with the softening of `gravity`. The speed is 0 if that acceleration
    /// points outwards, which can happen near the inner edge of a heavy disc. The disc is cold:
    /// there is no other motion. If the disc has more than a small part of the mass, it does not
    /// stay smooth for long (A. Toomre, "On the gravitational stability of a disk of stars", ApJ
    /// 139 (1964)).
    ///
    /// ```
    /// use halo_gpu::nbody::Gravity;
    /// use halo_gpu::nbody::problem::{Cluster, Disc};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let disc = Disc { bodies: 100, center: 1.0, mass: 0.01, inner: 1.0, outer: 2.0 };
    /// let galaxy = Cluster::<f64>::cold_disc(&Gravity::new(0.01)?, &disc)?;
    /// assert_eq!(galaxy.bodies.len(), 101);
    /// // About Kepler's speed.
    /// let ([x, y, _], [u, v, _]) = (galaxy.bodies[100].position(), galaxy.velocities[100]);
    /// assert!((u.hypot(v) - x.hypot(y).powf(-0.5)).abs() < 0.02);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for radii or masses that are negative or not finite, for `inner`
    /// ≥ `outer`, and for a centre without mass; [`Error::HostOutOfMemory`] if there is not enough
    /// memory; and the errors of [`Gravity::check`] for the bodies.
    pub fn cold_disc(gravity: &Gravity, disc: &Disc) -> Result<Self, Error> {
        disc.check()?;
        let n = disc.bodies.saturating_add(1);
        check::count(n)?;
        // Allocates everything first, so that an error wastes no work.
        let (mut bodies, mut velocities): (Vec<Body<T>>, Vec<[T; 3]>) = (reserve(n)?, reserve(n)?);
        let mut accelerations: Vec<[T; 3]> = reserve(n)?;
        let mass = disc.mass / disc.bodies.max(1) as f64;
        let center = Body {
            mass: T::nearest(disc.center),
            ..Body::NOTHING
        };
        let stars = (0..disc.bodies).map(|k| {
            let share = (k as f64 + 0.5) / disc.bodies as f64;
            let (inner, outer) = (disc.inner * disc.inner, disc.outer * disc.outer);
            let radius = (inner + share * (outer - inner)).sqrt();
            let (sin, cos) = (GOLDEN_ANGLE * k as f64).sin_cos();
            Body {
                x: T::nearest(radius * cos),
                y: T::nearest(radius * sin),
                z: T::zeroed(),
                mass: T::nearest(mass),
            }
        });
        bodies.extend(std::iter::once(center).chain(stars));
        gravity.check(&bodies)?;
        accelerations.resize(n, [T::zeroed(); 3]);
        cpu::soa(&bodies, gravity.softening_squared()?, &mut accelerations);
        let balanced = |(body, [a, b, _]): (&Body<T>, &[T; 3])| {
            let [x, y, a, b]: [f64; 4] = [body.x, body.y, *a, *b].map(Into::into);
            let radius = x.hypot(y);
            // √(v² / r²); the direction of the velocity is that of the position, turned by a right
            // angle.
            let turns = (-(a * x + b * y) / (radius * radius)).max(0.0).sqrt();
            [-y * turns, x * turns, 0.0].map(T::nearest)
        };
        velocities.extend(bodies.iter().zip(&accelerations).map(balanced));
        // The central body is at the origin, so it has no direction.
        velocities[0] = [T::zeroed(); 3];
        Ok(Self { bodies, velocities })
    }

    /// The cluster, rotated by `angle` (radians) about the y axis, from z to x.
    #[must_use]
    pub fn turned(mut self, angle: f64) -> Self {
        let (sin, cos) = angle.sin_cos();
        let turn = |x: T, z: T| -> [T; 2] {
            let (x, z): (f64, f64) = (x.into(), z.into());
            [x * cos + z * sin, z * cos - x * sin].map(T::nearest)
        };
        for (body, velocity) in self.bodies.iter_mut().zip(&mut self.velocities) {
            [body.x, body.z] = turn(body.x, body.z);
            [velocity[0], velocity[2]] = turn(velocity[0], velocity[2]);
        }
        self
    }

    /// The cluster, moved by `by`, with `velocity` added to all velocities.
    #[must_use]
    pub fn moved(mut self, by: [f64; 3], velocity: [f64; 3]) -> Self {
        for (body, own) in self.bodies.iter_mut().zip(&mut self.velocities) {
            let [x, y, z] = by.map(T::nearest);
            (body.x, body.y, body.z) = (body.x + x, body.y + y, body.z + z);
            for (own, more) in own.iter_mut().zip(velocity) {
                *own = *own + T::nearest(more);
            }
        }
        self
    }

    /// Both clusters together: these bodies first, then the others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.bodies.extend(other.bodies);
        self.velocities.extend(other.velocities);
        self
    }

    /// The kinetic energy `Σ m v² / 2`, computed in f64.
    #[must_use]
    pub fn kinetic_energy(&self) -> f64 {
        kinetic_energy(&self.bodies, &self.velocities)
    }
}

/// The parameters of [`Cluster::cold_disc`], in any units in which the gravitational constant is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disc {
    /// The number of bodies, not counting the central one.
    pub bodies: usize,
    /// The mass at the centre, above 0.
    pub center: f64,
    /// The total mass of all other bodies, at least 0.
    pub mass: f64,
    /// The inner radius, above 0.
    pub inner: f64,
    /// The outer radius, larger than the inner one.
    pub outer: f64,
}

impl Disc {
    fn check(&self) -> Result<(), Error> {
        let rules = [
            (
                "the mass at the centre",
                self.center,
                self.center > 0.0 && self.center.is_finite(),
                "positive and finite".to_owned(),
            ),
            (
                "the mass of the disc",
                self.mass,
                self.mass >= 0.0 && self.mass.is_finite(),
                "finite, and not negative".to_owned(),
            ),
            (
                "the inner radius",
                self.inner,
                self.inner > 0.0 && self.inner.is_finite(),
                "positive and finite".to_owned(),
            ),
            (
                "the outer radius",
                self.outer,
                self.outer > self.inner && self.outer.is_finite(),
                format!("finite, and larger than the inner one, {:?}", self.inner),
            ),
        ];
        for (parameter, given, right, required) in rules {
            if !right {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter,
                    given: format!("{given:?}"),
                    required,
                });
            }
        }
        Ok(())
    }
}

/// The golden angle, 137.5°: the smaller part of a full turn divided in the golden section.
const GOLDEN_ANGLE: f64 = PI * (3.0 - SQRT_5);

/// √5.
const SQRT_5: f64 = 2.236_067_977_499_79;

/// The position and velocity of one body, in N-body units.
fn plummer_state(random: &mut SplitMix64) -> [f64; 6] {
    // The scale length for which the potential energy is -1/2.
    const SCALE: f64 = 3.0 * PI / 16.0;
    const CUTOFF: f64 = 10.0;

    let radius = loop {
        let inside = unit(random);
        let radius = (inside.powf(-2.0 / 3.0) - 1.0).sqrt().recip();
        if radius <= CUTOFF {
            break radius;
        }
    };
    // The speed divided by the escape speed has the density q² (1 - q²)^(7/2), which is below 0.1.
    let fraction = loop {
        let (q, height) = (unit(random), 0.1 * unit(random));
        if height < q * q * (1.0 - q * q).powf(3.5) {
            break q;
        }
    };
    let speed = fraction * 2.0_f64.sqrt() * (1.0 + radius * radius).powf(-0.25);

    let [x, y, z] = direction(random).map(|component| component * radius * SCALE);
    let [u, v, w] = direction(random).map(|component| component * speed / SCALE.sqrt());
    [x, y, z, u, v, w]
}

/// A random direction, uniform on the unit sphere.
fn direction(random: &mut SplitMix64) -> [f64; 3] {
    let z = 2.0 * unit(random) - 1.0;
    let (sin, cos) = (TAU * unit(random)).sin_cos();
    let across = (1.0 - z * z).sqrt();
    [across * cos, across * sin, z]
}

/// A random number between 0 and 1, both exclusive.
fn unit(random: &mut SplitMix64) -> f64 {
    ((random.next_u64() >> 12) as f64 + 0.5) * 2.0_f64.powi(-52)
}

/// The accelerations of given bodies in f64, with their condition.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::nbody::Gravity;
/// use halo_gpu::nbody::problem::{Cluster, Reference};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let gravity = Gravity::new(0.05)?;
/// let bodies = Cluster::<f32>::plummer(200, 1)?.bodies;
/// let mut accelerations = gravity.accelerations_of(&Device::cpu(), &bodies)?;
///
/// let reference = Reference::sampled(&gravity, &bodies, 20)?; // of every tenth body
/// assert_eq!((reference.accelerations().len(), reference.sizes().len()), (20, 20));
/// let bounds = reference.bounds::<f32>();
/// assert!(reference.errors(&accelerations)?.within(bounds.rms, bounds.max));
/// accelerations[10][2] *= 1.01;
/// assert!(!reference.errors(&accelerations)?.within(bounds.rms, bounds.max));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    accelerations: Vec<[f64; 3]>,
    sizes: Vec<f64>,
    /// The number of bodies, and the distance between bodies with a reference.
    bodies: usize,
    stride: usize,
}

impl Reference {
    /// The reference for all `bodies`, from the definition and in f64.
    ///
    /// # Errors
    ///
    /// As for [`Gravity::check`].
    pub fn of<T: Scalar>(gravity: &Gravity, bodies: &[Body<T>]) -> Result<Self, Error> {
        Self::sampled(gravity, bodies, usize::MAX)
    }

    /// The reference for at least `count` of the bodies, evenly spread, or for all if there are
    /// fewer: their accelerations by all bodies.
    ///
    /// # Errors
    ///
    /// As for [`Gravity::check`]; [`Error::InvalidParameter`] if `count` is zero.
    pub fn sampled<T: Scalar>(
        gravity: &Gravity,
        bodies: &[Body<T>],
        count: usize,
    ) -> Result<Self, Error> {
        gravity.check(bodies)?;
        if count == 0 {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the number of bodies to compute a reference for",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            });
        }
        let stride = (bodies.len() / count).max(1);
        let softening_squared = gravity.softening() * gravity.softening();
        crate::threads::ready();
        let sums = bodies.par_iter().step_by(stride).map(|body| {
            let position: [f64; 3] = body.position().map(Into::into);
            let (mut sum, mut size) = ([0.0; 3], 0.0);
            for other in bodies {
                let [x, y, z]: [f64; 3] = other.position().map(Into::into);
                let mass: f64 = other.mass.into();
                let r = [x - position[0], y - position[1], z - position[2]];
                let square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
                let distance_squared = square + softening_squared;
                let s = mass / distance_squared.sqrt() / distance_squared;
                for (sum, r) in sum.iter_mut().zip(r) {
                    *sum += r * s;
                }
                size += square.sqrt() * s.abs();
            }
            (sum, size)
        });
        let (accelerations, sizes) = sums.unzip();
        Ok(Self {
            accelerations,
            sizes,
            bodies: bodies.len(),
            stride,
        })
    }

    /// The acceleration of each body that has a reference.
    #[must_use]
    pub fn accelerations(&self) -> &[[f64; 3]] {
        &self.accelerations
    }

    /// For each of those bodies the sum of the absolute terms, `Σ_j |r s|`: the size that the
    /// acceleration would have if nothing cancelled.
    #[must_use]
    pub fn sizes(&self) -> &[f64] {
        &self.sizes
    }

    /// The relative errors of the accelerations, `|a - a_ref| / |a_ref|`, of the bodies with a
    /// reference. If any body's acceleration is not finite, the errors are NaN.
    ///
    /// If both the acceleration and its reference are zero, the error is 0.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless there is one acceleration for each body.
    pub fn errors<T: Scalar>(&self, accelerations: &[[T; 3]]) -> Result<Errors, Error> {
        if accelerations.len() != self.bodies {
            return Err(Error::LengthMismatch {
                argument: Argument::new(OPERATION, "accelerations to compare"),
                required: self.bodies,
                given: accelerations.len(),
            });
        }
        let mut errors: Vec<f64> = self
            .accelerations
            .iter()
            .zip(accelerations.iter().step_by(self.stride))
            .map(|(reference, given)| {
                let difference = [0, 1, 2].map(|axis| given[axis].into() - reference[axis]);
                relative(norm(difference), norm(*reference))
            })
            .collect();
        // The others are only checked to be finite.
        let finite = |a: &T| Into::<f64>::into(*a).is_finite();
        if !accelerations.as_flattened().iter().all(finite) {
            errors.push(f64::NAN);
        }
        Ok(Errors::of(&errors, |_| 0.0))
    }

    /// Bounds on the relative errors of accelerations in `T`.
    ///
    /// The error of an acceleration is at most [`error_bound`] times the sum of its absolute terms.
    /// The more the terms cancel, the larger it is relative to the acceleration.
    #[must_use]
    pub fn bounds<T: Scalar>(&self) -> Errors {
        let bound = error_bound::<T>(self.bodies);
        let bounds: Vec<f64> = self
            .accelerations
            .iter()
            .zip(&self.sizes)
            .map(|(reference, size)| relative(bound * size, norm(*reference)))
            .collect();
        Errors::of(&bounds, |_| 0.0)
    }
}

/// The error bound of an acceleration in `T` by `n` bodies, divided by the sum of the absolute
/// terms.
///
/// It has [`INTERACTION_ROUNDOFFS`] for each term, and for their sum `n` roundings in the worst
/// case. For many bodies 8 √n replaces n: if roundings are independent, the error exceeds that with
/// a probability of 2 exp(-8²/2) = 3e-14 (Higham and Mary, "A new approach to probabilistic
/// rounding error analysis", SIAM J. Sci. Comput. 41 (2019), theorem 2.4). The reference in f64 has
/// such an error too. One hundredth is added for products of errors.
#[must_use]
pub fn error_bound<T: Scalar>(n: usize) -> f64 {
    let n = n as f64;
    let roundoffs = INTERACTION_ROUNDOFFS + n.min(8.0 * n.sqrt());
    1.01 * roundoffs * (T::UNIT_ROUNDOFF + f64::UNIT_ROUNDOFF)
}

/// `value / of`, and 0 for 0 / 0. NaN stays NaN.
fn relative(value: f64, of: f64) -> f64 {
    if value == 0.0 { 0.0 } else { value / of }
}

/// The length of a vector.
fn norm(vector: [f64; 3]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Computes the potential energy `-Σ_{i<j} m_i m_j / √(|r|² + ε²)` in f64 on the CPU, for bodies of
/// any type.
///
/// Its negative gradient with respect to x_i is m_i a_i. Together with the kinetic energy it serves
/// to check an integration.
///
/// ```
/// use halo_gpu::nbody::{Body, Gravity, problem};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let bodies = [
///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
/// ];
/// let energy = problem::potential_energy(&Gravity::new(1.0)?, &bodies)?;
/// assert_eq!(energy, -16.0 * 8.0 / 2.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As for [`Gravity::check`], and [`Error::HostOutOfMemory`].
pub fn potential_energy<T: Scalar>(gravity: &Gravity, bodies: &[Body<T>]) -> Result<f64, Error> {
    gravity.check(bodies)?;
    cpu::potential_energy(bodies, gravity.softening() * gravity.softening())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_judges_what_all_of_them_would() {
        let gravity = Gravity::new(0.05).expect("a softening");
        let bodies = Cluster::<f32>::plummer(103, 1).expect("bodies").bodies;
        let all = Reference::of(&gravity, &bodies).expect("a reference");
        let some = Reference::sampled(&gravity, &bodies, 10).expect("a reference");
        let chosen: Vec<[f64; 3]> = all.accelerations().iter().copied().step_by(10).collect();
        assert_eq!(some.accelerations(), chosen);
        assert_eq!(some.accelerations().len(), 11);
        let same = Reference::sampled(&gravity, &bodies, 103).expect("a reference");
        assert_eq!(same, all);

        let mut a: Vec<[f32; 3]> = all
            .accelerations()
            .iter()
            .map(|a| a.map(|a| a as f32))
            .collect();
        let right = some.errors(&a).expect("as many as bodies");
        assert!(right.max < 1e-6, "{right:?}");
        // One that was chosen, and one that was not.
        a[30][1] *= 2.0;
        assert!(some.errors(&a).expect("as many").max > 1e-3);
        a[30] = all.accelerations()[30].map(|a| a as f32);
        a[31][2] = f32::NAN;
        assert!(some.errors(&a).expect("as many").max.is_nan());
        assert!(matches!(
            some.errors(&a[1..]),
            Err(Error::LengthMismatch { required: 103, .. })
        ));
        let error = Reference::sampled(&gravity, &bodies, 0).expect_err("none at all");
        assert!(error.to_string().contains("at least 1"), "{error}");
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first outputs for the seed 1234567, as other implementations of
        // the same generator print them.
        let mut random = SplitMix64::seed_from_u64(1_234_567);
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!([(); 3].map(|()| random.next_u64()), expected);
    }

    #[test]
    fn nan_is_an_error_and_never_within_bounds() {
        let gravity = Gravity::new(0.1).unwrap();
        let bodies = Cluster::<f32>::plummer(3, 7).unwrap().bodies;
        let reference = Reference::of(&gravity, &bodies).unwrap();
        let mut accelerations = gravity
            .accelerations_of(&crate::Device::cpu(), &bodies)
            .unwrap();
        let bounds = reference.bounds::<f32>();
        assert!(
            reference
                .errors(&accelerations)
                .unwrap()
                .within(bounds.rms, bounds.max)
        );
        accelerations[1][2] = f32::NAN;
        assert!(
            !reference
                .errors(&accelerations)
                .unwrap()
                .within(bounds.rms, bounds.max)
        );
    }
}
