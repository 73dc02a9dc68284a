//! The processor on which a thread runs.
//!
//! Linux may leave two threads on one processor for tens of milliseconds while another processor is
//! idle: it may wake a thread where it ran before, and balances the load only later. Work of a few
//! milliseconds then takes as long as on one thread.

/// The number of the calling thread's processor; `None` if the system does not say.
pub(super) fn current() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        // SAFETY: takes no arguments; a failure is a negative number.
        u32::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// Moves the calling thread to another processor, if there is another one that it may use. The set
/// of processors that it may use stays as it is.
pub(super) fn leave(processor: u32) {
    #[cfg(target_os = "linux")]
    {
        use std::mem::MaybeUninit;

        const SIZE: usize = size_of::<libc::cpu_set_t>();
        let at = processor as usize;
        let mut allowed = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: the pointer is valid for a set of that size; 0 is the calling thread.
        let code = unsafe { libc::sched_getaffinity(0, SIZE, allowed.as_mut_ptr()) };
        if code != 0 || at >= 8 * SIZE {
            return;
        }
        // SAFETY: a set is an array of integers, for which zeros are valid.
        let allowed = unsafe { allowed.assume_init() };
        let mut others = allowed;
        // SAFETY: the set has a bit for this processor.
        unsafe { libc::CPU_CLR(at, &mut others) };
        // SAFETY: reads a set.
        if unsafe { libc::CPU_COUNT(&others) } == 0 {
            return;
        }
        for set in [&others, &allowed] {
            // SAFETY: the pointer is valid for a set of that size. If the system refuses, the
            // thread stays where it is.
            unsafe { libc::sched_setaffinity(0, SIZE, set) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = processor;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{current, leave};

    /// The numbers of the processors that the calling thread may use.
    fn allowed() -> Vec<usize> {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("Linux has it");
        let line = |line: &str| line.strip_prefix("Cpus_allowed_list:").map(str::to_owned);
        let list = status.lines().find_map(line).expect("a list");
        let ranges = list.trim().split(',').map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            first.parse().expect("a number")..=last.parse().expect("a number")
        });
        ranges.flatten().collect()
    }

    #[test]
    fn a_thread_leaves_its_processor_and_may_come_back() {
        std::thread::spawn(|| {
            let before = allowed();
            // The system may move the thread back at once, but not each time.
            let left = (0..100).any(|_| {
                let from = current().expect("a processor");
                leave(from);
                assert_eq!(allowed(), before);
                current() != Some(from)
            });
            assert_eq!(left, before.len() > 1);
        })
        .join()
        .expect("no panic");
    }
}
