//! The frame of every family's benchmark: chooses the device, checks, warms up and times, and
//! measures the copy that bandwidths are compared with.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gpu_kernels::registry;
use halo_gpu::{Buffer, Device, DeviceKind, Errors};
use halo_report::record::{
    self, BaselineRow, Ceiling, Ceilings, DeviceRecord, FamilyRecord, ProblemRecord, Record,
    RowRecord,
};
pub(super) use halo_report::record::{LeftOut, Metric, Slots, Unit, Work};
use halo_report::stats::Times;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(super) use super::baselines::StandIn;
use super::baselines::{self, Baseline, Baselines};
use super::cpp::{self, Limit};
use super::issue_rates;
use super::sink::Sink;
use super::size::Size;
use super::timing::{self, Timed};
use super::{cub, environment, table};
use crate::Outcome;
use crate::error::Error;
use crate::flags::{Bench, DeviceChoice};
use crate::output;

/// A family's description of its rows.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// The rows on this device at this size (`None`: the family's own), in any order. A kernel
    /// without a row here has the row of its case, see [`case`](super::case).
    pub(super) plan: fn(&Device, Option<&Size>) -> Result<Plan, Error>,
    /// The sizes for comparisons on a GPU, smallest first, as `--size` takes them.
    pub(super) sizes: &'static [&'static str],
    /// The sizes on the CPU, likewise; without any, the family's own. The quick run takes the
    /// first. Sizes larger than the caches show the limit of memory.
    pub(super) cpu_sizes: &'static [&'static str],
    /// The sizes for comparisons on the CPU, likewise.
    pub(super) cpu_comparison: &'static [&'static str],
    /// A size that takes seconds, also on the emulator.
    pub(super) small: &'static str,
}

/// A row's errors and their bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check(pub(super) record::Check);

impl Check {
    /// These errors, against these bounds.
    pub(super) fn new(errors: Errors, bounds: Errors) -> Self {
        Self(record::Check {
            rms_error: errors.rms,
            rms_bound: bounds.rms,
            max_error: errors.max,
            max_bound: bounds.max,
        })
    }

    /// Whether both errors are within their bounds. NaN is not.
    #[cfg(test)]
    pub(super) fn passes(&self) -> bool {
        self.0.passes()
    }
}

/// The rows that a family will run.
pub(super) struct Plan {
    /// The size, as `--size` takes it.
    pub(super) size: String,
    /// The same as one number: grid points, elements or bodies.
    pub(super) elements: u64,
    pub(super) problem: String,
    pub(super) boundary: Option<String>,
    /// Bytes that one launch touches, for comparison with the device's cache.
    pub(super) working_set_bytes: u64,
    pub(super) rows: Vec<Box<dyn Row>>,
    /// Kernels that are not run at this size, and why.
    pub(super) left_out: Vec<LeftOut>,
    /// Why a kernel cannot take the size: an error where the user asked for just this size.
    pub(super) refused: Option<Error>,
}

/// A line of the table before it runs; it holds no memory on the device.
pub(super) trait Row {
    /// The kernel's name, or the port's.
    fn name(&self) -> String;
    /// The block's part of the problem, for the reader: by default as the table of kernels has it.
    fn tile(&self) -> String {
        let name = self.name();
        let kernel = name.split(',').next().and_then(registry::entry);
        kernel.map_or("–", |entry| entry.tile).to_owned()
    }
    /// The work of one launch.
    fn work(&self) -> Work;
    /// Kernels of the family's CUDA C++ that do the same. The one with the row's own name is always
    /// looked for, and not in this list.
    fn stand_ins(&self) -> &'static [StandIn] {
        &[]
    }
    /// Puts its input on the device.
    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error>;
}

/// A row with its memory on the device.
pub(super) trait Prepared {
    /// Poisons the output, launches once, and compares all of it.
    fn check(&mut self) -> Result<Check, Error>;
    /// Launches once, without waiting for the end.
    fn launch(&mut self) -> Result<(), halo_gpu::Error>;
    /// Restores the input that a launch destroys, without waiting for the end; returns whether
    /// launches destroy anything. Never timed.
    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        Ok(false)
    }
    /// The same work for CUB.
    fn cub(&self) -> Option<cub::Work> {
        None
    }
    /// The same work for C++ on the CPU.
    fn cpp(&self) -> Result<Option<cpp::Job>, Error> {
        Ok(None)
    }
}

/// Runs the families that the flags name. Prints and writes the results of each as soon as it is
/// done.
pub(super) fn run(flags: &Bench) -> Result<Outcome, Error> {
    let is_wanted =
        |name: &&str| flags.families.is_empty() || flags.families.iter().any(|it| it == name);
    let families: Vec<&registry::Family> = super::families()
        .filter(is_wanted)
        .filter_map(registry::family)
        .collect();
    if flags.list {
        for kernel in families
            .iter()
            .flat_map(|family| table::measured(family.name))
        {
            output::line(kernel);
        }
        return Ok(Outcome::Clean);
    }

    let mut sink = Sink::open(flags)?;
    let date = environment::now();
    let (device, why) = choose(flags.device)?;
    let replaceable = Rc::new(RefCell::new(device.with_replaceable_kernels()?));
    let device = replaceable.borrow().device().clone();
    let timed = device.kind() != DeviceKind::Emulator;

    let mut plans = Vec::new();
    for family in families {
        let plans_of_family = plans_of(family, &device, flags)?;
        if plans_of_family.iter().all(|plan| plan.rows.is_empty()) {
            if flags.families.is_empty() {
                continue;
            }
            let mut left_out = plans_of_family.iter().flat_map(|plan| &plan.left_out);
            let why = left_out
                .next()
                .map_or("only its kernels are measured", |it| it.why.as_str());
            return Err(Error::Bench(format!(
                "{} has no rows on the {} device: {why}",
                family.name,
                device.kind()
            )));
        }
        plans.push((family.name, plans_of_family));
    }
    let all = || plans.iter().flat_map(|(_, plans)| plans);
    let progress = progress(all().map(|plan| plan.rows.len()).sum());

    let mut baselines = Baselines::default();
    if flags.compare {
        progress.set_message("compiling C++");
        let stand_ins = |plans: &[Plan]| {
            let rows = plans.iter().flat_map(|plan| &plan.rows);
            rows.flat_map(|row| row.stand_ins()).copied().collect()
        };
        let families: Vec<_> = plans
            .iter()
            .map(|(name, plans)| (*name, stand_ins(plans)))
            .collect();
        baselines = Baselines::find(&replaceable, &families);
    }
    let mut ceilings = Ceilings::default();
    if timed {
        progress.set_message("copy");
        ceilings.copy = Some(measure_copy(&device, flags)?);
        progress.set_message("multiply-adds");
        ceilings.fp32 = issue_rates::measure::<f32>(&device, flags)?;
        ceilings.fp64 = issue_rates::measure::<f64>(&device, flags)?;
        for work in cpp::machine() {
            let mut limits = baselines.limits(&work)?;
            if !limits.is_empty() {
                put_limits(&device, flags, &mut limits, &mut ceilings)?;
            }
        }
    }
    let mut record = Record {
        environment: environment::of(describe(&device, why), baselines.toolkit.take(), date),
        launches: flags.launches(),
        warmup: flags.warmup,
        timing: match device.kind() {
            DeviceKind::Cuda => Some("median, each launch between two CUDA events".to_owned()),
            DeviceKind::Cpu if flags.compare => Some(
                "median of turns, each as many launches as take 2 ms, by the host's clock"
                    .to_owned(),
            ),
            DeviceKind::Cpu => Some("median, by the host's clock".to_owned()),
            DeviceKind::Emulator => None,
        },
        ceilings,
        baselines: std::mem::take(&mut baselines.records),
        families: Vec::new(),
        missing: Vec::new(),
    };
    progress.suspend(|| sink.print(&halo_report::header(&record)));
    record.missing = plans.iter().map(|(name, _)| (*name).to_owned()).collect();
    let count = plans.len();
    for (at, (name, plans)) in (1..).zip(plans) {
        if progress.is_hidden() {
            let rows: usize = plans.iter().map(|plan| plan.rows.len()).sum();
            eprintln!("measuring {name} ({at} of {count} families, {rows} rows)");
        }
        let family = match measure(&device, name, plans, flags, &baselines, &progress) {
            Ok(family) => family,
            Err(error) => {
                progress.finish_and_clear();
                let missing = record.missing.join(", ");
                sink.print(&format!("cut short: before {missing} had been measured"));
                return Err(error);
            }
        };
        record.missing.remove(0);
        record.families.push(family);
        progress.suspend(|| {
            sink.save(&record);
            let measured = record.families.last();
            sink.print(&measured.map_or(String::new(), |it| halo_report::of_family(&record, it)));
        });
    }
    progress.finish_and_clear();
    sink.print(&halo_report::legend(&record));
    if flags.is_quick(device.kind()) {
        sink.print(
            "\nThis was the quick run. --full adds larger problems and launches each row more often;\n\
             --compare adds C++.",
        );
    }
    sink.outcome(&record)
}

/// Times the machine's limits in turns, and stores them in the record.
fn put_limits(
    device: &Device,
    flags: &Bench,
    limits: &mut [Limit],
    ceilings: &mut Ceilings,
) -> Result<(), Error> {
    let mut all: Vec<&mut dyn Timed> = Vec::new();
    all.extend(limits.iter_mut().map(|limit| limit as &mut dyn Timed));
    let times = statistics(&timing::single(device, flags, &mut all)?);
    for (limit, time) in limits.iter().zip(times) {
        limit.put(ceilings, time);
    }
    Ok(())
}

/// The plans of a family, size by size.
fn plans_of(
    family: &'static registry::Family,
    device: &Device,
    flags: &Bench,
) -> Result<Vec<Plan>, Error> {
    let mut plans = Vec::new();
    for size in sizes(table::own(family), device.kind(), flags)? {
        let mut plan = table::plan(family, device, size.as_ref())?;
        if let Some(error) = plan.refused.take_if(|_| !flags.compare) {
            return Err(error);
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Runs a family.
fn measure(
    device: &Device,
    name: &str,
    plans: Vec<Plan>,
    flags: &Bench,
    baselines: &Baselines,
    progress: &ProgressBar,
) -> Result<FamilyRecord, Error> {
    let mut problems = Vec::new();
    for plan in plans {
        let mut rows = Vec::new();
        for row in &plan.rows {
            progress.set_message(format!("{} at {}", row.name(), plan.size));
            rows.push(run_row(device, name, row.as_ref(), flags, baselines)?);
            progress.inc(1);
        }
        problems.push(ProblemRecord {
            size: plan.size,
            elements: plan.elements,
            problem: plan.problem,
            boundary: plan.boundary,
            working_set_bytes: plan.working_set_bytes,
            notes: notes(device, plan.working_set_bytes),
            rows,
            left_out: plan.left_out,
        });
    }
    Ok(FamilyRecord {
        name: name.to_owned(),
        problems,
        ceilings: None,
    })
}

/// The sizes at which this family is run; `None`: its own.
fn sizes(
    family: Option<&Family>,
    kind: DeviceKind,
    flags: &Bench,
) -> Result<Vec<Option<Size>>, Error> {
    let Some(family) = family else {
        return Ok(vec![flags.size.clone()]);
    };
    let sizes = match kind {
        _ if flags.size.is_some() => &[],
        _ if flags.small => std::slice::from_ref(&family.small),
        DeviceKind::Cuda if flags.compare => family.sizes,
        DeviceKind::Cpu if flags.compare => family.cpu_comparison,
        DeviceKind::Cpu if flags.full => family.cpu_sizes,
        DeviceKind::Cpu => &family.cpu_sizes[..family.cpu_sizes.len().min(1)],
        DeviceKind::Cuda | DeviceKind::Emulator => &[],
    };
    if sizes.is_empty() {
        return Ok(vec![flags.size.clone()]);
    }
    sizes
        .iter()
        .map(|size| size.parse().map(Some).map_err(Error::Bench))
        .collect()
}

/// The device that the flag asks for. Where `auto` finds no GPU, also the reason.
fn choose(choice: DeviceChoice) -> Result<(Device, Option<String>), Error> {
    Ok(match choice {
        DeviceChoice::Cpu => (Device::cpu(), None),
        DeviceChoice::Emulator => (Device::emulator(), None),
        DeviceChoice::Cuda(number) => (Device::cuda(number as usize)?, None),
        DeviceChoice::Auto => match Device::cuda(0) {
            Ok(device) => (device, None),
            Err(error) => {
                let why = format!(
                    "the CPU ports are measured, since there is no GPU to use: {}",
                    crate::chain(&error)
                );
                (Device::cpu(), Some(why))
            }
        },
    })
}

pub(super) fn describe(device: &Device, why: Option<String>) -> DeviceRecord {
    let properties = device.properties();
    DeviceRecord {
        kind: match device.kind() {
            DeviceKind::Cuda => "cuda",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Emulator => "emulator",
        }
        .to_owned(),
        name: match device.kind() {
            DeviceKind::Cuda => halo_report::printable(device.name()),
            DeviceKind::Cpu | DeviceKind::Emulator => halo_report::printable(&processor()),
        },
        compute_capability: properties.compute_capability.map(|found| found.to_string()),
        driver: properties
            .driver_version
            .map(|version| format!("for CUDA {version}")),
        ptx_target: properties.ptx_target.clone(),
        why,
    }
}

/// The host's processor: its model, where the system says, and its threads.
fn processor() -> String {
    let threads = rayon::current_num_threads();
    let model = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("model name"))
                .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        });
    let model = model.as_deref().unwrap_or(std::env::consts::ARCH);
    match threads {
        1 => format!("{model}, 1 thread"),
        _ => format!("{model}, {threads} threads"),
    }
}

/// Notes for the reader of a family's numbers.
fn notes(device: &Device, working_set_bytes: u64) -> Vec<String> {
    match device.properties().l2_cache_bytes {
        Some(cache) if working_set_bytes <= cache => vec![format!(
            "input and output ({:.1} MiB) fit in the {:.0} MiB second-level cache, so repeated launches can beat a copy through memory",
            working_set_bytes as f64 / MIB,
            cache as f64 / MIB,
        )],
        _ => Vec::new(),
    }
}

const MIB: f64 = (1 << 20) as f64;

/// Checks a row. Where its errors are within bounds, times it in turns with its baselines.
fn run_row(
    device: &Device,
    family: &str,
    row: &dyn Row,
    flags: &Bench,
    baselines: &Baselines,
) -> Result<RowRecord, Error> {
    let mut prepared = row.prepare(device)?;
    let mut record = RowRecord {
        name: row.name(),
        tile: row.tile(),
        check: prepared.check()?.0,
        work: row.work(),
        single: None,
        replayed: None,
        launches_per_graph: None,
        baselines: Vec::new(),
        ceilings: None,
    };
    if !record.check.passes() || device.kind() == DeviceKind::Emulator {
        return Ok(record);
    }
    let limits = baselines.limits(&record.work)?;
    let baselines = baselines.of_row(device, family, row.stand_ins(), prepared.as_ref())?;
    compare(
        device,
        flags,
        prepared.as_mut(),
        baselines,
        limits,
        &mut record,
    )?;
    Ok(record)
}

/// Times a row that has passed its check, the baselines that pass theirs, and the machine's limits,
/// in turns.
fn compare(
    device: &Device,
    flags: &Bench,
    row: &mut dyn Prepared,
    baselines: Vec<Box<dyn Baseline>>,
    mut limits: Vec<Limit>,
    record: &mut RowRecord,
) -> Result<(), Error> {
    let mut taking_part = Vec::new();
    for mut baseline in baselines {
        let check = baseline.check(row);
        let mut judged = judged(baseline.name(), check)?;
        judged.how = baseline.how();
        if judged.check.is_some_and(|check| check.passes()) {
            taking_part.push((record.baselines.len(), baseline));
        }
        record.baselines.push(judged);
    }

    let row = RefCell::new(row);
    let mut own = Own(&row);
    let mut others: Vec<Other<'_, '_>> = taking_part
        .iter_mut()
        .map(|(_, baseline)| Other {
            row: &row,
            baseline: baseline.as_mut(),
        })
        .collect();
    let mut all: Vec<&mut dyn Timed> = vec![&mut own];
    all.extend(others.iter_mut().map(|other| other as &mut dyn Timed));
    all.extend(limits.iter_mut().map(|limit| limit as &mut dyn Timed));

    let single: Vec<Times> = statistics(&timing::single(device, flags, &mut all)?);
    // Only a GPU has gaps between launches that a graph avoids.
    let restores = row.borrow_mut().restore()?;
    record.launches_per_graph = match single.first() {
        Some(time) if flags.compare && device.kind() == DeviceKind::Cuda && !restores => {
            timing::launches_per_graph(Duration::from_secs_f64(time.median_s))
        }
        _ => None,
    };
    let replayed = match record.launches_per_graph {
        Some(launches) => statistics(&timing::replayed(device, flags, launches, &mut all)?),
        None => Vec::new(),
    };

    record.single = single.first().copied();
    record.replayed = replayed.first().copied();
    for (turn, (place, _)) in (1..).zip(&taking_part) {
        record.baselines[*place].single = single.get(turn).copied();
        record.baselines[*place].replayed = replayed.get(turn).copied();
    }
    if !limits.is_empty() {
        let mut ceilings = Ceilings::default();
        for (limit, time) in limits.iter().zip(single.iter().skip(1 + taking_part.len())) {
            limit.put(&mut ceilings, *time);
        }
        record.ceilings = Some(ceilings);
    }
    Ok(())
}

/// The record of a baseline after its check. An error that only means that it cannot do the work
/// becomes its excuse; any other error is returned.
fn judged(name: &str, check: Result<Check, Error>) -> Result<BaselineRow, Error> {
    let (check, why_not) = match check {
        Ok(check) => (Some(check.0), None),
        Err(error) => match baselines::excuse(&error) {
            Some(why_not) => (None, Some(why_not)),
            None => return Err(error),
        },
    };
    Ok(BaselineRow {
        name: name.to_owned(),
        why_not,
        how: None,
        check,
        single: None,
        replayed: None,
    })
}

/// The statistics of these timings; empty where nothing was timed.
fn statistics(timings: &[Vec<Duration>]) -> Vec<Times> {
    timings
        .iter()
        .filter_map(|times| Times::of(times))
        .collect()
}

/// The row itself, timed.
struct Own<'a, 'b>(&'a RefCell<&'b mut dyn Prepared>);

impl Timed for Own<'_, '_> {
    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.0.borrow_mut().launch()
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        self.0.borrow_mut().restore()
    }
}

/// A baseline, timed.
struct Other<'a, 'b> {
    row: &'a RefCell<&'b mut dyn Prepared>,
    baseline: &'a mut dyn Baseline,
}

impl Timed for Other<'_, '_> {
    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.baseline.launch(&mut **self.row.borrow_mut())
    }

    // A baseline works on the row's data.
    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        self.row.borrow_mut().restore()
    }

    fn begin(&mut self) {
        self.baseline.begin();
    }

    fn end(&mut self) {
        self.baseline.end();
    }
}

/// Bytes of each of the two arrays of the copy: much more than any cache holds, so that the memory
/// is measured.
const COPY_BYTES_GPU: usize = 1 << 30;
const COPY_BYTES_CPU: usize = 1 << 28;

/// Measures the bandwidth of the device's memory by copying an array.
fn measure_copy(device: &Device, flags: &Bench) -> Result<Ceiling, Error> {
    let (timings, array_bytes, what) = match device.kind() {
        DeviceKind::Cuda => {
            let (timings, bytes) = copy_on_gpu(device, flags)?;
            (timings, bytes, "device-to-device copy".to_owned())
        }
        DeviceKind::Cpu | DeviceKind::Emulator => {
            let threads = rayon::current_num_threads();
            let timings = copy_on_cpu(device, threads, COPY_BYTES_CPU, flags)?;
            let what = match threads {
                1 => "copy by 1 thread".to_owned(),
                _ => format!("parallel copy by {threads} threads"),
            };
            (timings, COPY_BYTES_CPU, what)
        }
    };
    let Some(time) = Times::of(&timings) else {
        return Err(Error::Bench(
            "the copy was not timed: no launches".to_owned(),
        ));
    };
    let method = format!(
        "{what} of {} MiB in this run, bytes read plus bytes written",
        array_bytes >> 20
    );
    let amount = 2 * array_bytes as u64;
    Ok(Ceiling {
        amount,
        time,
        method,
    })
}

/// Times copies within the GPU's memory. Also returns the array's size, which is smaller on a GPU
/// with little memory.
fn copy_on_gpu(device: &Device, flags: &Bench) -> Result<(Vec<Duration>, usize), Error> {
    // Both arrays together take no more than an eighth of the memory.
    let memory = device.properties().total_memory.unwrap_or(u64::MAX);
    let most = usize::try_from(memory / 16).unwrap_or(usize::MAX);
    let bytes = COPY_BYTES_GPU.min(most) & !0xf_ffff;
    let length = bytes / size_of::<f32>();
    // Not zeros: memory that is all zeros can be faster than real data.
    let pattern: Vec<f32> = (0..length).map(|i| (i % 8191) as f32 * 0.37).collect();
    let source: Buffer<f32> = device.upload(&pattern)?;
    let mut target: Buffer<f32> = device.alloc_filled(length, f32::NAN)?;
    let (warmup, launches) = (flags.warmup as usize, flags.launches() as usize);
    let timings = device.time_each(warmup, launches, || target.copy_from(&source))?;
    Ok((timings, bytes))
}

/// Times copies in the host's memory, in which each thread copies a part.
fn copy_on_cpu(
    device: &Device,
    threads: usize,
    bytes: usize,
    flags: &Bench,
) -> Result<Vec<Duration>, Error> {
    let source: Vec<u64> = (0..bytes as u64 / 8)
        .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .collect();
    let mut target = vec![u64::MAX; source.len()];
    let part = source.len().div_ceil(threads);
    timing::repeat(flags, timing::budget(device, flags), || {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (source, target) in source.chunks(part).zip(target.chunks_mut(part)) {
                scope.spawn(move || target.copy_from_slice(source));
            }
        });
        let took = start.elapsed();
        std::hint::black_box(&mut target);
        Ok(took)
    })
}

/// An empty vector with room for `len` elements; an error if there is not
/// enough memory.
pub(super) fn reserve<T>(len: usize) -> Result<Vec<T>, Error> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|_| halo_gpu::Error::HostOutOfMemory {
            requested: (len as u64).saturating_mul(size_of::<T>() as u64),
        })?;
    Ok(values)
}

/// A progress bar on standard error, if that is a terminal.
fn progress(rows: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;
    use crate::flags::{Cut, Rims};

    /// A row that counts its launches and has a given error.
    struct Fake {
        error: f64,
        launches: Rc<Cell<u32>>,
    }

    impl Row for Fake {
        fn name(&self) -> String {
            "fake".to_owned()
        }

        fn tile(&self) -> String {
            String::new()
        }

        fn work(&self) -> Work {
            Work {
                bytes: 1000,
                flops: 1000,
                items: 1000,
                unit: Unit::Points,
                metric: Metric::Bandwidth,
                slots: Slots::default(),
                read_only: false,
            }
        }

        fn prepare(&self, _: &Device) -> Result<Box<dyn Prepared>, Error> {
            Ok(Box::new(Fake {
                error: self.error,
                launches: Rc::clone(&self.launches),
            }))
        }
    }

    impl Prepared for Fake {
        fn check(&mut self) -> Result<Check, Error> {
            let of = |value| Errors {
                rms: value,
                max: value,
            };
            Ok(Check::new(of(self.error), of(1.0)))
        }

        fn launch(&mut self) -> Result<(), halo_gpu::Error> {
            self.launches.set(self.launches.get() + 1);
            Ok(())
        }
    }

    pub(crate) fn flags() -> Bench {
        Bench {
            device: DeviceChoice::Cpu,
            families: Vec::new(),
            size: None,
            small: false,
            full: false,
            launches: Some(7),
            warmup: 2,
            list: false,
            json: None,
            compare: false,
            csv: None,
            html: None,
            svg: None,
            ranks: None,
            nccl: false,
            cut: Cut::Slabs,
            rims: Rims::Auto,
            project: None,
            from: Vec::new(),
        }
    }

    /// The record of a row with this error on this device, and its number of launches.
    fn outcome(error: f64, device: &Device) -> (RowRecord, u32) {
        let row = Fake {
            error,
            launches: Rc::default(),
        };
        let record = run_row(device, "family", &row, &flags(), &Baselines::default());
        (record.unwrap(), row.launches.get())
    }

    #[test]
    fn a_row_within_bounds_is_launched_for_warm_up_and_time() {
        let (record, launches) = outcome(1.0, &Device::cpu());
        assert_eq!(launches, 9);
        assert_eq!(record.single.unwrap().launches, 7);
    }

    #[test]
    fn a_row_out_of_bounds_is_never_timed() {
        for error in [1.5, f64::INFINITY, f64::NAN] {
            let (record, launches) = outcome(error, &Device::cpu());
            assert_eq!(launches, 0, "{error}");
            assert!(!record.check.passes() && record.single.is_none());
        }
    }

    #[test]
    fn nothing_is_timed_on_the_emulator() {
        let (record, launches) = outcome(0.0, &Device::emulator());
        assert_eq!(launches, 0);
        assert!(record.check.passes() && record.single.is_none());
    }

    /// A baseline that counts its launches and has a given error, or has no kernel.
    struct FakeBaseline {
        name: &'static str,
        error: Option<f64>,
        launches: Rc<Cell<u32>>,
    }

    impl Baseline for FakeBaseline {
        fn name(&self) -> &str {
            self.name
        }

        fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error> {
            let Some(error) = self.error else {
                return Err(halo_gpu::Error::KernelNotFound { kernel: "fake" }.into());
            };
            let mut check = row.check()?;
            check.0.max_error = error;
            Ok(check)
        }

        fn launch(&mut self, _: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
            self.launches.set(self.launches.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn baselines_are_checked_and_those_that_pass_are_timed_in_turns() {
        let device = Device::cpu();
        let counts: [Rc<Cell<u32>>; 4] = Default::default();
        let baseline = |name, error, count: &Rc<Cell<u32>>| {
            Box::new(FakeBaseline {
                name,
                error,
                launches: Rc::clone(count),
            }) as Box<dyn Baseline>
        };
        let mut row = Fake {
            error: 0.5,
            launches: Rc::clone(&counts[0]),
        };
        let (mut record, _) = outcome(0.5, &Device::emulator());
        assert!(record.baselines.is_empty());
        let baselines = vec![
            baseline("good", Some(0.25), &counts[1]),
            baseline("wrong", Some(2.0), &counts[2]),
            baseline("lacking", None, &counts[3]),
        ];
        compare(
            &device,
            &flags(),
            &mut row,
            baselines,
            Vec::new(),
            &mut record,
        )
        .unwrap();

        assert_eq!(counts.map(|count| count.get()), [9, 9, 0, 0]);
        assert_eq!(record.single.unwrap().launches, 7);
        assert!(record.replayed.is_none(), "graphs are for CUDA devices");
        let [good, wrong, lacking] = &record.baselines[..] else {
            panic!("{:?}", record.baselines);
        };
        assert!(!good.is_wrong() && good.why_not.is_none());
        assert_eq!(good.single.unwrap().launches, 7);
        assert_eq!(wrong.check.unwrap().max_error, 2.0);
        assert!(wrong.is_wrong() && wrong.single.is_none());
        assert_eq!(lacking.why_not.as_deref(), Some("it has no fake"));
        assert!(lacking.check.is_none() && lacking.single.is_none());
    }

    #[test]
    fn an_error_that_is_no_excuse_ends_the_run() {
        let error: Error = halo_gpu::Error::NoDevice.into();
        assert!(judged("nvcc", Err(error)).is_err());
    }

    #[test]
    fn sizes_are_the_familys_where_others_are_compared_with_on_a_gpu_and_on_the_cpu() {
        let family = Family {
            name: "f",
            plan: |_, _| unreachable!(),
            sizes: &["8", "4x2"],
            cpu_sizes: &["3", "6"],
            cpu_comparison: &["1", "5"],
            small: "2",
        };
        let compare = Bench {
            compare: true,
            ..flags()
        };
        let texts = |kind, flags: &Bench| -> Vec<String> {
            let sizes = sizes(Some(&family), kind, flags).unwrap();
            sizes
                .iter()
                .map(|size| size.as_ref().map_or("own".to_owned(), Size::to_string))
                .collect()
        };
        assert_eq!(texts(DeviceKind::Cuda, &compare), ["8", "4x2"]);
        assert_eq!(texts(DeviceKind::Cpu, &compare), ["1", "5"]);
        assert_eq!(texts(DeviceKind::Cpu, &flags()), ["3"]);
        let full = Bench {
            full: true,
            ..flags()
        };
        assert_eq!(texts(DeviceKind::Cpu, &full), ["3", "6"]);
        assert_eq!(texts(DeviceKind::Cuda, &full), ["own"]);
        assert_eq!(texts(DeviceKind::Emulator, &compare), ["own"]);
        assert_eq!(texts(DeviceKind::Cuda, &flags()), ["own"]);
        let small = Bench {
            small: true,
            ..flags()
        };
        for kind in [DeviceKind::Cpu, DeviceKind::Emulator, DeviceKind::Cuda] {
            assert_eq!(texts(kind, &small), ["2"]);
        }
        let sized = Bench {
            size: Some("16".parse().unwrap()),
            ..compare
        };
        assert_eq!(texts(DeviceKind::Cuda, &sized), ["16"]);
        assert_eq!(texts(DeviceKind::Cpu, &sized), ["16"]);
    }

    #[test]
    fn every_size_of_every_family_can_be_planned() {
        for family in super::super::FAMILIES {
            // As the benchmark plans it.
            let planned = |device: &Device, size: &str| {
                let kernels = registry::family(family.name).unwrap();
                table::plan(kernels, device, Some(&size.parse().unwrap()))
            };
            assert!(family.sizes.len() >= 3, "{}", family.name);
            assert!(family.cpu_comparison.len() >= 3, "{}", family.name);
            for size in family.cpu_sizes.iter().chain(family.cpu_comparison) {
                let plan = planned(&Device::cpu(), size).unwrap();
                assert!(!plan.rows.is_empty(), "{} {size}", family.name);
            }
            for device in [Device::cpu(), Device::emulator()] {
                let plan = planned(&device, family.small).unwrap();
                assert!(!plan.rows.is_empty(), "{}", family.name);
            }
            let mut before = 0;
            for size in family.sizes {
                let plan = planned(&Device::emulator(), size);
                let plan = plan.unwrap_or_else(|error| panic!("{} {size}: {error}", family.name));
                assert!(!plan.rows.is_empty(), "{} {size}", family.name);
                assert!(plan.elements > before, "{}: smallest first", family.name);
                before = plan.elements;
            }
        }
    }

    #[test]
    fn the_copy_is_timed_once_a_launch_on_any_number_of_threads() {
        for threads in [1, 2, 3] {
            let timings = copy_on_cpu(&Device::cpu(), threads, 1 << 12, &flags()).unwrap();
            assert_eq!(timings.len(), 7);
        }
    }
}
