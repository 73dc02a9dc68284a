//! Tests of user-written stencils: for any update, shape, boundaries and device, the bits are those
//! of a plain interpreter.

use halo_gpu::heat3d::{Heat3d, Kernels};
use halo_gpu::stencil::{
    Compiled, MAX_BOX, MAX_RADIUS, Neighbourhood, Number, PointUpdate, Reach, Real, Run, Stencil,
    Value,
};
use halo_gpu::{
    Axis, Boundary, Device, DeviceKind, Error, Field3, Grid, Grid2, Grid3, LaunchConfig, Shape2,
    Shape3, launch,
};
use halo_stencil::{Layout, Region, blocks};
use halo_tests::property::{awkward, cases};
use halo_tests::{assert_same_bits, for_each, kernel_devices, rng, test_cases};
use proptest::prelude::*;
use rand::{Rng, RngExt};

/// The CPU and the emulator; this crate's kernels have no PTX.
fn devices() -> [Device; 2] {
    [Device::cpu(), kernel_devices().swap_remove(0)]
}

/// One operation of a [`Program`].
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Operation<T> {
    what: u32,
    field: u32,
    offset: [i32; 3],
    weight: T,
}

const OPERATIONS: usize = 5;

/// A formula that is only known when the program runs: two results, of some operations each.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Program<T, const D: usize> {
    operations: [[Operation<T>; OPERATIONS]; 2],
}

const REACH: [Reach; 3] = [
    Reach::star(MAX_RADIUS),
    Reach::cube(MAX_BOX),
    Reach::axes([0, 3, 1]),
];

impl<T: Real, const D: usize> Program<T, D> {
    /// The result for the values that `read` returns.
    #[inline(always)]
    fn run<V: Value<T>>(
        &self,
        splat: impl Fn(T) -> V,
        read: impl Fn(usize, [isize; 3]) -> V,
    ) -> [V; 2] {
        let result = |operations: &[Operation<T>; OPERATIONS]| {
            let mut so_far = splat(T::from(0.5));
            for operation in operations {
                let offset = operation.offset.map(|d| d as isize);
                let value = read(operation.field as usize, offset);
                so_far = match operation.what {
                    0 => so_far + value * operation.weight,
                    1 => value.fused(splat(operation.weight), so_far),
                    2 => so_far * value - operation.weight,
                    3 => so_far.smaller(value),
                    4 => (-so_far).larger(value),
                    5 => (so_far * so_far + value * value).root(),
                    _ => so_far / (value * value + T::from(1.0)),
                };
            }
            so_far
        };
        [result(&self.operations[0]), result(&self.operations[1])]
    }

    #[inline(always)]
    fn of<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.run(
            |number| n.splat(number),
            |field, offset| n.value(field, offset),
        )
    }
}

impl<T: Real, const D: usize> PointUpdate<T, 3, 2> for Program<T, D> {
    const DIMENSIONS: usize = D;
    const REACH: [Reach; 3] = REACH;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.of(n)
    }
}

halo_stencil::stencil! {
    /// In the plane, in f32.
    pub program2_f32: Program<f32, 2>, f32, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In the plane, in f64.
    pub program2_f64: Program<f64, 2>, f64, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In space, in f32.
    pub program3_f32: Program<f32, 3>, f32, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In space, in f64.
    pub program3_f64: Program<f64, 3>, f64, (a, b, c) -> (x, y)
}

/// The same program, whose results are both written over their past.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Over<T, const D: usize> {
    program: Program<T, D>,
}

const REACH_OVER: [Reach; 5] = [REACH[0], REACH[1], Reach::POINT, Reach::POINT, REACH[2]];

impl<T: Real, const D: usize> PointUpdate<T, 5, 2> for Over<T, D> {
    const DIMENSIONS: usize = D;
    const REACH: [Reach; 5] = REACH_OVER;
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.program.of(n)
    }
}

/// The same with few values, so that a pass on the CPU looks them up once, and a radius of `R`
/// along x.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Few<T, const D: usize, const R: usize> {
    program: Program<T, D>,
}

const fn few(radius: usize) -> [Reach; 5] {
    let along_x = Reach::axes([radius, 0, 0]);
    [
        along_x,
        Reach::cube(1),
        Reach::POINT,
        Reach::POINT,
        Reach::axes([0, 2, 1]),
    ]
}

impl<T: Real, const D: usize, const R: usize> PointUpdate<T, 5, 2> for Few<T, D, R> {
    const DIMENSIONS: usize = D;
    const REACH: [Reach; 5] = few(R);
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.program.of(n)
    }
}

halo_stencil::stencil! {
    /// In the plane, in f32.
    pub over2_f32: Over<f32, 2>, f32, (a, b, past_a, past_b, c) -> (x over past_a, y over past_b)
}
halo_stencil::stencil! {
    /// In space, in f64.
    pub over3_f64: Over<f64, 3>, f64, (a, b, past_a, past_b, c) -> (x over past_a, y over past_b)
}
halo_stencil::stencil! {
    /// In the plane, in f64, with the points at the ends one by one.
    pub few2_f64: Few<f64, 2, 1>, f64, (a, b, past_a, past_b, c) -> (x over past_a, y over past_b)
}
halo_stencil::stencil! {
    /// In space, in f32, with the points at the ends in vectors.
    pub few3_f32: Few<f32, 3, 5>, f32, (a, b, past_a, past_b, c) -> (x over past_a, y over past_b)
}

/// The same programs in regions.
mod within {
    use super::Program;

    halo_stencil::stencil! {
        /// In the plane, in f32.
        pub region2_f32: Program<f32, 2>, f32, (a, b, c) -> (x, y) within region
    }
    halo_stencil::stencil! {
        /// In the plane, in f64.
        pub region2_f64: Program<f64, 2>, f64, (a, b, c) -> (x, y) within region
    }
    halo_stencil::stencil! {
        /// In space, in f32.
        pub region3_f32: Program<f32, 3>, f32, (a, b, c) -> (x, y) within region
    }
    halo_stencil::stencil! {
        /// In space, in f64.
        pub region3_f64: Program<f64, 3>, f64, (a, b, c) -> (x, y) within region
    }
}
use within::{region2_f32, region2_f64, region3_f32, region3_f64};

/// A program that reads only at the offsets of [`CONSTANTS`], which are constants of the update.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Constant<T, const D: usize> {
    program: Program<T, D>,
}

/// So few rows in the plane that they are loaded before the arithmetic.
const REACH_CONSTANT: [Reach; 3] = [Reach::star(2), Reach::cube(1), Reach::axes([3, 1, 1])];

macro_rules! constants {
    ($($field:literal [$di:literal, $dj:literal, $dk:literal];)+) => {
        const CONSTANTS: &[(u32, [i32; 3])] = &[$(($field, [$di, $dj, $dk])),+];

        #[inline(always)]
        fn constant<T: Real, N: Neighbourhood<T>>(
            n: &N,
            field: usize,
            offset: [isize; 3],
        ) -> N::Value {
            match (field, offset) {
                $(($field, [$di, $dj, $dk]) => n.at::<$field, { $di }, { $dj }, { $dk }>(),)+
                other => unreachable!("{other:?}"),
            }
        }
    };
}

constants! {
    0 [0, 0, 0];
    0 [-2, 0, 0];
    0 [1, 0, 0];
    0 [0, -2, 0];
    0 [0, 1, 0];
    1 [-1, 1, 0];
    1 [1, 1, 0];
    1 [0, -1, 0];
    2 [3, 0, 0];
    2 [0, -1, 0];
    // In space.
    0 [0, 0, -2];
    0 [0, 0, 1];
    1 [0, 1, -1];
    1 [1, 0, 1];
    1 [-1, -1, 1];
    2 [0, 0, -1];
}

impl<T: Real, const D: usize> PointUpdate<T, 3, 2> for Constant<T, D> {
    const DIMENSIONS: usize = D;
    const REACH: [Reach; 3] = REACH_CONSTANT;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.program.run(
            |number| n.splat(number),
            |field, offset| constant(n, field, offset),
        )
    }
}

halo_stencil::stencil! {
    /// In the plane, in f32.
    pub constant2_f32: Constant<f32, 2>, f32, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In space, in f64.
    pub constant3_f64: Constant<f64, 3>, f64, (a, b, c) -> (x, y)
}

/// A program of these operations that reads within a reach.
fn program<T: Number, const D: usize>(
    rng: &mut impl Rng,
    reach: &[Reach],
    operations: &[u32],
) -> Program<T, D> {
    let mut operation = || {
        let field = rng.random_range(0..reach.len());
        let mut offset = [0_i32; 3];
        if reach[field].is_box() {
            for (axis, d) in offset[..D].iter_mut().enumerate() {
                let radius = reach[field].radius(axis) as i32;
                *d = rng.random_range(-radius..=radius);
            }
        } else {
            let axis = rng.random_range(0..D);
            let radius = reach[field].radius(axis) as i32;
            offset[axis] = rng.random_range(-radius..=radius);
        }
        Operation {
            what: operations[rng.random_range(0..operations.len())],
            field: field as u32,
            offset,
            weight: T::nearest(rng.random_range(-1.0..1.0)),
        }
    };
    Program {
        operations: std::array::from_fn(|_| std::array::from_fn(|_| operation())),
    }
}

/// A program of all operations that reads anywhere, and its update.
fn anywhere<T: Number, const D: usize>(rng: &mut impl Rng) -> (Program<T, D>, Program<T, D>) {
    let program = program(rng, &REACH, &[0, 1, 2, 3, 4, 5, 6]);
    (program, program)
}

/// A program of all operations that reads at constant offsets, and its update.
fn at_constants<T: Number, const D: usize>(rng: &mut impl Rng) -> (Program<T, D>, Constant<T, D>) {
    let (mut program, _) = anywhere::<T, D>(rng);
    let in_space = |(_, offset): &&(u32, [i32; 3])| D == 3 || offset[2] == 0;
    let places: Vec<_> = CONSTANTS.iter().filter(in_space).collect();
    for operation in program.operations.as_flattened_mut() {
        (operation.field, operation.offset) = *places[rng.random_range(0..places.len())];
    }
    (program, Constant { program })
}

/// Boundaries of both ends of an axis.
fn ends(rng: &mut impl Rng) -> [Boundary; 2] {
    let mut end = || match rng.random_range(0..4) {
        0 => Boundary::Dirichlet(rng.random_range(-1.0..1.0)),
        1 => Boundary::Neumann,
        2 => Boundary::NeumannHalfway,
        _ => Boundary::OneSided,
    };
    let ends = [end(), end()];
    match rng.random_range(0..4) {
        0 => [Boundary::Periodic; 2],
        1 => [Boundary::PeriodicWithEndpoint; 2],
        _ => ends,
    }
}

/// The point that `place` along an axis of `n` points is, or the value there: the table of
/// [`Boundary`], one image after the other.
fn image(ends: [Boundary; 2], n: i64, place: i64) -> Result<i64, f64> {
    if (0..n).contains(&place) {
        return Ok(place);
    }
    // As if it were the first end.
    let (beyond, end) = if place < 0 {
        (-place, ends[0])
    } else {
        (place - (n - 1), ends[1])
    };
    let mirrored = match end {
        Boundary::Dirichlet(value) => return Err(value),
        _ if n == 1 => return Ok(0),
        Boundary::Periodic => n - beyond,
        Boundary::PeriodicWithEndpoint => n - 1 - beyond,
        Boundary::Neumann => beyond,
        Boundary::NeumannHalfway => beyond - 1,
        Boundary::OneSided => 0,
        _ => unreachable!(),
    };
    let again = if place < 0 {
        mirrored
    } else {
        n - 1 - mirrored
    };
    image(ends, n, again)
}

type Ends = [[Boundary; 2]; 3];

/// What a program makes of fields, point by point.
fn interpreted<T: Number, const D: usize>(
    program: &Program<T, D>,
    extents: [usize; 3],
    ends: &[Ends],
    fields: &[Vec<T>],
) -> [Vec<T>; 2] {
    let mut results = [const { Vec::new() }; 2];
    let [nx, ny, nz] = extents;
    for (k, j, i) in
        (0..nz).flat_map(|k| (0..ny).flat_map(move |j| (0..nx).map(move |i| (k, j, i))))
    {
        let read = |field: usize, offset: [isize; 3]| {
            let mut place = [i, j, k];
            // The value beyond x counts before that beyond z, and that before y's.
            let mut value = None;
            for axis in [1, 2, 0] {
                let there = place[axis] as i64 + offset[axis] as i64;
                match image(ends[field][axis], extents[axis] as i64, there) {
                    Ok(at) => place[axis] = at as usize,
                    Err(beyond) => value = Some(T::nearest(beyond)),
                }
            }
            let [i, j, k] = place;
            value.unwrap_or_else(|| fields[field][(k * ny + j) * nx + i])
        };
        for (results, result) in results.iter_mut().zip(program.run(|number| number, read)) {
            results.push(result);
        }
    }
    results
}

/// A random program on a grid, on all devices.
macro_rules! check {
    ($name:ident, $program:ident, $real:ident, $d:literal, $grid:expr) => {
        fn $name(rng: &mut impl Rng, extents: [usize; 3], devices: &[Device]) {
            let (program, update) = $program::<$real, $d>(rng);
            let mut grid: Grid<$d> = $grid(extents);
            let of_grid: [_; 3] = std::array::from_fn(|_| ends(rng));
            for axis in 0..$d {
                grid = grid.with_ends(Axis::ALL[axis], of_grid[axis]).unwrap();
            }
            let mut stencil = Stencil::new(update, grid).unwrap();
            let mut of_fields = [of_grid; 3];
            for axis in 0..$d {
                of_fields[1][axis] = ends(rng);
                stencil = stencil
                    .with_ends(1, Axis::ALL[axis], of_fields[1][axis])
                    .unwrap();
            }
            let points = extents.iter().product();
            let fields: [Vec<$real>; 3] =
                std::array::from_fn(|_| (0..points).map(|_| rng.random_range(-1.0..1.0)).collect());
            let expected = interpreted(&program, extents, &of_fields, &fields);
            for device in devices {
                let inputs = fields.each_ref().map(|field| &field[..]);
                let results = stencil.step_of(device, inputs).unwrap();
                for (result, expected) in results.iter().zip(&expected) {
                    assert_same_bits(result, expected, |index| {
                        format!(
                            "{} of {extents:?} with {of_fields:?} by {program:?} on {}",
                            index,
                            device.name()
                        )
                    });
                }
            }
        }
    };
}

fn plane([nx, ny, _]: [usize; 3]) -> Grid2 {
    Grid2::new(Shape2::new(nx, ny), [1.0; 2]).unwrap()
}

fn space([nx, ny, nz]: [usize; 3]) -> Grid3 {
    Grid3::new(Shape3::new(nx, ny, nz), [1.0; 3]).unwrap()
}

/// Checks some steps of a random program that overwrites its past, on these devices: all in a run,
/// which may hold a point, and the first one also by itself.
macro_rules! check_over {
    ($name:ident, $make:expr, $reach:expr, $real:ident, $d:literal, $grid:expr) => {
        fn $name(rng: &mut impl Rng, extents: [usize; 3], devices: &[Device]) {
            // Without products of values, which would soon be infinite.
            let program = program::<$real, $d>(rng, &$reach, &[0, 1, 3, 4, 6]);
            let mut stencil = Stencil::new(($make)(program), $grid(extents)).unwrap();
            let of_fields: [Ends; 5] = std::array::from_fn(|_| std::array::from_fn(|_| ends(rng)));
            for (field, of_field) in of_fields.iter().enumerate() {
                for axis in 0..$d {
                    stencil = stencil
                        .with_ends(field, Axis::ALL[axis], of_field[axis])
                        .unwrap();
                }
            }
            let points = extents.iter().product();
            let given: [Vec<$real>; 5] =
                std::array::from_fn(|_| (0..points).map(|_| rng.random_range(-1.0..1.0)).collect());
            let held: [usize; $d] = std::array::from_fn(|axis| extents[axis] / 2);
            let element = element_of(held, extents);
            let (steps, holds) = (rng.random_range(1..4), rng.random_bool(0.5));
            let mut fields = given.clone();
            if holds {
                fields[1][element] = 0.25;
            }
            let [first, other] = interpreted(&program, extents, &of_fields, &given);
            for _ in 0..steps {
                let [x, y] = interpreted(&program, extents, &of_fields, &fields);
                fields.swap(0, 2);
                fields.swap(1, 3);
                (fields[0], fields[1]) = (x, y);
                if holds {
                    fields[1][element] = 0.25;
                }
            }
            for device in devices {
                let told = |what: &str, index| {
                    format!(
                        "{what}, {index} of {extents:?} after {steps} steps with {of_fields:?} by \
                         {program:?} on {}",
                        device.name()
                    )
                };
                let inputs = given.each_ref().map(|field| &field[..]);
                let results = stencil.step_of(device, inputs).unwrap();
                for (result, expected) in results.iter().zip([&first, &other]) {
                    assert_same_bits(result, expected, |index| told("once", index));
                }
                let mut run = stencil.start(device, inputs).unwrap();
                if holds {
                    run.hold(1, [held], |_| 0.25).unwrap();
                }
                run.steps(steps).unwrap();
                for (field, expected) in fields.iter().enumerate() {
                    assert_same_bits(&run.to_vec(field).unwrap(), expected, |index| {
                        told("in a run", index)
                    });
                }
            }
        }
    };
}

check_over!(
    over_in_plane_f32,
    |program| Over { program },
    REACH_OVER,
    f32,
    2,
    plane
);
check_over!(
    over_in_space_f64,
    |program| Over { program },
    REACH_OVER,
    f64,
    3,
    space
);
check_over!(
    few_in_plane_f64,
    |program| Few::<f64, 2, 1> { program },
    few(1),
    f64,
    2,
    plane
);
check_over!(
    few_in_space_f32,
    |program| Few::<f32, 3, 5> { program },
    few(5),
    f32,
    3,
    space
);

#[test]
fn random_formulas_over_their_past_have_the_bits_of_an_interpreter() {
    let (mut rng, devices) = (rng(), devices());
    for case in 0..test_cases::either(48, 160) {
        let width = WIDTHS[rng.random_range(0..WIDTHS.len())];
        let mut extents = [width, rng.random_range(1..40), 1];
        if case % 4 > 1 {
            extents = [width, rng.random_range(1..20), rng.random_range(1..12)];
        }
        let devices = if case < 32 {
            &devices[..]
        } else {
            &devices[..1]
        };
        match case % 4 {
            0 => over_in_plane_f32(&mut rng, extents, devices),
            1 => few_in_plane_f64(&mut rng, extents, devices),
            2 => over_in_space_f64(&mut rng, extents, devices),
            _ => few_in_space_f32(&mut rng, extents, devices),
        }
    }
    // Passes of several pieces, and rows that begin at all kinds of places in a cache line.
    let on_cpu = &devices[..1];
    over_in_plane_f32(&mut rng, [501, 150, 1], on_cpu);
    few_in_plane_f64(&mut rng, [83, 900, 1], on_cpu);
    few_in_plane_f64(&mut rng, [5003, 21, 1], on_cpu);
    few_in_space_f32(&mut rng, [61, 43, 52], on_cpu);
}

check!(check2_f32, anywhere, f32, 2, plane);
check!(check2_f64, anywhere, f64, 2, plane);
check!(check3_f32, anywhere, f32, 3, space);
check!(check3_f64, anywhere, f64, 3, space);
check!(check_constant2_f32, at_constants, f32, 2, plane);
check!(check_constant3_f64, at_constants, f64, 3, space);

/// Whole vectors and others, single points, and more than a block.
const WIDTHS: [usize; 12] = [1, 2, 3, 4, 7, 8, 12, 16, 29, 32, 45, 64];

#[test]
fn random_formulas_in_the_plane_have_the_bits_of_an_interpreter() {
    let (mut rng, devices) = (rng(), devices());
    for case in 0..60 {
        let extents = [
            WIDTHS[rng.random_range(0..WIDTHS.len())],
            rng.random_range(1..24),
            1,
        ];
        if case % 2 == 0 {
            check2_f32(&mut rng, extents, &devices);
        } else {
            check2_f64(&mut rng, extents, &devices);
        }
    }
    // More than one block along x.
    check2_f32(&mut rng, [1032, 3, 1], &devices);
}

#[test]
fn random_formulas_in_space_have_the_bits_of_an_interpreter() {
    let (mut rng, devices) = (rng(), devices());
    for case in 0..40 {
        let extents = [
            WIDTHS[rng.random_range(0..WIDTHS.len())],
            rng.random_range(1..20),
            rng.random_range(1..20),
        ];
        if case % 2 == 0 {
            check3_f32(&mut rng, extents, &devices);
        } else {
            check3_f64(&mut rng, extents, &devices);
        }
    }
}

#[test]
fn formulas_of_constant_offsets_have_the_bits_of_an_interpreter() {
    let (mut rng, devices) = (rng(), devices());
    for _ in 0..16 {
        let width = WIDTHS[rng.random_range(0..WIDTHS.len())];
        let plane = [width, rng.random_range(1..24), 1];
        check_constant2_f32(&mut rng, plane, &devices);
        let space = [width, rng.random_range(1..12), rng.random_range(1..12)];
        check_constant3_f64(&mut rng, space, &devices);
    }
}

/// A kernel of a random program in a random region of periodic fields: the points of the region are
/// computed, and the others stay as they are.
macro_rules! check_region {
    ($name:ident, $kernel:ident, $real:ident, $d:literal) => {
        fn $name(rng: &mut impl Rng, extents: [usize; 3]) {
            let (program, _) = anywhere::<$real, $d>(rng);
            let points = extents.iter().product();
            let fields: [Vec<$real>; 3] =
                std::array::from_fn(|_| (0..points).map(|_| rng.random_range(-1.0..1.0)).collect());
            let first = extents.map(|n| rng.random_range(0..n));
            let end = std::array::from_fn(|axis| rng.random_range(first[axis]..extents[axis]) + 1);
            let periodic = [[[Boundary::Periodic; 2]; 3]; 3];
            let untouched: $real = 7.0;
            let mut expected = interpreted(&program, extents, &periodic, &fields);
            for expected in &mut expected {
                for (element, value) in expected.iter_mut().enumerate() {
                    let [nx, ny, _] = extents;
                    let point = [element % nx, element / nx % ny, element / (nx * ny)];
                    if !(0..3).all(|axis| (first[axis]..end[axis]).contains(&point[axis])) {
                        *value = untouched;
                    }
                }
            }
            // The CPU device runs no kernels.
            let [_, device] = devices();
            let multiprocessors = device.properties().multiprocessors as usize;
            let lanes = 16 / size_of::<$real>();
            let blocks = blocks($d, extents, lanes, MAX_RADIUS, multiprocessors).unwrap();
            let ([x, y, z], block) = (blocks.grid, blocks.block);
            let config = LaunchConfig::new((x, y, z), (block[0], block[1]));
            let layout = Layout::new(extents.map(|n| n as u32), blocks.segment);
            let region = Region {
                first: first.map(|at| at as u32),
                end: end.map(|at: usize| at as u32),
            };
            let [a, b, c] = fields.each_ref().map(|field| device.upload(field).unwrap());
            let new = || device.alloc_filled(points, untouched).unwrap();
            let mut results = [new(), new()];
            let [x, y] = &mut results;
            let args = $kernel::args(&a, &b, &c, x, y, layout, program, region);
            // SAFETY: all fields are distinct buffers on the device, with the points of the layout;
            // the blocks are those for it, and the region lies in it.
            unsafe { launch::<$kernel>(&device, &config, args) }.unwrap();
            for (result, expected) in results.iter().zip(&expected) {
                assert_same_bits(&result.to_vec().unwrap(), expected, |index| {
                    format!("{index} of {extents:?} in {region:?} by {program:?}")
                });
            }
        }
    };
}

check_region!(check_region2_f32, region2_f32, f32, 2);
check_region!(check_region2_f64, region2_f64, f64, 2);
check_region!(check_region3_f32, region3_f32, f32, 3);
check_region!(check_region3_f64, region3_f64, f64, 3);

#[test]
fn regions_are_computed_and_nothing_else() {
    let mut rng = rng();
    for _ in 0..10 {
        let width = WIDTHS[rng.random_range(0..WIDTHS.len())];
        let plane = [width, rng.random_range(1..24), 1];
        check_region2_f32(&mut rng, plane);
        check_region2_f64(&mut rng, plane);
        let space = [width, rng.random_range(1..14), rng.random_range(1..8)];
        check_region3_f32(&mut rng, space);
        check_region3_f64(&mut rng, space);
    }
}

#[test]
fn large_fields_are_shared_out_and_stored_past_the_caches() {
    let (mut rng, devices) = (rng(), [Device::cpu()]);
    check2_f64(&mut rng, [531, 1100, 1], &devices);
    if test_cases::all() {
        check2_f32(&mut rng, [2051, 600, 1], &devices);
        check3_f32(&mut rng, [96, 81, 150], &devices);
    }
    check3_f64(&mut rng, [33, 70, 260], &devices);
}

/// `∂²u/∂t² = ∇²u` in the plane: an equation of second order in time. `OVER`: the new field is
/// written over the past one.
#[derive(Debug, Clone, Copy)]
pub struct Wave<const OVER: bool> {
    courant_squared: f64,
}

impl<const OVER: bool> PointUpdate<f64, 2, 1> for Wave<OVER> {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::star(1), Reach::POINT];
    const PAST: usize = 1;
    const OVER_PAST: bool = OVER;

    #[inline(always)]
    fn update<N: Neighbourhood<f64>>(&self, n: &N) -> [N::Value; 1] {
        let u = n.at::<0, 0, 0, 0>();
        let sum =
            (n.along::<0, 0>(-1) + n.along::<0, 0>(1)) + (n.along::<0, 1>(-1) + n.along::<0, 1>(1));
        [(u * 2.0 - n.at::<1, 0, 0, 0>()) + (sum - u * 4.0) * self.courant_squared]
    }
}

halo_stencil::stencil! {
    /// A step of the wave.
    pub wave: Wave<false>, f64, (u, past) -> (next)
}
halo_stencil::stencil! {
    /// The same over the past.
    pub wave_over: Wave<true>, f64, (u, past) -> (next over past)
}

/// A standing wave between walls at 0, and its first step back.
fn standing<const OVER: bool>(n: usize) -> (Stencil<Wave<OVER>, f64, 2, 2, 1>, Vec<f64>) {
    let grid = Grid2::new(Shape2::new(n, n), [1.0; 2])
        .unwrap()
        .with_boundaries(Boundary::Dirichlet(0.0))
        .unwrap();
    let stencil = Stencil::new(
        Wave {
            courant_squared: 0.4,
        },
        grid,
    )
    .unwrap();
    let sine = |i: usize| ((i + 1) as f64 * std::f64::consts::PI / (n + 1) as f64).sin();
    let mode = (0..n * n).map(|at| sine(at % n) * sine(at / n)).collect();
    (stencil, mode)
}

fn check_ping_pong<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let n = 15;
    let (stencil, mode) = standing::<OVER>(n);
    // cos ωt, of the scheme's ω: sin²(ω/2) = c² · 2 sin²(π / 2(n+1)).
    let square = (std::f64::consts::PI / (2 * (n + 1)) as f64).sin().powi(2);
    let omega = 2.0 * (0.4 * 2.0 * square).sqrt().asin();
    let past: Vec<f64> = mode.iter().map(|u| u * omega.cos()).collect();
    for device in devices() {
        let mut run = stencil.start(&device, [&mode, &past]).unwrap();
        for steps in [0, 1, 2, 3, 7, 20] {
            while run.steps_taken() < steps {
                run.steps(1).unwrap();
            }
            for (field, when) in [(0, steps as f64), (1, steps as f64 - 1.0)] {
                let values = run.to_vec(field).unwrap();
                for (value, mode) in values.iter().zip(&mode) {
                    let exact = mode * (omega * when).cos();
                    assert!((value - exact).abs() < 1e-12, "{value} {exact} {steps}");
                }
            }
        }
    }
}

#[test]
fn outputs_become_the_present_and_the_present_the_past() {
    check_ping_pong::<false>();
    check_ping_pong::<true>();
}

fn check_settling<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let (stencil, mode) = standing::<OVER>(9);
    for device in devices() {
        let zero = vec![0.0; 81];
        let mut still = stencil.start(&device, [&zero, &zero]).unwrap();
        let settled = still.steps_until(0.0, 2, 100).unwrap();
        assert_eq!(
            (settled.steps, settled.change, settled.converged),
            (2, 0.0, true)
        );

        let mut swings = stencil.start(&device, [&mode, &mode]).unwrap();
        let settled = swings.steps_until(1e-9, 3, 8).unwrap();
        assert!(!settled.converged && settled.steps == 8 && settled.change > 1e-3);
        let now = swings.to_vec(0).unwrap();
        let before = swings.to_vec(1).unwrap();
        let largest = now
            .iter()
            .zip(&before)
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert_eq!(settled.change, largest);
        for (tolerance, every) in [(f64::NAN, 1), (-1.0, 1), (0.0, 0)] {
            let refused = swings.steps_until(tolerance, every, 1);
            assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
        }
    }
}

#[test]
fn a_run_settles_and_says_so() {
    check_settling::<false>();
    check_settling::<true>();
}

/// Two fields that have nothing to do with each other: one stays, one dies away.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Apart;

impl PointUpdate<f32, 2, 2> for Apart {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::POINT; 2];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 2] {
        [n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>() * 0.5]
    }
}

halo_stencil::stencil! {
    /// A step of both.
    pub apart: Apart, f32, (stays, dies) -> (same, half)
}

#[test]
fn a_field_that_is_not_a_number_never_settles() {
    let stencil = Stencil::new(Apart, plane([9, 5, 1])).unwrap();
    let mut lost = vec![1.0_f32; 45];
    lost[17] = f32::NAN;
    for device in devices() {
        // Whichever field it is in.
        for inputs in [[&lost, &vec![1.0; 45]], [&vec![1.0; 45], &lost]] {
            let mut run = stencil.start(&device, inputs.map(|it| &it[..])).unwrap();
            let settled = run.steps_until(1e9, 2, 6).unwrap();
            assert!(settled.change.is_nan() && !settled.converged, "{settled:?}");
            assert_eq!(settled.steps, 6);
        }
    }
}

/// Reads further than it says where only a run shows it.
#[derive(Debug, Clone, Copy)]
struct TooFar(i32);

impl PointUpdate<f32, 1, 1> for TooFar {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 1] = [Reach::star(1)];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        [n.along::<0, 1>(self.0 as isize)]
    }
}

/// Overwrites its past, but reads it beside the point.
#[derive(Debug, Clone, Copy)]
struct WidePast;

impl PointUpdate<f32, 2, 1> for WidePast {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::POINT, Reach::star(1)];
    const PAST: usize = 1;
    const OVER_PAST: bool = true;

    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        [n.at::<0, 0, 0, 0>() - n.at::<1, 1, 0, 0>()]
    }
}

/// Wants its past, but has no input for it.
#[derive(Debug, Clone, Copy)]
struct NoPast;

impl PointUpdate<f32, 1, 1> for NoPast {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 1] = [Reach::POINT];
    const PAST: usize = 1;

    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
        [n.at::<0, 0, 0, 0>()]
    }
}

#[test]
fn wrong_use_is_refused_before_anything_runs() {
    let grid = plane([5, 4, 1]);
    assert!(Stencil::new(TooFar(-1), grid).is_ok());
    let error = Stencil::new(TooFar(2), grid).unwrap_err();
    assert_eq!(
        error.to_string(),
        "stencil: a read of the update is of field 0 at the offset [0, 2, 0], but must be one \
         that its REACH declares"
    );
    let error = Stencil::new(NoPast, grid).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("stencil: the number of inputs is 1"),
        "{error}"
    );
    let error = Stencil::new(WidePast, grid).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("stencil: an update that is OVER_PAST is PAST = 1 and REACH = ["),
        "{error}"
    );
    let error = Stencil::new(TooFar(1), space([5, 4, 3])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "stencil: the grid's number of dimensions is 3, but must be 2, the update's"
    );
    let error = Stencil::new(TooFar(1), plane([(1 << 30) + 1, 1, 1])).unwrap_err();
    assert!(matches!(error, Error::IndexOverflow { .. }), "{error}");

    let (stencil, mode) = standing::<false>(6);
    let (over, _) = standing::<true>(6);
    let short = vec![0.0; 35];
    for device in devices() {
        match stencil.start(&device, [&mode, &short]) {
            Err(Error::LengthMismatch {
                argument,
                required: 36,
                given: 35,
            }) => assert_eq!((argument.name, argument.number), ("input", Some(1))),
            other => panic!("{other:?}"),
        }
        let refused = stencil.step_of(&device, [&short, &mode]);
        assert!(matches!(
            refused,
            Err(Error::LengthMismatch {
                required: 36,
                given: 35,
                ..
            })
        ));

        let plan = stencil.plan(&device).unwrap();
        let (u, past) = (device.upload(&mode).unwrap(), device.upload(&mode).unwrap());
        let mut next = device.zeros(36).unwrap();
        plan.step([&u, &past], [&mut next]).unwrap();
        // An input may be there twice.
        plan.step([&u, &u], [&mut next]).unwrap();
        let mut shaped = next.shaped(Shape2::new(4, 9)).unwrap();
        let refused = plan.step([&u, &past], [&mut shaped]);
        assert!(matches!(refused, Err(Error::ShapeMismatch { .. })));

        let other = if device.kind() == DeviceKind::Cpu {
            Device::emulator()
        } else {
            Device::cpu()
        };
        let elsewhere = other.upload(&mode).unwrap();
        let mut next = device.zeros(36).unwrap();
        let refused = plan.step([&u, &elsewhere], [&mut next]);
        assert!(matches!(refused, Err(Error::DeviceMismatch { .. })));
        assert_eq!(next.to_vec().unwrap(), [0.0; 36]);

        // Over the past.
        let refused = over.step_of(&device, [&mode, &short]);
        assert!(matches!(refused, Err(Error::LengthMismatch { .. })));
        let plan = over.plan(&device).unwrap();
        let [expected] = stencil.step_of(&device, [&mode, &mode]).unwrap();
        let mut past = past;
        let refused = plan.step_over([&elsewhere], [&mut past]);
        assert!(matches!(refused, Err(Error::DeviceMismatch { .. })));
        let mut shaped = u.to_vec().and_then(|u| device.upload(&u)).unwrap();
        shaped = shaped.shaped(Shape2::new(4, 9)).unwrap();
        match plan.step_over([&u], [&mut shaped]) {
            Err(Error::ShapeMismatch { argument, .. }) => {
                assert_eq!((argument.name, argument.number), ("past field", Some(0)));
            }
            other => panic!("{other:?}"),
        }
        assert_same_bits(&past.to_vec().unwrap(), &mode, |at| at);
        plan.step_over([&u], [&mut past]).unwrap();
        assert_same_bits(&past.to_vec().unwrap(), &expected, |at| at);
        let [again] = over.step_of(&device, [&mode, &mode]).unwrap();
        assert_same_bits(&again, &expected, |at| at);
    }
}

#[test]
fn cost_counts_fields_and_operations() {
    let (stencil, _) = standing::<false>(10);
    let cost = stencil.cost();
    assert_eq!(cost.bytes, 3 * 8 * 100);
    // Three sums, u * 2 - past, sum - u * 4, a product and a sum.
    assert_eq!(cost.flops, (3 + 2 + 2 + 2) * 100);
}

fn check_fields<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let (stencil, mode) = standing::<OVER>(4);
    let mut run: Run<Wave<OVER>, f64, 2, 2, 1> =
        stencil.start(&Device::cpu(), [&mode, &mode]).unwrap();
    assert_eq!(run.field(1).unwrap().to_vec().unwrap(), mode);
    run.field_mut(0).unwrap().fill(0.0).unwrap();
    run.field_mut(1).unwrap().fill(0.0).unwrap();
    run.steps(3).unwrap();
    assert_eq!(run.to_vec(0).unwrap(), [0.0; 16]);
    assert!(run.field(2).is_none() && run.field_mut(2).is_none());
    assert!(matches!(run.to_vec(2), Err(Error::InvalidParameter { .. })));
}

#[test]
fn fields_can_be_looked_at_and_changed_between_steps() {
    check_fields::<false>();
    check_fields::<true>();
}

fn check_recording<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let (stencil, mode) = standing::<OVER>(8);
    for device in devices() {
        let start = || stencil.start(&device, [&mode, &mode]).unwrap();
        let (mut recorded, mut plain) = (start(), start());
        // Three fields change places, or two: after that many steps each is back in its place.
        let steps = if OVER { 2 } else { 3 };
        let mut replay = device.record(1, || recorded.steps(steps)).unwrap();
        (0..3).for_each(|_| replay.run().unwrap());
        drop(replay);
        assert_eq!(recorded.steps_taken(), 4 * steps as u64);
        plain.steps(4 * steps).unwrap();
        let [recorded, plain] = [recorded, plain].map(|run| run.to_vec(0).unwrap());
        assert_same_bits(&recorded, &plain, |at| at);
    }
}

#[test]
fn recorded_steps_go_on_from_replay_to_replay() {
    check_recording::<false>();
    check_recording::<true>();
}

fn check_boundaries<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let (stencil, mode) = standing::<OVER>(9);
    let ends = |step: usize| [Boundary::Dirichlet(step as f64 * 0.5), Boundary::Neumann];
    for device in devices() {
        let mut run = stencil.start(&device, [&mode, &mode]).unwrap();
        let (mut now, mut past) = (mode.clone(), mode.clone());
        for step in 0..5 {
            run.set_ends(0, Axis::Y, ends(step)).unwrap();
            run.steps(1).unwrap();
            // As a stencil with these boundaries does it.
            let of_step = stencil.with_ends(0, Axis::Y, ends(step)).unwrap();
            let [next] = of_step.step_of(&device, [&now, &past]).unwrap();
            (past, now) = (now, next);
            assert_same_bits(&run.to_vec(0).unwrap(), &now, |at| at);
        }
        let ends = [Boundary::Periodic, Boundary::Neumann];
        assert!(run.set_ends(0, Axis::Y, ends).is_err());
        assert!(run.set_ends(2, Axis::Y, [Boundary::Neumann; 2]).is_err());
        let before = run.to_vec(0).unwrap();
        run.set_update(Wave {
            courant_squared: 0.0,
        })
        .unwrap();
        run.steps(1).unwrap();
        // Nothing moves it: it goes on as it went.
        let on: Vec<f64> = now
            .iter()
            .zip(&past)
            .map(|(u, past)| u * 2.0 - past)
            .collect();
        assert_same_bits(&run.to_vec(0).unwrap(), &on, |at| at);
        assert_same_bits(&run.to_vec(1).unwrap(), &before, |at| at);
    }
}

#[test]
fn boundaries_change_between_steps() {
    check_boundaries::<false>();
    check_boundaries::<true>();
}

/// Diffusion along x in the plane where some points have a value of their own, which a parameter
/// multiplies: fields u, held, value.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Held {
    ratio: f64,
    factor: f64,
}

impl PointUpdate<f64, 3, 1> for Held {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::star(1), Reach::POINT, Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<f64>>(&self, n: &N) -> [N::Value; 1] {
        let u = n.at::<0, 0, 0, 0>();
        let new = u + (n.pair::<0, 0>(1) - u * 2.0) * self.ratio;
        let value = n.at::<2, 0, 0, 0>() * self.factor;
        [new + (value - new) * n.at::<1, 0, 0, 0>()]
    }
}

halo_gpu::stencil::stencil! {
    /// A step of it.
    pub held: Held, f64, (u, held, value) -> (new)
}

#[test]
fn values_that_differ_from_point_to_point_are_held() {
    let (nx, ny) = (12, 6);
    let grid = plane([nx, ny, 1])
        .with_boundaries(Boundary::Neumann)
        .unwrap();
    let factor = |step: usize| 1.0 + 0.25 * step as f64;
    let update = |step| Held {
        ratio: 0.5,
        factor: factor(step),
    };
    let stencil = Stencil::new(update(0), grid).unwrap();
    // Held at both ends of each row, at values that differ from row to row.
    let at_end = |at: usize| at.is_multiple_of(nx) || at % nx == nx - 1;
    let held: Vec<f64> = (0..nx * ny)
        .map(|at| f64::from(u8::from(at_end(at))))
        .collect();
    let value: Vec<f64> = (0..nx * ny)
        .map(|at| (at / nx) as f64 + (at % nx) as f64)
        .collect();
    for device in devices() {
        let start = vec![0.0; nx * ny];
        let mut run = stencil.start(&device, [&start, &held, &value]).unwrap();
        for step in 0..4 {
            run.set_update(update(step)).unwrap();
            run.steps(1).unwrap();
            let u = run.to_vec(0).unwrap();
            for at in (0..nx * ny).filter(|&at| at_end(at)) {
                assert_eq!(u[at], value[at] * factor(step), "{at} {step}");
            }
        }
        // Steady between them: the line from one to the other.
        run.set_update(update(0)).unwrap();
        assert!(run.steps_until(1e-13, 50, 5000).unwrap().converged);
        let u = run.to_vec(0).unwrap();
        let off = u.iter().zip(&value).map(|(u, line)| (u - line).abs());
        assert!(off.fold(0.0, f64::max) < 1e-10);
    }
}

fn check_sources<const OVER: bool>()
where
    Wave<OVER>: Compiled<f64, 2, 1>,
{
    let (stencil, mode) = standing::<OVER>(7);
    for device in devices() {
        let mut run = stencil.start(&device, [&mode, &mode]).unwrap();
        let mut expected = [mode.clone(), mode.clone()];
        for (field, [i, j], value) in [(0, [2, 5], 0.5), (1, [6, 0], -2.0), (0, [2, 5], 0.25)] {
            let index = j * 7 + i;
            expected[field][index] += value;
            run.add(field, [i, j], value).unwrap();
            assert_eq!(run.at(field, [i, j]).unwrap(), expected[field][index]);
        }
        for (field, expected) in expected.iter().enumerate() {
            assert_same_bits(&run.to_vec(field).unwrap(), expected, |at| at);
        }
        // As fields of these values go on.
        let mut same = stencil
            .start(&device, expected.each_ref().map(|it| &it[..]))
            .unwrap();
        run.steps(3).unwrap();
        same.steps(3).unwrap();
        assert_same_bits(&run.to_vec(0).unwrap(), &same.to_vec(0).unwrap(), |at| at);
        for (field, point) in [(2, [0, 0]), (0, [7, 0]), (0, [0, 7])] {
            let refused = [run.at(field, point).err(), run.add(field, point, 1.0).err()];
            for error in refused {
                assert!(
                    matches!(error, Some(Error::InvalidParameter { .. })),
                    "{error:?}"
                );
            }
        }
        assert_same_bits(&run.to_vec(0).unwrap(), &same.to_vec(0).unwrap(), |at| at);
    }
}

#[test]
fn sources_are_added_at_their_point_and_receivers_read_there() {
    check_sources::<false>();
    check_sources::<true>();
}

/// The same, of neighbours that are so near that a pass on the CPU takes several steps.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Near<T, const D: usize> {
    program: Program<T, D>,
}

const NEAR: [Reach; 3] = [Reach::cube(1), Reach::star(2), Reach::axes([0, 1, 1])];

impl<T: Real, const D: usize> PointUpdate<T, 3, 2> for Near<T, D> {
    const DIMENSIONS: usize = D;
    const REACH: [Reach; 3] = NEAR;

    #[inline(always)]
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
        self.program.of(n)
    }
}

halo_stencil::stencil! {
    /// In the plane, in f32.
    pub near2_f32: Near<f32, 2>, f32, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In the plane, in f64.
    pub near2_f64: Near<f64, 2>, f64, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In space, in f32.
    pub near3_f32: Near<f32, 3>, f32, (a, b, c) -> (x, y)
}
halo_stencil::stencil! {
    /// In space, in f64.
    pub near3_f64: Near<f64, 3>, f64, (a, b, c) -> (x, y)
}

/// The element of a field that a point is.
fn element_of<const D: usize>(point: [usize; D], extents: [usize; 3]) -> usize {
    let axes = point.iter().zip(extents).rev();
    axes.fold(0, |element, (at, n)| element * n + at)
}

/// A value that is another one at each point and after each step.
fn value_at<const D: usize>(point: [usize; D], step: u64) -> f32 {
    let axes = point.iter().zip([3, 5, 7]);
    let number: usize = axes.map(|(at, factor)| at * factor).sum();
    ((number as u64 + 11 * step) % 29) as f32 / 16.0 - 0.75
}

/// Points of an output, and whether their values change.
type Some<const D: usize> = (usize, Vec<[usize; D]>, bool);

/// Points whose values are given: layers at the ends, some anywhere, some twice, or none.
fn some_points<const D: usize>(rng: &mut impl Rng, grid: &Grid<D>) -> Vec<Some<D>> {
    let mut all = Vec::new();
    for _ in 0..rng.random_range(0..4) {
        let points: Vec<[usize; D]> = if rng.random_bool(0.5) {
            let layers = std::array::from_fn(|_| [(); 2].map(|()| rng.random_range(0..3)));
            grid.rim(layers).collect()
        } else {
            let count = rng.random_range(0..20);
            let extents: [usize; D] = std::array::from_fn(|axis| grid.extent(Axis::ALL[axis]));
            (0..count)
                .map(|_| extents.map(|n| rng.random_range(0..n)))
                .collect()
        };
        all.push((rng.random_range(0..2), points, rng.random_bool(0.5)));
    }
    all
}

/// Some steps of a random program on a grid, on all devices; the boundaries are of all kinds,
/// and mostly such that those of the fields that change agree.
macro_rules! check_steps {
    ($name:ident, $real:ident, $d:literal, $grid:expr) => {
        fn $name(rng: &mut impl Rng, extents: [usize; 3], steps: usize, devices: &[Device]) {
            // Without products of values, which would soon be infinite.
            let program = program::<$real, $d>(rng, &NEAR, &[0, 1, 3, 4, 6]);
            let mut stencil = Stencil::new(Near { program }, $grid(extents)).unwrap();
            let mut of_fields = [[[Boundary::Periodic; 2]; 3]; 3];
            for axis in 0..$d {
                let of_both = ends(rng);
                for (field, of_field) in of_fields.iter_mut().enumerate() {
                    let differs = field == 2 || rng.random_range(0..10) == 0;
                    of_field[axis] = if differs { ends(rng) } else { of_both };
                    stencil = stencil
                        .with_ends(field, Axis::ALL[axis], of_field[axis])
                        .unwrap();
                }
            }
            let points = extents.iter().product();
            let mut fields: [Vec<$real>; 3] =
                std::array::from_fn(|_| (0..points).map(|_| rng.random_range(-1.0..1.0)).collect());
            let given = fields.clone();
            let held = some_points::<$d>(rng, stencil.grid());
            let set = |fields: &mut [Vec<$real>; 3], step: u64| {
                for (output, points, drives) in &held {
                    for &point in points {
                        let after = if *drives { step } else { 0 };
                        let element = element_of(point, extents);
                        fields[*output][element] = value_at(point, after) as $real;
                    }
                }
            };
            set(&mut fields, 0);
            for step in 1..=steps {
                let [x, y] = interpreted(&program, extents, &of_fields, &fields);
                (fields[0], fields[1]) = (x, y);
                set(&mut fields, step as u64);
            }
            for device in devices {
                let inputs = given.each_ref().map(|field| &field[..]);
                let mut run = stencil.start(device, inputs).unwrap();
                for (output, points, drives) in held.clone() {
                    if drives {
                        let value = |point, step| value_at(point, step) as $real;
                        run.drive(output, points, value).unwrap();
                    } else {
                        let value = |point| value_at(point, 0) as $real;
                        run.hold(output, points, value).unwrap();
                    }
                }
                run.steps(steps).unwrap();
                assert_eq!(run.steps_taken(), steps as u64);
                for (field, expected) in fields.iter().enumerate() {
                    assert_same_bits(&run.to_vec(field).unwrap(), expected, |index| {
                        format!(
                            "{index} of {extents:?} after {steps} steps with {of_fields:?} by \
                             {program:?} on {}",
                            device.name()
                        )
                    });
                }
            }
        }
    };
}

check_steps!(steps2_f32, f32, 2, plane);
check_steps!(steps2_f64, f64, 2, plane);
check_steps!(steps3_f32, f32, 3, space);
check_steps!(steps3_f64, f64, 3, space);

#[test]
fn many_steps_have_the_bits_of_an_interpreter() {
    let (mut rng, devices) = (rng(), devices());
    for case in 0..test_cases::either(16, 40) {
        let width = WIDTHS[rng.random_range(0..WIDTHS.len())];
        let mut extents = [width, rng.random_range(1..24), 1];
        let steps = rng.random_range(0..11);
        if case % 4 > 1 {
            extents = [width, rng.random_range(1..9), rng.random_range(1..9)];
        }
        // The emulator takes a step like any other.
        let devices = if case < 8 {
            &devices[..]
        } else {
            &devices[..1]
        };
        match case % 4 {
            0 => steps2_f32(&mut rng, extents, steps, devices),
            1 => steps2_f64(&mut rng, extents, steps, devices),
            2 => steps3_f32(&mut rng, extents, steps, devices),
            _ => steps3_f64(&mut rng, extents, steps, devices),
        }
    }
    // Several pieces of a pass, in the plane level by level and row by row.
    let on_cpu = &devices[..1];
    let [plane, rows, space, blocks] = test_cases::either([3, 2, 2, 2], [9, 5, 5, 4]);
    steps2_f32(&mut rng, [301, 211, 1], plane, on_cpu);
    steps2_f64(&mut rng, [6000, 40, 1], rows, on_cpu);
    steps3_f32(&mut rng, [60, 51, 43], space, on_cpu);
    steps3_f64(&mut rng, [33, 40, 61], blocks, on_cpu);
}

/// A plane wave that comes in at two ends of a square and leaves at the others, with the exact
/// values at the ends: `sin(k · x - ω t)` at 1 for |k| = ω. The largest error where it has gone by.
fn error_of_a_driven_wave(device: &Device, n: usize) -> f64 {
    let (h, courant_squared) = (1.0 / (n - 1) as f64, 0.4_f64);
    let step = courant_squared.sqrt() * h;
    let exact = move |[i, j]: [usize; 2], steps: f64| {
        let along = 0.6 * i as f64 * h + 0.8 * j as f64 * h;
        (5.0 * (along - steps * step)).sin()
    };
    let grid = plane([n, n, 1]);
    let stencil = Stencil::new(Wave::<true> { courant_squared }, grid).unwrap();
    let points = || (0..n).flat_map(|j| (0..n).map(move |i| [i, j]));
    let at = |steps| -> Vec<f64> { points().map(|point| exact(point, steps)).collect() };
    let mut run = stencil.start(device, [&at(0.0), &at(-1.0)]).unwrap();
    let rim = grid.rim([[1, 1]; 2]);
    run.drive(0, rim, move |point, step| exact(point, step as f64))
        .unwrap();
    let steps = 2 * (n - 1);
    run.steps(steps).unwrap();
    let now = run.to_vec(0).unwrap();
    let errors = now.iter().zip(at(steps as f64));
    errors
        .map(|(now, exact)| (now - exact).abs())
        .fold(0.0, f64::max)
}

#[test]
fn ends_that_are_functions_of_position_and_time_keep_the_order_of_the_scheme() {
    for device in devices() {
        let errors = [9, 17, 33].map(|n| error_of_a_driven_wave(&device, n));
        for pair in errors.windows(2) {
            let order = (pair[0] / pair[1]).log2();
            assert!((1.8..2.3).contains(&order), "order {order} of {errors:?}");
        }
    }
}

/// Of the library's own kernels, so on GPUs as well.
#[test]
fn held_and_driven_ends_have_the_same_bits_on_all_devices() {
    fn check<T: Kernels>(device: &Device) -> Vec<T> {
        let shape = Shape3::new(36, 13, 11);
        let grid = Grid3::new(shape, [1.0; 3]).unwrap();
        let heat = Heat3d::new(grid);
        let start = Field3::from_fn(shape, |i, j, k| T::nearest(((i + j * k) % 7) as f64));
        let mut run = heat.start(device, &start.unwrap()).unwrap();
        let value = |point, step| T::nearest(value_at(point, step).into());
        let still = move |point| value(point, 0);
        run.hold(0, grid.rim([[2, 0], [0, 1], [0, 0]]), still)
            .unwrap();
        run.drive(0, grid.rim([[0, 1], [0, 0], [1, 1]]), value)
            .unwrap();
        for steps in [1, 9, 30] {
            run.steps(steps).unwrap();
        }
        assert_eq!(run.at(0, [7, 5, 10]).unwrap(), value([7, 5, 10], 40));
        assert_eq!(run.at(0, [1, 5, 6]).unwrap(), still([1, 5, 6]));
        run.release();
        run.steps(2).unwrap();
        assert_ne!(run.at(0, [1, 5, 6]).unwrap(), still([1, 5, 6]));
        run.to_vec(0).unwrap()
    }
    let (f32s, f64s) = (check::<f32>(&Device::cpu()), check::<f64>(&Device::cpu()));
    for_each("device", halo_tests::devices(), |device| {
        assert_same_bits(&check::<f32>(&device), &f32s, |at| format!("element {at}"));
        assert_same_bits(&check::<f64>(&device), &f64s, |at| format!("element {at}"));
    });
}

/// What is held is part of a recording. What is driven comes from the host, step by step, which no
/// graph contains.
#[test]
fn recordings_have_what_is_held_and_refuse_what_is_driven() {
    for_each("device", halo_tests::devices(), |device| {
        let shape = Shape3::new(12, 5, 4);
        let grid = Grid3::new(shape, [1.0; 3]).unwrap();
        let start = Field3::filled(shape, 0.0_f64).unwrap();
        let ends = || grid.rim([[1, 1], [0, 0], [0, 0]]);
        let held = |steps: usize| {
            let mut run = Heat3d::new(grid).start(&device, &start).unwrap();
            run.hold(0, ends(), |[i, ..]| i as f64).unwrap();
            run.steps(steps).unwrap();
            run
        };
        let mut recorded = held(0);
        let mut replay = device.record(3, || recorded.steps(2)).unwrap();
        replay.run().unwrap();
        drop(replay);
        let is_graph = device.kind() == DeviceKind::Cuda;
        // Once while it is recorded, then three times.
        let expected = held(8);
        assert_same_bits(
            &recorded.to_vec(0).unwrap(),
            &expected.to_vec(0).unwrap(),
            |at| format!("element {at}"),
        );

        let mut run = Heat3d::new(grid).start(&device, &start).unwrap();
        run.drive(0, ends(), |[i, ..], step| i as f64 + step as f64)
            .unwrap();
        let recorded = device.record(1, || run.steps(2)).map(drop);
        match recorded {
            Err(Error::NotReplayable { .. }) if is_graph => {}
            Ok(()) if !is_graph => {}
            other => panic!("{other:?}"),
        }
    });
}

/// The suite's own: the image of a place far beyond a short axis.
#[test]
fn the_interpreter_knows_the_boundaries() {
    let both = |boundary| [boundary; 2];
    assert_eq!(image(both(Boundary::Periodic), 5, -7), Ok(3));
    assert_eq!(image(both(Boundary::Neumann), 5, 6), Ok(2));
    assert_eq!(image(both(Boundary::NeumannHalfway), 5, 5), Ok(4));
    assert_eq!(image(both(Boundary::OneSided), 5, -3), Ok(0));
    assert_eq!(image(both(Boundary::Dirichlet(2.0)), 1, 1), Err(2.0));
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn fields_that_do_not_fit_are_refused(
        device in prop_oneof![3 => Just(Device::cpu()), 1 => Just(Device::emulator())],
        lens in (34..37_usize, 34..37_usize),
        field in 0..4_usize,
        steps in 0..4_usize,
        value in awkward(),
        tolerance in awkward(),
        every in 0..3_usize,
    ) {
        let (stencil, _) = standing::<false>(6);
        let fields = [vec![0.5; lens.0], vec![0.25; lens.1]];
        let fits = lens == (36, 36);
        let given = fields.each_ref().map(|field| &field[..]);
        prop_assert_eq!(stencil.step_of(&device, given).is_ok(), fits);
        let (over, _) = standing::<true>(6);
        prop_assert_eq!(over.step_of(&device, given).is_ok(), fits);
        let [now, mut past] = given.map(|field| device.upload(field).unwrap());
        let plan = over.plan(&device).unwrap();
        prop_assert_eq!(plan.step_over([&now], [&mut past]).is_ok(), fits);
        if let Ok(mut run) = stencil.start(&device, given) {
            prop_assert!(fits);
            run.steps(steps).unwrap();
            prop_assert_eq!(run.steps_taken(), steps as u64);
            prop_assert_eq!(run.to_vec(field).is_ok(), field < 2);
            let point = [every * 3, steps * 2];
            let is_one = field < 2 && every < 2 && steps < 3;
            prop_assert_eq!(run.at(field, point).is_ok(), is_one);
            prop_assert_eq!(run.add(field, point, 0.0).is_ok(), is_one);
            let settled = run.steps_until(tolerance, every, 4);
            prop_assert_eq!(settled.is_ok(), tolerance >= 0.0 && every > 0);
        } else {
            prop_assert!(!fits);
        }
        let ends = [Boundary::Dirichlet(value), Boundary::Neumann];
        let outcome = stencil.with_ends(field, Axis::Y, ends);
        prop_assert_eq!(outcome.is_ok(), field < 2 && value.is_finite());
        prop_assert!(stencil.with_ends(0, Axis::Z, ends).is_err());
        prop_assert!(stencil.with_ends(0, Axis::X, [Boundary::Periodic, ends[1]]).is_err());

        let plane = plane([5, 4, 1]);
        let offset = steps as i32 - 1;
        let near = Stencil::new(TooFar(offset), plane);
        prop_assert_eq!(near.is_ok(), offset <= 1);
        let moved = Stencil::new(TooFar(0), plane).unwrap().with_update(TooFar(offset));
        prop_assert_eq!(moved.is_ok(), offset <= 1);
        let mut plan = stencil.plan(&device).unwrap();
        plan.set_update(Wave { courant_squared: 0.1 }).unwrap();
    }

    #[test]
    fn points_with_values_are_refused_or_have_them(
        device in prop_oneof![3 => Just(Device::cpu()), 1 => Just(Device::emulator())],
        output in 0..3_usize,
        point in [0..7_usize, 0..7_usize],
        value in awkward(),
        when in 0..4_u64,
        steps in 0..4_usize,
    ) {
        let (stencil, mode) = standing::<false>(6);
        let mut run = stencil.start(&device, [&mode, &mode]).unwrap();
        let is_one = output == 0 && point.iter().all(|&at| at < 6);
        let held = run.hold(output, [[0, 0], point], |_| value);
        match (&held, is_one, value.is_finite()) {
            (Ok(()), true, true) => prop_assert_eq!(run.at(0, point).unwrap(), value),
            (Err(Error::NonFinite { .. }), true, false) => {}
            (Err(Error::InvalidParameter { .. }), false, _) => {}
            other => prop_assert!(false, "{:?}", other),
        }
        run.release();
        let changes = move |_, step| if step == when { value } else { 0.5 };
        let driven = run.drive(output, [point; 2], changes);
        let starts = is_one && (when > 0 || value.is_finite());
        prop_assert_eq!(driven.is_ok(), starts);
        if starts {
            let (taken, fails) = (run.steps(steps), when as usize <= steps && !value.is_finite());
            prop_assert_eq!(taken.is_err(), fails);
            if fails {
                let is_named = matches!(taken, Err(Error::NonFinite { .. }));
                prop_assert!(is_named);
                prop_assert!(run.steps_taken() < when);
            } else {
                let now = if steps as u64 == when { value } else { 0.5 };
                prop_assert_eq!(run.at(0, point).unwrap(), now);
            }
        }
    }

    #[test]
    fn whatever_ends_are_given_are_refused_or_there(
        field in 0..4_usize,
        axis in 0..3_usize,
        value in awkward(),
        one_sided in 0..2_usize,
        courant_squared in awkward(),
    ) {
        let (stencil, mode) = standing::<false>(5);
        let mut run = stencil.start(&Device::cpu(), [&mode, &mode]).unwrap();
        let ends = [Boundary::Dirichlet(value), [Boundary::Neumann, Boundary::Periodic][one_sided]];
        let axis = Axis::ALL[axis];
        let right = field < 2 && axis != Axis::Z && value.is_finite() && one_sided == 0;
        prop_assert_eq!(run.set_ends(field, axis, ends).is_ok(), right);
        let there = run.plan().stencil().ends(field, axis) == Some(ends);
        prop_assert_eq!(there, right);
        run.set_update(Wave { courant_squared }).unwrap();
        run.steps(1).unwrap();
    }
}
