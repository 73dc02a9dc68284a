//! Launches of the kernels, on a CUDA device or on the emulator.

use super::{Body, Gravity, Real, Variant, check_buffers};
use crate::{Buffer, Error, LaunchConfig, blocks_for, launch};
use cuda_std::host::Kernel;
use gpu_kernels::nbody::{aos::*, shared::*};

/// What the library computes with where it is not told.
pub(super) const DEFAULT: Variant = Variant::Shared;

/// The kernels for one type.
pub trait Entries: Sized {
    /// The entry point of `variant`.
    fn entry_name(variant: Variant) -> &'static str;

    /// The acceleration of each of `bodies` by `variant`, into `accelerations`.
    ///
    /// As [`Gravity::apply_with`]: it checks what the launch relies on itself,
    /// since whoever can name [`Real`] can call this.
    fn launch_entry(
        gravity: &Gravity,
        variant: Variant,
        bodies: &Buffer<Body<Self>>,
        accelerations: &mut Buffer<[Self; 3]>,
    ) -> Result<(), Error>
    where
        Self: Real;
}

/// Grid, block and shared memory for `n` bodies of `T`.
fn launch_config<T: Real>(variant: Variant, n: usize, block: u32) -> Result<LaunchConfig, Error> {
    let grid = blocks_for(variant.name::<T>(), n, block as usize)?;
    let config = LaunchConfig::new(grid, block);
    Ok(match variant {
        // At most 1024 bodies of 32 bytes.
        Variant::Shared => config.with_dynamic_shared_bytes(block * size_of::<Body<T>>() as u32),
        _ => config,
    })
}

macro_rules! entries {
    ($real:ty: $($variant:ident => $kernel:ident,)+) => {
        impl Entries for $real {
            fn entry_name(variant: Variant) -> &'static str {
                match variant {
                    $(Variant::$variant => $kernel::NAME,)+
                }
            }

            fn launch_entry(
                gravity: &Gravity,
                variant: Variant,
                bodies: &Buffer<Body<Self>>,
                accelerations: &mut Buffer<[Self; 3]>,
            ) -> Result<(), Error> {
                check_buffers(bodies, accelerations)?;
                let softening_squared = gravity.softening_squared::<Self>()?;
                let config = launch_config::<Self>(variant, bodies.len(), gravity.block())?;
                let device = bodies.device().clone();
                // At most MAX_BODIES.
                let n = bodies.len() as u32;
                match variant {
                    $(Variant::$variant => {
                        let args = $kernel::args(bodies, n, softening_squared, accelerations);
                        // SAFETY: `check_buffers` found n elements in both, from 1
                        // to MAX_BODIES, and both on `device`; they are distinct,
                        // since accelerations is borrowed mutably. The grid extends
                        // along x and has n threads and less than a block more,
                        // below 2^32; the block of a Gravity is a multiple of 32
                        // and with it of SHARED_UNROLL. The tile, where there is
                        // one, has a body for each thread.
                        unsafe { launch::<$kernel>(&device, &config, args) }
                    })+
                }
            }
        }
    };
}

entries! {
    f32:
    AosUnroll1 => nbody_aos_unroll1_f32,
    AosUnroll2 => nbody_aos_unroll2_f32,
    AosUnroll4 => nbody_aos_unroll4_f32,
    AosUnroll8 => nbody_aos_unroll8_f32,
    AosUnroll16 => nbody_aos_unroll16_f32,
    AosUnroll32 => nbody_aos_unroll32_f32,
    Shared => nbody_shared_f32,
}

entries! {
    f64:
    AosUnroll1 => nbody_aos_unroll1_f64,
    AosUnroll2 => nbody_aos_unroll2_f64,
    AosUnroll4 => nbody_aos_unroll4_f64,
    AosUnroll8 => nbody_aos_unroll8_f64,
    AosUnroll16 => nbody_aos_unroll16_f64,
    AosUnroll32 => nbody_aos_unroll32_f64,
    Shared => nbody_shared_f64,
}
