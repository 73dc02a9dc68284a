//! Launches of the kernels, on a CUDA device or on the emulator.

use super::Variant;
use crate::{Buffer, Error, LaunchConfig, Shape2, Texture2d, blocks_for, launch as launch_kernel};
use cuda_std::host::Kernel;
use gpu_kernels::heat2d as kernels;
use kernels::{BLOCK, HALO, OVERLAP_STEP};

/// What the library sweeps with where it is not told.
pub(super) const DEFAULT: Variant = Variant::Global;

impl Variant {
    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub const fn name(self) -> &'static str {
        use kernels::{global::*, shared_core::*, shared_halo::*, shared_overlap::*, texture::*};
        match self {
            Self::Global => heat2d_global::NAME,
            Self::SharedCore => heat2d_shared_core::NAME,
            Self::SharedOverlap => heat2d_shared_overlap::NAME,
            Self::SharedHalo => heat2d_shared_halo::NAME,
            Self::Texture => heat2d_texture::NAME,
        }
    }

    /// Grid and block for a plate of `shape`, at least 3 × 3.
    fn launch_config(self, shape: Shape2) -> Result<LaunchConfig, Error> {
        let walls = 2 * HALO as usize;
        let blocks = |extent: usize| match self {
            // A thread for every point, walls included.
            Self::Global | Self::SharedCore | Self::Texture => {
                blocks_for(self.name(), extent, BLOCK as usize)
            }
            // A block for every so many interior points.
            Self::SharedOverlap => blocks_for(self.name(), extent - walls, OVERLAP_STEP as usize),
            Self::SharedHalo => blocks_for(self.name(), extent - walls, BLOCK as usize),
        };
        Ok(LaunchConfig::new(
            (blocks(shape.nx)?, blocks(shape.ny)?),
            (BLOCK, BLOCK),
        ))
    }
}

/// Both extents as kernels take them.
fn extents(shape: Shape2) -> (u32, u32) {
    // `Heat2d::new` has found them to be at most i32::MAX.
    (shape.nx as u32, shape.ny as u32)
}

/// One sweep by `variant`, which is not the one with textures, on the device of
/// the buffers.
///
/// The caller has checked the buffers' lengths and devices; the shape is that of
/// a [`Heat2d`](super::Heat2d).
pub(super) fn launch(
    shape: Shape2,
    variant: Variant,
    old: &Buffer<f32>,
    new: &mut Buffer<f32>,
) -> Result<(), Error> {
    use kernels::{global::*, shared_core::*, shared_halo::*, shared_overlap::*};

    let config = variant.launch_config(shape)?;
    let (nx, ny) = extents(shape);

    macro_rules! launch {
        ($kernel:ident) => {{
            let device = old.device().clone();
            let args = $kernel::args(old, new, nx, ny);
            // SAFETY: old and new have nx * ny elements each, are both on
            // `device` and are distinct, since new is borrowed mutably. Both
            // extents are at least 3 and at most i32::MAX, and the geometry is
            // the one the kernel documents.
            unsafe { launch_kernel::<$kernel>(&device, &config, args) }
        }};
    }
    match variant {
        Variant::Global => launch!(heat2d_global),
        Variant::SharedCore => launch!(heat2d_shared_core),
        Variant::SharedOverlap => launch!(heat2d_shared_overlap),
        Variant::SharedHalo => launch!(heat2d_shared_halo),
        Variant::Texture => unreachable!("heat2d_texture reads a texture, not a buffer"),
    }
}

/// One sweep by the kernel with textures.
///
/// Both textures are of `shape` and on one device; the caller keeps both until
/// the launch is over or, as dropping a texture does, waits for the device.
pub(super) fn launch_texture(
    shape: Shape2,
    old: &Texture2d,
    new: &mut Texture2d,
) -> Result<(), Error> {
    use kernels::texture::heat2d_texture;

    let config = Variant::Texture.launch_config(shape)?;
    let (nx, ny) = extents(shape);
    // A texture's pitch in bytes fits u32, says the device's limit on it.
    let pitch = new.pitch() as u32;
    let device = old.device().clone();
    let args = heat2d_texture::args(old.handle(), new, nx, ny, pitch);
    // SAFETY: `old` is a texture of nx × ny elements with point filtering and
    // unnormalised coordinates, as all of this library are, on `device`; so is
    // `new`, which has `pitch` elements per row and is another texture, since it
    // is borrowed mutably. A texture lives until its device has done what it was
    // given. The limits on textures keep both extents below 2²², and the
    // geometry is the one the kernel documents.
    unsafe { launch_kernel::<heat2d_texture>(&device, &config, args) }
}
