//! Reads the inner attributes at the top of a source file.
//!
//! A crate's root says whether the crate is `no_std` and which features it enables. rustc warns of
//! a second `no_std` and refuses to enable a feature twice, so neither is injected again.
//!
//! A file, the root or another, may be written for the compiler backend of rust-cuda 0.2 and
//! before. It then begins with
//!
//! ```text
//! #![cfg_attr(target_os = "cuda", no_std, feature(register_attr), register_attr(nvvm_internal))]
//! ```
//!
//! rustc has removed `register_attr` and refuses sources that mention it (E0557). Nothing depends
//! on it, so it is blanked out of the text that rustc compiles; see [`crate::wrapper`].

use std::collections::HashSet;
use std::ops::Range;

/// The configuration that `cfg_attr` depends on: the lines of `rustc --print cfg`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cfg(HashSet<String>);

impl Cfg {
    /// From lines such as `target_os="cuda"` and `unix`.
    pub(crate) fn new(lines: &str) -> Self {
        Self(lines.lines().map(|line| line.trim().to_owned()).collect())
    }

    /// Adds the cargo features that are on.
    pub(crate) fn with_features(&self, features: &[String]) -> Self {
        let mut all = self.0.clone();
        all.extend(features.iter().map(|name| format!("feature=\"{name}\"")));
        Self(all)
    }

    fn holds(&self, predicate: &Meta) -> bool {
        match (predicate.path.as_str(), &predicate.arguments) {
            ("all", Arguments::List(list)) => list.iter().all(|p| self.holds(p)),
            ("any", Arguments::List(list)) => list.iter().any(|p| self.holds(p)),
            ("not", Arguments::List(list)) => list.first().is_some_and(|p| !self.holds(p)),
            ("true", _) => true,
            ("false", _) => false,
            (name, Arguments::Value(value)) => self.0.contains(&format!("{name}={value}")),
            (name, _) => self.0.contains(name),
        }
    }
}

/// What the top of a file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Header {
    /// Whether the crate is `no_std` (or `no_core`) on the device.
    pub(crate) no_std: bool,
    /// The unstable features that it enables on the device.
    pub(crate) features: HashSet<String>,
    /// The source without `register_attr`, when it mentions that. Every other
    /// character is where it was, so that messages point to the right place.
    pub(crate) without_register_attr: Option<String>,
}

/// Reads `source`. Text that is no Rust has no attributes; rustc says what is wrong with it.
pub(crate) fn read(source: &str, cfg: &Cfg) -> Header {
    let mut header = Header::default();
    let mut blanks = Vec::new();
    for meta in Parser::new(source).inner_attributes() {
        collect(&meta, cfg, true, source, &mut header, &mut blanks);
    }
    if !blanks.is_empty() {
        let mut patched = source.to_owned();
        // Replacements keep the length, so that the order does not matter.
        for (range, replacement) in blanks {
            let old = &source[range.clone()];
            let mut new = replacement.to_owned();
            new.extend(
                old.chars()
                    .skip(replacement.len())
                    .map(|c| if c == '\n' { '\n' } else { ' ' }),
            );
            // Only ASCII can stand here: the names and brackets of attributes.
            if new.len() == old.len() {
                patched.replace_range(range, &new);
            }
        }
        header.without_register_attr = Some(patched);
    }
    header
}

fn collect(
    meta: &Meta,
    cfg: &Cfg,
    active: bool,
    source: &str,
    header: &mut Header,
    blanks: &mut Vec<(Range<usize>, &'static str)>,
) {
    if active && (meta.path == "no_std" || meta.path == "no_core") {
        header.no_std = true;
    }
    let Arguments::List(list) = &meta.arguments else {
        return;
    };
    match meta.path.as_str() {
        "cfg_attr" => {
            if let Some((predicate, rest)) = list.split_first() {
                let active = active && cfg.holds(predicate);
                for meta in rest {
                    collect(meta, cfg, active, source, header, blanks);
                }
            }
        }
        // Another attribute must take its place, or the commas around it would not fit. This one
        // changes nothing, because its lint is off by default. rustc warns of an empty list.
        "register_attr" => blank_out(meta, blanks),
        "feature" if list.iter().all(|name| name.path == "register_attr") && !list.is_empty() => {
            blank_out(meta, blanks);
        }
        "feature" => {
            for name in list {
                if name.path == "register_attr" {
                    // The comma behind it goes too: `feature(, x)` is not a list.
                    let rest = &source[name.range.end..];
                    let comma = rest.trim_start().starts_with(',');
                    let end = if comma {
                        name.range.end + rest.find(',').unwrap_or(0) + 1
                    } else {
                        name.range.end
                    };
                    blanks.push((name.range.start..end, ""));
                } else if active {
                    header.features.insert(name.path.clone());
                }
            }
        }
        _ => {}
    }
}

fn blank_out(meta: &Meta, blanks: &mut Vec<(Range<usize>, &'static str)>) {
    let substitute = ["allow(unit_bindings)", "allow()"]
        .into_iter()
        .find(|text| text.len() <= meta.range.len());
    blanks.extend(substitute.map(|text| (meta.range.clone(), text)));
}

/// `path`, `path = value` or `path(list)`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Meta {
    path: String,
    arguments: Arguments,
    range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Arguments {
    None,
    /// As written, quotes included.
    Value(String),
    List(Vec<Meta>),
}

struct Parser<'a> {
    source: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(source: &'a str) -> Self {
        let mut at = 0;
        if source.starts_with('\u{feff}') {
            at = '\u{feff}'.len_utf8();
        }
        // A shebang, unless it is the first attribute.
        let rest = &source[at..];
        if rest.starts_with("#!") && !rest[2..].trim_start().starts_with('[') {
            at += rest.find('\n').unwrap_or(rest.len());
        }
        Self { source, at }
    }

    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn eat(&mut self, text: &str) -> bool {
        self.skip_blank();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else if trimmed.starts_with("/*") {
                self.at += block_comment(trimmed);
            } else {
                return;
            }
        }
    }

    fn inner_attributes(&mut self) -> Vec<Meta> {
        let mut found = Vec::new();
        loop {
            if !(self.eat("#") && self.eat("!") && self.eat("[")) {
                return found;
            }
            if let Some(meta) = self.meta() {
                found.push(meta);
            }
            // What `meta` has not understood still belongs to the attribute.
            if !self.skip_to_close(']') {
                return found;
            }
        }
    }

    fn meta(&mut self) -> Option<Meta> {
        self.skip_blank();
        let start = self.at;
        let length = self
            .rest()
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .unwrap_or(self.rest().len());
        let mut path = self.rest()[..length].to_owned();
        if path.is_empty() {
            return None;
        }
        self.at += length;
        let mut end = self.at;
        let arguments = if self.eat("(") {
            // `#![unsafe(no_mangle)]`: the wrapper means nothing here.
            let mut list = Vec::new();
            while let Some(meta) = self.meta() {
                list.push(meta);
                if !self.eat(",") {
                    break;
                }
            }
            self.skip_to_close(')');
            end = self.at;
            Arguments::List(list)
        } else if self.eat("=") {
            self.skip_blank();
            let start = self.at;
            if self.rest().starts_with('"') {
                self.at += string(self.rest());
            } else {
                self.at += self
                    .rest()
                    .find([',', ')', ']'])
                    .unwrap_or(self.rest().len());
            }
            end = self.at;
            Arguments::Value(self.source[start..self.at].trim().to_owned())
        } else {
            Arguments::None
        };
        if path == "unsafe"
            && let Arguments::List(list) = &arguments
            && let [inner] = list.as_slice()
        {
            path.clone_from(&inner.path);
        }
        Some(Meta {
            path,
            arguments,
            range: start..end,
        })
    }

    /// Goes behind the bracket that closes the current one.
    fn skip_to_close(&mut self, close: char) -> bool {
        let mut depth = 0_usize;
        loop {
            self.skip_blank();
            let rest = self.rest();
            let Some(next) = rest.chars().next() else {
                return false;
            };
            if next == '"' {
                self.at += string(rest);
                continue;
            }
            self.at += next.len_utf8();
            match next {
                '(' | '[' | '{' => depth += 1,
                c if depth == 0 && c == close => return true,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

/// The length of the string literal that `text` begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the block comment that `text` begins with; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Cfg {
        Cfg::new("target_os=\"cuda\"\ntarget_arch=\"nvptx64\"\ntarget_pointer_width=\"64\"\n")
    }

    fn features(source: &str) -> Vec<String> {
        let mut found: Vec<_> = read(source, &device()).features.into_iter().collect();
        found.sort();
        found
    }

    #[test]
    fn the_old_header_is_blanked_in_place() {
        let source = "\
#![cfg_attr(
    target_os = \"cuda\",
    no_std,
    feature(register_attr),
    register_attr(nvvm_internal)
)]
fn f() { register_attr(nvvm_internal) }
";
        let patched = read(source, &device()).without_register_attr.unwrap();
        assert_eq!(patched.len(), source.len());
        assert_eq!(patched.lines().count(), source.lines().count());
        let squeezed: String = patched.split_whitespace().collect();
        assert_eq!(
            squeezed,
            "#![cfg_attr(target_os=\"cuda\",no_std,allow(unit_bindings),allow(unit_bindings))]fnf(){register_attr(nvvm_internal)}"
        );
        assert_eq!(patched.find("fn f()"), source.find("fn f()"));
    }

    #[test]
    fn register_attr_may_stand_anywhere() {
        for (source, expected) in [
            (
                "#![feature(register_attr, abi_ptx)]",
                "#![feature(abi_ptx)]",
            ),
            (
                "#![feature(abi_ptx, register_attr)]",
                "#![feature(abi_ptx,)]",
            ),
            (
                "#![register_attr(nvvm_internal)]\n#![no_std]",
                "#![allow(unit_bindings)]#![no_std]",
            ),
            (
                "#![cfg_attr(target_os=\"cuda\", register_attr(nvvm_internal), no_std)]",
                "#![cfg_attr(target_os=\"cuda\",allow(unit_bindings),no_std)]",
            ),
        ] {
            let patched = read(source, &device()).without_register_attr.unwrap();
            let squeezed: String = patched.split_whitespace().collect();
            assert_eq!(squeezed, expected);
        }
    }

    #[test]
    fn other_sources_are_left_alone() {
        for source in [
            "",
            "#![no_std]\n// register_attr(nvvm_internal)\n",
            "//! #![register_attr(x)]\nfn main() {}",
            "#![doc = \"register_attr(x)\"]",
            "fn f() {}\n#![register_attr(x)]",
        ] {
            assert_eq!(
                read(source, &device()).without_register_attr,
                None,
                "{source}"
            );
        }
    }

    #[test]
    fn no_std_is_found_where_it_applies() {
        for (source, expected) in [
            ("#![no_std]", true),
            ("#![cfg_attr(target_os = \"cuda\", no_std)]", true),
            ("#![cfg_attr(not(target_os = \"cuda\"), no_std)]", false),
            ("#![cfg_attr(any(), no_std)]", false),
            ("// #![no_std]", false),
        ] {
            assert_eq!(read(source, &device()).no_std, expected, "{source}");
        }
    }

    #[test]
    fn features_are_found_where_they_apply() {
        assert_eq!(
            features(
                "#!/bin/sh\n/* a /* nested */ one */ //! doc ]\n#![doc = \"]\\\"\"]\n\
                 #![feature(abi_ptx, core_float_math)]\n\
                 #![cfg_attr(any(target_arch = \"nvptx\", target_arch = \"nvptx64\"), feature(asm_experimental_arch))]\n\
                 #![cfg_attr(not(target_os = \"cuda\"), feature(test))]\n\
                 #![cfg_attr(all(feature = \"fast\", target_os = \"cuda\"), feature(f16))]\n\
                 use core::fmt;"
            ),
            ["abi_ptx", "asm_experimental_arch", "core_float_math"]
        );
        let cfg = device().with_features(&["fast".to_owned()]);
        let header = read("#![cfg_attr(feature = \"fast\", feature(f16))]", &cfg);
        assert!(header.features.contains("f16"));
    }

    #[test]
    fn unfinished_text_ends_the_reading() {
        for source in ["#![feature(a", "#![", "#![cfg_attr(x, \"", "/* /*", "#!"] {
            let _ = read(source, &device());
        }
    }
}
