//! The n-body kernels with test data, for tests and benchmarks that iterate over the table.

use super::check::{self, ACCELERATIONS};
use super::gpu::{self, Launch};
use super::problem::error_bound;
use super::{Body, Gravity, Variant, cpu, kick_drift};
use crate::scalar::Scalar;
use crate::subject::{
    Case, Entry, Expected, Judge, Memory, Problem, Random, ScalarType, Subject, buffer, buffer_mut,
    launching,
};
use crate::{DeviceKind, Error};
use gpu_kernels::nbody::geometry;
use gpu_kernels::nbody::parts::{Round, Rows, TileParts, distances, groups};
use gpu_kernels::nbody::{SYMMETRIC_GROUP, SYMMETRIC_TILE, SYMMETRIC_TILES};

/// The family of n-body kernels.
pub(crate) struct Cases;

const SOFTENING: f64 = 0.05;

/// Sizes around a warp and a block, and irregular sizes.
const SIZES: [usize; 14] = [1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 509, 1009];

impl Subject for Cases {
    fn family(&self) -> &'static str {
        "nbody"
    }

    fn problems(&self, entry: &Entry) -> Vec<Problem> {
        let lines = |sizes: &[usize]| sizes.iter().copied().map(Problem::line).collect();
        match (entry.variant, variant(entry)) {
            ("kick_drift" | "potential" | "mixed", _) => lines(&SIZES),
            // One row and no reactions; rows in groups of eight and some left over; an even and an
            // odd number of groups.
            ("sum", _) => [(1, 1), (300, 9), (1030, 3), (1540, 7)]
                .into_iter()
                .flat_map(|(n, parts)| {
                    let tiles = TileParts::new(n, parts).all().rows();
                    let rounds = Round::all(n, 2, parts as u32).map(Round::rows);
                    std::iter::once(tiles).chain(rounds).map(Rows::problem)
                })
                .collect(),
            // Tiles of 128 and blocks of 512 bodies that are full, or one body short or over.
            (_, Some(Variant::RegisterTile)) => [1, 127, 128, 129, 511, 512, 513, 641, 1024, 1499]
                .into_iter()
                .flat_map(|n| [1, 3, 1000].map(|parts| TileParts::new(n, parts).all().problem()))
                .collect(),
            // Groups that meet no other, one opposite group, and a full circle.
            (_, Some(Variant::Symmetric)) => [1, 129, 512, 513, 1025, 1100]
                .into_iter()
                .flat_map(|n| [1, 3, 1000].map(|parts| Problem::plane(n, parts)))
                .collect(),
            // Every remainder after zero, one and two iterations of the unrolled loop.
            (_, Some(textbook)) => (1..=2 * textbook.unroll() + 1)
                .map(|n| (32, n))
                .chain([31, 33, 95, 96, 97, 257].map(|n| (32, n)))
                .chain([1, 63, 64, 65, 129, 193].map(|n| (64, n)))
                .chain([95, 96, 97, 389].map(|n| (96, n)))
                .chain([(1024, 100), (1024, 1025)])
                .chain(SIZES.map(|n| (128, n)))
                .map(|(block, n)| Problem::line(n).with_block(block))
                .collect(),
            (_, None) => Vec::new(),
        }
    }

    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        numbers: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error> {
        let case = match (entry.scalar, entry.variant) {
            (_, "mixed") => mixed(problem, numbers)?,
            (ScalarType::F64, _) => case::<f64>(entry, problem, numbers)?,
            _ => case::<f32>(entry, problem, numbers)?,
        };
        Ok(vec![case])
    }
}

/// The CPU ports for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// The plain reference: an array of structures, one body after the other, one thread. It adds
    /// in the order of the kernels.
    Aos,
    /// The computation of [`Device::cpu`](crate::Device::cpu): vectors of bodies, as long as the
    /// processor's, on all threads. It adds sums over 128 bodies to a total.
    Soa,
}

impl Port {
    /// Both ports.
    pub const ALL: [Self; 2] = [Self::Aos, Self::Soa];
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Aos => "array of structures",
            Self::Soa => "structure of arrays",
        })
    }
}

#[doc(hidden)]
impl Gravity {
    /// Computes the acceleration of each of `bodies` with the given CPU port.
    ///
    /// # Errors
    ///
    /// As for [`accelerations_of_into`](Self::accelerations_of_into), except that the bodies are
    /// not checked.
    pub fn accelerations_by<T: Scalar>(
        &self,
        port: Port,
        bodies: &[Body<T>],
        accelerations: &mut [[T; 3]],
    ) -> Result<(), Error> {
        check::lengths(bodies.len(), ACCELERATIONS, accelerations.len())?;
        let softening_squared = self.softening_squared::<T>()?;
        match port {
            Port::Aos => cpu::aos(bodies, softening_squared, accelerations),
            Port::Soa => cpu::soa(bodies, softening_squared, accelerations),
        }
        Ok(())
    }
}

/// The number of interactions of `n` bodies, n², including each body with itself; at most
/// `u64::MAX`.
#[doc(hidden)]
#[must_use]
pub const fn interactions(n: usize) -> u64 {
    geometry::interactions(&Problem::line(n))
}

#[doc(hidden)]
impl Variant {
    /// The name of the entry point for bodies of `T` in the PTX.
    #[must_use]
    pub fn kernel<T: Scalar>(self) -> &'static str {
        self.entry::<T>().name
    }
}

/// The name of the entry point for potentials of bodies of `T` in the PTX.
#[doc(hidden)]
#[must_use]
pub fn potential_kernel<T: Scalar>() -> &'static str {
    T::POTENTIAL
}

/// The name of the entry point for accelerations in mixed precision in the PTX.
#[doc(hidden)]
pub const MIXED_KERNEL: &str = gpu::MIXED;

/// The variant of a kernel for accelerations; `None` for other kernels.
fn variant(entry: &Entry) -> Option<Variant> {
    Variant::ALL
        .into_iter()
        .find(|variant| variant.entries().iter().any(|it| it.name == entry.name))
}

/// Bodies in the cube from -1 to 1, with masses from -1 to 2.
fn bodies<T: Scalar>(numbers: &mut Random<'_>, n: usize) -> Vec<Body<T>> {
    let mut next = |scale: f64, offset: f64| T::nearest(scale * numbers() + offset);
    (0..n)
        .map(|_| Body {
            x: next(1.0, 0.0),
            y: next(1.0, 0.0),
            z: next(1.0, 0.0),
            mass: next(1.5, 0.5),
        })
        .collect()
}

/// Vectors of numbers from -1 to 1.
fn vectors<T: Scalar>(numbers: &mut Random<'_>, n: usize) -> Vec<[T; 3]> {
    (0..n)
        .map(|_| [(); 3].map(|()| T::nearest(numbers())))
        .collect()
}

/// Rows of `n` vectors with values that no kernel could compute.
fn poison<T: Scalar>(n: usize, rows: usize) -> Vec<[T; 3]> {
    (0..n * rows)
        .map(|i| [T::nearest(-1e9 - i as f64); 3])
        .collect()
}

fn case<T: Scalar>(
    entry: &Entry,
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<Case, Error> {
    let [n, rows, _] = problem.extents;
    let mut gravity = Gravity::new(SOFTENING)?;
    if let Some(block) = problem.block {
        gravity = gravity.with_block(block)?;
    }
    match (entry.variant, variant(entry)) {
        ("kick_drift", _) => kicked::<T>(n, numbers),
        ("potential", _) => potentials::<T>(gravity, bodies(numbers, n)),
        ("sum", _) => summed::<T>(n, rows, numbers),
        (_, Some(Variant::RegisterTile)) => {
            tiles::<T>(gravity, TileParts::new(n, rows), bodies(numbers, n))
        }
        (_, Some(Variant::Symmetric)) => {
            let Some(round) = Round::all(n, distances(n), rows as u32).next() else {
                unreachable!("there is always a round")
            };
            pairs::<T>(gravity, round, bodies(numbers, n))
        }
        (_, Some(variant)) => whole::<T>(gravity, variant, bodies(numbers, n)),
        (other, None) => unreachable!("the family has no kernel {other}"),
    }
}

/// The sum of r s over some bodies, and the sum of the absolute terms, in f64.
type Sum = ([f64; 3], f64);

/// The pull of these bodies on a body at `position`.
///
/// Written component by component: without optimisation, the functions of arrays and iterators take
/// ten times as long.
fn pull<'a, T: Scalar>(position: [T; 3], others: impl Iterator<Item = &'a Body<T>>) -> Sum {
    let [x, y, z]: [f64; 3] = position.map(Into::into);
    let ([mut sum_x, mut sum_y, mut sum_z], mut size) = ([0.0; 3], 0.0);
    for other in others {
        let there: [f64; 4] = [
            other.x.into(),
            other.y.into(),
            other.z.into(),
            other.mass.into(),
        ];
        let (dx, dy, dz) = (there[0] - x, there[1] - y, there[2] - z);
        let square = dx * dx + dy * dy + dz * dz;
        let s = there[3] / (square + SOFTENING * SOFTENING).powf(1.5);
        sum_x += dx * s;
        sum_y += dy * s;
        sum_z += dz * s;
        size += square.sqrt() * s.abs();
    }
    ([sum_x, sum_y, sum_z], size)
}

/// Returns an error unless each vector differs from its sum by at most `roundoffs` of the terms'
/// absolute sum or, if there is no sum, equals the earlier value.
fn near<V: Scalar>(
    memory: &dyn Memory,
    expected: &[Option<Sum>],
    before: &[[V; 3]],
    relative: f64,
) -> Result<Result<(), String>, Error> {
    let given = buffer::<[V; 3]>(memory).to_vec()?;
    for (i, (given, expected)) in given.iter().zip(expected).enumerate() {
        let right = match expected {
            None => given.map(Into::into) == before[i].map(Into::into),
            Some((sum, size)) => {
                let square: f64 = (0..3)
                    .map(|axis| (given[axis].into() - sum[axis]).powi(2))
                    .sum();
                square.sqrt() <= relative * size
            }
        };
        if !right {
            return Ok(Err(format!(
                "number {i} is {given:?} instead of {expected:?}, within {relative:e} of the size"
            )));
        }
    }
    Ok(Ok(()))
}

fn whole<T: Scalar>(
    gravity: Gravity,
    variant: Variant,
    bodies: Vec<Body<T>>,
) -> Result<Case, Error> {
    let n = bodies.len();
    let mut port = poison(n, 1);
    let outputs = port.clone();
    cpu::aos(&bodies, gravity.softening_squared()?, &mut port);
    let sums = bodies
        .iter()
        .map(|body| Some(pull(body.position(), bodies.iter())))
        .collect::<Vec<_>>();
    let judge: Judge = Box::new(move |outputs| {
        let accelerations = buffer::<[T; 3]>(outputs[0].as_ref());
        // The emulator does not approximate the root, and adds in the order of the port.
        if accelerations.device().kind() == DeviceKind::Emulator {
            let bits = Expected::Bits(vec![Box::new(port.clone())]);
            if let Err(why) = bits.check(outputs)? {
                return Ok(Err(why));
            }
        }
        near(outputs[0].as_ref(), &sums, &port, error_bound::<T>(n))
    });
    Ok(Case {
        inputs: vec![Box::new(bodies)],
        outputs: vec![Box::new(outputs)],
        launch: Box::new(move |inputs, outputs| {
            let output = buffer_mut::<[T; 3]>(outputs[0].as_mut());
            let bodies = buffer::<Body<T>>(inputs[0].as_ref());
            let device = launching([bodies.device(), output.device()]);
            let mut plan = gravity.plan_with(device, n, variant)?;
            plan.accelerations(bodies, output)
        }),
        expected: Expected::Within(judge),
    })
}

fn tiles<T: Scalar>(
    gravity: Gravity,
    parts: TileParts,
    bodies: Vec<Body<T>>,
) -> Result<Case, Error> {
    let n = bodies.len();
    let softening_squared = gravity.softening_squared::<T>()?;
    let before = poison::<T>(n, parts.parts() as usize);
    let sums: Vec<_> = bodies
        .chunks(parts.per_part() as usize)
        .flat_map(|part| {
            bodies
                .iter()
                .map(|body| Some(pull(body.position(), part.iter())))
        })
        .collect();
    Ok(Case {
        inputs: vec![Box::new(bodies)],
        outputs: vec![Box::new(before.clone())],
        launch: Box::new(move |inputs, outputs| {
            Launch::Tiles {
                tiles: parts.all(),
                softening_squared,
                bodies: buffer(inputs[0].as_ref()),
                partials: buffer_mut(outputs[0].as_mut()),
            }
            .launch()
        }),
        expected: Expected::Within(Box::new(move |outputs| {
            near(outputs[0].as_ref(), &sums, &before, error_bound::<T>(n))
        })),
    })
}

/// All distances in one round.
fn pairs<T: Scalar>(gravity: Gravity, round: Round, bodies: Vec<Body<T>>) -> Result<Case, Error> {
    let n = bodies.len();
    let softening_squared = gravity.softening_squared::<T>()?;
    let groups = groups(n);
    let opposite = groups.is_multiple_of(2).then_some(groups / 2);
    let group_of = |i: usize| (i / SYMMETRIC_GROUP as usize) as u32;
    let some = |start: u32, len: u32| {
        let end = n.min((start + len) as usize);
        bodies[end.min(start as usize)..end].iter()
    };
    // Of two groups opposite each other, only the one in the first half computes their
    // interactions.
    let meets = |group: u32, distance: u32| opposite != Some(distance) || group < groups / 2;

    let [_, end] = round.tiles();
    let partials: Vec<_> = (0..round.parts())
        .flat_map(|part| {
            let first = part * round.per_part();
            let tiles = first..end.min(first + round.per_part());
            bodies.iter().enumerate().map(move |(i, body)| {
                let group = group_of(i);
                let others = tiles
                    .clone()
                    .filter(|tile| meets(group, tile / SYMMETRIC_TILES))
                    .flat_map(|tile| {
                        let other = (group + tile / SYMMETRIC_TILES) % groups;
                        let start = tile % SYMMETRIC_TILES * SYMMETRIC_TILE;
                        some(other * SYMMETRIC_GROUP + start, SYMMETRIC_TILE)
                    });
                Some(pull(body.position(), others))
            })
        })
        .collect();
    let reactions: Vec<_> = (1..=round.reactions())
        .flat_map(|distance| {
            bodies.iter().enumerate().map(move |(j, body)| {
                let group = (group_of(j) + groups - distance) % groups;
                let own = some(group * SYMMETRIC_GROUP, SYMMETRIC_GROUP);
                meets(group, distance).then(|| {
                    // The reactions, stored by distance from the bodies.
                    let (sum, size) = pull(body.position(), own);
                    (sum.map(|s| -s), size)
                })
            })
        })
        .collect();
    let before = [round.parts(), round.reactions()].map(|rows| poison::<T>(n, rows as usize));
    let outputs = before.clone();
    Ok(Case {
        outputs: outputs
            .into_iter()
            .map(|rows| -> Box<dyn crate::subject::Values> { Box::new(rows) })
            .collect(),
        inputs: vec![Box::new(bodies)],
        launch: Box::new(move |inputs, outputs| {
            let [partials, reactions] = outputs else {
                unreachable!("two outputs")
            };
            Launch::Pairs {
                round,
                softening_squared,
                bodies: buffer(inputs[0].as_ref()),
                partials: buffer_mut(partials.as_mut()),
                reactions: buffer_mut(reactions.as_mut()),
            }
            .launch()
        }),
        expected: Expected::Within(Box::new(move |outputs| {
            let relative = error_bound::<T>(n);
            for (number, expected) in [&partials, &reactions].into_iter().enumerate() {
                let memory = outputs[number].as_ref();
                if let Err(why) = near(memory, expected, &before[number], relative)? {
                    return Ok(Err(format!("output {number}: {why}")));
                }
            }
            Ok(Ok(()))
        })),
    })
}

/// A sum of `rows` rows. In the table's problems that is the number of tiles, or of distances in a
/// round.
fn summed<T: Scalar>(n: usize, rows: usize, numbers: &mut Random<'_>) -> Result<Case, Error> {
    let rounds = [1, 3, 7, 9]
        .into_iter()
        .flat_map(|parts| Round::all(n, 2, parts).map(Round::rows));
    let Some(rows) = rounds
        .chain([TileParts::new(n, rows).all().rows()])
        .find(|it| it.problem() == Problem::plane(n, rows))
    else {
        unreachable!("as many rows as of one of them")
    };
    let partials = vectors::<T>(numbers, n * rows.parts() as usize);
    let reactions = vectors::<T>(numbers, n * rows.reactions() as usize);
    let before = vectors::<T>(numbers, n);
    let halves = groups(n) / 2;
    let expected: Vec<[T; 3]> = (0..n)
        .map(|i| {
            let first_half = ((i / SYMMETRIC_GROUP as usize) as u32) < halves;
            let without = usize::from(rows.half_of_last() && first_half);
            [0, 1, 2].map(|axis| {
                let sum = |all: &[[T; 3]], rows: usize| {
                    (0..rows).fold(T::zeroed(), |sum, row| sum + all[row * n + i][axis])
                };
                let total = sum(&partials, rows.parts() as usize)
                    - sum(&reactions, rows.reactions() as usize - without);
                if rows.add() {
                    before[i][axis] + total
                } else {
                    total
                }
            })
        })
        .collect();
    let mut inputs: Vec<Box<dyn crate::subject::Values>> = vec![Box::new(partials)];
    if rows.reactions() > 0 {
        inputs.push(Box::new(reactions));
    }
    Ok(Case {
        inputs,
        outputs: vec![Box::new(before)],
        launch: Box::new(move |inputs, outputs| {
            let partials = buffer::<[T; 3]>(inputs[0].as_ref());
            Launch::Sum {
                rows,
                partials,
                reactions: inputs.get(1).map_or(partials, |rows| buffer(rows.as_ref())),
                accelerations: buffer_mut(outputs[0].as_mut()),
            }
            .launch()
        }),
        expected: Expected::Bits(vec![Box::new(expected)]),
    })
}

fn kicked<T: Scalar>(n: usize, numbers: &mut Random<'_>) -> Result<Case, Error> {
    let accelerations = vectors::<T>(numbers, n);
    let velocities = vectors::<T>(numbers, n);
    let bodies = bodies::<T>(numbers, n);
    let times = [0.25, -0.75];
    let (mut kicked, mut moved) = (velocities.clone(), bodies.clone());
    T::kick_drift(
        &accelerations,
        times.map(T::nearest),
        &mut kicked,
        &mut moved,
    );
    Ok(Case {
        inputs: vec![Box::new(accelerations)],
        outputs: vec![Box::new(velocities), Box::new(bodies)],
        launch: Box::new(move |inputs, outputs| {
            let [velocities, bodies] = outputs else {
                unreachable!("two outputs")
            };
            let accelerations = buffer::<[T; 3]>(inputs[0].as_ref());
            let bodies = buffer_mut(bodies.as_mut());
            kick_drift(
                accelerations,
                times,
                buffer_mut(velocities.as_mut()),
                bodies,
            )
        }),
        expected: Expected::Bits(vec![Box::new(kicked), Box::new(moved)]),
    })
}

fn potentials<T: Scalar>(gravity: Gravity, bodies: Vec<Body<T>>) -> Result<Case, Error> {
    let n = bodies.len();
    let place = |body: &Body<T>| -> [f64; 3] { body.position().map(Into::into) };
    let expected: Vec<[f64; 2]> = (0..n)
        .map(|i| {
            let here = place(&bodies[i]);
            let others = bodies.iter().enumerate().filter(|(j, _)| *j != i);
            others.fold([0.0; 2], |[sum, size], (_, other)| {
                let there = place(other);
                let square: f64 = (0..3).map(|axis| (there[axis] - here[axis]).powi(2)).sum();
                let mass: f64 = other.mass.into();
                let term = mass / square.sqrt().hypot(SOFTENING);
                [sum - term, size + term.abs()]
            })
        })
        .collect();
    let roundoffs = 14.0 + f64::from(gravity.block());
    let relative = roundoffs * T::UNIT_ROUNDOFF + (n as f64 + 10.0) * f64::UNIT_ROUNDOFF;
    Ok(Case {
        inputs: vec![Box::new(bodies)],
        outputs: vec![Box::new(vec![f64::NAN; n])],
        launch: Box::new(move |inputs, outputs| {
            let bodies = buffer::<Body<T>>(inputs[0].as_ref());
            let potentials = buffer_mut::<f64>(outputs[0].as_mut());
            let device = launching([bodies.device(), potentials.device()]);
            gravity.plan(device, n)?.potentials(bodies, potentials)
        }),
        expected: Expected::Within(Box::new(move |outputs| {
            let given = buffer::<f64>(outputs[0].as_ref()).to_vec()?;
            let pairs = given.iter().zip(&expected).enumerate();
            for (i, (given, [sum, size])) in pairs {
                // Written so that NaN fails.
                if !((given - sum).abs() <= relative * size) {
                    return Ok(Err(format!("number {i} is {given:e} instead of {sum:e}")));
                }
            }
            Ok(Ok(()))
        })),
    })
}

fn mixed(problem: &Problem, numbers: &mut Random<'_>) -> Result<Case, Error> {
    let gravity = Gravity::new(SOFTENING)?;
    let bodies = bodies::<f32>(numbers, problem.points());
    let sums: Vec<_> = bodies
        .iter()
        .map(|body| Some(pull(body.position(), bodies.iter())))
        .collect();
    let n = bodies.len();
    let before = poison::<f64>(n, 1);
    let roundoffs = 21.0 + f64::from(gravity.block());
    Ok(Case {
        inputs: vec![Box::new(bodies)],
        outputs: vec![Box::new(before.clone())],
        launch: Box::new(move |inputs, outputs| {
            let output = buffer_mut::<[f64; 3]>(outputs[0].as_mut());
            let bodies = buffer::<Body<f32>>(inputs[0].as_ref());
            let mut plan = gravity.plan(launching([bodies.device(), output.device()]), n)?;
            plan.accelerations_mixed(bodies, output)
        }),
        expected: Expected::Within(Box::new(move |outputs| {
            let relative = 1.01 * roundoffs * f32::UNIT_ROUNDOFF;
            near(outputs[0].as_ref(), &sums, &before, relative)
        })),
    })
}
