//! Fields in files that all ranks read and write, and checkpoints: the bits of a run that was
//! never stopped, on any number of ranks; and what becomes of files that are not as they should be.

use crate::ways::{CPU, Way, bits, noise, ways};
use halo_distributed::checkpoint::{Checkpoint, Checkpoints};
use halo_distributed::{
    Communicator, Decomposition, Error, Stored, heat2d, heat3d, nbody, npy, run, stencil, wave3d,
};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::heat3d::Heat3d;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::wave3d::{Layer, Wave3d};
use halo_gpu::{Boundary, Device, Grid2, Grid3, Shape2, Shape3, test_cases};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a field has at a point of a grid: another number everywhere.
fn number<const D: usize>(points: [usize; D], at: [usize; D]) -> usize {
    (0..D)
        .rev()
        .fold(0, |index, axis| index * points[axis] + at[axis])
}

fn round_trip<T: Stored + Debug, const D: usize>(
    points: [usize; D],
    from: [usize; D],
    to: [usize; D],
    value: impl Fn(usize) -> T + Sync,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.npy");
    let of = |parts: [usize; D]| Decomposition::new(points, parts).expect("a cut");
    let (from, to) = (of(from), of(to));
    let written = run(from.ranks(), |communicator| {
        let own = from.values(communicator.rank(), |at| value(number(points, at)))?;
        npy::write(&communicator, &path, &from, &own)
    });
    written.expect("it is written");
    // As it would be in memory, behind a header.
    let bytes = fs::read(&path).expect("a file");
    let all: Vec<T> = (0..points.iter().product()).map(&value).collect();
    let all: &[u8] = bytemuck::cast_slice(&all);
    let header = bytes.strip_suffix(all).expect("the elements in order");
    assert_eq!(header.len() % 64, 0);
    assert!(!folder.path().join("field.npy.part").exists());
    let read = run(to.ranks(), |communicator| {
        let share = npy::read::<T, D>(&communicator, &path, &to)?;
        for at in share.block().points() {
            assert_eq!(share[at], value(number(points, at)));
        }
        Ok(share.values().len())
    });
    let read: usize = read.expect("it is read").into_iter().sum();
    assert_eq!(read * size_of::<T>(), all.len());
}

#[test]
fn fields_come_back_from_npy_in_any_cut() {
    round_trip([41], [3], [7], |i| i as f64 / 7.0);
    round_trip([13, 9], [1, 4], [3, 1], |i| i as f32);
    round_trip([13, 9], [2, 2], [1, 1], |i| i as i64 - 50);
    round_trip([6, 7, 8], [2, 2, 1], [1, 1, 7], |i| (i % 251) as u8);
    round_trip([6, 7, 8], [1, 1, 1], [3, 2, 1], |i| i as i16);
}

/// Files that NumPy has written, byte by byte: `numpy.save` of a 2 × 3 array of f4, in both orders.
#[test]
fn files_of_numpy_are_read_in_either_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.npy");
    for (version, fortran, shape) in [
        (1, "False", "(2, 3)"),
        (2, "False", "(2, 3)"),
        (1, "True", "(3, 2)"),
    ] {
        let text = format!("{{'descr': '<f4', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let text = format!("{text:<117}\n");
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.extend([version, 0]);
        bytes.extend((text.len() as u16).to_le_bytes());
        if version == 2 {
            bytes.extend([0, 0]);
        }
        bytes.extend(text.bytes());
        bytes.extend(
            [0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]
                .map(f32::to_le_bytes)
                .as_flattened(),
        );
        fs::write(&path, bytes).expect("a file");
        let read = run(2, |communicator| {
            let columns = Decomposition::new([3, 2], [2, 1])?;
            Ok(npy::read::<f32, 2>(&communicator, &path, &columns)?
                .values()
                .to_vec())
        });
        let right = [vec![0.0, 1.0, 3.0, 4.0], vec![2.0, 5.0]];
        assert_eq!(read.expect("it is read"), right, "{fortran}");
    }
}

/// The errors of two ranks that read such a file.
fn refused(bytes: &[u8]) -> Vec<Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.npy");
    fs::write(&path, bytes).expect("a file");
    let errors = run(2, |communicator| {
        let cut = Decomposition::slabs([3, 2], 2)?;
        let read = npy::read::<f32, 2>(&communicator, &path, &cut);
        Ok(read.expect_err("it must be refused"))
    });
    errors.expect("all ranks learn it")
}

fn npy_of(text: &str, elements: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.bytes());
    bytes.extend(std::iter::repeat_n(0, 4 * elements));
    bytes
}

#[test]
fn files_of_something_else_are_refused_by_all_ranks() {
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    for (descr, shape, what) in [
        (
            "'<f8'",
            "(2, 3)",
            "the type of its elements is <f8, but must be <f4",
        ),
        (
            "'>f4'",
            "(2, 3)",
            "the type of its elements is >f4, but must be <f4",
        ),
        ("[('a', '<f4')]", "(2, 3)", "the type of its elements"),
        ("'<f4'", "(3, 2)", "its shape is [3, 2], but must be [2, 3]"),
        ("'<f4'", "(6,)", "its shape is [6], but must be [2, 3]"),
        ("'<f4'", "()", "its shape is [], but must be [2, 3]"),
        ("'<f4'", "(4294967296, 4294967296, 3)", "its shape"),
    ] {
        for error in refused(&npy_of(&header(descr, shape), 6)) {
            assert!(matches!(error, Error::Unfit { .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
    for elements in [5, 7] {
        for error in refused(&npy_of(&header("'<f4'", "(2, 3)"), elements)) {
            assert!(matches!(error, Error::FileLength { .. }), "{error}");
        }
    }
    let whole = npy_of(&header("'<f4'", "(2, 3)"), 6);
    let mut other = whole.clone();
    other[6] = 9;
    for bytes in [
        &whole[..5],
        &whole[..9],
        &whole[..30],
        &other,
        b"GIF89a, which is no .npy file",
        &npy_of("{'descr': '<f4'}", 6),
        &npy_of("{'descr': '<f4', 'fortran_order': 3, 'shape': (2, 3)}", 6),
        &npy_of(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}",
            6,
        ),
        &npy_of(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1e3)}",
            6,
        ),
        &npy_of("(2, 3)", 6),
        &npy_of(&"(".repeat(60_000), 6),
        &[&b"\x93NUMPY\x02\x00\xff\xff\xff\xff"[..], &whole].concat(),
    ] {
        for error in refused(bytes) {
            assert!(matches!(error, Error::File { .. }), "{error}");
        }
    }
}

/// A file that one rank cannot read or write is an error on all ranks, and the old file stays.
#[test]
fn what_cannot_be_written_is_an_error_everywhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("no such folder").join("field.npy");
    let errors = run(3, |communicator| {
        let cut = Decomposition::slabs([6], 3)?;
        let write = |path: &Path, own: &[f32]| {
            let written = npy::write(&communicator, path, &cut, own);
            written.expect_err("it must be refused")
        };
        let read = npy::read::<f32, 1>(&communicator, &path, &cut);
        Ok([
            write(&path, &[1.0, 2.0]),
            // One rank has too few.
            write(folder.path(), &[1.0, 2.0][communicator.rank() / 2..]),
            read.expect_err("there is none"),
        ])
    });
    for (rank, errors) in errors.expect("all learn it").into_iter().enumerate() {
        let [nowhere, few, none] = &errors;
        let is_first = |error| matches!(error, &&Error::File { .. });
        let is_other = |error| matches!(error, &&Error::Elsewhere { peer: 0, .. });
        assert!(
            if rank == 0 {
                is_first(&nowhere)
            } else {
                is_other(&nowhere)
            },
            "{nowhere}"
        );
        assert!(
            matches!(few, Error::InvalidParameter { .. } if rank == 2)
                || matches!(few, Error::Elsewhere { peer: 2, .. } if rank < 2),
            "{few}"
        );
        assert!(is_first(&none), "{none}");
    }
    // A folder stands in the file's place: the temporary file is removed.
    let taken = folder.path().join("taken.npy");
    fs::create_dir(&taken).expect("a folder");
    fs::write(taken.join("something"), "kept").expect("a file");
    let errors = run(2, |communicator| {
        let cut = Decomposition::slabs([2], 2)?;
        let written = npy::write(&communicator, &taken, &cut, &[1.0_f32]);
        Ok(written.expect_err("it must be refused"))
    });
    assert!(matches!(
        errors.expect("all learn it")[0],
        Error::File { .. }
    ));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    assert!(taken.join("something").exists());
}

/// Numbers of ranks before and after, with the cuts of three axes.
const MOVES: [([usize; 3], [usize; 3]); 4] = [
    ([1, 1, 1], [1, 1, 3]),
    ([1, 1, 3], [1, 2, 1]),
    ([2, 1, 2], [1, 1, 7]),
    ([1, 1, 7], [1, 1, 1]),
];

/// That a run which is stopped after 11 steps, and taken up by other ranks, ends after 9 more
/// with the bits of one that is not stopped.
fn taken_up<R: PartialEq + Send>(
    way: &Way,
    name: &str,
    right: &R,
    first: impl Fn(&Communicator, &Device, [usize; 3], &Checkpoints) -> Result<PathBuf, Error> + Sync,
    rest: impl Fn(&Communicator, &Device, [usize; 3], &Checkpoint) -> Result<R, Error> + Sync,
) {
    for &(from, to) in test_cases::either(&MOVES[1..3], &MOVES) {
        let ranks = |parts: [usize; 3]| parts.iter().product();
        if !way.takes(ranks(from)) || !way.takes(ranks(to)) {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let checkpoints = Checkpoints::new(folder.path().join("run"));
        let none = way.run(1, |communicator, _| checkpoints.last(communicator));
        assert!(none.expect("no folder is no error")[0].is_none());
        let saved = way.run(ranks(from), |communicator, device| {
            first(communicator, device, from, &checkpoints)
        });
        let saved = saved.unwrap_or_else(|error| panic!("{name}, {from:?}: {error}"));
        let found = way.run(ranks(to), |communicator, device| {
            let last = checkpoints.last(communicator)?.expect("one was saved");
            assert_eq!((last.steps(), last.path()), (11, &*saved[0]));
            rest(communicator, device, to, &last)
        });
        for found in found.unwrap_or_else(|error| panic!("{name}, {to:?}: {error}")) {
            assert!(
                found == *right,
                "{name}, {}: from {from:?} to {to:?}",
                way.name
            );
        }
    }
}

/// The same cut of two axes.
const fn flat([x, y, z]: [usize; 3]) -> [usize; 2] {
    [x, y * z]
}

#[test]
fn plates_are_taken_up_with_their_bits() {
    let shape = Shape2::new(40, 45);
    let grid = Grid2::new(shape, [1.0; 2]).and_then(|it| it.with_boundaries(Boundary::Neumann));
    let heat = grid.and_then(|grid| Heat2d::new(&grid)).expect("a plate");
    let value = |[i, j]: [usize; 2]| noise::<f32>(j * 40 + i);
    let cut = |parts| Decomposition::new([40, 45], flat(parts));
    for way in ways() {
        let right = way.run(1, |communicator, device| {
            let cut = cut([1; 3])?;
            let mut plate = heat2d::Plate::new(communicator, device, heat, cut, 4, value)?;
            plate.iterate(20)?;
            Ok(bits(plate.field()?.as_slice()))
        });
        taken_up(
            &way,
            "heat2d",
            &right.expect("one rank")[0],
            |communicator, device, parts, checkpoints| {
                let cut = cut(parts)?;
                let mut plate = heat2d::Plate::new(communicator, device, heat, cut, 4, value)?;
                plate.iterate(11)?;
                plate.save(checkpoints)
            },
            |communicator, device, parts, last| {
                let cut = cut(parts)?;
                let mut plate =
                    heat2d::Plate::<f32>::restore(communicator, device, heat, cut, 3, last)?;
                plate.iterate(9)?;
                assert_eq!(plate.iterations(), 20);
                Ok(bits(plate.field()?.as_slice()))
            },
        );
    }
}

const POINTS: [usize; 3] = [11, 12, 35];

fn space(boundary: Boundary) -> Grid3 {
    let grid = Grid3::new(Shape3::new(11, 12, 35), [1.0, 1.25, 0.75]);
    let grid = grid.and_then(|it| it.with_boundaries(boundary));
    grid.expect("a grid")
}

#[test]
fn heat_in_space_is_taken_up_with_its_bits() {
    let heat = Heat3d::new(space(Boundary::Neumann));
    let value = |at| noise::<f64>(number(POINTS, at));
    let cut = |parts| Decomposition::new(POINTS, parts);
    for way in ways() {
        let right = way.run(1, |communicator, device| {
            let mut body = heat3d::start(communicator, device, &heat, cut([1; 3])?, 1, value)?;
            body.steps(20)?;
            Ok(bits(&body.gather(0)?))
        });
        taken_up(
            &way,
            "heat3d",
            &right.expect("one rank")[0],
            |communicator, device, parts, checkpoints| {
                let mut body = heat3d::start(communicator, device, &heat, cut(parts)?, 2, value)?;
                body.steps(11)?;
                body.save(checkpoints)
            },
            |communicator, device, parts, last| {
                let cut = cut(parts)?;
                let mut body = heat3d::restore::<f64>(communicator, device, &heat, cut, 3, last)?;
                body.steps(9)?;
                assert_eq!(body.steps_taken(), 20);
                Ok(bits(&body.gather(0)?))
            },
        );
    }
}

fn point(at: [usize; 3]) -> wave3d::Point<f32> {
    let number = number(POINTS, at);
    wave3d::Point {
        now: noise(number),
        before: noise(number + 77),
        velocity: 1.5 + 0.5 * noise::<f32>(number + 9999),
    }
}

#[test]
fn waves_are_taken_up_with_their_bits() {
    let wave = Wave3d::new(space(Boundary::OneSided), 8).expect("waves");
    let (step, layer) = (
        0.1,
        Layer {
            points: 3,
            reflection: 0.01,
        },
    );
    let cut = |parts| Decomposition::new(POINTS, parts);
    for way in ways() {
        let right = way.run(1, |communicator, device| {
            let cut = cut([1; 3])?;
            let mut closed = wave3d::start(communicator, device, &wave, cut, 4, step, point)?;
            closed.steps(20)?;
            let mut open =
                wave3d::start_absorbing(communicator, device, &wave, cut, 4, step, layer, point)?;
            open.steps(20)?;
            Ok([&closed.gather(0)?, &closed.gather(1)?, &open.gather(0)?].map(|it| bits(it)))
        });
        let right = &right.expect("one rank")[0];
        taken_up(
            &way,
            "wave3d",
            &[right[0].clone(), right[1].clone()],
            |communicator, device, parts, checkpoints| {
                let cut = cut(parts)?;
                let mut waves = wave3d::start(communicator, device, &wave, cut, 4, step, point)?;
                waves.steps(11)?;
                waves.save(checkpoints)
            },
            |communicator, device, parts, last| {
                let cut = cut(parts)?;
                let mut waves = wave3d::restore::<f32>(communicator, device, &wave, cut, 5, last)?;
                waves.steps(9)?;
                Ok([&waves.gather(0)?, &waves.gather(1)?].map(|it| bits(it)))
            },
        );
        taken_up(
            &way,
            "wave3d with layers",
            &right[2],
            |communicator, device, parts, checkpoints| {
                let cut = cut(parts)?;
                let mut waves = wave3d::start_absorbing(
                    communicator,
                    device,
                    &wave,
                    cut,
                    5,
                    step,
                    layer,
                    point,
                )?;
                waves.steps(11)?;
                waves.save(checkpoints)
            },
            |communicator, device, parts, last| {
                let cut = cut(parts)?;
                let mut waves =
                    wave3d::restore_absorbing::<f32>(communicator, device, &wave, cut, 4, last)?;
                waves.steps(9)?;
                Ok(bits(&waves.gather(0)?))
            },
        );
    }
}

/// A field that is driven by another, which changes too.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Driven {
    rate: f64,
}

impl PointUpdate<f64, 3, 2> for Driven {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 3] = [Reach::cube(1), Reach::axes([2, 1, 0]), Reach::POINT];

    #[inline(always)]
    fn update<N: Neighbourhood<f64>>(&self, n: &N) -> [N::Value; 2] {
        let u = n.at::<0, -1, -1, 0>() + n.at::<0, 1, 1, 0>() - n.at::<0, 1, -1, 0>();
        let v = n.at::<1, -2, 0, 0>() + n.at::<1, 2, 0, 0>() + n.at::<1, 0, 1, 0>();
        [
            u * 0.25 + v * self.rate,
            v * 0.25 - n.at::<0, 0, 0, 0>() * n.at::<2, 0, 0, 0>(),
        ]
    }
}

halo_stencil::stencil! {
    /// A step of both.
    pub driven: Driven, f64, (u, v, rate) -> (new_u, new_v)
}

fn driven_by(rate: f64) -> Stencil<Driven, f64, 2, 3, 2> {
    let grid = Grid2::new(Shape2::new(29, 31), [1.0; 2]);
    let grid = grid.and_then(|it| it.with_boundaries(Boundary::Dirichlet(0.5)));
    let stencil = grid.and_then(|grid| Stencil::new(Driven { rate }, grid));
    stencil.expect("a stencil")
}

#[test]
fn own_stencils_are_taken_up_with_their_bits() {
    let stencil = driven_by(0.125);
    let value = |field: usize, [i, j]: [usize; 2]| noise::<f64>((field * 31 + j) * 29 + i);
    let cut = |parts| Decomposition::new([29, 31], flat(parts));
    let all = |run: &stencil::Run<'_, Driven, f64, 2, 3, 2>| -> Result<_, Error> {
        Ok([
            bits(&run.gather(0)?),
            bits(&run.gather(1)?),
            bits(&run.gather(2)?),
        ])
    };
    // The kernel of this suite is in no PTX, so that no CUDA device has it.
    let right = CPU.run(1, |communicator, device| {
        let cut = cut([1; 3])?;
        let mut run = stencil::Run::new(communicator, device, stencil, cut, 2, value)?;
        run.steps(20)?;
        all(&run)
    });
    let begin = |communicator: &Communicator, parts, checkpoints: &Checkpoints| {
        let device = Device::cpu();
        let mut run = stencil::Run::new(communicator, &device, stencil, cut(parts)?, 2, value)?;
        run.steps(11)?;
        run.save(checkpoints)
    };
    taken_up(
        &CPU,
        "a stencil",
        &right.expect("one rank")[0],
        |communicator, _, parts, checkpoints| begin(communicator, parts, checkpoints),
        |communicator, device, parts, last| {
            let other = driven_by(0.25);
            let wrong = stencil::Run::restore(communicator, device, other, cut(parts)?, 2, last);
            let wrong = wrong.expect_err("another rate");
            assert!(
                matches!(
                    wrong,
                    Error::Unfit {
                        what: "its problem",
                        ..
                    }
                ),
                "{wrong}"
            );
            let mut run =
                stencil::Run::restore(communicator, device, stencil, cut(parts)?, 4, last)?;
            run.steps(9)?;
            all(&run)
        },
    );
}

#[test]
fn bodies_are_taken_up_with_their_bits() {
    const N: usize = 777;
    let after = test_cases::either(2, 9);
    let steps = 11 + after;
    let cluster = Cluster::<f64>::plummer(N, 3).expect("a cluster");
    let gravity = Gravity::new(0.05)
        .and_then(|it| it.with_parts(7))
        .expect("a softening");
    let step = 1.0 / 256.0;
    let start = |body: usize| (cluster.bodies[body], cluster.velocities[body]);
    let coordinates = |bodies: &[Body<f64>]| {
        let all = bodies.iter().flat_map(|it| [it.x, it.y, it.z, it.mass]);
        bits(&all.collect::<Vec<_>>())
    };
    let mut one = gravity
        .start(&Device::cpu(), &cluster.bodies, &cluster.velocities, step)
        .expect("one device");
    one.advance(steps).expect("one device");
    let right = (
        coordinates(&one.bodies().expect("one device")),
        bits(one.velocities().expect("one device").as_flattened()),
    );
    taken_up(
        &CPU,
        "nbody",
        &right,
        |communicator, device, _, checkpoints| {
            let mut stars = nbody::Leapfrog::new(communicator, device, gravity, N, step, start)?;
            stars.advance(11)?;
            stars.save(checkpoints)
        },
        |communicator, device, _, last| {
            for (gravity, n, step) in [
                (gravity, N, 0.5 * step),
                (gravity, N + 1, step),
                (Gravity::new(0.05)?.with_parts(5)?, N, step),
                (Gravity::new(0.06)?.with_parts(7)?, N, step),
            ] {
                let wrong =
                    nbody::Leapfrog::<f64>::restore(communicator, device, gravity, n, step, last);
                assert!(matches!(wrong, Err(Error::Unfit { .. })));
            }
            let mut stars =
                nbody::Leapfrog::<f64>::restore(communicator, device, gravity, N, step, last)?;
            stars.advance(after)?;
            assert_eq!((stars.steps(), stars.time()), (steps, steps as f64 * step));
            Ok((
                coordinates(&stars.bodies()?),
                bits(stars.velocities()?.as_flattened()),
            ))
        },
    );
}

// --- checkpoints that are not as they should be ---------------------------------

const PLATE: [usize; 2] = [64, 48];

fn plate_heat() -> Heat2d {
    Heat2d::dirichlet(Shape2::new(64, 48)).expect("a plate")
}

fn plate_value([i, j]: [usize; 2]) -> f32 {
    ((7 * i + 13 * j) % 31) as f32
}

/// Two ranks save a plate after each of these numbers of iterations.
fn saved_after(checkpoints: &Checkpoints, iterations: &[usize]) {
    let saved = run(2, |communicator| {
        let (device, rows) = (Device::cpu(), Decomposition::slabs(PLATE, 2)?);
        let heat = plate_heat();
        let mut plate = heat2d::Plate::new(&communicator, &device, heat, rows, 2, plate_value)?;
        for &count in iterations {
            plate.iterate(count)?;
            plate.save(checkpoints)?;
        }
        Ok(())
    });
    saved.expect("it is saved");
}

/// The iterations and the temperatures of the last checkpoint that is whole, as three ranks read
/// it.
fn last_of(checkpoints: &Checkpoints) -> Result<Option<(u64, Vec<f32>)>, Error> {
    let all = run(3, |communicator| {
        let (device, rows) = (Device::cpu(), Decomposition::slabs(PLATE, 3)?);
        let Some(last) = checkpoints.last(&communicator)? else {
            return Ok(None);
        };
        let heat = plate_heat();
        let plate = heat2d::Plate::restore(&communicator, &device, heat, rows, 2, &last)?;
        Ok(Some((
            plate.iterations(),
            plate.field()?.as_slice().to_vec(),
        )))
    })?;
    Ok(all.into_iter().next().flatten())
}

fn plate_after(iterations: u64) -> Vec<f32> {
    let one = run(1, |communicator| {
        let (device, whole) = (Device::cpu(), Decomposition::slabs(PLATE, 1)?);
        let heat = plate_heat();
        let mut plate = heat2d::Plate::new(&communicator, &device, heat, whole, 2, plate_value)?;
        plate.iterate(iterations as usize)?;
        Ok(plate.field()?.as_slice().to_vec())
    });
    one.expect("one rank").swap_remove(0)
}

#[test]
fn what_was_cut_short_is_not_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let checkpoints = Checkpoints::new(folder.path());
    saved_after(&checkpoints, &[3, 4, 5]);
    let right = plate_after(12);
    assert_eq!(
        last_of(&checkpoints).expect("a whole one"),
        Some((12, right))
    );

    // The record was not written to its end, or not at all.
    let record = at("000003").join("checkpoint.json");
    let text = fs::read(&record).expect("a record");
    for len in [0, 1, text.len() / 2, text.len() - 1] {
        fs::write(&record, &text[..len]).expect("a record");
        let last = last_of(&checkpoints).expect("a whole one").expect("one");
        assert_eq!(last.0, 7, "{len} of {} bytes", text.len());
    }
    fs::remove_file(&record).expect("a record");
    assert_eq!(
        last_of(&checkpoints).expect("a whole one").expect("one").0,
        7
    );
    // A field was cut short, or is missing.
    let field = at("000002").join("0.npy");
    let bytes = fs::read(&field).expect("a field");
    fs::write(&field, &bytes[..bytes.len() - 1]).expect("a field");
    assert_eq!(
        last_of(&checkpoints).expect("a whole one").expect("one").0,
        3
    );
    fs::remove_file(&field).expect("a field");
    let right = plate_after(3);
    assert_eq!(
        last_of(&checkpoints).expect("a whole one"),
        Some((3, right))
    );

    // The folder that a kill has left. It has no number yet.
    fs::rename(at("000001"), at("000004.part")).expect("a folder");
    assert_eq!(last_of(&checkpoints).expect("no whole one"), None);
    // The next checkpoint takes none of their numbers, and incomplete ones are removed.
    saved_after(&checkpoints, &[6]);
    assert_eq!(
        last_of(&checkpoints).expect("a whole one").expect("one").0,
        6
    );
    assert!(at("000004").exists() && !at("000004.part").exists());

    // Of more than are kept the first go.
    saved_after(&Checkpoints::new(folder.path()).keeping(2), &[1, 1, 1]);
    let all = run(2, |communicator| {
        let all = checkpoints.all(&communicator)?;
        Ok(all.iter().map(Checkpoint::steps).collect::<Vec<_>>())
    });
    assert_eq!(all.expect("two"), [[2, 3], [2, 3]]);
}

#[test]
fn what_was_corrupted_is_refused_and_leaves_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    saved_after(&checkpoints, &[3, 4]);
    let field = folder.path().join("000002").join("0.npy");
    let mut bytes = fs::read(&field).expect("a field");
    // One bit of an element of a later rank.
    let at = bytes.len() - 3;
    bytes[at] ^= 0x10;
    fs::write(&field, &bytes).expect("a field");
    let errors = run(3, |communicator| {
        let (device, rows) = (Device::cpu(), Decomposition::slabs(PLATE, 3)?);
        let mut all = checkpoints.all(&communicator)?;
        let restore = |checkpoint: &Checkpoint| {
            heat2d::Plate::<f32>::restore(&communicator, &device, plate_heat(), rows, 2, checkpoint)
        };
        let error = restore(&all.pop().expect("two")).expect_err("a bit has changed");
        let before = restore(&all.pop().expect("two"))?;
        Ok((error, before.iterations()))
    });
    for (error, before) in errors.expect("all learn it") {
        assert!(
            matches!(&error, Error::Corrupted { path, .. } if *path == field),
            "{error}"
        );
        assert_eq!(before, 3);
    }
}

#[test]
fn checkpoints_of_something_else_are_refused_by_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    saved_after(&checkpoints, &[3]);
    let attempt = |what: &str, heat: Heat2d, double: bool| {
        let Shape2 { nx, ny } = heat.shape();
        let errors = run(2, |communicator| {
            let (device, rows) = (Device::cpu(), Decomposition::slabs([nx, ny], 2)?);
            let last = checkpoints.last(&communicator)?.expect("one was saved");
            Ok(if double {
                heat2d::Plate::<f64>::restore(&communicator, &device, heat, rows, 2, &last).err()
            } else {
                heat2d::Plate::<f32>::restore(&communicator, &device, heat, rows, 2, &last).err()
            })
        });
        for error in errors.expect("all learn it") {
            let error = error.expect("it must be refused");
            assert!(matches!(error, Error::Unfit { .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    };
    let other = |nx| Heat2d::dirichlet(Shape2::new(nx, 48)).expect("a plate");
    attempt(
        "its shape is [64, 48], but must be [65, 48]",
        other(65),
        false,
    );
    attempt(
        "the type of its numbers is f32, but must be f64",
        other(64),
        true,
    );
    let grid = Grid2::new(Shape2::new(64, 48), [1.0; 2]).expect("a grid");
    let cold = grid
        .with_boundaries(Boundary::Neumann)
        .and_then(|it| Heat2d::new(&it));
    attempt("its problem", cold.expect("a plate"), false);
    let errors = run(2, |communicator| {
        let last = checkpoints.last(&communicator)?.expect("one was saved");
        let cut =
            Decomposition::slabs([64, 48, 1], 2).or(Decomposition::new([64, 48, 1], [1, 2, 1]))?;
        let grid =
            Grid3::new(Shape3::new(64, 48, 1), [1.0; 3])?.with_boundaries(Boundary::Neumann)?;
        let device = Device::cpu();
        let body =
            heat3d::restore::<f32>(&communicator, &device, &Heat3d::new(grid), cut, 1, &last);
        Ok(body.expect_err("a plate"))
    });
    for error in errors.expect("all learn it") {
        assert!(
            error
                .to_string()
                .contains("the family is heat2d, but must be stencil"),
            "{error}"
        );
    }
    // Of a later version of this library.
    let record = folder.path().join("000001").join("checkpoint.json");
    let text = fs::read_to_string(&record).expect("a record");
    let later = text.replace("\"format\": 1", "\"format\": 2");
    assert_ne!(text, later);
    fs::write(&record, later).expect("a record");
    let error = last_of(&checkpoints).expect_err("of another version");
    assert!(error.to_string().contains("is 2, but must be 1"), "{error}");
}

const KILLED: &str = "HALO_KILLED_IN";

/// A process that saves one checkpoint after the other is killed, again and again, at any moment.
/// Each time the last whole checkpoint exists, with the bits of its number of iterations.
#[test]
fn a_kill_leaves_the_last_whole_checkpoint() {
    let name = "files::a_kill_leaves_the_last_whole_checkpoint";
    if let Ok(folder) = std::env::var(KILLED) {
        let checkpoints = Checkpoints::new(folder).keeping(3);
        let ends = run(2, |communicator| {
            let (device, rows) = (Device::cpu(), Decomposition::slabs(PLATE, 2)?);
            let heat = plate_heat();
            let mut plate = match checkpoints.last(&communicator)? {
                Some(last) => heat2d::Plate::restore(&communicator, &device, heat, rows, 2, &last)?,
                None => heat2d::Plate::new(&communicator, &device, heat, rows, 2, plate_value)?,
            };
            loop {
                plate.iterate(1)?;
                plate.save(&checkpoints)?;
            }
            #[allow(unreachable_code, reason = "the type of what never comes")]
            Ok(())
        });
        panic!("it ends by a kill alone: {ends:?}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let checkpoints = Checkpoints::new(folder.path());
    let mut before = 0;
    for round in 0..8 {
        let mut child = Command::new(std::env::current_exe().expect("the path of this test"))
            .args(["--exact", name, "--nocapture"])
            .env(KILLED, folder.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("this test");
        // Until it has got further, and then into the midst of something.
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            let names = fs::read_dir(folder.path()).expect("the folder").flatten();
            let whole = names.filter_map(|it| it.file_name().to_str()?.parse::<u64>().ok());
            if whole.max().unwrap_or(0) > before {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().expect("it runs for ever");
        let _ = child.wait().expect("a child");
        let (iterations, values) = last_of(&checkpoints).expect("a whole one").expect("one");
        assert!(
            iterations > before,
            "round {round}: {iterations} after {before}"
        );
        assert!(
            values == plate_after(iterations),
            "round {round}: after {iterations}"
        );
        before = iterations;
    }
}
