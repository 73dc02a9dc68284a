//! Device memory: allocations with guard pages, and textures bound to them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::config::{LaunchConfig, Poison};
use crate::here::HERE;
use crate::record::Record;
use crate::region::{Offset, Placement, Region};
use crate::texture::{Texture, TextureDescriptor};
use crate::{sys, workspace};

/// The number of freed allocations, and the bytes of their address space, that
/// are kept inaccessible so that a use after free is found.
const QUARANTINE_COUNT: usize = 256;
const QUARANTINE_BYTES: usize = 1 << 38;

/// The errors of memory operations outside a launch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The system gave no memory, or the size is impossible.
    #[error("cannot allocate {bytes} bytes for `{label}`: {source}")]
    Allocation {
        /// The label given.
        label: String,
        /// The requested size.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The bytes are not a whole number of elements.
    #[error("`{label}`: {bytes} bytes is not a whole number of elements of {element_bytes} bytes")]
    Elements {
        /// The label given.
        label: String,
        /// The requested size.
        bytes: usize,
        /// The size of an element.
        element_bytes: usize,
    },
    /// The alignment is impossible.
    #[error("`{label}`: alignment {align}; needed is a power of two up to {max}, the page size")]
    Alignment {
        /// The label given.
        label: String,
        /// The requested alignment.
        align: usize,
        /// The largest possible alignment.
        max: usize,
    },
    /// A kernel requested what only the host may do.
    #[error("{operation} within a kernel; it is for the host, outside of launches")]
    InKernel {
        /// The refused operation.
        operation: &'static str,
    },
    /// The texture cannot be bound.
    #[error("cannot bind the texture: {reason}")]
    Texture {
        /// The mistake, and the requirement.
        reason: String,
    },
}

/// The memory of an emulated device.
///
/// Cloning makes another handle to the same memory. An [`Allocation`] keeps the
/// memory it came from alive.
///
/// Launches on one memory take turns, as on a stream of a device: the bytes
/// around the buffers are checked after each, so that a finding belongs to that
/// launch. A [`verify`](fn@crate::verify), which restores the buffers between
/// its runs, also waits for the host's copies, and they for it.
///
/// ```
/// use cuda_emulator::DeviceMemory;
///
/// let memory = DeviceMemory::new();
/// let mut buffer = memory.alloc(1024 * 4, 4, "field")?;
/// buffer.copy_from_bytes(0, &1.0_f32.to_ne_bytes());
/// let mut first = [0; 4];
/// buffer.copy_to_bytes(0, &mut first);
/// assert_eq!(f32::from_ne_bytes(first), 1.0);
/// # Ok::<(), cuda_emulator::MemoryError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct DeviceMemory {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    placement: Placement,
    /// The pattern in the canaries, also for new allocations.
    canary: AtomicU32,
    state: Mutex<State>,
    /// Held by the launch that runs.
    turn: Mutex<()>,
    /// The right to the buffers' contents: a verification has it exclusively,
    /// copies by the host share it.
    contents: RwLock<()>,
}

#[derive(Debug, Default)]
struct State {
    /// All allocations, live and in quarantine, by the first address of their
    /// range.
    by_start: BTreeMap<usize, Arc<Record>>,
    /// The freed ones, oldest first.
    quarantine: VecDeque<usize>,
    quarantine_bytes: usize,
    textures: Arc<Textures>,
    /// The handle that was given last.
    last_handle: u64,
    /// The number of verified launches of a kernel with a geometry.
    watched: HashMap<(&'static str, [u32; 3], [u32; 3]), u32>,
}

/// Textures by their handles.
pub(crate) type Textures = HashMap<u64, Texture>;

impl DeviceMemory {
    /// An empty memory, whose allocations end at a guard page.
    #[must_use]
    pub fn new() -> Self {
        Self::with_placement(Placement::End)
    }

    /// An empty memory, whose allocations end or start at a guard page. Running
    /// a test once with each makes both ends exact.
    #[must_use]
    pub fn with_placement(placement: Placement) -> Self {
        Self {
            inner: Arc::new(Inner {
                placement,
                canary: AtomicU32::new(canary_word(Poison::default())),
                ..Inner::default()
            }),
        }
    }

    /// Allocates `bytes` aligned to `align` (a power of two up to the page size),
    /// for elements of `align` bytes. See [`DeviceMemory::alloc_elements`].
    ///
    /// # Errors
    ///
    /// As for [`DeviceMemory::alloc_elements`].
    pub fn alloc(
        &self,
        bytes: usize,
        align: usize,
        label: &str,
    ) -> Result<Allocation, MemoryError> {
        // Whole elements where possible, because messages count elements.
        let element = if align > 0 && bytes.is_multiple_of(align) {
            align
        } else {
            1
        };
        self.alloc_elements(bytes, element, align, label)
    }

    /// Allocates `bytes` aligned to `align` (a power of two up to the page size),
    /// called `label` in messages, which count in elements of `element_bytes`.
    ///
    /// The memory holds the default poison (NaNs as `f32` and `f64`). Between its
    /// end and the guard page are fewer than `align` bytes, so the smaller the
    /// alignment, the more exact is the detection of reads past the end. (CUDA
    /// aligns allocations to 256 bytes; kernels that load 16 bytes at once need
    /// 16.)
    ///
    /// # Errors
    ///
    /// [`MemoryError::Allocation`] if there is no memory, [`MemoryError::Alignment`],
    /// [`MemoryError::Elements`] if `bytes` is not a multiple of `element_bytes`,
    /// [`MemoryError::InKernel`].
    pub fn alloc_elements(
        &self,
        bytes: usize,
        element_bytes: usize,
        align: usize,
        label: &str,
    ) -> Result<Allocation, MemoryError> {
        host_only("allocating")?;
        if element_bytes == 0 || !bytes.is_multiple_of(element_bytes) {
            return Err(MemoryError::Elements {
                label: label.to_owned(),
                bytes,
                element_bytes,
            });
        }
        let max = sys::page_size();
        if !align.is_power_of_two() || align > max {
            return Err(MemoryError::Alignment {
                label: label.to_owned(),
                align,
                max,
            });
        }
        let canary = self.inner.canary.load(Ordering::Relaxed);
        let region = self
            .or_make_room(|| Region::new(bytes, align, self.inner.placement, canary))
            .map_err(|source| MemoryError::Allocation {
                label: label.to_owned(),
                bytes,
                source,
            })?;
        // SAFETY: nothing else knows this region yet.
        unsafe { region.fill(Poison::default().word()) };
        let record = Arc::new(Record {
            region,
            label: label.to_owned(),
            element_bytes,
            freed: AtomicBool::new(false),
            access: Mutex::new(()),
        });
        self.lock()
            .by_start
            .insert(record.region.range_start(), Arc::clone(&record));
        Ok(Allocation {
            memory: self.clone(),
            record,
        })
    }

    /// Binds a texture to memory of this device; the handle is what kernels pass
    /// to [`tex1d_fetch`](crate::intrinsics::tex1d_fetch) and
    /// [`tex2d`](crate::intrinsics::tex2d). Valid until [`DeviceMemory::unbind_texture`].
    ///
    /// # Errors
    ///
    /// [`MemoryError::Texture`] if the memory is not inside one live allocation
    /// or the descriptor needs what CUDA does not offer; see
    /// [`TextureDescriptor`]. [`MemoryError::InKernel`].
    pub fn bind_texture(&self, descriptor: &TextureDescriptor) -> Result<u64, MemoryError> {
        host_only("binding a texture")?;
        let bytes = descriptor
            .bytes()
            .map_err(|reason| MemoryError::Texture { reason })?;
        let addr = descriptor.addr as usize;
        let mut state = self.lock();
        let record = state
            .containing(addr)
            .filter(|record| !record.freed())
            .filter(|record| {
                let Some(Offset(offset)) = record.region.locate(addr) else {
                    return false;
                };
                usize::try_from(offset)
                    .is_ok_and(|offset| offset.saturating_add(bytes) <= record.region.len())
            })
            .ok_or_else(|| MemoryError::Texture {
                reason: format!(
                    "its {bytes} bytes at {addr:#x} do not lie within one allocation of this memory"
                ),
            })?;
        let texture = Texture::new(*descriptor, record);
        // Handles are not used twice, so that a stale one is found.
        state.last_handle += 1;
        let handle = state.last_handle;
        Arc::make_mut(&mut state.textures).insert(handle, texture);
        Ok(handle)
    }

    /// Unbinds a texture's handle. Returns whether it was bound.
    pub fn unbind_texture(&self, handle: u64) -> bool {
        let mut state = self.lock();
        Arc::make_mut(&mut state.textures).remove(&handle).is_some()
    }

    /// Number of live allocations.
    #[must_use]
    pub fn live_allocations(&self) -> usize {
        let state = self.lock();
        state.by_start.len() - state.quarantine.len()
    }

    /// Bytes in live allocations.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        self.live().iter().map(|record| record.region.len()).sum()
    }

    pub(crate) fn textures(&self) -> Arc<Textures> {
        Arc::clone(&self.lock().textures)
    }

    /// Counts a verified launch; returns the number of earlier ones of its
    /// kernel and geometry.
    pub(crate) fn count_watched(&self, config: &LaunchConfig) -> u32 {
        let kind = (config.kernel, config.grid, config.block);
        let mut state = self.lock();
        let count = state.watched.entry(kind).or_default();
        let before = *count;
        *count = before.saturating_add(1);
        before
    }

    /// The live allocations, by address.
    pub(crate) fn live(&self) -> Vec<Arc<Record>> {
        self.lock()
            .by_start
            .values()
            .filter(|record| !record.freed())
            .cloned()
            .collect()
    }

    /// The allocation, live or freed, that `address` belongs to, guards included.
    pub(crate) fn find(&self, address: usize) -> Option<Arc<Record>> {
        self.lock().containing(address)
    }

    /// Sets the pattern of all canaries, now and for later allocations.
    pub(crate) fn set_canaries(&self, word: u32) {
        if self.inner.canary.swap(word, Ordering::Relaxed) != word {
            for record in self.live() {
                record.while_live(|region| region.set_canaries(word));
            }
        }
    }

    /// Calls `get`, which needs memory or address space; when there is too little, frees the memory
    /// kept of freed allocations and ended launches, and calls it again.
    pub(crate) fn or_make_room<T>(&self, get: impl Fn() -> io::Result<T>) -> io::Result<T> {
        let error = match get() {
            Ok(got) => return Ok(got),
            Err(error) => error,
        };
        if error.kind() == io::ErrorKind::InvalidInput {
            return Err(error);
        }
        let quarantined = self.lock().trim_quarantine(0, 0);
        workspace::drop_idle();
        drop(quarantined);
        get()
    }

    /// Waits until no other launch runs on this memory.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn {
            _turn: self
                .inner
                .turn
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits until nothing else copies to or from this memory.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.inner
            .contents
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing has exclusive access to the contents.
    ///
    /// # Panics
    ///
    /// In a kernel, which must not wait: it may itself be the launch that would
    /// be waited for.
    fn share(&self) -> RwLockReadGuard<'_, ()> {
        if let Err(error) = host_only("copying by the host") {
            panic!("{error}");
        }
        self.inner
            .contents
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No holder of the lock leaves the state half changed.
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to launch on a memory; see [`DeviceMemory::turn`].
pub(crate) struct Turn<'a> {
    _turn: MutexGuard<'a, ()>,
}

/// Refuses `operation` if a kernel requests it.
fn host_only(operation: &'static str) -> Result<(), MemoryError> {
    if HERE.with(|here| here.running().is_some()) {
        return Err(MemoryError::InKernel { operation });
    }
    Ok(())
}

/// The pattern of canaries that goes with a poison: different from it, so that a
/// copy of unwritten memory past an end is noticed, and of the same kind.
pub(crate) const fn canary_word(poison: Poison) -> u32 {
    poison.word() ^ 0x0001_9999
}

impl State {
    fn containing(&self, address: usize) -> Option<Arc<Record>> {
        let (_, record) = self
            .by_start
            .range((Bound::Unbounded, Bound::Included(address)))
            .next_back()?;
        record.region.locate(address)?;
        Some(Arc::clone(record))
    }

    /// Releases the oldest freed allocations while there are more than `count`
    /// of them, or of more than `bytes` in all.
    fn trim_quarantine(&mut self, count: usize, bytes: usize) -> Vec<Arc<Record>> {
        let mut gone = Vec::new();
        while self.quarantine.len() > count || self.quarantine_bytes > bytes {
            let Some(start) = self.quarantine.pop_front() else {
                break;
            };
            if let Some(record) = self.by_start.remove(&start) {
                self.quarantine_bytes -= record.region.range_len();
                gone.push(record);
            }
        }
        gone
    }
}

/// A piece of [`DeviceMemory`], freed on drop.
///
/// Freed memory stays inaccessible for a while, so that a launch that still uses
/// its address is diagnosed.
///
/// The methods here are for the host, between launches. While a launch runs, its
/// threads access the memory through [`Allocation::addr`].
#[derive(Debug)]
pub struct Allocation {
    memory: DeviceMemory,
    record: Arc<Record>,
}

impl Allocation {
    /// The address for kernels.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.as_ptr().expose_provenance() as u64
    }

    /// The address as a pointer for reading.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.record.region.data()
    }

    /// The address as a pointer for writing.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.record.region.data()
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.record.region.len()
    }

    /// Whether the size is zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The label given at allocation.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.record.label
    }

    /// The memory this is part of.
    #[must_use]
    pub fn memory(&self) -> &DeviceMemory {
        &self.memory
    }

    /// Copies `bytes` to `offset`.
    ///
    /// # Panics
    ///
    /// If they do not fit; in a kernel.
    pub fn copy_from_bytes(&mut self, offset: usize, bytes: &[u8]) {
        let memory = self.memory.clone();
        let _shared = memory.share();
        self.check(offset, bytes.len());
        // SAFETY: checked to lie inside the allocation, which is accessible as long as this value
        // exists; a slice of ordinary memory cannot overlap it, because no reference into it is
        // ever made.
        unsafe {
            std::ptr::copy(bytes.as_ptr(), self.as_mut_ptr().add(offset), bytes.len());
        }
    }

    /// Copies from `offset` to `bytes`.
    ///
    /// # Panics
    ///
    /// If there are fewer bytes than that; in a kernel.
    pub fn copy_to_bytes(&self, offset: usize, bytes: &mut [u8]) {
        let _shared = self.memory.share();
        self.check(offset, bytes.len());
        // SAFETY: as in `copy_from_bytes`; all bytes are initialised, at least by `alloc`.
        unsafe {
            std::ptr::copy(self.as_ptr().add(offset), bytes.as_mut_ptr(), bytes.len());
        }
    }

    /// Copies `len` bytes at `from` of `source` to `to`.
    ///
    /// # Panics
    ///
    /// If either range is not inside its allocation; in a kernel.
    pub fn copy_from(&mut self, to: usize, source: &Self, from: usize, len: usize) {
        let memory = self.memory.clone();
        let _shared = memory.share();
        // The same lock must not be taken twice: a verification may be waiting
        // in between.
        let other = (!Arc::ptr_eq(&memory.inner, &source.memory.inner)).then_some(&source.memory);
        let _source_shared = other.map(DeviceMemory::share);
        self.check(to, len);
        source.check(from, len);
        // SAFETY: both ranges were checked; `copy` allows overlap, though these
        // are two allocations.
        unsafe { std::ptr::copy(source.as_ptr().add(from), self.as_mut_ptr().add(to), len) };
    }

    fn check(&self, offset: usize, len: usize) {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len()),
            "bytes {offset} to {offset} + {len} of `{}`, which has {}",
            self.label(),
            self.len()
        );
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let region = &self.record.region;
        {
            let _access = self
                .record
                .access
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.record.freed.store(true, Ordering::Release);
            // SAFETY: host code reaches the memory through this value, which is
            // going, and the emulator under the lock held here; a kernel that
            // still uses the address faults, as it should. Where sealing fails
            // the memory stays readable and is unmapped later.
            let _ = unsafe { region.seal() };
        }
        let gone = {
            let mut state = self.memory.lock();
            state.quarantine.push_back(region.range_start());
            state.quarantine_bytes += region.range_len();
            state.trim_quarantine(QUARANTINE_COUNT, QUARANTINE_BYTES)
        };
        // Unmapped here, without the lock.
        drop(gone);
    }
}
