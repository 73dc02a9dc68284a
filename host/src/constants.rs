//! Values of device constants (constant memory) for a launch.

use cuda_std::host::Symbol;
use std::fmt;

/// Values of device constants for one launch.
///
/// Setting the constants and launching the kernel are one step: launches from other threads come
/// before or after both, so each launch sees its own values.
///
/// For an example see [`launch_with_constants`](crate::launch_with_constants).
#[derive(Default)]
pub struct Constants<'a> {
    entries: Vec<Constant<'a>>,
}

pub(crate) struct Constant<'a> {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'a [u8],
    /// The address of the kernel's static of that name, for the emulator.
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

    /// Adds the constant `S` with the value `value`.
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
