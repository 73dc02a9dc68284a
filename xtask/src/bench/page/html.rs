//! The page: what was measured where, what came of it at a glance, the charts,
//! and every figure in tables.

use super::super::report::{
    Ceiling, ContenderReport, FamilyReport, Measured, Metric, Report, Roof, RowReport, Unit,
};
use super::super::stats::Verdict;
use super::data::{by_kernel, duration, quantity, spread};
use super::dots::verdict;
use super::figure::{LeftOut, Outcome};
use super::markup::Element;
use super::palette;
use crate::error::Error;

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("sort.js");

/// Rows from which on a family's table is folded away until it is asked for.
const MANY_ROWS: usize = 40;

/// The whole document.
pub(super) fn page(report: &Report, charts: &[Outcome<'_>]) -> Result<String, Error> {
    let environment = &report.environment;
    let title = format!("Halo benchmark: {}", environment.device.name);
    let head = Element::new("head")
        .child(Element::new("meta").with("charset", "utf-8"))
        .child(
            Element::new("meta")
                .with("name", "viewport")
                .with("content", "width=device-width, initial-scale=1"),
        )
        .child(
            Element::new("meta")
                .with("name", "color-scheme")
                .with("content", "light dark"),
        )
        .child(Element::new("title").text(&title))
        .child(Element::new("style").raw(CSS).raw(&palette::style()));
    let mut main = Element::new("main")
        .child(Element::new("h1").text(&title))
        .child(Element::new("p").with("class", "lead").text(lead(report)))
        .child(tiles(report))
        .child(setup(report));
    let (mut large, mut small, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for chart in charts {
        match chart {
            Outcome::Drawn(figure) if figure.small => small.push(figure),
            Outcome::Drawn(figure) => large.push(figure),
            Outcome::LeftOut(chart) => left_out.push(chart),
        }
    }
    for figure in large {
        main = main.child(figure.to_element()?);
    }
    if !small.is_empty() {
        let mut grid = Element::new("div").with("class", "grid-of-charts");
        for figure in small {
            grid = grid.child(figure.to_element()?);
        }
        main = main
            .child(Element::new("h2").text("Speed against size"))
            .child(grid);
    }
    if !left_out.is_empty() {
        main = main
            .child(Element::new("h2").text("Charts that are not here"))
            .children(reasons(&left_out));
    }
    main = main
        .child(Element::new("h2").text("All figures"))
        .children(report.families.iter().map(|family| table(report, family)));
    let body = Element::new("body")
        .child(main)
        .child(Element::new("script").raw(SCRIPT));
    let html = Element::new("html")
        .with("lang", "en")
        .child(head)
        .child(body);
    Ok(format!("<!DOCTYPE html>\n{html}\n"))
}

/// A paragraph for each reason that charts were left out for, and which.
fn reasons(left_out: &[&LeftOut]) -> Vec<Element> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for chart in left_out {
        let title = format!("“{}”", chart.title);
        match reasons.iter_mut().find(|(why, _)| *why == chart.why) {
            Some((_, titles)) => titles.push(title),
            None => reasons.push((&chart.why, vec![title])),
        }
    }
    reasons
        .into_iter()
        .map(|(why, titles)| {
            Element::new("p")
                .with("class", "left-out")
                .text(format_args!("{}: {why}.", titles.join(", ")))
        })
        .collect()
}

/// One sentence: what this is.
fn lead(report: &Report) -> String {
    let what = match report.environment.device.kind.as_str() {
        "cuda" => "CUDA kernels written in Rust, each checked against its CPU port, then timed",
        "emulator" => {
            "CUDA kernels written in Rust, each run thread for thread on the emulator and checked; no speed is given, \
             since the emulator's says nothing"
        }
        _ => "CPU ports of the kernels, each checked, then timed",
    };
    let date = report
        .environment
        .date
        .replace('T', " ")
        .replace('Z', " UTC");
    format!("{what}. {date}.")
}

/// The few figures that say most.
fn tiles(report: &Report) -> Element {
    let mut tiles: Vec<(String, String, &str)> = Vec::new();
    let (rows, within) = report.rows().fold((0, 0), |(all, within), row| {
        (all + 1, within + usize::from(row.within_bounds))
    });
    tiles.push((
        format!("{within} of {rows}"),
        "rows within their error bounds".to_owned(),
        if within == rows && rows > 0 {
            "good"
        } else {
            "bad"
        },
    ));
    let kernels = by_kernel(report);
    for (index, rival) in report.rivals.iter().enumerate() {
        let [mut faster, mut equal, mut slower] = [0, 0, 0];
        for sizes in &kernels {
            let others = sizes[0].others(report);
            for other in others.iter().filter(|other| other.rival == index) {
                match other.ratio.verdict {
                    Verdict::Faster => faster += 1,
                    Verdict::Equal => equal += 1,
                    Verdict::Slower => slower += 1,
                }
            }
        }
        let all = faster + equal + slower;
        if all > 0 {
            tiles.push((
                format!("{} of {all}", faster + equal),
                format!(
                    "kernels at least as fast as {} at their largest size: {faster} faster, {equal} equal, {slower} slower",
                    rival.name
                ),
                if slower == 0 { "good" } else { "" },
            ));
        }
    }
    let best = |metric: Metric| {
        kernels
            .iter()
            .map(|sizes| &sizes[0])
            .filter(|timed| timed.row.work.metric == metric)
            .max_by(|a, b| {
                let rates = |timed: &super::data::Timed<'_>| {
                    let rates = &timed.measured.rates;
                    match metric {
                        Metric::Bandwidth => rates.bytes_per_s,
                        Metric::Throughput => rates.items_per_s,
                    }
                };
                rates(a).total_cmp(&rates(b))
            })
    };
    if let Some(copy) = &report.ceilings.copy {
        tiles.push((
            quantity(copy.per_s, "B/s"),
            "a copy within the device's memory".to_owned(),
            "",
        ));
    }
    for metric in [Metric::Bandwidth, Metric::Throughput] {
        if let Some(timed) = best(metric) {
            tiles.push((
                super::data::rate(&timed.row.work, timed.measured.time.median_s),
                format!("{}, {}", timed.row.name, timed.problem.size),
                "",
            ));
        }
    }
    Element::new("ul")
        .with("class", "tiles")
        .children(tiles.into_iter().map(|(figure, what, class)| {
            Element::new("li")
                .child(Element::new("strong").with("class", class).text(figure))
                .child(Element::new("span").text(what))
        }))
}

/// What was measured where, with what, and how.
fn setup(report: &Report) -> Element {
    let environment = &report.environment;
    let device = &environment.device;
    let toolkit = &environment.toolkit;
    let toolkit = match (&toolkit.nvcc, &toolkit.why_not) {
        (Some(nvcc), _) => Some(format!("nvcc {nvcc}")),
        (None, Some(why)) => Some(format!("no nvcc: {why}")),
        (None, None) => None,
    };
    let machine = [
        ("Device", Some(format!("{} ({})", device.name, device.kind))),
        ("Why", device.why.clone()),
        ("Compute capability", device.compute_capability.clone()),
        ("Driver", device.driver.clone()),
        ("PTX target", device.ptx_target.clone()),
        ("CUDA toolkit", toolkit),
        ("rustc", Some(environment.rustc.clone())),
        ("LLVM", Some(environment.llvm.clone())),
        ("Commit", environment.commit.clone()),
    ];
    let method = match &report.timing {
        Some(timing) => format!(
            "{} launches timed after {} of warm-up; {timing}; ± is half the distance between the quartiles",
            report.launches, report.warmup
        ),
        None => "one launch per kernel, for its errors; nothing is timed".to_owned(),
    };
    let ceilings = &report.ceilings;
    let ceiling = |ceiling: &Option<Ceiling>, unit: &str| {
        ceiling
            .as_ref()
            .map(|found| format!("{}: {}", quantity(found.per_s, unit), found.method))
    };
    let run = [
        ("Method", Some(method)),
        ("Copy", ceiling(&ceilings.copy, "B/s")),
        ("FP32 issue", ceiling(&ceilings.fp32, "multiply-adds/s")),
        ("FP64 issue", ceiling(&ceilings.fp64, "multiply-adds/s")),
    ];
    let rivals = report.rivals.iter().map(|rival| {
        let what = match &rival.why_not {
            None => rival.what.clone(),
            Some(why) => format!("{}; took no part: {why}", rival.what),
        };
        (rival.name.as_str(), Some(what))
    });
    Element::new("div")
        .with("class", "setup")
        .child(list(machine))
        .child(list(run.into_iter().chain(rivals)))
}

/// Terms and what there is to say of them; a term without is left out.
fn list<'a>(lines: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Element {
    let pairs = lines.into_iter().filter_map(|(term, what)| {
        Some([
            Element::new("dt").text(term),
            Element::new("dd").text(what?),
        ])
    });
    Element::new("dl").children(pairs.flatten())
}

/// A column: its heading, whether it is of words, and its cell in each row.
struct Column<'a> {
    heading: String,
    words: bool,
    cell: Box<dyn Fn(&RowReport) -> Cell + 'a>,
}

/// What a cell shows, what it is sorted by, and how it is marked.
#[derive(Default)]
struct Cell {
    shown: String,
    key: Option<f64>,
    class: &'static str,
    hint: String,
}

impl Cell {
    fn number(shown: String, key: f64) -> Self {
        Self {
            shown,
            key: Some(key),
            ..Self::default()
        }
    }
}

/// Every row of a family, whatever its size.
fn table(report: &Report, family: &FamilyReport) -> Element {
    let rows: usize = family
        .problems
        .iter()
        .map(|problem| problem.rows.len())
        .sum();
    let columns = columns(report, family);
    let head = Element::new("tr")
        .child(
            Element::new("th")
                .with("class", "left")
                .with("scope", "col")
                .text("kernel"),
        )
        .child(Element::new("th").with("scope", "col").text("size"))
        .children(columns.iter().map(|column| {
            let head = Element::new("th")
                .with("scope", "col")
                .text(&column.heading);
            if column.words {
                head.with("class", "left")
            } else {
                head
            }
        }));
    let body = family.problems.iter().flat_map(|problem| {
        let columns = &columns;
        problem.rows.iter().map(move |row| {
            Element::new("tr")
                .child(name(&row.name))
                .child(
                    Element::new("td")
                        .with("data-value", problem.elements)
                        .text(&problem.size),
                )
                .children(columns.iter().map(|column| cell(column, row)))
        })
    });
    let table = Element::new("table")
        .child(Element::new("thead").child(head))
        .child(Element::new("tbody").children(body));
    let problems = family.problems.iter().map(|problem| {
        let mut parts = vec![problem.problem.clone()];
        parts.extend(problem.boundary.clone());
        parts.extend(problem.notes.iter().cloned());
        parts.extend(
            problem
                .left_out
                .iter()
                .map(|left| format!("{} was not run: {}", left.name, left.why)),
        );
        Element::new("li").text(format_args!("{}: {}", problem.size, parts.join("; ")))
    });
    let heading = format!(
        "{}: {rows} {}",
        family.name,
        if rows == 1 { "row" } else { "rows" }
    );
    let details = Element::new("details");
    let details = if rows < MANY_ROWS {
        details.with("open", "open")
    } else {
        details
    };
    details
        .child(Element::new("summary").text(heading))
        .child(
            Element::new("div")
                .with("class", "scroll")
                .with("tabindex", 0)
                .with("role", "region")
                .with("aria-label", format_args!("All figures of {}", family.name))
                .child(table),
        )
        .child(
            Element::new("ul")
                .with("class", "problems")
                .children(problems),
        )
}

/// The name of a row, which may be broken after an underscore where there is
/// little room.
fn name(name: &str) -> Element {
    let mut element = Element::new("th").with("scope", "row");
    for (index, word) in name.split('_').enumerate() {
        if index > 0 {
            element = element.text('_').child(Element::new("wbr"));
        }
        element = element.text(word);
    }
    element
}

fn cell(column: &Column<'_>, row: &RowReport) -> Element {
    let cell = (column.cell)(row);
    let mut classes = vec![cell.class];
    if column.words {
        classes.push("left");
    }
    classes.retain(|class| !class.is_empty());
    let mut element = Element::new("td").text(&cell.shown);
    if !classes.is_empty() {
        element = element.with("class", classes.join(" "));
    }
    if let Some(key) = cell.key.filter(|key| key.is_finite()) {
        element = element.with("data-value", key);
    }
    if !cell.hint.is_empty() {
        element = element.with("title", &cell.hint);
    }
    element
}

/// The columns that some row of the family has something in.
fn columns<'a>(report: &'a Report, family: &FamilyReport) -> Vec<Column<'a>> {
    let rows = || family.problems.iter().flat_map(|problem| &problem.rows);
    let mut columns: Vec<Column<'a>> = Vec::new();
    let mut column = |heading: &str, words, cell: Box<dyn Fn(&RowReport) -> Cell + 'a>| {
        columns.push(Column {
            heading: heading.to_owned(),
            words,
            cell,
        });
    };
    column(
        "tile",
        true,
        Box::new(|row| Cell {
            shown: row.tile.clone(),
            ..Cell::default()
        }),
    );
    column(
        "RMS error",
        false,
        Box::new(|row| error(row.check.rms_error, row.check.rms_bound)),
    );
    column(
        "max error",
        false,
        Box::new(|row| error(row.check.max_error, row.check.max_bound)),
    );
    let single: fn(&RowReport) -> Option<&Measured> = |row| row.single.as_ref();
    let replayed: fn(&RowReport) -> Option<&Measured> = |row| row.replayed.as_ref();
    for (mode, heading) in [(single, "single launch"), (replayed, "replayed")] {
        if !rows().any(|row| mode(row).is_some()) {
            continue;
        }
        column(
            &format!("time, {heading}"),
            false,
            Box::new(move |row| {
                mode(row).map_or(Cell::default(), |found| {
                    let time = &found.time;
                    let shown = format!("{} {}", duration(time.median_s), spread(time));
                    Cell {
                        hint: format!(
                            "median of {} timings; fastest {}, slowest {}",
                            time.launches,
                            duration(time.min_s),
                            duration(time.max_s)
                        ),
                        ..Cell::number(shown.trim_end().to_owned(), time.median_s)
                    }
                })
            }),
        );
    }
    if !rows().any(|row| row.single.is_some() || row.replayed.is_some()) {
        return columns;
    }
    let fastest: fn(&RowReport) -> Option<&Measured> =
        |row| row.replayed.as_ref().or(row.single.as_ref());
    let throughput = rows().any(|row| row.work.metric == Metric::Throughput);
    if throughput {
        column(
            "rate",
            false,
            Box::new(move |row| {
                fastest(row).map_or(Cell::default(), |found| {
                    let unit = match row.work.unit {
                        Unit::Points => "points/s",
                        Unit::Interactions => "interactions/s",
                    };
                    let value = found.rates.items_per_s;
                    Cell::number(quantity(value, unit), value)
                })
            }),
        );
        column(
            "arithmetic",
            false,
            Box::new(move |row| {
                fastest(row).map_or(Cell::default(), |found| {
                    let value = found.rates.flops_per_s;
                    Cell::number(quantity(value, "FLOP/s"), value)
                })
            }),
        );
    } else {
        column(
            "bandwidth",
            false,
            Box::new(move |row| {
                fastest(row).map_or(Cell::default(), |found| {
                    let value = found.rates.bytes_per_s;
                    Cell::number(quantity(value, "B/s"), value)
                })
            }),
        );
    }
    if rows().any(|row| fastest(row).is_some_and(|found| found.roof.is_some())) {
        column(
            "of its limit",
            false,
            Box::new(move |row| {
                fastest(row)
                    .and_then(|found| found.roof)
                    .map_or(Cell::default(), |reached| {
                        let limit = match reached.roof {
                            Roof::Memory => "memory",
                            Roof::Fp32 => "FP32",
                            Roof::Fp64 => "FP64",
                        };
                        let percent = 100.0 * reached.fraction;
                        Cell {
                            hint: format!("{limit} allows {}", duration(reached.least_s)),
                            ..Cell::number(format!("{percent:.1} % {limit}"), percent)
                        }
                    })
            }),
        );
    }
    for rival in &report.rivals {
        let of = |row: &RowReport| -> Option<usize> {
            row.contenders
                .iter()
                .position(|found| found.name == rival.name)
        };
        if !rows().any(|row| of(row).is_some()) {
            continue;
        }
        let name = rival.name.clone();
        column(
            &format!("÷ {}", rival.name),
            false,
            Box::new(move |row| {
                row.contenders
                    .iter()
                    .find(|found| found.name == name)
                    .map_or(Cell::default(), |found| ratio(row, found))
            }),
        );
    }
    columns
}

/// How a row's time compares with a contender's.
fn ratio(row: &RowReport, contender: &ContenderReport) -> Cell {
    if let Some(why) = &contender.why_not {
        return Cell {
            shown: "–".to_owned(),
            hint: why.clone(),
            ..Cell::default()
        };
    }
    if !contender.within_bounds {
        return Cell {
            shown: "wrong".to_owned(),
            class: "bad",
            hint: "its result is out of bounds, so it was not timed".to_owned(),
            ..Cell::default()
        };
    }
    let against = match row.replayed {
        Some(_) => &contender.replayed,
        None => &contender.single,
    };
    let Some(against) = against else {
        return Cell::default();
    };
    let (value, spread_percent) = (against.ratio.value, 100.0 * against.ratio.spread);
    let shown = match against.ratio.verdict {
        Verdict::Equal => format!("{value:.3} equal"),
        _ => format!("{value:.3}"),
    };
    Cell {
        class: match against.ratio.verdict {
            Verdict::Faster => "good",
            Verdict::Equal => "",
            Verdict::Slower => "bad",
        },
        hint: format!(
            "{} takes {} {}; Rust is {}, the spread is ±{spread_percent:.1} %",
            contender.name,
            duration(against.time.median_s),
            spread(&against.time),
            verdict(against.ratio.verdict),
        ),
        ..Cell::number(shown, value)
    }
}

/// An error, marked where it is out of bounds.
fn error(value: f64, bound: f64) -> Cell {
    let shown = if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.2e}")
    };
    let within = value <= bound;
    Cell {
        class: if within { "" } else { "bad" },
        hint: format!("at most {bound:.2e}"),
        ..Cell::number(if within { shown } else { format!("{shown} !") }, value)
    }
}
