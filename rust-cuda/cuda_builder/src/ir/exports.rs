//! Which functions and statics the host can see.
//!
//! Of the crate and its dependencies, these are exported:
//!
//! - kernels, which are functions of the `ptx_kernel` convention;
//! - functions in the section `.visible`;
//! - statics in the section of an address space, if the section's name ends in `.visible` or the
//!   static is `no_mangle`.

use super::error::IrError;
use super::module::{Module, Variable, plain_name};
use super::section::Section;

/// The exported names, without sigil and quotes, each list sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Exports {
    pub(crate) kernels: Vec<String>,
    pub(crate) functions: Vec<String>,
    pub(crate) statics: Vec<String>,
}

impl Exports {
    /// All of them, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = [&self.kernels, &self.functions, &self.statics]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        names.sort();
        names
    }
}

/// Finds the exports, and removes the sections of functions, which no later pass needs.
///
/// # Errors
///
/// [`IrError::NothingExported`], and [`IrError::InvalidExportName`] for a name with which the PTX
/// would not assemble.
pub(crate) fn collect(module: &mut Module) -> Result<Exports, IrError> {
    let mut exports = Exports::default();
    for function in &mut module.functions {
        if function.body.is_none() {
            continue;
        }
        if function.is_kernel() && !function.is_local() {
            exports.kernels.push(plain_name(&function.name));
        } else if function.section()?.as_deref() == Some(".visible") {
            exports.functions.push(plain_name(&function.name));
        }
        if let Some((start, end)) = function.parts()?.section {
            function.head.replace_range(start..end, "");
        }
    }
    for global in &module.globals {
        let Some(variable) = Variable::parse(&global.line)? else {
            continue;
        };
        let name = plain_name(&global.name);
        let Some(section) = &variable.section else {
            continue;
        };
        // LLVM's own: llvm.used and the like.
        if name.starts_with("llvm.") {
            continue;
        }
        let section = Section::parse(&name, section)?;
        if section.visible || (!variable.is_local() && is_unmangled(&name)) {
            exports.statics.push(name);
        }
    }
    if exports.kernels.is_empty() && exports.functions.is_empty() {
        return Err(IrError::NothingExported);
    }
    for list in [
        &mut exports.kernels,
        &mut exports.functions,
        &mut exports.statics,
    ] {
        list.sort();
        if let Some(name) = list.iter().find(|name| !is_ptx_identifier(name)) {
            return Err(IrError::InvalidExportName { name: name.clone() });
        }
    }
    Ok(exports)
}

/// Whether `no_mangle` or `export_name` gave the name.
fn is_unmangled(name: &str) -> bool {
    rustc_demangle::try_demangle(name).is_err()
}

/// PTX: a letter followed by letters, digits, `_`, `$`; or one of `_`, `$`, `%`
/// followed by at least one of those.
fn is_ptx_identifier(name: &str) -> bool {
    let follows = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut chars = name.chars();
    match chars.next() {
        Some(first) if first.is_ascii_alphabetic() => chars.all(follows),
        Some('_' | '$') => name.len() > 1 && chars.all(follows),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(text: &str) -> Result<Exports, IrError> {
        collect(&mut Module::parse(text).unwrap())
    }

    #[test]
    fn kernels_marked_functions_and_sectioned_statics_are_exported() {
        let exports = collected(
            "@COEF = global [4 x i8] zeroinitializer, section \".constant\", align 4\n\
             @_RNvCseCuJV2d2rKK_5k_ern4TILE = global [4 x i8] zeroinitializer, section \".shared\"\n\
             @_RNvCseCuJV2d2rKK_5k_ern4FLAG = global [4 x i8] zeroinitializer, section \".global.visible\"\n\
             @plain = global i32 0\n\
             define ptx_kernel void @b() {\n}\n\
             define ptx_kernel void @a() {\n}\n\
             define void @helper() section \".visible\" {\n}\n\
             define void @not_exported() {\n}\n",
        )
        .unwrap();
        assert_eq!(exports.kernels, ["a", "b"]);
        assert_eq!(exports.functions, ["helper"]);
        assert_eq!(exports.statics, ["COEF", "_RNvCseCuJV2d2rKK_5k_ern4FLAG"]);
    }

    #[test]
    fn sections_of_functions_are_removed() {
        let mut module =
            Module::parse("define void @f() unnamed_addr #0 section \".visible\" align 2 {\n}\n")
                .unwrap();
        collect(&mut module).unwrap();
        assert!(!module.functions[0].head.contains("section"));
        assert!(module.functions[0].head.contains("align 2 {"));
    }

    #[test]
    fn a_crate_without_kernels_is_an_error() {
        let error = collected("define void @f() {\n}\n").unwrap_err();
        assert!(matches!(error, IrError::NothingExported), "{error}");
    }

    #[test]
    fn names_that_ptx_cannot_spell_are_an_error() {
        let error = collected("define ptx_kernel void @\"a.b\"() {\n}\n").unwrap_err();
        assert!(error.to_string().contains("`a.b`"), "{error}");
    }

    #[test]
    fn a_misspelt_section_is_an_error() {
        let error =
            collected("@S = global i32 0, section \".shard\"\ndefine ptx_kernel void @a() {\n}\n")
                .unwrap_err();
        assert!(error.to_string().contains("\".shard\""), "{error}");
    }
}
