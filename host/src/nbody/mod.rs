//! All-pairs gravity: the acceleration of each of n bodies by all the others.
//!
//! ```text
//! r   = x_j - x_i
//! s   = m_j / (|r|² + ε²)^(3/2)
//! a_i = Σ_j r s
//! ```
//!
//! with the gravitational constant 1. The softening is Plummer's: each body attracts as
//! a sphere would of the density that H. C. Plummer found for globular clusters (MNRAS 71,
//! 1911), with the scale length ε. The sum over all pairs, and how GPUs go about it, is that of
//! L. Nyland, M. Harris and J. Prins, "Fast N-body simulation with CUDA", GPU Gems 3
//! (2007), chapter 31.
//!
//! # Units and shapes
//!
//! Any units will do in which the gravitational constant is 1. With lengths in L and
//! times in T, masses are in L³/T², velocities in L/T, accelerations in L/T² and
//! potentials in L²/T²: masses in kilograms are to be multiplied by 6.674e-11 m³/(kg s²)
//! first, for metres and seconds. [`Body`] is a position along x, y and z and a mass;
//! accelerations and velocities are one `[x, y, z]` for each body, in their order.
//!
//! # How to call it
//!
//! [`Gravity`] holds the softening length ε;
//! it works in f32 and in f64 ([`Real`]), on the device of the buffers. On a CUDA
//! device and on the emulator that is the kernel that suits the number of bodies:
//! [`Variant::Symmetric`] from 8192 on, [`Variant::RegisterTile`] below. Each can
//! also be asked for by name, as can the textbook's ([`Variant`]); on the CPU it is
//! the faster of two ports ([`Port`]). For accelerations of as many bodies again and
//! again there is [`Solver`], which keeps the memory that those two kernels need.
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
//!     let a = gravity.accelerations(&device, &bodies)?;
//!     assert_eq!(a, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Beyond accelerations there are potentials ([`Gravity::potentials`]) and their energy
//! ([`Gravity::potential_energy_on`]), accelerations in mixed precision
//! ([`Gravity::apply_mixed`]), an integrator ([`Leapfrog`]) and, in [`problem`], systems to
//! start from.
//!
//! # Softening, and why there is no NaN
//!
//! The sum runs over all j: for j = i, and for bodies at one place, r is zero, and
//! so is r s as long as s is a number. Without softening s would be infinite and
//! 0 · ∞ is NaN, so ε must be positive; it must also be large enough for ε² to be
//! a normal number of the type, and within [`Real::SHORTEST`] and
//! [`Real::LONGEST`]. [`Gravity::check`] has the rules for bodies (finite, not too
//! far out, not too heavy); with bodies that it accepts, every acceleration is a
//! finite number. Masses may be zero or negative; a negative mass repels.
//!
//! # Accuracy
//!
//! With the unit roundoff u of the type ([`Real::UNIT_ROUNDOFF`]), one term r s
//! carries a relative error of at most [`INTERACTION_ROUNDOFFS`] u, unless it
//! underflows, and the sum of n terms at most n u of the sum of their sizes.
//! [`problem::Reference`] turns that into a bound for given bodies. The kernels
//! and [`Port::Aos`] add in the same order and give the same bits in the emulator;
//! on a CUDA device the reciprocal square root is the hardware's approximation,
//! within 2^-22.9 in f32, and the bits differ within the bound.
//!
//! # What is reproducible
//!
//! The order of all sums is fixed, so that the same call on the same device gives the
//! same bits every time. Between devices bits differ: by the approximation above, by
//! other orders on the CPU, and because [`Gravity::apply`] divides its sums into parts
//! of which there are the more the more multiprocessors a device has
//! ([`Gravity::with_parts`] sets their number). [`kick_drift`] alone is the same
//! everywhere.

mod cpu;
mod energy;
mod gpu;
mod leapfrog;
pub mod problem;

use crate::{Buffer, Device, DeviceKind, Element, Error};
pub use energy::{MIXED_KERNEL, potential_kernel};
pub use gpu_kernels::nbody::{Body, FLOPS_PER_INTERACTION_F32, FLOPS_PER_INTERACTION_F64};
pub use leapfrog::{Energy, Leapfrog, kick_drift};
use std::fmt;

/// The most bodies: 2³¹. Kernels count them with 32 bits.
pub const MAX_BODIES: usize = 1 << 31;

/// Threads per block, where [`Gravity::with_block`] says nothing else.
///
/// At the default size of the textbook, 16384 bodies, this gives 128 blocks:
/// about as many as a large GPU has multiprocessors, each with one warp for each
/// of its four schedulers. Larger blocks would leave half of it idle.
pub const DEFAULT_BLOCK: u32 = 128;

/// The relative error of one term r s, in unit roundoffs.
///
/// To first order, with u for one rounding and 2.2 u for the reciprocal square
/// root (2^-22.9 in f32 on a GPU is 2.14 u; a root and a quotient are 1.5 u):
///
/// | | fused | separate products and sums |
/// |---|---|---|
/// | r | 1 | 1 |
/// | \|r\|² + ε² | 2 + 3 | 2 + 1 + 3 |
/// | its reciprocal root | 2.5 + 2.2 | 3 + 2.2 |
/// | squared | 9.4 + 1 | 10.4 + 1 |
/// | times the mass | 4.7 + 1 | 5.2 + 1 |
/// | s | 10.4 + 5.7 + 1 | 11.4 + 6.2 + 1 |
/// | r s | 17.1 + 1 | 18.6 + 1 + 1 |
///
/// which is 20.6 u at the most.
pub const INTERACTION_ROUNDOFFS: f64 = 21.0;

const OPERATION: &str = "nbody";

/// What errors call them.
const ACCELERATIONS: &str = "accelerations";

/// f32 or f64: what bodies are made of. No other type can implement it.
pub trait Real:
    gpu_kernels::nbody::Real
    + Element
    + Into<f64>
    + gpu::Entries
    + std::ops::Div<Output = Self>
    + fmt::Debug
    + fmt::Display
{
    /// `f32` or `f64`.
    const NAME: &'static str;

    /// Operations that an interaction is counted as: 20 or 30.
    const FLOPS_PER_INTERACTION: u64;

    /// Half the distance from 1 to the next number: 2⁻²⁴ or 2⁻⁵³.
    const UNIT_ROUNDOFF: f64;

    /// The largest finite number.
    const MAX: f64;

    /// The smallest softening length: the root of the smallest normal number,
    /// 2⁻⁶³ or 2⁻⁵¹¹. Its square is normal.
    const SHORTEST: f64;

    /// The largest softening length, and the largest coordinate in size: 2⁶¹ or
    /// 2⁵⁰⁹. No |r|² + ε² exceeds 13 times its square, whose reciprocal is normal.
    const LONGEST: f64;

    /// The number of this type that is nearest to `value`.
    #[must_use]
    fn nearest(value: f64) -> Self;

    /// √self, correctly rounded.
    #[must_use]
    fn square_root(self) -> Self;
}

impl Real for f32 {
    const NAME: &'static str = "f32";
    const FLOPS_PER_INTERACTION: u64 = FLOPS_PER_INTERACTION_F32;
    const UNIT_ROUNDOFF: f64 = Self::EPSILON as f64 / 2.0;
    const MAX: f64 = Self::MAX as f64;
    // A number 1.0 × 2^e has the bits of e + 1023 above 52 zeros.
    const SHORTEST: f64 = f64::from_bits((1023 - 63) << 52);
    const LONGEST: f64 = f64::from_bits((1023 + 61) << 52);

    fn nearest(value: f64) -> Self {
        value as Self
    }

    fn square_root(self) -> Self {
        self.sqrt()
    }
}

impl Real for f64 {
    const NAME: &'static str = "f64";
    const FLOPS_PER_INTERACTION: u64 = FLOPS_PER_INTERACTION_F64;
    const UNIT_ROUNDOFF: f64 = Self::EPSILON / 2.0;
    const MAX: f64 = Self::MAX;
    const SHORTEST: f64 = f64::from_bits((1023 - 511) << 52);
    const LONGEST: f64 = f64::from_bits((1023 + 509) << 52);

    fn nearest(value: f64) -> Self {
        value
    }

    fn square_root(self) -> Self {
        self.sqrt()
    }
}

/// One of the kernels. There is one of each for f32 and for f64.
///
/// The first seven are the textbook's. The last two sum up in parts, which
/// [`Solver`] says more about.
///
/// | variant | kernels | bodies are read from | interactions per turn of the loop |
/// |---|---|---|---|
/// | `AosUnroll1` | `nbody_aos_unroll1_f32`, `_f64` | global memory | 1 |
/// | `AosUnroll2` | `nbody_aos_unroll2_f32`, `_f64` | global memory | 2 |
/// | `AosUnroll4` | `nbody_aos_unroll4_f32`, `_f64` | global memory | 4 |
/// | `AosUnroll8` | `nbody_aos_unroll8_f32`, `_f64` | global memory | 8 |
/// | `AosUnroll16` | `nbody_aos_unroll16_f32`, `_f64` | global memory | 16 |
/// | `AosUnroll32` | `nbody_aos_unroll32_f32`, `_f64` | global memory | 32 |
/// | `Shared` | `nbody_shared_f32`, `_f64` | a tile in shared memory | 16 |
/// | `RegisterTile` | `nbody_register_tile_f32`, `_f64` | a tile in shared memory, for four bodies at a time | 32, 16 |
/// | `Symmetric` | `nbody_symmetric_f32`, `_f64` | the same, each pair once | 64, 16 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variant {
    /// Every thread reads every body from global memory, one interaction per turn.
    AosUnroll1,
    /// Two interactions per turn.
    AosUnroll2,
    /// Four interactions per turn.
    AosUnroll4,
    /// Eight interactions per turn.
    AosUnroll8,
    /// Sixteen interactions per turn.
    AosUnroll16,
    /// Thirty-two interactions per turn.
    AosUnroll32,
    /// A block reads as many bodies as it has threads to shared memory, and then
    /// from there.
    Shared,
    /// A thread has four bodies in registers, and several blocks share the sum over
    /// the others.
    RegisterTile,
    /// Each pair of bodies once: what the one does to the other, the other does to it.
    Symmetric,
}

impl Variant {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::AosUnroll1,
        Self::AosUnroll2,
        Self::AosUnroll4,
        Self::AosUnroll8,
        Self::AosUnroll16,
        Self::AosUnroll32,
        Self::Shared,
        Self::RegisterTile,
        Self::Symmetric,
    ];

    /// The entry point for bodies of `T`, as in the PTX.
    #[must_use]
    pub fn name<T: Real>(self) -> &'static str {
        T::entry_name(self)
    }

    /// How many interactions a turn of the inner loop holds, in f32.
    #[must_use]
    pub const fn unroll(self) -> usize {
        match self {
            Self::AosUnroll1 => 1,
            Self::AosUnroll2 => 2,
            Self::AosUnroll4 => 4,
            Self::AosUnroll8 => 8,
            Self::AosUnroll16 => 16,
            Self::AosUnroll32 => 32,
            Self::Shared => gpu_kernels::nbody::SHARED_UNROLL,
            Self::RegisterTile => 32,
            Self::Symmetric => 64,
        }
    }
}

/// One of the two CPU ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// The plain reference: an array of structures, one body after the other, one
    /// thread. Adds in the order of the kernels.
    Aos,
    /// What [`Device::cpu`] runs: a structure of arrays, eight bodies at a time
    /// for the compiler to vectorise, all threads.
    Soa,
}

impl Port {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Aos, Self::Soa];
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aos => "array of structures",
            Self::Soa => "structure of arrays",
        })
    }
}

/// All-pairs gravity with a given softening.
///
/// ```
/// use halo_gpu::nbody::Gravity;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // 0.05 in the unit of the positions; blocks of 64 threads, sums in 4 parts, and at most
/// // 64 MiB for each of the two arrays that those are kept in.
/// let gravity = Gravity::new(0.05)?.with_block(64)?.with_parts(4)?.with_scratch_bytes(64 << 20);
/// assert_eq!((gravity.softening(), gravity.block()), (0.05, 64));
/// assert_eq!(Gravity::interactions(1000), 1_000_000);
/// assert_eq!(Gravity::flops::<f32>(1000), 20_000_000);
/// assert_eq!(Gravity::bytes::<f32>(1000), 1000 * (16 + 12));
/// assert!(gravity.with_block(48).is_err() && gravity.with_parts(0).is_err());
/// assert!(Gravity::new(0.0).is_err()); // without softening there is no answer at r = 0
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gravity {
    softening: f64,
    block: u32,
    parts: Option<u32>,
    scratch: usize,
}

/// The most bytes of each of the two arrays of a [`Solver`], where
/// [`Gravity::with_scratch_bytes`] says nothing else: 1 GiB.
pub const DEFAULT_SCRATCH_BYTES: usize = 1 << 30;

impl Gravity {
    /// Gravity with the softening length ε, in the unit of the positions.
    ///
    /// Which lengths are possible depends on the type of the bodies and is checked
    /// when there are some: [`Real::SHORTEST`] to [`Real::LONGEST`].
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`], and [`Error::InvalidParameter`] for a softening that
    /// no type allows; zero is one.
    pub fn new(softening: f64) -> Result<Self, Error> {
        if !softening.is_finite() {
            return Err(Error::NonFinite {
                operation: OPERATION,
                parameter: "the softening length",
                given: softening,
            });
        }
        let gravity = Self {
            softening,
            block: DEFAULT_BLOCK,
            parts: None,
            scratch: DEFAULT_SCRATCH_BYTES,
        };
        gravity.softening_squared::<f64>()?;
        Ok(gravity)
    }

    /// The same, with kernels launched in blocks of `block` threads.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is a multiple of 32 from 32 to 1024.
    pub fn with_block(mut self, block: u32) -> Result<Self, Error> {
        if block == 0 || block > 1024 || !block.is_multiple_of(32) {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis: "block",
                given: block as usize,
                required: "a multiple of 32 from 32 to 1024".to_owned(),
            });
        }
        self.block = block;
        Ok(self)
    }

    /// The same, with the sums of [`Variant::RegisterTile`] and
    /// [`Variant::Symmetric`] made in `parts` parts, or as many as the number of
    /// bodies and the memory allow.
    ///
    /// Without it the number follows from that of the bodies and that of the
    /// device's multiprocessors, so that a large device is filled and a small one not
    /// troubled. It decides in which order terms are added, and with it the last
    /// digits: for the same digits on devices of different sizes, set it.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::problem::Cluster;
    /// use halo_gpu::nbody::{Gravity, Port, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = Cluster::<f32>::plummer(300, 1)?.bodies;
    /// let device = Device::emulator();
    /// let (stars, mut kernel) = (device.upload(&bodies)?, device.alloc_filled(300, [0.0; 3])?);
    ///
    /// // A single part is added in the order of the plain port. In the emulator, which does not
    /// // approximate the root, that makes the same bits.
    /// let gravity = Gravity::new(0.05)?.with_parts(1)?;
    /// gravity.apply_with(Variant::RegisterTile, &stars, &mut kernel)?;
    /// let mut port = vec![[0.0; 3]; 300];
    /// gravity.apply_port(Port::Aos, &bodies, &mut port)?;
    /// assert_eq!(kernel.to_vec()?, port);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for 0.
    pub fn with_parts(mut self, parts: u32) -> Result<Self, Error> {
        if parts == 0 {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the number of parts",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            });
        }
        self.parts = Some(parts);
        Ok(self)
    }

    /// The same, with at most so many bytes in each of the two arrays of a
    /// [`Solver`], or one row where that is more. With less memory the work is done in
    /// more rounds, or in fewer parts, and sums in another order.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::problem::{Cluster, Reference};
    /// use halo_gpu::nbody::{Gravity, Solver, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = Cluster::<f32>::plummer(600, 1)?.bodies;
    /// let device = Device::emulator();
    /// let stars = device.upload(&bodies)?;
    /// let mut accelerations = device.alloc_filled(600, [0.0; 3])?;
    ///
    /// let gravity = Gravity::new(0.05)?.with_scratch_bytes(0); // one row, and as many rounds
    /// let mut solver = Solver::new(&gravity, &device, 600, Some(Variant::Symmetric))?;
    /// solver.apply(&stars, &mut accelerations)?;
    /// let reference = Reference::sampled(&gravity, &bodies, 50)?;
    /// let bounds = reference.bounds::<f32>();
    /// assert!(reference.errors(&accelerations.to_vec()?)?.within(bounds.rms, bounds.max));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn with_scratch_bytes(mut self, bytes: usize) -> Self {
        self.scratch = bytes;
        self
    }

    /// The softening length ε.
    #[must_use]
    pub const fn softening(&self) -> f64 {
        self.softening
    }

    /// Threads per block of the textbook kernels; the tile of [`Variant::Shared`] holds as
    /// many bodies.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// Interactions of `n` bodies, n², the ones with themselves included; at most
    /// `u64::MAX`.
    #[must_use]
    pub const fn interactions(n: usize) -> u64 {
        (n as u64).saturating_mul(n as u64)
    }

    /// Operations on `n` bodies, by the convention of 20 (f32) or 30 (f64) per
    /// interaction; at most `u64::MAX`.
    #[must_use]
    pub const fn flops<T: Real>(n: usize) -> u64 {
        Self::interactions(n).saturating_mul(T::FLOPS_PER_INTERACTION)
    }

    /// The bytes that have to move for `n` bodies at the least: each body read
    /// once, each acceleration written once. At most `u64::MAX`.
    #[must_use]
    pub const fn bytes<T: Real>(n: usize) -> u64 {
        (n as u64).saturating_mul((size_of::<Body<T>>() + size_of::<[T; 3]>()) as u64)
    }

    /// The largest sum of the masses' sizes for bodies of `T`.
    ///
    /// It keeps m / (|r|² + ε²)^(3/2), at most m / ε³, and the sum of all r s, at
    /// most 0.39 Σ|m| / ε², below half of the largest number.
    #[must_use]
    pub fn mass_limit<T: Real>(&self) -> f64 {
        // In this order no product leaves the range of f64 before its time.
        let scale = T::MAX / 4.0 * self.softening * self.softening * self.softening.min(1.0);
        scale.min(T::MAX)
    }

    /// Checks that gravity is defined for these bodies, and their accelerations
    /// finite.
    ///
    /// - There is at least one and at most [`MAX_BODIES`].
    /// - The softening is from [`Real::SHORTEST`] to [`Real::LONGEST`].
    /// - Coordinates are numbers of at most [`Real::LONGEST`] in size.
    /// - Masses are finite; their sizes add up to at most
    ///   [`mass_limit`](Self::mass_limit). They may be zero or negative.
    ///
    /// ```
    /// use halo_gpu::Error;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let gravity = Gravity::new(1.0)?;
    /// let at = |x, mass| Body { x, y: 0.0_f32, z: 0.0, mass };
    /// gravity.check(&[at(0.0, 1.0), at(1.0, -1.0)])?;
    ///
    /// let lost = gravity.check(&[at(0.0, 1.0), at(f32::NAN, 1.0)]);
    /// assert!(matches!(lost, Err(Error::InvalidElement { index: 1, .. })));
    /// let heavy = 0.6 * gravity.mass_limit::<f32>() as f32;
    /// gravity.check(&[at(0.0, heavy)])?;
    /// let heavy = gravity.check(&[at(0.0, heavy), at(1.0, heavy)]);
    /// assert!(matches!(heavy, Err(Error::InvalidElement { index: 1, .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`],
    /// [`Error::InvalidParameter`] for the softening, [`Error::InvalidElement`]
    /// with the index of the first body that breaks a rule.
    pub fn check<T: Real>(&self, bodies: &[Body<T>]) -> Result<(), Error> {
        check_count(bodies.len())?;
        self.softening_squared::<T>()?;
        let refuse = |what, index, given, required| {
            Err(Error::InvalidElement {
                operation: OPERATION,
                what,
                index,
                given,
                required,
            })
        };
        let limit = self.mass_limit::<T>();
        let mut total = 0.0;
        for (index, body) in bodies.iter().enumerate() {
            let coordinates = [
                ("the x coordinate of body", body.x),
                ("the y coordinate of body", body.y),
                ("the z coordinate of body", body.z),
            ];
            for (what, coordinate) in coordinates {
                let coordinate: f64 = coordinate.into();
                // Written so that NaN fails.
                if !(coordinate.abs() <= T::LONGEST) {
                    let required = format!("a number from {:e} to {:e}", -T::LONGEST, T::LONGEST);
                    return refuse(what, index, coordinate, required);
                }
            }
            let mass: f64 = body.mass.into();
            if !mass.is_finite() {
                return refuse(
                    "the mass of body",
                    index,
                    mass,
                    "a finite number".to_owned(),
                );
            }
            total += mass.abs();
            if !(total <= limit) {
                let required = format!(
                    "smaller: with softening {} the sizes of all masses may add up to {limit:e} in {}",
                    self.softening,
                    T::NAME
                );
                return refuse("the mass of body", index, mass, required);
            }
        }
        Ok(())
    }

    /// The acceleration `[x, y, z]` of each of `bodies`, in their order, computed on
    /// `device`. It is in the unit of the masses over that of the positions squared, the
    /// gravitational constant being 1.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Sun and earth in metres and seconds: masses times the gravitational constant.
    /// let bodies = [
    ///     Body { x: 0.0_f64, y: 0.0, z: 0.0, mass: 1.327e20 },
    ///     Body { x: 1.496e11, y: 0.0, z: 0.0, mass: 3.986e14 },
    /// ];
    /// let [_, earth] = Gravity::new(1e6)?.accelerations(&Device::cpu(), &bodies)?[..] else {
    ///     unreachable!("one for each body");
    /// };
    /// assert!((earth[0] + 5.93e-3).abs() < 1e-5); // m/s², towards the sun
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check) and [`apply`](Self::apply), and
    /// [`Error::OutOfMemory`].
    pub fn accelerations<T: Real>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<Vec<[T; 3]>, Error> {
        self.check(bodies)?;
        let bodies = device.upload(bodies)?;
        let mut accelerations = device.alloc_filled(bodies.len(), [T::nearest(f64::NAN); 3])?;
        self.apply(&bodies, &mut accelerations)?;
        accelerations.to_vec()
    }

    /// The acceleration of each of `bodies`, into `accelerations`, on the device
    /// of the buffers: by [`Variant::Symmetric`] from 8192 bodies on and by
    /// [`Variant::RegisterTile`] below or, on the CPU, by [`Port::Soa`].
    ///
    /// Both buffers have one element for each body; units are those of
    /// [`accelerations`](Self::accelerations). The two kernels need memory, which this
    /// allocates; a [`Solver`] keeps it for the next time.
    ///
    /// What the bodies are is not looked at, for they are on the device: with
    /// bodies that [`check`](Self::check) refuses, accelerations can be infinite
    /// or NaN.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::LengthMismatch`]
    /// and [`Error::DeviceMismatch`] for buffers that do not fit;
    /// [`Error::InvalidParameter`] for a softening that does not suit the type;
    /// and what a launch can fail with.
    pub fn apply<T: Real>(
        &self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        if bodies.device().kind() != DeviceKind::Cpu {
            return self.apply_with(gpu::default(bodies.len()), bodies, accelerations);
        }
        check_buffers(bodies, ACCELERATIONS, accelerations)?;
        let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        else {
            unreachable!("buffers of the CPU device are host memory");
        };
        self.apply_port(Port::Soa, bodies, accelerations)
    }

    /// The acceleration of each of `bodies` by the given kernel, into
    /// `accelerations`.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let bodies = device.upload(&[
    ///     Body { x: 0.0_f64, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ])?;
    /// for variant in [Variant::AosUnroll16, Variant::Shared] {
    ///     let mut accelerations = device.alloc_filled(2, [0.0; 3])?;
    ///     Gravity::new(1.0)?.apply_with(variant, &bodies, &mut accelerations)?;
    ///     assert_eq!(accelerations.to_vec()?, [[1.0; 3], [-2.0; 3]]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply); [`Error::NotLaunchable`] if the buffers are on
    /// the CPU device, which runs no kernels.
    pub fn apply_with<T: Real>(
        &self,
        variant: Variant,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        T::launch_entry(self, variant, bodies, accelerations)
    }

    /// The acceleration of each of `bodies` by the given CPU port, into
    /// `accelerations`, both in host memory.
    ///
    /// ```
    /// use halo_gpu::nbody::{Body, Gravity, Port};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = [
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ];
    /// for port in Port::ALL {
    ///     let mut accelerations = [[0.0; 3]; 2];
    ///     Gravity::new(1.0)?.apply_port(port, &bodies, &mut accelerations)?;
    ///     assert_eq!(accelerations, [[1.0; 3], [-2.0; 3]], "{port}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::LengthMismatch`],
    /// and [`Error::InvalidParameter`] for a softening that does not suit the type.
    pub fn apply_port<T: Real>(
        &self,
        port: Port,
        bodies: &[Body<T>],
        accelerations: &mut [[T; 3]],
    ) -> Result<(), Error> {
        check_lengths(bodies.len(), ACCELERATIONS, accelerations.len())?;
        let softening_squared = self.softening_squared::<T>()?;
        match port {
            Port::Aos => cpu::aos(bodies, softening_squared, accelerations),
            Port::Soa => cpu::soa(bodies, softening_squared, accelerations),
        }
        Ok(())
    }

    /// The potential energy `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`, computed in f64 on
    /// the CPU.
    ///
    /// Its negative gradient with respect to x_i is m_i a_i: with it and the
    /// kinetic energy, an integration can be checked.
    ///
    /// ```
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = [
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ];
    /// assert_eq!(Gravity::new(1.0)?.potential_energy(&bodies)?, -16.0 * 8.0 / 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check).
    pub fn potential_energy<T: Real>(&self, bodies: &[Body<T>]) -> Result<f64, Error> {
        self.check(bodies)?;
        Ok(cpu::potential_energy(
            bodies,
            self.softening * self.softening,
        ))
    }

    /// ε², rounded once.
    fn softening_squared<T: Real>(&self) -> Result<T, Error> {
        if !(T::SHORTEST..=T::LONGEST).contains(&self.softening) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the softening length",
                given: format!("{:?}", self.softening),
                required: format!(
                    "positive, from {:e} to {:e} in {} (without softening, bodies at one place \
                     attract each other infinitely)",
                    T::SHORTEST,
                    T::LONGEST,
                    T::NAME
                ),
            });
        }
        Ok(T::nearest(self.softening * self.softening))
    }
}

/// Accelerations of a given number of bodies on a given device, again and again.
///
/// It holds the memory in which [`Variant::RegisterTile`] and [`Variant::Symmetric`]
/// leave parts of the sums until a second kernel adds them up: a row of `n`
/// accelerations per part and, for the second, as many as half the number of groups
/// of 512 bodies; each at most [`DEFAULT_SCRATCH_BYTES`] (or one row, where that is
/// more), beyond which the work is done in rounds. The order of all additions is fixed, so that the same
/// bodies give the same bits every time on one device; [`Gravity::with_parts`] is
/// about several.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::nbody::{Body, Gravity, Solver};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let bodies = device.upload(&[
///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
/// ])?;
/// let mut accelerations = device.alloc_filled(2, [0.0_f32; 3])?;
/// let mut solver = Solver::new(&Gravity::new(1.0)?, &device, 2, None)?;
/// solver.apply(&bodies, &mut accelerations)?;
/// assert_eq!(accelerations.to_vec()?, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Solver<T: Real> {
    gravity: Gravity,
    variant: Variant,
    n: usize,
    scheme: gpu::Scheme,
    /// Rows of `n`, one per part.
    partials: Buffer<[T; 3]>,
    /// Rows of `n`, one per distance between groups.
    reactions: Buffer<[T; 3]>,
}

impl<T: Real> Solver<T> {
    /// For `n` bodies on `device`, by `variant` or, without one, by what
    /// [`Gravity::apply`] would take.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`] for the number of bodies,
    /// [`Error::InvalidParameter`] for a softening that does not suit the type,
    /// [`Error::OutOfMemory`].
    pub fn new(
        gravity: &Gravity,
        device: &Device,
        n: usize,
        variant: Option<Variant>,
    ) -> Result<Self, Error> {
        check_count(n)?;
        gravity.softening_squared::<T>()?;
        let variant = variant.unwrap_or(gpu::default(n));
        let scheme = match device.kind() {
            DeviceKind::Cpu => gpu::Scheme::Whole,
            _ => {
                let multiprocessors = device.properties().multiprocessors;
                let (parts, scratch) = (gravity.parts, gravity.scratch);
                gpu::Scheme::new::<T>(variant, n, multiprocessors, parts, scratch)
            }
        };
        let poison = [T::nearest(f64::NAN); 3];
        let [partials, reactions] = scheme.rows();
        Ok(Self {
            gravity: *gravity,
            variant,
            n,
            scheme,
            partials: device.alloc_filled(partials * n, poison)?,
            reactions: device.alloc_filled(reactions * n, poison)?,
        })
    }

    /// The acceleration of each of `bodies`, into `accelerations`. On the CPU device
    /// that is [`Gravity::apply`].
    ///
    /// # Errors
    ///
    /// As [`Gravity::apply`], and [`Error::LengthMismatch`] and
    /// [`Error::DeviceMismatch`] for other bodies than it was made for.
    pub fn apply(
        &mut self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        check_buffers(bodies, ACCELERATIONS, accelerations)?;
        if bodies.len() != self.n {
            return Err(Error::LengthMismatch {
                what: format!("{OPERATION}: bodies of a solver"),
                required: self.n,
                given: bodies.len(),
            });
        }
        self.partials.device().require("nbody: bodies", bodies)?;
        if self.scheme != gpu::Scheme::Whole {
            return T::launch_in_parts(self, bodies, accelerations);
        }
        if bodies.device().kind() == DeviceKind::Cpu {
            return self.gravity.apply(bodies, accelerations);
        }
        self.gravity.apply_with(self.variant, bodies, accelerations)
    }

    /// The kernel that it launches, on a device that runs kernels.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }
}

/// That there are bodies, and no more than can be indexed.
fn check_count(n: usize) -> Result<(), Error> {
    if n == 0 {
        return Err(Error::EmptyInput {
            operation: OPERATION,
        });
    }
    if n > MAX_BODIES {
        return Err(Error::IndexOverflow {
            what: format!("{OPERATION}: the number of bodies"),
            given: n.to_string(),
            limit: MAX_BODIES as u64,
        });
    }
    Ok(())
}

/// That there are as many accelerations as bodies, and both not too many.
fn check_lengths(bodies: usize, what: &str, given: usize) -> Result<(), Error> {
    check_count(bodies)?;
    if bodies == given {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        what: format!("{OPERATION}: {what}"),
        required: bodies,
        given,
    })
}

/// Whether there is a vector for each body, on the device of the bodies.
fn check_buffers<T: Real>(
    bodies: &Buffer<Body<T>>,
    what: &str,
    vectors: &Buffer<[T; 3]>,
) -> Result<(), Error> {
    check_values(bodies, what, vectors)
}

/// Whether there is a value for each body, on the device of the bodies.
fn check_values<T: Real, V: Element>(
    bodies: &Buffer<Body<T>>,
    what: &str,
    values: &Buffer<V>,
) -> Result<(), Error> {
    check_lengths(bodies.len(), what, values.len())?;
    let what = format!("{OPERATION}: {what}");
    bodies.device().require(&what, values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bodies_than_kernels_can_count_are_refused() {
        // No machine of ours holds that many, so this is about the numbers alone.
        assert!(check_count(MAX_BODIES).is_ok());
        let error = check_count(MAX_BODIES + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "nbody: the number of bodies is 2147483649, but at most 2147483648 can be indexed here"
        );
        // The index of the last thread of the last block fits u32, whatever the block.
        assert!(u32::try_from(MAX_BODIES + 1024).is_ok());
    }

    #[test]
    fn limits_of_length_are_where_they_are_said_to_be() {
        fn check<T: Real>(min_normal: f64) {
            assert_eq!(T::SHORTEST * T::SHORTEST, min_normal);
            assert_eq!(T::LONGEST.log2().fract(), 0.0);
            let largest = 13.0 * T::LONGEST * T::LONGEST;
            assert!(1.0 / largest >= min_normal, "{}", T::NAME);
            // Not by far: at twice the length the reciprocal is subnormal.
            assert!(1.0 / (4.0 * largest) < min_normal, "{}", T::NAME);
        }
        check::<f32>(f32::MIN_POSITIVE.into());
        check::<f64>(f64::MIN_POSITIVE);
    }
}
