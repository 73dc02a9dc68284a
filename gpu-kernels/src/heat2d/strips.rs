//! How a pass of many iterations cuts a plate into strips along y and the shares of blocks.

use super::plate::WARP;
#[cfg(not(target_arch = "nvptx64"))]
use crate::registry::{Counted, Geometry, Problem, Refusal, blocks_for};

/// The sizes by which a pass is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiling {
    /// Neighbouring points of a lane, a multiple of a vector's points.
    pub points: usize,
    /// Levels of a warp.
    pub levels: usize,
    /// Warps of a block, each with its own levels.
    pub warps: usize,
    /// Rows that a warp takes between two barriers. Their computations are independent except for
    /// one level, so more of them hide more latency.
    pub rows: usize,
    /// Blocks that a multiprocessor must be able to hold at a time.
    pub blocks: u32,
    /// The time for a row of a strip with a wall at a side, in quarters of the time for any other
    /// row.
    pub walled_row: u32,
}

impl Tiling {
    /// Iterations of a pass.
    #[must_use]
    pub const fn iterations(self) -> usize {
        self.levels * self.warps
    }

    /// Columns of a strip, halo included.
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

/// The weight of a row of a strip without walls at its sides in [`Strips`].
const PLAIN_ROW: u32 = 4;

/// The line of rows that blocks share: the rows of a plate's strips, one strip after another, those
/// with walls at their sides first. Rows are weighted by the time they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strips {
    /// Number of strips.
    strips: u32,
    /// Number of strips with a wall at a side.
    walled: u32,
    /// The weight of a row of those.
    walled_row: u32,
    /// Number of rows that are computed.
    rows: u32,
}

/// Consecutive rows of one strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The strip, counted from the left.
    pub strip: u32,
    /// The first row; the wall at the bottom is row 0.
    pub begin: u32,
    /// The row after the last.
    pub end: u32,
    /// The position in the line where the next part begins.
    pub next: u32,
}

impl Strips {
    /// The strips of a plate of `nx` by `ny` points, walls included, each at least 3 and at most
    /// 2³⁰.
    #[inline(always)]
    #[must_use]
    pub const fn of(tiling: Tiling, nx: u32, ny: u32) -> Self {
        let strips = nx.div_ceil(tiling.useful() as u32);
        // Columns of a strip beyond its useful ones, on each side. A wall in its first or last
        // column does not count: the halo loses it like any other point there.
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

    /// The length of the line, in quarters of a row.
    #[must_use]
    pub const fn length(self) -> u64 {
        let plain = (self.strips - self.walled) as u64 * PLAIN_ROW as u64;
        (self.walled as u64 * self.walled_row as u64 + plain) * self.rows as u64
    }

    /// The rows from position `at` up to `stop` that are in the same strip as `at`.
    #[inline(always)]
    #[must_use]
    pub const fn stretch(self, at: u32, stop: u32) -> Stretch {
        let walled = self.walled * self.rows * self.walled_row;
        // The number of strips before this kind of strip, the position where this kind begins, and
        // the weight of a row.
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

/// The most points along an axis: the kernel computes indices beyond both ends of a row in 32 bits.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_EXTENT: usize = 1 << 30;

/// The longest line of strips: the kernel computes positions in 32 bits.
#[cfg(not(target_arch = "nvptx64"))]
const MAX_LENGTH: u64 = 1 << 31;

/// The fewest blocks. The emulator holds one block at a time, but several are launched there too,
/// so that tests cover the sharing.
#[cfg(not(target_arch = "nvptx64"))]
const LEAST_BLOCKS: usize = 5;

/// How blocks share a plate's strips.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shares {
    /// The length of a block's share of the line.
    pub share: u32,
    /// The geometry of the launch.
    pub geometry: Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Shares {
    /// The shares of a plate of at least 3 × 3 points, on a device that holds
    /// `plate.resident_blocks` blocks: each has an equal share, of at least a row.
    ///
    /// # Errors
    ///
    /// [`Refusal`] for a plate with more points or rows than the kernel can count.
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

    /// Each row of each strip is in exactly one part, for any length of the shares.
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

    /// The strips with the larger weight are those with a wall between their first column and their
    /// last.
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
