//! Regions (boxes) of an array, as pieces that are contiguous in memory.

use std::ops::Range;

/// A range of points along each axis of an array.
pub(crate) type Region<const D: usize> = [Range<usize>; D];

/// The points of a region of an array with these extents, the first axis fastest, as ranges of
/// elements: as few ranges as possible, in order.
#[allow(
    clippy::single_range_in_vec_init,
    reason = "a list of one range is meant"
)]
pub(crate) fn pieces<const D: usize>(extents: [usize; D], region: &Region<D>) -> Vec<Range<usize>> {
    if region.iter().any(Range::is_empty) {
        return Vec::new();
    }
    let mut pieces: Vec<Range<usize>> = vec![0..1];
    let mut stride = extents.iter().product::<usize>();
    // Starts at the slowest axis. Each piece is a point of the axes so far, and its range counts
    // points of these axes.
    for (axis, range) in region.iter().enumerate().rev() {
        stride /= extents[axis];
        // Contiguous whole rows of faster axes are one piece.
        let together = region[..axis]
            .iter()
            .zip(&extents)
            .all(|(range, &extent)| *range == (0..extent));
        let mut next = Vec::new();
        for piece in &pieces {
            let at = |index: usize| piece.start + index * stride;
            if together {
                next.push(at(range.start)..at(range.end));
            } else {
                next.extend(range.clone().map(|index| at(index)..at(index) + 1));
            }
        }
        pieces = next;
        if together {
            break;
        }
    }
    pieces
}

/// Pieces of the same length, at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rows {
    /// The first element of the first piece.
    pub(crate) start: usize,
    pub(crate) len: usize,
    pub(crate) count: usize,
    /// The distance between the starts of two successive pieces.
    pub(crate) distance: usize,
}

/// The [`pieces`] of a region, grouped so that one copy moves each group.
pub(crate) fn rows<const D: usize>(extents: [usize; D], region: &Region<D>) -> Vec<Rows> {
    let mut rows: Vec<Rows> = Vec::new();
    for piece in pieces(extents, region) {
        let (start, len) = (piece.start, piece.len());
        match rows.last_mut() {
            Some(last) if last.count == 1 || start == last.start + last.count * last.distance => {
                last.distance = start - last.start - (last.count - 1) * last.distance;
                last.count += 1;
            }
            _ => rows.push(Rows {
                start,
                len,
                count: 1,
                distance: len,
            }),
        }
    }
    rows
}

/// The region as one range of elements, if it is contiguous in memory.
pub(crate) fn contiguous<const D: usize>(
    extents: [usize; D],
    region: &Region<D>,
) -> Option<Range<usize>> {
    let (mut start, mut stride, mut is_whole) = (0, 1, true);
    for (range, extent) in region.iter().zip(extents) {
        if !is_whole && range.len() != 1 {
            return None;
        }
        is_whole &= *range == (0..extent);
        start += range.start * stride;
        stride *= extent;
    }
    Some(start..start + points(region))
}

/// The number of points of a region.
pub(crate) fn points<const D: usize>(region: &Region<D>) -> usize {
    region.iter().map(Range::len).product()
}

#[cfg(test)]
mod tests {
    use super::{Rows, contiguous, pieces, points, rows};

    /// Compares every region of an array with a search point by point.
    #[test]
    fn pieces_are_the_points_in_order() {
        let extents = [4, 3, 5];
        let ranges = |n: usize| (0..=n).flat_map(move |a| (a..=n).map(move |b| a..b));
        let mut most = 0;
        for x in ranges(4) {
            for y in ranges(3) {
                for z in ranges(5) {
                    let region = [x.clone(), y.clone(), z.clone()];
                    let found: Vec<_> = pieces(extents, &region).into_iter().flatten().collect();
                    let mut right = Vec::new();
                    for k in z.clone() {
                        for j in y.clone() {
                            right.extend(x.clone().map(|i| (k * 3 + j) * 4 + i));
                        }
                    }
                    assert_eq!(found, right, "{region:?}");
                    let rows = rows(extents, &region).into_iter();
                    let rows = rows.flat_map(|it| {
                        let starts = (0..it.count).map(move |at| it.start + at * it.distance);
                        starts.flat_map(move |start| start..start + it.len)
                    });
                    assert_eq!(rows.collect::<Vec<_>>(), right, "{region:?}");
                    assert_eq!(found.len(), points(&region));
                    if let [first, others @ ..] = &pieces(extents, &region)[..] {
                        let one = others.is_empty().then(|| first.clone());
                        assert_eq!(contiguous(extents, &region), one, "{region:?}");
                    }
                    most = most.max(found.len());
                }
            }
        }
        assert_eq!(most, 60);
    }

    #[test]
    #[allow(
        clippy::single_range_in_vec_init,
        reason = "a list of one range is meant"
    )]
    fn planes_are_one_piece() {
        assert_eq!(pieces([4, 3, 5], &[0..4, 0..3, 1..3]), [12..36]);
        assert_eq!(pieces([4, 3, 5], &[0..4, 1..2, 1..3]), [16..20, 28..32]);
        assert_eq!(pieces([7], &[2..5]), [2..5]);
    }

    #[test]
    fn rows_of_a_box_are_copied_plane_by_plane() {
        let plane = |start| Rows {
            start,
            len: 2,
            count: 2,
            distance: 4,
        };
        assert_eq!(rows([4, 3, 5], &[1..3, 0..2, 2..4]), [plane(25), plane(37)]);
        let all = Rows {
            count: 15,
            ..plane(1)
        };
        assert_eq!(rows([4, 3, 5], &[1..3, 0..3, 0..5]), [all]);
    }
}
