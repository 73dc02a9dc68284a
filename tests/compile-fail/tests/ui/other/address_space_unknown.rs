//! The address space does not exist.

use cuda_std::address_space;

#[address_space(texture)]
static mut TABLE: [f32; 4] = [0.0; 4];

fn main() {}
