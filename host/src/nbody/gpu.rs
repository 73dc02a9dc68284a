//! Launches the n-body kernels, on a CUDA device or on the emulator.

use super::check::{self, ACCELERATIONS, POTENTIALS, VELOCITIES};
use crate::variants::{launch_registered, variants};
use crate::{Buffer, Constants, Device, Element, Error, LaunchConfig, resident_blocks};
#[cfg(feature = "cases")]
use cuda_std::host::Kernel;
use gpu_kernels::nbody::parts::{Round, Rows, Tiles};
use gpu_kernels::nbody::{
    Body, REGISTER_BLOCK, Real, aos::*, kick_drift::*, mixed::*, potential::*, register_tile::*,
    shared::*, sum::*, symmetric::*,
};
use gpu_kernels::registry::{Entry, HasScalar, Problem, Registered};

variants! {
    /// One of the kernels; each exists for f32 and for f64.
    ///
    /// The first seven are the textbook's. The last two sum in parts; see [`Plan`](super::Plan).
    ///
    /// | variant | kernels | bodies are read from | interactions per loop iteration |
    /// |---|---|---|---|
    /// | `AosUnroll1` | `nbody_aos_unroll1_f32`, `_f64` | global memory | 1 |
    /// | `AosUnroll2` | `nbody_aos_unroll2_f32`, `_f64` | global memory | 2 |
    /// | `AosUnroll4` | `nbody_aos_unroll4_f32`, `_f64` | global memory | 4 |
    /// | `AosUnroll8` | `nbody_aos_unroll8_f32`, `_f64` | global memory | 8 |
    /// | `AosUnroll16` | `nbody_aos_unroll16_f32`, `_f64` | global memory | 16 |
    /// | `AosUnroll32` | `nbody_aos_unroll32_f32`, `_f64` | global memory | 32 |
    /// | `Shared` | `nbody_shared_f32`, `_f64` | a tile in shared memory | 16 |
    /// | `RegisterTile` | `nbody_register_tile_f32`, `_f64` | a tile in shared memory, for four bodies at a time | 32, 16 |
    /// | `Symmetric` | `nbody_symmetric_f32`, `_f64` | the same, each pair computed once | 64, 16 |
    #[non_exhaustive]
    pub enum Variant {
        /// Every thread reads every body from global memory, one interaction per loop iteration.
        AosUnroll1: nbody_aos_unroll1_f32, nbody_aos_unroll1_f64;
        /// Two interactions per loop iteration.
        AosUnroll2: nbody_aos_unroll2_f32, nbody_aos_unroll2_f64;
        /// Four interactions per loop iteration.
        AosUnroll4: nbody_aos_unroll4_f32, nbody_aos_unroll4_f64;
        /// Eight interactions per loop iteration.
        AosUnroll8: nbody_aos_unroll8_f32, nbody_aos_unroll8_f64;
        /// Sixteen interactions per loop iteration.
        AosUnroll16: nbody_aos_unroll16_f32, nbody_aos_unroll16_f64;
        /// Thirty-two interactions per loop iteration.
        AosUnroll32: nbody_aos_unroll32_f32, nbody_aos_unroll32_f64;
        /// A block copies as many bodies as it has threads to shared memory, and reads them from
        /// there.
        Shared: nbody_shared_f32, nbody_shared_f64;
        /// A thread holds four bodies in registers, and several blocks share the sum over the
        /// others.
        RegisterTile: nbody_register_tile_f32, nbody_register_tile_f64;
        /// Computes each pair of bodies once and applies the force to both.
        Symmetric: nbody_symmetric_f32, nbody_symmetric_f64;
    }
}

impl Variant {
    /// The kernel for bodies of `T`.
    pub(super) fn entry<T: HasScalar>(self) -> &'static Entry {
        let mut entries = self.entries().iter();
        match entries.find(|entry| entry.scalar == T::SCALAR) {
            Some(entry) => entry,
            None => unreachable!("there is one for each type of bodies"),
        }
    }

    /// The number of interactions per iteration of the inner loop, in f32.
    #[cfg(feature = "cases")]
    #[doc(hidden)]
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

/// A kernel with its arguments.
#[derive(Debug)]
pub(super) enum Launch<'a, T: Launches> {
    /// A kernel that writes accelerations, in blocks of `block` threads.
    Whole {
        variant: Variant,
        block: u32,
        softening_squared: T,
        bodies: &'a Buffer<Body<T>>,
        accelerations: &'a mut Buffer<[T; 3]>,
    },
    /// [`Variant::RegisterTile`].
    Tiles {
        tiles: Tiles,
        softening_squared: T,
        bodies: &'a Buffer<Body<T>>,
        partials: &'a mut Buffer<[T; 3]>,
    },
    /// [`Variant::Symmetric`].
    Pairs {
        round: Round,
        softening_squared: T,
        bodies: &'a Buffer<Body<T>>,
        partials: &'a mut Buffer<[T; 3]>,
        reactions: &'a mut Buffer<[T; 3]>,
    },
    /// Adds the parts that the previous two write.
    Sum {
        rows: Rows,
        partials: &'a Buffer<[T; 3]>,
        reactions: &'a Buffer<[T; 3]>,
        accelerations: &'a mut Buffer<[T; 3]>,
    },
    /// The potential of each body or, if `weighted`, its share of the energy.
    Potentials {
        weighted: bool,
        block: u32,
        softening_squared: T,
        bodies: &'a Buffer<Body<T>>,
        potentials: &'a mut Buffer<f64>,
    },
    /// Kicks for the first time and drifts for the second.
    KickDrift {
        times: [T; 2],
        accelerations: &'a Buffer<[T; 3]>,
        velocities: &'a mut Buffer<[T; 3]>,
        bodies: &'a mut Buffer<Body<T>>,
    },
}

impl<T: Launches> Launch<'_, T> {
    /// Launches the kernel on the device of the buffers, if they fit.
    pub(super) fn launch(self) -> Result<(), Error> {
        self.check()?;
        T::launch_sums(Checked(self))
    }

    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Whole {
                block,
                bodies,
                accelerations,
                ..
            } => {
                check::block(*block)?;
                check::values(bodies, ACCELERATIONS, accelerations)
            }
            Self::Potentials {
                block,
                bodies,
                potentials,
                ..
            } => {
                check::block(*block)?;
                check::values(bodies, POTENTIALS, potentials)
            }
            Self::KickDrift {
                accelerations,
                velocities,
                bodies,
                ..
            } => {
                check::values(bodies, ACCELERATIONS, accelerations)?;
                check::values(bodies, VELOCITIES, velocities)
            }
            Self::Tiles {
                tiles,
                bodies,
                partials,
                ..
            } => {
                check::lengths(tiles.parts().n(), "nbody: bodies", bodies.len())?;
                let (device, rows) = (bodies.device(), tiles.rows());
                check::count(bodies.len())?;
                check::count(rows.n())?;
                has_rows(device, "nbody: partials", partials, rows.n(), rows.parts())
            }
            Self::Pairs {
                round,
                bodies,
                partials,
                reactions,
                ..
            } => {
                check::lengths(round.n(), "nbody: bodies", bodies.len())?;
                let (device, n) = (bodies.device(), round.n());
                has_rows(device, "nbody: partials", partials, n, round.parts())?;
                has_rows(device, "nbody: reactions", reactions, n, round.reactions())
            }
            Self::Sum {
                rows,
                partials,
                reactions,
                accelerations,
            } => {
                check::lengths(rows.n(), ACCELERATIONS, accelerations.len())?;
                let (device, n) = (accelerations.device(), rows.n());
                has_rows(device, "nbody: partials", partials, n, rows.parts())?;
                has_rows(device, "nbody: reactions", reactions, n, rows.reactions())
            }
        }
    }
}

/// Checks that there are at least `rows` rows of `n`, on this device.
fn has_rows<V: Element>(
    device: &Device,
    what: &'static str,
    values: &Buffer<V>,
    n: usize,
    rows: u32,
) -> Result<(), Error> {
    let required = n.saturating_mul(rows as usize);
    if values.len() < required {
        return Err(Error::LengthMismatch {
            argument: what.into(),
            required,
            given: values.len(),
        });
    }
    device.require(what, values)
}

/// A launch whose buffers fit: they are on one device and have a value for each body (1 to
/// `MAX_BODIES`), or as many rows of them as there are parts; the block is a multiple of 32. The
/// kernel may be launched on them. Only the check can make this type.
#[derive(Debug)]
pub struct Checked<'a, T: Launches>(Launch<'a, T>);

/// A type with n-body kernels.
pub trait Launches: Real + HasScalar + Element {
    /// The name of the entry point for potentials.
    #[cfg(feature = "cases")]
    const POTENTIAL: &'static str;

    /// The blocks of [`Variant::RegisterTile`] that the device holds at the same time.
    fn tiles_at_once(device: &Device) -> Result<usize, Error>;

    /// Launches the kernel.
    fn launch_sums(checked: Checked<'_, Self>) -> Result<(), Error>;
}

/// `launch_registered` for a kernel without constants.
///
/// # Safety
///
/// As for `launch_registered`.
unsafe fn start<K: Registered>(
    device: &Device,
    problem: &Problem,
    args: K::Args<'_>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise, passed on.
    unsafe { launch_registered::<K>(device, problem, &Constants::new(), args) }
}

/// Launches `nbody_mixed_f32` in blocks of `block` threads.
pub(super) fn mixed(
    block: u32,
    softening_squared: f32,
    bodies: &Buffer<Body<f32>>,
    accelerations: &mut Buffer<[f64; 3]>,
) -> Result<(), Error> {
    check::block(block)?;
    check::values(bodies, ACCELERATIONS, accelerations)?;
    let (device, n) = (bodies.device().clone(), bodies.len());
    // n is at most MAX_BODIES.
    let args = nbody_mixed_f32::args(bodies, n as u32, softening_squared, accelerations);
    // SAFETY: `check::values` checked that both have n elements, from 1 to MAX_BODIES, and that
    // both are on `device`; they are distinct, because accelerations is borrowed mutably. The grid
    // extends along x and has at least n and fewer than n + block threads, below 2^32; the block is
    // a multiple of 32 and therefore of SHARED_UNROLL, and the tile has a body for each thread.
    unsafe { start::<nbody_mixed_f32>(&device, &Problem::line(n).with_block(block), args) }
}

/// The name of its entry point in the PTX.
#[cfg(feature = "cases")]
pub(super) const MIXED: &str = nbody_mixed_f32::NAME;

macro_rules! launches {
    ($($real:ty {
        whole: $($variant:ident => $kernel:ident),+;
        parts: $register_tile:ident, $symmetric:ident, $sum:ident;
        others: $potential:ident, $kick_drift:ident;
    })+) => {$(
        impl Launches for $real {
            #[cfg(feature = "cases")]
            const POTENTIAL: &'static str = $potential::NAME;

            fn tiles_at_once(device: &Device) -> Result<usize, Error> {
                let block = LaunchConfig::new(1, REGISTER_BLOCK);
                Ok(resident_blocks::<$register_tile>(device, &block)? as usize)
            }

            fn launch_sums(Checked(launch): Checked<'_, Self>) -> Result<(), Error> {
                match launch {
                    Launch::Whole { variant, block, softening_squared, bodies, accelerations } => {
                        let (device, n) = (bodies.device().clone(), bodies.len());
                        let problem = Problem::line(n).with_block(block);
                        match variant {
                            // A count is at most MAX_BODIES, here and below.
                            $(Variant::$variant => {
                                let args = $kernel::args(
                                    bodies, n as u32, softening_squared, accelerations,
                                );
                                // SAFETY: the check ensured that both have n elements, from 1 to
                                // MAX_BODIES, and that both are on `device`; they are distinct,
                                // because accelerations is borrowed mutably. The grid extends along
                                // x and has at least n and fewer than n + block threads, below
                                // 2^32; the block is a multiple of 32 and therefore of
                                // SHARED_UNROLL. The tile, if there is one, has a body for each
                                // thread.
                                unsafe { start::<$kernel>(&device, &problem, args) }
                            })+
                            Variant::RegisterTile | Variant::Symmetric => {
                                unreachable!("they leave parts")
                            }
                        }
                    }
                    Launch::Tiles { tiles, softening_squared, bodies, partials } => {
                        let (device, parts) = (bodies.device().clone(), tiles.parts());
                        let [first, targets] = tiles.targets();
                        let args = $register_tile::args(
                            bodies, parts.n() as u32, softening_squared, parts.per_part(),
                            parts.parts(), tiles.first_part(), first, targets, partials,
                        );
                        // SAFETY: the check ensured that there are n bodies and that `partials` has
                        // a row of targets for each part, both on `device`; they are distinct,
                        // because `partials` is borrowed mutably. Along x the grid has the blocks
                        // for the targets, and along y some of the parts. As `Tiles` promises, the
                        // targets are some of the n bodies, the first part is one of the parts, and
                        // the last begins before n.
                        unsafe { start::<$register_tile>(&device, &tiles.problem(), args) }
                    }
                    Launch::Pairs { round, softening_squared, bodies, partials, reactions } => {
                        let device = bodies.device().clone();
                        let [first, end] = round.tiles();
                        let args = $symmetric::args(
                            bodies, round.n() as u32, softening_squared, first, end,
                            round.per_part(), partials, reactions,
                        );
                        // SAFETY: the check ensured that there are n bodies, that `partials` has a
                        // row of n for each part and that `reactions` has a row for each distance
                        // except 0, all on `device`; they are distinct, because two are borrowed
                        // mutably. The grid has the groups and the parts of a round. The tiles of a
                        // round cover whole distances and end with the last tile.
                        unsafe { start::<$symmetric>(&device, &round.problem(), args) }
                    }
                    Launch::Sum { rows, partials, reactions, accelerations } => {
                        let device = accelerations.device().clone();
                        let args = $sum::args(
                            partials, rows.parts(), reactions, rows.reactions(),
                            u32::from(rows.half_of_last()), rows.n() as u32,
                            u32::from(rows.add()), accelerations,
                        );
                        // SAFETY: the check ensured that there are n accelerations and as many rows
                        // of n as the kernel reads, all on `device`; accelerations is borrowed
                        // mutably. A last row is half only if it exists. The grid has at least 3 n
                        // and fewer than 3 n + block threads.
                        unsafe { start::<$sum>(&device, &rows.problem(), args) }
                    }
                    Launch::Potentials { weighted, block, softening_squared, bodies, potentials } => {
                        let (device, n) = (bodies.device().clone(), bodies.len());
                        let problem = Problem::line(n).with_block(block);
                        let args = $potential::args(
                            bodies, n as u32, softening_squared, u32::from(weighted), potentials,
                        );
                        // SAFETY: as for `mixed`, with potentials instead of accelerations.
                        unsafe { start::<$potential>(&device, &problem, args) }
                    }
                    Launch::KickDrift { times: [kick, drift], accelerations, velocities, bodies } => {
                        let (device, n) = (bodies.device().clone(), bodies.len());
                        let args = $kick_drift::args(
                            accelerations, n as u32, kick, drift, velocities, bodies,
                        );
                        // SAFETY: the check ensured that all three have n elements, from 1 to
                        // MAX_BODIES, and that all are on `device`; they are distinct, because two
                        // are borrowed mutably. The grid extends along x and has at least n and
                        // fewer than n + block threads, below 2^32.
                        unsafe { start::<$kick_drift>(&device, &Problem::line(n), args) }
                    }
                }
            }
        }
    )+};
}

launches! {
    f32 {
        whole:
            AosUnroll1 => nbody_aos_unroll1_f32,
            AosUnroll2 => nbody_aos_unroll2_f32,
            AosUnroll4 => nbody_aos_unroll4_f32,
            AosUnroll8 => nbody_aos_unroll8_f32,
            AosUnroll16 => nbody_aos_unroll16_f32,
            AosUnroll32 => nbody_aos_unroll32_f32,
            Shared => nbody_shared_f32;
        parts: nbody_register_tile_f32, nbody_symmetric_f32, nbody_sum_f32;
        others: nbody_potential_f32, nbody_kick_drift_f32;
    }
    f64 {
        whole:
            AosUnroll1 => nbody_aos_unroll1_f64,
            AosUnroll2 => nbody_aos_unroll2_f64,
            AosUnroll4 => nbody_aos_unroll4_f64,
            AosUnroll8 => nbody_aos_unroll8_f64,
            AosUnroll16 => nbody_aos_unroll16_f64,
            AosUnroll32 => nbody_aos_unroll32_f64,
            Shared => nbody_shared_f64;
        parts: nbody_register_tile_f64, nbody_symmetric_f64, nbody_sum_f64;
        others: nbody_potential_f64, nbody_kick_drift_f64;
    }
}
