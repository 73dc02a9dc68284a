//! What ranks compute, each with the result that any number of them must have bit for bit: for
//! the suite over MPI, and for the table in the guide.

use super::ways::noise;
use halo_distributed::checkpoint::Checkpoints;
use halo_distributed::{
    Communicator, Decomposition, Error, Ghosted, argmax, argmin, derivative3d, dot, heat2d, heat3d,
    max, mean, min, nbody, norm, npy, stencil, sum, wave3d,
};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::Heat2d;
use halo_gpu::heat3d::Heat3d;
use halo_gpu::nbody::Gravity;
use halo_gpu::nbody::problem::Cluster;
use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
use halo_gpu::stencil1d::{Stencil1d, TEXTBOOK_COEFFICIENTS};
use halo_gpu::wave3d::Wave3d;
use halo_gpu::{Axis, Boundary, Device, Grid2, Grid3, Shape2, Shape3};
use std::path::Path;

/// Something that ranks compute.
pub struct Family {
    pub name: &'static str,
    /// How many axes can be cut; none where ranks have shares of a list.
    pub axes: usize,
    /// Computes with this number of blocks along each axis, and returns the bits of the whole result
    /// on every rank. Files go to the folder, which all ranks see.
    pub bits: Bits,
}

type Bits = fn(&Communicator, &Device, [usize; 3], &Path) -> Result<Vec<u8>, Error>;

pub const FAMILIES: [Family; 10] = [
    Family {
        name: "heat in a plate, and where it stops",
        axes: 2,
        bits: plate,
    },
    Family {
        name: "gradient and Laplacian",
        axes: 3,
        bits: derivatives,
    },
    Family {
        name: "heat in space",
        axes: 3,
        bits: heat,
    },
    Family {
        name: "waves in space",
        axes: 3,
        bits: waves,
    },
    Family {
        name: "a stencil of one's own",
        axes: 2,
        bits: own_stencil,
    },
    Family {
        name: "stencils along a line",
        axes: 1,
        bits: line,
    },
    Family {
        name: "sums, means, norms, extremes",
        axes: 0,
        bits: reductions,
    },
    Family {
        name: "gravity, leapfrog, energy",
        axes: 0,
        bits: bodies,
    },
    Family {
        name: ".npy files",
        axes: 3,
        bits: files,
    },
    Family {
        name: "checkpoints",
        axes: 2,
        bits: checkpoints,
    },
];

/// How grids are cut: along the last axis, along the last two, along all three (of a plate:
/// along both).
pub const CUTS: [&str; 3] = ["slabs", "pencils", "blocks"];

/// Blocks along each axis; `None` if a grid that can be cut along `axes` axes cannot be cut in this
/// way.
pub fn parts(cut: usize, axes: usize, ranks: usize) -> Option<[usize; 3]> {
    // The largest divisor whose power is no larger.
    let divisor = |ranks: usize, power: u32| -> usize {
        let is_one = |it: &usize| ranks.is_multiple_of(*it) && it.pow(power) <= ranks;
        (1..=ranks).filter(is_one).max().unwrap_or(1)
    };
    let two = |ranks: usize| [ranks / divisor(ranks, 2), divisor(ranks, 2)];
    match (cut, axes) {
        (0, 0 | 1) => Some([ranks, 1, 1]),
        (0, 2) => Some([1, ranks, 1]),
        (0, 3) => Some([1, 1, ranks]),
        (1, 3) => {
            let [y, z] = two(ranks);
            Some([1, y, z])
        }
        (2, 2) => {
            let [x, y] = two(ranks);
            Some([x, y, 1])
        }
        (2, 3) => {
            let z = divisor(ranks, 3);
            let [x, y] = two(ranks / z);
            Some([x, y, z])
        }
        _ => None,
    }
}

const PLATE: [usize; 2] = [61, 45];
/// Enough for eight parts of four planes along each axis.
const SPACE: [usize; 3] = [32, 33, 35];

fn flat(parts: [usize; 3]) -> Result<Decomposition<2>, Error> {
    Decomposition::new(PLATE, [parts[0], parts[1]])
}

fn at_plate([i, j]: [usize; 2]) -> f32 {
    noise(j * PLATE[0] + i)
}

fn at_space([i, j, k]: [usize; 3]) -> f32 {
    noise((k * SPACE[1] + j) * SPACE[0] + i)
}

fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn plate(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let heat = Heat2d::dirichlet(Shape2::new(PLATE[0], PLATE[1]))?;
    let mut plate = heat2d::Plate::new(communicator, device, heat, flat(parts)?, 4, at_plate)?;
    plate.iterate(23)?;
    let outcome = plate.iterate_until(1e-3, 5, 10_000)?;
    assert!(outcome.converged);
    let mut all = bytes(plate.field()?.as_slice());
    all.extend(outcome.iterations.to_le_bytes());
    Ok(all)
}

fn derivatives(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let [nx, ny, nz] = SPACE;
    let grid = Grid3::new(Shape3::new(nx, ny, nz), [0.1, 0.2, 0.3])?;
    let grid = grid.with_boundaries(Boundary::Periodic)?;
    let grid = FiniteDifferences3d::<f32>::new(&grid)?.with_accuracy(8)?;
    let mut cut = Decomposition::new(SPACE, parts)?;
    for axis in 0..3 {
        cut = cut.periodic(axis)?;
    }
    let mut f = Ghosted::new(communicator, device, cut, grid.radius(), at_space)?;
    let mut df = f.zeros_like()?;
    let plan = derivative3d::Plan::new(communicator, &grid, &f)?;
    let mut all = Vec::new();
    for axis in Axis::ALL {
        plan.derivative(axis, &mut f, &mut df)?;
        all.extend(bytes(&df.gather(communicator)?));
    }
    plan.laplacian(&mut f, &mut df)?;
    all.extend(bytes(&df.gather(communicator)?));
    let mut gradient = [f.zeros_like()?, f.zeros_like()?, f.zeros_like()?];
    plan.gradient(&mut f, gradient.each_mut())?;
    for component in &gradient {
        all.extend(bytes(&component.gather(communicator)?));
    }
    Ok(all)
}

fn space() -> Result<Grid3, Error> {
    let [nx, ny, nz] = SPACE;
    let grid = Grid3::new(Shape3::new(nx, ny, nz), [1.0; 3])?;
    Ok(grid.with_boundaries(Boundary::NeumannHalfway)?)
}

fn heat(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let heat = Heat3d::new(space()?);
    let cut = Decomposition::new(SPACE, parts)?;
    let mut body = heat3d::start(communicator, device, &heat, cut, 3, at_space)?;
    body.steps(11)?;
    Ok(bytes(&body.gather(0)?))
}

fn waves(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let wave = Wave3d::new(space()?, 8)?;
    let cut = Decomposition::new(SPACE, parts)?;
    let initial = |at| wave3d::Point {
        now: at_space(at),
        before: at_space(at),
        velocity: 1.0 + 0.5 * at_space(at).abs(),
    };
    let mut waves = wave3d::start(communicator, device, &wave, cut, 4, 0.2, initial)?;
    waves.add(0, [3, 20, 30], 2.0)?;
    waves.steps(5)?;
    let heard = waves.at(0, [30, 2, 17])?;
    let fields = [waves.gather(0)?, waves.gather(1)?, vec![heard]];
    Ok(bytes(&fields.concat()))
}

/// Two fields that react with each other.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Reaction {
    rate: f32,
}

impl PointUpdate<f32, 2, 2> for Reaction {
    const DIMENSIONS: usize = 2;
    const REACH: [Reach; 2] = [Reach::cube(1), Reach::axes([2, 1, 0])];

    #[inline(always)]
    fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 2] {
        let (u, v) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
        let near = n.at::<0, -1, -1, 0>() + n.at::<0, 1, 1, 0>() - n.at::<0, 1, -1, 0>();
        let far = n.at::<1, -2, 0, 0>() + n.at::<1, 2, 0, 0>() + n.at::<1, 0, 1, 0>();
        [near * 0.25 + v * self.rate, far * 0.25 - u * self.rate]
    }
}

halo_stencil::stencil! {
    /// A step of both.
    pub reaction: Reaction, f32, (u, v) -> (new_u, new_v)
}

fn own_stencil(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let grid = Grid2::new(Shape2::new(PLATE[0], PLATE[1]), [1.0; 2])?;
    let grid = grid.with_boundaries(Boundary::Dirichlet(0.5))?;
    let stencil = Stencil::new(Reaction { rate: 0.25 }, grid)?;
    let value = |field: usize, [i, j]: [usize; 2]| at_plate([i, j + 1000 * field]);
    let mut run = stencil::Run::new(communicator, device, stencil, flat(parts)?, 4, value)?;
    run.steps(11)?;
    Ok(bytes(&[run.gather(0)?, run.gather(1)?].concat()))
}

fn line(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let cut = Decomposition::new([1003], [parts[0]])?;
    let radius = TEXTBOOK_COEFFICIENTS.len();
    let mut f = Ghosted::new(communicator, device, cut, radius, |[i]| noise::<f32>(i))?;
    let mut out = f.zeros_like()?;
    f.exchange(communicator)?;
    let [points] = f.extents();
    let part = Stencil1d::antisymmetric(points, &TEXTBOOK_COEFFICIENTS)?.plan(device)?;
    part.apply(f.buffer(), out.buffer_mut())?;
    Ok(bytes(&out.gather(communicator)?))
}

fn reductions(
    communicator: &Communicator,
    device: &Device,
    [ranks, ..]: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let n = 100_003;
    let bound = |rank: usize| n * rank / ranks;
    let own = bound(communicator.rank())..bound(communicator.rank() + 1);
    let own = device.upload(&own.map(noise::<f32>).collect::<Vec<_>>())?;
    let (least, most) = (argmin(communicator, &own)?, argmax(communicator, &own)?);
    let single = [
        sum(communicator, &own)?,
        min(communicator, &own)?,
        max(communicator, &own)?,
    ];
    let double = [
        dot(communicator, &own, &own)?,
        norm(communicator, &own)?,
        mean(communicator, &own)?,
    ];
    let mut all = format!("{least:?} {most:?}").into_bytes();
    all.extend([bytes(&single), bytes(&double)].concat());
    Ok(all)
}

fn stars<'a>(
    communicator: &'a Communicator,
    device: &Device,
) -> Result<nbody::Leapfrog<'a, f64>, Error> {
    let cluster = Cluster::<f64>::plummer(1024, 3)?;
    let start = |body| (cluster.bodies[body], cluster.velocities[body]);
    let gravity = Gravity::new(0.05)?.with_parts(8)?;
    nbody::Leapfrog::new(communicator, device, gravity, 1024, 1.0 / 256.0, start)
}

fn bodies(
    communicator: &Communicator,
    device: &Device,
    _: [usize; 3],
    _: &Path,
) -> Result<Vec<u8>, Error> {
    let mut stars = stars(communicator, device)?;
    stars.advance(5)?;
    let energy = stars.energy()?;
    let energy = bytes(&[energy.kinetic, energy.potential]);
    Ok([bytes(&stars.bodies()?), bytes(&stars.velocities()?), energy].concat())
}

fn files(
    communicator: &Communicator,
    _: &Device,
    parts: [usize; 3],
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let (cut, ranks) = (Decomposition::new(SPACE, parts)?, communicator.size());
    let path = folder.join(format!("{ranks}-{parts:?}.npy"));
    let own = cut.values(communicator.rank(), at_space)?;
    npy::write(communicator, &path, &cut, &own)?;
    let slabs = Decomposition::slabs(SPACE, ranks)?;
    let share = npy::read::<f32, 3>(communicator, &path, &slabs)?;
    assert!(share.block().points().all(|at| share[at] == at_space(at)));
    Ok(std::fs::read(&path).expect("the file that was written"))
}

fn checkpoints(
    communicator: &Communicator,
    device: &Device,
    parts: [usize; 3],
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let of_cut = format!("{}-{parts:?}", communicator.size());
    let checkpoints = Checkpoints::new(folder.join(of_cut));
    let heat = Heat2d::dirichlet(Shape2::new(PLATE[0], PLATE[1]))?;
    let mut plate = heat2d::Plate::new(communicator, device, heat, flat(parts)?, 4, at_plate)?;
    plate.iterate(11)?;
    plate.save(&checkpoints)?;
    let last = checkpoints.last(communicator)?.expect("one was saved");
    // By other blocks.
    let rows = Decomposition::slabs(PLATE, communicator.size())?;
    let mut plate = heat2d::Plate::<f32>::restore(communicator, device, heat, rows, 3, &last)?;
    plate.iterate(9)?;
    Ok(bytes(plate.field()?.as_slice()))
}

/// Saves a plate, waves and bodies.
#[allow(dead_code, reason = "for the suite over MPI")]
pub fn saved(communicator: &Communicator, device: &Device, folder: &Path) -> Result<(), Error> {
    let ranks = communicator.size();
    let heat = Heat2d::dirichlet(Shape2::new(PLATE[0], PLATE[1]))?;
    let rows = Decomposition::slabs(PLATE, ranks)?;
    let mut plate = heat2d::Plate::new(communicator, device, heat, rows, 4, at_plate)?;
    plate.iterate(11)?;
    plate.save(&Checkpoints::new(folder.join("plate")))?;

    let wave = Wave3d::new(space()?, 8)?;
    let slabs = Decomposition::slabs(SPACE, ranks)?;
    let initial = |at| wave3d::Point {
        now: at_space(at),
        before: at_space(at),
        velocity: 1.0,
    };
    let mut waves = wave3d::start(communicator, device, &wave, slabs, 4, 0.2, initial)?;
    waves.steps(5)?;
    waves.save(&Checkpoints::new(folder.join("waves")))?;

    let mut stars = stars(communicator, device)?;
    stars.advance(3)?;
    stars.save(&Checkpoints::new(folder.join("stars")))?;
    Ok(())
}

/// The bits of a saved state, some steps later.
#[allow(dead_code, reason = "for the suite over MPI")]
pub fn restored(
    communicator: &Communicator,
    device: &Device,
    folder: &Path,
) -> Result<Vec<u8>, Error> {
    let ranks = communicator.size();
    let last = |name: &str| -> Result<_, Error> {
        let last = Checkpoints::new(folder.join(name)).last(communicator)?;
        Ok(last.expect("one was saved"))
    };
    let heat = Heat2d::dirichlet(Shape2::new(PLATE[0], PLATE[1]))?;
    let blocks = Decomposition::least_surface(PLATE, ranks)?;
    let saved = last("plate")?;
    let mut plate = heat2d::Plate::<f32>::restore(communicator, device, heat, blocks, 3, &saved)?;
    plate.iterate(9)?;

    let wave = Wave3d::new(space()?, 8)?;
    let blocks = Decomposition::least_surface(SPACE, ranks)?;
    let saved = last("waves")?;
    let mut waves = wave3d::restore::<f32>(communicator, device, &wave, blocks, 4, &saved)?;
    waves.steps(5)?;

    let gravity = Gravity::new(0.05)?.with_parts(8)?;
    let (step, saved) = (1.0 / 256.0, last("stars")?);
    let mut stars =
        nbody::Leapfrog::<f64>::restore(communicator, device, gravity, 1024, step, &saved)?;
    stars.advance(3)?;
    let bodies = bytes(&stars.bodies()?);
    Ok([
        bytes(plate.field()?.as_slice()),
        bytes(&waves.gather(0)?),
        bodies,
    ]
    .concat())
}
