//! The report as text: a header, then a table per problem.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::report::{FamilyReport, Metric, ProblemReport, Report, RowReport, Unit};

impl Report {
    /// The whole report as text: header, then a table per problem.
    pub(crate) fn to_text(&self) -> String {
        let mut text = self.header();
        for family in &self.families {
            for problem in &family.problems {
                text.push('\n');
                text.push_str(&self.problem(family, problem));
            }
        }
        text
    }

    fn header(&self) -> String {
        let device = &self.environment.device;
        let mut lines = vec![("device", format!("{} ({})", device.name, device.kind))];
        if let Some(why) = &device.why {
            lines.push(("why", why.clone()));
        }
        if let Some(capability) = &device.compute_capability {
            lines.push(("capability", capability.clone()));
        }
        if let Some(driver) = &device.driver {
            lines.push(("driver", driver.clone()));
        }
        if let Some(target) = &device.ptx_target {
            lines.push(("PTX target", target.clone()));
        }
        match &self.timing {
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
        if let Some(copy) = &self.ceilings.copy {
            lines.push((
                "copy",
                format!("{}, {}", quantity(copy.per_s, "B/s"), copy.method),
            ));
        }
        columns(&lines)
    }

    fn problem(&self, family: &FamilyReport, problem: &ProblemReport) -> String {
        let mut lines = vec![
            ("family", family.name.clone()),
            ("problem", problem.problem.clone()),
        ];
        if let Some(boundary) = &problem.boundary {
            lines.push(("boundary", boundary.clone()));
        }
        lines.extend(problem.notes.iter().map(|note| ("note", note.clone())));
        let mut text = columns(&lines);

        let metric = problem.rows.first().map(|row| row.work.metric);
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
        for row in &problem.rows {
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
        for (row, time) in problem
            .rows
            .iter()
            .filter_map(|row| Some((row, row.single.as_ref()?.time)))
        {
            if time.launches < self.launches as usize {
                let _ = writeln!(text, "{}: median of {} launches", row.name, time.launches);
            }
        }
        for row in problem.rows.iter().filter(|row| !row.within_bounds) {
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
    let Some(single) = &row.single else {
        return Vec::new();
    };
    let rates = &single.rates;
    let mut cells = vec![duration(single.time.median_s)];
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
pub(super) fn duration(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{:.2} {unit}", seconds * scale)
}

/// A rate with a decimal prefix: "4.31 TB/s".
pub(super) fn quantity(value: f64, unit: &str) -> String {
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
    use super::super::report::fake::{report, row};
    use super::*;

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
