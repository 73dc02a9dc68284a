//! Facts about the committed PTX, read as text.
//!
//! A few facts per kernel, never whole listings: which state spaces it loads
//! from and stores to, how many barriers it has, whether it multiplies and adds
//! in one instruction.

/// The committed PTX: its target, its text.
const COMMITTED: [(&str, &str); 2] = [
    ("sm_75", include_str!("../host/ptx/halo_sm_75.ptx")),
    ("sm_90", include_str!("../host/ptx/halo_sm_90.ptx")),
];

/// The targets with committed PTX.
pub const TARGETS: [&str; COMMITTED.len()] = [COMMITTED[0].0, COMMITTED[1].0];

/// The committed PTX for `target`.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn text(target: &str) -> &'static str {
    COMMITTED
        .iter()
        .find(|(name, _)| *name == target)
        .map(|(_, text)| *text)
        .unwrap_or_else(|| panic!("no PTX is committed for {target}"))
}

/// The body of the entry `kernel`: its instructions, one a line, without comments.
///
/// # Panics
///
/// If there is no such entry.
#[must_use]
pub fn entry(text: &str, kernel: &str) -> Vec<String> {
    let header = format!(".entry {kernel}(");
    let mut body = Vec::new();
    // Inline assembly opens blocks of its own inside the entry's.
    let mut depth = 0_usize;
    for line in text.lines().skip_while(|line| !line.contains(&header)) {
        let line = line.split("//").next().unwrap_or_default().trim();
        let outside = depth == 0;
        depth += line.matches('{').count();
        depth -= line.matches('}').count();
        if outside || line.is_empty() {
            continue;
        }
        if depth == 0 {
            break;
        }
        body.push(line.to_owned());
    }
    assert!(!body.is_empty(), "no entry {kernel} in the PTX");
    body
}

/// How many instructions of `body` begin with `opcode`, predicated or not.
#[must_use]
pub fn count(body: &[String], opcode: &str) -> usize {
    body.iter()
        .filter(|line| {
            let unpredicated = line
                .strip_prefix('@')
                .and_then(|rest| rest.split_once(char::is_whitespace))
                .map_or(line.as_str(), |(_, instruction)| instruction.trim_start());
            unpredicated.starts_with(opcode)
        })
        .count()
}
