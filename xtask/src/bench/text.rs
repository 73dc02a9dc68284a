//! The report as text: a header, then a table per problem.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

use super::report::{
    Against, Ceilings, Check, ContenderReport, Environment, FamilyReport, Metric, ProblemReport,
    Report, Roof, RoofReached, RowReport, Unit,
};
use super::stats::{Ratio, Verdict};

impl Report {
    /// The whole report as text: header, then the tables of each problem, then,
    /// where there was a comparison, how to read them.
    pub(crate) fn to_text(&self) -> String {
        let mut text = self.header();
        for family in &self.families {
            for problem in &family.problems {
                text.push('\n');
                text.push_str(&self.problem(family, problem));
            }
        }
        if !self.rivals.is_empty() {
            text.push('\n');
            text.push_str(&self.legend());
        }
        text
    }

    fn header(&self) -> String {
        let Environment {
            device,
            toolkit,
            rustc,
            llvm,
            commit,
            date,
        } = &self.environment;
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
        let commit = commit.as_deref().unwrap_or("unknown");
        lines.push((
            "built by",
            format!("rustc {rustc}, LLVM {llvm}; from commit {commit}"),
        ));
        lines.push(("date", date.clone()));
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
        let Ceilings { copy, fp32, fp64 } = &self.ceilings;
        for (name, unit, ceiling) in [
            ("copy", "B/s", copy),
            ("FP32", "instructions/s", fp32),
            ("FP64", "instructions/s", fp64),
        ] {
            if let Some(ceiling) = ceiling {
                lines.push((
                    name,
                    format!("{}, {}", quantity(ceiling.per_s, unit), ceiling.method),
                ));
            }
        }
        if !self.rivals.is_empty() {
            lines.push((
                "nvcc",
                match (&toolkit.nvcc, &toolkit.why_not) {
                    (Some(nvcc), _) => nvcc.clone(),
                    (None, why_not) => why_not.clone().unwrap_or_else(|| "none".to_owned()),
                },
            ));
        }
        for rival in &self.rivals {
            let why_not = rival.why_not.as_ref();
            let why_not = why_not.map_or(String::new(), |why| format!("; NOT COMPARED: {why}"));
            lines.push((
                "against",
                format!("{}: {}{why_not}", rival.name, rival.what),
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
        lines.extend(left_out(problem).into_iter().map(|line| ("not run", line)));
        let mut text = columns(&lines);
        if problem.rows.is_empty() {
            return text;
        }

        let _ = writeln!(text, "{}", self.kernels(problem));
        for (row, time) in problem
            .rows
            .iter()
            .filter_map(|row| Some((row, row.single.as_ref()?.time)))
        {
            if time.launches < self.launches as usize {
                let _ = writeln!(text, "{}: median of {} launches", row.name, time.launches);
            }
        }
        for row in &problem.rows {
            if !row.within_bounds {
                let _ = writeln!(text, "{}: {}", row.name, out_of_bounds(&row.check));
            }
            for contender in &row.contenders {
                if let Some(check) = contender.check.filter(|_| !contender.within_bounds) {
                    let name = &contender.name;
                    let _ = writeln!(text, "{}, {name}: {}", row.name, out_of_bounds(&check));
                }
            }
        }
        if let Some(table) = comparison(problem) {
            let _ = writeln!(text, "{table}");
        }
        text
    }

    /// The kernels of a problem, their errors and their speed.
    fn kernels(&self, problem: &ProblemReport) -> Table {
        let has = |metric| problem.rows.iter().any(|row| row.work.metric == metric);
        let mut header = vec!["kernel", "tile", "RMS error", "max error"];
        if self.timing.is_some() {
            header.push("median time");
            match (has(Metric::Bandwidth), has(Metric::Throughput)) {
                (_, false) => header.extend(["bandwidth", "of copy"]),
                (false, true) => header.extend(["rate", "arithmetic", "of roof"]),
                (true, true) => {
                    header.extend(["bandwidth, or rate", "of copy, or arithmetic", "of roof"]);
                }
            }
        }
        let mut table = table(&header, 2);
        for row in &problem.rows {
            let mut cells = vec![
                row.name.clone(),
                row.tile.clone(),
                error(row.check.rms_error, row.check.rms_bound),
                error(row.check.max_error, row.check.max_bound),
            ];
            cells.extend(speed_cells(row));
            cells.resize(header.len(), String::new());
            table.add_row(cells);
        }
        table
    }

    /// How to read the tables of a comparison.
    fn legend(&self) -> String {
        const HOW: [(&str, &str); 5] = [
            (
                "one by one",
                "each launch is handed over by the host, all of them before the first begins, and \
                 timed alone; below some 10 µs that is what a launch costs more than the kernel",
            ),
            (
                "graph",
                "so many launches, recorded once and replayed as a whole: one launch of those, \
                 without the host",
            ),
            (
                "of roof",
                "the time that this work takes at least, over the time that it took: what binds \
                 it is memory (the copy), FP32 or FP64 (the multiply-adds)",
            ),
            (
                "Rust / other",
                "the ratio of their median times, measured in turns on the same data, ± the sum of \
                 their spreads (half the distance between the quartiles): below 1 Rust is faster; \
                 a difference within the spread counts as equal",
            ),
            (
                "–",
                "was not measured: the other has no such kernel, or its check failed",
            ),
        ];
        let mut lines = vec![("how to read it", String::new())];
        lines.extend(HOW.map(|(word, rest)| (word, rest.to_owned())));
        columns(&lines)
    }
}

/// A table with this header, whose columns from `first_number` on are set to the
/// right.
fn table(header: &[&str], first_number: usize) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(
            header
                .iter()
                .map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
        );
    for column in first_number..header.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// The rows of a problem against their contenders; `None` where they have none.
fn comparison(problem: &ProblemReport) -> Option<Table> {
    let mut names: Vec<&str> = Vec::new();
    for contender in problem.rows.iter().flat_map(|row| &row.contenders) {
        if contender.single.is_some() && !names.contains(&contender.name.as_str()) {
            names.push(&contender.name);
        }
    }
    let replayed = problem.rows.iter().any(|row| row.replayed.is_some());
    if names.is_empty() && !replayed {
        return None;
    }
    let ratios: Vec<String> = names.iter().map(|name| format!("Rust / {name}")).collect();
    let mut header = vec!["kernel", "launched", "Rust", "of roof"];
    for (name, ratio) in names.iter().zip(&ratios) {
        header.extend([*name, ratio.as_str()]);
    }
    let mut table = table(&header, 2);
    for row in &problem.rows {
        let ways = [
            (
                row.single.as_ref(),
                ContenderReport::single as fn(&ContenderReport) -> Option<Against>,
            ),
            (row.replayed.as_ref(), ContenderReport::replayed),
        ];
        for (measured, against) in ways {
            let Some(measured) = measured else { continue };
            let mut cells = vec![
                row.name.clone(),
                match measured.launches_per_timing {
                    1 => "one by one".to_owned(),
                    launches => format!("graph of {launches}"),
                },
                duration(measured.time.median_s),
                measured.roof.as_ref().map_or("–".to_owned(), of_roof),
            ];
            for name in &names {
                let contender = row.contenders.iter().find(|other| other.name == *name);
                match contender.and_then(against) {
                    Some(Against { time, ratio }) => {
                        cells.push(duration(time.median_s));
                        cells.push(verdict(&ratio));
                    }
                    None => cells.extend(["–".to_owned(), "–".to_owned()]),
                }
            }
            table.add_row(cells);
        }
    }
    Some(table)
}

impl ContenderReport {
    fn single(&self) -> Option<Against> {
        self.single
    }

    fn replayed(&self) -> Option<Against> {
        self.replayed
    }
}

/// "1.013 ± 0.004 slower".
fn verdict(ratio: &Ratio) -> String {
    let word = match ratio.verdict {
        Verdict::Faster => "faster",
        Verdict::Equal => "equal ",
        Verdict::Slower => "slower",
    };
    format!("{:.3} ± {:.3} {word}", ratio.value, ratio.spread)
}

/// "93.1 % memory".
fn of_roof(reached: &RoofReached) -> String {
    let roof = match reached.roof {
        Roof::Memory => "memory",
        Roof::Fp32 => "FP32",
        Roof::Fp64 => "FP64",
    };
    format!("{:.1} % {roof}", 100.0 * reached.fraction)
}

/// What was left out of a problem, those of one reason together.
fn left_out(problem: &ProblemReport) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for left_out in &problem.left_out {
        match reasons.iter_mut().find(|(why, _)| *why == left_out.why) {
            Some((_, names)) => names.push(&left_out.name),
            None => reasons.push((&left_out.why, vec![&left_out.name])),
        }
    }
    reasons
        .iter()
        .map(|(why, names)| format!("{}: {why}", names.join(", ")))
        .collect()
}

fn out_of_bounds(check: &Check) -> String {
    format!(
        "error out of bounds (RMS {:.3e}, at most {:.3e}; maximum {:.3e}, at most {:.3e}); not timed",
        check.rms_error, check.rms_bound, check.max_error, check.max_bound,
    )
}

/// Time, rate and the columns after it; empty where the row was not timed.
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
            cells.push(single.roof.as_ref().map_or("–".to_owned(), of_roof));
        }
    }
    cells
}

/// Two columns of text, the first padded to its widest word.
fn columns(lines: &[(&str, String)]) -> String {
    let width = lines
        .iter()
        .map(|(word, _)| word.chars().count())
        .max()
        .unwrap_or(0);
    lines
        .iter()
        .map(|(word, rest)| format!("{:width$}  {rest}", word).trim_end().to_owned() + "\n")
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
    use super::super::report::fake::{ceilings, report, row, times};
    use super::super::report::{LeftOut, Measured, RivalReport, Toolkit};
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
            "rustc 1.95.0, LLVM 22.1.2; from commit 0123456789ab",
            "2026-01-31T12:00:00Z",
        ] {
            assert!(text.contains(part), "{part:?} missing in\n{text}");
        }
    }

    /// A report in which one row is compared with three others.
    fn compared() -> Report {
        let mut row = row("a", 1e-5);
        let contender = |name: &str, microseconds: u64| ContenderReport {
            name: name.to_owned(),
            why_not: None,
            check: Some(row.check),
            within_bounds: true,
            single: Some(Against::of(&times(10), &times(microseconds))),
            replayed: None,
        };
        row.contenders = vec![
            contender("nvcc", 10),
            contender("CUB", 8),
            ContenderReport {
                why_not: Some("it has no a".to_owned()),
                check: None,
                within_bounds: false,
                single: None,
                ..contender("other", 1)
            },
        ];
        row.replayed = Some(Measured::new(&row.work, times(5), 20, &ceilings()));
        row.contenders[1].replayed = Some(Against::of(&times(5), &times(6)));
        let mut report = report(vec![row]);
        report.rivals = vec![RivalReport {
            name: "nvcc".to_owned(),
            what: "the same in CUDA C++".to_owned(),
            why_not: None,
        }];
        report
    }

    #[test]
    fn contenders_stand_beside_the_row_with_ratio_and_verdict() {
        let text = compared().to_text();
        let line = |launched: &str| {
            let found = text.lines().find(|line| line.contains(launched));
            let cells = found.unwrap_or_else(|| panic!("{launched} missing in\n{text}"));
            let cells: Vec<&str> = cells.split(['│', '┆']).map(str::trim).collect();
            cells[1..cells.len() - 1].join(" | ")
        };
        assert_eq!(
            line("│ a      ┆ one by one"),
            "a | one by one | 10.00 µs | 50.0 % memory | 10.00 µs | 1.000 ± 0.000 equal \
             | 8.00 µs | 1.250 ± 0.000 slower"
        );
        assert_eq!(
            line("graph of 20 ┆"),
            "a | graph of 20 | 5.00 µs | 100.0 % memory | – | – | 6.00 µs | 0.833 ± 0.000 faster"
        );
        assert!(
            text.contains("against     nvcc: the same in CUDA C++\n"),
            "{text}"
        );
        assert!(text.contains("how to read it"), "{text}");
        assert!(
            !text.contains("other ┆"),
            "who took no part has no column\n{text}"
        );
    }

    #[test]
    fn without_a_comparison_there_is_no_word_of_one() {
        let text = report(vec![row("a", 1e-5)]).to_text();
        for word in ["Rust /", "how to read it", "against", "nvcc"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
    }

    #[test]
    fn who_could_not_be_compared_with_is_named_with_the_reason() {
        let mut report = compared();
        report.rivals[0].why_not = Some("there is no compiler".to_owned());
        report.environment.toolkit = Toolkit {
            nvcc: None,
            why_not: Some("there is no compiler".to_owned()),
        };
        let text = report.to_text();
        assert!(
            text.contains("NOT COMPARED: there is no compiler"),
            "{text}"
        );
        assert!(text.contains("nvcc        there is no compiler"), "{text}");
    }

    #[test]
    fn a_contender_out_of_bounds_is_named_and_fails_the_run() {
        let mut report = compared();
        assert!(report.passes());
        let contender = &mut report.families[0].problems[0].rows[0].contenders[0];
        contender.within_bounds = false;
        contender.single = None;
        assert!(!report.passes());
        let text = report.to_text();
        assert!(text.contains("a, nvcc: error out of bounds"), "{text}");
    }

    #[test]
    fn what_was_left_out_is_named_by_reason() {
        let mut report = report(vec![row("a", 1e-5)]);
        report.families[0].problems[0].left_out = [("b", "slow"), ("c", "large"), ("d", "slow")]
            .map(|(name, why)| LeftOut {
                name: name.to_owned(),
                why: why.to_owned(),
            })
            .into();
        let text = report.to_text();
        assert!(text.contains("not run   b, d: slow\n"), "{text}");
        assert!(text.contains("not run   c: large\n"), "{text}");
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
