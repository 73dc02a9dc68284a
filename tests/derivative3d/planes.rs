//! Tests plans of some planes: they give the bits of a plan of all planes, and write no others.

use super::general::{Sample, boundary, random};
use super::properties::{Grid, grids};
use halo_gpu::derivative3d::{Operator, Plan, Variant};
use halo_gpu::{Axis, Boundary, Buffer, Device, Error};
use halo_tests::assert_same_bits;
use halo_tests::property::{self, Faults, device};
use proptest::prelude::*;
use proptest::sample::select;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::ops::Range;

/// All operators, with derivatives along each axis.
fn operators() -> Vec<Operator> {
    let along = Axis::ALL.into_iter();
    let along =
        along.flat_map(|axis| [Operator::Derivative(axis), Operator::SecondDerivative(axis)]);
    along.chain(Operator::VECTOR_CALCULUS).collect()
}

/// Calls the plan's method for the operator.
fn apply<T: Sample>(
    plan: &Plan<T>,
    operator: Operator,
    inputs: &[Buffer<T>],
    outputs: &mut [Buffer<T>],
) -> Result<(), Error> {
    match (operator, inputs, outputs) {
        (Operator::Derivative(axis), [f], [df]) => plan.derivative(axis, f, df),
        (Operator::SecondDerivative(axis), [f], [df]) => plan.second_derivative(axis, f, df),
        (Operator::Gradient, [f], [x, y, z]) => plan.gradient(f, [x, y, z]),
        (Operator::Divergence, [u, v, w], [out]) => plan.divergence([u, v, w], out),
        (Operator::Curl, [u, v, w], [x, y, z]) => plan.curl([u, v, w], [x, y, z]),
        (Operator::Laplacian, [f], [out]) => plan.laplacian(f, out),
        _ => panic!("{operator} of {} fields", inputs.len()),
    }
}

/// Compares a plan of these planes with a plan of all. Before, the results are filled with NaN.
fn is_part_of_the_whole<T: Sample>(
    grid: &Grid,
    operator: Operator,
    planes: &Range<usize>,
    seed: u64,
    device: &Device,
) -> Result<(), Error> {
    let (points, rng) = (grid.points(), &mut SmallRng::seed_from_u64(seed));
    let (inputs, outputs) = operator.fields();
    let fields = (0..inputs).map(|_| device.upload(&random::<T>(rng, points)));
    let fields: Vec<_> = fields.collect::<Result<_, _>>()?;
    let results = |plan: Plan<T>| -> Result<Vec<Vec<T>>, Error> {
        let poisoned = (0..outputs).map(|_| device.alloc_filled(points, T::nearest(f64::NAN)));
        let mut results: Vec<_> = poisoned.collect::<Result<_, _>>()?;
        plan.check(operator)?;
        apply(&plan, operator, &fields, &mut results)?;
        results.iter().map(Buffer::to_vec).collect()
    };
    let differences = grid.differences::<T>()?;
    let all = results(differences.plan(device)?)?;
    let plan = differences.plan_of_planes(device, planes.clone())?;
    assert_eq!(plan.planes(), *planes);
    let some = results(plan)?;
    let plane = points / grid.extents[2];
    let elements = planes.start * plane..planes.end * plane;
    for (some, all) in some.iter().zip(&all) {
        let what = |n: usize| format!("element {n} of planes {planes:?}, {operator}, {grid:?}");
        assert_same_bits(&some[elements.clone()], &all[elements.clone()], what);
        let others = some[..elements.start].iter().chain(&some[elements.end..]);
        assert!(
            others
                .copied()
                .all(|value| Into::<f64>::into(value).is_nan()),
            "{operator} wrote outside of planes {planes:?}, {grid:?}"
        );
    }
    Ok(())
}

/// Grids with some more planes, and a range of their planes. The range is often the one that ranks
/// compute first: all planes farther from the ends than the stencils reach.
fn grids_and_planes() -> impl Strategy<Value = (Grid, Range<usize>)> {
    let boundary = prop_oneof![2 => boundary(), 1 => Just(Boundary::Periodic)];
    let more = (
        0..40_usize,
        prop_oneof![Just(1_usize), Just(4)],
        any::<bool>(),
    );
    let grids = (grids(boundary), more).prop_map(|(mut grid, (planes, multiple, is_eighth))| {
        grid.extents[2] += planes;
        grid.extents[0] = grid.extents[0].next_multiple_of(multiple);
        if is_eighth {
            // The kernels of the 8th order choose planes in their own ways.
            grid.accuracy = 8;
            grid.extents = grid.extents.map(|extent| extent.max(10));
            grid.extents[0] = grid.extents[0].next_multiple_of(multiple);
        }
        grid
    });
    grids.prop_flat_map(|grid| {
        let (nz, radius) = (grid.extents[2], grid.accuracy as usize / 2);
        let any = (0..nz).prop_flat_map(move |begin| (Just(begin), begin + 1..=nz));
        let inner = Just((radius, nz.saturating_sub(radius).max(radius + 1)));
        let planes = prop_oneof![2 => any, 1 => inner];
        let planes = planes.prop_map(move |(begin, end)| begin.min(nz - 1)..end.min(nz));
        (Just(grid), planes)
    })
}

proptest! {
    #![proptest_config(property::cases(128))]

    #[test]
    fn planes_have_the_bits_of_the_whole(
        (grid, planes) in grids_and_planes(),
        operator in select(operators()),
        seed in any::<u64>(),
        device in device(),
    ) {
        is_part_of_the_whole::<f32>(&grid, operator, &planes, seed, &device)?;
        is_part_of_the_whole::<f64>(&grid, operator, &planes, seed, &device)?;
    }

    #[test]
    fn planes_get_the_error_they_deserve(
        (grid, _) in grids_and_planes(),
        (begin, end) in (0..60_usize, prop_oneof![9 => 0..60_usize, 1 => Just(usize::MAX)]),
        device in device(),
    ) {
        let nz = grid.extents[2];
        let faults = Faults::none().and(
            begin >= end || end > nz,
            "InvalidParameter",
            format!("the range of planes is {begin}..{end}, but must be not empty, and in 0..{nz}"),
        );
        faults.judge(grid.differences::<f32>()?.plan_of_planes(&device, begin..end))?;
    }
}

/// Plans of some planes avoid the kernels that can only compute all.
#[test]
fn planes_are_computed_by_kernels_that_can() -> Result<(), Error> {
    let device = Device::emulator();
    let grid = |nx, boundary| Grid {
        extents: [nx, 9, 20],
        spacing: [1.0; 3],
        boundaries: [boundary; 3],
        accuracy: 8,
    };
    let variants = |grid: Grid, planes| -> Result<_, Error> {
        let plan = grid.differences::<f32>()?.plan_of_planes(&device, planes)?;
        let along = Axis::ALL.map(Operator::Derivative);
        Ok([along[0], along[1], along[2], Operator::Gradient].map(|it| plan.variant(it)))
    };
    use Variant::{AnyBoundary, General, Unaligned, Vector};
    let some = |variants: [Variant; 4]| variants.map(Some);
    let periodic = |nx| grid(nx, Boundary::Periodic);
    assert_eq!(variants(periodic(16), 0..20)?, some([Vector; 4]));
    // Along z, and for gradients, only the kernels for any boundary can compute some planes.
    let of_some = some([Vector, Vector, AnyBoundary, General]);
    assert_eq!(variants(periodic(16), 0..19)?, of_some);
    assert_eq!(variants(periodic(16), 1..20)?, of_some);
    // Planes of 13 by 9 points begin at multiples of 16 bytes if their index is a multiple of 4.
    let of_odd = some([Unaligned, Unaligned, AnyBoundary, General]);
    assert_eq!(variants(periodic(13), 4..20)?, of_odd);
    let single = some([General, General, AnyBoundary, General]);
    assert_eq!(variants(periodic(13), 3..20)?, single);
    let mirrored = grid(16, Boundary::Neumann);
    let any = some([AnyBoundary, AnyBoundary, AnyBoundary, General]);
    assert_eq!(variants(mirrored, 3..20)?, any);
    Ok(())
}
