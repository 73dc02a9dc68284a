//! C++ with OpenMP: the baseline of the CPU's rows. It also measures the machine's limits in turns
//! with them.
//!
//! A row names functions of `baselines/cpu/` that do its work in different ways. Each function
//! exists once per set of compiler flags. All are checked as the row is; then they are tried in
//! turns, and the fastest becomes the baseline.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use halo_report::record::{Ceiling, Ceilings, Metric, Slots, Unit, Work};
use halo_report::stats::Times;
use libloading::Library;

pub(super) mod job;

use super::baseline::Baseline;
use super::check::Check;
use super::error::{Error, chain};
use super::memory;
use super::row::Prepared;
use super::timing::{LONG, Timed, burst};
use halo_baselines::cpp::{Compiler, FLAGS, Flags};
use job::{Array, Job, Judge};

/// The functions of `baselines/cpu/`: inputs, outputs, extents and counts, parameters.
type Function = unsafe extern "C" fn(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    sizes: *const u64,
    parameters: *const f64,
);

/// The library of `baselines/cpu/`, compiled with one set of flags.
struct Loaded {
    flags: Flags,
    /// Never unloaded: OpenMP's threads wait in it.
    library: ManuallyDrop<Library>,
}

impl Loaded {
    fn new(compiler: &Compiler, flags: Flags) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| chain(&error))?;
        let path = compiler.library(flags, folder.path());
        let path = path.map_err(|error| chain(&error))?;
        // SAFETY: the library is made from this repository's baselines/cpu. Loading it runs no code
        // but OpenMP's, which reads the environment; its link flags add none.
        let library = unsafe { Library::new(path) }.map_err(|error| chain(&error))?;
        Ok(Self {
            flags,
            library: ManuallyDrop::new(library),
        })
    }

    fn function(&self, name: &str) -> Option<Function> {
        // SAFETY: all functions of those sources with this prefix have this type.
        let found = unsafe { self.library.get::<Function>(format!("halo_{name}")) };
        found.ok().map(|found| *found)
    }
}

/// The libraries, loaded.
#[derive(Clone)]
pub(super) struct Cpp {
    libraries: Rc<Vec<Loaded>>,
    threads: Threads,
}

/// Starts and ends OpenMP's threads.
#[derive(Clone, Copy)]
struct Threads {
    wake: Function,
    rest: Function,
}

impl Threads {
    fn wake(self) {
        call(self.wake, &[], &mut [], &[], &[]);
    }

    fn rest(self) {
        call(self.rest, &[], &mut [], &[], &[]);
    }
}

/// The largest number of inputs, or of outputs: two fields, before and after a step.
const MOST_ARRAYS: usize = 4;

/// Calls a function with its arrays, sizes and parameters.
fn call(
    function: Function,
    inputs: &[Array],
    outputs: &mut [Array],
    sizes: &[u64],
    parameters: &[f64],
) {
    let mut from = [ptr::null(); MOST_ARRAYS];
    let mut to = [ptr::null_mut(); MOST_ARRAYS];
    for (pointer, array) in from.iter_mut().zip(inputs) {
        *pointer = array.as_ptr();
    }
    for (pointer, array) in to.iter_mut().zip(outputs) {
        *pointer = array.as_mut_ptr();
    }
    // SAFETY: the maker of the job has given it the arrays that the function's file documents for
    // these sizes, see `Job`. They outlive the call, and nothing else uses them during it.
    unsafe {
        function(
            from.as_ptr(),
            to.as_ptr(),
            sizes.as_ptr(),
            parameters.as_ptr(),
        )
    }
}

impl Cpp {
    /// Compiles with all sets of flags at once and loads the libraries. Also returns the reasons
    /// for those that failed.
    pub(super) fn build(compiler: &Compiler, threads: usize) -> (Option<Self>, Vec<String>) {
        let all: Vec<Result<Loaded, String>> = thread::scope(|scope| {
            let building: Vec<_> = FLAGS
                .iter()
                .map(|&flags| scope.spawn(move || Loaded::new(compiler, flags)))
                .collect();
            let joined = building.into_iter().map(|building| {
                building
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        });
        let (mut libraries, mut failures) = (Vec::new(), Vec::new());
        for loaded in all {
            match loaded {
                Ok(library) => libraries.push(library),
                Err(why) => failures.push(why),
            }
        }
        let found = libraries.first().and_then(|first| {
            let threads = Threads {
                wake: first.function("wake")?,
                rest: first.function("rest")?,
            };
            Some((threads, first.function("threads")?))
        });
        let cpp = found.map(|(rest, set)| {
            call(set, &[], &mut [], &[threads as u64], &[]);
            Self {
                libraries: Rc::new(libraries),
                threads: rest,
            }
        });
        (cpp, failures)
    }

    /// The sets of flags that a library exists for.
    pub(super) fn flags(&self) -> impl Iterator<Item = Flags> {
        self.libraries.iter().map(|it| it.flags)
    }

    /// The function of this name in every library that has it, on these arrays.
    fn contest(&self, names: &[(String, &'static str)], operands: &Shared) -> Contest {
        let mut candidates = Vec::new();
        for loaded in self.libraries.iter() {
            for (name, way) in names {
                candidates.extend(loaded.function(name).map(|function| Candidate {
                    function,
                    way,
                    flags: loaded.flags.name,
                }));
            }
        }
        Contest {
            operands: Rc::clone(operands),
            candidates,
            chosen: 0,
            threads: self.threads,
        }
    }

    /// The fastest way to do the work of a row, with its name in the record.
    pub(super) fn baseline(&self, name: &'static str, job: Job) -> Result<Peer, Error> {
        let arrays = job.inputs.len().max(job.outputs.len());
        if arrays > MOST_ARRAYS {
            return Err(Error::Bench(format!(
                "{} has {arrays} arrays, but must have at most {MOST_ARRAYS} on either side",
                job.stem
            )));
        }
        let names: Vec<(String, &'static str)> = job
            .ways
            .iter()
            .map(|&way| (format!("{}_{way}_{}", job.stem, job.suffix), way))
            .collect();
        let (mut sizes_to_check, mut in_turns) = (job.sizes.clone(), false);
        if let (Some(to_check), Some(steps)) = (job.steps_to_check, sizes_to_check.last_mut()) {
            in_turns = *steps % 2 == 1;
            *steps = to_check;
        }
        let operands = Rc::new(RefCell::new(Operands {
            inputs: job.inputs,
            outputs: job.outputs.clone(),
            sizes: sizes_to_check,
            parameters: job.parameters,
            in_turns: false,
        }));
        let contest = self.contest(&names, &operands);
        if contest.candidates.len() != names.len() * self.libraries.len() {
            return Err(Error::Bench(format!(
                "baselines/cpu has no {} in one of these ways: {}",
                job.stem,
                job.ways.join(", ")
            )));
        }
        Ok(Peer {
            name,
            contest,
            sizes: job.sizes,
            in_turns,
            before: job.outputs,
            judge: job.judge,
        })
    }

    /// The machine's limits for as many bytes, or as many multiply-adds, as this work has; to be
    /// timed in turns with it.
    pub(super) fn limits(&self, work: &Work) -> Result<Vec<Limit>, Error> {
        /// Rounds of multiply-adds: about a millisecond.
        const ROUNDS: u64 = 300_000;
        let mut limits = Vec::new();
        let mut add = |what, name: &str, operands: Shared, amount: Option<u64>| {
            let mut contest = self.contest(&[(name.to_owned(), "")], &operands);
            if contest.candidates.is_empty() {
                return;
            }
            contest.choose();
            contest.run();
            let measured = |operands: &Operands| match &operands.outputs[0] {
                Array::F64(values) => values[0] as u64,
                _ => 0,
            };
            limits.push(Limit {
                what,
                amount: amount.unwrap_or_else(|| measured(&operands.borrow())),
                contest,
            });
        };
        let words = |count: u64| -> Result<Array, Error> {
            let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
            let mut words = memory::reserve(count)?;
            // Neither zeros nor equal pages.
            words.extend((0..count as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            Ok(Array::U64(words))
        };
        let of = |inputs, outputs, size: u64| {
            Rc::new(RefCell::new(Operands {
                inputs,
                outputs,
                sizes: vec![size],
                parameters: Vec::new(),
                in_turns: false,
            }))
        };
        if work.read_only {
            let count = (work.bytes / 8).max(1);
            let operands = of(vec![words(count)?], vec![words(1)?], count);
            add(What::Read, "read", operands, Some(8 * count));
        } else {
            let count = (work.bytes / 16).max(1);
            let operands = of(vec![words(count)?], vec![words(count)?], count);
            let bytes = Some(16 * count);
            add(What::Copy, "copy", Rc::clone(&operands), bytes);
            add(What::StreamedCopy, "streamed_copy", operands, bytes);
        }
        for (what, name, slots) in [
            (What::Fp32, "multiply_adds_f32", work.slots.fp32),
            (What::Fp64, "multiply_adds_f64", work.slots.fp64),
        ] {
            if slots > 0 {
                let operands = of(Vec::new(), vec![Array::F64(vec![0.0; 2])], ROUNDS);
                add(what, name, operands, None);
            }
        }
        Ok(limits)
    }
}

/// The arguments of a function.
struct Operands {
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    sizes: Vec<u64>,
    parameters: Vec<f64>,
    /// Whether the halves of the outputs change places after a call.
    in_turns: bool,
}

type Shared = Rc<RefCell<Operands>>;

/// One way of doing the work, compiled with some flags.
struct Candidate {
    function: Function,
    way: &'static str,
    flags: &'static str,
}

/// Functions with the same result; the fastest is chosen.
struct Contest {
    operands: Shared,
    candidates: Vec<Candidate>,
    chosen: usize,
    threads: Threads,
}

impl Contest {
    /// Each round times every candidate once.
    const ROUNDS: usize = 3;

    fn run(&self) {
        let operands = &mut *self.operands.borrow_mut();
        call(
            self.candidates[self.chosen].function,
            &operands.inputs,
            &mut operands.outputs,
            &operands.sizes,
            &operands.parameters,
        );
        if operands.in_turns {
            let half = operands.outputs.len() / 2;
            operands.outputs.rotate_left(half);
        }
    }

    /// Times all in turns and chooses the fastest.
    fn choose(&mut self) {
        let mut times = vec![Vec::new(); self.candidates.len()];
        for _ in 0..Self::ROUNDS {
            for (number, times) in times.iter_mut().enumerate() {
                self.chosen = number;
                self.threads.wake();
                let timed = |launches: u32| {
                    let start = Instant::now();
                    for _ in 0..launches {
                        self.run();
                    }
                    start.elapsed() / launches
                };
                let first = timed(1);
                times.push(if first > LONG {
                    first
                } else {
                    timed(burst(first))
                });
                self.threads.rest();
            }
        }
        self.chosen = fastest(&times);
    }
}

/// The index of the least median; the first of equals.
fn fastest(times: &[Vec<Duration>]) -> usize {
    let median = |times: &Vec<Duration>| Times::of(times).map_or(f64::INFINITY, |it| it.median_s);
    let mut best = (0, f64::INFINITY);
    for (number, times) in times.iter().enumerate() {
        let median = median(times);
        if median < best.1 {
            best = (number, median);
        }
    }
    best.0
}

/// The work of a row by C++.
pub(super) struct Peer {
    name: &'static str,
    contest: Contest,
    /// The sizes of the timed calls.
    sizes: Vec<u64>,
    /// Whether the halves of the outputs change places after each of them.
    in_turns: bool,
    /// The contents of the outputs before a checked call.
    before: Vec<Array>,
    judge: Judge,
}

impl Baseline for Peer {
    fn name(&self) -> &str {
        self.name
    }

    /// Checks every way with all flags, and then finds the fastest. If one is wrong, the result is
    /// wrong.
    fn check(&mut self, _: &mut dyn Prepared) -> Result<Check, Error> {
        let mut worst: Option<Check> = None;
        self.contest.threads.wake();
        for number in 0..self.contest.candidates.len() {
            self.contest.chosen = number;
            for (array, before) in self
                .contest
                .operands
                .borrow_mut()
                .outputs
                .iter_mut()
                .zip(&self.before)
            {
                array.copy_from(before);
            }
            self.contest.run();
            let check = (self.judge)(&self.contest.operands.borrow().outputs)?;
            if !check.0.passes() {
                self.contest.threads.rest();
                return Ok(check);
            }
            if worst.is_none_or(|worst| check.0.max_error > worst.0.max_error) {
                worst = Some(check);
            }
        }
        self.contest.threads.rest();
        self.before = Vec::new();
        {
            let mut operands = self.contest.operands.borrow_mut();
            operands.sizes.clone_from(&self.sizes);
            operands.in_turns = self.in_turns;
        }
        self.contest.choose();
        worst.ok_or_else(|| Error::Bench("baselines/cpu has no function to check".to_owned()))
    }

    fn launch(&mut self, _: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
        self.contest.run();
        Ok(())
    }

    fn how(&self) -> Option<String> {
        let chosen = self.contest.candidates.get(self.contest.chosen)?;
        Some(format!("{}, {}", chosen.way, chosen.flags))
    }

    fn begin(&mut self) {
        self.contest.threads.wake();
    }

    fn end(&mut self) {
        self.contest.threads.rest();
    }
}

/// A measurement of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Copy,
    StreamedCopy,
    Read,
    Fp32,
    Fp64,
}

/// A limit of the machine, to be timed.
pub(super) struct Limit {
    what: What,
    amount: u64,
    contest: Contest,
}

impl Timed for Limit {
    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.contest.run();
        Ok(())
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        Ok(false)
    }

    fn begin(&mut self) {
        self.contest.threads.wake();
    }

    fn end(&mut self) {
        self.contest.threads.rest();
    }
}

impl Limit {
    /// Stores the time in its field of the record.
    pub(super) fn put(&self, ceilings: &mut Ceilings, time: Times) {
        let flags = self.contest.candidates.get(self.contest.chosen);
        let flags = flags.map_or("", |chosen| chosen.flags);
        let amount = self.amount;
        let (place, what) = match self.what {
            What::Copy => (&mut ceilings.copy, "copy with ordinary stores"),
            What::StreamedCopy => (&mut ceilings.streamed_copy, "copy with non-temporal stores"),
            What::Read => (&mut ceilings.read, "sum"),
            What::Fp32 => (&mut ceilings.fp32, "multiply-adds in registers"),
            What::Fp64 => (&mut ceilings.fp64, "multiply-adds in registers"),
        };
        let much = match self.what {
            What::Copy | What::StreamedCopy => {
                format!(" of {}, bytes read plus bytes written", size(amount / 2))
            }
            What::Read => format!(" of {}", size(amount)),
            What::Fp32 | What::Fp64 => String::new(),
        };
        *place = Some(Ceiling {
            amount,
            time,
            method: format!("{what}{much}; C++ with OpenMP, {flags}"),
        });
    }
}

/// "256 MiB", "1.5 KiB".
fn size(bytes: u64) -> String {
    let kib = bytes as f64 / 1024.0;
    if kib < 1024.0 {
        format!("{kib:.1} KiB")
    } else {
        format!("{:.0} MiB", kib / 1024.0)
    }
}

/// Bytes of each array in the copies and reads of a run's header: more than most caches hold.
const LARGE: u64 = 1 << 28;

/// The machine's limits far from its caches and in its registers.
pub(super) fn machine() -> [Work; 2] {
    let work = |read_only, slots| Work {
        bytes: if read_only { LARGE } else { 2 * LARGE },
        flops: 0,
        items: 0,
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        slots,
        read_only,
    };
    let none = Slots::default();
    [work(false, Slots { fp32: 1, fp64: 1 }), work(true, none)]
}

#[cfg(test)]
mod tests {
    use super::job::Element as _;
    use super::*;
    use crate::baseline::CPP;

    #[test]
    fn the_fastest_has_the_least_median() {
        let ms = |times: &[u64]| -> Vec<Duration> {
            times
                .iter()
                .map(|&time| Duration::from_millis(time))
                .collect()
        };
        // Not the least time: the first candidate was lucky once.
        assert_eq!(
            fastest(&[ms(&[1, 9, 9]), ms(&[5, 5, 5]), ms(&[6, 4, 7])]),
            1
        );
        assert_eq!(fastest(&[ms(&[3]), ms(&[3])]), 0);
        assert_eq!(fastest(&[ms(&[]), ms(&[7])]), 1);
        assert_eq!(fastest(&[ms(&[])]), 0);
    }

    fn built() -> Cpp {
        let compiler = Compiler::find().unwrap();
        let (cpp, failures) = Cpp::build(&compiler, 2);
        cpp.unwrap_or_else(|| panic!("{failures:?}"))
    }

    #[test]
    #[ignore = "needs a C++ compiler with OpenMP"]
    fn what_is_loaded_leaves_subnormal_numbers_to_the_rest_of_the_process() {
        let subnormal = std::hint::black_box(f32::MIN_POSITIVE);
        let cpp = built();
        assert!(subnormal / 4.0 > 0.0);
        let plates = vec![f32::array(vec![1.0; 400 * 400]); 2];
        let job = Job {
            stem: "heat2d",
            ways: &["plain", "blocked8", "blocked16"],
            suffix: "f32",
            inputs: Vec::new(),
            outputs: plates,
            sizes: vec![400, 400, 7],
            steps_to_check: None,
            parameters: Vec::new(),
            judge: Box::new(|_| unreachable!()),
        };
        let mut peer = cpp.baseline(CPP, job).unwrap();
        for number in 0..peer.contest.candidates.len() {
            peer.contest.chosen = number;
            peer.contest.run();
            assert!(subnormal / 4.0 > 0.0, "{:?}", peer.how());
        }
    }

    #[test]
    #[ignore = "needs a C++ compiler with OpenMP"]
    fn two_calls_of_a_step_are_a_call_of_two_steps() {
        let cpp = built();
        let plate: Vec<f32> = (0..5 * 4).map(|i| (i * i % 7) as f32).collect();
        let after = |calls: usize, steps: u64| {
            let job = Job {
                stem: "heat2d",
                ways: &["plain"],
                suffix: "f32",
                inputs: Vec::new(),
                outputs: vec![f32::array(plate.clone()); 2],
                sizes: vec![5, 4, steps],
                steps_to_check: Some(steps),
                parameters: Vec::new(),
                judge: Box::new(|_| unreachable!()),
            };
            let peer = cpp.baseline(CPP, job).unwrap();
            peer.contest.operands.borrow_mut().in_turns = peer.in_turns;
            for _ in 0..calls {
                peer.contest.run();
            }
            let operands = peer.contest.operands.borrow();
            f32::slice(&operands.outputs[0]).to_vec()
        };
        assert_eq!(after(2, 1), after(1, 2));
        assert_ne!(after(2, 1), plate);
    }

    #[test]
    #[ignore = "needs a C++ compiler with OpenMP"]
    fn a_way_that_there_is_not_is_an_error() {
        let job = Job {
            stem: "heat2d",
            ways: &["plain", "nosuch"],
            suffix: "f32",
            inputs: Vec::new(),
            outputs: Vec::new(),
            sizes: vec![0, 0, 0],
            steps_to_check: None,
            parameters: Vec::new(),
            judge: Box::new(|_| unreachable!()),
        };
        let error = built().baseline(CPP, job).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("nosuch"), "{error}");
    }

    #[test]
    #[ignore = "needs a C++ compiler with OpenMP"]
    fn the_machine_is_measured_in_what_a_row_needs() {
        let cpp = built();
        let work = |read_only, slots| Work {
            bytes: 100_004,
            flops: 0,
            items: 1,
            unit: Unit::Points,
            metric: Metric::Bandwidth,
            slots,
            read_only,
        };
        let whats = |work: &Work| -> Vec<What> {
            let limits = cpp.limits(work).unwrap();
            for limit in &limits {
                let arrays = limit.contest.operands.borrow();
                if let ([Array::U64(from)], [Array::U64(to)]) =
                    (&arrays.inputs[..], &arrays.outputs[..])
                {
                    let sum = from.iter().fold(0_u64, |sum, &x| sum.wrapping_add(x));
                    assert!(if limit.what == What::Read {
                        to[0] == sum
                    } else {
                        from == to
                    });
                } else {
                    // Two threads with as many rounds each; chains and lanes multiply them.
                    assert_eq!(limit.amount % 600_000, 0);
                    assert!(limit.amount >= 600_000 * 20);
                }
            }
            limits.iter().map(|limit| limit.what).collect()
        };
        assert_eq!(whats(&work(true, Slots::default())), [What::Read]);
        let slots = Slots { fp32: 1, fp64: 1 };
        let mut expected = vec![What::Copy, What::Fp32, What::Fp64];
        if cfg!(target_arch = "x86_64") {
            expected.insert(1, What::StreamedCopy);
        }
        assert_eq!(whats(&work(false, slots)), expected);
    }
}
