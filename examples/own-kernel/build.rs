//! Builds the kernels for a GPU, with the feature `gpu`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "gpu")]
    build_kernels();
}

#[cfg(feature = "gpu")]
fn build_kernels() {
    use cuda_builder::{CudaBuilder, NvvmArch};

    let ptx = format!("{}/kernels.ptx", std::env::var("OUT_DIR").unwrap());
    let built = CudaBuilder::new("kernels")
        // The oldest GPU to support; newer ones run the same PTX.
        .arch(NvvmArch::Compute75)
        .copy_to(ptx)
        .build();
    if let Err(error) = built {
        // Cargo shows the output of a failed build script.
        eprintln!("{error}");
        std::process::exit(1);
    }
}
