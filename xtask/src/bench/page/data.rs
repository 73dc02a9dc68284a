//! The report as charts need it: what was timed, by whom, in which way.

use super::super::report::{
    ContenderReport, FamilyReport, Measured, Metric, ProblemReport, Report, Roof, RowReport, Unit,
};
use super::super::stats::{Ratio, Times};
use super::palette::{Colour, Shape};

/// How launches were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Single,
    Replayed,
}

/// One timed row: a kernel at a size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timed<'a> {
    /// The family's place in the report, which gives it its colour.
    pub(super) hue: usize,
    pub(super) family: &'a FamilyReport,
    pub(super) problem: &'a ProblemReport,
    pub(super) row: &'a RowReport,
    pub(super) mode: Mode,
    pub(super) measured: &'a Measured,
}

/// What another did of the same work, timed in the same way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other<'a> {
    /// Its place among the report's rivals, which gives it its mark.
    pub(super) rival: usize,
    pub(super) name: &'a str,
    pub(super) time: &'a Times,
    pub(super) ratio: &'a Ratio,
}

/// All timed rows. Where launches were replayed, that is what is taken: at sizes
/// where it makes a difference, single launches show what a launch costs.
pub(super) fn timed(report: &Report) -> impl Iterator<Item = Timed<'_>> {
    rows(report).filter_map(|(hue, family, problem, row)| {
        let (mode, measured) = match (&row.replayed, &row.single) {
            (Some(replayed), _) => (Mode::Replayed, replayed),
            (None, Some(single)) => (Mode::Single, single),
            (None, None) => return None,
        };
        Some(Timed {
            hue,
            family,
            problem,
            row,
            mode,
            measured,
        })
    })
}

/// All rows, timed or not, with their family's place.
fn rows(
    report: &Report,
) -> impl Iterator<Item = (usize, &FamilyReport, &ProblemReport, &RowReport)> {
    report
        .families
        .iter()
        .enumerate()
        .flat_map(|(hue, family)| {
            family.problems.iter().flat_map(move |problem| {
                problem
                    .rows
                    .iter()
                    .map(move |row| (hue, family, problem, row))
            })
        })
}

/// Of each kernel the largest size at which it was timed, and the others after
/// it, largest first; kernels in the order of the report.
pub(super) fn by_kernel(report: &Report) -> Vec<Vec<Timed<'_>>> {
    let mut kernels: Vec<Vec<Timed<'_>>> = Vec::new();
    for timed in timed(report) {
        let same = kernels
            .iter_mut()
            .find(|sizes| sizes[0].hue == timed.hue && sizes[0].row.name == timed.row.name);
        match same {
            Some(sizes) => sizes.push(timed),
            None => kernels.push(vec![timed]),
        }
    }
    for sizes in &mut kernels {
        sizes.sort_by_key(|timed| std::cmp::Reverse(timed.problem.elements));
    }
    kernels.sort_by_key(|sizes| sizes[0].hue);
    kernels
}

impl<'a> Timed<'a> {
    /// Whoever else did this work, timed as this was.
    pub(super) fn others(&self, report: &'a Report) -> Vec<Other<'a>> {
        let row: &'a RowReport = self.row;
        row.contenders
            .iter()
            .filter_map(|contender| {
                let against = match self.mode {
                    Mode::Single => contender.single.as_ref(),
                    Mode::Replayed => contender.replayed.as_ref(),
                }?;
                Some(Other {
                    rival: rival(report, contender),
                    name: &contender.name,
                    time: &against.time,
                    ratio: &against.ratio,
                })
            })
            .collect()
    }

    /// The row's name and size, for a tooltip.
    pub(super) fn title(&self) -> String {
        let mode = match self.mode {
            Mode::Single => "",
            Mode::Replayed => ", replayed",
        };
        format!("{}, {}{mode}", self.row.name, self.problem.size)
    }

    /// Whether the limit, or else the count of instructions, is of double precision.
    pub(super) fn is_double(&self) -> bool {
        match self.measured.roof {
            Some(reached) if reached.roof != Roof::Memory => reached.roof == Roof::Fp64,
            _ => self.row.work.slots.fp64 > 0 || self.row.name.contains("f64"),
        }
    }
}

/// The place of a contender among the report's rivals; after all of them where
/// it is none of them.
fn rival(report: &Report, contender: &ContenderReport) -> usize {
    report
        .rivals
        .iter()
        .position(|rival| rival.name == contender.name)
        .unwrap_or(report.rivals.len())
}

/// What the measured code itself is called beside its rivals.
pub(super) fn own_name(report: &Report) -> &'static str {
    match report.environment.device.kind.as_str() {
        "cpu" => "CPU port",
        _ => "Rust",
    }
}

/// Which mark stands for a rival: the outline of the family's own mark for the
/// first, which is the twin of every kernel, and a shape of its own for others.
pub(super) fn rival_mark(rival: usize, hue: usize) -> (Shape, Colour) {
    match rival {
        0 => (Shape::of(hue), Colour::Hue(hue)),
        1 => (Shape::Cross, Colour::Ink),
        _ => (Shape::Inverted, Colour::Ink),
    }
}

/// A rate with a decimal prefix, as tables and tooltips have it.
pub(super) fn rate(work: &super::super::report::Work, seconds: f64) -> String {
    match work.metric {
        Metric::Bandwidth => quantity(work.bytes as f64 / seconds, "B/s"),
        Metric::Throughput => quantity(
            work.items as f64 / seconds,
            match work.unit {
                Unit::Points => "points/s",
                Unit::Interactions => "interactions/s",
            },
        ),
    }
}

pub(super) use super::super::text::{duration, quantity};

/// "±1.2 %", or nothing where one launch was timed.
pub(super) fn spread(times: &Times) -> String {
    if times.launches < 2 {
        return String::new();
    }
    format!("±{:.1} %", 100.0 * times.relative_spread)
}
