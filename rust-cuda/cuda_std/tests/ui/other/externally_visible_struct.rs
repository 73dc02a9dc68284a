//! Types are not exported.

use cuda_std::externally_visible;

#[externally_visible]
struct S;

fn main() {}
