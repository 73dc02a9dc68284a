//! Compiles loops for the processor's widest vectors, chosen at run time.
//!
//! A program built for any x86-64 may use neither AVX nor fused multiply-adds, and then a `mul_add`
//! is a function call. The CPU ports therefore run their loops inside [`vectorised`], which
//! compiles them once per instruction set.
//!
//! A [`Formula`] is the value of a point. It is computed one point at a time, in loops that the
//! compiler vectorises, or, if a loop must choose its stores ([`streaming`](crate::streaming)), a
//! vector of points at a time. The operations are the same.

use crate::pages::{elements_per_prefetch, prefetch_next_page};
use bytemuck::Pod;
use pulp::{Arch, Simd, WithSimd};
use std::hint::black_box;
use std::ops::{Add, Div, Mul, Neg, Range, RangeInclusive, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
#[cfg(target_arch = "x86_64")]
use {
    pulp::x86::{V3, V4},
    std::any::Any,
};

/// Calls `work`, compiled for the best instruction set of this processor.
///
/// Only code that is inlined into `work` benefits: `work` and all functions in its loops must be
/// `#[inline(always)]`. Results do not depend on the instruction set: a `mul_add` is rounded once
/// on every processor, and the compiler fuses nothing else.
#[inline]
pub(crate) fn vectorised<R>(work: impl FnMut() -> R) -> R {
    dispatched(Work(work))
}

/// The longest vectors of this processor.
#[inline]
fn best() -> Arch {
    /// Detected once: detecting all features takes as long as a row of a small field.
    static ARCH: OnceLock<Arch> = OnceLock::new();

    *ARCH.get_or_init(Arch::new)
}

/// Calls `work` with the longest vectors of this processor.
#[inline]
pub(crate) fn dispatched<W: WithSimd>(work: W) -> W::Output {
    let arch = best();
    // Most of the library's compile time goes into the versions for vectors.
    #[cfg(halo_vectors = "v4")]
    return match arch {
        Arch::V4(simd) => Simd::vectorize(simd, work),
        _ => without_vectors(work),
    };
    #[cfg(halo_vectors = "v3")]
    return match arch {
        Arch::V4(simd) => Simd::vectorize(*simd, work),
        Arch::V3(simd) => Simd::vectorize(simd, work),
        _ => without_vectors(work),
    };
    #[cfg(not(any(halo_vectors = "v3", halo_vectors = "v4")))]
    arch.dispatch(work)
}

/// Like [`dispatched`], for loops whose time goes into conversions of numbers to a longer type. They
/// use vectors of 32 bytes if with those the processor converts more.
#[inline]
pub(crate) fn dispatched_for_conversions<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Arch::V4(simd) = best()
        && is_zen4()
    {
        return Simd::vectorize(*simd, work);
    }
    dispatched(work)
}

/// Whether this is a Zen 4. It converts 8 numbers in a cycle in two vectors of 32 bytes, and 6 in
/// vectors of 64.
#[cfg(target_arch = "x86_64")]
fn is_zen4() -> bool {
    static IS_ZEN4: OnceLock<bool> = OnceLock::new();

    *IS_ZEN4.get_or_init(|| {
        let cpu = raw_cpuid::CpuId::new();
        let vendor = cpu.get_vendor_info();
        let features = cpu.get_feature_info();
        // Of this family only a Zen 4 has AVX-512.
        vendor.is_some_and(|it| it.as_str() == "AuthenticAMD")
            && features.is_some_and(|it| it.family_id() == 25)
    })
}

/// Whether a product with a subnormal result takes much longer than another, by a short measurement.
/// Processors of Intel need some 150 cycles for one, a Zen at most twice the usual time.
pub(crate) fn subnormals_are_slow() -> bool {
    static ARE_SLOW: OnceLock<bool> = OnceLock::new();

    /// The time of some products.
    fn products(of: f64) -> Duration {
        let start = Instant::now();
        for _ in 0..256 {
            black_box(black_box(of) * 0.25);
        }
        start.elapsed()
    }

    *ARE_SLOW.get_or_init(|| {
        // The least of several times: other programs may interrupt a measurement.
        let mut least = [Duration::MAX; 2];
        for _ in 0..5 {
            for (least, of) in least.iter_mut().zip([1.0, f64::MIN_POSITIVE]) {
                *least = products(of).min(*least);
            }
        }
        let [normal, subnormal] = least;
        subnormal > 4 * normal
    })
}

/// Calls `work` on a processor without the vectors that the ports are compiled for.
#[cfg(all(any(halo_vectors = "v3", halo_vectors = "v4"), not(halo_here_only)))]
fn without_vectors<W: WithSimd>(work: W) -> W::Output {
    Simd::vectorize(pulp::Scalar, work)
}

/// The program was built only for a processor with more vectors than this one has.
#[cfg(halo_here_only)]
#[cold]
fn without_vectors<W: WithSimd>(_: W) -> W::Output {
    panic!(
        "this program was built with HALO_VECTORS=here on a processor with {}, which this processor \
         does not have: build it here, or with HALO_VECTORS=all",
        if cfg!(halo_vectors = "v4") {
            "AVX-512"
        } else {
            "AVX2"
        }
    )
}

/// Vectors of 32 bytes, if those of `simd` are longer.
#[inline(always)]
pub(crate) fn with_shorter_vectors<S: Simd>(_simd: S) -> Option<impl Simd> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        simd.downcast_ref::<V4>().map(|simd| **simd)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None::<pulp::Scalar>
}

/// Work that is inlined whatever its size. If a closure `Fn` is passed as `FnOnce`, the compiler
/// adds an adapter function that is not `#[inline(always)]`: a long closure is then not compiled
/// for the instruction set.
struct Work<F>(F);

impl<R, F: FnMut() -> R> pulp::NullaryFnOnce for Work<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// A value that formulas compute with: a number, or a vector of numbers.
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

    /// `self / 4`, rounded once.
    ///
    /// The vector version avoids products with subnormal results. They may be
    /// [slow](subnormals_are_slow), and values are subnormal at the edge of anything that spreads
    /// into zeros.
    #[must_use]
    fn quarter(self) -> Self;
}

/// A type with vectors in the instruction sets: `f32` or `f64`.
pub trait InVectors: Value + Pod {
    /// A vector in memory.
    type Lanes<S: Simd>: Pod;

    /// A vector in registers.
    type Vector<S: Simd>: Value + halo_stencil::Value<Self>;

    /// This number in all lanes.
    fn splat<S: Simd>(self, simd: S) -> Self::Vector<S>;

    /// The vector with these lanes.
    fn load<S: Simd>(simd: S, lanes: Self::Lanes<S>) -> Self::Vector<S>;

    /// The lanes of a vector, for storing.
    fn lanes<S: Simd>(vector: Self::Vector<S>) -> Self::Lanes<S>;

    /// The consecutive vectors in a row.
    fn vectors<S: Simd>(row: &[Self]) -> &[Self::Lanes<S>];

    /// The consecutive vectors in a row.
    fn vectors_mut<S: Simd>(row: &mut [Self]) -> &mut [Self::Lanes<S>];

    /// The vector with its lanes moved `by` places further on, or back if `by` is negative. Lanes
    /// that leave at one end come in at the other.
    #[must_use]
    fn rotated<S: Simd>(vector: Self::Vector<S>, by: isize) -> Self::Vector<S>;

    /// The vector with this number in one of its lanes.
    #[must_use]
    fn with_lane<S: Simd>(self, vector: Self::Vector<S>, lane: usize) -> Self::Vector<S>;

    /// The binary digits of a normal number.
    const PRECISION: u32;

    /// The least exponent among the numbers other than zero: 1 is that of the least normal numbers,
    /// subnormal numbers have 0. If all are zero it is `u32::MAX`.
    fn least_exponent(numbers: &[Self]) -> u32;

    /// The range of numbers that [`inverse_root`](Self::inverse_root) can estimate, if the
    /// instruction set has an estimate.
    fn estimable<S: Simd>(simd: S) -> Option<RangeInclusive<f64>>;

    /// The sum of each of the given vectors, as many as a vector has lanes, if the instruction set
    /// supports it. It adds neighbouring lanes, then neighbouring sums, until one is left.
    fn sums<S: Simd>(simd: S, vectors: &[Self::Lanes<S>]) -> Option<Self::Lanes<S>>;

    /// 1 / √ of each number. With a root and a quotient the error is at most 1.5 unit roundoffs.
    /// With `ESTIMATED`, for [`estimable`](Self::estimable) numbers, a refined estimate has an
    /// error of at most 2.1 unit roundoffs and is exact for powers of 4.
    #[must_use]
    fn inverse_root<S: Simd, const ESTIMATED: bool>(vector: Self::Vector<S>) -> Self::Vector<S>;
}

/// The normal f32 numbers with normal reciprocals.
#[cfg(target_arch = "x86_64")]
const NORMAL_F32: RangeInclusive<f64> = f32::MIN_POSITIVE as f64..=1.0 / f32::MIN_POSITIVE as f64;

/// The normal f64 numbers with normal reciprocals.
#[cfg(target_arch = "x86_64")]
const NORMAL_F64: RangeInclusive<f64> = f64::MIN_POSITIVE..=1.0 / f64::MIN_POSITIVE;

/// 1 / √`of` from an estimate y. With e = `of` y² - 1 it is
///
/// ```text
/// y (1 + e)^(-1/2) = y + y e (-1/2 + 3/8 e - 5/16 e² + 35/128 e³ - …)
/// ```
///
/// `series` has the coefficients, the last one first. The first omitted term must be below the
/// roundoff. Two more roundings come from y², multiplied by a half, and from the final addition.
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

/// The value of a point, from its old value and the elements of several rows at the same index.
pub(crate) trait Formula<T> {
    /// `splat` turns a number into a value; `row(r)` is the element of row `r`.
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V;
}

/// Sets all points of `out` to `formula`, evaluated on `rows`.
///
/// Call it inside [`vectorised`].
///
/// # Panics
///
/// If a row is shorter than `out`.
#[inline(always)]
pub(crate) fn fill<T: Value, const N: usize>(
    out: &mut [T],
    rows: [&[T]; N],
    formula: &impl Formula<T>,
) {
    // Equal lengths let the compiler drop the bounds checks.
    let n = out.len();
    let rows = each_part(rows, 0..n);
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

/// Like [`fill`], with the vectors of `simd`, for a formula that ignores the old value. If the row
/// is not a whole number of vectors, the last vector overlaps the one before it.
///
/// # Panics
///
/// If a row is shorter than `out`.
#[inline(always)]
pub(crate) fn fill_vectors<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    out: &mut [T],
    rows: [&[T]; N],
    formula: &impl Formula<T>,
) {
    let lanes = lanes::<S, T>();
    let n = out.len();
    if n < lanes {
        return fill(out, rows, formula);
    }
    let done = fill_whole_vectors(simd, out, rows, formula);
    if n > done {
        let last = n - lanes;
        let rows = each_part(rows, last..n);
        fill_whole_vectors(simd, &mut out[last..], rows, formula);
    }
}

/// Like [`fill_vectors`], for two rows of results that have the same length and share inputs. Row r
/// of the formula is row `uses[0][r]` of `rows` for the first row of results, and row `uses[1][r]`
/// for the second.
///
/// # Panics
///
/// If a row is shorter than the rows of `out`.
#[inline(always)]
pub(crate) fn fill_two<T: InVectors, S: Simd, const N: usize, const R: usize>(
    simd: S,
    out: [&mut [T]; 2],
    rows: [&[T]; N],
    uses: [[usize; R]; 2],
    formula: &impl Formula<T>,
) {
    let lanes = lanes::<S, T>();
    let [one, two] = out;
    let n = one.len();
    if n < lanes {
        let [of_one, of_two] = each_of(rows, uses);
        fill(one, of_one, formula);
        return fill(two, of_two, formula);
    }
    let done = fill_two_whole(simd, [&mut *one, &mut *two], rows, uses, formula);
    if n > done {
        let last = n - lanes;
        let rows = each_part(rows, last..n);
        fill_two_whole(
            simd,
            [&mut one[last..], &mut two[last..]],
            rows,
            uses,
            formula,
        );
    }
}

/// The rows for the first and for the second of two rows of results.
#[inline(always)]
fn each_of<T, const N: usize, const R: usize>(
    rows: [&[T]; N],
    uses: [[usize; R]; 2],
) -> [[&[T]; R]; 2] {
    let mut each = [[&[][..]; R]; 2];
    for (rows_of, uses) in each.iter_mut().zip(uses) {
        for (row, place) in rows_of.iter_mut().zip(uses) {
            *row = rows[place];
        }
    }
    each
}

/// Like [`fill_whole_vectors`], for [`fill_two`].
#[inline(always)]
fn fill_two_whole<T: InVectors, S: Simd, const N: usize, const R: usize>(
    simd: S,
    [one, two]: [&mut [T]; 2],
    rows: [&[T]; N],
    uses: [[usize; R]; 2],
    formula: &impl Formula<T>,
) -> usize {
    let one = T::vectors_mut::<S>(one);
    let count = one.len();
    let two = &mut T::vectors_mut::<S>(two)[..count];
    let vectors = first_vectors::<T, S, N>(rows, count);
    let of = each_of(vectors, uses);
    for i in 0..count {
        // Both are computed before the first is stored, so the compiler loads shared inputs once.
        let first = vector_at(simd, formula, one[i], of[0], i);
        let second = vector_at(simd, formula, two[i], of[1], i);
        one[i] = first;
        two[i] = second;
    }
    count * lanes::<S, T>()
}

/// Like [`fill_vectors`], for long rows that are not in a near cache. The vectors of `out` are
/// aligned, so each store writes to one cache line. The next pages of `out` and of row number
/// `fresh`, which nothing has read before, are prefetched.
///
/// # Panics
///
/// As [`fill_vectors`].
#[inline(always)]
pub(crate) fn fill_memory<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    out: &mut [T],
    rows: [&[T]; N],
    formula: &impl Formula<T>,
    fresh: usize,
) {
    /// In shorter rows the vector that is computed twice costs more than the alignment gains.
    const LEAST_VECTORS: usize = 12;

    let lanes = lanes::<S, T>();
    let n = out.len();
    if n < LEAST_VECTORS * lanes {
        return fill_vectors(simd, out, rows, formula);
    }
    let first = before_aligned::<S, T>(out);
    if first > 0 {
        let rows = each_part(rows, 0..lanes);
        fill_whole_vectors(simd, &mut out[..lanes], rows, formula);
    }
    let done = first
        + fill_pairs(
            simd,
            &mut out[first..],
            each_part(rows, first..n),
            formula,
            fresh,
        );
    if done < n {
        let rows = each_part(rows, n - lanes..n);
        fill_whole_vectors(simd, &mut out[n - lanes..], rows, formula);
    }
}

/// A part of each row. It is a loop, because `map` of an array is not always inlined.
#[inline(always)]
fn each_part<T, const N: usize>(mut rows: [&[T]; N], range: Range<usize>) -> [&[T]; N] {
    for row in &mut rows {
        *row = &row[range.clone()];
    }
    rows
}

/// The number of lanes of a vector.
#[inline(always)]
pub(crate) const fn lanes<S: Simd, T: InVectors>() -> usize {
    size_of::<T::Lanes<S>>() / size_of::<T>()
}

/// The number of points before the first aligned vector of a row. It is less than the number of
/// lanes. If no vector is aligned, it is 0.
#[inline(always)]
pub(crate) fn before_aligned<S: Simd, T: InVectors>(row: &[T]) -> usize {
    match row.as_ptr().align_offset(size_of::<T::Lanes<S>>()) {
        before if before < lanes::<S, T>() => before,
        _ => 0,
    }
}

/// Sets the points of all whole vectors of `out`, and returns how many points these are.
#[inline(always)]
fn fill_whole_vectors<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    out: &mut [T],
    rows: [&[T]; N],
    formula: &impl Formula<T>,
) -> usize {
    let out = T::vectors_mut::<S>(out);
    let vectors = first_vectors::<T, S, N>(rows, out.len());
    for (i, out) in out.iter_mut().enumerate() {
        *out = vector_at(simd, formula, *out, vectors, i);
    }
    size_of_val(out) / size_of::<T>()
}

/// Like [`fill_whole_vectors`], two vectors at a time, with the prefetches of [`fill_memory`].
#[inline(always)]
fn fill_pairs<T: InVectors, S: Simd, const N: usize>(
    simd: S,
    out: &mut [T],
    rows: [&[T]; N],
    formula: &impl Formula<T>,
    fresh: usize,
) -> usize {
    let out = T::vectors_mut::<S>(out);
    let count = out.len();
    let vectors = first_vectors::<T, S, N>(rows, count);
    let mut i = 0;
    while i < count {
        prefetch_next_page(out, i);
        prefetch_next_page(vectors[fresh], i);
        let end = count.min(i + elements_per_prefetch::<T::Lanes<S>>());
        while i + 1 < end {
            let one = vector_at(simd, formula, out[i], vectors, i);
            let two = vector_at(simd, formula, out[i + 1], vectors, i + 1);
            out[i] = one;
            out[i + 1] = two;
            i += 2;
        }
        if i < end {
            out[i] = vector_at(simd, formula, out[i], vectors, i);
            i += 1;
        }
    }
    count * lanes::<S, T>()
}

/// The first `count` vectors of each row.
#[inline(always)]
pub(crate) fn first_vectors<T: InVectors, S: Simd, const N: usize>(
    rows: [&[T]; N],
    count: usize,
) -> [&[T::Lanes<S>]; N] {
    let mut vectors = [&[][..]; N];
    for (vectors, row) in vectors.iter_mut().zip(rows) {
        // Equal lengths let the compiler drop the bounds checks.
        *vectors = &T::vectors::<S>(row)[..count];
    }
    vectors
}

/// The value of `formula` for vector `i` of each row.
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

/// Operators between a vector and a number that applies to all lanes.
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

/// Implements the traits for a number type; the arguments name its vectors and their operations.
macro_rules! number {
    ($number:ty, $bits:ty, $vector:ident, $lanes:ident, $vectors:ident, $vectors_mut:ident,
     $splat:ident, $add:ident, $sub:ident, $mul:ident, $xor:ident, $mul_add:ident,
     $div:ident, $sqrt:ident, $less:ident, $select:ident, $estimable:ident, $estimated:ident,
     $sums:ident, $and:ident, $to_bits:ident, $splat_bits:ident,
     $first_true:ident, $from_bits:ident, $xor_bits:ident, $add_bits:ident, $sub_bits:ident,
     $less_bits:ident, $rotate_right:ident, $mask_between:ident) => {
        impl Value for $number {
            #[inline(always)]
            fn fused(self, factor: Self, sum: Self) -> Self {
                self.mul_add(factor, sum)
            }

            #[inline(always)]
            fn quarter(self) -> Self {
                0.25 * self
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
            fn rotated<S: Simd>($vector(simd, all): $vector<S>, by: isize) -> $vector<S> {
                let lanes = lanes::<S, $number>() as isize;
                $vector(simd, simd.$rotate_right(all, by.rem_euclid(lanes) as usize))
            }

            #[inline(always)]
            fn with_lane<S: Simd>(
                self,
                $vector(simd, all): $vector<S>,
                lane: usize,
            ) -> $vector<S> {
                let is_lane = simd.$mask_between(lane as $bits, lane as $bits + 1).mask();
                $vector(simd, simd.$select(is_lane, simd.$splat(self), all))
            }

            const PRECISION: u32 = <$number>::MANTISSA_DIGITS;

            #[inline(always)]
            fn least_exponent(numbers: &[Self]) -> u32 {
                // Doubling drops the sign. Subtracting 1 turns zero into the greatest number.
                let mut least = <$bits>::MAX;
                for number in numbers {
                    least = least.min((number.to_bits() << 1).wrapping_sub(1));
                }
                match least.checked_add(1) {
                    Some(doubled) => (doubled >> Self::PRECISION) as u32,
                    None => u32::MAX,
                }
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

            #[inline(always)]
            fn quarter(self) -> Self {
                // A number whose quarter is subnormal is less than LEAST.
                const LEAST: $number = 4.0 * <$number>::MIN_POSITIVE;

                let Self(simd, all) = self;
                let bits = simd.$to_bits(all);
                // Doubling drops the sign. Subtracting 1 turns zero into the greatest number, so it
                // does not count as small.
                let less_one = simd.$sub_bits(simd.$add_bits(bits, bits), simd.$splat_bits(1));
                let below = simd.$splat_bits(2 * LEAST.to_bits() - 1);
                if simd.$first_true(simd.$less_bits(less_one, below)) < lanes::<S, $number>() {
                    // From LEAST on, numbers lie four times as far apart as subnormal numbers, so
                    // adding a number to LEAST rounds it as its quarter must be rounded.
                    let least = simd.$splat(LEAST);
                    let sign = simd.$and(bits, simd.$splat_bits((-0.0 as $number).to_bits()));
                    let size = simd.$from_bits(simd.$xor_bits(bits, sign));
                    let sum = simd.$to_bits(simd.$add(size, least));
                    let quarter = simd.$sub_bits(sum, simd.$to_bits(least));
                    let quarter = simd.$from_bits(simd.$xor_bits(quarter, sign));
                    let small = simd.$less(size, least);
                    // A product of a small lane would be slow even if it is not selected, so the
                    // other lanes are quartered by their exponents.
                    let finite = simd.$less(size, simd.$splat(<$number>::INFINITY));
                    let exponents = simd.$splat_bits(2 << (<$number>::MANTISSA_DIGITS - 1));
                    let others = simd.$from_bits(simd.$sub_bits(bits, exponents));
                    let others = simd.$select(finite, others, all);
                    return Self(simd, simd.$select(small, quarter, others));
                }
                Self(simd, simd.$mul(all, simd.$splat(0.25)))
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
                // Written out, because pulp's negation is not always inlined.
                Self(self.0, self.0.$xor(self.1, self.0.$splat(-0.0)))
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
    u32,
    VectorF32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    add_f32s,
    sub_f32s,
    mul_f32s,
    xor_f32s,
    mul_add_f32s,
    div_f32s,
    sqrt_f32s,
    less_than_f32s,
    select_f32s,
    estimable_f32,
    estimated_f32,
    sums_f32,
    and_u32s,
    transmute_u32s_f32s,
    splat_u32s,
    first_true_m32s,
    transmute_f32s_u32s,
    xor_u32s,
    add_u32s,
    sub_u32s,
    less_than_u32s,
    rotate_right_f32s,
    mask_between_m32s
);
number!(
    f64,
    u64,
    VectorF64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    add_f64s,
    sub_f64s,
    mul_f64s,
    xor_f64s,
    mul_add_f64s,
    div_f64s,
    sqrt_f64s,
    less_than_f64s,
    select_f64s,
    estimable_f64,
    estimated_f64,
    sums_f64,
    and_u64s,
    transmute_u64s_f64s,
    splat_u64s,
    first_true_m64s,
    transmute_f64s_u64s,
    xor_u64s,
    add_u64s,
    sub_u64s,
    less_than_u64s,
    rotate_right_f64s,
    mask_between_m64s
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
        // Converts to f32, which has an instruction for the estimate.
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
        // |e| is below 2⁻¹³, the omitted terms are below 2⁻²⁷.
        if let Some(simd512) = any.downcast_ref::<V4>() {
            let y = simd512.avx512f._mm512_rsqrt14_ps(bytemuck::cast(square));
            let y = VectorF32(simd, bytemuck::cast(y));
            return Some(refined(y, _of, splat(-1.0), [splat(-0.5)]));
        }
        // |e| is below 2⁻¹⁰, the omitted terms are below 2⁻³¹.
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
        // |e| is below 2⁻¹³, the omitted terms are below 2⁻⁵³·⁸.
        if let Some(simd512) = any.downcast_ref::<V4>() {
            let y = simd512.avx512f._mm512_rsqrt14_pd(bytemuck::cast(square));
            let y = VectorF64(simd, bytemuck::cast(y));
            return Some(refined(y, _of, splat(-1.0), [third, second, first]));
        }
        // |e| is below 2⁻¹⁰·⁴, the omitted terms are below 2⁻⁵⁴.
        if let Some(simd256) = any.downcast_ref::<V3>() {
            let narrow = simd256.avx._mm256_cvtpd_ps(bytemuck::cast(square));
            let y = simd256
                .avx
                ._mm256_cvtps_pd(simd256.sse._mm_rsqrt_ps(narrow));
            let y = VectorF64(simd, bytemuck::cast(y));
            let series = [splat(35.0 / 128.0), third, second, first];
            return Some(refined(y, _of, splat(-1.0), series));
        }
    }
    None
}

/// From every two consecutive vectors, makes one that holds the sums of neighbours: `$some` has one
/// of each two neighbours in both vectors, and `$others` has the others, in the same order.
///
/// The arguments are expressions because closures would be functions compiled without the
/// instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! halved {
    ($vectors:ident, [$zero:expr; $count:literal], |$a:ident, $b:ident| $some:expr, $others:expr, |$x:ident, $y:ident| $add:expr) => {{
        let mut half = [$zero; $count];
        for (i, sum) in half.iter_mut().enumerate() {
            let ($a, $b) = ($vectors[2 * i], $vectors[2 * i + 1]);
            let ($x, $y) = ($some, $others);
            *sum = $add;
        }
        half
    }};
}

/// Selects elements 0 and 2, or 1 and 3, of each four elements of two vectors.
#[cfg(target_arch = "x86_64")]
const EVEN: i32 = 0b10_00_10_00;
#[cfg(target_arch = "x86_64")]
const ODD: i32 = 0b11_01_11_01;

#[inline(always)]
fn sums_f32<S: Simd>(_simd: S, _vectors: &[S::f32s]) -> Option<S::f32s> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V3>(),
            <&[S::f32s; 8]>::try_from(_vectors),
        ) {
            let avx = simd.avx;
            // With a factor that the compiler does not know, it makes no horizontal additions. On a
            // Zen 1 those take longer, as on a Zen 4 in f64.
            let one = avx._mm256_set1_ps(black_box(1.0));
            let sum = |x, y| simd.fma._mm256_fmadd_ps(x, one, y);
            let mut all_of = [avx._mm256_setzero_ps(); 8];
            for (vector, all) in all_of.iter_mut().zip(all) {
                *vector = bytemuck::cast(*all);
            }
            let pairs = halved!(
                all_of,
                [avx._mm256_setzero_ps(); 4],
                |a, b| avx._mm256_shuffle_ps::<EVEN>(a, b),
                avx._mm256_shuffle_ps::<ODD>(a, b),
                |x, y| sum(x, y)
            );
            let fours = halved!(
                pairs,
                [avx._mm256_setzero_ps(); 2],
                |a, b| avx._mm256_shuffle_ps::<EVEN>(a, b),
                avx._mm256_shuffle_ps::<ODD>(a, b),
                |x, y| sum(x, y)
            );
            let sums = halved!(
                fours,
                [avx._mm256_setzero_ps(); 1],
                |a, b| avx._mm256_permute2f128_ps::<0x20>(a, b),
                avx._mm256_permute2f128_ps::<0x31>(a, b),
                |x, y| sum(x, y)
            );
            return Some(bytemuck::cast(sums[0]));
        }
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V4>(),
            <&[S::f32s; 16]>::try_from(_vectors),
        ) {
            let avx = simd.avx512f;
            let mut all_of = [avx._mm512_setzero_ps(); 16];
            for (vector, all) in all_of.iter_mut().zip(all) {
                *vector = bytemuck::cast(*all);
            }
            let pairs = halved!(
                all_of,
                [avx._mm512_setzero_ps(); 8],
                |a, b| avx._mm512_shuffle_ps::<EVEN>(a, b),
                avx._mm512_shuffle_ps::<ODD>(a, b),
                |x, y| avx._mm512_add_ps(x, y)
            );
            let fours = halved!(
                pairs,
                [avx._mm512_setzero_ps(); 4],
                |a, b| avx._mm512_shuffle_ps::<EVEN>(a, b),
                avx._mm512_shuffle_ps::<ODD>(a, b),
                |x, y| avx._mm512_add_ps(x, y)
            );
            let eights = halved!(
                fours,
                [avx._mm512_setzero_ps(); 2],
                |a, b| avx._mm512_shuffle_f32x4::<EVEN>(a, b),
                avx._mm512_shuffle_f32x4::<ODD>(a, b),
                |x, y| avx._mm512_add_ps(x, y)
            );
            let sums = halved!(
                eights,
                [avx._mm512_setzero_ps(); 1],
                |a, b| avx._mm512_shuffle_f32x4::<EVEN>(a, b),
                avx._mm512_shuffle_f32x4::<ODD>(a, b),
                |x, y| avx._mm512_add_ps(x, y)
            );
            return Some(bytemuck::cast(sums[0]));
        }
    }
    None
}

#[inline(always)]
fn sums_f64<S: Simd>(_simd: S, _vectors: &[S::f64s]) -> Option<S::f64s> {
    #[cfg(target_arch = "x86_64")]
    {
        let simd: &dyn Any = &_simd;
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V3>(),
            <&[S::f64s; 4]>::try_from(_vectors),
        ) {
            let avx = simd.avx;
            // With a factor that the compiler does not know, it makes no horizontal additions. On a
            // Zen 4 those take twice as long, and conversions run beside multiplications but not
            // beside additions.
            let one = avx._mm256_set1_pd(black_box(1.0));
            let sum = |x, y| simd.fma._mm256_fmadd_pd(x, one, y);
            let mut all_of = [avx._mm256_setzero_pd(); 4];
            for (vector, all) in all_of.iter_mut().zip(all) {
                *vector = bytemuck::cast(*all);
            }
            let pairs = halved!(
                all_of,
                [avx._mm256_setzero_pd(); 2],
                |a, b| avx._mm256_blend_pd::<0b1010>(a, b),
                avx._mm256_permute_pd::<0b0101>(avx._mm256_blend_pd::<0b0101>(a, b)),
                |x, y| sum(x, y)
            );
            let sums = halved!(
                pairs,
                [avx._mm256_setzero_pd(); 1],
                |a, b| avx._mm256_blend_pd::<0b1100>(a, b),
                {
                    let other = avx._mm256_blend_pd::<0b0011>(a, b);
                    avx._mm256_permute2f128_pd::<0x01>(other, other)
                },
                |x, y| sum(x, y)
            );
            return Some(bytemuck::cast(sums[0]));
        }
        if let (Some(simd), Ok(all)) = (
            simd.downcast_ref::<V4>(),
            <&[S::f64s; 8]>::try_from(_vectors),
        ) {
            let avx = simd.avx512f;
            let mut all_of = [avx._mm512_setzero_pd(); 8];
            for (vector, all) in all_of.iter_mut().zip(all) {
                *vector = bytemuck::cast(*all);
            }
            let pairs = halved!(
                all_of,
                [avx._mm512_setzero_pd(); 4],
                |a, b| avx._mm512_unpacklo_pd(a, b),
                avx._mm512_unpackhi_pd(a, b),
                |x, y| avx._mm512_add_pd(x, y)
            );
            let fours = halved!(
                pairs,
                [avx._mm512_setzero_pd(); 2],
                |a, b| avx._mm512_shuffle_f64x2::<EVEN>(a, b),
                avx._mm512_shuffle_f64x2::<ODD>(a, b),
                |x, y| avx._mm512_add_pd(x, y)
            );
            let sums = halved!(
                fours,
                [avx._mm512_setzero_pd(); 1],
                |a, b| avx._mm512_shuffle_f64x2::<EVEN>(a, b),
                avx._mm512_shuffle_f64x2::<ODD>(a, b),
                |x, y| avx._mm512_add_pd(x, y)
            );
            return Some(bytemuck::cast(sums[0]));
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
            let lanes = lanes::<S, T>();
            let sums = T::sums(simd, &T::vectors::<S>(self.0)[..lanes])?;
            Some(bytemuck::cast_slice(&[sums]).to_vec())
        }
    }

    /// A quarter of each of `numbers`.
    struct Quarters<'a, T>(&'a [T]);

    impl<T: InVectors> WithSimd for Quarters<'_, T> {
        type Output = Vec<T>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
            let mut quarters = self.0.to_vec();
            for quarter in T::vectors_mut::<S>(&mut quarters) {
                *quarter = T::lanes(T::load(simd, *quarter).quarter());
            }
            quarters
        }
    }

    #[test]
    fn quarters_are_those_of_the_processor() {
        // Numbers of the least exponents, and all those around the first and the last of them.
        let f32s = (0..6).flat_map(|exponent| {
            let first: u32 = exponent << 23;
            let some =
                (0..4096).map(move |i: u32| first + i.wrapping_mul(2_654_435_761) % (1 << 23));
            some.chain(first.saturating_sub(40)..first + 40)
        });
        let f32s = f32s
            .map(f32::from_bits)
            .chain([f32::MAX, f32::INFINITY, 1.0]);
        let f32s: Vec<f32> = f32s.flat_map(|x| [x, -x]).chain([0.0; 14]).collect();
        let f64s = (0..6).flat_map(|exponent| {
            let first: u64 = exponent << 52;
            let some = (0..4096)
                .map(move |i: u64| first + i.wrapping_mul(11_400_714_819_323_198_485) % (1 << 52));
            some.chain(first.saturating_sub(40)..first + 40)
        });
        let f64s = f64s
            .map(f64::from_bits)
            .chain([f64::MAX, f64::INFINITY, 1.0]);
        let f64s: Vec<f64> = f64s.flat_map(|x| [x, -x]).chain([0.0; 14]).collect();
        let (f32s, f64s) = (&f32s[..f32s.len() / 16 * 16], &f64s[..f64s.len() / 16 * 16]);
        for quarters in by_each(|| Quarters(f32s)) {
            for (x, quarter) in f32s.iter().zip(quarters) {
                assert_eq!(quarter.to_bits(), (x * 0.25).to_bits(), "{x:e}");
            }
        }
        for quarters in by_each(|| Quarters(f64s)) {
            for (x, quarter) in f64s.iter().zip(quarters) {
                assert_eq!(quarter.to_bits(), (x * 0.25).to_bits(), "{x:e}");
            }
        }
        for quarters in by_each(|| Quarters(&[f32::NAN; 16])) {
            assert!(quarters.into_iter().all(f32::is_nan));
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
    fn numbers(exponents: Range<i32>) -> Vec<f64> {
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
