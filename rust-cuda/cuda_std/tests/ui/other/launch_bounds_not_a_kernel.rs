//! Launch bounds are for kernels.

use cuda_std::launch_bounds;

#[launch_bounds(64)]
pub fn helper() {}

fn main() {}
