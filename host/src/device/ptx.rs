//! The PTX that the library contains, and the choice of the PTX for a device.

use crate::ComputeCapability;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// The source of a device's kernels.
#[derive(Clone)]
pub(super) enum Source {
    /// The PTX of this library, with the highest target that the device can run.
    Embedded,
    /// PTX from the caller.
    Given(String),
}

struct Embedded {
    needs: ComputeCapability,
    text: &'static str,
}

/// The lowest target comes first. The build script checks that the files exist and were built from
/// the kernel sources of this version.
const EMBEDDED: [Embedded; 2] = [
    Embedded {
        needs: ComputeCapability { major: 7, minor: 5 },
        text: include_str!("../../ptx/halo_sm_75.ptx"),
    },
    Embedded {
        needs: ComputeCapability { major: 9, minor: 0 },
        text: include_str!("../../ptx/halo_sm_90.ptx"),
    },
];

/// The PTX with the highest target that `device` can run, or, as an error, the PTX with the lowest
/// target.
///
/// PTX runs on its own target and every later one.
pub(super) fn embedded_for(device: ComputeCapability) -> Result<&'static str, &'static str> {
    EMBEDDED
        .iter()
        .rev()
        .find(|ptx| ptx.needs <= device)
        .map_or(Err(EMBEDDED[0].text), |ptx| Ok(ptx.text))
}

/// The header of a PTX module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// `.target` without modifiers, for example `sm_90`; `an unknown target` without one.
    pub(super) target: String,
    /// `.version`, for example `8.0`; `unknown` without one.
    pub(super) version: String,
    /// The lowest compute capability that can run the target.
    pub(super) needs: Option<ComputeCapability>,
}

/// Reads the directives `.version` and `.target`; only comments can precede them.
pub(super) fn header(ptx: &str) -> Header {
    let directive = |name: &str| {
        ptx.lines()
            .find_map(|line| line.trim_start().strip_prefix(name))
            .and_then(|rest| rest.split([',', ' ', '\t']).find(|word| !word.is_empty()))
    };
    let target = directive(".target");
    Header {
        target: target.unwrap_or("an unknown target").to_owned(),
        version: directive(".version").unwrap_or("unknown").to_owned(),
        needs: target.and_then(capability_of),
    }
}

/// `sm_75` → 7.5, `sm_90a` → 9.0, `sm_100` → 10.0.
fn capability_of(target: &str) -> Option<ComputeCapability> {
    let digits = target
        .strip_prefix("sm_")?
        .trim_end_matches(|last: char| last.is_ascii_lowercase());
    let number: u32 = digits.parse().ok()?;
    (number >= 10).then_some(ComputeCapability {
        major: number / 10,
        minor: number % 10,
    })
}

/// A part of a PTX module that is a module by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submodule {
    pub(super) text: Cow<'static, str>,
    /// The entry points and variables that it defines; empty for the whole module, which defines
    /// all of them.
    pub(super) defines: Vec<String>,
}

impl Submodule {
    /// The whole module as one part.
    pub(super) const fn whole(text: Cow<'static, str>) -> Self {
        Self {
            text,
            defines: Vec::new(),
        }
    }
}

/// Splits a module into parts: for each family, one part per set of constants that its kernels
/// read.
///
/// A launch sets up all constant memory of its module, even if the kernel does not read it; on an
/// H200 that took 0.1 to 0.2 µs of a launch of 1.5 to 2.7 µs. With parts, kernels do not pay for
/// constants that they do not read, and the driver compiles only the families that a program uses.
///
/// Kernels that share a variable stay in one part, so that the variable exists only once. If the
/// PTX does not have the form that LLVM produces for kernels without calls, the module stays whole.
pub(super) fn parts(text: &'static str) -> Vec<Submodule> {
    split(text).unwrap_or_else(|| vec![Submodule::whole(Cow::Borrowed(text))])
}

/// An item at the top level of a module: an entry point or a variable.
struct Item<'a> {
    text: &'a str,
    name: &'a str,
    kind: ItemKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Entry,
    /// A name for memory that the launch supplies; every part may declare it.
    External,
    Constant,
    Variable,
}

fn split(text: &str) -> Option<Vec<Submodule>> {
    let (header, items) = items(text)?;
    // For each name of a variable, its item.
    let variables: HashMap<&str, usize> = items
        .iter()
        .enumerate()
        .filter(|(_, item)| item.kind != ItemKind::Entry)
        .map(|(at, item)| (item.name, at))
        .collect();
    let mentioned: Vec<BTreeSet<usize>> = items
        .iter()
        .map(|item| {
            words(item.text)
                .filter_map(|word| variables.get(word).copied())
                .collect()
        })
        .collect();

    // Items that must stay together end up in the same group.
    let mut group: Vec<usize> = (0..items.len()).collect();
    let mut unite = |a: usize, b: usize| {
        let (from, to) = (group[a].max(group[b]), group[a].min(group[b]));
        for member in &mut group {
            if *member == from {
                *member = to;
            }
        }
    };
    let mut first_of_kind: HashMap<(&str, Vec<usize>), usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        if item.kind == ItemKind::Entry {
            let family = item.name.split('_').next().unwrap_or_default();
            let constants = mentioned[at]
                .iter()
                .copied()
                .filter(|&variable| items[variable].kind == ItemKind::Constant)
                .collect();
            unite(at, *first_of_kind.entry((family, constants)).or_insert(at));
        }
        for &variable in &mentioned[at] {
            if items[variable].kind != ItemKind::External {
                unite(at, variable);
            }
        }
    }

    let mut groups: Vec<usize> = (0..items.len())
        .filter(|&at| items[at].kind != ItemKind::External)
        .map(|at| group[at])
        .collect();
    groups.sort_unstable();
    groups.dedup();
    let parts = groups.into_iter().map(|wanted| {
        let members = || (0..items.len()).filter(|&at| group[at] == wanted);
        let needed: BTreeSet<usize> = members()
            .flat_map(|member| mentioned[member].iter().copied())
            .chain(members())
            .collect();
        let mut text = header.to_owned();
        for &at in &needed {
            text.push('\n');
            text.push_str(items[at].text);
        }
        text.push('\n');
        Submodule {
            text: Cow::Owned(text),
            defines: members().map(|at| items[at].name.to_owned()).collect(),
        }
    });
    Some(parts.collect())
}

/// The directives before the items, and the items; `None` if the form of the PTX is unknown.
fn items(text: &str) -> Option<(&str, Vec<Item<'_>>)> {
    const LAST_OF_HEADER: &str = ".address_size 64\n";
    let (header, _) = text.split_once(LAST_OF_HEADER)?;
    let (header, body) = text.split_at(header.len() + LAST_OF_HEADER.len());

    let mut items = Vec::new();
    let mut start = None;
    let (mut at, mut depth) = (0_usize, 0_usize);
    for line in body.split_inclusive('\n') {
        let code = line.split("//").next().unwrap_or_default().trim();
        let end = at + line.len();
        if !code.is_empty() {
            start.get_or_insert(at);
            depth = (depth + code.matches('{').count()).checked_sub(code.matches('}').count())?;
            if depth == 0 && code.ends_with([';', '}']) {
                items.push(item(body[start.take()?..end].trim())?);
            }
        }
        at = end;
    }
    (start.is_none() && !items.is_empty()).then_some((header, items))
}

fn item(text: &str) -> Option<Item<'_>> {
    let declaration = text.lines().next()?;
    // Code that links to other modules or calls functions is not from this library.
    if [".func", ".weak", ".common", ".alias", ".section", ".file"]
        .iter()
        .any(|directive| declaration.contains(directive))
    {
        return None;
    }
    if let Some((_, rest)) = declaration.split_once(".entry ") {
        return Some(Item {
            text,
            name: words(rest).next()?,
            kind: ItemKind::Entry,
        });
    }
    let kind = if declaration.starts_with(".extern .shared") {
        ItemKind::External
    } else if declaration.contains(".extern") {
        return None;
    } else if declaration.contains(".const ") {
        ItemKind::Constant
    } else if declaration.contains(".global ") || declaration.contains(".shared ") {
        ItemKind::Variable
    } else {
        return None;
    };
    // The name ends before the extent or the value.
    let declared = declaration.split(['[', '=', ';']).next()?;
    Some(Item {
        text,
        name: words(declared).last()?,
        kind,
    })
}

/// The names, numbers and directives in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$')))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn capability(major: u32, minor: u32) -> ComputeCapability {
        ComputeCapability { major, minor }
    }

    #[test]
    fn the_header_is_read_past_comments() {
        let ptx = "// generated\n//\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n";
        assert_eq!(
            header(ptx),
            Header {
                target: "sm_90a".to_owned(),
                version: "8.0".to_owned(),
                needs: Some(capability(9, 0)),
            }
        );
        assert_eq!(header("no ptx at all").needs, None);
        assert_eq!(capability_of("sm_100"), Some(capability(10, 0)));
        assert_eq!(capability_of("sm_75"), Some(capability(7, 5)));
        assert_eq!(capability_of("compute_75"), None);
    }

    #[test]
    fn a_device_gets_the_highest_target_that_it_can_run() {
        let target = |device| embedded_for(device).map(|ptx| header(ptx).target);
        assert_eq!(target(capability(7, 5)).as_deref(), Ok("sm_75"));
        assert_eq!(target(capability(8, 9)).as_deref(), Ok("sm_75"));
        assert_eq!(target(capability(9, 0)).as_deref(), Ok("sm_90"));
        assert_eq!(target(capability(12, 1)).as_deref(), Ok("sm_90"));
        let lowest = embedded_for(capability(7, 0)).expect_err("7.0 is below the lowest target");
        assert_eq!(header(lowest).target, "sm_75");
    }

    #[test]
    fn embedded_ptx_is_for_the_target_it_is_filed_under() {
        for ptx in &EMBEDDED {
            assert_eq!(header(ptx.text).needs, Some(ptx.needs));
        }
        assert!(EMBEDDED.is_sorted_by_key(|ptx| ptx.needs));
    }

    const MODULE: &str = "\
// built by hand
.version 7.8
.target sm_90
.address_size 64

	// .globl	a_one // -- Begin function a_one
.extern .shared .align 16 .b8 dynamic[];
.visible .const .align 4 .b8 WEIGHTS[48];
.visible .const .align 8 .b8 TABLE[540];
.visible .global .align 4 .u32 COUNTER = 5;
.global .align 4 .b8 UNREAD[8] = {1, 2, 3, 4, 5, 6, 7, 8};
// a_two_tile has been demoted
.visible .entry a_four()
{
	ld.const.b32 	%r1, [WEIGHTS];
	ret;
}
                                        // @a_one
.visible .entry a_one(
	.param .u64 .ptr .align 1 a_one_param_0
)
.maxntid 256
{
	.reg .b32 	%r<2>;
	ld.const.b32 	%r1, [WEIGHTS+4];	// a comment with a {
	{
.reg .b32 unused<3>;
tex.2d.v4.f32.f32 {%r1, unused0, unused1, unused2}, [%rd1, {%f1, %f2}];
	}
	ret;
                                        // -- End function
}
.visible .entry a_two()
{
	mov.b64 	%rd1, dynamic;
	ret;
}
.visible .entry a_three()
{
	ld.const.b64 	%rd1, [TABLE];
	ret;
}
.visible .entry b_one()
{
	atom.add.u32 	%r1, [COUNTER], 1;
	mov.b64 	%rd1, dynamic;
	ret;
}
.visible .entry c_one()
{
	ld.global.u32 	%r1, [COUNTER];
	ret;
}
";

    fn defined(parts: &[Submodule]) -> Vec<Vec<&str>> {
        parts
            .iter()
            .map(|part| part.defines.iter().map(String::as_str).collect())
            .collect()
    }

    #[test]
    fn kernels_are_parted_by_family_and_constants() {
        let parts = parts(MODULE);
        assert_eq!(
            defined(&parts),
            [
                vec!["WEIGHTS", "a_four", "a_one"],
                vec!["TABLE", "a_three"],
                // One counter for both of the kernels that share it.
                vec!["COUNTER", "b_one", "c_one"],
                vec!["UNREAD"],
                vec!["a_two"],
            ]
        );
        for part in &parts {
            assert_eq!(header(&part.text).target, "sm_90");
            assert!(part.text.starts_with("// built by hand"));
        }
        let has = |word: &str| -> Vec<bool> {
            parts.iter().map(|part| part.text.contains(word)).collect()
        };
        assert_eq!(has("WEIGHTS[48]"), [true, false, false, false, false]);
        assert_eq!(has("TABLE[540]"), [false, true, false, false, false]);
        assert_eq!(has("COUNTER = 5;"), [false, false, true, false, false]);
        assert_eq!(has(".b8 dynamic[];"), [false, false, true, false, true]);
        assert_eq!(has(".maxntid 256"), [true, false, false, false, false]);
        // Whole, up to the brace that ends it.
        assert!(parts[0].text.ends_with("-- End function\n}\n"));
    }

    #[test]
    fn what_is_not_understood_stays_whole() {
        let with = |line: &str| -> &'static str {
            let text = MODULE.replace(
                ".visible .entry a_two",
                &format!("{line}\n.visible .entry a_two"),
            );
            Box::leak(text.into_boxed_str())
        };
        for line in [
            ".func helper(.param .b32 x) { ret; }",
            ".extern .func (.param .b32 r) vprintf(.param .b64 x);",
            ".extern .global .align 4 .u32 ELSEWHERE;",
            ".section .debug_info { }",
            "}",
            "{",
        ] {
            let text = with(line);
            assert_eq!(
                parts(text),
                [Submodule::whole(Cow::Borrowed(text))],
                "{line}"
            );
        }
        assert_eq!(parts("no ptx at all").len(), 1);
    }

    #[test]
    fn every_embedded_kernel_is_in_one_part() {
        for ptx in &EMBEDDED {
            let parts = parts(ptx.text);
            let mut entries = 0;
            for part in &parts {
                let own = part.text.matches(".visible .entry ").count();
                let defined = |name: &&String| part.text.contains(&format!(".entry {name}("));
                assert_eq!(part.defines.iter().filter(defined).count(), own);
                entries += own;
            }
            assert_eq!(entries, ptx.text.matches(".visible .entry ").count());
            // Every kernel reads all the constants that its part has.
            let mut with_constants = 0;
            for part in &parts {
                let (_, items) = items(&part.text).expect("a part can be taken apart");
                let constants: Vec<&str> = items
                    .iter()
                    .filter(|item| item.kind == ItemKind::Constant)
                    .map(|item| item.name)
                    .collect();
                with_constants += usize::from(!constants.is_empty());
                for kernel in items.iter().filter(|item| item.kind == ItemKind::Entry) {
                    let reads = |name| words(kernel.text).any(|word| word == name);
                    assert!(constants.iter().all(|&name| reads(name)), "{}", kernel.name);
                    let loads = kernel.text.contains("ld.const");
                    assert!(loads || constants.is_empty(), "{}", kernel.name);
                }
            }
            // The textbook's in derivative3d and in stencil1d.
            assert_eq!(with_constants, 2);
        }
    }
}
