//! Decides which tests to run against a mutation, and in which order.
//!
//! A test that never executes a mutated expression cannot notice the mutation. So each test first
//! runs once without an active mutation, when it is needed, and records the mutations that it
//! executes and its time. Most mutations are noticed at once by the cases of their own kernel,
//! launched once each: those trials come first, the quickest of each stage first. Whole suites come
//! last, and launches in several orders of threads after launches that run once. A mutated loop may
//! never end, so a test may take only a few times its time without a mutation.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpu_kernels::registry;
use serde::{Deserialize, Serialize};

use super::mutation::{CONFORMANCE, Mutation, UNITS, serves};
use super::operators::Operator;
use super::reach::{Known, Reach};
use super::suite::{Limits, Selection, Suite, Verdict, With};
use crate::error::Error;

/// A test that mutations are tried on.
pub(crate) struct Trial {
    suite: Suite,
    part: Selection,
    /// The family whose kernels it tests; `None` where it tests all.
    family: Option<String>,
    /// The source of the kernel that it tests.
    file: Option<&'static str>,
    /// The suite's name.
    name: String,
    /// The same test with launches that run once, where this one verifies them. It executes the
    /// same mutations, and is faster.
    once: Option<usize>,
    /// Whether a worker has begun to measure it.
    claimed: AtomicBool,
    /// Measured without an active mutation, with launches that run once.
    known: OnceLock<Result<Known, String>>,
    /// Whether a trial with verified launches passes without an active mutation.
    passes: OnceLock<Result<(), String>>,
}

impl Trial {
    fn new(name: &str, suite: &Suite, part: Selection) -> Self {
        Self {
            suite: suite.clone(),
            part,
            family: None,
            file: None,
            once: None,
            name: name.to_owned(),
            claimed: AtomicBool::new(false),
            known: OnceLock::new(),
            passes: OnceLock::new(),
        }
    }

    /// Measures it without an active mutation, if that was not done; it must pass.
    fn known(&self, reach: &Reach) -> Result<&Known, Error> {
        let known = self.known.get_or_init(|| {
            let name = format!("{} {:?}", self.name, self.part);
            if let Some(known) = reach.known(&name) {
                return Ok(known);
            }
            let known = self.measure()?;
            let kept = reach.add(&name, &known);
            kept.map_err(|error| error.to_string())?;
            Ok(known)
        });
        known
            .as_ref()
            .map_err(|problem| Error::Mutation(problem.clone()))
    }

    fn measure(&self) -> Result<Known, String> {
        let notes = tempfile::NamedTempFile::new()
            .map_err(|source| format!("cannot make a file for what the tests reach: {source}"))?;
        let ran = self
            .suite
            .run(&self.part, With::Notes(notes.path()), NO_LIMITS)
            .map_err(|error| error.to_string())?;
        let name = &self.name;
        self.require_passed(&ran.verdict)?;
        let text = std::fs::read_to_string(notes.path())
            .map_err(|source| format!("cannot read what {name} reached: {source}"))?;
        Ok(Known {
            work: ran.work,
            time: ran.time,
            reached: text.lines().filter_map(|line| line.parse().ok()).collect(),
        })
    }

    fn require_passed(&self, verdict: &Verdict) -> Result<(), String> {
        let name = &self.name;
        match verdict {
            Verdict::Passed(0) => Err(format!("{name} ran no test")),
            Verdict::Passed(_) => Ok(()),
            other => Err(format!(
                "{name} fails without any mutation ({}): fix that first",
                other.test().unwrap_or_default()
            )),
        }
    }

    /// An error unless it passes within `limits` without an active mutation. A trial with verified
    /// launches is asked only after it has noticed a mutation, which most never do.
    fn require_passes(&self, limits: Limits) -> Result<(), Error> {
        let passes = self.passes.get_or_init(|| {
            let ran = self.suite.run(&self.part, With::Nothing, limits);
            let ran = ran.map_err(|error| error.to_string())?;
            self.require_passed(&ran.verdict)
        });
        passes.clone().map_err(Error::Mutation)
    }
}

/// The number of kernels from other files than the mutation's whose verified launches are tried.
const VERIFIED: usize = 8;

/// Longer than any test takes.
const NO_LIMITS: Limits = Limits {
    work: Duration::from_secs(3600),
    time: Duration::from_secs(3600),
};

/// The time limits of a test that took `known` without a mutation, unless the user gives one.
/// `verified`: it was measured with launches that run once, and now they are verified.
fn limits(known: &Known, verified: bool, timeout: Option<Duration>) -> Limits {
    let times = if verified { VERIFICATION } else { 1 };
    Limits {
        work: timeout.unwrap_or(times * (Duration::from_secs(1) + 4 * known.work)),
        // Generous, because other programs may share the machine by then.
        time: timeout.unwrap_or(times * (Duration::from_secs(30) + 20 * known.time)),
    }
}

/// An upper bound of the factor by which verified launches are slower.
const VERIFICATION: u32 = 20;

/// All tests that mutations are tried on.
pub(crate) struct Trials {
    all: Vec<Trial>,
    /// The user's time limit of one trial.
    timeout: Option<Duration>,
    reach: Reach,
}

/// The outcome of a mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fate {
    pub(crate) verdict: Verdict,
    /// The trial that noticed it in this run.
    #[serde(skip)]
    pub(crate) by: Option<usize>,
    /// The number of trials that execute it and were run.
    pub(crate) tried: usize,
}

impl Fate {
    pub(crate) fn caught(&self) -> bool {
        self.verdict.test().is_some()
    }
}

impl Trials {
    /// The trials of these suites. Each test is two trials, with launches that run once and with
    /// verified ones; each test of the conformance suite is two trials per kernel. Unit tests
    /// launch nothing.
    pub(crate) fn of(
        suites: &BTreeMap<String, Suite>,
        families: &[String],
        timeout: Option<Duration>,
        reach: Reach,
    ) -> Result<Self, Error> {
        let mut all: Vec<Trial> = Vec::new();
        let mut add = |trial: Trial| {
            let launches = !UNITS.contains(&trial.name.as_str());
            let verified = launches.then(|| Trial {
                family: trial.family.clone(),
                once: Some(all.len()),
                ..Trial {
                    file: trial.file,
                    ..Trial::new(&trial.name, &trial.suite, trial.part.clone())
                }
            });
            let mut once = trial;
            once.part.once = launches;
            all.push(once);
            all.extend(verified);
        };
        for (name, suite) in suites {
            for test in suite.tests()? {
                let part = Selection {
                    test,
                    ..Selection::default()
                };
                if name != CONFORMANCE || !asks_for_kernels(suite, &part)? {
                    add(Trial {
                        family: families.iter().find(|family| *family == name).cloned(),
                        ..Trial::new(name, suite, part)
                    });
                    continue;
                }
                let kernels = registry::entries();
                for entry in kernels.filter(|entry| families.iter().any(|it| it == entry.family)) {
                    let part = Selection {
                        kernel: Some(entry.name.to_owned()),
                        ..part.clone()
                    };
                    add(Trial {
                        family: Some(entry.family.to_owned()),
                        file: Some(entry.file),
                        ..Trial::new(name, suite, part)
                    });
                }
            }
        }
        Ok(Self {
            all,
            timeout,
            reach,
        })
    }

    /// The measurements of a trial, or of the same test with launches that run once.
    fn known(&self, index: usize) -> Result<&Known, Error> {
        let trial = &self.all[index];
        self.all[trial.once.unwrap_or(index)].known(&self.reach)
    }

    /// Measures those of these trials that no other worker measures, so that workers share a
    /// stage instead of all waiting for its first trial.
    fn learn(&self, stage: &[usize]) -> Result<(), Error> {
        for &index in stage {
            let trial = &self.all[self.all[index].once.unwrap_or(index)];
            if !trial.claimed.swap(true, Ordering::Relaxed) {
                trial.known(&self.reach)?;
            }
        }
        Ok(())
    }

    /// Tries a mutation until a trial notices it, beginning with `likely`.
    pub(crate) fn try_one(&self, mutation: &Mutation, likely: &[usize]) -> Result<Fate, Error> {
        let mut tried = HashSet::new();
        for stage in std::iter::once(likely.to_vec()).chain(self.stages(mutation)) {
            self.learn(&stage)?;
            let mut reaching = Vec::new();
            for index in self.few_verified(stage, mutation)? {
                let known = self.known(index)?;
                if known.reached.contains(&mutation.number) && tried.insert(index) {
                    let verified = self.all[index].once.is_some();
                    reaching.push((known.time, index, limits(known, verified, self.timeout)));
                }
            }
            reaching.sort_unstable_by_key(|&(time, index, _)| (time, index));
            for (_, index, limits) in reaching {
                let trial = &self.all[index];
                let with = With::Mutation(mutation.number);
                let ran = trial.suite.run(&trial.part, with, limits)?;
                if ran.verdict.test().is_some() {
                    if trial.once.is_some() {
                        trial.require_passes(limits)?;
                    }
                    return Ok(Fate {
                        verdict: ran.verdict,
                        by: Some(index),
                        tried: tried.len(),
                    });
                }
            }
        }
        Ok(Fate {
            verdict: Verdict::Passed(tried.len()),
            by: None,
            tried: tried.len(),
        })
    }

    /// These trials, without most of those with verified launches of kernels from other files. Of
    /// the many kernels that call a shared function, a few notice a missing barrier. Verified
    /// launches take long, also to measure; they execute the same mutations as launches that run
    /// once.
    fn few_verified(&self, trials: Vec<usize>, mutation: &Mutation) -> Result<Vec<usize>, Error> {
        let (mut verified, mut kept) = (Vec::new(), Vec::new());
        for index in trials {
            let trial = &self.all[index];
            if trial.once.is_none() || trial.part.kernel.is_none() {
                kept.push(index);
                continue;
            }
            let known = self.known(index)?;
            if known.reached.contains(&mutation.number) {
                if self.is_own(index, mutation) {
                    kept.push(index);
                } else {
                    verified.push((known.time, index));
                }
            }
        }
        verified.sort_unstable();
        kept.extend(verified.into_iter().take(VERIFIED).map(|(_, index)| index));
        Ok(kept)
    }

    /// Whether a trial tests a kernel in the file of this mutation.
    fn is_own(&self, index: usize, mutation: &Mutation) -> bool {
        let file = self.all[index].file;
        file.is_some_and(|file| Path::new(file) == mutation.path)
    }

    /// The trials that may notice a mutation, the most likely and cheapest first.
    fn stages(&self, mutation: &Mutation) -> impl Iterator<Item = Vec<usize>> {
        let concerned = |trial: &Trial| match (&trial.family, &mutation.family) {
            (Some(of), Some(family)) => serves(of, family),
            _ => true,
        };
        // Verified launches notice a missing barrier; results show most other mutations.
        let [verified, suite] = match mutation.site.operator {
            Operator::Barrier => [3, 5],
            _ => [4, 3],
        };
        let class = |index, trial: &Trial| match (&trial.part.kernel, trial.part.once) {
            (Some(_), true) if self.is_own(index, mutation) => 0,
            (None, _) if UNITS.contains(&trial.name.as_str()) => 1,
            (Some(_), true) => 2,
            (Some(_), false) if self.is_own(index, mutation) => verified,
            (Some(_), false) => verified + 1,
            (None, true) => suite,
            (None, false) => 6,
        };
        let mut stages = vec![Vec::new(); 7];
        for (index, trial) in self.all.iter().enumerate() {
            if concerned(trial) {
                stages[class(index, trial)].push(index);
            }
        }
        stages.into_iter()
    }
}

/// Whether a test runs once per kernel of the table: it then fails for the name of a kernel that
/// does not exist. Another test has no trial for each kernel.
fn asks_for_kernels(suite: &Suite, part: &Selection) -> Result<bool, Error> {
    let nobody = Selection {
        kernel: Some("nobody".to_owned()),
        ..part.clone()
    };
    let ran = suite.run(&nobody, With::Nothing, NO_LIMITS)?;
    Ok(ran.verdict.test().is_some())
}
