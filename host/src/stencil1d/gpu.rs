//! Launches of the kernels, on a CUDA device or on the emulator.

use super::custom::{Form, MAX_POINTS};
use super::{RADIUS, Stencil1d, Variant};
use crate::{
    Buffer, Constants, Element, Error, LaunchConfig, blocks_for, launch, launch_with_constants,
};
use cuda_std::host::Kernel;
use gpu_kernels::stencil1d::constant::{STENCIL1D_COEFFICIENTS, stencil1d_constant};
use gpu_kernels::stencil1d::custom::{
    ANTISYMMETRIC, ANY, CUSTOM_BLOCK, STENCIL1D_CUSTOM_F32, STENCIL1D_CUSTOM_F64, SYMMETRIC,
    THREAD_BYTES, stencil1d_custom_f32, stencil1d_custom_f64,
};
use gpu_kernels::stencil1d::readonly::stencil1d_readonly;
use gpu_kernels::stencil1d::vector4::stencil1d_vector4;
use gpu_kernels::stencil1d::{VECTOR_BLOCK, VECTORS};

/// Threads of a warp: what the threads of a block are a multiple of.
pub(super) const WARP: u32 = 32;

/// The most threads of a block on any device.
pub(super) const MAX_BLOCK: u32 = 1024;

impl Variant {
    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => stencil1d_constant::NAME,
            Self::ReadOnly => stencil1d_readonly::NAME,
            Self::Vector4 => stencil1d_vector4::NAME,
        }
    }

    /// Grid, block and shared memory.
    fn launch_config(self, stencil: &Stencil1d) -> Result<LaunchConfig, Error> {
        if self == Self::Vector4 {
            let per_block = 4 * VECTOR_BLOCK as usize * VECTORS;
            let blocks = blocks_for(self.name(), stencil.n, per_block)?;
            return Ok(LaunchConfig::new(blocks, VECTOR_BLOCK));
        }
        let block = stencil.block;
        let tile = block + 2 * RADIUS as u32;
        Ok(
            LaunchConfig::new(blocks_for(self.name(), stencil.n, block as usize)?, block)
                .with_dynamic_shared_bytes(tile * size_of::<f32>() as u32),
        )
    }
}

/// Launches `stencil1d_constant` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices.
pub(super) fn launch_constant(
    stencil: &Stencil1d,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let config = Variant::Constant.launch_config(stencil)?;
    let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(&stencil.coefficients);
    let args = stencil1d_constant::args(input, output, stencil.n);
    // SAFETY: input and output have n elements each, are both on `device` and
    // are distinct, since output is borrowed mutably. The geometry is the one
    // the kernel documents, with blocks of at least a warp. The coefficients are
    // set by this very call.
    unsafe { launch_with_constants::<stencil1d_constant>(&device, &config, &constants, args) }
}

/// Launches `stencil1d_readonly` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices, and `coefficients`,
/// of which there are `RADIUS`, is on the same device.
pub(super) fn launch_readonly(
    stencil: &Stencil1d,
    coefficients: &Buffer<f32>,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let config = Variant::ReadOnly.launch_config(stencil)?;
    let args = stencil1d_readonly::args(input, output, coefficients, stencil.n);
    // SAFETY: as above; the coefficients are RADIUS elements on `device`, and
    // are borrowed, so that nothing launched before this call's end writes them.
    unsafe { launch::<stencil1d_readonly>(&device, &config, args) }
}

/// Launches `stencil1d_vector4` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices.
pub(super) fn launch_vector4(
    stencil: &Stencil1d,
    input: &Buffer<f32>,
    output: &mut Buffer<f32>,
) -> Result<(), Error> {
    let device = input.device().clone();
    let config = Variant::Vector4.launch_config(stencil)?;
    let constants = Constants::new().with::<STENCIL1D_COEFFICIENTS>(&stencil.coefficients);
    let args = stencil1d_vector4::args(input, output, stencil.n);
    // SAFETY: as for `launch_constant`; buffers are aligned to 16 bytes on every device.
    unsafe { launch_with_constants::<stencil1d_vector4>(&device, &config, &constants, args) }
}

/// Types that there is a kernel for custom stencils of.
pub trait Entry: Element {
    /// Its entry point, as in the PTX.
    const KERNEL: &'static str;

    /// Launches it on the device of the buffers.
    ///
    /// The caller has checked the buffers' lengths and devices, and that the radius is 1
    /// to 8.
    fn launch(
        form: Form,
        radius: usize,
        coefficients: &[Self; MAX_POINTS],
        input: &Buffer<Self>,
        output: &mut Buffer<Self>,
    ) -> Result<(), Error>;
}

macro_rules! entries {
    ($($type:ty: $kernel:ident, $coefficients:ident;)*) => {$(
        impl Entry for $type {
            const KERNEL: &'static str = $kernel::NAME;

            fn launch(
                form: Form,
                radius: usize,
                coefficients: &[Self; MAX_POINTS],
                input: &Buffer<Self>,
                output: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                let (device, n) = (input.device().clone(), input.len());
                let per_block = CUSTOM_BLOCK as usize * (THREAD_BYTES / size_of::<Self>());
                let grid = blocks_for($kernel::NAME, n, per_block)?;
                let config = LaunchConfig::new(grid, CUSTOM_BLOCK);
                let form = match form {
                    Form::Antisymmetric => ANTISYMMETRIC,
                    Form::Symmetric => SYMMETRIC,
                    Form::Any => ANY,
                };
                let constants = Constants::new().with::<$coefficients>(coefficients);
                let args = $kernel::args(input, output, n, radius as u32, form);
                // SAFETY: input and output have n elements each, are both on `device`
                // and are distinct, since output is borrowed mutably; every allocation
                // is aligned to 16 bytes. The grid has a thread for each THREAD_BYTES of a
                // line. The coefficients are set by this very call.
                unsafe { launch_with_constants::<$kernel>(&device, &config, &constants, args) }
            }
        }
    )*};
}

entries! {
    f32: stencil1d_custom_f32, STENCIL1D_CUSTOM_F32;
    f64: stencil1d_custom_f64, STENCIL1D_CUSTOM_F64;
}
