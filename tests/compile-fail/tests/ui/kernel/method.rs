//! A kernel must not be a method.

use cuda_std::kernel;

pub struct S;

impl S {
    #[kernel]
    pub unsafe fn kernel(&self, x: &[f32]) {
        let _ = x;
    }
}

fn main() {}
