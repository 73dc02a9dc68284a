//! Compiles the C++ with OpenMP in `baselines/cpu/` with this machine's compiler, if it has one.
//!
//! The sources are part of this crate, so that `halo-bench` can compile them on every machine to
//! which it is copied. There is one shared library for each of several sets of flags, because the
//! fastest set depends on the work.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use cargo_halo::toolchain;

macro_rules! sources {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../cpu/", $name)))),+]
    };
}

/// Names and texts of the sources; the others include the first.
const SOURCES: &[(&str, &str)] = sources! {
    "peer.h",
    "machine.cpp",
    "stencil.cpp",
    // Families, which `cargo xtask tidy --write` lists.
    "derivative3d.cpp",
    "heat2d.cpp",
    "heat3d.cpp",
    "nbody.cpp",
    "reduction.cpp",
    "stencil1d.cpp",
    "wave3d.cpp",
};

/// A set of compiler flags, with a name for readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// A short name for tables.
    pub name: &'static str,
    /// The arguments of the compiler.
    pub flags: &'static [&'static str],
}

/// The sets of flags to try.
pub const FLAGS: &[Flags] = &[
    Flags {
        name: "-O3",
        flags: &["-O3", "-march=native"],
    },
    Flags {
        name: "-Ofast",
        flags: &["-Ofast", "-march=native"],
    },
    #[cfg(target_arch = "x86_64")]
    Flags {
        name: "-Ofast, 512 bits",
        flags: &["-Ofast", "-march=native", "-mprefer-vector-width=512"],
    },
];

/// A C++ compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiler {
    program: PathBuf,
    /// Arguments before all other flags, if `CXX` has some.
    arguments: Vec<String>,
    version: String,
}

/// Why this machine has no usable compiler.
#[derive(Debug, thiserror::Error)]
pub enum NoCompiler {
    /// There is no compiler.
    #[error(
        "found no C++ compiler: CXX is not set, and PATH has neither c++ nor g++ nor clang++; install one with OpenMP, or set CXX"
    )]
    NotFound,

    /// `CXX` names a program that does not exist.
    #[error("found no {program}, which CXX names as the C++ compiler")]
    Named {
        /// The named program.
        program: String,
    },

    /// There is a compiler, but it does not print its version.
    #[error("{} does not run: {why}", program.display())]
    Unusable {
        /// The program that was found.
        program: PathBuf,
        /// The error of the system, or the output of the program.
        why: String,
    },
}

/// A library could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A source could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// The compiler could not be started.
    #[error("cannot start {}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },

    /// The compiler rejected the sources.
    #[error("{} does not compile baselines/cpu with {flags} ({status}): {output}", program.display())]
    Refused {
        /// The program.
        program: PathBuf,
        /// The flags that were used.
        flags: String,
        /// Its exit status.
        status: ExitStatus,
        /// Its output.
        output: String,
    },
}

impl Compiler {
    /// The compiler that `CXX` names, or the first of c++, g++ and clang++ on `PATH`.
    ///
    /// # Errors
    ///
    /// [`NoCompiler`] if there is none or it does not run.
    pub fn find() -> Result<Self, NoCompiler> {
        Self::find_in(&toolchain::path_folders(), std::env::var_os("CXX"))
    }

    /// The compiler that `cxx` names, or the first one in these folders.
    pub fn find_in(folders: &[PathBuf], cxx: Option<OsString>) -> Result<Self, NoCompiler> {
        let named = cxx.unwrap_or_default();
        let named = named.to_string_lossy();
        let mut words = named.split_whitespace();
        let (program, arguments) = match words.next() {
            Some(word) => {
                let is_path = Path::new(word).components().count() > 1;
                let found = if is_path {
                    Some(PathBuf::from(word)).filter(|path| path.is_file())
                } else {
                    toolchain::find_in(folders, &[word])
                };
                let program = found.ok_or_else(|| NoCompiler::Named {
                    program: word.to_owned(),
                })?;
                (program, words.map(str::to_owned).collect())
            }
            None => {
                let names = ["c++", "g++", "clang++"];
                // Names have priority over folders: the first name that any folder has.
                let found = names
                    .iter()
                    .find_map(|name| toolchain::find_in(folders, &[name]));
                (found.ok_or(NoCompiler::NotFound)?, Vec::new())
            }
        };
        let unusable = |why: String| NoCompiler::Unusable {
            program: program.clone(),
            why,
        };
        let output = Command::new(&program)
            .args(&arguments)
            .arg("--version")
            .output()
            .map_err(|error| unusable(error.to_string()))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(unusable(format!("{} ({})", words.trim(), output.status)));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let version = version(&said)
            .ok_or_else(|| unusable("it names no version".to_owned()))?
            .to_owned();
        Ok(Self {
            program,
            arguments,
            version,
        })
    }

    /// The first line of its `--version`: "g++ (Debian 12.2.0-14) 12.2.0".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Compiles everything in `baselines/cpu/` with these flags to a shared library in `folder`,
    /// which must be empty.
    ///
    /// # Errors
    ///
    /// [`Error`], with the compiler's output if it rejects the sources.
    pub fn library(&self, flags: Flags, folder: &Path) -> Result<PathBuf, Error> {
        for (name, text) in SOURCES {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|source| Error::Write { path, source })?;
        }
        let sources = SOURCES.iter().map(|(name, _)| *name);
        let units: Vec<&str> = sources.filter(|name| name.ends_with(".cpp")).collect();
        let mut compile = self.command(folder);
        compile.args(["-std=c++17", "-fopenmp", "-fPIC", "-Wall", "-c"]);
        compile.args(flags.flags).args(&units);
        self.run(compile, flags)?;

        // Links without those flags: loading a library that was linked with -Ofast would make the
        // whole process flush subnormal numbers.
        let library = folder.join(format!(
            "{}halo_peers{}",
            std::env::consts::DLL_PREFIX,
            std::env::consts::DLL_SUFFIX
        ));
        let mut link = self.command(folder);
        link.args(["-shared", "-fopenmp", "-o"]).arg(&library);
        link.args(units.iter().map(|unit| unit.replace(".cpp", ".o")));
        self.run(link, flags)?;
        Ok(library)
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(folder).args(&self.arguments);
        command
    }

    fn run(&self, mut command: Command, flags: Flags) -> Result<(), Error> {
        let run = command.output().map_err(|source| Error::Start {
            program: self.program.clone(),
            source,
        })?;
        if run.status.success() {
            return Ok(());
        }
        let mut words = String::from_utf8_lossy(&run.stdout).into_owned();
        words.push_str(&String::from_utf8_lossy(&run.stderr));
        Err(Error::Refused {
            program: self.program.clone(),
            flags: flags.flags.join(" "),
            status: run.status,
            output: words.trim().to_owned(),
        })
    }
}

/// The first line that is not empty.
fn version(said: &str) -> Option<&str> {
    said.lines().map(str::trim).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_compiled() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../baselines/cpu");
        let mut found = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".cpp") || name.ends_with(".h") {
                assert!(SOURCES.iter().any(|(known, _)| *known == name), "{name}");
                found += 1;
            }
        }
        assert_eq!(found, SOURCES.len());
    }

    #[test]
    #[ignore = "needs a C++ compiler with OpenMP"]
    fn every_baseline_of_the_cpu_compiles_with_some_of_the_flags() {
        let compiler = Compiler::find().unwrap();
        let mut compiled = 0;
        for &flags in FLAGS {
            let folder = tempfile::tempdir().unwrap();
            match compiler.library(flags, folder.path()) {
                Ok(library) => {
                    let bytes = std::fs::read(library).unwrap();
                    let name = b"\0halo_heat2d_plain_f32\0";
                    assert!(bytes.windows(name.len()).any(|window| window == name));
                    compiled += 1;
                }
                // Some machines have no vectors of 512 bits.
                Err(error) => assert!(flags.name.contains("512"), "{error}"),
            }
        }
        assert!(compiled >= 2);
    }

    #[test]
    fn the_version_is_the_first_line() {
        let said = "g++ (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022\n";
        assert_eq!(version(said), Some("g++ (Debian 12.2.0-14) 12.2.0"));
        assert_eq!(version("\n \n"), None);
    }

    #[test]
    fn no_compiler_is_said_with_what_to_do() {
        let empty = tempfile::tempdir().unwrap();
        let folders = [empty.path().to_owned()];
        let error = Compiler::find_in(&folders, None).unwrap_err();
        assert!(matches!(error, NoCompiler::NotFound), "{error}");
        assert!(error.to_string().contains("set CXX"), "{error}");
        for named in ["icpx", "ccache g++", "/nowhere/c++"] {
            let error = Compiler::find_in(&folders, Some(named.into())).unwrap_err();
            assert!(matches!(error, NoCompiler::Named { .. }), "{error}");
        }
    }

    /// A fake compiler.
    #[cfg(unix)]
    fn stand_in(folder: &Path, name: &str, script: &str) -> PathBuf {
        let program = folder.join(name);
        // A separate process writes the program. A program cannot start while a process has it open
        // for writing, and a child of another test could inherit the open file from this process.
        let written = Command::new("sh")
            .args(["-c", r#"printf '%s' "$1" >"$2" && chmod +x "$2""#, "sh"])
            .arg(format!("#!/bin/sh\n{script}\n"))
            .arg(&program)
            .status()
            .unwrap();
        assert!(written.success());
        program
    }

    #[cfg(unix)]
    #[test]
    fn the_compiler_that_cxx_names_goes_before_all_others() {
        let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let folders = [first.path().to_owned(), second.path().to_owned()];
        stand_in(first.path(), "clang++", "echo clang 1");
        let version = |cxx: Option<&str>| {
            let found = Compiler::find_in(&folders, cxx.map(OsString::from));
            found.unwrap().version().to_owned()
        };
        assert_eq!(version(None), "clang 1");
        stand_in(second.path(), "g++", "echo gcc 2");
        // Names have priority over folders.
        assert_eq!(version(None), "gcc 2");
        assert_eq!(version(Some("")), "gcc 2");
        assert_eq!(version(Some("clang++")), "clang 1");
        let own = stand_in(second.path(), "own", "echo own 3 \"$1\"");
        assert_eq!(version(own.to_str()), "own 3 --version");
        assert_eq!(version(Some("own --stdlib=x")), "own 3 --stdlib=x");
    }

    #[cfg(unix)]
    #[test]
    fn a_compiler_that_fails_is_not_taken_for_none() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        for (script, words) in [
            ("echo broken >&2; exit 3", "broken"),
            ("true", "no version"),
        ] {
            stand_in(folder.path(), "c++", script);
            let error = Compiler::find_in(&folders, None).unwrap_err();
            assert!(matches!(error, NoCompiler::Unusable { .. }), "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn refused_sources_come_with_the_flags_and_the_words_of_the_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let script =
            "case \"$*\" in *--version*) echo 1;; *) echo 'heat2d.cpp:7: error' >&2; exit 2;; esac";
        stand_in(folder.path(), "c++", script);
        let compiler = Compiler::find_in(&[folder.path().to_owned()], None).unwrap();
        let work = tempfile::tempdir().unwrap();
        let error = compiler.library(FLAGS[0], work.path()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Refused { .. }), "{text}");
        assert!(text.contains("heat2d.cpp:7: error") && text.contains("-O3 -march=native"));
    }

    #[cfg(unix)]
    #[test]
    fn flags_that_change_the_process_are_not_given_to_the_linker() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = format!("echo \"$*\" >>'{}'; echo 1", log.display());
        stand_in(folder.path(), "c++", &script);
        let compiler = Compiler::find_in(&[folder.path().to_owned()], None).unwrap();
        let work = tempfile::tempdir().unwrap();
        compiler.library(FLAGS[1], work.path()).unwrap();
        let log = std::fs::read_to_string(log).unwrap();
        let [_, compiled, linked] = log.lines().collect::<Vec<_>>()[..] else {
            panic!("{log}")
        };
        assert!(compiled.contains("-Ofast -march=native") && compiled.contains(" -c "));
        assert!(
            linked.contains("-shared") && !linked.contains("-Ofast"),
            "{linked}"
        );
    }
}
