//! How a single-pass reduction cuts its array into tiles and chunks, which determines its tree.
//!
//! [`single_pass`](super::single_pass) defines tiles, lanes and chunks.

/// Threads of a block.
pub const THREADS: u32 = 512;

/// The most tiles that a single block reduces alone.
pub const ALONE: usize = 8;

/// 32-bit words of a vector, which one load reads.
pub(super) const VECTOR_WORDS: usize = 4;

/// The 64-bit words before the first slot. They hold the ticket alone, so it shares no cache line
/// with a slot.
pub(super) const FIRST_SLOT: usize = 16;

/// How an array is cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Elements of a tile.
    lanes: usize,
    /// Tiles of a chunk.
    tiles: u32,
    /// Number of chunks.
    chunks: u32,
}

impl Partition {
    /// The partition of `n` elements of `size` bytes, 4 or 8.
    #[must_use]
    pub const fn of(n: usize, size: usize) -> Self {
        let lanes = THREADS as usize * (VECTOR_WORDS * 4 / size);
        let all = n.div_ceil(lanes);
        if all <= ALONE {
            return Self {
                lanes,
                tiles: ALONE as u32,
                chunks: 1,
            };
        }
        let tiles = 1 << (all.ilog2() / 2).saturating_sub(2);
        Self::with_tiles(n, size, tiles)
    }

    /// `n` elements of `size` bytes, cut into chunks of `tiles` tiles.
    ///
    /// The tree differs from that of [`of`](Self::of). Tests use it to reach partitions that would
    /// otherwise need gigabytes.
    #[must_use]
    pub const fn with_tiles(n: usize, size: usize, tiles: u32) -> Self {
        let lanes = THREADS as usize * (VECTOR_WORDS * 4 / size);
        Self {
            lanes,
            tiles,
            // Fewer than 2³², since no object has more than isize::MAX bytes.
            chunks: n.div_ceil(lanes * tiles as usize) as u32,
        }
    }

    /// Elements of a tile: 2048 of 4 bytes, 1024 of 8.
    #[must_use]
    pub const fn lanes(self) -> usize {
        self.lanes
    }

    /// Tiles of a chunk; the last chunk may have fewer.
    #[must_use]
    pub const fn tiles(self) -> u32 {
        self.tiles
    }

    /// Elements of a chunk; the last chunk may have fewer.
    #[must_use]
    pub const fn span(self) -> usize {
        self.lanes * self.tiles as usize
    }

    /// The number of chunks.
    #[must_use]
    pub const fn chunks(self) -> u32 {
        self.chunks
    }

    /// The most combinations on the path from an element to the result.
    #[must_use]
    pub const fn depth(self) -> u32 {
        let neighbours = self.lanes.ilog2();
        let in_chunk = self.tiles - 1 + neighbours;
        if self.chunks <= 1 {
            return in_chunk;
        }
        in_chunk + self.chunks.div_ceil(self.lanes as u32) - 1 + neighbours
    }

    /// 64-bit words of the workspace, for results of `size` bytes.
    #[must_use]
    pub const fn workspace_len(self, size: usize) -> usize {
        FIRST_SLOT + self.chunks as usize * (size / 4)
    }
}
