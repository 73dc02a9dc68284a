//! Writes a record as comma-separated values, one line for each timing of a kernel or of a
//! baseline.
//!
//! The first lines start with `#` and describe the environment; readers skip them with
//! `comment="#"`. Every other line is complete in itself. The names of the columns contain the
//! units; a missing measurement is an empty field.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::record::{BaselineRow, Check, Record};
use crate::view::{Mode, PlacedRow, Timed};

/// The contestant's name of the measured kernel itself.
const OWN: &str = "rust";

/// A line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct CsvLine {
    family: String,
    /// As `--size` takes it.
    size: String,
    elements: u64,
    kernel: String,
    tile: String,
    /// The contestant: "rust", or the name of a baseline.
    by: String,
    /// "single" or "replayed"; empty where nothing was timed.
    mode: String,
    launches: Option<usize>,
    /// The number of launches by which each timing was divided.
    launches_per_timing: Option<u32>,
    time_median_s: Option<f64>,
    time_min_s: Option<f64>,
    time_max_s: Option<f64>,
    /// Half the distance between the quartiles over the median.
    time_relative_spread: Option<f64>,
    /// The work of one launch.
    work_bytes: u64,
    work_flop: u64,
    work_items: u64,
    item: String,
    bandwidth_bytes_per_s: Option<f64>,
    arithmetic_flop_per_s: Option<f64>,
    rate_items_per_s: Option<f64>,
    fraction_of_copy: Option<f64>,
    /// The limit that binds: "memory", "read", "fp32" or "fp64".
    limit: String,
    limit_time_s: Option<f64>,
    fraction_of_limit: Option<f64>,
    /// The kernel's time over the baseline's, timed in turns.
    time_ratio_rust_to_baseline: Option<f64>,
    time_ratio_spread: Option<f64>,
    /// The verdict on the kernel: "faster", "equal" or "slower".
    rust_is: String,
    rms_error: Option<f64>,
    rms_error_bound: Option<f64>,
    max_error: Option<f64>,
    max_error_bound: Option<f64>,
    /// Empty where the baseline was not checked.
    within_bounds: Option<bool>,
    /// Why the baseline took no part.
    why_not: String,
    /// The variant of the contestant, where it has several.
    how: String,
}

/// The whole record.
///
/// # Errors
///
/// If a line cannot be formatted.
pub fn to_csv(record: &Record) -> Result<String, Error> {
    of_lines(record.facts(), record.places().flat_map(lines))
}

/// These lines, below the description of the environment.
pub(crate) fn of_lines(
    facts: Vec<(&'static str, String)>,
    lines: impl Iterator<Item = impl Serialize>,
) -> Result<String, Error> {
    // A line break would end the comment.
    let comment =
        |(word, rest): (&str, String)| format!("# {word}: {}\n", rest.replace(['\n', '\r'], " "));
    let mut text: String = facts.into_iter().map(comment).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.serialize(line)?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))?;
    text.push_str(&String::from_utf8_lossy(&bytes));
    Ok(text)
}

/// A line for the kernel in each way that it was timed, and for each baseline; one line for each
/// that was not timed.
fn lines(place: PlacedRow<'_>) -> Vec<CsvLine> {
    let everybody = std::iter::once(None).chain(place.row.baselines.iter().map(Some));
    everybody
        .flat_map(|by| {
            let all = Mode::ALL.into_iter().filter_map(move |mode| match by {
                None => place.own(mode),
                Some(baseline) => place.of(baseline, mode),
            });
            let untimed = untimed(place, by);
            let lines: Vec<CsvLine> = all.map(|it| timed(untimed.clone(), it)).collect();
            if lines.is_empty() {
                vec![untimed]
            } else {
                lines
            }
        })
        .collect()
}

/// The note on a contestant that has no time.
fn untimed(place: PlacedRow<'_>, by: Option<&BaselineRow>) -> CsvLine {
    let (problem, row) = (place.problem, place.row);
    let check = match by {
        None => Some(row.check),
        Some(baseline) => baseline.check,
    };
    let of = |value: fn(&Check) -> f64| check.as_ref().map(value);
    CsvLine {
        family: place.family.name.clone(),
        size: problem.size.clone(),
        elements: problem.elements,
        kernel: row.name.clone(),
        tile: row.tile.clone(),
        by: by.map_or(OWN, |baseline| &baseline.name).to_owned(),
        work_bytes: row.work.bytes,
        work_flop: row.work.flops,
        work_items: row.work.items,
        item: row.work.unit.plural().trim_end_matches('s').to_owned(),
        rms_error: of(|check| check.rms_error),
        rms_error_bound: of(|check| check.rms_bound),
        max_error: of(|check| check.max_error),
        max_error_bound: of(|check| check.max_bound),
        within_bounds: check.map(|check| check.passes()),
        why_not: by
            .and_then(|baseline| baseline.why_not.clone())
            .unwrap_or_default(),
        how: by
            .and_then(|baseline| baseline.how.clone())
            .unwrap_or_default(),
        ..CsvLine::default()
    }
}

/// The line of a contestant with a time, and the values derived from it.
fn timed(line: CsvLine, timed: Timed<'_>) -> CsvLine {
    let (time, row, ratio) = (timed.time, timed.place.row, timed.ratio());
    let least = timed.place.least();
    let (mode, graph) = match timed.mode {
        Mode::Single => ("single", Some(1)),
        Mode::Replayed => ("replayed", row.launches_per_graph),
    };
    CsvLine {
        mode: mode.to_owned(),
        launches: Some(time.launches),
        launches_per_timing: graph,
        time_median_s: Some(time.median_s),
        time_min_s: Some(time.min_s),
        time_max_s: Some(time.max_s),
        time_relative_spread: Some(time.relative_spread),
        bandwidth_bytes_per_s: Some(timed.per_s(row.work.bytes)),
        arithmetic_flop_per_s: Some(timed.per_s(row.work.flops)),
        rate_items_per_s: Some(timed.per_s(row.work.items)),
        fraction_of_copy: timed.of_copy(),
        limit: least.map_or(String::new(), |(roof, _)| roof.name().to_lowercase()),
        limit_time_s: least.map(|(_, least_s)| least_s),
        fraction_of_limit: timed.of_limit().map(|(_, fraction)| fraction),
        time_ratio_rust_to_baseline: ratio.map(|ratio| ratio.value),
        time_ratio_spread: ratio.map(|ratio| ratio.spread),
        rust_is: ratio.map_or("", |ratio| ratio.verdict.name()).to_owned(),
        ..line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// The comments, and the lines as a reader of such files parses them.
    fn read(text: &str) -> (Vec<&str>, Vec<CsvLine>) {
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

    fn lines_of(record: &Record) -> Vec<CsvLine> {
        record.places().flat_map(lines).collect()
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        let report = sample::whole();
        // NaN equals nothing, and the sample has one.
        let known = |lines: Vec<CsvLine>| -> Vec<CsvLine> {
            lines
                .into_iter()
                .filter(|line| line.max_error.is_none_or(|error| !error.is_nan()))
                .collect()
        };
        let (_, lines) = read(&to_csv(&report).unwrap());
        assert_eq!(lines.len(), lines_of(&report).len());
        let wrong: Vec<&CsvLine> = lines
            .iter()
            .filter(|line| line.within_bounds == Some(false))
            .collect();
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].max_error.unwrap().is_nan() && wrong[0].mode.is_empty());
        assert_eq!(known(lines), known(lines_of(&report)));
    }

    #[test]
    fn every_way_of_being_timed_has_a_line() {
        let (_, lines) = read(&to_csv(&sample::whole()).unwrap());
        let check = |kernel: &str, size: &str, expect: &[(&str, &str)]| {
            let found: Vec<(&str, &str)> = lines
                .iter()
                .filter(|line| line.kernel == kernel && line.size == size)
                .map(|line| (line.by.as_str(), line.mode.as_str()))
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
        let (_, lines) = read(&to_csv(&sample::whole()).unwrap());
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
                        && own.by == OWN
                })
                .unwrap();
            if line.by != OWN {
                compared += 1;
                let ratio = line.time_ratio_rust_to_baseline.unwrap();
                assert!(close(ratio * time, own.time_median_s.unwrap()));
                assert!(["faster", "equal", "slower"].contains(&line.rust_is.as_str()));
            }
        }
        assert!(compared > 20);
    }

    #[test]
    fn comments_say_what_was_measured_where() {
        let mut report = sample::whole();
        report.environment.device.why = Some("two\nlines".to_owned());
        let text = to_csv(&report).unwrap();
        let (comments, lines) = read(&text);
        for part in [
            "# device: Fixture GPU <made up> (cuda)",
            "# why: two lines",
            "# built by: rustc 1.95.0, LLVM 22.1.2; from commit 0123456789ab",
            "# nvcc: 13.0.88",
            "# against: absent: someone else; NOT COMPARED: there is none & never was",
            "# copy: 4.00 TB/s, made up: a copy of 1024 MiB",
        ] {
            assert!(comments.contains(&part), "{part} is not in {comments:#?}");
        }
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
        let text = to_csv(&sample::record(Vec::new())).unwrap();
        let (comments, lines) = read(&text);
        assert!(lines.is_empty() && !comments.is_empty());
    }

    #[test]
    fn names_with_commas_and_quotes_stay_one_value() {
        let name = "stencil1d_constant, \"derivative\"";
        let report = sample::record(vec![sample::row(name, 1e-5)]);
        let (_, lines) = read(&to_csv(&report).unwrap());
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].kernel, name);
    }
}
