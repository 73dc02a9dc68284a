//! Pointers to device memory and to unified memory.

use cuda_loader::sys::CUdeviceptr;
use cust_core::DeviceCopy;
use std::fmt;
use std::marker::PhantomData;

/// An address in device memory. It is the argument for a kernel's pointer parameter.
///
/// Making one is safe, whatever it points to, because the host cannot read through it.
#[repr(transparent)]
pub struct DevicePointer<T: DeviceCopy> {
    address: CUdeviceptr,
    element: PhantomData<*mut T>,
}

// SAFETY: an address is a number, which kernels take as a pointer.
unsafe impl<T: DeviceCopy> DeviceCopy for DevicePointer<T> {}
// SAFETY: an address is a number; every use of it is unsafe.
unsafe impl<T: DeviceCopy> Send for DevicePointer<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy> Sync for DevicePointer<T> {}

macro_rules! value_of {
    ($name:ident) => {
        impl<T: DeviceCopy> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T: DeviceCopy> Copy for $name<T> {}

        impl<T: DeviceCopy> PartialEq for $name<T> {
            fn eq(&self, other: &Self) -> bool {
                self.number() == other.number()
            }
        }

        impl<T: DeviceCopy> Eq for $name<T> {}

        impl<T: DeviceCopy> PartialOrd for $name<T> {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl<T: DeviceCopy> Ord for $name<T> {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.number().cmp(&other.number())
            }
        }

        impl<T: DeviceCopy> std::hash::Hash for $name<T> {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.number().hash(state);
            }
        }

        impl<T: DeviceCopy> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.number())
            }
        }

        impl<T: DeviceCopy> fmt::Pointer for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:#x}", self.number())
            }
        }
    };
}

value_of!(DevicePointer);
value_of!(UnifiedPointer);

impl<T: DeviceCopy> DevicePointer<T> {
    fn number(self) -> u64 {
        self.address
    }

    /// Its value in the driver's interface.
    #[must_use]
    pub fn as_raw(&self) -> CUdeviceptr {
        self.address
    }

    /// The address with this number.
    #[must_use]
    pub fn from_raw(ptr: CUdeviceptr) -> Self {
        Self {
            address: ptr,
            element: PhantomData,
        }
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.address == 0
    }

    /// Null.
    #[must_use]
    pub fn null() -> Self {
        Self::from_raw(0)
    }

    /// As a pointer, which the host must not read through.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.as_mut_ptr()
    }

    /// As a pointer, which the host must not read or write through.
    #[must_use]
    pub fn as_mut_ptr(&self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    /// The same address, for another type.
    #[must_use]
    pub fn cast<U: DeviceCopy>(self) -> DevicePointer<U> {
        DevicePointer::from_raw(self.address)
    }

    /// The address `count` elements further on.
    ///
    /// # Safety
    ///
    /// Both addresses are in one allocation, or at its end.
    #[must_use]
    pub unsafe fn offset(self, count: isize) -> Self {
        self.wrapping_offset(count)
    }

    /// The address `count` elements further on; unlike `add` and `offset` it has no safety
    /// condition.
    #[must_use]
    pub fn wrapping_offset(self, count: isize) -> Self {
        let bytes = (count as i64).wrapping_mul(size_of::<T>() as i64);
        Self::from_raw(self.address.wrapping_add_signed(bytes))
    }

    /// The address `count` elements further on.
    ///
    /// # Safety
    ///
    /// As [`DevicePointer::offset`].
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the name that pointers have")]
    pub unsafe fn add(self, count: usize) -> Self {
        self.wrapping_add(count)
    }

    /// The address `count` elements back.
    ///
    /// # Safety
    ///
    /// As [`DevicePointer::offset`].
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the name that pointers have")]
    pub unsafe fn sub(self, count: usize) -> Self {
        self.wrapping_sub(count)
    }

    /// The address `count` elements further on; unlike `add` and `offset` it has no safety
    /// condition.
    #[must_use]
    pub fn wrapping_add(self, count: usize) -> Self {
        self.wrapping_offset(count as isize)
    }

    /// The address `count` elements back; unlike `sub` it has no safety condition.
    #[must_use]
    pub fn wrapping_sub(self, count: usize) -> Self {
        self.wrapping_offset((count as isize).wrapping_neg())
    }
}

/// A pointer to memory that host and device share.
#[repr(transparent)]
pub struct UnifiedPointer<T: DeviceCopy> {
    pointer: *mut T,
}

// SAFETY: it points to memory that devices access at the same address.
unsafe impl<T: DeviceCopy> DeviceCopy for UnifiedPointer<T> {}

impl<T: DeviceCopy> UnifiedPointer<T> {
    fn number(self) -> usize {
        self.pointer.addr()
    }

    /// Wraps the pointer `ptr`.
    ///
    /// # Safety
    ///
    /// It is null or points to memory that host and device share, as
    /// [`cuda_malloc_unified`](super::cuda_malloc_unified) allocates it.
    #[must_use]
    pub unsafe fn wrap(ptr: *mut T) -> Self {
        Self { pointer: ptr }
    }

    /// The pointer, to read through.
    #[must_use]
    pub fn as_raw(self) -> *const T {
        self.pointer
    }

    /// The pointer, to read and write through.
    #[must_use]
    pub fn as_raw_mut(&mut self) -> *mut T {
        self.pointer
    }

    /// Whether it is null.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.pointer.is_null()
    }

    /// Null.
    #[must_use]
    pub fn null() -> Self {
        Self {
            pointer: std::ptr::null_mut(),
        }
    }

    /// The address `count` elements further on.
    ///
    /// # Safety
    ///
    /// Both pointers are in one allocation, or at its end.
    #[must_use]
    pub unsafe fn offset(self, count: isize) -> Self {
        self.wrapping_offset(count)
    }

    /// The address `count` elements further on; unlike `add` and `offset` it has no safety
    /// condition.
    #[must_use]
    pub fn wrapping_offset(self, count: isize) -> Self {
        Self {
            pointer: self.pointer.wrapping_offset(count),
        }
    }

    /// The address `count` elements further on.
    ///
    /// # Safety
    ///
    /// As [`UnifiedPointer::offset`].
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the name that pointers have")]
    pub unsafe fn add(self, count: usize) -> Self {
        self.wrapping_add(count)
    }

    /// The address `count` elements back.
    ///
    /// # Safety
    ///
    /// As [`UnifiedPointer::offset`].
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "the name that pointers have")]
    pub unsafe fn sub(self, count: usize) -> Self {
        self.wrapping_sub(count)
    }

    /// The address `count` elements further on; unlike `add` and `offset` it has no safety
    /// condition.
    #[must_use]
    pub fn wrapping_add(self, count: usize) -> Self {
        self.wrapping_offset(count as isize)
    }

    /// The address `count` elements back; unlike `sub` it has no safety condition.
    #[must_use]
    pub fn wrapping_sub(self, count: usize) -> Self {
        self.wrapping_offset((count as isize).wrapping_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_move_by_elements() {
        let pointer = DevicePointer::<f64>::from_raw(0x1000);
        assert_eq!(pointer.wrapping_add(3).as_raw(), 0x1018);
        assert_eq!(pointer.wrapping_sub(3).as_raw(), 0xFE8);
        assert_eq!(pointer.wrapping_offset(-1).cast::<u8>().as_raw(), 0xFF8);
        assert!(DevicePointer::<u8>::null().is_null());
        assert_eq!(
            format!("{pointer:?} {pointer:p}"),
            "DevicePointer(0x1000) 0x1000"
        );
    }
}
