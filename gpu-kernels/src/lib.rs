//! Halo's CUDA kernels: device code in Rust, and an ordinary library on the host.
