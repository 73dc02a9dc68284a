//! The threads of the CPU ports: rayon's, or the calling one alone where there are none.

mod team;

use std::error::Error as _;
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Lets the calling thread use rayon; to be called before anything is given to it.
///
/// Without this, work would panic where the system gives no threads, and wait for ever in
/// a process made by `fork`, which has the calling thread only. In both cases the calling
/// thread becomes a pool of its own and does all the work, with the same results: which
/// thread computes what decides about no bit.
pub(crate) fn ready() {
    /// The process that has rayon's threads; `None` if they cannot be had.
    static HOME: OnceLock<Option<u32>> = OnceLock::new();

    // A thread of a pool uses that pool.
    if rayon::current_thread_index().is_some() {
        return;
    }
    let home = HOME.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
        // A source is the system's refusal. Without one, the user has made the threads.
        Err(error) if error.source().is_some() => None,
        _ => Some(process::id()),
    });
    if *home != Some(process::id()) {
        // It stays one for the thread's life, which is why nothing keeps the pool. It
        // fails for threads of pools only, which do not come here.
        let _ = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .use_current_thread()
            .build();
    }
}

/// How many threads work is divided among, which are [`ready`].
pub(crate) fn count() -> usize {
    ready();
    rayon::current_num_threads()
}

/// The number of threads to divide `work` among so that each has at least `share` of it, an amount
/// that takes as long as handing it over. If it is 1, no thread is looked for.
pub(crate) fn worth(work: usize, share: usize) -> usize {
    match work / share {
        0 | 1 => 1,
        threads => threads.min(count()),
    }
}

/// The parts into which pieces of work are divided at first.
const PARTS: usize = 64;

/// Pieces of work, `0..pieces`; each is taken once.
///
/// Each thread begins with a part of its own, of pieces that follow each other, so that it
/// finds in its caches what the same work has left there before; then it helps the others.
struct Pieces {
    pieces: usize,
    parts: usize,
    /// For each part the pieces that have been taken.
    taken: [Taken; PARTS],
}

/// In a line of the cache of its own: threads count at the same time.
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

    /// The pieces that one of several threads takes.
    fn take(&self, thread: usize) -> impl Iterator<Item = usize> {
        let first = thread % self.parts;
        let parts = (first..self.parts).chain(0..first);
        parts.flat_map(move |part| {
            let (begin, end) = (self.begin(part), self.begin(part + 1));
            std::iter::from_fn(move || {
                // Relaxed: the results are handed over where the threads meet, not here.
                let piece = begin + self.taken[part].0.fetch_add(1, Ordering::Relaxed);
                (piece < end).then_some(piece)
            })
        })
    }
}

/// Shares the pieces `0..pieces` among at most `threads` threads, the calling one included, and
/// calls `work` on each thread with its pieces. Does not wait for a thread that has not begun;
/// with one thread, looks for no other.
pub(crate) fn share(
    threads: usize,
    pieces: usize,
    work: impl Fn(&mut dyn Iterator<Item = usize>) + Sync,
) {
    let threads = threads.min(pieces);
    if threads <= 1 {
        return work(&mut (0..pieces));
    }
    ready();
    let pieces = Pieces::new(pieces, threads);
    let (pieces, work) = (&pieces, &work);
    let in_pool = rayon::current_thread_index().is_some();
    if !in_pool && team::TEAM.call(threads, &|thread| work(&mut pieces.take(thread))) {
        return;
    }
    // The calling thread works too. With rayon's own loops it would wait, and have to be woken.
    rayon::in_place_scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move |_| work(&mut pieces.take(thread)));
        }
        work(&mut pieces.take(0));
    });
}

/// Pieces of an array for each thread, so that none waits long for the last.
const PIECES_PER_THREAD: usize = 8;

/// Cuts `values` into parts and calls `work` for each, on at most `threads` threads, with the
/// index of its first element, which is a multiple of `granule`.
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
            // Each is locked once.
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
                share(threads, pieces, |mine| {
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
                assert!((1..=most).contains(&calls), "{calls}: {pieces}, {threads}");
            }
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
