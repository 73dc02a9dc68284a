//! Charts of speed against size: bandwidth, or interactions per second for families limited by
//! arithmetic.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::chart::{Figure, LeftOut, Outcome, mark, own_name, slug};
use crate::axis::{Axis, Scale};
use crate::canvas::{Canvas, DOTS, Font, Frame, Key, LONG, Mark, Pen, SHORT, SMALL, Width};
use crate::palette::{Colour, Shape};
use crate::record::{Metric, Record, Unit};
use crate::units::quantity;
use crate::view::{Mode, Timed};

/// A value at a size, and its tooltip.
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
    /// The mark at each size; none for single kernels behind the best.
    mark: Option<Mark>,
    samples: Vec<Sample>,
}

/// A horizontal line: an upper limit.
#[derive(Clone, Debug)]
struct Limit {
    value: f64,
    label: String,
    dashes: Option<&'static str>,
}

/// A chart under construction.
struct Plot {
    metric: Metric,
    x_label: &'static str,
    /// The unit of the values.
    unit: String,
    curves: Vec<Curve>,
    limits: Vec<Limit>,
}

/// Speed against size for one family: interactions, or bandwidth.
pub(super) fn figure(record: &Record, hue: usize) -> Outcome<'_> {
    let name = &record.families[hue].name;
    let title = format!("{name}: speed against size");
    let mut rows: Vec<Timed<'_>> = record
        .places()
        .filter(|place| place.hue == hue)
        .filter_map(|place| place.timed())
        .collect();
    let Some(work) = rows.first().map(|timed| timed.place.row.work) else {
        return Err(LeftOut::new(&title, "none of its rows was timed"));
    };
    let sizes: BTreeSet<u64> = rows
        .iter()
        .map(|timed| timed.place.problem.elements)
        .collect();
    if sizes.len() == 1 {
        let why = "it was timed at one size only; --compare has several";
        return Err(LeftOut::new(&title, why));
    }
    rows.retain(|timed| timed.place.row.work.metric == work.metric);
    match work.metric {
        Metric::Bandwidth => bandwidth(record, name, &rows),
        Metric::Throughput => throughput(record, name, &rows, work.unit),
    }
}

/// Bandwidth against the bytes that one launch reads and writes.
fn bandwidth<'a>(record: &'a Record, name: &str, rows: &[Timed<'a>]) -> Outcome<'a> {
    let mut plot = Plot {
        metric: Metric::Bandwidth,
        x_label: "bytes read and written by one launch",
        unit: "B/s".to_owned(),
        curves: Vec::new(),
        limits: Vec::new(),
    };
    let (alike, per_element) = alike(rows);
    plot.thin(rows);
    plot.thick(record, &alike, None);
    plot.launched_once(record, &alike);
    plot.limits
        .extend(record.ceilings.copy.as_ref().map(|copy| Limit {
            value: copy.per_s(),
            label: format!("copy {}", quantity(copy.per_s(), "B/s")),
            dashes: None,
        }));
    let (all, compared) = (kernels(rows), kernels(&alike));
    let best = if all == compared {
        format!("the best of {all} kernels")
    } else {
        format!("the best of the {compared} kernels that move {per_element} B per element")
    };
    let title = format!("{name}: bandwidth against size");
    plot.figure(
        "bandwidth, B/s",
        slug("bandwidth", name),
        title,
        caption(&best, all),
    )
}

/// Interactions per second against the number of bodies, or points against points.
fn throughput<'a>(record: &'a Record, name: &str, rows: &[Timed<'a>], unit: Unit) -> Outcome<'a> {
    let rate = format!("{}/s", unit.plural());
    let mut plot = Plot {
        metric: Metric::Throughput,
        x_label: match unit {
            Unit::Interactions => "bodies",
            Unit::Points => "points",
        },
        unit: rate.clone(),
        curves: Vec::new(),
        limits: Vec::new(),
    };
    plot.thin(rows);
    let (double, single): (Vec<_>, Vec<_>) = rows.iter().partition(|timed| timed.is_double());
    for (rows, precision, dashes) in [(single, "f32", None), (double, "f64", LONG)] {
        plot.thick(record, &rows, Some(precision));
        // The speed at the least time of the instructions. At small sizes the code around the
        // innermost loop counts too.
        let limit = |timed: &Timed<'_>| {
            let (_, least_s) = timed.place.least().filter(|least| !least.0.is_memory())?;
            Some(timed.place.row.work.items as f64 / least_s)
        };
        let limits = rows
            .iter()
            .filter_map(limit)
            .filter(|limit| limit.is_finite());
        let limit = limits.max_by(f64::total_cmp);
        plot.limits.extend(limit.map(|value| Limit {
            value,
            label: format!("{precision} issue limit {}", quantity(value, &rate)),
            dashes,
        }));
    }
    let all = kernels(rows);
    let mut caption = caption(&format!("the best of {all} kernels"), all);
    if !plot.limits.is_empty() {
        caption.push_str(
            " The issue limit is what the instructions of one interaction allow at the measured rate of multiply-adds.",
        );
    }
    let title = format!("{name}: {} per second", unit.plural());
    plot.figure(&rate, slug("throughput", name), title, caption)
}

fn caption(best: &str, kernels: usize) -> String {
    if kernels == 1 {
        return "One kernel at each of its sizes.".to_owned();
    }
    format!("Thick: {best} at each size. Thin: each of them.")
}

/// The number of different kernels among these rows.
fn kernels(rows: &[Timed<'_>]) -> usize {
    rows.iter()
        .map(|timed| &timed.place.row.name)
        .collect::<BTreeSet<_>>()
        .len()
}

/// The rows that move as many bytes per element as most rows do, and that number: only among those
/// is the best one comparable.
fn alike<'a>(rows: &[Timed<'a>]) -> (Vec<Timed<'a>>, u64) {
    // Rounded, because edges that are not written make it a fraction.
    let per_element = |timed: &Timed<'_>| {
        let (work, problem) = (timed.place.row.work, timed.place.problem);
        (work.bytes as f64 / problem.elements.max(1) as f64).round() as u64
    };
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for timed in rows {
        *counts.entry(per_element(timed)).or_default() += 1;
    }
    // Of two that are equally common, the smaller.
    let most = counts
        .into_iter()
        .max_by_key(|&(bytes, count)| (count, Reverse(bytes)));
    let most = most.map_or(0, |(bytes, _)| bytes);
    (
        rows.iter()
            .copied()
            .filter(|timed| per_element(timed) == most)
            .collect(),
        most,
    )
}

/// The best at each size.
fn best(samples: impl Iterator<Item = Sample>) -> Vec<Sample> {
    let mut best: BTreeMap<u64, Sample> = BTreeMap::new();
    for sample in samples.filter(|sample| sample.value.is_finite() && sample.value > 0.0) {
        let held = best.entry(sample.size).or_insert_with(|| sample.clone());
        if sample.value > held.value {
            *held = sample;
        }
    }
    best.into_values().collect()
}

impl Plot {
    fn sample(&self, timed: Timed<'_>) -> Sample {
        let (work, problem) = (timed.place.row.work, timed.place.problem);
        let (size, value) = match self.metric {
            Metric::Bandwidth => (work.bytes, timed.per_s(work.bytes)),
            Metric::Throughput => (problem.elements, timed.per_s(work.items)),
        };
        let title = format!("{}, {}", timed.title(), quantity(value, &self.unit));
        Sample { size, value, title }
    }

    /// A curve per kernel, faint, unless there is only one.
    fn thin(&mut self, rows: &[Timed<'_>]) {
        let mut kernels: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
        for timed in rows {
            kernels
                .entry(&timed.place.row.name)
                .or_default()
                .push(self.sample(*timed));
        }
        let colour = Colour::Hue(rows.first().map_or(0, |timed| timed.place.hue));
        if kernels.len() < 2 {
            return;
        }
        for (name, mut samples) in kernels {
            samples.sort_by_key(|sample| sample.size);
            self.curves.push(Curve {
                label: name.to_owned(),
                pen: Pen {
                    opacity: Some(0.45),
                    ..Pen::solid(colour, 1.0)
                },
                mark: None,
                samples,
            });
        }
    }

    /// The best kernel at each size, and the best of each baseline.
    fn thick(&mut self, record: &Record, rows: &[Timed<'_>], precision: Option<&str>) {
        let of = |baseline: Option<usize>| -> Vec<Timed<'_>> {
            let all = rows
                .iter()
                .flat_map(|timed| timed.baselines().chain([*timed]));
            all.filter(|timed| timed.baseline() == baseline).collect()
        };
        for baseline in (0..=record.baselines.len()).map(Some).chain([None]) {
            let timed = of(baseline);
            let Some(&first) = timed.first() else {
                continue;
            };
            let mut mark = mark(first, 0.0);
            if precision == Some("f64") {
                // The shape, too, distinguishes it from f32.
                mark.shape = Shape::Square;
            }
            let pen = match baseline {
                None => Pen::solid(mark.colour, 2.4),
                Some(0) => Pen::dashed(mark.colour, 1.8, LONG),
                Some(_) => Pen::dashed(mark.colour, 1.8, SHORT),
            };
            let who = first.by.map_or(own_name(record), |baseline| &baseline.name);
            let precision = precision.map_or(String::new(), |it| format!(", {it}"));
            let samples = best(timed.into_iter().map(|timed| self.sample(timed)));
            let (label, mark) = (format!("{who}{precision}"), Some(mark));
            self.curves.push(Curve {
                label,
                pen,
                mark,
                samples,
            });
        }
    }

    /// The speed of the best kernel in single launches, at the sizes where the other curves show
    /// replayed launches.
    fn launched_once(&mut self, record: &Record, rows: &[Timed<'_>]) {
        let replayed = rows.iter().filter(|timed| timed.mode == Mode::Replayed);
        let once = replayed
            .filter_map(|timed| timed.place.own(Mode::Single))
            .map(|once| {
                let sample = self.sample(once);
                Sample {
                    title: format!("launched once: {}", sample.title),
                    ..sample
                }
            });
        let samples = best(once);
        let Some(hue) = rows
            .first()
            .map(|timed| timed.place.hue)
            .filter(|_| !samples.is_empty())
        else {
            return;
        };
        let label = format!("{}, launched once", own_name(record));
        let pen = Pen::dashed(Colour::Hue(hue), 1.6, DOTS);
        self.curves.push(Curve {
            label,
            pen,
            mark: None,
            samples,
        });
    }

    fn figure<'a>(
        self,
        y_label: &str,
        slug: String,
        title: String,
        caption: String,
    ) -> Outcome<'a> {
        let thick = self.curves.iter().filter(|curve| curve.mark.is_some());
        let most = thick
            .flat_map(|curve| curve.samples.iter().map(move |sample| (curve, sample)))
            .max_by(|a, b| a.1.value.total_cmp(&b.1.value));
        let Some((curve, sample)) = most else {
            return Err(LeftOut::new(&title, "none of the timed rows has a speed"));
        };
        let (x_label, highest) = (self.x_label, sample.title.replace('\n', ", "));
        let description = format!(
            "{y_label} against {x_label}. Highest: {}, {highest}.",
            curve.label
        );
        let y_label = y_label.to_owned();
        Ok(Figure {
            slug,
            title,
            caption,
            description,
            draw: Box::new(move |width| self.draw(&y_label, width)),
            small: true,
        })
    }

    fn legend(&self) -> Vec<Key> {
        let named = self
            .curves
            .iter()
            .filter(|curve| curve.mark.is_some() || curve.pen.dashes.is_some());
        let mut keys: Vec<Key> = named
            .map(|curve| Key {
                pen: Some(curve.pen),
                mark: curve.mark.map(|mark| Mark {
                    radius: 4.5,
                    ..mark
                }),
                label: curve.label.clone(),
            })
            .collect();
        // The kernels' own key comes first.
        keys.sort_by_key(|key| !key.mark.is_some_and(|mark| mark.filled));
        keys
    }

    fn draw(&self, y_label: &str, width: Width) -> Canvas {
        let samples = || self.curves.iter().flat_map(|curve| &curve.samples);
        let sizes = samples().map(|sample| sample.size as f64);
        let limits = self.limits.iter().map(|limit| limit.value * 1.06);
        let values = samples().map(|sample| sample.value).chain(limits);
        let mut canvas = Canvas::new(Frame {
            width,
            plot_height: width.pick(320.0, 260.0),
            left: 56.0,
            right: 14.0,
            x: Axis::around(self.x_label, Scale::Octaves, sizes, width.pick(12, 6)),
            y: Some(Axis::from_zero(y_label, values, 6)),
            legend: &self.legend(),
        });
        let (x_start, x_end) = canvas.x_ends();
        for limit in &self.limits {
            let ends = [(x_start, limit.value), (x_end, limit.value)];
            canvas.line(
                &ends,
                Pen::dashed(Colour::Ink, 1.4, limit.dashes),
                &limit.label,
            );
        }
        for curve in &self.curves {
            let at = |sample: &Sample| (sample.size as f64, sample.value);
            let values: Vec<(f64, f64)> = curve.samples.iter().map(at).collect();
            canvas.line(&values, curve.pen, &curve.label);
            let (colour, radius) = (curve.pen.colour, width.pick(4.6, 3.8));
            let mark = match curve.mark {
                Some(mark) => Mark { radius, ..mark },
                // A mark for the tooltip, and visible where there is one size only.
                None => Mark {
                    shape: Shape::Circle,
                    colour,
                    filled: true,
                    radius: 1.8,
                },
            };
            for (value, sample) in values.into_iter().zip(&curve.samples) {
                canvas.mark(value, mark, &sample.title);
            }
        }
        // Labels of limits come last, so that nothing crosses them.
        for limit in &self.limits {
            // At the left end, where speeds are low and curves far below.
            if let Some((x, y)) = canvas.at((x_start, limit.value)) {
                canvas.text((x + 6.0, y - 6.0), &limit.label, Font::of(SMALL, "start"));
            }
        }
        canvas
    }
}
