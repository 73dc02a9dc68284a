//! Families that the table does not have: their kernels are the functions with
//! `#[kernel]` in their folders, the textbook's blocks stand here, and words in their
//! suite and their benchmark stand for a test and a row.
//!
//! What the table has, it says better: without such families this file has no use.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use gpu_kernels::registry::{
    self, Cost, Entry, Geometry, Measured, Problem, Refusal, Role, Scalar, Twin,
};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::error::Error;
use crate::rust_source;
use crate::tidy::{Findings, KERNELS, Rule, Tree, family_of};
use crate::workspace;

/// The folders of `gpu-kernels/src` that no family of the table is called by.
pub(super) fn families(root: &Path) -> Result<Vec<String>, Error> {
    let folder = root.join(KERNELS);
    let mut families = Vec::new();
    for entry in fs::read_dir(&folder).map_err(Error::file("read", &folder))? {
        let entry = entry.map_err(Error::file("read", &folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && registry::family(&name).is_none() {
            families.push(name);
        }
    }
    families.sort();
    Ok(families)
}

/// Their kernels, as far as their sources tell.
pub(super) fn entries(root: &Path) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for family in families(root)? {
        let folder = root.join(KERNELS).join(&family);
        for path in workspace::rust_files(&folder)? {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let syntax = rust_source::parse(relative, &workspace::read(&path)?)?;
            let file = relative.display().to_string();
            for kernel in kernels(&syntax, &format!("{family}_")) {
                entries.push(entry(&family, &file, kernel));
            }
        }
    }
    Ok(entries)
}

fn entry(family: &str, file: &str, kernel: Kernel) -> Entry {
    // As long as the program, like the table.
    let leaked = |text: &str| -> &'static str { text.to_owned().leak() };
    let name = leaked(&kernel.name);
    let twin = Twin {
        entry: name,
        style: None,
    };
    Entry {
        name,
        family: leaked(family),
        variant: name.get(family.len() + 1..).unwrap_or_default(),
        scalar: Scalar::F32,
        role: Role::Textbook,
        computes: "",
        tile: "",
        restrictions: "",
        geometry_of: textbook,
        cost_of: |_| Cost { bytes: 0, flops: 0 },
        example: Problem::line(1),
        measured: Measured::Row,
        twins: vec![twin].leak(),
        file: leaked(file),
        line: kernel.line as u32,
    }
}

/// How the textbook's kernels are launched by default; [`Refusal::NothingPerBlock`] for
/// any other kernel.
fn textbook(kernel: &'static str, _: &Problem) -> Result<Geometry, Refusal> {
    textbook_block(kernel).ok_or(Refusal::NothingPerBlock { kernel })
}

fn textbook_block(kernel: &str) -> Option<Geometry> {
    let (family, variant) = kernel.split_once('_')?;
    let block = |threads, dynamic_shared_bytes| {
        Some(Geometry::linear(1, threads).with_dynamic_shared_bytes(dynamic_shared_bytes))
    };
    match family {
        // 64³ points: four threads for each along the pencil, and a halo of 4.
        "derivative3d" => {
            let (_, pencils) = variant.split_once("_pencil")?;
            block(4 * 64, pencils.parse::<u32>().ok()? * (64 + 8) * 4)
        }
        _ => None,
    }
}

/// Whether its kernels measure the device instead of computing anything: there is
/// nothing to port, and nothing to compare with.
pub(crate) fn is_instrument(family: &str) -> bool {
    registry::family(family).is_some_and(registry::Family::is_instrument)
}

/// What `tidy` demands of them.
pub(crate) mod tidy {
    use super::*;

    /// | rule | what it demands | why |
    /// |---|---|---|
    /// | `kernel-name` | a kernel is called `F_…` and stands under `gpu-kernels/src/F/` | its name says where it is |
    /// | `kernel-test` | `tests/F.rs` names every kernel of F | no kernel goes untested |
    /// | `kernel-bench` | `xtask/src/bench/F.rs` names every kernel of F | no kernel goes unmeasured |
    pub(crate) const RULES: [(&str, Rule); 3] = [
        ("kernel-name", kernel_name),
        ("kernel-test", kernel_test),
        ("kernel-bench", kernel_bench),
    ];

    /// The kernels of each file, by the file's path.
    fn kernels_of(tree: &Tree) -> Result<Vec<(&Path, Vec<Kernel>)>, Error> {
        let mut found = Vec::new();
        for file in tree.rust_under(KERNELS) {
            let family = family_of(file);
            if family.is_some_and(|family| tree.has_in_table(family)) {
                continue;
            }
            let syntax = rust_source::parse(file, &tree.text(file)?)?;
            let prefix = family.map_or(String::new(), |family| format!("{family}_"));
            let kernels = kernels(&syntax, &prefix);
            if !kernels.is_empty() {
                found.push((file.as_path(), kernels));
            }
        }
        Ok(found)
    }

    fn kernel_name(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
        for (file, kernels) in kernels_of(tree)? {
            for kernel in kernels {
                match family_of(file) {
                    None => findings.add(
                        file,
                        kernel.line,
                        format!(
                            "kernel {} stands outside the families' folders",
                            kernel.name
                        ),
                    ),
                    Some(family) if !kernel.name.starts_with(&format!("{family}_")) => findings
                        .add(
                            file,
                            kernel.line,
                            format!("kernel {} must be called {family}_…", kernel.name),
                        ),
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Every kernel must be named by this file of its family.
    fn kernels_named_in(
        tree: &Tree,
        findings: &mut Findings,
        place: fn(&str) -> String,
        lacking: &str,
    ) -> Result<(), Error> {
        for (file, kernels) in kernels_of(tree)? {
            let Some(family) = family_of(file) else {
                continue;
            };
            let place = place(family);
            // Where the file itself is missing, family-places says so.
            if !tree.has(&place) {
                continue;
            }
            let text = tree.text(Path::new(&place))?;
            for kernel in kernels {
                if !rust_source::has_word(&text, &kernel.name) {
                    findings.add(
                        file,
                        kernel.line,
                        format!(
                            "kernel {} has no {lacking}: {place} does not name it",
                            kernel.name
                        ),
                    );
                }
            }
        }
        Ok(())
    }

    fn kernel_test(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
        kernels_named_in(
            tree,
            findings,
            |family| format!("tests/{family}.rs"),
            "test",
        )
    }

    fn kernel_bench(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
        kernels_named_in(
            tree,
            findings,
            |family| format!("xtask/src/bench/{family}.rs"),
            "benchmark row",
        )
    }
}

/// An entry point of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kernel {
    name: String,
    /// Line of its name, from 1.
    line: usize,
}

/// Every `#[kernel]` function in this file, in the order of the source.
///
/// A function in the body of a `macro_rules!` counts under its own name where
/// it has one. Where its name is a parameter of the macro, the kernels are the
/// names beginning with `prefix` that the macro is called with in this file.
fn kernels(file: &syn::File, prefix: &str) -> Vec<Kernel> {
    let mut functions = Functions::default();
    functions.visit_file(file);
    let mut kernels = functions.kernels;

    let mut calls = Calls {
        generating: functions.generating,
        prefix,
        kernels: Vec::new(),
    };
    if !calls.generating.is_empty() {
        calls.visit_file(file);
        kernels.append(&mut calls.kernels);
    }
    kernels.sort_by(|a, b| (a.line, &a.name).cmp(&(b.line, &b.name)));
    kernels.dedup();
    kernels
}

/// Whether an attribute is `#[kernel]`, by whatever path.
fn is_kernel(attribute: &syn::Attribute) -> bool {
    attribute
        .path()
        .segments
        .last()
        .is_some_and(|segment| segment.ident == "kernel")
}

#[derive(Default)]
struct Functions {
    kernels: Vec<Kernel>,
    /// Macros that define kernels named by their callers.
    generating: HashSet<String>,
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if function.attrs.iter().any(is_kernel) {
            self.kernels.push(Kernel {
                name: function.sig.ident.to_string(),
                line: function.sig.ident.span().start().line,
            });
        }
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        if let (true, Some(name)) = (item.mac.path.is_ident("macro_rules"), &item.ident) {
            let mut named_by_caller = false;
            kernels_in_tokens(&item.mac.tokens, &mut self.kernels, &mut named_by_caller);
            if named_by_caller {
                self.generating.insert(name.to_string());
            }
        }
    }
}

/// Finds `#[kernel] … fn name` and `#[kernel] … fn $name` among tokens.
fn kernels_in_tokens(tokens: &TokenStream, kernels: &mut Vec<Kernel>, named_by_caller: &mut bool) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let mut awaiting_name = false;
    for (position, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => {
                let attribute = position > 0
                    && matches!(&tokens[position - 1], TokenTree::Punct(p) if p.as_char() == '#');
                let last_word = group
                    .stream()
                    .into_iter()
                    .filter_map(|token| match token {
                        TokenTree::Ident(ident) => Some(ident),
                        _ => None,
                    })
                    .last();
                if attribute && last_word.is_some_and(|word| word == "kernel") {
                    awaiting_name = true;
                } else {
                    kernels_in_tokens(&group.stream(), kernels, named_by_caller);
                }
            }
            TokenTree::Ident(ident) if awaiting_name && ident == "fn" => {
                awaiting_name = false;
                match tokens.get(position + 1) {
                    Some(TokenTree::Ident(name)) => kernels.push(Kernel {
                        name: name.to_string(),
                        line: name.span().start().line,
                    }),
                    _ => *named_by_caller = true,
                }
            }
            _ => {}
        }
    }
}

struct Calls<'a> {
    generating: HashSet<String>,
    prefix: &'a str,
    kernels: Vec<Kernel>,
}

impl<'ast> Visit<'ast> for Calls<'_> {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let generating = call
            .path
            .segments
            .last()
            .is_some_and(|segment| self.generating.contains(&segment.ident.to_string()));
        if generating {
            names_in_tokens(&call.tokens, self.prefix, &mut self.kernels);
        }
    }
}

fn names_in_tokens(tokens: &TokenStream, prefix: &str, kernels: &mut Vec<Kernel>) {
    for token in tokens.clone() {
        match token {
            TokenTree::Group(group) => names_in_tokens(&group.stream(), prefix, kernels),
            TokenTree::Ident(ident) if ident.to_string().starts_with(prefix) => {
                kernels.push(Kernel {
                    name: ident.to_string(),
                    line: ident.span().start().line,
                });
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_source::parse;

    fn names(text: &str) -> Vec<String> {
        let file = parse(Path::new("test.rs"), text).unwrap();
        kernels(&file, "heat2d_")
            .into_iter()
            .map(|kernel| kernel.name)
            .collect()
    }

    #[test]
    fn finds_kernels_by_their_attribute() {
        let text = "
            #[kernel] pub unsafe fn heat2d_a() {}
            fn helper() {}
            mod inner { #[cuda_std::kernel] #[allow(x)] pub unsafe fn heat2d_b(a: *mut f32) {} }
        ";
        assert_eq!(names(text), ["heat2d_a", "heat2d_b"]);
    }

    #[test]
    fn finds_kernels_that_a_macro_defines() {
        let text = "
            macro_rules! define {
                ($name:ident, $t:ty) => { #[kernel] pub unsafe fn $name(a: *mut $t) { body::<$t>(a) } };
            }
            define!(heat2d_f32, f32);
            define! { heat2d_f64, f64 }
            other!(heat2d_not_a_kernel);
            macro_rules! fixed { () => { #[kernel] pub unsafe fn heat2d_fixed() {} }; }
        ";
        assert_eq!(names(text), ["heat2d_f32", "heat2d_f64", "heat2d_fixed"]);
    }

    #[test]
    fn lines_count_from_one() {
        let file = parse(Path::new("test.rs"), "\n#[kernel]\nunsafe fn heat2d_a() {}").unwrap();
        assert_eq!(kernels(&file, "heat2d_")[0].line, 3);
    }

    #[test]
    fn the_textbooks_kernels_have_their_blocks() {
        let block =
            |kernel: &str| textbook_block(kernel).map(|it| (it.block[0], it.dynamic_shared_bytes));
        assert_eq!(block("derivative3d_x_pencil4"), Some((256, 4 * 72 * 4)));
        assert_eq!(block("derivative3d_other"), None);
    }
}
