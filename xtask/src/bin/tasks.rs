//! The program `tasks`: the project's own tasks, which `cargo xtask` starts. `cargo xtask help`
//! lists them; `xtask/src/flags.rs` declares them.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::main()
}
