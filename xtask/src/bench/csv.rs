//! The report as comma-separated values: a line for each way in which somebody
//! was timed at a kernel's work.
//!
//! Lines that start with `#` come first and say what was measured where; readers
//! skip them when told so (`comment="#"`). Every other line stands for itself:
//! nothing has to be carried over from the line before. Units are in the names of
//! the columns; what was not measured is empty.

use serde::{Deserialize, Serialize};

use super::report::{
    Against, Check, FamilyReport, Measured, ProblemReport, Report, Roof, RowReport, Unit, Work,
};
use super::stats::{Times, Verdict};
use crate::error::Error;

/// Who did the work, where it was the measured kernel itself.
const OWN: &str = "rust";

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Line {
    family: String,
    /// As `--size` takes it.
    size: String,
    elements: u64,
    kernel: String,
    tile: String,
    /// "rust", or the name of a rival.
    contender: String,
    /// "single" or "replayed"; empty where nothing was timed.
    mode: String,
    launches: Option<usize>,
    /// How many launches each timing was divided by.
    launches_per_timing: Option<u32>,
    time_median_s: Option<f64>,
    time_min_s: Option<f64>,
    time_max_s: Option<f64>,
    /// Half the distance between the quartiles over the median.
    time_relative_spread: Option<f64>,
    /// What one launch has to do.
    work_bytes: u64,
    work_flop: u64,
    work_items: u64,
    item: String,
    bandwidth_bytes_per_s: Option<f64>,
    arithmetic_flop_per_s: Option<f64>,
    rate_items_per_s: Option<f64>,
    fraction_of_copy: Option<f64>,
    /// The limit that binds: "memory", "fp32" or "fp64".
    limit: String,
    limit_time_s: Option<f64>,
    fraction_of_limit: Option<f64>,
    /// The kernel's time over the contender's, timed in turns.
    time_ratio_rust_to_contender: Option<f64>,
    time_ratio_spread: Option<f64>,
    /// What that says of the kernel: "faster", "equal" or "slower".
    rust_is: String,
    rms_error: Option<f64>,
    rms_error_bound: Option<f64>,
    max_error: Option<f64>,
    max_error_bound: Option<f64>,
    /// Empty where the contender did not get as far as being checked.
    within_bounds: Option<bool>,
    /// Why the contender took no part.
    why_not: String,
}

/// The whole report.
pub(crate) fn to_csv(report: &Report) -> Result<String, Error> {
    let mut text = String::new();
    for (name, value) in environment(report) {
        // A comment ends with its line.
        let value = value.replace(['\n', '\r'], " ");
        text.push_str(&format!("# {name}: {value}\n"));
    }
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines(report) {
        writer.serialize(line).map_err(csv_error)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv_error(error.into_error().into()))?;
    text.push_str(&String::from_utf8_lossy(&bytes));
    Ok(text)
}

fn csv_error(error: csv::Error) -> Error {
    Error::Bench(format!("cannot write comma-separated values: {error}"))
}

/// What was measured where, as the comments at the beginning say it.
fn environment(report: &Report) -> Vec<(&'static str, String)> {
    let environment = &report.environment;
    let device = &environment.device;
    let mut lines = vec![
        ("device", device.name.clone()),
        ("kind of device", device.kind.clone()),
    ];
    let mut optional = |name, value: &Option<String>| {
        lines.extend(value.clone().map(|value| (name, value)));
    };
    optional("compute capability", &device.compute_capability);
    optional("driver", &device.driver);
    optional("PTX target", &device.ptx_target);
    optional("why not a GPU", &device.why);
    optional("nvcc", &environment.toolkit.nvcc);
    optional("why no nvcc", &environment.toolkit.why_not);
    optional("commit", &environment.commit);
    optional("timing", &report.timing);
    lines.extend([
        ("rustc", environment.rustc.clone()),
        ("LLVM", environment.llvm.clone()),
        ("date", environment.date.clone()),
        ("launches", report.launches.to_string()),
        ("warm-up launches", report.warmup.to_string()),
    ]);
    for (name, unit, ceiling) in [
        ("copy", "B/s", &report.ceilings.copy),
        ("FP32 issue", "multiply-adds/s", &report.ceilings.fp32),
        ("FP64 issue", "multiply-adds/s", &report.ceilings.fp64),
    ] {
        lines.extend(ceiling.as_ref().map(|found| {
            (
                name,
                format!("{:.4e} {unit}, {}", found.per_s, found.method),
            )
        }));
    }
    for rival in &report.rivals {
        let took_part = match &rival.why_not {
            None => String::new(),
            Some(why) => format!("; took no part: {why}"),
        };
        lines.push((
            "contender",
            format!("{}: {}{took_part}", rival.name, rival.what),
        ));
    }
    lines
}

fn lines(report: &Report) -> Vec<Line> {
    let mut lines = Vec::new();
    for family in &report.families {
        for problem in &family.problems {
            for row in &problem.rows {
                lines.extend(of_row(family, problem, row));
            }
        }
    }
    lines
}

/// A line for the kernel in each way it was timed, and for each contender.
fn of_row(family: &FamilyReport, problem: &ProblemReport, row: &RowReport) -> Vec<Line> {
    let common = Line {
        family: family.name.clone(),
        size: problem.size.clone(),
        elements: problem.elements,
        kernel: row.name.clone(),
        tile: row.tile.clone(),
        work_bytes: row.work.bytes,
        work_flop: row.work.flops,
        work_items: row.work.items,
        item: match row.work.unit {
            Unit::Points => "point",
            Unit::Interactions => "interaction",
        }
        .to_owned(),
        ..Line::default()
    };
    let own = Line {
        contender: OWN.to_owned(),
        within_bounds: Some(row.within_bounds),
        ..checked(common.clone(), Some(&row.check))
    };
    let modes = [("single", &row.single), ("replayed", &row.replayed)];
    let mut lines: Vec<Line> = modes
        .into_iter()
        .filter_map(|(mode, measured)| {
            let measured = measured.as_ref()?;
            let line = timed(own.clone(), mode, &row.work, &measured.time);
            Some(limited(line, &measured.time, measured))
        })
        .collect();
    if lines.is_empty() {
        lines.push(own);
    }
    for contender in &row.contenders {
        let theirs = Line {
            contender: contender.name.clone(),
            within_bounds: contender.check.map(|_| contender.within_bounds),
            why_not: contender.why_not.clone().unwrap_or_default(),
            ..checked(common.clone(), contender.check.as_ref())
        };
        let modes = [
            ("single", &contender.single, &row.single),
            ("replayed", &contender.replayed, &row.replayed),
        ];
        let before = lines.len();
        for (mode, against, own) in modes {
            if let Some(Against { time, ratio }) = against {
                let line = timed(theirs.clone(), mode, &row.work, time);
                lines.push(Line {
                    time_ratio_rust_to_contender: Some(ratio.value),
                    time_ratio_spread: Some(ratio.spread),
                    rust_is: match ratio.verdict {
                        Verdict::Faster => "faster",
                        Verdict::Equal => "equal",
                        Verdict::Slower => "slower",
                    }
                    .to_owned(),
                    ..match own {
                        Some(own) => limited(line, time, own),
                        None => line,
                    }
                });
            }
        }
        if lines.len() == before {
            lines.push(theirs);
        }
    }
    lines
}

fn checked(line: Line, check: Option<&Check>) -> Line {
    Line {
        rms_error: check.map(|check| check.rms_error),
        rms_error_bound: check.map(|check| check.rms_bound),
        max_error: check.map(|check| check.max_error),
        max_error_bound: check.map(|check| check.max_bound),
        ..line
    }
}

/// The times of somebody, and the rates that follow.
fn timed(line: Line, mode: &str, work: &Work, time: &Times) -> Line {
    Line {
        mode: mode.to_owned(),
        launches: Some(time.launches),
        time_median_s: Some(time.median_s),
        time_min_s: Some(time.min_s),
        time_max_s: Some(time.max_s),
        time_relative_spread: Some(time.relative_spread),
        bandwidth_bytes_per_s: Some(work.bytes as f64 / time.median_s),
        arithmetic_flop_per_s: Some(work.flops as f64 / time.median_s),
        rate_items_per_s: Some(work.items as f64 / time.median_s),
        ..line
    }
}

/// How near a time comes to the limits, which are the same for whoever does the
/// work.
fn limited(line: Line, time: &Times, own: &Measured) -> Line {
    let scale = own.time.median_s / time.median_s;
    let line = Line {
        launches_per_timing: Some(own.launches_per_timing),
        fraction_of_copy: own.rates.fraction_of_copy.map(|fraction| fraction * scale),
        ..line
    };
    match own.roof {
        None => line,
        Some(reached) => Line {
            limit: match reached.roof {
                Roof::Memory => "memory",
                Roof::Fp32 => "fp32",
                Roof::Fp64 => "fp64",
            }
            .to_owned(),
            limit_time_s: Some(reached.least_s),
            fraction_of_limit: Some(reached.least_s / time.median_s),
            ..line
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::fake;
    use super::super::sample;
    use super::*;

    /// The comments, and the lines as a reader of such files has them.
    fn read(text: &str) -> (Vec<&str>, Vec<Line>) {
        let comments = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .collect();
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let lines = reader.deserialize().map(|line| line.unwrap()).collect();
        (comments, lines)
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let report = sample::report();
        // NaN equals nothing, and the sample has one.
        let known = |lines: Vec<Line>| -> Vec<Line> {
            lines
                .into_iter()
                .filter(|line| line.max_error.is_none_or(|error| !error.is_nan()))
                .collect()
        };
        let (_, lines) = read(&to_csv(&report).unwrap());
        assert_eq!(lines.len(), super::lines(&report).len());
        let wrong: Vec<&Line> = lines
            .iter()
            .filter(|line| line.within_bounds == Some(false))
            .collect();
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].max_error.unwrap().is_nan() && wrong[0].mode.is_empty());
        assert_eq!(known(lines), known(super::lines(&report)));
    }

    #[test]
    fn every_way_of_being_timed_has_a_line() {
        let (_, lines) = read(&to_csv(&sample::report()).unwrap());
        let check = |kernel: &str, size: &str, expect: &[(&str, &str)]| {
            let found: Vec<(&str, &str)> = lines
                .iter()
                .filter(|line| line.kernel == kernel && line.size == size)
                .map(|line| (line.contender.as_str(), line.mode.as_str()))
                .collect();
            assert_eq!(found, expect, "{kernel} {size}");
        };
        check(
            "heat2d_global",
            "256x256",
            &[
                ("rust", "single"),
                ("rust", "replayed"),
                ("nvcc", "single"),
                ("nvcc", "replayed"),
            ],
        );
        check(
            "nbody_shared_f32",
            "131072",
            &[
                ("rust", "single"),
                ("nvcc", "single"),
                ("n-body sample style", "single"),
            ],
        );
        check("derivative3d_y_wrong", "512x512x512", &[("rust", "")]);
    }

    #[test]
    fn rates_and_ratios_are_those_of_the_times() {
        let (_, lines) = read(&to_csv(&sample::report()).unwrap());
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
        let mut compared = 0;
        for line in lines.iter().filter(|line| !line.mode.is_empty()) {
            let time = line.time_median_s.unwrap();
            let bandwidth = line.bandwidth_bytes_per_s.unwrap();
            assert!(close(bandwidth * time, line.work_bytes as f64));
            let limit = line.limit_time_s.unwrap();
            assert!(close(line.fraction_of_limit.unwrap() * time, limit));
            let own = lines
                .iter()
                .find(|own| {
                    (&own.kernel, &own.size, &own.mode) == (&line.kernel, &line.size, &line.mode)
                        && own.contender == OWN
                })
                .unwrap();
            if line.contender != OWN {
                compared += 1;
                let ratio = line.time_ratio_rust_to_contender.unwrap();
                assert!(close(ratio * time, own.time_median_s.unwrap()));
                assert!(["faster", "equal", "slower"].contains(&line.rust_is.as_str()));
            }
        }
        assert!(compared > 20);
    }

    #[test]
    fn comments_say_what_was_measured_where() {
        let mut report = sample::report();
        report.environment.device.why = Some("two\nlines".to_owned());
        let text = to_csv(&report).unwrap();
        let (comments, lines) = read(&text);
        for part in [
            "# device: Fixture GPU <made up>",
            "# why not a GPU: two lines",
            "# rustc: 1.95.0",
            "# LLVM: 22.1.2",
            "# commit: 0123456789ab",
            "# nvcc: 13.0.88",
            "# contender: absent: someone else; took no part: there is none & never was",
        ] {
            assert!(comments.contains(&part), "{part} is not in {comments:#?}");
        }
        assert!(
            comments
                .iter()
                .any(|line| line.starts_with("# copy: 4.0004e12 B/s"))
        );
        assert!(!lines.is_empty());
    }

    #[test]
    fn a_run_without_times_or_rows_has_a_file_too() {
        let (_, lines) = read(&to_csv(&sample::untimed()).unwrap());
        assert!(!lines.is_empty());
        for line in &lines {
            assert!(line.mode.is_empty() && line.time_median_s.is_none());
            assert!(line.rms_error.is_some());
        }
        let text = to_csv(&fake::report(Vec::new())).unwrap();
        let (comments, lines) = read(&text);
        assert!(lines.is_empty() && !comments.is_empty());
    }

    #[test]
    fn names_with_commas_and_quotes_stay_one_value() {
        let name = "stencil1d_constant, \"derivative\"";
        let report = fake::report(vec![fake::row(name, 1e-5)]);
        let (_, lines) = read(&to_csv(&report).unwrap());
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].kernel, name);
    }
}
