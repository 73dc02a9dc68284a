//! The processor's widest vectors, chosen when the program runs.
//!
//! A program built for any x86-64 may use neither AVX nor fused multiply-adds, and
//! a `mul_add` is then a call of a function. The CPU ports run their loops inside
//! [`vectorised`] instead, which compiles them once per instruction set.
//!
//! A [`Formula`] says what a point becomes. It is computed for the points one by one, in
//! loops that the compiler turns into vectors, or for vectors of points where a loop has to
//! say what is stored ([`streaming`](crate::streaming)); the operations are the same.

use bytemuck::Pod;
use pulp::{Simd, WithSimd};
use std::ops::{Add, Div, Mul, Neg, RangeInclusive, Sub};
use std::sync::OnceLock;
#[cfg(target_arch = "x86_64")]
use {
    pulp::x86::{V3, V4},
    std::any::Any,
};

/// Calls `work`, compiled for the best instruction set that this processor has.
///
/// Only what is inlined into `work` profits: it and what it calls in its loops
/// must be `#[inline(always)]`. No operation changes its result: a `mul_add` is
/// rounded once on every processor, and nothing else is ever fused.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    dispatched(Work(work))
}

/// Calls `work` with the longest vectors that this processor has.
#[inline]
pub(crate) fn dispatched<W: WithSimd>(work: W) -> W::Output {
    /// Asked for once: to ask for all features takes as long as a row of a small field.
    static ARCH: OnceLock<pulp::Arch> = OnceLock::new();

    ARCH.get_or_init(pulp::Arch::new).dispatch(work)
}

/// Work that is inlined whatever its size. Where a closure that may be called again is
/// called as one that may not, the compiler puts a function in between, which is not
/// `#[inline(always)]`: a long closure stays outside of the code for the instruction set.
struct Work<F>(F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// What formulas compute with: a number, or a vector of numbers.
pub trait Value:
    Copy
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
{
    /// `self * factor + sum`, rounded once.
    #[must_use]
    fn fused(self, factor: Self, sum: Self) -> Self;
}

/// `f32` or `f64`, of which an instruction set has vectors.
pub trait InVectors: Value + Pod {
    /// A vector as it lies in memory.
    type Lanes<S: Simd>: Pod;

    /// A vector to compute with.
    type Vector<S: Simd>: Value + halo_stencil::Value<Self>;

    /// This number in all lanes.
    fn splat<S: Simd>(self, simd: S) -> Self::Vector<S>;

    /// The vector that lies in memory as this.
    fn load<S: Simd>(simd: S, lanes: Self::Lanes<S>) -> Self::Vector<S>;

    /// What a vector is in memory.
    fn lanes<S: Simd>(vector: Self::Vector<S>) -> Self::Lanes<S>;

    /// The vectors in a row, of which each follows the last.
    fn vectors<S: Simd>(row: &[Self]) -> &[Self::Lanes<S>];

    /// The vectors in a row, of which each follows the last.
    fn vectors_mut<S: Simd>(row: &mut [Self]) -> &mut [Self::Lanes<S>];

    /// The numbers for which [`inverse_root`](Self::inverse_root) can estimate, if there is
    /// an instruction for it.
    fn estimable<S: Simd>(simd: S) -> Option<RangeInclusive<f64>>;

    /// The sum of each of some vectors, as many as a vector has lanes, if there are
    /// instructions for it: neighbours are added, then neighbouring sums, until one is left.
    fn sums<S: Simd>(simd: S, vectors: &[Self::Lanes<S>]) -> Option<Self::Lanes<S>>;

    /// 1 / √ of each number. By a root and a quotient it is off by at most 1.5 unit roundoffs;
    /// `ESTIMATED` and refined, for numbers that are [`estimable`](Self::estimable), by at most
    /// 2.1, and exact for powers of 4.
    #[must_use]
    fn inverse_root<S: Simd, const ESTIMATED: bool>(vector: Self::Vector<S>) -> Self::Vector<S>;
}

/// Numbers that are normal, as their reciprocals are, in f32.
#[cfg(target_arch = "x86_64")]
const NORMAL_F32: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=1.0 / f32::MIN_POSITIVE as f64;

/// Numbers that are normal, as their reciprocals are, in f64.
#[cfg(target_arch = "x86_64")]
const NORMAL_F64: RangeInclusive<f64> = f64::MIN_POSITIVE..=1.0 / f64::MIN_POSITIVE;

/// 1 / √`of` from an estimate y: with e = `of` y² - 1 it is
///
/// ```text
/// y (1 + e)^(-1/2) = y + y e (-1/2 + 3/8 e - 5/16 e² + 35/128 e³ - …)
/// ```
///
/// `series` has its terms, the last one first. The first that is left out has to be below the
/// roundoff. Two more roundings are that of y², which is multiplied by a half, and the last.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn refined<V: Value, const TERMS: usize>(
    estimate: V,
    of: V,
    minus_one: V,
    series: [V; TERMS],
) -> V {
    let e = (estimate * estimate).fused(of, minus_one);
    let mut sum = series[0];
    for term in &series[1..] {
        sum = sum.fused(e, *term);
    }
    (estimate * e).fused(sum, estimate)
}

/// What a point becomes, from what it was and the elements of some rows that lie where the
/// point does.
pub(crate) trait Formula<T> {
    /// `splat` makes a value of a number; `row(r)` is what row `r` has.
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V;
}

/// Makes all points of `out` what `formula` gives for them and `rows`.
///
/// To be called inside [`vectorised`].
///
/// # Panics
///
/// If a row is shorter than `out`.
#[inline(always)]
pub(crate) fn fill<T: Value, const N: usize>(
    out: &mut [T],
    mut rows: [&[T]; N],
    formula: &impl Formula<T>,
) {
    // Of one length for all to see: no bound is checked in the loop. And no `map`, which
    // is not always inlined.
    let n = out.len();
    for row in &mut rows {
        *row = &row[..n];
    }
    for i in 0..n {
        out[i] = formula.at(
            #[inline(always)]
            |number| number,
            out[i],
            #[inline(always)]
            |row| rows[row][i],
        );
    }
}

/// As [`fill`], with the vectors of `simd`, where the formula makes nothing of what is there.
/// The last vector begins before the end of the one before it where the row is no whole
/// vectors.
///
/// # Panics
///
/// If a row is shorter than `out`.
#[inline(always)]
pub(crate) fn fill_vectors<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    out: &mut [T],
    mut rows: [&[T]; N],
    formula: &impl Formula<T>,
) {
    let lanes = size_of::<T::Lanes<S>>() / size_of::<T>();
    let n = out.len();
    if n < lanes {
        return fill(out, rows, formula);
    }
    // Of one length for all to see: no bound is checked in the loop.
    for row in &mut rows {
        *row = &row[..n];
    }
    let whole = T::vectors_mut::<S>(out);
    let count = whole.len();
    let mut vectors = [&[][..]; N];
    for (vectors, row) in vectors.iter_mut().zip(rows) {
        *vectors = &T::vectors::<S>(row)[..count];
    }
    for (i, out) in whole.iter_mut().enumerate() {
        *out = vector_at(simd, formula, *out, vectors, i);
    }
    if n > count * lanes {
        let last = n - lanes;
        for (vectors, row) in vectors.iter_mut().zip(rows) {
            *vectors = &T::vectors::<S>(&row[last..])[..1];
        }
        if let [out, ..] = T::vectors_mut::<S>(&mut out[last..]) {
            *out = vector_at(simd, formula, *out, vectors, 0);
        }
    }
}

/// What `formula` gives for the vectors in place `i` of rows.
#[inline(always)]
pub(crate) fn vector_at<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    formula: &impl Formula<T>,
    so_far: T::Lanes<S>,
    rows: [&[T::Lanes<S>]; N],
    i: usize,
) -> T::Lanes<S> {
    T::lanes(formula.at(
        #[inline(always)]
        |number: T| number.splat(simd),
        T::load(simd, so_far),
        #[inline(always)]
        |row| T::load(simd, rows[row][i]),
    ))
}

/// Operators of a vector with a number that is the same for all lanes.
macro_rules! with_numbers {
    ($vector:ident, $number:ty, $splat:ident: $($trait:ident $method:ident $operation:ident),+) => {$(
        impl<S: Simd> $trait<$number> for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: $number) -> Self {
                Self(self.0, self.0.$operation(self.1, self.0.$splat(other)))
            }
        }
    )+};
}

/// The implementations for a type, whose vectors and their operations these are.
macro_rules! number {
    ($number:ty, $vector:ident, $lanes:ident, $vectors:ident, $vectors_mut:ident,
     $splat:ident, $add:ident, $sub:ident, $mul:ident, $neg:ident, $mul_add:ident,
     $div:ident, $sqrt:ident, $less:ident, $select:ident, $estimable:ident, $estimated:ident,
     $sums:ident) => {
        impl Value for $number {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }
        }

        impl InVectors for $number {
            type Lanes<S: Simd> = S::$lanes;
            type Vector<S: Simd> = $vector<S>;

            #[inline(always)]
            fn splat<S: Simd>(self, simd: S) -> $vector<S> {
                $vector(simd, simd.$splat(self))
            }

            #[inline(always)]
            fn load<S: Simd>(simd: S, lanes: S::$lanes) -> $vector<S> {
                $vector(simd, lanes)
            }

            #[inline(always)]
            fn lanes<S: Simd>(vector: $vector<S>) -> S::$lanes {
                vector.1
            }

            #[inline(always)]
            fn vectors<S: Simd>(row: &[Self]) -> &[S::$lanes] {
                S::$vectors(row).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(row: &mut [Self]) -> &mut [S::$lanes] {
                S::$vectors_mut(row).0
            }

            #[inline(always)]
            fn estimable<S: Simd>(simd: S) -> Option<RangeInclusive<f64>> {
                $estimable(simd)
            }

            #[inline(always)]
            fn sums<S: Simd>(simd: S, vectors: &[S::$lanes]) -> Option<S::$lanes> {
                $sums(simd, vectors)
            }

            #[inline(always)]
            fn inverse_root<S: Simd, const ESTIMATED: bool>(vector: $vector<S>) -> $vector<S> {
                if ESTIMATED && let Some(root) = $estimated(vector) {
                    return root;
                }
                let $vector(simd, square) = vector;
                $vector(simd, simd.$div(simd.$splat(1.0), simd.$sqrt(square)))
            }
        }

        /// A vector of the instruction set.
        #[derive(Clone, Copy)]
        pub struct $vector<S: Simd>(S, S::$lanes);

        impl<S: Simd> Value for $vector<S> {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                Self(self.0, self.0.$mul_add(self.1, factor.1, sum.1))
            }
        }

        impl<S: Simd> Add for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(self.0, self.0.$add(self.1, other.1))
            }
        }

        impl<S: Simd> Sub for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(self.0, self.0.$sub(self.1, other.1))
            }
        }

        impl<S: Simd> Mul for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self(self.0, self.0.$mul(self.1, other.1))
            }
        }

        impl<S: Simd> Neg for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn neg(self) -> Self {
                Self(self.0, self.0.$neg(self.1))
            }
        }

        impl<S: Simd> Div for $vector<S> {
            type Output = Self;

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                Self(self.0, self.0.$div(self.1, other.1))
            }
        }

        with_numbers!($vector, $number, $splat: Add add $add, Sub sub $sub, Mul mul $mul, Div div $div);

        impl<S: Simd> halo_stencil::Value<$number> for $vector<S> {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                Value::fused(self, factor, sum)
            }

            #[inline(always)]
            fn root(self) -> Self {
                Self(self.0, self.0.$sqrt(self.1))
            }

            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                let is = self.0.$less(self.1, other.1);
                Self(self.0, self.0.$select(is, self.1, other.1))
            }

            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                let is = self.0.$less(other.1, self.1);
                Self(self.0, self.0.$select(is, self.1, other.1))
            }
        }
    };
}

number!(
    f32,
    VectorF32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    neg_f32s,
    mul_add_f32s,
    div_f32s,
    sqrt_f32s,
    less_than_f32s,
    select_f32s,
    estimable_f32,
    estimated_f32,
    sums_f32
);
number!(
    f64,
    VectorF64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    neg_f64s,
    mul_add_f64s,
    div_f64s,
    sqrt_f64s,
    less_than_f64s,
    select_f64s,
    estimable_f64,
    estimated_f64,
    sums_f64
);

#[inline(always)]
fn estimable_f32<S: Simd>(_simd: S) -> Option<RangeInclusive<f64>> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if simd.is::<V4>() || simd.is::<V3>() {
            return Some(NORMAL_F32);
        }
    }
    None
}

#[inline(always)]
fn estimable_f64<S: Simd>(_simd: S) -> Option<RangeInclusive<f64>> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if simd.is::<V4>() {
            return Some(NORMAL_F64);
        }
        // By way of f32, of which there is an instruction.
        if simd.is::<V3>() {
            return Some(NORMAL_F32);
        }
    }
    None
}

#[inline(always)]
fn estimated_f32<S: Simd>(_of: VectorF32<S>) -> Option<VectorF32<S>> {
    #[cfg(target_arch = "x86_64")]
    {
        let VectorF32(simd, square) = _of;
        let splat = |number: f32| number.splat(simd);
        let any: &dyn Any = &simd;
        // |e| is below 2⁻¹³, what is left out below 2⁻²⁷.
        if let Some(simd512) = any.downcast_ref::<V4>() {
            let y = simd512.avx512f._mm512_rsqrt14_ps(bytemuck::cast(square));
            let y = VectorF32(simd, bytemuck::cast(y));
            return Some(refined(y, _of, splat(-1.0), [splat(-0.5)]));
        }
        // |e| is below 2⁻¹⁰, what is left out below 2⁻³¹.
        if let Some(simd256) = any.downcast_ref::<V3>() {
            let y = simd256.avx._mm256_rsqrt_ps(bytemuck::cast(square));
            let y = VectorF32(simd, bytemuck::cast(y));
            let series = [splat(0.375), splat(-0.5)];
            return Some(refined(y, _of, splat(-1.0), series));
        }
    }
    None
}

#[inline(always)]
fn estimated_f64<S: Simd>(_of: VectorF64<S>) -> Option<VectorF64<S>> {
    #[cfg(target_arch = "x86_64")]
    {
        let VectorF64(simd, square) = _of;
        let splat = |number: f64| number.splat(simd);
        let any: &dyn Any = &simd;
        let (third, second, first) = (splat(-0.3125), splat(0.375), splat(-0.5));
        // |e| is below 2⁻¹³, what is left out below 2⁻⁵³·⁸.
        if let Some(simd512) = any.downcast_ref::<V4>() {
            let y = simd512.avx512f._mm512_rsqrt14_pd(bytemuck::cast(square));
            let y = VectorF64(simd, bytemuck::cast(y));
            return Some(refined(y, _of, splat(-1.0), [third, second, first]));
        }
        // |e| is below 2⁻¹⁰, what is left out below 2⁻⁶².
        if let Some(simd256) = any.downcast_ref::<V3>() {
            let narrow = simd256.avx._mm256_cvtpd_ps(bytemuck::cast(square));
            let y = simd256
                .avx
                ._mm256_cvtps_pd(simd256.sse._mm_rsqrt_ps(narrow));
            let y = VectorF64(simd, bytemuck::cast(y));
            let series = [
                splat(-63.0 / 256.0),
                splat(35.0 / 128.0),
                third,
                second,
                first,
            ];
            return Some(refined(y, _of, splat(-1.0), series));
        }
    }
    None
}

/// The sums of neighbours in two vectors, where `$swapped` has the pairs of its argument
/// exchanged: of numbers, of pairs of them, and so on. Those of the two vectors alternate.
///
/// A vector that has one of each pair of either, and one that has the others: two blends,
/// which cost next to nothing, and only one exchange.
#[cfg(target_arch = "x86_64")]
macro_rules! alternating {
    ($avx:expr, $a:expr, $b:expr, $blend:ident::<$odd:literal, $even:literal>, $add:ident, $swapped:expr) => {{
        let (a, b) = ($a, $b);
        $avx.$add(
            $avx.$blend::<$odd>(a, b),
            $swapped($avx.$blend::<$even>(a, b)),
        )
    }};
    ($avx:expr, $a:expr, $b:expr, $blend:ident($odd:literal, $even:literal), $add:ident, $swapped:expr) => {{
        let (a, b) = ($a, $b);
        $avx.$add($avx.$blend($odd, a, b), $swapped($avx.$blend($even, a, b)))
    }};
}

#[inline(always)]
fn sums_f32<S: Simd>(_simd: S, _vectors: &[S::f32s]) -> Option<S::f32s> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if let (Some(simd), [a, b, c, d, e, f, g, h]) = (simd.downcast_ref::<V3>(), _vectors) {
            let avx = simd.avx;
            let pair = |a: &S::f32s, b: &S::f32s| {
                alternating!(
                    avx,
                    bytemuck::cast(*a),
                    bytemuck::cast(*b),
                    _mm256_blend_ps::<0xaa, 0x55>,
                    _mm256_add_ps,
                    |other| avx._mm256_permute_ps::<0b10_11_00_01>(other)
                )
            };
            let four = |ab, cd| {
                alternating!(
                    avx,
                    ab,
                    cd,
                    _mm256_blend_ps::<0xcc, 0x33>,
                    _mm256_add_ps,
                    |other| avx._mm256_permute_ps::<0b01_00_11_10>(other)
                )
            };
            let sums = alternating!(
                avx,
                four(pair(a, b), pair(c, d)),
                four(pair(e, f), pair(g, h)),
                _mm256_blend_ps::<0xf0, 0x0f>,
                _mm256_add_ps,
                |other| avx._mm256_permute2f128_ps::<0x01>(other, other)
            );
            return Some(bytemuck::cast(sums));
        }
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V4>(),
            <&[S::f32s; 16]>::try_from(_vectors),
        ) {
            let avx = simd.avx512f;
            let pair = |i: usize| {
                alternating!(
                    avx,
                    bytemuck::cast(all[i]),
                    bytemuck::cast(all[i + 1]),
                    _mm512_mask_blend_ps(0xaaaa, 0x5555),
                    _mm512_add_ps,
                    |other| avx._mm512_permute_ps::<0b10_11_00_01>(other)
                )
            };
            let four = |i: usize| {
                alternating!(
                    avx,
                    pair(i),
                    pair(i + 2),
                    _mm512_mask_blend_ps(0xcccc, 0x3333),
                    _mm512_add_ps,
                    |other| avx._mm512_permute_ps::<0b01_00_11_10>(other)
                )
            };
            let eight = |i: usize| {
                alternating!(
                    avx,
                    four(i),
                    four(i + 4),
                    _mm512_mask_blend_ps(0xf0f0, 0x0f0f),
                    _mm512_add_ps,
                    |other| avx._mm512_shuffle_f32x4::<0b10_11_00_01>(other, other)
                )
            };
            let sums = alternating!(
                avx,
                eight(0),
                eight(8),
                _mm512_mask_blend_ps(0xff00, 0x00ff),
                _mm512_add_ps,
                |other| avx._mm512_shuffle_f32x4::<0b01_00_11_10>(other, other)
            );
            return Some(bytemuck::cast(sums));
        }
    }
    None
}

#[inline(always)]
fn sums_f64<S: Simd>(_simd: S, _vectors: &[S::f64s]) -> Option<S::f64s> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if let (Some(simd), [a, b, c, d]) = (simd.downcast_ref::<V3>(), _vectors) {
            let avx = simd.avx;
            let pair = |a: &S::f64s, b: &S::f64s| {
                alternating!(
                    avx,
                    bytemuck::cast(*a),
                    bytemuck::cast(*b),
                    _mm256_blend_pd::<0b1010, 0b0101>,
                    _mm256_add_pd,
                    |other| avx._mm256_permute_pd::<0b0101>(other)
                )
            };
            let sums = alternating!(
                avx,
                pair(a, b),
                pair(c, d),
                _mm256_blend_pd::<0b1100, 0b0011>,
                _mm256_add_pd,
                |other| avx._mm256_permute2f128_pd::<0x01>(other, other)
            );
            return Some(bytemuck::cast(sums));
        }
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V4>(),
            <&[S::f64s; 8]>::try_from(_vectors),
        ) {
            let avx = simd.avx512f;
            let pair = |i: usize| {
                alternating!(
                    avx,
                    bytemuck::cast(all[i]),
                    bytemuck::cast(all[i + 1]),
                    _mm512_mask_blend_pd(0xaa, 0x55),
                    _mm512_add_pd,
                    |other| avx._mm512_permute_pd::<0b0101_0101>(other)
                )
            };
            let four = |i: usize| {
                alternating!(
                    avx,
                    pair(i),
                    pair(i + 2),
                    _mm512_mask_blend_pd(0xcc, 0x33),
                    _mm512_add_pd,
                    |other| avx._mm512_shuffle_f64x2::<0b10_11_00_01>(other, other)
                )
            };
            let sums = alternating!(
                avx,
                four(0),
                four(4),
                _mm512_mask_blend_pd(0xf0, 0x0f),
                _mm512_add_pd,
                |other| avx._mm512_shuffle_f64x2::<0b01_00_11_10>(other, other)
            );
            return Some(bytemuck::cast(sums));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `work` gives with the vectors of each instruction set that this processor has.
    fn by_each<W: WithSimd>(work: impl Fn() -> W) -> Vec<W::Output> {
        let mut results = vec![pulp::Scalar.vectorize(work())];
        #[cfg(target_arch = "x86_64")]
        {
            results.extend(V3::try_new().map(|simd| Simd::vectorize(simd, work())));
            results.extend(V4::try_new().map(|simd| Simd::vectorize(simd, work())));
        }
        results
    }

    /// The inverse roots of `numbers` by estimates, if the processor has them, by vectors of
    /// either length.
    struct Roots<'a, T>(&'a [T]);

    impl<T: InVectors> WithSimd for Roots<'_, T> {
        type Output = Option<(RangeInclusive<f64>, Vec<T>)>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let mut roots = self.0.to_vec();
            for root in T::vectors_mut::<S>(&mut roots) {
                *root = T::lanes(T::inverse_root::<S, true>(T::load(simd, *root)));
            }
            T::estimable(simd).map(|range| (range, roots))
        }
    }

    /// The sums of vectors in `numbers`.
    struct Sums<'a, T>(&'a [T]);

    impl<T: InVectors> WithSimd for Sums<'_, T> {
        type Output = Option<Vec<T>>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let lanes = size_of::<T::Lanes<S>>() / size_of::<T>();
            let sums = T::sums(simd, &T::vectors::<S>(self.0)[..lanes])?;
            Some(bytemuck::cast_slice(&[sums]).to_vec())
        }
    }

    #[test]
    fn vectors_are_summed_by_neighbours() {
        fn check<T: InVectors + PartialEq + std::fmt::Debug>(of: fn(f64) -> T) {
            fn tree<T: InVectors>(numbers: &[T]) -> T {
                if let [number] = numbers {
                    return *number;
                }
                let (first, second) = numbers.split_at(numbers.len() / 2);
                tree(first) + tree(second)
            }
            let numbers: Vec<T> = (0..256).map(|i| of(1.7_f64.powi(i * 7 % 61))).collect();
            for sums in by_each(|| Sums(&numbers)).into_iter().flatten() {
                let expected: Vec<T> = numbers.chunks(sums.len()).map(tree).collect();
                assert_eq!(sums, expected[..sums.len()]);
            }
        }
        check(|x| x as f32);
        check(|x| x);
    }

    /// Numbers over all of `exponents`, with mantissas all over.
    fn numbers(exponents: std::ops::Range<i32>) -> Vec<f64> {
        let mantissas = (0..64).map(|i| 1.0 + (f64::from(i) * 0.618_033_988_749_895).fract());
        let mantissas: Vec<_> = [1.0, 2.0_f64.next_down(), 1.0_f64.next_up()]
            .into_iter()
            .chain(mantissas)
            .chain([1.5; 5])
            .collect();
        exponents
            .flat_map(|exponent| mantissas.iter().map(move |m| m * 2.0_f64.powi(exponent)))
            .collect()
    }

    #[test]
    fn estimated_roots_are_as_accurate_as_said() {
        fn check<T: InVectors + Into<f64>>(of: fn(f64) -> T, exponents: i32, roundoff: f64) {
            let all: Vec<T> = numbers(-exponents..exponents).into_iter().map(of).collect();
            for (range, roots) in by_each(|| Roots(&all)).into_iter().flatten() {
                for (&number, root) in all.iter().zip(roots) {
                    let (number, root): (f64, f64) = (number.into(), root.into());
                    if !range.contains(&number) {
                        continue;
                    }
                    // 1 - number root² is twice the error; root² in two parts.
                    let square = root * root;
                    let rest = root.mul_add(root, -square);
                    let error = 0.5 * number.mul_add(rest, number.mul_add(square, -1.0));
                    assert!(error.abs() <= 2.1 * roundoff, "{number:e}: {error:e}");
                    if number.log2() % 2.0 == 0.0 && number.log2().exp2() == number {
                        assert_eq!(root * root * number, 1.0, "{number:e}");
                    }
                }
            }
        }
        check(|x| x as f32, 126, f64::from(f32::EPSILON) / 2.0);
        check(|x| x, 1022, f64::EPSILON / 2.0);
    }
}
