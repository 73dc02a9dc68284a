//! The rule `refusals`: a property test gives bad input to every public call of the library that
//! can refuse its input.
//!
//! The calls are the library's public functions that return a `Result`. A property test is a
//! `proptest!` in `tests` or `host/tests`; every call in its file counts.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ReturnType, Signature, Type, Visibility};

use super::tree::{Findings, Tree};
use crate::error::Error;
use crate::rust_source;

const THIS: &str = "xtask/src/tidy/refusals.rs";
const LIBRARY: &str = "host/src";
const TESTS: [&str; 2] = ["tests", "host/tests"];

/// Calls without bad input from a property test: where they are tested, or why they cannot be.
const ELSEWHERE: &[(&str, &str)] = &[
    ("from_device_address", "unsafe; `tests/memory.rs`"),
    ("cuda", "takes a number; `host/tests/devices.rs`"),
    (
        "cuda_with_ptx",
        "`host/tests/devices.rs` and `host/tests/bad_drivers.rs`",
    ),
    ("cuda_count", "takes nothing; `host/tests/bad_drivers.rs`"),
    ("with_cuda_stream", "`host/tests/devices.rs`"),
    ("load_kernels", "takes nothing"),
    ("using", "as the launches it is for"),
    ("synchronize", "takes nothing"),
    ("new_handle", "takes nothing"),
    (
        "new_handle_with",
        "takes any priority; `host/tests/cuda.rs`",
    ),
    ("record_event", "takes nothing; `host/tests/cuda.rs`"),
    ("wait_event", "any event; `host/tests/cuda.rs`"),
    ("is_complete", "takes nothing; `host/tests/cuda.rs`"),
    ("with_replaceable_kernels", "takes nothing"),
    ("seal", "takes nothing; `tests/validation.rs`"),
    ("open", "takes nothing; `tests/validation.rs`"),
    (
        "reserve",
        "hidden, any length; `distributed/tests/threads/ranks.rs`",
    ),
    ("mean_by", "any number and function; `Plan::mean`"),
    ("norm_by", "any function; `Plan::norm`"),
    ("move_to", "any buffer and any device; `tests/memory.rs`"),
    ("from_view", "any array makes a field"),
    ("with_extents", "as `Grid3::new`"),
    ("after", "as `steps_until`"),
    ("check_motion", "as `Leapfrog::start`"),
    ("closed", "as `plan`"),
    ("absorbing", "as `plan`"),
    ("coefficients_of_part", "as `coefficients`"),
    (
        "absorbing_coefficients_of_part",
        "as `absorbing_coefficients`",
    ),
    ("blocks_per_multiprocessor", "as `LaunchConfig::check`"),
    ("resident_blocks", "as `LaunchConfig::check`"),
    ("launch", "as `launch_with_constants`"),
    ("launch_with_constants", "unsafe; `host/tests/devices.rs`"),
];

pub(super) fn refusals(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    let mut tried = BTreeSet::new();
    for folder in TESTS {
        for file in tree.rust_under(folder) {
            let text = tree.text(file)?;
            if text.contains("proptest!") {
                let tokens: TokenStream = text.parse().unwrap_or_default();
                calls(&tokens, &mut tried);
            }
        }
    }
    let mut excused: BTreeSet<&str> = ELSEWHERE.iter().map(|(name, _)| *name).collect();
    for file in tree.rust_under(LIBRARY) {
        let mut found = Fallible::default();
        found.visit_file(&rust_source::parse(file, &tree.text(file)?)?);
        for (name, line) in found.0 {
            let excuse = ELSEWHERE.iter().any(|(excused, _)| *excused == name);
            excused.remove(name.as_str());
            if !excuse && !tried.contains(&name) {
                let message = format!("no property test gives bad input to {name}");
                findings.add(file, line, message);
            }
        }
    }
    if tree.has(THIS) {
        for name in excused {
            let message = format!("{name} is excused, but is not a public call that can fail");
            findings.add(THIS, 0, message);
        }
    }
    Ok(())
}

/// The names of all calls in these tokens.
fn calls(tokens: &TokenStream, names: &mut BTreeSet<String>) {
    // The last name before a parenthesis, or before type arguments between them.
    let mut last = None;
    let mut depth = 0_usize;
    for token in tokens.clone() {
        match token {
            TokenTree::Ident(name) if depth == 0 => last = Some(name.to_string()),
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Parenthesis && depth == 0 {
                    names.extend(last.take());
                }
                calls(&group.stream(), names);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                ':' => {}
                _ if depth == 0 => last = None,
                _ => {}
            },
            _ => {}
        }
    }
}

/// Public functions that return a `Result`, with their lines.
#[derive(Default)]
struct Fallible(Vec<(String, usize)>);

impl Fallible {
    fn look(&mut self, visibility: &Visibility, signature: &Signature) {
        let fallible = matches!(&signature.output, ReturnType::Type(_, returned)
            if matches!(&**returned, Type::Path(path)
                if path.path.segments.last().is_some_and(|last| last.ident == "Result")));
        if fallible && matches!(visibility, Visibility::Public(_)) {
            let name = signature.ident.to_string();
            self.0.push((name, signature.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for Fallible {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.look(&function.vis, &function.sig);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.look(&function.vis, &function.sig);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_test = |attribute: &Attribute| {
            attribute.path().is_ident("cfg")
                && matches!(&attribute.meta, syn::Meta::List(list)
                    if rust_source::has_word(&list.tokens.to_string(), "test"))
        };
        if !module.attrs.iter().any(is_test) {
            visit::visit_item_mod(self, module);
        }
    }

    // The body of a macro has no syntax tree: whatever looks like a public function in it is one,
    // for each use of the macro.
    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        in_macro(&item.mac.tokens, &mut self.0);
    }
}

/// `pub fn name(…) -> Result<…>` in the tokens of a macro.
fn in_macro(tokens: &TokenStream, found: &mut Vec<(String, usize)>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let is =
        |at: usize, word: &str| matches!(tokens.get(at), Some(TokenTree::Ident(it)) if it == word);
    for at in 0..tokens.len() {
        if let TokenTree::Group(group) = &tokens[at] {
            in_macro(&group.stream(), found);
        }
        if !(is(at, "pub") && is(at + 1, "fn")) {
            continue;
        }
        let Some(TokenTree::Ident(name)) = tokens.get(at + 2) else {
            continue;
        };
        let body = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
        let mut signature = tokens[at..].iter().take_while(|token| !body(token));
        if signature.any(|token| matches!(token, TokenTree::Ident(it) if it == "Result")) {
            found.push((name.to_string(), name.span().start().line));
        }
    }
}
