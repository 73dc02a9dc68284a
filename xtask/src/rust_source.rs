//! What tidy and mutate need to know of Rust source: where the kernels are.

use std::collections::HashSet;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;

use crate::error::Error;

/// An entry point of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kernel {
    pub(crate) name: String,
    /// Line of its name, from 1.
    pub(crate) line: usize,
}

/// Parses a source file; `path` is for the message.
pub(crate) fn parse(path: &Path, text: &str) -> Result<syn::File, Error> {
    syn::parse_file(text).map_err(|error| Error::Parse {
        path: path.to_owned(),
        line: error.span().start().line,
        message: error.to_string(),
    })
}

/// Every `#[kernel]` function in this file, in the order of the source.
///
/// A function in the body of a `macro_rules!` counts under its own name where
/// it has one. Where its name is a parameter of the macro, the kernels are the
/// names beginning with `prefix` that the macro is called with in this file.
pub(crate) fn kernels(file: &syn::File, prefix: &str) -> Vec<Kernel> {
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
pub(crate) fn is_kernel(attribute: &syn::Attribute) -> bool {
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

/// Whether `text` holds `word` with no letter, digit or underscore beside it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        !text[..start].ends_with(part_of_word)
            && !text[start + word.len()..].starts_with(part_of_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_does_not_parse_is_an_error_with_its_place() {
        let error = parse(Path::new("a/b.rs"), "fn f() {\n  let = 3;\n}")
            .err()
            .unwrap();
        assert!(
            error.to_string().contains("a/b.rs") && error.to_string().contains("line 2"),
            "{error}"
        );
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("run(heat2d_a)", "heat2d_a"));
        assert!(!has_word("run(heat2d_ab)", "heat2d_a"));
        assert!(!has_word("run(xheat2d_a)", "heat2d_a"));
        assert!(has_word("heat2d_ab heat2d_a", "heat2d_a"));
    }
}
