//! The text passes between linking and optimising: what makes a module that the
//! stock compiler wrote into device code.
//!
//! rustc knows the calling convention of kernels and nothing else of CUDA's
//! model. [`prepare`] adds what is missing, in this order:
//!
//! 1. [`launch_bounds`]: what kernels say of the size of their blocks;
//! 2. [`exports`]: which functions and statics the host can see;
//! 3. [`runtime`]: the symbols that rustc adds only to a final binary;
//! 4. [`reach`]: everything the exports cannot reach goes, and what stays is put
//!    in an order and under names that depend on the program alone;
//! 5. [`address_space`]: shared and constant memory;
//! 6. [`atomics`]: fences for the orderings that LLVM's backend drops;
//! 7. [`convergent`]: no pass may copy or move what a warp does together.
//!
//! It must run before LLVM's first optimisation: a barrier that was copied into
//! two branches cannot be put back together. After the optimiser there is one
//! more, [`finish`].

pub(crate) mod address_space;
pub(crate) mod atomics;
pub(crate) mod constant;
pub(crate) mod convergent;
pub(crate) mod exports;
pub(crate) mod finish;
pub(crate) mod launch_bounds;
pub(crate) mod lexer;
pub(crate) mod module;
pub(crate) mod reach;
pub(crate) mod runtime;

use module::Module;

/// What is wrong with a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IrError {
    /// The text is not what `llvm-link -S` prints.
    #[error(
        "cannot read the LLVM IR: {what} in `{line}`; cuda_builder reads the IR that LLVM {known} prints"
    )]
    Syntax {
        /// What was not understood.
        what: &'static str,
        /// The line, shortened.
        line: String,
        /// The LLVM release the reader was written for.
        known: u32,
    },
    /// Nothing in the crate is exported.
    #[error(
        "the crate has no kernel: nothing in it or in its dependencies is marked `#[kernel]` or `#[externally_visible]`"
    )]
    NothingExported,
    /// A symbol is used and nowhere defined.
    #[error(
        "undefined symbol{}: {}; device code cannot link against host libraries: define {} in Rust, or name what the driver's linker shall supply with `CudaBuilder::allow_undefined`",
        if .0.len() == 1 { "" } else { "s" },
        .0.join(", "),
        if .0.len() == 1 { "it" } else { "them" }
    )]
    Undefined(Vec<String>),
    /// `alloc` is used without a global allocator.
    #[error(
        "the crate allocates memory (`alloc`) but no crate it depends on defines a `#[global_allocator]`; depend on cuda_std, which has one"
    )]
    NoGlobalAllocator,
    /// A static lies in a section that means nothing on the device.
    #[error(
        "static `{name}` has link_section \"{section}\", which no address space belongs to; use \".shared\", \".constant\" or \".global\", with \".visible\" appended when the host shall see it"
    )]
    UnknownSection {
        /// The static.
        name: String,
        /// Its section.
        section: String,
    },
    /// Launch bounds of something that is no kernel, or that cannot be read.
    #[error(
        "static `{name}` is in section \".launch_bounds\", but {problem}; leave that section to `#[launch_bounds]` on a kernel"
    )]
    LaunchBounds {
        /// The static.
        name: String,
        /// What is wrong with it, as words that follow "but".
        problem: &'static str,
    },
    /// A kernel writes to constant memory.
    #[error(
        "`{function}` writes to `{name}`, which is in constant memory: only the host can, before a launch; use global memory for what kernels write"
    )]
    StoreToConstant {
        /// The function.
        function: String,
        /// The static.
        name: String,
    },
    /// An exported name that PTX cannot spell.
    #[error(
        "`{name}` is exported, but is no identifier in PTX: use letters, digits, `_` and `$`, not starting with a digit"
    )]
    InvalidExportName {
        /// The name.
        name: String,
    },
    /// A static holds the address of shared memory.
    #[error(
        "static `{holder}` is initialised with the address of `{shared}`, which is in shared memory and has a different address in each block; take the address inside the kernel"
    )]
    SharedInInitialiser {
        /// The static that holds the address.
        holder: String,
        /// The static in shared memory.
        shared: String,
    },
}

impl IrError {
    fn syntax(what: &'static str, line: &str) -> Self {
        Self::Syntax {
            what,
            line: line.chars().take(200).collect(),
            known: 22,
        }
    }
}

/// What [`prepare`] is asked to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Flush single-precision denormals to zero.
    pub(crate) ftz: bool,
    /// The target's compute capability, ten times: 75, 90, 120.
    pub(crate) capability: u32,
    /// Symbols that may stay undefined.
    pub(crate) allow_undefined: Vec<String>,
}

/// A module that LLVM may optimise.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// The module's text.
    pub(crate) text: String,
    /// The names of all exported functions and statics, sorted.
    pub(crate) exports: Vec<String>,
    /// The names of the kernels among them, sorted.
    pub(crate) kernels: Vec<String>,
}

/// Runs all passes over the text of a linked module.
///
/// # Errors
///
/// See [`IrError`]; nothing is written on an error.
pub(crate) fn prepare(text: &str, options: &Options) -> Result<Prepared, IrError> {
    let mut module = Module::parse(text)?;
    launch_bounds::apply(&mut module)?;
    let exports = exports::collect(&mut module)?;
    runtime::provide(&mut module)?;
    reach::retain(&mut module, &exports, &options.allow_undefined)?;
    address_space::assign(&mut module, &exports)?;
    atomics::fence(&mut module, options.capability);
    convergent::mark(&mut module, options.ftz)?;
    Ok(Prepared {
        text: module.to_string(),
        exports: exports.names(),
        kernels: exports.kernels,
    })
}

/// A hash that is the same on every machine and in every release.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
