//! Runs the benchmark with broken drivers: it must end with an error that says why.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

#[path = "../../host/tests/fixtures/bad_drivers.rs"]
mod drivers;

use std::process::Command;

#[test]
fn the_benchmark_takes_the_cpu_or_says_why_not() {
    for device in ["auto", "cuda"] {
        let program = || {
            let mut program = Command::new(env!("CARGO_BIN_EXE_halo-bench"));
            program.args(["--device", device, "--family", "heat2d", "--size", "64"]);
            program.args(["--launches", "1", "--warmup", "0"]);
            program
        };
        drivers::each(drivers::BAD_DRIVERS, program, |driver, ended| {
            ended.said(driver.says).err()
        });
    }
}
