//! The frame of every family's benchmark: chooses the device, plans, measures, prints and writes.

use std::cell::RefCell;
use std::rc::Rc;

use cargo_halo::{Outcome, output};
use gpu_kernels::registry;
use halo_gpu::{Device, DeviceKind};
use halo_report::record::{Ceilings, FamilyRecord, ProblemRecord, Record};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::baselines::Baselines;
use super::error::Error;
use super::flags::Bench;
use super::row::{Family, Plan};
use super::sink::Sink;
use super::size::Size;
use super::{copy, cpp, environment, issue_rates, measure, measured, rows};

/// Runs the families that the flags name. Prints and writes the results of each as soon as it is
/// done.
pub(super) fn run(flags: &Bench) -> Result<Outcome, Error> {
    let is_wanted =
        |name: &&str| flags.families.is_empty() || flags.families.iter().any(|it| it == name);
    let families: Vec<&registry::Family> = measured::families()
        .filter(is_wanted)
        .filter_map(registry::family)
        .collect();
    if flags.list {
        for kernel in families
            .iter()
            .flat_map(|family| measured::kernels(family.name))
        {
            output::line(kernel);
        }
        return Ok(Outcome::Clean);
    }

    let mut sink = Sink::open(flags)?;
    let date = environment::now();
    let (device, why) = environment::choose(flags.device)?;
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
        ceilings.copy = Some(copy::measure(&device, flags)?);
        progress.set_message("multiply-adds");
        ceilings.fp32 = issue_rates::measure::<f32>(&device, flags)?;
        ceilings.fp64 = issue_rates::measure::<f64>(&device, flags)?;
        for work in cpp::machine() {
            let mut limits = baselines.limits(&work)?;
            if !limits.is_empty() {
                measure::limits(&device, flags, &mut limits, &mut ceilings)?;
            }
        }
    }
    let mut record = Record {
        environment: environment::of(
            environment::describe(&device, why),
            baselines.toolkit.take(),
            date,
        ),
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
        let family = match run_family(&device, name, plans, flags, &baselines, &progress) {
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

/// The plans of a family, size by size.
fn plans_of(
    family: &'static registry::Family,
    device: &Device,
    flags: &Bench,
) -> Result<Vec<Plan>, Error> {
    let mut plans = Vec::new();
    for size in sizes(rows::own(family), device.kind(), flags)? {
        let mut plan = rows::plan(family, device, size.as_ref())?;
        if let Some(error) = plan.refused.take_if(|_| !flags.compare) {
            return Err(error);
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// Runs a family.
fn run_family(
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
            rows.push(measure::row(device, name, row.as_ref(), flags, baselines)?);
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

/// The sizes at which this family is run; `None` is its own size.
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

/// A progress bar on standard error, if that is a terminal.
fn progress(rows: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(rows as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::tests::flags;

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
        for family in rows::FAMILIES {
            // As the benchmark plans it.
            let planned = |device: &Device, size: &str| {
                let kernels = registry::family(family.name).unwrap();
                rows::plan(kernels, device, Some(&size.parse().unwrap()))
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
}
