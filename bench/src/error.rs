//! What can go wrong in a benchmark, as opposed to what it can find.

use std::path::PathBuf;

pub(crate) use cargo_halo::error::{Error as Shared, chain};

/// A benchmark could not be carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{0}")]
    Bench(String),

    #[error(transparent)]
    Cuda(#[from] halo_baselines::cuda::Error),

    #[error(transparent)]
    Report(#[from] halo_report::Error),

    #[error(transparent)]
    Size(#[from] crate::size::SizeError),

    #[error(transparent)]
    Halo(#[from] halo_gpu::Error),

    #[error(transparent)]
    Ranks(#[from] halo_distributed::Error),

    #[error(transparent)]
    Shared(#[from] Shared),

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
        let named = Shared::file(action, path);
        move |source| Self::Shared(named(source))
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
