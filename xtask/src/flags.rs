//! The command line: every task and every flag, declared in one place.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

use crate::bench::{self, Size};

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Xtask {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// Checks every kernel, then times it.
#[derive(Debug, Parser)]
#[command(name = "halo-bench")]
pub(crate) struct HaloBench {
    #[command(flatten)]
    pub(crate) bench: Bench,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Check every kernel, then time it
    ///
    /// Each row is checked first: a row whose error is out of bounds prints no
    /// time, and the exit status is 1. Times are medians over the launches that
    /// follow a warm-up.
    Bench(Bench),
    /// Build the committed PTX from the kernel sources
    Ptx(Ptx),
    /// Say what each kernel costs, without a GPU: registers, memory, occupancy, instructions
    ///
    /// The committed PTX is assembled by ptxas and listed by nvdisasm. Where
    /// there is an nvcc, the CUDA C++ kernels in baselines/ are shown beside it.
    Inspect(Inspect),
    /// Check the repository's own rules
    Tidy(Tidy),
    /// Break the kernels one by one, and expect the tests to notice
    Mutate(Mutate),
    /// Say what this machine has of what the tasks need, and how to get the rest
    Doctor,
}

#[derive(Clone, Debug, Args)]
#[cfg_attr(
    not(feature = "bench"),
    allow(
        dead_code,
        reason = "the thin program checks them, and hands them on as they came"
    )
)]
pub(crate) struct Bench {
    /// Where to run: auto (a GPU if there is one, else the CPU), cpu, emulator, cuda or cuda:N
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceChoice,

    /// Run only this family; may be given several times
    #[arg(long = "family", value_name = "NAME", value_parser = PossibleValuesParser::new(bench::families()))]
    pub(crate) families: Vec<String>,

    /// Problem size, as the family takes it: N, NXxNY or NXxNYxNZ [default: the family's own]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,

    /// Run each family at a size at which everything is over in seconds, on any device
    #[arg(long, conflicts_with = "size")]
    pub(crate) small: bool,

    /// Timed launches per kernel [default: 20; on the CPU fewer where they are slow]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) launches: Option<u32>,

    /// Launches before the timed ones, of which none is counted
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    pub(crate) warmup: u32,

    /// Print the names of the kernels, one a line, and run nothing
    #[arg(long)]
    pub(crate) list: bool,

    /// Compare with CUDA C++ (nvcc), CUB and the limits of the device, measured in turns, at
    /// several sizes per family
    #[arg(long)]
    pub(crate) compare: bool,

    /// Write everything measured to this file, as JSON; compressed where its name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write a line per row and baseline to this file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a page with charts and tables to this file; it needs no other file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write the charts of that page to this folder, as SVG files
    #[arg(long, value_name = "FOLDER")]
    pub(crate) svg: Option<PathBuf>,

    /// Measure how problems scale over ranks with a device each: COUNT threads of this process or,
    /// without COUNT, the processes of an MPI launcher
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with_all = ["size", "launches", "list", "compare", "csv", "html", "svg"]
    )]
    pub(crate) ranks: Option<Option<u32>>,

    /// Have the messages of the ranks go over NCCL, which needs a GPU for each
    #[arg(long, requires = "ranks")]
    pub(crate) nccl: bool,

    /// Say what up to so many ranks would take, by a model of what was measured
    #[arg(
        long,
        value_name = "COUNT",
        requires = "ranks",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    pub(crate) project: Option<u32>,

    /// Measure nothing: take what --json wrote to this file, and print and write that; may be
    /// given several times, for runs of different families that belong together
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["device", "families", "size", "launches", "warmup", "list", "compare", "ranks"]
    )]
    pub(crate) from: Vec<PathBuf>,
}

impl Bench {
    /// How many launches are timed, where nothing cuts them short.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn launches(&self) -> u32 {
        self.launches.unwrap_or(20)
    }
}

/// Which device the benchmark runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "bench"), allow(dead_code, reason = "as of `Bench`"))]
pub(crate) enum DeviceChoice {
    /// The first GPU if there is one, else the CPU.
    Auto,
    /// The CPU ports.
    Cpu,
    /// The kernels themselves, on the emulator.
    Emulator,
    /// The GPU with this number.
    Cuda(u32),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "emulator" => Ok(Self::Emulator),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|number| number.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| {
                    "expected auto, cpu, emulator, cuda or cuda:N, with N the number of a GPU"
                        .to_owned()
                }),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Ptx {
    /// Build, but compare with the committed files instead of writing them
    #[arg(long)]
    pub(crate) check: bool,

    /// Targets to build for
    #[arg(
        long = "arch",
        value_name = "SM",
        value_delimiter = ',',
        default_values_t = crate::ptx::TARGETS.map(str::to_owned),
        value_parser = PossibleValuesParser::new(crate::ptx::TARGETS)
    )]
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Kernels, by name; each gets a table of its own [default: one line for every kernel]
    #[arg(value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,

    /// All kernels of this family; may be given several times
    #[arg(long = "family", value_name = "NAME")]
    pub(crate) families: Vec<String>,

    /// The GPU to compile for
    #[arg(
        long,
        value_name = "SM",
        default_value = "sm_90",
        value_parser = PossibleValuesParser::new(cargo_halo::inspect::ARCHES)
    )]
    pub(crate) arch: String,

    /// Threads per block, for the occupancy [default: the kernel's own bound, or the textbook's]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) block: Option<u32>,

    /// Dynamic shared memory per block, for the occupancy [default: the textbook's, or none]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    pub(crate) dynamic_shared: Option<u32>,

    /// Print the machine code instead of the tables
    #[arg(long)]
    pub(crate) sass: bool,

    /// Check the gates beside the kernels' sources, for sm_90, and print those that do not hold
    ///
    /// A gate is a comment like `// gate heat2d_global: registers <= 32, LDG = 4, LD = 0`.
    #[arg(long, conflicts_with_all = ["kernels", "families", "arch", "block", "dynamic_shared", "sass", "json"])]
    pub(crate) gates: bool,

    /// Write everything found to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Tidy {
    /// Print which module imports which, and where modules do so in circles; check nothing
    #[arg(long)]
    pub(crate) imports: bool,
    /// Print how many public items the library has, as its documentation shows them; check
    /// nothing but that they are not too many
    #[arg(long, conflicts_with_all = ["write", "imports"])]
    pub(crate) public: bool,

    /// First write the lists of families as the folders of kernels say
    #[arg(long)]
    pub(crate) write: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Mutate {
    /// Only this family; may be given several times
    #[arg(long = "family", value_name = "NAME")]
    pub(crate) families: Vec<String>,

    /// Only mutations whose line in --list contains this text; may be given several times
    #[arg(long = "only", value_name = "TEXT")]
    pub(crate) only: Vec<String>,

    /// Run this many of those mutations, chosen by a hash of what each does
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: Option<u32>,

    /// Try one of N parts of them: the K-th, from 1. One build serves all parts
    #[arg(long, value_name = "K/N", value_parser = share)]
    pub(crate) part: Option<(u32, u32)>,

    /// Print the mutations and run none
    #[arg(long)]
    pub(crate) list: bool,

    /// Take from earlier runs, of all or of some, what is known of mutations since; without
    /// it, all are tried
    #[arg(long)]
    pub(crate) resume: bool,

    /// Longest time a test may take, in seconds [default: from the unmutated run]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Mutations tested at once [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
}

/// "K/N", of which K is one of 1 to N.
fn share(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('/');
    let numbers = parts.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n)) if (1..=n).contains(&k) => Ok((k, n)),
        _ => Err("must be K/N with K from 1 to N, as 1/4".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn bench(line: &str) -> Result<Bench, clap::Error> {
        Xtask::try_parse_from(line.split_whitespace()).map(|xtask| match xtask.task {
            Task::Bench(bench) => bench,
            other => panic!("parsed as {other:?}"),
        })
    }

    #[test]
    fn declarations_are_consistent() {
        Xtask::command().debug_assert();
        HaloBench::command().debug_assert();
    }

    #[test]
    fn bench_defaults() {
        let flags = bench("xtask bench").unwrap();
        assert_eq!(flags.device, DeviceChoice::Auto);
        assert_eq!((flags.launches(), flags.warmup), (20, 3));
        assert!(flags.families.is_empty() && flags.size.is_none() && !flags.list);
    }

    #[test]
    fn ranks_are_threads_or_a_launchers() {
        let flags = bench("xtask bench --ranks 4 --nccl --project 4096").unwrap();
        assert_eq!((flags.ranks, flags.nccl), (Some(Some(4)), true));
        assert_eq!(flags.project, Some(4096));
        assert_eq!(bench("xtask bench --ranks").unwrap().ranks, Some(None));
        assert_eq!(bench("xtask bench").unwrap().ranks, None);
        for refused in ["--ranks 0", "--nccl", "--project 8", "--ranks 2 --compare"] {
            assert!(
                bench(&format!("xtask bench {refused}")).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn devices() {
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(0)));
        assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(3)));
        assert_eq!("emulator".parse(), Ok(DeviceChoice::Emulator));
        for wrong in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "CPU"] {
            assert!(wrong.parse::<DeviceChoice>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn halo_bench_takes_what_the_task_takes() {
        for line in [
            "--device cuda:1 --family derivative3d --size 64x32x96 --launches 7 --warmup 0 --list",
            "--json out/a.json --csv out/a.csv --html out/a.html --svg out --compare",
            "",
        ] {
            let first = bench(&format!("xtask bench {line}")).unwrap();
            let again = format!("halo-bench {line}");
            let again = HaloBench::try_parse_from(again.split_whitespace()).unwrap();
            assert_eq!(format!("{first:?}"), format!("{:?}", again.bench));
        }
    }

    #[test]
    fn bad_values_are_refused() {
        for line in [
            "--launches 0",
            "--family nosuch",
            "--size 0",
            "--size 4x",
            "--device tpu",
            "--from a.json --compare",
            "--from a.json --device cpu",
        ] {
            assert!(bench(&format!("xtask bench {line}")).is_err(), "{line}");
        }
    }
}
