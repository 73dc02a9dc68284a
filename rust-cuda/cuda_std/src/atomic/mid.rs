//! Atomic operations on raw pointers, with the order as a parameter.
//!
//! The names have the form `atomic_fetch_<op>_<type>_<scope>`: those of
//! [`intrinsics`] without the order. Pass the order as a constant: then each
//! call is one or two instructions.
//!
//! `SeqCst` is `fence.sc` followed by the operation as `acquire` (a store:
//! `relaxed`), which is how CUDA C++ compiles it.
//!
//! # Safety
//!
//! The conditions of [`intrinsics`] hold for all functions.

use super::intrinsics;
use core::sync::atomic::Ordering;
use cuda_std_macros::paste;

macro_rules! thread_fence {
    ($($scope:ident: $whom:literal;)*) => { paste! {$(
        #[doc = concat!("Memory fence for ", $whom, " with a given order; `Relaxed` is no fence.")]
        #[inline(always)]
        pub fn [<$scope _thread_fence>](ordering: Ordering) {
            // SAFETY: fences have no precondition.
            unsafe {
                match ordering {
                    Ordering::Relaxed => {}
                    Ordering::SeqCst => intrinsics::[<fence_sc_ $scope>](),
                    _ => intrinsics::[<fence_acqrel_ $scope>](),
                }
            }
        }
    )*}};
}

thread_fence! {
    device: "the threads of the device";
    block: "the threads of the block";
    system: "all threads, other devices and the host";
}

macro_rules! load_and_store {
    ($width:literal: $($scope:ident)*) => { paste! {$(
        #[doc = concat!("Loads ", $width, " bits atomically.")]
        ///
        /// # Panics
        ///
        /// When `ordering` is `Release` or `AcqRel`.
        ///
        /// # Safety
        ///
        /// As the [module](self) says.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_load_ $width _ $scope>](ptr: *mut [<u $width>], ordering: Ordering) -> [<u $width>] {
            // SAFETY: as the caller promises.
            unsafe {
                match ordering {
                    Ordering::Relaxed => intrinsics::[<atomic_load_relaxed_ $width _ $scope>](ptr),
                    Ordering::Acquire => intrinsics::[<atomic_load_acquire_ $width _ $scope>](ptr),
                    Ordering::SeqCst => {
                        intrinsics::[<fence_sc_ $scope>]();
                        intrinsics::[<atomic_load_acquire_ $width _ $scope>](ptr)
                    }
                    _ => panic!("an atomic load cannot be `Release` or `AcqRel`: it writes nothing"),
                }
            }
        }

        #[doc = concat!("Stores ", $width, " bits atomically.")]
        ///
        /// # Panics
        ///
        /// When `ordering` is `Acquire` or `AcqRel`.
        ///
        /// # Safety
        ///
        /// As the [module](self) says.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_store_ $width _ $scope>](
            ptr: *mut [<u $width>],
            ordering: Ordering,
            val: [<u $width>],
        ) {
            // SAFETY: as the caller promises.
            unsafe {
                match ordering {
                    Ordering::Relaxed => intrinsics::[<atomic_store_relaxed_ $width _ $scope>](ptr, val),
                    Ordering::Release => intrinsics::[<atomic_store_release_ $width _ $scope>](ptr, val),
                    Ordering::SeqCst => {
                        intrinsics::[<fence_sc_ $scope>]();
                        intrinsics::[<atomic_store_relaxed_ $width _ $scope>](ptr, val);
                    }
                    _ => panic!("an atomic store cannot be `Acquire` or `AcqRel`: it reads nothing"),
                }
            }
        }
    )*}};
}

load_and_store!(32: device block system);
load_and_store!(64: device block system);

/// One operation of one type, at one scope.
macro_rules! fetch {
    ($type:ident, $scope:ident: $($op:ident)*) => { paste! {$(
        #[doc = concat!("Atomic `", stringify!($op), "` with a `", stringify!($type), "`; returns the previous value.")]
        ///
        /// # Safety
        ///
        /// As the [module](self) says.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_fetch_ $op _ $type _ $scope>](
            ptr: *mut $type,
            ordering: Ordering,
            val: $type,
        ) -> $type {
            // SAFETY: as the caller promises.
            unsafe {
                match ordering {
                    Ordering::Relaxed => intrinsics::[<atomic_fetch_ $op _relaxed_ $type _ $scope>](ptr, val),
                    Ordering::Acquire => intrinsics::[<atomic_fetch_ $op _acquire_ $type _ $scope>](ptr, val),
                    Ordering::Release => intrinsics::[<atomic_fetch_ $op _release_ $type _ $scope>](ptr, val),
                    Ordering::AcqRel => intrinsics::[<atomic_fetch_ $op _acqrel_ $type _ $scope>](ptr, val),
                    // `SeqCst`.
                    _ => {
                        intrinsics::[<fence_sc_ $scope>]();
                        intrinsics::[<atomic_fetch_ $op _acquire_ $type _ $scope>](ptr, val)
                    }
                }
            }
        }
    )*}};
}

/// The operations of one type, at each scope.
macro_rules! operations {
    ($type:ident: $($op:ident)*) => {
        fetch!($type, block: $($op)*);
        fetch!($type, device: $($op)*);
        fetch!($type, system: $($op)*);
        cas!($type: block device system);
    };
}

macro_rules! cas {
    ($type:ident: $($scope:ident)*) => { paste! {$(
        /// Stores `new` if the value has the bits of `current` (`atom.cas`);
        /// returns the previous value.
        ///
        /// # Safety
        ///
        /// As the [module](self) says.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_compare_and_swap_ $type _ $scope>](
            ptr: *mut $type,
            current: $type,
            new: $type,
            ordering: Ordering,
        ) -> $type {
            // SAFETY: as the caller promises.
            unsafe {
                match ordering {
                    Ordering::Relaxed => intrinsics::[<atomic_fetch_cas_relaxed_ $type _ $scope>](ptr, current, new),
                    Ordering::Acquire => intrinsics::[<atomic_fetch_cas_acquire_ $type _ $scope>](ptr, current, new),
                    Ordering::Release => intrinsics::[<atomic_fetch_cas_release_ $type _ $scope>](ptr, current, new),
                    Ordering::AcqRel => intrinsics::[<atomic_fetch_cas_acqrel_ $type _ $scope>](ptr, current, new),
                    // `SeqCst`.
                    _ => {
                        intrinsics::[<fence_sc_ $scope>]();
                        intrinsics::[<atomic_fetch_cas_acquire_ $type _ $scope>](ptr, current, new)
                    }
                }
            }
        }
    )*}};
}

operations!(u32: and or xor add sub min max exch);
operations!(u64: and or xor add sub min max exch);
operations!(i32: and or xor add sub min max exch);
operations!(i64: and or xor add sub min max exch);
operations!(f32: and or xor add sub exch);
operations!(f64: and or xor add sub exch);

/// CUDA's `atomicInc` (`atom.inc`): stores 0 if the value is at least `bound`,
/// else the value plus 1; returns the previous value. Relaxed, at device scope.
///
/// # Safety
///
/// As the [module](self) says.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_inc_bounded_relaxed_u32_device(ptr: *mut u32, bound: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let before;
        // SAFETY: as the caller promises.
        unsafe {
            core::arch::asm!(
                "atom.relaxed.gpu.inc.u32 {}, [{}], {};",
                out(reg32) before,
                in(reg64) ptr,
                in(reg32) bound,
                options(nostack, preserves_flags),
            );
        }
        before
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        super::host::update(ptr, Ordering::Relaxed, |value| {
            if value >= bound { 0 } else { value + 1 }
        })
    }
}

/// CUDA's `atomicDec` (`atom.dec`): stores `bound` if the value is 0 or above
/// `bound`, else the value minus 1; returns the previous value. Relaxed, at
/// device scope.
///
/// # Safety
///
/// As the [module](self) says.
#[inline(always)]
#[track_caller]
pub unsafe fn atomic_dec_bounded_relaxed_u32_device(ptr: *mut u32, bound: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let before;
        // SAFETY: as the caller promises.
        unsafe {
            core::arch::asm!(
                "atom.relaxed.gpu.dec.u32 {}, [{}], {};",
                out(reg32) before,
                in(reg64) ptr,
                in(reg32) bound,
                options(nostack, preserves_flags),
            );
        }
        before
    }
    #[cfg(not(target_arch = "nvptx64"))]
    // SAFETY: as the caller promises.
    unsafe {
        super::host::update(ptr, Ordering::Relaxed, |value| {
            if value == 0 || value > bound {
                bound
            } else {
                value - 1
            }
        })
    }
}
