//! Work of ranks that is recorded with its exchanges, as a graph where there is a GPU, has the bits
//! that it has without.

use crate::turned::{after, turned};
use crate::ways::{EMULATOR, Way, noise, ways_of_steps};
use halo_distributed::{Decomposition, Error, heat2d, nbody, wave3d};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::Gravity;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::wave3d::Wave3d;
use halo_gpu::{Boundary, DeviceKind, Grid3, Shape2, Shape3};

/// The ways and numbers of ranks that work can be recorded on.
fn recordable() -> Vec<(Way, usize)> {
    let mut all = Vec::new();
    for way in [ways_of_steps(), vec![EMULATOR]].concat() {
        // Copies between GPUs of a process are two threads' work.
        let most = if way.name == "cuda" { 1 } else { 3 };
        let ranks = (1..=most).filter(|&ranks| way.takes(ranks));
        all.extend(ranks.map(|ranks| (way.clone(), ranks)));
    }
    all
}

/// Each rank has counted so many steps and has the same results, recorded or not.
fn assert_alike<V: PartialEq>(of_ranks: Result<Vec<Vec<(u64, V)>>, Error>, steps: u64, what: &str) {
    for all in of_ranks.expect("no rank fails") {
        assert_eq!(all[0].0, steps);
        assert!(all[0] == all[1], "{what}");
    }
}

#[test]
fn each_replay_exchanges() {
    for (way, ranks) in recordable().into_iter().filter(|(_, ranks)| *ranks > 1) {
        let found = way.run(ranks, turned).expect("no rank fails").concat();
        assert_eq!(found, after(ranks), "{} on {ranks} ranks", way.name);
    }
}

#[test]
fn plates_have_their_bits() {
    let shape = Shape2::new(37, 41);
    let heat = Heat2d::dirichlet(shape).expect("a plate");
    // As many iterations as the ghost points allow, fewer, and more.
    for count in [4, 3, 9] {
        for (way, ranks) in recordable() {
            let plates = way.run(ranks, |communicator, device| {
                let cut = Decomposition::slabs([37, 41], ranks)?;
                let value = |[i, j]: [usize; 2]| noise::<f32>(37 * j + i);
                let mut all = Vec::new();
                for is_recorded in [false, true] {
                    let mut plate = heat2d::Plate::new(communicator, device, heat, cut, 4, value)?;
                    plate.iterate(5)?;
                    if is_recorded {
                        let mut replay = communicator.record(device, 3, || plate.iterate(count))?;
                        replay.run()?;
                        replay.run()?;
                    } else {
                        plate.iterate(7 * count)?;
                    }
                    plate.iterate(2)?;
                    all.push((plate.iterations(), plate.field()?.into_vec()));
                }
                Ok(all)
            });
            let what = format!("{} on {ranks}, by {count}", way.name);
            assert_alike(plates, 7 * count as u64 + 7, &what);
        }
    }
}

#[test]
fn waves_have_their_bits() {
    let grid = Grid3::new(Shape3::new(9, 10, 25), [1.0; 3]).expect("a grid");
    let grid = grid.with_boundaries(Boundary::NeumannHalfway);
    let wave = Wave3d::new(grid.expect("boundaries"), 4).expect("an accuracy");
    for (way, ranks) in recordable() {
        let waves = way.run(ranks, |communicator, device| {
            let cut = Decomposition::slabs([9, 10, 25], ranks)?;
            let point = |[i, j, k]: [usize; 3]| {
                let now = noise::<f32>((k * 10 + j) * 9 + i);
                wave3d::Point {
                    now,
                    before: now,
                    velocity: 1.0,
                }
            };
            let mut all = Vec::new();
            for is_recorded in [false, true] {
                let mut waves = wave3d::start(communicator, device, &wave, cut, 4, 0.3, point)?;
                waves.steps(1)?;
                if is_recorded {
                    // The two fields change places: after two steps each is where it was.
                    let mut replay = communicator.record(device, 2, || waves.steps(2))?;
                    replay.run()?;
                    replay.run()?;
                } else {
                    waves.steps(10)?;
                }
                waves.steps(1)?;
                all.push((waves.steps_taken(), waves.gather(0)?));
            }
            Ok(all)
        });
        assert_alike(waves, 12, &format!("{} on {ranks}", way.name));
    }
}

#[test]
fn bodies_have_their_bits() {
    let cluster = Cluster::<f32>::plummer(300, 1).expect("bodies");
    let gravity = Gravity::new(0.05).and_then(|it| it.with_parts(4));
    let gravity = gravity.expect("a softening");
    for (way, ranks) in recordable() {
        let stars = way.run(ranks, |communicator, device| {
            let start = |body: usize| (cluster.bodies[body], cluster.velocities[body]);
            let mut all = Vec::new();
            for is_recorded in [false, true] {
                let step = 1.0 / 256.0;
                let mut stars =
                    nbody::Leapfrog::new(communicator, device, gravity, 300, step, start)?;
                if is_recorded {
                    let mut replay = communicator.record(device, 3, || stars.advance(1))?;
                    replay.run()?;
                    replay.run()?;
                } else {
                    stars.advance(7)?;
                }
                all.push((stars.steps(), stars.bodies()?));
            }
            Ok(all)
        });
        assert_alike(stars, 7, &format!("{} on {ranks}", way.name));
    }
}

/// Work that fails says why, on its own rank and on the others.
#[test]
fn errors_of_recorded_work_are_kept() {
    let (way, ranks) = (EMULATOR, 2);
    let errors = way.run(ranks, |communicator, device| {
        let error = Error::NoSuchRank { given: 7, ranks };
        let mut fails = communicator.rank() == 0;
        let mut error = Some(error).filter(|_| std::mem::take(&mut fails));
        let recorded = communicator.record(device, 1, || error.take().map_or(Ok(()), Err));
        Ok(recorded.map(drop).expect_err("one rank fails"))
    });
    let errors = errors.expect("all learn it");
    assert!(matches!(errors[0], Error::NoSuchRank { given: 7, .. }));
    assert!(matches!(errors[1], Error::Elsewhere { peer: 0, .. }));
}

/// Copies between the GPUs of a process are refused at once.
#[test]
fn what_cannot_be_recorded_is_refused() {
    for way in ways_of_steps() {
        if way.name != "cuda" {
            continue;
        }
        let errors = way.run(2, |communicator, device| {
            assert_eq!(device.kind(), DeviceKind::Cuda);
            let recorded = communicator.record(device, 1, || Ok(()));
            Ok(recorded.map(drop).expect_err("two threads"))
        });
        for error in errors.expect("both learn it") {
            assert!(matches!(error, Error::NotRecordable { .. }), "{error}");
        }
    }
}
