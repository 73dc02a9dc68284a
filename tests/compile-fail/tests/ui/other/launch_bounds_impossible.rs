//! Launch bounds that no GPU can meet are refused.

use cuda_std::{kernel, launch_bounds};

#[kernel]
#[launch_bounds(1025)]
pub unsafe fn too_large() {}

#[kernel]
#[launch_bounds(1024, 3)]
pub unsafe fn too_many() {}

fn main() {}
