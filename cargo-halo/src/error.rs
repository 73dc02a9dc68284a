//! Errors that stop a command. (A fault that a command looks for is a finding, not an error.)

use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::command_line;

/// The reason why a command stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}", path.display())]
    File {
        /// The failed action, in the infinitive: "read", "write".
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
        /// Its output, unless that was already shown.
        output: String,
    },

    #[error("cannot read the crate in {}", folder.display())]
    NoCrate {
        folder: PathBuf,
        source: cargo_metadata::Error,
    },

    #[error("{} is not a crate of kernels: {why}; go to its folder, or name it with --kernels FOLDER", folder.display())]
    NoKernels { folder: PathBuf, why: String },

    #[error("cannot build PTX for {target}")]
    Ptx {
        target: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    #[error("found no {tool}, which lists machine code without a GPU; install it: {mend}")]
    MissingTool {
        tool: &'static str,
        /// The command that installs it.
        mend: &'static str,
    },

    #[error("no kernel is called {kernel}; there are {known}")]
    NoSuchKernel { kernel: String, known: String },

    #[error("{} exists already; cargo halo new makes a new folder", path.display())]
    Exists { path: PathBuf },

    #[error("`{name}` cannot name a crate: {why}")]
    Name { name: String, why: &'static str },

    #[error("the argument `{argument}` is not understood: {why}")]
    Argument { argument: String, why: String },

    #[error("cannot write {} as JSON", path.display())]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Error {
    /// For `map_err`: names the file that an I/O error is about.
    pub fn file(
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

    /// For `map_err`: names the file that is not valid JSON.
    pub fn json(path: impl Into<PathBuf>) -> impl FnOnce(serde_json::Error) -> Self {
        let path = path.into();
        move |source| Self::Json { path, source }
    }

    /// For `map_err`: names the program that did not start.
    pub fn start(command: &Command) -> impl FnOnce(std::io::Error) -> Self {
        let program = command_line::program(command);
        move |source| Self::Start { program, source }
    }
}

/// The output of a failed command, indented, on lines of its own.
fn indented(output: &str) -> String {
    output.lines().map(|line| format!("\n    {line}")).collect()
}

/// An error and its causes, outermost first.
pub fn chain(error: &dyn std::error::Error) -> String {
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
