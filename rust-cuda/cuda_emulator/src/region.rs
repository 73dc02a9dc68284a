//! A region of memory that detects accesses beyond its ends.
//!
//! ```text
//! | guard | canary … | data | slack | guard |
//! ```
//!
//! The guards fault at any access. The data ends at the trailing guard, except
//! for a slack smaller than the alignment; canary and slack hold a known
//! pattern, so a write there is found later, by value.

use std::io;

use crate::sys::{self, Mapping};

/// The end at which accesses out of bounds fault at once.
///
/// Guards come in whole pages, so a buffer can touch only one of its two guards.
/// At the other end up to a page of canary lies between, where writes are found
/// after the launch and reads are not (but see [`verify`](fn@crate::verify)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Accesses past the end fault (up to the alignment of the buffer).
    #[default]
    End,
    /// Accesses before the start fault.
    Start,
}

/// The least number of canary bytes in front of the data (or behind it, if it
/// is placed at the start).
const CANARY_MIN: usize = 64;

/// Smallest and largest size of a guard, bytes. Address space costs nothing, and
/// an index that is wrong by a whole row or plane should still hit the guard and
/// not a neighbour.
const GUARD_MIN: usize = 1 << 20;
const GUARD_MAX: usize = 1 << 30;

#[derive(Debug)]
pub(crate) struct Region {
    mapping: Mapping,
    /// Offsets into the mapping: the accessible part, and the data in it.
    open: std::ops::Range<usize>,
    data: std::ops::Range<usize>,
    canary: std::sync::atomic::AtomicU32,
}

/// The place of an address relative to a region's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset(pub i64);

impl Region {
    /// Memory for `len` bytes aligned to `align`, a power of two no larger than
    /// a page. The data hold zero, the canaries the pattern `canary`.
    ///
    /// A size or an alignment that no memory can have is an error of the kind
    /// `InvalidInput`.
    pub fn new(len: usize, align: usize, placement: Placement, canary: u32) -> io::Result<Self> {
        let page = sys::page_size();
        let too_large = || {
            let reason = "the size overflows the address space";
            io::Error::new(io::ErrorKind::InvalidInput, reason)
        };
        if !align.is_power_of_two() || align > page {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("alignment {align} is not a power of two up to the page size, {page}"),
            ));
        }
        let padded = len.checked_next_multiple_of(align).ok_or_else(too_large)?;
        let accessible = padded
            .checked_add(CANARY_MIN)
            .and_then(|bytes| bytes.checked_next_multiple_of(page))
            .ok_or_else(too_large)?;
        let guard = if sys::GUARDED {
            accessible.clamp(GUARD_MIN, GUARD_MAX)
        } else {
            // Nothing faults here: a page of canary on either side instead.
            0
        };
        let (front, back) = if sys::GUARDED { (0, 0) } else { (page, page) };
        let total = guard
            .checked_mul(2)
            .and_then(|guards| guards.checked_add(accessible + front + back))
            .ok_or_else(too_large)?;
        sys::available::require(accessible)?;
        let mapping = Mapping::reserve(total)?;
        mapping.open(guard, total - 2 * guard)?;
        let start = match placement {
            Placement::End => guard + front + accessible - padded,
            Placement::Start => guard + front,
        };
        let region = Self {
            mapping,
            open: guard..total - guard,
            data: start..start + len,
            canary: std::sync::atomic::AtomicU32::new(canary),
        };
        region.write_canaries(canary);
        Ok(region)
    }

    /// First address of the data.
    pub fn data(&self) -> *mut u8 {
        self.mapping.start().wrapping_add(self.data.start)
    }

    /// Bytes of data.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Where `address` lies relative to the data, if it is in this region or its
    /// guards.
    pub fn locate(&self, address: usize) -> Option<Offset> {
        let start = self.mapping.start().addr();
        (start..start + self.mapping.len())
            .contains(&address)
            .then(|| Offset(address as i64 - self.data().addr() as i64))
    }

    /// The addresses of the pages that are accessible, canaries among them.
    #[cfg(traced)]
    pub fn open_pages(&self) -> std::ops::Range<usize> {
        let start = self.mapping.start().addr();
        start + self.open.start..start + self.open.end
    }

    /// Whether `address` is in the data.
    pub fn contains(&self, address: usize) -> bool {
        self.locate(address)
            .is_some_and(|Offset(offset)| (0..self.len() as i64).contains(&offset))
    }

    /// First address of the whole range, guards included.
    pub fn range_start(&self) -> usize {
        self.mapping.start().addr()
    }

    /// Bytes of address space taken.
    pub fn range_len(&self) -> usize {
        self.mapping.len()
    }

    /// Repeats `word` over the data.
    ///
    /// # Safety
    ///
    /// No reference to the data may be live, and nothing may access it meanwhile.
    pub unsafe fn fill(&self, word: u32) {
        // SAFETY: the data is accessible memory of this region; the caller
        // promises exclusive access.
        unsafe { fill_words(self.data(), self.len(), word) };
    }

    /// Puts the pattern `word` into the canaries, if it is not there already.
    pub fn set_canaries(&self, word: u32) {
        if self.canary.load(std::sync::atomic::Ordering::Relaxed) != word {
            self.write_canaries(word);
        }
    }

    fn write_canaries(&self, word: u32) {
        self.canary
            .store(word, std::sync::atomic::Ordering::Relaxed);
        for part in self.canary_parts() {
            // SAFETY: canaries are accessible memory that no reference ever
            // points to: pointers handed out are for the data only.
            unsafe { fill_words(self.mapping.start().add(part.start), part.len(), word) };
        }
    }

    fn canary_parts(&self) -> [std::ops::Range<usize>; 2] {
        [
            self.open.start..self.data.start,
            self.data.end..self.open.end,
        ]
    }

    /// The first canary byte, nearest to the data, that no longer holds the
    /// pattern. Restores the canaries, so that damage is reported once.
    pub fn check_canaries(&self) -> Option<Offset> {
        let word = self.canary.load(std::sync::atomic::Ordering::Relaxed);
        let [front, back] = self.canary_parts();
        let start = self.mapping.start();
        // SAFETY: both parts are accessible memory of this region; a kernel of
        // another launch may write there only by the mistake that this looks
        // for.
        let (before, after) = unsafe {
            (
                last_difference(start.add(front.start), front.len(), word),
                first_difference(start.add(back.start), back.len(), word),
            )
        };
        let hit = after
            .map(|i| (back.start + i) as i64)
            .or(before.map(|i| (front.start + i) as i64))?;
        self.write_canaries(word);
        Some(Offset(hit - self.data.start as i64))
    }

    /// Releases the memory and makes every access fault (where the platform
    /// can).
    ///
    /// # Safety
    ///
    /// No reference to the data may be used afterwards.
    pub unsafe fn seal(&self) -> io::Result<()> {
        // SAFETY: the caller's promise is the mapping's condition.
        unsafe { self.mapping.seal() }
    }
}

/// Writes `word` over `len` bytes at `start`, beginning with the word's first
/// byte at addresses that are multiples of four, so that values read at natural
/// alignment are whole patterns.
///
/// # Safety
///
/// `start` must be valid for writes of `len` bytes, to which nothing else has access meanwhile.
pub(crate) unsafe fn fill_words(start: *mut u8, len: usize, word: u32) {
    let bytes = word.to_ne_bytes();
    let head = start.align_offset(4).min(len);
    let phase = start.addr() % 4;
    let words = (len - head) / 4;
    let tail = head + words * 4;
    // SAFETY: all three parts lie within the `len` bytes; the middle starts at a
    // multiple of four.
    unsafe {
        for i in 0..head {
            start.add(i).write(bytes[(phase + i) % 4]);
        }
        std::slice::from_raw_parts_mut(start.add(head).cast::<std::mem::MaybeUninit<u32>>(), words)
            .fill(std::mem::MaybeUninit::new(word));
        for i in tail..len {
            start.add(i).write(bytes[(phase + i) % 4]);
        }
    }
}

/// Index of the first of `len` bytes at `start` that differs from what
/// `fill_words` writes there.
///
/// # Safety
///
/// `start` must be valid for reads of `len` initialised bytes.
unsafe fn first_difference(start: *const u8, len: usize, word: u32) -> Option<usize> {
    let bytes = word.to_ne_bytes();
    let phase = start.addr() % 4;
    // SAFETY: the caller's promise.
    let data = unsafe { std::slice::from_raw_parts(start, len) };
    if intact(data, word, phase) {
        return None;
    }
    data.iter()
        .enumerate()
        .position(|(i, &byte)| byte != bytes[(phase + i) % 4])
}

/// Like [`first_difference`], from the end.
///
/// # Safety
///
/// As for [`first_difference`].
unsafe fn last_difference(start: *const u8, len: usize, word: u32) -> Option<usize> {
    let bytes = word.to_ne_bytes();
    let phase = start.addr() % 4;
    // SAFETY: the caller's promise.
    let data = unsafe { std::slice::from_raw_parts(start, len) };
    if intact(data, word, phase) {
        return None;
    }
    (0..len).rev().find(|&i| data[i] != bytes[(phase + i) % 4])
}

/// Whether `data`, at an address of `phase` modulo four, holds the pattern.
fn intact(data: &[u8], word: u32, phase: usize) -> bool {
    // Rotated so that its first byte belongs to the first byte of `data`.
    let bytes: [u8; 4] = std::array::from_fn(|i| word.to_ne_bytes()[(phase + i) % 4]);
    let (chunks, rest) = data.as_chunks::<4>();
    chunks.iter().all(|chunk| *chunk == bytes) && rest == &bytes[..rest.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_whole_words_at_natural_alignment() {
        let mut memory = [0_u32; 4];
        let start = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: bytes 1 to 15 of the array.
        unsafe { fill_words(start.add(1), 14, 0x1122_3344) };
        assert_eq!(memory[1], 0x1122_3344);
        assert_eq!(memory[2], 0x1122_3344);
        assert_eq!(memory[0].to_ne_bytes()[0], 0);
        assert_eq!(
            memory[0].to_ne_bytes()[1..],
            0x1122_3344_u32.to_ne_bytes()[1..]
        );
        assert_eq!(memory[3].to_ne_bytes()[3], 0);
    }

    #[test]
    fn the_data_ends_at_the_guard_up_to_alignment() {
        for (len, align) in [(0, 4), (4, 4), (5, 1), (4096, 16), (4100, 16), (12_345, 8)] {
            let region = Region::new(len, align, Placement::End, 7).unwrap();
            assert_eq!(region.data().addr() % align, 0);
            assert_eq!(region.len(), len);
            let slack = region.open.end - region.data.end;
            let behind = if sys::GUARDED { 0 } else { sys::page_size() };
            assert!(slack - behind < align, "{len} {align}: slack {slack}");
            assert!(region.data.start - region.open.start >= CANARY_MIN);
        }
    }

    #[test]
    fn the_data_starts_at_the_guard() {
        let region = Region::new(100, 16, Placement::Start, 7).unwrap();
        let ahead = if sys::GUARDED { 0 } else { sys::page_size() };
        assert_eq!(region.data.start - region.open.start, ahead);
    }

    #[test]
    fn canaries_show_where_they_were_hit() {
        for placement in [Placement::End, Placement::Start] {
            let region = Region::new(10, 4, placement, 0x0102_0304).unwrap();
            // SAFETY: nothing else has access to the region.
            unsafe { region.fill(0xFFFF_FFFF) };
            assert_eq!(region.check_canaries(), None);
            // SAFETY: in the slack behind ten bytes aligned to four.
            unsafe { region.data().add(11).write(0xAA) };
            assert_eq!(region.check_canaries(), Some(Offset(11)));
            assert_eq!(region.check_canaries(), None, "reported once");
            region.set_canaries(0x0505_0505);
            assert_eq!(region.check_canaries(), None);
        }
        let region = Region::new(10, 4, Placement::End, 0x0102_0304).unwrap();
        // SAFETY: in the canary in front.
        unsafe { region.data().sub(3).write(0xAA) };
        assert_eq!(region.check_canaries(), Some(Offset(-3)));
    }

    #[test]
    fn an_alignment_beyond_a_page_is_refused() {
        assert!(Region::new(1, 1 << 20, Placement::End, 0).is_err());
        assert!(Region::new(1, 3, Placement::End, 0).is_err());
        assert!(Region::new(usize::MAX, 4, Placement::End, 0).is_err());
    }
}
