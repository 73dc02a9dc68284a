//! Dot plots with a line per kernel: how near each comes to its limit, and how
//! its time compares with that of whoever else did the same.

use super::super::report::{Report, Roof};
use super::super::stats::Verdict;
use super::axis::{Axis, Scale};
use super::canvas::{Anchor, Canvas, Dashes, Frame, Key, Mark, Pen, SMALL, Width};
use super::data::{Timed, by_kernel, duration, own_name, rival_mark, spread};
use super::figure::{Figure, LeftOut, Outcome, slug};
use super::palette::{Colour, Shape};
use crate::error::Error;

/// How wide a character of fixed width is, as a fraction of its height.
const CODE_WIDTH: f64 = 0.61;

/// A dot: a value, whose it is, what it says.
struct Dot {
    value: f64,
    /// Which rival it is of, or against; `None` for the measured kernel itself.
    rival: Option<usize>,
    /// A smaller size of the same kernel.
    minor: bool,
    title: String,
}

/// The line of a kernel.
struct Line {
    label: String,
    /// A range around 1 that means nothing, and why.
    band: Option<(f64, f64, String)>,
    dots: Vec<Dot>,
    /// What is written at the right end.
    value: String,
}

/// The lines of a family.
struct Group {
    label: String,
    hue: usize,
    lines: Vec<Line>,
}

/// The whole of a dot plot.
struct Plot {
    x_label: &'static str,
    scale: Scale,
    /// A vertical line, and what it is called.
    reference: (f64, &'static str),
    /// Values that the axis holds whatever the data.
    always: [f64; 2],
    /// What the marks of the kernels themselves are called, where there are any.
    own: Option<&'static str>,
    legend: Vec<Key>,
    groups: Vec<Group>,
}

/// The fraction of its limit that each kernel reaches.
pub(super) fn limits(report: &Report) -> Outcome<'_> {
    const TITLE: &str = "How near each kernel comes to the limit that binds it";
    let groups = groups(report, |sizes| {
        let timed = &sizes[0];
        let reached = timed.measured.roof?;
        let limit = match reached.roof {
            Roof::Memory => "memory",
            Roof::Fp32 => "FP32",
            Roof::Fp64 => "FP64",
        };
        let fraction = |seconds: f64| 100.0 * reached.least_s / seconds;
        let title = |who: &str, time: &super::super::stats::Times| {
            format!(
                "{who}{}\n{} {}, {:.1} % of what {limit} allows",
                timed.title(),
                duration(time.median_s),
                spread(time),
                fraction(time.median_s),
            )
        };
        let mut dots: Vec<Dot> = timed
            .others(report)
            .into_iter()
            .map(|other| Dot {
                value: fraction(other.time.median_s),
                rival: Some(other.rival),
                minor: false,
                title: title(&format!("{}: ", other.name), other.time),
            })
            .collect();
        let time = &timed.measured.time;
        dots.push(Dot {
            value: fraction(time.median_s),
            rival: None,
            minor: false,
            title: title("", time),
        });
        dots.retain(|dot| dot.value.is_finite());
        Some(Line {
            label: label(timed),
            band: None,
            dots,
            value: format!("{:.0} % {limit}", fraction(time.median_s)),
        })
    });
    if groups.is_empty() {
        return left_out(TITLE, "no limit was measured in this run");
    }
    let own = own_name(report);
    let plot = Plot {
        x_label: "% of the limit",
        scale: Scale::Linear,
        reference: (100.0, "the limit"),
        always: [0.0, 100.0],
        own: Some(own),
        legend: legend(report, &groups, own),
        groups,
    };
    plot.figure(
        "limits",
        TITLE,
        "Each kernel at its largest size. The limit is the measured copy for what moves bytes, and the measured rate of \
         multiply-adds for what computes. Past 100 % a cache, or several sweeps at once, spared memory the work."
            .to_owned(),
    )
}

/// Each kernel's time over the time of whoever else did its work: a chart for
/// each rival that took part, since one that does more than a kernel's twin would
/// stretch the axis of all.
pub(super) fn ratios(report: &Report) -> Vec<Outcome<'_>> {
    let charts: Vec<Outcome<'_>> = (0..report.rivals.len())
        .filter_map(|rival| against(report, rival))
        .collect();
    if charts.is_empty() {
        return vec![left_out(
            "Time of each kernel against its rivals",
            "nobody else's kernels took part in this run",
        )];
    }
    charts
}

/// The times of kernels over the times of this rival; `None` where it took no part.
fn against(report: &Report, rival: usize) -> Option<Outcome<'_>> {
    let name = &report.rivals[rival].name;
    let groups = groups(report, |sizes| {
        // The one it is about, of all that did the work at a size.
        let at = |timed: &Timed<'_>| {
            let others = timed.others(report);
            let found = others.into_iter().find(|other| other.rival == rival)?;
            let possible = found.ratio.value.is_finite() && found.ratio.value > 0.0;
            possible.then_some((*found.ratio, *found.time))
        };
        let mut dots = Vec::new();
        let mut largest = None;
        for (index, timed) in sizes.iter().enumerate() {
            let Some((ratio, time)) = at(timed) else {
                continue;
            };
            dots.push(Dot {
                value: ratio.value,
                rival: Some(rival),
                minor: index > 0,
                title: format!(
                    "{}\n{:.3} of {name}'s time, spread ±{:.1} %: {}\n{} against {}",
                    timed.title(),
                    ratio.value,
                    100.0 * ratio.spread,
                    verdict(ratio.verdict),
                    duration(timed.measured.time.median_s),
                    duration(time.median_s),
                ),
            });
            if index == 0 {
                largest = Some(ratio);
            }
        }
        // Large marks over small ones.
        dots.reverse();
        let timed = sizes.first().filter(|_| !dots.is_empty())?;
        let band = largest.map(|ratio| {
            let why = format!(
                "{}: differences within ±{:.1} % mean nothing",
                timed.title(),
                100.0 * ratio.spread
            );
            ((1.0 - ratio.spread).max(0.01), 1.0 + ratio.spread, why)
        });
        let value = largest.map_or(String::new(), |ratio| match ratio.verdict {
            Verdict::Equal => "equal".to_owned(),
            // A difference that counts is not rounded away.
            _ if (ratio.value - 1.0).abs() < 0.1 => format!("{:.3}", ratio.value),
            _ => format!("{:.2}", ratio.value),
        });
        Some(Line {
            label: label(timed),
            band: band.filter(|band| band.0.is_finite() && band.1.is_finite()),
            dots,
            value,
        })
    });
    if groups.is_empty() {
        return None;
    }
    let legend = vec![
        Key {
            pen: Pen::dashed(Colour::Ink, 0.0, Dashes::NoLine),
            mark: Some((Shape::Circle, true)),
            label: "Rust against it (small: smaller sizes)".to_owned(),
        },
        Key {
            pen: Pen::solid(Colour::Band, 9.0),
            mark: None,
            label: "spread: equal".to_owned(),
        },
    ];
    let plot = Plot {
        x_label: "← Rust faster | time of Rust ÷ rival | slower →",
        own: None,
        scale: Scale::Decades,
        reference: (1.0, "equal"),
        always: [0.8, 1.25],
        legend,
        groups,
    };
    Some(plot.figure(
        &slug("ratios", name),
        &format!("Time of each kernel against {name}"),
        "Left of the line Rust takes less time. Large marks: the largest size of each kernel; small ones: the others. The \
         grey band is what repeated launches differ by themselves; a mark within it counts as equal. The figures at the \
         right are those of the large marks."
            .to_owned(),
    ))
}

pub(super) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Equal => "equal",
        Verdict::Slower => "slower",
    }
}

fn left_out<'a>(title: &str, why: &str) -> Outcome<'a> {
    Outcome::LeftOut(LeftOut {
        title: title.to_owned(),
        why: why.to_owned(),
    })
}

/// The kernel's name without its family's, which stands above it.
fn label(timed: &Timed<'_>) -> String {
    let name = &timed.row.name;
    // "heat2d_global", or "heat2d, CPU port".
    name.strip_prefix(&timed.family.name)
        .and_then(|rest| rest.strip_prefix('_').or(rest.strip_prefix(", ")))
        .unwrap_or(name)
        .to_owned()
}

fn groups<'a>(report: &'a Report, line: impl Fn(&[Timed<'a>]) -> Option<Line>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for sizes in by_kernel(report) {
        let Some(line) = line(&sizes) else {
            continue;
        };
        let (hue, family) = (sizes[0].hue, sizes[0].family);
        match groups.iter_mut().find(|group| group.hue == hue) {
            Some(group) => group.lines.push(line),
            None => groups.push(Group {
                label: family.name.clone(),
                hue,
                lines: vec![line],
            }),
        }
    }
    groups
}

/// A key for the kernels themselves, and one for each rival that took part.
fn legend(report: &Report, groups: &[Group], own: &str) -> Vec<Key> {
    let key = |mark, label: &str| Key {
        pen: Pen::dashed(Colour::Ink, 0.0, Dashes::NoLine),
        mark: Some(mark),
        label: label.to_owned(),
    };
    let took_part = |index: usize| {
        groups
            .iter()
            .flat_map(|group| &group.lines)
            .flat_map(|line| &line.dots)
            .any(|dot| dot.rival == Some(index))
    };
    let mut keys = vec![key((Shape::Circle, true), own)];
    for (index, rival) in report.rivals.iter().enumerate() {
        if took_part(index) {
            let shape = match index {
                0 => Shape::Circle,
                _ => rival_mark(index, 0).0,
            };
            keys.push(key((shape, false), &rival.name));
        }
    }
    keys
}

impl Plot {
    fn figure<'a>(self, slug: &str, title: &str, caption: String) -> Outcome<'a> {
        let lines = self
            .groups
            .iter()
            .map(|group| group.lines.len())
            .sum::<usize>();
        let listed = self
            .groups
            .iter()
            .flat_map(|group| {
                group
                    .lines
                    .iter()
                    .map(move |line| format!("{} {}: {}", group.label, line.label, line.value))
            })
            .collect::<Vec<_>>()
            .join("; ");
        Outcome::Drawn(Figure {
            slug: slug.to_owned(),
            title: title.to_owned(),
            caption,
            description: format!("{} of {lines} kernels. {listed}.", self.x_label),
            draw: Box::new(move |width| self.draw(width)),
            small: false,
        })
    }

    fn draw(&self, width: Width) -> Result<Canvas, Error> {
        // Where there is little room, labels stand above their lines.
        let row = width.pick(21.0, 34.0);
        let heading = 30.0;
        let rows: usize = self.groups.iter().map(|group| group.lines.len()).sum();
        let height = rows as f64 * row + self.groups.len() as f64 * heading + 8.0;
        let values = self
            .groups
            .iter()
            .flat_map(|group| &group.lines)
            .flat_map(|line| line.dots.iter().map(|dot| dot.value));
        let x = Axis::around(
            self.x_label,
            self.scale,
            values.chain(self.always),
            width.pick(9, 6),
        );
        let Some(x) = x else {
            return Err(Error::Bench("a dot plot without a dot".to_owned()));
        };
        let y = Axis {
            label: String::new(),
            scale: Scale::Linear,
            // Downwards: positions are pixels from the top.
            start: height,
            end: 0.0,
            ticks: Vec::new(),
            lines: Vec::new(),
        };
        let mut canvas = Canvas::new(Frame {
            width,
            plot_height: height as u32,
            left: width.pick(self.label_room(), 12),
            right: width.pick(120, 108),
            x,
            y,
            y_lines: false,
            legend: &self.legend,
        })?;
        let [left, top, right, bottom] = canvas.area();
        // Where each line is, from the top.
        let mut places = Vec::new();
        let mut down = top + 4.0;
        for group in &self.groups {
            let start = (4.0, down + heading - 10.0);
            canvas.heading(start, &group.label, Colour::Hue(group.hue));
            down += heading;
            for line in &group.lines {
                places.push((group, line, down));
                down += row;
            }
        }
        let middle = |top: f64| top + width.pick(row / 2.0, row - 9.0);
        // In layers, so that no line runs over a dot.
        for (_, line, top) in &places {
            let y = middle(*top);
            canvas.pixel_line(
                &[(left, y), (right, y)],
                Pen::solid(Colour::Grid, 1.0),
                None,
            );
            if let Some((low, high, why)) = &line.band {
                let pixel = |value: f64| canvas.at((value, 0.0)).map(|place| place.0);
                let low = pixel(*low).unwrap_or(left).clamp(left, right);
                let high = pixel(*high).unwrap_or(right).clamp(left, right);
                canvas.rectangle((low, y - 6.0), (high, y + 6.0), Colour::Band, Some(why));
            }
        }
        if let Some((x, _)) = canvas.at((self.reference.0, 0.0)) {
            let pen = Pen::solid(Colour::Ink, 1.2);
            canvas.pixel_line(&[(x, top), (x, bottom)], pen, Some(self.reference.1));
        }
        for (group, line, top) in &places {
            let y = middle(*top);
            let baseline = y + SMALL * 0.35;
            match width {
                Width::Narrow => {
                    canvas.code((left, top + SMALL), &line.label, SMALL, Anchor::Start);
                }
                _ => canvas.code((left - 10.0, baseline), &line.label, SMALL, Anchor::End),
            }
            self.dots(&mut canvas, group.hue, line, y, width);
            let place = (right + 10.0, baseline);
            canvas.text(place, &line.value, SMALL, Colour::Ink, Anchor::Start);
        }
        Ok(canvas)
    }

    /// Room for the longest label, in pixels, as far as there can be any.
    fn label_room(&self) -> u32 {
        let labels = self.groups.iter().flat_map(|group| &group.lines);
        let longest = labels.map(|line| line.label.chars().count()).max();
        let width = longest.unwrap_or(0) as f64 * SMALL * CODE_WIDTH;
        (width as u32 + 24).clamp(120, 440)
    }

    fn dots(&self, canvas: &mut Canvas, hue: usize, line: &Line, y: f64, width: Width) {
        for dot in &line.dots {
            let Some((x, _)) = canvas.at((dot.value, 0.0)) else {
                continue;
            };
            // Outlines are for rivals beside the kernels; where all is about one
            // rival, the marks are the kernels'.
            let (shape, colour) = match (self.own, dot.rival) {
                (Some(_), Some(rival)) => rival_mark(rival, hue),
                _ => (Shape::of(hue), Colour::Hue(hue)),
            };
            let mark = Mark {
                shape,
                colour,
                filled: self.own.is_none() || dot.rival.is_none(),
                radius: if dot.minor { 2.4 } else { width.pick(5.0, 4.6) },
            };
            canvas.pixel_mark((x, y), mark, Some(&dot.title));
        }
    }
}
