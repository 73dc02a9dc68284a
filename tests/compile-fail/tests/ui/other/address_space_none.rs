//! The address space is missing.

use cuda_std::address_space;

#[address_space]
static mut TABLE: [f32; 4] = [0.0; 4];

fn main() {}
