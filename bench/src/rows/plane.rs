//! Rows of user-written stencils in the plane, on the CPU: heat by five points, and Gray and
//! Scott's reaction of two substances (Pearson, "Complex patterns in a simple system", Science
//! 261 (1993)). Both planes are periodic.

use halo_gpu::stencil::{
    Compiled, Neighbourhood, Number, PointUpdate, Reach, Real, Stencil, Value as _,
};
use halo_gpu::{Grid2, Shape2};

use super::steps::{self, Textbook};
use crate::cpp::job::Element;
use crate::error::Error;
use crate::row::Row;

/// Steps before fields are compared.
const CHECKED: usize = 20;

/// A step of heat in time: u + r (((W + E) + (S + N)) - 4 u), with fused multiply-adds, as compilers
/// of C++ use them.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct FivePoints<T> {
    ratio: T,
}

/// A step of the reaction: `∂u/∂t = 2D ∇²u - u v² + F (1 - u)`,
/// `∂v/∂t = D ∇²v + u v² - (F + k) v`, with fused multiply-adds.
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
        let spread = u.fused(n.splat(T::from(-4.0)), sum);
        [spread.fused(n.splat(self.ratio), u)]
    }
}

impl<T: Real> PointUpdate<T, 2, 2> for GrayScott<T> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1); 2];

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        let (u, v) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let minus_four = n.splat(T::from(-4.0));
        let spread_u = u.fused(minus_four, n.pair::<0, 0>(1) + n.pair::<0, 1>(1));
        let spread_v = v.fused(minus_four, n.pair::<1, 0>(1) + n.pair::<1, 1>(1));
        let reacting = u * v * v;
        let fed = u.fused(n.splat(-self.feed), n.splat(self.feed));
        let left = v.fused(n.splat(-(self.feed + self.kill)), reacting);
        let diffusion = self.diffusion;
        [
            spread_u.fused(n.splat(diffusion + diffusion), u + (fed - reacting)),
            spread_v.fused(n.splat(diffusion), v + left),
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

/// An equation, and a step of one point in f64 that checks it.
trait Equation<T: Number, const FIELDS: usize>: Compiled<T, FIELDS, FIELDS> {
    /// The names of its rows, and of its functions in C++.
    const NAMES: [&'static str; 2];

    /// The steps of its rows.
    const STEPS: [usize; 2];

    fn new() -> Self;

    /// The parameters of the C++.
    fn parameters(&self) -> Vec<f64>;

    /// A step of a point, in any order of operations, from the fields there and the sums of their
    /// neighbours.
    fn step(&self, here: [f64; FIELDS], sums: [f64; FIELDS]) -> [f64; FIELDS];
}

impl<T: Number> Equation<T, 1> for FivePoints<T>
where
    Self: Compiled<T, 1, 1>,
{
    const NAMES: [&'static str; 2] = [
        "heat2d, CPU, five points, user-defined",
        "stencil_five_points",
    ];
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
    const NAMES: [&'static str; 2] = [
        "heat2d, CPU, Gray and Scott's reaction",
        "stencil_gray_scott",
    ];
    const STEPS: [usize; 2] = [1, 20];

    fn new() -> Self {
        // At these rates both substances stay: F > 4 (F + k)². Where one vanishes, its field
        // becomes subnormal after some hundred steps, and processors are slow at those.
        let [diffusion, feed, kill] = [0.08, 0.06, 0.05].map(T::nearest);
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
    let mut rows = steps::rows(&Plane::<FivePoints<T>>::new(shape))?;
    rows.extend(steps::rows(&Plane::<GrayScott<T>>::new(shape))?);
    Ok(rows)
}

/// An equation on a grid of this shape.
#[derive(Clone)]
struct Plane<E> {
    equation: E,
    shape: Shape2,
}

impl<E> Plane<E> {
    fn new<T: Number, const FIELDS: usize>(shape: Shape2) -> Self
    where
        E: Equation<T, FIELDS>,
    {
        Self {
            equation: E::new(),
            shape,
        }
    }
}

impl<T, E, const FIELDS: usize> Textbook<T, 2, FIELDS, FIELDS> for Plane<E>
where
    T: Number,
    E: Equation<T, FIELDS> + 'static,
{
    type Update = E;

    const NAME: &'static str = E::NAMES[0];
    const CPP: (&'static str, &'static [&'static str]) = (E::NAMES[1], &["rows", "slabs"]);
    const COUNTS: [usize; 2] = E::STEPS;

    fn steps_to_check(_: usize) -> usize {
        CHECKED
    }

    fn stencil(&self) -> Result<Stencil<E, T, 2, FIELDS, FIELDS>, Error> {
        Ok(Stencil::new(
            self.equation,
            Grid2::new(self.shape, [1.0; 2])?,
        )?)
    }

    fn inputs(&self) -> Result<[Vec<T>; FIELDS], Error> {
        Ok(initial(self.shape))
    }

    fn exact(&self, steps: usize) -> Result<[Vec<f64>; FIELDS], Error> {
        Ok(plain::<T, E, FIELDS>(self.shape, steps))
    }

    /// No value is above 1, and a step enlarges errors hardly at all; it adds some.
    fn roundings(steps: usize) -> f64 {
        20.0 * steps as f64
    }

    fn parameters(&self) -> Result<Vec<f64>, Error> {
        Ok(self.equation.parameters())
    }
}

/// Hills of two widths, between 0 and 1, without subnormal numbers.
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

#[cfg(test)]
mod tests {
    use super::super::steps::judge;
    use super::*;

    /// The fields after all steps pass the check, and the fields one step earlier fail it.
    fn a_step_too_few_is_wrong<E, const FIELDS: usize>()
    where
        E: Equation<f32, FIELDS> + 'static,
    {
        let problem = Plane::<E>::new(Shape2::new(20, 35));
        for (steps, right) in [(CHECKED, true), (CHECKED - 1, false)] {
            let fields = problem
                .exact(steps)
                .unwrap()
                .map(|field| field.into_iter().map(|u| u as f32).collect::<Vec<_>>());
            let check = judge(&problem, fields.each_ref().map(|u| &u[..]), CHECKED).unwrap();
            assert_eq!(check.passes(), right, "{check:?}");
            let mut lost = fields;
            lost[FIELDS - 1][7] = f32::NAN;
            let check = judge(&problem, lost.each_ref().map(|u| &u[..]), CHECKED).unwrap();
            assert!(!check.passes());
        }
    }

    #[test]
    fn fields_that_lack_a_step_or_are_no_numbers_are_wrong() {
        a_step_too_few_is_wrong::<FivePoints<f32>, 1>();
        a_step_too_few_is_wrong::<GrayScott<f32>, 2>();
    }
}
