//! A reaction and diffusion of two substances, after Gray and Scott.
//!
//! `∂u/∂t = D_u ∇²u - u v² + F (1 - u)` and `∂v/∂t = D_v ∇²v + u v² - (F + k) v`,
//! in explicit steps of length 1 on a grid of spacing 1, periodic along both axes.
//! J. E. Pearson, "Complex Patterns in a Simple System", Science 261 (1993).

#![no_std]

use cuda_std::prelude::*;

/// What the pattern depends on.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Reaction {
    /// How fast u diffuses, in grid spacings squared per step.
    pub diffusion_u: f32,
    /// How fast v diffuses.
    pub diffusion_v: f32,
    /// F, the rate at which u is fed.
    pub feed: f32,
    /// k, the rate at which v decays besides.
    pub kill: f32,
}

/// Threads of a block along x and y.
pub const BLOCK: u32 = 16;

/// One step from `u`, `v` to `new_u`, `new_v`; a thread per point.
///
/// # Safety
///
/// - All four hold `nx * ny` elements, x fastest; the outputs overlap nothing else.
/// - `nx` and `ny` are at least 1 and their product at most `i32::MAX`.
/// - Blocks of `(16, 16)` threads, grid `(ceil(nx / 16), ceil(ny / 16))`.
#[kernel]
pub unsafe fn gray_scott(
    u: *const f32,
    v: *const f32,
    new_u: *mut f32,
    new_v: *mut f32,
    nx: u32,
    ny: u32,
    reaction: Reaction,
) {
    let i = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let j = thread::block_idx_y() * BLOCK + thread::thread_idx_y();
    if i >= nx || j >= ny {
        return;
    }
    let at = |i: u32, j: u32| (j * nx + i) as usize;
    let neighbours = [
        at(if i == 0 { nx - 1 } else { i - 1 }, j),
        at(if i == nx - 1 { 0 } else { i + 1 }, j),
        at(i, if j == 0 { ny - 1 } else { j - 1 }),
        at(i, if j == ny - 1 { 0 } else { j + 1 }),
    ];
    // SAFETY: point (i, j) and its neighbours, taken round the edges, lie in the
    // fields, and each thread writes its own point.
    unsafe {
        let here = at(i, j);
        let (u0, v0) = (*u.add(here), *v.add(here));
        let laplacian = |field: *const f32, center: f32| {
            let [west, east, south, north] = neighbours.map(|there| *field.add(there));
            (west + east) + (south + north) - 4.0 * center
        };
        let eaten = u0 * v0 * v0;
        let fed = reaction.feed * (1.0 - u0);
        let gone = (reaction.feed + reaction.kill) * v0;
        *new_u.add(here) = u0 + (reaction.diffusion_u * laplacian(u, u0) - eaten + fed);
        *new_v.add(here) = v0 + (reaction.diffusion_v * laplacian(v, v0) + eaten - gone);
    }
}
