//! A family as the benchmark sees it: its sizes, its rows, and what a row does on a device.

use gpu_kernels::registry::{self, Cost};
use halo_gpu::Device;
pub(super) use halo_report::record::{LeftOut, Metric, Slots, Unit, Work};

use super::check::Check;
use super::cpp::job::Job;
use super::cub::work::Work as CubWork;
use super::error::Error;
use super::size::Size;

/// A family's description of its rows.
pub(super) struct Family {
    pub(super) name: &'static str,
    /// The rows on this device at this size (`None`: the family's own), in any order. A kernel
    /// without a row here has the row of its case, see [`case`](crate::rows::case).
    pub(super) plan: fn(&Device, Option<&Size>) -> Result<Plan, Error>,
    /// The sizes for comparisons on a GPU, smallest first, as `--size` takes them.
    pub(super) sizes: &'static [&'static str],
    /// The sizes on the CPU, likewise; if there are none, the family's own size. The quick run
    /// takes the first. Sizes larger than the caches show the limit of memory.
    pub(super) cpu_sizes: &'static [&'static str],
    /// The sizes for comparisons on the CPU, likewise.
    pub(super) cpu_comparison: &'static [&'static str],
    /// A size that takes seconds, also on the emulator.
    pub(super) small: &'static str,
}

/// The rows that a family will run.
pub(super) struct Plan {
    /// The size, as `--size` takes it.
    pub(super) size: String,
    /// The same as one number: grid points, elements or bodies.
    pub(super) elements: u64,
    pub(super) problem: String,
    pub(super) boundary: Option<String>,
    /// Bytes that one launch touches, for comparison with the device's cache.
    pub(super) working_set_bytes: u64,
    pub(super) rows: Vec<Box<dyn Row>>,
    /// Kernels that are not run at this size, and why.
    pub(super) left_out: Vec<LeftOut>,
    /// Why a kernel cannot take the size. It is an error if the user asked for just this size.
    pub(super) refused: Option<Error>,
}

/// The work of a launch that computes this many points; its rate is given as bandwidth.
pub(super) fn points(cost: Cost, points: usize) -> Work {
    Work {
        bytes: cost.bytes,
        flops: cost.flops,
        items: points as u64,
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        slots: Slots::default(),
        read_only: false,
    }
}

/// A line of the table before it runs; it holds no memory on the device.
pub(super) trait Row {
    /// The kernel's name, or the port's.
    fn name(&self) -> String;
    /// The block's part of the problem, for the reader: by default as the table of kernels has it.
    fn tile(&self) -> String {
        let name = self.name();
        let kernel = name.split(',').next().and_then(registry::entry);
        kernel.map_or("–", |entry| entry.tile).to_owned()
    }
    /// The work of one launch.
    fn work(&self) -> Work;
    /// Kernels of the family's CUDA C++ that do the same. The kernel with the row's own name is
    /// always used, and is not in this list.
    fn stand_ins(&self) -> &'static [StandIn] {
        &[]
    }
    /// Puts its input on the device.
    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error>;
}

/// A row with its memory on the device.
pub(super) trait Prepared {
    /// Poisons the output, launches once, and compares all of it.
    fn check(&mut self) -> Result<Check, Error>;
    /// Launches once, without waiting for the end.
    fn launch(&mut self) -> Result<(), halo_gpu::Error>;
    /// Restores the input that a launch destroys, without waiting for the end; returns whether
    /// launches destroy anything. Never timed.
    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        Ok(false)
    }
    /// The same work for CUB.
    fn cub(&self) -> Option<CubWork> {
        None
    }
    /// The same work for C++ on the CPU.
    fn cpp(&self) -> Result<Option<Job>, Error> {
        Ok(None)
    }
    /// The same work in C++ that adds in f64, where Halo does and [`cpp`](Self::cpp) adds in f32.
    fn cpp_in_f64(&self) -> Result<Option<Job>, Error> {
        Ok(None)
    }
}

/// A kernel in the CUDA C++ of a row's family that does the row's work under another name than the
/// row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StandIn {
    /// The name of the baseline in the record.
    pub(super) baseline: &'static str,
    /// The kernel that it replaces in the launch.
    pub(super) kernel: &'static str,
    /// Its own name.
    pub(super) entry: &'static str,
}
