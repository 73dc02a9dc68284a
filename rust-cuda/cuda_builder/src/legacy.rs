//! Builds crates as they are that rustc alone would refuse.
//!
//! **Crates written for rust-cuda 0.2.** Their roots mention `register_attr`, which rustc has removed; see
//! [`crate::header`]. The compiler is given the root without that mention,
//! through a small program that takes rustc's place ([`crate::rustc_wrapper`]),
//! so that neither the user's sources nor any file of the crate is copied, and
//! messages still point into the real file. Other crates are built without it.
//!
//! **Dependencies that are a `cdylib` as well**, as kernel crates used to be.
//! Cargo builds a dependency in all its forms, and linking the dynamic one needs
//! a linker that rustup does not ship. Nobody wants the result, so the same
//! program, given as the linker, writes an empty file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::CudaBuilderError;
use crate::tools::{Toolchain, describe};

const SOURCE: &str = include_str!("rustc_wrapper.rs");

/// Writes the list for `CUDA_BUILDER_ROOTS`, of each crate root and its patched
/// text, and gives the list's path.
///
/// # Errors
///
/// When a file cannot be written.
pub(crate) fn list_roots(
    work: &Path,
    roots: &[(PathBuf, String)],
) -> Result<PathBuf, CudaBuilderError> {
    let mut list = String::new();
    for (index, (root, patched)) in roots.iter().enumerate() {
        let root = fs::canonicalize(root).map_err(CudaBuilderError::io("find", root))?;
        let substitute = work.join(format!("root-{index}.rs"));
        fs::write(&substitute, patched).map_err(CudaBuilderError::io("write", &substitute))?;
        list.push_str(&format!("{}\n{}\n", root.display(), substitute.display()));
    }
    let list_path = work.join("roots");
    fs::write(&list_path, list).map_err(CudaBuilderError::io("write", &list_path))?;
    Ok(list_path)
}

/// Compiles the program once per release of this crate and of rustc.
///
/// # Errors
///
/// When it does not compile or a file cannot be written.
pub(crate) fn wrapper(
    toolchain: &Toolchain,
    target_dir: &Path,
    work: &Path,
) -> Result<PathBuf, CudaBuilderError> {
    let program = target_dir.join(format!(
        "rustc-wrapper-{}-{}{}",
        env!("CARGO_PKG_VERSION"),
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
