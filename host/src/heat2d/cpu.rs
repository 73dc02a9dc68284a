//! The CPU port: computes several iterations in each pass over the plate, by bands of rows on all
//! cores.
//!
//! Written from the formula and not from the kernels, which are checked against it. The order of
//! operations is part of the definition: east and west, north and south, the sum of the two, the
//! source, and for a step in time two fused multiply-adds.
#![forbid(unsafe_code)]

use super::blocked::{Cut, KEPT, Setup, Temperature, iterate_rows};
use super::subnormals::{Outlook, normal_iterations};
use crate::caches::{first_cache, second_cache};
use crate::simd::subnormals_are_slow;
use crate::streaming::Stores;
use crate::trial::Trial;
use crate::{Error, allocation, threads};
use std::sync::{Mutex, PoisonError};

/// The least points of a pass, counted once per iteration, for another thread.
const POINTS_PER_THREAD: usize = 1 << 14;

/// The same for a band.
const POINTS_PER_BAND: usize = 1 << 15;

/// The usual passes. Their scratch fits in a core's second-level cache. A scratch in the first-level
/// cache makes rows shorter, and is slower.
const USUAL: Passes = Passes {
    depth: 8,
    scratch_bytes: 256 << 10,
};

/// Passes that may be faster if the scratch of the usual ones does not fit in the first-level cache.
const SHALLOW: Passes = Passes { depth: 4, ..USUAL };

/// Passes that may be faster over plates that are far away: fewer, in which more points are computed
/// twice.
const DEEP: Passes = Passes {
    depth: 16,
    scratch_bytes: 512 << 10,
};

/// Both plates together are far away if a thread's share of them has more bytes than this many
/// second-level caches.
const NEAR_CACHES: usize = 4;

/// Rows of a band per iteration after the first: enough that few rows are computed twice.
const ROWS_PER_DEPTH: usize = 16;

/// Bands of a pass for each thread: enough that a slow one does not delay the pass.
const BANDS_PER_THREAD: usize = 4;

/// The port for a type. It is compiled in this crate, and so as fast as this crate was built,
/// whatever the caller's build.
pub trait Port: Sized {
    /// What passes over such plates keep.
    fn kept(setup: Setup<'_, Self>) -> Result<Kept<Self>, Error>;

    /// Iterates the plate in `current` `iterations` times. Fixed points have their values in `next`
    /// too. Returns true if the result is in `next`, and false if it is in `current`.
    fn iterations<'p>(
        setup: Setup<'_, Self>,
        kept: &mut Kept<Self>,
        current: &'p mut [Self],
        next: &'p mut [Self],
        iterations: usize,
    ) -> Result<bool, Error>;

    /// One iteration from `old` into the points of `new` that are unknowns.
    fn iteration(setup: Setup<'_, Self>, old: &[Self], new: &mut [Self]);
}

macro_rules! port {
    ($number:ty) => {
        impl Port for $number {
            fn kept(setup: Setup<'_, Self>) -> Result<Kept<Self>, Error> {
                let mut kept = Kept::default();
                let plans = Plans::new(&setup, usize::MAX, Limits::default());
                kept.reserve(&plans, setup.shape().nx)?;
                Ok(kept)
            }

            fn iterations<'p>(
                setup: Setup<'_, Self>,
                kept: &mut Kept<Self>,
                current: &'p mut [Self],
                next: &'p mut [Self],
                iterations: usize,
            ) -> Result<bool, Error> {
                let plans = Plans::new(&setup, iterations, Limits::default());
                self::iterations(&setup, &plans, kept, [current, next], iterations)
            }

            fn iteration(setup: Setup<'_, Self>, old: &[Self], new: &mut [Self]) {
                let plan = Plan::new(&setup, 1, USUAL, Limits::default());
                pass(&setup, &plan, plan.cut, old, new, &[]);
            }
        }
    };
}

port!(f32);
port!(f64);

/// What passes keep for later ones.
#[derive(Debug)]
pub struct Kept<T> {
    /// A scratch for each thread, with any contents.
    scratches: Vec<Mutex<Vec<T>>>,
    /// Finds the faster passes.
    trial: Trial,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self {
            scratches: Vec::new(),
            trial: Trial::of_passes(),
        }
    }
}

impl<T: Temperature> Kept<T> {
    /// Makes the scratches as many and as long as plans need for plates `nx` wide.
    fn reserve(&mut self, plans: &Plans, nx: usize) -> Result<(), Error> {
        for plan in [&plans.usual].into_iter().chain(&plans.other) {
            let len = plan.cut.scratch(nx);
            for scratch in &mut self.scratches {
                let scratch = scratch.get_mut().unwrap_or_else(PoisonError::into_inner);
                if scratch.len() < len {
                    *scratch = allocation::zeroed(len)?;
                }
            }
            while self.scratches.len() < plan.threads {
                self.scratches.push(Mutex::new(allocation::zeroed(len)?));
            }
        }
        Ok(())
    }
}

/// The limits of passes of several iterations.
#[derive(Debug, Clone, Copy)]
struct Passes {
    /// The most iterations of a pass.
    depth: usize,
    /// Bytes of the scratch for the levels of a tile.
    scratch_bytes: usize,
}

/// What decides how passes are cut up.
#[derive(Debug, Clone, Copy)]
struct Limits {
    usual: Passes,
    shallow: Passes,
    deep: Passes,
    /// The most bytes of a scratch in the first-level cache.
    first_bytes: usize,
    /// Both plates together are far away if a thread's share of them has more bytes.
    near_bytes: usize,
    /// The most bytes of a thread's share of a plate that is read for its least number.
    read_bytes: usize,
    points_per_thread: usize,
    points_per_band: usize,
    subnormals_are_slow: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            usual: USUAL,
            shallow: SHALLOW,
            deep: DEEP,
            first_bytes: first_cache(),
            near_bytes: NEAR_CACHES * second_cache(),
            read_bytes: second_cache(),
            points_per_thread: POINTS_PER_THREAD,
            points_per_band: POINTS_PER_BAND,
            subnormals_are_slow: subnormals_are_slow(),
        }
    }
}

/// How iterations are done in passes.
#[derive(Debug, Clone, Copy)]
struct Plan {
    threads: usize,
    /// Rows of a band. A thread computes one at a time.
    rows: usize,
    /// That of the longest passes.
    cut: Cut,
}

impl Plan {
    fn new<T: Temperature>(
        setup: &Setup<'_, T>,
        iterations: usize,
        passes: Passes,
        limits: Limits,
    ) -> Self {
        let (rows, columns) = (setup.swept_rows().len(), setup.swept_columns().len());
        let points = rows * columns;
        let depth = iterations.clamp(1, passes.depth);
        let swept = points.saturating_mul(depth);
        let threads = threads::worth(swept, limits.points_per_thread);
        let worth_it = (swept / limits.points_per_band).max(threads);
        // The rows that two bands compute should be a small part.
        let tall = rows / (ROWS_PER_DEPTH * (depth - 1)).max(1);
        let bands = (threads * BANDS_PER_THREAD)
            .min(tall.max(threads))
            .min(worth_it)
            .clamp(1, rows);
        let bands = match threads {
            1 => 1,
            threads => threads::full_bands(threads, bands, 1),
        };
        let rows = rows.div_ceil(bands);
        let depth = if bands == 1 {
            depth
        } else {
            depth.min(1 + rows / 2)
        };
        // Tiles as wide as the scratch allows, in equal parts.
        let columns = if depth == 1 {
            columns
        } else {
            let widest = passes.scratch_bytes / (KEPT * (depth - 1) * size_of::<T>());
            let widest = widest.saturating_sub(2 * depth).max(4 * depth);
            columns.div_ceil(columns.div_ceil(widest))
        };
        Self {
            threads: threads.min(bands),
            rows,
            cut: Cut {
                depth,
                columns,
                streaming: false,
                avoids_subnormals: limits.subnormals_are_slow && setup.ratio.is_none(),
            },
        }
    }
}

/// How a number of iterations is done.
#[derive(Debug, Clone, Copy)]
struct Plans {
    usual: Plan,
    /// Passes to try.
    other: Option<Plan>,
    /// Whether plates are read to find out if numbers become subnormal.
    read: bool,
}

impl Plans {
    fn new<T: Temperature>(setup: &Setup<'_, T>, iterations: usize, limits: Limits) -> Self {
        let usual = Plan::new(setup, iterations, limits.usual, limits);
        let shape = setup.shape();
        let bytes = 2 * shape.nx * shape.ny * size_of::<T>() / usual.threads;
        let scratch_bytes = usual.cut.scratch(shape.nx) * size_of::<T>();
        let passes = if bytes > limits.near_bytes {
            Some(limits.deep)
        } else if scratch_bytes > limits.first_bytes {
            Some(limits.shallow)
        } else {
            None
        };
        let other = passes.map(|passes| Plan::new(setup, iterations, passes, limits));
        // Few iterations, or short bands, may allow one depth only.
        let other = other.filter(|other| other.cut.depth != usual.cut.depth);
        let read = bytes / 2 <= limits.read_bytes;
        Self { usual, other, read }
    }
}

/// [`Port::iterations`].
fn iterations<T: Temperature>(
    setup: &Setup<'_, T>,
    plans: &Plans,
    kept: &mut Kept<T>,
    [mut current, mut next]: [&mut [T]; 2],
    iterations: usize,
) -> Result<bool, Error> {
    kept.reserve(plans, setup.shape().nx)?;
    let Kept { scratches, trial } = kept;
    let mut passes = 0;
    let mut outlook = Outlook::of(if plans.read { iterations } else { 0 });
    let mut iterate = |plan: &Plan, iterations: usize| {
        let mut left = iterations;
        for passes_left in (1..=iterations.div_ceil(plan.cut.depth)).rev() {
            // Equal numbers, without a pass of few.
            let depth = left.div_ceil(passes_left);
            left -= depth;
            let read = || normal_iterations(setup, plan.threads, current);
            let cut = Cut {
                depth,
                avoids_subnormals: plan.cut.avoids_subnormals
                    && !outlook.is_normal_for(depth, read),
                ..plan.cut
            };
            pass(setup, plan, cut, current, next, scratches);
            std::mem::swap(&mut current, &mut next);
            passes += 1;
        }
    };
    let mut left = iterations;
    let usual = &plans.usual;
    if let Some(other) = &plans.other {
        // Either way, the iterations of the deeper pass.
        let unit = usual.cut.depth.max(other.cut.depth);
        while left >= unit {
            trial.run(|is_other| iterate(if is_other { other } else { usual }, unit));
            left -= unit;
        }
    }
    iterate(usual, left);
    Ok(passes % 2 == 1)
}

/// A pass, cut up as in a plan or less deep. There is a scratch for each thread if it is more than
/// one iteration.
fn pass<T: Temperature>(
    setup: &Setup<'_, T>,
    plan: &Plan,
    cut: Cut,
    old: &[T],
    new: &mut [T],
    scratches: &[Mutex<Vec<T>>],
) {
    let streaming = Stores::of_iterated(2 * size_of_val(new)) == Stores::Streaming;
    let cut = Cut { streaming, ..cut };
    let nx = setup.shape().nx;
    let rows = setup.swept_rows();
    let new = &mut new[rows.start * nx..rows.end * nx];
    let bands: Vec<_> = new.chunks_mut(plan.rows * nx).map(Mutex::new).collect();
    threads::share_with_scratch(plan.threads, bands.len(), scratches, |mine, scratch| {
        for band in mine {
            // Each is locked once.
            let mut new = bands[band].lock().unwrap_or_else(PoisonError::into_inner);
            let first = rows.start + band * plan.rows;
            iterate_rows(setup, &cut, first, old, &mut new, scratch);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::{Boundary, Grid2};
    use crate::test_cases;
    use crate::test_numbers::numbers;
    use crate::{Axis, Shape2};

    /// An iteration by definition, one point at a time.
    fn iterate_by_definition<T: Temperature>(setup: &Setup<'_, T>, old: &[T], new: &mut [T]) {
        let Shape2 { nx, ny } = setup.shape();
        for j in setup.swept_rows() {
            for i in setup.swept_columns() {
                let at = |i: usize, j: usize| old[j * nx + i];
                let east = at(if i == nx - 1 { nx - 2 } else { i + 1 }, j);
                let west = at(if i == 0 { 1 } else { i - 1 }, j);
                let north = at(i, if j == ny - 1 { ny - 2 } else { j + 1 });
                let south = at(i, if j == 0 { 1 } else { j - 1 });
                let mut sum = (east + west) + (north + south);
                if let Some(source) = setup.source {
                    sum = sum + source[j * nx + i];
                }
                let here = at(i, j);
                new[j * nx + i] = match setup.ratio {
                    None => sum * T::from(0.25),
                    Some(ratio) => here.fused(T::from(-4.0), sum).fused(ratio, here),
                };
            }
        }
    }

    /// Iterations of a plate with passes that are cut up as `limits` say, and by definition.
    fn check<T: Temperature + std::fmt::Debug>(
        next: &mut impl FnMut() -> usize,
        bits: u32,
        (nx, ny): (usize, usize),
        iterations: usize,
        limits: Limits,
    ) {
        // Also numbers whose means are subnormal in f32.
        let is_small = bits >> 6 & 1 == 1;
        let mut number = || match is_small {
            true => T::from((next() % 64) as f32 * f32::from_bits(1)),
            false => T::from(next() as f32) * T::from(1.0 / 3.0),
        };
        let mut field = || -> Vec<T> { (0..nx * ny).map(|_| number()).collect() };
        let (initial, source) = (field(), field());
        let end = |bit: u32| match bits >> bit & 1 {
            0 => Boundary::DirichletOnPoint,
            _ => Boundary::Neumann,
        };
        let grid = Grid2::new(Shape2::new(nx, ny), [1.0; 2]).unwrap();
        let grid = grid.with_ends(Axis::X, [end(0), end(1)]).unwrap();
        let setup = Setup {
            grid: grid.with_ends(Axis::Y, [end(2), end(3)]).unwrap(),
            source: Some(&source[..]).filter(|_| bits >> 4 & 1 == 1),
            ratio: (bits >> 5 & 1 == 1).then(|| T::from(0.2)),
        };
        let (mut old, mut new) = (initial.clone(), initial.clone());
        for _ in 0..iterations {
            iterate_by_definition(&setup, &old, &mut new);
            std::mem::swap(&mut old, &mut new);
        }
        let expected = old;

        let (mut current, mut next) = (initial.clone(), initial);
        let mut kept = Kept::default();
        let plans = Plans::new(&setup, iterations, limits);
        let plates = [&mut current[..], &mut next[..]];
        let in_next = super::iterations(&setup, &plans, &mut kept, plates, iterations).unwrap();
        let got = if in_next { next } else { current };
        let wrong = (0..nx * ny)
            .find(|&at| bytemuck::bytes_of(&got[at]) != bytemuck::bytes_of(&expected[at]));
        assert_eq!(
            wrong.map(|at| (at % nx, at / nx)),
            None,
            "{setup:?}, {iterations} iterations, {limits:?}"
        );
    }

    #[test]
    fn passes_give_the_bits_of_single_iterations_however_they_are_cut_up() {
        let mut next = numbers();
        for case in 0..test_cases::either(300, 2000) {
            let mut below = |most: usize| next() % most;
            let shape = (3 + below(60), 3 + below(40));
            let passes = [(); 3].map(|()| Passes {
                depth: 1 + below(10),
                scratch_bytes: below(8000),
            });
            let limits = Limits {
                usual: passes[0],
                shallow: passes[1],
                deep: passes[2],
                first_bytes: below(1 << 13),
                near_bytes: below(1 << 15),
                read_bytes: below(1 << 13),
                points_per_thread: 1 << 10,
                points_per_band: 1 + below(2000),
                subnormals_are_slow: below(2) == 0,
            };
            let iterations = [0, 1, 2, 3, 5, 7, 11, 13, 23, 31][below(10)];
            let bits = below(128) as u32;
            if case % 2 == 0 {
                check::<f32>(&mut next, bits, shape, iterations, limits);
            } else {
                check::<f64>(&mut next, bits, shape, iterations, limits);
            }
        }
    }

    #[test]
    fn large_plates_have_bands_and_tiles_and_are_written_past_the_caches() {
        let limits = Limits::default();
        let setup = Setup {
            grid: Grid2::new(Shape2::new(3543, 701), [1.0; 2])
                .and_then(|grid| grid.with_boundaries(Boundary::DirichletOnPoint))
                .unwrap(),
            source: None::<&[f32]>,
            ratio: None,
        };
        let plan = Plan::new(&setup, 9, limits.usual, limits);
        assert!(plan.cut.depth > 1 && plan.cut.columns < 3541, "{plan:?}");
        let mut next = numbers();
        for &bits in test_cases::either(&[22][..], &[0, 22, 32]) {
            let iterations = test_cases::either(4, 9);
            check::<f32>(&mut next, bits, (3543, 701), iterations, limits);
            check::<f64>(&mut next, bits, (3543, 701), 2, limits);
            check::<f64>(&mut next, bits, (3543, 701), 1, limits);
        }
    }
}
