//! Finite-difference stencils, heat equation, reductions and all-pairs n-body as CUDA kernels in pure Rust.
