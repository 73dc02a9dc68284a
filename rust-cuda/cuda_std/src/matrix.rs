//! Multiply-accumulate of small matrices by a warp, on the tensor cores: `mma` and `ldmatrix`.
//!
//! The 32 lanes of a warp hold the matrices together, a *fragment* in each lane, and compute
//! `A B + C` of 16 rows and 8 columns in one instruction. Needs compute capability 8.0 or later.
//!
//! | with `group = lane / 4`, `place = lane % 4` | `A` (16 × 16), `[u32; 4]` | `B` (16 × 8), `[u32; 2]` | `C` (16 × 8), `[_; 4]` |
//! |---|---|---|---|
//! | element 0 | row `group`, columns `2 place + {0, 1}` | rows `2 place + {0, 1}`, column `group` | row `group`, column `2 place` |
//! | element 1 | row `group + 8`, the same columns | the same rows `+ 8` | the same row, column `2 place + 1` |
//! | element 2 | row `group`, the same columns `+ 8` | | row `group + 8`, column `2 place` |
//! | element 3 | row `group + 8`, the same columns `+ 8` | | row `group + 8`, column `2 place + 1` |
//!
//! A `u32` holds two half-precision numbers, the first in its lower half, or four `i8`s. With `i8`
//! the inner dimension is 32: the columns of `A` and the rows of `B` are `4 place + {0, 1, 2, 3}`,
//! plus 16 where the table has plus 8.
//!
//! From shared memory, [`load_matrix`] reads fragments of `A`, and [`load_matrix_transposed`] those
//! of a `B` stored by rows.
//!
//! Products of `i8` are exact and give the same bits everywhere. A tensor core rounds sums of
//! half-precision products in its own way; the emulator rounds each sum once.
//!
//! ```
//! use cuda_std::matrix;
//! use cuda_std::prelude::*;
//!
//! /// `c += a b` of one warp; `a` and `b` hold the lanes' fragments one after another.
//! ///
//! /// # Safety
//! ///
//! /// One warp; each buffer has an element per lane.
//! #[kernel]
//! pub unsafe fn product(a: *const [u32; 4], b: *const [u32; 2], c: *mut [f32; 4]) {
//!     let lane = thread::thread_idx_x() as usize;
//!     // SAFETY: in bounds, and the whole warp is here.
//!     unsafe { *c.add(lane) = matrix::mma_f16(*a.add(lane), *b.add(lane), *c.add(lane)) };
//! }
//! ```

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics::{ShuffleKind, lane_id, shuffle};
#[cfg(not(target_arch = "nvptx64"))]
use half::{bf16, f16};

/// Reads `N` (1, 2 or 4) matrices of 8 rows of eight 16-bit numbers from shared memory, for the
/// whole warp (`ldmatrix`).
///
/// Lane `8 i + r` passes the address of row `r` of matrix `i`; other lanes' pointers are not used.
/// Element `i` of the result holds the calling lane's two numbers of matrix `i`: row `lane / 4`,
/// columns `2 (lane % 4)` and the next.
///
/// # Safety
///
/// All 32 lanes of the warp call this together. The rows are in shared memory, aligned to 16 bytes and
/// valid for reads.
#[inline(always)]
#[track_caller]
pub unsafe fn load_matrix<const N: usize>(row: *const [u16; 8]) -> [u32; N] {
    const {
        assert!(
            N == 1 || N == 2 || N == 4,
            "load_matrix reads 1, 2 or 4 matrices"
        )
    };
    // SAFETY: as the caller promises.
    unsafe { load::<N, false>(row) }
}

/// Reads matrices as [`load_matrix`] does, each transposed: the lane's two numbers are in column
/// `lane / 4`, rows `2 (lane % 4)` and the next.
///
/// # Safety
///
/// As for [`load_matrix`].
#[inline(always)]
#[track_caller]
pub unsafe fn load_matrix_transposed<const N: usize>(row: *const [u16; 8]) -> [u32; N] {
    const {
        assert!(
            N == 1 || N == 2 || N == 4,
            "load_matrix reads 1, 2 or 4 matrices"
        )
    };
    // SAFETY: as the caller promises.
    unsafe { load::<N, true>(row) }
}

#[cfg(target_arch = "nvptx64")]
#[inline(always)]
unsafe fn load<const N: usize, const TRANSPOSED: bool>(row: *const [u16; 8]) -> [u32; N] {
    macro_rules! ldmatrix {
        ($name:literal, $out:literal, $($reg:ident)*) => {
            asm!(
                concat!("{{ .reg .u64 at; cvta.to.shared.u64 at, {at}; ldmatrix.sync.aligned.m8n8.", $name, ".shared.b16 ", $out, ", [at]; }}"),
                $($reg = out(reg32) $reg,)*
                at = in(reg64) row,
                options(nostack)
            )
        };
    }
    let mut result = [0; N];
    let (a, b, c, d): (u32, u32, u32, u32);
    // SAFETY: as the caller promises.
    unsafe {
        match (N, TRANSPOSED) {
            (1, false) => {
                ldmatrix!("x1", "{{{a}}}", a);
                (b, c, d) = (0, 0, 0);
            }
            (1, true) => {
                ldmatrix!("x1.trans", "{{{a}}}", a);
                (b, c, d) = (0, 0, 0);
            }
            (2, false) => {
                ldmatrix!("x2", "{{{a}, {b}}}", a b);
                (c, d) = (0, 0);
            }
            (2, true) => {
                ldmatrix!("x2.trans", "{{{a}, {b}}}", a b);
                (c, d) = (0, 0);
            }
            (_, false) => ldmatrix!("x4", "{{{a}, {b}, {c}, {d}}}", a b c d),
            (_, true) => ldmatrix!("x4.trans", "{{{a}, {b}, {c}, {d}}}", a b c d),
        }
    }
    for (to, from) in result.iter_mut().zip([a, b, c, d]) {
        *to = from;
    }
    result
}

#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
unsafe fn load<const N: usize, const TRANSPOSED: bool>(row: *const [u16; 8]) -> [u32; N] {
    let lane = lane_id();
    core::array::from_fn(|matrix| {
        let row_at = |r: u32| {
            let lane = 8 * matrix as u32 + r;
            let (address, _) = shuffle(u32::MAX, row as u64, ShuffleKind::Index, lane, 32);
            address as *const u16
        };
        let (group, place) = (lane / 4, 2 * (lane % 4));
        // SAFETY: a row of eight numbers, as the caller promises.
        let [low, high] = unsafe {
            if TRANSPOSED {
                let (first, second) = (row_at(place), row_at(place + 1));
                [*first.add(group as usize), *second.add(group as usize)]
            } else {
                let first = row_at(group).add(place as usize);
                [*first, *first.add(1)]
            }
        };
        u32::from(low) | u32::from(high) << 16
    })
}

macro_rules! products {
    ($($(#[$doc:meta])* $name:ident($acc:ident, $instruction:literal, $value:expr);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// All 32 lanes of the warp call this together.
        #[inline(always)]
        #[track_caller]
        #[must_use]
        pub unsafe fn $name(a: [u32; 4], b: [u32; 2], c: [$acc; 4]) -> [$acc; 4] {
            #[cfg(target_arch = "nvptx64")]
            {
                let [mut d0, mut d1, mut d2, mut d3] = c;
                // SAFETY: as the caller promises; only registers are used.
                unsafe {
                    asm!(
                        concat!(
                            "mma.sync.aligned.", $instruction,
                            " {{{d0}, {d1}, {d2}, {d3}}}, {{{a0}, {a1}, {a2}, {a3}}}, {{{b0}, {b1}}}, ",
                            "{{{d0}, {d1}, {d2}, {d3}}};"
                        ),
                        d0 = inout(reg32) d0, d1 = inout(reg32) d1,
                        d2 = inout(reg32) d2, d3 = inout(reg32) d3,
                        a0 = in(reg32) a[0], a1 = in(reg32) a[1],
                        a2 = in(reg32) a[2], a3 = in(reg32) a[3],
                        b0 = in(reg32) b[0], b1 = in(reg32) b[1],
                        options(nostack, nomem, preserves_flags)
                    );
                }
                [d0, d1, d2, d3]
            }
            #[cfg(not(target_arch = "nvptx64"))]
            emulated(a, b, c, $value)
        }
    )*};
}

products! {
    /// `A B + C` with `A` and `B` of `f16`, summed in `f32` (`mma.m16n8k16.f32.f16.f16.f32`).
    mma_f16(f32, "m16n8k16.row.col.f32.f16.f16.f32", |c: f32, pairs| {
        of_halves(c, pairs, |bits| f16::from_bits(bits).to_f64())
    });
    /// `A B + C` with `A` and `B` of `bf16`, summed in `f32` (`mma.m16n8k16.f32.bf16.bf16.f32`).
    mma_bf16(f32, "m16n8k16.row.col.f32.bf16.bf16.f32", |c: f32, pairs| {
        of_halves(c, pairs, |bits| bf16::from_bits(bits).to_f64())
    });
    /// `A B + C` with `A` and `B` of `i8`, exact; sums in `i32` wrap
    /// (`mma.m16n8k32.s32.s8.s8.s32`).
    mma_i8(i32, "m16n8k32.row.col.s32.s8.s8.s32", |c: i32, pairs| {
        pairs.iter().fold(c, |sum, (a, b)| {
            (a.to_le_bytes().into_iter().zip(b.to_le_bytes())).fold(sum, |sum, (a, b)| {
                sum.wrapping_add(i32::from(a as i8) * i32::from(b as i8))
            })
        })
    });
}

/// An element of `A B + C` from a row of `A` and a column of `B`, two numbers in each `u32`.
#[cfg(not(target_arch = "nvptx64"))]
fn of_halves(c: f32, pairs: &[(u32, u32); 8], value: fn(u16) -> f64) -> f32 {
    let sum = pairs.iter().fold(f64::from(c), |sum, &(a, b)| {
        // Each product is exact.
        let low = value(a as u16) * value(b as u16);
        let high = value((a >> 16) as u16) * value((b >> 16) as u16);
        sum + low + high
    });
    sum as f32
}

/// The lane's four elements of `A B + C`: `element` computes each from that of `C`, a row of `A`
/// and a column of `B`, which are shuffled from the lanes that hold them.
#[cfg(not(target_arch = "nvptx64"))]
#[track_caller]
fn emulated<T: Copy>(
    a: [u32; 4],
    b: [u32; 2],
    c: [T; 4],
    element: impl Fn(T, &[(u32, u32); 8]) -> T,
) -> [T; 4] {
    let (group, place) = (lane_id() / 4, lane_id() % 4);
    let of = |low: u32, high: u32, lane: u32| {
        let bits = u64::from(low) | u64::from(high) << 32;
        let (bits, _) = shuffle(u32::MAX, bits, ShuffleKind::Index, lane, 32);
        [bits as u32, (bits >> 32) as u32]
    };
    // From each of the four lanes that share a row or a column.
    let mut rows = [[[0; 2]; 2]; 4];
    let mut columns = [[[0; 2]; 2]; 4];
    for t in 0..4 {
        let from = 4 * group + t;
        rows[t as usize] = [of(a[0], a[2], from), of(a[1], a[3], from)];
        columns[t as usize] = [0, 1].map(|j| of(b[0], b[1], 4 * (2 * place + j) + t));
    }
    core::array::from_fn(|i| {
        let (row, column) = (i / 2, i % 2);
        let pairs = core::array::from_fn(|k| {
            let (t, half) = (k % 4, k / 4);
            (rows[t][row][half], columns[t][column][half])
        });
        element(c[i], &pairs)
    })
}
