//! Panics of emulated threads: kept, not printed.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use crate::SourceLine;
use crate::here::HERE;

/// What a panic said.
pub(crate) struct Panicked {
    pub message: String,
    pub line: Option<SourceLine>,
}

thread_local! {
    /// What the panic now unwinding an emulated thread of this OS thread said.
    static LAST: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Puts a hook in front of the process's panic hook that keeps what emulated
/// threads say and passes everything else on.
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
                // Unwinding is no place to be interrupted.
                here.leave_kernel();
                if ours {
                    here.set_unwinding(true);
                }
                ours
            });
            if ours {
                LAST.set(Some(describe(info)));
            } else {
                earlier(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Panicked {
    Panicked {
        message: text(info.payload()),
        line: info.location().map(|location| SourceLine {
            file: location.file().to_owned().into(),
            line: location.line(),
            column: location.column(),
        }),
    }
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

/// Keeps what the panic said that has just been caught on this OS thread.
pub(crate) fn keep(payload: &(dyn Any + Send)) {
    let message = text(payload);
    LAST.with_borrow_mut(|last| {
        // Not ours if the panic went by without the hook (`resume_unwind`, or a
        // hook set after ours), and the hook had described an earlier one.
        if last.as_ref().is_none_or(|last| last.message != message) {
            *last = Some(Panicked {
                message,
                line: None,
            });
        }
    });
}

/// What the panic said that was last kept on this OS thread.
pub(crate) fn take() -> Panicked {
    LAST.take().unwrap_or_else(|| Panicked {
        message: "nothing".to_owned(),
        line: None,
    })
}
