//! `cargo xtask tidy`: the repository's rules, executable.
//!
//! | rule | what it demands | why |
//! |---|---|---|
//! | `family-places` | a family has all its places: `gpu-kernels/src/F/mod.rs`, `host/src/F/{mod,gpu,cases}.rs`, `tests/F.rs`; if it computes something and does not merely measure the device, `host/src/F/cpu.rs`; if the table names twins of its kernels, `baselines/F.cu` | a search for the name returns the whole feature |
//! | `module-docs` | every Rust file begins with `//!` documentation | a reader learns what a file is for before reading it |
//! | `unsafe-places` | in `host/src`, the word `unsafe` stands only in `*/gpu.rs`, `device/`, `launch.rs`, `pages.rs`, `streaming.rs`, `threads/processor.rs` and `threads/team.rs`; in `bench/src` only in `baselines.rs`, `cpp.rs` and `cub.rs`; in `xtask/src` nowhere | what must be reviewed for soundness is a known, small set |
//! | `cpu-port` | `host/src/F/cpu.rs` forbids unsafe code, also that of families in common | the port is what kernels are checked against: it stays plain |
//! | `absolute-path` | no file names a path of somebody's machine | the repository works wherever it is cloned |
//! | `marker` | no file holds a marker of unfinished work | committed work is finished; the rest is
//! an issue |
//! | `layers` | a module imports what its layer may, and none itself by way of others; the layers are data in `tidy/layers.rs`, and `--imports` says who imports whom | a part can be understood without those above it |
//! | `lists` | whatever names every family, as the modules of a crate or the table of kernels, names those that have a folder of kernels; `--write` writes these lists | a family is its own files, and no list is kept by hand |
//! | `refusals` | every public call of `host/src` that returns a `Result` is called in a file with a property test, which gives it bad input; `tidy/refusals.rs` has the few that cannot be, with reasons | nothing a user gives panics, hangs or is taken for something else |
//! | `crates` | no crate that `tidy/crates.rs` refuses is in a build with default features | nobody waits for, or relies on, what is unmaintained or wanted by few |
//! | `named-tests` | `docs/robustness.md` names files and tests that are there | the page says what guards what, and stays true |
//!
//! Files under a folder called `fixtures` are test data: `absolute-path` and `marker`
//! cover them, `module-docs` does not. Neither does it cover `ui`, whose
//! files are programs that must not compile.
//!
//! `--public` counts the items of the library's documentation, which cargo has to write for it:
//! it is not a rule, but fails like one where there are too many.
//!
//! That every kernel has its name, a test and a row are facts of the table of kernels, as
//! `tests/conformance.rs` and `bench/table.rs` see.

mod crates;
mod layers;
mod lists;
mod named;
mod public;
mod refusals;
mod tree;

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use cargo_halo::{Outcome, output};
use gpu_kernels::registry::{self, Family};
use proc_macro2::{TokenStream, TokenTree};

use crate::error::Error;
use crate::flags;
use crate::rust_source;
use crate::workspace;
use tree::{Finding, Findings, Rule, Tree, is_rust};

pub(crate) use tree::KERNELS;

/// Checks every rule, prints each finding on a line of its own.
pub(crate) fn run(flags: &flags::Tidy) -> Result<Outcome, Error> {
    let root = workspace::root()?;
    if flags.public {
        return public::count(&root);
    }
    let tree = Tree {
        files: workspace::files(&root)?,
        root,
        table: registry::FAMILIES,
    };
    if flags.write {
        lists::write(&tree)?;
    }
    if flags.imports {
        layers::list(&tree)?;
        return Ok(Outcome::Clean);
    }
    let findings = check(&tree)?;
    for finding in &findings {
        output::line(&finding.to_string());
    }
    match findings.len() {
        0 => {
            eprintln!(
                "tidy: {} files, {} rules, nothing found",
                tree.files.len(),
                RULES.len()
            );
            Ok(Outcome::Clean)
        }
        count => {
            eprintln!("tidy: {count} found; the rules are explained in xtask/src/tidy.rs");
            Ok(Outcome::Findings)
        }
    }
}

const RULES: [(&str, Rule); 11] = [
    ("family-places", family_places),
    ("module-docs", module_docs),
    ("unsafe-places", unsafe_places),
    ("cpu-port", cpu_port),
    ("absolute-path", absolute_path),
    ("marker", marker),
    ("layers", layers::layers),
    ("lists", lists::lists),
    ("refusals", refusals::refusals),
    ("crates", crates::crates),
    ("named-tests", named::named_tests),
];

fn check(tree: &Tree) -> Result<Vec<Finding>, Error> {
    let mut findings = Findings {
        rule: "",
        all: Vec::new(),
    };
    for (name, rule) in RULES {
        findings.rule = name;
        rule(tree, &mut findings)?;
    }
    findings.all.sort();
    Ok(findings.all)
}

/// The family whose folder in gpu-kernels this file is in, if any.
pub(crate) fn family_of(file: &Path) -> Option<&str> {
    let inside = file.strip_prefix(KERNELS).ok()?;
    let mut components = inside.components();
    let first = components.next()?;
    components.next()?;
    match first {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }
}

/// The folders of `host/src` with ports and launches for several families.
const SHARED: [&str; 2] = ["single_pass", "stencil"];

/// The families: those of the table, and those with a folder of kernels, a launch file in the
/// library or a baseline.
fn families(tree: &Tree) -> BTreeSet<String> {
    let table = tree.table.iter().map(|family| family.name.to_owned());
    let mut families: BTreeSet<String> = table.collect();
    for file in &tree.files {
        families.extend(family_of(file).map(str::to_owned));
        if let Ok(inside) = file.strip_prefix("host/src")
            && inside.components().count() == 2
            && inside.ends_with("gpu.rs")
            && let Some(folder) = inside.parent()
            && !SHARED.iter().any(|shared| folder.ends_with(shared))
        {
            families.insert(folder.display().to_string());
        }
        if file.starts_with("baselines")
            && file.extension().is_some_and(|extension| extension == "cu")
            && let Some(stem) = file.file_stem()
            // CUB is a baseline of a family.
            && stem != "cub"
        {
            families.insert(stem.to_string_lossy().into_owned());
        }
    }
    families
}

/// The places of a family F, and the families that need them.
const PLACES: [(&str, Needed); 7] = [
    ("gpu-kernels/src/F/mod.rs", Needed::Always),
    ("host/src/F/mod.rs", Needed::Always),
    ("host/src/F/gpu.rs", Needed::Always),
    ("host/src/F/cases.rs", Needed::Always),
    ("host/src/F/cpu.rs", Needed::ToCompute),
    ("tests/F.rs", Needed::Always),
    ("baselines/F.cu", Needed::ForTwins),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Always,
    /// Families that compute something, instead of measuring the device.
    ToCompute,
    /// Families whose kernels have twins, by the table.
    ForTwins,
}

fn family_places(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    for name in families(tree) {
        let family = tree.table.iter().find(|family| family.name == name);
        for (place, needed) in PLACES {
            let place = place.replace('F', &name);
            let wanted = match needed {
                Needed::Always => true,
                // Its kernels measure the device and compute nothing, so there is no port.
                Needed::ToCompute => !family.is_some_and(Family::is_instrument),
                Needed::ForTwins => family
                    .is_some_and(|family| family.kernels.iter().any(|it| !it.twins.is_empty())),
            };
            if wanted && !tree.has(&place) {
                let message = format!("missing: every place of the family {name} must exist");
                findings.add(place, 0, message);
            }
        }
    }
    Ok(())
}

fn module_docs(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    for file in tree.files.iter().filter(|file| is_rust(file)) {
        if in_folder(file, "fixtures") || in_folder(file, "ui") {
            continue;
        }
        let syntax = rust_source::parse(file, &tree.text(file)?)?;
        let documented = syntax.attrs.iter().any(|attribute| {
            matches!(attribute.style, syn::AttrStyle::Inner(_)) && attribute.path().is_ident("doc")
        });
        if !documented {
            findings.add(
                file,
                1,
                "does not begin with //! documentation of what it is for",
            );
        }
    }
    Ok(())
}

/// The folders where unsafe code is allowed in some places, and those places: files and folders, or
/// names of files anywhere below.
const UNSAFE: [(&str, &[&str]); 3] = [
    (
        "host/src",
        &[
            "*/gpu.rs",
            "device",
            "launch.rs",
            "pages.rs",
            "streaming.rs",
            "threads/processor.rs",
            "threads/team.rs",
        ],
    ),
    ("bench/src", &["baselines.rs", "cpp.rs", "cub.rs"]),
    ("xtask/src", &[]),
];

fn unsafe_places(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    for (folder, places) in UNSAFE {
        for file in tree.rust_under(folder) {
            let inside = file.strip_prefix(folder).unwrap_or(file);
            let is_in = |place: &&str| match place.strip_prefix("*/") {
                Some(name) => inside.ends_with(name),
                None => inside.starts_with(place),
            };
            if places.iter().any(is_in) {
                continue;
            }
            let tokens: TokenStream =
                tree.text(file)?
                    .parse()
                    .map_err(|error: proc_macro2::LexError| Error::Parse {
                        path: file.clone(),
                        line: error.span().start().line,
                        message: error.to_string(),
                    })?;
            if let Some(line) = first_unsafe(&tokens) {
                let places = places.join(", ");
                findings.add(
                    file,
                    line,
                    format!("unsafe code in {folder} belongs in {places}"),
                );
            }
        }
    }
    Ok(())
}

fn first_unsafe(tokens: &TokenStream) -> Option<usize> {
    tokens.clone().into_iter().find_map(|token| match token {
        TokenTree::Group(group) => first_unsafe(&group.stream()),
        TokenTree::Ident(ident) if ident == "unsafe" => Some(ident.span().start().line),
        _ => None,
    })
}

fn cpu_port(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    let shared = SHARED.map(str::to_owned);
    for folder in families(tree).into_iter().chain(shared) {
        let file = PathBuf::from(format!("host/src/{folder}/cpu.rs"));
        // A missing file is reported by family-places.
        if !tree.has(&file) {
            continue;
        }
        let forbids = tree
            .text(&file)?
            .lines()
            .any(|line| line.trim() == "#![forbid(unsafe_code)]");
        if !forbids {
            findings.add(file, 1, "a CPU port must say #![forbid(unsafe_code)]");
        }
    }
    Ok(())
}

fn absolute_path(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    // Roots of people's folders. System folders, such as those of shells and package managers, are
    // the same on every machine.
    const ROOTS: [&str; 8] = [
        "home", "root", "work", "tmp", "Users", "mnt", "farm", "private",
    ];
    each_line(tree, |file, number, line| {
        for root in ROOTS {
            let needle = format!("/{root}/");
            for (start, _) in line.match_indices(&needle) {
                let begins = !line[..start].ends_with(|c: char| {
                    c.is_alphanumeric()
                        || matches!(c, '_' | '-' | '.' | '/' | '*' | '}' | '>' | ')')
                });
                let goes_on = line[start + needle.len()..].starts_with(|c: char| {
                    c.is_alphanumeric() || matches!(c, '.' | '_' | '$' | '{')
                });
                if begins && goes_on {
                    findings.add(
                        file,
                        number,
                        format!("names a path of one machine ({needle}…)"),
                    );
                    return;
                }
            }
        }
    })
}

fn marker(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    // In two halves, so that this file obeys its own rule.
    const MARKERS: [&str; 3] = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
    ];
    each_line(tree, |file, number, line| {
        if let Some(marker) = MARKERS
            .iter()
            .find(|marker| rust_source::has_word(line, marker))
        {
            findings.add(
                file,
                number,
                format!("{marker}: finish it, or leave the words out"),
            );
        }
    })
}

/// Calls `look` with every line of every text file.
fn each_line(tree: &Tree, mut look: impl FnMut(&Path, usize, &str)) -> Result<(), Error> {
    for file in &tree.files {
        let path = tree.root.join(file);
        let bytes = std::fs::read(&path).map_err(Error::file("read", path))?;
        // A file that is not UTF-8 is not text.
        if let Ok(text) = String::from_utf8(bytes) {
            for (index, line) in text.lines().enumerate() {
                look(file, index + 1, line);
            }
        }
    }
    Ok(())
}

fn in_folder(file: &Path, folder: &str) -> bool {
    file.parent()
        .is_some_and(|parent| parent.components().any(|part| part.as_os_str() == folder))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A tree without violations: one family with one kernel.
    const SOUND: [(&str, &str); 7] = [
        (
            "gpu-kernels/src/lib.rs",
            "//! Kernels.\n// Families, which `cargo xtask tidy --write` lists.\npub mod heat2d;\n",
        ),
        (
            "gpu-kernels/src/heat2d/mod.rs",
            "//! Heat.\n#[kernel]\npub unsafe fn heat2d_global() {}\n",
        ),
        ("host/src/heat2d/mod.rs", "//! Heat.\n"),
        (
            "host/src/heat2d/cpu.rs",
            "//! Port.\n#![forbid(unsafe_code)]\n",
        ),
        (
            "host/src/heat2d/gpu.rs",
            "//! Launches.\nunsafe fn launch() {}\n",
        ),
        (
            "tests/heat2d.rs",
            "//! Tests.\n#[test]\nfn global() { run(\"heat2d_global\") }\n",
        ),
        ("host/src/heat2d/cases.rs", "//! Cases.\n"),
    ];

    /// The findings in the sound tree after these changes of files; an empty text removes the file.
    fn findings(changes: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in SOUND.iter().chain(changes) {
            let path = folder.path().join(path);
            if text.is_empty() {
                fs::remove_file(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        let mut files = Vec::new();
        let mut pending = vec![folder.path().to_path_buf()];
        while let Some(next) = pending.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    files.push(path.strip_prefix(folder.path()).unwrap().to_path_buf());
                }
            }
        }
        files.sort();
        let tree = Tree {
            root: folder.path().to_path_buf(),
            files,
            table: &[],
        };
        check(&tree)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    /// These changes cause exactly one finding: of this rule, at this place.
    #[track_caller]
    fn fires(changes: &[(&str, &str)], rule: &str, place: &str) {
        let findings = findings(changes);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert!(findings[0].ends_with(&format!("[{rule}]")), "{findings:?}");
        assert!(
            findings[0].starts_with(&format!("{place}:")),
            "{findings:?}"
        );
    }

    #[test]
    fn a_sound_tree_has_no_findings() {
        assert_eq!(findings(&[]), Vec::<String>::new());
    }

    #[test]
    fn family_places_each_one() {
        for place in [
            "host/src/heat2d/mod.rs",
            "host/src/heat2d/cpu.rs",
            "host/src/heat2d/gpu.rs",
            "host/src/heat2d/cases.rs",
            "tests/heat2d.rs",
        ] {
            fires(&[(place, "")], "family-places", place);
        }
        // The launch file makes it a family, and the list of modules names it.
        let kernels = "gpu-kernels/src/heat2d/mod.rs";
        let findings = findings(&[(kernels, "")]);
        let places = [kernels, "gpu-kernels/src/lib.rs:3"];
        let (first, others) = findings.split_at(places.len());
        for (finding, place) in first.iter().zip(places) {
            assert!(finding.starts_with(place), "{findings:#?}");
        }
        // A folder without kernels is not a family, and its modules are in no layer.
        assert!(
            others.iter().all(|it| it.ends_with("[layers]")),
            "{findings:#?}"
        );
    }

    /// The findings without any file, with these families in the table.
    fn findings_of_table(table: &'static [Family]) -> Vec<Finding> {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree {
            root: folder.path().to_path_buf(),
            files: Vec::new(),
            table,
        };
        check(&tree).unwrap()
    }

    /// The places that this family of the table needs.
    fn needed(family: &str) -> Vec<String> {
        let at = registry::FAMILIES.iter().position(|it| it.name == family);
        let findings = findings_of_table(&registry::FAMILIES[at.unwrap()..][..1]);
        assert!(findings.iter().all(|it| it.rule == "family-places"));
        let places = findings.iter().map(|it| it.path.display().to_string());
        places.collect()
    }

    #[test]
    fn a_family_of_the_table_has_its_places() {
        assert_eq!(needed("heat2d").len(), PLACES.len());
        assert!(needed("heat2d").contains(&"baselines/heat2d.cu".to_owned()));
        // Without twins, and then without a port too.
        assert_eq!(needed("elementwise").len(), PLACES.len() - 1);
        assert_eq!(needed("roofline").len(), PLACES.len() - 2);
    }

    #[test]
    fn a_family_is_known_by_its_kernels_its_launches_or_its_baseline() {
        for place in [
            "gpu-kernels/src/nbody/mod.rs",
            "host/src/nbody/gpu.rs",
            "baselines/nbody.cu",
        ] {
            let findings = findings(&[(place, "//! N-body.\n")]);
            let places = findings.iter().filter(|it| it.ends_with("[family-places]"));
            let missing = PLACES.len() - 1 - usize::from(!place.ends_with(".cu"));
            assert_eq!(places.count(), missing, "{findings:#?}");
        }
    }

    #[test]
    fn lists_name_the_families_that_there_are() {
        let list = "//! K.\n// Families, which `cargo xtask tidy --write` lists.\n";
        let lib = "gpu-kernels/src/lib.rs";
        for (text, place) in [
            (format!("{list}\nmod other;\n"), "gpu-kernels/src/lib.rs:3"),
            (
                format!("{list}pub mod heat2d;\npub mod nbody;\n"),
                "gpu-kernels/src/lib.rs:4",
            ),
            ("//! K.\npub mod heat2d;\n".to_owned(), lib),
        ] {
            fires(&[(lib, &text)], "lists", place);
        }
        let fine = format!("{list}pub mod heat2d;\n\nmod other;\n");
        assert_eq!(findings(&[(lib, &fine)]), [""; 0]);
    }

    #[test]
    fn refusals_without_a_property_test() {
        let library = "//! L.\npub struct S;\nimpl S {\n    pub fn new(n: usize) -> Result<S, E> {}\n    \
            pub fn len(&self) -> usize {}\n    fn own() -> Result<(), E> {}\n}\n\
            #[cfg(test)]\nmod tests {\n    pub fn help() -> Result<(), E> {}\n}\n";
        let place = "host/src/heat2d/mod.rs";
        let other = ("tests/other.rs", "//! T.\n#[test]\nfn a() { S::new(1) }\n");
        fires(
            &[(place, library), other],
            "refusals",
            "host/src/heat2d/mod.rs:4",
        );
        for called in [
            "S::new(n)",
            "S::<f32>::new(n)",
            "judge(make::new::<f32>(n))",
        ] {
            let text = format!("//! T.\nproptest! {{ fn a(n in 0..3) {{ {called} }} }}\n");
            assert!(
                findings(&[(place, library), ("tests/other.rs", &text)]).is_empty(),
                "{called}"
            );
        }
        let text = "//! T.\nproptest! { fn a(n in 0..3) { s.new + (n) } }\n";
        fires(
            &[(place, library), ("tests/other.rs", text)],
            "refusals",
            place,
        );
    }

    #[test]
    fn module_docs_missing() {
        fires(
            &[("host/src/field.rs", "// A comment.\nfn f() {}\n")],
            "module-docs",
            "host/src/field.rs:1",
        );
        fires(
            &[("host/src/field.rs", "/// Of the item.\nfn f() {}\n")],
            "module-docs",
            "host/src/field.rs:1",
        );
        assert!(findings(&[("a/fixtures/b/src/lib.rs", "fn f() {}\n")]).is_empty());
        assert!(findings(&[("tests/ui/wrong.rs", "fn f() {}\n")]).is_empty());
    }

    #[test]
    fn unsafe_outside_its_places() {
        fires(
            &[(
                "host/src/field.rs",
                "//! Field.\nfn f() {\n    unsafe { g() }\n}\n",
            )],
            "unsafe-places",
            "host/src/field.rs:3",
        );
        fires(
            &[("xtask/src/ptx.rs", "//! P.\nunsafe fn f() {}\n")],
            "unsafe-places",
            "xtask/src/ptx.rs:2",
        );
        assert!(
            findings(&[
                ("host/src/launch.rs", "//! L.\nunsafe fn f() {}\n"),
                ("host/src/streaming.rs", "//! S.\nunsafe fn f() {}\n"),
                ("host/src/device/cuda.rs", "//! D.\nunsafe fn f() {}\n"),
                ("bench/src/cub.rs", "//! C.\nunsafe fn f() {}\n"),
                (
                    "host/src/field.rs",
                    "//! No unsafe code here.\n#![deny(unsafe_code)]\n"
                ),
            ])
            .is_empty()
        );
    }

    #[test]
    fn cpu_port_that_does_not_forbid_unsafe() {
        fires(
            &[(
                "host/src/heat2d/cpu.rs",
                "//! Port.\n// #![forbid(unsafe_code)]\n",
            )],
            "cpu-port",
            "host/src/heat2d/cpu.rs:1",
        );
        fires(
            &[("host/src/single_pass/cpu.rs", "//! Port.\n")],
            "cpu-port",
            "host/src/single_pass/cpu.rs:1",
        );
    }

    #[test]
    fn absolute_paths() {
        for path in [
            concat!("/ho", "me/me/x"),
            concat!("'/wo", "rk/main'"),
            concat!("x=/tm", "p/a.txt"),
            concat!("(/Us", "ers/me/src)"),
            concat!("/ro", "ot/.cargo"),
        ] {
            fires(
                &[("docs/a.md", &format!("One\nsee {path}\n"))],
                "absolute-path",
                "docs/a.md:2",
            );
        }
        for fine in [
            "docs/tmp/x",
            "target/work/a",
            "$HOME/tmp/x",
            "a / home / b",
            "/etc/os-release",
        ] {
            assert!(findings(&[("docs/a.md", fine)]).is_empty(), "{fine}");
        }
    }

    #[test]
    fn markers() {
        for word in [
            concat!("TO", "DO"),
            concat!("FIX", "ME"),
            concat!("XX", "X"),
        ] {
            fires(
                &[("docs/a.md", &format!("{word}: later\n"))],
                "marker",
                "docs/a.md:1",
            );
        }
        assert!(
            findings(&[("docs/a.md", concat!("mktemp a.XX", "XXXX and TO", "DOS"))]).is_empty()
        );
    }

    #[test]
    fn layers_that_look_up() {
        let up = ("host/src/error.rs", "//! E.\nuse crate::device::Buffer;\n");
        let device = ("host/src/device/mod.rs", "//! D.\npub struct Buffer;\n");
        fires(&[up, device], "layers", "host/src/error.rs:2");
        fires(
            &[("host/src/new.rs", "//! N.\n")],
            "layers",
            "host/src/new.rs",
        );
        let down = (
            "host/src/device/mod.rs",
            "//! D.\nuse crate::error::Error;\n",
        );
        assert!(findings(&[("host/src/error.rs", "//! E.\npub enum Error {}\n"), down]).is_empty());
    }

    #[test]
    fn files_that_are_no_text_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.bin"), [0xff, 0xfe, 0x00]).unwrap();
        let tree = Tree {
            root: folder.path().to_path_buf(),
            files: vec!["a.bin".into()],
            table: &[],
        };

        assert!(check(&tree).unwrap().is_empty());
    }
}
