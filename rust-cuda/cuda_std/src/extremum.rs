//! `minimum` and `maximum` of IEEE 754-2019.

#[cfg(target_arch = "nvptx64")]
pub use device::*;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;

#[cfg(target_arch = "nvptx64")]
mod device {
    /// One instruction from compute capability 8.0 on, for `f32`.
    #[cfg(target_feature = "sm_80")]
    pub mod f32 {
        #[inline(always)]
        pub fn minimum(a: f32, b: f32) -> f32 {
            // SAFETY: arithmetic on values.
            unsafe { crate::sys::minimum_f(a, b) }
        }
        #[inline(always)]
        pub fn maximum(a: f32, b: f32) -> f32 {
            // SAFETY: arithmetic on values.
            unsafe { crate::sys::maximum_f(a, b) }
        }
    }

    /// The hardware's instruction returns the number if the other operand is
    /// NaN, so NaN is tested for. LLVM's own expansion of `minimum` does not
    /// use that the instruction orders zeros, and is three times as long.
    macro_rules! by_number {
        ($float:ident, $minimum:ident, $maximum:ident) => {
            pub mod $float {
                #[inline(always)]
                pub fn minimum(a: $float, b: $float) -> $float {
                    // SAFETY: arithmetic on values.
                    let least = unsafe { crate::sys::$minimum(a, b) };
                    if a.is_nan() || b.is_nan() {
                        $float::NAN
                    } else {
                        least
                    }
                }
                #[inline(always)]
                pub fn maximum(a: $float, b: $float) -> $float {
                    // SAFETY: arithmetic on values.
                    let greatest = unsafe { crate::sys::$maximum(a, b) };
                    if a.is_nan() || b.is_nan() {
                        $float::NAN
                    } else {
                        greatest
                    }
                }
            }
        };
    }
    #[cfg(not(target_feature = "sm_80"))]
    by_number!(f32, minimum_number_f, maximum_number_f);
    by_number!(f64, minimum_number_d, maximum_number_d);
}

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    macro_rules! extremum {
        ($float:ident) => {
            pub mod $float {
                pub fn minimum(a: $float, b: $float) -> $float {
                    if a < b {
                        a
                    } else if b < a {
                        b
                    } else if a == b {
                        // Equal bits, or zeros of both signs: the sign bit of
                        // -0 stays.
                        $float::from_bits(a.to_bits() | b.to_bits())
                    } else {
                        $float::NAN
                    }
                }
                pub fn maximum(a: $float, b: $float) -> $float {
                    if a > b {
                        a
                    } else if b > a {
                        b
                    } else if a == b {
                        $float::from_bits(a.to_bits() & b.to_bits())
                    } else {
                        $float::NAN
                    }
                }
            }
        };
    }
    extremum!(f32);
    extremum!(f64);
}
