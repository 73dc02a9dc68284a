//! How a pass of many iterations cuts a plate up: strips along y, and the shares of blocks.

use super::plate::WARP;
#[cfg(not(target_arch = "nvptx64"))]
use crate::registry::{Counted, Geometry, Problem, Refusal, blocks_for};

/// How a pass is cut up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Neighbouring points of a lane, a multiple of a vector's.
    pub points: usize,
    /// Levels of a warp.
    pub levels: usize,
    /// Warps of a block, each with levels of its own.
    pub warps: usize,
    /// Rows that a warp takes between two barriers. What they compute is independent
    /// but for one level, so that more of them hide more latency.
    pub rows: usize,
    /// Blocks that a multiprocessor holds at a time, registers permitting.
    pub blocks: u32,
    /// How long a row of a strip with a wall at a side takes, in quarters of any other row.
    pub walled_row: u32,
}

impl Tiling {
    /// Iterations of a pass.
    #[must_use]
    pub const fn iterations(self) -> usize {
        self.levels * self.warps
    }

    /// Columns of a strip, halo and all.
    #[must_use]
    pub const fn width(self) -> usize {
        WARP as usize * self.points
    }

    /// Columns of a strip that are written.
    #[must_use]
    pub const fn useful(self) -> usize {
        self.width() - 2 * self.iterations()
    }

    /// Threads of a block along x, y and z.
    #[must_use]
    pub const fn block(self) -> [u32; 3] {
        [32, self.warps as u32, 1]
    }
}

/// What a row of a strip without walls at its sides counts in a [`Strips`].
const PLAIN_ROW: u32 = 4;

/// The rows of a plate's strips, one strip behind the other, as blocks share them: those of
/// the strips with walls at their sides first. Rows count as what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strips {
    /// Strips.
    strips: u32,
    /// Those with a wall at a side.
    walled: u32,
    /// What a row of those counts.
    walled_row: u32,
    /// Rows that are swept.
    rows: u32,
}

/// Rows of one strip, one behind the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The strip, counted from the left.
    pub strip: u32,
    /// The first of the rows, and the one behind the last; the wall at the bottom is row 0.
    pub begin: u32,
    /// See `begin`.
    pub end: u32,
    /// Where in the line the next part begins.
    pub next: u32,
}

impl Strips {
    /// That of a plate of `nx` by `ny` points, walls included, at least 3 and at most 2³⁰.
    #[inline(always)]
    #[must_use]
    pub const fn of(tiling: Tiling, nx: u32, ny: u32) -> Self {
        let strips = nx.div_ceil(tiling.useful() as u32);
        // What a strip has beyond its useful columns, to the left and to the right. A wall that
        // is its first or last column is lost like any other point there.
        let halo = tiling.iterations() as u32;
        let plain = match (nx + halo).checked_sub(tiling.width() as u32) {
            Some(last) => last / tiling.useful() as u32,
            None => 0,
        };
        Self {
            strips,
            walled: strips - plain,
            walled_row: tiling.walled_row,
            rows: ny - 2,
        }
    }

    /// How long it is, in quarters of a row.
    #[must_use]
    pub const fn length(self) -> u64 {
        let plain = (self.strips - self.walled) as u64 * PLAIN_ROW as u64;
        (self.walled as u64 * self.walled_row as u64 + plain) * self.rows as u64
    }

    /// What lies from place `at` on, before place `stop`, in the same strip.
    #[inline(always)]
    #[must_use]
    pub const fn stretch(self, at: u32, stop: u32) -> Stretch {
        let walled = self.walled * self.rows * self.walled_row;
        // The strips before those in question, their places, and what a row counts.
        let (before, origin, row) = if at < walled {
            (0, 0, self.walled_row)
        } else {
            (self.walled, walled, PLAIN_ROW)
        };
        let height = self.rows * row;
        let nth = (at - origin) / height;
        let first = origin + nth * height;
        let next = if stop - first < height {
            stop
        } else {
            first + height
        };
        Stretch {
            strip: match before + nth {
                0 => 0,
                nth => self.strips - nth,
            },
            begin: 1 + (at - first) / row,
            end: 1 + (next - first) / row,
            next,
        }
    }
}

/// The tiling of [`heat2d_temporal_f32()`](fn@super::temporal::heat2d_temporal_f32).
pub const TILING_F32: Tiling = Tiling {
    points: 8,
    levels: 4,
    warps: 4,
    rows: 3,
    blocks: 3,
    walled_row: 12,
};

/// The tiling of [`heat2d_temporal_f64()`](fn@super::temporal::heat2d_temporal_f64).
pub const TILING_F64: Tiling = Tiling {
    points: 4,
    levels: 4,
    warps: 4,
    rows: 3,
    blocks: 4,
    walled_row: 8,
};

/// The most points along an axis: the kernel counts beyond both ends of a row in 32 bits.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_EXTENT: usize = 1 << 30;

/// The longest line of strips: the kernel counts in 32 bits.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_LENGTH: u64 = 1 << 31;

/// The fewest blocks: several on the emulator, too, which holds one at a time, so that it
/// shows whether they share the plate as they should.
#[cfg(not(target_arch = "nvptx64"))]
const LEAST_BLOCKS: usize = 5;

/// How blocks share a plate's strips.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// What a block takes of the line of strips.
    pub share: u32,
    /// The launch's.
    pub geometry: Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Shares {
    /// Of a plate of at least 3 × 3 points, on a device that holds so many blocks: each of
    /// them has its share, of at least a row.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for a plate that has more than the kernel counts.
    pub fn of(kernel: &'static str, tiling: Tiling, plate: &Problem) -> Result<Self, Refusal> {
        let too_many = |what, given: u64, limit: u64| Refusal::TooMany {
            kernel,
            what: Counted::Extent(what),
            given: given.into(),
            limit,
        };
        let [nx, ny, _] = plate.extents;
        for (what, extent) in [("nx", nx), ("ny", ny)] {
            if extent > MAX_EXTENT {
                return Err(too_many(what, extent as u64, MAX_EXTENT as u64));
            }
        }
        let len = Strips::of(tiling, nx as u32, ny as u32).length();
        if len > MAX_LENGTH {
            return Err(too_many("the plate's strips", len, MAX_LENGTH));
        }
        let share = len.div_ceil(plate.resident_blocks.max(LEAST_BLOCKS) as u64);
        let share = share.max(u64::from(tiling.walled_row));
        let blocks = blocks_for(kernel, len as usize, share as usize)?;
        Ok(Self {
            // At most 2^31.
            share: share as u32,
            geometry: Geometry::new([blocks, 1, 1], tiling.block()),
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;

    /// Each row of each strip is in exactly one part, whatever the shares.
    #[test]
    fn shares_are_the_whole_plate() {
        for tiling in [TILING_F32, TILING_F64] {
            let (useful, width) = (tiling.useful() as u32, tiling.width() as u32);
            let widths = [
                3,
                useful,
                useful + 1,
                width,
                width + 1,
                3 * useful + 17,
                5 * width,
            ];
            for (nx, ny) in widths.into_iter().flat_map(|nx| [(nx, 3), (nx, 41)]) {
                let line = Strips::of(tiling, nx, ny);
                let len = line.length() as u32;
                for share in [1, PLAIN_ROW + 1, tiling.walled_row, 97, 1000, len] {
                    let mut parts_of = vec![vec![0; ny as usize]; line.strips as usize];
                    let mut at = 0;
                    while at < len {
                        let stop = (at / share * share + share).min(len);
                        let part = line.stretch(at, stop);
                        assert!(
                            part.next > at && part.next <= stop,
                            "{line:?} {share} {part:?}"
                        );
                        for row in part.begin..part.end {
                            parts_of[part.strip as usize][row as usize] += 1;
                        }
                        at = part.next;
                    }
                    for strip in parts_of {
                        assert_eq!((strip[0], strip[ny as usize - 1]), (0, 0), "walls");
                        assert!(strip[1..ny as usize - 1].iter().all(|&parts| parts == 1));
                    }
                }
            }
        }
    }

    /// Strips that count more are those that have a wall between their first column and
    /// their last.
    #[test]
    fn strips_with_walls_at_their_sides_count_more() {
        for tiling in [TILING_F32, TILING_F64] {
            let (useful, halo) = (tiling.useful(), tiling.iterations());
            for nx in 3..6 * useful {
                let line = Strips::of(tiling, nx as u32, 3);
                let walled = (0..nx.div_ceil(useful))
                    .filter(|nth| {
                        let last = nth * useful + useful + halo;
                        *nth == 0 || last > nx
                    })
                    .count();
                assert_eq!(line.walled as usize, walled, "nx = {nx}");
            }
        }
    }
}
