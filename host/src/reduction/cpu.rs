//! The CPU port: wrapping sums of integers, sums of floats accumulated in f64.
//!
//! Written from the definition and not from the kernels, which are checked
//! against it. The input is cut into pieces of a fixed length, one task each, so
//! that the result depends neither on the number of threads nor on their timing.
#![forbid(unsafe_code)]

use rayon::prelude::*;

/// Elements per task: 256 KiB, which one core sums in tens of microseconds.
const PIECE: usize = 1 << 16;

/// Running sums per piece. One would wait for its own last addition at every
/// element; these fill vector registers and add side by side.
const LANES: usize = 16;

/// Types that the port sums.
pub trait Port: Sized {
    /// The sum of `values`.
    fn sum(values: &[Self]) -> Self;

    /// The sum of the partial sums that a kernel left, in their order.
    fn finish(partials: &[Self]) -> Self;
}

impl Port for i32 {
    fn sum(values: &[Self]) -> Self {
        values
            .par_chunks(PIECE)
            .map(Self::finish)
            .reduce(|| 0, Self::wrapping_add)
    }

    fn finish(partials: &[Self]) -> Self {
        partials
            .iter()
            .fold(0, |sum, &value| sum.wrapping_add(value))
    }
}

impl Port for f32 {
    fn sum(values: &[Self]) -> Self {
        let pieces: Vec<f64> = values.par_chunks(PIECE).map(sum_piece).collect();
        pieces.iter().sum::<f64>() as f32
    }

    fn finish(partials: &[Self]) -> Self {
        partials.iter().copied().map(f64::from).sum::<f64>() as Self
    }
}

/// The sum of a piece, in f64.
fn sum_piece(values: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    let mut rows = values.chunks_exact(LANES);
    for row in &mut rows {
        for (lane, &value) in lanes.iter_mut().zip(row) {
            *lane += f64::from(value);
        }
    }
    let rest: f64 = rows.remainder().iter().copied().map(f64::from).sum();
    lanes.iter().sum::<f64>() + rest
}
