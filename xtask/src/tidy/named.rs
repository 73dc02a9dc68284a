//! The rule `named-tests`: the tests that `docs/robustness.md` names exist.

use std::path::Path;

use super::tree::{Findings, Tree};
use crate::error::Error;

const PAGE: &str = "docs/robustness.md";

pub(super) fn named_tests(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    if !tree.has(PAGE) {
        return Ok(());
    }
    for (index, line) in tree.text(Path::new(PAGE))?.lines().enumerate() {
        for (file, function) in named(line) {
            let there = tree.has(file)
                && match function {
                    None => true,
                    Some(name) => defines(&tree.text(Path::new(file))?, name),
                };
            if !there {
                let what = function.map_or_else(String::new, |name| format!(" with fn {name}"));
                findings.add(PAGE, index + 1, format!("there is no {file}{what}"));
            }
        }
    }
    Ok(())
}

/// The files, and their tests, that a line names as `path/file.rs` or `path/file.rs::test`.
fn named(line: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    line.split('`').skip(1).step_by(2).filter_map(|code| {
        let (file, function) = match code.split_once("::") {
            Some((file, function)) => (file, Some(function)),
            None => (code, None),
        };
        (file.contains('/') && file.ends_with(".rs")).then_some((file, function))
    })
}

/// Whether this text defines a function of this name.
fn defines(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let named = code.split_once("fn ").map(|(_, rest)| rest);
        named
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with(['(', '<']))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_tests_are_named_in_code() {
        let line = "| `a/b.rs::works` and `c/d.rs` | not `a::b`, nor a/e.rs, nor `f.rs` |";
        let found: Vec<_> = named(line).collect();
        assert_eq!(found, [("a/b.rs", Some("works")), ("c/d.rs", None)]);
    }

    #[test]
    fn functions_are_told_from_longer_names_and_comments() {
        let text = "/// fn a() {}\n    fn works_too() {}\n#[test] fn well() {}\n";
        assert!(defines(text, "works_too") && defines(text, "well"));
        assert!(!defines(text, "works") && !defines(text, "a"));
    }
}
