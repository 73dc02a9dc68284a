//! What a run of the benchmark came to: the structure that every output (table,
//! JSON, CSV, page) is written from.
//!
//! A [`Report`] has families, a family has problems (one per size), a problem has
//! rows (one per kernel). A row that passed its check was timed in up to two
//! ways, each a [`Measured`]: as single launches, and as launches of a replayed
//! graph, which leave out what the host needs to hand over a launch. Those who do
//! the same work by other means are the row's contenders; they were timed in
//! turns with the row, in the same ways, and checked in the same way before.
//!
//! Physical limits are [`Ceilings`], measured in the same run. Which of them a row
//! cannot get past follows from its [`Work`]: the one that would take longest.

use serde::{Deserialize, Serialize};

use super::stats::{Ratio, Times};
#[cfg(feature = "bench")]
use crate::error::Error;

/// One run of the benchmark.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    /// Timed launches per row, and of each of its contenders.
    pub(crate) launches: u32,
    /// Launches before those, not counted.
    pub(crate) warmup: u32,
    /// How times were taken; `None` where no speed is compared.
    pub(crate) timing: Option<String>,
    pub(crate) ceilings: Ceilings,
    /// Who was looked for to be compared with; empty without `--compare`.
    pub(crate) rivals: Vec<RivalReport>,
    pub(crate) families: Vec<FamilyReport>,
}

/// Where the run took place, and what was run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Environment {
    pub(crate) device: DeviceReport,
    pub(crate) toolkit: Toolkit,
    /// The compiler of this program: "1.95.0".
    pub(crate) rustc: String,
    /// The LLVM in it: "22.1.2".
    pub(crate) llvm: String,
    /// The commit that this program was built from, marked where files differed;
    /// `None` outside a repository.
    pub(crate) commit: Option<String>,
    /// When the run began, UTC: "2026-01-31T12:00:00Z".
    pub(crate) date: String,
}

/// The device of the run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DeviceReport {
    /// "cuda", "cpu" or "emulator".
    pub(crate) kind: String,
    pub(crate) name: String,
    /// "9.0" and the like.
    pub(crate) compute_capability: Option<String>,
    /// What the driver says of itself.
    pub(crate) driver: Option<String>,
    /// The target of the PTX that was loaded, such as "sm_90".
    pub(crate) ptx_target: Option<String>,
    /// Why this device and not a GPU, where that needs saying.
    pub(crate) why: Option<String>,
}

/// The CUDA toolkit of the machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Toolkit {
    /// The release of its nvcc: "13.0.88".
    pub(crate) nvcc: Option<String>,
    /// Why there is none, or that it was not looked for.
    pub(crate) why_not: Option<String>,
}

/// Someone to be compared with: "nvcc", "CUB", "CUDA n-body sample style".
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RivalReport {
    pub(crate) name: String,
    /// What it is, and how it was compiled.
    pub(crate) what: String,
    /// Why it could not take part; `None` where it did.
    pub(crate) why_not: Option<String>,
}

/// What the device can do at most, measured in this run; `None` where it was not
/// measured. Nothing of it is measured where no speed is compared.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ceilings {
    /// A copy within the device's memory: bytes read plus bytes written.
    pub(crate) copy: Option<Ceiling>,
    /// Single-precision multiply-adds that depend on nothing but registers; one
    /// is one issue slot of one lane.
    pub(crate) fp32: Option<Ceiling>,
    /// The same in double precision.
    pub(crate) fp64: Option<Ceiling>,
}

/// One limit of the device.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ceiling {
    /// What one launch does: bytes moved, or multiply-adds of single lanes.
    pub(crate) amount: u64,
    pub(crate) time: Times,
    /// `amount` by the median time.
    pub(crate) per_s: f64,
    /// How it was measured.
    pub(crate) method: String,
}

impl Ceiling {
    /// The ceiling that this much in this time amounts to.
    pub(crate) fn of(amount: u64, time: Times, method: String) -> Self {
        Self {
            amount,
            time,
            per_s: amount as f64 / time.median_s,
            method,
        }
    }
}

/// The problems of one family, smallest first.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FamilyReport {
    pub(crate) name: String,
    pub(crate) problems: Vec<ProblemReport>,
}

/// One problem, at one size.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProblemReport {
    /// As `--size` takes it: "64x64x64".
    pub(crate) size: String,
    /// Grid points, elements or bodies: the size as one number, for an axis.
    pub(crate) elements: u64,
    /// Equation, size, element type.
    pub(crate) problem: String,
    /// The convention at the ends of the field.
    pub(crate) boundary: Option<String>,
    /// Bytes that one launch touches.
    pub(crate) working_set_bytes: u64,
    /// What a reader of the numbers must know besides.
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<RowReport>,
    /// Kernels of the family that were not run at this size.
    pub(crate) left_out: Vec<LeftOut>,
}

/// A kernel that was not run at a size, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    pub(crate) why: String,
}

#[cfg(feature = "bench")]
impl LeftOut {
    /// This kernel, for this reason.
    pub(crate) fn new(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            why: why.into(),
        }
    }
}

/// One kernel (or CPU port), checked and timed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RowReport {
    pub(crate) name: String,
    /// What one block works on.
    pub(crate) tile: String,
    pub(crate) check: Check,
    /// Whether the check passed; nothing was timed where it did not.
    pub(crate) within_bounds: bool,
    pub(crate) work: Work,
    /// Launched one by one.
    pub(crate) single: Option<Measured>,
    /// Launched by a graph that is replayed; measured where a single launch is so
    /// short that handing it over counts, and only with `--compare`.
    pub(crate) replayed: Option<Measured>,
    /// Who else did this work; empty without `--compare`.
    pub(crate) contenders: Vec<ContenderReport>,
}

/// Times of a row, and what follows from them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Of one launch.
    pub(crate) time: Times,
    /// How many launches were timed as one: more than 1 for a replayed graph,
    /// whose time is divided by it.
    pub(crate) launches_per_timing: u32,
    pub(crate) rates: Rates,
    /// `None` where no ceiling was measured.
    pub(crate) roof: Option<RoofReached>,
}

/// What else did a row's work, checked and timed in turns with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ContenderReport {
    /// The name of one of the report's rivals.
    pub(crate) name: String,
    /// Why it did not take part in this row; everything below is then empty.
    pub(crate) why_not: Option<String>,
    pub(crate) check: Option<Check>,
    /// Whether the check passed; nothing was timed where it did not.
    pub(crate) within_bounds: bool,
    pub(crate) single: Option<Against>,
    pub(crate) replayed: Option<Against>,
}

/// A contender's times, against the row's taken in the same way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Against {
    /// The contender's, of one launch.
    pub(crate) time: Times,
    /// The row's time over the contender's.
    pub(crate) ratio: Ratio,
}

/// The errors of one row, and the most each may be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Check {
    #[serde(deserialize_with = "number")]
    pub(crate) rms_error: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) rms_bound: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) max_error: f64,
    #[serde(deserialize_with = "number")]
    pub(crate) max_bound: f64,
}

/// A number, or NaN where there is none: JSON cannot write it, so it becomes
/// null there.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Check {
    /// These errors, against these bounds.
    #[cfg(feature = "bench")]
    pub(crate) fn new(errors: halo_gpu::Errors, bounds: halo_gpu::Errors) -> Self {
        Self {
            rms_error: errors.rms,
            rms_bound: bounds.rms,
            max_error: errors.max,
            max_bound: bounds.max,
        }
    }

    /// Whether both errors are within their bounds. NaN is not.
    pub(crate) fn passes(&self) -> bool {
        self.rms_error <= self.rms_bound && self.max_error <= self.max_bound
    }
}

/// What one launch has to do, whatever the kernel: the numerators of its rates.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    /// The fewest bytes that must move: every input once, every output once.
    pub(crate) bytes: u64,
    /// Floating-point operations, by the family's convention.
    pub(crate) flops: u64,
    /// How many of `unit` one launch handles.
    pub(crate) items: u64,
    pub(crate) unit: Unit,
    /// What the row's speed is given in.
    pub(crate) metric: Metric,
    /// The fewest instructions that must be issued, by single lanes.
    #[serde(default)]
    pub(crate) slots: Slots,
}

/// Instructions that one launch cannot do without, counted per lane; zeros where
/// memory alone sets the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Slots {
    /// Issued at the rate of single-precision multiply-adds.
    pub(crate) fp32: u64,
    /// Issued at the rate of double-precision multiply-adds.
    pub(crate) fp64: u64,
}

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Grid points, or elements of a sequence.
    Points,
    /// Pairs of bodies.
    Interactions,
}

/// What a family's speed is given in: it decides the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Effective bandwidth, and its fraction of the device's copy bandwidth.
    Bandwidth,
    /// Items and floating-point operations per second.
    Throughput,
}

/// The speeds that follow from a row's work and its median time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rates {
    pub(crate) bytes_per_s: f64,
    pub(crate) flops_per_s: f64,
    pub(crate) items_per_s: f64,
    /// `bytes_per_s` over the copy's.
    pub(crate) fraction_of_copy: Option<f64>,
}

/// The limits that a row can come up against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Roof {
    /// The copy's bandwidth.
    Memory,
    /// The issue rate of single-precision instructions.
    Fp32,
    /// The issue rate of double-precision instructions.
    Fp64,
}

/// The limit that binds a row, and how near it came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RoofReached {
    pub(crate) roof: Roof,
    /// The time that the row's work would take at this limit.
    pub(crate) least_s: f64,
    /// `least_s` over the row's median time. More than 1 where a cache spares
    /// memory the work.
    pub(crate) fraction: f64,
}

impl Measured {
    /// What these times say of this work under these ceilings.
    pub(crate) fn new(
        work: &Work,
        time: Times,
        launches_per_timing: u32,
        ceilings: &Ceilings,
    ) -> Self {
        Self {
            time,
            launches_per_timing,
            rates: Rates::of(work, &time, ceilings),
            roof: RoofReached::of(work, &time, ceilings),
        }
    }
}

#[cfg(feature = "bench")]
impl ContenderReport {
    /// A contender by this name that came to this in its check. An error that just
    /// means that it cannot do the work is its excuse; any other is returned.
    pub(crate) fn of(name: &str, check: Result<Check, Error>) -> Result<Self, Error> {
        let (check, why_not) = match check {
            Ok(check) => (Some(check), None),
            Err(error) => match super::rivals::excuse(&error) {
                Some(why_not) => (None, Some(why_not)),
                None => return Err(error),
            },
        };
        Ok(Self {
            name: name.to_owned(),
            why_not,
            check,
            within_bounds: check.is_some_and(|check| check.passes()),
            single: None,
            replayed: None,
        })
    }
}

impl Against {
    /// A contender's times, with the row's time over them.
    pub(crate) fn of(row: &Times, contender: &Times) -> Self {
        Self {
            time: *contender,
            ratio: Ratio::of(row, contender),
        }
    }
}

impl Rates {
    /// The rates of this work done in this time.
    fn of(work: &Work, time: &Times, ceilings: &Ceilings) -> Self {
        let bytes_per_s = work.bytes as f64 / time.median_s;
        Self {
            bytes_per_s,
            flops_per_s: work.flops as f64 / time.median_s,
            items_per_s: work.items as f64 / time.median_s,
            fraction_of_copy: ceilings.copy.as_ref().map(|copy| bytes_per_s / copy.per_s),
        }
    }
}

impl RoofReached {
    /// The ceiling under which this work takes longest; `None` where a ceiling
    /// that it needs was not measured.
    fn of(work: &Work, time: &Times, ceilings: &Ceilings) -> Option<Self> {
        let mut binding: Option<(Roof, f64)> = None;
        for (roof, amount, ceiling) in [
            (Roof::Memory, work.bytes, &ceilings.copy),
            (Roof::Fp32, work.slots.fp32, &ceilings.fp32),
            (Roof::Fp64, work.slots.fp64, &ceilings.fp64),
        ] {
            if amount == 0 {
                continue;
            }
            let least_s = amount as f64 / ceiling.as_ref()?.per_s;
            if binding.is_none_or(|(_, most)| least_s > most) {
                binding = Some((roof, least_s));
            }
        }
        binding.map(|(roof, least_s)| Self {
            roof,
            least_s,
            fraction: least_s / time.median_s,
        })
    }
}

impl Report {
    /// All rows, whatever their family and problem.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &RowReport> {
        self.families
            .iter()
            .flat_map(|family| &family.problems)
            .flat_map(|problem| &problem.rows)
    }

    /// Whether every row, and every contender that took part, passed its check,
    /// and there was at least one row.
    pub(crate) fn passes(&self) -> bool {
        let mut rows = self.rows().peekable();
        rows.peek().is_some()
            && rows.all(|row| {
                row.within_bounds
                    && row
                        .contenders
                        .iter()
                        .all(|contender| contender.check.is_none() || contender.within_bounds)
            })
    }
}

/// Reports for tests, of every output.
#[cfg(test)]
pub(crate) mod fake {
    use std::time::Duration;

    use super::*;

    pub(crate) fn times(microseconds: u64) -> Times {
        Times::of(&[Duration::from_micros(microseconds)]).unwrap()
    }

    pub(crate) fn row(name: &str, max_error: f64) -> RowReport {
        let work = Work {
            bytes: 2_000_000,
            flops: 3_000_000,
            items: 250_000,
            unit: Unit::Points,
            metric: Metric::Bandwidth,
            slots: Slots::default(),
        };
        let check = Check {
            rms_error: 7.3e-6,
            rms_bound: 1e-5,
            max_error,
            max_bound: 1e-4,
        };
        let passes = check.passes();
        RowReport {
            name: name.to_owned(),
            tile: "4 × 72".to_owned(),
            check,
            within_bounds: passes,
            work,
            single: passes.then(|| Measured::new(&work, times(10), 1, &ceilings())),
            replayed: None,
            contenders: Vec::new(),
        }
    }

    pub(crate) fn ceilings() -> Ceilings {
        let ceiling =
            |amount, method: &str| Some(Ceiling::of(amount, times(10), method.to_owned()));
        Ceilings {
            copy: ceiling(4_000_000, "one copy"),
            fp32: None,
            fp64: None,
        }
    }

    pub(crate) fn report(rows: Vec<RowReport>) -> Report {
        Report {
            environment: Environment {
                device: DeviceReport {
                    kind: "cuda".to_owned(),
                    name: "Some GPU".to_owned(),
                    compute_capability: Some("9.0".to_owned()),
                    driver: Some("580.1".to_owned()),
                    ptx_target: Some("sm_90".to_owned()),
                    why: None,
                },
                toolkit: Toolkit {
                    nvcc: Some("13.0.88".to_owned()),
                    why_not: None,
                },
                rustc: "1.95.0".to_owned(),
                llvm: "22.1.2".to_owned(),
                commit: Some("0123456789ab".to_owned()),
                date: "2026-01-31T12:00:00Z".to_owned(),
            },
            launches: 1,
            warmup: 3,
            timing: Some("median of CUDA events".to_owned()),
            ceilings: ceilings(),
            rivals: Vec::new(),
            families: vec![FamilyReport {
                name: "derivative3d".to_owned(),
                problems: vec![ProblemReport {
                    size: "64x64x64".to_owned(),
                    elements: 262_144,
                    problem: "64 × 64 × 64".to_owned(),
                    boundary: Some("period n-1".to_owned()),
                    working_set_bytes: 2_097_152,
                    notes: Vec::new(),
                    rows,
                    left_out: Vec::new(),
                }],
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fake::{report, row};

    #[test]
    fn rates_follow_from_work_and_time() {
        let row = row("a", 0.0);
        let rates = row.single.unwrap().rates;
        assert!((rates.bytes_per_s - 2e11).abs() < 1.0);
        assert!((rates.flops_per_s - 3e11).abs() < 1.0);
        assert!((rates.items_per_s - 2.5e10).abs() < 1.0);
        assert!((rates.fraction_of_copy.unwrap() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn nan_is_out_of_bounds() {
        assert!(row("a", 1e-4).within_bounds);
        assert!(!row("a", 1.1e-4).within_bounds);
        assert!(!row("a", f64::NAN).within_bounds);
    }

    #[test]
    fn a_run_of_no_rows_does_not_pass() {
        assert!(!report(Vec::new()).passes());
    }

    #[test]
    fn json_keeps_its_shape() {
        let json = serde_json::to_value(report(vec![row("a", 1e-5), row("b", 1.0)])).unwrap();
        assert_eq!(json["environment"]["device"]["kind"], "cuda");
        assert_eq!(json["launches"], 1);
        assert_eq!(json["ceilings"]["copy"]["amount"], 4_000_000);
        assert!(json["ceilings"]["fp32"].is_null());
        let rows = &json["families"][0]["problems"][0]["rows"];
        assert_eq!(rows[0]["name"], "a");
        assert_eq!(rows[0]["within_bounds"], true);
        assert_eq!(rows[0]["work"]["metric"], "bandwidth");
        assert_eq!(rows[0]["work"]["unit"], "points");
        assert_eq!(rows[0]["single"]["time"]["launches"], 1);
        let fraction = rows[0]["single"]["rates"]["fraction_of_copy"]
            .as_f64()
            .unwrap();
        assert!((fraction - 0.5).abs() < 1e-12);
        assert_eq!(rows[1]["within_bounds"], false);
        assert!(rows[1]["single"].is_null());
    }
}
