//! Launches a kernel several times under different conditions and compares the results.

use std::io;
use std::sync::Arc;

use crate::config::{Blocks, LaunchConfig, Options, Poison, Report, ThreadOrder};
use crate::diagnosis::{Diagnosis, Difference};
use crate::here::HERE;
use crate::launch::{self, launch_in_turn};
use crate::memory::{DeviceMemory, Turn, canary_word};
use crate::race::{Trace, first_race};
use crate::record::Record;
use crate::region::Region;
use crate::sys;

/// The options of [`verify`](fn@crate::verify).
///
/// ```
/// use cuda_emulator::{Compare, Verify};
///
/// let verify = Verify::default().compare("energy", Compare::F32 { absolute: 0.0, relative: 1e-5 });
/// # let _ = verify;
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verify {
    /// The options of every run; order and poison are replaced.
    pub options: Options,
    /// The orders to run; results must be the same in all. Default: forward,
    /// reverse and two random ones.
    pub orders: Vec<ThreadOrder>,
    /// Contents of unwritten shared memory; results must be the same with all of them.
    /// Default: NaN, a large negative and a large positive number, and zero.
    pub poisons: Vec<Poison>,
    /// How to compare buffers, by their labels. All others are compared
    /// exactly.
    pub comparisons: Vec<(String, Compare)>,
    /// Addresses ([`Allocation::addr`](crate::Allocation::addr)) of the buffers to
    /// restore between runs and to compare. `None`: all live ones of the memory.
    pub buffers: Option<Vec<u64>>,
    /// The number of accesses to memory that are watched for data races, in a
    /// separate run: those of some threads of the first blocks. Each costs some
    /// microseconds. The first launch of a kernel with its geometry on a memory
    /// watches all of them; each further one an eighth of the previous number,
    /// and at least 64. Default 1024; with zero there is no such run.
    pub watched_accesses: usize,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            options: Options::default(),
            orders: vec![
                ThreadOrder::Forward,
                ThreadOrder::Reverse,
                ThreadOrder::Random(1),
                ThreadOrder::Random(2),
            ],
            poisons: vec![
                Poison::Nan,
                Poison::Negative,
                Poison::Positive,
                Poison::Zero,
            ],
            comparisons: Vec::new(),
            buffers: None,
            watched_accesses: 1024,
        }
    }
}

impl Verify {
    /// Compares buffers labelled `label` by `how`.
    #[must_use]
    pub fn compare(mut self, label: &str, how: Compare) -> Self {
        self.comparisons.push((label.to_owned(), how));
        self
    }
}

/// How two runs' contents of a buffer are compared.
///
/// Sums of floats by atomics legitimately depend on the order; their buffers need
/// a tolerance. Elements `a` and `b` are equal if their bits are, or if
/// |a - b| ≤ absolute + relative · max(|a|, |b|).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Compare {
    /// Bit for bit.
    #[default]
    Exact,
    /// As `f32`, with a tolerance.
    F32 {
        /// Absolute tolerance.
        absolute: f32,
        /// Relative tolerance.
        relative: f32,
    },
    /// As `f64`, with a tolerance.
    F64 {
        /// Absolute tolerance.
        absolute: f64,
        /// Relative tolerance.
        relative: f64,
    },
    /// Not at all: scratch memory, lists whose order does not matter.
    Ignore,
}

/// Launches the kernel once watched, once for every order and once for every poison,
/// each time from the same contents of the buffers, and compares the results.
///
/// Finds what a single launch cannot: data races ([`Diagnosis::DataRace`]; without debug
/// information [`Diagnosis::PossibleDataRace`]), in a run that watches the accesses of
/// some threads; results that depend on the order of threads or blocks
/// ([`Diagnosis::OrderDependent`]) and on memory that was never written
/// ([`Diagnosis::UninitialisedRead`]). The last two are found by value: what never
/// reaches a buffer is not found. Any other diagnosis of any of the runs is returned as
/// it is.
///
/// `thread` is run several times; it should affect only buffers. Afterwards the
/// buffers hold the results of the first run, so that the effect is that of one
/// launch.
///
/// Other launches on this memory, and the host's copies to and from it, wait until
/// it has ended.
///
/// # Errors
///
/// See [`Diagnosis`]. Afterwards the contents of buffers are not defined.
///
/// # Safety
///
/// As for [`launch`](fn@crate::launch). And unless [`Verify::buffers`] names the buffers, nothing
/// else accesses any buffer of `memory` meanwhile by its address; copies by
/// [`Allocation`](crate::Allocation)'s methods may be made at any time.
pub unsafe fn verify(
    config: &LaunchConfig,
    how: &Verify,
    memory: &DeviceMemory,
    thread: &(dyn Fn() + Sync),
) -> Result<Report, Diagnosis> {
    launch::check(config, &how.options)?;
    let turn = memory.turn();
    let _alone = memory.alone();
    let first_order = how.orders.first().copied().unwrap_or_default();
    let first_poison = how.poisons.first().copied().unwrap_or_default();
    let trial = Trial {
        config,
        how,
        memory,
        thread,
        turn: &turn,
        buffers: buffers(config, how, memory)?,
    };
    let before = trial.contents()?;
    let run = |order, poison, blocks| {
        trial.restore(&before);
        let report = trial.run(order, poison, blocks)?;
        Ok((report, trial.contents()?))
    };
    let blocks = how.options.blocks;
    let alike = memory.count_watched(config);
    if let Some(trace) = Trace::new(config, how.watched_accesses, alike, &trial.buffers) {
        let one_by_one = match blocks {
            Blocks::Resident => Blocks::Resident,
            Blocks::Parallel | Blocks::OneAtATime => Blocks::OneAtATime,
        };
        trial.restore(&before);
        let watched = || trial.run(ThreadOrder::Forward, first_poison, one_by_one);
        HERE.with(|here| here.traced(&trace, watched))?;
        if let Some(race) = first_race(&trace, config) {
            return Err(race);
        }
    }
    let (report, first) = run(first_order, first_poison, blocks)?;
    for &poison in how.poisons.iter().skip(1) {
        let (_, other) = run(first_order, poison, blocks)?;
        let Some(difference) = trial.difference(&first, &other) else {
            continue;
        };
        let uninitialised = |difference: Difference| Diagnosis::UninitialisedRead {
            kernel: config.kernel,
            difference: Box::new(difference),
            poisons: [first_poison, poison],
            order: first_order,
        };
        if blocks != Blocks::Parallel {
            return Err(uninitialised(difference));
        }
        // The two runs may also differ in the speed of blocks. One block at a time they differ in
        // the poison only.
        let (_, a) = run(first_order, first_poison, Blocks::OneAtATime)?;
        let (_, b) = run(first_order, poison, Blocks::OneAtATime)?;
        return Err(match trial.difference(&a, &b) {
            Some(difference) => uninitialised(difference),
            None => Diagnosis::OrderDependent {
                kernel: config.kernel,
                difference: Box::new(difference),
                orders: [first_order; 2],
                blocks: true,
            },
        });
    }
    for &order in how.orders.iter().skip(1) {
        let (_, other) = run(order, first_poison, blocks)?;
        if let Some(difference) = trial.difference(&first, &other) {
            return Err(Diagnosis::OrderDependent {
                kernel: config.kernel,
                difference: Box::new(difference),
                orders: [first_order, order],
                blocks: false,
            });
        }
    }
    trial.restore(&first);
    memory.set_canaries(canary_word(Poison::default()));
    Ok(report)
}

struct Trial<'a> {
    config: &'a LaunchConfig,
    how: &'a Verify,
    memory: &'a DeviceMemory,
    thread: &'a (dyn Fn() + Sync),
    turn: &'a Turn<'a>,
    buffers: Vec<Arc<Record>>,
}

/// The buffers that are restored and compared.
fn buffers(
    config: &LaunchConfig,
    how: &Verify,
    memory: &DeviceMemory,
) -> Result<Vec<Arc<Record>>, Diagnosis> {
    let Some(addresses) = &how.buffers else {
        return Ok(memory.live());
    };
    addresses
        .iter()
        .map(|&address| {
            memory
                .find(address as usize)
                .filter(|record| !record.freed())
                .ok_or_else(|| Diagnosis::InvalidLaunch {
                    kernel: config.kernel,
                    reason: format!("no buffer to compare at {address:#x}"),
                })
        })
        .collect()
}

impl Trial<'_> {
    fn run(&self, order: ThreadOrder, poison: Poison, blocks: Blocks) -> Result<Report, Diagnosis> {
        let mut options = self.how.options.clone();
        (options.order, options.poison, options.blocks) = (order, poison, blocks);
        // The bytes around each buffer change, too, so that a read just outside
        // is noticed.
        self.memory.set_canaries(canary_word(poison));
        launch_in_turn(self.config, &options, self.memory, self.turn, self.thread)
    }

    fn contents(&self) -> Result<Vec<Vec<u8>>, Diagnosis> {
        let copy = |region: &Region| -> io::Result<Vec<u8>> {
            let reserve = || sys::available::reserve(region.len());
            let mut bytes = self.memory.or_make_room(reserve)?;
            // SAFETY: the region is live as long as this closure runs, and its bytes are
            // initialised; no launch is running, and the caller excludes other uses of these
            // buffers.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(region.data(), region.len())
            });
            Ok(bytes)
        };
        let copies = self.buffers.iter().map(|record| {
            let copied = record.while_live(copy).unwrap_or_else(|| Ok(Vec::new()));
            copied.map_err(|error| Diagnosis::OutOfMemory {
                kernel: self.config.kernel,
                what: format!("a copy of buffer `{}`", record.label),
                reason: error.to_string(),
            })
        });
        copies.collect()
    }

    fn restore(&self, contents: &[Vec<u8>]) {
        for (record, bytes) in self.buffers.iter().zip(contents) {
            record.while_live(|region| {
                let len = bytes.len().min(region.len());
                // SAFETY: the region is live as long as this closure runs, `len`
                // is within both, and a copy of ours does not overlap it.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), region.data(), len) };
            });
        }
    }

    fn difference(&self, a: &[Vec<u8>], b: &[Vec<u8>]) -> Option<Difference> {
        self.buffers
            .iter()
            .zip(a.iter().zip(b))
            .find_map(|(record, (a, b))| {
                let how = self
                    .how
                    .comparisons
                    .iter()
                    .rev()
                    .find(|(label, _)| *label == record.label)
                    .map_or(Compare::Exact, |&(_, how)| how);
                first_difference(record, how, a, b)
            })
    }
}

fn first_difference(record: &Record, how: Compare, a: &[u8], b: &[u8]) -> Option<Difference> {
    if how == Compare::Ignore || a == b {
        return None;
    }
    let size = match how {
        Compare::Exact | Compare::Ignore => record.element_bytes,
        Compare::F32 { .. } => 4,
        Compare::F64 { .. } => 8,
    };
    let mut different = a
        .chunks(size)
        .zip(b.chunks(size))
        .enumerate()
        .filter(|(_, (a, b))| !equal(how, a, b));
    let (element, (a, b)) = different.next()?;
    let mut memory = record.name();
    memory.elements = record.region.len() / size;
    memory.element_bytes = size;
    Some(Difference {
        memory,
        element,
        values: [a.to_vec(), b.to_vec()],
        count: 1 + different.count(),
    })
}

fn equal(how: Compare, a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    match how {
        Compare::Exact => false,
        Compare::Ignore => true,
        Compare::F32 { absolute, relative } => {
            let (Ok(a), Ok(b)) = (a.try_into(), b.try_into()) else {
                return false;
            };
            let (a, b) = (f32::from_ne_bytes(a), f32::from_ne_bytes(b));
            let bound = absolute + relative * a.abs().max(b.abs());
            // Written so that NaN and infinity are differences.
            bound.is_finite() && (a - b).abs() <= bound
        }
        Compare::F64 { absolute, relative } => {
            let (Ok(a), Ok(b)) = (a.try_into(), b.try_into()) else {
                return false;
            };
            let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
            let bound = absolute + relative * a.abs().max(b.abs());
            bound.is_finite() && (a - b).abs() <= bound
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_and_nans() {
        let f32s = Compare::F32 {
            absolute: 0.0,
            relative: 1e-3,
        };
        let bytes = |x: f32| x.to_ne_bytes();
        assert!(equal(f32s, &bytes(1.0), &bytes(1.0009)));
        assert!(!equal(f32s, &bytes(1.0), &bytes(1.01)));
        assert!(!equal(f32s, &bytes(f32::NAN), &bytes(1.0)));
        assert!(equal(f32s, &bytes(f32::NAN), &bytes(f32::NAN)));
        assert!(!equal(f32s, &bytes(f32::INFINITY), &bytes(1.0)));
        assert!(equal(f32s, &bytes(0.0), &bytes(-0.0)));
        assert!(!equal(Compare::Exact, &bytes(0.0), &bytes(-0.0)));
        assert!(equal(Compare::Ignore, &bytes(0.0), &bytes(1.0)));
        let f64s = Compare::F64 {
            absolute: 0.5,
            relative: 0.0,
        };
        assert!(equal(f64s, &1.0_f64.to_ne_bytes(), &1.5_f64.to_ne_bytes()));
        assert!(!equal(f64s, &1.0_f64.to_ne_bytes(), &1.6_f64.to_ne_bytes()));
    }
}
