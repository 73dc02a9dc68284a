//! The command line of the benchmark.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args, Parser, ValueEnum};
use halo_distributed::Ahead;
use halo_gpu::DeviceKind;

use crate::measured;
use crate::size::Size;

/// Checks every kernel, then times it.
///
/// Each row is checked first: a row whose error is out of bounds prints no
/// time, and the exit status is 1. Times are medians over the launches that
/// follow a warm-up.
#[derive(Debug, Parser)]
#[command(name = "halo-bench", bin_name = "cargo xtask bench")]
pub(crate) struct HaloBench {
    #[command(flatten)]
    pub(crate) bench: Bench,
}

#[derive(Clone, Debug, Args)]
#[command(group(ArgGroup::new("of ranks").args(["ranks", "from"]).multiple(true)))]
pub(crate) struct Bench {
    /// Where to run: auto (a GPU if there is one, else the CPU), cpu, emulator, cuda or cuda:N
    #[arg(long, default_value = "auto", value_name = "DEVICE")]
    pub(crate) device: DeviceChoice,

    /// Run only this family; may be given several times
    #[arg(long = "family", value_name = "NAME", value_parser = PossibleValuesParser::new(measured::families()))]
    pub(crate) families: Vec<String>,

    /// Problem size, as the family takes it: N, NXxNY or NXxNYxNZ [default: the family's own]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,

    /// Run each family at a small size: a few seconds for all, on any device
    #[arg(long, conflicts_with = "size")]
    pub(crate) small: bool,

    /// On the CPU: all sizes of each family, and more launches of each row. Without it, a run takes
    /// about 20 s on two cores. Other devices always run all
    #[arg(long, conflicts_with_all = ["size", "small"])]
    pub(crate) full: bool,

    /// Timed launches per kernel [default: 20; on the CPU fewer where they are slow]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) launches: Option<u32>,

    /// Launches that warm up, before the timed ones
    #[arg(long, default_value_t = 3, value_name = "COUNT")]
    pub(crate) warmup: u32,

    /// Print the names of the kernels, one per line, and run nothing
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
    /// without COUNT, the processes of an MPI launcher. --size is the size for one rank
    #[arg(
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        conflicts_with_all = ["full", "launches", "list", "compare"]
    )]
    pub(crate) ranks: Option<Option<u32>>,

    /// Send the messages of the ranks over NCCL, which needs one GPU for each rank
    #[arg(long, requires = "ranks")]
    pub(crate) nccl: bool,

    /// How the ranks cut grids: along the last axis, along all axes but the first, or along those
    /// that give the cuts the fewest points
    #[arg(long, value_enum, default_value = "slabs", requires = "ranks")]
    pub(crate) cut: Cut,

    /// Whether plates and waves first compute what their neighbours need and send it while they
    /// compute the rest, and derivatives first compute what needs no messages
    #[arg(long, value_enum, default_value = "auto", requires = "ranks")]
    pub(crate) rims: Rims,

    /// Predict the times for up to COUNT ranks by a model of the measurements; with --ranks, or
    /// --from a record of ranks
    #[arg(
        long,
        value_name = "COUNT",
        requires = "of ranks",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20)
    )]
    pub(crate) project: Option<u32>,

    /// Measure nothing: read a file that --json wrote, and print and write its contents; may be
    /// given several times, for runs of different families that belong together
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["device", "families", "size", "full", "launches", "warmup", "list", "compare", "ranks"]
    )]
    pub(crate) from: Vec<PathBuf>,
}

impl Bench {
    /// The number of timed launches, unless a limit of time ends them sooner.
    pub(crate) fn launches(&self) -> u32 {
        self.launches.unwrap_or(20)
    }

    /// Whether a run on this kind of device is the quick one: on the CPU, unless a flag asks for
    /// more.
    pub(crate) fn is_quick(&self, kind: DeviceKind) -> bool {
        let asks = self.full || self.compare || self.small || self.size.is_some();
        kind == DeviceKind::Cpu && !asks
    }
}

/// How ranks cut grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Cut {
    Slabs,
    Pencils,
    Blocks,
}

/// Whether what neighbours need is computed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rims {
    Auto,
    Always,
    Never,
}

impl From<Rims> for Ahead {
    fn from(rims: Rims) -> Self {
        match rims {
            Rims::Auto => Self::Auto,
            Rims::Always => Self::Always,
            Rims::Never => Self::Never,
        }
    }
}

/// Which device the benchmark runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[cfg(test)]
pub(crate) mod tests {
    use clap::CommandFactory as _;

    use super::*;

    /// Of a run on the CPU that writes nothing.
    pub(crate) fn flags() -> Bench {
        Bench {
            device: DeviceChoice::Cpu,
            families: Vec::new(),
            size: None,
            small: false,
            full: false,
            launches: Some(7),
            warmup: 2,
            list: false,
            json: None,
            compare: false,
            csv: None,
            html: None,
            svg: None,
            ranks: None,
            nccl: false,
            cut: Cut::Slabs,
            rims: Rims::Auto,
            project: None,
            from: Vec::new(),
        }
    }

    fn bench(line: &str) -> Result<Bench, clap::Error> {
        HaloBench::try_parse_from(line.split_whitespace()).map(|flags| flags.bench)
    }

    #[test]
    fn declarations_are_consistent() {
        HaloBench::command().debug_assert();
    }

    #[test]
    fn bench_defaults() {
        let flags = bench("halo-bench").unwrap();
        assert_eq!(flags.device, DeviceChoice::Auto);
        assert_eq!((flags.launches(), flags.warmup), (20, 3));
        assert!(flags.families.is_empty() && flags.size.is_none() && !flags.list);
    }

    #[test]
    fn the_cpu_is_quick_unless_asked_for_more() {
        let is_quick = |line: &str, kind| bench(line).unwrap().is_quick(kind);
        assert!(is_quick("halo-bench", DeviceKind::Cpu));
        assert!(is_quick(
            "halo-bench --family nbody --launches 5",
            DeviceKind::Cpu
        ));
        assert!(!is_quick("halo-bench", DeviceKind::Cuda));
        assert!(!is_quick("halo-bench", DeviceKind::Emulator));
        for flag in ["--full", "--compare", "--small", "--size 64"] {
            assert!(
                !is_quick(&format!("halo-bench {flag}"), DeviceKind::Cpu),
                "{flag}"
            );
        }
        assert!(bench("halo-bench --full --size 64").is_err());
    }

    #[test]
    fn ranks_are_threads_or_a_launchers() {
        let flags = bench("halo-bench --ranks 4 --nccl --project 4096").unwrap();
        assert_eq!((flags.ranks, flags.nccl), (Some(Some(4)), true));
        assert_eq!(flags.project, Some(4096));
        assert_eq!(bench("halo-bench --ranks").unwrap().ranks, Some(None));
        assert_eq!(bench("halo-bench").unwrap().ranks, None);
        for line in [
            "--ranks 2 --size 64 --family nbody --csv a.csv --html a.html --svg a",
            "--from a.json --project 64",
            "--ranks 4 --cut blocks --rims always",
        ] {
            bench(&format!("halo-bench {line}")).unwrap();
        }
        for refused in [
            "--ranks 0",
            "--nccl",
            "--cut blocks",
            "--project 8",
            "--ranks 2 --compare",
        ] {
            assert!(
                bench(&format!("halo-bench {refused}")).is_err(),
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
    fn all_that_is_measured_can_be_chosen_and_written() {
        for line in [
            "--device cuda:1 --family derivative3d --size 64x32x96 --launches 7 --warmup 0 --list",
            "--json out/a.json --csv out/a.csv --html out/a.html --svg out --compare",
        ] {
            bench(&format!("halo-bench {line}")).unwrap();
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
            assert!(bench(&format!("halo-bench {line}")).is_err(), "{line}");
        }
    }
}
