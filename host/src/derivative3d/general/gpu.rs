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
    let config = along_config(name, axis, extents)?;
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
    let (config, segment) = operator_config(name, extents, |extents| {
        share.blocks_and_segment(extents, radius, rules, size_of::<T>())
    })?;
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

/// Grid and block of a derivative along one axis.
fn along_config(
    kernel: &'static str,
    axis: Axis,
    extents: [usize; 3],
) -> Result<LaunchConfig, Error> {
    let blocks = |extents: [usize; 3]| {
        let units = kernels::units(extents, axis.index())?;
        kernels::blocks(extents[0], units)
    };
    let found = blocks(extents)
        .ok_or_else(|| too_large(kernel, extents, |extents| blocks(extents).is_some()))?;
    Ok(LaunchConfig::new(found, (BLOCK_X, BLOCK_Y)))
}

/// Grid and block of an operator, and the planes that each block goes through, both
/// of which `blocks_and_segment` knows.
fn operator_config(
    kernel: &'static str,
    extents: [usize; 3],
    blocks_and_segment: impl Fn([usize; 3]) -> Option<(u32, u32)>,
) -> Result<(LaunchConfig, u32), Error> {
    let (blocks, segment) = blocks_and_segment(extents).ok_or_else(|| {
        too_large(kernel, extents, |extents| {
            blocks_and_segment(extents).is_some()
        })
    })?;
    Ok((LaunchConfig::new(blocks, BLOCK), segment))
}

/// A field whose blocks, or whatever a kernel counts, do not fit `u32`: which of its
/// extents is too large for the others, and the largest that `fits`.
///
/// What is counted differs by kernel and by the share of a thread; a shorter field
/// always has less of it.
fn too_large(kernel: &str, extents: [usize; 3], fits: impl Fn([usize; 3]) -> bool) -> Error {
    let [nx, ny, nz] = extents;
    // The slowest extent, unless a single plane is too much already.
    let (what, given, limit) = if fits([nx, ny, 1]) {
        let what = format!("{kernel}: nz of a field with planes of {nx} × {ny} points");
        (what, nz, largest(nz, |nz| fits([nx, ny, nz])))
    } else {
        let what = format!("{kernel}: ny of a field with rows of {nx} points");
        (what, ny, largest(ny, |ny| fits([nx, ny, 1])))
    };
    Error::IndexOverflow {
        what,
        given: given.to_string(),
        limit: limit as u64,
    }
}

/// The largest number below `not` that fits, where `not` does not and what is smaller
/// than one that fits fits as well; 0 where none does.
fn largest(not: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, not);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
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

#[cfg(test)]
#[cfg(target_pointer_width = "64")]
mod tests {
    use super::*;

    fn overflow(result: Result<impl std::fmt::Debug, Error>) -> (String, String, u64) {
        match result.expect_err("too large") {
            Error::IndexOverflow { what, given, limit } => (what, given, limit),
            error => panic!("{error:?}"),
        }
    }

    #[test]
    fn a_field_that_is_too_large_along_an_axis_is_told_how_large_it_may_be() {
        let longest = kernels::MAX_LEN as usize;
        for axis in Axis::ALL {
            let config = |extents| along_config("kernel", axis, extents);
            let (what, given, limit) = overflow(config([1000, 1000, longest]));
            assert_eq!(
                what,
                "kernel: nz of a field with planes of 1000 × 1000 points"
            );
            assert_eq!(given, longest.to_string());
            // Just so large and no larger.
            assert!(limit > 0, "{axis}");
            assert!(config([1000, 1000, limit as usize]).is_ok(), "{axis}");
            assert!(config([1000, 1000, limit as usize + 1]).is_err(), "{axis}");

            let (what, given, limit) = overflow(config([longest, longest, 5]));
            assert_eq!(
                what,
                format!("kernel: ny of a field with rows of {longest} points")
            );
            assert_eq!(given, longest.to_string());
            assert!(config([longest, limit as usize, 1]).is_ok(), "{axis}");
            assert!(config([longest, limit as usize + 1, 1]).is_err(), "{axis}");
        }
    }

    #[test]
    fn a_field_that_is_too_large_for_an_operator_is_told_how_large_it_may_be() {
        for share in [GRADIENT, DIVERGENCE, CURL, LAPLACIAN] {
            for size in [size_of::<f32>(), size_of::<f64>()] {
                let config = |extents| {
                    operator_config("kernel", extents, |extents| {
                        share.blocks_and_segment(extents, 4, 0, size)
                    })
                };
                let longest = kernels::MAX_LEN as usize;
                let extents = [50_000, 50_000, longest];
                let (what, given, limit) = overflow(config(extents));
                assert_eq!(
                    what,
                    "kernel: nz of a field with planes of 50000 × 50000 points"
                );
                assert_eq!(given, longest.to_string());
                assert!(limit > 0 && config([50_000, 50_000, limit as usize]).is_ok());
                assert!(config([50_000, 50_000, limit as usize + 1]).is_err());

                // A plane has at most 2³² - 1 points.
                let (what, given, limit) = overflow(config([1 << 16, 1 << 16, 9]));
                assert_eq!(what, "kernel: ny of a field with rows of 65536 points");
                assert_eq!((given.as_str(), limit), ("65536", (1 << 16) - 1));
            }
        }
    }

    #[test]
    fn a_field_that_fits_is_launched() {
        let config = along_config("kernel", Axis::X, [64, 64, 64]).expect("it fits");
        assert_eq!(config.block, (BLOCK_X, BLOCK_Y).into());
    }
}
