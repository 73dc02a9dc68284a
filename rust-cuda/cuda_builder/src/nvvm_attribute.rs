//! `#[nvvm_internal::addrspace(n)]`: the address space of a static, as upstream's compiler backend
//! takes it.
//!
//! With `register_tool(nvvm_internal)` rustc accepts the attribute and ignores it. So it is read
//! from the text of the sources, and a static is known by its name alone.

use std::fs;
use std::path::PathBuf;

/// The statics in `sources` that have the attribute: their names and the numbers.
pub(crate) fn statics(sources: &[PathBuf]) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for source in sources {
        // rustc reports a source that cannot be read.
        let text = fs::read_to_string(source).unwrap_or_default();
        if text.contains("nvvm_internal") {
            found.extend(in_text(&text));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn in_text(text: &str) -> Vec<(String, u32)> {
    let without_comments: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let text = without_comments.join("\n");
    let mut found = Vec::new();
    for (at, _) in text.match_indices("nvvm_internal") {
        let rest = &text[at + "nvvm_internal".len()..];
        let Some(rest) = rest
            .trim_start()
            .strip_prefix("::")
            .and_then(|rest| rest.trim_start().strip_prefix("addrspace"))
            .and_then(|rest| rest.trim_start().strip_prefix('('))
        else {
            continue;
        };
        let Some((number, rest)) = rest.split_once(')') else {
            continue;
        };
        let Ok(number) = number.trim().parse() else {
            continue;
        };
        // What the attribute is on: other attributes and the visibility may be in between.
        let end = rest.find([';', '{', '=']).unwrap_or(rest.len());
        let mut words = rest[..end].split(|c: char| !c.is_alphanumeric() && c != '_');
        if words.any(|word| word == "static") {
            let name = words.find(|word| !word.is_empty() && *word != "mut");
            found.extend(name.map(|name| (name.to_owned(), number)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(&str, u32)]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|&(name, number)| (name.to_owned(), number))
            .collect();
        assert_eq!(in_text(text), expect, "{text}");
    }

    #[test]
    fn statics_with_the_attribute_are_found() {
        check(
            "extern \"C\" {\n #[cfg_attr(target_os = \"cuda\", nvvm_internal::addrspace(4))]\n\
             // The launch's.\n pub static PARAMS: Params;\n}\n\
             #[nvvm_internal::addrspace(3)]\n#[allow(unused)] static mut TILE: [f32; 4] = [0.0; 4];",
            &[("PARAMS", 4), ("TILE", 3)],
        );
    }

    #[test]
    fn other_mentions_are_not() {
        check("#![register_tool(nvvm_internal)]\nstatic X: u32 = 0;", &[]);
        check("// #[nvvm_internal::addrspace(3)]\nstatic X: u32 = 0;", &[]);
        check("#[nvvm_internal::kernel] pub unsafe fn k() {}", &[]);
        check(
            "#[nvvm_internal::addrspace(3)] fn f() {} static X: u32 = 0;",
            &[],
        );
    }
}
