//! Integrates the motion of bodies with the leapfrog method.

use super::check::{self, ACCELERATIONS, OPERATION, VELOCITIES};
use super::gpu::Launch;
use super::{Body, Gravity, Plan};
use crate::device::Tally;
use crate::error::require_finite;
use crate::scalar::Scalar;
use crate::{Buffer, Device, Error};

/// Bodies that move under their own gravity, on a device. [`Gravity::start`] makes it.
///
/// A step is a kick for half its length, a drift for all of it, new accelerations, and another kick
/// for half (kick-drift-kick). The method is of second order and symplectic: the error of the
/// energy oscillates with the square of the step, but does not grow. All steps have the same
/// length; steps shorter than about `ε / v`, with the softening length ε and typical speeds v,
/// resolve close encounters.
///
/// Bodies, velocities and accelerations stay on the device; nothing is copied until you request it.
/// Ten steps in one call give the same bits as ten single steps.
///
/// The method is the Störmer-Verlet method in its velocity form (L. Verlet, Phys. Rev. 159 (1967);
/// E. Hairer, C. Lubich and G. Wanner, "Geometric numerical integration illustrated by the
/// Störmer-Verlet method", Acta Numerica 12 (2003)). Times are in the unit in which the
/// gravitational constant is 1, velocities in the unit of the positions divided by that unit.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::nbody::{Body, Gravity};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// // Two bodies of mass 1 at distance 2, on a circle around their centre: without
/// // softening each would need a speed of 1/2 for it.
/// let body = |x| Body { x, y: 0.0_f64, z: 0.0, mass: 1.0 };
/// let velocities = [[0.0, 0.5, 0.0], [0.0, -0.5, 0.0]];
/// let (gravity, step) = (Gravity::new(1e-3)?, 1e-3);
/// let mut pair = gravity.start(&Device::cpu(), &[body(1.0), body(-1.0)], &velocities, step)?;
///
/// // Half a turn takes 2 π.
/// pair.advance(6283)?;
/// assert_eq!(pair.time(), 6.283);
/// let bodies = pair.bodies()?;
/// assert!((bodies[0].x + 1.0).abs() < 1e-3 && bodies[0].y.abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Leapfrog<T: Scalar> {
    gravity: Gravity,
    time_step: f64,
    steps: Tally,
    bodies: Buffer<Body<T>>,
    velocities: Buffer<[T; 3]>,
    /// The accelerations of the bodies at their current positions.
    accelerations: Buffer<[T; 3]>,
    plan: Plan<T>,
}

/// The energy of bodies, in f64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Energy {
    /// `Σ m v² / 2`.
    pub kinetic: f64,
    /// `-Σ_{i<j} m_i m_j / √(|r|² + ε²)`.
    pub potential: f64,
}

impl Energy {
    /// The total energy, which an exact integration would conserve.
    #[must_use]
    pub const fn total(self) -> f64 {
        self.kinetic + self.potential
    }
}

impl Gravity {
    /// Puts `bodies` with these velocities on `device`, to advance in time by steps of `time_step`;
    /// a negative step goes backwards in time.
    ///
    /// # Errors
    ///
    /// As for [`check_motion`](Self::check_motion); the errors of the device.
    pub fn start<T: Scalar>(
        &self,
        device: &Device,
        bodies: &[Body<T>],
        velocities: &[[T; 3]],
        time_step: f64,
    ) -> Result<Leapfrog<T>, Error> {
        self.check_motion(bodies, velocities, time_step)?;
        let mut leapfrog = Leapfrog {
            gravity: *self,
            time_step,
            steps: Tally::default(),
            bodies: device.upload(bodies)?,
            velocities: device.upload(velocities)?,
            accelerations: device.alloc_filled(bodies.len(), [T::nearest(f64::NAN); 3])?,
            plan: self.plan(device, bodies.len())?,
        };
        leapfrog.accelerate()?;
        Ok(leapfrog)
    }

    /// Checks that these bodies, with these velocities, can advance by steps of this length.
    ///
    /// # Errors
    ///
    /// As for [`check`](Self::check); [`Error::LengthMismatch`] unless there is a velocity for each
    /// body; [`Error::InvalidElement`] for a velocity that is not finite; [`Error::NonFinite`] and
    /// [`Error::InvalidParameter`] for a time step that is not a number, is zero, or is zero or
    /// infinite in `T`.
    pub fn check_motion<T: Scalar>(
        &self,
        bodies: &[Body<T>],
        velocities: &[[T; 3]],
        time_step: f64,
    ) -> Result<(), Error> {
        self.check(bodies)?;
        check_velocities(bodies.len(), velocities)?;
        check_time_step::<T>(time_step)
    }
}

impl<T: Scalar> Leapfrog<T> {
    fn accelerate(&mut self) -> Result<(), Error> {
        self.plan
            .accelerations(&self.bodies, &mut self.accelerations)
    }

    fn kick_drift(&mut self, kick: f64, drift: f64) -> Result<(), Error> {
        kick_drift(
            &self.accelerations,
            [kick, drift],
            &mut self.velocities,
            &mut self.bodies,
        )
    }

    /// Advances by `steps` steps. On CUDA devices it enqueues them and does not wait.
    ///
    /// Bodies that fly apart may leave the range that [`Gravity::check`] requires; their
    /// accelerations are then correctly small, or zero.
    ///
    /// # Errors
    ///
    /// The errors of the device. The bodies are then in an unspecified stage of a step.
    pub fn advance(&mut self, steps: u64) -> Result<(), Error> {
        for _ in 0..steps {
            self.kick_drift(0.5 * self.time_step, self.time_step)?;
            self.accelerate()?;
            self.kick_drift(0.5 * self.time_step, 0.0)?;
            self.steps.add(self.bodies.device(), 1);
        }
        Ok(())
    }

    /// The length of a step.
    #[must_use]
    pub const fn time_step(&self) -> f64 {
        self.time_step
    }

    /// The number of steps since the start.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The time since the start: the number of steps times their length.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.steps() as f64 * self.time_step
    }

    /// The number of bodies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Always false: there is at least one body.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The bodies at their current positions, in their original order.
    ///
    /// # Errors
    ///
    /// The errors of the device.
    pub fn bodies(&self) -> Result<Vec<Body<T>>, Error> {
        self.bodies.to_vec()
    }

    /// The current velocities.
    ///
    /// # Errors
    ///
    /// The errors of the device.
    pub fn velocities(&self) -> Result<Vec<[T; 3]>, Error> {
        self.velocities.to_vec()
    }

    /// The current energy; the potential energy is computed on the device, in n² interactions.
    ///
    /// ```
    /// use halo_gpu::Device;
    /// use halo_gpu::nbody::problem::Cluster;
    /// use halo_gpu::nbody::Gravity;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let cluster = Cluster::<f64>::plummer(100, 1)?;
    /// let gravity = Gravity::new(0.05)?;
    /// let (bodies, velocities) = (&cluster.bodies, &cluster.velocities);
    /// let mut stars = gravity.start(&Device::cpu(), bodies, velocities, 1.0 / 256.0)?;
    /// let start = stars.energy()?;
    /// assert!(start.kinetic > 0.0 && start.potential < 0.0);
    ///
    /// stars.advance(64)?;
    /// assert_eq!((stars.steps(), stars.time_step(), stars.time()), (64, 1.0 / 256.0, 0.25));
    /// assert_ne!(stars.velocities()?, cluster.velocities);
    /// let drift = stars.energy()?.total() / start.total() - 1.0;
    /// assert!(drift.abs() < 1e-3, "{drift}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of the device, and of [`Gravity::check`] if bodies have left the range that it
    /// requires.
    pub fn energy(&mut self) -> Result<Energy, Error> {
        let bodies = self.bodies()?;
        self.gravity.check(&bodies)?;
        Ok(Energy {
            kinetic: kinetic_energy(&bodies, &self.velocities()?),
            potential: self.plan.potential_energy(&self.bodies)?,
        })
    }
}

/// Kicks velocities for the first of two times, then drifts bodies for the second: `v ← v + a ·
/// kick`, `x ← x + v · drift`, with one fused multiply-add per component. Use it to build
/// [`Leapfrog`] and similar integrators.
///
/// All three buffers have one element for each body; vectors are `[x, y, z]`. Times have a unit T,
/// positions a unit L, velocities L/T and accelerations L/T²; masses are not used. Times may be
/// negative. NaN and infinities are checked for only in the times. All devices give the same bits.
///
/// ```
/// use halo_gpu::Device;
/// use halo_gpu::nbody::{Body, kick_drift};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::emulator();
/// let mut bodies = device.upload(&[Body { x: 1.0_f32, y: 0.0, z: 0.0, mass: 1.0 }])?;
/// let mut velocities = device.upload(&[[0.0_f32, 1.0, 0.0]])?;
/// let accelerations = device.upload(&[[0.0_f32, 0.0, 4.0]])?;
/// kick_drift(&accelerations, [0.25, 0.5], &mut velocities, &mut bodies)?;
/// assert_eq!(velocities.to_vec()?, [[0.0, 1.0, 1.0]]);
/// assert_eq!(bodies.to_vec()?, [Body { x: 1.0, y: 0.5, z: 0.5, mass: 1.0 }]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::EmptyInput`], [`Error::IndexOverflow`], [`Error::LengthMismatch`] or
/// [`Error::DeviceMismatch`] unless all three have the same length and device, [`Error::NonFinite`]
/// for a time that is not finite, and the errors of the device.
pub fn kick_drift<T: Scalar>(
    accelerations: &Buffer<[T; 3]>,
    times: [f64; 2],
    velocities: &mut Buffer<[T; 3]>,
    bodies: &mut Buffer<Body<T>>,
) -> Result<(), Error> {
    check::values(bodies, ACCELERATIONS, accelerations)?;
    check::values(bodies, VELOCITIES, velocities)?;
    for (parameter, given) in ["the time of the kick", "the time of the drift"]
        .into_iter()
        .zip(times)
    {
        require_finite(OPERATION, parameter, given)?;
    }
    let times = times.map(T::nearest);
    match (
        accelerations.as_host_slice(),
        velocities.as_host_mut_slice(),
        bodies.as_host_mut_slice(),
    ) {
        (Some(accelerations), Some(velocities), Some(bodies)) => {
            T::kick_drift(accelerations, times, velocities, bodies);
            Ok(())
        }
        _ => Launch::KickDrift {
            times,
            accelerations,
            velocities,
            bodies,
        }
        .launch(),
    }
}

/// `Σ m v² / 2`, in f64.
pub(super) fn kinetic_energy<T: Scalar>(bodies: &[Body<T>], velocities: &[[T; 3]]) -> f64 {
    bodies
        .iter()
        .zip(velocities)
        .map(|(body, velocity)| {
            let mass: f64 = body.mass.into();
            let [u, v, w]: [f64; 3] = velocity.map(Into::into);
            0.5 * mass * (u * u + v * v + w * w)
        })
        .sum()
}

fn check_velocities<T: Scalar>(bodies: usize, velocities: &[[T; 3]]) -> Result<(), Error> {
    check::lengths(bodies, VELOCITIES, velocities.len())?;
    const WHAT: [&str; 3] = [
        "the velocity along x of body",
        "the velocity along y of body",
        "the velocity along z of body",
    ];
    for (index, velocity) in velocities.iter().enumerate() {
        for (what, &component) in WHAT.into_iter().zip(velocity) {
            let component: f64 = component.into();
            if !component.is_finite() {
                return Err(Error::InvalidElement {
                    operation: OPERATION,
                    what,
                    index,
                    given: component,
                    required: "a finite number".to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn check_time_step<T: Scalar>(time_step: f64) -> Result<(), Error> {
    require_finite(OPERATION, "the time step", time_step)?;
    // A step changes the velocities in two halves.
    let half: f64 = T::nearest(0.5 * time_step).into();
    if half == 0.0 || !half.is_finite() {
        return Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter: "the time step",
            given: format!("{time_step:?}"),
            required: format!("a number whose half is finite and not zero in {}", T::NAME),
        });
    }
    Ok(())
}
