//! Builds the diagnoses of a block: deadlocks, faults, panics, threads that were stopped.

use super::state::{Block, State, same_site};
use super::warps::lanes;
use crate::config::WARP_SIZE;
use crate::diagnosis::{Access, Diagnosis, Doing, Limit, Origin, SourceLine};
use crate::here::{Fault, Site};
use crate::region::Offset;
use crate::symbol;
use crate::sys;
impl Block<'_> {
    /// The diagnosis of a block in which no thread can run.
    pub fn explain_deadlock(&self) -> Diagnosis {
        let waiting = |wanted| move |&t: &u32| self.state[t as usize].get() == wanted;
        let all = 0..self.threads();
        // A lane that waits for another, before barriers: threads at a barrier
        // may wait for just these lanes.
        for t in all.clone().filter(waiting(State::Warp)) {
            let request = self.slots[t as usize].request.get();
            let base = t / WARP_SIZE * WARP_SIZE;
            let present = self.warps[(t / WARP_SIZE) as usize].present;
            let missing = lanes(request.mask & present).find(|&lane| {
                let theirs = self.slots[(base + lane) as usize].request.get();
                self.state[(base + lane) as usize].get() != State::Warp
                    || theirs.operation != request.operation
                    || theirs.mask != request.mask
            });
            if let Some((lane, doing)) =
                missing.and_then(|lane| Some((lane, self.doing(base + lane)?)))
            {
                return Diagnosis::WarpDivergence {
                    at: Box::new(self.origin(Some(t), Some(self.slots[t as usize].site.get()))),
                    operation: request.operation.name(),
                    mask: request.mask,
                    lane,
                    doing,
                };
            }
        }
        let Some(first) = all.clone().find(waiting(State::Barrier)) else {
            // Threads that are ready, yielded or converging can run, and no
            // lane waits in vain: only barriers are left.
            unreachable!("a block stopped, though none of its threads waits");
        };
        let slot = &self.slots[first as usize];
        let (site, form) = (slot.site.get(), slot.form.get());
        let here = |t: &u32| {
            let slot = &self.slots[*t as usize];
            waiting(State::Barrier)(t)
                && slot.form.get() == form
                && same_site(slot.site.get(), site)
        };
        let (other, doing) = all
            .clone()
            .filter(|t| !here(t))
            .find_map(|t| Some((t, self.doing(t)?)))
            .unwrap_or((first, Doing::Exited));
        Diagnosis::BarrierDivergence {
            at: Box::new(self.origin(Some(first), Some(site))),
            form: form.name(),
            waiting: all.filter(here).count() as u32,
            threads: self.threads(),
            other: self.slots[other as usize].index.get(),
            doing,
        }
    }

    pub(super) fn doing(&self, thread: u32) -> Option<Doing> {
        let slot = &self.slots[thread as usize];
        match self.state[thread as usize].get() {
            State::Exited => Some(Doing::Exited),
            State::Barrier => Some(Doing::AtBarrier {
                form: slot.form.get().name(),
                line: slot.site.get().into(),
            }),
            State::Warp => Some(Doing::InWarpOperation {
                operation: slot.request.get().operation.name(),
                mask: slot.request.get().mask,
                line: slot.site.get().into(),
            }),
            State::Ready | State::Yielded | State::Converging | State::Failed => None,
        }
    }

    /// The diagnosis of a fault of `thread`. `stack` is the lowest address of
    /// the thread's stack, where its guard and its reserve are.
    pub fn explain_fault(&self, thread: u32, fault: &Fault, stack: usize) -> Diagnosis {
        let mut origin = self.origin(Some(thread), self.accessing.take());
        if origin.line.is_none() {
            origin.line = symbol::line_of_fault(fault);
        }
        let at = Box::new(origin);
        let access = match fault.write {
            Some(true) => Access::Write,
            Some(false) => Access::Read,
            None => Access::Unknown,
        };
        let Some(address) = fault.address else {
            return Diagnosis::WildAccess {
                at,
                access,
                address: None,
            };
        };
        if (stack..stack + sys::stack_guard()).contains(&address) {
            return Diagnosis::StackOverflow {
                at,
                stack_bytes: self.launch.options.stack_bytes,
            };
        }
        let pool = self.workspace.shared.borrow();
        for array in &self.shared.borrow().arrays {
            if let Some(Offset(offset)) = pool.region(array.region).locate(address) {
                return Diagnosis::OutOfBounds {
                    at,
                    access,
                    memory: array.memory_name(),
                    element: offset.div_euclid(array.align as i64),
                    offset,
                };
            }
        }
        if let Some(record) = self.launch.memory.find(address)
            && let Some(Offset(offset)) = record.region.locate(address)
        {
            let memory = record.name();
            return if record.freed() {
                Diagnosis::UseAfterFree {
                    at,
                    access,
                    memory,
                    offset,
                }
            } else {
                Diagnosis::OutOfBounds {
                    at,
                    access,
                    element: offset.div_euclid(memory.element_bytes as i64),
                    memory,
                    offset,
                }
            };
        }
        Diagnosis::WildAccess {
            at,
            access,
            address: Some(address),
        }
    }

    pub fn explain_panic(
        &self,
        thread: u32,
        message: String,
        line: Option<SourceLine>,
    ) -> Diagnosis {
        let mut origin = self.origin(Some(thread), None);
        origin.line = line;
        Diagnosis::Panic {
            at: Box::new(origin),
            message,
        }
    }

    pub fn explain_stop(&self, thread: u32, instruction: usize) -> Diagnosis {
        let mut origin = self.origin(Some(thread), self.accessing.take());
        if origin.line.is_none() {
            origin.line = symbol::line_of_instruction(instruction);
        }
        Diagnosis::NeverEnds {
            at: Box::new(origin),
            limit: self.time_limit(),
        }
    }

    pub(super) fn time_limit(&self) -> Limit {
        Limit::Time(
            self.launch
                .ticket
                .as_ref()
                .map_or_else(Default::default, |ticket| ticket.limit()),
        )
    }

    /// The position of the running thread, without its line.
    pub fn origin_of_running(&self) -> Origin {
        self.origin(Some(self.running.get()), None)
    }

    pub(super) fn origin(&self, thread: Option<u32>, site: Option<Site>) -> Origin {
        Origin {
            kernel: self.launch.config.kernel,
            block: Some(self.index.get()),
            thread: thread.map(|t| self.slots[t as usize].index.get()),
            line: site.map(SourceLine::from),
            order: self.launch.options.order,
            poison: self.launch.options.poison,
        }
    }
}
