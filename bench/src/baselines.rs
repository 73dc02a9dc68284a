//! The baselines: what each row is compared with. On a GPU these are the same kernels in CUDA C++,
//! compiled by this machine's nvcc, and CUB; on the CPU C++ with OpenMP, see [`cpp`](super::cpp).
//!
//! A kernel in CUDA C++ is launched by the row's own code, on the row's own buffers and with the
//! row's own geometry: only [`ReplaceableKernels::using`] exchanges the kernel. Every baseline is
//! optional: the run names a missing one and measures the others.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;

use halo_gpu::{Device, DeviceKind, Image, Kernels, ReplaceableKernels};
use halo_report::printable;
use halo_report::record::{self, Toolkit};

use super::baseline::{Baseline, CPP, CPP_IN_F64, CUB, NVCC};
use super::check::Check;
use super::cpp::{Cpp, Limit};
use super::cub::{Compiled, Cub, Reduction};
use super::error::{Error, chain};
use super::row::{Prepared, StandIn, Work};
use halo_baselines::cpp::Compiler;
use halo_baselines::cuda::Toolchain;

/// The device of all rows of a run. Each baseline exchanges the device's kernels in its turn.
pub(super) type SharedKernels = Rc<RefCell<ReplaceableKernels>>;

/// The baselines that were found.
#[derive(Default)]
pub(super) struct Baselines {
    /// The kernels of each family's CUDA C++.
    kernels: Vec<(&'static str, Kernels)>,
    /// The device on which they replace the library's kernels; `None` where there are no such
    /// kernels.
    replaceable: Option<SharedKernels>,
    cub: Option<Cub>,
    cpp: Option<Cpp>,
    pub(super) records: Vec<record::Baseline>,
    pub(super) toolkit: Option<Toolkit>,
}

impl Baselines {
    /// Looks for a compiler and compiles the baselines of these families: the kernels with the
    /// names of the family's rows, and these stand-ins. Takes as long as the slowest compilation,
    /// about 20 seconds.
    pub(super) fn find(
        replaceable: &SharedKernels,
        families: &[(&'static str, Vec<StandIn>)],
    ) -> Self {
        let mut baselines = Self::default();
        let device = &replaceable.borrow().device().clone();
        if device.kind() == DeviceKind::Cpu {
            baselines.toolkit = Some(Toolkit {
                nvcc: None,
                why_not: Some(CUDA_ALONE.to_owned()),
            });
            baselines.find_cpp(Compiler::find().map_err(|error| chain(&error)));
            if baselines.cpp.is_some() && families.iter().any(|(name, _)| *name == REDUCTION) {
                baselines.add(CPP_IN_F64, IN_F64.to_owned(), None);
            }
            return baselines;
        }
        let why_not = match target(device) {
            Err(why_not) => why_not,
            Ok(arch) => match Toolchain::find() {
                Ok(toolchain) => {
                    baselines.toolkit = Some(Toolkit {
                        nvcc: Some(toolchain.version().to_owned()),
                        why_not: None,
                    });
                    baselines.compile(device, families, &toolchain, &arch);
                    baselines.replaceable = Some(Rc::clone(replaceable));
                    return baselines;
                }
                Err(error) => chain(&error),
            },
        };
        let mut absent =
            |name, what: &str| baselines.add(name, what.to_owned(), Some(why_not.clone()));
        absent(NVCC, SAME_KERNELS);
        if families.iter().any(|(name, _)| *name == REDUCTION) {
            absent(CUB, DEVICE_REDUCE);
        }
        baselines.toolkit = Some(Toolkit {
            nvcc: None,
            why_not: Some(why_not),
        });
        baselines
    }

    /// Compiles the C++ for the rows of the CPU, or records why it cannot.
    fn find_cpp(&mut self, compiler: Result<Compiler, String>) {
        let compiler = match compiler {
            Ok(compiler) => compiler,
            Err(why_not) => return self.add(CPP, OPENMP.to_owned(), Some(why_not)),
        };
        let (cpp, failures) = Cpp::build(&compiler, rayon::current_num_threads());
        let by = format!("{OPENMP}, by {}", printable(compiler.version()));
        match &cpp {
            Some(cpp) => {
                let flags: Vec<String> = cpp.flags().map(|it| it.flags.join(" ")).collect();
                let mut what = format!(
                    "{by}; the fastest of several ways and of these flags counts: {}",
                    flags.join("; ")
                );
                for failure in failures {
                    what.push_str("; without others: ");
                    what.push_str(&printable(&failure));
                }
                self.add(CPP, what, None);
            }
            None => self.add(CPP, by, Some(printable(&failures.join("; ")))),
        }
        self.cpp = cpp;
    }

    /// The machine's limits for this work, to be timed in turns with it.
    pub(super) fn limits(&self, work: &Work) -> Result<Vec<Limit>, Error> {
        self.cpp
            .as_ref()
            .map_or(Ok(Vec::new()), |cpp| cpp.limits(work))
    }

    /// Puts a baseline into the record, once.
    fn add(&mut self, name: &str, what: String, why_not: Option<String>) {
        if self.records.iter().all(|known| known.name != name) {
            self.records.push(record::Baseline {
                name: name.to_owned(),
                what,
                why_not,
            });
        }
    }

    /// Compiles everything at once, and loads it.
    fn compile(
        &mut self,
        device: &Device,
        families: &[(&'static str, Vec<StandIn>)],
        toolchain: &Toolchain,
        arch: &str,
    ) {
        let wants_cub = families.iter().any(|(name, _)| *name == REDUCTION);
        let (cubins, cub) = thread::scope(|scope| {
            let cubins: Vec<_> = families
                .iter()
                .map(|&(family, _)| (family, scope.spawn(move || toolchain.cubin(family, arch))))
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
                // SAFETY: the source is this repository's baselines/<family>.cu. Its kernels have
                // the parameters and the effects of the kernels that they are named after; every
                // row checks that before it is timed.
                unsafe { device.load_kernels(Image::Cubin(&cubin)) }.map_err(|error| chain(&error))
            });
            match loaded {
                Ok(kernels) => self.kernels.push((family, kernels)),
                Err(why) => failures.push(format!("{family}: {why}")),
            }
        }
        let compiler = format!("nvcc {} for {arch}", toolchain.version());
        let why_not = (!failures.is_empty()).then(|| failures.join("; "));
        self.add(NVCC, format!("{SAME_KERNELS}, {compiler}"), why_not);
        if let Some(cub) = cub {
            let loaded = cub
                .map_err(|error| chain(&error))
                .and_then(|compiled| Cub::load(&compiled).map_err(|error| chain(&error)));
            let (cub, why_not) = match loaded {
                Ok(cub) => (Some(cub), None),
                Err(why_not) => (None, Some(why_not)),
            };
            self.cub = cub;
            self.add(CUB, format!("{DEVICE_REDUCE}, {compiler}"), why_not);
        }
        for (family, stand_ins) in families {
            if self.kernels.iter().any(|(name, _)| name == family) {
                for stand_in in stand_ins {
                    let what = format!("CUDA C++, nvcc {}", toolchain.version());
                    self.add(stand_in.baseline, what, None);
                }
            }
        }
    }

    /// The baselines that can do the work of this row. `stand_ins` are kernels beside that of the
    /// row's own name.
    pub(super) fn of_row(
        &self,
        device: &Device,
        family: &str,
        stand_ins: &[StandIn],
        row: &dyn Prepared,
    ) -> Result<Vec<Box<dyn Baseline>>, Error> {
        let mut baselines: Vec<Box<dyn Baseline>> = Vec::new();
        let kernels = self.kernels.iter().find(|(name, _)| *name == family);
        if let (Some((_, kernels)), Some(replaceable)) = (kernels, &self.replaceable) {
            let mut add = |name, kernels| {
                baselines.push(Box::new(CudaCpp {
                    name,
                    kernels,
                    replaceable: Rc::clone(replaceable),
                }));
            };
            add(NVCC, kernels.clone());
            for stand_in in stand_ins {
                // SAFETY: as for the kernels themselves; see the comment at the entry.
                let kernels =
                    unsafe { kernels.clone().with_entry(stand_in.kernel, stand_in.entry) };
                add(stand_in.baseline, kernels);
            }
        }
        if let Some(cub) = &self.cub
            && let Some(work) = row.cub()
        {
            baselines.push(Box::new(Reduction::new(cub, device, work)?));
        }
        if let Some(cpp) = &self.cpp
            && let Some(job) = row.cpp()?
        {
            baselines.push(Box::new(cpp.baseline(CPP, job)?));
            if let Some(job) = row.cpp_in_f64()? {
                baselines.push(Box::new(cpp.baseline(CPP_IN_F64, job)?));
            }
        }
        Ok(baselines)
    }
}

/// The family that CUB can compute too.
const REDUCTION: &str = "reduction";

const SAME_KERNELS: &str = "the same kernels in CUDA C++ (baselines/), launched in the same way";
/// Why other devices have no CUDA C++.
const CUDA_ALONE: &str = "CUDA C++ runs only on CUDA devices";
const IN_F64: &str = "C++ that adds products of f32 in f64, as Halo does";
const OPENMP: &str = "the same work in C++ with OpenMP (baselines/cpu/)";
const DEVICE_REDUCE: &str =
    "DeviceReduce of the CUDA toolkit: the whole reduction, down to one value";

/// The architecture to compile for, or the reason why there is none.
fn target(device: &Device) -> Result<String, String> {
    match device.properties().compute_capability {
        Some(capability) if device.kind() == DeviceKind::Cuda => {
            Ok(format!("sm_{}{}", capability.major, capability.minor))
        }
        _ => Err(CUDA_ALONE.to_owned()),
    }
}

/// The result of a thread; its panic continues here.
fn joined<T>(handle: thread::ScopedJoinHandle<'_, T>) -> T {
    handle
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A row's kernel in CUDA C++, launched by the row's code.
struct CudaCpp {
    name: &'static str,
    kernels: Kernels,
    replaceable: SharedKernels,
}

impl Baseline for CudaCpp {
    fn name(&self) -> &str {
        self.name
    }

    fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error> {
        self.replaceable
            .borrow_mut()
            .using(&self.kernels, || row.check())?
    }

    fn launch(&mut self, row: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
        self.replaceable
            .borrow_mut()
            .using(&self.kernels, || row.launch())?
    }
}

/// Why a baseline whose check failed takes no part, where the failure is none of the run: for
/// example, it has no such kernel.
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
    fn on_the_emulator_there_is_nobody_and_the_record_says_so() {
        let replaceable = Rc::new(RefCell::new(
            Device::emulator().with_replaceable_kernels().unwrap(),
        ));
        let families = ["reduction", "heat2d"].map(|name| (name, Vec::new()));
        let found = Baselines::find(&replaceable, &families);
        assert!(found.kernels.is_empty() && found.cub.is_none());
        let names: Vec<&str> = found.records.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, [NVCC, CUB]);
        assert_eq!(
            Baselines::find(&replaceable, &families[1..]).records.len(),
            1
        );
        for baseline in &found.records {
            let why_not = baseline.why_not.as_deref().unwrap();
            assert!(why_not.contains("only on CUDA devices"), "{why_not}");
        }
        let toolkit = found.toolkit.unwrap();
        assert!(toolkit.nvcc.is_none() && toolkit.why_not.is_some());
    }

    #[test]
    fn without_a_compiler_there_is_no_cpp_and_the_record_says_so() {
        let mut found = Baselines::default();
        found.find_cpp(Err("found no C++ compiler".to_owned()));
        let [cpp] = &found.records[..] else {
            panic!("{:?}", found.records)
        };
        assert_eq!(cpp.name, CPP);
        assert_eq!(cpp.why_not.as_deref(), Some("found no C++ compiler"));
        assert!(found.cpp.is_none());
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
