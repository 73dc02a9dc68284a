//! Finds the source line of an instruction's address.

use std::borrow::Cow;
use std::ffi::c_void;
use std::ptr;

use crate::SourceLine;
use crate::here::Fault;

/// The line of a fault: that of the instruction or, in a library without lines (the C library's
/// `memcpy`), that of its caller.
pub(crate) fn line_of_fault(fault: &Fault) -> Option<SourceLine> {
    line_of_instruction(fault.instruction).or_else(|| line_of(fault.return_address?))
}

/// The line of the instruction at `address`.
pub(crate) fn line_of_instruction(address: usize) -> Option<SourceLine> {
    // `resolve` takes return addresses and looks up the instruction before them.
    line_of(address.checked_add(1)?)
}

/// The innermost line of user code (not of the standard library) that the return
/// address belongs to, among the functions inlined there.
fn line_of(return_address: usize) -> Option<SourceLine> {
    let mut found = None;
    let address = ptr::without_provenance_mut::<c_void>(return_address);
    backtrace::resolve(address, |symbol| {
        let (None, Some(file), Some(line)) = (&found, symbol.filename(), symbol.lineno()) else {
            return;
        };
        let file = file.to_string_lossy();
        if in_library(&file) {
            return;
        }
        found = Some(SourceLine {
            file: Cow::Owned(file.into_owned()),
            line,
            column: symbol.colno().unwrap_or(0),
        });
    });
    found
}

/// The kind of an access to memory, as the source writes it.
#[cfg(traced)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Plain,
    Volatile,
    Atomic,
}

/// The kind of the access that the instruction at `address` makes; `None` without debug
/// information.
#[cfg(traced)]
pub(crate) fn manner(address: usize) -> Option<Manner> {
    let mut manner = None;
    let address = ptr::without_provenance_mut::<c_void>(address.wrapping_add(1));
    backtrace::resolve(address, |symbol| {
        let name = symbol.name().map(|name| name.to_string());
        let named = |part| name.as_ref().is_some_and(|name| name.contains(part));
        let file = symbol.filename();
        if file.is_some_and(|file| file.ends_with("core/src/sync/atomic.rs")) {
            manner = Some(Manner::Atomic);
        } else if named("read_volatile") || named("write_volatile") {
            manner = Some(Manner::Volatile);
        } else if manner.is_none() && symbol.lineno().is_some() {
            manner = Some(Manner::Plain);
        }
    });
    manner
}

/// The innermost line of user code that has led to the panic whose hook calls
/// this.
pub(crate) fn line_of_panic() -> Option<SourceLine> {
    let mut found = None;
    let mut behind_hook = false;
    backtrace::trace(|frame| {
        if behind_hook {
            found = line_of(frame.ip().addr());
        } else {
            // The standard library's function that calls hooks; its callers
            // follow.
            backtrace::resolve_frame(frame, |symbol| {
                let name = symbol
                    .name()
                    .map(|name| name.to_string())
                    .unwrap_or_default();
                behind_hook |= name.contains("rust_begin_unwind");
            });
        }
        found.is_none()
    });
    found
}

/// Whether a source file belongs to the standard library.
pub(crate) fn in_library(file: &str) -> bool {
    let library = [
        "/rustc/",
        "/library/core/src/",
        "/library/std/src/",
        "/library/alloc/src/",
    ];
    library.iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn here() -> Option<SourceLine> {
        line_of_instruction(here as *const () as usize)
    }

    #[test]
    fn finds_this_file() {
        let line = here().expect("test programs have line tables");
        assert!(line.file.ends_with("symbol.rs"), "{line}");
    }
}
