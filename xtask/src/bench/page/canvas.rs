//! What charts are drawn on.
//!
//! plotters lays out the plotting area and draws axes, grid and tick labels into
//! SVG. Lines, marks and words are put over that at the same scales: its backend
//! has neither tooltips nor dashes, and rounds to whole pixels.

use std::fmt::Write as _;
use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::{
    ChartBuilder, Color as _, IntoDrawingArea as _, IntoFont as _, Ranged, SVGBackend,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::markup::Element;
use super::palette::{Colour, Shape, style};
use crate::error::Error;

/// Size of tick labels and of what is written beside lines, in pixels.
pub(super) const SMALL: f64 = 12.0;
/// Size of legends and axis labels.
pub(super) const NORMAL: f64 = 13.0;
/// plotters divides a font's size by this before it writes it.
const PLOTTERS_FONT: f64 = 1.24;

/// For how wide a place a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Width {
    /// A page on a wide screen.
    Wide,
    /// A column of text, such as that of a README.
    Column,
    /// A phone, or one of several charts side by side.
    Narrow,
}

impl Width {
    /// In pixels.
    pub(super) fn pixels(self) -> u32 {
        match self {
            Self::Wide => 1120,
            Self::Column => 860,
            Self::Narrow => 420,
        }
    }

    /// How many labels fit on a horizontal axis.
    pub(super) fn x_ticks(self) -> usize {
        match self {
            Self::Wide | Self::Column => 12,
            Self::Narrow => 6,
        }
    }

    /// One of two values.
    pub(super) fn pick<T>(self, wide: T, narrow: T) -> T {
        match self {
            Self::Wide | Self::Column => wide,
            Self::Narrow => narrow,
        }
    }
}

/// A line in a legend: a sample, and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) pen: Pen,
    pub(super) mark: Option<(Shape, bool)>,
    pub(super) label: String,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pen {
    pub(super) colour: Colour,
    pub(super) width: f64,
    pub(super) dashes: Dashes,
    pub(super) opacity: f64,
}

impl Pen {
    pub(super) fn solid(colour: Colour, width: f64) -> Self {
        Self {
            colour,
            width,
            dashes: Dashes::None,
            opacity: 1.0,
        }
    }

    pub(super) fn dashed(colour: Colour, width: f64, dashes: Dashes) -> Self {
        Self {
            dashes,
            ..Self::solid(colour, width)
        }
    }
}

/// The pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dashes {
    None,
    Long,
    Short,
    Dots,
    /// No line at all, in a legend.
    NoLine,
}

impl Dashes {
    fn pattern(self) -> Option<&'static str> {
        match self {
            Self::None | Self::NoLine => None,
            Self::Long => Some("9 5"),
            Self::Short => Some("4 4"),
            Self::Dots => Some("1.5 4"),
        }
    }
}

/// A mark at a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) shape: Shape,
    pub(super) colour: Colour,
    /// Filled, or an outline.
    pub(super) filled: bool,
    pub(super) radius: f64,
}

/// Where a text stands with respect to its position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A chart in the making: a plotting area with axes, and what is on it.
#[derive(Debug)]
pub(super) struct Canvas {
    width: u32,
    height: u32,
    /// Left, top, right and bottom of the plotting area, in pixels.
    area: [f64; 4],
    x: Axis,
    y: Axis,
    /// What plotters drew.
    grid: String,
    legend: Vec<Element>,
    /// What is drawn over the grid, in order.
    layers: Vec<Element>,
}

/// What a canvas is made from.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) width: Width,
    /// Height of the plotting area, in pixels.
    pub(super) plot_height: u32,
    /// Room left of the plotting area for labels of the vertical axis.
    pub(super) left: u32,
    /// Room right of it.
    pub(super) right: u32,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Horizontal lines at the ticks of the vertical axis.
    pub(super) y_lines: bool,
    pub(super) legend: &'a [Key],
}

impl Canvas {
    /// Axes, grid, axis labels and legend; nothing else yet.
    pub(super) fn new(frame: Frame<'_>) -> Result<Self, Error> {
        const ROW: f64 = 22.0;
        let width = frame.width.pixels();
        let keys = place_keys(frame.legend, f64::from(width));
        let rows = keys.last().map_or(0, |(_, row)| row + 1);
        let legend_height = rows as f64 * ROW;
        let y_label_height = if frame.y.label.is_empty() { 4.0 } else { 26.0 };
        let x_label_height = if frame.x.label.is_empty() { 0.0 } else { 22.0 };
        let tick_height = 24;
        let top = (legend_height + y_label_height) as u32;
        let height = top + frame.plot_height + tick_height + x_label_height as u32 + 4;

        let mut grid = String::new();
        let area = draw_grid(&mut grid, &frame, (width, height), top, tick_height)
            .map_err(|error| Error::Bench(format!("cannot draw a chart: {error}")))?;
        let mut canvas = Self {
            width,
            height,
            area,
            x: frame.x,
            y: frame.y,
            grid: inside_of_root(&grid).to_owned(),
            legend: Vec::new(),
            layers: Vec::new(),
        };
        for (key, (x, row)) in frame.legend.iter().zip(keys) {
            canvas.key(key, x, (row as f64 + 0.5) * ROW);
        }
        canvas.legend = std::mem::take(&mut canvas.layers);
        let [left, top, right, bottom] = canvas.area;
        if !canvas.y.label.is_empty() {
            let label = canvas.y.label.clone();
            let start = (left - f64::from(frame.left) + 4.0, top - 10.0);
            canvas.text(start, &label, NORMAL, Colour::Ink, Anchor::Start);
        }
        if !canvas.x.label.is_empty() {
            let label = canvas.x.label.clone();
            let middle = (
                (left + right) / 2.0,
                bottom + f64::from(tick_height) + x_label_height / 2.0 + 4.0,
            );
            canvas.text(middle, &label, NORMAL, Colour::Ink, Anchor::Middle);
        }
        Ok(canvas)
    }

    /// Left, top, right and bottom of the plotting area.
    pub(super) fn area(&self) -> [f64; 4] {
        self.area
    }

    /// The pixel of a value; `None` where an axis has no place for it.
    pub(super) fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        let [left, top, right, bottom] = self.area;
        let along = |axis: &Axis, value: f64| {
            let position = axis.scale.position(value)?;
            let fraction = (position - axis.start) / (axis.end - axis.start);
            // Far outside is nowhere: it would be a number that no viewer draws.
            (fraction.abs() < 100.0).then_some(fraction)
        };
        let (across, up) = (along(&self.x, x)?, along(&self.y, y)?);
        Some((left + across * (right - left), bottom - up * (bottom - top)))
    }

    /// The values at the left and right ends.
    pub(super) fn x_ends(&self) -> (f64, f64) {
        (
            self.x.scale.value(self.x.start),
            self.x.scale.value(self.x.end),
        )
    }

    /// The values at the lower and upper ends.
    pub(super) fn y_ends(&self) -> (f64, f64) {
        (
            self.y.scale.value(self.y.start),
            self.y.scale.value(self.y.end),
        )
    }

    /// A line through these values, without those that have no place.
    pub(super) fn line(&mut self, values: &[(f64, f64)], pen: Pen, title: Option<&str>) {
        let pixels: Vec<(f64, f64)> = values.iter().filter_map(|value| self.at(*value)).collect();
        self.pixel_line(&pixels, pen, title);
    }

    /// A line through these pixels.
    pub(super) fn pixel_line(&mut self, pixels: &[(f64, f64)], pen: Pen, title: Option<&str>) {
        if pixels.len() < 2 || pen.dashes == Dashes::NoLine {
            return;
        }
        let mut path = String::new();
        for (index, (x, y)) in pixels.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        let mut line = Element::new("path")
            .with("d", path)
            .with("fill", "none")
            .with("stroke", pen.colour.hex())
            .with("stroke-width", pen.width)
            .with("stroke-linejoin", "round");
        if let Some(pattern) = pen.dashes.pattern() {
            line = line.with("stroke-dasharray", pattern);
        }
        if pen.opacity < 1.0 {
            line = line.with("stroke-opacity", pen.opacity);
        }
        if let Some(title) = title {
            line = line.child(Element::new("title").text(title));
        }
        self.layers.push(line);
    }

    /// A mark at a value, with a tooltip; nothing where it has no place.
    pub(super) fn mark(&mut self, value: (f64, f64), mark: Mark, title: &str) {
        if let Some(pixel) = self.at(value) {
            self.pixel_mark(pixel, mark, Some(title));
        }
    }

    /// A mark at a pixel.
    pub(super) fn pixel_mark(&mut self, pixel: (f64, f64), mark: Mark, title: Option<&str>) {
        let colour = mark.colour.hex();
        let paper = Colour::Paper.hex();
        // Hollow marks hide the lines under them; filled ones have a rim that
        // keeps overlapping ones apart.
        let (fill, stroke, width) = if mark.filled {
            (&colour, &paper, 0.8)
        } else {
            (&paper, &colour, 1.6)
        };
        let mut element = Element::new("path")
            .with("class", "mark")
            .with("d", mark.shape.path(pixel, mark.radius))
            .with("fill", fill)
            .with("stroke", stroke)
            .with("stroke-width", width);
        if let Some(title) = title {
            element = element.child(Element::new("title").text(title));
        }
        self.layers.push(element);
    }

    /// A filled rectangle between two pixels, with a tooltip.
    pub(super) fn rectangle(
        &mut self,
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        colour: Colour,
        title: Option<&str>,
    ) {
        let mut element = Element::new("rect")
            .with("x", format_args!("{:.1}", left.min(right)))
            .with("y", format_args!("{:.1}", top.min(bottom)))
            .with("width", format_args!("{:.1}", (right - left).abs()))
            .with("height", format_args!("{:.1}", (bottom - top).abs()))
            .with("fill", colour.hex());
        if let Some(title) = title {
            element = element.child(Element::new("title").text(title));
        }
        self.layers.push(element);
    }

    /// A text at a pixel, on a rim of paper that keeps lines out of it.
    pub(super) fn text(
        &mut self,
        pixel: (f64, f64),
        text: &str,
        size: f64,
        colour: Colour,
        anchor: Anchor,
    ) {
        let element = text_element(pixel, text, size, colour, anchor);
        self.layers.push(element);
    }

    /// The name of a group of lines.
    pub(super) fn heading(&mut self, pixel: (f64, f64), text: &str, colour: Colour) {
        let element =
            text_element(pixel, text, NORMAL, colour, Anchor::Start).with("font-weight", "600");
        self.layers.push(element);
    }

    /// A text in a font of fixed width, for names as they are in the source.
    pub(super) fn code(&mut self, pixel: (f64, f64), text: &str, size: f64, anchor: Anchor) {
        let element = text_element(pixel, text, size, Colour::Ink, anchor).with("class", "mono");
        self.layers.push(element);
    }

    /// A text along a slope, given in pixels to the right and upwards.
    pub(super) fn sloping_text(
        &mut self,
        (x, y): (f64, f64),
        (right, up): (f64, f64),
        text: &str,
        anchor: Anchor,
    ) {
        let degrees = -up.atan2(right).to_degrees();
        let element = text_element((x, y), text, SMALL, Colour::Ink, anchor).with(
            "transform",
            format_args!("rotate({degrees:.1} {x:.1} {y:.1})"),
        );
        self.layers.push(element);
    }

    /// One entry of the legend, its sample starting at this pixel.
    fn key(&mut self, key: &Key, x: f64, y: f64) {
        self.pixel_line(&[(x, y), (x + KEY_SAMPLE, y)], key.pen, None);
        if let Some((shape, filled)) = key.mark {
            let mark = Mark {
                shape,
                colour: key.pen.colour,
                filled,
                radius: 4.5,
            };
            self.pixel_mark((x + KEY_SAMPLE / 2.0, y), mark, None);
        }
        self.text(
            (x + KEY_SAMPLE + 6.0, y + NORMAL * 0.35),
            &key.label,
            NORMAL,
            Colour::Ink,
            Anchor::Start,
        );
    }

    /// The chart as an element of a page, or, with a heading, as a document of
    /// its own. The description is for those who cannot see the chart.
    pub(super) fn finish(
        self,
        id: &str,
        title: &str,
        description: &str,
        heading: Option<&str>,
    ) -> Element {
        const HEADING: u32 = 34;
        const MARGIN: u32 = 12;
        let (width, height) = match heading {
            Some(_) => (self.width + 2 * MARGIN, self.height + HEADING + 2 * MARGIN),
            None => (self.width, self.height),
        };
        let mut svg = Element::new("svg")
            .with("xmlns", "http://www.w3.org/2000/svg")
            .with("class", "chart")
            .with("viewBox", format_args!("0 0 {width} {height}"))
            .with("width", width)
            .with("height", height)
            .with("role", "img")
            .with(
                "aria-labelledby",
                format_args!("{id}-title {id}-description"),
            )
            .child(
                Element::new("title")
                    .with("id", format_args!("{id}-title"))
                    .text(title),
            )
            .child(
                Element::new("desc")
                    .with("id", format_args!("{id}-description"))
                    .text(description),
            );
        let content = |group: Element| {
            group
                .child(
                    Element::new("g")
                        .with("class", "legend")
                        .children(self.legend.iter().cloned()),
                )
                .child(Element::new("g").with("class", "grid").raw(&self.grid))
                .child(
                    Element::new("g")
                        .with("class", "data")
                        .children(self.layers.iter().cloned()),
                )
        };
        if let Some(heading) = heading {
            svg = svg
                // No character of the style sheet means anything in XML.
                .child(Element::new("style").raw(&style()))
                .child(
                    Element::new("rect")
                        .with("width", width)
                        .with("height", height)
                        .with("fill", Colour::Paper.hex()),
                )
                .child(
                    text_element(
                        (f64::from(MARGIN), f64::from(MARGIN) + 16.0),
                        heading,
                        17.0,
                        Colour::Ink,
                        Anchor::Start,
                    )
                    .with("font-weight", "600"),
                )
                .child(content(Element::new("g").with(
                    "transform",
                    format_args!("translate({MARGIN} {})", MARGIN + HEADING),
                )));
        } else {
            svg = svg.child(content(Element::new("g")));
        }
        svg
    }
}

/// Length of the sample in a legend, in pixels.
const KEY_SAMPLE: f64 = 26.0;

/// Where the entries of a legend go: pixels from the left, and row. A row is
/// full where the next entry would not fit.
fn place_keys(keys: &[Key], width: f64) -> Vec<(f64, usize)> {
    let (mut x, mut row) = (4.0, 0);
    keys.iter()
        .map(|key| {
            let length = KEY_SAMPLE + 6.0 + text_width(&key.label, NORMAL) + 18.0;
            if x > 4.0 && x + length > width {
                (x, row) = (4.0, row + 1);
            }
            let place = (x, row);
            x += length;
            place
        })
        .collect()
}

/// About how wide a text is, in pixels. Nobody knows: the font is the reader's.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

fn text_element(
    (x, y): (f64, f64),
    text: &str,
    size: f64,
    colour: Colour,
    anchor: Anchor,
) -> Element {
    Element::new("text")
        .with("x", format_args!("{x:.1}"))
        .with("y", format_args!("{y:.1}"))
        .with("font-family", "sans-serif")
        .with("font-size", size)
        .with("fill", colour.hex())
        .with(
            "text-anchor",
            match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            },
        )
        .with("stroke", Colour::Paper.hex())
        .with("stroke-width", 3)
        .with("stroke-linejoin", "round")
        .with("paint-order", "stroke")
        .text(text)
}

/// An axis as plotters takes it: linear, since its values are positions.
struct Coordinate(Axis);

impl Ranged for Coordinate {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, position: &f64, (from, to): (i32, i32)) -> i32 {
        let fraction = (position - self.0.start) / (self.0.end - self.0.start);
        from + (fraction * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.0.lines.clone()
        } else {
            self.0.ticks.iter().map(|tick| tick.0).collect()
        }
    }

    fn range(&self) -> Range<f64> {
        self.0.start..self.0.end
    }
}

/// Has plotters draw axes, grid and tick labels; returns the plotting area.
fn draw_grid(
    svg: &mut String,
    frame: &Frame<'_>,
    size: (u32, u32),
    top: u32,
    tick_height: u32,
) -> Result<[f64; 4], Box<dyn std::error::Error + Send + Sync>> {
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    let bottom = size.1 - top - frame.plot_height - tick_height;
    let label = |axis: &Axis, position: f64| {
        axis.ticks
            .iter()
            .find(|tick| tick.0 == position)
            .map_or(String::new(), |tick| tick.1.clone())
    };
    let mut chart = ChartBuilder::on(&root)
        .margin_top(top)
        .margin_bottom(bottom)
        .margin_right(frame.right)
        .x_label_area_size(tick_height)
        .y_label_area_size(frame.left)
        .build_cartesian_2d(Coordinate(frame.x.clone()), Coordinate(frame.y.clone()))?;
    let font = ("sans-serif", SMALL * PLOTTERS_FONT)
        .into_font()
        .color(&Colour::Faint.rgb());
    let x_label = |position: &f64| label(&frame.x, *position);
    let y_label = |position: &f64| label(&frame.y, *position);
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(Colour::Grid.rgb())
        .light_line_style(Colour::FineGrid.rgb())
        .axis_style(Colour::Faint.rgb().stroke_width(1))
        .x_label_style(font.clone().pos(Pos::new(HPos::Center, VPos::Top)))
        .y_label_style(font)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .set_all_tick_mark_size(4);
    if !frame.y_lines {
        mesh.disable_y_mesh().disable_y_axis();
    }
    mesh.draw()?;
    let (across, down) = chart.plotting_area().get_pixel_range();
    drop(chart);
    root.present()?;
    drop(root);
    Ok([across.start, down.start, across.end, down.end].map(f64::from))
}

/// What is between the tags of the root element.
fn inside_of_root(svg: &str) -> &str {
    let start = svg.find('>').map_or(0, |end| end + 1);
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    &svg[start.min(end)..end]
}
