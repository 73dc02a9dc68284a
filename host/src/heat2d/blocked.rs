//! Several iterations in one pass over memory, on the CPU.
//!
//! A tile of the plate goes through `depth` iterations before the next tile. Level t has the values
//! after t iterations. Two rows of level t are computed together, as soon as the four rows of level
//! t - 1 around them exist. A scratch in the cache keeps four rows of each level:
//!
//! ```text
//!        row  r-4  r-3  r-2  r-1   r   r+1
//! level 0                x    x    x    x    from the old plate
//! level 1           x    x    x'   x'        a step computes the marked rows
//! level 2      x    x    x'   x'
//! level 3           x'   x'                  into the new plate
//! ```
//!
//! At its ends a tile computes `depth` - t rows of level t that its neighbours compute too. At its
//! sides it is `depth` columns wider than its output. The outermost of those columns keep the old
//! plate's values, as at a Dirichlet end. The error of that moves inwards by one column per level,
//! and so never reaches the output.
//!
//! Each point is computed by the formula from the same numbers as in single iterations, wherever
//! the tiles begin, so the bits are the same.
#![forbid(unsafe_code)]

use super::ends::unknowns_along;
use crate::grid::{Boundary, Grid2};
use crate::simd::{Formula, InVectors, Value, dispatched, fill_memory, fill_two, fill_vectors};
use crate::streaming::{Streaming, streamed};
use crate::{Axis, Shape2};
use pulp::{Simd, WithSimd};
use std::ops::Range;

/// A type of temperatures: `f32` or `f64`.
pub trait Temperature: InVectors + From<f32> + PartialOrd {}

impl<T: InVectors + From<f32> + PartialOrd> Temperature for T {}

/// The number of kept rows of a level: two rows are computed from four.
pub(super) const KEPT: usize = 4;

/// The number of elements that fill whole cache lines, in either type.
const LINE: usize = 16;

/// The constant part of iterations: the grid, of at least 3 × 3 points, the source, of the same
/// shape, and the kind of iteration. Only the library makes one, after its checks.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a, T> {
    pub(super) grid: Grid2,
    pub(super) source: Option<&'a [T]>,
    /// The ratio of a step in time; without it an iteration is Jacobi's.
    pub(super) ratio: Option<T>,
}

impl<'a, T> Setup<'a, T> {
    /// The shape.
    pub(super) const fn shape(&self) -> Shape2 {
        self.grid.shape()
    }

    /// The rows with computed points.
    pub(super) fn swept_rows(&self) -> Range<usize> {
        unknowns_along(&self.grid, Axis::Y)
    }

    /// The columns with computed points.
    pub(super) fn swept_columns(&self) -> Range<usize> {
        unknowns_along(&self.grid, Axis::X)
    }

    /// Some columns of a row of a field of the plate's shape.
    #[inline(always)]
    fn part(&self, field: &'a [T], row: usize, columns: &Range<usize>) -> &'a [T] {
        &field[row * self.shape().nx..][columns.clone()]
    }
}

/// The division of a pass into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// Iterations of the pass, at least one.
    pub(super) depth: usize,
    /// The number of columns that a tile writes, at least one.
    pub(super) columns: usize,
    /// Whether the new plate is written by non-temporal stores.
    pub(super) streaming: bool,
    /// Whether products with subnormal results are avoided.
    pub(super) avoids_subnormals: bool,
}

impl Cut {
    /// The distance between rows of the scratch, in elements.
    const fn stride(&self, nx: usize) -> usize {
        let wide = self.columns.saturating_add(2 * self.depth);
        (if wide < nx { wide } else { nx }).next_multiple_of(LINE)
    }

    /// The number of scratch elements for a tile of plates `nx` wide.
    pub(super) const fn scratch(&self, nx: usize) -> usize {
        match self.depth {
            0 | 1 => 0,
            // And some for the alignment.
            depth => (depth - 1) * KEPT * self.stride(nx) + 2 * LINE,
        }
    }
}

/// Iterates `old` into the rows of `new`, which begin with row `first` of the plate, by tiles side
/// by side. `scratch` has as many elements as the cut needs, with any values.
pub(super) fn iterate_rows<T: Temperature>(
    setup: &Setup<'_, T>,
    cut: &Cut,
    first: usize,
    old: &[T],
    new: &mut [T],
    scratch: &mut [T],
) {
    let swept = setup.swept_columns();
    for start in swept.clone().step_by(cut.columns) {
        let columns = start..start.saturating_add(cut.columns).min(swept.end);
        let rows = Rows {
            setup,
            cut,
            first,
            old,
        };
        if cut.streaming {
            streamed(|stream| rows.iterate(columns, new, scratch, Some(stream)));
        } else {
            rows.iterate(columns, new, scratch, None);
        }
    }
}

/// Whole rows of the new plate, beginning with row `first`, to be computed.
struct Rows<'a, T> {
    setup: &'a Setup<'a, T>,
    cut: &'a Cut,
    first: usize,
    old: &'a [T],
}

impl<T: Temperature> Rows<'_, T> {
    /// Computes some columns of `new`.
    fn iterate<'out>(
        &self,
        columns: Range<usize>,
        new: &'out mut [T],
        scratch: &mut [T],
        stream: Option<&Streaming<'out>>,
    ) {
        let &Self {
            setup,
            cut,
            first,
            old,
        } = self;
        let Shape2 { nx, .. } = setup.shape();
        let read = columns.start.saturating_sub(cut.depth)..nx.min(columns.end + cut.depth);
        // The second element of each row begins a cache line, and so do most stores.
        let aligned = match cut.depth {
            1 => 0,
            _ => {
                scratch
                    .as_ptr()
                    .align_offset(LINE * size_of::<T>())
                    .min(LINE)
                    + LINE
                    - 1
            }
        };
        let tile = Tile {
            setup,
            old,
            depth: cut.depth,
            rows: first..first + new.len() / nx,
            columns,
            read,
            new,
            stride: cut.stride(nx),
            scratch: &mut scratch[aligned..],
            stream,
        };
        match (setup.source, setup.ratio, cut.avoids_subnormals) {
            (None, None, false) => tile.compute::<_, false>(Jacobi::<false>),
            (None, None, true) => tile.compute::<_, false>(Jacobi::<true>),
            (Some(_), None, false) => tile.compute::<_, true>(Jacobi::<false>),
            (Some(_), None, true) => tile.compute::<_, true>(Jacobi::<true>),
            (None, Some(ratio), _) => tile.compute::<_, false>(Step { ratio }),
            (Some(_), Some(ratio), _) => tile.compute::<_, true>(Step { ratio }),
        }
    }
}

/// A tile to be computed.
struct Tile<'a, 'out, T> {
    setup: &'a Setup<'a, T>,
    old: &'a [T],
    depth: usize,
    /// The rows and columns of the new plate that it writes.
    rows: Range<usize>,
    columns: Range<usize>,
    /// The rows and columns of the old plate that it reads.
    read: Range<usize>,
    /// The rows of the new plate, with all columns.
    new: &'out mut [T],
    stride: usize,
    scratch: &'a mut [T],
    stream: Option<&'a Streaming<'out>>,
}

impl<T: Temperature> Tile<'_, '_, T> {
    /// Computes the tile in vectors. Each update is a function of its own: one function of all of
    /// them would be the largest of the library, and slow to compile.
    fn compute<U: Update<T>, const SOURCE: bool>(self, update: U) {
        struct Compute<'a, 'out, T, U, const SOURCE: bool> {
            tile: Tile<'a, 'out, T>,
            update: U,
        }

        impl<T, U, const SOURCE: bool> WithSimd for Compute<'_, '_, T, U, SOURCE>
        where
            T: Temperature,
            U: Update<T>,
        {
            type Output = ();

            #[inline(always)]
            fn with_simd<S: Simd>(self, simd: S) {
                let Self { tile, update } = self;
                if tile.depth == 1 {
                    tile.iterate_once::<S, U, SOURCE>(simd, update);
                } else {
                    tile.iterate_levels::<S, U, SOURCE>(simd, update);
                }
            }
        }

        dispatched(Compute::<T, U, SOURCE> { tile: self, update });
    }

    /// Whether the first and the last column that the tile reads are Neumann ends.
    #[inline(always)]
    fn neumann(&self) -> [bool; 2] {
        let ends = self.setup.grid.ends(Axis::X);
        [
            self.read.start == 0 && ends[0] == Boundary::Neumann,
            self.read.end == self.setup.shape().nx && ends[1] == Boundary::Neumann,
        ]
    }

    /// The columns of the new plate that the tile computes.
    #[inline(always)]
    fn in_plate(&self) -> Computed {
        let nx = self.setup.shape().nx;
        let inner = self.columns.start.max(1)..self.columns.end.min(nx - 1);
        let [left, right] = self.neumann();
        Computed {
            read: inner.start - self.read.start..inner.end - self.read.start,
            inner,
            left: left && self.columns.start == 0,
            right: right && self.columns.end == nx,
            last: self.read.len() - 1,
        }
    }

    /// The columns of a row of the scratch that the tile computes.
    #[inline(always)]
    fn in_scratch(&self) -> Computed {
        let last = self.read.len() - 1;
        let [left, right] = self.neumann();
        Computed {
            inner: 1..last,
            read: 1..last,
            left,
            right,
            last,
        }
    }

    /// A single iteration, without a scratch.
    #[inline(always)]
    fn iterate_once<S: Simd, U: Update<T>, const SOURCE: bool>(self, simd: S, update: U) {
        let in_plate = self.in_plate();
        let swept = self.setup.swept_rows();
        let level_before = Level {
            setup: self.setup,
            swept: &swept,
            old: self.old,
            read: &self.read,
            kept: None,
        };
        for (row, out) in self
            .rows
            .zip(self.new.chunks_exact_mut(self.setup.shape().nx))
        {
            let around = level_before.around::<SOURCE>(row);
            in_plate.row::<T, S, U, SOURCE, true>(simd, update, &around, out, self.stream);
        }
    }

    #[inline(always)]
    fn iterate_levels<S: Simd, U: Update<T>, const SOURCE: bool>(self, simd: S, update: U) {
        let (in_scratch, in_plate) = (self.in_scratch(), self.in_plate());
        let Self {
            setup,
            old,
            depth,
            rows,
            read,
            new,
            stride,
            scratch,
            stream,
            ..
        } = self;
        let nx = setup.shape().nx;
        let swept = setup.swept_rows();
        let width = read.len();
        let kept = |level: usize, row: usize| ((level - 1) * KEPT + row % KEPT) * stride;
        let mut new_rows = new.chunks_exact_mut(nx);
        // The first row of a level that the next levels need, and the one after the last.
        let first = |level: usize| (rows.start + level).saturating_sub(depth).max(swept.start);
        let end = |level: usize| (rows.end + depth - level).min(swept.end);

        for step in first(1) / 2..=(rows.end - 1 + depth) / 2 {
            for level in 1..=depth {
                // Each level is a row behind the one before. At an end one row may be left.
                let two = (2 * step + 2).saturating_sub(level);
                let two = two.saturating_sub(2).max(first(level))..two.min(end(level));
                if two.is_empty() {
                    continue;
                }
                let (before, here) = if level < depth {
                    scratch.split_at_mut(kept(level, 0))
                } else {
                    (&mut *scratch, &mut [][..])
                };
                let level_before = Level {
                    setup,
                    swept: &swept,
                    old,
                    read: &read,
                    kept: (level > 1).then(|| (&before[kept(level - 1, 0)..], stride)),
                };
                if level < depth {
                    let place = |row: usize| row % KEPT * stride;
                    for row in two.clone() {
                        let (out, old) = (&mut here[place(row)..], setup.part(old, row, &read));
                        (out[0], out[width - 1]) = (old[0], old[width - 1]);
                    }
                    if two.len() == 1 {
                        let out = &mut here[place(two.start)..][..width];
                        let around = level_before.around::<SOURCE>(two.start);
                        in_scratch.row::<T, S, U, SOURCE, false>(simd, update, &around, out, None);
                        continue;
                    }
                    let (one, other) = (place(two.start), place(two.start + 1));
                    let places = [one..one + width, other..other + width];
                    let Ok(outs) = here.get_disjoint_mut(places) else {
                        unreachable!("two rows of a level are distinct and in the scratch")
                    };
                    let around = level_before.around_two::<SOURCE>(two.start);
                    in_scratch.two_rows::<T, S, U, SOURCE>(simd, update, &around, outs);
                    continue;
                }

                if two.len() == 2 && stream.is_none() {
                    let (Some(one), Some(other)) = (new_rows.next(), new_rows.next()) else {
                        return;
                    };
                    let around = level_before.around_two::<SOURCE>(two.start);
                    in_plate.two_rows::<T, S, U, SOURCE>(simd, update, &around, [one, other]);
                    continue;
                }
                for row in two {
                    let Some(out) = new_rows.next() else { return };
                    let around = level_before.around::<SOURCE>(row);
                    in_plate.row::<T, S, U, SOURCE, false>(simd, update, &around, out, stream);
                }
            }
        }
    }
}

/// The columns of a row that a tile computes.
struct Computed {
    /// The columns that are not ends. There may be none.
    inner: Range<usize>,
    /// Where these columns are in the rows that the tile reads.
    read: Range<usize>,
    /// Whether the first and the last column are computed: as Neumann ends.
    left: bool,
    right: bool,
    /// The last column of the rows that the tile reads.
    last: usize,
}

impl Computed {
    /// Computes a row; `ONCE` says that it is one of a single iteration.
    #[inline(always)]
    fn row<'out, T, S, U, const SOURCE: bool, const ONCE: bool>(
        &self,
        simd: S,
        update: U,
        around: &Around<'_, T>,
        out: &'out mut [T],
        stream: Option<&Streaming<'out>>,
    ) where
        T: Temperature,
        S: Simd,
        U: Update<T>,
    {
        self.ends::<T, U, SOURCE>(update, around, out);
        if self.inner.is_empty() {
            return;
        }
        let out = &mut out[self.inner.clone()];
        let (rows, formula) = around.of::<U, SOURCE>(update, self.read.clone());
        match stream {
            None if ONCE => fill_memory(simd, out, rows, &formula, NORTH),
            None => fill_vectors(simd, out, rows, &formula),
            Some(stream) => {
                let fresh = ONCE.then_some(NORTH);
                stream.fill(out, rows[0], rows, &formula, fresh);
            }
        }
    }

    /// Computes two neighbouring rows.
    #[inline(always)]
    fn two_rows<T, S, U, const SOURCE: bool>(
        &self,
        simd: S,
        update: U,
        around: &AroundTwo<'_, T>,
        [one, two]: [&mut [T]; 2],
    ) where
        T: Temperature,
        S: Simd,
        U: Update<T>,
    {
        let [around_one, around_two] = around.each();
        self.ends::<T, U, SOURCE>(update, &around_one, one);
        self.ends::<T, U, SOURCE>(update, &around_two, two);
        if self.inner.is_empty() {
            return;
        }
        let rows = around.of::<SOURCE>(self.read.clone());
        let outs = [&mut one[self.inner.clone()], &mut two[self.inner.clone()]];
        let formula = Swept::<U, SOURCE>(update);
        fill_two(simd, outs, rows, AroundTwo::<T>::USES, &formula);
    }

    /// Computes the Neumann ends of a row.
    #[inline(always)]
    fn ends<T: Temperature, U: Update<T>, const SOURCE: bool>(
        &self,
        update: U,
        around: &Around<'_, T>,
        out: &mut [T],
    ) {
        if self.left {
            out[0] = around.mirrored::<U, SOURCE>(update, 0, 1);
        }
        if self.right {
            let end = out.len() - 1;
            out[end] = around.mirrored::<U, SOURCE>(update, self.last, self.last - 1);
        }
    }
}

/// The rows of one level, as inputs of the next.
struct Level<'a, T> {
    setup: &'a Setup<'a, T>,
    /// The rows with computed points.
    swept: &'a Range<usize>,
    old: &'a [T],
    /// The columns of the tile.
    read: &'a Range<usize>,
    /// The level's rows in the scratch, and the distance between them; none for level 0.
    kept: Option<(&'a [T], usize)>,
}

impl<'a, T> Level<'a, T> {
    /// A row; the old plate's if the row has a Dirichlet end only.
    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        match self.kept {
            Some((kept, stride)) if self.swept.contains(&row) => {
                &kept[row % KEPT * stride..][..self.read.len()]
            }
            _ => self.setup.part(self.old, row, self.read),
        }
    }

    /// The row south of `row`. Beyond an end, which is Neumann's if its points are computed, lies
    /// the mirror image.
    #[inline(always)]
    fn south(&self, row: usize) -> &'a [T] {
        self.row(if row == 0 { 1 } else { row - 1 })
    }

    /// The row north of `row`, likewise.
    #[inline(always)]
    fn north(&self, row: usize) -> &'a [T] {
        let ny = self.setup.shape().ny;
        self.row(if row == ny - 1 { ny - 2 } else { row + 1 })
    }

    /// The inputs of a row.
    #[inline(always)]
    fn around<const SOURCE: bool>(&self, row: usize) -> Around<'a, T> {
        Around {
            south: self.south(row),
            middle: self.row(row),
            north: self.north(row),
            source: self.source::<SOURCE>(row),
        }
    }

    /// The inputs of `row` and of the next row.
    #[inline(always)]
    fn around_two<const SOURCE: bool>(&self, row: usize) -> AroundTwo<'a, T> {
        let next = row + 1;
        AroundTwo {
            rows: [
                self.south(row),
                self.row(row),
                self.row(next),
                self.north(next),
            ],
            sources: [self.source::<SOURCE>(row), self.source::<SOURCE>(next)],
        }
    }

    /// The source of a row; empty where the plate has none.
    #[inline(always)]
    fn source<const SOURCE: bool>(&self, row: usize) -> &'a [T] {
        match self.setup.source {
            Some(source) if SOURCE => self.setup.part(source, row, self.read),
            _ => &[],
        }
    }
}

/// The northern row's place among the inputs of the formula.
const NORTH: usize = 2;

/// The rows around one that is computed, and its source if there is one.
struct Around<'a, T> {
    south: &'a [T],
    middle: &'a [T],
    north: &'a [T],
    source: &'a [T],
}

impl<'a, T: Temperature> Around<'a, T> {
    /// The inputs of the points in `inner`, and their formula.
    #[inline(always)]
    fn of<U: Update<T>, const SOURCE: bool>(
        &self,
        update: U,
        inner: Range<usize>,
    ) -> ([&'a [T]; 6], Swept<U, SOURCE>) {
        let count = inner.len();
        let middle = &self.middle[inner.start - 1..][..count + 2];
        let north = &self.north[inner.clone()];
        let rows = [
            &middle[..count],
            &middle[2..],
            north,
            &self.south[inner.clone()],
            // Any row will do where no source is read.
            if SOURCE { &self.source[inner] } else { north },
            &middle[1..=count],
        ];
        (rows, Swept(update))
    }

    /// The point `at` of a Neumann end, whose mirror image is `inside`.
    #[inline(always)]
    fn mirrored<U: Update<T>, const SOURCE: bool>(&self, update: U, at: usize, inside: usize) -> T {
        let inside = self.middle[inside];
        let sum = (inside + inside) + (self.north[at] + self.south[at]);
        let sum = if SOURCE { sum + self.source[at] } else { sum };
        update.of(|number| number, self.middle[at], sum)
    }
}

/// The inputs of two rows that are computed together.
struct AroundTwo<'a, T> {
    /// The row south of them, the two rows, and the row north of them.
    rows: [&'a [T]; 4],
    /// Their sources; empty where the plate has none.
    sources: [&'a [T]; 2],
}

impl<'a, T: Temperature> AroundTwo<'a, T> {
    /// For each of the two rows: where [`of`](Self::of) has put the inputs of [`Swept`].
    const USES: [[usize; 6]; 2] = [[1, 3, 5, 0, 8, 2], [4, 6, 7, 2, 9, 5]];

    /// The inputs of the columns `inner` of both rows. The order is: the southern row; of the first
    /// row the western neighbours, the points themselves and the eastern neighbours; the same of the
    /// second row; the northern row; the two sources.
    #[inline(always)]
    fn of<const SOURCE: bool>(&self, inner: Range<usize>) -> [&'a [T]; 10] {
        let count = inner.len();
        let [south, one, two, north] = self.rows;
        let (south, north) = (&south[inner.clone()], &north[inner.clone()]);
        let one = &one[inner.start - 1..][..count + 2];
        let two = &two[inner.start - 1..][..count + 2];
        let [source, source_of_two] = if SOURCE {
            [&self.sources[0][inner.clone()], &self.sources[1][inner]]
        } else {
            // Any row will do where no source is read.
            [north, north]
        };
        [
            south,
            &one[..count],
            &one[1..=count],
            &one[2..],
            &two[..count],
            &two[1..=count],
            &two[2..],
            north,
            source,
            source_of_two,
        ]
    }

    /// The inputs of the first row, and those of the second.
    #[inline(always)]
    fn each(&self) -> [Around<'a, T>; 2] {
        let [south, one, two, north] = self.rows;
        let [source, source_of_two] = self.sources;
        [
            Around {
                south,
                middle: one,
                north: two,
                source,
            },
            Around {
                south: one,
                middle: two,
                north,
                source: source_of_two,
            },
        ]
    }
}

/// The update of a point.
trait Update<T>: Copy {
    /// The new value of a point with the value `here`, from the sum of its neighbours and its
    /// source.
    fn of<V: Value>(&self, splat: impl Fn(T) -> V, here: V, sum: V) -> V;
}

/// A Jacobi iteration: the mean of the neighbours, without products with subnormal results if those
/// are slow.
#[derive(Clone, Copy)]
struct Jacobi<const SUBNORMALS_ARE_SLOW: bool>;

impl<T: From<f32>, const SUBNORMALS_ARE_SLOW: bool> Update<T> for Jacobi<SUBNORMALS_ARE_SLOW> {
    #[inline(always)]
    fn of<V: Value>(&self, splat: impl Fn(T) -> V, _: V, sum: V) -> V {
        match SUBNORMALS_ARE_SLOW {
            true => sum.quarter(),
            false => sum * splat(T::from(0.25)),
        }
    }
}

/// A step in time.
#[derive(Clone, Copy)]
struct Step<T> {
    ratio: T,
}

impl<T: From<f32> + Copy> Update<T> for Step<T> {
    #[inline(always)]
    fn of<V: Value>(&self, splat: impl Fn(T) -> V, here: V, sum: V) -> V {
        let difference = here.fused(splat(T::from(-4.0)), sum);
        difference.fused(splat(self.ratio), here)
    }
}

/// A point from its neighbours (west, east, north, south), its source if there is one, and its old
/// value.
struct Swept<U, const SOURCE: bool>(U);

impl<T: From<f32>, U: Update<T>, const SOURCE: bool> Formula<T> for Swept<U, SOURCE> {
    #[inline(always)]
    fn at<V: Value>(&self, splat: impl Fn(T) -> V, _: V, row: impl Fn(usize) -> V) -> V {
        let sum = (row(1) + row(0)) + (row(2) + row(3));
        let sum = if SOURCE { sum + row(4) } else { sum };
        self.0.of(splat, row(5), sum)
    }
}
