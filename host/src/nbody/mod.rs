//! Computes all-pairs gravity: the acceleration of each of n bodies by all the others.
//!
//! ```text
//! r   = x_j - x_i
//! s   = m_j / (|r|² + ε²)^(3/2)
//! a_i = Σ_j r s
//! ```
//!
//! with the gravitational constant 1. The softening is Plummer's: each body attracts like a sphere
//! with the density profile that H. C. Plummer found for globular clusters (MNRAS 71, 1911), with
//! the scale length ε. L. Nyland, M. Harris and J. Prins, "Fast N-body simulation with CUDA", GPU
//! Gems 3 (2007), chapter 31, describe the sum over all pairs and its GPU algorithm.
//!
//! # Units and shapes
//!
//! Any units work in which the gravitational constant is 1. With lengths in L and times in T,
//! masses are in L³/T², velocities in L/T, accelerations in L/T² and potentials in L²/T². For
//! metres and seconds, first multiply masses in kilograms by 6.674e-11 m³/(kg s²). A [`Body`] is a
//! position along x, y and z and a mass; accelerations and velocities are one `[x, y, z]` for each
//! body, in the same order.
//!
//! # Usage
//!
//! [`Gravity`] describes the computation: the softening length ε. [`Gravity::plan`] makes a
//! [`Plan`] for a number of bodies on a device, in f32 or f64 ([`Scalar`](crate::Scalar)). Its
//! methods take buffers and compute accelerations, accelerations in mixed precision, potentials and
//! the potential energy. Methods of the same names with `_of` take a device and bodies in host
//! memory. On a CUDA device and on the emulator the number of bodies determines the kernel for
//! accelerations: [`Variant::Symmetric`] from 8192 on, [`Variant::RegisterTile`] below. You can
//! also name one of them, or one of the textbook's, with [`Gravity::plan_with`]. [`Gravity::start`]
//! makes moving bodies, a [`Leapfrog`]; [`problem`] has initial systems.
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::nbody::{Body, Gravity};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! // Two bodies, a softened distance of √(1 + 1 + 1 + ε²) = 2 apart.
//! let bodies = [
//!     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
//!     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
//! ];
//! let gravity = Gravity::new(1.0)?;
//! for device in [Device::cpu(), Device::emulator()] {
//!     let a = gravity.accelerations_of(&device, &bodies)?;
//!     assert_eq!(a, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Softening
//!
//! The sum runs over all j. For j = i, and for bodies at the same position, r is zero, and so is r
//! s if s is a number. Without softening s would be infinite, and 0 · ∞ is NaN, so ε must be
//! positive. It must also be large enough that ε² is a normal number of the type, and within
//! [`Range::SHORTEST`] and [`Range::LONGEST`]. [`Gravity::check`] has the rules for bodies (finite,
//! not too far out, not too heavy); for bodies that it accepts, every acceleration is a finite
//! number. Masses may be zero or negative; a negative mass repels.
//!
//! # Accuracy
//!
//! With the unit roundoff u of the type ([`Scalar::UNIT_ROUNDOFF`](crate::Scalar::UNIT_ROUNDOFF)),
//! one term r s has a relative error of at most [`INTERACTION_ROUNDOFFS`] u, unless it underflows,
//! and the sum of n terms adds an error of at most n u times the sum of their absolute values.
//! [`problem::Reference`] computes a bound for given bodies from that. On a CUDA device the
//! reciprocal square root is the hardware's approximation, within 2^-22.9 in f32.
//!
//! # Reproducibility
//!
//! The order of all sums is fixed, so the same call on the same device always gives the same bits.
//! Different devices give different bits, for three reasons: the approximation above; other orders
//! on the CPU, whose inverse roots depend on its vectors (an estimate and its refinement, or a root
//! and a quotient); and because a [`Plan`] divides its sums into more parts on a device with more
//! multiprocessors ([`Gravity::with_parts`] sets their number). Only [`kick_drift`] gives the same
//! bits everywhere.

#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
pub(crate) mod gpu;
mod gravity;
mod leapfrog;
mod on_host;
mod part;
mod plan;
pub mod problem;
pub(crate) mod range;

#[cfg(feature = "cases")]
#[doc(hidden)]
pub use cases::{MIXED_KERNEL, Port, interactions, potential_kernel};
pub use check::MAX_BODIES;
pub use gpu::Variant;
pub use gpu_kernels::nbody::Body;
#[cfg(feature = "cases")]
#[doc(hidden)]
pub use gpu_kernels::nbody::{
    FLOPS_PER_INTERACTION_F32, FLOPS_PER_INTERACTION_F64, geometry::DEFAULT_BLOCK,
};
pub use gravity::Gravity;
pub use leapfrog::{Energy, Leapfrog, kick_drift};
pub use part::PartPlan;
pub use plan::Plan;
pub use range::{INTERACTION_ROUNDOFFS, Range};
