//! The whole way from a kernel crate to PTX.

use crate::builder::{CudaBuilder, DebugInfo, EmitOption};
use crate::cargo::{self, Crate};
use crate::error::CudaBuilderError;
use crate::link;
use crate::nvvm_attribute;
use crate::tools::{self, Toolchain};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The PTX of a kernel crate, with its kernels, symbols and sources.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ptx {
    /// The PTX itself.
    pub text: String,
    /// The file it was also written to, in the target directory.
    pub path: PathBuf,
    /// The kernels' names, sorted.
    pub kernels: Vec<String>,
    /// The names of all exported symbols, kernels included, sorted.
    pub exports: Vec<String>,
    /// The source files of the kernel crate and of those of its dependencies that
    /// lie on disk rather than in a registry, sorted.
    pub sources: Vec<PathBuf>,
    /// The release of rustc: `1.95.0`. The same sources give the same PTX with
    /// the same releases of rustc and LLVM.
    pub rustc_version: String,
    /// The release of the LLVM tools: `22.1.8`. Its first number is that of rustc's own LLVM; the
    /// others may differ.
    pub llvm_version: String,
}

impl CudaBuilder {
    /// Builds the crate and returns the path of the PTX: the one that [`copy_to`](Self::copy_to)
    /// names, or else the one in the target directory.
    ///
    /// Prints `cargo:rerun-if-changed` and `cargo:rerun-if-env-changed` lines for
    /// everything that the PTX depends on, as a build script must.
    ///
    /// # Errors
    ///
    /// See [`CudaBuilderError`]: a missing tool, an error in the kernel crate, a
    /// failed link step.
    pub fn build(self) -> Result<PathBuf, CudaBuilderError> {
        for variable in tools::VARIABLES {
            println!("cargo:rerun-if-env-changed={variable}");
        }
        let announce = |path: &Path| println!("cargo:rerun-if-changed={}", path.display());
        let ptx = self.compile(announce)?;
        for source in &ptx.sources {
            announce(source);
        }
        let Some(copy) = self.ptx_file_copy_path else {
            return Ok(ptx.path);
        };
        let copied = |source| CudaBuilderError::FailedToCopyPtxFile {
            path: copy.clone(),
            source,
        };
        if let Some(folder) = copy.parent() {
            fs::create_dir_all(folder).map_err(copied)?;
        }
        fs::write(&copy, &ptx.text).map_err(copied)?;
        Ok(copy)
    }

    /// Builds the crate and returns the PTX itself, for programs that are not build scripts. Prints
    /// nothing for cargo and does not write [`copy_to`](Self::copy_to)'s file.
    ///
    /// ```no_run
    /// use cuda_builder::{CudaBuilder, NvvmArch};
    ///
    /// let ptx = CudaBuilder::new("gpu-kernels")
    ///     .arch(NvvmArch::Compute90)
    ///     .build_ptx()?;
    /// println!("{} kernels, by LLVM {}", ptx.kernels.len(), ptx.llvm_version);
    /// # Ok::<(), cuda_builder::CudaBuilderError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_ptx(&self) -> Result<Ptx, CudaBuilderError> {
        self.compile(|_| ())
    }

    /// Builds the PTX. Calls `watch` with the inputs before it compiles them.
    fn compile(&self, watch: impl Fn(&Path)) -> Result<Ptx, CudaBuilderError> {
        let directory = std::path::absolute(&self.path_to_crate)
            .map_err(CudaBuilderError::io("find", &self.path_to_crate))?;
        if !directory.join("Cargo.toml").is_file() {
            return Err(CudaBuilderError::CratePathDoesntExist(
                self.path_to_crate.clone(),
            ));
        }
        let toolchain = Toolchain::find(&directory, self.llvm_tools.as_deref())?;
        let known = toolchain.targets()?;
        if !known.contains(&self.arch.sm()) {
            return Err(CudaBuilderError::UnsupportedArch {
                arch: self.arch,
                llc: toolchain.llc,
                llvm: toolchain.llvm_version,
                known,
            });
        }
        let krate = Crate::read(&toolchain, &directory, &self.build_args)?;
        for path in krate.watched() {
            watch(&path);
        }

        let target_dir = self
            .target_dir
            .clone()
            .unwrap_or_else(|| default_target_dir(&krate.target_directory));
        let target_dir =
            std::path::absolute(&target_dir).map_err(CudaBuilderError::io("find", &target_dir))?;
        // Cargo keeps builds with other flags apart, unless the flags only remap paths. Without
        // folders of their own these builds would overwrite each other.
        let mut flavour = self.arch.sm();
        if self.debug == DebugInfo::LineTables {
            flavour.push_str("-lines");
        }
        if self.optix {
            flavour.push_str("-optix");
        }
        let target_dir = target_dir.join(flavour);
        let work = WorkFolder::create(&target_dir, &krate.library)?;
        let (units, sources) = {
            // Cargo releases its own lock when it ends, but its files must not change before they
            // are read.
            let _lock = lock(&target_dir)?;
            let built = cargo::build(&toolchain, self, &krate, &target_dir, &work.path)?;
            (link::unpack(&built, &work.path)?, built.sources)
        };
        let linked = match link::link(
            &toolchain,
            self,
            &krate.package.name,
            &units,
            &nvvm_attribute::statics(&sources),
            &work.path,
        ) {
            Err(mut error @ CudaBuilderError::StepFailed { .. }) => {
                // The message names files in it.
                work.keep();
                if let CudaBuilderError::StepFailed {
                    function: Some(function),
                    ..
                } = &mut error
                {
                    function.line = link::line_of(&function.name, &sources);
                }
                return Err(error);
            }
            result => result?,
        };

        let folder =
            target_dir
                .join(cargo::TARGET)
                .join(if self.release { "release" } else { "debug" });
        fs::create_dir_all(&folder).map_err(CudaBuilderError::io("create", &folder))?;
        let output = folder.join(format!("{}.ptx", krate.library));
        let mut copies: Vec<(PathBuf, &Path)> = Vec::new();
        match self.emit {
            Some(EmitOption::LlvmIr) => {
                copies.push((output.with_extension("ll"), &linked.module));
            }
            Some(EmitOption::Bitcode) => {
                link::assemble(&toolchain, &linked.module, &output.with_extension("bc"))?;
            }
            None => {}
        }
        if let Some(path) = &self.final_module_path {
            copies.push((path.clone(), &linked.module));
        }
        for (to, from) in copies {
            fs::copy(from, &to).map_err(CudaBuilderError::io("write", &to))?;
        }
        // Renamed into place, so that nobody ever reads half a file.
        let fresh = work.path.join("result.ptx");
        fs::write(&fresh, &linked.ptx).map_err(CudaBuilderError::io("write", &fresh))?;
        fs::rename(&fresh, &output).map_err(CudaBuilderError::io("write", &output))?;

        Ok(Ptx {
            text: linked.ptx,
            path: output,
            kernels: linked.kernels,
            exports: linked.exports,
            sources,
            rustc_version: toolchain.rustc.release,
            llvm_version: toolchain.llvm_version,
        })
    }
}

/// `cuda-builder` in the outer build's target directory. Cargo does not name that directory to
/// build scripts; it follows from `OUT_DIR`: `target/[triple/]profile/build/package-hash/out`.
/// Elsewhere, in what `CARGO_TARGET_DIR` names, or in the kernel crate's `own` target directory.
fn default_target_dir(own: &Path) -> PathBuf {
    let outer = || {
        // Only a build script has both; `cargo run` sets `OUT_DIR` alone.
        let out = PathBuf::from(std::env::var_os("OUT_DIR")?);
        let profile = std::env::var_os("PROFILE")?;
        let build = out.ancestors().nth(2)?;
        let profile_folder = build.parent()?;
        let known_layout = build.file_name()? == "build" && profile_folder.file_name()? == profile;
        Some(if known_layout {
            profile_folder.parent()?.join("cuda-builder")
        } else {
            out.join("cuda-builder")
        })
    };
    let named = || Some(PathBuf::from(std::env::var_os("CARGO_TARGET_DIR")?).join("cuda-builder"));
    outer()
        .or_else(named)
        .unwrap_or_else(|| own.join("cuda-builder"))
}

/// Waits until no other build uses the folder, and keeps others out until the result is dropped.
fn lock(target_dir: &Path) -> Result<fs::File, CudaBuilderError> {
    let path = target_dir.join("cuda-builder.lock");
    let file = fs::File::create(&path).map_err(CudaBuilderError::io("create", &path))?;
    file.lock().map_err(CudaBuilderError::io("lock", &path))?;
    Ok(file)
}

/// A folder for one build's intermediate files, removed with this value.
struct WorkFolder {
    path: PathBuf,
    kept: std::cell::Cell<bool>,
}

impl WorkFolder {
    fn create(target_dir: &Path, library: &str) -> Result<Self, CudaBuilderError> {
        // Builds that run at the same time must not meet.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let path = target_dir.join("link").join(format!(
            "{library}-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        fs::create_dir_all(&path).map_err(CudaBuilderError::io("create", &path))?;
        Ok(Self {
            path,
            kept: std::cell::Cell::new(false),
        })
    }

    fn keep(&self) {
        self.kept.set(true);
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if !self.kept.get() {
            // Left behind it does no harm.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
