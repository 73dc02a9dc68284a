//! Prints lines to standard output, also where its reader has ended.

use std::io::{ErrorKind, Write as _};

/// Prints this line and ends it.
///
/// Where the reader has ended, as in `cargo xtask mutate --list | head`, the process ends, as it
/// would by the signal that Rust programs ignore. Other errors of printing cannot be reported
/// either.
pub fn line(text: &str) {
    if try_line(text).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(1);
    }
}

/// Prints this line and ends it; returns an error of printing.
pub fn try_line(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush())
}
