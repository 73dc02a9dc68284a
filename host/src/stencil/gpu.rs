//! Launches stencil kernels, on a CUDA device or on the emulator.

use super::number::Number;
use crate::march::config_of;
use crate::{Buffer, Device, Error, launch};
use cuda_std::host::In;
use halo_stencil::{Blocks, Compiled, Layout};

/// A launch with the geometry for the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch<T, const INPUTS: usize> {
    layout: Layout<T, INPUTS>,
    blocks: Blocks,
}

/// Fields of the same shape on the same device; only the plan makes this type, after its checks.
pub(super) struct Checked<'a, T: Number, const INPUTS: usize, const OUTPUTS: usize> {
    /// `None` for inputs that are overwritten by outputs.
    pub(super) inputs: [Option<&'a Buffer<T>>; INPUTS],
    pub(super) outputs: [&'a mut Buffer<T>; OUTPUTS],
}

impl<T: Number, const INPUTS: usize> Launch<T, INPUTS> {
    /// The launch for fields of this layout; `blocks` must belong to it.
    pub(super) const fn new(layout: Layout<T, INPUTS>, blocks: Blocks) -> Self {
        Self { layout, blocks }
    }

    /// Enqueues a step on `device`. The fields are on it and have the points of the layout.
    pub(super) fn step<U, const OUTPUTS: usize>(
        &self,
        device: &Device,
        update: U,
        fields: Checked<'_, T, INPUTS, OUTPUTS>,
    ) -> Result<(), Error>
    where
        U: Compiled<T, INPUTS, OUTPUTS>,
    {
        let config = config_of(self.blocks);
        // SAFETY: no elements.
        let none = || unsafe { In::from_raw(0, 0) };
        let inputs = fields
            .inputs
            .map(|input| input.map_or_else(none, Into::into));
        let outputs = fields.outputs.map(Into::into);
        let args = update.arguments(inputs, outputs, self.layout);
        // SAFETY: the plan checked that all fields have the layout's points and are on `device`,
        // where every allocation is aligned to 16 bytes; the outputs are distinct from the inputs
        // and from each other, because they are borrowed mutably. There is an input for each of the
        // kernel's parameters. The layout comes from `Stencil::layout`, which obeys the type's
        // contract, and `halo_stencil::blocks` computed the blocks for it. `stencil!` implements
        // `Compiled`; its kernel is `halo_stencil::step`, which requires nothing more.
        unsafe { launch::<U::Kernel>(device, &config, args) }
    }
}
