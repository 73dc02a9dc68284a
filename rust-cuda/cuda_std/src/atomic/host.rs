//! Atomic operations on the host: `core`'s atomics on the bits of the value.

use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};
use cuda_emulator::intrinsics as emulator;

/// In an emulated thread, counts an atomic operation, and may let other threads
/// run.
#[track_caller]
fn count() {
    if emulator::in_kernel() {
        emulator::atomic();
    }
}

/// The failure order of a read-modify-write operation.
fn failure(order: Ordering) -> Ordering {
    match order {
        Ordering::Release | Ordering::Relaxed => Ordering::Relaxed,
        Ordering::Acquire | Ordering::AcqRel => Ordering::Acquire,
        _ => Ordering::SeqCst,
    }
}

/// A value with atomic operations.
///
/// The pointers that the methods take are valid for reads and writes, aligned,
/// and point to a value that is accessed only atomically.
pub trait Value: Copy {
    #[track_caller]
    unsafe fn load(ptr: *const Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn store(ptr: *mut Self, val: Self, order: Ordering);
    #[track_caller]
    unsafe fn fetch_exch(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn compare_and_swap(ptr: *mut Self, current: Self, new: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_add(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_sub(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_and(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_or(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_xor(ptr: *mut Self, val: Self, order: Ordering) -> Self;
}

/// The operations that only integers have.
pub trait Integer: Value {
    #[track_caller]
    unsafe fn fetch_min(ptr: *mut Self, val: Self, order: Ordering) -> Self;
    #[track_caller]
    unsafe fn fetch_max(ptr: *mut Self, val: Self, order: Ordering) -> Self;
}

/// Replaces the value by `change(value)` and returns the previous value.
///
/// # Safety
///
/// As for [`Value`].
#[track_caller]
pub unsafe fn update<T: Value + PartialEq>(
    ptr: *mut T,
    order: Ordering,
    change: impl Fn(T) -> T,
) -> T {
    // SAFETY: as the caller promises.
    let mut value = unsafe { T::load(ptr, Ordering::Relaxed) };
    loop {
        // SAFETY: as the caller promises.
        let before = unsafe { T::compare_and_swap(ptr, value, change(value), order) };
        if before == value {
            return before;
        }
        value = before;
    }
}

macro_rules! integer {
    ($type:ident, $atomic:ident) => {
        impl Value for $type {
            unsafe fn load(ptr: *const Self, order: Ordering) -> Self {
                count();
                // SAFETY: as the trait says; a load writes nothing.
                unsafe { $atomic::from_ptr(ptr.cast_mut()) }.load(order)
            }
            unsafe fn store(ptr: *mut Self, val: Self, order: Ordering) {
                count();
                // SAFETY: as the trait says.
                unsafe { $atomic::from_ptr(ptr) }.store(val, order);
            }
            unsafe fn fetch_exch(ptr: *mut Self, val: Self, order: Ordering) -> Self {
                count();
                // SAFETY: as the trait says.
                unsafe { $atomic::from_ptr(ptr) }.swap(val, order)
            }
            unsafe fn compare_and_swap(
                ptr: *mut Self,
                current: Self,
                new: Self,
                order: Ordering,
            ) -> Self {
                count();
                // SAFETY: as the trait says.
                let atomic = unsafe { $atomic::from_ptr(ptr) };
                match atomic.compare_exchange(current, new, order, failure(order)) {
                    Ok(before) | Err(before) => before,
                }
            }
            integer!(@ $type, $atomic, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor);
        }

        impl Integer for $type {
            integer!(@ $type, $atomic, fetch_min, fetch_max);
        }
    };
    (@ $type:ident, $atomic:ident, $($name:ident),*) => {$(
        unsafe fn $name(ptr: *mut Self, val: Self, order: Ordering) -> Self {
            count();
            // SAFETY: as the trait says.
            unsafe { $atomic::from_ptr(ptr) }.$name(val, order)
        }
    )*};
}

integer!(u32, AtomicU32);
integer!(u64, AtomicU64);
integer!(i32, AtomicI32);
integer!(i64, AtomicI64);

macro_rules! float {
    ($type:ident, $atomic:ident) => {
        impl Value for $type {
            unsafe fn load(ptr: *const Self, order: Ordering) -> Self {
                count();
                // SAFETY: as the trait says; a load writes nothing.
                let atomic = unsafe { $atomic::from_ptr(ptr.cast_mut().cast()) };
                $type::from_bits(atomic.load(order))
            }
            unsafe fn store(ptr: *mut Self, val: Self, order: Ordering) {
                count();
                // SAFETY: as the trait says.
                unsafe { $atomic::from_ptr(ptr.cast()) }.store(val.to_bits(), order);
            }
            unsafe fn fetch_exch(ptr: *mut Self, val: Self, order: Ordering) -> Self {
                // SAFETY: as the trait says.
                unsafe { float(ptr, order, |_| val) }
            }
            unsafe fn compare_and_swap(
                ptr: *mut Self,
                current: Self,
                new: Self,
                order: Ordering,
            ) -> Self {
                // SAFETY: as the trait says.
                let before = unsafe {
                    Value::compare_and_swap(ptr.cast(), current.to_bits(), new.to_bits(), order)
                };
                $type::from_bits(before)
            }
            unsafe fn fetch_add(ptr: *mut Self, val: Self, order: Ordering) -> Self {
                // SAFETY: as the trait says.
                unsafe { float(ptr, order, |value| value + val) }
            }
            unsafe fn fetch_sub(ptr: *mut Self, val: Self, order: Ordering) -> Self {
                // SAFETY: as the trait says.
                unsafe { float(ptr, order, |value| value - val) }
            }
            float!(@ $type, fetch_and, fetch_or, fetch_xor);
        }
    };
    (@ $type:ident, $($name:ident),*) => {$(
        unsafe fn $name(ptr: *mut Self, val: Self, order: Ordering) -> Self {
            // SAFETY: as the trait says.
            $type::from_bits(unsafe { Value::$name(ptr.cast(), val.to_bits(), order) })
        }
    )*};
}

/// A float that converts to and from its bits, for [`float()`].
trait Float: Copy {
    type Bits: Value + PartialEq;
    fn to_bits(self) -> Self::Bits;
    fn from_bits(bits: Self::Bits) -> Self;
}

impl Float for f32 {
    type Bits = u32;
    fn to_bits(self) -> u32 {
        self.to_bits()
    }
    fn from_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

impl Float for f64 {
    type Bits = u64;
    fn to_bits(self) -> u64 {
        self.to_bits()
    }
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

/// [`update`] of a float by its bits: comparing floats, the loop would not end
/// for a NaN.
#[track_caller]
unsafe fn float<F: Float>(ptr: *mut F, order: Ordering, change: impl Fn(F) -> F) -> F {
    let change = |bits| change(F::from_bits(bits)).to_bits();
    // SAFETY: as the caller promises; the bits lie where the float does.
    F::from_bits(unsafe { update(ptr.cast::<F::Bits>(), order, change) })
}

float!(f32, AtomicU32);
float!(f64, AtomicU64);
