//! `halo-bench` as its users run it: what it prints, what it leaves on disk, and
//! how it ends, whatever it is given.

use std::process::{Command, Output};

/// The benchmark on the CPU with these arguments, which hold no spaces.
fn bench(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_halo-bench"));
    command.args(arguments.split_whitespace());
    // A panic is seen by its first line.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// What came on standard error.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// That a run ended with an error of ours, and with these words in it.
fn assert_refused(output: &Output, words: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: ") && said.contains(words), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn sizes_beyond_all_memory_are_errors() {
    for family in ["derivative3d", "heat2d", "nbody", "reduction", "stencil1d"] {
        for device in ["cpu", "emulator"] {
            for size in [usize::MAX, usize::MAX / 4, usize::MAX / 64, 1 << 45] {
                let line = format!(
                    "--device {device} --family {family} --size {size} --launches 1 --warmup 0"
                );
                assert_refused(&bench(&line).output().unwrap(), "");
            }
        }
    }
}
