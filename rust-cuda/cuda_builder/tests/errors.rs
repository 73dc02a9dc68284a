//! Every error message that a user can meet: what is wrong, where, and what would be right.

mod support;

use std::fs;

use cuda_builder::{CudaBuilder, CudaBuilderError, IrError, NvvmArch};
use support::{OneFile, builder};

fn error_of(source: &str) -> CudaBuilderError {
    let krate = OneFile::new("wrong", source);
    krate
        .builder()
        .build_ptx()
        .expect_err("this crate cannot be built")
}

fn says(error: &CudaBuilderError, expected: &[&str]) {
    let message = error.to_string();
    for part in expected {
        assert!(message.contains(part), "`{part}` is not in\n{message}");
    }
}

#[test]
fn a_folder_without_a_crate() {
    let error = CudaBuilder::new("no/such/folder").build_ptx().unwrap_err();
    assert!(matches!(error, CudaBuilderError::CratePathDoesntExist(_)));
    says(&error, &["no/such/folder", "Cargo.toml"]);
}

#[test]
fn a_crate_without_a_library() {
    let krate = OneFile::new("program", "");
    fs::remove_file(krate.folder.path().join("src/lib.rs")).unwrap();
    fs::write(krate.folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    let error = krate.builder().build_ptx().unwrap_err();
    says(&error, &["`program`", "src/lib.rs"]);
}

#[test]
fn a_broken_manifest() {
    let krate = OneFile::new("broken", "");
    fs::write(krate.folder.path().join("Cargo.toml"), "[package\n").unwrap();
    let error = krate.builder().build_ptx().unwrap_err();
    says(&error, &["Cargo.toml", "cargo metadata", "unclosed table"]);
}

#[test]
fn a_compile_error() {
    let error = error_of("pub fn f() -> u32 { \"text\" }\n");
    assert!(matches!(error, CudaBuilderError::BuildFailed { .. }));
    says(
        &error,
        &["Cargo.toml", "mismatched types", "src/lib.rs:1:21"],
    );
}

#[test]
fn a_crate_without_kernels() {
    let error = error_of("pub fn f() -> u32 { 1 }\n");
    assert!(matches!(
        error,
        CudaBuilderError::Ir {
            source: IrError::NothingExported,
            ..
        }
    ));
    says(&error, &["`wrong`", "`#[kernel]`"]);
}

#[test]
fn a_function_that_nobody_defines() {
    let source = "unsafe extern \"C\" { fn host_function(); static HOST: u32; }\n\
                  #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(out: *mut u32) {\n\
                  unsafe { host_function(); *out = HOST; } }\n";
    let error = error_of(source);
    says(&error, &["HOST, host_function", "allow_undefined"]);
    // `allow_undefined` leaves it to the driver's linker.
    let krate = OneFile::new("linked", source);
    let ptx = krate
        .builder()
        .allow_undefined(&["host_function", "HOST"])
        .build_ptx()
        .unwrap();
    assert!(
        ptx.text.contains(".extern .func host_function"),
        "{}",
        ptx.text
    );
    assert!(ptx.text.contains(".extern .global"), "{}", ptx.text);
}

#[test]
fn memory_without_an_allocator() {
    let error = error_of(
        "extern crate alloc;\n#[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(n: usize, out: *mut usize) {\n\
         unsafe { *out = alloc::vec![n; n].len(); } }\n",
    );
    says(&error, &["#[global_allocator]", "cuda_std"]);
}

#[test]
fn an_address_of_shared_memory_in_a_static() {
    let error = error_of(
        "#[unsafe(link_section = \".shared\")] static mut TILE: [u32; 4] = [0; 4];\n\
         struct P(*mut u32); unsafe impl Sync for P {}\n\
         static POINTERS: [P; 2] = [P(&raw mut TILE as *mut u32), P(core::ptr::null_mut())];\n\
         #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(i: usize, out: *mut u64) {\n\
         unsafe { *out = POINTERS[i & 1].0 as u64; } }\n",
    );
    says(
        &error,
        &["wrong_POINTERS", "wrong_TILE", "inside the kernel"],
    );
}

#[test]
fn a_kernel_that_writes_to_constant_memory() {
    let error = error_of(
        "#[unsafe(no_mangle)] #[unsafe(link_section = \".constant\")] static mut TABLE: [u32; 4] = [0; 4];\n\
         #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(i: usize, out: *mut u32) {\n\
         unsafe { TABLE[i & 3] = 1; *out = TABLE[0]; } }\n",
    );
    says(
        &error,
        &["`k` writes to `TABLE`", "constant memory", "only the host"],
    );
}

#[test]
fn a_misspelt_section() {
    let error = error_of(
        "#[unsafe(link_section = \".shard\")] static mut TILE: [u32; 4] = [0; 4];\n\
         #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(i: usize, out: *mut u32) {\n\
         unsafe { *out = TILE[i]; TILE[i] = 1; } }\n",
    );
    says(&error, &["wrong::TILE", "\".shard\"", "\".shared\""]);
}

#[test]
fn a_name_that_ptx_cannot_spell() {
    let error = error_of(
        "#[unsafe(export_name = \"a kernel.1\")] pub unsafe extern \"ptx-kernel\" fn k() {}\n",
    );
    says(&error, &["`a kernel.1`", "identifier"]);
}

#[test]
fn what_llvm_refuses_names_the_step_and_the_file() {
    // An instruction of sm_80, for sm_75.
    let error = error_of(
        "#[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(out: *mut u32) {\n\
         unsafe extern \"C\" { #[link_name = \"llvm.nvvm.mbarrier.init\"] fn init(p: *mut u64, n: i32); }\n\
         unsafe { init(out.cast(), 1); } }\n",
    );
    let CudaBuilderError::StepFailed { step, file, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*step, "writing PTX");
    assert!(!error.to_string().contains("Stack dump"), "{error}");
    let module = fs::read_to_string(file).expect("the file is kept");
    assert!(module.contains("mbarrier.init"));
    says(
        &error,
        &[
            "writing PTX failed in the function `k`, ",
            "src/lib.rs:1, on",
            &file.display().to_string(),
            "Cannot select: intrinsic %llvm.nvvm.mbarrier.init",
            "-mcpu=sm_75",
        ],
    );
    fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn missing_tools() {
    let empty = tempfile::tempdir().unwrap();
    let error = builder("raw-kernels")
        .llvm_tools(empty.path())
        .build_ptx()
        .unwrap_err();
    assert!(matches!(error, CudaBuilderError::MissingTool(_)));
    says(
        &error,
        &[
            "cannot find `llvm-link` of LLVM 22",
            &empty.path().join("llvm-link").display().to_string(),
            "rustup component add llvm-tools",
            "apt-get install llvm-22",
            "CUDA_BUILDER_LLVM_BIN",
        ],
    );
}

/// LLVM 22 has every architecture of `NvvmArch`; scripts stand in for a release that has not.
#[cfg(unix)]
#[test]
fn an_architecture_that_llvm_does_not_know() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    for tool in ["llvm-link", "opt", "llc"] {
        let path = folder.path().join(tool);
        fs::write(
            &path,
            "#!/bin/sh\ncase $1 in\n--version) echo '  LLVM version 22.0.0' ;;\n\
             *) printf '  sm_75 - Select it.\\n  sm_80 - Select it.\\n' >&2 ;;\nesac\n",
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let error = builder("raw-kernels")
        .llvm_tools(folder.path())
        .arch(NvvmArch::Compute121a)
        .build_ptx()
        .unwrap_err();
    assert!(matches!(error, CudaBuilderError::UnsupportedArch { .. }));
    says(
        &error,
        &["llc (LLVM 22.0.0)", "sm_121a", "it knows sm_75, sm_80"],
    );
}

/// LLVM 22 has them all: the build gets as far as looking for the crate's library.
#[test]
fn every_architecture_is_known_to_llvm() {
    let krate = OneFile::new("program", "");
    fs::remove_file(krate.folder.path().join("src/lib.rs")).unwrap();
    fs::write(krate.folder.path().join("src/main.rs"), "fn main() {}").unwrap();
    for &arch in NvvmArch::ALL {
        let error = krate.builder().arch(arch).build_ptx().unwrap_err();
        assert!(
            matches!(error, CudaBuilderError::NoLibrary { .. }),
            "{arch}: {error}"
        );
    }
}

#[test]
fn an_unwritable_destination() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = builder("raw-kernels")
        .copy_to(file.join("kernels.ptx"))
        .build()
        .unwrap_err();
    assert!(matches!(
        error,
        CudaBuilderError::FailedToCopyPtxFile { .. }
    ));
    says(&error, &["file/kernels.ptx"]);
}
