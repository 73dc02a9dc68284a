//! Checks whether this machine can build and run kernels, and gives, for each thing missing, the
//! one command that installs it.
//!
//! `machine` looks. What is missing, what will not do and what mends it is decided
//! here, from what it has found alone, so that the decisions are tested for machines
//! that nobody has at hand.

mod machine;
mod system;

use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::error::Error;
use crate::output;
use crate::toolchain::Toolchain;
use machine::{Driver, Gpu, Machine, NoGpus, Tool, Version};

pub use machine::Committed;

/// Which requirements are checked for which task.
#[derive(Clone, Copy, Debug)]
pub struct Project {
    /// The command that builds device code.
    pub builds: &'static str,
    /// The command that looks at machine code.
    pub checks: &'static str,
    /// The command that does without a GPU.
    pub without_gpu: &'static str,
    /// The architecture that CUDA C++ is compiled for, if there is any.
    pub cpp: Option<&'static str>,
}

/// One requirement of a task.
struct Need {
    what: String,
    state: State,
    /// What needs it.
    used_for: &'static str,
    /// The command that installs it.
    mend: Mend,
}

impl Need {
    fn new(what: impl Into<String>, state: State, used_for: &'static str, mend: Mend) -> Self {
        Self {
            what: what.into(),
            state,
            used_for,
            mend,
        }
    }

    /// Whether device code cannot be built without it.
    fn is_required(&self, project: &Project) -> bool {
        [EVERYTHING, project.builds].contains(&self.used_for)
    }
}

/// Whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its path or version.
    Found(String),
    /// As `Found`, and why it does not suffice.
    Unfit { found: String, why: String },
    /// Why it is not there, where somebody has said so.
    Missing(Option<String>),
}

/// The remedy for a missing requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mend {
    /// A command, to be pasted into a shell in the repository's root.
    Run(String),
    /// A page, where no command is right everywhere.
    See(&'static str),
    /// A command that does without.
    Instead(String),
}

/// Prints every need, found or missing. Comes to findings where device code
/// cannot be built; a missing GPU is none.
///
/// `committed` is the PTX that a project keeps, relative to `root`.
pub fn run(project: &Project, root: &Path, committed: Vec<Committed>) -> Result<Outcome, Error> {
    let toolchain = Toolchain::of(root)?;
    let needs = needs(project, &Machine::look(root, &toolchain, committed));
    output::line(report(project, &needs).trim_end());
    Ok(outcome(project, &needs))
}

fn outcome(project: &Project, needs: &[Need]) -> Outcome {
    let lacking = needs
        .iter()
        .any(|need| need.is_required(project) && !matches!(need.state, State::Found(_)));
    if lacking {
        Outcome::Findings
    } else {
        Outcome::Clean
    }
}

const EVERYTHING: &str = "everything";
const GPU_RUNS: &str = "running on a GPU";

/// Installs rustup, which then brings what rust-toolchain.toml lists.
const INSTALL_RUSTUP: &str =
    "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y";

const SCRIPT: &str = ".ci/device-toolchain";

/// NVIDIA's page on installing the toolkit.
const TOOLKIT_PAGE: &str = "https://developer.nvidia.com/cuda-downloads";

fn needs(project: &Project, machine: &Machine) -> Vec<Need> {
    let program = |tool: &Option<Tool>| toolkit_program(tool.as_ref(), &machine.committed);
    let part = |what: String, found: &Option<PathBuf>, component: &str| {
        Need::new(
            what,
            at(found),
            project.builds,
            machine.component(component),
        )
    };
    let llvm = |(tool, found): &(&str, _)| {
        let what = format!("{tool} of LLVM {}", machine.llvm_major);
        part(what, found, "llvm-tools")
    };
    let toolkit =
        |what: &str, tool, used_for| Need::new(what, program(tool), used_for, machine.toolkit());
    let gpu = |(state, mend)| Need::new("GPU", state, GPU_RUNS, mend);

    let mut needs = vec![
        Need::new(
            "rustc",
            rustc_state(machine),
            EVERYTHING,
            machine.compiler(),
        ),
        part(
            "source of core (rust-src)".to_owned(),
            &machine.core_source,
            "rust-src",
        ),
    ];
    needs.extend(machine.llvm_tools.iter().map(llvm));
    needs.extend([
        toolkit("ptxas", &machine.ptxas, project.checks),
        toolkit("nvdisasm", &machine.nvdisasm, project.checks),
    ]);
    if let Some(cpp) = project.cpp {
        needs.extend([
            toolkit("nvcc (CUDA toolkit)", &machine.nvcc, cpp),
            Need::new("C++ compiler", at(&machine.cxx), cpp, machine.system.cxx()),
        ]);
    }
    needs.push(Need::new(
        "CUDA driver (libcuda)",
        driver_state(machine),
        GPU_RUNS,
        driver_mend(project, machine),
    ));
    needs.extend(gpus(project, machine).into_iter().map(gpu));
    needs
}

fn rustc_state(machine: &Machine) -> State {
    let found = machine.rustc.clone();
    match &machine.pinned {
        Some(pinned) if !found.contains(pinned.as_str()) => State::Unfit {
            found,
            why: format!("rust-toolchain.toml asks for {pinned}"),
        },
        _ => State::Found(found),
    }
}

fn driver_mend(project: &Project, machine: &Machine) -> Mend {
    // A driver without a GPU is of no use.
    match machine.gpu_on_bus {
        Some(false) => project.without_gpu(),
        _ => machine.system.driver(),
    }
}

/// Each GPU, or the one that is not there.
fn gpus(project: &Project, machine: &Machine) -> Vec<(State, Mend)> {
    match machine.driver.as_ref().map(|driver| &driver.gpus) {
        Ok(Ok(gpus)) if !gpus.is_empty() => {
            let state = |gpu| (gpu_state(gpu, &machine.committed), project.without_gpu());
            gpus.iter().map(state).collect()
        }
        Ok(Ok(_)) => vec![no_gpus(project, machine, &NoGpus::NoDevice)],
        Ok(Err(trouble)) => vec![no_gpus(project, machine, trouble)],
        // Without a driver only the bus can tell.
        Err(_) if machine.gpu_on_bus == Some(true) => {
            let why = "there is one of NVIDIA's, which needs the driver".to_owned();
            vec![(State::Missing(Some(why)), machine.system.driver())]
        }
        Err(_) => vec![(State::Missing(None), project.without_gpu())],
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

    /// The command that installs a component of the Rust toolchain.
    fn component(&self, name: &str) -> Mend {
        // The script needs Debian's packages; what it brings, it brings also where
        // rustup cannot reach its server.
        Mend::Run(if self.script && self.system == system::System::Debian {
            self.script("")
        } else if self.rustup {
            format!("rustup component add {name}")
        } else {
            INSTALL_RUSTUP.to_owned()
        })
    }

    /// What brings the programs of the CUDA toolkit: the script, whose releases are
    /// known to be new enough, which not every distribution's package is.
    fn toolkit(&self) -> Mend {
        if self.script && (self.pip || self.system.pip().is_some()) {
            Mend::Run(self.script(" --toolkit"))
        } else {
            Mend::See(TOOLKIT_PAGE)
        }
    }

    /// The script with these options, and before it what it needs.
    fn script(&self, options: &str) -> String {
        match self.system.pip() {
            Some(pip) if !self.pip => format!("{pip} && {SCRIPT}{options}"),
            _ => format!("{SCRIPT}{options}"),
        }
    }
}

fn at(found: &Option<PathBuf>) -> State {
    match found {
        Some(path) => State::Found(path.display().to_string()),
        None => State::Missing(None),
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

/// Why something of this CUDA version cannot take that PTX.
fn too_old_for(cuda: Version, ptx: &Committed) -> Option<String> {
    let needed = cuda_for(ptx.isa)?;
    (cuda < needed).then(|| {
        format!(
            "{} is PTX {}, which needs CUDA {needed} or later",
            ptx.file, ptx.isa
        )
    })
}

/// The committed PTX that a GPU is given: the highest target that it can run.
fn taken_by(capability: Version, committed: &[Committed]) -> Option<&Committed> {
    committed
        .iter()
        .rev()
        .find(|file| file.target <= capability)
}

fn toolkit_program(tool: Option<&Tool>, committed: &[Committed]) -> State {
    let Some(Tool { path, release }) = tool else {
        return State::Missing(None);
    };
    let path = path.display();
    let Some(release) = release else {
        return State::Found(path.to_string());
    };
    let found = format!("{path}, of CUDA {release}");
    match committed.iter().find_map(|ptx| too_old_for(*release, ptx)) {
        Some(why) => State::Unfit { found, why },
        None => State::Found(found),
    }
}

/// The driver, judged by the PTX that its GPUs are given or, where it shows none, by
/// the least that it could have to take.
fn driver_state(machine: &Machine) -> State {
    let driver = match &machine.driver {
        Ok(driver) => driver,
        Err(reason) => return State::Missing(Some(reason.clone())),
    };
    let Driver { cuda, release, .. } = driver;
    let found = match release {
        Some(release) => format!("{release}, for CUDA {cuda}"),
        None => format!("for CUDA {cuda}"),
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
    let found = format!("{}, compute capability {}", gpu.name, gpu.capability);
    match (taken_by(gpu.capability, committed), committed.first()) {
        (Some(ptx), _) => State::Found(format!("{found}, which takes {}", ptx.file)),
        (None, Some(lowest)) => State::Unfit {
            found,
            why: format!("the committed PTX needs {} or later", lowest.target),
        },
        (None, None) => State::Found(found),
    }
}

/// Why a driver that is there shows no GPU, and what mends that.
fn no_gpus(project: &Project, machine: &Machine, trouble: &NoGpus) -> (State, Mend) {
    let run = |command: &str| Mend::Run(command.to_owned());
    let (why, mend) = match trouble {
        NoGpus::Mismatch => (
            "the driver was updated, and what runs in the kernel is still the old one",
            run("sudo reboot"),
        ),
        NoGpus::NoDevice if machine.devices_chosen => (
            "CUDA_VISIBLE_DEVICES is set, which can hide it",
            run("unset CUDA_VISIBLE_DEVICES"),
        ),
        NoGpus::NoDevice if machine.gpu_on_bus == Some(false) => (
            "there is none of NVIDIA's in this machine",
            project.without_gpu(),
        ),
        NoGpus::NoDevice => ("the driver reports none", run("sudo modprobe nvidia")),
        NoGpus::Other(reason) => {
            let why = format!("the driver says: {reason}");
            return (State::Missing(Some(why)), run("sudo modprobe nvidia"));
        }
    };
    (State::Missing(Some(why.to_owned())), mend)
}

fn report(project: &Project, needs: &[Need]) -> String {
    let width = needs.iter().map(|need| need.what.len()).max().unwrap_or(0);
    let mut text = String::new();
    for need in needs {
        let (word, said) = match &need.state {
            State::Found(found) => ("ok", found.clone()),
            State::Unfit { found, why } => ("unfit", format!("{found}; {why}")),
            State::Missing(None) => ("missing", format!("for: {}", need.used_for)),
            State::Missing(Some(why)) => ("missing", format!("for: {} ({why})", need.used_for)),
        };
        text.push_str(&format!("{word:7}  {:width$}  {said}\n", need.what));
        if matches!(need.state, State::Found(_)) {
            continue;
        }
        let mend = match &need.mend {
            Mend::Run(command) => format!("run: {command}"),
            Mend::See(page) => format!("see: {page}"),
            Mend::Instead(command) => format!("without it: {command}"),
        };
        text.push_str(&format!("{:7}  {:width$}  {mend}\n", "", ""));
    }
    text.push_str(match outcome(project, needs) {
        Outcome::Clean => "Device code can be built here.\n",
        Outcome::Findings => "Device code cannot be built here.\n",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::system::System;
    use super::*;

    const PROJECT: Project = Project {
        builds: "building",
        checks: "checking",
        without_gpu: "emulating",
        cpp: Some("comparing"),
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
            cxx: Some("/usr/bin/g++".into()),
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

    /// A machine that has cargo alone.
    fn bare() -> Machine {
        Machine {
            core_source: None,
            llvm_tools: ["llvm-link", "opt", "llc"]
                .map(|name| (name, None))
                .to_vec(),
            ptxas: None,
            nvdisasm: None,
            nvcc: None,
            cxx: None,
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

    /// What is said of the first need whose name starts like this, and what mends it.
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
        let text = report(&PROJECT, &needs);
        assert_eq!(outcome(&PROJECT, &needs), Outcome::Clean, "{text}");
        for line in text.lines().take(needs.len()) {
            assert!(line.starts_with("ok "), "{text}");
        }
        assert!(
            text.contains(
                "NVIDIA H200, compute capability 9.0, which takes host/ptx/halo_sm_90.ptx"
            ),
            "{text}"
        );
        assert!(text.contains("580.95.05, for CUDA 13.0"), "{text}");
        assert!(text.contains("/cuda/bin/ptxas, of CUDA 13.0"), "{text}");
    }

    #[test]
    fn a_project_without_cpp_needs_no_compiler_of_it() {
        let project = Project {
            cpp: None,
            ..PROJECT
        };
        let text = report(&project, &needs(&project, &bare()));
        assert!(!text.contains("nvcc") && !text.contains("C++"), "{text}");
    }

    #[test]
    fn what_is_missing_comes_with_one_command() {
        let machine = bare();
        let needs = needs(&PROJECT, &machine);
        assert_eq!(outcome(&PROJECT, &needs), Outcome::Findings);
        let text = report(&PROJECT, &needs);
        for need in &needs[1..] {
            assert!(
                matches!(need.state, State::Missing(_)),
                "{}: {text}",
                need.what
            );
        }
        let mends: usize = ["  run: ", "  see: ", "  without it: "]
            .map(|word| text.matches(word).count())
            .iter()
            .sum();
        assert_eq!(mends, needs.len() - 1, "one for each: {text}");
        for (what, command) in [
            ("source of core", "rustup component add rust-src"),
            ("opt", "rustup component add llvm-tools"),
            ("ptxas", ".ci/device-toolchain --toolkit"),
            ("nvcc", ".ci/device-toolchain --toolkit"),
            (
                "C++",
                "sudo apt-get update && sudo apt-get install --yes g++",
            ),
        ] {
            assert_eq!(of(&machine, what), (State::Missing(None), run(command)));
        }
        // There is no use for a driver.
        for what in ["CUDA driver", "GPU"] {
            assert_eq!(of(&machine, what).1, PROJECT.without_gpu());
        }
        assert!(
            text.contains("running on a GPU (libcuda.so.1: cannot open"),
            "{text}"
        );
    }

    #[test]
    fn only_what_device_builds_need_is_required() {
        let without = |take: fn(&mut Machine)| {
            let mut machine = complete();
            take(&mut machine);
            outcome(&PROJECT, &needs(&PROJECT, &machine))
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
        assert_eq!(
            on(System::Debian, "source of core"),
            run(".ci/device-toolchain")
        );
        assert_eq!(on(System::Debian, "llc"), run(".ci/device-toolchain"));
        assert_eq!(
            on(System::Fedora, "llc"),
            run("rustup component add llvm-tools")
        );
        assert_eq!(
            on(System::Fedora, "C++"),
            run("sudo dnf install --assumeyes gcc-c++")
        );
        assert_eq!(
            on(System::Arch, "C++"),
            run("sudo pacman -S --needed --noconfirm gcc")
        );

        // The script's own needs come before it; where nobody knows them, a page.
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
        assert_eq!(of(&elsewhere, "opt").1, run(INSTALL_RUSTUP));
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
        let machine = Machine {
            gpu_on_bus: Some(true),
            ..bare()
        };
        assert_eq!(of(&machine, "GPU").1, System::Ubuntu.driver());
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
                found: "G, compute capability 7.0".to_owned(),
                why: "the committed PTX needs 7.5 or later".to_owned(),
            }
        );
        assert_eq!(mend, PROJECT.without_gpu());
        for (capability, file) in [
            (Version(7, 5), "halo_sm_75.ptx"),
            (Version(8, 9), "halo_sm_75.ptx"),
            (Version(9, 0), "halo_sm_90.ptx"),
            (Version(12, 0), "halo_sm_90.ptx"),
        ] {
            let (state, _) = state(capability);
            assert!(
                matches!(&state, State::Found(found) if found.ends_with(file)),
                "{state:?}"
            );
        }
        // Each of several.
        let gpus = Ok(vec![gpu("new", Version(9, 0)), gpu("old", Version(5, 2))]);
        let needs = needs(&PROJECT, &with_driver(Version(13, 0), gpus));
        let text = report(&PROJECT, &needs);
        assert!(
            text.contains("ok       GPU") && text.contains("unfit    GPU"),
            "{text}"
        );
    }

    #[test]
    fn a_driver_is_compared_with_what_its_gpus_are_given() {
        let state = |cuda, capability| {
            let gpus = Ok(vec![gpu("G", capability)]);
            of(&with_driver(cuda, gpus), "CUDA driver")
        };
        assert_eq!(
            state(Version(11, 8), Version(9, 0)).0,
            State::Found("for CUDA 11.8".to_owned())
        );
        let (old, mend) = state(Version(11, 7), Version(9, 0));
        assert_eq!(
            old,
            State::Unfit {
                found: "for CUDA 11.7".to_owned(),
                why: "host/ptx/halo_sm_90.ptx is PTX 7.8, which needs CUDA 11.8 or later"
                    .to_owned(),
            }
        );
        assert_eq!(mend, System::Ubuntu.driver());
        // The same driver does for a GPU that is given the other file.
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
        assert_eq!(with(None), State::Found("/usr/bin/ptxas".to_owned()));
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
        // What is committed is known.
        for file in complete().committed {
            assert!(cuda_for(file.isa).is_some());
        }
    }
}
