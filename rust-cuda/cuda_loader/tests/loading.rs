//! Tests loading with a driver, without one, and with one that lacks functions.
//!
//! A process loads the driver only once, so each case runs in a child process with its own
//! `LD_LIBRARY_PATH`.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use cuda_loader::sys::{self, CUfunction, CUresult, CUstream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A temporary folder, removed at the end of the test.
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

/// Runs `body` in a child process, whose dynamic linker first searches a folder that `set_up` has
/// filled. `name` is the calling test, which the child process runs again.
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

/// Writes a file that the dynamic linker finds first and rejects, even on machines with a driver.
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
    let version = || {
        let mut version = 0;
        // SAFETY: the pointer is valid for one c_int.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }
    };
    assert_eq!(
        version(),
        CUresult::NOT_INITIALIZED,
        "before anything was loaded"
    );

    let error = cuda_loader::load().expect_err("an empty file is no driver");
    assert_eq!(error.searched[0], "libcuda.so.1");
    assert!(error.reason.contains("libcuda.so.1"), "{error}");
    assert!(
        error.to_string().starts_with("no CUDA driver: ") && error.to_string().contains("searched"),
        "{error}"
    );

    let code = version();
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
    let get = |ordinal| {
        let mut device = -1;
        // SAFETY: the pointer is valid for one c_int.
        let code = unsafe { sys::cuDeviceGet(&raw mut device, ordinal) };
        (code, device)
    };
    assert_eq!(get(0), (CUresult::SUCCESS, 0));
    assert_eq!(get(46).0, CUresult(46), "a code as it is");
    assert_eq!(
        CUresult(46).to_string(),
        "CUDA_ERROR_DEVICE_UNAVAILABLE (46): the device is busy or unavailable"
    );
    assert_eq!(
        CUresult(4711).to_string(),
        "an error without a name (4711): the installed CUDA driver does not know this code"
    );

    // A function that this driver lacks.
    assert!(!sys::has("cuLaunchKernelEx"));
    // SAFETY: the call does not reach a driver, which would read the null pointers.
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
fn arguments_get_through_in_registers_and_on_the_stack() {
    alone(
        "arguments_get_through_in_registers_and_on_the_stack",
        build_fake_driver,
        passed_on_arguments,
    );
}

fn passed_on_arguments() {
    assert_eq!(cuda_loader::load(), Ok(()));

    let (mut grid, mut block) = (0, 0);
    // SAFETY: the fake driver writes the two integers and adds up the other arguments; nobody calls
    // the callback's address.
    let code = unsafe {
        sys::cuOccupancyMaxPotentialBlockSize(
            &raw mut grid,
            &raw mut block,
            CUfunction(std::ptr::without_provenance_mut(1)),
            std::ptr::without_provenance(2),
            3,
            4,
        )
    };
    assert_eq!(code, CUresult::SUCCESS);
    assert_eq!((grid, block), (321, 4));

    let (mut first, mut second) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the fake driver writes through the last two pointers only.
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
