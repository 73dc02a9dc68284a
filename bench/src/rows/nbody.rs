//! Rows of nbody: a Plummer sphere by each of the textbook's fourteen kernels (its table of unroll
//! factors) and by the kernels that the library chooses; on the CPU by both ports.
//!
//! The rows of `nbody_register_tile_*` and `nbody_symmetric_*` time two kernels each:
//! `nbody_sum_f32` or `nbody_sum_f64` adds up their partial results. The rows of the leapfrog time
//! a whole step: accelerations by the kernel that the library chooses, and `nbody_kick_drift_f32`
//! or `nbody_kick_drift_f64` before and after. Other rows compute potentials, and accelerations in
//! mixed precision, by kernel or port.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use halo_gpu::Scalar;
use halo_gpu::nbody::Range as _;
use halo_gpu::nbody::problem::{Cluster, Reference};
use halo_gpu::nbody::{
    self, Body, Gravity, Leapfrog, MIXED_KERNEL, Port, Variant, interactions, potential_kernel,
};
use halo_gpu::{Buffer, Device, DeviceKind, Errors};

use crate::cpp::job::{Array, Element, Job};
use crate::memory::reserve;
use crate::check::Check;
use crate::row::{Family, LeftOut, Metric, Plan, Prepared, Row, Slots, StandIn, Unit, Work};
use crate::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    sizes: &["1024", "4096", "16384", "65536", "131072", "524288"],
    cpu_sizes: &["4096", "16384"],
    cpu_comparison: &["16", "256", "1024", "4096", "16384"],
    small: "500",
};

const NAME: &str = "nbody";

/// In units of the sphere, whose scale length is 0.59.
const SOFTENING: f64 = 0.01;

/// The number of bodies whose accelerations are checked; all where there are fewer.
const CHECKED: usize = 4096;

/// The seed of the bodies' positions.
const SEED: u64 = 1974;

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let n = match size {
        Some(size) => size.length(NAME)?,
        None => 16_384,
    };
    let gravity = Gravity::new(SOFTENING)?;
    let (mut rows, mut left_out) = rows_in::<f32>(device, gravity, n);
    let (rows_f64, left_out_f64) = rows_in::<f64>(device, gravity, n);
    rows.extend(rows_f64);
    let on_cpu = device.kind() == DeviceKind::Cpu;
    if n <= MOST_FOR_ALL {
        rows.push(Box::new(Potentials::<f32> { gravity, n, on_cpu, real: PhantomData }));
        rows.push(Box::new(Potentials::<f64> { gravity, n, on_cpu, real: PhantomData }));
        rows.push(Box::new(Mixed { gravity, n, on_cpu }));
    } else {
        for kernel in [potential_kernel::<f32>(), potential_kernel::<f64>(), MIXED_KERNEL] {
            left_out.push(LeftOut::new(
                kernel,
                format!("its speed hardly changes beyond {MOST_FOR_ALL} bodies"),
            ));
        }
    }
    left_out.extend(left_out_f64);
    Ok(Plan {
        size: n.to_string(),
        elements: n as u64,
        problem: format!(
            "all-pairs gravity of {n} bodies, a Plummer sphere, softening {SOFTENING}; blocks of {} threads; {} FLOP per interaction in f32, {} in f64",
            gravity.block(),
            f32::FLOPS_PER_INTERACTION,
            f64::FLOPS_PER_INTERACTION,
        ),
        boundary: None,
        working_set_bytes: gravity.cost::<f64>(n).bytes,
        rows,
        left_out,
        refused: None,
    })
}

/// The most bodies for which all kernels are run. With more, the slow kernels (all in f64, and some
/// in f32) would take minutes.
const MOST_FOR_ALL: usize = 1 << 16;

/// Whether this kernel in `T` is run with this many bodies.
fn is_fast_enough<T: Scalar>(variant: Variant, n: usize) -> bool {
    n <= MOST_FOR_ALL
        || match variant {
            Variant::RegisterTile | Variant::Symmetric => T::NAME == "f32" || n <= 2 * MOST_FOR_ALL,
            Variant::Shared => T::NAME == "f32" || n <= 2 * MOST_FOR_ALL,
            Variant::AosUnroll16 => T::NAME == "f32" && n <= 2 * MOST_FOR_ALL,
            _ => false,
        }
}

/// The rows in `T`, which share a reference, and the kernels that are too slow for this many
/// bodies.
fn rows_in<T: Scalar + Element>(
    device: &Device,
    gravity: Gravity,
    n: usize,
) -> (Vec<Box<dyn Row>>, Vec<LeftOut>) {
    let reference = Arc::new(OnceLock::new());
    let ways: Vec<By> = if device.kind() == DeviceKind::Cpu {
        vec![By::Port(Port::Aos), By::OneThread, By::Port(Port::Soa)]
    } else {
        Variant::ALL.map(By::Kernel).to_vec()
    };
    let (run, too_slow): (Vec<By>, Vec<By>) = ways.into_iter().partition(|by| match by {
        By::Kernel(variant) => is_fast_enough::<T>(*variant, n),
        By::Port(_) | By::OneThread => true,
    });
    let left_out = too_slow.into_iter().filter_map(|by| match by {
        By::Kernel(variant) => Some(LeftOut::new(
            variant.kernel::<T>(),
            format!("it is slow, and its speed hardly changes beyond {MOST_FOR_ALL} bodies"),
        )),
        By::Port(_) | By::OneThread => None,
    });
    let left_out = left_out.collect();
    let rows = run
        .into_iter()
        .map(|by| -> Box<dyn Row> {
            Box::new(Accelerations::<T> {
                gravity,
                n,
                by,
                reference: Arc::clone(&reference),
                real: PhantomData,
            })
        })
        .collect::<Vec<_>>();
    let step: Box<dyn Row> = Box::new(Step::<T> {
        gravity,
        n,
        real: PhantomData,
    });
    let rows = rows.into_iter().chain((n <= MOST_FOR_ALL).then_some(step));
    (rows.collect(), left_out)
}

/// The kernel or port of a row.
#[derive(Clone, Copy)]
enum By {
    Kernel(Variant),
    Port(Port),
    /// The faster port, on one thread as the plain one is.
    OneThread,
}

/// The fewest instructions for all interactions of this many bodies.
///
/// In f32 an interaction is 12 instructions of single precision and a reciprocal square root. Each
/// takes an issue slot. In f64 it is 12 instructions of double precision, and 5 more that `ptxas`
/// adds to refine the approximate reciprocal square root. Other units compute the inputs of that
/// approximation at the same time.
///
/// The library's own kernels have 16 in f64; the one that computes each pair once has 19 and 21 per
/// pair, which is two interactions.
fn slots<T: Scalar>(by: By, n: usize) -> Slots {
    let interactions = interactions(n);
    let (single, double, pairs) = match by {
        By::Kernel(Variant::RegisterTile) => (13, 16, interactions),
        By::Kernel(Variant::Symmetric) => (19, 21, interactions / 2),
        By::Kernel(_) | By::Port(_) | By::OneThread => (13, 17, interactions),
    };
    match T::NAME {
        "f64" => Slots {
            fp32: 0,
            fp64: pairs.saturating_mul(double),
        },
        _ => Slots {
            fp32: pairs.saturating_mul(single),
            fp64: 0,
        },
    }
}

/// The n-body example of the CUDA samples, in the same style.
const SAMPLE: StandIn = StandIn {
    baseline: "CUDA n-body sample style",
    kernel: "nbody_shared_f32",
    entry: "nbody_sample_f32",
};

struct Accelerations<T> {
    gravity: Gravity,
    n: usize,
    by: By,
    reference: Arc<OnceLock<Reference>>,
    real: PhantomData<T>,
}

impl<T: Scalar + Element> Row for Accelerations<T> {
    fn name(&self) -> String {
        match self.by {
            By::Kernel(variant) => variant.kernel::<T>().to_owned(),
            By::Port(port @ Port::Aos) => {
                format!("nbody, CPU port, {port}, one thread, {}", T::NAME)
            }
            By::Port(port) => format!("nbody, CPU port, {port}, {}", T::NAME),
            By::OneThread => {
                format!("nbody, CPU port, {}, one thread, {}", Port::Soa, T::NAME)
            }
        }
    }

    fn work(&self) -> Work {
        Work {
            bytes: self.gravity.cost::<T>(self.n).bytes,
            flops: self.gravity.cost::<T>(self.n).flops,
            items: interactions(self.n),
            unit: Unit::Interactions,
            metric: Metric::Throughput,
            slots: slots::<T>(self.by, self.n),
            read_only: false,
        }
    }

    fn stand_ins(&self) -> &'static [StandIn] {
        // Its parameters, block, shared memory and results are those of this kernel.
        if self.name() == SAMPLE.kernel {
            &[SAMPLE]
        } else {
            &[]
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let cluster = Cluster::<T>::plummer(self.n, SEED)?;
        if self.reference.get().is_none() {
            // Rows are prepared one after the other: nothing else sets it.
            let _ = self
                .reference
                .set(Reference::sampled(&self.gravity, &cluster.bodies, CHECKED)?);
        }
        let bodies = device.upload(&cluster.bodies)?;
        let accelerations = device.alloc_filled(self.n, [T::nearest(f64::NAN); 3])?;
        let plan = match self.by {
            By::Kernel(variant) => {
                Some(self.gravity.plan_with(device, self.n, variant)?)
            }
            By::Port(_) | By::OneThread => None,
        };
        let pool = match self.by {
            By::OneThread => {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                Some(pool.map_err(|error| Error::Bench(error.to_string()))?)
            }
            By::Kernel(_) | By::Port(_) => None,
        };
        Ok(Box::new(Ready {
            pool,
            gravity: self.gravity,
            by: self.by,
            plan,
            reference: Arc::clone(&self.reference),
            bodies,
            accelerations,
        }))
    }
}

struct Ready<T: Scalar> {
    gravity: Gravity,
    by: By,
    /// Holds the memory that the kernel needs; a port needs none.
    plan: Option<nbody::Plan<T>>,
    /// A pool of one thread, for the row that is limited to one.
    pool: Option<rayon::ThreadPool>,
    reference: Arc<OnceLock<Reference>>,
    bodies: Buffer<Body<T>>,
    accelerations: Buffer<[T; 3]>,
}

impl<T: Scalar + Element> Prepared for Ready<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.accelerations.fill([T::nearest(f64::NAN); 3])?;
        self.launch()?;
        let Some(reference) = self.reference.get() else {
            unreachable!("`prepare` has set the reference");
        };
        let errors = reference.errors(&self.accelerations.to_vec()?)?;
        Ok(Check::new(errors, reference.bounds::<T>()))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        if let Some(plan) = &mut self.plan {
            return plan.accelerations(&self.bodies, &mut self.accelerations);
        }
        let port = match self.by {
            By::Kernel(_) => unreachable!("rows of kernels have a plan"),
            By::Port(port) => port,
            By::OneThread => Port::Soa,
        };
        let host = (
            self.bodies.as_host_slice(),
            self.accelerations.as_host_mut_slice(),
        );
        let (Some(bodies), Some(accelerations)) = host else {
            unreachable!("ports have rows on the CPU device alone");
        };
        let mut launch = || self.gravity.accelerations_by(port, bodies, accelerations);
        match &self.pool {
            Some(pool) => pool.install(launch),
            None => launch(),
        }
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        if !matches!(self.by, By::Port(Port::Soa)) {
            return Ok(None);
        }
        let reference = Arc::clone(&self.reference);
        let bodies = self.bodies.to_vec()?;
        let ways = &["plain", "fours", "lanes"];
        job("nbody", ways, &bodies, &self.gravity, 3, move |outputs: &[T]| {
            let Some(reference) = reference.get() else {
                unreachable!("`prepare` has set the reference");
            };
            let errors = reference.errors(outputs.as_chunks().0)?;
            Ok(Check::new(errors, reference.bounds::<T>()))
        })
        .map(Some)
    }
}

/// The work of a row on the CPU, for C++: `per_body` numbers for each body.
fn job<T: Scalar + Element, R: Scalar + Element>(
    stem: &'static str,
    ways: &'static [&'static str],
    bodies: &[Body<T>],
    gravity: &Gravity,
    per_body: usize,
    judge: impl Fn(&[R]) -> Result<Check, Error> + 'static,
) -> Result<Job, Error> {
    let mut numbers = reserve(4 * bodies.len())?;
    for body in bodies {
        numbers.extend([body.x, body.y, body.z, body.mass]);
    }
    let mut results = reserve(per_body * bodies.len())?;
    results.resize(per_body * bodies.len(), R::nearest(f64::NAN));
    Ok(Job {
        stem,
        ways,
        suffix: T::SUFFIX,
        inputs: vec![T::array(numbers)],
        outputs: vec![R::array(results)],
        sizes: vec![bodies.len() as u64],
        steps_to_check: None,
        parameters: vec![gravity.softening() * gravity.softening()],
        judge: Box::new(move |outputs: &[Array]| judge(R::slice(&outputs[0]))),
    })
}

/// A step of the leapfrog integrator.
struct Step<T> {
    gravity: Gravity,
    n: usize,
    real: PhantomData<T>,
}

/// The common part of its rows' names.
const STEP: &str = "leapfrog step";

/// The time step: so short that the bodies hardly move during the timings.
const TIME_STEP: f64 = 1.0 / 16384.0;

impl<T: Scalar> Row for Step<T> {
    fn name(&self) -> String {
        format!("nbody, {STEP}, {}", T::NAME)
    }

    fn work(&self) -> Work {
        Work {
            bytes: self.gravity.cost::<T>(self.n).bytes,
            flops: self.gravity.cost::<T>(self.n).flops,
            items: interactions(self.n),
            unit: Unit::Interactions,
            metric: Metric::Throughput,
            // As of the kernel that computes each pair once: no kernel of the library needs fewer.
            slots: slots::<T>(By::Kernel(Variant::Symmetric), self.n),
            read_only: false,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let cluster = Cluster::<T>::plummer(self.n, SEED)?;
        let (bodies, velocities) = (&cluster.bodies, &cluster.velocities);
        Ok(Box::new(Stepping {
            leapfrog: self.gravity.start(device, bodies, velocities, TIME_STEP)?,
            gravity: self.gravity,
            device: device.clone(),
            cluster,
        }))
    }
}

struct Stepping<T: Scalar> {
    leapfrog: Leapfrog<T>,
    gravity: Gravity,
    device: Device,
    /// The bodies before the first step.
    cluster: Cluster<T>,
}

impl<T: Scalar> Prepared for Stepping<T> {
    /// Checks one step against `v' = v + (a + a') dt / 2` and `x' = x + v dt + a dt² / 2` in f64.
    /// The accelerations before and after are the device's own: other rows check those.
    fn check(&mut self) -> Result<Check, Error> {
        let before = self.gravity.accelerations_of(&self.device, &self.cluster.bodies)?;
        self.leapfrog.advance(1)?;
        let bodies = self.leapfrog.bodies()?;
        let after = self.gravity.accelerations_of(&self.device, &bodies)?;

        let numbers = |vectors: &[[T; 3]]| -> Vec<f64> {
            vectors.as_flattened().iter().map(|&x| x.into()).collect()
        };
        let places = |bodies: &[Body<T>]| -> Vec<f64> {
            let places = bodies.iter().flat_map(|body| body.position());
            places.map(Into::into).collect()
        };
        let (a, b) = (numbers(&before), numbers(&after));
        let (x, v) = (places(&self.cluster.bodies), numbers(&self.cluster.velocities));
        let mut given = places(&bodies);
        given.extend(numbers(&self.leapfrog.velocities()?));
        let expected = |i: usize| match i.checked_sub(x.len()) {
            None => x[i] + TIME_STEP * (v[i] + 0.5 * TIME_STEP * a[i]),
            Some(i) => v[i] + 0.5 * TIME_STEP * (a[i] + b[i]),
        };
        // Four roundings of coordinates below 8 and speeds below 4.
        let bound = 4.0 * 8.0 * T::UNIT_ROUNDOFF;
        let bounds = Errors {
            rms: bound,
            max: bound,
        };
        Ok(Check::new(Errors::of(&given, expected), bounds))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.leapfrog.advance(1)
    }
}

/// The potentials of all bodies.
struct Potentials<T> {
    gravity: Gravity,
    n: usize,
    on_cpu: bool,
    real: PhantomData<T>,
}

/// How many operations fewer than an interaction a term of a potential has: three products and four
/// operations of the sum.
const FLOPS_LESS: u64 = 7;

impl<T: Scalar + Element> Row for Potentials<T> {
    fn name(&self) -> String {
        if self.on_cpu {
            return format!("nbody, CPU port, potentials, {}", T::NAME);
        }
        potential_kernel::<T>().to_owned()
    }

    fn work(&self) -> Work {
        let interactions = interactions(self.n);
        let (single, double) = match T::NAME {
            "f64" => (0, 12 * interactions),
            _ => (8 * interactions, 0),
        };
        Work {
            bytes: (size_of::<Body<T>>() + size_of::<f64>()) as u64 * self.n as u64,
            flops: (T::FLOPS_PER_INTERACTION - FLOPS_LESS) * interactions,
            items: interactions,
            unit: Unit::Interactions,
            metric: Metric::Throughput,
            slots: Slots {
                fp32: single,
                fp64: double,
            },
            read_only: false,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let cluster = Cluster::<T>::plummer(self.n, SEED)?;
        Ok(Box::new(PotentialsReady {
            plan: self.gravity.plan(device, self.n)?,
            gravity: self.gravity,
            on_cpu: self.on_cpu,
            on_bodies: device.upload(&cluster.bodies)?,
            potentials: device.alloc_filled(self.n, f64::NAN)?,
            bodies: cluster.bodies,
        }))
    }
}

struct PotentialsReady<T: Scalar> {
    plan: nbody::Plan<T>,
    gravity: Gravity,
    on_cpu: bool,
    bodies: Vec<Body<T>>,
    on_bodies: Buffer<Body<T>>,
    potentials: Buffer<f64>,
}

impl<T: Scalar + Element> Prepared for PotentialsReady<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.potentials.fill(f64::NAN)?;
        self.launch()?;
        let given = self.potentials.to_vec()?;
        Ok(judge_potentials(&self.gravity, &self.bodies, &given))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.potentials(&self.on_bodies, &mut self.potentials)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        if !self.on_cpu {
            return Ok(None);
        }
        let (gravity, bodies) = (self.gravity, self.bodies.clone());
        let judge = move |given: &[f64]| Ok(judge_potentials(&gravity, &bodies, given));
        job("nbody", &["potentials"], &self.bodies, &self.gravity, 1, judge).map(Some)
    }
}

/// Checks potentials.
fn judge_potentials<T: Scalar>(gravity: &Gravity, bodies: &[Body<T>], given: &[f64]) -> Check {
    let softening_squared = gravity.softening() * gravity.softening();
    // All masses are positive, so relative errors of the sum are bounded.
    let stride = (given.len() / CHECKED).max(1);
    let errors: Vec<f64> = (0..given.len())
        .step_by(stride)
        .map(|i| {
            let here: [f64; 3] = bodies[i].position().map(Into::into);
            let others = bodies.iter().enumerate().filter(|(j, _)| *j != i);
            let terms = others.map(|(_, other)| {
                let there: [f64; 3] = other.position().map(Into::into);
                let square: f64 = (0..3).map(|axis| (there[axis] - here[axis]).powi(2)).sum();
                Into::<f64>::into(other.mass) / (square + softening_squared).sqrt()
            });
            let expected = -terms.sum::<f64>();
            if expected == given[i] { 0.0 } else { given[i] / expected - 1.0 }
        })
        .collect();
    let roundoffs = 14.0 + f64::from(gravity.block());
    // The error of the reference: a sum of n terms in f64.
    let bound = roundoffs * T::UNIT_ROUNDOFF + given.len() as f64 * f64::UNIT_ROUNDOFF;
    let bounds = Errors {
        rms: bound,
        max: bound,
    };
    Check::new(Errors::of(&errors, |_| 0.0), bounds)
}

/// Accelerations in mixed precision.
struct Mixed {
    gravity: Gravity,
    n: usize,
    on_cpu: bool,
}

impl Row for Mixed {
    fn name(&self) -> String {
        if self.on_cpu {
            return "nbody, CPU port, mixed precision".to_owned();
        }
        MIXED_KERNEL.to_owned()
    }

    fn work(&self) -> Work {
        Work {
            bytes: (size_of::<Body<f32>>() + size_of::<[f64; 3]>()) as u64 * self.n as u64,
            flops: self.gravity.cost::<f32>(self.n).flops,
            items: interactions(self.n),
            unit: Unit::Interactions,
            metric: Metric::Throughput,
            slots: slots::<f32>(By::Kernel(Variant::Shared), self.n),
            read_only: false,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let bodies = Cluster::<f32>::plummer(self.n, SEED)?.bodies;
        Ok(Box::new(MixedReady {
            plan: self.gravity.plan(device, self.n)?,
            gravity: self.gravity,
            on_cpu: self.on_cpu,
            reference: Arc::new(Reference::sampled(&self.gravity, &bodies, CHECKED)?),
            bodies: device.upload(&bodies)?,
            accelerations: device.alloc_filled(self.n, [f64::NAN; 3])?,
        }))
    }
}

struct MixedReady {
    plan: nbody::Plan<f32>,
    gravity: Gravity,
    on_cpu: bool,
    reference: Arc<Reference>,
    bodies: Buffer<Body<f32>>,
    accelerations: Buffer<[f64; 3]>,
}

impl Prepared for MixedReady {
    fn check(&mut self) -> Result<Check, Error> {
        self.accelerations.fill([f64::NAN; 3])?;
        self.launch()?;
        let errors = self.reference.errors(&self.accelerations.to_vec()?)?;
        Ok(Check::new(errors, self.reference.bounds::<f32>()))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.accelerations_mixed(&self.bodies, &mut self.accelerations)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        if !self.on_cpu {
            return Ok(None);
        }
        let reference = Arc::clone(&self.reference);
        let bodies = self.bodies.to_vec()?;
        let ways = &["plain", "lanes"];
        job("nbody_mixed", ways, &bodies, &self.gravity, 3, move |outputs: &[f64]| {
            let errors = reference.errors(outputs.as_chunks().0)?;
            Ok(Check::new(errors, reference.bounds::<f32>()))
        })
        .map(Some)
    }
}

#[cfg(test)]
mod tests {
    use crate::measured::kernels as measured;
    use super::*;

    #[test]
    fn the_rows_are_all_kernels_in_both_precisions() {
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        let (steps, rows): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| row.name().contains(STEP));
        assert_eq!(steps.len(), 2);
        assert_eq!(rows.len(), measured(NAME).len());
        for row in &rows {
            assert_eq!(row.work().items, 1 << 28);
            if row.name().contains("potential") {
                continue;
            }
            let per_interaction = if row.name().ends_with("f32") { 20 } else { 30 };
            assert_eq!(row.work().flops, per_interaction << 28);
            let slots = row.work().slots;
            let twice = match (row.name().contains("symmetric"), slots.fp64 == 0) {
                (true, true) => 19,
                (true, false) => 21,
                (false, true) => 26,
                (false, false) if row.name().contains("register_tile") => 32,
                (false, false) => 34,
            };
            assert_eq!((slots.fp32 + slots.fp64) >> 27, twice, "{}", row.name());
            assert_eq!(slots.fp64 == 0, row.name().ends_with("f32"));
            let sampled = row.name() == "nbody_shared_f32";
            assert_eq!(row.stand_ins().len(), usize::from(sampled), "{}", row.name());
        }
    }

    #[test]
    fn every_row_passes_its_check_at_a_small_size() {
        for device in [Device::cpu(), Device::emulator()] {
            let rows = plan(&device, Some(&"70".parse().unwrap())).unwrap().rows;
            assert_eq!(
                rows.len(),
                if device.kind() == DeviceKind::Cpu {
                    11
                } else {
                    23
                }
            );
            // The faster port is compared with the plain one on one thread each.
            let one_thread = rows.iter().filter(|row| row.name().contains("one thread"));
            let expected = if device.kind() == DeviceKind::Cpu { 4 } else { 0 };
            assert_eq!(one_thread.count(), expected);
            for row in rows {
                let check = row.prepare(&device).unwrap().check().unwrap();
                assert!(check.passes(), "{}: {check:?}", row.name());
            }
        }
    }

    #[test]
    fn slow_kernels_are_left_out_where_there_are_many_bodies_and_named() {
        let names = |size: &str| {
            let plan = plan(&Device::emulator(), Some(&size.parse().unwrap())).unwrap();
            let left_out: Vec<String> = plan.left_out.into_iter().map(|it| it.name).collect();
            let rows = plan.rows.iter().map(|row| row.name());
            let rows: Vec<String> = rows.filter(|row| !row.contains(STEP)).collect();
            assert_eq!(rows.len() + left_out.len(), measured(NAME).len());
            assert!(rows.iter().all(|row| !left_out.contains(row)));
            rows
        };
        assert_eq!(names("65536").len(), measured(NAME).len());
        assert_eq!(
            names("131072"),
            [
                "nbody_aos_unroll16_f32",
                "nbody_shared_f32",
                "nbody_register_tile_f32",
                "nbody_symmetric_f32",
                "nbody_shared_f64",
                "nbody_register_tile_f64",
                "nbody_symmetric_f64",
            ]
        );
        assert_eq!(
            names("524288"),
            ["nbody_shared_f32", "nbody_register_tile_f32", "nbody_symmetric_f32"]
        );
    }

    #[test]
    fn sizes_with_an_x_are_refused() {
        let error = plan(&Device::emulator(), Some(&"64x64".parse().unwrap()))
            .err()
            .unwrap();
        assert!(
            crate::error::chain(&error).contains("it takes N"),
            "{}",
            crate::error::chain(&error)
        );
    }
}
