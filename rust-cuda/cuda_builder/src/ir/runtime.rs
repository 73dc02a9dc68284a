//! Definitions of what nobody defines in Rust.
//!
//! - Symbols that rustc adds when it links a final binary, which never happens here: the
//!   kernel crate is compiled as a library and linked by this crate. They all belong to
//!   `alloc`: the marker that says an allocator was chosen, and what a failed allocation
//!   calls. A failed allocation traps, as a panic does.
//! - `cuda_std`'s asynchronous copies. LLVM's intrinsics for them take pointers to shared and to
//!   global memory, which Rust does not have. Inline assembly would take generic ones, and the
//!   addresses that copies go to would be computed in 64 bits.

use super::error::IrError;
use super::module::{Function, Module, plain_name};

/// Gives the missing symbols their definitions.
///
/// # Errors
///
/// [`IrError::NoGlobalAllocator`] when code that allocates was linked and nobody
/// defines an allocator.
pub(crate) fn provide(module: &mut Module) -> Result<(), IrError> {
    let mut needs_trap = false;
    let mut copies = Vec::new();
    for function in &mut module.functions {
        if function.body.is_some() {
            continue;
        }
        let name = plain_name(&function.name);
        if let Some(copy) = name.strip_prefix(ASYNC_COPY) {
            let intrinsic = define_copy(function, copy);
            copies.push(intrinsic);
            continue;
        }
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
    if needs_trap {
        declare(module, "@llvm.trap", "()");
    }
    for copy in copies {
        declare(module, &copy, "(ptr addrspace(3), ptr addrspace(1))");
    }
    Ok(())
}

/// The beginning of the names of `cuda_std`'s copies. The cache that the copy goes through and the
/// number of bytes follow: `ca_8`.
const ASYNC_COPY: &str = "__cuda_std_cp_async_";

/// Defines a copy, and returns the name of the intrinsic that it calls.
fn define_copy(function: &mut Function, copy: &str) -> String {
    let intrinsic = format!(
        "@llvm.nvvm.cp.async.{}",
        copy.replace('_', ".shared.global.")
    );
    let call = format!("  call void {intrinsic}(ptr addrspace(3) %3, ptr addrspace(1) %4)");
    define(
        function,
        &[
            "  %3 = addrspacecast ptr %0 to ptr addrspace(3)",
            "  %4 = addrspacecast ptr %1 to ptr addrspace(1)",
            &call,
            "  ret void",
        ],
    );
    // Always inlined, so that LLVM sees the address spaces where the pointers come from.
    function.head = function.head.replace(" {", " alwaysinline {");
    intrinsic
}

/// Declares an intrinsic that returns nothing, if it is not declared yet.
fn declare(module: &mut Module, name: &str, parameters: &str) {
    if !module
        .functions
        .iter()
        .any(|function| function.name == name)
    {
        module.functions.push(Function {
            name: name.to_owned(),
            head: format!("declare void {name}{parameters}"),
            body: None,
        });
    }
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
    fn asynchronous_copies_call_the_intrinsic() {
        let mut module = Module::parse(
            "declare void @__cuda_std_cp_async_ca_8(ptr, ptr) unnamed_addr #1\n\
             declare void @__cuda_std_cp_async_cg_16(ptr, ptr) unnamed_addr #1\n",
        )
        .unwrap();
        provide(&mut module).unwrap();
        let [ca, cg, rest @ ..] = &module.functions[..] else {
            panic!("both stay")
        };
        assert_eq!(
            ca.head,
            "define internal void @__cuda_std_cp_async_ca_8(ptr, ptr) unnamed_addr #1 alwaysinline {"
        );
        assert!(ca.body.as_ref().unwrap()[2].contains("@llvm.nvvm.cp.async.ca.shared.global.8("));
        assert!(cg.body.as_ref().unwrap()[2].contains("@llvm.nvvm.cp.async.cg.shared.global.16("));
        assert_eq!(
            rest.iter().map(|f| f.head.as_str()).collect::<Vec<_>>(),
            [
                "declare void @llvm.nvvm.cp.async.ca.shared.global.8(ptr addrspace(3), ptr addrspace(1))",
                "declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))",
            ]
        );
    }

    #[test]
    fn allocator_symbols_are_known() {
        assert!(is_allocator("__rustc::__rust_alloc"));
        assert!(!is_allocator("__rustc::__rust_alloc_error_handler"));
        assert!(!is_allocator("alloc::alloc::alloc"));
    }
}
