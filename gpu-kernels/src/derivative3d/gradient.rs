//! ∂f/∂x, ∂f/∂y and ∂f/∂z together: the field is read once, three arrays are written.
//!
//! - A block has a tile of 32 accesses along x by [`ROWS`] rows and marches along z through
//!   `segment` planes; a thread has one access in each of [`ROWS_PER_THREAD`] adjacent rows.
//! - Neighbours along z are in the thread's registers, as in [`z_column`](super::z_column). ∂f/∂z
//!   is computed first; then the next plane replaces the one furthest behind.
//! - Neighbours along x and y are in shared memory: the plane's tile with a halo of 4 on each side.
//!   The inner part comes from the threads' registers, which have held the plane for 4 iterations.
//!   The halo is loaded one plane ahead: each of its rows by a row of threads, its columns point by
//!   point by the last threads.
//! - ∂f/∂y is summed from the nearest neighbours outwards, two of which are read at a time, and
//!   each derivative is stored as soon as it is complete. So the registers suffice for two blocks.
//! - There are two tiles, for even and for odd planes, so one barrier per plane is enough: a thread
//!   that writes a tile again has passed the barrier that all others reach only after they have
//!   read it.
//! - In a tile that the field does not fill, the halo follows right after the part in the field.
//!   Threads beyond that load the same points as others and store nothing.
//!
//! # What limits it
//!
//! - Bytes: 4 in and 12 out per point. Two or more blocks read the halos: besides its first read a
//!   point has `8 / ROWS` further reads for y, `8 / segment` for z and a sector on either side for
//!   x, from the second-level cache.
//! - Instructions per access: 24 of arithmetic for each of its points, 6 to 12 accesses of
//!   shared memory, about 50 for loads, stores, indices and the loop.
//!
//! Measurements and other variants: `docs/tuning/derivative3d.md`.

use super::planes::{all_settled, cell};
use super::stencil::{RADIUS, derivative, image, weighted_sum};
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector4, WARP};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, launch_bounds, shared_array};

/// Rows of a tile per thread.
pub const ROWS_PER_THREAD: usize = 2;

/// Rows of threads of a block.
pub const LINES: usize = 8;

/// Rows of a tile, without its halo.
pub const ROWS: usize = LINES * ROWS_PER_THREAD;

/// Threads of a block.
pub const BLOCK: u32 = WARP * LINES as u32;

/// Columns, and rows, of the tile's halo.
const HALO: usize = 2 * RADIUS;

/// Planes of the window in registers.
const WINDOW: usize = HALO + 1;

/// Points per row of the tile, without the halo.
const WIDTH: usize = WARP as usize * Vector4::COUNT;

/// Points per row of the tile, with the halo.
const PITCH: usize = WIDTH + HALO;

/// Vectors that hold two tiles.
const VECTORS: usize = 2 * (ROWS + HALO) * PITCH / Vector4::COUNT;

const _: () = assert!(LINES >= HALO, "each row of the halo has its row of threads");

// Three stores per iteration and row.
// gate derivative3d_gradient4: registers <= 128, spills = 0, stack = 0, LD = 0, ST = 0, STG.E.EF.128 = 6

/// The gradient, by accesses of 4 points.
///
/// `f`, `dx`, `dy`, `dz`: `nx * ny * nz` elements, x fastest. `overlap` is 1 if both end points of
/// the period are stored, else 0. `segment`: the planes that a block goes through; `columns` and
/// `rows`: the number of tiles of a plane along x and y; `weights`: over the spacing, for each
/// axis, those of the nearest neighbours first.
///
/// # Safety
///
/// - `f` is readable and the others writable for `nx * ny * nz` elements, all aligned
///   to 16 bytes; no two overlap, nobody writes `f` and nothing else accesses the
///   others during the launch.
/// - `nx` is a multiple of 4; `columns` is `ceil(nx / (32 * 4))`, `rows`
///   `ceil(ny / ROWS)`.
/// - `segment >= 1`; a one-dimensional grid of `columns * rows * ceil(nz / segment)`
///   blocks of `(32, LINES)` threads.
/// - `overlap <= 1`; each extent is at least `4 + overlap` and below 2³¹ - 4096;
///   `nz + segment` fits `i32`, and the bytes of a plane fit `u32`.
#[kernel]
#[launch_bounds(BLOCK, 2)]
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
    weights: [[f32; RADIUS]; 3],
) {
    let tiles = shared_array![Vector4; VECTORS];
    let grid = Grid {
        nx,
        ny,
        nz,
        overlap,
        segment,
        columns,
        rows,
        weights,
    };
    // SAFETY: forwarded word for word; the tiles are the block's own.
    unsafe { gradient(tiles.cast(), f, [dx, dy, dz], grid) }
}

/// The arguments of the entry point other than the arrays.
#[derive(Clone, Copy)]
struct Grid {
    nx: u32,
    ny: u32,
    nz: u32,
    overlap: u32,
    segment: u32,
    columns: u32,
    rows: u32,
    weights: [[f32; RADIUS]; 3],
}

/// Computes the segment of this block.
///
/// # Safety
///
/// As the entry point; `tiles` is shared memory for two tiles of `(ROWS + HALO) * PITCH`
/// points, aligned to 16 bytes.
#[inline(always)]
unsafe fn gradient(tiles: *mut f32, f: *const f32, df: [*mut f32; 3], grid: Grid) {
    let Grid {
        nx,
        ny,
        nz,
        overlap,
        segment,
        columns,
        rows,
        weights: [weights_x, weights_y, weights_z],
    } = grid;
    let radius = RADIUS as i32;
    let block = thread::block_idx_x();
    let (strip, tile_column) = (block / columns, block % columns);
    let (part, tile_row) = (strip / rows, strip % rows);
    let lane = thread::thread_idx_x() as usize;
    let line = thread::thread_idx_y() as usize;
    let (len_x, len_y, len_z, overlap) = (nx as i32, ny as i32, nz as i32, overlap as i32);
    let first_x = (tile_column as usize * WIDTH) as i32;
    let first_y = (tile_row as usize * ROWS) as i32;
    // The part of the tile that is in the field; the halo follows right after it.
    let valid_x = (WIDTH as i32).min(len_x - first_x);
    let valid_y = (ROWS as i32).min(len_y - first_y);
    let own_column = RADIUS + lane * Vector4::COUNT;
    let own_line = line * ROWS_PER_THREAD;
    let x = (lane * Vector4::COUNT) as i32;
    let own: [bool; ROWS_PER_THREAD] = core::array::from_fn(
        #[inline(always)]
        |r| x < valid_x && ((own_line + r) as i32) < valid_y,
    );
    let column = |x: i32| image(first_x + x, len_x, overlap);
    let row = |y: i32| image(first_y + y, len_y, overlap) * nx as usize;

    // The offset of this thread's first access of a plane, in bytes from the plane's first point,
    // and the distance from it to the second. Threads beyond the field repeat the last access.
    let access = (first_x + x.min(valid_x - Vector4::COUNT as i32)) as usize;
    // equivalent mutant (arithmetic: in `valid_y - 1`): rows that come round again, of threads that
    // store nothing
    let own_place = (row((own_line as i32).min(valid_y - 1)) + access) * size_of::<f32>();
    let next_row = if (own_line as i32) < valid_y - 1 {
        nx as usize * size_of::<f32>()
    } else {
        0
    };
    // The thread's access of the halo along y: the rows before the tile, then those after it.
    // equivalent mutant (comparison: in `line < HALO`): LINES is HALO
    // equivalent mutant (width: `HALO + 1`): LINES is HALO
    // equivalent mutant (comparison: in `x < valid_x`): beyond it are corners, which nobody reads
    // equivalent mutant (logic): beyond valid_x are corners, which nobody reads
    let has_row = line < HALO && x < valid_x;
    let halo_line = if line < RADIUS {
        line
    } else {
        line + valid_y as usize
    };
    let halo_place = (row(halo_line as i32 - radius) + access) * size_of::<f32>();
    // The thread's point of the halo along x: columns before the tile, then those after it. The
    // last threads of the block have one each.
    // equivalent mutant (width: `BLOCK - 1`): other threads have the points, and no point is left
    // out
    // equivalent mutant (width: `HALO + 1`): other threads have the points, and no point is left
    // out
    let nth = (line * WARP as usize + lane) as i32 - (BLOCK as usize - ROWS * HALO) as i32;
    let (point_line, point_of_line) = (nth / HALO as i32, nth % HALO as i32);
    // equivalent mutant (comparison: in `point_line < valid_y`): one row more, in the corners
    let has_point = nth >= 0 && point_line < valid_y;
    let point_column = if point_of_line < radius {
        point_of_line
    } else {
        point_of_line + valid_x
    };
    let point_place = if has_point {
        (row(point_line) + column(point_column - radius)) * size_of::<f32>()
    } else {
        0
    };
    let plane_bytes = nx * ny * size_of::<f32>() as u32;
    let in_plane = |z: i32, place: usize| z as u32 as usize * plane_bytes as usize + place;
    // SAFETY: `image` gives accesses in the field; they are whole, since nx is a multiple of
    // Vector4::COUNT.
    let load = |at: usize| unsafe { load_readonly(f.byte_add(at).cast::<Vector4>()) };
    // SAFETY: a point of the field.
    let load_point = |at: usize| unsafe { load_readonly(f.byte_add(at)) };

    let first = (part * segment) as i32;
    let end = len_z.min(first + segment as i32);
    // Beyond the last plane that the stencil needs, that plane is loaded again.
    let load_own = |z: i32| {
        let z = image(z.min(end + radius - 1), len_z, overlap) as i32;
        let at = in_plane(z, own_place);
        [load(at), load(at + next_row)]
    };
    let mut window = [[Vector4::ZERO; ROWS_PER_THREAD]; WINDOW];
    unrolled::<WINDOW>(
        #[inline(always)]
        |w| window[w] = load_own(first + w as i32 - radius),
    );
    let (mut halo, mut point) = (Vector4::ZERO, 0.0);
    // equivalent mutant (guard: made `true`): the others' place is in the field, too
    if has_row {
        halo = load(in_plane(first, halo_place));
    }
    // equivalent mutant (guard: made `true`): the others' place is the plane's first point
    if has_point {
        point = load_point(in_plane(first, point_place));
    }
    let own_cell = (own_line + RADIUS) * PITCH + own_column;
    let halo_cell = halo_line * PITCH + own_column;
    let point_cell = if has_point {
        (point_line as usize + RADIUS) * PITCH + point_column as usize
    } else {
        0
    };

    let mut z = first;
    let mut half = 0;
    while z < end {
        keep_rolled();
        let center = window[RADIUS];
        let mut along_z = [Vector4::ZERO; ROWS_PER_THREAD];
        // SAFETY: cells of a tile, below (ROWS + HALO) * PITCH: rows of the tile below ROWS + HALO,
        // columns below PITCH. Threads write different cells; cells that are read were written
        // before the barrier, which all threads reach.
        unsafe {
            let tile = tiles.add(half);
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    if own[r] {
                        *tile.add(own_cell + r * PITCH).cast::<Vector4>() = center[r];
                    }
                },
            );
            // equivalent mutant (guard: made `true`): the others' cells are corners
            if has_row {
                *tile.add(halo_cell).cast::<Vector4>() = halo;
            }
            // equivalent mutant (guard: made `true`): the others' cell is the first, in a corner
            if has_point {
                *tile.add(point_cell) = point;
            }
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    along_z[r] = all_settled(derivative(
                        weights_z,
                        |m| window[RADIUS + m][r],
                        |m| window[RADIUS - m][r],
                    ));
                },
            );
            thread::sync_threads();
        }
        // The loads for the next iterations start as early as possible.
        unrolled::<HALO>(
            #[inline(always)]
            |w| window[w] = window[w + 1],
        );
        window[HALO] = load_own(z + radius + 1);
        let next = (z + 1).min(end - 1);
        // equivalent mutant (guard: made `true`): the others' place is in the field, too
        if has_row {
            halo = load(in_plane(next, halo_place));
        }
        // equivalent mutant (guard: made `true`): the others' place is the plane's first point
        if has_point {
            point = load_point(in_plane(next, point_place));
        }
        // equivalent mutant (guard: made `true`): what the others compute is not stored
        if own[0] {
            let at = in_plane(z, own_place);
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    // equivalent mutant (guard: made `true`): beyond the last row it is the row again
                    if own[r] {
                        // SAFETY: these points are in the field, and no other thread has them.
                        unsafe { store(df[2], at + r * next_row, along_z[r]) };
                    }
                },
            );
            // SAFETY: cells as above, up to RADIUS around the thread's own, all of which
            // are in the field or in the halo.
            let corner = unsafe { tiles.add(half + own_cell - RADIUS * PITCH - RADIUS) };
            let mut along_y = [Vector4::ZERO; HALO + ROWS_PER_THREAD];
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    // equivalent mutant (guard: made `false`): the tile has the same points
                    along_y[RADIUS + r] = if own[r] {
                        center[r]
                    } else {
                        // SAFETY: see above.
                        unsafe { cell(corner, (RADIUS + r) * PITCH + RADIUS) }
                    };
                },
            );
            let mut sums = [Vector4::ZERO; ROWS_PER_THREAD];
            unrolled::<RADIUS>(
                #[inline(always)]
                |k| {
                    let m = k + 1;
                    let (lowest, highest) = (RADIUS - m, RADIUS + ROWS_PER_THREAD - 1 + m);
                    // SAFETY: see above.
                    unsafe {
                        along_y[lowest] = cell(corner, lowest * PITCH + RADIUS);
                        along_y[highest] = cell(corner, highest * PITCH + RADIUS);
                    }
                    unrolled::<ROWS_PER_THREAD>(
                        #[inline(always)]
                        |r| {
                            let (ahead, behind) =
                                (along_y[RADIUS + r + m], along_y[RADIUS + r - m]);
                            let sum = sums[r];
                            sums[r] = all_settled(Vector4::of(|e| {
                                let difference = ahead.point(e) - behind.point(e);
                                if k == 0 {
                                    weights_y[k] * difference
                                } else {
                                    GpuFloat::mul_add(difference, weights_y[k], sum.point(e))
                                }
                            }));
                        },
                    );
                },
            );
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    if own[r] {
                        // SAFETY: as along z.
                        unsafe { store(df[1], at + r * next_row, sums[r]) };
                    }
                },
            );
            unrolled::<ROWS_PER_THREAD>(
                #[inline(always)]
                |r| {
                    if own[r] {
                        let mut along_x = [0.0; HALO + Vector4::COUNT];
                        unrolled::<{ HALO + Vector4::COUNT }>(
                            #[inline(always)]
                            |c| {
                                if c.is_multiple_of(Vector4::COUNT) {
                                    // equivalent mutant (guard: made `false`): the tile has them, too
                                    // equivalent mutant (width: in `c == RADIUS`): the tile has them, too
                                    let points: Vector4 = if c == RADIUS {
                                        center[r]
                                    } else {
                                        // SAFETY: see above.
                                        unsafe { cell(corner, (RADIUS + r) * PITCH + c) }
                                    };
                                    unrolled::<{ Vector4::COUNT }>(
                                        #[inline(always)]
                                        |e| along_x[c + e] = points.point(e),
                                    );
                                }
                            },
                        );
                        let value = Vector4::of(|e| {
                            weighted_sum(
                                |m| weights_x[m - 1],
                                |m| along_x[RADIUS + e + m] - along_x[RADIUS + e - m],
                            )
                        });
                        // SAFETY: as along z.
                        unsafe { store(df[0], at + r * next_row, value) };
                    }
                },
            );
        }
        half = (ROWS + HALO) * PITCH - half;
        z += 1;
    }
}

/// Stores an access of a derivative, `at` bytes after its first point.
///
/// # Safety
///
/// The destination is writable and aligned, and nobody else accesses it.
#[inline(always)]
unsafe fn store(derivative: *mut f32, at: usize, value: Vector4) {
    // SAFETY: as the caller promises.
    unsafe { store_streaming(derivative.byte_add(at).cast(), value) };
}

/// The launch of a gradient.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    /// Tiles of a plane along x.
    pub columns: u32,
    /// Tiles of a plane along y.
    pub rows: u32,
    /// Planes that a block goes through.
    pub segment: u32,
    /// The geometry of the launch.
    pub geometry: crate::registry::Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Tiles {
    /// The launch for a field.
    ///
    /// # Errors
    ///
    /// [`Refusal`](crate::registry::Refusal) for extents, planes or blocks that exceed what the
    /// kernel can count.
    pub fn of(
        kernel: &'static str,
        field: &crate::registry::Problem,
    ) -> Result<Self, crate::registry::Refusal> {
        use super::geometry::{at_most, check_extents};
        use crate::registry::{Geometry, blocks_for};

        const SEGMENT: usize = 5;
        let [nx, ny, nz] = field.extents;
        // Axis 1 makes it check all extents.
        check_extents(kernel, 1, field)?;
        let bytes = nx.saturating_mul(ny).saturating_mul(size_of::<f32>());
        at_most(
            kernel,
            "the bytes of a plane",
            bytes as u128,
            u32::MAX.into(),
        )?;
        let columns = nx.div_ceil(WIDTH);
        let rows = ny.div_ceil(ROWS);
        let blocks = (columns * rows).saturating_mul(nz.div_ceil(SEGMENT));
        let blocks = blocks_for(kernel, blocks, 1)?;
        Ok(Self {
            // At most the number of blocks, which fits.
            columns: columns as u32,
            rows: rows as u32,
            segment: SEGMENT as u32,
            geometry: Geometry::new([blocks, 1, 1], [WARP, LINES as u32, 1]),
        })
    }
}

crate::register! {
    derivative3d_gradient4: f32, Tuned,
    "∂f/∂x, ∂f/∂y and ∂f/∂z, the field read once, 16-byte accesses",
    geometry: |kernel, field| Ok(Tiles::of(kernel, field)?.geometry),
    cost: super::geometry::gradient,
    example: super::geometry::EXAMPLE,
    tile: "128 × 16",
    restrictions: "nx is a multiple of 4",
}
