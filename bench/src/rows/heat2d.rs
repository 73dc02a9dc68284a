//! Rows of heat2d. In f32: an iteration by each of the five textbook kernels. In f32 and f64: an
//! iteration by `heat2d_march_*`; passes of several iterations by `heat2d_temporal_*`; the
//! textbook's number of iterations in one launch by `heat2d_resident_*`, where the plate fits on
//! the device; an iteration by `heat2d_heated_*` with a source and insulated bottom and top; a step
//! in time of such a plate by `heat2d_step_*` and, with the source, `heat2d_heated_step_*`. On the
//! CPU the port has rows of the same problems, and `plane` adds user-written stencils.
//!
//! The timed work is one iteration after another on a plate that stays on the device. The checked
//! work is the textbook's number of iterations from its initial plate (fewer on a large plate):
//! kernels against the port, and the port against a plain loop. The error is printed as the
//! textbook prints it.

use std::cell::OnceCell;
use std::rc::Rc;

use halo_gpu::Scalar;
use halo_gpu::heat2d::{Heat2d, Plate, Variant, problem};
use halo_gpu::{Axis, Boundary, Cost, Device, DeviceKind, Errors, Field2, Shape2};

use crate::cpp::job::{Element, Job};
use crate::memory::reserve;
use crate::check::Check;
use crate::row::{Family, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::plane;
use crate::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    sizes: &["256", "1024", "4096", "16384"],
    cpu_sizes: &["256", "3072"],
    cpu_comparison: &["64", "256", "1024", "4096"],
    small: "64x61",
};

const NAME: &str = "heat2d";

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let shape = match size {
        Some(size) => {
            let [nx, ny] = size.rectangle(NAME)?;
            Shape2::new(nx, ny)
        }
        None => problem::SHAPE,
    };
    let heat = Heat2d::dirichlet(shape)?;
    let mut rows = rows_in::<f32>(device, heat)?;
    rows.extend(rows_in::<f64>(device, heat)?);
    if device.kind() == DeviceKind::Cpu {
        rows.extend(plane::rows::<f32>(shape)?);
        rows.extend(plane::rows::<f64>(shape)?);
    }
    Ok(Plan {
        size: format!("{}x{}", shape.nx, shape.ny),
        elements: shape.points()? as u64,
        problem: format!(
            "one Jacobi iteration over {shape} points, left wall at 1; errors after {} iterations \
             against {}, the root mean square in %",
            iterations_to_check(&heat),
            match device.kind() {
                DeviceKind::Cpu => "a plain loop",
                DeviceKind::Emulator | DeviceKind::Cuda => "the CPU port",
            }
        ),
        boundary: Some(
            "walls keep their temperature; with a source and in steps, bottom and top are insulated"
                .to_owned(),
        ),
        // A plate, its next state, and a source.
        working_set_bytes: 3 * size_of::<f64>() as u64 * shape.points()? as u64,
        rows,
        left_out: Vec::new(),
        refused: None,
    })
}

/// The rows in `T`. Rows of one problem share the reference that they are checked against.
fn rows_in<T: Scalar + Element>(device: &Device, heat: Heat2d) -> Result<Vec<Box<dyn Row>>, Error> {
    let port = |problem, many| By {
        kernel: None,
        problem,
        many,
    };
    let by: Vec<By> = match device.kind() {
        DeviceKind::Cpu => vec![
            port(Kind::Iteration, false),
            port(Kind::Iteration, true),
            port(Kind::Heated, false),
            port(Kind::HeatedStep, false),
        ],
        DeviceKind::Emulator | DeviceKind::Cuda => Variant::ALL
            .into_iter()
            .filter(|variant| variant.kernel::<T>().is_some())
            .flat_map(By::of_kernel)
            .collect(),
    };
    let references: [Reference<T>; 4] = Default::default();
    let row = |by: By| -> Result<Box<dyn Row>, Error> {
        let mut heat = heat;
        if by.problem != Kind::Iteration {
            heat = heat.with_ends(Axis::Y, [Boundary::Neumann; 2])?;
        }
        if by.problem.is_step() {
            heat = heat.with_time_step(1.0, RATIO)?;
        }
        Ok(Box::new(Iterating {
            heat,
            by,
            reference: references[by.problem as usize].clone(),
        }))
    };
    by.into_iter().map(row).collect()
}

/// α Δt / h² of the steps in time.
const RATIO: f64 = 0.2;

/// The source of the rows that have one: 4 times the addend of each point in an iteration.
fn source_of_rows<T: Scalar>(shape: Shape2) -> Result<Field2<T>, Error> {
    Ok(Field2::from_fn(shape, |i, j| {
        T::from(((i + 2 * j) % 8) as f32 / 1024.0)
    })?)
}

/// Iterations before plates are compared: the textbook's number, or fewer where the port would take
/// seconds, but more than a pass has.
fn iterations_to_check(heat: &Heat2d) -> usize {
    const MOST_POINTS: u64 = 1 << 31;
    const FEWEST: usize = 20;
    let affordable = MOST_POINTS / heat.unknowns();
    usize::try_from(affordable).map_or(problem::ITERATIONS, |most| most.clamp(FEWEST, problem::ITERATIONS))
}

/// The expected plates of all rows, computed when the first row is checked.
type Reference<T> = Rc<OnceCell<Field2<T>>>;

/// The problem of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Jacobi iterations between walls that keep their temperature.
    Iteration,
    /// The same with a source and with insulated bottom and top.
    Heated,
    /// Steps in time with insulated bottom and top.
    Step,
    /// The same with a source.
    HeatedStep,
}

impl Kind {
    const fn is_step(self) -> bool {
        matches!(self, Self::Step | Self::HeatedStep)
    }

    const fn is_heated(self) -> bool {
        matches!(self, Self::Heated | Self::HeatedStep)
    }
}

/// What iterates in a row.
#[derive(Clone, Copy)]
struct By {
    /// The kernel; `None` for the port.
    kernel: Option<Variant>,
    problem: Kind,
    /// Whether the port makes the textbook's number of iterations.
    many: bool,
}

impl By {
    /// The rows of a kernel.
    fn of_kernel(kernel: Variant) -> Vec<Self> {
        let problems: &[Kind] = match kernel {
            Variant::March => &[Kind::Iteration, Kind::Heated],
            Variant::Step => &[Kind::Step, Kind::HeatedStep],
            _ => &[Kind::Iteration],
        };
        let of = |&problem| Self {
            kernel: Some(kernel),
            problem,
            many: false,
        };
        problems.iter().map(of).collect()
    }

    /// The port, on the same problem.
    const fn port(self) -> Self {
        Self {
            kernel: None,
            many: false,
            ..self
        }
    }

    /// The number of iterations in a launch.
    fn iterations<T: Scalar>(self) -> u64 {
        match self.kernel {
            Some(variant) => {
                variant.iterations_per_launch::<T>().min(problem::ITERATIONS) as u64
            }
            None if self.many => problem::ITERATIONS as u64,
            None => 1,
        }
    }

    fn start<T: Scalar>(self, heat: &Heat2d, device: &Device) -> Result<Plate<T>, Error> {
        let initial = problem::hot_left_wall(heat.shape())?;
        let plate = match self.kernel {
            Some(variant) => heat.plan_with(device, variant)?.start(&initial)?,
            None => heat.start(device, &initial)?,
        };
        Ok(if self.problem.is_heated() {
            plate.with_source(&source_of_rows(heat.shape())?)?
        } else {
            plate
        })
    }

    /// The name of the kernel or port.
    fn name<T: Scalar>(self) -> String {
        if let Some(variant) = self.kernel {
            let name = match self.problem.is_heated() {
                true => variant.heated_kernel::<T>(),
                false => variant.kernel::<T>(),
            };
            return name.unwrap_or("none").to_owned();
        }
        let what = match self.problem {
            Kind::Iteration if self.many => format!("{} iterations, ", problem::ITERATIONS),
            Kind::Iteration => String::new(),
            Kind::Heated => "insulated walls and a source, ".to_owned(),
            Kind::Step | Kind::HeatedStep => "a step in time, ".to_owned(),
        };
        format!("heat2d, CPU port, {what}{}", T::NAME)
    }
}

/// The fewest instructions of a launch with many iterations: four per point. None are counted for
/// single iterations, which wait for memory.
fn slots<T: Scalar>(by: By, heat: &Heat2d) -> Slots {
    let iterations = by.iterations::<T>();
    let all = 4 * iterations * heat.unknowns();
    match (iterations, T::NAME) {
        (1, _) => Slots::default(),
        (_, "f64") => Slots { fp32: 0, fp64: all },
        (_, _) => Slots { fp32: all, fp64: 0 },
    }
}

struct Iterating<T> {
    heat: Heat2d,
    by: By,
    reference: Reference<T>,
}

impl<T: Scalar + Element> Row for Iterating<T> {
    fn name(&self) -> String {
        self.by.name::<T>()
    }

    fn work(&self) -> Work {
        // A source is read and added for each point.
        let from_source = if self.by.problem.is_heated() {
            self.heat.unknowns()
        } else {
            0
        };
        let Cost { bytes, flops } = self.heat.cost::<T>();
        Work {
            // Several iterations in one launch move at least the bytes of one.
            bytes: bytes + size_of::<T>() as u64 * from_source,
            flops: self.by.iterations::<T>() * flops + from_source,
            items: self.by.iterations::<T>() * self.heat.unknowns(),
            unit: Unit::Points,
            metric: if self.by.iterations::<T>() == 1 {
                Metric::Bandwidth
            } else {
                Metric::Throughput
            },
            slots: slots::<T>(self.by, &self.heat),
            read_only: false,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        Ok(Box::new(Ready {
            heat: self.heat,
            by: self.by,
            plate: self.by.start(&self.heat, device)?,
            device: device.clone(),
            reference: self.reference.clone(),
        }))
    }
}

struct Ready<T: Scalar> {
    heat: Heat2d,
    by: By,
    plate: Plate<T>,
    device: Device,
    reference: Reference<T>,
}

impl<T: Scalar> Ready<T> {
    fn reference(&self) -> Result<&Field2<T>, Error> {
        if let Some(reference) = self.reference.get() {
            return Ok(reference);
        }
        let iterations = iterations_to_check(&self.heat);
        let plate = if self.by.kernel.is_some() {
            let mut plate = self.by.port().start(&self.heat, &Device::cpu())?;
            plate.iterate(iterations)?;
            plate.field()?
        } else {
            let initial = problem::hot_left_wall(self.heat.shape())?;
            let heated = self.by.problem.is_heated();
            let source = heated.then(|| source_of_rows(self.heat.shape())).transpose()?;
            let ratio = self.by.problem.is_step().then_some(T::nearest(RATIO));
            plain_loop(initial, source.as_ref(), ratio, iterations)
        };
        Ok(self.reference.get_or_init(|| plate))
    }
}

/// The plate after all iterations, straight from the definition. With a source, bottom and top are
/// Neumann boundaries; with a ratio, iterations are steps in time.
fn plain_loop<T: Scalar>(
    mut old: Field2<T>,
    source: Option<&Field2<T>>,
    ratio: Option<T>,
    iterations: usize,
) -> Field2<T> {
    let shape = old.shape();
    let rows = match source {
        Some(_) => 0..shape.ny,
        None => 1..shape.ny - 1,
    };
    let mut new = old.clone();
    for _ in 0..iterations {
        for j in rows.clone() {
            for i in 1..shape.nx - 1 {
                let (east, west) = (old[(i + 1, j)], old[(i - 1, j)]);
                let north = old[(i, if j == shape.ny - 1 { j - 1 } else { j + 1 })];
                let south = old[(i, if j == 0 { 1 } else { j - 1 })];
                let sum = (east + west) + (north + south);
                let sum = source.map_or(sum, |source| sum + source[(i, j)]);
                let here = old[(i, j)];
                new[(i, j)] = match ratio {
                    None => sum * T::from(0.25),
                    Some(ratio) => here.fused(T::from(-4.0), sum).fused(ratio, here),
                };
            }
        }
        std::mem::swap(&mut old, &mut new);
    }
    old
}

impl<T: Scalar + Element> Prepared for Ready<T> {
    fn check(&mut self) -> Result<Check, Error> {
        // From the initial plate, also after other launches.
        self.plate = self.by.start(&self.heat, &self.device)?;
        self.plate.iterate(iterations_to_check(&self.heat))?;
        let plate = self.plate.field()?;
        let (plate, reference) = (plate.as_slice(), self.reference()?.as_slice());
        let errors = if plate == reference {
            Errors { rms: 0.0, max: 0.0 }
        } else {
            Errors {
                rms: problem::percentage_rms_error(plate, reference),
                ..Errors::of(plate, |index| reference[index].into())
            }
        };
        // The operations have the same order, so all bits are equal.
        Ok(Check::new(errors, Errors { rms: 0.0, max: 0.0 }))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plate.iterate(self.by.iterations::<T>() as usize)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        let ways: &[&str] = match (self.by.kernel, self.by.problem) {
            (None, Kind::Iteration) if self.by.many => &["plain", "blocked8", "blocked16"],
            (None, Kind::Iteration) => &["plain"],
            _ => return Ok(None),
        };
        let shape = self.heat.shape();
        let initial = problem::hot_left_wall::<T>(shape)?;
        let plate = || -> Result<_, Error> {
            let mut plate = reserve(initial.as_slice().len())?;
            plate.extend_from_slice(initial.as_slice());
            Ok(T::array(plate))
        };
        let checked = iterations_to_check(&self.heat);
        self.reference()?;
        let reference = self.reference.clone();
        Ok(Some(Job {
            stem: "heat2d",
            ways,
            suffix: T::SUFFIX,
            inputs: Vec::new(),
            outputs: vec![plate()?, plate()?],
            sizes: vec![shape.nx as u64, shape.ny as u64, self.by.iterations::<T>()],
            steps_to_check: Some(checked as u64),
            parameters: Vec::new(),
            judge: Box::new(move |plates| {
                let reference = reference.get().map_or(&[][..], Field2::as_slice);
                Ok(judge_in_any_order(T::slice(&plates[checked % 2]), reference, checked))
            }),
        }))
    }
}

/// Checks a plate after this many iterations, for sums in any order.
fn judge_in_any_order<T: Scalar + Element>(plate: &[T], reference: &[T], iterations: usize) -> Check {
    let square = |&x: &T| Into::<f64>::into(x).powi(2);
    let mean_square = reference.iter().map(square).sum::<f64>() / reference.len() as f64;
    // No temperature is above 1, and an iteration does not enlarge errors. It adds at most three
    // roundings, here and in the reference.
    let max = 6.0 * iterations as f64 * T::ROUNDOFF;
    let bounds = Errors {
        rms: 100.0 * max / mean_square.sqrt(),
        max,
    };
    let errors = Errors {
        rms: problem::percentage_rms_error(plate, reference),
        ..Errors::of(plate, |index| reference[index].into())
    };
    Check::new(errors, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_passes_its_check_at_a_size_of_its_own() {
        for device in [Device::cpu(), Device::emulator()] {
            let plan = plan(&device, Some(&"20x35".parse().unwrap())).unwrap();
            assert!(!plan.rows.is_empty());
            for row in plan.rows {
                let mut ready = row.prepare(&device).unwrap();
                // The second time, the outputs hold the results of the first.
                for _ in 0..2 {
                    let check = ready.check().unwrap();
                    assert!(check.passes(), "{}: {check:?}", row.name());
                    ready.launch().unwrap();
                }
            }
        }
    }

    #[test]
    fn sums_of_another_order_are_right_and_a_plate_that_was_not_swept_is_wrong() {
        let shape = Shape2::new(20, 35);
        let initial = problem::hot_left_wall::<f32>(shape).unwrap();
        let swept = plain_loop(initial.clone(), None, None, 10);
        let judge = |plate: &[f32]| judge_in_any_order(plate, swept.as_slice(), 10).passes();
        let mut plate = swept.as_slice().to_vec();
        assert!(judge(&plate) && !judge(initial.as_slice()));
        assert!(!judge(&plate[1..]));
        plate[42] += 1e-6;
        assert!(judge(&plate));
        plate[42] += 1e-5;
        assert!(!judge(&plate));
        plate[42] = f32::NAN;
        assert!(!judge(&plate));
    }

    #[test]
    fn a_large_plate_is_checked_after_fewer_iterations() {
        let iterations = |n| iterations_to_check(&Heat2d::dirichlet(Shape2::new(n, n)).unwrap());
        assert_eq!([iterations(3), iterations(256), iterations(4096)], [100; 3]);
        assert_eq!(iterations(8192), 32);
        assert_eq!(iterations(65_536), 20);
    }

    #[test]
    fn a_size_that_is_no_plate_is_refused_before_anything_runs() {
        let refusal = |size: &str| {
            let error = plan(&Device::emulator(), Some(&size.parse().unwrap()))
                .err()
                .unwrap();
            crate::error::chain(&error)
        };
        assert!(
            refusal("2x64").contains("at least 3"),
            "{}",
            refusal("2x64")
        );
        assert!(refusal("4x4x4").contains("NXxNY"), "{}", refusal("4x4x4"));
    }
}
