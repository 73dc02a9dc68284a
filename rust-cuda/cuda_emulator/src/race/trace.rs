//! Records the memory accesses of watched threads and the operations that order them.
//!
//! [`Trace::fault`] and [`Trace::stepped`] run in signal handlers, on the OS
//! thread that owns the trace, when the kernel's or the emulator's code
//! accesses closed memory. No code accesses that memory while it holds one of
//! the borrows here.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::Arc;

use super::sample::{self, Sample};
use crate::config::LaunchConfig;
use crate::diagnosis::MemoryName;
use crate::here::{Site, Watching};
use crate::record::Record;
use crate::region::Region;
use crate::sys;

/// The number of bytes of an access that are recorded: those of the widest
/// access.
pub(super) const WIDEST: usize = 64;

/// The largest number of recorded events.
const EVENTS: usize = 1 << 18;

/// The largest number of pages that one instruction may access.
const PAGES: usize = 8;

pub(crate) struct Trace {
    pub(super) sample: Sample,
    blocks: Vec<Watched>,
    /// Accesses that are not yet given to a block.
    unassigned: Cell<usize>,
    /// Whether anything has happened that is not recorded.
    partial: Cell<bool>,
    /// Blocks that have not begun.
    to_begin: Cell<usize>,
    areas: RefCell<Vec<Area>>,
    /// All memory so far, by the numbers in areas and accesses.
    names: RefCell<Vec<(MemoryName, usize)>>,
    accesses: RefCell<Vec<Access>>,
    events: RefCell<Vec<(u32, Event)>>,
    /// Counts accesses and events.
    clock: Cell<u32>,
    /// Whether memory is closed, and whether parts of it have been opened since.
    closed: Cell<bool>,
    leaky: Cell<bool>,
    /// The thread that runs: its block's position in the sample, and its number.
    running: Cell<(usize, u32)>,
    /// The number of accesses that its turn may still record.
    turn_left: Cell<usize>,
    /// Whether the next access is an atomic's.
    atomic: Cell<bool>,
    /// While an instruction is stepped: the pages opened for it, and the first
    /// of its accesses.
    stepping: Cell<bool>,
    pages: Cell<([usize; PAGES], usize)>,
    first_of_step: Cell<usize>,
}

/// A watched block.
struct Watched {
    linear: u64,
    begun: Cell<bool>,
    left: Cell<usize>,
    /// The number of barriers up to now.
    epoch: Cell<u32>,
}

/// Memory that is closed while watched threads run.
struct Area {
    pages: Range<usize>,
    data: Range<usize>,
    name: u32,
    /// The buffer; none for a shared array, whose block is named instead.
    buffer: Option<Arc<Record>>,
    block: Option<usize>,
}

/// An access, as the processor made it.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub time: u32,
    /// Position of the block in the sample.
    pub block: u32,
    pub thread: u32,
    /// The number of barriers of the block up to then.
    pub epoch: u32,
    pub instruction: usize,
    pub address: usize,
    pub write: bool,
    pub atomic: bool,
    /// Number of the memory.
    pub memory: u32,
    pub site: Option<Site>,
    /// Bytes of memory from the address on, before and after.
    pub bytes: usize,
    pub before: [u8; WIDEST],
    pub after: [u8; WIDEST],
}

/// The events that order threads. Blocks are identified by their position in the sample.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Barrier {
        block: u32,
    },
    Warp {
        block: u32,
        first: u32,
        mask: u32,
    },
    Atomic {
        block: u32,
        thread: u32,
    },
    /// A volatile read; added by the analysis.
    Volatile {
        block: u32,
        thread: u32,
    },
}

impl Trace {
    /// A trace of a launch that records up to `most` accesses, after `before` launches like it;
    /// `None` if nothing is to be watched.
    pub fn new(
        config: &LaunchConfig,
        most: usize,
        before: u32,
        buffers: &[Arc<Record>],
    ) -> Option<Self> {
        let most = sample::of_launch(most, before);
        if most == 0 {
            return None;
        }
        let sample = Sample::new(config);
        let blocks: Vec<Watched> = sample
            .blocks
            .iter()
            .map(|&linear| Watched {
                linear,
                begun: Cell::new(false),
                left: Cell::new(0),
                epoch: Cell::new(0),
            })
            .collect();
        let trace = Self {
            partial: Cell::new(sample.partial),
            unassigned: Cell::new(most),
            to_begin: Cell::new(blocks.len()),
            sample,
            blocks,
            areas: RefCell::default(),
            names: RefCell::default(),
            accesses: RefCell::new(Vec::with_capacity(most)),
            events: RefCell::default(),
            clock: Cell::new(0),
            closed: Cell::new(false),
            leaky: Cell::new(false),
            running: Cell::new((0, 0)),
            turn_left: Cell::new(0),
            atomic: Cell::new(false),
            stepping: Cell::new(false),
            pages: Cell::new(([0; PAGES], 0)),
            first_of_step: Cell::new(0),
        };
        for buffer in buffers {
            trace.add(&buffer.region, buffer.name(), Some(buffer), None);
        }
        Some(trace)
    }

    /// The number of blocks to run, from the first.
    pub fn blocks(&self) -> u64 {
        self.sample.run
    }

    fn add(
        &self,
        region: &Region,
        name: MemoryName,
        buffer: Option<&Arc<Record>>,
        block: Option<usize>,
    ) {
        let data = region.data().addr();
        let mut names = self.names.borrow_mut();
        self.areas.borrow_mut().push(Area {
            pages: region.open_pages(),
            data: data..data + region.len(),
            name: names.len() as u32,
            buffer: buffer.cloned(),
            block,
        });
        names.push((name, data));
    }

    // ---- The scheduler's side ----

    /// Begins the turn of thread `thread` of block `block`.
    pub fn enter(&self, block: u64, thread: u32) {
        let watched = self
            .position(block)
            .filter(|_| self.sample.threads[thread as usize]);
        let Some(position) = watched else {
            self.rest();
            return;
        };
        let block = &self.blocks[position];
        if !block.begun.replace(true) {
            let share = self.unassigned.get() / self.to_begin.get().max(1);
            self.to_begin.set(self.to_begin.get().saturating_sub(1));
            self.unassigned.set(self.unassigned.get() - share);
            block.left.set(share);
        }
        if block.left.get() == 0 || self.events.borrow().len() >= EVENTS {
            self.partial.set(true);
            self.rest();
            return;
        }
        self.running.set((position, thread));
        self.turn_left.set(sample::of_turn(block.left.get()));
        self.atomic.set(false);
        if !self.closed.get() || self.leaky.get() {
            self.areas
                .borrow()
                .iter()
                .for_each(|area| area.set_open(false));
            self.closed.set(true);
            self.leaky.set(false);
        }
    }

    /// Opens the memory: code that is not watched is about to access it.
    pub fn rest(&self) {
        if self.closed.replace(false) {
            self.areas
                .borrow()
                .iter()
                .for_each(|area| area.set_open(true));
        }
    }

    /// Ends a block: its shared memory is released.
    pub fn end_block(&self, block: u64) {
        self.rest();
        let Some(position) = self.position(block) else {
            return;
        };
        let left = self.blocks[position].left.take();
        self.unassigned.set(self.unassigned.get() + left);
        self.areas
            .borrow_mut()
            .retain(|area| area.block != Some(position));
    }

    /// Adds a shared array of a block.
    pub fn add_shared(&self, block: u64, region: &Region, name: MemoryName) {
        if let Some(position) = self.position(block) {
            self.add(region, name, None, Some(position));
            if self.closed.get()
                && let Some(area) = self.areas.borrow().last()
            {
                area.set_open(false);
            }
        }
    }

    pub fn barrier(&self, block: u64) {
        if let Some(position) = self.position(block) {
            let epoch = &self.blocks[position].epoch;
            epoch.set(epoch.get() + 1);
            self.note(Event::Barrier {
                block: position as u32,
            });
        }
    }

    /// Records that the lanes in `mask` of the warp that begins with thread
    /// `first` were at a barrier together.
    pub fn warp_barrier(&self, block: u64, first: u32, mask: u32) {
        if let Some(position) = self.position(block) {
            self.note(Event::Warp {
                block: position as u32,
                first,
                mask,
            });
        }
    }

    /// Records that a thread is about to make an atomic access.
    pub fn atomic(&self, block: u64, thread: u32) {
        self.atomic.set(true);
        if let Some(position) = self.position(block) {
            self.note(Event::Atomic {
                block: position as u32,
                thread,
            });
        }
    }

    fn position(&self, block: u64) -> Option<usize> {
        self.blocks
            .iter()
            .position(|watched| watched.linear == block)
    }

    fn tick(&self) -> u32 {
        let now = self.clock.get();
        self.clock.set(now + 1);
        now
    }

    fn note(&self, event: Event) {
        let mut events = self.events.borrow_mut();
        if events.len() < EVENTS {
            events.push((self.tick(), event));
        }
    }

    // ---- In signal handlers ----

    /// Handles the fault of an access to `address`, which the emulator makes
    /// for the kernel's line `site`, or the kernel by itself. Returns whether
    /// to execute it by a single step or without; `None` if the memory was not
    /// closed by this trace.
    pub fn fault(
        &self,
        address: usize,
        write: bool,
        instruction: usize,
        in_kernel: bool,
        site: Option<Site>,
    ) -> Option<bool> {
        let areas = self.areas.try_borrow().ok()?;
        let area = areas.iter().find(|area| area.pages.contains(&address))?;
        if !self.closed.get() {
            return None;
        }
        let (mut pages, count) = self.pages.get();
        if self.turn_left.get() == 0 || count == PAGES {
            // The rest of this turn is not watched.
            // SAFETY: pages of a region that this trace keeps.
            unsafe { sys::set_open(area.pages.clone(), true) };
            self.leaky.set(true);
            self.partial.set(true);
            return Some(self.stepping.get());
        }
        let page = address - address % sys::page_size();
        // SAFETY: a page of a region that this trace keeps.
        unsafe { sys::set_open(page..page + sys::page_size(), true) };
        pages[count] = page;
        self.pages.set((pages, count + 1));
        self.turn_left.set(self.turn_left.get() - 1);
        let (position, thread) = self.running.get();
        let block = &self.blocks[position];
        block.left.set(block.left.get().saturating_sub(1));
        let mut accesses = self.accesses.try_borrow_mut().ok()?;
        if !self.stepping.replace(true) {
            self.first_of_step.set(accesses.len());
        }
        // The second page of one access, which is already recorded.
        let continued = count > 0 && address == page && pages[count - 1] + sys::page_size() == page;
        if in_kernel
            && !continued
            && area.data.contains(&address)
            && accesses.len() < accesses.capacity()
        {
            let bytes = (area.data.end - address).min(page + sys::page_size() - address);
            accesses.push(Access {
                time: self.tick(),
                block: position as u32,
                thread,
                epoch: block.epoch.get(),
                instruction,
                address,
                write,
                atomic: self.atomic.take(),
                memory: area.name,
                site,
                bytes: bytes.min(WIDEST),
                before: bytes_at(address, bytes),
                after: [0; WIDEST],
            });
        }
        Some(true)
    }

    /// Handles the end of a step. Returns whether this trace had requested it.
    pub fn stepped(&self) -> bool {
        if !self.stepping.replace(false) {
            return false;
        }
        if let Ok(mut accesses) = self.accesses.try_borrow_mut() {
            let first = self.first_of_step.get();
            for access in accesses.iter_mut().skip(first) {
                access.after = bytes_at(access.address, access.bytes);
            }
        }
        let (pages, count) = self.pages.replace(([0; PAGES], 0));
        for &page in &pages[..count] {
            // SAFETY: a page of a region that this trace keeps; only watched code, on this OS
            // thread, touches the region while it is closed.
            unsafe { sys::set_open(page..page + sys::page_size(), !self.closed.get()) };
        }
        true
    }

    // ---- When the launch has ended ----

    pub(super) fn accesses(&self) -> std::cell::Ref<'_, Vec<Access>> {
        self.accesses.borrow()
    }

    pub(super) fn events(&self) -> std::cell::Ref<'_, Vec<(u32, Event)>> {
        self.events.borrow()
    }

    /// Whether there are threads or accesses that were not watched.
    pub(super) fn is_partial(&self) -> bool {
        self.partial.get()
    }

    /// Number of the block at a position of the sample.
    pub(super) fn block(&self, position: u32) -> u64 {
        self.blocks[position as usize].linear
    }

    /// The name and the address of the memory with a number.
    pub(super) fn memory(&self, number: u32) -> (MemoryName, usize) {
        self.names.borrow()[number as usize].clone()
    }
}

// SAFETY: this is `Trace`.
unsafe impl Watching for Trace {
    fn fault(
        &self,
        address: usize,
        write: bool,
        instruction: usize,
        in_kernel: bool,
        site: Option<Site>,
    ) -> Option<bool> {
        Self::fault(self, address, write, instruction, in_kernel, site)
    }

    fn stepped(&self) -> bool {
        Self::stepped(self)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Area {
    fn set_open(&self, open: bool) {
        // SAFETY: pages of a region that its record keeps, or the workspace until its block has
        // ended; nothing else may touch it during a verification.
        let set = || unsafe { sys::set_open(self.pages.clone(), open) };
        match &self.buffer {
            // A buffer that was freed meanwhile stays closed.
            Some(record) => {
                record.while_live(|_| set());
            }
            None => set(),
        }
    }
}

/// The bytes from `address` on, `count` of them but at most [`WIDEST`]. Their
/// page is open.
fn bytes_at(address: usize, count: usize) -> [u8; WIDEST] {
    let mut bytes = [0; WIDEST];
    let source: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: callers give bytes of a region, on a page that `fault` has opened; only
    // this OS thread runs the launch, and it is in a signal handler.
    unsafe { source.copy_to_nonoverlapping(bytes.as_mut_ptr(), count.min(WIDEST)) };
    bytes
}
