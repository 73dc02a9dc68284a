//! `cargo halo`. See `flags.rs` for what there is, or run `cargo halo help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cargo_halo::main()
}
