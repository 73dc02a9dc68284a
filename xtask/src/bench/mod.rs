//! `cargo xtask bench`: every kernel checked, then timed.
//!
//! Which kernels have a row, and in which order, says the table of kernels, see [`table`]. A
//! file per family says what its rows are; without one, a kernel's row is made of its case,
//! see [`case`]. Everything else (which device,
//! warm-up, timing, the ceilings that speeds are set against) is the same for all
//! and lives in [`harness`] and [`timing`]; who the rows are compared with, in
//! [`baselines`], [`cub`] and, on the CPU, [`cpp`]. What a run came to is a record, which the crate
//! `halo-report` shows in every form; where it goes is in [`sink`]. Runs over several ranks have
//! records of their own, see [`scaling`].

#[cfg(feature = "bench")]
mod baselines;
#[cfg(feature = "bench")]
mod case;
#[cfg(feature = "bench")]
mod cpp;
#[cfg(feature = "bench")]
mod cub;
#[cfg(feature = "bench")]
mod environment;
#[cfg(feature = "bench")]
mod harness;
#[cfg(feature = "bench")]
mod issue_rates;
#[cfg(feature = "bench")]
mod scaling;
mod sink;
mod size;
#[cfg(feature = "bench")]
mod steps;
#[cfg(feature = "bench")]
mod table;
#[cfg(feature = "bench")]
mod timing;

pub(crate) use size::Size;
#[cfg(feature = "bench")]
pub(crate) use size::SizeError;

use gpu_kernels::registry::{self, Entry, Measured};

use crate::Outcome;
use crate::error::Error;
use crate::flags::Bench;

/// Declares the families that say what their rows are, each a module here.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
            #[cfg(feature = "bench")]
            mod $family;
        )*

        #[cfg(feature = "bench")]
        const FAMILIES: &[harness::Family] = &[$($family::FAMILY),*];
    };
}

families! {
    // Families, which `cargo xtask tidy --write` lists.
    derivative3d,
    heat2d,
    heat3d,
    nbody,
    reduction,
    stencil1d,
    wave3d,
}

/// The families with kernels that are measured, by name.
pub(crate) fn families() -> impl Iterator<Item = &'static str> {
    let is_measured = |entry: &Entry| entry.measured == Measured::Row;
    registry::FAMILIES
        .iter()
        .filter(move |family| family.kernels.iter().any(is_measured))
        .map(|family| family.name)
}

/// Runs the benchmark: in this process where it was built in, else by building
/// and running `halo-bench`. What was measured before is shown without either.
pub(crate) fn run(flags: &Bench) -> Result<Outcome, Error> {
    if !flags.from.is_empty() {
        return sink::show(flags);
    }

    #[cfg(feature = "bench")]
    return match flags.ranks {
        None => harness::run(flags),
        Some(_) => scaling::run(flags),
    };

    #[cfg(not(feature = "bench"))]
    hand_over(flags)
}

/// Builds `halo-bench`, which has the benchmark built in, and runs it with the same
/// command line.
#[cfg(not(feature = "bench"))]
fn hand_over(flags: &Bench) -> Result<Outcome, Error> {
    use std::io::IsTerminal as _;
    use std::process::Command;

    use crate::process;

    let mut command = Command::new(process::cargo());
    command.args(["run", "--release", "--package", "xtask"]);
    // Ranks that nobody numbers are a launcher's.
    let feature = if flags.ranks == Some(None) {
        "mpi"
    } else {
        "bench"
    };
    command.args(["--features", feature, "--bin", "halo-bench"]);
    if !std::io::stderr().is_terminal() {
        command.arg("--quiet");
    }
    // Behind the program's name and the task's.
    command.arg("--").args(std::env::args_os().skip(2));
    // Whatever goes wrong is said by cargo or by halo-bench.
    Ok(process::outcome(&mut command)?)
}
