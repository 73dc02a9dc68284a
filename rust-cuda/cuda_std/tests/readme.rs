//! Checks that the table in `rust-cuda/README.md` names every public item of
//! this crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The identifier that a text begins with.
fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &text[..end.unwrap_or(text.len())];
    (!name.is_empty() && !name.starts_with(char::is_numeric)).then_some(name)
}

/// Public items at the left margin, methods of public traits, and the functions
/// that tables such as `functions! { .. }` declare.
fn public_items(source: &str) -> BTreeSet<String> {
    let mut items = BTreeSet::new();
    let mut in_table = false;
    for line in source.lines() {
        if line.starts_with("mod tests") {
            break;
        }
        let mut words = line.split(' ').peekable();
        if words.peek() == Some(&"pub") {
            let kind = ["fn", "struct", "enum", "trait"];
            if words.any(|word| kind.contains(&word)) {
                items.extend(words.next().and_then(identifier).map(str::to_owned));
            }
        }
        if let Some(method) = line.strip_prefix("    fn ").filter(|_| line.ends_with(';')) {
            items.extend(identifier(method).map(str::to_owned));
        }
        in_table = match line {
            "functions! {"
            | "pointer_functions! {"
            | "to_integer! {"
            | "registers! {"
            | "mathematics! {"
            | "load! {"
            | "store! {"
            | "convert! {" => true,
            "}" => false,
            _ => in_table,
        };
        let entry = line
            .strip_prefix("    ")
            .filter(|entry| in_table && entry.contains(['(', '=', ',']));
        items.extend(entry.and_then(identifier).map(str::to_owned));
        // `"What it does." acos acosf(x);`
        if let Some((_, rest)) = entry.and_then(|entry| entry.strip_prefix('"')?.split_once("\" "))
        {
            let signature = rest.split('(').next().unwrap_or_default();
            items.extend(
                signature
                    .split(' ')
                    .filter_map(identifier)
                    .map(str::to_owned),
            );
        }
    }
    items
}

#[test]
fn every_public_item_is_in_the_table() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(crate_folder.join("../README.md")).unwrap();
    let words: BTreeSet<&str> = readme
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .collect();
    let mut all = 0;
    for file in [
        "async_copy",
        "cache",
        "cfg",
        "float",
        "float_ext",
        "host",
        "intrinsics",
        "mem",
        "misc",
        "ptr",
        "shared",
        "texture",
        "thread",
        "warp",
    ] {
        let source = fs::read_to_string(crate_folder.join(format!("src/{file}.rs"))).unwrap();
        let items = public_items(&source);
        assert!(!items.is_empty(), "found nothing in {file}.rs");
        all += items.len();
        for item in items {
            assert!(
                words.contains(item.as_str()),
                "`{item}` of {file}.rs is not in rust-cuda/README.md"
            );
        }
    }
    assert!(all > 400, "found only {all} items");
}

#[test]
fn the_reader_of_sources_finds_what_there_is() {
    let source = "pub unsafe fn a<T>(x: T) {}\npub(crate) fn no() {}\npub struct B;\nfn no() {}\n\
                  pub trait C {\n    fn d(self);\n    fn no() {}\n}\nfunctions! {\n    /// no(\n    \
                  e(x: f32) -> f32 = x;\n}\n    no(x)\nmod tests {\npub fn no() {}\n";
    assert_eq!(
        Vec::from_iter(public_items(source)),
        ["B", "C", "a", "d", "e"]
    );
}
