//! `check`, `ptx` and `inspect`: compile a crate of kernels for a GPU, and check, write or describe
//! the result.

use std::path::{Path, PathBuf};

use cargo_metadata::{Metadata, MetadataCommand, Package};
use cuda_builder::{CudaBuilder, DebugInfo, NvvmArch};

use crate::error::Error;
use crate::flags;
use crate::inspect::report::{self, KernelReport};
use crate::inspect::resources::{Block, Multiprocessor};
use crate::inspect::{Assembled, Tools, gates};
use crate::outcome::Outcome;
use crate::output;
use crate::toolchain::Toolchain;

/// The command that installs ptxas and nvdisasm on any system with Python.
const TOOLS_MEND: &str = "the CUDA toolkit (https://developer.nvidia.com/cuda-downloads), or \
     `pip install nvidia-cuda-nvcc nvidia-cuda-nvdisasm` and their bin folders on PATH";

/// A crate of kernels.
pub struct Kernels {
    pub folder: PathBuf,
    /// cargo's metadata of it and of its dependencies.
    pub metadata: Metadata,
}

/// The name of the package with Halo's library of this name. (The registry's package of that name
/// is upstream's.)
pub(crate) fn package_of(library: &str) -> String {
    format!("halo-{}", library.replace('_', "-"))
}

impl Kernels {
    /// Finds the crate that the flags name.
    pub fn find(kernels: &flags::KernelCrate) -> Result<Self, Error> {
        let folder = match &kernels.folder {
            Some(folder) => folder.clone(),
            None if Path::new("kernels/Cargo.toml").is_file() => "kernels".into(),
            None => ".".into(),
        };
        let no_kernels = |why: &str| Error::NoKernels {
            folder: folder.clone(),
            why: why.to_owned(),
        };
        if !folder.join("Cargo.toml").is_file() {
            return Err(no_kernels("it has no Cargo.toml"));
        }
        let folder = folder
            .canonicalize()
            .map_err(Error::file("find", &folder))?;
        let metadata = MetadataCommand::new()
            .current_dir(&folder)
            .exec()
            .map_err(|source| Error::NoCrate {
                folder: folder.clone(),
                source,
            })?;
        let kernels = Self { folder, metadata };
        let package = kernels
            .package()
            .ok_or_else(|| no_kernels("its Cargo.toml describes a workspace, not a package"))?;
        // Halo's package, or one with upstream's name, as in rust-cuda/upstream.
        let names = [package_of("cuda_std"), "cuda_std".to_owned()];
        if !package
            .dependencies
            .iter()
            .any(|it| names.contains(&it.name))
        {
            return Err(no_kernels("it does not depend on cuda_std"));
        }
        Ok(kernels)
    }

    /// The crate itself.
    pub fn package(&self) -> Option<&Package> {
        let manifest = self.folder.join("Cargo.toml");
        self.metadata
            .packages
            .iter()
            .find(|package| package.manifest_path == manifest)
    }

    fn builder(&self, arch: &str) -> Result<CudaBuilder, Error> {
        let arch: NvvmArch = arch.parse().map_err(failed(arch))?;
        Ok(CudaBuilder::new(&self.folder).arch(arch))
    }

    /// Compiles the kernels for this GPU to machine code.
    fn assemble(&self, tools: &Tools, arch: &str) -> Result<Assembled, Error> {
        let ptx = self.builder(arch)?.build_ptx().map_err(failed(arch))?;
        tools.assemble(&ptx.path, arch)
    }
}

/// Every file under `folder` whose name ends in `.rs`, sorted; empty where the folder does not
/// exist.
pub fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        if !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).map_err(Error::file("read", &folder))? {
            let path = entry.map_err(Error::file("read", &folder))?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn failed<E>(target: &str) -> impl FnOnce(E) -> Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let target = target.to_owned();
    move |source| Error::Ptx {
        target,
        source: source.into(),
    }
}

/// Builds for the architecture of the gates, and checks the gates.
pub fn check(flags: &flags::Check) -> Result<Outcome, Error> {
    let kernels = Kernels::find(&flags.kernels)?;
    let tools = Tools::find(&Toolchain::of(&kernels.folder)?, TOOLS_MEND)?;
    let assembled = kernels.assemble(&tools, gates::ARCH)?;

    let mut findings = Vec::new();
    let mut found = Vec::new();
    let mut texts = Vec::new();
    for path in rust_files(&kernels.folder.join("src"))? {
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        let path = path
            .strip_prefix(&kernels.folder)
            .unwrap_or(&path)
            .to_owned();
        found.extend(gates::parse(&path, &text, &mut findings));
        texts.push((path, text));
    }
    let subjects: Vec<_> = assembled
        .kernels
        .iter()
        .map(|(name, compiled)| {
            let (path, line) = place_of(name, &texts);
            gates::Subject {
                path,
                line,
                name,
                compiled,
            }
        })
        .collect();
    let compared = gates::check(&found, gates::Scope::Crate, &subjects, &mut findings);
    findings.sort();
    for finding in &findings {
        output::line(&finding.to_string());
    }
    output::line(&format!(
        "{} kernels for {}; {compared} comparisons by {} gates and of spills; {} findings",
        subjects.len(),
        gates::ARCH,
        found.len(),
        findings.len()
    ));
    Ok(if findings.is_empty() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

/// The file and line of the function with this name; the first file where no function has it, as
/// for kernels that a macro makes.
fn place_of<'a>(kernel: &str, texts: &'a [(PathBuf, String)]) -> (&'a Path, usize) {
    let function = format!("fn {kernel}");
    let is_it = |line: &str| {
        line.split_once(function.as_str()).is_some_and(|(_, rest)| {
            !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    for (path, text) in texts {
        if let Some(index) = text.lines().position(is_it) {
            return (path, index + 1);
        }
    }
    let first = texts
        .first()
        .map_or(Path::new("src/lib.rs"), |(path, _)| path);
    (first, 0)
}

/// Writes the PTX.
pub fn ptx(flags: &flags::Ptx) -> Result<Outcome, Error> {
    let kernels = Kernels::find(&flags.kernels)?;
    let mut builder = kernels.builder(&flags.arch)?;
    if flags.lines {
        builder = builder.debug(DebugInfo::LineTables);
    }
    let ptx = builder.build_ptx().map_err(failed(&flags.arch))?;
    match &flags.output {
        Some(path) => {
            std::fs::write(path, &ptx.text).map_err(Error::file("write", path))?;
            eprintln!("{}: {}", path.display(), ptx.kernels.join(", "));
        }
        None => output::line(ptx.text.trim_end()),
    }
    Ok(Outcome::Clean)
}

/// Prints the kernels' cost.
pub fn inspect(flags: &flags::Inspect) -> Result<Outcome, Error> {
    let kernels = Kernels::find(&flags.kernels)?;
    let tools = Tools::find(&Toolchain::of(&kernels.folder)?, TOOLS_MEND)?;
    let assembled = kernels.assemble(&tools, &flags.arch)?;
    let known = || {
        let names: Vec<&str> = assembled.kernels.keys().map(String::as_str).collect();
        names.join(", ")
    };
    if let Some(name) = flags
        .names
        .iter()
        .find(|name| !assembled.kernels.contains_key(*name))
    {
        return Err(Error::NoSuchKernel {
            kernel: name.clone(),
            known: known(),
        });
    }

    let multiprocessor = Multiprocessor::of(&flags.arch);
    let mut reports = Vec::new();
    for (name, compiled) in &assembled.kernels {
        if !flags.names.is_empty() && !flags.names.contains(name) {
            continue;
        }
        if flags.sass {
            compiled.print(name);
        }
        let threads = flags.block.or(assembled.bounds.get(name).copied());
        let block = threads.map(|threads| Block {
            threads,
            dynamic_shared_bytes: flags.dynamic_shared,
        });
        reports.push(KernelReport {
            kernel: name.clone(),
            arch: flags.arch.clone(),
            block,
            rust: compiled.side(block, multiprocessor),
            cpp: None,
        });
    }
    if !flags.sass {
        let text = if flags.names.is_empty() {
            report::summary(&reports)
        } else {
            report::details(&reports)
        };
        output::line(text.trim_end());
    }
    if let Some(path) = &flags.json {
        let text = serde_json::to_string_pretty(&reports).map_err(Error::json(path))?;
        std::fs::write(path, text + "\n").map_err(Error::file("write", path))?;
    }
    Ok(Outcome::Clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_by_its_function() {
        let texts = [
            ("src/lib.rs", "mod a;\n"),
            (
                "src/a.rs",
                "fn smoother() {}\npub unsafe fn smooth(x: f32) {}\n",
            ),
        ]
        .map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        assert_eq!(place_of("smooth", &texts), (Path::new("src/a.rs"), 2));
        assert_eq!(place_of("rough", &texts), (Path::new("src/lib.rs"), 0));
        assert_eq!(place_of("rough", &[]), (Path::new("src/lib.rs"), 0));
    }

    #[test]
    fn what_is_no_crate_of_kernels_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let of = |folder: &Path| {
            let kernels = flags::KernelCrate {
                folder: Some(folder.to_owned()),
            };
            Kernels::find(&kernels).map(|_| ()).unwrap_err().to_string()
        };
        assert!(of(folder.path()).contains("it has no Cargo.toml"));
        // This crate contains no kernels.
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(of(own).contains("it does not depend on cuda_std"));
        let write = |file: &str, text: &str| {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[workspace]\nmembers = [\"a\"]\n");
        write("a/Cargo.toml", "[package]\nname = \"a\"\n");
        write("a/src/lib.rs", "");
        assert!(of(folder.path()).contains("describes a workspace, not a package"));
        write("Cargo.toml", "no TOML");
        assert!(of(folder.path()).starts_with("cannot read the crate in"));
    }
}
