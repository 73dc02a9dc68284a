//! Puts a program of this crate in front of rustc, for what cargo has no options for.
//!
//! **Flags for single crates.** A dependency that does not say `no_std` is given it, one that may
//! define kernels gets the features for that, and each has its own paths remapped. Cargo has flags
//! per package only in profiles, where they clash with what the user's manifest says about the same
//! package.
//!
//! **Crates written for rust-cuda 0.2.** They mention `register_attr`, which rustc has
//! removed; see [`crate::header`]. The compiler reads a [`Mirror`] of the crate without
//! those mentions. Paths are remapped, so that messages name the original files.
//!
//! **Dependencies that are also a `cdylib`**, as kernel crates for rust-cuda 0.2 are. Cargo builds
//! a dependency in all its forms, and linking a `cdylib` needs a linker that rustup does not ship.
//! The `cdylib` is not used, so the same program is given as the linker and writes an empty file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::CudaBuilderError;
use crate::hash::fnv1a;
use crate::mirror::Mirror;
use crate::tools::{Toolchain, describe};

const SOURCE: &str = include_str!("rustc_wrapper.rs");

/// What one crate needs.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The crate's root file.
    pub(crate) root: PathBuf,
    pub(crate) flags: Vec<OsString>,
    /// Where to compile it instead.
    pub(crate) mirror: Option<Mirror>,
}

/// Writes the list for `CUDA_BUILDER_CRATES` and gives its path.
///
/// # Errors
///
/// When a file cannot be written.
pub(crate) fn write_list(work: &Path, entries: &[Entry]) -> Result<PathBuf, CudaBuilderError> {
    let mut list = String::new();
    let absolute = |path: &Path| fs::canonicalize(path).map_err(CudaBuilderError::io("find", path));
    for entry in entries {
        list.push_str(&format!("root {}\n", absolute(&entry.root)?.display()));
        for flag in &entry.flags {
            list.push_str(&format!("flag {}\n", flag.to_string_lossy()));
        }
        if let Some(mirror) = &entry.mirror {
            list.push_str(&format!(
                "original {}\n",
                absolute(&mirror.original)?.display()
            ));
            list.push_str(&format!("mirror {}\n", mirror.folder.display()));
        }
    }
    let path = work.join("crates");
    fs::write(&path, list).map_err(CudaBuilderError::io("write", &path))?;
    Ok(path)
}

/// Compiles the program, once for each version of its source and of rustc.
///
/// # Errors
///
/// When it does not compile or a file cannot be written.
pub(crate) fn compile(
    toolchain: &Toolchain,
    target_dir: &Path,
    work: &Path,
) -> Result<PathBuf, CudaBuilderError> {
    let program = target_dir.join(format!(
        "rustc-wrapper-{:016x}-{}{}",
        fnv1a(SOURCE.as_bytes()),
        toolchain.rustc.release,
        std::env::consts::EXE_SUFFIX
    ));
    if program.is_file() {
        return Ok(program);
    }
    let source = work.join("rustc_wrapper.rs");
    fs::write(&source, SOURCE).map_err(CudaBuilderError::io("write", &source))?;
    let fresh = work.join("rustc_wrapper.exe");
    let mut command = Command::new(&toolchain.rustc.path);
    command
        .args([
            "--edition=2024",
            "--crate-type=bin",
            "-Copt-level=1",
            "--cap-lints=allow",
        ])
        .arg("-o")
        .arg(&fresh)
        .arg(&source);
    let output = command
        .output()
        .map_err(CudaBuilderError::io("run", &toolchain.rustc.path))?;
    if !output.status.success() {
        return Err(CudaBuilderError::StepFailed {
            step: "compiling the rustc wrapper",
            function: None,
            file: source,
            status: output.status.to_string(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            command: describe(&command),
        });
    }
    // Renamed into place: another build may be doing the same right now.
    fs::rename(&fresh, &program).map_err(CudaBuilderError::io("write", &program))?;
    Ok(program)
}
