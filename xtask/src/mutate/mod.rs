//! `cargo xtask mutate`: measures whether the tests notice broken kernels.
//!
//! Every kernel is broken in every small way that [`operators`] knows (a barrier removed, a guard
//! off by one, a halo one too narrow, x taken for y …), one at a time, and its family's tests run
//! in the emulator. They must fail. If no test notices a mutation, it has survived: either a test
//! is missing, or the mutation changes nothing, and then a comment in the source must say so
//! ([`waiver`]).
//!
//! All mutations are compiled at once, each behind a switch ([`instrument`]), in a copy of the
//! workspace under the target folder ([`build`]). Trying one takes a run of the tests that execute
//! it ([`trial`]), and no build. Outcomes are stored ([`record`]), so that a stopped run can be
//! continued. The built tests can be copied to a machine that has nothing else ([`pack`]).

mod build;
mod built;
mod instrument;
mod journal;
mod mutation;
mod operators;
mod pack;
mod reach;
mod record;
mod suite;
mod trial;
mod waiver;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cargo_halo::kernels::rust_files;
use cargo_halo::{Outcome, output};
use gpu_kernels::registry;
use indicatif::{ProgressBar, ProgressStyle};
use quote::ToTokens as _;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::flags::Mutate;
use crate::rust_source;
use crate::tidy::KERNELS;
use crate::workspace;
use build::{Copy, Source};
use built::Built;
use journal::lock;
use mutation::{CONFORMANCE, Mutation, SOURCES, STENCIL, UNITS, serves};
use operators::Site;
use reach::Reach;
use record::Record;
use suite::Verdict;
use trial::{Fate, Trials};

/// All mutations of the kernels.
struct Found {
    /// The families, sorted.
    families: Vec<String>,
    /// The text of each source, by path.
    texts: BTreeMap<PathBuf, String>,
    /// A hash of each source's code, without comments.
    codes: BTreeMap<PathBuf, String>,
    mutations: Vec<Mutation>,
    /// Invalid waivers: path, line, and the reason.
    complaints: Vec<String>,
}

pub(crate) fn run(flags: &Mutate) -> Result<Outcome, Error> {
    if let Some(folder) = &flags.packed {
        let tally = pack::read(folder)?.try_all(folder, flags)?;
        output::line(&tally.to_string());
        return Ok(clean_if(tally.survived == 0));
    }
    let root = workspace::root()?;
    let families = registry::FAMILIES.iter().map(|it| it.name);
    let families = families.chain([STENCIL]).map(str::to_owned);
    let found = find(&root, families.collect())?;
    for complaint in &found.complaints {
        output::line(complaint);
    }
    let families = &found.families;
    if let Some(unknown) = flags
        .families
        .iter()
        .find(|family| !families.contains(family))
    {
        return Err(Error::Mutation(format!(
            "there is no family {unknown}; there are: {}",
            families.join(", ")
        )));
    }
    let selected = select(&found.mutations, flags);
    if flags.list {
        for mutation in &selected {
            match &mutation.waived {
                Some(reason) => {
                    output::line(&format!("{}  (equivalent: {reason})", mutation.describe()));
                }
                None => output::line(&mutation.describe()),
            }
        }
        return Ok(clean_if(found.complaints.is_empty()));
    }

    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root.join("target"), |folder| root.join(folder));
    if let Some(folder) = &flags.pack {
        pack::write(folder, build(&root, &target, &found, &selected)?)?;
        return Ok(Outcome::Clean);
    }
    let tally = execute(&root, &target, &found, &selected, flags)?;
    output::line(&tally.to_string());
    Ok(clean_if(tally.survived == 0 && found.complaints.is_empty()))
}

/// The outcomes of the selected mutations.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    caught: usize,
    survived: usize,
    /// Equivalent, according to the source.
    waived: usize,
    /// The compiler rejects them, so no test needs to notice them.
    rejected: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.caught + self.survived + self.waived + self.rejected;
        write!(
            f,
            "mutate: {all} mutations: {} caught, {} survived",
            self.caught, self.survived
        )?;
        if self.waived > 0 {
            write!(f, ", {} equivalent by their waivers", self.waived)?;
        }
        if self.rejected > 0 {
            write!(f, ", {} that do not compile", self.rejected)?;
        }
        Ok(())
    }
}

/// Builds the selected mutations into a copy of the workspace under `target`, tries each, and
/// prints its outcome.
fn execute(
    root: &Path,
    target: &Path,
    found: &Found,
    selected: &[&Mutation],
    flags: &Mutate,
) -> Result<Tally, Error> {
    let built = build(root, target, found, selected)?;
    built.try_all(&target.join("mutate"), flags)
}

/// Builds the selected mutations into a copy of the workspace under `target`.
fn build(
    root: &Path,
    target: &Path,
    found: &Found,
    selected: &[&Mutation],
) -> Result<Built, Error> {
    let to_run: Vec<&Mutation> = selected
        .iter()
        .copied()
        .filter(|mutation| mutation.waived.is_none())
        .collect();
    if to_run.is_empty() {
        return Err(Error::Mutation(
            "the flags select no mutation (see cargo xtask mutate --list)".to_owned(),
        ));
    }
    let mut families = found.families.clone();
    families.retain(|family| {
        to_run
            .iter()
            .any(|it| it.family.as_ref().is_none_or(|of| serves(family, of)))
    });

    eprintln!(
        "mutate: building the tests of {} with {} mutations",
        families.join(", "),
        to_run.len()
    );
    let copy = Copy::of(root, target)?;
    // All sources, mutated or not: the copy needs every one.
    let mut sources: Vec<Source> = found
        .texts
        .iter()
        .map(|(path, text)| Source {
            path: path.clone(),
            text: text.clone(),
            sites: to_run
                .iter()
                .filter(|mutation| mutation.path == *path)
                .map(|mutation| (mutation.number, mutation.site.clone()))
                .collect(),
        })
        .collect();
    let in_table = |family: &&String| registry::family(family).is_some();
    let mut names = families.clone();
    if families.iter().any(|family| in_table(&family)) {
        names.push(CONFORMANCE.to_owned());
    }
    let (mut suites, rejected) = copy.build(&mut sources, &names)?;
    // A crate without unit tests has an empty test program.
    suites.retain(|name, suite| {
        !UNITS.contains(&name.as_str()) || suite.tests().is_ok_and(|tests| !tests.is_empty())
    });
    Ok(Built {
        families,
        suites,
        mutations: selected.iter().copied().cloned().collect(),
        rejected,
        codes: found.codes.clone(),
        hash: copy.hash,
    })
}

impl Built {
    /// Tries each of the mutations that the flags ask for, keeps in `folder` what is found
    /// out, and prints what became of each.
    fn try_all(&self, folder: &Path, flags: &Mutate) -> Result<Tally, Error> {
        let runs = |mutation: &&Mutation| {
            mutation.waived.is_none() && !self.rejected.contains(&mutation.number)
        };
        let mut tree = Sha256::new().chain_update(&self.hash);
        for mutation in self.mutations.iter().filter(runs) {
            tree.update(mutation.number.to_le_bytes());
        }
        let tree = format!("{:x}", tree.finalize());
        let reach = Reach::open(&folder.join("reach.jsonl"), tree)?;
        let timeout = flags.timeout.map(Duration::from_secs);
        let trials = Trials::of(&self.suites, &self.families, timeout, reach)?;

        let selected = select(&self.mutations, flags);
        let mut to_run: Vec<&Mutation> = selected.iter().copied().filter(runs).collect();
        if let Some((part, of)) = flags.part {
            to_run = self::part(&to_run, part as usize, of as usize);
        }
        let record = Record::open(
            &folder.join("record.jsonl"),
            self.codes.clone(),
            self.hash.clone(),
        )?;
        let fates = try_all(&to_run, &trials, &record, flags)?;
        let caught = fates.iter().filter(|fate| fate.caught()).count();
        let is_waived = |mutation: &&&Mutation| mutation.waived.is_some();
        let is_rejected = |it: &&&Mutation| self.rejected.contains(&it.number);
        Ok(Tally {
            caught,
            survived: fates.len() - caught,
            waived: selected.iter().filter(is_waived).count(),
            rejected: selected.iter().filter(is_rejected).count(),
        })
    }
}

/// The `part`-th of `of` parts, from 1, in the order of the sources.
fn part<T: Clone>(all: &[T], part: usize, of: usize) -> Vec<T> {
    all[all.len() * (part - 1) / of..all.len() * part / of].to_vec()
}

fn clean_if(clean: bool) -> Outcome {
    if clean {
        Outcome::Clean
    } else {
        Outcome::Findings
    }
}

/// Finds every mutation of the kernels' sources, and the waivers.
fn find(root: &Path, families: Vec<String>) -> Result<Found, Error> {
    let mut found = Found {
        families,
        texts: BTreeMap::new(),
        codes: BTreeMap::new(),
        mutations: Vec::new(),
        complaints: Vec::new(),
    };
    let mut files = Vec::new();
    for folder in SOURCES {
        files.extend(rust_files(&root.join(folder))?);
    }
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file).to_path_buf();
        let text = workspace::read(&file)?;
        let family = found.families.iter().find(|family| {
            path.starts_with(Path::new(KERNELS).join(family))
                || *family == STENCIL && !path.starts_with(KERNELS)
        });
        let family = family.cloned();

        let (waivers, malformed) = waiver::waivers(&text);
        for wrong in malformed {
            found.complaints.push(format!(
                "{}:{}: {}",
                path.display(),
                wrong.line,
                wrong.message
            ));
        }
        let sites = operators::sites(&path, &text)?;
        for waiver in &waivers {
            if !sites.iter().any(|site| waiver.covers(site)) {
                found.complaints.push(format!(
                    "{}:{}: this waiver covers no mutation; remove it, or see --list for what there is",
                    path.display(),
                    waiver.line
                ));
            }
        }
        let code = rust_source::without_docs(rust_source::parse(&path, &text)?.into_token_stream());
        let code = format!("{:x}", Sha256::digest(code.to_string()));
        found.codes.insert(path.clone(), code);
        let mut counts = HashMap::new();
        for site in sites {
            let same = (site.function.clone(), site.operator, site.what.clone());
            let count: &mut u32 = counts.entry(same).or_default();
            let earlier = *count;
            *count += 1;
            found.mutations.push(Mutation {
                number: found.mutations.len() as u32,
                path: path.clone(),
                family: family.clone(),
                rank: rank(&path, &site, earlier),
                waived: waivers
                    .iter()
                    .find(|waiver| waiver.covers(&site))
                    .map(|waiver| waiver.reason.clone()),
                site,
            });
        }
        found.texts.insert(path, text);
    }
    Ok(found)
}

/// The mutations that the flags ask for, in the order of the sources.
fn select<'a>(mutations: &'a [Mutation], flags: &Mutate) -> Vec<&'a Mutation> {
    let mut selected: Vec<&Mutation> = mutations
        .iter()
        .filter(|mutation| {
            flags.families.is_empty()
                || mutation
                    .family
                    .as_ref()
                    .is_some_and(|family| flags.families.contains(family))
        })
        .filter(|mutation| {
            let line = mutation.describe();
            flags.only.is_empty() || flags.only.iter().any(|text| line.contains(text))
        })
        .collect();
    if let Some(sample) = flags.sample {
        selected = self::sample(&selected, sample as usize);
    }
    selected
}

/// The `count` lowest ranks, in the order of the sources.
fn sample<'a>(all: &[&'a Mutation], count: usize) -> Vec<&'a Mutation> {
    let mut lowest = all.to_vec();
    lowest.sort_by_key(|mutation| mutation.rank);
    lowest.truncate(count);
    lowest.sort_by_key(|mutation| mutation.number);
    lowest
}

/// A hash of a mutation's effect and its function. Lines and other functions are not part of it, so
/// that a change of one function leaves the sample of the others as it was. `earlier` is the number
/// of equal mutations before it in the same function.
fn rank(path: &Path, site: &Site, earlier: u32) -> u64 {
    let digest = Sha256::new()
        .chain_update(path.to_string_lossy().as_bytes())
        .chain_update(site.function.as_bytes())
        .chain_update(site.operator.name().as_bytes())
        .chain_update(site.what.as_bytes())
        .chain_update(earlier.to_le_bytes())
        .finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |rank, &byte| rank << 8 | u64::from(byte))
}

/// The number of suites that run at once.
fn jobs(flags: &Mutate) -> usize {
    flags.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        |jobs| jobs as usize,
    )
}

/// Tries every mutation, prints its outcome, in the order of the sources, and returns the outcomes.
fn try_all(
    mutations: &[&Mutation],
    trials: &Trials,
    record: &Record,
    flags: &Mutate,
) -> Result<Vec<Fate>, Error> {
    let bar = ProgressBar::new(mutations.len() as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed} of about {duration}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));

    // A survivor takes minutes, which should not delay those that nobody has tried.
    let mut order: Vec<usize> = (0..mutations.len()).collect();
    if flags.resume {
        order.sort_by_key(|&index| record.survived(mutations[index]));
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results {
        fates: vec![None; mutations.len()],
        printed: 0,
        noticed: HashMap::new(),
        failure: None,
    });
    std::thread::scope(|scope| {
        for _ in 0..jobs(flags).min(mutations.len()) {
            scope.spawn(|| {
                loop {
                    let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let mutation = mutations[index];
                    let earlier = record.fate(mutation).filter(|_| flags.resume);
                    let fate = earlier.map_or_else(
                        || {
                            let likely = lock(&results).likely(mutation);
                            let fate = trials.try_one(mutation, &likely)?;
                            record.add(mutation, &fate)?;
                            Ok(fate)
                        },
                        Ok,
                    );
                    let mut results = lock(&results);
                    if results.failure.is_some() {
                        return;
                    }
                    match fate {
                        Ok(fate) => results.record(mutations, index, fate, &bar),
                        Err(error) => {
                            results.failure = Some(error);
                            return;
                        }
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    match results.failure {
        Some(error) => Err(error),
        None => Ok(results.fates.into_iter().flatten().collect()),
    }
}

/// The shared state of the threads that try mutations.
struct Results {
    fates: Vec<Option<Fate>>,
    /// The number of printed outcomes.
    printed: usize,
    /// The trials that noticed mutations, by file and function. They are tried first on other
    /// mutations there.
    noticed: HashMap<(PathBuf, String), Vec<usize>>,
    failure: Option<Error>,
}

impl Results {
    /// The trials that noticed the most recent mutations of the same function.
    fn likely(&self, mutation: &Mutation) -> Vec<usize> {
        let place = (mutation.path.clone(), mutation.site.function.clone());
        let trials = self.noticed.get(&place).map_or(&[][..], Vec::as_slice);
        trials.iter().rev().take(2).copied().collect()
    }

    fn record(&mut self, mutations: &[&Mutation], index: usize, fate: Fate, bar: &ProgressBar) {
        let mutation = mutations[index];
        // A trial that crashed or timed out is not tried first: it takes longest.
        if let (Verdict::Failed(_), Some(by)) = (&fate.verdict, fate.by) {
            let place = (mutation.path.clone(), mutation.site.function.clone());
            let trials = self.noticed.entry(place).or_default();
            trials.retain(|&other| other != by);
            trials.push(by);
        }
        self.fates[index] = Some(fate);
        while let Some(Some(fate)) = self.fates.get(self.printed) {
            let line = format!("{}  {}", mutations[self.printed].describe(), outcome(fate));
            bar.suspend(|| output::line(&line));
            self.printed += 1;
        }
    }
}

fn outcome(fate: &Fate) -> String {
    match &fate.verdict {
        Verdict::Passed(_) if fate.tried == 0 => "SURVIVED: no test reaches it".to_owned(),
        Verdict::Passed(_) => "SURVIVED".to_owned(),
        Verdict::Failed(test) => format!("caught by {test}"),
        Verdict::Crashed(test) => format!("caught by {test}, which crashed"),
        Verdict::TimedOut(test) => format!("caught by {test}, which did not end"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of forty mutations of one kind in ten functions, for these lines of the functions.
    fn sampled(functions: impl Iterator<Item = u32>, count: usize) -> Vec<String> {
        let body: String = functions
            .map(|index| format!("fn f{index}() {{ a + {index}; b < c; b < c; }}\n"))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let sources = folder.path().join(KERNELS).join("sum");
        std::fs::create_dir_all(&sources).unwrap();
        std::fs::write(sources.join("mod.rs"), format!("//! S.\n{body}")).unwrap();
        let found = find(folder.path(), vec!["sum".to_owned()]).unwrap();
        let all: Vec<&Mutation> = found.mutations.iter().collect();
        let names = sample(&all, count);
        let mut names: Vec<String> = names
            .iter()
            .map(|mutation| format!("{} {}", mutation.site.function, mutation.site.what))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn samples_stay_the_same_where_other_functions_come_go_and_move() {
        let first = sampled(0..10, 12);
        assert_eq!(first.len(), 12);
        assert_eq!(sampled((0..10).rev(), 12), first);
        let with_others = sampled((0..10).chain(20..22), 12);
        let kept = first.iter().filter(|name| with_others.contains(name));
        assert!(kept.count() >= 6, "{first:?} and {with_others:?}");
        assert!(sampled(0..10, 1000).len() >= 40);
        assert!(sampled(0..0, 3).is_empty());
    }

    /// A workspace with one family, one waived mutation and one stale waiver.
    fn workspace() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "gpu-kernels/src/lib.rs",
            "//! L.\npub mod heat2d;\npub fn shared() { a < b }\n",
        );
        write(
            "gpu-kernels/src/heat2d/mod.rs",
            "//! H.\nfn f() {\n    a + b; // equivalent mutant (arithmetic): b is zero\n    thread::sync_threads();\n    // equivalent mutant (barrier): gone\n    c < d;\n}\n",
        );
        folder
    }

    fn flags(line: &str) -> Mutate {
        use clap::Parser as _;
        let line = format!("xtask mutate {line}");
        match crate::flags::Xtask::parse_from(line.split_whitespace()).task {
            crate::flags::Task::Mutate(flags) => flags,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mutations_are_found_with_their_family_and_waiver() {
        let folder = workspace();
        let found = find(folder.path(), vec!["heat2d".to_owned()]).unwrap();
        let lines: Vec<String> = found.mutations.iter().map(Mutation::describe).collect();
        assert_eq!(
            lines,
            [
                "gpu-kernels/src/heat2d/mod.rs:3:5 arithmetic: `+` made `-` in `a + b`",
                "gpu-kernels/src/heat2d/mod.rs:4:5 barrier: `thread::sync_threads()` removed",
                "gpu-kernels/src/heat2d/mod.rs:6:5 comparison: `<` made `<=` in `c < d`",
                "gpu-kernels/src/lib.rs:3:19 comparison: `<` made `<=` in `a < b`",
            ]
        );
        assert_eq!(found.mutations[0].waived.as_deref(), Some("b is zero"));
        assert_eq!(found.mutations[0].family.as_deref(), Some("heat2d"));
        assert_eq!(found.mutations[3].family, None);
        assert_eq!(found.complaints.len(), 1, "{:?}", found.complaints);
        assert!(
            found.complaints[0].contains("mod.rs:5"),
            "{:?}",
            found.complaints
        );
    }

    #[test]
    fn the_original_is_left_alone_and_the_copy_tells_what_the_tests_notice() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"apart\", \"gpu-kernels\", \"tests\"]\n\
             [profile.dev.package]\nhalo-apart = { debug = false }\n",
        );
        write(
            "gpu-kernels/Cargo.toml",
            "[package]\nname = \"halo-kernels\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [lib]\nname = \"gpu_kernels\"\n",
        );
        write("gpu-kernels/src/lib.rs", "//! L.\npub mod sum;\n");
        // The copy of this crate has the same text and the same dependencies.
        write(
            "apart/Cargo.toml",
            "[package]\nname = \"halo-apart\"\nversion = \"0.0.0\"\nedition = \"2024\"\n",
        );
        write("apart/src/lib.rs", "");
        let kernels = "//! S.
pub fn tested(a: u32) -> u32 {
    a + 10
}
pub fn untested(a: u32) -> u32 {
    a * a
}
pub fn looping(n: u32) -> u32 {
    let mut i = n;
    while i > 0 {
        i -= 1;
    }
    i
}
pub fn typed(a: &str) -> bool {
    !a.is_empty() // equivalent mutant (logic): never called
}
pub fn text(a: String, b: &str) -> String {
    a + b
}
pub fn counted(a: u32) -> u32 {
    a / 2
}
#[cfg(test)]
#[test]
fn counts() {
    assert_eq!(counted(8), 4);
}
";
        write("gpu-kernels/src/sum/mod.rs", kernels);
        write(
            "tests/Cargo.toml",
            "[package]\nname = \"halo-tests\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             [lib]\npath = \"lib.rs\"\n[dependencies]\nhalo-kernels = { path = \"../gpu-kernels\" }\n\
             halo-apart = { path = \"../apart\" }\n\
             [[test]]\nname = \"sum\"\npath = \"sum.rs\"\n",
        );
        write("tests/lib.rs", "");
        write(
            "tests/sum.rs",
            "use gpu_kernels::sum;\n\
             #[test]\nfn adds() { assert_eq!(sum::tested(15), 25) }\n\
             #[test]\nfn loops() { assert_eq!(sum::looping(3), 0) }\n",
        );
        let git = |arguments: &[&str]| {
            cargo_halo::process::output(
                std::process::Command::new("git")
                    .current_dir(&root)
                    .args(arguments),
            )
            .unwrap()
        };
        git(&["init", "--quiet"]);

        let found = find(&root, vec!["sum".to_owned()]).unwrap();
        let selected: Vec<&Mutation> = found.mutations.iter().collect();
        let target = folder.path().join("target");
        let flags = flags("--timeout 2");
        let tally = execute(&root, &target, &found, &selected, &flags).unwrap();
        // Caught: a - 10, a + 11, `>` made `>=` (an underflow), `>` with 1 for 0,
        // `-=` made `+=` (an overflow, or no end), 2 for 1 (an underflow).
        // By the unit test: a * 2, a / 3. Survived: a + a. Waived: the `!`. Refused: a String less a &str.
        assert_eq!(
            tally,
            Tally {
                caught: 8,
                survived: 1,
                waived: 1,
                rejected: 1,
            }
        );
        assert_eq!(
            std::fs::read_to_string(root.join("gpu-kernels/src/sum/mod.rs")).unwrap(),
            kernels
        );
        assert!(!root.join("target").exists());
        assert_eq!(
            tally.to_string(),
            "mutate: 11 mutations: 8 caught, 1 survived, 1 equivalent by their waivers, 1 that do not compile"
        );

        // Cargo takes no crate of the copy for one of the original.
        let mut command = std::process::Command::new(cargo_halo::process::cargo());
        command.args(["build", "--verbose"]).current_dir(&root);
        let output = command.env("CARGO_TARGET_DIR", &target).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        for name in ["halo-apart", "halo-kernels", "halo-tests"] {
            assert!(said.contains(&format!("Compiling {name}")), "{said}");
            assert!(!said.contains(&format!("Fresh {name}")), "{said}");
        }

        let (packed, elsewhere) = (folder.path().join("packed"), folder.path().join("moved"));
        let built = build(&root, &target, &found, &selected).unwrap();
        pack::write(&packed, built).unwrap();
        std::fs::rename(&packed, &elsewhere).unwrap();
        std::fs::remove_dir_all(&root).unwrap();
        let there = pack::read(&elsewhere).unwrap();
        assert_eq!(there.try_all(&elsewhere, &flags).unwrap(), tally);
        assert!(elsewhere.join("record.jsonl").exists());
    }

    #[test]
    fn flags_choose_among_them() {
        let folder = workspace();
        let found = find(folder.path(), vec!["heat2d".to_owned()]).unwrap();
        let count = |line: &str| select(&found.mutations, &flags(line)).len();
        assert_eq!(count(""), 4);
        assert_eq!(count("--only barrier: --only heat2d/mod.rs:3"), 2);
        assert_eq!(count("--sample 2"), 2);
        assert_eq!(count("--only nothing"), 0);
    }

    #[test]
    fn parts_make_the_whole() {
        let all: Vec<u32> = (0..10).collect();
        let parts: Vec<u32> = (1..=3).flat_map(|k| part(&all, k, 3)).collect();
        assert_eq!(parts, all);
        assert_eq!(part(&all, 2, 5), [2, 3]);
        assert_eq!(flags("--part 2/5").part, Some((2, 5)));
        use clap::Parser as _;
        for wrong in ["0/5", "6/5", "2", "a/b"] {
            let words = ["xtask", "mutate", "--part", wrong];
            assert!(
                crate::flags::Xtask::try_parse_from(words).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn outcomes_name_the_test() {
        let fate = |verdict, tried| Fate {
            verdict,
            by: None,
            tried,
        };
        let said = outcome(&fate(Verdict::Failed("a".into()), 1));
        assert_eq!(said, "caught by a");
        assert_eq!(outcome(&fate(Verdict::Passed(3), 3)), "SURVIVED");
        assert!(outcome(&fate(Verdict::Passed(0), 0)).contains("no test reaches it"));
        assert!(outcome(&fate(Verdict::TimedOut("a".into()), 1)).contains("did not end"));
    }
}
