//! Reports what works on this machine (the CPU, the emulator, building kernels, GPUs, and so on),
//! with a command that installs each missing part.
//!
//! `machine` looks for programs, libraries and devices. This module decides what their state
//! means. It uses nothing but what `machine` found, so tests can describe any machine.

mod machine;
mod mend;
mod system;

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::outcome::Outcome;
use crate::output;
use crate::toolchain::Toolchain;
use machine::{Driver, Gpu, Machine, NoGpus, Tool, Version};
use mend::Mend;

pub use machine::Committed;

/// What differs between the projects that have a doctor.
#[derive(Clone, Copy, Debug)]
pub struct Project {
    /// The command that works without a GPU.
    pub without_gpu: &'static str,
    /// Whether the project compares kernels with CUDA C++ and runs ranks.
    pub compares_and_ranks: bool,
}

/// Something that works on a machine or does not: a row of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Cpu,
    Build,
    MachineCode,
    Cpp,
    Gpu,
    Processes,
    Nccl,
}

impl Task {
    const ALL: [Self; 7] = [
        Self::Cpu,
        Self::Build,
        Self::MachineCode,
        Self::Cpp,
        Self::Gpu,
        Self::Processes,
        Self::Nccl,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU, emulator",
            Self::Build => "building kernels",
            Self::MachineCode => "their machine code",
            Self::Cpp => "CUDA C++ to compare",
            Self::Gpu => "GPU",
            Self::Processes => "ranks as processes",
            Self::Nccl => "ranks over NCCL",
        }
    }
}

/// One requirement of a task.
struct Need {
    task: Task,
    what: String,
    state: State,
    /// The command that installs it.
    mend: Mend,
}

impl Need {
    fn new(task: Task, what: impl Into<String>, state: State, mend: Mend) -> Self {
        let what = what.into();
        Self {
            task,
            what,
            state,
            mend,
        }
    }

    /// Whether building device code requires it.
    fn is_required(&self) -> bool {
        matches!(self.task, Task::Cpu | Task::Build)
    }

    fn is_met(&self) -> bool {
        matches!(self.state, State::Found(_))
    }
}

/// Whether a requirement is met.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its name, with a version where it has one.
    Found(String),
    /// As `Found`, and why it does not suffice.
    Unfit { found: String, why: String },
    /// Why it is missing, where the reason is known.
    Missing(Option<String>),
}

/// Prints what works, and the commands for what does not. Returns `Findings` if device code
/// cannot be built. A missing GPU does not count as a finding.
///
/// `committed` is the PTX that a project keeps, relative to `root`.
pub fn run(project: &Project, root: &Path, committed: Vec<Committed>) -> Result<Outcome, Error> {
    let toolchain = Toolchain::of(root)?;
    let needs = needs(project, &Machine::look(root, &toolchain, committed));
    output::line(report(&needs).trim_end());
    Ok(outcome(&needs))
}

fn outcome(needs: &[Need]) -> Outcome {
    if needs
        .iter()
        .all(|need| !need.is_required() || need.is_met())
    {
        Outcome::Clean
    } else {
        Outcome::Findings
    }
}

/// Installs rustup, which then brings what rust-toolchain.toml lists.
const INSTALL_RUSTUP: &str =
    "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y";

const SCRIPT: &str = ".ci/device-toolchain";

/// NVIDIA's page on installing the toolkit.
const TOOLKIT_PAGE: &str = "https://developer.nvidia.com/cuda-downloads";

/// Installs NCCL for this user, on any Linux.
const INSTALL_NCCL: &str = "python3 -m pip install --target ~/.local/nccl nvidia-nccl-cu13 && \
     export HALO_NCCL=~/.local/nccl/nvidia/nccl/lib/libnccl.so.2";

fn needs(project: &Project, machine: &Machine) -> Vec<Need> {
    let system = machine.system;
    let components = machine.components();
    let mut needs = vec![
        Need::new(Task::Cpu, "rustc", rustc_state(machine), machine.compiler()),
        Need::new(Task::Cpu, "C linker", named(&machine.cc), system.linker()),
        Need::new(
            Task::Build,
            "rust-src",
            found("rust-src", machine.core_source.is_some()),
            components.clone(),
        ),
    ];
    let major = machine.llvm_major;
    let mut tools = machine.llvm_tools.iter();
    let (what, state) = match tools.find(|(_, path)| path.is_none()) {
        Some((tool, _)) => (format!("{tool} of LLVM {major}"), State::Missing(None)),
        None => ("LLVM".to_owned(), State::Found(format!("LLVM {major}"))),
    };
    needs.push(Need::new(Task::Build, what, state, components));

    let toolkit = |task, what: &str, tool: &Option<Tool>| {
        let state = toolkit_program(what, tool.as_ref(), &machine.committed);
        Need::new(task, what, state, machine.toolkit())
    };
    needs.extend([
        toolkit(Task::MachineCode, "ptxas", &machine.ptxas),
        toolkit(Task::MachineCode, "nvdisasm", &machine.nvdisasm),
    ]);
    if project.compares_and_ranks {
        let cxx = named(&machine.cxx);
        needs.extend([
            toolkit(Task::Cpp, "nvcc", &machine.nvcc),
            Need::new(Task::Cpp, "C++ compiler", cxx, system.cxx()),
        ]);
    }
    let driver = driver_state(machine);
    let has_driver = matches!(driver, State::Found(_));
    let mend = driver_mend(project, machine);
    needs.push(Need::new(Task::Gpu, "CUDA driver", driver, mend));
    let gpus = gpus(project, machine);
    let has_gpu = has_driver
        && gpus
            .iter()
            .any(|(state, _)| matches!(state, State::Found(_)));
    let gpu = |(state, mend)| Need::new(Task::Gpu, "GPU", state, mend);
    needs.extend(gpus.into_iter().map(gpu));
    if project.compares_and_ranks {
        for (what, state) in [
            ("mpicc", named(&machine.mpicc)),
            ("mpirun", named(&machine.mpirun)),
            ("libclang", found("libclang", machine.libclang.is_some())),
        ] {
            needs.push(Need::new(Task::Processes, what, state, system.mpi()));
        }
        // It connects GPUs: without one it is of no use.
        if has_gpu {
            let state = found("libnccl.so.2", machine.nccl.is_some());
            let mend = machine.with_pip(INSTALL_NCCL.to_owned());
            needs.push(Need::new(Task::Nccl, "libnccl.so.2", state, mend));
        }
    }
    needs
}

fn found(what: &str, is_there: bool) -> State {
    match is_there {
        true => State::Found(what.to_owned()),
        false => State::Missing(None),
    }
}

/// A program, by the name that its file has.
fn named(program: &Option<PathBuf>) -> State {
    match program.as_ref().and_then(|path| path.file_name()) {
        Some(name) => State::Found(name.to_string_lossy().into_owned()),
        None => State::Missing(None),
    }
}

fn rustc_state(machine: &Machine) -> State {
    let words: Vec<&str> = machine.rustc.split(' ').take(2).collect();
    let found = words.join(" ");
    match &machine.pinned {
        Some(pinned) if !found.contains(pinned.as_str()) => State::Unfit {
            found,
            why: format!("rust-toolchain.toml asks for {pinned}"),
        },
        _ => State::Found(found),
    }
}

fn driver_mend(project: &Project, machine: &Machine) -> Mend {
    match machine.gpu_on_bus {
        // A driver without a GPU is of no use.
        Some(false) => project.without_gpu(),
        _ => machine.driver_command(),
    }
}

/// Each GPU, or one need for a missing GPU.
fn gpus(project: &Project, machine: &Machine) -> Vec<(State, Mend)> {
    match machine.driver.as_ref().map(|driver| &driver.gpus) {
        Ok(Ok(gpus)) if !gpus.is_empty() => {
            let state = |gpu| (gpu_state(gpu, &machine.committed), project.without_gpu());
            gpus.iter().map(state).collect()
        }
        Ok(Ok(_)) => vec![no_gpus(project, machine, &NoGpus::NoDevice)],
        Ok(Err(trouble)) => vec![no_gpus(project, machine, trouble)],
        // Without a driver, only the bus can show that there is no GPU.
        Err(_) if machine.gpu_on_bus == Some(false) => {
            vec![(State::Missing(None), project.without_gpu())]
        }
        Err(_) => Vec::new(),
    }
}

impl Machine {
    /// The command that installs the compiler.
    fn compiler(&self) -> Mend {
        Mend::Run(match &self.pinned {
            Some(pinned) if self.rustup => format!("rustup toolchain install {pinned}"),
            _ => INSTALL_RUSTUP.to_owned(),
        })
    }

    /// The command that installs the components that device builds need.
    fn components(&self) -> Mend {
        // The script needs Debian's packages. It works also where rustup cannot reach
        // its server.
        if self.script && self.system == system::System::Debian {
            self.with_pip(SCRIPT.to_owned())
        } else if self.rustup {
            Mend::Run("rustup component add rust-src llvm-tools".to_owned())
        } else {
            Mend::Run(INSTALL_RUSTUP.to_owned())
        }
    }

    /// The command that installs the programs of the CUDA toolkit. The script's releases
    /// are new enough; those of a distribution's package need not be.
    fn toolkit(&self) -> Mend {
        if self.script && (self.pip || self.system.pip().is_some()) {
            self.with_pip(format!("{SCRIPT} --toolkit"))
        } else {
            Mend::See(TOOLKIT_PAGE)
        }
    }

    /// The command that installs NVIDIA's driver.
    fn driver_command(&self) -> Mend {
        match self.wsl {
            true => Mend::See(system::DRIVER_PAGE),
            false => self.system.driver(),
        }
    }

    /// A command that needs pip, after the one that installs pip where it is missing.
    fn with_pip(&self, command: String) -> Mend {
        Mend::Run(match self.system.pip() {
            Some(pip) if !self.pip => format!("{pip} && {command}"),
            _ => command,
        })
    }
}

impl Project {
    fn without_gpu(&self) -> Mend {
        Mend::Instead(self.without_gpu.to_owned())
    }
}

/// The versions of PTX, and the first CUDA that knows each (PTX ISA, "Release Notes").
const PTX_SINCE: [(Version, Version); 24] = [
    (Version(6, 3), Version(10, 0)),
    (Version(6, 4), Version(10, 1)),
    (Version(6, 5), Version(10, 2)),
    (Version(7, 0), Version(11, 0)),
    (Version(7, 1), Version(11, 1)),
    (Version(7, 2), Version(11, 2)),
    (Version(7, 3), Version(11, 3)),
    (Version(7, 4), Version(11, 4)),
    (Version(7, 5), Version(11, 5)),
    (Version(7, 6), Version(11, 6)),
    (Version(7, 7), Version(11, 7)),
    (Version(7, 8), Version(11, 8)),
    (Version(8, 0), Version(12, 0)),
    (Version(8, 1), Version(12, 1)),
    (Version(8, 2), Version(12, 2)),
    (Version(8, 3), Version(12, 3)),
    (Version(8, 4), Version(12, 4)),
    (Version(8, 5), Version(12, 5)),
    (Version(8, 6), Version(12, 7)),
    (Version(8, 7), Version(12, 8)),
    (Version(8, 8), Version(12, 9)),
    (Version(9, 0), Version(13, 0)),
    (Version(9, 1), Version(13, 1)),
    (Version(9, 2), Version(13, 2)),
];

/// The first CUDA that knows this version of PTX; `None` for one that is newer than
/// this program.
fn cuda_for(isa: Version) -> Option<Version> {
    PTX_SINCE
        .into_iter()
        .find(|(known, _)| *known >= isa)
        .map(|(_, cuda)| cuda)
}

/// The reason why this version of CUDA cannot load this PTX.
fn too_old_for(cuda: Version, ptx: &Committed) -> Option<String> {
    let needed = cuda_for(ptx.isa)?;
    (cuda < needed).then(|| {
        format!(
            "{} is PTX {}, which needs CUDA {needed} or later",
            ptx.file, ptx.isa
        )
    })
}

/// The committed PTX for a GPU: the highest target that it can run.
fn taken_by(capability: Version, committed: &[Committed]) -> Option<&Committed> {
    committed
        .iter()
        .rev()
        .find(|file| file.target <= capability)
}

fn toolkit_program(what: &str, tool: Option<&Tool>, committed: &[Committed]) -> State {
    let Some(Tool { path, release }) = tool else {
        return State::Missing(None);
    };
    let Some(release) = release else {
        return State::Found(what.to_owned());
    };
    match committed.iter().find_map(|ptx| too_old_for(*release, ptx)) {
        Some(why) => State::Unfit {
            found: format!("{} of CUDA {release}", path.display()),
            why,
        },
        None => State::Found(format!("{what} {release}")),
    }
}

/// The state of the driver. It must load the PTX of its GPUs or, where it shows none, the lowest
/// committed PTX.
fn driver_state(machine: &Machine) -> State {
    let driver = match &machine.driver {
        Ok(driver) => driver,
        Err(reason) => return State::Missing(Some(reason.clone())),
    };
    let Driver { cuda, release, .. } = driver;
    let found = match release {
        Some(release) => format!("driver {release} for CUDA {cuda}"),
        None => format!("driver for CUDA {cuda}"),
    };
    let mut taken: Vec<&Committed> = match &driver.gpus {
        Ok(gpus) => gpus
            .iter()
            .filter_map(|gpu| taken_by(gpu.capability, &machine.committed))
            .collect(),
        Err(_) => Vec::new(),
    };
    if taken.is_empty() {
        taken.extend(machine.committed.first());
    }
    match taken.into_iter().find_map(|ptx| too_old_for(*cuda, ptx)) {
        Some(why) => State::Unfit { found, why },
        None => State::Found(found),
    }
}

fn gpu_state(gpu: &Gpu, committed: &[Committed]) -> State {
    let found = format!("{} ({})", gpu.name, gpu.capability);
    match (taken_by(gpu.capability, committed), committed.first()) {
        (None, Some(lowest)) => State::Unfit {
            found,
            why: format!("its kernels need compute capability {}", lowest.target),
        },
        _ => State::Found(found),
    }
}

/// The reason why a driver shows no GPU, and the remedy.
fn no_gpus(project: &Project, machine: &Machine, trouble: &NoGpus) -> (State, Mend) {
    let run = |command: &str| Mend::Run(command.to_owned());
    let (why, mend) = match trouble {
        NoGpus::Mismatch => (
            "the driver was updated, and the system still runs the old one",
            run("sudo reboot"),
        ),
        NoGpus::NoDevice if machine.devices_chosen => (
            "CUDA_VISIBLE_DEVICES is set, which can hide it",
            run("unset CUDA_VISIBLE_DEVICES"),
        ),
        NoGpus::NoDevice if machine.gpu_on_bus == Some(false) => {
            ("this machine has no GPU of NVIDIA", project.without_gpu())
        }
        NoGpus::NoDevice => ("the driver reports none", run("sudo modprobe nvidia")),
        NoGpus::Other(reason) => {
            let why = format!("the driver says: {reason}");
            return (State::Missing(Some(why)), run("sudo modprobe nvidia"));
        }
    };
    (State::Missing(Some(why.to_owned())), mend)
}

/// The width of a terminal's line.
const COLUMNS: usize = 80;

/// A row for each task, and the commands for what it lacks.
fn report(needs: &[Need]) -> String {
    let tasks = || {
        Task::ALL
            .into_iter()
            .filter(|task| needs.iter().any(|need| need.task == *task))
    };
    let width = tasks().map(|task| task.name().len()).max().unwrap_or(0);
    let mut text = String::new();
    // A command that installs what several tasks lack is printed once.
    let mut mends: Vec<&Mend> = Vec::new();
    for task in tasks() {
        let of_task = || needs.iter().filter(|need| need.task == task);
        let works = of_task().all(Need::is_met);
        let mut said: Vec<(String, usize)> = Vec::new();
        let printed = mends.len();
        for need in of_task() {
            let words = match &need.state {
                State::Found(found) if works => found.clone(),
                State::Found(_) => continue,
                State::Unfit { found, why } => format!("{found}: {why}"),
                State::Missing(None) => format!("no {}", need.what),
                State::Missing(Some(why)) => format!("no {}: {why}", need.what),
            };
            match said.iter_mut().find(|(same, _)| *same == words) {
                Some((_, times)) => *times += 1,
                None => said.push((words, 1)),
            }
            if !works && !mends.contains(&&need.mend) {
                mends.push(&need.mend);
            }
        }
        let said: Vec<String> = said
            .into_iter()
            .map(|(words, times)| match times {
                1 => words,
                _ => format!("{times} × {words}"),
            })
            .collect();
        let word = if works { "ok" } else { "no" };
        let row = format!("{word}  {:width$}  ", task.name());
        let separator = if works { ", " } else { "; " };
        text.push_str(&wrapped(&row, &said.join(separator), ""));
        for mend in &mends[printed..] {
            text.push_str(&match mend {
                Mend::Run(command) => wrapped("    run: ", command, " \\"),
                Mend::See(page) => wrapped("    see: ", page, ""),
                Mend::Instead(command) => wrapped("    without it: ", command, ""),
            });
        }
    }
    text.push_str(match outcome(needs) {
        Outcome::Clean => "Device code can be built here.\n",
        Outcome::Findings => "Device code cannot be built here.\n",
    });
    text
}

/// Lines of at most 80 columns. The first begins with `start`, the others with as many blanks; all
/// but the last end in `goes_on`.
fn wrapped(start: &str, words: &str, goes_on: &str) -> String {
    let indent = start.chars().count();
    let mut text = start.to_owned();
    let mut column = indent;
    for word in words.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column > indent && column + length + goes_on.len() > COLUMNS {
            text.truncate(text.trim_end().len());
            text.push_str(goes_on);
            text.push('\n');
            text.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::system::System;
    use super::*;

    const PROJECT: Project = Project {
        without_gpu: "emulating",
        compares_and_ranks: true,
    };

    /// A machine that has everything.
    fn complete() -> Machine {
        let tool = |name: &str| {
            Some(Tool {
                path: PathBuf::from(format!("/cuda/bin/{name}")),
                release: Some(Version(13, 0)),
            })
        };
        Machine {
            system: System::Ubuntu,
            wsl: false,
            script: true,
            pip: true,
            rustup: true,
            rustc: "rustc 1.95.0 (abc 2026-01-01)".to_owned(),
            pinned: Some("1.95.0".to_owned()),
            core_source: Some("/rust/library".into()),
            llvm_major: 22,
            llvm_tools: ["llvm-link", "opt", "llc"]
                .map(|name| (name, Some(PathBuf::from(format!("/llvm/bin/{name}")))))
                .to_vec(),
            ptxas: tool("ptxas"),
            nvdisasm: tool("nvdisasm"),
            nvcc: tool("nvcc"),
            cc: Some("/usr/bin/cc".into()),
            cxx: Some("/usr/bin/g++".into()),
            mpicc: Some("/usr/bin/mpicc".into()),
            mpirun: Some("/usr/bin/mpirun".into()),
            libclang: Some("/usr/lib/libclang.so".into()),
            nccl: Some("/usr/lib/libnccl.so.2".into()),
            driver: Ok(Driver {
                cuda: Version(13, 0),
                release: Some("580.95.05".to_owned()),
                gpus: Ok(vec![gpu("NVIDIA H200", Version(9, 0))]),
            }),
            gpu_on_bus: Some(true),
            devices_chosen: false,
            committed: vec![
                Committed {
                    file: "host/ptx/halo_sm_75.ptx".to_owned(),
                    target: Version(7, 5),
                    isa: Version(6, 3),
                },
                Committed {
                    file: "host/ptx/halo_sm_90.ptx".to_owned(),
                    target: Version(9, 0),
                    isa: Version(7, 8),
                },
            ],
        }
    }

    /// A machine with rustc alone.
    fn bare() -> Machine {
        Machine {
            core_source: None,
            llvm_tools: ["llvm-link", "opt", "llc"]
                .map(|name| (name, None))
                .to_vec(),
            ptxas: None,
            nvdisasm: None,
            nvcc: None,
            cc: None,
            cxx: None,
            mpicc: None,
            mpirun: None,
            libclang: None,
            nccl: None,
            driver: Err("libcuda.so.1: cannot open shared object file".to_owned()),
            gpu_on_bus: Some(false),
            ..complete()
        }
    }

    fn gpu(name: &str, capability: Version) -> Gpu {
        Gpu {
            name: name.to_owned(),
            capability,
        }
    }

    fn with_driver(cuda: Version, gpus: Result<Vec<Gpu>, NoGpus>) -> Machine {
        Machine {
            driver: Ok(Driver {
                cuda,
                release: None,
                gpus,
            }),
            ..complete()
        }
    }

    /// The state and the remedy of the first need whose name starts with `what`.
    fn of(machine: &Machine, what: &str) -> (State, Mend) {
        let need = needs(&PROJECT, machine)
            .into_iter()
            .find(|need| need.what.starts_with(what));
        let need = need.unwrap_or_else(|| panic!("{what} is not looked at"));
        (need.state, need.mend)
    }

    fn run(command: &str) -> Mend {
        Mend::Run(command.to_owned())
    }

    #[test]
    fn a_complete_machine_lacks_nothing() {
        let needs = needs(&PROJECT, &complete());
        assert_eq!(outcome(&needs), Outcome::Clean);
        assert_eq!(
            report(&needs),
            "ok  CPU, emulator        rustc 1.95.0, cc\n\
             ok  building kernels     rust-src, LLVM 22\n\
             ok  their machine code   ptxas 13.0, nvdisasm 13.0\n\
             ok  CUDA C++ to compare  nvcc 13.0, g++\n\
             ok  GPU                  driver 580.95.05 for CUDA 13.0, NVIDIA H200 (9.0)\n\
             ok  ranks as processes   mpicc, mpirun, libclang\n\
             ok  ranks over NCCL      libnccl.so.2\n\
             Device code can be built here.\n"
        );
    }

    #[test]
    fn equal_gpus_are_counted() {
        let gpus = vec![gpu("H100", Version(9, 0)); 8];
        let text = report(&needs(&PROJECT, &with_driver(Version(13, 0), Ok(gpus))));
        assert!(text.contains("CUDA 13.0, 8 × H100 (9.0)\n"), "{text}");
    }

    #[test]
    fn a_project_without_cpp_needs_no_compiler_of_it() {
        let project = Project {
            compares_and_ranks: false,
            ..PROJECT
        };
        let text = report(&needs(&project, &bare()));
        for absent in ["nvcc", "C++", "mpi", "nccl"] {
            assert!(!text.contains(absent), "{text}");
        }
    }

    #[test]
    fn what_is_missing_comes_with_one_command() {
        let needs = needs(&PROJECT, &bare());
        assert_eq!(outcome(&needs), Outcome::Findings);
        assert_eq!(
            report(&needs),
            "no  CPU, emulator        no C linker
    run: sudo apt-get update && sudo apt-get install --yes gcc
no  building kernels     no rust-src; no llvm-link of LLVM 22
    run: rustup component add rust-src llvm-tools
no  their machine code   no ptxas; no nvdisasm
    run: .ci/device-toolchain --toolkit
no  CUDA C++ to compare  no nvcc; no C++ compiler
    run: sudo apt-get update && sudo apt-get install --yes g++
no  GPU                  no CUDA driver: libcuda.so.1: cannot open shared object
                         file; no GPU
    without it: emulating
no  ranks as processes   no mpicc; no mpirun; no libclang
    run: sudo apt-get update && sudo apt-get install --yes libopenmpi-dev \\
         openmpi-bin libclang-dev
Device code cannot be built here.
"
        );
    }

    /// On every system, with or without a GPU, the report fits on a terminal's screen.
    #[test]
    fn the_report_is_one_screen() {
        for system in System::ALL {
            for gpu_on_bus in [Some(true), Some(false), None] {
                for (pip, rustup) in [(true, true), (false, false)] {
                    let machine = Machine {
                        system,
                        gpu_on_bus,
                        pip,
                        rustup,
                        ..bare()
                    };
                    let text = report(&needs(&PROJECT, &machine));
                    assert!(text.lines().count() <= 24, "{text}");
                    let width = text.lines().map(|line| line.chars().count()).max();
                    // Except for the address of a repository, which is one word.
                    let most = if system == System::Fedora {
                        110
                    } else {
                        COLUMNS
                    };
                    assert!(width <= Some(most), "{text}");
                }
            }
        }
    }

    #[test]
    fn only_what_device_builds_need_is_required() {
        let without = |take: fn(&mut Machine)| {
            let mut machine = complete();
            take(&mut machine);
            outcome(&needs(&PROJECT, &machine))
        };
        assert_eq!(without(|it| it.core_source = None), Outcome::Findings);
        assert_eq!(without(|it| it.llvm_tools[2].1 = None), Outcome::Findings);
        assert_eq!(
            without(|it| it.rustc = "rustc 1.80.0".to_owned()),
            Outcome::Findings
        );
        assert_eq!(without(|it| it.ptxas = None), Outcome::Clean);
        assert_eq!(without(|it| it.driver = Err(String::new())), Outcome::Clean);
    }

    #[test]
    fn commands_are_those_of_the_system() {
        let on = |system, what: &str| of(&Machine { system, ..bare() }, what).1;
        assert_eq!(on(System::Debian, "rust-src"), run(".ci/device-toolchain"));
        assert_eq!(on(System::Debian, "llvm-link"), run(".ci/device-toolchain"));
        assert_eq!(
            on(System::Fedora, "llvm-link"),
            run("rustup component add rust-src llvm-tools")
        );
        assert_eq!(
            on(System::Fedora, "C++"),
            run("sudo dnf install --assumeyes gcc-c++")
        );
        assert_eq!(
            on(System::Arch, "C++"),
            run("sudo pacman -S --needed --noconfirm gcc")
        );

        // A missing pip is installed first; on an unknown system, a page is named.
        let bare_of_pip = |system| Machine {
            system,
            pip: false,
            ..bare()
        };
        assert_eq!(
            of(&bare_of_pip(System::Fedora), "nvcc").1,
            run("sudo dnf install --assumeyes python3-pip && .ci/device-toolchain --toolkit")
        );
        assert_eq!(
            of(&bare_of_pip(System::Other), "nvcc").1,
            Mend::See(TOOLKIT_PAGE)
        );
        let elsewhere = Machine {
            system: System::Other,
            script: false,
            rustup: false,
            ..bare()
        };
        assert_eq!(of(&elsewhere, "ptxas").1, Mend::See(TOOLKIT_PAGE));
        assert_eq!(of(&elsewhere, "rust-src").1, run(INSTALL_RUSTUP));
    }

    #[test]
    fn a_gpu_on_the_bus_is_worth_a_driver() {
        for (gpu_on_bus, system) in [
            (Some(true), System::Ubuntu),
            (Some(true), System::Debian),
            (None, System::Other),
        ] {
            let machine = Machine {
                gpu_on_bus,
                system,
                ..bare()
            };
            assert_eq!(of(&machine, "CUDA driver").1, system.driver());
        }
    }

    #[test]
    fn another_compiler_than_the_pinned_one_will_not_do() {
        let machine = Machine {
            rustc: "rustc 1.80.0 (def 2024-07-01)".to_owned(),
            ..complete()
        };
        let (state, mend) = of(&machine, "rustc");
        assert!(
            matches!(&state, State::Unfit { why, .. } if why.ends_with("asks for 1.95.0")),
            "{state:?}"
        );
        assert_eq!(mend, run("rustup toolchain install 1.95.0"));
        let machine = Machine {
            rustup: false,
            ..machine
        };
        assert_eq!(of(&machine, "rustc").1, run(INSTALL_RUSTUP));
    }

    #[test]
    fn a_gpu_is_compared_with_the_committed_ptx() {
        let state = |capability| {
            let gpus = Ok(vec![gpu("G", capability)]);
            of(&with_driver(Version(13, 0), gpus), "GPU")
        };
        let (old, mend) = state(Version(7, 0));
        assert_eq!(
            old,
            State::Unfit {
                found: "G (7.0)".to_owned(),
                why: "its kernels need compute capability 7.5".to_owned(),
            }
        );
        assert_eq!(mend, PROJECT.without_gpu());
        for capability in [Version(7, 5), Version(8, 9), Version(9, 0), Version(12, 0)] {
            let found = State::Found(format!("G ({capability})"));
            assert_eq!(state(capability).0, found);
        }
        // Each of several.
        let gpus = Ok(vec![gpu("new", Version(9, 0)), gpu("old", Version(5, 2))]);
        let needs = needs(&PROJECT, &with_driver(Version(13, 0), gpus));
        let text = report(&needs);
        assert!(text.contains("no  GPU  "), "{text}");
        assert!(text.contains("  old (5.2): its kernels need"), "{text}");
    }

    #[test]
    fn a_driver_is_compared_with_what_its_gpus_are_given() {
        let state = |cuda, capability| {
            let gpus = Ok(vec![gpu("G", capability)]);
            of(&with_driver(cuda, gpus), "CUDA driver")
        };
        assert_eq!(
            state(Version(11, 8), Version(9, 0)).0,
            State::Found("driver for CUDA 11.8".to_owned())
        );
        let (old, mend) = state(Version(11, 7), Version(9, 0));
        assert_eq!(
            old,
            State::Unfit {
                found: "driver for CUDA 11.7".to_owned(),
                why: "host/ptx/halo_sm_90.ptx is PTX 7.8, which needs CUDA 11.8 or later"
                    .to_owned(),
            }
        );
        assert_eq!(mend, System::Ubuntu.driver());
        // The same driver suffices for a GPU that runs the other file.
        assert!(matches!(
            state(Version(11, 7), Version(8, 6)).0,
            State::Found(_)
        ));
        assert!(matches!(
            state(Version(9, 2), Version(8, 6)).0,
            State::Unfit { .. }
        ));
    }

    #[test]
    fn a_driver_that_shows_no_gpu_is_explained() {
        let machine = |trouble| with_driver(Version(13, 0), Err(trouble));
        assert_eq!(of(&machine(NoGpus::Mismatch), "GPU").1, run("sudo reboot"));
        assert_eq!(
            of(&machine(NoGpus::NoDevice), "GPU").1,
            run("sudo modprobe nvidia")
        );
        assert_eq!(
            of(&with_driver(Version(13, 0), Ok(Vec::new())), "GPU").1,
            run("sudo modprobe nvidia")
        );
        let (state, _) = of(&machine(NoGpus::Other("out of luck".to_owned())), "GPU");
        assert_eq!(
            state,
            State::Missing(Some("the driver says: out of luck".to_owned()))
        );
        let hidden = Machine {
            devices_chosen: true,
            ..machine(NoGpus::NoDevice)
        };
        assert_eq!(of(&hidden, "GPU").1, run("unset CUDA_VISIBLE_DEVICES"));
        let none = Machine {
            gpu_on_bus: Some(false),
            ..machine(NoGpus::NoDevice)
        };
        assert_eq!(of(&none, "GPU").1, PROJECT.without_gpu());
    }

    #[test]
    fn an_assembler_is_compared_with_the_committed_ptx() {
        let with = |release| {
            let machine = Machine {
                ptxas: Some(Tool {
                    path: "/usr/bin/ptxas".into(),
                    release,
                }),
                ..complete()
            };
            of(&machine, "ptxas").0
        };
        assert_eq!(with(None), State::Found("ptxas".to_owned()));
        assert!(matches!(with(Some(Version(11, 8))), State::Found(_)));
        let state = with(Some(Version(11, 5)));
        assert!(
            matches!(&state, State::Unfit { why, .. } if why.contains("PTX 7.8")),
            "{state:?}"
        );
    }

    #[test]
    fn versions_of_ptx_belong_to_versions_of_cuda() {
        assert!(PTX_SINCE.is_sorted());
        assert_eq!(cuda_for(Version(6, 0)), Some(Version(10, 0)));
        assert_eq!(cuda_for(Version(7, 8)), Some(Version(11, 8)));
        assert_eq!(cuda_for(Version(8, 5)), Some(Version(12, 5)));
        assert_eq!(cuda_for(Version(99, 0)), None);
        // The committed PTX versions are known.
        for file in complete().committed {
            assert!(cuda_for(file.isa).is_some());
        }
    }
}
