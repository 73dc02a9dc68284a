//! The roofline chart: rate against arithmetic intensity, below the measured limits of the device.

use super::chart::{Figure, LeftOut, Outcome, baseline_keys, mark, own_key};
use crate::axis::{Axis, Scale};
use crate::canvas::{Canvas, Font, Frame, Key, LONG, Pen, SMALL, Width};
use crate::palette::{Colour, Shape};
use crate::record::{Ceiling, Record};
use crate::units::quantity;
use crate::view::Timed;

/// A multiply-add is one instruction and two operations.
const FLOPS_PER_SLOT: f64 = 2.0;

/// Operations per byte, operations per second, and the measurement.
type Point<'a> = ((f64, f64), Timed<'a>);

/// A flat roof: its rate, its name, its dashes.
type Roof = (f64, &'static str, Option<&'static str>);

/// A point per kernel at its largest size, and one per baseline that did its work.
pub(super) fn figure(record: &Record) -> Outcome<'_> {
    const TITLE: &str = "Roofline: what the kernels do under what the device can do";
    let left_out = |why| Err(LeftOut::new(TITLE, why));
    let Some(copy) = &record.ceilings.copy else {
        return left_out("no ceiling was measured in this run");
    };
    let copy = copy.per_s();
    let points: Vec<Point<'_>> = record
        .kernels()
        .iter()
        .flat_map(|sizes| std::iter::once(sizes[0]).chain(sizes[0].baselines()))
        .filter_map(point)
        .collect();
    if points.is_empty() || !(copy.is_finite() && copy > 0.0) {
        return left_out("no kernel with floating-point operations was timed");
    }
    let flat = |ceiling: &Option<Ceiling>, name, dashes| -> Option<Roof> {
        let rate = ceiling.as_ref()?.per_s() * FLOPS_PER_SLOT;
        (rate.is_finite() && rate > 0.0).then_some((rate, name, dashes))
    };
    let fp32 = flat(&record.ceilings.fp32, "FP32 FMA", None);
    let fp64 = flat(&record.ceilings.fp64, "FP64 FMA", LONG);
    let roofs: Vec<Roof> = fp32.into_iter().chain(fp64).collect();

    let own = points.iter().filter(|point| point.1.by.is_none()).count();
    let roof = |(rate, name, _): &Roof| format!(" {name}: {}.", quantity(*rate, "FLOP/s"));
    let description = format!(
        "Floating-point operations per second against operations per byte, both logarithmic, for {own} kernels and {} \
         of their baselines. The slope is the measured copy, {}.{}",
        points.len() - own,
        quantity(copy, "B/s"),
        roofs.iter().map(roof).collect::<String>(),
    );
    let legend = legend(record, &points);
    Ok(Figure {
        slug: "roofline".to_owned(),
        title: TITLE.to_owned(),
        caption: "Each kernel at the largest size it was timed at. Left of the ridge memory is the limit, right of it \
                  arithmetic. Intensity counts every input and output once; outlines lie around the kernels that they \
                  are compared with. A point above the slope worked from a cache, or did several iterations at once. n-body counts its \
                  operations by convention; how near it comes to a limit of its own is shown further down."
            .to_owned(),
        description,
        draw: Box::new(move |width| draw(&points, &roofs, copy, &legend, width)),
        small: false,
    })
}

/// The position of a contestant's time; `None` without operations or bytes.
fn point(timed: Timed<'_>) -> Option<Point<'_>> {
    let work = &timed.place.row.work;
    let intensity = work.flops as f64 / work.bytes as f64;
    let rate = timed.per_s(work.flops);
    let possible = |value: f64| value.is_finite() && value > 0.0;
    (possible(intensity) && possible(rate)).then_some(((intensity, rate), timed))
}

fn title(timed: Timed<'_>) -> String {
    let work = &timed.place.row.work;
    let rate = quantity(timed.per_s(work.flops), "FLOP/s");
    let title = format!(
        "{}, {rate}, {}",
        timed.title(),
        quantity(timed.per_s(work.bytes), "B/s")
    );
    match timed.of_limit() {
        Some((_, fraction)) => format!("{title}\n{:.1} % of its limit", 100.0 * fraction),
        None => title,
    }
}

fn legend(record: &Record, points: &[Point<'_>]) -> Vec<Key> {
    let shown: Vec<Timed<'_>> = points.iter().map(|point| point.1).collect();
    let families = record.families.iter().enumerate().filter(|(hue, _)| {
        shown
            .iter()
            .any(|timed| timed.by.is_none() && timed.place.hue == *hue)
    });
    let mut keys: Vec<Key> = families
        .map(|(hue, family)| own_key(Shape::of(hue), Colour::Hue(hue), &family.name))
        .collect();
    keys.extend(baseline_keys(record, &shown, " (outlines)"));
    keys
}

fn draw(points: &[Point<'_>], roofs: &[Roof], copy: f64, legend: &[Key], width: Width) -> Canvas {
    let intensities = || points.iter().map(|point| point.0.0);
    let rates = || points.iter().map(|point| point.0.1);
    let highest = roofs.iter().map(|roof| roof.0).fold(f64::NAN, f64::max);
    // Beyond the least intensity, so that the slope visibly continues.
    let least = intensities().fold(f64::MAX, f64::min) / 3.0;
    let ridges = roofs.iter().map(|roof| 3.0 * roof.0 / copy);
    let x = Axis::around(
        "arithmetic intensity, FLOP/B",
        Scale::Decades,
        intensities().chain(ridges).chain([least]),
        width.pick(12, 6),
    );
    // The slope above every point below it, and some room above each roof. Where no flat roof was
    // measured, the slope continues to the edge.
    let most = rates().fold(0.0, f64::max);
    let slope = intensities()
        .map(|it| (it * copy).min(highest))
        .filter(|rate| *rate < 30.0 * most);
    let above = roofs.iter().map(|roof| roof.0 * 1.6);
    let rates = rates().chain(slope).chain(above);
    let mut canvas = Canvas::new(Frame {
        width,
        plot_height: width.pick(440.0, 360.0),
        left: 56.0,
        right: 14.0,
        x,
        y: Some(Axis::around("rate, FLOP/s", Scale::Decades, rates, 7)),
        legend,
    });
    let (x_start, x_end) = canvas.x_ends();
    let (y_start, y_end) = canvas.y_ends();

    // The slope ends at the highest roof, or at an end of the chart.
    let from = x_start.max(y_start / copy);
    let to = (if highest.is_nan() { y_end } else { highest } / copy).min(x_end);
    if from < to {
        let ends = [(from, from * copy), (to, to * copy)];
        let label = format!("copy {}", quantity(copy, "B/s"));
        canvas.line(&ends, Pen::solid(Colour::Ink, 1.6), &label);
        if let (Some(low), Some(high)) = (canvas.at(ends[0]), canvas.at(ends[1])) {
            let (right, up) = (high.0 - low.0, low.1 - high.1);
            let length = right.hypot(up);
            // On its upper left side, near its start, where no points are.
            let start = (
                low.0 + 0.1 * right - 7.0 * up / length,
                low.1 - 0.1 * up - 7.0 * right / length,
            );
            let turn = -up.atan2(right).to_degrees();
            canvas.text(
                start,
                &label,
                Font {
                    turn,
                    ..Font::of(SMALL, "middle")
                },
            );
        }
    }
    for (roof, name, dashes) in roofs {
        let ridge = (roof / copy).max(x_start);
        let label = format!("{name} {}", quantity(*roof, "FLOP/s"));
        let pen = Pen::dashed(Colour::Ink, 1.6, *dashes);
        canvas.line(&[(ridge, *roof), (x_end, *roof)], pen, &label);
        // Above a lower roof the slope continues.
        let beside = if *roof < highest { SMALL + 4.0 } else { -6.0 };
        if let Some((x, y)) = canvas.at((ridge, *roof)) {
            canvas.text((x + 10.0, y + beside), &label, Font::of(SMALL, "start"));
        }
    }

    let radius = width.pick(4.0, 3.5);
    // Marks are not moved apart where they overlap: another place would mean another intensity.
    // Baselines come first and are larger: rings around the kernels that they equal.
    for (own, radius) in [(false, 1.6 * radius), (true, radius)] {
        for (at, timed) in points.iter().filter(|point| point.1.by.is_none() == own) {
            canvas.mark(*at, mark(*timed, radius), &title(*timed));
        }
    }
    canvas
}
