//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{Heat2d, Real, Variant, Wall};
use crate::{
    Buffer, Device, Error, LaunchConfig, Shape2, Texture2d, blocks_for, blocks_per_multiprocessor,
    launch as launch_kernel, resident_blocks,
};
use cuda_std::host::Kernel;
use gpu_kernels::heat2d as kernels;
use kernels::{
    BLOCK, BOTTOM, CHANGE_BLOCK, FIXED, HALO, LEFT, MARCH_BLOCK, MARCH_ROWS, OVERLAP_STEP, RIGHT,
    SOURCE, TOP, change::*, general::*, global::*, march::*, resident::*, shared_core::*,
    shared_halo::*, shared_overlap::*, temporal::*, texture::*,
};

/// What the library takes for a single sweep where it is not told.
pub(super) const SINGLE_SWEEP: Variant = Variant::March;

/// What the library takes for many sweeps where it is not told: the first of these
/// that is there for the plate and the device.
pub(super) const MANY_SWEEPS: Variant = Variant::Resident;

/// The most points along an axis that a pass of many sweeps takes: the kernel counts
/// beyond both ends of a row in 32 bits.
const TEMPORAL_MAX_EXTENT: usize = 1 << 30;

/// The longest line of strips that a pass of many sweeps takes: the kernel counts in 32 bits.
const TEMPORAL_MAX_LINE: u64 = 1 << 31;

/// The fewest blocks of a pass of many sweeps: several on the emulator, too, which holds one
/// at a time, so that it shows whether they share the plate as they should.
const TEMPORAL_LEAST_BLOCKS: usize = 5;

/// Sweeps between two exchanges of resident blocks.
const RESIDENT_HALO: u32 = 8;

/// The most sweeps of a launch of resident blocks: a fraction of a second.
pub(super) const RESIDENT_SWEEPS: usize = 1 << 20;

/// What resident blocks exchange their rims in, for one plate and one kernel; there
/// from the first launch on.
pub type Workspace = Option<Buffer<u64>>;

/// The kernels for one type.
pub trait Entries: Sized {
    /// How a pass of many sweeps is cut up.
    const TILING: Tiling;

    /// The entry point of `variant`, if there is one.
    fn entry_name(variant: Variant) -> Option<&'static str>;

    /// One launch of `variant`, which is not the one with textures or the general one and
    /// is there for this type, on the device of the buffers: at least one sweep and at most `sweeps`
    /// (of which there is one). Returns how many.
    ///
    /// The caller has checked the buffers' lengths and devices; the shape is that of
    /// a [`Heat2d`](super::Heat2d).
    fn launch(
        shape: Shape2,
        variant: Variant,
        old: &Buffer<Self>,
        new: &mut Buffer<Self>,
        sweeps: usize,
        workspace: &mut Workspace,
    ) -> Result<usize, Error>
    where
        Self: Real;

    /// One sweep by the general kernel on the device of the buffers, which is not the
    /// CPU; the caller has checked their lengths and devices.
    fn launch_general(
        heat: &Heat2d,
        source: Option<&Buffer<Self>>,
        old: &Buffer<Self>,
        new: &mut Buffer<Self>,
    ) -> Result<(), Error>
    where
        Self: Real;

    /// The largest magnitude of a difference of two buffers of one length on one device,
    /// which is not the CPU; NaN if there is one.
    fn largest_change(old: &Buffer<Self>, new: &Buffer<Self>) -> Result<Self, Error>
    where
        Self: Real;
}

impl Variant {
    /// Grid and block of a textbook kernel for a plate of `shape`, at least 3 × 3.
    fn launch_config(self, shape: Shape2) -> Result<LaunchConfig, Error> {
        let walls = 2 * HALO as usize;
        let blocks = |extent: usize| match self {
            // A thread for every point, walls included.
            Self::Global | Self::SharedCore | Self::Texture => {
                blocks_for(self.name(), extent, BLOCK as usize)
            }
            // A block for every so many interior points.
            Self::SharedOverlap => blocks_for(self.name(), extent - walls, OVERLAP_STEP as usize),
            Self::SharedHalo => blocks_for(self.name(), extent - walls, BLOCK as usize),
            Self::March | Self::Temporal | Self::Resident | Self::General => {
                unreachable!("{self} has a geometry of its own")
            }
        };
        Ok(LaunchConfig::new(
            (blocks(shape.nx)?, blocks(shape.ny)?),
            (BLOCK, BLOCK),
        ))
    }
}

/// Both extents as kernels take them.
fn extents(shape: Shape2) -> (u32, u32) {
    // `Heat2d::new` has found them to be at most i32::MAX.
    (shape.nx as u32, shape.ny as u32)
}

/// Rows that a block of a marching kernel computes, where `rows` are swept; and its grid
/// and block.
fn march_config<T: Real>(
    kernel: &'static str,
    nx: usize,
    rows: usize,
) -> Result<(u32, LaunchConfig), Error> {
    // A grid has at most 65535 blocks along y; rows are at most i32::MAX.
    let rows_per_block = MARCH_ROWS.max(rows.div_ceil(65_535) as u32);
    let strips = blocks_for(kernel, nx, MARCH_BLOCK as usize * march_points::<T>(nx))?;
    let chunks = blocks_for(kernel, rows, rows_per_block as usize)?;
    let config = LaunchConfig::new((strips, chunks), MARCH_BLOCK);
    Ok((rows_per_block, config))
}

/// One sweep by a marching kernel.
macro_rules! march {
    ($kernel:ident, $shape:expr, $old:expr, $new:expr) => {{
        let (shape, old, new) = ($shape, $old, $new);
        let (nx, ny) = extents(shape);
        let (rows, config) = march_config::<Self>(Variant::March.name(), shape.nx, shape.ny - 2)?;
        let device = old.device().clone();
        let args = $kernel::args(old, new, nx, ny, rows);
        // SAFETY: old and new have nx * ny elements each, are both on `device`, where
        // every allocation is aligned to 16 bytes, and are distinct, since new is
        // borrowed mutably. Both extents are at least 3 and at most i32::MAX; the
        // blocks have fewer than `rows` rows more than the plate, and the geometry is
        // the one the kernel documents.
        unsafe { launch_kernel::<$kernel>(&device, &config, args) }.map(|()| 1)
    }};
}

/// Which walls are insulated and whether there is a source, as the general kernel
/// takes it.
fn plate_bits(heat: &Heat2d, has_source: bool) -> u32 {
    let walls = heat.walls();
    let bits = [
        (walls.left, LEFT),
        (walls.right, RIGHT),
        (walls.bottom, BOTTOM),
        (walls.top, TOP),
    ];
    let insulated = bits.into_iter().map(|(wall, bit)| match wall {
        Wall::Fixed => FIXED,
        Wall::Insulated => bit,
    });
    insulated.fold(if has_source { SOURCE } else { FIXED }, |all, bit| {
        all | bit
    })
}

/// One sweep by the general kernel.
macro_rules! general {
    ($kernel:ident) => {
        fn launch_general(
            heat: &Heat2d,
            source: Option<&Buffer<Self>>,
            old: &Buffer<Self>,
            new: &mut Buffer<Self>,
        ) -> Result<(), Error> {
            let (shape, walls) = (heat.shape(), heat.walls());
            let (nx, ny) = extents(shape);
            let swept = shape.ny - walls.bottom.fixed_points() - walls.top.fixed_points();
            let (rows, config) = march_config::<Self>(Variant::General.name(), shape.nx, swept)?;
            let device = old.device().clone();
            let plate = plate_bits(heat, source.is_some());
            // Without a source any readable buffer is in its place.
            let args = $kernel::args(old, source.unwrap_or(old), new, nx, ny, rows, plate);
            // SAFETY: old, source and new have nx * ny elements each and are all on
            // `device`, where every allocation is aligned to 16 bytes; new is another
            // than they are, since it is borrowed mutably. Both extents are at least 3
            // and at most i32::MAX; the blocks have fewer than `rows` rows more than are
            // swept, and the geometry is the one the kernel documents.
            unsafe { launch_kernel::<$kernel>(&device, &config, args) }
        }
    };
}

/// What a block of a pass of many sweeps takes of the line of `len`, and the geometry, on a
/// device that holds so many blocks: each of them has its share.
fn temporal_config(
    len: u64,
    tiling: Tiling,
    resident: usize,
) -> Result<(u32, LaunchConfig), Error> {
    // At least a row.
    let share = len.div_ceil(resident.max(TEMPORAL_LEAST_BLOCKS) as u64);
    let share = share.max(u64::from(tiling.walled_row));
    let blocks = blocks_for(Variant::Temporal.name(), len as usize, share as usize)?;
    // At most 2^31.
    Ok((
        share as u32,
        LaunchConfig::new(blocks, temporal_block(tiling)),
    ))
}

/// The line of a plate's strips, if a pass of many sweeps counts as far as that.
fn temporal_line(shape: Shape2, tiling: Tiling) -> Option<u64> {
    if shape.nx > TEMPORAL_MAX_EXTENT || shape.ny > TEMPORAL_MAX_EXTENT {
        return None;
    }
    let (nx, ny) = extents(shape);
    let len = Line::of(tiling, nx, ny).length();
    (len <= TEMPORAL_MAX_LINE).then_some(len)
}

/// Threads of a block of a pass of many sweeps.
const fn temporal_block(tiling: Tiling) -> (u32, u32) {
    (32, tiling.warps as u32)
}

/// How many blocks of the kernel `device` holds at a time.
fn blocks_at_a_time<K: Kernel>(device: &Device, config: &LaunchConfig) -> Result<usize, Error> {
    let blocks = blocks_per_multiprocessor::<K>(device, config)?;
    Ok(blocks as usize * device.properties().multiprocessors as usize)
}

/// A pass of many sweeps, if there are as many left and the plate is not too large for
/// it, or one sweep.
macro_rules! temporal {
    ($kernel:ident, $tiling:ident, $march:ident, $shape:expr, $old:expr, $new:expr, $sweeps:expr) => {{
        let (shape, old, new) = ($shape, $old, $new);
        match temporal_line(shape, $tiling).filter(|_| $sweeps >= $tiling.sweeps()) {
            None => march!($march, shape, old, new),
            Some(len) => {
                let device = old.device().clone();
                let one = LaunchConfig::new(1, temporal_block($tiling));
                let resident = blocks_at_a_time::<$kernel>(&device, &one)?;
                let (share, config) = temporal_config(len, $tiling, resident)?;
                let (nx, ny) = extents(shape);
                let args = $kernel::args(old, new, nx, ny, share);
                // SAFETY: old and new have nx * ny elements each, are both on `device`,
                // where every allocation is aligned to 16 bytes, and are distinct, since
                // new is borrowed mutably. Both extents are at least 3 and at most 2³⁰,
                // the line and with it the share at most 2³¹, and the geometry is the one
                // the kernel documents.
                unsafe { launch_kernel::<$kernel>(&device, &config, args) }
                    .map(|()| $tiling.sweeps())
            }
        }
    }};
}

/// Blocks of the kernel that finds the largest change for each multiprocessor.
const CHANGE_BLOCKS: usize = 8;

/// The largest change by a kernel.
macro_rules! largest_change {
    ($kernel:ident) => {
        fn largest_change(old: &Buffer<Self>, new: &Buffer<Self>) -> Result<Self, Error> {
            let device = old.device().clone();
            let n = old.len();
            let most = CHANGE_BLOCKS * device.properties().multiprocessors as usize;
            let blocks = n.div_ceil(CHANGE_BLOCK as usize).clamp(1, most.max(1));
            let config = LaunchConfig::new(blocks as u32, CHANGE_BLOCK);
            let mut largest = device.alloc_filled(1, 0_u64)?;
            let args = $kernel::args(old, new, n, &mut largest);
            // SAFETY: old and new have n elements each, as the caller checked, and all
            // three are on `device`; the geometry is the one the kernel documents.
            unsafe { launch_kernel::<$kernel>(&device, &config, args) }?;
            let mut bits = [0];
            largest.copy_to_slice(&mut bits)?;
            // Those of an f32 are the lower half.
            Ok(Self::from_bits(bits[0] as _))
        }
    };
}

/// How a plate is dealt out to the blocks that hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Residence {
    /// Rows that a block owns, and that each of its warps has.
    own_rows: u32,
    warp_rows: u32,
    config: LaunchConfig,
}

impl Residence {
    /// Of a plate, with at most so many blocks; `None` if it does not fit.
    fn new(shape: Shape2, blocks: usize) -> Option<Self> {
        let halo = RESIDENT_HALO as usize;
        let own_columns = 32 * RESIDENT_POINTS - 2 * halo;
        let across = (shape.nx - 2).div_ceil(own_columns);
        // Of what fits, the fewest rows per warp: their arithmetic takes the time.
        RESIDENT_ROWS.into_iter().find_map(|warp_rows| {
            // Fewer rows than a halo has would be little work for much exchange.
            let own_rows = (shape.ny - 2).div_ceil((blocks / across).max(1)).max(halo);
            let up = (shape.ny - 2).div_ceil(own_rows);
            let warps = (own_rows + 2 * halo).div_ceil(warp_rows);
            // All below 2^10 where they fit.
            (across * up <= blocks && warps <= RESIDENT_WARPS).then(|| Self {
                own_rows: own_rows as u32,
                warp_rows: warp_rows as u32,
                config: LaunchConfig::new((across as u32, up as u32), (32, warps as u32)),
            })
        })
    }
}

/// As many sweeps as are asked for, if the plate fits on the device; else a pass of
/// many sweeps.
macro_rules! resident {
    ($kernel:ident, $shape:expr, $old:expr, $new:expr, $sweeps:expr, $workspace:expr) => {{
        let (shape, old, new) = ($shape, $old, $new);
        let device = old.device().clone();
        let largest = LaunchConfig::new(1, (32, RESIDENT_WARPS as u32));
        let blocks = resident_blocks::<$kernel>(&device, &largest)?;
        match Residence::new(shape, blocks as usize) {
            None => Self::launch(shape, Variant::Temporal, old, new, $sweeps, $workspace),
            Some(residence) => {
                let len = resident_workspace::<Self>(shape.points()?);
                let mut words = match $workspace.take() {
                    Some(words) => words,
                    None => device.alloc_filled(len, 0)?,
                };
                let (nx, ny) = extents(shape);
                let sweeps = $sweeps.min(RESIDENT_SWEEPS);
                let args = $kernel::args(
                    old,
                    new,
                    nx,
                    ny,
                    sweeps as u32,
                    RESIDENT_HALO,
                    residence.own_rows,
                    residence.warp_rows,
                    &mut words,
                );
                // Each sweep has a barrier, the exchange between lanes, up to two
                // shuffles each way and row, and its part of the exchange between blocks.
                let steps = sweeps as u64 * u64::from(4 * residence.warp_rows + 32);
                let config = residence.config.with_steps(steps);
                // SAFETY: old and new have nx * ny elements each, the workspace as many
                // as they need; all are on `device` and distinct, since two are borrowed
                // mutably. Both extents are at least 3 and, as the plate fits, far below
                // 2³⁰. The workspace was made for this plate, device and kernel, from
                // which its geometry follows, and is given up when a launch fails. The
                // geometry is the one the kernel documents, and the device holds all
                // blocks at the same time.
                unsafe { launch_kernel::<$kernel>(&device, &config, args) }?;
                *$workspace = Some(words);
                Ok(sweeps)
            }
        }
    }};
}

impl Entries for f32 {
    const TILING: Tiling = TILING_F32;

    general!(heat2d_general_f32);
    largest_change!(heat2d_change_f32);

    fn entry_name(variant: Variant) -> Option<&'static str> {
        Some(match variant {
            Variant::Global => heat2d_global::NAME,
            Variant::SharedCore => heat2d_shared_core::NAME,
            Variant::SharedOverlap => heat2d_shared_overlap::NAME,
            Variant::SharedHalo => heat2d_shared_halo::NAME,
            Variant::Texture => heat2d_texture::NAME,
            Variant::March => heat2d_march_f32::NAME,
            Variant::Temporal => heat2d_temporal_f32::NAME,
            Variant::Resident => heat2d_resident_f32::NAME,
            Variant::General => heat2d_general_f32::NAME,
        })
    }

    fn launch(
        shape: Shape2,
        variant: Variant,
        old: &Buffer<Self>,
        new: &mut Buffer<Self>,
        sweeps: usize,
        workspace: &mut Workspace,
    ) -> Result<usize, Error> {
        macro_rules! launch {
            ($kernel:ident) => {{
                let config = variant.launch_config(shape)?;
                let (nx, ny) = extents(shape);
                let device = old.device().clone();
                let args = $kernel::args(old, new, nx, ny);
                // SAFETY: old and new have nx * ny elements each, are both on
                // `device` and are distinct, since new is borrowed mutably. Both
                // extents are at least 3 and at most i32::MAX, and the geometry is
                // the one the kernel documents.
                unsafe { launch_kernel::<$kernel>(&device, &config, args) }.map(|()| 1)
            }};
        }
        match variant {
            Variant::Global => launch!(heat2d_global),
            Variant::SharedCore => launch!(heat2d_shared_core),
            Variant::SharedOverlap => launch!(heat2d_shared_overlap),
            Variant::SharedHalo => launch!(heat2d_shared_halo),
            Variant::Texture => unreachable!("heat2d_texture reads a texture, not a buffer"),
            Variant::General => unreachable!("heat2d_general takes walls"),
            Variant::March => march!(heat2d_march_f32, shape, old, new),
            Variant::Temporal => temporal!(
                heat2d_temporal_f32,
                TILING_F32,
                heat2d_march_f32,
                shape,
                old,
                new,
                sweeps
            ),
            Variant::Resident => {
                resident!(heat2d_resident_f32, shape, old, new, sweeps, workspace)
            }
        }
    }
}

impl Entries for f64 {
    const TILING: Tiling = TILING_F64;

    general!(heat2d_general_f64);
    largest_change!(heat2d_change_f64);

    fn entry_name(variant: Variant) -> Option<&'static str> {
        match variant {
            Variant::March => Some(heat2d_march_f64::NAME),
            Variant::Temporal => Some(heat2d_temporal_f64::NAME),
            Variant::Resident => Some(heat2d_resident_f64::NAME),
            Variant::General => Some(heat2d_general_f64::NAME),
            Variant::Global
            | Variant::SharedCore
            | Variant::SharedOverlap
            | Variant::SharedHalo
            | Variant::Texture => None,
        }
    }

    fn launch(
        shape: Shape2,
        variant: Variant,
        old: &Buffer<Self>,
        new: &mut Buffer<Self>,
        sweeps: usize,
        workspace: &mut Workspace,
    ) -> Result<usize, Error> {
        match variant {
            Variant::March => march!(heat2d_march_f64, shape, old, new),
            Variant::Temporal => temporal!(
                heat2d_temporal_f64,
                TILING_F64,
                heat2d_march_f64,
                shape,
                old,
                new,
                sweeps
            ),
            Variant::Resident => {
                resident!(heat2d_resident_f64, shape, old, new, sweeps, workspace)
            }
            Variant::Global
            | Variant::SharedCore
            | Variant::SharedOverlap
            | Variant::SharedHalo
            | Variant::Texture => unreachable!("there is no {variant} in f64"),
            Variant::General => unreachable!("heat2d_general takes walls"),
        }
    }
}

/// One sweep by the kernel with textures.
///
/// Both textures are of `shape` and on one device; the caller keeps both until
/// the launch is over or, as dropping a texture does, waits for the device.
pub(super) fn launch_texture(
    shape: Shape2,
    old: &Texture2d,
    new: &mut Texture2d,
) -> Result<(), Error> {
    let config = Variant::Texture.launch_config(shape)?;
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
    unsafe { launch_kernel::<heat2d_texture>(&device, &config, args) }
}
