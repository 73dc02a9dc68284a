//! The limits of a device on launches and textures, and the check of a launch against them.

use crate::error::LaunchAxis;
use crate::{Dim3, Error, LaunchConfig};

/// The limits of a device on launches and textures.
///
/// ```
/// use halo_gpu::{Device, EmulatorOptions, Error, LaunchConfig, Limits};
///
/// // An emulator of a device with a smaller shared memory.
/// let mut limits = Limits::SM_90;
/// limits.shared_bytes_opt_in = 64 * 1024;
/// let device = Device::emulator_with(EmulatorOptions { limits, ..EmulatorOptions::default() });
/// assert_eq!(device.limits().threads_per_block, 1024);
///
/// let config = LaunchConfig::new(1, 128).with_dynamic_shared_bytes(100 * 1024);
/// assert!(config.check("any", Device::emulator().limits()).is_ok());
/// assert!(matches!(config.check("any", device.limits()), Err(Error::LaunchLimit { .. })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Threads of a block: the product of its three extents.
    pub threads_per_block: u32,
    /// Threads of a block along each axis.
    pub block: Dim3,
    /// Blocks of a grid along each axis.
    pub grid: Dim3,
    /// Shared memory of a block, in bytes, without opting in.
    pub shared_bytes: u32,
    /// Shared memory of a block, in bytes, with opting in. Launches that need more than
    /// [`shared_bytes`](Self::shared_bytes) opt in automatically.
    pub shared_bytes_opt_in: u32,
    /// Threads of a warp.
    pub warp_size: u32,
    /// Sizes of [`Texture2d`](crate::Texture2d).
    pub texture_2d: TextureLimits,
}

impl Limits {
    /// The limits of compute capability 9.0, the emulator's default.
    pub const SM_90: Self = Self {
        threads_per_block: 1024,
        block: Dim3::new(1024, 1024, 64),
        grid: Dim3::new(i32::MAX as u32, 65_535, 65_535),
        shared_bytes: 48 * 1024,
        shared_bytes_opt_in: 227 * 1024,
        warp_size: 32,
        texture_2d: TextureLimits::SM_90,
    };
}

/// The limits of 2-D textures over linear memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextureLimits {
    /// Elements of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The most bytes from one row to the next.
    pub pitch_bytes: u32,
    /// The pitch, in bytes, must be a multiple of this.
    pub pitch_alignment: u32,
    /// The address of the first element must be a multiple of this.
    pub alignment: u32,
}

impl TextureLimits {
    /// The limits of compute capability 9.0, the emulator's default.
    pub const SM_90: Self = Self {
        width: 131_072,
        height: 65_000,
        pitch_bytes: 2_097_120,
        pitch_alignment: 32,
        alignment: 512,
    };
}

impl LaunchConfig {
    /// Checks the geometry against a device's limits.
    ///
    /// ```
    /// use halo_gpu::{Error, LaunchAxis, LaunchConfig, Limits};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// LaunchConfig::new((70_000, 2), (32, 32)).check("mine", &Limits::SM_90)?;
    /// let refused = LaunchConfig::new((2, 70_000), (32, 32)).check("mine", &Limits::SM_90);
    /// assert!(matches!(refused, Err(Error::LaunchLimit { axis: LaunchAxis::GridY, .. })));
    /// assert_eq!(
    ///     refused.unwrap_err().to_string(),
    ///     "mine: grid.y is 70000, but must be at least 1 and at most 65535"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LaunchLimit`] for the first axis that exceeds its limit or is zero.
    pub fn check(&self, kernel: &'static str, limits: &Limits) -> Result<(), Error> {
        let extents = [
            (LaunchAxis::GridX, self.grid.x, limits.grid.x),
            (LaunchAxis::GridY, self.grid.y, limits.grid.y),
            (LaunchAxis::GridZ, self.grid.z, limits.grid.z),
            (LaunchAxis::BlockX, self.block.x, limits.block.x),
            (LaunchAxis::BlockY, self.block.y, limits.block.y),
            (LaunchAxis::BlockZ, self.block.z, limits.block.z),
        ];
        for (axis, given, limit) in extents {
            if given == 0 || given > limit {
                return Err(Error::LaunchLimit {
                    kernel,
                    axis,
                    required: format!("at least 1 and at most {limit}"),
                    given: u64::from(given),
                });
            }
        }
        let threads = self.block.volume();
        if threads > u128::from(limits.threads_per_block) {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::ThreadsPerBlock,
                required: format!("at most {}", limits.threads_per_block),
                // The product of three extents within their limits fits u64 easily.
                given: u64::try_from(threads).unwrap_or(u64::MAX),
            });
        }
        if self.dynamic_shared_bytes > limits.shared_bytes_opt_in {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::DynamicSharedBytes,
                required: format!("at most {}", limits.shared_bytes_opt_in),
                given: u64::from(self.dynamic_shared_bytes),
            });
        }
        Ok(())
    }
}
