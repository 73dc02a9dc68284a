//! Comments in a kernel's source that mark a mutation as changing nothing.
//!
//! ```text
//! // equivalent mutant (comparison): the last point is written twice, with one value
//! if i <= last {
//! ```
//!
//! The comment stands on the line of the mutation, or on lines of its own right above it. The name
//! of the operator is in parentheses; after a colon may follow words of the description that narrow
//! it down: `(comparison: made `<=`)`. A reason after the parentheses is required. A comment that
//! waives no mutation is reported: its code has changed.

use super::operators::Site;

const OPENING: &str = "// equivalent mutant (";

/// A waiver in a source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waiver {
    /// Line of the comment, from 1.
    pub(crate) line: usize,
    /// Line of the code that it waives.
    about: usize,
    operator: String,
    /// Words that the description must contain; may be empty.
    detail: String,
    pub(crate) reason: String,
}

impl Waiver {
    /// Whether it waives this mutation.
    pub(crate) fn covers(&self, site: &Site) -> bool {
        site.line == self.about
            && site.operator.name() == self.operator
            && site.what.contains(&self.detail)
    }
}

/// A comment that looks like a waiver and is none: its line, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) line: usize,
    pub(crate) message: &'static str,
}

/// All waivers in this text.
pub(crate) fn waivers(text: &str) -> (Vec<Waiver>, Vec<Malformed>) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut waivers, mut malformed) = (Vec::new(), Vec::new());
    for (index, line) in lines.iter().enumerate() {
        let Some(start) = line.find(OPENING) else {
            continue;
        };
        let line_number = index + 1;
        let rest = &line[start + OPENING.len()..];
        let Some((inside, reason)) = rest.split_once("):") else {
            malformed.push(Malformed {
                line: line_number,
                message: "a waiver reads `// equivalent mutant (OPERATOR): REASON`",
            });
            continue;
        };
        if reason.trim().is_empty() {
            malformed.push(Malformed {
                line: line_number,
                message: "a waiver must give its reason after the colon",
            });
            continue;
        }
        let (operator, detail) = inside.split_once(':').unwrap_or((inside, ""));
        let alone = line[..start].trim().is_empty();
        let about = if alone {
            // The first line below that is not a comment.
            (index + 1..lines.len())
                .find(|&below| !lines[below].trim_start().starts_with("//"))
                .map_or(line_number, |below| below + 1)
        } else {
            line_number
        };
        waivers.push(Waiver {
            line: line_number,
            about,
            operator: operator.trim().to_owned(),
            detail: detail.trim().to_owned(),
            reason: reason.trim().to_owned(),
        });
    }
    (waivers, malformed)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::operators::sites;
    use super::*;

    /// The numbers of waived and of other mutations in this text.
    fn counts(text: &str) -> (usize, usize) {
        let (waivers, malformed) = waivers(text);
        assert!(malformed.is_empty(), "{malformed:?}");
        let sites = sites(Path::new("test.rs"), text).unwrap();
        let waived = sites
            .iter()
            .filter(|site| waivers.iter().any(|waiver| waiver.covers(site)))
            .count();
        (waived, sites.len() - waived)
    }

    #[test]
    fn a_waiver_covers_its_line_and_operator_only() {
        assert_eq!(counts("fn f() { a < b }"), (0, 1));
        assert_eq!(
            counts(
                "fn f() {\n  a < b; // equivalent mutant (comparison): never equal\n  c < d;\n}"
            ),
            (1, 1)
        );
        assert_eq!(
            counts(
                "fn f() {\n  // equivalent mutant (comparison): never equal,\n  // as b is odd\n  a < b;\n  c < d;\n}"
            ),
            (1, 1)
        );
        assert_eq!(
            counts("fn f() {\n  // equivalent mutant (arithmetic): no\n  a < b;\n}"),
            (0, 1)
        );
    }

    #[test]
    fn a_waiver_can_be_narrowed() {
        let text = "fn f() {\n  // equivalent mutant (width: made `RADIUS + 1`): the tile has room\n  g(RADIUS);\n}";
        assert_eq!(counts(text), (1, 1));

        // Two that differ in the operation around them only.
        let text = "fn f() {\n  // equivalent mutant (width: in `a >= RADIUS`): a is even\n  a >= RADIUS && b >= RADIUS\n}";
        assert_eq!(counts(text), (2, 5));
    }

    #[test]
    fn a_waiver_needs_its_parts() {
        for text in [
            "// equivalent mutant (comparison)",
            "// equivalent mutant (comparison):  ",
            "// equivalent mutant (comparison",
        ] {
            let (waivers, malformed) = waivers(text);
            assert_eq!((waivers.len(), malformed.len()), (0, 1), "{text}");
        }
        assert_eq!(waivers("// an equivalent mutant"), (Vec::new(), Vec::new()));
    }
}
