//! Errors that stop a task. (A fault that a task looks for is a finding, not an error.)

use std::path::PathBuf;

pub(crate) use cargo_halo::error::{Error as Shared, chain};

/// The reason why a task stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
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

    #[error("no kernel is called {kernel}{}", similar_kernels(.similar))]
    NoSuchKernel {
        kernel: String,
        /// Names that contain this one, separated by commas.
        similar: String,
    },

    #[error("no family is called {family}; its name is that of its folder in gpu-kernels/src")]
    NoSuchFamily { family: String },

    #[error("the committed PTX has no kernel {kernel}; run: cargo xtask ptx")]
    NotInPtx { kernel: String },

    #[error(transparent)]
    Shared(#[from] Shared),

    #[error(transparent)]
    Baseline(#[from] halo_baselines::cuda::Error),

    #[error("{0}")]
    Mutation(String),
}

impl Error {
    /// For `map_err`: names the file that an I/O error is about.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let named = Shared::file(action, path);
        move |source| Self::Shared(named(source))
    }

    /// For `map_err`: names the program that did not start.
    pub(crate) fn start(command: &std::process::Command) -> impl FnOnce(std::io::Error) -> Self {
        let named = Shared::start(command);
        move |source| Self::Shared(named(source))
    }
}

fn similar_kernels(similar: &str) -> String {
    if similar.is_empty() {
        "; cargo xtask inspect without a name lists them all".to_owned()
    } else {
        format!("; there are {similar}")
    }
}
