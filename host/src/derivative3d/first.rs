//! The first derivative of the 8th order in f32 along a periodic axis.

use super::boundary;
use super::cpu::{Port, Stencil};
use super::gpu;
use super::operator::Operator;
use super::transfer;
use super::variant::{Variant, problem};
use crate::axis::Axis;
use crate::finite_difference::CENTRAL_8 as WEIGHTS;
use crate::grid::Boundary;
use crate::streaming::Stores;
use crate::{Buffer, Device, DeviceKind, Error, Field3, Shape3};
use gpu_kernels::derivative3d::RADIUS;
use gpu_kernels::derivative3d::geometry::{gradient, one_derivative};

/// Floating-point operations per point: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_POINT: u64 = 11;

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
    /// that a weight leaves the range of f32, and for a boundary that is not periodic.
    pub fn new(shape: Shape3, boundary: Boundary, spacing: [f64; 3]) -> Result<Self, Error> {
        const OPERATION: &str = "derivative3d";
        boundary::require_periodic(OPERATION, boundary)?;
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
        boundary::require_periodic("derivative3d", boundary)?;
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
        one_derivative(&problem(self.shape)).bytes
    }

    /// The floating-point operations of a derivative, at most `u64::MAX`.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        one_derivative(&problem(self.shape)).flops
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
            let stores = Stores::of(&[&mut *df]);
            f32::along(&self.stencil(axis), stores, f, df);
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
        gpu::launch(variant, self.grid(), f, df)
    }

    /// The bytes a gradient has to move at the least: each point read once, and one of
    /// each component written. At most `u64::MAX`.
    #[must_use]
    pub const fn gradient_bytes(&self) -> u64 {
        gradient(&problem(self.shape)).bytes
    }

    /// The floating-point operations of a gradient, at most `u64::MAX`.
    #[must_use]
    pub const fn gradient_flops(&self) -> u64 {
        gradient(&problem(self.shape)).flops
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

    /// The kernel that [`gradient`](Self::gradient) launches:
    /// [`GRADIENT_KERNEL`](super::GRADIENT_KERNEL) or, unless rows are a multiple of 4
    /// points, the general one.
    #[must_use]
    pub const fn gradient_kernel(&self) -> &'static str {
        gpu::gradient_kernel(self.shape)
    }

    /// ∂f/∂x, ∂f/∂y and ∂f/∂z, into the three buffers of `df`, on the device of the
    /// buffers.
    ///
    /// All hold `nx * ny * nz` elements, x fastest. On a CUDA device and on the
    /// emulator this is one launch of a kernel that reads the field once,
    /// [`gradient_kernel`](Self::gradient_kernel). The results are the bits that three
    /// calls of [`apply`](Self::apply) give.
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
            let stencils = Axis::ALL.map(|axis| self.stencil(axis));
            let mut df = [x, y, z];
            let stores = Stores::of(&df);
            f32::operator(&stencils, Operator::Gradient, stores, &[f], &mut df);
            return Ok(());
        }
        gpu::launch_gradient(self.grid(), f, df)
    }

    /// Whether [`gradient`](Self::gradient) has its faster kernel for this shape, and
    /// enough points along each axis.
    pub(super) fn has_vector_gradient(&self) -> bool {
        let long_enough = |axis| self.check_extent(axis).is_ok();
        gpu::has_vector_gradient(self.shape) && Axis::ALL.into_iter().all(long_enough)
    }

    /// The stencil along `axis`, as the port takes it.
    fn stencil(&self, axis: Axis) -> Stencil<'_, f32> {
        let weights = std::array::from_fn(|m| self.weights[RADIUS * axis.index() + m]);
        Stencil::periodic(self.shape, axis, self.boundary.overlap(), weights)
    }

    /// The grid, as the kernels take it.
    fn grid(&self) -> gpu::Grid<'_> {
        gpu::Grid {
            shape: self.shape,
            overlap: self.boundary.overlap() as u32,
            weights: &self.weights,
        }
    }

    /// Whether the axis has enough points for the stencil.
    fn check_extent(&self, axis: Axis) -> Result<(), Error> {
        let (len, min) = (axis.extent(self.shape), boundary::min_extent(self.boundary));
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
