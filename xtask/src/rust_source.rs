//! Parses Rust sources and finds words in text.

use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::error::Error;

/// Parses a source file; `path` is for the message.
pub(crate) fn parse(path: &Path, text: &str) -> Result<syn::File, Error> {
    syn::parse_file(text).map_err(|error| Error::Parse {
        path: path.to_owned(),
        line: error.span().start().line,
        message: error.to_string(),
    })
}

/// The tokens without documentation, which is attributes to the compiler.
pub(crate) fn without_docs(tokens: TokenStream) -> TokenStream {
    let is_doc = |group: &Group| {
        let first = group.stream().into_iter().next();
        group.delimiter() == Delimiter::Bracket
            && matches!(first, Some(TokenTree::Ident(it)) if it == "doc")
    };
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let marks = attribute_marks(&kept);
                if marks > 0 && is_doc(&group) {
                    kept.truncate(kept.len() - marks);
                } else {
                    let inner = without_docs(group.stream());
                    kept.push(Group::new(group.delimiter(), inner).into());
                }
            }
            other => kept.push(other),
        }
    }
    kept.into_iter().collect()
}

/// The number of tokens at the end that begin an attribute: `#` or `#!`.
fn attribute_marks(tokens: &[TokenTree]) -> usize {
    let is =
        |token: &TokenTree, sign| matches!(token, TokenTree::Punct(it) if it.as_char() == sign);
    match tokens {
        [.., hash] if is(hash, '#') => 1,
        [.., hash, bang] if is(hash, '#') && is(bang, '!') => 2,
        _ => 0,
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
    fn documentation_is_no_code() {
        let tokens = |text: &str| {
            let file = parse(Path::new("a.rs"), text).unwrap();
            without_docs(quote::ToTokens::into_token_stream(file)).to_string()
        };
        let bare = tokens("#[inline] fn f() { let a = [doc]; } macro_rules! m { () => {}; }");
        let documented = "//! A.\n/// B.\n#[inline] fn f() { let a = [doc]; }\n\
            macro_rules! m { () => {}; }";
        assert_eq!(tokens(documented), bare);
        assert!(bare.contains("inline"), "{bare}");
        let inner = "#[inline]\n/// C.\nfn f() { let a = [doc]; } macro_rules! m { () => {}; }";
        assert_eq!(tokens(inner), bare);
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("run(heat2d_a)", "heat2d_a"));
        assert!(!has_word("run(heat2d_ab)", "heat2d_a"));
        assert!(!has_word("run(xheat2d_a)", "heat2d_a"));
        assert!(has_word("heat2d_ab heat2d_a", "heat2d_a"));
    }
}
