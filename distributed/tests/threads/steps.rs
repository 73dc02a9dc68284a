//! Steps of stencils, of waves and of bodies on any number of ranks have the bits of one device.

use crate::ways::{CPU, EMULATOR, Way, bits, noise, ways_of_steps};
use halo_distributed::{Communicator, Decomposition, Error, heat3d, nbody, run, stencil, wave3d};
use halo_gpu::heat3d::Heat3d;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::nbody::{Body, Energy, Gravity};
use halo_gpu::stencil::{Neighbourhood, Number, PointUpdate, Reach, Stencil};
use halo_gpu::wave3d::{Layer, Wave3d};
use halo_gpu::{Axis, Boundary, Device, Field3, Grid2, Grid3, Shape2, Shape3, test_cases};

/// Slabs, pencils and blocks, periodic along the axes of `periodic`, whose blocks have at least
/// `width` points along the axes that are cut.
fn cuts<const D: usize>(
    points: [usize; D],
    ranks: usize,
    periodic: [bool; D],
    width: usize,
) -> Vec<Decomposition<D>> {
    let mut cuts: Vec<_> = [
        Decomposition::slabs(points, ranks),
        Decomposition::pencils(points, ranks),
        Decomposition::least_surface(points, ranks),
    ]
    .into_iter()
    .filter_map(Result::ok)
    .collect();
    if ranks == 4 {
        let mut parts = [1; D];
        parts[..2].fill(2);
        cuts.push(Decomposition::new(points, parts).expect("enough points"));
    }
    cuts.dedup();
    cuts.retain(|cut| {
        let mut axes = cut.parts().into_iter().zip(points);
        axes.all(|(parts, points)| parts == 1 || points / parts >= width)
    });
    assert!(
        !cuts.is_empty(),
        "{points:?} on {ranks} ranks, {width} wide"
    );
    for cut in &mut cuts {
        for axis in (0..D).filter(|&axis| periodic[axis]) {
            *cut = cut.periodic(axis).expect("an axis");
        }
    }
    cuts
}

fn index(shape: Shape3, [i, j, k]: [usize; 3]) -> usize {
    (k * shape.ny + j) * shape.nx + i
}

/// That ranks get `right` from `work`, on any number of them, for each decomposition of the grid
/// and each width of the ghosts.
fn each_cut<R: PartialEq + Send + Sync>(
    way: &Way,
    grid: &Grid3,
    widths: &[usize],
    name: &str,
    right: &R,
    work: impl Fn(&Communicator, &Device, Decomposition<3>, usize) -> Result<R, Error> + Sync,
) {
    let Shape3 { nx, ny, nz } = grid.shape();
    let periodic = Axis::ALL.map(|axis| grid.ends(axis)[0].is_periodic());
    let widths = test_cases::either(&widths[widths.len() - 1..], widths);
    for ranks in way.ranks() {
        for &width in widths {
            for cut in cuts([nx, ny, nz], ranks, periodic, width) {
                let several = way.run(ranks, |communicator, device| {
                    work(communicator, device, cut, width)
                });
                for all in several.expect("no rank fails") {
                    let what = (way.name, ranks, cut.parts(), width);
                    assert!(all == *right, "{name} {grid:?} {what:?}");
                }
            }
        }
    }
}

/// In two calls, so that the first ends between two exchanges.
const STEPS: [usize; 2] = [4, 7];

fn heat<T: halo_gpu::heat3d::Kernels>(way: &Way, grid: Grid3, widths: &[usize]) {
    let shape = grid.shape();
    let heat = Heat3d::new(grid);
    let value = |at| noise::<T>(index(shape, at));
    let initial = Field3::from_fn(shape, |i, j, k| value([i, j, k])).expect("enough memory");
    let one = heat.steps_of(&way.one(), &initial, STEPS.iter().sum());
    let one = bits(one.expect("one device").as_slice());
    each_cut(
        way,
        &grid,
        widths,
        T::NAME,
        &one,
        |communicator, device, cut, width| {
            let mut body = heat3d::start(communicator, device, &heat, cut, width, value)?;
            for steps in STEPS {
                body.steps(steps)?;
            }
            assert_eq!(body.steps_taken(), 11);
            Ok(bits(&body.gather(0)?))
        },
    );
}

#[test]
fn heat_in_space_with_every_boundary() {
    let shape = Shape3::new(17, 14, 22);
    let grid = |boundary| {
        Grid3::new(shape, [1.0, 1.5, 0.75]).and_then(|grid| grid.with_boundaries(boundary))
    };
    for way in ways_of_steps() {
        for boundary in [
            Boundary::Periodic,
            Boundary::Dirichlet(0.5),
            Boundary::Neumann,
            Boundary::NeumannHalfway,
            Boundary::OneSided,
        ] {
            heat::<f32>(&way, grid(boundary).expect("a grid"), &[1, 3]);
        }
        let mixed = grid(Boundary::Periodic)
            .and_then(|it| it.with_ends(Axis::Z, [Boundary::Dirichlet(2.0), Boundary::Neumann]))
            .and_then(|it| it.with_boundary(Axis::X, Boundary::NeumannHalfway));
        heat::<f64>(&way, mixed.expect("a grid"), &[1, 2]);
    }
}

#[test]
fn heat_in_space_in_the_emulator() {
    let grid = Grid3::new(Shape3::new(9, 8, 15), [1.0; 3]);
    let grid = grid.and_then(|it| it.with_boundary(Axis::Z, Boundary::Dirichlet(1.0)));
    heat::<f32>(&EMULATOR, grid.expect("a grid"), &[2]);
}

/// Waves with a source and a velocity that differs from point to point.
fn waves<T: halo_gpu::wave3d::Kernels>(way: &Way, grid: Grid3, order: u32, widths: &[usize]) {
    let shape = grid.shape();
    let wave = Wave3d::new(grid, order).expect("an order");
    let step = 0.5 * wave.longest_step(2.0);
    let layer = Layer {
        points: 5,
        reflection: 0.01,
    };
    let number = |at: [usize; 3], kind: usize| noise::<T>(3 * index(shape, at) + kind);
    let velocity = |at| T::nearest(1.0 + 0.5 * Into::<f64>::into(number(at, 2)).abs());
    let of = |value: &dyn Fn([usize; 3]) -> T| {
        Field3::from_fn(shape, |i, j, k| value([i, j, k])).expect("enough memory")
    };
    let fields = [0, 1].map(|kind| of(&|at| number(at, kind)));
    let point = |at| wave3d::Point {
        now: number(at, 0),
        before: number(at, 1),
        velocity: velocity(at),
    };
    let source = ([shape.nx / 2, shape.ny / 2, shape.nz / 3], T::nearest(7.0));
    let device = way.one();
    let [now, before] = &fields;
    let speeds = of(&velocity);
    // The same calls for both kinds, which have no type in common.
    macro_rules! march {
        ($run:expr) => {{
            let mut run = $run?;
            let mut heard = Vec::new();
            for steps in STEPS {
                run.add(0, source.0, source.1)?;
                run.steps(steps)?;
                heard.push(run.at(0, [1, 2, shape.nz - 1])?);
            }
            (run, heard)
        }};
    }
    let right = || -> Result<_, halo_gpu::Error> {
        let (closed, heard) = march!(wave.start(&device, step, &speeds, [now, before]));
        let (absorbed, also) =
            march!(wave.start_absorbing(&device, step, &speeds, layer, [now, before]));
        let all = [closed.to_vec(0)?, closed.to_vec(1)?, absorbed.to_vec(0)?];
        Ok([bits(&all.concat()), bits(&heard), bits(&also)])
    };
    let right = right().expect("one device");
    each_cut(
        way,
        &grid,
        widths,
        T::NAME,
        &right,
        |communicator, device, cut, width| {
            let (closed, heard) = march!(wave3d::start(
                communicator,
                device,
                &wave,
                cut,
                width,
                step,
                point
            ));
            let (absorbed, also) = march!(wave3d::start_absorbing(
                communicator,
                device,
                &wave,
                cut,
                width,
                step,
                layer,
                point
            ));
            let all = [closed.gather(0)?, closed.gather(1)?, absorbed.gather(0)?];
            Ok([bits(&all.concat()), bits(&heard), bits(&also)])
        },
    );
}

#[test]
fn waves_in_space() {
    let grid = |boundary| {
        let grid = Grid3::new(Shape3::new(11, 13, 35), [1.0, 1.25, 0.75]);
        let grid = grid.and_then(|grid| grid.with_boundaries(boundary));
        grid.expect("a grid")
    };
    let all = ways_of_steps()
        .into_iter()
        .flat_map(|way| [0, 1, 2].map(|case| (way.clone(), case)));
    for (way, case) in test_cases::one_in(2, all) {
        match case {
            0 => waves::<f32>(&way, grid(Boundary::OneSided), 8, &[4, 5]),
            1 => waves::<f64>(&way, grid(Boundary::Periodic), 8, &[4]),
            _ => waves::<f32>(&way, grid(Boundary::Neumann), 4, &[4]),
        }
    }
}

/// Several steps between two exchanges need the past of ghost points as well.
#[test]
fn waves_with_wide_ghosts() {
    let grid = Grid3::new(Shape3::new(7, 5, 67), [1.0; 3]);
    let grid = grid.and_then(|grid| grid.with_boundaries(Boundary::OneSided));
    let grid = grid.expect("a grid");
    for way in ways_of_steps() {
        waves::<f32>(&way, grid, 8, &[8, 9]);
    }
}

#[test]
fn waves_in_the_emulator() {
    let grid = Grid3::new(Shape3::new(6, 5, 32), [1.0; 3]);
    let grid = grid.and_then(|grid| grid.with_boundaries(Boundary::OneSided));
    waves::<f64>(&EMULATOR, grid.expect("a grid"), 6, &[4]);
}

/// Two fields that change and one that does not, which is read in a box.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Pair {
    rate: f32,
}

impl PointUpdate<f32, 5, 2> for Pair {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 5] = [
        Reach::cube(1),
        Reach::axes([2, 1, 0]),
        // The past of both, and a coefficient.
        Reach::axes([1, 0, 0]),
        Reach::POINT,
        Reach::cube(1),
    ];
    const PAST: usize = 1;

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 2] {
        let corners = n.at::<0, -1, -1, 0>() + n.at::<0, 1, 1, 0>() - n.at::<0, 1, -1, 0>();
        let v = n.at::<1, -2, 0, 0>() + n.at::<1, 2, 0, 0>() + n.at::<1, 0, 1, 0>();
        let u = (n.at::<2, -1, 0, 0>() + n.at::<2, 1, 0, 0>()) * 0.25 - n.at::<3, 0, 0, 0>() * 0.5;
        let slope = n.at::<4, 1, 1, 0>() - n.at::<4, -1, -1, 0>();
        [
            (corners * 0.25 + u) * self.rate + slope,
            (v * 0.25 - n.at::<0, 0, 0, 0>() * 0.5) * self.rate,
        ]
    }
}

halo_stencil::stencil! {
    /// A step of both.
    pub pair: Pair, f32, (u, v, past_u, past_v, slope) -> (new_u, new_v)
}

fn pair_with_ends(
    ends: [[Boundary; 2]; 2],
) -> Result<Stencil<Pair, f32, 2, 5, 2>, halo_gpu::Error> {
    let grid = Grid2::new(Shape2::new(33, 29), [1.0; 2])?
        .with_ends(Axis::X, ends[0])?
        .with_ends(Axis::Y, ends[1])?;
    Stencil::new(Pair { rate: 0.5 }, grid)
}

#[test]
fn own_stencils_of_several_fields_with_a_past() {
    let periodic = [Boundary::Periodic; 2];
    let walls = [Boundary::Dirichlet(0.5), Boundary::NeumannHalfway];
    // The kernel of this suite is in no PTX, so that no CUDA device has it.
    for way in [CPU, EMULATOR] {
        for (ends, around, gives) in [
            ([periodic; 2], [true; 2], false),
            ([walls, periodic], [false, true], false),
            // With points whose values are given, from the first step on and later.
            ([periodic; 2], [true; 2], true),
            ([walls, periodic], [false, true], true),
        ] {
            let mut stencil = pair_with_ends(ends).expect("a stencil");
            if ends[0] == walls {
                // Another end for one field.
                let other = stencil.with_ends(1, Axis::X, [Boundary::Neumann, walls[0]]);
                stencil = other.expect("a stencil");
            }
            let value = |field: usize, [i, j]: [usize; 2]| noise::<f32>((field * 29 + j) * 33 + i);
            let inputs: [Vec<f32>; 5] = std::array::from_fn(|field| {
                (0..33 * 29)
                    .map(|at| value(field, [at % 33, at / 33]))
                    .collect()
            });
            let one = stencil.start(&way.one(), inputs.each_ref().map(Vec::as_slice));
            let mut one = one.expect("one device");
            let rim = || stencil.grid().rim([[1, 2], [2, 0]]);
            let inner = || (0..29).map(|j| [(j * 5) % 33, j]);
            let held = |[i, j]: [usize; 2]| noise::<f32>(7 * i + j);
            let driven =
                |[i, j]: [usize; 2], step: u64| noise::<f32>(i + 3 * j + 99 * step as usize);
            if gives {
                one.hold(1, rim(), held).expect("one device");
            }
            one.steps(5).expect("one device");
            if gives {
                one.drive(0, inner(), driven).expect("one device");
            }
            one.steps(6).expect("one device");
            let right: [_; 5] =
                std::array::from_fn(|field| bits(&one.to_vec(field).expect("one device")));
            for ranks in way.ranks() {
                for &width in test_cases::either(&[4][..], &[2, 4]) {
                    for cut in cuts([33, 29], ranks, around, width) {
                        let several = way.run(ranks, |communicator, device| {
                            let mut run = stencil::Run::new(
                                communicator,
                                device,
                                stencil,
                                cut,
                                width,
                                value,
                            )?;
                            if gives {
                                run.hold(1, rim(), held)?;
                            }
                            run.steps(5)?;
                            if gives {
                                run.drive(0, inner(), driven)?;
                            }
                            run.steps(6)?;
                            let all = (0..5).map(|field| Ok(bits(&run.gather(field)?)));
                            all.collect::<Result<Vec<_>, Error>>()
                        });
                        for all in several.expect("no rank fails") {
                            let what = (way.name, ranks, cut.parts(), width);
                            assert!(all == right, "{ends:?} {what:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn all_ranks_settle_after_the_step_of_one_device() {
    let shape = Shape3::new(9, 8, 16);
    let grid =
        Grid3::new(shape, [1.0; 3]).and_then(|it| it.with_boundaries(Boundary::Dirichlet(0.0)));
    let heat = Heat3d::new(grid.expect("a grid"));
    let value = |at| noise::<f64>(index(shape, at));
    let initial = Field3::from_fn(shape, |i, j, k| value([i, j, k])).expect("enough memory");
    for way in ways_of_steps() {
        for (tolerance, every, most) in [(1e-3, 1, 500), (1e-4, 7, 500), (1e-9, 6, 20)] {
            // A tolerance ten times as large is reached after fewer steps.
            let tolerance = test_cases::either(10.0, 1.0) * tolerance;
            let mut one = heat.start(&way.one(), &initial).expect("one device");
            let right = one.steps_until(tolerance, every, most).expect("one device");
            for ranks in way.ranks() {
                for cut in cuts([9, 8, 16], ranks, [false; 3], 2) {
                    let several = way.run(ranks, |communicator, device| {
                        let mut body = heat3d::start(communicator, device, &heat, cut, 2, value)?;
                        Ok((body.steps_until(tolerance, every, most)?, body.gather(0)?))
                    });
                    for (settled, all) in several.expect("no rank fails") {
                        assert_eq!(settled, right, "{ranks} ranks");
                        assert!(bits(&all) == bits(&one.to_vec(0).expect("one device")));
                    }
                }
            }
        }
    }
}

/// What all ranks say to a start that each tries.
fn refused<T: Send>(
    ranks: usize,
    start: impl Fn(&Communicator) -> Result<T, Error> + Sync,
) -> Vec<Error> {
    let all = run(ranks, |communicator| {
        Ok(start(&communicator).err().expect("it must be refused"))
    });
    all.expect("all ranks learn it")
}

#[test]
fn stencils_that_do_not_fit_are_refused_by_all_ranks() {
    let device = Device::cpu();
    let walls = [Boundary::Neumann; 2];
    let around = [Boundary::Periodic; 2];
    let attempt = |ends: [[Boundary; 2]; 2], points, periodic, width| {
        let stencil = pair_with_ends(ends).expect("a stencil");
        let errors = refused(2, |communicator| {
            let mut cut = Decomposition::slabs(points, 2)?;
            if periodic {
                cut = cut.periodic(1)?;
            }
            stencil::Run::new(communicator, &device, stencil, cut, width, |_, _| 0.0).map(drop)
        });
        for error in errors {
            assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
        }
    };
    attempt([walls; 2], [33, 30], false, 2);
    attempt([walls; 2], [33, 29], true, 2);
    attempt([walls, around], [33, 29], false, 2);
    attempt(
        [walls, [Boundary::PeriodicWithEndpoint; 2]],
        [33, 29],
        true,
        2,
    );
    attempt([walls; 2], [33, 29], false, 15);
    attempt([walls; 2], [33, 29], false, 0);
    // One field goes around, and one does not.
    let mixed = pair_with_ends([walls, around]).and_then(|it| it.with_ends(3, Axis::Y, walls));
    let mixed = mixed.expect("a stencil");
    let errors = refused(2, |communicator| {
        let cut = Decomposition::slabs([33, 29], 2)?.periodic(1)?;
        stencil::Run::new(communicator, &device, mixed, cut, 2, |_, _| 0.0).map(drop)
    });
    for error in errors {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
    // Cut along x, where the update reads 2 away.
    let errors = refused(2, |communicator| {
        let stencil = pair_with_ends([walls; 2])?;
        let cut = Decomposition::new([33, 29], [2, 1])?;
        stencil::Run::new(communicator, &device, stencil, cut, 1, |_, _| 0.0).map(drop)
    });
    assert!(
        errors[0].to_string().contains("at least 2"),
        "{}",
        errors[0]
    );
    // Another grid on each rank.
    let errors = refused(2, |communicator| {
        let boundary = Boundary::Dirichlet(communicator.rank() as f64);
        let stencil = pair_with_ends([[boundary; 2], walls])?;
        let cut = Decomposition::slabs([33, 29], 2)?;
        stencil::Run::new(communicator, &device, stencil, cut, 2, |_, _| 0.0).map(drop)
    });
    for error in errors {
        assert!(matches!(error, Error::Disagreement { .. }), "{error}");
    }
}

#[test]
fn points_that_are_none_are_refused() {
    let errors = refused(2, |communicator| {
        let stencil = pair_with_ends([[Boundary::Neumann; 2]; 2])?;
        let cut = Decomposition::slabs([33, 29], 2)?;
        let value = |_, _| 0.0;
        let device = Device::cpu();
        let mut run = stencil::Run::new(communicator, &device, stencil, cut, 2, value)?;
        assert!(matches!(run.gather(5), Err(Error::InvalidParameter { .. })));
        assert!(matches!(
            run.at(0, [0, 29]),
            Err(Error::InvalidParameter { .. })
        ));
        let outside = run.hold(0, [[3, 3], [33, 0]], |_| 1.0);
        assert!(matches!(outside, Err(Error::InvalidParameter { .. })));
        let no_output = run.drive(2, [[3, 3]], |_, _| 1.0);
        assert!(no_output.is_err());
        let ranks = communicator.rank();
        let different = run.hold(0, (0..=ranks).map(|i| [i, 0]), |_| 1.0);
        assert!(matches!(different, Err(Error::Disagreement { .. })));
        // The value of one rank's point.
        let no_number = run.hold(0, [[3, 3]], |_| f32::NAN);
        assert!(no_number.is_err());
        run.add(0, [33, 0], 1.0)
    });
    for error in errors {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
}

/// One rank alone has a velocity that the step is too long for: the others learn why it stops.
#[test]
fn a_velocity_of_one_rank_is_an_error_everywhere() {
    let errors = refused(3, |communicator| {
        let grid = Grid3::new(Shape3::new(5, 5, 24), [1.0; 3])?;
        let wave = Wave3d::new(grid.with_boundaries(Boundary::Neumann)?, 8)?;
        let cut = Decomposition::slabs([5, 5, 24], 3)?;
        let point = |[_, _, k]: [usize; 3]| wave3d::Point {
            now: 0.0_f32,
            before: 0.0,
            velocity: if k == 9 { 100.0 } else { 1.0 },
        };
        wave3d::start(communicator, &Device::cpu(), &wave, cut, 4, 0.1, point).map(drop)
    });
    assert!(
        matches!(&errors[1], Error::Device(halo_gpu::Error::Unstable { .. })),
        "{}",
        errors[1]
    );
    for rank in [0, 2] {
        assert!(
            matches!(&errors[rank], Error::Elsewhere { peer: 1, message, .. }
                if message.contains("stable")),
            "{}",
            errors[rank]
        );
    }
}

fn stars<T: Number>(way: &Way, n: u32, parts: u32) {
    let cluster = Cluster::<T>::plummer(n as usize, 3).expect("a cluster");
    let gravity = Gravity::new(0.05).and_then(|gravity| gravity.with_parts(parts));
    let gravity = gravity.expect("a softening");
    let (bodies, velocities) = (&cluster.bodies, &cluster.velocities);
    let mut one = gravity
        .start(&Device::cpu(), bodies, velocities, 1.0 / 256.0)
        .expect("one device");
    one.advance(5).expect("one device");
    let coordinates = |bodies: &[Body<T>]| {
        let all = bodies.iter().flat_map(|it| [it.x, it.y, it.z, it.mass]);
        bits(&all.collect::<Vec<_>>())
    };
    let energy = |energy: Energy| [energy.kinetic, energy.potential].map(f64::to_bits);
    let right = (
        coordinates(&one.bodies().expect("one device")),
        bits(one.velocities().expect("one device").as_flattened()),
        energy(one.energy().expect("one device")),
    );
    let most = gravity.plan_of_parts::<T>(&Device::cpu(), n as usize, 0..1);
    let most = most.expect("a part").parts() as usize;
    for ranks in way.ranks().filter(|&it| it <= most) {
        let several = way.run(ranks, |communicator, device| {
            let start = |body| (bodies[body], velocities[body]);
            let step = 1.0 / 256.0;
            let mut stars =
                nbody::Leapfrog::new(communicator, device, gravity, n as usize, step, start)?;
            stars.advance(2)?;
            stars.advance(3)?;
            assert_eq!((stars.steps(), stars.time()), (5, 5.0 / 256.0));
            Ok((
                coordinates(&stars.bodies()?),
                bits(stars.velocities()?.as_flattened()),
                energy(stars.energy()?),
            ))
        });
        for found in several.expect("no rank fails") {
            assert!(found == right, "{n} {} on {ranks} of {}", T::NAME, way.name);
        }
    }
}

/// On the CPU, whose bits are the reference; on GPUs the reference is one device with as many
/// parts.
#[test]
fn bodies_move_as_on_one_device() {
    stars::<f64>(&CPU, test_cases::either(520, 1000), 8);
    stars::<f32>(&CPU, test_cases::either(520, 777), 7);
    stars::<f32>(&CPU, 40, 1);
}

#[test]
fn bodies_that_cannot_move_are_refused_by_all_ranks() {
    let attempt = |step: f64, speed: f64| {
        refused(2, |communicator| {
            let gravity = Gravity::new(0.05)?.with_parts(4)?;
            let start = |number: usize| {
                let body = Body {
                    x: number as f64,
                    y: 0.0,
                    z: 0.0,
                    mass: 1.0,
                };
                (body, [if number == 390 { speed } else { 0.0 }; 3])
            };
            let device = Device::cpu();
            nbody::Leapfrog::new(communicator, &device, gravity, 400, step, start).map(drop)
        })
    };
    for error in attempt(0.0, 0.0) {
        assert!(matches!(error, Error::Device(_)), "{error}");
    }
    let errors = attempt(0.1, f64::INFINITY);
    assert!(matches!(&errors[0], Error::Elsewhere { peer: 1, .. }));
    assert!(matches!(
        &errors[1],
        Error::Device(halo_gpu::Error::InvalidElement { .. })
    ));
}
