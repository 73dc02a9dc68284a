//! Plans gravity for a number of bodies on a device: the kernel, the division into parts, and their
//! memory.

use super::check::{self, ACCELERATIONS, ENERGY, POTENTIALS};
use super::gpu::{self, Launch};
use super::{Body, Gravity, Variant, cpu};
use crate::scalar::Scalar;
use crate::single_pass::{Operation, SinglePass, read};
use crate::{Buffer, Device, DeviceKind, Error};
use gpu_kernels::nbody::SYMMETRIC_TILES;
use gpu_kernels::nbody::parts::{Round, TileParts, distances, groups};

/// The number of bodies from which it is faster to compute each pair once, measured on an H200.
/// With fewer bodies there are too few groups to fill the device.
const SYMMETRIC_FROM: usize = 8192;

/// The default variant.
const fn default_for(n: usize) -> Variant {
    if n >= SYMMETRIC_FROM {
        Variant::Symmetric
    } else {
        Variant::RegisterTile
    }
}

/// How a [`Plan`] divides its sums among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    /// One thread computes a whole sum.
    Whole,
    /// [`Variant::RegisterTile`].
    Tiles(TileParts),
    /// [`Variant::Symmetric`]: the distances per launch, and their parts.
    Pairs { distances: u32, parts: u32 },
}

/// The most rows of `n` that fit in an array of parts.
pub(super) fn rows_max<T: Scalar>(gravity: &Gravity, n: usize) -> usize {
    (gravity.scratch / (n * size_of::<[T; 3]>())).max(1)
}

impl Scheme {
    /// The scheme for `n` bodies of `T`, from 1 to `MAX_BODIES`, on a device with this many
    /// multiprocessors.
    fn new<T: Scalar>(gravity: &Gravity, variant: Variant, n: usize, multiprocessors: u32) -> Self {
        let rows_max = rows_max::<T>(gravity, n);
        match variant {
            Variant::RegisterTile => {
                // Four waves of the five blocks that a multiprocessor holds, so that the last,
                // partial wave costs little.
                let wanted = gravity.parts.map_or_else(
                    || (20 * multiprocessors as usize).div_ceil(TileParts::blocks(n)),
                    |parts| parts as usize,
                );
                Self::Tiles(TileParts::new(n, wanted.min(rows_max)))
            }
            Variant::Symmetric => {
                let rows_max = u32::try_from(rows_max).unwrap_or(u32::MAX);
                let distances = rows_max.min(distances(n));
                // Blocks of at most 16 tiles, because a wave of larger blocks ends unevenly, and of
                // at least the tiles of a group, because each block has a row that must be added.
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

    /// The numbers of rows of `n` accelerations in the two arrays.
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

impl Gravity {
    /// A plan for `n` bodies of `T` on this device, with the kernel for their number:
    /// [`Variant::Symmetric`] from 8192 on, [`Variant::RegisterTile`] below; on the CPU with its
    /// port.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`] and [`Error::IndexOverflow`] unless the number of bodies is from 1 to
    /// 2³¹; [`Error::InvalidParameter`] for a softening that the type does not allow;
    /// [`Error::OutOfMemory`].
    pub fn plan<T: Scalar>(&self, device: &Device, n: usize) -> Result<Plan<T>, Error> {
        Plan::new(self, device, n, default_for(n))
    }

    /// A plan that computes accelerations with the kernel `variant`.
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
    ///     let mut plan = Gravity::new(1.0)?.plan_with(&device, 2, variant)?;
    ///     plan.accelerations(&bodies, &mut accelerations)?;
    ///     assert_eq!(accelerations.to_vec()?, [[1.0; 3], [-2.0; 3]]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan), and [`Error::NotLaunchable`] on the CPU device, which cannot
    /// launch kernels.
    pub fn plan_with<T: Scalar>(
        &self,
        device: &Device,
        n: usize,
        variant: Variant,
    ) -> Result<Plan<T>, Error> {
        if device.kind() == DeviceKind::Cpu {
            let kernel = variant.entry::<T>().name;
            return Err(Error::NotLaunchable { kernel });
        }
        Plan::new(self, device, n, variant)
    }
}

/// Computes the gravity of a fixed number of bodies on one device, any number of times.
///
/// It holds the memory for the partial sums of [`Variant::RegisterTile`] and
/// [`Variant::Symmetric`], which a second kernel adds: one row of `n` accelerations per part and,
/// for the second variant, as many more rows as half the number of groups of 512 bodies. Each of
/// the two arrays has at most 1 GiB ([`Gravity::with_scratch_bytes`]), but at least one row; larger
/// problems are computed in rounds. The order of all additions is fixed, so the same bodies always
/// give the same bits on one device; for several devices see [`Gravity::with_parts`].
///
/// All buffers have one element for each body; for units see the [module](super#units-and-shapes).
/// On a CUDA device calls enqueue their work and do not wait, except the call that returns a
/// number. The bodies are on the device and are not checked: for bodies that [`Gravity::check`]
/// refuses, results can be infinite or NaN.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::nbody::{Body, Gravity};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// for device in [Device::cpu(), Device::emulator()] {
///     let bodies = device.upload(&[
///         Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
///         Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
///     ])?;
///     let mut plan = Gravity::new(1.0)?.plan(&device, 2)?;
///     let mut accelerations = device.alloc_filled(2, [0.0_f32; 3])?;
///     plan.accelerations(&bodies, &mut accelerations)?;
///     assert_eq!(accelerations.to_vec()?, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
///
///     let mut potentials = device.alloc_filled(2, 0.0_f64)?;
///     plan.potentials(&bodies, &mut potentials)?;
///     assert_eq!(potentials.to_vec()?, [-4.0, -8.0]);
///     // (16 · -4 + 8 · -8) / 2
///     assert_eq!(plan.potential_energy(&bodies)?, -64.0);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Plan<T: Scalar> {
    gravity: Gravity,
    device: Device,
    variant: Variant,
    n: usize,
    scheme: Scheme,
    /// Rows of `n`, one per part.
    partials: Buffer<[T; 3]>,
    /// Rows of `n`, one per distance between groups.
    reactions: Buffer<[T; 3]>,
    /// The workspace for energies, allocated by the first call that needs it.
    energies: Option<Energies>,
}

/// The workspace for the sum of a potential energy.
#[derive(Debug)]
struct Energies {
    /// The share of each body.
    shares: Buffer<f64>,
    sums: SinglePass<f64>,
    total: Option<Buffer<f64>>,
}

impl<T: Scalar> Plan<T> {
    fn new(gravity: &Gravity, device: &Device, n: usize, variant: Variant) -> Result<Self, Error> {
        check::count(n)?;
        gravity.softening_squared::<T>()?;
        let scheme = match device.kind() {
            DeviceKind::Cpu => Scheme::Whole,
            _ => Scheme::new::<T>(gravity, variant, n, device.properties().multiprocessors),
        };
        let poison = [T::nearest(f64::NAN); 3];
        let [partials, reactions] = scheme.rows(n);
        Ok(Self {
            gravity: *gravity,
            device: device.clone(),
            variant,
            n,
            scheme,
            partials: device.alloc_filled(partials * n, poison)?,
            reactions: device.alloc_filled(reactions * n, poison)?,
            energies: None,
        })
    }

    /// The device of the plan.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel for accelerations; `None` on the CPU, where the port computes them.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        (self.device.kind() != DeviceKind::Cpu).then_some(self.variant)
    }

    /// Writes the acceleration `[x, y, z]` of each of `bodies` to `accelerations`.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit the
    /// plan, and the errors of a launch.
    pub fn accelerations(
        &mut self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        self.check(bodies, ACCELERATIONS, accelerations)?;
        if let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        {
            let softening_squared = self.gravity.softening_squared()?;
            cpu::soa(bodies, softening_squared, accelerations);
            return Ok(());
        }
        self.launch(bodies, accelerations)
    }

    /// Writes the potential of each of `bodies`, `φ_i = -Σ_{j≠i} m_j / √(|r|² + ε²)`, in f64, to
    /// `potentials`.
    ///
    /// A body does not contribute to its own potential; another body at the same position does, and
    /// adds m / ε. The CPU computes everything in f64. Kernels compute the terms, and the sums over
    /// a tile of [`block`](Gravity::block) bodies, in `T`, and add the tiles in f64. The error of a
    /// potential is at most `(14 + block) u Σ |m_j| / √(|r|² + ε²)` with the unit roundoff u of
    /// `T`, for any number of bodies.
    ///
    /// # Errors
    ///
    /// As for [`accelerations`](Self::accelerations), and [`Error::HostOutOfMemory`] on the CPU,
    /// which converts the bodies to f64.
    pub fn potentials(
        &mut self,
        bodies: &Buffer<Body<T>>,
        potentials: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        self.check(bodies, POTENTIALS, potentials)?;
        potentials_of_all(&self.gravity, false, bodies, potentials)
    }

    /// The potential energy `Σ m_i φ_i / 2`: n² interactions and the sum of n numbers, in an order
    /// that depends only on n. Waits for the result.
    ///
    /// # Errors
    ///
    /// As for [`potentials`](Self::potentials), and [`Error::OutOfMemory`] in the first call, which
    /// allocates 8 bytes for each body.
    pub fn potential_energy(&mut self, bodies: &Buffer<Body<T>>) -> Result<f64, Error> {
        let (gravity, device) = (self.gravity, self.device.clone());
        let Energies {
            shares,
            sums,
            total,
        } = self.energies(bodies)?;
        shares_of_energy(&gravity, bodies, shares)?;
        read(total, &device, |total| {
            sums.elements(Operation::Sum, shares, total)
        })
    }

    /// Writes the [`potential_energy`](Self::potential_energy) to `result`, a buffer of one
    /// element, without waiting.
    ///
    /// # Errors
    ///
    /// As for [`potential_energy`](Self::potential_energy); [`Error::LengthMismatch`] and
    /// [`Error::DeviceMismatch`] for a `result` that does not fit.
    pub fn potential_energy_into(
        &mut self,
        bodies: &Buffer<Body<T>>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        check::lengths(1, ENERGY, result.len())?;
        self.device.require(ENERGY, result)?;
        let gravity = self.gravity;
        let Energies { shares, sums, .. } = self.energies(bodies)?;
        shares_of_energy(&gravity, bodies, shares)?;
        sums.elements(Operation::Sum, shares, result)
    }

    /// The workspace for energies, if the bodies fit.
    fn energies(&mut self, bodies: &Buffer<Body<T>>) -> Result<&mut Energies, Error> {
        self.check_bodies(bodies)?;
        let energies = match self.energies.take() {
            Some(energies) => energies,
            None => {
                let mut sums = SinglePass::new(&self.device);
                sums.reserve(self.n)?;
                Energies {
                    shares: self.device.alloc_filled(self.n, f64::NAN)?,
                    sums,
                    total: None,
                }
            }
        };
        Ok(self.energies.insert(energies))
    }

    /// Checks that the number of bodies is that of the plan, and that they are on its device.
    fn check_bodies(&self, bodies: &Buffer<Body<T>>) -> Result<(), Error> {
        check::lengths(self.n, "nbody: bodies", bodies.len())?;
        self.device.require("nbody: bodies", bodies)
    }

    /// Checks the bodies, and that there is a value for each of them.
    fn check<V: crate::Element>(
        &self,
        bodies: &Buffer<Body<T>>,
        what: &'static str,
        values: &Buffer<V>,
    ) -> Result<(), Error> {
        self.check_bodies(bodies)?;
        check::values(bodies, what, values)
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
                tiles: parts.all(),
                softening_squared,
                bodies,
                partials: accelerations,
            }
            .launch(),
            Scheme::Tiles(parts) => {
                let tiles = parts.all();
                Launch::Tiles {
                    tiles,
                    softening_squared,
                    bodies,
                    partials: &mut self.partials,
                }
                .launch()?;
                Launch::Sum {
                    rows: tiles.rows(),
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
}

/// Interactions in f32, with their sums in f64.
impl Plan<f32> {
    /// Writes the acceleration of each of `bodies` in mixed precision to `accelerations`.
    ///
    /// The sum over [`block`](Gravity::block) bodies (128 on the CPU) is computed in f32 and added
    /// to a total in f64. An acceleration in f32 has n roundings of its growing sum; this one has
    /// as many as a tile has bodies. It costs almost nothing and is useful for large n. The error
    /// of single interactions remains, about 10⁻⁷ of the largest of them. The total error is at
    /// most `(21 + block) u Σ |r s|` with u = 2⁻²⁴, for any number of bodies. (Adding block sums of
    /// low precision in high precision: P. Blanchard, N. J. Higham and T. Mary, "A class of fast
    /// and accurate summation algorithms", SIAM J. Sci. Comput. 42 (2020).)
    ///
    /// Positions are f32, and so are their differences: bodies that are far from the origin and
    /// close to each other lose digits. All [variants](Self::variant) use the same kernel for it.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let bodies = device.upload(&[
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ])?;
    /// let mut accelerations = device.alloc_filled(2, [0.0_f64; 3])?;
    /// let mut plan = Gravity::new(1.0)?.plan(&device, 2)?;
    /// plan.accelerations_mixed(&bodies, &mut accelerations)?;
    /// assert_eq!(accelerations.to_vec()?, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`accelerations`](Self::accelerations).
    pub fn accelerations_mixed(
        &mut self,
        bodies: &Buffer<Body<f32>>,
        accelerations: &mut Buffer<[f64; 3]>,
    ) -> Result<(), Error> {
        self.check(bodies, ACCELERATIONS, accelerations)?;
        let softening_squared = self.gravity.softening_squared::<f32>()?;
        if let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        {
            cpu::mixed(bodies, softening_squared, accelerations);
            return Ok(());
        }
        gpu::mixed(
            self.gravity.block(),
            softening_squared,
            bodies,
            accelerations,
        )
    }
}

/// The potentials or, `weighted` and by a kernel, each body's share of the energy.
fn potentials_of_all<T: Scalar>(
    gravity: &Gravity,
    weighted: bool,
    bodies: &Buffer<Body<T>>,
    potentials: &mut Buffer<f64>,
) -> Result<(), Error> {
    let softening_squared = gravity.softening_squared()?;
    if let (Some(bodies), Some(potentials)) =
        (bodies.as_host_slice(), potentials.as_host_mut_slice())
    {
        let softening = gravity.softening();
        return cpu::potentials(bodies, softening * softening, potentials);
    }
    Launch::Potentials {
        weighted,
        block: gravity.block(),
        softening_squared,
        bodies,
        potentials,
    }
    .launch()
}

/// `m_i φ_i / 2` for each body.
fn shares_of_energy<T: Scalar>(
    gravity: &Gravity,
    bodies: &Buffer<Body<T>>,
    shares: &mut Buffer<f64>,
) -> Result<(), Error> {
    potentials_of_all(gravity, true, bodies, shares)?;
    if let (Some(bodies), Some(shares)) = (bodies.as_host_slice(), shares.as_host_mut_slice()) {
        for (share, body) in shares.iter_mut().zip(bodies) {
            *share *= 0.5 * body.mass.into();
        }
    }
    Ok(())
}
