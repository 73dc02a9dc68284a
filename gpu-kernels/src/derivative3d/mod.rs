//! First derivative of a 3-D field by 8th-order central differences.
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! The weights are those of Fornberg, "Generation of finite difference formulas
//! on arbitrarily spaced grids", Math. Comp. 51 (1988), table 1. The twelve
//! quotients (four for each axis) are in constant memory, because every lane of
//! a warp needs the same one at the same time.
//!
//! # The teaching kernels
//!
//! A *pencil* is a whole line of points along the axis of the derivative. One
//! block owns several pencils from end to end, so that the only points it needs
//! from elsewhere are the periodic images of its own: the halo of [`RADIUS`]
//! points at either end is filled inside shared memory, from the tile itself.
//!
//! Along x a pencil is contiguous and a tile of few pencils already reads whole
//! cache lines ([`x_pencil`]). Along y and z neighbouring points of a pencil are
//! `nx` or `nx * ny` elements apart, and what makes an access coalesced is the
//! number of pencils side by side in x: 4 of them are half of a 32-byte sector,
//! 32 of them a whole 128-byte line ([`y_pencil`], [`z_pencil`]). Comparing the
//! two is what these kernels are for.
//!
//! All six do the same arithmetic in the same order, four fused multiply-adds
//! per point, and give the same bits as the CPU port.
//!
//! # The general kernels
//!
//! [`general`] has other orders of accuracy, second derivatives, f64, and ends of
//! an axis that are not periodic; [`vector_calculus`] makes gradients, divergences,
//! curls and Laplacians of those, each in one launch.

use cuda_std::prelude::*;
use cuda_std::{GpuFloat, address_space, externally_visible, shared};

pub mod general;
pub mod general_real;
pub mod vector_calculus;
pub mod x_pencil;
pub mod y_pencil;
pub mod z_pencil;

/// How far the stencil reaches to either side, in points: the width of the halo.
pub const RADIUS: usize = 4;

/// Pencils per tile of the `*_pencil4` kernels.
pub const PENCILS_SMALL: usize = 4;

/// Pencils per tile of the `*_pencil32` kernels.
pub const PENCILS_LARGE: usize = 32;

/// How many pencils' worth of threads a block has, whatever its tile holds.
///
/// A block of either tile has four threads for each point along the pencil, so
/// a thread of the large tile computes `PENCILS_LARGE / 4` points.
pub const PENCILS_IN_FLIGHT: usize = 4;

/// Weights over grid spacing: `[4 * axis + m - 1]` belongs to the neighbours
/// `m` points away along `axis` (x = 0, y = 1, z = 2).
///
/// Set by the host before a launch.
#[externally_visible]
#[address_space(constant)]
pub static mut DERIVATIVE3D_WEIGHTS: [f32; 3 * RADIUS] = [0.0; 3 * RADIUS];

// One load and one store per point, 1 + 3 instructions of arithmetic beside the
// subtractions, weights from constant memory:
// gate derivative3d_*_pencil4: LDG = 1, STG = 1, FMUL = 1, FFMA = 3, LD = 0, ST = 0
// gate derivative3d_*_pencil32: LDG = 8, STG = 8, FMUL = 8, FFMA = 24, LD = 0, ST = 0

/// The stencil at `center`, whose neighbours lie `stride` elements apart.
///
/// 4 subtractions, 1 multiplication, 3 fused multiply-adds: 11 flops.
///
/// # Safety
///
/// `center - RADIUS * stride ..= center + RADIUS * stride` must be readable, and
/// no thread may write there at the same time. `AXIS` must be below 3.
#[inline(always)]
unsafe fn stencil<const AXIS: usize>(center: *const f32, stride: usize) -> f32 {
    let difference = |m: usize| {
        // SAFETY: m is at most RADIUS, so both neighbours are in the range that
        // the caller vouches for.
        unsafe { *center.add(m * stride) - *center.sub(m * stride) }
    };
    // SAFETY: the host writes the weights only between launches; the index is
    // below 12 because AXIS is below 3 and m at most 4.
    let weight = |m: usize| unsafe { DERIVATIVE3D_WEIGHTS[RADIUS * AXIS + m - 1] };

    let mut sum = weight(1) * difference(1);
    sum = GpuFloat::mul_add(difference(2), weight(2), sum);
    sum = GpuFloat::mul_add(difference(3), weight(3), sum);
    GpuFloat::mul_add(difference(4), weight(4), sum)
}

/// One tile of pencils whose points lie `axis_stride` elements apart and which
/// stand side by side along x: the body of the y and z kernels.
///
/// - Tile: `(len + 2 * RADIUS)` rows of `PENCILS` columns, in dynamic shared
///   memory, x fastest.
/// - Threads: `threadIdx.x` is the pencil; `threadIdx.y` and every
///   `blockDim.y`-th point after it are the points along the pencil.
///   `POINTS` of them make up the pencil: `len == POINTS * blockDim.y`.
/// - Halo: the cell `-m` before the first point is the image of point
///   `len - overlap - m`, the cell `len - 1 + m` after the last that of point
///   `overlap + m - 1`. `overlap` is the number of points stored twice: 1 where
///   both ends of the period are stored, else 0.
///
/// # Safety
///
/// - The launch gives `(len + 2 * RADIUS) * PENCILS` elements of dynamic shared
///   memory, blocks of `PENCILS` threads along x and `len / POINTS` along y.
/// - For every point p < len, `origin + threadIdx.x + p * axis_stride` is inside
///   both `f` (readable, written by nobody during the launch) and `df`
///   (writable, this element by no other thread).
/// - `len >= RADIUS + overlap`, `overlap <= 1`, `AXIS < 3`.
#[inline(always)]
unsafe fn column_pencils<const AXIS: usize, const PENCILS: usize>(
    f: *const f32,
    df: *mut f32,
    origin: usize,
    axis_stride: usize,
    len: u32,
    overlap: u32,
) {
    // equivalent mutant (width: `PENCILS + 1`): 5 or 33 over 4 rounds down to the same
    let points = PENCILS / PENCILS_IN_FLIGHT;
    let tile = shared::dynamic_shared_mem::<f32>();
    let column = thread::thread_idx_x();
    let first = thread::thread_idx_y();
    let step = thread::block_dim_y();
    // 64 bits: a field may have more than 2³² points, a tile has few.
    let global = origin + column as usize + first as usize * axis_stride;
    let global_step = step as usize * axis_stride;
    // Row r of the tile holds the point r - RADIUS. A thread's rows are the same
    // number of elements apart.
    let cell = |row: u32| (row * PENCILS as u32 + column) as usize;
    let tile_step = step as usize * PENCILS;
    let radius = RADIUS as u32;

    // SAFETY: each thread stores cells of its own column and rows, all below
    // (len + 2 * RADIUS) * PENCILS; it reads cells of its column written before
    // the last barrier. For n < points, first + n * step is below len, so that
    // global + n * global_step is in bounds by the caller's contract.
    unsafe {
        let own = tile.add(cell(first + radius));
        for n in 0..points {
            let value = *f.add(global + n * global_step);
            *own.add(n * tile_step) = value;
        }
        thread::sync_threads();

        // The tile holds whole pencils, so their periodic images are in it too,
        // a period further on or back.
        let period = (len - overlap) as usize * PENCILS;
        let from_left_to_image = (radius + overlap) as usize * PENCILS;
        let mut left = tile.add(cell(first));
        let mut h = first;
        while h < radius {
            let image = left.add(from_left_to_image);
            *left = *left.add(period);
            *image.add(period) = *image;
            left = left.add(tile_step);
            h += step;
        }
        thread::sync_threads();

        for n in 0..points {
            let value = stencil::<AXIS>(own.add(n * tile_step), PENCILS);
            *df.add(global + n * global_step) = value;
        }
    }
}
