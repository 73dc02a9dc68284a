//! Builds a kernel crate and prints its PTX:
//! `cargo run -p halo-cuda-builder --example ptx -- path/to/crate sm_90`.

use std::error::Error;
use std::process::ExitCode;

use cuda_builder::{CudaBuilder, DebugInfo};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("usage: ptx path/to/crate [sm_75] [lines]")?;
    let mut builder = CudaBuilder::new(path);
    if let Some(arch) = arguments.next() {
        builder = builder.arch(arch.parse()?);
    }
    if arguments.next().as_deref() == Some("lines") {
        builder = builder.debug(DebugInfo::LineTables);
    }
    let ptx = builder.build_ptx()?;
    println!("{}", ptx.text);
    eprintln!("kernels: {}", ptx.kernels.join(", "));
    Ok(())
}
