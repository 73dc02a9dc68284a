//! Array operations that solvers need between operators.
//!
//! | kernels | |
//! |---|---|
//! | [`axpby`] | `y ← a x + b y` |
//! | [`clamp`] | `y ← min(max(y, low), high)` |
//! | [`difference`] | the largest `|x - y|` |
//! | [`put`] | `y[at[n]] ← values[n]` |
//!
//! The first two have a thread for each vector of 16 bytes, which it loads and stores whole; the
//! last vector may be partial and is then processed element by element. They move each byte once:
//! the speed of a copy is their limit.

pub mod axpby;
pub mod clamp;
pub mod difference;
mod geometry;
mod number;
pub mod put;

pub use geometry::BLOCK;
pub use number::Number;

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
        put::elementwise_put_f32,
        put::elementwise_put_f64,
    ],
};
