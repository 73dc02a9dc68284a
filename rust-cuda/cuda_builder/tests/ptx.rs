//! Tests of the generated PTX, one kernel at a time; the kernels are in `fixtures/raw-kernels`.

mod support;

use std::sync::OnceLock;

use cuda_builder::{DebugInfo, NvvmArch, Ptx};
use support::{OneFile, body, build, builder, count, position, ptxas, raw_kernels, side_by_side};

const ARCH: NvvmArch = NvvmArch::Compute75;

fn kernel(name: &str) -> Vec<&'static str> {
    let ptx = raw_kernels(ARCH);
    // The PTX lives as long as the tests.
    body(Box::leak(ptx.text.clone().into_boxed_str()), name)
}

#[test]
fn ptxas_accepts_every_kernel_for_every_target() {
    for arch in [NvvmArch::Compute75, NvvmArch::Compute90] {
        let ptx = raw_kernels(arch);
        let said = ptxas(&ptx.text, arch);
        assert!(ptx.text.contains(&format!(".target {}\n", arch.sm())));
        assert!(!ptx.kernels.is_empty());
        for kernel in &ptx.kernels {
            assert!(
                said.contains(&format!("entry function '{kernel}'")),
                "{kernel} is not in\n{said}"
            );
        }
    }
}

#[test]
fn kernels_and_exports_are_listed() {
    let ptx = raw_kernels(ARCH);
    assert!(ptx.kernels.windows(2).all(|pair| pair[0] < pair[1]));
    for kernel in &ptx.kernels {
        assert!(
            ptx.text.contains(&format!(".visible .entry {kernel}(")),
            "{kernel}"
        );
    }
    assert_eq!(ptx.text.matches(".entry ").count(), ptx.kernels.len());
    for export in [
        "COEFFICIENTS",
        "SCALE",
        "UNREAD",
        "exported_function",
        "constants",
    ] {
        assert!(ptx.exports.iter().any(|name| name == export), "{export}");
    }
    let source = |end: &str| ptx.sources.iter().any(|path| path.ends_with(end));
    assert!(
        source("src/lib.rs") && source("src/atomics.rs"),
        "{:?}",
        ptx.sources
    );
}

// --- what a warp or block does together ----------------------------------------

#[test]
fn barriers_between_guards_stay_single() {
    for (name, instruction) in [
        ("barrier_intrinsic", "bar"),
        ("barrier_assembly", "bar"),
        ("barrier_out_of_line", "call"),
        ("barrier_nested", "bar"),
        ("barrier_pointer", "call"),
    ] {
        let body = kernel(name);
        assert_eq!(count(&body, instruction), 1, "{name}:\n{}", body.join("\n"));
        // Every thread passes it: no guard jumps past it to the end.
        let at = position(&body, instruction);
        assert_eq!(count(&body[..at], "ret"), 0, "{name}:\n{}", body.join("\n"));
    }
}

#[test]
fn shuffles_and_votes_between_guards_stay_single() {
    for (name, instruction) in [
        ("shuffle_intrinsic", "shfl.sync"),
        ("vote_intrinsic", "vote.sync"),
        ("shuffle_assembly", "shfl.sync"),
        ("vote_assembly", "{ .reg .pred p; setp.gt.s32"),
    ] {
        let body = kernel(name);
        let at = position(&body, instruction);
        // The guard of the store comes behind it: sinking the exchange into that
        // branch would leave out the lanes that do not take it.
        let store = position(&body, "st.global");
        assert!(at < store, "{name}:\n{}", body.join("\n"));
        let guards = body[at..store].iter().filter(|l| l.contains("bra")).count();
        assert!(guards > 0, "{name}:\n{}", body.join("\n"));
    }
}

#[test]
fn assembly_of_one_thread_still_unrolls() {
    let body = kernel("unrolled");
    assert_eq!(count(&body, "ex2.approx"), 4, "{}", body.join("\n"));
    assert_eq!(count(&body, "bra"), 0);
}

// --- memories --------------------------------------------------------------------

#[test]
fn loads_from_different_memories_are_not_merged() {
    let body = kernel("shared_or_global");
    let generic = body
        .iter()
        .filter(|line| line.contains("ld.") && !line.contains("ld.param"))
        .filter(|line| !line.contains("ld.shared") && !line.contains("ld.global"))
        .count();
    assert_eq!(generic, 0, "{}", body.join("\n"));
    assert_eq!(count(&body, "ld.shared"), 2, "{}", body.join("\n"));
    assert_eq!(count(&body, "ld.global"), 3, "{}", body.join("\n"));
}

#[test]
fn shared_statics_have_no_initialiser_and_one_owner() {
    let ptx = raw_kernels(ARCH);
    let shared: Vec<_> = ptx
        .text
        .lines()
        .filter(|line| line.contains(".shared .align"))
        .collect();
    assert!(shared.iter().all(|line| !line.contains('=')), "{shared:?}");
    for (name, size) in [("shared_first", "[256]"), ("shared_second", "[1024]")] {
        let body = kernel(name);
        assert_eq!(count(&body, "ld.shared"), 1, "{}", body.join("\n"));
        assert_eq!(count(&body, "st.shared"), 1);
        assert_eq!(
            count(&body, "ld.b32") + count(&body, "st.b32"),
            0,
            "generic access"
        );
        let own = format!("{name}_OWN{size};");
        assert!(
            shared.iter().any(|line| line.contains(&own)),
            "{own} is not in\n{}",
            shared.join("\n")
        );
        let said = ptxas(&ptx.text, ARCH);
        let size: usize = size.trim_matches(['[', ']']).parse().unwrap();
        let usage = said
            .split_once(&format!("entry function '{name}'"))
            .and_then(|(_, rest)| rest.lines().find(|line| line.contains("Used ")))
            .unwrap();
        assert!(usage.contains(&format!("{size} bytes smem")), "{usage}");
    }
}

#[test]
fn dynamic_shared_memory_is_an_extern_array() {
    let ptx = raw_kernels(ARCH);
    assert!(
        ptx.text
            .contains(".extern .shared .align 16 .b8 __cuda_std_dynamic_shared[];"),
        "{}",
        ptx.text
    );
    let body = kernel("shared_dynamic");
    assert_eq!(count(&body, "st.shared"), 1);
    assert_eq!(count(&body, "ld.shared"), 1);
}

#[test]
fn constants_the_host_writes_are_read_at_run_time() {
    let ptx = raw_kernels(ARCH);
    assert!(
        ptx.text.contains(
            ".visible .const .align 4 .b8 COEFFICIENTS[16] = \
             {0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64, 0, 0, 128, 64};"
        ),
        "{}",
        ptx.text
    );
    assert!(ptx.text.contains(".visible .const .align 4 .b8 SCALE[4];"));
    let body = kernel("constants");
    assert_eq!(count(&body, "ld.const"), 3, "{}", body.join("\n"));
    assert_eq!(count(&body, "mul.rn.f32"), 1);
}

#[test]
fn exported_statics_stay_without_readers() {
    let ptx = raw_kernels(ARCH);
    assert!(
        ptx.text
            .contains(".visible .global .align 4 .b8 UNREAD[12] = {7, 0, 0, 0, 8"),
        "{}",
        ptx.text
    );
}

#[test]
fn private_constants_are_in_constant_memory_and_not_exported() {
    let ptx = raw_kernels(ARCH);
    let line = ptx
        .text
        .lines()
        .find(|line| line.contains("memories_TABLE["))
        .unwrap();
    assert!(line.starts_with(".const "), "{line}");
    assert_eq!(count(&kernel("table"), "ld.const"), 1);
}

#[test]
fn mutable_statics_are_shared_by_all_threads() {
    let body = kernel("globals");
    let store = body
        .iter()
        .position(|line| line.starts_with("st.global") && line.contains("memories_LAST"))
        .unwrap_or_else(|| panic!("{}", body.join("\n")));
    let load = body
        .iter()
        .position(|line| line.starts_with("ld.global") && line.contains("memories_LAST"))
        .unwrap_or_else(|| panic!("{}", body.join("\n")));
    let barrier = position(&body, "bar");
    assert!(store < barrier && barrier < load);
}

#[test]
fn statics_may_hold_addresses_of_statics() {
    let ptx = raw_kernels(ARCH);
    let line = ptx
        .text
        .lines()
        .find(|line| line.contains("memories_COUNTERS["))
        .unwrap();
    assert!(
        line.contains("{generic(raw_kernels_memories_TURN), generic(raw_kernels_memories_OTHER)}"),
        "{line}"
    );
}

#[test]
fn exported_functions_stay_without_callers() {
    let ptx = raw_kernels(ARCH);
    assert!(
        ptx.text
            .lines()
            .any(|line| line.contains(".visible .func") && line.contains("exported_function(")),
        "{}",
        ptx.text
    );
}

// --- atomics ---------------------------------------------------------------------

/// The order of the store before, the operation, and the store after it, with
/// the fences between them.
fn atomic_sequence(name: &str) -> Vec<&'static str> {
    kernel(name)
        .into_iter()
        .filter_map(|line| {
            [
                "st.global",
                "fence.acq_rel.gpu",
                "fence.sc.gpu",
                "atom.global.add.u32",
            ]
            .into_iter()
            .find(|opcode| line.starts_with(opcode))
        })
        .collect()
}

#[test]
fn read_modify_write_keeps_its_ordering() {
    let (store, add, fence) = ("st.global", "atom.global.add.u32", "fence.acq_rel.gpu");
    assert_eq!(atomic_sequence("add_relaxed"), [store, add, store]);
    assert_eq!(atomic_sequence("add_acquire"), [store, add, fence, store]);
    assert_eq!(atomic_sequence("add_release"), [store, fence, add, store]);
    assert_eq!(
        atomic_sequence("add_acq_rel"),
        [store, fence, add, fence, store]
    );
    assert_eq!(
        atomic_sequence("add_seq_cst"),
        [store, "fence.sc.gpu", add, fence, store]
    );
}

#[test]
fn other_atomics_keep_their_orderings() {
    let exchange = kernel("exchange");
    assert_eq!(
        count(&exchange, "atom.acq_rel.sys.global.cas.b32"),
        1,
        "{}",
        exchange.join("\n")
    );
    assert_eq!(
        count(&kernel("load_acquire"), "ld.acquire.sys.global.b32"),
        1
    );
    assert_eq!(
        count(&kernel("store_release"), "st.release.sys.global.b32"),
        1
    );
    let fences = kernel("fences");
    let fence = position(&fences, "fence.sc.sys");
    assert!(fences[..fence].iter().any(|line| line.contains("1111")));
    assert!(fences[fence..].iter().any(|line| line.contains("2222")));
    // A byte's loop, between a release and an acquire.
    let byte = kernel("byte_acq_rel");
    let exchange = byte
        .iter()
        .position(|line| line.contains(".cas.b32"))
        .unwrap();
    assert!(
        count(&byte[..exchange], "fence.acq_rel.gpu") == 1,
        "{}",
        byte.join("\n")
    );
    assert!(
        count(&byte[exchange..], "fence.acq_rel.gpu") == 1,
        "{}",
        byte.join("\n")
    );
}

#[test]
fn targets_without_orderings_get_fences_for_all() {
    let ptx = oldest_with_optix();
    let order = |name: &str| -> Vec<&'static str> {
        body(&ptx.text, name)
            .into_iter()
            .filter_map(|line| {
                [
                    "membar.gl",
                    "membar.sys",
                    "atom",
                    "ld.volatile",
                    "st.volatile",
                ]
                .into_iter()
                .find(|opcode| line.starts_with(opcode))
            })
            .collect()
    };
    assert_eq!(order("add_acq_rel"), ["membar.gl", "atom", "membar.gl"]);
    assert_eq!(order("exchange"), ["membar.gl", "atom", "membar.gl"]);
    assert_eq!(order("load_acquire"), ["ld.volatile", "membar.gl"]);
    assert_eq!(order("store_release"), ["membar.gl", "st.volatile"]);
}

// --- arithmetic ------------------------------------------------------------------

fn arithmetic(ptx: &Ptx) -> impl Fn(&str) -> Vec<String> + use<> {
    ptxas(&ptx.text, ARCH);
    let text = ptx.text.clone();
    move |name| body(&text, name).into_iter().map(str::to_owned).collect()
}

fn opcode(body: &[String], start: &str) -> String {
    let found: Vec<_> = body.iter().filter(|line| line.starts_with(start)).collect();
    assert_eq!(found.len(), 1, "{start} in\n{}", body.join("\n"));
    found[0].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn arithmetic_is_ieee_by_default() {
    let kernel = arithmetic(&raw_kernels(ARCH));
    let sum = kernel("multiply_add");
    assert_eq!(opcode(&sum, "mul"), "mul.rn.f32");
    assert_eq!(opcode(&sum, "add"), "add.rn.f32");
    assert_eq!(opcode(&kernel("fused"), "fma"), "fma.rn.f32");
    assert_eq!(opcode(&kernel("divide"), "div"), "div.rn.f32");
    assert_eq!(opcode(&kernel("square_root"), "sqrt"), "sqrt.rn.f32");
}

#[test]
fn each_option_changes_its_own_instruction() {
    let kernels = || builder("raw-kernels");
    let options = [
        kernels().ftz(true),
        kernels().fast_div(true),
        kernels().fast_sqrt(true),
        kernels().fma_contraction(true),
    ];
    let built = side_by_side(options, |builder| arithmetic(&build(&builder)));
    let [flushed, divided, rooted, contracted] = built;

    assert_eq!(opcode(&flushed("multiply_add"), "mul"), "mul.rn.ftz.f32");
    assert_eq!(opcode(&flushed("divide"), "div"), "div.rn.ftz.f32");
    assert_eq!(opcode(&flushed("square_root"), "sqrt"), "sqrt.rn.ftz.f32");
    assert_eq!(opcode(&flushed("fused"), "fma"), "fma.rn.ftz.f32");

    assert_eq!(opcode(&divided("divide"), "div"), "div.full.f32");
    assert_eq!(opcode(&divided("square_root"), "sqrt"), "sqrt.rn.f32");
    assert_eq!(opcode(&divided("double"), "div"), "div.rn.f64");

    assert_eq!(opcode(&rooted("square_root"), "sqrt"), "sqrt.approx.f32");
    assert_eq!(opcode(&rooted("divide"), "div"), "div.rn.f32");

    assert_eq!(opcode(&contracted("multiply_add"), "fma"), "fma.rn.f32");
    assert_eq!(opcode(&contracted("double"), "fma"), "fma.rn.f64");
}

// --- the rest ----------------------------------------------------------------------

#[test]
fn a_panic_is_a_trap() {
    for name in ["out_of_bounds", "explicit", "unwrapped"] {
        let body = kernel(name);
        assert_eq!(count(&body, "trap"), 1, "{name}:\n{}", body.join("\n"));
        assert_eq!(count(&body, "call"), 0, "{name}:\n{}", body.join("\n"));
    }
    let ptx = raw_kernels(ARCH);
    assert!(!ptx.text.contains("core_fmt"), "formatting was linked");
    // Wrapping in release, as on the CPU.
    assert_eq!(count(&kernel("overflow"), "trap"), 0);
}

/// For the oldest target, which knows no memory orderings, with the switch for OptiX.
/// One build serves both questions, since each build of this kind needs a `core` of its own.
fn oldest_with_optix() -> &'static Ptx {
    static BUILT: OnceLock<Ptx> = OnceLock::new();
    let kernels = || builder("raw-kernels").arch(NvvmArch::Compute61);
    BUILT.get_or_init(|| build(&kernels().optix(true)))
}

/// The values that the kernel `configuration` stores.
fn configuration(ptx: &Ptx) -> Vec<u32> {
    body(&ptx.text, "configuration")
        .into_iter()
        .filter(|line| line.starts_with("st.global"))
        .filter_map(|line| {
            let value = line.split(',').nth(1)?.trim().trim_end_matches(';');
            value.parse().ok()
        })
        .collect()
}

#[test]
fn the_crate_sees_its_architecture_and_features() {
    assert_eq!(
        configuration(&raw_kernels(ARCH)),
        [750, 75, 4444, 6666, 8888, 0x0f0f]
    );
    let extra = builder("raw-kernels").build_args(&["--features", "extra"]);
    assert_eq!(
        configuration(&build(&extra.arch(NvvmArch::Compute90))),
        [900, 90, 3333, 6666, 8888, 0x3f3f]
    );
    assert_eq!(
        configuration(oldest_with_optix()),
        [610, 61, 4444, 6666, 7777, 0x0303]
    );
}

#[test]
fn debug_builds_check_and_assemble() {
    let ptx = build(&builder("raw-kernels").release(false));
    ptxas(&ptx.text, ARCH);
    let checked = body(&ptx.text, "overflow");
    assert!(
        count(&checked, "trap") + count(&checked, "call") > 0,
        "{}",
        checked.join("\n")
    );
    assert!(
        ptx.path
            .components()
            .any(|part| part.as_os_str() == "debug")
    );
}

#[test]
fn source_lines_survive_when_asked_for() {
    let plain = raw_kernels(ARCH);
    assert!(!plain.text.contains("\t.loc\t") && !plain.text.contains(".file"));
    let ptx = build(&builder("raw-kernels").debug(DebugInfo::LineTables));
    ptxas(&ptx.text, ARCH);
    let file = ptx
        .text
        .lines()
        .find(|line| line.contains(".file") && line.contains("arithmetic.rs"))
        .unwrap_or_else(|| panic!("{}", ptx.text));
    assert!(file.ends_with("\"src/arithmetic.rs\""), "{file}");
    let number = file.split_whitespace().nth(1).unwrap();
    let line = include_str!("fixtures/raw-kernels/src/arithmetic.rs")
        .lines()
        .position(|line| line.contains("*out = a / b }"))
        .unwrap()
        + 1;
    let divide = body(&ptx.text, "divide");
    let at = position(&divide, "div.rn.f32");
    let location = divide[..at]
        .iter()
        .rev()
        .find(|line| line.starts_with(".loc"))
        .unwrap();
    assert!(
        location.starts_with(&format!(".loc\t{number} {line} ")),
        "{location}"
    );
}

#[test]
fn a_newer_ptx_version_may_be_asked_for() {
    let ptx = build(&builder("raw-kernels").ptx_version(8, 0));
    assert!(ptx.text.contains(".version 8.0\n"));
    assert!(raw_kernels(ARCH).text.contains(".version 6.3\n"));
}

#[test]
fn the_module_is_written_where_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let module = folder.path().join("final.ll");
    // A crate of its own, so that no other test overwrites its files.
    let krate = OneFile::new(
        "emitting",
        "#[unsafe(no_mangle)]\npub extern \"ptx-kernel\" fn nothing() {}\n",
    );
    let text = build(
        &krate
            .builder()
            .emit_llvm_ir(true)
            .final_module_path(&module),
    );
    assert!(text.path.ends_with("emitting.ptx"));
    assert_eq!(std::fs::read_to_string(&text.path).unwrap(), text.text);
    let module = std::fs::read_to_string(module).unwrap();
    assert!(module.contains("define ptx_kernel void @nothing"));
    assert_eq!(
        std::fs::read_to_string(text.path.with_extension("ll")).unwrap(),
        module
    );
    let bitcode = build(&krate.builder().emit_llvm_bitcode(true));
    assert!(
        std::fs::read(bitcode.path.with_extension("bc"))
            .unwrap()
            .starts_with(b"BC")
    );
}

/// LLVM's own choice for these targets, up to 6.1, is too old for `activemask`.
#[test]
fn the_ptx_version_has_what_the_oldest_targets_can_do() {
    let krate = OneFile::new(
        "lanes",
        "unsafe extern \"C\" { #[link_name = \"llvm.nvvm.activemask\"] fn activemask() -> u32; }\n\
         #[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn k(out: *mut u32) {\n\
         unsafe { *out = activemask() } }\n",
    );
    // As `oldest_with_optix` is built, to share its `core`.
    let ptx = build(&krate.builder().arch(NvvmArch::Compute61).optix(true));
    assert!(
        ptx.text.contains(".version 6.3\n.target sm_61\n"),
        "{}",
        ptx.text
    );
    assert_eq!(count(&body(&ptx.text, "k"), "activemask.b32"), 1);
}

/// A kernel for each architecture that stores whether `cfg(target_feature)` names it, as
/// `sm_XX` and as `compute_XX`.
#[test]
fn a_kernel_for_each_architecture_sees_whether_it_is_included() {
    let mut source = String::new();
    for arch in NvvmArch::ALL {
        let (sm, compute) = (arch.sm(), arch.to_string());
        source.push_str(&format!(
            "#[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn has_{sm}(out: *mut u32) {{\n\
             let sm = if cfg!(target_feature = \"{sm}\") {{ 1 }} else {{ 0 }};\n\
             let compute = if cfg!(target_feature = \"{compute}\") {{ 2 }} else {{ 0 }};\n\
             unsafe {{ *out = 40 + sm + compute }} }}\n"
        ));
    }
    let krate = OneFile::new("architectures", &source);
    side_by_side(
        [NvvmArch::Compute75, NvvmArch::Compute90],
        |target: NvvmArch| {
            let ptx = build(&krate.builder().arch(target));
            for &arch in NvvmArch::ALL {
                let body = body(&ptx.text, &format!("has_{}", arch.sm()));
                let expected = if target.includes().any(|one| one == arch) {
                    ", 43;"
                } else {
                    ", 40;"
                };
                assert!(
                    body.iter()
                        .any(|line| line.starts_with("st.global") && line.ends_with(expected)),
                    "{arch} for {target}:\n{}",
                    body.join("\n")
                );
            }
        },
    );
}

/// LLVM's backend stops at these casts.
#[test]
fn floats_and_128_bit_integers_are_cast_into_each_other() {
    let mut source = String::new();
    for float in ["f32", "f64"] {
        for integer in ["i128", "u128"] {
            source.push_str(&format!(
                "#[unsafe(no_mangle)] pub unsafe extern \"ptx-kernel\" fn {float}_{integer}(a: *mut {float}, b: *mut {integer}) {{\n\
                 unsafe {{ *b = *a as {integer}; *b.add(1) = (*a.add(1)).to_int_unchecked();\n\
                 *a.add(2) = *b.add(2) as {float}; }} }}\n"
            ));
        }
    }
    let krate = OneFile::new("wide", &source);
    let ptx = build(&krate.builder().arch(ARCH));
    assert_eq!(ptx.kernels.len(), 4);
    ptxas(&ptx.text, ARCH);
}
