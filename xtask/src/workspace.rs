//! Where the workspace is, and which files belong to it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;

/// The folder of the workspace's Cargo.toml: the current folder, or the nearest
/// one above it.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let start = std::env::current_dir().map_err(Error::file("read", "."))?;
    start
        .ancestors()
        .find(|folder| is_workspace(folder))
        .map(Path::to_path_buf)
        .ok_or(Error::NoWorkspace)
}

fn is_workspace(folder: &Path) -> bool {
    fs::read_to_string(folder.join("Cargo.toml"))
        .is_ok_and(|manifest| manifest.lines().any(|line| line.trim() == "[workspace]"))
}

/// The paths, relative to `root`, of all files that git tracks or would track.
///
/// A file that is still listed but was deleted from the folder is left out.
pub(crate) fn files(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let listing = process::output(Command::new("git").current_dir(root).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut files: Vec<PathBuf> = listing
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| root.join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}

/// The names of the families: the folders of `gpu-kernels/src`, sorted.
pub(crate) fn families(root: &Path) -> Result<Vec<String>, Error> {
    let folder = root.join("gpu-kernels/src");
    let mut families = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::file("read", &folder))? {
        let entry = entry.map_err(Error::file("read", &folder))?;
        if entry.path().is_dir() {
            families.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    families.sort();
    Ok(families)
}

/// Every file under `folder` whose name ends in `.rs`, sorted; none where the
/// folder does not exist.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&folder).map_err(Error::file("read", &folder))? {
            let path = entry.map_err(Error::file("read", &folder))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}

/// Writes a text file, making its folder where there is none, and leaving the
/// file alone (and so its modification time) where it already says just that.
/// Returns whether it wrote.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<bool, Error> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    }
    fs::write(path, text).map_err(Error::file("write", path))?;
    Ok(true)
}
