//! Elements of HTML and SVG, escaped by construction.
//!
//! Whatever a report says of itself (the name of a GPU, the words of an error)
//! reaches the page as text of an element or value of an attribute, never as
//! markup: there is no way to write either but through [`Element`].

use std::fmt::{Display, Write as _};

/// An element, its attributes and what is in it.
#[derive(Clone, Debug)]
pub(super) struct Element {
    name: &'static str,
    attributes: String,
    content: String,
}

impl Element {
    /// An empty element of this name.
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            attributes: String::new(),
            content: String::new(),
        }
    }

    /// With this attribute. The name is the caller's own and not escaped.
    pub(super) fn with(mut self, name: &'static str, value: impl Display) -> Self {
        let _ = write!(
            self.attributes,
            " {name}=\"{}\"",
            escape(&value.to_string())
        );
        self
    }

    /// With this text at the end.
    pub(super) fn text(mut self, text: impl Display) -> Self {
        self.content.push_str(&escape(&text.to_string()));
        self
    }

    /// With this element at the end.
    pub(super) fn child(mut self, child: Self) -> Self {
        child.write_to(&mut self.content);
        self
    }

    /// With these elements at the end.
    pub(super) fn children(self, children: impl IntoIterator<Item = Self>) -> Self {
        children.into_iter().fold(self, Self::child)
    }

    /// With something at the end that is markup already: a style sheet of this
    /// program, or what plotters wrote.
    pub(super) fn raw(mut self, markup: &str) -> Self {
        self.content.push_str(markup);
        self
    }

    /// Appends the element's markup.
    fn write_to(&self, out: &mut String) {
        let Self {
            name,
            attributes,
            content,
        } = self;
        // The elements that HTML has no end tag for, written as XML has them too.
        let void = matches!(*name, "meta" | "wbr");
        let _ = if void {
            write!(out, "<{name}{attributes}/>")
        } else {
            write!(out, "<{name}{attributes}>{content}</{name}>")
        };
        // Lines of a length that an editor and a diff can take.
        if matches!(
            *name,
            "tr" | "svg" | "p" | "path" | "rect" | "text" | "section" | "meta"
        ) {
            out.push('\n');
        }
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = String::new();
        self.write_to(&mut out);
        f.write_str(&out)
    }
}

/// The text with everything replaced that means something in HTML or XML.
///
/// Control characters, which XML cannot hold in any spelling, become the
/// replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_stay_text() {
        let hostile = "</script><b a='1' b=\"2\">&amp;\u{0}";
        let element = Element::new("p")
            .with("title", hostile)
            .text(hostile)
            .to_string();
        let document = roxmltree::Document::parse(&element).unwrap();
        let root = document.root_element();
        let kept = "</script><b a='1' b=\"2\">&amp;\u{fffd}";
        assert_eq!(root.attribute("title"), Some(kept));
        assert_eq!(root.text(), Some(kept));
        assert_eq!(root.children().count(), 1);
    }

    #[test]
    fn elements_nest() {
        let element = Element::new("g")
            .child(Element::new("circle").with("r", 4.5).text("a"))
            .children([Element::new("line")]);
        assert_eq!(
            element.to_string(),
            "<g><circle r=\"4.5\">a</circle><line></line></g>"
        );
        assert_eq!(Element::new("wbr").to_string(), "<wbr/>");
    }
}
