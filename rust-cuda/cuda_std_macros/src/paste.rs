//! `[<a _ b>]` becomes the identifier `a_b`.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// Joins the words of every `[< … >]` in `input`, at any depth.
pub(crate) fn expand(input: TokenStream) -> syn::Result<TokenStream> {
    input
        .into_iter()
        .map(|token| {
            let TokenTree::Group(group) = token else {
                return Ok(token);
            };
            if let Some(words) = words(&group) {
                return joined(words, group.span()).map(TokenTree::Ident);
            }
            let mut inner = Group::new(group.delimiter(), expand(group.stream())?);
            inner.set_span(group.span());
            Ok(TokenTree::Group(inner))
        })
        .collect()
}

/// What stands between `[<` and `>]`.
fn words(group: &Group) -> Option<Vec<TokenTree>> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let tokens: Vec<_> = group.stream().into_iter().collect();
    let is = |token: &TokenTree, wanted| matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted);
    match tokens.as_slice() {
        [open, words @ .., close] if is(open, '<') && is(close, '>') => Some(words.to_vec()),
        _ => None,
    }
}

fn joined(words: Vec<TokenTree>, span: Span) -> syn::Result<Ident> {
    let mut name = String::new();
    append(words, &mut name)?;
    // The number of a width cannot come first; a keyword does not matter here.
    syn::parse_str::<Ident>(&name)
        .map(|_| Ident::new(&name, span))
        .map_err(|_| syn::Error::new(span, format!("`{name}` is no identifier")))
}

fn append(words: impl IntoIterator<Item = TokenTree>, name: &mut String) -> syn::Result<()> {
    for word in words {
        match word {
            TokenTree::Ident(word) => name.push_str(&word.to_string()),
            TokenTree::Literal(word) => name.push_str(&word.to_string()),
            // What a macro's fragment stands for.
            TokenTree::Group(word) if word.delimiter() == Delimiter::None => {
                append(word.stream(), name)?;
            }
            other => {
                return Err(syn::Error::new(
                    other.span(),
                    "a word or a number is joined, and nothing else",
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expect: &str) {
        let input: TokenStream = input.parse().expect("tokens");
        let expect: TokenStream = expect.parse().expect("tokens");
        assert_eq!(
            expand(input).expect("an expansion").to_string(),
            expect.to_string()
        );
    }

    #[test]
    fn words_are_joined_at_any_depth() {
        check(
            "fn [<a_ 32 _ b>]() -> [<u 32>] { x::[<y>](&[<z 1>]) }",
            "fn a_32_b() -> u32 { x::y(&z1) }",
        );
    }

    #[test]
    fn arrays_and_comparisons_stay() {
        check("[a < b, c > d]; [u8; 4]; []", "[a < b, c > d]; [u8; 4]; []");
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        for input in ["[<1 a>]", "[<a + b>]", "[<>]"] {
            assert!(expand(input.parse().expect("tokens")).is_err(), "{input}");
        }
    }
}
