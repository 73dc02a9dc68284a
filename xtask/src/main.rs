//! `cargo xtask`: the project's own tasks. See `xtask/src/flags.rs` for what
//! there is, or run `cargo xtask help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
