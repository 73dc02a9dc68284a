//! Launches of the kernels of `halo_stencil`: their blocks and the layout of their fields.

use crate::argument::Argument;
use crate::grid::{Boundary, Grid};
use crate::{Axis, Error, LaunchConfig, Shape, Shape2, Shape3};
use halo_stencil::{Beyond, Blocks, Layout, Real, blocks};

/// The blocks of a launch on a device with this many multiprocessors, of a kernel that reads up to
/// `radius` points of `grid` away along the slowest axis.
///
/// # Errors
///
/// [`Error::IndexOverflow`] for a grid that kernels cannot index.
pub(crate) fn blocks_of<T, const D: usize>(
    operation: &'static str,
    grid: &Grid<D>,
    radius: usize,
    multiprocessors: u32,
) -> Result<Blocks, Error> {
    let extents = Axis::ALL.map(|axis| grid.extent(axis));
    // Points of an access of 16 bytes.
    let points = 16 / size_of::<T>();
    blocks(D, extents, points, radius, multiprocessors as usize).ok_or_else(|| {
        Error::IndexOverflow {
            quantity: Argument::new(operation, "an extent, or the points of a plane,"),
            given: shape_of(extents, D).to_string(),
            limit: halo_stencil::MAX_EXTENT.into(),
        }
    })
}

/// The configuration of a launch with these blocks.
pub(crate) fn config_of(Blocks { grid, block, .. }: Blocks) -> LaunchConfig {
    let [x, y, z] = grid;
    LaunchConfig::new((x, y, z), (block[0], block[1]))
}

/// The layout of fields on `grid` with these boundaries of each field along each axis. `segment` is
/// that of [`blocks_of`]; `value` is the fixed value beyond a boundary.
pub(crate) fn layout_of<T: Real, const D: usize, const INPUTS: usize>(
    grid: &Grid<D>,
    ends: &[[[Boundary; 2]; D]; INPUTS],
    segment: u32,
    value: impl Fn(Boundary) -> T,
) -> Layout<T, INPUTS> {
    let extents = Axis::ALL.map(|axis| grid.extent(axis) as u32);
    let mut layout = Layout::new(extents, segment);
    for (field, ends) in ends.iter().enumerate() {
        for (axis, ends) in ends.iter().enumerate() {
            let ends = ends.map(|boundary| (beyond(boundary), value(boundary)));
            layout = layout.with_ends(field, axis, ends);
        }
    }
    layout
}

/// A boundary in the form that kernels take.
pub(crate) const fn beyond(boundary: Boundary) -> Beyond {
    match boundary {
        Boundary::Periodic => Beyond::Periodic,
        Boundary::PeriodicWithEndpoint => Beyond::PeriodicWithEndpoint,
        Boundary::Dirichlet(_) => Beyond::Value,
        Boundary::Neumann => Beyond::MirrorOnPoint,
        Boundary::NeumannHalfway => Beyond::MirrorHalfway,
        // Nothing beyond a point that keeps its value is used.
        Boundary::OneSided | Boundary::DirichletOnPoint => Beyond::Copy,
    }
}

/// The shape of a field with these extents.
pub(crate) fn shape_of([nx, ny, nz]: [usize; 3], dimensions: usize) -> Shape {
    match dimensions {
        2 => Shape2::new(nx, ny).into(),
        _ => Shape3::new(nx, ny, nz).into(),
    }
}
