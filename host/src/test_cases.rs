//! How many cases the tests run: some of them, or all.
//!
//! Plain `cargo test` is quick, for the person who waits for it. It has cases for every kernel,
//! device and comparison, and includes the sizes at which a path through the code begins or ends.
//! With `HALO_TEST_CASES=all`, which CI and `cargo xtask mutate` set, every test runs all of its
//! cases.

use std::io::Write as _;
use std::sync::OnceLock;

const VARIABLE: &str = "HALO_TEST_CASES";

/// Whether all cases run. If only some do, the first call in a process prints a note.
///
/// # Panics
///
/// If `HALO_TEST_CASES` is neither `some` nor `all`.
#[must_use]
pub fn all() -> bool {
    static ALL: OnceLock<bool> = OnceLock::new();
    *ALL.get_or_init(|| match std::env::var(VARIABLE).as_deref() {
        Ok("all") => true,
        Ok("some") | Err(_) => {
            // Not with `eprintln!`, whose output the test harness captures.
            let text = format!("some of the cases ({VARIABLE}=all runs all)\n");
            let _ = std::io::stderr().write_all(text.as_bytes());
            false
        }
        Ok(other) => panic!("{VARIABLE} is {other:?}, but must be \"some\" or \"all\""),
    })
}

/// `some`, or `all` where all cases run.
#[must_use]
pub fn either<T>(some: T, all_of_them: T) -> T {
    if all() { all_of_them } else { some }
}

/// Every case, or the first of each `stride` if only some run. If the cases come from nested loops,
/// choose a stride that has no common divisor with the lengths of the loops: every value of each
/// loop then occurs, in varying combinations.
pub fn one_in<T>(stride: usize, cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(either(stride, 1))
}
