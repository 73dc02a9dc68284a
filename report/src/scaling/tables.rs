//! The tables of a record of ranks: as text, as a page, as comma-separated values.

use maud::{Markup, html};
use serde::Serialize;

use super::chart::{self, way};
use super::record::{ScalingRecord, ScalingRow};
use crate::Error;
use crate::page::{date, document, left_out_of_page, setup};
use crate::shown::Shown as _;
use crate::units::{duration, quantity};
use crate::view::cut_short;

/// A table, its heading and the note below it.
struct Table {
    title: String,
    header: &'static [&'static str],
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

/// The text of a cell, and its sort key.
struct Cell(String, Option<f64>);

impl Cell {
    fn word(shown: impl ToString) -> Self {
        Self(shown.to_string(), None)
    }

    /// A number in this format, or a dash.
    fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Self {
        Self(value.map_or("–".to_owned(), shown), value)
    }

    fn seconds(value: f64) -> Self {
        Self::number(Some(value), duration)
    }

    fn fraction(value: Option<f64>) -> Self {
        Self::number(value, |it| format!("{it:.3}"))
    }
}

/// The environment and the method, as labels with texts.
fn facts(record: &ScalingRecord) -> Vec<(&'static str, String)> {
    let mut facts = record.environment.facts();
    facts.push(("ranks", record.ranks.to_string()));
    facts.push(("transport", record.transport.clone()));
    if record.transport.to_lowercase().contains("tcp") {
        let warning = "messages go over TCP, although a faster transport may be available";
        facts.push(("warning", warning.to_owned()));
    }
    facts.extend(cut_short(&record.missing).map(|which| ("cut short", which)));
    facts
}

fn messages(record: &ScalingRecord) -> Table {
    let row = |it: &super::MessageTime| {
        // Short messages show the latency instead.
        let rate = (it.bytes >= 65_536).then(|| it.bytes as f64 / it.seconds);
        vec![
            Cell::number(Some(it.bytes as f64), |bytes| bytes.to_string()),
            Cell::seconds(it.seconds),
            Cell::number(rate, |rate| quantity(rate, "B/s")),
        ]
    };
    Table {
        title: "messages around the ring".to_owned(),
        header: &["bytes", "time", "rate"],
        rows: record.messages.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn family(record: &ScalingRecord, name: &str) -> Table {
    let row = |row: &ScalingRow| {
        let bits = match row.equal_bits {
            None => "–",
            Some(true) => "equal",
            Some(false) => "DIFFER",
        };
        vec![
            Cell::word(&row.problem),
            Cell::word(way(row.weak)),
            Cell::word(row.ranks),
            Cell::seconds(row.compute_s),
            Cell::seconds(row.exchange_s),
            Cell::seconds(row.both_s),
            Cell::fraction(row.hidden().filter(|_| row.ranks > 1)),
            Cell::fraction(record.efficiency(row)),
            Cell::word(bits),
        ]
    };
    let rows = record.rows.iter().filter(|row| row.family == name);
    let noisy = rows.clone().any(|row| row.ranks > 1 && row.is_noise());
    Table {
        title: name.to_owned(),
        header: &[
            "problem",
            "scaling",
            "ranks",
            "compute",
            "exchange",
            "both",
            "hidden",
            "efficiency",
            "bits",
        ],
        rows: rows.map(row).collect(),
        notes: noisy.then(|| NOISE.to_owned()).into_iter().collect(),
    }
}

/// The model beside the measurements; `None` where no message took time, as with one rank.
fn projection(record: &ScalingRecord) -> Option<Table> {
    let (latency, bandwidth) = record.line()?;
    let ranks = record.projected();
    let row = |alone: &ScalingRow, ranks: usize| {
        let (one, all) = (record.model(alone, 1)?, record.model(alone, ranks)?);
        let measured = record.on(alone, ranks).map(|row| row.both_s);
        let efficiency = one.all_s() / (alone.shares(ranks) * all.all_s());
        let deviation = measured.map(|it| it / all.all_s() - 1.0);
        Some(vec![
            Cell::word(format!("{} {}", alone.family, alone.size).trim_end()),
            Cell::word(way(alone.weak)),
            Cell::word(ranks),
            Cell::seconds(all.compute_s),
            Cell::seconds(all.exchange_s),
            Cell::seconds(all.reductions_s),
            Cell::seconds(all.all_s()),
            Cell::fraction(Some(efficiency)),
            Cell::number(measured, duration),
            Cell::number(deviation, |it| format!("{:+.1} %", 100.0 * it)),
        ])
    };
    let of_problem = |alone| ranks.iter().filter_map(move |&ranks| row(alone, ranks));
    let notes = [
        "t = max(compute, exchange) + reductions".to_owned(),
        "compute: a line through the times that the whole problem and a small part of it took on \
         one rank; copies of neighbours' points are included"
            .to_owned(),
        "a grid is cut along its last axis, or into squares or cubes, whichever takes less time"
            .to_owned(),
        format!(
            "a message takes {}, and its bytes go at {}, as measured above, however far it goes and \
             however many there are; those along an axis go at once, axes one after the other",
            duration(latency),
            quantity(bandwidth, "B/s")
        ),
        "gathers and sums over all ranks take one message for each doubling of the ranks".to_owned(),
        "messages are hidden behind the computation, reductions are not".to_owned(),
        "with weak scaling the points grow with the ranks, the bodies with the square root of the ranks"
            .to_owned(),
        "deviation: the measured time divided by the model's, minus 1".to_owned(),
    ];
    Some(Table {
        title: "model".to_owned(),
        header: &[
            "problem",
            "scaling",
            "ranks",
            "compute",
            "exchange",
            "reductions",
            "all",
            "efficiency",
            "measured",
            "deviation",
        ],
        rows: record.alone().flat_map(of_problem).collect(),
        notes: notes.into(),
    })
}

/// The families of the record, in its order.
fn families(record: &ScalingRecord) -> Vec<&str> {
    let mut families: Vec<&str> = Vec::new();
    for row in &record.rows {
        if !families.contains(&row.family.as_str()) {
            families.push(&row.family);
        }
    }
    families
}

const NOISE: &str = "hidden –: the messages take less time than the spread of the timings";

const HIDDEN: &str = "hidden = (compute + exchange - both) / min(compute, exchange)";

fn to_text(table: Table) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", table.title);
    let mut drawn = crate::text::table(table.header);
    for row in table.rows {
        drawn.add_row(row.into_iter().map(|Cell(shown, _)| shown));
    }
    text += &format!("{drawn}\n");
    for note in table.notes {
        text += &format!("- {note}\n");
    }
    text
}

/// The environment, and the times of messages.
#[must_use]
pub fn header(record: &ScalingRecord) -> String {
    crate::text::columns(&facts(record)) + &to_text(messages(record)) + "\n" + HIDDEN + "\n"
}

/// The table of a family.
#[must_use]
pub fn of_family(record: &ScalingRecord, name: &str) -> String {
    to_text(family(record, name))
}

/// The model's table with its assumptions.
#[must_use]
pub fn model(record: &ScalingRecord) -> String {
    match projection(record) {
        Some(table) => to_text(table),
        None => {
            "\nno model: it needs messages of two lengths between at least two ranks\n".to_owned()
        }
    }
}

pub(super) fn text(record: &ScalingRecord) -> String {
    let families = families(record).into_iter();
    let families: String = families.map(|name| of_family(record, name)).collect();
    header(record) + &families + &model(record)
}

fn to_markup(table: &Table) -> Markup {
    html! {
        @if !table.rows.is_empty() {
            h2 { (table.title) }
            div.scroll tabindex="0" role="region" aria-label=(table.title) {
                table {
                    thead { tr { @for heading in table.header { th scope="col" { (heading) } } } }
                    tbody {
                        @for row in &table.rows {
                            tr { @for Cell(shown, key) in row { td data-value=[key] { (shown) } } }
                        }
                    }
                }
            }
            @if !table.notes.is_empty() {
                ul.problems { @for note in &table.notes { li { (note) } } }
            }
        }
    }
}

pub(super) fn page(record: &ScalingRecord) -> String {
    let environment = &record.environment;
    let title = format!(
        "Halo over {} ranks: {}",
        record.ranks, environment.device.name
    );
    let (mut figures, mut left_out) = (Vec::new(), Vec::new());
    for chart in chart::all(record) {
        match chart {
            Ok(figure) => figures.push(figure),
            Err(chart) => left_out.push(chart),
        }
    }
    let bits = if record.passes() {
        "Results have the bits of one rank wherever both were computed."
    } else {
        "SOME RESULTS HAVE OTHER BITS than those of one rank."
    };
    let tables = families(record)
        .into_iter()
        .map(|name| family(record, name));
    let tables: Vec<Table> = tables.chain(projection(record)).collect();
    let body = html! {
        p.lead { "Problems shared by ranks, a device each. " (bits) " " (date(environment)) "." }
        (setup(&facts(record), "ranks"))
        @for figure in &figures { (figure.section()) }
        (left_out_of_page(&left_out))
        p { (HIDDEN) }
        @for table in tables.iter().chain([&messages(record)]) { (to_markup(table)) }
    };
    document(&title, &body)
}

/// A line of comma-separated values: a measurement or a prediction.
#[derive(Debug, Serialize)]
struct CsvLine<'a> {
    family: &'a str,
    size: &'a str,
    problem: &'a str,
    scaling: &'static str,
    ranks: usize,
    /// "measured" or "model".
    by: &'static str,
    compute_s: f64,
    exchange_s: f64,
    reductions_s: Option<f64>,
    both_s: f64,
    hidden: Option<f64>,
    efficiency: Option<f64>,
    equal_bits: Option<bool>,
}

pub(super) fn csv(record: &ScalingRecord) -> Result<String, Error> {
    let measured = record.rows.iter().map(|row| CsvLine {
        family: &row.family,
        size: &row.size,
        problem: &row.problem,
        scaling: way(row.weak),
        ranks: row.ranks,
        by: "measured",
        compute_s: row.compute_s,
        exchange_s: row.exchange_s,
        reductions_s: None,
        both_s: row.both_s,
        hidden: row.hidden().filter(|_| row.ranks > 1),
        efficiency: record.efficiency(row),
        equal_bits: row.equal_bits,
    });
    let ranks = record.projected();
    let modelled = record.alone().flat_map(|alone| {
        ranks.iter().filter_map(move |&ranks| {
            let (one, all) = (record.model(alone, 1)?, record.model(alone, ranks)?);
            Some(CsvLine {
                family: &alone.family,
                size: &alone.size,
                problem: if ranks == 1 { &alone.problem } else { "" },
                scaling: way(alone.weak),
                ranks,
                by: "model",
                compute_s: all.compute_s,
                exchange_s: all.exchange_s,
                reductions_s: Some(all.reductions_s),
                both_s: all.all_s(),
                hidden: None,
                efficiency: Some(one.all_s() / (alone.shares(ranks) * all.all_s())),
                equal_bits: None,
            })
        })
    });
    crate::csv::of_lines(facts(record), measured.chain(modelled))
}
