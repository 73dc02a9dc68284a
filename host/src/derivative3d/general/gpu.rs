//! Launches of the general kernels, on a CUDA device or on the emulator.

use super::{Axis, FiniteDifferences3d, Order, Real};
use crate::{Buffer, Constants, Device, Element, Error, LaunchConfig, launch_with_constants};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d::general::{
    self as kernels, BLOCK_X, BLOCK_Y, derivative3d_general_x_f32, derivative3d_general_x_f64,
    derivative3d_general_y_f32, derivative3d_general_y_f64, derivative3d_general_z_f32,
    derivative3d_general_z_f64,
};
use gpu_kernels::derivative3d::general_real::{DERIVATIVE3D_GENERAL_F32, DERIVATIVE3D_GENERAL_F64};

/// The entry points for a type.
pub trait Entries: Element {
    /// The kernel for the derivatives along `axis`, as in the PTX.
    fn along_name(axis: Axis) -> &'static str;

    /// Launches it.
    ///
    /// The caller has checked the lengths and devices of the buffers and the shape,
    /// and gives as many blocks as the kernel wants.
    #[doc(hidden)]
    fn launch_along(
        device: &Device,
        config: &LaunchConfig,
        arguments: Along<'_, Self>,
    ) -> Result<(), Error>;
}

/// The arguments of a launch.
#[doc(hidden)]
#[derive(Debug)]
pub struct Along<'a, T: Element> {
    axis: Axis,
    f: &'a Buffer<T>,
    df: &'a mut Buffer<T>,
    extents: [u32; 3],
    radius: u32,
    order: u32,
    rule: u32,
    tables: &'a super::Tables<T>,
}

macro_rules! entries {
    ($real:ty, $table:ident, $x:ident, $y:ident, $z:ident) => {
        impl Entries for $real {
            fn along_name(axis: Axis) -> &'static str {
                [$x::NAME, $y::NAME, $z::NAME][axis.index()]
            }

            fn launch_along(
                device: &Device,
                config: &LaunchConfig,
                arguments: Along<'_, Self>,
            ) -> Result<(), Error> {
                let Along {
                    axis,
                    f,
                    df,
                    extents: [nx, ny, nz],
                    radius,
                    order,
                    rule,
                    tables,
                } = arguments;
                let flat = bytemuck::cast(*tables);
                let constants = Constants::new().with::<$table>(&flat);
                macro_rules! launch {
                    ($kernel:ident) => {{
                        let args = $kernel::args(f, df, nx, ny, nz, radius, order, rule);
                        // SAFETY: f and df have nx * ny * nz elements each, are both
                        // on `device` and are distinct, since df is borrowed mutably.
                        // The geometry is the one the kernel documents. The plan has
                        // seen to the radius and the order, `check_axis` to the
                        // points of the axis. The table is set by this very call.
                        unsafe {
                            launch_with_constants::<$kernel>(device, config, &constants, args)
                        }
                    }};
                }
                match axis {
                    Axis::X => launch!($x),
                    Axis::Y => launch!($y),
                    Axis::Z => launch!($z),
                }
            }
        }
    };
}

entries!(
    f32,
    DERIVATIVE3D_GENERAL_F32,
    derivative3d_general_x_f32,
    derivative3d_general_y_f32,
    derivative3d_general_z_f32
);
entries!(
    f64,
    DERIVATIVE3D_GENERAL_F64,
    derivative3d_general_x_f64,
    derivative3d_general_y_f64,
    derivative3d_general_z_f64
);

/// Launches the derivative along `axis` on the device of the buffers.
///
/// The caller has checked the buffers and the axis.
pub(super) fn along<T: Real>(
    plan: &FiniteDifferences3d<T>,
    axis: Axis,
    order: Order,
    f: &Buffer<T>,
    df: &mut Buffer<T>,
) -> Result<(), Error> {
    let name = T::along_name(axis);
    let shape = plan.shape();
    let extents = [shape.nx, shape.ny, shape.nz];
    let units = kernels::units(extents, axis.index());
    let config = launch_config(name, shape.nx, units)?;
    let device = f.device().clone();
    T::launch_along(
        &device,
        &config,
        Along {
            axis,
            f,
            df,
            extents: extents_u32(name, extents)?,
            radius: plan.radius() as u32,
            order: order as u32,
            rule: plan.boundary(axis).rule(),
            tables: &plan.tables[order as usize - 1],
        },
    )
}

/// Grid and block for so many units.
fn launch_config(
    kernel: &'static str,
    nx: usize,
    units: Option<usize>,
) -> Result<LaunchConfig, Error> {
    let blocks = units.and_then(|units| kernels::blocks(nx, units));
    let blocks = blocks.ok_or_else(|| Error::IndexOverflow {
        what: format!("{kernel}: the number of blocks or of their parts"),
        given: "more".to_owned(),
        limit: u64::from(u32::MAX),
    })?;
    Ok(LaunchConfig::new(blocks, (BLOCK_X, BLOCK_Y)))
}

/// The extents as the kernels take them.
fn extents_u32(kernel: &'static str, extents: [usize; 3]) -> Result<[u32; 3], Error> {
    let mut fitting = [0; 3];
    for (to, extent) in fitting.iter_mut().zip(extents) {
        *to = u32::try_from(extent).map_err(|_| Error::IndexOverflow {
            what: format!("{kernel}: an extent"),
            given: extent.to_string(),
            limit: u64::from(u32::MAX),
        })?;
    }
    Ok(fitting)
}
