//! The work of a row, for CUB.

#[cfg(doc)]
use halo_gpu::Buffer;

use crate::check::Check;

/// Bytes of the largest result: an index and a value.
pub(super) const RESULT_BYTES: usize = 16;

/// A reduction by CUB, numbered as in `baselines/cub.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a row names the one that it computes itself")]
pub(crate) enum Operation {
    Sum = 0,
    Minimum = 1,
    Maximum = 2,
    /// Index and value of the minimum.
    MinimumAt = 3,
    /// Index and value of the maximum.
    MaximumAt = 4,
}

/// A type of elements, numbered as in `baselines/cub.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a row names the one that it computes with itself")]
pub(crate) enum Element {
    I32 = 0,
    F32 = 1,
    F64 = 2,
}

/// A reduction of a row's data on the device, for CUB.
pub(crate) struct Work {
    pub(crate) operation: Operation,
    pub(crate) element: Element,
    pub(crate) n: usize,
    /// The address of the `n` elements on the row's device, valid as long as the row:
    /// [`Buffer::device_address`].
    pub(crate) input: u64,
    /// Judges the result: one value, or an index (`i64`) and the value at byte 8.
    pub(crate) check: Box<dyn Fn([u8; RESULT_BYTES]) -> Check>,
}
