//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{BLOCK, MultiplyAdds};
use crate::{Buffer, Element, Error, LaunchConfig, launch};
use cuda_std::host::Kernel;
use gpu_kernels::roofline::fma::*;

/// f32 or f64: what is multiplied and added.
pub trait Real: Element + private::Entry {
    /// The factor of every chain; below 1, so that all of them stay finite.
    const FACTOR: Self;
    /// The addend of every chain.
    const ADDEND: Self;
    /// The kernel's name.
    const KERNEL: &'static str;
}

pub(super) mod private {
    use crate::{Buffer, Error};

    /// Seals [`Real`](super::Real), and launches its kernel.
    pub trait Entry: Sized + crate::Element {
        /// Launches what `work` says; it has checked the length of `sums`.
        fn launch_entry(work: &super::MultiplyAdds, sums: &mut Buffer<Self>) -> Result<(), Error>;
    }
}

macro_rules! entries {
    ($($real:ty => $kernel:ident;)+) => {$(
        impl Real for $real {
            const FACTOR: Self = 0.999;
            const ADDEND: Self = 0.25;
            const KERNEL: &'static str = $kernel::NAME;
        }

        impl private::Entry for $real {
            fn launch_entry(work: &MultiplyAdds, sums: &mut Buffer<Self>) -> Result<(), Error> {
                let threads = work.threads();
                if sums.len() != threads {
                    return Err(Error::LengthMismatch {
                        what: "the buffer for the sums".to_owned(),
                        required: threads,
                        given: sums.len(),
                    });
                }
                let device = sums.device().clone();
                let config = LaunchConfig::new(work.blocks, BLOCK);
                let args = $kernel::args(Self::FACTOR, Self::ADDEND, work.rounds, sums);
                // SAFETY: the sums have one element per thread of the launch, which
                // extends along x; devices hold some 2^19 threads.
                unsafe { launch::<$kernel>(&device, &config, args) }
            }
        }
    )+};
}

entries! {
    f32 => roofline_fma_f32;
    f64 => roofline_fma_f64;
}
