//! Converts elements to the type of a total.

use crate::simd::InVectors;
use pulp::Simd;
#[cfg(target_arch = "x86_64")]
use {
    pulp::x86::{V3, V4},
    std::any::Any,
    std::arch::x86_64::{__m256, __m256d},
};

/// The number of vectors that [`Widen::columns`] makes.
pub(super) const COLUMNS: usize = 8;

/// An element that is added to totals of type `V`.
pub(super) trait Widen<V: InVectors>: Copy + Sync {
    /// The nearest number.
    fn widened(self) -> V;

    /// The nearest numbers of as many elements as a vector has lanes.
    #[inline(always)]
    fn vector<S: Simd>(simd: S, elements: &[Self]) -> V::Vector<S> {
        one_by_one::<V, Self, S>(simd, elements)
    }

    /// The nearest numbers of as many elements as [`COLUMNS`] vectors have lanes, if there is a fast
    /// way. Vector 2c + h has number c of each four elements: of the first, third, … four if h = 0,
    /// and of the second, fourth, … if h = 1.
    #[inline(always)]
    fn columns<S: Simd>(_simd: S, _elements: &[Self]) -> Option<[V::Vector<S>; COLUMNS]> {
        None
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

    /// Exchanges elements before it converts them, when a vector has twice as many.
    #[inline(always)]
    fn columns<S: Simd>(
        _simd: S,
        _elements: &[Self],
    ) -> Option<[<f64 as InVectors>::Vector<S>; COLUMNS]> {
        #[cfg(target_arch = "x86_64")]
        {
            let any: &dyn Any = &_simd;
            if let (Some(simd256), Ok(elements)) =
                (any.downcast_ref::<V3>(), <&[Self; 32]>::try_from(_elements))
            {
                let avx = simd256.avx;
                let [a, b, c, d]: [__m256; 4] = bytemuck::cast(*elements);
                // The first two of each four, and the last two.
                let low = [avx._mm256_unpacklo_ps(a, b), avx._mm256_unpacklo_ps(c, d)];
                let high = [avx._mm256_unpackhi_ps(a, b), avx._mm256_unpackhi_ps(c, d)];
                let [low, high]: [[__m256d; 2]; 2] = bytemuck::cast([low, high]);
                let exchanged = [
                    avx._mm256_unpacklo_pd(low[0], low[1]),
                    avx._mm256_unpackhi_pd(low[0], low[1]),
                    avx._mm256_unpacklo_pd(high[0], high[1]),
                    avx._mm256_unpackhi_pd(high[0], high[1]),
                ];
                let mut columns = [0.0.splat(_simd); COLUMNS];
                for (column, halves) in exchanged.into_iter().zip(columns.chunks_exact_mut(2)) {
                    let column = avx._mm256_castpd_ps(column);
                    let first = avx._mm256_cvtps_pd(avx._mm256_castps256_ps128(column));
                    let second = avx._mm256_cvtps_pd(avx._mm256_extractf128_ps::<1>(column));
                    halves[0] = f64::load(_simd, bytemuck::cast(first));
                    halves[1] = f64::load(_simd, bytemuck::cast(second));
                }
                return Some(columns);
            }
        }
        None
    }
}
