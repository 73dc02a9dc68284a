//! Runs cargo on the kernel crate.
//!
//! The crate is compiled as a library for `nvptx64-nvidia-cuda`, together with
//! its own copy of `core` and `alloc`, to LLVM bitcode that no LLVM pass has
//! touched. The child process gets nothing of the outer build: neither its flags
//! and profiles nor its target directory, whose lock the outer cargo holds.

use std::collections::{HashMap, HashSet};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::arch::NvvmArch;
use crate::builder::{CudaBuilder, DebugInfo};
use crate::error::CudaBuilderError;
use crate::header::{self, Cfg, Header};
use crate::mirror::Mirror;
use crate::tools::{Toolchain, capture, describe};
use crate::wrapper;

/// rustc's name for CUDA devices.
pub(crate) const TARGET: &str = "nvptx64-nvidia-cuda";

/// Unstable features that kernel code needs. They are on in every crate of kernels, as with
/// upstream's compiler backend.
const FEATURES: [&str; 5] = [
    "abi_ptx",
    "asm_experimental_arch",
    "core_float_math",
    "link_llvm_intrinsics",
    "stdarch_nvptx",
];

/// A command that starts cargo as if from a fresh shell.
fn cargo(toolchain: &Toolchain, directory: &Path) -> Command {
    let mut command = Command::new(&toolchain.cargo);
    command.current_dir(directory);
    for (name, _) in env::vars_os() {
        if belongs_to_outer_build(&name) {
            command.env_remove(name);
        }
    }
    command
        .env("RUSTC", &toolchain.rustc.path)
        // Empty means none, also when a configuration file names one.
        .env("RUSTC_WRAPPER", "")
        .env("RUSTC_WORKSPACE_WRAPPER", "")
        // One codegen unit per crate is what makes builds repeatable.
        .env("CARGO_INCREMENTAL", "0")
        // Building `core` is unstable; this child alone may do it.
        .env("RUSTC_BOOTSTRAP", "1");
    command
}

/// Whether a variable describes the build that this library runs in.
fn belongs_to_outer_build(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    // What configures cargo itself rather than one build.
    const KEPT: [&str; 10] = [
        "CARGO_HOME",
        "CARGO_MAKEFLAGS",
        "CARGO_BUILD_JOBS",
        "CARGO_NET_",
        "CARGO_HTTP_",
        "CARGO_REGISTRIES_",
        "CARGO_REGISTRY_",
        "CARGO_SOURCE_",
        "CARGO_TERM_",
        "CARGO_RESOLVER_",
    ];
    const REMOVED: [&str; 19] = [
        "RUSTFLAGS",
        "RUSTDOCFLAGS",
        "RUSTC",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_LINKER",
        "RUSTC_BOOTSTRAP",
        "RUSTDOC",
        "CLIPPY_ARGS",
        "CLIPPY_CONF_DIR",
        "OUT_DIR",
        "TARGET",
        "HOST",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
        "NUM_JOBS",
        "CUDA_ARCH",
        "CUDA_BUILDER_CRATES",
    ];
    if name.starts_with("CARGO") || name.starts_with("__CARGO") {
        return !KEPT.iter().any(|kept| name.starts_with(kept));
    }
    name.starts_with("DEP_") || REMOVED.contains(&name)
}

// ---------------------------------------------------------------------------
// cargo metadata

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

/// A package, as `cargo metadata` describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    version: String,
    manifest_path: PathBuf,
    /// `None` for a package on disk, which may change between two builds.
    source: Option<String>,
    targets: Vec<Target>,
}

#[derive(Debug, Clone, Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
    src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
    features: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// `None` for an ordinary dependency; `build` and `dev` otherwise.
    kind: Option<String>,
}

impl Target {
    fn is_dynamic(&self) -> bool {
        self.kind
            .iter()
            .any(|kind| kind == "cdylib" || kind == "dylib")
    }
}

impl Package {
    fn library(&self) -> Option<&Target> {
        self.targets.iter().find(|target| {
            target.kind.iter().any(|kind| {
                ["lib", "rlib", "cdylib", "dylib", "staticlib"].contains(&kind.as_str())
            })
        })
    }

    fn is_proc_macro(&self) -> bool {
        self.targets
            .iter()
            .any(|target| target.kind.iter().any(|kind| kind == "proc-macro"))
    }

    /// Whether it comes from a registry. A package called `cuda_std` is then upstream's.
    fn is_released(&self) -> bool {
        let source = self.source.as_ref();
        source.is_some_and(|source| source.starts_with("registry+"))
    }

    fn directory(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new(""))
    }
}

/// The kernel crate, and all that it is made of.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) package: Package,
    /// The library's name: the package's, with `_` for `-`, or another.
    pub(crate) library: String,
    pub(crate) target_directory: PathBuf,
    workspace_root: PathBuf,
    /// All packages that are compiled for the device, the kernel crate first,
    /// each with its cargo features. `core` and its kin are not among them.
    parts: Vec<(Package, Vec<String>)>,
    /// Those of them that depend on `cuda_std`, and so may define kernels.
    with_kernels: HashSet<String>,
}

impl Crate {
    /// Asks cargo about the package in `directory`.
    ///
    /// # Errors
    ///
    /// When there is no package, it has no library, or cargo fails.
    pub(crate) fn read(
        toolchain: &Toolchain,
        directory: &Path,
        build_args: &[String],
    ) -> Result<Self, CudaBuilderError> {
        let manifest = directory.join("Cargo.toml");
        let mut command = cargo(toolchain, directory);
        command
            .args([
                "metadata",
                "--format-version=1",
                "--filter-platform",
                TARGET,
            ])
            .arg("--manifest-path")
            .arg(&manifest)
            .args(metadata_arguments(build_args));
        let output = command
            .output()
            .map_err(CudaBuilderError::io("run", &toolchain.cargo))?;
        if !output.status.success() {
            return Err(CudaBuilderError::BuildFailed {
                manifest,
                status: format!("cargo metadata, {}", output.status),
                stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            });
        }
        let unexpected = |problem: String| CudaBuilderError::UnexpectedOutput {
            command: describe(&command),
            problem,
        };
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .map_err(|error| unexpected(error.to_string()))?;
        let manifest = manifest
            .canonicalize()
            .map_err(CudaBuilderError::io("find", &manifest))?;
        let package = metadata
            .packages
            .iter()
            .find(|package| {
                package.manifest_path == manifest
                    || package.manifest_path.canonicalize().ok().as_ref() == Some(&manifest)
            })
            .cloned()
            .ok_or_else(|| unexpected(format!("`{}` is not in it", manifest.display())))?;
        let Some(library) = package.library() else {
            return Err(CudaBuilderError::NoLibrary {
                package: package.name,
            });
        };
        let library = library.name.replace('-', "_");

        let packages: HashMap<&str, &Package> = metadata
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package))
            .collect();
        let nodes: HashMap<&str, &Node> = metadata
            .resolve
            .nodes
            .iter()
            .map(|node| (node.id.as_str(), node))
            .collect();
        // Ordinary dependencies are compiled for the device. A procedural macro and what it depends
        // on are compiled for the host.
        let reached = |from: &str| {
            let mut order = Vec::new();
            let mut pending = vec![from.to_owned()];
            let mut seen = HashSet::new();
            while let Some(id) = pending.pop() {
                let (Some(package), Some(node)) = (packages.get(&*id), nodes.get(&*id)) else {
                    continue;
                };
                if package.is_proc_macro() || !seen.insert(id.clone()) {
                    continue;
                }
                order.push(((*package).clone(), node.features.clone()));
                let ordinary = node
                    .deps
                    .iter()
                    .filter(|dependency| dependency.dep_kinds.iter().any(|k| k.kind.is_none()))
                    .map(|dependency| dependency.pkg.clone());
                pending.extend(ordinary);
            }
            order
        };
        let mut parts = reached(&package.id);
        parts[1..].sort_by(|(a, _), (b, _)| {
            (&a.name, &a.version, &a.id).cmp(&(&b.name, &b.version, &b.id))
        });
        if let Some((released, _)) = parts
            .iter()
            .find(|(part, _)| part.name == "cuda_std" && part.is_released())
        {
            return Err(CudaBuilderError::ReleasedCudaStd {
                package: package.name,
                version: released.version.clone(),
                workspace: metadata.workspace_root,
                range: !released.version.starts_with("0.2."),
            });
        }
        let with_kernels = parts
            .iter()
            .filter(|(part, _)| {
                part.id != package.id
                    && reached(&part.id)[1..]
                        .iter()
                        .any(|(p, _)| p.name == "halo-cuda-std")
            })
            .map(|(part, _)| part.id.clone())
            .collect();
        Ok(Self {
            library,
            target_directory: metadata.target_directory,
            workspace_root: metadata.workspace_root,
            package,
            parts,
            with_kernels,
        })
    }

    /// The files and folders that the crate is made of, for `cargo:rerun-if-changed`. They are
    /// known before anything is compiled, so that cargo also repeats a failed build when they
    /// change.
    pub(crate) fn watched(&self) -> Vec<PathBuf> {
        let mut watched = vec![self.workspace_root.join("Cargo.lock")];
        for (package, _) in &self.parts {
            if package.source.is_some() {
                continue;
            }
            watched.push(package.manifest_path.clone());
            let build_script = package.directory().join("build.rs");
            if build_script.is_file() {
                watched.push(build_script);
            }
            let Some(library) = package.library() else {
                continue;
            };
            // The root's folder, unless that is the package itself: it also holds the target
            // directory, which changes with every build.
            match library.src_path.parent() {
                Some(folder) if folder != package.directory() => watched.push(folder.to_owned()),
                _ => watched.push(library.src_path.clone()),
            }
        }
        watched.sort();
        watched.dedup();
        watched.retain(|path| path.exists());
        watched
    }

    fn may_have_kernels(&self, package: &Package) -> bool {
        package.id == self.package.id || self.with_kernels.contains(&package.id)
    }

    /// The folder that a package's sources are named from, and its name in messages and in PTX.
    fn place<'a>(&'a self, package: &'a Package) -> (&'a Path, String) {
        if package.directory().starts_with(&self.workspace_root) {
            (&self.workspace_root, String::new())
        } else {
            let name = format!("{}-{}", package.name, package.version);
            (package.directory(), name)
        }
    }
}

/// Those of the user's arguments that `cargo metadata` needs as well, because dependencies follow
/// from them.
fn metadata_arguments(build_args: &[String]) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut takes_value = false;
    for argument in build_args {
        let name = argument.split('=').next().unwrap_or("");
        if takes_value {
            arguments.push(argument.clone());
            takes_value = false;
        } else if ["--features", "-F", "--config"].contains(&name) {
            arguments.push(argument.clone());
            takes_value = !argument.contains('=');
        } else if [
            "--all-features",
            "--no-default-features",
            "--locked",
            "--offline",
            "--frozen",
        ]
        .contains(&name)
        {
            arguments.push(argument.clone());
        }
    }
    arguments
}

// ---------------------------------------------------------------------------
// cargo rustc

/// What cargo built.
#[derive(Debug)]
pub(crate) struct Built {
    /// The kernel crate's library first, then those of its dependencies.
    pub(crate) libraries: Vec<PathBuf>,
    /// `core`, `alloc` and `compiler_builtins`.
    pub(crate) standard: Vec<PathBuf>,
    /// The source files of all packages on disk, sorted.
    pub(crate) sources: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Compiles the kernel crate in `target_dir`; `work` is a folder for temporary files.
///
/// # Errors
///
/// [`CudaBuilderError::BuildFailed`], with all that cargo and rustc wrote.
pub(crate) fn build(
    toolchain: &Toolchain,
    builder: &CudaBuilder,
    krate: &Crate,
    target_dir: &Path,
    work: &Path,
) -> Result<Built, CudaBuilderError> {
    let manifest = krate.package.manifest_path.clone();
    let profile = profile(builder);
    let sm = builder.arch.sm();

    let mut cfg_query = cargo(toolchain, krate.package.directory());
    // rustc is asked without cargo, but in the same clean environment.
    let cfg = Cfg::new(&capture(
        command_with(&toolchain.rustc.path, &mut cfg_query)
            .args(["--print", "cfg", "--target", TARGET])
            .arg(format!("-Ctarget-cpu={sm}"))
            .args(architecture_cfgs(builder.arch)),
    )?);

    let mut command = cargo(toolchain, krate.package.directory());
    command
        .arg("rustc")
        .arg("--manifest-path")
        .arg(&manifest)
        .args(["--lib", "--crate-type=lib", "--target", TARGET])
        .arg("--target-dir")
        .arg(target_dir)
        .args([
            "-Zbuild-std=core,alloc",
            "-Zpanic-immediate-abort",
            "--message-format=json-render-diagnostics",
        ])
        .args(profile.settings())
        .args(&builder.build_args)
        .args(profile.argument)
        .env("CARGO_BUILD_BUILD_DIR", target_dir)
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            join_flags(&rustflags(toolchain, builder)),
        )
        .env("CUDA_ARCH", builder.arch.cuda_arch().to_string());

    // Cargo hands flags to the kernel crate alone; the wrapper hands them to the others.
    let mut entries = Vec::new();
    for (package, features) in &krate.parts {
        let Some(library) = package.library() else {
            continue;
        };
        // What cannot be read, rustc will complain about.
        let source = std::fs::read_to_string(&library.src_path).unwrap_or_default();
        let cfg = cfg.with_features(features);
        let header = header::read(&source, &cfg);
        let mut flags = package_flags(krate, package, &header);
        let mirror = mirror(
            krate,
            package,
            library,
            &cfg,
            &work.join(entries.len().to_string()),
        )?;
        if package.id == krate.package.id {
            command.arg("--").args(flags);
            if mirror.is_none() {
                continue;
            }
            flags = Vec::new();
        } else if library.is_dynamic() {
            let mut flag = OsString::from("-Clinker=");
            flag.push(wrapper::compile(toolchain, target_dir, work)?);
            flags.push(flag);
        }
        // Of the remappings that fit a path, rustc applies the last.
        flags.extend(
            mirror
                .iter()
                .map(|it| remap(&it.folder, &krate.place(package).1)),
        );
        entries.push(wrapper::Entry {
            root: library.src_path.clone(),
            flags,
            mirror,
        });
    }
    if !entries.is_empty() {
        command
            .env(
                "RUSTC_WRAPPER",
                wrapper::compile(toolchain, target_dir, work)?,
            )
            .env("CUDA_BUILDER_CRATES", wrapper::write_list(work, &entries)?);
    }

    let (status, stdout, stderr) = run_showing_progress(&mut command)
        .map_err(CudaBuilderError::io("run", &toolchain.cargo))?;
    if !status.success() {
        return Err(CudaBuilderError::BuildFailed {
            manifest,
            status: status.to_string(),
            stderr,
        });
    }
    artifacts(&stdout, krate, &describe(&command))
}

/// `program` with the environment and folder of `template`.
fn command_with(program: &Path, template: &mut Command) -> Command {
    let mut command = Command::new(program);
    if let Some(directory) = template.get_current_dir() {
        command.current_dir(directory);
    }
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

struct Profile {
    /// The key of the profile's table in Cargo.toml.
    table: String,
    argument: Option<&'static str>,
}

impl Profile {
    /// What the profile says of the device's code, as arguments of cargo.
    fn settings(&self) -> Vec<String> {
        // `rustflags` overrides most of these. Cargo keeps builds with different profiles apart: with
        // the settings of its workspace, each would compile its own `core`.
        let of_all = [
            "opt-level=3",
            "debug=false",
            "strip=\"none\"",
            "codegen-units=1",
        ];
        let of_the_profile = [
            // A panic is a trap: no message is formatted, and nothing unwinds.
            "panic=\"immediate-abort\"",
            "lto=\"off\"",
        ];
        let table = &self.table;
        let settings = of_the_profile.into_iter().chain(of_all);
        let settings = settings.map(|setting| format!("profile.{table}.{setting}"));
        // What a workspace sets for all dependencies would apply to `core` too.
        let dependencies = of_all.map(|setting| format!("profile.{table}.package.\"*\".{setting}"));
        let pairs = settings
            .chain(dependencies)
            .map(|setting| ["--config".to_owned(), setting]);
        pairs.flatten().collect()
    }
}

/// The cargo profile. The user's own arguments take precedence.
fn profile(builder: &CudaBuilder) -> Profile {
    let mut arguments = builder.build_args.iter();
    while let Some(argument) = arguments.next() {
        let named = match argument.strip_prefix("--profile=") {
            Some(name) => Some(name.to_owned()),
            None if argument == "--profile" => arguments.next().cloned(),
            None if argument == "--release" || argument == "-r" => Some("release".to_owned()),
            None => None,
        };
        if let Some(table) = named {
            return Profile {
                table,
                argument: None,
            };
        }
    }
    if builder.release {
        Profile {
            table: "release".to_owned(),
            argument: Some("--release"),
        }
    } else {
        Profile {
            table: "dev".to_owned(),
            argument: None,
        }
    }
}

/// Flags for every crate compiled for the device. They come after those that
/// cargo derives from the profile, and so override them.
fn rustflags(toolchain: &Toolchain, builder: &CudaBuilder) -> Vec<OsString> {
    let mut flags: Vec<OsString> = [
        format!("-Ctarget-cpu={}", builder.arch.sm()),
        // LLVM must not optimise the module before it is marked convergent, and rustc itself must
        // not copy barriers into branches.
        "-Cno-prepopulate-passes".to_owned(),
        "-Zmir-enable-passes=-JumpThreading".to_owned(),
        "-Ccodegen-units=1".to_owned(),
        "-Clto=off".to_owned(),
        "-Cembed-bitcode=yes".to_owned(),
        // The workspace's profiles are about the host's code.
        format!("-Copt-level={}", if builder.release { 3 } else { 0 }),
        format!(
            "-Cdebuginfo={}",
            match builder.debug {
                DebugInfo::None => "0",
                DebugInfo::LineTables => "line-directives-only",
            }
        ),
        // Paths rather than hashes in symbols.
        "-Csymbol-mangling-version=v0".to_owned(),
    ]
    .into_iter()
    .map(OsString::from)
    .collect();
    flags.extend(architecture_cfgs(builder.arch).map(OsString::from));
    let known: Vec<_> = NvvmArch::ALL
        .iter()
        .flat_map(|arch| arch.features())
        .map(|feature| format!("{feature:?}"))
        .collect();
    let known = known.join(",");
    flags.push(format!("--check-cfg=cfg(target_feature,values({known}))").into());
    flags.push("--check-cfg=cfg(optix)".into());
    if builder.optix {
        flags.push("--cfg=optix".into());
    }
    // Cargo does not see the flags that the wrapper adds. They follow from the release of this
    // crate, so another release must compile everything anew.
    flags.push(
        format!(
            "--check-cfg=cfg(cuda_builder,values(\"{}\"))",
            env!("CARGO_PKG_VERSION")
        )
        .into(),
    );
    // The standard library's own paths; `package_flags` has those of the crates. These flags must
    // not depend on the kernel crate: all that share a target directory share one `core`.
    let library = toolchain.rustc.library_source();
    flags.push(remap(&library, "library"));
    if let Ok(library) = library.canonicalize() {
        flags.push(remap(&library, "library"));
    }
    flags
}

/// `cfg(target_feature = "sm_75")` and `"compute_75"`, of the architecture and all
/// that it includes. rustc itself sets only those with `sm_` that it knows.
fn architecture_cfgs(arch: NvvmArch) -> impl Iterator<Item = String> {
    let cfgs = arch
        .includes()
        .flat_map(NvvmArch::features)
        .map(|feature| format!("--cfg=target_feature={feature:?}"));
    // The lint warns of the names that rustc sets itself. These are the same, and more.
    std::iter::once("-Aexplicit_builtin_cfgs_in_flags".to_owned()).chain(cfgs)
}

/// A flag that replaces the path `from` in messages and in PTX, where absolute paths do not belong.
fn remap(from: &Path, to: &str) -> OsString {
    let mut flag = OsString::from("--remap-path-prefix=");
    flag.push(from);
    flag.push("=");
    flag.push(to);
    flag
}

/// Mirrors a package in `folder` without its mentions of `register_attr`, if it has any.
fn mirror(
    krate: &Crate,
    package: &Package,
    library: &Target,
    cfg: &Cfg,
    folder: &Path,
) -> Result<Option<Mirror>, CudaBuilderError> {
    let root = &library.src_path;
    let sources = match root.parent() {
        // The folder of the manifest may hold anything, also the target directory.
        Some(folder) if folder != package.directory() && krate.may_have_kernels(package) => {
            rust_files(folder)
        }
        _ => vec![root.clone()],
    };
    let (original, _) = krate.place(package);
    let mut changed = Vec::new();
    for path in sources {
        // What cannot be read, rustc will complain about if it is part of the crate.
        let source = std::fs::read_to_string(&path).unwrap_or_default();
        let text = header::read(&source, cfg).without_register_attr;
        if let (Some(text), Ok(path)) = (text, path.strip_prefix(original)) {
            changed.push((path.to_owned(), text));
        }
    }
    if changed.is_empty() {
        return Ok(None);
    }
    Mirror::create(original, folder, &changed).map(Some)
}

/// The Rust sources below a folder, as far as it can be read.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Flags for one of the crates that the kernel crate is made of.
fn package_flags(krate: &Crate, package: &Package, header: &Header) -> Vec<OsString> {
    let (folder, name) = krate.place(package);
    let mut flags = vec![remap(folder, &name)];
    // As with upstream's backend, crates for the device need not say `no_std`.
    if !header.no_std {
        flags.push("-Zcrate-attr=no_std".into());
    }
    if krate.may_have_kernels(package) {
        flags.push("-Zcrate-attr=allow(internal_features)".into());
        let missing: Vec<_> = FEATURES
            .into_iter()
            .filter(|feature| !header.features.contains(*feature))
            .collect();
        if !missing.is_empty() {
            flags.push(format!("-Zcrate-attr=feature({})", missing.join(",")).into());
        }
    }
    flags
}

fn join_flags(flags: &[OsString]) -> OsString {
    let mut joined = OsString::new();
    for (index, flag) in flags.iter().enumerate() {
        if index > 0 {
            joined.push("\x1f");
        }
        joined.push(flag);
    }
    joined
}

/// Runs a command and shows its lines of progress as they come. Everything else on standard error
/// is shown when the command succeeds and returned when it fails: the error then has it, and it is
/// printed once.
fn run_showing_progress(
    command: &mut Command,
) -> std::io::Result<(std::process::ExitStatus, String, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let errors = child.stderr.take();
    let shown = std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut line = Vec::new();
        let Some(mut lines) = errors.map(BufReader::new) else {
            return kept;
        };
        while lines.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if is_progress(&line) {
                // Losing what is shown is not a reason to fail.
                let _ = std::io::stderr().write_all(&line);
            } else {
                kept.extend_from_slice(&line);
            }
            line.clear();
        }
        kept
    });
    let mut stdout = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut stdout)?;
    }
    let status = child.wait()?;
    let stderr = shown.join().unwrap_or_default();
    if status.success() {
        let _ = std::io::stderr().write_all(&stderr);
    }
    Ok((
        status,
        String::from_utf8_lossy(&stdout).into_owned(),
        String::from_utf8_lossy(&stderr).into_owned(),
    ))
}

/// Whether a line is one of cargo's about its progress: a verb, right-aligned to 12 columns
/// (`   Compiling k v0.1.0`).
fn is_progress(line: &[u8]) -> bool {
    let Some((verb, rest)) = line.split_at_checked(12) else {
        return false;
    };
    let verb = verb.trim_ascii_start();
    rest.starts_with(b" ")
        && verb.first().is_some_and(u8::is_ascii_uppercase)
        && verb.iter().all(u8::is_ascii_alphabetic)
}

/// Finds the libraries in what cargo says it built.
fn artifacts(messages: &str, krate: &Crate, command: &str) -> Result<Built, CudaBuilderError> {
    let mut by_package: HashMap<String, PathBuf> = HashMap::new();
    let mut standard = Vec::new();
    let mut sources = Vec::new();
    for line in messages.lines() {
        // Build scripts may print anything in between.
        let Ok(message) = serde_json::from_str::<Message>(line) else {
            continue;
        };
        let (Some(id), "compiler-artifact") = (message.package_id, message.reason.as_str()) else {
            continue;
        };
        let has_extension = |path: &PathBuf, wanted: &str| {
            path.extension()
                .is_some_and(|extension| extension == wanted)
        };
        let for_device = |path: &&PathBuf| {
            path.components()
                .any(|component| component.as_os_str() == TARGET)
        };
        let Some(rlib) = message
            .filenames
            .iter()
            .filter(for_device)
            .find(|path| has_extension(path, "rlib"))
        else {
            continue;
        };
        let rmeta = message
            .filenames
            .iter()
            .find(|path| has_extension(path, "rmeta"));
        // The library under the plain name is overwritten by the next build with
        // other flags; the one beside its metadata has a hash in its name.
        let lasting = rmeta
            .map(|path| path.with_extension("rlib"))
            .filter(|path| path.is_file())
            .unwrap_or_else(|| rlib.clone());
        match krate.parts.iter().find(|(package, _)| package.id == id) {
            Some((package, _)) => {
                if package.source.is_none() {
                    sources.extend(dependency_file(&lasting, &krate.workspace_root, package));
                }
                by_package.insert(id, lasting);
            }
            None => standard.push(lasting),
        }
    }
    // By name, not in the order in which they happened to be finished.
    standard.sort_by_key(|path| path.file_name().map(OsStr::to_owned));
    let libraries: Vec<PathBuf> = krate
        .parts
        .iter()
        .filter_map(|(package, _)| by_package.remove(&package.id))
        .collect();
    if libraries.is_empty() || standard.is_empty() {
        return Err(CudaBuilderError::UnexpectedOutput {
            command: command.to_owned(),
            problem: "it succeeded, but names no library for the device".to_owned(),
        });
    }
    sources.sort();
    sources.dedup();
    Ok(Built {
        libraries,
        standard,
        sources,
    })
}

/// The sources that rustc read for a crate, from the dependency file beside the
/// library: `libk-0a1b.rlib` and `k-0a1b.d`.
fn dependency_file(rlib: &Path, workspace_root: &Path, package: &Package) -> Vec<PathBuf> {
    let Some(stem) = rlib.file_stem().and_then(OsStr::to_str) else {
        return Vec::new();
    };
    let name = stem.strip_prefix("lib").unwrap_or(stem);
    let Ok(text) = std::fs::read_to_string(rlib.with_file_name(format!("{name}.d"))) else {
        return Vec::new();
    };
    parse_dependencies(&text)
        .into_iter()
        // rustc runs in the workspace's root, or in the package's own folder when
        // that lies elsewhere.
        .map(|path| {
            if package.directory().starts_with(workspace_root) {
                workspace_root.join(path)
            } else {
                package.directory().join(path)
            }
        })
        .filter(|path| path.is_file())
        .collect()
}

/// The right side of a dependency file's first rule; `\ ` is a space in a name.
fn parse_dependencies(text: &str) -> Vec<PathBuf> {
    let Some((_, list)) = text.lines().find_map(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    let mut current = String::new();
    let mut chars = list.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&' ') => {
                current.push(' ');
                chars.next();
            }
            ' ' => {
                if !current.is_empty() {
                    files.push(PathBuf::from(std::mem::take(&mut current)));
                }
            }
            c => current.push(c),
        }
    }
    if !current.is_empty() {
        files.push(PathBuf::from(current));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_build_stays_outside() {
        for removed in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_MANIFEST_DIR",
            "CARGO_FEATURE_GPU",
            "CARGO_UNSTABLE_BUILD_STD",
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "OUT_DIR",
            "DEP_CUDA_ROOT",
        ] {
            assert!(belongs_to_outer_build(OsStr::new(removed)), "{removed}");
        }
        for kept in [
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_REGISTRIES_MINE_INDEX",
            "CARGO_MAKEFLAGS",
            "PATH",
            "HOME",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(!belongs_to_outer_build(OsStr::new(kept)), "{kept}");
        }
    }

    #[test]
    fn feature_arguments_reach_cargo_metadata() {
        let arguments: Vec<String> = [
            "--features",
            "a b",
            "--jobs",
            "2",
            "--no-default-features",
            "--features=c",
        ]
        .map(String::from)
        .to_vec();
        assert_eq!(
            metadata_arguments(&arguments),
            ["--features", "a b", "--no-default-features", "--features=c"]
        );
    }

    #[test]
    fn the_users_profile_goes_first() {
        let builder = CudaBuilder::new(".");
        assert_eq!(profile(&builder).table, "release");
        let builder = builder.build_args(&["--profile", "device"]);
        assert_eq!(profile(&builder).table, "device");
        assert_eq!(profile(&builder).argument, None);
        assert_eq!(profile(&CudaBuilder::new(".").release(false)).table, "dev");
    }

    #[test]
    fn progress_is_told_from_messages() {
        for progress in [
            "   Compiling k v0.1.0 (/k)\n",
            "    Finished `release` profile [optimized] target(s) in 1.00s\n",
            " Downloading crates ...\n",
        ] {
            assert!(is_progress(progress.as_bytes()), "{progress}");
        }
        for message in [
            "error[E0308]: mismatched types\n",
            " --> src/lib.rs:1:21\n",
            "  |\n",
            "warning: `k` (lib) generated 1 warning\n",
            "error: could not compile `k` (lib)\n",
            "",
        ] {
            assert!(!is_progress(message.as_bytes()), "{message}");
        }
    }

    #[test]
    fn names_with_spaces_are_read_from_dependency_files() {
        assert_eq!(
            parse_dependencies("/t/k.d: src/lib.rs my\\ src/a.rs\n\nsrc/lib.rs:\n"),
            [PathBuf::from("src/lib.rs"), PathBuf::from("my src/a.rs")]
        );
        assert!(parse_dependencies("").is_empty());
    }
}
