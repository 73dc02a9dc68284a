//! Accelerations: by what the library picks, by a kernel, by a port.

use super::check::{self, ACCELERATIONS};
use super::gpu::Launch;
use super::solver::{Solver, default_for};
use super::{Body, Gravity, Port, Variant, cpu};
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};

impl Variant {
    /// The entry point for bodies of `T`, as in the PTX.
    #[must_use]
    pub fn name<T: Scalar>(self) -> &'static str {
        let mut entries = self.entries().iter();
        match entries.find(|entry| entry.scalar == T::SCALAR) {
            Some(entry) => entry.name,
            None => unreachable!("there is one for each type of bodies"),
        }
    }

    /// How many interactions a turn of the inner loop holds, in f32.
    #[must_use]
    pub const fn unroll(self) -> usize {
        match self {
            Self::AosUnroll1 => 1,
            Self::AosUnroll2 => 2,
            Self::AosUnroll4 => 4,
            Self::AosUnroll8 => 8,
            Self::AosUnroll16 => 16,
            Self::AosUnroll32 => 32,
            Self::Shared => gpu_kernels::nbody::SHARED_UNROLL,
            Self::RegisterTile => 32,
            Self::Symmetric => 64,
        }
    }
}

impl Gravity {
    /// The acceleration `[x, y, z]` of each of `bodies`, in their order, computed on
    /// `device`. It is in the unit of the masses over that of the positions squared, the
    /// gravitational constant being 1.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// // Sun and earth in metres and seconds: masses times the gravitational constant.
    /// let bodies = [
    ///     Body { x: 0.0_f64, y: 0.0, z: 0.0, mass: 1.327e20 },
    ///     Body { x: 1.496e11, y: 0.0, z: 0.0, mass: 3.986e14 },
    /// ];
    /// let [_, earth] = Gravity::new(1e6)?.accelerations(&Device::cpu(), &bodies)?[..] else {
    ///     unreachable!("one for each body");
    /// };
    /// assert!((earth[0] + 5.93e-3).abs() < 1e-5); // m/s², towards the sun
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check) and [`apply`](Self::apply), and
    /// [`Error::OutOfMemory`].
    pub fn accelerations<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<Vec<[T; 3]>, Error> {
        self.check(bodies)?;
        let bodies = device.upload(bodies)?;
        let mut accelerations = device.alloc_filled(bodies.len(), [T::nearest(f64::NAN); 3])?;
        self.apply(&bodies, &mut accelerations)?;
        accelerations.to_vec()
    }

    /// The acceleration of each of `bodies`, into `accelerations`, on the device
    /// of the buffers: by [`Variant::Symmetric`] from 8192 bodies on and by
    /// [`Variant::RegisterTile`] below or, on the CPU, by [`Port::Soa`].
    ///
    /// Both buffers have one element for each body; units are those of
    /// [`accelerations`](Self::accelerations). The two kernels need memory, which this
    /// allocates; a [`Solver`] keeps it for the next time.
    ///
    /// What the bodies are is not looked at, for they are on the device: with
    /// bodies that [`check`](Self::check) refuses, accelerations can be infinite
    /// or NaN.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::LengthMismatch`]
    /// and [`Error::DeviceMismatch`] for buffers that do not fit;
    /// [`Error::InvalidParameter`] for a softening that does not suit the type;
    /// and what a launch can fail with.
    pub fn apply<T: Scalar>(
        &self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        if bodies.device().kind() != DeviceKind::Cpu {
            return self.apply_with(default_for(bodies.len()), bodies, accelerations);
        }
        check::values(bodies, ACCELERATIONS, accelerations)?;
        let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        else {
            unreachable!("buffers of the CPU device are host memory");
        };
        self.apply_port(Port::Soa, bodies, accelerations)
    }

    /// The acceleration of each of `bodies` by the given kernel, into
    /// `accelerations`.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let bodies = device.upload(&[
    ///     Body { x: 0.0_f64, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ])?;
    /// for variant in [Variant::AosUnroll16, Variant::Shared] {
    ///     let mut accelerations = device.alloc_filled(2, [0.0; 3])?;
    ///     Gravity::new(1.0)?.apply_with(variant, &bodies, &mut accelerations)?;
    ///     assert_eq!(accelerations.to_vec()?, [[1.0; 3], [-2.0; 3]]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`apply`](Self::apply); [`Error::NotLaunchable`] if the buffers are on
    /// the CPU device, which runs no kernels.
    pub fn apply_with<T: Scalar>(
        &self,
        variant: Variant,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        check::values(bodies, ACCELERATIONS, accelerations)?;
        let softening_squared = self.softening_squared()?;
        match variant {
            Variant::RegisterTile | Variant::Symmetric => {
                if bodies.device().kind() == DeviceKind::Cpu {
                    let kernel = variant.name::<T>();
                    return Err(Error::NotLaunchable { kernel });
                }
                Solver::new(self, bodies.device(), bodies.len(), Some(variant))?
                    .apply(bodies, accelerations)
            }
            _ => Launch::Whole {
                variant,
                block: self.block(),
                softening_squared,
                bodies,
                accelerations,
            }
            .launch(),
        }
    }

    /// The acceleration of each of `bodies` by the given CPU port, into
    /// `accelerations`, both in host memory.
    ///
    /// ```
    /// use halo_gpu::nbody::{Body, Gravity, Port};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let bodies = [
    ///     Body { x: 0.0_f32, y: 0.0, z: 0.0, mass: 16.0 },
    ///     Body { x: 1.0, y: 1.0, z: 1.0, mass: 8.0 },
    /// ];
    /// for port in Port::ALL {
    ///     let mut accelerations = [[0.0; 3]; 2];
    ///     Gravity::new(1.0)?.apply_port(port, &bodies, &mut accelerations)?;
    ///     assert_eq!(accelerations, [[1.0; 3], [-2.0; 3]], "{port}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::LengthMismatch`],
    /// and [`Error::InvalidParameter`] for a softening that does not suit the type.
    pub fn apply_port<T: Scalar>(
        &self,
        port: Port,
        bodies: &[Body<T>],
        accelerations: &mut [[T; 3]],
    ) -> Result<(), Error> {
        check::lengths(bodies.len(), ACCELERATIONS, accelerations.len())?;
        let softening_squared = self.softening_squared::<T>()?;
        match port {
            Port::Aos => cpu::aos(bodies, softening_squared, accelerations),
            Port::Soa => cpu::soa(bodies, softening_squared, accelerations),
        }
        Ok(())
    }
}
