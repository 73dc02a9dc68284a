//! Runs `cargo xtask doctor` with broken drivers: it must report them and end.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

#[path = "../../host/tests/fixtures/bad_drivers.rs"]
mod drivers;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "../../host/src/test_cases.rs"]
mod test_cases;

use std::process::Command;

#[test]
fn the_doctor_comes_to_its_end() {
    let program = || {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tasks"));
        program.arg("doctor");
        program
    };
    let drivers = test_cases::one_in(4, drivers::BAD_DRIVERS);
    drivers::each(drivers, program, |_, ended| {
        let device_code = ended.said("Device code can");
        device_code.and(ended.said("driver")).err()
    });
}
