//! The driver library: loading it, and the two ways of calling it.

mod file;
mod library;
pub mod sys;
mod trampolines;

pub(crate) use library::load;
pub use trampolines::{SYMBOLS, last_code};
