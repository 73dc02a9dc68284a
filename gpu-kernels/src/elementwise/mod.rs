//! What solvers do with arrays between their operators.
//!
//! | kernels | |
//! |---|---|
//! | [`axpby`] | `y ← a x + b y` |
//! | [`clamp`] | `y ← min(max(y, low), high)` |
//! | [`difference`] | the largest `|x - y|` |
//!
//! The first two have a thread for each vector of 16 bytes and one access for it; the last
//! vector, which may not be whole, is taken element by element. They move what they have to,
//! once: the copy is their limit.

pub mod axpby;
pub mod clamp;
pub mod difference;
mod number;

pub use number::Number;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// 16 MiB of f32.
#[cfg(not(target_arch = "nvptx64"))]
const EXAMPLE: crate::registry::Problem = crate::registry::Problem::line(1 << 22);

/// A thread for each vector of 16 bytes.
#[cfg(not(target_arch = "nvptx64"))]
fn vectors<T>(
    kernel: &'static str,
    line: &crate::registry::Problem,
) -> Result<crate::registry::Geometry, crate::registry::Refusal> {
    let elements = BLOCK as usize * 16 / size_of::<T>();
    let blocks = crate::registry::blocks_for(kernel, line.points(), elements)?;
    Ok(crate::registry::Geometry::linear(blocks, BLOCK))
}

/// So many accesses and operations for each element.
#[cfg(not(target_arch = "nvptx64"))]
const fn cost<T>(
    line: &crate::registry::Problem,
    accesses: u64,
    flops: u64,
) -> crate::registry::Cost {
    let elements = line.points() as u64;
    crate::registry::Cost {
        bytes: elements.saturating_mul(accesses * size_of::<T>() as u64),
        flops: elements.saturating_mul(flops),
    }
}

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "elementwise",
    computes: "updates of arrays, element by element",
    kernels: crate::entries![
        axpby::elementwise_axpby_f32,
        axpby::elementwise_axpby_f64,
        clamp::elementwise_clamp_f32,
        clamp::elementwise_clamp_f64,
        difference::elementwise_difference_f32,
        difference::elementwise_difference_f64,
    ],
};
