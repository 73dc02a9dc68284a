//! What the exports reach, in an order and under names that only the program
//! decides.
//!
//! rustc's symbols carry hashes that depend on where the crates lie on disk, and
//! it sorts what it generates by them. Left alone, the same sources would give
//! different PTX in another checkout. So this pass walks the module from its
//! exports, in the order in which the text mentions things, keeps what it meets
//! in that order, and names everything that is not exported after its path in
//! the source: `core::slice::index::fail` becomes `core_slice_index_fail`.

use std::collections::{HashMap, HashSet};

use super::error::IrError;
use super::exports::Exports;
use super::lexer::{Kind, tokens};
use super::module::{Function, Global, Module, plain_name};
use super::runtime;
use crate::hash::fnv1a;

/// Functions that kernels may call because the driver defines them.
const DRIVER_SYMBOLS: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// The extern array that `cuda_std::shared::dynamic_shared_mem` points to.
pub(crate) const DYNAMIC_SHARED: &str = "__cuda_std_dynamic_shared";

/// Names longer than this are cut and given a hash of the whole.
const NAME_LIMIT: usize = 120;

/// Removes, orders and renames.
///
/// # Errors
///
/// [`IrError::Undefined`] for what is used and neither defined nor in
/// `allow_undefined`; [`IrError::NoGlobalAllocator`] when that is the allocator.
pub(crate) fn retain(
    module: &mut Module,
    exports: &Exports,
    allow_undefined: &[String],
) -> Result<(), IrError> {
    let mut functions: HashMap<String, Function> = module
        .functions
        .drain(..)
        .map(|function| (function.name.clone(), function))
        .collect();
    let mut globals: HashMap<String, Global> = module
        .globals
        .drain(..)
        .map(|global| (global.name.clone(), global))
        .collect();

    let external = functions
        .values()
        .filter(|function| function.body.is_none())
        .map(|function| plain_name(&function.name))
        .chain(
            globals
                .values()
                .filter(|global| is_external(&global.line))
                .map(|global| plain_name(&global.name)),
        );
    let mut names = Names::new(exports.names().into_iter().collect(), external);
    let mut undefined = Vec::new();

    // A stack rather than a queue, so that what belongs together stays together;
    // filled in reverse, so that the first mention is visited first.
    let mut pending: Vec<String> = exports
        .kernels
        .iter()
        .chain(&exports.functions)
        .chain(&exports.statics)
        .map(|name| spell(&functions, &globals, name))
        .rev()
        .collect();
    // What the source marked `#[used]`.
    for list in ["@llvm.used", "@llvm.compiler.used"] {
        if globals.contains_key(list) {
            pending.insert(0, list.to_owned());
        }
    }
    while let Some(name) = pending.pop() {
        let mut found = Vec::new();
        if let Some(function) = functions.remove(&name) {
            let plain = plain_name(&name);
            let declared = function.body.is_none();
            if declared && !plain.starts_with("llvm.") {
                let allowed =
                    DRIVER_SYMBOLS.contains(&plain.as_str()) || allow_undefined.contains(&plain);
                if !allowed {
                    undefined.push(plain.clone());
                }
            }
            names.assign(&name, declared);
            references(&function.head, &mut found);
            for line in function.body.iter().flatten() {
                references(line, &mut found);
            }
            module.functions.push(function);
        } else if let Some(global) = globals.remove(&name) {
            let plain = plain_name(&name);
            let external = is_external(&global.line);
            // One that the source puts into a memory belongs to the launch: OptiX's parameters.
            let placed = global.line.contains(", section \".");
            if external && !placed && plain != DYNAMIC_SHARED && !allow_undefined.contains(&plain) {
                undefined.push(plain);
            }
            names.assign(&name, external);
            references(&global.line, &mut found);
            module.globals.push(global);
        }
        pending.extend(found.into_iter().rev());
    }
    report(undefined)?;

    for global in &mut module.globals {
        global.line = names.rewrite(&global.line);
        global.name = names.rewrite(&global.name);
    }
    for function in &mut module.functions {
        function.head = names.rewrite(&function.head);
        function.name = names.rewrite(&function.name);
        for line in function.body.iter_mut().flatten() {
            if line.contains('@') {
                *line = names.rewrite(line);
            }
        }
    }
    for line in &mut module.metadata {
        if line.contains('@') {
            *line = names.rewrite_metadata(line);
        }
    }
    Ok(())
}

/// The names that a module uses and does not define, intrinsics excluded.
pub(crate) fn undefined(module: &Module) -> HashSet<String> {
    let functions = module
        .functions
        .iter()
        .filter(|function| function.body.is_none())
        .map(|function| plain_name(&function.name));
    let globals = module
        .globals
        .iter()
        .filter(|global| is_external(&global.line))
        .map(|global| plain_name(&global.name));
    functions
        .chain(globals)
        .filter(|name| !name.starts_with("llvm."))
        .collect()
}

fn is_external(line: &str) -> bool {
    tokens(line)
        .iter()
        .skip(2)
        .take_while(|token| token.kind == Kind::Word)
        .any(|token| token.is("external") || token.is("extern_weak"))
}

fn report(mut undefined: Vec<String>) -> Result<(), IrError> {
    for name in &mut undefined {
        if let Ok(path) = rustc_demangle::try_demangle(name) {
            let path = format!("{path:#}");
            if runtime::is_allocator(&path) {
                return Err(IrError::NoGlobalAllocator);
            }
            *name = path;
        }
    }
    undefined.sort();
    undefined.dedup();
    if undefined.is_empty() {
        Ok(())
    } else {
        Err(IrError::Undefined(undefined))
    }
}

/// Appends every `@name` that `line` mentions.
fn references(line: &str, found: &mut Vec<String>) {
    if !line.contains('@') {
        return;
    }
    for token in tokens(line) {
        if token.kind == Kind::Global {
            found.push(token.text.to_owned());
        }
    }
}

/// How the module writes a plain name: with quotes when it has them.
fn spell(
    functions: &HashMap<String, Function>,
    globals: &HashMap<String, Global>,
    plain: &str,
) -> String {
    let bare = format!("@{plain}");
    if functions.contains_key(&bare) || globals.contains_key(&bare) {
        return bare;
    }
    let quoted = functions
        .keys()
        .chain(globals.keys())
        .find(|name| plain_name(name) == plain);
    quoted.cloned().unwrap_or(bare)
}

/// Old names to new ones, sigils included.
struct Names {
    new: HashMap<String, String>,
    /// Names that are taken, without sigil.
    taken: HashSet<String>,
    /// The last number that made a name of this base unique.
    last: HashMap<String, usize>,
    exported: HashSet<String>,
}

impl Names {
    fn new(exported: HashSet<String>, external: impl Iterator<Item = String>) -> Self {
        Self {
            new: HashMap::new(),
            taken: exported.iter().cloned().chain(external).collect(),
            last: HashMap::new(),
            exported,
        }
    }

    /// Gives `name` its new name, or its own if others refer to it by that.
    fn assign(&mut self, name: &str, keep: bool) {
        let plain = plain_name(name);
        if keep || plain.starts_with("llvm.") || self.exported.contains(&plain) {
            self.new.insert(name.to_owned(), name.to_owned());
            return;
        }
        let base = source_name(&plain);
        let mut candidate = base.clone();
        while self.taken.contains(&candidate) {
            let number = self.last.entry(base.clone()).or_insert(0);
            *number += 1;
            candidate = format!("{base}_{number}");
        }
        self.new.insert(name.to_owned(), format!("@{candidate}"));
        self.taken.insert(candidate);
    }

    /// `text` with every known name replaced.
    fn rewrite(&self, text: &str) -> String {
        replace_globals(text, |name| self.new.get(name).cloned())
    }

    /// The same for a metadata line, where what was removed becomes null.
    fn rewrite_metadata(&self, text: &str) -> String {
        replace_globals(text, |name| {
            Some(
                self.new
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| "null".to_owned()),
            )
        })
    }
}

/// `text` with each `@name` replaced by what `new` gives for it.
pub(crate) fn replace_globals(text: &str, mut new: impl FnMut(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for token in tokens(text) {
        if token.kind == Kind::Global
            && let Some(replacement) = new(token.text)
        {
            out.push_str(&text[copied..token.start]);
            out.push_str(&replacement);
            copied = token.end();
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// A name for a symbol, from its path in the source: no hashes, and only
/// characters that PTX knows.
fn source_name(symbol: &str) -> String {
    let path = match rustc_demangle::try_demangle(symbol) {
        Ok(path) => format!("{path:#}"),
        // Constants that rustc made up: `alloc_<hash>`, `anon.<hash>.7`,
        // `vtable.3`.
        Err(_) if symbol.starts_with("alloc_") || symbol.starts_with("anon.") => {
            "constant".to_owned()
        }
        Err(_) if symbol.starts_with("vtable.") => "vtable".to_owned(),
        Err(_) => symbol.to_owned(),
    };
    let mut name = String::with_capacity(path.len());
    for c in path.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    let name = name.trim_matches('_');
    // No identifier begins with a digit. A word such as `add` or `sin` alone is an instruction's
    // name, which ptxas accepts but readers mistake.
    let mut name = if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("anon_{name}")
    } else {
        name.to_owned()
    };
    if name.len() > NAME_LIMIT {
        name.truncate(NAME_LIMIT);
        name.push_str(&format!("_{:016x}", fnv1a(path.as_bytes())));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::exports;

    fn retained(text: &str) -> Result<Module, IrError> {
        let mut module = Module::parse(text).unwrap();
        let exports = exports::collect(&mut module)?;
        retain(&mut module, &exports, &[])?;
        Ok(module)
    }

    #[test]
    fn names_lose_their_hashes_and_order_follows_use() {
        let one = "\
@anon.aaaa.1 = private constant [1 x i8] c\"b\"
@anon.aaaa.0 = private constant [1 x i8] c\"a\"
define internal void @_RNvCs111_1k1z() {
  ret void
}
define internal void @_RNvCs111_1k1a() {
  call void @use(ptr @anon.aaaa.0)
  ret void
}
define internal void @use(ptr %0) {
  ret void
}
define ptx_kernel void @main() {
  call void @_RNvCs111_1k1a()
  call void @_RNvCs111_1k1z()
  call void @use(ptr @anon.aaaa.1)
  ret void
}
";
        let other = "\
@anon.bbbb.0 = private constant [1 x i8] c\"a\"
@anon.bbbb.1 = private constant [1 x i8] c\"b\"
define internal void @_RNvCsZZZZ_1k1a() {
  call void @use(ptr @anon.bbbb.0)
  ret void
}
define internal void @_RNvCsZZZZ_1k1z() {
  ret void
}
define ptx_kernel void @main() {
  call void @_RNvCsZZZZ_1k1a()
  call void @_RNvCsZZZZ_1k1z()
  call void @use(ptr @anon.bbbb.1)
  ret void
}
define internal void @use(ptr %0) {
  ret void
}
define internal void @_RNvCsZZZZ_1k6unused() {
  ret void
}
";
        let one = retained(one).unwrap().to_string();
        assert_eq!(one, retained(other).unwrap().to_string());
        assert!(one.contains("call void @k_a()"), "{one}");
        assert!(one.contains("ptr @constant)"), "{one}");
        assert!(one.contains("ptr @constant_1)"), "{one}");
    }

    #[test]
    fn equal_names_are_told_apart_and_exports_keep_theirs() {
        let module = retained(
            "\
define internal void @_RNvCs1_1k1f() {
  ret void
}
define internal void @_RNvCs2_1k1f() {
  ret void
}
define ptx_kernel void @k_f() {
  call void @_RNvCs1_1k1f()
  call void @_RNvCs2_1k1f()
  ret void
}
",
        )
        .unwrap();
        let names: Vec<_> = module.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["@k_f", "@k_f_1", "@k_f_2"]);
    }

    #[test]
    fn undefined_symbols_are_named_by_their_path() {
        let error = retained(
            "declare void @_RNvCs1_1k1f()\ndefine ptx_kernel void @a() {\n  call void @_RNvCs1_1k1f()\n}\n",
        )
        .unwrap_err();
        assert!(
            error.to_string().contains("undefined symbol: k::f;"),
            "{error}"
        );
    }

    #[test]
    fn a_missing_allocator_has_its_own_message() {
        let error = retained(
            "declare ptr @_RNvCsiGVaDesi5rv_7___rustc12___rust_alloc(i64, i64)\n\
             define ptx_kernel void @a() {\n  call ptr @_RNvCsiGVaDesi5rv_7___rustc12___rust_alloc(i64 1, i64 1)\n}\n",
        )
        .unwrap_err();
        assert!(matches!(error, IrError::NoGlobalAllocator), "{error}");
    }

    #[test]
    fn metadata_forgets_what_was_removed() {
        let module = retained(
            "define ptx_kernel void @a() {\n}\ndefine void @b() {\n}\n\
             !nvvm.annotations = !{!0}\n!0 = !{ptr @b, !\"kernel\", i32 1}\n!1 = !{ptr @a}\n",
        )
        .unwrap();
        assert_eq!(module.metadata[1], "!0 = !{ptr null, !\"kernel\", i32 1}");
        assert_eq!(module.metadata[2], "!1 = !{ptr @a}");
    }

    #[test]
    fn long_names_are_cut() {
        let long = format!("_ZN3foo{}{}17h0123456789abcdefE", 200, "x".repeat(200));
        let name = source_name(&long);
        assert!(name.len() <= NAME_LIMIT + 17, "{name}");
    }
}
