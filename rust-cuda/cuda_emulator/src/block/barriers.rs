//! The barriers of a block.

use super::requests::Form;
use super::state::{Block, State, same_site, watched};
use crate::here::Site;

impl Block<'_> {
    /// Releases the threads at the barrier, if it is complete.
    pub fn release_barrier(&self) -> bool {
        if self.at_barrier.get() != self.threads() || self.barriers_differ.get() {
            return false;
        }
        for state in &self.state {
            state.set(State::Ready);
        }
        watched(|trace| trace.barrier(self.linear()));
        self.at_barrier.set(0);
        self.barrier_result.set(self.trues.get());
        let mut counts = self.counts.get();
        counts.barriers += 1;
        self.counts.set(counts);
        true
    }

    /// A block barrier; returns for how many threads `pred` was true.
    pub fn barrier(&self, form: Form, pred: bool, site: Site) -> u32 {
        self.tick(site);
        let slot = self.slot();
        slot.site.set(site);
        slot.form.set(form);
        let before = self.at_barrier.get();
        if before == 0 {
            self.first_at_barrier.set(self.running.get());
            self.barriers_differ.set(false);
            self.trues.set(0);
        } else {
            let first = &self.slots[self.first_at_barrier.get() as usize];
            if first.form.get() != form || !same_site(first.site.get(), site) {
                self.barriers_differ.set(true);
            }
        }
        self.at_barrier.set(before + 1);
        self.trues.set(self.trues.get() + u32::from(pred));
        self.set_state(State::Barrier);
        self.suspend();
        self.barrier_result.get()
    }
}
