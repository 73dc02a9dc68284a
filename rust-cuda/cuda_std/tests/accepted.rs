//! Code of kernel crates that must compile without errors and warnings.
#![deny(warnings)]
#![allow(
    missing_docs,
    clippy::missing_safety_doc,
    clippy::undocumented_unsafe_blocks,
    reason = "as short as can be: none of it runs"
)]

use cuda_std::prelude::*;
use cuda_std::{address_space, externally_visible, gpu_only, shared_array};

macro_rules! kernels {
    ($($name:ident: $type:ty),*) => {$(
        #[kernel]
        pub unsafe fn $name(x: &[$type], out: *mut $type) {
            unsafe { *out = x[0] };
        }
    )*};
}

kernels!(first_f32: f32, first_u64: u64);

#[kernel(grid_dim = 2d, block_dim = 1D)]
#[allow(improper_ctypes_definitions, clippy::missing_safety_doc)]
pub unsafe extern "C" fn attributes(_: &[f32], mut n: usize, (x, y): (u32, u32), _out: *mut f32) {
    n += (x + y) as usize;
    let _ = n;
}

#[kernel(handle = Renamed)]
pub unsafe fn renamed<'a>(x: &'a [f32], pair: (&'a f32, u32)) -> () {
    let _ = (x, pair);
}

#[kernel]
unsafe fn private(_: &(f32, u32)) {
    #[address_space(shared)]
    static mut TILE: [f32; 4] = [0.0; 4];
    unsafe { TILE[0] = 1.0 };
}

#[address_space(constant)]
#[externally_visible]
pub static mut TABLE: [f32; 4] = [0.0; 4];

#[externally_visible]
#[address_space(constant)]
pub static mut OTHER: u32 = 0;

#[unsafe(no_mangle)]
#[address_space(constant)]
static mut THIRD: f64 = 0.0;

#[address_space(global)]
static COUNT: u32 = 3;

#[externally_visible]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn called_from_elsewhere(x: f32) -> f32 {
    x
}

#[gpu_only]
fn only_there(x: u32) -> u32 {
    x
}

fn tile() -> *mut [f32; 3] {
    const N: usize = 3;
    shared_array![[f32; 3]; 2 * N]
}

#[test]
fn kernels_have_their_names() {
    use cuda_std::host::{Kernel, Symbol};
    assert_eq!(Renamed::NAME, "renamed");
    assert_eq!(private::NAME, "private");
    assert_eq!(
        (TABLE::NAME, OTHER::NAME, THIRD::NAME),
        ("TABLE", "OTHER", "THIRD")
    );
    println!("{COUNT}");
    let _: fn(u32) -> u32 = only_there;
    let _: fn() -> *mut [f32; 3] = tile;
}
