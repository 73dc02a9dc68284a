//! How [`register_tile`](super::register_tile) and [`symmetric`](super::symmetric) divide their
//! sums into parts, and the rows that [`sum`](super::sum) then adds. The grid, the kernels'
//! arguments and the length of the arrays all follow from these types.

use super::tiles::{REGISTER_BLOCK, REGISTER_BODIES, SYMMETRIC_GROUP, SYMMETRIC_TILES};
use crate::registry::Problem;
use core::ops::Range;

/// The most blocks of a grid along y.
const MAX_PARTS: usize = 65_535;

/// How the sums of [`register_tile`](super::register_tile) are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileParts {
    n: usize,
    per_part: u32,
    parts: u32,
}

impl TileParts {
    /// Divides the sums over `n` bodies, 1 to 2³¹, into at most `wanted` parts.
    #[must_use]
    pub fn new(n: usize, wanted: usize) -> Self {
        let tile = REGISTER_BLOCK as usize;
        let tiles = n.div_ceil(tile);
        // equivalent mutant (literal): one tile in two parts leaves the second part empty
        let most = tiles.clamp(1, MAX_PARTS);
        let parts = wanted.clamp(1, most);
        let per_part = tiles.div_ceil(parts) * tile;
        // At most 2^31 and a tile.
        Self {
            n,
            per_part: per_part as u32,
            parts: n.div_ceil(per_part) as u32,
        }
    }

    /// The number of blocks that compute a part.
    #[must_use]
    pub const fn blocks(n: usize) -> usize {
        n.div_ceil(REGISTER_BLOCK as usize * REGISTER_BODIES)
    }

    /// The number of bodies.
    #[must_use]
    pub const fn n(self) -> usize {
        self.n
    }

    /// The bodies that a part sums over; the last may have fewer.
    #[must_use]
    pub const fn per_part(self) -> u32 {
        self.per_part
    }

    /// The number of parts.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.parts
    }

    /// The bodies of these parts; parts beyond the last have none.
    #[must_use]
    pub fn bodies_of(self, parts: Range<u32>) -> Range<usize> {
        let bound = |part: u32| self.n.min(part as usize * self.per_part as usize);
        bound(parts.start)..bound(parts.end)
    }

    /// The launch that computes all sums.
    #[must_use]
    pub fn all(self) -> Tiles {
        // equivalent mutant (range-end): a part after the last one is ignored
        self.for_own(0..self.parts, 0..self.parts)
    }

    /// The launch that sums, for the bodies of the parts `own`, over the parts `these`. Those are
    /// counted from the first own part on; part 0 follows the last part.
    #[must_use]
    pub fn for_own(self, own: Range<u32>, these: Range<u32>) -> Tiles {
        let targets = self.bodies_of(own.clone());
        let end = these.end.min(self.parts);
        Tiles {
            parts: self,
            first_target: targets.start as u32,
            targets: targets.len() as u32,
            first: (own.start % self.parts + these.start.min(end)) % self.parts,
            count: end.saturating_sub(these.start),
        }
    }

    /// The number of the parts `own` that the first of two launches sums over, if the second sums
    /// over all other parts: the largest for which both together take the fewest waves of blocks.
    /// The device holds `at_once` blocks.
    #[must_use]
    pub fn ahead(self, own: Range<u32>, at_once: usize) -> u32 {
        let blocks = Self::blocks(self.bodies_of(own.clone()).len());
        let waves = |parts: u32| (parts as usize * blocks).div_ceil(at_once.max(1));
        let all = own.end.min(self.parts).saturating_sub(own.start);
        let of_both = |&ahead: &u32| waves(ahead) + waves(self.parts - ahead);
        (1..=all).rev().min_by_key(of_both).unwrap_or(all)
    }
}

/// A launch of [`register_tile`](super::register_tile): the sums for some of the bodies, over some
/// of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiles {
    parts: TileParts,
    first_target: u32,
    targets: u32,
    /// The first part; the last is followed by part 0.
    first: u32,
    count: u32,
}

impl Tiles {
    /// The parts of all sums.
    #[must_use]
    pub const fn parts(self) -> TileParts {
        self.parts
    }

    /// The first body whose sums are computed, and the number of these bodies.
    #[must_use]
    pub const fn targets(self) -> [u32; 2] {
        [self.first_target, self.targets]
    }

    /// The first part; the others follow, and part 0 follows the last.
    #[must_use]
    pub const fn first_part(self) -> u32 {
        self.first
    }

    /// The problem that determines the geometry.
    #[must_use]
    pub const fn problem(self) -> Problem {
        Problem::plane(self.targets as usize, self.count as usize)
    }

    /// The rows that `sum` must add when all parts have been computed.
    #[must_use]
    pub const fn rows(self) -> Rows {
        Rows {
            n: self.targets as usize,
            parts: self.parts.parts,
            reactions: 0,
            half_of_last: false,
            add: false,
        }
    }
}

/// The number of groups of [`symmetric`](super::symmetric), for at most 2³¹ bodies.
#[must_use]
pub const fn groups(n: usize) -> u32 {
    n.div_ceil(SYMMETRIC_GROUP as usize) as u32
}

/// The number of distances between groups of `n` bodies, including distance 0 of a group from
/// itself.
#[must_use]
pub const fn distances(n: usize) -> u32 {
    groups(n) / 2 + 1
}

/// A launch of [`symmetric`](super::symmetric): some distances between groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    n: usize,
    first: u32,
    end: u32,
    per_part: u32,
}

impl Round {
    /// The rounds over `n` bodies, 1 to 2³¹, each of at most `distances` distances in at most
    /// `parts` parts. The first round has the most of both.
    pub fn all(n: usize, distances: u32, parts: u32) -> impl Iterator<Item = Self> {
        let all = self::distances(n);
        let distances = distances.clamp(1, all);
        let tiles = distances * SYMMETRIC_TILES;
        let per_part = tiles.div_ceil(parts.clamp(1, tiles.min(MAX_PARTS as u32)));
        (0..all.div_ceil(distances)).map(move |round| {
            let first = round * distances;
            Self {
                n,
                first,
                end: (first + distances).min(all),
                per_part,
            }
        })
    }

    /// The number of bodies.
    #[must_use]
    pub const fn n(self) -> usize {
        self.n
    }

    /// The first tile, and the tile after the last.
    #[must_use]
    pub const fn tiles(self) -> [u32; 2] {
        [self.first * SYMMETRIC_TILES, self.end * SYMMETRIC_TILES]
    }

    /// The tiles that a part sums over; the last may have fewer.
    #[must_use]
    pub const fn per_part(self) -> u32 {
        self.per_part
    }

    /// The number of rows of `n` sums that the launch writes.
    #[must_use]
    pub const fn parts(self) -> u32 {
        let [first, end] = self.tiles();
        (end - first).div_ceil(self.per_part)
    }

    /// The number of rows of `n` reactions that the launch writes: one for each distance but 0.
    #[must_use]
    pub const fn reactions(self) -> u32 {
        self.end - if self.first == 0 { 1 } else { self.first }
    }

    /// The problem that determines the geometry.
    #[must_use]
    pub const fn problem(self) -> Problem {
        Problem::plane(self.n, self.parts() as usize)
    }

    /// The rows that `sum` must add, in later rounds to the result of the earlier ones.
    #[must_use]
    pub const fn rows(self) -> Rows {
        let opposite = groups(self.n).is_multiple_of(2) && self.end == distances(self.n);
        Rows {
            n: self.n,
            parts: self.parts(),
            reactions: self.reactions(),
            half_of_last: opposite && self.reactions() > 0,
            add: self.first > 0,
        }
    }
}

/// A launch of [`sum`](super::sum).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    n: usize,
    parts: u32,
    reactions: u32,
    half_of_last: bool,
    add: bool,
}

impl Rows {
    /// The number of bodies.
    #[must_use]
    pub const fn n(self) -> usize {
        self.n
    }

    /// The number of rows that are added.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.parts
    }

    /// The number of rows that are subtracted.
    #[must_use]
    pub const fn reactions(self) -> u32 {
        self.reactions
    }

    /// Whether the last row of reactions is unused for the first half of the groups.
    #[must_use]
    pub const fn half_of_last(self) -> bool {
        self.half_of_last
    }

    /// Whether the sum is added to an earlier result.
    #[must_use]
    pub const fn add(self) -> bool {
        self.add
    }

    /// The problem that determines geometry and cost.
    #[must_use]
    pub const fn problem(self) -> Problem {
        Problem::plane(self.n, self.parts as usize + self.reactions as usize)
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn tiles_are_whole_and_dealt_out_evenly() {
        let tile = REGISTER_BLOCK as usize;
        for n in [1, 127, 128, 129, 1000, 5000, 100_003, 20_000_000] {
            for wanted in [0, 1, 2, 3, 64, 1000, usize::MAX] {
                let launch = TileParts::new(n, wanted);
                let (per_part, parts) = (launch.per_part() as usize, launch.parts() as usize);
                let most = wanted.clamp(1, MAX_PARTS);
                assert!(
                    (1..=most).contains(&parts),
                    "{n} in {wanted}: {parts} parts"
                );
                assert!((parts - 1) * per_part < n && n <= parts * per_part);
                // With one tile less per part there would be too many parts, or empty ones.
                assert!(per_part.is_multiple_of(tile));
                assert!(per_part == tile || most * (per_part - tile) < n);
            }
        }
    }

    #[test]
    fn two_launches_for_own_bodies_have_all_parts() {
        for n in [1, 128, 1000, 5000] {
            let parts = TileParts::new(n, 7);
            let all = parts.parts();
            for start in 0..all {
                for end in start + 1..=all {
                    for ahead in 1..=all {
                        let launches = [0..ahead, ahead..all];
                        let launches = launches.map(|these| parts.for_own(start..end, these));
                        let mut next = start;
                        for (tiles, count) in launches.into_iter().zip([ahead, all - ahead]) {
                            assert_eq!(tiles.first_part(), next);
                            next = (next + count) % all;
                            let own = parts.bodies_of(start..end);
                            let [first, targets] = tiles.targets().map(|it| it as usize);
                            assert_eq!(first..first + targets, own);
                            let launched = Problem::plane(targets, count as usize);
                            assert_eq!(tiles.problem(), launched);
                            assert_eq!((tiles.rows().n(), tiles.rows().parts()), (targets, all));
                        }
                        assert_eq!(next, start);
                    }
                }
            }
            assert_eq!(parts.all(), parts.for_own(0..all, 0..all));
            assert_eq!(parts.all().problem(), Problem::plane(n, all as usize));
        }
    }

    #[test]
    fn the_first_launch_fills_its_waves() {
        // Each part has 512 blocks, and the device holds 660. The launches take 11 and 14 waves; with
        // all own parts in the first launch they would take 13 and 13.
        let parts = TileParts::new(524_288, 32);
        assert_eq!(parts.ahead(0..16, 660), 14);
        // Each part has one block.
        assert_eq!(TileParts::new(1024, 8).ahead(2..4, 1), 2);
        assert_eq!(TileParts::new(1024, 8).ahead(0..3, 1), 3);
        assert_eq!(TileParts::new(1024, 8).ahead(2..4, 3), 2);
        assert_eq!(TileParts::new(1024, 8).ahead(0..4, 3), 3);
        assert_eq!(TileParts::new(1024, 8).ahead(7..8, 1000), 1);
        assert_eq!(TileParts::new(1024, 8).ahead(0..8, 1000), 8);
        // Each part has four blocks. With one part in the first launch the launches take one wave and
        // four, with two parts they take two and four.
        assert_eq!(TileParts::new(8192, 8).ahead(0..2, 7), 1);
    }

    #[test]
    fn rounds_have_all_distances_in_at_most_the_parts_that_were_asked_for() {
        for n in [1, 511, 2048, 5000, 100_003, 20_000_000] {
            let all = distances(n);
            for most in [1, 2, 3, 7, u32::MAX] {
                for parts in [1, 2, 5, 64, u32::MAX] {
                    let rounds: Vec<Round> = Round::all(n, most, parts).collect();
                    let mut next = 0;
                    for round in &rounds {
                        let [first, end] = round.tiles();
                        assert_eq!(first, next);
                        assert!(end > first && end - first <= most.min(all) * SYMMETRIC_TILES);
                        assert!((1..=parts).contains(&round.parts()));
                        // No part is empty.
                        assert!((round.parts() - 1) * round.per_part() < end - first);
                        next = end;
                    }
                    assert_eq!(next, all * SYMMETRIC_TILES);
                    let first = &rounds[0];
                    assert!(rounds.iter().all(|round| round.parts() <= first.parts()
                        && round.end - round.first <= first.end - first.first));
                    let tiles = most.min(all) * SYMMETRIC_TILES;
                    let wanted = tiles.div_ceil(parts.min(tiles).min(MAX_PARTS as u32));
                    assert_eq!(first.per_part(), wanted);
                }
            }
        }
    }
}
