//! The rule `lists`: every list of families matches the folders of kernels.
//!
//! Rust needs modules declared, a table its elements, and cargo its tests. Each such list stands
//! behind a line that marks it, up to the next line that is empty or closes a bracket; `cargo xtask
//! tidy --write` writes it.

use std::path::Path;

use super::tree::{Findings, KERNELS, Tree};
use crate::error::Error;
use crate::workspace;

/// The end of the line before a list.
const MARK: &str = "which `cargo xtask tidy --write` lists";

/// Stands for the family's name.
const FAMILY: &str = "<family>";

/// A list of families.
struct List {
    file: &'static str,
    /// The families in it are those with this file.
    of_those_with: &'static str,
    /// The entry of a family.
    item: &'static str,
}

const fn list(file: &'static str, of_those_with: &'static str, item: &'static str) -> List {
    List {
        file,
        of_those_with,
        item,
    }
}

const ALL: &str = "gpu-kernels/src/<family>/mod.rs";

#[rustfmt::skip]
const LISTS: [List; 8] = [
    list("gpu-kernels/src/lib.rs", ALL, "pub mod <family>;"),
    list("gpu-kernels/src/registry.rs", ALL, "    crate::<family>::FAMILY,"),
    list("host/src/lib.rs", ALL, "pub mod <family>;"),
    list("host/src/case.rs", ALL, "    &crate::<family>::cases::Cases,"),
    list("tests/Cargo.toml", ALL, "[[test]]\nname = \"<family>\"\npath = \"<family>.rs\""),
    list("bench/src/rows/mod.rs", "bench/src/rows/<family>.rs", "    <family>,"),
    list("baselines/src/cuda.rs", "baselines/<family>.cu", "    \"<family>\","),
    list("baselines/src/cpp.rs", "baselines/cpu/<family>.cpp", "    \"<family>.cpp\","),
];

impl List {
    /// The lines of the list.
    fn lines(&self, tree: &Tree) -> Vec<String> {
        let families = families(tree);
        let families = families
            .iter()
            .filter(|family| tree.has(self.of_those_with.replace(FAMILY, family)));
        families
            .flat_map(|family| {
                self.item
                    .replace(FAMILY, family)
                    .lines()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// The file with the correct list; `None` where the file marks no list.
    fn written(&self, tree: &Tree, text: &str) -> Option<String> {
        let lines: Vec<&str> = text.lines().collect();
        let marked = lines
            .iter()
            .position(|line| line.trim_end_matches('.').ends_with(MARK))?;
        let rest = &lines[marked + 1..];
        let end = rest
            .iter()
            .position(|line| line.is_empty() || line.trim_start().starts_with([']', '}', ')']))
            .unwrap_or(rest.len());
        let mut written = String::new();
        let list = self.lines(tree);
        let list = list.iter().map(String::as_str);
        let all = lines[..=marked].iter().copied().chain(list);
        for line in all.chain(rest[end..].iter().copied()) {
            written.push_str(line);
            written.push('\n');
        }
        Some(written)
    }
}

/// The families that have kernels.
pub(super) fn families(tree: &Tree) -> Vec<String> {
    let folders = tree.files.iter().filter_map(|file| {
        let inside = file.strip_prefix(KERNELS).ok()?;
        let folder = inside.parent().filter(|_| inside.ends_with("mod.rs"))?;
        (folder.components().count() == 1).then(|| folder.display().to_string())
    });
    folders.collect()
}

/// The lists whose files exist, and the texts of the files.
fn of(tree: &Tree) -> impl Iterator<Item = Result<(&'static List, String), Error>> {
    LISTS
        .iter()
        .filter(|list| tree.has(list.file))
        .map(|list| Ok((list, tree.text(Path::new(list.file))?)))
}

pub(super) fn lists(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    for list in of(tree) {
        let (list, text) = list?;
        match list.written(tree, &text) {
            None => findings.add(list.file, 0, format!("no line ends in \"{MARK}\"")),
            Some(written) if written != text => {
                let mut lines = written.lines().zip(text.lines());
                let same = lines.position(|(should, is)| should != is);
                let shorter = written.lines().count().min(text.lines().count());
                let line = same.unwrap_or(shorter) + 1;
                findings.add(
                    list.file,
                    line,
                    "not the families of gpu-kernels/src: `cargo xtask tidy --write` lists those",
                );
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Writes every list.
pub(super) fn write(tree: &Tree) -> Result<(), Error> {
    for list in of(tree) {
        let (list, text) = list?;
        if let Some(written) = list.written(tree, &text)
            && written != text
        {
            workspace::write(&tree.root.join(list.file), &written)?;
        }
    }
    Ok(())
}
