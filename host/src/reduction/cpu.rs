//! The host's part of the textbook sums.
#![forbid(unsafe_code)]

/// Types of which there are textbook sums.
pub trait Finish: Sized {
    /// The sum of the partial sums that a kernel left, in their order.
    fn finish(partials: &[Self]) -> Self;
}

impl Finish for i32 {
    fn finish(partials: &[Self]) -> Self {
        partials
            .iter()
            .fold(0, |sum, &value| sum.wrapping_add(value))
    }
}

impl Finish for f32 {
    fn finish(partials: &[Self]) -> Self {
        partials.iter().copied().map(f64::from).sum::<f64>() as Self
    }
}
