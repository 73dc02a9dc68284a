//! Keeps panics of emulated threads for the diagnosis; prints them only if they end the process.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use crate::SourceLine;
use crate::block::running;
use crate::here::HERE;
use crate::{symbol, sys};

/// A panic's message and position.
pub(crate) struct Panicked {
    pub message: String,
    pub line: Option<SourceLine>,
    /// The whole message with kernel, block and thread, for a panic that does not unwind: the
    /// process ends before any other code could read it.
    report: String,
}

thread_local! {
    /// The panic that is unwinding an emulated thread of this OS thread.
    static LAST: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Puts a hook in front of the process's panic hook that keeps the panics of
/// emulated threads and passes all others on.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    if std::thread::panicking() {
        // The hook cannot be changed now; panics of kernels are printed until the
        // next launch.
        return;
    }
    INSTALLED.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let ours = HERE.with(|here| {
                let ours = here.in_kernel();
                // A thread must not be interrupted while it unwinds.
                here.leave_kernel();
                if ours {
                    here.leave_detour();
                    here.set_unwinding(true);
                }
                ours
            });
            if ours {
                let panicked = describe(info);
                if !sys::GUARDED && ends_the_process(&panicked.message) {
                    eprintln!("{}", panicked.report);
                }
                LAST.with_borrow_mut(|last| {
                    let panicked = last.insert(panicked);
                    HERE.with(|here| here.set_last_words(Some(&panicked.report)));
                });
            } else {
                earlier(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Panicked {
    let message = text(info.payload());
    let line = info.location().map(|location| SourceLine {
        file: location.file().to_owned().into(),
        line: location.line(),
        column: location.column(),
    });
    // Checks inside the standard library report their own line, not their
    // caller's.
    let line = match line {
        Some(line) if symbol::in_library(&line.file) => symbol::line_of_panic().or(Some(line)),
        line => line,
    };
    let report = HERE.with(|here| {
        running(here).map_or_else(String::new, |block| {
            block
                .explain_panic(block.linear_thread_idx(), message.clone(), line.clone())
                .to_string()
        })
    });
    Panicked {
        message,
        line,
        report,
    }
}

/// Whether a panic with this message does not unwind, in this build: where
/// nothing handles the abort that follows, the panic is printed before.
fn ends_the_process(message: &str) -> bool {
    let by_the_compiler = [
        "unsafe precondition(s) violated",
        "null pointer dereference occurred",
        "misaligned pointer dereference",
        "trying to construct an enum from an invalid value",
    ];
    cfg!(panic = "abort")
        || by_the_compiler
            .iter()
            .any(|start| message.starts_with(start))
}

fn text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not text".to_owned()
    }
}

/// Keeps the message of the panic that has just been caught on this OS thread.
pub(crate) fn keep(payload: &(dyn Any + Send)) {
    let message = text(payload);
    LAST.with_borrow_mut(|last| {
        // The kept panic is another one if this one bypassed the hook
        // (`resume_unwind`, or a hook set after ours).
        if last.as_ref().is_none_or(|last| last.message != message) {
            HERE.with(|here| here.set_last_words(None));
            *last = Some(Panicked {
                message,
                line: None,
                report: String::new(),
            });
        }
    });
}

/// The message of the last panic that was kept on this OS thread.
pub(crate) fn take() -> Panicked {
    HERE.with(|here| here.set_last_words(None));
    LAST.take().unwrap_or_else(|| Panicked {
        message: "nothing".to_owned(),
        line: None,
        report: String::new(),
    })
}
