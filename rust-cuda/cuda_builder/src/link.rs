//! From rlibs of bitcode to PTX.
//!
//! | step | tool | result |
//! |---|---|---|
//! | link the kernel crate and its dependencies | `llvm-link` | everything they define |
//! | add what they need of `core` and `alloc` | `llvm-link --only-needed` | one module |
//! | make it device code | [`crate::ir::prepare`] | convergence, address spaces, fences |
//! | optimise | `opt` | one module, exports alone visible |
//! | write PTX | `llc` | the PTX |

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::archive;
use crate::builder::CudaBuilder;
use crate::cargo::Built;
use crate::error::{CudaBuilderError, Function};
use crate::ir::{self, module::Module};
use crate::tools::{Toolchain, describe};

/// What linking produced.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) ptx: String,
    /// The module that the PTX was written from, as text.
    pub(crate) module: PathBuf,
    pub(crate) kernels: Vec<String>,
    pub(crate) exports: Vec<String>,
}

/// Bitcode files, one per codegen unit.
#[derive(Debug)]
pub(crate) struct Units {
    /// Of the kernel crate and its dependencies.
    own: Vec<PathBuf>,
    /// Of the standard library.
    standard: Vec<PathBuf>,
}

/// Takes the bitcode out of what cargo built. After this, cargo may overwrite its files.
///
/// # Errors
///
/// When a library cannot be read or holds no bitcode.
pub(crate) fn unpack(built: &Built, work: &Path) -> Result<Units, CudaBuilderError> {
    Ok(Units {
        own: unpack_all(&built.libraries, work, "crate")?,
        standard: unpack_all(&built.standard, work, "std")?,
    })
}

/// Links what cargo built, in the folder `work`. `spaces` has the statics whose address space the
/// source gives as a number.
///
/// # Errors
///
/// [`CudaBuilderError::StepFailed`] with the tool's own words,
/// [`CudaBuilderError::Ir`] when the code cannot run on a device.
pub(crate) fn link(
    toolchain: &Toolchain,
    builder: &CudaBuilder,
    package: &str,
    units: &Units,
    spaces: &[(String, u32)],
    work: &Path,
) -> Result<Linked, CudaBuilderError> {
    let linked = work.join("1-crates.bc");
    let mut command = Command::new(&toolchain.llvm_link);
    command.args(&units.own).arg("-o").arg(&linked);
    run("linking the crates", &mut command, &linked)?;

    // A dependency may need another one that was linked before it, so this is
    // repeated until nothing more is found.
    let mut missing: Option<HashSet<String>> = None;
    let mut input = linked;
    let text = loop {
        let output = work.join(if input.ends_with("2-linked.ll") {
            "2-linked-again.ll"
        } else {
            "2-linked.ll"
        });
        let mut command = Command::new(&toolchain.llvm_link);
        command
            .args(["-S", "--only-needed"])
            .arg(&input)
            .args(&units.standard)
            .arg("-o")
            .arg(&output);
        run("linking the standard library", &mut command, &input)?;
        let text = fs::read_to_string(&output).map_err(CudaBuilderError::io("read", &output))?;
        let mut module = Module::parse(&text).map_err(|source| CudaBuilderError::Ir {
            package: package.to_owned(),
            source,
        })?;
        if ir::wide_casts::replace(&mut module) {
            fs::write(&output, module.to_string())
                .map_err(CudaBuilderError::io("write", &output))?;
            input = output;
            continue;
        }
        let still_missing = ir::reach::undefined(&module);
        if still_missing.is_empty() || missing.as_ref() == Some(&still_missing) {
            break text;
        }
        missing = Some(still_missing);
        input = output;
    };

    let in_ir = |source| CudaBuilderError::Ir {
        package: package.to_owned(),
        source,
    };
    let prepared = ir::prepare(
        &text,
        &ir::Options {
            ftz: builder.ftz,
            capability: builder.arch.capability_value(),
            allow_undefined: builder.allow_undefined.clone(),
            spaces: spaces.to_vec(),
        },
    )
    .map_err(in_ir)?;
    let unoptimised = work.join("3-device.ll");
    fs::write(&unoptimised, &prepared.text).map_err(CudaBuilderError::io("write", &unoptimised))?;

    let public = work.join("exports");
    fs::write(&public, prepared.exports.join("\n"))
        .map_err(CudaBuilderError::io("write", &public))?;
    let module = work.join("4-optimised.ll");
    let mut command = Command::new(&toolchain.opt);
    command
        .arg("-S")
        .arg(if builder.nvvm_opts {
            // Address spaces come first. Simplification merges loads in the arms of a branch; if
            // they are from different memories, the merged one is a generic load and stays one.
            // LLVM finds address spaces only after inlining, and only of pointers that are not kept
            // in memory.
            "-passes=internalize,globaldce,always-inline,\
             function(sroa,infer-address-spaces),default<O3>"
        } else {
            // Functions that must always be inlined are inlined without optimisation, too: reading
            // a special register, for instance.
            "-passes=internalize,globaldce,always-inline,globaldce"
        })
        .arg(joined("--internalize-public-api-file=", &public))
        .arg(&unoptimised)
        .arg("-o")
        .arg(&module);
    run("optimising", &mut command, &unoptimised)?;
    let text = fs::read_to_string(&module).map_err(CudaBuilderError::io("read", &module))?;
    let text = ir::finish::finish(&text).map_err(in_ir)?;
    let ptx_version = ptx_version(builder, &text);
    fs::write(&module, text).map_err(CudaBuilderError::io("write", &module))?;

    let ptx = work.join("5.ptx");
    let mut command = Command::new(&toolchain.llc);
    command
        .arg(if builder.nvvm_opts { "-O3" } else { "-O0" })
        .arg(format!("-mcpu={}", builder.arch.sm()))
        .args(ptx_version)
        .arg(format!(
            "--nvptx-prec-divf32={}",
            if builder.fast_div { 1 } else { 2 }
        ))
        .arg(format!(
            "--nvptx-prec-sqrtf32={}",
            u8::from(!builder.fast_sqrt)
        ))
        .arg(format!(
            "--nvptx-fma-level={}",
            if builder.fma_contraction { 2 } else { 0 }
        ))
        .arg(&module)
        .arg("-o")
        .arg(&ptx);
    run("writing PTX", &mut command, &module)?;
    let text = fs::read_to_string(&ptx).map_err(CudaBuilderError::io("read", &ptx))?;
    Ok(Linked {
        ptx: text,
        module,
        kernels: prepared.kernels,
        exports: prepared.exports,
    })
}

/// Assembles the text of a module to bitcode.
///
/// # Errors
///
/// [`CudaBuilderError::StepFailed`].
pub(crate) fn assemble(
    toolchain: &Toolchain,
    text: &Path,
    bitcode: &Path,
) -> Result<(), CudaBuilderError> {
    let mut command = Command::new(&toolchain.opt);
    command
        .arg("-passes=verify")
        .arg(text)
        .arg("-o")
        .arg(bitcode);
    run("assembling the LLVM IR", &mut command, text)
}

/// The PTX version. It is the first of these that applies:
///
/// - the user's;
/// - for targets before sm_75, 6.3, which has `.sync` warp operations, `activemask` and
///   `nanosleep`;
/// - for sm_90, 8.0 where the assembly in `module` needs it;
/// - LLVM's choice: the oldest version that knows the target, whatever the instructions need.
fn ptx_version(builder: &CudaBuilder, module: &str) -> Option<String> {
    /// Instructions of sm_90 that PTX 7.8, LLVM's choice for it, lacks.
    const OF_8_0: [&str; 4] = [
        "cp.async.bulk.",
        "mbarrier.arrive.expect_tx.",
        "fence.proxy.async",
        "fence.mbarrier_init.",
    ];
    let needed = match builder.arch.capability_value() {
        ..75 => Some((6, 3)),
        90 if module.lines().any(|line| {
            line.contains(" asm ") && OF_8_0.iter().any(|name| line.contains(name))
        }) =>
        {
            Some((8, 0))
        }
        _ => None,
    };
    builder
        .ptx_version
        .or(needed)
        .map(|(major, minor)| format!("-mattr=+ptx{major}{minor}"))
}

/// Writes every codegen unit of `libraries` to a file of its own.
fn unpack_all(
    libraries: &[PathBuf],
    work: &Path,
    prefix: &str,
) -> Result<Vec<PathBuf>, CudaBuilderError> {
    let mut files = Vec::new();
    for (index, library) in libraries.iter().enumerate() {
        let bytes = fs::read(library).map_err(CudaBuilderError::io("read", library))?;
        let objects =
            archive::bitcode(&bytes).map_err(|problem| CudaBuilderError::BadArtifact {
                file: library.clone(),
                problem: problem.to_string(),
            })?;
        for (unit, object) in objects.iter().enumerate() {
            let file = work.join(format!("{prefix}-{index:03}-{unit:03}.bc"));
            fs::write(&file, object).map_err(CudaBuilderError::io("write", &file))?;
            files.push(file);
        }
    }
    Ok(files)
}

fn joined(option: &str, path: &Path) -> std::ffi::OsString {
    let mut joined = std::ffi::OsString::from(option);
    joined.push(path);
    joined
}

/// Runs one step on `file`.
fn run(step: &'static str, command: &mut Command, file: &Path) -> Result<(), CudaBuilderError> {
    let output = command
        .output()
        .map_err(CudaBuilderError::io("run", command.get_program()))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(CudaBuilderError::StepFailed {
        step,
        function: failed_function(&stderr).map(|name| Box::new(Function { name, line: None })),
        file: file.to_owned(),
        status: output.status.to_string(),
        stderr: without_stack_dump(&stderr).to_owned(),
        command: describe(command),
    })
}

/// The Rust name of the function that one of LLVM's tools stopped at, if the tool names it.
fn failed_function(stderr: &str) -> Option<String> {
    let found = [" on function '@", "In function: ", "in function "]
        .iter()
        .find_map(|before| stderr.split_once(before))?;
    let name = found.1.split(['\'', '\n', ' ']).next()?;
    Some(format!("{:#}", rustc_demangle::demangle(name)))
}

/// What a tool said, without its stack dump.
fn without_stack_dump(stderr: &str) -> &str {
    let end = ["PLEASE submit a bug report", "Stack dump:"]
        .iter()
        .filter_map(|mark| stderr.find(mark))
        .min();
    stderr[..end.unwrap_or(stderr.len())].trim_end()
}

/// The file and line of the function called `path`, if `sources` define exactly one function of its
/// name.
pub(crate) fn line_of(path: &str, sources: &[PathBuf]) -> Option<(PathBuf, usize)> {
    let name = path.rsplit("::").find(|part| !part.starts_with('{'))?;
    let mut found = None;
    for source in sources {
        let text = fs::read_to_string(source).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let defines = line.split_once("fn ").is_some_and(|(before, after)| {
                !before.trim_start().starts_with("//")
                    && after
                        .strip_prefix(name)
                        .is_some_and(|rest| rest.starts_with(['(', '<']))
            });
            if !defines {
                continue;
            }
            if found.is_some() {
                return None;
            }
            found = Some((source.clone(), index + 1));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_says_where_it_stopped() {
        let crash = "LLVM ERROR: unsupported library call operation\nPLEASE submit a bug report\n\
                     Stack dump:\n2.\tRunning pass 'X' on function '@_RNvCs1234_1k4wide'\n #0 0x1\n";
        assert_eq!(failed_function(crash).as_deref(), Some("k::wide"));
        assert_eq!(
            without_stack_dump(crash),
            "LLVM ERROR: unsupported library call operation"
        );
        let selection = "LLVM ERROR: Cannot select: intrinsic %llvm.x\nIn function: k\nPLEASE submit a bug report";
        assert_eq!(failed_function(selection).as_deref(), Some("k"));
        assert_eq!(failed_function("llvm-link: no such file"), None);
    }

    #[test]
    fn a_functions_line_is_found_when_it_is_the_only_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.rs");
        fs::write(
            &file,
            "// fn wide() {}\npub unsafe fn wide(a: f32) {}\nfn wider() {}\nfn twice() {}\nmod m { fn twice() {} }\n",
        )
        .unwrap();
        let sources = [file.clone()];
        assert_eq!(line_of("k::wide", &sources), Some((file.clone(), 2)));
        assert_eq!(line_of("k::wide::{closure#0}", &sources), Some((file, 2)));
        assert_eq!(line_of("k::twice", &sources), None);
    }
}
