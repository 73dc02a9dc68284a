//! Arguments of the attribute are checked.

use cuda_std::kernel;

#[kernel(grid = 2d)]
pub unsafe fn kernel() {}

fn main() {}
