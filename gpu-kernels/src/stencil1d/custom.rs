//! A stencil on a line with any coefficients, up to eight neighbours on either side.
//!
//! ```text
//! antisymmetric  out[i] = Σ_m c_m (in[i+m] - in[i-m])                 1 <= m <= R
//! symmetric      out[i] = c_0 in[i] + Σ_m c_m (in[i+m] + in[i-m])
//! any            out[i] = c_0 in[i] + Σ_m (c_m in[i+m] + c_-m in[i-m])
//! ```
//!
//! for R <= i < n - R; the first and the last R elements of `out` are not written.
//!
//! - Shapes: `input` and `output` have n elements, f32 or f64; the 17 coefficients are in constant
//!   memory, as a launch parameter, with that of neighbour m at index 8 + m.
//! - Arithmetic: the first term is a product; a fused multiply-add adds each other one, nearest
//!   neighbours first, i+m before i-m. The CPU port does the same and gives the same bits.
//! - Threads: one for 32 bytes of output, 8 elements or 4, without shared memory or a barrier. A
//!   thread reads the vectors that its window touches: with R = 8 these are 6 of f32 or 10 of f64,
//!   mostly from the first-level cache, since neighbouring threads read them too.
//! - Near the ends, where a window extends beyond the array, elements are read and written one by
//!   one.
//!
//! Reads 4 or 8 bytes and writes as many per element; (3 R - 1) to (4 R + 1) flops.
//!
//! # What limits it
//!
//! - Bytes: an H200 moves 20 bytes per clock and multiprocessor, which is 2.5 elements of f32 or
//!   1.25 of f64. For each at R = 8 the first-level cache must deliver 12 or 40 bytes of its 128
//!   per clock, but in vectors 32 bytes apart, which halves that rate.
//! - Latency: each coefficient is loaded from constant memory after a uniform branch that tests it
//!   against the radius, up to 16 times in sequence. Two vectors per thread halve this cost per
//!   element and double the bytes that a warp has in flight.
//! - Instructions: for R = 8 in f32, 8 × 17 multiply-adds, 6 loads, 2 stores and about 80 others of
//!   32 lanes for 1024 bytes. Their transfer takes 102 clocks, in which 408 instructions fit. f64:
//!   68 multiply-adds at half the rate.

// gate stencil1d_custom_f32: registers <= 64, spills = 0, LDG.E.128 >= 6, STG.E.128 = 2, LDS = 0, LD = 0
// gate stencil1d_custom_f64: registers <= 96, spills = 0, LDG.E.128 >= 10, STG.E.128 = 2, LDS = 0, LD = 0

use crate::loops::unrolled;
use cuda_std::cache::load_readonly;
use cuda_std::prelude::*;
use cuda_std::{GpuFloat, launch_bounds};

/// The largest number of neighbours on either side.
pub const MAX_RADIUS: usize = 8;

/// The number of coefficients of the widest stencil.
pub const MAX_POINTS: usize = 2 * MAX_RADIUS + 1;

/// Threads of a block.
pub const CUSTOM_BLOCK: u32 = 64;

/// Vectors of 16 bytes that a thread writes.
const VECTORS: usize = 2;

/// Bytes that a thread writes.
pub const THREAD_BYTES: usize = 16 * VECTORS;

/// `form`: c_-m = -c_m; c_0 is not used.
pub const ANTISYMMETRIC: u32 = 0;

/// `form`: c_-m = c_m.
pub const SYMMETRIC: u32 = 1;

/// `form`: all coefficients are independent.
pub const ANY: u32 = 2;

/// The most elements that a thread writes.
const MAX_OWN: usize = THREAD_BYTES / 4;

/// The most elements of a thread's window: 8 of its own and 16 neighbours.
const WINDOW: usize = MAX_OWN + 2 * MAX_RADIUS;

/// An element type, f32 or f64, accessed 16 bytes at a time.
pub trait Line:
    GpuFloat
    + core::ops::Add<Output = Self>
    + core::ops::Sub<Output = Self>
    + core::ops::Mul<Output = Self>
{
    /// A vector of 16 bytes.
    type Vector: Copy;

    /// Elements per vector.
    const PER_VECTOR: usize;

    /// The value that replaces an element outside the array.
    const ZERO: Self;

    /// Element `i` of a vector.
    #[must_use]
    fn element(vector: Self::Vector, i: usize) -> Self;

    /// The vector of the first [`PER_VECTOR`](Self::PER_VECTOR) elements.
    #[must_use]
    fn vector(elements: [Self; 4]) -> Self::Vector;
}

/// Four f32.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub struct Four(f32, f32, f32, f32);

/// Two f64.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub struct Two(f64, f64);

impl Line for f32 {
    type Vector = Four;
    const PER_VECTOR: usize = 4;
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn element(vector: Four, i: usize) -> Self {
        [vector.0, vector.1, vector.2, vector.3][i]
    }

    #[inline(always)]
    fn vector([a, b, c, d]: [Self; 4]) -> Four {
        Four(a, b, c, d)
    }
}

impl Line for f64 {
    type Vector = Two;
    const PER_VECTOR: usize = 2;
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn element(vector: Two, i: usize) -> Self {
        [vector.0, vector.1][i]
    }

    #[inline(always)]
    fn vector([a, b, ..]: [Self; 4]) -> Two {
        Two(a, b)
    }
}

/// Declares entry points.
macro_rules! kernels {
    ($($name:ident of $type:ident;)*) => {$(
        /// The stencil on a line of `n` elements.
        ///
        /// `radius`: 1 to [`MAX_RADIUS`]; `form`: [`ANTISYMMETRIC`], [`SYMMETRIC`] or
        /// [`ANY`]; `coefficients`: that of neighbour m at index 8 + m.
        ///
        /// # Safety
        ///
        /// - `input` is readable and `output` writable for `n` elements, both are aligned
        ///   to 16 bytes and do not overlap. During the launch nobody writes `input`, and
        ///   nothing else accesses `output`.
        /// - A one-dimensional grid of one-dimensional blocks, with at least one thread for each
        ///   whole or partial [`THREAD_BYTES`] of `output`; no block has more than [`CUSTOM_BLOCK`]
        ///   threads.
        #[kernel]
        #[launch_bounds(CUSTOM_BLOCK)]
        pub unsafe fn $name(
            input: *const $type,
            output: *mut $type,
            n: usize,
            radius: u32,
            form: u32,
            #[grid_constant] coefficients: &[$type; MAX_POINTS],
        ) {
            // SAFETY: forwarded word for word.
            unsafe { stencil(input, output, n, radius, form, coefficients) }
        }
    )*};
}

kernels! {
    stencil1d_custom_f32 of f32;
    stencil1d_custom_f64 of f64;
}

macro_rules! registered {
    ($($name:ident of $type:ident;)*) => {$(
        crate::register! {
            $name: $type, Tuned,
            "any coefficients, up to eight neighbours on either side",
            geometry: |kernel, line| {
                let per_block = CUSTOM_BLOCK as usize * (THREAD_BYTES / size_of::<$type>());
                let grid = blocks_for(kernel, line.points(), per_block)?;
                Ok(Geometry::linear(grid, CUSTOM_BLOCK))
            },
            // The cost of the widest stencil with independent coefficients.
            cost: |line| {
                let flops = 4 * MAX_RADIUS as u64 + 1;
                super::geometry::inner_cost(line, MAX_RADIUS, size_of::<$type>(), flops)
            },
            example: super::geometry::EXAMPLE,
        }
    )*};
}

registered! {
    stencil1d_custom_f32 of f32;
    stencil1d_custom_f64 of f64;
}

/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn stencil<T: Line>(
    input: *const T,
    output: *mut T,
    n: usize,
    radius: u32,
    form: u32,
    coefficients: &[T; MAX_POINTS],
) {
    let block = thread::block_idx_x() as usize * thread::block_dim_x() as usize;
    // Elements that a thread writes.
    let own = VECTORS * T::PER_VECTOR;
    let first = (block + thread::thread_idx_x() as usize) * own;
    // equivalent mutant (comparison): there is no element n, and nothing is written
    if first >= n {
        return;
    }
    let reach = radius as usize;
    // Cell c of the window is element `first + c - 8`.
    let mut window = [T::ZERO; WINDOW];
    // equivalent mutant (literal): the window has room, and no sum uses the cells behind
    // equivalent mutant (width: `MAX_RADIUS + 1`): as above
    let cells = own + 2 * MAX_RADIUS;
    // equivalent mutant (comparison): without vectors the elements are read one by one
    // equivalent mutant (width: `MAX_RADIUS + 1`): as above
    // equivalent mutant (width: in `first >= MAX_RADIUS`): `first` is a multiple of 4
    // equivalent mutant (width: in `first + own + MAX_RADIUS`): the cells that no sum uses are in
    // the last vector's 16 bytes
    let whole = first >= MAX_RADIUS && first + own + MAX_RADIUS <= n;
    // equivalent mutant (guard): without vectors the elements are read one by one
    if whole {
        // SAFETY: all cells are elements of the line; `first` and 8 are multiples of a
        // vector's elements, so the vectors are aligned.
        unsafe {
            let vectors = input.add(first - MAX_RADIUS).cast::<T::Vector>();
            unrolled::<10>(|v| {
                let cell = v * T::PER_VECTOR;
                // Vectors that no coefficient needs are not read.
                // equivalent mutant (comparison): reads more of the window
                // equivalent mutant (logic): reads more of the window
                // equivalent mutant (width: `MAX_RADIUS - 1`): reads more of the window
                let wanted = cell + T::PER_VECTOR + reach > MAX_RADIUS
                    // equivalent mutant (comparison): reads more, up to the window's end
                    // equivalent mutant (width: `MAX_RADIUS + 1`): reads more
                    && cell < MAX_RADIUS + own + reach;
                // equivalent mutant (comparison): wanted vectors are in the window
                // equivalent mutant (logic): reads more of the window
                if cell < cells && wanted {
                    let vector = load_readonly(vectors.add(v));
                    unrolled::<4>(|i| {
                        if i < T::PER_VECTOR {
                            window[cell + i] = T::element(vector, i);
                        }
                    });
                }
            });
        }
    } else {
        unrolled::<WINDOW>(|cell| {
            let element = first + cell;
            // equivalent mutant (comparison: `cell < cells`): the window has room, and no sum uses
            // the cell
            if cell < cells && element >= MAX_RADIUS && element - MAX_RADIUS < n {
                // SAFETY: an element of the line.
                window[cell] = unsafe { load_readonly(input.add(element - MAX_RADIUS)) };
            }
        });
    }

    let mut sums = [T::ZERO; MAX_OWN];
    let here = |i: usize, offset: usize| window[i + offset];
    if form == ANTISYMMETRIC {
        unrolled::<MAX_RADIUS>(|k| {
            let m = k + 1;
            if m <= reach {
                let weight = coefficients[MAX_RADIUS + m];
                unrolled::<MAX_OWN>(|i| {
                    // equivalent mutant (guard: `true`): sums that are not written
                    // equivalent mutant (comparison): sums that are not written
                    if i < own {
                        let difference = here(i, MAX_RADIUS + m) - here(i, MAX_RADIUS - m);
                        sums[i] = if k == 0 {
                            weight * difference
                        } else {
                            difference.mul_add(weight, sums[i])
                        };
                    }
                });
            }
        });
    } else {
        unrolled::<MAX_OWN>(|i| {
            // equivalent mutant (guard: `true`): sums that are not written
            // equivalent mutant (comparison): sums that are not written
            if i < own {
                sums[i] = coefficients[MAX_RADIUS] * here(i, MAX_RADIUS);
            }
        });
        unrolled::<MAX_RADIUS>(|k| {
            let m = k + 1;
            if m <= reach {
                let (ahead, behind) = (coefficients[MAX_RADIUS + m], coefficients[MAX_RADIUS - m]);
                unrolled::<MAX_OWN>(|i| {
                    // equivalent mutant (guard: `true`): sums that are not written
                    // equivalent mutant (comparison): sums that are not written
                    if i < own {
                        let (next, before) = (here(i, MAX_RADIUS + m), here(i, MAX_RADIUS - m));
                        sums[i] = if form == SYMMETRIC {
                            (next + before).mul_add(ahead, sums[i])
                        } else {
                            before.mul_add(behind, next.mul_add(ahead, sums[i]))
                        };
                    }
                });
            }
        });
    }

    // SAFETY: only this thread writes these elements of the line; the vector is aligned as above.
    unsafe {
        // equivalent mutant (comparison): without vectors the elements are written one by one
        // equivalent mutant (guard: `false`): as above
        if first >= reach && first + own + reach <= n {
            unrolled::<VECTORS>(|v| {
                let mut elements = [T::ZERO; 4];
                unrolled::<4>(|i| {
                    // equivalent mutant (guard): the array has room for four values; f64 uses two
                    // equivalent mutant (comparison): as above
                    if i < T::PER_VECTOR {
                        elements[i] = sums[v * T::PER_VECTOR + i];
                    }
                });
                *output.add(first).cast::<T::Vector>().add(v) = T::vector(elements);
            });
        } else {
            unrolled::<MAX_OWN>(|i| {
                let element = first + i;
                if i < own && element >= reach && element + reach < n {
                    *output.add(element) = sums[i];
                }
            });
        }
    }
}
