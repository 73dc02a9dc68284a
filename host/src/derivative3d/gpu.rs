//! Launches of the kernels of the 8th order, on a CUDA device or on the emulator.

use super::general::gpu::{Fields, GeneralKernels, Stencils};
use super::operator::Operator;
use super::variant::{Variant, problem};
use crate::axis::Axis;
use crate::variants::launch_registered;
use crate::{Buffer, Constants, Error, Shape3};
use gpu_kernels::derivative3d::general::{TABLE_LEN, rule};
use gpu_kernels::derivative3d::geometry::Columns;
use gpu_kernels::derivative3d::gradient::{Tiles, derivative3d_gradient4};
use gpu_kernels::derivative3d::{
    DERIVATIVE3D_WEIGHTS, RADIUS, x_pencil::*, x_unaligned::*, x_vector::*, y_column::*,
    y_pencil::*, z_column::*, z_pencil::*,
};
use gpu_kernels::registry::Registered;

/// What the kernels take of a plan.
#[derive(Clone, Copy)]
pub(super) struct Grid<'a> {
    pub shape: Shape3,
    /// Points of the period that are stored twice.
    pub overlap: u32,
    /// Weights over spacing, those of x first.
    pub weights: &'a [f32; 3 * RADIUS],
}

impl Grid<'_> {
    /// The weights of each axis.
    fn by_axis(&self) -> [[f32; RADIUS]; 3] {
        std::array::from_fn(|axis| std::array::from_fn(|m| self.weights[RADIUS * axis + m]))
    }
}

/// Launches `variant` on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices and, with [`Variant::check`],
/// the shape.
pub(super) fn launch(
    variant: Variant,
    grid: Grid<'_>,
    f: &Buffer<f32>,
    df: &mut Buffer<f32>,
) -> Result<(), Error> {
    let Grid {
        shape,
        overlap,
        weights,
    } = grid;
    let field = problem(shape);
    // For the kernels that take an extent as u32, `check` or the geometry finds it to fit.
    let (nx, ny, nz) = (shape.nx as u32, shape.ny as u32, shape.nz as u32);
    let (points, plane) = (f.len(), shape.nx * shape.ny);
    let device = f.device().clone();
    let of_axis = grid.by_axis()[variant.axis().index()];
    let none = Constants::new();
    let all = Constants::new().with::<DERIVATIVE3D_WEIGHTS>(weights);

    macro_rules! launch {
        ($constants:ident, $kernel:ident, $($arg:expr),+) => {{
            let args = $kernel::args(f, df, $($arg),+);
            // SAFETY: f and df have nx * ny * nz elements each, are both on
            // `device`, where buffers are aligned to 16 bytes, and are distinct, since
            // df is borrowed mutably. The geometry is the one the kernel documents;
            // `check` found that the kernel takes the shape and that the axis has at
            // least RADIUS + overlap points. The weights in constant memory are set by
            // this very call.
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
            launch!(none, $kernel, points, nx, overlap, of_axis)
        };
    }
    macro_rules! march {
        ($kernel:ident, $axis:ident, $width:expr, $($extent:expr),+) => {{
            let name = variant.name();
            let columns = Columns::of(name, Axis::$axis.index(), $width, &field)?;
            let Columns { segment, chunks, geometry } = columns;
            let args = $kernel::args(f, df, $($extent),+, overlap, segment, chunks, of_axis);
            // SAFETY: as above.
            unsafe { crate::launch::<$kernel>(&device, &geometry.into(), args) }
        }};
    }
    match variant {
        Variant::XPencil4 => pencils!(derivative3d_x_pencil4, nx, ny),
        Variant::XPencil32 => pencils!(derivative3d_x_pencil32, nx, ny),
        Variant::YPencil4 => pencils!(derivative3d_y_pencil4, nx, ny),
        Variant::YPencil32 => pencils!(derivative3d_y_pencil32, nx, ny),
        Variant::ZPencil4 => pencils!(derivative3d_z_pencil4, nx, ny, nz),
        Variant::ZPencil32 => pencils!(derivative3d_z_pencil32, nx, ny, nz),
        Variant::XVector4 => along_x!(derivative3d_x_vector4),
        Variant::XUnaligned4 => along_x!(derivative3d_x_unaligned4),
        Variant::YColumn2 => march!(derivative3d_y_column2, Y, 2, nx, ny, nz),
        Variant::YColumn1 => march!(derivative3d_y_column1, Y, 1, nx, ny, nz),
        Variant::ZColumn2 => march!(derivative3d_z_column2, Z, 2, plane, nz),
        Variant::ZColumn1 => march!(derivative3d_z_column1, Z, 1, plane, nz),
    }
}

/// The kernel of [`Derivative3d::gradient`](super::Derivative3d::gradient) for rows of a
/// multiple of 4 points. Others have the general one.
pub const GRADIENT_KERNEL: &str = derivative3d_gradient4::ENTRY.name;

/// The kernel that suits the shape.
pub(super) const fn gradient_kernel(shape: Shape3) -> &'static str {
    if takes_vectors(shape) {
        GRADIENT_KERNEL
    } else {
        <f32 as GeneralKernels>::OPERATORS[Operator::Gradient as usize].name
    }
}

/// Whether rows are whole accesses of 16 bytes.
const fn takes_vectors(shape: Shape3) -> bool {
    shape.nx.is_multiple_of(4)
}

/// Whether the gradient's faster kernel can be launched for this shape.
pub(super) fn has_vector_gradient(shape: Shape3) -> bool {
    takes_vectors(shape)
        && derivative3d_gradient4::ENTRY
            .geometry(&problem(shape))
            .is_ok()
}

/// Launches the gradient on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices, and that each axis has
/// enough points.
pub(super) fn launch_gradient(
    grid: Grid<'_>,
    f: &Buffer<f32>,
    df: [&mut Buffer<f32>; 3],
) -> Result<(), Error> {
    if !takes_vectors(grid.shape) {
        return launch_general_gradient(grid, f, df);
    }
    let shape = grid.shape;
    let device = f.device().clone();
    let [dx, dy, dz] = df;
    let Tiles {
        segment,
        columns,
        rows,
        geometry,
    } = Tiles::of(GRADIENT_KERNEL, &problem(shape))?;
    // `Tiles::of` found them to fit.
    let (nx, ny, nz) = (shape.nx as u32, shape.ny as u32, shape.nz as u32);
    let (overlap, weights) = (grid.overlap, grid.by_axis());
    let args = derivative3d_gradient4::args(
        f, dx, dy, dz, nx, ny, nz, overlap, segment, columns, rows, weights,
    );
    // SAFETY: the four buffers have nx * ny * nz elements each, are on `device`, where
    // buffers are aligned to 16 bytes, and are distinct, since three are borrowed mutably.
    // The geometry is the one the kernel documents; each axis has at least
    // RADIUS + overlap points, and rows are whole accesses.
    unsafe { crate::launch::<derivative3d_gradient4>(&device, &geometry.into(), args) }
}

/// The same by the general kernel, which gives the same bits: it adds up the same terms in
/// the same order.
fn launch_general_gradient(
    grid: Grid<'_>,
    f: &Buffer<f32>,
    df: [&mut Buffer<f32>; 3],
) -> Result<(), Error> {
    let rule = [rule::PERIODIC, rule::PERIODIC_WITH_ENDPOINT][grid.overlap as usize];
    let tables = grid.by_axis().map(|weights| {
        let mut table = [0.0; TABLE_LEN];
        table[..RADIUS].copy_from_slice(&weights);
        table
    });
    let stencils = Stencils {
        shape: grid.shape,
        radius: RADIUS as u32,
        rules: rule | rule << 8 | rule << 16,
        tables: &tables,
    };
    let mut df = df;
    f32::launch_operator(Fields::new(stencils, Operator::Gradient, &[f], &mut df))
}
