//! `--ranks`: how problems scale over ranks, one device each.
//!
//! Each problem is measured as a whole, as each rank's part of it without messages, and as its
//! messages alone; shared by the ranks (strong scaling) and with as much for each (weak). The
//! ranks are threads of this process, of which 1, 2, 4 and so on take part, or the processes that
//! an MPI launcher has started, besides one rank alone.

use std::time::Instant;

use halo_distributed::{
    Block, Communicator, Decomposition, Error as Failed, Expected, Ghosted, Parcel, derivative3d,
    heat2d, nbody, run as run_threads, sum, wave3d,
};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::Heat2d;
use halo_gpu::nbody::{Body, Gravity};
use halo_gpu::reduction::Reduction;
use halo_gpu::wave3d::Wave3d;
use halo_gpu::{Axis, Boundary, Device, DeviceKind, Field3, Grid3, Shape2, Shape3};
use halo_report::scaling::{self, Halo, MessageTime, ScalingRecord, ScalingRow};

use super::{environment, harness};
use crate::Outcome;
use crate::error::{Error, Shared};
use crate::flags::{Bench, DeviceChoice};
use crate::output;

/// Timings of which the median counts.
const SAMPLES: usize = 5;

/// How long a timing takes at least, in seconds, up to [`MOST`] repetitions; and for a look.
const LONG: f64 = 0.1;
const SHORT: f64 = 1e-3;
const MOST: f64 = 1000.0;

/// The longest message around the ring: 64 MiB, or 1 MiB.
const MESSAGE: [usize; 2] = [1 << 26, 1 << 20];

/// Measures what the flags ask for, prints it, and writes it as JSON.
pub(super) fn run(flags: &Bench) -> Result<Outcome, Error> {
    let date = environment::now();
    let measured = match flags.ranks {
        Some(Some(ranks)) => over_threads(flags, ranks as usize)?,
        _ => over_mpi(flags)?,
    };
    let Some(measured) = measured else {
        return Ok(Outcome::Clean);
    };
    let device = device_of(flags.device, 0)?;
    let record = ScalingRecord {
        environment: environment::of(harness::describe(&device, None), None, date),
        ranks: measured.ranks,
        transport: measured.transport,
        messages: measured.messages,
        rows: measured.rows,
        project: flags.project.map(|ranks| ranks as usize),
    };
    if let Some(path) = &flags.json {
        let text = serde_json::to_vec_pretty(&record).map_err(Shared::json(path))?;
        std::fs::write(path, text).map_err(Shared::file("write", path))?;
    }
    output::line(&scaling::to_text(&record));
    let differs = record.rows.iter().any(|row| row.equal_bits == Some(false));
    Ok(if differs {
        Outcome::Findings
    } else {
        Outcome::Clean
    })
}

/// What came of a run.
struct Measured {
    ranks: usize,
    transport: String,
    messages: Vec<MessageTime>,
    rows: Vec<ScalingRow>,
}

fn over_threads(flags: &Bench, most: usize) -> Result<Option<Measured>, Error> {
    let doubled = std::iter::successors(Some(1), |ranks| Some(2 * ranks));
    let mut counts: Vec<usize> = doubled.take_while(|&ranks| ranks < most).collect();
    counts.push(most);
    let mut measured = Measured {
        ranks: most,
        transport: String::new(),
        messages: Vec::new(),
        rows: Vec::new(),
    };
    let mut digests = Vec::new();
    for ranks in counts {
        let all = run_threads(ranks, |communicator| of_rank(flags, communicator))?;
        // The same on each rank.
        let Some(found) = all.into_iter().next() else {
            continue;
        };
        measured.transport = found.transport;
        measured.messages = found.messages;
        compare(&mut digests, found.rows, &mut measured.rows);
    }
    Ok(Some(measured))
}

#[cfg(feature = "mpi")]
fn over_mpi(flags: &Bench) -> Result<Option<Measured>, Error> {
    let communicator = Communicator::mpi()?;
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let (mut digests, mut rows) = (Vec::new(), Vec::new());
    // By each rank alone, of which the first one's counts.
    let alone = measure(
        flags,
        &Communicator::alone(),
        &device_of(flags.device, rank)?,
    )?;
    compare(&mut digests, alone.rows, &mut rows);
    communicator.barrier()?;
    let found = of_rank(flags, communicator)?;
    if ranks > 1 {
        compare(&mut digests, found.rows, &mut rows);
    }
    Ok((rank == 0).then_some(Measured {
        ranks,
        transport: found.transport,
        messages: found.messages,
        rows,
    }))
}

#[cfg(not(feature = "mpi"))]
fn over_mpi(_: &Bench) -> Result<Option<Measured>, Error> {
    Err(Error::Bench(
        "this program was built without MPI: give --ranks a number, for threads, or build it with \
         --features mpi"
            .to_owned(),
    ))
}

/// Says of each row whether its digest is that of one rank.
fn compare(
    digests: &mut Vec<(String, u64)>,
    found: Vec<(ScalingRow, u64)>,
    rows: &mut Vec<ScalingRow>,
) {
    for (mut row, digest) in found {
        let of_problem = digests.iter().find(|(problem, _)| *problem == row.problem);
        row.equal_bits = of_problem.map(|(_, one)| *one == digest);
        if row.ranks == 1 {
            digests.push((row.problem.clone(), digest));
        }
        rows.push(row);
    }
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

/// What a rank finds.
struct Found {
    transport: String,
    messages: Vec<MessageTime>,
    /// With a digest of the result each.
    rows: Vec<(ScalingRow, u64)>,
}

fn of_rank(flags: &Bench, communicator: Communicator) -> Result<Found, Failed> {
    let device = device_of(flags.device, communicator.rank())?;
    let communicator = if flags.nccl {
        communicator.with_nccl(&device)?
    } else {
        communicator
    };
    measure(flags, &communicator, &device)
}

fn measure(flags: &Bench, communicator: &Communicator, device: &Device) -> Result<Found, Failed> {
    let bench = Ranks {
        communicator,
        device,
        long: if flags.small { SHORT } else { LONG },
    };
    let is_wanted =
        |name: &str| flags.families.is_empty() || flags.families.iter().any(|it| it == name);
    // As on GPUs, on a CPU, and for a look.
    let size = match (flags.small, device.kind()) {
        (true, _) | (_, DeviceKind::Emulator) => 2,
        (_, DeviceKind::Cpu) => 1,
        (_, DeviceKind::Cuda) => 0,
    };
    let mut rows = Vec::new();
    for weak in [false, true] {
        if is_wanted("heat2d") {
            rows.push(bench.heat2d([(16_384, 16), (2048, 16), (96, 4)][size], weak)?);
        }
        if is_wanted("derivative3d") {
            rows.push(bench.gradient([512, 128, 24][size], weak)?);
        }
        if is_wanted("wave3d") {
            rows.push(bench.wave3d([512, 128, 24][size], weak)?);
        }
        if is_wanted("nbody") {
            rows.push(bench.nbody([131_072, 8192, 4096][size], weak)?);
        }
        if is_wanted("reduction") {
            rows.push(bench.sum([1 << 30, 1 << 24, 1 << 16][size], weak)?);
        }
    }
    Ok(Found {
        transport: communicator.transport(),
        messages: bench.messages(MESSAGE[usize::from(size > 0)])?,
        rows,
    })
}

/// Ranks that measure together: each makes the same calls.
struct Ranks<'a> {
    communicator: &'a Communicator,
    device: &'a Device,
    /// How long a timing takes at least, in seconds.
    long: f64,
}

impl Ranks<'_> {
    /// The median time of `work`, on the slowest rank.
    fn time(&self, mut work: impl FnMut() -> Result<(), Failed>) -> Result<f64, Failed> {
        let mut took = |count: usize| -> Result<f64, Failed> {
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
        // The first times are those of allocations, and of connections that are made.
        took(2)?;
        let once = took(1)?;
        let count = (self.long / once.max(1e-9)).clamp(1.0, MOST) as usize;
        let samples = (0..SAMPLES).map(|_| took(count));
        let mut samples = samples.collect::<Result<Vec<_>, _>>()?;
        samples.sort_by(f64::total_cmp);
        Ok(samples[SAMPLES / 2])
    }

    fn row(&self, family: &str, problem: String, weak: bool, halo: (Halo, usize)) -> ScalingRow {
        ScalingRow {
            family: family.to_owned(),
            problem,
            weak,
            ranks: self.communicator.size(),
            compute_s: 0.0,
            exchange_s: 0.0,
            both_s: 0.0,
            halo_bytes: halo.1 as u64,
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

    /// A sum over all points that depends on their bits and their places.
    fn digest<const D: usize>(&self, field: &Ghosted<f32, D>) -> Result<u64, Failed> {
        let values = field.own_values(self.communicator)?;
        let points = field.decomposition().points();
        self.digest_of(values_of(field.block(), points, &values))
    }

    /// The same of values with their places, over all ranks.
    fn digest_of(&self, values: impl Iterator<Item = (usize, f32)>) -> Result<u64, Failed> {
        let own = values.fold(0_u64, |digest, (place, value)| {
            let weight = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            digest.wrapping_add(weight.wrapping_mul(value.to_bits().into()))
        });
        self.communicator.all_reduce(own, u64::wrapping_add)
    }

    /// `k` iterations on a plate.
    fn heat2d(&self, (n, k): (usize, usize), weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let shape = Shape2::new(n, self.points(n, weak));
        let points = [shape.nx, shape.ny];
        let cut = Decomposition::slabs(points, communicator.size())?;
        let heat = Heat2d::dirichlet(shape)?;
        let value = |[i, j]: [usize; 2]| ((7 * i + 13 * j) % 31) as f32;
        let mut plate = heat2d::Plate::new(communicator, device, heat, cut, k, value)?;
        plate.iterate(3 * k)?;
        let digest = self.digest(plate.part())?;
        let problem = format!("{n}x{}, {k} iterations, f32", shape.ny);
        let mut row = self.row("heat2d", problem, weak, (Halo::Square, 4 * k * n * 4));
        row.both_s = self.time(|| plate.iterate(k))?;

        let [nx, ny] = plate.part().extents();
        let mut current = plate.part().buffer().try_clone()?;
        drop(plate);
        let mut part = Heat2d::dirichlet(Shape2::new(nx, ny))?.plan(device)?;
        row.compute_s = self.time(|| Ok(part.iterate(&mut current, k)?))?;
        drop((current, part));
        row.exchange_s = self.exchange(Ghosted::new(communicator, device, cut, k, |_| 0.0_f32)?)?;
        Ok((row, digest))
    }

    /// The derivatives along three axes; those along x and y are computed beside the messages.
    fn gradient(&self, n: usize, weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let shape = Shape3::new(n, n, self.points(n, weak));
        let points = [shape.nx, shape.ny, shape.nz];
        let mut cut = Decomposition::slabs(points, communicator.size())?;
        for axis in 0..3 {
            cut = cut.periodic(axis)?;
        }
        let grid = Grid3::new(shape, [0.1; 3])?.with_boundaries(Boundary::Periodic)?;
        let grid = FiniteDifferences3d::<f32>::new(&grid)?.with_accuracy(8)?;
        let value = |[i, j, k]: [usize; 3]| ((7 * i + 13 * j + 17 * k) % 31) as f32;
        let mut f = Ghosted::new(communicator, device, cut, grid.radius(), value)?;
        let [mut dx, mut dy, mut dz] = [f.zeros_like()?, f.zeros_like()?, f.zeros_like()?];
        let part = derivative3d::on_part(communicator, &grid, &f)?;
        let mut both = |f: &mut Ghosted<f32, 3>| -> Result<(), Failed> {
            f.exchange_beside(communicator, |f| {
                part.derivative(Axis::X, f, dx.buffer_mut())?;
                Ok(part.derivative(Axis::Y, f, dy.buffer_mut())?)
            })?;
            Ok(part.derivative(Axis::Z, f.buffer(), dz.buffer_mut())?)
        };
        both(&mut f)?;
        let problem = format!("{n}x{n}x{}, order 8, f32", shape.nz);
        let halo = (Halo::Cube, 6 * grid.radius() * n * n * 4);
        let mut row = self.row("derivative3d", problem, weak, halo);
        row.both_s = self.time(|| both(&mut f))?;
        let mut digest = 0_u64;
        for df in [&dx, &dy, &dz] {
            digest = digest.rotate_left(1).wrapping_add(self.digest(df)?);
        }
        row.compute_s = self.time(|| {
            part.derivative(Axis::X, f.buffer(), dx.buffer_mut())?;
            part.derivative(Axis::Y, f.buffer(), dy.buffer_mut())?;
            Ok(part.derivative(Axis::Z, f.buffer(), dz.buffer_mut())?)
        })?;
        row.exchange_s = self.exchange(f)?;
        Ok((row, digest))
    }

    /// Steps of a wave in a box, with an exchange after each.
    fn wave3d(&self, n: usize, weak: bool) -> Result<(ScalingRow, u64), Failed> {
        let Self {
            communicator,
            device,
            ..
        } = *self;
        let shape = Shape3::new(n, n, self.points(n, weak));
        let cut = Decomposition::slabs([shape.nx, shape.ny, shape.nz], communicator.size())?;
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
        let problem = format!("{n}x{n}x{}, radius 4, f32", shape.nz);
        let mut row = self.row("wave3d", problem, weak, (Halo::Cube, 2 * width * n * n * 4));
        let block = cut.block(communicator.rank())?;
        let digest = self.digest_of(values_of(block, cut.points(), &waves.own_values(0)?))?;
        row.both_s = self.time(|| waves.steps(1))?;
        drop(waves);

        let messages = Ghosted::new(communicator, device, cut, width, |_| 0.0_f32)?;
        let [nx, ny, nz] = messages.extents();
        let part = Shape3::new(nx, ny, nz);
        let velocity = Field3::filled(part, 1.0)?;
        let now = Field3::from_fn(part, |i, j, k| initial([i, j, k]).now)?;
        let mut part = of_shape(part)?.start(device, time_step, &velocity, [&now, &now])?;
        row.compute_s = self.time(|| Ok(part.steps(1)?))?;
        drop(part);
        row.exchange_s = self.exchange(messages)?;
        Ok((row, digest))
    }

    /// The sum of an array. Its messages are numbers of the host.
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
        let mut row = self.row(
            "reduction",
            format!("sum of {all} f32"),
            weak,
            (Halo::Numbers, 0),
        );
        let total = sum(communicator, &values)?;
        row.both_s = self.time(|| sum(communicator, &values).map(drop))?;
        let mut plan = Reduction::new().plan(device)?;
        row.compute_s = self.time(|| Ok(plan.sum(&values).map(drop)?))?;
        if ranks > 1 {
            row.exchange_s = self.time(|| communicator.all_gather(&[1.0_f32]).map(drop))?;
        }
        Ok((row, total.to_bits().into()))
    }

    /// The accelerations of bodies, in as many parts for any number of ranks. With as many
    /// interactions for each rank, the bodies grow with the root of the ranks.
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
            problem,
            weak,
            (Halo::All, n * size_of::<Body<f32>>()),
        );
        row.both_s = self.time(|| plan.accelerations(&own, &mut found))?;
        row.compute_s = self.time(|| plan.accelerations_as_gathered(&mut found))?;
        if communicator.size() > 1 {
            row.exchange_s = self.time(|| plan.gather(&own))?;
        }
        Ok((row, digest))
    }

    /// The messages of a field alone; no time for one rank, which has none.
    fn exchange<const D: usize>(&self, mut field: Ghosted<f32, D>) -> Result<f64, Failed> {
        if self.communicator.size() == 1 {
            return Ok(0.0);
        }
        self.time(|| field.exchange(self.communicator))
    }

    /// Messages of up to `most` bytes, from every rank to the next one.
    fn messages(&self, most: usize) -> Result<Vec<MessageTime>, Failed> {
        let (rank, ranks) = (self.communicator.rank(), self.communicator.size());
        if ranks == 1 {
            return Ok(Vec::new());
        }
        let lengths = std::iter::successors(Some(8), |bytes| Some(8 * bytes));
        let lengths = lengths.take_while(|&bytes| bytes < most).chain([most]);
        let timed = lengths.map(|bytes| {
            let seconds = self.time(|| {
                let outgoing = vec![Parcel {
                    to: (rank + 1) % ranks,
                    tag: 0,
                    bytes: self.device.zeros(bytes)?,
                }];
                let incoming = vec![Expected {
                    from: (rank + ranks - 1) % ranks,
                    tag: 0,
                    bytes,
                }];
                let arrival = self.communicator.begin(self.device, outgoing, incoming)?;
                arrival().map(drop)
            })?;
            Ok(MessageTime {
                bytes: bytes as u64,
                seconds,
            })
        });
        timed.collect()
    }
}

/// The values of a block of a grid of so many points, with their places in it.
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
