//! Texture fetches by 64-bit texture object handle.
//!
//! The host creates a texture object (`cuTexObjectCreate`) and passes its
//! handle to the kernel as a `u64`. The object determines how coordinates are
//! read (these functions need unnormalised ones, counted in elements), the
//! value outside (that of the edge, or zero), and how an element becomes a
//! `f32`. Of a texture with several channels these functions return the first.
//!
//! Upstream has no texture functions.
//!
//! ```
//! use cuda_std::prelude::*;
//! use cuda_std::texture;
//!
//! /// Copies a texture of `width` columns to `out`, row by row.
//! ///
//! /// # Safety
//! ///
//! /// `image` is a 2-D texture object, and `out` is valid for writes of as many
//! /// elements as the grid has threads.
//! #[kernel]
//! pub unsafe fn copy(image: u64, width: usize, out: *mut f32) {
//!     let at = thread::index_2d();
//!     // Element (x, y) lies between x and x + 1: with point filtering its
//!     // middle is the safe place to read it at.
//!     // SAFETY: `image` is a texture object.
//!     let value = unsafe { texture::tex2d(image, at.x as f32 + 0.5, at.y as f32 + 0.5) };
//!     // SAFETY: one element per thread.
//!     unsafe { *out.add(at.y as usize * width + at.x as usize) = value };
//! }
//! ```

#[cfg(target_arch = "nvptx64")]
use core::arch::asm;
#[cfg(not(target_arch = "nvptx64"))]
use cuda_emulator::intrinsics as emulator;

/// Fetches element `index` of a texture bound to linear memory (`tex.1d` with
/// an integer coordinate, CUDA's `tex1Dfetch`). Outside the texture the result
/// is zero.
///
/// # Safety
///
/// `texture` is the handle of a texture object over linear memory that exists
/// and whose memory nobody writes while the kernel runs.
#[must_use]
#[inline(always)]
#[track_caller]
pub unsafe fn tex1d_fetch(texture: u64, index: i32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let value: f32;
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "{{",
                ".reg .b32 unused<3>;",
                "tex.1d.v4.f32.s32 {{{value}, unused0, unused1, unused2}}, [{texture}, {{{index}}}];",
                "}}",
                value = out(reg32) value,
                texture = in(reg64) texture,
                index = in(reg32) index,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        emulator::tex1d_fetch(texture, index)
    }
}

/// Fetches a 1-D texture at coordinate `x`, filtered as the texture object
/// specifies (`tex.1d`). Textures over linear memory have integer coordinates:
/// [`tex1d_fetch`].
///
/// In the emulator the texture is a 2-D one of one row.
///
/// # Safety
///
/// `texture` is the handle of a 1-D texture object over an array that exists and
/// that nobody writes while the kernel runs.
#[must_use]
#[inline(always)]
#[track_caller]
pub unsafe fn tex1d(texture: u64, x: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let value: f32;
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "{{",
                ".reg .b32 unused<3>;",
                "tex.1d.v4.f32.f32 {{{value}, unused0, unused1, unused2}}, [{texture}, {{{x}}}];",
                "}}",
                value = out(reg32) value,
                texture = in(reg64) texture,
                x = in(reg32) x,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        emulator::tex2d(texture, x, 0.0)
    }
}

/// Fetches a 2-D texture at column `x`, row `y`, filtered as the texture object
/// specifies (`tex.2d`).
///
/// # Safety
///
/// `texture` is the handle of a 2-D texture object, over an array or over pitched
/// linear memory, that exists and whose memory nobody writes while the kernel
/// runs.
#[must_use]
#[inline(always)]
#[track_caller]
pub unsafe fn tex2d(texture: u64, x: f32, y: f32) -> f32 {
    #[cfg(target_arch = "nvptx64")]
    {
        let value: f32;
        // SAFETY: as the caller promises.
        unsafe {
            asm!(
                "{{",
                ".reg .b32 unused<3>;",
                "tex.2d.v4.f32.f32 {{{value}, unused0, unused1, unused2}}, [{texture}, {{{x}, {y}}}];",
                "}}",
                value = out(reg32) value,
                texture = in(reg64) texture,
                x = in(reg32) x,
                y = in(reg32) y,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        value
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        emulator::tex2d(texture, x, y)
    }
}
