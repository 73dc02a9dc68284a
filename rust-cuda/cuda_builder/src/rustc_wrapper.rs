//! A stand-in for rustc that gives some crates flags of their own, and reads the
//! roots of some from another file.
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
//! substitute /path/to/another.rs
//! ```
//!
//! A call whose arguments name a root gets the flags below it; any other call,
//! and any for the host, goes through unchanged. A substitute goes to rustc's
//! standard input, under the name of the root: rustdoc's way of compiling
//! examples, `UNSTABLE_RUSTDOC_TEST_PATH`, makes messages, module paths and
//! `include!` relate to that name. The root itself is then added to the
//! dependency file, so that cargo notices when it changes.
//!
//! Called as rustc calls a linker of bitcode, which `--target-cpu` tells, it stands
//! in for that and writes an empty file where the option `-o` says.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

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
    let Some(substitute) = entry.substitute else {
        return finish(Command::new(&compiler).args(&arguments).status(), &compiler);
    };
    let source = fs::read(&substitute)
        .map_err(|error| format!("cannot read {}: {error}", substitute.display()))?;
    let root = PathBuf::from(std::mem::replace(
        &mut arguments[index],
        OsString::from("-"),
    ));
    let mut child = Command::new(&compiler)
        .args(&arguments)
        .env("UNSTABLE_RUSTDOC_TEST_PATH", &root)
        // What is added to every line number.
        .env("UNSTABLE_RUSTDOC_TEST_LINE", "0")
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {}: {error}", Path::new(&compiler).display()))?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that stops early closes its input; it says why itself.
        let _ = input.write_all(&source);
    }
    let status = child.wait();
    if status.as_ref().is_ok_and(|status| status.success())
        && let Some(file) = dependency_file(&arguments)
        && let Ok(text) = fs::read_to_string(&file)
    {
        fs::write(&file, with_dependency(&text, &root))
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
    substitute: Option<PathBuf>,
}

/// The argument that is a listed root, and what the list says about it.
fn find(arguments: &[OsString], list: &str) -> Option<(usize, Entry)> {
    // The same source may be compiled for the host too, as part of a procedural
    // macro, and then is none of this program's business.
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
        for line in lines {
            match line.split_once(' ') {
                Some(("flag", flag)) => entry.flags.push(flag.into()),
                Some(("substitute", path)) => entry.substitute = Some(path.into()),
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

/// The dependency file's text with `root` as one more source of everything.
fn with_dependency(text: &str, root: &Path) -> String {
    let root = root.to_string_lossy().replace(' ', "\\ ");
    let mut out = String::new();
    for line in text.lines() {
        out.push_str(line);
        // A rule; rustc writes the space also when nothing follows it. Neither a
        // comment nor a source file's own empty rule.
        if !line.starts_with('#') && line.contains(": ") {
            out.push(' ');
            out.push_str(&root);
        }
        out.push('\n');
    }
    out.push_str(&format!("\n{root}:\n"));
    out
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
    fn the_root_becomes_a_dependency_of_every_rule() {
        let text = "/t/k.d: src/a.rs\n\n/t/libk.rlib: src/a.rs\n\nsrc/a.rs:\n# env-dep:X=a: b\n";
        assert_eq!(
            with_dependency(text, Path::new("my src/lib.rs")),
            "/t/k.d: src/a.rs my\\ src/lib.rs\n\n/t/libk.rlib: src/a.rs my\\ src/lib.rs\n\nsrc/a.rs:\n\
             # env-dep:X=a: b\n\nmy\\ src/lib.rs:\n"
        );
    }

    #[test]
    fn only_listed_roots_are_changed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("lib.rs");
        fs::write(&root, "").unwrap();
        let list = format!(
            "root /elsewhere/lib.rs\nflag -Zother\nroot {}\nflag -Za b\nsubstitute /a b.rs\n\
             root /more.rs\nflag -Zmore\n",
            root.display()
        );
        let mut arguments = vec![
            OsString::from("--edition=2021"),
            root.into(),
            OsString::from("--target"),
        ];
        assert_eq!(
            find(&arguments, &list),
            Some((
                1,
                Entry {
                    flags: vec!["-Za b".into()],
                    substitute: Some("/a b.rs".into())
                }
            ))
        );
        assert_eq!(find(&arguments, ""), None);
        assert_eq!(find(&words("- --target x"), &list), None);
        arguments.pop();
        assert_eq!(find(&arguments, &list), None, "for the host");
    }
}
