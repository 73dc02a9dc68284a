//! Plans one rank's share of the accelerations: some of the bodies, attracted by all.

use super::check::{self, ACCELERATIONS, OPERATION};
use super::gpu::Launch;
use super::plan::rows_max;
use super::{Body, Gravity, cpu};
use crate::scalar::Scalar;
use crate::{Buffer, Device, DeviceKind, Error};
use bytemuck::Zeroable;
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
        // Fills up the last part with bodies without mass, so that all parts have the same length.
        let whole = parts.parts() as usize * parts.per_part() as usize;
        check::count(whole)?;
        let on_device = |count: usize| match device.kind() {
            DeviceKind::Cpu => 0,
            _ => count,
        };
        let rows = on_device(whole * parts.parts() as usize);
        let poison = [T::nearest(f64::NAN); 3];
        Ok(PartPlan {
            gravity: *self,
            device: device.clone(),
            n,
            parts,
            turned: device.zeros(on_device(whole))?,
            partials: device.alloc_filled(rows, poison)?,
            in_order: device.alloc_filled(if own.start > 0 { rows } else { 0 }, poison)?,
            sums: device.alloc_filled(on_device(whole), poison)?,
            own,
        })
    }
}

/// Computes the accelerations of some bodies by all bodies, any number of times; made by
/// [`Gravity::plan_of_parts`].
#[derive(Debug)]
pub struct PartPlan<T: Scalar> {
    gravity: Gravity,
    device: Device,
    n: usize,
    parts: TileParts,
    own: Range<u32>,
    /// The bodies, rotated: from the first own body on, then those before it.
    turned: Buffer<Body<T>>,
    /// A row of sums for each part, from the first own part on.
    partials: Buffer<[T; 3]>,
    /// The same rows, from the first part on.
    in_order: Buffer<[T; 3]>,
    sums: Buffer<[T; 3]>,
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
        let bound = |part: u32| self.n.min(part as usize * self.parts.per_part() as usize);
        bound(parts.start)..bound(parts.end)
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
        let own = self.own();
        check::lengths(self.n, "nbody: bodies", bodies.len())?;
        check::lengths(own.len(), ACCELERATIONS, accelerations.len())?;
        self.device.require("nbody: bodies", bodies)?;
        self.device.require(ACCELERATIONS, accelerations)?;
        let softening_squared = self.gravity.softening_squared()?;
        if let (Some(bodies), Some(accelerations)) =
            (bodies.as_host_slice(), accelerations.as_host_mut_slice())
        {
            let targets = &bodies[own];
            cpu::of_some(targets, bodies, softening_squared, accelerations);
            return Ok(());
        }
        // The kernel computes the first bodies. The bodies are rotated by whole parts, so each part
        // is unchanged, and only their rows must be put back in order.
        let (first, rest) = (own.start, self.n - own.start);
        let whole = self.turned.len();
        let mut place = |range: Range<usize>, from: Option<Range<usize>>| {
            let mut place = self.turned.view_mut(range)?;
            match from {
                Some(from) => place.copy_from(bodies.view(from)?),
                None => place.fill(Body::zeroed()),
            }
        };
        place(0..rest, Some(first..self.n))?;
        place(rest..whole - first, None)?;
        place(whole - first..whole, Some(0..first))?;
        let count = self.parts();
        let parts = TileParts::new(whole, count as usize);
        Launch::Tiles {
            parts,
            targets: own.len(),
            softening_squared,
            bodies: &self.turned,
            partials: &mut self.partials,
        }
        .launch()?;
        let split = (count - self.own.start) as usize * whole;
        let partials = if self.own.start == 0 {
            &self.partials
        } else {
            let (behind, before) = (self.partials.view(..split)?, self.partials.view(split..)?);
            let rows = self.partials.len();
            self.in_order.view_mut(rows - split..)?.copy_from(behind)?;
            self.in_order.view_mut(..rows - split)?.copy_from(before)?;
            &self.in_order
        };
        Launch::Sum {
            rows: parts.rows(),
            partials,
            reactions: partials,
            accelerations: &mut self.sums,
        }
        .launch()?;
        let sums = self.sums.view(..own.len())?;
        accelerations.view_mut(..)?.copy_from(sums)
    }
}
