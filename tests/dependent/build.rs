//! Uses the compiler of kernels as far as its package must be there; it compiles none.

use cuda_builder::{CudaBuilder, NvvmArch};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let _ = CudaBuilder::new("kernels").arch(NvvmArch::Compute75);
}
