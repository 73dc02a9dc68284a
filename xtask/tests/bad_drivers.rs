//! What the doctor, who asks the driver, makes of drivers that are broken.

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
fn the_doctor_comes_to_its_end() {
    let program = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tasks"));
        program.arg("doctor");
        program
    };
    drivers::each(program, |_, ended| {
        said(ended, "Device code can")
            .and(said(ended, "CUDA driver (libcuda)"))
            .err()
    });
}
