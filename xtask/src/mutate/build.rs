//! Copies the workspace, inserts the mutations into the copy and builds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_halo::process;
use cargo_metadata::Message;
use cargo_metadata::diagnostic::{Diagnostic, DiagnosticLevel};
use sha2::{Digest as _, Sha256};

use super::instrument::{Instrumented, crate_root, dependent_root};
use super::mutation::SOURCES;
use super::operators::Site;
use super::suite::Suite;
use crate::error::Error;
use crate::workspace;

/// The root file of the kernels' crate.
const CRATE_ROOT: &str = "gpu-kernels/src/lib.rs";

/// The root file of the stencils' crate, on which the kernels' crate depends.
const STENCIL_ROOT: &str = "stencil/src/lib.rs";

/// The attribute of functions that must be inlined into the kernel for a device.
const ALWAYS: &str = "#[inline(always)]";

/// Its replacement in the copy, of the same length: positions in the text do not change.
const SOMETIMES: &str = "#[inline        ]";

/// Debug levels that differ from the original's build. Without them cargo would take the copy's
/// crates for the original's, because both have the same paths within their workspaces, and a test
/// of the original could run the copy. Dependencies are built as in the original.
const PROFILE: [(&str, &str); 2] = [
    // The level of the mutated crates.
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    // The level of procedural macros and build scripts, which is 0 in the original.
    ("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "1"),
];

/// The crates that the original builds with the debug level of the profile.
const MUTATED: [&str; 2] = ["halo-kernels", "halo-stencil"];

/// From this number of mutations on, the suites run so often that a slower build saves time.
const MANY: usize = 200;

/// The debug levels of the workspace's other crates, which may have a level of their own.
fn debug_levels(members: &[String]) -> impl Iterator<Item = String> {
    let others = members.iter().filter(|it| !MUTATED.contains(&it.as_str()));
    others.map(|name| format!("profile.dev.package.{name}.debug=1"))
}

/// A source file and its mutations, by number.
pub(crate) struct Source {
    /// Relative to the workspace.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) sites: Vec<(u32, Site)>,
}

/// A copy of the workspace under the target folder. The original is never written to.
pub(crate) struct Copy {
    folder: PathBuf,
    /// The target folder: the original's, so that the built dependencies are shared.
    target: PathBuf,
    /// The names of the workspace's packages.
    members: Vec<String>,
    /// A hash of the copied files.
    pub(crate) hash: String,
}

impl Copy {
    /// Copies the workspace, or updates an earlier copy. Unchanged files keep their times, so that
    /// cargo rebuilds little.
    pub(crate) fn of(root: &Path, target: &Path) -> Result<Self, Error> {
        let folder = target.join("mutate/workspace");
        fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;

        let files: BTreeSet<PathBuf> = workspace::files(root)?.into_iter().collect();
        let mut hash = Sha256::new();
        for file in &files {
            let (from, to) = (root.join(file), folder.join(file));
            let wanted = fs::read(&from).map_err(Error::file("read", &from))?;
            hash.update(Sha256::digest(file.to_string_lossy().as_bytes()));
            hash.update(Sha256::digest(&wanted));
            if is_kernel_source(file) {
                // `instrument` writes it.
                continue;
            }
            if fs::read(&to).is_ok_and(|present| present == wanted) {
                continue;
            }
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(Error::file("make", parent))?;
            }
            // Copied rather than written, so that scripts stay executable.
            fs::copy(&from, &to).map_err(Error::file("write", &to))?;
        }
        remove_others(&folder, &folder, &files)?;
        Ok(Self {
            members: workspace::members(root)?,
            folder,
            target: target.to_path_buf(),
            hash: format!("{:x}", hash.finalize()),
        })
    }

    /// Writes the kernels' sources with their mutations, builds the suites of these names, and
    /// returns them by name. Mutations that do not compile are removed from `sources` and returned
    /// too.
    pub(crate) fn build(
        &self,
        sources: &mut [Source],
        names: &[String],
    ) -> Result<(BTreeMap<String, Suite>, Vec<u32>), Error> {
        let mut rejected = Vec::new();
        loop {
            let written = self.instrument(sources)?;
            let attempt = self.cargo(names, sources)?;
            if attempt.success {
                return Ok((attempt.suites, rejected));
            }
            let mut to_blame = BTreeSet::new();
            for (file, range) in &attempt.errors {
                for (path, instrumented) in &written {
                    if file.ends_with(path) || path.ends_with(file) {
                        to_blame.extend(instrumented.to_blame(range));
                    }
                }
            }
            if to_blame.is_empty() {
                return Err(Error::Mutation(format!(
                    "the copy of the workspace does not build, even without mutations:\n{}",
                    attempt.rendered
                )));
            }
            for source in &mut *sources {
                source
                    .sites
                    .retain(|(number, _)| !to_blame.contains(number));
            }
            rejected.extend(to_blame);
        }
    }

    fn instrument(&self, sources: &[Source]) -> Result<Vec<(PathBuf, Instrumented)>, Error> {
        let mut written = Vec::new();
        let has_stencils = has_stencils(sources);
        let root = if has_stencils {
            STENCIL_ROOT
        } else {
            CRATE_ROOT
        };
        for source in sources {
            let sites: Vec<(u32, &Site)> = source
                .sites
                .iter()
                .map(|(number, site)| (*number, site))
                .collect();
            let mut instrumented = Instrumented::new(&source.text, &sites);
            // Kernels of conditions, inlined whole, take the compiler minutes each.
            instrumented.text = instrumented.text.replace(ALWAYS, SOMETIMES);
            if source.path == Path::new(root) {
                let numbers = sources.iter().flat_map(|source| &source.sites);
                let last = numbers.map(|&(number, _)| number).max();
                instrumented.text = crate_root(&instrumented.text, last.map_or(0, |it| it + 1));
            } else if source.path == Path::new(CRATE_ROOT) {
                instrumented.text = dependent_root(&instrumented.text, "halo_stencil");
            }
            workspace::write_if_changed(&self.folder.join(&source.path), &instrumented.text)?;
            written.push((source.path.clone(), instrumented));
        }
        Ok(written)
    }

    fn cargo(&self, names: &[String], sources: &[Source]) -> Result<Attempt, Error> {
        let mut command = Command::new(process::cargo());
        command
            .current_dir(&self.folder)
            .args(["test", "--no-run", "--quiet", "--lib"])
            .args(["--package", "halo-tests", "--package", "halo-kernels"])
            // All suites wait for this crate, so it is compiled in parallel.
            .args([
                "--config",
                "profile.dev.package.halo-kernels.codegen-units=16",
            ])
            .arg("--message-format=json")
            .args(debug_levels(&self.members).flat_map(|level| ["--config".to_owned(), level]))
            .env("CARGO_TARGET_DIR", &self.target)
            .envs(PROFILE);
        let mutations: usize = sources.iter().map(|source| source.sites.len()).sum();
        let run_often: &[&str] = match mutations {
            MANY.. => &["halo-gpu", "halo-tests"],
            _ => &[],
        };
        // The instrumented code is full of conditions; optimising it more takes longer than it
        // saves.
        for package in MUTATED.iter().chain(run_often) {
            let level = format!("profile.dev.package.{package}.opt-level=1");
            command.args(["--config", &level]);
        }
        if has_stencils(sources) {
            command.args(["--package", "halo-stencil"]);
        }
        for name in names {
            command.args(["--test", name]);
        }
        let output = command.output().map_err(Error::start(&command))?;
        let mut attempt = Attempt::read(&output.stdout, &self.folder.join("tests"));
        attempt.success = output.status.success();
        if attempt.rendered.is_empty() {
            attempt.rendered = String::from_utf8_lossy(&output.stderr).into_owned();
        }
        if let (true, Some(missing)) = (
            attempt.success,
            names
                .iter()
                .find(|name| !attempt.suites.contains_key(*name)),
        ) {
            return Err(Error::Mutation(format!(
                "cargo built no test suite called {missing}: is there a tests/{missing}.rs, and does tests/Cargo.toml list it?"
            )));
        }
        Ok(attempt)
    }
}

/// The messages of one build.
#[derive(Default)]
struct Attempt {
    success: bool,
    suites: BTreeMap<String, Suite>,
    /// The positions of compiler errors, in bytes of a file.
    errors: Vec<(PathBuf, Range<usize>)>,
    /// The errors as rustc prints them.
    rendered: String,
}

impl Attempt {
    /// Reads cargo's messages; other programs may print between them.
    fn read(messages: &[u8], folder: &Path) -> Self {
        let mut attempt = Self::default();
        for message in Message::parse_stream(messages).map_while(Result::ok) {
            match message {
                Message::CompilerArtifact(artifact) if artifact.profile.test => {
                    attempt.suites.extend(artifact.executable.map(|executable| {
                        let suite = Suite {
                            executable: executable.into(),
                            folder: folder.to_owned(),
                        };
                        (artifact.target.name, suite)
                    }));
                }
                Message::CompilerMessage(said) => attempt.error(said.message),
                _ => {}
            }
        }
        attempt
    }

    fn error(&mut self, diagnostic: Diagnostic) {
        if diagnostic.level != DiagnosticLevel::Error {
            return;
        }
        self.rendered.extend(diagnostic.rendered);
        self.errors.extend(diagnostic.spans.into_iter().map(|span| {
            let range = span.byte_start as usize..span.byte_end as usize;
            (span.file_name.into(), range)
        }));
    }
}

/// Whether a source belongs to the stencils' crate.
fn has_stencils(sources: &[Source]) -> bool {
    sources
        .iter()
        .any(|source| source.path == Path::new(STENCIL_ROOT))
}

fn is_kernel_source(file: &Path) -> bool {
    SOURCES.iter().any(|folder| file.starts_with(folder))
        && file.extension().is_some_and(|extension| extension == "rs")
}

/// Removes the files of an earlier copy that the workspace no longer has.
fn remove_others(top: &Path, folder: &Path, wanted: &BTreeSet<PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::file("read", folder))? {
        let path = entry.map_err(Error::file("read", folder))?.path();
        if path.is_dir() {
            remove_others(top, &path, wanted)?;
        } else if let Ok(relative) = path.strip_prefix(top)
            && !wanted.contains(relative)
        {
            fs::remove_file(&path).map_err(Error::file("remove", &path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_messages_are_read() {
        let artifact = |name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"p","manifest_path":"/Cargo.toml",
                "target":{{"kind":["lib"],"crate_types":["lib"],"name":"{name}",
                "src_path":"/lib.rs","edition":"2024","doctest":true,"test":true,"doc":true}},
                "profile":{{"opt_level":"0","debuginfo":0,"debug_assertions":true,
                "overflow_checks":true,"test":{test}}},"features":[],"filenames":[],
                "executable":{executable},"fresh":false}}"#
            )
        };
        let message = |level: &str, rendered: &str, spans: &str| {
            format!(
                r#"{{"reason":"compiler-message","package_id":"p","manifest_path":"/Cargo.toml",
                "target":{{"kind":["lib"],"crate_types":["lib"],"name":"a","src_path":"/lib.rs",
                "edition":"2024","doctest":true,"test":true,"doc":true}},"message":{{
                "message":"m","code":null,"level":"{level}","children":[],
                "rendered":"{rendered}","spans":[{spans}]}}}}"#
            )
        };
        let span = r#"{"file_name":"gpu-kernels/src/a.rs","byte_start":3,"byte_end":9,
            "line_start":1,"line_end":1,"column_start":1,"column_end":1,"is_primary":true,
            "text":[],"label":null,"suggested_replacement":null,
            "suggestion_applicability":null,"expansion":null}"#;
        let messages: String = [
            artifact("halo_gpu", false, "null"),
            artifact("heat2d", true, r#""out/heat2d-1""#),
            message("warning", "w", ""),
            message("error", "E", span),
            "not json".to_owned(),
        ]
        .map(|message| message.replace('\n', "") + "\n")
        .concat();
        let attempt = Attempt::read(messages.as_bytes(), Path::new("tests"));
        assert_eq!(attempt.suites.keys().collect::<Vec<_>>(), ["heat2d"]);
        assert_eq!(
            attempt.suites["heat2d"].executable,
            Path::new("out/heat2d-1")
        );
        assert_eq!(
            attempt.errors,
            [(PathBuf::from("gpu-kernels/src/a.rs"), 3..9)]
        );
        assert_eq!(attempt.rendered, "E");
    }

    #[test]
    fn what_the_workspace_lost_leaves_the_copy() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        for file in ["a/kept", "a/lost"] {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let wanted = BTreeSet::from([PathBuf::from("a/kept")]);
        remove_others(folder.path(), folder.path(), &wanted).unwrap();
        assert!(folder.path().join("a/kept").exists());
        assert!(!folder.path().join("a/lost").exists());
    }
}
