//! The sizes of the kernels' blocks and tiles.

/// Interactions per iteration of the inner loop of [`shared`](super::shared).
pub const SHARED_UNROLL: usize = 16;

/// Threads of a block of [`register_tile`](super::register_tile), and bodies of its tile.
pub const REGISTER_BLOCK: u32 = 128;

/// Bodies per thread of [`register_tile`](super::register_tile).
pub const REGISTER_BODIES: usize = 4;

/// Threads of a block of [`symmetric`](super::symmetric).
pub const SYMMETRIC_BLOCK: u32 = 128;

/// Bodies per thread of [`symmetric`](super::symmetric).
pub const SYMMETRIC_BODIES: usize = 4;

/// Bodies that a block of [`symmetric`](super::symmetric) holds in its registers.
pub const SYMMETRIC_GROUP: u32 = SYMMETRIC_BLOCK * SYMMETRIC_BODIES as u32;

/// Bodies of a tile of [`symmetric`](super::symmetric): one for each thread to load.
pub const SYMMETRIC_TILE: u32 = SYMMETRIC_BLOCK;

/// Tiles of [`symmetric`](super::symmetric) in a group.
pub const SYMMETRIC_TILES: u32 = SYMMETRIC_GROUP / SYMMETRIC_TILE;
