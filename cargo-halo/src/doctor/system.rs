//! Identifies the operating system and its install commands.

use super::mend::Mend;

/// NVIDIA's page of drivers.
pub(super) const DRIVER_PAGE: &str = "https://www.nvidia.com/drivers";

const COMPILER_PAGE: &str = "https://gcc.gnu.org/install/binaries.html";

/// Systems with different install commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum System {
    Debian,
    /// And systems derived from it.
    Ubuntu,
    Fedora,
    /// And systems derived from it.
    Arch,
    Other,
}

impl System {
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] = [
        Self::Debian,
        Self::Ubuntu,
        Self::Fedora,
        Self::Arch,
        Self::Other,
    ];

    /// The system of this `/etc/os-release`.
    pub(super) fn of(os_release: &str) -> Self {
        let field = |name: &str| {
            let line = os_release.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_matches('"')
        };
        let (own, like) = (field("ID="), field("ID_LIKE="));
        // A system like Ubuntu is like Debian too, but only Ubuntu has its tools; a system like
        // Debian or Fedora need not have their repositories.
        match own {
            "debian" => Self::Debian,
            "fedora" => Self::Fedora,
            _ if std::iter::once(own)
                .chain(like.split(' '))
                .any(|id| id == "ubuntu") =>
            {
                Self::Ubuntu
            }
            _ if std::iter::once(own)
                .chain(like.split(' '))
                .any(|id| id == "arch") =>
            {
                Self::Arch
            }
            _ => Self::Other,
        }
    }

    /// The command that installs NVIDIA's newest driver.
    pub(super) fn driver(self) -> Mend {
        // One command each. It adds the driver's repository where that is missing by default.
        Mend::Run(
            match self {
                Self::Debian => {
                    "echo \"deb http://deb.debian.org/debian $(. /etc/os-release && echo \
                     $VERSION_CODENAME) contrib non-free non-free-firmware\" | sudo tee \
                     /etc/apt/sources.list.d/non-free.list && sudo apt-get update && \
                     sudo apt-get install --yes nvidia-driver libcuda1"
                }
                Self::Ubuntu => {
                    "sudo apt-get update && sudo apt-get install --yes ubuntu-drivers-common && \
                     sudo ubuntu-drivers install"
                }
                Self::Fedora => {
                    "sudo dnf install --assumeyes \
                     https://mirrors.rpmfusion.org/free/fedora/rpmfusion-free-release-$(rpm -E \
                     %fedora).noarch.rpm \
                     https://mirrors.rpmfusion.org/nonfree/fedora/rpmfusion-nonfree-release-$(rpm \
                     -E %fedora).noarch.rpm && \
                     sudo dnf install --assumeyes akmod-nvidia xorg-x11-drv-nvidia-cuda"
                }
                Self::Arch => "sudo pacman -S --needed --noconfirm nvidia-open nvidia-utils",
                Self::Other => return Mend::See(DRIVER_PAGE),
            }
            .to_owned(),
        )
    }

    /// The command that installs a C++ compiler.
    pub(super) fn cxx(self) -> Mend {
        self.package("g++", "gcc-c++", "gcc")
            .unwrap_or(Mend::See(COMPILER_PAGE))
    }

    /// The command that installs rustc's linker.
    pub(super) fn linker(self) -> Mend {
        self.package("gcc", "gcc", "gcc")
            .unwrap_or(Mend::See(COMPILER_PAGE))
    }

    /// The command that installs an MPI and libclang, which its bindings need.
    pub(super) fn mpi(self) -> Mend {
        let fedora = "openmpi-devel clang-devel && . /etc/profile.d/modules.sh && \
                      module load mpi/openmpi-$(uname -m)";
        self.package(
            "libopenmpi-dev openmpi-bin libclang-dev",
            fedora,
            "openmpi clang",
        )
        .unwrap_or(Mend::See("https://www.open-mpi.org/software/"))
    }

    /// The command that installs Python's pip.
    pub(super) fn pip(self) -> Option<String> {
        match self.package("python3-pip", "python3-pip", "python-pip") {
            Some(Mend::Run(command)) => Some(command),
            _ => None,
        }
    }

    /// The command that installs a package with these names in apt, dnf and pacman.
    fn package(self, apt: &str, dnf: &str, pacman: &str) -> Option<Mend> {
        Some(Mend::Run(match self {
            Self::Debian | Self::Ubuntu => {
                format!("sudo apt-get update && sudo apt-get install --yes {apt}")
            }
            Self::Fedora => format!("sudo dnf install --assumeyes {dnf}"),
            Self::Arch => format!("sudo pacman -S --needed --noconfirm {pacman}"),
            Self::Other => return None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_told_apart_by_what_they_say_of_themselves() {
        let of = System::of;
        assert_eq!(
            of("PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\n"),
            System::Debian
        );
        assert_eq!(of("ID=ubuntu\nID_LIKE=debian\n"), System::Ubuntu);
        assert_eq!(
            of("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n"),
            System::Ubuntu
        );
        assert_eq!(of("NAME=Fedora\nID=fedora\n"), System::Fedora);
        assert_eq!(of("ID=arch\n"), System::Arch);
        assert_eq!(of("ID=manjaro\nID_LIKE=arch\n"), System::Arch);
        // Like others, but without their repositories.
        assert_eq!(
            of("ID=\"rhel\"\nID_LIKE=\"centos fedora\"\n"),
            System::Other
        );
        assert_eq!(of("ID=raspbian\nID_LIKE=debian\n"), System::Other);
        assert_eq!(of(""), System::Other);
    }

    #[test]
    fn every_system_has_one_line_to_paste_or_a_page() {
        for system in System::ALL {
            for mend in [system.driver(), system.cxx(), system.linker(), system.mpi()] {
                match mend {
                    Mend::Run(command) => {
                        assert!(command.contains("sudo "), "{system:?}: {command}");
                        assert!(!command.contains(['\n', ';']), "{system:?}: {command}");
                        // A line break in the source would leave two blanks.
                        assert!(!command.contains("  "), "{system:?}: {command}");
                    }
                    Mend::See(page) => assert!(page.starts_with("https://"), "{page}"),
                    Mend::Instead(command) => panic!("{system:?}: {command}"),
                }
            }
        }
    }
}
