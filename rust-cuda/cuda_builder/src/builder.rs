//! The options of a build.

use crate::arch::NvvmArch;
use std::path::{Path, PathBuf};

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

/// Compiles a kernel crate.
///
/// The fields are what the methods of the same names set.
#[derive(Debug, Clone)]
pub struct CudaBuilder {
    pub(crate) path_to_crate: PathBuf,
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

    /// Whether the PTX names source lines. By default it names none.
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

    /// Does nothing, as in upstream, which never reads this value. [`debug`](Self::debug) decides
    /// whether line numbers are written.
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

    /// Whether a product and a sum may become one `fma`. **`false` by default, unlike upstream.** A
    /// fused product is rounded differently, so that a kernel no longer gives the same bits as the
    /// same code on the CPU; and Rust promises that no product is fused unless the source says so.
    /// Where it is wanted, write `mul_add`.
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

    /// Does nothing. Upstream replaces the `libm` crate's functions by those of NVIDIA's libdevice.
    /// Here `libm` is used as it is, so its results on the device and on the CPU are the same.
    #[must_use]
    pub fn override_libm(mut self, override_libm: bool) -> Self {
        self.override_libm = override_libm;
        self
    }

    /// Does nothing. With this option upstream puts statics into constant memory until that
    /// overflows. Here a static is in constant memory if it is marked `#[address_space(constant)]`.
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

    /// The target directory for the device. By default it is `cuda-builder` in the target directory
    /// of the outer build, when this is a build script, or else in what `CARGO_TARGET_DIR` names, or
    /// else in the target directory of the kernel crate's workspace. It must not be the outer
    /// build's target directory: cargo holds the lock of that until the build script ends.
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

    /// The PTX version to write, as `(8, 0)`. By default the first one that has the architecture,
    /// but at least 6.3, so that the PTX runs on the oldest drivers. Inline assembly with newer
    /// instructions needs a newer version.
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
}
