//! Launches of the kernels, on a CUDA device or on the emulator.

use super::energy::POTENTIALS;
use super::leapfrog::VELOCITIES;
use super::{ACCELERATIONS, Body, Gravity, Real, Solver, Variant, check_buffers, check_values};
use crate::{Buffer, Device, DeviceKind, Error, LaunchConfig, blocks_for, launch};
use cuda_std::host::Kernel;
use gpu_kernels::nbody::{
    REGISTER_BLOCK, REGISTER_BODIES, SYMMETRIC_BLOCK, SYMMETRIC_GROUP, SYMMETRIC_TILES, aos::*,
    kick_drift::*, mixed::*, potential::*, register_tile::*, shared::*, sum::*, symmetric::*,
};

/// From how many bodies on taking each pair once is faster: measured on an H200.
/// Below, there are too few groups to fill it.
const SYMMETRIC_FROM: usize = 8192;

/// What the library computes with where it is not told.
pub(super) const fn default(n: usize) -> Variant {
    if n >= SYMMETRIC_FROM {
        Variant::Symmetric
    } else {
        Variant::RegisterTile
    }
}

/// Threads per block of the kernel that adds up parts.
const SUM_BLOCK: u32 = 256;

/// How the sums of a [`Solver`] are dealt out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// One thread does it all.
    Whole,
    /// [`Variant::RegisterTile`]: in parts of so many bodies.
    Parts { per_part: u32, parts: u32 },
    /// [`Variant::Symmetric`]: so many distances a launch, in parts of so many tiles.
    Pairs { distances: u32, per_part: u32 },
}

/// The number of groups of [`Variant::Symmetric`].
fn groups(n: usize) -> u32 {
    // At most 2^22.
    n.div_ceil(SYMMETRIC_GROUP as usize) as u32
}

impl Scheme {
    /// For `n` bodies of `T`, from 1 to `MAX_BODIES`, on a device of so many
    /// multiprocessors; `parts`: what the caller wants, if anything; `scratch`: the
    /// most bytes of each array.
    pub(super) fn new<T: Real>(
        variant: Variant,
        n: usize,
        multiprocessors: u32,
        parts: Option<u32>,
        scratch: usize,
    ) -> Self {
        let row = n * size_of::<[T; 3]>();
        let rows_max = (scratch / row).max(1);
        match variant {
            Variant::RegisterTile => {
                let tile = REGISTER_BLOCK as usize;
                let blocks = n.div_ceil(tile * REGISTER_BODIES);
                // Four waves of the five blocks that a multiprocessor holds, so that
                // the last, which is not full, costs little.
                let wanted = parts.map_or_else(
                    || (20 * multiprocessors as usize).div_ceil(blocks),
                    |parts| parts as usize,
                );
                let tiles = n.div_ceil(tile);
                // 65535 blocks along y are the most there can be.
                let parts = wanted.clamp(1, tiles.min(rows_max).min(65_535));
                let per_part = tiles.div_ceil(parts) * tile;
                // At most 2^31 and a tile.
                Self::Parts {
                    per_part: per_part as u32,
                    parts: n.div_ceil(per_part) as u32,
                }
            }
            Variant::Symmetric => {
                let groups = groups(n);
                let all = groups / 2 + 1;
                // At most 2^21 + 1.
                let distances = (rows_max as u64).clamp(1, u64::from(all)) as u32;
                let tiles = distances * SYMMETRIC_TILES;
                // Blocks of at most 16 tiles, as a wave of large ones ends raggedly;
                // and of at least a group's tiles, as each has a row to be added up.
                let wanted = parts.unwrap_or_else(|| {
                    let waves = (24 * multiprocessors).div_ceil(groups);
                    waves.clamp(tiles.div_ceil(16), distances)
                });
                let parts = wanted
                    .clamp(1, tiles)
                    .min(u32::try_from(rows_max).unwrap_or(u32::MAX))
                    .min(65_535);
                Self::Pairs {
                    distances,
                    per_part: tiles.div_ceil(parts),
                }
            }
            _ => Self::Whole,
        }
    }

    /// Rows of `n` accelerations in the two arrays.
    pub(super) const fn rows(self) -> [usize; 2] {
        match self {
            Self::Whole => [0, 0],
            Self::Parts { parts, .. } => [parts as usize, 0],
            Self::Pairs {
                distances,
                per_part,
            } => [
                (distances * SYMMETRIC_TILES).div_ceil(per_part) as usize,
                distances as usize,
            ],
        }
    }
}

/// The kernels for one type.
pub trait Entries: Sized {
    /// The entry point of `variant`.
    fn entry_name(variant: Variant) -> &'static str;

    /// The acceleration of each of `bodies` by `variant`, into `accelerations`.
    ///
    /// As [`Gravity::apply_with`]: it checks what the launch relies on itself,
    /// since whoever can name [`Real`] can call this.
    fn launch_entry(
        gravity: &Gravity,
        variant: Variant,
        bodies: &Buffer<Body<Self>>,
        accelerations: &mut Buffer<[Self; 3]>,
    ) -> Result<(), Error>
    where
        Self: Real;

    /// As [`launch_entry`](Self::launch_entry), in the arrays of `solver`, for a
    /// variant that leaves parts.
    fn launch_in_parts(
        solver: &mut Solver<Self>,
        bodies: &Buffer<Body<Self>>,
        accelerations: &mut Buffer<[Self; 3]>,
    ) -> Result<(), Error>
    where
        Self: Real;

    /// The entry point of potentials.
    const POTENTIAL: &'static str;

    /// The potential of each body or, `weighted`, its share of the energy; not on the
    /// CPU. Checks what the launch relies on.
    fn launch_potential(
        gravity: &Gravity,
        weighted: bool,
        bodies: &Buffer<Body<Self>>,
        potentials: &mut Buffer<f64>,
    ) -> Result<(), Error>
    where
        Self: Real;

    /// Kicks for the first time and lets drift for the second; not on the CPU.
    /// Checks what the launch relies on.
    fn launch_kick_drift(
        accelerations: &Buffer<[Self; 3]>,
        times: [Self; 2],
        velocities: &mut Buffer<[Self; 3]>,
        bodies: &mut Buffer<Body<Self>>,
    ) -> Result<(), Error>
    where
        Self: Real;
}

/// Launches `nbody_mixed_f32`; not on the CPU. Checks what the launch relies on.
pub(super) fn launch_mixed(
    gravity: &Gravity,
    bodies: &Buffer<Body<f32>>,
    accelerations: &mut Buffer<[f64; 3]>,
) -> Result<(), Error> {
    check_values(bodies, ACCELERATIONS, accelerations)?;
    let softening_squared = gravity.softening_squared::<f32>()?;
    let (device, n) = (bodies.device().clone(), bodies.len());
    let config = tiled::<f32>(nbody_mixed_f32::NAME, n, gravity.block())?;
    // At most MAX_BODIES.
    let args = nbody_mixed_f32::args(bodies, n as u32, softening_squared, accelerations);
    // SAFETY: `check_values` found n elements in both, from 1 to MAX_BODIES, and both on
    // `device`; they are distinct, since accelerations is borrowed mutably. The grid
    // extends along x and has n threads and less than a block more, below 2^32; the block
    // of a Gravity is a multiple of 32 and with it of SHARED_UNROLL, and the tile has a
    // body for each thread.
    unsafe { launch::<nbody_mixed_f32>(&device, &config, args) }
}

/// Its entry point, as in the PTX.
pub(super) const MIXED: &str = nbody_mixed_f32::NAME;

/// Grid, block and a tile in shared memory for `n` bodies of `T`.
fn tiled<T: Real>(kernel: &'static str, n: usize, block: u32) -> Result<LaunchConfig, Error> {
    let grid = blocks_for(kernel, n, block as usize)?;
    // At most 1024 bodies of 32 bytes.
    let bytes = block * size_of::<Body<T>>() as u32;
    Ok(LaunchConfig::new(grid, block).with_dynamic_shared_bytes(bytes))
}

/// One launch of [`Variant::Symmetric`]: the distances from `first` to `end - 1`.
fn rounds(n: usize, distances: u32) -> impl Iterator<Item = (u32, u32)> {
    let all = groups(n) / 2 + 1;
    (0..all.div_ceil(distances)).map(move |round| {
        let first = round * distances;
        (first, (first + distances).min(all))
    })
}

/// Threads per block of the kernels that kick and drift.
const KICK_DRIFT_BLOCK: u32 = 256;

/// Grid, block and shared memory for `n` bodies of `T`.
fn launch_config<T: Real>(variant: Variant, n: usize, block: u32) -> Result<LaunchConfig, Error> {
    let grid = blocks_for(variant.name::<T>(), n, block as usize)?;
    let config = LaunchConfig::new(grid, block);
    Ok(match variant {
        // At most 1024 bodies of 32 bytes.
        Variant::Shared => config.with_dynamic_shared_bytes(block * size_of::<Body<T>>() as u32),
        _ => config,
    })
}

macro_rules! entries {
    ($real:ty, $kick_drift:ident, $potential:ident: $($variant:ident => $kernel:ident,)+
     ; $register_tile:ident, $symmetric:ident, $sum:ident) => {
        impl Entries for $real {
            const POTENTIAL: &'static str = $potential::NAME;

            fn launch_potential(
                gravity: &Gravity,
                weighted: bool,
                bodies: &Buffer<Body<Self>>,
                potentials: &mut Buffer<f64>,
            ) -> Result<(), Error> {
                check_values(bodies, POTENTIALS, potentials)?;
                let softening_squared = gravity.softening_squared::<Self>()?;
                let (device, n) = (bodies.device().clone(), bodies.len());
                let config = tiled::<Self>($potential::NAME, n, gravity.block())?;
                // At most MAX_BODIES.
                let args = $potential::args(
                    bodies, n as u32, softening_squared, u32::from(weighted), potentials,
                );
                // SAFETY: as for `launch_mixed`, with potentials for accelerations.
                unsafe { launch::<$potential>(&device, &config, args) }
            }

            fn launch_kick_drift(
                accelerations: &Buffer<[Self; 3]>,
                [kick, drift]: [Self; 2],
                velocities: &mut Buffer<[Self; 3]>,
                bodies: &mut Buffer<Body<Self>>,
            ) -> Result<(), Error> {
                check_buffers(bodies, ACCELERATIONS, accelerations)?;
                check_buffers(bodies, VELOCITIES, velocities)?;
                let n = bodies.len();
                let grid = blocks_for($kick_drift::NAME, n, KICK_DRIFT_BLOCK as usize)?;
                let config = LaunchConfig::new(grid, KICK_DRIFT_BLOCK);
                let device = bodies.device().clone();
                // At most MAX_BODIES.
                let args = $kick_drift::args(accelerations, n as u32, kick, drift, velocities, bodies);
                // SAFETY: `check_buffers` found n elements in all three, from 1 to
                // MAX_BODIES, and all on `device`; they are distinct, since two are
                // borrowed mutably. The grid extends along x and has n threads and
                // less than a block more, below 2^32.
                unsafe { launch::<$kick_drift>(&device, &config, args) }
            }

            fn entry_name(variant: Variant) -> &'static str {
                match variant {
                    $(Variant::$variant => $kernel::NAME,)+
                    Variant::RegisterTile => $register_tile::NAME,
                    Variant::Symmetric => $symmetric::NAME,
                }
            }

            fn launch_entry(
                gravity: &Gravity,
                variant: Variant,
                bodies: &Buffer<Body<Self>>,
                accelerations: &mut Buffer<[Self; 3]>,
            ) -> Result<(), Error> {
                check_buffers(bodies, ACCELERATIONS, accelerations)?;
                let softening_squared = gravity.softening_squared::<Self>()?;
                if matches!(variant, Variant::RegisterTile | Variant::Symmetric) {
                    if bodies.device().kind() == DeviceKind::Cpu {
                        return Err(Error::NotLaunchable {
                            kernel: variant.name::<Self>(),
                        });
                    }
                    let mut solver =
                        Solver::new(gravity, bodies.device(), bodies.len(), Some(variant))?;
                    return solver.apply(bodies, accelerations);
                }
                let config = launch_config::<Self>(variant, bodies.len(), gravity.block())?;
                let device = bodies.device().clone();
                // At most MAX_BODIES.
                let n = bodies.len() as u32;
                match variant {
                    $(Variant::$variant => {
                        let args = $kernel::args(bodies, n, softening_squared, accelerations);
                        // SAFETY: `check_buffers` found n elements in both, from 1
                        // to MAX_BODIES, and both on `device`; they are distinct,
                        // since accelerations is borrowed mutably. The grid extends
                        // along x and has n threads and less than a block more,
                        // below 2^32; the block of a Gravity is a multiple of 32
                        // and with it of SHARED_UNROLL. The tile, where there is
                        // one, has a body for each thread.
                        unsafe { launch::<$kernel>(&device, &config, args) }
                    })+
                    Variant::RegisterTile | Variant::Symmetric => Ok(()),
                }
            }

            fn launch_in_parts(
                solver: &mut Solver<Self>,
                bodies: &Buffer<Body<Self>>,
                accelerations: &mut Buffer<[Self; 3]>,
            ) -> Result<(), Error> {
                let softening_squared = solver.gravity.softening_squared::<Self>()?;
                let device: Device = bodies.device().clone();
                // At most MAX_BODIES.
                let n = solver.n as u32;
                let sums = LaunchConfig::new(
                    blocks_for($sum::NAME, 3 * solver.n, SUM_BLOCK as usize)?,
                    SUM_BLOCK,
                );
                match solver.scheme {
                    Scheme::Whole => Ok(()),
                    Scheme::Parts { per_part, parts } => {
                        let per_block = REGISTER_BLOCK as usize * REGISTER_BODIES;
                        let blocks = blocks_for($register_tile::NAME, solver.n, per_block)?;
                        let config = LaunchConfig::new((blocks, parts), REGISTER_BLOCK);
                        if parts == 1 {
                            let args = $register_tile::args(
                                bodies, n, softening_squared, per_part, accelerations,
                            );
                            // SAFETY: as below, with the accelerations for the one
                            // part.
                            return unsafe {
                                launch::<$register_tile>(&device, &config, args)
                            };
                        }
                        let args = $register_tile::args(
                            bodies, n, softening_squared, per_part, &mut solver.partials,
                        );
                        // SAFETY: `Solver::apply` found n bodies and n accelerations
                        // on the device of the solver's arrays, which are its own and
                        // have a row of n for each part; the grid has the blocks for
                        // n bodies along x and the parts along y.
                        unsafe { launch::<$register_tile>(&device, &config, args) }?;
                        let args = $sum::args(
                            &solver.partials, parts, &solver.partials, 0, 0, n, 0, accelerations,
                        );
                        // SAFETY: as many rows as were just written; no reactions are
                        // read; 3 n threads and less than a block more.
                        unsafe { launch::<$sum>(&device, &sums, args) }
                    }
                    Scheme::Pairs { distances, per_part } => {
                        let groups = groups(solver.n);
                        for (first, end) in rounds(solver.n, distances) {
                            let tiles = (end - first) * SYMMETRIC_TILES;
                            let parts = tiles.div_ceil(per_part);
                            let config = LaunchConfig::new((groups, parts), SYMMETRIC_BLOCK);
                            let args = $symmetric::args(
                                bodies,
                                n,
                                softening_squared,
                                first * SYMMETRIC_TILES,
                                end * SYMMETRIC_TILES,
                                per_part,
                                &mut solver.partials,
                                &mut solver.reactions,
                            );
                            // SAFETY: `Solver::apply` found n bodies on the device of
                            // the solver's arrays, which are its own and have a row of
                            // n for each part and for each distance of a launch; the
                            // grid is that of the groups and of the tiles of these
                            // distances, which end with the last there is.
                            unsafe { launch::<$symmetric>(&device, &config, args) }?;
                            let rows = end - first.max(1);
                            let half = groups.is_multiple_of(2) && end == groups / 2 + 1;
                            let args = $sum::args(
                                &solver.partials,
                                parts,
                                &solver.reactions,
                                rows,
                                u32::from(half && rows > 0),
                                n,
                                u32::from(first > 0),
                                &mut *accelerations,
                            );
                            // SAFETY: as many rows as were just written, for the
                            // groups that have them; 3 n threads and less than a
                            // block more; what is added to was written by the round
                            // before.
                            unsafe { launch::<$sum>(&device, &sums, args) }?;
                        }
                        Ok(())
                    }
                }
            }
        }
    };
}

entries! {
    f32, nbody_kick_drift_f32, nbody_potential_f32:
    AosUnroll1 => nbody_aos_unroll1_f32,
    AosUnroll2 => nbody_aos_unroll2_f32,
    AosUnroll4 => nbody_aos_unroll4_f32,
    AosUnroll8 => nbody_aos_unroll8_f32,
    AosUnroll16 => nbody_aos_unroll16_f32,
    AosUnroll32 => nbody_aos_unroll32_f32,
    Shared => nbody_shared_f32,
    ; nbody_register_tile_f32, nbody_symmetric_f32, nbody_sum_f32
}

entries! {
    f64, nbody_kick_drift_f64, nbody_potential_f64:
    AosUnroll1 => nbody_aos_unroll1_f64,
    AosUnroll2 => nbody_aos_unroll2_f64,
    AosUnroll4 => nbody_aos_unroll4_f64,
    AosUnroll8 => nbody_aos_unroll8_f64,
    AosUnroll16 => nbody_aos_unroll16_f64,
    AosUnroll32 => nbody_aos_unroll32_f64,
    Shared => nbody_shared_f64,
    ; nbody_register_tile_f64, nbody_symmetric_f64, nbody_sum_f64
}
