//! Describes a computation of derivatives: `FiniteDifferences3d`, a grid and an order of accuracy.

use super::boundary;
use super::check::{OPERATION, Stencils, Tables};
use super::cpu::Stencil;
use super::ends;
use super::operator::{Operator, Order};
use super::variant::Variant;
use crate::axis::Axis;
use crate::error::require_finite;
use crate::finite_difference::Weights;
use crate::grid::{Boundary, Grid3};
use crate::scalar::Scalar;
use crate::streaming::Stores;
use crate::{Error, Shape3};
use gpu_kernels::derivative3d::general::{
    MAX_END_POINTS, TABLE_ENDS, TABLE_FIXED, TABLE_LEN, min_len,
};
use gpu_kernels::derivative3d::geometry::derivatives;
use gpu_kernels::registry::Cost;
use std::ops::Range;

/// The names of the spacings in errors.
const SPACINGS: [&str; 3] = ["spacing along x", "spacing along y", "spacing along z"];

/// The names of the boundaries in errors.
const BOUNDARIES: [&str; 3] = ["boundary along x", "boundary along y", "boundary along z"];

/// The derivatives on a grid, with an order of accuracy, in `f32` or `f64`.
///
/// The grid gives the shape of the fields, the spacings, and the boundary of each axis.
/// [`plan`](Self::plan) makes a [`Plan`](super::Plan) for a device, which computes on buffers; the
/// methods called `…_of` compute on fields in host memory.
///
/// A field in the unit U on a grid with spacings in the unit L has first derivatives in U / L and
/// second derivatives in U / L². Fields and buffers hold `nx * ny * nz` elements, x fastest. The
/// weights come from [`finite_difference`](crate::finite_difference) (Fornberg 1988).
///
/// ```text
/// first:   df[p] = Σ w[m] (f[p+m] - f[p-m])                    m = 1 … r
/// second:  df[p] = Σ w[m] ((f[p+m] + f[p-m]) - 2 f[p])
/// near a one-sided end:
///          df[p] = Σ w[p][q] (f[q] - f[p])                     q = 0 … 2r+order-1, q ≠ p
/// ```
///
/// where r is half the order of accuracy, and each weight is divided by the spacing to the power of
/// the derivative's order. Every device adds the terms in this order with fused multiply-adds, so
/// all results have the same bits. The weights add up to 0, so subtracting the point itself changes
/// only the rounding, and a constant has the derivative 0 exactly.
///
/// **An axis of one point** has no derivative, whatever its boundary: derivatives along it are 0,
/// and gradient, divergence, curl and Laplacian are those of a field of fewer dimensions. Its
/// spacing is not used. (A Laplacian then multiplies the value of each point by 0: if the value or
/// its double is not finite, the Laplacian is NaN.)
///
/// **NaN and infinities** are not checked for. They spread exactly as far as the stencils reach. A
/// NaN at one point makes NaN of the derivatives at all points whose stencils read it, also across
/// a periodic end. A first derivative away from the ends does not read its own point; a second
/// derivative and a one-sided first derivative do. All devices have NaNs at the same points; the
/// bits of a NaN depend on the processor.
///
/// ```
/// use halo_gpu::derivative3d::FiniteDifferences3d;
/// use halo_gpu::{Axis, Boundary, Device, Field3, Grid3, Shape3};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // A channel: periodic along x, walls at the ends of y; 0.1 m from point to point.
/// let shape = Shape3::new(32, 21, 1);
/// let grid = Grid3::new(shape, [0.1; 3])?.with_boundary(Axis::Y, Boundary::OneSided)?;
/// let channel = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(4)?;
///
/// let velocity = Field3::from_fn(shape, |_, j, _| (0.1 * j as f64) * (2.0 - 0.1 * j as f64))?;
/// let shear = channel.derivative_of(&Device::cpu(), Axis::Y, &velocity)?;
/// assert!((shear[(0, 0, 0)] - 2.0).abs() < 1e-12);
/// assert!((shear[(5, 20, 0)] + 2.0).abs() < 1e-12);
///
/// // Of the 8th order on a periodic axis a NaN reaches four points on either side.
/// let shape = Shape3::new(16, 4, 4);
/// let periodic = FiniteDifferences3d::<f32>::new(&Grid3::new(shape, [0.5, 0.5, 1.0])?)?;
/// let mut f = Field3::filled(shape, 1.0)?;
/// f[(2, 0, 0)] = f32::NAN;
/// for device in [Device::cpu(), Device::emulator()] {
///     let df = periodic.derivative_of(&device, Axis::X, &f)?;
///     let nan: Vec<usize> = (0..16).filter(|&i| df[(i, 0, 0)].is_nan()).collect();
///     assert_eq!(nan, [0, 1, 3, 4, 5, 6, 14, 15]);
///     assert_eq!(df[(2, 0, 0)], 0.0);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FiniteDifferences3d<T: Scalar> {
    grid: Grid3,
    boundaries: [Boundary; 3],
    accuracy: u32,
    /// The tables of the first and of the second derivative.
    tables: [Tables<T>; 2],
}

impl<T: Scalar> FiniteDifferences3d<T> {
    /// Derivatives of 8th order on a grid.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Axis, Boundary, Device, Error, Field3, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let shape = Shape3::new(4, 1, 1);
    /// let grid = Grid3::new(shape, [1.0; 3])?.with_boundary(Axis::X, Boundary::Dirichlet(5.0))?;
    /// let line = FiniteDifferences3d::<f32>::new(&grid)?;
    /// assert_eq!((line.grid(), line.accuracy(), line.radius()), (&grid, 8, 4));
    ///
    /// let line = line.with_accuracy(2)?;
    /// let f = Field3::from_vec(shape, vec![1.0, 2.0, 4.0, 8.0])?;
    /// let df = line.derivative_of(&Device::cpu(), Axis::X, &f)?;
    /// // (2 - 5) / 2, (4 - 1) / 2, (8 - 2) / 2, (5 - 4) / 2
    /// assert_eq!(df.as_slice(), [-1.5, 1.5, 3.0, 0.5]);
    ///
    /// let refused = grid.with_ends(Axis::X, [Boundary::Neumann, Boundary::OneSided])?;
    /// let refused = FiniteDifferences3d::<f32>::new(&refused);
    /// assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] if the two ends of an axis have different boundaries, which the
    /// kernels do not support; for [`Boundary::DirichletOnPoint`]; if a weight of the first
    /// derivative, divided by the spacing, is outside the range of `T`; and if a Dirichlet value is
    /// outside that range.
    pub fn new(grid: &Grid3) -> Result<Self, Error> {
        let mut boundaries = [Boundary::Periodic; 3];
        for axis in Axis::ALL {
            let [low, high] = grid.ends(axis);
            if low != high {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter: BOUNDARIES[axis.index()],
                    given: format!("{low} at one end and {high} at the other"),
                    required: "the same at both ends".to_owned(),
                });
            }
            if low == Boundary::DirichletOnPoint {
                return Err(Error::InvalidParameter {
                    operation: OPERATION,
                    parameter: BOUNDARIES[axis.index()],
                    given: low.to_string(),
                    required: "another boundary, because every point has a derivative".to_owned(),
                });
            }
            check_value::<T>(low)?;
            boundaries[axis.index()] = low;
        }
        Self {
            grid: *grid,
            boundaries,
            accuracy: 8,
            tables: [[[T::zeroed(); TABLE_LEN]; 3]; 2],
        }
        .with_tables()
    }

    /// The same derivatives with another order of accuracy p: the error is proportional to the p-th
    /// power of the spacing.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let cube = FiniteDifferences3d::<f64>::new(&Grid3::new(Shape3::cube(10), [1.0; 3])?)?;
    /// assert_eq!(cube.clone().with_accuracy(4)?.accuracy(), 4);
    /// assert!(cube.with_accuracy(3).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] unless it is 2, 4, 6 or 8, or if a weight of the first
    /// derivative is outside the range of `T`.
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

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid3 {
        &self.grid
    }

    /// The shape of the fields.
    #[must_use]
    pub const fn shape(&self) -> Shape3 {
        self.grid.shape()
    }

    /// The order of accuracy: 2, 4, 6 or 8.
    #[must_use]
    pub const fn accuracy(&self) -> u32 {
        self.accuracy
    }

    /// The reach of the stencils to either side, in points: half the order of accuracy.
    #[must_use]
    pub const fn radius(&self) -> usize {
        self.accuracy as usize / 2
    }

    /// The cost of an operator: the fewest bytes, if each point of its fields is read once and each
    /// result is written once, and the floating-point operations, where a fused multiply-add counts
    /// as two. Each is at most `u64::MAX`.
    ///
    /// ```
    /// use halo_gpu::derivative3d::{FiniteDifferences3d, Operator};
    /// use halo_gpu::{Axis, Cost, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let grid = Grid3::new(Shape3::new(64, 32, 4), [1.0; 3])?;
    /// let differences = FiniteDifferences3d::<f32>::new(&grid)?;
    /// let points = 64 * 32 * 4;
    /// // Four differences, a product and three fused multiply-adds.
    /// let one = Cost { bytes: 8 * points, flops: 11 * points };
    /// assert_eq!(differences.cost(Operator::Derivative(Axis::X)), one);
    /// let three = Cost { bytes: 16 * points, flops: 33 * points };
    /// assert_eq!(differences.cost(Operator::Gradient), three);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cost(&self, operator: Operator) -> Cost {
        let planes = 0..self.shape().nz;
        let problem = self.stencils(operator.order(), &planes).problem();
        let Operator::SecondDerivative(_) = operator else {
            let Some(entry) = Variant::General.entry::<T>(operator) else {
                unreachable!("the general kernels are there for every operator");
            };
            return entry.cost(&problem);
        };
        derivatives::<T>(&problem, 1, 1, 1, 2)
    }

    /// Whether the axis has only one point and therefore no derivative.
    const fn is_absent(&self, axis: Axis) -> bool {
        axis.extent(self.shape()) == 1
    }

    /// The boundary of `axis` for kernels and port. An axis of one point gets the constant 0, which
    /// needs no more points and gives a first derivative of 0.
    fn rule_along(&self, axis: Axis) -> Boundary {
        if self.is_absent(axis) {
            Boundary::Dirichlet(0.0)
        } else {
            self.boundaries[axis.index()]
        }
    }

    /// The stencils for this order of derivative, in the form that kernels take.
    pub(super) fn stencils(&self, order: Order, planes: &Range<usize>) -> Stencils<'_, T> {
        let rules =
            Axis::ALL.map(|axis| boundary::rule_of(self.rule_along(axis)) << (8 * axis.index()));
        Stencils {
            shape: self.shape(),
            planes: [planes.start, planes.end],
            radius: self.radius() as u32,
            boundaries: self.boundaries,
            rules: rules.into_iter().sum(),
            tables: &self.tables[order as usize - 1],
        }
    }

    /// Returns an error if the operator has no derivative along one of its axes.
    pub(super) fn check(&self, operator: Operator) -> Result<(), Error> {
        let mut axes = operator.axes();
        axes.try_for_each(|axis| self.check_axis(axis, operator.order()))
    }

    /// Whether an operator gives 0 for every field.
    pub(super) fn is_zero(&self, operator: Operator) -> bool {
        operator.axis().is_some_and(|axis| self.is_absent(axis))
    }

    /// The boundaries.
    pub(super) const fn boundaries(&self) -> [Boundary; 3] {
        self.boundaries
    }

    /// Runs the port. The inputs have this shape, and the outputs consist of `planes`. There are as
    /// many of them as the operator reads and writes. [`check`](Self::check) must have succeeded.
    pub(super) fn on_cpu(
        &self,
        operator: Operator,
        planes: Range<usize>,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) {
        if self.is_zero(operator) {
            outputs.iter_mut().for_each(|out| out.fill(T::zeroed()));
            return;
        }
        let stores = Stores::of(outputs);
        match (operator.axis(), inputs, &mut *outputs) {
            (Some(axis), [f], [df]) => {
                let stencil = self.stencil(axis, operator.order());
                T::along(&stencil, planes, stores, f, df);
            }
            _ => {
                let stencils = Axis::ALL.map(|axis| self.stencil(axis, operator.order()));
                T::operator(&stencils, operator, planes, stores, inputs, outputs);
            }
        }
    }

    /// The stencil for this order of derivative along `axis`, in the form that the port takes.
    pub(super) fn stencil(&self, axis: Axis, order: Order) -> Stencil<'_, T> {
        let (boundary, table) = (self.rule_along(axis), self.table(axis, order));
        ends::stencil(self.shape(), axis, order, self.radius(), boundary, table)
    }

    /// The weights of `axis` for this order of derivative.
    fn table(&self, axis: Axis, order: Order) -> &[T; TABLE_LEN] {
        &self.tables[order as usize - 1][axis.index()]
    }

    /// Computes the tables.
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

    /// The weights divided by the spacing to the power of the order, divided in f64 and rounded
    /// once; 0 along an axis of one point.
    fn new_table(&self, axis: Axis, order: Order) -> Result<[T; TABLE_LEN], Error> {
        if self.is_absent(axis) {
            return Ok([T::zeroed(); TABLE_LEN]);
        }
        let (derivative, radius) = (order as u32, self.radius() as i32);
        let boundary = self.boundaries[axis.index()];
        let scale = self.grid.spacing(axis).powi(order as i32);
        let mut table = [T::zeroed(); TABLE_LEN];
        let central = Weights::central(derivative, self.accuracy)?;
        let ahead = &central.values()[self.radius() + 1..];
        for (entry, weight) in table.iter_mut().zip(ahead) {
            *entry = T::nearest(weight / scale);
        }
        if boundary == Boundary::OneSided {
            // Each order of derivative needs one point more than the order of accuracy.
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

    /// Returns an error if a weight divided by the spacing is 0 or infinite.
    fn check_weights(&self, axis: Axis, order: Order) -> Result<(), Error> {
        if self.is_absent(axis) {
            return Ok(());
        }
        let table = self.table(axis, order);
        // The rows for ends also hold zeros, where a row is unused or shorter, and the weight of
        // the point itself may be 0 too. The smallest weight of a row is at least a thousandth of
        // the middle one.
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
            given: self.grid.spacing(axis).to_string(),
            required: format!(
                "such that the weights of the {} derivative are in the range of {}",
                ["first", "second"][order as usize - 1],
                T::NAME
            ),
        })
    }

    /// Returns an error if the axis has no derivative of this order.
    fn check_axis(&self, axis: Axis, order: Order) -> Result<(), Error> {
        let boundary = self.boundaries[axis.index()];
        let (given, required) = (
            axis.extent(self.shape()),
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
}

/// Returns an error if the value of a Dirichlet boundary is outside the range of `T`.
fn check_value<T: Scalar>(boundary: Boundary) -> Result<(), Error> {
    const PARAMETER: &str = "the value of a Dirichlet boundary";
    let value = boundary.dirichlet_value();
    require_finite(OPERATION, PARAMETER, value)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid3;
    use crate::test_cases;
    use Boundary::{Dirichlet, Neumann, NeumannHalfway, OneSided, Periodic, PeriodicWithEndpoint};

    /// Any values will do, as long as they differ.
    fn field<T: Scalar>(shape: Shape3, seed: u64) -> Vec<T> {
        let mut state = seed;
        (0..shape.nx * shape.ny * shape.nz)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                T::nearest((state >> 40) as f64 / 65_536.0)
            })
            .collect()
    }

    fn streaming_gives_what_ordinary_stores_give<T: Scalar>() {
        // Rows of which none, all or some begin at a cache line.
        let shapes = [(19, 17, 23), (64, 18, 17), (40, 21, 19), (700, 18, 17)];
        for &(nx, ny, nz) in test_cases::either(&shapes[..3], &shapes) {
            let shape = Shape3::new(nx, ny, nz);
            let fields: Vec<Vec<T>> = (1..4).map(|seed| field(shape, seed)).collect();
            let fields: Vec<&[T]> = fields.iter().map(Vec::as_slice).collect();
            let empty = || vec![T::nearest(f64::NAN); nx * ny * nz];
            for (accuracy, boundary) in [
                (8, Periodic),
                (6, PeriodicWithEndpoint),
                (4, Neumann),
                (2, NeumannHalfway),
                (8, Dirichlet(0.375)),
                (6, OneSided),
                (8, OneSided),
            ] {
                let plan = Grid3::new(shape, [0.5, 0.25, 2.0])
                    .and_then(|grid| grid.with_boundaries(boundary))
                    .and_then(|grid| FiniteDifferences3d::<T>::new(&grid))
                    .and_then(|plan| plan.with_accuracy(accuracy))
                    .unwrap();
                for order in [Order::First, Order::Second] {
                    for axis in Axis::ALL {
                        let stencil = plan.stencil(axis, order);
                        let [ordinary, streaming] =
                            [Stores::Ordinary, Stores::Streaming].map(|stores| {
                                let mut df = empty();
                                T::along(&stencil, 0..nz, stores, fields[0], &mut df);
                                df
                            });
                        let what = format!("{shape}, {axis:?}, {order:?}, {boundary:?}");
                        assert!(ordinary == streaming, "{what}");
                    }
                }
                for operator in Operator::VECTOR_CALCULUS {
                    let (inputs, outputs) = operator.fields();
                    let stencils = Axis::ALL.map(|axis| plan.stencil(axis, operator.order()));
                    let [ordinary, streaming] =
                        [Stores::Ordinary, Stores::Streaming].map(|stores| {
                            let mut results = vec![empty(); outputs];
                            let mut outputs: Vec<&mut [T]> =
                                results.iter_mut().map(Vec::as_mut_slice).collect();
                            let inputs = &fields[..inputs];
                            T::operator(&stencils, operator, 0..nz, stores, inputs, &mut outputs);
                            results
                        });
                    let what = format!("{shape}, {operator:?}, {boundary:?}, {accuracy}");
                    assert!(ordinary == streaming, "{what}");
                }
            }
        }
    }

    #[test]
    fn streaming_gives_what_ordinary_stores_give_in_f32() {
        streaming_gives_what_ordinary_stores_give::<f32>();
    }

    #[test]
    fn streaming_gives_what_ordinary_stores_give_in_f64() {
        streaming_gives_what_ordinary_stores_give::<f64>();
    }
}
