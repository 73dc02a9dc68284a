//! The benchmark: every kernel checked, then timed. `cargo xtask bench` builds and runs it;
//! copied to another machine, the program runs there without cargo.
//!
//! The table of kernels says which kernels have a row, and in which order, see `table`. A file per
//! family describes its rows; a kernel without a description has the row of its case, see `case`.
//! Everything else (the device, warm-up, timing, the machine's limits) is common to all and lives
//! in `harness` and `timing`. The baselines are in `baselines`, `cub` and, for the CPU, `cpp`. The
//! result of a run is a record, which the crate `halo-report` shows in every form and `sink`
//! writes. Runs over several ranks have records of another kind, see `scaling`.

mod baselines;
mod case;
mod cpp;
mod cub;
mod environment;
mod error;
mod flags;
mod harness;
mod issue_rates;
mod plane;
mod scaling;
mod sink;
mod size;
mod steps;
mod table;
mod timing;

use std::process::ExitCode;

use cargo_halo::error::chain;
use cargo_halo::{Outcome, output};
use clap::Parser as _;
use gpu_kernels::registry::{self, Entry, Measured};

use error::Error;
use flags::{Bench, HaloBench};

/// Declares the families that describe their rows, each a module here.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
                        mod $family;
        )*

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

/// Runs the benchmark that the command line asks for: the whole of `halo-bench`.
///
/// The exit status is 0 when all rows passed their checks, 1 when one did not or something
/// failed, 2 when the command line was not understood.
#[must_use]
pub fn main() -> ExitCode {
    match run(&HaloBench::parse().bench) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &Bench) -> Result<Outcome, Error> {
    if !flags.from.is_empty() {
        return sink::show(flags);
    }
    match flags.ranks {
        None => harness::run(flags),
        Some(_) => scaling::run(flags),
    }
}
