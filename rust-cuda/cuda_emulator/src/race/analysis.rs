//! Finds the first pair of conflicting accesses that nothing orders.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::decode::{self, Operand};
use super::trace::{Access, Event, Trace, WIDEST};
use crate::config::{LaunchConfig, Poison, ThreadOrder};
use crate::diagnosis::{Access as Kind, Diagnosis, Origin, RacingAccess, SourceLine};
use crate::symbol::{self, Manner};

/// The largest numbers of pairs and of events that are examined; the rest
/// counts as ordered.
const PAIRS: usize = 4 << 20;
const STEPS: usize = 32 << 20;

/// Accesses that touch the same four bytes are compared.
const GRANULE: usize = 4;

/// An access, with what its instruction does.
#[derive(Clone, Copy)]
struct Touch<'a> {
    access: &'a Access,
    reads: bool,
    writes: bool,
    atomic: bool,
    end: usize,
}

/// The race whose second access was the earliest. If there is none, but the program does not name
/// the manner of some accesses: the same for races that are possible if these accesses are plain.
pub(crate) fn first_race(trace: &Trace, config: &LaunchConfig) -> Option<Diagnosis> {
    let accesses = trace.accesses();
    let mut operands = HashMap::new();
    let touches: Vec<Touch<'_>> = accesses
        .iter()
        .map(|access| touch(access, &mut operands))
        .collect();
    let mut places: BTreeMap<Granule, Vec<&Touch<'_>>> = BTreeMap::new();
    for touch in &touches {
        for place in granules(touch) {
            places.entry(place).or_default().push(touch);
        }
    }
    let mut search = Search {
        trace,
        threads: config.block.iter().product(),
        touches: &touches,
        unknown: Manner::Volatile,
        flags: None,
        manners: HashMap::new(),
        steps: STEPS,
    };
    if let Some(pair) = search.first(&places) {
        return Some(describe(trace, config, pair, false));
    }
    if !search.manners.values().any(Option::is_none) {
        return None;
    }
    search.unknown = Manner::Plain;
    search.flags = None;
    search.steps = STEPS;
    let pair = search.first(&places)?;
    Some(describe(trace, config, pair, true))
}

fn touch<'a>(access: &'a Access, operands: &mut HashMap<usize, Vec<Operand>>) -> Touch<'a> {
    let operands = operands.entry(access.instruction).or_insert_with(|| {
        // SAFETY: the instruction that faulted.
        unsafe { decode::operands(access.instruction) }
    });
    let operand = operands
        .iter()
        .find(|operand| operand.writes == access.write)
        .or(operands.first())
        .copied()
        .unwrap_or(Operand {
            bytes: 1,
            reads: !access.write,
            writes: access.write,
            atomic: false,
        });
    Touch {
        access,
        reads: operand.reads,
        writes: operand.writes,
        atomic: operand.atomic || access.atomic,
        end: access.address + operand.bytes.clamp(1, WIDEST),
    }
}

/// Number of the memory, which for shared arrays is another in every block, and
/// number of a piece of the address space.
type Granule = (u32, usize);

fn granules(touch: &Touch<'_>) -> impl Iterator<Item = Granule> + use<> {
    let memory = touch.access.memory;
    let first = touch.access.address / GRANULE;
    (first..touch.end.div_ceil(GRANULE)).map(move |granule| (memory, granule))
}

/// Whether the order of two accesses makes a difference.
fn conflict(first: &Touch<'_>, second: &Touch<'_>) -> bool {
    let (a, b) = (first.access, second.access);
    let bytes = a.address.max(b.address)..first.end.min(second.end);
    if (a.block, a.thread) == (b.block, b.thread)
        || bytes.is_empty()
        || first.atomic && second.atomic
    {
        return false;
    }
    // The position of those bytes within an access's record.
    let part = |access: &Access| {
        let start = (bytes.start - access.address).min(access.bytes);
        let end = (bytes.end - access.address).min(access.bytes);
        start..end
    };
    let changes = |touch: &Touch<'_>| {
        let (access, part) = (touch.access, part(touch.access));
        touch.writes && access.before[part.clone()] != access.after[part]
    };
    let read_and_changed = first.reads && changes(second) || second.reads && changes(first);
    let written_differently = first.writes && second.writes && a.after[part(a)] != b.after[part(b)];
    read_and_changed || written_differently
}

/// Words by which threads wait for each other.
struct Flags {
    places: HashSet<Granule>,
    /// Their reads: the reader, and the event.
    reads: Vec<(u32, Event)>,
}

struct Search<'a> {
    trace: &'a Trace,
    /// Threads per block.
    threads: u32,
    touches: &'a [Touch<'a>],
    /// The manner of an access for which the program names none.
    unknown: Manner,
    /// Looked up when needed.
    flags: Option<Flags>,
    /// The manner of each instruction, if the program names one.
    manners: HashMap<usize, Option<Manner>>,
    steps: usize,
}

impl<'a> Search<'a> {
    /// The race whose second access was the earliest, among the accesses of each place.
    fn first(
        &mut self,
        places: &BTreeMap<Granule, Vec<&'a Touch<'a>>>,
    ) -> Option<[&'a Touch<'a>; 2]> {
        let mut pairs = PAIRS;
        let mut found: Option<[&Touch<'_>; 2]> = None;
        for touches in places.values() {
            if !touches.iter().any(|touch| touch.writes) {
                continue;
            }
            'place: for (i, second) in touches.iter().enumerate() {
                for first in &touches[..i] {
                    let earlier =
                        found.is_none_or(|[_, found]| second.access.time < found.access.time);
                    if !earlier || pairs == 0 {
                        break 'place;
                    }
                    pairs -= 1;
                    if conflict(first, second) && !self.ordered(first, second) {
                        found = Some([first, second]);
                    }
                }
            }
        }
        found
    }

    /// Whether anything orders the second access after the first.
    fn ordered(&mut self, first: &Touch<'_>, second: &Touch<'_>) -> bool {
        let (a, b) = (first.access, second.access);
        if a.block == b.block && a.epoch != b.epoch {
            return true;
        }
        if self.reaches(first, b, &[]) {
            return true;
        }
        if [first, second].map(|touch| self.manner(touch)) == [Manner::Atomic; 2] {
            return true;
        }
        let flags = match self.flags.take() {
            Some(flags) => flags,
            None => self.find_flags(),
        };
        let by_flag = granules(first).any(|place| flags.places.contains(&place));
        // What unwatched threads have waited for is unknown.
        let ordered = by_flag
            || !flags.reads.is_empty()
                && (self.trace.is_partial() || self.reaches(first, b, &flags.reads));
        self.flags = Some(flags);
        ordered
    }

    /// Whether barriers, volatile reads or atomics lead from the first access
    /// to the thread of `b` before `b`. All atomics count as one, whatever
    /// their addresses.
    fn reaches(&mut self, first: &Touch<'_>, b: &Access, reads: &[(u32, Event)]) -> bool {
        let a = first.access;
        let events = self.trace.events();
        let between = |events: &[(u32, Event)]| {
            let start = events.partition_point(|&(time, _)| time < a.time);
            let end = events.partition_point(|&(time, _)| time < b.time);
            start..end
        };
        let (noted, read) = (between(&events), between(reads));
        let count = noted.len() + read.len();
        if count > self.steps {
            return true;
        }
        self.steps -= count;
        let mut events: Vec<_> = events[noted].iter().chain(&reads[read]).collect();
        events.sort_by_key(|&&(time, _)| time);
        let mut known = [vec![false; self.threads as usize], Vec::new()];
        known[0][a.thread as usize] = true;
        if a.block != b.block {
            known[1] = vec![false; self.threads as usize];
        }
        let blocks = [a.block, b.block];
        // An atomic access is itself known to later ones.
        let mut by_atomics = first.atomic;
        for &&(_, event) in &events {
            let of = |block| blocks.iter().position(|&of| of == block);
            match event {
                Event::Barrier { block } => {
                    if let Some(known) = of(block).map(|of| &mut known[of])
                        && known.contains(&true)
                    {
                        known.fill(true);
                    }
                }
                Event::Warp { block, first, mask } => {
                    if let Some(known) = of(block).map(|of| &mut known[of]) {
                        let lanes = || (0..u32::BITS).filter(|lane| mask >> lane & 1 != 0);
                        if lanes().any(|lane| known[(first + lane) as usize]) {
                            lanes().for_each(|lane| known[(first + lane) as usize] = true);
                        }
                    }
                }
                Event::Atomic { block, thread } => {
                    if let Some(known) = of(block).map(|of| &mut known[of]) {
                        by_atomics |= known[thread as usize];
                        known[thread as usize] |= by_atomics;
                    }
                }
                Event::Volatile { block, thread } => {
                    if let Some(known) = of(block).map(|of| &mut known[of]) {
                        known[thread as usize] = true;
                    }
                }
            }
        }
        known[usize::from(a.block != b.block)][b.thread as usize]
    }

    /// The words to which any thread makes a volatile access. A compare with
    /// memory has the line of the compare, so a volatile read is not always
    /// recognised; a write is.
    fn find_flags(&mut self) -> Flags {
        let touches = self.touches;
        let volatile = touches
            .iter()
            .filter(|touch| self.manner(touch) == Manner::Volatile);
        let places: HashSet<_> = volatile.flat_map(granules).collect();
        let of_flag = |touch: &&Touch<'_>| {
            touch.reads && granules(touch).any(|place| places.contains(&place))
        };
        let reads = touches.iter().filter(of_flag).map(|touch| {
            let (block, thread) = (touch.access.block, touch.access.thread);
            (touch.access.time, Event::Volatile { block, thread })
        });
        Flags {
            reads: reads.collect(),
            places,
        }
    }

    fn manner(&mut self, touch: &Touch<'_>) -> Manner {
        if touch.atomic {
            return Manner::Atomic;
        }
        if touch.access.site.is_some() {
            // A copy by the emulator.
            return Manner::Plain;
        }
        let instruction = touch.access.instruction;
        self.manners
            .entry(instruction)
            .or_insert_with(|| symbol::manner(instruction))
            .unwrap_or(self.unknown)
    }
}

fn describe(
    trace: &Trace,
    config: &LaunchConfig,
    [first, second]: [&Touch<'_>; 2],
    possible: bool,
) -> Diagnosis {
    let (memory, start) = trace.memory(first.access.memory);
    let racing = |touch: &Touch<'_>| {
        let access = touch.access;
        RacingAccess {
            at: Origin {
                kernel: config.kernel,
                block: Some(config.block_idx(trace.block(access.block))),
                thread: Some(config.thread_idx(access.thread)),
                line: match access.site {
                    Some(site) => Some(SourceLine::from(site)),
                    None => symbol::line_of_instruction(access.instruction),
                },
                order: ThreadOrder::Forward,
                poison: Poison::default(),
            },
            access: if touch.writes {
                Kind::Write
            } else {
                Kind::Read
            },
            atomic: touch.atomic,
        }
    };
    let offset = first.access.address.max(second.access.address) - start;
    let (kernel, element) = (config.kernel, offset / memory.element_bytes);
    let accesses = Box::new([racing(first), racing(second)]);
    if possible {
        return Diagnosis::PossibleDataRace {
            kernel,
            memory,
            element,
            accesses,
        };
    }
    Diagnosis::DataRace {
        kernel,
        memory,
        element,
        accesses,
    }
}
