//! Kernel crates in upstream's style, and all of `cuda_std`, as PTX; the crates
//! are in `fixtures/upstream_style`.
//!
//! - `release` and `head` are written as one writes kernels against cuda_std 0.2.2
//!   and against the head of its repository. They must build as they are; the tests
//!   look at what their kernels become.
//! - `everything` calls every public function of this `cuda_std` that all targets have.
//!   ptxas must take each of them, and a function that stands for an instruction must
//!   be that instruction.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cuda_builder::{NvvmArch, Ptx};
use support::{body, built, count, fixture, position, ptxas, ptxas_unoptimised, side_by_side};

const TARGETS: [NvvmArch; 2] = [NvvmArch::Compute75, NvvmArch::Compute90];

/// The PTX of one of the crates. The first call builds it for both targets, side by side.
fn ptx(name: &str, arch: NvvmArch) -> Arc<Ptx> {
    let fixture = format!("upstream_style/{name}");
    side_by_side(TARGETS, |arch| built(&fixture, arch));
    built(&fixture, arch)
}

/// Asserts how often instructions occur in a kernel of `everything`.
fn instructions(arch: NvvmArch, kernel: &str, expected: &[(&str, usize)]) {
    let ptx = ptx("everything", arch);
    let body = body(&ptx.text, kernel);
    for &(instruction, times) in expected {
        assert_eq!(
            count(&body, instruction),
            times,
            "{instruction} in {kernel} for {}:\n{}",
            arch.sm(),
            body.join("\n")
        );
    }
}

/// As [`instructions`], for both targets.
fn on_both(kernel: &str, expected: &[(&str, usize)]) {
    for arch in TARGETS {
        instructions(arch, kernel, expected);
    }
}

// --- all of it -------------------------------------------------------------------

#[test]
fn ptxas_accepts_all_of_it() {
    side_by_side(TARGETS, |arch| {
        for name in ["release", "head", "everything"] {
            let ptx = ptx(name, arch);
            let assemble = match name {
                "everything" => ptxas_unoptimised,
                _ => ptxas,
            };
            let said = assemble(&ptx.text, arch);
            assert!(!ptx.kernels.is_empty());
            for kernel in &ptx.kernels {
                assert!(
                    said.contains(&format!("entry function '{kernel}'")),
                    "{kernel}"
                );
            }
        }
    });
}

#[test]
fn launch_bounds_are_directives_of_their_kernel() {
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let directives = |name: &str| -> Vec<&str> {
            let (_, rest) = ptx.text.split_once(&format!(".entry {name}(")).unwrap();
            let (head, _) = rest.split_once("\n{").unwrap();
            let (_, directives) = head.split_once("\n)").unwrap();
            let lines = directives.lines().map(|line| line.split("//").next());
            lines
                .map(|line| line.unwrap_or_default().trim())
                .filter(|line| !line.is_empty())
                .collect()
        };
        assert_eq!(
            directives("place_bounded"),
            [".maxntid 256", ".minnctapersm 4"]
        );
        assert_eq!(directives("place_bounded_above"), [".maxntid 128"]);
        assert_eq!(directives("place_barrier"), [""; 0]);
        assert!(!ptx.text.contains("launch_bounds"), "the statics are gone");
        assert!(!ptx.exports.iter().any(|name| name.contains("bounds.")));
    }
}

#[test]
fn what_the_launch_has_by_value_is_read_where_it_is() {
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let entry = |name: &str| -> &str {
            let (_, rest) = ptx.text.split_once(&format!(".entry {name}(")).unwrap();
            rest.split_once("\n}").unwrap().0
        };
        let table = entry("place_table");
        assert!(
            table.contains(".param .align 4 .b8 place_table_param_2[36]"),
            "{table}"
        );
        assert!(!table.contains("local"), "a copy in each thread: {table}");
        assert!(table.matches("ld.param").count() >= 4, "{table}");
        let anywhere = entry("place_table_anywhere");
        assert!(
            anywhere.contains(".param .align 4 .b8 place_table_anywhere_param_1[36]"),
            "{anywhere}"
        );
        assert!(!ptx.text.contains("grid_constant"), "the statics are gone");
        assert!(!ptx.exports.iter().any(|name| name.contains("constant.")));
    }
}

/// The leading identifier of a text.
fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &text[..end.unwrap_or(text.len())];
    (!name.is_empty() && !name.starts_with(char::is_numeric)).then_some(name)
}

/// Names of the functions that a file of `cuda_std` declares: public ones at the
/// left margin, methods of traits, and entries of tables such as
/// `functions! { .. }`.
fn declared(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let (mut in_table, mut in_own_trait) = (false, false);
    for line in source.lines() {
        if line.starts_with("mod tests") {
            break;
        }
        // A trait that is not public has methods that nobody else calls.
        in_own_trait = line != "}" && (in_own_trait || line.starts_with("trait "));
        if line.starts_with("pub ")
            && let Some((_, rest)) = line.split_once(" fn ")
        {
            names.extend(identifier(rest).map(str::to_owned));
        }
        if let Some(method) = line.strip_prefix("    fn ").filter(|_| line.ends_with(';'))
            && !in_own_trait
        {
            names.extend(identifier(method).map(str::to_owned));
        }
        in_table = match line {
            "functions! {"
            | "pointer_functions! {"
            | "to_integer! {"
            | "registers! {"
            | "mathematics! {"
            | "load! {"
            | "store! {"
            | "convert! {" => true,
            "}" => false,
            _ => in_table,
        };
        let entry = line
            .strip_prefix("    ")
            .filter(|entry| in_table && entry.contains(['(', '=', ',']));
        names.extend(entry.and_then(identifier).map(str::to_owned));
        // `"What it does." acos acosf(x);`
        if let Some((_, rest)) = entry.and_then(|entry| entry.strip_prefix('"')?.split_once("\" "))
        {
            let signature = rest.split('(').next().unwrap_or_default();
            names.extend(
                signature
                    .split(' ')
                    .filter_map(identifier)
                    .map(str::to_owned),
            );
        }
    }
    names
}

#[test]
fn everything_is_everything() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuda_std/src");
    let files = [
        "async_copy.rs",
        "cache.rs",
        "float.rs",
        "float_ext.rs",
        "half_precision.rs",
        "intrinsics.rs",
        "mem.rs",
        "misc.rs",
        "ptr.rs",
        "shared.rs",
        "texture.rs",
        "thread.rs",
        "warp.rs",
    ];
    // `cfg`'s function is a method; those of the atomics come from macros.
    let mut names: BTreeSet<String> = [
        "from_cuda_arch_env",
        "fetch_add",
        "fetch_sub",
        "fetch_and",
        "fetch_or",
        "fetch_xor",
        "fetch_min",
        "fetch_max",
        "swap",
        "compare_exchange",
        "load",
        "store",
        "from_ptr",
        "as_ptr",
        "into_inner",
    ]
    .map(str::to_owned)
    .into();
    for file in files {
        let found = declared(&fs::read_to_string(folder.join(file)).unwrap());
        assert!(!found.is_empty(), "found nothing in {file}");
        names.extend(found);
    }
    // The libdevice table alone has more than 300.
    assert!(names.len() > 400, "found only {} names", names.len());
    let fixture = fixture("upstream_style/everything/src");
    let text: String = fs::read_dir(&fixture)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let words: BTreeSet<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !words.contains(name.as_str()))
        .collect();
    assert!(missing.is_empty(), "not called by the fixture: {missing:?}");
}

#[test]
fn every_composed_atomic_is_there() {
    // 6 types × 11 operations less 4 of floats each, 5 orders, 3 scopes; the
    // fixture's macro names them all, and each is an instruction of its own.
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let (mut atoms, mut orders) = (0, [0; 4]);
        for kernel in ptx
            .kernels
            .iter()
            .filter(|name| name.starts_with("atomics_functions_"))
        {
            let body = body(&ptx.text, kernel);
            atoms += count(&body, "atom.");
            for (i, order) in ["relaxed", "acquire", "release", "acq_rel"]
                .iter()
                .enumerate()
            {
                orders[i] += count(&body, &format!("atom.{order}."));
            }
            let scope = match kernel.rsplit('_').next().unwrap() {
                "block" => ".cta.",
                "device" => ".gpu.",
                _ => ".sys.",
            };
            for line in body.iter().filter(|line| line.starts_with("atom.")) {
                assert!(line.contains(scope), "{kernel}: {line}");
            }
        }
        // Of `intrinsics`: (4 × 11 + 2 × 7) × 3 per order, volatile included.
        // Of `mid`: (4 × 9 + 2 × 7) × 3, acquire-release.
        assert_eq!(atoms, 174 * 5 + 150, "{}", arch.sm());
        assert_eq!(orders, [174, 174, 174, 174 + 150], "{}", arch.sm());
    }
}

// --- half precision --------------------------------------------------------------

#[test]
fn half_precision_is_the_hardwares() {
    on_both(
        "halves_f16",
        &[
            ("mul.rn.f16", 1),
            ("add.rn.f16", 1),
            ("cvt.f32.f16", 1),
            ("cvt.rn.f16.f32", 1),
            ("setp.lt.f16", 1),
            ("setp.le.f16", 1),
        ],
    );
    on_both(
        "halves_fused_f16",
        &[("fma.rn.f16", 1), ("cvt.rn.f16.f32", 1)],
    );
    on_both(
        "halves_pairs_f16",
        &[
            ("fma.rn.f16x2", 1),
            ("add.rn.f16x2", 1),
            ("sub.rn.f16x2", 1),
            ("mul.rn.f16x2", 1),
            ("setp.eq.f16x2", 2),
        ],
    );
    let hopper = |kernel: &str, expected: &[(&str, usize)]| {
        instructions(NvvmArch::Compute90, kernel, expected);
    };
    hopper(
        "halves_bf16",
        &[
            ("mul.rn.bf16", 1),
            ("add.rn.bf16", 1),
            ("setp.lt.bf16", 1),
            ("setp.le.bf16", 1),
        ],
    );
    hopper(
        "halves_fused_bf16",
        &[("fma.rn.bf16", 1), ("cvt.rn.bf16.f32", 1)],
    );
    on_both(
        "halves_converted_f16",
        &[("cvt.f32.f16", 1), ("setp.eq.f16", 1)],
    );
    hopper(
        "halves_converted_bf16",
        &[("setp.eq.bf16", 1), ("setp", 1), ("and.b", 0), ("or.b", 0)],
    );
    for float in ["f16", "bf16"] {
        hopper(
            &format!("halves_pairs_{float}"),
            &[
                (&format!("fma.rn.{float}x2"), 1),
                (&format!("add.rn.{float}x2"), 1),
                (&format!("sub.rn.{float}x2"), 1),
                (&format!("mul.rn.{float}x2"), 1),
                (&format!("min.{float}x2"), 1),
                (&format!("max.{float}x2"), 1),
                (&format!("setp.eq.{float}x2"), 2),
                (&format!("cvt.rn.{float}.f32"), 1),
            ],
        );
    }
}

// --- place and barriers ----------------------------------------------------------

#[test]
fn barriers_are_one_instruction() {
    on_both("place_barrier", &[("bar.sync", 1)]);
    on_both("place_barrier_count", &[("bar.red.popc.u32", 1)]);
    on_both("place_barrier_and", &[("bar.red.and.pred", 1)]);
    on_both("place_barrier_or", &[("bar.red.or.pred", 1)]);
}

#[test]
fn fences_have_their_scope() {
    on_both(
        "place_fences",
        &[("membar.gl", 2), ("membar.sys", 1), ("st.global", 4)],
    );
}

#[test]
fn the_clock_is_read_twice_around_what_waits() {
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let body = body(&ptx.text, "place_waiting");
        assert_eq!(
            body.iter().filter(|line| line.contains("%clock64")).count(),
            2
        );
        let first = body
            .iter()
            .position(|line| line.contains("%clock64"))
            .unwrap();
        let last = body
            .iter()
            .rposition(|line| line.contains("%clock64"))
            .unwrap();
        for instruction in ["nanosleep.u32", "pmevent", "brkpt"] {
            let at = position(&body, instruction);
            assert!(first < at && at < last, "{instruction}");
        }
    }
}

#[test]
fn the_compute_capability_is_a_constant() {
    for (arch, constant) in [
        (NvvmArch::Compute75, "7575;"),
        (NvvmArch::Compute90, "8080;"),
    ] {
        let ptx = ptx("everything", arch);
        let body = body(&ptx.text, "place_capability");
        assert_eq!(count(&body, "st.global.b32"), 1);
        assert!(
            body.iter()
                .any(|line| line.starts_with("st.global") && line.ends_with(constant))
        );
        assert_eq!(count(&body, "setp"), 0);
    }
}

// --- warps -----------------------------------------------------------------------

#[test]
fn shuffles_are_one_instruction_per_word() {
    on_both("warps_shuffle_down", &[("shfl.sync.down.b32", 1)]);
    on_both("warps_shuffle_up", &[("shfl.sync.up.b32", 1)]);
    on_both("warps_shuffle_idx", &[("shfl.sync.idx.b32", 1)]);
    on_both("warps_shuffle_xor", &[("shfl.sync.bfly.b32", 2)]);
    // Of 8, 16, 32, 64 and 128 bits, signed and not; f32, f64, f16, bf16.
    on_both(
        "warps_shuffle_types",
        &[("shfl.sync.bfly.b32", 2 * (1 + 1 + 1 + 2 + 4) + 5)],
    );
}

#[test]
fn a_shuffle_upwards_is_bounded_by_the_first_lane_of_its_segment() {
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let bounds = |kernel: &str| {
            let body = body(&ptx.text, kernel);
            let line = body[position(&body, "shfl.sync")];
            line.split(", ").nth(3).unwrap().to_owned()
        };
        // (32 - width) << 8, and the bound in the low bits: 0, or 31.
        assert_eq!(bounds("warps_shuffle_up"), "4096");
        assert_eq!(bounds("warps_shuffle_down"), "31");
        assert_eq!(bounds("warps_shuffle_idx"), "31");
    }
}

#[test]
fn votes_and_matches_are_one_instruction() {
    on_both(
        "warps_votes",
        &[
            ("vote.sync.all.pred", 1),
            ("vote.sync.any.pred", 1),
            ("vote.sync.ballot.b32", 1),
        ],
    );
    // Calls with the same bits are merged: i32 and f32 are u32's, i64 and f64 u64's.
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let body = body(&ptx.text, "warps_matches");
        for instruction in [
            "match.any.sync.b32",
            "match.any.sync.b64",
            "match.all.sync.b32",
            "match.all.sync.b64",
        ] {
            assert!(
                (1..=3).contains(&count(&body, instruction)),
                "{instruction}"
            );
        }
    }
    on_both(
        "warps_identity",
        &[("bar.warp.sync", 1), ("activemask.b32", 1)],
    );
}

#[test]
fn reductions_are_an_instruction_where_there_is_one() {
    let ampere = [
        "redux.sync.add.s32",
        "redux.sync.min.s32",
        "redux.sync.max.s32",
        "redux.sync.min.u32",
        "redux.sync.max.u32",
        "redux.sync.and.b32",
        "redux.sync.or.b32",
        "redux.sync.xor.b32",
    ];
    let new = ptx("everything", NvvmArch::Compute90);
    let body_new = body(&new.text, "warps_reduce");
    for instruction in ampere {
        assert!(count(&body_new, instruction) >= 1, "{instruction}");
    }
    assert_eq!(count(&body_new, "shfl"), 0);
    let old = ptx("everything", NvvmArch::Compute75);
    let body_old = body(&old.text, "warps_reduce");
    assert_eq!(count(&body_old, "redux"), 0);
    assert!(count(&body_old, "shfl.sync.idx.b32") >= 2);
}

// --- memory ----------------------------------------------------------------------

#[test]
fn shared_memory_is_addressed_as_such() {
    on_both(
        "memory_shared",
        &[
            ("st.shared", 3),
            ("ld.shared", 3),
            ("bar.sync", 1),
            ("ld.b32", 0),
            ("st.b32", 0),
        ],
    );
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        let dynamic = ".extern .shared .align 16 .b8 __cuda_std_dynamic_shared[]";
        assert!(ptx.text.contains(dynamic), "no {dynamic}");
    }
}

#[test]
fn statics_are_in_their_address_space_and_exported() {
    on_both("memory_statics", &[("ld.const", 2), ("ld.global.b32", 1)]);
    for arch in TARGETS {
        let ptx = ptx("everything", arch);
        for export in ["TABLE", "COUNTER"] {
            assert!(ptx.exports.iter().any(|name| name == export), "{export}");
        }
        assert!(ptx.text.contains(".visible .const .align 4 .b8 TABLE[64]"));
        assert!(
            ptx.text
                .contains(".visible .global .align 4 .b8 COUNTER[4] = {7};")
        );
    }
}

/// How often a text occurs in a kernel: instructions of inline PTX share a line
/// with others.
fn occurrences(arch: NvvmArch, kernel: &str, text: &str) -> usize {
    let ptx = ptx("everything", arch);
    body(&ptx.text, kernel).join("\n").matches(text).count()
}

#[test]
fn cached_accesses_say_how() {
    for arch in TARGETS {
        for (kernel, load, store) in [
            ("memory_readonly", "ld.global.nc.", "st.global.cs."),
            ("memory_streaming", "ld.global.cs.", "st.global.cs."),
            ("memory_l2", "ld.global.cg.", "st.global.cg."),
        ] {
            for width in ["u8", "u16", "u32", "u64", "v4.u32"] {
                assert_eq!(
                    occurrences(arch, kernel, &format!("{load}{width} ")),
                    1,
                    "{kernel} {width}"
                );
                assert_eq!(
                    occurrences(arch, kernel, &format!("{store}{width} ")),
                    1,
                    "{kernel} {width}"
                );
            }
        }
    }
}

#[test]
fn textures_are_fetched_by_handle() {
    on_both("memory_tex1d_fetch", &[("tex.1d.v4.f32.s32", 1)]);
    on_both("memory_tex1d", &[("tex.1d.v4.f32.f32", 1)]);
    on_both("memory_tex2d", &[("tex.2d.v4.f32.f32", 1)]);
}

#[test]
fn asynchronous_copies_are_asynchronous_where_they_can_be() {
    let new = NvvmArch::Compute90;
    instructions(
        new,
        "memory_async",
        &[
            ("cp.async.commit_group;", 2),
            ("cp.async.wait_group 1;", 1),
            ("cp.async.wait_all;", 1),
        ],
    );
    let ptx = ptx("everything", new);
    let body = body(&ptx.text, "memory_async");
    // How each copies, and how many bytes.
    let mut copies: Vec<_> = body
        .iter()
        .filter(|line| line.starts_with("cp.async.c") && line.contains("shared.global"))
        .filter_map(|line| Some((line.split(' ').next()?, line.rsplit(' ').next()?)))
        .map(|(copy, bytes)| (copy.trim(), bytes))
        .collect();
    copies.sort_unstable();
    assert_eq!(
        copies,
        [
            ("cp.async.ca.shared.global", "16;"),
            ("cp.async.ca.shared.global", "4;"),
            ("cp.async.ca.shared.global", "8;"),
            ("cp.async.cg.shared.global", "16;"),
        ]
    );
    // It does not become a generic address.
    assert_eq!(count(&body, "cvta.to.shared"), 0);
    // Nothing that was copied is read before it has been waited for.
    let wait = position(&body, "cp.async.wait_group");
    assert_eq!(count(&body[..wait], "ld.shared"), 0);
    assert_eq!(count(&body[wait..], "ld.shared"), 4);

    let old = NvvmArch::Compute75;
    assert_eq!(occurrences(old, "memory_async", "cp.async"), 0);
    instructions(
        old,
        "memory_async",
        &[
            ("st.shared.b32", 1),
            ("st.shared.b64", 1),
            ("st.shared.v4.b32", 2),
            ("bar.sync", 2),
        ],
    );
}

#[test]
fn pointers_are_asked_and_converted() {
    for arch in TARGETS {
        for space in ["global", "shared", "const", "local"] {
            assert!(occurrences(arch, "memory_spaces", &format!("isspacep.{space}")) >= 1);
            assert!(occurrences(arch, "memory_spaces", &format!("cvta.to.{space}.u64")) >= 1);
            assert!(occurrences(arch, "memory_spaces", &format!("cvta.{space}.u64")) >= 1);
        }
        assert_eq!(occurrences(arch, "memory_sizes", "%dynamic_smem_size"), 1);
        assert_eq!(occurrences(arch, "memory_sizes", "%total_smem_size"), 1);
        // The heap, and a pointer kept in front of what is aligned beyond it.
        assert!(occurrences(arch, "memory_heap", "malloc, (") >= 1);
        assert!(occurrences(arch, "memory_heap", "free, (") >= 1);
    }
}

// --- arithmetic ------------------------------------------------------------------

#[test]
fn arithmetic_is_the_instruction_it_names() {
    on_both(
        "floats_fma",
        &[("fma.rn.f32", 1), ("mul", 0), ("add.rn", 0)],
    );
    on_both(
        "floats_uncontracted",
        &[("mul.rn.f32", 1), ("add.rn.f32", 1), ("fma", 0)],
    );
    on_both(
        "floats_rsqrt",
        &[
            ("rsqrt.approx.f32", 1),
            ("rsqrt.approx.ftz.f32", 1),
            ("sqrt.rn.f32", 1),
        ],
    );
    on_both(
        "floats_rsqrt_f64",
        &[("rsqrt.approx.f64", 1), ("sqrt.rn.f64", 1)],
    );
    // f32 has an instruction for it from sm_80 on. Before, and for f64, it is the
    // instruction that prefers numbers, and a comparison with NaN.
    for (arch, nan, number) in [(TARGETS[0], 0, 1), (TARGETS[1], 1, 0)] {
        instructions(
            arch,
            "floats_extrema",
            &[
                ("min.NaN.f32", nan),
                ("max.NaN.f32", nan),
                ("min.f32", number),
                ("max.f32", number),
            ],
        );
    }
    on_both(
        "floats_extrema_f64",
        &[("min.f64", 1), ("max.f64", 1), ("setp.nan", 1)],
    );
    on_both(
        "libdevice_directions",
        &[
            ("add.rm.f32", 1),
            ("mul.rp.f32", 1),
            ("fma.rz.f32", 1),
            ("sqrt.rp.f32", 1),
            ("div.rz.f32", 1),
            ("cvt.rm.f32.s64", 1),
        ],
    );
    on_both(
        "libdevice_fast",
        &[
            ("sin.approx.f32", 1),
            ("cos.approx.f32", 1),
            ("ex2.approx.f32", 1),
            ("lg2.approx.f32", 1),
            ("div.approx.f32", 1),
        ],
    );
    // What the hardware rounds is an instruction: floor, ceil, trunc.
    for arch in TARGETS {
        for instruction in ["cvt.rmi.f32.f32", "cvt.rpi.f32.f32", "cvt.rzi.f32.f32"] {
            assert!(
                occurrences(arch, "floats_f32_a", instruction) >= 1,
                "{instruction}"
            );
        }
    }
}

#[test]
fn atomics_carry_order_and_scope() {
    for arch in TARGETS {
        for text in [
            "atom.relaxed.gpu.add.f32",
            "atom.acq_rel.cta.max.u32",
            "fence.sc.sys;",
            "atom.acquire.sys.add.u64",
            "st.release.sys.b64",
            "ld.acquire.sys.b64",
        ] {
            assert_eq!(occurrences(arch, "atomics_one_each", text), 1, "{text}");
        }
        // `SeqCst`: the fence comes first.
        let ptx = ptx("everything", arch);
        let body = body(&ptx.text, "atomics_one_each");
        assert!(position(&body, "fence.sc.sys") < position(&body, "atom.acquire.sys"));
        for (scope, suffix) in [("block", "cta"), ("device", "gpu"), ("system", "sys")] {
            let kernel = format!("atomics_fences_{scope}");
            assert!(occurrences(arch, &kernel, &format!("fence.sc.{suffix};")) >= 2);
            assert!(occurrences(arch, &kernel, &format!("fence.acq_rel.{suffix};")) >= 2);
            assert!(occurrences(arch, &kernel, &format!("ld.relaxed.{suffix}.b32")) >= 1);
            assert!(occurrences(arch, &kernel, &format!("st.release.{suffix}.b64")) >= 1);
            assert!(occurrences(arch, &kernel, "ld.volatile.b32") >= 1);
        }
        assert_eq!(
            occurrences(arch, "atomics_bounded", "atom.relaxed.gpu.inc.u32"),
            1
        );
        assert_eq!(
            occurrences(arch, "atomics_bounded", "atom.relaxed.gpu.dec.u32"),
            1
        );
    }
}

#[test]
fn printing_and_assertions_are_system_calls() {
    for arch in TARGETS {
        assert!(occurrences(arch, "printing_lines", "vprintf, (") >= 3);
        let ptx = ptx("everything", arch);
        assert!(
            ptx.text
                .contains(".extern .func  (.param .b32 func_retval0) vprintf")
        );
        assert!(ptx.text.contains(".extern .func __assertfail"));
        // `core`'s assertions print nothing: a trap.
        assert!(occurrences(arch, "printing_panics", "trap;") >= 1);
        assert_eq!(occurrences(arch, "printing_panics", "__assertfail"), 0);
    }
}

// --- upstream's style ------------------------------------------------------------

/// The types of an entry point's parameters.
fn parameters(ptx: &Ptx, kernel: &str) -> Vec<String> {
    let start = ptx
        .text
        .find(&format!(".entry {kernel}("))
        .expect("the kernel");
    let list = &ptx.text[start..start + ptx.text[start..].find(")").unwrap()];
    list.lines()
        .filter_map(|line| line.trim().strip_prefix(".param "))
        .map(|line| line.trim_end_matches(','))
        .map(|line| match line.split_once('[') {
            // `.align 8 .b8 name[32]`
            Some((declaration, size)) => {
                format!(
                    "{} bytes {}",
                    size.trim_end_matches(']'),
                    declaration.split(" .b8").next().unwrap()
                )
            }
            None => line
                .split(' ')
                .next()
                .unwrap()
                .trim_start_matches('.')
                .to_owned(),
        })
        .collect()
}

#[test]
fn slices_are_two_parameters_and_structs_their_bytes() {
    for arch in TARGETS {
        let (release, head) = (ptx("release", arch), ptx("head", arch));
        assert_eq!(parameters(&release, "add"), ["u64"; 5]);
        assert_eq!(parameters(&head, "vecadd"), ["u64"; 5]);
        // Vec3<f32>, u32, u32.
        assert_eq!(
            parameters(&release, "postprocess"),
            ["u64", "u64", "20 bytes .align 4", "u64"]
        );
        // UVec2 (8 bytes, aligned to 8, as in CUDA C++), Vec3, Vec2 (the same).
        assert_eq!(
            parameters(&head, "postprocess"),
            ["u64", "u64", "32 bytes .align 8", "u64"]
        );
        assert_eq!(
            parameters(&head, "gemm_tiled"),
            [
                "u64", "u64", "u64", "u64", "u64", "u64", "u64", "u64", "f32", "f32"
            ]
        );
    }
}

#[test]
fn kernels_of_the_release_build_as_they_are() {
    for arch in TARGETS {
        let release = ptx("release", arch);
        assert_eq!(
            release.kernels,
            [
                "add",
                "check",
                "dot",
                "postprocess",
                "report",
                "reverse",
                "scale"
            ]
        );
        for export in ["SCALE", "twice"] {
            assert!(
                release.exports.iter().any(|name| name == export),
                "{export}"
            );
        }
        let kernel = |name: &str| body(&release.text, name);
        assert_eq!(count(&kernel("dot"), "bar.sync"), 1);
        assert_eq!(count(&kernel("reverse"), "st.shared"), 1);
        assert_eq!(count(&kernel("reverse"), "ld.shared"), 1);
        assert_eq!(count(&kernel("scale"), "ld.const"), 1);
        assert!(
            kernel("dot")
                .join("\n")
                .contains("atom.relaxed.gpu.add.f32")
        );
        assert!(kernel("report").join("\n").contains("vprintf"));
    }
}

#[test]
fn kernels_of_the_head_build_as_they_are() {
    for arch in TARGETS {
        let head = ptx("head", arch);
        assert_eq!(
            head.kernels,
            [
                "gemm_tiled",
                "postprocess",
                "reverse_array",
                "sdot",
                "staged_copy",
                "vecadd",
                "warp_sums",
            ]
        );
        let kernel = |name: &str| body(&head.text, name);
        assert_eq!(count(&kernel("gemm_tiled"), "bar.sync"), 2);
        assert_eq!(count(&kernel("gemm_tiled"), "st.shared"), 2);
        assert_eq!(count(&kernel("sdot"), "bar.sync"), 1);
        assert_eq!(count(&kernel("warp_sums"), "shfl.sync.down.b32"), 5);
        assert_eq!(count(&kernel("reverse_array"), "st.shared"), 1);
    }
}

#[test]
fn the_fixtures_are_in_their_styles() {
    let read = |path: &str| -> String {
        let path: PathBuf = fixture("upstream_style").join(path);
        fs::read_to_string(path).unwrap()
    };
    let release = read("release/src/lib.rs");
    assert!(release.contains("register_attr(nvvm_internal)"));
    assert!(read("release/Cargo.toml").contains("edition = \"2021\""));
    let head = read("head/src/lib.rs");
    assert!(!head.contains("#!["), "no crate attribute at all");
}
