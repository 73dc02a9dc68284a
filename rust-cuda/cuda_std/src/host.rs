//! The host's side of a kernel, for launchers: typed arguments, their packed
//! form, kernel handles.
//!
//! `#[kernel]` generates on the host, beside the function, a type of the same
//! name that implements [`Kernel`]; its `args` function takes the kernel's
//! arguments, checked at compile time, and a launcher either
//!
//! - packs them ([`Kernel::pack`]) and hands the pointers to the driver, or
//! - runs the kernel function itself, thread by thread ([`Kernel::run_thread`]),
//!   in the emulator.
//!
//! This module launches nothing.
//!
//! ```
//! use cuda_std::host::{In, Kernel, Out, ParamPack};
//! use cuda_std::prelude::*;
//!
//! /// Writes `value` to the first `n` elements of `out`.
//! ///
//! /// # Safety
//! ///
//! /// `out` is valid for writes of `n` elements.
//! #[kernel]
//! pub unsafe fn fill(out: *mut u32, n: usize, value: u32) {
//!     let i = thread::index_1d() as usize;
//!     if i < n {
//!         // SAFETY: in bounds, and no other thread has this index.
//!         unsafe { *out.add(i) = value };
//!     }
//! }
//!
//! // A launcher wraps this in its own type of device buffer.
//! let mut data = vec![0_u32; 100];
//! // SAFETY: the address is that of `data`, borrowed mutably for as long.
//! let out = unsafe { Out::from_raw(data.as_mut_ptr().expose_provenance() as u64, data.len()) };
//! let args = fill::args(out, 100, 7);
//!
//! let mut pack = ParamPack::new();
//! fill::pack(&args, &mut pack);
//! assert_eq!(fill::NAME, "fill");
//! assert_eq!(pack.sizes().collect::<Vec<_>>(), [8, 8, 4]);
//! ```

pub use crate::__private::LaunchBounds;
use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr;

/// An input of a kernel: the address and the length of memory that the kernel
/// reads.
///
/// For parameters written `&[T]`, `&T`, `*const T` and `*const [T]`. Launchers
/// implement `From<&TheirBuffer<T>> for In<'_, T>`; the lifetime keeps the buffer
/// borrowed while the arguments exist.
pub struct In<'a, T> {
    addr: u64,
    len: usize,
    buffer: PhantomData<&'a [T]>,
}

/// An output of a kernel: the address and the length of memory that the kernel
/// writes, and may read.
///
/// For parameters written `&mut [T]`, `&mut T`, `*mut T` and `*mut [T]`.
/// Launchers implement `From<&mut TheirBuffer<T>> for Out<'_, T>`, but not
/// `From` of a shared reference.
pub struct Out<'a, T> {
    addr: u64,
    len: usize,
    buffer: PhantomData<&'a mut [T]>,
}

macro_rules! buffer_argument {
    ($name:ident, $access:literal) => {
        impl<T> $name<'_, T> {
            /// An argument from an address and a number of elements.
            ///
            /// The address is one on the device, or, for a launch in the
            /// emulator, one of this process.
            ///
            /// # Safety
            ///
            #[doc = concat!("For as long as the lifetime says, `addr` is the address of `len` values of `T` that ", $access, ".")]
            #[must_use]
            pub const unsafe fn from_raw(addr: u64, len: usize) -> Self {
                Self { addr, len, buffer: PhantomData }
            }

            /// The address.
            #[must_use]
            pub const fn addr(&self) -> u64 {
                self.addr
            }

            /// The address for a slice: never null, even of no elements.
            #[must_use]
            pub const fn slice_addr(&self) -> u64 {
                if self.addr == 0 {
                    align_of::<T>() as u64
                } else {
                    self.addr
                }
            }

            /// The number of elements.
            #[must_use]
            pub const fn len(&self) -> usize {
                self.len
            }

            /// Whether the length is 0.
            #[must_use]
            pub const fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// The address as a pointer of this process; useless for an address
            /// on the device.
            #[must_use]
            pub fn as_ptr(&self) -> *const T {
                pointer(self.addr)
            }

            /// Address and length as a raw slice of this process.
            #[must_use]
            pub fn as_slice_ptr(&self) -> *const [T] {
                ptr::slice_from_raw_parts(self.as_ptr(), self.len)
            }
        }

        impl<T> fmt::Debug for $name<'_, T> {
            fmt_buffer!($name);
        }
    };
}

macro_rules! fmt_buffer {
    ($name:ident) => {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(
                f,
                concat!(stringify!($name), "({:#x}, {} × {})"),
                self.addr,
                self.len,
                core::any::type_name::<T>()
            )
        }
    };
}

buffer_argument!(In, "nobody writes");
buffer_argument!(Out, "nobody else reads or writes");

impl<T> Clone for In<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for In<'_, T> {}

impl<'a, T> In<'a, T> {
    /// The elements.
    ///
    /// # Safety
    ///
    /// The address is one of this process, and the conditions of
    /// [`from_raw`](Self::from_raw) still hold.
    #[must_use]
    pub unsafe fn as_slice(&self) -> &'a [T] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise.
        unsafe { &*self.as_slice_ptr() }
    }
}

impl<'a, T> Out<'a, T> {
    /// The address as a pointer of this process; useless for an address on the
    /// device.
    #[must_use]
    pub fn as_mut_ptr(&self) -> *mut T {
        pointer::<T>(self.addr).cast_mut()
    }

    /// Address and length as a raw slice of this process.
    #[must_use]
    pub fn as_mut_slice_ptr(&self) -> *mut [T] {
        ptr::slice_from_raw_parts_mut(self.as_mut_ptr(), self.len)
    }

    /// The elements.
    ///
    /// # Safety
    ///
    /// The address is one of this process, the conditions of
    /// [`from_raw`](Self::from_raw) still hold, and no other reference to the
    /// elements is in use.
    #[must_use]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn as_mut_slice(&self) -> &'a mut [T] {
        if self.len == 0 {
            return &mut [];
        }
        // SAFETY: the caller's promise.
        unsafe { &mut *self.as_mut_slice_ptr() }
    }
}

// SAFETY: an address and a length. Only the kernel accesses the memory there,
// and the caller of its unsafe launch vouches for that.
unsafe impl<T> Send for In<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for In<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Send for Out<'_, T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Out<'_, T> {}

/// An address as a pointer of this process.
fn pointer<T>(addr: u64) -> *const T {
    // An address too large for this process cannot be one of its own; the
    // pointer is then null, and using it faults.
    usize::try_from(addr).map_or(ptr::null(), ptr::with_exposed_provenance)
}

/// The parameters of one launch in the driver's form: each parameter's bytes,
/// aligned, in order.
///
/// ```
/// use cuda_std::host::ParamPack;
///
/// let mut pack = ParamPack::new();
/// pack.push_address(0x7000_0000);
/// pack.push_len(1024);
/// pack.push_value(&0.5_f32);
/// assert_eq!(pack.len(), 3);
///
/// let pointers = pack.as_ptrs(); // for cuLaunchKernel
/// // SAFETY: the second parameter is a `usize`.
/// assert_eq!(unsafe { *pointers[1].cast::<usize>() }, 1024);
/// ```
#[derive(Default)]
pub struct ParamPack {
    bytes: Vec<MaybeUninit<Chunk>>,
    parameters: Vec<Parameter>,
}

/// The largest alignment that a kernel parameter can have.
const MAX_ALIGN: usize = 128;

/// The unit in which memory is reserved; it carries the alignment.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Chunk([u8; MAX_ALIGN]);

#[derive(Clone, Copy)]
struct Parameter {
    /// Offset in bytes.
    offset: usize,
    /// Size in bytes.
    size: usize,
}

impl ParamPack {
    /// An empty pack.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a pointer parameter.
    pub fn push_address(&mut self, addr: u64) {
        self.push_value(&addr);
    }

    /// Appends the length of a slice, in elements.
    pub fn push_len(&mut self, len: usize) {
        self.push_value(&len);
    }

    /// Appends a parameter that is passed by value, bit for bit. A value of size zero is none: the
    /// compiler leaves it out of the entry point's parameters.
    ///
    /// The alignment of `T` is at most 128 bytes; more does not compile.
    pub fn push_value<T: Copy>(&mut self, value: &T) {
        // SAFETY: a `Copy` value may be copied bit for bit.
        unsafe { self.push_bits(value) };
    }

    /// Appends a parameter as [`push_value`](Self::push_value) does, of a type
    /// that need not be `Copy`.
    ///
    /// # Safety
    ///
    /// The kernel may use a copy of the value while the value itself exists.
    pub unsafe fn push_bits<T>(&mut self, value: &T) {
        const {
            assert!(
                align_of::<T>() <= MAX_ALIGN,
                "kernel parameters are aligned to 128 bytes at most"
            );
        }
        if size_of::<T>() == 0 {
            return;
        }
        let used = self
            .parameters
            .last()
            .map_or(0, |last| last.offset + last.size);
        let offset = used.next_multiple_of(align_of::<T>());
        let size = size_of::<T>();
        let chunks = (offset + size).div_ceil(MAX_ALIGN);
        self.bytes
            .resize(chunks.max(self.bytes.len()), MaybeUninit::uninit());
        // SAFETY: `offset + size` bytes are reserved, the base is aligned to 128
        // and the offset to T's alignment. Padding in T may be uninitialised,
        // and stays so: the copy is untyped.
        unsafe {
            let target = self.bytes.as_mut_ptr().cast::<u8>().add(offset);
            ptr::copy_nonoverlapping(ptr::from_ref(value), target.cast::<T>(), 1);
        }
        self.parameters.push(Parameter { offset, size });
    }

    /// The number of parameters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parameters.len()
    }

    /// Whether there are no parameters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }

    /// The size of each parameter in bytes.
    pub fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.parameters.iter().map(|parameter| parameter.size)
    }

    /// A pointer to each parameter, for `cuLaunchKernel`'s `kernelParams`.
    ///
    /// They are valid until the pack is changed or dropped.
    #[must_use]
    pub fn as_ptrs(&mut self) -> Vec<*mut c_void> {
        let base = self.bytes.as_mut_ptr().cast::<u8>();
        self.parameters
            .iter()
            // SAFETY: within the reserved bytes.
            .map(|parameter| unsafe { base.add(parameter.offset) }.cast())
            .collect()
    }
}

impl fmt::Debug for ParamPack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParamPack({:?} bytes)", self.sizes().collect::<Vec<_>>())
    }
}

/// A kernel's handle: its name, its launch bounds and its parameter list.
/// `#[kernel]` implements it.
///
/// # Safety
///
/// [`NAME`](Self::NAME) is the entry point's name in the PTX, and
/// [`pack`](Self::pack) appends exactly the entry point's parameters, in order.
pub unsafe trait Kernel {
    /// The name of the entry point.
    const NAME: &'static str;

    /// The numbers of its [`launch_bounds`](macro@crate::launch_bounds)
    /// attribute, if it has one. Launchers refuse larger blocks.
    const LAUNCH_BOUNDS: Option<LaunchBounds> = None;

    /// The arguments of a launch: [`In`], [`Out`] and plain values, as a tuple.
    type Args<'a>;

    /// Appends the parameters of the entry point to `pack`; a slice is two,
    /// address and length.
    fn pack(args: &Self::Args<'_>, pack: &mut ParamPack);

    /// Calls `each` with the name and the address of every parameter that
    /// points to memory, for use in messages.
    fn addresses(args: &Self::Args<'_>, each: &mut dyn FnMut(&'static str, u64)) {
        let _ = (args, each);
    }

    /// Runs the kernel once, as the current emulated thread.
    ///
    /// # Safety
    ///
    /// The addresses in `args` are of this process, and everything that the
    /// kernel's own contract demands of its launch holds.
    unsafe fn run_thread(args: &Self::Args<'_>);
}

/// A constant that the host sets: the handle of a
/// `#[externally_visible] #[address_space(constant)] pub static mut`.
///
/// # Safety
///
/// [`NAME`](Self::NAME) is the symbol's name in the PTX, its type there is
/// [`Value`](Self::Value), and [`host_address`](Self::host_address) is the
/// address of the static that emulated kernels read.
pub unsafe trait Symbol {
    /// The name of the symbol.
    const NAME: &'static str;

    /// The type of the constant.
    type Value: Copy + 'static;

    /// The address where emulated kernels read it. Writing there races with
    /// kernels that run in the emulator at the same time.
    fn host_address() -> *mut Self::Value;
}
