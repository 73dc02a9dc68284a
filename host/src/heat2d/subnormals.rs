//! Finds out for how many of Jacobi's iterations no number is subnormal, so that they need no tests.
//!
//! A normal number with p digits and exponent e is a multiple of 2^(e - p + 1). A sum of multiples of
//! a power of two is one too, also after rounding, and a quarter of it is a multiple of a quarter of
//! that power. So if all numbers but zeros have at least the size 2^e, then after k iterations all but
//! zeros have at least the size 2^(e - p + 1 - 2k), however much they cancel.
#![forbid(unsafe_code)]

use super::blocked::{Setup, Temperature};
use crate::simd::vectorised;
use crate::threads;
use std::sync::atomic::{AtomicU32, Ordering};

/// A plate is read again after at least this many iterations. Each takes some ten times as long.
const INTERVAL: usize = 32;

/// Elements of a piece, which one thread reads.
const PIECE: usize = 1 << 12;

/// What is known about the next iterations of a plate.
#[derive(Debug)]
pub(super) struct Outlook {
    /// The number of iterations, from now on, that are known to have no subnormal number.
    normal: usize,
    /// The number of iterations before the plate may be read again.
    wait: usize,
}

impl Outlook {
    /// The outlook before this number of iterations. If they are few, the plate is never read.
    pub(super) const fn of(iterations: usize) -> Self {
        Self {
            normal: 0,
            wait: if iterations < INTERVAL { usize::MAX } else { 0 },
        }
    }

    /// Whether the next `depth` iterations have no subnormal number. `read` reads the plate and
    /// returns the number of iterations that have none; it is called now and then.
    pub(super) fn is_normal_for(&mut self, depth: usize, read: impl FnOnce() -> usize) -> bool {
        if self.normal < depth && self.wait == 0 {
            (self.normal, self.wait) = (read(), INTERVAL);
        }
        let is_normal = depth <= self.normal;
        self.normal = self.normal.saturating_sub(depth);
        self.wait = self.wait.saturating_sub(depth);
        is_normal
    }
}

/// Reads a plate and its source, on at most `threads` threads. Returns a number of iterations that
/// have no subnormal number.
pub(super) fn normal_iterations<T: Temperature>(
    setup: &Setup<'_, T>,
    threads: usize,
    plate: &[T],
) -> usize {
    let least = AtomicU32::new(u32::MAX);
    for numbers in [plate, setup.source.unwrap_or_default()] {
        threads::share(threads, numbers.len().div_ceil(PIECE), |mine| {
            for piece in mine {
                let first = piece * PIECE;
                let numbers = &numbers[first..numbers.len().min(first + PIECE)];
                let exponent = vectorised(
                    #[inline(always)]
                    || T::least_exponent(numbers),
                );
                least.fetch_min(exponent, Ordering::Relaxed);
            }
        });
    }
    // The exponent of the least normal number is 1.
    (least.into_inner().saturating_sub(T::PRECISION) / 2) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shape2;
    use crate::grid::{Boundary, Grid2};
    use crate::heat2d::cpu::Port;
    use crate::test_numbers::numbers;

    /// Iterates a plate of numbers whose exponents are `least` or a little more. Returns the number of
    /// iterations that were foreseen to have no subnormal number, and the number until there was one.
    fn iterations<T: Temperature + Port>(
        least: i32,
        source: bool,
        is_subnormal: fn(T) -> bool,
        power: fn(i32) -> T,
    ) -> [usize; 2] {
        let mut next = numbers();
        let shape = Shape2::new(19, 13);
        // Numbers of few digits often cancel.
        let mut field = || -> Vec<T> {
            let mut number = || {
                let size = power(least + (next() % 3) as i32);
                match next() % 5 {
                    0 => T::from(0.0),
                    1 | 2 => -size,
                    _ => size + size * T::from((next() % 2) as f32 * f32::EPSILON),
                }
            };
            (0..19 * 13).map(|_| number()).collect()
        };
        let (mut old, of_source) = (field(), field());
        let mut new = old.clone();
        let grid = Grid2::new(shape, [1.0; 2]).unwrap();
        let setup = Setup {
            grid: grid.with_boundaries(Boundary::DirichletOnPoint).unwrap(),
            source: source.then_some(&of_source[..]),
            ratio: None,
        };
        let foreseen = normal_iterations(&setup, 1, &old);
        let mut seen = 0;
        while !old.iter().copied().any(is_subnormal) && seen < 2000 {
            Port::iteration(setup, &old, &mut new);
            std::mem::swap(&mut old, &mut new);
            seen += 1;
        }
        [foreseen, seen]
    }

    #[test]
    fn no_number_is_subnormal_in_the_iterations_that_are_foreseen() {
        for source in [false, true] {
            for least in [-126, -103, -102, -101, -100, -80, -20, 0, 100] {
                let [foreseen, seen] =
                    iterations(least, source, f32::is_subnormal, |e| 2.0_f32.powi(e));
                assert_eq!(foreseen, (least + 103).max(0) as usize / 2);
                // `seen` counts the iteration with the first subnormal number too.
                assert!(foreseen < seen, "2^{least}: {foreseen}, {seen}");
            }
            for least in [-1022, -970, -969, -960, -900, -800] {
                let [foreseen, seen] =
                    iterations(least, source, f64::is_subnormal, |e| 2.0_f64.powi(e));
                assert_eq!(foreseen, (least + 970).max(0) as usize / 2);
                assert!(foreseen < seen, "2^{least}: {foreseen}, {seen}");
            }
        }
    }

    #[test]
    fn numbers_that_are_zero_infinite_or_no_numbers_do_not_count() {
        let shape = Shape2::new(3, 3);
        let of = |plate: &[f64]| {
            let setup = Setup {
                grid: Grid2::new(shape, [1.0; 2]).unwrap(),
                source: None,
                ratio: None,
            };
            normal_iterations(&setup, 1, plate)
        };
        let mut plate = [0.0; 9];
        assert!(of(&plate) > 1_000_000);
        plate[1..5].copy_from_slice(&[-0.0, f64::INFINITY, f64::NAN, -1.0]);
        assert_eq!(of(&plate), 970 / 2);
        plate[7] = -f64::from_bits(1);
        assert_eq!(of(&plate), 0);
    }

    #[test]
    fn plates_are_read_now_and_then() {
        let mut reads = 0;
        let mut run = |iterations: usize, normal: usize| {
            let mut outlook = Outlook::of(iterations);
            reads = 0;
            let passes = (0..iterations / 8).filter(|_| {
                outlook.is_normal_for(8, || {
                    reads += 1;
                    normal
                })
            });
            (passes.count(), reads)
        };
        assert_eq!(run(24, 100), (0, 0));
        assert_eq!(run(96, 1000), (12, 1));
        assert_eq!(run(96, 0), (0, 3));
        assert_eq!(run(96, 15), (3, 3));
        assert_eq!(run(96, 40), (12, 3));
    }
}
