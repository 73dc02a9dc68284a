//! Launch bounds apply only to kernels.

use cuda_std::launch_bounds;

#[launch_bounds(64)]
pub fn helper() {}

fn main() {}
