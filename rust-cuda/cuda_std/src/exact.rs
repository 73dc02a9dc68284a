//! The correctly rounded functions: an instruction on the device, `std` on the
//! host.

#[cfg(target_arch = "nvptx64")]
pub use core::{f32::math as f32, f64::math as f64};

#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    macro_rules! exact {
        ($float:ident) => {
            pub mod $float {
                pub fn floor(x: $float) -> $float {
                    x.floor()
                }
                pub fn ceil(x: $float) -> $float {
                    x.ceil()
                }
                pub fn round(x: $float) -> $float {
                    x.round()
                }
                pub fn round_ties_even(x: $float) -> $float {
                    x.round_ties_even()
                }
                pub fn trunc(x: $float) -> $float {
                    x.trunc()
                }
                pub fn sqrt(x: $float) -> $float {
                    x.sqrt()
                }
                pub fn mul_add(x: $float, a: $float, b: $float) -> $float {
                    x.mul_add(a, b)
                }
            }
        };
    }
    exact!(f32);
    exact!(f64);
}
