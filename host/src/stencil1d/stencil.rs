//! Describes a line stencil: `Stencil1d`, the coefficients without a device.

use super::check::OPERATION;
use super::form::Form;
use super::gpu;
use crate::Error;
use crate::error::require_finite;
use crate::finite_difference::CENTRAL_8;
use crate::scalar::Scalar;
use gpu_kernels::registry::{Cost, Problem};
use gpu_kernels::stencil1d::BLOCK_DEFAULT;
use gpu_kernels::stencil1d::custom::{MAX_POINTS, MAX_RADIUS};
use gpu_kernels::stencil1d::geometry::inner_cost;

/// A stencil for lines of a given length.
///
/// ```text
/// antisymmetric  out[i] = Σ_m c_m (in[i+m] - in[i-m])                 1 <= m <= R
/// symmetric      out[i] = c_0 in[i] + Σ_m c_m (in[i+m] + in[i-m])
/// any            out[i] = c_0 in[i] + Σ_m (c_m in[i+m] + c_-m in[i-m])
/// ```
///
/// for R ≤ i < n - R, in `f32` or `f64`, with R from 1 to [`MAX_RADIUS`](super::MAX_RADIUS). The
/// **first and the last R elements** of `out` are not written and keep their values. The unit of
/// the result is that of the line times that of the coefficients.
///
/// The first term is a product; each further term is added by a fused multiply-add, the nearest
/// neighbours first, and the one ahead before the one behind. So the CPU port and all kernels give
/// the same bits.
///
/// **NaN and infinities** in the line are not checked for. They make NaN (or infinite) exactly
/// those outputs whose stencils reach them, even if the coefficient is 0. An antisymmetric stencil
/// does not read the element at the output's own index. The bits of a NaN depend on the processor.
/// Coefficients are finite.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::finite_difference::Weights;
/// use halo_gpu::stencil1d::Stencil1d;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // A second derivative of 4th order, exact on a parabola of unit spacing.
/// let line: Vec<f64> = (0..50).map(|i| f64::from(i * i)).collect();
/// let weights = Weights::central(2, 4)?;
/// let stencil = Stencil1d::any(line.len(), weights.values())?;
/// assert_eq!(stencil.radius(), 2);
/// for device in [Device::cpu(), Device::emulator()] {
///     let inner = stencil.apply_of(&device, &line)?;
///     assert_eq!(inner.len(), 46);
///     assert!(inner.iter().all(|value| (value - 2.0).abs() < 1e-11));
/// }
///
/// // A running mean of three.
/// let mean = Stencil1d::symmetric(4, 0.5_f32, &[0.25])?;
/// assert_eq!(mean.apply_of(&Device::cpu(), &[0.0, 4.0, 0.0, 8.0])?, [2.0, 3.0]);
///
/// // The textbook's: a NaN reaches four elements on either side.
/// let stencil = Stencil1d::antisymmetric(20, &[-1.0_f32, -2.0, 2.0, 1.0])?;
/// assert_eq!(stencil.cost().bytes, 4 * (20 + 12));
/// let mut line = [0.0; 20];
/// line[10] = f32::NAN;
/// let inner = stencil.apply_of(&Device::emulator(), &line)?;
/// let nan: Vec<usize> = (4..16).filter(|i| inner[i - 4].is_nan()).collect();
/// assert_eq!(nan, [6, 7, 8, 9, 11, 12, 13, 14]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stencil1d<T: Scalar> {
    pub(super) n: usize,
    pub(super) form: Form,
    pub(super) radius: usize,
    /// The coefficient of neighbour m is at index 8 + m; 0 beyond the radius.
    pub(super) coefficients: [T; MAX_POINTS],
    pub(super) block: u32,
}

impl<T: Scalar> Stencil1d<T> {
    /// An antisymmetric stencil on lines of `n` elements: `coefficients[m - 1]` (1 to 8 of them)
    /// multiplies the difference of the two neighbours at distance m.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Stencil1d;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // The central difference of second order, of unit spacing.
    /// let slope = Stencil1d::antisymmetric(4, &[0.5_f64])?;
    /// assert_eq!(slope.apply_of(&Device::cpu(), &[0.0, 1.0, 4.0, 9.0])?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for another number of coefficients, and for a line in which no
    /// element has all its neighbours; [`Error::NonFinite`] for a coefficient that is NaN or
    /// infinite.
    pub fn antisymmetric(n: usize, coefficients: &[T]) -> Result<Self, Error> {
        let radius = coefficients.len();
        require_radius(radius, radius)?;
        Self::new(n, Form::Antisymmetric, radius, |m| match m {
            // Not used: the formula subtracts the neighbours behind.
            ..=0 => T::zeroed(),
            _ => coefficients[m as usize - 1],
        })
    }

    /// A symmetric stencil on lines of `n` elements: `center` multiplies the element itself, and
    /// `coefficients[m - 1]` (1 to 8 of them) the sum of the two neighbours at distance m.
    ///
    /// # Errors
    ///
    /// As for [`antisymmetric`](Self::antisymmetric).
    pub fn symmetric(n: usize, center: T, coefficients: &[T]) -> Result<Self, Error> {
        let radius = coefficients.len();
        require_radius(radius, radius)?;
        Self::new(n, Form::Symmetric, radius, |m| match m {
            0 => center,
            _ => coefficients[m.unsigned_abs() as usize - 1],
        })
    }

    /// A stencil on lines of `n` elements with independent coefficients: `coefficients[R + m]` (3,
    /// 5, … or 17 of them) multiplies the element m ahead.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Stencil1d;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // The forward difference: nothing of the one behind.
    /// let forward = Stencil1d::any(4, &[0.0_f32, -1.0, 1.0])?;
    /// let line = [0.0, 1.0, 4.0, 9.0];
    /// assert_eq!(forward.apply_of(&Device::emulator(), &line)?, [3.0, 5.0]);
    /// assert!(Stencil1d::any(4, &[-1.0_f32, 1.0]).is_err()); // no middle
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`antisymmetric`](Self::antisymmetric).
    pub fn any(n: usize, coefficients: &[T]) -> Result<Self, Error> {
        let points = coefficients.len();
        let radius = points / 2;
        require_radius(if points % 2 == 1 { radius } else { 0 }, points)?;
        Self::new(n, Form::Any, radius, |m| {
            coefficients[(radius as i32 + m) as usize]
        })
    }

    /// The first derivative of 8th order for lines of `n` elements that are `spacing` apart, in the
    /// unit of the line divided by that of the spacing.
    ///
    /// The coefficients are 4/5, -1/5, 4/105 and -1/280 (Fornberg 1988, as in
    /// [`finite_difference`](crate::finite_difference)), divided by the spacing in `f64` and
    /// rounded once. The truncation error begins with `-spacing⁸/630 · f⁽⁹⁾`.
    ///
    /// # Errors
    ///
    /// As for [`antisymmetric`](Self::antisymmetric); [`Error::NonFinite`] and
    /// [`Error::InvalidParameter`] for a spacing that is not a positive number, or for which a
    /// coefficient is outside the range of `T`.
    pub fn derivative(n: usize, spacing: f64) -> Result<Self, Error> {
        require_finite(OPERATION, "the spacing", spacing)?;
        let coefficients = CENTRAL_8.map(|weight| T::nearest(weight / spacing));
        if !(spacing > 0.0) || !coefficients.iter().all(|value| value.is_normal_number()) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the spacing",
                given: spacing.to_string(),
                required: format!(
                    "positive, with the weights divided by it in the range of {}",
                    T::NAME
                ),
            });
        }
        Self::antisymmetric(n, &coefficients)
    }

    fn new(
        n: usize,
        form: Form,
        radius: usize,
        coefficient: impl Fn(i32) -> T,
    ) -> Result<Self, Error> {
        let points = 2 * radius + 1;
        if n < points {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis: "n",
                given: n,
                required: format!("at least {points} ({radius} neighbours on either side)"),
            });
        }
        let mut coefficients = [T::zeroed(); MAX_POINTS];
        let reach = radius as i32;
        for m in -reach..=reach {
            coefficients[place(m)] = coefficient(m);
        }
        let stencil = Self {
            n,
            form,
            radius,
            coefficients,
            block: BLOCK_DEFAULT,
        };
        let given = stencil.given();
        for (parameter, &value) in NAMES[given.clone()].iter().zip(&coefficients[given]) {
            require_finite(OPERATION, parameter, value.into())?;
        }
        Ok(stencil)
    }

    /// The indices of the coefficients that the caller passed.
    fn given(&self) -> std::ops::Range<usize> {
        let first = match self.form {
            Form::Antisymmetric => MAX_RADIUS + 1,
            Form::Symmetric => MAX_RADIUS,
            Form::Any => MAX_RADIUS - self.radius,
        };
        first..MAX_RADIUS + self.radius + 1
    }

    /// This stencil, with `block` threads per block of the textbook kernels. The bits do not depend
    /// on it.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is a multiple of 32 between 32 and
    /// 1024.
    pub fn with_block(mut self, block: u32) -> Result<Self, Error> {
        if !(gpu::WARP..=gpu::MAX_BLOCK).contains(&block) || !block.is_multiple_of(gpu::WARP) {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis: "block",
                given: block as usize,
                required: format!(
                    "a multiple of {} between {} and {}",
                    gpu::WARP,
                    gpu::WARP,
                    gpu::MAX_BLOCK
                ),
            });
        }
        self.block = block;
        Ok(self)
    }

    /// The number of elements of a line.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// The coefficients as the caller passed them. For an antisymmetric stencil: those of the
    /// neighbours ahead. For a symmetric one: first that of the element itself. For any other: all,
    /// from the farthest behind to the farthest ahead.
    #[must_use]
    pub fn coefficients(&self) -> &[T] {
        &self.coefficients[self.given()]
    }

    /// R: the number of neighbours on either side, and the number of elements at either end that
    /// are not written.
    #[must_use]
    pub const fn radius(&self) -> usize {
        self.radius
    }

    /// The number of computed elements: n - 2 R.
    #[must_use]
    pub const fn inner_len(&self) -> usize {
        self.n - 2 * self.radius
    }

    /// Threads per block of the textbook kernels: 32 unless set by
    /// [`with_block`](Self::with_block).
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// The fewest bytes, if each element is read once and each inner element is written once, and
    /// the floating-point operations, where a fused multiply-add counts as two. Each is at most
    /// `u64::MAX`.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        let radius = self.radius as u64;
        let each = match self.form {
            Form::Antisymmetric => 3 * radius - 1,
            Form::Symmetric => 3 * radius + 1,
            Form::Any => 4 * radius + 1,
        };
        inner_cost(&self.problem(), self.radius, size_of::<T>(), each)
    }

    /// The line and the block of the textbook kernels, as a problem of the table of kernels.
    pub(super) const fn problem(&self) -> Problem {
        Problem::line(self.n).with_block(self.block)
    }

    /// Runs the port on lines whose lengths have been checked.
    pub(super) fn on_cpu(&self, input: &[T], inner: &mut [T]) {
        T::stencil(self.form, self.radius, &self.coefficients, input, inner);
    }

    /// Whether the nine-point kernels can compute it.
    pub(super) fn is_nine_point(&self) -> bool {
        self.form == Form::Antisymmetric && self.radius == gpu_kernels::stencil1d::RADIUS
    }
}

/// The index of the coefficient of neighbour m.
const fn place(m: i32) -> usize {
    (MAX_RADIUS as i32 + m) as usize
}

/// The names of the coefficients in errors.
const NAMES: [&str; MAX_POINTS] = [
    "coefficient -8",
    "coefficient -7",
    "coefficient -6",
    "coefficient -5",
    "coefficient -4",
    "coefficient -3",
    "coefficient -2",
    "coefficient -1",
    "coefficient 0",
    "coefficient 1",
    "coefficient 2",
    "coefficient 3",
    "coefficient 4",
    "coefficient 5",
    "coefficient 6",
    "coefficient 7",
    "coefficient 8",
];

/// Returns an error unless there are 1 to 8 neighbours; `given` is the number in the message.
fn require_radius(radius: usize, given: usize) -> Result<(), Error> {
    if (1..=MAX_RADIUS).contains(&radius) {
        return Ok(());
    }
    Err(Error::InvalidSize {
        operation: OPERATION,
        axis: "the number of coefficients",
        given,
        required: if radius == given {
            format!("1 to {MAX_RADIUS}")
        } else {
            format!("an odd number from 3 to {MAX_POINTS}")
        },
    })
}
