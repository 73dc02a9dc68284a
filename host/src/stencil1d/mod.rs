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

mod cpu;
mod custom;
mod gpu;
pub mod problem;

use crate::derivative3d::WEIGHTS;
use crate::{Buffer, Device, DeviceKind, Error};
pub use custom::{Custom, Form, MAX_POINTS, MAX_RADIUS, Real};
pub use gpu_kernels::stencil1d::{BLOCK_DEFAULT, RADIUS};
use std::fmt;

/// The fewest elements of a line: an element with its neighbours.
pub const MIN_LEN: usize = 2 * RADIUS + 1;

/// The textbook's coefficients.
pub const TEXTBOOK_COEFFICIENTS: [f32; RADIUS] = [-1.0, -2.0, 2.0, 1.0];

/// Floating-point operations per element: 4 subtractions, 1 multiplication and
/// 3 fused multiply-adds of two operations each.
pub const FLOPS_PER_ELEMENT: u64 = 11;

/// One of the kernels.
///
/// The textbook's two have a tile of `block + 8` elements in shared memory, one
/// element per thread, and the first four threads load both halos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `stencil1d_constant`: the coefficients are in constant memory.
    Constant,
    /// `stencil1d_readonly`: the coefficients are in global memory, read through
    /// the read-only data cache.
    ReadOnly,
    /// `stencil1d_vector4`: no tile; 16 bytes per access, neighbours from other lanes.
    /// What the library picks.
    Vector4,
}

impl Variant {
    /// The textbook's two kernels.
    pub const TEXTBOOK: [Self; 2] = [Self::Constant, Self::ReadOnly];

    /// All kernels, the textbook's first.
    pub const ALL: [Self; 3] = [Self::Constant, Self::ReadOnly, Self::Vector4];
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A nine-point stencil on lines of a given length.
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
    /// are `spacing` apart.
    ///
    /// The coefficients are [`WEIGHTS`] over the spacing, divided in `f64` and
    /// rounded once. The truncation error is `spacing⁸/630 · f⁽⁹⁾`.
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
        let coefficients = WEIGHTS.map(|weight| (weight / spacing) as f32);
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

    /// The same with so many threads per block of the textbook kernels. Any number gives
    /// the same bits.
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

    /// The bytes it has to move at the least: each element read once, each inner
    /// element written once. At most `u64::MAX`, which lines beyond any memory exceed, as
    /// in the operations.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        let elements = (self.n as u64).saturating_add(self.inner_len() as u64);
        elements.saturating_mul(size_of::<f32>() as u64)
    }

    /// The floating-point operations.
    #[must_use]
    pub const fn flops(&self) -> u64 {
        (self.inner_len() as u64).saturating_mul(FLOPS_PER_ELEMENT)
    }

    /// The stencil on a line on the host, computed on `device`: the `n - 8` inner
    /// elements, of which number 0 belongs to `input[4]`.
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and [`Error::OutOfMemory`].
    pub fn of(&self, device: &Device, input: &[f32]) -> Result<Vec<f32>, Error> {
        self.check_len("input", input.len())?;
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
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that
    /// do not fit, and what a launch can fail with.
    pub fn apply(&self, input: &Buffer<f32>, output: &mut Buffer<f32>) -> Result<(), Error> {
        self.check_buffers(input, output)?;
        match input.device().kind() {
            DeviceKind::Cpu => {
                let (Some(input), Some(output)) =
                    (input.as_host_slice(), output.as_host_mut_slice())
                else {
                    unreachable!("buffers of the CPU device are host memory");
                };
                cpu::stencil(self.coefficients, input, output);
                Ok(())
            }
            DeviceKind::Emulator | DeviceKind::Cuda => gpu::launch_vector4(self, input, output),
        }
    }

    /// As [`apply`](Self::apply), by the given kernel.
    ///
    /// [`Variant::ReadOnly`] uploads the coefficients first; for more than one
    /// call have them on the device from the start, with [`on`](Self::on).
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
        self.check_buffers(input, output)?;
        match variant {
            Variant::Constant => gpu::launch_constant(self, input, output),
            Variant::Vector4 => gpu::launch_vector4(self, input, output),
            Variant::ReadOnly => self.on(input.device())?.apply_with(variant, input, output),
        }
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

    fn check_buffers(&self, input: &Buffer<f32>, output: &Buffer<f32>) -> Result<(), Error> {
        self.check_len("input", input.len())?;
        self.check_len("output", output.len())?;
        input.device().require("stencil1d: output", output)
    }

    fn check_len(&self, what: &str, given: usize) -> Result<(), Error> {
        if given == self.n {
            return Ok(());
        }
        Err(Error::LengthMismatch {
            what: format!("stencil1d: {what}"),
            required: self.n,
            given,
        })
    }
}

/// A stencil whose coefficients are in a device's memory, ready for any kernel.
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
        self.stencil.check_buffers(input, output)?;
        let device = self.coefficients.device();
        device.require("stencil1d: input", input)?;
        match variant {
            Variant::Constant => gpu::launch_constant(&self.stencil, input, output),
            Variant::Vector4 => gpu::launch_vector4(&self.stencil, input, output),
            Variant::ReadOnly => {
                gpu::launch_readonly(&self.stencil, &self.coefficients, input, output)
            }
        }
    }
}
