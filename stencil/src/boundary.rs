//! What lies beyond the ends of fields.

use crate::value::Real;

/// What lies beyond one end of an axis, as kernels are told it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Beyond {
    /// The axis again: the period is n spacings.
    Periodic = 0,
    /// The axis again, of which the first and the last point are the same: n - 1 spacings.
    PeriodicWithEndpoint = 1,
    /// A mirror image, the mirror being at the last point.
    MirrorOnPoint = 2,
    /// A mirror image, the mirror being half a spacing beyond the last point.
    MirrorHalfway = 3,
    /// One value everywhere.
    Value = 4,
    /// Copies of the last point.
    Copy = 5,
}

/// Bits of an end in the rules of a field.
const BITS: u32 = 3;

/// A field's extents, and what lies beyond its ends: what kernels take by value.
///
/// The extents are at least 1 and at most [`MAX_EXTENT`](crate::MAX_EXTENT), z's is 1 in the
/// plane; a plane along z, or a row in two dimensions, has fewer than 2³¹ points. Both ends of
/// a periodic axis are periodic, in the same way. `segment` is at least 1.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Layout<T, const INPUTS: usize> {
    /// Points along x, y and z.
    pub extents: [u32; 3],
    /// Rows, or planes, that a block goes through.
    pub segment: u32,
    /// Of each input what lies beyond its six ends.
    rules: [u32; INPUTS],
    /// The values where it is one.
    values: [[T; 6]; INPUTS],
}

impl<T: Real, const INPUTS: usize> Layout<T, INPUTS> {
    /// Fields of these extents that are periodic.
    #[must_use]
    pub const fn new(extents: [u32; 3], segment: u32) -> Self {
        Self {
            extents,
            segment,
            rules: [0; INPUTS],
            values: [[T::ZERO; 6]; INPUTS],
        }
    }

    /// The same with this beyond the end `2 * axis + side` of a field; side 0 is before the
    /// first point.
    #[must_use]
    pub const fn with_end(mut self, field: usize, end: usize, beyond: Beyond, value: T) -> Self {
        let shift = BITS * end as u32;
        self.rules[field] &= !(((1 << BITS) - 1) << shift);
        self.rules[field] |= (beyond as u32) << shift;
        self.values[field][end] = value;
        self
    }

    /// Whether rows are whole vectors of `points`.
    #[inline(always)]
    #[must_use]
    pub const fn in_vectors(&self, points: u32) -> bool {
        self.extents[0].is_multiple_of(points)
    }

    /// Where a field is stored for `place` along an axis, which may be beyond its ends.
    #[inline(always)]
    #[must_use]
    pub fn place(&self, field: usize, axis: usize, place: i32) -> Place {
        self::place(self.rules[field], self.extents[axis], axis, place)
    }

    /// Whether a value is what lies beyond an end of a field.
    #[must_use]
    pub const fn has_value(&self, field: usize, end: usize) -> bool {
        self.rules[field] >> (BITS * end as u32) & ((1 << BITS) - 1) == Beyond::Value as u32
    }

    /// The value beyond an end of a field.
    #[inline(always)]
    #[must_use]
    pub const fn value(&self, field: usize, end: usize) -> T {
        self.values[field][end]
    }
}

/// Where a value is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this point of the axis.
    Point(u32),
    /// It is the value beyond this end.
    End(usize),
}

/// Where a field with these rules is stored for `place` along an axis of `n` points.
///
/// A place far beyond a short axis goes through as many images as it takes. An axis of one
/// point has that point everywhere, unless there is a value beyond its end.
#[inline(always)]
#[must_use]
pub fn place(rules: u32, n: u32, axis: usize, place: i32) -> Place {
    let (n, mut at) = (n as i32, place);
    while at < 0 || at >= n {
        let side = usize::from(at >= n);
        let end = 2 * axis + side;
        let rule = rules >> (BITS * end as u32) & ((1 << BITS) - 1);
        if rule == Beyond::Value as u32 {
            return Place::End(end);
        }
        let last = n - 1;
        let is = |beyond: Beyond| rule == beyond as u32;
        at = if n == 1 {
            0
        } else if is(Beyond::Periodic) {
            if at < 0 { at + n } else { at - n }
        } else if is(Beyond::PeriodicWithEndpoint) {
            if at < 0 { at + last } else { at - last }
        } else if is(Beyond::MirrorOnPoint) {
            if at < 0 { -at } else { 2 * last - at }
        } else if is(Beyond::MirrorHalfway) {
            if at < 0 { -1 - at } else { 2 * n - 1 - at }
        } else if at < 0 {
            0
        } else {
            last
        };
    }
    Place::Point(at as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table of boundaries says, for one end.
    fn check(beyond: Beyond, n: u32, before: [u32; 3], behind: [u32; 3]) {
        let layout = Layout::<f32, 1>::new([n, 1, 1], 1)
            .with_end(0, 0, beyond, 0.0)
            .with_end(0, 1, beyond, 0.0);
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
        let layout = Layout::<f64, 2>::new([2, 3, 1], 1)
            .with_end(1, 0, Beyond::MirrorHalfway, 0.0)
            .with_end(1, 1, Beyond::Value, 7.0);
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
            layout.place(0, 0, 2),
            Place::Point(0),
            "so are other fields"
        );
    }
}
