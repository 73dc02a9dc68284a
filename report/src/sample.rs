//! Invented records for tests: a GPU that does not exist, with times from a formula. They cover
//! everything a record can hold: one size and several, baselines that ran and that did not,
//! replayed launches, failed rows.

use std::time::Duration;

use crate::record::{
    Baseline, BaselineRow, Ceiling, Ceilings, Check, DeviceRecord, Environment, FamilyRecord,
    LeftOut, Metric, ProblemRecord, Record, RowRecord, Slots, Toolkit, Unit, Work,
};
use crate::stats::Times;

/// The copy bandwidth of the invented device; its issue rates follow.
const COPY: f64 = 4.0e12;
const FP32: f64 = 30.0e12;
const FP64: f64 = 15.0e12;

/// 20 timings around a median, with this relative spread.
fn times(median_s: f64, spread: f64) -> Times {
    let timings: Vec<Duration> = (0..20)
        .map(|index| {
            let offset = f64::from(index - 10) / 5.0;
            Duration::from_secs_f64(median_s * (1.0 + spread * offset))
        })
        .collect();
    Times::of(&timings).unwrap()
}

fn ceilings() -> Ceilings {
    let of = |per_s: f64, method: &str| {
        let amount = (per_s * 5e-4) as u64;
        Some(Ceiling {
            amount,
            time: times(5e-4, 0.001),
            method: method.to_owned(),
        })
    };
    Ceilings {
        copy: of(COPY, "made up: a copy of 1024 MiB"),
        streamed_copy: None,
        read: None,
        fp32: of(FP32, "made up: multiply-adds in single precision"),
        fp64: of(FP64, "made up: multiply-adds in double precision"),
    }
}

/// A kernel of the sample: its name, the fraction of its limit that it reaches, and the ratios of
/// its time to each baseline's.
struct Kernel {
    name: &'static str,
    reaches: f64,
    against: &'static [(&'static str, f64)],
}

const fn kernel(
    name: &'static str,
    reaches: f64,
    against: &'static [(&'static str, f64)],
) -> Kernel {
    Kernel {
        name,
        reaches,
        against,
    }
}

/// A family of the sample.
struct Sample {
    name: &'static str,
    unit: Unit,
    metric: Metric,
    /// Bytes, operations and issue slots for this many elements.
    work: fn(f64, &str) -> (f64, f64, f64),
    sizes: &'static [(&'static str, u64)],
    kernels: &'static [Kernel],
}

const SAMPLES: [Sample; 5] = [
    Sample {
        name: "derivative3d",
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        work: |n, name| {
            let bytes = if name.ends_with("f64") { 16.0 } else { 8.0 };
            (bytes * n, 11.0 * n, 0.0)
        },
        sizes: &[
            ("64x64x64", 1 << 18),
            ("128x128x128", 1 << 21),
            ("256x256x256", 1 << 24),
            ("512x512x512", 1 << 27),
        ],
        kernels: &[
            kernel("derivative3d_x_pencil4", 0.62, &[("nvcc", 0.99)]),
            kernel("derivative3d_x_pencil32", 0.55, &[("nvcc", 1.004)]),
            kernel("derivative3d_y_pencil4", 0.41, &[("nvcc", 0.97)]),
            kernel("derivative3d_y_pencil32", 0.71, &[("nvcc", 1.08)]),
            kernel("derivative3d_z_pencil4", 0.29, &[("nvcc", 1.0)]),
            kernel("derivative3d_z_pencil32", 0.68, &[("nvcc", 0.91)]),
            kernel("derivative3d_x_rows_f32", 0.95, &[]),
            kernel("derivative3d_y_planes_f32", 0.93, &[]),
            kernel("derivative3d_z_planes_f32", 0.91, &[]),
            kernel("derivative3d_z_planes_f64", 0.94, &[]),
        ],
    },
    Sample {
        name: "heat2d",
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        work: |n, _| (8.0 * n, 4.0 * n, 0.0),
        sizes: &[
            ("256x256", 1 << 16),
            ("1024x1024", 1 << 20),
            ("4096x4096", 1 << 24),
            ("16384x16384", 1 << 28),
        ],
        kernels: &[
            kernel("heat2d_global", 0.58, &[("nvcc", 1.0)]),
            kernel("heat2d_shared_core", 0.49, &[("nvcc", 0.96)]),
            kernel("heat2d_shared_overlap", 0.38, &[("nvcc", 1.01)]),
            kernel("heat2d_shared_halo", 0.44, &[("nvcc", 0.88)]),
            kernel("heat2d_texture", 0.47, &[("nvcc", 1.002)]),
            kernel("heat2d_temporal4", 2.1, &[]),
        ],
    },
    Sample {
        name: "nbody",
        unit: Unit::Interactions,
        metric: Metric::Throughput,
        work: |n, name| {
            let double = name.ends_with("f64");
            let (bytes, flops) = if double { (56.0, 30.0) } else { (28.0, 20.0) };
            (
                bytes * n,
                flops * n * n,
                if double { 24.0 } else { 13.0 } * n * n,
            )
        },
        sizes: &[
            ("1024", 1 << 10),
            ("4096", 1 << 12),
            ("16384", 1 << 14),
            ("65536", 1 << 16),
            ("131072", 1 << 17),
        ],
        kernels: &[
            kernel("nbody_aos_unroll1_f32", 0.07, &[("nvcc", 0.98)]),
            kernel("nbody_aos_unroll4_f32", 0.16, &[("nvcc", 0.99)]),
            kernel("nbody_aos_unroll32_f32", 0.19, &[("nvcc", 1.01)]),
            kernel(
                "nbody_shared_f32",
                0.82,
                &[("nvcc", 0.80), ("n-body sample style", 0.84)],
            ),
            kernel("nbody_tiled_f32", 0.91, &[("n-body sample style", 0.76)]),
            kernel("nbody_aos_unroll1_f64", 0.11, &[("nvcc", 1.0)]),
            kernel("nbody_shared_f64", 0.39, &[("nvcc", 0.97)]),
        ],
    },
    Sample {
        name: "reduction",
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        work: |n, name| {
            let bytes = if name.ends_with("f64") { 8.0 } else { 4.0 };
            (bytes * n, n, 0.0)
        },
        sizes: &[
            ("1024", 1 << 10),
            ("16384", 1 << 14),
            ("262144", 1 << 18),
            ("4194304", 1 << 22),
            ("67108864", 1 << 26),
            ("1073741824", 1 << 30),
        ],
        kernels: &[
            kernel("reduction_global_f32", 0.21, &[("nvcc", 1.0)]),
            kernel("reduction_shared_f32", 0.22, &[("nvcc", 0.99)]),
            kernel("reduction_shared_unroll4_f32", 0.66, &[("nvcc", 1.003)]),
            kernel(
                "reduction_shared_unroll4_dynamic_f32",
                0.65,
                &[("nvcc", 0.97)],
            ),
            kernel("reduction_sum_f32", 1.07, &[("CUB", 0.98)]),
            kernel("reduction_sum_f64", 1.08, &[("CUB", 1.0)]),
            kernel("reduction_sum_i32", 1.07, &[("CUB", 0.99)]),
            kernel("reduction_argmin_f32", 1.02, &[("CUB", 0.71)]),
        ],
    },
    Sample {
        name: "stencil1d",
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        work: |n, _| (8.0 * n, 11.0 * n, 0.0),
        sizes: &[("65536", 1 << 16)],
        kernels: &[
            kernel("stencil1d_constant", 0.37, &[("nvcc", 1.06)]),
            kernel("stencil1d_readonly", 0.35, &[("nvcc", 1.02)]),
        ],
    },
];

fn sampled(kernel: &Kernel, sample: &Sample, elements: u64) -> RowRecord {
    let n = elements as f64;
    let double = kernel.name.ends_with("f64");
    let (bytes, flops, slots) = (sample.work)(n, kernel.name);
    let slots = slots as u64;
    let work = Work {
        bytes: bytes as u64,
        flops: flops as u64,
        items: match sample.unit {
            Unit::Points => elements,
            Unit::Interactions => elements * elements,
        },
        unit: sample.unit,
        metric: sample.metric,
        slots: Slots {
            fp32: if double { 0 } else { slots },
            fp64: if double { slots } else { 0 },
        },
        read_only: false,
    };
    let issue = slots as f64 / if double { FP64 } else { FP32 };
    let least = (bytes / COPY).max(issue);
    // Work that does not fill the device takes about as long as a launch.
    let replayed_s = 1.6e-6 + least / kernel.reaches;
    let single_s = replayed_s + 2.4e-6;
    let short = single_s < 5e-5;
    // Baselines differ more at some sizes than at others.
    let drift = 1.0 + 0.02 * (n.log2() * 7.0).sin();
    let noise = (2e-7 / single_s).min(0.05) + 0.001;
    let baseline = |&(name, factor): &(&str, f64)| {
        let scale = 1.0 / (factor * drift);
        BaselineRow {
            name: name.to_owned(),
            why_not: None,
            how: None,
            check: Some(PASSES),
            single: Some(times(single_s * scale, noise)),
            replayed: short.then(|| times(replayed_s * scale, noise / 4.0)),
        }
    };
    RowRecord {
        name: kernel.name.to_owned(),
        tile: "4 × 72".to_owned(),
        check: PASSES,
        work,
        single: Some(times(single_s, noise)),
        replayed: short.then(|| times(replayed_s, noise / 4.0)),
        launches_per_graph: short.then_some(100),
        baselines: kernel.against.iter().map(baseline).collect(),
        ceilings: None,
    }
}

const PASSES: Check = Check {
    rms_error: 7.17e-6,
    rms_bound: 3.45e-5,
    max_error: 2.86e-5,
    max_bound: 1.04e-4,
};

/// The whole sample.
pub(crate) fn whole() -> Record {
    let families = SAMPLES
        .iter()
        .map(|sample| FamilyRecord {
            name: sample.name.to_owned(),
            problems: sample
                .sizes
                .iter()
                .map(|(size, elements)| ProblemRecord {
                    size: (*size).to_owned(),
                    elements: *elements,
                    problem: format!("a made-up problem of {elements} elements"),
                    boundary: Some("periodic, made up".to_owned()),
                    working_set_bytes: 8 * elements,
                    notes: vec!["a note & <more>".to_owned()],
                    rows: sample
                        .kernels
                        .iter()
                        .map(|kernel| sampled(kernel, sample, *elements))
                        .collect(),
                    left_out: Vec::new(),
                })
                .collect(),
            ceilings: None,
        })
        .collect();
    let baseline = |name: &str, what: &str, why_not: Option<&str>| Baseline {
        name: name.to_owned(),
        what: what.to_owned(),
        why_not: why_not.map(str::to_owned),
    };
    let mut record = Record {
        environment: environment("Fixture GPU <made up>"),
        launches: 20,
        warmup: 3,
        timing: Some("median, each launch between two CUDA events".to_owned()),
        ceilings: ceilings(),
        baselines: vec![
            baseline("nvcc", "the same kernels in CUDA C++, made up", None),
            baseline("CUB", "DeviceReduce, made up", None),
            baseline("n-body sample style", "tiles and unrolling, made up", None),
            baseline("absent", "someone else", Some("there is none & never was")),
        ],
        families,
        missing: Vec::new(),
    };
    // A row that failed its check, and a kernel that was too slow to run.
    let problem = &mut record.families[0].problems[3];
    problem.left_out.push(LeftOut {
        name: "derivative3d_x_pencil4".to_owned(),
        why: "a row of 512 does not fit".to_owned(),
    });
    let failed = problem.rows.remove(0);
    problem.rows.push(RowRecord {
        name: "derivative3d_y_wrong".to_owned(),
        check: Check {
            max_error: f64::NAN,
            ..PASSES
        },
        single: None,
        replayed: None,
        launches_per_graph: None,
        baselines: Vec::new(),
        ..failed
    });
    record
}

/// The same run without timings, as in the emulator.
pub(crate) fn untimed() -> Record {
    let mut record = whole();
    record.environment.device.kind = "emulator".to_owned();
    record.timing = None;
    record.ceilings = Ceilings::default();
    record.baselines.clear();
    for family in &mut record.families {
        family.problems.truncate(1);
        for row in &mut family.problems[0].rows {
            (row.single, row.replayed) = (None, None);
            row.baselines.clear();
        }
    }
    record
}

/// The same run without baselines, at one size, with the copy as the only limit, as on a CPU.
pub(crate) fn alone() -> Record {
    let mut record = whole();
    record.environment.device.kind = "cpu".to_owned();
    record.baselines.clear();
    record.ceilings.fp32 = None;
    record.ceilings.fp64 = None;
    for family in &mut record.families {
        family.problems.truncate(1);
        for row in &mut family.problems[0].rows {
            row.replayed = None;
            row.baselines.clear();
        }
    }
    record
}

/// The environment of invented records.
fn environment(device: &str) -> Environment {
    Environment {
        device: DeviceRecord {
            kind: "cuda".to_owned(),
            name: device.to_owned(),
            compute_capability: Some("9.0".to_owned()),
            driver: Some("for CUDA 13.0".to_owned()),
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
    }
}

/// Timings of one launch of this many microseconds.
pub(crate) fn microseconds(microseconds: u64) -> Times {
    Times::of(&[Duration::from_micros(microseconds)]).unwrap()
}

/// A row of 10 µs; without a time if this error is out of bounds.
pub(crate) fn row(name: &str, max_error: f64) -> RowRecord {
    let check = Check {
        rms_error: 7.3e-6,
        rms_bound: 1e-5,
        max_error,
        max_bound: 1e-4,
    };
    RowRecord {
        name: name.to_owned(),
        tile: "4 × 72".to_owned(),
        check,
        work: Work {
            bytes: 2_000_000,
            flops: 3_000_000,
            items: 250_000,
            unit: Unit::Points,
            metric: Metric::Bandwidth,
            slots: Slots::default(),
            read_only: false,
        },
        single: check.passes().then(|| microseconds(10)),
        replayed: None,
        launches_per_graph: None,
        baselines: Vec::new(),
        ceilings: None,
    }
}

/// A run of these rows, each launched once.
pub(crate) fn record(rows: Vec<RowRecord>) -> Record {
    let copy = Ceiling {
        amount: 4_000_000,
        time: microseconds(10),
        method: "one copy".to_owned(),
    };
    Record {
        environment: environment("Some GPU"),
        launches: 1,
        warmup: 3,
        timing: Some("median of CUDA events".to_owned()),
        ceilings: Ceilings {
            copy: Some(copy),
            ..Ceilings::default()
        },
        baselines: Vec::new(),
        families: vec![FamilyRecord {
            name: "derivative3d".to_owned(),
            problems: vec![ProblemRecord {
                size: "64x64x64".to_owned(),
                elements: 262_144,
                problem: "64 × 64 × 64".to_owned(),
                boundary: Some("period n-1".to_owned()),
                working_set_bytes: 2_097_152,
                notes: Vec::new(),
                rows,
                left_out: Vec::new(),
            }],
            ceilings: None,
        }],
        missing: Vec::new(),
    }
}
