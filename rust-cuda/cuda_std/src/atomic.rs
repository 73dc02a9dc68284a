//! Atomic operations with a scope: block, device or whole system.
//!
//! Besides a memory order ([`Ordering`]), an atomic operation of a GPU has a
//! **scope**, the threads that observe it as atomic and ordered:
//!
//! | type | scope | PTX |
//! |---|---|---|
//! | `Block…` | threads of the same block | `.cta` |
//! | no prefix | threads of the same device | `.gpu` |
//! | `System…` | all devices and the host | `.sys` |
//!
//! A narrower scope is faster. Block-scoped operations are `unsafe`, because
//! nothing keeps another block from accessing the same value.
//!
//! - the atomic types of this module: floats as upstream has them, and integers;
//! - [`mid`]: the operations as functions of a raw pointer and an `Ordering`;
//! - [`intrinsics`]: one function per instruction.
//!
//! Every operation is one `atom`, `ld` or `st` instruction with order and
//! scope, after a `fence.sc` where the order is `SeqCst`. `core::sync::atomic`
//! works in kernels too, at system scope; LLVM's backend drops the order of its
//! read-modify-write operations, and `cuda_builder` adds fences to restore it.
//!
//! On the host the same functions are real atomics, in and outside the emulator.
//!
//! ```
//! use core::sync::atomic::Ordering;
//! use cuda_std::atomic::AtomicF32;
//!
//! let sum = AtomicF32::new(1.0);
//! assert_eq!(sum.fetch_add(0.5, Ordering::Relaxed), 1.0);
//! assert_eq!(sum.into_inner(), 1.5);
//! ```

#[cfg(not(target_arch = "nvptx64"))]
mod host;
pub mod intrinsics;
pub mod mid;

use core::cell::UnsafeCell;
use core::sync::atomic::Ordering;
use cuda_std_macros::paste;

macro_rules! scope_doc {
    (device) => {
        "the threads of one device"
    };
    (block) => {
        "the threads of one block"
    };
    (system) => {
        "all devices and the host"
    };
}

/// The Safety section of a block-scoped operation.
macro_rules! safety_doc {
    () => {
        ""
    };
    (unsafe) => {
        "\n\n# Safety\n\nUntil a barrier or fence of wider scope, no thread of another block accesses the value."
    };
}

/// Defines an atomic type with the operations that need no arithmetic.
macro_rules! atomic_type {
    ($type:ident, $atomic:ident, $width:literal, $scope:ident $(, $unsafe:ident)?) => {
        #[doc = concat!("A `", stringify!($type), "` shared by ", scope_doc!($scope), ".")]
        ///
        #[doc = concat!("It has the size, the alignment and the bits of a `", stringify!($type), "`.")]
        #[repr(transparent)]
        pub struct $atomic {
            value: UnsafeCell<$type>,
        }

        // SAFETY: all access through a shared reference is atomic.
        unsafe impl Sync for $atomic {}
        // A panic cannot leave an operation half done.
        impl core::panic::RefUnwindSafe for $atomic {}

        impl $atomic {
            /// Creates an atomic with this value.
            #[must_use]
            pub const fn new(value: $type) -> Self {
                Self { value: UnsafeCell::new(value) }
            }

            /// Returns the value.
            #[must_use]
            pub const fn into_inner(self) -> $type {
                self.value.into_inner()
            }

            /// Borrows the value behind a pointer as an atomic.
            ///
            /// # Safety
            ///
            /// For the lifetime `'a`, `ptr` is valid for reads and writes, is
            /// aligned to its size, and the value is accessed only atomically.
            #[must_use]
            pub const unsafe fn from_ptr<'a>(ptr: *mut $type) -> &'a Self {
                // SAFETY: the same layout, and valid as the caller promises.
                unsafe { &*ptr.cast::<Self>() }
            }

            /// A pointer to the value.
            #[must_use]
            pub const fn as_ptr(&self) -> *mut $type {
                self.value.get()
            }

            paste! {
                /// Loads the value; the order is `SeqCst`, `Acquire` or `Relaxed`.
                ///
                /// # Panics
                ///
                /// When `order` is `Release` or `AcqRel`.
                #[doc = safety_doc!($($unsafe)?)]
                #[inline(always)]
                #[track_caller]
                pub $($unsafe)? fn load(&self, order: Ordering) -> $type {
                    // SAFETY: a valid pointer to a value that is accessed only atomically.
                    let bits = unsafe { mid::[<atomic_load_ $width _ $scope>](self.as_ptr().cast(), order) };
                    <$type>::from_ne_bytes(bits.to_ne_bytes())
                }

                /// Stores a value; the order is `SeqCst`, `Release` or `Relaxed`.
                ///
                /// # Panics
                ///
                /// When `order` is `Acquire` or `AcqRel`.
                #[doc = safety_doc!($($unsafe)?)]
                #[inline(always)]
                #[track_caller]
                pub $($unsafe)? fn store(&self, val: $type, order: Ordering) {
                    let bits = [<u $width>]::from_ne_bytes(val.to_ne_bytes());
                    // SAFETY: a valid pointer to a value that is accessed only atomically.
                    unsafe { mid::[<atomic_store_ $width _ $scope>](self.as_ptr().cast(), order, bits) };
                }

                /// Stores `new` if the value has the bits of `current`
                /// (`atom.cas`). `Ok` and `Err` hold the previous value.
                ///
                /// `order` holds for success and failure.
                #[doc = safety_doc!($($unsafe)?)]
                #[inline(always)]
                #[track_caller]
                pub $($unsafe)? fn compare_exchange(
                    &self,
                    current: $type,
                    new: $type,
                    order: Ordering,
                ) -> Result<$type, $type> {
                    // SAFETY: a valid pointer to a value that is accessed only atomically.
                    let before = unsafe {
                        mid::[<atomic_compare_and_swap_ $type _ $scope>](self.as_ptr(), current, new, order)
                    };
                    if before.to_ne_bytes() == current.to_ne_bytes() { Ok(before) } else { Err(before) }
                }
            }
        }

        impl Default for $atomic {
            fn default() -> Self {
                Self::new($type::default())
            }
        }

        impl From<$type> for $atomic {
            fn from(value: $type) -> Self {
                Self::new(value)
            }
        }
    };
}

/// The read-modify-write operations.
macro_rules! atomic_operations {
    ($type:ident, $atomic:ident, $scope:ident, $unsafe:tt,
     $($(#[$doc:meta])* $name:ident = $op:ident;)*) => {
        $(atomic_operations! { @ $type, $atomic, $scope, $unsafe, [$(#[$doc])*] $name = $op })*
    };
    (@ $type:ident, $atomic:ident, $scope:ident, [$($unsafe:ident)?],
     [$(#[$doc:meta])*] $name:ident = $op:ident) => { paste! {
        impl $atomic {
            $(#[$doc])*
            #[doc = safety_doc!($($unsafe)?)]
            #[inline(always)]
            #[track_caller]
            pub $($unsafe)? fn $name(&self, val: $type, order: Ordering) -> $type {
                // SAFETY: a valid pointer to a value that is accessed only atomically.
                unsafe { mid::[<atomic_fetch_ $op _ $type _ $scope>](self.as_ptr(), order, val) }
            }
        }
    }};
}

macro_rules! atomic_common {
    ($type:ident, $atomic:ident, $width:literal, $scope:ident $(, $unsafe:ident)?) => {
        atomic_type!($type, $atomic, $width, $scope $(, $unsafe)?);
        atomic_operations! {
            $type, $atomic, $scope, [$($unsafe)?],
            /// Adds `val` and returns the previous value (`atom.add`). Integers
            /// wrap around.
            fetch_add = add;
            /// Subtracts `val` and returns the previous value. Integers wrap
            /// around.
            ///
            /// The instruction is `atom.add` of the negated number.
            fetch_sub = sub;
            /// Bitwise "and" with the bits of `val` (`atom.and`); returns the
            /// previous value.
            fetch_and = and;
            /// Bitwise "or" with the bits of `val` (`atom.or`); returns the
            /// previous value.
            fetch_or = or;
            /// Bitwise "exclusive or" with the bits of `val` (`atom.xor`);
            /// returns the previous value.
            fetch_xor = xor;
            /// Stores `val` and returns the previous value (`atom.exch`).
            swap = exch;
        }
    };
}

macro_rules! atomic_integer {
    ($type:ident, $atomic:ident, $width:literal, $scope:ident $(, $unsafe:ident)?) => {
        atomic_common!($type, $atomic, $width, $scope $(, $unsafe)?);
        atomic_operations! {
            $type, $atomic, $scope, [$($unsafe)?],
            /// Stores the lesser of the value and `val` (`atom.min`); returns
            /// the previous value.
            fetch_min = min;
            /// Stores the greater of the value and `val` (`atom.max`); returns
            /// the previous value.
            fetch_max = max;
        }
    };
}

atomic_common!(f32, AtomicF32, 32, device);
atomic_common!(f64, AtomicF64, 64, device);
atomic_common!(f32, BlockAtomicF32, 32, block, unsafe);
atomic_common!(f64, BlockAtomicF64, 64, block, unsafe);
atomic_common!(f32, SystemAtomicF32, 32, system);
atomic_common!(f64, SystemAtomicF64, 64, system);

atomic_integer!(u32, AtomicU32, 32, device);
atomic_integer!(u64, AtomicU64, 64, device);
atomic_integer!(i32, AtomicI32, 32, device);
atomic_integer!(i64, AtomicI64, 64, device);
atomic_integer!(u32, BlockAtomicU32, 32, block, unsafe);
atomic_integer!(u64, BlockAtomicU64, 64, block, unsafe);
atomic_integer!(i32, BlockAtomicI32, 32, block, unsafe);
atomic_integer!(i64, BlockAtomicI64, 64, block, unsafe);
atomic_integer!(u32, SystemAtomicU32, 32, system);
atomic_integer!(u64, SystemAtomicU64, 64, system);
atomic_integer!(i32, SystemAtomicI32, 32, system);
atomic_integer!(i64, SystemAtomicI64, 64, system);
