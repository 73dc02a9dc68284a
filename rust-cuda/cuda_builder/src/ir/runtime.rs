//! Symbols that rustc adds when it links a final binary, which never happens
//! here: the kernel crate is compiled as a library and linked by this crate.
//!
//! They all belong to `alloc`: the marker that says an allocator was chosen, and
//! what a failed allocation calls. A failed allocation traps, as a panic does.

use super::IrError;
use super::module::{Function, Module, plain_name};

/// Gives the missing symbols their definitions.
///
/// # Errors
///
/// [`IrError::NoGlobalAllocator`] when code that allocates was linked and nobody
/// defines an allocator.
pub(crate) fn provide(module: &mut Module) -> Result<(), IrError> {
    let mut needs_trap = false;
    for function in &mut module.functions {
        if function.body.is_some() {
            continue;
        }
        let name = plain_name(&function.name);
        let Ok(path) = rustc_demangle::try_demangle(&name) else {
            continue;
        };
        let path = format!("{path:#}");
        let Some(symbol) = path.strip_prefix("__rustc::") else {
            continue;
        };
        if symbol.starts_with("__rust_no_alloc_shim_is_unstable") {
            define(function, &["  ret void"]);
        } else if symbol.starts_with("__rust_alloc_error_handler") {
            define(function, &["  call void @llvm.trap()", "  unreachable"]);
            needs_trap = true;
        }
    }
    if needs_trap && !module.functions.iter().any(|f| f.name == "@llvm.trap") {
        module.functions.push(Function {
            name: "@llvm.trap".to_owned(),
            head: "declare void @llvm.trap()".to_owned(),
            body: None,
        });
    }
    Ok(())
}

/// Turns a declaration into a definition.
fn define(function: &mut Function, body: &[&str]) {
    if let Some(rest) = function.head.strip_prefix("declare ") {
        function.head = format!("define internal {rest} {{");
        function.body = Some(body.iter().map(|line| (*line).to_owned()).collect());
    }
}

/// Whether `path` is one of the allocator's entry points, which a
/// `#[global_allocator]` defines.
pub(crate) fn is_allocator(path: &str) -> bool {
    path.strip_prefix("__rustc::").is_some_and(|symbol| {
        [
            "__rust_alloc",
            "__rust_dealloc",
            "__rust_realloc",
            "__rust_alloc_zeroed",
        ]
        .contains(&symbol)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocation_markers_get_bodies() {
        let mut module = Module::parse(
            "declare void @_RNvCsiGVaDesi5rv_7___rustc35___rust_no_alloc_shim_is_unstable_v2() unnamed_addr #1\n\
             declare void @_RNvCsiGVaDesi5rv_7___rustc26___rust_alloc_error_handler(i64, i64) #2\n\
             declare ptr @_RNvCsiGVaDesi5rv_7___rustc12___rust_alloc(i64, i64) #2\n",
        )
        .unwrap();
        provide(&mut module).unwrap();
        assert_eq!(
            module.functions[0].body.as_deref(),
            Some(&["  ret void".to_owned()][..])
        );
        assert!(
            module.functions[0]
                .head
                .starts_with("define internal void @")
        );
        assert!(module.functions[1].body.is_some());
        assert!(module.functions[2].body.is_none());
        assert!(module.functions.iter().any(|f| f.name == "@llvm.trap"));
    }

    #[test]
    fn allocator_symbols_are_known() {
        assert!(is_allocator("__rustc::__rust_alloc"));
        assert!(!is_allocator("__rustc::__rust_alloc_error_handler"));
        assert!(!is_allocator("alloc::alloc::alloc"));
    }
}
