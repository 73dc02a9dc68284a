//! Launches of the kernels, on a CUDA device or on the emulator.

use super::check::Checked;
use super::form::Form;
use crate::variants::{launch_registered, variants};
use crate::{Buffer, Constants, Element, Error};
use cuda_std::host::Kernel;
use gpu_kernels::registry::Problem;
use gpu_kernels::stencil1d::RADIUS;
use gpu_kernels::stencil1d::constant::{STENCIL1D_COEFFICIENTS, stencil1d_constant};
use gpu_kernels::stencil1d::custom::{
    ANTISYMMETRIC, ANY, MAX_POINTS, SYMMETRIC, stencil1d_custom_f32, stencil1d_custom_f64,
};
use gpu_kernels::stencil1d::readonly::stencil1d_readonly;
use gpu_kernels::stencil1d::vector4::stencil1d_vector4;

/// Threads of a warp: what the threads of a block are a multiple of.
pub(super) const WARP: u32 = 32;

/// The most threads of a block on any device.
pub(super) const MAX_BLOCK: u32 = 1024;

variants! {
    /// One of the kernels.
    ///
    /// The textbook's two have a tile of `block + 8` elements in shared memory, one
    /// element per thread, and the first four threads load both halos.
    pub enum Variant {
        /// `stencil1d_constant`: the coefficients are in constant memory.
        Constant: stencil1d_constant;
        /// `stencil1d_readonly`: the coefficients are in global memory, read through
        /// the read-only data cache.
        ReadOnly: stencil1d_readonly;
        /// `stencil1d_vector4`: no tile; 16 bytes per access, neighbours from other lanes.
        /// What the library picks.
        Vector4: stencil1d_vector4;
    }
}

impl Variant {
    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.entries()[0].name
    }
}

/// Launches a kernel on the device of the buffers; one that reads the coefficients from
/// memory uploads them where they are not there.
///
/// # Errors
///
/// [`Error::DeviceMismatch`] for `on_device` on another device, [`Error::LengthMismatch`]
/// unless it holds as many as `coefficients`, and what a launch can fail with.
pub(super) fn launch(
    variant: Variant,
    block: u32,
    coefficients: &[f32; RADIUS],
    on_device: Option<&Buffer<f32>>,
    checked: Checked<'_, f32>,
) -> Result<(), Error> {
    let input = checked.input();
    let output = checked.into_output();
    let (device, n) = (input.device().clone(), input.len());
    let problem = &Problem::line(n).with_block(block);
    // SAFETY, of each launch: `Checked::new` found input and output of one length on one
    // device; they are distinct, since output is borrowed mutably, and aligned to 16 bytes
    // as all buffers are. The geometry is the one that the kernel documents for that many
    // elements, with blocks of at least a warp, as `with_block` of the stencil demands.
    match variant {
        Variant::Constant => {
            let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(coefficients);
            let args = stencil1d_constant::args(input, output, n);
            // SAFETY: as above; the coefficients are set by this very call.
            unsafe { launch_registered::<stencil1d_constant>(&device, problem, &constants, args) }
        }
        Variant::ReadOnly => {
            let uploaded;
            let coefficients = match on_device {
                Some(buffer) => buffer,
                None => {
                    uploaded = device.upload(coefficients)?;
                    &uploaded
                }
            };
            super::check::length("coefficients", RADIUS, coefficients.len())?;
            device.require("stencil1d: coefficients", coefficients)?;
            let args = stencil1d_readonly::args(input, output, coefficients, n);
            // SAFETY: as above; the coefficients are RADIUS elements on `device`, and are
            // borrowed, so that nothing launched before this call's end writes them.
            unsafe {
                launch_registered::<stencil1d_readonly>(&device, problem, &Constants::new(), args)
            }
        }
        Variant::Vector4 => {
            let args = stencil1d_vector4::args(input, output, n, *coefficients);
            // SAFETY: as above.
            unsafe {
                launch_registered::<stencil1d_vector4>(&device, problem, &Constants::new(), args)
            }
        }
    }
}

/// Types that there is a kernel for custom stencils of.
pub trait Entry: Element {
    /// Its entry point, as in the PTX.
    const KERNEL: &'static str;

    /// Launches it on the device of the buffers, with `coefficients[8 + m]` for the
    /// neighbour m; `radius` is from 1 to 8.
    fn launch_stencil(
        form: Form,
        radius: u32,
        coefficients: &[Self; MAX_POINTS],
        checked: Checked<'_, Self>,
    ) -> Result<(), Error>;
}

macro_rules! entries {
    ($($type:ty: $kernel:ident;)*) => {$(
        impl Entry for $type {
            const KERNEL: &'static str = $kernel::NAME;

            fn launch_stencil(
                form: Form,
                radius: u32,
                coefficients: &[Self; MAX_POINTS],
                checked: Checked<'_, Self>,
            ) -> Result<(), Error> {
                let input = checked.input();
                let output = checked.into_output();
                let (device, n) = (input.device().clone(), input.len());
                let form = match form {
                    Form::Antisymmetric => ANTISYMMETRIC,
                    Form::Symmetric => SYMMETRIC,
                    Form::Any => ANY,
                };
                let (line, none) = (Problem::line(n), Constants::new());
                let args = $kernel::args(input, output, n, radius, form, *coefficients);
                // SAFETY: `Checked::new`, which alone makes one, found input and output of
                // one length on `device`; they are distinct, since output is borrowed
                // mutably, and every allocation is aligned to 16 bytes. Only `Custom::apply`
                // calls this, whose radius is from 1 to 8 and leaves an element with all
                // neighbours. The grid has a thread for each THREAD_BYTES of a line.
                unsafe { launch_registered::<$kernel>(&device, &line, &none, args) }
            }
        }
    )*};
}

entries! {
    f32: stencil1d_custom_f32;
    f64: stencil1d_custom_f64;
}
