//! The command line: every command and every flag, declared in one place.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

/// Crates of CUDA kernels in Rust: make, check, inspect and emulate them.
#[derive(Debug, Parser)]
#[command(name = "cargo halo", bin_name = "cargo halo", version)]
pub struct Halo {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a crate with a kernel, its launch on a GPU, and tests that need none
    New(New),
    /// Compile the kernels for a GPU and check the gates beside them; writes nothing
    ///
    /// A gate is a comment like `// gate smooth: registers <= 32, LDG = 4, LD = 0`. A kernel must
    /// not spill registers unless its gate allows it.
    Check(Check),
    /// Build the kernels' PTX
    Ptx(Ptx),
    /// Show the cost of each kernel, without a GPU: registers, memory, occupancy, instructions
    Inspect(Inspect),
    /// Launch one kernel in the emulator, in several orders of threads, and print its outputs
    ///
    /// Each argument is one of
    ///   3.0_f32                 a value, written as in Rust
    ///   f32:1000                1000 random numbers in [0, 1), or integers in [0, 100), for a
    ///                           parameter that is read
    ///   f32:1000=1.5            1000 times this value
    ///   out:f32:1000            unwritten memory, for a parameter that is written
    ///   out:f32:1000=0.0        the same with a value in it
    #[command(verbatim_doc_comment)]
    Emulate(Emulate),
    /// Show what works on this machine, and the command that installs each missing thing
    Doctor,
}

#[derive(Debug, Args)]
pub struct New {
    /// The folder to make; its name becomes the crate's
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,

    /// The source of cuda_std and the other crates: a folder with Halo's repository, or an address
    /// that git can clone [default: the repository in which this program was built, or the registry]
    #[arg(long, value_name = "PLACE")]
    pub source: Option<String>,
}

/// The choice of the crate.
#[derive(Debug, Args)]
pub struct KernelCrate {
    /// The crate of kernels [default: `kernels` below the current folder, or the current folder]
    #[arg(long = "kernels", value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub kernels: KernelCrate,
}

#[derive(Debug, Args)]
pub struct Ptx {
    #[command(flatten)]
    pub kernels: KernelCrate,

    /// The oldest GPUs that the PTX must run on
    #[arg(long, value_name = "SM", default_value = "sm_75")]
    pub arch: String,

    /// The file to write [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Include the lines of the sources, for profilers
    #[arg(long)]
    pub lines: bool,
}

#[derive(Debug, Args)]
pub struct Inspect {
    #[command(flatten)]
    pub kernels: KernelCrate,

    /// Kernels, by name; each gets a table of its own [default: one line for every kernel]
    #[arg(value_name = "KERNEL")]
    pub names: Vec<String>,

    /// The GPU to compile for
    #[arg(
        long,
        value_name = "SM",
        default_value = "sm_90",
        value_parser = PossibleValuesParser::new(crate::inspect::ARCHES)
    )]
    pub arch: String,

    /// Threads per block for the occupancy [default: the kernel's own bound]
    #[arg(long, value_name = "THREADS", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub block: Option<u32>,

    /// Dynamic shared memory per block for the occupancy
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    pub dynamic_shared: u32,

    /// Print the machine code instead of the tables
    #[arg(long)]
    pub sass: bool,

    /// Write all results to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Emulate {
    #[command(flatten)]
    pub kernels: KernelCrate,

    /// The kernel, with its module if it is in one: `smooth`, `filters::smooth`
    #[arg(value_name = "KERNEL")]
    pub kernel: String,

    /// Blocks of the grid: X, X,Y or X,Y,Z
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', num_args = 1..=3, required = true)]
    pub grid: Vec<u32>,

    /// Threads of a block: X, X,Y or X,Y,Z
    #[arg(long, value_name = "THREADS", value_delimiter = ',', num_args = 1..=3, required = true)]
    pub block: Vec<u32>,

    /// Bytes of dynamic shared memory per block
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub dynamic_shared: usize,

    /// The seed of random inputs
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// The kernel's arguments, in order
    #[arg(value_name = "ARGUMENT", last = true)]
    pub arguments: Vec<String>,
}
