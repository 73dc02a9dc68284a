//! The benchmark: every kernel checked, then timed. `cargo xtask bench` builds and runs it;
//! copied to another machine, the program runs there without cargo.
//!
//! `row` says what a row is. `rows` has the rows of each family, one file per family; a kernel that
//! is not described there has the row of its case. The table of kernels says which kernels have a
//! row, and in which order. Everything else is common to all: `run` chooses the device and goes
//! through the rows, `measure` checks and times one, in turns with its baselines (`baselines`,
//! `cub` and, for the CPU, `cpp`) and the machine's limits. The result of a run is a record, which
//! the crate `halo-report` shows in every form and `sink` writes. Runs over several ranks have
//! records of another kind, see `scaling`.

mod baseline;
mod baselines;
mod check;
mod copy;
mod cpp;
mod cub;
mod environment;
mod error;
mod flags;
mod issue_rates;
mod measure;
mod measured;
mod memory;
mod row;
mod rows;
mod run;
mod scaling;
mod sink;
mod size;
mod timing;

use std::process::ExitCode;

use cargo_halo::Outcome;
use cargo_halo::error::chain;
use clap::Parser as _;

use error::Error;
use flags::{Bench, HaloBench};

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
        None => run::run(flags),
        Some(_) => scaling::run(flags),
    }
}
