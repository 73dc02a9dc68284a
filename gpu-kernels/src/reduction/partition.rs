//! How the array of a single-pass reduction is cut: its tree, told in numbers.
//!
//! [`single_pass`](super::single_pass) says what tiles, lanes and chunks are.

/// Threads of a block.
pub const THREADS: u32 = 512;

/// Tiles that a single block takes without help.
pub const ALONE: usize = 8;

/// 32-bit words of a vector: what one load brings.
pub(super) const VECTOR_WORDS: usize = 4;

/// The words before the first slot: the ticket, and nothing else in the piece of
/// memory that caches handle as one.
pub(super) const FIRST_SLOT: usize = 16;

/// How an array is cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Elements of a tile.
    lanes: usize,
    /// Tiles of a chunk.
    tiles: u32,
    /// Chunks.
    chunks: u32,
}

impl Partition {
    /// That of `n` elements of `size` bytes, 4 or 8.
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
    /// Another tree than [`of`](Self::of) gives; tests take it to come to sizes that
    /// would else need gigabytes.
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

    /// Tiles of a chunk, the last one perhaps excepted.
    #[must_use]
    pub const fn tiles(self) -> u32 {
        self.tiles
    }

    /// Elements of a chunk, the last one perhaps excepted.
    #[must_use]
    pub const fn span(self) -> usize {
        self.lanes * self.tiles as usize
    }

    /// How many chunks there are.
    #[must_use]
    pub const fn chunks(self) -> u32 {
        self.chunks
    }

    /// The most combinations that change an element's value, or what became of it.
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
