//! CUDA devices, through the driver.
//!
//! cust does what it does well: initialisation, device names, the primary
//! context. Everything else goes to the driver through [`cuda_loader::sys`],
//! where result codes are open numbers and functions may be missing.
//!
//! One [`CudaDevice`] has one stream, and everything that it does is queued
//! there: work is done in the order in which it was given, so a buffer can be
//! freed (in stream order) while kernels that use it are still running.

mod module;
mod recording;

pub(super) use recording::Graph;

use super::image::Image;
use super::layout::{AddressMode, Layout};
use super::properties::Properties;
use super::ptx;
use super::tally::Tally;
use crate::limits::{Limits, TextureLimits};
use crate::{ComputeCapability, Constants, Dim3, DriverVersion, Error, LaunchConfig};
use cuda_loader::sys::{self, CUcontext, CUresult, device_attribute};
use cuda_std::host::{Kernel, ParamPack};
use cust::error::CudaError;
use module::{Code, Module};
use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many CUDA devices there are.
pub(super) fn count() -> Result<usize, Error> {
    match initialise() {
        Ok(()) => {}
        Err(Error::NoDevice) => return Ok(0),
        Err(error) => return Err(error),
    }
    let count =
        cust::device::Device::num_devices().map_err(|error| of_cust("cuDeviceGetCount", error))?;
    Ok(count as usize)
}

/// Opens CUDA device number `ordinal` with kernels from `source`: what it is, what
/// launches may ask of it, and the device.
pub(super) fn open(
    ordinal: usize,
    source: ptx::Source,
) -> Result<(Properties, Limits, CudaDevice), Error> {
    let count = count()?;
    if count == 0 {
        return Err(Error::NoDevice);
    }
    let number = u32::try_from(ordinal)
        .ok()
        .filter(|_| ordinal < count)
        .ok_or(Error::DeviceOrdinal {
            given: ordinal,
            count,
        })?;
    let device =
        cust::device::Device::get_device(number).map_err(|error| of_cust("cuDeviceGet", error))?;

    let capability = ComputeCapability {
        major: attribute(device, device_attribute::COMPUTE_CAPABILITY_MAJOR)?,
        minor: attribute(device, device_attribute::COMPUTE_CAPABILITY_MINOR)?,
    };
    let generation = Generation {
        capability,
        driver: driver_version()?,
    };
    let mut properties = properties(device, generation)?;
    let limits = limits(device)?;
    let (parts, given) = match source {
        ptx::Source::Given(text) => (vec![ptx::Part::whole(Cow::Owned(text))], true),
        ptx::Source::Embedded => match ptx::embedded_for(capability) {
            Ok(text) => (ptx::parts(text), false),
            Err(lowest) => {
                return Err(generation.unsupported(lowest, &properties.name, String::new()));
            }
        },
    };
    properties.ptx_target = parts.first().map(|part| ptx::header(&part.text).target);

    let code = Code::Ptx(parts);
    let core = Core::new(device, properties.name.clone(), generation, limits, code)?;
    let cuda = CudaDevice {
        core: Arc::new(core),
    };
    if given {
        let _current = cuda.core.enter()?;
        cuda.core.own.lock().load(&cuda.core)?;
    }
    Ok((properties, limits, cuda))
}

/// Loads and initialises the driver.
fn initialise() -> Result<(), Error> {
    cuda_loader::load().map_err(|error| Error::DriverMissing {
        searched: error.searched.join(", "),
        reason: error.reason.clone(),
    })?;
    match cust::init(cust::CudaFlags::empty()) {
        Ok(()) => Ok(()),
        Err(CudaError::NoDevice) => Err(Error::NoDevice),
        Err(error) => Err(of_cust("cuInit", error)),
    }
}

/// The version that the driver supports.
fn driver_version() -> Result<DriverVersion, Error> {
    let mut version: c_int = 0;
    // SAFETY: the pointer is good for the one integer that is written.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    // Not `checked`, which asks for the version to describe a missing function.
    if let Err(code) = code.into_result() {
        return Err(described("cuDriverGetVersion", code));
    }
    let version = u32::try_from(version).map_err(|_| cannot_be_right("cuDriverGetVersion"))?;
    Ok(DriverVersion {
        major: version / 1000,
        minor: version % 1000 / 10,
    })
}

/// A call's result as the library's error.
fn checked(call: &'static str, code: CUresult) -> Result<(), Error> {
    match code {
        CUresult::SUCCESS => Ok(()),
        CUresult::SYMBOL_MISSING => Err(Error::DriverTooOld {
            function: call,
            driver_version: driver_version()
                .map_or_else(|_| "of unknown version".to_owned(), |it| it.to_string()),
        }),
        code => Err(described(call, code)),
    }
}

fn described(call: &'static str, code: CUresult) -> Error {
    Error::Driver {
        call,
        kernel: None,
        code: code.0,
        name: code.name(),
        text: code.text(),
    }
}

/// An answer of the driver that cannot be one, with which it reported success.
fn cannot_be_right(call: &'static str) -> Error {
    described(call, CUresult::INVALID_ANSWER)
}

/// An error on the way to a launch of `kernel`, which a call of the driver does not
/// know of.
fn on_the_way_to(kernel: &'static str) -> impl FnOnce(Error) -> Error {
    move |mut error| {
        if let Error::Driver { kernel: known, .. } = &mut error {
            known.get_or_insert(kernel);
        }
        error
    }
}

/// An error of a call that cust made, with the number that the driver returned
/// where cust has no name for it.
fn of_cust(call: &'static str, error: CudaError) -> Error {
    let code = match cuda_loader::last_code() {
        0 => error as u32,
        code => code,
    };
    match checked(call, CUresult(code)) {
        Err(error) => error,
        Ok(()) => described(call, CUresult(error as u32)),
    }
}

fn attribute(device: cust::device::Device, attribute: c_int) -> Result<u32, Error> {
    let mut value: c_int = 0;
    // SAFETY: the pointer is good for the one integer that is written; an
    // attribute that the driver does not know is an error.
    let code = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device.as_raw()) };
    checked("cuDeviceGetAttribute", code)?;
    u32::try_from(value).map_err(|_| cannot_be_right("cuDeviceGetAttribute"))
}

/// As [`attribute`], for what no device has none of.
fn positive_attribute(device: cust::device::Device, number: c_int) -> Result<u32, Error> {
    match attribute(device, number)? {
        0 => Err(cannot_be_right("cuDeviceGetAttribute")),
        value => Ok(value),
    }
}

/// As [`attribute`], for what a driver may not say.
fn optional_attribute(device: cust::device::Device, number: c_int) -> Option<u32> {
    attribute(device, number).ok().filter(|value| *value != 0)
}

fn properties(device: cust::device::Device, generation: Generation) -> Result<Properties, Error> {
    let name = device
        .name()
        .map_err(|error| of_cust("cuDeviceGetName", error))?;
    let total_memory = device
        .total_memory()
        .map_err(|error| of_cust("cuDeviceTotalMem_v2", error))?;
    let clock_khz = optional_attribute(device, device_attribute::MEMORY_CLOCK_RATE);
    let bus_bits = optional_attribute(device, device_attribute::GLOBAL_MEMORY_BUS_WIDTH);
    Ok(Properties {
        name,
        multiprocessors: positive_attribute(device, device_attribute::MULTIPROCESSOR_COUNT)?,
        threads_per_multiprocessor: optional_attribute(
            device,
            device_attribute::MAX_THREADS_PER_MULTIPROCESSOR,
        ),
        total_memory: Some(total_memory as u64),
        l2_cache_bytes: optional_attribute(device, device_attribute::L2_CACHE_SIZE).map(u64::from),
        peak_memory_bandwidth: clock_khz
            .zip(bus_bits)
            .map(|(clock, bits)| 2.0 * f64::from(clock) * 1e3 * f64::from(bits) / 8.0),
        compute_capability: Some(generation.capability),
        driver_version: Some(generation.driver),
        ptx_target: None,
    })
}

fn limits(device: cust::device::Device) -> Result<Limits, Error> {
    let get = |number| positive_attribute(device, number);
    let shared_bytes = get(device_attribute::MAX_SHARED_MEMORY_PER_BLOCK)?;
    Ok(Limits {
        threads_per_block: get(device_attribute::MAX_THREADS_PER_BLOCK)?,
        block: Dim3::new(
            get(device_attribute::MAX_BLOCK_DIM_X)?,
            get(device_attribute::MAX_BLOCK_DIM_Y)?,
            get(device_attribute::MAX_BLOCK_DIM_Z)?,
        ),
        grid: Dim3::new(
            get(device_attribute::MAX_GRID_DIM_X)?,
            get(device_attribute::MAX_GRID_DIM_Y)?,
            get(device_attribute::MAX_GRID_DIM_Z)?,
        ),
        shared_bytes,
        shared_bytes_opt_in: optional_attribute(
            device,
            device_attribute::MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        )
        .unwrap_or(shared_bytes)
        .max(shared_bytes),
        warp_size: get(device_attribute::WARP_SIZE)?,
        texture_2d: TextureLimits {
            width: get(device_attribute::MAXIMUM_TEXTURE2D_LINEAR_WIDTH)?,
            height: get(device_attribute::MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)?,
            pitch_bytes: get(device_attribute::MAXIMUM_TEXTURE2D_LINEAR_PITCH)?,
            pitch_alignment: get(device_attribute::TEXTURE_PITCH_ALIGNMENT)?.max(4),
            alignment: get(device_attribute::TEXTURE_ALIGNMENT)?.max(4),
        },
    })
}

/// What decides which PTX a device takes.
#[derive(Clone, Copy)]
struct Generation {
    capability: ComputeCapability,
    driver: DriverVersion,
}

impl Generation {
    /// `jit_log` is empty where the driver was not asked.
    fn unsupported(self, ptx: &str, device: &str, jit_log: String) -> Error {
        let header = ptx::header(ptx);
        Error::UnsupportedPtx {
            ptx_target: header.target,
            ptx_version: header.version,
            device: device.to_owned(),
            compute_capability: self.capability,
            driver_version: self.driver,
            jit_log,
        }
    }

    /// `jit_log` says in some words why.
    fn invalid(self, ptx: &str, device: &str, jit_log: String) -> Error {
        let header = ptx::header(ptx);
        Error::InvalidPtx {
            ptx_target: header.target,
            ptx_version: header.version,
            device: device.to_owned(),
            compute_capability: self.capability,
            driver_version: self.driver,
            jit_log,
        }
    }
}

/// A CUDA device.
pub(crate) struct CudaDevice {
    core: Arc<Core>,
}

/// What buffers, textures and events of a device keep alive.
struct Core {
    name: String,
    generation: Generation,
    limits: Limits,
    /// The kernels that the device was opened with.
    own: Module,
    stream: sys::CUstream,
    kept: Mutex<Kept>,
    /// Memory comes from a pool of our own, so that freeing it waits for nothing.
    /// `None` on devices without pools.
    pool: Option<sys::CUmemoryPool>,
    raw_context: CUcontext,
    /// Released last, by its own `Drop`.
    _context: cust::context::Context,
}

/// What was given back while a graph may still use it.
#[derive(Default)]
struct Kept {
    /// Recordings and graphs.
    holders: usize,
    waiting: Vec<Resource>,
}

/// What a device takes from the driver and has to give back.
enum Resource {
    Memory(sys::CUdeviceptr),
    Texture(sys::CUtexObject),
    Module(sys::CUmodule),
}

/// The device's context is current on this thread for as long as this lives;
/// then the one that was current before is again.
struct Current {
    pushed: bool,
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = CUcontext::NULL;
            // SAFETY: the pointer is good for one handle, and the context on top
            // is the one that `enter` pushed: nothing in between leaves another.
            // The call fails only when the driver is shutting down.
            let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
        }
    }
}

impl Core {
    fn new(
        device: cust::device::Device,
        name: String,
        generation: Generation,
        limits: Limits,
        code: Code,
    ) -> Result<Self, Error> {
        // `Context::new` makes the context current as a side effect; the caller's
        // thread gets back what it had.
        let before = current_context()?;
        let context = cust::context::Context::new(device)
            .map_err(|error| of_cust("cuDevicePrimaryCtxRetain", error))?;
        let raw_context = CUcontext(context.as_raw().cast());
        // SAFETY: a context that is current is alive, null is allowed.
        checked("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(before) })?;

        let mut core = Self {
            name,
            generation,
            limits,
            own: Module::new(code),
            stream: sys::CUstream::NULL,
            kept: Mutex::default(),
            pool: None,
            raw_context,
            _context: context,
        };
        // From here on `Drop` cleans up what there is.
        let _current = core.enter()?;
        let mut stream = sys::CUstream::NULL;
        // SAFETY: the pointer is good for the one handle that is written.
        let code = unsafe { sys::cuStreamCreate(&raw mut stream, sys::STREAM_NON_BLOCKING) };
        checked("cuStreamCreate", code)?;
        core.stream = stream;
        if optional_attribute(device, device_attribute::MEMORY_POOLS_SUPPORTED).is_some() {
            core.pool = create_pool(device)?;
        }
        Ok(core)
    }

    /// Makes the device's context current on this thread.
    ///
    /// Every call of the driver below wants that. It costs one call of some
    /// nanoseconds where the context is current already.
    fn enter(&self) -> Result<Current, Error> {
        if current_context()? == self.raw_context {
            return Ok(Current { pushed: false });
        }
        // SAFETY: the context is alive as long as `self`.
        checked("cuCtxPushCurrent_v2", unsafe {
            sys::cuCtxPushCurrent_v2(self.raw_context)
        })?;
        Ok(Current { pushed: true })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Nothing in there is half done when somebody panics.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives this back to the driver: now, or where a graph may still use it, as
    /// soon as there is none.
    ///
    /// # Safety
    ///
    /// The resource is this device's, and nobody but work that was given to the
    /// device already, or a graph, uses it any more.
    unsafe fn give_back(&self, resource: Resource) {
        // Failures mean that the driver is shutting down or that a kernel has
        // faulted; what there was is then gone with the context.
        let Ok(_current) = self.enter() else { return };
        let mut kept = self.kept();
        if kept.holders > 0 {
            kept.waiting.push(resource);
            return;
        }
        drop(kept);
        // SAFETY: the caller's promise, and there is no graph.
        unsafe { self.free(resource) };
    }

    /// Gives this back to the driver. The context is current.
    ///
    /// # Safety
    ///
    /// The resource is this device's, and nobody but work that was given to the
    /// device already uses it any more.
    unsafe fn free(&self, resource: Resource) {
        // SAFETY: the handles are alive and used no more by what comes later.
        // What is queued already is done first: freeing memory of a pool is
        // stream-ordered, and everything else is preceded by waiting. For
        // failures see `give_back`.
        unsafe {
            match (resource, self.pool) {
                (Resource::Memory(address), Some(_)) => {
                    let _ = sys::cuMemFreeAsync(address, self.stream);
                }
                (Resource::Memory(address), None) => {
                    let _ = sys::cuStreamSynchronize(self.stream);
                    let _ = sys::cuMemFree_v2(address);
                }
                (Resource::Texture(object), _) => {
                    let _ = sys::cuStreamSynchronize(self.stream);
                    let _ = sys::cuTexObjectDestroy(object);
                }
                (Resource::Module(module), _) => {
                    let _ = sys::cuStreamSynchronize(self.stream);
                    let _ = sys::cuModuleUnload(module);
                }
            }
        }
    }

    /// Waits for the end of all work.
    fn synchronize(&self) -> Result<(), Error> {
        recording::refuse(self, "waiting for the device")?;
        // SAFETY: the stream is alive as long as `self`.
        checked("cuStreamSynchronize", unsafe {
            sys::cuStreamSynchronize(self.stream)
        })
    }

    /// Allocates, or says with which code the driver refused.
    fn allocate(&self, bytes: usize) -> (sys::CUdeviceptr, &'static str, CUresult) {
        let mut address = 0;
        match self.pool {
            // SAFETY: the pointer is good for the one address that is written;
            // pool and stream are alive as long as `self`.
            Some(pool) => unsafe {
                let code = sys::cuMemAllocFromPoolAsync(&raw mut address, bytes, pool, self.stream);
                (address, "cuMemAllocFromPoolAsync", code)
            },
            // SAFETY: as above.
            None => unsafe {
                let code = sys::cuMemAlloc_v2(&raw mut address, bytes);
                (address, "cuMemAlloc_v2", code)
            },
        }
    }

    fn out_of_memory(&self, requested: usize) -> Error {
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: the pointers are good for the two numbers that are written. A
        // failure leaves zeros, and the error that is reported is the greater one.
        let _ = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        Error::OutOfMemory {
            device: self.name.clone(),
            requested: requested as u64,
            free: free as u64,
            total: total as u64,
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Failures here mean that the driver is shutting down or that a kernel
        // has faulted; there is nothing left to save and nobody to tell.
        let Ok(_current) = self.enter() else { return };
        let modules = self.own.take();
        // SAFETY: all handles are this value's own and used nowhere else: what
        // shared them (buffers, textures, events) kept `self` alive and is gone.
        // The stream's work is over before anything that it uses goes.
        unsafe {
            if self.stream != sys::CUstream::NULL {
                let _ = sys::cuStreamSynchronize(self.stream);
            }
            for module in modules {
                let _ = sys::cuModuleUnload(module);
            }
            if let Some(pool) = self.pool {
                let _ = sys::cuMemPoolDestroy(pool);
            }
            if self.stream != sys::CUstream::NULL {
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
        }
    }
}

fn current_context() -> Result<CUcontext, Error> {
    let mut current = CUcontext::NULL;
    // SAFETY: the pointer is good for the one handle that is written.
    checked("cuCtxGetCurrent", unsafe {
        sys::cuCtxGetCurrent(&raw mut current)
    })?;
    Ok(current)
}

/// A pool on `device` that keeps what is given back to it, or `None` where the
/// device turns out to have none.
fn create_pool(device: cust::device::Device) -> Result<Option<sys::CUmemoryPool>, Error> {
    let properties = sys::CUmemPoolProps {
        allocType: sys::MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: 0,
        locationType: sys::MEM_LOCATION_TYPE_DEVICE,
        locationId: device.as_raw(),
        win32SecurityAttributes: std::ptr::null_mut(),
        reserved: [0; 64],
    };
    let mut pool = sys::CUmemoryPool::NULL;
    // SAFETY: both pointers are good for what is written and read through them.
    let code = unsafe { sys::cuMemPoolCreate(&raw mut pool, &raw const properties) };
    if matches!(code, CUresult::NOT_SUPPORTED | CUresult::SYMBOL_MISSING) {
        return Ok(None);
    }
    checked("cuMemPoolCreate", code)?;
    // By default every synchronisation gives unused memory back to the driver,
    // and the next allocation asks for it again. What the pool keeps is given
    // back when memory runs short and when the device is dropped.
    let mut threshold = u64::MAX;
    // SAFETY: the pool is alive, and the attribute is a `u64`.
    let code = unsafe {
        sys::cuMemPoolSetAttribute(
            pool,
            sys::MEMPOOL_RELEASE_THRESHOLD,
            (&raw mut threshold).cast(),
        )
    };
    if let Err(error) = checked("cuMemPoolSetAttribute", code) {
        // SAFETY: the pool is alive, and nothing was allocated from it.
        let _ = unsafe { sys::cuMemPoolDestroy(pool) };
        return Err(error);
    }
    Ok(Some(pool))
}

impl CudaDevice {
    pub(super) fn synchronize(&self) -> Result<(), Error> {
        let _current = self.core.enter()?;
        self.core.synchronize()
    }

    /// `bytes` (not zero) of memory, uninitialised as far as Rust is concerned.
    pub(super) fn allocate(&self, bytes: usize) -> Result<CudaMemory, Error> {
        let core = &self.core;
        recording::refuse(core, "allocating memory")?;
        let _current = core.enter()?;
        let (mut address, mut call, mut code) = core.allocate(bytes);
        if code == CUresult::OUT_OF_MEMORY
            && let Some(pool) = core.pool
        {
            // What the pool holds back may be in the way of a request that its
            // pieces do not suit.
            core.synchronize()?;
            // SAFETY: the pool is alive; memory in use is not touched.
            checked("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })?;
            (address, call, code) = core.allocate(bytes);
        }
        if code == CUresult::OUT_OF_MEMORY {
            return Err(core.out_of_memory(bytes));
        }
        checked(call, code)?;
        Ok(CudaMemory {
            address,
            bytes,
            owned: true,
            core: Arc::clone(core),
        })
    }

    /// Memory of somebody else, as if it were ours.
    ///
    /// # Safety
    ///
    /// As `Buffer::from_device_address`, for `bytes` bytes, of which there are some, from
    /// an address that is a multiple of 16 on.
    pub(super) unsafe fn foreign(&self, address: u64, bytes: usize) -> CudaMemory {
        CudaMemory {
            address,
            bytes,
            owned: false,
            core: Arc::clone(&self.core),
        }
    }

    /// An event behind all work given so far.
    pub(super) fn record_event(&self) -> Result<Event, Error> {
        let core = &self.core;
        recording::refuse(core, "measuring time")?;
        let _current = core.enter()?;
        let mut raw = sys::CUevent::NULL;
        // SAFETY: the pointer is good for the one handle that is written.
        checked("cuEventCreate", unsafe {
            sys::cuEventCreate(&raw mut raw, sys::EVENT_DEFAULT)
        })?;
        let event = Event {
            raw,
            core: Arc::clone(core),
        };
        // SAFETY: event and stream are alive and of one context.
        checked("cuEventRecord", unsafe {
            sys::cuEventRecord(event.raw, core.stream)
        })?;
        Ok(event)
    }

    /// Waits for `end` and returns the time since `start`.
    pub(super) fn elapsed(&self, start: &Event, end: &Event) -> Result<Duration, Error> {
        let _current = self.core.enter()?;
        let mut milliseconds = 0.0_f32;
        // SAFETY: both events are alive.
        checked("cuEventSynchronize", unsafe {
            sys::cuEventSynchronize(end.raw)
        })?;
        // SAFETY: both events are alive and recorded, and the pointer is good
        // for the number that is written.
        checked("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime(&raw mut milliseconds, start.raw, end.raw)
        })?;
        // Finite and not negative: the events were recorded in this order.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) * 1e-3).unwrap_or_default())
    }

    /// Blocks of `K` that a multiprocessor holds at a time.
    pub(crate) fn blocks_per_multiprocessor<K: Kernel>(
        &self,
        config: &LaunchConfig,
    ) -> Result<u32, Error> {
        self.try_blocks_per_multiprocessor::<K>(config)
            .map_err(on_the_way_to(K::NAME))
    }

    fn try_blocks_per_multiprocessor<K: Kernel>(
        &self,
        config: &LaunchConfig,
    ) -> Result<u32, Error> {
        let core = &self.core;
        let _current = core.enter()?;
        let stand_ins = StandIns::in_use(core);
        let (mut module, entry) = StandIns::or_own(stand_ins.as_ref(), core, K::NAME);
        let function = module.function(core, K::NAME, entry, config)?;
        let mut blocks: c_int = 0;
        // Checked above to be at most what a block may have.
        let threads = c_int::try_from(config.block.volume()).unwrap_or(c_int::MAX);
        // SAFETY: the pointer is good for one integer, the function is alive.
        checked("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                function.raw,
                threads,
                config.dynamic_shared_bytes as usize,
            )
        })?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// Sets the constants and launches `K`, as one step.
    ///
    /// # Safety
    ///
    /// As [`launch_with_constants`](crate::launch_with_constants).
    pub(crate) unsafe fn launch<K: Kernel>(
        &self,
        config: &LaunchConfig,
        constants: &Constants<'_>,
        args: &K::Args<'_>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise, passed on.
        let result = unsafe { self.try_launch::<K>(config, constants, args) };
        result.map_err(on_the_way_to(K::NAME))
    }

    /// [`launch`](Self::launch), whose errors of the driver do not name the kernel.
    ///
    /// # Safety
    ///
    /// As [`launch`](Self::launch).
    unsafe fn try_launch<K: Kernel>(
        &self,
        config: &LaunchConfig,
        constants: &Constants<'_>,
        args: &K::Args<'_>,
    ) -> Result<(), Error> {
        let core = &self.core;
        let _current = core.enter()?;
        let stand_ins = StandIns::in_use(core);
        let (mut module, entry) = StandIns::or_own(stand_ins.as_ref(), core, K::NAME);
        let function = module.function(core, K::NAME, entry, config)?;
        for constant in constants.entries() {
            module.set_constant(core, constant.name, constant.bytes)?;
        }
        let mut pack = ParamPack::new();
        K::pack(args, &mut pack);
        let mut parameters = pack.as_ptrs();
        let LaunchConfig { grid, block, .. } = config;
        // SAFETY: function and stream are alive; `Kernel` promises that the pack
        // has the entry point's parameters in order, and each pointer is good
        // for its parameter until the driver has copied them, before it returns.
        // The rest is the caller's promise.
        let code = unsafe {
            sys::cuLaunchKernel(
                function.raw,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                config.dynamic_shared_bytes,
                recording::queue(core),
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        };
        checked("cuLaunchKernel", code)?;
        recording::note_launch(core, stand_ins.as_ref(), constants);
        Ok(())
    }

    /// Leaves counting to the replays of what this thread records; false where it does
    /// not.
    pub(super) fn note_count(&self, tally: &Tally, more: u64) -> bool {
        recording::note_count(&self.core, tally, more)
    }

    /// Loads code besides the device's own.
    pub(super) fn load_kernels(&self, image: Image<'_>) -> Result<StandIns, Error> {
        let core = &self.core;
        recording::refuse(core, "loading kernels")?;
        let _current = core.enter()?;
        let code = match image {
            Image::Ptx(text) => Code::ptx(Cow::Owned(text.to_owned())),
            Image::Cubin(bytes) => Code::cubin(bytes, &core.name, core.generation.capability)?,
        };
        let stand_ins = StandIns {
            loaded: Arc::new(LoadedModule {
                module: Module::new(code),
                core: Arc::clone(core),
            }),
            entries: Arc::from([]),
        };
        // At once, so that an image which the driver refuses is an error here.
        stand_ins.module().lock().load(core)?;
        Ok(stand_ins)
    }

    /// Runs `work` with these kernels in the place of the device's own; `None`
    /// where they are another device's.
    pub(super) fn using<R>(&self, kernels: &StandIns, work: impl FnOnce() -> R) -> Option<R> {
        /// Takes the kernels out again, also when the work panics.
        struct InUse;
        impl Drop for InUse {
            fn drop(&mut self) {
                IN_USE.with_borrow_mut(Vec::pop);
            }
        }

        if !Arc::ptr_eq(&kernels.loaded.core, &self.core) {
            return None;
        }
        IN_USE.with_borrow_mut(|stack| stack.push(kernels.clone()));
        let _in_use = InUse;
        Some(work())
    }

    /// Runs `work` with the context current, on the stream of this thread's work.
    pub(super) fn with_stream<R>(&self, work: impl FnOnce(*mut c_void) -> R) -> Result<R, Error> {
        let _current = self.core.enter()?;
        Ok(work(recording::queue(&self.core).0))
    }
}

thread_local! {
    /// Kernels that this thread puts in the place of others, the last the first
    /// to be looked at.
    static IN_USE: RefCell<Vec<StandIns>> = const { RefCell::new(Vec::new()) };
}

/// Kernels in the place of a device's own.
#[derive(Clone)]
pub(super) struct StandIns {
    loaded: Arc<LoadedModule>,
    /// Kernels that another entry point than that of their name stands in for.
    entries: Arc<[(String, String)]>,
}

/// A module besides the device's own.
struct LoadedModule {
    module: Module,
    core: Arc<Core>,
}

impl Drop for LoadedModule {
    fn drop(&mut self) {
        for module in self.module.take() {
            // SAFETY: the module is ours; who launches its kernels keeps it.
            unsafe { self.core.give_back(Resource::Module(module)) };
        }
    }
}

impl StandIns {
    /// The ones that this thread uses on this device.
    fn in_use(core: &Core) -> Option<Self> {
        IN_USE.with_borrow(|stack| {
            stack
                .iter()
                .rev()
                .find(|kernels| std::ptr::eq(Arc::as_ptr(&kernels.loaded.core), core))
                .cloned()
        })
    }

    /// The module that a kernel is in, and its entry point there.
    fn or_own<'a>(
        stand_ins: Option<&'a Self>,
        core: &'a Core,
        kernel: &'static str,
    ) -> (module::Locked<'a>, &'a str) {
        match stand_ins {
            Some(stand_ins) => {
                let entry = stand_ins.entries.iter().rev().find(|(of, _)| of == kernel);
                let entry = entry.map_or(kernel, |(_, entry)| entry);
                (stand_ins.module().lock(), entry)
            }
            None => (core.own.lock(), kernel),
        }
    }

    fn module(&self) -> &Module {
        &self.loaded.module
    }

    fn same_module(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.loaded, &other.loaded)
    }

    pub(super) fn with_entry(self, kernel: &str, entry: &str) -> Self {
        let added = (kernel.to_owned(), entry.to_owned());
        Self {
            entries: self.entries.iter().cloned().chain([added]).collect(),
            ..self
        }
    }
}

/// Device memory that is freed, in stream order, when this is dropped, unless it is
/// somebody else's.
pub(super) struct CudaMemory {
    address: sys::CUdeviceptr,
    /// Not zero.
    bytes: usize,
    /// Whether the memory is ours.
    owned: bool,
    core: Arc<Core>,
}

impl CudaMemory {
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Overwrites everything with `source`, which is as long.
    pub(super) fn upload(&mut self, source: &[u8]) -> Result<(), Error> {
        assert_eq!(source.len(), self.bytes, "callers check the length");
        recording::refuse(&self.core, "copying from the host")?;
        let _current = self.core.enter()?;
        // SAFETY: both sides have that many bytes. The source is borrowed until
        // the copy is over, which is waited for; that the memory is ours alone
        // says `&mut self`, and earlier work is done first, by stream order.
        let code = unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                self.address,
                source.as_ptr().cast(),
                self.bytes,
                self.core.stream,
            )
        };
        checked("cuMemcpyHtoDAsync_v2", code)?;
        self.core.synchronize()
    }

    /// Copies everything to `target`, which is as long.
    pub(super) fn download(&self, target: &mut [u8]) -> Result<(), Error> {
        assert_eq!(target.len(), self.bytes, "callers check the length");
        recording::refuse(&self.core, "copying to the host")?;
        let _current = self.core.enter()?;
        // SAFETY: both sides have that many bytes, and the target is borrowed
        // until the copy is over, which is waited for.
        let code = unsafe {
            sys::cuMemcpyDtoHAsync_v2(
                target.as_mut_ptr().cast(),
                self.address,
                self.bytes,
                self.core.stream,
            )
        };
        checked("cuMemcpyDtoHAsync_v2", code)?;
        self.core.synchronize()
    }

    /// Notes that this has become current in the place of `before`, memory of the same
    /// device, as long, whose content is not needed any more.
    pub(super) fn note_exchange(&self, before: &Self) {
        assert_eq!(before.bytes, self.bytes, "callers check the length");
        recording::note_exchange(&self.core, self.address, before.address, self.bytes);
    }

    /// Overwrites everything with `source`, memory of the same device, as long.
    pub(super) fn copy_from(&mut self, source: &Self) -> Result<(), Error> {
        assert_eq!(source.bytes, self.bytes, "callers check the length");
        let _current = self.core.enter()?;
        self.copy_within_device(0, source.address, source.bytes)
    }

    /// Repeats `element`, whose length divides that of the memory.
    pub(super) fn fill(&mut self, element: &[u8]) -> Result<(), Error> {
        assert!(
            self.bytes.is_multiple_of(element.len()),
            "memory holds whole elements"
        );
        let _current = self.core.enter()?;
        let stream = recording::queue(&self.core);
        if let [first, rest @ ..] = element
            && rest.iter().all(|byte| byte == first)
        {
            // SAFETY: the memory has that many bytes, and is ours alone.
            return checked("cuMemsetD8Async", unsafe {
                sys::cuMemsetD8Async(self.address, *first, self.bytes, stream)
            });
        }
        if let Ok(word) = <[u8; 4]>::try_from(element) {
            let word = u32::from_ne_bytes(word);
            // SAFETY: the memory has that many words, and is ours alone; it is
            // aligned to 16 bytes, by the driver or whoever brought it.
            return checked("cuMemsetD32Async", unsafe {
                sys::cuMemsetD32Async(self.address, word, self.bytes / 4, stream)
            });
        }
        // Any other pattern: one element from the host, then the memory copies
        // to itself, twice as much each time.
        recording::refuse(
            &self.core,
            "filling with elements that are neither 4 bytes nor one byte repeated",
        )?;
        // SAFETY: the memory holds at least one element; the source is borrowed
        // until the copy is over, which is waited for.
        let code = unsafe {
            sys::cuMemcpyHtoDAsync_v2(self.address, element.as_ptr().cast(), element.len(), stream)
        };
        checked("cuMemcpyHtoDAsync_v2", code)?;
        self.core.synchronize()?;
        let mut done = element.len();
        while done < self.bytes {
            let next = done.min(self.bytes - done);
            self.copy_within_device(done, self.address, next)?;
            done += next;
        }
        Ok(())
    }

    /// Copies `bytes` from `source` to `offset`, which do not overlap. The
    /// context is current.
    fn copy_within_device(
        &mut self,
        offset: usize,
        source: sys::CUdeviceptr,
        bytes: usize,
    ) -> Result<(), Error> {
        // SAFETY: the callers keep both ranges inside their allocations and
        // apart; the target is ours alone, and stream order keeps earlier and
        // later work on either side away.
        checked("cuMemcpyDtoDAsync_v2", unsafe {
            sys::cuMemcpyDtoDAsync_v2(
                self.address + offset as u64,
                source,
                bytes,
                recording::queue(&self.core),
            )
        })
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // SAFETY: the memory is ours and used by nothing that is queued later.
        unsafe { self.core.give_back(Resource::Memory(self.address)) };
    }
}

/// Rows in device memory, and the texture object that reads them.
pub(super) struct CudaTexture {
    object: sys::CUtexObject,
    /// First element, aligned as textures want it.
    address: sys::CUdeviceptr,
    layout: Layout,
    memory: CudaMemory,
}

impl CudaDevice {
    /// A texture of zeros. `alignment` is what the driver wants of its address.
    pub(super) fn texture(&self, layout: Layout, alignment: u32) -> Result<CudaTexture, Error> {
        let slack = alignment as usize - 1;
        let mut memory = self.allocate(layout.bytes() + slack)?;
        memory.fill(&[0])?;
        let address = memory.address.next_multiple_of(u64::from(alignment));
        let resource = sys::CUDA_RESOURCE_DESC {
            resType: sys::RESOURCE_TYPE_PITCH2D,
            pitch2D: sys::CUDA_RESOURCE_DESC_pitch2D {
                devPtr: address,
                format: sys::AD_FORMAT_FLOAT,
                numChannels: 1,
                width: layout.width,
                height: layout.height,
                pitchInBytes: layout.pitch * size_of::<f32>(),
                reserved: [0; 11],
            },
            flags: 0,
        };
        let outside = match layout.address_mode {
            AddressMode::Clamp => sys::TR_ADDRESS_MODE_CLAMP,
            AddressMode::Border => sys::TR_ADDRESS_MODE_BORDER,
        };
        let reading = sys::CUDA_TEXTURE_DESC {
            addressMode: [outside; 3],
            filterMode: sys::TR_FILTER_MODE_POINT,
            flags: 0,
            maxAnisotropy: 0,
            mipmapFilterMode: sys::TR_FILTER_MODE_POINT,
            mipmapLevelBias: 0.0,
            minMipmapLevelClamp: 0.0,
            maxMipmapLevelClamp: 0.0,
            borderColor: [0.0; 4],
            reserved: [0; 12],
        };
        let _current = self.core.enter()?;
        // The memory was allocated in stream order, so for the rest of the
        // driver it exists when the stream has got there.
        self.core.synchronize()?;
        let mut object = 0;
        // SAFETY: the pointers are good for what is written and read through
        // them; a null view means the resource as it is.
        checked("cuTexObjectCreate", unsafe {
            sys::cuTexObjectCreate(
                &raw mut object,
                &raw const resource,
                &raw const reading,
                std::ptr::null(),
            )
        })?;
        Ok(CudaTexture {
            object,
            address,
            layout,
            memory,
        })
    }
}

impl CudaTexture {
    pub(super) fn handle(&self) -> u64 {
        self.object
    }

    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Overwrites the elements, from rows without gaps.
    pub(super) fn upload(&mut self, values: &[f32]) -> Result<(), Error> {
        assert_eq!(
            values.len(),
            self.layout.width * self.layout.height,
            "callers check the length"
        );
        self.copy_rows(sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_HOST,
            srcHost: values.as_ptr().cast(),
            srcPitch: self.row_bytes(),
            dstMemoryType: sys::MEMORYTYPE_DEVICE,
            dstDevice: self.address,
            dstPitch: self.layout.pitch * size_of::<f32>(),
            ..self.all_rows()
        })
    }

    /// Copies the elements to rows without gaps.
    pub(super) fn download(&self, values: &mut [f32]) -> Result<(), Error> {
        assert_eq!(
            values.len(),
            self.layout.width * self.layout.height,
            "callers check the length"
        );
        self.copy_rows(sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::MEMORYTYPE_DEVICE,
            srcDevice: self.address,
            srcPitch: self.layout.pitch * size_of::<f32>(),
            dstMemoryType: sys::MEMORYTYPE_HOST,
            dstHost: values.as_mut_ptr().cast(),
            dstPitch: self.row_bytes(),
            ..self.all_rows()
        })
    }

    /// As [`CudaMemory::note_exchange`], of textures of one layout.
    pub(super) fn note_exchange(&self, before: &Self) {
        recording::note_exchange(
            &self.memory.core,
            self.address,
            before.address,
            self.layout.bytes(),
        );
    }

    fn row_bytes(&self) -> usize {
        self.layout.width * size_of::<f32>()
    }

    /// A copy of all rows from nowhere to nowhere, to be completed.
    fn all_rows(&self) -> sys::CUDA_MEMCPY2D {
        sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: 0,
            srcHost: std::ptr::null(),
            srcDevice: 0,
            srcArray: std::ptr::null_mut(),
            srcPitch: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: 0,
            dstHost: std::ptr::null_mut(),
            dstDevice: 0,
            dstArray: std::ptr::null_mut(),
            dstPitch: 0,
            WidthInBytes: self.row_bytes(),
            Height: self.layout.height,
        }
    }

    fn copy_rows(&self, copy: sys::CUDA_MEMCPY2D) -> Result<(), Error> {
        let core = &self.memory.core;
        recording::refuse(core, "copying to or from the host")?;
        let _current = core.enter()?;
        // SAFETY: upload and download describe rows that lie in this texture and
        // in a slice that is borrowed until the copy is over, which is waited for.
        checked("cuMemcpy2DAsync_v2", unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const copy, core.stream)
        })?;
        core.synchronize()
    }
}

impl Drop for CudaTexture {
    fn drop(&mut self) {
        // SAFETY: the object is ours and used by nothing that is queued later. Its
        // memory goes afterwards, by `CudaMemory`.
        unsafe { self.memory.core.give_back(Resource::Texture(self.object)) };
    }
}

/// A mark in the device's stream.
pub(super) struct Event {
    raw: sys::CUevent,
    core: Arc<Core>,
}

impl Drop for Event {
    fn drop(&mut self) {
        let Ok(_current) = self.core.enter() else {
            return;
        };
        // SAFETY: the event is ours. One that is still pending is destroyed by
        // the driver once it is over.
        let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
    }
}
