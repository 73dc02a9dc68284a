//! What the optimised module must not hold: things LLVM would print into PTX
//! that `ptxas` or the driver refuses, or worse, accepts.

use std::collections::HashSet;

use super::IrError;
use super::lexer::{Kind, tokens};
use super::module::{Module, Variable, plain_name};

/// Checks the text of an optimised module.
///
/// # Errors
///
/// [`IrError::SharedInInitialiser`].
pub(crate) fn optimised(text: &str) -> Result<(), IrError> {
    let module = Module::parse(text)?;
    let mut shared = HashSet::new();
    let mut initialisers = Vec::new();
    for global in &module.globals {
        let Some(variable) = Variable::parse(&global.line)? else {
            continue;
        };
        if variable
            .qualifiers
            .iter()
            .any(|word| word == "addrspace(3)")
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_shared_memory_cannot_be_constants() {
        let error = optimised(
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
    fn addresses_of_global_memory_can() {
        optimised(
            "@S = internal addrspace(1) global [4 x i8] undef\n\
             @T = internal addrspace(1) global ptr addrspacecast (ptr addrspace(1) @S to ptr)\n",
        )
        .unwrap();
    }
}
