//! Puts the compiler, LLVM and the commit into the benchmark, so that its records name them also on
//! machines that have neither compiler nor repository.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = output(Command::new(rustc).arg("-vV")).unwrap_or_default();
    let field = |name: &str| {
        version
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map_or("unknown", str::trim)
    };
    println!("cargo::rustc-env=HALO_BENCH_RUSTC={}", field("release:"));
    println!(
        "cargo::rustc-env=HALO_BENCH_LLVM={}",
        field("LLVM version:")
    );
    // Empty outside a repository.
    println!(
        "cargo::rustc-env=HALO_BENCH_COMMIT={}",
        commit().unwrap_or_default()
    );
}

/// The commit, and whether the sources differ from it.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| output(Command::new("git").args(arguments));
    let head = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no", ":/"])?;
    // A new commit changes these; so does a change of any source of the benchmark.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for part in [
        "baselines",
        "bench",
        "distributed",
        "gpu-kernels",
        "host",
        "rust-cuda",
        "stencil",
    ] {
        let path = format!("../{part}");
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    Some(if changes.is_empty() {
        head
    } else {
        format!("{head}, with changes that are not committed")
    })
}

/// The output of a command without its line end; `None` where the command fails.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|out| out.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
