//! The emulator as a device: it runs kernels on the CPU, thread by thread.

use super::call::Call;
use super::cpu;
use super::layout::{AddressMode, Layout};
use super::properties::Properties;
use crate::{Constants, Error, LaunchConfig, Limits};
use cuda_emulator::{
    Addressing, Allocation, Blocks, DeviceMemory, Diagnosis, LaunchLock, MemoryError, Options,
    Placement, Poison, RESIDENT_THREADS_MAX, TextureDescriptor, TextureShape, ThreadOrder, Verify,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

/// The options of an emulated device.
///
/// ```
/// use halo_gpu::device::ThreadOrder;
/// use halo_gpu::{Device, EmulatorOptions};
///
/// let device = Device::emulator_with(EmulatorOptions {
///     order: ThreadOrder::Reverse,
///     ..EmulatorOptions::default()
/// });
/// assert_eq!(device.name(), "emulator");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct EmulatorOptions {
    /// The order in which threads and blocks run. `verify` ignores it and tries several orders.
    pub order: ThreadOrder,
    /// The contents of shared memory before the first write. `verify` ignores it and tries several
    /// contents.
    pub poison: Poison,
    /// The distribution of blocks over the machine's cores.
    pub blocks: Blocks,
    /// The most barriers, warp operations and atomics that a thread may execute before the emulator
    /// takes the kernel for an endless loop, in addition to those that the launch announces
    /// ([`LaunchConfig::with_steps`]).
    pub step_limit: u64,
    /// The wall-clock time that a launch may take.
    pub time_limit: Option<Duration>,
    /// Whether the emulator repeats every launch with several thread orders and several contents of
    /// unwritten memory, and compares the results. A kernel that lacks a barrier, or reads
    /// unwritten memory, then fails with a diagnosis.
    pub verify: bool,
    /// Whether buffers end or start at the guard page, where accesses outside them fault
    /// immediately.
    pub placement: Placement,
    /// The limits of launches.
    pub limits: Limits,
}

impl Default for EmulatorOptions {
    /// One run in forward order, with NaN as poison and the limits of compute capability 9.0.
    fn default() -> Self {
        let options = Options::default();
        Self {
            order: options.order,
            poison: options.poison,
            blocks: options.blocks,
            step_limit: options.step_limit,
            time_limit: options.time_limit,
            verify: false,
            placement: Placement::End,
            limits: Limits::SM_90,
        }
    }
}

/// The same number on every machine, because the sizes of grids depend on it.
const MULTIPROCESSORS: u32 = 2;

pub(super) fn properties() -> Properties {
    Properties {
        name: "emulator".to_owned(),
        multiprocessors: MULTIPROCESSORS,
        ..cpu::properties()
    }
}

/// The least alignment of allocations. Kernels load 16 bytes at once from the start of buffers,
/// which CUDA aligns to 256 bytes. A larger alignment would only widen the gap before the guard
/// page.
const ALIGNMENT: usize = 16;

/// A lock for all statics that kernels read as device constants.
///
/// A launch that sets constants has exclusive access; launches that set none share the access.
static CONSTANTS: RwLock<()> = RwLock::new(());

/// The backend of a [`Device`](super::Device) of kind `Emulator`.
pub(crate) struct EmulatorDevice {
    placement: Placement,
    options: Options,
    verify: bool,
    memory: DeviceMemory,
    /// The values that this device's constants were set to, by name.
    constants: Mutex<HashMap<&'static str, KeptConstant>>,
    allocations: AtomicU64,
}

#[derive(Clone)]
struct KeptConstant {
    bytes: Box<[u8]>,
    host_address: fn() -> *mut u8,
}

impl EmulatorDevice {
    pub(super) fn new(options: EmulatorOptions) -> Self {
        let mut own = Options::default();
        own.order = options.order;
        own.poison = options.poison;
        own.blocks = options.blocks;
        own.step_limit = options.step_limit;
        own.time_limit = options.time_limit;
        own.shared_limit = options.limits.shared_bytes_opt_in as usize;
        Self {
            options: own,
            verify: options.verify,
            memory: DeviceMemory::with_placement(options.placement),
            placement: options.placement,
            constants: Mutex::default(),
            allocations: AtomicU64::new(0),
        }
    }

    /// The device's options, with the launch limits.
    pub(super) fn options(&self, limits: Limits) -> EmulatorOptions {
        let own = &self.options;
        EmulatorOptions {
            order: own.order,
            poison: own.poison,
            blocks: own.blocks,
            step_limit: own.step_limit,
            time_limit: own.time_limit,
            verify: self.verify,
            placement: self.placement,
            limits,
        }
    }

    /// The number of blocks of `threads` threads that may wait for each other.
    pub(crate) fn resident_blocks(&self, threads: u64) -> u32 {
        match self.options.blocks {
            Blocks::Resident => {
                u32::try_from(RESIDENT_THREADS_MAX / threads.max(1)).unwrap_or(u32::MAX)
            }
            Blocks::Parallel | Blocks::OneAtATime => 1,
        }
    }

    /// Allocates `bytes` bytes (not zero) for elements of `T`.
    pub(super) fn allocate<T>(&self, bytes: usize) -> Result<EmulatorMemory, Error> {
        let number = self.allocations.fetch_add(1, Ordering::Relaxed);
        let label = format!("#{number}: {}", std::any::type_name::<T>());
        let align = align_of::<T>().max(ALIGNMENT);
        let allocation = self
            .memory
            .alloc_elements(bytes, size_of::<T>(), align, &label)
            .map_err(of_memory)?;
        Ok(EmulatorMemory { allocation })
    }

    /// A texture of zeros.
    pub(super) fn texture(&self, layout: Layout) -> Result<EmulatorTexture, Error> {
        let mut memory = self.allocate::<f32>(layout.bytes())?;
        memory.fill(0..layout.bytes(), 0.0_f32);
        let addressing = match layout.address_mode {
            AddressMode::Clamp => Addressing::Clamp,
            AddressMode::Border => Addressing::Border,
        };
        let handle = self
            .memory
            .bind_texture(&TextureDescriptor {
                addr: memory.address(),
                shape: TextureShape::Pitch2d {
                    width: layout.width,
                    height: layout.height,
                    pitch_bytes: layout.pitch * size_of::<f32>(),
                    addressing: [addressing; 2],
                    normalised: false,
                },
            })
            .map_err(of_memory)?;
        Ok(EmulatorTexture {
            handle,
            layout,
            memory,
        })
    }

    /// Sets the constants and runs the kernel of `call`, as one step.
    ///
    /// # Safety
    ///
    /// As for [`launch_with_constants`](crate::launch_with_constants).
    pub(crate) unsafe fn launch(
        &self,
        config: &LaunchConfig,
        constants: &Constants<'_>,
        call: &dyn Call,
    ) -> Result<(), Error> {
        // A kernel that launches would wait for the constants that its own launch holds.
        if cuda_emulator::intrinsics::in_kernel() {
            return Err(Error::from(Diagnosis::InvalidLaunch {
                kernel: call.name(),
                reason: "a kernel cannot be launched from within a kernel".to_owned(),
            }));
        }
        let mut options = self.options.clone();
        options.expected_steps = config.steps;
        let config = cuda_emulator::LaunchConfig {
            kernel: call.name(),
            grid: config.grid.to_array(),
            block: config.block.to_array(),
            dynamic_shared_bytes: config.dynamic_shared_bytes as usize,
        };
        let call = &SharedByThreads(call);
        let thread = || {
            // SAFETY: the buffers belong to this device, so they are in this process; the caller
            // promises the rest.
            unsafe { call.get().run_thread() }
        };

        let kept = self.keep(constants);
        let run = move || -> Result<(), Error> {
            let outcome = if self.verify {
                let mut how = Verify::default();
                how.options = options;
                // SAFETY: kernels are device functions, which own only plain values; the host
                // accesses this memory only by copies.
                unsafe { cuda_emulator::verify(&config, &how, &self.memory, &thread) }
            } else {
                // SAFETY: as above.
                unsafe { cuda_emulator::launch(&config, &options, &self.memory, &thread) }
            };
            let named = |fault: Diagnosis| {
                let mut parameters = Vec::new();
                let mut note = |name, address| parameters.push((name, address));
                call.get().addresses(&mut note);
                fault.name_parameters(&parameters)
            };
            Ok(outcome.map(drop).map_err(named)?)
        };
        if kept.is_empty() {
            let _shared = CONSTANTS.read().unwrap_or_else(PoisonError::into_inner);
            run()
        } else {
            // The first lock excludes launches of this library, the second those of other
            // emulators.
            let _alone = CONSTANTS.write().unwrap_or_else(PoisonError::into_inner);
            let _lock = LaunchLock::acquire();
            // SAFETY: the lock is held for writing while the values are in place.
            let _in_place = unsafe { ConstantsInPlace::new(kept) };
            run()
        }
    }

    /// Keeps the new values and returns all constants that have been set on this device.
    fn keep(&self, constants: &Constants<'_>) -> Vec<KeptConstant> {
        let mut kept = self
            .constants
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for constant in constants.entries() {
            kept.insert(
                constant.name,
                KeptConstant {
                    bytes: constant.bytes.into(),
                    host_address: constant.host_address,
                },
            );
        }
        kept.values().cloned().collect()
    }
}

/// While this exists, the statics hold one device's constants; on drop they get their previous
/// values back. So devices do not see each other's constants.
struct ConstantsInPlace {
    before: Vec<KeptConstant>,
}

impl ConstantsInPlace {
    /// # Safety
    ///
    /// [`CONSTANTS`] is locked for writing for as long as the result lives.
    unsafe fn new(values: Vec<KeptConstant>) -> Self {
        let before = values
            .into_iter()
            .map(|constant| {
                let address = (constant.host_address)();
                let mut before = vec![0_u8; constant.bytes.len()];
                // SAFETY: `Symbol` promises that the address is that of the static which kernels
                // read. The value has the static's type, so the sizes agree. Both copies copy plain
                // bytes, because the types of constants are `NoUninit`. Only kernels read the
                // static, and the lock excludes other launches.
                unsafe {
                    std::ptr::copy_nonoverlapping(address, before.as_mut_ptr(), before.len());
                    std::ptr::copy_nonoverlapping(
                        constant.bytes.as_ptr(),
                        address,
                        constant.bytes.len(),
                    );
                }
                KeptConstant {
                    bytes: before.into(),
                    host_address: constant.host_address,
                }
            })
            .collect();
        Self { before }
    }
}

impl Drop for ConstantsInPlace {
    fn drop(&mut self) {
        for constant in &self.before {
            // SAFETY: as in `new`.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    constant.bytes.as_ptr(),
                    (constant.host_address)(),
                    constant.bytes.len(),
                );
            }
        }
    }
}

/// Arguments that all emulated threads read.
struct SharedByThreads<'a>(&'a dyn Call);

impl SharedByThreads<'_> {
    fn get(&self) -> &dyn Call {
        self.0
    }
}

// SAFETY: kernel arguments are addresses and plain values, and each thread copies them, as on a
// GPU. The kernel's contract covers what a copied address points to, and the caller of `launch`
// vouches for it.
unsafe impl Sync for SharedByThreads<'_> {}

fn of_memory(error: MemoryError) -> Error {
    match error {
        MemoryError::Allocation { bytes, .. } => Error::HostOutOfMemory {
            requested: bytes as u64,
        },
        // Sizes and layouts were checked before; if the emulator requires more, its message says
        // so.
        error => Error::InvalidParameter {
            operation: "the emulator's memory",
            parameter: "the layout",
            given: error.to_string(),
            required: "one that the emulator supports".to_owned(),
        },
    }
}

/// Guarded memory of the emulator.
pub(super) struct EmulatorMemory {
    allocation: Allocation,
}

impl EmulatorMemory {
    pub(super) fn address(&self) -> u64 {
        self.allocation.addr()
    }

    pub(super) fn write(&mut self, offset: usize, source: &[u8]) {
        self.allocation.copy_from_bytes(offset, source);
    }

    pub(super) fn read(&self, offset: usize, target: &mut [u8]) {
        self.allocation.copy_to_bytes(offset, target);
    }

    /// Overwrites the bytes from `offset` on with a range of `source`.
    pub(super) fn copy_from(&mut self, offset: usize, source: &Self, range: Range<usize>) {
        self.allocation
            .copy_from(offset, &source.allocation, range.start, range.len());
    }

    /// Fills these bytes, a whole number of elements, with copies of `value`.
    pub(super) fn fill<T: bytemuck::NoUninit>(&mut self, bytes: Range<usize>, value: T) {
        let element = bytemuck::bytes_of(&value);
        // Writes up to 4096 elements at a time.
        let repeated = element.repeat((bytes.len() / element.len()).clamp(1, 4096));
        for offset in bytes.clone().step_by(repeated.len()) {
            self.write(offset, &repeated[..repeated.len().min(bytes.end - offset)]);
        }
    }
}

/// Rows in the emulator's memory, with their texture.
pub(super) struct EmulatorTexture {
    handle: u64,
    layout: Layout,
    memory: EmulatorMemory,
}

impl EmulatorTexture {
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    pub(super) fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Overwrites the elements with densely packed rows.
    pub(super) fn upload(&mut self, values: &[f32]) {
        let Layout { width, pitch, .. } = self.layout;
        for (row, values) in values.chunks_exact(width).enumerate() {
            let offset = row * pitch * size_of::<f32>();
            self.memory.write(offset, bytemuck::cast_slice(values));
        }
    }

    /// Copies the elements to densely packed rows.
    pub(super) fn download(&self, values: &mut [f32]) {
        let Layout { width, pitch, .. } = self.layout;
        for (row, values) in values.chunks_exact_mut(width).enumerate() {
            let offset = row * pitch * size_of::<f32>();
            self.memory.read(offset, bytemuck::cast_slice_mut(values));
        }
    }

    /// Overwrites the elements with densely packed rows.
    pub(super) fn copy_from(&mut self, values: &EmulatorMemory) {
        for (padded, dense) in self.layout.rows() {
            self.memory.copy_from(padded, values, dense);
        }
    }

    /// Copies the elements to densely packed rows.
    pub(super) fn copy_to(&self, values: &mut EmulatorMemory) {
        for (padded, dense) in self.layout.rows() {
            let padded = padded..padded + dense.len();
            values.copy_from(dense.start, &self.memory, padded);
        }
    }
}

impl Drop for EmulatorTexture {
    fn drop(&mut self) {
        let memory = self.memory.allocation.memory();
        memory.unbind_texture(self.handle);
    }
}
