//! The stencil with its coefficients in constant memory.
//!
//! Every lane of a warp reads the same word at the same time, which constant memory serves at once.
//! The multiply-adds take it as an operand and need no separate load.

use super::nine_point::{RADIUS, stencil1d};
use cuda_std::prelude::*;
use cuda_std::{address_space, externally_visible};

/// The coefficients: `[m - 1]` belongs to the neighbours `m` elements away.
///
/// Set by the host before a launch.
#[externally_visible]
#[address_space(constant)]
pub static mut STENCIL1D_COEFFICIENTS: [f32; RADIUS] = [0.0; RADIUS];

// The coefficients need no load of global memory. One load is for the tile, two are for its halos.
// gate stencil1d_constant: LDG = 3, STG = 1, FMUL = 1, FFMA = 3, LD = 0, ST = 0

/// The stencil, coefficients in constant memory.
///
/// `input` and `output`: `n` elements. Writes `output[4..n - 4]`.
///
/// # Safety
///
/// - `input` is readable and `output` writable for `n` elements; they do not
///   overlap. During the launch nobody writes `input`, and nothing else accesses
///   `output`.
/// - A one-dimensional grid of `ceil(n / block)` one-dimensional blocks of at
///   least 4 threads, with dynamic shared memory of `block + 8` elements.
/// - [`STENCIL1D_COEFFICIENTS`](value@STENCIL1D_COEFFICIENTS) is set.
#[kernel]
pub unsafe fn stencil1d_constant(input: *const f32, output: *mut f32, n: usize) {
    // SAFETY: the host writes the coefficients only between launches; m is 1 to
    // RADIUS. The rest is forwarded word for word.
    unsafe { stencil1d(input, output, n, |m| STENCIL1D_COEFFICIENTS[m - 1]) }
}

crate::register! {
    stencil1d_constant: f32, Textbook,
    "a tile in shared memory, the coefficients in constant memory",
    geometry: super::geometry::tiled,
    cost: super::geometry::cost,
    example: super::geometry::EXAMPLE,
    tile: "block + 8",
    twin: same,
}
