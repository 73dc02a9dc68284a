//! The geometry and cost that launches of several kernels share.
//!
//! A problem has its bodies along x. For the kernels that write or add partial sums, y is the
//! number of rows of `n` sums.

use super::body::{Body, FLOPS_PER_INTERACTION_F32, FLOPS_PER_INTERACTION_F64};
use crate::registry::{Cost, Geometry, HasScalar, Problem, Refusal, Scalar, blocks_for};

/// Threads per block, unless the caller chooses.
///
/// At the default size of the textbook, 16384 bodies, this gives 128 blocks: about one for each
/// multiprocessor of a large GPU, with one warp for each of its four schedulers. Larger blocks
/// would leave half of the GPU idle.
pub const DEFAULT_BLOCK: u32 = 128;

/// The textbook's size.
pub const DEFAULT_N: usize = 16_384;

/// The textbook's bodies.
pub(super) const EXAMPLE: Problem = Problem::line(DEFAULT_N);

/// The same with two rows of sums.
pub(super) const EXAMPLE_IN_PARTS: Problem = Problem::plane(DEFAULT_N, 2);

/// The launch with a thread for each body.
pub(super) fn threads(kernel: &'static str, bodies: &Problem) -> Result<Geometry, Refusal> {
    blocks_of(bodies.block.unwrap_or(DEFAULT_BLOCK), kernel, bodies)
}

/// The launch with a thread for each body, in blocks of `block` threads.
pub(super) fn blocks_of(
    block: u32,
    kernel: &'static str,
    bodies: &Problem,
) -> Result<Geometry, Refusal> {
    let grid = blocks_for(kernel, bodies.extents[0], block as usize)?;
    Ok(Geometry::linear(grid, block))
}

/// The launch with a thread for each body, and a tile with a body of `T` for each thread.
pub(super) fn tiled<T>(kernel: &'static str, bodies: &Problem) -> Result<Geometry, Refusal> {
    let geometry = threads(kernel, bodies)?;
    let tile = geometry.block[0].saturating_mul(size_of::<Body<T>>() as u32);
    Ok(geometry.with_dynamic_shared_bytes(tile))
}

/// The launch with blocks of `block` threads along x, each for `per_block` bodies, and a row of
/// blocks along y for each part.
pub(super) fn in_parts(
    block: u32,
    per_block: usize,
    kernel: &'static str,
    bodies: &Problem,
) -> Result<Geometry, Refusal> {
    let [n, parts, _] = bodies.extents;
    let blocks = blocks_for(kernel, n, per_block)?;
    let parts = blocks_for(kernel, parts, 1)?;
    Ok(Geometry::new([blocks, parts, 1], [block, 1, 1]))
}

/// Floating-point operations that an interaction counts as.
#[must_use]
pub const fn flops_per_interaction<T: HasScalar>() -> u64 {
    match T::SCALAR {
        Scalar::F64 => FLOPS_PER_INTERACTION_F64,
        _ => FLOPS_PER_INTERACTION_F32,
    }
}

/// The number of interactions: n², each body with itself included.
#[must_use]
pub const fn interactions(bodies: &Problem) -> u64 {
    let n = bodies.extents[0] as u64;
    n.saturating_mul(n)
}

/// The cost of reading each body once and writing each acceleration once in each part.
#[must_use]
pub const fn accelerations<T: HasScalar>(bodies: &Problem) -> Cost {
    let row = bodies.extents[1].saturating_mul(size_of::<[T; 3]>());
    all_pairs::<T>(bodies, row, flops_per_interaction::<T>())
}

/// The cost of reading each body once, writing `out` bytes for each, and `flops` operations for
/// each interaction.
pub(super) const fn all_pairs<T>(bodies: &Problem, out: usize, flops: u64) -> Cost {
    let per_body = (size_of::<Body<T>>() as u64).saturating_add(out as u64);
    Cost {
        bytes: (bodies.extents[0] as u64).saturating_mul(per_body),
        flops: interactions(bodies).saturating_mul(flops),
    }
}

/// The cost of reading each body once and writing each potential once in f64.
///
/// A term takes seven operations less than an interaction: three products and four of the sum.
#[must_use]
pub const fn potentials<T: HasScalar>(bodies: &Problem) -> Cost {
    all_pairs::<T>(bodies, size_of::<f64>(), flops_per_interaction::<T>() - 7)
}
