//! A module of LLVM IR, split into the pieces that the passes work on.
//!
//! `llvm-link -S` and `opt -S` print one top-level entity after another, each on
//! a line of its own except function bodies, which end with a `}` in the first
//! column. The split relies on that and on nothing else about the layout.

use super::error::IrError;
use super::lexer::{Kind, Token, matching, tokens, top_level};

/// A global variable or an alias: one line.
#[derive(Debug, Clone)]
pub(crate) struct Global {
    /// The name with its sigil, as written: `@x` or `@"x y"`.
    pub(crate) name: String,
    /// The whole line.
    pub(crate) line: String,
}

/// A function, defined or only declared.
#[derive(Debug, Clone)]
pub(crate) struct Function {
    /// The name with its sigil, as written.
    pub(crate) name: String,
    /// `define … {`, or the whole `declare …` line.
    pub(crate) head: String,
    /// The lines between the braces; `None` for a declaration.
    pub(crate) body: Option<Vec<String>>,
}

/// A module, in the order that LLVM prints it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Module {
    /// Data layout, triple, named types, comdats, module-level assembly.
    pub(crate) prelude: Vec<String>,
    pub(crate) globals: Vec<Global>,
    pub(crate) functions: Vec<Function>,
    /// `attributes #N = { … }` lines.
    pub(crate) groups: Vec<String>,
    /// `!name = …` and `!N = …` lines.
    pub(crate) metadata: Vec<String>,
}

impl Module {
    /// Splits `text`.
    ///
    /// # Errors
    ///
    /// [`IrError::Syntax`] for a line that is not a known entity.
    pub(crate) fn parse(text: &str) -> Result<Self, IrError> {
        let mut module = Self::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let first = line.trim_start().as_bytes().first().copied();
            match first {
                None | Some(b';') => {}
                Some(b'@') => module.globals.push(Global {
                    name: first_global(line)?,
                    line: line.to_owned(),
                }),
                Some(b'!') => module.metadata.push(line.to_owned()),
                Some(b'%' | b'$') => module.prelude.push(line.to_owned()),
                _ if line.starts_with("attributes #") => module.groups.push(line.to_owned()),
                _ if line.starts_with("source_filename")
                    || line.starts_with("target ")
                    || line.starts_with("module asm") =>
                {
                    module.prelude.push(line.to_owned());
                }
                _ if line.starts_with("declare ") => module.functions.push(Function {
                    name: first_global(line)?,
                    head: line.to_owned(),
                    body: None,
                }),
                _ if line.starts_with("define ") => {
                    let mut body = Vec::new();
                    loop {
                        match lines.next() {
                            Some("}") => break,
                            Some(line) => body.push(line.to_owned()),
                            None => return Err(IrError::syntax("a function without end", line)),
                        }
                    }
                    module.functions.push(Function {
                        name: first_global(line)?,
                        head: line.to_owned(),
                        body: Some(body),
                    });
                }
                _ => return Err(IrError::syntax("an unknown top-level line", line)),
            }
        }
        Ok(module)
    }

    /// The number of an attribute group that no group of the module has.
    pub(crate) fn free_group(&self) -> usize {
        self.groups
            .iter()
            .filter_map(|line| {
                let rest = line.strip_prefix("attributes #")?;
                let digits = rest.split(' ').next()?;
                digits.parse::<usize>().ok()
            })
            .max()
            .map_or(0, |highest| highest + 1)
    }
}

impl std::fmt::Display for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in &self.prelude {
            writeln!(f, "{line}")?;
        }
        for global in &self.globals {
            writeln!(f, "{}", global.line)?;
        }
        for function in &self.functions {
            writeln!(f, "\n{}", function.head)?;
            if let Some(body) = &function.body {
                for line in body {
                    writeln!(f, "{line}")?;
                }
                writeln!(f, "}}")?;
            }
        }
        for line in self.groups.iter().chain(&self.metadata) {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

/// The first `@name` of a line outside of brackets: what the line defines. The
/// brackets matter: a return attribute or type may name something else.
fn first_global(line: &str) -> Result<String, IrError> {
    let all = tokens(line);
    top_level(&all)
        .into_iter()
        .map(|index| all[index])
        .find(|token| token.kind == Kind::Global)
        .map(|token| token.text.to_owned())
        .ok_or_else(|| IrError::syntax("a definition without a name", line))
}

/// A name without its sigil and quotes, escapes resolved.
pub(crate) fn plain_name(name: &str) -> String {
    let name = name.trim_start_matches(['@', '%']);
    let Some(quoted) = name.strip_prefix('"').and_then(|n| n.strip_suffix('"')) else {
        return name.to_owned();
    };
    let bytes = quoted.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'\\')
            .then(|| quoted.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// The parts of a global variable's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// Linkage, visibility and the like, before `global` or `constant`.
    pub(crate) qualifiers: Vec<String>,
    /// `constant` rather than `global`.
    pub(crate) constant: bool,
    /// The type as written.
    pub(crate) ty: String,
    /// The initialiser as written; `None` for an external variable.
    pub(crate) initialiser: Option<String>,
    /// The section's name, unquoted.
    pub(crate) section: Option<String>,
    /// What follows, each with its key first: `align 4`, `!dbg !3`.
    pub(crate) trailing: Vec<String>,
}

impl Variable {
    /// Reads a line; `None` for an alias or an ifunc.
    ///
    /// # Errors
    ///
    /// [`IrError::Syntax`] when the line is not a variable as LLVM prints it.
    pub(crate) fn parse(line: &str) -> Result<Option<Self>, IrError> {
        let all = tokens(line);
        let bad = |what| IrError::syntax(what, line);
        let equals = all
            .iter()
            .position(|token| token.is_punct(b'='))
            .ok_or_else(|| bad("a global without `=`"))?;
        let keyword = (equals + 1..all.len())
            .find(|&index| {
                ["global", "constant", "alias", "ifunc"]
                    .iter()
                    .any(|word| all[index].is(word))
            })
            .ok_or_else(|| bad("a global that is neither variable nor alias"))?;
        if all[keyword].is("alias") || all[keyword].is("ifunc") {
            return Ok(None);
        }
        let qualifiers = qualifiers(line, &all[equals + 1..keyword]);
        let external = qualifiers
            .iter()
            .any(|word| word == "external" || word == "extern_weak");
        let ty_end = type_end(&all, keyword + 1).ok_or_else(|| bad("a global without a type"))?;
        let ty = line[all[keyword + 1].start..all[ty_end - 1].end()].to_owned();
        let mut clauses = clauses(line, &all[ty_end..]);
        let initialiser = if external {
            None
        } else if clauses.is_empty() || clauses[0].is_empty() {
            return Err(bad("a definition without an initialiser"));
        } else {
            Some(clauses[0].clone())
        };
        clauses.drain(..1.min(clauses.len()));
        let mut section = None;
        let mut trailing = Vec::new();
        for clause in clauses {
            match clause.strip_prefix("section ") {
                Some(name) => section = Some(plain_name(name.trim())),
                None => trailing.push(clause),
            }
        }
        Ok(Some(Self {
            qualifiers,
            constant: all[keyword].is("constant"),
            ty,
            initialiser,
            section,
            trailing,
        }))
    }

    /// Whether the module alone sees the variable.
    pub(crate) fn is_local(&self) -> bool {
        self.qualifiers
            .iter()
            .any(|word| word == "internal" || word == "private")
    }

    /// LLVM's number of the address space that the line says.
    pub(crate) fn address_space(&self) -> u32 {
        self.qualifiers
            .iter()
            .find_map(|word| {
                word.strip_prefix("addrspace(")?
                    .strip_suffix(')')?
                    .parse()
                    .ok()
            })
            .unwrap_or(0)
    }

    /// The line, for the variable `name` in `address_space`.
    pub(crate) fn line(&self, name: &str, address_space: u32) -> String {
        let mut line = format!("{name} =");
        for word in &self.qualifiers {
            // An address space of its own, and what goes behind it.
            if !word.starts_with("addrspace") && word != "externally_initialized" {
                line.push(' ');
                line.push_str(word);
            }
        }
        if address_space != 0 {
            line.push_str(&format!(" addrspace({address_space})"));
        }
        if self
            .qualifiers
            .iter()
            .any(|w| w == "externally_initialized")
        {
            line.push_str(" externally_initialized");
        }
        line.push_str(if self.constant {
            " constant "
        } else {
            " global "
        });
        line.push_str(&self.ty);
        if let Some(initialiser) = &self.initialiser {
            line.push(' ');
            line.push_str(initialiser);
        }
        if let Some(section) = &self.section {
            line.push_str(&format!(", section \"{section}\""));
        }
        for clause in &self.trailing {
            line.push_str(", ");
            line.push_str(clause);
        }
        line
    }
}

/// The words before `global`, with `addrspace(3)` and `thread_local(…)` kept in
/// one piece.
fn qualifiers(line: &str, all: &[Token<'_>]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut index = 0;
    while index < all.len() {
        if all[index].is_punct(b'(') {
            let close = matching(all, index).min(all.len() - 1);
            let piece = &line[all[index].start..all[close].end()];
            if let Some(last) = words.last_mut() {
                last.push_str(piece);
            }
            index = close + 1;
        } else {
            words.push(all[index].text.to_owned());
            index += 1;
        }
    }
    words
}

/// The index behind the type that begins at `start`.
fn type_end(all: &[Token<'_>], start: usize) -> Option<usize> {
    let first = all.get(start)?;
    let mut end = match first.kind {
        Kind::Punct(b'[' | b'{' | b'<') => matching(all, start) + 1,
        Kind::Word | Kind::Local => start + 1,
        _ => return None,
    };
    let followed_by_brackets = |index: usize| {
        all.get(index)
            .is_some_and(|token| token.is_punct(b'('))
            .then(|| matching(all, index) + 1)
    };
    if first.is("target") {
        end = followed_by_brackets(end)?;
    }
    if first.is("ptr") && all.get(end).is_some_and(|token| token.is("addrspace")) {
        end = followed_by_brackets(end + 1)?;
    }
    (end <= all.len()).then_some(end)
}

/// What the commas outside of brackets separate.
fn clauses(line: &str, all: &[Token<'_>]) -> Vec<String> {
    let Some(last) = all.last() else {
        return Vec::new();
    };
    let mut from = all[0].start;
    let mut clauses = Vec::new();
    for index in top_level(all) {
        if all[index].is_punct(b',') {
            clauses.push(line[from..all[index].start].trim().to_owned());
            from = all[index].end();
        }
    }
    clauses.push(line[from..last.end()].trim().to_owned());
    clauses
}

/// Where a function's head has its parts, in bytes of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Behind the parameter list and the words that must directly follow it:
    /// where function attributes may be inserted.
    pub(crate) attributes: usize,
    /// The `section "…"` clause, when there is one.
    pub(crate) section: Option<(usize, usize)>,
}

impl Function {
    /// Finds the parts of the head.
    ///
    /// # Errors
    ///
    /// [`IrError::Syntax`] when there is no parameter list behind the name.
    pub(crate) fn parts(&self) -> Result<Head, IrError> {
        let all = tokens(&self.head);
        let name = top_level(&all)
            .into_iter()
            .find(|&index| all[index].kind == Kind::Global)
            .ok_or_else(|| IrError::syntax("a function without a name", &self.head))?;
        let open = name + 1;
        let close = matching(&all, open);
        if !all.get(open).is_some_and(|token| token.is_punct(b'(')) || close >= all.len() {
            return Err(IrError::syntax("a function without parameters", &self.head));
        }
        let mut at = close;
        while let Some(next) = all.get(at + 1) {
            if next.is("unnamed_addr") || next.is("local_unnamed_addr") {
                at += 1;
            } else if next.is("addrspace") {
                at = matching(&all, at + 2);
            } else {
                break;
            }
        }
        let section = top_level(&all)
            .into_iter()
            .filter(|&index| index > close && all[index].is("section"))
            .find_map(|index| Some((all[index].start, all.get(index + 1)?.end())));
        Ok(Head {
            attributes: all[at.min(all.len() - 1)].end(),
            section,
        })
    }

    /// Whether the function is an entry point that the host launches.
    pub(crate) fn is_kernel(&self) -> bool {
        let name_at = self.head.find(&self.name).unwrap_or(self.head.len());
        self.body.is_some()
            && tokens(&self.head[..name_at])
                .iter()
                .any(|token| token.is("ptx_kernel"))
    }

    /// Whether the module alone sees the function.
    pub(crate) fn is_local(&self) -> bool {
        let name_at = self.head.find(&self.name).unwrap_or(self.head.len());
        tokens(&self.head[..name_at])
            .iter()
            .any(|token| token.is("internal") || token.is("private"))
    }

    /// The section's name, unquoted.
    pub(crate) fn section(&self) -> Result<Option<String>, IrError> {
        Ok(self.parts()?.section.map(|(start, end)| {
            let clause = &self.head[start..end];
            plain_name(clause.trim_start_matches("section").trim())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_survives_the_round_trip() {
        let text = "\
; ModuleID = 'x'
source_filename = \"x\"
target triple = \"nvptx64-nvidia-cuda\"
@a = internal global i32 0, align 4

; Function Attrs: nounwind
define void @\"f g\"(ptr %0) #0 {
  ret void
}
declare void @h() #1
attributes #0 = { nounwind }
attributes #12 = { \"x\"=\"}\" }
!0 = !{}
";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.globals.len(), 1);
        assert_eq!(module.functions[0].name, "@\"f g\"");
        assert_eq!(module.functions[0].body.as_ref().unwrap().len(), 1);
        assert!(module.functions[1].body.is_none());
        assert_eq!(module.free_group(), 13);
        let again = Module::parse(&module.to_string()).unwrap();
        assert_eq!(again.to_string(), module.to_string());
    }

    #[test]
    fn an_unknown_line_is_refused() {
        let error = Module::parse("uselistorder_bb @f, %1, { 1, 0 }\n").unwrap_err();
        assert!(error.to_string().contains("uselistorder_bb"), "{error}");
    }

    #[test]
    fn variables_fall_into_their_parts() {
        let line = "@T = internal unnamed_addr constant <{ ptr, [8 x i8] }> \
                    <{ ptr @\"a,b\", [8 x i8] c\"\\01, section\\00\" }>, section \".shared\", align 8, !dbg !3";
        let variable = Variable::parse(line).unwrap().unwrap();
        assert_eq!(variable.qualifiers, ["internal", "unnamed_addr"]);
        assert!(variable.constant);
        assert!(variable.is_local());
        assert_eq!(variable.ty, "<{ ptr, [8 x i8] }>");
        assert_eq!(
            variable.initialiser.as_deref(),
            Some("<{ ptr @\"a,b\", [8 x i8] c\"\\01, section\\00\" }>")
        );
        assert_eq!(variable.section.as_deref(), Some(".shared"));
        assert_eq!(variable.trailing, ["align 8", "!dbg !3"]);
        assert_eq!(variable.line("@T", 0), line);
    }

    #[test]
    fn external_variables_have_no_initialiser() {
        let line = "@d = external addrspace(3) global [0 x i8], align 16";
        let variable = Variable::parse(line).unwrap().unwrap();
        assert_eq!(variable.initialiser, None);
        assert_eq!(variable.ty, "[0 x i8]");
        assert_eq!(variable.line("@d", 3), line);
        let pointer = Variable::parse("@p = global ptr addrspace(1) null")
            .unwrap()
            .unwrap();
        assert_eq!(pointer.ty, "ptr addrspace(1)");
        assert_eq!(pointer.initialiser.as_deref(), Some("null"));
    }

    #[test]
    fn aliases_are_no_variables() {
        assert_eq!(Variable::parse("@a = alias i32, ptr @b").unwrap(), None);
    }

    #[test]
    fn attributes_go_behind_the_parameters() {
        let function = Function {
            name: "@f".into(),
            head: "define noundef range(i32 0, 5) i32 @f(ptr noundef captures(none) %0) unnamed_addr #3 section \".visible\" {".into(),
            body: Some(vec![]),
        };
        let parts = function.parts().unwrap();
        assert!(function.head[..parts.attributes].ends_with("unnamed_addr"));
        assert_eq!(function.section().unwrap().as_deref(), Some(".visible"));
    }

    #[test]
    fn escapes_in_names_are_resolved() {
        assert_eq!(plain_name("@\"a\\22b c\""), "a\"b c");
        assert_eq!(plain_name("@plain"), "plain");
    }
}
