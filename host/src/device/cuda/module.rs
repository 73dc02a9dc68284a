//! Loaded code: a module with its kernels and constants.

use super::recording;
use super::{Core, checked, described};
use crate::device::{ComputeCapability, cubin, ptx};
use crate::error::LaunchAxis;
use crate::{Error, LaunchConfig};
use cuda_loader::sys::{self, CUresult, function_attribute};
use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Code that the driver has not seen yet.
pub(super) enum Code {
    /// In parts, at least one, that the driver compiles apart from each other.
    Ptx(Vec<ptx::Part>),
    /// Checked to be a whole cubin for this device.
    Cubin(Vec<u8>),
}

impl Code {
    /// PTX as it is.
    pub(super) fn ptx(text: Cow<'static, str>) -> Self {
        Self::Ptx(vec![ptx::Part::whole(text)])
    }

    fn parts(&self) -> usize {
        match self {
            Self::Ptx(parts) => parts.len(),
            Self::Cubin(_) => 1,
        }
    }

    /// The part that defines this entry point or variable. Where none says so, it
    /// is for the driver to say that it is not there.
    fn part_with(&self, name: &str) -> usize {
        match self {
            Self::Ptx(parts) => parts
                .iter()
                .position(|part| part.defines.iter().any(|defined| defined == name))
                .unwrap_or(0),
            Self::Cubin(_) => 0,
        }
    }

    /// Machine code, once its header says that it is whole and for this device.
    pub(super) fn cubin(
        bytes: &[u8],
        device: &str,
        capability: ComputeCapability,
    ) -> Result<Self, Error> {
        let built_for =
            cubin::capability(bytes).map_err(|reason| Error::InvalidCubin { reason })?;
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

/// A module, each part of it loaded when it is first needed.
///
/// Its owner unloads what [`take`](Self::take) returns.
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

    /// What is loaded of it. The lock also makes setting constants and launching
    /// one step.
    pub(super) fn lock(&self) -> Locked<'_> {
        Locked {
            code: &self.code,
            // Nothing in there is half done when somebody panics.
            loaded: self.loaded.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// The driver's modules that were loaded, which are forgotten.
    pub(super) fn take(&self) -> impl Iterator<Item = sys::CUmodule> {
        let loaded = std::mem::take(&mut *self.lock().loaded);
        loaded.modules.into_values()
    }
}

/// A module that nobody else uses for as long as this lives.
pub(super) struct Locked<'a> {
    code: &'a Code,
    loaded: MutexGuard<'a, Loaded>,
}

#[derive(Default)]
struct Loaded {
    /// By the number of the part.
    modules: BTreeMap<usize, sys::CUmodule>,
    functions: HashMap<String, Function>,
    constants: HashMap<&'static str, LoadedConstant>,
}

#[derive(Clone, Copy)]
pub(super) struct Function {
    pub(super) raw: sys::CUfunction,
    /// Threads of a block at most, given the registers that the kernel needs.
    max_threads: u32,
    static_shared_bytes: u32,
    /// Dynamic shared memory that a launch may ask for as things are.
    max_dynamic_shared_bytes: u32,
}

struct LoadedConstant {
    address: sys::CUdeviceptr,
    bytes: usize,
    /// What it was last set to, if it was.
    value: Option<Box<[u8]>>,
}

impl Locked<'_> {
    /// Loads what is not loaded yet. The device's context is current.
    pub(super) fn load(&mut self, core: &Core) -> Result<(), Error> {
        (0..self.code.parts()).try_for_each(|part| self.part(core, part).map(drop))
    }

    /// The driver's module of a part, loaded at the first call. The context is
    /// current.
    fn part(&mut self, core: &Core, part: usize) -> Result<sys::CUmodule, Error> {
        match self.loaded.modules.entry(part) {
            Entry::Occupied(loaded) => Ok(*loaded.get()),
            Entry::Vacant(place) => Ok(*place.insert(load(core, self.code, part)?)),
        }
    }

    /// The entry point `entry`, which is launched as the kernel `name` says,
    /// ready for a launch with this geometry. The context is current.
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
        let unknown = || Error::KernelNotFound { kernel: name };
        let c_name = CString::new(entry).map_err(|_| unknown())?;
        let mut raw = sys::CUfunction::NULL;
        // SAFETY: the pointer is good for one handle, the module is alive, the
        // name ends in a zero byte.
        let code = unsafe { sys::cuModuleGetFunction(&raw mut raw, module, c_name.as_ptr()) };
        if code == CUresult::NOT_FOUND {
            return Err(unknown());
        }
        checked("cuModuleGetFunction", code)?;
        let get = |attribute| {
            let mut value: c_int = 0;
            // SAFETY: the pointer is good for one integer, the function is alive.
            let code = unsafe { sys::cuFuncGetAttribute(&raw mut value, attribute, raw) };
            checked("cuFuncGetAttribute", code)?;
            Ok::<_, Error>(u32::try_from(value).unwrap_or(0))
        };
        Ok(Function {
            raw,
            max_threads: get(function_attribute::MAX_THREADS_PER_BLOCK)?,
            static_shared_bytes: get(function_attribute::SHARED_SIZE_BYTES)?,
            max_dynamic_shared_bytes: get(function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES)?,
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
            return Err(Error::SymbolNotFound {
                symbol: name,
                reason: format!(
                    "it has {} bytes there, but the value has {}",
                    constant.bytes,
                    value.len()
                ),
            });
        }
        if constant.value.as_deref() == Some(value) {
            return Ok(());
        }
        // Constants are no part of a graph: all launches of one see the same.
        recording::refuse(core, "a launch that sets a constant anew")?;
        // Unknown until the copy is known to have been made.
        constant.value = None;
        // SAFETY: the symbol has that many bytes, and so has the value, which
        // stays where it is until the copy is over: that is waited for.
        let code = unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                constant.address,
                value.as_ptr().cast(),
                value.len(),
                core.stream,
            )
        };
        checked("cuMemcpyHtoDAsync_v2", code)?;
        core.synchronize()?;
        constant.value = Some(value.into());
        Ok(())
    }

    fn find_constant(&mut self, core: &Core, name: &'static str) -> Result<LoadedConstant, Error> {
        let module = self.part(core, self.code.part_with(name))?;
        let unknown = || Error::SymbolNotFound {
            symbol: name,
            reason: "there is no global of that name".to_owned(),
        };
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the pointers are good for an address and a size, the module is
        // alive, the name ends in a zero byte.
        let code = unsafe {
            sys::cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module, c_name.as_ptr())
        };
        if code == CUresult::NOT_FOUND {
            return Err(unknown());
        }
        checked("cuModuleGetGlobal_v2", code)?;
        Ok(LoadedConstant {
            address,
            bytes,
            value: None,
        })
    }
}

/// Has the driver load a part of this code. The context is current.
fn load(core: &Core, code: &Code, part: usize) -> Result<sys::CUmodule, Error> {
    match code {
        Code::Ptx(parts) => load_ptx(core, &parts[part].text),
        Code::Cubin(bytes) => load_cubin(core, bytes),
    }
}

/// Loads machine code, of which its header has been checked.
fn load_cubin(core: &Core, bytes: &[u8]) -> Result<sys::CUmodule, Error> {
    let mut module = sys::CUmodule::NULL;
    // SAFETY: the image is an ELF file whose tables lie within the bytes, which
    // tell the driver how long it is; there are no options.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            bytes.as_ptr().cast(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    match code {
        CUresult::SUCCESS => Ok(module),
        CUresult::OUT_OF_MEMORY => Err(core.out_of_memory(bytes.len())),
        CUresult::INVALID_IMAGE | CUresult::NO_BINARY_FOR_GPU | CUresult::INVALID_SOURCE => {
            Err(Error::InvalidCubin {
                reason: format!("is refused by the driver: {code}"),
            })
        }
        code => Err(checked("cuModuleLoadDataEx", code)
            .err()
            .unwrap_or_else(|| described("cuModuleLoadDataEx", code))),
    }
}

/// Compiles and loads PTX.
fn load_ptx(core: &Core, text: &str) -> Result<sys::CUmodule, Error> {
    const LOG_BYTES: usize = 16 * 1024;
    let ptx = CString::new(text).map_err(|error| {
        let reason = format!(
            "(not given to the driver: byte {} is zero)",
            error.nul_position()
        );
        core.generation.invalid(text, &core.name, reason)
    })?;
    let mut log = vec![0_u8; LOG_BYTES];
    let mut options = [
        sys::jit_option::ERROR_LOG_BUFFER,
        sys::jit_option::ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = [
        log.as_mut_ptr().cast::<c_void>(),
        // This value is a number, in the space of a pointer.
        std::ptr::without_provenance_mut(LOG_BYTES),
    ];
    let mut module = sys::CUmodule::NULL;
    // SAFETY: the image is text that ends in a zero byte, as PTX has to; there
    // are as many values as options, each of its option's type; the buffer has
    // the size given with it, and all of it outlives the call.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            ptx.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    let log = || {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
        String::from_utf8_lossy(&log[..end]).trim_end().to_owned()
    };
    let Core {
        generation, name, ..
    } = core;
    match code {
        CUresult::SUCCESS => Ok(module),
        CUresult::OUT_OF_MEMORY => Err(core.out_of_memory(text.len())),
        CUresult::UNSUPPORTED_PTX_VERSION | CUresult::NO_BINARY_FOR_GPU => {
            Err(generation.unsupported(text, name, log()))
        }
        CUresult::INVALID_PTX | CUresult::INVALID_IMAGE | CUresult::INVALID_SOURCE => {
            // Drivers call PTX for a newer device invalid, too.
            if ptx::header(text).needs > Some(generation.capability) {
                return Err(generation.unsupported(text, name, log()));
            }
            let mut log = log();
            if log.is_empty() {
                log = format!("(an empty log; the driver's code is {code})");
            }
            Err(generation.invalid(text, name, log))
        }
        code => Err(checked("cuModuleLoadDataEx", code)
            .err()
            .unwrap_or_else(|| described("cuModuleLoadDataEx", code))),
    }
}

impl Function {
    /// Checks a launch against what this kernel allows on this device, and opts
    /// in to more shared memory where that is needed.
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
            // The limit fits `c_int`, being one of the driver's own numbers.
            let value = c_int::try_from(dynamic).unwrap_or(c_int::MAX);
            // SAFETY: the function is alive.
            checked("cuFuncSetAttribute", unsafe {
                sys::cuFuncSetAttribute(
                    self.raw,
                    function_attribute::MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    value,
                )
            })?;
            self.max_dynamic_shared_bytes = dynamic;
        }
        Ok(())
    }
}
