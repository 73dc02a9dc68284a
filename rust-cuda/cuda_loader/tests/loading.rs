//! Programs that link this crate: what they need to start, and what they see
//! with a driver, without one, and with one that lacks functions.
//!
//! Loading happens once per process, so each case runs in a child process with
//! its own `LD_LIBRARY_PATH`.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use cuda_loader::sys::{self, CUfunction, CUresult, CUstream};
use cust::error::CudaError;
use object::read::archive::ArchiveFile;
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An empty folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cuda_loader-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs `body` in a process of its own, in which the dynamic linker looks for
/// libraries first in a folder that `set_up` has filled. `name` is the calling
/// test, which the child process runs again.
fn alone(name: &str, set_up: fn(&Path), body: fn()) {
    const CHILD: &str = "CUDA_LOADER_TEST_CHILD";
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return body();
    }
    let folder = Folder::new(name);
    set_up(&folder.0);
    let this = std::env::current_exe().expect("the path of this test");
    let output = Command::new(this)
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, name)
        .env("LD_LIBRARY_PATH", &folder.0)
        .output()
        .expect("a child process");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{name}:\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A file that the dynamic linker finds first and refuses, also on machines
/// that have a driver.
fn break_driver(folder: &Path) {
    std::fs::write(folder.join("libcuda.so.1"), b"").expect("an empty file");
}

fn build_fake_driver(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fake_driver.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "-o",
        ])
        .arg(folder.join("libcuda.so.1"))
        .arg(source)
        .status()
        .expect("rustc");
    assert!(status.success(), "the fake driver does not compile");
}

#[test]
fn without_a_usable_driver_everything_fails_with_a_reason() {
    alone(
        "without_a_usable_driver_everything_fails_with_a_reason",
        break_driver,
        no_usable_driver,
    );
}

fn no_usable_driver() {
    assert_eq!(
        cust::device::Device::num_devices(),
        Err(CudaError::NotInitialized),
        "before anything was loaded"
    );
    assert_eq!(
        cust::init(cust::CudaFlags::empty()),
        Err(CudaError::NoDevice)
    );
    assert_eq!(cuda_loader::last_code(), 100);

    let error = cuda_loader::load().expect_err("an empty file is no driver");
    assert_eq!(error.searched[0], "libcuda.so.1");
    assert!(error.reason.contains("libcuda.so.1"), "{error}");
    assert!(
        error.to_string().starts_with("no CUDA driver: ") && error.to_string().contains("searched"),
        "{error}"
    );

    assert_eq!(
        cust::device::Device::num_devices(),
        Err(CudaError::NotInitialized)
    );
    let mut version = 0;
    // SAFETY: the pointer is good for one c_int.
    let code = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    assert_eq!(code, CUresult::NOT_INITIALIZED);
    assert!(!sys::has("cuDriverGetVersion"));
    assert_eq!(
        code.to_string(),
        "CUDA_ERROR_NOT_INITIALIZED (3): the CUDA driver is not loaded or not initialised"
    );
}

#[test]
fn with_a_driver_calls_and_codes_get_through() {
    alone(
        "with_a_driver_calls_and_codes_get_through",
        build_fake_driver,
        the_fake_driver,
    );
}

fn the_fake_driver() {
    assert_eq!(cuda_loader::load(), Ok(()));
    assert_eq!(cust::init(cust::CudaFlags::empty()), Ok(()));

    // Through cust: a call, a code that it knows, and one that it does not.
    let device = cust::device::Device::get_device(0).expect("device 0 of the fake driver");
    assert_eq!(cuda_loader::last_code(), 0);
    assert_eq!(
        cust::device::Device::get_device(101),
        Err(CudaError::InvalidDevice)
    );
    assert_eq!(
        cust::device::Device::get_device(46),
        Err(CudaError::UnknownError),
        "46 is newer than cust"
    );
    assert_eq!(cuda_loader::last_code(), 46);
    assert_eq!(
        CUresult(46).to_string(),
        "CUDA_ERROR_DEVICE_UNAVAILABLE (46): the device is busy or unavailable"
    );
    assert_eq!(
        CUresult(4711).to_string(),
        "an error without a name (4711): the installed CUDA driver does not know this code"
    );

    // A function that this driver does not have, both ways.
    assert_eq!(device.total_memory(), Err(CudaError::UnknownError));
    assert_eq!(cuda_loader::last_code(), CUresult::SYMBOL_MISSING.0);
    assert!(!sys::has("cuLaunchKernelEx"));
    // SAFETY: never reaches a driver, which would read the null pointers.
    let code = unsafe {
        sys::cuLaunchKernelEx(
            std::ptr::null(),
            CUfunction::NULL,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(code, CUresult::SYMBOL_MISSING);
    assert!(sys::has("cuLaunchKernel") && !sys::has("cuNoSuchFunction"));
}

#[test]
fn trampolines_pass_on_arguments_in_registers_and_on_the_stack() {
    alone(
        "trampolines_pass_on_arguments_in_registers_and_on_the_stack",
        build_fake_driver,
        passed_on_arguments,
    );
}

fn passed_on_arguments() {
    assert_eq!(cust::init(cust::CudaFlags::empty()), Ok(()));

    let (mut grid, mut block) = (0, 0);
    // SAFETY: the fake driver writes the two integers and adds up the rest; the
    // callback is an address that nobody calls.
    let code = unsafe {
        cust::sys::cuOccupancyMaxPotentialBlockSize(
            &raw mut grid,
            &raw mut block,
            std::ptr::without_provenance_mut(1),
            std::mem::transmute::<usize, cust::sys::CUoccupancyB2DSize>(2),
            3,
            4,
        )
    };
    assert_eq!(code, cust::sys::CUresult::CUDA_SUCCESS);
    assert_eq!((grid, block), (321, 4));

    let mut first: *mut c_void = std::ptr::null_mut();
    let mut second: *mut c_void = std::ptr::null_mut();
    // SAFETY: the fake driver writes through the last two pointers only.
    let code = unsafe {
        cust::sys::cuLaunchKernel(
            std::ptr::without_provenance_mut(1),
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            std::ptr::without_provenance_mut(9),
            &raw mut first,
            &raw mut second,
        )
    };
    assert_eq!(code, cust::sys::CUresult::CUDA_SUCCESS);
    assert_eq!(
        (first as usize, second as usize),
        (123_456_789, 123_456_790)
    );

    (first, second) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: as above.
    let code = unsafe {
        sys::cuLaunchKernel(
            CUfunction(std::ptr::without_provenance_mut(1)),
            2,
            3,
            4,
            5,
            6,
            7,
            8,
            CUstream(std::ptr::without_provenance_mut(9)),
            &raw mut first,
            &raw mut second,
        )
    };
    assert_eq!(code, CUresult::SUCCESS);
    assert_eq!(
        (first as usize, second as usize),
        (123_456_789, 123_456_790)
    );
}

/// This very test links cust; its own file is the proof that nothing in it asks
/// for the driver library.
#[test]
fn a_program_that_uses_cust_does_not_depend_on_the_driver_library() {
    let this = std::env::current_exe().expect("the path of this test");
    let bytes = std::fs::read(this).expect("this test's file");
    let needed = needed_libraries(&bytes).expect("an ELF file");
    assert!(
        needed.iter().any(|name| name.starts_with("libc.so")),
        "the dynamic section was not read: {needed:?}"
    );
    assert!(
        !needed.iter().any(|name| name.contains("libcuda")),
        "{needed:?}"
    );
}

fn needed_libraries(bytes: &[u8]) -> object::Result<Vec<String>> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let Some((entries, strings)) = sections.dynamic(endian, bytes)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, bytes, strings)?;
    let mut needed = Vec::new();
    for entry in entries {
        if entry.tag(endian) == elf::DT_NEEDED {
            let name = entry.string(endian, strings)?;
            needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(needed)
}

/// What cust's compiled code asks of the linker is what is defined here.
#[test]
fn every_function_that_cust_refers_to_is_defined() {
    let this = std::env::current_exe().expect("the path of this test");
    let folder = this.parent().expect("the folder of this test");
    let mut wanted = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the folder of this test") {
        let path = entry.expect("a folder entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libcust-") && name.ends_with(".rlib") {
            let bytes = std::fs::read(&path).expect("cust's rlib");
            wanted.extend(undefined_driver_functions(&bytes).expect("an rlib"));
        }
    }
    assert!(
        wanted.contains("cuDeviceGet") && wanted.len() > 50,
        "cust's rlib was not found beside {}: {wanted:?}",
        this.display()
    );
    let lacking: Vec<_> = wanted
        .iter()
        .filter(|name| !cuda_loader::SYMBOLS.contains(&name.as_str()))
        .collect();
    assert!(lacking.is_empty(), "no trampoline for {lacking:?}");
}

fn undefined_driver_functions(rlib: &[u8]) -> object::Result<Vec<String>> {
    let archive = ArchiveFile::parse(rlib)?;
    let mut names = Vec::new();
    for member in archive.members() {
        let member = member?;
        // The member with metadata is no object file.
        let Ok(file) = object::File::parse(member.data(rlib)?) else {
            continue;
        };
        for symbol in file.symbols().filter(ObjectSymbol::is_undefined) {
            let name = symbol.name()?;
            let is_driver = name
                .strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
            if is_driver {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Code that is generic in cust is compiled here, so this links only if its
/// functions are defined too. None is called.
#[test]
fn generic_code_of_cust_links() {
    use cust::memory::{CopyDestination, DeviceBuffer, LockedBuffer, UnifiedBuffer};
    use std::hint::black_box;
    let functions: [*const c_void; 6] = [
        DeviceBuffer::<f32>::from_slice as *const c_void,
        LockedBuffer::<f32>::new as *const c_void,
        UnifiedBuffer::<f32>::new as *const c_void,
        <DeviceBuffer<f32> as std::ops::Deref>::deref as *const c_void,
        cust::module::Module::get_function::<&str> as *const c_void,
        <cust::memory::DeviceSlice<f32> as CopyDestination<[f32]>>::copy_to as *const c_void,
    ];
    assert!(
        black_box(functions)
            .iter()
            .all(|function| !function.is_null())
    );
}
