//! Values of constants in device memory.

use cuda_std::host::Symbol;
use std::fmt;

/// Values of device constants that belong to one launch.
///
/// The constants are set and the kernel is launched as one step: launches that
/// other threads give to the same device come before or after both, so each
/// launch sees the values given with it.
///
/// There is an example with [`launch_with_constants`](crate::launch_with_constants).
#[derive(Default)]
pub struct Constants<'a> {
    entries: Vec<Constant<'a>>,
}

pub(crate) struct Constant<'a> {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
    /// Where the kernel's own static of that name lies, for the emulator.
    pub(crate) host_address: fn() -> *mut u8,
}

impl<'a> Constants<'a> {
    /// No constants.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// These, and the constant `S` set to `value`.
    #[must_use]
    pub fn with<S: Symbol>(mut self, value: &'a S::Value) -> Self
    where
        S::Value: bytemuck::NoUninit,
    {
        self.entries.push(Constant {
            name: S::NAME,
            bytes: bytemuck::bytes_of(value),
            host_address: || S::host_address().cast(),
        });
        self
    }

    pub(crate) fn entries(&self) -> &[Constant<'a>] {
        &self.entries
    }
}

impl fmt::Debug for Constants<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.entries.iter().map(|constant| constant.name))
            .finish()
    }
}
