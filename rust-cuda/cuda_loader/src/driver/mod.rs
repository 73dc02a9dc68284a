//! Loads the driver library and declares its functions.

mod file;
mod library;
pub mod sys;

pub(crate) use library::load;
