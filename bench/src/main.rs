//! The program `halo-bench`.

use std::process::ExitCode;

fn main() -> ExitCode {
    halo_bench::main()
}
