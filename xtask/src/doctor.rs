//! `cargo xtask doctor`: what this machine has of what the tasks need, and the
//! command that brings what it lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::error::Error;
use crate::output;
use crate::process;
use crate::toolchain::{PTX_TOOLS_MEND, Toolchain};
use crate::workspace;

/// One thing that a task needs.
struct Need {
    what: String,
    /// Where it is or which it is; `None` where it is missing.
    found: Option<String>,
    /// What goes without it.
    used_for: &'static str,
    /// The command that brings it.
    mend: String,
    /// Whether `ptx` cannot do without it.
    required: bool,
}

/// Prints every need, found or missing. Comes to findings where device code
/// cannot be built; a missing GPU is none.
pub(crate) fn run() -> Result<Outcome, Error> {
    let root = workspace::root()?;
    let toolchain = Toolchain::of(&root)?;
    let needs = needs(&root, &toolchain);
    output::line(report(&needs).trim_end());
    let lacking = needs
        .iter()
        .any(|need| need.required && need.found.is_none());
    Ok(if lacking {
        Outcome::Findings
    } else {
        Outcome::Clean
    })
}

const DEVICE_BUILDS: &str = "cargo xtask ptx";
const PTX_CHECKS: &str = "cargo xtask inspect";

fn needs(root: &Path, toolchain: &Toolchain) -> Vec<Need> {
    let shown = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
    // What a rustup without a network cannot bring, this script can.
    let or_script = |component: &str| {
        let rustup = format!("rustup component add {component}");
        if Path::new("/etc/debian_version").exists() && root.join(".ci/device-toolchain").exists() {
            format!("{rustup}   (without a network for rustup: .ci/device-toolchain)")
        } else {
            rustup
        }
    };

    let mut needs = vec![Need {
        what: "rustc".to_owned(),
        found: pinned(root)
            .is_none_or(|version| toolchain.rustc.contains(&version))
            .then(|| toolchain.rustc.clone()),
        used_for: "everything",
        mend: "rustup toolchain install".to_owned(),
        required: true,
    }];
    needs.push(Need {
        what: "source of core (rust-src)".to_owned(),
        found: shown(toolchain.core_source()),
        used_for: DEVICE_BUILDS,
        mend: or_script("rust-src"),
        required: true,
    });
    for tool in ["llvm-link", "opt", "llc"] {
        needs.push(Need {
            what: format!("{tool} of LLVM {}", toolchain.llvm_major),
            found: shown(toolchain.find_llvm(tool)),
            used_for: DEVICE_BUILDS,
            mend: or_script("llvm-tools"),
            required: true,
        });
    }
    for tool in ["ptxas", "nvdisasm"] {
        needs.push(Need {
            what: tool.to_owned(),
            found: shown(toolchain.find(&[tool])),
            used_for: PTX_CHECKS,
            mend: PTX_TOOLS_MEND.to_owned(),
            required: false,
        });
    }
    needs.push(Need {
        what: "nvcc (CUDA toolkit)".to_owned(),
        found: shown(toolchain.find(&["nvcc"])),
        used_for: "the CUDA C++ baselines",
        mend: "install the CUDA toolkit from NVIDIA or your distribution".to_owned(),
        required: false,
    });
    needs.push(Need {
        what: "CUDA driver (libcuda)".to_owned(),
        found: driver_library(),
        used_for: "running on a GPU",
        mend: "install NVIDIA's driver from your distribution".to_owned(),
        required: false,
    });
    needs.push(Need {
        what: "GPU".to_owned(),
        found: gpus(),
        used_for: "running on a GPU; without one, the emulator and the CPU are used",
        mend: "a machine with an NVIDIA GPU of compute capability 7.5 or later".to_owned(),
        required: false,
    });
    needs
}

/// The release that rust-toolchain.toml asks for.
fn pinned(root: &Path) -> Option<String> {
    let text = workspace::read(&root.join("rust-toolchain.toml")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("channel"))?;
    Some(
        line.trim_start_matches([' ', '='])
            .trim_matches('"')
            .to_owned(),
    )
}

/// Where the driver's library is, by the dynamic linker's own list.
fn driver_library() -> Option<String> {
    ["ldconfig", "/sbin/ldconfig"].iter().find_map(|ldconfig| {
        let listing = process::output(Command::new(ldconfig).arg("-p")).ok()?;
        listing
            .lines()
            .filter(|line| line.trim_start().starts_with("libcuda.so.1 "))
            .find_map(|line| line.split_once("=> ").map(|(_, path)| path.to_owned()))
    })
}

/// Names and driver of the GPUs, by the tool that comes with the driver.
fn gpus() -> Option<String> {
    let listing = process::output(
        Command::new("nvidia-smi")
            .args(["--query-gpu=name,driver_version", "--format=csv,noheader"]),
    )
    .ok()?;
    let gpus: Vec<&str> = listing
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    (!gpus.is_empty()).then(|| gpus.join("; "))
}

fn report(needs: &[Need]) -> String {
    let width = needs.iter().map(|need| need.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for need in needs {
        let line = match &need.found {
            Some(found) => format!("ok       {:width$}  {found}\n", need.what),
            None => format!(
                "missing  {:width$}  for: {}\n         {:width$}  get it: {}\n",
                need.what, need.used_for, "", need.mend
            ),
        };
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_its_command() {
        let need = |found: Option<&str>| Need {
            what: "opt".to_owned(),
            found: found.map(str::to_owned),
            used_for: "building",
            mend: "rustup component add llvm-tools".to_owned(),
            required: true,
        };
        assert_eq!(report(&[need(Some("bin/opt"))]), "ok       opt  bin/opt\n");
        let missing = report(&[need(None)]);
        assert!(
            missing.starts_with("missing  opt  for: building\n"),
            "{missing}"
        );
        assert!(
            missing.contains("get it: rustup component add llvm-tools\n"),
            "{missing}"
        );
    }

    #[test]
    fn the_pinned_release_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pinned(folder.path()), None);
        std::fs::write(
            folder.path().join("rust-toolchain.toml"),
            "[toolchain]\nchannel = \"1.95.0\"\nprofile = \"minimal\"\n",
        )
        .unwrap();
        assert_eq!(pinned(folder.path()).as_deref(), Some("1.95.0"));
    }
}
