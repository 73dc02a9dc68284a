//! A function has no address space.

use cuda_std::address_space;

#[address_space(shared)]
fn f() {}

fn main() {}
