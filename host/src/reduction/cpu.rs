//! The host's part of the textbook sums: adds the sums that a kernel leaves.
#![forbid(unsafe_code)]

/// Adds with wrapping on overflow.
pub(super) fn finish_i32(sums: &[i32]) -> i32 {
    sums.iter().fold(0, |sum, &value| sum.wrapping_add(value))
}

/// Adds in f64, in order, and rounds once.
pub(super) fn finish_f32(sums: &[f32]) -> f32 {
    sums.iter().copied().map(f64::from).sum::<f64>() as f32
}
