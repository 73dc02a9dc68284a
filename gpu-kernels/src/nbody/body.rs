//! Bodies, their real type, and the interaction of two bodies.

use bytemuck::{Pod, Zeroable};
use core::ops::{Add, Mul, Neg, Sub};
use cuda_std::{GpuFloat, warp};

/// Floating-point operations of an interaction in f32, in the order of [`body_body`]:
/// 3 + 6 + 2 + 3 + 6. A fused multiply-add counts as two and the reciprocal square root as two
/// (Nyland, Harris and Prins, "Fast N-Body Simulation with CUDA", GPU Gems 3, 2007, chapter 31).
pub const FLOPS_PER_INTERACTION_F32: u64 = 20;

/// Floating-point operations of an interaction in f64, by convention.
///
/// The GPU has no instruction for the reciprocal square root of an f64: it
/// refines an approximation, which the n-body example of the CUDA samples counts
/// as 12 operations instead of 2.
pub const FLOPS_PER_INTERACTION_F64: u64 = 30;

/// The real type of a body: f32 or f64.
///
/// No other type can implement it, since none implements [`GpuFloat`].
pub trait Real:
    GpuFloat + Pod + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Neg<Output = Self>
{
    /// 0.
    const ZERO: Self;

    /// Two factors of self^(-3/2), close to self^(-1/2) and self^(-1). Separately they stay in
    /// range where their product does not.
    ///
    /// In f32 they are the hardware's approximate reciprocal square root y, and y². In f64 y has
    /// about 20 bits; with h = 1 - self y²,
    ///
    /// ```text
    /// self^(-3/2) = y³ (1 - h)^(-3/2) = y³ (1 + 3/2 h + 15/8 h²) + 35/16 h³ …
    ///             = y² · y (15/8 (h + 2/5)² + 7/10) …
    /// ```
    ///
    /// The omitted terms are below 2⁻⁵⁵, since |h| is below 2⁻¹⁹. y² is exact, and so is self y²
    /// within the fused multiply-add. The two factors take five instructions; refining the root
    /// first takes six.
    #[must_use]
    fn inverse_cube(self) -> [Self; 2];

    /// The same value in f64.
    #[must_use]
    fn widened(self) -> f64;

    /// The value of lane `lane` of the warp. All lanes must call this.
    #[must_use]
    fn at_lane(self, lane: u32) -> Self;
}

impl Real for f32 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn inverse_cube(self) -> [Self; 2] {
        let inverse = self.rsqrt_ftz();
        [inverse, inverse * inverse]
    }

    #[inline(always)]
    fn widened(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn at_lane(self, lane: u32) -> Self {
        // SAFETY: all lanes call this; 32 is the width of a warp.
        unsafe { warp::warp_shuffle_idx(u32::MAX, self, lane, 32).0 }
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;

    #[inline(always)]
    fn inverse_cube(self) -> [Self; 2] {
        let inverse = self.rsqrt_coarse();
        let square = inverse * inverse;
        let shifted = (-self).mul_add(square, 1.4);
        let refined = (shifted * shifted).mul_add(1.875, 0.7);
        [refined * inverse, square]
    }

    #[inline(always)]
    fn widened(self) -> f64 {
        self
    }

    #[inline(always)]
    fn at_lane(self, lane: u32) -> Self {
        // SAFETY: as for f32.
        unsafe { warp::warp_shuffle_idx(u32::MAX, self, lane, 32).0 }
    }
}

/// A body: a point with a mass, 16 bytes in f32 and 32 in f64.
///
/// The alignment lets a load be one or two accesses of 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[repr(C, align(16))]
pub struct Body<T> {
    /// Position along x.
    pub x: T,
    /// Position along y.
    pub y: T,
    /// Position along z.
    pub z: T,
    /// Mass.
    pub mass: T,
}

// SAFETY: four zeros of f32 or f64 are zeros.
unsafe impl<T: Real> Zeroable for Body<T> {}

// SAFETY: `Real` is f32 and f64 only; four of them are 16 or 32 bytes, which the
// alignment of 16 does not pad, and any bits are a value of each.
unsafe impl<T: Real> Pod for Body<T> {}

const _: () = {
    assert!(size_of::<Body<f32>>() == 4 * size_of::<f32>());
    assert!(size_of::<Body<f64>>() == 4 * size_of::<f64>());
};

impl<T: Real> Body<T> {
    /// A body without mass at the origin, which adds nothing to any sum.
    pub const NOTHING: Self = Self {
        x: T::ZERO,
        y: T::ZERO,
        z: T::ZERO,
        mass: T::ZERO,
    };

    /// The body's position.
    #[inline(always)]
    #[must_use]
    pub fn position(self) -> [T; 3] {
        [self.x, self.y, self.z]
    }

    /// The body at `body`, read field by field.
    ///
    /// This compiles to accesses of 16 bytes; a copy of the struct compiles to accesses of 8.
    ///
    /// # Safety
    ///
    /// `body` must be valid for reads, and no thread may write there meanwhile.
    #[inline(always)]
    pub(super) unsafe fn load(body: *const Self) -> Self {
        // SAFETY: the caller vouches for all four fields.
        unsafe {
            Self {
                x: (*body).x,
                y: (*body).y,
                z: (*body).z,
                mass: (*body).mass,
            }
        }
    }
}

/// The vector `r` from `position` to `body`, and `|r|² + ε²`.
#[inline(always)]
pub(super) fn separation<T: Real>(
    position: [T; 3],
    body: Body<T>,
    softening_squared: T,
) -> ([T; 3], T) {
    // 3 flops: differences.
    let r = [
        body.x - position[0],
        body.y - position[1],
        body.z - position[2],
    ];
    // 6 flops: three fused multiply-adds.
    let mut distance_squared = r[0].mul_add(r[0], softening_squared);
    distance_squared = r[1].mul_add(r[1], distance_squared);
    distance_squared = r[2].mul_add(r[2], distance_squared);
    (r, distance_squared)
}

/// `sum` and the acceleration that `body` causes at `position`.
///
/// This is the only definition of an interaction: kernels and the plain CPU port call it.
///
/// It computes `m / d · 1/d²` instead of `m · 1/d³`: the number of products is the same, but 1/d³
/// leaves the range of f32 from d = 5e12 on, where 1/d² and the result are still in range.
/// `softening_squared` must be a normal number, so that d² is one.
#[inline(always)]
#[must_use]
pub fn body_body<T: Real>(
    sum: [T; 3],
    position: [T; 3],
    body: Body<T>,
    softening_squared: T,
) -> [T; 3] {
    // 9 flops.
    let (r, distance_squared) = separation(position, body, softening_squared);
    // 2 flops in f32: a square root and its reciprocal.
    let inverse = distance_squared.rsqrt_ftz();
    // 3 flops: products.
    let s = (body.mass * inverse) * (inverse * inverse);
    // 6 flops: three fused multiply-adds.
    [
        r[0].mul_add(s, sum[0]),
        r[1].mul_add(s, sum[1]),
        r[2].mul_add(s, sum[2]),
    ]
}

/// [`body_body`] with [`Real::inverse_cube`]: the same in f32; in f64 it takes fewer instructions
/// and rounds differently.
#[inline(always)]
#[must_use]
pub fn body_body_refined<T: Real>(
    sum: [T; 3],
    position: [T; 3],
    body: Body<T>,
    softening_squared: T,
) -> [T; 3] {
    let (r, distance_squared) = separation(position, body, softening_squared);
    let [inverse, square] = distance_squared.inverse_cube();
    let s = (body.mass * inverse) * square;
    [
        r[0].mul_add(s, sum[0]),
        r[1].mul_add(s, sum[1]),
        r[2].mul_add(s, sum[2]),
    ]
}
