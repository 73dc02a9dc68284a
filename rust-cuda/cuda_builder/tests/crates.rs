//! Builds kernel crates of every layout: with `cuda_std`, in an older style, in workspaces, in
//! unusual folders, and from a build script.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use cuda_builder::{CudaBuilder, CudaBuilderError, DebugInfo, NvvmArch};
use support::{
    OneFile, body, build, builder, copy_folder, count, fixture, outer_target_dir, position, ptxas,
    target_dir,
};

const ARCH: NvvmArch = NvvmArch::Compute75;

/// The types of a kernel's parameters, as PTX names them.
fn parameters(ptx: &str, kernel: &str) -> Vec<String> {
    let start = ptx
        .find(&format!(".entry {kernel}("))
        .unwrap_or_else(|| panic!("no {kernel} in\n{ptx}"));
    ptx[start..]
        .lines()
        .skip(1)
        .take_while(|line| line.trim_start().starts_with(".param"))
        .map(|line| line.split_whitespace().nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn crates_with_cuda_std_build() {
    let ptx = build(&builder("upstream-kernels"));
    ptxas(&ptx.text, ARCH);
    assert_eq!(ptx.kernels, ["allocate", "mirror", "vecadd"]);
    // Two slices are a pointer and a length each; then the output.
    assert_eq!(
        parameters(&ptx.text, "vecadd"),
        [".u64", ".u64", ".u64", ".u64", ".u64"]
    );
    let vecadd = body(&ptx.text, "vecadd");
    assert_eq!(count(&vecadd, "ld.global"), 2, "{}", vecadd.join("\n"));
    assert_eq!(count(&vecadd, "st.global"), 1);
    // The bounds check of `b`, and nothing that formats a message.
    assert_eq!(count(&vecadd, "trap"), 1);

    let mirror = body(&ptx.text, "mirror");
    assert_eq!(count(&mirror, "bar"), 1, "{}", mirror.join("\n"));
    assert_eq!(count(&mirror, "st.shared"), 1);
    assert_eq!(count(&mirror, "ld.shared"), 1);

    // The device's own heap.
    assert!(
        ptx.text
            .contains(".extern .func  (.param .b64 func_retval0) malloc")
    );
    assert!(count(&body(&ptx.text, "allocate"), "call") > 0);
}

#[test]
fn crates_of_the_old_release_build_unchanged() {
    let ptx = build(&builder("legacy-kernels"));
    ptxas(&ptx.text, ARCH);
    assert_eq!(ptx.kernels, ["add", "allocates"]);
    position(&body(&ptx.text, "add"), "add.rn.f32");
    let root = fixture("legacy-kernels")
        .canonicalize()
        .unwrap()
        .join("src");
    for source in ["lib.rs", "nested/deeper.rs", "name.txt"] {
        assert!(
            ptx.sources.contains(&root.join(source)),
            "{source}: {:?}",
            ptx.sources
        );
    }
}

/// An older glam, OptiX's parameters, statics with an address space by number, a kernel that
/// is re-exported from a private module.
#[test]
fn crates_of_other_people_build() {
    let ptx = build(&builder("other-kernels"));
    ptxas(&ptx.text, ARCH);
    assert_eq!(ptx.kernels, ["lengths", "pixel", "scale", "turned"]);
    assert!(
        ptx.text.contains(".extern .const .align 8 .b8 PARAMS[16];"),
        "{}",
        ptx.text
    );
    let pixel = body(&ptx.text, "pixel");
    assert_eq!(count(&pixel, "ld.const"), 2, "{}", pixel.join("\n"));
    let turned = body(&ptx.text, "turned");
    assert_eq!(count(&turned, "st.shared"), 1, "{}", turned.join("\n"));
    assert_eq!(count(&turned, "ld.shared"), 1);
}

/// The release of `cuda_std`, in a registry that is a folder.
#[test]
fn the_released_cuda_std_is_refused_by_name() {
    let krate = OneFile::new("outdated", "");
    let folder = krate.folder.path();
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    fs::write(
        folder.join("Cargo.toml"),
        format!("{manifest}\n[dependencies]\ncuda_std = \"0.2\"\n"),
    )
    .unwrap();
    let released = folder.join("vendor/cuda_std");
    fs::create_dir_all(released.join("src")).unwrap();
    fs::create_dir(folder.join(".cargo")).unwrap();
    for (path, text) in [
        (
            folder.join(".cargo/config.toml"),
            "[source.crates-io]\nreplace-with = \"vendored\"\n\n[source.vendored]\ndirectory = \"vendor\"\n",
        ),
        (
            released.join("Cargo.toml"),
            "[package]\nname = \"cuda_std\"\nversion = \"0.2.2\"\nedition = \"2021\"\n",
        ),
        (released.join("src/lib.rs"), ""),
        (released.join(".cargo-checksum.json"), "{\"files\":{}}"),
    ] {
        fs::write(path, text).unwrap();
    }
    let error = krate.builder().build_ptx().unwrap_err();
    assert!(
        matches!(error, CudaBuilderError::ReleasedCudaStd { .. }),
        "{error}"
    );
    let message = error.to_string();
    for part in [
        "`outdated`",
        "cuda_std 0.2.2",
        "[patch.crates-io]",
        "cargo update -p cuda_std",
    ] {
        assert!(message.contains(part), "`{part}` is not in\n{message}");
    }
}

/// An error in a crate of the old style points into its real file, as the lines in the PTX do, and
/// a change of that file is noticed.
#[test]
fn messages_about_old_crates_name_the_real_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("my kernels");
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(
        root.join("Cargo.toml"),
        "[package]\nname = \"old\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n",
    )
    .unwrap();
    // A module, too, may begin with the header.
    let header = "#![cfg_attr(target_os = \"cuda\", feature(register_attr), register_attr(nvvm_internal))]\n\
                  #![deny(warnings)]\n";
    let write = |name: &str, text: &str| {
        fs::write(root.join("src").join(name), format!("{header}{text}")).unwrap();
    };
    let build_with = |value: &str, factor: &str| {
        write(
            "lib.rs",
            &format!(
                "mod inner;\n#[no_mangle]\npub unsafe extern \"ptx-kernel\" fn k(out: *mut u32) {{\n    \
                 *out = {value} * inner::factor();\n}}\n"
            ),
        );
        write(
            "inner.rs",
            &format!("pub fn factor() -> u32 {{\n    {factor}\n}}\n"),
        );
        CudaBuilder::new(&root)
            .target_dir(target_dir())
            .debug(DebugInfo::LineTables)
            .build_ptx()
    };
    for (value, factor, place) in [
        ("(\"text\" as u32)", "1", "src/lib.rs:6:12"),
        ("1", "\"text\"", "src/inner.rs:4:5"),
    ] {
        let error = build_with(value, factor).unwrap_err().to_string();
        assert!(error.contains(place), "{error}");
    }
    for (value, factor, product) in [("12345", "1", "12345"), ("12345", "2", "24690")] {
        let ptx = build_with(value, factor).unwrap();
        assert!(ptx.text.contains(product), "{}", ptx.text);
        assert!(ptx.text.contains("\"src/lib.rs\""), "{}", ptx.text);
    }
}

#[test]
fn members_of_workspaces_build_with_their_dependencies() {
    let cores = || -> BTreeSet<_> {
        let folder = target_dir().join("sm_75/nvptx64-nvidia-cuda/release/deps");
        let files = fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let cores = names.filter(|name| name.starts_with("libcore-") && name.ends_with(".rlib"));
        cores.collect()
    };
    // A crate without a workspace.
    build(&builder("raw-kernels"));
    let before = cores();
    let ptx =
        build(&CudaBuilder::new(fixture("workspace").join("kernels")).target_dir(target_dir()));
    ptxas(&ptx.text, ARCH);
    assert_eq!(ptx.kernels, ["areas", "more"]);
    // The workspace's settings for dependencies do not make another `core`.
    assert_eq!(cores(), before);
    // The workspace's profile asks for debug information and little optimisation,
    // which is about the host's code.
    assert!(!ptx.text.contains("\t.loc\t"));
    let areas = body(&ptx.text, "areas");
    assert!(
        areas.iter().all(|line| !line.contains("shapes")),
        "a call was not inlined:\n{}",
        areas.join("\n")
    );
    let names: Vec<_> = ptx
        .sources
        .iter()
        .filter_map(|path| path.parent()?.parent()?.file_name()?.to_str())
        .collect();
    assert_eq!(names, ["kernels", "more-kernels", "shapes"]);
}

#[test]
fn the_same_sources_give_the_same_ptx_anywhere() {
    for (name, below) in [("raw-kernels", ""), ("workspace", "kernels")] {
        let here = build(
            &CudaBuilder::new(fixture(name).join(below))
                .target_dir(target_dir())
                .debug(DebugInfo::LineTables),
        );
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("a folder, ünlike the first").join(name);
        copy_folder(&fixture(name), &copy);
        let there = build(
            &CudaBuilder::new(copy.join(below))
                .target_dir(target_dir())
                .debug(DebugInfo::LineTables),
        );
        assert!(here.text == there.text, "{name} differs");
        let again = build(
            &CudaBuilder::new(copy.join(below))
                // The directory that the kernels of a build script have, too.
                .target_dir(outer_target_dir().join("cuda-builder"))
                .debug(DebugInfo::LineTables),
        );
        assert!(
            here.text == again.text,
            "{name} differs in another target directory"
        );
        for absolute in [env!("CARGO_MANIFEST_DIR"), "/root/", "/home/", "rustlib"] {
            assert!(
                !here.text.contains(absolute),
                "{absolute} is in the PTX of {name}"
            );
        }
    }
}

/// The way most users meet this crate: in the build script of a package that has
/// nothing to do with this repository, with an environment full of settings that
/// are none of the kernels' business.
#[test]
fn a_build_script_anywhere_gets_its_ptx() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("an app");
    copy_folder(&fixture("raw-kernels"), &folder.path().join("raw-kernels"));
    fs::create_dir_all(app.join("src")).unwrap();
    fs::create_dir_all(app.join(".cargo")).unwrap();
    // Literal strings: paths may hold anything but a quote.
    fs::write(
        app.join("Cargo.toml"),
        format!(
            "[package]\nname = \"an-app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
             [build-dependencies]\ncuda_builder = {{ package = 'halo-cuda-builder', path = '{}' }}\n\n[workspace]\n",
            env!("CARGO_MANIFEST_DIR")
        ),
    )
    .unwrap();
    fs::write(
        app.join("build.rs"),
        "fn main() {\n    let ptx = cuda_builder::CudaBuilder::new(\"../raw-kernels\")\n        \
         .debug(cuda_builder::DebugInfo::LineTables)\n        .copy_to(\"resources/deep/kernels.ptx\")\n        .build()\n        .unwrap();\n    \
         assert!(ptx.ends_with(\"kernels.ptx\"));\n}\n",
    )
    .unwrap();
    fs::write(
        app.join("src/main.rs"),
        "fn main() {\n    print!(\"{}\", include_str!(\"../resources/deep/kernels.ptx\"));\n}\n",
    )
    .unwrap();
    fs::write(
        app.join(".cargo/config.toml"),
        "[build]\nrustflags = [\"--cfg=outer_build\"]\n\n[profile.dev]\npanic = \"abort\"\n",
    )
    .unwrap();
    let ended = |arguments: &[&str]| {
        Command::new(env!("CARGO"))
            .args(arguments)
            .current_dir(&app)
            .env("CARGO_TARGET_DIR", outer_target_dir())
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                "--cfg=outer_build\u{1f}-Cdebug-assertions=on",
            )
            .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
            .env("CARGO_INCREMENTAL", "1")
            .output()
            .unwrap()
    };
    let cargo = |arguments: &[&str]| {
        let output = ended(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "cargo {arguments:?}:\n{stderr}");
        (String::from_utf8(output.stdout).unwrap(), stderr)
    };
    // A second lock on the same directory would wait forever here.
    let (printed, _) = cargo(&["run", "--quiet"]);
    let here = build(&builder("raw-kernels").debug(DebugInfo::LineTables));
    assert_eq!(printed, here.text);
    assert_eq!(count(&body(&printed, "overflow"), "trap"), 0);

    // Nothing changed: the build script does not run again.
    let (_, said) = cargo(&["build", "--verbose"]);
    assert!(said.contains("Fresh an-app"), "{said}");
    // A change deep in the kernel crate is noticed.
    let arithmetic = folder.path().join("raw-kernels/src/arithmetic.rs");
    let source = fs::read_to_string(&arithmetic).unwrap();
    fs::write(
        &arithmetic,
        source.replace("*out = a / b }", "*out = b / a }"),
    )
    .unwrap();
    let (changed, _) = cargo(&["run", "--quiet"]);
    assert_ne!(changed, printed);

    // An error in it is shown once and as rustc shows it, although the script only unwraps it.
    fs::write(
        &arithmetic,
        source.replace("*out = a / b }", "*out = \"text\" }"),
    )
    .unwrap();
    let output = ended(&["build"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(said.matches("mismatched types").count(), 1, "{said}");
    assert!(
        said.contains("\n     --> src/arithmetic.rs:")
            || said.contains("\n    --> src/arithmetic.rs:"),
        "{said}"
    );
}
