//! The stencil with its coefficients read through the read-only data cache.
//!
//! They are in global memory and loaded with `ld.global.nc`: the loads need no coherence, since
//! nobody writes the coefficients while the kernel runs. After the first warps they hit the cache.
//! All lanes of a warp load the same word in one request, but unlike a constant it needs a load and
//! a register.

use super::nine_point::stencil1d;
use cuda_std::cache::load_readonly;
use cuda_std::prelude::*;

// gate stencil1d_readonly: LDG = 7, LDG.E.CONSTANT = 4, STG = 1, FFMA = 3, LD = 0, ST = 0

/// The stencil, coefficients through the read-only data cache.
///
/// `input` and `output`: `n` elements; `coefficients`: 4, of which `[m - 1]`
/// belongs to the neighbours `m` elements away. Writes `output[4..n - 4]`.
///
/// # Safety
///
/// - `input` is readable and `output` writable for `n` elements, `coefficients`
///   readable for 4; `output` overlaps neither. During the launch nobody writes
///   `input` or `coefficients`, and nothing else accesses `output`.
/// - A one-dimensional grid of `ceil(n / block)` one-dimensional blocks of at
///   least 4 threads, with dynamic shared memory of `block + 8` elements.
#[kernel]
pub unsafe fn stencil1d_readonly(
    input: *const f32,
    output: *mut f32,
    coefficients: *const f32,
    n: usize,
) {
    // SAFETY: there are RADIUS coefficients, which nobody writes. The rest is
    // forwarded word for word.
    unsafe {
        // The coefficients are loaded before the tile, so both are in flight together.
        let c1 = load_readonly(coefficients);
        let c2 = load_readonly(coefficients.add(1));
        let c3 = load_readonly(coefficients.add(2));
        let c4 = load_readonly(coefficients.add(3));
        stencil1d(input, output, n, |m| [c1, c2, c3, c4][m - 1]);
    }
}

crate::register! {
    stencil1d_readonly: f32, Textbook,
    "a tile in shared memory, the coefficients through the read-only data cache",
    geometry: super::geometry::tiled,
    cost: super::geometry::cost,
    example: super::geometry::EXAMPLE,
    tile: "block + 8",
    twin: same,
}
