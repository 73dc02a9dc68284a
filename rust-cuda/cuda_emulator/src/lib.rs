//! Runs CUDA kernels written in Rust on the CPU, thread for thread, and reports what a GPU does silently.

pub mod intrinsics;

mod config;

pub use config::{
    Blocks, LaunchConfig, MAX_THREADS_PER_BLOCK, Options, Poison, Report, SHARED_LIMIT_DEFAULT,
    SHARED_LIMIT_OPT_IN, ThreadOrder, WARP_SIZE,
};
