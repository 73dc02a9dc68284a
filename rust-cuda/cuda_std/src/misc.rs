//! A breakpoint, profiler counters and the clock, for debugging and measuring.

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;

/// Stops the kernel for a debugger (`brkpt`). Without a debugger the launch
/// fails.
///
/// In the emulator it does nothing: set the breakpoint in the debugger instead.
#[inline(always)]
pub fn breakpoint() {
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: stops the thread and accesses no memory.
    unsafe {
        asm!("brkpt;");
    }
}

/// Increments one of eight hardware counters, by one per warp; a profiler reads
/// them (`pmevent`).
///
/// A constant `counter` is one instruction, any other a branch over eight. In
/// the emulator nothing is counted.
///
/// # Panics
///
/// When `counter` is not in `0..=7`.
#[inline(always)]
#[track_caller]
pub fn profiler_counter(counter: u32) {
    assert!(counter <= 7, "profiler counters are numbered 0 to 7");
    #[cfg(target_arch = "nvptx64")]
    // SAFETY: counts and accesses no memory.
    unsafe {
        match counter {
            0 => asm!("pmevent 0;"),
            1 => asm!("pmevent 1;"),
            2 => asm!("pmevent 2;"),
            3 => asm!("pmevent 3;"),
            4 => asm!("pmevent 4;"),
            5 => asm!("pmevent 5;"),
            6 => asm!("pmevent 6;"),
            _ => asm!("pmevent 7;"),
        }
    }
}

/// Reads the counter of the multiprocessor's clock cycles (`%clock64`).
///
/// Only differences of readings on one multiprocessor have a meaning. In the
/// emulator it counts nanoseconds.
#[must_use]
#[inline(always)]
pub fn clock() -> u64 {
    #[cfg(target_arch = "nvptx64")]
    {
        let cycles: u64;
        // SAFETY: reads a special register. Not `pure`: two readings differ.
        unsafe {
            asm!("mov.u64 {}, %clock64;", out(reg64) cycles, options(nostack, preserves_flags));
        }
        cycles
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        use std::sync::OnceLock;
        use std::time::Instant;
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}
