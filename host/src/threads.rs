//! The threads of the CPU ports: rayon's, or only the calling thread if there are none.

mod processor;
mod team;

use std::error::Error as _;
use std::num::NonZero;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Makes rayon usable on the calling thread; call it before giving rayon any work.
///
/// Without it, work would panic if the system refuses to create threads, and would wait forever in
/// a process made by `fork`, which has only the calling thread. In both cases the calling thread
/// becomes a pool of its own and does all the work. The results are the same, because no bit
/// depends on which thread computes what.
pub(crate) fn ready() {
    /// The process that owns rayon's threads; `None` if they could not be created.
    static HOME: OnceLock<Option<u32>> = OnceLock::new();

    // A thread of a pool uses its own pool.
    if rayon::current_thread_index().is_some() {
        return;
    }
    let home = HOME.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
        // An error with a source means that the system refused. One without a source means that the
        // user has already created the pool.
        Err(error) if error.source().is_some() => None,
        _ => Some(process::id()),
    });
    if *home != Some(process::id()) {
        // The pool lasts as long as the thread, so nothing needs to keep it. Building it fails only
        // on threads of pools, which do not reach this line.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread()
            .build();
    }
}

/// The number of threads among which work is divided; calls [`ready`].
pub(crate) fn count() -> usize {
    ready();
    rayon::current_num_threads()
}

/// The number of threads that the machine runs at a time; 1 if unknown. Unlike [`count`], it starts
/// none.
pub(crate) fn hardware() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// The number of threads for `work`, such that each gets at least `share` of it. A `share` takes
/// about as long as giving work to a thread. If the result is 1, it creates no threads.
pub(crate) fn worth(work: usize, share: usize) -> usize {
    match work / share {
        0 | 1 => 1,
        threads => threads.min(count()),
    }
}

/// The number of bands, at most `most`, into which to cut something. Each band has `pieces` pieces, and each
/// thread takes one piece after the other. The number is the largest that takes at most a ninth longer
/// than the best one, if no thread is delayed: with many bands a thread that is delayed has fewer of them.
pub(crate) fn full_bands(threads: usize, most: usize, pieces: usize) -> usize {
    // A band takes a part of the time, and all take as many such parts as there are rounds.
    let rounds = |bands: usize| (bands * pieces).div_ceil(threads);
    let longer = |a: &usize, b: &usize| (rounds(*a) * b).cmp(&(rounds(*b) * a));
    let best = (1..=most).min_by(longer).unwrap_or(1);
    let good = |&bands: &usize| 9 * rounds(bands) * best <= 10 * rounds(best) * bands;
    (1..=most).rev().find(good).unwrap_or(best)
}

/// The most parts into which the pieces of work are divided.
const PARTS: usize = 64;

/// Pieces of work, `0..pieces`; each is taken once.
///
/// Each thread starts with its own part, of consecutive pieces, so it finds data in its caches that
/// the same work left there before. Then it helps the others.
struct Pieces {
    pieces: usize,
    parts: usize,
    /// For each part, the number of pieces taken.
    taken: [Taken; PARTS],
}

/// Aligned to a cache line of its own, because threads count at the same time.
#[repr(align(64))]
struct Taken(AtomicUsize);

impl Pieces {
    fn new(pieces: usize, threads: usize) -> Self {
        Self {
            pieces,
            parts: threads.clamp(1, PARTS),
            taken: [const { Taken(AtomicUsize::new(0)) }; PARTS],
        }
    }

    /// The first piece of a part.
    fn begin(&self, part: usize) -> usize {
        let (each, more) = (self.pieces / self.parts, self.pieces % self.parts);
        part * each + part.min(more)
    }

    /// The pieces that thread number `thread` takes.
    fn take(&self, thread: usize) -> impl Iterator<Item = usize> {
        let first = thread % self.parts;
        let parts = (first..self.parts).chain(0..first);
        parts.flat_map(move |part| {
            let (begin, end) = (self.begin(part), self.begin(part + 1));
            std::iter::from_fn(move || {
                // Relaxed suffices: the threads exchange results where they join, not here.
                let taken = &self.taken[part].0;
                // Threads that find nothing left only read, so none waits for another's writes.
                if begin + taken.load(Ordering::Relaxed) >= end {
                    return None;
                }
                let piece = begin + taken.fetch_add(1, Ordering::Relaxed);
                (piece < end).then_some(piece)
            })
        })
    }
}

/// Shares the pieces `0..pieces` among at most `threads` threads, including the calling one, and
/// calls `work` on each thread with its pieces. It does not wait for a thread that has not begun,
/// and with `threads` = 1 it starts no other.
pub(crate) fn share(
    threads: usize,
    pieces: usize,
    work: impl Fn(&mut dyn Iterator<Item = usize>) + Sync,
) {
    share_with_scratch::<()>(threads, pieces, &[], |mine, _| work(mine));
}

/// [`share`] with one of the `scratches` for each thread; where there are fewer, an empty one.
///
/// If the same threads come to the next call, each has the same scratch again, which is probably in
/// its caches.
pub(crate) fn share_with_scratch<T: Send>(
    threads: usize,
    pieces: usize,
    scratches: &[Mutex<Vec<T>>],
    work: impl Fn(&mut dyn Iterator<Item = usize>, &mut [T]) + Sync,
) {
    let work = |thread: usize, mine: &mut dyn Iterator<Item = usize>| match scratches.get(thread) {
        Some(scratch) => {
            let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
            work(mine, &mut scratch);
        }
        None => work(mine, &mut []),
    };
    share_by_number(threads, pieces, &work);
}

/// Like [`share`], but tells `work` the number of the thread. It is not generic, so that it is
/// compiled once and not for each kind of work.
fn share_by_number(
    threads: usize,
    pieces: usize,
    work: &(dyn Fn(usize, &mut dyn Iterator<Item = usize>) + Sync),
) {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return work(0, &mut (0..pieces));
    }
    ready();
    let pieces = &Pieces::new(pieces, threads);
    let in_pool = rayon::current_thread_index().is_some();
    if !in_pool && team::TEAM.call(threads, &|thread| work(thread, &mut pieces.take(thread))) {
        return;
    }
    // The calling thread works too. In rayon's own loops it would wait and need waking up.
    rayon::in_place_scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move |_| work(thread, &mut pieces.take(thread)));
        }
        work(0, &mut pieces.take(0));
    });
}

/// Pieces of an array for each thread, enough that no thread waits long for the last one.
const PIECES_PER_THREAD: usize = 8;

/// Cuts `values` into parts and calls `work` for each, on at most `threads` threads, with the index
/// of the part's first element, which is a multiple of `granule`.
pub(crate) fn share_parts<T: Send>(
    threads: usize,
    values: &mut [T],
    granule: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    if threads <= 1 {
        return work(0, values);
    }
    let pieces = threads * PIECES_PER_THREAD;
    let len = values
        .len()
        .div_ceil(pieces)
        .max(1)
        .next_multiple_of(granule);
    let parts: Vec<_> = values.chunks_mut(len).map(Mutex::new).collect();
    share(threads, parts.len(), |mine| {
        for part in mine {
            // Each part is locked once.
            let mut values = parts[part].lock().unwrap_or_else(PoisonError::into_inner);
            work(part * len, &mut values);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_taken_once_by_whichever_thread() {
        for pieces in [0, 1, 2, 3, 63, 64, 65, 1000] {
            for threads in [0, 1, 2, 3, 7, 64, 65, 200] {
                let visits: Vec<_> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                let calls = AtomicUsize::new(0);
                let mut scratches: Vec<_> =
                    (0..threads.max(1)).map(|_| Mutex::new(vec![0])).collect();
                share_with_scratch(threads, pieces, &scratches, |mine, scratch| {
                    scratch[0] += 1;
                    calls.fetch_add(1, Ordering::Relaxed);
                    for piece in mine {
                        visits[piece].fetch_add(1, Ordering::Relaxed);
                    }
                });
                let once = |visits: &AtomicUsize| visits.load(Ordering::Relaxed) == 1;
                assert!(
                    visits.iter().all(once),
                    "{pieces} pieces, {threads} threads"
                );
                let most = threads.min(pieces).max(1);
                let calls = calls.into_inner();
                let used = scratches
                    .iter_mut()
                    .map(|scratch| scratch.get_mut().unwrap()[0]);
                let used: Vec<usize> = used.collect();
                assert!(used.iter().all(|&calls| calls <= 1), "{used:?}");
                assert_eq!(used.iter().sum::<usize>(), calls);
                assert!((1..=most).contains(&calls), "{calls}: {pieces}, {threads}");
            }
        }
    }

    #[test]
    fn bands_fill_the_rounds_of_the_threads() {
        for (threads, most, pieces, bands) in [
            (1, 7, 3, 7),
            (16, 64, 1, 64),
            // With 18 or 36 bands the last round has two or four.
            (16, 18, 1, 16),
            (16, 36, 1, 32),
            (16, 31, 1, 31),
            (2, 3, 1, 2),
            // Four bands of five pieces are 20, three of seven are 21.
            (16, 4, 5, 3),
            (16, 3, 7, 2),
            // Too few for all threads.
            (16, 5, 1, 5),
            (16, 1, 18, 1),
        ] {
            assert_eq!(
                full_bands(threads, most, pieces),
                bands,
                "{threads}, {most}, {pieces}"
            );
        }
    }

    #[test]
    fn a_thread_that_is_alone_takes_all_pieces() {
        for parts in [1, 2, 5, PARTS] {
            for first in [0, 1, 4] {
                let pieces = Pieces::new(77, parts);
                let mut taken: Vec<_> = pieces.take(first).collect();
                assert_eq!(taken[0], pieces.begin(first % parts));
                taken.sort_unstable();
                assert!(taken.into_iter().eq(0..77), "{parts}, {first}");
            }
        }
    }

    #[test]
    fn parts_are_the_whole_and_begin_where_they_are_said_to() {
        for len in [0, 1, 7, 64, 1000] {
            for (threads, granule) in [(1, 1), (2, 1), (2, 32), (3, 7), (70, 5)] {
                let mut values = vec![0; len];
                share_parts(threads, &mut values, granule, |first, values| {
                    assert_eq!(first % granule, 0);
                    for (i, value) in values.iter_mut().enumerate() {
                        *value += first + i + 1;
                    }
                });
                assert!(
                    values.into_iter().eq(1..=len),
                    "{len}, {threads}, {granule}"
                );
            }
        }
    }

    #[test]
    fn many_threads_share_at_once_and_within_what_they_share() {
        let sum = |mine: &mut dyn Iterator<Item = usize>, all: &AtomicUsize| {
            all.fetch_add(mine.sum::<usize>(), Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for pieces in (0..40).cycle().take(400) {
                        let all = AtomicUsize::new(0);
                        share(3, 5, |outer| {
                            for _ in outer {
                                share(2, pieces, |mine| sum(mine, &all));
                            }
                        });
                        let once = pieces * pieces.saturating_sub(1) / 2;
                        assert_eq!(all.into_inner(), 5 * once);
                    }
                });
            }
        });
    }

    #[test]
    fn whoever_panics_the_caller_does_and_can_share_again() {
        use std::panic::{AssertUnwindSafe, catch_unwind};
        for bad in 0..100 {
            let result = catch_unwind(AssertUnwindSafe(|| {
                share(2, 100, |mine| {
                    for piece in mine {
                        assert_ne!(piece, bad, "this one");
                    }
                });
            }));
            assert!(result.is_err(), "{bad}");
            let all = AtomicUsize::new(0);
            share(2, 100, |mine| {
                all.fetch_add(mine.count(), Ordering::Relaxed);
            });
            assert_eq!(all.into_inner(), 100);
        }
    }

    #[test]
    fn little_work_is_for_one_thread() {
        assert_eq!(worth(0, 10), 1);
        assert_eq!(worth(19, 10), 1);
        assert_eq!(worth(20, 10), count().min(2));
        assert_eq!(worth(usize::MAX, 10), count());
    }
}
