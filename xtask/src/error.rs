//! What can go wrong in a task, as opposed to what a task can find.

use std::path::PathBuf;
use std::process::ExitStatus;

/// A task could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was being done, in the infinitive: "read", "write".
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },

    #[error("cannot start {program}")]
    Start {
        program: String,
        source: std::io::Error,
    },

    #[error("{command} failed ({status}){}", indented(.output))]
    Command {
        command: String,
        status: ExitStatus,
        /// What it printed, where that was not shown already.
        output: String,
    },

    #[error("found no workspace; run this inside a checkout")]
    NoWorkspace(#[from] cargo_metadata::Error),

    #[error("cannot parse {} as Rust: {message} at line {line}", path.display())]
    Parse {
        path: PathBuf,
        line: usize,
        message: String,
    },

    #[error("cannot build PTX for {target}")]
    Ptx {
        target: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    #[error("found no {tool}, which lists machine code without a GPU; get it: {mend}")]
    MissingTool {
        tool: &'static str,
        /// The command that brings it.
        mend: &'static str,
    },

    #[error("no kernel is called {kernel}{}", similar_kernels(.similar))]
    NoSuchKernel {
        kernel: String,
        /// Names that hold this one, separated by commas.
        similar: String,
    },

    #[error("no family is called {family}; its name is that of its folder in gpu-kernels/src")]
    NoSuchFamily { family: String },

    #[error("the committed PTX has no kernel {kernel}; run: cargo xtask ptx")]
    NotInPtx { kernel: String },

    #[error(transparent)]
    Baseline(#[from] crate::baselines::Error),

    #[error("{0}")]
    Mutation(String),

    #[error("{0}")]
    Bench(String),

    #[error(transparent)]
    Report(#[from] halo_report::Error),

    #[cfg(feature = "bench")]
    #[error(transparent)]
    Size(#[from] crate::bench::SizeError),

    #[cfg(feature = "bench")]
    #[error(transparent)]
    Halo(#[from] halo_gpu::Error),

    #[cfg(feature = "bench")]
    #[error(transparent)]
    Ranks(#[from] halo_distributed::Error),

    #[error("cannot {action} {} as a report in JSON", path.display())]
    Json {
        /// What was being done, in the infinitive: "read", "write".
        action: &'static str,
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err`: names the file that an I/O error is about.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }

    /// For `map_err`: names the file that an error of JSON is about.
    pub(crate) fn json(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Json {
            action,
            path,
            source,
        }
    }
}

fn similar_kernels(similar: &str) -> String {
    if similar.is_empty() {
        "; cargo xtask inspect without a name lists them all".to_owned()
    } else {
        format!("; there are {similar}")
    }
}

/// The output of a failed command, each line set in, on lines of its own.
fn indented(output: &str) -> String {
    output.lines().map(|line| format!("\n    {line}")).collect()
}

/// An error and everything behind it, from the outermost to the first cause.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // A transparent error repeats its source's words.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_names_every_cause_once() {
        let error = Error::file("read", "a/b.rs")(std::io::Error::other("disk on fire"));
        assert_eq!(chain(&error), "cannot read a/b.rs: disk on fire");
    }

    #[test]
    fn output_of_a_failed_command_is_set_in() {
        assert_eq!(indented("one\ntwo\n"), "\n    one\n    two");
        assert_eq!(indented(""), "");
    }
}
