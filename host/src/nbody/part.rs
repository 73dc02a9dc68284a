//! Plans one rank's share of the accelerations: some of the bodies, attracted by all.

use super::check::{self, ACCELERATIONS, OPERATION};
use super::gpu::Launch;
use super::plan::rows_max;
use super::{Body, Gravity, cpu};
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};
use gpu_kernels::nbody::parts::TileParts;
use std::ops::Range;

/// The default number of parts, the same on all devices.
const PARTS: u32 = 32;

impl Gravity {
    /// A plan for the accelerations, by all `n` bodies, of the bodies in the parts `own`.
    ///
    /// A part consists of consecutive bodies; all parts have the same length, except the last,
    /// which may be shorter. The sum over each part is computed separately, as in
    /// [`Variant::RegisterTile`](super::Variant::RegisterTile). So on every rank a body's
    /// acceleration has the same bits as from [`plan_with`](Self::plan_with) with that variant and
    /// the same [number of parts](Self::with_parts); on the CPU it has the bits of
    /// [`plan`](Self::plan), for any number of parts. The default number is 32, or as many as the
    /// number of bodies and the memory allow.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::{Body, Gravity, Variant};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let gravity = Gravity::new(0.1)?.with_parts(3)?;
    /// let bodies: Vec<_> = (0..300_u16).map(f32::from).collect();
    /// let bodies = bodies.iter().map(|x| Body { x: x % 7.0, y: x % 11.0, z: *x, mass: 1.0 });
    /// let bodies = device.upload(&bodies.collect::<Vec<_>>())?;
    /// let mut all = device.zeros(300)?;
    /// let mut plan = gravity.plan_with(&device, 300, Variant::RegisterTile)?;
    /// plan.accelerations(&bodies, &mut all)?;
    ///
    /// let mut share = gravity.plan_of_parts(&device, 300, 1..3)?;
    /// assert_eq!((share.parts(), share.bodies_of(1..3)), (3, 128..300));
    /// let mut own = device.zeros(172)?;
    /// share.accelerations(&bodies, &mut own)?;
    /// assert_eq!(own.to_vec()?, all.to_vec()?[128..]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan); [`Error::InvalidParameter`] for an empty range, or parts that
    /// do not exist.
    pub fn plan_of_parts<T: Scalar>(
        &self,
        device: &Device,
        n: usize,
        own: Range<u32>,
    ) -> Result<PartPlan<T>, Error> {
        check::count(n)?;
        self.softening_squared::<T>()?;
        let wanted = self.parts.unwrap_or(PARTS) as usize;
        let parts = TileParts::new(n, wanted.min(rows_max::<T>(self, n)));
        if own.is_empty() || own.end > parts.parts() {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the range of parts",
                given: format!("{own:?}"),
                required: format!("at least one of 0..{}", parts.parts()),
            });
        }
        let (rows, ahead) = match device.kind() {
            DeviceKind::Cpu => (0, 0),
            _ => (
                parts.bodies_of(own.clone()).len() * parts.parts() as usize,
                parts.ahead(own.clone(), T::tiles_at_once(device)?),
            ),
        };
        Ok(PartPlan {
            gravity: *self,
            device: device.clone(),
            parts,
            partials: device.alloc_filled(rows, [T::nearest(f64::NAN); 3])?,
            own,
            ahead,
        })
    }
}

/// Computes the accelerations of some bodies by all bodies, any number of times; made by
/// [`Gravity::plan_of_parts`].
#[derive(Debug)]
pub struct PartPlan<T: Scalar> {
    gravity: Gravity,
    device: Device,
    parts: TileParts,
    own: Range<u32>,
    /// The number of own parts whose sums are computed before the other bodies are received.
    ahead: u32,
    /// A row of sums for each part; empty on the CPU.
    partials: Buffer<[T; 3]>,
}

impl<T: Scalar> PartPlan<T> {
    /// The number of parts.
    #[must_use]
    pub const fn parts(&self) -> u32 {
        self.parts.parts()
    }

    /// The bodies of these parts; parts beyond the last have none.
    #[must_use]
    pub fn bodies_of(&self, parts: Range<u32>) -> Range<usize> {
        self.parts.bodies_of(parts)
    }

    /// The bodies whose accelerations the plan computes.
    #[must_use]
    pub fn own(&self) -> Range<usize> {
        self.bodies_of(self.own.clone())
    }

    /// Writes the acceleration of each own body by all `bodies` to `accelerations`.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`] for buffers that do not fit the
    /// plan, and the errors of a launch.
    pub fn accelerations(
        &mut self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        self.check(bodies, accelerations)?;
        self.compute(0..self.parts(), bodies)?;
        self.add(bodies, accelerations)
    }

    /// Like [`accelerations`](Self::accelerations), where other ranks send the other bodies: at
    /// first only the [own](Self::own) elements of `bodies` are valid, and `receive` writes the
    /// others. Meanwhile a GPU computes the sums over its own bodies.
    ///
    /// # Errors
    ///
    /// As [`accelerations`](Self::accelerations), and those of `receive`.
    pub fn accelerations_while<E: From<Error>>(
        &mut self,
        bodies: &mut Buffer<Body<T>>,
        receive: impl FnOnce(&mut Buffer<Body<T>>) -> Result<(), E>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), E> {
        self.check(bodies, accelerations)?;
        let begun = self.compute(0..self.ahead, bodies);
        // Also after a failure, because the other bodies are under way.
        let received = receive(bodies);
        begun?;
        received?;
        // `receive` may have put another buffer there.
        self.check(bodies, accelerations)?;
        self.compute(self.ahead..self.parts(), bodies)?;
        Ok(self.add(bodies, accelerations)?)
    }

    /// Checks that buffers fit the plan, as [`accelerations`](Self::accelerations) does.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] and [`Error::DeviceMismatch`].
    pub fn check(
        &self,
        bodies: &Buffer<Body<T>>,
        accelerations: &Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        check::lengths(self.parts.n(), "nbody: bodies", bodies.len())?;
        check::lengths(self.own().len(), ACCELERATIONS, accelerations.len())?;
        self.device.require("nbody: bodies", bodies)?;
        self.device.require(ACCELERATIONS, accelerations)
    }

    /// Computes the sums over the parts `these`, where 0 is the first own part. On the CPU it does
    /// nothing: [`add`](Self::add) computes everything.
    fn compute(&mut self, these: Range<u32>, bodies: &Buffer<Body<T>>) -> Result<(), Error> {
        if these.is_empty() || self.device.kind() == DeviceKind::Cpu {
            return Ok(());
        }
        Launch::Tiles {
            tiles: self.parts.for_own(self.own.clone(), these),
            softening_squared: self.gravity.softening_squared()?,
            bodies,
            partials: &mut self.partials,
        }
        .launch()
    }

    /// Adds the sums over all parts.
    fn add(
        &self,
        bodies: &Buffer<Body<T>>,
        accelerations: &mut Buffer<[T; 3]>,
    ) -> Result<(), Error> {
        if let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        {
            let targets = &bodies[self.own()];
            let softening_squared = self.gravity.softening_squared()?;
            cpu::of_some(targets, bodies, softening_squared, accelerations);
            return Ok(());
        }
        Launch::Sum {
            rows: self.parts.for_own(self.own.clone(), 0..self.parts()).rows(),
            partials: &self.partials,
            reactions: &self.partials,
            accelerations,
        }
        .launch()
    }
}
