//! The attribute macros of `cuda_std`: [`macro@kernel`], [`macro@launch_bounds`],
//! [`macro@address_space`], [`macro@gpu_only`] and [`macro@externally_visible`].
//!
//! They keep the names and the meaning that rust-cuda gave them and expand to
//! what the stock compiler's `nvptx64-nvidia-cuda` target understands: the
//! `ptx-kernel` calling convention, and `link_section` names that
//! `cuda_builder`'s link step turns into address spaces and exported symbols.
//!
//! | section | meaning |
//! |---|---|
//! | `.shared` | a static of the block's shared memory |
//! | `.constant` | a static of constant memory |
//! | `.global` | a static of global memory |
//! | `.visible` | a function that stays although no kernel calls it |
//! | `.shared.visible`, … | the same static, exported by its name |
//! | `.launch_bounds` | two numbers that become directives of a kernel; the static is removed |
//! | `.grid_constant` | numbers that say which parameters of a kernel are values of the launch; the static is removed |
//!
//! For `target_arch = "nvptx64"` the macros expand to device code. On any other target kernels are
//! ordinary functions that the emulator runs.
//!
//! Kernel crates do not name this crate: `cuda_std` re-exports all of it. The expansions name
//! `::cuda_std`, so a kernel crate must depend on `cuda_std` under that name, or say
//! `#[kernel(crate = path)]`.

mod gpu_only;
mod grid_constant;
mod kernel;
mod launch_bounds;
mod paste;
mod statics;
mod visible;

use proc_macro::TokenStream;

/// Registers a function as a kernel: a function that the host launches.
///
/// On the device the function becomes an entry point of the PTX, exported under its own name.
/// Slices are split, as rust-cuda's host code passes them: `a: &[f32]` is two parameters of the
/// entry point, a pointer and a length in elements (`usize`). The slice is rebuilt before the first
/// statement of the body.
///
/// On the host the function stays as it is, an ordinary `unsafe fn` for the
/// emulator to call, and a type of the same name comes with it: the kernel's
/// *handle*. It carries the kernel's name and its parameter list, so that a
/// launcher checks the number and the types of the arguments at compile time:
///
/// ```
/// use cuda_std::host::{In, Kernel, Out};
/// use cuda_std::prelude::*;
///
/// /// Adds two vectors.
/// ///
/// /// # Safety
/// ///
/// /// `c` is valid for writes of `a.len()` elements; `b` is as long as `a`.
/// #[kernel]
/// pub unsafe fn vecadd(a: &[f32], b: &[f32], c: *mut f32) {
///     let i = thread::index_1d() as usize;
///     if i < a.len() {
///         // SAFETY: `c` has `a.len()` elements, and no other thread writes this one.
///         unsafe { *c.add(i) = a[i] + b[i] };
///     }
/// }
///
/// assert!(<vecadd as Kernel>::NAME == "vecadd");
/// fn arguments<'a>(a: In<'a, f32>, b: In<'a, f32>, c: Out<'a, f32>) -> <vecadd as Kernel>::Args<'a> {
///     vecadd::args(a, b, c)
/// }
/// ```
///
/// # Parameters
///
/// | parameter | entry point takes | the handle takes |
/// |---|---|---|
/// | `&[T]`, `*const [T]` | pointer, `usize` | `impl Into<In<T>>` |
/// | `&mut [T]`, `*mut [T]` | pointer, `usize` | `impl Into<Out<T>>` |
/// | `&T`, `*const T` | pointer | `impl Into<In<T>>` |
/// | `&mut T`, `*mut T` | pointer | `impl Into<Out<T>>` |
/// | any other `T: Copy` | `T`, bit for bit | `T` |
/// | `#[grid_constant]` before a `&T`, `T: Copy` | `T`, bit for bit | `T` |
///
/// `#[grid_constant]` is CUDA C++'s `__grid_constant__`: the launch holds the value in constant
/// memory, and all threads read it there. Use it for tables. Of a table that is taken as `T` and
/// read at an index not known at compile time, each thread first makes a copy of its own.
///
/// ```
/// use cuda_std::prelude::*;
///
/// /// A polynomial, the constant term first.
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// pub struct Polynomial {
///     coefficients: [f32; 8],
/// }
///
/// /// Its value at each of `n` points.
/// ///
/// /// # Safety
/// ///
/// /// `x` has `n` elements, and `degree` is below 8.
/// #[kernel]
/// pub unsafe fn evaluate(x: *mut f32, n: u32, degree: u32, #[grid_constant] of: &Polynomial) {
///     let i = thread::index_1d();
///     if i < n {
///         // SAFETY: in bounds, and no other thread has this index.
///         let x = unsafe { &mut *x.add(i as usize) };
///         let terms = of.coefficients[..=degree as usize].iter().rev();
///         *x = terms.fold(0.0, |sum, term| sum * *x + term);
///     }
/// }
///
/// fn arguments(x: cuda_std::host::Out<'_, f32>, of: Polynomial) {
///     let _ = evaluate::args(x, 100, 3, of); // by value
/// }
/// ```
///
/// The macro sees a type as it is written: a type alias of a pointer counts as a value. A
/// zero-length slice needs a pointer that is not null. `&mut [T]` is accepted as upstream accepts
/// it, but a whole buffer borrowed mutably by every thread at once breaks Rust's aliasing rules:
/// take outputs as `*mut T`.
///
/// # Attribute arguments
///
/// - `#[kernel(grid_dim = 2d, block_dim = 1d)]`, with `1d`, `2d` or `3d`, states
///   how the kernel means to be launched. As upstream, nothing depends on it.
/// - `#[kernel(handle = Name)]` names the handle, which otherwise has the kernel's name. For a
///   kernel `gemm` in a file `gemm.rs` the default is `gemm_handle`: `pub use gemm::gemm;` in the
///   parent module must not import a type by the name of the module.
/// - `#[kernel(crate = path)]` says where `cuda_std` is, for macros that make kernels in
///   crates without a dependency on it: `crate = $crate::cuda_std`.
///
/// # Errors at compile time
///
/// A kernel must be `unsafe`; it cannot be `async`, `const`, variadic, or
/// generic over types or constants, cannot have a receiver and cannot return a
/// value. `&str`, `&dyn Trait` and `impl Trait` parameters are refused.
#[proc_macro_attribute]
pub fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    let file = proc_macro::Span::call_site().local_file();
    finish(kernel::expand(attr.into(), item.into(), file.as_deref()))
}

/// Places a `static` in one of the GPU's address spaces: `shared`, `constant` or
/// `global`.
///
/// ```
/// use cuda_std::prelude::*;
/// use cuda_std::{address_space, externally_visible};
///
/// /// Stencil coefficients, set by the host before a launch.
/// #[externally_visible]
/// #[address_space(constant)]
/// pub static mut COEFFICIENTS: [f32; 4] = [0.0; 4];
///
/// /// Reverses 64 elements in place.
/// ///
/// /// # Safety
/// ///
/// /// `d` is valid for reads and writes of 64 elements; one block of 64 threads.
/// #[kernel]
/// pub unsafe fn reverse(d: *mut f32) {
///     #[address_space(shared)]
///     static mut TILE: [f32; 64] = [0.0; 64];
///     let i = thread::thread_idx_x() as usize;
///     unsafe { TILE[i] = *d.add(i) };
///     thread::sync_threads();
///     unsafe { *d.add(i) = TILE[63 - i] };
/// }
/// ```
///
/// - **`shared`**: one copy per block. The initialiser is not run on the device;
///   the memory is uninitialised until a thread writes it.
/// - **`constant`**: read-only to kernels, set by the host. It must be a
///   `static mut` (or hold an `UnsafeCell`): a plain `static` is a constant to
///   the compiler, which would fold the initialiser into the kernel and never
///   see what the host uploads. With [`macro@externally_visible`] (or
///   `#[no_mangle]`) the host finds it by name, and on the host a handle type of
///   the same name implements `cuda_std::host::Symbol`.
/// - **`global`**: memory of the device, the default for statics.
/// - `local` is refused: PTX has no module-scope variables in local memory. Use an ordinary local
///   variable.
///
/// On the host the static stays where it is. A shared one is registered with the emulator, which
/// then runs one block at a time and poisons the static before each block.
#[proc_macro_attribute]
pub fn address_space(attr: TokenStream, item: TokenStream) -> TokenStream {
    finish(statics::expand_address_space(attr.into(), item.into()))
}

/// Says how large the blocks of a kernel are at most, and how many of them one
/// multiprocessor shall hold at a time: CUDA C++'s `__launch_bounds__`.
///
/// The first number becomes `.maxntid` in the PTX: the compiler knows how many registers each
/// thread of such a block can have, and uses no more. Launches with more threads per block (the
/// product of its three extents) are refused: by launchers, which find the bound in the kernel's
/// handle (`Kernel::LAUNCH_BOUNDS`), and on the GPU by the driver. The second number, which may be
/// left out, becomes `.minnctapersm`: the compiler gives threads so few registers that this many
/// blocks fit into one multiprocessor, and spills the rest.
///
/// Both are constant expressions of type `u32`: the first from 1 to 1024, the
/// second from 1 to 32, and their product at most 2048, the most threads that a
/// multiprocessor of any GPU holds.
///
/// ```
/// use cuda_std::host::Kernel;
/// use cuda_std::prelude::*;
/// use cuda_std::launch_bounds;
///
/// const BLOCK: u32 = 256;
///
/// /// Sets `n` elements to zero.
/// ///
/// /// # Safety
/// ///
/// /// `data` is valid for writes of `n` elements.
/// #[kernel]
/// #[launch_bounds(BLOCK, 4)]
/// pub unsafe fn clear(data: *mut f32, n: u32) {
///     let i = thread::index_1d();
///     if i < n {
///         // SAFETY: in bounds, and no other thread has this index.
///         unsafe { *data.add(i as usize) = 0.0 };
///     }
/// }
///
/// let bounds = clear::LAUNCH_BOUNDS.unwrap();
/// assert_eq!(bounds.max_threads_per_block, 256);
/// assert_eq!(bounds.min_blocks_per_multiprocessor, Some(4));
/// ```
///
/// It goes on a function that is a [`macro@kernel`], above or below that attribute.
#[proc_macro_attribute]
pub fn launch_bounds(attr: TokenStream, item: TokenStream) -> TokenStream {
    finish(launch_bounds::expand(attr.into(), item.into()))
}

/// Compiles a function for the GPU alone. On the host it exists, so that callers compile, and
/// panics when it is called.
///
/// For functions whose body only the GPU can run, such as inline PTX:
///
/// ```
/// use cuda_std::gpu_only;
///
/// /// The identifier of the multiprocessor that runs this thread.
/// #[gpu_only]
/// pub fn multiprocessor() -> u32 {
///     let id: u32;
///     // SAFETY: reads a special register.
///     unsafe { core::arch::asm!("mov.u32 {}, %smid;", out(reg32) id) };
///     id
/// }
/// ```
#[proc_macro_attribute]
pub fn gpu_only(attr: TokenStream, item: TokenStream) -> TokenStream {
    finish(gpu_only::expand(attr.into(), item.into()))
}

/// Keeps a function or a static in the PTX under its own name although no kernel
/// uses it, for the host or another module to find.
///
/// On a function it implies `#[no_mangle]`. On a static it goes together with
/// [`macro@address_space`]; without one the static is in global memory.
///
/// ```
/// use cuda_std::externally_visible;
///
/// /// Called from a module written in CUDA C++.
/// #[externally_visible]
/// pub extern "C" fn square(x: f32) -> f32 {
///     x * x
/// }
/// ```
#[proc_macro_attribute]
pub fn externally_visible(attr: TokenStream, item: TokenStream) -> TokenStream {
    finish(visible::expand(attr.into(), item.into()))
}

/// Joins the words of every `[<a _ b>]` to one identifier: for the tables of
/// functions in `cuda_std`, and no part of its interface.
#[doc(hidden)]
#[proc_macro]
pub fn paste(input: TokenStream) -> TokenStream {
    finish(paste::expand(input.into()))
}

/// The expansion, or the error as a `compile_error!` at the offending token.
fn finish(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}
