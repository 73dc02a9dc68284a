//! The shared-memory arrays of a block.

use std::sync::MutexGuard;

use crate::diagnosis::{MemoryKind, MemoryName};
use crate::shared::RegionId;

/// The name of a shared array, one `static` per declaration in the source.
///
/// The address of the static is the identity of the array: every thread of a
/// block that passes the same slot gets the same memory.
///
/// ```
/// use cuda_emulator::intrinsics::SharedSlot;
/// static TILE: SharedSlot = SharedSlot::new("TILE", file!(), line!());
/// assert_eq!(TILE.name(), "TILE");
/// ```
#[derive(Debug)]
pub struct SharedSlot {
    name: &'static str,
    file: &'static str,
    line: u32,
}

impl SharedSlot {
    /// A slot called `name`, declared at `file`:`line`.
    #[must_use]
    pub const fn new(name: &'static str, file: &'static str, line: u32) -> Self {
        Self { name, file, line }
    }

    /// The name given to [`SharedSlot::new`].
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The source file that declares the array.
    #[must_use]
    pub const fn file(&self) -> &'static str {
        self.file
    }

    /// The source line that declares the array.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }
}

/// A shared array of the block.
pub(super) struct SharedArray {
    pub(super) key: *const SharedSlot,
    pub(super) kind: MemoryKind,
    pub(super) name: &'static str,
    pub(super) size: usize,
    pub(super) align: usize,
    pub(super) region: RegionId,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) arrays: Vec<SharedArray>,
    /// In-place statics: slot, address and size.
    pub(super) in_place: Vec<(*const SharedSlot, usize, usize)>,
    /// Held from the first in-place static to the end of the block.
    pub(super) in_place_lock: Option<MutexGuard<'static, ()>>,
    pub(super) static_bytes: usize,
}

impl SharedArray {
    pub(super) fn memory_name(&self) -> MemoryName {
        // Only the alignment of the element type is known.
        MemoryName {
            kind: self.kind,
            name: self.name.to_owned(),
            address: 0,
            parameters: Vec::new(),
            elements: self.size / self.align,
            element_bytes: self.align,
        }
    }
}
