//! Sweeps of buffers.

use super::check;
use super::gpu::{self, Variant};
use super::heat::{By, Heat2d};
use super::state::{State, texture, values_of};
use crate::scalar::Scalar;
use crate::{Buffer, Error};

impl Heat2d {
    /// One sweep, from `old` into the interior points of `new` and its insulated walls,
    /// on the device of the buffers.
    ///
    /// `old` and `new` hold `nx * ny` elements, x fastest. The fixed walls of `new` are
    /// left as they are: both buffers get them before the first sweep.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let old = Device::cpu().upload(initial.as_slice())?;
    /// let mut new = old.try_clone()?; // which has the walls
    /// heat.sweep(&old, &mut new)?;
    /// assert_eq!(new.to_vec()?[5..10], [1.0, 0.25, 0.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and
    /// [`Error::DeviceMismatch`] for buffers that
    /// do not fit, and what a launch can fail with.
    pub fn sweep<T: Scalar>(&self, old: &Buffer<T>, new: &mut Buffer<T>) -> Result<(), Error> {
        check::fit(self.shape(), ("old", old), ("new", new))?;
        self.launch(By::of(old.device()), None, old, new, 1, &mut None)
            .map(drop)
    }

    /// As [`sweep`](Self::sweep), of a plate with a source.
    ///
    /// `source` holds `nx * ny` elements, in the units of [`Plate::with_source`](super::Plate::with_source); they
    /// may be any number, like temperatures. Those of points on fixed walls are unused.
    ///
    /// ```
    /// use halo_gpu::heat2d::Heat2d;
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let old = device.alloc_filled(15, 1.0_f32)?;
    /// let mut new = old.try_clone()?;
    /// let source = device.alloc_filled(15, 2.0_f32)?;
    /// Heat2d::new(Shape2::new(5, 3))?.sweep_with_source(&source, &old, &mut new)?;
    /// assert_eq!(new.to_vec()?[5..10], [1.0, 1.5, 1.5, 1.5, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep).
    pub fn sweep_with_source<T: Scalar>(
        &self,
        source: &Buffer<T>,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
    ) -> Result<(), Error> {
        check::fit(self.shape(), ("old", old), ("new", new))?;
        let by = By::of(old.device());
        self.launch(by, Some(source), old, new, 1, &mut None)
            .map(drop)
    }

    /// As [`sweep`](Self::sweep), by the given kernel.
    ///
    /// [`Variant::Texture`] needs rows with padding: it copies both buffers to
    /// textures and the result back, through host memory. A [`Plate`](super::Plate) has them
    /// from the start.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Variant, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let old = Device::emulator().upload(initial.as_slice())?;
    /// for variant in Variant::TEXTBOOK {
    ///     let mut new = old.try_clone()?;
    ///     heat.sweep_with(variant, &old, &mut new)?;
    ///     assert_eq!(new.to_vec()?[5..10], [1.0, 0.25, 0.0, 0.0, 0.0], "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep) and [`start_with`](Self::start_with).
    pub fn sweep_with<T: Scalar>(
        &self,
        variant: Variant,
        old: &Buffer<T>,
        new: &mut Buffer<T>,
    ) -> Result<(), Error> {
        check::fit(self.shape(), ("old", old), ("new", new))?;
        self.check_launchable::<T>(variant, old.device())?;
        if variant != Variant::Texture {
            let by = By::Kernel(variant);
            return self.launch(by, None, old, new, 1, &mut None).map(drop);
        }
        let from = texture(self.shape(), old.device(), &old.to_vec()?)?;
        let mut to = texture(self.shape(), old.device(), &new.to_vec()?)?;
        gpu::launch_texture(self.shape(), &from, &mut to)?;
        new.copy_from_slice(&values_of(&to)?)
    }

    /// So many sweeps of the plate in `current`; the result is in `current`.
    ///
    /// `scratch` has the same length and device; what it held is lost. The two
    /// are exchanged after each sweep, so no element is copied but once, at the
    /// start, to give `scratch` its walls.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let device = Device::cpu();
    /// let mut plate = device.upload(initial.as_slice())?;
    /// let mut scratch = device.alloc_filled(15, f32::NAN)?;
    /// heat.sweeps(&mut plate, &mut scratch, 2)?;
    /// assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweep`](Self::sweep). After an error of a launch, what the buffers
    /// hold is unspecified.
    pub fn sweeps<T: Scalar>(
        &self,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        check::fit(self.shape(), ("current", current), ("scratch", scratch))?;
        self.sweeps_by(By::of(current.device()), current, scratch, sweeps)
    }

    /// The sweeps of two buffers that have been checked, by anything but the kernel
    /// with textures.
    fn sweeps_by<T: Scalar>(
        &self,
        by: By,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        scratch.copy_from(current)?;
        let mut workspace = None;
        let mut left = sweeps;
        while left > 0 {
            left -= self.advance(by, None, current, scratch, left, &mut workspace)?;
        }
        Ok(())
    }

    /// As [`sweeps`](Self::sweeps), by the given kernel.
    ///
    /// With [`Variant::Texture`] the plate goes through host memory before the
    /// first and after the last sweep.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Variant, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let heat = Heat2d::new(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// let device = Device::emulator();
    /// let mut plate = device.upload(initial.as_slice())?;
    /// let mut scratch = plate.try_clone()?;
    /// heat.sweeps_with(Variant::SharedHalo, &mut plate, &mut scratch, 2)?;
    /// assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sweeps`](Self::sweeps) and [`start_with`](Self::start_with).
    pub fn sweeps_with<T: Scalar>(
        &self,
        variant: Variant,
        current: &mut Buffer<T>,
        scratch: &mut Buffer<T>,
        sweeps: usize,
    ) -> Result<(), Error> {
        check::fit(self.shape(), ("current", current), ("scratch", scratch))?;
        self.check_launchable::<T>(variant, current.device())?;
        if variant == Variant::Texture {
            let mut state = State::textures(self.shape(), current.device(), &current.to_vec()?)?;
            for _ in 0..sweeps {
                state.sweep(self, None, 1)?;
            }
            return current.copy_from_slice(&state.to_vec()?);
        }
        self.sweeps_by(By::Kernel(variant), current, scratch, sweeps)
    }
}
