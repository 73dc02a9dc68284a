//! Keeps the outcome of each mutation in a file under the target folder, so that `--resume` can
//! continue a run that was stopped.
//!
//! A caught mutation stays caught while the code of its file is the same, comments aside, on the
//! assumption that no test is removed. A surviving one is tried again after any change of the
//! workspace.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::journal::{self, Journal};
use super::mutation::Mutation;
use super::trial::Fate;
use crate::error::Error;

/// A line of the file. A later line about the same mutation replaces an earlier one.
#[derive(Clone, Serialize, Deserialize)]
struct Outcome {
    /// The mutation's rank, a hash of its effect and its function.
    mutation: String,
    /// A hash of its file's code.
    code: String,
    /// A hash of the workspace.
    tree: String,
    fate: Fate,
}

/// The file; new outcomes are appended.
pub(crate) struct Record {
    journal: Journal,
    earlier: HashMap<String, Outcome>,
    codes: BTreeMap<PathBuf, String>,
    tree: String,
}

impl Record {
    /// Opens the file at `path`. `tree` is a hash of the workspace, and `codes` has a hash of each
    /// file's code.
    pub(crate) fn open(
        path: &Path,
        codes: BTreeMap<PathBuf, String>,
        tree: String,
    ) -> Result<Self, Error> {
        let lines = journal::lines::<Outcome>(path).into_iter();
        let earlier: HashMap<String, Outcome> =
            lines.map(|line| (line.mutation.clone(), line)).collect();
        let mut kept: Vec<&Outcome> = earlier.values().collect();
        kept.sort_by_key(|line| &line.mutation);
        Ok(Self {
            journal: Journal::with(path, kept)?,
            earlier,
            codes,
            tree,
        })
    }

    /// The stored outcome of this mutation, if it is still valid.
    pub(crate) fn fate(&self, mutation: &Mutation) -> Option<Fate> {
        let line = self.earlier.get(&name(mutation))?;
        let same = line.code == self.codes[&mutation.path]
            && (line.fate.caught() || line.tree == self.tree);
        same.then(|| line.fate.clone())
    }

    /// Whether an earlier run, of whatever workspace, saw it survive.
    pub(crate) fn survived(&self, mutation: &Mutation) -> bool {
        let line = self.earlier.get(&name(mutation));
        line.is_some_and(|line| !line.fate.caught())
    }

    pub(crate) fn add(&self, mutation: &Mutation, fate: &Fate) -> Result<(), Error> {
        self.journal.add(&Outcome {
            mutation: name(mutation),
            code: self.codes[&mutation.path].clone(),
            tree: self.tree.clone(),
            fate: fate.clone(),
        })
    }
}

fn name(mutation: &Mutation) -> String {
    format!("{:016x}", mutation.rank)
}

#[cfg(test)]
mod tests {
    use super::super::operators::sites;
    use super::super::suite::Verdict;
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write as _;

    #[test]
    fn what_was_caught_stays_so_and_survivors_until_something_changes() {
        let path = Path::new("a.rs");
        let mutations: Vec<Mutation> = sites(path, "fn f() { a < b; a + c }")
            .unwrap()
            .into_iter()
            .zip(0..)
            .map(|(site, number)| Mutation {
                number,
                path: path.to_owned(),
                family: None,
                site,
                waived: None,
                rank: number.into(),
            })
            .collect();
        let [one, two] = &mutations[..] else {
            panic!("{}", mutations.len());
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record");
        let open = |code: &str, tree: &str| {
            let codes = BTreeMap::from([(path.to_owned(), code.to_owned())]);
            Record::open(&file, codes, tree.to_owned()).unwrap()
        };
        let fate = |verdict| Fate {
            verdict,
            by: None,
            tried: 2,
        };
        let (caught, survived) = (
            fate(Verdict::Failed("t".to_owned())),
            fate(Verdict::Passed(2)),
        );
        let record = open("c", "t");
        assert_eq!(record.fate(one), None);
        record.add(one, &survived).unwrap();
        record.add(one, &caught).unwrap();
        record.add(two, &survived).unwrap();
        drop(record);
        // As a run leaves it that is stopped while it writes.
        let mut stopped = OpenOptions::new().append(true).open(&file).unwrap();
        stopped.write_all(b"{\"mutation\":\"00").unwrap();
        let fates = |code, tree| {
            let record = open(code, tree);
            (record.fate(one), record.fate(two))
        };
        assert_eq!(
            fates("c", "t"),
            (Some(caught.clone()), Some(survived.clone()))
        );
        assert_eq!(fates("c", "other"), (Some(caught), None));
        let record = open("c", "other");
        assert_eq!([record.survived(one), record.survived(two)], [false, true]);
        assert_eq!(fates("other", "t"), (None, None));
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    }
}
