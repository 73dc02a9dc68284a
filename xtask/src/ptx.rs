//! `cargo xtask ptx`: builds the committed PTX from the kernels' sources.
//!
//! One file per target, `host/ptx/halo_<target>.ptx`. Its first line holds the hash of the sources,
//! which the library's build script compares with the present sources; the second names the
//! compiler; the third holds the hash of the text.

use std::path::Path;

use cargo_halo::{Outcome, output};
use cuda_builder::{CudaBuilder, NvvmArch};

use crate::error::Error;
use crate::flags::Ptx;
use crate::ptx_hash::{self, TARGETS};
use crate::workspace;

/// The committed file, relative to the repository's root, for a GPU of this architecture: the
/// highest target that the GPU can run.
pub(crate) fn committed_for(arch: &str) -> String {
    let number = |name: &str| -> u32 {
        let digits = name.trim_start_matches("sm_");
        digits.parse().unwrap_or(0)
    };
    let target = TARGETS
        .into_iter()
        .rev()
        .find(|target| number(target) <= number(arch))
        .unwrap_or(TARGETS[0]);
    format!("host/ptx/{}", ptx_hash::file_name(target))
}

/// Builds the PTX for each target and writes it or, with `--check`, compares it.
pub(crate) fn run(flags: &Ptx) -> Result<Outcome, Error> {
    let root = workspace::root()?;
    let hash = ptx_hash::of_sources(&root).map_err(Error::file("hash the sources below", &root))?;

    // In parallel: most of a build is LLVM's work on all kernels, in one thread.
    let built = std::thread::scope(|scope| {
        let builds: Vec<_> = flags
            .targets
            .iter()
            .map(|target| {
                eprintln!("ptx: building for {target}");
                scope.spawn(|| build(&root, target, &hash))
            })
            .collect();
        let joined = builds.into_iter().map(|build| {
            build
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.collect::<Result<Vec<_>, _>>()
    })?;

    let mut outcome = Outcome::Clean;
    for (target, built) in flags.targets.iter().zip(built) {
        let name = format!("host/ptx/{}", ptx_hash::file_name(target));
        let path = root.join(&name);
        if flags.check {
            if let Some(complaint) = complaint(std::fs::read_to_string(&path), &built, &hash) {
                outcome = Outcome::Findings;
                output::line(&format!("{name}: {complaint}"));
            } else {
                output::line(&format!("{name}: up to date"));
            }
        } else {
            let written = workspace::write_if_changed(&path, &built)?;
            let what = if written { "written" } else { "unchanged" };
            output::line(&format!("{name}: {what}"));
        }
    }
    Ok(outcome)
}

/// The difference between the committed file and a new build; `None` where they are equal.
fn complaint(committed: std::io::Result<String>, built: &str, hash: &str) -> Option<String> {
    let remedy = ptx_hash::REBUILD_COMMAND;
    match committed {
        Err(error) => Some(format!("{error}; run: {remedy}")),
        Ok(committed) if !ptx_hash::is_whole(&committed) => Some(format!(
            "its text does not have the hash in its third line; run: {remedy}"
        )),
        Ok(committed) => difference(&committed, built).map(|difference| {
            let what = if ptx_hash::recorded(&committed) == Some(hash) {
                "differs from what these sources build"
            } else {
                "was built from other sources than these"
            };
            let toolchains = match (ptx_hash::builder(&committed), ptx_hash::builder(built)) {
                (Some(then), Some(now)) if then != now => {
                    format!("\n(that file was built by {then}; this one is built by {now})")
                }
                _ => String::new(),
            };
            format!(
                "{what}; run: {remedy}{toolchains}\n{}",
                difference.trim_end()
            )
        }),
    }
}

/// The file for one target, with the PTX of all kernels.
fn build(root: &Path, target: &str, hash: &str) -> Result<String, Error> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Ptx {
        target: target.to_owned(),
        source,
    };
    let arch: NvvmArch = target.parse().map_err(|error| failed(Box::new(error)))?;
    let ptx = CudaBuilder::new(root.join("gpu-kernels"))
        .arch(arch)
        .build_ptx()
        .map_err(|error| failed(Box::new(error)))?;
    Ok(ptx_hash::file(
        hash,
        &format!("rustc {}, LLVM {}", ptx.rustc_version, ptx.llvm_version),
        &plain(&ptx.text),
    ))
}

/// The code without the parts of one kernel that change with another: LLVM's comments, and the
/// number of the function in labels, which are local to a function in PTX.
fn plain(text: &str) -> String {
    const LABEL: &str = "$L__BB";
    let mut plain = String::with_capacity(text.len());
    for line in text.lines() {
        let code = match line.find("//") {
            Some(at) if !line.contains('"') => line[..at].trim_end(),
            _ => line,
        };
        if code.is_empty() && !line.is_empty() {
            continue;
        }
        let mut pieces = code.split(LABEL);
        plain.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            plain.push_str(LABEL);
            plain.push_str(piece.trim_start_matches(|digit: char| digit.is_ascii_digit()));
        }
        plain.push('\n');
    }
    plain
}

/// The difference between the committed file and a new build; `None` where the hash of the sources
/// and the text are equal byte for byte.
fn difference(committed: &str, built: &str) -> Option<String> {
    // The compiler, and the hash that follows from the text, are not compared.
    let code = |text: &'_ str| -> Vec<String> {
        let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
        let about = lines.iter_mut().take(ptx_hash::HEADER_LINES).skip(1);
        about.for_each(String::clear);
        lines
    };
    let (old, new) = (code(committed), code(built));
    if old == new {
        return None;
    }
    let same_head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let left = old.len().min(new.len()) - same_head;
    let same_tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(left)
        .take_while(|(a, b)| a == b)
        .count();

    const SHOWN: usize = 8;
    let mut text = format!("@@ line {} @@\n", same_head + 1);
    for (sign, lines) in [('-', &old), ('+', &new)] {
        let changed = &lines[same_head..lines.len() - same_tail];
        for line in changed.iter().take(SHOWN) {
            text.push_str(&format!("{sign}{line}\n"));
        }
        if changed.len() > SHOWN {
            text.push_str(&format!("{sign}… {} more lines\n", changed.len() - SHOWN));
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::ptx_hash::file;
    use super::*;

    #[test]
    fn the_same_code_built_by_another_release_is_no_difference() {
        assert_eq!(
            difference(&file("a", "x", "1\n2\n"), &file("a", "y", "1\n2\n")),
            None
        );
    }

    #[test]
    fn a_kernels_text_does_not_depend_on_its_neighbours() {
        let text = "// a.b has been demoted\n.visible .entry a( // -- Begin function a\n\n\
            $L__BB12_3: // %inner\n\tbra $L__BB12_3; // back\n.file 1 \"a//b\"\n";
        let expected = ".visible .entry a(\n\n$L__BB_3:\n\tbra $L__BB_3;\n.file 1 \"a//b\"\n";
        assert_eq!(plain(text), expected);
    }

    #[test]
    fn a_difference_shows_the_lines_that_differ() {
        assert_eq!(
            difference(
                &file("a", "x", "1\n2\n3\n"),
                &file("a", "x", "1\n5\n6\n3\n")
            )
            .as_deref(),
            Some("@@ line 5 @@\n-2\n+5\n+6\n")
        );
        // Another hash over the same code is a difference, too.
        assert!(difference(&file("a", "x", "1\n"), &file("b", "x", "1\n")).is_some());
        // A missing last newline, too.
        assert!(difference(&file("a", "x", "1\n"), &file("a", "x", "1")).is_some());
    }

    #[test]
    fn a_complaint_says_what_is_wrong_and_what_to_run() {
        let hash = "0123456789abcdef".repeat(4);
        let built = file(&hash, "x", "1\n");
        assert_eq!(complaint(Ok(built.clone()), &built, &hash), None);
        let complaint = |committed| complaint(committed, &built, &hash).unwrap();
        let other = complaint(Ok(file(&"0".repeat(64), "x", "1\n")));
        assert!(other.starts_with("was built from other sources"), "{other}");
        let same = complaint(Ok(file(&hash, "x", "2\n")));
        assert!(
            same.starts_with("differs from what these sources build"),
            "{same}"
        );
        assert!(!same.contains("that file was"), "{same}");
        let elsewhere = complaint(Ok(file(&hash, "LLVM 9", "2\n")));
        assert!(
            elsewhere.contains("(that file was built by LLVM 9; this one is built by x)"),
            "{elsewhere}"
        );
        let missing = complaint(Err(std::io::ErrorKind::NotFound.into()));
        let damaged = complaint(Ok(built[..built.len() - 1].to_owned()));
        assert!(damaged.starts_with("its text does not"), "{damaged}");
        for text in [other, same, missing, damaged] {
            assert!(text.contains("run: cargo xtask ptx"), "{text}");
        }
    }

    #[test]
    fn a_long_difference_is_cut_short() {
        let long: String = (0..100).map(|line| format!("{line}\n")).collect();
        let text = difference(&file("a", "x", ""), &file("a", "x", &long)).unwrap();
        assert!(text.contains("+… 92 more lines"), "{text}");
    }

    #[test]
    fn an_architecture_runs_the_highest_target_below_it() {
        for (arch, target) in [
            ("sm_75", "sm_75"),
            ("sm_89", "sm_75"),
            ("sm_90", "sm_90"),
            ("sm_100", "sm_90"),
        ] {
            assert_eq!(committed_for(arch), format!("host/ptx/halo_{target}.ptx"));
        }
    }
}
