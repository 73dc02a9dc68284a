//! A launch with the kernel's types erased.

use cuda_std::host::{Kernel, LaunchBounds};

/// A kernel and the arguments of a launch. It has no type parameters, so the code of a launch is
/// compiled once instead of once per kernel.
pub(crate) trait Call {
    /// [`Kernel::NAME`].
    fn name(&self) -> &'static str;

    /// [`Kernel::LAUNCH_BOUNDS`].
    fn bounds(&self) -> Option<LaunchBounds>;

    /// [`Kernel::pack`].
    #[cfg(halo_cuda)]
    fn pack(&self, pack: &mut cuda_std::host::ParamPack);

    /// [`Kernel::addresses`].
    fn addresses(&self, each: &mut dyn FnMut(&'static str, u64));

    /// Runs the kernel once.
    ///
    /// # Safety
    ///
    /// As for [`Kernel::run_thread`].
    unsafe fn run_thread(&self);
}

/// A kernel's typed arguments.
pub(crate) struct CallOf<'a, K: Kernel>(pub(crate) K::Args<'a>);

impl<K: Kernel> Call for CallOf<'_, K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn bounds(&self) -> Option<LaunchBounds> {
        K::LAUNCH_BOUNDS
    }

    #[cfg(halo_cuda)]
    fn pack(&self, pack: &mut cuda_std::host::ParamPack) {
        K::pack(&self.0, pack);
    }

    fn addresses(&self, each: &mut dyn FnMut(&'static str, u64)) {
        K::addresses(&self.0, each);
    }

    unsafe fn run_thread(&self) {
        // SAFETY: the caller's promise, passed on.
        unsafe { K::run_thread(&self.0) }
    }
}
