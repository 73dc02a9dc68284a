//! Finds the compiler, LLVM's tools and the CUDA toolkit's programs that device builds use.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::process;

/// The folders to look in, in order, and the compiler's facts.
pub struct Toolchain {
    folders: Vec<PathBuf>,
    /// The folder of the compiler's files.
    pub sysroot: PathBuf,
    /// The target name of this system.
    pub host: String,
    /// First line of `rustc --version`.
    pub rustc: String,
    /// The major version of rustc's LLVM.
    pub llvm_major: u32,
}

impl Toolchain {
    /// The toolchain that builds the workspace at `root`.
    pub fn of(root: &Path) -> Result<Self, Error> {
        let ask = |arguments: &[&str]| {
            process::output(Command::new("rustc").current_dir(root).args(arguments))
        };
        let sysroot = PathBuf::from(ask(&["--print", "sysroot"])?.trim());
        let verbose = ask(&["--version", "--verbose"])?;
        let field = |name: &str| {
            verbose
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
                .unwrap_or_default()
        };
        let host = field("host:");
        let llvm_major = field("LLVM version:")
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .unwrap_or(0);

        let mut folders = vec![sysroot.join("lib/rustlib").join(host).join("bin")];
        // `.ci/device-toolchain` puts ptxas and nvdisasm there.
        folders.push(root.join("target/ci/bin"));
        folders.extend(cuda_folders());
        Ok(Self {
            folders,
            sysroot,
            host: host.to_owned(),
            rustc: verbose.lines().next().unwrap_or_default().to_owned(),
            llvm_major,
        })
    }

    /// The first of these programs, in the order of the folders.
    pub fn find(&self, names: &[&str]) -> Option<PathBuf> {
        find_in(&self.folders, names)
    }

    /// A tool of LLVM, of the same major version as rustc's: from the component, or with a name
    /// that ends in that number.
    ///
    /// The order is cuda_builder's: the folder that `CUDA_BUILDER_LLVM_BIN` names, rustc's own,
    /// `PATH`, and the folder of Debian's packages.
    pub fn find_llvm(&self, tool: &str) -> Option<PathBuf> {
        let numbered = format!("{tool}-{}", self.llvm_major);
        let named = std::env::var_os("CUDA_BUILDER_LLVM_BIN").map(PathBuf::from);
        let debian = PathBuf::from(format!("/usr/lib/llvm-{}/bin", self.llvm_major));
        find_in(named.as_slice(), &[&numbered, tool])
            .or_else(|| find_in(&self.folders[..1], &[tool]))
            .or_else(|| self.find(&[&numbered]))
            .or_else(|| find_in(&[debian], &[tool]))
    }

    /// The source of `core`, if it is installed.
    pub fn core_source(&self) -> Option<PathBuf> {
        let folder = self.sysroot.join("lib/rustlib/src/rust/library");
        folder.join("core/src/lib.rs").is_file().then_some(folder)
    }
}

/// The folders with the CUDA toolkit's programs, in order.
pub fn cuda_folders() -> Vec<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        // NVIDIA's own installers, and Arch's package.
        .chain(["/usr/local/cuda".into(), "/opt/cuda".into()]);
    path_folders()
        .into_iter()
        .chain(toolkits.map(|toolkit| toolkit.join("bin")))
        .collect()
}

/// The folders of `PATH`.
pub fn path_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// The first of these programs in any of the folders, in the order of the folders.
pub fn find_in(folders: &[PathBuf], names: &[&str]) -> Option<PathBuf> {
    folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .map(|path| executable(&path))
        .find(|path| path.is_file())
}

/// The path with the suffix of programs on this system. (`with_extension` would replace the part
/// behind a version's dot.)
fn executable(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(std::env::consts::EXE_SUFFIX);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_has_a_tool_wins() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for path in ["b/llc-22", "c/llc", "c/llc-22"] {
            let path = executable(&place(path));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let folders = ["a", "b", "c"].map(place);
        let found = |names: &[&str]| {
            find_in(&folders, names).map(|path| {
                path.strip_prefix(folder.path())
                    .unwrap()
                    .with_extension("")
                    .to_owned()
            })
        };
        assert_eq!(found(&["llc", "llc-22"]), Some("b/llc-22".into()));
        assert_eq!(found(&["llc"]), Some("c/llc".into()));
        assert_eq!(found(&["opt"]), None);
    }

    #[test]
    fn this_compiler_says_what_it_is() {
        let toolchain = Toolchain::of(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert!(
            toolchain.rustc.starts_with("rustc 1."),
            "{}",
            toolchain.rustc
        );
        assert!(toolchain.llvm_major >= 20);
        assert!(toolchain.sysroot.is_dir());
    }
}
