//! Marks what the threads of a warp or block do together, so that no pass
//! copies it into a branch or moves it across one.
//! rustc marks no function `convergent`, and LLVM takes an unmarked call to concern one thread
//! only. It copies a barrier behind "if in range, load" into both arms of the branch, and the two
//! halves of the block then wait at different barriers. As clang does for CUDA, this pass marks
//! everything, and LLVM takes the mark off functions that provably reach nothing convergent. Marked
//! are
//!
//! - every function, defined or declared (intrinsics carry LLVM's own marks);
//! - every call through a pointer, which may reach anything;
//! - every inline assembly block that may hold a warp- or block-wide
//!   instruction. Blocks of arithmetic, loads and stores stay free, so that LLVM
//!   still unrolls the loops around them.

use super::error::IrError;
use super::lexer::{Kind, Token, matching, tokens, top_level};
use super::module::{Module, plain_name};

/// Marks the module. Every definition also gets the floating-point mode, which
/// must be the same everywhere for functions to be inlined into each other.
///
/// # Errors
///
/// [`IrError::Syntax`] when a function's head cannot be read.
pub(crate) fn mark(module: &mut Module, ftz: bool) -> Result<(), IrError> {
    let function_group = module.free_group();
    let call_group = function_group + 1;
    let mode = if ftz {
        " \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\""
    } else {
        ""
    };
    module.groups.push(format!(
        "attributes #{function_group} = {{ convergent{mode} }}"
    ));
    module
        .groups
        .push(format!("attributes #{call_group} = {{ convergent }}"));

    for function in &mut module.functions {
        if plain_name(&function.name).starts_with("llvm.") {
            continue;
        }
        let at = function.parts()?.attributes;
        function.head.insert_str(at, &format!(" #{function_group}"));
        for line in function.body.iter_mut().flatten() {
            if let Some(at) = unknown_call(line) {
                line.insert_str(at, &format!(" #{call_group}"));
            }
        }
    }
    Ok(())
}

/// Where to put the mark when the line calls something that may be convergent
/// and that no function's own mark covers.
fn unknown_call(line: &str) -> Option<usize> {
    if !line.contains("call ") {
        return None;
    }
    let all = tokens(line);
    let outer = top_level(&all);
    let call = outer.iter().position(|&index| all[index].is("call"))?;
    if let Some(asm) = outer[call..].iter().position(|&index| all[index].is("asm")) {
        let asm = outer[call + asm];
        let template = all[asm..].iter().find(|token| token.kind == Kind::Str)?;
        if is_thread_local(&unescape(template)) {
            return None;
        }
        let open = (asm..all.len()).find(|&index| all[index].is_punct(b'('))?;
        return all.get(matching(&all, open)).map(Token::end);
    }
    // The callee is the last name in front of a parenthesis; a name before it is
    // a type.
    let callee = outer[call..].iter().rev().copied().find(|&index| {
        matches!(all[index].kind, Kind::Global | Kind::Local)
            && all.get(index + 1).is_some_and(|next| next.is_punct(b'('))
    })?;
    if all[callee].kind == Kind::Global {
        return None;
    }
    all.get(matching(&all, callee + 1)).map(Token::end)
}

fn unescape(template: &Token<'_>) -> String {
    plain_name(template.text)
}

/// Instructions that concern the executing thread alone. Anything else might
/// wait for, or exchange values with, other threads.
const THREAD_LOCAL: [&str; 72] = [
    "abs",
    "add",
    "addc",
    "and",
    "applypriority",
    "atom",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "brev",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "ex2",
    "fma",
    "fns",
    "isspacep",
    "ld",
    "ldu",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "max",
    "min",
    "mov",
    "mul",
    "mul24",
    "neg",
    "not",
    "or",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "red",
    "rem",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setp",
    "shf",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "st",
    "sub",
    "subc",
    "suld",
    "sust",
    "szext",
    "tanh",
    "testp",
    "tex",
    "tld4",
    "txq",
    "xor",
    "cp",
];

/// Whether an assembly template certainly has no instruction in which threads take part together.
/// Labels and jumps make it uncertain.
fn is_thread_local(template: &str) -> bool {
    template
        .lines()
        .flat_map(|line| line.split("//").next())
        .flat_map(|line| line.split(';'))
        .map(|statement| statement.trim().trim_matches(['{', '}']).trim())
        .filter(|statement| !statement.is_empty())
        .all(|statement| {
            let instruction = match statement.strip_prefix('@') {
                // `@p ld…` and `@!p ld…`: the guard decides whether the thread executes it.
                Some(guarded) => guarded
                    .split_once(char::is_whitespace)
                    .map_or("", |(_, instruction)| instruction.trim()),
                None => statement,
            };
            if instruction.starts_with(".reg") {
                return true;
            }
            let opcode = instruction
                .split(|c: char| c == '.' || c.is_whitespace())
                .next()
                .unwrap_or("");
            // `cp.async` copies for one thread. `cp.async.bulk` and its groups do, too, but
            // barriers complete them, so only the plain one is free.
            let free_copy = opcode != "cp"
                || (instruction.starts_with("cp.async")
                    && !instruction.starts_with("cp.async.bulk"));
            THREAD_LOCAL.contains(&opcode) && free_copy
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_marked_and_intrinsics_are_left_to_llvm() {
        let mut module = Module::parse(
            "define internal void @f() unnamed_addr #0 {\n}\n\
             define ptx_kernel void @k(ptr %0) {\n}\n\
             declare i32 @vprintf(ptr, ptr)\n\
             declare void @llvm.trap() #1\n\
             attributes #0 = { nounwind }\nattributes #1 = { noreturn }\n",
        )
        .unwrap();
        mark(&mut module, true).unwrap();
        let heads: Vec<_> = module.functions.iter().map(|f| f.head.as_str()).collect();
        assert_eq!(
            heads,
            [
                "define internal void @f() unnamed_addr #2 #0 {",
                "define ptx_kernel void @k(ptr %0) #2 {",
                "declare i32 @vprintf(ptr, ptr) #2",
                "declare void @llvm.trap() #1",
            ]
        );
        assert!(module.groups.contains(
            &"attributes #2 = { convergent \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\" }"
                .to_owned()
        ));
        assert!(
            module
                .groups
                .contains(&"attributes #3 = { convergent }".to_owned())
        );
    }

    fn marked(line: &str) -> String {
        let mut line = line.to_owned();
        if let Some(at) = unknown_call(&line) {
            line.insert_str(at, " #9");
        }
        line
    }

    #[test]
    fn warp_wide_assembly_is_marked() {
        assert_eq!(
            marked(
                "  call void asm sideeffect alignstack \"bar.sync 0;\", \"~{memory}\"() #5, !srcloc !4"
            ),
            "  call void asm sideeffect alignstack \"bar.sync 0;\", \"~{memory}\"() #9 #5, !srcloc !4"
        );
        assert_eq!(
            marked(
                "  %1 = call { i32, i32 } asm \"shfl.sync.bfly.b32 $0|p, $1, 1, 31, -1; mov.u32 $1, 0;\", \"=r,=r,r\"(i32 (ptr) %f, i32 %2)"
            ),
            "  %1 = call { i32, i32 } asm \"shfl.sync.bfly.b32 $0|p, $1, 1, 31, -1; mov.u32 $1, 0;\", \"=r,=r,r\"(i32 (ptr) %f, i32 %2) #9"
        );
    }

    #[test]
    fn arithmetic_and_memory_assembly_stays_free() {
        for template in [
            "ld.global.nc.v4.f32 {$0, $1, $2, $3}, [$4];",
            "{ .reg .pred p; setp.ne.b32 p, $1, 0; @p ld.global.f32 $0, [$2]; }",
            "ex2.approx.ftz.f32 $0, $1;\\0A// bar.sync 0;\\0A mov.b32 $0, $0;",
            "cp.async.ca.shared.global [$0], [$1], 16;",
            "",
        ] {
            let line = format!("  %1 = tail call i32 asm \"{template}\", \"=r,r\"(i32 %0)");
            assert_eq!(marked(&line), line);
        }
    }

    #[test]
    fn what_might_be_warp_wide_is_not_free() {
        for template in [
            "bar.sync 0;",
            "barrier.cluster.arrive;",
            "mov.u32 $0, 1;\\0A bar.warp.sync -1;",
            "{ .reg .pred p; vote.sync.any.pred p, 1, -1; }",
            "@p bra L1; L1: mov.u32 $0, 0;",
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {}, {}, {}, {};",
            "cp.async.bulk.commit_group;",
            "@",
        ] {
            assert!(
                !is_thread_local(&template.replace("\\0A", "\n")),
                "{template}"
            );
        }
    }

    #[test]
    fn calls_through_pointers_are_marked_and_direct_ones_are_not() {
        assert_eq!(
            marked(
                "  %3 = tail call fastcc noundef range(i32 0, 4) i32 %f(ptr @g, i32 (ptr) undef) #2"
            ),
            "  %3 = tail call fastcc noundef range(i32 0, 4) i32 %f(ptr @g, i32 (ptr) undef) #9 #2"
        );
        for direct in [
            "  call void @f(ptr %1, i32 2) #3",
            "  %2 = call i32 (ptr, ...) @printf(ptr %0)",
            "  %4 = call %struct @f(ptr %1) [ \"x\"(ptr %g) ]",
        ] {
            assert_eq!(marked(direct), direct);
        }
    }
}
