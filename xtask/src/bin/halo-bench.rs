//! `halo-bench`: the benchmark as a program of its own. `cargo xtask bench`
//! builds and runs it; copied to another machine, it runs there without cargo.

use std::process::ExitCode;

fn main() -> ExitCode {
    xtask::bench_main()
}
