//! Loads a module of code, with its kernels and constants, when it is first needed.

use super::core::Core;
use super::driver::said;
use crate::device::{cubin, ptx};
use crate::error::LaunchAxis;
use crate::{ComputeCapability, CubinFault, Error, LaunchConfig};
use cuda_loader::sys::{self, CUdeviceptr};
use cust::error::CudaError;
use cust::function::FunctionAttribute;
use cust::module::LoadFailure;
use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Code that the driver has not loaded yet.
pub(super) enum Code {
    /// At least one part; the driver compiles the parts separately.
    Ptx(Vec<ptx::Submodule>),
    /// A complete cubin for this device; both have been checked.
    Cubin(Vec<u8>),
}

impl Code {
    /// PTX as a single part.
    pub(super) fn ptx(text: Cow<'static, str>) -> Self {
        Self::Ptx(vec![ptx::Submodule::whole(text)])
    }

    fn parts(&self) -> usize {
        match self {
            Self::Ptx(parts) => parts.len(),
            Self::Cubin(_) => 1,
        }
    }

    /// The part that defines this entry point or variable. If none does, the first part: the driver
    /// then reports that it is missing.
    fn part_with(&self, name: &str) -> usize {
        match self {
            Self::Ptx(parts) => parts
                .iter()
                .position(|part| part.defines.iter().any(|defined| defined == name))
                .unwrap_or(0),
            Self::Cubin(_) => 0,
        }
    }

    /// Machine code, if its header says that it is complete and for this device.
    pub(super) fn cubin(
        bytes: &[u8],
        device: &str,
        capability: ComputeCapability,
    ) -> Result<Self, Error> {
        let built_for = cubin::capability(bytes).map_err(|fault| Error::InvalidCubin { fault })?;
        if !cubin::runs_on(built_for, capability) {
            return Err(Error::UnsupportedCubin {
                built_for,
                device: device.to_owned(),
                compute_capability: capability,
            });
        }
        Ok(Self::Cubin(bytes.to_vec()))
    }
}

/// A module. Each part is loaded when it is first needed.
///
/// The owner must release the result of [`take`](Self::take).
pub(super) struct Module {
    code: Code,
    loaded: Mutex<Loaded>,
}

impl Module {
    pub(super) fn new(code: Code) -> Self {
        Self {
            code,
            loaded: Mutex::default(),
        }
    }

    /// The loaded parts of the module. While the lock is held, setting constants and launching are
    /// one step.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            code: &self.code,
            // A panic leaves the value consistent.
            loaded: self.loaded.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Removes and returns the driver's modules that were loaded.
    pub(super) fn take(&self) -> impl Iterator<Item = cust::module::Module> {
        let loaded = std::mem::take(&mut *self.lock().loaded);
        loaded.modules.into_values()
    }
}

/// Exclusive access to a module.
pub(super) struct Locked<'a> {
    code: &'a Code,
    loaded: MutexGuard<'a, Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// Indexed by the part's number.
    modules: BTreeMap<usize, cust::module::Module>,
    functions: HashMap<String, Function>,
    constants: HashMap<&'static str, LoadedConstant>,
}

#[derive(Clone, Copy)]
pub(super) struct Function {
    /// Valid while the module is locked.
    pub(super) raw: sys::CUfunction,
    /// The most threads that a block can have with the registers that the kernel needs.
    max_threads: u32,
    static_shared_bytes: u32,
    /// The dynamic shared memory that a launch may use with the current opt-in.
    max_dynamic_shared_bytes: u32,
}

struct LoadedConstant {
    address: CUdeviceptr,
    bytes: usize,
    /// The value it was last set to, if known.
    value: Option<Box<[u8]>>,
}

impl Locked<'_> {
    /// Loads all missing parts. The device's context is current.
    pub(super) fn load(&mut self, core: &Core) -> Result<(), Error> {
        (0..self.code.parts()).try_for_each(|part| self.part(core, part).map(drop))
    }

    /// The driver's module of a part, loaded by the first call. The context is current.
    fn part(&mut self, core: &Core, part: usize) -> Result<&cust::module::Module, Error> {
        match self.loaded.modules.entry(part) {
            Entry::Occupied(loaded) => Ok(loaded.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(load(core, self.code, part)?)),
        }
    }

    /// The entry point `entry` for launches of the kernel `name`, ready for a launch with this
    /// geometry. The context is current.
    pub(super) fn function(
        &mut self,
        core: &Core,
        name: &'static str,
        entry: &str,
        config: &LaunchConfig,
    ) -> Result<Function, Error> {
        if !self.loaded.functions.contains_key(entry) {
            let found = self.find_function(core, name, entry)?;
            self.loaded.functions.insert(entry.to_owned(), found);
        }
        let Some(function) = self.loaded.functions.get_mut(entry) else {
            return Err(Error::KernelNotFound { kernel: name });
        };
        function.prepare(core, name, config)?;
        Ok(*function)
    }

    fn find_function(
        &mut self,
        core: &Core,
        name: &'static str,
        entry: &str,
    ) -> Result<Function, Error> {
        let module = self.part(core, self.code.part_with(entry))?;
        let function = match module.get_function(entry) {
            Err(CudaError::NotFound) => return Err(Error::KernelNotFound { kernel: name }),
            result => said("cuModuleGetFunction", result)?,
        };
        let get = |attribute| {
            let value = said("cuFuncGetAttribute", function.get_attribute(attribute))?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Function {
            raw: function.to_raw(),
            max_threads: get(FunctionAttribute::MaxThreadsPerBlock)?,
            static_shared_bytes: get(FunctionAttribute::SharedMemorySizeBytes)?,
            max_dynamic_shared_bytes: get(FunctionAttribute::MaxDynamicSharedSizeBytes)?,
        })
    }

    /// Sets the constant `name`, in stream order. The context is current.
    pub(super) fn set_constant(
        &mut self,
        core: &Core,
        name: &'static str,
        value: &[u8],
    ) -> Result<(), Error> {
        if !self.loaded.constants.contains_key(name) {
            let found = self.find_constant(core, name)?;
            self.loaded.constants.insert(name, found);
        }
        let Some(constant) = self.loaded.constants.get_mut(name) else {
            return Ok(());
        };
        if constant.bytes != value.len() {
            return Err(Error::SymbolSize {
                symbol: name,
                required: constant.bytes,
                given: value.len(),
            });
        }
        if constant.value.as_deref() == Some(value) {
            return Ok(());
        }
        // Constants are not part of a graph: all its launches see the same values.
        core.refuse("a launch that changes a constant")?;
        // Unknown until the copy has succeeded.
        constant.value = None;
        // SAFETY: the symbol has that many bytes. Launches that read it are already in the queue,
        // or can only be enqueued after the module's lock is released.
        unsafe { core.upload(constant.address, value) }?;
        constant.value = Some(value.into());
        Ok(())
    }

    fn find_constant(&mut self, core: &Core, name: &'static str) -> Result<LoadedConstant, Error> {
        let module = self.part(core, self.code.part_with(name))?;
        let unknown = || Error::SymbolNotFound { symbol: name };
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let (address, bytes) = match module.find_global(&c_name) {
            Err(CudaError::NotFound) => return Err(unknown()),
            result => said("cuModuleGetGlobal_v2", result)?,
        };
        Ok(LoadedConstant {
            address,
            bytes,
            value: None,
        })
    }
}

/// Makes the driver load a part of this code. The context is current.
fn load(core: &Core, code: &Code, part: usize) -> Result<cust::module::Module, Error> {
    match code {
        Code::Ptx(parts) => load_ptx(core, &parts[part].text),
        Code::Cubin(bytes) => load_cubin(core, bytes),
    }
}

/// Loads machine code whose header has been checked.
fn load_cubin(core: &Core, bytes: &[u8]) -> Result<cust::module::Module, Error> {
    let loaded = cust::module::Module::from_cubin(bytes, &[]);
    loaded.or_else(|error| match error {
        CudaError::OutOfMemory => Err(core.out_of_memory(bytes.len())),
        CudaError::InvalidImage | CudaError::NoBinaryForGpu | CudaError::InvalidSource => {
            let fault = CubinFault::Refused { code: error.code() };
            Err(Error::InvalidCubin { fault })
        }
        error => said("cuModuleLoadDataEx", Err(error)),
    })
}

/// Compiles and loads PTX.
fn load_ptx(core: &Core, text: &str) -> Result<cust::module::Module, Error> {
    let Core {
        generation, name, ..
    } = core;
    let ptx = CString::new(text).map_err(|error| {
        let reason = format!(
            "(not given to the driver: byte {} is zero)",
            error.nul_position()
        );
        generation.invalid(text, name, reason)
    })?;
    let loaded = cust::module::Module::compile(&ptx, &[]);
    loaded.or_else(|LoadFailure { error, mut log }| match error {
        CudaError::OutOfMemory => Err(core.out_of_memory(text.len())),
        UNSUPPORTED_PTX_VERSION | CudaError::NoBinaryForGpu => {
            Err(generation.unsupported(text, name, log))
        }
        CudaError::InvalidPtx | CudaError::InvalidImage | CudaError::InvalidSource => {
            // Drivers also report PTX for a newer device as invalid.
            if ptx::header(text).needs > Some(generation.capability) {
                return Err(generation.unsupported(text, name, log));
            }
            if log.is_empty() {
                let code = sys::CUresult(error.code());
                log = format!("(an empty log; the driver's code is {code})");
            }
            Err(generation.invalid(text, name, log))
        }
        error => said("cuModuleLoadDataEx", Err(error)),
    })
}

/// The driver's code for PTX of a newer version than its compiler knows.
const UNSUPPORTED_PTX_VERSION: CudaError =
    CudaError::from_code(sys::CUresult::UNSUPPORTED_PTX_VERSION.0);

impl Function {
    /// The kernel, for reading and setting its attributes.
    ///
    /// # Safety
    ///
    /// Its module stays loaded as long as the result lives.
    pub(super) unsafe fn as_cust<'a>(&self) -> cust::function::Function<'a> {
        // SAFETY: the caller's promise.
        unsafe { cust::function::Function::from_raw(self.raw) }
    }

    /// Checks a launch against the limits of this kernel on this device, and opts in to more shared
    /// memory where necessary.
    fn prepare(
        &mut self,
        core: &Core,
        kernel: &'static str,
        config: &LaunchConfig,
    ) -> Result<(), Error> {
        let threads = u64::try_from(config.block.volume()).unwrap_or(u64::MAX);
        if threads > u64::from(self.max_threads) {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::ThreadsPerBlock,
                required: format!(
                    "at most {}, for the registers that the kernel needs",
                    self.max_threads
                ),
                given: threads,
            });
        }
        let dynamic = config.dynamic_shared_bytes;
        let shared = u64::from(dynamic) + u64::from(self.static_shared_bytes);
        let limit = core.limits.shared_bytes_opt_in;
        if shared > u64::from(limit) {
            return Err(Error::LaunchLimit {
                kernel,
                axis: LaunchAxis::SharedBytes,
                required: format!("at most {limit}"),
                given: shared,
            });
        }
        if dynamic > self.max_dynamic_shared_bytes {
            // SAFETY: the module is locked and stays loaded.
            let function = unsafe { self.as_cust() };
            let opted_in = function.set_max_dynamic_shared_memory(dynamic);
            said("cuFuncSetAttribute", opted_in)?;
            self.max_dynamic_shared_bytes = dynamic;
        }
        Ok(())
    }
}
