//! Launches of the kernels, on a CUDA device or on the emulator.

use super::check::{Checked, OPERATION};
use super::ends::unknowns_along;
use crate::grid::Grid2;
use crate::march::{blocks_of, config_of, layout_of};
use crate::variants::variants;
use crate::{
    Axis, Buffer, Device, Element, Error, LaunchConfig, Shape2, Texture2d,
    blocks_per_multiprocessor, launch, resident_blocks,
};
use gpu_kernels::heat2d as kernels;
use gpu_kernels::registry::{Entry, HasScalar, Problem, Registered};
use halo_stencil::Region;
use kernels::resident::{RESIDENT_HALO, RESIDENT_WARPS, Residence, resident_workspace};
use kernels::strips::{Shares, TILING_F32, TILING_F64, Tiling};
use kernels::{
    global::*, march::*, resident::*, shared_core::*, shared_halo::*, shared_overlap::*, step::*,
    temporal::*, texture::*,
};

/// The default kernel of a single iteration.
pub(super) const SINGLE_ITERATION: Variant = Variant::March;

/// The default kernel of many iterations.
pub(super) const MANY_ITERATIONS: Variant = Variant::Resident;

/// The most iterations of a launch of resident blocks: a fraction of a second.
const RESIDENT_ITERATIONS: usize = 1 << 20;

variants! {
    /// One of the kernels.
    ///
    /// The textbook's kernels have blocks of 16 × 16 threads and exist in `f32` only. They differ
    /// in the memory from which a thread reads the four neighbours of its point. The others exist
    /// in `f32` and `f64`.
    ///
    /// | kernel | neighbours from | a block writes |
    /// |---|---|---|
    /// | `heat2d_global` | global memory | 16 × 16 |
    /// | `heat2d_shared_core` | a 16 × 16 tile; at its rim, global memory | 16 × 16 |
    /// | `heat2d_shared_overlap` | a 16 × 16 tile; tiles overlap by 2 | 14 × 14 |
    /// | `heat2d_shared_halo` | an 18 × 18 tile | 16 × 16 |
    /// | `heat2d_texture` | a texture | 16 × 16 |
    /// | `heat2d_march_*`, `heat2d_heated_*` | registers, marching along y | 256 × 12 in `f32` |
    /// | `heat2d_temporal_*` | registers, 16 iterations in one pass over memory | strips along y |
    /// | `heat2d_resident_*` | registers, all iterations in one launch | what it holds |
    /// | `heat2d_step_*`, `heat2d_heated_step_*` | registers, marching along y | 256 × 12 in `f32` |
    ///
    /// [`Variant::March`] and [`Variant::Step`] are the only ones for Neumann boundaries and for
    /// sources: with a source they are the kernels called `heated`. [`Variant::Step`] is for steps
    /// in time, and the only one for those.
    ///
    /// With [`Variant::Temporal`] the iterations that are left over, fewer than a pass has,
    /// are [`Variant::March`]'s. [`Variant::Resident`] leaves a plate that does not fit on the
    /// device at once to [`Variant::Temporal`]; on the emulator, whose blocks need not run at
    /// the same time, that is one of more than a block holds, unless they are
    /// [`Blocks::Resident`](crate::device::Blocks::Resident).
    pub enum Variant {
        /// `heat2d_global`
        Global: heat2d_global;
        /// `heat2d_shared_core`
        SharedCore: heat2d_shared_core;
        /// `heat2d_shared_overlap`
        SharedOverlap: heat2d_shared_overlap;
        /// `heat2d_shared_halo`
        SharedHalo: heat2d_shared_halo;
        /// `heat2d_texture`
        Texture: heat2d_texture;
        /// `heat2d_march_f32`, `heat2d_march_f64`; with a source `heat2d_heated_f32`,
        /// `heat2d_heated_f64`
        March: heat2d_march_f32, heat2d_march_f64, heat2d_heated_f32, heat2d_heated_f64;
        /// `heat2d_temporal_f32`, `heat2d_temporal_f64`
        Temporal: heat2d_temporal_f32, heat2d_temporal_f64;
        /// `heat2d_resident_f32`, `heat2d_resident_f64`
        Resident: heat2d_resident_f32, heat2d_resident_f64;
        /// `heat2d_step_f32`, `heat2d_step_f64`; with a source `heat2d_heated_step_f32`,
        /// `heat2d_heated_step_f64`
        Step: heat2d_step_f32, heat2d_step_f64, heat2d_heated_step_f32, heat2d_heated_step_f64;
    }
}

impl Variant {
    /// The kernel's entry point for `T` without a source, as in the PTX; `None` for the textbook's
    /// kernels in `f64`, which do not exist.
    #[must_use]
    pub fn kernel<T: Kernels>(self) -> Option<&'static str> {
        let mut entries = self.entries().iter();
        let entry = entries.find(|entry| entry.scalar == T::SCALAR);
        entry.map(|entry| entry.name)
    }

    /// The entry point for `T` of iterations with a source; `None` for kernels that take none.
    #[must_use]
    pub fn heated_kernel<T: Kernels>(self) -> Option<&'static str> {
        let mut entries = self.entries().iter();
        let heated = |entry: &&Entry| entry.variant.starts_with("heated");
        let entry = entries.find(|entry| entry.scalar == T::SCALAR && heated(entry));
        entry.map(|entry| entry.name)
    }

    /// The most iterations of a launch in `T`.
    ///
    /// ```
    /// use halo_gpu::heat2d::Variant;
    ///
    /// assert_eq!(Variant::March.iterations_per_launch::<f32>(), 1);
    /// assert_eq!(Variant::Temporal.iterations_per_launch::<f32>(), 16);
    /// ```
    #[must_use]
    pub fn iterations_per_launch<T: Kernels>(self) -> usize {
        match self {
            Self::Temporal => T::TILING.iterations(),
            Self::Resident => RESIDENT_ITERATIONS,
            _ => 1,
        }
    }

    /// The kernel's name without the type of its temperatures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        let entry = &self.entries()[0];
        let len = entry.family.len() + "_".len() + entry.variant.len();
        entry.name.split_at(len).0
    }

    /// The tile in shared memory, rows and columns; `None` for the kernels that
    /// have none.
    #[must_use]
    pub const fn tile(self) -> Option<[usize; 2]> {
        match self {
            Self::SharedCore | Self::SharedOverlap => Some([kernels::BLOCK as usize; 2]),
            Self::SharedHalo => Some([kernels::HALO_TILE as usize; 2]),
            _ => None,
        }
    }
}

impl std::fmt::Display for Variant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What resident blocks exchange their rims in, for one plate and one kernel. None where a
/// launch has failed and may have left anything.
pub type Rims = Option<Buffer<u64>>;

/// The kernels for one type.
pub trait Kernels: kernels::Real + HasScalar + Element {
    /// How a pass of many iterations is cut up.
    const TILING: Tiling;

    /// Memory for the rims of resident blocks, if there can be any for such plates.
    fn rims(device: &Device, shape: Shape2) -> Result<Rims, Error>;

    /// How many of `count` iterations the next launch of `variant` makes.
    fn iterations_of_launch(
        variant: Variant,
        device: &Device,
        shape: Shape2,
        count: usize,
    ) -> Result<usize, Error>;

    /// One launch of `variant` on the device of the plates: at least one iteration and at most
    /// `count` (at least 1). Returns their number. The variant exists for this type, takes the
    /// plates' boundaries and source, and is neither the one with textures nor the one of steps in
    /// time. `rims` are those of the earlier launches
    /// on plates of this shape.
    fn launch_iterations(
        variant: Variant,
        plates: Checked<'_, Self>,
        count: usize,
        rims: &mut Rims,
    ) -> Result<usize, Error>;

    /// One step in time of this ratio by its kernel on the device of the plates, which is not
    /// the CPU. Returns 1.
    fn launch_step(ratio: Self, plates: Checked<'_, Self>) -> Result<usize, Error>;
}

/// The plate, as the table sees it.
const fn problem(shape: Shape2) -> Problem {
    Problem::plane(shape.nx, shape.ny)
}

/// Both extents as kernels take them.
fn extents(shape: Shape2) -> (u32, u32) {
    // `Heat2d::new` has found them to be at most i32::MAX.
    (shape.nx as u32, shape.ny as u32)
}

/// One iteration by a textbook kernel.
macro_rules! textbook {
    ($kernel:ident, $plates:expr) => {{
        let plates = $plates;
        let (device, shape) = (plates.device().clone(), plates.shape());
        let (old, new) = plates.into_plates();
        let (nx, ny) = extents(shape);
        let config = <$kernel as Registered>::ENTRY
            .geometry(&problem(shape))?
            .into();
        let args = $kernel::args(old, new, nx, ny);
        // SAFETY: `Checked::new` found nx * ny elements in old and in new, both on
        // `device`; they are distinct, since new is borrowed mutably. Both extents are at
        // least 3 and at most i32::MAX, and the geometry is the one the kernel documents.
        unsafe { launch::<$kernel>(&device, &config, args) }.map(|()| 1)
    }};
}

/// The points that iterations compute: all but those on ends that keep their temperature.
fn unknowns(grid: &Grid2) -> Region {
    let [x, y] = [Axis::X, Axis::Y].map(|axis| unknowns_along(grid, axis));
    Region {
        first: [x.start as u32, y.start as u32, 0],
        end: [x.end as u32, y.end as u32, 1],
    }
}

/// One iteration or step by a kernel of `halo_stencil`, or by the second one with a source.
macro_rules! march {
    ($plates:expr, $kernel:ident: $update:expr, $heated:ident: $heated_update:expr) => {{
        let plates = $plates;
        let (device, grid) = (plates.device().clone(), plates.grid());
        let multiprocessors = device.properties().multiprocessors;
        let blocks = blocks_of::<Self, 2>(OPERATION, grid, 1, multiprocessors)?;
        let (config, unknowns) = (config_of(blocks), unknowns(grid));
        let ends = [Axis::X, Axis::Y].map(|axis| grid.ends(axis));
        let none = |_| 0.0;
        let source = plates.source();
        let (old, new) = plates.into_plates();
        // SAFETY, for both: `Checked::new` found the grid's number of elements in old, source and
        // new, all on `device`, where every allocation is aligned to 16 bytes; new is another
        // buffer, since it is borrowed mutably. The layout is that of the grid, to which
        // `blocks_of` gave the blocks, and the unknowns lie in it.
        match source {
            None => {
                let layout = layout_of(grid, &[ends], blocks.segment, none);
                let args = $kernel::args(old, new, layout, $update, unknowns);
                // SAFETY: see above.
                unsafe { launch::<$kernel>(&device, &config, args) }
            }
            Some(source) => {
                let layout = layout_of(grid, &[ends; 2], blocks.segment, none);
                let args = $heated::args(old, source, new, layout, $heated_update, unknowns);
                // SAFETY: see above.
                unsafe { launch::<$heated>(&device, &config, args) }
            }
        }
        .map(|()| 1)
    }};
}

/// How a pass of many iterations over a plate is cut up; `None` if the plate is too large for
/// it.
fn shares<K: Registered>(
    device: &Device,
    shape: Shape2,
    tiling: Tiling,
) -> Result<Option<Shares>, Error> {
    let one = LaunchConfig::new(1, (tiling.block()[0], tiling.block()[1]));
    let blocks = blocks_per_multiprocessor::<K>(device, &one)?;
    let resident = blocks as usize * device.properties().multiprocessors as usize;
    let plate = problem(shape).with_resident_blocks(resident);
    Ok(Shares::of(K::NAME, tiling, &plate).ok())
}

/// How resident blocks share a plate; `None` if it does not fit on the device.
fn residence<K: Registered>(device: &Device, shape: Shape2) -> Result<Option<Residence>, Error> {
    let largest = LaunchConfig::new(1, (32, RESIDENT_WARPS as u32));
    let blocks = resident_blocks::<K>(device, &largest)? as usize;
    Ok(Residence::of(&problem(shape).with_resident_blocks(blocks)))
}

/// Memory for the rims of resident blocks in `T`.
fn new_rims<T: kernels::Real>(device: &Device, shape: Shape2) -> Result<Buffer<u64>, Error> {
    device.alloc_filled(resident_workspace::<T>(shape.points()?), 0)
}

/// A pass of many iterations, if as many are left and the plate is not too large, or one iteration.
macro_rules! temporal {
    ($kernel:ident, $plates:expr, $count:expr) => {{
        let plates = $plates;
        let (device, shape) = (plates.device().clone(), plates.shape());
        let shares = match $count < Self::TILING.iterations() {
            true => None,
            false => shares::<$kernel>(&device, shape, Self::TILING)?,
        };
        match shares {
            None => Self::launch_iterations(Variant::March, plates, 1, &mut None),
            Some(Shares { share, geometry }) => {
                let (old, new) = plates.into_plates();
                let (nx, ny) = extents(shape);
                let args = $kernel::args(old, new, nx, ny, share);
                // SAFETY: `Checked::new` found nx * ny elements in old and in new, both on
                // `device`, where every allocation is aligned to 16 bytes; they are
                // distinct, since new is borrowed mutably. `Shares::of` found both extents
                // to be at most 2³⁰ and the line, and with it the share, at most 2³¹; they
                // are at least 3. The geometry is the one the kernel documents.
                unsafe { launch::<$kernel>(&device, &geometry.into(), args) }
                    .map(|()| Self::TILING.iterations())
            }
        }
    }};
}

/// As many iterations as are asked for, if the plate fits on the device; else a pass of
/// many.
macro_rules! resident {
    ($kernel:ident, $plates:expr, $count:expr, $rims:expr) => {{
        let plates = $plates;
        let (device, shape) = (plates.device().clone(), plates.shape());
        match residence::<$kernel>(&device, shape)? {
            None => Self::launch_iterations(Variant::Temporal, plates, $count, $rims),
            Some(residence) => {
                let len = resident_workspace::<Self>(shape.points()?);
                let own = |words: &Buffer<u64>| words.len() == len && *words.device() == device;
                let mut words = match $rims.take().filter(own) {
                    Some(words) => words,
                    None => new_rims::<Self>(&device, shape)?,
                };
                let (old, new) = plates.into_plates();
                let (nx, ny) = extents(shape);
                let count = $count.min(RESIDENT_ITERATIONS);
                let args = $kernel::args(
                    old,
                    new,
                    nx,
                    ny,
                    count as u32,
                    RESIDENT_HALO,
                    residence.own_rows,
                    residence.warp_rows,
                    &mut words,
                );
                // Each iteration has a barrier, the exchange between lanes, up to two
                // shuffles each way and row, and its part of the exchange between blocks.
                let steps = count as u64 * u64::from(4 * residence.warp_rows + 32);
                let config = LaunchConfig::from(residence.geometry).with_steps(steps);
                // SAFETY: `Checked::new` found nx * ny elements in old and in new, and the
                // workspace has as many as they need; all are on `device` and distinct,
                // since two are borrowed mutably. Both extents are at least 3 and, as the
                // plate fits, far below 2³⁰. The workspace was made for this plate, device
                // and kernel, from which its geometry follows, and is given up when a
                // launch fails. The geometry is the one the kernel documents, and the
                // device holds all blocks at the same time.
                unsafe { launch::<$kernel>(&device, &config, args) }?;
                *$rims = Some(words);
                Ok(count)
            }
        }
    }};
}

/// What both types have.
macro_rules! both {
    ($tiling:ident, $temporal:ident, $resident:ident, $step:ident, $heated:ident) => {
        const TILING: Tiling = $tiling;

        fn rims(device: &Device, shape: Shape2) -> Result<Rims, Error> {
            match residence::<$resident>(device, shape)? {
                Some(_) => new_rims::<Self>(device, shape).map(Some),
                None => Ok(None),
            }
        }

        fn iterations_of_launch(
            variant: Variant,
            device: &Device,
            shape: Shape2,
            count: usize,
        ) -> Result<usize, Error> {
            if variant == Variant::Resident && residence::<$resident>(device, shape)?.is_some() {
                return Ok(count.min(RESIDENT_ITERATIONS));
            }
            let many = matches!(variant, Variant::Resident | Variant::Temporal);
            let pass = Self::TILING.iterations();
            if many && count >= pass && shares::<$temporal>(device, shape, Self::TILING)?.is_some()
            {
                return Ok(pass);
            }
            Ok(1)
        }

        fn launch_step(ratio: Self, plates: Checked<'_, Self>) -> Result<usize, Error> {
            let step = Step { ratio };
            march!(plates, $step: step, $heated: HeatedStep { step })
        }
    };
}

impl Kernels for f32 {
    both!(
        TILING_F32,
        heat2d_temporal_f32,
        heat2d_resident_f32,
        heat2d_step_f32,
        heat2d_heated_step_f32
    );

    fn launch_iterations(
        variant: Variant,
        plates: Checked<'_, Self>,
        count: usize,
        rims: &mut Rims,
    ) -> Result<usize, Error> {
        match variant {
            Variant::Global => textbook!(heat2d_global, plates),
            Variant::SharedCore => textbook!(heat2d_shared_core, plates),
            Variant::SharedOverlap => textbook!(heat2d_shared_overlap, plates),
            Variant::SharedHalo => textbook!(heat2d_shared_halo, plates),
            Variant::March => march!(plates, heat2d_march_f32: Jacobi, heat2d_heated_f32: Heated),
            Variant::Temporal => temporal!(heat2d_temporal_f32, plates, count),
            Variant::Resident => resident!(heat2d_resident_f32, plates, count, rims),
            Variant::Texture => unreachable!("heat2d_texture reads a texture, not a buffer"),
            Variant::Step => unreachable!("steps in time have a ratio"),
        }
    }
}

impl Kernels for f64 {
    both!(
        TILING_F64,
        heat2d_temporal_f64,
        heat2d_resident_f64,
        heat2d_step_f64,
        heat2d_heated_step_f64
    );

    fn launch_iterations(
        variant: Variant,
        plates: Checked<'_, Self>,
        count: usize,
        rims: &mut Rims,
    ) -> Result<usize, Error> {
        match variant {
            Variant::March => march!(plates, heat2d_march_f64: Jacobi, heat2d_heated_f64: Heated),
            Variant::Temporal => temporal!(heat2d_temporal_f64, plates, count),
            Variant::Resident => resident!(heat2d_resident_f64, plates, count, rims),
            Variant::Step => unreachable!("steps in time have a ratio"),
            _ => unreachable!("there is no {variant} in f64"),
        }
    }
}

/// One iteration by the kernel with textures.
///
/// Both textures are of `shape` and on one device; the caller keeps both until
/// the launch is over or, as dropping a texture does, waits for the device.
pub(super) fn launch_texture(
    shape: Shape2,
    old: &Texture2d,
    new: &mut Texture2d,
) -> Result<(), Error> {
    let config = heat2d_texture::ENTRY.geometry(&problem(shape))?.into();
    let (nx, ny) = extents(shape);
    // A texture's pitch in bytes fits u32, says the device's limit on it.
    let pitch = new.pitch() as u32;
    let device = old.device().clone();
    let args = heat2d_texture::args(old.handle(), new, nx, ny, pitch);
    // SAFETY: `old` is a texture of nx × ny elements with point filtering and
    // unnormalised coordinates, as all of this library are, on `device`; so is
    // `new`, which has `pitch` elements per row and is another texture, since it
    // is borrowed mutably. A texture lives until its device has done what it was
    // given. The limits on textures keep both extents below 2²², and the
    // geometry is the one the kernel documents.
    unsafe { launch::<heat2d_texture>(&device, &config, args) }
}
