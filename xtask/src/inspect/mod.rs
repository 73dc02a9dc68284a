//! `cargo xtask inspect`: what each kernel costs, without a GPU.
//!
//! The committed PTX is assembled by ptxas and listed by nvdisasm; where there is
//! an nvcc, the CUDA C++ twins in `baselines/` are shown beside it.
//!
//! | file | what it knows |
//! |---|---|
//! | [`resources`] | registers, memory, spills, by ptxas; occupancy |
//! | [`sass`] | machine code and the kinds of its instructions |
//! | [`gates`] | what comments beside the kernels demand of both |
//! | [`report`] | tables and JSON |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::baselines;
use crate::error::Error;
use crate::flags::Inspect;
use crate::output;
use crate::process;
use crate::ptx;
use crate::rust_source;
use crate::toolchain::{PTX_TOOLS_MEND, Toolchain};
use crate::workspace;

mod gates;
mod report;
mod resources;
mod sass;

use report::{KernelReport, Side};
use resources::{Block, Multiprocessor, Resources};

/// The architectures that `--arch` takes.
pub(crate) const ARCHES: [&str; resources::MULTIPROCESSORS.len()] = {
    let mut arches = [""; resources::MULTIPROCESSORS.len()];
    let mut index = 0;
    while index < arches.len() {
        arches[index] = resources::MULTIPROCESSORS[index].arch;
        index += 1;
    }
    arches
};

/// A kernel's machine code, and what ptxas said of it.
#[derive(Debug)]
struct Compiled {
    resources: Resources,
    code: Vec<sass::Instruction>,
    counts: sass::Counts,
}

/// A kernel in the sources.
struct Source {
    family: String,
    name: String,
    /// Relative to the repository's root.
    path: PathBuf,
    line: usize,
}

/// The programs that turn PTX into something to look at.
struct Tools {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
}

/// Prints what the flags ask for. Comes to findings where gates do not hold.
pub(crate) fn run(flags: &Inspect) -> Result<Outcome, Error> {
    let root = workspace::root()?;
    let sources = sources(&root)?;
    let selected = select(&sources, flags)?;
    let tools = Tools::find(&Toolchain::of(&root)?)?;
    if flags.gates {
        return check_gates(&root, &selected, &tools);
    }
    let rust = compile_rust(&root, &tools, &flags.arch)?;

    let nvcc = match baselines::Toolchain::find() {
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
    for source in &selected {
        let bounds = rust.bounds.get(&source.name).copied();
        let block = block_of(flags, source, bounds);
        let side = |compiled: &Compiled| Side {
            resources: compiled.resources,
            occupancy: block
                .zip(multiprocessor)
                .map(|(block, found)| found.occupancy(&compiled.resources, block)),
            instructions: compiled.counts.clone(),
        };
        let own = rust
            .kernels
            .get(&source.name)
            .ok_or_else(|| Error::NotInPtx {
                kernel: source.name.clone(),
            })?;
        let twin = cpp.as_ref().and_then(|kernels| kernels.get(&source.name));
        if flags.sass {
            print_listing(&format!("{}, Rust", source.name), own);
            if let Some(twin) = twin {
                print_listing(&format!("{}, CUDA C++", source.name), twin);
            }
        }
        reports.push(KernelReport {
            kernel: source.name.clone(),
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
        let text = serde_json::to_string_pretty(&reports).map_err(Error::json("write", path))?;
        workspace::write(path, text + "\n")?;
    }
    Ok(Outcome::Clean)
}

fn check_gates(root: &Path, selected: &[&Source], tools: &Tools) -> Result<Outcome, Error> {
    let rust = compile_rust(root, tools, gates::ARCH)?;
    let mut findings = Vec::new();
    let mut subjects = Vec::new();
    for source in selected {
        let compiled = rust
            .kernels
            .get(&source.name)
            .ok_or_else(|| Error::NotInPtx {
                kernel: source.name.clone(),
            })?;
        subjects.push(gates::Subject {
            path: &source.path,
            line: source.line,
            name: &source.name,
            compiled,
        });
    }
    let mut found = Vec::new();
    for path in workspace::rust_files(&root.join(KERNELS))? {
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let text = workspace::read(&path)?;
        found.extend(gates::parse(relative, &text, &mut findings));
    }
    let compared = gates::check(&found, &subjects, &mut findings);
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

const KERNELS: &str = "gpu-kernels/src";

/// Every kernel of every family, in the order of the files.
fn sources(root: &Path) -> Result<Vec<Source>, Error> {
    let mut sources = Vec::new();
    for family in workspace::families(root)? {
        let folder = Path::new(KERNELS).join(&family);
        for path in workspace::rust_files(&root.join(&folder))? {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let syntax = rust_source::parse(relative, &workspace::read(&path)?)?;
            for kernel in rust_source::kernels(&syntax, &format!("{family}_")) {
                sources.push(Source {
                    family: family.clone(),
                    name: kernel.name,
                    path: relative.to_owned(),
                    line: kernel.line,
                });
            }
        }
    }
    Ok(sources)
}

/// The kernels that the flags name, in the order of the sources; all, where they
/// name none.
fn select<'a>(sources: &'a [Source], flags: &Inspect) -> Result<Vec<&'a Source>, Error> {
    for family in &flags.families {
        if !sources.iter().any(|source| &source.family == family) {
            return Err(Error::NoSuchFamily {
                family: family.clone(),
            });
        }
    }
    for name in &flags.kernels {
        if !sources.iter().any(|source| &source.name == name) {
            let similar: Vec<&str> = sources
                .iter()
                .map(|source| source.name.as_str())
                .filter(|known| known.contains(name.as_str()))
                .collect();
            return Err(Error::NoSuchKernel {
                kernel: name.clone(),
                similar: similar.join(", "),
            });
        }
    }
    let everything = flags.kernels.is_empty() && flags.families.is_empty();
    Ok(sources
        .iter()
        .filter(|source| {
            everything
                || flags.kernels.contains(&source.name)
                || flags.families.contains(&source.family)
        })
        .collect())
}

impl Tools {
    fn find(toolchain: &Toolchain) -> Result<Self, Error> {
        let find = |tool: &'static str| {
            toolchain.find(&[tool]).ok_or(Error::MissingTool {
                tool,
                mend: PTX_TOOLS_MEND,
            })
        };
        Ok(Self {
            ptxas: find("ptxas")?,
            nvdisasm: find("nvdisasm")?,
        })
    }

    /// The code of each kernel in this cubin.
    fn disassemble(&self, cubin: &Path) -> Result<BTreeMap<String, Vec<sass::Instruction>>, Error> {
        let listing = process::output(Command::new(&self.nvdisasm).arg("-c").arg(cubin))?;
        Ok(sass::parse(&listing))
    }
}

/// The library's kernels, compiled.
struct Rust {
    kernels: BTreeMap<String, Compiled>,
    /// The most threads per block, of kernels that say.
    bounds: BTreeMap<String, u32>,
}

fn compile_rust(root: &Path, tools: &Tools, arch: &str) -> Result<Rust, Error> {
    let path = root.join(ptx::committed_for(arch));
    let bounds = resources::launch_bounds(&workspace::read(&path)?);
    let work =
        tempfile::tempdir().map_err(Error::file("make a folder below", std::env::temp_dir()))?;
    let cubin = work.path().join("rust.cubin");
    let mut command = Command::new(&tools.ptxas);
    command.args(["--verbose", "--gpu-name", arch, "--output-file"]);
    command.arg(&cubin).arg(&path);
    let said = process::both_outputs(&mut command)?;
    Ok(Rust {
        kernels: join(resources::parse(&said), tools.disassemble(&cubin)?),
        bounds,
    })
}

fn compile_baselines(
    nvcc: &baselines::Toolchain,
    tools: &Tools,
    selected: &[&Source],
    arch: &str,
) -> Result<BTreeMap<String, Compiled>, Error> {
    let families: Vec<&str> = baselines::families()
        .into_iter()
        .filter(|family| selected.iter().any(|source| source.family == *family))
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
        kernels.extend(join(
            resources::parse(&baseline.resources),
            tools.disassemble(&cubin)?,
        ));
    }
    Ok(kernels)
}

fn join(
    resources: BTreeMap<String, Resources>,
    mut code: BTreeMap<String, Vec<sass::Instruction>>,
) -> BTreeMap<String, Compiled> {
    resources
        .into_iter()
        .filter_map(|(name, resources)| {
            let code = code.remove(&name)?;
            let counts = sass::Counts::of(&code);
            let compiled = Compiled {
                resources,
                code,
                counts,
            };
            Some((name, compiled))
        })
        .collect()
}

/// The block that occupancy is computed for: what the flags say, else the most
/// threads that the kernel allows, else the textbook's.
fn block_of(flags: &Inspect, source: &Source, bounds: Option<u32>) -> Option<Block> {
    let textbook = textbook_block(&source.family, &source.name);
    let threads = flags
        .block
        .or(bounds)
        .or(textbook.map(|block| block.threads))?;
    let dynamic_shared_bytes = flags.dynamic_shared.unwrap_or_else(|| {
        textbook
            .filter(|block| block.threads == threads)
            .map_or(0, |block| block.dynamic_shared_bytes)
    });
    Some(Block {
        threads,
        dynamic_shared_bytes,
    })
}

/// How the textbook's kernels are launched by default; host's `gpu.rs` files
/// compute the same. `None` for any other kernel.
fn textbook_block(family: &str, kernel: &str) -> Option<Block> {
    let variant = kernel.strip_prefix(family)?.strip_prefix('_')?;
    let block = |threads, dynamic_shared_bytes| {
        Some(Block {
            threads,
            dynamic_shared_bytes,
        })
    };
    match family {
        // 64³ points: four threads for each along the pencil, and a halo of 4.
        "derivative3d" => {
            let (_, pencils) = variant.split_once("_pencil")?;
            block(4 * 64, pencils.parse::<u32>().ok()? * (64 + 8) * 4)
        }
        "heat2d" => [
            "global",
            "shared_core",
            "shared_overlap",
            "shared_halo",
            "texture",
        ]
        .contains(&variant)
        .then_some(Block {
            threads: 16 * 16,
            dynamic_shared_bytes: 0,
        }),
        "stencil1d" => ["constant", "readonly"]
            .contains(&variant)
            .then_some(Block {
                threads: 32,
                dynamic_shared_bytes: (32 + 8) * 4,
            }),
        "reduction" => {
            let (variant, _) = variant.rsplit_once('_')?;
            match variant {
                "global" | "shared" | "shared_unroll4" => block(128, 0),
                "shared_unroll4_dynamic" => block(128, 128 * 4),
                _ => None,
            }
        }
        "nbody" => {
            let (variant, real) = variant.rsplit_once('_')?;
            let body = if real == "f64" { 32 } else { 16 };
            match variant {
                "shared" => block(128, 128 * body),
                _ if variant.starts_with("aos_unroll") => block(128, 0),
                _ => None,
            }
        }
        _ => None,
    }
}

fn print_listing(title: &str, compiled: &Compiled) {
    output::line(&format!("// {title}"));
    for instruction in &compiled.code {
        output::line(&format!("    {}", instruction.text));
    }
    output::line("");
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

    fn source(name: &str) -> Source {
        Source {
            family: name.split('_').next().unwrap().to_owned(),
            name: name.to_owned(),
            path: PathBuf::new(),
            line: 1,
        }
    }

    #[test]
    fn kernels_are_selected_by_name_and_family() {
        let sources = ["heat2d_a", "heat2d_b", "nbody_a"].map(source);
        let names = |line: &str| {
            select(&sources, &flags(line)).map(|selected| {
                selected
                    .iter()
                    .map(|source| source.name.clone())
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(names("").unwrap().len(), 3);
        assert_eq!(names("nbody_a heat2d_a").unwrap(), ["heat2d_a", "nbody_a"]);
        assert_eq!(names("--family heat2d").unwrap(), ["heat2d_a", "heat2d_b"]);
        let error = names("heat2d").unwrap_err().to_string();
        assert!(error.contains("heat2d_a, heat2d_b"), "{error}");
        assert!(names("nosuch").is_err());
    }

    #[test]
    fn the_block_is_the_flags_then_the_kernels_then_the_textbooks() {
        let shared = source("nbody_shared_f64");
        let block = |line: &str, source: &Source, bounds| {
            block_of(&flags(line), source, bounds)
                .map(|block| (block.threads, block.dynamic_shared_bytes))
        };
        assert_eq!(block("", &shared, None), Some((128, 4096)));
        // Another block has another tile: that is not known.
        assert_eq!(block("--block 256", &shared, None), Some((256, 0)));
        assert_eq!(
            block("--block 256 --dynamic-shared 8192", &shared, None),
            Some((256, 8192))
        );
        assert_eq!(block("", &shared, Some(512)), Some((512, 0)));
        assert_eq!(block("--block 64", &shared, Some(512)), Some((64, 0)));
        assert_eq!(block("", &source("nbody_other_f32"), None), None);
    }

    #[test]
    fn every_textbook_kernel_has_a_block() {
        let root = workspace::root().unwrap();
        let known = sources(&root)
            .unwrap()
            .iter()
            .filter(|source| textbook_block(&source.family, &source.name).is_some())
            .count();
        assert_eq!(known, 6 + 5 + 14 + 8 + 2);
    }
}
