//! First derivative of a 3-D field by 8th-order central differences.
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! The weights are those of Fornberg, "Generation of finite difference formulas on arbitrarily
//! spaced grids", Math. Comp. 51 (1988), table 1. The quotients, four for each axis, are in
//! constant memory, because every lane of a warp needs the same one at the same time. The teaching
//! kernels have them in a static, which the host sets before a launch; the others take them as
//! launch parameters.
//!
//! # The teaching kernels
//!
//! A *pencil* is a whole line of points along the axis of the derivative. One block owns several
//! pencils from end to end, so the only other points it needs are the periodic images of its own:
//! the halo of [`RADIUS`] points at either end is filled inside shared memory, from the tile
//! itself.
//!
//! Along x a pencil is contiguous and a tile of few pencils already reads whole cache lines
//! ([`x_pencil`]). Along y and z neighbouring points of a pencil are `nx` or `nx * ny` elements
//! apart, and coalescing depends on the number of pencils side by side in x: 4 of them are half of
//! a 32-byte sector, 32 of them a whole 128-byte line ([`y_pencil`], [`z_pencil`]). These kernels
//! serve to compare the two.
//!
//! # The tuned kernels
//!
//! They load each point about once, several points at a time, without shared memory or barriers,
//! and take any extents. Along x the neighbours come from other lanes ([`x_vector`],
//! [`x_unaligned`]); along y and z they are in the registers of a thread that marches along the
//! axis ([`y_column`], [`z_column`]). [`gradient`] computes all three derivatives and reads the
//! field once; it has a tile in shared memory and takes rows of a multiple of 4 points (for other
//! rows [`vector_calculus`] has a gradient).
//!
//! Those are for f32 and periodic axes. [`x_rows`] and [`columns`] use the same methods in f32 and
//! f64, for any boundary rule.
//!
//! All do the same arithmetic in the same order, a product and three fused
//! multiply-adds per point, and give the same bits as the CPU port.
//!
//! # The general kernels
//!
//! [`general`] has other orders of accuracy and second derivatives; [`vector_calculus`] combines
//! those to gradients, divergences, curls and Laplacians, each in one launch.

pub mod columns;
pub mod general;
pub mod general_real;
#[cfg(not(target_arch = "nvptx64"))]
pub mod geometry;
pub mod gradient;
mod planes;
mod stencil;
mod table;
pub mod vector_calculus;
pub mod x_pencil;
pub mod x_rows;
pub mod x_unaligned;
pub mod x_vector;
pub mod y_column;
pub mod y_pencil;
pub mod z_column;
pub mod z_pencil;

pub use stencil::{
    COLUMN_BLOCK, DERIVATIVE3D_WEIGHTS, PENCILS_IN_FLIGHT, PENCILS_LARGE, PENCILS_SMALL, RADIUS,
    X_BLOCK, X_VECTORS,
};

/// The family's kernels.
#[cfg(not(target_arch = "nvptx64"))]
pub const FAMILY: crate::registry::Family = crate::registry::Family {
    name: "derivative3d",
    computes: "derivatives of a field on a grid of three dimensions",
    kernels: crate::entries![
        x_pencil::derivative3d_x_pencil4,
        x_pencil::derivative3d_x_pencil32,
        y_pencil::derivative3d_y_pencil4,
        y_pencil::derivative3d_y_pencil32,
        z_pencil::derivative3d_z_pencil4,
        z_pencil::derivative3d_z_pencil32,
        x_vector::derivative3d_x_vector4,
        x_unaligned::derivative3d_x_unaligned4,
        y_column::derivative3d_y_column2,
        y_column::derivative3d_y_column1,
        z_column::derivative3d_z_column2,
        z_column::derivative3d_z_column1,
        gradient::derivative3d_gradient4,
        x_rows::derivative3d_x_rows_f32,
        x_rows::derivative3d_x_rows_f64,
        columns::derivative3d_y_columns_f32,
        columns::derivative3d_y_columns_f64,
        columns::derivative3d_z_columns_f32,
        columns::derivative3d_z_columns_f64,
        general::derivative3d_general_x_f32,
        general::derivative3d_general_x_f64,
        general::derivative3d_general_y_f32,
        general::derivative3d_general_y_f64,
        general::derivative3d_general_z_f32,
        general::derivative3d_general_z_f64,
        vector_calculus::derivative3d_general_gradient_f32,
        vector_calculus::derivative3d_general_gradient_f64,
        vector_calculus::derivative3d_general_divergence_f32,
        vector_calculus::derivative3d_general_divergence_f64,
        vector_calculus::derivative3d_general_curl_f32,
        vector_calculus::derivative3d_general_curl_f64,
        vector_calculus::derivative3d_general_laplacian_f32,
        vector_calculus::derivative3d_general_laplacian_f64,
    ],
};
