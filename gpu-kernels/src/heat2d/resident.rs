//! All iterations in one launch: the plate stays in registers, and blocks exchange their halos.
//!
//! - A lane holds [`RESIDENT_POINTS`] neighbouring columns of 2 or 4 rows in registers; the warps
//!   of a block are stacked along y. East and west are the lane's own points or come by shuffles.
//!   North and south are the lane's own, except at the seams of warps: there a warp's outermost
//!   rows go through shared memory, double-buffered so that one barrier per iteration is enough.
//! - A block's tile extends `halo` points beyond the points that it owns, on each side. With every
//!   iteration the valid region shrinks by one row and column on each side; after `halo` iterations
//!   only the owned points are valid. Then the blocks **exchange**: each posts the points that lie
//!   in the halos of others, and collects those of its own halo.
//! - Posted values carry the number of their exchange. A **word** of the workspace has 64 bits: 32
//!   of the value and the number of the exchange, written and read by one access. So no fences and
//!   no separate flags are needed. Two sets of words alternate: a block posts to a set again only
//!   after it has collected the exchange in between, and its readers posted that one after they had
//!   read this one.
//! - The numbers of exchanges continue from launch to launch; the block that ends last (found by a
//!   **ticket**) stores the number in the workspace. So the words need no clearing, and a launch
//!   can be replayed.
//! - Blocks wait for each other, so all of them must be resident at the same time, which the host
//!   ensures.
//!
//! Bytes: the plate is read once and written once, for any number of iterations. An iteration costs
//! a barrier, the latency of shared memory and of the arithmetic of a warp's rows; an exchange
//! costs two latencies of the second-level cache, over a microsecond, which `halo` iterations
//! share. Measurements and other variants: `docs/tuning/heat2d.md`.

use super::plate::{Real, WARP, average, element};
use crate::loops::{keep_rolled, unrolled};
use crate::words::MAX_WORDS;
use cuda_std::atomic::intrinsics::{
    atomic_load_relaxed_64_device as load_word, atomic_store_relaxed_64_device as store_word,
};
use cuda_std::atomic::mid::atomic_inc_bounded_relaxed_u32_device as take_ticket;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

// gate heat2d_resident_f32: registers <= 128, spills = 0, FFMA = 0, SHFL >= 2
// gate heat2d_resident_f64: registers <= 128, spills = 0, DFMA = 0, SHFL >= 2

/// The most warps of a block.
pub const RESIDENT_WARPS: usize = 16;

/// The possible numbers of rows of a warp.
pub const RESIDENT_ROWS: [usize; 2] = [2, 4];

/// Words of the workspace before those of points. They hold the number of exchanges so far and the
/// ticket.
const HEAD: usize = 16;

/// The word of the ticket.
const TICKET: usize = 8;

/// Neighbouring columns of a lane.
pub const RESIDENT_POINTS: usize = 2;

/// Words of the workspace for a plate with `points` points.
#[must_use]
pub const fn resident_workspace<T: Real>(points: usize) -> usize {
    HEAD + 2 * points * T::COUNT
}

/// Points of the seams of a block's warps: the two outermost rows of each, for this iteration and
/// the next.
const SEAMS: usize = 2 * RESIDENT_WARPS * 2 * WARP as usize * RESIDENT_POINTS;

/// Declares entry points: name, real type.
macro_rules! kernels {
    ($($name:ident: $real:ty;)+) => {$(
        #[doc = concat!("Several iterations in `", stringify!($real), "`, the plate in registers.")]
        ///
        /// `old` and `new`: `nx * ny` elements, x fastest. Writes the interior points
        /// of `new`. A block owns `64 - 2 halo` columns and `own_rows` rows, and
        /// each of its warps has `warp_rows` rows. `workspace`: [`resident_workspace`]
        /// words, all zero before the first launch.
        ///
        /// # Safety
        ///
        /// - `old` is readable and `new` writable for `nx * ny` elements; they do not
        ///   overlap. During the launch nobody writes `old`, and nothing else accesses
        ///   `new` or `workspace`.
        /// - `nx` and `ny` are at least 3 and at most 2³⁰; `iterations`, `halo` and `own_rows`
        ///   are at least 1, and `halo` is less than 32.
        /// - `workspace` is zero, or as a completed launch with the same plate, grid, halo and
        ///   `own_rows` has left it.
        /// - Blocks of `(32, warps)` threads, at most [`RESIDENT_WARPS`] warps; `warp_rows` is one
        ///   of [`RESIDENT_ROWS`], and `warps * warp_rows` is at least `own_rows + 2 halo`.
        /// - Along each axis the grid has as many blocks as are needed for every interior point to
        ///   be owned, and no more. All of them are on the device at the same time.
        #[kernel]
        #[launch_bounds(32 * RESIDENT_WARPS as u32, 1)]
        pub unsafe fn $name(
            old: *const $real,
            new: *mut $real,
            nx: u32,
            ny: u32,
            iterations: u32,
            halo: u32,
            own_rows: u32,
            warp_rows: u32,
            workspace: *mut u64,
        ) {
            let seams = shared_array![$real; SEAMS];
            // SAFETY: forwarded word for word; the seams are this block's.
            unsafe {
                if warp_rows as usize == RESIDENT_ROWS[0] {
                    resident::<$real, { RESIDENT_ROWS[0] }>(
                        old, new, [nx, ny], iterations, halo, own_rows, workspace, seams,
                    );
                } else {
                    resident::<$real, { RESIDENT_ROWS[1] }>(
                        old, new, [nx, ny], iterations, halo, own_rows, workspace, seams,
                    );
                }
            }
        }
    )+};
}

kernels! {
    heat2d_resident_f32: f32;
    heat2d_resident_f64: f64;
}

/// The position of a lane's points, and bit masks that classify its columns.
struct LanePosition {
    nx: i32,
    ny: i32,
    /// The lane's first column and row, which may lie outside the plate.
    x: i32,
    y: i32,
    /// The rows that the block owns: `begin` to `end - 1`.
    begin: i32,
    end: i32,
    halo: i32,
    /// Columns on a wall or outside.
    fixed: u32,
    /// Columns that the block owns.
    owned: u32,
    /// Owned columns that are in no other block's halo along x.
    inner: u32,
}

impl LanePosition {
    /// Columns of row `j` that the block posts.
    #[inline(always)]
    const fn posted(&self, j: i32) -> u32 {
        if j < self.begin || j >= self.end {
            0
        } else if j < self.begin + self.halo || j >= self.end - self.halo {
            self.owned
        } else {
            self.owned & !self.inner
        }
    }

    /// Columns of row `j` that the block collects.
    #[inline(always)]
    const fn collected(&self, j: i32) -> u32 {
        if j <= 0 || j >= self.ny - 1 || j >= self.end + self.halo {
            0
        } else if j >= self.begin && j < self.end {
            !self.owned & !self.fixed
        } else {
            !self.fixed
        }
    }
}

/// # Safety
///
/// As the entry points; `seams` is shared memory of [`SEAMS`] elements.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of the entry points")]
unsafe fn resident<T: Real, const R: usize>(
    old: *const T,
    new: *mut T,
    [nx, ny]: [u32; 2],
    iterations: u32,
    halo: u32,
    own_rows: u32,
    workspace: *mut u64,
    seams: *mut T,
) {
    const P: usize = RESIDENT_POINTS;
    let (lane, warp) = (thread::thread_idx_x(), thread::thread_idx_y());
    let highest = thread::block_dim_y() - 1;
    let own_columns = WARP * P as u32 - 2 * halo;
    let left = (1 + thread::block_idx_x() * own_columns) as i32;
    let right = (left + own_columns as i32).min(nx as i32 - 1);
    let begin = (1 + thread::block_idx_y() * own_rows) as i32;
    let mut place = LanePosition {
        nx: nx as i32,
        ny: ny as i32,
        x: left + (lane * P as u32) as i32 - halo as i32,
        y: begin + (warp * R as u32) as i32 - halo as i32,
        begin,
        end: (begin + own_rows as i32).min(ny as i32 - 1),
        halo: halo as i32,
        fixed: 0,
        owned: 0,
        inner: 0,
    };
    unrolled::<P>(
        #[inline(always)]
        |p| {
            let i = place.x + p as i32;
            place.fixed |= u32::from(i <= 0 || i >= place.nx - 1) << p;
            place.owned |= u32::from(i >= left && i < right) << p;
            // equivalent mutant (arithmetic: `<<`): posts points that are in no halo as well
            // equivalent mutant (comparison: `>=`): as above
            place.inner |= u32::from(i >= left + place.halo && i < right - place.halo) << p;
        },
    );

    let mut plate = [[T::ZERO; P]; R];
    unrolled::<R>(
        #[inline(always)]
        |r| {
            let j = place.y + r as i32;
            unrolled::<P>(
                #[inline(always)]
                |p| {
                    let i = place.x + p as i32;
                    if i >= 0 && i < place.nx && j >= 0 && j < place.ny {
                        // SAFETY: a point of the plate.
                        plate[r][p] = unsafe { *old.add(element(i as u32, j as u32, nx)) };
                    }
                },
            );
        },
    );

    // SAFETY: the workspace has a head; only the block that ends last writes it.
    let mut exchange = unsafe { load_word(workspace) } as u32;
    // A lane's points of a seam are 32 apart, so lanes have no bank conflicts.
    let seam = |half: u32, warp: u32, upper: u32| {
        let row = (half * RESIDENT_WARPS as u32 + warp) * 2 + upper;
        seams.wrapping_add((row * P as u32 * WARP + lane) as usize)
    };
    let mut remaining = iterations;
    let mut half = 0;
    loop {
        keep_rolled();
        let mut together = remaining.min(halo);
        remaining -= together;
        while together > 0 {
            keep_rolled();
            let mut south = [T::ZERO; P];
            let mut beyond = [T::ZERO; P];
            // SAFETY: every lane writes its own places and, after the barrier, reads those of the
            // warps below and above. The next iteration uses the other half, and the one after it
            // follows another barrier. The outermost warps have no warp beyond and read their own
            // places; the points computed from these are no longer valid anyway.
            unsafe {
                write_seam(seam(half, warp, 0), &plate[0]);
                write_seam(seam(half, warp, 1), &plate[R - 1]);
                thread::sync_threads();
                read_seam(seam(half, warp.saturating_sub(1), 1), &mut south);
                read_seam(seam(half, (warp + 1).min(highest), 0), &mut beyond);
            }
            unrolled::<R>(
                #[inline(always)]
                |r| {
                    let middle = plate[r];
                    // SAFETY: all lanes of the warp are here.
                    let (outer_west, outer_east) =
                        unsafe { (middle[P - 1].lane_below(), middle[0].lane_above()) };
                    let j = place.y + r as i32;
                    if j > 0 && j < place.ny - 1 {
                        unrolled::<P>(
                            #[inline(always)]
                            |p| {
                                let west = if p == 0 { outer_west } else { middle[p - 1] };
                                let east = if p + 1 == P {
                                    outer_east
                                } else {
                                    middle[p + 1]
                                };
                                let north = if r + 1 == R {
                                    beyond[p]
                                } else {
                                    plate[r + 1][p]
                                };
                                let swept = average(east, west, north, south[p]);
                                if place.fixed & (1 << p) == 0 {
                                    plate[r][p] = swept;
                                }
                            },
                        );
                    }
                    south = middle;
                },
            );
            half ^= 1;
            together -= 1;
        }
        if remaining == 0 {
            break;
        }
        // equivalent mutant (arithmetic): numbers are compared for equality, and odd and even ones
        // still take turns
        exchange = exchange.wrapping_add(1);
        let set = (exchange & 1) as usize * nx as usize * ny as usize;
        let words = workspace.wrapping_add(HEAD + set * T::COUNT);
        // SAFETY: all readers of this set of words have collected it: after that they posted the
        // previous exchange, which this block has collected.
        unsafe {
            post::<T, P, R>(&place, &plate, exchange, words);
            collect::<T, P, R>(&place, &mut plate, exchange, words);
        }
    }

    unrolled::<R>(
        #[inline(always)]
        |r| {
            let j = place.y + r as i32;
            if j >= place.begin && j < place.end {
                unrolled::<P>(
                    #[inline(always)]
                    |p| {
                        if place.owned & (1 << p) != 0 {
                            let i = (place.x + p as i32) as u32;
                            // SAFETY: only this block owns the point.
                            unsafe { *new.add(element(i, j as u32, nx)) = plate[r][p] };
                        }
                    },
                );
            }
        },
    );
    // equivalent mutant (literal): it does not matter which thread takes the block's ticket
    if lane == 0 && warp == 0 {
        let blocks = thread::grid_dim_x() * thread::grid_dim_y();
        // SAFETY: only this operation touches the ticket, which the last block resets; by then all
        // blocks have read the number of exchanges, which is the same for all.
        unsafe {
            if take_ticket(workspace.add(TICKET).cast(), blocks - 1) == blocks - 1 {
                store_word(workspace, u64::from(exchange));
            }
        }
    }
}

/// Writes a lane's points to its places in a seam.
///
/// # Safety
///
/// The places are this lane's, and nobody else accesses them.
#[inline(always)]
unsafe fn write_seam<T: Real, const P: usize>(seam: *mut T, points: &[T; P]) {
    unrolled::<P>(
        #[inline(always)]
        |p| {
            // SAFETY: as the caller promises.
            unsafe { *seam.add(p * WARP as usize) = points[p] };
        },
    );
}

/// Reads a lane's points of a seam.
///
/// # Safety
///
/// The points have been written, and nobody writes them at the same time.
#[inline(always)]
unsafe fn read_seam<T: Real, const P: usize>(seam: *const T, points: &mut [T; P]) {
    unrolled::<P>(
        #[inline(always)]
        |p| {
            // SAFETY: as the caller promises.
            points[p] = unsafe { *seam.add(p * WARP as usize) };
        },
    );
}

/// The first word of point (i, j) in a set.
#[inline(always)]
fn words_of<T: Real>(words: *mut u64, i: i32, j: i32, nx: i32) -> *mut u64 {
    // equivalent mutant (arithmetic: `+` made `-`): also a word of its own for each point behind the
    // first row, which is a wall
    let point = j as isize * nx as isize + i as isize;
    words.wrapping_offset(point * T::COUNT as isize)
}

/// Posts the points that are in the halos of other blocks.
///
/// # Safety
///
/// `words` is a set whose earlier contents nobody will read any more.
#[inline(always)]
unsafe fn post<T: Real, const P: usize, const R: usize>(
    place: &LanePosition,
    plate: &[[T; P]; R],
    exchange: u32,
    words: *mut u64,
) {
    let tag = u64::from(exchange) << 32;
    unrolled::<R>(
        #[inline(always)]
        |r| {
            let j = place.y + r as i32;
            let posted = place.posted(j);
            unrolled::<P>(
                #[inline(always)]
                |p| {
                    if posted & (1 << p) != 0 {
                        let own = words_of::<T>(words, place.x + p as i32, j, place.nx);
                        let value = plate[r][p].to_words();
                        unrolled::<MAX_WORDS>(
                            #[inline(always)]
                            |k| {
                                if k < T::COUNT {
                                    // SAFETY: this block owns the point, and only this lane has it.
                                    unsafe { store_word(own.add(k), tag | u64::from(value[k])) };
                                }
                            },
                        );
                    }
                },
            );
        },
    );
}

/// Collects the points of the halo; waits for those not yet posted.
///
/// # Safety
///
/// `words` is the set to which all blocks post this exchange.
#[inline(always)]
unsafe fn collect<T: Real, const P: usize, const R: usize>(
    place: &LanePosition,
    plate: &mut [[T; P]; R],
    exchange: u32,
    words: *mut u64,
) {
    /// Rows that are awaited together, so that their latencies overlap.
    const TOGETHER: usize = 2;
    unrolled::<R>(
        #[inline(always)]
        |first| {
            if first % TOGETHER != 0 {
                return;
            }
            let mut collected = [0; TOGETHER];
            unrolled::<TOGETHER>(
                #[inline(always)]
                |k| collected[k] = place.collected(place.y + (first + k) as i32),
            );
            // equivalent mutant (arithmetic: `&` made `|`): a round more, in rows without such points
            // equivalent mutant (arithmetic: `-` made `+`): so does this, since the bits behind the
            // points are set
            // equivalent mutant (literal: `1` made `2` in `1 << P`): as above
            let mut waiting = (collected[0] | collected[1]) & ((1 << P) - 1) != 0;
            while waiting {
                waiting = false;
                unrolled::<TOGETHER>(
                    #[inline(always)]
                    |k| {
                        let j = place.y + (first + k) as i32;
                        unrolled::<P>(
                            #[inline(always)]
                            |p| {
                                if collected[k] & (1 << p) != 0 {
                                    let other =
                                        words_of::<T>(words, place.x + p as i32, j, place.nx);
                                    let mut value = [0; MAX_WORDS];
                                    unrolled::<MAX_WORDS>(
                                        #[inline(always)]
                                        |k| {
                                            if k < T::COUNT {
                                                // SAFETY: a point off the walls.
                                                let word = unsafe { load_word(other.add(k)) };
                                                waiting |= (word >> 32) as u32 != exchange;
                                                value[k] = word as u32;
                                            }
                                        },
                                    );
                                    plate[first + k][p] = T::from_words(value);
                                }
                            },
                        );
                    },
                );
            }
        },
    );
}

/// Iterations between two exchanges of blocks.
#[cfg(not(target_arch = "nvptx64"))]
pub const RESIDENT_HALO: u32 = 8;

/// How a plate is distributed over the blocks that hold it.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residence {
    /// Rows that a block owns.
    pub own_rows: u32,
    /// Rows of each of its warps.
    pub warp_rows: u32,
    /// The geometry of the launch.
    pub geometry: crate::registry::Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Residence {
    /// The distribution of a plate of at least 3 × 3 points on a device that holds
    /// [`resident_blocks`](crate::registry::Problem::resident_blocks) blocks of
    /// [`RESIDENT_WARPS`] warps; `None` if it does not fit.
    #[must_use]
    pub fn of(plate: &crate::registry::Problem) -> Option<Self> {
        let [nx, ny, _] = plate.extents.map(|extent| extent.saturating_sub(2));
        let blocks = plate.resident_blocks;
        let halo = RESIDENT_HALO as usize;
        let across = nx.div_ceil(OWN_COLUMNS);
        // The fewest rows per warp that fit: their arithmetic dominates the time.
        RESIDENT_ROWS.into_iter().find_map(|warp_rows| {
            // With fewer rows than a halo has, the exchange would dominate.
            let own_rows = ny.div_ceil((blocks / across).max(1)).max(halo);
            let up = ny.div_ceil(own_rows);
            let warps = (own_rows + 2 * halo).div_ceil(warp_rows);
            let fits = across.checked_mul(up)? <= blocks && warps <= RESIDENT_WARPS;
            // If they fit, all numbers are below 2^10.
            fits.then(|| Self {
                own_rows: own_rows as u32,
                warp_rows: warp_rows as u32,
                geometry: crate::registry::Geometry::new(
                    [across as u32, up as u32, 1],
                    [WARP, warps as u32, 1],
                ),
            })
        })
    }
}

/// Columns that a block owns.
#[cfg(not(target_arch = "nvptx64"))]
const OWN_COLUMNS: usize = WARP as usize * RESIDENT_POINTS - 2 * RESIDENT_HALO as usize;

/// The most rows that a block owns.
#[cfg(not(target_arch = "nvptx64"))]
const MOST_ROWS: usize = RESIDENT_WARPS * RESIDENT_ROWS[1] - 2 * RESIDENT_HALO as usize;

macro_rules! registered {
    ($($name:ident: $real:ident;)+) => {$(
        crate::register! {
            $name: $real, Tuned,
            "all iterations in one launch; the plate in registers",
            geometry: |kernel, plate| match Residence::of(plate) {
                Some(residence) => Ok(residence.geometry),
                None => Err(crate::registry::Refusal::TooMany {
                    kernel,
                    what: crate::registry::Counted::Extent("points of a plate that is held at once"),
                    given: plate.points() as u128,
                    limit: (plate.resident_blocks as u64)
                        .saturating_mul((OWN_COLUMNS * MOST_ROWS) as u64),
                }),
            },
            // The cost of one iteration, for any number of iterations per launch.
            cost: super::geometry::iteration::<$real>,
            example: super::geometry::EXAMPLE.with_resident_blocks(132),
            tile: "48 × 8 to 48",
            restrictions: "the device holds the plate at once",
        }
    )+};
}

registered! {
    heat2d_resident_f32: f32;
    heat2d_resident_f64: f64;
}
