//! The PTX that this library carries, and the choice among it.

use super::ComputeCapability;

/// Where a device's kernels come from.
pub(super) enum Source {
    /// The PTX of this library: the highest target that the device can run.
    Embedded,
    /// PTX that the caller gave.
    Given(String),
}

struct Embedded {
    needs: ComputeCapability,
    text: &'static str,
}

/// Lowest target first. The build script checks that the files are there and
/// were built from the kernel sources beside them.
const EMBEDDED: [Embedded; 2] = [
    Embedded {
        needs: ComputeCapability { major: 7, minor: 5 },
        text: include_str!("../../ptx/halo_sm_75.ptx"),
    },
    Embedded {
        needs: ComputeCapability { major: 9, minor: 0 },
        text: include_str!("../../ptx/halo_sm_90.ptx"),
    },
];

/// The PTX with the highest target that `device` can run, or, as error, the one
/// with the lowest.
///
/// PTX runs on its own target and every later one.
pub(super) fn embedded_for(device: ComputeCapability) -> Result<&'static str, &'static str> {
    EMBEDDED
        .iter()
        .rev()
        .find(|ptx| ptx.needs <= device)
        .map_or(Err(EMBEDDED[0].text), |ptx| Ok(ptx.text))
}

/// What a PTX module says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// `.target` without modifiers, e.g. `sm_90`; `an unknown target` without one.
    pub(super) target: String,
    /// `.version`, e.g. `8.0`; `unknown` without one.
    pub(super) version: String,
    /// The compute capability that the target needs at least.
    pub(super) needs: Option<ComputeCapability>,
}

/// Reads the directives `.version` and `.target`, which stand in front of
/// everything but comments.
pub(super) fn header(ptx: &str) -> Header {
    let directive = |name: &str| {
        ptx.lines()
            .find_map(|line| line.trim_start().strip_prefix(name))
            .and_then(|rest| rest.split([',', ' ', '\t']).find(|word| !word.is_empty()))
    };
    let target = directive(".target");
    Header {
        target: target.unwrap_or("an unknown target").to_owned(),
        version: directive(".version").unwrap_or("unknown").to_owned(),
        needs: target.and_then(capability_of),
    }
}

/// `sm_75` → 7.5, `sm_90a` → 9.0, `sm_100` → 10.0.
fn capability_of(target: &str) -> Option<ComputeCapability> {
    let digits = target
        .strip_prefix("sm_")?
        .trim_end_matches(|last: char| last.is_ascii_lowercase());
    let number: u32 = digits.parse().ok()?;
    (number >= 10).then_some(ComputeCapability {
        major: number / 10,
        minor: number % 10,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn capability(major: u32, minor: u32) -> ComputeCapability {
        ComputeCapability { major, minor }
    }

    #[test]
    fn the_header_is_read_past_comments() {
        let ptx = "// generated\n//\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n";
        assert_eq!(
            header(ptx),
            Header {
                target: "sm_90a".to_owned(),
                version: "8.0".to_owned(),
                needs: Some(capability(9, 0)),
            }
        );
        assert_eq!(header("no ptx at all").needs, None);
        assert_eq!(capability_of("sm_100"), Some(capability(10, 0)));
        assert_eq!(capability_of("sm_75"), Some(capability(7, 5)));
        assert_eq!(capability_of("compute_75"), None);
    }

    #[test]
    fn a_device_gets_the_highest_target_that_it_can_run() {
        let target = |device| embedded_for(device).map(|ptx| header(ptx).target);
        assert_eq!(target(capability(7, 5)).as_deref(), Ok("sm_75"));
        assert_eq!(target(capability(8, 9)).as_deref(), Ok("sm_75"));
        assert_eq!(target(capability(9, 0)).as_deref(), Ok("sm_90"));
        assert_eq!(target(capability(12, 1)).as_deref(), Ok("sm_90"));
        let lowest = embedded_for(capability(7, 0)).expect_err("7.0 is below the lowest target");
        assert_eq!(header(lowest).target, "sm_75");
    }

    #[test]
    fn embedded_ptx_is_for_the_target_it_is_filed_under() {
        for ptx in &EMBEDDED {
            assert_eq!(header(ptx.text).needs, Some(ptx.needs));
        }
        assert!(EMBEDDED.is_sorted_by_key(|ptx| ptx.needs));
    }
}
