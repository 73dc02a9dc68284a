//! Which tests may notice a mutation, and in which order to run them.
//!
//! A test that never comes to a mutated expression cannot notice the mutation. So each
//! test is run once with no mutation on, when it is first wanted, and notes what it comes
//! to and how long it takes. Most mutations are noticed at once by their own kernel's
//! cases, launched once each: those come first, and a family's whole suite last.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gpu_kernels::registry;

use super::suite::{Part, Suite, Verdict, With};
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
    known: OnceLock<Result<Known, String>>,
}

/// What is known of a trial from a run with no mutation on.
struct Known {
    took: Duration,
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
        let start = Instant::now();
        let verdict = self
            .suite
            .run(&self.part, With::Notes(notes.path()), NO_LIMIT)
            .map_err(|error| error.to_string())?;
        let name = &self.name;
        match verdict {
            Verdict::Passed(0) => return Err(format!("{name} ran no test")),
            Verdict::Passed(_) => {}
            other => {
                return Err(format!(
                    "{name} fails with no mutation on ({}): mend that first",
                    other.test().unwrap_or_default()
                ));
            }
        }
        let took = start.elapsed();
        let text = std::fs::read_to_string(notes.path())
            .map_err(|source| format!("what {name} came to cannot be read: {source}"))?;
        let reached = text.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(Known { took, reached })
    }
}

/// Longer than any suite takes.
const NO_LIMIT: Duration = Duration::from_secs(3600);

/// Everything that mutations are tried on.
pub(crate) struct Trials {
    all: Vec<Trial>,
    /// The longest that one may take, where the user says so.
    timeout: Option<Duration>,
}

/// What became of a mutation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) verdict: Verdict,
    /// The trial that noticed.
    pub(crate) by: Option<usize>,
    /// How many trials came to it and were run.
    pub(crate) tried: usize,
}

impl Trials {
    /// Those of these suites. Each test of a family's suite is one, and each kernel of
    /// the conformance suite two: with launches that run once, and with verified ones.
    pub(crate) fn of(
        suites: &BTreeMap<String, Suite>,
        families: &[String],
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (name, suite) in suites {
            if name == CONFORMANCE {
                let kernels = registry::entries();
                for entry in kernels.filter(|entry| families.iter().any(|it| it == entry.family)) {
                    for once in [true, false] {
                        let part = Part {
                            test: None,
                            kernel: Some(entry.name.to_owned()),
                            once,
                        };
                        all.push(Trial {
                            family: Some(entry.family.to_owned()),
                            file: Some(entry.file),
                            ..Trial::new(name, suite, part)
                        });
                    }
                }
                continue;
            }
            for test in suite.tests()? {
                let part = Part {
                    test: Some(test),
                    ..Part::default()
                };
                all.push(Trial {
                    family: families.iter().find(|family| *family == name).cloned(),
                    ..Trial::new(name, suite, part)
                });
            }
        }
        Ok(Self { all, timeout })
    }

    /// Tries a mutation until a trial notices, those of `likely` first.
    pub(crate) fn try_one(&self, mutation: &Mutation, likely: &[usize]) -> Result<Fate, Error> {
        let mut tried = HashSet::new();
        for stage in std::iter::once(likely.to_vec()).chain(self.stages(mutation)) {
            let mut reaching = Vec::new();
            for index in stage {
                let known = self.all[index].known()?;
                if known.reached.contains(&mutation.number) && tried.insert(index) {
                    reaching.push((known.took, index));
                }
            }
            reaching.sort_unstable();
            for (took, index) in reaching {
                // Generous: other work may share the machine by then.
                let timeout = self.timeout.unwrap_or(Duration::from_secs(5) + 10 * took);
                let trial = &self.all[index];
                let with = With::Mutation(mutation.number);
                let verdict = trial.suite.run(&trial.part, with, timeout)?;
                if verdict.test().is_some() {
                    return Ok(Fate {
                        verdict,
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

    /// The trials that may notice a mutation, the most likely and cheapest first.
    fn stages(&self, mutation: &Mutation) -> impl Iterator<Item = Vec<usize>> {
        let concerned = |trial: &Trial| match (&trial.family, &mutation.family) {
            (Some(of), Some(family)) => of == family,
            _ => true,
        };
        let own = |trial: &Trial| {
            trial
                .file
                .is_some_and(|file| Path::new(file) == mutation.path)
        };
        let class = |trial: &Trial| match (&trial.part.kernel, trial.part.once) {
            (Some(_), true) if own(trial) => 0,
            (None, _) if trial.name == UNITS => 1,
            (Some(_), true) => 2,
            (Some(_), false) if own(trial) => 3,
            (Some(_), false) => 4,
            (None, _) => 5,
        };
        let mut stages = vec![Vec::new(); 6];
        for (index, trial) in self.all.iter().enumerate() {
            if concerned(trial) {
                stages[class(trial)].push(index);
            }
        }
        stages.into_iter()
    }
}
