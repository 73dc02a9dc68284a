//! Computes the cost of each kernel without a GPU: ptxas assembles the PTX, and nvdisasm lists the
//! machine code.
//!
//! | module | contents |
//! |---|---|
//! | [`resources`] | registers, memory, spills, by ptxas; occupancy |
//! | [`sass`] | machine code and the kinds of its instructions |
//! | [`gates`] | comments beside the kernels that state requirements on both, and their check |
//! | [`report`] | tables and JSON |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::output;
use crate::process;
use crate::toolchain::Toolchain;

pub mod gates;
pub mod report;
pub mod resources;
pub mod sass;

use report::Side;
use resources::{Block, Multiprocessor, Resources};

/// The architectures that `--arch` takes.
pub const ARCHES: [&str; resources::MULTIPROCESSORS.len()] = {
    let mut arches = [""; resources::MULTIPROCESSORS.len()];
    let mut index = 0;
    while index < arches.len() {
        arches[index] = resources::MULTIPROCESSORS[index].arch;
        index += 1;
    }
    arches
};

/// A kernel's machine code, and ptxas's report on it.
#[derive(Debug)]
pub struct Compiled {
    pub resources: Resources,
    pub code: Vec<sass::Instruction>,
    pub counts: sass::Counts,
}

impl Compiled {
    /// Its part of a report, with the occupancy where the block is known.
    pub fn side(&self, block: Option<Block>, multiprocessor: Option<Multiprocessor>) -> Side {
        Side {
            resources: self.resources,
            occupancy: block
                .zip(multiprocessor)
                .map(|(block, found)| found.occupancy(&self.resources, block)),
            instructions: self.counts.clone(),
        }
    }

    /// Prints the machine code.
    pub fn print(&self, title: &str) {
        output::line(&format!("// {title}"));
        for instruction in &self.code {
            output::line(&format!("    {}", instruction.text));
        }
        output::line("");
    }
}

/// The programs that assemble and list kernels.
pub struct Tools {
    ptxas: PathBuf,
    nvdisasm: PathBuf,
}

/// The kernels of a PTX file, assembled.
pub struct Assembled {
    pub kernels: BTreeMap<String, Compiled>,
    /// The most threads per block, for kernels that declare a bound.
    pub bounds: BTreeMap<String, u32>,
}

impl Tools {
    /// `mend` is the command that installs them.
    pub fn find(toolchain: &Toolchain, mend: &'static str) -> Result<Self, Error> {
        let find = |tool: &'static str| {
            toolchain
                .find(&[tool])
                .ok_or(Error::MissingTool { tool, mend })
        };
        Ok(Self {
            ptxas: find("ptxas")?,
            nvdisasm: find("nvdisasm")?,
        })
    }

    /// Assembles PTX for a GPU of this architecture.
    pub fn assemble(&self, ptx: &Path, arch: &str) -> Result<Assembled, Error> {
        let text = std::fs::read_to_string(ptx).map_err(Error::file("read", ptx))?;
        let work = tempfile::tempdir()
            .map_err(Error::file("make a folder below", std::env::temp_dir()))?;
        let cubin = work.path().join("kernels.cubin");
        let mut command = Command::new(&self.ptxas);
        command.args(["--verbose", "--gpu-name", arch, "--output-file"]);
        command.arg(&cubin).arg(ptx);
        let said = process::both_outputs(&mut command)?;
        Ok(Assembled {
            kernels: self.join(&said, &cubin)?,
            bounds: resources::launch_bounds(&text),
        })
    }

    /// The kernels of a cubin, with the assembler's report on each.
    pub fn join(&self, said: &str, cubin: &Path) -> Result<BTreeMap<String, Compiled>, Error> {
        let listing = process::output(Command::new(&self.nvdisasm).arg("-c").arg(cubin))?;
        let mut code = sass::parse(&listing);
        let kernels = resources::parse(said)
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
            });
        Ok(kernels.collect())
    }
}
