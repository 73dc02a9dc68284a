//! A lexer for LLVM's textual IR, as `llvm-link -S` and `opt -S` print it.
//!
//! It finds what the passes of this folder rely on: where names begin and end (also quoted ones,
//! which may hold any character), which text is a string or a comment, and how brackets nest. The
//! passes know what the words mean.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `@name` or `@"quoted name"`: a function or a global variable.
    Global,
    /// `%name`, `%7` or `%"quoted name"`: a value, a label or a type.
    Local,
    /// `#12`: a reference to an attribute group.
    Group,
    /// `!7`, `!dbg`, `!"string"`, or a lone `!`.
    Metadata,
    /// `$name`: a comdat.
    Comdat,
    /// `"..."`, without a sigil before it.
    Str,
    /// A keyword, a type, a number, a label without its colon.
    Word,
    /// Any other single character: brackets, commas, `=`, `*`, `|`, …
    Punct(u8),
}

/// A token: its kind and the bytes of the text that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// The token as written, sigil and quotes included.
    pub(crate) text: &'a str,
    /// Where it begins, in bytes from the start of the lexed text.
    pub(crate) start: usize,
}

impl Token<'_> {
    /// Where the token ends: the first byte behind it.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Whether this is the keyword `word`.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    /// Whether this is the single character `c`.
    pub(crate) fn is_punct(&self, c: u8) -> bool {
        self.kind == Kind::Punct(c)
    }
}

/// Characters of unquoted names, keywords and numbers.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'$' | b'.' | b'_')
}

/// Splits `text` into tokens; white space and comments are left out.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    Lexer { text, at: 0 }.collect()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl Lexer<'_> {
    /// The end of the name that begins at `from`, quoted or not.
    fn name_end(&self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        if bytes.get(from) == Some(&b'"') {
            self.string_end(from)
        } else {
            from + bytes[from..].iter().take_while(|b| is_word(**b)).count()
        }
    }

    /// The end of the string whose opening quote is at `from`. LLVM escapes a
    /// quote inside as `\22`, so the next quote always closes the string.
    fn string_end(&self, from: usize) -> usize {
        self.text[from + 1..]
            .find('"')
            .map_or(self.text.len(), |length| from + 1 + length + 1)
    }
}

impl<'a> Iterator for Lexer<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at)? {
                byte if byte.is_ascii_whitespace() => self.at += 1,
                b';' => {
                    self.at = self.text[self.at..]
                        .find('\n')
                        .map_or(self.text.len(), |length| self.at + length);
                }
                _ => break,
            }
        }
        let start = self.at;
        let first = bytes[start];
        let (kind, end) = match first {
            b'@' => (Kind::Global, self.name_end(start + 1)),
            b'%' => (Kind::Local, self.name_end(start + 1)),
            b'#' => (Kind::Group, self.name_end(start + 1)),
            b'!' => (Kind::Metadata, self.name_end(start + 1)),
            b'$' if bytes.get(start + 1) == Some(&b'"') => (Kind::Comdat, self.name_end(start + 1)),
            b'$' => (Kind::Comdat, self.name_end(start)),
            b'"' => (Kind::Str, self.string_end(start)),
            byte if is_word(byte) => (Kind::Word, self.name_end(start)),
            byte => {
                // A character outside ASCII cannot occur outside of strings in
                // what LLVM prints; it is passed over whole.
                let length = self.text[start..].chars().next().map_or(1, char::len_utf8);
                (Kind::Punct(byte), start + length)
            }
        };
        self.at = end;
        Some(Token {
            kind,
            text: &self.text[start..end],
            start,
        })
    }
}

/// The index of the token that closes the bracket at `open`, or the number of
/// tokens when nothing closes it.
///
/// `<` and `>` count as brackets: in LLVM IR they only enclose vector types and
/// packed structs.
pub(crate) fn matching(tokens: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Punct(b'(' | b'[' | b'{' | b'<') => depth += 1,
            Kind::Punct(b')' | b']' | b'}' | b'>') => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The indices of the tokens outside of all brackets, the brackets themselves
/// excluded.
pub(crate) fn top_level(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut indices = Vec::new();
    let mut index = 0;
    while index < tokens.len() {
        match tokens[index].kind {
            Kind::Punct(b'(' | b'[' | b'{' | b'<') => index = matching(tokens, index),
            _ => indices.push(index),
        }
        index += 1;
    }
    indices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        tokens(text).iter().map(|t| (t.kind, t.text)).collect()
    }

    #[test]
    fn names_may_hold_any_character_when_quoted() {
        assert_eq!(
            kinds(r#"@"a b;@c" @plain.name$0 %"x(y" %12"#),
            [
                (Kind::Global, r#"@"a b;@c""#),
                (Kind::Global, "@plain.name$0"),
                (Kind::Local, r#"%"x(y""#),
                (Kind::Local, "%12"),
            ]
        );
    }

    #[test]
    fn strings_and_comments_hide_what_they_hold() {
        assert_eq!(
            kinds("call asm \"bar.sync 0; // @no\", \"r\"() ; @not either\nret"),
            [
                (Kind::Word, "call"),
                (Kind::Word, "asm"),
                (Kind::Str, "\"bar.sync 0; // @no\""),
                (Kind::Punct(b','), ","),
                (Kind::Str, "\"r\""),
                (Kind::Punct(b'('), "("),
                (Kind::Punct(b')'), ")"),
                (Kind::Word, "ret"),
            ]
        );
    }

    #[test]
    fn groups_metadata_and_comdats_have_their_own_kinds() {
        assert_eq!(
            kinds("#3 !dbg !7 !\"str\" $foo"),
            [
                (Kind::Group, "#3"),
                (Kind::Metadata, "!dbg"),
                (Kind::Metadata, "!7"),
                (Kind::Metadata, "!\"str\""),
                (Kind::Comdat, "$foo"),
            ]
        );
    }

    #[test]
    fn brackets_match_through_packed_structs() {
        let all = tokens("<{ ptr, [8 x i8] }> <{ ptr @a, [8 x i8] c\"x>\" }>, align 8");
        let close = matching(&all, 0);
        assert_eq!(all[close].end(), "<{ ptr, [8 x i8] }>".len());
        let outer: Vec<_> = top_level(&all).iter().map(|&i| all[i].text).collect();
        assert_eq!(outer, [",", "align", "8"]);
    }
}
