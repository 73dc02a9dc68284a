//! Shared and constant memory: statics get the address space that their section
//! names.
//!
//! rustc puts every static into the generic address space, 0. This pass writes `addrspace(N)` into
//! a static's definition and replaces every use of `@NAME` by `addrspacecast (ptr addrspace(N)
//! @NAME to ptr)`, whose type is still `ptr`. LLVM follows such casts to their uses and picks
//! `ld.shared`, `ld.const` and so on.

use std::collections::HashMap;

use super::constant;
use super::error::IrError;
use super::exports::Exports;
use super::module::{Module, Variable, plain_name};
use super::reach::{DYNAMIC_SHARED, replace_globals};
use super::section::{Section, Space};

/// Gives every static its address space.
///
/// # Errors
///
/// [`IrError::UnknownSection`]; [`IrError::StoreToConstant`].
pub(crate) fn assign(module: &mut Module, exports: &Exports) -> Result<(), IrError> {
    let mut spaces: HashMap<String, Space> = HashMap::new();
    for global in &mut module.globals {
        let Some(mut variable) = Variable::parse(&global.line)? else {
            continue;
        };
        let name = plain_name(&global.name);
        if name.starts_with("llvm.") {
            continue;
        }
        let section = match variable.section.take() {
            Some(section) => Some(Section::parse(&name, &section)?),
            None => None,
        };
        let space = match section {
            _ if name == DYNAMIC_SHARED => {
                // The launch decides its length. Sixteen bytes of alignment are enough for every
                // type, the widest vector loads included.
                variable.ty = "[0 x i8]".to_owned();
                variable.constant = false;
                variable.trailing = vec!["align 16".to_owned()];
                Space::Shared
            }
            Some(Section { space, .. }) => space,
            // A mutable static lies in global memory. The backend would put it there, too, but
            // before that LLVM takes a variable of address space 0 that only one function uses for
            // that function's own and makes it a local variable of each thread.
            None if !variable.constant => Space::Global,
            // Constants of the program itself: LLVM folds what it can, and the
            // backend places the rest.
            None => continue,
        };
        if variable.initialiser.is_some() && space == Space::Shared {
            // Shared memory is uninitialised when the block starts; PTX has no initialisers for it.
            variable.initialiser = Some("undef".to_owned());
            variable.constant = false;
        }
        if exports.statics.contains(&name) && space != Space::Shared {
            // The host may write it before a launch, so LLVM must not take the
            // initialiser for the value.
            variable
                .qualifiers
                .push("externally_initialized".to_owned());
        }
        global.line = variable.line(&global.name, space as u32);
        spaces.insert(global.name.clone(), space);
    }

    constant::refuse_writes(module, &spaces)?;
    rewrite_uses(module, &spaces);
    Ok(())
}

/// Moves what is in the generic address space to global memory; nothing can stay
/// there.
///
/// # Errors
///
/// [`IrError::Syntax`].
pub(crate) fn leave_generic(module: &mut Module) -> Result<(), IrError> {
    let mut spaces = HashMap::new();
    for global in &mut module.globals {
        let Some(variable) = Variable::parse(&global.line)? else {
            continue;
        };
        if variable.address_space() == 0 && !plain_name(&global.name).starts_with("llvm.") {
            global.line = variable.line(&global.name, Space::Global as u32);
            spaces.insert(global.name.clone(), Space::Global);
        }
    }
    rewrite_uses(module, &spaces);
    Ok(())
}

/// Casts every use of the named statics back to a generic pointer.
fn rewrite_uses(module: &mut Module, spaces: &HashMap<String, Space>) {
    let cast = |name: &str| {
        spaces.get(name).map(|space| {
            format!(
                "addrspacecast (ptr addrspace({}) {name} to ptr)",
                *space as u32
            )
        })
    };
    for global in &mut module.globals {
        // Everything behind the definition's own name.
        let (own, rest) = global.line.split_at(global.name.len());
        global.line = format!("{own}{}", replace_globals(rest, cast));
    }
    for function in &mut module.functions {
        for line in function.body.iter_mut().flatten() {
            if line.contains('@') {
                *line = replace_globals(line, cast);
            }
        }
    }
    for line in &mut module.metadata {
        if line.contains('@') {
            *line = replace_globals(line, cast);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(text: &str) -> String {
        let mut module = Module::parse(text).unwrap();
        let exports = Exports {
            statics: vec!["C".to_owned()],
            ..Exports::default()
        };
        assign(&mut module, &exports).unwrap();
        module.to_string()
    }

    #[test]
    fn shared_statics_lose_their_initialisers() {
        let text = assigned(
            "@T = internal global <{ [4 x i8], ptr }> <{ [4 x i8] c\"\\01\\02,;\", ptr @U }>, section \".shared\", align 8\n\
             @U = internal global [4 x i8] zeroinitializer, section \".shared.visible\", align 4\n",
        );
        assert!(
            text.contains("@T = internal addrspace(3) global <{ [4 x i8], ptr }> undef, align 8\n"),
            "{text}"
        );
        assert!(text.contains("@U = internal addrspace(3) global [4 x i8] undef, align 4\n"));
    }

    #[test]
    fn exported_constants_are_not_folded_and_private_ones_may_be() {
        let text = assigned(
            "@C = global [4 x i8] c\"abcd\", section \".constant\", align 4\n\
             @P = internal constant [4 x i8] c\"abcd\", section \".constant\", align 4\n",
        );
        assert!(text.contains(
            "@C = addrspace(4) externally_initialized global [4 x i8] c\"abcd\", align 4\n"
        ));
        assert!(text.contains("@P = internal addrspace(4) constant [4 x i8] c\"abcd\", align 4\n"));
    }

    #[test]
    fn every_kind_of_use_is_rewritten() {
        let text = assigned(
            "@\"T x\" = internal global [8 x i8] zeroinitializer, section \".shared\", align 4\n\
             @TABLE = internal constant <{ ptr, ptr }> <{ ptr @\"T x\", ptr getelementptr (i8, ptr @\"T x\", i64 4) }>, align 8\n\
             @\"T x2\" = internal constant [1 x i8] zeroinitializer, align 1\n\
             define void @f() {\n  \
               %1 = load i32, ptr @\"T x\", align 4\n  \
               store i32 %1, ptr getelementptr inbounds (i8, ptr @\"T x\", i64 4), align 4\n  \
               %2 = icmp eq ptr @\"T x\", @\"T x2\"\n  \
               call void @g(ptr noundef nonnull @\"T x\", ptr @\"T x2\")\n  \
               call void asm sideeffect \"st [@T x]\", \"l\"(ptr @\"T x\")\n  \
               ret void ; @\"T x\"\n}\n",
        );
        let cast = "addrspacecast (ptr addrspace(3) @\"T x\" to ptr)";
        for expected in [
            format!("load i32, ptr {cast}, align 4"),
            format!("ptr getelementptr inbounds (i8, ptr {cast}, i64 4), align 4"),
            format!("icmp eq ptr {cast}, @\"T x2\""),
            format!("call void @g(ptr noundef nonnull {cast}, ptr @\"T x2\")"),
            format!("\"st [@T x]\", \"l\"(ptr {cast})"),
            format!("<{{ ptr {cast}, ptr getelementptr (i8, ptr {cast}, i64 4) }}>, align 8"),
            "ret void ; @\"T x\"".to_owned(),
        ] {
            assert!(text.contains(&expected), "{expected}\nnot in\n{text}");
        }
    }

    #[test]
    fn mutable_statics_lie_in_global_memory_and_constants_stay() {
        let text = assigned(
            "@M = internal global i32 7, align 4\n@K = private unnamed_addr constant i32 7, align 4\n",
        );
        assert!(text.contains("@M = internal addrspace(1) global i32 7, align 4\n"));
        assert!(text.contains("@K = private unnamed_addr constant i32 7, align 4\n"));
    }

    #[test]
    fn the_dynamic_array_is_aligned_and_external() {
        let text = assigned(
            "@__cuda_std_dynamic_shared = external global [0 x i8]\n\
             define ptr @f() {\n  ret ptr @__cuda_std_dynamic_shared\n}\n",
        );
        assert!(text.contains(
            "@__cuda_std_dynamic_shared = external addrspace(3) global [0 x i8], align 16\n"
        ));
        assert!(text.contains(
            "ret ptr addrspacecast (ptr addrspace(3) @__cuda_std_dynamic_shared to ptr)"
        ));
    }
}
