//! Writes a record as one self-contained HTML page, and its charts as separate files.
//!
//! The page has the environment, the main results, the charts, and all figures in tables. Every
//! text from a record (the name of a GPU, the words of an error) becomes text of an element or
//! value of an attribute, which maud escapes.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{self, LeftOut};
use crate::palette;
use crate::record::{Environment, FamilyRecord, Metric, Record};
use crate::stats::Verdict;
use crate::units::{duration, median, printable, quantity};
use crate::view::{Mode, PlacedRow, Timed};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("sort.js");

/// From this number of rows on, a family's table is collapsed at first.
const MANY_ROWS: usize = 40;

/// The charts as files: names and contents.
#[must_use]
pub fn svg_files(record: &Record) -> Vec<(String, String)> {
    files_of(figure::all(record))
}

/// The charts that were drawn, as files.
pub(crate) fn files_of(charts: Vec<figure::Outcome<'_>>) -> Vec<(String, String)> {
    let drawn = charts.into_iter().flatten();
    drawn
        .map(|figure| (format!("{}.svg", figure.slug), finished(&figure.document())))
        .collect()
}

/// The record as one page without other files.
#[must_use]
pub fn html(record: &Record) -> String {
    let title = format!("Halo benchmark: {}", record.environment.device.name);
    let (mut large, mut small, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for chart in figure::all(record) {
        match chart {
            Ok(figure) if figure.small => small.push(figure),
            Ok(figure) => large.push(figure),
            Err(chart) => left_out.push(chart),
        }
    }
    let body = html! {
        p.lead { (lead(record)) }
        (tiles(record))
        (setup(&record.facts(), "launches"))
        @for figure in &large { (figure.section()) }
        @if !small.is_empty() {
            h2 { "Speed against size" }
            div.grid-of-charts { @for figure in &small { (figure.section()) } }
        }
        (left_out_of_page(&left_out))
        h2 { "All figures" }
        p { "± is half the distance between the quartiles." }
        @for (hue, family) in record.families.iter().enumerate() {
            (table(record, hue, family))
        }
    };
    document(&title, &body)
}

/// A page with this title and body.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(CSS)) (PreEscaped(palette::style())) }
            }
            body {
                main {
                    h1 { (title) }
                    (body)
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    finished(&page.0)
}

/// Markup with lines of moderate length, without characters that XML forbids.
fn finished(markup: &str) -> String {
    const ENDS: [&str; 6] = [
        "</line>",
        "</path>",
        "</text>",
        "</tr>",
        "</section>",
        "</style>",
    ];
    let break_after = |markup: String, end| markup.replace(end, &format!("{end}\n"));
    ENDS.into_iter().fold(printable(markup), break_after)
}

/// A paragraph for each reason for leaving out charts, with their names; empty for none.
pub(crate) fn left_out_of_page(left_out: &[LeftOut]) -> Markup {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for chart in left_out {
        let title = format!("“{}”", chart.title);
        match reasons.iter_mut().find(|(why, _)| *why == chart.why) {
            Some((_, titles)) => titles.push(title),
            None => reasons.push((&chart.why, vec![title])),
        }
    }
    html! {
        @if !reasons.is_empty() { h2 { "Charts left out" } }
        @for (why, titles) in reasons { p.left-out { (titles.join(", ")) ": " (why) "." } }
    }
}

/// One sentence that introduces the page.
fn lead(record: &Record) -> String {
    let what = match record.environment.device.kind.as_str() {
        "cuda" => "CUDA kernels written in Rust, each checked against its CPU port, then timed",
        "emulator" => {
            "CUDA kernels written in Rust, each run thread for thread on the emulator and checked; no speed is given, \
             since the emulator's says nothing"
        }
        _ => "CPU ports of the kernels, each checked, then timed",
    };
    format!("{what}. {}.", date(&record.environment))
}

/// The start of the run, for people.
pub(crate) fn date(environment: &Environment) -> String {
    environment.date.replace('T', " ").replace('Z', " UTC")
}

/// The main figures.
fn tiles(record: &Record) -> Markup {
    let rows = record.rows().count();
    let within = record.rows().filter(|row| row.check.passes()).count();
    let class = if within == rows && rows > 0 {
        "good"
    } else {
        "bad"
    };
    let mut tiles: Vec<(String, String, &str)> = Vec::new();
    let of_rows = "rows within their error bounds".to_owned();
    tiles.push((format!("{within} of {rows}"), of_rows, class));
    let kernels = record.kernels();
    for (index, baseline) in record.baselines.iter().enumerate() {
        let [mut faster, mut equal, mut slower] = [0, 0, 0];
        let others = kernels.iter().flat_map(|sizes| sizes[0].baselines());
        for other in others.filter(|other| other.baseline() == Some(index)) {
            match other.ratio().map(|ratio| ratio.verdict) {
                Some(Verdict::Faster) => faster += 1,
                Some(Verdict::Equal) => equal += 1,
                Some(Verdict::Slower) => slower += 1,
                None => {}
            }
        }
        let all = faster + equal + slower;
        if all > 0 {
            let what = format!(
                "kernels at least as fast as {} at their largest size: {faster} faster, {equal} equal, {slower} slower",
                baseline.name
            );
            let class = if slower == 0 { "good" } else { "" };
            tiles.push((format!("{} of {all}", faster + equal), what, class));
        }
    }
    if let Some(copy) = &record.ceilings.copy {
        let what = "a copy within the device's memory".to_owned();
        tiles.push((quantity(copy.per_s(), "B/s"), what, ""));
    }
    for metric in [Metric::Bandwidth, Metric::Throughput] {
        let largest = kernels.iter().map(|sizes| sizes[0]);
        let of_metric = largest.filter(|timed| timed.place.row.work.metric == metric);
        let best = of_metric.max_by(|a, b| a.speed().0.total_cmp(&b.speed().0));
        if let Some(best) = best {
            let (place, (speed, unit)) = (best.place, best.speed());
            let what = format!("{}, {}", place.row.name, place.problem.size);
            tiles.push((quantity(speed, &unit), what, ""));
        }
    }
    html! {
        ul.tiles {
            @for (figure, what, class) in tiles {
                li { strong class=(class) { (figure) } span { (what) } }
            }
        }
    }
}

/// The environment of the measurements, and beside it the method, a sentence that begins with
/// `method`.
pub(crate) fn setup(facts: &[(&str, String)], method: &str) -> Markup {
    let how = facts.iter().position(|(word, _)| *word == method);
    let (machine, run) = facts.split_at(how.unwrap_or(facts.len()));
    html! {
        div.setup {
            @for list in [machine, run] {
                dl { @for (term, what) in list { dt { (term) } dd { (what) } } }
            }
        }
    }
}

/// A cell: its text, its sort key and its mark.
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
            key: Some(key).filter(|key| key.is_finite()),
            ..Self::default()
        }
    }
}

/// A heading, and its cell in each row; `None` where a row has none.
type Column<'a> = (String, Box<dyn Fn(PlacedRow<'a>) -> Option<Cell> + 'a>);

/// Every row of a family, at all sizes.
fn table(record: &Record, hue: usize, family: &FamilyRecord) -> Markup {
    let places: Vec<PlacedRow<'_>> = record.places().filter(|place| place.hue == hue).collect();
    let mut columns = columns(record, &places);
    columns.retain(|(_, cell)| places.iter().any(|place| cell(*place).is_some()));
    let rows = if places.len() == 1 { "row" } else { "rows" };
    html! {
        details open=[(places.len() < MANY_ROWS).then_some("open")] {
            summary { (family.name) ": " (places.len()) " " (rows) }
            div.scroll tabindex="0" role="region" aria-label={ "All figures of " (family.name) } {
                table {
                    thead {
                        tr {
                            th.left scope="col" { "kernel" }
                            th scope="col" { "size" }
                            th.left scope="col" { "tile" }
                            @for (heading, _) in &columns { th scope="col" { (heading) } }
                        }
                    }
                    tbody {
                        @for place in &places {
                            tr {
                                th scope="row" { (name(&place.row.name)) }
                                td data-value=(place.problem.elements) { (place.problem.size) }
                                td.left { (place.row.tile) }
                                @for (_, cell) in &columns { (td(cell(*place).unwrap_or_default())) }
                            }
                        }
                    }
                }
            }
            ul.problems {
                @for problem in &family.problems {
                    li {
                        (problem.size) ": " (problem.problem)
                        @for part in problem.boundary.iter().chain(&problem.notes) { "; " (part) }
                        @for left in &problem.left_out { "; " (left.name) " was not run: " (left.why) }
                    }
                }
            }
        }
    }
}

/// The name of a row, with possible line breaks after underscores.
fn name(name: &str) -> Markup {
    html! {
        @for (index, word) in name.split('_').enumerate() {
            @if index > 0 { "_" wbr; }
            (word)
        }
    }
}

fn td(cell: Cell) -> Markup {
    let class = Some(cell.class).filter(|class| !class.is_empty());
    let hint = Some(cell.hint).filter(|hint| !hint.is_empty());
    html! { td class=[class] data-value=[cell.key] title=[hint] { (cell.shown) } }
}

/// The columns after the tile.
fn columns<'a>(record: &'a Record, places: &[PlacedRow<'a>]) -> Vec<Column<'a>> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    let mut column = |heading: String, cell: fn(PlacedRow<'a>) -> Option<Cell>| {
        columns.push((heading, Box::new(cell)));
    };
    column("RMS error".to_owned(), |place| {
        let check = &place.row.check;
        Some(error(check.rms_error, check.rms_bound))
    });
    column("max error".to_owned(), |place| {
        let check = &place.row.check;
        Some(error(check.max_error, check.max_bound))
    });
    column("time, single launch".to_owned(), |place| {
        place.own(Mode::Single).map(time)
    });
    column("time, replayed".to_owned(), |place| {
        place.own(Mode::Replayed).map(time)
    });
    if places
        .iter()
        .any(|place| place.row.work.metric == Metric::Throughput)
    {
        column("rate".to_owned(), |place| {
            let work = &place.row.work;
            let rate = place.timed()?.per_s(work.items);
            Some(Cell::number(
                quantity(rate, &format!("{}/s", work.unit.plural())),
                rate,
            ))
        });
        column("arithmetic".to_owned(), |place| {
            let rate = place.timed()?.per_s(place.row.work.flops);
            Some(Cell::number(quantity(rate, "FLOP/s"), rate))
        });
    } else {
        column("bandwidth".to_owned(), |place| {
            let rate = place.timed()?.per_s(place.row.work.bytes);
            Some(Cell::number(quantity(rate, "B/s"), rate))
        });
    }
    column("of its limit".to_owned(), |place| {
        let (limit, fraction) = place.timed()?.of_limit()?;
        let (limit, percent) = (limit.name(), 100.0 * fraction);
        let hint = format!("{limit} allows {}", duration(place.least()?.1));
        Some(Cell {
            hint,
            ..Cell::number(format!("{percent:.1} % {limit}"), percent)
        })
    });
    for baseline in &record.baselines {
        let heading = format!("÷ {}", baseline.name);
        columns.push((heading, Box::new(|place| ratio(place, &baseline.name))));
    }
    columns
}

fn time(timed: Timed<'_>) -> Cell {
    let time = timed.time;
    let (fastest, slowest) = (duration(time.min_s), duration(time.max_s));
    let hint = format!(
        "median of {} timings; fastest {fastest}, slowest {slowest}",
        time.launches
    );
    Cell {
        hint,
        ..Cell::number(median(time), time.median_s)
    }
}

/// The ratio of a row's time to a baseline's.
fn ratio(place: PlacedRow<'_>, name: &str) -> Option<Cell> {
    let baseline = place
        .row
        .baselines
        .iter()
        .find(|baseline| baseline.name == name)?;
    if let Some(why) = &baseline.why_not {
        let (shown, hint) = ("–".to_owned(), why.clone());
        return Some(Cell {
            shown,
            hint,
            ..Cell::default()
        });
    }
    if baseline.is_wrong() {
        return Some(Cell {
            shown: "wrong".to_owned(),
            class: "bad",
            hint: "its result is out of bounds, so it was not timed".to_owned(),
            ..Cell::default()
        });
    }
    let other = place.of(baseline, place.timed()?.mode)?;
    let ratio = other.ratio()?;
    let (shown, class) = match ratio.verdict {
        Verdict::Faster => (format!("{:.3}", ratio.value), "good"),
        Verdict::Equal => (format!("{:.3} equal", ratio.value), ""),
        Verdict::Slower => (format!("{:.3}", ratio.value), "bad"),
    };
    let hint = format!(
        "{name} takes {}; Rust is {}, the spread is ±{:.1} %",
        median(other.time),
        ratio.verdict.name(),
        100.0 * ratio.spread,
    );
    Some(Cell {
        class,
        hint,
        ..Cell::number(shown, ratio.value)
    })
}

/// An error, marked where it is out of bounds.
fn error(value: f64, bound: f64) -> Cell {
    let shown = if value == 0.0 {
        "0".to_owned()
    } else {
        format!("{value:.2e}")
    };
    let (shown, class) = if value <= bound {
        (shown, "")
    } else {
        (format!("{shown} !"), "bad")
    };
    Cell {
        class,
        hint: format!("at most {bound:.2e}"),
        ..Cell::number(shown, value)
    }
}

#[cfg(test)]
mod tests;
