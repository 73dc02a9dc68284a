//! The roofline: rate against arithmetic intensity, under what the device can do.

use super::super::report::Report;
use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Canvas, Dashes, Frame, Key, Mark, Pen, SMALL, Width};
use super::data::{Timed, by_kernel, duration, quantity, rival_mark, spread};
use super::figure::{Figure, LeftOut, Outcome};
use super::palette::{Colour, Shape};
use crate::error::Error;

/// A multiply-add is one instruction and two operations.
const FLOPS_PER_SLOT: f64 = 2.0;

/// A point of the chart.
struct Point {
    /// Operations per byte, and operations per second.
    at: (f64, f64),
    hue: usize,
    /// Which rival it is of; `None` for the measured kernel itself.
    rival: Option<usize>,
    title: String,
}

/// A flat roof: its rate, its name, how it is drawn.
type Roof = (f64, &'static str, Dashes);

/// A point per kernel at its largest size, and one per other who did its work.
pub(super) fn figure(report: &Report) -> Outcome<'_> {
    const TITLE: &str = "Roofline: what the kernels do under what the device can do";
    let left_out = |why: &str| {
        Outcome::LeftOut(LeftOut {
            title: TITLE.to_owned(),
            why: why.to_owned(),
        })
    };
    let Some(copy) = &report.ceilings.copy else {
        return left_out("no ceiling was measured in this run");
    };
    let copy = copy.per_s;
    let points: Vec<Point> = by_kernel(report)
        .iter()
        .flat_map(|sizes| points_of(report, &sizes[0]))
        .collect();
    if points.is_empty() || !(copy.is_finite() && copy > 0.0) {
        return left_out("no kernel with floating-point operations was timed");
    }
    let roofs: Vec<Roof> = [
        (&report.ceilings.fp32, "FP32 FMA", Dashes::None),
        (&report.ceilings.fp64, "FP64 FMA", Dashes::Long),
    ]
    .into_iter()
    .filter_map(|(ceiling, name, dashes)| {
        Some((ceiling.as_ref()?.per_s * FLOPS_PER_SLOT, name, dashes))
    })
    .filter(|roof| roof.0.is_finite() && roof.0 > 0.0)
    .collect();

    let rivals = points.iter().filter(|point| point.rival.is_some()).count();
    let description = format!(
        "Floating-point operations per second against operations per byte, both logarithmic, for {} kernels and {rivals} \
         of their rivals. The slope is the measured copy, {}. {}",
        points.len() - rivals,
        quantity(copy, "B/s"),
        roofs
            .iter()
            .map(|(roof, name, _)| format!("{name}: {}.", quantity(*roof, "FLOP/s")))
            .collect::<Vec<_>>()
            .join(" "),
    );
    let legend = legend(report, &points);
    Outcome::Drawn(Figure {
        slug: "roofline".to_owned(),
        title: TITLE.to_owned(),
        caption: "Each kernel at the largest size it was timed at. Left of the ridge memory is the limit, right of it \
                  arithmetic. Intensity counts every input and output once; points that share a place are set side by \
                  side. A point above the slope worked from a cache, or did several sweeps at once. n-body counts its \
                  operations by convention; how near it comes to a limit of its own is shown further down."
            .to_owned(),
        description,
        draw: Box::new(move |width| draw(&points, &roofs, copy, &legend, width)),
        small: false,
    })
}

/// The point of a kernel, and of whoever else did its work.
fn points_of(report: &Report, timed: &Timed<'_>) -> Vec<Point> {
    let work = &timed.row.work;
    if work.flops == 0 || work.bytes == 0 {
        return Vec::new();
    }
    let intensity = work.flops as f64 / work.bytes as f64;
    let at = |seconds: f64| (intensity, work.flops as f64 / seconds);
    let reached = timed.measured.roof.map_or(String::new(), |reached| {
        format!("\n{:.1} % of its limit", 100.0 * reached.fraction)
    });
    let time = &timed.measured.time;
    let mut points = vec![Point {
        at: at(time.median_s),
        hue: timed.hue,
        rival: None,
        title: format!(
            "{}\n{} {}, {}, {}{reached}",
            timed.title(),
            duration(time.median_s),
            spread(time),
            quantity(at(time.median_s).1, "FLOP/s"),
            quantity(timed.measured.rates.bytes_per_s, "B/s"),
        ),
    }];
    points.extend(timed.others(report).into_iter().map(|other| Point {
        at: at(other.time.median_s),
        hue: timed.hue,
        rival: Some(other.rival),
        title: format!(
            "{}: {}\n{} {}, {}",
            other.name,
            timed.title(),
            duration(other.time.median_s),
            spread(other.time),
            quantity(at(other.time.median_s).1, "FLOP/s"),
        ),
    }));
    points.retain(|point| point.at.1.is_finite() && point.at.1 > 0.0);
    points
}

fn legend(report: &Report, points: &[Point]) -> Vec<Key> {
    let key = |colour, shape, filled, label: String| Key {
        pen: Pen::dashed(colour, 0.0, Dashes::NoLine),
        mark: Some((shape, filled)),
        label,
    };
    let mut keys: Vec<Key> = report
        .families
        .iter()
        .enumerate()
        .filter(|(hue, _)| {
            points
                .iter()
                .any(|point| point.rival.is_none() && point.hue == *hue)
        })
        .map(|(hue, family)| key(Colour::Hue(hue), Shape::of(hue), true, family.name.clone()))
        .collect();
    for (index, rival) in report.rivals.iter().enumerate() {
        if points.iter().any(|point| point.rival == Some(index)) {
            let (shape, label) = match index {
                0 => (Shape::Circle, format!("{} (outlines)", rival.name)),
                _ => (rival_mark(index, 0).0, rival.name.clone()),
            };
            keys.push(key(Colour::Ink, shape, false, label));
        }
    }
    keys
}

fn draw(
    points: &[Point],
    roofs: &[Roof],
    copy: f64,
    legend: &[Key],
    width: Width,
) -> Result<Canvas, Error> {
    let ridges = roofs.iter().map(|roof| roof.0 / copy);
    let intensities = points.iter().map(|point| point.at.0);
    // Beyond the least intensity, so that the slope is seen to go on.
    let least = points
        .iter()
        .map(|point| point.at.0)
        .fold(f64::MAX, f64::min)
        / 3.0;
    let x = Axis::around(
        "arithmetic intensity, FLOP/B",
        Scale::Decades,
        intensities
            .chain(ridges.map(|ridge| ridge * 3.0))
            .chain([least]),
        width.x_ticks(),
    );
    let rates = points.iter().map(|point| point.at.1);
    // The slope above each point that it is above, and some room over each roof.
    let slope = points.iter().map(|point| point.at.0 * copy);
    let highest = roofs.iter().map(|roof| roof.0).fold(f64::NAN, f64::max);
    let slope = slope.map(|rate| rate.min(highest));
    // Where no flat roof was measured, the slope goes on to where nothing is.
    let most = points.iter().map(|point| point.at.1).fold(0.0, f64::max);
    let slope = slope.filter(|rate| *rate < 30.0 * most);
    let y = Axis::around(
        "rate, FLOP/s",
        Scale::Decades,
        rates
            .chain(slope)
            .chain(roofs.iter().map(|roof| roof.0 * 1.6)),
        7,
    );
    let (Some(x), Some(y)) = (x, y) else {
        return Err(Error::Bench("a roofline without a point".to_owned()));
    };
    let mut canvas = Canvas::new(Frame {
        width,
        plot_height: width.pick(440, 360),
        left: 56,
        right: 14,
        x,
        y,
        y_lines: true,
        legend,
    })?;
    let (x_start, x_end) = canvas.x_ends();
    let (y_start, y_end) = canvas.y_ends();

    // The slope ends at the highest roof, or at an end of the chart.
    let from = x_start.max(y_start / copy);
    let to = (if highest.is_nan() { y_end } else { highest } / copy).min(x_end);
    if from < to {
        let ends = [(from, from * copy), (to, to * copy)];
        let label = format!("copy {}", quantity(copy, "B/s"));
        canvas.line(&ends, Pen::solid(Colour::Ink, 1.6), Some(&label));
        if let (Some(low), Some(high)) = (canvas.at(ends[0]), canvas.at(ends[1])) {
            let (right, up) = (high.0 - low.0, low.1 - high.1);
            let length = right.hypot(up);
            // On its upper left side, where it begins and no point is.
            let along = 0.1;
            let start = (
                low.0 + along * right - 7.0 * up / length,
                low.1 - along * up - 7.0 * right / length,
            );
            canvas.sloping_text(start, (right, up), &label, Anchor::Middle);
        }
    }
    for (roof, name, dashes) in roofs {
        let ridge = (roof / copy).max(x_start);
        let pen = Pen::dashed(Colour::Ink, 1.6, *dashes);
        let label = format!("{name} {}", quantity(*roof, "FLOP/s"));
        canvas.line(&[(ridge, *roof), (x_end, *roof)], pen, Some(&label));
        // Above a lower roof the slope goes on.
        let beside = if *roof < highest { SMALL + 4.0 } else { -6.0 };
        if let Some((x, y)) = canvas.at((ridge, *roof)) {
            let place = (x + 10.0, y + beside);
            canvas.text(place, &label, SMALL, Colour::Ink, Anchor::Start);
        }
    }

    let radius = width.pick(4.0, 3.5);
    // Where they are, also where many are at one place: beside it they would have another
    // intensity. Rivals first and larger: rings around the kernels that they are equal to.
    for own in [false, true] {
        for point in points.iter().filter(|point| point.rival.is_none() == own) {
            let Some(pixel) = canvas.at(point.at) else {
                continue;
            };
            let (shape, colour) = match point.rival {
                None => (Shape::of(point.hue), Colour::Hue(point.hue)),
                Some(rival) => rival_mark(rival, point.hue),
            };
            let mark = Mark {
                shape,
                colour,
                filled: own,
                radius: if own { radius } else { 1.6 * radius },
            };
            canvas.pixel_mark(pixel, mark, Some(&point.title));
        }
    }
    Ok(canvas)
}
