//! Helpers of the test suites: they build fixtures and read PTX.
#![allow(dead_code, reason = "each suite is a crate of its own and uses a part")]

use std::collections::HashMap;
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use cuda_builder::{CudaBuilder, CudaBuilderError, NvvmArch, Ptx};

/// How to install what the device tests need.
pub const INSTALL: &str = "the device toolchain is missing; install it with `.ci/device-toolchain` \
                           (Debian) or `rustup component add rust-src llvm-tools` and a CUDA toolkit";

/// The folder of a fixture.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// The default of all builds with this workspace's target directory: `core` is compiled once per
/// target.
pub fn target_dir() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    target
        .expect("a folder in the target directory")
        .join("cuda-builder")
}

/// The target directory of a build that has nothing to do with this one: `core` is
/// compiled anew, once for all tests that need such a directory.
pub fn outer_target_dir() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("an outer target")
}

/// A builder for a fixture, for sm_75 unless told otherwise.
pub fn builder(name: &str) -> CudaBuilder {
    CudaBuilder::new(fixture(name)).target_dir(target_dir())
}

/// Builds, or says how to install what is missing.
pub fn build(builder: &CudaBuilder) -> Ptx {
    match builder.build_ptx() {
        Ok(ptx) => ptx,
        Err(
            error @ (CudaBuilderError::MissingTool(_) | CudaBuilderError::MissingRustSrc { .. }),
        ) => {
            panic!("{INSTALL}\n{error}")
        }
        Err(error) => panic!("{error}"),
    }
}

/// The results of `work` for all values, each on a thread of its own.
pub fn side_by_side<T: Send, R: Send, const N: usize>(
    values: [T; N],
    work: impl Fn(T) -> R + Sync,
) -> [R; N] {
    thread::scope(|scope| {
        values
            .map(|value| scope.spawn(|| work(value)))
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// The PTX of a fixture, built once per architecture; two of them may be built at a time.
pub fn built(name: &str, arch: NvvmArch) -> Arc<Ptx> {
    type Built = HashMap<(String, NvvmArch), Arc<OnceLock<Arc<Ptx>>>>;
    static BUILT: Mutex<Option<Built>> = Mutex::new(None);
    // Another test's failure says nothing about this one's PTX.
    let mut all = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (name.to_owned(), arch);
    let built = Arc::clone(all.get_or_insert_default().entry(key).or_default());
    drop(all);
    let built = built.get_or_init(|| Arc::new(build(&builder(name).arch(arch))));
    Arc::clone(built)
}

/// The PTX of `raw-kernels`.
pub fn raw_kernels(arch: NvvmArch) -> Arc<Ptx> {
    built("raw-kernels", arch)
}

/// A kernel crate made of one file, in a folder of its own.
pub struct OneFile {
    pub folder: tempfile::TempDir,
}

impl OneFile {
    pub fn new(name: &str, source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("src")).expect("a folder for the source");
        fs::write(
            folder.path().join("Cargo.toml"),
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n"),
        )
        .expect("a manifest");
        fs::write(folder.path().join("src/lib.rs"), source).expect("a source file");
        Self { folder }
    }

    pub fn builder(&self) -> CudaBuilder {
        CudaBuilder::new(self.folder.path()).target_dir(target_dir())
    }
}

/// Copies a folder, all but its build products.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder to copy to");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry of the folder");
        if entry.file_name() == "target" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().expect("the kind of an entry").is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copied file");
        }
    }
}

/// The instructions of an entry point or function: one per line, trimmed.
pub fn body<'a>(ptx: &'a str, name: &str) -> Vec<&'a str> {
    let named = |keyword: &str| ptx.find(&format!("{keyword} {name}("));
    let start = named(".entry")
        .or_else(|| {
            // `.func  (.param …) name(`, with the name on a line of its own.
            ptx.match_indices(&format!("{name}("))
                .map(|(at, _)| at)
                .find(|&at| {
                    let line = ptx[..at].rfind('\n').map_or(0, |end| end + 1);
                    ptx[line..at].contains(".func")
                })
        })
        .unwrap_or_else(|| panic!("there is no `{name}` in\n{ptx}"));
    let open = start + ptx[start..].find("\n{\n").expect("a body") + 3;
    let close = open + ptx[open..].find("\n}").expect("the body's end");
    ptx[open..close]
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect()
}

/// How many of the lines begin with `opcode`, guards aside.
pub fn count(body: &[&str], opcode: &str) -> usize {
    body.iter().filter(|line| is(line, opcode)).count()
}

fn is(line: &str, opcode: &str) -> bool {
    let unguarded = match line.strip_prefix('@') {
        Some(guarded) => guarded.split_once(' ').map_or("", |(_, rest)| rest.trim()),
        None => line,
    };
    unguarded.starts_with(opcode)
}

/// Where the line that begins with `opcode` is; there must be exactly one.
pub fn position(body: &[&str], opcode: &str) -> usize {
    assert_eq!(
        count(body, opcode),
        1,
        "one `{opcode}` in\n{}",
        body.join("\n")
    );
    body.iter()
        .position(|line| is(line, opcode))
        .expect("it was counted")
}

/// Has NVIDIA's assembler check the PTX, and gives what it says about registers
/// and memory.
pub fn ptxas(ptx: &str, arch: NvvmArch) -> String {
    assemble(ptx, arch, &[])
}

/// As [`ptxas`], without its optimiser, which takes minutes where kernels are long:
/// whether each instruction is taken does not depend on it.
pub fn ptxas_unoptimised(ptx: &str, arch: NvvmArch) -> String {
    assemble(ptx, arch, &["-O0"])
}

fn assemble(ptx: &str, arch: NvvmArch, options: &[&str]) -> String {
    let tool = ptxas_path();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("kernels.ptx");
    fs::write(&file, ptx).expect("a PTX file");
    let output = Command::new(&tool)
        .arg("-v")
        .args(options)
        .arg(format!("-arch={}", arch.sm()))
        .arg(&file)
        .arg("-o")
        .arg(folder.path().join("kernels.cubin"))
        .output()
        .unwrap_or_else(|error| panic!("cannot run {}: {error}", tool.display()));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "ptxas refuses the PTX:\n{said}\n{ptx}"
    );
    said
}

fn ptxas_path() -> PathBuf {
    let name = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
    let on_path = std::env::var_os("PATH")
        .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(|root| PathBuf::from(root).join("bin"));
    // Where `.ci/device-toolchain` puts it.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/ci/bin");
    on_path
        .into_iter()
        .chain(toolkits)
        .chain([own, PathBuf::from("/usr/local/cuda/bin")])
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| {
            panic!(
                "cannot find ptxas; install it with `.ci/device-toolchain`, \
                 or put a CUDA toolkit's bin folder on PATH"
            )
        })
}
