//! Running a test suite against one mutation, and seeing which test notices.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::instrument::SWITCH;
use crate::error::Error;
use crate::process;

/// The built tests of one family.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) executable: PathBuf,
    /// The folder tests run in: their package's.
    pub(crate) folder: PathBuf,
    /// The family to test, for a suite that tests all of them.
    pub(crate) family: Option<String>,
}

/// A test that passed.
#[derive(Clone, Debug)]
pub(crate) struct Timed {
    pub(crate) test: String,
    pub(crate) took: Duration,
}

/// What a run of a suite came to.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// Every test passed; how long each took.
    Passed(Vec<Timed>),
    /// This test failed.
    Failed(String),
    /// The process ended during this test.
    Crashed(String),
    /// Time was up during this test; those that had passed by then.
    TimedOut(String, Vec<Timed>),
}

impl Verdict {
    /// The test that noticed, where one did.
    pub(crate) fn test(&self) -> Option<&str> {
        match self {
            Self::Passed(_) => None,
            Self::Failed(test) | Self::Crashed(test) | Self::TimedOut(test, _) => Some(test),
        }
    }
}

impl Suite {
    /// The names of its tests.
    pub(crate) fn tests(&self) -> Result<Vec<String>, Error> {
        let list = process::output(Command::new(&self.executable).arg("--list"))?;
        Ok(listed(&list))
    }

    /// Whether it has any; one that does not list them will say why when it is run.
    pub(crate) fn has_tests(&self) -> bool {
        !matches!(self.tests().as_deref(), Ok([]))
    }

    /// Runs the tests, one after another, up to the first that notices.
    ///
    /// `mutation` is the number of the mutation to switch on; `only` names the
    /// tests to run, all of them where it is empty.
    pub(crate) fn run(
        &self,
        mutation: Option<u32>,
        only: &[String],
        timeout: Duration,
    ) -> Result<Verdict, Error> {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .arg("--test-threads=1")
            .env_remove(SWITCH)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(family) = &self.family {
            command.env("HALO_TEST_FAMILY", family);
        }
        if !only.is_empty() {
            command.arg("--exact").args(only);
        }
        if let Some(number) = mutation {
            command.env(SWITCH, number.to_string());
        }
        let start = Instant::now();
        let child = command.spawn().map_err(|source| Error::Start {
            program: process::name(&command),
            source,
        })?;
        Running::new(child).verdict(&self.executable, start + timeout)
    }
}

/// The tests in what libtest prints for `--list`.
fn listed(list: &str) -> Vec<String> {
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

/// The tests in the order in which to try them, in stages: the shortest first, since
/// most mutations are noticed by most tests, and every stage about four times as long
/// as all before it.
pub(crate) fn stages(mut tests: Vec<Timed>) -> Vec<Vec<String>> {
    tests.sort_by_key(|timed| timed.took);
    let all: Duration = tests.iter().map(|timed| timed.took).sum();
    let mut stages = Vec::new();
    let (mut stage, mut so_far, mut limit) = (Vec::new(), Duration::ZERO, all / 16);
    for timed in tests {
        so_far += timed.took;
        if so_far > limit && !stage.is_empty() {
            stages.push(std::mem::take(&mut stage));
            while so_far > limit {
                limit *= 4;
            }
        }
        stage.push(timed.test);
    }
    stages.push(stage);
    stages
}

/// A child that does not outlive this value.
struct Running(Child);

impl Running {
    fn new(child: Child) -> Self {
        Self(child)
    }

    fn verdict(mut self, executable: &Path, deadline: Instant) -> Result<Verdict, Error> {
        let (sender, chunks) = mpsc::channel();
        let stdout = self.0.stdout.take();
        let reader = std::thread::spawn(move || {
            let Some(mut stdout) = stdout else { return };
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });

        let mut output = Output::new();
        let verdict = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match chunks.recv_timeout(left) {
                Ok(chunk) => {
                    output.push(&chunk);
                    if let Some(test) = &output.failed {
                        break Verdict::Failed(test.clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    break Verdict::TimedOut(output.current(), output.passed);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.0.wait().map_err(Error::file("wait for", executable))?;
                    break if status.success() {
                        Verdict::Passed(output.passed)
                    } else {
                        Verdict::Crashed(output.current())
                    };
                }
            }
        };
        drop(self);
        // Its pipe is closed now, so it ends.
        let _ = reader.join();
        Ok(verdict)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails where it has ended already, which is as well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What libtest has printed so far.
struct Output {
    /// The line being printed.
    line: Vec<u8>,
    passed: Vec<Timed>,
    failed: Option<String>,
    /// When the last test ended.
    last: Instant,
}

impl Output {
    fn new() -> Self {
        Self {
            line: Vec::new(),
            passed: Vec::new(),
            failed: None,
            last: Instant::now(),
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        for &byte in chunk {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.line).into_owned();
            self.line.clear();
            if let Some((test, result)) = test_line(&line) {
                if result.starts_with("ok") {
                    let now = Instant::now();
                    self.passed.push(Timed {
                        test: test.to_owned(),
                        took: now - self.last,
                    });
                    self.last = now;
                } else if result.starts_with("FAILED") && self.failed.is_none() {
                    self.failed = Some(test.to_owned());
                }
            }
        }
    }

    /// The test that runs now, as far as can be told.
    fn current(&self) -> String {
        let line = String::from_utf8_lossy(&self.line);
        test_line(&line).map_or_else(
            || "the test program".to_owned(),
            |(test, _)| test.to_owned(),
        )
    }
}

/// The test and the rest of a line like `test name - should panic ... ok`.
fn test_line(line: &str) -> Option<(&str, &str)> {
    let (head, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let test = head.strip_suffix(" - should panic").unwrap_or(head);
    Some((test, result.trim()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// What a suite comes to whose executable is this shell script.
    fn verdict(script: &str, timeout: Duration) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("suite");
        std::fs::write(&executable, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
        let suite = Suite {
            executable,
            folder: folder.path().to_path_buf(),
            family: None,
        };
        // A file just written may still look busy to the kernel when another
        // test forks at that moment.
        for _ in 0..50 {
            match suite.run(Some(7), &[], timeout) {
                Err(Error::Start { source, .. })
                    if source.kind() == std::io::ErrorKind::ExecutableFileBusy =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other.unwrap(),
            }
        }
        panic!("the script stayed busy");
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_test_to_fail_is_named_and_the_rest_not_waited_for() {
        let start = Instant::now();
        let verdict = verdict(
            "echo 'test one ... ok'; echo 'test a::two ... FAILED'; exec sleep 60",
            LONG,
        );
        assert!(matches!(verdict, Verdict::Failed(test) if test == "a::two"));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn tests_that_pass_are_timed() {
        let verdict = verdict(
            "echo 'test one ... ok'; sleep 0.2; echo 'test two - should panic ... ok'",
            LONG,
        );
        let Verdict::Passed(tests) = verdict else {
            panic!("{verdict:?}");
        };
        let names: Vec<_> = tests.iter().map(|timed| timed.test.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert!(tests[1].took > Duration::from_millis(100), "{tests:?}");
    }

    #[test]
    fn short_tests_come_first() {
        let timed = |test: &str, millis| Timed {
            test: test.to_owned(),
            took: Duration::from_millis(millis),
        };
        let tests = vec![
            timed("long", 10_000),
            timed("brief", 1),
            timed("medium", 2_000),
            timed("short", 90),
            timed("longer", 20_000),
        ];
        assert_eq!(
            stages(tests),
            [
                vec!["brief".to_owned(), "short".to_owned()],
                vec!["medium".to_owned()],
                vec!["long".to_owned(), "longer".to_owned()],
            ][..]
        );
        assert_eq!(stages(vec![timed("only", 0)]), [["only".to_owned()]]);
    }

    #[test]
    fn a_crash_is_put_down_to_the_test_that_ran() {
        let verdict = verdict(
            "echo 'test one ... ok'; printf 'test two ... '; kill -SEGV $$",
            LONG,
        );
        assert!(matches!(verdict, Verdict::Crashed(test) if test == "two"));
    }

    #[test]
    fn a_test_that_does_not_end_is_ended() {
        let verdict = verdict(
            "printf 'test one ... '; exec sleep 60",
            Duration::from_millis(300),
        );
        assert!(
            matches!(verdict, Verdict::TimedOut(test, passed) if test == "one" && passed.is_empty())
        );
    }

    #[test]
    fn what_passed_before_time_was_up_is_known() {
        let verdict = verdict(
            "echo 'test one ... ok'; printf 'test two ... '; exec sleep 60",
            Duration::from_millis(300),
        );
        let Verdict::TimedOut(test, passed) = verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(test, "two");
        assert_eq!(passed.len(), 1);
        assert_eq!(passed[0].test, "one");
    }

    #[test]
    fn tests_are_listed() {
        let list = "mod::one: test\ntwo: test\nbench: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(listed(list), ["mod::one", "two"]);
    }

    #[test]
    fn the_suite_is_told_which_mutation_is_on() {
        let verdict = verdict(
            &format!("test \"${SWITCH}\" = 7 && echo 'test told ... ok'"),
            LONG,
        );
        assert!(matches!(verdict, Verdict::Passed(tests) if tests.len() == 1));
    }
}
