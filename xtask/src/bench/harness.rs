//! What every family's benchmark has in common: choosing the device, checking,
//! warming up, timing, and the copy that bandwidths are set against.

use std::time::{Duration, Instant};

use halo_gpu::{Buffer, Device, DeviceKind};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::report::{
    Ceiling, Ceilings, DeviceReport, FamilyReport, Measured, ProblemReport, Report, RowReport,
};
pub(super) use super::report::{Check, LeftOut, Metric, Slots, Unit, Work};
use super::roofline;
use super::size::Size;
use super::stats::Times;
use super::{environment, files};
use crate::Outcome;
use crate::error::Error;
use crate::flags::{Bench, DeviceChoice};
use crate::output;

/// A family, as the benchmark sees it.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// The names of all its kernels, in the order of their rows.
    pub(super) kernels: fn() -> Vec<&'static str>,
    /// Its rows on this device at this size (`None`: the family's own).
    pub(super) plan: fn(&Device, Option<&Size>) -> Result<Plan, Error>,
}

/// What a family will run.
pub(super) struct Plan {
    /// As `--size` takes it.
    pub(super) size: String,
    /// The same as one number: grid points, elements or bodies.
    pub(super) elements: u64,
    pub(super) problem: String,
    pub(super) boundary: Option<String>,
    /// Bytes that one launch touches, to be set against the device's cache.
    pub(super) working_set_bytes: u64,
    pub(super) rows: Vec<Box<dyn Row>>,
    /// Kernels that are too slow for this size, and what says so.
    pub(super) left_out: Vec<LeftOut>,
}

/// One line of the table before it runs: cheap to have, no memory on the device.
pub(super) trait Row {
    /// The kernel's name, or the port's.
    fn name(&self) -> String;
    /// What one block works on, for the reader.
    fn tile(&self) -> String;
    /// What one launch has to do.
    fn work(&self) -> Work;
    /// Puts its input on the device.
    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error>;
}

/// A row with its memory on the device.
pub(super) trait Prepared {
    /// Poisons the output, launches once, and compares all of it.
    fn check(&mut self) -> Result<Check, Error>;
    /// Launches once, without waiting for the end.
    fn launch(&mut self) -> Result<(), halo_gpu::Error>;
    /// Puts back what a launch destroys of its input, without waiting for the
    /// end; returns whether launches destroy anything. Never timed.
    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        Ok(false)
    }
}

/// Runs the families that the flags name, and prints and writes what came of it.
pub(super) fn run(flags: &Bench, families: &[Family]) -> Result<Outcome, Error> {
    let families: Vec<&Family> = families
        .iter()
        .filter(|family| {
            flags.families.is_empty() || flags.families.iter().any(|name| name == family.name)
        })
        .collect();
    if flags.list {
        for kernel in families.iter().flat_map(|family| (family.kernels)()) {
            output::line(kernel);
        }
        return Ok(Outcome::Clean);
    }

    if let Some(report) = files::read(&flags.from)? {
        return finish(flags, &report);
    }

    let date = environment::now();
    let (device, why) = choose(flags.device)?;
    let timed = device.kind() != DeviceKind::Emulator;

    let mut plans = Vec::new();
    for family in &families {
        plans.push((family.name, (family.plan)(&device, flags.size.as_ref())?));
    }
    let progress = progress(plans.iter().map(|(_, plan)| plan.rows.len()).sum());

    progress.set_message("copy");
    let mut ceilings = Ceilings::default();
    if timed {
        ceilings.copy = Some(measure_copy(&device, flags)?);
        progress.set_message("multiply-adds");
        ceilings.fp32 = roofline::measure::<f32>(&device, flags)?;
        ceilings.fp64 = roofline::measure::<f64>(&device, flags)?;
    }
    let mut reports = Vec::new();
    for (name, plan) in plans {
        let mut rows = Vec::new();
        for row in &plan.rows {
            progress.set_message(row.name());
            rows.push(run_row(&device, row.as_ref(), flags, &ceilings)?);
            progress.inc(1);
        }
        reports.push(FamilyReport {
            name: name.to_owned(),
            problems: vec![ProblemReport {
                size: plan.size,
                elements: plan.elements,
                problem: plan.problem,
                boundary: plan.boundary,
                working_set_bytes: plan.working_set_bytes,
                notes: notes(&device, plan.working_set_bytes),
                rows,
                left_out: plan.left_out,
            }],
        });
    }
    progress.finish_and_clear();

    let report = Report {
        environment: environment::of(describe(&device, why), date),
        launches: flags.launches(),
        warmup: flags.warmup,
        timing: match device.kind() {
            DeviceKind::Cuda => Some("median, each launch between two CUDA events".to_owned()),
            DeviceKind::Cpu => Some("median, by the host's clock".to_owned()),
            DeviceKind::Emulator => None,
        },
        ceilings,
        rivals: Vec::new(),
        families: reports,
    };
    finish(flags, &report)
}

/// Prints the report, and writes it where the flags say.
fn finish(flags: &Bench, report: &Report) -> Result<Outcome, Error> {
    output::line(report.to_text().trim_end());
    files::write(flags, report)?;
    Ok(if report.passes() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

/// The device that the flag asks for and, where that is not the GPU that
/// `auto` looks for first, why.
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
                    crate::error::chain(&error)
                );
                (Device::cpu(), Some(why))
            }
        },
    })
}

fn describe(device: &Device, why: Option<String>) -> DeviceReport {
    let properties = device.properties();
    DeviceReport {
        kind: match device.kind() {
            DeviceKind::Cuda => "cuda",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Emulator => "emulator",
        }
        .to_owned(),
        name: match device.kind() {
            DeviceKind::Cuda => device.name().to_owned(),
            DeviceKind::Cpu | DeviceKind::Emulator => processor(),
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
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
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

/// What a reader of a family's numbers must know besides.
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

/// Checks a row and, where its errors are within bounds, times it.
fn run_row(
    device: &Device,
    row: &dyn Row,
    flags: &Bench,
    ceilings: &Ceilings,
) -> Result<RowReport, Error> {
    let work = row.work();
    let mut prepared = row.prepare(device)?;
    let check = prepared.check()?;
    let within_bounds = check.passes();
    let timed = within_bounds && device.kind() != DeviceKind::Emulator;
    let time = if timed {
        Times::of(&time_row(device, flags, prepared.as_mut())?)
    } else {
        None
    };
    Ok(RowReport {
        name: row.name(),
        tile: row.tile(),
        check,
        within_bounds,
        work,
        single: time.map(|time| Measured::new(&work, time, 1, ceilings)),
        replayed: None,
        contenders: Vec::new(),
    })
}

/// How long each of the timed launches of a row took, after the warm-up.
fn time_row(
    device: &Device,
    flags: &Bench,
    row: &mut dyn Prepared,
) -> Result<Vec<Duration>, Error> {
    let restores = row.restore()?;
    if device.kind() == DeviceKind::Cuda && !restores {
        let (warmup, launches) = (flags.warmup as usize, flags.launches() as usize);
        return Ok(device.time_each(warmup, launches, || row.launch())?);
    }
    // Each launch between marks of its own, since something may stand between
    // two launches. A GPU is still busy with that when the launch reaches it, so
    // no overhead of the launch counts.
    repeat(flags, budget(device), || {
        row.restore()?;
        Ok(device.time(|| row.launch())?)
    })
}

/// How long the launches of one row may take together before they become fewer,
/// where the flags do not say how many they are: none waits minutes for a row.
fn budget(device: &Device) -> Duration {
    match device.kind() {
        DeviceKind::Cuda => Duration::MAX,
        DeviceKind::Cpu | DeviceKind::Emulator => Duration::from_secs(2),
    }
}

/// The fewest launches that have a median worth the name.
const FEWEST_LAUNCHES: usize = 3;

/// Calls `timed` for the warm-up and then for each of the launches that count.
///
/// Where the flags name no number of launches, the warm-up ends once `budget` is
/// used up, and so do the launches that count if there are [`FEWEST_LAUNCHES`];
/// at five times the budget, whatever there is must do.
fn repeat(
    flags: &Bench,
    budget: Duration,
    mut timed: impl FnMut() -> Result<Duration, Error>,
) -> Result<Vec<Duration>, Error> {
    let mut used = Duration::ZERO;
    let used_up = |used: Duration, times: u32| {
        flags.launches.is_none() && used >= budget.saturating_mul(times)
    };
    for _ in 0..flags.warmup {
        used += timed()?;
        if used_up(used, 1) {
            break;
        }
    }
    let mut timings = Vec::new();
    for _ in 0..flags.launches() {
        let took = timed()?;
        used += took;
        timings.push(took);
        let few = timings.len() < FEWEST_LAUNCHES;
        if used_up(used, if few { 5 } else { 1 }) {
            break;
        }
    }
    Ok(timings)
}

/// Size of each of the two arrays of the copy. Much more than any cache holds,
/// so that it is memory that is measured.
const COPY_BYTES_GPU: usize = 1 << 30;
const COPY_BYTES_CPU: usize = 1 << 28;

/// Measures what the device's memory can do: one array copied to another.
fn measure_copy(device: &Device, flags: &Bench) -> Result<Ceiling, Error> {
    let (timings, array_bytes, what) = match device.kind() {
        DeviceKind::Cuda => {
            let (timings, bytes) = copy_on_gpu(device, flags)?;
            (timings, bytes, "device-to-device copy".to_owned())
        }
        DeviceKind::Cpu | DeviceKind::Emulator => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
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
    Ok(Ceiling::of(2 * array_bytes as u64, time, method))
}

/// Times copies within the GPU's memory; returns the array's size as well,
/// which is smaller where the memory is.
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

/// Times copies in the host's memory, each thread copying a part of its own.
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
    repeat(flags, budget(device), || {
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

/// A progress bar on standard error; nothing where that is no terminal.
fn progress(rows: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// A row that counts its launches and has whatever error it is told.
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
            Ok(Check {
                rms_error: self.error,
                rms_bound: 1.0,
                max_error: self.error,
                max_bound: 1.0,
            })
        }

        fn launch(&mut self) -> Result<(), halo_gpu::Error> {
            self.launches.set(self.launches.get() + 1);
            Ok(())
        }
    }

    fn flags() -> Bench {
        Bench {
            device: DeviceChoice::Cpu,
            families: Vec::new(),
            size: None,
            launches: Some(7),
            warmup: 2,
            list: false,
            json: None,
            compare: false,
            csv: None,
            html: None,
            svg: None,
            from: Vec::new(),
        }
    }

    /// The report of a row with this error on this device, and its launches.
    fn outcome(error: f64, device: &Device) -> (RowReport, u32) {
        let row = Fake {
            error,
            launches: Rc::default(),
        };
        let report = run_row(device, &row, &flags(), &Ceilings::default()).unwrap();
        (report, row.launches.get())
    }

    #[test]
    fn a_row_within_bounds_is_launched_for_warm_up_and_time() {
        let (report, launches) = outcome(1.0, &Device::cpu());
        assert_eq!(launches, 9);
        assert_eq!(report.single.unwrap().time.launches, 7);
    }

    #[test]
    fn a_row_out_of_bounds_is_never_timed() {
        for error in [1.5, f64::INFINITY, f64::NAN] {
            let (report, launches) = outcome(error, &Device::cpu());
            assert_eq!(launches, 0, "{error}");
            assert!(!report.within_bounds && report.single.is_none());
        }
    }

    #[test]
    fn nothing_is_timed_on_the_emulator() {
        let (report, launches) = outcome(0.0, &Device::emulator());
        assert_eq!(launches, 0);
        assert!(report.within_bounds && report.single.is_none());
    }

    #[test]
    fn slow_launches_become_fewer_unless_their_number_is_given() {
        let budget = Duration::from_millis(100);
        // How often a launch that takes this long is run and counted.
        let count = |launches: Option<u32>, milliseconds: u64| {
            let flags = Bench {
                launches,
                ..flags()
            };
            let mut calls = 0;
            let timings = repeat(&flags, budget, || {
                calls += 1;
                Ok(Duration::from_millis(milliseconds))
            })
            .unwrap();
            (calls, timings.len())
        };
        assert_eq!(count(None, 1), (2 + 20, 20));
        assert_eq!(count(None, 10), (2 + 8, 8));
        assert_eq!(count(None, 100), (1 + 3, 3));
        assert_eq!(count(None, 250), (1 + 1, 1));
        assert_eq!(count(Some(7), 1000), (2 + 7, 7));
    }

    #[test]
    fn the_copy_is_timed_once_a_launch_on_any_number_of_threads() {
        for threads in [1, 2, 3] {
            let timings = copy_on_cpu(&Device::cpu(), threads, 1 << 12, &flags()).unwrap();
            assert_eq!(timings.len(), 7);
        }
    }
}
