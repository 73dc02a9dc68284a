//! The kick of velocities and the drift of positions in a leapfrog step.
//!
//! ```text
//! v ← v + a · kick
//! x ← x + v · drift
//! ```
//!
//! with one fused multiply-add per component. A step of length dt is a kick of dt/2 and a drift of
//! dt, new accelerations, and a kick of dt/2 without drift (kick-drift-kick; Verlet, "Computer
//! 'experiments' on classical fluids", Phys. Rev. 159 (1967), in the form of Hockney and Eastwood,
//! "Computer Simulation Using Particles", 1988, section 4.4).
//!
//! - Grid: `ceil(n / block)` blocks along x, any block size; a thread per body.
//! - Reads 24 bytes of accelerations and velocities and 16 of the body, and writes 28, twice that
//!   in f64; 12 flops. That is negligible beside n² interactions.

use super::body::{Body, Real};
use cuda_std::GpuFloat;
use cuda_std::prelude::*;

/// Declares entry points: name, real type.
macro_rules! kick_drift_kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!(
            "Kicks the velocities of `n` bodies in `", stringify!($real),
            "` for the time `kick`, then lets the bodies drift for the time `drift`.",
        )]
        ///
        /// # Safety
        ///
        /// - `accelerations` is readable, `velocities` and `bodies` are readable and writable for
        ///   `n` elements; the three do not overlap, and nothing else accesses them during the
        ///   launch, except for reads of `accelerations`.
        /// - The launch extends along x alone and has `n` threads or more, but
        ///   fewer than 2³².
        #[kernel]
        pub unsafe fn $name(
            accelerations: *const [$real; 3],
            n: u32,
            kick: $real,
            drift: $real,
            velocities: *mut [$real; 3],
            bodies: *mut Body<$real>,
        ) {
            // SAFETY: forwarded word for word.
            unsafe { kick_drift(accelerations, n, kick, drift, velocities, bodies) }
        }
    )+};
}

kick_drift_kernels! {
    nbody_kick_drift_f32: f32;
    nbody_kick_drift_f64: f64;
}

/// Threads of a block.
pub const KICK_DRIFT_BLOCK: u32 = 256;

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Step,
            "kicks velocities and lets bodies drift",
            geometry: |kernel, bodies| super::geometry::blocks_of(KICK_DRIFT_BLOCK, kernel, bodies),
            // Reads accelerations, velocities and bodies; writes velocities and positions.
            cost: |bodies| Cost {
                bytes: (bodies.points() as u64).saturating_mul(17 * size_of::<$real>() as u64),
                flops: (bodies.points() as u64).saturating_mul(12),
            },
            example: super::geometry::EXAMPLE,
            unmeasured: "the rows of a leapfrog's step time it with the accelerations",
        }
    )+};
}

registered! {
    nbody_kick_drift_f32: f32;
    nbody_kick_drift_f64: f64;
}

/// # Safety
///
/// As the entry points.
#[inline(always)]
unsafe fn kick_drift<T: Real>(
    accelerations: *const [T; 3],
    n: u32,
    kick: T,
    drift: T,
    velocities: *mut [T; 3],
    bodies: *mut Body<T>,
) {
    let i = thread::index_1d();
    if i >= n {
        return;
    }
    let i = i as usize;
    // SAFETY: i < n, and no other thread has this i.
    unsafe {
        let acceleration = *accelerations.add(i);
        let velocity = velocities.add(i);
        let body = bodies.add(i);
        let kicked = |axis: usize| GpuFloat::mul_add(acceleration[axis], kick, (*velocity)[axis]);
        let v = [kicked(0), kicked(1), kicked(2)];
        *velocity = v;
        (*body).x = GpuFloat::mul_add(v[0], drift, (*body).x);
        (*body).y = GpuFloat::mul_add(v[1], drift, (*body).y);
        (*body).z = GpuFloat::mul_add(v[2], drift, (*body).z);
    }
}
