//! The processor's widest vectors, chosen when the program runs.
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
