//! First derivative of a 3-D field along one axis, 8th-order central differences.
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! The truncation error is `h⁸/630 · f⁽⁹⁾` (Fornberg, "Generation of finite
//! difference formulas on arbitrarily spaced grids", Math. Comp. 51 (1988)).
//!
//! [`Derivative3d`] says what is computed: the shape, the spacing and the
//! [`Boundary`]. Where it runs is the device of the buffers. On a CUDA device
//! and on the emulator it is one of the six textbook kernels, each of which can
//! also be asked for by name ([`Variant`]); on the CPU it is a port that takes
//! any size. All of them give the same bits.
//!
//! [`FiniteDifferences3d`] is for everything else: f64, second derivatives, the orders
//! of accuracy 2, 4, 6 and 8, and axes that are not periodic.
//!
//! ```
//! use halo_gpu::derivative3d::{Axis, Boundary, Derivative3d};
//! use halo_gpu::{Device, Field3, Shape3};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let device = Device::cpu();
//! let shape = Shape3::new(64, 8, 8);
//! let derivative = Derivative3d::unit_period(shape, Boundary::Periodic)?;
//! let f = Field3::from_fn(shape, |i, _, _| (std::f32::consts::TAU * i as f32 / 64.0).sin())?;
//! let df = derivative.of(&device, Axis::X, &f)?;
//! assert!((df[(0, 0, 0)] - std::f32::consts::TAU).abs() < 1e-4);
//! # Ok(())
//! # }
//! ```

mod cpu;
mod general;
mod gpu;
pub mod problem;

use crate::{Buffer, Device, DeviceKind, Error, Field3, Shape3};
pub use general::{AxisBoundary, FiniteDifferences3d, Operator, Real};
pub use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::{PENCILS_LARGE, PENCILS_SMALL};
use std::fmt;

/// The weights of the stencil for unit spacing: `WEIGHTS[m - 1]` belongs to the
/// two neighbours `m` points away.
pub const WEIGHTS: [f64; RADIUS] = [4.0 / 5.0, -1.0 / 5.0, 4.0 / 105.0, -1.0 / 280.0];

/// Floating-point operations per point: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_POINT: u64 = 11;

/// An axis of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Axis {
    /// The fastest axis: neighbours are adjacent in memory.
    X,
    /// Neighbours are `nx` elements apart.
    Y,
    /// The slowest axis: neighbours are `nx * ny` elements apart.
    Z,
}

impl Axis {
    /// All three, in order of memory.
    pub const ALL: [Self; 3] = [Self::X, Self::Y, Self::Z];

    /// 0, 1 or 2.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name of the extent along this axis: `nx`, `ny` or `nz`.
    #[must_use]
    pub const fn extent_name(self) -> &'static str {
        ["nx", "ny", "nz"][self.index()]
    }

    /// Points of `shape` along this axis.
    #[must_use]
    pub const fn extent(self, shape: Shape3) -> usize {
        [shape.nx, shape.ny, shape.nz][self.index()]
    }

    /// The distance in elements of two neighbours along this axis.
    #[must_use]
    pub const fn stride(self, shape: Shape3) -> usize {
        match self {
            Self::X => 1,
            Self::Y => shape.nx,
            Self::Z => shape.nx * shape.ny,
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(["x", "y", "z"][self.index()])
    }
}

/// What lies beyond the first and the last point of an axis.
///
/// The two periodic conventions differ in whether the point that begins the
/// next period is stored. Taking the one for the other shifts every value near
/// the seam by one point, an error that no smooth picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Boundary {
    /// The period is `n` spacings: the point after `n - 1` is point 0. The
    /// ordinary convention of periodic grids.
    Periodic,
    /// The period is `n - 1` spacings: both end points are stored, and point 0
    /// and point `n - 1` are the same physical point. The convention of the
    /// textbook problem. The left halo cell `-m` is `f[n-1-m]`, the right halo
    /// cell `n-1+m` is `f[m]`.
    PeriodicWithEndpoint,
}

impl Boundary {
    /// How many points of the period are stored twice: 0 or 1.
    #[must_use]
    pub const fn overlap(self) -> usize {
        match self {
            Self::Periodic => 0,
            Self::PeriodicWithEndpoint => 1,
        }
    }

    /// The spacing that makes the period of `n` points 1: `1/n` or `1/(n-1)`.
    #[must_use]
    pub fn unit_spacing(self, n: usize) -> f64 {
        1.0 / (n as f64 - self.overlap() as f64)
    }

    /// The fewest points along an axis for which the halo is made of points of
    /// the field: the radius of the stencil, and the end point stored twice.
    #[must_use]
    pub const fn min_extent(self) -> usize {
        RADIUS + self.overlap()
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Periodic => "periodic (period n)",
            Self::PeriodicWithEndpoint => "periodic with end point (period n-1)",
        })
    }
}

/// One of the textbook kernels.
///
/// | kernel | shared tile | threads per block | points per thread |
/// |---|---|---|---|
/// | `derivative3d_x_pencil4` | 4 × (nx + 8) | (nx, 4) | 1 |
/// | `derivative3d_x_pencil32` | 32 × (nx + 8) | (nx, 4) | 8 |
/// | `derivative3d_y_pencil4` | (ny + 8) × 4 | (4, ny) | 1 |
/// | `derivative3d_y_pencil32` | (ny + 8) × 32 | (32, ny / 8) | 8 |
/// | `derivative3d_z_pencil4` | (nz + 8) × 4 | (4, nz) | 1 |
/// | `derivative3d_z_pencil32` | (nz + 8) × 32 | (32, nz / 8) | 8 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    axis: Axis,
    pencils: usize,
}

impl Variant {
    /// The six kernels, by axis and then by tile.
    pub const ALL: [Self; 6] = {
        const fn of(axis: Axis, pencils: usize) -> Variant {
            Variant { axis, pencils }
        }
        [
            of(Axis::X, PENCILS_SMALL),
            of(Axis::X, PENCILS_LARGE),
            of(Axis::Y, PENCILS_SMALL),
            of(Axis::Y, PENCILS_LARGE),
            of(Axis::Z, PENCILS_SMALL),
            of(Axis::Z, PENCILS_LARGE),
        ]
    };

    /// The axis it differentiates along.
    #[must_use]
    pub const fn axis(self) -> Axis {
        self.axis
    }

    /// Pencils per tile: 4 or 32.
    #[must_use]
    pub const fn pencils(self) -> usize {
        self.pencils
    }

    /// The shared tile for a field of `shape`: its extents, slowest first.
    #[must_use]
    pub const fn tile(self, shape: Shape3) -> [usize; 2] {
        let len = self.axis.extent(shape) + 2 * RADIUS;
        match self.axis {
            Axis::X => [self.pencils, len],
            Axis::Y | Axis::Z => [len, self.pencils],
        }
    }

    /// The axis along which its pencils stand side by side.
    const fn side(self) -> Axis {
        match self.axis {
            Axis::X => Axis::Y,
            Axis::Y | Axis::Z => Axis::X,
        }
    }

    /// Checks that the tile of this kernel covers a field of `shape` exactly.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] with the extent and the multiple or the range that
    /// the kernel needs.
    pub fn check(self, shape: Shape3, boundary: Boundary) -> Result<(), Error> {
        let refuse = |axis: Axis, required: String| {
            Err(Error::InvalidSize {
                operation: self.name(),
                axis: axis.extent_name(),
                given: axis.extent(shape),
                required,
            })
        };
        let (len, side) = (self.axis.extent(shape), self.side().extent(shape));
        let (min, max) = (boundary.min_extent(), gpu::MAX_PENCIL_LEN);
        if !(min..=max).contains(&len) {
            return refuse(
                self.axis,
                format!("between {min} and {max} (one block owns whole pencils)"),
            );
        }
        let points = gpu::points_per_thread(self);
        if self.axis != Axis::X && !len.is_multiple_of(points) {
            return refuse(
                self.axis,
                format!("a multiple of {points} (the points of a thread)"),
            );
        }
        if side == 0 || !side.is_multiple_of(self.pencils) {
            return refuse(
                self.side(),
                format!(
                    "a positive multiple of {} (the pencils of a tile)",
                    self.pencils
                ),
            );
        }
        // The x kernels count the rows of the field in u32.
        let rows = shape.ny as u128 * shape.nz as u128;
        if self.axis == Axis::X && rows > u128::from(u32::MAX) {
            return Err(Error::IndexOverflow {
                what: format!("{}: ny * nz", self.name()),
                given: rows.to_string(),
                limit: u64::from(u32::MAX),
            });
        }
        Ok(())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A first derivative on a given grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Derivative3d {
    shape: Shape3,
    boundary: Boundary,
    spacing: [f64; 3],
    /// Weights over spacing, `[RADIUS * axis + m - 1]`: what the kernels' constant
    /// array holds. Divided in f64 and rounded once.
    weights: [f32; 3 * RADIUS],
}

impl Derivative3d {
    /// The derivative of fields of `shape` whose points are `spacing` apart
    /// (along x, y and z, in the unit of length of the result).
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] if the
    /// field has more points than can be indexed, [`Error::NonFinite`] and [`Error::InvalidParameter`] for a
    /// spacing that is not a positive number, or so small that a weight
    /// overflows f32.
    pub fn new(shape: Shape3, boundary: Boundary, spacing: [f64; 3]) -> Result<Self, Error> {
        const OPERATION: &str = "derivative3d";
        shape.points()?;
        let mut weights = [0.0; 3 * RADIUS];
        for axis in Axis::ALL {
            if axis.extent(shape) == 0 {
                return Err(Error::InvalidSize {
                    operation: OPERATION,
                    axis: axis.extent_name(),
                    given: 0,
                    required: "at least 1".into(),
                });
            }
            let parameter = ["spacing along x", "spacing along y", "spacing along z"][axis.index()];
            let h = spacing[axis.index()];
            if !h.is_finite() {
                return Err(Error::NonFinite {
                    operation: OPERATION,
                    parameter,
                    given: h,
                });
            }
            let scaled = WEIGHTS.map(|weight| (weight / h) as f32);
            // The smallest weight in size must not vanish, the largest not overflow.
            if !(h > 0.0) || scaled.iter().any(|weight| !weight.is_normal()) {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter,
                    given: h.to_string(),
                    required: "positive, with the weights over it in the range of f32".into(),
                });
            }
            weights[RADIUS * axis.index()..][..RADIUS].copy_from_slice(&scaled);
        }
        Ok(Self {
            shape,
            boundary,
            spacing,
            weights,
        })
    }

    /// The derivative on a grid whose period along each axis is 1.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::InvalidSize`] if an axis has fewer
    /// points than the boundary stores twice plus one, so that it has no period.
    pub fn unit_period(shape: Shape3, boundary: Boundary) -> Result<Self, Error> {
        for axis in Axis::ALL {
            if axis.extent(shape) <= boundary.overlap() {
                return Err(Error::InvalidSize {
                    operation: "derivative3d",
                    axis: axis.extent_name(),
                    given: axis.extent(shape),
                    required: format!("at least {}", boundary.overlap() + 1),
                });
            }
        }
        let spacing = Axis::ALL.map(|axis| boundary.unit_spacing(axis.extent(shape)));
        Self::new(shape, boundary, spacing)
    }

    /// The shape of the fields.
    #[must_use]
    pub const fn shape(&self) -> Shape3 {
        self.shape
    }

    /// The boundary, the same for all axes.
    #[must_use]
    pub const fn boundary(&self) -> Boundary {
        self.boundary
    }

    /// The spacing along x, y and z.
    #[must_use]
    pub const fn spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// The bytes a derivative has to move at the least: each point read once
    /// and written once.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        2 * size_of::<f32>() as u64 * self.points()
    }

    /// The floating-point operations of a derivative.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        FLOPS_PER_POINT * self.points()
    }

    const fn points(&self) -> u64 {
        // `new` checked that the product is no overflow.
        (self.shape.nx * self.shape.ny * self.shape.nz) as u64
    }

    /// ∂f/∂axis of a field on the host, computed on `device`.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and [`Error::OutOfMemory`].
    pub fn of(&self, device: &Device, axis: Axis, f: &Field3<f32>) -> Result<Field3<f32>, Error> {
        self.check_len("f", f.as_slice().len())?;
        let f = device.upload(f.as_slice())?;
        let mut df = device.alloc_filled(f.len(), f32::NAN)?;
        self.apply(axis, &f, &mut df)?;
        Field3::from_vec(self.shape, df.to_vec()?)
    }

    /// ∂f/∂axis, into `df`, on the device of the buffers.
    ///
    /// `f` and `df` hold `nx * ny * nz` elements, x fastest. On a CUDA device and
    /// on the emulator this picks the kernel with the larger tile that suits the
    /// shape.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that
    /// do not fit; [`Error::InvalidSize`] if the axis has too few points for the
    /// stencil, or if no kernel's tile suits the shape; and what a launch can
    /// fail with.
    pub fn apply(&self, axis: Axis, f: &Buffer<f32>, df: &mut Buffer<f32>) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        if f.device().kind() == DeviceKind::Cpu {
            return self.apply_port(axis, f, df);
        }
        let mut outcome = Ok(());
        for variant in Variant::ALL.into_iter().rev() {
            if variant.axis() == axis {
                // The last refusal to stay is the small tile's, which asks the least.
                outcome = variant.check(self.shape, self.boundary);
                if outcome.is_ok() {
                    return gpu::launch(self, variant, f, df);
                }
            }
        }
        outcome
    }

    /// ∂f/∂axis by the given kernel, into `df`.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply); [`Error::NotLaunchable`] if the buffers are on
    /// the CPU device, which runs no kernels.
    pub fn apply_with(
        &self,
        variant: Variant,
        f: &Buffer<f32>,
        df: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        variant.check(self.shape, self.boundary)?;
        gpu::launch(self, variant, f, df)
    }

    fn apply_port(&self, axis: Axis, f: &Buffer<f32>, df: &mut Buffer<f32>) -> Result<(), Error> {
        let (len, min) = (axis.extent(self.shape), self.boundary.min_extent());
        if len < min {
            return Err(Error::InvalidSize {
                operation: "derivative3d",
                axis: axis.extent_name(),
                given: len,
                required: format!("at least {min}"),
            });
        }
        let (Some(f), Some(df)) = (f.as_host_slice(), df.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::derivative(self, axis, f, df);
        Ok(())
    }

    /// The four weights over spacing along `axis`.
    fn weights(&self, axis: Axis) -> [f32; RADIUS] {
        std::array::from_fn(|m| self.weights[RADIUS * axis.index() + m])
    }

    fn check_buffers(&self, f: &Buffer<f32>, df: &Buffer<f32>) -> Result<(), Error> {
        self.check_len("f", f.len())?;
        self.check_len("df", df.len())?;
        f.device().require("derivative3d: df", df)
    }

    fn check_len(&self, what: &str, given: usize) -> Result<(), Error> {
        let required = self.shape.points()?;
        if given == required {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            what: format!("derivative3d: {what}"),
            required,
            given,
        })
    }
}
