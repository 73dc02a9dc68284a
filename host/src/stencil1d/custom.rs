//! Stencils of your own: any coefficients, one to eight neighbours on either side.

use super::check::{self, Checked};
use super::form::Form;
use crate::allocation::zeroed;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};
pub use gpu_kernels::stencil1d::custom::{MAX_POINTS, MAX_RADIUS};

const OPERATION: &str = "stencil1d: custom";

/// A stencil with coefficients of your own, on lines of a given length.
///
/// ```text
/// antisymmetric  out[i] = Σ_m c_m (in[i+m] - in[i-m])                 1 <= m <= R
/// symmetric      out[i] = c_0 in[i] + Σ_m c_m (in[i+m] + in[i-m])
/// any            out[i] = c_0 in[i] + Σ_m (c_m in[i+m] + c_-m in[i-m])
/// ```
///
/// for R ≤ i < n - R, in f32 or f64, with R from 1 to [`MAX_RADIUS`]. The **first and
/// the last R elements** of `out` are not written: they keep what they had.
///
/// The first term is a product, the others are taken by a fused multiply-add each, the
/// nearest neighbours first and the one ahead before the one behind. So the CPU port and
/// the kernel, `stencil1d_custom_f32` or `_f64`, give the same bits; which NaN a NaN in
/// the line becomes is the processor's choice. NaN and infinities go as far as the
/// stencil reaches and no farther.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::finite_difference::Weights;
/// use halo_gpu::stencil1d::Custom;
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // A second derivative of 4th order, exact on a parabola of unit spacing.
/// let line: Vec<f64> = (0..50).map(|i| f64::from(i * i)).collect();
/// let weights = Weights::central(2, 4)?;
/// let stencil = Custom::any(line.len(), weights.values())?;
/// assert_eq!(stencil.radius(), 2);
/// for device in [Device::cpu(), Device::emulator()] {
///     let inner = stencil.of(&device, &line)?;
///     assert_eq!(inner.len(), 46);
///     assert!(inner.iter().all(|value| (value - 2.0).abs() < 1e-11));
/// }
///
/// // A running mean of three.
/// let mean = Custom::symmetric(4, 0.5_f32, &[0.25])?;
/// assert_eq!(mean.of(&Device::cpu(), &[0.0, 4.0, 0.0, 8.0])?, [2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Custom<T: Scalar> {
    pub(super) n: usize,
    pub(super) form: Form,
    pub(super) radius: usize,
    /// That of the neighbour m at place 8 + m; 0 beyond the radius.
    pub(super) coefficients: [T; MAX_POINTS],
}

impl<T: Scalar> Custom<T> {
    /// `coefficients[m - 1]` for the difference of the two neighbours m elements away,
    /// of which there are 1 to 8, on lines of `n` elements.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Custom;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // The central difference of second order, of unit spacing.
    /// let slope = Custom::antisymmetric(4, &[0.5_f64])?;
    /// assert_eq!(slope.of(&Device::cpu(), &[0.0, 1.0, 4.0, 9.0])?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for another number of coefficients and for a line in which
    /// no element has all its neighbours; [`Error::InvalidElement`] for a coefficient
    /// that is NaN or infinite.
    pub fn antisymmetric(n: usize, coefficients: &[T]) -> Result<Self, Error> {
        let radius = coefficients.len();
        require_radius("the number of coefficients", radius, radius)?;
        Self::new(n, Form::Antisymmetric, radius, |m| match m {
            // Not looked at, but what the formula says: `-c` of the one ahead has no use.
            ..=0 => T::zeroed(),
            _ => coefficients[m as usize - 1],
        })
    }

    /// `center` for the element itself and `coefficients[m - 1]` for the sum of the two
    /// neighbours m elements away, of which there are 1 to 8, on lines of `n` elements.
    ///
    /// # Errors
    ///
    /// As [`antisymmetric`](Self::antisymmetric).
    pub fn symmetric(n: usize, center: T, coefficients: &[T]) -> Result<Self, Error> {
        let radius = coefficients.len();
        require_radius("the number of coefficients", radius, radius)?;
        Self::new(n, Form::Symmetric, radius, |m| match m {
            0 => center,
            _ => coefficients[m.unsigned_abs() as usize - 1],
        })
    }

    /// `coefficients[R + m]` for the element m ahead, of which there are 3, 5, … 17, on
    /// lines of `n` elements.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Custom;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // The forward difference: nothing of the one behind.
    /// let forward = Custom::any(4, &[0.0_f32, -1.0, 1.0])?;
    /// assert_eq!(forward.of(&Device::emulator(), &[0.0, 1.0, 4.0, 9.0])?, [3.0, 5.0]);
    /// assert!(Custom::any(4, &[-1.0_f32, 1.0]).is_err()); // no middle
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`antisymmetric`](Self::antisymmetric).
    pub fn any(n: usize, coefficients: &[T]) -> Result<Self, Error> {
        let points = coefficients.len();
        let radius = points / 2;
        require_radius(
            "the number of coefficients",
            if points % 2 == 1 { radius } else { 0 },
            points,
        )?;
        Self::new(n, Form::Any, radius, |m| {
            coefficients[(radius as i32 + m) as usize]
        })
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
        for (index, m) in (-reach..=reach).enumerate() {
            let value = coefficient(m);
            if !value.into().is_finite() {
                return Err(Error::InvalidElement {
                    operation: OPERATION,
                    what: "the coefficient of point",
                    index,
                    given: value.into(),
                    required: "a finite number".to_owned(),
                });
            }
            coefficients[(MAX_RADIUS as i32 + m) as usize] = value;
        }
        Ok(Self {
            n,
            form,
            radius,
            coefficients,
        })
    }

    /// The elements of a line.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// How the coefficients belong together.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// R: how many neighbours on either side, and how many elements at either end are
    /// not written.
    #[must_use]
    pub const fn radius(&self) -> usize {
        self.radius
    }

    /// The elements that are computed: n - 2 R.
    #[must_use]
    pub const fn inner_len(&self) -> usize {
        self.n - 2 * self.radius
    }

    /// The bytes it has to move at the least: each element read once, each inner
    /// element written once. At most `u64::MAX`.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        (self.n as u64)
            .saturating_add(self.inner_len() as u64)
            .saturating_mul(size_of::<T>() as u64)
    }

    /// The floating-point operations, at most `u64::MAX`; a fused multiply-add is two.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        let radius = self.radius as u64;
        let each = match self.form {
            Form::Antisymmetric => 3 * radius - 1,
            Form::Symmetric => 3 * radius + 1,
            Form::Any => 4 * radius + 1,
        };
        (self.inner_len() as u64).saturating_mul(each)
    }

    /// The kernel's entry point, as in the PTX.
    #[must_use]
    pub fn kernel() -> &'static str {
        T::KERNEL
    }

    /// The stencil on a line on the host, computed on `device`: the n - 2 R inner
    /// elements, of which number 0 belongs to `input[R]`.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and [`Error::OutOfMemory`].
    pub fn of(&self, device: &Device, input: &[T]) -> Result<Vec<T>, Error> {
        check::length("input", self.n, input.len())?;
        if device.kind() == DeviceKind::Cpu {
            let mut inner = zeroed(self.inner_len())?;
            T::stencil(
                self.form,
                self.radius,
                &self.coefficients,
                input,
                &mut inner,
            );
            return Ok(inner);
        }
        let input = device.upload(input)?;
        let mut output = device.alloc_filled(self.n, T::zeroed())?;
        self.apply(&input, &mut output)?;
        let mut output = output.to_vec()?;
        output.truncate(self.n - self.radius);
        output.drain(..self.radius);
        Ok(output)
    }

    /// The stencil on `input`, into the inner elements of `output`, on the device of the
    /// buffers.
    ///
    /// Both hold `n` elements. The first and the last R of `output` are left as they are.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not
    /// fit, and what a launch can fail with.
    pub fn apply(&self, input: &Buffer<T>, output: &mut Buffer<T>) -> Result<(), Error> {
        let checked = Checked::new(self.n, input, output)?;
        match input.device().kind() {
            DeviceKind::Cpu => {
                let (Some(input), Some(output)) = (
                    input.as_host_slice(),
                    checked.into_output().as_host_mut_slice(),
                ) else {
                    unreachable!("buffers of the CPU device are host memory");
                };
                let inner = self.radius..self.n - self.radius;
                T::stencil(
                    self.form,
                    self.radius,
                    &self.coefficients,
                    input,
                    &mut output[inner],
                );
                Ok(())
            }
            DeviceKind::Emulator | DeviceKind::Cuda => {
                T::launch_stencil(self.form, self.radius as u32, &self.coefficients, checked)
            }
        }
    }
}

/// Refuses another number of neighbours than 1 to 8, `given` as what was given.
fn require_radius(axis: &'static str, radius: usize, given: usize) -> Result<(), Error> {
    if (1..=MAX_RADIUS).contains(&radius) {
        return Ok(());
    }
    Err(Error::InvalidSize {
        operation: OPERATION,
        axis,
        given,
        required: if radius == given {
            format!("1 to {MAX_RADIUS}")
        } else {
            format!("an odd number from 3 to {MAX_POINTS}")
        },
    })
}
