//! A stencil is written once, as the update of one point, and runs on a GPU, in the emulator
//! and in vectors on the CPU, with the same bits.
//!
//! ```
//! use halo_stencil::{Neighbourhood, PointUpdate, Reach, Real};
//!
//! /// `∂u/∂t = α ∇²u` in the plane: u + r (((W + E) + (S + N)) - 4 u), r = α Δt / h².
//! #[derive(Debug, Clone, Copy)]
//! #[repr(C)]
//! pub struct Diffusion<T> {
//!     pub ratio: T,
//! }
//!
//! impl<T: Real> PointUpdate<T, 1, 1> for Diffusion<T> {
//!     const DIMENSIONS: usize = 2;
//!     const REACH: [Reach; 1] = [Reach::star(1)];
//!
//!     #[inline(always)]
//!     fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
//!         let u = n.at::<0, 0, 0, 0>();
//!         let across = n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>();
//!         let along = n.at::<0, 0, -1, 0>() + n.at::<0, 0, 1, 0>();
//!         [u + ((across + along) - u * T::from(4.0)) * self.ratio]
//!     }
//! }
//!
//! // The kernel, its handle, and what the host library needs to launch it.
//! halo_stencil::stencil! {
//!     /// A step of diffusion.
//!     pub diffusion_f32: Diffusion<f32>, f32, (u) -> (new_u)
//! }
//! # fn main() {}
//! ```
//!
//! This crate supplies the rest: the march through the field, vectors where rows allow them, and
//! the boundary rules. `halo_gpu::stencil` plans and runs a stencil.
//!
//! # Layers
//!
//! The crate depends on `cuda_std` alone. It defines no kernels itself: the [`stencil!`] calls of a
//! kernel crate define that crate's kernels.

#![no_std]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]

mod boundary;
mod lanes;
mod march;
mod point;
mod reach;
mod value;

pub use boundary::{Beyond, Layout, Place, Region};
pub use march::{BLOCK_2D, BLOCK_3D, MAX_EXTENT, block, forgotten, step};
#[cfg(not(target_arch = "nvptx64"))]
pub use march::{Blocks, blocks};
#[cfg(not(target_arch = "nvptx64"))]
pub use point::Compiled;
#[doc(hidden)]
pub use point::require_over_past;
pub use point::{Neighbourhood, PointUpdate, may_be_over_past, overwritten};
pub use reach::{MAX_BOX, MAX_RADIUS, Reach, furthest};
pub use value::{Real, Value};

#[doc(hidden)]
pub use cuda_std;

/// Defines the kernel of a [`PointUpdate`]: the entry point, its typed handle, and, on the host,
/// the implementation of [`Compiled`].
///
/// ```text
/// stencil! {
///     /// What it computes.
///     pub name: Update, f32, (input, …) -> (output, …)   // or (output, …) within region
///                                                       // or (output over input, …)
/// }
/// ```
///
/// The type is `f32` or `f64`, and the numbers of inputs and outputs are those of the update. The
/// update must be `#[repr(C)]` if it has more than one number.
///
/// With `output over input` each output is written over its past field, and the kernel has one
/// parameter for both: the update is [`OVER_PAST`](PointUpdate::OVER_PAST).
///
/// With `within region` after the outputs, the kernel has one more parameter, a [`Region`] of that
/// name, and computes the points of the region alone. Your own code launches such a kernel: there
/// is no implementation of [`Compiled`] for it.
#[macro_export]
macro_rules! stencil {
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident: $update:ty, $real:ident,
        ($($input:ident),+ $(,)?) -> ($($output:ident),+ $(,)?)
    ) => {
        $crate::stencil! {
            @kernel false; [$($input),+];
            $(#[$meta])* $vis $name: $update, $real, ($($input),+) -> ($($output),+)
        }
        $crate::stencil! {
            @compiled [$($input),+];
            $name: $update, $real, ($($input),+) -> ($($output),+)
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident: $update:ty, $real:ident,
        ($($input:ident),+ $(,)?) -> ($($output:ident over $past:ident),+ $(,)?)
    ) => {
        $crate::stencil! {
            @split [$($output)+] [$($input)+] [];
            ($(#[$meta])*) ($vis) $name: $update, $real, ($($output over $past),+)
        }
    };
    // Moves as many inputs as there are outputs to the present fields.
    (
        @split [$one:ident $($others:ident)*] [$first:ident $($left:ident)*] [$($present:ident)*];
        $($rest:tt)*
    ) => {
        $crate::stencil! { @split [$($others)*] [$($left)*] [$($present)* $first]; $($rest)* }
    };
    (
        @split [] [$($left:ident)*] [$($present:ident)*];
        $meta:tt $vis:tt $name:ident: $update:ty, $real:ident,
        ($($output:ident over $past:ident),+)
    ) => {
        $crate::stencil! {
            @over [$($output)+] [$($left)*] [$($present)*] [];
            $meta $vis $name: $update, $real, ($($output over $past),+)
        }
    };
    (@split $($rest:tt)*) => {
        compile_error!("the inputs are the present fields, their past, and the coefficients");
    };
    // The next inputs are the past fields, and those that are left are the coefficients.
    (
        @over [$one:ident $($others:ident)*] [$first:ident $($left:ident)*] $present:tt [$($past:ident)*];
        $($rest:tt)*
    ) => {
        $crate::stencil! { @over [$($others)*] [$($left)*] $present [$($past)* $first]; $($rest)* }
    };
    (
        @over [] [$($coefficient:ident)*] [$($present:ident)*] [$($second:ident)*];
        ($(#[$meta:meta])*) ($vis:vis) $name:ident: $update:ty, $real:ident,
        ($($output:ident over $past:ident),+)
    ) => {
        const _: () = assert!(
            true $(&& $crate::are_alike(stringify!($second), stringify!($past)))+,
            "an output is written over its past field: the inputs are the present fields, their \
             past in the same order, and the coefficients"
        );
        $crate::stencil! {
            @kernel true;
            [$($present,)* $($output.cast_const(),)+ $($coefficient),*];
            $(#[$meta])*
            /// The outputs hold the past fields before they are written.
            $vis $name: $update, $real, ($($present,)* $($coefficient),*) -> ($($output),+)
        }
        $crate::stencil! {
            @compiled [$($present,)* $($second,)+ $($coefficient),*];
            $name: $update, $real, ($($present,)* $($coefficient),*) -> ($($output),+)
        }
    };
    (@over $($rest:tt)*) => {
        compile_error!("the inputs are the present fields, their past, and the coefficients");
    };
    (
        @compiled [$($all:ident),+ $(,)?];
        $name:ident: $update:ty, $real:ident,
        ($($input:ident),+ $(,)?) -> ($($output:ident),+)
    ) => {
        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::Compiled<
            $real,
            { [$(stringify!($all)),+].len() },
            { [$(stringify!($output)),+].len() },
        > for $update {
            type Kernel = $name;

            fn arguments<'a>(
                self,
                inputs: [$crate::cuda_std::host::In<'a, $real>; { [$(stringify!($all)),+].len() }],
                outputs: [$crate::cuda_std::host::Out<'a, $real>; { [$(stringify!($output)),+].len() }],
                layout: $crate::Layout<$real, { [$(stringify!($all)),+].len() }>,
            ) -> <$name as $crate::cuda_std::host::Kernel>::Args<'a> {
                #[allow(unused_variables, reason = "inputs that are overwritten")]
                let ([$($all),+], [$($output),+]) = (inputs, outputs);
                $name::args($($input,)+ $($output,)+ layout, self)
            }
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis $name:ident: $update:ty, $real:ident,
        ($($input:ident),+ $(,)?) -> ($($output:ident),+ $(,)?) within $region:ident
    ) => {
        $crate::stencil! {
            @kernel false $region; [$($input),+];
            $(#[$meta])* $vis $name: $update, $real, ($($input),+) -> ($($output),+)
        }
    };
    (
        @kernel $over:literal $($region:ident)?; [$($all:expr),+ $(,)?];
        $(#[$meta:meta])*
        $vis:vis $name:ident: $update:ty, $real:ident,
        ($($input:ident),+ $(,)?) -> ($($output:ident),+)
    ) => {
        const _: () = {
            const INPUTS: usize = [$(stringify!($all)),+].len();
            const OUTPUTS: usize = [$(stringify!($output)),+].len();
            assert!(
                $over == <$update as $crate::PointUpdate<$real, INPUTS, OUTPUTS>>::OVER_PAST,
                "`output over input` here and OVER_PAST = true in the update go together"
            );
            $crate::require_over_past::<$real, $update, INPUTS, OUTPUTS>();
        };

        $(#[$meta])*
        ///
        /// # Safety
        ///
        /// - All fields hold the `nx * ny * nz` elements of `layout`, x fastest, and are
        ///   aligned to 16 bytes. During the launch nothing writes the kernel's inputs, and nothing
        ///   else accesses its outputs, which overlap each other and the inputs nowhere.
        /// - The layout meets the conditions of its type, and the block and the grid are those of
        ///   `halo_stencil::blocks` for it.
        $(#[doc = concat!("- `", stringify!($region), "` lies in the fields.")])?
        #[$crate::cuda_std::prelude::kernel(crate = $crate::cuda_std)]
        #[$crate::cuda_std::launch_bounds(256)]
        #[allow(clippy::too_many_arguments)]
        $vis unsafe fn $name(
            $($input: *const $real,)+
            $($output: *mut $real,)+
            #[grid_constant] layout: &$crate::Layout<
                $real,
                { [$(stringify!($all)),+].len() },
            >,
            update: $update,
            $($region: $crate::Region,)?
        ) {
            let (inputs, outputs) = ([$($all),+], [$($output),+]);
            let region = $crate::stencil!(@region $($region)?);
            // SAFETY: forwarded word for word.
            unsafe {
                if layout.in_vectors($crate::stencil!(@lanes $real)) {
                    $crate::step::<$real, $update, _, _, { $crate::stencil!(@lanes $real) }>(
                        update, inputs, outputs, layout, region,
                    );
                } else {
                    $crate::step::<$real, $update, _, _, 1>(
                        update, inputs, outputs, layout, region,
                    );
                }
            }
        }
    };
    (@region) => { None };
    (@region $region:ident) => { Some($region) };
    (@lanes f32) => { 4 };
    (@lanes f64) => { 2 };
}

/// Whether two names are the same.
#[doc(hidden)]
#[must_use]
pub const fn are_alike(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut alike = one.len() == other.len();
    let mut at = 0;
    while alike && at < one.len() {
        alike = one[at] == other[at];
        at += 1;
    }
    alike
}
