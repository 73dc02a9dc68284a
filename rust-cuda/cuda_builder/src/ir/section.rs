//! CUDA's memories, and the link sections that name them.

use super::error::IrError;

/// LLVM's numbers for CUDA's memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Every block's view of the whole device.
    Global = 1,
    /// One instance per block, uninitialised when the block starts.
    Shared = 3,
    /// 64 KiB, written by the host only.
    Constant = 4,
}

/// What a link section says about a static.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) space: Space,
    /// The host shall find the static by its name.
    pub(crate) visible: bool,
}

impl Section {
    /// Reads a section's name.
    ///
    /// # Errors
    ///
    /// [`IrError::UnknownSection`], for a misspelt section would otherwise turn
    /// shared memory into global memory in silence.
    pub(crate) fn parse(static_name: &str, section: &str) -> Result<Self, IrError> {
        let (base, visible) = match section.strip_suffix(".visible") {
            Some(base) => (base, true),
            None => (section, false),
        };
        let space = match base {
            ".global" => Space::Global,
            ".shared" => Space::Shared,
            ".constant" => Space::Constant,
            _ => {
                return Err(IrError::UnknownSection {
                    name: format!("{:#}", rustc_demangle::demangle(static_name)),
                    section: section.to_owned(),
                });
            }
        };
        Ok(Self { space, visible })
    }
}
