//! Parses Rust sources and finds words in text.

use std::path::Path;

use crate::error::Error;

/// Parses a source file; `path` is for the message.
pub(crate) fn parse(path: &Path, text: &str) -> Result<syn::File, Error> {
    syn::parse_file(text).map_err(|error| Error::Parse {
        path: path.to_owned(),
        line: error.span().start().line,
        message: error.to_string(),
    })
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
    fn words_are_whole() {
        assert!(has_word("run(heat2d_a)", "heat2d_a"));
        assert!(!has_word("run(heat2d_ab)", "heat2d_a"));
        assert!(!has_word("run(xheat2d_a)", "heat2d_a"));
        assert!(has_word("heat2d_ab heat2d_a", "heat2d_a"));
    }
}
