//! What all formats of field files share: the element types, a rank's [`Share`] of a field, and the
//! checksum.

use crate::region::{Region, pieces};
use crate::{Block, Communicator, Error};
use halo_gpu::Element;
use std::io;
use std::ops::Index;
use std::path::Path;

mod sealed {
    pub trait Sealed {}
}

/// An element type of files: floating-point numbers of 32 and 64 bits, and integers of 8 to 64
/// bits.
pub trait Stored: Element + PartialEq + sealed::Sealed {
    /// Its name, as in Rust.
    #[doc(hidden)]
    const NAME: &'static str;
    /// Its type code in an .npy file, without the byte order.
    #[doc(hidden)]
    const NPY: &'static str;
}

macro_rules! stored {
    ($($type:ident $npy:literal)*) => {$(
        impl sealed::Sealed for $type {}
        impl Stored for $type {
            const NAME: &'static str = stringify!($type);
            const NPY: &'static str = $npy;
        }
    )*};
}

stored! {
    f32 "f4"
    f64 "f8"
    i8 "i1"
    i16 "i2"
    i32 "i4"
    i64 "i8"
    u8 "u1"
    u16 "u2"
    u32 "u4"
    u64 "u8"
}

/// The values at a rank's own points: `share[point]` is the value at a point of the whole grid,
/// which must be one of the rank's own. Indexing with another point panics, as it does for a slice.
#[derive(Debug, Clone, PartialEq)]
pub struct Share<T, const D: usize> {
    block: Block<D>,
    values: Vec<T>,
}

impl<T: Copy, const D: usize> Share<T, D> {
    /// The caller gives as many `values` as the block has points.
    pub(crate) const fn new(block: Block<D>, values: Vec<T>) -> Self {
        Self { block, values }
    }

    /// The rank's own points.
    #[must_use]
    pub const fn block(&self) -> Block<D> {
        self.block
    }

    /// Their values, the first axis fastest.
    #[must_use]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The value at a point of the whole grid, if the point is one of the rank's own.
    #[must_use]
    pub fn get(&self, point: [usize; D]) -> Option<T> {
        self.values.get(self.place(point)?).copied()
    }

    /// The index of the value at a point, if the point is one of the rank's own.
    fn place(&self, point: [usize; D]) -> Option<usize> {
        let Block { start, extents } = self.block;
        (0..D).rev().try_fold(0, |place, axis| {
            let at = point[axis].checked_sub(start[axis])?;
            (at < extents[axis]).then(|| place * extents[axis] + at)
        })
    }
}

impl<T: Copy, const D: usize> Index<[usize; D]> for Share<T, D> {
    type Output = T;

    fn index(&self, point: [usize; D]) -> &T {
        let Some(place) = self.place(point) else {
            panic!(
                "{point:?} is not a point of this rank, whose block is {:?}",
                self.block
            );
        };
        &self.values[place]
    }
}

/// The points of a block as a region of the whole grid.
pub(crate) fn region_of<const D: usize>(block: Block<D>) -> Region<D> {
    std::array::from_fn(|axis| block.start[axis]..block.start[axis] + block.extents[axis])
}

/// A rank's part of a field's checksum. The parts of all ranks add up to the checksum, which is the
/// same for every decomposition: each element adds a number that depends on its bits and on its
/// place in the whole grid.
pub(crate) fn digest<T: Stored, const D: usize>(
    points: [usize; D],
    block: Block<D>,
    values: &[T],
) -> u64 {
    let mut values = values.iter();
    let mut sum = 0_u64;
    for place in pieces(points, &region_of(block)).into_iter().flatten() {
        let Some(value) = values.next() else { break };
        let mut bits = [0; 8];
        bits[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(value));
        let bits = u64::from_le_bytes(bits);
        sum = sum.wrapping_add(mixed(mixed(place as u64) ^ bits));
    }
    sum
}

/// The output function of the generator SplitMix64 (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", OOPSLA 2014): each bit of the result depends on all bits.
const fn mixed(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Makes an error of a failed action on a file.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::File {
        action,
        path: path.to_owned(),
        source,
    }
}

/// Does `work` on the first rank; the other ranks wait, and fail if it fails.
pub(crate) fn by_first<R>(
    communicator: &Communicator,
    work: impl FnOnce() -> Result<R, Error>,
) -> Result<Option<R>, Error> {
    let own = if communicator.rank() == 0 {
        work().map(Some)
    } else {
        Ok(None)
    };
    communicator.together(own)
}

/// Fails unless there is one value for each point of the block.
pub(crate) fn require_values<const D: usize>(block: Block<D>, given: usize) -> Result<(), Error> {
    let required: usize = block.extents.iter().product();
    if given == required {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation: "a file of a field",
        parameter: "the number of values",
        given: given.to_string(),
        required: format!("{required}, the number of this rank's points"),
    })
}

/// The temporary name of a file or folder while it is written.
pub(crate) fn part_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::{Share, digest};
    use crate::Decomposition;

    #[test]
    fn digests_add_up_for_any_cut_and_see_every_change() {
        let points = [7, 5, 4];
        let whole: Vec<f32> = (0..140).map(|i| (i % 9) as f32).collect();
        let of = |values: &[f32], cut: Decomposition<3>| {
            (0..cut.ranks()).fold(0_u64, |sum, rank| {
                let block = cut.block(rank).expect("a rank");
                let own: Vec<f32> = crate::region::pieces(points, &super::region_of(block))
                    .into_iter()
                    .flatten()
                    .map(|at| values[at])
                    .collect();
                sum.wrapping_add(digest(points, block, &own))
            })
        };
        let one = Decomposition::slabs(points, 1).expect("a cut");
        let right = of(&whole, one);
        for parts in [[1, 1, 4], [2, 1, 2], [3, 2, 2], [7, 5, 4]] {
            let cut = Decomposition::new(points, parts).expect("a cut");
            assert_eq!(of(&whole, cut), right, "{parts:?}");
        }
        for at in 0..140 {
            let mut other = whole.clone();
            other[at] = -0.0 - other[at];
            assert_ne!(of(&other, one), right, "the sign of {at}");
            // Swapped neighbours, which are never equal here.
            let mut other = whole.clone();
            other.swap(at, (at + 1) % 140);
            assert_ne!(of(&other, one), right, "{at} and the next");
        }
    }

    #[test]
    fn shares_know_their_points() {
        let cut = Decomposition::new([5, 4], [2, 2]).expect("a cut");
        let block = cut.block(3).expect("a rank");
        let share = Share::new(block, vec![1_i32, 2, 3, 4]);
        assert_eq!(share[[3, 2]], 1);
        assert_eq!(share[[4, 3]], 4);
        assert_eq!(share.get([3, 3]), Some(3));
        assert_eq!(share.get([2, 3]), None);
        assert_eq!(share.get([5, 3]), None);
        assert_eq!(share.values().len(), 4);
    }

    #[test]
    #[should_panic(expected = "[2, 3] is not a point of this rank")]
    fn points_of_others_are_no_index() {
        let block = Decomposition::new([5, 4], [2, 2]).and_then(|cut| cut.block(3));
        let _ = Share::new(block.expect("a rank"), vec![0_u8; 4])[[2, 3]];
    }
}
