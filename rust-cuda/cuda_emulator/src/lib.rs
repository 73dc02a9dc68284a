//! Runs CUDA kernels written in Rust on the CPU, thread for thread, and reports what a GPU does silently.
