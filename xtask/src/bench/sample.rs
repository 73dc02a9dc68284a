//! A made-up report for tests: a GPU that does not exist, with times from a
//! formula. It has everything that a report can have: several sizes and one,
//! rivals that took part and that did not, replayed launches, rows that failed.

use std::time::Duration;

use super::report::{
    Against, Ceiling, Ceilings, Check, ContenderReport, DeviceReport, Environment, FamilyReport,
    LeftOut, Measured, Metric, ProblemReport, Report, RivalReport, RowReport, Slots, Toolkit, Unit,
    Work,
};
use super::stats::{Ratio, Times};

/// What the device that does not exist copies and computes in a second.
const COPY: f64 = 4.0e12;
const FP32: f64 = 30.0e12;
const FP64: f64 = 15.0e12;

/// 20 timings about a median, with a spread of about this fraction.
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
        Some(Ceiling::of(amount, times(5e-4, 0.001), method.to_owned()))
    };
    Ceilings {
        copy: of(COPY, "made up: a copy of 1024 MiB"),
        fp32: of(FP32, "made up: multiply-adds in single precision"),
        fp64: of(FP64, "made up: multiply-adds in double precision"),
    }
}

/// A kernel of the sample: its name, the fraction of its limit it reaches, and
/// how its time compares with each rival's.
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

/// What a family of the sample counts.
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

fn row(kernel: &Kernel, sample: &Sample, elements: u64, ceilings: &Ceilings) -> RowReport {
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
    };
    let issue = slots as f64 / if double { FP64 } else { FP32 };
    let least = (bytes / COPY).max(issue);
    // Work that is too short to fill the device takes about as long as a launch.
    let replayed_s = 1.6e-6 + least / kernel.reaches;
    let single_s = replayed_s + 2.4e-6;
    let short = single_s < 5e-5;
    // Rivals differ more at some sizes than at others.
    let drift = 1.0 + 0.02 * (n.log2() * 7.0).sin();
    let noise = (2e-7 / single_s).min(0.05) + 0.001;
    let contender = |name: &str, factor: f64| {
        let against = |mine: f64, spread: f64| {
            let time = times(mine / (factor * drift), spread);
            Against {
                time,
                ratio: Ratio::of(&times(mine, spread), &time),
            }
        };
        ContenderReport {
            name: name.to_owned(),
            why_not: None,
            check: Some(PASSES),
            within_bounds: true,
            single: Some(against(single_s, noise)),
            replayed: short.then(|| against(replayed_s, noise / 4.0)),
        }
    };
    RowReport {
        name: kernel.name.to_owned(),
        tile: "4 × 72".to_owned(),
        check: PASSES,
        within_bounds: true,
        work,
        single: Some(Measured::new(&work, times(single_s, noise), 1, ceilings)),
        replayed: short
            .then(|| Measured::new(&work, times(replayed_s, noise / 4.0), 100, ceilings)),
        contenders: kernel
            .against
            .iter()
            .map(|(name, factor)| contender(name, *factor))
            .collect(),
    }
}

const PASSES: Check = Check {
    rms_error: 7.17e-6,
    rms_bound: 3.45e-5,
    max_error: 2.86e-5,
    max_bound: 1.04e-4,
};

/// The whole sample.
pub(crate) fn report() -> Report {
    let ceilings = ceilings();
    let families = SAMPLES
        .iter()
        .map(|sample| FamilyReport {
            name: sample.name.to_owned(),
            problems: sample
                .sizes
                .iter()
                .map(|(size, elements)| ProblemReport {
                    size: (*size).to_owned(),
                    elements: *elements,
                    problem: format!("a made-up problem of {elements} elements"),
                    boundary: Some("periodic, made up".to_owned()),
                    working_set_bytes: 8 * elements,
                    notes: vec!["a note & <more>".to_owned()],
                    rows: sample
                        .kernels
                        .iter()
                        .map(|kernel| row(kernel, sample, *elements, &ceilings))
                        .collect(),
                    left_out: Vec::new(),
                })
                .collect(),
        })
        .collect();
    let rival = |name: &str, what: &str, why_not: Option<&str>| RivalReport {
        name: name.to_owned(),
        what: what.to_owned(),
        why_not: why_not.map(str::to_owned),
    };
    let mut report = Report {
        environment: Environment {
            device: DeviceReport {
                kind: "cuda".to_owned(),
                name: "Fixture GPU <made up>".to_owned(),
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
        },
        launches: 20,
        warmup: 3,
        timing: Some("median, each launch between two CUDA events".to_owned()),
        ceilings,
        rivals: vec![
            rival("nvcc", "the same kernels in CUDA C++, made up", None),
            rival("CUB", "DeviceReduce, made up", None),
            rival("n-body sample style", "tiles and unrolling, made up", None),
            rival("absent", "someone else", Some("there is none & never was")),
        ],
        families,
    };
    // A row that failed its check, and a kernel that was too slow to run.
    let problem = &mut report.families[0].problems[3];
    problem.left_out.push(LeftOut {
        name: "derivative3d_x_pencil4".to_owned(),
        why: "a row of 512 does not fit".to_owned(),
    });
    let failed = problem.rows.remove(0);
    problem.rows.push(RowReport {
        name: "derivative3d_y_wrong".to_owned(),
        check: Check {
            max_error: f64::NAN,
            ..PASSES
        },
        within_bounds: false,
        single: None,
        replayed: None,
        contenders: Vec::new(),
        ..failed
    });
    report
}

/// The same run without anything that was timed, as the emulator's.
pub(crate) fn untimed() -> Report {
    let mut report = report();
    report.environment.device.kind = "emulator".to_owned();
    report.timing = None;
    report.ceilings = Ceilings::default();
    report.rivals.clear();
    for family in &mut report.families {
        family.problems.truncate(1);
        for row in &mut family.problems[0].rows {
            (row.single, row.replayed) = (None, None);
            row.contenders.clear();
        }
    }
    report
}

/// The same run without rivals, at one size, with the copy as the only ceiling:
/// what a run on a CPU gives.
pub(crate) fn alone() -> Report {
    let mut report = report();
    report.environment.device.kind = "cpu".to_owned();
    report.rivals.clear();
    report.ceilings.fp32 = None;
    report.ceilings.fp64 = None;
    let ceilings = &report.ceilings;
    for family in &mut report.families {
        family.problems.truncate(1);
        for row in &mut family.problems[0].rows {
            row.replayed = None;
            row.contenders.clear();
            if let Some(single) = &mut row.single {
                *single = Measured::new(&row.work, single.time, 1, ceilings);
            }
        }
    }
    report
}
