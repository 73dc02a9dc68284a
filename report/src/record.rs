//! The record of a run: what was measured and where, without derived values.
//!
//! A [`Record`] has families, a family has problems (one per size), a problem has rows (one per
//! kernel). A row that passed its check was timed in up to two ways: as single launches, and as
//! launches of a replayed graph, which leave out the host's time to enqueue them. Code of others
//! that does the same work is a baseline of the row: it is checked in the same way and timed in
//! turns with it.
//!
//! Physical limits are [`Ceilings`], measured in the same run. A row's [`Work`] decides which of
//! them limits it: the one that takes longest.

use serde::{Deserialize, Serialize};

use crate::stats::Times;

/// One run of the benchmark.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The environment of the run, and the command.
    pub environment: Environment,
    /// Timed launches per row, and of each of its baselines.
    pub launches: u32,
    /// Launches before those, not counted.
    pub warmup: u32,
    /// The method of timing; `None` where no speed is compared.
    pub timing: Option<String>,
    /// The limits of the device.
    pub ceilings: Ceilings,
    /// The baselines that were looked for; empty without a comparison.
    pub baselines: Vec<Baseline>,
    /// The measurements.
    pub families: Vec<FamilyRecord>,
    /// Families that the run was to measure and did not, because it was cut short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The environment of the run, and the command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Environment {
    /// The device.
    pub device: DeviceRecord,
    /// The CUDA toolkit of the machine.
    pub toolkit: Toolkit,
    /// The compiler of the benchmark: "1.95.0".
    pub rustc: String,
    /// The LLVM in it: "22.1.2".
    pub llvm: String,
    /// The commit of the benchmark's sources, marked if files differed; `None` outside a
    /// repository.
    pub commit: Option<String>,
    /// When the run began, UTC: "2026-01-31T12:00:00Z".
    pub date: String,
}

impl Environment {
    /// An error with the reason if runs in these environments cannot share a record.
    pub(crate) fn require_same(&self, other: &Self) -> Result<(), String> {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        for (what, one, two) in [
            (
                "device",
                self.device.name.clone(),
                other.device.name.clone(),
            ),
            ("kind", self.device.kind.clone(), other.device.kind.clone()),
            (
                "driver",
                text(&self.device.driver),
                text(&other.device.driver),
            ),
            ("nvcc", text(&self.toolkit.nvcc), text(&other.toolkit.nvcc)),
            ("rustc", self.rustc.clone(), other.rustc.clone()),
            ("commit", text(&self.commit), text(&other.commit)),
        ] {
            if one != two {
                return Err(format!(
                    "the {what} of one is {one:?}, of the other {two:?}"
                ));
            }
        }
        Ok(())
    }
}

/// The device of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// "cuda", "cpu" or "emulator".
    pub kind: String,
    /// Its name.
    pub name: String,
    /// For example "9.0".
    pub compute_capability: Option<String>,
    /// The driver's version.
    pub driver: Option<String>,
    /// The target of the PTX that was loaded, such as "sm_90".
    pub ptx_target: Option<String>,
    /// Why this device was taken and not a GPU, where that is not obvious.
    pub why: Option<String>,
}

/// The CUDA toolkit of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Toolkit {
    /// The release of its nvcc: "13.0.88".
    pub nvcc: Option<String>,
    /// Why there is none, or that none was looked for.
    pub why_not: Option<String>,
}

/// A baseline: "nvcc" (the same kernels in CUDA C++), "CUB".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Baseline {
    /// Its name in rows.
    pub name: String,
    /// A description, with how it was compiled.
    pub what: String,
    /// Why it could not take part; `None` where it did.
    pub why_not: Option<String>,
}

/// The limits of the device, measured in this run; `None` where one was not measured. A run without
/// speeds measures none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ceilings {
    /// A copy within the device's memory: bytes read plus bytes written.
    pub copy: Option<Ceiling>,
    /// The same with non-temporal stores; on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed_copy: Option<Ceiling>,
    /// Reading alone; on a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Ceiling>,
    /// Multiply-adds of single precision on registers alone; one is one issue slot of one lane.
    pub fp32: Option<Ceiling>,
    /// The same in double precision.
    pub fp64: Option<Ceiling>,
}

impl Ceilings {
    /// The bandwidth for work that only reads, or for any other work, which can store its results
    /// in the faster of two ways.
    fn memory(&self, read_only: bool) -> (Roof, Option<&Ceiling>) {
        if let (true, Some(read)) = (read_only, &self.read) {
            return (Roof::Read, Some(read));
        }
        let copies = [&self.copy, &self.streamed_copy].into_iter().flatten();
        let fastest = copies.max_by(|a, b| a.per_s().total_cmp(&b.per_s()));
        (Roof::Memory, fastest)
    }
}

/// One limit of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The work of one launch: bytes moved, or multiply-adds of single lanes.
    pub amount: u64,
    /// Its time.
    pub time: Times,
    /// The method of measurement.
    pub method: String,
}

impl Ceiling {
    /// The amount in a second, by the median time.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        self.amount as f64 / self.time.median_s
    }
}

/// The problems of one family, smallest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FamilyRecord {
    /// Its name.
    pub name: String,
    /// One for each size.
    pub problems: Vec<ProblemRecord>,
    /// The limits of its own run, where that is not the record's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
}

/// One problem, at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProblemRecord {
    /// In the form of `--size`: "64x64x64".
    pub size: String,
    /// Grid points, elements or bodies: the size as one number.
    pub elements: u64,
    /// Equation, size, element type.
    pub problem: String,
    /// The boundary of the field.
    pub boundary: Option<String>,
    /// Bytes that one launch touches.
    pub working_set_bytes: u64,
    /// Notes that a reader of the figures needs.
    pub notes: Vec<String>,
    /// One for each kernel.
    pub rows: Vec<RowRecord>,
    /// Kernels of the family that were not run at this size.
    pub left_out: Vec<LeftOut>,
}

/// A kernel that was not run at a size, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The kernel.
    pub name: String,
    /// The reason.
    pub why: String,
}

impl LeftOut {
    /// This kernel, for this reason.
    pub fn new(name: impl Into<String>, why: impl Into<String>) -> Self {
        let (name, why) = (name.into(), why.into());
        Self { name, why }
    }
}

/// One kernel (or CPU port), checked and timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowRecord {
    /// The kernel's name.
    pub name: String,
    /// The tile of one block.
    pub tile: String,
    /// Only a row that passes is timed.
    pub check: Check,
    /// The work of one launch.
    pub work: Work,
    /// Launched one by one.
    pub single: Option<Times>,
    /// One launch of a replayed graph; measured where a single launch is so short that enqueueing
    /// it counts, and only in a comparison.
    pub replayed: Option<Times>,
    /// The number of launches in such a graph, by which its time was divided.
    pub launches_per_graph: Option<u32>,
    /// The baselines that did the same work; empty without a comparison.
    pub baselines: Vec<BaselineRow>,
    /// The limits that were measured in turns with this row, for as many bytes as its work moves,
    /// where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
}

/// A baseline that does a row's work, checked and timed in turns with it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BaselineRow {
    /// The name of one of the record's baselines.
    pub name: String,
    /// Why it did not take part in this row; the fields below are then empty.
    pub why_not: Option<String>,
    /// The variant, where it has several: "blocked, -O3".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub how: Option<String>,
    /// Only a baseline that passes is timed.
    pub check: Option<Check>,
    /// As for the row.
    pub single: Option<Times>,
    /// As for the row.
    pub replayed: Option<Times>,
}

impl BaselineRow {
    /// Whether it was checked and its result is wrong.
    #[must_use]
    pub fn is_wrong(&self) -> bool {
        self.check.is_some_and(|check| !check.passes())
    }
}

/// The errors of one row, and the most each may be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Check {
    /// The root mean square of all errors.
    #[serde(deserialize_with = "number")]
    pub rms_error: f64,
    /// Its bound.
    #[serde(deserialize_with = "number")]
    pub rms_bound: f64,
    /// The largest error.
    #[serde(deserialize_with = "number")]
    pub max_error: f64,
    /// Its bound.
    #[serde(deserialize_with = "number")]
    pub max_bound: f64,
}

/// A number, or NaN for null: JSON has no NaN.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Check {
    /// Whether both errors are within their bounds. NaN is not.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.rms_error <= self.rms_bound && self.max_error <= self.max_bound
    }
}

/// The work of one launch, for every kernel of the problem: the numerators of its rates.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Work {
    /// The fewest bytes that must move: every input once, every output once.
    pub bytes: u64,
    /// Floating-point operations, by the family's convention.
    pub flops: u64,
    /// The number of `unit`s that one launch handles.
    pub items: u64,
    /// The unit of `items`.
    pub unit: Unit,
    /// The quantity that the row's speed is given in.
    pub metric: Metric,
    /// The fewest instructions that must be issued, counted per lane.
    #[serde(default)]
    pub slots: Slots,
    /// Whether almost all of the bytes are read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// The fewest instructions of one launch, counted per lane; zeros where memory alone sets the
/// limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// Issued at the rate of single-precision multiply-adds.
    pub fp32: u64,
    /// Issued at the rate of double-precision multiply-adds.
    pub fp64: u64,
}

/// The items that a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Grid points, or elements of a sequence.
    Points,
    /// Pairs of bodies.
    Interactions,
}

impl Unit {
    /// The plural.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Interactions => "interactions",
        }
    }
}

/// The quantity of a family's speed, which decides the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Effective bandwidth, and its fraction of the device's copy bandwidth.
    Bandwidth,
    /// Items and floating-point operations per second.
    Throughput,
}

/// The kinds of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roof {
    /// The copy's bandwidth.
    Memory,
    /// The bandwidth of reading.
    Read,
    /// The issue rate of single-precision instructions.
    Fp32,
    /// The issue rate of double-precision instructions.
    Fp64,
}

impl Roof {
    /// Its name for readers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Read => "read",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
        }
    }

    /// Whether it is a limit of memory.
    #[must_use]
    pub const fn is_memory(self) -> bool {
        matches!(self, Self::Memory | Self::Read)
    }
}

impl Work {
    /// The limit that binds this work, and the least time it takes under these
    /// ceilings, in seconds; `None` where one that it needs was not measured.
    #[must_use]
    pub fn least(&self, ceilings: &Ceilings) -> Option<(Roof, f64)> {
        let mut binding: Option<(Roof, f64)> = None;
        let (memory, bandwidth) = ceilings.memory(self.read_only);
        for (roof, amount, ceiling) in [
            (memory, self.bytes, bandwidth),
            (Roof::Fp32, self.slots.fp32, ceilings.fp32.as_ref()),
            (Roof::Fp64, self.slots.fp64, ceilings.fp64.as_ref()),
        ] {
            if amount == 0 {
                continue;
            }
            let least_s = amount as f64 / ceiling?.per_s();
            if binding.is_none_or(|(_, most)| least_s > most) {
                binding = Some((roof, least_s));
            }
        }
        binding
    }
}

impl Record {
    /// All rows, of all families and problems.
    pub fn rows(&self) -> impl Iterator<Item = &RowRecord> {
        let problems = self.families.iter().flat_map(|family| &family.problems);
        problems.flat_map(|problem| &problem.rows)
    }

    /// Whether there is at least one row, and every row and every baseline that took part passed
    /// its check.
    #[must_use]
    pub fn passes(&self) -> bool {
        let right = |row: &RowRecord| {
            row.check.passes() && !row.baselines.iter().any(BaselineRow::is_wrong)
        };
        self.rows().next().is_some() && self.rows().all(right)
    }
}

#[cfg(test)]
mod tests {
    use super::{Ceiling, Ceilings, Roof, Work};
    use crate::sample::{microseconds, record, row};

    #[test]
    fn nan_is_out_of_bounds() {
        assert!(row("a", 1e-4).check.passes());
        assert!(!row("a", 1.1e-4).check.passes());
        assert!(!row("a", f64::NAN).check.passes());
    }

    #[test]
    fn memory_is_as_fast_as_the_work_can_use_it() {
        let of = |amount| {
            Some(Ceiling {
                amount,
                time: microseconds(10),
                method: String::new(),
            })
        };
        let mut ceilings = Ceilings {
            copy: of(1_000_000),
            ..Ceilings::default()
        };
        let mut work = row("a", 0.0).work;
        let least_us = |work: &Work, ceilings: &Ceilings| {
            let (roof, least_s) = work.least(ceilings).unwrap();
            (roof, (1e6 * least_s).round() as u32)
        };
        assert_eq!(least_us(&work, &ceilings), (Roof::Memory, 20));
        ceilings.streamed_copy = of(2_000_000);
        ceilings.read = of(4_000_000);
        assert_eq!(least_us(&work, &ceilings), (Roof::Memory, 10));
        work.read_only = true;
        assert_eq!(least_us(&work, &ceilings), (Roof::Read, 5));
        ceilings.read = None;
        assert_eq!(least_us(&work, &ceilings), (Roof::Memory, 10));
        ceilings.streamed_copy = of(500_000);
        assert_eq!(least_us(&work, &ceilings), (Roof::Memory, 20));
        assert!(Roof::Read.is_memory() && !Roof::Fp32.is_memory());
    }

    #[test]
    fn a_run_of_no_rows_does_not_pass() {
        assert!(!record(Vec::new()).passes());
    }

    #[test]
    fn json_keeps_its_shape() {
        let json = serde_json::to_value(record(vec![row("a", 1e-5), row("b", 1.0)])).unwrap();
        assert_eq!(json["environment"]["device"]["kind"], "cuda");
        assert_eq!(json["launches"], 1);
        assert_eq!(json["ceilings"]["copy"]["amount"], 4_000_000);
        assert!(json["ceilings"]["fp32"].is_null());
        assert!(json["missing"].is_null() && json["families"][0]["ceilings"].is_null());
        let rows = &json["families"][0]["problems"][0]["rows"];
        assert_eq!(rows[0]["name"], "a");
        assert_eq!(rows[0]["work"]["metric"], "bandwidth");
        assert_eq!(rows[0]["work"]["unit"], "points");
        assert_eq!(rows[0]["single"]["launches"], 1);
        assert_eq!(rows[0]["single"]["median_s"], 1e-5);
        assert!(rows[1]["single"].is_null());
    }
}
