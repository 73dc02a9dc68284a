//! First and second derivatives of any order of accuracy, with any boundary.
//!
//! ```text
//! first:   df[p] = Σ w[m] (f[p+m] - f[p-m])                    m = 1 … r
//! second:  df[p] = Σ w[m] ((f[p+m] + f[p-m]) - 2 f[p])
//! near a one-sided end:
//!          df[p] = Σ w[p][q] (f[q] - f[p])                     q = 0 … 2r+order-1, q ≠ p
//! ```
//!
//! with r half the order of accuracy and the weights of
//! [`finite_difference`](crate::finite_difference), over the spacing to the power of the
//! derivative's order. The sums are made in the order in which they stand here, by fused
//! multiply-adds, on every device: all give the same bits. Since weights add up to 0,
//! the differences to the point itself change nothing but the rounding: a constant has
//! the derivative 0 exactly.

mod cpu;
pub(crate) mod gpu;
mod tuned;
mod vector_calculus;

use super::cpu::Stencil;
use super::operator::Order;
use super::transfer;
use crate::axis::Axis;
use crate::derivative3d::boundary;
use crate::finite_difference::Weights;
use crate::grid::{Boundary, Grid3};
use crate::scalar::Scalar;
use crate::streaming::Stores;
use crate::{Buffer, Device, DeviceKind, Error, Field3, Shape3};
use gpu::Tables;
use gpu_kernels::derivative3d::general::{
    MAX_END_POINTS, TABLE_ENDS, TABLE_FIXED, TABLE_LEN, min_len,
};

/// What errors call the operations.
const OPERATION: &str = "finite differences";

/// What errors call the fields of an operator.
const FIELD: &str = "finite differences: a field";

/// The spacings, as errors call them.
const SPACINGS: [&str; 3] = ["spacing along x", "spacing along y", "spacing along z"];

/// Derivatives on a grid: its shape, its spacings, what lies beyond its ends, and the
/// order of accuracy. Works in `f32` and `f64`.
///
/// [`new`](Self::new) gives an ordinary periodic grid and the 8th order; the methods
/// called `with_…` say otherwise. Where it runs is the device of the buffers.
///
/// A field in the unit U on a grid whose spacings are in the unit L has first
/// derivatives in U / L and second derivatives in U / L². Fields and buffers hold
/// `nx * ny * nz` elements, x fastest. Weights come from
/// [`finite_difference`](crate::finite_difference) (Fornberg 1988).
///
/// **An axis of one point** has no derivative, whatever is beyond its ends: derivatives along
/// it are 0, and gradient, divergence, curl and Laplacian are those of a field of fewer
/// dimensions. Its spacing takes no part. (A Laplacian multiplies the value of each point by
/// 0 then: where that, or its double, is not finite, the Laplacian is NaN.)
///
/// **NaN and infinities** are not looked for: they go as far as the stencils reach, and
/// no farther. A NaN at one point makes the derivatives at all points NaN whose stencil
/// reads it; a first derivative between the ends does not read the point that it
/// belongs to, a second derivative and a one-sided first one do.
///
/// ```
/// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
/// use halo_gpu::{Device, Field3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // A channel: periodic along x, walls at the ends of y; 0.1 m from point to point.
/// let shape = Shape3::new(32, 21, 1);
/// let grid = FiniteDifferences3d::<f64>::new(shape, [0.1; 3])?
///     .with_accuracy(4)?
///     .with_boundary(Axis::Y, Boundary::OneSided)?;
///
/// let velocity = Field3::from_fn(shape, |_, j, _| (0.1 * j as f64) * (2.0 - 0.1 * j as f64))?;
/// let shear = grid.derivative_of(&Device::cpu(), Axis::Y, &velocity)?;
/// assert!((shear[(0, 0, 0)] - 2.0).abs() < 1e-12);
/// assert!((shear[(5, 20, 0)] + 2.0).abs() < 1e-12);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FiniteDifferences3d<T> {
    shape: Shape3,
    spacing: [f64; 3],
    boundaries: [Boundary; 3],
    accuracy: u32,
    /// Of the first and of the second derivative.
    tables: [Tables<T>; 2],
}

impl<T: Scalar> FiniteDifferences3d<T> {
    /// Derivatives of fields of `shape` whose points are `spacing` apart along x, y
    /// and z, in the unit of length of the results: periodic along all axes, 8th order.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Error, Shape3};
    ///
    /// let grid = FiniteDifferences3d::<f32>::new(Shape3::cube(100), [0.5, 0.5, 1.0]);
    /// assert_eq!(grid?.accuracy(), 8);
    ///
    /// let refused = FiniteDifferences3d::<f32>::new(Shape3::cube(100), [0.5, f64::NAN, 1.0]);
    /// assert!(matches!(refused, Err(Error::NonFinite { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for an extent of 0, [`Error::IndexOverflow`] if the
    /// field has more points than can be indexed, [`Error::NonFinite`] and
    /// [`Error::InvalidParameter`] for a spacing that is not a positive number, or such
    /// that a weight of the first derivative leaves the range of `T`.
    pub fn new(shape: Shape3, spacing: [f64; 3]) -> Result<Self, Error> {
        shape.points()?;
        for axis in Axis::ALL {
            if axis.extent(shape) == 0 {
                return Err(Error::InvalidSize {
                    operation: OPERATION,
                    axis: axis.extent_name(),
                    given: 0,
                    required: "at least 1".into(),
                });
            }
            let h = spacing[axis.index()];
            if !h.is_finite() {
                return Err(Error::NonFinite {
                    operation: OPERATION,
                    parameter: SPACINGS[axis.index()],
                    given: h,
                });
            }
            if !(h > 0.0) {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter: SPACINGS[axis.index()],
                    given: h.to_string(),
                    required: "positive".into(),
                });
            }
        }
        Self {
            shape,
            spacing,
            boundaries: [Boundary::Periodic; 3],
            accuracy: 8,
            tables: [[[T::zeroed(); TABLE_LEN]; 3]; 2],
        }
        .with_tables()
    }

    /// The same with another order of accuracy: the error falls with this power of the
    /// spacing.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::Shape3;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let grid = FiniteDifferences3d::<f64>::new(Shape3::cube(10), [1.0; 3])?;
    /// assert_eq!(grid.clone().with_accuracy(4)?.accuracy(), 4);
    /// assert!(grid.with_accuracy(3).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] unless it is 2, 4, 6 or 8, or if a weight of the first
    /// derivative leaves the range of `T`.
    pub fn with_accuracy(mut self, accuracy: u32) -> Result<Self, Error> {
        if !matches!(accuracy, 2 | 4 | 6 | 8) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the order of accuracy",
                given: accuracy.to_string(),
                required: "2, 4, 6 or 8".into(),
            });
        }
        self.accuracy = accuracy;
        self.with_tables()
    }

    /// The same with another rule for what lies beyond the ends of `axis`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Field3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape3::new(4, 1, 1);
    /// let line = FiniteDifferences3d::<f32>::new(shape, [1.0; 3])?
    ///     .with_accuracy(2)?
    ///     .with_boundary(Axis::X, Boundary::Dirichlet(5.0))?;
    /// let f = Field3::from_vec(shape, vec![1.0, 2.0, 4.0, 8.0])?;
    /// let df = line.derivative_of(&Device::cpu(), Axis::X, &f)?;
    /// // (2 - 5) / 2, (4 - 1) / 2, (8 - 2) / 2, (5 - 4) / 2
    /// assert_eq!(df.as_slice(), [-1.5, 1.5, 3.0, 0.5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] or [`Error::InvalidParameter`] for a fixed value that is no
    /// number of `T`; [`Error::InvalidParameter`] for [`Boundary::DirichletOnPoint`].
    pub fn with_boundary(mut self, axis: Axis, boundary: Boundary) -> Result<Self, Error> {
        check_value::<T>(boundary)?;
        self.boundaries[axis.index()] = boundary;
        self.with_tables()
    }

    /// Derivatives on a grid, of the 8th order.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Axis, Boundary, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let grid = Grid3::new(Shape3::cube(32), [0.1; 3])?.with_boundary(Axis::Z, Boundary::Neumann)?;
    /// let plan = FiniteDifferences3d::<f32>::on_grid(&grid)?;
    /// assert_eq!(plan.boundary(Axis::Z), Boundary::Neumann);
    /// assert_eq!((plan.shape(), plan.spacing()), (grid.shape(), [0.1; 3]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`with_boundary`](Self::with_boundary);
    /// [`Error::InvalidParameter`] if the two ends of an axis have not the same boundary, which
    /// the kernels cannot do.
    pub fn on_grid(grid: &Grid3) -> Result<Self, Error> {
        let mut plan = Self::new(grid.shape(), Axis::ALL.map(|axis| grid.spacing(axis)))?;
        for axis in Axis::ALL {
            let [low, high] = grid.ends(axis);
            if low != high {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter: ["boundary along x", "boundary along y", "boundary along z"]
                        [axis.index()],
                    given: format!("{low} at one end and {high} at the other"),
                    required: "the same at both ends".to_owned(),
                });
            }
            plan = plan.with_boundary(axis, low)?;
        }
        Ok(plan)
    }

    /// The general kernel for derivatives along `axis`, as in the PTX.
    #[must_use]
    pub fn kernel_name(axis: Axis) -> &'static str {
        T::ALONG[axis.index()].name
    }

    /// The shape of the fields.
    #[must_use]
    pub const fn shape(&self) -> Shape3 {
        self.shape
    }

    /// The spacing along x, y and z.
    #[must_use]
    pub const fn spacing(&self) -> [f64; 3] {
        self.spacing
    }

    /// What lies beyond the ends of `axis`.
    #[must_use]
    pub const fn boundary(&self, axis: Axis) -> Boundary {
        self.boundaries[axis.index()]
    }

    /// The order of accuracy: 2, 4, 6 or 8.
    #[must_use]
    pub const fn accuracy(&self) -> u32 {
        self.accuracy
    }

    /// How far the stencils reach to either side, in points: half the order of accuracy.
    #[must_use]
    pub const fn radius(&self) -> usize {
        self.accuracy as usize / 2
    }

    /// ∂f/∂axis of a field on the host, computed on `device`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Field3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Half a metre from point to point, walls at both ends, and 3 K more at each point.
    /// let shape = Shape3::new(12, 1, 1);
    /// let rod = FiniteDifferences3d::<f64>::new(shape, [0.5; 3])?
    ///     .with_boundary(Axis::X, Boundary::OneSided)?;
    /// let temperature = Field3::from_fn(shape, |i, _, _| 3.0 * i as f64)?;
    /// let slope = rod.derivative_of(&Device::cpu(), Axis::X, &temperature)?;
    /// assert!(slope.as_slice().iter().all(|k_per_m| (k_per_m - 6.0).abs() < 1e-12));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative), and [`Error::OutOfMemory`].
    pub fn derivative_of(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
    ) -> Result<Field3<T>, Error> {
        self.field_of(device, f, |f, df| self.derivative(axis, f, df))
    }

    /// ∂²f/∂axis² of a field on the host, computed on `device`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Field3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape3::new(6, 1, 1);
    /// let line = FiniteDifferences3d::<f64>::new(shape, [0.5; 3])?
    ///     .with_accuracy(2)?
    ///     .with_boundary(Axis::X, Boundary::OneSided)?;
    /// let squares = Field3::from_fn(shape, |i, _, _| (0.5 * i as f64).powi(2))?;
    /// let second = line.second_derivative_of(&Device::cpu(), Axis::X, &squares)?;
    /// assert_eq!(second.as_slice(), [2.0; 6]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`second_derivative`](Self::second_derivative), and [`Error::OutOfMemory`].
    pub fn second_derivative_of(
        &self,
        device: &Device,
        axis: Axis,
        f: &Field3<T>,
    ) -> Result<Field3<T>, Error> {
        self.field_of(device, f, |f, df| self.second_derivative(axis, f, df))
    }

    /// ∂f/∂axis, into `df`, on the device of the buffers.
    ///
    /// `f` and `df` hold `nx * ny * nz` elements, x fastest. Where it is 8th order, f32
    /// and periodic, the kernels are those of [`Derivative3d`](super::Derivative3d); they
    /// give the same bits.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    /// use std::f64::consts::TAU;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let shape = Shape3::new(1, 40, 1);
    /// let grid = FiniteDifferences3d::new(shape, [1.0 / 40.0; 3])?;
    /// let sine: Vec<f64> = (0..40).map(|j| (TAU * j as f64 / 40.0).sin()).collect();
    /// let f = device.upload(&sine)?;
    /// let mut df = device.alloc_filled(f.len(), 0.0)?;
    /// grid.derivative(Axis::Y, &f, &mut df)?;
    /// assert!((df.to_vec()?[0] - TAU).abs() < 1e-7);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and
    /// [`Error::DeviceMismatch`] for buffers that do not
    /// fit; [`Error::InvalidSize`] if the axis has too few points for the stencil and
    /// its boundary, and more than one; and what a launch can fail with.
    pub fn derivative(&self, axis: Axis, f: &Buffer<T>, df: &mut Buffer<T>) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        self.check_axis(axis, Order::First)?;
        if f.device().kind() != DeviceKind::Cpu
            && !self.is_absent(axis)
            && self.tuned(axis, f, df)?
        {
            return Ok(());
        }
        self.along(axis, Order::First, f, df)
    }

    /// ∂f/∂axis by the general kernel, also where a tuned one applies.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// // 8th order, f32 and periodic: there is a tuned kernel for that, with the same bits.
    /// let grid = FiniteDifferences3d::<f32>::new(Shape3::new(8, 6, 5), [0.1; 3])?;
    /// let f = device.upload(&(0..240).map(|n| (n * n % 61) as f32).collect::<Vec<_>>())?;
    /// let (mut tuned, mut general) = (f.try_clone()?, f.try_clone()?);
    /// grid.derivative(Axis::Y, &f, &mut tuned)?;
    /// grid.derivative_by_general_kernel(Axis::Y, &f, &mut general)?;
    /// assert_ne!(general.to_vec()?, f.to_vec()?);
    /// assert_eq!(general.to_vec()?, tuned.to_vec()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative).
    pub fn derivative_by_general_kernel(
        &self,
        axis: Axis,
        f: &Buffer<T>,
        df: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        self.check_axis(axis, Order::First)?;
        self.along(axis, Order::First, f, df)
    }

    /// ∂²f/∂axis², into `df`, on the device of the buffers.
    ///
    /// `f` and `df` hold `nx * ny * nz` elements, x fastest.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{Axis, Boundary, FiniteDifferences3d};
    /// use halo_gpu::{Device, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let grid = FiniteDifferences3d::new(Shape3::new(1, 1, 5), [2.0; 3])?
    ///     .with_accuracy(2)?
    ///     .with_boundary(Axis::Z, Boundary::OneSided)?;
    /// let squares = device.upload(&[0.0, 4.0, 16.0, 36.0, 64.0])?;
    /// let mut second = device.alloc_filled(5, 0.0)?;
    /// grid.second_derivative(Axis::Z, &squares, &mut second)?;
    /// assert_eq!(second.to_vec()?, [2.0_f64; 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`derivative`](Self::derivative), and [`Error::InvalidParameter`] if a weight
    /// over the square of the spacing leaves the range of `T`.
    pub fn second_derivative(
        &self,
        axis: Axis,
        f: &Buffer<T>,
        df: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.check_buffers(f, df)?;
        self.check_axis(axis, Order::Second)?;
        self.along(axis, Order::Second, f, df)
    }

    /// The checked derivative, on any device.
    fn along(
        &self,
        axis: Axis,
        order: Order,
        f: &Buffer<T>,
        df: &mut Buffer<T>,
    ) -> Result<(), Error> {
        if self.is_absent(axis) {
            return df.fill(T::zeroed());
        }
        if f.device().kind() != DeviceKind::Cpu {
            return T::launch_along(gpu::Along::new(self.stencils(order), axis, order, f, df));
        }
        let (Some(f), Some(df)) = (f.as_host_slice(), df.as_host_mut_slice()) else {
            unreachable!("buffers of the CPU device are host memory");
        };
        let stores = Stores::of(&[&mut *df]);
        T::along(&self.stencil(axis, order), stores, f, df);
        Ok(())
    }

    /// Whether the axis has one point, along which there is no derivative.
    const fn is_absent(&self, axis: Axis) -> bool {
        axis.extent(self.shape) == 1
    }

    /// What lies beyond the ends of `axis`, as kernels and port take it: 0 where the axis is
    /// absent, which asks for no more points and has no first derivative, whatever the field.
    fn rule_along(&self, axis: Axis) -> Boundary {
        if self.is_absent(axis) {
            Boundary::Dirichlet(0.0)
        } else {
            self.boundary(axis)
        }
    }

    /// The stencils of this order, as the kernels take them.
    fn stencils(&self, order: Order) -> gpu::Stencils<'_, T> {
        let rules =
            Axis::ALL.map(|axis| boundary::rule_of(self.rule_along(axis)) << (8 * axis.index()));
        gpu::Stencils {
            shape: self.shape,
            radius: self.radius() as u32,
            rules: rules.into_iter().sum(),
            tables: &self.tables[order as usize - 1],
        }
    }

    /// The stencil of this order along `axis`, as the port takes it.
    fn stencil(&self, axis: Axis, order: Order) -> Stencil<'_, T> {
        let (boundary, table) = (self.rule_along(axis), self.table(axis, order));
        cpu::stencil(self.shape, axis, order, self.radius(), boundary, table)
    }

    /// What `apply` makes of a field, on `device`.
    fn field_of(
        &self,
        device: &Device,
        f: &Field3<T>,
        apply: impl FnOnce(&Buffer<T>, &mut Buffer<T>) -> Result<(), Error>,
    ) -> Result<Field3<T>, Error> {
        let [f] = transfer::upload(&format!("{OPERATION}: f"), self.shape, device, [f])?;
        let f = f.as_buffer();
        let mut results = transfer::for_results(f)?;
        let [df] = &mut results;
        apply(f, df)?;
        let [df] = transfer::download(self.shape, results)?;
        Ok(df)
    }

    /// The table of `axis` for this order.
    fn table(&self, axis: Axis, order: Order) -> &[T; TABLE_LEN] {
        &self.tables[order as usize - 1][axis.index()]
    }

    /// Fills the tables in.
    fn with_tables(mut self) -> Result<Self, Error> {
        for order in [Order::First, Order::Second] {
            for axis in Axis::ALL {
                self.tables[order as usize - 1][axis.index()] = self.new_table(axis, order)?;
            }
        }
        for axis in Axis::ALL {
            self.check_weights(axis, Order::First)?;
        }
        Ok(self)
    }

    /// The weights over the spacing to the power of the order, divided in f64 and
    /// rounded once; 0 along an axis that is absent.
    fn new_table(&self, axis: Axis, order: Order) -> Result<[T; TABLE_LEN], Error> {
        if self.is_absent(axis) {
            return Ok([T::zeroed(); TABLE_LEN]);
        }
        let (derivative, radius) = (order as u32, self.radius() as i32);
        let boundary = self.boundaries[axis.index()];
        let scale = self.spacing[axis.index()].powi(order as i32);
        let mut table = [T::zeroed(); TABLE_LEN];
        let central = Weights::central(derivative, self.accuracy)?;
        let ahead = &central.values()[self.radius() + 1..];
        for (entry, weight) in table.iter_mut().zip(ahead) {
            *entry = T::nearest(weight / scale);
        }
        if boundary == Boundary::OneSided {
            // One point more than the order of accuracy for each order of derivative.
            let last = 2 * radius + derivative as i32 - 1;
            let rows = table[TABLE_ENDS..].chunks_mut(MAX_END_POINTS);
            for (p, row) in (0..radius).zip(rows) {
                let weights = Weights::shifted(derivative, self.accuracy, -p..=last - p)?;
                for (entry, weight) in row.iter_mut().zip(weights.values()) {
                    *entry = T::nearest(weight / scale);
                }
            }
        }
        table[TABLE_FIXED] = T::nearest(boundary.dirichlet_value());
        Ok(table)
    }

    /// Refuses spacings with which a weight vanishes or is infinite.
    fn check_weights(&self, axis: Axis, order: Order) -> Result<(), Error> {
        if self.is_absent(axis) {
            return Ok(());
        }
        let table = self.table(axis, order);
        // Rows for ends hold zeros besides: where there is none, where a row is shorter,
        // and the weight of the point itself may be 0 as well. The smallest weight of
        // a row is no smaller than a thousandth of the middle's.
        let middle = table[..self.radius()].iter();
        let ends = table[TABLE_ENDS..TABLE_FIXED]
            .iter()
            .filter(|weight| **weight != T::zeroed());
        if middle.chain(ends).all(|weight| weight.is_normal_number()) {
            return Ok(());
        }
        Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter: SPACINGS[axis.index()],
            given: self.spacing[axis.index()].to_string(),
            required: format!(
                "such that the weights of the {} derivative are in the range of {}",
                ["first", "second"][order as usize - 1],
                T::NAME
            ),
        })
    }

    /// Refuses an axis along which the derivative of this order cannot be formed.
    fn check_axis(&self, axis: Axis, order: Order) -> Result<(), Error> {
        let boundary = self.boundaries[axis.index()];
        let (given, required) = (
            axis.extent(self.shape),
            min_len(self.radius(), order as usize, boundary::rule_of(boundary)),
        );
        if given < required && !self.is_absent(axis) {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis: axis.extent_name(),
                given,
                required: format!(
                    "at least {required} for order {} ({boundary})",
                    self.accuracy
                ),
            });
        }
        self.check_weights(axis, order)
    }

    /// Refuses buffers that have other lengths or are not on one device.
    fn check_buffers(&self, f: &Buffer<T>, df: &Buffer<T>) -> Result<(), Error> {
        const F: &str = "finite differences: f";
        const DF: &str = "finite differences: df";
        f.require_shape(|| F.to_owned(), self.shape)?;
        df.require_shape(|| DF.to_owned(), self.shape)?;
        f.device().require(DF, df)
    }
}

/// The value of a Dirichlet boundary must be a number of `T`.
fn check_value<T: Scalar>(boundary: Boundary) -> Result<(), Error> {
    const PARAMETER: &str = "the value of a Dirichlet boundary";
    if boundary == Boundary::DirichletOnPoint {
        return Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter: "the boundary",
            given: boundary.to_string(),
            required: "one that leaves no point out, as all have derivatives".to_owned(),
        });
    }
    let value = boundary.dirichlet_value();
    if !value.is_finite() {
        return Err(Error::NonFinite {
            operation: OPERATION,
            parameter: PARAMETER,
            given: value,
        });
    }
    if !T::nearest(value).into().is_finite() {
        return Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter: PARAMETER,
            given: value.to_string(),
            required: format!("in the range of {}", T::NAME),
        });
    }
    Ok(())
}
