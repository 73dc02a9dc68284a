//! A type cannot be exported.

use cuda_std::externally_visible;

#[externally_visible]
struct S;

fn main() {}
