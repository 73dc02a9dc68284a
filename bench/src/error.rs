//! Errors that stop a benchmark. (A row that fails its check is a finding, not an error.)

pub(crate) use cargo_halo::error::{Error as Shared, chain};

/// The reason why a benchmark stopped.
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
}
