//! The files that rules check, and what they find.

use std::fmt;
use std::path::{Path, PathBuf};

use gpu_kernels::registry::Family;

use crate::error::Error;
use crate::workspace;

/// The files that the rules check.
pub(crate) struct Tree {
    pub(super) root: PathBuf,
    /// Relative to the root, sorted.
    pub(super) files: Vec<PathBuf>,
    /// The table of kernels.
    pub(super) table: &'static [Family],
}

impl Tree {
    pub(crate) fn has(&self, path: impl AsRef<Path>) -> bool {
        self.files
            .binary_search(&path.as_ref().to_path_buf())
            .is_ok()
    }

    pub(crate) fn text(&self, path: &Path) -> Result<String, Error> {
        workspace::read(&self.root.join(path))
    }

    /// The Rust files under this folder.
    pub(crate) fn rust_under(&self, folder: &str) -> impl Iterator<Item = &PathBuf> {
        let folder = folder.to_owned();
        self.files
            .iter()
            .filter(move |file| is_rust(file) && file.starts_with(&folder))
    }
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) path: PathBuf,
    /// From 1; 0 where it concerns the whole file.
    pub(super) line: usize,
    pub(super) rule: &'static str,
    pub(super) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{}]", self.message, self.rule)
    }
}

/// Checks the tree and adds findings.
pub(crate) type Rule = fn(&Tree, &mut Findings) -> Result<(), Error>;

/// Collects findings under the name of the rule being checked.
pub(crate) struct Findings {
    pub(super) rule: &'static str,
    pub(super) all: Vec<Finding>,
}

impl Findings {
    pub(crate) fn add(
        &mut self,
        path: impl Into<PathBuf>,
        line: usize,
        message: impl Into<String>,
    ) {
        self.all.push(Finding {
            path: path.into(),
            line,
            rule: self.rule,
            message: message.into(),
        });
    }
}

/// The folder of the kernels.
pub(crate) const KERNELS: &str = "gpu-kernels/src";

pub(super) fn is_rust(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "rs")
}
