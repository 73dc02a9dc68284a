//! First derivative of a 3-D field along one axis, 8th-order central differences.
//!
//! ```text
//! df[i] = a (f[i+1] - f[i-1]) + b (f[i+2] - f[i-2])
//!       + c (f[i+3] - f[i-3]) + d (f[i+4] - f[i-4])
//! a = 4/5   b = -1/5   c = 4/105   d = -1/280      each over the grid spacing
//! ```
//!
//! The truncation error, what the formula gives minus the derivative, begins with
//! `-h⁸/630 · f⁽⁹⁾` (Fornberg, "Generation of finite difference formulas on arbitrarily
//! spaced grids", Math. Comp. 51 (1988)).
//!
//! [`Derivative3d`] says what is computed: the shape, the spacing and the
//! [`Boundary`]. Where it runs is the device of the buffers. On a CUDA device
//! and on the emulator it is a tuned kernel that suits the shape; each of those, and
//! the six textbook kernels, can also be asked for by name ([`Variant`]). On the CPU
//! it is a port. Any size will do, and all of them give the same bits.
//! [`Derivative3d::gradient`] computes all three derivatives and reads the field once.
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
mod tiles;
mod transfer;

use crate::{Buffer, Device, DeviceKind, Error, Field3, Shape3};
pub use general::{AxisBoundary, FiniteDifferences3d, Operator, Real};
pub use gpu::GRADIENT_KERNELS;
pub use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::{PENCILS_LARGE, PENCILS_SMALL};
use std::fmt;

pub use crate::finite_difference::CENTRAL_8 as WEIGHTS;

/// Floating-point operations per point: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_POINT: u64 = 11;

/// An axis of a field.
///
/// ```
/// use halo_gpu::Shape3;
/// use halo_gpu::derivative3d::Axis;
///
/// let shape = Shape3::new(4, 3, 2);
/// assert_eq!(Axis::ALL.map(|axis| axis.extent(shape)), [4, 3, 2]);
/// assert_eq!(Axis::ALL.map(|axis| axis.stride(shape)), [1, 4, 12]);
/// assert_eq!((Axis::Y.index(), Axis::Y.extent_name()), (1, "ny"));
/// ```
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

    /// The distance in elements of two neighbours along this axis, at most `usize::MAX`.
    #[must_use]
    pub const fn stride(self, shape: Shape3) -> usize {
        match self {
            Self::X => 1,
            Self::Y => shape.nx,
            Self::Z => shape.nx.saturating_mul(shape.ny),
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
    ///
    /// ```
    /// use halo_gpu::derivative3d::Boundary;
    ///
    /// // 64 intervals: the end point is stored or it is not.
    /// assert_eq!(Boundary::Periodic.unit_spacing(64), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.unit_spacing(65), 1.0 / 64.0);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.overlap(), 1);
    /// assert_eq!(Boundary::PeriodicWithEndpoint.min_extent(), 5);
    /// ```
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

/// One of the kernels.
///
/// The textbook's, which one block runs for whole pencils:
///
/// | kernel | shared tile | threads per block | points per thread |
/// |---|---|---|---|
/// | `derivative3d_x_pencil4` | 4 × (nx + 8) | (nx, 4) | 1 |
/// | `derivative3d_x_pencil32` | 32 × (nx + 8) | (nx, 4) | 8 |
/// | `derivative3d_y_pencil4` | (ny + 8) × 4 | (4, ny) | 1 |
/// | `derivative3d_y_pencil32` | (ny + 8) × 32 | (32, ny / 8) | 8 |
/// | `derivative3d_z_pencil4` | (nz + 8) × 4 | (4, nz) | 1 |
/// | `derivative3d_z_pencil32` | (nz + 8) × 32 | (32, nz / 8) | 8 |
///
/// And the tuned ones, which need no shared memory:
///
/// | kernel | shapes | how |
/// |---|---|---|
/// | `derivative3d_x_vector4` | nx a multiple of 4 | 16-byte accesses, neighbours from other lanes |
/// | `derivative3d_x_unaligned4` | any | the same for rows that begin anywhere |
/// | `derivative3d_y_column2` | nx even | goes along y, 8-byte accesses, neighbours in registers |
/// | `derivative3d_y_column1` | any | the same with 4-byte accesses |
/// | `derivative3d_z_column2` | nx · ny even | the same along z, 8-byte accesses |
/// | `derivative3d_z_column1` | any | the same with 4-byte accesses |
///
/// ```
/// use halo_gpu::derivative3d::{Axis, Boundary, Variant};
/// use halo_gpu::{Error, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // What the library picks depends on whether rows are whole numbers of vectors.
/// let tuned = |nx| Variant::tuned(Axis::X, Shape3::new(nx, 8, 8)).name();
/// assert_eq!(tuned(64), "derivative3d_x_vector4");
/// assert_eq!(tuned(63), "derivative3d_x_unaligned4");
///
/// // The textbook's tiles hold 4 whole rows with their halos, and need as many.
/// let textbook = Variant::TEXTBOOK[0];
/// assert_eq!(textbook.tile(Shape3::cube(64)), Some([4, 72]));
/// textbook.check(Shape3::cube(64), Boundary::Periodic)?;
/// let refused = textbook.check(Shape3::new(64, 62, 64), Boundary::Periodic);
/// assert!(matches!(refused, Err(Error::InvalidSize { axis: "ny", given: 62, .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Variant {
    axis: Axis,
    method: Method,
}

/// How a kernel goes about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Method {
    /// Tiles of so many whole pencils in shared memory.
    Pencils(usize),
    /// No tile; aligned vectors of 4 points along x, 2 along y and z.
    Vectors,
    /// No tile; any shape.
    Any,
}

impl Variant {
    /// The six textbook kernels, by axis and then by tile.
    pub const TEXTBOOK: [Self; 6] = {
        const SMALL: Method = Method::Pencils(PENCILS_SMALL);
        const LARGE: Method = Method::Pencils(PENCILS_LARGE);
        [
            Self::of(Axis::X, SMALL),
            Self::of(Axis::X, LARGE),
            Self::of(Axis::Y, SMALL),
            Self::of(Axis::Y, LARGE),
            Self::of(Axis::Z, SMALL),
            Self::of(Axis::Z, LARGE),
        ]
    };

    /// The six tuned kernels, by axis, that for vectors first.
    pub const TUNED: [Self; 6] = [
        Self::of(Axis::X, Method::Vectors),
        Self::of(Axis::X, Method::Any),
        Self::of(Axis::Y, Method::Vectors),
        Self::of(Axis::Y, Method::Any),
        Self::of(Axis::Z, Method::Vectors),
        Self::of(Axis::Z, Method::Any),
    ];

    const fn of(axis: Axis, method: Method) -> Self {
        Self { axis, method }
    }

    /// All kernels, the textbook's first.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TEXTBOOK.into_iter().chain(Self::TUNED)
    }

    /// The kernel that the library picks along `axis` for fields of `shape`.
    #[must_use]
    pub fn tuned(axis: Axis, shape: Shape3) -> Self {
        let vectors = Self::of(axis, Method::Vectors);
        if vectors.vectors_fit(shape) {
            vectors
        } else {
            Self::of(axis, Method::Any)
        }
    }

    /// The axis it differentiates along.
    #[must_use]
    pub const fn axis(self) -> Axis {
        self.axis
    }

    /// Pencils per tile, 4 or 32, of a textbook kernel.
    #[must_use]
    pub const fn pencils(self) -> Option<usize> {
        match self.method {
            Method::Pencils(pencils) => Some(pencils),
            Method::Vectors | Method::Any => None,
        }
    }

    /// The shared tile of a textbook kernel for a field of `shape`: its extents,
    /// slowest first, each at most `usize::MAX`.
    #[must_use]
    pub const fn tile(self, shape: Shape3) -> Option<[usize; 2]> {
        let Some(pencils) = self.pencils() else {
            return None;
        };
        let len = self.axis.extent(shape).saturating_add(2 * RADIUS);
        Some(match self.axis {
            Axis::X => [pencils, len],
            Axis::Y | Axis::Z => [len, pencils],
        })
    }

    /// The axis along which its pencils stand side by side.
    const fn side(self) -> Axis {
        match self.axis {
            Axis::X => Axis::Y,
            Axis::Y | Axis::Z => Axis::X,
        }
    }

    /// Whether every row, or for z every plane, is a whole number of vectors.
    const fn vectors_fit(self, shape: Shape3) -> bool {
        match self.axis {
            Axis::X => shape.nx.is_multiple_of(4),
            Axis::Y => shape.nx.is_multiple_of(2),
            Axis::Z => shape.nx.is_multiple_of(2) || shape.ny.is_multiple_of(2),
        }
    }

    /// Checks that this kernel can compute on a field of `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] with the extent and the multiple or the range that
    /// the kernel needs, [`Error::IndexOverflow`] for more points than it can count.
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
        let min = boundary.min_extent();
        let Method::Pencils(pencils) = self.method else {
            if len < min {
                return refuse(self.axis, format!("at least {min}"));
            }
            if self.method == Method::Vectors && !self.vectors_fit(shape) {
                let what = match self.axis {
                    Axis::X => "a multiple of 4, for accesses of 16 bytes",
                    Axis::Y => "even, for accesses of 8 bytes",
                    Axis::Z => "even, or ny, for accesses of 8 bytes",
                };
                return refuse(Axis::X, what.to_owned());
            }
            return gpu::check_extents(self, shape);
        };
        let max = gpu::MAX_PENCIL_LEN;
        if !(min..=max).contains(&len) {
            return refuse(
                self.axis,
                format!("between {min} and {max} (one block owns whole pencils)"),
            );
        }
        let points = gpu::points_per_thread(pencils);
        if self.axis != Axis::X && !len.is_multiple_of(points) {
            return refuse(
                self.axis,
                format!("a multiple of {points} (the points of a thread)"),
            );
        }
        if side == 0 || !side.is_multiple_of(pencils) {
            return refuse(
                self.side(),
                format!("a positive multiple of {pencils} (the pencils of a tile)"),
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
///
/// A field in the unit U on a grid whose spacing is in the unit L has derivatives in
/// U / L; fields and buffers hold `nx * ny * nz` elements, x fastest.
///
/// **NaN and infinities** are not looked for. They go as far as the stencil reaches
/// along the axis, around the ends of the period as well, and no farther: a NaN at one
/// point makes the derivatives at the four points on either side NaN, and not that at
/// the point itself, which its own derivative does not read. All devices agree on where
/// the NaNs are; which of the many NaNs it is, is the processor's choice.
///
/// ```
/// use halo_gpu::derivative3d::{Axis, Boundary, Derivative3d};
/// use halo_gpu::{Device, Field3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let shape = Shape3::new(16, 4, 4);
/// let derivative = Derivative3d::new(shape, Boundary::Periodic, [0.5, 0.5, 1.0])?;
/// let mut f = Field3::filled(shape, 1.0_f32)?;
/// f[(2, 0, 0)] = f32::NAN;
/// for device in [Device::cpu(), Device::emulator()] {
///     let df = derivative.of(&device, Axis::X, &f)?;
///     let nan: Vec<usize> = (0..16).filter(|&i| df[(i, 0, 0)].is_nan()).collect();
///     assert_eq!(nan, [0, 1, 3, 4, 5, 6, 14, 15]);
///     assert_eq!(df[(2, 0, 0)], 0.0);
/// }
/// # Ok(())
/// # }
/// ```
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
    /// The derivative of fields of `shape` whose points are `spacing` apart along x, y
    /// and z. The unit of the spacing is that of length in the result: with metres, and
    /// a field in kelvins, derivatives are in kelvins per metre.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] if the field
    /// has more points than can be indexed, [`Error::NonFinite`] and
    /// [`Error::InvalidParameter`] for a spacing that is not a positive number, or such
    /// that a weight leaves the range of f32.
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
    /// and written once. At most `u64::MAX`.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.points().saturating_mul(2 * size_of::<f32>() as u64)
    }

    /// The floating-point operations of a derivative, at most `u64::MAX`.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        self.points().saturating_mul(FLOPS_PER_POINT)
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
        let [f] = transfer::upload("derivative3d: f", self.shape, device, [f])?;
        let f = f.as_buffer();
        let mut results = transfer::for_results(f)?;
        let [df] = &mut results;
        self.apply(axis, f, df)?;
        let [df] = transfer::download(self.shape, results)?;
        Ok(df)
    }

    /// ∂f/∂axis, into `df`, on the device of the buffers.
    ///
    /// `f` and `df` hold `nx * ny * nz` elements, x fastest. On a CUDA device and
    /// on the emulator this is the kernel that [`Variant::tuned`] names.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and
    /// [`Error::DeviceMismatch`] for buffers that
    /// do not fit; [`Error::InvalidSize`] if the axis has too few points for the
    /// stencil; and what a launch can fail with.
    pub fn apply(&self, axis: Axis, f: &Buffer<f32>, df: &mut Buffer<f32>) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        if f.device().kind() == DeviceKind::Cpu {
            self.check_extent(axis)?;
            let (Some(f), Some(df)) = (f.as_host_slice(), df.as_host_mut_slice()) else {
                unreachable!("buffers of the CPU device are host memory");
            };
            cpu::derivative(self, axis, f, df);
            return Ok(());
        }
        self.apply_with(Variant::tuned(axis, self.shape), f, df)
    }

    /// ∂f/∂axis by the given kernel, into `df`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, Derivative3d, Variant};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let shape = Shape3::new(8, 8, 4);
    /// let derivative = Derivative3d::unit_period(shape, Boundary::Periodic)?;
    /// let values: Vec<f32> = (0..256).map(|n| (n * n % 61) as f32).collect();
    /// let f = device.upload(&values)?;
    /// let (mut tuned, mut textbook) = (f.try_clone()?, f.try_clone()?);
    /// derivative.apply(Axis::X, &f, &mut tuned)?;
    /// derivative.apply_with(Variant::TEXTBOOK[0], &f, &mut textbook)?; // 4 pencils along x
    /// assert_ne!(tuned.to_vec()?, values);
    /// assert_eq!(textbook.to_vec()?, tuned.to_vec()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and as [`Variant::check`];
    /// [`Error::NotLaunchable`] if the buffers are on the CPU device, which runs no
    /// kernels.
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

    /// The bytes a gradient has to move at the least: each point read once, and one of
    /// each component written. At most `u64::MAX`.
    #[must_use]
    pub const fn gradient_bytes(&self) -> u64 {
        self.bytes().saturating_mul(2)
    }

    /// The floating-point operations of a gradient, at most `u64::MAX`.
    #[must_use]
    pub const fn gradient_flops(&self) -> u64 {
        self.flops().saturating_mul(3)
    }

    /// ∂f/∂x, ∂f/∂y and ∂f/∂z of a field on the host, computed on `device`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Boundary, Derivative3d};
    /// use halo_gpu::{Device, Field3, Shape3};
    /// use std::f32::consts::TAU;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // sin(2π x) + cos(2π y) on the unit cube.
    /// let shape = Shape3::new(64, 32, 4);
    /// let derivative = Derivative3d::unit_period(shape, Boundary::Periodic)?;
    /// let f = Field3::from_fn(shape, |i, j, _| {
    ///     (TAU * i as f32 / 64.0).sin() + (TAU * j as f32 / 32.0).cos()
    /// })?;
    /// let [x, y, z] = derivative.gradient_of(&Device::cpu(), &f)?;
    /// assert!((x[(0, 5, 1)] - TAU).abs() < 1e-4);
    /// assert!((y[(3, 8, 2)] + TAU).abs() < 1e-4);
    /// assert_eq!(z[(7, 7, 3)], 0.0);
    ///
    /// // The field is read once, and three components are written.
    /// assert_eq!(derivative.gradient_kernel(), "derivative3d_gradient4");
    /// assert_eq!(derivative.gradient_bytes(), 4 * 4 * 64 * 32 * 4);
    /// assert_eq!(derivative.gradient_flops(), 3 * derivative.flops());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gradient`](Self::gradient), and [`Error::OutOfMemory`].
    pub fn gradient_of(&self, device: &Device, f: &Field3<f32>) -> Result<[Field3<f32>; 3], Error> {
        let [f] = transfer::upload("derivative3d: f", self.shape, device, [f])?;
        let f = f.as_buffer();
        let mut gradient = transfer::for_results(f)?;
        self.gradient(f, gradient.each_mut())?;
        transfer::download(self.shape, gradient)
    }

    /// The kernel that [`gradient`](Self::gradient) launches, one of
    /// [`GRADIENT_KERNELS`].
    #[must_use]
    pub const fn gradient_kernel(&self) -> &'static str {
        gpu::gradient_kernel(self.shape)
    }

    /// ∂f/∂x, ∂f/∂y and ∂f/∂z, into the three buffers of `df`, on the device of the
    /// buffers.
    ///
    /// All hold `nx * ny * nz` elements, x fastest. On a CUDA device and on the
    /// emulator this is one launch of a kernel that reads the field once,
    /// [`GRADIENT_KERNELS`]. The results are the bits that three calls of
    /// [`apply`](Self::apply) give.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), for any of the axes.
    pub fn gradient(&self, f: &Buffer<f32>, df: [&mut Buffer<f32>; 3]) -> Result<(), Error> {
        for (axis, df) in Axis::ALL.into_iter().zip(&df) {
            self.check_buffers(f, df)?;
            self.check_extent(axis)?;
        }
        if f.device().kind() == DeviceKind::Cpu {
            let [x, y, z] = df.map(Buffer::as_host_mut_slice);
            let (Some(f), Some(x), Some(y), Some(z)) = (f.as_host_slice(), x, y, z) else {
                unreachable!("buffers of the CPU device are host memory");
            };
            cpu::gradient(self, f, [x, y, z]);
            return Ok(());
        }
        gpu::launch_gradient(self, f, df)
    }

    /// Whether [`gradient`](Self::gradient) has its faster kernel for this shape, and
    /// enough points along each axis.
    fn has_vector_gradient(&self) -> bool {
        let long_enough = |axis| self.check_extent(axis).is_ok();
        gpu::has_vector_gradient(self.shape) && Axis::ALL.into_iter().all(long_enough)
    }

    /// The four weights over spacing along `axis`.
    fn weights(&self, axis: Axis) -> [f32; RADIUS] {
        std::array::from_fn(|m| self.weights[RADIUS * axis.index() + m])
    }

    /// Whether the axis has enough points for the stencil.
    fn check_extent(&self, axis: Axis) -> Result<(), Error> {
        let (len, min) = (axis.extent(self.shape), self.boundary.min_extent());
        if len >= min {
            return Ok(());
        }
        Err(Error::InvalidSize {
            operation: "derivative3d",
            axis: axis.extent_name(),
            given: len,
            required: format!("at least {min}"),
        })
    }

    fn check_buffers(&self, f: &Buffer<f32>, df: &Buffer<f32>) -> Result<(), Error> {
        f.require_shape(|| "derivative3d: f".to_owned(), self.shape)?;
        df.require_shape(|| "derivative3d: df".to_owned(), self.shape)?;
        f.device().require("derivative3d: df", df)
    }
}
