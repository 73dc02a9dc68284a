//! `gpu_only` takes no arguments.

use cuda_std::gpu_only;

#[gpu_only(fast)]
fn f() {}

fn main() {}
