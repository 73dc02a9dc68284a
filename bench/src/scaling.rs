//! `--ranks`: measures how problems scale over ranks, one device each.
//!
//! Each problem is timed as a whole, then each rank's part of it without messages, then the
//! messages alone. Strong scaling divides a fixed problem among the ranks; weak scaling gives each
//! rank the same amount. The ranks are threads of this process, and 1, 2, 4 and so on of them take
//! part; or they are the processes of an MPI launcher, and a second measurement has the first of
//! them alone.

use std::cell::RefCell;
#[cfg(feature = "mpi")]
use std::time::Duration;
use std::time::Instant;

use gpu_kernels::registry;
use halo_distributed::{
    Block, Communicator, Decomposition, Error as Failed, Expected, Ghosted, Parcel, derivative3d,
    heat2d, nbody, run as run_threads, sum, wave3d,
};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::reduction::Reduction;
use halo_gpu::wave3d::Wave3d;
use halo_gpu::{Boundary, Device, DeviceKind, Field3, Grid3, Shape2, Shape3};
use halo_report::scaling::{self, Halo, MessageTime, ScalingRecord, ScalingRow, TimedPart};

use super::environment;
use super::sink::Sink;
use crate::error::Error;
use crate::flags::{Bench, Cut, DeviceChoice, Rims};
use cargo_halo::Outcome;

/// Timings of each part, in turns; their median is the result.
const SAMPLES: usize = 9;

/// The least duration of a timing in seconds, unless it has [`MOST`] repetitions; and the same for
/// `--small`.
const LONG: f64 = 0.1;
const SHORT: f64 = 1e-3;
const MOST: f64 = 1000.0;

/// The longest message around the ring: 64 MiB, or 1 MiB with `--small`.
const MESSAGE: [usize; 2] = [1 << 26, 1 << 20];

/// How long a process waits for another one, because the first measures alone meanwhile.
#[cfg(feature = "mpi")]
const DEADLINE: Duration = Duration::from_secs(600);

/// Measures what the flags ask for. Prints and writes the results of each family as soon as it is
/// done.
pub(super) fn run(flags: &Bench) -> Result<Outcome, Error> {
    match flags.ranks {
        Some(Some(ranks)) => over_threads(flags, ranks as usize),
        _ => over_mpi(flags),
    }
}

/// A run in progress, on the rank that prints and writes.
struct Run {
    sink: Sink,
    record: ScalingRecord,
    /// Digests of one rank's results: family, problem and digest.
    digests: Vec<(String, String, u64)>,
}

impl Run {
    /// The run that the flags ask for; an error where one of its outputs cannot be written.
    fn open(flags: &Bench, ranks: usize) -> Result<Self, Error> {
        let sink = Sink::open(flags)?;
        let device = device_of(flags.device, 0)?;
        let described = environment::describe(&device, None);
        Ok(Self {
            sink,
            record: ScalingRecord {
                environment: environment::of(described, None, environment::now()),
                ranks,
                transport: String::new(),
                messages: Vec::new(),
                rows: Vec::new(),
                project: flags.project.map(|ranks| ranks as usize),
                missing: Vec::new(),
            },
            digests: Vec::new(),
        })
    }

    fn begin(&mut self, families: &[Family], found: (String, Vec<MessageTime>)) {
        (self.record.transport, self.record.messages) = found;
        self.sink.print(&scaling::header(&self.record));
        self.record.missing = families.iter().map(|it| it.name.to_owned()).collect();
    }

    /// Adds rows, and sets for each whether its digest is that of one rank.
    fn add(&mut self, found: Vec<(ScalingRow, u64)>) {
        for (mut row, digest) in found {
            let one = self
                .digests
                .iter()
                .find(|(family, problem, _)| *family == row.family && *problem == row.problem);
            row.equal_bits = one.map(|(.., one)| *one == digest);
            if row.ranks == 1 && one.is_none() {
                let (family, problem) = (row.family.clone(), row.problem.clone());
                self.digests.push((family, problem, digest));
            }
            self.record.rows.push(row);
        }
    }

    /// Writes the record, and prints the rows of this family.
    fn finish(&mut self, family: &str) {
        self.record.missing.retain(|it| it != family);
        self.sink.save(&self.record);
        self.sink.print(&scaling::of_family(&self.record, family));
    }

    fn close(mut self) -> Result<Outcome, Error> {
        self.sink.print(&scaling::model(&self.record));
        self.sink.outcome(&self.record)
    }
}

fn over_threads(flags: &Bench, most: usize) -> Result<Outcome, Error> {
    let families = families(flags)?;
    let mut run = Run::open(flags, most)?;
    let doubled = std::iter::successors(Some(1), |ranks| Some(2 * ranks));
    let mut counts: Vec<usize> = doubled.take_while(|&ranks| ranks < most).collect();
    counts.push(most);
    // Every rank finds the same.
    let first = |ranks: usize, work: &(dyn Fn(&Ranks<'_>) -> Result<_, Failed> + Sync)| {
        let all = run_threads(ranks, |communicator| {
            let device = device_of(flags.device, communicator.local_rank())?;
            let communicator = as_asked(flags, communicator, &device)?;
            work(&Ranks::new(flags, &communicator, &device))
        })?;
        Ok::<_, Failed>(all.into_iter().next())
    };
    let messages = |bench: &Ranks<'_>| bench.messages().map(Found::Messages);
    if let Some(Found::Messages(messages)) = first(most, &messages)? {
        run.begin(&families, messages);
    }
    for family in &families {
        for &ranks in &counts {
            eprintln!("measuring {} on {ranks} of {most} ranks", family.name);
            let rows = |bench: &Ranks<'_>| bench.rows(family).map(Found::Rows);
            if let Some(Found::Rows(rows)) = first(ranks, &rows)? {
                run.add(rows);
            }
        }
        run.finish(family.name);
    }
    run.close()
}

/// The joint results of the ranks.
enum Found {
    /// The transport, and the times of messages.
    Messages((String, Vec<MessageTime>)),
    /// Rows, each with a digest of its result.
    Rows(Vec<(ScalingRow, u64)>),
}

#[cfg(feature = "mpi")]
fn over_mpi(flags: &Bench) -> Result<Outcome, Error> {
    let families = families(flags)?;
    let communicator = Communicator::mpi()?.with_deadline(DEADLINE);
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let device = device_of(flags.device, communicator.local_rank())?;
    // Only the first rank prints and writes; the others learn whether it can.
    let run = (rank == 0).then(|| Run::open(flags, ranks));
    let can = !matches!(run, Some(Err(_)));
    if !communicator.all_reduce(u8::from(can), u8::min)?.eq(&1) {
        let error = run.and_then(Result::err);
        return error.map_or(Ok(Outcome::Findings), Err);
    }
    let mut run = run.transpose()?;
    let alone = Communicator::alone();
    let alone = Ranks::new(flags, &alone, &device);
    let communicator = as_asked(flags, communicator, &device)?;
    let all = Ranks::new(flags, &communicator, &device);
    let messages = all.messages()?;
    if let Some(run) = &mut run {
        run.begin(&families, messages);
    }
    for family in &families {
        if let Some(run) = &mut run {
            eprintln!("measuring {} on 1 and {ranks} ranks", family.name);
            run.add(alone.rows(family)?);
        }
        communicator.barrier()?;
        let rows = if ranks > 1 {
            all.rows(family)?
        } else {
            Vec::new()
        };
        if let Some(run) = &mut run {
            run.add(rows);
            run.finish(family.name);
        }
    }
    run.map_or(Ok(Outcome::Clean), Run::close)
}

#[cfg(not(feature = "mpi"))]
fn over_mpi(_: &Bench) -> Result<Outcome, Error> {
    Err(Error::Bench(
        "this program was built without MPI: give --ranks a number, for threads, or build it with \
         --features mpi"
            .to_owned(),
    ))
}

/// The device of a rank.
fn device_of(choice: DeviceChoice, rank: usize) -> Result<Device, halo_gpu::Error> {
    match choice {
        DeviceChoice::Cpu => Ok(Device::cpu()),
        DeviceChoice::Emulator => Ok(Device::emulator()),
        DeviceChoice::Cuda(first) => {
            let count = Device::cuda_count()?.max(1);
            Device::cuda((first as usize + rank) % count)
        }
        DeviceChoice::Auto => match Device::cuda_count() {
            Ok(count) if count > 0 => Device::cuda(rank % count),
            _ => Ok(Device::cpu()),
        },
    }
}

fn as_asked(
    flags: &Bench,
    communicator: Communicator,
    device: &Device,
) -> Result<Communicator, Failed> {
    let communicator = communicator.with_rims(flags.rims.into());
    if flags.nccl {
        communicator.with_nccl(device)
    } else {
        Ok(communicator)
    }
}

/// How long something takes.
struct Timed {
    /// The median of the samples.
    seconds: f64,
    /// The range of the middle half of them.
    spread: f64,
}

/// A family, and its problems for one rank.
struct Family {
    name: &'static str,
    problems: Vec<Problem>,
}

#[derive(Clone, Copy)]
enum Problem {
    /// A plate, and the number of iterations at a time.
    Heat2d([usize; 2], usize),
    Gradient([usize; 3]),
    Wave3d([usize; 3]),
    /// The number of bodies.
    Nbody(usize),
    /// The number of elements.
    Sum(usize),
}

/// The families that the flags name, each with its problems: for a GPU, for a CPU, or small ones.
fn families(flags: &Bench) -> Result<Vec<Family>, Error> {
    let kind = device_of(flags.device, 0)?.kind();
    let size = match (flags.small, kind) {
        (true, _) | (_, DeviceKind::Emulator) => 2,
        (_, DeviceKind::Cpu) => 1,
        (_, DeviceKind::Cuda) => 0,
    };
    let given = flags.size.as_ref();
    let cube = |name| -> Result<_, Error> {
        let n = [512, 128, 24][size];
        Ok(given.map_or(Ok([n; 3]), |size| size.cuboid(name))?)
    };
    let lengths = |name, own: [&[usize]; 3]| -> Result<_, Error> {
        match given {
            Some(size) => Ok(vec![size.length(name)?]),
            None => Ok(own[size].to_vec()),
        }
    };
    let problems = |name| -> Result<Vec<Problem>, Error> {
        Ok(match name {
            "heat2d" => {
                let (n, k) = [(16_384, 16), (2048, 16), (96, 4)][size];
                let points = given.map_or(Ok([n; 2]), |size| size.rectangle("heat2d"))?;
                vec![Problem::Heat2d(points, k)]
            }
            "derivative3d" => vec![Problem::Gradient(cube("derivative3d")?)],
            "wave3d" => vec![Problem::Wave3d(cube("wave3d")?)],
            "nbody" => {
                let own = lengths("nbody", [&[131_072, 524_288], &[8192], &[4096]])?;
                own.into_iter().map(Problem::Nbody).collect()
            }
            "reduction" => {
                let own = lengths("reduction", [&[1 << 30], &[1 << 24], &[1 << 16]])?;
                own.into_iter().map(Problem::Sum).collect()
            }
            _ => Vec::new(),
        })
    };
    let is_wanted =
        |name: &str| flags.families.is_empty() || flags.families.iter().any(|it| it == name);
    let mut families = Vec::new();
    for family in registry::FAMILIES.iter().filter(|it| is_wanted(it.name)) {
        let (name, problems) = (family.name, problems(family.name)?);
        if !problems.is_empty() {
            families.push(Family { name, problems });
        } else if !flags.families.is_empty() {
            return Err(Error::Bench(format!(
                "--ranks has no problem of {name}: it has derivative3d, heat2d, nbody, reduction \
                 and wave3d"
            )));
        }
    }
    Ok(families)
}

/// Ranks that measure together: each makes the same calls.
struct Ranks<'a> {
    communicator: &'a Communicator,
    device: &'a Device,
    /// Whether messages are short, for a small run or a CPU.
    small: bool,
    /// The least duration of a timing, in seconds.
    long: f64,
    cut: Cut,
    rims: Rims,
}

impl<'a> Ranks<'a> {
    fn new(flags: &Bench, communicator: &'a Communicator, device: &'a Device) -> Self {
        Self {
            communicator,
            device,
            small: flags.small || device.kind() != DeviceKind::Cuda,
            long: if flags.small { SHORT } else { LONG },
            cut: flags.cut,
            rims: flags.rims,
        }
    }

    /// The rows of a family, each with a digest of its result. On one rank strong and weak scaling
    /// have the same rows.
    fn rows(&self, family: &Family) -> Result<Vec<(ScalingRow, u64)>, Failed> {
        let mut rows = Vec::new();
        for problem in &family.problems {
            let (row, digest) = self.measure(*problem, false)?;
            let weak = if self.communicator.size() == 1 {
                let weak = ScalingRow {
                    weak: true,
                    ..row.clone()
                };
                (weak, digest)
            } else {
                self.measure(*problem, true)?
            };
            rows.extend([(row, digest), weak]);
        }
        Ok(rows)
    }

    fn measure(&self, problem: Problem, weak: bool) -> Result<(ScalingRow, u64), Failed> {
        match problem {
            Problem::Heat2d(points, k) => self.heat2d(points, k, weak),
            Problem::Gradient(points) => self.gradient(points, weak),
            Problem::Wave3d(points) => self.wave3d(points, weak),
            Problem::Nbody(n) => self.nbody(n, weak),
            Problem::Sum(n) => self.sum(n, weak),
        }
    }

    /// The time of `compute` for a part of a whole problem, on one rank: the second point of the
    /// model's line.
    fn part(
        &self,
        [of, whole]: [usize; 2],
        compute: impl FnOnce() -> Result<f64, Failed>,
    ) -> Result<Option<TimedPart>, Failed> {
        if self.communicator.size() > 1 || of >= whole {
            return Ok(None);
        }
        Ok(Some(TimedPart {
            share: of as f64 / whole as f64,
            seconds: compute()?,
        }))
    }

    /// The median time of `work`, on the slowest rank.
    fn time(&self, mut work: impl FnMut() -> Result<(), Failed>) -> Result<f64, Failed> {
        let [Timed { seconds, .. }] = self.times([&mut work])?;
        Ok(seconds)
    }

    /// The times of some works, which take turns, on the slowest rank.
    fn times<const N: usize>(
        &self,
        mut works: [&mut dyn FnMut() -> Result<(), Failed>; N],
    ) -> Result<[Timed; N], Failed> {
        let took = |work: &mut dyn FnMut() -> Result<(), Failed>, count: usize| {
            self.communicator.barrier()?;
            let start = Instant::now();
            for _ in 0..count {
                work()?;
            }
            self.communicator.settle()?;
            self.device.synchronize()?;
            let each = start.elapsed().as_secs_f64() / count as f64;
            self.communicator.all_reduce(each, f64::max)
        };
        let mut counts = [1; N];
        for (work, count) in works.iter_mut().zip(&mut counts) {
            // The first times include allocations and the opening of connections.
            took(work, 2)?;
            let once = took(work, 1)?;
            *count = (self.long / once.max(1e-9)).clamp(1.0, MOST) as usize;
        }
        let mut samples = [const { Vec::new() }; N];
        for _ in 0..SAMPLES {
            for ((work, count), samples) in works.iter_mut().zip(counts).zip(&mut samples) {
                samples.push(took(work, count)?);
            }
        }
        Ok(samples.map(|mut samples| {
            samples.sort_by(f64::total_cmp);
            Timed {
                seconds: samples[SAMPLES / 2],
                spread: samples[SAMPLES - 1 - SAMPLES / 4] - samples[SAMPLES / 4],
            }
        }))
    }

    /// Measures all of it, the computation and the messages alone, into a row.
    fn measure_parts(
        &self,
        row: &mut ScalingRow,
        both: &mut dyn FnMut() -> Result<(), Failed>,
        compute: &mut dyn FnMut() -> Result<(), Failed>,
        exchange: &mut dyn FnMut() -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        let [both, compute] = if self.communicator.size() == 1 {
            self.times([both, compute])?
        } else {
            let [both, compute, exchange] = self.times([both, compute, exchange])?;
            row.exchange_s = exchange.seconds;
            [both, compute]
        };
        (row.both_s, row.compute_s) = (both.seconds, compute.seconds);
        row.spread_s = both.spread.max(compute.spread);
        Ok(())
    }

    /// A grid of so many points, or of so many for each rank, and how it is cut.
    fn cut<const D: usize>(
        &self,
        points: [usize; D],
        weak: bool,
    ) -> Result<Decomposition<D>, Failed> {
        let ranks = self.communicator.size();
        let cut = match self.cut {
            Cut::Slabs => Decomposition::slabs(points, ranks),
            Cut::Pencils => Decomposition::pencils(points, ranks),
            Cut::Blocks => Decomposition::least_surface(points, ranks),
        }?;
        if !weak {
            return Ok(cut);
        }
        let parts = cut.parts();
        Decomposition::new(
            std::array::from_fn(|axis| points[axis] * parts[axis]),
            parts,
        )
    }

    fn row(
        &self,
        family: &str,
        (size, problem): (String, String),
        weak: bool,
        halo: (Halo, usize),
    ) -> ScalingRow {
        ScalingRow {
            family: family.to_owned(),
            size,
            problem,
            weak,
            ranks: self.communicator.size(),
            compute_s: 0.0,
            exchange_s: 0.0,
            both_s: 0.0,
            spread_s: 0.0,
            halo_bytes: halo.1 as u64,
            field_bytes: 0,
            part: None,
            halo: halo.0,
            equal_bits: None,
        }
    }

    /// Points along the last axis of the whole problem.
    fn points(&self, n: usize, weak: bool) -> usize {
        if weak {
            n * self.communicator.size()
        } else {
            n
        }
    }

    /// A sum over all points that depends on their bits and their positions.
    fn digest<const D: usize>(&self, field: &Ghosted<f32, D>) -> Result<u64, Failed> {
        let values = field.own_values(self.communicator)?;
        let points = field.decomposition().points();
        self.digest_of(values_of(field.block(), points, &values))
    }

    /// The same of values with their positions, over all ranks.
    fn digest_of(&self, values: impl Iterator<Item = (usize, f32)>) -> Result<u64, Failed> {
        let own = values.fold(0_u64, |digest, (place, value)| {
            let weight = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            digest.wrapping_add(weight.wrapping_mul(value.to_bits().into()))
        });
        self.communicator.all_reduce(own, u64::wrapping_add)
    }

    /// `k` iterations on a plate.
    fn heat2d(
        &self,
        [nx, ny]: [usize; 2],
        k: usize,
        weak: bool,
    ) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let cut = self.cut([nx, ny], weak)?;
        let shape = Shape2::new(cut.points()[0], cut.points()[1]);
        let heat = Heat2d::dirichlet(shape)?;
        let value = |[i, j]: [usize; 2]| ((7 * i + 13 * j) % 31) as f32;
        let mut plate = heat2d::Plate::new(communicator, device, heat, cut, k, value)?;
        plate.iterate(3 * k)?;
        let digest = self.digest(plate.part())?;
        let problem = format!("{}x{}, {k} iterations, f32", shape.nx, shape.ny);
        let size = format!("{nx}x{ny}");
        let halo = (Halo::Square, 2 * k * (nx + ny) * size_of::<f32>());
        let mut row = self.row("heat2d", (size, problem), weak, halo);
        row.field_bytes = (nx * ny * size_of::<f32>()) as u64;

        let [px, py] = plate.part().extents();
        let mut current = plate.part().buffer().try_clone()?;
        let mut part = Heat2d::dirichlet(Shape2::new(px, py))?.plan(device)?;
        let mut messages = Ghosted::new(communicator, device, cut, k, |_| 0.0_f32)?;
        self.measure_parts(
            &mut row,
            &mut || plate.iterate(k),
            &mut || Ok(part.iterate(&mut current, k)?),
            &mut || messages.exchange(communicator),
        )?;
        drop((plate, current, part, messages));
        let [mx, my] = [nx, ny].map(|n| (n / 64).max(32));
        row.part = self.part([mx * my, nx * ny], || {
            let mut part = Heat2d::dirichlet(Shape2::new(mx, my))?.plan(device)?;
            let mut current = device.zeros::<f32>(mx * my)?;
            self.time(|| Ok(part.iterate(&mut current, k)?))
        })?;
        Ok((row, digest))
    }

    /// The gradient of a field.
    fn gradient(&self, [nx, ny, nz]: [usize; 3], weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let mut cut = self.cut([nx, ny, nz], weak)?;
        let [all_x, all_y, all_z] = cut.points();
        let shape = Shape3::new(all_x, all_y, all_z);
        for axis in 0..3 {
            cut = cut.periodic(axis)?;
        }
        let of_shape = |shape| -> Result<_, Failed> {
            let grid = Grid3::new(shape, [0.1; 3])?.with_boundaries(Boundary::Periodic)?;
            Ok(FiniteDifferences3d::<f32>::new(&grid)?.with_accuracy(8)?)
        };
        let grid = of_shape(shape)?;
        let value = |[i, j, k]: [usize; 3]| ((7 * i + 13 * j + 17 * k) % 31) as f32;
        let mut f = Ghosted::new(communicator, device, cut, grid.radius(), value)?;
        let mut df = [f.zeros_like()?, f.zeros_like()?, f.zeros_like()?];
        let plan = derivative3d::Plan::new(communicator, &grid, &f)?;
        plan.gradient(&mut f, df.each_mut())?;
        let problem = format!("{all_x}x{all_y}x{all_z}, order 8, f32");
        let size = format!("{nx}x{ny}x{nz}");
        let halo = (Halo::Cube, halo_of([nx, ny, nz], grid.radius()));
        let mut row = self.row("derivative3d", (size, problem), weak, halo);
        row.field_bytes = (nx * ny * nz * size_of::<f32>()) as u64;
        let mut digest = 0_u64;
        for df in &df {
            digest = digest.rotate_left(1).wrapping_add(self.digest(df)?);
        }
        let fields = RefCell::new((f, df));
        self.measure_parts(
            &mut row,
            &mut || {
                let (f, df) = &mut *fields.borrow_mut();
                plan.gradient(f, df.each_mut())
            },
            &mut || {
                let (f, df) = &mut *fields.borrow_mut();
                let df = df.each_mut().map(Ghosted::buffer_mut);
                Ok(plan.of_part().gradient(f.buffer(), df)?)
            },
            &mut || fields.borrow_mut().0.exchange(communicator),
        )?;
        drop(fields);
        let small = [nx, ny, nz].map(|n| (n / 16).max(16));
        let points: usize = small.iter().product();
        row.part = self.part([points, nx * ny * nz], || {
            let [nx, ny, nz] = small;
            let part = of_shape(Shape3::new(nx, ny, nz))?.plan(device)?;
            let zeros = || device.zeros(points);
            let (f, mut df) = (zeros()?, [zeros()?, zeros()?, zeros()?]);
            self.time(|| Ok(part.gradient(&f, df.each_mut())?))
        })?;
        Ok((row, digest))
    }

    /// Steps of a wave in a box, each followed by an exchange.
    fn wave3d(&self, [nx, ny, nz]: [usize; 3], weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let cut = self.cut([nx, ny, nz], weak)?;
        let [all_x, all_y, all_z] = cut.points();
        let shape = Shape3::new(all_x, all_y, all_z);
        let of_shape = |shape| -> Result<Wave3d, Failed> {
            let grid = Grid3::new(shape, [1.0; 3])?.with_boundaries(Boundary::NeumannHalfway)?;
            Ok(Wave3d::new(grid, 8)?)
        };
        let (wave, width, time_step) = (of_shape(shape)?, 4, 0.3);
        let initial = |[i, j, k]: [usize; 3]| {
            let now = ((7 * i + 13 * j + 17 * k) % 31) as f32;
            wave3d::Point {
                now,
                before: now,
                velocity: 1.0,
            }
        };
        let mut waves = wave3d::start(communicator, device, &wave, cut, width, time_step, initial)?;
        waves.steps(3)?;
        let problem = format!("{all_x}x{all_y}x{all_z}, radius 4, f32");
        let size = format!("{nx}x{ny}x{nz}");
        let halo = (Halo::Cube, halo_of([nx, ny, nz], width));
        let mut row = self.row("wave3d", (size, problem), weak, halo);
        row.field_bytes = (nx * ny * nz * size_of::<f32>()) as u64;
        let block = cut.block(communicator.rank())?;
        let digest = self.digest_of(values_of(block, cut.points(), &waves.own_values(0)?))?;

        let mut messages = Ghosted::new(communicator, device, cut, width, |_| 0.0_f32)?;
        let alone = |[nx, ny, nz]: [usize; 3]| -> Result<_, Failed> {
            let part = Shape3::new(nx, ny, nz);
            let velocity = Field3::filled(part, 1.0)?;
            let now = Field3::from_fn(part, |i, j, k| initial([i, j, k]).now)?;
            Ok(of_shape(part)?.start(device, time_step, &velocity, [&now, &now])?)
        };
        let mut part = alone(messages.extents())?;
        self.measure_parts(
            &mut row,
            &mut || waves.steps(1),
            &mut || Ok(part.steps(1)?),
            &mut || messages.exchange(communicator),
        )?;
        drop((waves, part, messages));
        let small = [nx, ny, nz].map(|n| (n / 16).max(16));
        row.part = self.part([small.iter().product(), nx * ny * nz], || {
            let mut part = alone(small)?;
            self.time(|| Ok(part.steps(1)?))
        })?;
        Ok((row, digest))
    }

    /// The sum of an array. Its messages are numbers on the host.
    fn sum(&self, n: usize, weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let all = self.points(n, weak);
        let own = all * rank / ranks..all * (rank + 1) / ranks;
        let values: Vec<f32> = own.map(|i| (i % 1009) as f32 * 1e-3 - 0.5).collect();
        let values = device.upload(&values)?;
        let named = (n.to_string(), format!("sum of {all} f32"));
        let mut row = self.row("reduction", named, weak, (Halo::Numbers, 0));
        let total = sum(communicator, &values)?;
        let mut plan = Reduction::new().plan(device)?;
        self.measure_parts(
            &mut row,
            &mut || sum(communicator, &values).map(drop),
            &mut || Ok(plan.sum(&values).map(drop)?),
            &mut || communicator.all_gather(&[1.0_f32]).map(drop),
        )?;
        let small = (n / 4096).max(1024);
        row.part = self.part([small, n], || {
            let values = device.zeros::<f32>(small)?;
            self.time(|| Ok(plan.sum(&values).map(drop)?))
        })?;
        Ok((row, total.to_bits().into()))
    }

    /// The accelerations of bodies, summed in the same parts for any number of ranks. In weak
    /// scaling the number of bodies grows with the square root of the ranks, so that each rank has
    /// the same number of interactions.
    fn nbody(&self, n: usize, weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let more = if weak {
            (communicator.size() as f64).sqrt()
        } else {
            1.0
        };
        let size = n.to_string();
        let n = (n as f64 * more) as usize;
        let gravity = Gravity::new(0.05)?;
        let mut plan = nbody::Plan::<f32>::new(communicator, device, gravity, n)?;
        let place = |i: usize, step: usize| ((i * step) % 1009) as f32 * 1e-3;
        let body = |i: usize| Body {
            x: place(i, 7),
            y: place(i, 13),
            z: place(i, 17),
            mass: 1.0,
        };
        let own = device.upload(&plan.own().map(body).collect::<Vec<_>>())?;
        let mut found = device.zeros(own.len())?;
        plan.accelerations(&own, &mut found)?;
        communicator.settle()?;
        let values = found.to_vec()?;
        let first = 3 * plan.own().start;
        let values = values.as_flattened().iter().enumerate();
        let digest = self.digest_of(values.map(|(i, value)| (first + i, *value)))?;
        let problem = format!("{n} bodies, f32");
        let mut row = self.row(
            "nbody",
            (size, problem),
            weak,
            (Halo::All, n * size_of::<Body<f32>>()),
        );
        let plan = RefCell::new(plan);
        let found = RefCell::new(found);
        self.measure_parts(
            &mut row,
            &mut || {
                let found = &mut found.borrow_mut();
                plan.borrow_mut().accelerations(&own, found)
            },
            &mut || {
                let found = &mut found.borrow_mut();
                plan.borrow_mut().accelerations_as_gathered(found)
            },
            &mut || plan.borrow_mut().gather(&own),
        )?;
        // The first of the parts that sums are made in.
        let mut part = gravity.plan_of_parts::<f32>(device, n, 0..1)?;
        row.part = self.part([part.own().len(), n], || {
            let all = device.upload(&(0..n).map(body).collect::<Vec<_>>())?;
            let mut found = device.zeros(part.own().len())?;
            self.time(|| Ok(part.accelerations(&all, &mut found)?))
        })?;
        Ok((row, digest))
    }

    /// The transport, and the times of messages of increasing size from every rank to the next.
    fn messages(&self) -> Result<(String, Vec<MessageTime>), Failed> {
        let most = MESSAGE[usize::from(self.small)];
        let mut transport = self.communicator.transport();
        match self.rims {
            Rims::Auto => {}
            Rims::Always => transport += "; rims ahead",
            Rims::Never => transport += "; no rims ahead",
        }
        match self.cut {
            Cut::Slabs => {}
            Cut::Pencils => transport += "; grids in pencils",
            Cut::Blocks => transport += "; grids in blocks",
        }
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        if ranks == 1 {
            return Ok((transport, Vec::new()));
        }
        let lengths = std::iter::successors(Some(8), |bytes| Some(8 * bytes));
        let lengths = lengths.take_while(|&bytes| bytes < most).chain([most]);
        let timed = lengths.map(|bytes| {
            // A message that has arrived is the next to be sent. Not every transport gives back
            // what was sent.
            let mut buffers = Vec::new();
            let seconds = self.time(|| {
                let mut take = || match buffers.pop() {
                    Some(buffer) => Ok(buffer),
                    None => self.device.zeros(bytes),
                };
                let (bytes, room) = (take()?, take()?);
                let outgoing = vec![Parcel {
                    to: (rank + 1) % ranks,
                    tag: 0,
                    bytes: bytes.into(),
                }];
                let incoming = vec![Expected {
                    from: (rank + ranks - 1) % ranks,
                    tag: 0,
                    room: room.into(),
                }];
                let arrival = self.communicator.begin(self.device, outgoing, incoming)?;
                let done = arrival()?;
                buffers.extend(done.messages.into_iter().chain(done.spare));
                Ok(())
            })?;
            Ok(MessageTime {
                bytes: bytes as u64,
                seconds,
            })
        });
        Ok((transport, timed.collect::<Result<_, Failed>>()?))
    }
}

/// Bytes of the ghost points of a block with neighbours on every side.
fn halo_of([nx, ny, nz]: [usize; 3], width: usize) -> usize {
    2 * width * (nx * ny + ny * nz + nz * nx) * size_of::<f32>()
}

/// The values of a block of a grid, with their positions in it.
fn values_of<const D: usize>(
    block: Block<D>,
    points: [usize; D],
    values: &[f32],
) -> impl Iterator<Item = (usize, f32)> {
    let place = move |point: [usize; D]| {
        let axes = point.into_iter().zip(points).rev();
        axes.fold(0, |place, (at, points)| place * points + at)
    };
    block.points().map(place).zip(values.iter().copied())
}
