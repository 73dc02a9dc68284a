//! Stores which mutations each test executes, in a file under the target folder. Finding that out
//! takes about as long as all tests of a family; a continued run reads it here.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::journal::{self, Journal};
use crate::error::Error;

/// The measurements of a trial without an active mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// Its processor time.
    pub(crate) work: Duration,
    /// Its elapsed time.
    pub(crate) time: Duration,
    /// The mutations that it executes.
    pub(crate) reached: HashSet<u32>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Reached {
    /// A hash of the workspace and of the compiled mutations.
    tree: String,
    trial: String,
    known: Known,
}

/// The file; new measurements are appended.
pub(crate) struct Reach {
    journal: Journal,
    tree: String,
    earlier: HashMap<String, Reached>,
}

impl Reach {
    /// Reads the file at `path`; measurements of another workspace or of other mutations are
    /// dropped.
    pub(crate) fn open(path: &Path, tree: String) -> Result<Self, Error> {
        let lines = journal::lines::<Reached>(path).into_iter();
        let lines = lines.filter(|line| line.tree == tree);
        let earlier: HashMap<String, Reached> =
            lines.map(|line| (line.trial.clone(), line)).collect();
        Ok(Self {
            journal: Journal::with(path, earlier.values())?,
            tree,
            earlier,
        })
    }

    /// The measurements of this trial by an earlier run.
    pub(crate) fn known(&self, trial: &str) -> Option<Known> {
        self.earlier.get(trial).map(|line| line.known.clone())
    }

    pub(crate) fn add(&self, trial: &str, known: &Known) -> Result<(), Error> {
        self.journal.add(&Reached {
            tree: self.tree.clone(),
            trial: trial.to_owned(),
            known: known.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_one_tree_is_known_again_and_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reach");
        let known = Known {
            work: Duration::from_millis(20),
            time: Duration::from_millis(30),
            reached: HashSet::from([3, 7]),
        };
        let open = |tree: &str| Reach::open(&path, tree.to_owned()).unwrap();
        let first = open("a");
        assert_eq!(first.known("t"), None);
        first.add("t", &known).unwrap();
        drop(first);
        assert_eq!(open("a").known("t"), Some(known));
        assert_eq!(open("b").known("t"), None);
        assert_eq!(
            open("a").known("t"),
            None,
            "another tree has taken its place"
        );
    }
}
