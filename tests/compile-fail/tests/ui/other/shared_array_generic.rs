//! A shared array must not depend on a generic parameter.

use cuda_std::shared_array;

fn f<T>() -> *mut T {
    shared_array![T; 4]
}

fn main() {}
