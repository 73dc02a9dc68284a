//! `#[grid_constant]`: parameters that the launch holds in constant memory, for all threads to read
//! there.
//!
//! To rustc such a parameter is a reference: the kernel gets its address. In the entry point it is
//! the value itself, a pointer with LLVM's attribute `byval`. The macro describes these parameters
//! in a static of section `.grid_constant`, whose name is [`PREFIX`] and the kernel's name. It has
//! three numbers of 32 bits for each of them: its index, its size and its alignment. The pass
//! removes the static.
//!
//! Without the attribute, rustc hands a struct to the kernel as one value of LLVM, an array of
//! numbers, and the kernel first stores it to the thread's own memory. If it is read at an index
//! that is not known at compile time, each thread keeps that copy. With the attribute no thread
//! makes one.
//!
//! LLVM's backend finds out late that the pointer is one to parameters: two loads may by then have
//! become one from either of two addresses, which is a generic load. So [`apply`] says it earlier,
//! by a cast to the parameters' address space and back, as [`address_space`](super::address_space)
//! does for statics. The backend also makes a copy for the thread where it cannot follow an address
//! to its loads. So [`take_addresses`] takes the address for loads by inline PTX.

use super::error::IrError;
use super::lexer::{Kind, Token, matching, tokens, top_level};
use super::module::{Function, Module, plain_name};
use super::section;

/// What the name of a kernel's static begins with.
const PREFIX: &str = "__grid_constant.";

/// LLVM's number for the memory that parameters are in.
const PARAMETERS: u32 = 101;

/// Moves what the statics say to the kernels, and removes the statics.
///
/// # Errors
///
/// [`IrError::GridConstant`].
pub(crate) fn apply(module: &mut Module) -> Result<(), IrError> {
    for (name, variable) in section::take(module, ".grid_constant")? {
        let wrong = |problem| IrError::GridConstant {
            name: name.clone(),
            problem,
        };
        let kernel = name
            .strip_prefix(PREFIX)
            .ok_or_else(|| wrong("its name is no kernel's"))?;
        let function = module
            .functions
            .iter_mut()
            .find(|function| function.is_kernel() && plain_name(&function.name) == kernel)
            .ok_or_else(|| wrong("there is no kernel of that name"))?;
        let numbers = section::numbers(&variable);
        let Some((parameters @ [_, ..], [])) = numbers.as_deref().map(<[u32]>::as_chunks) else {
            return Err(wrong("it does not hold three numbers of 32 bits for each"));
        };
        for &[index, size, align] in parameters {
            if size == 0 {
                return Err(wrong("the parameter has no size"));
            }
            pass_by_value(function, index as usize, size, align)
                .ok_or_else(|| wrong("there is no such parameter"))?;
        }
    }
    Ok(())
}

/// The tokens of each parameter.
fn parameters<'a, 'b>(all: &'b [Token<'a>]) -> Vec<&'b [Token<'a>]> {
    let name = top_level(all)
        .into_iter()
        .find(|&index| all[index].kind == Kind::Global);
    let Some(open) = name.map(|name| name + 1) else {
        return Vec::new();
    };
    let close = matching(all, open).min(all.len());
    let mut found = Vec::new();
    let mut first = open + 1;
    while first < close {
        let mut at = first;
        while at < close && !all[at].is_punct(b',') {
            at = match all[at].kind {
                Kind::Punct(b'(' | b'[' | b'{' | b'<') => matching(all, at) + 1,
                _ => at + 1,
            };
        }
        found.push(&all[first..at.min(close)]);
        first = at + 1;
    }
    found
}

/// Gives a parameter, a pointer, the attribute `byval` and what else is known of it.
fn pass_by_value(function: &mut Function, index: usize, size: u32, align: u32) -> Option<()> {
    let all = tokens(&function.head);
    let known = *parameters(&all).get(index)?;
    let pointer = known.first().filter(|token| token.is("ptr"))?;
    let mut attributes = format!(" byval([{size} x i8])");
    let more = [
        ("noalias", "noalias".to_owned()),
        ("readonly", "readonly".to_owned()),
        ("align", format!("align {align}")),
    ];
    for (word, attribute) in more {
        if !known.iter().any(|token| token.is(word)) {
            attributes.push(' ');
            attributes.push_str(&attribute);
        }
    }
    let parameter = known.last().filter(|token| token.kind == Kind::Local)?;
    let (end, parameter) = (pointer.end(), parameter.text.to_owned());
    function.head.insert_str(end, &attributes);
    cast(function.body.as_mut()?, &parameter, index);
    Some(())
}

/// Makes a body use a parameter by an address that LLVM knows to be one of parameters.
fn cast(body: &mut Vec<String>, parameter: &str, index: usize) {
    let (space, generic) = (
        format!("%\"grid constant {index}, its space\""),
        format!("%\"grid constant {index}\""),
    );
    for line in body.iter_mut().filter(|line| line.contains(parameter)) {
        let places: Vec<_> = tokens(line)
            .iter()
            .filter(|token| token.kind == Kind::Local && token.text == parameter)
            .map(|token| token.start..token.end())
            .collect();
        for place in places.into_iter().rev() {
            line.replace_range(place, &generic);
        }
    }
    // The first block may have a label, at the left margin.
    let first = body.first().is_some_and(|line| !line.starts_with(' '));
    let casts = [
        format!("  {space} = addrspacecast ptr {parameter} to ptr addrspace({PARAMETERS})"),
        format!("  {generic} = addrspacecast ptr addrspace({PARAMETERS}) {space} to ptr"),
    ];
    body.splice(usize::from(first)..usize::from(first), casts);
}

/// Makes the loads in kernels of an optimised module use addresses of such parameters that are
/// taken by inline PTX. Other uses keep the parameter itself, and the backend takes its address:
/// that of a copy, where the device has no other way.
pub(crate) fn take_addresses(module: &mut Module) {
    let cast = format!(" to ptr addrspace({PARAMETERS})");
    let null = format!(", addrspacecast (ptr null{cast})");
    for function in &mut module.functions {
        let (kernel, is_kernel) = (plain_name(&function.name), function.is_kernel());
        let Some(body) = function.body.as_mut().filter(|_| is_kernel) else {
            continue;
        };
        for line in body.iter_mut() {
            decide_null_check(line, &null);
        }
        let all = tokens(&function.head);
        let names: Vec<&str> = parameters(&all)
            .iter()
            .map(|tokens| tokens.last().map_or("", |name| name.text))
            .collect();
        // The address of each, and the parameter.
        let mut taken: Vec<(String, String)> = Vec::new();
        for line in body.iter_mut() {
            let Some((result, operand)) = line.split_once(" = addrspacecast ptr ") else {
                continue;
            };
            // Debug information may follow.
            let operand = operand.split(", !").next().unwrap_or_default();
            let Some(name) = operand.strip_suffix(&cast) else {
                continue;
            };
            if let Some(index) = names.iter().position(|of| *of == name) {
                taken.push((result.trim().to_owned(), name.to_owned()));
                *line = format!(
                    "{result} = call ptr addrspace({PARAMETERS}) \
                     asm \"mov.b64 $0, {kernel}_param_{index};\", \"=l\"()"
                );
            }
        }
        let back = format!(" = addrspacecast ptr addrspace({PARAMETERS}) ");
        for line in body {
            let Some((result, operand)) = line.split_once(&back) else {
                continue;
            };
            let operand = operand.split(", !").next().unwrap_or_default();
            let address = operand.strip_suffix(" to ptr");
            if let Some((_, name)) = taken.iter().find(|(of, _)| Some(of.as_str()) == address) {
                *line = format!("{result} = getelementptr i8, ptr {name}, i64 0");
            }
        }
    }
}

/// Decides comparisons of a parameter's address with null: it is never null.
///
/// Rust's references are not null, which LLVM keeps as comparisons. Its backend cannot compile them
/// for addresses of this address space.
fn decide_null_check(line: &mut String, null: &str) {
    let Some((comparison, _)) = line.split_once(null) else {
        return;
    };
    for relation in ["ne", "eq"] {
        let of = format!("icmp {relation} ptr addrspace({PARAMETERS}) ");
        if let Some((result, _)) = comparison.split_once(&of) {
            *line = format!("{result}icmp {relation} i1 true, false");
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "define ptx_kernel void @k(ptr noundef %f, i32 %n, \
                          ptr noalias noundef readonly align 4 captures(address, read_provenance) dereferenceable(540) %table, \
                          ptr %other) unnamed_addr #0 {\n\
                          start:\n  %0 = call float @f(ptr %table, ptr %tables, ptr %table)\n}\n";

    /// The module after the pass.
    fn applied(name: &str, numbers: &[u32]) -> Result<String, IrError> {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        let text: String = bytes.map(|byte| format!("\\{byte:02X}")).collect();
        let mut module = Module::parse(&format!(
            "@other = global i32 0\n\
             @{name} = constant <{{ [{len} x i8] }}> <{{ [{len} x i8] c\"{text}\" }}>, \
             section \".grid_constant\", align 4\n{KERNEL}",
            len = 4 * numbers.len(),
        ))
        .unwrap();
        apply(&mut module)?;
        Ok(module.to_string())
    }

    #[test]
    fn the_parameters_are_values_and_the_static_goes() {
        let text = applied("__grid_constant.k", &[2, 540, 4, 3, 16, 8]).unwrap();
        for expected in [
            "(ptr noundef %f, i32 %n, ptr byval([540 x i8]) noalias noundef readonly align 4 captures",
            "ptr byval([16 x i8]) noalias readonly align 8 %other) unnamed_addr #0 {",
            "@other = global i32 0",
            "start:\n  \
             %\"grid constant 3, its space\" = addrspacecast ptr %other to ptr addrspace(101)\n  \
             %\"grid constant 3\" = addrspacecast ptr addrspace(101) %\"grid constant 3, its space\" to ptr\n",
            "@f(ptr %\"grid constant 2\", ptr %tables, ptr %\"grid constant 2\")",
        ] {
            assert!(text.contains(expected), "{expected}\nnot in\n{text}");
        }
        assert!(!text.contains("grid_constant"), "{text}");
    }

    #[test]
    fn what_is_no_parameter_is_an_error() {
        for (name, numbers, expected) in [
            (
                "__grid_constant.other",
                &[2, 540, 4][..],
                "no kernel of that name",
            ),
            ("something", &[2, 540, 4], "its name is no kernel's"),
            ("__grid_constant.k", &[2, 540], "three numbers"),
            ("__grid_constant.k", &[], "three numbers"),
            ("__grid_constant.k", &[1, 540, 4], "no such parameter"),
            ("__grid_constant.k", &[4, 540, 4], "no such parameter"),
            ("__grid_constant.k", &[2, 0, 4], "no size"),
        ] {
            let message = applied(name, numbers).unwrap_err().to_string();
            assert!(
                message.contains(expected) && message.contains(name),
                "{message}"
            );
        }
    }

    /// An optimised kernel of this body after the pass.
    fn optimised(body: &str) -> String {
        let mut module = Module::parse(&format!(
            "define ptx_kernel void @k(ptr captures(none) %0, \
             ptr readonly byval([540 x i8]) align 4 %1) {{\n{body}\n}}\n"
        ))
        .unwrap();
        take_addresses(&mut module);
        module.to_string()
    }

    #[test]
    fn an_address_that_goes_to_loads_is_taken_in_ptx() {
        let cast = "  %\"a b\" = addrspacecast ptr %1 to ptr addrspace(101)";
        let text = optimised(cast);
        let taken = "  %\"a b\" = call ptr addrspace(101) \
                     asm \"mov.b64 $0, k_param_1;\", \"=l\"()\n";
        assert!(text.contains(taken), "{text}");
        // One that goes anywhere is the parameter's.
        let anywhere = "  %3 = addrspacecast ptr addrspace(101) %\"a b\" to ptr";
        let text = optimised(&format!("{cast}\n{anywhere}"));
        assert!(text.contains(taken), "{text}");
        assert!(
            text.contains("  %3 = getelementptr i8, ptr %1, i64 0\n"),
            "{text}"
        );
        // An address that is not a parameter's stays.
        let other = "  %4 = addrspacecast ptr %2 to ptr addrspace(101)";
        assert!(optimised(other).contains(other));
    }

    #[test]
    fn addresses_of_parameters_are_not_null() {
        let text = optimised(
            "  %2 = icmp ne ptr addrspace(101) %\"a b\", addrspacecast (ptr null to ptr addrspace(101))\n  \
            %3 = icmp eq ptr addrspace(101) %0, addrspacecast (ptr null to ptr addrspace(101))\n  \
            %4 = icmp ne ptr addrspace(1) %0, addrspacecast (ptr null to ptr addrspace(1))",
        );
        for expected in [
            "  %2 = icmp ne i1 true, false\n",
            "  %3 = icmp eq i1 true, false\n",
            "  %4 = icmp ne ptr addrspace(1) %0, addrspacecast (ptr null to ptr addrspace(1))\n",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }
}
