//! Code that the kernels of the 8th order share: weights, stencils, tiles of pencils, and the march
//! along an axis.

use super::general_real::Real;
use crate::loops::{keep_rolled, unrolled};
use crate::vector::{Points, Vector4, joined};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, address_space, externally_visible, shared};

/// The reach of the stencil to either side, in points: the width of the halo.
pub const RADIUS: usize = 4;

/// Pencils per tile of the `*_pencil4` kernels.
pub const PENCILS_SMALL: usize = 4;

/// Pencils per tile of the `*_pencil32` kernels.
pub const PENCILS_LARGE: usize = 32;

/// Threads of a block per point along the pencil, for both tiles.
///
/// So a thread of the large tile computes `PENCILS_LARGE / 4` points.
pub const PENCILS_IN_FLIGHT: usize = 4;

/// Threads of a block of the tuned kernels along x.
pub const X_BLOCK: u32 = 128;

/// Vectors that each thread of those kernels computes.
pub const X_VECTORS: usize = 2;

/// Threads of a block of the kernels that march along y or z.
pub const COLUMN_BLOCK: u32 = 64;

/// The most points that a marching thread loads at a time.
const MAX_STEP: usize = 16;

/// Weights over grid spacing for the teaching kernels: `[4 * axis + m - 1]` belongs to the
/// neighbours `m` points away along `axis` (x = 0, y = 1, z = 2).
///
/// Set by the host before a launch. The tuned kernels take those of one axis as a parameter by
/// value.
#[externally_visible]
#[address_space(constant)]
pub static mut DERIVATIVE3D_WEIGHTS: [f32; 3 * RADIUS] = [0.0; 3 * RADIUS];

// One load and one store per point, 1 + 3 arithmetic instructions besides the subtractions, and
// weights from constant memory:
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
pub(super) unsafe fn stencil<const AXIS: usize>(center: *const f32, stride: usize) -> f32 {
    weighted_sum(constant_weight::<AXIS>, |m| {
        // SAFETY: m is at most RADIUS, so both neighbours are in the range that
        // the caller vouches for.
        unsafe { *center.add(m * stride) - *center.sub(m * stride) }
    })
}

/// The sum over m of `weight(m)` times `difference(m)`, the neighbour m points ahead less the one m
/// points behind. Every kernel uses this order of operations.
#[inline(always)]
pub(super) fn weighted_sum<T: Real>(
    weight: impl Fn(usize) -> T,
    difference: impl Fn(usize) -> T,
) -> T {
    let mut sum = weight(1) * difference(1);
    sum = GpuFloat::mul_add(difference(2), weight(2), sum);
    sum = GpuFloat::mul_add(difference(3), weight(3), sum);
    GpuFloat::mul_add(difference(4), weight(4), sum)
}

/// The weight of the points `m` to either side along an axis, 1 to [`RADIUS`], from
/// constant memory. `AXIS` is below 3.
#[inline(always)]
fn constant_weight<const AXIS: usize>(m: usize) -> f32 {
    // SAFETY: the host writes the weights only between launches; the index is
    // below 12 because AXIS is below 3 and m at most 4.
    unsafe { DERIVATIVE3D_WEIGHTS[RADIUS * AXIS + m - 1] }
}

/// Computes one tile of pencils that lie side by side along x, with points `axis_stride` elements
/// apart: the body of the y and z kernels.
///
/// - Tile: `(len + 2 * RADIUS)` rows of `PENCILS` columns, in dynamic shared
///   memory, x fastest.
/// - Threads: `threadIdx.x` is the pencil; `threadIdx.y` and every `blockDim.y`-th
///   point after it are the points along the pencil. A thread has
///   `POINTS = PENCILS / 4` of them: `len == POINTS * blockDim.y`.
/// - Halo: the cell `-m` before the first point is the image of point `len - overlap - m`, the cell
///   `len - 1 + m` after the last that of point `overlap + m - 1`. `overlap` is the number of
///   points stored twice: 1 if both ends of the period are stored, else 0.
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
pub(super) unsafe fn column_pencils<const AXIS: usize, const PENCILS: usize>(
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
    // 64 bits: a field may have more than 2³² points, a tile may not.
    let global = origin + column as usize + first as usize * axis_stride;
    let global_step = step as usize * axis_stride;
    // Row r of the tile holds point r - RADIUS. A thread's rows are a constant distance apart.
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

        // The tile holds whole pencils, so it also holds their periodic images, one period away.
        let period = (len - overlap) as usize * PENCILS;
        let from_left_to_image = (radius + overlap) as usize * PENCILS;
        let mut left = tile.add(cell(first));
        let mut h = first;
        while h < radius {
            let image = left.add(from_left_to_image);
            // Both are read before either is written, so their latencies overlap.
            let (before, after) = (*left.add(period), *image);
            *left = before;
            *image.add(period) = after;
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

/// The derivatives at the points of one access. Their neighbours m points away along the axis are
/// `ahead(m)` and `behind(m)`.
#[inline(always)]
pub(super) fn derivative<P: Points>(
    weights: [P::Point; RADIUS],
    ahead: impl Fn(usize) -> P,
    behind: impl Fn(usize) -> P,
) -> P
where
    P::Point: Real,
{
    P::of(|e| {
        weighted_sum(
            |m| weights[m - 1],
            |m| ahead(m).point(e) - behind(m).point(e),
        )
    })
}

/// The stored point for place `q` of a periodic axis of `len` points, for `q` up to [`RADIUS`]
/// beyond either end.
///
/// `overlap` is the number of points of the period stored twice, 0 or 1, and
/// `len >= RADIUS + overlap`.
#[inline(always)]
pub(super) fn image(q: i32, len: i32, overlap: i32) -> usize {
    let period = len - overlap;
    let stored = if q < 0 {
        q + period
    } else if q >= len {
        q - period
    } else {
        q
    };
    stored as usize
}

/// Computes the derivative at the places `first .. end` of a periodic line of `len` places that are
/// `stride` elements of `P` apart.
///
/// A window of `STEP + 2 * RADIUS` places is in registers. Each iteration loads the next `STEP`
/// places at once, computes as many points, and keeps the last `2 * RADIUS` places for the next.
///
/// # Safety
///
/// - `f` is readable and `df` writable at `q * stride` for every place q below
///   `len`; nobody writes `f` during the launch, nothing else accesses
///   `df[q * stride]` for `first <= q < end`.
/// - `end <= len < 2³¹ - 64`, `overlap <= 1`, `len >= RADIUS + overlap`.
/// - `STEP <= MAX_STEP`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn periodic_column<P: Points<Point = f32>, const STEP: usize>(
    weights: [f32; RADIUS],
    f: *const P,
    df: *mut P,
    stride: usize,
    len: i32,
    overlap: i32,
    first: i32,
    end: i32,
) {
    let radius = RADIUS as i32;
    let load = |q: i32| {
        // SAFETY: `image` returns a stored place, since q is at most RADIUS beyond either end.
        unsafe { load_readonly(f.add(image(q, len, overlap) * stride)) }
    };
    let mut window = [P::ZERO; MAX_STEP + 2 * RADIUS];
    unrolled::<{ 2 * RADIUS }>(|w| window[w] = load(first + w as i32 - radius));
    let mut p = first;
    // equivalent mutant (comparison): one more iteration, with no point left
    while p < end {
        keep_rolled();
        unrolled::<STEP>(|u| {
            // The last iteration may have fewer points: it loads its last place again.
            let ahead = (p + u as i32).min(end - 1) + radius;
            window[2 * RADIUS + u] = load(ahead);
        });
        unrolled::<STEP>(|u| {
            if p + (u as i32) < end {
                let center = RADIUS + u;
                let value = derivative(weights, |m| window[center + m], |m| window[center - m]);
                // SAFETY: first <= p + u < end.
                unsafe { store_streaming(df.add((p as usize + u) * stride), value) };
            }
        });
        unrolled::<{ 2 * RADIUS }>(|w| window[w] = window[w + STEP]);
        p += STEP as i32;
    }
}

/// The place in its row of the first point of vector number `vector`. The field has `points` points
/// in rows of `nx`, and a vector has `count`. For a vector beyond the field it is any place.
#[inline(always)]
pub(super) fn place_of(vector: usize, count: u32, points: usize, nx: u32) -> u32 {
    // equivalent mutant (guard: made `false`): the remainder of 64 bits is the same, but slower
    // equivalent mutant (comparison): as above
    if points <= u32::MAX as usize {
        // Wraps only if the vector is beyond the last.
        (vector as u32).wrapping_mul(count) % nx
    } else {
        (vector * count as usize % nx as usize) as u32
    }
}

/// The first vector of this thread and, for each of its [`X_VECTORS`] vectors, the place of its
/// first point in the row. The field, `points` points in rows of `nx`, is a sequence of vectors;
/// block b has the vectors from `b * X_BLOCK * X_VECTORS` on.
#[inline(always)]
pub(super) fn x_places<V: Points>(points: usize, nx: u32) -> (usize, [u32; X_VECTORS]) {
    let count = V::COUNT as u32;
    let first = thread::block_idx_x() as usize * (X_BLOCK as usize * X_VECTORS)
        + thread::thread_idx_x() as usize;
    let mut places = [0; X_VECTORS];
    places[0] = place_of(first, count, points, nx);
    // The distance to the thread's next vector, modulo whole rows.
    let step = X_BLOCK * count % nx;
    unrolled::<X_VECTORS>(|r| {
        if r > 0 {
            let place = places[r - 1] + step;
            places[r] = if place >= nx { place - nx } else { place };
        }
    });
    (first, places)
}

/// ∂f/∂x of the four points `own`, between the four before and the four behind them.
#[inline(always)]
pub(super) fn x_derivative(
    weights: [f32; RADIUS],
    before: Vector4,
    own: Vector4,
    behind: Vector4,
) -> Vector4 {
    let row = joined(before, own, behind);
    let difference = |e: usize, m: usize| row[RADIUS + e + m] - row[RADIUS + e - m];
    Vector4::of(|e| weighted_sum(|m| weights[m - 1], |m| difference(e, m)))
}

/// Loads four consecutive points at any alignment.
///
/// # Safety
///
/// They are readable, and nobody writes them during the launch.
#[inline(always)]
pub(super) unsafe fn gather(first: *const f32) -> Vector4 {
    // SAFETY: as the caller promises.
    Vector4::of(|e| unsafe { load_readonly(first.add(e)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_in_the_row_in_fields_of_any_size() {
        let check = |point: usize, points: usize, nx: u32| {
            for count in [1, 2, 4] {
                let vector = point / count as usize;
                let first = vector * count as usize;
                let place = place_of(vector, count, points, nx) as usize;
                assert_eq!(place, first % nx as usize, "{first} of {points} points");
            }
        };
        for nx in [7, 500, 1 << 20, (1 << 31) - 65] {
            for rows in [1, 2, 8, 9000, 1 << 31] {
                let points = rows * nx as usize;
                for point in [0, 6, points / 2, points - 5, points - 1] {
                    check(point, points, nx);
                }
            }
        }
    }
}
