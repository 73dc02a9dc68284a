//! The march of all stencils: row by row in two dimensions, plane by plane in three.
//!
//! - A thread has the points of one access of 16 bytes, 4 of f32 or 2 of f64, or one point if rows
//!   are not whole vectors. It marches through `segment` points of the slowest axis and keeps the
//!   values of its fields on that axis, up to the radius, in registers: each point is loaded once
//!   for them, and the next is in flight while one is computed.
//! - All loads of a step come before its arithmetic, so they are in flight together: fields that
//!   are read only at the point itself, then the neighbouring rows in the plane, then the points
//!   beside the thread's own in its row.
//! - Neighbours along x are the thread's own points or in the vectors beside them; neighbours off
//!   the axes and, in three dimensions, along y are loaded where they are used. Other threads of
//!   the block have loaded most of them, so they come from the first-level cache.
//! - A place beyond an end has the value of another point or a fixed value. The image of a row or
//!   plane is looked up once; along x the threads at the ends load point by point. The arithmetic
//!   is the same everywhere.
//! - There is no shared memory and no barrier. Results are written by streaming stores.
//!
//! Bytes: each input is read once and each output written once. For a field with radius r the
//! second-level cache delivers a further `2 r / 8` of it for rows beside the block's and
//! `2 r / segment` for planes.

use crate::boundary::{Layout, Place, Region};
use crate::lanes::{Lanes, each};
use crate::point::{Neighbourhood, PointUpdate, overwritten, require_over_past};
use crate::reach::{MAX_RADIUS, Reach, furthest};
use crate::value::Real;
use cuda_std::thread;

/// Threads of a block along x and y, in two dimensions.
pub const BLOCK_2D: [u32; 2] = [64, 4];

/// Threads of a block along x and y, in three dimensions.
pub const BLOCK_3D: [u32; 2] = [32, 8];

/// The most points along an axis.
pub const MAX_EXTENT: u32 = 1 << 30;

/// The most neighbouring rows, of all fields together, that are loaded before the arithmetic.
const MAX_ROWS: usize = 8;

/// The planes on either side and the point's own.
const WINDOW: usize = 2 * MAX_RADIUS + 1;

/// Threads of a block along x and y.
#[must_use]
pub const fn block(dimensions: usize) -> [u32; 2] {
    if dimensions == 2 { BLOCK_2D } else { BLOCK_3D }
}

/// The geometry of a launch.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x and y.
    pub block: [u32; 2],
    /// Rows, or planes, that a block goes through.
    pub segment: u32,
}

/// The launch for fields of `extents`, with vectors of `points` points if rows are whole vectors,
/// for updates that read up to `radius` points away along the slowest axis, on a device with this
/// many multiprocessors.
///
/// Marches are short if longer ones would leave a multiprocessor with fewer blocks than it can
/// hold, since these hide the latency of each other's loads.
///
/// `None` for an extent of 0 or above [`MAX_EXTENT`], for planes (in two dimensions: rows) of 2³¹
/// points or more, and for more blocks than a grid can have.
#[cfg(not(target_arch = "nvptx64"))]
#[must_use]
pub fn blocks(
    dimensions: usize,
    extents: [usize; 3],
    points: usize,
    radius: usize,
    multiprocessors: usize,
) -> Option<Blocks> {
    /// Blocks that a multiprocessor holds at a time.
    const AT_ONCE: usize = 4;
    /// The longest march that is chosen so that all blocks run at the same time.
    const SHORT: usize = 8;
    /// In three dimensions, blocks per multiprocessor that keep all multiprocessors busy to the
    /// end.
    const ENOUGH: usize = 32;
    /// In three dimensions, the most planes of a march per plane of the radius: its ends then add a
    /// third to the planes that are read.
    const PER_RADIUS: usize = 6;
    /// The most blocks of a grid along y and z.
    const MOST: usize = 65_535;

    let countable = |extent: &usize| (1..=MAX_EXTENT as usize).contains(extent);
    if !extents.iter().all(countable) {
        return None;
    }
    let [nx, ny, nz] = extents;
    let per_thread = if nx.is_multiple_of(points) { points } else { 1 };
    let block = block(dimensions);
    let columns = nx.div_ceil(block[0] as usize * per_thread);
    let lines = block[1] as usize;
    let rows = ny.div_ceil(lines);
    // The number of blocks if marches have one step, and the march with which all blocks run at the
    // same time.
    let most = (columns * rows).saturating_mul(nz);
    let multiprocessors = multiprocessors.max(1);
    let short = most.div_ceil(AT_ONCE * multiprocessors).max(1);
    let (rows, segments, segment, plane) = if dimensions == 2 {
        // The rows read at the ends of a march come from the caches, so marches of about that many
        // rows suffice.
        let longest = (2 * radius).max(3);
        let segment = short.min(longest).max(rows.div_ceil(MOST));
        (ny.div_ceil(segment * lines), 1, segment, nx)
    } else {
        let longest = PER_RADIUS * radius.max(1);
        let segment = if short <= SHORT {
            short
        } else {
            (most / (ENOUGH * multiprocessors)).clamp(longest.min(SHORT), longest)
        };
        let segment = segment.max(nz.div_ceil(MOST));
        (rows, nz.div_ceil(segment), segment, nx.checked_mul(ny)?)
    };
    if plane >= 1 << 31 || rows > MOST || u32::try_from(columns).is_err() {
        return None;
    }
    let grid = [columns, rows, segments];
    Some(Blocks {
        grid: grid.map(|extent| extent as u32),
        block,
        segment: segment as u32,
    })
}

/// The position of a thread and the values that it has loaded.
struct Thread<
    'a,
    T,
    U,
    const INPUTS: usize,
    const OUTPUTS: usize,
    const P: usize,
    const INNER: bool,
> {
    inputs: [*const T; INPUTS],
    layout: &'a Layout<T, INPUTS>,
    /// The x and y of the thread's first point.
    i: u32,
    j: u32,
    /// The position of the march on the slowest axis.
    slow: u32,
    /// Points of a row.
    nx: u32,
    /// Elements from one step of the march to the next.
    pitch: u32,
    /// The values of each field along the slowest axis.
    window: [[Lanes<T, P>; WINDOW]; INPUTS],
    /// In three dimensions, the neighbouring rows in the plane: by distance, south and north.
    rows: [[[Lanes<T, P>; 2]; MAX_RADIUS]; INPUTS],
    /// The values beside the thread's points, the nearest first.
    west: [[T; MAX_RADIUS]; INPUTS],
    east: [[T; MAX_RADIUS]; INPUTS],
    update: core::marker::PhantomData<U>,
}

impl<
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
    const INPUTS: usize,
    const OUTPUTS: usize,
    const P: usize,
    const INNER: bool,
> Thread<'_, T, U, INPUTS, OUTPUTS, P, INNER>
{
    /// The slowest axis.
    const SLOW: usize = U::DIMENSIONS - 1;

    /// Whether the neighbouring rows are loaded before the arithmetic: if all of them are in the
    /// field and the registers suffice.
    const AHEAD: bool = {
        let (mut rows, mut field) = (0, 0);
        while field < INPUTS {
            rows += 2 * Self::radius(field, 1);
            field += 1;
        }
        INNER && Self::SLOW == 2 && rows <= MAX_ROWS
    };

    /// The radius of field number `field` along an axis, or 0 if there is no such field.
    const fn radius(field: usize, axis: usize) -> usize {
        if field < INPUTS {
            U::REACH[field].radius(axis)
        } else {
            0
        }
    }

    /// The number of vectors on either side that the field's stencil reaches along x.
    const fn vectors(field: usize) -> usize {
        Self::radius(field, 0).div_ceil(P)
    }

    /// The thread's points of a field at position `slow` of the march.
    ///
    /// # Safety
    ///
    /// As [`step`]; the thread is in the field.
    #[inline(always)]
    unsafe fn column(&self, field: usize, slow: i32) -> Lanes<T, P> {
        let here = |stored| {
            let at = self.element(self.j, stored) + self.i as usize;
            // SAFETY: the row is in the field, and the thread's points are in the row.
            Lanes(unsafe { T::load(self.inputs[field].add(at)) })
        };
        // Places beyond the ends have a separate branch: a move into the registers of a load would
        // wait for the load. A field of radius 0 is never read beyond the ends.
        // equivalent mutant (logic): a place in the field is its own image
        if Self::radius(field, Self::SLOW) == 0 || (slow as u32) < self.layout.extents[Self::SLOW] {
            return here(slow as u32);
        }
        match self.layout.place(field, Self::SLOW, slow) {
            Place::Point(stored) => here(stored),
            Place::End(end) => Lanes::splat(self.layout.value(field, end)),
        }
    }

    /// The thread's points of a field that it overwrites.
    ///
    /// # Safety
    ///
    /// As [`step`]; the thread is in the field.
    #[inline(always)]
    unsafe fn own(&self, field: usize) -> Lanes<T, P> {
        let at = self.element(self.j, self.slow) + self.i as usize;
        // SAFETY: the row is in the field, and the thread's points are in the row. No other thread
        // writes them.
        Lanes(unsafe { T::load_own(self.inputs[field].add(at)) })
    }

    /// The first element of a row.
    #[inline(always)]
    fn element(&self, j: u32, slow: u32) -> usize {
        // In two dimensions j is 0.
        let within = j * self.nx;
        slow as usize * self.pitch as usize + within as usize
    }

    /// The value of a field in a row, at a place that may be beyond its ends: `row` is its first
    /// element, or the fixed value of the whole row.
    ///
    /// # Safety
    ///
    /// As [`step`]; the row is in the field.
    #[inline(always)]
    unsafe fn beside(&self, field: usize, row: Result<usize, T>, place: i32) -> T {
        match (self.layout.place(field, 0, place), row) {
            (Place::End(end), _) => self.layout.value(field, end),
            // SAFETY: the point is in the row.
            (Place::Point(i), Ok(row)) => unsafe {
                T::load::<1>(self.inputs[field].add(row + i as usize))[0]
            },
            (Place::Point(_), Err(value)) => value,
        }
    }

    /// Loads the values beside the thread's points. `INSIDE`: all of them are in the row.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn look_beside<const INSIDE: bool>(&mut self) {
        each!(FIELD < INPUTS, {
            // equivalent mutant (guard): of a field of radius 0 nothing is loaded
            if const { Self::radius(FIELD, 0) > 0 } {
                let row = self.element(self.j, self.slow);
                let nx = self.nx as usize;
                let i = self.i as usize;
                let reach = const { Self::vectors(FIELD) * P };
                // SAFETY: rows are whole vectors, and the conditions keep the loaded vectors in the
                // row.
                unsafe {
                    // equivalent mutant (guard: made `false`): loading them one by one gives the same values
                    // equivalent mutant (logic): as above
                    // equivalent mutant (comparison): as above
                    if INSIDE || i >= reach {
                        each!(V < Self::vectors(FIELD), {
                            let from = self.inputs[FIELD].add(row + i - (V + 1) * P);
                            let vector = T::load::<P>(from);
                            each!(E < P, {
                                // equivalent mutant (width: `MAX_RADIUS + 1`): the place is at most 7
                                self.west[FIELD][(V * P + E) % MAX_RADIUS] = vector[P - 1 - E];
                            });
                        });
                    } else {
                        each!(M < Self::radius(FIELD, 0), {
                            let place = i as i32 - 1 - M as i32;
                            self.west[FIELD][M] = self.beside(FIELD, Ok(row), place);
                        });
                    }
                    // equivalent mutant (guard: made `false`): loading them one by one gives the same values
                    // equivalent mutant (logic): as above
                    // equivalent mutant (comparison): as above
                    if INSIDE || i + P + reach <= nx {
                        each!(V < Self::vectors(FIELD), {
                            let from = self.inputs[FIELD].add(row + i + (V + 1) * P);
                            let vector = T::load::<P>(from);
                            each!(E < P, {
                                // equivalent mutant (width: `MAX_RADIUS + 1`): the place is at most 7
                                self.east[FIELD][(V * P + E) % MAX_RADIUS] = vector[E];
                            });
                        });
                    } else {
                        each!(M < Self::radius(FIELD, 0), {
                            let place = (i + P + M) as i32;
                            self.east[FIELD][M] = self.beside(FIELD, Ok(row), place);
                        });
                    }
                }
            }
        });
    }

    /// Loads the neighbouring rows in the plane. The compiler removes those that the update does
    /// not read.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn look_around(&mut self) {
        each!(FIELD < INPUTS, {
            // equivalent mutant (guard): `near` reads these rows only if they are `AHEAD`
            if const { Self::AHEAD } {
                each!(M < Self::radius(FIELD, 1), {
                    const DISTANCE: isize = M as isize + 1;
                    // SAFETY: forwarded word for word.
                    self.rows[FIELD][M] = unsafe {
                        [
                            self.straight(FIELD, -DISTANCE, 0),
                            self.straight(FIELD, DISTANCE, 0),
                        ]
                    };
                });
            }
        });
    }

    /// Fills the window before the first step of the march, at `begin`.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn fill(&mut self, begin: i32) {
        each!(FIELD < INPUTS, {
            // equivalent mutant (guard): `look_here` loads the value of a field of radius 0 again
            if const { Self::radius(FIELD, Self::SLOW) > 0 } {
                // SAFETY: forwarded word for word.
                unsafe {
                    self.window[FIELD][MAX_RADIUS] = self.column(FIELD, begin);
                    each!(M < Self::radius(FIELD, Self::SLOW), {
                        const DISTANCE: usize = M + 1;
                        self.window[FIELD][MAX_RADIUS - DISTANCE] =
                            self.column(FIELD, begin - DISTANCE as i32);
                        self.window[FIELD][MAX_RADIUS + DISTANCE] =
                            self.column(FIELD, begin + DISTANCE as i32);
                    });
                }
            }
        });
    }

    /// Loads the fields that have no neighbours along the march.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn look_here(&mut self) {
        each!(FIELD < INPUTS, {
            // equivalent mutant (guard): both loads return the stored value; tests/wave3d.rs checks in
            // the PTX which of them is used
            if const { overwritten::<T, U, INPUTS, OUTPUTS>(FIELD).is_some() } {
                // SAFETY: forwarded word for word.
                self.window[FIELD][MAX_RADIUS] = unsafe { self.own(FIELD) };
            // equivalent mutant (guard): the window of another field holds the same value
            } else if const { Self::radius(FIELD, Self::SLOW) == 0 } {
                // SAFETY: forwarded word for word.
                self.window[FIELD][MAX_RADIUS] = unsafe { self.column(FIELD, self.slow as i32) };
            }
        });
    }

    /// The values that enter the window when the march steps on from `slow`.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn next(&self, slow: i32) -> [Lanes<T, P>; INPUTS] {
        let mut next = [Lanes::splat(T::ZERO); INPUTS];
        each!(FIELD < INPUTS, {
            // equivalent mutant (guard): `shift` takes the values of these fields alone
            if const { Self::radius(FIELD, Self::SLOW) > 0 } {
                let place = slow + 1 + const { Self::radius(FIELD, Self::SLOW) } as i32;
                // SAFETY: forwarded word for word.
                next[FIELD] = unsafe { self.column(FIELD, place) };
            }
        });
        next
    }

    /// Shifts the window by one step of the march.
    #[inline(always)]
    fn shift(&mut self, next: [Lanes<T, P>; INPUTS]) {
        each!(FIELD < INPUTS, {
            let first = const { MAX_RADIUS - Self::radius(FIELD, Self::SLOW) };
            each!(M < Self::radius(FIELD, Self::SLOW), {
                self.window[FIELD][first + M] = self.window[FIELD][first + M + 1];
            });
            each!(M < Self::radius(FIELD, Self::SLOW), {
                self.window[FIELD][MAX_RADIUS + M] = self.window[FIELD][MAX_RADIUS + M + 1];
            });
            // equivalent mutant (guard): `look_here` loads the value of a field of radius 0 again
            if const { Self::radius(FIELD, Self::SLOW) > 0 } {
                self.window[FIELD][const { MAX_RADIUS + Self::radius(FIELD, Self::SLOW) }] =
                    next[FIELD];
            }
        });
    }

    /// The row at distance `dj` in the plane at distance `ds`: its first element, or the fixed
    /// value of the whole row.
    #[inline(always)]
    fn row(&self, field: usize, dj: isize, ds: isize) -> Result<usize, T> {
        let mut slow = self.slow;
        // equivalent mutant (guard): a place in the field is its own image
        if ds != 0 {
            match self
                .layout
                .place(field, Self::SLOW, self.slow as i32 + ds as i32)
            {
                Place::Point(stored) => slow = stored,
                Place::End(end) => return Err(self.layout.value(field, end)),
            }
        }
        let mut j = self.j;
        // equivalent mutant (guard: made `false`): a place in the field is its own image
        if INNER {
            j = (self.j as i32 + dj as i32) as u32;
        // equivalent mutant (guard): as above
        } else if dj != 0 {
            match self.layout.place(field, 1, self.j as i32 + dj as i32) {
                Place::Point(stored) => j = stored,
                Place::End(end) => return Err(self.layout.value(field, end)),
            }
        }
        Ok(self.element(j, slow))
    }

    /// A field at the thread's points in another row of the plane, or in another plane.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn straight(&self, field: usize, dj: isize, ds: isize) -> Lanes<T, P> {
        Lanes(match self.row(field, dj, ds) {
            // SAFETY: the row is in the field, and every row contains the thread's points.
            Ok(row) => unsafe { T::load(self.inputs[field].add(row + self.i as usize)) },
            Err(value) => [value; P],
        })
    }

    /// The same, also with an offset along x.
    ///
    /// # Safety
    ///
    /// As [`step`].
    #[inline(always)]
    unsafe fn off_axes(&self, field: usize, [di, dj, ds]: [isize; 3]) -> Lanes<T, P> {
        let row = self.row(field, dj, ds);
        // SAFETY: as above; places beside the thread's points go through `beside`.
        unsafe {
            let own: [T; P] = match row {
                Ok(row) => T::load(self.inputs[field].add(row + self.i as usize)),
                Err(value) => [value; P],
            };
            Lanes::of(
                #[inline(always)]
                |e| {
                    let p = e as isize + di;
                    // equivalent mutant (guard: made `false`): `beside` finds the same values
                    // equivalent mutant (comparison: in `p >= 0`): as above
                    // equivalent mutant (literal): as above
                    if p >= 0 && p < P as isize {
                        own[p as usize % P]
                    } else {
                        self.beside(field, row, self.i as i32 + p as i32)
                    }
                },
            )
        }
    }

    /// A field in the thread's own row.
    #[inline(always)]
    fn along_x(&self, field: usize, di: isize) -> Lanes<T, P> {
        let own = self.window[field][MAX_RADIUS].0;
        Lanes::of(
            #[inline(always)]
            |e| {
                let p = e as isize + di;
                if p < 0 {
                    // equivalent mutant (width: `MAX_RADIUS + 1`): the place is at most 7
                    self.west[field][(-1 - p) as usize % MAX_RADIUS]
                } else if p < P as isize {
                    own[p as usize % P]
                } else {
                    // equivalent mutant (width: `MAX_RADIUS + 1`): the place is at most 7
                    self.east[field][(p - P as isize) as usize % MAX_RADIUS]
                }
            },
        )
    }
}

impl<
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
    const INPUTS: usize,
    const OUTPUTS: usize,
    const P: usize,
    const INNER: bool,
> Neighbourhood<T> for Thread<'_, T, U, INPUTS, OUTPUTS, P, INNER>
{
    type Value = Lanes<T, P>;

    const REACH: &'static [Reach] = &U::REACH;

    #[inline(always)]
    fn value(&self, field: usize, [di, dj, dk]: [isize; 3]) -> Lanes<T, P> {
        let (dj, ds) = if Self::SLOW == 1 { (0, dj) } else { (dj, dk) };
        if di == 0 && dj == 0 {
            return self.window[field][(MAX_RADIUS as isize + ds) as usize];
        }
        if dj == 0 && ds == 0 {
            return self.along_x(field, di);
        }
        // SAFETY: a `Thread` is only constructed for a thread in the field.
        unsafe { self.off_axes(field, [di, dj, ds]) }
    }

    // As `value`, but only the required branch is compiled.
    #[inline(always)]
    fn near<const FIELD: usize, const DI: isize, const DJ: isize, const DK: isize>(
        &self,
    ) -> Lanes<T, P> {
        if const { DI == 0 && (Self::SLOW == 1 || DJ == 0) } {
            let ds = const { if Self::SLOW == 1 { DJ } else { DK } };
            self.window[FIELD][(MAX_RADIUS as isize + ds) as usize]
        // equivalent mutant (guard: made `false`): `value` does the same
        } else if const { DJ == 0 && DK == 0 } {
            self.along_x(FIELD, DI)
        // equivalent mutant (guard: made `false`): `straight` loads the same values here
        } else if const { Self::AHEAD && DI == 0 && DK == 0 } {
            // equivalent mutant (width): at most 4 rows on a side are `AHEAD`
            // equivalent mutant (comparison): `DJ` is not 0
            self.rows[FIELD][(DJ.unsigned_abs() - 1) % MAX_RADIUS][usize::from(DJ > 0)]
        // equivalent mutant (guard: made `false`): `value` loads the same values
        } else if const { DI == 0 } {
            // SAFETY: a `Thread` is only constructed for a thread in the field.
            unsafe { self.straight(FIELD, DJ, DK) }
        } else {
            self.value(FIELD, [DI, DJ, DK])
        }
    }

    #[inline(always)]
    fn splat(&self, number: T) -> Lanes<T, P> {
        Lanes::splat(number)
    }
}

/// One step of a stencil by the current thread of the launch: the body of the kernels of
/// [`stencil!`](crate::stencil). It computes the points of `region`, or of the whole field.
///
/// # Safety
///
/// As the kernels of [`stencil!`](crate::stencil). `P` is 1, or the points of a vector if rows are
/// whole vectors. Where an output is written over an input, both pointers are equal, and `region` is
/// `None`.
#[inline(always)]
pub unsafe fn step<T, U, const INPUTS: usize, const OUTPUTS: usize, const P: usize>(
    update: U,
    inputs: [*const T; INPUTS],
    outputs: [*mut T; OUTPUTS],
    layout: &Layout<T, INPUTS>,
    region: Option<Region>,
) where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    const {
        assert!(
            U::DIMENSIONS == 2 || U::DIMENSIONS == 3,
            "a stencil has 2 or 3 dimensions"
        );
        assert!(
            INPUTS >= OUTPUTS * (1 + U::PAST) && INPUTS <= 8 && OUTPUTS >= 1,
            "the inputs begin with the present of the outputs, and their past; at most 8"
        );
        require_over_past::<T, U, INPUTS, OUTPUTS>();
        let mut field = 0;
        while field < INPUTS {
            assert!(
                U::REACH[field].is_possible(),
                "a field is read up to 8 points away on the axes, and up to 2 off them"
            );
            field += 1;
        }
    }
    let [width, height] = block(U::DIMENSIONS);
    let i = (thread::block_idx_x() * width + thread::thread_idx_x()) * P as u32;
    let in_plane = U::DIMENSIONS == 2;
    let line = thread::block_idx_y() * height + thread::thread_idx_y();
    let (j, nth) = if in_plane {
        (0, line)
    } else {
        (line, thread::block_idx_z())
    };
    let [nx, ny, nz] = layout.extents;
    let Region { first, end: last } = region.unwrap_or(Region {
        first: [0; 3],
        end: [nx, ny, nz],
    });
    let slow = if in_plane { 1 } else { 2 };
    let begin = first[slow] + nth * layout.segment;
    let end = (begin + layout.segment).min(last[slow]);
    // equivalent mutant (comparison: in `begin >= end`): a march of no step writes nothing
    if i >= last[0] || begin >= end || (!in_plane && j >= last[1]) {
        return;
    }
    if region.is_some() && (i + P as u32 <= first[0] || (!in_plane && j < first[1])) {
        return;
    }
    let radius = const { furthest(&U::REACH, 1) as u32 };
    let columns = region.map(|region| [region.first[0], region.end[0]]);
    // SAFETY: forwarded word for word; the thread is in the field.
    unsafe {
        // equivalent mutant (guard: made `false`): a place in the field is its own image
        // equivalent mutant (logic: `||` made): as above
        // equivalent mutant (comparison: in `j >= radius`): as above
        // equivalent mutant (comparison: in `P > 1`): single points in the field find the same values
        // equivalent mutant (literal): as above
        if const { U::DIMENSIONS == 2 } || (P > 1 && j >= radius && ny - j > radius) {
            march::<T, U, INPUTS, OUTPUTS, P, true>(
                update,
                inputs,
                outputs,
                layout,
                [i, j],
                begin,
                end,
                columns,
            );
        } else {
            march::<T, U, INPUTS, OUTPUTS, P, false>(
                update,
                inputs,
                outputs,
                layout,
                [i, j],
                begin,
                end,
                columns,
            );
        }
    }
}

/// Returns `value`, hidden from the compiler: addresses computed from it are computed again in each
/// step of the march and take no register in between.
#[inline(always)]
#[must_use]
pub fn forgotten(value: u32) -> u32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let mut value = value;
        // SAFETY: a comment; it becomes no instruction and touches nothing.
        unsafe { core::arch::asm!("// {0}", inout(reg32) value, options(nomem, nostack)) };
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    value
}

/// Marches from `begin` to `end`. `INNER`: all rows that it reads are in the field. With `columns`
/// it writes the points from the first to before the second of them alone.
///
/// # Safety
///
/// As [`step`]; point (i, j) is in the field, and so are the positions from `begin` to before
/// `end`.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "those of the step, and its part")]
unsafe fn march<
    T,
    U,
    const INPUTS: usize,
    const OUTPUTS: usize,
    const P: usize,
    const INNER: bool,
>(
    update: U,
    inputs: [*const T; INPUTS],
    outputs: [*mut T; OUTPUTS],
    layout: &Layout<T, INPUTS>,
    [i, j]: [u32; 2],
    begin: u32,
    end: u32,
    columns: Option<[u32; 2]>,
) where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let [nx, ny, _] = layout.extents;
    let pitch = if U::DIMENSIONS == 2 { nx } else { nx * ny };
    let mut thread = Thread::<T, U, INPUTS, OUTPUTS, P, INNER> {
        inputs,
        layout,
        i,
        j,
        slow: begin,
        nx,
        pitch,
        window: [[Lanes::splat(T::ZERO); WINDOW]; INPUTS],
        rows: [[[Lanes::splat(T::ZERO); 2]; MAX_RADIUS]; INPUTS],
        west: [[T::ZERO; MAX_RADIUS]; INPUTS],
        east: [[T::ZERO; MAX_RADIUS]; INPUTS],
        update: core::marker::PhantomData,
    };
    // SAFETY: the thread is in the field.
    unsafe {
        thread.fill(begin as i32);
        let mut slow = begin;
        let reach = const { (furthest(&U::REACH, 0).div_ceil(P) * P) as u32 };
        // equivalent mutant (comparison): loading the values beside the points one by one gives the same values
        let inside = i >= reach && nx - i >= P as u32 + reach;
        // Threads without a point in the columns are gone.
        let whole = match columns {
            // equivalent mutant (comparison): a thread of one point has it in the columns, and a
            // vector is the same point by point
            Some([from, to]) if P > 1 => i >= from && i + P as u32 <= to,
            _ => true,
        };
        while slow < end {
            thread.slow = slow;
            thread.i = forgotten(i);
            // equivalent mutant (guard): the value stays the same
            // equivalent mutant (comparison): as above
            // equivalent mutant (literal): as above
            if U::DIMENSIONS == 3 {
                thread.j = forgotten(j);
            }
            // equivalent mutant (guard: made `true`): nothing reads them after the last step
            // equivalent mutant (comparison): as above
            let next = if slow + 1 < end {
                thread.next(slow as i32)
            } else {
                [Lanes::splat(T::ZERO); INPUTS]
            };
            thread.look_here();
            thread.look_around();
            // equivalent mutant (guard: made `false`): loading them one by one gives the same values
            if inside {
                thread.look_beside::<true>();
            } else {
                thread.look_beside::<false>();
            }
            let results = update.update(&thread);
            let at = thread.element(thread.j, slow) + thread.i as usize;
            each!(OUTPUT < OUTPUTS, {
                let out = outputs[OUTPUT].add(at);
                if whole {
                    T::store(out, results[OUTPUT].0);
                } else if let Some([from, to]) = columns {
                    each!(E < P, {
                        let i = thread.i + E as u32;
                        if i >= from && i < to {
                            T::store::<1>(out.add(E), [results[OUTPUT].0[E]]);
                        }
                    });
                }
            });
            thread.shift(next);
            slow += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, MAX_EXTENT, blocks};

    fn volume(n: usize, points: usize, radius: usize, multiprocessors: usize) -> Blocks {
        blocks(3, [n; 3], points, radius, multiprocessors).unwrap()
    }

    #[test]
    fn small_fields_have_all_their_blocks_at_the_same_time() {
        for (n, points, radius, segment) in [
            (32, 4, 1, 1),
            (64, 4, 4, 1),
            (96, 4, 1, 3),
            (128, 4, 1, 4),
            (128, 2, 1, 8),
        ] {
            let launch = volume(n, points, radius, 132);
            assert_eq!(launch.segment, segment, "{n}³");
            assert!(launch.grid.iter().product::<u32>() <= 4 * 132, "{n}³");
        }
        assert_eq!(blocks(2, [512, 512, 1], 4, 1, 132).unwrap().segment, 1);
        assert_eq!(blocks(2, [4096, 4096, 1], 4, 1, 132).unwrap().segment, 3);
    }

    #[test]
    fn marches_in_large_fields_are_as_long_as_the_radius_asks() {
        assert_eq!(volume(256, 4, 1, 132).segment, 6);
        assert_eq!(volume(512, 4, 1, 132).segment, 6);
        assert_eq!(volume(256, 4, 4, 132).segment, 8);
        assert_eq!(volume(512, 4, 4, 132).segment, 24);
        // A smaller device has enough blocks of longer marches.
        assert_eq!(volume(256, 4, 4, 20).segment, 24);
    }

    #[test]
    fn every_point_is_one_threads() {
        for (dimensions, extents) in [
            (2, [1, 1, 1]),
            (2, [1000, 333, 1]),
            (2, [3, 300_000, 1]),
            (3, [1, 1, 1]),
            (3, [130, 61, 77]),
            (3, [4, 9, 100_000]),
        ] {
            for (points, radius, multiprocessors) in [(4, 1, 132), (2, 8, 2), (4, 0, 1)] {
                let launch = blocks(dimensions, extents, points, radius, multiprocessors).unwrap();
                let per_thread = if extents[0].is_multiple_of(points) {
                    points
                } else {
                    1
                };
                let segment = launch.segment as usize;
                let of_block = [
                    launch.block[0] as usize * per_thread,
                    launch.block[1] as usize * if dimensions == 2 { segment } else { 1 },
                    if dimensions == 2 { 1 } else { segment },
                ];
                for axis in 0..3 {
                    let blocks = extents[axis].div_ceil(of_block[axis]);
                    assert_eq!(
                        launch.grid[axis] as usize, blocks,
                        "{extents:?}, axis {axis}"
                    );
                }
            }
        }
    }

    #[test]
    fn fields_that_cannot_be_counted_have_no_launch() {
        let most = MAX_EXTENT as usize;
        assert!(blocks(3, [most, 1, 1], 4, 1, 132).is_some());
        for extents in [
            [0, 1, 1],
            [most + 1, 1, 1],
            [1 << 16, 1 << 15, 1],
            [1, 600_000, 1],
        ] {
            assert!(blocks(3, extents, 4, 1, 132).is_none(), "{extents:?}");
        }
        assert!(blocks(2, [4, 1 << 29, 1], 4, 1, 132).is_some());
    }
}
