//! The boundary rules of fields, and the layout that carries them to kernels.

use crate::reach::MAX_RADIUS;
use crate::value::Real;

/// The boundary rule of one end of an axis: what lies beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Beyond {
    /// Periodic, with a period of n spacings.
    Periodic = 0,
    /// Periodic, with a period of n - 1 spacings: the first and the last point are the same.
    PeriodicWithEndpoint = 1,
    /// A mirror image, with the mirror at the last point.
    MirrorOnPoint = 2,
    /// A mirror image, with the mirror half a spacing beyond the last point.
    MirrorHalfway = 3,
    /// One fixed value everywhere.
    Value = 4,
    /// Copies of the last point.
    Copy = 5,
}

/// Images from here on name an end of the axis, whose value they have.
const END: u32 = u32::MAX - 1;

/// The extents and boundary rules of fields, which kernels take by value.
///
/// The extents are at least 1 and at most [`MAX_EXTENT`](crate::MAX_EXTENT), that of z is 1 in two
/// dimensions; a plane of constant z, or a row in two dimensions, has fewer than 2³¹ points.
/// `segment` is at least 1.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Layout<T, const INPUTS: usize> {
    /// Points along x, y and z.
    pub extents: [u32; 3],
    /// Rows, or planes, that a block goes through.
    pub segment: u32,
    /// For each of the six ends of each input, the images of the places beyond it, the nearest
    /// first: a point of the axis, or from `END` on an end whose value the place has.
    images: [[[u32; MAX_RADIUS]; 6]; INPUTS],
    /// The fixed values beyond the ends, where there are any.
    values: [[T; 6]; INPUTS],
}

impl<T: Real, const INPUTS: usize> Layout<T, INPUTS> {
    /// The layout of periodic fields of these extents.
    #[must_use]
    pub fn new(extents: [u32; 3], segment: u32) -> Self {
        let mut layout = Self {
            extents,
            segment,
            images: [[[0; MAX_RADIUS]; 6]; INPUTS],
            values: [[T::ZERO; 6]; INPUTS],
        };
        for field in 0..INPUTS {
            for axis in 0..3 {
                layout = layout.with_ends(field, axis, [(Beyond::Periodic, T::ZERO); 2]);
            }
        }
        layout
    }

    /// The same layout with these rules beyond the first and the last point of an axis of a field;
    /// the number is the value for [`Beyond::Value`]. If one end is periodic, the other must be
    /// periodic in the same way.
    #[must_use]
    pub fn with_ends(mut self, field: usize, axis: usize, ends: [(Beyond, T); 2]) -> Self {
        let n = self.extents[axis];
        let beyond = ends.map(|(beyond, _)| beyond);
        for m in 0..MAX_RADIUS {
            self.images[field][2 * axis][m] = image(beyond, n, -1 - m as i32);
            self.images[field][2 * axis + 1][m] = image(beyond, n, n as i32 + m as i32);
        }
        for (side, (_, value)) in ends.into_iter().enumerate() {
            self.values[field][2 * axis + side] = value;
        }
        self
    }

    /// Whether rows are whole vectors of `points` points.
    #[inline(always)]
    #[must_use]
    pub const fn in_vectors(&self, points: u32) -> bool {
        self.extents[0].is_multiple_of(points)
    }

    /// Where to find the value of a field at `place` along an axis, at most [`MAX_RADIUS`] beyond
    /// its ends.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, field: usize, axis: usize, place: i32) -> Place {
        let n = self.extents[axis] as i32;
        // Without branches: an image is also looked up for a place on the axis, but not used.
        // equivalent mutant (comparison): place 0 is on the axis
        // equivalent mutant (literal): as above
        let side = usize::from(place >= 0);
        // equivalent mutant (comparison): as above
        // equivalent mutant (literal: in `place < 0`): as above
        let m = if place < 0 { -1 - place } else { place - n };
        let image = self.images[field][2 * axis + side][m as usize % MAX_RADIUS];
        let stored = if (place as u32) < n as u32 {
            place as u32
        } else {
            image
        };
        if stored < END {
            Place::Point(stored)
        } else {
            Place::End(2 * axis + (stored % 2) as usize)
        }
    }

    /// Whether a fixed value lies beyond an end of a field.
    #[must_use]
    pub const fn has_value(&self, field: usize, end: usize) -> bool {
        self.images[field][end][0] >= END
    }

    /// The fixed value beyond an end of a field.
    #[inline(always)]
    #[must_use]
    pub const fn value(&self, field: usize, end: usize) -> T {
        self.values[field][end]
    }
}

/// A box of points: from `first` to before `end` along x, y and z.
///
/// The kernels of [`stencil!`](crate::stencil) with a region compute its points alone; the others
/// keep what the outputs hold, like the points of a wall with a fixed temperature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// The first point along each axis.
    pub first: [u32; 3],
    /// One more than the last point along each axis.
    pub end: [u32; 3],
}

/// Where a value is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this point of the axis.
    Point(u32),
    /// It is the fixed value beyond this end.
    End(usize),
}

/// The image of `place` on an axis of `n` points with these rules beyond its ends, encoded as in
/// [`Layout`].
///
/// A place far beyond a short axis is mapped repeatedly. An axis of one point has that point
/// everywhere, unless a fixed value lies beyond its end.
fn image(ends: [Beyond; 2], n: u32, place: i32) -> u32 {
    let (n, mut at) = (n as i32, place);
    while at < 0 || at >= n {
        let side = usize::from(at >= n);
        let last = n - 1;
        // The place as seen from the first point.
        let from_first = if side == 0 { at } else { last - at };
        let mirrored = match ends[side] {
            Beyond::Value => return END + side as u32,
            _ if n == 1 => 0,
            Beyond::Periodic => from_first + n,
            Beyond::PeriodicWithEndpoint => from_first + last,
            Beyond::MirrorOnPoint => -from_first,
            Beyond::MirrorHalfway => -1 - from_first,
            Beyond::Copy => 0,
        };
        at = if side == 0 { mirrored } else { last - mirrored };
    }
    at as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the images of one rule at both ends.
    fn check(beyond: Beyond, n: u32, before: [u32; 3], behind: [u32; 3]) {
        let layout = Layout::<f32, 1>::new([n, 1, 1], 1).with_ends(0, 0, [(beyond, 0.0); 2]);
        for m in 0..3_i32 {
            assert_eq!(
                layout.place(0, 0, -1 - m),
                Place::Point(before[m as usize]),
                "{beyond:?}"
            );
            let place = layout.place(0, 0, n as i32 + m);
            assert_eq!(place, Place::Point(behind[m as usize]), "{beyond:?}");
        }
    }

    #[test]
    fn each_boundary_has_its_images() {
        check(Beyond::Periodic, 5, [4, 3, 2], [0, 1, 2]);
        check(Beyond::PeriodicWithEndpoint, 5, [3, 2, 1], [1, 2, 3]);
        check(Beyond::MirrorOnPoint, 5, [1, 2, 3], [3, 2, 1]);
        check(Beyond::MirrorHalfway, 5, [0, 1, 2], [4, 3, 2]);
        check(Beyond::Copy, 5, [0, 0, 0], [4, 4, 4]);
    }

    #[test]
    fn short_axes_have_images_of_images() {
        check(Beyond::Periodic, 2, [1, 0, 1], [0, 1, 0]);
        check(Beyond::MirrorOnPoint, 2, [1, 0, 1], [0, 1, 0]);
        check(Beyond::MirrorHalfway, 2, [0, 1, 1], [1, 0, 0]);
        for beyond in [
            Beyond::Periodic,
            Beyond::PeriodicWithEndpoint,
            Beyond::MirrorOnPoint,
            Beyond::MirrorHalfway,
            Beyond::Copy,
        ] {
            check(beyond, 1, [0; 3], [0; 3]);
        }
    }

    #[test]
    fn ends_differ_and_values_end_the_search() {
        let layout = Layout::<f64, 2>::new([2, 3, 1], 1).with_ends(
            1,
            0,
            [(Beyond::MirrorHalfway, 0.0), (Beyond::Value, 7.0)],
        );
        assert_eq!(layout.place(1, 0, -1), Place::Point(0));
        assert_eq!(
            layout.place(1, 0, -3),
            Place::End(1),
            "by way of the mirror"
        );
        assert_eq!(layout.place(1, 0, 2), Place::End(1));
        assert_eq!(layout.value(1, 1), 7.0);
        assert_eq!(
            layout.place(1, 1, -1),
            Place::Point(2),
            "other axes are as they were"
        );
        assert_eq!(
            layout.place(0, 0, -1),
            Place::Point(1),
            "so are other fields"
        );
    }
}
