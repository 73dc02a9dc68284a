//! The block's shared memory: arrays of its own and statics used in place.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use super::arrays::{SharedArray, SharedSlot};
use super::state::{Block, watched};
use crate::config::{Blocks, SHARED_LIMIT_DEFAULT};
use crate::diagnosis::{Diagnosis, MemoryKind};
use crate::here::Site;
use crate::memory::canary_word;
use crate::region::fill_words;
use crate::sys;

/// Serialises the blocks that use shared memory in place, over all launches.
static IN_PLACE: Mutex<()> = Mutex::new(());

impl Block<'_> {
    pub fn shared_static(
        &self,
        key: &'static SharedSlot,
        size: usize,
        align: usize,
        site: Site,
    ) -> *mut u8 {
        let known = self.array(key);
        if let Some((start, known_size, known_align)) = known {
            if (known_size, known_align) != (size, align) {
                self.invalid(
                    site,
                    "shared_static",
                    format!(
                        "`{}` is asked for with {size} bytes aligned to {align}, and was with \
                         {known_size} aligned to {known_align}",
                        key.name()
                    ),
                );
            }
            return start;
        }
        if !align.is_power_of_two() || align > sys::page_size() {
            self.invalid(
                site,
                "shared_static",
                format!(
                    "alignment {align} of `{}`; needed is a power of two up to {}",
                    key.name(),
                    sys::page_size()
                ),
            );
        }
        self.count_static(key, size, site);
        self.add_array(key, MemoryKind::SharedArray, key.name(), size, align)
    }

    pub fn dynamic_shared(&self) -> *mut u8 {
        match self.array(ptr::null()) {
            Some((start, ..)) => start,
            None => self.add_array(
                ptr::null(),
                MemoryKind::DynamicShared,
                "dynamic",
                self.launch.config.dynamic_shared_bytes,
                16,
            ),
        }
    }

    /// Start, size and alignment of the array with this key, if it exists.
    pub(super) fn array(&self, key: *const SharedSlot) -> Option<(*mut u8, usize, usize)> {
        let shared = self.shared.borrow();
        let array = shared.arrays.iter().find(|array| ptr::eq(array.key, key))?;
        let pool = self.workspace.shared.borrow();
        Some((pool.region(array.region).data(), array.size, array.align))
    }

    pub(super) fn add_array(
        &self,
        key: *const SharedSlot,
        kind: MemoryKind,
        name: &'static str,
        size: usize,
        align: usize,
    ) -> *mut u8 {
        let poison = self.launch.options.poison;
        let taken = self.launch.memory.or_make_room(|| {
            let mut pool = self.workspace.shared.borrow_mut();
            pool.take(size, align, poison.word(), canary_word(poison))
        });
        let region = match taken {
            Ok(region) => region,
            Err(error) => self.fail(Diagnosis::OutOfMemory {
                kernel: self.launch.config.kernel,
                what: format!("shared array `{name}`"),
                reason: error.to_string(),
            }),
        };
        let array = SharedArray {
            key,
            kind,
            name,
            size,
            align,
            region,
        };
        let pool = self.workspace.shared.borrow();
        let region = pool.region(region);
        watched(|trace| trace.add_shared(self.linear(), region, array.memory_name()));
        self.shared.borrow_mut().arrays.push(array);
        region.data()
    }

    /// Adds `size` bytes to the block's static shared memory, if the limits allow.
    pub(super) fn count_static(&self, key: &SharedSlot, size: usize, site: Site) {
        let before = self.shared.borrow().static_bytes;
        let bytes = before.saturating_add(size);
        let total = bytes.saturating_add(self.launch.config.dynamic_shared_bytes);
        let limit = self.launch.options.shared_limit;
        let (needed, limit) = if bytes > SHARED_LIMIT_DEFAULT {
            (bytes, SHARED_LIMIT_DEFAULT)
        } else if total > limit {
            (total, limit)
        } else {
            self.shared.borrow_mut().static_bytes = bytes;
            return;
        };
        self.fail(Diagnosis::SharedMemoryLimit {
            at: self.here(site),
            what: format!(
                "static array `{}` of {size} bytes ({}:{})",
                key.name(),
                key.file(),
                key.line()
            ),
            needed,
            limit,
        })
    }

    /// See [`intrinsics::register_shared_static`](crate::intrinsics::register_shared_static).
    ///
    /// # Safety
    ///
    /// As for that function.
    pub unsafe fn register_shared_static(
        &self,
        key: &'static SharedSlot,
        start: *mut u8,
        size: usize,
        site: Site,
    ) {
        let (known, locked) = {
            let shared = self.shared.borrow();
            let entry = (ptr::from_ref(key), start.addr(), size);
            (
                shared.in_place.contains(&entry),
                shared.in_place_lock.is_some(),
            )
        };
        if known {
            return;
        }
        if self.launch.options.blocks == Blocks::Resident {
            self.invalid(
                site,
                "register_shared_static",
                format!(
                    "`{}` exists once for all blocks, so they cannot be resident together; use \
                     shared_array! or another way to run blocks",
                    key.name()
                ),
            );
        }
        self.count_static(key, size, site);
        // Waits while a block of another OS thread holds it. That block never waits for this one,
        // so it ends.
        let lock = (!locked).then(|| IN_PLACE.lock().unwrap_or_else(PoisonError::into_inner));
        let mut shared = self.shared.borrow_mut();
        if lock.is_some() {
            shared.in_place_lock = lock;
        }
        shared.in_place.push((key, start.addr(), size));
        // SAFETY: valid for writes and used by emulated threads only, as the
        // caller promises; of those only this block's can be running, by the
        // lock.
        unsafe { fill_words(start, size, self.launch.options.poison.word()) };
    }

    pub fn shared_bytes(&self) -> usize {
        self.shared.borrow().static_bytes + self.launch.config.dynamic_shared_bytes
    }

    pub fn is_shared(&self, address: usize) -> bool {
        let shared = self.shared.borrow();
        let pool = self.workspace.shared.borrow();
        let in_array = |array: &SharedArray| pool.region(array.region).contains(address);
        let in_static = |&(_, start, size): &(_, usize, usize)| {
            (start..start.saturating_add(size)).contains(&address)
        };
        shared.arrays.iter().any(in_array) || shared.in_place.iter().any(in_static)
    }
}
