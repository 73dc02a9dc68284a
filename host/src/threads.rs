//! The threads of the CPU ports: rayon's, or the calling one alone where there are none.
#![forbid(unsafe_code)]

use std::error::Error as _;
use std::process;
use std::sync::OnceLock;

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
