//! Chooses the blocks and threads to watch, and how closely: a watched access costs about ten
//! thousand times as much as another.

use crate::config::{LaunchConfig, WARP_SIZE};
use crate::random::Random;

/// The largest numbers of watched blocks, and of watched threads per block.
const BLOCKS: u64 = 4;
const THREADS: usize = 64;

/// The number of watched threads of a larger block. They run separately: memory is closed and
/// opened as a whole before and after each turn.
const OF_LARGE: usize = 48;

/// The largest number of blocks that a watched launch runs.
const BLOCKS_RUN: u64 = 64;

/// The number of a turn's accesses that are recorded in any case; else a turn
/// may take `1 / TURN_PART` of what is left of its block's share.
const TURN_MIN: usize = 16;
const TURN_PART: usize = 16;

/// The number of a launch's accesses that are recorded in any case.
const LAUNCH_MIN: usize = 64;

pub(super) struct Sample {
    /// The blocks that run: the first ones.
    pub run: u64,
    /// The numbers of the watched blocks.
    pub blocks: Vec<u64>,
    /// Whether each thread of a block is watched.
    pub threads: Vec<bool>,
    /// Whether some blocks or threads are not watched.
    pub partial: bool,
}

impl Sample {
    pub fn new(config: &LaunchConfig) -> Self {
        let [width, height, depth] = config.grid.map(u64::from);
        let all = width * height * depth;
        // The first blocks, and in a grid of two dimensions one below the
        // first.
        let below = (height > 1 && (BLOCKS..BLOCKS_RUN).contains(&width)).then_some(width);
        let mut blocks: Vec<u64> = (0..all.min(BLOCKS)).collect();
        if let Some(below) = below {
            blocks.pop();
            blocks.push(below);
        }
        let threads = threads(config.block.iter().product());
        Self {
            run: blocks.last().map_or(0, |last| last + 1),
            partial: (blocks.len() as u64) < all || threads.contains(&false),
            blocks,
            threads,
        }
    }
}

/// All threads of a small block. Of a large one: the first warp, some of the
/// second, the last thread, and others at random. Some of the pairs that a
/// mistake concerns are then among them, whatever their distance.
fn threads(count: u32) -> Vec<bool> {
    let mut watched = vec![false; count as usize];
    if watched.len() <= THREADS {
        watched.fill(true);
        return watched;
    }
    let near = WARP_SIZE as usize + 4;
    watched[..near].fill(true);
    if let Some(last) = watched.last_mut() {
        *last = true;
    }
    let mut others: Vec<u32> = (near as u32..count - 1).collect();
    Random::new(1).shuffle(&mut others);
    for other in others.into_iter().take(OF_LARGE - near - 1) {
        watched[other as usize] = true;
    }
    watched
}

/// The number of accesses that a turn may record when its block may record
/// `left` more.
pub(super) fn of_turn(left: usize) -> usize {
    (left / TURN_PART).max(TURN_MIN).min(left)
}

/// The largest number of accesses recorded of a launch, after `before` launches
/// of the same kind; `most` is the limit of the first.
pub(super) fn of_launch(most: usize, before: u32) -> usize {
    let less = most.checked_shr(before.saturating_mul(3)).unwrap_or(0);
    less.max(LAUNCH_MIN).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_launches_are_watched_whole_and_large_ones_in_part() {
        let config = |grid, block| LaunchConfig {
            kernel: "kernel",
            grid,
            block,
            dynamic_shared_bytes: 0,
        };
        let small = config([2, 2, 1], [8, 8, 1]);
        let sample = Sample::new(&small);
        assert_eq!((sample.run, sample.blocks.len()), (4, 4));
        assert!(!sample.partial);
        let large = config([20, 100, 1], [32, 32, 1]);
        let sample = Sample::new(&large);
        assert_eq!(sample.run, 21);
        assert_eq!(sample.blocks.len(), BLOCKS as usize);
        let watched = sample.threads.iter().filter(|&&watched| watched).count();
        assert_eq!(watched, OF_LARGE);
        assert!(sample.threads[1023] && sample.partial);
    }
}
