//! The processor's widest vectors, chosen when the program runs, stores that go past its
//! caches, and the loop that several CPU ports have in common.
//!
//! A program built for any x86-64 may use neither AVX nor fused multiply-adds, and
//! a `mul_add` is then a call of a function. The CPU ports run their loops inside
//! [`vectorised`] instead, which compiles them once per instruction set.

use bytemuck::Pod;

/// Calls `work`, compiled for the best instruction set that this processor has.
///
/// Only what is inlined into `work` profits: it and what it calls in its loops
/// must be `#[inline(always)]`. No operation changes its result: a `mul_add` is
/// rounded once on every processor, and nothing else is ever fused.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Bytes of a result from which on it is worth writing past the caches: it will not be in
/// them when it is read. A result that a third-level cache holds is better written there.
pub(crate) const STREAMED_FROM: usize = 32 << 20;

/// Copies `from` to `to`, of one length, past the caches where the processor can.
///
/// A plain store reads the line that it writes into a cache first, which is a third of the
/// traffic of a stencil that reads a field and writes another.
pub(crate) fn stream<T: Pod>(to: &mut [T], from: &[T]) {
    assert_eq!(to.len(), from.len(), "a copy is as long as what is copied");
    #[cfg(target_arch = "x86_64")]
    {
        let from: &[u8] = bytemuck::cast_slice(from);
        let to: &mut [u8] = bytemuck::cast_slice_mut(to);
        stream_bytes(to, from);
    }
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

/// As [`stream`]: 16 bytes at a time, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
fn stream_bytes(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const VECTOR: usize = size_of::<__m128i>();
    let head = to.as_ptr().align_offset(VECTOR).min(to.len());
    let (to_head, to) = to.split_at_mut(head);
    let (from_head, from) = from.split_at(head);
    to_head.copy_from_slice(from_head);
    let (to, to_tail) = to.as_chunks_mut::<VECTOR>();
    let (from, from_tail) = from.as_chunks::<VECTOR>();
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: both are 16 bytes, and `to` begins at a multiple of 16 bytes, since the
        // chunks before it are as long and the first is where `align_offset` said. Nobody
        // reads it before the fence below: `to` is borrowed until then.
        unsafe {
            let vector = _mm_loadu_si128(from.as_ptr().cast());
            _mm_stream_si128(to.as_mut_ptr().cast(), vector);
        }
    }
    to_tail.copy_from_slice(from_tail);
    // SAFETY: every x86-64 has it. It is needed because stores that go past the caches are
    // ordered by nothing else, not even by what hands the field to another thread.
    unsafe { _mm_sfence() };
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
pub(crate) fn antisymmetric_at<const R: usize>(
    weights: [f32; R],
    difference: impl Fn(usize) -> f32,
) -> f32 {
    let mut sum = weights[0] * difference(1);
    for m in 2..=R {
        sum = difference(m).mul_add(weights[m - 1], sum);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streamed_copy_is_a_copy_wherever_it_begins() {
        let from: Vec<u16> = (0..300).collect();
        for begin in 0..9 {
            for len in (0..20).chain([255, 291]) {
                let mut to = vec![u16::MAX; 300];
                stream(&mut to[begin..begin + len], &from[3..3 + len]);
                for (i, &value) in to.iter().enumerate() {
                    let copied = (begin..begin + len).contains(&i);
                    let expected = if copied {
                        from[3 + i - begin]
                    } else {
                        u16::MAX
                    };
                    assert_eq!(value, expected, "{len} from {begin}, element {i}");
                }
            }
        }
    }
}
