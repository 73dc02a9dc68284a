//! A plan for a given number of bodies on a given device: which kernel, in which parts,
//! and the memory for them.

use super::check::{self, ACCELERATIONS};
use super::gpu::Launch;
use super::{Body, Gravity, Variant, cpu};
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};
use gpu_kernels::nbody::SYMMETRIC_TILES;
use gpu_kernels::nbody::parts::{Round, TileParts, distances, groups};

/// From how many bodies on taking each pair once is faster: measured on an H200.
/// Below, there are too few groups to fill it.
const SYMMETRIC_FROM: usize = 8192;

/// What the library computes with where it is not told.
pub(super) const fn default_for(n: usize) -> Variant {
    if n >= SYMMETRIC_FROM {
        Variant::Symmetric
    } else {
        Variant::RegisterTile
    }
}

/// How the sums of a [`Solver`] are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// One thread does it all.
    Whole,
    /// [`Variant::RegisterTile`].
    Tiles(TileParts),
    /// [`Variant::Symmetric`]: so many distances a launch, in so many parts.
    Pairs { distances: u32, parts: u32 },
}

impl Scheme {
    /// For `n` bodies of `T`, from 1 to `MAX_BODIES`, on a device of so many
    /// multiprocessors.
    fn new<T: Scalar>(gravity: &Gravity, variant: Variant, n: usize, multiprocessors: u32) -> Self {
        // The most rows of `n` in either array.
        let rows_max = (gravity.scratch / (n * size_of::<[T; 3]>())).max(1);
        match variant {
            Variant::RegisterTile => {
                // Four waves of the five blocks that a multiprocessor holds, so that
                // the last, which is not full, costs little.
                let wanted = gravity.parts.map_or_else(
                    || (20 * multiprocessors as usize).div_ceil(TileParts::blocks(n)),
                    |parts| parts as usize,
                );
                Self::Tiles(TileParts::new(n, wanted.min(rows_max)))
            }
            Variant::Symmetric => {
                let rows_max = u32::try_from(rows_max).unwrap_or(u32::MAX);
                let distances = rows_max.min(distances(n));
                // Blocks of at most 16 tiles, as a wave of large ones ends raggedly;
                // and of at least a group's tiles, as each has a row to be added up.
                let wanted = gravity.parts.unwrap_or_else(|| {
                    let waves = (24 * multiprocessors).div_ceil(groups(n));
                    let tiles = distances * SYMMETRIC_TILES;
                    waves.clamp(tiles.div_ceil(16), distances)
                });
                Self::Pairs {
                    distances,
                    parts: wanted.min(rows_max),
                }
            }
            _ => Self::Whole,
        }
    }

    /// Rows of `n` accelerations in the two arrays.
    fn rows(self, n: usize) -> [usize; 2] {
        match self {
            Self::Whole => [0, 0],
            Self::Tiles(parts) => [parts.parts() as usize, 0],
            Self::Pairs { distances, parts } => {
                let rounds = Round::all(n, distances, parts);
                rounds.fold([0, 0], |[parts, reactions], round| {
                    [
                        parts.max(round.parts() as usize),
                        reactions.max(round.reactions() as usize),
                    ]
                })
            }
        }
    }
}

/// Accelerations of a given number of bodies on a given device, again and again.
///
/// It holds the memory in which [`Variant::RegisterTile`] and [`Variant::Symmetric`]
/// leave parts of the sums until a second kernel adds them up: a row of `n`
/// accelerations per part and, for the second, as many as half the number of groups
/// of 512 bodies; each at most [`DEFAULT_SCRATCH_BYTES`](super::DEFAULT_SCRATCH_BYTES) (or one row, where that is
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
pub struct Solver<T: Scalar> {
    gravity: Gravity,
    variant: Variant,
    n: usize,
    scheme: Scheme,
    /// Rows of `n`, one per part.
    partials: Buffer<[T; 3]>,
    /// Rows of `n`, one per distance between groups.
    reactions: Buffer<[T; 3]>,
}

impl<T: Scalar> Solver<T> {
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
        check::count(n)?;
        gravity.softening_squared::<T>()?;
        let variant = variant.unwrap_or(default_for(n));
        let scheme = match device.kind() {
            DeviceKind::Cpu => Scheme::Whole,
            _ => Scheme::new::<T>(gravity, variant, n, device.properties().multiprocessors),
        };
        let poison = [T::nearest(f64::NAN); 3];
        let [partials, reactions] = scheme.rows(n);
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
        check::values(bodies, ACCELERATIONS, accelerations)?;
        if bodies.len() != self.n {
            return Err(Error::LengthMismatch {
                what: "nbody: bodies of a solver".to_owned(),
                required: self.n,
                given: bodies.len(),
            });
        }
        self.partials.device().require("nbody: bodies", bodies)?;
        if let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        {
            let softening_squared = self.gravity.softening_squared()?;
            cpu::soa(bodies, softening_squared, accelerations);
            return Ok(());
        }
        self.launch(bodies, accelerations)
    }

    fn launch(
        &mut self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        let softening_squared = self.gravity.softening_squared()?;
        match self.scheme {
            Scheme::Whole => Launch::Whole {
                variant: self.variant,
                block: self.gravity.block(),
                softening_squared,
                bodies,
                accelerations,
            }
            .launch(),
            Scheme::Tiles(parts) if parts.parts() == 1 => Launch::Tiles {
                parts,
                softening_squared,
                bodies,
                partials: accelerations,
            }
            .launch(),
            Scheme::Tiles(parts) => {
                Launch::Tiles {
                    parts,
                    softening_squared,
                    bodies,
                    partials: &mut self.partials,
                }
                .launch()?;
                Launch::Sum {
                    rows: parts.rows(),
                    partials: &self.partials,
                    reactions: &self.partials,
                    accelerations,
                }
                .launch()
            }
            Scheme::Pairs { distances, parts } => {
                for round in Round::all(self.n, distances, parts) {
                    Launch::Pairs {
                        round,
                        softening_squared,
                        bodies,
                        partials: &mut self.partials,
                        reactions: &mut self.reactions,
                    }
                    .launch()?;
                    Launch::Sum {
                        rows: round.rows(),
                        partials: &self.partials,
                        reactions: &self.reactions,
                        accelerations: &mut *accelerations,
                    }
                    .launch()?;
                }
                Ok(())
            }
        }
    }

    /// The kernel that it launches, on a device that runs kernels.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }
}
