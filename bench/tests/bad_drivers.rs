//! What the benchmark makes of drivers that are broken.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

#[path = "../../host/tests/fixtures/bad_drivers.rs"]
mod drivers;

use std::process::Command;

/// That a program came to its end by itself, and said this in one of its lines.
fn said<'a>(ended: &'a drivers::Ended, words: &str) -> Result<&'a str, String> {
    let wrong = || format!("{words:?} is not said: {}", ended.text);
    match ended.code {
        Some(0 | 1) if !ended.text.contains("panicked") => {
            let mut lines = ended.text.lines();
            lines.find(|line| line.contains(words)).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

#[test]
fn the_benchmark_takes_the_cpu_or_says_why_not() {
    for device in ["auto", "cuda"] {
        let program = || {
            let mut program = Command::new(env!("CARGO_BIN_EXE_halo-bench"));
            program.args(["--device", device, "--family", "heat2d", "--size", "64"]);
            program.args(["--launches", "1", "--warmup", "0"]);
            program
        };
        drivers::each(program, |driver, ended| said(ended, driver.says).err());
    }
}
