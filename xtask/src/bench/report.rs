//! What a run of the benchmark came to: as a table to read, as JSON to keep.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::stats::Times;

/// One run of the benchmark.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) device: DeviceReport,
    /// Timed launches per row.
    pub(crate) launches: u32,
    /// Launches before those, not counted.
    pub(crate) warmup: u32,
    /// How times were taken; `None` where no speed is compared.
    pub(crate) timing: Option<&'static str>,
    /// What every bandwidth is set against; `None` where no speed is compared.
    pub(crate) copy: Option<CopyReport>,
    pub(crate) families: Vec<FamilyReport>,
}

/// Where the run took place.
#[derive(Debug, Serialize)]
pub(crate) struct DeviceReport {
    /// "cuda", "cpu" or "emulator".
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    /// "9.0" and the like.
    pub(crate) compute_capability: Option<String>,
    /// What the driver says of itself.
    pub(crate) driver: Option<String>,
    /// The target of the PTX that was loaded, such as "sm_90".
    pub(crate) ptx_target: Option<String>,
    /// Why this device and not a GPU, where that needs saying.
    pub(crate) why: Option<String>,
}

/// A measured copy: the ceiling for anything that moves bytes.
#[derive(Debug, Serialize)]
pub(crate) struct CopyReport {
    /// Bytes read plus bytes written in one copy.
    pub(crate) bytes_moved: u64,
    pub(crate) time: Times,
    pub(crate) bytes_per_s: f64,
    /// How it was measured.
    pub(crate) method: String,
}

/// The rows of one family.
#[derive(Debug, Serialize)]
pub(crate) struct FamilyReport {
    pub(crate) name: &'static str,
    /// Equation, size, element type.
    pub(crate) problem: String,
    /// The convention at the ends of the field.
    pub(crate) boundary: Option<String>,
    /// What a reader of the numbers must know besides.
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<RowReport>,
}

/// One kernel (or CPU port), checked and timed.
#[derive(Debug, Serialize)]
pub(crate) struct RowReport {
    pub(crate) name: String,
    /// What one block works on.
    pub(crate) tile: String,
    pub(crate) check: Check,
    /// Whether the check passed; nothing was timed where it did not.
    pub(crate) within_bounds: bool,
    pub(crate) work: Work,
    pub(crate) time: Option<Times>,
    pub(crate) rates: Option<Rates>,
}

/// The errors of one row, and the most each may be.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) rms_error: f64,
    pub(crate) rms_bound: f64,
    pub(crate) max_error: f64,
    pub(crate) max_bound: f64,
}

impl Check {
    /// These errors, against these bounds.
    #[cfg(feature = "bench")]
    pub(crate) fn new(errors: halo_gpu::Errors, bounds: halo_gpu::Errors) -> Self {
        Self {
            rms_error: errors.rms,
            rms_bound: bounds.rms,
            max_error: errors.max,
            max_bound: bounds.max,
        }
    }

    /// Whether both errors are within their bounds. NaN is not.
    pub(crate) fn passes(&self) -> bool {
        self.rms_error <= self.rms_bound && self.max_error <= self.max_bound
    }
}

/// What one launch has to do, whatever the kernel: the numerators of its rates.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Work {
    /// The fewest bytes that must move: every input once, every output once.
    pub(crate) bytes: u64,
    /// Floating-point operations, by the family's convention.
    pub(crate) flops: u64,
    /// How many of `unit` one launch handles.
    pub(crate) items: u64,
    pub(crate) unit: Unit,
    /// What the row's speed is given in.
    pub(crate) metric: Metric,
}

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Grid points, or elements of a sequence.
    Points,
    /// Pairs of bodies.
    #[allow(dead_code, reason = "n-body counts these")]
    Interactions,
}

/// What a family's speed is given in: it decides the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Effective bandwidth, and its fraction of the device's copy bandwidth.
    Bandwidth,
    /// Items and floating-point operations per second.
    #[allow(dead_code, reason = "families bound by arithmetic use this")]
    Throughput,
}

/// The speeds that follow from a row's work and its median time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Rates {
    pub(crate) bytes_per_s: f64,
    pub(crate) flops_per_s: f64,
    pub(crate) items_per_s: f64,
    /// `bytes_per_s` over the copy's.
    pub(crate) fraction_of_copy: Option<f64>,
}

impl Rates {
    /// The rates of this work done in this time.
    pub(crate) fn of(work: &Work, times: &Times, copy: Option<&CopyReport>) -> Self {
        let bytes_per_s = work.bytes as f64 / times.median_s;
        Self {
            bytes_per_s,
            flops_per_s: work.flops as f64 / times.median_s,
            items_per_s: work.items as f64 / times.median_s,
            fraction_of_copy: copy.map(|copy| bytes_per_s / copy.bytes_per_s),
        }
    }
}

impl Report {
    /// Whether every row passed its check, and there was at least one.
    pub(crate) fn passes(&self) -> bool {
        let mut rows = self
            .families
            .iter()
            .flat_map(|family| &family.rows)
            .peekable();
        rows.peek().is_some() && rows.all(|row| row.within_bounds)
    }

    /// The whole report as text: header, then a table per family.
    pub(crate) fn to_text(&self) -> String {
        let mut text = self.header();
        for family in &self.families {
            text.push('\n');
            text.push_str(&self.family(family));
        }
        text
    }

    fn header(&self) -> String {
        let mut lines = vec![(
            "device",
            format!("{} ({})", self.device.name, self.device.kind),
        )];
        if let Some(why) = &self.device.why {
            lines.push(("why", why.clone()));
        }
        if let Some(capability) = &self.device.compute_capability {
            lines.push(("capability", capability.clone()));
        }
        if let Some(driver) = &self.device.driver {
            lines.push(("driver", driver.clone()));
        }
        if let Some(target) = &self.device.ptx_target {
            lines.push(("PTX target", target.clone()));
        }
        match self.timing {
            Some(timing) => lines.push((
                "launches",
                format!(
                    "{} timed after {} of warm-up; {timing}",
                    self.launches, self.warmup
                ),
            )),
            None => lines.push((
                "launches",
                "1 per kernel, for its errors; the emulator's speed says nothing, so none is given"
                    .to_owned(),
            )),
        }
        if let Some(copy) = &self.copy {
            lines.push((
                "copy",
                format!("{}, {}", quantity(copy.bytes_per_s, "B/s"), copy.method),
            ));
        }
        columns(&lines)
    }

    fn family(&self, family: &FamilyReport) -> String {
        let mut lines = vec![
            ("family", family.name.to_owned()),
            ("problem", family.problem.clone()),
        ];
        if let Some(boundary) = &family.boundary {
            lines.push(("boundary", boundary.clone()));
        }
        lines.extend(family.notes.iter().map(|note| ("note", note.clone())));
        let mut text = columns(&lines);

        let metric = family.rows.first().map(|row| row.work.metric);
        let mut header = vec!["kernel", "tile", "RMS error", "max error"];
        if self.timing.is_some() {
            header.push("median time");
            match metric {
                Some(Metric::Bandwidth) | None => header.extend(["bandwidth", "of copy"]),
                Some(Metric::Throughput) => header.extend(["rate", "arithmetic"]),
            }
        }
        let width = header.len();
        let mut table = Table::new();
        table
            .load_style(presets::UTF8_FULL_CONDENSED)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(
                header
                    .iter()
                    .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
            );
        for row in &family.rows {
            let mut cells = vec![
                row.name.clone(),
                row.tile.clone(),
                error(row.check.rms_error, row.check.rms_bound),
                error(row.check.max_error, row.check.max_bound),
            ];
            cells.extend(speed_cells(row));
            cells.resize(width, String::new());
            table.add_row(cells);
        }
        for column in 2..width {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let _ = writeln!(text, "{table}");
        for (row, time) in family.rows.iter().filter_map(|row| Some((row, row.time?))) {
            if time.launches < self.launches as usize {
                let _ = writeln!(text, "{}: median of {} launches", row.name, time.launches);
            }
        }
        for row in family.rows.iter().filter(|row| !row.within_bounds) {
            let _ = writeln!(
                text,
                "{}: error out of bounds (RMS {:.3e}, at most {:.3e}; maximum {:.3e}, at most {:.3e}); not timed",
                row.name,
                row.check.rms_error,
                row.check.rms_bound,
                row.check.max_error,
                row.check.max_bound,
            );
        }
        text
    }
}

/// Time, rate and the column after it; empty where the row was not timed.
fn speed_cells(row: &RowReport) -> Vec<String> {
    let (Some(time), Some(rates)) = (&row.time, &row.rates) else {
        return Vec::new();
    };
    let mut cells = vec![duration(time.median_s)];
    match row.work.metric {
        Metric::Bandwidth => {
            cells.push(quantity(rates.bytes_per_s, "B/s"));
            cells.push(match rates.fraction_of_copy {
                Some(fraction) => format!("{:.1} %", 100.0 * fraction),
                None => "–".to_owned(),
            });
        }
        Metric::Throughput => {
            let unit = match row.work.unit {
                Unit::Points => "points/s",
                Unit::Interactions => "interactions/s",
            };
            cells.push(quantity(rates.items_per_s, unit));
            cells.push(quantity(rates.flops_per_s, "FLOP/s"));
        }
    }
    cells
}

/// Two columns of text, the first padded to its widest word.
fn columns(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
    lines
        .iter()
        .map(|(word, rest)| format!("{word:width$}  {rest}\n"))
        .collect()
}

/// An error as the table shows it, marked where it is out of bounds.
fn error(value: f64, bound: f64) -> String {
    let mark = if value <= bound { "" } else { " !" };
    if value == 0.0 {
        return format!("0{mark}");
    }
    format!("{value:.3e}{mark}")
}

/// A time with three or more digits and a unit that suits it.
fn duration(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{:.2} {unit}", seconds * scale)
}

/// A rate with a decimal prefix: "4.31 TB/s".
fn quantity(value: f64, unit: &str) -> String {
    let (scale, prefix) = match value {
        v if v >= 1e12 => (1e12, "T"),
        v if v >= 1e9 => (1e9, "G"),
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e3 => (1e3, "k"),
        _ => (1.0, ""),
    };
    // "4.31 TB/s", but "12.0 G interactions/s": a word keeps its distance.
    let gap = if prefix.is_empty() || unit.starts_with(char::is_uppercase) {
        ""
    } else {
        " "
    };
    format!("{:.2} {prefix}{gap}{unit}", value / scale)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn times(microseconds: u64) -> Times {
        Times::of(&[Duration::from_micros(microseconds)]).unwrap()
    }

    fn row(name: &str, max_error: f64) -> RowReport {
        let work = Work {
            bytes: 2_000_000,
            flops: 3_000_000,
            items: 250_000,
            unit: Unit::Points,
            metric: Metric::Bandwidth,
        };
        let check = Check {
            rms_error: 7.3e-6,
            rms_bound: 1e-5,
            max_error,
            max_bound: 1e-4,
        };
        let passes = check.passes();
        RowReport {
            name: name.to_owned(),
            tile: "4 × 72".to_owned(),
            check,
            within_bounds: passes,
            work,
            time: passes.then(|| times(10)),
            rates: passes.then(|| Rates::of(&work, &times(10), Some(&copy()))),
        }
    }

    fn copy() -> CopyReport {
        CopyReport {
            bytes_moved: 4_000_000,
            time: times(10),
            bytes_per_s: 4e11,
            method: "one copy".to_owned(),
        }
    }

    fn report(rows: Vec<RowReport>) -> Report {
        Report {
            device: DeviceReport {
                kind: "cuda",
                name: "Some GPU".to_owned(),
                compute_capability: Some("9.0".to_owned()),
                driver: Some("580.1".to_owned()),
                ptx_target: Some("sm_90".to_owned()),
                why: None,
            },
            launches: 1,
            warmup: 3,
            timing: Some("median of CUDA events"),
            copy: Some(copy()),
            families: vec![FamilyReport {
                name: "derivative3d",
                problem: "64 × 64 × 64".to_owned(),
                boundary: Some("period n-1".to_owned()),
                notes: Vec::new(),
                rows,
            }],
        }
    }

    #[test]
    fn rates_follow_from_work_and_time() {
        let row = row("a", 0.0);
        let rates = row.rates.unwrap();
        assert!((rates.bytes_per_s - 2e11).abs() < 1.0);
        assert!((rates.flops_per_s - 3e11).abs() < 1.0);
        assert!((rates.items_per_s - 2.5e10).abs() < 1.0);
        assert!((rates.fraction_of_copy.unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn nan_is_out_of_bounds() {
        assert!(row("a", 1e-4).within_bounds);
        assert!(!row("a", 1.1e-4).within_bounds);
        assert!(!row("a", f64::NAN).within_bounds);
    }

    #[test]
    fn a_row_out_of_bounds_shows_no_speed_and_fails_the_run() {
        let good = report(vec![row("good", 1e-5)]);
        assert!(good.passes());
        assert!(good.to_text().contains("10.00 µs"));

        let bad = report(vec![row("bad", 1e-3)]);
        assert!(!bad.passes());
        let text = bad.to_text();
        assert!(
            !text.contains("10.00 µs") && !text.contains("200.00 GB/s"),
            "{text}"
        );
        assert!(text.contains("bad: error out of bounds"), "{text}");
    }

    #[test]
    fn fewer_launches_than_the_header_says_are_owned_up_to() {
        let mut report = report(vec![row("a", 1e-5)]);
        assert!(!report.to_text().contains("a: median of"));
        report.launches = 20;
        assert!(report.to_text().contains("a: median of 1 launches"));
    }

    #[test]
    fn a_run_of_no_rows_does_not_pass() {
        assert!(!report(Vec::new()).passes());
    }

    #[test]
    fn the_header_says_what_was_run_where() {
        let text = report(vec![row("a", 1e-5)]).to_text();
        for part in [
            "Some GPU (cuda)",
            "580.1",
            "sm_90",
            "1 timed after 3 of warm-up",
            "400.00 GB/s",
            "64 × 64 × 64",
            "period n-1",
            "50.0 %",
        ] {
            assert!(text.contains(part), "{part:?} missing in\n{text}");
        }
    }

    #[test]
    fn json_keeps_its_shape() {
        let json = serde_json::to_value(report(vec![row("a", 1e-5), row("b", 1.0)])).unwrap();
        assert_eq!(json["device"]["kind"], "cuda");
        assert_eq!(json["launches"], 1);
        assert_eq!(json["copy"]["bytes_per_s"], 4e11);
        let rows = &json["families"][0]["rows"];
        assert_eq!(rows[0]["name"], "a");
        assert_eq!(rows[0]["within_bounds"], true);
        assert_eq!(rows[0]["work"]["metric"], "bandwidth");
        assert_eq!(rows[0]["work"]["unit"], "points");
        assert_eq!(rows[0]["time"]["launches"], 1);
        let fraction = rows[0]["rates"]["fraction_of_copy"].as_f64().unwrap();
        assert!((fraction - 0.5).abs() < 1e-12);
        assert_eq!(rows[1]["within_bounds"], false);
        assert!(rows[1]["time"].is_null() && rows[1]["rates"].is_null());
    }

    #[test]
    fn errors_are_marked_where_they_are_out_of_bounds() {
        assert_eq!(error(0.0, 0.0), "0");
        assert_eq!(error(7.1714e-6, 1e-5), "7.171e-6");
        assert_eq!(error(2e-5, 1e-5), "2.000e-5 !");
        assert_eq!(error(f64::NAN, 1e-5), "NaN !");
    }

    #[test]
    fn times_and_rates_take_a_unit_that_suits_them() {
        assert_eq!(duration(2.5), "2.50 s");
        assert_eq!(duration(2.5e-3), "2.50 ms");
        assert_eq!(duration(2.5e-6), "2.50 µs");
        assert_eq!(duration(2.5e-8), "25.00 ns");
        assert_eq!(quantity(4.312e12, "B/s"), "4.31 TB/s");
        assert_eq!(quantity(1.2e10, "interactions/s"), "12.00 G interactions/s");
        assert_eq!(quantity(5.0, "points/s"), "5.00 points/s");
    }
}
