//! Launch geometry: grid, block and dynamic shared memory.

use crate::Error;
use crate::argument::Argument;
use gpu_kernels::registry::{Counted, Geometry, Refusal};
use std::fmt;

/// Three extents or a point, in the order x, y, z of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dim3 {
    /// Along x, the fastest axis.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

impl Dim3 {
    /// The extents `x`, `y`, `z`.
    #[must_use]
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The product of the three extents.
    #[must_use]
    pub const fn volume(self) -> u128 {
        self.x as u128 * self.y as u128 * self.z as u128
    }

    /// The three extents as an array.
    #[must_use]
    pub const fn to_array(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }
}

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self::new(x, 1, 1)
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self::new(x, y, 1)
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self::new(x, y, z)
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {} × {}", self.x, self.y, self.z)
    }
}

/// The geometry of a launch.
///
/// ```
/// use halo_gpu::{Dim3, LaunchConfig};
///
/// let config = LaunchConfig::new(16, (32, 4)).with_dynamic_shared_bytes(1024);
/// assert_eq!(config.grid, Dim3::new(16, 1, 1));
/// assert_eq!(config.block, Dim3::new(32, 4, 1));
/// assert_eq!(config.threads(), 16 * 32 * 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Blocks along each axis.
    pub grid: Dim3,
    /// Threads of a block along each axis.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
    /// See [`with_steps`](Self::with_steps).
    pub steps: u64,
}

impl LaunchConfig {
    /// `grid` blocks of `block` threads, without dynamic shared memory.
    #[must_use]
    pub fn new(grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            dynamic_shared_bytes: 0,
            steps: 0,
        }
    }

    /// This geometry with `bytes` of dynamic shared memory per block.
    #[must_use]
    pub const fn with_dynamic_shared_bytes(mut self, bytes: u32) -> Self {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// This geometry for a kernel whose threads execute about `steps` barriers, warp operations and
    /// atomics. Without it, the emulator takes a kernel that executes very many of them for an
    /// endless loop ([`EmulatorOptions::step_limit`](crate::EmulatorOptions)).
    ///
    /// ```
    /// use halo_gpu::LaunchConfig;
    ///
    /// let iterations = 600_000;
    /// assert_eq!(LaunchConfig::new(1, 64).with_steps(2 * iterations).steps, 1_200_000);
    /// ```
    #[must_use]
    pub const fn with_steps(mut self, steps: u64) -> Self {
        self.steps = steps;
        self
    }

    /// Threads of the whole grid.
    #[must_use]
    pub const fn threads(&self) -> u128 {
        self.grid.volume().saturating_mul(self.block.volume())
    }
}

/// The number of groups of `per_group` points that cover `points`: the extent of a grid along one
/// axis, or of a loop over tiles.
///
/// ```
/// use halo_gpu::blocks_for;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// assert_eq!(blocks_for("stencil1d_constant", 1000, 32)?, 32);
/// assert_eq!(blocks_for("stencil1d_constant", 1024, 32)?, 32);
/// assert_eq!(blocks_for("stencil1d_constant", 1025, 32)?, 33);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::IndexOverflow`] if the number does not fit `u32`; [`Error::InvalidParameter`] if
/// `per_group` is zero.
pub fn blocks_for(kernel: &'static str, points: usize, per_group: usize) -> Result<u32, Error> {
    Ok(gpu_kernels::registry::blocks_for(
        kernel, points, per_group,
    )?)
}

impl From<Geometry> for LaunchConfig {
    fn from(geometry: Geometry) -> Self {
        let ([gx, gy, gz], [bx, by, bz]) = (geometry.grid, geometry.block);
        Self::new((gx, gy, gz), (bx, by, bz))
            .with_dynamic_shared_bytes(geometry.dynamic_shared_bytes)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooMany {
                kernel,
                what,
                given,
                limit,
            } => {
                let (name, given) = match what {
                    Counted::BlocksFor { points } => (
                        "the number of blocks",
                        format!("{given} for {points} points"),
                    ),
                    Counted::Extent(name) => (name, given.to_string()),
                    Counted::Rows { nx } => ("ny", format!("{given} with rows of {nx} points")),
                    Counted::Planes { nx, ny } => {
                        ("nz", format!("{given} with planes of {nx} × {ny} points"))
                    }
                };
                Self::IndexOverflow {
                    quantity: Argument::new(kernel, name),
                    given,
                    limit,
                }
            }
            Refusal::NothingPerBlock { kernel } => Self::InvalidParameter {
                operation: kernel,
                parameter: "the number of points per block",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            },
        }
    }
}
