//! The 2-D heat equation's steady state by Jacobi iteration.
//!
//! ```text
//! new(i, j) = ((E + W) + (N + S)) * 0.25
//! E = old(i+1, j)   W = old(i-1, j)   N = old(i, j+1)   S = old(i, j-1)
//! ```
//!
//! for every interior point of an `nx` × `ny` field, x fastest: point (i, j) is
//! element `j * nx + i`. The outermost points are the walls; no kernel writes
//! them. This is the five-point discretisation of Laplace's equation on square
//! cells, solved by Jacobi's method (LeVeque, "Finite Difference Methods for
//! Ordinary and Partial Differential Equations", SIAM 2007, sections 3.2 and
//! 4.1). One launch is one sweep; the host exchanges the two buffers.
//!
//! # The teaching kernels
//!
//! Each point is read by its four neighbours. What differs is where they find it:
//!
//! | kernel | a block's tile | points it writes |
//! |---|---|---|
//! | [`global`] | none: four loads from global memory per point | 16 × 16 |
//! | [`shared_core`] | 16 × 16 in shared memory; what lies beyond it is read from global memory | 16 × 16 |
//! | [`shared_overlap`] | 16 × 16, blocks overlap by 2 | the inner 14 × 14 |
//! | [`shared_halo`] | 18 × 18, loaded by 256 threads in two rounds | 16 × 16 |
//! | [`texture`] | none: four fetches through the texture cache | 16 × 16 |
//!
//! All five add in the order of the formula, three additions and one
//! multiplication per point, and give the same bits as the CPU port. Swapping
//! north and south, or east and west, changes no bit either: addition commutes.
//!
//! Least traffic per sweep: 4 bytes in per point and 4 bytes out per interior
//! point; 4 flops per interior point.

pub mod global;
pub mod shared_core;
pub mod shared_halo;
pub mod shared_overlap;
pub mod texture;

/// Threads of a block along x, and along y.
pub const BLOCK: u32 = 16;

/// How far the stencil reaches to either side, in points.
pub const HALO: u32 = 1;

/// Points per axis that a block of the overlapping kernel writes, and how far
/// its neighbour's tile is from its own.
pub const OVERLAP_STEP: u32 = BLOCK - 2 * HALO;

/// Points per axis of the tile with halo.
pub const HALO_TILE: u32 = BLOCK + 2 * HALO;

/// The new value of a point from its neighbours' old ones.
///
/// 3 additions and 1 multiplication: 4 flops. The order is part of the
/// definition.
#[inline(always)]
fn average(east: f32, west: f32, north: f32, south: f32) -> f32 {
    ((east + west) + (north + south)) * 0.25
}

/// [`average`] of the neighbours of `center` in an array whose rows lie `pitch`
/// elements apart.
///
/// # Safety
///
/// The four neighbours are readable, and nobody writes them at the same time.
#[inline(always)]
unsafe fn stencil(center: *const f32, pitch: u32) -> f32 {
    let pitch = pitch as usize;
    // SAFETY: these are the four neighbours.
    unsafe {
        average(
            *center.add(1),
            *center.sub(1),
            *center.add(pitch),
            *center.sub(pitch),
        )
    }
}

/// The element of point (i, j). 64-bit: a field may have more than 2³² points.
#[inline(always)]
const fn element(i: u32, j: u32, nx: u32) -> usize {
    j as usize * nx as usize + i as usize
}

/// Whether a point `p` of `n` along an axis is neither the first, nor the last,
/// nor beyond.
#[inline(always)]
const fn is_inner(p: u32, n: u32) -> bool {
    p >= 1 && p < n - 1
}
