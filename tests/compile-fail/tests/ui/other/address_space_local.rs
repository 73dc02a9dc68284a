//! A static must not be in local memory.

use cuda_std::address_space;

#[address_space(local)]
static mut TABLE: [f32; 4] = [0.0; 4];

fn main() {}
