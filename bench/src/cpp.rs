//! C++ with OpenMP, which the rows of the CPU are compared with, and what it measures of
//! the machine in turns with them.
//!
//! A row names functions of `baselines/cpu/` that do its work, each in another way. Each
//! is there once for every set of flags that it was compiled with. All of them are
//! checked as the row is; then they are tried in turns, and the fastest takes part.

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

use super::baselines::Baseline;
use super::harness::{self, Check, Prepared};
use super::timing::{LONG, Timed, burst};
use crate::chain;
use crate::error::Error;
use halo_baselines::cpp::{Compiler, FLAGS, Flags};

/// Its name in records.
pub(super) const CPP: &str = "C++";

/// The functions of `baselines/cpu/`: inputs, outputs, extents and counts, parameters.
type Function = unsafe extern "C" fn(
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    sizes: *const u64,
    parameters: *const f64,
);

/// Elements that a function reads or writes.
#[derive(Clone, Debug)]
pub(super) enum Array {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U64(Vec<u64>),
}

impl Array {
    fn as_ptr(&self) -> *const c_void {
        match self {
            Self::F32(values) => values.as_ptr().cast(),
            Self::F64(values) => values.as_ptr().cast(),
            Self::U64(values) => values.as_ptr().cast(),
        }
    }

    fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Self::F32(values) => values.as_mut_ptr().cast(),
            Self::F64(values) => values.as_mut_ptr().cast(),
            Self::U64(values) => values.as_mut_ptr().cast(),
        }
    }

    /// Has it hold what another one of its type and length does.
    fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::F32(own), Self::F32(other)) => own.copy_from_slice(other),
            (Self::F64(own), Self::F64(other)) => own.copy_from_slice(other),
            (Self::U64(own), Self::U64(other)) => own.copy_from_slice(other),
            _ => unreachable!("an array keeps its type"),
        }
    }
}

/// A type of elements.
pub(super) trait Element: Copy {
    /// What the names of its functions end in.
    const SUFFIX: &'static str;
    /// Half the distance from 1 to the next number.
    const ROUNDOFF: f64;

    fn array(values: Vec<Self>) -> Array;

    /// The elements of an array of this type; none of another.
    fn slice(array: &Array) -> &[Self];
}

macro_rules! element {
    ($($type:ident: $variant:ident;)*) => {$(
        impl Element for $type {
            const SUFFIX: &'static str = stringify!($type);
            const ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;

            fn array(values: Vec<Self>) -> Array {
                Array::$variant(values)
            }

            fn slice(array: &Array) -> &[Self] {
                match array {
                    Array::$variant(values) => values,
                    _ => &[],
                }
            }
        }
    )*};
}

element! {
    f32: F32;
    f64: F64;
}

/// What judges the outputs of a function.
pub(super) type Judge = Box<dyn Fn(&[Array]) -> Result<Check, Error>>;

/// The work of a row, for functions of `baselines/cpu/`.
///
/// Types and lengths of the arrays are those that the file of the family asks for at
/// these sizes.
pub(super) struct Job {
    /// What the functions' names begin with: "heat2d" of `halo_heat2d_plain_f32`.
    pub(super) stem: &'static str,
    /// The ways in which they do it: "plain" of that.
    pub(super) ways: &'static [&'static str],
    /// What the names end in.
    pub(super) suffix: &'static str,
    pub(super) inputs: Vec<Array>,
    /// What they hold before the first call.
    pub(super) outputs: Vec<Array>,
    pub(super) sizes: Vec<u64>,
    /// Those of the call that is checked, where that is another.
    pub(super) sizes_to_check: Option<Vec<u64>>,
    pub(super) parameters: Vec<f64>,
    pub(super) judge: Judge,
}

/// One library of `baselines/cpu/`, of some flags.
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
        // SAFETY: the library is the one that this repository's baselines/cpu becomes. It
        // has no code that runs as it is loaded but OpenMP's, which reads the environment;
        // it is linked without flags that bring more.
        let library = unsafe { Library::new(path) }.map_err(|error| chain(&error))?;
        Ok(Self {
            flags,
            library: ManuallyDrop::new(library),
        })
    }

    fn function(&self, name: &str) -> Option<Function> {
        // SAFETY: every function of those sources whose name begins so has this type.
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

/// What starts OpenMP's threads and lets go of them.
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

/// The most arrays on either side: two fields, before and after a step.
const MOST_ARRAYS: usize = 4;

/// Calls a function, with the arrays, sizes and parameters that it asks for.
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
    // SAFETY: whoever made the job has given it the arrays that the function's file asks
    // for at these sizes, see `Job`; they live here, and nobody else has them meanwhile.
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
    /// Compiles with each set of flags, all at once, and loads what comes of it; beside
    /// it, what kept the others away.
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

    /// The names of the flags that there is a library of.
    pub(super) fn flags(&self) -> impl Iterator<Item = Flags> {
        self.libraries.iter().map(|it| it.flags)
    }

    /// A function of this name in every library that has it, called on these arrays.
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

    /// The work of a row, done by the best there is.
    pub(super) fn baseline(&self, job: Job) -> Result<Peer, Error> {
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
        let operands = Rc::new(RefCell::new(Operands {
            inputs: job.inputs,
            outputs: job.outputs.clone(),
            sizes: job.sizes_to_check.unwrap_or_else(|| job.sizes.clone()),
            parameters: job.parameters,
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
            contest,
            sizes: job.sizes,
            before: job.outputs,
            judge: job.judge,
        })
    }

    /// What the machine itself needs to move as many bytes as this work, or for as many
    /// multiply-adds, to be timed in turns with it.
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
            let mut words = harness::reserve(count)?;
            // Not zeros, and no page twice.
            words.extend((0..count as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            Ok(Array::U64(words))
        };
        let of = |inputs, outputs, size: u64| {
            Rc::new(RefCell::new(Operands {
                inputs,
                outputs,
                sizes: vec![size],
                parameters: Vec::new(),
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

/// What a function is called on.
struct Operands {
    inputs: Vec<Array>,
    outputs: Vec<Array>,
    sizes: Vec<u64>,
    parameters: Vec<f64>,
}

type Shared = Rc<RefCell<Operands>>;

/// One way of doing the work, compiled with some flags.
struct Candidate {
    function: Function,
    way: &'static str,
    flags: &'static str,
}

/// Functions that all do the same, of which the fastest counts.
struct Contest {
    operands: Shared,
    candidates: Vec<Candidate>,
    chosen: usize,
    threads: Threads,
}

impl Contest {
    /// Rounds in which everyone has a turn.
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
    }

    /// Tries them in turns, and chooses the fastest.
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

/// Whose median is the least; the first of those.
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
    contest: Contest,
    /// Those of the calls that are timed.
    sizes: Vec<u64>,
    /// What the outputs hold before a call that is checked.
    before: Vec<Array>,
    judge: Judge,
}

impl Baseline for Peer {
    fn name(&self) -> &str {
        CPP
    }

    /// Checks every way and all flags, and then finds the fastest of them. A wrong one is
    /// the result, whatever the others are.
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
        self.contest
            .operands
            .borrow_mut()
            .sizes
            .clone_from(&self.sizes);
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

/// What the machine is asked to do.
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
    /// Puts what it took where a record has it.
    pub(super) fn put(&self, ceilings: &mut Ceilings, time: Times) {
        let flags = self.contest.candidates.get(self.contest.chosen);
        let flags = flags.map_or("", |chosen| chosen.flags);
        let amount = self.amount;
        let (place, what) = match self.what {
            What::Copy => (&mut ceilings.copy, "copy with ordinary stores"),
            What::StreamedCopy => (
                &mut ceilings.streamed_copy,
                "copy with stores past the caches",
            ),
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

/// Bytes of each array of the copies that a run's header gives, and of the reading: beyond
/// most caches.
const LARGE: u64 = 1 << 28;

/// What the machine can do at most, far from its caches and in its registers.
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
    use super::*;

    #[test]
    fn the_fastest_has_the_least_median() {
        let ms = |times: &[u64]| -> Vec<Duration> {
            times
                .iter()
                .map(|&time| Duration::from_millis(time))
                .collect()
        };
        // Not the least time: that of the first was luck.
        assert_eq!(
            fastest(&[ms(&[1, 9, 9]), ms(&[5, 5, 5]), ms(&[6, 4, 7])]),
            1
        );
        assert_eq!(fastest(&[ms(&[3]), ms(&[3])]), 0);
        assert_eq!(fastest(&[ms(&[]), ms(&[7])]), 1);
        assert_eq!(fastest(&[ms(&[])]), 0);
    }

    #[test]
    fn arrays_are_of_their_type_alone() {
        let array = f32::array(vec![1.0, 2.0]);
        assert_eq!(f32::slice(&array), [1.0, 2.0]);
        assert!(f64::slice(&array).is_empty());
        let mut other = f32::array(vec![0.0; 2]);
        other.copy_from(&array);
        assert_eq!(f32::slice(&other), [1.0, 2.0]);
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
            sizes_to_check: None,
            parameters: Vec::new(),
            judge: Box::new(|_| unreachable!()),
        };
        let mut peer = cpp.baseline(job).unwrap();
        for number in 0..peer.contest.candidates.len() {
            peer.contest.chosen = number;
            peer.contest.run();
            assert!(subnormal / 4.0 > 0.0, "{:?}", peer.how());
        }
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
            sizes_to_check: None,
            parameters: Vec::new(),
            judge: Box::new(|_| unreachable!()),
        };
        let error = built().baseline(job).map(|_| ()).unwrap_err();
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
                    // Two threads, as many rounds each, some chains of some lanes.
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
