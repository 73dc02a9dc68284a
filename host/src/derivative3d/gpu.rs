//! Launches the derivative kernels, on a CUDA device or on the emulator.

use super::check::{Along, Checked};
use super::operator::Operator;
use super::variant::{Variant, problem};
use crate::axis::Axis;
use crate::variants::launch_registered;
use crate::{Constants, Element, Error, launch};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d::columns::{self, *};
use gpu_kernels::derivative3d::general::{self as kernels, *};
use gpu_kernels::derivative3d::geometry::Columns;
use gpu_kernels::derivative3d::gradient::{Tiles, derivative3d_gradient4};
use gpu_kernels::derivative3d::vector_calculus::*;
use gpu_kernels::derivative3d::{
    DERIVATIVE3D_WEIGHTS, RADIUS, x_pencil::*, x_rows::*, x_unaligned::*, x_vector::*, y_column::*,
    y_pencil::*, z_column::*, z_pencil::*,
};
use gpu_kernels::registry::HasScalar;

/// An element type with derivative kernels.
pub trait Kernels: Element + HasScalar {
    /// Launches a kernel on the device of the fields. The variant must have a kernel for this type
    /// and the operator.
    fn launch_derivatives(variant: Variant, checked: Checked<'_, '_, Self>) -> Result<(), Error>;
}

/// Launches a general kernel along an axis. Along z it takes the planes to compute.
macro_rules! along {
    ($kernel:ident, $axis:expr, $checked:ident $(, $begin:ident to $end:ident)?) => {{
        let Along { device, stencils, operator, f, mut df } =
            $checked.into_fields_along($axis)?;
        kernels::check_extents($kernel::NAME, &stencils.problem())?;
        let ([nx, ny, nz], radius) = (stencils.extents(), stencils.radius);
        $(let [$begin, $end] = stencils.planes();)?
        let (order, rule) = (operator.order() as u32, stencils.rule($axis));
        let table = kernels::Table(stencils.tables[$axis.index()]);
        let args =
            $kernel::args(f, &mut df, nx, ny, nz, $($begin, $end,)? radius, order, rule, table);
        let (problem, none) = (stencils.problem_of_planes(), Constants::new());
        // SAFETY: `Checked::new` checked that the fields have the stencils' shape and are on
        // `device`, so f and df have nx * ny * nz elements each; they are distinct, because df is
        // borrowed mutably. The plan checked that its planes are in the field. The geometry is the
        // one that the kernel documents for them, and the extents have been checked. The stencils
        // come from a plan, which checked the radius and the order, and that the axis has enough
        // points.
        unsafe { launch_registered::<$kernel>(&device, &problem, &none, args) }
    }};
}

/// Launches an operator's kernel on these fields; its threads have this share of points.
macro_rules! march {
    ($kernel:ident, $share:ident, $stencils:expr, $input:expr, $($field:expr),+) => {{
        let (stencils, input) = ($stencils, $input);
        let device = input.device().clone();
        let (problem, [begin, end]) = (stencils.problem(), stencils.planes);
        let march = $share.march($kernel::NAME, &problem, begin..end, size_of::<Self>())?;
        let ([nx, ny, nz], [begin, end]) = (stencils.extents(), stencils.planes());
        let (radius, rules, segment) = (stencils.radius, stencils.rules, march.segment);
        let tables = stencils.tables.map(kernels::Table);
        let args = $kernel::args(
            input, $($field),+, nx, ny, nz, begin, end, radius, rules, segment, tables,
        );
        // SAFETY: `Checked::new` checked that all fields have nx * ny * nz elements, on `device`,
        // where buffers are aligned to 16 bytes; the written fields are borrowed mutably, so they
        // are distinct. The plan checked that its planes are in the field. The geometry is the one
        // that the kernel documents for them, and computing it checks that the extents and the
        // points of a plane fit. The stencils come from a plan, which checked the radius, and that
        // each axis has enough points.
        unsafe { launch::<$kernel>(&device, &march.geometry.into(), args) }
    }};
}

/// The general kernels of a type.
macro_rules! general {
    (
        $checked:ident, $x:ident, $y:ident, $z:ident,
        $gradient:ident, $divergence:ident, $curl:ident, $laplacian:ident
    ) => {{
        let operator = $checked.operator();
        match operator.axis() {
            Some(Axis::X) => return along!($x, Axis::X, $checked),
            Some(Axis::Y) => return along!($y, Axis::Y, $checked),
            Some(Axis::Z) => return along!($z, Axis::Z, $checked, begin to end),
            None => {}
        }
        let stencils = $checked.stencils();
        match (operator, $checked.into_fields()) {
            (Operator::Gradient, ([f], [x, y, z])) => {
                march!(
                    $gradient, GRADIENT, stencils, *f, &mut **x, &mut **y, &mut **z
                )
            }
            (Operator::Divergence, ([u, v, w], [out])) => {
                march!($divergence, DIVERGENCE, stencils, *u, *v, *w, &mut **out)
            }
            (Operator::Curl, ([u, v, w], [x, y, z])) => {
                march!(
                    $curl, CURL, stencils, *u, *v, *w, &mut **x, &mut **y, &mut **z
                )
            }
            (Operator::Laplacian, ([f], [out])) => {
                march!($laplacian, LAPLACIAN, stencils, *f, &mut **out)
            }
            _ => unreachable!("as many fields as the operator has"),
        }
    }};
}

/// The kernels of a type for first derivatives of the 8th order and any boundary.
macro_rules! any_boundary {
    ($checked:ident, $axis:ident, $x:ident, $y:ident, $z:ident) => {{
        let Along {
            device,
            stencils,
            f,
            mut df,
            ..
        } = $checked.into_fields_along($axis)?;
        let (shape, df) = (stencils.shape, &mut df);
        // Along x and y these are all planes of the fields, which have been cut down.
        let field = stencils.problem_of_planes();
        // The variant's check, and along y the geometry, checked that the extents fit.
        let [nx, ny, nz] = stencils.extents();
        let plane = shape.nx * shape.ny;
        let rule = stencils.rule($axis);
        let table = kernels::Table(stencils.tables[$axis.index()]);
        // SAFETY, of each launch: `Checked::new` checked that the fields have the stencils' shape
        // and are on `device`, so f and df have nx * ny * nz elements each; they are distinct,
        // because df is borrowed mutably. Buffers are aligned to 16 bytes, and the choice of the
        // variant ensured that the first plane to compute is too. The plan checked that its planes
        // are in the field. The geometry is the one that the kernel documents for them. The
        // stencils come from a plan of the 8th order, which checked that the axis has enough
        // points; the variant's check ensured that rows along x are whole vectors.
        match $axis {
            Axis::X => {
                let points = plane * shape.nz;
                let args = $x::args(f, df, points, nx, rule, table);
                // SAFETY: as above.
                unsafe { launch_registered::<$x>(&device, &field, &Constants::new(), args) }
            }
            Axis::Y => {
                let width = columns::width::<Self>(shape.nx);
                let Columns {
                    segment,
                    chunks,
                    geometry,
                } = Columns::of($y::NAME, $axis.index(), width, &field)?;
                let args = $y::args(f, df, nx, ny, nz, rule, segment, chunks, table);
                // SAFETY: as above.
                unsafe { launch::<$y>(&device, &geometry.into(), args) }
            }
            Axis::Z => {
                let width = columns::width::<Self>(plane);
                let Columns {
                    segment,
                    chunks,
                    geometry,
                } = Columns::of($z::NAME, $axis.index(), width, &field)?;
                let [begin, end] = stencils.planes();
                let args = $z::args(f, df, plane, nz, begin, end, rule, segment, chunks, table);
                // SAFETY: as above.
                unsafe { launch::<$z>(&device, &geometry.into(), args) }
            }
        }
    }};
}

impl Kernels for f32 {
    fn launch_derivatives(variant: Variant, checked: Checked<'_, '_, Self>) -> Result<(), Error> {
        match (variant, checked.operator()) {
            (Variant::General, _) => general!(
                checked,
                derivative3d_general_x_f32,
                derivative3d_general_y_f32,
                derivative3d_general_z_f32,
                derivative3d_general_gradient_f32,
                derivative3d_general_divergence_f32,
                derivative3d_general_curl_f32,
                derivative3d_general_laplacian_f32
            ),
            (Variant::AnyBoundary, Operator::Derivative(axis)) => any_boundary!(
                checked,
                axis,
                derivative3d_x_rows_f32,
                derivative3d_y_columns_f32,
                derivative3d_z_columns_f32
            ),
            (_, Operator::Gradient) => gradient(checked),
            (_, Operator::Derivative(axis)) => first(variant, axis, checked),
            _ => unreachable!("a plan has a kernel for each operator"),
        }
    }
}

impl Kernels for f64 {
    fn launch_derivatives(variant: Variant, checked: Checked<'_, '_, Self>) -> Result<(), Error> {
        match (variant, checked.operator()) {
            (Variant::AnyBoundary, Operator::Derivative(axis)) => any_boundary!(
                checked,
                axis,
                derivative3d_x_rows_f64,
                derivative3d_y_columns_f64,
                derivative3d_z_columns_f64
            ),
            (Variant::General, _) => general!(
                checked,
                derivative3d_general_x_f64,
                derivative3d_general_y_f64,
                derivative3d_general_z_f64,
                derivative3d_general_gradient_f64,
                derivative3d_general_divergence_f64,
                derivative3d_general_curl_f64,
                derivative3d_general_laplacian_f64
            ),
            _ => unreachable!("a plan has kernels of its type"),
        }
    }
}

/// A first derivative of the 8th order along a periodic axis.
fn first(variant: Variant, axis: Axis, checked: Checked<'_, '_, f32>) -> Result<(), Error> {
    let Along {
        device,
        stencils,
        f,
        mut df,
        ..
    } = checked.into_fields_along(axis)?;
    let (shape, df) = (stencils.shape, &mut df);
    let field = problem(shape);
    // If a kernel takes an extent as u32, the variant's check or the geometry has checked that it
    // fits.
    let [nx, ny, nz] = stencils.extents();
    let plane = shape.nx * shape.ny;
    let points = plane * shape.nz;
    let (overlap, weights) = (stencils.overlap(axis), stencils.weights(axis));
    let mut of_all = [0.0; 3 * RADIUS];
    for (of_axis, axis) in of_all.chunks_exact_mut(RADIUS).zip(Axis::ALL) {
        of_axis.copy_from_slice(&stencils.weights(axis));
    }
    let none = Constants::new();
    let all = Constants::new().with::<DERIVATIVE3D_WEIGHTS>(&of_all);

    macro_rules! launch {
        ($constants:ident, $kernel:ident, $($arg:expr),+) => {{
            let args = $kernel::args(f, df, $($arg),+);
            // SAFETY: `Checked::new` checked that the fields have the stencils' shape and are on
            // `device`, so f and df have nx * ny * nz elements each; they are distinct, because df
            // is borrowed mutably. Buffers are aligned to 16 bytes, and the choice of the variant
            // ensured that the first plane to compute is too; along z all planes are to be
            // computed. The geometry is the one that the kernel documents; the variant's check
            // ensured that the kernel takes the shape and that the axis has at least RADIUS +
            // overlap points. This call sets the weights in constant memory.
            unsafe { launch_registered::<$kernel>(&device, &field, &$constants, args) }
        }};
    }
    macro_rules! pencils {
        ($kernel:ident, $($extent:expr),+) => {
            launch!(all, $kernel, $($extent),+, overlap)
        };
    }
    macro_rules! along_x {
        ($kernel:ident) => {
            launch!(none, $kernel, points, nx, overlap, weights)
        };
    }
    macro_rules! march {
        ($kernel:ident, $width:expr, $($extent:expr),+) => {{
            let Columns { segment, chunks, geometry } =
                Columns::of($kernel::NAME, axis.index(), $width, &field)?;
            let args = $kernel::args(f, df, $($extent),+, overlap, segment, chunks, weights);
            // SAFETY: as above.
            unsafe { launch::<$kernel>(&device, &geometry.into(), args) }
        }};
    }
    match (variant, axis) {
        (Variant::Pencil4, Axis::X) => pencils!(derivative3d_x_pencil4, nx, ny),
        (Variant::Pencil32, Axis::X) => pencils!(derivative3d_x_pencil32, nx, ny),
        (Variant::Pencil4, Axis::Y) => pencils!(derivative3d_y_pencil4, nx, ny),
        (Variant::Pencil32, Axis::Y) => pencils!(derivative3d_y_pencil32, nx, ny),
        (Variant::Pencil4, Axis::Z) => pencils!(derivative3d_z_pencil4, nx, ny, nz),
        (Variant::Pencil32, Axis::Z) => pencils!(derivative3d_z_pencil32, nx, ny, nz),
        (Variant::Vector, Axis::X) => along_x!(derivative3d_x_vector4),
        (Variant::Unaligned, Axis::X) => along_x!(derivative3d_x_unaligned4),
        (Variant::Vector, Axis::Y) => march!(derivative3d_y_column2, 2, nx, ny, nz),
        (Variant::Unaligned, Axis::Y) => march!(derivative3d_y_column1, 1, nx, ny, nz),
        (Variant::Vector, Axis::Z) => march!(derivative3d_z_column2, 2, plane, nz),
        (Variant::Unaligned, Axis::Z) => march!(derivative3d_z_column1, 1, plane, nz),
        (Variant::AnyBoundary | Variant::General, _) => {
            unreachable!("those have their own launches")
        }
    }
}

/// The gradient of the 8th order on a periodic grid whose rows are whole vectors.
fn gradient(checked: Checked<'_, '_, f32>) -> Result<(), Error> {
    let stencils = checked.stencils();
    let ([f], [dx, dy, dz]) = checked.into_fields() else {
        unreachable!("as many fields as the operator has");
    };
    let (f, device) = (*f, f.device().clone());
    let field = problem(stencils.shape);
    let Tiles {
        segment,
        columns,
        rows,
        geometry,
    } = Tiles::of(derivative3d_gradient4::NAME, &field)?;
    // `Tiles::of` checked that they fit.
    let [nx, ny, nz] = stencils.extents();
    let weights = Axis::ALL.map(|axis| stencils.weights(axis));
    let overlap = stencils.overlap(Axis::X);
    let args = derivative3d_gradient4::args(
        f, &mut **dx, &mut **dy, &mut **dz, nx, ny, nz, overlap, segment, columns, rows, weights,
    );
    // SAFETY: `Checked::new` checked that the four buffers have nx * ny * nz elements each, on
    // `device`, where buffers are aligned to 16 bytes; they are distinct, because three are
    // borrowed mutably. The geometry is the one that the kernel documents; the variant's check
    // ensured that all axes have the same boundary and at least RADIUS + overlap points, and that
    // rows are whole vectors. The choice of the variant ensured that all planes are to be computed.
    unsafe { launch::<derivative3d_gradient4>(&device, &geometry.into(), args) }
}
