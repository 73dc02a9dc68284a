//! Pointers and the address spaces they point into.
//!
//! An ordinary pointer is *generic*: its value determines the address space.
//! Instructions for one known address space take *specific* addresses, which in
//! shared and local memory are other numbers.

pub use crate::address_space::AddressSpace;

/// Whether a generic pointer points into an address space (`isspacep`).
///
/// In the emulator all memory is the host's: what `shared_array!`,
/// `dynamic_shared_mem` and shared statics gave is shared, exported statics in
/// constant memory are constant, the thread's stack is local, and everything
/// else is global.
///
/// # Safety
///
/// `ptr` is valid for reads of a `T`.
#[must_use]
#[inline(always)]
pub unsafe fn is_in_address_space<T>(ptr: *const T, address_space: AddressSpace) -> bool {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: inspects only the address.
    let inside = unsafe {
        let ptr = ptr.cast();
        match address_space {
            AddressSpace::Global => crate::sys::isspacep_global(ptr),
            AddressSpace::Shared => crate::sys::isspacep_shared(ptr),
            AddressSpace::Constant => crate::sys::isspacep_const(ptr),
            AddressSpace::Local => crate::sys::isspacep_local(ptr),
        }
    };
    #[cfg(not(target_arch = "nvptx64"))]
    let inside = crate::__private::address_space_of(ptr.addr()) == address_space;
    inside
}

macro_rules! convert {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[must_use]
        #[inline(always)]
        pub unsafe fn $name<T>(ptr: *const T, address_space: AddressSpace) -> *const T {
            #[cfg(target_arch = "nvptx64")]
            {
                macro_rules! cvta {
                    ($space:literal) => {{
                        let converted: *const T;
                        // SAFETY: arithmetic on an address.
                        unsafe {
                            core::arch::asm!(
                                concat!("cvta.", $prefix, $space, ".u64 {}, {};"),
                                out(reg64) converted,
                                in(reg64) ptr as u64,
                                options(pure, nomem, nostack, preserves_flags),
                            );
                        }
                        converted
                    }};
                }
                match address_space {
                    AddressSpace::Global => cvta!("global"),
                    AddressSpace::Shared => cvta!("shared"),
                    AddressSpace::Constant => cvta!("const"),
                    AddressSpace::Local => cvta!("local"),
                }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                let _ = address_space;
                ptr
            }
        }
    };
}

convert! {
    /// Converts a generic pointer to the specific address in an address space
    /// (`cvta.to`).
    ///
    /// In the emulator there is one address space, and the result is `ptr`.
    ///
    /// # Safety
    ///
    /// `ptr` is valid for reads of a `T` and points into `address_space`. The
    /// result must not be dereferenced: it is an operand for inline PTX.
    convert_generic_to_specific_address_space, "to."
}

convert! {
    /// Converts a specific address in an address space to a generic pointer
    /// (`cvta`).
    ///
    /// In the emulator there is one address space, and the result is `ptr`.
    ///
    /// # Safety
    ///
    /// `ptr` is the specific address, in `address_space`, of a `T`.
    convert_specific_address_space_to_generic, ""
}
