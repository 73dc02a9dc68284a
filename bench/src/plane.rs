//! Rows of stencils of one's own in the plane, on the CPU: heat by five points, and Gray and
//! Scott's reaction of two substances (Pearson, "Complex patterns in a simple system", Science
//! 261 (1993)). Both planes are periodic.

use halo_gpu::stencil::{Compiled, Neighbourhood, Number, PointUpdate, Reach, Real, Run, Stencil};
use halo_gpu::{Cost, Device, Errors, Grid2, Shape2};

use super::cpp::{Element, Job};
use super::harness::{Check, Metric, Prepared, Row, Slots, Unit, Work};
use crate::error::Error;

/// Steps before fields are compared.
const CHECKED: usize = 20;

/// A step of heat in time: u + r (((W + E) + (S + N)) - 4 u).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct FivePoints<T> {
    ratio: T,
}

/// A step of the reaction: `∂u/∂t = 2D ∇²u - u v² + F (1 - u)`,
/// `∂v/∂t = D ∇²v + u v² - (F + k) v`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct GrayScott<T> {
    diffusion: T,
    feed: T,
    kill: T,
}

impl<T: Real> PointUpdate<T, 1, 1> for FivePoints<T> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
        let u = n.at::<0, 0, 0, 0>();
        let sum = n.pair::<0, 0>(1) + n.pair::<0, 1>(1);
        [u + (sum - u * T::from(4.0)) * self.ratio]
    }
}

impl<T: Real> PointUpdate<T, 2, 2> for GrayScott<T> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1); 2];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        let (u, v) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let four = T::from(4.0);
        let spread_u = (n.pair::<0, 0>(1) + n.pair::<0, 1>(1) - u * four) * self.diffusion;
        let spread_v = (n.pair::<1, 0>(1) + n.pair::<1, 1>(1) - v * four) * self.diffusion;
        let reacting = u * v * v;
        let fed = (-u + T::from(1.0)) * self.feed;
        let lost = v * self.feed + v * self.kill;
        [
            u + (spread_u * T::from(2.0) - reacting + fed),
            v + (spread_v + reacting - lost),
        ]
    }
}

halo_stencil::stencil! {
    /// Heat, in f32.
    pub five_points_f32: FivePoints<f32>, f32, (u) -> (new_u)
}
halo_stencil::stencil! {
    /// Heat, in f64.
    pub five_points_f64: FivePoints<f64>, f64, (u) -> (new_u)
}
halo_stencil::stencil! {
    /// The reaction, in f32.
    pub gray_scott_f32: GrayScott<f32>, f32, (u, v) -> (new_u, new_v)
}
halo_stencil::stencil! {
    /// The reaction, in f64.
    pub gray_scott_f64: GrayScott<f64>, f64, (u, v) -> (new_u, new_v)
}

/// An equation with what it is checked against.
trait Equation<T: Number, const FIELDS: usize>: Compiled<T, FIELDS, FIELDS> {
    /// What its row is called, and its functions in C++.
    const NAMES: [&'static str; 2];

    /// The steps of its rows.
    const STEPS: [usize; 2];

    fn new() -> Self;

    /// The parameters of the C++.
    fn parameters(&self) -> Vec<f64>;

    /// A step of a point in any order of its operations, from the fields there and the sums of
    /// their neighbours.
    fn step(&self, here: [f64; FIELDS], sums: [f64; FIELDS]) -> [f64; FIELDS];
}

impl<T: Number> Equation<T, 1> for FivePoints<T>
where
    Self: Compiled<T, 1, 1>,
{
    const NAMES: [&'static str; 2] = ["five points of one's own", "stencil_five_points"];
    const STEPS: [usize; 2] = [1, 100];

    fn new() -> Self {
        Self {
            ratio: T::nearest(0.2),
        }
    }

    fn parameters(&self) -> Vec<f64> {
        vec![self.ratio.into()]
    }

    fn step(&self, [u]: [f64; 1], [sum]: [f64; 1]) -> [f64; 1] {
        [u + self.ratio.into() * (sum - 4.0 * u)]
    }
}

impl<T: Number> Equation<T, 2> for GrayScott<T>
where
    Self: Compiled<T, 2, 2>,
{
    const NAMES: [&'static str; 2] = ["Gray and Scott's reaction", "stencil_gray_scott"];
    const STEPS: [usize; 2] = [1, 20];

    fn new() -> Self {
        let [diffusion, feed, kill] = [0.08, 0.037, 0.06].map(T::nearest);
        Self {
            diffusion,
            feed,
            kill,
        }
    }

    fn parameters(&self) -> Vec<f64> {
        [self.diffusion, self.feed, self.kill]
            .map(Into::into)
            .into()
    }

    fn step(&self, [u, v]: [f64; 2], [sum_u, sum_v]: [f64; 2]) -> [f64; 2] {
        let [diffusion, feed, kill]: [f64; 3] =
            [self.diffusion, self.feed, self.kill].map(Into::into);
        let reacting = u * v * v;
        [
            u + 2.0 * diffusion * (sum_u - 4.0 * u) - reacting + feed * (1.0 - u),
            v + diffusion * (sum_v - 4.0 * v) + reacting - (feed + kill) * v,
        ]
    }
}

/// The rows in `T`.
pub(super) fn rows<T>(shape: Shape2) -> Result<Vec<Box<dyn Row>>, Error>
where
    T: Number + Element,
    FivePoints<T>: Compiled<T, 1, 1>,
    GrayScott<T>: Compiled<T, 2, 2>,
{
    let mut rows = rows_of::<T, FivePoints<T>, 1>(shape)?;
    rows.extend(rows_of::<T, GrayScott<T>, 2>(shape)?);
    Ok(rows)
}

fn rows_of<T, E, const FIELDS: usize>(shape: Shape2) -> Result<Vec<Box<dyn Row>>, Error>
where
    T: Number + Element,
    E: Equation<T, FIELDS>,
{
    let stencil = Stencil::new(E::new(), Grid2::new(shape, [1.0; 2])?)?;
    let row = |count| -> Box<dyn Row> { Box::new(Steps { stencil, count }) };
    Ok(E::STEPS.map(row).into())
}

struct Steps<E, T, const FIELDS: usize> {
    stencil: Stencil<E, T, 2, FIELDS, FIELDS>,
    count: usize,
}

impl<T, E, const FIELDS: usize> Row for Steps<E, T, FIELDS>
where
    T: Number + Element,
    E: Equation<T, FIELDS>,
{
    fn name(&self) -> String {
        let steps = match self.count {
            1 => String::new(),
            count => format!("{count} steps, "),
        };
        format!("heat2d, CPU, {}, {steps}{}", E::NAMES[0], T::SUFFIX)
    }

    fn work(&self) -> Work {
        let Cost { bytes, flops } = self.stencil.cost();
        let points = self.stencil.grid().shape().nx * self.stencil.grid().shape().ny;
        Work {
            // Many steps have to move what one has to.
            bytes,
            flops: self.count as u64 * flops,
            items: (self.count * points) as u64,
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
        let inputs = initial::<T, FIELDS>(self.stencil.grid().shape());
        let run = self
            .stencil
            .start(device, inputs.each_ref().map(|input| &input[..]))?;
        Ok(Box::new(Ready {
            count: self.count,
            device: device.clone(),
            run,
        }))
    }
}

/// Hills of two widths, between 0 and 1, without a number that is subnormal.
fn initial<T: Number, const FIELDS: usize>(shape: Shape2) -> [Vec<T>; FIELDS] {
    let Shape2 { nx, ny } = shape;
    std::array::from_fn(|field| {
        let wave = |at: usize, n: usize, waves: usize| {
            (std::f64::consts::TAU * (at * waves % n) as f64 / n as f64).sin()
        };
        let value = |at: usize| {
            let long = wave(at % nx, nx, 1 + field) * wave(at / nx, ny, 2);
            0.5 + 0.25 * long + 0.125 * wave(at % nx, nx, nx / 4) * wave(at / nx, ny, ny / 8)
        };
        (0..nx * ny).map(|at| T::nearest(value(at))).collect()
    })
}

/// The fields after this many steps, point by point, in f64.
fn plain<T, E, const FIELDS: usize>(shape: Shape2, steps: usize) -> [Vec<f64>; FIELDS]
where
    T: Number,
    E: Equation<T, FIELDS>,
{
    let Shape2 { nx, ny } = shape;
    let equation = E::new();
    let mut now = initial::<T, FIELDS>(shape)
        .map(|field| field.into_iter().map(Into::into).collect::<Vec<f64>>());
    for _ in 0..steps {
        let mut next = now.clone();
        for j in 0..ny {
            let [south, north] = [(j + ny - 1) % ny, (j + 1) % ny].map(|j| j * nx);
            for i in 0..nx {
                let [west, east] = [(i + nx - 1) % nx, (i + 1) % nx].map(|i| j * nx + i);
                let here = now.each_ref().map(|u| u[j * nx + i]);
                let sums = now
                    .each_ref()
                    .map(|u| (u[west] + u[east]) + (u[south + i] + u[north + i]));
                for (next, value) in next.iter_mut().zip(equation.step(here, sums)) {
                    next[j * nx + i] = value;
                }
            }
        }
        now = next;
    }
    now
}

/// The errors of fields after [`CHECKED`] steps, the largest of each.
fn judge<T, E, const FIELDS: usize>(shape: Shape2, fields: [&[T]; FIELDS]) -> Check
where
    T: Number + Element,
    E: Equation<T, FIELDS>,
{
    let expected = plain::<T, E, FIELDS>(shape, CHECKED);
    let mut worst = Errors { rms: 0.0, max: 0.0 };
    for (field, expected) in fields.iter().zip(&expected) {
        let errors = Errors::of(field, |index| expected[index]);
        // One that is not a number stays.
        if errors.max.is_nan() || errors.max > worst.max {
            worst = errors;
        }
    }
    // No value is above 1, and steps pass errors on nearly as they are. Each adds some.
    let bound = 20.0 * CHECKED as f64 * T::ROUNDOFF;
    Check::new(
        worst,
        Errors {
            rms: bound,
            max: bound,
        },
    )
}

struct Ready<E, T: Number, const FIELDS: usize> {
    count: usize,
    device: Device,
    run: Run<E, T, 2, FIELDS, FIELDS>,
}

impl<T, E, const FIELDS: usize> Prepared for Ready<E, T, FIELDS>
where
    T: Number + Element,
    E: Equation<T, FIELDS>,
{
    fn check(&mut self) -> Result<Check, Error> {
        // From the beginning, whatever steps were taken before.
        let stencil = *self.run.plan().stencil();
        let shape = stencil.grid().shape();
        let inputs = initial::<T, FIELDS>(shape);
        self.run = stencil.start(&self.device, inputs.each_ref().map(|input| &input[..]))?;
        self.run.steps(CHECKED)?;
        let mut fields = [const { Vec::new() }; FIELDS];
        for (field, values) in fields.iter_mut().enumerate() {
            *values = self.run.to_vec(field)?;
        }
        Ok(judge::<T, E, FIELDS>(
            shape,
            fields.each_ref().map(|field| &field[..]),
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.run.steps(self.count)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        // The C++ of several fields is not compared with: it reads outside of them.
        if FIELDS > 1 {
            return Ok(None);
        }
        let stencil = self.run.plan().stencil();
        let shape = stencil.grid().shape();
        let sizes = |steps: usize| [shape.nx, shape.ny, 1, steps].map(|n| n as u64).to_vec();
        let fields = || initial::<T, FIELDS>(shape).map(T::array);
        Ok(Some(Job {
            stem: E::NAMES[1],
            ways: &["rows", "slabs"],
            suffix: T::SUFFIX,
            inputs: Vec::new(),
            outputs: fields().into_iter().chain(fields()).collect(),
            sizes: sizes(self.count),
            sizes_to_check: Some(sizes(CHECKED)),
            parameters: stencil.update().parameters(),
            // An even number of steps ends where it has begun.
            judge: Box::new(move |fields| {
                Ok(judge::<T, E, FIELDS>(
                    shape,
                    std::array::from_fn(|field| T::slice(&fields[field])),
                ))
            }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields after all steps are right, and those that lack one are wrong.
    fn a_step_too_few_is_wrong<E: Equation<f32, FIELDS>, const FIELDS: usize>() {
        let shape = Shape2::new(20, 35);
        for (steps, right) in [(CHECKED, true), (CHECKED - 1, false)] {
            let fields = plain::<f32, E, FIELDS>(shape, steps)
                .map(|field| field.into_iter().map(|u| u as f32).collect::<Vec<_>>());
            let check = judge::<f32, E, FIELDS>(shape, fields.each_ref().map(|u| &u[..]));
            assert_eq!(check.passes(), right, "{check:?}");
            let mut lost = fields;
            lost[FIELDS - 1][7] = f32::NAN;
            let check = judge::<f32, E, FIELDS>(shape, lost.each_ref().map(|u| &u[..]));
            assert!(!check.passes());
        }
    }

    #[test]
    fn fields_that_lack_a_step_or_are_no_numbers_are_wrong() {
        a_step_too_few_is_wrong::<FivePoints<f32>, 1>();
        a_step_too_few_is_wrong::<GrayScott<f32>, 2>();
    }
}
