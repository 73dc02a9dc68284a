//! Decides where a thread may be stopped: in a kernel's own code, below no function that may hold
//! a lock.
//!
//! A stopped thread gives up its frames. If one of them holds a lock (the standard output's, an
//! allocator's), that lock is never released. So the signal handler looks at all frames, and stops
//! the thread only if the address of each is known to be harmless; otherwise it finds the outermost
//! frame that is not, and its return address. The handler cannot look up an address itself, because
//! it must not allocate: it records unknown addresses, the watchdog looks them up, and at one of
//! the next signals they are known. A loop repeats the same few addresses.

use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::here::Return;

/// Addresses that have been looked up or are wanted. (Zero is not an address.)
static ADDRESSES: [AtomicUsize; SIZE] = [const { AtomicUsize::new(0) }; SIZE];
/// The state of each address.
static KNOWN: [AtomicU8; SIZE] = [const { AtomicU8::new(WANTED) }; SIZE];

const SIZE: usize = 1 << 12;
const WANTED: u8 = 0;
const HARMLESS: u8 = 1;
const HOLDS_LOCKS: u8 = 2;

/// The number of slots that are tried for an address.
const TRIES: usize = 16;

/// The code in which a signal has found a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// In harmless code, called from harmless code only.
    Harmless,
    /// In a call that may hold a lock, from harmless code.
    Within(Return),
    /// In a call that may hold a lock, whose return address cannot be found.
    Hidden,
    /// In code that is not known well enough yet.
    Unknown,
}

/// The place of a thread, and its calls that return before it goes deeper: a call that is part of a
/// recursion may continue in place of returning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    pub place: Interrupted,
    /// Whether the call of [`Interrupted::Within`] is part of a recursion: the code that holds the
    /// lock may be inlined into the recursive function.
    pub recurs: bool,
    /// The innermost call, unless it is part of a recursion or its return address cannot be found.
    pub innermost: Option<Return>,
}

/// The state of a thread that a signal has interrupted at the address `interrupted`. `stack` is its
/// stack, and code for which `holds_locks` is true may hold locks whatever its symbols say. For
/// signal handlers: allocates nothing.
pub(crate) fn position(
    interrupted: usize,
    stack: &Range<usize>,
    holds_locks: impl Fn(usize) -> bool,
) -> Position {
    let known = |address: usize| {
        if holds_locks(address) {
            HOLDS_LOCKS
        } else {
            known(address)
        }
    };
    // The state of the frame before the current one.
    let mut before = None;
    // According to the outermost frame so far that may hold a lock.
    let mut place = Interrupted::Harmless;
    let mut all_known = true;
    let mut whole = false;
    // The return addresses of the innermost call and of the one inside it, and whether another
    // frame returns there too.
    let mut innermost: Option<(usize, bool)> = None;
    let mut within: Option<(usize, bool)> = None;
    let mut first = None;
    // SAFETY: only symbol look-ups need synchronisation, and this makes none.
    unsafe {
        backtrace::trace_unsynchronized(|frame| {
            let address = frame.ip().addr();
            let Some(last) = before else {
                // Up to here it is the handler itself.
                if address == interrupted {
                    // A return address is looked up by the instruction before it.
                    before = Some(known(address + 1));
                }
                return true;
            };
            let top = frame.sp().addr();
            if !stack.contains(&top) {
                whole = true;
                return false;
            }
            // All frames are looked up, so that all become known. The outermost, which has none
            // behind it, is the start of the stack and no function.
            all_known &= last != WANTED;
            let call = return_at(top, address, stack);
            for (of, recurs) in [&mut innermost, &mut within].into_iter().flatten() {
                *recurs |= *of == address;
            }
            if last == HOLDS_LOCKS {
                place = call.map_or(Interrupted::Hidden, Interrupted::Within);
                within = Some((address, false));
            }
            if innermost.is_none() {
                innermost = Some((address, false));
                first = call;
            }
            before = Some(known(address));
            true
        });
    }
    let recurs = |of: Option<(usize, bool)>| of.is_some_and(|(_, recurs)| recurs);
    Position {
        place: if whole && all_known {
            place
        } else {
            Interrupted::Unknown
        },
        recurs: recurs(within),
        innermost: first.filter(|_| !recurs(innermost)),
    }
}

/// The return to `address` of the call after which the stack is at `top`, if the slot where this
/// processor's calls keep the address holds it.
fn return_at(top: usize, address: usize, stack: &Range<usize>) -> Option<Return> {
    let slot = top.checked_sub(size_of::<usize>())?;
    let kept = cfg!(target_arch = "x86_64")
        && slot.is_multiple_of(size_of::<usize>())
        && stack.contains(&slot)
        // SAFETY: an aligned word inside the accessible part of the thread's stack, and
        // the thread has been interrupted.
        && unsafe { ptr::with_exposed_provenance::<usize>(slot).read_volatile() } == address;
    kept.then_some(Return { slot, address })
}

/// Whether the instruction at an address is known to be in code that may hold a lock. For
/// signal handlers.
#[cfg(traced)]
pub(crate) fn is_known_to_hold_locks(instruction: usize) -> bool {
    // An instruction is looked up as the one before a return address.
    known(instruction + 1) == HOLDS_LOCKS
}

/// The state of an address; an unknown address is recorded as [`WANTED`].
fn known(address: usize) -> u8 {
    for place in places(address) {
        let found = ADDRESSES[place].load(Ordering::Acquire);
        if found == address {
            return KNOWN[place].load(Ordering::Acquire);
        }
        let free = found == 0;
        let taken = |place: usize| {
            ADDRESSES[place].compare_exchange(0, address, Ordering::AcqRel, Ordering::Acquire)
        };
        if free && taken(place).is_ok() {
            return WANTED;
        }
    }
    WANTED
}

fn places(address: usize) -> impl Iterator<Item = usize> {
    let first = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (usize::BITS - 12);
    (0..TRIES).map(move |i| (first + i) % SIZE)
}

/// Looks up the addresses that handlers want. Not for signal handlers.
pub(crate) fn look_up() {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut used = 0;
    for (address, known) in ADDRESSES.iter().zip(&KNOWN) {
        let address = address.load(Ordering::Acquire);
        if address == 0 {
            continue;
        }
        used += 1;
        if known.load(Ordering::Acquire) == WANTED {
            let verdict = if holds_locks(address) {
                HOLDS_LOCKS
            } else {
                HARMLESS
            };
            known.store(verdict, Ordering::Release);
        }
    }
    if used > SIZE / 4 * 3 {
        forget();
    }
}

/// Makes room. A handler that runs meanwhile may find an address unknown, or record one that is
/// forgotten again; it never finds the verdict of another address, because a verdict is reset
/// before its address is removed.
fn forget() {
    for (address, known) in ADDRESSES.iter().zip(&KNOWN) {
        let before = address.load(Ordering::Acquire);
        known.store(WANTED, Ordering::Release);
        // An address that was recorded since stays, as wanted.
        let _ = address.compare_exchange(before, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Whether the code that returns to `address` may hold a lock, as far as symbols
/// and line tables tell.
fn holds_locks(address: usize) -> bool {
    let mut holds = false;
    let address = ptr::without_provenance_mut(address);
    backtrace::resolve(address, |symbol| {
        let file = symbol
            .filename()
            .map(|file| file.to_string_lossy().into_owned());
        let raw = symbol.name().map(|name| {
            let raw = String::from_utf8_lossy(name.as_bytes()).into_owned();
            (raw, format!("{name:#}"))
        });
        let name = raw
            .as_ref()
            .map(|(raw, name)| (raw.as_str(), name.as_str()));
        holds |= function_holds_locks(file.as_deref(), name);
    });
    holds
}

/// Whether a function may hold a lock, by its source file and by its names, the mangled one and the
/// readable one.
fn function_holds_locks(file: Option<&str>, name: Option<(&str, &str)>) -> bool {
    if let Some((raw, name)) = name {
        // The compiler's function for a `catch_unwind` that is not inlined.
        if raw == "__rust_try" {
            return false;
        }
        // Functions that lock the panic hook, call the allocator, or belong to one.
        let known = [
            "panic_with_hook",
            "begin_panic",
            "rust_begin_unwind",
            "__rust_alloc",
            "__rust_dealloc",
            "__rust_realloc",
            "__rg_",
            "__rdl_",
            "GlobalAlloc",
        ];
        if known.iter().any(|known| name.contains(known)) {
            return true;
        }
    }
    match (file, name) {
        (Some(file), _) => file_holds_locks(file),
        (None, Some((raw, name))) => {
            let by_rust = raw.starts_with("_R") || raw.starts_with("_ZN") && raw.contains("17h");
            let modules = [
                "std::io",
                "std::sync",
                "std::sys",
                "std::thread",
                "std::env",
                "std::fs",
                "std::process",
                "std::backtrace",
                "std::alloc",
                "alloc::alloc",
                "alloc::raw_vec",
                "cuda_emulator::",
            ];
            // The emulator's own code that calls the kernel.
            let calls_kernel = name.contains("cuda_emulator::runner");
            !by_rust || !calls_kernel && modules.iter().any(|module| name.contains(module))
        }
        // A program without symbols: nothing is known of any address.
        (None, None) => false,
    }
}

fn file_holds_locks(file: &str) -> bool {
    let file = file.replace('\\', "/");
    let within = |part: &str| file.find(part).map(|at| &file[at + part.len()..]);
    if let Some(rest) = within("/library/std/src/") {
        let harmless = ["panic.rs", "panicking.rs", "num/", "hash/", "collections/"];
        return !harmless.iter().any(|start| rest.starts_with(start));
    }
    if let Some(rest) = within("/library/alloc/src/") {
        return rest.starts_with("alloc.rs") || rest.starts_with("raw_vec");
    }
    if let Some(rest) = within("/library/core/src/") {
        return rest.starts_with("alloc/");
    }
    if let Some(rest) = within("cuda_emulator/src/") {
        return rest != "runner.rs";
    }
    // Code of other languages may hold locks.
    !file.ends_with(".rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_may_hold_locks() {
        let std = "/rustc/0123/library/std/src/";
        for (file, holds) in [
            (format!("{std}io/stdio.rs"), true),
            (format!("{std}sync/reentrant_lock.rs"), true),
            (format!("{std}panicking.rs"), false),
            ("/rustc/0123/library/core/src/fmt/mod.rs".to_owned(), false),
            ("/rustc/0123/library/alloc/src/alloc.rs".to_owned(), true),
            ("/rustc/0123/library/alloc/src/boxed.rs".to_owned(), false),
            ("src/kernels.rs".to_owned(), false),
            ("mimalloc/src/page.c".to_owned(), true),
            ("rust-cuda/cuda_emulator/src/memory.rs".to_owned(), true),
            ("rust-cuda/cuda_emulator/src/runner.rs".to_owned(), false),
        ] {
            assert_eq!(function_holds_locks(Some(&file), None), holds, "{file}");
        }
        for (raw, name, holds) in [
            (
                "_ZN3std2io5stdio6_print17h0123E",
                "std::io::stdio::_print",
                true,
            ),
            ("_RNvCs1_5mykernels5sweep", "mykernels::sweep", false),
            ("mi_malloc", "mi_malloc", true),
            ("__rust_try", "__rust_try", false),
            (
                "_RNvX_A_GlobalAlloc",
                "<A as core::alloc::GlobalAlloc>::alloc",
                true,
            ),
            ("_RNv__rust_alloc", "__rustc::__rust_alloc", true),
        ] {
            assert_eq!(
                function_holds_locks(None, Some((raw, name))),
                holds,
                "{name}"
            );
        }
        assert!(!function_holds_locks(None, None));
        let hook = Some(("_R", "std::panicking::panic_with_hook"));
        assert!(function_holds_locks(
            Some(&format!("{std}panicking.rs")),
            hook
        ));
    }

    #[test]
    fn what_is_wanted_is_looked_up() {
        let trims = str::trim as *const () as usize + 1;
        assert_eq!(known(trims), WANTED);
        look_up();
        assert_eq!(known(trims), HARMLESS);
        let reads = std::fs::exists::<&str> as *const () as usize + 1;
        assert_eq!(known(reads), WANTED);
        look_up();
        assert_eq!(known(reads), HOLDS_LOCKS);
    }
}
