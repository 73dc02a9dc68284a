//! Dot plots with a line per kernel: its fraction of the limit, and the ratio of its time to each
//! baseline's.

use super::chart::{Figure, LeftOut, Outcome, baseline_keys, mark, own_key, own_name, slug};
use crate::axis::{Axis, Scale};
use crate::canvas::{Canvas, Font, Frame, Key, Mark, NORMAL, Pen, SMALL, Width};
use crate::palette::{Colour, Shape};
use crate::record::Record;
use crate::stats::Verdict;
use crate::units::duration;
use crate::view::Timed;

/// A dot: a value, its mark and its tooltip.
struct Dot {
    value: f64,
    mark: Mark,
    title: String,
}

/// The line of a kernel.
struct KernelDots {
    /// The family's number and name.
    family: (usize, String),
    label: String,
    /// A range around 1 within the noise, and its explanation.
    band: Option<(f64, f64, String)>,
    dots: Vec<Dot>,
    /// The text at the right end.
    value: String,
}

impl KernelDots {
    fn new(timed: Timed<'_>, dots: Vec<Dot>, value: String) -> Self {
        let (place, name) = (timed.place, &timed.place.row.name);
        let family = &place.family.name;
        // "heat2d_global", or "heat2d, CPU port": the family's name stands above it.
        let rest = name.strip_prefix(family.as_str());
        let rest = rest.and_then(|rest| rest.strip_prefix('_').or(rest.strip_prefix(", ")));
        Self {
            family: (place.hue, family.clone()),
            label: rest.unwrap_or(name).to_owned(),
            band: None,
            dots,
            value,
        }
    }
}

/// The contents of a dot plot.
struct Plot {
    x_label: &'static str,
    scale: Scale,
    /// A vertical line, and its label.
    reference: (f64, &'static str),
    /// Values that the axis always contains.
    always: [f64; 2],
    legend: Vec<Key>,
    lines: Vec<KernelDots>,
}

const LARGE: f64 = 4.8;
const MINOR: f64 = 2.4;

/// The fraction of its limit that each kernel reaches.
pub(super) fn limits(record: &Record) -> Outcome<'_> {
    const TITLE: &str = "How near each kernel comes to the limit that binds it";
    let dot = |timed: Timed<'_>| {
        let (limit, fraction) = timed.of_limit()?;
        let value = 100.0 * fraction;
        let title = format!(
            "{}, {value:.1} % of what {} allows",
            timed.title(),
            limit.name()
        );
        value.is_finite().then(|| Dot {
            value,
            mark: mark(timed, LARGE),
            title,
        })
    };
    let line = |sizes: &Vec<Timed<'_>>| {
        let timed = sizes[0];
        let (limit, fraction) = timed.of_limit()?;
        let dots = timed.baselines().chain([timed]).filter_map(dot).collect();
        let value = format!("{:.0} % {}", 100.0 * fraction, limit.name());
        Some(KernelDots::new(timed, dots, value))
    };
    let kernels = record.kernels();
    let lines: Vec<KernelDots> = kernels.iter().filter_map(line).collect();
    if lines.is_empty() {
        return Err(LeftOut::new(TITLE, "no limit was measured in this run"));
    }
    let shown: Vec<Timed<'_>> = kernels
        .iter()
        .flat_map(|sizes| sizes[0].baselines())
        .collect();
    let mut legend = vec![own_key(Shape::Circle, Colour::Ink, own_name(record))];
    legend.extend(baseline_keys(record, &shown, ""));
    let plot = Plot {
        x_label: "% of the limit",
        scale: Scale::Linear,
        reference: (100.0, "the limit"),
        always: [0.0, 100.0],
        legend,
        lines,
    };
    Ok(plot.figure(
        "limits",
        TITLE,
        "Each kernel at its largest size. The limit is the measured copy for what moves bytes, and the measured rate of \
         multiply-adds for what computes. Past 100 % a cache, or several iterations at once, spared memory the work.",
    ))
}

/// Each kernel's time over a baseline's time: a chart for each baseline that took part. In one
/// chart, a baseline with more work than the kernel would stretch the axis of all.
pub(super) fn ratios(record: &Record) -> Vec<Outcome<'_>> {
    let charts = (0..record.baselines.len()).filter_map(|it| against(record, it).map(Ok));
    let charts: Vec<Outcome<'_>> = charts.collect();
    if charts.is_empty() {
        let title = "Time of each kernel against its baselines";
        return vec![Err(LeftOut::new(
            title,
            "nobody else's kernels took part in this run",
        ))];
    }
    charts
}

/// The times of kernels over the times of this baseline; `None` where it took no part.
fn against(record: &Record, baseline: usize) -> Option<Figure<'_>> {
    let name = &record.baselines[baseline].name;
    let lines: Vec<KernelDots> = record
        .kernels()
        .iter()
        .filter_map(|it| compared(it, baseline))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let spread = Key {
        pen: Some(Pen::solid(Colour::Band, 9.0)),
        mark: None,
        label: "spread: equal".to_owned(),
    };
    let plot = Plot {
        x_label: "← Rust faster | time of Rust ÷ baseline | slower →",
        scale: Scale::Decades,
        reference: (1.0, "equal"),
        always: [0.8, 1.25],
        legend: vec![
            own_key(
                Shape::Circle,
                Colour::Ink,
                "Rust against it (small: smaller sizes)",
            ),
            spread,
        ],
        lines,
    };
    Some(plot.figure(
        &slug("ratios", name),
        &format!("Time of each kernel against {name}"),
        "Left of the line Rust takes less time. Large marks: the largest size of each kernel; small ones: the others. The \
         grey band is what repeated launches differ by themselves; a mark within it counts as equal. The figures at the \
         right are those of the large marks.",
    ))
}

/// A kernel, at all of its sizes, against this baseline.
fn compared(sizes: &[Timed<'_>], baseline: usize) -> Option<KernelDots> {
    let (mut dots, mut largest) = (Vec::new(), None);
    for (index, timed) in sizes.iter().enumerate() {
        let other = timed
            .baselines()
            .find(|other| other.baseline() == Some(baseline));
        let Some((other, ratio)) = other.and_then(|other| Some((other, other.ratio()?))) else {
            continue;
        };
        if !(ratio.value.is_finite() && ratio.value > 0.0) {
            continue;
        }
        if index == 0 {
            largest = Some(ratio);
        }
        dots.push(Dot {
            value: ratio.value,
            // Only one baseline is shown, so the marks are the kernels'.
            mark: mark(*timed, if index == 0 { LARGE } else { MINOR }),
            title: format!(
                "{}\n{:.3} of {}'s time, spread ±{:.1} %: {}\n{} against {}",
                timed.name(),
                ratio.value,
                other.who(),
                100.0 * ratio.spread,
                ratio.verdict.name(),
                duration(timed.time.median_s),
                duration(other.time.median_s),
            ),
        });
    }
    // Large marks over small ones.
    dots.reverse();
    let timed = *sizes.first().filter(|_| !dots.is_empty())?;
    let value = largest.map_or(String::new(), |ratio| match ratio.verdict {
        Verdict::Equal => "equal".to_owned(),
        // Rounding must not hide a difference.
        _ if (ratio.value - 1.0).abs() < 0.1 => format!("{:.3}", ratio.value),
        _ => format!("{:.2}", ratio.value),
    });
    let band = largest
        .filter(|ratio| ratio.spread.is_finite())
        .map(|ratio| {
            let percent = 100.0 * ratio.spread;
            let why = format!(
                "{}: differences within ±{percent:.1} % mean nothing",
                timed.name()
            );
            ((1.0 - ratio.spread).max(0.01), 1.0 + ratio.spread, why)
        });
    Some(KernelDots {
        band,
        ..KernelDots::new(timed, dots, value)
    })
}

impl Plot {
    fn figure<'a>(self, slug: &str, title: &str, caption: &str) -> Figure<'a> {
        let line = |line: &KernelDots| format!("{} {}: {}", line.family.1, line.label, line.value);
        let listed: Vec<String> = self.lines.iter().map(line).collect();
        let (what, count) = (self.x_label, listed.len());
        Figure {
            slug: slug.to_owned(),
            title: title.to_owned(),
            caption: caption.to_owned(),
            description: format!("{what} of {count} kernels. {}.", listed.join("; ")),
            draw: Box::new(move |width| self.draw(width)),
            small: false,
        }
    }

    fn draw(&self, width: Width) -> Canvas {
        const HEADING: f64 = 30.0;
        // In a narrow chart, labels stand above their lines.
        let row = width.pick(21.0, 34.0);
        // The distance of each line, and of each family's name, from the top.
        let (mut lines, mut names) = (Vec::new(), Vec::new());
        let mut down = 4.0;
        for line in &self.lines {
            if names
                .last()
                .is_none_or(|(_, family)| *family != &line.family)
            {
                names.push((down + HEADING - 10.0, &line.family));
                down += HEADING;
            }
            lines.push((down, line));
            down += row;
        }
        let values = self
            .lines
            .iter()
            .flat_map(|line| line.dots.iter().map(|dot| dot.value));
        let values = values.chain(self.always);
        // Room for the longest label, within limits.
        let longest = self
            .lines
            .iter()
            .map(|line| line.label.chars().count())
            .max();
        let room = (longest.unwrap_or(0) as f64 * SMALL * 0.61 + 24.0).clamp(120.0, 440.0);
        let mut canvas = Canvas::new(Frame {
            width,
            plot_height: down + 4.0,
            left: width.pick(room, 12.0),
            right: width.pick(120.0, 108.0),
            x: Axis::around(self.x_label, self.scale, values, width.pick(9, 6)),
            y: None,
            legend: &self.legend,
        });
        let [left, top, right, _] = canvas.area;
        for (down, (hue, name)) in names {
            let font = Font {
                colour: Colour::Hue(*hue),
                bold: true,
                ..Font::of(NORMAL, "start")
            };
            canvas.text((4.0, top + down), name, font);
        }
        let middle = |down: f64| down + width.pick(row / 2.0, row - 9.0);
        // In layers, so that no line runs over a dot.
        for (down, line) in &lines {
            let y = top + middle(*down);
            canvas.rule(y, Pen::solid(Colour::Grid, 1.0));
            if let Some((low, high, why)) = &line.band {
                let pixel = |value: f64| canvas.at((value, 0.0)).map(|place| place.0);
                let low = pixel(*low).unwrap_or(left).clamp(left, right);
                let high = pixel(*high).unwrap_or(right).clamp(left, right);
                canvas.band((low, high), y, why);
            }
        }
        if let Some((x, _)) = canvas.at((self.reference.0, 0.0)) {
            canvas.post(x, Pen::solid(Colour::Ink, 1.2), self.reference.1);
        }
        for (down, line) in &lines {
            let baseline = top + middle(*down) + SMALL * 0.35;
            let (place, anchor) = match width {
                Width::Narrow => ((left, top + down + SMALL), "start"),
                _ => ((left - 10.0, baseline), "end"),
            };
            canvas.text(
                place,
                &line.label,
                Font {
                    code: true,
                    ..Font::of(SMALL, anchor)
                },
            );
            for dot in &line.dots {
                canvas.mark((dot.value, middle(*down)), dot.mark, &dot.title);
            }
            canvas.text(
                (right + 10.0, baseline),
                &line.value,
                Font::of(SMALL, "start"),
            );
        }
        canvas
    }
}
