//! Launches of the general kernels, on a CUDA device or on the emulator.

use super::{Axis, FiniteDifferences3d, Operator, Order, Real};
use crate::{Buffer, Constants, Device, Element, Error, LaunchConfig, launch_with_constants};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d::general::{
    self as kernels, BLOCK_X, BLOCK_Y, derivative3d_general_x_f32, derivative3d_general_x_f64,
    derivative3d_general_y_f32, derivative3d_general_y_f64, derivative3d_general_z_f32,
    derivative3d_general_z_f64,
};
use gpu_kernels::derivative3d::general_real::{DERIVATIVE3D_GENERAL_F32, DERIVATIVE3D_GENERAL_F64};
use gpu_kernels::derivative3d::vector_calculus::*;

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

    /// The kernel for an operator, as in the PTX.
    fn operator_name(operator: Operator) -> &'static str;

    /// Launches it.
    ///
    /// The caller has checked the lengths and devices of the buffers and the shape,
    /// and gives as many fields as the operator has, and as many blocks as the kernel
    /// wants.
    #[doc(hidden)]
    fn launch_operator(
        device: &Device,
        config: &LaunchConfig,
        arguments: Fields<'_, '_, '_, Self>,
    ) -> Result<(), Error>;
}

/// The arguments of a launch of an operator.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fields<'a, 'r, 'w, T: Element> {
    operator: Operator,
    inputs: &'a [&'r Buffer<T>],
    outputs: &'a mut [&'w mut Buffer<T>],
    extents: [u32; 3],
    radius: u32,
    rules: u32,
    segment: u32,
    tables: &'a super::Tables<T>,
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
    (
        $real:ty, $table:ident, $x:ident, $y:ident, $z:ident,
        $gradient:ident, $divergence:ident, $curl:ident, $laplacian:ident
    ) => {
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

            fn operator_name(operator: Operator) -> &'static str {
                match operator {
                    Operator::Gradient => $gradient::NAME,
                    Operator::Divergence => $divergence::NAME,
                    Operator::Curl => $curl::NAME,
                    Operator::Laplacian => $laplacian::NAME,
                }
            }

            fn launch_operator(
                device: &Device,
                config: &LaunchConfig,
                arguments: Fields<'_, '_, '_, Self>,
            ) -> Result<(), Error> {
                let Fields {
                    operator,
                    inputs,
                    outputs,
                    extents,
                    radius,
                    rules,
                    segment,
                    tables,
                } = arguments;
                let [nx, ny, nz] = extents;
                let flat = bytemuck::cast(*tables);
                let constants = Constants::new().with::<$table>(&flat);
                macro_rules! launch {
                    ($kernel:ident, $args:expr) => {
                        // SAFETY: all fields have nx * ny * nz elements and are on
                        // `device`, where buffers are aligned to 16 bytes; those written
                        // are borrowed mutably, so they are distinct. The geometry is
                        // the one the kernel documents. The plan has seen to the
                        // radius, `check_axis` and `extents_u32` to the points of each
                        // axis, the geometry to those of a plane. The table is set by
                        // this very call.
                        unsafe {
                            launch_with_constants::<$kernel>(device, config, &constants, $args)
                        }
                    };
                }
                match (operator, inputs, outputs) {
                    (Operator::Gradient, [f], [x, y, z]) => {
                        let (x, y, z) = (&mut **x, &mut **y, &mut **z);
                        launch!(
                            $gradient,
                            $gradient::args(*f, x, y, z, nx, ny, nz, radius, rules, segment)
                        )
                    }
                    (Operator::Divergence, [u, v, w], [out]) => {
                        let out = &mut **out;
                        launch!(
                            $divergence,
                            $divergence::args(*u, *v, *w, out, nx, ny, nz, radius, rules, segment)
                        )
                    }
                    (Operator::Curl, [u, v, w], [x, y, z]) => {
                        let (x, y, z) = (&mut **x, &mut **y, &mut **z);
                        launch!(
                            $curl,
                            $curl::args(*u, *v, *w, x, y, z, nx, ny, nz, radius, rules, segment)
                        )
                    }
                    (Operator::Laplacian, [f], [out]) => {
                        let out = &mut **out;
                        launch!(
                            $laplacian,
                            $laplacian::args(*f, out, nx, ny, nz, radius, rules, segment)
                        )
                    }
                    _ => unreachable!("as many fields as the operator has"),
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
    derivative3d_general_z_f32,
    derivative3d_general_gradient_f32,
    derivative3d_general_divergence_f32,
    derivative3d_general_curl_f32,
    derivative3d_general_laplacian_f32
);
entries!(
    f64,
    DERIVATIVE3D_GENERAL_F64,
    derivative3d_general_x_f64,
    derivative3d_general_y_f64,
    derivative3d_general_z_f64,
    derivative3d_general_gradient_f64,
    derivative3d_general_divergence_f64,
    derivative3d_general_curl_f64,
    derivative3d_general_laplacian_f64
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

/// Launches `operator` on the device of the buffers.
///
/// The caller has checked the buffers and all axes.
pub(super) fn operator<T: Real>(
    plan: &FiniteDifferences3d<T>,
    operator: Operator,
    inputs: &[&Buffer<T>],
    outputs: &mut [&mut Buffer<T>],
) -> Result<(), Error> {
    let name = T::operator_name(operator);
    let shape = plan.shape();
    let extents = [shape.nx, shape.ny, shape.nz];
    let fitting = extents_u32(name, extents)?;
    let share = match operator {
        Operator::Gradient => GRADIENT,
        Operator::Divergence => DIVERGENCE,
        Operator::Curl => CURL,
        Operator::Laplacian => LAPLACIAN,
    };
    let radius = plan.radius() as u32;
    let rules = Axis::ALL
        .map(|axis| plan.boundary(axis).rule() << (8 * axis.index()))
        .into_iter()
        .sum();
    let (blocks, segment) = share
        .blocks_and_segment(extents, radius, rules, size_of::<T>())
        .ok_or_else(|| too_many(name, "the number of blocks or of the points of a plane"))?;
    let config = LaunchConfig::new(blocks, BLOCK);
    let device = inputs[0].device().clone();
    T::launch_operator(
        &device,
        &config,
        Fields {
            operator,
            inputs,
            outputs,
            extents: fitting,
            radius,
            rules,
            segment,
            tables: &plan.tables[operator.order() as usize - 1],
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
    let blocks =
        blocks.ok_or_else(|| too_many(kernel, "the number of blocks or of their parts"))?;
    Ok(LaunchConfig::new(blocks, (BLOCK_X, BLOCK_Y)))
}

/// More of something than fits `u32`.
fn too_many(kernel: &str, what: &str) -> Error {
    Error::IndexOverflow {
        what: format!("{kernel}: {what}"),
        given: "more".to_owned(),
        limit: u64::from(u32::MAX),
    }
}

/// The extents as the kernels take them.
fn extents_u32(kernel: &'static str, extents: [usize; 3]) -> Result<[u32; 3], Error> {
    let mut fitting = [0; 3];
    for (to, extent) in fitting.iter_mut().zip(extents) {
        *to = match u32::try_from(extent) {
            Ok(extent) if extent <= kernels::MAX_LEN => extent,
            _ => {
                return Err(Error::IndexOverflow {
                    what: format!("{kernel}: an extent"),
                    given: extent.to_string(),
                    limit: u64::from(kernels::MAX_LEN),
                });
            }
        };
    }
    Ok(fitting)
}
