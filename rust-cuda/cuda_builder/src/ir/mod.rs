//! The text passes between linking and optimising: what makes a module that the
//! stock compiler wrote into device code.
//!
//! rustc knows the calling convention of kernels and nothing else of CUDA's
//! model. [`prepare`] adds what is missing, in this order:
//!
//! 1. [`launch_bounds`]: what kernels say of the size of their blocks;
//! 2. [`grid_constant`]: which of their parameters are values that the launch holds;
//! 3. [`exports`]: which functions and statics the host can see;
//! 4. [`runtime`]: the symbols that rustc adds only to a final binary;
//! 5. [`half_precision`]: `f16` and `bf16` by the hardware's instructions;
//! 6. [`reach`]: removes everything that the exports do not reach, and gives the rest an order and
//!    names that depend on the program alone;
//! 7. [`address_space`]: shared and constant memory;
//! 8. [`atomics`]: fences for the orderings that LLVM's backend drops;
//! 9. [`convergent`]: no pass may copy or move what a warp does together.
//!
//! Before it, while linking, [`wide_casts`] replaces what LLVM's backend cannot compile by calls.
//!
//! It must run before LLVM's first optimisation: a barrier that was copied into two branches cannot
//! be put back together. One more pass, [`finish`], runs after the optimiser.

pub(crate) mod address_space;
pub(crate) mod atomics;
pub(crate) mod constant;
pub(crate) mod convergent;
pub(crate) mod error;
pub(crate) mod exports;
pub(crate) mod finish;
pub(crate) mod grid_constant;
pub(crate) mod half_precision;
pub(crate) mod launch_bounds;
pub(crate) mod lexer;
pub(crate) mod module;
pub(crate) mod reach;
pub(crate) mod runtime;
pub(crate) mod section;
pub(crate) mod wide_casts;

pub use error::IrError;
use module::Module;

/// What [`prepare`] is asked to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Flush single-precision denormals to zero.
    pub(crate) ftz: bool,
    /// The target's compute capability, ten times: 75, 90, 120.
    pub(crate) capability: u32,
    /// Symbols that may stay undefined.
    pub(crate) allow_undefined: Vec<String>,
    /// Statics, by their last name in the source, and LLVM's numbers of their address spaces.
    pub(crate) spaces: Vec<(String, u32)>,
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
    section::by_number(&mut module, &options.spaces)?;
    launch_bounds::apply(&mut module)?;
    grid_constant::apply(&mut module)?;
    let exports = exports::collect(&mut module)?;
    runtime::provide(&mut module)?;
    half_precision::provide(&mut module, options.capability)?;
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
