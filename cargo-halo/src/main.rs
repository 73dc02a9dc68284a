//! The program `cargo halo`. `cargo halo help` lists its commands; `flags.rs` declares them.

use std::process::ExitCode;

fn main() -> ExitCode {
    cargo_halo::main()
}
