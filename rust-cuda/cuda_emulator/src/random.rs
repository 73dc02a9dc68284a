//! Random orders: small, fast, and the same everywhere for the same seed.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// SplitMix64 (Steele, Lea, Flood 2014), by its state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator for stream number `stream` of `seed`.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut mixed = Self::new(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95));
        Self::new(mixed.next())
    }

    pub fn next(&mut self) -> u64 {
        let mut generator = SplitMix64::seed_from_u64(self.0);
        let number = generator.next_u64();
        self.0 = u64::from_le_bytes(generator.state());
        number
    }

    /// A number below `bound` (not zero); the bias of the method, bound/2⁶⁴, is
    /// of no consequence for orders.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// Puts `items` into a random order (Fisher and Yates).
    pub fn shuffle(&mut self, items: &mut [u32]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i as u32 + 1) as usize);
        }
    }
}

/// A random order of 0..n that is computed number by number, for grids of any
/// size: a Feistel network on the next even number of bits, walked until it
/// lands inside the range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub fn new(n: u64, seed: u64) -> Self {
        let mut random = Random::stream(seed, u64::MAX);
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self {
            n,
            half_bits: bits.div_ceil(2).max(1),
            keys: std::array::from_fn(|_| random.next()),
        }
    }

    /// The number at `position`, both below `n`.
    pub fn at(&self, position: u64) -> u64 {
        let mut value = position;
        loop {
            value = self.round_trip(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn round_trip(&self, value: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits & mask, value & mask);
        for key in self.keys {
            let mixed = Random::new(right ^ key).next() & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_hits_every_number_once() {
        for n in [1, 2, 3, 7, 64, 1000, 4097] {
            for seed in 0..5 {
                let permutation = Permutation::new(n, seed);
                let mut seen = vec![false; n as usize];
                for position in 0..n {
                    let value = permutation.at(position) as usize;
                    assert!(!seen[value], "n {n}, seed {seed}: {value} twice");
                    seen[value] = true;
                }
            }
        }
    }

    #[test]
    fn numbers_are_those_of_the_reference() {
        // By Vigna's program, http://prng.di.unimi.it/splitmix64.c.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        let mut random = Random::new(1_234_567);
        assert_eq!([random.next(), random.next()], expected);
    }

    #[test]
    fn seeds_give_different_orders() {
        let order = |seed| {
            let permutation = Permutation::new(100, seed);
            (0..100).map(|i| permutation.at(i)).collect::<Vec<_>>()
        };
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn shuffles_keep_the_items() {
        let mut items: Vec<u32> = (0..257).collect();
        Random::new(5).shuffle(&mut items);
        assert_ne!(items, (0..257).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..257).collect::<Vec<_>>());
    }
}
