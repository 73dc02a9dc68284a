//! [`Decomposition`]: cuts a grid into blocks, one for each rank.

use crate::error::require_rank;
use crate::{Communicator, Error};
use halo_gpu::allocation;

/// The lower or the upper end of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards smaller indices.
    Low,
    /// Towards larger indices.
    High,
}

/// A grid of `D` axes, the first of which is the fastest, cut into blocks: one for each rank.
///
/// Along each axis the blocks differ by at most one point; the first blocks are the larger ones.
/// Ranks are numbered with the first axis fastest, as points are.
///
/// ```
/// use halo_distributed::{Decomposition, Side};
///
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let slabs = Decomposition::slabs([8, 10], 3)?;
/// assert_eq!(slabs.parts(), [1, 3]);
/// let extents = [0, 1, 2].map(|rank| slabs.block(rank).map(|block| block.extents[1]));
/// assert!(matches!(extents, [Ok(4), Ok(3), Ok(3)]));
///
/// // 6 ranks share a wide plate in 3 × 2 blocks, which have the least surface.
/// let blocks = Decomposition::least_surface([90, 50], 6)?;
/// assert_eq!(blocks.parts(), [3, 2]);
/// assert_eq!(blocks.neighbour(4, 0, Side::Low)?, Some(3));
/// assert_eq!(blocks.neighbour(4, 1, Side::High)?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decomposition<const D: usize> {
    points: [usize; D],
    parts: [usize; D],
    periodic: [bool; D],
}

/// The points of a rank: a box of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block<const D: usize> {
    /// The first point along each axis.
    pub start: [usize; D],
    /// Its points along each axis.
    pub extents: [usize; D],
}

impl<const D: usize> Block<D> {
    /// Its points, the first axis fastest.
    pub fn points(self) -> impl Iterator<Item = [usize; D]> {
        let Self { start, extents } = self;
        (0..extents.iter().product()).map(move |number: usize| {
            let mut left = number;
            std::array::from_fn(|axis| {
                let at = start[axis] + left % extents[axis];
                left /= extents[axis];
                at
            })
        })
    }
}

impl<const D: usize> Decomposition<D> {
    /// A grid of `points` along each axis, cut into `parts` along each.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] unless each axis has at least one part and at least as many points
    /// as parts; also if the number of ranks exceeds a `usize`.
    pub fn new(points: [usize; D], parts: [usize; D]) -> Result<Self, Error> {
        let ranks = parts
            .iter()
            .try_fold(1_usize, |all, it| all.checked_mul(*it));
        let fits = points
            .iter()
            .zip(&parts)
            .all(|(points, parts)| (1..=*points).contains(parts));
        if ranks.is_none() || !fits {
            return Err(too_many(points, ranks.unwrap_or(usize::MAX)));
        }
        Ok(Self {
            points,
            parts,
            periodic: [false; D],
        })
    }

    /// Cuts along the last axis only: each block is contiguous in the whole array.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] for more ranks than planes.
    pub fn slabs(points: [usize; D], ranks: usize) -> Result<Self, Error> {
        let mut parts = [1; D];
        if let Some(last) = parts.last_mut() {
            *last = ranks;
        }
        Self::new(points, parts)
    }

    /// Cuts along all axes but the first, so that the cuts have the fewest points.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyRanks`] if no decomposition gives each rank a point.
    pub fn pencils(points: [usize; D], ranks: usize) -> Result<Self, Error> {
        Self::fewest(points, ranks, 1)
    }

    /// Cuts along any axes, so that the cuts have the fewest points. Of equal ones it takes the one
    /// that is cut most along the last axes.
    ///
    /// # Errors
    ///
    /// As [`pencils`](Self::pencils).
    pub fn least_surface(points: [usize; D], ranks: usize) -> Result<Self, Error> {
        Self::fewest(points, ranks, 0)
    }

    /// Of the decompositions that do not cut the first `whole` axes, the one with the fewest ghost
    /// points.
    fn fewest(points: [usize; D], ranks: usize, whole: usize) -> Result<Self, Error> {
        let mut best = None;
        let mut parts = [1; D];
        search(&points, &mut parts, D, whole, ranks, &mut |parts| {
            let cuts = (0..D).map(|axis| {
                let others = (0..D).filter(|&it| it != axis);
                let plane = others.map(|it| points[it] as u128).product::<u128>();
                (parts[axis] as u128 - 1) * plane
            });
            let surface = cuts.sum::<u128>();
            if best.is_none_or(|(least, _)| surface < least) {
                best = Some((surface, *parts));
            }
        });
        match best {
            Some((_, parts)) => Self::new(points, parts),
            None => Err(too_many(points, ranks)),
        }
    }

    /// Makes the grid periodic along `axis`: its last point is next to the first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an axis that the grid does not have.
    pub fn periodic(mut self, axis: usize) -> Result<Self, Error> {
        check_axis::<D>(axis)?;
        self.periodic[axis] = true;
        Ok(self)
    }

    /// Points along each axis.
    #[must_use]
    pub const fn points(&self) -> [usize; D] {
        self.points
    }

    /// Parts along each axis.
    #[must_use]
    pub const fn parts(&self) -> [usize; D] {
        self.parts
    }

    /// Whether the grid is periodic along `axis`; false for an axis that it does not have.
    #[must_use]
    pub fn is_periodic(&self, axis: usize) -> bool {
        self.periodic.get(axis).is_some_and(|periodic| *periodic)
    }

    /// How many blocks there are.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.parts.iter().product()
    }

    /// The points of a rank.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`].
    pub fn block(&self, rank: usize) -> Result<Block<D>, Error> {
        let place = self.place(rank)?;
        let (mut start, mut extents) = ([0; D], [0; D]);
        for axis in 0..D {
            let (each, more) = (
                self.points[axis] / self.parts[axis],
                self.points[axis] % self.parts[axis],
            );
            start[axis] = place[axis] * each + place[axis].min(more);
            extents[axis] = each + usize::from(place[axis] < more);
        }
        Ok(Block { start, extents })
    }

    /// The results of `value` at each point of a rank, the first axis fastest.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`]; [`Error::Device`] if there is not enough memory.
    pub fn values<T>(
        &self,
        rank: usize,
        value: impl FnMut([usize; D]) -> T,
    ) -> Result<Vec<T>, Error> {
        let block = self.block(rank)?;
        let mut values = allocation::reserve(block.extents.iter().product())?;
        values.extend(block.points().map(value));
        Ok(values)
    }

    /// The points of this rank; fails unless there are as many ranks as blocks.
    pub(crate) fn block_among(&self, communicator: &Communicator) -> Result<Block<D>, Error> {
        communicator.agree("the decomposition", self)?;
        if self.ranks() != communicator.size() {
            return Err(Error::InvalidParameter {
                operation: "a field of several ranks",
                parameter: "the number of blocks",
                given: self.ranks().to_string(),
                required: format!("{}, the number of ranks", communicator.size()),
            });
        }
        self.block(communicator.rank())
    }

    /// The rank whose block is next to the block of `rank`. `None` at an end of the grid, and along
    /// a periodic axis that is not cut, where the block is its own neighbour.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchRank`]; [`Error::InvalidParameter`] for an axis that the grid does not
    /// have.
    pub fn neighbour(&self, rank: usize, axis: usize, side: Side) -> Result<Option<usize>, Error> {
        check_axis::<D>(axis)?;
        let mut place = self.place(rank)?;
        let parts = self.parts[axis];
        let (at, last) = (place[axis], parts - 1);
        place[axis] = match side {
            _ if parts == 1 => return Ok(None),
            Side::Low if at > 0 => at - 1,
            Side::High if at < last => at + 1,
            _ if !self.periodic[axis] => return Ok(None),
            Side::Low => last,
            Side::High => 0,
        };
        let number = |above, (at, parts): (&usize, &usize)| above * parts + at;
        Ok(Some(place.iter().zip(&self.parts).rev().fold(0, number)))
    }

    /// The points of the thinnest block along an axis.
    pub(crate) const fn fewest_points(&self, axis: usize) -> usize {
        self.points[axis] / self.parts[axis]
    }

    /// The number of a rank's block along each axis.
    pub(crate) fn place(&self, rank: usize) -> Result<[usize; D], Error> {
        require_rank(rank, self.ranks())?;
        let mut left = rank;
        Ok(self.parts.map(|parts| {
            let at = left % parts;
            left /= parts;
            at
        }))
    }
}

/// Calls `found` for all ways to write `ranks` as a product of parts of the axes before `axis`. The
/// first `whole` axes are not cut, and no axis has more parts than points. Ways with more parts
/// along the last axes come first.
fn search<const D: usize>(
    points: &[usize; D],
    parts: &mut [usize; D],
    axis: usize,
    whole: usize,
    ranks: usize,
    found: &mut impl FnMut(&[usize; D]),
) {
    if axis <= whole {
        if ranks == 1 {
            found(parts);
        }
        return;
    }
    let axis = axis - 1;
    for part in (1..=ranks.min(points[axis])).rev() {
        if ranks.is_multiple_of(part) {
            parts[axis] = part;
            search(points, parts, axis, whole, ranks / part, found);
        }
    }
    parts[axis] = 1;
}

fn too_many<const D: usize>(points: [usize; D], ranks: usize) -> Error {
    Error::TooManyRanks {
        points: points.to_vec(),
        ranks,
    }
}

fn check_axis<const D: usize>(axis: usize) -> Result<(), Error> {
    if axis < D {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation: "a decomposition",
        parameter: "the axis",
        given: axis.to_string(),
        required: format!("below {D}"),
    })
}
