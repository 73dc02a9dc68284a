//! A folder in which some files have another text. All other files and folders are links to the
//! originals, so that relative paths in sources still lead to them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CudaBuilderError;

/// A folder and its mirror.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) original: PathBuf,
    pub(crate) folder: PathBuf,
}

impl Mirror {
    /// Mirrors `original` in `folder`, where the files in `changed`, named by their paths from
    /// `original`, have these texts.
    ///
    /// # Errors
    ///
    /// When a folder cannot be read or a file or link cannot be made.
    pub(crate) fn create(
        original: &Path,
        folder: &Path,
        changed: &[(PathBuf, String)],
    ) -> Result<Self, CudaBuilderError> {
        let changed: Vec<(&Path, &str)> = changed
            .iter()
            .map(|(path, text)| (path.as_path(), text.as_str()))
            .collect();
        fill(original, folder, &changed)?;
        Ok(Self {
            original: original.to_owned(),
            folder: folder.to_owned(),
        })
    }
}

fn fill(original: &Path, folder: &Path, changed: &[(&Path, &str)]) -> Result<(), CudaBuilderError> {
    fs::create_dir_all(folder).map_err(CudaBuilderError::io("create", folder))?;
    let entries = fs::read_dir(original).map_err(CudaBuilderError::io("read", original))?;
    for entry in entries {
        let entry = entry.map_err(CudaBuilderError::io("read", original))?;
        let (from, to) = (entry.path(), folder.join(entry.file_name()));
        let below: Vec<(&Path, &str)> = changed
            .iter()
            .filter_map(|&(path, text)| Some((path.strip_prefix(entry.file_name()).ok()?, text)))
            .collect();
        match below.as_slice() {
            [] => link(&from, &to).map_err(CudaBuilderError::io("make the link", &to))?,
            [(path, text)] if path.as_os_str().is_empty() => {
                fs::write(&to, text).map_err(CudaBuilderError::io("write", &to))?;
            }
            _ => fill(&from, &to, &below)?,
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(windows)]
fn link(from: &Path, to: &Path) -> std::io::Result<()> {
    use std::os::windows::fs::{symlink_dir, symlink_file};
    if from.is_dir() {
        symlink_dir(from, to)
    } else {
        symlink_file(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_changed_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (original, mirror) = (folder.path().join("a"), folder.path().join("b"));
        for path in ["a.rs", "in/b.rs", "in/c.rs", "in/deep/d.rs", "other/e.rs"] {
            let path = original.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "old").unwrap();
        }
        let changed = ["in/b.rs", "in/deep/d.rs"].map(|path| (path.into(), "new".to_owned()));
        Mirror::create(&original, &mirror, &changed).unwrap();
        for (path, text) in [
            ("a.rs", "old"),
            ("in/b.rs", "new"),
            ("in/c.rs", "old"),
            ("in/deep/d.rs", "new"),
            ("other/e.rs", "old"),
        ] {
            assert_eq!(
                fs::read_to_string(mirror.join(path)).unwrap(),
                text,
                "{path}"
            );
        }
        assert!(mirror.join("other").is_symlink());
        fs::remove_dir_all(&mirror).unwrap();
        assert!(original.join("other/e.rs").exists());
    }
}
