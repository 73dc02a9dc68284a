//! The program `cargo xtask`: the project's own tasks. `cargo xtask help` lists them;
//! `xtask/src/flags.rs` declares them.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
