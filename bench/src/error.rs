//! What can go wrong in a benchmark, as opposed to what it can find.

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
}
