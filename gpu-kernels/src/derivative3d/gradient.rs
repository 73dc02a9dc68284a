//! ∂f/∂x, ∂f/∂y and ∂f/∂z at once: the field is read once, three arrays are written.
//!
//! - A block has a tile of 32 accesses along x by [`ROWS`] rows and goes along z, plane
//!   by plane, for `segment` planes; a thread has one access of each plane.
//! - Neighbours along z are in the thread's registers, as in
//!   [`z_column`](super::z_column), one plane of them loaded ahead of need.
//! - Neighbours along x and y are in shared memory: the plane's tile with a halo of 4
//!   on each side. The inner part comes from the threads' registers, where the plane
//!   has been for 4 turns; the halo is loaded a plane ahead, rows of it by the first 8
//!   rows of threads, columns point by point by the last threads.
//! - There are two tiles, for even planes and odd ones, so that one barrier per plane
//!   is enough: whoever writes a tile again has passed the barrier that all others came
//!   to when they had read it.
//! - A tile that the field does not fill has its halo right behind what it has of the
//!   field. Threads beyond that load what others load, and store nothing.
//!
//! # What limits it
//!
//! - Bytes: 4 in and 12 out per point. The halos are read by two blocks or more: with
//!   [`ROWS`] rows the first reads of a point are joined by `8 / ROWS` others in y and
//!   a sector on either side in x, from the second-level cache.
//! - Instructions per access: 24 of arithmetic for each of its points, 8 to 14 accesses of shared
//!   memory, about 60 for loads, stores, places and the loop.
//!
//! Measured, and what else was tried: `docs/tuning/derivative3d.md`.

use super::{RADIUS, derivative, image, weighted_sum};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector4, WARP};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// Blocks of [`derivative3d_gradient4()`] that a multiprocessor holds at least: with
/// three, what `ptxas` makes of the code for older GPUs keeps some registers in memory.
const BLOCKS_PER_MULTIPROCESSOR: u32 = if cfg!(target_feature = "sm_90") { 3 } else { 2 };

/// Rows of a tile, without its halo: rows of threads of a block.
pub const ROWS: usize = 8;

/// Threads of a block.
pub const BLOCK: u32 = WARP * ROWS as u32;

/// Columns and rows of the tile that are halo.
const HALO: usize = 2 * RADIUS;

/// Planes of the window in registers: the stencil's, and one loaded ahead.
const WINDOW: usize = 2 * RADIUS + 2;

/// Points of a row of the tile, for accesses of `count` points.
const fn pitch(count: usize) -> usize {
    WARP as usize * count + HALO
}

/// Vectors that hold two tiles.
const fn vectors(count: usize) -> usize {
    2 * (ROWS + HALO) * pitch(count) / Vector4::COUNT
}

const _: () = assert!(ROWS >= HALO, "each row of the halo has its row of threads");

// Three stores per turn; LDS: 8 along y, 2 along x (or 8 of one point).
// gate derivative3d_gradient4: registers <= 80, spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 = 3
// gate derivative3d_gradient1: registers <= 64, spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF = 3

/// The gradient, accesses of 4 points.
///
/// `f`, `dx`, `dy`, `dz`: `nx * ny * nz` elements, x fastest. `overlap` is 1 where both
/// end points of the period are stored, else 0. `segment`: the planes that a block goes
/// through; `columns` and `rows`: how many tiles a plane has along x and y.
///
/// # Safety
///
/// - `f` is readable and the others writable for `nx * ny * nz` elements, all aligned
///   to 16 bytes; no two overlap, nobody writes `f` and nothing else accesses the
///   others during the launch.
/// - `nx` is a multiple of 4; `columns` is `ceil(nx / (32 * 4))`, `rows`
///   `ceil(ny / ROWS)`.
/// - `segment >= 1`; a one-dimensional grid of `columns * rows * ceil(nz / segment)`
///   blocks of `(32, ROWS)` threads.
/// - `overlap <= 1`; each extent is at least `4 + overlap` and below 2³¹ - 4096;
///   `nz + segment` fits `i32`.
/// - The weights of [`DERIVATIVE3D_WEIGHTS`](value@super::DERIVATIVE3D_WEIGHTS) are set.
#[kernel]
#[launch_bounds(BLOCK, BLOCKS_PER_MULTIPROCESSOR)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_gradient4(
    f: *const f32,
    dx: *mut f32,
    dy: *mut f32,
    dz: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    columns: u32,
    rows: u32,
) {
    let tiles = shared_array![Vector4; vectors(Vector4::COUNT)];
    let grid = Grid {
        nx,
        ny,
        nz,
        overlap,
        segment,
        columns,
        rows,
    };
    // SAFETY: forwarded word for word; the tiles are the block's own.
    unsafe { gradient::<Vector4>(tiles.cast(), f, [dx, dy, dz], grid) }
}

/// The gradient, accesses of 1 point: for rows of any number of points.
///
/// Arguments as for [`derivative3d_gradient4()`].
///
/// # Safety
///
/// As [`derivative3d_gradient4()`], for any `nx`, with 1 in place of 4 and without
/// the alignment.
#[kernel]
#[launch_bounds(BLOCK, 4)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn derivative3d_gradient1(
    f: *const f32,
    dx: *mut f32,
    dy: *mut f32,
    dz: *mut f32,
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    columns: u32,
    rows: u32,
) {
    let tiles = shared_array![Vector4; vectors(f32::COUNT)];
    let grid = Grid {
        nx,
        ny,
        nz,
        overlap,
        segment,
        columns,
        rows,
    };
    // SAFETY: forwarded word for word; the tiles are the block's own.
    unsafe { gradient::<f32>(tiles.cast(), f, [dx, dy, dz], grid) }
}

/// The arguments of the entry points that are numbers.
#[derive(Clone, Copy)]
struct Grid {
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    columns: u32,
    rows: u32,
}

/// The segment of this block.
///
/// # Safety
///
/// As the entry points, with `P::COUNT` for the 4 or 1; `tiles` is shared memory for
/// two tiles of `(ROWS + HALO) * pitch(P::COUNT)` points, aligned to 16 bytes.
#[inline(always)]
unsafe fn gradient<P: Points>(tiles: *mut f32, f: *const f32, df: [*mut f32; 3], grid: Grid) {
    let Grid {
        nx,
        ny,
        nz,
        overlap,
        segment,
        columns,
        rows,
    } = grid;
    let radius = RADIUS as i32;
    let pitch = pitch(P::COUNT);
    let width = WARP as usize * P::COUNT;
    let block = thread::block_idx_x();
    let (strip, tile_column) = (block / columns, block % columns);
    let (part, tile_row) = (strip / rows, strip % rows);
    let lane = thread::thread_idx_x() as usize;
    let line = thread::thread_idx_y() as usize;
    let (len_x, len_y, len_z, overlap) = (nx as i32, ny as i32, nz as i32, overlap as i32);
    let first_x = (tile_column as usize * width) as i32;
    let first_y = (tile_row as usize * ROWS) as i32;
    // The part of the tile that is in the field: the halo follows right behind it.
    let valid_x = (width as i32).min(len_x - first_x);
    let valid_y = (ROWS as i32).min(len_y - first_y);
    let own_column = RADIUS + lane * P::COUNT;
    let x = (lane * P::COUNT) as i32;
    let own = x < valid_x && (line as i32) < valid_y;
    let column = |x: i32| image(first_x + x, len_x, overlap);
    let row = |y: i32| image(first_y + y, len_y, overlap) * nx as usize;
    let plane_len = nx as usize * ny as usize;
    let plane = |z: i32| image(z, len_z, overlap) * plane_len;

    // Where this thread's access of a plane is, from the plane's first point; threads
    // beyond the field have the last one again.
    let access = x.min(valid_x - P::COUNT as i32);
    let own_place = row((line as i32).min(valid_y - 1)) + (first_x + access) as usize;
    // Its access of the halo along y: the rows before the tile, then those behind.
    let has_row = line < HALO && x < valid_x;
    let halo_line = if line < RADIUS {
        line
    } else {
        line + valid_y as usize
    };
    let halo_place = row(halo_line as i32 - radius) + (first_x + access) as usize;
    // Its point of the halo along x: columns before the tile, then those behind. The
    // last threads of the block have one each.
    let nth = (line * WARP as usize + lane) as i32 - (ROWS * (WARP as usize - HALO)) as i32;
    let (point_line, point_of_line) = (nth / HALO as i32, nth % HALO as i32);
    let has_point = nth >= 0 && point_line < valid_y;
    let point_column = if point_of_line < radius {
        point_of_line
    } else {
        point_of_line + valid_x
    };
    let point_place = if has_point {
        row(point_line) + column(point_column - radius)
    } else {
        0
    };
    // SAFETY: accesses of the field, by `image`; whole ones, since nx is a multiple of
    // P::COUNT.
    let load = |place: usize| unsafe { load_readonly(f.add(place).cast::<P>()) };
    // SAFETY: a point of the field.
    let load_point = |place: usize| unsafe { load_readonly(f.add(place)) };

    let first = (part * segment) as i32;
    let end = len_z.min(first + segment as i32);
    // Beyond the last plane that the stencil needs, that plane again.
    let load_own = |z: i32| load(plane(z.min(end + radius - 1)) + own_place);
    let mut window = [P::ZERO; WINDOW];
    unrolled::<{ WINDOW - 1 }>(|w| window[w] = load_own(first + w as i32 - radius));
    let (mut halo, mut point) = (P::ZERO, 0.0);
    if has_row {
        halo = load(plane(first) + halo_place);
    }
    if has_point {
        point = load_point(plane(first) + point_place);
    }

    let mut z = first;
    let mut half = 0;
    while z < end {
        keep_rolled();
        let center = window[RADIUS];
        // SAFETY: cells of a tile, below (ROWS + HALO) * pitch: rows of the tile below
        // ROWS + HALO, columns below pitch. Threads write different cells; what is read
        // was written before the barrier, which all threads come to.
        unsafe {
            let tile = tiles.add(half);
            let cell = |line: usize, column: usize| tile.add(line * pitch + column);
            if own {
                *cell(line + RADIUS, own_column).cast::<P>() = center;
            }
            if has_row {
                *cell(halo_line, own_column).cast::<P>() = halo;
            }
            if has_point {
                *cell(point_line as usize + RADIUS, point_column as usize) = point;
            }
            thread::sync_threads();

            // What the turns after this one need, on its way as early as can be.
            window[WINDOW - 1] = load_own(z + RADIUS as i32 + 1);
            let next = (z + 1).min(end - 1);
            if has_row {
                halo = load(plane(next) + halo_place);
            }
            if has_point {
                point = load_point(plane(next) + point_place);
            }
        }
        if own {
            // SAFETY: cells as above, of this thread's own row and columns and up to
            // RADIUS around them, all of which are in the field or in the halo. Points of
            // the field, which no other thread has.
            unsafe {
                let tile = tiles.add(half);
                let cell = |line: usize, column: usize| tile.add(line * pitch + column);
                let mut along_y = [P::ZERO; HALO + 1];
                unrolled::<{ HALO + 1 }>(|m| {
                    if m != RADIUS {
                        along_y[m] = *cell(line + m, own_column).cast::<P>();
                    }
                });
                let mut along_x = [0.0; HALO + Vector4::COUNT];
                unrolled::<{ HALO + Vector4::COUNT }>(|c| {
                    if c < HALO + P::COUNT && c.is_multiple_of(P::COUNT) {
                        let points = if c == RADIUS {
                            center
                        } else {
                            *cell(line + RADIUS, lane * P::COUNT + c).cast::<P>()
                        };
                        unrolled::<{ Vector4::COUNT }>(|e| {
                            if e < P::COUNT {
                                along_x[c + e] = points.point(e);
                            }
                        });
                    }
                });
                let values = [
                    P::of(|e| {
                        weighted_sum::<0>(|m| along_x[RADIUS + e + m] - along_x[RADIUS + e - m])
                    }),
                    derivative::<P, 1>(|m| along_y[RADIUS + m], |m| along_y[RADIUS - m]),
                    derivative::<P, 2>(|m| window[RADIUS + m], |m| window[RADIUS - m]),
                ];
                let at = plane(z) + own_place;
                unrolled::<3>(|axis| store_streaming(df[axis].add(at).cast(), values[axis]));
            }
        }
        unrolled::<{ WINDOW - 1 }>(|w| window[w] = window[w + 1]);
        half = (ROWS + HALO) * pitch - half;
        z += 1;
    }
}
