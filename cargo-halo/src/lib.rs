//! `cargo halo`: makes, checks, inspects and emulates crates of CUDA kernels in Rust, Halo's or
//! anyone's.
//!
//! | command | what it does | needs |
//! |---|---|---|
//! | `new` | a crate with a kernel, its launch and its tests | nothing |
//! | `check` | compiles the kernels for a GPU, and checks the gates beside them | the device toolchain, ptxas, nvdisasm |
//! | `ptx` | writes their PTX | the device toolchain |
//! | `inspect` | registers, memory, occupancy and machine code of each | as `check` |
//! | `emulate` | one launch in the emulator, in several orders of threads | cargo |
//! | `doctor` | says what this machine has and lacks | nothing |
//!
//! The library contains the whole program, and Halo's own tasks use it. It has no stable interface.

mod command_line;
#[doc(hidden)]
pub mod doctor;
mod emulate;
#[doc(hidden)]
pub mod error;
mod flags;
#[doc(hidden)]
pub mod inspect;
#[doc(hidden)]
pub mod kernels;
mod new;
mod outcome;
#[doc(hidden)]
pub mod output;
#[doc(hidden)]
pub mod process;
#[doc(hidden)]
pub mod toolchain;

use std::process::ExitCode;

use clap::Parser as _;

pub use outcome::Outcome;

/// Runs the command named on the command line: the whole of `cargo halo`.
///
/// The exit status is 0 when the command succeeded, 1 when it failed or found
/// something wrong, 2 when the command line was not understood.
pub fn main() -> ExitCode {
    // Cargo passes the subcommand's own name as the first argument.
    let arguments = std::env::args_os().enumerate();
    let arguments = arguments.filter(|(at, word)| *at != 1 || word != "halo");
    let command = flags::Halo::parse_from(arguments.map(|(_, word)| word)).command;
    let outcome = match command {
        flags::Command::New(new) => new::run(&new),
        flags::Command::Check(check) => kernels::check(&check),
        flags::Command::Ptx(ptx) => kernels::ptx(&ptx),
        flags::Command::Inspect(inspect) => kernels::inspect(&inspect),
        flags::Command::Emulate(emulate) => emulate::run(&emulate),
        flags::Command::Doctor => run_doctor(),
    };
    match outcome {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run_doctor() -> Result<Outcome, error::Error> {
    let project = doctor::Project {
        without_gpu: "cargo halo emulate",
        compares_and_ranks: false,
    };
    let here = std::env::current_dir().map_err(error::Error::file("find", "."))?;
    doctor::run(&project, &here, Vec::new())
}
