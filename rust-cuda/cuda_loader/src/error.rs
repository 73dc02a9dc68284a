//! [`LoadError`]: the reason why the driver was not loaded.

use std::fmt;

/// The reason why the CUDA driver library could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The file names that were tried, in order. For a name without a folder the dynamic linker
    /// searches its own folders (`LD_LIBRARY_PATH`, its cache).
    pub searched: Vec<String>,
    /// The dynamic linker's message about the first of them.
    pub reason: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no CUDA driver: {}", self.reason)?;
        if !self.searched.is_empty() {
            write!(f, " (searched: {})", self.searched.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}
