//! Keeps what tests come to, in a file under the target folder: to find out takes about as
//! long as all tests of a family, and a run that is taken up again need not.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lock;
use crate::error::Error;
use crate::workspace;

/// What is known of a trial from a run with no mutation on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    /// What it took, by the processors.
    pub(crate) work: Duration,
    /// The same by the clock.
    pub(crate) time: Duration,
    /// The mutations that it comes to.
    pub(crate) reached: HashSet<u32>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    /// A hash of the workspace, and of which mutations are built in.
    tree: String,
    trial: String,
    known: Known,
}

/// The file, to which what is found out is added.
pub(crate) struct Reach {
    path: PathBuf,
    file: Mutex<File>,
    tree: String,
    earlier: HashMap<String, Known>,
}

impl Reach {
    /// What the one at `path` has of a workspace and mutations with this hash; the rest goes.
    pub(crate) fn open(path: &Path, tree: String) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // The line at which a run was stopped may be half of one.
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Line>(line).ok())
            .filter(|line| line.tree == tree);
        let earlier: HashMap<String, Known> = lines.map(|line| (line.trial, line.known)).collect();
        let kept: String = earlier
            .iter()
            .map(|(trial, known)| text_of(&tree, trial, known))
            .collect();
        workspace::write_if_changed(path, &kept)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(Error::file("open", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            tree,
            earlier,
        })
    }

    /// What an earlier run has found out of this trial.
    pub(crate) fn known(&self, trial: &str) -> Option<Known> {
        self.earlier.get(trial).cloned()
    }

    pub(crate) fn add(&self, trial: &str, known: &Known) -> Result<(), Error> {
        lock(&self.file)
            .write_all(text_of(&self.tree, trial, known).as_bytes())
            .map_err(Error::file("write", &self.path))
    }
}

fn text_of(tree: &str, trial: &str, known: &Known) -> String {
    let line = Line {
        tree: tree.to_owned(),
        trial: trial.to_owned(),
        known: known.clone(),
    };
    let text = serde_json::to_string(&line).expect("strings and numbers make JSON");
    text + "\n"
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
