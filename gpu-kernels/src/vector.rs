//! Vectors of points, each moved by one memory access, and their neighbours.
//!
//! A stencil that reaches 4 points to either side reaches one vector to either side. Where
//! neighbouring lanes of a warp have neighbouring vectors, a lane gets both by shuffles. The first
//! and the last lane have only one neighbour in the warp and load the other vector.

use crate::loops::unrolled;
use cuda_std::warp;

/// Lanes of a warp.
pub(crate) const WARP: u32 = 32;

/// Consecutive points that one memory access moves.
pub(crate) trait Points: Copy {
    /// The value of one point.
    type Point: Copy;
    /// The number of points: 1, 2 or 4.
    const COUNT: usize;
    /// A vector of zeros.
    const ZERO: Self;
    /// The vector of `point(0)`, `point(1)`, …
    fn of(point: impl Fn(usize) -> Self::Point) -> Self;
    /// Point number `e`, which is a constant once loops are unrolled.
    fn point(self, e: usize) -> Self::Point;
}

impl Points for f32 {
    type Point = Self;
    const COUNT: usize = 1;
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn of(point: impl Fn(usize) -> f32) -> Self {
        point(0)
    }
    #[inline(always)]
    fn point(self, _: usize) -> f32 {
        self
    }
}

impl Points for f64 {
    type Point = Self;
    const COUNT: usize = 1;
    const ZERO: Self = 0.0;
    #[inline(always)]
    fn of(point: impl Fn(usize) -> Self) -> Self {
        point(0)
    }
    #[inline(always)]
    fn point(self, _: usize) -> Self {
        self
    }
}

/// Two f64 points, aligned for one access of 16 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Vector2F64(f64, f64);

impl Points for Vector2F64 {
    type Point = f64;
    const COUNT: usize = 2;
    const ZERO: Self = Self(0.0, 0.0);
    #[inline(always)]
    fn of(point: impl Fn(usize) -> f64) -> Self {
        Self(point(0), point(1))
    }
    #[inline(always)]
    fn point(self, e: usize) -> f64 {
        [self.0, self.1][e]
    }
}

/// Two f32 points, aligned for one access of 8 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Vector2(f32, f32);

impl Points for Vector2 {
    type Point = f32;
    const COUNT: usize = 2;
    const ZERO: Self = Self(0.0, 0.0);
    #[inline(always)]
    fn of(point: impl Fn(usize) -> f32) -> Self {
        Self(point(0), point(1))
    }
    #[inline(always)]
    fn point(self, e: usize) -> f32 {
        [self.0, self.1][e]
    }
}

/// Four f32 points, aligned for one access of 16 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Vector4(f32, f32, f32, f32);

impl Points for Vector4 {
    type Point = f32;
    const COUNT: usize = 4;
    const ZERO: Self = Self(0.0, 0.0, 0.0, 0.0);
    #[inline(always)]
    fn of(point: impl Fn(usize) -> f32) -> Self {
        Self(point(0), point(1), point(2), point(3))
    }
    #[inline(always)]
    fn point(self, e: usize) -> f32 {
        [self.0, self.1, self.2, self.3][e]
    }
}

/// The points of three consecutive vectors.
#[inline(always)]
pub(crate) fn joined(before: Vector4, own: Vector4, behind: Vector4) -> [f32; 12] {
    let mut points = [0.0; 12];
    unrolled::<4>(|e| {
        points[e] = before.point(e);
        points[4 + e] = own.point(e);
        points[8 + e] = behind.point(e);
    });
    points
}

/// The vectors of the previous and of the next lane. The first lane has no previous one and the
/// last no next one; their value is unspecified.
///
/// # Safety
///
/// All lanes of the warp call this.
#[inline(always)]
pub(crate) unsafe fn from_lanes(own: Vector4) -> (Vector4, Vector4) {
    // SAFETY: as the caller promises.
    let up = |value: f32| unsafe { warp::warp_shuffle_up(u32::MAX, value, 1, WARP).0 };
    // SAFETY: as above.
    let down = |value: f32| unsafe { warp::warp_shuffle_down(u32::MAX, value, 1, WARP).0 };
    (
        Vector4::of(|e| up(own.point(e))),
        Vector4::of(|e| down(own.point(e))),
    )
}
