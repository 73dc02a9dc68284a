//! Launches, on CUDA devices and in the emulator.

use super::number::Number;
use crate::{Buffer, Device, Error, LaunchConfig, launch};
use halo_stencil::{Blocks, Compiled, Layout};

/// A launch whose geometry has been chosen for the fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Launch<T, const INPUTS: usize> {
    layout: Layout<T, INPUTS>,
    blocks: Blocks,
}

/// Fields of one shape on one device: only the plan makes them, after its checks.
pub(super) struct Checked<'a, T: Number, const INPUTS: usize, const OUTPUTS: usize> {
    pub(super) inputs: [&'a Buffer<T>; INPUTS],
    pub(super) outputs: [&'a mut Buffer<T>; OUTPUTS],
}

impl<T: Number, const INPUTS: usize> Launch<T, INPUTS> {
    /// The launch for fields of this layout; `blocks` belong to it.
    pub(super) const fn new(layout: Layout<T, INPUTS>, blocks: Blocks) -> Self {
        Self { layout, blocks }
    }

    /// Queues a step on `device`, whose the fields are; they have the points of the layout.
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
        let inputs = fields.inputs.map(Into::into);
        let outputs = fields.outputs.map(Into::into);
        let args = update.arguments(inputs, outputs, self.layout);
        // SAFETY: the plan found all fields to have the layout's points and to be on `device`,
        // where every allocation is aligned to 16 bytes; the outputs are distinct from the
        // inputs and from each other, since they are borrowed mutably. The layout is that of
        // `Stencil::layout`, which keeps to what the type says, and the blocks are those that
        // `halo_stencil::blocks` gives for it. `Compiled` is what `stencil!` implements; its
        // kernel is `halo_stencil::step`, which asks for nothing more.
        unsafe { launch::<U::Kernel>(device, &config, args) }
    }
}

/// The configuration of a launch with these blocks.
pub(crate) fn config_of(Blocks { grid, block, .. }: Blocks) -> LaunchConfig {
    let [x, y, z] = grid;
    LaunchConfig::new((x, y, z), (block[0], block[1]))
}
