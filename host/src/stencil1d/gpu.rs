//! Launches of the kernels, on a CUDA device or on the emulator.

use super::Stencil1d;
use super::custom::{Checked, Form, Real};
use crate::variants::{launch_registered, variants};
use crate::{Buffer, Constants, Element, Error};
use cuda_std::host::Kernel;
use gpu_kernels::registry::Problem;
use gpu_kernels::stencil1d::constant::{STENCIL1D_COEFFICIENTS, stencil1d_constant};
use gpu_kernels::stencil1d::custom::{
    ANTISYMMETRIC, ANY, STENCIL1D_CUSTOM_F32, STENCIL1D_CUSTOM_F64, SYMMETRIC,
    stencil1d_custom_f32, stencil1d_custom_f64,
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
/// The caller has checked the buffers' lengths and devices; `coefficients`, of which there
/// are `RADIUS`, is on the same device.
pub(super) fn launch(
    variant: Variant,
    stencil: &Stencil1d,
    coefficients: Option<&Buffer<f32>>,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    match variant {
        Variant::Constant => launch_constant(stencil, input, output),
        Variant::ReadOnly => match coefficients {
            Some(coefficients) => launch_readonly(stencil, coefficients, input, output),
            None => {
                let coefficients = input.device().upload(&stencil.coefficients)?;
                launch_readonly(stencil, &coefficients, input, output)
            }
        },
        Variant::Vector4 => launch_vector4(stencil, input, output),
    }
}

/// Launches `stencil1d_constant` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices.
fn launch_constant(
    stencil: &Stencil1d,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(&stencil.coefficients);
    let args = stencil1d_constant::args(input, output, stencil.n);
    // SAFETY: input and output have n elements each, are both on `device` and
    // are distinct, since output is borrowed mutably. The geometry is the one
    // the kernel documents, with blocks of at least a warp. The coefficients are
    // set by this very call.
    unsafe {
        launch_registered::<stencil1d_constant>(&device, &stencil.problem(), &constants, args)
    }
}

/// Launches `stencil1d_readonly` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices, and `coefficients`,
/// of which there are `RADIUS`, is on the same device.
fn launch_readonly(
    stencil: &Stencil1d,
    coefficients: &Buffer<f32>,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let args = stencil1d_readonly::args(input, output, coefficients, stencil.n);
    // SAFETY: as above; the coefficients are RADIUS elements on `device`, and
    // are borrowed, so that nothing launched before this call's end writes them.
    unsafe {
        launch_registered::<stencil1d_readonly>(
            &device,
            &stencil.problem(),
            &Constants::new(),
            args,
        )
    }
}

/// Launches `stencil1d_vector4` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices.
fn launch_vector4(
    stencil: &Stencil1d,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(&stencil.coefficients);
    let args = stencil1d_vector4::args(input, output, stencil.n);
    // SAFETY: as for `launch_constant`; buffers are aligned to 16 bytes on every device.
    unsafe { launch_registered::<stencil1d_vector4>(&device, &stencil.problem(), &constants, args) }
}

/// Types that there is a kernel for custom stencils of.
pub trait Entry: Element {
    /// Its entry point, as in the PTX.
    const KERNEL: &'static str;

    /// Launches it on the device of the buffers.
    fn launch(checked: Checked<'_, Self>) -> Result<(), Error>
    where
        Self: Real;
}

macro_rules! entries {
    ($($type:ty: $kernel:ident, $coefficients:ident;)*) => {$(
        impl Entry for $type {
            const KERNEL: &'static str = $kernel::NAME;

            fn launch(Checked { stencil, input, output }: Checked<'_, Self>) -> Result<(), Error> {
                let (device, n) = (input.device().clone(), input.len());
                let form = match stencil.form {
                    Form::Antisymmetric => ANTISYMMETRIC,
                    Form::Symmetric => SYMMETRIC,
                    Form::Any => ANY,
                };
                let constants = Constants::new().with::<$coefficients>(&stencil.coefficients);
                let args = $kernel::args(input, output, n, stencil.radius as u32, form);
                // SAFETY: `Checked::new` found n elements in input and in output, both on
                // `device`; they are distinct, since output is borrowed mutably, and every
                // allocation is aligned to 16 bytes. A `Custom` has a radius from 1 to 8.
                // The grid has a thread for each THREAD_BYTES of a line. The coefficients
                // are set by this very call.
                unsafe {
                    launch_registered::<$kernel>(&device, &Problem::line(n), &constants, args)
                }
            }
        }
    )*};
}

entries! {
    f32: stencil1d_custom_f32, STENCIL1D_CUSTOM_F32;
    f64: stencil1d_custom_f64, STENCIL1D_CUSTOM_F64;
}
