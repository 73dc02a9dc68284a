//! The element types of the reductions: the benchmark's input in each, and the error bounds of its
//! sums.

use halo_gpu::reduction::Number;

use crate::cpp::job::{Array, Element};
use crate::cub::work as cub;

/// A type that is reduced, with the benchmark's input and the error bounds of its sum.
pub(super) trait Sample: Number + PartialOrd {
    const NAME: &'static str;
    /// CUB's name for the type, if CUB is asked for it.
    const CUB: Option<cub::Element>;
    /// The contents of a result before the launch.
    const POISON: Self;
    /// The same for a dot product.
    const POISONED_PRODUCT: Self::Product;
    /// A type in which sums are exact, or nearly.
    type Exact: Copy + std::iter::Sum + Send;
    /// Half a unit in the last place of 1, or 0 where sums do not round.
    const HALF_ULP: f64;
    /// Element `i` of the input.
    fn element(i: usize) -> Self;
    fn exact(self) -> Self::Exact;
    /// The distance from another value.
    fn off(self, other: Self) -> f64;
    /// The distance from the sum.
    fn off_sum(self, sum: Self::Exact) -> f64;
    /// The sum, rounded to this type.
    fn rounded(sum: Self::Exact) -> f64;
    /// The bound of the error of this sum. Where sums round, it is `relative` times the sum of the
    /// magnitudes.
    fn bound(relative: f64, sum: Self::Exact) -> f64;
    /// The nearest f64.
    fn nearest(self) -> f64;
    /// The square of an integer, modulo 2⁶⁴.
    fn wrapped_square(self) -> u64;
    /// The distance of a dot product from the expected one: the sum of the squares, for integers
    /// modulo 2⁶⁴.
    fn off_dot(product: Self::Product, squares: f64, wrapped: u64) -> f64;
    /// The value at the start of a result's bytes.
    fn from_bytes(bytes: &[u8; 16]) -> Self;
    /// These elements for C++, if it has functions for the type.
    fn in_cpp(_: Vec<Self>) -> Option<Array> {
        None
    }
    /// The first element of such an array.
    fn from_cpp(_: &Array) -> Option<Self> {
        None
    }
}

/// The value at the start of these bytes.
macro_rules! from_bytes {
    () => {
        fn from_bytes(bytes: &[u8; 16]) -> Self {
            let mut own = [0; size_of::<Self>()];
            own.copy_from_slice(&bytes[..size_of::<Self>()]);
            Self::from_ne_bytes(own)
        }
    };
}

/// 32 bits without a visible pattern. Timings must not depend on values, but memory full of equal
/// values can be faster than real data. Few elements are 0, and not the first.
fn scrambled(i: usize) -> u32 {
    let x = (i as u32).wrapping_add(1).wrapping_mul(0x9e37_79b9);
    (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b)
}

/// The types that C++ has functions for.
macro_rules! in_cpp {
    () => {
        fn in_cpp(values: Vec<Self>) -> Option<Array> {
            Some(Self::array(values))
        }

        fn from_cpp(array: &Array) -> Option<Self> {
            Self::slice(array).first().copied()
        }
    };
}

macro_rules! integer {
    ($($type:ident: $cub:expr, |$i:ident| $element:expr;)*) => {$(
        impl Sample for $type {
            const NAME: &'static str = stringify!($type);
            const CUB: Option<cub::Element> = $cub;
            const POISON: Self = 0x5a5a_5a5a;
            const POISONED_PRODUCT: Self::Product = 0x5a5a_5a5a;
            type Exact = i128;
            const HALF_ULP: f64 = 0.0;

            fn element($i: usize) -> Self {
                $element as Self
            }

            fn exact(self) -> i128 {
                self.into()
            }

            fn off(self, other: Self) -> f64 {
                (self.exact() - other.exact()) as f64
            }

            fn nearest(self) -> f64 {
                self as f64
            }

            fn wrapped_square(self) -> u64 {
                // The square has no sign, and wrapping drops the upper half.
                (self as u64).wrapping_mul(self as u64)
            }

            fn off_dot(product: Self::Product, _: f64, wrapped: u64) -> f64 {
                (product as u64).wrapping_sub(wrapped) as f64
            }

            fn off_sum(self, sum: i128) -> f64 {
                // Sums wrap around; the exact ones are reduced modulo 2³² or 2⁶⁴ too.
                self.off(sum as Self)
            }

            fn rounded(sum: i128) -> f64 {
                sum as Self as f64
            }

            fn bound(_: f64, _: i128) -> f64 {
                0.0
            }

            from_bytes!();
        }
    )*};
}

/// 64 bits without a visible pattern.
fn scrambled_64(i: usize) -> u64 {
    u64::from(scrambled(i)) << 32 | u64::from(scrambled(!i))
}

integer! {
    i32: Some(cub::Element::I32), |i| scrambled(i);
    u32: None, |i| scrambled(i);
    i64: None, |i| scrambled_64(i);
    u64: None, |i| scrambled_64(i);
}

impl Sample for f32 {
    const NAME: &'static str = "f32";
    const CUB: Option<cub::Element> = Some(cub::Element::F32);
    const POISON: Self = Self::NAN;
    const POISONED_PRODUCT: f64 = f64::NAN;
    type Exact = f64;
    const HALF_ULP: f64 = Self::EPSILON as f64 / 2.0;

    fn element(i: usize) -> Self {
        // All 24-bit fractions in [0, 1).
        (scrambled(i) >> 8) as Self / 16_777_216.0
    }

    fn exact(self) -> f64 {
        self.into()
    }

    fn off(self, other: Self) -> f64 {
        (self - other).into()
    }

    fn nearest(self) -> f64 {
        self.into()
    }

    fn wrapped_square(self) -> u64 {
        0
    }

    fn off_dot(product: f64, squares: f64, _: u64) -> f64 {
        product - squares
    }

    fn off_sum(self, sum: Self::Exact) -> f64 {
        f64::from(self) - Self::rounded(sum)
    }

    fn rounded(sum: f64) -> f64 {
        sum
    }

    fn bound(relative: f64, sum: f64) -> f64 {
        // No element is negative, so the sum is that of the magnitudes too.
        relative * sum
    }

    from_bytes!();
    in_cpp!();
}

/// A sum, and the rounding error of its additions.
#[derive(Clone, Copy, Default)]
pub(super) struct Compensated {
    sum: f64,
    lost: f64,
}

impl std::iter::Sum for Compensated {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |total, next| {
            // The exact rounding error of an addition (Knuth's TwoSum).
            let sum = total.sum + next.sum;
            let second = sum - total.sum;
            let lost = (total.sum - (sum - second)) + (next.sum - second);
            Self {
                sum,
                lost: total.lost + next.lost + lost,
            }
        })
    }
}

impl Sample for f64 {
    const NAME: &'static str = "f64";
    const CUB: Option<cub::Element> = Some(cub::Element::F64);
    const POISON: Self = Self::NAN;
    const POISONED_PRODUCT: f64 = f64::NAN;
    type Exact = Compensated;
    const HALF_ULP: f64 = Self::EPSILON / 2.0;

    fn element(i: usize) -> Self {
        // All 32-bit fractions in [0, 1), with the index in the bits below.
        (Self::from(scrambled(i)) + (i & 0xf_ffff) as Self / 1_048_576.0) / 4_294_967_296.0
    }

    fn exact(self) -> Compensated {
        Compensated {
            sum: self,
            lost: 0.0,
        }
    }

    fn off(self, other: Self) -> f64 {
        self - other
    }

    fn nearest(self) -> f64 {
        self
    }

    fn wrapped_square(self) -> u64 {
        0
    }

    fn off_dot(product: f64, squares: f64, _: u64) -> f64 {
        product - squares
    }

    fn off_sum(self, sum: Self::Exact) -> f64 {
        self - Self::rounded(sum)
    }

    fn rounded(sum: Compensated) -> f64 {
        sum.sum + sum.lost
    }

    fn bound(relative: f64, sum: Compensated) -> f64 {
        // No element is negative, so the sum is that of the magnitudes too.
        relative * sum.sum
    }

    from_bytes!();
    in_cpp!();
}
