//! `cargo xtask inspect`: shows the cost of each kernel, without a GPU.
//!
//! `cargo_halo::inspect` reads the committed PTX. Where nvcc is installed, the CUDA C++ twins in
//! `baselines/` are shown beside it.

use std::collections::BTreeMap;
use std::path::Path;

use cargo_halo::inspect::report::{self, KernelReport};
use cargo_halo::inspect::resources::{Block, Multiprocessor};
use cargo_halo::inspect::{Assembled, Compiled, Tools, gates};
use cargo_halo::kernels::rust_files;
use cargo_halo::toolchain::Toolchain;
use cargo_halo::{Outcome, output};
use gpu_kernels::registry::{self, Entry};
use halo_baselines::cuda;

use crate::error::{Error, Shared};
use crate::flags::Inspect;
use crate::ptx;
use crate::tidy;
use crate::workspace;

/// The command that installs ptxas and nvdisasm.
const TOOLS_MEND: &str = ".ci/device-toolchain --toolkit";

/// Prints what the flags ask for. Returns findings where gates fail.
pub(crate) fn run(flags: &Inspect) -> Result<Outcome, Error> {
    let root = workspace::root()?;
    let kernels: Vec<Entry> = registry::entries().copied().collect();
    let selected = select(&kernels, flags)?;
    let tools = Tools::find(&Toolchain::of(&root)?, TOOLS_MEND)?;
    if flags.gates {
        return check_gates(&root, &selected, &tools);
    }
    let rust = compile_rust(&root, &tools, &flags.arch)?;

    let nvcc = match cuda::Toolchain::find() {
        Ok(nvcc) => Some(nvcc),
        Err(why) => {
            eprintln!("inspect: the CUDA C++ baselines are not shown: {why}");
            None
        }
    };
    let cpp = nvcc
        .as_ref()
        .map(|nvcc| compile_baselines(nvcc, &tools, &selected, &flags.arch))
        .transpose()?;

    let multiprocessor = Multiprocessor::of(&flags.arch);
    let mut reports = Vec::new();
    for entry in &selected {
        let bounds = rust.bounds.get(entry.name).copied();
        let block = block_of(flags, entry, bounds);
        let side = |compiled: &Compiled| compiled.side(block, multiprocessor);
        let own = rust
            .kernels
            .get(entry.name)
            .ok_or_else(|| Error::NotInPtx {
                kernel: entry.name.to_owned(),
            })?;
        let twin = cpp.as_ref().and_then(|kernels| {
            let same = entry.twins.iter().find(|twin| twin.style.is_none())?;
            kernels.get(same.entry)
        });
        if flags.sass {
            own.print(&format!("{}, Rust", entry.name));
            if let Some(twin) = twin {
                twin.print(&format!("{}, CUDA C++", entry.name));
            }
        }
        reports.push(KernelReport {
            kernel: entry.name.to_owned(),
            arch: flags.arch.clone(),
            block,
            rust: side(own),
            cpp: twin.map(side),
        });
    }

    if !flags.sass {
        let text = if flags.kernels.is_empty() {
            report::summary(&reports)
        } else {
            report::details(&reports)
        };
        output::line(text.trim_end());
        if let Some(nvcc) = &nvcc {
            eprintln!("inspect: CUDA C++ by nvcc {}", nvcc.version());
        }
    }
    if let Some(path) = &flags.json {
        let text = serde_json::to_string_pretty(&reports).map_err(Shared::json(path))?;
        workspace::write(path, text + "\n")?;
    }
    Ok(Outcome::Clean)
}

fn check_gates(root: &Path, selected: &[&Entry], tools: &Tools) -> Result<Outcome, Error> {
    let rust = compile_rust(root, tools, gates::ARCH)?;
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    for entry in selected {
        let compiled = rust
            .kernels
            .get(entry.name)
            .ok_or_else(|| Error::NotInPtx {
                kernel: entry.name.to_owned(),
            })?;
        subjects.push(gates::Subject {
            path: Path::new(entry.file),
            line: entry.line as usize,
            name: entry.name,
            compiled,
        });
    }
    let mut found = Vec::new();
    for path in rust_files(&root.join(tidy::KERNELS))? {
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let text = workspace::read(&path)?;
        found.extend(gates::parse(relative, &text, &mut findings));
    }
    let compared = gates::check(&found, gates::Scope::Folder, &subjects, &mut findings);
    findings.sort();
    for finding in &findings {
        output::line(&finding.to_string());
    }
    eprintln!(
        "inspect: {compared} comparisons by {} gates and of spills, {} kernels, for {}; {} findings",
        found.len(),
        subjects.len(),
        gates::ARCH,
        findings.len()
    );
    Ok(if findings.is_empty() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

/// The kernels that the flags name, or all, in the order of the table.
fn select<'a>(kernels: &'a [Entry], flags: &Inspect) -> Result<Vec<&'a Entry>, Error> {
    for family in &flags.families {
        if !kernels.iter().any(|entry| entry.family == family) {
            return Err(Error::NoSuchFamily {
                family: family.clone(),
            });
        }
    }
    for name in &flags.kernels {
        if !kernels.iter().any(|entry| entry.name == name) {
            let similar: Vec<&str> = kernels
                .iter()
                .map(|entry| entry.name)
                .filter(|known| known.contains(name.as_str()))
                .collect();
            return Err(Error::NoSuchKernel {
                kernel: name.clone(),
                similar: similar.join(", "),
            });
        }
    }
    let everything = flags.kernels.is_empty() && flags.families.is_empty();
    Ok(kernels
        .iter()
        .filter(|entry| {
            everything
                || flags.kernels.iter().any(|name| name == entry.name)
                || flags.families.iter().any(|family| family == entry.family)
        })
        .collect())
}

/// The library's kernels, assembled.
fn compile_rust(root: &Path, tools: &Tools, arch: &str) -> Result<Assembled, Error> {
    Ok(tools.assemble(&root.join(ptx::committed_for(arch)), arch)?)
}

fn compile_baselines(
    nvcc: &cuda::Toolchain,
    tools: &Tools,
    selected: &[&Entry],
    arch: &str,
) -> Result<BTreeMap<String, Compiled>, Error> {
    let families: Vec<&str> = cuda::families()
        .into_iter()
        .filter(|family| selected.iter().any(|entry| entry.family == *family))
        .collect();
    let compiled: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = families
            .iter()
            .map(|family| scope.spawn(move || nvcc.compile(family, arch)))
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let work =
        tempfile::tempdir().map_err(Error::file("make a folder below", std::env::temp_dir()))?;
    let cubin = work.path().join("baseline.cubin");
    let mut kernels = BTreeMap::new();
    for result in compiled {
        let baseline = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        std::fs::write(&cubin, &baseline.cubin).map_err(Error::file("write", &cubin))?;
        kernels.extend(tools.join(&baseline.resources, &cubin)?);
    }
    Ok(kernels)
}

/// The block for the occupancy: the flags' block, or that of the table's example, or the largest
/// that the kernel allows.
fn block_of(flags: &Inspect, entry: &Entry, bounds: Option<u32>) -> Option<Block> {
    let example = entry.geometry(&entry.example).ok().map(|geometry| Block {
        threads: geometry.block.iter().product(),
        dynamic_shared_bytes: geometry.dynamic_shared_bytes,
    });
    let threads = flags
        .block
        .or(example.map(|block| block.threads))
        .or(bounds)?;
    let dynamic_shared_bytes = flags.dynamic_shared.unwrap_or_else(|| {
        example
            .filter(|block| block.threads == threads)
            .map_or(0, |block| block.dynamic_shared_bytes)
    });
    Some(Block {
        threads,
        dynamic_shared_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn flags(line: &str) -> Inspect {
        let line = format!("xtask inspect {line}");
        match crate::flags::Xtask::parse_from(line.split_whitespace()).task {
            crate::flags::Task::Inspect(flags) => flags,
            other => panic!("parsed as {other:?}"),
        }
    }

    #[test]
    fn kernels_are_selected_by_name_and_family() {
        let kernels: Vec<Entry> = registry::entries().copied().collect();
        let names = |line: &str| {
            select(&kernels, &flags(line))
                .map(|selected| selected.iter().map(|entry| entry.name).collect::<Vec<_>>())
        };
        assert_eq!(names("").unwrap().len(), kernels.len());
        assert_eq!(
            names("stencil1d_vector4 stencil1d_constant").unwrap(),
            ["stencil1d_constant", "stencil1d_vector4"]
        );
        let family = names("--family stencil1d").unwrap();
        assert_eq!(
            family.len(),
            registry::family("stencil1d").unwrap().kernels.len()
        );
        let error = names("stencil1d_custom").unwrap_err().to_string();
        assert!(
            error.contains("stencil1d_custom_f32, stencil1d_custom_f64"),
            "{error}"
        );
        assert!(names("nosuch").is_err());
        assert!(names("--family nosuch").is_err());
    }

    #[test]
    fn the_block_is_the_flags_then_the_tables_then_the_kernels() {
        let block = |line: &str, entry: &Entry, bounds| {
            block_of(&flags(line), entry, bounds)
                .map(|block| (block.threads, block.dynamic_shared_bytes))
        };
        let constant = registry::entry("stencil1d_constant").unwrap();
        assert_eq!(block("", constant, None), Some((32, 160)));
        assert_eq!(block("", constant, Some(512)), Some((32, 160)));
        // Another block has another tile, which is unknown.
        assert_eq!(block("--block 256", constant, None), Some((256, 0)));
        assert_eq!(
            block("--block 256 --dynamic-shared 8192", constant, None),
            Some((256, 8192))
        );
        let unknown = Entry {
            geometry_of: |kernel, _| Err(registry::Refusal::NothingPerBlock { kernel }),
            ..*constant
        };
        assert_eq!(block("", &unknown, Some(512)), Some((512, 0)));
        assert_eq!(block("--block 64", &unknown, Some(512)), Some((64, 0)));
        assert_eq!(block("", &unknown, None), None);
    }
}
