//! Requests of threads to the scheduler: barriers, warp operations, asynchronous copies.

use std::collections::VecDeque;

/// Forms of the block barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Plain,
    Count,
    And,
    Or,
}

impl Form {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "barrier",
            Self::Count => "barrier_count",
            Self::And => "barrier_and",
            Self::Or => "barrier_or",
        }
    }
}

/// The lane that a [`shuffle`](crate::intrinsics::shuffle) reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShuffleKind {
    /// The lane `lane_arg` below the caller's (`__shfl_up_sync`).
    Up,
    /// The lane `lane_arg` above the caller's (`__shfl_down_sync`).
    Down,
    /// The caller's lane xor `lane_arg` (`__shfl_xor_sync`).
    Xor,
    /// Lane `lane_arg` of the caller's segment (`__shfl_sync`).
    Index,
}

/// Operations of a warp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WarpOperation {
    Barrier,
    Shuffle(ShuffleKind),
    Ballot,
    All,
    Any,
    MatchAny,
    MatchAll,
}

impl WarpOperation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "warp_barrier",
            Self::Shuffle(ShuffleKind::Up) => "shuffle (up)",
            Self::Shuffle(ShuffleKind::Down) => "shuffle (down)",
            Self::Shuffle(ShuffleKind::Xor) => "shuffle (xor)",
            Self::Shuffle(ShuffleKind::Index) => "shuffle (index)",
            Self::Ballot => "vote_ballot",
            Self::All => "vote_all",
            Self::Any => "vote_any",
            Self::MatchAny => "match_any",
            Self::MatchAll => "match_all",
        }
    }
}

/// A thread's part in a warp operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WarpRequest {
    pub operation: WarpOperation,
    pub mask: u32,
    pub bits: u64,
    /// Shuffles: the lane argument and the width.
    pub lane_arg: u32,
    pub width: u32,
}

/// The asynchronous copies of a thread.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) open: Vec<AsyncCopy>,
    pub(super) groups: VecDeque<Vec<AsyncCopy>>,
}

#[derive(Clone, Copy)]
pub(super) struct AsyncCopy {
    pub(super) dst: *mut u8,
    pub(super) src: *const u8,
    pub(super) bytes: usize,
    pub(super) src_bytes: usize,
}
