//! A chart with its texts, and the names, marks and keys of all charts.

use maud::{Markup, html};

use crate::canvas::{Canvas, Key, Mark, Width};
use crate::palette::{Colour, Shape};
use crate::record::Record;
use crate::view::Timed;

/// A chart with its texts.
pub(crate) struct Figure<'a> {
    /// Its name in file names and addresses.
    pub(crate) slug: String,
    pub(crate) title: String,
    /// An explanation of how to read it.
    pub(crate) caption: String,
    /// A text alternative, for readers who cannot see it.
    pub(crate) description: String,
    /// Draws it for a place of this width.
    pub(crate) draw: Box<dyn Fn(Width) -> Canvas + 'a>,
    /// Whether it stands in a row with others, always drawn narrow.
    pub(crate) small: bool,
}

/// A chart that was not drawn.
#[derive(Debug)]
pub(crate) struct LeftOut {
    pub(crate) title: String,
    /// The missing data: the end of a sentence.
    pub(crate) why: String,
}

impl LeftOut {
    pub(crate) fn new(title: &str, why: &str) -> Self {
        let (title, why) = (title.to_owned(), why.to_owned());
        Self { title, why }
    }
}

/// A chart, or the reason why it was not drawn.
pub(crate) type Outcome<'a> = Result<Figure<'a>, LeftOut>;

impl Figure<'_> {
    /// The chart as a document of its own.
    pub(crate) fn document(&self) -> String {
        let canvas = (self.draw)(Width::Column);
        canvas
            .finish(&self.slug, &self.title, &self.description, true)
            .0
    }

    /// The chart in several widths; the page shows the one that fits.
    pub(crate) fn section(&self) -> Markup {
        let drawing =
            |width, id: &str| (self.draw)(width).finish(id, &self.title, &self.description, false);
        let slug = &self.slug;
        html! {
            section {
                @if self.small { h3 { (self.title) } } @else { h2 { (self.title) } }
                figure id=(slug) {
                    @if self.small {
                        (drawing(Width::Narrow, &format!("{slug}-chart")))
                    } @else {
                        div.wide { (drawing(Width::Wide, &format!("{slug}-wide"))) }
                        div.narrow { (drawing(Width::Narrow, &format!("{slug}-narrow"))) }
                    }
                    figcaption { (self.caption) }
                }
            }
        }
    }
}

/// A name for files and addresses: letters, digits and hyphens.
pub(super) fn slug(kind: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{kind}-{}", name.chars().map(plain).collect::<String>())
}

/// The name of the measured code itself, in a list with its baselines.
pub(super) fn own_name(record: &Record) -> &'static str {
    match record.environment.device.kind.as_str() {
        "cpu" => "CPU port",
        _ => "Rust",
    }
}

/// The mark of a time: the family's own for its kernels, an outline of that for the first baseline,
/// which has every kernel, and another shape for other baselines.
pub(super) fn mark(timed: Timed<'_>, radius: f64) -> Mark {
    let hue = timed.place.hue;
    let (shape, colour) = match timed.baseline() {
        None | Some(0) => (Shape::of(hue), Colour::Hue(hue)),
        Some(1) => (Shape::Cross, Colour::Ink),
        Some(_) => (Shape::Inverted, Colour::Ink),
    };
    Mark {
        shape,
        colour,
        filled: timed.by.is_none(),
        radius,
    }
}

/// A key for each of the record's baselines that is among `shown`; the marks belong to no family.
pub(super) fn baseline_keys(record: &Record, shown: &[Timed<'_>], first: &str) -> Vec<Key> {
    let baselines = record
        .baselines
        .iter()
        .enumerate()
        .filter_map(|(index, baseline)| {
            let timed = shown.iter().find(|timed| timed.baseline() == Some(index))?;
            let (shape, suffix) = match index {
                0 => (Shape::Circle, first),
                _ => (mark(*timed, 0.0).shape, ""),
            };
            let mark = Mark {
                shape,
                colour: Colour::Ink,
                filled: false,
                radius: 4.5,
            };
            let label = format!("{}{suffix}", baseline.name);
            Some(Key {
                pen: None,
                mark: Some(mark),
                label,
            })
        });
    baselines.collect()
}

/// A key for kernels themselves.
pub(super) fn own_key(shape: Shape, colour: Colour, label: &str) -> Key {
    let mark = Mark {
        shape,
        colour,
        filled: true,
        radius: 4.5,
    };
    Key {
        pen: None,
        mark: Some(mark),
        label: label.to_owned(),
    }
}
