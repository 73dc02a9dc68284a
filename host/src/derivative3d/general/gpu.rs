//! Launches of the general kernels, on a CUDA device or on the emulator.

use crate::axis::Axis;
use crate::derivative3d::operator::{Operator, Order};
use crate::derivative3d::variant::problem;
use crate::variants::launch_registered;
use crate::{Buffer, Constants, Element, Error, Shape3, launch};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d::general::{self as kernels, *};
use gpu_kernels::derivative3d::vector_calculus::*;
use gpu_kernels::registry::Entry;

/// The tables of a derivative's order.
pub(in crate::derivative3d) type Tables<T> = [[T; TABLE_LEN]; 3];

/// The stencils of one order, as the kernels take them.
#[derive(Debug, Clone, Copy)]
pub(in crate::derivative3d) struct Stencils<'a, T> {
    pub shape: Shape3,
    pub radius: u32,
    /// What lies beyond the ends of the axes, that of x in the lowest byte.
    pub rules: u32,
    pub tables: &'a Tables<T>,
}

impl<T> Stencils<'_, T> {
    /// The field, as the table of kernels sees it.
    fn problem(&self) -> gpu_kernels::registry::Problem {
        problem(self.shape).with_stencil(self.radius, self.rules)
    }

    /// The extents as kernels take them, whose geometry finds them to fit.
    fn extents(&self) -> (u32, u32, u32) {
        let Shape3 { nx, ny, nz } = self.shape;
        (nx as u32, ny as u32, nz as u32)
    }
}

/// The arguments of a derivative along one axis.
#[doc(hidden)]
#[derive(Debug)]
pub struct Along<'a, T: Element> {
    stencils: Stencils<'a, T>,
    axis: Axis,
    order: Order,
    f: &'a Buffer<T>,
    df: &'a mut Buffer<T>,
}

impl<'a, T: Element> Along<'a, T> {
    /// The caller has checked the buffers and the axis.
    pub(in crate::derivative3d) const fn new(
        stencils: Stencils<'a, T>,
        axis: Axis,
        order: Order,
        f: &'a Buffer<T>,
        df: &'a mut Buffer<T>,
    ) -> Self {
        Self {
            stencils,
            axis,
            order,
            f,
            df,
        }
    }
}

/// The arguments of an operator.
#[doc(hidden)]
#[derive(Debug)]
pub struct Fields<'a, 'r, 'w, T: Element> {
    stencils: Stencils<'a, T>,
    operator: Operator,
    inputs: &'a [&'r Buffer<T>],
    outputs: &'a mut [&'w mut Buffer<T>],
}

impl<'a, 'r, 'w, T: Element> Fields<'a, 'r, 'w, T> {
    /// The caller has checked the buffers and all axes.
    pub(in crate::derivative3d) const fn new(
        stencils: Stencils<'a, T>,
        operator: Operator,
        inputs: &'a [&'r Buffer<T>],
        outputs: &'a mut [&'w mut Buffer<T>],
    ) -> Self {
        Self {
            stencils,
            operator,
            inputs,
            outputs,
        }
    }
}

/// The general kernels for a type.
pub trait GeneralKernels: Element {
    /// Those for the derivatives along x, y and z.
    const ALONG: &'static [Entry; 3];

    /// Those for the operators, in the order of [`Operator::ALL`].
    const OPERATORS: &'static [Entry; 4];

    /// Launches the derivative along an axis on the device of the buffers.
    #[doc(hidden)]
    fn launch_along(along: Along<'_, Self>) -> Result<(), Error>;

    /// Launches an operator on the device of the buffers.
    #[doc(hidden)]
    fn launch_operator(fields: Fields<'_, '_, '_, Self>) -> Result<(), Error>;
}

/// Launches an operator's kernel, whose threads have this share, on these fields.
macro_rules! march {
    (
        $kernel:ident, $share:ident, $stencils:expr, $input:expr, $($field:expr),+
    ) => {{
        let (stencils, input) = ($stencils, $input);
        let device = input.device().clone();
        let march = $share.march($kernel::NAME, &stencils.problem(), size_of::<Self>())?;
        let ((nx, ny, nz), radius) = (stencils.extents(), stencils.radius);
        let (rules, segment) = (stencils.rules, march.segment);
        let tables = stencils.tables.map(kernels::Table);
        let args = $kernel::args(input, $($field),+, nx, ny, nz, radius, rules, segment, tables);
        // SAFETY: all fields have nx * ny * nz elements and are on `device`, where
        // buffers are aligned to 16 bytes; those written are borrowed mutably, so they
        // are distinct. The geometry is the one the kernel documents, and finds the
        // extents and the points of a plane to fit. The plan has seen to the radius,
        // `check_axis` to the points of each axis.
        unsafe { launch::<$kernel>(&device, &march.geometry.into(), args) }
    }};
}

macro_rules! general_kernels {
    (
        $real:ty, $x:ident, $y:ident, $z:ident,
        $gradient:ident, $divergence:ident, $curl:ident, $laplacian:ident
    ) => {
        impl GeneralKernels for $real {
            const ALONG: &'static [Entry; 3] = gpu_kernels::entries![$x, $y, $z];
            const OPERATORS: &'static [Entry; 4] =
                gpu_kernels::entries![$gradient, $divergence, $curl, $laplacian];

            fn launch_along(along: Along<'_, Self>) -> Result<(), Error> {
                let Along {
                    stencils,
                    axis,
                    order,
                    f,
                    df,
                } = along;
                let ((nx, ny, nz), radius) = (stencils.extents(), stencils.radius);
                let rule = stencils.rules >> (8 * axis.index()) & 0xff;
                let table = kernels::Table(stencils.tables[axis.index()]);
                let (device, field) = (f.device().clone(), stencils.problem());
                macro_rules! launch {
                    ($kernel:ident) => {{
                        let order = order as u32;
                        let args = $kernel::args(f, df, nx, ny, nz, radius, order, rule, table);
                        // SAFETY: f and df have nx * ny * nz elements each, are both
                        // on `device` and are distinct, since df is borrowed mutably.
                        // The geometry is the one the kernel documents, and finds the
                        // extents to fit. The plan has seen to the radius and the order,
                        // `check_axis` to the points of the axis.
                        unsafe {
                            launch_registered::<$kernel>(&device, &field, &Constants::new(), args)
                        }
                    }};
                }
                match axis {
                    Axis::X => launch!($x),
                    Axis::Y => launch!($y),
                    Axis::Z => launch!($z),
                }
            }

            fn launch_operator(fields: Fields<'_, '_, '_, Self>) -> Result<(), Error> {
                let Fields {
                    stencils,
                    operator,
                    inputs,
                    outputs,
                } = fields;
                match (operator, inputs, outputs) {
                    (Operator::Gradient, [f], [x, y, z]) => march!(
                        $gradient, GRADIENT, stencils, *f, &mut **x, &mut **y, &mut **z
                    ),
                    (Operator::Divergence, [u, v, w], [out]) => {
                        march!($divergence, DIVERGENCE, stencils, *u, *v, *w, &mut **out)
                    }
                    (Operator::Curl, [u, v, w], [x, y, z]) => march!(
                        $curl, CURL, stencils, *u, *v, *w, &mut **x, &mut **y, &mut **z
                    ),
                    (Operator::Laplacian, [f], [out]) => {
                        march!($laplacian, LAPLACIAN, stencils, *f, &mut **out)
                    }
                    _ => unreachable!("as many fields as the operator has"),
                }
            }
        }
    };
}

general_kernels!(
    f32,
    derivative3d_general_x_f32,
    derivative3d_general_y_f32,
    derivative3d_general_z_f32,
    derivative3d_general_gradient_f32,
    derivative3d_general_divergence_f32,
    derivative3d_general_curl_f32,
    derivative3d_general_laplacian_f32
);
general_kernels!(
    f64,
    derivative3d_general_x_f64,
    derivative3d_general_y_f64,
    derivative3d_general_z_f64,
    derivative3d_general_gradient_f64,
    derivative3d_general_divergence_f64,
    derivative3d_general_curl_f64,
    derivative3d_general_laplacian_f64
);
