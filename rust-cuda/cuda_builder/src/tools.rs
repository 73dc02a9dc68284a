//! Finds the compiler and the LLVM tools that read its output.
//!
//! LLVM's formats change from one release to the next, so every tool must come
//! from the release that rustc itself is built with (`rustc -vV` says which).
//! Each is looked for in this order, and the first that fits is taken, unless
//! [`CudaBuilder::llvm_tools`](crate::CudaBuilder::llvm_tools) names a folder:
//!
//! 1. the file that `CUDA_BUILDER_LLVM_LINK`, `CUDA_BUILDER_OPT` or
//!    `CUDA_BUILDER_LLC` names;
//! 2. the folder that `CUDA_BUILDER_LLVM_BIN` names;
//! 3. rustc's sysroot, where rustup's component `llvm-tools` goes;
//! 4. `PATH`, under the versioned name (`opt-22`), as Debian's packages have it;
//! 5. `/usr/lib/llvm-22/bin`, for the same packages;
//! 6. `PATH`, under the plain name, when `--version` says the right release.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{CudaBuilderError, MissingTool};

/// The environment variables that decide which tools are used, for
/// `cargo:rerun-if-env-changed`.
pub(crate) const VARIABLES: [&str; 5] = [
    LLVM_BIN,
    "CUDA_BUILDER_LLVM_LINK",
    "CUDA_BUILDER_OPT",
    "CUDA_BUILDER_LLC",
    RUSTC,
];

const LLVM_BIN: &str = "CUDA_BUILDER_LLVM_BIN";
const RUSTC: &str = "CUDA_BUILDER_RUSTC";

/// The compiler, cargo and LLVM's tools.
#[derive(Debug, Clone)]
pub(crate) struct Toolchain {
    pub(crate) cargo: PathBuf,
    pub(crate) rustc: Rustc,
    pub(crate) llvm_link: PathBuf,
    pub(crate) opt: PathBuf,
    pub(crate) llc: PathBuf,
    /// The full release of the tools: `22.1.8`.
    pub(crate) llvm_version: String,
}

/// What is known of the compiler.
#[derive(Debug, Clone)]
pub(crate) struct Rustc {
    pub(crate) path: PathBuf,
    /// `1.95.0`.
    pub(crate) release: String,
    /// `x86_64-unknown-linux-gnu`.
    pub(crate) host: String,
    pub(crate) llvm_major: u32,
    pub(crate) sysroot: PathBuf,
}

impl Rustc {
    /// The folder of the standard library's source.
    pub(crate) fn library_source(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust/library")
    }

    fn require_library_source(&self) -> Result<(), CudaBuilderError> {
        let core = self.library_source().join("core/src/lib.rs");
        if core.is_file() {
            Ok(())
        } else {
            Err(CudaBuilderError::MissingRustSrc { looked_for: core })
        }
    }

    /// Asks the compiler at `path`, run in `directory` so that a
    /// rust-toolchain.toml there is heeded.
    fn query(path: PathBuf, directory: &Path) -> Result<Self, CudaBuilderError> {
        let verbose = capture(Command::new(&path).arg("-vV").current_dir(directory))?;
        let field = |name: &str| {
            verbose
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.trim().to_owned())
                .ok_or_else(|| CudaBuilderError::UnexpectedOutput {
                    command: format!("{} -vV", path.display()),
                    problem: format!("there is no line `{name}` in\n{verbose}"),
                })
        };
        let llvm = field("LLVM version:")?;
        let sysroot = capture(
            Command::new(&path)
                .args(["--print", "sysroot"])
                .current_dir(directory),
        )?;
        Ok(Self {
            release: field("release:")?,
            host: field("host:")?,
            llvm_major: major(&llvm).ok_or_else(|| CudaBuilderError::UnexpectedOutput {
                command: format!("{} -vV", path.display()),
                problem: format!("`{llvm}` is no LLVM version"),
            })?,
            sysroot: PathBuf::from(sysroot.trim()),
            path,
        })
    }
}

impl Toolchain {
    /// Finds everything, for a kernel crate in `directory`; LLVM's tools only in
    /// `llvm_tools`, when that is given.
    ///
    /// # Errors
    ///
    /// [`CudaBuilderError::MissingTool`] and
    /// [`CudaBuilderError::MissingRustSrc`], each with the command that
    /// installs what is missing.
    pub(crate) fn find(
        directory: &Path,
        llvm_tools: Option<&Path>,
    ) -> Result<Self, CudaBuilderError> {
        let cargo = env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        let rustc = Rustc::query(rustc_path(&cargo), directory)?;
        rustc.require_library_source()?;
        let mut places = Places::from_environment(&rustc);
        if let Some(folder) = llvm_tools {
            places.files.clear();
            places.llvm_bin = Some(folder.to_owned());
        }
        let (llvm_link, _) = places.find("llvm-link", "CUDA_BUILDER_LLVM_LINK", &rustc)?;
        let (opt, _) = places.find("opt", "CUDA_BUILDER_OPT", &rustc)?;
        let (llc, llvm_version) = places.find("llc", "CUDA_BUILDER_LLC", &rustc)?;
        Ok(Self {
            cargo,
            rustc,
            llvm_link,
            opt,
            llc,
            llvm_version,
        })
    }

    /// The targets that `llc` can write PTX for, as `sm_75`.
    pub(crate) fn targets(&self) -> Result<Vec<String>, CudaBuilderError> {
        let mut command = Command::new(&self.llc);
        command
            .args(["-march=nvptx64", "-mcpu=help"])
            .stdin(std::process::Stdio::null());
        // llc prints the list to standard error and then compiles its empty input; whether that
        // succeeds says nothing.
        let output = command
            .output()
            .map_err(CudaBuilderError::io("run", &self.llc))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        let mut targets: Vec<_> = text
            .lines()
            .filter_map(|line| line.trim().split_once(" - "))
            .map(|(name, _)| name.trim().to_owned())
            .filter(|name| name.starts_with("sm_"))
            .collect();
        targets.sort_by_key(|name| (name.len(), name.clone()));
        targets.dedup();
        if targets.is_empty() {
            return Err(CudaBuilderError::UnexpectedOutput {
                command: format!("{} -march=nvptx64 -mcpu=help", self.llc.display()),
                problem: "it names no NVPTX target; was this LLVM built without NVPTX?".to_owned(),
            });
        }
        Ok(targets)
    }
}

/// The compiler that belongs to `cargo`. The variable `RUSTC` does not do: under `cargo clippy` and
/// the like it names another program.
fn rustc_path(cargo: &Path) -> PathBuf {
    if let Some(path) = env::var_os(RUSTC) {
        return path.into();
    }
    let beside = cargo.with_file_name(format!("rustc{}", env::consts::EXE_SUFFIX));
    if beside.is_absolute() && beside.is_file() {
        return beside;
    }
    env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from)
}

/// Where tools are looked for; taken from the environment once, so that tests
/// need not change it.
#[derive(Debug, Clone, Default)]
struct Places {
    /// `CUDA_BUILDER_OPT` and so on, by name.
    files: Vec<(&'static str, PathBuf)>,
    llvm_bin: Option<PathBuf>,
    sysroot_bin: PathBuf,
    path: Vec<PathBuf>,
    /// The root of `/usr/lib/llvm-22`.
    usr_lib: PathBuf,
}

impl Places {
    fn from_environment(rustc: &Rustc) -> Self {
        Self {
            files: VARIABLES
                .into_iter()
                .filter(|&name| name != LLVM_BIN && name != RUSTC)
                .filter_map(|name| Some((name, PathBuf::from(env::var_os(name)?))))
                .collect(),
            llvm_bin: env::var_os(LLVM_BIN).map(PathBuf::from),
            sysroot_bin: rustc
                .sysroot
                .join("lib/rustlib")
                .join(&rustc.host)
                .join("bin"),
            path: env::var_os("PATH")
                .map(|path| env::split_paths(&path).collect())
                .unwrap_or_default(),
            usr_lib: PathBuf::from("/usr/lib"),
        }
    }

    /// The tool's path and full version.
    fn find(
        &self,
        tool: &'static str,
        variable: &'static str,
        rustc: &Rustc,
    ) -> Result<(PathBuf, String), MissingTool> {
        let wanted = rustc.llvm_major;
        let plain = format!("{tool}{}", env::consts::EXE_SUFFIX);
        let versioned = format!("{tool}-{wanted}{}", env::consts::EXE_SUFFIX);
        let mut looked_at = Vec::new();
        let mut fits = |path: &Path| -> Option<(PathBuf, String)> {
            match version(path) {
                Ok(found) if major(&found) == Some(wanted) => Some((path.to_owned(), found)),
                Ok(found) => {
                    looked_at.push(format!("{}: is of LLVM {found}", path.display()));
                    None
                }
                Err(problem) => {
                    looked_at.push(format!("{}: {problem}", path.display()));
                    None
                }
            }
        };
        // What the user named is not silently replaced by something else.
        let named = self.files.iter().find(|(name, _)| *name == variable);
        if let Some((_, path)) = named {
            if let Some(found) = fits(path) {
                return Ok(found);
            }
        } else if let Some(folder) = &self.llvm_bin {
            for name in [&plain, &versioned] {
                if let Some(found) = fits(&folder.join(name)) {
                    return Ok(found);
                }
            }
        } else {
            if let Some(found) = fits(&self.sysroot_bin.join(&plain)) {
                return Ok(found);
            }
            let on_path = |name: &str| {
                self.path
                    .iter()
                    .map(|folder| folder.join(name))
                    .find(|path| path.is_file())
            };
            let debian = self.usr_lib.join(format!("llvm-{wanted}/bin")).join(&plain);
            for candidate in [on_path(&versioned), Some(debian), on_path(&plain)]
                .into_iter()
                .flatten()
            {
                if let Some(found) = fits(&candidate) {
                    return Ok(found);
                }
            }
            for name in [&versioned, &plain] {
                if on_path(name).is_none() {
                    looked_at.push(format!("{name} on PATH: not there"));
                }
            }
        }
        Err(MissingTool {
            tool,
            major: wanted,
            rustc: rustc.release.clone(),
            looked_at,
            variable: LLVM_BIN,
        })
    }
}

/// What `--version` of an LLVM tool says.
fn version(tool: &Path) -> Result<String, String> {
    if !tool.is_file() {
        return Err("not there".to_owned());
    }
    let output = Command::new(tool)
        .arg("--version")
        .output()
        .map_err(|error| format!("does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .find_map(|line| line.split_once("LLVM version "))
        .map(|(_, version)| version.trim().to_owned())
        .ok_or_else(|| "does not say an LLVM version".to_owned())
}

/// The number before the first point.
fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.trim().parse().ok()
}

/// Runs a command that must succeed and gives what it printed.
pub(crate) fn capture(command: &mut Command) -> Result<String, CudaBuilderError> {
    let output = command
        .output()
        .map_err(CudaBuilderError::io("run", command.get_program()))?;
    if !output.status.success() {
        return Err(CudaBuilderError::UnexpectedOutput {
            command: describe(command),
            problem: format!(
                "it failed ({}):\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| {
            let word = word.to_string_lossy();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:,@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word.into_owned()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn rustc(sysroot: &Path) -> Rustc {
        Rustc {
            path: "rustc".into(),
            release: "1.95.0".into(),
            host: "x86_64-unknown-linux-gnu".into(),
            llvm_major: 22,
            sysroot: sysroot.to_owned(),
        }
    }

    fn fake(path: &Path, version: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(
            path,
            format!("#!/bin/sh\necho 'Debian LLVM version {version}'\n"),
        )
        .unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn places(root: &Path) -> Places {
        Places {
            files: vec![],
            llvm_bin: None,
            sysroot_bin: root.join("sysroot"),
            path: vec![root.join("one"), root.join("two")],
            usr_lib: root.join("usr"),
        }
    }

    #[test]
    fn the_sysroot_goes_before_path() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fake(&root.join("sysroot/opt"), "22.1.2");
        fake(&root.join("one/opt-22"), "22.1.8");
        let (path, version) = places(root)
            .find("opt", "CUDA_BUILDER_OPT", &rustc(root))
            .unwrap();
        assert_eq!(
            (path, version.as_str()),
            (root.join("sysroot/opt"), "22.1.2")
        );
    }

    #[test]
    fn a_plain_name_must_be_of_the_right_release() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fake(&root.join("one/opt"), "14.0.6");
        let error = places(root)
            .find("opt", "CUDA_BUILDER_OPT", &rustc(root))
            .unwrap_err()
            .to_string();
        for expected in [
            "`opt` of LLVM 22",
            "rustc 1.95.0",
            "one/opt: is of LLVM 14.0.6",
            "opt-22 on PATH: not there",
            "rustup component add llvm-tools",
            "apt-get install llvm-22",
            "CUDA_BUILDER_LLVM_BIN",
        ] {
            assert!(error.contains(expected), "{expected}\nnot in\n{error}");
        }
        fake(&root.join("one/opt"), "22.0.1");
        assert!(
            places(root)
                .find("opt", "CUDA_BUILDER_OPT", &rustc(root))
                .is_ok()
        );
    }

    #[test]
    fn what_the_user_named_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        fake(&root.join("sysroot/llc"), "22.1.2");
        let mut places = places(root);
        places.llvm_bin = Some(root.join("mine"));
        let error = places
            .find("llc", "CUDA_BUILDER_LLC", &rustc(root))
            .unwrap_err();
        assert!(
            error.looked_at.iter().all(|place| place.contains("mine")),
            "{error}"
        );
        places.files = vec![("CUDA_BUILDER_LLC", root.join("other/llc"))];
        let error = places
            .find("llc", "CUDA_BUILDER_LLC", &rustc(root))
            .unwrap_err();
        assert!(
            error.to_string().contains("other/llc: not there"),
            "{error}"
        );
    }

    #[test]
    fn the_missing_source_of_core_is_named() {
        let root = tempfile::tempdir().unwrap();
        let rustc = rustc(root.path());
        let error = rustc.require_library_source().unwrap_err().to_string();
        let core = rustc.library_source().join("core/src/lib.rs");
        for expected in [
            core.to_str().unwrap(),
            "rustup component add rust-src",
            "apt-get install rust-src",
        ] {
            assert!(error.contains(expected), "{expected}\nnot in\n{error}");
        }
        fs::create_dir_all(core.parent().unwrap()).unwrap();
        fs::write(&core, "").unwrap();
        rustc.require_library_source().unwrap();
    }

    #[test]
    fn commands_are_shown_as_one_types_them() {
        let mut command = Command::new("opt");
        command.args(["-passes=default<O3>", "a b.ll", "it's"]);
        assert_eq!(
            describe(&command),
            "opt '-passes=default<O3>' 'a b.ll' 'it'\\''s'"
        );
    }
}
