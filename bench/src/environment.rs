//! The environment of a run, for its record: device, toolkit, driver, compiler and date.

use std::time::{SystemTime, UNIX_EPOCH};

use halo_gpu::{Device, DeviceKind};
use halo_report::record::{DeviceRecord, Environment, Toolkit};

use super::error::{Error, chain};
use super::flags::DeviceChoice;

/// The environment of a run on this device that began at this date. Without a toolkit, none was
/// looked for.
pub(super) fn of(device: DeviceRecord, toolkit: Option<Toolkit>, date: String) -> Environment {
    Environment {
        device,
        toolkit: toolkit.unwrap_or_else(|| Toolkit {
            nvcc: None,
            why_not: Some("not looked for; --compare does".to_owned()),
        }),
        rustc: env!("HALO_BENCH_RUSTC").to_owned(),
        llvm: env!("HALO_BENCH_LLVM").to_owned(),
        commit: Some(env!("HALO_BENCH_COMMIT"))
            .filter(|commit| !commit.is_empty())
            .map(str::to_owned),
        date,
    }
}

/// The device that the flag asks for. Where `auto` finds no GPU, also the reason.
pub(super) fn choose(choice: DeviceChoice) -> Result<(Device, Option<String>), Error> {
    Ok(match choice {
        DeviceChoice::Cpu => (Device::cpu(), None),
        DeviceChoice::Emulator => (Device::emulator(), None),
        DeviceChoice::Cuda(number) => (Device::cuda(number as usize)?, None),
        DeviceChoice::Auto => match Device::cuda(0) {
            Ok(device) => (device, None),
            Err(error) => {
                let why = format!(
                    "the CPU ports are measured, since there is no GPU to use: {}",
                    chain(&error)
                );
                (Device::cpu(), Some(why))
            }
        },
    })
}

/// The record of a device, with the reason why it was chosen.
pub(super) fn describe(device: &Device, why: Option<String>) -> DeviceRecord {
    let properties = device.properties();
    DeviceRecord {
        kind: match device.kind() {
            DeviceKind::Cuda => "cuda",
            DeviceKind::Cpu => "cpu",
            DeviceKind::Emulator => "emulator",
        }
        .to_owned(),
        name: match device.kind() {
            DeviceKind::Cuda => halo_report::printable(device.name()),
            DeviceKind::Cpu | DeviceKind::Emulator => halo_report::printable(&processor()),
        },
        compute_capability: properties.compute_capability.map(|found| found.to_string()),
        driver: properties
            .driver_version
            .map(|version| format!("for CUDA {version}")),
        ptx_target: properties.ptx_target.clone(),
        why,
    }
}

/// The host's processor: its model, where the system says, and its threads.
fn processor() -> String {
    let threads = rayon::current_num_threads();
    let model = std::fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            text.lines()
                .find_map(|line| line.strip_prefix("model name"))
                .map(|rest| rest.trim_start_matches([' ', '\t', ':']).to_owned())
        });
    let model = model.as_deref().unwrap_or(std::env::consts::ARCH);
    match threads {
        1 => format!("{model}, 1 thread"),
        _ => format!("{model}, {threads} threads"),
    }
}

/// The present date and time, UTC, as ISO 8601 writes it.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    iso_8601(since.map_or(0, |since| since.as_secs()))
}

/// ISO 8601 of this many seconds after the beginning of 1970, UTC.
fn iso_8601(seconds: u64) -> String {
    const DAY: u64 = 86_400;
    let (year, month, day) = civil(seconds / DAY);
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of this many days after 1 January 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut rest) = (1970, days);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if rest < length {
            break;
        }
        rest -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(iso_8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso_8601(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso_8601(951_868_799), "2000-02-29T23:59:59Z");
        assert_eq!(iso_8601(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(iso_8601(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(iso_8601(1_767_225_600), "2026-01-01T00:00:00Z");
        assert_eq!(iso_8601(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn a_record_names_the_compiler_that_built_it() {
        for version in [env!("HALO_BENCH_RUSTC"), env!("HALO_BENCH_LLVM")] {
            assert!(
                version.starts_with(|first: char| first.is_ascii_digit()),
                "{version}"
            );
            assert!(version.contains('.'), "{version}");
        }
    }
}
