//! Running a test again in a process of its own.

use std::process::Command;

const CHILD: &str = "HALO_TEST_CHILD";

/// Whether this process is the one that runs the test `name` again.
pub fn is(name: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|child| child == name)
}

/// Has `command` run the test `name` again, and nothing else: it starts this program, with
/// `--exact`, the name and `--nocapture`. That must pass.
pub fn passes(name: &str, command: &mut Command) {
    let output = command.env(CHILD, name).output().expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{name}:\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
