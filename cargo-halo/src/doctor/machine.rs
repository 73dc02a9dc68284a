//! Finds the programs, libraries and devices of this machine that the doctor reports on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::system::System;
use crate::process;
use crate::toolchain::{Toolchain, find_in, path_folders};

/// A version of two numbers: of a compute capability, of CUDA, of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl Version {
    /// The first two numbers of a text like `13.0` or `13.0.88`.
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().ok());
        Some(Self(numbers.next()??, numbers.next()??))
    }
}

/// The facts on which the doctor decides.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(super) system: System,
    /// Whether it is a Linux on Windows, which takes the driver from there.
    pub wsl: bool,
    /// Whether `.ci/device-toolchain` exists, and pip, which it needs.
    pub script: bool,
    pub pip: bool,
    pub rustup: bool,
    /// First line of `rustc --version`, and the release in rust-toolchain.toml.
    pub rustc: String,
    pub pinned: Option<String>,
    pub core_source: Option<PathBuf>,
    pub llvm_major: u32,
    /// LLVM's tools by name.
    pub llvm_tools: Vec<(&'static str, Option<PathBuf>)>,
    pub ptxas: Option<Tool>,
    pub nvdisasm: Option<Tool>,
    pub nvcc: Option<Tool>,
    /// rustc's linker, and a C++ compiler.
    pub cc: Option<PathBuf>,
    pub cxx: Option<PathBuf>,
    /// MPI's compiler and launcher, and libclang, which its bindings need.
    pub mpicc: Option<PathBuf>,
    pub mpirun: Option<PathBuf>,
    pub libclang: Option<PathBuf>,
    pub nccl: Option<PathBuf>,
    /// The driver, or the reason why there is none.
    pub driver: Result<Driver, String>,
    /// Whether an NVIDIA GPU is in the machine; `None` where the system does not tell.
    pub gpu_on_bus: Option<bool>,
    /// Whether `CUDA_VISIBLE_DEVICES` is set.
    pub devices_chosen: bool,
    /// The committed PTX, lowest target first.
    pub committed: Vec<Committed>,
}

/// A program of the CUDA toolkit.
#[derive(Clone, Debug)]
pub struct Tool {
    pub path: PathBuf,
    /// Its CUDA version, if it prints one.
    pub release: Option<Version>,
}

/// A driver that could be loaded.
#[derive(Clone, Debug)]
pub struct Driver {
    /// The CUDA version it supports.
    pub cuda: Version,
    /// Its own version, if the system tells it.
    pub release: Option<String>,
    pub gpus: Result<Vec<Gpu>, NoGpus>,
}

/// The reason why a driver shows no GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoGpus {
    /// The driver says that there is none.
    NoDevice,
    /// The version of its library differs from the loaded kernel module's.
    Mismatch,
    /// Another error, in the driver's words.
    Other(String),
}

#[derive(Clone, Debug)]
pub struct Gpu {
    pub name: String,
    pub capability: Version,
}

/// A committed PTX file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its path from the repository's root.
    pub file: String,
    /// The lowest compute capability that can run it.
    pub target: Version,
    /// Its PTX version.
    pub isa: Version,
}

impl Machine {
    /// Looks at this machine.
    pub fn look(root: &Path, toolchain: &Toolchain, committed: Vec<Committed>) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let on_path = |names: &[&str]| find_in(&path_folders(), names);
        let tool = |name: &str| {
            let path = toolchain.find(&[name])?;
            let version = process::output(Command::new(&path).arg("--version")).ok();
            Some(Tool {
                path,
                release: version.as_deref().and_then(release),
            })
        };
        Self {
            system: System::of(&read("/etc/os-release")),
            wsl: read("/proc/version")
                .to_ascii_lowercase()
                .contains("microsoft"),
            script: cfg!(target_os = "linux") && root.join(".ci/device-toolchain").exists(),
            pip: process::output(Command::new("python3").args(["-m", "pip", "--version"])).is_ok(),
            rustup: on_path(&["rustup"]).is_some(),
            rustc: toolchain.rustc.clone(),
            pinned: pinned(root),
            core_source: toolchain.core_source(),
            llvm_major: toolchain.llvm_major,
            llvm_tools: ["llvm-link", "opt", "llc"]
                .map(|name| (name, toolchain.find_llvm(name)))
                .to_vec(),
            ptxas: tool("ptxas"),
            nvdisasm: tool("nvdisasm"),
            nvcc: tool("nvcc"),
            cc: on_path(&["cc", "gcc", "clang"]),
            cxx: on_path(&["g++", "clang++"]),
            mpicc: match std::env::var_os("MPICC") {
                Some(said) => find_in(&path_folders(), &[&said.to_string_lossy()]),
                None => on_path(&["mpicc"]),
            },
            mpirun: on_path(&["mpirun", "mpiexec", "srun"]),
            libclang: library("LIBCLANG_PATH", is_libclang),
            nccl: library("HALO_NCCL", |name| name == "libnccl.so.2"),
            driver: driver(),
            gpu_on_bus: gpu_on_bus(Path::new("/sys/bus/pci/devices")),
            devices_chosen: std::env::var_os("CUDA_VISIBLE_DEVICES").is_some(),
            committed,
        }
    }
}

/// A shared library with such a name: first in the file or folder that the environment variable
/// names, then in the folders of the dynamic linker.
fn library(variable: &str, is_its_name: fn(&str) -> bool) -> Option<PathBuf> {
    let said = std::env::var_os(variable).map(PathBuf::from);
    let more = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = said.clone().into_iter().collect();
    folders.extend(std::env::split_paths(&more));
    folders.extend(["/usr/local/lib", "/usr/lib64", "/usr/lib"].map(PathBuf::from));
    folders.push(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH).into());
    let llvm = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten();
    folders.extend(llvm.map(|entry| entry.path().join("lib")));
    said.filter(|path| path.is_file()).or_else(|| {
        folders
            .iter()
            .find_map(|folder| library_in(folder, is_its_name))
    })
}

fn library_in(folder: &Path, is_its_name: fn(&str) -> bool) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    let mut files = entries.flatten();
    files
        .find(|entry| entry.file_name().to_str().is_some_and(is_its_name))
        .map(|entry| entry.path())
}

/// `libclang.so`, `libclang.so.1`, `libclang-14.so.1`, and not `libclang-cpp.so`.
fn is_libclang(file: &str) -> bool {
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains(".so");
    file.starts_with("libclang.so") || file.strip_prefix("libclang-").is_some_and(digit)
}

/// The release in rust-toolchain.toml.
fn pinned(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("rust-toolchain.toml")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("channel"))?;
    Some(
        line.trim_start_matches([' ', '='])
            .trim_matches('"')
            .to_owned(),
    )
}

/// The CUDA version in the output of the toolkit's programs, `… release 13.0, V13.0.88`.
fn release(text: &str) -> Option<Version> {
    let (_, rest) = text.split_once("release ")?;
    Version::parse(rest)
}

impl Committed {
    /// The file of this name below `root`; `None` where it is not readable PTX.
    pub fn read(root: &Path, file: &str) -> Option<Self> {
        let text = std::fs::read_to_string(root.join(file)).ok()?;
        let (target, isa) = header(&text)?;
        Some(Self {
            file: file.to_owned(),
            target,
            isa,
        })
    }
}

/// The target and the version in a PTX module.
fn header(ptx: &str) -> Option<(Version, Version)> {
    let directive = |name: &str| ptx.lines().find_map(|line| line.strip_prefix(name));
    let digits: String = directive(".target sm_")?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    let target: u32 = digits.parse().ok()?;
    let isa = Version::parse(directive(".version ")?)?;
    Some((Version(target / 10, target % 10), isa))
}

/// Whether a PCI device listed in `folder` is a display controller of NVIDIA.
fn gpu_on_bus(folder: &Path) -> Option<bool> {
    let devices = std::fs::read_dir(folder).ok()?;
    let says = |device: &Path, file: &str, start: &str| {
        std::fs::read_to_string(device.join(file)).is_ok_and(|text| text.starts_with(start))
    };
    Some(devices.filter_map(Result::ok).any(|device| {
        let device = device.path();
        says(&device, "vendor", "0x10de") && says(&device, "class", "0x03")
    }))
}

/// Loads the driver and asks it for its GPUs, as the library does.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
fn driver() -> Result<Driver, String> {
    use cuda_loader::sys::CUresult;
    use cust::CudaApiVersion;
    use cust::device::{Device, DeviceAttribute};
    use cust::error::{CudaError, CudaResult};

    cuda_loader::load().map_err(|error| error.reason.clone())?;
    let said = |error: CudaError| CUresult(error.code()).to_string();
    let version = CudaApiVersion::get().map_err(said)?;
    let number = |number: i32| u32::try_from(number).unwrap_or(0);
    let gpu = |device: Device| -> CudaResult<Gpu> {
        let get = |attribute| device.get_attribute(attribute).map(number);
        Ok(Gpu {
            name: device.name()?,
            capability: Version(
                get(DeviceAttribute::ComputeCapabilityMajor)?,
                get(DeviceAttribute::ComputeCapabilityMinor)?,
            ),
        })
    };
    let gpus = || -> CudaResult<Vec<Gpu>> {
        cust::init(cust::CudaFlags::empty())?;
        (0..Device::num_devices()?)
            .map(|ordinal| Device::get_device(ordinal).and_then(gpu))
            .collect()
    };
    Ok(Driver {
        cuda: Version(number(version.major()), number(version.minor())),
        release: std::fs::read_to_string("/proc/driver/nvidia/version")
            .ok()
            .as_deref()
            .and_then(driver_release),
        gpus: gpus().map_err(|error| match error {
            CudaError::NoDevice => NoGpus::NoDevice,
            error if error.code() == 803 => NoGpus::Mismatch,
            error => NoGpus::Other(said(error)),
        }),
    })
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
fn driver() -> Result<Driver, String> {
    match cuda_loader::load() {
        Ok(()) => Err("the driver cannot be asked on this platform".to_owned()),
        Err(error) => Err(error.reason.clone()),
    }
}

/// The driver's version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05 …`.
#[cfg(any(test, target_os = "linux"))]
fn driver_release(text: &str) -> Option<String> {
    text.lines()
        .next()?
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| std::fs::write(folder.path().join(name), "").unwrap();
        for name in ["libclang-cpp.so.14", "libclang-common.so", "clang.so"] {
            file(name);
            assert_eq!(library_in(folder.path(), is_libclang), None, "{name}");
        }
        file("libclang-14.so.1");
        let found = library_in(folder.path(), is_libclang);
        assert_eq!(found, Some(folder.path().join("libclang-14.so.1")));
        assert!(is_libclang("libclang.so") && is_libclang("libclang.so.18"));
        assert_eq!(library_in(&folder.path().join("none"), is_libclang), None);
    }

    #[test]
    fn the_pinned_release_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pinned(folder.path()), None);
        std::fs::write(
            folder.path().join("rust-toolchain.toml"),
            "[toolchain]\nchannel = \"1.95.0\"\nprofile = \"minimal\"\n",
        )
        .unwrap();
        assert_eq!(pinned(folder.path()).as_deref(), Some("1.95.0"));
    }

    #[test]
    fn versions_are_found_in_what_programs_print() {
        let ptxas = "ptxas: NVIDIA (R) Ptx optimizing assembler\n\
                     Cuda compilation tools, release 13.0, V13.0.88\n";
        assert_eq!(release(ptxas), Some(Version(13, 0)));
        assert_eq!(release("no such word"), None);
        assert_eq!(
            driver_release(
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n\
                 GCC version:  gcc version 12.2.0\n"
            )
            .as_deref(),
            Some("580.95.05")
        );
        assert_eq!(driver_release("GCC version"), None);
        assert!(Version(10, 0) > Version(9, 9) && Version(7, 5) > Version(7, 0));
    }

    #[test]
    fn ptx_says_what_it_needs() {
        let ptx = "// hash\n//\n\n.version 7.8\n.target sm_90\n.address_size 64\n";
        assert_eq!(header(ptx), Some((Version(9, 0), Version(7, 8))));
        assert_eq!(
            header(".version 8.6\n.target sm_120a\n"),
            Some((Version(12, 0), Version(8, 6)))
        );
        assert_eq!(header("no PTX"), None);
    }

    #[test]
    fn gpus_on_the_bus_are_nvidias_display_controllers() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(gpu_on_bus(&folder.path().join("none")), None);
        let device = |name: &str, vendor: &str, class: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(path.join("class"), format!("{class}\n")).unwrap();
        };
        device("other-gpu", "0x8086", "0x030000");
        device("sound-of-a-gpu", "0x10de", "0x040300");
        assert_eq!(gpu_on_bus(folder.path()), Some(false));
        device("gpu", "0x10de", "0x030200");
        assert_eq!(gpu_on_bus(folder.path()), Some(true));
    }
}
