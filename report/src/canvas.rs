//! The drawing surface of a chart: axes, grid and legend, then lines, marks with tooltips, and
//! text.

use maud::{Markup, PreEscaped, Render as _, html};

use crate::axis::Axis;
use crate::palette::{Colour, Shape, style};

/// Font size of tick labels and line labels, in pixels.
pub(crate) const SMALL: f64 = 12.0;
/// Size of legends and axis labels.
pub(crate) const NORMAL: f64 = 13.0;

/// The width that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// A page on a wide screen.
    Wide,
    /// A column of text, such as that of a README.
    Column,
    /// A phone, or one of several charts side by side.
    Narrow,
}

impl Width {
    /// In pixels.
    const fn pixels(self) -> f64 {
        match self {
            Self::Wide => 1120.0,
            Self::Column => 860.0,
            Self::Narrow => 420.0,
        }
    }

    /// One of two values.
    pub(crate) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Self::Wide | Self::Column => wide,
            Self::Narrow => narrow,
        }
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pen {
    pub(crate) colour: Colour,
    pub(crate) width: f64,
    /// SVG's dash pattern; `None` for a line without gaps.
    pub(crate) dashes: Option<&'static str>,
    pub(crate) opacity: Option<f64>,
}

pub(crate) const LONG: Option<&str> = Some("9 5");
pub(crate) const SHORT: Option<&str> = Some("4 4");
pub(crate) const DOTS: Option<&str> = Some("1.5 4");

impl Pen {
    pub(crate) const fn solid(colour: Colour, width: f64) -> Self {
        Self::dashed(colour, width, None)
    }

    pub(crate) const fn dashed(colour: Colour, width: f64, dashes: Option<&'static str>) -> Self {
        Self {
            colour,
            width,
            dashes,
            opacity: None,
        }
    }
}

/// A mark: its shape and colour, filled or an outline, and its size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) shape: Shape,
    pub(crate) colour: Colour,
    pub(crate) filled: bool,
    pub(crate) radius: f64,
}

/// A line in a legend: a sample of a line, of a mark or of both, and its meaning.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) pen: Option<Pen>,
    pub(crate) mark: Option<Mark>,
    pub(crate) label: String,
}

/// The style of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Font {
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    /// The text anchor: "start", "middle" or "end".
    pub(crate) anchor: &'static str,
    pub(crate) bold: bool,
    /// Use a font of fixed width, for names in the source.
    pub(crate) code: bool,
    /// The rotation, in degrees.
    pub(crate) turn: f64,
}

impl Font {
    pub(crate) const fn of(size: f64, anchor: &'static str) -> Self {
        Self {
            size,
            colour: Colour::Ink,
            anchor,
            bold: false,
            code: false,
            turn: 0.0,
        }
    }
}

/// The parameters of a canvas.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) width: Width,
    /// Height of the plotting area, in pixels.
    pub(crate) plot_height: f64,
    /// Room left of the plotting area for labels of the vertical axis.
    pub(crate) left: f64,
    /// Room right of it.
    pub(crate) right: f64,
    pub(crate) x: Axis,
    /// `None` where height has no meaning: then values are pixels from the top.
    pub(crate) y: Option<Axis>,
    pub(crate) legend: &'a [Key],
}

/// A chart under construction: a plotting area with axes, and its contents.
#[derive(Debug)]
pub(crate) struct Canvas {
    size: (f64, f64),
    /// Left, top, right and bottom of the plotting area, in pixels.
    pub(crate) area: [f64; 4],
    x: Axis,
    y: Option<Axis>,
    /// Legend, grid and data, from bottom to top.
    layers: [String; 3],
}

const LEGEND: usize = 0;
const GRID: usize = 1;
const DATA: usize = 2;

/// Length of the sample in a legend, in pixels.
const SAMPLE: f64 = 26.0;

impl Canvas {
    /// Draws axes, grid, axis labels and legend.
    pub(crate) fn new(frame: Frame<'_>) -> Self {
        const ROW: f64 = 22.0;
        const TICKS: f64 = 24.0;
        let width = frame.width.pixels();
        let keys = place_keys(frame.legend, width);
        let legend = keys.last().map_or(0.0, |(_, row)| (row + 1) as f64 * ROW);
        let top = legend + if frame.y.is_some() { 26.0 } else { 4.0 };
        let bottom = top + frame.plot_height;
        let mut canvas = Self {
            size: (width, bottom + TICKS + 26.0),
            area: [frame.left, top, width - frame.right, bottom],
            x: frame.x,
            y: frame.y,
            layers: Default::default(),
        };
        for (key, (x, row)) in frame.legend.iter().zip(keys) {
            let y = (row as f64 + 0.5) * ROW;
            if let Some(pen) = key.pen {
                canvas.layers[LEGEND] += &path(&[(x, y), (x + SAMPLE, y)], pen, None).0;
            }
            if let Some(mark) = key.mark {
                canvas.layers[LEGEND] += &marked((x + SAMPLE / 2.0, y), mark, None).0;
            }
            let place = (x + SAMPLE + 6.0, y + NORMAL * 0.35);
            canvas.layers[LEGEND] += &words(place, &key.label, Font::of(NORMAL, "start")).0;
        }
        canvas.layers[GRID] = canvas.grid();
        let [left, top, right, bottom] = canvas.area;
        if let Some(y) = &canvas.y {
            let place = (left - frame.left + 4.0, top - 10.0);
            canvas.layers[DATA] += &words(place, &y.label, Font::of(NORMAL, "start")).0;
        }
        let middle = ((left + right) / 2.0, bottom + TICKS + 15.0);
        canvas.layers[DATA] += &words(middle, &canvas.x.label, Font::of(NORMAL, "middle")).0;
        canvas
    }

    /// Lines at the ticks of the axes, fine ones between them, and the ticks' labels.
    fn grid(&self) -> String {
        let [left, top, right, bottom] = self.area;
        let line = |from: (f64, f64), to: (f64, f64), colour| -> Markup {
            html! {
                line x1=(round(from.0)) y1=(round(from.1)) x2=(round(to.0)) y2=(round(to.1))
                    stroke=(colour) {}
            }
        };
        let label = |place: (f64, f64), text: &str, anchor| {
            words(
                place,
                text,
                Font {
                    colour: Colour::Faint,
                    ..Font::of(SMALL, anchor)
                },
            )
        };
        let across = |position: &f64| left + fraction(&self.x, *position) * (right - left);
        let upright =
            |position, colour| line((across(position), top), (across(position), bottom), colour);
        let mut ticks = html! {
            (line((left, bottom), (right, bottom), Colour::Faint))
            @for (position, text) in &self.x.ticks {
                (line((across(position), bottom), (across(position), bottom + 4.0), Colour::Faint))
                (label((across(position), bottom + 17.0), text, "middle"))
            }
        };
        let mut fine: String = self
            .x
            .lines
            .iter()
            .map(|it| upright(it, Colour::FineGrid).0)
            .collect();
        let mut bold: String = self
            .x
            .ticks
            .iter()
            .map(|it| upright(&it.0, Colour::Grid).0)
            .collect();
        if let Some(axis) = &self.y {
            let up = |position: &f64| bottom - fraction(axis, *position) * (bottom - top);
            let level =
                |position, colour| line((left, up(position)), (right, up(position)), colour);
            fine.extend(axis.lines.iter().map(|it| level(it, Colour::FineGrid).0));
            bold.extend(axis.ticks.iter().map(|it| level(&it.0, Colour::Grid).0));
            ticks.0 += &line((left, top), (left, bottom), Colour::Faint).0;
            for (position, text) in &axis.ticks {
                let y = up(position);
                ticks.0 += &line((left - 4.0, y), (left, y), Colour::Faint).0;
                ticks.0 += &label((left - 8.0, y + SMALL * 0.35), text, "end").0;
            }
        }
        fine + &bold + &ticks.0
    }

    /// The pixel of a value; `None` where an axis has no position for it.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let [left, top, right, bottom] = self.area;
        let along = |axis: &Axis, value: f64| {
            let fraction = fraction(axis, axis.scale.position(value)?);
            // Viewers do not draw points far outside.
            (fraction.abs() < 100.0).then_some(fraction)
        };
        let x = left + along(&self.x, x)? * (right - left);
        let y = match &self.y {
            Some(axis) => bottom - along(axis, y)? * (bottom - top),
            None => top + y,
        };
        Some((x, y))
    }

    /// The values at the left and right ends.
    pub(crate) fn x_ends(&self) -> (f64, f64) {
        (
            self.x.scale.value(self.x.start),
            self.x.scale.value(self.x.end),
        )
    }

    /// The values at the lower and upper ends.
    pub(crate) fn y_ends(&self) -> (f64, f64) {
        let value = |axis: &Axis| (axis.scale.value(axis.start), axis.scale.value(axis.end));
        self.y.as_ref().map_or((0.0, 0.0), value)
    }

    /// A line through these values, without those that have no position.
    pub(crate) fn line(&mut self, values: &[(f64, f64)], pen: Pen, title: &str) {
        let pixels: Vec<(f64, f64)> = values.iter().filter_map(|value| self.at(*value)).collect();
        self.layers[DATA] += &path(&pixels, pen, Some(title)).0;
    }

    /// A line from left to right, at a pixel from the top of the canvas.
    pub(crate) fn rule(&mut self, y: f64, pen: Pen) {
        let [left, _, right, _] = self.area;
        self.layers[DATA] += &path(&[(left, y), (right, y)], pen, None).0;
    }

    /// A line from top to bottom, at a pixel from the left.
    pub(crate) fn post(&mut self, x: f64, pen: Pen, title: &str) {
        let [_, top, _, bottom] = self.area;
        self.layers[DATA] += &path(&[(x, top), (x, bottom)], pen, Some(title)).0;
    }

    /// A mark at a value, with a tooltip; nothing where the value has no position.
    pub(crate) fn mark(&mut self, value: (f64, f64), mark: Mark, title: &str) {
        if let Some(pixel) = self.at(value) {
            self.layers[DATA] += &marked(pixel, mark, Some(title)).0;
        }
    }

    /// A band from left to right about a pixel from the top, with a tooltip.
    pub(crate) fn band(&mut self, (left, right): (f64, f64), y: f64, title: &str) {
        let band = html! {
            rect x=(round(left)) y=(round(y - 6.0)) width=(round(right - left)) height="12"
                fill=(Colour::Band) { title { (title) } }
        };
        self.layers[DATA] += &band.0;
    }

    /// A text at a pixel.
    pub(crate) fn text(&mut self, pixel: (f64, f64), text: &str, font: Font) {
        self.layers[DATA] += &words(pixel, text, font).0;
    }

    /// The chart as an element of a page or, with a heading, as a document of its own. The
    /// description is for readers who cannot see the chart.
    pub(crate) fn finish(self, id: &str, title: &str, description: &str, heading: bool) -> Markup {
        const HEADING: f64 = 34.0;
        const MARGIN: f64 = 12.0;
        let (width, height) = match heading {
            true => (
                self.size.0 + 2.0 * MARGIN,
                self.size.1 + HEADING + 2.0 * MARGIN,
            ),
            false => self.size,
        };
        let [legend, grid, data] = self.layers.map(PreEscaped);
        let font = Font {
            bold: true,
            ..Font::of(17.0, "start")
        };
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox={ "0 0 " (width) " " (height) }
                width=(width) height=(height) role="img" font-family="sans-serif"
                stroke-linejoin="round" paint-order="stroke"
                aria-labelledby={ (id) "-title " (id) "-description" }
            {
                title id={ (id) "-title" } { (title) }
                desc id={ (id) "-description" } { (description) }
                @if heading {
                    style { (PreEscaped(style())) }
                    rect width=(width) height=(height) fill=(Colour::Paper) {}
                    (words((MARGIN, MARGIN + 16.0), title, font))
                }
                g transform=[heading.then(|| format!("translate({MARGIN} {})", MARGIN + HEADING))] {
                    g.legend { (legend) }
                    g.grid stroke-width="1" { (grid) }
                    g.data { (data) }
                }
            }
        }
    }
}

/// A position along an axis as a fraction: 0 at its start, 1 at its end.
fn fraction(axis: &Axis, position: f64) -> f64 {
    (position - axis.start) / (axis.end - axis.start)
}

/// A pixel, rounded to a tenth.
fn round(pixel: f64) -> f64 {
    (pixel * 10.0).round() / 10.0
}

/// The places of a legend's entries: pixels from the left, and row. An entry that does not fit
/// begins a new row.
fn place_keys(keys: &[Key], width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (4.0, 0);
    let place = |key: &Key| {
        // An estimate of its width; the font is the reader's.
        let text = key.label.chars().count() as f64 * NORMAL * 0.56;
        let length = SAMPLE + 6.0 + text + 18.0;
        if x > 4.0 && x + length > width {
            (x, row) = (4.0, row + 1);
        }
        let place = (x, row);
        x += length;
        place
    };
    keys.iter().map(place).collect()
}

/// A line through these pixels; nothing where there are fewer than two.
fn path(pixels: &[(f64, f64)], pen: Pen, title: Option<&str>) -> Markup {
    if pixels.len() < 2 {
        return Markup::default();
    }
    let mut path = String::new();
    for (index, (x, y)) in pixels.iter().enumerate() {
        path += &format!("{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
    }
    html! {
        path d=(path) fill="none" stroke=(pen.colour) stroke-width=(pen.width)
            stroke-dasharray=[pen.dashes] stroke-opacity=[pen.opacity]
            { @if let Some(title) = title { title { (title) } } }
    }
}

fn marked(pixel: (f64, f64), mark: Mark, title: Option<&str>) -> Markup {
    // Hollow marks hide the lines under them; filled ones have a rim that separates overlapping
    // ones.
    let (fill, stroke, width) = match mark.filled {
        true => (mark.colour, Colour::Paper, 0.8),
        false => (Colour::Paper, mark.colour, 1.6),
    };
    html! {
        path.mark d=(mark.shape.path(pixel, mark.radius)) fill=(fill) stroke=(stroke)
            stroke-width=(width) { @if let Some(title) = title { title { (title) } } }
    }
}

/// A text at a pixel, on a rim in the background's colour that hides lines.
fn words((x, y): (f64, f64), text: &str, font: Font) -> Markup {
    let (x, y) = (round(x), round(y));
    let turned = (font.turn != 0.0).then(|| format!("rotate({:.1} {x} {y})", font.turn));
    html! {
        text x=(x) y=(y) class=[font.code.then_some("mono")] font-size=(font.size)
            font-weight=[font.bold.then_some("600")] fill=(font.colour) text-anchor=(font.anchor)
            stroke=(Colour::Paper) stroke-width="3" transform=[turned] { (text.render()) }
    }
}
