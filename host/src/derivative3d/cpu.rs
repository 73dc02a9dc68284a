//! The CPU port of derivatives, tile by tile. Where the stencil allows it, one loop covers all rows
//! of a tile.
//!
//! It is written from the formulas, not from the kernels, because the kernels are checked against
//! it. The order of operations is part of the definition; it is the same for loops over the points
//! of a row and for loops over the terms of a sum.
#![forbid(unsafe_code)]

use super::operator::{Operator, Order};
use super::tiles::{March, Tile, TilePart, Tiles};
use crate::Shape3;
use crate::axis::Axis;
use crate::simd::{Formula, InVectors, Value, fill, vectorised};
use crate::streaming::Stores;
use gpu_kernels::derivative3d::RADIUS;
use std::array::from_fn;
use std::marker::PhantomData;
use std::ops::Range;

/// Points of the window at each end of a row.
const WINDOW: usize = 3 * RADIUS;

/// The most terms of a one-sided sum: a second derivative of 8th order.
const MAX_TERMS: usize = 2 * RADIUS + 1;

/// Indices of a central stencil's rows: the points themselves, then the rows ahead, then the rows
/// behind, nearest first.
const HERE: usize = 0;
const AHEAD: usize = 1;
const BEHIND: usize = AHEAD + RADIUS;
const ROWS: usize = BEHIND + RADIUS;

/// The same for the second stencil of a pair.
const BEHIND_ALONG_Z: usize = ROWS + RADIUS;
const BOTH: usize = BEHIND_ALONG_Z + RADIUS;

/// The most points in all windows that are computed at a time.
const WINDOWS: usize = 16 * WINDOW;

/// The most points in the copy of short rows.
const SHORT: usize = 16 * WINDOW;

/// The number of points computed at a time from a constant value beyond an end.
const VALUES: usize = 512;

/// The number of points computed at a time in a one-sided sum.
const BLOCK: usize = 64;

/// One derivative along one axis. `T` is f32 or f64.
pub struct Stencil<'p, T> {
    pub shape: Shape3,
    pub axis: Axis,
    pub(super) order: Order,
    /// 1 to [`RADIUS`].
    pub radius: usize,
    /// The weights of the neighbours at the distances 1, 2, …
    pub weights: [T; RADIUS],
    pub(super) beyond: Beyond<'p, T>,
}

/// The values beyond the ends of an axis.
pub(super) enum Beyond<'p, T> {
    /// Points of the field: the indices that stand for -1, -2, … and for n, n+1, …
    Points([[usize; RADIUS]; 2]),
    /// A constant.
    Value(T),
    /// None: near an end the stencil has other weights. Each distance from the end has a row of
    /// weights for the points counted from the end; rows are `apart` elements apart.
    Nothing { weights: &'p [T], apart: usize },
}

/// Stores a derivative at its point, or adds it there.
trait Put {
    /// Whether an operator puts derivatives along x in this way. This must not be an addition,
    /// because the ends of rows are stored twice.
    const ALONG_X: bool;

    /// Whether an operator puts second derivatives in this way.
    const SECOND: bool;

    fn put<V: Value>(so_far: V, derivative: V) -> V;
}

struct Set;
struct Negated;
struct Added;
struct Subtracted;

impl Put for Set {
    const ALONG_X: bool = true;
    const SECOND: bool = true;

    #[inline(always)]
    fn put<V: Value>(_: V, derivative: V) -> V {
        derivative
    }
}

impl Put for Negated {
    const ALONG_X: bool = true;
    const SECOND: bool = false;

    #[inline(always)]
    fn put<V: Value>(_: V, derivative: V) -> V {
        -derivative
    }
}

impl Put for Added {
    const ALONG_X: bool = false;
    const SECOND: bool = true;

    #[inline(always)]
    fn put<V: Value>(so_far: V, derivative: V) -> V {
        so_far + derivative
    }
}

impl Put for Subtracted {
    const ALONG_X: bool = false;
    const SECOND: bool = false;

    #[inline(always)]
    fn put<V: Value>(so_far: V, derivative: V) -> V {
        so_far - derivative
    }
}

const NO_SECOND: &str = "no operator stores a second derivative in this way";

/// The port for fields of one type. (Its functions are compiled in this crate, whatever the
/// optimisation level of the calling crate.)
pub trait Port: Number {
    /// Writes the derivative of `f` to `df`. `f` has the stencil's shape; `df` consists of
    /// `planes`.
    fn along(
        stencil: &Stencil<'_, Self>,
        planes: Range<usize>,
        stores: Stores,
        f: &[Self],
        df: &mut [Self],
    );

    /// Computes `operator`, with its stencils for x, y and z. The inputs have the stencils' shape,
    /// and the outputs consist of `planes`. There are as many of them as the operator reads and
    /// writes.
    fn operator(
        stencils: &[Stencil<'_, Self>; 3],
        operator: Operator,
        planes: Range<usize>,
        stores: Stores,
        inputs: &[&[Self]],
        outputs: &mut [&mut [Self]],
    );
}

/// A type that the port computes with.
pub trait Number: InVectors + PartialEq {
    /// 0.
    const ZERO: Self;

    /// -2.
    const MINUS_TWO: Self;
}

macro_rules! ports {
    ($($number:ty),+) => {$(
        impl Number for $number {
            const ZERO: Self = 0.0;
            const MINUS_TWO: Self = -2.0;
        }

        impl Port for $number {
            fn along(
                stencil: &Stencil<'_, Self>,
                planes: Range<usize>,
                stores: Stores,
                f: &[Self],
                df: &mut [Self],
            ) {
                along(stencil, planes, stores, f, df);
            }

            fn operator(
                stencils: &[Stencil<'_, Self>; 3],
                kind: Operator,
                planes: Range<usize>,
                stores: Stores,
                inputs: &[&[Self]],
                outputs: &mut [&mut [Self]],
            ) {
                operator(stencils, kind, planes, stores, inputs, outputs);
            }
        }
    )+};
}

ports!(f32, f64);

/// As [`Port::along`].
fn along<T: Number>(
    stencil: &Stencil<'_, T>,
    planes: Range<usize>,
    stores: Stores,
    f: &[T],
    df: &mut [T],
) {
    let (march, stores) = match stencil.axis {
        // The ends of rows, every few cache lines, are stored twice. Non-temporal stores would need
        // a scratch copy of all points, which costs more than it saves.
        Axis::X => (March::OverPlanes, Stores::Ordinary),
        Axis::Y => (March::OverPlanes, stores),
        Axis::Z => (March::AlongZ, stores),
    };
    let tiles = Tiles {
        shape: stencil.shape,
        planes,
        march,
        stores,
        derivatives: 1,
    };
    tiles.for_each([df], |tile, [out]| stencil.tile::<Set>(f, tile, out));
}

/// As [`Port::operator`].
fn operator<T: Number>(
    [x, y, z]: &[Stencil<'_, T>; 3],
    operator: Operator,
    planes: Range<usize>,
    stores: Stores,
    inputs: &[&[T]],
    outputs: &mut [&mut [T]],
) {
    let tiles = Tiles {
        shape: x.shape,
        planes,
        march: March::AlongZ,
        stores,
        derivatives: operator.derivatives(),
    };
    match (operator, inputs, outputs) {
        (Operator::Gradient, [f], [gx, gy, gz]) => {
            let outputs = [&mut **gx, gy, gz];
            tiles.for_each(outputs, |tile, [gx, gy, gz]| {
                x.tile::<Set>(f, tile, gx);
                y.tile::<Set>(f, tile, gy);
                z.tile::<Set>(f, tile, gz);
            });
        }
        (Operator::Divergence, [u, v, w], [out]) => {
            tiles.for_each([out], |tile, [mut out]| {
                x.tile::<Set>(u, tile, out.begin());
                y.tile::<Added>(v, tile, out.begin());
                z.tile::<Added>(w, tile, out);
            });
        }
        (Operator::Laplacian, [f], [out]) => {
            tiles.for_each([out], |tile, [mut out]| {
                x.tile::<Set>(f, tile, out.begin());
                let [begin, end] = y.both_inside(z, tile);
                let Range {
                    start: first,
                    end: last,
                } = tile.rows;
                let parts = [
                    (first..begin, false),
                    (begin..end, true),
                    (end..last, false),
                ];
                for (rows, both) in parts {
                    let part;
                    (part, out) = out.split_at(rows.len() * x.shape.nx);
                    let tile = Tile { rows, ..*tile };
                    match (part, both) {
                        _ if tile.rows.is_empty() => {}
                        (part, true) => y.both(z, f, &tile, part),
                        (mut part, false) => {
                            y.tile::<Added>(f, &tile, part.begin());
                            z.tile::<Added>(f, &tile, part);
                        }
                    }
                }
            });
        }
        (Operator::Curl, [u, v, w], [cx, cy, cz]) => {
            let outputs = [&mut **cx, cy, cz];
            tiles.for_each(outputs, |tile, [mut cx, mut cy, mut cz]| {
                y.tile::<Set>(w, tile, cx.begin());
                z.tile::<Subtracted>(v, tile, cx);
                // Along x a tile is computed as one line, and the ends of its rows are stored
                // twice, so x must come first.
                x.tile::<Negated>(w, tile, cy.begin());
                z.tile::<Added>(u, tile, cy);
                x.tile::<Set>(v, tile, cz.begin());
                y.tile::<Subtracted>(u, tile, cz);
            });
        }
        _ => unreachable!("as many fields as the operator has"),
    }
}

impl<T: Number> Stencil<'_, T> {
    /// Stores the derivatives of `f` at the tile's points in `out`, or adds them, as `P` says.
    fn tile<P: Put>(&self, f: &[T], tile: &Tile, mut out: TilePart<'_, '_, T>) {
        let Shape3 { nx, ny, .. } = self.shape;
        let rows = |j: usize, k: usize, len: usize| &f[(k * ny + j) * nx..][..len];
        let (first, k, len) = (tile.rows.start, tile.k, tile.rows.len() * nx);
        match self.axis {
            Axis::X if P::ALONG_X => {
                self.along_rows::<P>(rows(first, k, len), out.draft());
                out.finish();
            }
            Axis::X => unreachable!("no operator adds a derivative along x"),
            // All rows at once, except rows near an end.
            Axis::Y => {
                let inside = self.inside(ny);
                let begin = inside.start.clamp(first, tile.rows.end);
                let end = inside.end.clamp(begin, tile.rows.end);
                let (before, out) = out.split_at((begin - first) * nx);
                let (middle, after) = out.split_at((end - begin) * nx);
                if begin < end {
                    let len = (end - begin) * nx;
                    self.central::<P>(|m| rows(begin.wrapping_add_signed(m), k, len), middle);
                }
                let short = self.radius * WINDOW * nx / RADIUS <= SHORT;
                let near_ends = [(first..begin, before), (end..tile.rows.end, after)];
                for (end, (near_end, mut out)) in near_ends.into_iter().enumerate() {
                    // As many rows as the radius are all rows near this end.
                    if short && near_end.len() == self.radius && ny >= 2 * self.radius {
                        let at = |some: Range<usize>| rows(some.start, k, some.len() * nx);
                        match self.short_rows_near_end::<P>(end, ny, nx, at, out) {
                            None => continue,
                            Some(left) => out = left,
                        }
                    }
                    for j in near_end {
                        let row;
                        (row, out) = out.split_at(nx);
                        self.near_end::<P>(j, |j| rows(j, k, nx), nx, row);
                    }
                }
            }
            Axis::Z => {
                if self.inside(self.shape.nz).contains(&k) {
                    self.central::<P>(|m| rows(first, k.wrapping_add_signed(m), len), out);
                } else {
                    self.near_end::<P>(k, |k| rows(first, k, len), len, out);
                }
            }
        }
    }

    /// The range of a tile's rows that are far from the ends of y (this axis) and of z. It is empty
    /// unless both stencils are of 8th order.
    fn both_inside(&self, z: &Self, tile: &Tile) -> [usize; 2] {
        let Range { start, end } = self.inside(self.shape.ny);
        let all =
            self.radius == RADIUS && z.radius == RADIUS && z.inside(z.shape.nz).contains(&tile.k);
        if !all {
            return [tile.rows.end; 2];
        }
        let begin = start.clamp(tile.rows.start, tile.rows.end);
        [begin, end.clamp(begin, tile.rows.end)]
    }

    /// Adds the second derivative along y (this stencil), then the one along z.
    fn both(&self, z: &Self, f: &[T], tile: &Tile, out: TilePart<'_, '_, T>) {
        let Shape3 { nx, ny, .. } = self.shape;
        let (first, len) = (tile.rows.start, tile.rows.len() * nx);
        let at = |j: usize, k: usize| &f[(k * ny + j) * nx..][..len];
        let rows: [_; BOTH] = from_fn(|row| match row {
            AHEAD..BEHIND => at(first + row, tile.k),
            BEHIND..ROWS => at(first - (row - BEHIND) - 1, tile.k),
            ROWS..BEHIND_ALONG_Z => at(first, tile.k + (row - ROWS) + 1),
            BEHIND_ALONG_Z.. => at(first, tile.k - (row - BEHIND_ALONG_Z) - 1),
            HERE => at(first, tile.k),
        });
        out.fill(rows, &Both::of(self, z));
    }

    /// Computes all rows near an end at once: the first of `n` rows of `nx` points if `end` is 0, the
    /// last ones if it is 1. It copies the rows around them, and the rows that the boundary puts
    /// beyond the end, into one array and applies the stencil to that. `at` gives consecutive rows.
    /// It returns `out` if the boundary has nothing beyond the end.
    fn short_rows_near_end<'f, 'tile, 'out, P: Put>(
        &self,
        end: usize,
        n: usize,
        nx: usize,
        at: impl Fn(Range<usize>) -> &'f [T],
        out: TilePart<'tile, 'out, T>,
    ) -> Option<TilePart<'tile, 'out, T>>
    where
        T: 'f,
    {
        let radius = self.radius;
        let mut rows = [T::ZERO; SHORT];
        let (beyond, inside, from) = match end {
            0 => (0..radius, radius..3 * radius, 0..2 * radius),
            _ => (2 * radius..3 * radius, 0..2 * radius, n - 2 * radius..n),
        };
        rows[inside.start * nx..inside.end * nx].copy_from_slice(at(from));
        let beyond = &mut rows[beyond.start * nx..beyond.end * nx];
        match self.beyond {
            Beyond::Points(points) => {
                // The array begins with the row farthest from the end, `points` with the nearest.
                let source = |row: usize| match end {
                    0 => points[0][radius - 1 - row],
                    _ => points[1][row],
                };
                // Consecutive rows are copied together.
                let mut row = 0;
                while row < radius {
                    let mut some = 1;
                    while row + some < radius && source(row + some) == source(row) + some {
                        some += 1;
                    }
                    let from = source(row);
                    beyond[row * nx..][..some * nx].copy_from_slice(at(from..from + some));
                    row += some;
                }
            }
            Beyond::Value(value) => beyond.fill(value),
            Beyond::Nothing { .. } => return Some(out),
        }
        let at = |m: isize| &rows[radius.wrapping_add_signed(m) * nx..][..radius * nx];
        self.central::<P>(at, out);
        None
    }

    /// The points of an axis of `n` points whose neighbours are all inside.
    fn inside(&self, n: usize) -> Range<usize> {
        self.radius..n.saturating_sub(self.radius)
    }

    /// Computes the points at index `p`, near an end, of `len` lines along the axis. `at(q)` is the
    /// slice of the lines' points at index q.
    fn near_end<'f, P: Put>(
        &self,
        p: usize,
        at: impl Fn(usize) -> &'f [T],
        len: usize,
        mut out: TilePart<'_, '_, T>,
    ) where
        T: 'f,
    {
        let n = self.axis.extent(self.shape);
        match self.beyond {
            Beyond::Points(points) => self.central::<P>(
                |m| {
                    let q = p as isize + m;
                    at(if q < 0 {
                        points[0][-q as usize - 1]
                    } else if q as usize >= n {
                        points[1][q as usize - n]
                    } else {
                        q as usize
                    })
                },
                out,
            ),
            Beyond::Value(value) => {
                let beyond = [value; VALUES];
                for first in (0..len).step_by(VALUES) {
                    let count = VALUES.min(len - first);
                    let at = |m: isize| match p.checked_add_signed(m) {
                        Some(q) if q < n => &at(q)[first..][..count],
                        _ => &beyond[..count],
                    };
                    let some;
                    (some, out) = out.split_at(count);
                    self.central::<P>(at, some);
                }
            }
            Beyond::Nothing { weights, apart } => {
                let (all, negative) = self.end_terms(weights, apart, p);
                let mut terms = [(T::ZERO, &[][..]); MAX_TERMS];
                let mut count = 0;
                for (term, (weight, q)) in terms.iter_mut().zip(all) {
                    *term = (weight, at(q));
                    count += 1;
                }
                let (here, terms) = (at(p), &terms[..count]);
                let draft = out.draft();
                vectorised(
                    #[inline(always)]
                    || one_sided::<T, P>(draft, here, terms, negative),
                );
                out.finish();
            }
        }
    }

    /// The terms of the one-sided sum at point `p`, each a weight and a point, and whether the
    /// derivative is the negative of the sum.
    #[inline(always)]
    fn end_terms<'w>(
        &self,
        weights: &'w [T],
        apart: usize,
        p: usize,
    ) -> (impl Iterator<Item = (T, usize)> + use<'w, T>, bool) {
        let n = self.axis.extent(self.shape);
        let at_first = p < self.radius;
        let from_end = if at_first { p } else { n - 1 - p };
        let weights = &weights[apart * from_end..][..2 * self.radius + self.order as usize];
        let others = weights
            .iter()
            .enumerate()
            .filter(move |(q, _)| *q != from_end);
        let terms = others.map(move |(q, weight)| (*weight, if at_first { q } else { n - 1 - q }));
        // Seen from the other end, a first derivative changes its sign.
        (terms, self.order == Order::First && !at_first)
    }

    /// The central stencil. `at(m)` is the slice m points ahead, as long as `out`.
    fn central<'f, P: Put>(&self, at: impl Fn(isize) -> &'f [T], out: TilePart<'_, '_, T>)
    where
        T: 'f,
    {
        match self.radius {
            1 => self.central_of::<P, 1>(at, out),
            2 => self.central_of::<P, 2>(at, out),
            3 => self.central_of::<P, 3>(at, out),
            _ => self.central_of::<P, 4>(at, out),
        }
    }

    fn central_of<'f, P: Put, const R: usize>(
        &self,
        at: impl Fn(isize) -> &'f [T],
        out: TilePart<'_, '_, T>,
    ) where
        T: 'f,
    {
        let rows = rows_of::<_, R>(at);
        let weights = from_fn(|m| self.weights[m]);
        match self.order {
            Order::First => out.fill(rows, &Central::<T, P, R, false>::of(weights)),
            Order::Second if P::SECOND => out.fill(rows, &Central::<T, P, R, true>::of(weights)),
            Order::Second => unreachable!("{NO_SECOND}"),
        }
    }

    /// The derivative along consecutive rows: all as one loop, then their ends.
    fn along_rows<P: Put>(&self, f: &[T], out: &mut [T]) {
        let (len, radius) = (f.len(), self.radius);
        if len > 2 * radius {
            let inner = len - 2 * radius;
            let at = |m: isize| &f[radius.wrapping_add_signed(m)..][..inner];
            self.central::<P>(at, TilePart::Here(&mut out[radius..][..inner]));
        }
        match radius {
            1 => self.ends_of::<P, 1>(f, out),
            2 => self.ends_of::<P, 2>(f, out),
            3 => self.ends_of::<P, 3>(f, out),
            _ => self.ends_of::<P, 4>(f, out),
        }
    }

    fn ends_of<P: Put, const R: usize>(&self, f: &[T], out: &mut [T]) {
        match self.order {
            Order::First => vectorised(
                #[inline(always)]
                || row_ends::<T, P, R, false>(self, f, out),
            ),
            Order::Second if P::SECOND => vectorised(
                #[inline(always)]
                || row_ends::<T, P, R, true>(self, f, out),
            ),
            Order::Second => unreachable!("{NO_SECOND}"),
        }
    }
}

/// The rows that a central stencil with `R` points on either side reads. `at(m)` is the row `m`
/// ahead of the points themselves.
#[inline(always)]
fn rows_of<'f, T, const R: usize>(at: impl Fn(isize) -> &'f [T]) -> [&'f [T]; ROWS] {
    from_fn(|row| match row {
        // A shorter stencil does not use the outer rows.
        AHEAD..BEHIND if row - AHEAD < R => at((row - AHEAD) as isize + 1),
        BEHIND..ROWS if row - BEHIND < R => at(-((row - BEHIND) as isize) - 1),
        _ => at(0),
    })
}

// These loops are functions, not closures: the types of their arguments tell the compiler that they
// do not overlap, and otherwise it does not vectorise.

/// The central stencil with `R` points on either side, at one point.
#[inline(always)]
fn sum<V: Value, const R: usize, const SECOND: bool>(
    weight: impl Fn(usize) -> V,
    minus_two: V,
    here: V,
    ahead: impl Fn(usize) -> V,
    behind: impl Fn(usize) -> V,
) -> V {
    let mut sum = here;
    for m in 0..R {
        let term = if SECOND {
            here.fused(minus_two, ahead(m) + behind(m))
        } else {
            ahead(m) - behind(m)
        };
        sum = if m == 0 {
            weight(m) * term
        } else {
            term.fused(weight(m), sum)
        };
    }
    sum
}

/// [`sum`], stored or added as `P` says.
struct Central<T, P, const R: usize, const SECOND: bool> {
    weights: [T; R],
    put: PhantomData<P>,
}

impl<T, P, const R: usize, const SECOND: bool> Central<T, P, R, SECOND> {
    fn of(weights: [T; R]) -> Self {
        let put = PhantomData;
        Self { weights, put }
    }
}

impl<T: Number, P: Put, const R: usize, const SECOND: bool> Formula<T>
    for Central<T, P, R, SECOND>
{
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V {
        let derivative = sum::<V, R, SECOND>(
            #[inline(always)]
            |m| splat(self.weights[m]),
            splat(T::MINUS_TWO),
            row(HERE),
            #[inline(always)]
            |m| row(AHEAD + m),
            #[inline(always)]
            |m| row(BEHIND + m),
        );
        P::put(so_far, derivative)
    }
}

/// Central second derivatives along y and z, added one after the other.
struct Both<T> {
    weights: [[T; RADIUS]; 2],
}

impl<T: Number> Both<T> {
    fn of(y: &Stencil<'_, T>, z: &Stencil<'_, T>) -> Self {
        let weights = [y.weights, z.weights];
        Self { weights }
    }
}

impl<T: Number> Formula<T> for Both<T> {
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, so_far: V, row: impl Fn(usize) -> V) -> V {
        let mut value = so_far;
        for (weights, ahead, behind) in [
            (&self.weights[0], AHEAD, BEHIND),
            (&self.weights[1], ROWS, BEHIND_ALONG_Z),
        ] {
            let derivative = sum::<V, RADIUS, true>(
                #[inline(always)]
                |m| splat(weights[m]),
                splat(T::MINUS_TWO),
                row(HERE),
                #[inline(always)]
                |m| row(ahead + m),
                #[inline(always)]
                |m| row(behind + m),
            );
            value = Added::put(value, derivative);
        }
        value
    }
}

/// The one-sided sum of `terms`, each a weight and a slice of values, at the points `here`.
#[inline(always)]
fn one_sided<T: Number, P: Put>(out: &mut [T], here: &[T], terms: &[(T, &[T])], negative: bool) {
    let blocks = out.chunks_mut(BLOCK).zip(here.chunks(BLOCK));
    for (block, (out, here)) in blocks.enumerate() {
        let mut sums = [T::ZERO; BLOCK];
        for (q, (weight, there)) in terms.iter().enumerate() {
            let there = &there[block * BLOCK..][..here.len()];
            for ((sum, there), here) in sums.iter_mut().zip(there).zip(here) {
                let term = *there - *here;
                *sum = if q == 0 {
                    *weight * term
                } else {
                    term.fused(*weight, *sum)
                };
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = P::put(*out, if negative { -sum } else { sum });
        }
    }
}

/// Computes the points near the ends of rows.
#[inline(always)]
fn row_ends<T: Number, P: Put, const R: usize, const SECOND: bool>(
    stencil: &Stencil<'_, T>,
    f: &[T],
    out: &mut [T],
) {
    let n = stencil.shape.nx;
    // A very short row has fewer points.
    let points = R.min(n);
    if let Beyond::Nothing { weights, apart } = stencil.beyond {
        for (f, out) in f.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
            for p in (0..points).chain(n - points..n) {
                let (terms, negative) = stencil.end_terms(weights, apart, p);
                let mut sum = None;
                for (weight, q) in terms {
                    let term = f[q] - f[p];
                    sum = Some(match sum {
                        None => weight * term,
                        Some(sum) => term.fused(weight, sum),
                    });
                }
                let sum = sum.unwrap_or(T::ZERO);
                out[p] = P::put(out[p], if negative { -sum } else { sum });
            }
        }
        return;
    }
    let central = Central::<T, P, R, SECOND>::of(from_fn(|m| stencil.weights[m]));
    // The value at point `m`, counted from 0, beyond the first or the last end of the row `f`.
    let beyond = |f: &[T], end: usize, m: usize| match &stencil.beyond {
        Beyond::Value(value) => *value,
        Beyond::Points(points) => f[points[end][m]],
        Beyond::Nothing { .. } => unreachable!("one-sided stencils stay inside"),
    };
    if n >= 2 * R {
        // Each row has two windows: one from `R` points before its first point on, and one up to `R`
        // points after its last. Several rows are computed together, because a window's stores reach
        // the cache some time later.
        let mut windows = [T::ZERO; WINDOWS];
        let mut sums = [T::ZERO; WINDOWS];
        let rows = WINDOWS / (6 * R);
        for (f, out) in f.chunks(rows * n).zip(out.chunks_mut(rows * n)) {
            let len = f.len() / n * 6 * R - 2 * R;
            for (f, windows) in f.chunks_exact(n).zip(windows.chunks_exact_mut(6 * R)) {
                let (first, last) = windows.split_at_mut(3 * R);
                for m in 0..R {
                    first[R - 1 - m] = beyond(f, 0, m);
                    last[2 * R + m] = beyond(f, 1, m);
                }
                first[R..].copy_from_slice(&f[..2 * R]);
                last[..2 * R].copy_from_slice(&f[n - 2 * R..]);
            }
            // All windows are one line. The sums between them are of no use.
            let sums = &mut sums[..len];
            let at = |m: isize| &windows[R.wrapping_add_signed(m)..][..len];
            fill(sums, rows_of::<_, R>(at), &central);
            for (out, sums) in out.chunks_exact_mut(n).zip(sums.chunks(6 * R)) {
                out[..R].copy_from_slice(&sums[..R]);
                out[n - R..].copy_from_slice(&sums[3 * R..][..R]);
            }
        }
        return;
    }
    for (f, out) in f.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
        // The window begins `R` points before the first point it computes.
        let mut window = [T::ZERO; WINDOW];
        for first in [0, n - points] {
            for (q, point) in window[..points + 2 * R].iter_mut().enumerate() {
                *point = match (first + q).checked_sub(R) {
                    None => beyond(f, 0, R - 1 - first - q),
                    Some(q) if q < n => f[q],
                    Some(q) => beyond(f, 1, q - n),
                };
            }
            let at = |m: isize| &window[R.wrapping_add_signed(m)..][..points];
            fill(&mut out[first..][..points], rows_of::<_, R>(at), &central);
        }
    }
}
