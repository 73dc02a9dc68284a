//! Fences around atomic operations whose ordering LLVM's NVPTX backend drops.
//!
//! LLVM 22 lowers every `atomicrmw` to a plain `atom`, which PTX defines as
//! relaxed and at device scope, whatever the ordering says. `fetch_add(AcqRel)`
//! would order nothing, and "the last block adds up the partial sums" would read
//! stale sums. So the ordering is taken off the operation and put into fences:
//!
//! | ordering | before | after |
//! |---|---|---|
//! | acquire | | `fence acquire` |
//! | release | `fence release` | |
//! | acq_rel | `fence release` | `fence acquire` |
//! | seq_cst | `fence seq_cst` | `fence acquire` |
//!
//! The fences have device scope, as the operation itself does.
//!
//! `cmpxchg`, loads and stores keep their orderings on sm_70 and later, where the backend honours
//! them (at system scope). Older targets have no orderings: the backend drops that of `cmpxchg`
//! silently and stops at ordered loads and stores. There all of them get fences from this pass.

use super::lexer::{Kind, Token, tokens};
use super::module::Module;

/// The first target whose instructions carry orderings.
const ORDERED_FROM: u32 = 70;

/// Inserts the fences for a target of the given compute capability, times ten.
pub(crate) fn fence(module: &mut Module, capability: u32) {
    for function in &mut module.functions {
        let Some(body) = &mut function.body else {
            continue;
        };
        let mut out = Vec::with_capacity(body.len());
        for line in body.drain(..) {
            match fenced(&line, capability) {
                Some(lines) => out.extend(lines),
                None => out.push(line),
            }
        }
        *body = out;
    }
}

/// The lines that replace `line`; `None` when it stays.
fn fenced(line: &str, capability: u32) -> Option<Vec<String>> {
    if !line.contains("atomic") && !line.contains("cmpxchg") {
        return None;
    }
    let all = tokens(line);
    // `%7 = atomicrmw …` or `store atomic …`
    let opcode = match all.get(1) {
        Some(token) if token.is_punct(b'=') => 2,
        _ => 0,
    };
    let operation = all.get(opcode)?;
    let atomic = all.get(opcode + 1).is_some_and(|token| token.is("atomic"));
    let old = capability < ORDERED_FROM;
    let applies = operation.is("atomicrmw")
        || (old && operation.is("cmpxchg"))
        || (old && atomic && (operation.is("load") || operation.is("store")));
    if !applies {
        return None;
    }
    let orderings: Vec<&Token<'_>> = all[opcode + 1..]
        .iter()
        .filter(|token| token.kind == Kind::Word && is_ordering(token.text))
        .collect();
    // cmpxchg has two: of success and of failure. The fences do for both.
    let acquires = orderings
        .iter()
        .any(|o| matches!(o.text, "acquire" | "acq_rel" | "seq_cst"));
    let releases = orderings
        .iter()
        .any(|o| matches!(o.text, "release" | "acq_rel"));
    let sequential = orderings.iter().any(|o| o.text == "seq_cst");
    if !(acquires || releases) {
        return None;
    }
    // A store acquires nothing, also when it is sequentially consistent.
    let acquires = acquires && !operation.is("store");

    let scope = all
        .iter()
        .position(|token| token.is("syncscope"))
        .and_then(|at| all.get(at + 2))
        .map_or("\"device\"", |scope| scope.text);
    let indent = &line[..line.len() - line.trim_start().len()];
    let fence = |ordering: &str| format!("{indent}fence syncscope({scope}) {ordering}");

    let mut relaxed = String::with_capacity(line.len());
    let mut copied = 0;
    for ordering in &orderings {
        relaxed.push_str(&line[copied..ordering.start]);
        relaxed.push_str("monotonic");
        copied = ordering.end();
    }
    relaxed.push_str(&line[copied..]);

    let mut lines = Vec::with_capacity(3);
    if sequential {
        lines.push(fence("seq_cst"));
    } else if releases {
        lines.push(fence("release"));
    }
    lines.push(relaxed);
    if acquires {
        lines.push(fence("acquire"));
    }
    Some(lines)
}

fn is_ordering(word: &str) -> bool {
    matches!(
        word,
        "monotonic" | "acquire" | "release" | "acq_rel" | "seq_cst"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(line: &str, capability: u32) -> Vec<String> {
        fenced(line, capability).unwrap_or_else(|| vec![line.to_owned()])
    }

    #[test]
    fn read_modify_write_is_fenced_on_every_target() {
        for capability in [60, 75, 90, 120] {
            assert_eq!(
                lines(
                    "  %1 = atomicrmw add ptr @acquire, i32 1 acq_rel, align 4",
                    capability
                ),
                [
                    "  fence syncscope(\"device\") release",
                    "  %1 = atomicrmw add ptr @acquire, i32 1 monotonic, align 4",
                    "  fence syncscope(\"device\") acquire",
                ]
            );
        }
    }

    #[test]
    fn each_ordering_gets_its_fences() {
        let with = |ordering: &str| {
            lines(
                &format!("%1 = atomicrmw xchg ptr %p, i32 1 {ordering}, align 4"),
                90,
            )
            .iter()
            .map(|line| line.split(' ').next_back().unwrap().to_owned())
            .collect::<Vec<_>>()
        };
        assert_eq!(with("monotonic"), ["4"]);
        assert_eq!(with("acquire"), ["4", "acquire"]);
        assert_eq!(with("release"), ["release", "4"]);
        assert_eq!(with("acq_rel"), ["release", "4", "acquire"]);
        assert_eq!(with("seq_cst"), ["seq_cst", "4", "acquire"]);
    }

    #[test]
    fn a_named_scope_is_kept() {
        assert_eq!(
            lines(
                "  %1 = atomicrmw add ptr %p, i32 1 syncscope(\"block\") release, align 4",
                90
            )[0],
            "  fence syncscope(\"block\") release"
        );
    }

    #[test]
    fn compare_exchange_and_plain_accesses_are_fenced_on_old_targets_only() {
        let exchange = "  %1 = cmpxchg weak ptr %p, i32 0, i32 1 acq_rel monotonic, align 4";
        let load = "  %1 = load atomic i32, ptr %p acquire, align 4";
        let store = "  store atomic i32 1, ptr %p seq_cst, align 4";
        for line in [exchange, load, store] {
            assert_eq!(lines(line, 75), [line]);
        }
        assert_eq!(
            lines(exchange, 61),
            [
                "  fence syncscope(\"device\") release",
                "  %1 = cmpxchg weak ptr %p, i32 0, i32 1 monotonic monotonic, align 4",
                "  fence syncscope(\"device\") acquire",
            ]
        );
        assert_eq!(lines(load, 61).len(), 2);
        assert_eq!(
            lines(store, 61),
            [
                "  fence syncscope(\"device\") seq_cst",
                "  store atomic i32 1, ptr %p monotonic, align 4",
            ]
        );
    }

    #[test]
    fn ordinary_loads_stay() {
        let line = "  %1 = load i32, ptr @atomic_acquire, align 4";
        assert_eq!(lines(line, 61), [line]);
    }
}
