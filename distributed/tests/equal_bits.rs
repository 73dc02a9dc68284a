//! Results of any number of ranks have the bits of one device.

use halo_distributed::{Decomposition, Error, Ghosted, derivative3d, heat2d, run, sum};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::{Heat2d, Tolerance, Wall, Walls};
use halo_gpu::reduction::{self, Number};
use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
use halo_gpu::{Axis, Boundary, Device, Field2, Field3, Grid3, Scalar, Shape2, Shape3};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// Numbers without a pattern, the same everywhere.
fn noise<T: Scalar>(i: usize) -> T {
    let bits = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    T::nearest(((bits >> 33) as f64) / f64::from(1_u32 << 30) - 1.0)
}

fn bits<T: Scalar>(values: &[T]) -> Vec<u64> {
    values
        .iter()
        .map(|&value| Into::<f64>::into(value).to_bits())
        .collect()
}

fn cuts(points: [usize; 2], ranks: usize) -> Vec<Decomposition<2>> {
    let mut cuts = vec![
        Decomposition::slabs(points, ranks).expect("enough rows"),
        Decomposition::new(points, [ranks, 1]).expect("enough columns"),
        Decomposition::least_surface(points, ranks).expect("enough points"),
    ];
    cuts.dedup();
    cuts
}

fn plates<T: Scalar>(device: &Device, shape: Shape2, heat: Heat2d, sweeps: usize) {
    let value = |i, j| noise::<T>(j * shape.nx + i);
    let initial = Field2::from_fn(shape, value).expect("enough memory");
    let one = heat.solve(device, &initial, sweeps).expect("one device");
    for ranks in RANKS {
        for cut in cuts([shape.nx, shape.ny], ranks) {
            for width in [1, 4] {
                let several = run(ranks, |communicator| {
                    let value = |[i, j]: [usize; 2]| initial[(i, j)];
                    let mut plate =
                        heat2d::Plate::new(&communicator, device, heat, cut, width, value)?;
                    // In two calls, so that the first ends between two exchanges.
                    plate.sweep(sweeps / 3)?;
                    plate.sweep(sweeps - sweeps / 3)?;
                    assert_eq!(plate.sweeps(), sweeps as u64);
                    plate.field()
                });
                for plate in several.expect("no rank fails") {
                    assert_eq!(
                        bits(plate.as_slice()),
                        bits(one.as_slice()),
                        "{} on {ranks} ranks, {:?}, {width} ghost points",
                        T::NAME,
                        cut.parts()
                    );
                }
            }
        }
    }
}

#[test]
fn plates_with_fixed_walls() {
    let shape = Shape2::new(61, 45);
    let heat = Heat2d::new(shape).expect("a plate");
    plates::<f32>(&Device::cpu(), shape, heat, 23);
    plates::<f64>(&Device::cpu(), shape, heat, 23);
}

#[test]
fn plates_with_insulated_walls() {
    let shape = Shape2::new(37, 41);
    let walls = Walls {
        left: Wall::Insulated,
        top: Wall::Insulated,
        ..Walls::FIXED
    };
    let heat = Heat2d::new(shape).expect("a plate");
    plates::<f64>(&Device::cpu(), shape, heat.with_walls(walls), 23);
    plates::<f32>(&Device::cpu(), shape, heat.with_walls(Walls::INSULATED), 23);
}

#[test]
fn steps_in_time() {
    let shape = Shape2::new(37, 41);
    let heat = Heat2d::new(shape).and_then(|heat| heat.with_time_step(1.0, 0.1, 0.002));
    plates::<f64>(&Device::cpu(), shape, heat.expect("a plate"), 23);
}

#[test]
fn plates_in_the_emulator() {
    let shape = Shape2::new(37, 33);
    let heat = Heat2d::new(shape).expect("a plate");
    plates::<f32>(&Device::emulator(), shape, heat, 9);
}

#[test]
fn all_ranks_stop_in_the_sweep_of_one_device() {
    let shape = Shape2::new(31, 29);
    let heat = Heat2d::new(shape).expect("a plate");
    let value = |i, j| noise::<f64>(j * shape.nx + i);
    let initial = Field2::from_fn(shape, value).expect("enough memory");
    let device = Device::cpu();
    for (tolerance, every) in [
        (Tolerance::Change(1e-3), 1),
        (Tolerance::Change(1e-4), 7),
        (Tolerance::Residual(1e-3), 5),
    ] {
        let mut one = heat.start(&device, &initial).expect("one device");
        let right = one.sweep_until(tolerance, every, 10_000).expect("it ends");
        assert!(right.converged && right.sweeps > 20);
        for ranks in RANKS {
            for cut in cuts([31, 29], ranks) {
                let several = run(ranks, |communicator| {
                    let value = |[i, j]: [usize; 2]| initial[(i, j)];
                    let mut plate =
                        heat2d::Plate::new(&communicator, &device, heat, cut, 3, value)?;
                    let outcome = plate.sweep_until(tolerance, every, 10_000)?;
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
fn a_nan_reaches_every_rank() {
    let shape = Shape2::new(12, 12);
    let heat = Heat2d::new(shape).expect("a plate");
    let slabs = Decomposition::slabs([12, 12], 3).expect("enough rows");
    let outcomes = run(3, |communicator| {
        let value = |at| if at == [5, 10] { f32::NAN } else { 0.0 };
        let mut plate = heat2d::Plate::new(&communicator, &Device::cpu(), heat, slabs, 1, value)?;
        plate.sweep_until(0.5, 1, 3)
    });
    for outcome in outcomes.expect("no rank fails") {
        assert!(outcome.change.is_nan() && !outcome.converged && outcome.sweeps == 3);
    }
}

#[test]
fn plates_that_do_not_fit_are_refused() {
    let heat = Heat2d::new(Shape2::new(12, 12)).expect("a plate");
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
        let heat = Heat2d::new(Shape2::new(12, rows))?;
        let slabs = Decomposition::slabs([12, rows], 2)?;
        let plate = heat2d::Plate::new(&communicator, &Device::cpu(), heat, slabs, 1, |_| 0.0_f32);
        Ok(plate.expect_err("the shapes differ"))
    });
    for error in differs.expect("both learn it") {
        assert!(matches!(error, Error::Disagreement { .. }), "{error}");
    }
}

fn sums<T: Scalar + Number>(device: &Device, n: usize, value: impl Fn(usize) -> T) {
    let values: Vec<T> = (0..n).map(value).collect();
    let one = reduction::sum_of(device, &values).expect("one device");
    for ranks in RANKS {
        // Equal shares, and shares that grow from nothing.
        let equal = (0..=ranks).map(|rank| n * rank / ranks).collect::<Vec<_>>();
        let growing = (0..=ranks)
            .map(|rank| n * (rank * rank.saturating_sub(1)) / (ranks * (ranks - 1)).max(1))
            .map(|bound| bound.min(n))
            .collect::<Vec<_>>();
        for bounds in [equal, growing] {
            let mut bounds = bounds;
            bounds[ranks] = n;
            let several = run(ranks, |communicator| {
                let rank = communicator.rank();
                let part = device.upload(&values[bounds[rank]..bounds[rank + 1]])?;
                sum(&communicator, &part)
            });
            for total in several.expect("no rank fails") {
                assert_eq!(
                    bits(&[total]),
                    bits(&[one]),
                    "{} of {n} {} on {ranks} ranks, {bounds:?}",
                    device.name(),
                    T::NAME
                );
            }
        }
    }
}

#[test]
fn sums_have_the_tree_of_one_device() {
    let device = Device::cpu();
    // None, one chunk, its bounds, several chunks, and chunks of several tiles.
    for n in [0, 1, 5, 2048, 16_384, 16_385, 100_003, 1_000_003] {
        sums(&device, n, noise::<f32>);
        sums(&device, n, noise::<f64>);
    }
    sums(&device, 40_000, |_| -0.0_f32);
}

/// Chunks of more tiles than a block takes alone.
#[test]
fn sums_of_long_arrays_have_the_tree_of_one_device() {
    sums(&Device::cpu(), 5_000_001, noise::<f64>);
}

#[test]
fn sums_in_the_emulator() {
    sums(&Device::emulator(), 40_000, noise::<f32>);
}

/// Every operator on a field, cut in every way.
fn derivatives<T: Scalar>(device: &Device, boundary: Boundary, accuracy: u32, ranks: &[usize]) {
    let shape = Shape3::new(19, 23, 31);
    let points = [shape.nx, shape.ny, shape.nz];
    let grid = Grid3::new(shape, [0.1, 0.2, 0.3])
        .and_then(|grid| grid.with_boundaries(boundary))
        .and_then(|grid| FiniteDifferences3d::<T>::new(&grid))
        .and_then(|grid| grid.with_accuracy(accuracy))
        .expect("a grid");
    let value = |[i, j, k]: [usize; 3]| noise::<T>((k * shape.ny + j) * shape.nx + i);
    let field = Field3::from_fn(shape, |i, j, k| value([i, j, k])).expect("enough memory");
    let laplacian = grid.laplacian_of(device, &field).expect("one device");
    let mut one = vec![bits(laplacian.as_slice())];
    for axis in Axis::ALL {
        let derivative = grid.derivative_of(device, axis, &field);
        one.push(bits(derivative.expect("one device").as_slice()));
    }
    for &ranks in ranks {
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
            let several = run(ranks, |communicator| {
                let mut f = Ghosted::new(&communicator, device, cut, grid.radius(), value)?;
                let mut df = f.zeros_like()?;
                let part = derivative3d::on_part(&communicator, &grid, &f)?;
                f.exchange(&communicator)?;
                part.laplacian(f.buffer(), df.buffer_mut())?;
                let mut all = vec![bits(&df.gather(&communicator)?)];
                for axis in Axis::ALL {
                    part.derivative(axis, f.buffer(), df.buffer_mut())?;
                    all.push(bits(&df.gather(&communicator)?));
                }
                Ok(all)
            });
            for all in several.expect("no rank fails") {
                assert!(
                    all == one,
                    "{} {boundary}, order {accuracy}, on {ranks} ranks, {:?}",
                    T::NAME,
                    cut.parts()
                );
            }
        }
    }
}

#[test]
fn derivatives_with_every_boundary() {
    let device = Device::cpu();
    for boundary in [
        Boundary::Periodic,
        Boundary::Dirichlet(0.5),
        Boundary::Neumann,
        Boundary::NeumannHalfway,
        Boundary::OneSided,
    ] {
        derivatives::<f64>(&device, boundary, 4, &RANKS);
        derivatives::<f32>(&device, boundary, 8, &[2, 3]);
    }
}

#[test]
fn derivatives_in_the_emulator() {
    derivatives::<f32>(&Device::emulator(), Boundary::Periodic, 4, &[2, 4]);
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
            let part = derivative3d::on_part(&communicator, &grid, &f);
            Ok(part.expect_err("it does not fit"))
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

/// A line with ghost points is a line: the stencil needs nothing else.
#[test]
fn lines_with_ghost_points() {
    let n = 1003;
    let line: Vec<f32> = (0..n).map(noise).collect();
    for device in [Device::cpu(), Device::emulator()] {
        let input = device.upload(&line).expect("enough memory");
        let mut output = device.zeros(n).expect("enough memory");
        Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS)
            .and_then(|stencil| stencil.plan(&device))
            .and_then(|plan| plan.apply(&input, &mut output))
            .expect("one device");
        let one = bits(&output.to_vec().expect("one device"));
        for ranks in RANKS {
            let cut = Decomposition::slabs([n], ranks).expect("enough points");
            let several = run(ranks, |communicator| {
                let value = |[i]: [usize; 1]| line[i];
                let radius = TEXTBOOK_COEFFICIENTS.len();
                let mut f = Ghosted::new(&communicator, &device, cut, radius, value)?;
                let mut out = f.zeros_like()?;
                f.exchange(&communicator)?;
                let [points] = f.extents();
                let part = Stencil1d::antisymmetric(points, &TEXTBOOK_COEFFICIENTS)?;
                part.plan(&device)?.apply(f.buffer(), out.buffer_mut())?;
                out.gather(&communicator)
            });
            for out in several.expect("no rank fails") {
                assert_eq!(bits(&out), one, "{ranks} ranks on {}", device.name());
            }
        }
    }
}
