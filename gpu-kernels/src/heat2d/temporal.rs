//! Many iterations in one pass over memory (temporal blocking).
//!
//! A block owns a strip of the plate along y and marches up it once. In each step it reads one row
//! of the old plate and computes one row of every later level, each one row behind the level before
//! it:
//!
//! ```text
//! level 0 (old)     row y        from memory
//! level 1           row y - 1    from rows y, y - 1, y - 2 of level 0
//! level 2           row y - 2    from rows y - 1, y - 2, y - 3 of level 1
//! …
//! level n (new)     row y - n    to memory
//! ```
//!
//! - **In a warp:** a lane holds [`Tiling::points`] neighbouring points of [`Tiling::levels`]
//!   levels, two rows of each, all in registers. East and west are its own points, or come from the
//!   neighbouring lanes by two shuffles per level and row.
//! - **In a block:** [`Tiling::warps`] warps have the same strip and consecutive levels. A warp
//!   passes its last level to the next through a ring in shared memory, [`Tiling::rows`] rows per
//!   barrier. Each lane writes and reads its own points there, 16 bytes at a time, without bank
//!   conflicts.
//! - **Rows from memory** enter the ring by asynchronous copies, [`AHEAD`] times [`Tiling::rows`]
//!   rows ahead, which take no registers. The warps share the copies, and neighbouring lanes copy
//!   neighbouring vectors.
//! - **No branch between rows:** a shuffle from the first lane tells the compiler that the number
//!   of the warp is the same for all lanes, and a warp decides once per round what it does with its
//!   rows. So the instructions of one row can fill the latencies of another.
//! - **Halo:** at its sides a strip has no neighbours and loses a point per level. So strips
//!   overlap: with n iterations per pass, a block writes all of its 32 · points columns but n on
//!   each side, and reads n more rows above and below than it writes.
//! - **Walls** keep their temperature at every level. Rows and strips with walls run a second copy
//!   of the loop that checks every point; the others run without checks.
//! - **Shares:** [`Strips`] lines up the rows of all strips, and each block takes an equal share of
//!   that line. A share may hold the end of one strip and the beginning of the next. So a launch
//!   has as many blocks as the device holds at a time: all end together, and as few rows as
//!   possible are computed twice. Rows of strips with walls at their sides count more, since they
//!   take at least twice the instructions.
//! - Grid: `ceil(line / share)`.
//!
//! Bytes per point and iteration in f32: `4 (32 points / useful + 1) / n`, 0.53 with
//! [`TILING_F32`], where a single iteration moves 8. Instructions per lane and level: 4 for each
//! point, 2 shuffles, and about 1 per point to shift the rows, 42 for 8 points; with the halo 5.6
//! per point. At 4 warp instructions per clock a multiprocessor would compute 23 points per clock
//! and an H200 (132 multiprocessors, 1.98 GHz) 6000 G points/s; memory, at 4.27 TB/s, would allow
//! 8000. In f64 the unit for these four instructions is half as fast, so they take eight slots: at
//! most 3600 G points/s. Measurements and other variants: `docs/tuning/heat2d.md`.

use super::lanes::{Vector, vector_points};
use super::plate::{Real, WARP, average};
#[cfg(not(target_arch = "nvptx64"))]
use super::strips::Shares;
use super::strips::{Stretch, Strips, TILING_F32, TILING_F64, Tiling};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::async_copy::{cp_async_ca, cp_async_cg, cp_async_commit_group, cp_async_wait_group};
use cuda_std::cache::store_streaming;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array, warp};
use halo_stencil::forgotten;

// gate heat2d_temporal_f32: registers <= 168, spills = 0, FFMA = 0, LDGSTS.E.BYPASS.128 >= 1, STG.E.EF.128 >= 1, SHFL >= 16
// gate heat2d_temporal_f64: registers <= 128, spills = 0, DFMA = 0, LDGSTS.E.BYPASS.128 >= 1, STG.E.EF.128 >= 1, SHFL >= 16

/// Slots, each of [`Tiling::rows`] rows, that are in flight from memory.
pub const AHEAD: usize = 2;

/// Slots between memory and the first warp: those in flight and the one that is read.
const FIRST_SLOTS: usize = AHEAD + 1;

/// Slots between two warps: one is written while the other is read.
const SLOTS: usize = 2;

/// Vectors of a block's ring.
const fn ring_len(tiling: Tiling, points_per_vector: usize) -> usize {
    let slots = FIRST_SLOTS + (tiling.warps - 1) * SLOTS;
    slots * tiling.rows * tiling.width() / points_per_vector
}

/// Vectors of a row of a strip.
const fn row_len<T: Real, const P: usize>() -> usize {
    WARP as usize * P / vector_points::<T>()
}

/// Declares entry points: name, real type, points of a vector, tiling.
macro_rules! kernels {
    ($($name:ident: $real:ty, $points:literal, $tiling:ident;)+) => {$(
        #[doc = concat!("So many iterations in `", stringify!($real), "` as [`", stringify!($tiling),
            "`] says.")]
        ///
        /// `old` and `new`: `nx * ny` elements, x fastest. Writes the interior points
        /// of `new`. `share`: the length of a block's share of the plate's [`Strips`].
        ///
        /// # Safety
        ///
        /// - `old` is readable and `new` writable for `nx * ny` elements; both are
        ///   aligned to 16 bytes, and they do not overlap. During the launch nobody
        ///   writes `old`, and nothing else accesses `new`.
        /// - `nx` and `ny` are at least 3 and at most 2³⁰; the line is at most 2³¹ long;
        ///   `share` is at least 1 and at most 2³¹.
        /// - Blocks of `(32, warps)` threads; a one-dimensional grid of at most
        ///   `ceil(line / share)`, and no less if every point is to be written.
        #[kernel]
        #[launch_bounds(32 * $tiling.warps as u32, $tiling.blocks)]
        pub unsafe fn $name(old: *const $real, new: *mut $real, nx: u32, ny: u32, share: u32) {
            let ring = shared_array![Vector; ring_len($tiling, $points)];
            // SAFETY: forwarded word for word; the ring is this block's.
            unsafe {
                temporal::<
                    $real,
                    { $tiling.points },
                    { $tiling.levels },
                    { $tiling.warps },
                    { $tiling.rows },
                >($tiling, old, new, nx, ny, share, ring);
            }
        }
    )+};
}

kernels! {
    heat2d_temporal_f32: f32, 4, TILING_F32;
    heat2d_temporal_f64: f64, 2, TILING_F64;
}

/// How a warp handles its rows: whether it checks for walls, and where its highest level goes.
///
/// With these three, no row or column that the levels compute is a wall. The rows go to the ring,
/// to memory in vectors, or, if rows are not aligned, to memory point by point.
const TO_RING: u32 = 0;
const TO_VECTORS: u32 = 1;
const TO_POINTS: u32 = 2;
/// There may be walls, and the destination is checked row by row.
const CHECKED: u32 = 3;

/// A lane's part of its strip.
struct Lane<T> {
    old: *const T,
    new: *mut T,
    nx: u32,
    /// The last row.
    top: i32,
    /// The strip's first column and the lane's first column; either may lie outside the plate.
    left: i32,
    x: i32,
    /// The number of the lane, and of its warp.
    lane: u32,
    warp: u32,
    /// A bit for each point of the lane that is on a wall or outside.
    fixed: u32,
    /// A bit for each point of the lane that the block writes.
    written: u32,
    /// The rows that the block writes: `begin` to `end - 1`.
    begin: i32,
    end: i32,
    /// Whether all rows are aligned to 16 bytes.
    aligned: bool,
}

/// # Safety
///
/// As the entry points; `ring` is shared memory of [`ring_len`] vectors.
#[inline(always)]
unsafe fn temporal<T: Real, const P: usize, const L: usize, const W: usize, const R: usize>(
    tiling: Tiling,
    old: *const T,
    new: *mut T,
    nx: u32,
    ny: u32,
    share: u32,
    ring: *mut Vector,
) {
    let line = Strips::of(tiling, nx, ny);
    // equivalent mutant (axis): computes the shares before its own as well, with the same bits
    let mut at = thread::block_idx_x() * share;
    loop {
        keep_rolled();
        let stop = forgotten(thread::block_idx_x()) * share + share;
        // equivalent mutant (extremum): computes the shares behind its own as well
        let stop = (line.length() as u32).min(stop);
        if at >= stop {
            return;
        }
        let part = line.stretch(at, stop);
        // SAFETY: forwarded word for word.
        unsafe { march_rows::<T, P, L, W, R>(old, new, [nx, ny], tiling, part, ring) };
        at = part.next;
    }
}

/// Computes the iterations of the rows of `part`.
///
/// # Safety
///
/// As [`temporal`]; `part` is in the plate, and no other block has it.
#[inline(always)]
unsafe fn march_rows<T: Real, const P: usize, const L: usize, const W: usize, const R: usize>(
    old: *const T,
    new: *mut T,
    [nx, ny]: [u32; 2],
    tiling: Tiling,
    part: Stretch,
    ring: *mut Vector,
) {
    let (useful, width) = (tiling.useful() as i32, tiling.width() as i32);
    let iterations = tiling.iterations() as i32;
    let lane = thread::thread_idx_x();
    // SAFETY: all lanes of the warp are here. They have the same row of the block, and the shuffle
    // tells the compiler so.
    // equivalent mutant (literal): so the value of any lane is right
    let warp = unsafe { warp::warp_shuffle_idx(u32::MAX, thread::thread_idx_y(), 0, WARP).0 };
    // The strip's first written column, the strip's first column, and the lane's first column.
    let first = part.strip as i32 * useful;
    let left = first - iterations;
    let x = left + (lane * P as u32) as i32;
    let begin = part.begin as i32;
    let top = ny as i32 - 1;
    let (mut fixed, mut written) = (0_u32, 0_u32);
    unrolled::<P>(
        #[inline(always)]
        |p| {
            let i = x + p as i32;
            if i <= 0 || i >= nx as i32 - 1 {
                fixed |= 1 << p;
            } else if i >= first && i < first + useful {
                written |= 1 << p;
            }
        },
    );
    let strip = Lane {
        old,
        new,
        nx,
        top,
        left,
        x,
        lane,
        warp,
        fixed,
        written,
        begin,
        end: part.end as i32,
        aligned: (nx as usize).is_multiple_of(vector_points::<T>()),
    };
    // A wall in the strip's first or last column needs no check: the halo loses it like any other
    // point there.
    // equivalent mutant (comparison): checks a strip without walls
    // equivalent mutant (literal): as above
    let walled = left < 0 || left + width > nx as i32;
    // The first row read, and the number of slots that the rows fill.
    let bottom = begin - iterations;
    // equivalent mutant (arithmetic: `-` made `+` in `strip.end - begin`): reaches rows that are
    // not written
    // equivalent mutant (literal): as above
    let steps = ((strip.end - begin + 2 * iterations) as u32).div_ceil(R as u32);

    // The rings that the warp reads and writes, at the lane's place. The first warp's ring is
    // filled from memory and has a slot for each round ahead.
    let per_slot = R * row_len::<T, P>();
    let sink = ring.wrapping_add((FIRST_SLOTS + warp as usize * SLOTS) * per_slot + lane as usize);
    let source = if warp == 0 {
        ring.wrapping_add(lane as usize)
    } else {
        sink.wrapping_sub(SLOTS * per_slot)
    };
    let slot = |step: u32| step as usize % SLOTS * per_slot;

    let mut below = [[T::ZERO; P]; L];
    let mut middle = [[T::ZERO; P]; L];
    unrolled::<AHEAD>(
        #[inline(always)]
        |step| {
            // SAFETY: nothing has been copied there yet, and no one else copies there.
            unsafe {
                let to = ring.wrapping_add(step * per_slot);
                strip.fetch::<P, W, R>(step as u32, steps, bottom, to);
            }
        },
    );
    let mut round = 0;
    // equivalent mutant (comparison): one more round, of rows that are not written
    // equivalent mutant (arithmetic: `-` made `+`): two more rounds
    while round < steps + W as u32 - 1 {
        keep_rolled();
        // The slot of this round is complete when all warps have waited for their copies.
        cp_async_wait_group::<{ AHEAD as u32 - 1 }>();
        thread::sync_threads();
        let current = round as usize % FIRST_SLOTS;
        let free = (round as usize + AHEAD) % FIRST_SLOTS;
        // SAFETY: that slot was read in the previous round, before the barrier.
        unsafe {
            let to = ring.wrapping_add(free * per_slot);
            strip.fetch::<P, W, R>(round + AHEAD as u32, steps, bottom, to);
        }
        // Each warp is one round behind the previous one, and its rows lag by the levels of all
        // warps before it.
        let step = round.wrapping_sub(warp);
        // equivalent mutant (comparison): one more step, of rows that are not written
        if step < steps {
            let y = bottom + (step * R as u32) as i32 - (warp * L as u32) as i32;
            let from = source.wrapping_add(if warp == 0 {
                current * per_slot
            } else {
                slot(step)
            });
            let to = sink.wrapping_add(slot(step));
            // The lowest and the highest row that the levels compute.
            // equivalent mutant (arithmetic: `-` made `+` in `y + R as i32 - 2`): also checks rows
            // before a wall
            let (lowest, highest) = (y - L as i32, y + R as i32 - 2);
            // equivalent mutant (literal): also checks a row above the wall
            let past_bottom = lowest > 0;
            // equivalent mutant (logic): checks all rows
            let off_bottom = past_bottom || highest < 0;
            // equivalent mutant (logic): checks all rows
            let off_top = highest < top || lowest > top;
            let inside = !walled && off_bottom && off_top;
            let (below, middle) = (&mut below, &mut middle);
            // SAFETY: `from` was written in the previous round, or copied and waited for; `to` was
            // last read before the latest barrier, and exists unless the warp is the last. All
            // lanes of the warp are here.
            unsafe {
                // equivalent mutant (guard: made `true`): checks all rows
                if !inside {
                    strip.steps::<P, L, W, R, CHECKED>(y, from, to, below, middle);
                } else if (warp as usize) < W - 1 {
                    strip.steps::<P, L, W, R, TO_RING>(y, from, to, below, middle);
                // equivalent mutant (guard: made `false`): the same values, in more accesses;
                // the static gates count those
                } else if strip.aligned {
                    strip.steps::<P, L, W, R, TO_VECTORS>(y, from, to, below, middle);
                } else {
                    strip.steps::<P, L, W, R, TO_POINTS>(y, from, to, below, middle);
                }
            }
        }
        round += 1;
    }
}

impl<T: Real> Lane<T> {
    /// Starts copying this warp's share of the strip's `R` rows from `bottom + R · step` on to the
    /// slot `to`, if `step` is below `steps`. Rows outside the plate repeat its outermost ones.
    ///
    /// # Safety
    ///
    /// `to` is a slot of the ring, which nobody accesses before all warps have waited for
    /// their copies.
    #[inline(always)]
    unsafe fn fetch<const P: usize, const W: usize, const R: usize>(
        &self,
        step: u32,
        steps: u32,
        bottom: i32,
        to: *mut Vector,
    ) {
        const { assert!(R <= W, "a warp copies one row at most") };
        // The row follows from the warp's index, without a branch for each row.
        let k = self.warp as usize;
        // equivalent mutant (comparison): copies rows that no warp reads
        let wanted = step < steps;
        if wanted && k < R {
            let y = (bottom + (step * R as u32) as i32 + k as i32).clamp(0, self.top);
            let row = self.old.wrapping_add(y as usize * self.nx as usize);
            let to = to.wrapping_add(k * row_len::<T, P>());
            // SAFETY: a row of the plate; as the caller promises.
            unsafe { self.fetch_row::<P>(row, to) };
        }
        cp_async_commit_group();
    }

    /// Starts copying the strip's points of `row` to `to`: neighbouring lanes copy neighbouring
    /// vectors or points, each to the place of the lane that uses it.
    ///
    /// # Safety
    ///
    /// `row` is a row of the plate; `to` is a row of a slot, as for [`fetch`](Self::fetch).
    #[inline(always)]
    unsafe fn fetch_row<const P: usize>(&self, row: *const T, to: *mut Vector) {
        let points = vector_points::<T>();
        let vectors = P / points;
        // Otherwise the compiler keeps the addresses of this lane's copies in registers that the
        // levels need.
        let lane = forgotten(self.lane) as usize;
        let place = |nth: usize| to.wrapping_add(nth % vectors * WARP as usize + nth / vectors);
        if self.aligned {
            unrolled::<P>(
                #[inline(always)]
                |v| {
                    let nth = v * WARP as usize + lane;
                    let i = self.left + (nth * points) as i32;
                    if v < vectors && i >= 0 && i < self.nx as i32 {
                        // SAFETY: all points of the vector are in the row: its first is, and the
                        // strip's first column and nx are multiples of its points.
                        unsafe { cp_async_cg(place(nth), row.wrapping_add(i as usize).cast()) };
                    }
                },
            );
            return;
        }
        unrolled::<P>(
            #[inline(always)]
            |p| {
                let nth = p * WARP as usize + lane;
                let i = self.left + nth as i32;
                if i >= 0 && i < self.nx as i32 {
                    let to = place(nth / points).cast::<T>().wrapping_add(nth % points);
                    // SAFETY: point i of the row is in the plate.
                    unsafe { cp_async_ca(to, row.wrapping_add(i as usize)) };
                }
            },
        );
    }

    /// [`step`](Self::step) for `R` rows from `y` on.
    ///
    /// # Safety
    ///
    /// As [`temporal`], at the point of the call in [`march_rows`].
    #[inline(always)]
    unsafe fn steps<
        const P: usize,
        const L: usize,
        const W: usize,
        const R: usize,
        const HOW: u32,
    >(
        &self,
        y: i32,
        from: *const Vector,
        to: *mut Vector,
        below: &mut [[T; P]; L],
        middle: &mut [[T; P]; L],
    ) {
        unrolled::<R>(
            #[inline(always)]
            |k| {
                let at = k * row_len::<T, P>();
                let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
                // SAFETY: as the caller promises.
                unsafe {
                    self.step::<P, L, W, HOW>(y + k as i32, from, to, below, middle);
                }
            },
        );
    }

    /// Takes row `y` of the warp's lowest level from `from` and advances all levels by one row. The
    /// new row of the highest level goes to `to`, or from the last warp to memory.
    ///
    /// `below` and `middle` are rows `y - t - 2` and `y - t - 1` of level t. `HOW` is
    /// [`TO_RING`], [`TO_VECTORS`], [`TO_POINTS`] or [`CHECKED`].
    ///
    /// # Safety
    ///
    /// As [`temporal`], at the point of the call in [`march_rows`].
    #[inline(always)]
    unsafe fn step<const P: usize, const L: usize, const W: usize, const HOW: u32>(
        &self,
        y: i32,
        from: *const Vector,
        to: *mut Vector,
        below: &mut [[T; P]; L],
        middle: &mut [[T; P]; L],
    ) {
        let points = vector_points::<T>();
        let mut above = [T::ZERO; P];
        unrolled::<P>(
            #[inline(always)]
            |p| {
                if p % points == 0 {
                    // SAFETY: as the caller promises.
                    let vector = unsafe { Vector::read(from.add(p / points * WARP as usize)) };
                    vector.put(&mut above, p);
                }
            },
        );
        unrolled::<L>(
            #[inline(always)]
            |t| {
                // SAFETY: all lanes of the warp are here.
                let (outer_west, outer_east) =
                    unsafe { (middle[t][P - 1].lane_below(), middle[t][0].lane_above()) };
                let row = y - t as i32 - 1;
                let in_wall = HOW == CHECKED && (row == 0 || row == self.top);
                let mut new = [T::ZERO; P];
                unrolled::<P>(
                    #[inline(always)]
                    |p| {
                        let west = if p == 0 { outer_west } else { middle[t][p - 1] };
                        let east = if p + 1 == P {
                            outer_east
                        } else {
                            middle[t][p + 1]
                        };
                        new[p] = average(east, west, above[p], below[t][p]);
                        if HOW == CHECKED && (in_wall || self.fixed & (1 << p) != 0) {
                            new[p] = middle[t][p];
                        }
                    },
                );
                // Copied point by point, since the compiler would keep copies of whole arrays in
                // memory.
                unrolled::<P>(
                    #[inline(always)]
                    |p| {
                        below[t][p] = middle[t][p];
                        middle[t][p] = above[p];
                        above[p] = new[p];
                    },
                );
            },
        );
        if HOW == TO_RING || (HOW == CHECKED && (self.warp as usize) < W - 1) {
            unrolled::<P>(
                #[inline(always)]
                |p| {
                    if p % points == 0 {
                        // SAFETY: as the caller promises.
                        unsafe {
                            Vector::of(&above, p).write(to.add(p / points * WARP as usize));
                        }
                    }
                },
            );
            return;
        }
        // Without this each store would become a branch that contains the arithmetic.
        unrolled::<P>(
            #[inline(always)]
            |p| above[p] = above[p].computed(),
        );
        let row = y - L as i32;
        // This is part of the store's predicate, not a branch: rows that are not written are
        // computed like others.
        // equivalent mutant (comparison: `<` made `<=`): the last round may compute one row more; its
        // values are right, and the next block writes the same
        let in_block = row >= self.begin && row < self.end;
        let at = row as isize * self.nx as isize + self.x as isize;
        let out = self.new.wrapping_offset(at);
        unrolled::<P>(
            #[inline(always)]
            |p| {
                // equivalent mutant (arithmetic: `<<` made `>>` in `((1 << points) - 1) <<): in a
                // lane's second vector only the wall behind the last column can be unwritten, and
                // its value is stored unchanged
                // equivalent mutant (arithmetic: `-` made `+`): the same values, in more accesses
                // equivalent mutant (literal: in `1 << points`): as above
                let whole = ((1 << points) - 1) << (p / points * points);
                let vectors = match HOW {
                    TO_VECTORS => true,
                    TO_POINTS => false,
                    _ => self.aligned && self.written & whole == whole,
                };
                // SAFETY: written points are in the plate and off its walls, and no other block has
                // them. In aligned rows vectors are aligned, and without walls a vector is written
                // whole or not at all.
                unsafe {
                    if in_block && self.written & (1 << p) != 0 {
                        // equivalent mutant (guard: made `true`): the same values, in more accesses
                        if !vectors {
                            *out.wrapping_add(p) = above[p];
                        } else if p % points == 0 {
                            let vector = Vector::of(&above, p);
                            store_streaming(out.wrapping_add(p).cast::<Vector>(), vector);
                        }
                    }
                }
            },
        );
    }
}

macro_rules! registered {
    ($($name:ident: $real:ident, $tiling:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "many iterations in one pass over memory",
            geometry: |kernel, plate| Ok(Shares::of(kernel, $tiling, plate)?.geometry),
            cost: |plate| super::geometry::pass::<$real>(plate, $tiling.iterations()),
            example: super::geometry::EXAMPLE,
            tile: "a share of strips along y",
        }
    )+};
}

registered! {
    heat2d_temporal_f32: f32, TILING_F32;
    heat2d_temporal_f64: f64, TILING_F64;
}
