//! Builds kernel crates to PTX, from a build script, with the stock Rust
//! toolchain.
//!
//! The names and the API are those of rust-cuda's `cuda_builder`, so that a build
//! script written for it stays as it is. What runs underneath is another thing:
//! not a compiler backend of its own, which needs a nightly of 2021, LLVM 7 and
//! NVIDIA's libNVVM, but rustc's own `nvptx64-nvidia-cuda` target and LLVM's
//! tools of the same release. README.md lists what differs.
//!
//! ```no_run
//! // build.rs
//! use cuda_builder::{CudaBuilder, NvvmArch};
//!
//! # fn main() -> Result<(), cuda_builder::CudaBuilderError> {
//! CudaBuilder::new("../kernels")
//!     .arch(NvvmArch::Compute75)
//!     .copy_to("resources/kernels.ptx")
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # What a machine needs
//!
//! Rust 1.95 or later, the source of its standard library, and the LLVM tools of
//! its LLVM release: `rustup component add rust-src llvm-tools`. Neither a CUDA
//! toolkit nor a GPU. When something is missing, the error names it, says where
//! it was looked for, and how to install it.
//!
//! # How it works
//!
//! [`CudaBuilder::build`] compiles the kernel crate as a library, with `core` and
//! `alloc`, to LLVM bitcode that no LLVM pass has touched; links the bitcode into
//! one module; adds to it what rustc does not know of CUDA (convergence, address
//! spaces, fences: see `src/ir/`); and has LLVM optimise it and write PTX.
//!
//! The PTX depends on the sources, the options and the releases of rustc and LLVM
//! alone: not on the machine, the folder, or the time.

mod arch;
mod archive;
mod cargo;
mod error;
mod header;
mod ir;
mod link;
#[allow(dead_code, reason = "a program of its own, see the module's text")]
mod rustc_wrapper;
mod tools;
mod wrapper;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use arch::{NvvmArch, UnknownArch};
pub use error::{CudaBuilderError, IrError, MissingTool};

use cargo::Crate;
use tools::Toolchain;

/// How much debug information the PTX holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DebugInfo {
    /// None.
    #[default]
    None,
    /// The source line of each instruction (`.loc`), for profilers. Costs no
    /// speed: the code is optimised all the same.
    LineTables,
}

/// An intermediate form that is written beside the PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmitOption {
    /// The optimised module as text, in a file with the extension `ll`.
    LlvmIr,
    /// The optimised module as LLVM bitcode, in a file with the extension `bc`.
    Bitcode,
}

/// PTX, and what is in it.
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
    /// The release of the LLVM tools: `22.1.8`. It may differ from rustc's own
    /// LLVM in what follows the first point.
    pub llvm_version: String,
}

/// Compiles a kernel crate.
///
/// The fields are what the methods of the same names set.
#[derive(Debug, Clone)]
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    /// See [`release`](Self::release).
    pub release: bool,
    /// See [`copy_to`](Self::copy_to).
    pub ptx_file_copy_path: Option<PathBuf>,
    /// See [`generate_line_info`](Self::generate_line_info).
    pub generate_line_info: bool,
    /// See [`nvvm_opts`](Self::nvvm_opts).
    pub nvvm_opts: bool,
    /// See [`arch`](Self::arch).
    pub arch: NvvmArch,
    /// See [`ftz`](Self::ftz).
    pub ftz: bool,
    /// See [`fast_sqrt`](Self::fast_sqrt).
    pub fast_sqrt: bool,
    /// See [`fast_div`](Self::fast_div).
    pub fast_div: bool,
    /// See [`fma_contraction`](Self::fma_contraction).
    pub fma_contraction: bool,
    /// See [`emit_llvm_ir`](Self::emit_llvm_ir) and
    /// [`emit_llvm_bitcode`](Self::emit_llvm_bitcode).
    pub emit: Option<EmitOption>,
    /// See [`optix`](Self::optix).
    pub optix: bool,
    /// See [`override_libm`](Self::override_libm).
    pub override_libm: bool,
    /// See [`use_constant_memory_space`](Self::use_constant_memory_space).
    pub use_constant_memory_space: bool,
    /// See [`debug`](Self::debug).
    pub debug: DebugInfo,
    /// See [`build_args`](Self::build_args).
    pub build_args: Vec<String>,
    /// See [`final_module_path`](Self::final_module_path).
    pub final_module_path: Option<PathBuf>,
    /// See [`target_dir`](Self::target_dir).
    pub target_dir: Option<PathBuf>,
    /// See [`llvm_tools`](Self::llvm_tools).
    pub llvm_tools: Option<PathBuf>,
    /// See [`ptx_version`](Self::ptx_version).
    pub ptx_version: Option<(u32, u32)>,
    /// See [`allow_undefined`](Self::allow_undefined).
    pub allow_undefined: Vec<String>,
}

impl CudaBuilder {
    /// A builder for the kernel crate whose Cargo.toml is in the folder
    /// `path_to_crate_root`, relative to the current one.
    #[must_use]
    pub fn new(path_to_crate_root: impl AsRef<Path>) -> Self {
        Self {
            path_to_crate: path_to_crate_root.as_ref().to_owned(),
            release: true,
            ptx_file_copy_path: None,
            generate_line_info: true,
            nvvm_opts: true,
            arch: NvvmArch::default(),
            ftz: false,
            fast_sqrt: false,
            fast_div: false,
            fma_contraction: false,
            emit: None,
            optix: false,
            override_libm: true,
            use_constant_memory_space: false,
            debug: DebugInfo::None,
            build_args: Vec::new(),
            final_module_path: None,
            target_dir: None,
            llvm_tools: None,
            ptx_version: None,
            allow_undefined: Vec::new(),
        }
    }

    /// Adds arguments for `cargo rustc`, before any `--`: `--features`,
    /// `--locked`, `--profile` and the like.
    #[must_use]
    pub fn build_args(mut self, args: &[impl AsRef<str>]) -> Self {
        self.build_args
            .extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Whether the PTX names source lines. None by default.
    ///
    /// Names of files are relative to the workspace, or to the package where
    /// that lies elsewhere, so that the PTX is the same everywhere.
    #[must_use]
    pub fn debug(mut self, debug: DebugInfo) -> Self {
        self.debug = debug;
        self
    }

    /// Whether to build with cargo's `release` profile, optimised, or with `dev`:
    /// overflow checks and debug assertions, each a trap, and no optimisation.
    /// `true` by default. Sets [`nvvm_opts`](Self::nvvm_opts) as well.
    #[must_use]
    pub fn release(mut self, release: bool) -> Self {
        self.release = release;
        self.nvvm_opts = release;
        self
    }

    /// Does nothing, as in upstream, where this value is never read: whether line
    /// numbers are written is what [`debug`](Self::debug) says.
    #[must_use]
    pub fn generate_line_info(mut self, generate_line_info: bool) -> Self {
        self.generate_line_info = generate_line_info;
        self
    }

    /// Whether LLVM optimises the linked module. `true` by default. Without it
    /// kernels run, very slowly, with every variable in local memory.
    #[must_use]
    pub fn nvvm_opts(mut self, nvvm_opts: bool) -> Self {
        self.nvvm_opts = nvvm_opts;
        self
    }

    /// The architecture to write PTX for; [`NvvmArch::Compute75`] by default,
    /// which every GPU that CUDA 13 supports can run.
    ///
    /// While the crate is compiled, `cfg(target_feature = "sm_75")` and
    /// `cfg(target_feature = "compute_75")` hold for this architecture and
    /// [all that it includes](NvvmArch::includes), and `env!("CUDA_ARCH")` is its
    /// number, `750`.
    #[must_use]
    pub fn arch(mut self, arch: NvvmArch) -> Self {
        self.arch = arch;
        self
    }

    /// Whether single-precision arithmetic flushes denormals to zero. `false` by
    /// default: results then equal the CPU's.
    #[must_use]
    pub fn ftz(mut self, ftz: bool) -> Self {
        self.ftz = ftz;
        self
    }

    /// Whether single-precision square roots are approximate (`sqrt.approx`).
    /// `false` by default.
    #[must_use]
    pub fn fast_sqrt(mut self, fast_sqrt: bool) -> Self {
        self.fast_sqrt = fast_sqrt;
        self
    }

    /// Whether single-precision divisions are approximate (`div.full`, within 2
    /// units in the last place). `false` by default.
    #[must_use]
    pub fn fast_div(mut self, fast_div: bool) -> Self {
        self.fast_div = fast_div;
        self
    }

    /// Whether a product and a sum may become one `fma`. **`false` by default,
    /// unlike upstream**: Rust promises that no such thing happens, a fused
    /// product is rounded differently, and a kernel then no longer equals the
    /// same code on the CPU bit for bit. `mul_add` says where fusing is wanted.
    #[must_use]
    pub fn fma_contraction(mut self, fma_contraction: bool) -> Self {
        self.fma_contraction = fma_contraction;
        self
    }

    /// Whether to write the optimised module beside the PTX, as text.
    #[must_use]
    pub fn emit_llvm_ir(mut self, emit_llvm_ir: bool) -> Self {
        self.emit = emit_llvm_ir.then_some(EmitOption::LlvmIr);
        self
    }

    /// Whether to write the optimised module beside the PTX, as bitcode.
    #[must_use]
    pub fn emit_llvm_bitcode(mut self, emit_llvm_bitcode: bool) -> Self {
        self.emit = emit_llvm_bitcode.then_some(EmitOption::Bitcode);
        self
    }

    /// Copies the PTX to the file `path`, whose folders are made as needed.
    #[must_use]
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.ptx_file_copy_path = Some(path.as_ref().to_owned());
        self
    }

    /// Sets `cfg(optix)`, as upstream does. A panic is a trap either way.
    #[must_use]
    pub fn optix(mut self, optix: bool) -> Self {
        self.optix = optix;
        self
    }

    /// Does nothing: upstream replaces the `libm` crate's functions by those of
    /// NVIDIA's libdevice. Here they stay what they are, with the same results on
    /// the device and on the CPU.
    #[must_use]
    pub fn override_libm(mut self, override_libm: bool) -> Self {
        self.override_libm = override_libm;
        self
    }

    /// Does nothing: upstream, told so, puts statics into constant memory until
    /// that overflows. Here a static is there when it is marked
    /// `#[address_space(constant)]`.
    #[must_use]
    pub fn use_constant_memory_space(mut self, use_constant_memory_space: bool) -> Self {
        self.use_constant_memory_space = use_constant_memory_space;
        self
    }

    /// Copies the module that the PTX is written from to `path`, as text.
    #[must_use]
    pub fn final_module_path(mut self, path: impl AsRef<Path>) -> Self {
        self.final_module_path = Some(path.as_ref().to_owned());
        self
    }

    /// Where cargo keeps what it builds for the device. By default
    /// `cuda-builder` in the target directory of the outer build, when this is a
    /// build script, or else of the kernel crate's workspace. Never the outer
    /// build's own: that one's lock is held until the build script ends.
    #[must_use]
    pub fn target_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.target_dir = Some(path.as_ref().to_owned());
        self
    }

    /// The folder with LLVM's tools: `llvm-link`, `opt` and `llc`, with or without
    /// the release at the end of their names. By default the folder that the
    /// environment variable `CUDA_BUILDER_LLVM_BIN` names, rustc's own, or `PATH`.
    #[must_use]
    pub fn llvm_tools(mut self, path: impl AsRef<Path>) -> Self {
        self.llvm_tools = Some(path.as_ref().to_owned());
        self
    }

    /// The PTX version to write, as `(8, 0)`. By default the first one that has
    /// the architecture, and 6.3 at least: it runs on the oldest drivers. Inline assembly with
    /// newer instructions needs a newer version.
    #[must_use]
    pub fn ptx_version(mut self, major: u32, minor: u32) -> Self {
        self.ptx_version = Some((major, minor));
        self
    }

    /// Functions and statics that kernels may use although nobody defines them,
    /// because the driver's linker will. `vprintf`, `malloc`, `free` and
    /// `__assertfail`, which the driver itself has, are always allowed.
    #[must_use]
    pub fn allow_undefined(mut self, symbols: &[impl AsRef<str>]) -> Self {
        self.allow_undefined
            .extend(symbols.iter().map(|symbol| symbol.as_ref().to_owned()));
        self
    }

    /// Builds the crate and gives the path of the PTX: the one that
    /// [`copy_to`](Self::copy_to) names, or else the one in the target directory.
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

    /// Builds the crate and gives the PTX itself; for programs other than build
    /// scripts. Prints nothing for cargo, and leaves
    /// [`copy_to`](Self::copy_to)'s file alone.
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

    /// The whole way; `watch` is told the inputs before they are compiled.
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

        let target_dir = match &self.target_dir {
            Some(path) => std::path::absolute(path).map_err(CudaBuilderError::io("find", path))?,
            None => default_target_dir(&krate.target_directory),
        };
        // Cargo tells builds with other flags apart, but not where paths are
        // remapped: without folders of their own they would overwrite each other.
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
            // Cargo's own lock ends with cargo, but its files must stay as they are
            // until they are read.
            let _lock = lock(&target_dir)?;
            let built = cargo::build(&toolchain, self, &krate, &target_dir, &work.path)?;
            (link::unpack(&built, &work.path)?, built.sources)
        };
        let linked = match link::link(&toolchain, self, &krate.package.name, &units, &work.path) {
            Err(error @ CudaBuilderError::StepFailed { .. }) => {
                // The message names files in it.
                work.keep();
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

/// `cuda-builder` in the outer build's target directory, which cargo tells build
/// scripts only by the folder it gives them:
/// `target/[triple/]profile/build/package-hash/out`.
fn default_target_dir(own: &Path) -> PathBuf {
    let outer = || {
        // Only a build script has all of these; `cargo run` sets the first alone.
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
    outer().unwrap_or_else(|| own.join("cuda-builder"))
}

/// Waits until no other build uses the folder; until the result is dropped, none
/// will.
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
