//! A nine-point stencil on a line, antisymmetric, with coefficients of your own.
//!
//! ```text
//! out[i] = c1 (in[i+1] - in[i-1]) + c2 (in[i+2] - in[i-2])
//!        + c3 (in[i+3] - in[i-3]) + c4 (in[i+4] - in[i-4])      4 <= i < n - 4
//! ```
//!
//! The first and the last four elements of `out` are not written: they keep what
//! they had. With the right coefficients this is a first derivative of 8th order
//! ([`Stencil1d::derivative`]); the textbook's are [`TEXTBOOK_COEFFICIENTS`].
//!
//! [`Stencil1d`] says what is computed: the length, the coefficients, and for the
//! textbook kernels the threads of a block. Where it runs is the device of the
//! buffers. On a CUDA device and on the emulator it is the tuned kernel; it and the two
//! textbook kernels can also be asked for by name ([`Variant`]). On the CPU it is a
//! port. All of them give the same bits.
//!
//! For any other stencil with up to eight neighbours on either side, and for f64, there is
//! [`Custom`].
//!
//! ```
//! use halo_gpu::Device;
//! use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
//!
//! # fn main() -> Result<(), halo_gpu::Error> {
//! let line: Vec<f32> = (0..100).map(|i| i as f32).collect();
//! let stencil = Stencil1d::new(line.len(), TEXTBOOK_COEFFICIENTS)?;
//! // On a line of slope 1 each of the n - 8 inner elements is Σ 2m · c_m.
//! let inner = stencil.of(&Device::emulator(), &line)?;
//! assert_eq!(inner, [10.0_f32; 92]);
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "cases")]
pub(crate) mod cases;
mod check;
pub(crate) mod cpu;
mod custom;
mod form;
pub(crate) mod gpu;
pub mod problem;

use crate::allocation::zeroed;
use crate::finite_difference::CENTRAL_8;
use crate::{Buffer, Device, DeviceKind, Error};
use check::Checked;
pub use custom::{Custom, MAX_POINTS, MAX_RADIUS};
pub use form::Form;
pub use gpu::Variant;
use gpu_kernels::registry::{Cost, Problem};
use gpu_kernels::stencil1d::geometry;
pub use gpu_kernels::stencil1d::{BLOCK_DEFAULT, FLOPS_PER_ELEMENT, RADIUS};
use std::fmt;

/// The fewest elements of a line: an element with its neighbours.
pub const MIN_LEN: usize = 2 * RADIUS + 1;

/// The textbook's coefficients.
pub const TEXTBOOK_COEFFICIENTS: [f32; RADIUS] = [-1.0, -2.0, 2.0, 1.0];

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A nine-point stencil on lines of a given length.
///
/// The result is in the unit of the line times that of the coefficients.
///
/// **NaN and infinities** in the line are not looked for: one makes the four outputs on
/// either side NaN (or infinite), also where a coefficient is 0, and no other; the output
/// of the element itself does not read it. Coefficients are finite.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let stencil = Stencil1d::new(20, TEXTBOOK_COEFFICIENTS)?.with_block(64)?;
/// assert_eq!((stencil.block(), stencil.inner_len()), (64, 12));
/// assert_eq!(stencil.bytes(), 4 * (20 + 12));
///
/// let mut line = [0.0_f32; 20];
/// line[10] = f32::NAN;
/// let inner = stencil.of(&Device::emulator(), &line)?;
/// let nan: Vec<usize> = (4..16).filter(|i| inner[i - 4].is_nan()).collect();
/// assert_eq!(nan, [6, 7, 8, 9, 11, 12, 13, 14]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stencil1d {
    n: usize,
    coefficients: [f32; RADIUS],
    block: u32,
}

impl Stencil1d {
    /// The stencil with `coefficients[m - 1]` for the two neighbours `m` elements
    /// away, on lines of `n` elements.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] for fewer than [`MIN_LEN`] elements, of which none
    /// has all its neighbours; [`Error::NonFinite`] for a coefficient that is NaN
    /// or infinite.
    pub fn new(n: usize, coefficients: [f32; RADIUS]) -> Result<Self, Error> {
        const OPERATION: &str = "stencil1d";
        if n < MIN_LEN {
            return Err(Error::InvalidSize {
                operation: OPERATION,
                axis: "n",
                given: n,
                required: format!("at least {MIN_LEN} ({RADIUS} neighbours on either side)"),
            });
        }
        const NAMES: [&str; RADIUS] = [
            "coefficient 1",
            "coefficient 2",
            "coefficient 3",
            "coefficient 4",
        ];
        for (parameter, coefficient) in NAMES.into_iter().zip(coefficients) {
            if !coefficient.is_finite() {
                return Err(Error::NonFinite {
                    operation: OPERATION,
                    parameter,
                    given: coefficient.into(),
                });
            }
        }
        Ok(Self {
            n,
            coefficients,
            block: BLOCK_DEFAULT,
        })
    }

    /// The first derivative of 8th order, of lines of `n` elements whose points
    /// are `spacing` apart, in the unit of the line over that of the spacing.
    ///
    /// The coefficients are [`CENTRAL_8`] (Fornberg 1988, as with
    /// [`finite_difference`](crate::finite_difference)) over the spacing, divided in `f64`
    /// and rounded once. The truncation error begins with
    /// `-spacing⁸/630 · f⁽⁹⁾`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::NonFinite`] and [`Error::InvalidParameter`]
    /// for a spacing that is not a positive number, or so small or large that a
    /// coefficient leaves the range of `f32`.
    pub fn derivative(n: usize, spacing: f64) -> Result<Self, Error> {
        const OPERATION: &str = "stencil1d";
        if !spacing.is_finite() {
            return Err(Error::NonFinite {
                operation: OPERATION,
                parameter: "the spacing",
                given: spacing,
            });
        }
        let coefficients = CENTRAL_8.map(|weight| (weight / spacing) as f32);
        if !(spacing > 0.0) || !coefficients.iter().all(|value| value.is_normal()) {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the spacing",
                given: spacing.to_string(),
                required: "positive, with the weights over it in the range of f32".into(),
            });
        }
        Self::new(n, coefficients)
    }

    /// The same stencil, with `block` threads per block of the textbook kernels. Any number
    /// gives the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSize`] unless `block` is a multiple of 32 between 32 and
    /// 1024.
    pub fn with_block(mut self, block: u32) -> Result<Self, Error> {
        if !(gpu::WARP..=gpu::MAX_BLOCK).contains(&block) || !block.is_multiple_of(gpu::WARP) {
            return Err(Error::InvalidSize {
                operation: "stencil1d",
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

    /// The elements of a line.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// The coefficients, those of the nearest neighbours first.
    #[must_use]
    pub const fn coefficients(&self) -> [f32; RADIUS] {
        self.coefficients
    }

    /// Threads per block of the textbook kernels: [`BLOCK_DEFAULT`] unless
    /// [`with_block`](Self::with_block) said otherwise.
    #[must_use]
    pub const fn block(&self) -> u32 {
        self.block
    }

    /// The elements that are computed: all but the first and the last four.
    #[must_use]
    pub const fn inner_len(&self) -> usize {
        self.n - 2 * RADIUS
    }

    /// The line, and the block of the textbook kernels, as the table of kernels has it.
    const fn problem(&self) -> Problem {
        Problem::line(self.n).with_block(self.block)
    }

    const fn cost(&self) -> Cost {
        geometry::cost(&self.problem())
    }

    /// The bytes it has to move at the least: each element read once, each inner
    /// element written once. At most `u64::MAX`.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.cost().bytes
    }

    /// The floating-point operations, at most `u64::MAX`.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        self.cost().flops
    }

    /// The stencil on a line on the host, computed on `device`: the `n - 8` inner
    /// elements, of which number 0 belongs to `input[4]`.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and [`Error::OutOfMemory`].
    pub fn of(&self, device: &Device, input: &[f32]) -> Result<Vec<f32>, Error> {
        check::length("input", self.n, input.len())?;
        if device.kind() == DeviceKind::Cpu {
            let mut inner = zeroed(self.inner_len())?;
            cpu::stencil(self.coefficients, input, &mut inner);
            return Ok(inner);
        }
        let input = device.upload(input)?;
        let mut output = device.alloc_filled(self.n, f32::NAN)?;
        self.apply(&input, &mut output)?;
        let mut output = output.to_vec()?;
        output.truncate(self.n - RADIUS);
        output.drain(..RADIUS);
        Ok(output)
    }

    /// The stencil on `input`, into the inner elements of `output`, on the device
    /// of the buffers.
    ///
    /// Both hold `n` elements. The first and the last four of `output` are left
    /// as they are.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::Stencil1d;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// // Half a second from element to element, 3 m more at each: 6 m/s.
    /// let line: Vec<f32> = (0..12).map(|i| 3.0 * i as f32).collect();
    /// let speed = Stencil1d::derivative(line.len(), 0.5)?;
    /// let input = device.upload(&line)?;
    /// let mut output = device.alloc_filled(12, -1.0)?;
    /// speed.apply(&input, &mut output)?;
    /// let output = output.to_vec()?;
    /// assert!(output[4..8].iter().all(|value| (value - 6.0).abs() < 1e-4));
    /// assert_eq!(output[..4], [-1.0; 4]); // not written
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that
    /// do not fit, and what a launch can fail with.
    pub fn apply(&self, input: &Buffer<f32>, output: &mut Buffer<f32>) -> Result<(), Error> {
        let checked = Checked::new(self.n, input, output)?;
        match input.device().kind() {
            DeviceKind::Cpu => {
                let (Some(input), Some(output)) = (
                    input.as_host_slice(),
                    checked.into_output().as_host_mut_slice(),
                ) else {
                    unreachable!("buffers of the CPU device are host memory");
                };
                let inner = RADIUS..self.n - RADIUS;
                cpu::stencil(self.coefficients, input, &mut output[inner]);
                Ok(())
            }
            DeviceKind::Emulator | DeviceKind::Cuda => gpu::launch(
                Variant::Vector4,
                self.block,
                &self.coefficients,
                None,
                checked,
            ),
        }
    }

    /// As [`apply`](Self::apply), by the given kernel.
    ///
    /// [`Variant::ReadOnly`] uploads the coefficients first; for more than one
    /// call have them on the device from the start, with [`on`](Self::on).
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let stencil = Stencil1d::new(100, TEXTBOOK_COEFFICIENTS)?;
    /// let input = device.upload(&(0..100).map(|i| i as f32).collect::<Vec<_>>())?;
    /// for variant in Variant::ALL {
    ///     let mut output = device.alloc_filled(100, 0.0)?;
    ///     stencil.apply_with(variant, &input, &mut output)?;
    ///     assert_eq!(output.to_vec()?[4..96], [10.0; 92], "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply); [`Error::NotLaunchable`] if the buffers are on
    /// the CPU device, which runs no kernels.
    pub fn apply_with(
        &self,
        variant: Variant,
        input: &Buffer<f32>,
        output: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let checked = Checked::new(self.n, input, output)?;
        gpu::launch(variant, self.block, &self.coefficients, None, checked)
    }

    /// The stencil with its coefficients in the memory of `device`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn on(&self, device: &Device) -> Result<OnDevice, Error> {
        Ok(OnDevice {
            stencil: *self,
            coefficients: device.upload(&self.coefficients)?,
        })
    }
}

/// A stencil whose coefficients are in a device's memory, ready for any kernel.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS, Variant};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let stencil = Stencil1d::new(50, TEXTBOOK_COEFFICIENTS)?.on(&device)?;
/// assert_eq!(stencil.stencil().n(), 50);
/// let input = device.upload(&(0..50).map(|i| i as f32).collect::<Vec<_>>())?;
/// let mut output = device.alloc_filled(50, 0.0)?;
/// stencil.apply_with(Variant::ReadOnly, &input, &mut output)?; // uploads nothing
/// assert_eq!(output.to_vec()?[4..46], [10.0; 42]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OnDevice {
    stencil: Stencil1d,
    coefficients: Buffer<f32>,
}

impl OnDevice {
    /// The stencil itself.
    #[must_use]
    pub const fn stencil(&self) -> &Stencil1d {
        &self.stencil
    }

    /// The stencil on `input` by the given kernel, into the inner elements of
    /// `output`, on the device of the coefficients.
    ///
    /// # Errors
    ///
    /// As [`Stencil1d::apply_with`].
    pub fn apply_with(
        &self,
        variant: Variant,
        input: &Buffer<f32>,
        output: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let Self {
            stencil,
            coefficients,
        } = self;
        let checked = Checked::new(stencil.n, input, output)?;
        coefficients.device().require("stencil1d: input", input)?;
        gpu::launch(
            variant,
            stencil.block,
            &stencil.coefficients,
            Some(coefficients),
            checked,
        )
    }
}
