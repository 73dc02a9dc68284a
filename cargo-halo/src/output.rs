//! Prints to standard output.

use std::io::{ErrorKind, Write as _};

/// Prints this line and ends it.
///
/// Where the reader went away, as in `cargo xtask mutate --list | head`, there
/// is nobody left to tell and nothing left to do: the process ends, as it would
/// by the signal that Rust programs ignore. Nothing else that can go wrong with
/// printing can be told to anyone either.
pub fn line(text: &str) {
    if try_line(text).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(1);
    }
}

/// Prints this line and ends it, or says what came in between.
pub fn try_line(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush())
}
