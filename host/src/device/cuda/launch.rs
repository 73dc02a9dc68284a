//! Launches kernels on a CUDA device.

use super::driver::{checked, said};
use super::handle::CudaDevice;
use super::recording;
use crate::device::call::Call;
use crate::device::tally::Tally;
use crate::{Constants, Error, LaunchConfig};
use cuda_loader::sys;
use cuda_std::host::ParamPack;
use cust::function::BlockSize;

/// Adds the kernel's name to an error from a driver call that does not know it.
fn on_the_way_to(kernel: &'static str) -> impl FnOnce(Error) -> Error {
    move |mut error| {
        if let Error::Driver { kernel: known, .. } = &mut error {
            known.get_or_insert(kernel);
        }
        error
    }
}

impl CudaDevice {
    /// The number of blocks of `kernel` that a multiprocessor holds at a time.
    pub(crate) fn blocks_per_multiprocessor(
        &self,
        kernel: &'static str,
        config: &LaunchConfig,
    ) -> Result<u32, Error> {
        self.try_blocks_per_multiprocessor(kernel, config)
            .map_err(on_the_way_to(kernel))
    }

    fn try_blocks_per_multiprocessor(
        &self,
        kernel: &'static str,
        config: &LaunchConfig,
    ) -> Result<u32, Error> {
        let core = &self.core;
        let _current = core.enter()?;
        let (code, entry) = self.code_of(kernel);
        let mut module = code.module().lock();
        let function = module.function(core, kernel, &entry, config)?;
        // SAFETY: the module is locked and stays loaded.
        let function = unsafe { function.as_cust() };
        let block = config.block;
        said(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            function.max_active_blocks_per_multiprocessor(
                BlockSize::xyz(block.x, block.y, block.z),
                config.dynamic_shared_bytes as usize,
            ),
        )
    }

    /// Sets the constants and launches the kernel of `call`, as one step.
    ///
    /// # Safety
    ///
    /// As for [`launch_with_constants`](crate::launch_with_constants).
    pub(crate) unsafe fn launch(
        &self,
        config: &LaunchConfig,
        constants: &Constants<'_>,
        call: &dyn Call,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise, passed on.
        let result = unsafe { self.try_launch(config, constants, call) };
        result.map_err(on_the_way_to(call.name()))
    }

    /// [`launch`](Self::launch), but driver errors do not name the kernel.
    ///
    /// # Safety
    ///
    /// As for [`launch`](Self::launch).
    unsafe fn try_launch(
        &self,
        config: &LaunchConfig,
        constants: &Constants<'_>,
        call: &dyn Call,
    ) -> Result<(), Error> {
        let core = &self.core;
        let _current = core.enter()?;
        let (code, entry) = self.code_of(call.name());
        let mut module = code.module().lock();
        let function = module.function(core, call.name(), &entry, config)?;
        for constant in constants.entries() {
            module.set_constant(core, constant.name, constant.bytes)?;
        }
        let mut pack = ParamPack::new();
        call.pack(&mut pack);
        let mut parameters = pack.as_ptrs();
        let LaunchConfig { grid, block, .. } = config;
        // SAFETY: function and stream are alive; `Kernel` promises that the pack has the entry
        // point's parameters in order, and each pointer is valid for its parameter until the driver
        // has copied it, before the call returns. The caller promises the rest.
        let launched = unsafe {
            sys::cuLaunchKernel(
                function.raw,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                config.dynamic_shared_bytes,
                core.queue(),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        checked("cuLaunchKernel", launched)?;
        recording::note_launch(self, &code, constants);
        Ok(())
    }

    /// In a recording, leaves the count to the replays and returns true; otherwise returns false.
    pub(in crate::device) fn note_count(&self, tally: &Tally, more: u64) -> bool {
        recording::note_count(&self.core, tally, more)
    }
}
