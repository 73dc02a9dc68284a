//! A stand-in for rustc that gives some crates flags of their own, and compiles some
//! in another folder.
//!
//! This file is a program of its own: [`crate::wrapper`] compiles it with the
//! user's rustc and hands it to cargo as `RUSTC_WRAPPER`. It is also a module of
//! the library, so that its parts are tested with everything else.
//!
//! It is called as `wrapper rustc arguments…`, with `CUDA_BUILDER_CRATES` naming
//! a file of lines such as these:
//!
//! ```text
//! root /path/to/src/lib.rs
//! flag -Zcrate-attr=no_std
//! original /path/to
//! mirror /path/to/the/mirror
//! ```
//!
//! A call whose arguments name a root gets the flags below it. Any other call, and any call for the
//! host, goes through unchanged. With a mirror, rustc compiles the file of the mirror that stands
//! for the root, and its dependency file then names the originals, so that cargo notices when they
//! change.
//!
//! The same program stands in for the linker of bitcode: when its arguments have `--target-cpu`, it
//! writes an empty file to the path behind `-o`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Runs rustc as the arguments say.
pub(crate) fn main() -> ExitCode {
    match run(env::args_os().skip(1).collect()) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut arguments: Vec<OsString>) -> Result<ExitCode, String> {
    if arguments.is_empty() {
        return Err("cuda_builder's rustc wrapper was called without a compiler".to_owned());
    }
    if arguments.iter().any(|argument| argument == "--target-cpu") {
        return link_nothing(&arguments);
    }
    let compiler = arguments.remove(0);
    let list = match env::var_os("CUDA_BUILDER_CRATES") {
        Some(path) => fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", Path::new(&path).display()))?,
        None => String::new(),
    };
    let Some((index, entry)) = find(&arguments, &list) else {
        return finish(Command::new(&compiler).args(&arguments).status(), &compiler);
    };
    arguments.extend(entry.flags);
    if let Some(mirror) = &entry.mirror {
        arguments[index] = mirror.root.clone().into();
    }
    let status = Command::new(&compiler).args(&arguments).status();
    if let Some(mirror) = &entry.mirror
        && status.as_ref().is_ok_and(|status| status.success())
        && let Some(file) = dependency_file(&arguments)
        && let Ok(text) = fs::read_to_string(&file)
    {
        fs::write(&file, mirror.with_originals(&text))
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    finish(status, &compiler)
}

fn link_nothing(arguments: &[OsString]) -> Result<ExitCode, String> {
    if let Some(pair) = arguments.windows(2).find(|pair| pair[0] == *"-o") {
        fs::write(&pair[1], "")
            .map_err(|error| format!("cannot write {}: {error}", Path::new(&pair[1]).display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn finish(
    status: std::io::Result<std::process::ExitStatus>,
    compiler: &OsString,
) -> Result<ExitCode, String> {
    let status =
        status.map_err(|error| format!("cannot run {}: {error}", Path::new(compiler).display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}

/// What the list says about a crate.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    flags: Vec<OsString>,
    mirror: Option<Mirror>,
}

/// A folder that is compiled in the place of another.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mirror {
    original: PathBuf,
    folder: PathBuf,
    /// The file in it that stands for the crate's root.
    root: PathBuf,
}

impl Mirror {
    /// A dependency file's text, with the originals for the files of the mirror.
    fn with_originals(&self, text: &str) -> String {
        let written = |path: &Path| path.to_string_lossy().replace(' ', "\\ ");
        text.replace(&written(&self.folder), &written(&self.original))
    }
}

/// The index of the argument that is a listed root, and what the list says about it.
fn find(arguments: &[OsString], list: &str) -> Option<(usize, Entry)> {
    // The same source may also be compiled for the host, as part of a procedural macro.
    if !arguments.iter().any(|argument| argument == "--target") {
        return None;
    }
    arguments.iter().enumerate().find_map(|(index, argument)| {
        let path = Path::new(argument);
        if path.extension()? != "rs" {
            return None;
        }
        let path = fs::canonicalize(path).ok()?;
        let mut lines = list.lines();
        lines.find(|line| {
            line.strip_prefix("root ")
                .is_some_and(|root| Path::new(root) == path)
        })?;
        let mut entry = Entry::default();
        let mut original = Path::new("");
        for line in lines {
            match line.split_once(' ') {
                Some(("flag", flag)) => entry.flags.push(flag.into()),
                Some(("original", path)) => original = Path::new(path),
                Some(("mirror", folder)) => {
                    let below = path.strip_prefix(original).ok()?;
                    entry.mirror = Some(Mirror {
                        original: original.to_owned(),
                        folder: folder.into(),
                        root: Path::new(folder).join(below),
                    });
                }
                _ => break,
            }
        }
        Some((index, entry))
    })
}

/// Where rustc writes the crate's dependency file.
fn dependency_file(arguments: &[OsString]) -> Option<PathBuf> {
    let value = |name: &str| {
        arguments
            .windows(2)
            .find(|pair| pair[0] == *name)
            .map(|pair| pair[1].to_string_lossy().into_owned())
    };
    let directory = value("--out-dir")?;
    let name = value("--crate-name")?;
    let suffix = arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .find_map(|argument| argument.strip_prefix("extra-filename="))
        .unwrap_or("");
    Some(Path::new(&directory).join(format!("{name}{suffix}.d")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_dependency_file_is_where_cargo_puts_it() {
        let arguments = words(
            "--crate-name k --edition=2021 - -C metadata=1 -C extra-filename=-0a1b --out-dir /t/deps",
        );
        assert_eq!(
            dependency_file(&arguments),
            Some(PathBuf::from("/t/deps/k-0a1b.d"))
        );
        assert_eq!(dependency_file(&words("-vV")), None);
    }

    #[test]
    fn dependencies_are_the_originals() {
        let mirror = Mirror {
            original: "/my src".into(),
            folder: "/t/a mirror/0".into(),
            root: "/t/a mirror/0/lib.rs".into(),
        };
        let text = "/t/k.d: /t/a\\ mirror/0/lib.rs a.rs\n\n/t/a\\ mirror/0/lib.rs:\na.rs:\n";
        assert_eq!(
            mirror.with_originals(text),
            "/t/k.d: /my\\ src/lib.rs a.rs\n\n/my\\ src/lib.rs:\na.rs:\n"
        );
    }

    #[test]
    fn only_listed_roots_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("lib.rs");
        fs::write(&root, "").unwrap();
        let list = format!(
            "root /elsewhere/lib.rs\nflag -Zother\nroot {}\nflag -Za b\noriginal {}\nmirror /a b\n\
             root /more.rs\nflag -Zmore\n",
            root.display(),
            root.parent().unwrap().display()
        );
        let mut arguments = vec![
            OsString::from("--edition=2021"),
            root.clone().into(),
            OsString::from("--target"),
        ];
        assert_eq!(
            find(&arguments, &list),
            Some((
                1,
                Entry {
                    flags: vec!["-Za b".into()],
                    mirror: Some(Mirror {
                        original: root.parent().unwrap().to_owned(),
                        folder: "/a b".into(),
                        root: "/a b/lib.rs".into(),
                    })
                }
            ))
        );
        assert_eq!(find(&arguments, ""), None);
        assert_eq!(find(&words("- --target x"), &list), None);
        arguments.pop();
        assert_eq!(find(&arguments, &list), None, "for the host");
    }
}
