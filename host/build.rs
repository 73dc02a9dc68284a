//! Says whether this build has CUDA devices and which vectors its CPU ports have, and stops
//! it when the PTX it would embed was not built from the kernel sources beside it.

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

    println!("cargo::rustc-check-cfg=cfg(halo_vectors, values(\"v3\", \"v4\"))");
    println!("cargo::rustc-check-cfg=cfg(halo_here_only)");
    println!("cargo::rerun-if-env-changed={VECTORS}");
    let is_here_only = env::var(VECTORS).is_ok_and(|vectors| vectors == "here");
    let is_unoptimised = env::var("OPT_LEVEL").is_ok_and(|level| level == "0");
    if (is_here_only || is_unoptimised)
        && target("ARCH") == env::consts::ARCH
        && let Some(vectors) = vectors_here()
    {
        println!("cargo::rustc-cfg=halo_vectors={vectors:?}");
        if is_here_only {
            println!("cargo::rustc-cfg=halo_here_only");
        }
    }

    #[cfg(feature = "gpu")]
    if let Err(message) = check_ptx() {
        // One `cargo::error` is one line; the build stops with all of them.
        for line in message.lines() {
            println!("cargo::error={line}");
        }
    }
}

/// The environment variable that selects the vectors of the CPU ports. With `here` they are
/// compiled only for the vectors of the building processor, and panic on a processor that lacks
/// them. Otherwise an optimised build supports all kinds of vectors; an unoptimised one supports
/// those of the building processor, and runs slow scalar code on processors that lack them. The
/// results always have the same bits.
const VECTORS: &str = "HALO_VECTORS";

/// The best vectors that this processor has, if any.
fn vectors_here() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        if std::is_x86_feature_detected!("avx512f") {
            return Some("v4");
        }
        if std::is_x86_feature_detected!("avx2") {
            return Some("v3");
        }
    }
    None
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
                    format!(
                        "host/{name} is damaged: its text does not have the hash in its third line"
                    )
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
