//! Compiles the CUDA C++ baselines in `baselines/` with nvcc, if there is one.
//!
//! The sources are part of this crate, so that `halo-bench` can compile them on every machine to
//! which it is copied. The baseline of a family is a cubin whose kernels have the names, parameters
//! and constants of the Rust kernels. CUB's reductions are a shared library with one C function,
//! which `baselines/cub.cu` documents.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use cargo_halo::toolchain;

/// The source of the baseline of a family.
struct Source {
    family: &'static str,
    text: &'static str,
}

macro_rules! sources {
    ($($family:literal),+ $(,)?) => {
        &[$(Source {
            family: $family,
            text: include_str!(concat!("../", $family, ".cu")),
        }),+]
    };
}

/// The sources. nvcc's contraction of products and sums stays on: where bits matter, the sources
/// use fmaf explicitly.
const SOURCES: &[Source] = sources! {
    // Families, which `cargo xtask tidy --write` lists.
    "derivative3d",
    "heat2d",
    "heat3d",
    "nbody",
    "reduction",
    "stencil1d",
    "wave3d",
};

/// nvcc's flags for a family, in addition to the common ones.
const FLAGS: [(&str, &str); 1] = [("nbody", "-ftz=true")];

const CUB: &str = include_str!("../cub.cu");

/// The compiler of the baselines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    nvcc: PathBuf,
    version: String,
}

/// The reason why this machine cannot compile the baselines.
#[derive(Debug, thiserror::Error)]
pub enum NoToolchain {
    /// There is no nvcc.
    #[error(
        "found no nvcc on PATH, in the folder bin of CUDA_HOME or CUDA_PATH, or in /usr/local/cuda/bin; install the CUDA toolkit, or set CUDA_HOME to where it is"
    )]
    NotFound,

    /// There is an nvcc, but it does not print its version.
    #[error("{} does not run: {why}", nvcc.display())]
    Unusable {
        /// The program that was found.
        nvcc: PathBuf,
        /// The error of the system, or the output of the program.
        why: String,
    },
}

/// A baseline could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The family has no file in `baselines/`.
    #[error("no baseline is called {family}; there are {}", families().join(", "))]
    UnknownFamily {
        /// The requested family.
        family: String,
    },

    /// nvcc has no such target.
    #[error("{arch} is not a GPU architecture; expected one like sm_90")]
    BadArch {
        /// The requested architecture.
        arch: String,
    },

    /// A file or folder could not be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The failed action, in the infinitive.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// The compiler could not be started.
    #[error("cannot start {}", nvcc.display())]
    Start {
        /// The program.
        nvcc: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// The compiler rejected the source.
    #[error("nvcc does not compile baselines/{name}.cu for {arch} ({status}): {output}")]
    Nvcc {
        /// The name of the source, without its extension.
        name: &'static str,
        /// The target architecture.
        arch: String,
        /// The exit status of nvcc.
        status: ExitStatus,
        /// The output of nvcc.
        output: String,
    },
}

impl Error {
    fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}

/// The families that have a baseline, by name.
pub fn families() -> Vec<&'static str> {
    SOURCES.iter().map(|source| source.family).collect()
}

/// A compiled baseline.
#[derive(Debug)]
pub struct Compiled {
    /// The machine code, for `cuModuleLoadData`.
    pub cubin: Vec<u8>,
    /// ptxas's output about each kernel: registers, spills and shared memory.
    pub resources: String,
}

impl Toolchain {
    /// The nvcc on PATH, or in the toolkit that `CUDA_HOME` or `CUDA_PATH` names,
    /// or in `/usr/local/cuda`.
    ///
    /// # Errors
    ///
    /// [`NoToolchain`] if there is none or it does not run.
    pub fn find() -> Result<Self, NoToolchain> {
        Self::find_in(&toolchain::cuda_folders())
    }

    /// The first nvcc in these folders.
    pub fn find_in(folders: &[PathBuf]) -> Result<Self, NoToolchain> {
        let found = toolchain::find_in(folders, &["nvcc"]).ok_or(NoToolchain::NotFound)?;
        // nvcc looks for the rest of the toolkit next to the path by which it was called, so a
        // symbolic link must be resolved.
        let nvcc = found
            .canonicalize()
            .ok()
            .filter(|real| real.file_name() == found.file_name())
            .unwrap_or(found);
        let unusable = |why: String| NoToolchain::Unusable {
            nvcc: nvcc.clone(),
            why,
        };
        let output = Command::new(&nvcc)
            .arg("--version")
            .output()
            .map_err(|error| unusable(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(unusable(format!("{} ({})", words.trim(), output.status)));
        }
        let version = version(&said)
            .ok_or_else(|| unusable(format!("it names no release: {}", said.trim())))?
            .to_owned();
        Ok(Self { nvcc, version })
    }

    /// The compiler.
    pub fn nvcc(&self) -> &Path {
        &self.nvcc
    }

    /// The compiler's version, e.g. `13.0.88`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Compiles the baseline of `family` to machine code for `arch`, e.g. `sm_90`.
    ///
    /// # Errors
    ///
    /// [`Error`], with nvcc's output if it rejects the source.
    pub fn cubin(&self, family: &str, arch: &str) -> Result<Vec<u8>, Error> {
        self.compile(family, arch).map(|compiled| compiled.cubin)
    }

    /// As [`cubin`](Self::cubin), with ptxas's output about each kernel.
    ///
    /// # Errors
    ///
    /// As [`cubin`](Self::cubin).
    pub fn compile(&self, family: &str, arch: &str) -> Result<Compiled, Error> {
        let source = SOURCES
            .iter()
            .find(|source| source.family == family)
            .ok_or_else(|| Error::UnknownFamily {
                family: family.to_owned(),
            })?;
        let work = tempfile::tempdir()
            .map_err(Error::file("make a folder below", &std::env::temp_dir()))?;
        let output = work.path().join("baseline.cubin");
        let mut flags = vec!["-cubin", "--resource-usage"];
        let own = FLAGS.iter().filter(|(of, _)| *of == source.family);
        flags.extend(own.map(|(_, flag)| flag));
        let resources = self.run(
            source.family,
            source.text,
            arch,
            &flags,
            work.path(),
            &output,
        )?;
        Ok(Compiled {
            cubin: std::fs::read(&output).map_err(Error::file("read", &output))?,
            resources,
        })
    }

    /// Compiles CUB's reductions for `arch` to a shared library in `folder`, and returns its path.
    /// `baselines/cub.cu` documents its function. Compilation takes about 15 seconds.
    ///
    /// # Errors
    ///
    /// As [`cubin`](Self::cubin).
    pub fn cub_library(&self, folder: &Path, arch: &str) -> Result<PathBuf, Error> {
        let output = folder.join(format!(
            "{}halo_cub{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        ));
        let flags: &[&str] = if cfg!(windows) {
            &["-shared"]
        } else {
            &["-shared", "-Xcompiler", "-fPIC"]
        };
        let work = tempfile::tempdir()
            .map_err(Error::file("make a folder below", &std::env::temp_dir()))?;
        self.run("cub", CUB, arch, flags, work.path(), &output)?;
        Ok(output)
    }

    /// Compiles `text` to `output` and returns what nvcc printed.
    fn run(
        &self,
        name: &'static str,
        text: &str,
        arch: &str,
        flags: &[&str],
        work: &Path,
        output: &Path,
    ) -> Result<String, Error> {
        let digits = arch.strip_prefix("sm_").unwrap_or_default();
        if !digits.starts_with(|c: char| c.is_ascii_digit())
            || !digits.chars().all(|c| c.is_ascii_alphanumeric())
        {
            return Err(Error::BadArch {
                arch: arch.to_owned(),
            });
        }
        let source = work.join(format!("{name}.cu"));
        std::fs::write(&source, text).map_err(Error::file("write", &source))?;
        let run = Command::new(&self.nvcc)
            .args(["-O3", "-std=c++17", "-arch"])
            .arg(arch)
            .args(flags)
            .arg("-o")
            .arg(output)
            .arg(&source)
            .output()
            .map_err(|source| Error::Start {
                nvcc: self.nvcc.clone(),
                source,
            })?;
        let mut words = String::from_utf8_lossy(&run.stdout).into_owned();
        words.push_str(&String::from_utf8_lossy(&run.stderr));
        if run.status.success() {
            return Ok(words);
        }
        Err(Error::Nvcc {
            name,
            arch: arch.to_owned(),
            status: run.status,
            output: words.trim().to_owned(),
        })
    }
}

/// The version `13.0.88` in `Cuda compilation tools, release 13.0, V13.0.88`.
fn version(said: &str) -> Option<&str> {
    let line = said.lines().find(|line| line.contains("release "))?;
    line.rsplit_once(", V")
        .map(|(_, version)| version.trim())
        .filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_of_families_that_have_a_baseline() {
        for (family, _) in FLAGS {
            assert!(families().contains(&family), "{family}");
        }
    }

    #[test]
    #[ignore = "needs nvcc and a host compiler"]
    fn every_baseline_compiles() {
        let nvcc = Toolchain::find().unwrap();
        for family in families() {
            let compiled = nvcc.compile(family, "sm_90").unwrap();
            assert!(compiled.cubin.starts_with(b"\x7fELF"), "{family}");
            assert!(
                !compiled.resources.contains("warning"),
                "{}",
                compiled.resources
            );
        }
        let error = nvcc.cubin("heat2d", "sm_1").unwrap_err().to_string();
        assert!(error.contains("sm_1"), "{error}");
    }

    #[test]
    #[ignore = "needs nvcc and a host compiler"]
    fn cub_becomes_a_library_with_one_function() {
        let nvcc = Toolchain::find().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let library = nvcc.cub_library(folder.path(), "sm_90").unwrap();
        let bytes = std::fs::read(&library).unwrap();
        let name = b"\0halo_cub_reduce\0";
        assert!(bytes.windows(name.len()).any(|window| window == name));
    }

    #[test]
    fn the_version_is_the_whole_one() {
        let said = "nvcc: NVIDIA (R) Cuda compiler driver\n\
                    Cuda compilation tools, release 13.0, V13.0.88\n\
                    Build cuda_13.0.r13.0/compiler.1_0\n";
        assert_eq!(version(said), Some("13.0.88"));
        assert_eq!(version("gcc (GCC) 12.2.0"), None);
        assert_eq!(version("release 13.0"), None);
    }

    #[test]
    fn no_nvcc_is_said_with_what_to_do() {
        let empty = tempfile::tempdir().unwrap();
        let error = Toolchain::find_in(&[empty.path().to_owned()]).unwrap_err();
        assert!(matches!(error, NoToolchain::NotFound), "{error}");
        assert!(error.to_string().contains("set CUDA_HOME"), "{error}");
    }

    /// A fake nvcc.
    #[cfg(unix)]
    fn stand_in(folder: &Path, script: &str) -> Toolchain {
        let nvcc = folder.join("nvcc");
        // A separate process writes the program. A program cannot start while a process has it open
        // for writing, and a child of another test could inherit the open file from this process.
        let written = Command::new("sh")
            .args(["-c", r#"printf '%s' "$1" >"$2" && chmod +x "$2""#, "sh"])
            .arg(format!("#!/bin/sh\n{script}\n"))
            .arg(&nvcc)
            .status()
            .unwrap();
        assert!(written.success());
        Toolchain {
            nvcc,
            version: "0".to_owned(),
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_nvcc_that_fails_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        stand_in(folder.path(), "echo broken >&2; exit 3");
        let error = Toolchain::find_in(&[folder.path().to_owned()]).unwrap_err();
        assert!(matches!(error, NoToolchain::Unusable { .. }), "{error}");
        assert!(error.to_string().contains("broken"), "{error}");

        stand_in(folder.path(), "echo something else");
        let error = Toolchain::find_in(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("something else"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nvcc_is_followed() {
        let real = tempfile::tempdir().unwrap();
        let linked = tempfile::tempdir().unwrap();
        let nvcc = stand_in(real.path(), "echo 'release 1.2, V1.2.3'").nvcc;
        std::os::unix::fs::symlink(&nvcc, linked.path().join("nvcc")).unwrap();
        let found = Toolchain::find_in(&[linked.path().to_owned()]).unwrap();
        assert_eq!(found.nvcc(), nvcc.canonicalize().unwrap());
        assert_eq!(found.version(), "1.2.3");
    }

    #[cfg(unix)]
    #[test]
    fn a_refused_source_comes_with_the_words_of_nvcc() {
        let folder = tempfile::tempdir().unwrap();
        let nvcc = stand_in(folder.path(), "echo 'heat2d.cu(7): error' >&2; exit 2");
        let error = nvcc.cubin("heat2d", "sm_90").unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Nvcc { .. }), "{text}");
        assert!(text.contains("heat2d.cu(7): error") && text.contains("sm_90"));
    }

    #[test]
    fn what_there_is_no_baseline_for_is_an_error() {
        let nvcc = Toolchain {
            nvcc: "nvcc".into(),
            version: "0".to_owned(),
        };
        let error = nvcc.cubin("nosuch", "sm_90").unwrap_err().to_string();
        assert!(
            error.contains("nosuch") && error.contains("heat2d"),
            "{error}"
        );
        for arch in ["", "90", "sm_", "sm_90 -x", "compute_90"] {
            let error = nvcc.cubin("heat2d", arch).unwrap_err();
            assert!(matches!(error, Error::BadArch { .. }), "{arch}: {error}");
        }
    }
}
