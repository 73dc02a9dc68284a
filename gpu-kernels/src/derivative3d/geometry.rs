//! The geometry and cost that launches of several kernels share.
//!
//! A problem is a field with `nx`, `ny` and `nz` points along x, y and z. For the general kernels
//! it also gives the radius of the stencils, half the order of accuracy, and the boundary
//! [`rule`](super::general::rule) of each axis, that of x in the lowest byte.

use super::stencil::{COLUMN_BLOCK, PENCILS_IN_FLIGHT, RADIUS, X_BLOCK, X_VECTORS};
use crate::registry::{Cost, Counted, Geometry, Problem, Refusal, blocks_for};
use crate::vector::Vector4;

/// The textbook's field.
pub(super) const EXAMPLE: Problem = Problem::volume(64, 64, 64);

/// The names of the extents in refusals.
pub(super) const NAMES: [&str; 3] = ["nx", "ny", "nz"];

/// The most points along the axis of the derivative for the textbook kernels: a block has
/// [`PENCILS_IN_FLIGHT`] threads for each point, and at most 1024 threads.
pub const MAX_PENCIL_LEN: usize = 1024 / PENCILS_IN_FLIGHT;

/// The longest axis of the tuned kernels, which compute places in i32, some steps beyond the end.
pub(super) const MAX_LEN: u64 = i32::MAX as u64 - 4096;

/// Points that each thread of a textbook kernel computes: 1 or 8.
#[must_use]
pub const fn points_per_thread(pencils: usize) -> usize {
    pencils / PENCILS_IN_FLIGHT
}

/// Refuses a `given` number above `limit`.
pub(super) fn at_most(
    kernel: &'static str,
    what: &'static str,
    given: u128,
    limit: u64,
) -> Result<(), Refusal> {
    if given <= u128::from(limit) {
        return Ok(());
    }
    Err(Refusal::TooMany {
        kernel,
        what: Counted::Extent(what),
        given,
        limit,
    })
}

/// Refuses extents with more rows than a textbook kernel along x can count.
///
/// # Errors
///
/// [`Refusal`] for such extents.
pub fn check_rows(kernel: &'static str, field: &Problem) -> Result<(), Refusal> {
    let [_, ny, nz] = field.extents;
    at_most(kernel, "ny * nz", ny as u128 * nz as u128, u32::MAX.into())
}

/// Refuses extents that a tuned kernel along `axis` cannot count.
///
/// # Errors
///
/// [`Refusal`] for such extents.
pub fn check_extents(kernel: &'static str, axis: usize, field: &Problem) -> Result<(), Refusal> {
    for (along, name) in NAMES.into_iter().enumerate() {
        // The x kernels treat the field as one sequence of points, the z kernels each plane.
        if along == axis || axis == 1 {
            at_most(kernel, name, field.extents[along] as u128, MAX_LEN)?;
        }
    }
    Ok(())
}

/// The launch with a block for every `PENCILS` pencils along an axis.
pub(super) fn pencils<const AXIS: usize, const PENCILS: usize>(
    kernel: &'static str,
    field: &Problem,
) -> Result<Geometry, Refusal> {
    let extents = field.extents;
    let len = extents[AXIS];
    at_most(kernel, NAMES[AXIS], len as u128, MAX_PENCIL_LEN as u64)?;
    // The axis along which pencils lie side by side, and the remaining axis.
    let (side, other) = [(1, 2), (0, 2), (0, 1)][AXIS];
    if AXIS == 0 {
        check_rows(kernel, field)?;
    }
    let grid = [
        blocks_for(kernel, extents[side], PENCILS)?,
        blocks_for(kernel, extents[other], 1)?,
        1,
    ];
    let [x, y] = match AXIS {
        0 => [len, PENCILS_IN_FLIGHT],
        // equivalent mutant (width: `PENCILS + 1` in `len / points_per_thread(PENCILS)`): 5 or 33
        // over 4 rounds down to the same
        _ => [PENCILS, len / points_per_thread(PENCILS)],
    };
    // At most 32 * (MAX_PENCIL_LEN + 8) elements.
    let tile = (len + 2 * RADIUS) * PENCILS;
    Ok(Geometry::new(grid, [x as u32, y as u32, 1])
        .with_dynamic_shared_bytes((tile * size_of::<f32>()) as u32))
}

/// The launch with a thread for every [`X_VECTORS`] vectors of 16 bytes of `T` along x.
pub(super) fn vectors<T>(kernel: &'static str, field: &Problem) -> Result<Geometry, Refusal> {
    check_extents(kernel, 0, field)?;
    let per_block = size_of::<Vector4>() / size_of::<T>() * X_BLOCK as usize * X_VECTORS;
    let blocks = blocks_for(kernel, field.points(), per_block)?;
    Ok(Geometry::linear(blocks, X_BLOCK))
}

/// The launch of a kernel that marches along y or z.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns {
    /// Points that a thread marches along.
    pub segment: u32,
    /// Blocks side by side that hold the columns of a row, or of a plane.
    pub chunks: u32,
    /// The geometry of the launch.
    pub geometry: Geometry,
}

impl Columns {
    /// Points of a segment. Longer segments load fewer points twice, but measured slower.
    const SEGMENT: usize = 16;

    /// The most columns of a row in a block: one per lane of a warp.
    const ACROSS: usize = 32;

    /// The launch along axis 1 or 2 of a field; `width` is the number of points of a column along
    /// x.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for extents or blocks that exceed what the kernel can count.
    pub fn of(
        kernel: &'static str,
        axis: usize,
        width: usize,
        field: &Problem,
    ) -> Result<Self, Refusal> {
        let [nx, ny, nz] = field.extents;
        check_extents(kernel, axis, field)?;
        let segments = field.extents[axis].div_ceil(Self::SEGMENT);
        let block = COLUMN_BLOCK as usize;
        let (across, chunks, groups) = if axis == 1 {
            // Rows shorter than a block share it with others.
            let columns = nx / width;
            let across = columns.next_power_of_two().min(Self::ACROSS);
            let down = block / across;
            // The kernel numbers the segments of all planes, including the last block's excess
            // ones.
            let lines = segments.saturating_mul(nz);
            blocks_for(kernel, lines.saturating_add(down), 1)?;
            (across, columns.div_ceil(across), lines.div_ceil(down))
        } else {
            let columns = nx.saturating_mul(ny) / width;
            (block, columns.div_ceil(block), segments)
        };
        let blocks = blocks_for(kernel, groups.saturating_mul(chunks), 1)?;
        let block = [across as u32, (block / across) as u32, 1];
        Ok(Self {
            segment: Self::SEGMENT as u32,
            // At most the number of blocks, which fits.
            chunks: chunks as u32,
            geometry: Geometry::new([blocks, 1, 1], block),
        })
    }
}

/// The result of `count` for the extents. If it does not fit `u32`, the refusal names the extent
/// that is too large for the others, and its limit.
///
/// What is counted depends on the kernel and on a thread's share; it must not grow when the field
/// gets shorter.
pub(super) fn counted<C>(
    kernel: &'static str,
    extents: [usize; 3],
    count: impl Fn([usize; 3]) -> Option<C>,
) -> Result<C, Refusal> {
    if let Some(count) = count(extents) {
        return Ok(count);
    }
    let fits = |extents| count(extents).is_some();
    let [nx, ny, nz] = extents;
    // The slowest extent, unless a single plane is already too large.
    let (what, given, limit) = if fits([nx, ny, 1]) {
        let limit = largest(nz, |nz| fits([nx, ny, nz]));
        (Counted::Planes { nx, ny }, nz, limit)
    } else {
        (
            Counted::Rows { nx },
            ny,
            largest(ny, |ny| fits([nx, ny, 1])),
        )
    };
    Err(Refusal::TooMany {
        kernel,
        what,
        given: given as u128,
        limit: limit as u64,
    })
}

/// The largest number below `not` for which `fits` is true, or 0. `fits` must be true up to some
/// number and false from there on, including at `not`.
fn largest(not: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, not);
    while high.saturating_sub(low) > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// The cost of one first derivative of the 8th order.
#[must_use]
pub(super) const fn first_derivative<T>(field: &Problem) -> Cost {
    derivatives::<T>(&field.with_stencil(RADIUS as u32, 0), 1, 1, 1, 1)
}

/// The cost of all three first derivatives of the 8th order in f32.
#[must_use]
pub(super) const fn gradient(field: &Problem) -> Cost {
    derivatives::<f32>(&field.with_stencil(RADIUS as u32, 0), 1, 3, 3, 1)
}

/// The cost of `count` derivatives of this order and the problem's radius, of `read` fields, summed
/// to `written` fields.
#[must_use]
pub const fn derivatives<T>(
    field: &Problem,
    read: u64,
    written: u64,
    count: u64,
    order: u64,
) -> Cost {
    // A term is a difference, or for a second derivative a sum and a multiply-add; a multiply-add
    // then adds it to the sum, except for the first term, which takes a product.
    let terms = field.radius as u64;
    let derivative = ((2 * order + 1) * terms).saturating_sub(1);
    let flops = count * derivative + (count - written);
    let points = field.points() as u64;
    Cost {
        bytes: points.saturating_mul((read + written) * size_of::<T>() as u64),
        flops: points.saturating_mul(flops),
    }
}

#[cfg(test)]
#[cfg(target_pointer_width = "64")]
mod tests {
    extern crate std;

    use super::*;
    use crate::derivative3d::general::MAX_LEN;
    use crate::registry::Entry;
    use std::format;
    use std::string::{String, ToString};

    fn general() -> impl Iterator<Item = &'static Entry> {
        let entries = crate::derivative3d::FAMILY.kernels.iter();
        entries.filter(|entry| entry.variant.starts_with("general_"))
    }

    /// What is too large, its value and its limit.
    fn refused(entry: &Entry, extents: [usize; 3]) -> (String, u128, usize) {
        match entry.geometry(&with_extents(extents)) {
            Err(Refusal::TooMany {
                what, given, limit, ..
            }) => (what.to_string(), given, limit as usize),
            other => panic!("{}: {other:?}", entry.name),
        }
    }

    fn with_extents([nx, ny, nz]: [usize; 3]) -> Problem {
        Problem::volume(nx, ny, nz).with_stencil(4, 0)
    }

    #[test]
    fn pencils_are_no_longer_than_a_block() {
        for len in [MAX_PENCIL_LEN, MAX_PENCIL_LEN + 1] {
            let fits = len == MAX_PENCIL_LEN;
            let volume = Problem::volume;
            assert_eq!(pencils::<0, 4>("x", &volume(len, 4, 1)).is_ok(), fits);
            assert_eq!(pencils::<1, 4>("y", &volume(4, len, 1)).is_ok(), fits);
            assert_eq!(pencils::<2, 4>("z", &volume(4, 1, len)).is_ok(), fits);
        }
    }

    #[test]
    fn only_rows_are_counted_by_pencils_along_them() {
        let planes = 1 << 26;
        assert!(pencils::<0, 4>("x", &Problem::volume(64, 64, planes - 1)).is_ok());
        assert!(pencils::<0, 4>("x", &Problem::volume(64, 64, planes)).is_err());
        assert!(pencils::<1, 4>("y", &Problem::volume(64, 64, planes)).is_ok());
    }

    #[test]
    fn tuned_kernels_along_x_limit_rows_only() {
        let long = super::MAX_LEN as usize + 1;
        let fits = |extents| vectors::<f32>("x", &with_extents(extents)).is_ok();
        assert!(!fits([long, 1, 1]));
        assert!(fits([4, long, 1]));
        assert!(fits([4, 1, long]));
    }

    #[test]
    fn segments_of_all_planes_are_counted_in_u32() {
        let of = |nz| Columns::of("y", 1, 2, &with_extents([2, 64, nz])).is_ok();
        // Each plane has four segments. The last block may count up to 64 segments too many.
        let planes = (1 << 30) - 17;
        assert!(of(planes));
        assert!(!of(planes + 1));
    }

    #[test]
    fn no_more_blocks_than_hold_all_columns() {
        let of = |axis, width, extents| {
            let columns = Columns::of("columns", axis, width, &with_extents(extents)).unwrap();
            (columns.segment, columns.chunks, columns.geometry)
        };
        // Each plane has 50 columns of two points, and a block is 32 columns wide. The planes have
        // twelve segments together, two of them in a block.
        let geometry = Geometry::new([12, 1, 1], [32, 2, 1]);
        assert_eq!(of(1, 2, [100, 50, 3]), (16, 2, geometry));
        // Three columns in a block that is four wide, with room for sixteen segments.
        let geometry = Geometry::new([1, 1, 1], [4, 16, 1]);
        assert_eq!(of(1, 2, [6, 50, 3]), (16, 1, geometry));
        // 2500 columns need 40 blocks of 64, and there are four segments.
        let geometry = Geometry::new([160, 1, 1], [64, 1, 1]);
        assert_eq!(of(2, 2, [100, 50, 50]), (16, 40, geometry));
    }

    #[test]
    fn a_field_that_is_too_large_is_told_how_large_it_may_be() {
        let longest = MAX_LEN as usize;
        for entry in general() {
            let fits = |extents| entry.geometry(&with_extents(extents)).is_ok();
            for side in [1000, 50_000] {
                let extents = [side, side, longest];
                if fits(extents) {
                    continue;
                }
                let (what, given, limit) = refused(entry, extents);
                let planes = format!("nz of a field with planes of {side} × {side} points");
                assert_eq!((what, given), (planes, longest as u128), "{}", entry.name);
                // The limit fits, and one more does not.
                assert!(limit > 0 && fits([side, side, limit]), "{}", entry.name);
                assert!(!fits([side, side, limit + 1]), "{}", entry.name);
            }
            let (what, given, limit) = refused(entry, [longest, longest, 5]);
            let rows = format!("ny of a field with rows of {longest} points");
            assert_eq!((what, given), (rows, longest as u128), "{}", entry.name);
            assert!(!fits([longest, limit + 1, 1]), "{}", entry.name);
            assert!(limit == 0 || fits([longest, limit, 1]), "{}", entry.name);
        }
    }

    #[test]
    fn a_plane_of_an_operator_has_at_most_as_many_points_as_u32_counts() {
        for entry in general().filter(|entry| entry.variant.len() > "general_x".len()) {
            let (what, given, limit) = refused(entry, [1 << 16, 1 << 16, 9]);
            assert_eq!(what, "ny of a field with rows of 65536 points");
            assert_eq!((given, limit), (1 << 16, (1 << 16) - 1), "{}", entry.name);
        }
    }

    #[test]
    fn operations_are_those_of_the_stencils() {
        let flops = |name| {
            let entry = crate::registry::entry(name).unwrap();
            entry.cost(&entry.example).flops / 64_u64.pow(3)
        };
        assert_eq!(flops("derivative3d_x_pencil4"), 11);
        assert_eq!(flops("derivative3d_gradient4"), 3 * 11);
        assert_eq!(flops("derivative3d_general_z_f64"), 11);
        assert_eq!(flops("derivative3d_general_gradient_f32"), 3 * 11);
        assert_eq!(flops("derivative3d_general_divergence_f32"), 3 * 11 + 2);
        assert_eq!(flops("derivative3d_general_curl_f64"), 6 * 11 + 3);
        assert_eq!(flops("derivative3d_general_laplacian_f32"), 3 * 19 + 2);
    }
}
