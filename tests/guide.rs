//! The Markdown pages, above all the guide in `docs/guide`: every link and anchor resolves, and every
//! page of the guide is a chapter. `cargo test -p halo-tests --doc` compiles and runs the guide's code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn source() -> PathBuf {
    root().join("docs/guide/src")
}

/// The Markdown of a page, with the file that it includes, or its part between two anchors, as mdBook
/// puts it there.
fn page(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let Some((before, rest)) = text.split_once("{{#include ") else {
        return text;
    };
    let (included, after) = rest.split_once("}}").expect("an include that ends");
    let (file, part) = included.split_once(':').unwrap_or((included, ""));
    let mut included = page(&path.with_file_name(file));
    if !part.is_empty() {
        let mark = |word: &str| format!("<!-- {word}: {part} -->");
        let between = included.split_once(&mark("ANCHOR"));
        let between = between.and_then(|(_, rest)| rest.split_once(&mark("ANCHOR_END")));
        included = between.expect("both anchors").0.to_owned();
    }
    format!("{before}{included}{after}")
}

/// The lines outside blocks of code, with the inside of `code` taken out.
fn prose(text: &str) -> Vec<String> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push(line.split('`').step_by(2).collect::<Vec<_>>().join("code"));
        }
    }
    assert!(!in_code, "a block of code does not end");
    lines
}

/// Where the links and pictures of a page lead.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text).join(" ");
    let behind = prose.split("](").skip(1);
    behind
        .map(|rest| rest.split_once(')').expect("a link that ends").0.to_owned())
        .collect()
}

/// The anchors of a page's headings, as mdBook makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if let Some(title) = line.strip_prefix('#').filter(|_| !in_code) {
            let title = title.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            found.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    found
}

/// The broken links of a page; `inside` is the folder that they must not leave.
fn broken(path: &Path, inside: &Path) -> Vec<String> {
    let text = page(path);
    let mut broken = Vec::new();
    for link in links(&text) {
        if link.starts_with("https://") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = if file.is_empty() {
            path.to_owned()
        } else {
            path.with_file_name(file)
        };
        let outside = || !target.canonicalize().unwrap().starts_with(inside);
        if !target.exists() {
            broken.push(format!("{path:?}: {link} leads nowhere"));
        } else if outside() {
            broken.push(format!("{path:?}: {link} leads out of {inside:?}"));
        } else if !anchor.is_empty() && !anchors(&page(&target)).contains(anchor) {
            broken.push(format!("{path:?}: {link} names no heading"));
        }
    }
    broken
}

/// The chapters, as `SUMMARY.md` lists them.
fn chapters() -> BTreeSet<PathBuf> {
    let listed = links(&page(&source().join("SUMMARY.md")));
    listed.iter().map(|it| source().join(it)).collect()
}

/// The Markdown pages below a folder. A folder that cargo builds in, or a hidden one, has none.
fn markdown(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            if !name.starts_with('.') && !path.join("CACHEDIR.TAG").exists() {
                found.extend(markdown(&path));
            }
        } else if name.ends_with(".md") {
            found.insert(path);
        }
    }
    found
}

#[test]
fn every_page_is_a_chapter() {
    let mut pages = markdown(&source());
    pages.remove(&source().join("SUMMARY.md"));
    assert_eq!(pages, chapters());
}

#[test]
fn every_link_leads_somewhere() {
    // A book is published without the repository around it.
    let guide = source().canonicalize().unwrap();
    let repository = root().canonicalize().unwrap();
    let mut found: Vec<String> = Vec::new();
    for page in markdown(&repository) {
        let inside = if page.starts_with(&guide) {
            &guide
        } else {
            &repository
        };
        found.extend(broken(&page, inside));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_picture_is_shown_and_all_are_small() {
    let shown: BTreeSet<PathBuf> = chapters()
        .iter()
        .flat_map(|chapter| {
            links(&page(chapter))
                .into_iter()
                .map(|it| chapter.with_file_name(it))
        })
        .filter_map(|it| it.canonicalize().ok())
        .collect();
    let mut bytes = 0;
    for entry in fs::read_dir(source().join("pictures")).unwrap() {
        let picture = entry.unwrap().path();
        assert!(
            shown.contains(&picture.canonicalize().unwrap()),
            "{picture:?} is in no chapter"
        );
        bytes += fs::metadata(&picture).unwrap().len();
    }
    assert!(bytes <= 300_000, "the pictures take {bytes} bytes");
}

#[test]
fn all_code_is_compiled() {
    let compiled = fs::read_to_string(root().join("tests/chapters.rs")).unwrap();
    for chapter in chapters() {
        let own = fs::read_to_string(&chapter).unwrap();
        let name = chapter
            .strip_prefix(source())
            .unwrap()
            .display()
            .to_string();
        if own.contains("```rust") {
            assert!(
                compiled.contains(&format!("\"{name}\"")),
                "tests/chapters.rs does not have {name}"
            );
        }
    }
}

#[test]
fn what_is_broken_is_found() {
    let folder = std::env::temp_dir().join(format!("halo-guide-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("page.md");
    let text =
        "# A `b` c\n[x](gone.md) [y](#a-b-c) [z](#nowhere) [w](https://w)\n```\n[v](u)\n```\n";
    fs::write(&path, text).unwrap();
    let found = broken(&path, &folder.canonicalize().unwrap());
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].ends_with("gone.md leads nowhere"), "{found:?}");
    assert!(found[1].ends_with("#nowhere names no heading"), "{found:?}");
}
