//! What the library says about drivers that are broken: an error for each, and no more.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

#[path = "fixtures/bad_drivers.rs"]
mod drivers;

use halo_gpu::{Device, DeviceKind, Error};
use std::process::Command;

const CHILD: &str = "HALO_TEST_BAD_DRIVER";

#[test]
fn every_bad_driver_gives_an_error() {
    if std::env::var_os(CHILD).is_some() {
        return use_the_driver();
    }
    let name = "every_bad_driver_gives_an_error";
    let this = std::env::current_exe().expect("the path of this test");
    let program = || {
        let mut program = Command::new(&this);
        program
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "");
        program
    };
    drivers::each(drivers::BAD_DRIVERS, program, |driver, ended| {
        let mut lines = ended.text.lines();
        let error = lines.find_map(|line| line.strip_prefix("error: "));
        match error {
            Some(error) if ended.code == Some(0) => {
                (!error.contains(driver.says)).then(|| error.to_owned())
            }
            _ => Some(format!("no error, but {}", ended.text)),
        }
    });
}

fn use_the_driver() {
    // Never fails, whatever there is.
    let best = Device::best();
    assert!(matches!(best.kind(), DeviceKind::Cpu | DeviceKind::Cuda));
    let _ = Device::cuda_count();
    if let Err(error) = work() {
        println!("error: {error}");
    }
}

fn work() -> Result<(), Error> {
    let device = Device::cuda(0)?;
    let buffer = device.upload(&[1.0_f32; 100])?;
    assert_eq!(buffer.to_vec()?, [1.0; 100]);
    device.synchronize()
}
