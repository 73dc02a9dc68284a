//! The device-side standard library of the rust-cuda programming model, ported to the stock Rust toolchain.
