//! A chart with what is said about it.

use super::canvas::{Canvas, Width};
use super::markup::Element;
use crate::error::Error;

/// What became of a chart.
pub(super) enum Outcome<'a> {
    Drawn(Figure<'a>),
    /// There was nothing to draw.
    LeftOut(LeftOut),
}

/// A chart that was not drawn.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) title: String,
    /// What was missing: the end of a sentence.
    pub(super) why: String,
}

/// A chart, and what is said about it.
pub(super) struct Figure<'a> {
    /// Its name in file names and addresses.
    pub(super) slug: String,
    pub(super) title: String,
    /// What a reader must know to read it.
    pub(super) caption: String,
    /// What it shows, for those who cannot see it.
    pub(super) description: String,
    /// Draws it for a place of this width.
    pub(super) draw: Box<dyn Fn(Width) -> Result<Canvas, Error> + 'a>,
    /// Whether it stands in a row with others, always drawn narrow.
    pub(super) small: bool,
}

/// A name for files and addresses: letters, digits and hyphens.
pub(super) fn slug(kind: &str, name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("{kind}-{}", name.chars().map(plain).collect::<String>())
}

impl Figure<'_> {
    /// The chart as a document of its own.
    pub(super) fn to_document(&self) -> Result<String, Error> {
        let canvas = (self.draw)(Width::Column)?;
        let title = Some(self.title.as_str());
        Ok(canvas
            .finish(&self.slug, &self.title, &self.description, title)
            .to_string())
    }

    /// The chart in as many widths as a page needs to show one that fits.
    pub(super) fn to_element(&self) -> Result<Element, Error> {
        let drawing = |width, id: &str| {
            (self.draw)(width).map(|canvas| canvas.finish(id, &self.title, &self.description, None))
        };
        let mut figure = Element::new("figure").with("id", &self.slug);
        if self.small {
            figure = figure.child(drawing(Width::Narrow, &format!("{}-chart", self.slug))?);
        } else {
            for (width, class) in [(Width::Wide, "wide"), (Width::Narrow, "narrow")] {
                let drawing = drawing(width, &format!("{}-{class}", self.slug))?;
                figure = figure.child(Element::new("div").with("class", class).child(drawing));
            }
        }
        let heading = if self.small { "h3" } else { "h2" };
        Ok(Element::new("section")
            .child(Element::new(heading).text(&self.title))
            .child(figure.child(Element::new("figcaption").text(&self.caption))))
    }
}
