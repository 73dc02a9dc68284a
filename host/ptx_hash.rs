//! Which PTX files there are, which sources they were built from, and whether they
//! are whole.
//!
//! One definition for the two that need it: host's build script (which compares)
//! and xtask (which writes); both take this file in with `#[path]`. It may use
//! std and sha2 only.

#![allow(dead_code, reason = "each of the two uses its part")]

use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The targets that PTX is committed for, lowest first: `ptx/halo_<target>.ptx`.
pub const TARGETS: [&str; 2] = ["sm_75", "sm_90"];

/// The command that writes the files.
pub const REBUILD_COMMAND: &str = "cargo xtask ptx";

/// What the PTX depends on, relative to the repository's root.
pub const SOURCES: [&str; 7] = [
    "gpu-kernels/Cargo.toml",
    "gpu-kernels/src",
    "rust-cuda/cuda_builder/src",
    "rust-cuda/cuda_std/src",
    "rust-cuda/cuda_std_macros/src",
    "stencil/Cargo.toml",
    "stencil/src",
];

const SOURCES_HASH: &str = "// halo-gpu kernels, sources sha256:";
const BUILDER: &str = "// built by ";
const TEXT_HASH: &str = "// text below sha256:";

/// The name of the PTX file for `target` in host's folder `ptx`.
pub fn file_name(target: &str) -> String {
    format!("halo_{target}.ptx")
}

/// How many lines a PTX file has before its text.
pub const HEADER_LINES: usize = 3;

/// The PTX file for what `builder` made of sources with this hash: three lines about
/// it, then the text.
pub fn file(sources: &str, builder: &str, text: &str) -> String {
    let text_hash = of_text(text);
    format!("{SOURCES_HASH} {sources}\n{BUILDER}{builder}\n{TEXT_HASH} {text_hash}\n{text}")
}

/// The hash of the sources that a PTX file was built from, by its first line, or
/// `None` without such a line.
pub fn recorded(file: &str) -> Option<&str> {
    hash_in(file.lines().next()?, SOURCES_HASH)
}

/// What built a PTX file, by its second line.
pub fn builder(file: &str) -> Option<&str> {
    file.lines().nth(1)?.strip_prefix(BUILDER)
}

/// Whether the text of a PTX file is what its third line says, with nothing missing
/// and nothing changed.
pub fn is_whole(file: &str) -> bool {
    let mut parts = file.splitn(HEADER_LINES + 1, '\n');
    match (parts.nth(HEADER_LINES - 1), parts.next()) {
        (Some(line), Some(text)) => hash_in(line, TEXT_HASH) == Some(&of_text(text)),
        _ => false,
    }
}

fn hash_in<'a>(line: &'a str, before: &str) -> Option<&'a str> {
    let hash = line.strip_prefix(before)?.trim();
    (hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(hash)
}

/// The SHA-256 of PTX with line ends as `\n`.
fn of_text(text: &str) -> String {
    hexadecimal(Sha256::digest(with_unix_line_ends(text.into())))
}

/// The SHA-256 over the files below [`SOURCES`] in the repository at `root`, as
/// 64 hexadecimal digits.
///
/// Each file counts with its path (sorted, `/` between the parts) and its
/// contents with line ends as `\n`, so that the hash is the same on every
/// platform and checkout. Hidden files (`.…`) and editors' backups (`…~`) do
/// not count.
pub fn of_sources(root: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(root, source.to_owned(), &mut files)?;
    }
    files.sort_unstable();
    let mut digest = Sha256::new();
    for (name, path) in files {
        let contents = fs::read(&path).map_err(|error| named(&path, &error))?;
        let contents = with_unix_line_ends(contents);
        // Lengths in front keep "ab" + "c" apart from "a" + "bc".
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name.as_bytes());
        digest.update((contents.len() as u64).to_le_bytes());
        digest.update(&contents);
    }
    Ok(hexadecimal(digest.finalize()))
}

fn hexadecimal(digest: impl AsRef<[u8]>) -> String {
    let digest = digest.as_ref().iter();
    digest.map(|byte| format!("{byte:02x}")).collect()
}

fn collect(root: &Path, name: String, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let path = root.join(&name);
    let kind = fs::metadata(&path).map_err(|error| named(&path, &error))?;
    if !kind.is_dir() {
        files.push((name, path));
        return Ok(());
    }
    for entry in fs::read_dir(&path).map_err(|error| named(&path, &error))? {
        let entry = entry.map_err(|error| named(&path, &error))?;
        let file = entry.file_name();
        let Some(file) = file.to_str() else {
            return Err(io::Error::other(format!(
                "{}: a file name that is not UTF-8",
                entry.path().display()
            )));
        };
        if !file.starts_with('.') && !file.ends_with('~') {
            collect(root, format!("{name}/{file}"), files)?;
        }
    }
    Ok(())
}

fn with_unix_line_ends(mut contents: Vec<u8>) -> Vec<u8> {
    if !contents.contains(&b'\r') {
        return contents;
    }
    let mut previous_is_cr = false;
    let mut kept = Vec::with_capacity(contents.len());
    for byte in contents.drain(..) {
        if previous_is_cr && byte != b'\n' {
            kept.push(b'\r');
        }
        previous_is_cr = byte == b'\r';
        if !previous_is_cr {
            kept.push(byte);
        }
    }
    if previous_is_cr {
        kept.push(b'\r');
    }
    kept
}

/// io errors say what went wrong, not with which file.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
