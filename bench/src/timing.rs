//! Times launches: those of one row, or those of a row and its baselines in turns, as single
//! launches or as replayed graphs.
//!
//! In turns, a drift of clock or temperature affects all alike. The order alternates (A B B A, not
//! A B A B), because each finds the caches as the one before left them. On a GPU all single
//! launches are enqueued before the first begins, so that the GPU is timed and not the host.

use std::cell::RefCell;
use std::time::Duration;

use halo_gpu::roofline::MultiplyAdds;
use halo_gpu::{Buffer, Device, DeviceKind, Error};

use crate::flags::Bench;

/// Something that can be launched and timed.
pub(super) trait Timed {
    /// Launches once, without waiting for the end.
    fn launch(&mut self) -> Result<(), Error>;
    /// Restores the data that a launch destroys, without waiting for the end; returns whether
    /// launches destroy anything. Never timed.
    fn restore(&mut self) -> Result<bool, Error>;
    /// Gets its threads ready, before its turn on the CPU. Never timed.
    fn begin(&mut self) {}
    /// Stops threads that would disturb the next turn. Never timed.
    fn end(&mut self) {}
}

/// The durations of the timed launches, after the warm-up, for each of `all` in turns. There is at
/// least one.
pub(super) fn single(
    device: &Device,
    flags: &Bench,
    all: &mut [&mut dyn Timed],
) -> Result<Vec<Vec<Duration>>, Error> {
    let mut restores = false;
    for one in all.iter_mut() {
        restores |= one.restore()?;
    }
    if device.kind() == DeviceKind::Cuda && !restores {
        let (warmup, launches) = (flags.warmup as usize, flags.launches() as usize);
        let mut hold = Hold::new(device, (warmup + launches) * all.len())?;
        // The warm-up begins with one more: the work that keeps the device busy.
        let mut turn = std::iter::once(None).chain(turns(all.len()).map(Some));
        let timings =
            device.time_each(1 + warmup * all.len(), launches * all.len(), || match turn
                .next()
                .flatten()
            {
                None => hold.run(),
                Some(at) => all[at].launch(),
            })?;
        return Ok(dealt(&timings, all.len(), warmup));
    }
    if flags.compare && device.kind() == DeviceKind::Cpu && !restores {
        return in_bursts(device, flags, all);
    }
    // Each launch is between two events of its own, since a restore may come between two launches.
    // The GPU is still busy with that when the launch arrives, so no overhead of the launch is
    // counted.
    let turns = repeat(flags, budget(device, flags), || {
        all.iter_mut()
            .map(|one| {
                one.restore()?;
                device.time(|| one.launch())
            })
            .collect::<Result<Vec<_>, _>>()
    })?;
    Ok((0..all.len())
        .map(|at| turns.iter().map(|turn| turn[at]).collect())
        .collect())
}

/// A launch that takes longer than this has a turn on the CPU for itself.
pub(super) const LONG: Duration = Duration::from_millis(5);

/// The duration of a turn of shorter launches.
const BURST: Duration = Duration::from_millis(2);

/// The number of launches in a turn on the CPU.
pub(super) fn burst(launch: Duration) -> u32 {
    let wanted = BURST.as_nanos() / launch.as_nanos().max(1);
    wanted.clamp(1, 100_000) as u32
}

/// As [`single`], on the CPU, where each participant has threads of its own.
///
/// A turn is as many launches as take some milliseconds, after one that is not timed: as in a
/// program that does nothing else, the threads are awake and the caches are warm. Between turns the
/// threads are stopped: a thread that waits in a loop for more work would cost the next participant
/// a core.
fn in_bursts(
    device: &Device,
    flags: &Bench,
    all: &mut [&mut dyn Timed],
) -> Result<Vec<Vec<Duration>>, Error> {
    let count = all.len();
    let mut order = turns(count);
    let budget = budget(device, flags).saturating_mul(count as u32);
    let rounds = repeat(flags, budget, || {
        let mut round = vec![Turn::default(); count];
        for at in order.by_ref().take(count) {
            let one = &mut all[at];
            one.begin();
            let first = device.time(|| one.launch())?;
            round[at] = if first > LONG {
                Turn {
                    each: first,
                    all: first,
                }
            } else {
                let launches = burst(first);
                let all = device.time(|| (0..launches).try_for_each(|_| one.launch()))?;
                Turn {
                    each: all / launches,
                    all: first + all,
                }
            };
            one.end();
        }
        Ok::<_, Error>(round)
    })?;
    Ok((0..count)
        .map(|at| rounds.iter().map(|round| round[at].each).collect())
        .collect())
}

/// The times of a turn of several launches.
#[derive(Clone, Copy, Default)]
struct Turn {
    /// The time of one launch.
    each: Duration,
    /// The time of the whole turn.
    all: Duration,
}

impl Took for Vec<Turn> {
    fn took(&self) -> Duration {
        self.iter().map(|turn| turn.all).sum()
    }
}

/// Work that keeps a GPU busy while the host enqueues the timed launches.
///
/// A short launch ends before the host has enqueued the next. Then the host would be timed and, in
/// turns, the cost of an expensive enqueue would be charged to the next participant.
struct Hold {
    work: MultiplyAdds,
    sums: Buffer<f32>,
}

impl Hold {
    /// More than a host needs to enqueue a launch and an event, or the two launches that some rows
    /// have.
    const PER_LAUNCH: Duration = Duration::from_micros(20);

    /// Work that lasts until the host has enqueued this many launches.
    fn new(device: &Device, launches: usize) -> Result<Self, Error> {
        // Long enough to be timed, short enough not to matter.
        const ROUNDS: u32 = 64;
        let mut work = MultiplyAdds::new(device, ROUNDS)?;
        let mut sums = device.alloc_filled(work.threads(), 0.0)?;
        work.run(&mut sums)?;
        let took = device.time(|| work.run(&mut sums))?;
        let times = Self::PER_LAUNCH.as_secs_f64() * launches as f64 / took.as_secs_f64();
        // A cast from f64 ends at the largest u32.
        work = MultiplyAdds::new(device, (f64::from(ROUNDS) * times).max(1.0) as u32)?;
        Ok(Self { work, sums })
    }

    fn run(&mut self) -> Result<(), Error> {
        self.work.run(&mut self.sums)
    }
}

/// The order of turns of `count` participants: an endless sequence of rounds, in each of which
/// everyone has a turn. After `count` rounds (twice as many if `count` is odd) each has followed
/// each other one equally often within a round: the rows of a balanced Latin square (Williams,
/// Australian Journal of Scientific Research A 2, 1949).
fn turns(count: usize) -> impl Iterator<Item = usize> {
    // 0, 1, n - 1, 2, n - 2, …: the differences of neighbours are 1, 2, 3, …
    let zigzag = move |place: usize| match place % 2 {
        1 => place.div_ceil(2),
        _ => (count - place / 2) % count,
    };
    (0..).flat_map(move |round| {
        (0..count).map(move |place| {
            let mirrored = count % 2 == 1 && (round / count) % 2 == 1;
            let place = if mirrored { count - 1 - place } else { place };
            (zigzag(place) + round) % count
        })
    })
}

/// The timings in the order of [`turns`], from round `first` on, sorted by participant.
fn dealt(timings: &[Duration], count: usize, first: usize) -> Vec<Vec<Duration>> {
    let mut dealt = vec![Vec::new(); count];
    for (&timing, at) in timings.iter().zip(turns(count).skip(first * count)) {
        dealt[at].push(timing);
    }
    dealt
}

/// A longer launch hides the host's time to enqueue it, and the gap between two launches: about 3
/// µs, less than the spread of the timings.
const SHORT: Duration = Duration::from_millis(1);

/// The duration of a graph: much longer than its start takes.
const GRAPH: Duration = Duration::from_millis(5);

/// The number of launches to put into a graph, from the time of one; `None` where a graph gains
/// nothing. Always even: rows that swap two buffers then end as they began.
pub(super) fn launches_per_graph(single: Duration) -> Option<u32> {
    if single > SHORT {
        return None;
    }
    let wanted = GRAPH.as_nanos() / single.as_nanos().max(1);
    // At most 200, so it fits.
    Some((wanted.min(200) as u32).next_multiple_of(2))
}

/// The time per launch in each of the timed replays of a graph of `launches`, for each of `all` in
/// turns.
pub(super) fn replayed(
    device: &Device,
    flags: &Bench,
    launches: u32,
    all: &mut [&mut dyn Timed],
) -> Result<Vec<Vec<Duration>>, Error> {
    let count = all.len();
    // They may share their device, but not use it at the same time.
    let all = &RefCell::new(all);
    let mut graphs = (0..count)
        .map(|at| device.record(launches as usize, move || all.borrow_mut()[at].launch()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut turn = turns(count);
    let (warmup, replays) = (flags.warmup as usize, flags.launches() as usize);
    let timings = device.time_each(warmup * count, replays * count, || {
        turn.next().map_or(Ok(()), |at| graphs[at].run())
    })?;
    let each: Vec<Duration> = timings.iter().map(|&time| time / launches).collect();
    Ok(dealt(&each, count, warmup))
}

/// The time that the launches of one row may take together, where the flags give no number of
/// launches. Fewer are made once it is used up, so that no row takes minutes.
pub(super) fn budget(device: &Device, flags: &Bench) -> Duration {
    match device.kind() {
        DeviceKind::Cuda => Duration::MAX,
        DeviceKind::Cpu if flags.is_quick(DeviceKind::Cpu) => Duration::from_millis(100),
        DeviceKind::Cpu | DeviceKind::Emulator => Duration::from_secs(2),
    }
}

/// The fewest launches for a median.
const FEWEST_LAUNCHES: usize = 3;

/// The total time of one call of a repeated measurement.
pub(super) trait Took {
    fn took(&self) -> Duration;
}

impl Took for Duration {
    fn took(&self) -> Duration {
        *self
    }
}

impl Took for Vec<Duration> {
    fn took(&self) -> Duration {
        self.iter().sum()
    }
}

/// Calls `timed` for the warm-up and then for each of the launches that count.
///
/// Where the flags give no number of launches, the warm-up ends once `budget` is used up, and so do
/// the timed launches if there are [`FEWEST_LAUNCHES`]. At five times the budget they end in any
/// case.
pub(super) fn repeat<T: Took, E>(
    flags: &Bench,
    budget: Duration,
    mut timed: impl FnMut() -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let mut used = Duration::ZERO;
    let used_up = |used: Duration, times: u32| {
        flags.launches.is_none() && used >= budget.saturating_mul(times)
    };
    for _ in 0..flags.warmup {
        used += timed()?.took();
        if used_up(used, 1) {
            break;
        }
    }
    let mut timings = Vec::new();
    for _ in 0..flags.launches() {
        let took = timed()?;
        used += took.took();
        timings.push(took);
        let few = timings.len() < FEWEST_LAUNCHES;
        if used_up(used, if few { 5 } else { 1 }) {
            break;
        }
    }
    Ok(timings)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::flags::tests::flags;

    /// Appends its letter to a shared log at every launch.
    struct Letter {
        letter: char,
        restores: bool,
        log: Rc<RefCell<String>>,
    }

    impl Timed for Letter {
        fn launch(&mut self) -> Result<(), Error> {
            self.log.borrow_mut().push(self.letter);
            Ok(())
        }

        fn restore(&mut self) -> Result<bool, Error> {
            if self.restores {
                self.log.borrow_mut().push('-');
            }
            Ok(self.restores)
        }
    }

    fn letters(restores: bool) -> (Letter, Letter, Rc<RefCell<String>>) {
        let log = Rc::new(RefCell::new(String::new()));
        let letter = |letter| Letter {
            letter,
            restores,
            log: Rc::clone(&log),
        };
        (letter('A'), letter('B'), log)
    }

    fn three_launches() -> Bench {
        Bench {
            launches: Some(3),
            warmup: 1,
            ..flags()
        }
    }

    #[test]
    fn launches_take_turns() {
        let (mut a, mut b, log) = letters(false);
        let times = single(&Device::cpu(), &three_launches(), &mut [&mut a, &mut b]).unwrap();
        assert_eq!(*log.borrow(), "ABABABAB");
        assert_eq!((times.len(), times[0].len(), times[1].len()), (2, 3, 3));
    }

    #[test]
    fn turns_of_short_launches_have_many_of_them_in_a_comparison_on_the_cpu() {
        let (mut a, mut b, log) = letters(false);
        let flags = Bench {
            compare: true,
            ..three_launches()
        };
        let times = single(&Device::cpu(), &flags, &mut [&mut a, &mut b]).unwrap();
        assert_eq!((times.len(), times[0].len(), times[1].len()), (2, 3, 3));
        let log = log.borrow();
        // A B, B A, A B, B A: each with more than one launch.
        let mut turns: Vec<char> = log.chars().collect();
        assert!(turns.len() > 4 * 10, "{}", turns.len());
        turns.dedup();
        assert_eq!(turns.iter().collect::<String>(), "ABABA");
        assert!(times.iter().flatten().all(|time| *time < LONG));
    }

    #[test]
    fn the_shorter_a_launch_is_the_more_of_them_a_turn_has() {
        let launches = |us| burst(Duration::from_micros(us));
        assert_eq!(
            [10_000, 2_000, 1_500, 100, 2].map(launches),
            [1, 1, 1, 20, 1000]
        );
        assert_eq!(burst(Duration::ZERO), 100_000);
    }

    #[test]
    fn what_a_launch_destroys_is_put_back_before_each() {
        let (mut a, _, log) = letters(true);
        let times = single(&Device::cpu(), &three_launches(), &mut [&mut a]).unwrap();
        // Once to ask whether anything needs restoring.
        assert_eq!(*log.borrow(), "--A-A-A-A");
        assert_eq!(times[0].len(), 3);
    }

    #[test]
    fn graphs_take_turns_and_are_divided_among_their_launches() {
        let (mut a, mut b, log) = letters(false);
        let all: &mut [&mut dyn Timed] = &mut [&mut a, &mut b];
        let times = replayed(&Device::cpu(), &three_launches(), 4, all).unwrap();
        // Recording runs each once; then warm-up and three timings of four each.
        assert_eq!(*log.borrow(), format!("AB{}", "AAAABBBBBBBBAAAA".repeat(2)));
        assert_eq!((times.len(), times[1].len()), (2, 3));
    }

    #[test]
    fn timings_are_dealt_to_whom_they_belong() {
        let ms = |number| Duration::from_millis(number);
        let timings = [1, 2, 3, 4, 5, 6].map(ms);
        // Rounds 0 1 2 and 1 2 0.
        assert_eq!(
            dealt(&timings, 3, 0),
            [[1, 6], [2, 4], [3, 5]].map(|own| own.map(ms).to_vec())
        );
        // Rounds 1 0, 0 1 and 1 0.
        assert_eq!(
            dealt(&timings, 2, 1),
            [[2, 3, 6], [1, 4, 5]].map(|own| own.map(ms).to_vec())
        );
        assert_eq!(dealt(&timings, 1, 3), [timings.to_vec()]);
    }

    #[test]
    fn each_comes_after_each_other_equally_often() {
        for count in 2..=7 {
            let rounds = if count % 2 == 0 { count } else { 2 * count };
            let order: Vec<usize> = turns(count).take(rounds * count).collect();
            let mut after = vec![vec![0; count]; count];
            for round in order.chunks(count) {
                let mut own = round.to_vec();
                own.sort_unstable();
                assert_eq!(own, (0..count).collect::<Vec<_>>(), "{round:?}");
                for pair in round.windows(2) {
                    after[pair[0]][pair[1]] += 1;
                }
            }
            for (one, row) in after.iter().enumerate() {
                for (other, &times) in row.iter().enumerate() {
                    let expected = if one == other { 0 } else { rounds / count };
                    assert_eq!(times, expected, "{other} after {one}, of {count}");
                }
            }
        }
    }

    #[test]
    fn short_launches_go_into_graphs_of_an_even_number() {
        let launches = |ns| launches_per_graph(Duration::from_nanos(ns));
        assert_eq!(launches(1_500), Some(200));
        assert_eq!(launches(47_000), Some(106));
        assert_eq!(launches(600_000), Some(8));
        assert_eq!(launches(1_000_000), Some(6));
        assert_eq!(launches(1_000_001), None);
        assert_eq!(launches(0), Some(200));
    }

    #[test]
    fn slow_launches_become_fewer_unless_their_number_is_given() {
        let budget = Duration::from_millis(100);
        // The number of runs and of timed launches, where a launch takes this long.
        let count = |launches: Option<u32>, milliseconds: u64| {
            let flags = Bench {
                launches,
                ..flags()
            };
            let mut calls = 0;
            let timings = repeat(&flags, budget, || {
                calls += 1;
                Ok::<_, Error>(Duration::from_millis(milliseconds))
            })
            .unwrap();
            (calls, timings.len())
        };
        assert_eq!(count(None, 1), (2 + 20, 20));
        assert_eq!(count(None, 10), (2 + 8, 8));
        assert_eq!(count(None, 100), (1 + 3, 3));
        assert_eq!(count(None, 250), (1 + 1, 1));
        assert_eq!(count(Some(7), 1000), (2 + 7, 7));
    }
}
