//! What the macros' expansions name. No part of the API.

pub use alloc::format;

#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use cuda_emulator::intrinsics as emulator;
    pub use cuda_emulator::intrinsics::SharedSlot;
    pub use inventory;

    /// The memory of a `shared_array!` in the calling thread's block.
    #[track_caller]
    #[must_use]
    pub fn shared_array<T>(slot: &'static SharedSlot) -> *mut T {
        emulator::shared_static(slot, size_of::<T>(), align_of::<T>()).cast()
    }

    /// A shared static that kernels use in place.
    pub struct SharedStatic {
        slot: SharedSlot,
        address: fn() -> *mut u8,
        size: usize,
    }

    impl SharedStatic {
        /// The static called `name`, declared at `file`:`line`.
        #[must_use]
        pub const fn new(
            name: &'static str,
            file: &'static str,
            line: u32,
            address: fn() -> *mut u8,
            size: usize,
        ) -> Self {
            Self {
                slot: SharedSlot::new(name, file, line),
                address,
                size,
            }
        }

        /// Announces that the calling thread uses it.
        ///
        /// # Safety
        ///
        /// `address` is that of a static of `size` bytes in which any bits are
        /// allowed, and which only emulated threads of kernels touch.
        #[track_caller]
        pub unsafe fn enter(&'static self) {
            // SAFETY: as the caller promises.
            unsafe { emulator::register_shared_static(&self.slot, (self.address)(), self.size) };
        }
    }

    inventory::collect!(SharedStatic);

    /// Called first by every kernel: announces the shared statics that stand
    /// outside a kernel, of which the kernel may use any through a helper.
    #[track_caller]
    pub fn enter_kernel() {
        let mut statics = inventory::iter::<SharedStatic>().peekable();
        if statics.peek().is_none() || !emulator::in_kernel() {
            return;
        }
        for shared in statics {
            // SAFETY: only `#[address_space(shared)]` submits to the inventory,
            // with the address and the size of its static. That nobody but
            // kernels touches it is what its user promises by `static mut`.
            unsafe { shared.enter() };
        }
    }

    /// Announces a shared static that stands inside the kernel.
    #[track_caller]
    pub fn enter_shared_static(shared: &'static SharedStatic) {
        if emulator::in_kernel() {
            // SAFETY: as in `enter_kernel`.
            unsafe { shared.enter() };
        }
    }
}

/// Registers a shared static that stands outside a kernel.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __register_shared_static {
    ($name:literal, $address:expr, $ty:ty) => {
        $crate::__private::inventory::submit! {
            $crate::__private::SharedStatic::new(
                $name, file!(), line!(), $address, ::core::mem::size_of::<$ty>(),
            )
        }
    };
}
#[cfg(not(target_arch = "nvptx64"))]
pub use __register_shared_static as register_shared_static;
