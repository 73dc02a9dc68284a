//! The record as text: a header, then the tables of each problem.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use crate::record::{Check, FamilyRecord, Metric, ProblemRecord, Record};
use crate::units::{duration, quantity};
use crate::view::{Mode, PlacedRow, Timed};

/// The whole record: header, tables, legend.
#[must_use]
pub fn to_text(record: &Record) -> String {
    let families = record
        .families
        .iter()
        .map(|family| of_family(record, family));
    header(record) + &families.collect::<String>() + &legend(record)
}

/// The environment and the method.
#[must_use]
pub fn header(record: &Record) -> String {
    columns(&record.facts())
}

/// The tables of a family.
#[must_use]
pub fn of_family(record: &Record, family: &FamilyRecord) -> String {
    let of_problem = |problem| format!("\n{}", of_problem(record, family, problem));
    family.problems.iter().map(of_problem).collect()
}

/// The legend of a comparison; empty without one.
#[must_use]
pub fn legend(record: &Record) -> String {
    const HOW: [(&str, &str); 6] = [
        ("how to read it", ""),
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
             it is memory (the copy), read (reading alone), FP32 or FP64 (the multiply-adds)",
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
    if record.baselines.is_empty() {
        return String::new();
    }
    format!(
        "\n{}",
        columns(&HOW.map(|(word, rest)| (word, rest.to_owned())))
    )
}

fn of_problem(record: &Record, family: &FamilyRecord, problem: &ProblemRecord) -> String {
    let mut lines = vec![
        ("family", family.name.clone()),
        ("size", problem.size.clone()),
        ("problem", problem.problem.clone()),
    ];
    lines.extend(
        problem
            .boundary
            .clone()
            .map(|boundary| ("boundary", boundary)),
    );
    lines.extend(problem.notes.iter().map(|note| ("note", note.clone())));
    lines.extend(left_out(problem).into_iter().map(|line| ("not run", line)));
    let mut text = columns(&lines);
    if problem.rows.is_empty() {
        return text;
    }
    let mut add = |line: &dyn std::fmt::Display| text.push_str(&format!("{line}\n"));

    let places: Vec<PlacedRow<'_>> = record
        .places()
        .filter(|place| std::ptr::eq(place.problem, problem))
        .collect();
    add(&kernels(record, &places));
    for row in &problem.rows {
        let launches = row.single.map_or(usize::MAX, |time| time.launches);
        if launches < record.launches as usize {
            add(&format!("{}: median of {launches} launches", row.name));
        }
    }
    for row in &problem.rows {
        if !row.check.passes() {
            add(&format!("{}: {}", row.name, out_of_bounds(&row.check)));
        }
        for baseline in row.baselines.iter().filter(|baseline| baseline.is_wrong()) {
            let why = baseline.check.as_ref().map_or(String::new(), out_of_bounds);
            add(&format!("{}, {}: {why}", row.name, baseline.name));
        }
    }
    if let Some(table) = comparison(&places) {
        add(&table);
    }
    text
}

/// The kernels left out of a problem, grouped by reason.
fn left_out(problem: &ProblemRecord) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for left_out in &problem.left_out {
        match reasons.iter_mut().find(|(why, _)| *why == left_out.why) {
            Some((_, names)) => names.push(&left_out.name),
            None => reasons.push((&left_out.why, vec![&left_out.name])),
        }
    }
    let line = |(why, names): &(&str, Vec<&str>)| format!("{}: {why}", names.join(", "));
    reasons.iter().map(line).collect()
}

fn out_of_bounds(check: &Check) -> String {
    format!(
        "error out of bounds (RMS {:.3e}, at most {:.3e}; maximum {:.3e}, at most {:.3e}); not timed",
        check.rms_error, check.rms_bound, check.max_error, check.max_bound,
    )
}

/// A table with this header, whose columns from the third on are set to the right.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The kernels of a problem, their errors and their speed.
fn kernels(record: &Record, places: &[PlacedRow<'_>]) -> Table {
    let has = |metric| places.iter().any(|place| place.row.work.metric == metric);
    let mut header = vec!["kernel", "tile", "RMS error", "max error"];
    if record.timing.is_some() {
        header.push("median time");
        header.extend(match (has(Metric::Bandwidth), has(Metric::Throughput)) {
            (_, false) => &["bandwidth", "of copy"][..],
            (false, true) => &["rate", "arithmetic", "of roof"],
            (true, true) => &["bandwidth, or rate", "of copy, or arithmetic", "of roof"],
        });
    }
    let mut table = table(&header);
    for place in places {
        let (row, check) = (place.row, &place.row.check);
        let mut cells = vec![
            row.name.clone(),
            row.tile.clone(),
            error(check.rms_error, check.rms_bound),
            error(check.max_error, check.max_bound),
        ];
        if let Some(single) = place.own(Mode::Single) {
            let (speed, unit) = single.speed();
            cells.extend([duration(single.time.median_s), quantity(speed, &unit)]);
            match row.work.metric {
                Metric::Bandwidth => cells.push(percent(single.of_copy(), "")),
                Metric::Throughput => {
                    cells.push(quantity(single.per_s(row.work.flops), "FLOP/s"));
                    cells.push(of_limit(single));
                }
            }
        }
        cells.resize(header.len(), String::new());
        table.add_row(cells);
    }
    table
}

/// The rows of a problem against their baselines; `None` where they have none.
fn comparison(places: &[PlacedRow<'_>]) -> Option<Table> {
    let mut names: Vec<&str> = Vec::new();
    for baseline in places.iter().flat_map(|place| &place.row.baselines) {
        if baseline.single.is_some() && !names.contains(&baseline.name.as_str()) {
            names.push(&baseline.name);
        }
    }
    let replayed = places.iter().any(|place| place.row.replayed.is_some());
    if names.is_empty() && !replayed {
        return None;
    }
    let ratios: Vec<String> = names.iter().map(|name| format!("Rust / {name}")).collect();
    let mut header = vec!["kernel", "launched", "Rust", "of roof"];
    // A baseline with only one way does not name it.
    let has_ways = |name: &str| {
        let mut baselines = places.iter().flat_map(|place| &place.row.baselines);
        baselines.any(|baseline| baseline.name == name && baseline.how.is_some())
    };
    for (name, ratio) in names.iter().zip(&ratios) {
        header.extend([*name, ratio]);
        if has_ways(name) {
            header.push("its way");
        }
    }
    let mut table = table(&header);
    for place in places {
        for own in Mode::ALL.into_iter().filter_map(|mode| place.own(mode)) {
            let graph = place.row.launches_per_graph.unwrap_or(1);
            let mut cells = vec![
                place.row.name.clone(),
                match own.mode {
                    Mode::Single => "one by one".to_owned(),
                    Mode::Replayed => format!("graph of {graph}"),
                },
                duration(own.time.median_s),
                of_limit(own),
            ];
            for name in &names {
                let other = own
                    .baselines()
                    .find(|other| other.by.is_some_and(|by| by.name == *name));
                cells.extend(
                    match other.and_then(|other| Some((other, other.ratio()?))) {
                        Some((other, ratio)) => [
                            duration(other.time.median_s),
                            format!(
                                "{:.3} ± {:.3} {:6}",
                                ratio.value,
                                ratio.spread,
                                ratio.verdict.name()
                            ),
                        ],
                        None => ["–".to_owned(), "–".to_owned()],
                    },
                );
                if has_ways(name) {
                    let how = other.and_then(|other| other.by?.how.clone());
                    cells.push(how.unwrap_or_else(|| "–".to_owned()));
                }
            }
            table.add_row(cells);
        }
    }
    Some(table)
}

/// "93.1 % memory".
fn of_limit(timed: Timed<'_>) -> String {
    let reached = timed.of_limit();
    percent(reached.map(|it| it.1), reached.map_or("", |it| it.0.name()))
}

/// "93.1 %" with a word behind it.
fn percent(fraction: Option<f64>, what: &str) -> String {
    match fraction {
        Some(fraction) => format!("{:.1} % {what}", 100.0 * fraction)
            .trim_end()
            .to_owned(),
        None => "–".to_owned(),
    }
}

/// Two columns of text, the first padded to its widest word.
pub(crate) fn columns(lines: &[(&str, String)]) -> String {
    let width = lines.iter().map(|(word, _)| word.chars().count()).max();
    let width = width.unwrap_or(0);
    let line = |(word, rest): &(&str, String)| {
        format!("{word:width$}  {rest}").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect()
}

/// An error as the table shows it, marked where it is out of bounds.
fn error(value: f64, bound: f64) -> String {
    let mark = if value <= bound { "" } else { " !" };
    if value == 0.0 {
        return format!("0{mark}");
    }
    format!("{value:.3e}{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Baseline, BaselineRow, LeftOut, Toolkit};
    use crate::sample::{microseconds, record, row};

    #[test]
    fn a_row_out_of_bounds_shows_no_speed_and_fails_the_run() {
        let good = record(vec![row("good", 1e-5)]);
        assert!(good.passes());
        assert!(to_text(&good).contains("10.00 µs"));

        let bad = record(vec![row("bad", 1e-3)]);
        assert!(!bad.passes());
        let text = to_text(&bad);
        assert!(
            !text.contains("10.00 µs") && !text.contains("200.00 GB/s"),
            "{text}"
        );
        assert!(text.contains("bad: error out of bounds"), "{text}");
    }

    #[test]
    fn fewer_launches_than_the_header_says_are_owned_up_to() {
        let mut record = record(vec![row("a", 1e-5)]);
        assert!(!to_text(&record).contains("a: median of"));
        record.launches = 20;
        assert!(to_text(&record).contains("a: median of 1 launches"));
    }

    #[test]
    fn the_header_says_what_was_run_where() {
        let mut record = record(vec![row("a", 1e-5)]);
        let text = to_text(&record);
        for part in [
            "Some GPU (cuda)",
            "for CUDA 13.0",
            "sm_90",
            "1 timed after 3 of warm-up",
            "400.00 GB/s",
            "64x64x64",
            "64 × 64 × 64",
            "period n-1",
            "50.0 %",
            "rustc 1.95.0, LLVM 22.1.2; from commit 0123456789ab",
            "2026-01-31T12:00:00Z",
        ] {
            assert!(text.contains(part), "{part:?} missing in\n{text}");
        }
        assert!(!text.contains("cut short"));
        record.missing = ["heat2d", "nbody"].map(str::to_owned).into();
        let text = to_text(&record);
        assert!(
            text.contains("cut short   before heat2d, nbody had been measured\n"),
            "{text}"
        );
    }

    /// A record in which one row is compared with three others.
    fn compared() -> Record {
        let mut row = row("a", 1e-5);
        let baseline = |name: &str, time: u64| BaselineRow {
            name: name.to_owned(),
            why_not: None,
            how: None,
            check: Some(row.check),
            single: Some(microseconds(time)),
            replayed: None,
        };
        row.baselines = vec![
            baseline("nvcc", 10),
            BaselineRow {
                replayed: Some(microseconds(6)),
                ..baseline("CUB", 8)
            },
            BaselineRow {
                why_not: Some("it has no a".to_owned()),
                check: None,
                single: None,
                ..baseline("other", 1)
            },
        ];
        row.replayed = Some(microseconds(5));
        row.launches_per_graph = Some(20);
        let mut record = record(vec![row]);
        record.baselines = vec![Baseline {
            name: "nvcc".to_owned(),
            what: "the same in CUDA C++".to_owned(),
            why_not: None,
        }];
        record
    }

    #[test]
    fn who_has_several_ways_says_which_it_was() {
        let mut record = compared();
        assert!(!to_text(&record).contains("its way"));
        let row = &mut record.families[0].problems[0].rows[0];
        row.baselines[1].how = Some("blocked, -O3".to_owned());
        let text = to_text(&record);
        assert_eq!(text.matches("its way").count(), 1, "{text}");
        assert!(text.contains("blocked, -O3"), "{text}");
    }

    #[test]
    fn the_limits_of_a_row_go_before_those_of_the_run() {
        let mut record = record(vec![row("a", 1e-5)]);
        assert!(to_text(&record).contains("50.0 %"));
        let mut ceilings = record.ceilings.clone();
        if let Some(copy) = &mut ceilings.copy {
            copy.amount /= 2;
        }
        record.families[0].problems[0].rows[0].ceilings = Some(ceilings);
        assert!(to_text(&record).contains("100.0 %"));
    }

    #[test]
    fn baselines_stand_beside_the_row_with_ratio_and_verdict() {
        let text = to_text(&compared());
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
        let text = to_text(&record(vec![row("a", 1e-5)]));
        for word in ["Rust /", "how to read it", "against", "nvcc"] {
            assert!(!text.contains(word), "{word} in\n{text}");
        }
    }

    #[test]
    fn who_could_not_be_compared_with_is_named_with_the_reason() {
        let mut record = compared();
        record.baselines[0].why_not = Some("there is no compiler".to_owned());
        record.environment.toolkit = Toolkit {
            nvcc: None,
            why_not: Some("there is no compiler".to_owned()),
        };
        let text = to_text(&record);
        assert!(
            text.contains("NOT COMPARED: there is no compiler"),
            "{text}"
        );
        assert!(text.contains("nvcc        there is no compiler"), "{text}");
    }

    #[test]
    fn a_baseline_out_of_bounds_is_named_and_fails_the_run() {
        let mut record = compared();
        assert!(record.passes());
        let baseline = &mut record.families[0].problems[0].rows[0].baselines[0];
        baseline.check.as_mut().unwrap().max_error = 1.0;
        baseline.single = None;
        assert!(!record.passes());
        let text = to_text(&record);
        assert!(text.contains("a, nvcc: error out of bounds"), "{text}");
    }

    #[test]
    fn what_was_left_out_is_named_by_reason() {
        let mut record = record(vec![row("a", 1e-5)]);
        record.families[0].problems[0].left_out = [("b", "slow"), ("c", "large"), ("d", "slow")]
            .map(|(name, why)| LeftOut::new(name, why))
            .into();
        let text = to_text(&record);
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
}
