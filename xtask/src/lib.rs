//! The project's own tasks, run as `cargo xtask TASK`.
//!
//! | task | what it does | needs |
//! |---|---|---|
//! | `bench` | checks every kernel, then times it | cargo; a GPU if there is one |
//! | `ptx` | builds the committed PTX, or compares it with its sources | the device toolchain |
//! | `inspect` | says what each kernel costs; checks the gates beside the sources | ptxas and nvdisasm; nvcc for the CUDA C++ twins |
//! | `tidy` | the repository's rules, executable | cargo |
//! | `mutate` | breaks the kernels one by one and expects the tests to notice | cargo |
//! | `doctor` | says what this machine has and lacks | nothing |
//!
//! The program is thin: it does not depend on the library it measures. Only
//! the feature `bench` brings `halo-gpu` in, so stale PTX, which stops the
//! library's build, never keeps `cargo xtask ptx` from mending it.

use std::process::ExitCode;

use clap::Parser as _;

#[allow(dead_code, reason = "the comparison uses what inspect does not")]
mod baselines;
mod bench;
#[cfg_attr(
    not(feature = "bench"),
    allow(dead_code, reason = "the thin program measures nothing")
)]
mod cpp;
mod doctor;
mod error;
mod flags;
mod imports;
mod inspect;
mod mutate;
mod output;
mod process;
mod ptx;
mod rust_source;
mod tidy;
mod toolchain;
mod workspace;

use error::Error;

/// What a task came to, once it ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Everything was as it should be.
    Clean,
    /// The task ran and found something wrong, which it has already printed.
    Findings,
}

/// Runs the task named on the command line: the whole of `cargo xtask`.
///
/// The exit status is 0 when the task succeeded, 1 when it failed or found
/// something wrong, 2 when the command line was not understood.
pub fn main() -> ExitCode {
    let outcome = match flags::Xtask::parse().task {
        flags::Task::Bench(bench) => bench::run(&bench),
        flags::Task::Ptx(ptx) => ptx::run(&ptx),
        flags::Task::Inspect(inspect) => inspect::run(&inspect),
        flags::Task::Tidy(tidy) => tidy::run(&tidy),
        flags::Task::Mutate(mutate) => mutate::run(&mutate),
        flags::Task::Doctor => doctor::run(),
    };
    exit_code(outcome)
}

/// Runs the benchmark in this process: the whole of `halo-bench`.
///
/// The exit status is as [`main`]'s.
#[cfg(feature = "bench")]
pub fn bench_main() -> ExitCode {
    exit_code(bench::run(&flags::HaloBench::parse().bench))
}

fn exit_code(outcome: Result<Outcome, Error>) -> ExitCode {
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", error::chain(&error));
            ExitCode::FAILURE
        }
    }
}
