//! Describes the gravity of n bodies: `Gravity`, with the softening length and the options of a
//! plan; checks bodies.

use super::Body;
use super::check::{self, OPERATION};
use crate::Error;
use crate::error::require_finite;
use crate::scalar::Scalar;
use gpu_kernels::nbody::geometry;
use gpu_kernels::nbody::geometry::DEFAULT_BLOCK;
use gpu_kernels::registry::{Cost, Problem};

/// Gravity between all pairs of bodies, with a softening length.
///
/// ```
/// use halo_gpu::nbody::Gravity;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // 0.05 in the unit of the positions; blocks of 64 threads, sums in 4 parts, and at most
/// // 64 MiB for each of the two arrays that those are kept in.
/// let gravity = Gravity::new(0.05)?.with_block(64)?.with_parts(4)?.with_scratch_bytes(64 << 20);
/// assert_eq!((gravity.softening(), gravity.block()), (0.05, 64));
/// let cost = gravity.cost::<f32>(1000);
/// assert_eq!((cost.bytes, cost.flops), (1000 * (16 + 12), 20_000_000));
/// assert!(gravity.with_block(48).is_err() && gravity.with_parts(0).is_err());
/// assert!(Gravity::new(0.0).is_err()); // without softening there is no answer at r = 0
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gravity {
    softening: f64,
    block: u32,
    pub(super) parts: Option<u32>,
    pub(super) scratch: usize,
}

/// The default limit of [`Gravity::with_scratch_bytes`], in bytes.
const DEFAULT_SCRATCH_BYTES: usize = 1 << 30;

impl Gravity {
    /// Gravity with the softening length ε, in the unit of the positions.
    ///
    /// Which lengths are allowed depends on the type of the bodies and is checked with them: from
    /// [`Range::SHORTEST`](super::Range::SHORTEST) to [`Range::LONGEST`](super::Range::LONGEST).
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`], and [`Error::InvalidParameter`] for a softening length that no type
    /// allows, such as zero.
    pub fn new(softening: f64) -> Result<Self, Error> {
        require_finite(OPERATION, "the softening length", softening)?;
        let gravity = Self {
            softening,
            block: DEFAULT_BLOCK,
            parts: None,
            scratch: DEFAULT_SCRATCH_BYTES,
        };
        gravity.softening_squared::<f64>()?;
        Ok(gravity)
    }

    /// The same gravity, with kernels in blocks of `block` threads.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is a multiple of 32 from 32 to 1024.
    pub fn with_block(mut self, block: u32) -> Result<Self, Error> {
        check::block(block)?;
        self.block = block;
        Ok(self)
    }

    /// The same gravity, where [`Variant::RegisterTile`](super::Variant::RegisterTile) and
    /// [`Variant::Symmetric`](super::Variant::Symmetric) sum in `parts` parts, or as many as the
    /// number of bodies and the memory allow.
    ///
    /// By default the number depends on the numbers of bodies and of multiprocessors, so that a
    /// large device is filled and a small one has little overhead. It determines the order of
    /// additions, and therefore the last digits: set it to get the same digits on devices of
    /// different sizes.
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

    /// The same gravity, with at most `bytes` bytes in each of the two arrays of a
    /// [`Plan`](super::Plan), but at least one row. With less memory the work takes more rounds or
    /// fewer parts, and sums are added in another order.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::problem::{Cluster, Reference};
    /// use halo_gpu::nbody::{Gravity, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = Cluster::<f32>::plummer(600, 1)?.bodies;
    /// let device = Device::emulator();
    /// let stars = device.upload(&bodies)?;
    /// let mut accelerations = device.alloc_filled(600, [0.0; 3])?;
    ///
    /// let gravity = Gravity::new(0.05)?.with_scratch_bytes(0); // one row, and as many rounds
    /// let mut plan = gravity.plan_with(&device, 600, Variant::Symmetric)?;
    /// plan.accelerations(&stars, &mut accelerations)?;
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

    /// Threads per block of the textbook kernels; the tile of
    /// [`Variant::Shared`](super::Variant::Shared) holds as many bodies.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// The least cost of the accelerations of `n` bodies: each body is read once and each
    /// acceleration written once; by convention each of the n² interactions counts as 20 operations
    /// in f32 and 30 in f64.
    #[must_use]
    pub const fn cost<T: Scalar>(&self, n: usize) -> Cost {
        geometry::accelerations::<T>(&Problem::line(n))
    }

    /// The largest allowed sum of the absolute masses for bodies of `T`.
    ///
    /// Under this limit m / (|r|² + ε²)^(3/2), at most m / ε³, and the sum of all r s, at most 0.39
    /// Σ|m| / ε², stay below half of the largest number.
    #[must_use]
    pub fn mass_limit<T: Scalar>(&self) -> f64 {
        // In this order no intermediate product overflows or underflows unless the result does.
        let scale = T::MAX / 4.0 * self.softening * self.softening * self.softening.min(1.0);
        scale.min(T::MAX)
    }

    /// Checks that gravity is defined for these bodies, and that their accelerations are finite.
    ///
    /// - There are at least one and at most [`MAX_BODIES`](super::MAX_BODIES) bodies.
    /// - The softening is from [`Range::SHORTEST`](super::Range::SHORTEST) to
    ///   [`Range::LONGEST`](super::Range::LONGEST).
    /// - Coordinates are numbers with an absolute value of at most
    ///   [`Range::LONGEST`](super::Range::LONGEST).
    /// - Masses are finite, and their absolute values add up to at most
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
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::InvalidParameter`] for the
    /// softening, [`Error::InvalidElement`] with the index of the first body that violates a rule.
    pub fn check<T: Scalar>(&self, bodies: &[Body<T>]) -> Result<(), Error> {
        check::count(bodies.len())?;
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

    /// ε², rounded once.
    pub(super) fn softening_squared<T: Scalar>(&self) -> Result<T, Error> {
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
