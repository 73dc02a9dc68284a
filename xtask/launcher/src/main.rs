//! `cargo xtask`: builds and starts the program for a task: `halo-bench` for benchmarks, `tasks`
//! for all others.
//!
//! It depends on no crate, so that a benchmark does not wait for the dependencies of the other
//! tasks, nor they for the benchmark's.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1).peekable();
    let is_bench = words.next_if(|word| word == "bench").is_some();
    let words: Vec<OsString> = words.collect();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    if is_bench {
        command.args(["run", "--release", "--package", "halo-bench"]);
        if needs_launcher(&words) {
            command.args(["--features", "mpi"]);
        }
    } else {
        // Of all default members, not of the package: `cargo test` chooses the same, and
        // takes their dependencies with the same features, as they are compiled.
        command.args(["run", "--bin", "tasks"]);
    }
    match command.arg("--").args(&words).status() {
        // Cargo or the program has printed the error.
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the ranks are processes of an MPI launcher: `--ranks` without a number.
fn needs_launcher(words: &[OsString]) -> bool {
    let is_number = |word: &OsString| word.to_string_lossy().parse::<u32>().is_ok();
    words
        .iter()
        .position(|word| word == OsStr::new("--ranks"))
        .is_some_and(|at| !words.get(at + 1).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_without_a_number_are_a_launchers() {
        let needs = |line: &str| {
            let words: Vec<_> = line.split_whitespace().map(OsString::from).collect();
            needs_launcher(&words)
        };
        assert!(needs("--ranks") && needs("--small --ranks --json a.json"));
        assert!(!needs("--ranks 4") && !needs("--ranks=4") && !needs("--small"));
    }
}
