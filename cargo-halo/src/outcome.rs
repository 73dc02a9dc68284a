//! [`Outcome`]: how a command ended.

/// The outcome of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No fault was found.
    Clean,
    /// The command ran and found something wrong, which it has already printed.
    Findings,
}
