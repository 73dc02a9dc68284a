//! A plate and the one it is swept into, in buffers or behind textures.

use super::gpu::{self, Variant};
use super::heat::{By, Heat2d};
use crate::elementwise::largest_difference;
use crate::scalar::Scalar;
use crate::{AddressMode, Buffer, Device, Error, Shape2, Texture2d};

/// A plate and the one it is swept into, with the same fixed walls.
#[derive(Debug)]
pub(super) enum State<T: Scalar> {
    Buffers {
        by: By,
        current: Buffer<T>,
        next: Buffer<T>,
        workspace: gpu::Workspace,
    },
    Textures {
        current: Texture2d,
        next: Texture2d,
    },
}

impl<T: Scalar> State<T> {
    pub(super) fn buffers(by: By, device: &Device, initial: &[T]) -> Result<Self, Error> {
        let current = device.upload(initial)?;
        let next = current.try_clone()?;
        Ok(Self::Buffers {
            by,
            current,
            next,
            workspace: None,
        })
    }

    pub(super) fn textures(shape: Shape2, device: &Device, initial: &[T]) -> Result<Self, Error> {
        Ok(Self::Textures {
            current: texture(shape, device, initial)?,
            next: texture(shape, device, initial)?,
        })
    }

    pub(super) fn device(&self) -> &Device {
        match self {
            Self::Buffers { current, .. } => current.device(),
            Self::Textures { current, .. } => current.device(),
        }
    }

    /// The kernel that was asked for.
    pub(super) const fn kernel(&self) -> Option<Variant> {
        match self {
            Self::Buffers {
                by: By::Kernel(variant),
                ..
            } => Some(*variant),
            Self::Buffers { .. } => None,
            Self::Textures { .. } => Some(Variant::Texture),
        }
    }

    /// Sweeps at least once and at most `sweeps` times, and returns how often.
    pub(super) fn sweep(
        &mut self,
        heat: &Heat2d,
        source: Option<&Buffer<T>>,
        sweeps: usize,
    ) -> Result<usize, Error> {
        match self {
            Self::Buffers {
                by,
                current,
                next,
                workspace,
            } => heat.advance(*by, source, current, next, sweeps, workspace),
            Self::Textures { current, next } => {
                gpu::launch_texture(heat.shape(), current, next)?;
                current.give_way_to(next);
                Ok(1)
            }
        }
    }

    /// The largest change by the last sweep, which was one of a launch of its own.
    pub(super) fn largest_change(&self) -> Result<T, Error> {
        match self {
            Self::Buffers { current, next, .. } => largest_difference(next, current),
            Self::Textures { current, next } => {
                let (old, new) = (&values_of(next)?, &values_of(current)?);
                Ok(T::largest_difference(old, new))
            }
        }
    }

    pub(super) fn to_vec(&self) -> Result<Vec<T>, Error> {
        match self {
            Self::Buffers { current, .. } => current.to_vec(),
            Self::Textures { current, .. } => values_of(current),
        }
    }
}

/// `values` behind a texture. No fetch lies outside, so how that is read is moot.
///
/// They are `f32`: no other type has a kernel that reads textures.
pub(super) fn texture<T: Scalar>(
    shape: Shape2,
    device: &Device,
    values: &[T],
) -> Result<Texture2d, Error> {
    let values = bytemuck::cast_slice(values);
    Texture2d::from_slice(device, shape.nx, shape.ny, AddressMode::Clamp, values)
}

/// The values behind a texture, which are `f32` as in [`texture`].
pub(super) fn values_of<T: Scalar>(texture: &Texture2d) -> Result<Vec<T>, Error> {
    Ok(bytemuck::allocation::cast_vec(texture.to_vec()?))
}
