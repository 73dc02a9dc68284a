//! Sums integers, whose sum does not depend on the order of additions.

use super::share::SHARE_BYTES;
use crate::simd::vectorised;
use crate::threads;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements of a piece.
const PIECE: usize = 1 << 14;

/// The sum, modulo 2⁶⁴, of `sum(range)` over all pieces of an array of `len` elements of `size`
/// bytes.
pub(super) fn sum_of_pieces(
    len: usize,
    size: usize,
    sum: impl Fn(std::ops::Range<usize>) -> u64 + Sync,
) -> u64 {
    let threads = threads::worth(len.saturating_mul(size), SHARE_BYTES);
    let all = AtomicU64::new(0);
    threads::share(threads, len.div_ceil(PIECE), |mine| {
        let mut of_mine = 0_u64;
        for piece in mine {
            let begin = piece * PIECE;
            let part = begin..len.min(begin + PIECE);
            let of_piece = vectorised(
                #[inline(always)]
                || sum(part.clone()),
            );
            of_mine = of_mine.wrapping_add(of_piece);
        }
        all.fetch_add(of_mine, Ordering::Relaxed);
    });
    all.into_inner()
}
