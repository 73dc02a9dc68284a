//! Potentials and the energy that is in them; accelerations in mixed precision.

use super::check::{self, ACCELERATIONS, POTENTIALS};
use super::gpu::{self, Launch};
use super::{Body, Gravity, cpu};
use crate::scalar::Scalar;
use crate::single_pass::{Operation, SinglePass, read};
use crate::{Buffer, Device, DeviceKind, Error};

impl Gravity {
    /// The potential of each of `bodies`, `φ_i = -Σ_{j≠i} m_j / √(|r|² + ε²)`, in f64,
    /// computed on `device`; in the unit of the masses over that of the positions.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = [
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ];
    /// for device in [Device::cpu(), Device::emulator()] {
    ///     let potentials = Gravity::new(1.0)?.potentials(&device, &bodies)?;
    ///     assert_eq!(potentials, [-4.0, -8.0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check) and [`potentials_into`](Self::potentials_into), and
    /// [`Error::OutOfMemory`].
    pub fn potentials<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<Vec<f64>, Error> {
        self.check(bodies)?;
        let bodies = device.upload(bodies)?;
        let mut potentials = device.alloc_filled(bodies.len(), f64::NAN)?;
        self.potentials_into(&bodies, &mut potentials)?;
        potentials.to_vec()
    }

    /// The potential of each of `bodies` into `potentials`, on the device of the buffers.
    ///
    /// A body is left out of its own potential; one at the same place is not, and adds
    /// m / ε. On the CPU all is f64. Kernels compute terms and the sums over a tile of
    /// [`block`](Self::block) bodies in `T` and add tiles in f64: a potential is off by at
    /// most `(14 + block) u Σ |m_j| / √(|r|² + ε²)` with the unit roundoff u of `T`, for
    /// any number of bodies.
    ///
    /// What the bodies are is not looked at, as by [`apply`](Self::apply).
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let bodies = device.upload(&[
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ])?;
    /// let mut potentials = device.alloc_filled(2, 0.0_f64)?;
    /// Gravity::new(1.0)?.potentials_into(&bodies, &mut potentials)?;
    /// assert_eq!(potentials.to_vec()?, [-4.0, -8.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply), and [`Error::HostOutOfMemory`] on the CPU, which widens the
    /// bodies.
    pub fn potentials_into<T: Scalar>(
        &self,
        bodies: &Buffer<Body<T>>,
        potentials: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        check::values(bodies, POTENTIALS, potentials)?;
        if bodies.device().kind() != DeviceKind::Cpu {
            return self.launch_potentials(false, bodies, potentials);
        }
        self.softening_squared::<T>()?;
        let (Some(bodies), Some(potentials)) =
            (bodies.as_host_slice(), potentials.as_host_mut_slice())
        else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::potentials(bodies, self.softening() * self.softening(), potentials)
    }

    /// The potential energy `Σ m_i φ_i / 2` of bodies that are on a device, computed
    /// there: n² interactions and the sum of n numbers, in an order that depends on n
    /// alone. [`potential_energy`](Self::potential_energy) is the same of a slice, in f64
    /// and on the host.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// for device in [Device::cpu(), Device::emulator()] {
    ///     let bodies = device.upload(&[
    ///         Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///         Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    ///     ])?;
    ///     // (16 · -4 + 8 · -8) / 2
    ///     assert_eq!(Gravity::new(1.0)?.potential_energy_on(&bodies)?, -64.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`potentials_into`](Self::potentials_into), and [`Error::OutOfMemory`].
    pub fn potential_energy_on<T: Scalar>(&self, bodies: &Buffer<Body<T>>) -> Result<f64, Error> {
        let mut shares = bodies.device().alloc_filled(bodies.len(), f64::NAN)?;
        if bodies.device().kind() != DeviceKind::Cpu {
            self.launch_potentials(true, bodies, &mut shares)?;
            return sum(&shares);
        }
        self.potentials_into(bodies, &mut shares)?;
        if let (Some(bodies), Some(shares)) = (bodies.as_host_slice(), shares.as_host_mut_slice()) {
            for (share, body) in shares.iter_mut().zip(bodies) {
                *share *= 0.5 * body.mass.into();
            }
        }
        sum(&shares)
    }

    fn launch_potentials<T: Scalar>(
        &self,
        weighted: bool,
        bodies: &Buffer<Body<T>>,
        potentials: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        Launch::Potentials {
            weighted,
            block: self.block(),
            softening_squared: self.softening_squared()?,
            bodies,
            potentials,
        }
        .launch()
    }

    /// The potential energy `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`, computed in f64 on
    /// the CPU.
    ///
    /// Its negative gradient with respect to x_i is m_i a_i: with it and the
    /// kinetic energy, an integration can be checked.
    ///
    /// ```
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = [
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ];
    /// assert_eq!(Gravity::new(1.0)?.potential_energy(&bodies)?, -16.0 * 8.0 / 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), and [`Error::HostOutOfMemory`].
    pub fn potential_energy<T: Scalar>(&self, bodies: &[Body<T>]) -> Result<f64, Error> {
        self.check(bodies)?;
        cpu::potential_energy(bodies, self.softening() * self.softening())
    }

    /// The acceleration of each of `bodies` in mixed precision: interactions in f32, their
    /// sums in f64.
    ///
    /// The sum over [`block`](Self::block) bodies (128 on the CPU) is made in f32 and added
    /// to one in f64. An acceleration in f32 takes n roundings of its growing sum; this one
    /// takes as many as a tile has bodies. It costs next to nothing, and pays where n is
    /// large: the error of single interactions, some 10⁻⁷ of the largest of them, is left.
    /// It is off by at most `(21 + block) u Σ |r s|` with u = 2⁻²⁴, for any number of
    /// bodies. (Sums of blocks in low precision, added in high: P. Blanchard, N. J. Higham
    /// and T. Mary, "A class of fast and accurate summation algorithms", SIAM J. Sci.
    /// Comput. 42 (2020).)
    ///
    /// Positions are f32, and so are their differences; what is lost when bodies far from
    /// the origin are close to each other is lost.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let bodies = device.upload(&[
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ])?;
    /// let mut accelerations = device.alloc_filled(2, [0.0_f64; 3])?;
    /// Gravity::new(1.0)?.apply_mixed(&bodies, &mut accelerations)?;
    /// assert_eq!(accelerations.to_vec()?, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply).
    pub fn apply_mixed(
        &self,
        bodies: &Buffer<Body<f32>>,
        accelerations: &mut Buffer<[f64; 3]>,
    ) -> Result<(), Error> {
        check::values(bodies, ACCELERATIONS, accelerations)?;
        let softening_squared = self.softening_squared::<f32>()?;
        if bodies.device().kind() != DeviceKind::Cpu {
            return gpu::mixed(self.block(), softening_squared, bodies, accelerations);
        }
        let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        else {
            unreachable!("buffers of the CPU device are host memory");
        };
        cpu::mixed(bodies, softening_squared, accelerations);
        Ok(())
    }
}

/// The entry point of potentials of bodies of `T`, as in the PTX: `nbody_potential_f32` or
/// `_f64`.
#[must_use]
pub fn potential_kernel<T: Scalar>() -> &'static str {
    T::POTENTIAL
}

/// The entry point of accelerations in mixed precision, as in the PTX.
pub const MIXED_KERNEL: &str = gpu::MIXED;

/// The sum of what the bodies have a share of.
fn sum(shares: &Buffer<f64>) -> Result<f64, Error> {
    let mut reductions = SinglePass::new(shares.device());
    read(&mut None, shares.device(), |total| {
        reductions.elements(Operation::Sum, shares, total)
    })
}
