//! [`Mend`]: the remedy for a missing requirement.

/// The remedy for a missing requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mend {
    /// A command, to be pasted into a shell in the repository's root.
    Run(String),
    /// A page, where no command is right everywhere.
    See(&'static str),
    /// A command that works without it.
    Instead(String),
}
