//! Runs CUDA kernels written in Rust on the CPU, thread for thread, and reports what a GPU does silently.

pub mod intrinsics;

mod block;
mod config;
mod diagnosis;
mod here;
mod launch;
mod memory;
mod panics;
mod random;
mod region;
mod runner;
mod shared;
mod symbol;
mod sys;
mod texture;
mod verify;
mod watchdog;
mod workspace;

pub use config::{
    Blocks, LaunchConfig, MAX_THREADS_PER_BLOCK, Options, Poison, Report, SHARED_LIMIT_DEFAULT,
    SHARED_LIMIT_OPT_IN, ThreadOrder, WARP_SIZE,
};
pub use diagnosis::{
    Access, Diagnosis, Difference, Doing, Limit, MemoryKind, MemoryName, Place, SourceLine,
    SourceMissing,
};
pub use launch::{LaunchLock, launch, parallelism};
pub use memory::{Allocation, DeviceMemory, MemoryError};
pub use region::Placement;
pub use texture::{Addressing, TextureDescriptor, TextureShape};
pub use verify::{Compare, Verify, verify};
