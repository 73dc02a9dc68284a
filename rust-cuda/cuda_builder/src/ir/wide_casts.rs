//! Casts between floats and 128-bit integers.
//!
//! LLVM's backend for NVIDIA GPUs cannot compile them: it would call library functions, and takes
//! the target to have none. `compiler_builtins` has these functions, so the casts become calls of
//! them before the standard library is linked.

use super::module::{Function, Module, plain_name};

/// An instruction, the function that stands for it, and that function's result and parameter.
///
/// Saturating and other casts to integers are one function: they differ only where the result of
/// the other casts is undefined.
const CASTS: [(&str, &str, &str, &str); 12] = [
    (
        "call i128 @llvm.fptosi.sat.i128.f32(",
        "__fixsfti",
        "i128",
        "float",
    ),
    (
        "call i128 @llvm.fptosi.sat.i128.f64(",
        "__fixdfti",
        "i128",
        "double",
    ),
    (
        "call i128 @llvm.fptoui.sat.i128.f32(",
        "__fixunssfti",
        "i128",
        "float",
    ),
    (
        "call i128 @llvm.fptoui.sat.i128.f64(",
        "__fixunsdfti",
        "i128",
        "double",
    ),
    ("fptosi float ", "__fixsfti", "i128", "float"),
    ("fptosi double ", "__fixdfti", "i128", "double"),
    ("fptoui float ", "__fixunssfti", "i128", "float"),
    ("fptoui double ", "__fixunsdfti", "i128", "double"),
    ("sitofp i128 ", "__floattisf", "float", "i128"),
    ("sitofp i128 ", "__floattidf", "double", "i128"),
    ("uitofp i128 ", "__floatuntisf", "float", "i128"),
    ("uitofp i128 ", "__floatuntidf", "double", "i128"),
];

/// Replaces the casts; whether there were any.
pub(crate) fn replace(module: &mut Module) -> bool {
    let mut called = Vec::new();
    for line in module
        .functions
        .iter_mut()
        .filter_map(|f| f.body.as_mut())
        .flatten()
    {
        if !line.contains("i128") {
            continue;
        }
        for cast in &CASTS {
            if let Some(new) = rewritten(line, cast) {
                *line = new;
                called.push(cast);
                break;
            }
        }
    }
    for (_, symbol, result, parameter) in &called {
        let name = format!("@{symbol}");
        if !module.functions.iter().any(|f| f.name == name) {
            module.functions.push(Function {
                head: format!("declare {result} {name}({parameter})"),
                name,
                body: None,
            });
        }
    }
    if !called.is_empty() {
        // They are not called any more, and the backend would not know them.
        module
            .functions
            .retain(|f| f.body.is_some() || !plain_name(&f.name).contains(".sat.i128."));
    }
    !called.is_empty()
}

/// The line `%2 = sitofp i128 %1 to float, !dbg !3` as a call.
fn rewritten(
    line: &str,
    (instruction, symbol, result, parameter): &(&str, &str, &str, &str),
) -> Option<String> {
    let (before, after) = line.split_once(instruction)?;
    if instruction.starts_with("call") {
        return Some(format!("{before}call {result} @{symbol}({after}"));
    }
    let (value, rest) = after.split_once(" to ")?;
    let rest = rest.strip_prefix(result)?;
    // `float` is not a prefix of another type's name, but a check costs nothing.
    (rest.is_empty() || rest.starts_with(','))
        .then(|| format!("{before}call {result} @{symbol}({parameter} {value}){rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: &str) {
        let mut module = Module::parse(&format!("define void @k() {{\n{line}\n}}\n")).unwrap();
        let changed = replace(&mut module);
        assert_eq!(module.functions[0].body.as_ref().unwrap()[0], expect);
        assert_eq!(changed, line != expect);
    }

    #[test]
    fn casts_become_calls() {
        check(
            "  %3 = call i128 @llvm.fptosi.sat.i128.f32(float %0), !dbg !4",
            "  %3 = call i128 @__fixsfti(float %0), !dbg !4",
        );
        check(
            "  %3 = uitofp i128 %x to double, !dbg !4",
            "  %3 = call double @__floatuntidf(i128 %x), !dbg !4",
        );
        check(
            "  %3 = sitofp i128 -5 to float",
            "  %3 = call float @__floattisf(i128 -5)",
        );
        check(
            "  %3 = fptoui double %x to i128",
            "  %3 = call i128 @__fixunsdfti(double %x)",
        );
        for other in [
            "  %3 = fptoui double %x to i64",
            "  %3 = add i128 %x, 1",
            "  %3 = call i64 @llvm.fptosi.sat.i64.f32(float %0)",
        ] {
            check(other, other);
        }
    }
}
