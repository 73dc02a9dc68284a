//! Sum, minimum and maximum of an array in one launch, at the speed of memory.
//!
//! # The tree
//!
//! A sum of floats depends on the order of combination, so the order is fixed: it is a function of
//! the number of elements and of their size alone. The number of blocks, the GPU and timing do not
//! affect it.
//!
//! - A **tile** is [`THREADS`] × 16 bytes of consecutive elements: 2048 of 4 bytes
//!   or 1024 of 8. Element e of a tile belongs to **lane** e.
//! - A **chunk** is a number of consecutive tiles; the last chunk has the rest. [`Partition`] gives
//!   the number of tiles: 8 if that holds all elements, else 1, 2, 4, … such that both the number
//!   of chunks and their tiles grow with the square root of the array.
//! - Each lane combines its elements of the chunk in the order of the array. Then
//!   neighbours are combined, lanes 2i and 2i + 1, until one is left:
//!
//! ```text
//! lanes  0   1   2   3   4   5   6   7
//!        01      23      45      67          in a thread
//!        0123            4567                between lanes of a warp: shuffles
//!        01234567                            between warps: shared memory
//! ```
//!
//! - The chunks' results are reduced like one more chunk.
//!
//! Sums of integers wrap around, so signed and unsigned sums have the same bits: one kernel serves
//! both.
//!
//! Lanes without an element hold the operator's identity, which changes no result. An element goes
//! through at most [`Partition::depth`] combinations.
//!
//! # One launch
//!
//! Block b takes the chunks b, b + blocks, b + 2 blocks, … It writes the result of a chunk to the
//! chunk's **slot** in the workspace, and the block that began last collects the slots. A
//! **ticket** identifies that block: every block first takes a number from an atomic counter, long
//! before the number is needed. All other blocks have begun by then, so the collector never waits
//! for a block that itself waits for a place on a multiprocessor.
//!
//! The collector waits for the slot itself. A slot is one or more 64-bit words, each with 32 bits
//! of the value and a flag that marks them as present, written and read by one access. No order
//! between two locations matters, so no fences are needed, which would cost half a microsecond
//! here. Before it ends the collector clears the slots, and the ticket counts modulo the number of
//! blocks, so the workspace returns to its initial state.
//!
//! # What limits it
//!
//! - Bytes: every element is read once, 16 bytes per load, with four loads of a thread in flight. 4
//!   blocks of 512 threads on a multiprocessor have 128 KiB in flight; about 40 KiB hide the
//!   latency of an H200's memory. Predicted: the speed of reading.
//! - Instructions per 16 bytes: the load, 4 combinations (2 of 8 bytes), a quarter of two
//!   additions, a comparison and a branch: 8 instructions of 32 lanes. At 20 bytes per clock and
//!   multiprocessor their data take 26 clocks, in which 104 instructions fit.
//! - Small arrays: the latencies of one read, of 9 combinations, 5 shuffles and a barrier, of a
//!   write and a read of a slot, and of the 9 combinations again.
//!
//! Measurements and other variants: `docs/tuning/reduction.md`.

// The register limit is what 4 blocks of 512 threads leave each thread. LD is not limited: the
// compiler does not know that the slots are in global memory.
// gate reduction_single_pass_sum_i32: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_sum_i64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_sum_f32: registers <= 32, spills = 0, LDG.E.128 >= 8, FADD >= 16
// gate reduction_single_pass_sum_f64: registers <= 32, spills = 0, LDG.E.128 >= 8, DADD >= 8
// gate reduction_single_pass_min_i32: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_min_u32: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_min_i64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_min_u64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_min_f32: registers <= 32, spills = 0, LDG.E.128 >= 8, FMNMX >= 16
// gate reduction_single_pass_min_f64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_max_i32: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_max_u32: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_max_i64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_max_u64: registers <= 32, spills = 0, LDG.E.128 >= 8
// gate reduction_single_pass_max_f32: registers <= 32, spills = 0, LDG.E.128 >= 8, FMNMX >= 16
// gate reduction_single_pass_max_f64: registers <= 32, spills = 0, LDG.E.128 >= 8

pub use super::partition::{ALONE, Partition, THREADS};

use super::operator::{MAX_WORDS, Maximum, Minimum, Operator, Sum, Terms, Themselves, Words};
use super::partition::{FIRST_SLOT, VECTOR_WORDS};
use super::tree::{ALL_LANES, WARP};
use crate::loops::{keep_rolled, unrolled};
use cuda_std::atomic::intrinsics::{
    atomic_load_relaxed_64_device as load, atomic_store_relaxed_64_device as store,
};
use cuda_std::atomic::mid::atomic_inc_bounded_relaxed_u32_device as take_ticket;
use cuda_std::cache::load_readonly;
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array, warp};

/// Blocks that a multiprocessor must be able to hold: as many as its limit of threads allows.
// A multiprocessor of compute capability 7.5 holds 1024 threads, one of 9.0 2048.
pub(super) const BLOCKS_PER_MULTIPROCESSOR: u32 =
    if cfg!(target_feature = "sm_90") { 4 } else { 2 };

/// Warps of a block.
pub(super) const WARPS: usize = (THREADS / WARP) as usize;

/// Independent loads of a thread.
const BATCH: u32 = 4;

/// Set in each 64-bit word of a slot when its lower half holds a part of the value.
const FULL: u64 = 1 << 32;

/// Declares entry points.
macro_rules! kernels {
    ($($name:ident = $operator:ident of $type:ident: $what:literal;)*) => {$(
        #[doc = concat!("The ", $what, " of `n` elements.")]
        ///
        /// `tiles` and `chunks` are those of the array's [`Partition`]. `workspace`:
        /// [`Partition::workspace_len`] 64-bit words, all zero before and after the launch.
        /// `result`: one element.
        ///
        /// # Safety
        ///
        /// - `values` is readable for `n` elements and aligned to 16 bytes; nobody writes
        ///   it during the launch. `n >= 1`.
        /// - `tiles >= 1`, and `chunks` is the least number of chunks of `tiles` tiles that hold
        ///   `n` elements.
        /// - `workspace` and `result` are readable and writable, do not overlap each
        ///   other or `values`, and nothing else accesses them during the launch.
        /// - `workspace` is zero. A launch that was stopped in the middle leaves it in
        ///   any state.
        /// - Blocks of one dimension and [`THREADS`] threads; at most `chunks` of them,
        ///   along x. Blocks that have begun make progress without others having to end.
        #[kernel]
        #[launch_bounds(THREADS, BLOCKS_PER_MULTIPROCESSOR)]
        pub unsafe fn $name(
            values: *const $type,
            n: usize,
            tiles: u32,
            chunks: u32,
            workspace: *mut u64,
            result: *mut $type,
        ) {
            let shared = Shared {
                partials: shared_array![$type; 2 * WARPS],
                ticket: shared_array![u32; 1],
            };
            let terms = Themselves::<$operator<$type>>::NEW;
            // SAFETY: forwarded word for word; the arrays are this block's.
            unsafe { reduce(terms, [values], n, tiles, chunks, workspace, result, shared) }
        }

        crate::register! {
            $name: $type, Tuned,
            concat!("the ", $what, " of an array in one launch"),
            geometry: super::geometry::chunks::<$type>,
            cost: super::geometry::elements::<$type>,
            example: super::geometry::EXAMPLE_IN_CHUNKS,
            tile: super::geometry::TILE,
        }
    )*};
}

kernels! {
    reduction_single_pass_sum_i32 = Sum of i32: "sum, also of `u32`,";
    reduction_single_pass_sum_i64 = Sum of i64: "sum, also of `u64`,";
    reduction_single_pass_sum_f32 = Sum of f32: "sum";
    reduction_single_pass_sum_f64 = Sum of f64: "sum";
    reduction_single_pass_min_i32 = Minimum of i32: "minimum";
    reduction_single_pass_min_u32 = Minimum of u32: "minimum";
    reduction_single_pass_min_i64 = Minimum of i64: "minimum";
    reduction_single_pass_min_u64 = Minimum of u64: "minimum";
    reduction_single_pass_min_f32 = Minimum of f32: "minimum";
    reduction_single_pass_min_f64 = Minimum of f64: "minimum";
    reduction_single_pass_max_i32 = Maximum of i32: "maximum";
    reduction_single_pass_max_u32 = Maximum of u32: "maximum";
    reduction_single_pass_max_i64 = Maximum of i64: "maximum";
    reduction_single_pass_max_u64 = Maximum of u64: "maximum";
    reduction_single_pass_max_f32 = Maximum of f32: "maximum";
    reduction_single_pass_max_f64 = Maximum of f64: "maximum";
}

/// Shared memory of a block.
pub(super) struct Shared<T> {
    /// Two sets of one result per warp: while the results of one chunk are read, those of the next
    /// can be written.
    pub(super) partials: *mut T,
    /// The block's ticket, for all its threads.
    pub(super) ticket: *mut u32,
}

/// The values that the operator of terms `S` combines.
pub(super) type Value<S, const ARRAYS: usize> = <<S as Terms<ARRAYS>>::Operator as Operator>::Value;

/// The result type of the operator of terms `S`.
pub(super) type Output<S, const ARRAYS: usize> =
    <<S as Terms<ARRAYS>>::Operator as Operator>::Output;

/// A vector of 16 bytes, loaded by one access.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Vector(u32, u32, u32, u32);

/// Elements of a vector, or values that a thread collects at a time.
const fn per_vector<T: Words>() -> usize {
    VECTOR_WORDS / T::COUNT
}

/// The values of a thread's lanes. A vector of fewer elements uses only the first ones.
type Lanes<T> = [T; VECTOR_WORDS];

/// Reduces the terms of the arrays, of `n` elements each, and writes the result.
///
/// # Safety
///
/// As the entry points, for each of the arrays; `shared` is this block's.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "the parameters of the kernels")]
pub(super) unsafe fn reduce<S: Terms<ARRAYS>, const ARRAYS: usize>(
    terms: S,
    arrays: [*const S::Element; ARRAYS],
    n: usize,
    tiles: u32,
    chunks: u32,
    workspace: *mut u64,
    result: *mut Output<S, ARRAYS>,
    shared: Shared<Value<S, ARRAYS>>,
) {
    let thread = thread::thread_idx_x();
    let blocks = thread::grid_dim_x();
    let mut ticket = 0;
    // equivalent mutant (comparison: `>=`): with one block the ticket returns to zero at once
    if thread == 0 && chunks > 1 {
        // SAFETY: the ticket is the workspace's first word, which is aligned, and which only this
        // operation touches. It counts to `blocks - 1` and then restarts at 0.
        ticket = unsafe { take_ticket(workspace.cast(), blocks - 1) };
    }

    let span = tiles as usize * (THREADS as usize * per_vector::<S::Element>());
    let mut chunk = thread::block_idx_x();
    let mut half = 0;
    loop {
        let base = chunk as usize * span;
        // SAFETY: chunk < chunks, so base < n, and `min` keeps the chunk's elements below n. `half`
        // alternates, so the warps' results of a chunk are overwritten two chunks later, after a
        // barrier that follows their last read. The ticket is written by one thread, with the same
        // value each time, and read after the loop.
        let total = unsafe {
            let values = accumulate(terms, arrays, base, span.min(n - base));
            if thread == 0 {
                *shared.ticket = ticket;
            }
            let lanes = per_vector::<S::Element>();
            fold::<S::Operator>(values, lanes, shared.partials.add(half))
        };
        // equivalent mutant (literal: `0` made `1`): the whole first warp has the result
        if thread == 0 {
            if chunks == 1 {
                // SAFETY: the only block with a chunk, and one thread of it.
                unsafe { *result = S::Operator::finish(total) };
            } else {
                // SAFETY: only one thread of one block has this chunk, and nobody else writes its
                // slot before the value has been collected.
                unsafe { post(slot::<Value<S, ARRAYS>>(workspace, chunk), total) };
            }
        }
        half ^= WARPS;
        chunk += blocks;
        if chunk >= chunks {
            break;
        }
    }

    // SAFETY: written before the barrier in `fold`.
    if chunks == 1 || unsafe { *shared.ticket } != blocks - 1 {
        return;
    }
    // This block took the last ticket, so every other has begun and will post its results.
    // SAFETY: all threads of the block are here; the rest as in the loop.
    unsafe {
        let values = collect::<S::Operator>(workspace, chunks);
        let lanes = per_vector::<Value<S, ARRAYS>>();
        let total = fold::<S::Operator>(values, lanes, shared.partials.add(half));
        // equivalent mutant (literal: `0` made `1`): the whole first warp has the result
        if thread == 0 {
            *result = S::Operator::finish(total);
        }
    }
}

/// The values of the thread's lanes for a chunk, the `len` elements from `base` on.
///
/// # Safety
///
/// The arrays are readable for `len` elements from `base` on, and aligned to 16 bytes there.
#[inline(always)]
unsafe fn accumulate<S: Terms<ARRAYS>, const ARRAYS: usize>(
    terms: S,
    arrays: [*const S::Element; ARRAYS],
    base: usize,
    len: usize,
) -> Lanes<Value<S, ARRAYS>> {
    let per_vector = per_vector::<S::Element>();
    let per_tile = THREADS as usize * per_vector;
    let thread = thread::thread_idx_x() as usize;
    // Both fit: a chunk has far fewer tiles than 2³².
    let mut tiles = (len / per_tile) as u32;
    let rest = len % per_tile;

    let mut lanes = [S::EMPTY; VECTOR_WORDS];
    let mut tile = 0;
    // SAFETY: `vectors` point to the thread's vectors of the next tile, and only whole tiles are
    // read before the rest. Of the rest, which is less than a tile, the thread reads only elements
    // before its end.
    unsafe {
        let mut vectors = [core::ptr::null::<Vector>(); ARRAYS];
        unrolled::<ARRAYS>(|a| vectors[a] = arrays[a].add(base).cast::<Vector>().add(thread));
        // equivalent mutant (guard): the same tiles in the same order, in other loads
        // equivalent mutant (comparison): the same
        // equivalent mutant (literal): the same
        if ARRAYS == 1 {
            while tiles >= BATCH {
                keep_rolled();
                batch::<S, ARRAYS, { BATCH as usize }>(terms, &mut vectors, &mut tile, &mut lanes);
                tiles -= BATCH;
            }
            if tiles >= 2 {
                batch::<S, ARRAYS, 2>(terms, &mut vectors, &mut tile, &mut lanes);
                tiles -= 2;
            }
        } else {
            // With two arrays, half as many tiles give the same number of loads.
            while tiles >= BATCH / 2 {
                keep_rolled();
                batch::<S, ARRAYS, { BATCH as usize / 2 }>(
                    terms,
                    &mut vectors,
                    &mut tile,
                    &mut lanes,
                );
                tiles -= BATCH / 2;
            }
        }
        if tiles >= 1 {
            batch::<S, ARRAYS, 1>(terms, &mut vectors, &mut tile, &mut lanes);
        }
        // equivalent mutant (guard): without a rest a thread takes nothing
        // equivalent mutant (comparison): the same
        if rest > 0 {
            let rest = rest.saturating_sub(thread * per_vector);
            if rest >= per_vector {
                batch::<S, ARRAYS, 1>(terms, &mut vectors, &mut tile, &mut lanes);
            } else {
                unrolled::<{ VECTOR_WORDS - 1 }>(|i| {
                    if i < rest {
                        // equivalent mutant (literal): all of them are replaced below
                        let mut elements = [element::<S::Element>([0; VECTOR_WORDS], 0); ARRAYS];
                        unrolled::<ARRAYS>(|a| {
                            elements[a] = *vectors[a].cast::<S::Element>().add(i);
                        });
                        lanes[i] = terms.take(lanes[i], elements, tile);
                    }
                });
            }
        }
    }
    let mut values = [S::Operator::IDENTITY; VECTOR_WORDS];
    unrolled::<VECTOR_WORDS>(|i| {
        // equivalent mutant (guard): lanes that are not used are not combined
        // equivalent mutant (comparison): the same
        if i < per_vector {
            let first = (base + thread * per_vector + i) as u64;
            values[i] = S::value(lanes[i], |tile| first + u64::from(tile) * per_tile as u64);
        }
    });
    values
}

/// Makes the thread's lanes take its vectors of `TILES` tiles in order, and advances `vectors` and
/// `tile`. All loads come before the first element is taken.
///
/// # Safety
///
/// The thread's vectors of `TILES` tiles are readable; `vectors` point to those of the first.
#[inline(always)]
unsafe fn batch<S: Terms<ARRAYS>, const ARRAYS: usize, const TILES: usize>(
    terms: S,
    vectors: &mut [*const Vector; ARRAYS],
    tile: &mut u32,
    lanes: &mut Lanes<S::Lane>,
) {
    // equivalent mutant (literal): all of them are replaced below
    let mut loaded = [[Vector(0, 0, 0, 0); TILES]; ARRAYS];
    unrolled::<TILES>(|t| {
        unrolled::<ARRAYS>(|a| {
            // SAFETY: one vector of each tile, as the caller promises, in global memory
            // that nobody writes.
            loaded[a][t] = unsafe { load_readonly(vectors[a].add(t * THREADS as usize)) };
        });
    });
    unrolled::<TILES>(|t| {
        unrolled::<VECTOR_WORDS>(|i| {
            if i < per_vector::<S::Element>() {
                // equivalent mutant (literal): all of them are replaced below
                let mut elements = [element::<S::Element>([0; VECTOR_WORDS], 0); ARRAYS];
                unrolled::<ARRAYS>(|a| {
                    let Vector(x, y, z, w) = loaded[a][t];
                    elements[a] = element([x, y, z, w], i);
                });
                lanes[i] = terms.take(lanes[i], elements, *tile + t as u32);
            }
        });
    });
    *tile += TILES as u32;
    unrolled::<ARRAYS>(|a| {
        // Behind the last tiles it may point beyond the array, where nothing is read.
        vectors[a] = vectors[a].wrapping_add(TILES * THREADS as usize);
    });
}

/// Element `i` of a vector.
#[inline(always)]
fn element<T: Words>(words: [u32; VECTOR_WORDS], i: usize) -> T {
    let mut own = [0; MAX_WORDS];
    unrolled::<MAX_WORDS>(|j| {
        if j < T::COUNT {
            own[j] = words[i * T::COUNT + j];
        }
    });
    T::from_words(own)
}

/// Combines the lanes of all threads, neighbours first; each thread has `lanes` of them: 1, 2 or 4.
/// The first warp returns the result, other warps an unspecified value.
///
/// # Safety
///
/// - All threads of the block call this, and it has [`THREADS`] of them.
/// - `partials` is shared memory for one element per warp. Nobody else writes it before the first
///   warp reaches the next barrier after the one in this function.
#[inline(always)]
unsafe fn fold<O: Operator>(
    values: Lanes<O::Value>,
    lanes: usize,
    partials: *mut O::Value,
) -> O::Value {
    let thread = thread::thread_idx_x();
    let mut total = match lanes {
        1 => values[0],
        2 => O::combine(values[0], values[1]),
        _ => O::combine(
            O::combine(values[0], values[1]),
            O::combine(values[2], values[3]),
        ),
    };
    unrolled::<5>(|step| {
        // SAFETY: all lanes of the warp are here.
        let other = unsafe { from_lane_xor(total, 1 << step) };
        total = O::combine(total, other);
    });
    // SAFETY: one element per warp, written by its first thread and read after the barrier.
    unsafe {
        // equivalent mutant (guard): the whole warp has the result
        if thread.is_multiple_of(WARP) {
            *partials.add((thread / WARP) as usize) = total;
        }
        thread::sync_threads();
        // equivalent mutant (guard): the values that other warps return are not used
        if thread < WARP {
            // equivalent mutant (literal: `2` made `3`): the same result, in more registers
            // equivalent mutant (guard): the same result, in more registers or more shuffles
            // equivalent mutant (comparison): the same
            if O::Value::COUNT <= 2 {
                // Every lane combines all of them, read from shared memory by broadcast: faster
                // than four more shuffles.
                let mut warps = [O::IDENTITY; WARPS];
                unrolled::<WARPS>(|warp| warps[warp] = *partials.add(warp));
                unrolled::<8>(|i| warps[i] = O::combine(warps[2 * i], warps[2 * i + 1]));
                unrolled::<4>(|i| warps[i] = O::combine(warps[2 * i], warps[2 * i + 1]));
                unrolled::<2>(|i| warps[i] = O::combine(warps[2 * i], warps[2 * i + 1]));
                total = O::combine(warps[0], warps[1]);
            } else {
                // Sixteen such values would not fit the registers.
                total = *partials.add(thread as usize % WARPS);
                unrolled::<4>(|step| {
                    // All lanes of the warp are here.
                    let other = from_lane_xor(total, 1 << step);
                    total = O::combine(total, other);
                });
            }
        }
    }
    total
}

const _: () = assert!(WARPS == 16, "fold combines the results of 16 warps");

/// The value of the lane whose number differs from the caller's in the bit `mask`.
///
/// # Safety
///
/// All lanes of the warp call this together.
#[inline(always)]
unsafe fn from_lane_xor<T: Words>(value: T, mask: u32) -> T {
    let mut words = value.to_words();
    unrolled::<MAX_WORDS>(|i| {
        // equivalent mutant (guard: made `true`): words beyond the value's are not used
        // equivalent mutant (comparison): the same
        if i < T::COUNT {
            // SAFETY: as the caller promises.
            (words[i], _) = unsafe { warp::warp_shuffle_xor(ALL_LANES, words[i], mask, WARP) };
        }
    });
    T::from_words(words)
}

/// The slot of a chunk: a 64-bit word for each 32-bit word of a value.
///
/// # Safety
///
/// The workspace has a slot for this chunk.
#[inline(always)]
unsafe fn slot<T: Words>(workspace: *mut u64, chunk: u32) -> *mut u64 {
    // SAFETY: as the caller promises.
    unsafe { workspace.add(FIRST_SLOT + chunk as usize * T::COUNT) }
}

/// Writes a value to a slot.
///
/// # Safety
///
/// The slot is valid, and whoever accesses it at the same time does so atomically.
#[inline(always)]
unsafe fn post<T: Words>(slot: *mut u64, value: T) {
    let words = value.to_words();
    unrolled::<MAX_WORDS>(|i| {
        if i < T::COUNT {
            // SAFETY: as the caller promises.
            unsafe { store(slot.add(i), FULL | u64::from(words[i])) };
        }
    });
}

/// The thread's lanes of the chunks' results. Waits until they are present, then clears their
/// slots.
///
/// # Safety
///
/// - All threads of exactly one block call this, and it has [`THREADS`] of them.
/// - The workspace has `chunks` slots, each of which is or will be posted to once.
#[inline(always)]
unsafe fn collect<O: Operator>(workspace: *mut u64, chunks: u32) -> Lanes<O::Value> {
    /// 64-bit words of the slots for which a thread waits at a time.
    const WORDS: usize = VECTOR_WORDS;
    let count = O::Value::COUNT;
    let per_vector = per_vector::<O::Value>() as u32;

    let mut lanes = [O::IDENTITY; VECTOR_WORDS];
    let thread = thread::thread_idx_x();
    // A warp leaves the loop as a whole, even if some of its threads have no slot: after a loop
    // that threads leave one by one, `ptxas` generates slow shuffles.
    let mut of_warp = thread / WARP * WARP * per_vector;
    // equivalent mutant (comparison: `<=`): one more iteration, without slots
    while of_warp < chunks {
        keep_rolled();
        let first = of_warp + thread % WARP * per_vector;
        let words = chunks.saturating_sub(first).min(per_vector) as usize * count;
        // SAFETY: the slots of at most `per_vector` chunks from `first` on, which no
        // other thread collects. All threads of the warp are here.
        unsafe {
            let slots = slot::<O::Value>(workspace, first);
            let mut values = [0; WORDS];
            loop {
                let mut all = FULL;
                unrolled::<WORDS>(|i| {
                    if i < words {
                        values[i] = load(slots.add(i));
                        all &= values[i];
                    }
                });
                if warp::warp_vote_all(ALL_LANES, all != 0) {
                    break;
                }
            }
            unrolled::<WORDS>(|i| {
                if i < words {
                    // equivalent mutant (literal): without its flag a slot is empty, whatever it holds
                    store(slots.add(i), 0);
                }
            });
            let values = values.map(|value| value as u32);
            unrolled::<VECTOR_WORDS>(|i| {
                if i * count < words {
                    lanes[i] = O::combine(lanes[i], element(values, i));
                }
            });
        }
        of_warp += THREADS * per_vector;
    }
    lanes
}
