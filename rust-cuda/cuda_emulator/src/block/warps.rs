//! Warp operations.

use super::requests::{ShuffleKind, WarpOperation, WarpRequest};
use super::state::{Block, State, same_site, watched};
use crate::config::WARP_SIZE;
use crate::diagnosis::{Diagnosis, SourceMissing};
use crate::here::Site;

impl Block<'_> {
    /// Gives the active mask to the lanes of `warp` that wait for it, once no
    /// other lane can run. Returns whether there were any.
    pub fn converge(&self, warp: u32) -> bool {
        let base = warp * WARP_SIZE;
        let warp = &self.warps[warp as usize];
        let mut left = warp.converging.take();
        if left == 0 {
            return false;
        }
        while left != 0 {
            let site = self.slots[(base + left.trailing_zeros()) as usize]
                .site
                .get();
            let group = lanes(left)
                .filter(|lane| same_site(self.slots[(base + lane) as usize].site.get(), site))
                .fold(0, |group, lane| group | 1 << lane);
            for lane in lanes(group) {
                self.slots[(base + lane) as usize]
                    .result
                    .set((u64::from(group), true));
                self.state[(base + lane) as usize].set(State::Ready);
            }
            left &= !group;
        }
        true
    }

    /// Performs an operation of the warp for the running thread.
    pub fn warp_operation(&self, request: WarpRequest, site: Site) -> (u64, bool) {
        self.tick(site);
        let lane = self.running.get() % WARP_SIZE;
        if request.mask >> lane & 1 == 0 {
            self.fail(Diagnosis::NotInMask {
                at: self.here(site),
                operation: request.operation.name(),
                mask: request.mask,
                lane,
            });
        }
        if !request.width.is_power_of_two() || request.width > WARP_SIZE {
            self.invalid(
                site,
                request.operation.name(),
                format!(
                    "width {}; needed is a power of two from 1 to {WARP_SIZE}",
                    request.width
                ),
            );
        }
        let slot = self.slot();
        slot.site.set(site);
        slot.request.set(request);
        self.set_state(State::Warp);
        let warp = &self.warps[(self.running.get() / WARP_SIZE) as usize];
        let needed = request.mask & warp.present;
        let waiting = warp.waiting.get() | 1 << lane;
        warp.waiting.set(waiting);
        if waiting & needed == needed && self.agree(needed, request) {
            self.complete(needed, request);
            warp.waiting.set(waiting & !needed);
            if needed == 1 << lane {
                // No other lane took part, so no other needs a turn.
                return slot.result.get();
            }
        }
        self.suspend();
        slot.result.get()
    }

    /// Whether all `lanes` of the running thread's warp request the same
    /// operation.
    pub(super) fn agree(&self, needed: u32, request: WarpRequest) -> bool {
        let base = self.warp_base();
        lanes(needed).all(|lane| {
            let theirs = self.slots[base + lane as usize].request.get();
            theirs.operation == request.operation && theirs.mask == request.mask
        })
    }

    /// The number of the thread that is lane 0 of the running thread's warp.
    pub(super) fn warp_base(&self) -> usize {
        (self.running.get() / WARP_SIZE * WARP_SIZE) as usize
    }

    /// Gives all `needed` lanes their results and releases them.
    pub(super) fn complete(&self, needed: u32, request: WarpRequest) {
        let mut counts = self.counts.get();
        counts.warp_operations += 1;
        self.counts.set(counts);
        let base = self.warp_base();
        let slot = |lane: u32| &self.slots[base + lane as usize];
        let bits = |lane| slot(lane).request.get().bits;
        let ballot = || {
            lanes(needed)
                .filter(|&lane| bits(lane) != 0)
                .fold(0_u32, |ballot, lane| ballot | 1 << lane)
        };
        match request.operation {
            WarpOperation::Barrier => {
                watched(|trace| trace.warp_barrier(self.linear(), base as u32, needed));
            }
            WarpOperation::Shuffle(kind) => {
                for lane in lanes(needed) {
                    let theirs = slot(lane).request.get();
                    let (source, inside) =
                        shuffle_source(lane, kind, theirs.lane_arg, theirs.width);
                    if needed >> source & 1 == 0 {
                        self.fail(self.missing_source(lane, source, request.mask));
                    }
                    slot(lane).result.set((bits(source), inside));
                }
            }
            WarpOperation::Ballot => {
                let ballot = u64::from(ballot());
                lanes(needed).for_each(|lane| slot(lane).result.set((ballot, ballot != 0)));
            }
            WarpOperation::All => {
                let all = ballot() == needed;
                lanes(needed).for_each(|lane| slot(lane).result.set((u64::from(all), all)));
            }
            WarpOperation::Any => {
                let any = ballot() != 0;
                lanes(needed).for_each(|lane| slot(lane).result.set((u64::from(any), any)));
            }
            WarpOperation::MatchAny => {
                for lane in lanes(needed) {
                    let equal = lanes(needed)
                        .filter(|&other| bits(other) == bits(lane))
                        .fold(0_u64, |equal, other| equal | 1 << other);
                    slot(lane).result.set((equal, true));
                }
            }
            WarpOperation::MatchAll => {
                let first = bits(needed.trailing_zeros());
                let all = lanes(needed).all(|lane| bits(lane) == first);
                let result = (if all { u64::from(needed) } else { 0 }, all);
                lanes(needed).for_each(|lane| slot(lane).result.set(result));
            }
        }
        for lane in lanes(needed) {
            self.state[base + lane as usize].set(State::Ready);
        }
    }

    pub(super) fn missing_source(&self, lane: u32, source: u32, mask: u32) -> Diagnosis {
        let thread = self.warp_base() as u32 + lane;
        Diagnosis::ShuffleSource {
            at: Box::new(self.origin(Some(thread), Some(self.slots[thread as usize].site.get()))),
            lane,
            source_lane: source,
            mask,
            reason: if mask >> source & 1 == 0 {
                SourceMissing::OutsideMask
            } else {
                SourceMissing::NotInBlock
            },
        }
    }

    pub fn active_mask(&self, site: Site) -> u32 {
        self.tick(site);
        let running = self.running.get();
        let slot = self.slot();
        slot.site.set(site);
        let warp = &self.warps[(running / WARP_SIZE) as usize];
        warp.converging
            .set(warp.converging.get() | 1 << (running % WARP_SIZE));
        self.set_state(State::Converging);
        self.suspend();
        // A mask of 32 lanes.
        slot.result.get().0 as u32
    }
}

/// The bits that are set in `mask`, from the lowest.
pub(super) fn lanes(mask: u32) -> impl Iterator<Item = u32> + Clone {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let lane = left.trailing_zeros();
        left &= left - 1;
        Some(lane)
    })
}

/// The lane that `lane` reads from, and whether it is inside its segment: the
/// definition of `shfl.sync` in the PTX manual.
pub(super) fn shuffle_source(
    lane: u32,
    kind: ShuffleKind,
    lane_arg: u32,
    width: u32,
) -> (u32, bool) {
    let segment = !(width - 1) & (WARP_SIZE - 1);
    let low = lane & segment;
    let high = low | (width - 1);
    let arg = lane_arg % WARP_SIZE;
    let (source, inside) = match kind {
        ShuffleKind::Up => {
            let source = lane.wrapping_sub(arg);
            (source, arg <= lane && source >= low)
        }
        ShuffleKind::Down => (lane + arg, lane + arg <= high),
        ShuffleKind::Xor => (lane ^ arg, lane ^ arg <= high),
        ShuffleKind::Index => (low | (arg & !segment), true),
    };
    if inside {
        (source, true)
    } else {
        (lane, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffle_sources_are_those_of_the_ptx_manual() {
        use ShuffleKind::{Down, Index, Up, Xor};
        let cases = [
            // lane, kind, argument, width, source, inside
            (5, Up, 1, 32, 4, true),
            (0, Up, 1, 32, 0, false),
            (8, Up, 1, 8, 8, false),
            (9, Up, 1, 8, 8, true),
            (31, Down, 1, 32, 31, false),
            (30, Down, 1, 32, 31, true),
            (7, Down, 1, 8, 7, false),
            (15, Down, 16, 32, 31, true),
            (5, Xor, 1, 32, 4, true),
            (5, Xor, 16, 32, 21, true),
            // A later segment is out of range, an earlier one is not.
            (3, Xor, 8, 8, 3, false),
            (11, Xor, 8, 8, 3, true),
            (0, Index, 7, 32, 7, true),
            (12, Index, 3, 8, 11, true),
            (12, Index, 11, 8, 11, true),
            (12, Index, 0, 1, 12, true),
            // Only five bits of the argument count.
            (4, Up, 32, 32, 4, true),
            (4, Index, 33, 32, 1, true),
        ];
        for (lane, kind, arg, width, source, inside) in cases {
            assert_eq!(
                shuffle_source(lane, kind, arg, width),
                (source, inside),
                "lane {lane}, {kind:?} {arg}, width {width}"
            );
        }
    }

    #[test]
    fn lanes_come_from_the_lowest() {
        assert_eq!(lanes(0).count(), 0);
        assert_eq!(lanes(0x8000_0005).collect::<Vec<_>>(), [0, 2, 31]);
        assert_eq!(lanes(u32::MAX).count(), 32);
    }
}
