//! The last pass, over the optimised module: it gives statics the memory and the order that PTX
//! needs.

use std::collections::{HashMap, HashSet};

use super::address_space;
use super::error::IrError;
use super::grid_constant;
use super::lexer::{Kind, tokens};
use super::module::{Global, Module, Variable, plain_name};

/// The text of an optimised module, ready for `llc`.
///
/// LLVM's backend itself moves statics of the generic address space to global memory and puts each
/// behind those that its initialiser names, but in an order that changes from run to run. This pass
/// does it in the order of the text.
///
/// # Errors
///
/// [`IrError::SharedInInitialiser`].
pub(crate) fn finish(text: &str) -> Result<String, IrError> {
    let mut module = Module::parse(text)?;
    check_initialisers(&module)?;
    address_space::leave_generic(&mut module)?;
    grid_constant::take_addresses(&mut module);
    module.globals = dependencies_first(std::mem::take(&mut module.globals));
    Ok(module.to_string())
}

/// PTX has no way to write the address of shared memory into a static.
fn check_initialisers(module: &Module) -> Result<(), IrError> {
    let mut shared = HashSet::new();
    let mut initialisers = Vec::new();
    for global in &module.globals {
        let Some(variable) = Variable::parse(&global.line)? else {
            continue;
        };
        if variable.address_space() == 3 {
            shared.insert(global.name.as_str());
        } else if let Some(initialiser) = variable.initialiser {
            initialisers.push((&global.name, initialiser));
        }
    }
    for (holder, initialiser) in initialisers {
        if plain_name(holder).starts_with("llvm.") {
            continue;
        }
        for token in tokens(&initialiser) {
            if token.kind == Kind::Global && shared.contains(token.text) {
                return Err(IrError::SharedInInitialiser {
                    holder: plain_name(holder),
                    shared: plain_name(token.text),
                });
            }
        }
    }
    Ok(())
}

/// The same globals, each behind all that it refers to, otherwise in order.
fn dependencies_first(globals: Vec<Global>) -> Vec<Global> {
    let index: HashMap<String, usize> = globals
        .iter()
        .enumerate()
        .map(|(index, global)| (global.name.clone(), index))
        .collect();
    let references: Vec<Vec<usize>> = globals
        .iter()
        .map(|global| {
            tokens(&global.line)
                .iter()
                .filter(|token| token.kind == Kind::Global)
                .filter_map(|token| index.get(token.text).copied())
                .collect()
        })
        .collect();
    let mut order = Vec::with_capacity(globals.len());
    let mut seen = vec![false; globals.len()];
    for start in 0..globals.len() {
        // Each entry is a global and how many of its references are done. The stack is explicit,
        // because a linked list of statics may be too long for recursion.
        let mut stack = Vec::new();
        if !std::mem::replace(&mut seen[start], true) {
            stack.push((start, 0));
        }
        while let Some((global, done)) = stack.pop() {
            match references[global].get(done) {
                Some(&next) => {
                    stack.push((global, done + 1));
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => order.push(global),
            }
        }
    }
    let mut globals: Vec<Option<Global>> = globals.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|index| globals[index].take())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_shared_memory_cannot_be_constants() {
        let error = finish(
            "@S = internal addrspace(3) global [4 x i8] undef\n\
             @T = internal addrspace(1) global ptr addrspacecast (ptr addrspace(3) @S to ptr)\n",
        )
        .unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("`T`") && message.contains("`S`"),
            "{message}"
        );
    }

    #[test]
    fn statics_come_behind_what_they_name_and_in_global_memory() {
        let text = finish(
            "@T = internal addrspace(1) global { ptr, ptr } { ptr @B, ptr @A }\n\
             @A = private unnamed_addr constant [1 x i8] c\"@\"\n\
             @B = private constant ptr @C\n\
             @C = internal addrspace(4) global i32 0\n\
             define void @f() {\n  %1 = load i8, ptr @A\n}\n",
        )
        .unwrap();
        let names: Vec<_> = text
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, _)| name.trim())
            .collect();
        assert_eq!(names, ["@C", "@B", "@A", "@T", "%1"]);
        assert!(text.contains("@A = private unnamed_addr addrspace(1) constant [1 x i8] c\"@\"\n"));
        assert!(text.contains("load i8, ptr addrspacecast (ptr addrspace(1) @A to ptr)"));
    }

    #[test]
    fn statics_that_name_each_other_end() {
        let globals = finish("@A = global ptr @B\n@B = global ptr @A\n").unwrap();
        assert_eq!(
            globals.lines().filter(|line| line.starts_with('@')).count(),
            2
        );
    }
}
