//! A file with one JSON value per line. A run appends to it, and a later run continues from it.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::workspace;

/// The file, open for adding lines.
pub(super) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

/// The lines of the file at `path`, none if there is no such file.
pub(super) fn lines<L: DeserializeOwned>(path: &Path) -> Vec<L> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // A run that was stopped may leave an incomplete last line.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

impl Journal {
    /// Replaces the file at `path` by one with these lines.
    pub(super) fn with<L: Serialize>(
        path: &Path,
        lines: impl IntoIterator<Item = L>,
    ) -> Result<Self, Error> {
        let kept: String = lines.into_iter().map(|line| text_of(&line)).collect();
        workspace::write_if_changed(path, &kept)?;
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(Error::file("open", path))?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
        })
    }

    pub(super) fn add(&self, line: &impl Serialize) -> Result<(), Error> {
        lock(&self.file)
            .write_all(text_of(line).as_bytes())
            .map_err(Error::file("write", &self.path))
    }
}

fn text_of(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line).expect("strings and numbers make JSON");
    text + "\n"
}

/// Ignores poisoning: the thread that panicked has reported it.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
