//! `cargo xtask bench`: every kernel checked, then timed.
//!
//! One file per family says what its rows are; everything else (which device,
//! warm-up, timing, the ceilings that speeds are set against) is the same for all
//! and lives in [`harness`] and [`timing`]; who the rows are compared with, in
//! [`rivals`] and [`cub`]. What a run came to is a [`report`], which [`text`],
//! [`csv`] and [`page`] show, each in its way. A new family is a file
//! `bench/<family>.rs` with a `FAMILY` in it, and its name in the list below.

#[cfg(any(test, feature = "bench"))]
mod csv;
#[cfg(feature = "bench")]
mod cub;
#[cfg(feature = "bench")]
mod environment;
#[cfg(any(test, feature = "bench"))]
mod files;
#[cfg(feature = "bench")]
mod harness;
#[cfg(any(test, feature = "bench"))]
mod page;
#[cfg(any(test, feature = "bench"))]
mod report;
#[cfg(feature = "bench")]
mod rivals;
#[cfg(feature = "bench")]
mod roofline;
#[cfg(test)]
mod sample;
mod size;
#[cfg(any(test, feature = "bench"))]
mod stats;
#[cfg(feature = "bench")]
mod table;
#[cfg(any(test, feature = "bench"))]
mod text;
#[cfg(feature = "bench")]
mod timing;

pub(crate) use size::Size;
#[cfg(feature = "bench")]
pub(crate) use size::SizeError;

use crate::Outcome;
use crate::error::Error;
use crate::flags::Bench;

/// Declares the families that have benchmark rows, each a module here.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
            #[cfg(feature = "bench")]
            mod $family;
        )*

        /// The families with benchmark rows, by name.
        pub(crate) const FAMILIES: [&str; [$(stringify!($family)),*].len()] =
            [$(stringify!($family)),*];

        #[cfg(feature = "bench")]
        const ROWS: [harness::Family; FAMILIES.len()] = [$($family::FAMILY),*];
    };
}

families! {
    derivative3d,
    heat2d,
    nbody,
    reduction,
    stencil1d,
}

/// Runs the benchmark in this process.
#[cfg(feature = "bench")]
pub(crate) fn run(flags: &Bench) -> Result<Outcome, Error> {
    harness::run(flags, &ROWS)
}

/// Builds `halo-bench`, which has the benchmark built in, and runs it with the same
/// command line.
#[cfg(not(feature = "bench"))]
pub(crate) fn run(_understood: &Bench) -> Result<Outcome, Error> {
    use std::io::IsTerminal as _;
    use std::process::Command;

    use crate::process;

    let mut command = Command::new(process::cargo());
    command.args(["run", "--release", "--package", "xtask"]);
    command.args(["--features", "bench", "--bin", "halo-bench"]);
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    // Behind the program's name and the task's.
    command.arg("--").args(std::env::args_os().skip(2));
    let status = command.status().map_err(|source| Error::Start {
        program: process::name(&command),
        source,
    })?;
    // Whatever went wrong has been said, by cargo or by halo-bench.
    Ok(if status.success() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}
