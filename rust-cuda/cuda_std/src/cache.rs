//! Loads and stores of global memory with a caching hint.
//!
//! | function | PTX | for |
//! |---|---|---|
//! | [`load_readonly`] | `ld.global.nc` | data that nobody writes while the kernel runs |
//! | [`load_streaming`] | `ld.global.cs` | data read once |
//! | [`load_l2`] | `ld.global.cg` | data that other multiprocessors write |
//! | [`store_streaming`] | `st.global.cs` | data not read again soon |
//! | [`store_l2`] | `st.global.cg` | data that other multiprocessors read |
//!
//! Each moves one value of 1, 2, 4, 8 or 16 bytes, aligned to its size: a number,
//! or a `#[repr(C, align(16))]` struct of four `f32`, which is one 16-byte
//! access. Other sizes do not compile:
//!
//! ```compile_fail
//! let three = [1_u8; 3];
//! unsafe { cuda_std::cache::load_readonly(&three) };
//! ```
//!
//! An alignment below the size does not compile either:
//!
//! ```compile_fail
//! let four = [1.0_f32; 4];
//! unsafe { cuda_std::cache::load_readonly(&four) };
//! ```
//!
//! On the host they are plain loads and stores, which panic at an address that
//! is not aligned, as a GPU would fault. Upstream has none of them.
//!
//! ```
//! use cuda_std::cache::{load_readonly, store_streaming};
//! use cuda_std::prelude::*;
//!
//! /// Copies `n` bodies, 16 bytes at a time.
//! ///
//! /// # Safety
//! ///
//! /// `from` and `to` are valid for reads and writes of `n` bodies, and disjoint.
//! #[kernel]
//! pub unsafe fn copy(from: *const Body, to: *mut Body, n: usize) {
//!     let i = thread::index_1d() as usize;
//!     if i < n {
//!         // SAFETY: in bounds; nobody writes `from`, and nobody else `to[i]`.
//!         unsafe { store_streaming(to.add(i), load_readonly(from.add(i))) };
//!     }
//! }
//!
//! /// A point mass.
//! #[derive(Clone, Copy)]
//! #[repr(C, align(16))]
//! pub struct Body {
//!     /// Position.
//!     pub position: [f32; 3],
//!     /// Mass.
//!     pub mass: f32,
//! }
//! ```

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// Checks at compile time that a `T` takes one access of the hardware.
struct Access<T>(core::marker::PhantomData<T>);

impl<T> Access<T> {
    const CHECK: () = {
        assert!(
            matches!(size_of::<T>(), 1 | 2 | 4 | 8 | 16),
            "cached loads and stores move 1, 2, 4, 8 or 16 bytes"
        );
        assert!(
            align_of::<T>() == size_of::<T>(),
            "cached loads and stores need a type that is aligned to its size: #[repr(align(..))]"
        );
    };
}

macro_rules! load {
    ($(#[$doc:meta])* $name:ident, $ptx:literal, options($($option:ident),*)) => {
        $(#[$doc])*
        #[must_use]
        #[inline(always)]
        pub unsafe fn $name<T: Copy>(pointer: *const T) -> T {
            const { Access::<T>::CHECK };
            // SAFETY: as the caller promises. The words have T's size,
            // `transmute_copy` needs no alignment, and the bits are valid for
            // T: they were read from one.
            #[cfg(target_arch = "nvptx64")]
            unsafe {
                match size_of::<T>() {
                    1 => {
                        let bits: u16;
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("ld.global.", $ptx, ".u8 {bits}, [global]; }}"),
                            pointer = in(reg64) pointer,
                            bits = out(reg16) bits,
                            options(nostack, preserves_flags, $($option),*),
                        );
                        core::mem::transmute_copy(&(bits as u8))
                    }
                    2 => {
                        let bits: u16;
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("ld.global.", $ptx, ".u16 {bits}, [global]; }}"),
                            pointer = in(reg64) pointer,
                            bits = out(reg16) bits,
                            options(nostack, preserves_flags, $($option),*),
                        );
                        core::mem::transmute_copy(&bits)
                    }
                    4 => {
                        let bits: u32;
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("ld.global.", $ptx, ".u32 {bits}, [global]; }}"),
                            pointer = in(reg64) pointer,
                            bits = out(reg32) bits,
                            options(nostack, preserves_flags, $($option),*),
                        );
                        core::mem::transmute_copy(&bits)
                    }
                    8 => {
                        let bits: u64;
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("ld.global.", $ptx, ".u64 {bits}, [global]; }}"),
                            pointer = in(reg64) pointer,
                            bits = out(reg64) bits,
                            options(nostack, preserves_flags, $($option),*),
                        );
                        core::mem::transmute_copy(&bits)
                    }
                    _ => {
                        let (a, b, c, d): (u32, u32, u32, u32);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("ld.global.", $ptx, ".v4.u32 {{{a}, {b}, {c}, {d}}}, [global]; }}"),
                            pointer = in(reg64) pointer,
                            a = out(reg32) a,
                            b = out(reg32) b,
                            c = out(reg32) c,
                            d = out(reg32) d,
                            options(nostack, preserves_flags, $($option),*),
                        );
                        core::mem::transmute_copy(&[a, b, c, d])
                    }
                }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                assert!(pointer.is_aligned(), "misaligned access of {} bytes", size_of::<T>());
                // SAFETY: as the caller promises.
                unsafe { pointer.read() }
            }
        }
    };
}

load! {
    /// Loads through the read-only (texture) cache, which is not coherent with
    /// writes: `ld.global.nc`, CUDA's `__ldg`.
    ///
    /// The compiler may move such a load past barriers, and merge two such
    /// loads.
    ///
    /// # Safety
    ///
    /// `pointer` is valid for reads, aligned, in global memory, and nobody
    /// writes the value from the launch of the kernel to its end.
    load_readonly, "nc", options(pure, readonly)
}

load! {
    /// Loads a value that is likely to be read once; its cache line is evicted
    /// first: `ld.global.cs`, CUDA's `__ldcs`.
    ///
    /// # Safety
    ///
    /// `pointer` is valid for reads, aligned, and in global memory.
    load_streaming, "cs", options(readonly)
}

load! {
    /// Loads from the L2 cache, bypassing L1: `ld.global.cg`, CUDA's `__ldcg`.
    ///
    /// # Safety
    ///
    /// `pointer` is valid for reads, aligned, and in global memory.
    load_l2, "cg", options(readonly)
}

macro_rules! store {
    ($(#[$doc:meta])* $name:ident, $ptx:literal) => {
        $(#[$doc])*
        #[inline(always)]
        pub unsafe fn $name<T: Copy>(pointer: *mut T, value: T) {
            const { Access::<T>::CHECK };
            // SAFETY: as the caller promises; the words have T's size. A T with
            // padding stores unspecified bits there, as it would anyway.
            #[cfg(target_arch = "nvptx64")]
            unsafe {
                match size_of::<T>() {
                    1 => {
                        let bits: u8 = core::mem::transmute_copy(&value);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("st.global.", $ptx, ".u8 [global], {bits}; }}"),
                            pointer = in(reg64) pointer,
                            bits = in(reg16) bits as u16,
                            options(nostack, preserves_flags),
                        );
                    }
                    2 => {
                        let bits: u16 = core::mem::transmute_copy(&value);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("st.global.", $ptx, ".u16 [global], {bits}; }}"),
                            pointer = in(reg64) pointer,
                            bits = in(reg16) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    4 => {
                        let bits: u32 = core::mem::transmute_copy(&value);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("st.global.", $ptx, ".u32 [global], {bits}; }}"),
                            pointer = in(reg64) pointer,
                            bits = in(reg32) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    8 => {
                        let bits: u64 = core::mem::transmute_copy(&value);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("st.global.", $ptx, ".u64 [global], {bits}; }}"),
                            pointer = in(reg64) pointer,
                            bits = in(reg64) bits,
                            options(nostack, preserves_flags),
                        );
                    }
                    _ => {
                        let [a, b, c, d]: [u32; 4] = core::mem::transmute_copy(&value);
                        asm!(
                            "{{ .reg .u64 global; cvta.to.global.u64 global, {pointer};",
                            concat!("st.global.", $ptx, ".v4.u32 [global], {{{a}, {b}, {c}, {d}}}; }}"),
                            pointer = in(reg64) pointer,
                            a = in(reg32) a,
                            b = in(reg32) b,
                            c = in(reg32) c,
                            d = in(reg32) d,
                            options(nostack, preserves_flags),
                        );
                    }
                }
            }
            #[cfg(not(target_arch = "nvptx64"))]
            {
                assert!(pointer.is_aligned(), "misaligned access of {} bytes", size_of::<T>());
                // SAFETY: as the caller promises.
                unsafe { pointer.write(value) };
            }
        }
    };
}

store! {
    /// Stores a value that is not likely to be read again soon; its cache line
    /// is evicted first: `st.global.cs`, CUDA's `__stcs`.
    ///
    /// # Safety
    ///
    /// `pointer` is valid for writes, aligned, and in global memory.
    store_streaming, "cs"
}

store! {
    /// Stores to the L2 cache, bypassing L1: `st.global.cg`, CUDA's `__stcg`.
    ///
    /// # Safety
    ///
    /// `pointer` is valid for writes, aligned, and in global memory.
    store_l2, "cg"
}
