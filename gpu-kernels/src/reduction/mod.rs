//! Parallel sum: the textbook ladder of four steps, for `i32` and `f32`.
//!
//! A block adds its elements in pairs, which halves their number at each step, and writes one
//! partial sum; the host adds the partial sums. With a block of 8 threads, elements denoted by
//! their indices:
//!
//! ```text
//! 0      1      2      3      4   5   6   7
//! 04     15     26     37                       half = 4
//! 0426   1537                                   half = 2
//! 04261537                                      half = 1
//! ```
//!
//! The threads that add are always consecutive, so whole warps drop out, and their reads and writes
//! are contiguous (Harris, "Optimizing parallel reduction in CUDA", 2007: sequential addressing).
//!
//! # The teaching kernels
//!
//! | kernel | memory of the steps | elements per block |
//! |---|---|---|
//! | [`global`] | the input itself, in global memory | `block` |
//! | [`shared`] | static shared memory | `block` |
//! | [`shared_unroll4`] | the same, after each thread has added 4 elements | `4 * block` |
//! | [`shared_unroll4_dynamic`] | the same in dynamic shared memory | `4 * block` |
//!
//! Each exists for both types, with the type as a suffix of its name. All take
//! blocks of 32, 64, … 1024 threads and any number of elements from 1.
//!
//! # Order of the additions
//!
//! `i32` wraps around on overflow, so every order gives the same sum. For `f32` the order is the
//! one drawn above, preceded by `((a + b) + c) + d` over the four elements of a thread; it depends
//! only on the number of elements and on the block. Each element passes through at most
//! [`additions`] additions. NaN and infinities propagate as in IEEE 754. A partial sum of zeros
//! alone may have either sign.

pub mod arg_extremum;
pub mod dot;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
pub mod global;
pub mod moment;
pub mod operator;
pub mod partition;
pub mod shared;
pub mod shared_unroll4;
pub mod shared_unroll4_dynamic;
pub mod single_pass;
mod tree;

pub use tree::{Addable, MAX_BLOCK, MIN_BLOCK, UNROLL, additions};

/// The family's kernels.
///
/// Where integers with and without a sign have the same bits, one entry point serves both
/// types and has the type of its arguments.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "reduction",
    computes: "sums, extrema and where they are, moments and dot products",
    kernels: crate::entries![
        global::reduction_global_i32,
        global::reduction_global_f32,
        shared::reduction_shared_i32,
        shared::reduction_shared_f32,
        shared_unroll4::reduction_shared_unroll4_i32,
        shared_unroll4::reduction_shared_unroll4_f32,
        shared_unroll4_dynamic::reduction_shared_unroll4_dynamic_i32,
        shared_unroll4_dynamic::reduction_shared_unroll4_dynamic_f32,
        single_pass::reduction_single_pass_sum_i32,
        single_pass::reduction_single_pass_sum_i64,
        single_pass::reduction_single_pass_sum_f32,
        single_pass::reduction_single_pass_sum_f64,
        single_pass::reduction_single_pass_min_i32,
        single_pass::reduction_single_pass_min_u32,
        single_pass::reduction_single_pass_min_i64,
        single_pass::reduction_single_pass_min_u64,
        single_pass::reduction_single_pass_min_f32,
        single_pass::reduction_single_pass_min_f64,
        single_pass::reduction_single_pass_max_i32,
        single_pass::reduction_single_pass_max_u32,
        single_pass::reduction_single_pass_max_i64,
        single_pass::reduction_single_pass_max_u64,
        single_pass::reduction_single_pass_max_f32,
        single_pass::reduction_single_pass_max_f64,
        moment::reduction_moment_i32,
        moment::reduction_moment_u32,
        moment::reduction_moment_i64,
        moment::reduction_moment_u64,
        moment::reduction_moment_f32,
        moment::reduction_moment_f64,
        dot::reduction_dot_i32,
        dot::reduction_dot_u32,
        dot::reduction_dot_i64,
        dot::reduction_dot_f32,
        dot::reduction_dot_f64,
        arg_extremum::reduction_arg_extremum_u32,
        arg_extremum::reduction_arg_extremum_u64,
        arg_extremum::reduction_arg_extremum_f32,
        arg_extremum::reduction_arg_extremum_f64,
    ],
};
