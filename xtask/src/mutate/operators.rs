//! Finds the small edits that can break a source file.
//!
//! Every mutation replaces one expression by another. It is found in the syntax tree, so text in
//! comments, types, patterns and constants is never changed. The body of a macro has no syntax
//! tree: barriers and indices of threads and blocks are found there by their tokens.
//!
//! Code that the emulator does not run, or that Rust evaluates while compiling, is left alone:
//! `const` items and functions, array lengths, generic arguments, and everything under a `#[cfg]`.

use std::ops::Range;
use std::path::Path;

use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use serde::{Deserialize, Serialize};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

use crate::error::Error;
use crate::rust_source;

/// A kind of mutation; waivers use its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum Operator {
    /// A barrier is removed.
    Barrier,
    /// An index or extent is taken along another axis.
    Axis,
    /// A comparison includes or excludes equality.
    Comparison,
    /// A condition is always true, or always false.
    Guard,
    /// A halo, tile or block width is one more or one less.
    Width,
    /// A loop runs once more.
    RangeEnd,
    /// A whole number is one more.
    Literal,
    /// A sum becomes a difference, a product a sum, and so on.
    Arithmetic,
    /// A value loses its minus, or a factor gets one.
    Sign,
    /// `&&` becomes `||`, or a `!` is lost.
    Logic,
    /// `min` becomes `max`, or the reverse.
    Extremum,
}

impl Operator {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Barrier => "barrier",
            Self::Axis => "axis",
            Self::Comparison => "comparison",
            Self::Guard => "guard",
            Self::Width => "width",
            Self::RangeEnd => "range-end",
            Self::Literal => "literal",
            Self::Arithmetic => "arithmetic",
            Self::Sign => "sign",
            Self::Logic => "logic",
            Self::Extremum => "extremum",
        }
    }
}

/// One way to break one expression.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Site {
    /// From 1.
    pub(crate) line: usize,
    /// From 1.
    pub(crate) column: usize,
    /// Its function; for tokens of a macro, the macro's name.
    pub(crate) function: String,
    pub(crate) operator: Operator,
    /// The change in words: "`<` made `<=` in `i < n`".
    pub(crate) what: String,
    /// The position of the expression, in bytes.
    pub(crate) range: Range<usize>,
    /// The new text, on one line.
    pub(crate) replacement: String,
}

/// All mutations of this file, in the order of the source.
pub(crate) fn sites(path: &Path, text: &str) -> Result<Vec<Site>, Error> {
    let file = rust_source::parse(path, text)?;
    let mut finder = Finder {
        text,
        function: String::new(),
        around: None,
        sites: Vec::new(),
    };
    finder.visit_file(&file);
    // A stable sort: the mutations of one expression keep their order.
    finder
        .sites
        .sort_by_key(|site| (site.range.start, site.range.end));
    Ok(finder.sites)
}

struct Finder<'a> {
    text: &'a str,
    function: String,
    /// The text of the operation whose operands are visited.
    around: Option<String>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    fn add(&mut self, at: Span, operator: Operator, what: String, replacement: &impl ToTokens) {
        self.sites.push(Site {
            line: at.start().line,
            column: at.start().column + 1,
            function: self.function.clone(),
            operator,
            what,
            range: at.byte_range(),
            replacement: one_line(&replacement.to_token_stream().to_string()),
        });
    }

    /// The source of this span, shortened for a message.
    fn quoted(&self, at: Span) -> String {
        let source = one_line(&self.text[at.byte_range()]);
        if source.chars().count() <= 48 {
            format!("`{source}`")
        } else {
            let head: String = source.chars().take(46).collect();
            format!("`{head} …`")
        }
    }

    /// " in" and the operation around, to distinguish operands of one name.
    fn context(&self) -> String {
        let around = self.around.as_ref();
        around.map_or_else(String::new, |quoted| format!(" in {quoted}"))
    }

    fn in_function(
        &mut self,
        signature: &syn::Signature,
        attributes: &[syn::Attribute],
        body: &syn::Block,
    ) {
        if signature.constness.is_some() || is_conditional(attributes) {
            return;
        }
        let outer = std::mem::replace(&mut self.function, signature.ident.to_string());
        self.visit_block(body);
        self.function = outer;
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let here = binary.span();
        let (left, operation, right) = (&binary.left, &binary.op, &binary.right);
        for replaced in replacements(operation) {
            let what = format!(
                "`{}` made `{replaced}` in {}",
                operation.to_token_stream(),
                self.quoted(here),
            );
            let operator = match operation {
                BinOp::Lt(_)
                | BinOp::Le(_)
                | BinOp::Gt(_)
                | BinOp::Ge(_)
                | BinOp::Eq(_)
                | BinOp::Ne(_) => Operator::Comparison,
                BinOp::And(_) | BinOp::Or(_) => Operator::Logic,
                _ => Operator::Arithmetic,
            };
            // Parentheses keep the operands together, whatever the new operator binds.
            let replacement = if is_assignment(operation) {
                quote!(#left #replaced #right)
            } else {
                quote!((#left) #replaced (#right))
            };
            // `a && let Some(b) = c` cannot stand alone.
            if operator != Operator::Logic || !(holds_let(left) || holds_let(right)) {
                self.add(here, operator, what, &replacement);
            }
        }
        let quoted = self.quoted(here);
        let outer = self.around.replace(quoted);
        for operand in [left, right] {
            self.literal(operand);
            self.visit_expr(operand);
        }
        self.around = outer;
    }

    /// A whole number in the source.
    fn literal(&mut self, operand: &Expr) {
        if let Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        }) = operand
            && let Ok(value) = number.base10_parse::<u64>()
            && let Some(more) = value.checked_add(1)
        {
            let replaced = syn::LitInt::new(&format!("{more}{}", number.suffix()), number.span());
            self.add(
                number.span(),
                Operator::Literal,
                format!("`{number}` made `{replaced}`{}", self.context()),
                &replaced,
            );
        }
    }

    fn call(&mut self, call: &syn::ExprCall) {
        let Expr::Path(callee) = &*call.func else {
            return;
        };
        let Some(last) = callee.path.segments.last() else {
            return;
        };
        let name = last.ident.to_string();
        let here = call.span();
        if BARRIERS.contains(&name.as_str()) {
            self.add(
                here,
                Operator::Barrier,
                format!("{} removed", self.quoted(here)),
                &quote!(()),
            );
        }
        if FUSED.contains(&name.as_str())
            && let Some(factor) = call.args.first()
        {
            self.negated(factor);
        }
        if call.args.is_empty()
            && let Some(other) = other_axis(&name)
        {
            let mut replaced = callee.path.clone();
            if let Some(last) = replaced.segments.last_mut() {
                last.ident = syn::Ident::new(&other, last.ident.span());
            }
            self.add(
                here,
                Operator::Axis,
                format!("{} made `{other}()`", self.quoted(here)),
                &quote!(#replaced()),
            );
        }
    }

    fn method_call(&mut self, call: &syn::ExprMethodCall) {
        let here = call.span();
        let name = call.method.to_string();
        let swapped = match name.as_str() {
            "min" => Some("max"),
            "max" => Some("min"),
            "saturating_sub" => Some("saturating_add"),
            "wrapping_add" => Some("wrapping_sub"),
            "wrapping_sub" => Some("wrapping_add"),
            _ => None,
        };
        if let Some(other) = swapped {
            let mut replaced = call.clone();
            replaced.method = syn::Ident::new(other, call.method.span());
            let operator = match name.as_str() {
                "min" | "max" => Operator::Extremum,
                _ => Operator::Arithmetic,
            };
            self.add(
                here,
                operator,
                format!("`{name}` made `{other}` in {}", self.quoted(here)),
                &replaced,
            );
        }
        if FUSED.contains(&name.as_str())
            && let Some(factor) = call.args.first()
        {
            self.negated(factor);
        }
    }

    /// A factor of a fused multiply-add.
    fn negated(&mut self, factor: &Expr) {
        let at = factor.span();
        self.add(
            at,
            Operator::Sign,
            format!("factor {} negated", self.quoted(at)),
            &quote!(-(#factor)),
        );
    }

    /// A constant whose name says that it is a width.
    fn width(&mut self, path: &syn::ExprPath) {
        let Some(last) = path.path.segments.last() else {
            return;
        };
        let name = last.ident.to_string();
        let constant = name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        if constant && name.len() > 1 && WIDTHS.iter().any(|word| name.contains(word)) {
            for (sign, replacement) in [("+", quote!((#path + 1))), ("-", quote!((#path - 1)))] {
                self.add(
                    path.span(),
                    Operator::Width,
                    format!("`{name}` made `{name} {sign} 1`{}", self.context()),
                    &replacement,
                );
            }
        }
    }

    fn condition(&mut self, branch: &syn::ExprIf) {
        let condition = &branch.cond;
        if holds_let(condition) {
            return;
        }
        let at = condition.span();
        let quoted = self.quoted(at);
        self.add(
            at,
            Operator::Guard,
            format!("condition {quoted} made `true`"),
            &quote!(true),
        );
        if branch.else_branch.is_some() {
            self.add(
                at,
                Operator::Guard,
                format!("condition {quoted} made `false`"),
                &quote!(false),
            );
        }
    }

    /// Barriers and indices among the tokens of a macro.
    fn tokens(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (position, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.tokens(&group.stream());
            }
            let TokenTree::Ident(ident) = token else {
                continue;
            };
            let Some(TokenTree::Group(arguments)) = tokens.get(position + 1) else {
                continue;
            };
            let defines = position > 0
                && matches!(&tokens[position - 1], TokenTree::Ident(word) if word == "fn");
            if arguments.delimiter() != Delimiter::Parenthesis || defines {
                continue;
            }
            // Back over a path such as `thread::` or `cuda_std::thread::`.
            let mut start = position;
            while start >= 3
                && is_punct(&tokens[start - 1], ':')
                && is_punct(&tokens[start - 2], ':')
                && matches!(&tokens[start - 3], TokenTree::Ident(_))
            {
                start -= 3;
            }
            if start >= 1 && is_punct(&tokens[start - 1], '.') {
                continue;
            }
            let range = tokens[start].span().byte_range().start..arguments.span().byte_range().end;
            let name = ident.to_string();
            let source = one_line(&self.text[range.clone()]);
            let mut add = |operator, what, replacement| {
                self.sites.push(Site {
                    line: ident.span().start().line,
                    column: tokens[start].span().start().column + 1,
                    function: self.function.clone(),
                    operator,
                    what,
                    range: range.clone(),
                    replacement,
                });
            };
            if BARRIERS.contains(&name.as_str()) {
                add(
                    Operator::Barrier,
                    format!("`{source}` removed"),
                    "()".to_owned(),
                );
            }
            if arguments.stream().is_empty()
                && let Some(other) = other_axis(&name)
            {
                let head = &source[..source.rfind(&name).unwrap_or(0)];
                add(
                    Operator::Axis,
                    format!("`{source}` made `{other}()`"),
                    format!("{head}{other}()"),
                );
            }
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Trait(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            // Other items hold no code that runs, or are visited elsewhere.
            syn::Item::Fn(_) => return visit::visit_item(self, item),
            _ => return,
        };
        if !is_conditional(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.in_function(&function.sig, &function.attrs, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.in_function(&function.sig, &function.attrs, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.in_function(&function.sig, &function.attrs, body);
        }
    }

    fn visit_item_macro(&mut self, item: &'ast syn::ItemMacro) {
        let name = item
            .ident
            .as_ref()
            .map_or_else(String::new, |name| format!("{name}!"));
        let outer = std::mem::replace(&mut self.function, name);
        self.tokens(&item.mac.tokens);
        self.function = outer;
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        // `each!(K < COUNT, { … })` of the stencils is a loop that the macro unrolls.
        let body = call.path.is_ident("each").then(|| {
            call.parse_body_with(|input: syn::parse::ParseStream<'_>| {
                input.parse::<Expr>()?;
                input.parse::<syn::Token![,]>()?;
                input.parse::<syn::Block>()
            })
        });
        match body {
            Some(Ok(body)) => Finder::visit_block(self, &body),
            _ => self.tokens(&call.tokens),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_conditional(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if is_conditional(attributes(expression)) {
            return;
        }
        match expression {
            Expr::Binary(binary) => return self.binary(binary),
            Expr::Call(call) => {
                self.call(call);
                // The arguments only: the callee is a path, not a value.
                for argument in &call.args {
                    self.literal(argument);
                    self.visit_expr(argument);
                }
                return;
            }
            Expr::MethodCall(call) => {
                self.method_call(call);
                for argument in &call.args {
                    self.literal(argument);
                }
            }
            Expr::Path(path) => self.width(path),
            Expr::If(branch) => self.condition(branch),
            Expr::Unary(unary) => {
                let (operator, operand) = match unary.op {
                    syn::UnOp::Neg(_) => (Operator::Sign, &unary.expr),
                    syn::UnOp::Not(_) => (Operator::Logic, &unary.expr),
                    _ => return visit::visit_expr(self, expression),
                };
                let what = format!(
                    "`{}` lost in {}",
                    unary.op.to_token_stream(),
                    self.quoted(unary.span())
                );
                self.add(unary.span(), operator, what, operand);
            }
            Expr::Range(range) => {
                if let Some(end) = range.end.as_deref()
                    && !matches!(end, Expr::Path(_))
                {
                    let what = format!("end {} made one more", self.quoted(end.span()));
                    self.add(end.span(), Operator::RangeEnd, what, &quote!((#end) + 1));
                } else if let Some(Expr::Path(end)) = range.end.as_deref() {
                    let what = format!("end {} made one more", self.quoted(end.span()));
                    if !is_width(end) {
                        self.add(end.span(), Operator::RangeEnd, what, &quote!((#end) + 1));
                    }
                }
                if let Some(start) = range.start.as_deref() {
                    self.literal(start);
                }
            }
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            Expr::Const(_) => return,
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    // Rust evaluates these while compiling, or they are not expressions.
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_generic_argument(&mut self, _: &'ast syn::GenericArgument) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
}

/// Calls that make threads wait for one another and return nothing.
const BARRIERS: [&str; 5] = [
    "sync_threads",
    "sync_warp",
    "syncthreads",
    "syncwarp",
    "barrier_sync",
];

/// Fused multiply-adds, as a method or with the first factor as an argument.
const FUSED: [&str; 3] = ["mul_add", "fma", "fmaf"];

/// Words in the names of constants that are widths.
const WIDTHS: [&str; 8] = [
    "HALO", "RADIUS", "TILE", "PENCIL", "BLOCK", "WIDTH", "STRIDE", "OVERLAP",
];

fn is_width(path: &syn::ExprPath) -> bool {
    path.path.segments.last().is_some_and(|last| {
        let name = last.ident.to_string();
        WIDTHS.iter().any(|word| name.contains(word))
    })
}

/// The same index along another axis: x and y are exchanged, z becomes x.
fn other_axis(name: &str) -> Option<String> {
    let (quantity, axis) = name.rsplit_once('_')?;
    let indexed = matches!(
        quantity,
        "thread_idx" | "block_idx" | "block_dim" | "grid_dim" | "index"
    );
    let other = match axis {
        "x" | "z" if axis == "x" => "y",
        "y" | "z" => "x",
        _ => return None,
    };
    indexed.then(|| format!("{quantity}_{other}"))
}

/// The operations that replace this one.
fn replacements(operation: &BinOp) -> Vec<TokenStream> {
    match operation {
        BinOp::Lt(_) => vec![quote!(<=)],
        BinOp::Le(_) => vec![quote!(<)],
        BinOp::Gt(_) => vec![quote!(>=)],
        BinOp::Ge(_) => vec![quote!(>)],
        BinOp::Eq(_) => vec![quote!(!=)],
        BinOp::Ne(_) => vec![quote!(==)],
        BinOp::And(_) => vec![quote!(||)],
        BinOp::Or(_) => vec![quote!(&&)],
        BinOp::Add(_) => vec![quote!(-)],
        BinOp::Sub(_) => vec![quote!(+)],
        BinOp::Mul(_) => vec![quote!(+)],
        BinOp::Div(_) => vec![quote!(*)],
        BinOp::Rem(_) => vec![quote!(/)],
        BinOp::Shl(_) => vec![quote!(>>)],
        BinOp::Shr(_) => vec![quote!(<<)],
        BinOp::BitAnd(_) => vec![quote!(|)],
        BinOp::BitOr(_) => vec![quote!(&)],
        BinOp::BitXor(_) => vec![quote!(|)],
        BinOp::AddAssign(_) => vec![quote!(-=)],
        BinOp::SubAssign(_) => vec![quote!(+=)],
        BinOp::MulAssign(_) => vec![quote!(/=)],
        BinOp::DivAssign(_) => vec![quote!(*=)],
        BinOp::ShlAssign(_) => vec![quote!(>>=)],
        BinOp::ShrAssign(_) => vec![quote!(<<=)],
        BinOp::BitXorAssign(_) => vec![quote!(|=)],
        _ => Vec::new(),
    }
}

fn is_assignment(operation: &BinOp) -> bool {
    matches!(
        operation,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::MulAssign(_)
            | BinOp::DivAssign(_)
            | BinOp::ShlAssign(_)
            | BinOp::ShrAssign(_)
            | BinOp::BitXorAssign(_)
    )
}

/// Whether this is compiled only under a condition, such as for tests or for the device.
fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("cfg") || attribute.path().is_ident("test"))
}

fn attributes(expression: &Expr) -> &[syn::Attribute] {
    match expression {
        Expr::Block(block) => &block.attrs,
        Expr::Call(call) => &call.attrs,
        Expr::MethodCall(call) => &call.attrs,
        Expr::If(branch) => &branch.attrs,
        Expr::Unsafe(block) => &block.attrs,
        Expr::Binary(binary) => &binary.attrs,
        Expr::ForLoop(repeat) => &repeat.attrs,
        Expr::While(repeat) => &repeat.attrs,
        Expr::Loop(repeat) => &repeat.attrs,
        _ => &[],
    }
}

/// Whether this condition contains a `let`, as `if let` does.
fn holds_let(condition: &Expr) -> bool {
    struct Let(bool);
    impl<'ast> Visit<'ast> for Let {
        fn visit_expr_let(&mut self, _: &'ast syn::ExprLet) {
            self.0 = true;
        }
    }
    let mut found = Let(false);
    found.visit_expr(condition);
    found.0
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mutations of this text, as "operator: what".
    fn found(text: &str) -> Vec<String> {
        sites(Path::new("test.rs"), text)
            .unwrap()
            .into_iter()
            .map(|site| format!("{}: {}", site.operator.name(), site.what))
            .collect()
    }

    /// The bodies that the mutations of a function's body make.
    fn mutants(body: &str) -> Vec<String> {
        let text = format!("fn f() {{ {body} }}");
        sites(Path::new("test.rs"), &text)
            .unwrap()
            .into_iter()
            .map(|site| {
                let mut mutant = text.clone();
                mutant.replace_range(site.range, &site.replacement);
                syn::parse_file(&mutant).unwrap_or_else(|error| panic!("{error}: {mutant}"));
                mutant["fn f() { ".len()..mutant.len() - 2].to_owned()
            })
            .collect()
    }

    #[test]
    fn barriers_are_removed() {
        assert_eq!(mutants("thread::sync_threads();"), ["();"]);
        assert_eq!(mutants("unsafe { sync_warp(mask) }"), ["unsafe { () }"]);
    }

    #[test]
    fn axes_are_exchanged() {
        assert_eq!(
            mutants("thread::block_idx_x()"),
            ["thread :: block_idx_y ()"]
        );
        assert_eq!(mutants("thread_idx_y()"), ["thread_idx_x ()"]);
        assert_eq!(mutants("block_dim_z()"), ["block_dim_x ()"]);
        assert_eq!(mutants("other_x()"), Vec::<String>::new());
    }

    #[test]
    fn comparisons_take_in_or_leave_out_equality() {
        assert_eq!(mutants("i < n"), ["(i) <= (n)"]);
        assert_eq!(mutants("i <= n"), ["(i) < (n)"]);
        assert_eq!(mutants("i > n"), ["(i) >= (n)"]);
        assert_eq!(mutants("i >= n"), ["(i) > (n)"]);
        assert_eq!(mutants("i == n"), ["(i) != (n)"]);
    }

    #[test]
    fn guards_are_dropped() {
        assert_eq!(mutants("if ok { g() }"), ["if true { g() }"]);
        assert_eq!(
            mutants("if ok { g() } else { h() }"),
            [
                "if true { g() } else { h() }",
                "if false { g() } else { h() }"
            ]
        );
        assert!(mutants("if let Some(a) = b { g() }").is_empty());
    }

    #[test]
    fn widths_are_off_by_one() {
        assert_eq!(mutants("g(RADIUS)"), ["g((RADIUS + 1))", "g((RADIUS - 1))"]);
        assert!(mutants("g(EPSILON)").is_empty());
        assert!(mutants("TILE::new()").is_empty());
    }

    #[test]
    fn arithmetic_signs_literals_logic_extrema() {
        assert_eq!(mutants("a + b"), ["(a) - (b)"]);
        assert_eq!(mutants("a * b"), ["(a) + (b)"]);
        assert_eq!(mutants("a - 4"), ["(a) + (4)", "a - 5"]);
        assert_eq!(mutants("g(1)"), ["g(2)"]);
        assert_eq!(mutants("a.add(1)"), ["a.add(2)"]);
        assert_eq!(mutants("a += b;"), ["a -= b;"]);
        assert_eq!(mutants("-a"), ["a"]);
        assert_eq!(mutants("a.mul_add(b, c)"), ["a.mul_add(- (b), c)"]);
        assert_eq!(
            mutants("GpuFloat::mul_add(a, b, c)"),
            ["GpuFloat::mul_add(- (a), b, c)"]
        );
        assert_eq!(mutants("a && b"), ["(a) || (b)"]);
        assert_eq!(mutants("!a"), ["a"]);
        assert_eq!(mutants("a.min(b)"), ["a . max (b)"]);
        assert_eq!(
            mutants("for i in 0..n {}"),
            ["for i in 1..n {}", "for i in 0..(n) + 1 {}"]
        );
    }

    #[test]
    fn what_is_compiled_is_left_alone() {
        for text in [
            "const A: usize = RADIUS + 1;",
            "static A: [f32; RADIUS + 1] = [0.0; RADIUS + 1];",
            "const fn f() -> usize { RADIUS + 1 }",
            "fn f() { let a = [0.0; RADIUS + 1]; }",
            "fn f() { g::<{ RADIUS + 1 }>() }",
            "fn f(a: [f32; RADIUS + 1]) {}",
            "fn f() { match a { RADIUS => 1, _ => 0 } }",
            "#[cfg(test)] mod tests { fn f() { a + b } }",
            "#[cfg(target_arch = \"nvptx64\")] fn f() { a + b }",
            "#[test] fn f() { a + b }",
            "// a + b\nfn f() { /* a + b */ }",
        ] {
            assert!(found(text).is_empty(), "{text}: {:?}", found(text));
        }
    }

    #[test]
    fn macro_bodies_lose_barriers_and_axes() {
        let text = "macro_rules! m { ($n:ident) => { #[kernel] pub unsafe fn $n(a: *mut f32) {
            let i = thread::thread_idx_x() + 1; thread::sync_threads();
        } }; }";
        assert_eq!(
            found(text),
            [
                "axis: `thread::thread_idx_x()` made `thread_idx_y()`",
                "barrier: `thread::sync_threads()` removed"
            ]
        );
        // Neither the definition of a barrier nor a method is a call of one.
        assert!(
            found("macro_rules! m { () => { fn sync_threads() {} a.sync_threads() }; }").is_empty()
        );
    }

    #[test]
    fn sites_know_their_line_and_function() {
        let text = "\nimpl A {\n    fn inner() {\n        a < b\n    }\n}\n";
        let sites = sites(Path::new("test.rs"), text).unwrap();
        assert_eq!((sites[0].line, sites[0].function.as_str()), (4, "inner"));
        assert_eq!(&text[sites[0].range.clone()], "a < b");
        assert_eq!(sites[0].what, "`<` made `<=` in `a < b`");
    }
}
