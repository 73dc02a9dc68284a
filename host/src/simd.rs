//! The processor's widest vectors, chosen when the program runs, and the loop that
//! several CPU ports have in common.
//!
//! A program built for any x86-64 may use neither AVX nor fused multiply-adds, and
//! a `mul_add` is then a call of a function. The CPU ports run their loops inside
//! [`vectorised`] instead, which compiles them once per instruction set.

/// Calls `work`, compiled for the best instruction set that this processor has.
///
/// Only what is inlined into `work` profits: it and what it calls in its loops
/// must be `#[inline(always)]`. No operation changes its result: a `mul_add` is
/// rounded once on every processor, and nothing else is ever fused.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Work(work))
}

/// Work that is inlined whatever its size. Where a closure that may be called again is
/// called as one that may not, the compiler puts a function in between, which is not
/// `#[inline(always)]`: a long closure stays outside of the code for the instruction set.
struct Work<F>(F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// `out[i] = Σ weights[m-1] · (ahead[m-1][i] - behind[m-1][i])`, the nearest first:
/// one product, then fused multiply-adds. The rows are at least as long as `out`.
pub(crate) fn antisymmetric<const R: usize>(
    out: &mut [f32],
    weights: [f32; R],
    ahead: [&[f32]; R],
    behind: [&[f32]; R],
) {
    vectorised(
        #[inline(always)]
        || antisymmetric_loop(out, weights, ahead, behind),
    );
}

// A function, not a loop in the closure: that its arguments are different memory
// is known from their types, and without that nothing is vectorised.
#[inline(always)]
fn antisymmetric_loop<const R: usize>(
    out: &mut [f32],
    weights: [f32; R],
    ahead: [&[f32]; R],
    behind: [&[f32]; R],
) {
    let n = out.len();
    // Of one length for all to see: no bound is checked in the loop.
    let (ahead, behind) = (ahead.map(|row| &row[..n]), behind.map(|row| &row[..n]));
    for i in 0..n {
        out[i] = antisymmetric_at(weights, |m| ahead[m - 1][i] - behind[m - 1][i]);
    }
}

/// `Σ weights[m-1] · difference(m)`, in the order of [`antisymmetric`].
#[inline(always)]
fn antisymmetric_at<const R: usize>(weights: [f32; R], difference: impl Fn(usize) -> f32) -> f32 {
    let mut sum = weights[0] * difference(1);
    for m in 2..=R {
        sum = difference(m).mul_add(weights[m - 1], sum);
    }
    sum
}
