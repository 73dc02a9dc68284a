//! Says whether this build has CUDA devices, and stops it when the PTX it would
//! embed was not built from the kernel sources beside it.

#[cfg(feature = "gpu")]
#[path = "ptx_hash.rs"]
mod ptx_hash;

use std::env;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(halo_cuda)");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=ptx_hash.rs");

    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let supported =
        target("OS") == "linux" && matches!(target("ARCH").as_str(), "x86_64" | "aarch64");
    if cfg!(feature = "gpu") && supported {
        println!("cargo::rustc-cfg=halo_cuda");
    }

    #[cfg(feature = "gpu")]
    if let Err(message) = check_ptx() {
        // One `cargo::error` is one line; the build stops with all of them.
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// Compares the hashes that each PTX file records with its text and with the sources.
///
/// Outside the repository (a published package) there are no sources to compare
/// with, only files to be there and whole.
#[cfg(feature = "gpu")]
fn check_ptx() -> Result<(), String> {
    use std::fs;
    use std::path::Path;

    let package = env::var("CARGO_MANIFEST_DIR")
        .map_err(|_| "CARGO_MANIFEST_DIR is not set; is cargo running this?".to_owned())?;
    let package = Path::new(&package);
    let root = package.join("..");
    let sources_hash = if root.join("gpu-kernels").is_dir() {
        for source in ptx_hash::SOURCES {
            println!("cargo::rerun-if-changed=../{source}");
        }
        Some(
            ptx_hash::of_sources(&root)
                .map_err(|error| format!("cannot read the kernel sources: {error}"))?,
        )
    } else {
        None
    };

    let mut problems = String::new();
    for target in ptx_hash::TARGETS {
        let name = format!("ptx/{}", ptx_hash::file_name(target));
        println!("cargo::rerun-if-changed={name}");
        let problem = match fs::read_to_string(package.join(&name)) {
            Err(error) => format!("host/{name}: {error}"),
            Ok(ptx) => match (ptx_hash::recorded(&ptx), &sources_hash) {
                (None, _) => format!("host/{name} does not say which sources it was built from"),
                (Some(recorded), Some(hash)) if recorded != hash => {
                    format!("host/{name} was built from other kernel sources than these")
                }
                _ if !ptx_hash::is_whole(&ptx) => {
                    format!("host/{name} is damaged: its text is not what its third line says")
                }
                _ => continue,
            },
        };
        problems.push_str(&problem);
        problems.push('\n');
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{problems}run: {}", ptx_hash::REBUILD_COMMAND))
}
