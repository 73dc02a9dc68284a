//! Speed against size: bandwidth per family, interactions per second for
//! families that are bound by arithmetic.

use std::collections::BTreeMap;

use super::super::report::{Metric, Report, Roof, Unit};
use super::super::stats::Times;
use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Canvas, Dashes, Frame, Key, Mark, Pen, SMALL, Width};
use super::data::{Mode, Timed, duration, own_name, quantity, rival_mark, spread, timed};
use super::figure::{Figure, LeftOut, Outcome, slug};
use super::palette::{Colour, Shape};
use crate::error::Error;

/// A value at a size, and where it is from.
#[derive(Clone, Debug)]
struct Sample {
    size: u64,
    value: f64,
    title: String,
}

/// A curve: the best of several kernels at each size, or one kernel.
#[derive(Clone, Debug)]
struct Curve {
    label: String,
    pen: Pen,
    /// The mark at each size, and whether it is filled; none for single kernels
    /// behind the best.
    mark: Option<(Shape, bool)>,
    samples: Vec<Sample>,
}

/// A horizontal line: something that nothing gets past.
#[derive(Clone, Debug)]
struct Limit {
    value: f64,
    label: String,
    dashes: Dashes,
}

/// One chart in the making.
struct Plot {
    x_label: &'static str,
    y_label: String,
    curves: Vec<Curve>,
    limits: Vec<Limit>,
}

/// Speed against size for one family: interactions, or bandwidth.
pub(super) fn figure(report: &Report, hue: usize) -> Outcome<'_> {
    let family = &report.families[hue];
    let rows: Vec<Timed<'_>> = timed(report).filter(|timed| timed.hue == hue).collect();
    let left_out = |why: &str| {
        Outcome::LeftOut(LeftOut {
            title: format!("{}: speed against size", family.name),
            why: why.to_owned(),
        })
    };
    let Some(work) = rows.first().map(|timed| timed.row.work) else {
        return left_out("nothing was timed of it");
    };
    let first = rows[0].problem.elements;
    if rows.iter().all(|timed| timed.problem.elements == first) {
        return left_out("it was timed at one size only; --compare has several");
    }
    let rows: Vec<Timed<'_>> = rows
        .into_iter()
        .filter(|timed| timed.row.work.metric == work.metric)
        .collect();
    match work.metric {
        Metric::Bandwidth => bandwidth(report, hue, &rows),
        Metric::Throughput => throughput(report, hue, &rows, work.unit),
    }
}

/// Bandwidth against the bytes that one launch reads and writes.
fn bandwidth<'a>(report: &'a Report, hue: usize, rows: &[Timed<'a>]) -> Outcome<'a> {
    let family = &report.families[hue];
    let bytes_per_s = |timed: &Timed<'_>, seconds: f64| timed.row.work.bytes as f64 / seconds;
    let bytes = |timed: &Timed<'_>| timed.row.work.bytes;
    let (alike, per_element) = alike(rows);
    let mut curves = thin(rows, "B/s", bytes, bytes_per_s);
    curves.extend(thick(report, &alike, "", "B/s", bytes, bytes_per_s));
    curves.extend(launched_once(report, &alike, bytes_per_s));
    let limits = report.ceilings.copy.as_ref().map(|copy| Limit {
        value: copy.per_s,
        label: format!("copy {}", quantity(copy.per_s, "B/s")),
        dashes: Dashes::None,
    });
    let (all, compared) = (kernels(rows), kernels(&alike));
    let best = if all == compared {
        format!("the best of {all} kernels")
    } else {
        format!("the best of the {compared} kernels that move {per_element:.0} B per element")
    };
    let plot = Plot {
        x_label: "bytes read and written by one launch",
        y_label: "bandwidth, B/s".to_owned(),
        curves,
        limits: limits.into_iter().collect(),
    };
    plot.figure(
        slug("bandwidth", &family.name),
        format!("{}: bandwidth against size", family.name),
        caption(&best, all),
    )
}

/// Interactions per second against the number of bodies, or points against points.
fn throughput<'a>(report: &'a Report, hue: usize, rows: &[Timed<'a>], unit: Unit) -> Outcome<'a> {
    let family = &report.families[hue];
    let (items, x_label) = match unit {
        Unit::Interactions => ("interactions", "bodies"),
        Unit::Points => ("points", "points"),
    };
    let rate = format!("{items}/s");
    let items_per_s = |timed: &Timed<'_>, seconds: f64| timed.row.work.items as f64 / seconds;
    let size = |timed: &Timed<'_>| timed.problem.elements;
    let mut curves = thin(rows, &rate, size, items_per_s);
    let mut limits = Vec::new();
    let (double, single): (Vec<_>, Vec<_>) = rows.iter().copied().partition(Timed::is_double);
    for (rows, precision, dashes) in [
        (&single, "f32", Dashes::None),
        (&double, "f64", Dashes::Long),
    ] {
        let mut best = thick(report, rows, precision, &rate, size, items_per_s);
        if precision == "f64" {
            // Told from f32 by the shape as well as by where it lies.
            for curve in &mut best {
                curve.mark = curve.mark.map(|(_, filled)| (Shape::Square, filled));
            }
        }
        curves.extend(best);
        // What the least time that the instructions take amounts to; at small
        // sizes what surrounds the innermost loop counts as well.
        let limit = rows
            .iter()
            .filter_map(|timed| {
                let reached = timed.measured.roof?;
                (reached.roof != Roof::Memory)
                    .then(|| timed.row.work.items as f64 / reached.least_s)
            })
            .filter(|limit| limit.is_finite())
            .max_by(f64::total_cmp);
        limits.extend(limit.map(|value| Limit {
            value,
            label: format!("{precision} issue limit {}", quantity(value, &rate)),
            dashes,
        }));
    }
    let all = kernels(rows);
    let mut caption = caption(&format!("the best of {all} kernels"), all);
    if !limits.is_empty() {
        caption.push_str(
            " The issue limit is what the instructions of one interaction allow at the measured rate of multiply-adds.",
        );
    }
    let plot = Plot {
        x_label,
        y_label: rate,
        curves,
        limits,
    };
    plot.figure(
        slug("throughput", &family.name),
        format!("{}: {items} per second", family.name),
        caption,
    )
}

fn caption(best: &str, kernels: usize) -> String {
    if kernels == 1 {
        return "One kernel at each of its sizes.".to_owned();
    }
    format!("Thick: {best} at each size. Thin: each of them.")
}

/// How many kernels these rows are of.
fn kernels(rows: &[Timed<'_>]) -> usize {
    let mut names: Vec<&str> = rows.iter().map(|timed| timed.row.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// Those rows that move as many bytes per element as most rows do, and how many
/// that is: the best of them is a comparison of like with like.
fn alike<'a>(rows: &[Timed<'a>]) -> (Vec<Timed<'a>>, f64) {
    // Rounded, since an edge that is not written makes it no whole number.
    let per_element = |timed: &Timed<'_>| {
        (timed.row.work.bytes as f64 / timed.problem.elements.max(1) as f64).round() as u64
    };
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for timed in rows {
        *counts.entry(per_element(timed)).or_default() += 1;
    }
    // Of two that are equally common, the smaller.
    let most = counts
        .into_iter()
        .max_by_key(|&(bytes, count)| (count, std::cmp::Reverse(bytes)))
        .map_or(0, |(bytes, _)| bytes);
    let alike = rows
        .iter()
        .copied()
        .filter(|timed| per_element(timed) == most)
        .collect();
    (alike, most as f64)
}

/// A curve per kernel, faint, unless there is but one.
fn thin(
    rows: &[Timed<'_>],
    unit: &str,
    size: impl Fn(&Timed<'_>) -> u64,
    value: impl Fn(&Timed<'_>, f64) -> f64,
) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for timed in rows {
        let time = &timed.measured.time;
        let sample = sample(
            timed,
            None,
            size(timed),
            value(timed, time.median_s),
            time,
            unit,
        );
        match curves
            .iter_mut()
            .find(|curve| curve.label == timed.row.name)
        {
            Some(curve) => curve.samples.push(sample),
            None => curves.push(Curve {
                label: timed.row.name.clone(),
                pen: Pen {
                    opacity: 0.45,
                    ..Pen::solid(Colour::Hue(timed.hue), 1.0)
                },
                mark: None,
                samples: vec![sample],
            }),
        }
    }
    if curves.len() == 1 {
        curves.clear();
    }
    for curve in &mut curves {
        curve.samples.sort_by_key(|sample| sample.size);
    }
    curves
}

/// What was timed, as a value at a size.
fn sample(
    timed: &Timed<'_>,
    who: Option<&str>,
    size: u64,
    value: f64,
    time: &Times,
    unit: &str,
) -> Sample {
    let who = who.map_or(String::new(), |who| format!("{who}: "));
    Sample {
        size,
        value,
        title: format!(
            "{who}{}\n{} {}, {}",
            timed.title(),
            duration(time.median_s),
            spread(time),
            quantity(value, unit),
        ),
    }
}

/// The best kernel at each size, and the best of each rival.
fn thick(
    report: &Report,
    rows: &[Timed<'_>],
    precision: &str,
    unit: &str,
    size: impl Fn(&Timed<'_>) -> u64,
    value: impl Fn(&Timed<'_>, f64) -> f64,
) -> Vec<Curve> {
    let mut best: BTreeMap<u64, Sample> = BTreeMap::new();
    let mut rivals: BTreeMap<usize, (&str, BTreeMap<u64, Sample>)> = BTreeMap::new();
    for timed in rows {
        let of = |who: Option<&str>, time: &Times| {
            sample(
                timed,
                who,
                size(timed),
                value(timed, time.median_s),
                time,
                unit,
            )
        };
        keep_best(&mut best, of(None, &timed.measured.time));
        for other in timed.others(report) {
            let (_, samples) = rivals
                .entry(other.rival)
                .or_insert_with(|| (other.name, BTreeMap::new()));
            keep_best(samples, of(Some(other.name), other.time));
        }
    }
    let label = |who: &str| match precision {
        "" => who.to_owned(),
        _ => format!("{who}, {precision}"),
    };
    let Some(hue) = rows.first().map(|timed| timed.hue) else {
        return Vec::new();
    };
    let mut curves: Vec<Curve> = rivals
        .into_iter()
        .map(|(rival, (name, samples))| {
            let (shape, colour) = rival_mark(rival, hue);
            let dashes = if rival == 0 {
                Dashes::Long
            } else {
                Dashes::Short
            };
            Curve {
                label: label(name),
                pen: Pen::dashed(colour, 1.8, dashes),
                mark: Some((shape, false)),
                samples: samples.into_values().collect(),
            }
        })
        .collect();
    curves.push(Curve {
        label: label(own_name(report)),
        pen: Pen::solid(Colour::Hue(hue), 2.4),
        mark: Some((Shape::of(hue), true)),
        samples: best.into_values().collect(),
    });
    curves
}

fn keep_best(best: &mut BTreeMap<u64, Sample>, sample: Sample) {
    if !(sample.value.is_finite() && sample.value > 0.0) {
        return;
    }
    let held = best.entry(sample.size).or_insert_with(|| sample.clone());
    if sample.value > held.value {
        *held = sample;
    }
}

/// What the best kernel reaches when it is launched once, at the sizes where the
/// other curves show replayed launches.
fn launched_once(
    report: &Report,
    rows: &[Timed<'_>],
    value: impl Fn(&Timed<'_>, f64) -> f64,
) -> Option<Curve> {
    let mut best: BTreeMap<u64, Sample> = BTreeMap::new();
    for timed in rows.iter().filter(|timed| timed.mode == Mode::Replayed) {
        let Some(single) = &timed.row.single else {
            continue;
        };
        let once = Timed {
            mode: Mode::Single,
            measured: single,
            ..*timed
        };
        let (time, size) = (&single.time, timed.row.work.bytes);
        let value = value(&once, time.median_s);
        keep_best(
            &mut best,
            sample(&once, Some("launched once"), size, value, time, "B/s"),
        );
    }
    let hue = rows.first()?.hue;
    (!best.is_empty()).then(|| Curve {
        label: format!("{}, launched once", own_name(report)),
        pen: Pen::dashed(Colour::Hue(hue), 1.6, Dashes::Dots),
        mark: None,
        samples: best.into_values().collect(),
    })
}

impl Plot {
    fn figure<'a>(self, slug: String, title: String, caption: String) -> Outcome<'a> {
        let mut most: Option<(&Curve, &Sample)> = None;
        for curve in self.curves.iter().filter(|curve| curve.mark.is_some()) {
            for sample in &curve.samples {
                if most.is_none_or(|(_, held)| sample.value > held.value) {
                    most = Some((curve, sample));
                }
            }
        }
        let Some((curve, sample)) = most else {
            return Outcome::LeftOut(LeftOut {
                title,
                why: "nothing that was timed has a speed".to_owned(),
            });
        };
        let description = format!(
            "{} against {}. Highest: {}, {}.",
            self.y_label,
            self.x_label,
            curve.label,
            sample.title.replace('\n', ", ")
        );
        Outcome::Drawn(Figure {
            slug,
            title,
            caption,
            description,
            draw: Box::new(move |width| self.draw(width)),
            small: true,
        })
    }

    fn draw(&self, width: Width) -> Result<Canvas, Error> {
        let samples = || self.curves.iter().flat_map(|curve| &curve.samples);
        let x = Axis::around(
            self.x_label,
            Scale::Octaves,
            samples().map(|sample| sample.size as f64),
            width.x_ticks(),
        );
        let y = Axis::from_zero(
            &self.y_label,
            samples()
                .map(|sample| sample.value)
                .chain(self.limits.iter().map(|limit| limit.value * 1.06)),
            6,
        );
        let (Some(x), Some(y)) = (x, y) else {
            return Err(Error::Bench(format!("nothing to draw: {}", self.y_label)));
        };
        let mut legend: Vec<Key> = self
            .curves
            .iter()
            .filter(|curve| curve.mark.is_some() || curve.pen.dashes != Dashes::None)
            .map(|curve| Key {
                pen: curve.pen,
                mark: curve.mark,
                label: curve.label.clone(),
            })
            .collect();
        // The one that all this is about comes first.
        legend.sort_by_key(|key| !key.mark.is_some_and(|mark| mark.1));
        let mut canvas = Canvas::new(Frame {
            width,
            plot_height: width.pick(320, 260),
            left: 56,
            right: 14,
            x,
            y,
            y_lines: true,
            legend: &legend,
        })?;
        let (x_start, x_end) = canvas.x_ends();
        for limit in &self.limits {
            let pen = Pen::dashed(Colour::Ink, 1.4, limit.dashes);
            let ends = [(x_start, limit.value), (x_end, limit.value)];
            canvas.line(&ends, pen, Some(&limit.label));
        }
        for curve in &self.curves {
            let values: Vec<(f64, f64)> = curve
                .samples
                .iter()
                .map(|sample| (sample.size as f64, sample.value))
                .collect();
            canvas.line(&values, curve.pen, Some(&curve.label));
            let (shape, filled, radius) = match curve.mark {
                Some((shape, filled)) => (shape, filled, width.pick(4.6, 3.8)),
                // Something to point at, and to see where there is one size only.
                None => (Shape::Circle, true, 1.8),
            };
            for (value, sample) in values.into_iter().zip(&curve.samples) {
                let mark = Mark {
                    shape,
                    colour: curve.pen.colour,
                    filled,
                    radius,
                };
                canvas.mark(value, mark, &sample.title);
            }
        }
        // Labels of limits last, so that nothing runs through them.
        for limit in &self.limits {
            // At the left end, where speeds are low and curves far below.
            if let Some((x, y)) = canvas.at((x_start, limit.value)) {
                let place = (x + 6.0, y - 6.0);
                canvas.text(place, &limit.label, SMALL, Colour::Ink, Anchor::Start);
            }
        }
        Ok(canvas)
    }
}
