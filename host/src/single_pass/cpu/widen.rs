//! Converts elements to the type of a total.

use crate::simd::InVectors;
use pulp::Simd;
#[cfg(target_arch = "x86_64")]
use {
    pulp::x86::{V3, V4},
    std::any::Any,
};

/// An element that is added to totals of type `V`.
pub(super) trait Widen<V: InVectors>: Copy + Sync {
    /// The nearest number.
    fn widened(self) -> V;

    /// The nearest numbers of as many elements as a vector has lanes.
    #[inline(always)]
    fn vector<S: Simd>(simd: S, elements: &[Self]) -> V::Vector<S> {
        one_by_one::<V, Self, S>(simd, elements)
    }
}

/// A vector of elements that are converted one by one.
#[inline(always)]
fn one_by_one<V: InVectors, T: Widen<V>, S: Simd>(simd: S, elements: &[T]) -> V::Vector<S> {
    let mut vector: V::Lanes<S> = bytemuck::Zeroable::zeroed();
    let numbers: &mut [V] = bytemuck::cast_slice_mut(std::slice::from_mut(&mut vector));
    for (number, element) in numbers.iter_mut().zip(elements) {
        *number = element.widened();
    }
    V::load(simd, vector)
}

impl<V: InVectors> Widen<V> for V {
    #[inline(always)]
    fn widened(self) -> V {
        self
    }

    #[inline(always)]
    fn vector<S: Simd>(simd: S, elements: &[V]) -> V::Vector<S> {
        V::load(simd, V::vectors::<S>(elements)[0])
    }
}

macro_rules! integers {
    ($($integer:ident)*) => {$(
        impl Widen<f64> for $integer {
            #[inline(always)]
            fn widened(self) -> f64 {
                self as f64
            }
        }
    )*};
}

integers! { i32 u32 i64 u64 }

impl Widen<f64> for f32 {
    #[inline(always)]
    fn widened(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn vector<S: Simd>(simd: S, elements: &[Self]) -> <f64 as InVectors>::Vector<S> {
        #[cfg(target_arch = "x86_64")]
        {
            let any: &dyn Any = &simd;
            if let (Some(simd512), Ok(elements)) =
                (any.downcast_ref::<V4>(), <&[Self; 8]>::try_from(elements))
            {
                let vector = simd512.avx512f._mm512_cvtps_pd(bytemuck::cast(*elements));
                return f64::load(simd, bytemuck::cast(vector));
            }
            if let (Some(simd256), Ok(elements)) =
                (any.downcast_ref::<V3>(), <&[Self; 4]>::try_from(elements))
            {
                let vector = simd256.avx._mm256_cvtps_pd(bytemuck::cast(*elements));
                return f64::load(simd, bytemuck::cast(vector));
            }
        }
        one_by_one::<f64, Self, S>(simd, elements)
    }
}
