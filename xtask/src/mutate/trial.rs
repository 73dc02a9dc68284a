//! Decides which tests to run against a mutation, and in which order.
//!
//! A test that never comes to a mutated expression cannot notice the mutation. So each
//! test is run once with no mutation on, when it is first wanted, and notes what it comes
//! to and what it takes. Most mutations are noticed at once by their own kernel's cases,
//! launched once each: those come first, and a family's whole suite last, of each the
//! quickest first. A mutated loop may never end: a test has a few times what it took.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use gpu_kernels::registry;
use serde::{Deserialize, Serialize};

use super::suite::{Limits, Part, Ran, Suite, Verdict, With};
use super::{CONFORMANCE, Mutation, UNITS};
use crate::error::Error;

/// A part of a suite, as mutations are tried on it.
pub(crate) struct Trial {
    suite: Suite,
    part: Part,
    /// The family whose kernels it tests; `None` where it tests all.
    family: Option<String>,
    /// The source of the kernel that it tests.
    file: Option<&'static str>,
    /// The suite's name.
    name: String,
    /// The same with launches that run once, where this one verifies them: it comes to
    /// what that comes to, and takes long to find out.
    once: Option<usize>,
    known: OnceLock<Result<Known, String>>,
}

/// What is known of a trial from a run with no mutation on.
struct Known {
    ran: Ran,
    /// The mutations that it comes to.
    reached: HashSet<u32>,
}

impl Trial {
    fn new(name: &str, suite: &Suite, part: Part) -> Self {
        Self {
            suite: suite.clone(),
            part,
            family: None,
            file: None,
            once: None,
            name: name.to_owned(),
            known: OnceLock::new(),
        }
    }

    /// Runs it with no mutation on, if nobody has: it must pass.
    fn known(&self) -> Result<&Known, Error> {
        let known = self.known.get_or_init(|| self.measure());
        known
            .as_ref()
            .map_err(|problem| Error::Mutation(problem.clone()))
    }

    fn measure(&self) -> Result<Known, String> {
        let notes = tempfile::NamedTempFile::new()
            .map_err(|source| format!("no file for what tests come to: {source}"))?;
        let ran = self
            .suite
            .run(&self.part, With::Notes(notes.path()), NO_LIMITS)
            .map_err(|error| error.to_string())?;
        let name = &self.name;
        match &ran.verdict {
            Verdict::Passed(0) => return Err(format!("{name} ran no test")),
            Verdict::Passed(_) => {}
            other => {
                return Err(format!(
                    "{name} fails with no mutation on ({}): mend that first",
                    other.test().unwrap_or_default()
                ));
            }
        }
        let text = std::fs::read_to_string(notes.path())
            .map_err(|source| format!("what {name} came to cannot be read: {source}"))?;
        let reached = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Known { ran, reached })
    }
}

/// Of how many kernels from other files than the mutation's verified launches are tried.
const VERIFIED: usize = 8;

/// Longer than any test takes.
const NO_LIMITS: Limits = Limits {
    work: Duration::from_secs(3600),
    time: Duration::from_secs(3600),
};

/// How long a test may take that took `ran` with no mutation on, unless the user says.
fn limits(ran: &Ran, timeout: Option<Duration>) -> Limits {
    Limits {
        work: timeout.unwrap_or(Duration::from_secs(1) + 4 * ran.work),
        // Generous: other work may share the machine by then.
        time: timeout.unwrap_or(Duration::from_secs(30) + 20 * ran.time),
    }
}

/// Everything that mutations are tried on.
pub(crate) struct Trials {
    all: Vec<Trial>,
    /// The longest that one may take, where the user says so.
    timeout: Option<Duration>,
}

/// What became of a mutation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fate {
    pub(crate) verdict: Verdict,
    /// The trial of this run that noticed.
    #[serde(skip)]
    pub(crate) by: Option<usize>,
    /// How many trials came to it and were run.
    pub(crate) tried: usize,
}

impl Fate {
    pub(crate) fn caught(&self) -> bool {
        self.verdict.test().is_some()
    }
}

impl Trials {
    /// Those of these suites. Each test is one, and of the conformance suite each test of
    /// each kernel two: with launches that run once, and with verified ones.
    pub(crate) fn of(
        suites: &BTreeMap<String, Suite>,
        families: &[String],
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (name, suite) in suites {
            for test in suite.tests()? {
                let part = Part {
                    test,
                    ..Part::default()
                };
                if name != CONFORMANCE || !asks_for_kernels(suite, &part)? {
                    all.push(Trial {
                        family: families.iter().find(|family| *family == name).cloned(),
                        ..Trial::new(name, suite, part)
                    });
                    continue;
                }
                let kernels = registry::entries();
                for entry in kernels.filter(|entry| families.iter().any(|it| it == entry.family)) {
                    for once in [true, false] {
                        let part = Part {
                            kernel: Some(entry.name.to_owned()),
                            once,
                            ..part.clone()
                        };
                        all.push(Trial {
                            family: Some(entry.family.to_owned()),
                            file: Some(entry.file),
                            once: (!once).then(|| all.len() - 1),
                            ..Trial::new(name, suite, part)
                        });
                    }
                }
            }
        }
        Ok(Self { all, timeout })
    }

    /// Tries a mutation until a trial notices, those of `likely` first.
    pub(crate) fn try_one(&self, mutation: &Mutation, likely: &[usize]) -> Result<Fate, Error> {
        let mut tried = HashSet::new();
        for stage in std::iter::once(likely.to_vec()).chain(self.stages(mutation)) {
            let mut reaching = Vec::new();
            for index in self.few_verified(stage, mutation)? {
                let known = self.all[index].known()?;
                if known.reached.contains(&mutation.number) && tried.insert(index) {
                    reaching.push((known.ran.time, index, limits(&known.ran, self.timeout)));
                }
            }
            reaching.sort_unstable_by_key(|&(time, index, _)| (time, index));
            for (_, index, limits) in reaching {
                let trial = &self.all[index];
                let with = With::Mutation(mutation.number);
                let ran = trial.suite.run(&trial.part, with, limits)?;
                if ran.verdict.test().is_some() {
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

    /// These trials, but for most of those with verified launches of kernels from other
    /// files: of a function that dozens of kernels share, one or the other misses a barrier.
    /// They take long, also to find out what they come to, which is what they come to with
    /// launches that run once.
    fn few_verified(&self, trials: Vec<usize>, mutation: &Mutation) -> Result<Vec<usize>, Error> {
        let (mut verified, mut kept) = (Vec::new(), Vec::new());
        for index in trials {
            let Some(once) = self.all[index].once else {
                kept.push(index);
                continue;
            };
            let known = self.all[once].known()?;
            if known.reached.contains(&mutation.number) {
                if self.is_own(index, mutation) {
                    kept.push(index);
                } else {
                    verified.push((known.ran.time, index));
                }
            }
        }
        verified.sort_unstable();
        kept.extend(verified.into_iter().take(VERIFIED).map(|(_, index)| index));
        Ok(kept)
    }

    /// Whether a trial is of a kernel that is in the file of this mutation.
    fn is_own(&self, index: usize, mutation: &Mutation) -> bool {
        let file = self.all[index].file;
        file.is_some_and(|file| Path::new(file) == mutation.path)
    }

    /// The trials that may notice a mutation, the most likely and cheapest first.
    fn stages(&self, mutation: &Mutation) -> impl Iterator<Item = Vec<usize>> {
        let concerned = |trial: &Trial| match (&trial.family, &mutation.family) {
            (Some(of), Some(family)) => of == family,
            _ => true,
        };
        let class = |index, trial: &Trial| match (&trial.part.kernel, trial.part.once) {
            (Some(_), true) if self.is_own(index, mutation) => 0,
            (None, _) if trial.name == UNITS => 1,
            (Some(_), true) => 2,
            (Some(_), false) if self.is_own(index, mutation) => 3,
            (Some(_), false) => 4,
            (None, _) => 5,
        };
        let mut stages = vec![Vec::new(); 6];
        for (index, trial) in self.all.iter().enumerate() {
            if concerned(trial) {
                stages[class(index, trial)].push(index);
            }
        }
        stages.into_iter()
    }
}

/// Whether a test goes through the table of kernels: then it fails where it is told of one
/// that is not there. One that does not is no trial for each kernel.
fn asks_for_kernels(suite: &Suite, part: &Part) -> Result<bool, Error> {
    let nobody = Part {
        kernel: Some("nobody".to_owned()),
        ..part.clone()
    };
    let ran = suite.run(&nobody, With::Nothing, NO_LIMITS)?;
    Ok(ran.verdict.test().is_some())
}
