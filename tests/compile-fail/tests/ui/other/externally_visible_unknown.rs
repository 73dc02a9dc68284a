//! The attribute is not imported.

use cuda_std::address_space;

#[address_space(constant)]
#[externally_visible]
static mut TABLE: [f32; 4] = [0.0; 4];

fn main() {}
