//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{Axis, Derivative3d, Variant};
use crate::{Buffer, Constants, Error, LaunchConfig, Shape3, blocks_for, launch_with_constants};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d as kernels;
use kernels::{DERIVATIVE3D_WEIGHTS, PENCILS_IN_FLIGHT, PENCILS_SMALL};

/// The most points along the axis of the derivative: a block has
/// `PENCILS_IN_FLIGHT` threads for each, and at most 1024 threads.
pub(super) const MAX_PENCIL_LEN: usize = 1024 / PENCILS_IN_FLIGHT;

/// Points that each thread computes: 1 or 8.
pub(super) const fn points_per_thread(variant: Variant) -> usize {
    variant.pencils() / PENCILS_IN_FLIGHT
}

impl Variant {
    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use kernels::{x_pencil::*, y_pencil::*, z_pencil::*};
        let small = self.pencils == PENCILS_SMALL;
        match (self.axis, small) {
            (Axis::X, true) => derivative3d_x_pencil4::NAME,
            (Axis::X, false) => derivative3d_x_pencil32::NAME,
            (Axis::Y, true) => derivative3d_y_pencil4::NAME,
            (Axis::Y, false) => derivative3d_y_pencil32::NAME,
            (Axis::Z, true) => derivative3d_z_pencil4::NAME,
            (Axis::Z, false) => derivative3d_z_pencil32::NAME,
        }
    }

    /// Grid, block and shared memory for a field that [`Variant::check`] accepts.
    fn launch_config(self, shape: Shape3) -> Result<LaunchConfig, Error> {
        let name = self.name();
        let len = self.axis.extent(shape);
        // The extent that the second grid dimension runs over.
        let other = match self.axis {
            Axis::X | Axis::Y => shape.nz,
            Axis::Z => shape.ny,
        };
        let block = match self.axis {
            Axis::X => (len, PENCILS_IN_FLIGHT),
            Axis::Y | Axis::Z => (self.pencils, len / points_per_thread(self)),
        };
        let [rows, columns] = self.tile(shape);
        Ok(LaunchConfig::new(
            (
                blocks_for(name, self.side().extent(shape), self.pencils)?,
                blocks_for(name, other, 1)?,
            ),
            // Both at most MAX_PENCIL_LEN.
            (block.0 as u32, block.1 as u32),
        )
        // At most 32 * (MAX_PENCIL_LEN + 8) elements.
        .with_dynamic_shared_bytes((rows * columns * size_of::<f32>()) as u32))
    }
}

/// Launches `variant` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices and the shape.
pub(super) fn launch(
    plan: &Derivative3d,
    variant: Variant,
    f: &Buffer<f32>,
    df: &mut Buffer<f32>,
) -> Result<(), Error> {
    use kernels::{x_pencil::*, y_pencil::*, z_pencil::*};

    let shape = plan.shape();
    let config = variant.launch_config(shape)?;
    // `blocks_for` has found the extents across pencils to fit u32; the one
    // along them is at most MAX_PENCIL_LEN.
    let (nx, ny, nz) = (shape.nx as u32, shape.ny as u32, shape.nz as u32);
    let overlap = plan.boundary().overlap() as u32;
    let constants = Constants::new().with::<DERIVATIVE3D_WEIGHTS>(&plan.weights);

    macro_rules! launch {
        ($kernel:ident, $($extent:expr),+) => {{
            let device = f.device().clone();
            let args = $kernel::args(f, df, $($extent),+);
            // SAFETY: f and df have nx * ny * nz elements each, are both on
            // `device` and are distinct, since df is borrowed mutably. The
            // geometry is the one the kernel documents; `check` found that it
            // covers the shape exactly and that the axis has at least
            // RADIUS + overlap points. The weights are set by this very call.
            unsafe { launch_with_constants::<$kernel>(&device, &config, &constants, args) }
        }};
    }
    match (variant.axis, variant.pencils == PENCILS_SMALL) {
        (Axis::X, true) => launch!(derivative3d_x_pencil4, nx, ny, overlap),
        (Axis::X, false) => launch!(derivative3d_x_pencil32, nx, ny, overlap),
        (Axis::Y, true) => launch!(derivative3d_y_pencil4, nx, ny, overlap),
        (Axis::Y, false) => launch!(derivative3d_y_pencil32, nx, ny, overlap),
        (Axis::Z, true) => launch!(derivative3d_z_pencil4, nx, ny, nz, overlap),
        (Axis::Z, false) => launch!(derivative3d_z_pencil32, nx, ny, nz, overlap),
    }
}
