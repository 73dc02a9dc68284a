//! Who the rows are compared with: the same kernels in CUDA C++, compiled by the
//! nvcc of this machine, and CUB.
//!
//! A twin in CUDA C++ is launched by the row's own code, on the row's own buffers
//! and with the row's own geometry: only the kernel is another one, put in its
//! place by [`Device::using`]. Nothing here is needed: what is missing is said, and
//! the rest is measured.

use std::thread;

use halo_gpu::{Device, DeviceKind, Image, Kernels};

use super::cub::{Compiled, Cub, Reduction};
use super::harness::{Check, Prepared};
use super::report::{RivalReport, Toolkit};
use crate::baselines::Toolchain;
use crate::error::{Error, chain};

/// Names, as reports have them.
pub(super) const NVCC: &str = "nvcc";
pub(super) const CUB: &str = "CUB";

/// Does the work of a row by other means, on what the row has on the device.
pub(super) trait Contender {
    /// The name of its rival.
    fn name(&self) -> &str;
    /// As [`Prepared::check`].
    fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error>;
    /// As [`Prepared::launch`].
    fn launch(&mut self, row: &mut dyn Prepared) -> Result<(), halo_gpu::Error>;
}

/// A kernel in the CUDA C++ of a row's family that does the row's work in another
/// way than the row's twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// What it is, for the report.
    pub(super) rival: &'static str,
    /// The kernel in whose place it is launched.
    pub(super) kernel: &'static str,
    /// Its own name.
    pub(super) entry: &'static str,
}

/// What was found to compare with.
#[derive(Default)]
pub(super) struct Rivals {
    /// The kernels of each family's CUDA C++.
    twins: Vec<(&'static str, Kernels)>,
    cub: Option<Cub>,
    pub(super) reports: Vec<RivalReport>,
    pub(super) toolkit: Option<Toolkit>,
}

impl Rivals {
    /// Looks for a compiler and compiles what these families are compared with.
    /// Takes as long as the slowest of the compilations, some 20 seconds.
    pub(super) fn find(device: &Device, families: &[&'static str]) -> Self {
        let mut rivals = Self::default();
        let why_not = match target(device) {
            Err(why_not) => why_not,
            Ok(arch) => match Toolchain::find() {
                Ok(toolchain) => {
                    rivals.toolkit = Some(Toolkit {
                        nvcc: Some(toolchain.version().to_owned()),
                        why_not: None,
                    });
                    rivals.compile(device, families, &toolchain, &arch);
                    return rivals;
                }
                Err(error) => chain(&error),
            },
        };
        rivals.toolkit = Some(Toolkit {
            nvcc: None,
            why_not: Some(why_not.clone()),
        });
        let mut wanted = vec![(NVCC, TWINS)];
        if families.contains(&REDUCED_BY_CUB) {
            wanted.push((CUB, DEVICE_REDUCE));
        }
        let reports = wanted.into_iter().map(|(name, what)| RivalReport {
            name: name.to_owned(),
            what: what.to_owned(),
            why_not: Some(why_not.clone()),
        });
        rivals.reports = reports.collect();
        rivals
    }

    /// Compiles everything at once, and loads it.
    fn compile(
        &mut self,
        device: &Device,
        families: &[&'static str],
        toolchain: &Toolchain,
        arch: &str,
    ) {
        let wants_cub = families.contains(&REDUCED_BY_CUB);
        let (cubins, cub) = thread::scope(|scope| {
            let cubins: Vec<_> = families
                .iter()
                .map(|&family| (family, scope.spawn(move || toolchain.cubin(family, arch))))
                .collect();
            let cub = wants_cub.then(|| scope.spawn(|| Compiled::new(toolchain, arch)));
            let cubins: Vec<_> = cubins
                .into_iter()
                .map(|(family, compiling)| (family, joined(compiling)))
                .collect();
            (cubins, cub.map(joined))
        });

        let mut failures = Vec::new();
        for (family, cubin) in cubins {
            let loaded = cubin.map_err(|error| chain(&error)).and_then(|cubin| {
                // SAFETY: the source is this repository's baselines/<family>.cu,
                // whose kernels have the parameters and the effects of those they
                // are named after; every row checks that before it times one.
                unsafe { device.load_kernels(Image::Cubin(&cubin)) }.map_err(|error| chain(&error))
            });
            match loaded {
                Ok(kernels) => self.twins.push((family, kernels)),
                Err(why) => failures.push(format!("{family}: {why}")),
            }
        }
        let compiler = format!("nvcc {} for {arch}", toolchain.version());
        self.reports.push(RivalReport {
            name: NVCC.to_owned(),
            what: format!("{TWINS}, {compiler}"),
            why_not: (!failures.is_empty()).then(|| failures.join("; ")),
        });
        if let Some(cub) = cub {
            let loaded = cub
                .map_err(|error| chain(&error))
                .and_then(|compiled| Cub::load(&compiled).map_err(|error| chain(&error)));
            let (cub, why_not) = match loaded {
                Ok(cub) => (Some(cub), None),
                Err(why_not) => (None, Some(why_not)),
            };
            self.cub = cub;
            self.reports.push(RivalReport {
                name: CUB.to_owned(),
                what: format!("{DEVICE_REDUCE}, {compiler}"),
                why_not,
            });
        }
    }

    /// Those that can do the work of this row, which has `entries` besides its
    /// twin.
    pub(super) fn of_row(
        &mut self,
        device: &Device,
        family: &str,
        entries: &[Entry],
        row: &dyn Prepared,
    ) -> Result<Vec<Box<dyn Contender>>, Error> {
        let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
        let twins = self.twins.iter().find(|(name, _)| *name == family);
        if let Some((_, kernels)) = twins.cloned() {
            contenders.push(Box::new(Twin {
                name: NVCC,
                kernels: kernels.clone(),
                device: device.clone(),
            }));
            for entry in entries {
                self.introduce(entry.rival);
                contenders.push(Box::new(Twin {
                    name: entry.rival,
                    // SAFETY: as that of the twins; see the entry's comment.
                    kernels: unsafe { kernels.clone().with_entry(entry.kernel, entry.entry) },
                    device: device.clone(),
                }));
            }
        }
        if let Some(cub) = &self.cub
            && let Some(work) = row.cub()
        {
            contenders.push(Box::new(Reduction::new(cub, device, work)?));
        }
        Ok(contenders)
    }

    /// Puts a rival that is another entry point into the report, once.
    fn introduce(&mut self, name: &str) {
        if self.reports.iter().any(|report| report.name == name) {
            return;
        }
        let compiler = self
            .toolkit
            .as_ref()
            .and_then(|toolkit| toolkit.nvcc.as_deref());
        self.reports.push(RivalReport {
            name: name.to_owned(),
            what: format!(
                "CUDA C++, nvcc {}",
                compiler.unwrap_or("of unknown version")
            ),
            why_not: None,
        });
    }
}

/// The family that CUB does the work of.
const REDUCED_BY_CUB: &str = "reduction";

const TWINS: &str = "the same kernels in CUDA C++ (baselines/), launched in the same way";
const DEVICE_REDUCE: &str =
    "DeviceReduce of the CUDA toolkit: the whole reduction, down to one value";

/// The architecture to compile for, or why there is nothing to compile.
fn target(device: &Device) -> Result<String, String> {
    match device.properties().compute_capability {
        Some(capability) if device.kind() == DeviceKind::Cuda => {
            Ok(format!("sm_{}{}", capability.major, capability.minor))
        }
        _ => Err("CUDA C++ runs on CUDA devices alone".to_owned()),
    }
}

/// What a thread has returned; its panic goes on here.
fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A row's kernel in CUDA C++, launched by the row itself.
struct Twin {
    name: &'static str,
    kernels: Kernels,
    device: Device,
}

impl Contender for Twin {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error> {
        self.device.using(&self.kernels, || row.check())?
    }

    fn launch(&mut self, row: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
        self.device.using(&self.kernels, || row.launch())?
    }
}

/// Why a contender that failed to be checked does not take part, where that is no
/// failure of the run: it may just not have the kernel.
pub(super) fn excuse(error: &Error) -> Option<String> {
    match error {
        Error::Halo(halo_gpu::Error::KernelNotFound { kernel }) => {
            Some(format!("it has no {kernel}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_gpu_there_is_nobody_and_the_report_says_so() {
        for device in [Device::cpu(), Device::emulator()] {
            let rivals = Rivals::find(&device, &["reduction", "heat2d"]);
            assert!(rivals.twins.is_empty() && rivals.cub.is_none());
            let names: Vec<&str> = rivals.reports.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, [NVCC, CUB]);
            assert_eq!(Rivals::find(&device, &["heat2d"]).reports.len(), 1);
            for report in &rivals.reports {
                let why_not = report.why_not.as_deref().unwrap();
                assert!(why_not.contains("CUDA devices alone"), "{why_not}");
            }
            let toolkit = rivals.toolkit.unwrap();
            assert!(toolkit.nvcc.is_none() && toolkit.why_not.is_some());
        }
    }

    #[test]
    fn a_missing_kernel_excuses_and_nothing_else_does() {
        let missing = Error::Halo(halo_gpu::Error::KernelNotFound {
            kernel: "heat2d_global",
        });
        assert_eq!(excuse(&missing).as_deref(), Some("it has no heat2d_global"));
        assert_eq!(excuse(&Error::Halo(halo_gpu::Error::NoDevice)), None);
    }
}
