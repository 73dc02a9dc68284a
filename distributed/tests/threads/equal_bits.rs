//! Results of any number of ranks have the bits of one device.

#[cfg(feature = "gpu")]
use crate::ways::CUDA;
use crate::ways::{
    CPU, EMULATOR, Way, bits, noise, numbers_of_ranks, ways, ways_of_numbers, ways_of_steps,
};
use halo_distributed::{
    Decomposition, Error, Ghosted, argmax, argmin, derivative3d, dot, heat2d, max, mean, min,
    nbody, norm, run, sum,
};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::{Heat2d, Tolerance};
use halo_gpu::nbody::{Body, Gravity, Variant};
use halo_gpu::reduction::{self, Number};
use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
use halo_gpu::{
    Axis, Boundary, Device, DeviceKind, Field2, Field3, Grid2, Grid3, Scalar, Shape2, Shape3,
    test_cases,
};

fn cuts(points: [usize; 2], ranks: usize) -> Vec<Decomposition<2>> {
    let mut cuts = vec![
        Decomposition::slabs(points, ranks).expect("enough rows"),
        Decomposition::new(points, [ranks, 1]).expect("enough columns"),
        Decomposition::least_surface(points, ranks).expect("enough points"),
    ];
    cuts.dedup();
    cuts
}

fn plates<T: Scalar>(way: &Way, shape: Shape2, heat: Heat2d, count: usize, widths: &[usize]) {
    let value = |i, j| noise::<T>(j * shape.nx + i);
    let initial = Field2::from_fn(shape, value).expect("enough memory");
    let one = heat.iterate_of(&way.one(), &initial, count);
    let one = one.expect("one device");
    for ranks in way.ranks() {
        for cut in cuts([shape.nx, shape.ny], ranks) {
            for &width in widths {
                let several = way.run(ranks, |communicator, device| {
                    let value = |[i, j]: [usize; 2]| initial[(i, j)];
                    let mut plate =
                        heat2d::Plate::new(communicator, device, heat, cut, width, value)?;
                    // In two calls, so that the first ends between two exchanges.
                    plate.iterate(count / 3)?;
                    plate.iterate(count - count / 3)?;
                    assert_eq!(plate.iterations(), count as u64);
                    plate.field()
                });
                for plate in several.expect("no rank fails") {
                    assert_eq!(
                        bits(plate.as_slice()),
                        bits(one.as_slice()),
                        "{} on {ranks} ranks of {}, {:?}, {width} ghost points",
                        T::NAME,
                        way.name,
                        cut.parts()
                    );
                }
            }
        }
    }
}

#[test]
fn plates_with_dirichlet_boundaries() {
    let shape = Shape2::new(61, 45);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    for way in ways_of_steps() {
        plates::<f32>(&way, shape, heat, 23, &[1, 4]);
        plates::<f64>(&way, shape, heat, 23, &[1, 4]);
    }
}

#[test]
fn plates_with_neumann_boundaries() {
    let shape = Shape2::new(37, 41);
    let some = Heat2d::dirichlet(shape)
        .and_then(|heat| heat.with_ends(Axis::X, [Boundary::Neumann, Boundary::DirichletOnPoint]))
        .and_then(|heat| heat.with_ends(Axis::Y, [Boundary::DirichletOnPoint, Boundary::Neumann]))
        .expect("a plate");
    let all = some.with_boundaries(Boundary::Neumann).expect("a plate");
    for way in ways_of_steps() {
        plates::<f64>(&way, shape, some, 23, &[1, 4]);
        plates::<f32>(&way, shape, all, 23, &[1, 4]);
    }
}

#[test]
fn steps_in_time() {
    let shape = Shape2::new(37, 41);
    let heat = Grid2::new(shape, [0.1; 2])
        .and_then(|grid| grid.with_boundaries(Boundary::DirichletOnPoint))
        .and_then(|grid| Heat2d::new(&grid)?.with_time_step(1.0, 0.002));
    let heat = heat.expect("a plate");
    for way in ways_of_steps() {
        plates::<f64>(&way, shape, heat, 23, &[1, 4]);
    }
}

#[test]
fn plates_in_the_emulator() {
    let shape = Shape2::new(37, 33);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    plates::<f32>(&EMULATOR, shape, heat, 9, &[1, 4]);
}

/// Large enough for the kernels of many iterations, and for exchanges beside them.
#[test]
fn plates_of_many_iterations() {
    let shape = Shape2::new(515, 771);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    let count = test_cases::either(18, 53);
    let cases = ways_of_steps()
        .into_iter()
        .flat_map(|way| [false, true].map(|doubles| (way.clone(), doubles)));
    // If only some cases run, each way has one type.
    for (way, doubles) in test_cases::one_in(3, cases) {
        if doubles {
            plates::<f64>(&way, shape, heat, count, &[8]);
        } else {
            plates::<f32>(&way, shape, heat, count, &[16]);
        }
    }
}

#[test]
fn all_ranks_stop_in_the_iteration_of_one_device() {
    let points = test_cases::either([17, 16], [31, 29]);
    let shape = Shape2::new(points[0], points[1]);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    let value = |i, j| noise::<f64>(j * shape.nx + i);
    let initial = Field2::from_fn(shape, value).expect("enough memory");
    let ends = [
        (Tolerance::Change(test_cases::either(3e-3, 1e-3)), 1),
        (Tolerance::Change(test_cases::either(1e-3, 1e-4)), 7),
        (Tolerance::Residual(test_cases::either(1e-2, 1e-3)), 5),
    ];
    let all = ways_of_steps()
        .into_iter()
        .flat_map(|way| ends.map(|end| (end, way.clone())));
    for ((tolerance, every), way) in all {
        let mut one = heat.start(&way.one(), &initial).expect("one device");
        let right = one.iterate_until(tolerance, every, 10_000);
        let right = right.expect("it ends");
        assert!(right.converged && right.iterations > 20);
        for ranks in way.ranks() {
            for cut in cuts(points, ranks) {
                let several = way.run(ranks, |communicator, device| {
                    let value = |[i, j]: [usize; 2]| initial[(i, j)];
                    let mut plate = heat2d::Plate::new(communicator, device, heat, cut, 3, value)?;
                    let outcome = plate.iterate_until(tolerance, every, 10_000)?;
                    Ok((outcome, plate.field()?))
                });
                for (outcome, plate) in several.expect("no rank fails") {
                    assert_eq!(outcome, right, "{ranks} ranks, {:?}", cut.parts());
                    let one = one.field().expect("a plate");
                    assert_eq!(bits(plate.as_slice()), bits(one.as_slice()));
                }
            }
        }
    }
}

#[test]
fn a_plate_that_never_comes_to_rest_is_refused_by_all_ranks() {
    let shape = Shape2::new(29, 23);
    let heat = Heat2d::dirichlet(shape).and_then(|heat| heat.with_boundaries(Boundary::Neumann));
    let heat = heat.expect("a plate");
    // Heat in one point goes back and forth between points of even and of odd i + j; in two
    // neighbours it spreads.
    let spots = |twice: bool| {
        move |[i, j]: [usize; 2]| match (i, j) {
            (14, 11) => 1.0,
            (15, 11) if twice => 1.0,
            _ => 0.0_f64,
        }
    };
    for twice in [false, true] {
        let spots = spots(twice);
        let initial = Field2::from_fn(shape, |i, j| spots([i, j])).expect("enough memory");
        let mut one = heat.start(&Device::cpu(), &initial).expect("one device");
        let right = one.iterate_until(1e-4, 10, 20_000);
        for &ranks in numbers_of_ranks() {
            for cut in cuts([29, 23], ranks) {
                let several = run(ranks, |communicator| {
                    let device = Device::cpu();
                    let mut plate =
                        heat2d::Plate::new(&communicator, &device, heat, cut, 2, spots)?;
                    let outcome = plate.iterate_until(1e-4, 10, 20_000);
                    Ok((outcome, plate.iterations()))
                });
                for (outcome, iterations) in several.expect("all ranks learn it") {
                    match (&right, outcome) {
                        (Ok(right), Ok(outcome)) => {
                            assert!(twice && outcome.converged && outcome == *right);
                        }
                        (Err(right), Err(Error::Device(error))) => {
                            assert!(!twice && iterations == 0);
                            assert!(matches!(error, halo_gpu::Error::InvalidParameter { .. }));
                            // Sums of parts, in another order, may be off in the last digit.
                            let start = "heat2d: the tolerance is 0.0001, but must be at least ";
                            assert!(error.to_string().starts_with(start), "{error}");
                            assert!(right.to_string().starts_with(start), "{right}");
                        }
                        (right, outcome) => panic!("{right:?}, but {outcome:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn what_no_iteration_can_end_by_is_refused() {
    let heat = Heat2d::dirichlet(Shape2::new(12, 12)).expect("a plate");
    let slabs = Decomposition::slabs([12, 12], 2).expect("enough rows");
    for (tolerance, every) in [(-1.0, 1), (f32::NAN, 1), (0.5, 0)] {
        let refused = run(2, |communicator| {
            let cold = |_| 0.0_f32;
            let mut plate =
                heat2d::Plate::new(&communicator, &Device::cpu(), heat, slabs, 1, cold)?;
            Ok(plate
                .iterate_until(tolerance, every, 5)
                .expect_err("no end"))
        });
        for error in refused.expect("both learn it") {
            let Error::Device(error) = error else {
                panic!("{error:?}");
            };
            assert!(
                matches!(error, halo_gpu::Error::InvalidParameter { .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn a_nan_reaches_every_rank() {
    let shape = Shape2::new(12, 12);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    let slabs = Decomposition::slabs([12, 12], 3).expect("enough rows");
    let outcomes = run(3, |communicator| {
        let value = |at| if at == [5, 10] { f32::NAN } else { 0.0 };
        let mut plate = heat2d::Plate::new(&communicator, &Device::cpu(), heat, slabs, 1, value)?;
        plate.iterate_until(0.5, 1, 3)
    });
    for outcome in outcomes.expect("no rank fails") {
        assert!(outcome.change.is_nan() && !outcome.converged && outcome.iterations == 3);
    }
}

#[test]
fn plates_that_do_not_fit_are_refused() {
    let heat = Heat2d::dirichlet(Shape2::new(12, 12)).expect("a plate");
    let other = Decomposition::slabs([12, 13], 2).expect("enough rows");
    let slabs = Decomposition::slabs([12, 12], 2).expect("enough rows");
    for wrong in [other, slabs.periodic(0).expect("an axis")] {
        let refused = run(2, |communicator| {
            let plate =
                heat2d::Plate::new(&communicator, &Device::cpu(), heat, wrong, 1, |_| 0.0_f32);
            Ok(plate.expect_err("it does not fit"))
        });
        for error in refused.expect("both learn it") {
            assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
        }
    }
    let differs = run(2, |communicator| {
        let rows = 12 + communicator.rank();
        let heat = Heat2d::dirichlet(Shape2::new(12, rows))?;
        let slabs = Decomposition::slabs([12, rows], 2)?;
        let plate = heat2d::Plate::new(&communicator, &Device::cpu(), heat, slabs, 1, |_| 0.0_f32);
        Ok(plate.expect_err("the shapes differ"))
    });
    for error in differs.expect("both learn it") {
        assert!(matches!(error, Error::Disagreement { .. }), "{error}");
    }
}

fn sums<T: Scalar + Number<Product = f64>>(way: &Way, n: usize, value: impl Fn(usize) -> T) {
    let values: Vec<T> = (0..n).map(value).collect();
    let device = way.one();
    let one = reduction::sum_of(&device, &values).expect("one device");
    let moments = (
        reduction::dot_of(&device, &values, &values),
        reduction::norm_of(&device, &values),
        // An empty array has no mean.
        reduction::mean_of(&device, &values).ok(),
    );
    let (Ok(dot_of_one), Ok(norm_of_one), mean_of_one) = moments else {
        unreachable!("only the mean can fail")
    };
    for ranks in way.ranks() {
        // Equal shares, and shares that grow from nothing.
        let equal = (0..=ranks).map(|rank| n * rank / ranks).collect::<Vec<_>>();
        let growing = (0..=ranks)
            .map(|rank| n * (rank * rank.saturating_sub(1)) / (ranks * (ranks - 1)).max(1))
            .map(|bound| bound.min(n))
            .collect::<Vec<_>>();
        for bounds in [equal, growing] {
            let mut bounds = bounds;
            bounds[ranks] = n;
            let several = way.run(ranks, |communicator, device| {
                let rank = communicator.rank();
                let part = device.upload(&values[bounds[rank]..bounds[rank + 1]])?;
                let moments = [dot(communicator, &part, &part)?, norm(communicator, &part)?];
                let moments = moments.map(f64::to_bits);
                let mean = mean(communicator, &part);
                Ok((
                    sum(communicator, &part)?,
                    moments,
                    mean.ok().map(f64::to_bits),
                ))
            });
            for (total, moments, mean) in several.expect("no rank fails") {
                assert_eq!(
                    (moments, mean),
                    (
                        [dot_of_one.to_bits(), norm_of_one.to_bits()],
                        mean_of_one.map(f64::to_bits)
                    ),
                    "{} of {n} {} on {ranks} ranks, {bounds:?}",
                    way.name,
                    T::NAME
                );
                assert_eq!(
                    bits(&[total]),
                    bits(&[one]),
                    "{} of {n} {} on {ranks} ranks, {bounds:?}",
                    way.name,
                    T::NAME
                );
            }
        }
    }
}

#[test]
fn sums_have_the_tree_of_one_device() {
    for way in ways_of_numbers() {
        // None, one chunk, its bounds, several chunks, and chunks of several tiles.
        let lengths = [0, 1, 5, 2048, 16_384, 16_385, 100_003, 1_000_003];
        for &n in test_cases::either(&lengths[..7], &lengths) {
            sums(&way, n, noise::<f32>);
            sums(&way, n, noise::<f64>);
        }
        sums(&way, 40_000, |_| -0.0_f32);
    }
}

/// Chunks of more tiles than a block takes alone.
#[test]
fn sums_of_long_arrays_have_the_tree_of_one_device() {
    for way in ways_of_numbers() {
        sums(&way, test_cases::either(2_100_001, 5_000_001), noise::<f64>);
    }
}

#[test]
fn sums_in_the_emulator() {
    sums(&EMULATOR, 40_000, noise::<f32>);
    // Beyond the range of f64 at first, and lost to underflow.
    sums(&EMULATOR, 20_000, |i| (i % 7) as f64 * 1e307);
    sums(&CPU, 20_000, |i| (i % 7) as f64 * 1e307);
    sums(&CPU, 20_000, |i| (i % 7) as f64 * 1e-200);
}

/// Every operator on fields that are cut in every way.
fn derivatives<T: Scalar>(way: &Way, boundary: Boundary, accuracy: u32, ranks: &[usize]) {
    let shape = Shape3::new(19, 23, 31);
    let points = [shape.nx, shape.ny, shape.nz];
    let grid = Grid3::new(shape, [0.1, 0.2, 0.3])
        .and_then(|grid| grid.with_boundaries(boundary))
        .and_then(|grid| FiniteDifferences3d::<T>::new(&grid))
        .and_then(|grid| grid.with_accuracy(accuracy))
        .expect("a grid");
    // Three fields.
    let number = |n: usize| {
        move |[i, j, k]: [usize; 3]| noise::<T>(((n * shape.nz + k) * shape.ny + j) * shape.nx + i)
    };
    let of_one_device = || -> Result<_, halo_gpu::Error> {
        let device = &way.one();
        let field = |n| Field3::from_fn(shape, |i, j, k| number(n)([i, j, k]));
        let [f, g, h] = [field(0)?, field(1)?, field(2)?];
        let mut all = vec![
            grid.laplacian_of(device, &f)?,
            grid.divergence_of(device, [&f, &g, &h])?,
        ];
        all.extend(grid.gradient_of(device, &f)?);
        all.extend(grid.curl_of(device, [&f, &g, &h])?);
        for axis in Axis::ALL {
            all.push(grid.derivative_of(device, axis, &f)?);
            all.push(grid.second_derivative_of(device, axis, &f)?);
        }
        Ok(all
            .iter()
            .map(|field| bits(field.as_slice()))
            .collect::<Vec<_>>())
    };
    let one = of_one_device().expect("one device");
    for &ranks in ranks.iter().filter(|&&ranks| way.takes(ranks)) {
        let mut cuts = vec![
            Decomposition::slabs(points, ranks).expect("enough planes"),
            Decomposition::pencils(points, ranks).expect("enough points"),
            Decomposition::least_surface(points, ranks).expect("enough points"),
        ];
        if ranks == 4 {
            cuts.push(Decomposition::new(points, [2, 2, 1]).expect("enough points"));
        }
        cuts.dedup();
        for mut cut in cuts {
            if boundary.is_periodic() {
                for axis in 0..3 {
                    cut = cut.periodic(axis).expect("an axis");
                }
            }
            let several = way.run(ranks, |communicator, device| {
                let field = |n| Ghosted::new(communicator, device, cut, grid.radius(), number(n));
                let [mut f, mut g, mut h] = [field(0)?, field(1)?, field(2)?];
                let poisoned = || -> Result<_, Error> {
                    let mut df = f.zeros_like()?;
                    df.buffer_mut().fill(T::nearest(f64::NAN))?;
                    Ok(df)
                };
                let mut results = Vec::new();
                for _ in 0..14 {
                    results.push(poisoned()?);
                }
                let plan = derivative3d::Plan::new(communicator, &grid, &f)?;
                let [l, d, gx, gy, gz, cx, cy, cz, others @ ..] = &mut results[..] else {
                    unreachable!("there are fourteen");
                };
                plan.laplacian(&mut f, l)?;
                plan.divergence([&mut f, &mut g, &mut h], d)?;
                plan.gradient(&mut f, [gx, gy, gz])?;
                plan.curl([&mut f, &mut g, &mut h], [cx, cy, cz])?;
                for (axis, df) in Axis::ALL.into_iter().zip(others.chunks_mut(2)) {
                    plan.derivative(axis, &mut f, &mut df[0])?;
                    plan.second_derivative(axis, &mut f, &mut df[1])?;
                }
                // Along z nothing writes ghost points.
                let [_, _, [below, above]] = f.ghosts();
                let plane = f.extents()[0] * f.extents()[1];
                for df in &results {
                    let values = df.buffer().to_vec()?;
                    let (low, others) = values.split_at(below * plane);
                    let (_, high) = others.split_at(others.len() - above * plane);
                    let untouched = |value: &T| Into::<f64>::into(*value).is_nan();
                    assert!(low.iter().chain(high).all(untouched));
                }
                let all = results.iter().map(|df| Ok(bits(&df.gather(communicator)?)));
                all.collect::<Result<Vec<_>, Error>>()
            });
            for all in several.expect("no rank fails") {
                assert!(
                    all == one,
                    "{} {boundary}, order {accuracy}, on {ranks} ranks of {}, {:?}",
                    T::NAME,
                    way.name,
                    cut.parts()
                );
            }
        }
    }
}

#[test]
fn derivatives_with_every_boundary() {
    for way in ways_of_steps() {
        for boundary in [
            Boundary::Periodic,
            Boundary::Dirichlet(0.5),
            Boundary::Neumann,
            Boundary::NeumannHalfway,
            Boundary::OneSided,
        ] {
            derivatives::<f64>(&way, boundary, 4, numbers_of_ranks());
            derivatives::<f32>(&way, boundary, 8, &[2, 3]);
        }
    }
}

#[test]
fn derivatives_in_the_emulator() {
    derivatives::<f32>(&EMULATOR, Boundary::Periodic, 4, &[2, 4]);
}

#[test]
fn derivatives_that_do_not_fit_are_refused() {
    let refused = |boundary, width, periodic: bool| {
        let refused = run(2, |communicator| {
            let grid = Grid3::new(Shape3::new(9, 9, 12), [1.0; 3])?;
            let grid = grid.with_boundary(Axis::Z, boundary)?;
            let grid = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(4)?;
            let mut cut = Decomposition::slabs([9, 9, 12], 2)?;
            if periodic {
                cut = cut.periodic(2)?;
            }
            let value = |_| 0.0;
            let f = Ghosted::new(&communicator, &Device::cpu(), cut, width, value)?;
            let plan = derivative3d::Plan::new(&communicator, &grid, &f);
            Ok(plan.expect_err("it does not fit"))
        });
        refused.expect("both learn it")
    };
    let errors = [
        refused(Boundary::Periodic, 1, true),
        refused(Boundary::Periodic, 2, false),
        refused(Boundary::Neumann, 2, true),
        refused(Boundary::PeriodicWithEndpoint, 2, true),
    ];
    for error in errors.into_iter().flatten() {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
}

#[test]
fn fields_with_another_layout_are_refused() {
    let refused = run(2, |communicator| {
        let grid = Grid3::new(Shape3::new(9, 9, 24), [1.0; 3])?;
        let grid = grid.with_boundaries(Boundary::Neumann)?;
        let grid = FiniteDifferences3d::<f64>::new(&grid)?.with_accuracy(4)?;
        let cut = Decomposition::slabs([9, 9, 24], 2)?;
        let device = &Device::cpu();
        let field = |width| Ghosted::new(&communicator, device, cut, width, |_| 0.0);
        let (mut f, mut wider) = (field(2)?, field(3)?);
        let plan = derivative3d::Plan::new(&communicator, &grid, &f)?;
        let mut df = f.zeros_like()?;
        plan.laplacian(&mut f, &mut df)?;
        Ok([
            plan.derivative(Axis::X, &mut wider, &mut df),
            plan.second_derivative(Axis::X, &mut f, &mut wider),
            plan.gradient(&mut f, [&mut df, &mut wider, &mut field(2)?]),
            plan.divergence([&mut f, &mut field(2)?, &mut wider], &mut df),
            plan.curl(
                [&mut f, &mut field(2)?, &mut field(2)?],
                [&mut df, &mut field(2)?, &mut wider],
            ),
            plan.laplacian(&mut f, &mut wider),
        ])
    });
    for outcome in refused.expect("the fields exist").into_iter().flatten() {
        let error = outcome.expect_err("one field is wider");
        assert!(
            error.to_string().contains("the width of the ghosts"),
            "{error}"
        );
    }
}

/// A line with ghost points is a line: the stencil needs nothing else.
#[test]
fn lines_with_ghost_points() {
    let n = 1003;
    let line: Vec<f32> = (0..n).map(noise).collect();
    for way in ways().into_iter().chain([EMULATOR]) {
        let device = way.one();
        let input = device.upload(&line).expect("enough memory");
        // The ends are left as they are.
        let poisoned = device.alloc_filled(n, f32::NAN);
        let mut output = poisoned.expect("enough memory");
        Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS)
            .and_then(|stencil| stencil.plan(&device))
            .and_then(|plan| plan.apply(&input, &mut output))
            .expect("one device");
        let one = bits(&output.to_vec().expect("one device"));
        for ranks in way.ranks() {
            let cut = Decomposition::slabs([n], ranks).expect("enough points");
            let several = way.run(ranks, |communicator, device| {
                let value = |[i]: [usize; 1]| line[i];
                let radius = TEXTBOOK_COEFFICIENTS.len();
                let mut f = Ghosted::new(communicator, device, cut, radius, value)?;
                let mut out = f.zeros_like()?;
                out.buffer_mut().fill(f32::NAN)?;
                f.exchange(communicator)?;
                let [points] = f.extents();
                let part = Stencil1d::antisymmetric(points, &TEXTBOOK_COEFFICIENTS)?;
                part.plan(device)?.apply(f.buffer(), out.buffer_mut())?;
                out.gather(communicator)
            });
            for out in several.expect("no rank fails") {
                assert!(bits(&out) == one, "{ranks} ranks of {}", way.name);
            }
        }
    }
}

/// Extreme elements that occur several times, NaN, and zeros of both signs.
#[test]
fn extremes_are_those_of_one_device() {
    let n = 10_007;
    let special = [f32::NAN, -0.0, 0.0, f32::INFINITY, -1.5, 2.5];
    for way in ways_of_numbers().into_iter().chain([EMULATOR]) {
        for (kind, first) in special.into_iter().enumerate() {
            // The last kinds have no NaN, and their extremes more than once.
            let value = |i: usize| match i % 1009 {
                17 if kind < 4 => first,
                r => (r as f32 - 504.0) * first.signum().max(-1.0),
            };
            let values: Vec<f32> = (0..n).map(value).collect();
            let one = way.one();
            let whole = one.upload(&values).expect("enough memory");
            let right = (
                reduction::min(&whole).expect("one device").to_bits(),
                reduction::max(&whole).expect("one device").to_bits(),
                reduction::argmin(&whole).expect("one device"),
                reduction::argmax(&whole).expect("one device"),
            );
            for ranks in way.ranks() {
                let several = way.run(ranks, |communicator, device| {
                    // The first rank has none, where there are others.
                    let bound = |rank: usize| n * rank.saturating_sub(1) / (ranks - 1).max(1);
                    let rank = communicator.rank();
                    let own = if ranks == 1 {
                        0..n
                    } else {
                        bound(rank)..bound(rank + 1)
                    };
                    let own = device.upload(&values[own])?;
                    Ok((
                        min(communicator, &own)?.to_bits(),
                        max(communicator, &own)?.to_bits(),
                        argmin(communicator, &own)?,
                        argmax(communicator, &own)?,
                    ))
                });
                for found in several.expect("no rank fails") {
                    assert_eq!(found, right, "{first} on {ranks} ranks of {}", way.name);
                }
            }
        }
        let none = way.run(1, |communicator, device| {
            let none = device.zeros::<f32>(0)?;
            Ok((
                min(communicator, &none).is_err(),
                argmax(communicator, &none).is_err(),
            ))
        });
        assert_eq!(none.expect("no rank fails"), [(true, true)]);
    }
}

/// The bodies of all ranks, whose sums have as many parts as on one device.
fn bodies<T: Scalar>(way: &Way, n: usize, parts: u32) {
    let body = |i: usize| {
        let [x, y, z, mass] = [0, 1, 2, 3].map(|k| noise::<T>(4 * i + k));
        Body { x, y, z, mass }
    };
    let all: Vec<_> = (0..n).map(body).collect();
    let gravity = Gravity::new(0.05).and_then(|gravity| gravity.with_parts(parts));
    let gravity = gravity.expect("a softening");
    let one = way.one();
    let plan = match one.kind() {
        DeviceKind::Cpu => gravity.plan(&one, n),
        _ => gravity.plan_with(&one, n, Variant::RegisterTile),
    };
    let uploaded = one.upload(&all).expect("enough memory");
    let mut right = one.zeros(n).expect("enough memory");
    plan.and_then(|mut plan| plan.accelerations(&uploaded, &mut right))
        .expect("one device");
    let right = bits(right.to_vec().expect("one device").as_flattened());
    // Fewer, where parts of whole tiles are.
    let share = gravity.plan_of_parts::<T>(&Device::cpu(), n, 0..1);
    let most = share.expect("a part").parts() as usize;
    for ranks in way.ranks().filter(|&it| it <= most) {
        let several = way.run(ranks, |communicator, device| {
            let mut plan = nbody::Plan::new(communicator, device, gravity, n)?;
            let own = device.upload(&all[plan.own()])?;
            let mut found = device.alloc_filled(own.len(), [T::nearest(f64::NAN); 3])?;
            plan.accelerations(&own, &mut found)?;
            // Again, as nothing may be left of the first time.
            found.fill([T::nearest(f64::NAN); 3])?;
            plan.accelerations(&own, &mut found)?;
            communicator.settle()?;
            Ok(found.to_vec()?)
        });
        let found = several.expect("no rank fails").concat();
        assert!(
            bits(found.as_flattened()) == right,
            "{n} bodies of {} on {ranks} ranks of {}",
            T::NAME,
            way.name
        );
    }
}

#[test]
fn bodies_are_pulled_as_on_one_device() {
    for way in ways() {
        // The last part is shorter than the others, and not.
        bodies::<f32>(&way, test_cases::either(1100, 3000), 8);
        bodies::<f64>(&way, test_cases::either(1024, 2048), 16);
        bodies::<f32>(&way, 128, 1);
    }
    bodies::<f32>(&EMULATOR, 600, 4);
    bodies::<f64>(&EMULATOR.ahead(), 512, 2);
    #[cfg(feature = "gpu")]
    bodies::<f32>(&CUDA.ahead(), 3000, 8);
}

/// No bodies are under way after the refusal, which the next call would take for its own.
#[test]
fn accelerations_of_another_length_are_refused_before_bodies_are_sent() {
    let gravity = Gravity::new(0.1).and_then(|gravity| gravity.with_parts(2));
    let gravity = gravity.expect("a softening");
    let of = |shift: f64| {
        let body = |i: usize| Body {
            x: noise::<f64>(i) + shift * noise::<f64>(i + 1),
            y: noise(i + 2),
            z: noise(i + 3),
            mass: 1.0,
        };
        (0..512).map(body).collect::<Vec<_>>()
    };
    for way in [CPU, EMULATOR].map(Way::ahead) {
        let found = way.run(2, |communicator, device| {
            let mut plan = nbody::Plan::new(communicator, device, gravity, 512)?;
            let own = device.upload(&of(0.0)[plan.own()])?;
            for wrong in [own.len() - 1, own.len() + 1] {
                let refused = plan.accelerations(&own, &mut device.zeros(wrong)?);
                let error = refused.expect_err("another length").to_string();
                assert!(error.contains(&wrong.to_string()), "{error}");
            }
            let own = device.upload(&of(1.0)[plan.own()])?;
            let mut found = device.zeros(own.len())?;
            plan.accelerations(&own, &mut found)?;
            communicator.settle()?;
            Ok(found.to_vec()?)
        });
        let right = gravity.accelerations_of(&Device::cpu(), &of(1.0));
        let found = found.expect("no rank fails").concat();
        let right = right.expect("one device");
        let worst = found.as_flattened().iter().zip(right.as_flattened());
        let worst = worst.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-9, "{}: {worst}", way.name);
    }
}

#[test]
fn more_ranks_than_parts_are_refused() {
    let refused = run(3, |communicator| {
        let gravity = Gravity::new(0.1)?.with_parts(2)?;
        let plan = nbody::Plan::<f32>::new(&communicator, &Device::cpu(), gravity, 1000);
        Ok(plan.expect_err("two parts"))
    });
    for error in refused.expect("all learn it") {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
}
