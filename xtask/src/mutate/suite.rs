//! Runs a test suite against one mutation and reports which test fails.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use cargo_halo::process;
use serde::{Deserialize, Serialize};

use super::instrument::{REACHED, SWITCH};
use crate::error::Error;

/// The built tests of one family.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Suite {
    pub(crate) executable: PathBuf,
    /// The folder in which tests run: their package's.
    pub(crate) folder: PathBuf,
}

/// The part of a suite that is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The test.
    pub(crate) test: String,
    /// The kernel to test, for a test that goes through all of them.
    pub(crate) kernel: Option<String>,
    /// Whether launches in the emulator run once, instead of in several orders of threads.
    pub(crate) once: bool,
}

/// The difference between a run and one of the original.
#[derive(Clone, Copy, Debug)]
pub(crate) enum With<'a> {
    /// This mutation is active.
    Mutation(u32),
    /// None; the numbers of the executed mutations are appended to this file.
    Notes(&'a Path),
    /// None.
    Nothing,
}

/// The time limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Processor time, which does not depend on other programs.
    pub(crate) work: Duration,
    /// Elapsed time, for tests that wait, and for systems that do not tell processor time.
    pub(crate) time: Duration,
}

/// A run of a part of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) verdict: Verdict,
    /// Its processor time, or its elapsed time where the system does not tell that.
    pub(crate) work: Duration,
    pub(crate) time: Duration,
}

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    /// Every test passed; the number of tests.
    Passed(usize),
    /// This test failed.
    Failed(String),
    /// The process ended during this test.
    Crashed(String),
    /// The time limit came during this test.
    TimedOut(String),
}

impl Verdict {
    /// The test that noticed the mutation, if one did.
    pub(crate) fn test(&self) -> Option<&str> {
        match self {
            Self::Passed(_) => None,
            Self::Failed(test) | Self::Crashed(test) | Self::TimedOut(test) => Some(test),
        }
    }
}

impl Suite {
    /// The names of its tests.
    pub(crate) fn tests(&self) -> Result<Vec<String>, Error> {
        let list = process::output(Command::new(&self.executable).arg("--list"))?;
        Ok(listed(&list))
    }

    /// Runs a part of the suite, up to the first test that fails.
    pub(crate) fn run(
        &self,
        part: &Selection,
        with: With<'_>,
        limits: Limits,
    ) -> Result<Ran, Error> {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.folder)
            .args(["--test-threads=1", "--exact", &part.test])
            .env_remove(SWITCH)
            .env_remove(REACHED)
            .env("RUST_BACKTRACE", "0")
            .env("HALO_TEST_CASES", "all")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(kernel) = &part.kernel {
            command.env("HALO_TEST_KERNEL", kernel);
        }
        if part.once {
            command.env("HALO_TEST_VERIFY", "0");
        }
        match with {
            With::Mutation(number) => command.env(SWITCH, number.to_string()),
            With::Notes(file) => command.env(REACHED, file),
            With::Nothing => &mut command,
        };
        let start = Instant::now();
        let child = command.spawn().map_err(Error::start(&command))?;
        Running::new(child).end(&self.executable, start, limits)
    }
}

/// The tests in libtest's output for `--list`.
fn listed(list: &str) -> Vec<String> {
    let tests = list.lines().filter_map(|line| line.strip_suffix(": test"));
    tests.map(str::to_owned).collect()
}

/// A child process that is killed when this value is dropped.
struct Running(Child);

impl Running {
    fn new(child: Child) -> Self {
        Self(child)
    }

    fn end(mut self, executable: &Path, start: Instant, limits: Limits) -> Result<Ran, Error> {
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
        let mut work = None;
        let verdict = loop {
            let left = (start + limits.time).saturating_duration_since(Instant::now());
            match chunks.recv_timeout(left.min(LOOK)) {
                Ok(chunk) => {
                    output.push(&chunk);
                    if let Some(test) = &output.failed {
                        break Verdict::Failed(test.clone());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    work = work_of(&self.0);
                    let worked = work.is_some_and(|work| work > limits.work);
                    if worked || start.elapsed() >= limits.time {
                        break Verdict::TimedOut(output.current());
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    work = work_of(&self.0).or(work);
                    let status = self.0.wait().map_err(Error::file("wait for", executable))?;
                    break if status.success() {
                        Verdict::Passed(output.passed)
                    } else {
                        Verdict::Crashed(output.current())
                    };
                }
            }
        };
        let time = start.elapsed();
        drop(self);
        // Its pipe is closed, so it ends.
        let _ = reader.join();
        Ok(Ran {
            verdict,
            work: work.unwrap_or(time),
            time,
        })
    }
}

/// How often the time of a test is checked.
const LOOK: Duration = Duration::from_millis(50);

/// The processor time of a child that has not been waited for, where the system tells it.
fn work_of(child: &Child) -> Option<Duration> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    work_in(&std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
}

/// The 14th and the 15th value of `/proc/PID/stat`: the time in the program and in the
/// system, in hundredths of a second. The second value, a name in parentheses, may have
/// anything in it.
fn work_in(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut values = rest.split(' ').skip(11);
    let mut ticks = || values.next()?.parse::<u64>().ok();
    Some(Duration::from_millis(10 * (ticks()? + ticks()?)))
}

impl Drop for Running {
    fn drop(&mut self) {
        // An error means that it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The output of libtest so far.
struct Output {
    /// The line being printed.
    line: Vec<u8>,
    passed: usize,
    failed: Option<String>,
}

impl Output {
    fn new() -> Self {
        Self {
            line: Vec::new(),
            passed: 0,
            failed: None,
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
                    self.passed += 1;
                } else if result.starts_with("FAILED") && self.failed.is_none() {
                    self.failed = Some(test.to_owned());
                }
            }
        }
    }

    /// The running test, as far as the output shows it.
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

    /// The outcome of a suite whose program is this shell script.
    fn verdict(script: &str, time: Duration) -> Verdict {
        let limits = Limits { work: LONG, time };
        run(script, &Selection::default(), With::Mutation(7), limits)
    }

    fn run(script: &str, part: &Selection, with: With<'_>, limits: Limits) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("suite");
        std::fs::write(&executable, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&executable, std::fs::Permissions::from_mode(0o755)).unwrap();
        let suite = Suite {
            executable,
            folder: folder.path().to_path_buf(),
        };
        // The kernel may report a file just written as busy when another test forks at that moment.
        for _ in 0..50 {
            match suite.run(part, with, limits) {
                Err(Error::Shared(crate::error::Shared::Start { source, .. }))
                    if source.kind() == std::io::ErrorKind::ExecutableFileBusy =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other.unwrap().verdict,
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
        assert_eq!(verdict, Verdict::Failed("a::two".to_owned()));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn tests_that_pass_are_counted() {
        let verdict = verdict(
            "echo 'test one ... ok'; echo 'test two - should panic ... ok'",
            LONG,
        );
        assert_eq!(verdict, Verdict::Passed(2));
    }

    #[test]
    fn a_crash_is_put_down_to_the_test_that_ran() {
        let verdict = verdict(
            "echo 'test one ... ok'; printf 'test two ... '; kill -SEGV $$",
            LONG,
        );
        assert_eq!(verdict, Verdict::Crashed("two".to_owned()));
    }

    #[test]
    fn a_test_that_does_not_end_is_ended() {
        let verdict = verdict(
            "echo 'test one ... ok'; printf 'test two ... '; exec sleep 60",
            Duration::from_millis(300),
        );
        assert_eq!(verdict, Verdict::TimedOut("two".to_owned()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_test_that_works_for_ever_is_ended_before_one_that_waits() {
        let limits = Limits {
            work: Duration::from_millis(200),
            time: LONG,
        };
        let start = Instant::now();
        let run = |script| run(script, &Selection::default(), With::Mutation(7), limits);
        let verdict = run("printf 'test one ... '; while :; do :; done");
        assert_eq!(verdict, Verdict::TimedOut("one".to_owned()));
        let verdict = run("sleep 1; echo 'test one ... ok'");
        assert_eq!(verdict, Verdict::Passed(1));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_work_of_a_process_is_read_whatever_it_is_called() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4 5 0 0 0 123 45 0 0 20 0 1 0 9";
        assert_eq!(work_in(stat), Some(Duration::from_millis(1680)));
        assert_eq!(work_in("7 (a) R 1"), None);
    }

    #[test]
    fn tests_are_listed() {
        let list = "mod::one: test\ntwo: test\nbench: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(listed(list), ["mod::one", "two"]);
    }

    #[test]
    fn the_suite_is_told_what_to_run_and_which_mutation_is_on() {
        let told = "echo \"test told ... ok\"";
        let limits = Limits {
            work: LONG,
            time: LONG,
        };
        let all = format!(
            "test \"${SWITCH}-${REACHED}-$HALO_TEST_KERNEL-$HALO_TEST_VERIFY-$*\" = \
             '7------test-threads=1 --exact a::b' && {told}"
        );
        let mut part = Selection {
            test: "a::b".to_owned(),
            ..Selection::default()
        };
        let with = With::Mutation(7);
        assert_eq!(run(&all, &part, with, limits), Verdict::Passed(1));
        part.kernel = Some("k".to_owned());
        part.once = true;
        let some = format!(
            "test \"${SWITCH}-${REACHED}-$HALO_TEST_KERNEL-$HALO_TEST_VERIFY-$*\" = \
             '-/f-k-0---test-threads=1 --exact a::b' && {told}"
        );
        let notes = With::Notes(Path::new("/f"));
        assert_eq!(run(&some, &part, notes, limits), Verdict::Passed(1));
    }
}
