//! Counts the public items in the library's documentation.
//!
//! An item is public if `cargo doc` writes a page for it: re-exports are followed and hidden items
//! left out. This counts the pages, and the methods on them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use cargo_halo::{Outcome, output, process};

use crate::error::Error;
use crate::workspace;

/// The most items that `halo-gpu` may have.
const MOST_ITEMS: usize = 200;

/// The start of a page's name, and the kind of its item.
const KINDS: [(&str, &str); 9] = [
    ("index", "modules"),
    ("struct", "types"),
    ("enum", "types"),
    ("union", "types"),
    ("type", "types"),
    ("trait", "traits"),
    ("fn", "functions"),
    ("constant", "constants"),
    ("macro", "macros"),
];

/// Documents the library and prints the number of items. Too many are a finding.
pub(super) fn count(root: &Path) -> Result<Outcome, Error> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    let folder = metadata.target_directory.join("doc/halo_gpu");
    let folder = folder.as_std_path();
    // Old pages of removed items must go; cargo writes all pages again.
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(Error::file("remove", folder))?;
    }
    let mut doc = Command::new(process::cargo());
    doc.args(["doc", "--quiet", "--no-deps", "--package", "halo-gpu"]);
    process::output(doc.current_dir(root))?;

    let mut modules = BTreeMap::new();
    walk(folder, "halo_gpu", &mut modules)?;
    let mut all = Count::default();
    for (module, count) in &modules {
        output::line(&format!("{module}: {count}"));
        all.add(count);
    }
    output::line(&format!("in all: {all}"));
    if all.items() > MOST_ITEMS {
        eprintln!(
            "tidy: {} public items, of {MOST_ITEMS} at most",
            all.items()
        );
        return Ok(Outcome::Findings);
    }
    Ok(Outcome::Clean)
}

/// Items of each kind, and methods.
#[derive(Debug, Default)]
struct Count {
    kinds: BTreeMap<&'static str, Vec<String>>,
    methods: usize,
}

impl Count {
    fn items(&self) -> usize {
        self.kinds.values().map(Vec::len).sum()
    }

    fn add(&mut self, other: &Self) {
        for (kind, names) in &other.kinds {
            let of_kind = self.kinds.entry(kind).or_default();
            of_kind.extend(names.iter().cloned());
        }
        self.methods += other.methods;
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} items", self.items())?;
        for (at, (kind, names)) in self.kinds.iter().enumerate() {
            let before = if at == 0 { " (" } else { ", " };
            write!(f, "{before}{} {kind}", names.len())?;
        }
        write!(f, "), {} methods", self.methods)
    }
}

/// Counts the pages of a module and of those in it.
fn walk(folder: &Path, module: &str, modules: &mut BTreeMap<String, Count>) -> Result<(), Error> {
    let file = |source| Error::file("list", folder)(source);
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .and_then(Iterator::collect)
        .map_err(file)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            walk(&path, &format!("{module}::{name}"), modules)?;
            continue;
        }
        let Some((kind, item)) = kind_and_name(&name) else {
            continue;
        };
        let page = workspace::read(&path)?;
        if leads_elsewhere(&page) {
            continue;
        }
        let count = modules.entry(module.to_owned()).or_default();
        count.kinds.entry(kind).or_default().push(item.to_owned());
        count.methods += methods(&page);
    }
    Ok(())
}

/// The item of a page, from the page's name.
fn kind_and_name(page: &str) -> Option<(&'static str, &str)> {
    let stem = page.strip_suffix(".html")?;
    let (kind, name) = stem.split_once('.').unwrap_or((stem, "index"));
    let known = KINDS.iter().find(|(prefix, _)| *prefix == kind);
    known.map(|(_, kind)| (*kind, name))
}

/// Whether a page only redirects to another.
fn leads_elsewhere(page: &str) -> bool {
    page.contains("http-equiv=\"refresh\"")
}

/// The methods of the item itself, without those of traits that it implements.
fn methods(page: &str) -> usize {
    let own = page.find("id=\"trait-implementations\"");
    let page = &page[..own.unwrap_or(page.len())];
    ["<section id=\"method.", "<section id=\"tymethod."]
        .iter()
        .map(|mark| page.matches(mark).count())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_items_by_their_names() {
        let check = |page, kind| assert_eq!(kind_and_name(page), kind, "{page}");
        check("struct.Buffer.html", Some(("types", "Buffer")));
        check("type.Grid2.html", Some(("types", "Grid2")));
        check("trait.Scalar.html", Some(("traits", "Scalar")));
        check("fn.sum.html", Some(("functions", "sum")));
        check("index.html", Some(("modules", "index")));
        check("all.html", None);
        check("sidebar-items.js", None);
    }

    #[test]
    fn methods_of_an_items_own_are_counted() {
        let own = "<section id=\"method.new\" class=\"method\"><section id=\"tymethod.len\">";
        let page = format!("{own}<h2 id=\"trait-implementations\"><section id=\"method.fmt\">");
        assert_eq!(methods(&page), 2);
        assert_eq!(methods(own), 2);
    }

    #[test]
    fn what_leads_elsewhere_is_no_item() {
        assert!(leads_elsewhere(
            "<meta http-equiv=\"refresh\" content=\"0;URL=x\">"
        ));
        assert!(!leads_elsewhere("<meta charset=\"utf-8\">"));
    }
}
