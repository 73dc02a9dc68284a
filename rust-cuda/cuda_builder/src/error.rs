//! Everything that can go wrong. Each message also says what would be right.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::arch::NvvmArch;
pub use crate::ir::error::IrError;

/// Why a kernel crate could not be built.
///
/// Its `Debug` output is the same message: build scripts call `unwrap`, and the compiler's lines
/// stay lines.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// The path given to [`CudaBuilder::new`](crate::CudaBuilder::new) holds no
    /// package.
    #[error("`{}` is not a kernel crate: it has no Cargo.toml", .0.display())]
    CratePathDoesntExist(PathBuf),

    /// The package has no library.
    #[error(
        "package `{package}` has no library target; a kernel crate is a library, with its root in src/lib.rs"
    )]
    NoLibrary {
        /// The package.
        package: String,
    },

    /// The crate depends on the `cuda_std` that was released for another compiler.
    #[error(
        "the kernel crate `{package}` is built with cuda_std {version} of the registry, which is for \
         upstream's compiler backend and does not compile here. Depend on the port, \
         cuda_std = {{ package = \"halo-cuda-std\", … }}, or put it in the release's place: in the \
         Cargo.toml of the workspace `{}`, under [patch.crates-io], \
         cuda_std = {{ path = \"…/rust-cuda/upstream/cuda_std\" }}. If they are there already, Cargo.lock still names the \
         release: run `cargo update -p cuda_std`{}",
        .workspace.display(),
        if *.range { ", and ask for cuda_std \"0.2\" in the kernel crate" } else { "" }
    )]
    ReleasedCudaStd {
        /// The kernel crate.
        package: String,
        /// The release.
        version: String,
        /// The workspace's folder.
        workspace: PathBuf,
        /// Whether the port has another version than what is asked for.
        range: bool,
    },

    /// A tool of the device toolchain is not there.
    #[error(transparent)]
    MissingTool(#[from] MissingTool),

    /// The standard library's source is not there.
    #[error(
        "device code is built from the source of `core`, which is missing: there is no `{}`.\n\
         Install it with `rustup component add rust-src`, or, with Debian's rustc, `apt-get install rust-src`",
        .looked_for.display()
    )]
    MissingRustSrc {
        /// The file that was looked for.
        looked_for: PathBuf,
    },

    /// This release of LLVM has no such target.
    #[error(
        "{} (LLVM {llvm}) cannot write PTX for {}; it knows {}",
        .llc.display(), .arch.sm(), .known.join(", ")
    )]
    UnsupportedArch {
        /// What was asked for.
        arch: NvvmArch,
        /// The tool that lacks it.
        llc: PathBuf,
        /// Its release.
        llvm: String,
        /// What it has.
        known: Vec<String>,
    },

    /// Cargo or rustc refused the kernel crate.
    #[error("building the kernel crate `{}` failed ({status}):\n{stderr}", .manifest.display())]
    BuildFailed {
        /// The kernel crate's manifest.
        manifest: PathBuf,
        /// How cargo ended.
        status: String,
        /// All that it wrote to standard error, but for the lines of progress, which were shown as
        /// they came.
        stderr: String,
    },

    /// One of the steps after compilation failed.
    #[error(
        "{step} failed{} on `{}` ({status}):\n{stderr}\nThe command was: {command}",
        .function.as_ref().map_or_else(String::new, ToString::to_string), .file.display()
    )]
    StepFailed {
        /// What was being done.
        step: &'static str,
        /// Where in the program, if the tool said so.
        function: Option<Box<Function>>,
        /// The file it was done to; it is kept.
        file: PathBuf,
        /// How the tool ended.
        status: String,
        /// What it wrote to standard error, without its stack dump.
        stderr: String,
        /// The command, for trying again by hand.
        command: String,
    },

    /// The crate's code cannot become device code.
    #[error("linking the kernel crate `{package}` failed: {source}")]
    Ir {
        /// The kernel crate.
        package: String,
        /// What is wrong.
        source: IrError,
    },

    /// A library that cargo built is not what it should be.
    #[error("cannot read `{}`: {problem}", .file.display())]
    BadArtifact {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A tool printed something unexpected.
    #[error("unexpected output of `{command}`: {problem}")]
    UnexpectedOutput {
        /// The command.
        command: String,
        /// What is wrong.
        problem: String,
    },

    /// A file could not be read or written.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },

    /// The PTX was built, but could not be copied where it was wanted.
    #[error("cannot copy the PTX to `{}`: {source}", .path.display())]
    FailedToCopyPtxFile {
        /// Where it was to go.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}

impl fmt::Debug for CudaBuilderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl CudaBuilderError {
    pub(crate) fn io(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// A function of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// The function, or the kernel, that the tool stopped at: `my_crate::my_function`.
    pub name: String,
    /// The file and the line where it is defined, when the sources have one function of that
    /// name.
    pub line: Option<(PathBuf, usize)>,
}

/// ` in the function f, src/lib.rs:7`.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " in the function `{}`", self.name)?;
        if let Some((file, line)) = &self.line {
            write!(f, ", {}:{line},", file.display())?;
        }
        Ok(())
    }
}

/// A tool that is missing, where it was looked for, and how to install it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot find `{tool}` of LLVM {major}, which rustc {rustc} is built with. Looked at:\n{}\n\
     Install it with `rustup component add llvm-tools`, or, on Debian, `apt-get install llvm-{major}`; \
     or set {variable} to a folder that has it",
    .looked_at.iter().map(|place| format!("  {place}")).collect::<Vec<_>>().join("\n")
)]
pub struct MissingTool {
    /// The tool: `llvm-link`, `opt` or `llc`.
    pub tool: &'static str,
    /// The LLVM release it must belong to.
    pub major: u32,
    /// The release of rustc, whose bitcode the tool must read.
    pub rustc: String,
    /// Each place, and what was there instead.
    pub looked_at: Vec<String>,
    /// The environment variable that names a folder.
    pub variable: &'static str,
}
