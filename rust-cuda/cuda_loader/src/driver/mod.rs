//! The driver library: loading it, and calling it.

mod file;
mod library;
pub mod sys;

pub(crate) use library::load;
