//! One function per atomic instruction.
//!
//! The names have the forms `atomic_fetch_<op>_<order>_<type>_<scope>`,
//! `atomic_load_<order>_<width>_<scope>` and
//! `atomic_store_<order>_<width>_<scope>`, with
//!
//! - op: `add`, `sub`, `and`, `or`, `xor`, `exch`, `cas`, `min`, `max`, `inc`, `dec`;
//! - order: `relaxed`, `acquire`, `release`, `acqrel`, and `volatile`, which
//!   names no order (an `atom` is then `relaxed`);
//! - scope: `block`, `device`, `system`;
//! - type: `u32`, `u64`, `i32`, `i64`, and `f32`, `f64` for all operations but
//!   `min`, `max`, `inc` and `dec` (`and`, `or` and `xor` of a float work on
//!   its bits).
//!
//! Fetch functions return the previous value. `inc` and `dec` add and subtract
//! one, wrapping around; [`mid`](super::mid) has CUDA's bounded ones.
//!
//! # Safety
//!
//! The same for all functions: the pointer is valid for reads and writes,
//! aligned to the value's size, and points into global or shared memory; any
//! other access to the value at the same time is atomic and at a scope that
//! includes both.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
use cuda_std_macros::paste;

#[cfg(not(target_arch = "nvptx64"))]
use super::host::{Integer as _, Value as _};

macro_rules! fence {
    ($($name:ident = $ptx:literal: $doc:literal;)*) => {$(
        #[doc = concat!($doc, " (`", $ptx, "`).")]
        ///
        /// # Safety
        ///
        /// No conditions; `unsafe` because upstream's function is.
        #[inline(always)]
        pub unsafe fn $name() {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: a fence has no precondition.
            unsafe {
                asm!(concat!($ptx, ";"), options(nostack, preserves_flags));
            }
            #[cfg(not(target_arch = "nvptx64"))]
            core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        }
    )*};
}

fence! {
    membar_device = "membar.gl": "Fence for the device's threads";
    membar_block = "membar.cta": "Fence for the block's threads";
    membar_system = "membar.sys": "Fence for all threads, other devices and the host";
    fence_sc_device = "fence.sc.gpu": "Sequentially consistent fence for the device's threads";
    fence_sc_block = "fence.sc.cta": "Sequentially consistent fence for the block's threads";
    fence_sc_system = "fence.sc.sys":
        "Sequentially consistent fence for all threads, other devices and the host";
    fence_acqrel_device = "fence.acq_rel.gpu": "Acquire-release fence for the device's threads";
    fence_acqrel_block = "fence.acq_rel.cta": "Acquire-release fence for the block's threads";
    fence_acqrel_system = "fence.acq_rel.sys":
        "Acquire-release fence for all threads, other devices and the host";
}

/// The safety section of all functions below.
macro_rules! safety {
    () => {
        "\n\n# Safety\n\nAs the [module](self) says."
    };
}

macro_rules! load {
    ($width:literal, $order:ident, $host:ident, $($scope:ident, $ptx:literal),*) => { paste! {$(
        #[doc = concat!("Loads ", $width, " bits: `", $ptx, ".b", $width, "`.")]
        #[doc = safety!()]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_load_ $order _ $width _ $scope>](ptr: *const [<u $width>]) -> [<u $width>] {
            #[cfg(target_arch = "nvptx64")]
            {
                let value;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(
                        concat!($ptx, ".b", $width, " {}, [{}];"),
                        out([<reg $width>]) value,
                        in(reg64) ptr,
                        options(nostack, preserves_flags),
                    );
                }
                value
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: as the caller promises.
            unsafe {
                [<u $width>]::load(ptr, core::sync::atomic::Ordering::$host)
            }
        }
    )*}};
}

macro_rules! store {
    ($width:literal, $order:ident, $host:ident, $($scope:ident, $ptx:literal),*) => { paste! {$(
        #[doc = concat!("Stores ", $width, " bits: `", $ptx, ".b", $width, "`.")]
        #[doc = safety!()]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_store_ $order _ $width _ $scope>](ptr: *mut [<u $width>], val: [<u $width>]) {
            #[cfg(target_arch = "nvptx64")]
            // SAFETY: as the caller promises.
            unsafe {
                asm!(
                    concat!($ptx, ".b", $width, " [{}], {};"),
                    in(reg64) ptr,
                    in([<reg $width>]) val,
                    options(nostack, preserves_flags),
                );
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: as the caller promises.
            unsafe {
                [<u $width>]::store(ptr, val, core::sync::atomic::Ordering::$host);
            }
        }
    )*}};
}

macro_rules! loads_and_stores {
    ($width:literal) => {
        load!(
            $width,
            relaxed,
            Relaxed,
            block,
            "ld.relaxed.cta",
            device,
            "ld.relaxed.gpu",
            system,
            "ld.relaxed.sys"
        );
        load!(
            $width,
            acquire,
            Acquire,
            block,
            "ld.acquire.cta",
            device,
            "ld.acquire.gpu",
            system,
            "ld.acquire.sys"
        );
        load!(
            $width,
            volatile,
            Relaxed,
            block,
            "ld.volatile",
            device,
            "ld.volatile",
            system,
            "ld.volatile"
        );
        store!(
            $width,
            relaxed,
            Relaxed,
            block,
            "st.relaxed.cta",
            device,
            "st.relaxed.gpu",
            system,
            "st.relaxed.sys"
        );
        store!(
            $width,
            release,
            Release,
            block,
            "st.release.cta",
            device,
            "st.release.gpu",
            system,
            "st.release.sys"
        );
        store!(
            $width,
            volatile,
            Relaxed,
            block,
            "st.volatile",
            device,
            "st.volatile",
            system,
            "st.volatile"
        );
    };
}

loads_and_stores!(32);
loads_and_stores!(64);

/// Calls `$callback! { order, ".order", HostOrder, scope, ".scope", (arguments) }`
/// for each order and scope of a read-modify-write operation.
macro_rules! each_order_and_scope {
    ($callback:ident! $arguments:tt) => {
        each_order_and_scope! { @ $callback $arguments, block, ".cta" }
        each_order_and_scope! { @ $callback $arguments, device, ".gpu" }
        each_order_and_scope! { @ $callback $arguments, system, ".sys" }
    };
    (@ $callback:ident $arguments:tt, $scope:ident, $ptx_scope:literal) => {
        $callback! { relaxed, ".relaxed", Relaxed, $scope, $ptx_scope, $arguments }
        $callback! { acquire, ".acquire", Acquire, $scope, $ptx_scope, $arguments }
        $callback! { release, ".release", Release, $scope, $ptx_scope, $arguments }
        $callback! { acqrel, ".acq_rel", AcqRel, $scope, $ptx_scope, $arguments }
        $callback! { volatile, "", Relaxed, $scope, $ptx_scope, $arguments }
    };
}

/// `atom` with one operand: `(op, ".ptx_op.type", type, width, |val| operand)`.
macro_rules! fetch {
    ($order:ident, $ptx_order:literal, $host:ident, $scope:ident, $ptx_scope:literal,
     ($op:ident, $ptx:literal, $type:ident, $width:literal, |$val:ident| $operand:expr)) => { paste! {
        #[doc = concat!("`", stringify!($op), "` with a `", stringify!($type), "`: `atom", $ptx_order, $ptx_scope, $ptx, "`.")]
        #[doc = safety!()]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_fetch_ $op _ $order _ $type _ $scope>](ptr: *mut $type, $val: $type) -> $type {
            #[cfg(target_arch = "nvptx64")]
            {
                let before;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(
                        concat!("atom", $ptx_order, $ptx_scope, $ptx, " {}, [{}], {};"),
                        out([<reg $width>]) before,
                        in(reg64) ptr,
                        in([<reg $width>]) $operand,
                        options(nostack, preserves_flags),
                    );
                }
                before
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: as the caller promises.
            unsafe {
                $type::[<fetch_ $op>](ptr, $val, core::sync::atomic::Ordering::$host)
            }
        }
    }};
}

/// `inc` and `dec`: `(op, type, width, 1 or -1, host operation)`.
macro_rules! step {
    ($order:ident, $ptx_order:literal, $host:ident, $scope:ident, $ptx_scope:literal,
     ($op:ident, $type:ident, $width:literal, $step:literal, $host_op:ident)) => { paste! {
        #[doc = concat!("`", stringify!($op), "` of a `", stringify!($type), "`: `atom", $ptx_order, $ptx_scope, ".add.u", $width, "` with ", $step, ".")]
        #[doc = safety!()]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_fetch_ $op _ $order _ $type _ $scope>](ptr: *mut $type) -> $type {
            #[cfg(target_arch = "nvptx64")]
            {
                let before;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(
                        concat!("atom", $ptx_order, $ptx_scope, ".add.u", $width, " {}, [{}], ", $step, ";"),
                        out([<reg $width>]) before,
                        in(reg64) ptr,
                        options(nostack, preserves_flags),
                    );
                }
                before
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: as the caller promises.
            unsafe {
                $type::$host_op(ptr, 1, core::sync::atomic::Ordering::$host)
            }
        }
    }};
}

/// Compare and swap: `(type, width)`.
macro_rules! cas {
    ($order:ident, $ptx_order:literal, $host:ident, $scope:ident, $ptx_scope:literal,
     ($type:ident, $width:literal)) => { paste! {
        #[doc = concat!("Stores `second_val` if the value has the bits of `first_val`: `atom", $ptx_order, $ptx_scope, ".cas.b", $width, "`.")]
        #[doc = safety!()]
        #[inline(always)]
        #[track_caller]
        pub unsafe fn [<atomic_fetch_cas_ $order _ $type _ $scope>](
            ptr: *mut $type,
            first_val: $type,
            second_val: $type,
        ) -> $type {
            #[cfg(target_arch = "nvptx64")]
            {
                let before;
                // SAFETY: as the caller promises.
                unsafe {
                    asm!(
                        concat!("atom", $ptx_order, $ptx_scope, ".cas.b", $width, " {}, [{}], {}, {};"),
                        out([<reg $width>]) before,
                        in(reg64) ptr,
                        in([<reg $width>]) first_val,
                        in([<reg $width>]) second_val,
                        options(nostack, preserves_flags),
                    );
                }
                before
            }
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: as the caller promises.
            unsafe {
                $type::compare_and_swap(
                    ptr, first_val, second_val, core::sync::atomic::Ordering::$host,
                )
            }
        }
    }};
}

/// The operations of every type.
macro_rules! common {
    ($type:ident, $width:literal, $add:literal, |$val:ident| $negated:expr, [$and:literal, $or:literal, $xor:literal, $exch:literal]) => {
        each_order_and_scope!(fetch!(add, $add, $type, $width, |val| val));
        each_order_and_scope!(fetch!(sub, $add, $type, $width, |$val| $negated));
        each_order_and_scope!(fetch!(and, $and, $type, $width, |val| val));
        each_order_and_scope!(fetch!(or, $or, $type, $width, |val| val));
        each_order_and_scope!(fetch!(xor, $xor, $type, $width, |val| val));
        each_order_and_scope!(fetch!(exch, $exch, $type, $width, |val| val));
        each_order_and_scope!(cas!($type, $width));
    };
}

/// The operations that only integers have.
macro_rules! integer {
    ($type:ident, $width:literal, $min:literal, $max:literal) => {
        each_order_and_scope!(fetch!(min, $min, $type, $width, |val| val));
        each_order_and_scope!(fetch!(max, $max, $type, $width, |val| val));
        each_order_and_scope!(step!(inc, $type, $width, 1, fetch_add));
        each_order_and_scope!(step!(dec, $type, $width, -1, fetch_sub));
    };
}

// There is no `atom.add.s64`: in two's complement, signed and unsigned addition
// are the same.
common!(
    u32,
    32,
    ".add.u32",
    |val| val.wrapping_neg(),
    [".and.b32", ".or.b32", ".xor.b32", ".exch.b32"]
);
common!(
    u64,
    64,
    ".add.u64",
    |val| val.wrapping_neg(),
    [".and.b64", ".or.b64", ".xor.b64", ".exch.b64"]
);
common!(
    i32,
    32,
    ".add.u32",
    |val| val.wrapping_neg(),
    [".and.b32", ".or.b32", ".xor.b32", ".exch.b32"]
);
common!(
    i64,
    64,
    ".add.u64",
    |val| val.wrapping_neg(),
    [".and.b64", ".or.b64", ".xor.b64", ".exch.b64"]
);
common!(
    f32,
    32,
    ".add.f32",
    |val| -val,
    [".and.b32", ".or.b32", ".xor.b32", ".exch.b32"]
);
common!(
    f64,
    64,
    ".add.f64",
    |val| -val,
    [".and.b64", ".or.b64", ".xor.b64", ".exch.b64"]
);
integer!(u32, 32, ".min.u32", ".max.u32");
integer!(u64, 64, ".min.u64", ".max.u64");
integer!(i32, 32, ".min.s32", ".max.s32");
integer!(i64, 64, ".min.s64", ".max.s64");
