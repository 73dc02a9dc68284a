//! Builds kernel crates to PTX from a build script, with the stock Rust toolchain.
