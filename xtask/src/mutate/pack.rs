//! A folder with built tests and the mutations in them, for a machine that has neither cargo
//! nor the sources: `cargo xtask mutate --pack FOLDER` here, `FOLDER/tasks mutate --packed
//! FOLDER` there.

use std::fs;
use std::path::Path;

use super::built::Built;
use crate::error::Error;
use crate::workspace;

/// What is built and which mutations are in it.
const LIST: &str = "built.json";

/// This program.
const TASKS: &str = "tasks";

/// Copies `built` into this folder, and this program beside it.
pub(super) fn write(folder: &Path, mut built: Built) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
    let copy = |from: &Path, name: &str| {
        let to = folder.join(name);
        fs::copy(from, &to).map_err(Error::file("write", &to))
    };
    for (name, suite) in &mut built.suites {
        copy(&suite.executable, name)?;
        suite.executable = name.into();
    }
    let this = std::env::current_exe().map_err(Error::file("find", TASKS))?;
    copy(&this, TASKS)?;
    let list = serde_json::to_string(&built).expect("strings and numbers make JSON");
    workspace::write(&folder.join(LIST), list)
}

/// What [`write`] has put into this folder, wherever it is now.
pub(super) fn read(folder: &Path) -> Result<Built, Error> {
    let folder = fs::canonicalize(folder).map_err(Error::file("find", folder))?;
    let list = folder.join(LIST);
    let mut built: Built = serde_json::from_str(&workspace::read(&list)?)
        .map_err(|error| Error::Mutation(format!("{}: {error}", list.display())))?;
    for suite in built.suites.values_mut() {
        suite.executable = folder.join(&suite.executable);
        suite.folder.clone_from(&folder);
    }
    Ok(built)
}
