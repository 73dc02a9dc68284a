//! Gradient, divergence, curl and Laplacian in one launch each, with the stencils,
//! types, orders of accuracy and boundaries of [`general`](super::general).
//!
//! ```text
//! gradient    (∂f/∂x, ∂f/∂y, ∂f/∂z)
//! divergence  (∂u/∂x + ∂v/∂y) + ∂w/∂z
//! curl        (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y)
//! Laplacian   (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z²
//! ```
//!
//! A block marches along z plane by plane: neighbours along z are in registers, those along x and y
//! in shared memory (`planes.rs`). This module defines only which derivatives of which fields each
//! operator combines, and its launch.

use super::general::{Tables, rule, rule_of};
use super::planes::{Grid, LINES, Operator, blocks, operator, vectors};
#[cfg(not(target_arch = "nvptx64"))]
use super::planes::{planes_between, planes_near_end};
use crate::vector::{Points, Vector2F64, Vector4, WARP};
use cuda_std::prelude::*;
use cuda_std::{launch_bounds, shared_array};

/// The numbers of the axes.
const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;

/// Threads of a block along x and y.
pub const BLOCK: (u32, u32) = (WARP, LINES as u32);

/// Bytes of an access if rows are whole accesses; otherwise an access is one point.
const ACCESS: usize = size_of::<Vector4>();

/// The rows of a thread, and the length of a block's march.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// Rows of a thread if rows are whole accesses.
    whole: usize,
    /// Rows of a thread if they are not, in f32 and in f64.
    single: [usize; 2],
    /// The most planes that a block goes through.
    longest: u32,
}

/// The share of the gradient's threads.
pub const GRADIENT: Share = Share {
    whole: 2,
    single: [4, 2],
    longest: 8,
};
/// The share of the divergence's threads.
pub const DIVERGENCE: Share = Share {
    longest: 64,
    ..GRADIENT
};
/// The share of the curl's threads.
pub const CURL: Share = Share {
    whole: 1,
    single: [2, 2],
    longest: 64,
};
/// The share of the Laplacian's threads.
pub const LAPLACIAN: Share = DIVERGENCE;

/// Blocks that run at the same time: two on each multiprocessor of an H200.
const AT_ONCE: usize = 264;

/// The time for the beginning of a block's march, in iterations.
const BEGINNING: usize = 6;

impl Share {
    /// Rows of a thread if rows are not whole accesses, for points of `size` bytes.
    const fn single(self, size: usize) -> usize {
        self.single[size / size_of::<f64>()]
    }

    /// The number of blocks along x, and the number of planes that a block goes through. There are
    /// `planes` planes of `nx` × `ny` points of `size` bytes; `near` of them are near a one-sided end
    /// of z. `None` if the number of blocks, or of points in a plane, does not fit `u32`.
    #[must_use]
    pub const fn blocks_and_segment(
        self,
        [nx, ny, planes]: [usize; 3],
        near: usize,
        rules: u32,
        size: usize,
    ) -> Option<(u32, u32)> {
        match nx.checked_mul(ny) {
            Some(points) if points <= u32::MAX as usize => {}
            _ => return None,
        }
        let count = ACCESS / size;
        let (rows, count) = if nx.is_multiple_of(count) {
            (self.whole, count)
        } else {
            (self.single(size), 1)
        };
        // A block also computes the points near one-sided ends in its part; short segments keep
        // their number small.
        let one_sided =
            rule_of(rules, X) == rule::ONE_SIDED || rule_of(rules, Y) == rule::ONE_SIDED;
        let longest = if one_sided {
            MAX_SEGMENT_AT_ENDS
        } else if nx * ny >= LARGE_PLANE / size && self.longest < LONG_SEGMENT {
            LONG_SEGMENT
        } else {
            self.longest
        };
        let (mut best, mut least) = (None, usize::MAX);
        let mut segment = MIN_SEGMENT;
        while segment <= longest {
            if let Some(blocks) = blocks([nx, ny, planes], near, rows, count, segment) {
                let rounds = (blocks as usize).div_ceil(AT_ONCE);
                let turns = rounds.saturating_mul(segment as usize + BEGINNING);
                if turns < least {
                    (best, least) = (Some((blocks, segment)), turns);
                }
            }
            segment *= 2;
        }
        best
    }
}

/// The launch of an operator.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct March {
    /// Planes that a block goes through.
    pub segment: u32,
    /// The geometry of the launch.
    pub geometry: crate::registry::Geometry,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Share {
    /// The launch for these planes of a field of points of `size` bytes, with the radius and the
    /// rules of `field`.
    ///
    /// # Errors
    ///
    /// [`Refusal`](crate::registry::Refusal) for extents that exceed what the kernel can count.
    pub fn march(
        self,
        kernel: &'static str,
        field: &crate::registry::Problem,
        planes: core::ops::Range<usize>,
        size: usize,
    ) -> Result<March, crate::registry::Refusal> {
        super::general::check_extents(kernel, field)?;
        let ([nx, ny, nz], rules) = (field.extents, field.rules);
        // The extents have been checked, so the numbers of planes fit.
        let (nz, window) = (nz as u32, [planes.start as u32, planes.end as u32]);
        let near_end = planes_near_end(field.radius, rule_of(rules, Z)).min(nz / 2);
        let [low, high] = planes_between(window, nz, near_end);
        let near = planes.len() - (high - low) as usize;
        let counted = |extents| self.blocks_and_segment(extents, near, rules, size);
        let extents = [nx, ny, planes.len()];
        let (blocks, segment) = super::geometry::counted(kernel, extents, counted)?;
        Ok(March {
            segment,
            geometry: crate::registry::Geometry::new([blocks, 1, 1], [BLOCK.0, BLOCK.1, 1]),
        })
    }
}

/// The fewest planes that a block goes through.
const MIN_SEGMENT: u32 = 2;

/// For planes of at least this many bytes the longest march is at least [`LONG_SEGMENT`] planes:
/// the second-level cache then keeps less of what the next block reads again.
const LARGE_PLANE: usize = 2 << 20;
const LONG_SEGMENT: u32 = 16;

/// The most planes of a march with one-sided ends along x or y.
const MAX_SEGMENT_AT_ENDS: u32 = 8;

// gate derivative3d_general_gradient_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_divergence_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_curl_*: spills = 0, stack = 0, LD = 0, ST = 0
// gate derivative3d_general_laplacian_*: spills = 0, stack = 0, LD = 0, ST = 0

/// Declares entry points: name, real type, vector of a whole access, operator, its fields, its
/// outputs and the number of derivatives of each, share of a thread, blocks that a multiprocessor
/// must be able to hold.
macro_rules! kernels {
    ($(
        $(#[$what:meta])*
        $name:ident: $real:ident, $vector:ty, $operator:ty, $fields:literal ($($input:ident),+)
            -> $outputs:literal ($($output:ident),+) of $terms:literal, $share:ident, $blocks:literal;
    )+) => {$(
        $(#[$what])*
        ///
        /// All fields: `nx * ny * nz` elements, x fastest. `rules`: for each axis one of
        /// [`rule`](super::general::rule), that of x in the lowest byte. `begin` and `end`: the first
        /// of the planes to compute and the one after the last. `segment`: the planes that a block
        /// goes through. `tables`: the tables for the order of the derivatives.
        ///
        /// # Safety
        ///
        /// - The fields read are readable and those written writable for `nx * ny * nz` elements,
        ///   all aligned to 16 bytes; a written field overlaps no other field, and nothing else
        ///   accesses it during the launch.
        /// - `radius` is 1 to 4; each axis has at least [`min_len`](super::general::min_len) and at
        ///   most [`MAX_LEN`](super::general::MAX_LEN) points; a plane has fewer than 2³².
        /// - `begin < end <= nz` and `segment >= 1`; blocks of [`BLOCK`] threads, as many along x as
        #[doc = concat!("  [`", stringify!($share), "`] says.")]
        #[kernel]
        #[launch_bounds(256, $blocks)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(
            $($input: *const $real,)+
            $($output: *mut $real,)+
            nx: u32,
            ny: u32,
            nz: u32,
            begin: u32,
            end: u32,
            radius: u32,
            rules: u32,
            segment: u32,
            #[grid_constant] tables: &Tables<$real>,
        ) {
            const ALONG: [[bool; 3]; $fields] =
                <$operator as Operator<$fields, $outputs, $terms>>::ALONG;
            const WHOLE: usize =
                vectors(&ALONG, $share.whole, <$vector>::COUNT, size_of::<$real>());
            const SINGLE: usize = vectors(&ALONG, $share.single(size_of::<$real>()), 1, size_of::<$real>());
            const { assert!(size_of::<$vector>() == ACCESS) };
            let tiles = shared_array![Vector4; if WHOLE > SINGLE { WHOLE } else { SINGLE }];
            let (extents, planes) = ([nx, ny, nz], [begin, end]);
            let grid = Grid { extents, planes, radius, rules, segment, tables };
            let (inputs, outputs) = ([$($input),+], [$($output),+]);
            // SAFETY: forwarded word for word; the tiles are the block's own.
            unsafe {
                operator::<
                    $real, $vector, $operator, $fields, $outputs, $terms,
                    { $share.whole }, { $share.single(size_of::<$real>()) },
                >(tiles.cast(), inputs, outputs, grid);
            }
        }

        crate::register! {
            $name: $real, Tuned,
            concat!(stringify!($operator), " in one launch, orders 2 to 8, any boundary"),
            geometry: |kernel, field| {
                let planes = 0..field.extents[2];
                Ok($share.march(kernel, field, planes, size_of::<$real>())?.geometry)
            },
            cost: |field| super::geometry::derivatives::<$real>(
                field,
                $fields,
                $outputs,
                $outputs * $terms,
                <$operator as Operator<$fields, $outputs, $terms>>::ORDER as u64,
            ),
            example: super::general::EXAMPLE,
            tile: "32 accesses of 16 bytes × 8 or 16 rows",
        }
    )+};
}

kernels! {
    /// The gradient of `f` in `f32`.
    derivative3d_general_gradient_f32:
        f32, Vector4, Gradient, 1 (f) -> 3 (gx, gy, gz) of 1, GRADIENT, 2;
    /// The gradient of `f` in `f64`.
    derivative3d_general_gradient_f64:
        f64, Vector2F64, Gradient, 1 (f) -> 3 (gx, gy, gz) of 1, GRADIENT, 2;
    /// The divergence of (u, v, w) in `f32`.
    derivative3d_general_divergence_f32:
        f32, Vector4, Divergence, 3 (u, v, w) -> 1 (div) of 3, DIVERGENCE, 2;
    /// The divergence of (u, v, w) in `f64`.
    derivative3d_general_divergence_f64:
        f64, Vector2F64, Divergence, 3 (u, v, w) -> 1 (div) of 3, DIVERGENCE, 2;
    /// The curl of (u, v, w) in `f32`.
    derivative3d_general_curl_f32:
        f32, Vector4, Curl, 3 (u, v, w) -> 3 (cx, cy, cz) of 2, CURL, 2;
    /// The curl of (u, v, w) in `f64`.
    derivative3d_general_curl_f64:
        f64, Vector2F64, Curl, 3 (u, v, w) -> 3 (cx, cy, cz) of 2, CURL, 2;
    /// The Laplacian of `f` in `f32`; the tables are those of second derivatives.
    derivative3d_general_laplacian_f32:
        f32, Vector4, Laplacian, 1 (f) -> 1 (lf) of 3, LAPLACIAN, 2;
    /// The Laplacian of `f` in `f64`; the tables are those of second derivatives.
    derivative3d_general_laplacian_f64:
        f64, Vector2F64, Laplacian, 1 (f) -> 1 (lf) of 3, LAPLACIAN, 2;
}

/// (∂f/∂x, ∂f/∂y, ∂f/∂z).
struct Gradient;

impl Operator<1, 3, 1> for Gradient {
    const ORDER: usize = 1;
    const SUMS: [[(usize, usize); 1]; 3] = [[(0, X)], [(0, Y)], [(0, Z)]];
    const DIFFERENCE: bool = false;
}

/// (∂u/∂x + ∂v/∂y) + ∂w/∂z.
struct Divergence;

impl Operator<3, 1, 3> for Divergence {
    const ORDER: usize = 1;
    const SUMS: [[(usize, usize); 3]; 1] = [[(0, X), (1, Y), (2, Z)]];
    const DIFFERENCE: bool = false;
}

/// (∂w/∂y - ∂v/∂z, ∂u/∂z - ∂w/∂x, ∂v/∂x - ∂u/∂y).
struct Curl;

impl Operator<3, 3, 2> for Curl {
    const ORDER: usize = 1;
    const SUMS: [[(usize, usize); 2]; 3] = [[(2, Y), (1, Z)], [(0, Z), (2, X)], [(1, X), (0, Y)]];
    const DIFFERENCE: bool = true;
}

/// (∂²f/∂x² + ∂²f/∂y²) + ∂²f/∂z².
struct Laplacian;

impl Operator<1, 1, 3> for Laplacian {
    const ORDER: usize = 2;
    const SUMS: [[(usize, usize); 3]; 1] = [[(0, X), (0, Y), (0, Z)]];
    const DIFFERENCE: bool = false;
}
