//! Shared memory: the fast memory of a block.
//!
//! There are three ways to declare it; all of it is uninitialised until a
//! thread writes it:
//!
//! - [`shared_array!`](crate::shared_array): an array whose size is constant;
//! - [`dynamic_shared_mem`]: as many bytes as the launch requests;
//! - [`#[address_space(shared)]`](macro@crate::address_space) on a `static mut`.
//!
//! A write becomes visible to the block's other threads at the next
//! [`sync_threads`](crate::thread::sync_threads).

/// An array in the block's shared memory: `shared_array![T; N]` is a `*mut T` to
/// `N` uninitialised elements.
///
/// `T` and `N` must not name a generic parameter of the enclosing function (the
/// array is a static, which cannot depend on one): declare it in the kernel and
/// pass the pointer on. Each `shared_array!` in the source is one array per
/// block, however often it is executed; two of them are two arrays.
///
/// ```
/// use cuda_std::prelude::*;
/// use cuda_std::shared_array;
///
/// /// Reverses `n` elements in place, with one block of `n` threads.
/// ///
/// /// # Safety
/// ///
/// /// `n` is at most 64, and `d` valid for reads and writes of `n` elements.
/// #[kernel]
/// pub unsafe fn reverse(d: *mut i32, n: usize) {
///     let tile = shared_array![i32; 64];
///     let i = thread::thread_idx_x() as usize;
///     // SAFETY: i < n ≤ 64; each thread writes its own element.
///     unsafe { *tile.add(i) = *d.add(i) };
///     thread::sync_threads();
///     // SAFETY: all n elements are written and nobody writes them any more.
///     unsafe { *d.add(i) = *tile.add(n - 1 - i) };
/// }
/// ```
///
/// # Safety
///
/// The macro is safe, using the pointer is not: an element must be written
/// before it is read, with a barrier between the two when the threads differ;
/// no two threads may access an element at once when one of them writes; no
/// access may be out of bounds. The emulator reports the violations that it
/// detects.
#[macro_export]
macro_rules! shared_array {
    ($element:ty; $len:expr) => {{
        #[cfg(target_arch = "nvptx64")]
        #[inline(always)]
        fn shared_array() -> *mut $element {
            struct Shared(::core::cell::UnsafeCell<::core::mem::MaybeUninit<[$element; $len]>>);
            // SAFETY: threads get a raw pointer, and dereferencing that is unsafe.
            unsafe impl ::core::marker::Sync for Shared {}

            #[$crate::address_space(shared)]
            static SHARED: Shared = Shared(::core::cell::UnsafeCell::new(
                ::core::mem::MaybeUninit::uninit(),
            ));

            SHARED.0.get().cast()
        }
        #[cfg(not(target_arch = "nvptx64"))]
        #[track_caller]
        fn shared_array() -> *mut $element {
            static SLOT: $crate::__private::SharedSlot = $crate::__private::SharedSlot::new(
                concat!(
                    "shared_array![",
                    stringify!($element),
                    "; ",
                    stringify!($len),
                    "]"
                ),
                file!(),
                line!(),
            );
            $crate::__private::shared_array::<[$element; $len]>(&SLOT).cast()
        }
        shared_array()
    }};
}

/// The block's dynamic shared memory: as many bytes as the launch requested
/// ([`mem::dynamic_smem_size`](crate::mem::dynamic_smem_size)), aligned to 16.
///
/// Every call returns the same address, whatever `T` is: a kernel that needs
/// two arrays places the second after the first.
///
/// ```
/// use cuda_std::prelude::*;
/// use cuda_std::shared::dynamic_shared_mem;
///
/// /// Each block reverses its elements of `d`; launched with
/// /// `4 * block_dim_x` bytes of shared memory.
/// ///
/// /// # Safety
/// ///
/// /// `d` is valid for reads and writes of one element per thread of the grid.
/// #[kernel]
/// pub unsafe fn reverse_blocks(d: *mut f32) {
///     let tile = dynamic_shared_mem::<f32>();
///     let (i, n) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize);
///     let global = thread::index_1d() as usize;
///     // SAFETY: the launch gives n elements of shared memory.
///     unsafe { *tile.add(i) = *d.add(global) };
///     thread::sync_threads();
///     // SAFETY: all n elements are written.
///     unsafe { *d.add(global) = *tile.add(n - 1 - i) };
/// }
/// ```
#[must_use]
#[inline(always)]
#[track_caller]
pub fn dynamic_shared_mem<T>() -> *mut T {
    #[cfg(target_arch = "nvptx64")]
    {
        unsafe extern "C" {
            // The device linker makes this the extern array of shared memory.
            #[link_name = "__cuda_std_dynamic_shared"]
            static mut DYNAMIC_SHARED: [u8; 0];
        }
        (&raw mut DYNAMIC_SHARED).cast()
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        cuda_emulator::intrinsics::dynamic_shared().cast()
    }
}
