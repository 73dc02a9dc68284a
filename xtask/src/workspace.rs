//! Finds the workspace and the files that belong to it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_halo::process;

use crate::error::Error;

/// The root of the workspace that contains the current folder.
pub(crate) fn root() -> Result<PathBuf, Error> {
    let metadata = cargo_metadata::MetadataCommand::new().no_deps().exec()?;
    Ok(metadata.workspace_root.into())
}

/// The names of the packages of the workspace in `folder`.
pub(crate) fn members(folder: &Path) -> Result<Vec<String>, Error> {
    let mut command = cargo_metadata::MetadataCommand::new();
    let metadata = command.current_dir(folder).no_deps().exec()?;
    let packages = metadata.workspace_packages().into_iter();
    Ok(packages.map(|package| package.name.to_string()).collect())
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

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::file("read", path))
}

/// Writes a text file as [`write`] does and makes its folder if necessary. A file that already has
/// this text is left alone, and keeps its modification time. Returns whether it wrote.
pub(crate) fn write_if_changed(path: &Path, text: &str) -> Result<bool, Error> {
    if fs::read_to_string(path).is_ok_and(|present| present == text) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    }
    write(path, text)?;
    Ok(true)
}

/// Writes a file whole or not at all: first beside the old one, which it then replaces. A full
/// disk, or the end of the process, leaves the old one.
///
/// A path that is not a file, such as `/dev/stdout`, is written directly.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), Error> {
    let beside = |path: &Path| -> io::Result<()> {
        let folder = path.parent().filter(|folder| *folder != Path::new(""));
        let mut builder = tempfile::Builder::new();
        // The mode of new files; the process's mask removes bits of it.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
        file.write_all(contents.as_ref())?;
        // Without this, a full disk might be noticed only later.
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    match fs::metadata(path) {
        Ok(present) if !present.is_file() => fs::write(path, &contents),
        // A symbolic link stays one.
        Ok(_) => fs::canonicalize(path).and_then(|path| beside(&path)),
        Err(_) => beside(path),
    }
    .map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_file_is_as_any_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/file");
        assert!(write_if_changed(&path, "one").unwrap());
        assert!(!write_if_changed(&path, "one").unwrap());
        assert!(write_if_changed(&path, "two").unwrap());
        assert_eq!(read(&path).unwrap(), "two");
        let plain = folder.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions(),
            fs::metadata(&plain).unwrap().permissions()
        );
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let error = write(&folder.path().join("none/file"), "").unwrap_err();
        assert!(error.to_string().contains("none/file"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert_eq!(read(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write(Path::new("/dev/null"), "lost").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        // Writes to it fail like those to a full disk.
        #[cfg(target_os = "linux")]
        write(Path::new("/dev/full"), "lost").unwrap_err();
    }

    /// A limit of 4 KiB on the size of files simulates a full disk: a write fails in the middle or,
    /// where the signal is not ignored, ends the process there.
    #[cfg(unix)]
    #[test]
    fn a_full_disk_leaves_the_old_file() {
        const FILE: &str = "XTASK_TEST_FULL_DISK";
        if let Some(file) = std::env::var_os(FILE) {
            let error = write_if_changed(Path::new(&file), &"new\n".repeat(4096)).unwrap_err();
            assert!(error.to_string().starts_with("cannot write"), "{error}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "old").unwrap();
        for (ignore, succeeds) in [("trap '' XFSZ;", true), ("", false)] {
            let script = format!("{ignore} ulimit -f 8 && exec \"$0\" \"$@\"");
            let name = "workspace::tests::a_full_disk_leaves_the_old_file";
            let child = Command::new("sh")
                .args(["-c", &script])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", name])
                .env(FILE, &file)
                .output()
                .unwrap();
            assert_eq!(child.status.success(), succeeds, "{child:?}");
            if succeeds {
                assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            }
            assert_eq!(read(&file).unwrap(), "old");
        }
    }
}
