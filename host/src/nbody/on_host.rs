//! Gravity of bodies in host memory: plans, with copies to the device and back.

use super::check::{self, ACCELERATIONS, POTENTIALS};
use super::{Body, Gravity, Plan, cpu};
use crate::allocation::zeroed;
use crate::device::Lent;
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Element, Error};

impl Gravity {
    /// Computes the acceleration `[x, y, z]` of each of `bodies`, in their order, on `device`. Its
    /// unit is that of the masses divided by that of the positions squared, because the
    /// gravitational constant is 1.
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
    /// let gravity = Gravity::new(1.0)?;
    /// for device in [Device::cpu(), Device::emulator()] {
    ///     let a = gravity.accelerations_of(&device, &bodies)?;
    ///     assert_eq!(a, [[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
    ///     assert_eq!(gravity.accelerations_mixed_of(&device, &bodies)?[0], [1.0_f64; 3]);
    ///     assert_eq!(gravity.potentials_of(&device, &bodies)?, [-4.0, -8.0]);
    ///     assert_eq!(gravity.potential_energy_of(&device, &bodies)?, -64.0);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check), [`plan`](Self::plan) and [`Plan::accelerations`];
    /// [`Error::HostOutOfMemory`].
    pub fn accelerations_of<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<Vec<[T; 3]>, Error> {
        self.check(bodies)?;
        let mut accelerations = zeroed(bodies.len())?;
        self.accelerations_of_into(device, bodies, &mut accelerations)?;
        Ok(accelerations)
    }

    /// Like [`accelerations_of`](Self::accelerations_of), but writes to memory of the caller.
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of`](Self::accelerations_of), and [`Error::LengthMismatch`].
    pub fn accelerations_of_into<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
        accelerations: &mut [[T; 3]],
    ) -> Result<(), Error> {
        self.check(bodies)?;
        check::lengths(bodies.len(), ACCELERATIONS, accelerations.len())?;
        if device.kind() == DeviceKind::Cpu {
            cpu::soa(bodies, self.softening_squared()?, accelerations);
            return Ok(());
        }
        let poison = [T::nearest(f64::NAN); 3];
        self.by_plan(device, bodies, poison, accelerations, Plan::accelerations)
    }

    /// Computes the acceleration of each of `bodies` in mixed precision on `device`; see
    /// [`Plan::accelerations_mixed`].
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of`](Self::accelerations_of).
    pub fn accelerations_mixed_of(
        &self,
        device: &Device,
        bodies: &[Body<f32>],
    ) -> Result<Vec<[f64; 3]>, Error> {
        self.check(bodies)?;
        let mut accelerations = zeroed(bodies.len())?;
        self.accelerations_mixed_of_into(device, bodies, &mut accelerations)?;
        Ok(accelerations)
    }

    /// Like [`accelerations_mixed_of`](Self::accelerations_mixed_of), but writes to memory of the
    /// caller.
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of_into`](Self::accelerations_of_into).
    pub fn accelerations_mixed_of_into(
        &self,
        device: &Device,
        bodies: &[Body<f32>],
        accelerations: &mut [[f64; 3]],
    ) -> Result<(), Error> {
        self.check(bodies)?;
        check::lengths(bodies.len(), ACCELERATIONS, accelerations.len())?;
        if device.kind() == DeviceKind::Cpu {
            cpu::mixed(bodies, self.softening_squared()?, accelerations);
            return Ok(());
        }
        let poison = [f64::NAN; 3];
        self.by_plan(
            device,
            bodies,
            poison,
            accelerations,
            Plan::accelerations_mixed,
        )
    }

    /// Computes the potential of each of `bodies` in f64 on `device`, in the unit of the masses
    /// divided by that of the positions. See [`Plan::potentials`].
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of`](Self::accelerations_of).
    pub fn potentials_of<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<Vec<f64>, Error> {
        self.check(bodies)?;
        let mut potentials = zeroed(bodies.len())?;
        self.potentials_of_into(device, bodies, &mut potentials)?;
        Ok(potentials)
    }

    /// Like [`potentials_of`](Self::potentials_of), but writes to memory of the caller.
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of_into`](Self::accelerations_of_into).
    pub fn potentials_of_into<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
        potentials: &mut [f64],
    ) -> Result<(), Error> {
        self.check(bodies)?;
        check::lengths(bodies.len(), POTENTIALS, potentials.len())?;
        if device.kind() == DeviceKind::Cpu {
            return cpu::potentials(bodies, self.softening() * self.softening(), potentials);
        }
        self.by_plan(device, bodies, f64::NAN, potentials, Plan::potentials)
    }

    /// Computes the potential energy of `bodies` on `device`; see [`Plan::potential_energy`].
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of`](Self::accelerations_of).
    pub fn potential_energy_of<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
    ) -> Result<f64, Error> {
        self.check(bodies)?;
        let mut plan = self.plan(device, bodies.len())?;
        plan.potential_energy(Lent::new(device, bodies)?.as_buffer())
    }

    /// Runs one call of a plan, with copies to the device and back.
    fn by_plan<T: Scalar, V: Element>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
        poison: V,
        values: &mut [V],
        call: impl FnOnce(&mut Plan<T>, &Buffer<Body<T>>, &mut Buffer<V>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut plan = self.plan(device, bodies.len())?;
        let bodies = device.upload(bodies)?;
        let mut on_device = device.alloc_filled(values.len(), poison)?;
        call(&mut plan, &bodies, &mut on_device)?;
        on_device.copy_to_slice(values)
    }
}
