//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! | task | what it does | needs |
//! |---|---|---|
//! | `ptx` | builds the committed PTX, or compares it with its sources | the device toolchain |
//! | `inspect` | says what each kernel costs; checks the gates beside the sources | ptxas and nvdisasm; nvcc for the CUDA C++ twins |
//! | `tidy` | the repository's rules, executable | cargo |
//! | `mutate` | breaks the kernels one by one and expects the tests to notice | cargo |
//! | `doctor` | says what this machine has and lacks | nothing |
//!
//! `cargo xtask bench` is a program of its own, `halo-bench`; `xtask/launcher` starts either. This
//! one does not depend on the library: stale PTX stops the library's build, and `cargo xtask ptx`
//! must still run to replace it.

use std::process::ExitCode;

use clap::Parser as _;

mod error;
mod flags;
mod imports;
mod inspect;
mod mutate;
mod ptx;
mod ptx_hash;
mod rust_source;
mod tidy;
mod workspace;

use cargo_halo::Outcome;
use cargo_halo::doctor::{self, Committed};
use error::{Error, chain};

/// Runs the task named on the command line: the whole of `cargo xtask`.
///
/// The exit status is 0 when the task succeeded, 1 when it failed or found
/// something wrong, 2 when the command line was not understood.
pub fn main() -> ExitCode {
    let outcome = match flags::Xtask::parse().task {
        flags::Task::Ptx(ptx) => ptx::run(&ptx),
        flags::Task::Inspect(inspect) => inspect::run(&inspect),
        flags::Task::Tidy(tidy) => tidy::run(&tidy),
        flags::Task::Mutate(mutate) => mutate::run(&mutate),
        flags::Task::Doctor => run_doctor(),
    };
    exit_code(outcome)
}

fn exit_code(outcome: Result<Outcome, Error>) -> ExitCode {
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Prints what works on this machine, and the commands for what does not.
fn run_doctor() -> Result<Outcome, Error> {
    let root = workspace::root()?;
    let project = doctor::Project {
        without_gpu: "cargo xtask bench --device emulator",
        compares_and_ranks: true,
    };
    let committed = ptx_hash::TARGETS
        .into_iter()
        .filter_map(|target| Committed::read(&root, &ptx::committed_for(target)))
        .collect();
    Ok(doctor::run(&project, &root, committed)?)
}
