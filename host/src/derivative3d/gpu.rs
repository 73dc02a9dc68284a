//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{Axis, Derivative3d, Method, Variant};
use crate::{Buffer, Constants, Error, LaunchConfig, Shape3, blocks_for, launch_with_constants};
use cuda_std::host::Kernel;
use gpu_kernels::derivative3d as kernels;
use kernels::gradient::{self, derivative3d_gradient1, derivative3d_gradient4};
use kernels::{
    COLUMN_BLOCK, DERIVATIVE3D_WEIGHTS, PENCILS_IN_FLIGHT, PENCILS_SMALL, X_BLOCK, X_VECTORS,
};

/// The most points along the axis of the derivative for the textbook kernels: a
/// block has `PENCILS_IN_FLIGHT` threads for each, and at most 1024 threads.
pub(super) const MAX_PENCIL_LEN: usize = 1024 / PENCILS_IN_FLIGHT;

/// The longest axis that the tuned kernels count along: in i32, some steps beyond
/// the end.
const MAX_LEN: usize = i32::MAX as usize - 4096;

/// Points of a vector along x, and of a column along y or z.
const VECTOR: usize = 4;
const COLUMN: usize = 2;

/// Points that each thread of a textbook kernel computes: 1 or 8.
pub(super) const fn points_per_thread(pencils: usize) -> usize {
    pencils / PENCILS_IN_FLIGHT
}

/// Refuses extents that a tuned kernel cannot count.
pub(super) fn check_extents(variant: Variant, shape: Shape3) -> Result<(), Error> {
    for axis in Axis::ALL {
        // A plane is one run of points to the z kernels.
        if axis == variant.axis || variant.axis == Axis::Y {
            check_extent(variant.name(), axis, shape)?;
        }
    }
    Ok(())
}

/// Refuses an extent that `kernel` cannot count.
fn check_extent(kernel: &str, axis: Axis, shape: Shape3) -> Result<(), Error> {
    if axis.extent(shape) <= MAX_LEN {
        return Ok(());
    }
    Err(Error::IndexOverflow {
        what: format!("{kernel}: {}", axis.extent_name()),
        given: axis.extent(shape).to_string(),
        limit: MAX_LEN as u64,
    })
}

/// How the kernels that march along an axis are launched.
struct March {
    config: LaunchConfig,
    /// Points that a thread goes along.
    segment: u32,
    /// Blocks side by side: what holds the columns of a row, or of a plane.
    chunks: u32,
}

impl March {
    /// Points of a segment. Longer ones load fewer points twice, and were slower.
    const SEGMENT: u32 = 16;

    /// The most columns of a row that a block has side by side: a warp's.
    const ACROSS: usize = 32;

    /// For a field that [`Variant::check`] accepts; `width` is the points of a column
    /// along x.
    fn of(variant: Variant, shape: Shape3, width: usize) -> Result<Self, Error> {
        let name = variant.name();
        let len = variant.axis.extent(shape);
        let segments = len.div_ceil(Self::SEGMENT as usize);
        let block = COLUMN_BLOCK as usize;
        let (block, chunks, groups) = if variant.axis == Axis::Y {
            // Rows that are shorter than a block share it with others.
            let columns = shape.nx / width;
            let across = columns.next_power_of_two().min(Self::ACROSS);
            let down = block / across;
            // The kernel counts the segments of all planes, a block's too many included.
            blocks_for(
                name,
                segments.saturating_mul(shape.nz).saturating_add(down),
                1,
            )?;
            (
                (across as u32, down as u32),
                columns.div_ceil(across),
                segments.saturating_mul(shape.nz).div_ceil(down),
            )
        } else {
            let columns = shape.nx * shape.ny / width;
            ((COLUMN_BLOCK, 1), columns.div_ceil(block), segments)
        };
        Ok(Self {
            config: LaunchConfig::new(blocks_for(name, groups.saturating_mul(chunks), 1)?, block),
            segment: Self::SEGMENT,
            // At most as many as the blocks.
            chunks: chunks as u32,
        })
    }
}

impl Variant {
    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use kernels::{x_pencil::*, x_unaligned::*, x_vector::*, y_column::*};
        use kernels::{y_pencil::*, z_column::*, z_pencil::*};
        match (self.axis, self.method) {
            (Axis::X, Method::Pencils(PENCILS_SMALL)) => derivative3d_x_pencil4::NAME,
            (Axis::X, Method::Pencils(_)) => derivative3d_x_pencil32::NAME,
            (Axis::Y, Method::Pencils(PENCILS_SMALL)) => derivative3d_y_pencil4::NAME,
            (Axis::Y, Method::Pencils(_)) => derivative3d_y_pencil32::NAME,
            (Axis::Z, Method::Pencils(PENCILS_SMALL)) => derivative3d_z_pencil4::NAME,
            (Axis::Z, Method::Pencils(_)) => derivative3d_z_pencil32::NAME,
            (Axis::X, Method::Vectors) => derivative3d_x_vector4::NAME,
            (Axis::X, Method::Any) => derivative3d_x_unaligned4::NAME,
            (Axis::Y, Method::Vectors) => derivative3d_y_column2::NAME,
            (Axis::Y, Method::Any) => derivative3d_y_column1::NAME,
            (Axis::Z, Method::Vectors) => derivative3d_z_column2::NAME,
            (Axis::Z, Method::Any) => derivative3d_z_column1::NAME,
        }
    }

    /// Grid, block and shared memory of a textbook kernel with tiles of `pencils`, for
    /// a field that [`Variant::check`] accepts.
    fn pencil_config(self, shape: Shape3, pencils: usize) -> Result<LaunchConfig, Error> {
        let name = self.name();
        let len = self.axis.extent(shape);
        // The extent that the second grid dimension runs over.
        let other = match self.axis {
            Axis::X | Axis::Y => shape.nz,
            Axis::Z => shape.ny,
        };
        let block = match self.axis {
            Axis::X => (len, PENCILS_IN_FLIGHT),
            Axis::Y | Axis::Z => (pencils, len / points_per_thread(pencils)),
        };
        let tile = (len + 2 * super::RADIUS) * pencils;
        Ok(LaunchConfig::new(
            (
                blocks_for(name, self.side().extent(shape), pencils)?,
                blocks_for(name, other, 1)?,
            ),
            // Both at most MAX_PENCIL_LEN.
            (block.0 as u32, block.1 as u32),
        )
        // At most 32 * (MAX_PENCIL_LEN + 8) elements.
        .with_dynamic_shared_bytes((tile * size_of::<f32>()) as u32))
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
    use kernels::{x_pencil::*, x_unaligned::*, x_vector::*, y_column::*};
    use kernels::{y_pencil::*, z_column::*, z_pencil::*};

    let shape = plan.shape();
    // For the kernels that take an extent as u32, `check` or `blocks_for` has found it
    // to fit.
    let (nx, ny, nz) = (shape.nx as u32, shape.ny as u32, shape.nz as u32);
    let overlap = plan.boundary().overlap() as u32;
    let constants = Constants::new().with::<DERIVATIVE3D_WEIGHTS>(&plan.weights);

    macro_rules! launch {
        ($kernel:ident, $config:expr, $($arg:expr),+) => {{
            let config = $config;
            let device = f.device().clone();
            let args = $kernel::args(f, df, $($arg),+);
            // SAFETY: f and df have nx * ny * nz elements each, are both on
            // `device`, where buffers are aligned to 16 bytes, and are distinct, since
            // df is borrowed mutably. The geometry is the one the kernel documents;
            // `check` found that the kernel takes the shape and that the axis has at
            // least RADIUS + overlap points. The weights are set by this very call.
            unsafe { launch_with_constants::<$kernel>(&device, &config, &constants, args) }
        }};
    }
    macro_rules! march {
        ($kernel:ident, $width:expr, $($extent:expr),+) => {{
            let March { config, segment, chunks } = March::of(variant, shape, $width)?;
            launch!($kernel, config, $($extent),+, overlap, segment, chunks)
        }};
    }
    let (axis, points, plane) = (variant.axis, f.len(), shape.nx * shape.ny);
    match variant.method {
        Method::Pencils(pencils) => {
            let config = variant.pencil_config(shape, pencils)?;
            match (axis, pencils == PENCILS_SMALL) {
                (Axis::X, true) => launch!(derivative3d_x_pencil4, config, nx, ny, overlap),
                (Axis::X, false) => launch!(derivative3d_x_pencil32, config, nx, ny, overlap),
                (Axis::Y, true) => launch!(derivative3d_y_pencil4, config, nx, ny, overlap),
                (Axis::Y, false) => launch!(derivative3d_y_pencil32, config, nx, ny, overlap),
                (Axis::Z, true) => launch!(derivative3d_z_pencil4, config, nx, ny, nz, overlap),
                (Axis::Z, false) => launch!(derivative3d_z_pencil32, config, nx, ny, nz, overlap),
            }
        }
        Method::Vectors | Method::Any if axis == Axis::X => {
            let per_block = VECTOR * X_BLOCK as usize * X_VECTORS;
            let config = LaunchConfig::new(blocks_for(variant.name(), points, per_block)?, X_BLOCK);
            if variant.method == Method::Vectors {
                launch!(derivative3d_x_vector4, config, points, nx, overlap)
            } else {
                launch!(derivative3d_x_unaligned4, config, points, nx, overlap)
            }
        }
        Method::Vectors if axis == Axis::Y => march!(derivative3d_y_column2, COLUMN, nx, ny, nz),
        Method::Any if axis == Axis::Y => march!(derivative3d_y_column1, 1, nx, ny, nz),
        Method::Vectors => march!(derivative3d_z_column2, COLUMN, plane, nz),
        Method::Any => march!(derivative3d_z_column1, 1, plane, nz),
    }
}

/// The kernels of [`Derivative3d::gradient`]: that for rows of a multiple of 4 points,
/// and that for any.
pub const GRADIENT_KERNELS: [&str; 2] =
    [derivative3d_gradient4::NAME, derivative3d_gradient1::NAME];

/// Points of an access of the first of them.
const GRADIENT_VECTOR: usize = 4;

/// Planes that a block goes through.
const GRADIENT_SEGMENT: usize = 5;

/// The kernel that suits the shape.
pub(super) const fn gradient_kernel(shape: Shape3) -> &'static str {
    GRADIENT_KERNELS[!takes_vectors(shape) as usize]
}

/// How a gradient is launched.
struct Tiles {
    config: LaunchConfig,
    /// Blocks side by side along x, and along y.
    columns: usize,
    rows: usize,
}

impl Tiles {
    fn of(shape: Shape3) -> Result<Self, Error> {
        let name = gradient_kernel(shape);
        for axis in Axis::ALL {
            check_extent(name, axis, shape)?;
        }
        let plane = (shape.nx * shape.ny).saturating_mul(size_of::<f32>());
        if u32::try_from(plane).is_err() {
            return Err(Error::IndexOverflow {
                what: format!("{name}: the bytes of a plane"),
                given: plane.to_string(),
                limit: u64::from(u32::MAX),
            });
        }
        let points = if takes_vectors(shape) {
            GRADIENT_VECTOR
        } else {
            1
        };
        let columns = shape.nx.div_ceil(32 * points);
        let rows = shape.ny.div_ceil(gradient::ROWS);
        let blocks = (columns * rows).saturating_mul(shape.nz.div_ceil(GRADIENT_SEGMENT));
        let block = (32, gradient::LINES as u32);
        Ok(Self {
            config: LaunchConfig::new(blocks_for(name, blocks, 1)?, block),
            columns,
            rows,
        })
    }
}

/// Whether rows are whole accesses of 16 bytes.
const fn takes_vectors(shape: Shape3) -> bool {
    shape.nx.is_multiple_of(GRADIENT_VECTOR)
}

/// Whether the gradient's faster kernel can be launched for this shape.
pub(super) fn has_vector_gradient(shape: Shape3) -> bool {
    takes_vectors(shape) && Tiles::of(shape).is_ok()
}

/// Launches the gradient on the device of the buffers.
///
/// The caller has checked the buffers' lengths and devices, and that each axis has
/// enough points.
pub(super) fn launch_gradient(
    plan: &Derivative3d,
    f: &Buffer<f32>,
    df: [&mut Buffer<f32>; 3],
) -> Result<(), Error> {
    let shape = plan.shape();
    let Tiles {
        config,
        columns,
        rows,
    } = Tiles::of(shape)?;
    let constants = Constants::new().with::<DERIVATIVE3D_WEIGHTS>(&plan.weights);
    let device = f.device().clone();
    let [dx, dy, dz] = df;

    macro_rules! launch {
        ($kernel:ident) => {{
            // `check_extent` found them to fit; there are as many blocks as tiles.
            let args = $kernel::args(
                f,
                dx,
                dy,
                dz,
                shape.nx as u32,
                shape.ny as u32,
                shape.nz as u32,
                plan.boundary().overlap() as u32,
                GRADIENT_SEGMENT as u32,
                columns as u32,
                rows as u32,
            );
            // SAFETY: the four buffers have nx * ny * nz elements each, are on `device`,
            // where buffers are aligned to 16 bytes, and are distinct, since three are
            // borrowed mutably. The geometry is the one the kernel documents; each axis
            // has at least RADIUS + overlap points, and rows are whole accesses. The
            // weights are set by this very call.
            unsafe { launch_with_constants::<$kernel>(&device, &config, &constants, args) }
        }};
    }
    if takes_vectors(shape) {
        launch!(derivative3d_gradient4)
    } else {
        launch!(derivative3d_gradient1)
    }
}
