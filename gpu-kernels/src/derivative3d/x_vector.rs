//! ∂f/∂x with 16 bytes per load and neighbours from shuffles.
//!
//! - The field is a sequence of vectors of 4 points, regardless of rows: thread t of block b has
//!   the vectors `b * X_BLOCK * X_VECTORS + t` and every [`X_BLOCK`]-th after it, [`X_VECTORS`] in
//!   all. Neighbouring lanes have neighbouring vectors.
//! - The stencil reaches 4 points to either side, which is one vector: a lane needs its own vector
//!   and those of the previous and the next lane, which take 8 shuffles. No shared memory, no
//!   barrier.
//! - The first and the last lane of a warp load the vector that no lane of the warp has. The first
//!   and the last vector of a row use the periodic image instead, 4 points loaded one by one, since
//!   they are not aligned if an end point is stored twice.
//! - All loads of a thread come before its first store. Stores are streaming: written points are
//!   not read again, while loaded points may be, by the neighbouring warp.
//!
//! # What limits it
//!
//! - Bytes: 4 in and 4 out per point; the additional loads at a warp's ends, 2 in 32, nearly all
//!   hit a cache.
//! - Instructions per vector: 32 of arithmetic, 8 shuffles, a load and a store, about 30 for the
//!   ends of rows and the index: 75 for 32 bytes. At 18 bytes per clock and multiprocessor (4.3
//!   TB/s on 132 of them) the vectors of a warp take 57 clocks, in which 228 instructions can be
//!   issued. Predicted: the speed of a copy.
//!
//! Measurements and other variants: `docs/tuning/derivative3d.md`.
//!
//! [`derivative3d_x_vector4()`] is for rows of a multiple of 4 points, so every row begins with a
//! vector. [`x_unaligned`](super::x_unaligned) is for other rows.

use super::stencil::{RADIUS, X_BLOCK, X_VECTORS, gather, x_derivative, x_places};
use crate::loops::unrolled;
use crate::vector::{Points, Vector4, WARP, from_lanes};
use cuda_std::cache::{load_readonly, store_streaming};
use cuda_std::launch_bounds;
use cuda_std::prelude::*;

// gate derivative3d_x_vector4: registers <= 48, spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_x_vector4: LDG.E.128 = 6, STG.E.EF.128 = 2, SHFL = 16, FMUL = 8, FFMA = 24

/// ∂f/∂x, 4 points per access, for rows of a multiple of 4 points.
///
/// `f` and `df`: `points` elements, rows of `nx`. `overlap` is 1 if both end points of the period
/// are stored, else 0. `weights`: over the spacing, those of the nearest neighbours first.
///
/// # Safety
///
/// - `f` is readable and `df` writable for `points` elements, both aligned to 16
///   bytes; they do not overlap, nobody writes `f` and nothing else accesses `df`
///   during the launch.
/// - `nx` is a multiple of 4, `points` a multiple of `nx`.
/// - A one-dimensional grid of `ceil(points / (4 * X_BLOCK * X_VECTORS))` blocks of
///   `X_BLOCK` threads.
/// - `overlap <= 1`, `nx >= 4 + overlap`, `nx < 2³¹`.
#[kernel]
#[launch_bounds(X_BLOCK)]
pub unsafe fn derivative3d_x_vector4(
    f: *const f32,
    df: *mut f32,
    points: usize,
    nx: u32,
    overlap: u32,
    weights: [f32; RADIUS],
) {
    let lane = thread::thread_idx_x() % WARP;
    let (first, places) = x_places::<Vector4>(points, nx);
    let vectors = points / Vector4::COUNT;
    let vector = |r: usize| first + r * X_BLOCK as usize;
    // Whether vector `r` is the first or the last of its row.
    let begins = |r: usize| places[r] == 0;
    let ends = |r: usize| places[r] + Vector4::COUNT as u32 == nx;
    let period = (nx - overlap) as usize;
    let source = f.cast::<Vector4>();

    // SAFETY: loads are of vectors below `vectors`. A row has nx >= 4 + overlap points, so the
    // image of its first vector, 4 points ending `overlap` before the row's end, is in it; likewise
    // that of its last vector. A vector that does not begin its row has one before it, one that
    // does not end it one behind it. All lanes shuffle. Threads own different vectors of df.
    unsafe {
        let mut own = [Vector4::ZERO; X_VECTORS];
        let mut before = own;
        let mut behind = own;
        unrolled::<X_VECTORS>(|r| {
            if vector(r) < vectors {
                own[r] = load_readonly(source.add(vector(r)));
            }
        });
        unrolled::<X_VECTORS>(|r| {
            let v = vector(r);
            if v < vectors {
                let point = v * Vector4::COUNT;
                if begins(r) {
                    before[r] = gather(f.add(point + period - Vector4::COUNT));
                // equivalent mutant (guard): other lanes do not read theirs
                } else if lane == 0 {
                    before[r] = load_readonly(source.add(v - 1));
                }
                if ends(r) {
                    behind[r] = gather(f.add(point + Vector4::COUNT - period));
                // equivalent mutant (guard): as above
                } else if lane == WARP - 1 {
                    behind[r] = load_readonly(source.add(v + 1));
                }
            }
        });
        unrolled::<X_VECTORS>(|r| {
            let (mut left, mut right) = from_lanes(own[r]);
            if begins(r) || lane == 0 {
                left = before[r];
            }
            if ends(r) || lane == WARP - 1 {
                right = behind[r];
            }
            if vector(r) < vectors {
                let value = x_derivative(weights, left, own[r], right);
                store_streaming(df.cast::<Vector4>().add(vector(r)), value);
            }
        });
    }
}

crate::register! {
    derivative3d_x_vector4: f32, Tuned,
    "∂f/∂x, 16-byte accesses, neighbours from other lanes",
    geometry: super::geometry::vectors::<f32>,
    cost: super::geometry::first_derivative::<f32>,
    example: super::geometry::EXAMPLE,
    restrictions: "nx is a multiple of 4",
}
