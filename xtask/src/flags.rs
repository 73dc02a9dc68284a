//! The command line: every task and every flag, declared in one place.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "And the benchmark, a program of its own: cargo xtask bench --help"
)]
pub(crate) struct Xtask {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Build the committed PTX from the kernel sources
    Ptx(Ptx),
    /// Show the cost of each kernel, without a GPU: registers, memory, occupancy, instructions
    ///
    /// The committed PTX is assembled by ptxas and listed by nvdisasm. Where
    /// there is an nvcc, the CUDA C++ kernels in baselines/ are shown as well.
    Inspect(Inspect),
    /// Check the repository's own rules
    Tidy(Tidy),
    /// Break the kernels one by one, and check that a test notices
    Mutate(Mutate),
    /// Show what works on this machine, and the command that installs each missing thing
    Doctor,
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
        default_values_t = crate::ptx_hash::TARGETS.map(str::to_owned),
        value_parser = PossibleValuesParser::new(crate::ptx_hash::TARGETS)
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

    /// Threads per block for the occupancy [default: the kernel's own bound, or the textbook's]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) block: Option<u32>,

    /// Dynamic shared memory per block for the occupancy [default: the textbook's, or none]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    pub(crate) dynamic_shared: Option<u32>,

    /// Print the machine code instead of the tables
    #[arg(long)]
    pub(crate) sass: bool,

    /// Check the gates beside the kernels' sources, for sm_90, and print those that fail
    ///
    /// A gate is a comment like `// gate heat2d_global: registers <= 32, LDG = 4, LD = 0`.
    #[arg(long, conflicts_with_all = ["kernels", "families", "arch", "block", "dynamic_shared", "sass", "json"])]
    pub(crate) gates: bool,

    /// Write all results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Tidy {
    /// Print the imports of each module, and the cycles of modules; check nothing
    #[arg(long)]
    pub(crate) imports: bool,
    /// Print the number of the library's public items, as its documentation shows them; check only
    /// that they are not too many
    #[arg(long, conflicts_with_all = ["write", "imports"])]
    pub(crate) public: bool,

    /// First write the lists of families, from the folders of kernels
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

    /// Run this many of those mutations, chosen by a hash of each mutation's effect
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sample: Option<u32>,

    /// Try one of N parts of them: the K-th, from 1. One build serves all parts
    #[arg(long, value_name = "K/N", value_parser = share)]
    pub(crate) part: Option<(u32, u32)>,

    /// Print the mutations and run none
    #[arg(long)]
    pub(crate) list: bool,

    /// Keep the outcomes of earlier runs, of all mutations or some; without it, all are tried
    #[arg(long)]
    pub(crate) resume: bool,

    /// Build the tests with those mutations into this folder, for a machine without cargo; try none
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["part", "list", "resume"])]
    pub(crate) pack: Option<PathBuf>,

    /// Try mutations of a folder that --pack has made. `FOLDER/tasks` is this program, and
    /// `FOLDER/record.jsonl` what --resume wants, in target/mutate
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["pack", "list"])]
    pub(crate) packed: Option<PathBuf>,

    /// Longest time a test may take, in seconds [default: from the unmutated run]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,

    /// Mutations tested at once [default: one per core]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,
}

/// "K/N" with K from 1 to N.
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

    #[test]
    fn declarations_are_consistent() {
        Xtask::command().debug_assert();
    }
}
