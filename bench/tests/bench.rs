//! Runs `halo-bench` as a user does: its output, its files and its exit status, for good input and
//! bad.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// The benchmark on the CPU with these arguments, which hold no spaces.
fn bench(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_halo-bench"));
    command.args(arguments.split_whitespace());
    // The first line of a panic shows it.
    command.env("RUST_BACKTRACE", "0");
    command
}

/// The text on standard error.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that a run ended with one of our errors, and that it contains these words.
fn assert_refused(output: &Output, words: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: ") && said.contains(words), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn sizes_beyond_all_memory_are_errors() {
    for family in ["derivative3d", "heat2d", "nbody", "reduction", "stencil1d"] {
        for device in ["cpu", "emulator"] {
            for size in [usize::MAX, usize::MAX / 4, usize::MAX / 64, 1 << 45] {
                let line = format!(
                    "--device {device} --family {family} --size {size} --launches 1 --warmup 0"
                );
                assert_refused(&bench(&line).output().unwrap(), "");
            }
        }
    }
}

/// A temporary folder, and a function that gives paths in it.
fn folder() -> (tempfile::TempDir, impl Fn(&str) -> PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    (folder, move |name: &str| root.join(name))
}

/// Arguments of a run that takes no time: one row on the emulator, and the copy.
const SHORT: &str = "--device emulator --family reduction --size 1000";

/// Runs `--from` on this file.
fn from(path: &Path) -> Output {
    bench("--from").arg(path).output().unwrap()
}

#[test]
fn files_are_written_although_nobody_reads_what_is_printed() {
    let (_folder, path) = folder();
    let mut child = bench(SHORT)
        .arg("--json")
        .arg(path("a.json"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(from(&path("a.json")).status.success());
}

#[test]
fn files_are_written_although_standard_output_is_full() {
    let (_folder, path) = folder();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench(SHORT);
    command.arg("--csv").arg(path("a.csv")).stdout(full);
    assert_refused(
        &command.output().unwrap(),
        "cannot write to standard output",
    );
    assert!(
        std::fs::read_to_string(path("a.csv"))
            .unwrap()
            .contains("reduction_dot_f32")
    );
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let (_folder, path) = folder();
    std::fs::write(path("file"), "in the way").unwrap();
    std::fs::create_dir(path("folder")).unwrap();
    for flag in ["--json", "--csv", "--html", "--svg"] {
        for (wrong, named) in [
            ("file/a", "file"),
            ("folder", "folder"),
            ("/proc/a", "/proc"),
        ] {
            if flag == "--svg" && wrong == "folder" {
                continue;
            }
            let mut command = bench("--device cpu --family nbody --size 1000000 --csv");
            if flag == "--csv" {
                command = bench("--device cpu --family nbody --size 1000000 --json");
            }
            let output = command
                .arg(path("other"))
                .arg(flag)
                .arg(path(wrong))
                .output()
                .unwrap();
            assert_refused(&output, named);
            assert!(output.stdout.is_empty());
        }
    }
    // No temporary file is left.
    let mut left: Vec<_> = std::fs::read_dir(path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["file", "folder"]);
    assert_eq!(std::fs::read_dir(path("folder")).unwrap().count(), 0);
}

#[test]
fn what_stands_in_the_place_of_an_output_stays_until_there_is_a_new_one() {
    let (_folder, path) = folder();
    std::fs::write(path("a.json"), "of old").unwrap();
    let line = format!(
        "--device emulator --family reduction --size {} --json",
        usize::MAX
    );
    assert_refused(&bench(&line).arg(path("a.json")).output().unwrap(), "");
    assert_eq!(std::fs::read_to_string(path("a.json")).unwrap(), "of old");
    assert_eq!(std::fs::read_dir(path("")).unwrap().count(), 1);
}

#[test]
fn a_run_that_is_interrupted_leaves_its_finished_families() {
    let (_folder, path) = folder();
    // The second family takes minutes.
    let mut child = bench("--device emulator --family heat2d --family nbody --size 256")
        .args(["--json".as_ref(), path("a.json").as_os_str()])
        .args(["--csv".as_ref(), path("a.csv").as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !path("a.csv").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
        sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success());

    let shown = from(&path("a.json"));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success(), "{text}");
    assert!(
        text.contains("cut short  before nbody had been measured"),
        "{text}"
    );
    assert!(
        text.contains("heat2d_global") && !text.contains("nbody_"),
        "{text}"
    );
    let left = std::fs::read_dir(path("")).unwrap().count();
    assert_eq!(left, 2, "nothing but the two files");
}

#[test]
fn no_word_of_a_file_reaches_the_terminal_as_a_command() {
    let (_folder, path) = folder();
    let run = bench(SHORT).arg("--json").arg(path("a.json")).output();
    assert!(run.unwrap().status.success());
    let json = std::fs::read_to_string(path("a.json")).unwrap();
    for (from_this, to_this) in [
        ("reduction_dot_f32", "\\u001b[2J\\u001b]0;title\\u0007sum"),
        ("\"kind\": \"emulator\"", "\"kind\": \"\\u009b31memulator\""),
        ("\"points\"", "\"\\u001b[31mpoints\""),
    ] {
        let hostile = json.replace(from_this, to_this);
        assert!(hostile != json, "{from_this}");
        std::fs::write(path("b.json"), hostile).unwrap();
        let Output { stdout, stderr, .. } = from(&path("b.json"));
        for text in [stdout, stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text:?}"
            );
        }
    }
}

#[test]
fn a_record_with_nothing_in_it_says_so() {
    let (_folder, path) = folder();
    let run = bench(SHORT).arg("--json").arg(path("a.json")).output();
    assert!(run.unwrap().status.success());
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path("a.json")).unwrap()).unwrap();
    for (place, none) in [
        ("/families", "no families"),
        ("/families/0/problems", "no problems"),
        ("/families/0/problems/0/rows", "no rows"),
    ] {
        let mut empty = json.clone();
        *empty.pointer_mut(place).unwrap() = serde_json::json!([]);
        std::fs::write(path("b.json"), empty.to_string()).unwrap();
        assert_refused(&from(&path("b.json")), none);
    }
}

#[test]
fn one_output_that_fails_while_all_is_measured_costs_no_other() {
    let (_folder, path) = folder();
    // A pipe without a reader: the first write to it fails.
    let pipe = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(pipe.unwrap().success());
    let mut child = bench(SHORT)
        .args(["--csv".as_ref(), path("pipe").as_os_str()])
        .args(["--json".as_ref(), path("a.json").as_os_str()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    drop(File::open(path("pipe")).unwrap());
    child.wait().unwrap();
    assert!(from(&path("a.json")).status.success());
}

#[test]
fn ranks_have_the_bits_of_one_and_a_record_in_every_form() {
    let (_folder, path) = folder();
    let json = path("ranks.json");
    let output = bench("--device cpu --ranks 3 --small --project 16")
        .args(["--json".as_ref(), json.as_os_str()])
        .args(["--html".as_ref(), path("ranks.html").as_os_str()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("deviation") && !text.contains("DIFFER"),
        "{text}"
    );
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).expect("JSON");
    let rows = record["rows"].as_array().expect("rows");
    // Five families, 1, 2 and 3 ranks, strong and weak.
    assert_eq!(rows.len(), 5 * 3 * 2);
    let of_several = |row: &&serde_json::Value| row["weak"] == false && row["ranks"] != 1;
    let strong: Vec<_> = rows.iter().filter(of_several).collect();
    assert!(
        strong.len() == 10 && strong.iter().all(|row| row["equal_bits"] == true),
        "{text}"
    );

    // The same from the file, with a prediction for more ranks.
    let shown = from(&json);
    assert!(shown.status.success(), "{}", said(&shown));
    assert_eq!(String::from_utf8_lossy(&shown.stdout), text);
    let mut again = bench("--project 4096 --from");
    again.arg(&json).arg("--svg").arg(path("charts"));
    assert!(again.output().unwrap().status.success());
    for made in [
        "ranks.html",
        "charts/scaling-strong.svg",
        "charts/scaling-weak.svg",
    ] {
        let made = std::fs::read_to_string(path(made)).unwrap();
        assert!(made.contains("Efficiency, strong scaling") || made.contains("Efficiency, weak"));
    }

    assert_refused(
        &bench("--ranks --device cpu").output().unwrap(),
        "without MPI",
    );
}

#[test]
fn outputs_of_ranks_are_refused_before_anything_is_measured_and_families_are_kept() {
    let (_folder, path) = folder();
    std::fs::write(path("file"), "in the way").unwrap();
    for flag in ["--json", "--csv", "--html", "--svg"] {
        let mut command = bench("--device cpu --ranks 2 --family reduction --size 1000000000");
        let output = command.arg(flag).arg(path("file/a")).output().unwrap();
        assert_refused(&output, "file");
        assert!(output.stdout.is_empty());
    }
    assert_refused(
        &bench("--device cpu --ranks 2 --family heat2d --size 4x4x4")
            .output()
            .unwrap(),
        "does not fit heat2d",
    );

    // The second family takes longer than the time that it is given.
    let mut child = bench("--device cpu --ranks 1 --family heat2d --family wave3d --size 256")
        .args(["--json".as_ref(), path("a.json").as_os_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !path("a.json").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the run is over");
        sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = from(&path("a.json"));
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.status.success(), "{text}");
    for words in [
        "cut short  before wave3d had been measured",
        "256x256, 16 iterations",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
