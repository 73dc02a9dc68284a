//! Warp operations: the 32 lanes of a warp exchange values without memory.
//!
//! A warp is 32 consecutive threads of a block (x fastest) that run together.
//! The functions here are warp-synchronous: each takes a **mask** of the lanes
//! that take part, bit `i` for lane `i`, and every lane in it must arrive at
//! the same call with the same mask; `u32::MAX` is the whole warp. Lanes
//! outside the mask must not arrive.
//!
//! ```
//! use cuda_std::prelude::*;
//! use cuda_std::warp;
//!
//! /// The sum over the warp of every lane's `value`, in every lane.
//! ///
//! /// # Safety
//! ///
//! /// All 32 lanes of the warp call this together.
//! #[inline(always)]
//! pub unsafe fn warp_sum(mut value: f32) -> f32 {
//!     let mut distance = 16;
//!     while distance > 0 {
//!         // SAFETY: all 32 lanes are here.
//!         value += unsafe { warp::warp_shuffle_xor(u32::MAX, value, distance, 32) }.0;
//!         distance /= 2;
//!     }
//!     value
//! }
//! ```

use half::{bf16, f16};

#[cfg(target_arch = "nvptx64")]
use crate::sys;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics as emulator;

/// Waits until every lane in `mask` has arrived (`bar.warp.sync`, CUDA's
/// `__syncwarp`). Writes to memory by these lanes before it are visible to all
/// of them after it.
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    unsafe {
        sys::bar_warp_sync(mask);
    }
    #[cfg(not(target_arch = "nvptx64"))]
    emulator::warp_barrier(mask);
}

/// Index of the calling thread's lane in its warp, 0 to 31 (`%laneid`).
#[must_use]
#[inline(always)]
pub fn lane_id() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: reads a special register that every thread has.
    let lane = unsafe { sys::laneid() };
    #[cfg(not(target_arch = "nvptx64"))]
    let lane = emulator::lane_id();
    lane
}

/// Mask of the lanes that execute this call together with the caller
/// (`activemask`, CUDA's `__activemask`).
///
/// The hardware chooses these lanes: lanes on the same path need not be
/// together. Do not take the mask for the set of lanes that entered a branch;
/// compute that with [`warp_vote_ballot`] before the branch.
#[must_use]
#[inline(always)]
#[track_caller]
pub fn activemask() -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: has no precondition.
    let mask = unsafe { sys::activemask() };
    #[cfg(not(target_arch = "nvptx64"))]
    let mask = emulator::active_mask();
    mask
}

// --- reductions ------------------------------------------------------------------

/// The operation by which [`warp_reduce`] combines the lanes' values.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpReductionOp {
    /// The sum, wrapping around.
    Add,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// Bitwise "and": the bits set in all values.
    And,
    /// Bitwise "or": the bits set in any value.
    Or,
    /// Bitwise "exclusive or": the bits set in an odd number of values.
    Xor,
}

/// Reduces the values of all lanes in `mask` by `op`; each of these lanes gets
/// the result.
///
/// One instruction (`redux.sync`) from compute capability 8.0 on, a series of
/// shuffles on older targets.
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask` and `op`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_reduce<T: WarpReduceValue>(mask: u32, value: T, op: WarpReductionOp) -> T {
    // SAFETY: as the caller promises.
    unsafe { T::reduce(mask, value, op) }
}

/// A value that [`warp_reduce`] combines: `i32` or `u32`.
pub trait WarpReduceValue: Sized {
    /// Implements [`warp_reduce`].
    ///
    /// # Safety
    ///
    /// As for [`warp_reduce`].
    #[track_caller]
    unsafe fn reduce(mask: u32, value: Self, op: WarpReductionOp) -> Self;
}

macro_rules! impl_reduce {
    ($type:ident, $min:ident, $max:ident) => {
        impl WarpReduceValue for $type {
            #[inline(always)]
            unsafe fn reduce(mask: u32, value: Self, op: WarpReductionOp) -> Self {
                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                // SAFETY: as the caller promises.
                let result = unsafe {
                    let bits = value as u32;
                    match op {
                        WarpReductionOp::Add => sys::redux_add(bits, mask),
                        WarpReductionOp::Min => sys::$min(bits, mask),
                        WarpReductionOp::Max => sys::$max(bits, mask),
                        WarpReductionOp::And => sys::redux_and(bits, mask),
                        WarpReductionOp::Or => sys::redux_or(bits, mask),
                        WarpReductionOp::Xor => sys::redux_xor(bits, mask),
                    }
                } as Self;
                #[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
                // SAFETY: as the caller promises.
                let result = unsafe { reduce_by_shuffles(mask, value, op) };
                result
            }
        }
    };
}

impl_reduce!(i32, redux_min, redux_max);
impl_reduce!(u32, redux_umin, redux_umax);

/// The integers that [`reduce_by_shuffles`] combines.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
trait Integer:
    WarpShuffleValue
    + Copy
    + Ord
    + core::ops::BitAnd<Output = Self>
    + core::ops::BitOr<Output = Self>
    + core::ops::BitXor<Output = Self>
{
    fn add(self, other: Self) -> Self;
}
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
impl Integer for i32 {
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
impl Integer for u32 {
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
}

/// Every lane reads every lane in the mask: this works for any mask, and all
/// lanes take the same number of steps.
#[cfg(not(all(target_arch = "nvptx64", target_feature = "sm_80")))]
#[track_caller]
unsafe fn reduce_by_shuffles<T: Integer>(mask: u32, value: T, op: WarpReductionOp) -> T {
    let mut result = None;
    let mut rest = mask;
    while rest != 0 {
        let lane = rest.trailing_zeros();
        rest &= rest - 1;
        // SAFETY: as the caller promises; the lane read is in the mask.
        let (other, _) = unsafe { T::shuffle(WarpShuffleMode::Idx, mask, value, lane, 32) };
        result = Some(match (result, op) {
            (None, _) => other,
            (Some(result), WarpReductionOp::Add) => Integer::add(result, other),
            (Some(result), WarpReductionOp::Min) => result.min(other),
            (Some(result), WarpReductionOp::Max) => result.max(other),
            (Some(result), WarpReductionOp::And) => result & other,
            (Some(result), WarpReductionOp::Or) => result | other,
            (Some(result), WarpReductionOp::Xor) => result ^ other,
        });
    }
    result.unwrap_or(value)
}

// --- match -----------------------------------------------------------------------

/// Mask of the lanes of `mask` whose `value` has the same bits as the caller's
/// (`match.any.sync`, CUDA's `__match_any_sync`).
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_match_any<T: WarpMatchValue>(mask: u32, value: T) -> u32 {
    // SAFETY: as the caller promises.
    unsafe { T::match_any(mask, value) }
}

/// `Some(mask)` if `value` has the same bits in all lanes of `mask`, else
/// `None` (`match.all.sync`, CUDA's `__match_all_sync`).
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_match_all<T: WarpMatchValue>(mask: u32, value: T) -> Option<u32> {
    // SAFETY: as the caller promises.
    unsafe { T::match_all(mask, value) }
}

/// A value that [`warp_match_any`] and [`warp_match_all`] compare: 32 or 64 bits.
///
/// Floats are compared by their bits: a NaN equals itself, `0.0` and `-0.0` differ.
pub trait WarpMatchValue: Sized {
    /// Implements [`warp_match_any`].
    ///
    /// # Safety
    ///
    /// As for [`warp_match_any`].
    #[track_caller]
    unsafe fn match_any(mask: u32, value: Self) -> u32;
    /// Implements [`warp_match_all`].
    ///
    /// # Safety
    ///
    /// As for [`warp_match_all`].
    #[track_caller]
    unsafe fn match_all(mask: u32, value: Self) -> Option<u32>;
}

macro_rules! impl_match {
    ($($type:ident: |$value:ident| $bits:expr, $any:ident, $all:ident;)*) => {$(
        impl WarpMatchValue for $type {
            #[inline(always)]
            unsafe fn match_any(mask: u32, $value: Self) -> u32 {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: as the caller promises.
                let lanes = unsafe { sys::$any(mask, $bits) };
                #[cfg(not(target_arch = "nvptx64"))]
                let lanes = emulator::match_any(mask, u64::from($bits));
                lanes
            }

            #[inline(always)]
            unsafe fn match_all(mask: u32, $value: Self) -> Option<u32> {
                #[cfg(target_arch = "nvptx64")]
                // SAFETY: as the caller promises.
                let (lanes, all) = unsafe { sys::$all(mask, $bits) };
                #[cfg(not(target_arch = "nvptx64"))]
                let (lanes, all) = emulator::match_all(mask, u64::from($bits));
                all.then_some(lanes)
            }
        }
    )*};
}

impl_match! {
    i32: |value| value as u32, match_any_32, match_all_32;
    u32: |value| value, match_any_32, match_all_32;
    f32: |value| value.to_bits(), match_any_32, match_all_32;
    i64: |value| value as u64, match_any_64, match_all_64;
    u64: |value| value, match_any_64, match_all_64;
    f64: |value| value.to_bits(), match_any_64, match_all_64;
}

// --- votes -----------------------------------------------------------------------

/// Whether `predicate` is true in all lanes of `mask` (`vote.all.sync`, CUDA's
/// `__all_sync`).
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_all(mask: u32, predicate: bool) -> bool {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    let all = unsafe { sys::vote_all(mask, predicate) };
    #[cfg(not(target_arch = "nvptx64"))]
    let all = emulator::vote_all(mask, predicate);
    all
}

/// Whether `predicate` is true in any lane of `mask` (`vote.any.sync`, CUDA's
/// `__any_sync`).
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_any(mask: u32, predicate: bool) -> bool {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    let any = unsafe { sys::vote_any(mask, predicate) };
    #[cfg(not(target_arch = "nvptx64"))]
    let any = emulator::vote_any(mask, predicate);
    any
}

/// Mask of the lanes of `mask` in which `predicate` is true, bit `i` for lane
/// `i` (`vote.ballot.sync`, CUDA's `__ballot_sync`).
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_vote_ballot(mask: u32, predicate: bool) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: as the caller promises.
    let lanes = unsafe { sys::vote_ballot(mask, predicate) };
    #[cfg(not(target_arch = "nvptx64"))]
    let lanes = emulator::vote_ballot(mask, predicate);
    lanes
}

// --- shuffles --------------------------------------------------------------------

/// The value of the lane `delta` above the caller's, and whether there is such
/// a lane (`shfl.sync.down`, CUDA's `__shfl_down_sync`).
///
/// `width`, a power of two up to 32 and usually 32, divides the warp into
/// segments of that many lanes. A lane reads only its own segment: if the lane
/// above is in another one, the result is `(value, false)`.
///
/// # Panics
///
/// When `width` is not a power of two or above 32.
///
/// # Safety
///
/// The calling lane is in `mask`, no lane in `mask` has exited, and all of them
/// call this with the same `mask`. The value is unspecified when the lane read
/// is not in `mask`.
#[inline(always)]
#[track_caller]
pub unsafe fn warp_shuffle_down<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    delta: u32,
    width: u32,
) -> (T, bool) {
    // SAFETY: as the caller promises.
    unsafe { T::shuffle(WarpShuffleMode::Down, mask, value, delta, width) }
}

/// The value of the lane `delta` below the caller's, and whether there is such
/// a lane (`shfl.sync.up`, CUDA's `__shfl_up_sync`).
///
/// `width` as in [`warp_shuffle_down`]: if the lane below is in another
/// segment, the result is `(value, false)`.
///
/// # Panics
///
/// When `width` is not a power of two or above 32.
///
/// # Safety
///
/// As for [`warp_shuffle_down`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_shuffle_up<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    delta: u32,
    width: u32,
) -> (T, bool) {
    // SAFETY: as the caller promises.
    unsafe { T::shuffle(WarpShuffleMode::Up, mask, value, delta, width) }
}

/// The value of lane `idx` of the caller's segment, `idx` taken modulo `width`
/// (`shfl.sync.idx`, CUDA's `__shfl_sync`).
///
/// `width` as in [`warp_shuffle_down`]. The flag is always true.
///
/// # Panics
///
/// When `width` is not a power of two or above 32.
///
/// # Safety
///
/// As for [`warp_shuffle_down`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_shuffle_idx<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    idx: u32,
    width: u32,
) -> (T, bool) {
    // SAFETY: as the caller promises.
    unsafe { T::shuffle(WarpShuffleMode::Idx, mask, value, idx, width) }
}

/// The value of the lane whose index is the caller's xor `lane_mask` (butterfly
/// shuffle: `shfl.sync.bfly`, CUDA's `__shfl_xor_sync`).
///
/// `width` as in [`warp_shuffle_down`]: a lane in a later segment is not read,
/// and the result is `(value, false)`; a lane in an earlier segment is read.
///
/// # Panics
///
/// When `width` is not a power of two or above 32.
///
/// # Safety
///
/// As for [`warp_shuffle_down`].
#[inline(always)]
#[track_caller]
pub unsafe fn warp_shuffle_xor<T: WarpShuffleValue>(
    mask: u32,
    value: T,
    lane_mask: u32,
    width: u32,
) -> (T, bool) {
    // SAFETY: as the caller promises.
    unsafe { T::shuffle(WarpShuffleMode::Xor, mask, value, lane_mask, width) }
}

/// A value that the shuffles exchange: a number of 8 to 128 bits.
///
/// The hardware shuffles 32 bits: a narrower value takes a word of its own
/// (pack several into one), a wider one takes two or four shuffles.
pub trait WarpShuffleValue: Sized {
    /// Implements the four shuffles; `b` is the lane, distance or lane mask of
    /// `mode`.
    ///
    /// # Safety
    ///
    /// As for [`warp_shuffle_down`].
    #[track_caller]
    unsafe fn shuffle(
        mode: WarpShuffleMode,
        mask: u32,
        value: Self,
        b: u32,
        width: u32,
    ) -> (Self, bool);
}

macro_rules! impl_shuffle {
    ($($type:ident by $shuffle:ident: $into:expr, $from:expr;)*) => {$(
        impl WarpShuffleValue for $type {
            #[inline(always)]
            unsafe fn shuffle(
                mode: WarpShuffleMode,
                mask: u32,
                value: Self,
                b: u32,
                width: u32,
            ) -> (Self, bool) {
                // SAFETY: as the caller promises.
                let (bits, inside) = unsafe { $shuffle(mode, mask, $into(value), b, width) };
                ($from(bits), inside)
            }
        }
    )*};
}

impl_shuffle! {
    u8 by shuffle_32: u32::from, |bits| bits as u8;
    u16 by shuffle_32: u32::from, |bits| bits as u16;
    u32 by shuffle_32: u32::from, u32::from;
    u64 by shuffle_64: u64::from, u64::from;
    u128 by shuffle_128: u128::from, u128::from;
    i8 by shuffle_32: |value| value as u32, |bits| bits as i8;
    i16 by shuffle_32: |value| value as u32, |bits| bits as i16;
    i32 by shuffle_32: |value| value as u32, |bits| bits as i32;
    i64 by shuffle_64: |value| value as u64, |bits| bits as i64;
    i128 by shuffle_128: |value| value as u128, |bits| bits as i128;
    f32 by shuffle_32: f32::to_bits, f32::from_bits;
    f64 by shuffle_64: f64::to_bits, f64::from_bits;
    f16 by shuffle_32: |value: f16| u32::from(value.to_bits()), |bits| f16::from_bits(bits as u16);
    bf16 by shuffle_32: |value: bf16| u32::from(value.to_bits()), |bits| bf16::from_bits(bits as u16);
}

/// The lane that a shuffle reads from.
#[doc(hidden)]
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarpShuffleMode {
    /// The lane with index `b`.
    Idx = 0,
    /// The lane `b` below the caller's.
    Up = 1,
    /// The lane `b` above the caller's.
    Down = 2,
    /// The lane whose index differs from the caller's in the bits of `b`.
    Xor = 3,
}

/// Panics unless `width` is a power of two up to 32.
#[inline(always)]
#[track_caller]
fn check_width(width: u32) {
    assert!(
        width.is_power_of_two() && width <= 32,
        "the width of a shuffle must be 1, 2, 4, 8, 16 or 32"
    );
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
unsafe fn shuffle_32(
    mode: WarpShuffleMode,
    mask: u32,
    value: u32,
    b: u32,
    width: u32,
) -> (u32, bool) {
    check_width(width);
    // Bits 8 to 12: the lane bits that stay, which give the segment; bits 0 to
    // 4: the bound, which is the segment's first lane for `Up` and its last
    // otherwise.
    let segment = (32 - width) << 8;
    let last = segment | 31;
    // SAFETY: as the caller promises.
    unsafe {
        match mode {
            WarpShuffleMode::Idx => sys::shfl_idx(mask, value, b, last),
            WarpShuffleMode::Up => sys::shfl_up(mask, value, b, segment),
            WarpShuffleMode::Down => sys::shfl_down(mask, value, b, last),
            WarpShuffleMode::Xor => sys::shfl_bfly(mask, value, b, last),
        }
    }
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
unsafe fn shuffle_64(
    mode: WarpShuffleMode,
    mask: u32,
    value: u64,
    b: u32,
    width: u32,
) -> (u64, bool) {
    // SAFETY: as the caller promises.
    let (low, inside) = unsafe { shuffle_32(mode, mask, value as u32, b, width) };
    // SAFETY: as the caller promises.
    let (high, _) = unsafe { shuffle_32(mode, mask, (value >> 32) as u32, b, width) };
    (u64::from(high) << 32 | u64::from(low), inside)
}

#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
unsafe fn shuffle_64(
    mode: WarpShuffleMode,
    mask: u32,
    value: u64,
    b: u32,
    width: u32,
) -> (u64, bool) {
    check_width(width);
    let kind = match mode {
        WarpShuffleMode::Idx => emulator::ShuffleKind::Index,
        WarpShuffleMode::Up => emulator::ShuffleKind::Up,
        WarpShuffleMode::Down => emulator::ShuffleKind::Down,
        WarpShuffleMode::Xor => emulator::ShuffleKind::Xor,
    };
    emulator::shuffle(mask, value, kind, b, width)
}

#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
unsafe fn shuffle_32(
    mode: WarpShuffleMode,
    mask: u32,
    value: u32,
    b: u32,
    width: u32,
) -> (u32, bool) {
    // SAFETY: as the caller promises.
    let (bits, inside) = unsafe { shuffle_64(mode, mask, u64::from(value), b, width) };
    (bits as u32, inside)
}

#[inline(always)]
#[track_caller]
unsafe fn shuffle_128(
    mode: WarpShuffleMode,
    mask: u32,
    value: u128,
    b: u32,
    width: u32,
) -> (u128, bool) {
    // SAFETY: as the caller promises.
    let (low, inside) = unsafe { shuffle_64(mode, mask, value as u64, b, width) };
    // SAFETY: as the caller promises.
    let (high, _) = unsafe { shuffle_64(mode, mask, (value >> 64) as u64, b, width) };
    (u128::from(high) << 64 | u128::from(low), inside)
}
