//! The CPU ports: an array of structures, and a structure of arrays.
//!
//! [`aos`] is the plain reference: one body after the other, one interaction
//! after the other, by the function that the kernels call. [`soa`] is written
//! from the formula: another layout, other operations (separate products and
//! sums) and another order of the sum.
#![forbid(unsafe_code)]

use super::{Body, Real};
use crate::simd::vectorised;
use gpu_kernels::nbody::body_body;
use rayon::prelude::*;

/// Bodies that [`soa`] takes at a time. The sums of so many lanes fit the vector
/// registers of every processor with 16-byte vectors.
const LANES: usize = 8;

/// Interactions that are worth handing to another thread.
const INTERACTIONS_PER_TASK: usize = 1 << 14;

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

/// Accelerations of `bodies` by way of a structure of arrays.
///
/// Lane l adds the bodies l, l + 8, l + 16, …; the eight sums are added at the
/// end. Products and sums are separate, since without a target feature a fused
/// multiply-add is a call of a function, which nothing vectorises.
pub(super) fn soa<T: Real>(bodies: &[Body<T>], softening_squared: T, accelerations: &mut [[T; 3]]) {
    let arrays = Arrays::of(bodies);
    accelerations
        .par_iter_mut()
        .zip(bodies)
        .with_min_len(INTERACTIONS_PER_TASK.div_ceil(bodies.len().max(1)))
        .for_each(|(acceleration, body)| {
            *acceleration = vectorised(
                #[inline(always)]
                || arrays.acceleration(body.position(), softening_squared),
            );
        });
}

/// Coordinates and masses in an array each, eight by eight.
struct Arrays<T> {
    x: Vec<[T; LANES]>,
    y: Vec<[T; LANES]>,
    z: Vec<[T; LANES]>,
    mass: Vec<[T; LANES]>,
}

impl<T: Real> Arrays<T> {
    /// The last eight are filled up with bodies that add nothing.
    fn of(bodies: &[Body<T>]) -> Self {
        let gather = |field: fn(&Body<T>) -> T| {
            bodies
                .chunks(LANES)
                .map(|chunk| {
                    std::array::from_fn(|lane| field(chunk.get(lane).unwrap_or(&Body::NOTHING)))
                })
                .collect()
        };
        Self {
            x: gather(|body| body.x),
            y: gather(|body| body.y),
            z: gather(|body| body.z),
            mass: gather(|body| body.mass),
        }
    }

    #[inline(always)]
    fn acceleration(&self, position: [T; 3], softening_squared: T) -> [T; 3] {
        let one = T::nearest(1.0);
        let mut sums = [[T::ZERO; LANES]; 3];
        for (((x, y), z), mass) in self.x.iter().zip(&self.y).zip(&self.z).zip(&self.mass) {
            for lane in 0..LANES {
                let r = [
                    x[lane] - position[0],
                    y[lane] - position[1],
                    z[lane] - position[2],
                ];
                let distance_squared =
                    r[0] * r[0] + r[1] * r[1] + (r[2] * r[2] + softening_squared);
                let inverse = one / distance_squared.square_root();
                let s = (mass[lane] * inverse) * (inverse * inverse);
                sums[0][lane] = sums[0][lane] + r[0] * s;
                sums[1][lane] = sums[1][lane] + r[1] * s;
                sums[2][lane] = sums[2][lane] + r[2] * s;
            }
        }
        sums.map(|lanes| lanes.into_iter().fold(T::ZERO, |sum, lane| sum + lane))
    }
}

/// Kicks the velocities for the first time, then lets the bodies drift for the
/// second: one fused multiply-add per component.
pub(super) fn kick_drift<T: Real>(
    accelerations: &[[T; 3]],
    [kick, drift]: [T; 2],
    velocities: &mut [[T; 3]],
    bodies: &mut [Body<T>],
) {
    for ((acceleration, velocity), body) in accelerations.iter().zip(velocities).zip(bodies) {
        for (v, a) in velocity.iter_mut().zip(acceleration) {
            *v = a.mul_add(kick, *v);
        }
        let [u, v, w] = *velocity;
        body.x = u.mul_add(drift, body.x);
        body.y = v.mul_add(drift, body.y);
        body.z = w.mul_add(drift, body.z);
    }
}

/// Accelerations by interactions in f32, whose sums over [`MIXED_TILE`] bodies are added
/// in f64.
pub(super) fn mixed(bodies: &[Body<f32>], softening_squared: f32, accelerations: &mut [[f64; 3]]) {
    accelerations
        .par_iter_mut()
        .zip(bodies)
        .with_min_len(INTERACTIONS_PER_TASK.div_ceil(bodies.len().max(1)))
        .for_each(|(acceleration, body)| {
            let position = body.position();
            let mut total = [0.0; 3];
            for tile in bodies.chunks(MIXED_TILE) {
                let mut sum = [0.0_f32; 3];
                for other in tile {
                    sum = body_body(sum, position, *other, softening_squared);
                }
                for (total, sum) in total.iter_mut().zip(sum) {
                    *total += f64::from(sum);
                }
            }
            *acceleration = total;
        });
}

/// Bodies that are summed in f32: as many as a tile of the kernel has by default.
const MIXED_TILE: usize = super::DEFAULT_BLOCK as usize;

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
    let arrays = Arrays::of(&wide);
    potentials
        .par_iter_mut()
        .enumerate()
        .with_min_len(INTERACTIONS_PER_TASK.div_ceil(bodies.len().max(1)))
        .for_each(|(i, potential)| {
            *potential = vectorised(
                #[inline(always)]
                || arrays.potential(i, softening_squared),
            );
        });
}

impl Arrays<f64> {
    #[inline(always)]
    fn potential(&self, i: usize, softening_squared: f64) -> f64 {
        let (own, lane) = (i / LANES, i % LANES);
        let position = [self.x[own][lane], self.y[own][lane], self.z[own][lane]];
        let term = |eight: usize, lane: usize| {
            let r = [
                self.x[eight][lane] - position[0],
                self.y[eight][lane] - position[1],
                self.z[eight][lane] - position[2],
            ];
            let square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
            self.mass[eight][lane] / (square + softening_squared).sqrt()
        };
        let mut sums = [0.0; LANES];
        for part in [0..own, own + 1..self.x.len()] {
            for eight in part {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum += term(eight, lane);
                }
            }
        }
        for (other, sum) in sums.iter_mut().enumerate() {
            if other != lane {
                *sum += term(own, other);
            }
        }
        -sums.iter().sum::<f64>()
    }
}

/// `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`.
pub(super) fn potential_energy<T: Real>(bodies: &[Body<T>], softening_squared: f64) -> f64 {
    // Collected and then added in order, so that the bits do not depend on how
    // many threads there are.
    let potentials: Vec<f64> = (0..bodies.len())
        .into_par_iter()
        .map(|i| {
            let mass: f64 = bodies[i].mass.into();
            let position = bodies[i].position().map(Into::into);
            let sum: f64 = bodies[i + 1..]
                .iter()
                .map(|other| {
                    let [x, y, z] = other.position().map(Into::into);
                    let r: [f64; 3] = [x - position[0], y - position[1], z - position[2]];
                    let square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
                    other.mass.into() / (square + softening_squared).sqrt()
                })
                .sum();
            -mass * sum
        })
        .collect();
    potentials.iter().sum()
}
