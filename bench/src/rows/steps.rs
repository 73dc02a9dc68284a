//! Rows of stencils on the CPU: steps of textbook problems with a known discrete solution.

use halo_gpu::stencil::{Compiled, Number, PointUpdate, Run, Stencil};
use halo_gpu::{Axis, Cost, Device, DeviceKind, Errors, Shape3};

use gpu_kernels::registry;

use super::case;
use crate::check::Check;
use crate::cpp::job::{Element, Job};
use crate::error::Error;
use crate::row::{Metric, Plan, Prepared, Row, Slots, Unit, Work};
use crate::size::Size;

/// Steps in a launch: one, which is limited by memory, and many, which need not be.
const COUNTS: [usize; 2] = [1, 20];

/// A textbook problem on a grid.
pub(super) trait Textbook<T: Number, const D: usize, const INPUTS: usize, const OUTPUTS: usize>:
    Clone + 'static
{
    type Update: Compiled<T, INPUTS, OUTPUTS>;

    /// The name of its rows, before the number of steps and the type.
    const NAME: &'static str;

    /// The name of its functions in C++, and of the ways in which they work.
    const CPP: (&'static str, &'static [&'static str]);

    /// The steps in a launch of each row.
    const COUNTS: [usize; 2] = COUNTS;

    /// Steps before fields are compared, where a launch has `count`.
    fn steps_to_check(count: usize) -> usize {
        count.max(9)
    }

    fn stencil(&self) -> Result<Stencil<Self::Update, T, D, INPUTS, OUTPUTS>, Error>;

    fn inputs(&self) -> Result<[Vec<T>; INPUTS], Error>;

    /// The fields after this many steps in exact arithmetic.
    fn exact(&self, steps: usize) -> Result<[Vec<f64>; OUTPUTS], Error>;

    /// The bound of the rounding error after this many steps, in unit roundoffs.
    fn roundings(steps: usize) -> f64;

    /// The parameters of the C++.
    fn parameters(&self) -> Result<Vec<f64>, Error>;
}

/// The plan of a family. On the CPU it has rows of `problem` on a grid of this shape, in f32 and
/// f64; on other devices it has none, and the table adds the kernels.
pub(super) fn plan<P, const INPUTS: usize>(
    family: &'static str,
    device: &Device,
    size: Option<&Size>,
    problem: impl Fn(Shape3) -> Result<P, halo_gpu::Error>,
) -> Result<Plan, Error>
where
    P: Textbook<f32, 3, INPUTS, 1> + Textbook<f64, 3, INPUTS, 1>,
{
    let kernels = registry::family(family);
    let kernels = kernels.ok_or_else(|| Error::Bench(format!("there is no family {family}")))?;
    let mut plan = case::plan(kernels, device, size)?;
    if device.kind() == DeviceKind::Cpu {
        let [nx, ny, nz] = match size {
            Some(size) => size.cuboid(family)?,
            None => [256; 3],
        };
        let problem = problem(Shape3::new(nx, ny, nz))?;
        plan.problem = "a mode of a box, whose course on the grid is known".to_owned();
        plan.rows = rows::<f32, P, 3, INPUTS, 1>(&problem)?;
        plan.rows.extend(rows::<f64, P, 3, INPUTS, 1>(&problem)?);
    }
    Ok(plan)
}

/// The number of half or whole waves of a mode along each axis.
pub(super) fn modes(shape: Shape3) -> [usize; 3] {
    [shape.nx / 4, shape.ny / 8, shape.nz / 16]
}

/// A row for each number of steps.
pub(super) fn rows<T, P, const D: usize, const INPUTS: usize, const OUTPUTS: usize>(
    problem: &P,
) -> Result<Vec<Box<dyn Row>>, Error>
where
    T: Number + Element,
    P: Textbook<T, D, INPUTS, OUTPUTS>,
{
    let stencil = problem.stencil()?;
    let row = |count| -> Box<dyn Row> {
        Box::new(Steps {
            problem: problem.clone(),
            stencil,
            count,
        })
    };
    Ok(P::COUNTS.map(row).into())
}

struct Steps<P, U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    problem: P,
    stencil: Stencil<U, T, D, INPUTS, OUTPUTS>,
    count: usize,
}

/// Points along x, y and z.
fn extents<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>(
    stencil: &Stencil<U, T, D, INPUTS, OUTPUTS>,
) -> [u64; 3]
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    Axis::ALL.map(|axis| stencil.grid().extent(axis) as u64)
}

impl<T, P, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Row
    for Steps<P, P::Update, T, D, INPUTS, OUTPUTS>
where
    T: Number + Element,
    P: Textbook<T, D, INPUTS, OUTPUTS>,
{
    fn name(&self) -> String {
        let steps = match self.count {
            1 => String::new(),
            count => format!("{count} steps, "),
        };
        format!("{}, {steps}{}", P::NAME, T::SUFFIX)
    }

    fn work(&self) -> Work {
        let Cost { bytes, flops } = self.stencil.cost();
        let points: u64 = extents(&self.stencil).iter().product();
        Work {
            // Several steps in one launch move at least the bytes of one.
            bytes,
            flops: self.count as u64 * flops,
            items: self.count as u64 * points,
            unit: Unit::Points,
            metric: match self.count {
                1 => Metric::Bandwidth,
                _ => Metric::Throughput,
            },
            slots: Slots::default(),
            read_only: false,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let inputs = self.problem.inputs()?;
        let run = self
            .stencil
            .start(device, inputs.each_ref().map(|input| &input[..]))?;
        Ok(Box::new(Ready {
            problem: self.problem.clone(),
            count: self.count,
            device: device.clone(),
            run,
        }))
    }
}

struct Ready<P, U, T: Number, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    problem: P,
    count: usize,
    device: Device,
    run: Run<U, T, D, INPUTS, OUTPUTS>,
}

/// The errors of the worst field after this many steps.
pub(super) fn judge<T, P, const D: usize, const INPUTS: usize, const OUTPUTS: usize>(
    problem: &P,
    fields: [&[T]; OUTPUTS],
    steps: usize,
) -> Result<Check, Error>
where
    T: Number + Element,
    P: Textbook<T, D, INPUTS, OUTPUTS>,
{
    let mut worst = Errors { rms: 0.0, max: 0.0 };
    for (field, exact) in fields.iter().zip(problem.exact(steps)?) {
        let errors = Errors::of(field, |index| exact[index]);
        // This form keeps a NaN.
        if errors.max.is_nan() || errors.max > worst.max {
            worst = errors;
        }
    }
    let bound = T::ROUNDOFF * P::roundings(steps);
    Ok(Check::new(
        worst,
        Errors {
            rms: bound,
            max: bound,
        },
    ))
}

impl<T, P, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Prepared
    for Ready<P, P::Update, T, D, INPUTS, OUTPUTS>
where
    T: Number + Element,
    P: Textbook<T, D, INPUTS, OUTPUTS>,
{
    fn check(&mut self) -> Result<Check, Error> {
        // From the initial fields, also after other launches.
        let inputs = self.problem.inputs()?;
        let stencil = *self.run.plan().stencil();
        self.run = stencil.start(&self.device, inputs.each_ref().map(|input| &input[..]))?;
        let steps = P::steps_to_check(self.count);
        self.run.steps(steps)?;
        let mut fields = [const { Vec::new() }; OUTPUTS];
        for (field, values) in fields.iter_mut().enumerate() {
            *values = self.run.to_vec(field)?;
        }
        judge(
            &self.problem,
            fields.each_ref().map(|field| &field[..]),
            steps,
        )
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.run.steps(self.count)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        let mut fields = self.problem.inputs()?.into_iter();
        let now: Vec<_> = fields.by_ref().take(OUTPUTS).collect();
        let before: Vec<_> = match P::Update::PAST {
            0 => now.clone(),
            _ => fields.by_ref().take(OUTPUTS).collect(),
        };
        let [nx, ny, nz] = extents(self.run.plan().stencil());
        let checked = P::steps_to_check(self.count);
        let problem = self.problem.clone();
        let (stem, ways) = P::CPP;
        Ok(Some(Job {
            stem,
            ways,
            suffix: T::SUFFIX,
            inputs: fields.map(T::array).collect(),
            outputs: now.into_iter().chain(before).map(T::array).collect(),
            sizes: vec![nx, ny, nz, self.count as u64],
            steps_to_check: Some(checked as u64),
            parameters: self.problem.parameters()?,
            judge: Box::new(move |fields| {
                let last = checked % 2 * OUTPUTS;
                let fields = std::array::from_fn(|field| T::slice(&fields[last + field]));
                judge(&problem, fields, checked)
            }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use halo_gpu::Grid3;
    use halo_gpu::heat3d::Heat3d;
    use halo_gpu::wave3d::Wave3d;

    use super::*;

    #[test]
    fn every_row_passes_its_check_at_a_size_of_its_own() {
        let size: Size = "20x35x18".parse().unwrap();
        for name in ["heat3d", "wave3d"] {
            let own = super::super::FAMILIES.iter().find(|own| own.name == name);
            let plan = (own.unwrap().plan)(&Device::cpu(), Some(&size)).unwrap();
            assert_eq!(plan.rows.len(), 2 * COUNTS.len());
            for row in plan.rows {
                let mut ready = row.prepare(&Device::cpu()).unwrap();
                // The second time, the outputs hold the results of the first.
                for _ in 0..2 {
                    let check = ready.check().unwrap();
                    assert!(check.passes(), "{}: {check:?}", row.name());
                    ready.launch().unwrap();
                }
            }
        }
    }

    /// The check passes the fields after `steps`, and fails those of one step fewer.
    fn a_step_too_few_is_wrong<P, const INPUTS: usize>(problem: &P)
    where
        P: Textbook<f32, 3, INPUTS, 1>,
    {
        for steps in COUNTS.map(P::steps_to_check) {
            for (taken, right) in [(steps, true), (steps - 1, false)] {
                let [exact] = problem.exact(taken).unwrap();
                let field: Vec<f32> = exact.iter().map(|&u| u as f32).collect();
                assert_eq!(judge(problem, [&field], steps).unwrap().passes(), right);
            }
        }
    }

    #[test]
    fn a_field_that_lacks_a_step_is_wrong() {
        let grid = Grid3::new(Shape3::new(20, 35, 18), [1.0; 3]).unwrap();
        a_step_too_few_is_wrong(&Heat3d::new(grid));
        a_step_too_few_is_wrong(&Wave3d::new(grid, 8).unwrap());
    }
}
