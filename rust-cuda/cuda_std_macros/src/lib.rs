//! The attribute macros of cuda_std, ported to the stock Rust toolchain.
