//! Launches the multiply-add kernels, on a CUDA device or on the emulator.

use crate::variants::launch_registered;
use crate::{Buffer, Constants, Element, Error};
use gpu_kernels::registry::{Entry, Problem, Registered};
use gpu_kernels::roofline::BLOCK;
use gpu_kernels::roofline::fma::*;

/// The type of the multiply-adds: f32 or f64.
pub trait Real: Element + private::Sealed {
    /// The factor of every chain; below 1, so that all values stay finite.
    const FACTOR: Self;
    /// The addend of every chain.
    const ADDEND: Self;
    /// The kernel's name.
    const KERNEL: &'static str = Self::ENTRY.name;
}

pub(super) mod private {
    use super::*;

    /// Seals [`Real`] and launches its kernel.
    pub trait Sealed: Element {
        /// The kernel's entry in the table.
        const ENTRY: Entry;
        /// Launches the kernel in `blocks` whole blocks, with a sum for each thread.
        fn launch(blocks: u32, rounds: u32, sums: &mut Buffer<Self>) -> Result<(), Error>;
    }
}

macro_rules! kernels {
    ($($real:ty => $kernel:ident;)+) => {$(
        impl Real for $real {
            const FACTOR: Self = 0.999;
            const ADDEND: Self = 0.25;
        }

        impl private::Sealed for $real {
            const ENTRY: Entry = <$kernel as Registered>::ENTRY;

            fn launch(blocks: u32, rounds: u32, sums: &mut Buffer<Self>) -> Result<(), Error> {
                let required = blocks as usize * BLOCK as usize;
                if sums.len() != required {
                    return Err(Error::LengthMismatch {
                        argument: "the buffer for the sums".into(),
                        required,
                        given: sums.len(),
                    });
                }
                let device = sums.device().clone();
                let work = Problem::plane(required, rounds as usize);
                let args = $kernel::args(Self::FACTOR, Self::ADDEND, rounds, sums);
                // SAFETY: the sums have one element per thread of the launch, which has whole
                // blocks along x; devices hold about 2^19 threads.
                unsafe { launch_registered::<$kernel>(&device, &work, &Constants::new(), args) }
            }
        }
    )+};
}

kernels! {
    f32 => roofline_fma_f32;
    f64 => roofline_fma_f64;
}
