//! The CPU port of line stencils: any length, several parts of the line at a time.
//!
//! It is written from the formula, not from the kernels, because the kernels are checked against
//! it. The order of the operations is part of the definition: one product, then fused
//! multiply-adds, nearest neighbours first.
#![forbid(unsafe_code)]

use super::form::Form;
use crate::pages::prefetch_lines;
use crate::simd::{Formula, InVectors, Value, fill, vectorised};
use crate::streaming::{Stores, before_line, streamed};
use crate::threads;
use crate::trial::Trial;
use gpu_kernels::stencil1d::custom::{MAX_POINTS, MAX_RADIUS};

/// The fewest elements for which another thread is worthwhile.
const ELEMENTS_PER_THREAD: usize = 1 << 14;

/// Elements of a piece of a result that is too large for a cache. The pieces are written with
/// ordinary stores or through drafts, whichever is faster.
const PIECE: usize = 32 * DRAFT;

/// Elements of a draft, which is computed with ordinary stores and copied from with non-temporal
/// ones. One copy serves all forms and radii, which are many loops to compile.
const DRAFT: usize = 512;

/// How much longer a piece may take through drafts than with ordinary stores, as a factor. Lines
/// that are stored in the ordinary way are written to memory later, during other pieces.
const ALLOWANCE: f64 = 1.25;

/// How far ahead the input is prefetched, in elements.
const AHEAD_ELEMENTS: usize = 2 * DRAFT;

/// Indices of a stencil's rows: the points themselves, then the rows ahead, then the rows behind,
/// nearest first.
const HERE: usize = 0;
const AHEAD: usize = 1;
const BEHIND: usize = AHEAD + MAX_RADIUS;
const ROWS: usize = BEHIND + MAX_RADIUS;

/// The port for lines of one type. (Its function is compiled in this crate, whatever the
/// optimisation level of the calling crate.)
pub trait Port: InVectors {
    /// Applies the stencil with `coefficients[8 + m]` for neighbour m to `input`, which has at
    /// least `2 * radius + 1` elements, and writes `inner`, which has `2 * radius` fewer.
    fn stencil(
        form: Form,
        radius: usize,
        coefficients: &[Self; MAX_POINTS],
        input: &[Self],
        inner: &mut [Self],
    );
}

macro_rules! ports {
    ($($number:ty),+) => {$(
        impl Port for $number {
            fn stencil(
                form: Form,
                radius: usize,
                coefficients: &[Self; MAX_POINTS],
                input: &[Self],
                inner: &mut [Self],
            ) {
                custom(form, radius, coefficients, input, inner);
            }
        }
    )+};
}

ports!(f32, f64);

fn custom<T: InVectors>(
    form: Form,
    radius: usize,
    coefficients: &[T; MAX_POINTS],
    input: &[T],
    inner: &mut [T],
) {
    match radius {
        1 => by_radius::<T, 1>(form, coefficients, input, inner),
        2 => by_radius::<T, 2>(form, coefficients, input, inner),
        3 => by_radius::<T, 3>(form, coefficients, input, inner),
        4 => by_radius::<T, 4>(form, coefficients, input, inner),
        5 => by_radius::<T, 5>(form, coefficients, input, inner),
        6 => by_radius::<T, 6>(form, coefficients, input, inner),
        7 => by_radius::<T, 7>(form, coefficients, input, inner),
        _ => by_radius::<T, 8>(form, coefficients, input, inner),
    }
}

fn by_radius<T: InVectors, const R: usize>(
    form: Form,
    coefficients: &[T; MAX_POINTS],
    input: &[T],
    inner: &mut [T],
) {
    let center = coefficients[MAX_RADIUS];
    let next: [T; R] = std::array::from_fn(|m| coefficients[MAX_RADIUS + 1 + m]);
    let last: [T; R] = std::array::from_fn(|m| coefficients[MAX_RADIUS - 1 - m]);
    let threads = threads::worth(inner.len(), ELEMENTS_PER_THREAD);
    let stores = Stores::of(&[&mut *inner]);
    threads::share_parts(threads, inner, 1, |first, output| {
        // Element i of this part is centred on element i + R of `input`.
        let input = &input[first..];
        let rows: [_; ROWS] = std::array::from_fn(|row| match row {
            // A shorter stencil does not use the outer rows.
            AHEAD..BEHIND if row - AHEAD < R => &input[R + (row - AHEAD + 1)..],
            BEHIND..ROWS if row - BEHIND < R => &input[R - (row - BEHIND + 1)..],
            _ => &input[R..],
        });
        let apply = |output: &mut [T], rows: [&[T]; ROWS]| {
            vectorised(
                #[inline(always)]
                || match form {
                    Form::Antisymmetric => fill(output, rows, &Antisymmetric { next }),
                    Form::Symmetric => fill(output, rows, &Symmetric { center, next }),
                    Form::Any => fill(output, rows, &Any { center, next, last }),
                },
            );
        };
        if stores == Stores::Ordinary {
            return apply(output, rows);
        }
        // Drafts are copied to whole cache lines.
        let before = before_line(output);
        let (head, output) = output.split_at_mut(before);
        apply(head, rows);
        let mut trial = Trial::of(output.len() / PIECE).with_allowance(ALLOWANCE);
        for (number, output) in output.chunks_mut(PIECE).enumerate() {
            let rows = rows.map(|row| &row[before + number * PIECE..]);
            trial.run(|drafts| match drafts {
                true => in_drafts(output, rows, apply),
                false => apply(output, rows),
            });
        }
    });
}

/// Computes `output` draft by draft, with `apply`, and copies the drafts to it.
fn in_drafts<T: InVectors>(
    output: &mut [T],
    rows: [&[T]; ROWS],
    apply: impl Fn(&mut [T], [&[T]; ROWS]),
) {
    /// Aligned to a cache line.
    #[repr(align(64))]
    struct Draft<T>([T; DRAFT]);

    let mut draft = Draft([T::zeroed(); DRAFT]);
    streamed(|stream| {
        for (number, output) in output.chunks_mut(DRAFT).enumerate() {
            let at = number * DRAFT;
            prefetch_lines(rows[HERE], at + AHEAD_ELEMENTS, DRAFT);
            let draft = &mut draft.0[..output.len()];
            apply(draft, rows.map(|row| &row[at..]));
            stream.copy(output, draft);
        }
    });
}

/// `Σ next[m] · (ahead(m) - behind(m))`.
struct Antisymmetric<T, const R: usize> {
    next: [T; R],
}

impl<T: Copy, const R: usize> Formula<T> for Antisymmetric<T, R> {
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, _: V, row: impl Fn(usize) -> V) -> V {
        let mut sum = splat(self.next[0]) * (row(AHEAD) - row(BEHIND));
        for m in 1..R {
            sum = (row(AHEAD + m) - row(BEHIND + m)).fused(splat(self.next[m]), sum);
        }
        sum
    }
}

/// `center · here + Σ next[m] · (ahead(m) + behind(m))`.
struct Symmetric<T, const R: usize> {
    center: T,
    next: [T; R],
}

impl<T: Copy, const R: usize> Formula<T> for Symmetric<T, R> {
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, _: V, row: impl Fn(usize) -> V) -> V {
        let mut sum = splat(self.center) * row(HERE);
        for m in 0..R {
            sum = (row(AHEAD + m) + row(BEHIND + m)).fused(splat(self.next[m]), sum);
        }
        sum
    }
}

/// `center · here + Σ (next[m] · ahead(m) + last[m] · behind(m))`.
struct Any<T, const R: usize> {
    center: T,
    next: [T; R],
    last: [T; R],
}

impl<T: Copy, const R: usize> Formula<T> for Any<T, R> {
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, _: V, row: impl Fn(usize) -> V) -> V {
        let mut sum = splat(self.center) * row(HERE);
        for m in 0..R {
            sum = row(AHEAD + m).fused(splat(self.next[m]), sum);
            sum = row(BEHIND + m).fused(splat(self.last[m]), sum);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_have_the_bits_of_the_whole() {
        let input: Vec<f64> = (0..4000).map(|i| (i % 1013) as f64 / 7.0 - 50.0).collect();
        let rows = std::array::from_fn(|row| &input[row..]);
        let stencil = Any {
            center: 0.1,
            next: [0.2, 0.3],
            last: [0.4, 0.5],
        };
        let apply = |output: &mut [f64], rows: [&[f64]; ROWS]| fill(output, rows, &stencil);
        for len in [0, 1, DRAFT - 1, DRAFT, DRAFT + 1, 3500] {
            let (mut whole, mut drafts) = ([f64::NAN; 3501], [f64::NAN; 3501]);
            apply(&mut whole[..len], rows);
            in_drafts(&mut drafts[..len], rows, apply);
            let bits = |values: [f64; 3501]| values.map(f64::to_bits);
            assert_eq!(bits(drafts), bits(whole), "{len} points");
        }
    }

    #[test]
    fn a_line_written_past_the_caches_has_the_bits_of_its_parts() {
        const PART: usize = 1000;
        let radius = MAX_RADIUS;
        let points = (8 << 20) / size_of::<f32>() + 3 * DRAFT + 7;
        let input: Vec<f32> = (0..points + 2 * radius)
            .map(|i| (i % 1013) as f32 / 7.0 - 50.0)
            .collect();
        let coefficients = std::array::from_fn(|m| 0.1 + m as f32);
        let mut whole = vec![f32::NAN; points];
        assert_eq!(Stores::of(&[&mut whole]), Stores::Streaming);
        custom(Form::Any, radius, &coefficients, &input, &mut whole);
        let mut part = [f32::NAN; PART];
        for (number, whole) in whole.chunks(PART).enumerate() {
            let part = &mut part[..whole.len()];
            let input = &input[number * PART..][..whole.len() + 2 * radius];
            custom(Form::Any, radius, &coefficients, input, part);
            assert_eq!(part, whole, "part {number}");
        }
    }
}
