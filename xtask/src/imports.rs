//! Finds in the sources which modules of a crate each module imports.
//!
//! A module is a file. Modules within a file are parts of it; modules for tests are left out. An
//! import is a path, in a `use` or elsewhere, macros included. It leads to the module that declares
//! the item: re-exports (`pub use`) are followed, so that `use crate::Error` imports `error`, and
//! not the crate's root. A call of a method names no module and does not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::{Item, UseTree, Visibility};

use crate::error::Error;
use crate::rust_source;

/// The words of a path, from the crate's root.
type Names = Vec<String>;

/// The name of a crate's root.
pub(crate) const ROOT: &str = "crate";

/// The modules of a crate, and the imports of each.
pub(crate) struct Imports {
    /// The file of each module.
    pub(crate) files: BTreeMap<String, PathBuf>,
    /// The line of the first import, by importing and imported module.
    pub(crate) edges: BTreeMap<(String, String), usize>,
}

impl Imports {
    /// The modules of a crate, from its sources and their paths below `src`.
    pub(crate) fn of(sources: &[(PathBuf, String)]) -> Result<Self, Error> {
        let mut files = Vec::new();
        for (path, text) in sources {
            let mut file = File {
                module: module_of(path),
                path: path.clone(),
                ..File::default()
            };
            let syntax = rust_source::parse(path, text)?;
            let module = file.module.clone();
            if !file.collect(&syntax.items, &module) || is_for_tests(&syntax.attrs) {
                continue;
            }
            files.push(file);
        }
        let for_tests: Vec<Names> = files.iter().flat_map(|it| it.for_tests.clone()).collect();
        files.retain(|file| !for_tests.iter().any(|tests| file.module.starts_with(tests)));

        let places = Places::of(&files);
        let mut imports = Self {
            files: files
                .iter()
                .map(|file| (name_of(&file.module), file.path.clone()))
                .collect(),
            edges: BTreeMap::new(),
        };
        for file in &files {
            for (to, line) in file.imports(&places) {
                let edge = (name_of(&file.module), name_of(&to));
                let first = imports.edges.entry(edge).or_insert(line);
                *first = line.min(*first);
            }
        }
        Ok(imports)
    }

    /// The modules that this one imports.
    pub(crate) fn by<'a>(&'a self, module: &'a str) -> impl Iterator<Item = &'a str> {
        let edges = self.edges.keys();
        edges
            .filter(move |(from, _)| from == module)
            .map(|(_, to)| to.as_str())
    }

    /// Groups of modules that import each other in circles, with the imports between them; the
    /// imports for which `without` is true do not count.
    pub(crate) fn circles(&self, without: impl Fn(&str, &str) -> bool) -> Vec<Circle<'_>> {
        let mut graph: DiGraphMap<&str, ()> = DiGraphMap::new();
        for (from, to) in self.edges.keys().filter(|(from, to)| !without(from, to)) {
            graph.add_edge(from, to, ());
        }
        let mut circles: Vec<Circle<'_>> = tarjan_scc(&graph)
            .into_iter()
            .filter(|members| members.len() > 1)
            .map(|members| {
                let members: BTreeSet<&str> = members.into_iter().collect();
                let inside = graph
                    .all_edges()
                    .filter(|(from, to, ())| members.contains(from) && members.contains(to));
                let mut imports: Vec<(&str, &str)> =
                    inside.map(|(from, to, ())| (from, to)).collect();
                imports.sort_unstable();
                Circle { members, imports }
            })
            .collect();
        circles.sort();
        circles
    }
}

/// Modules that import one another in a circle, or in several connected ones.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Circle<'a> {
    pub(crate) members: BTreeSet<&'a str>,
    pub(crate) imports: Vec<(&'a str, &'a str)>,
}

fn name_of(module: &[String]) -> String {
    if module.is_empty() {
        ROOT.to_owned()
    } else {
        module.join("::")
    }
}

/// The module of a file below `src`.
fn module_of(path: &Path) -> Names {
    let mut names: Names = path
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    let last = names.last().map(String::as_str);
    if last == Some("mod") || (names.len() == 1 && matches!(last, Some("lib" | "main"))) {
        names.pop();
    }
    names
}

/// Whether the item with these attributes is compiled for tests only.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else {
            return false;
        };
        let words = list.tokens.to_string();
        attribute.path().is_ident("cfg")
            && (words == "test"
                || words.starts_with("all") && rust_source::has_word(&words, "test"))
    })
}

/// A path in the source.
#[derive(Clone, Debug)]
struct Written {
    /// The module that it stands in, which may be a part of the file's.
    scope: Names,
    names: Names,
    line: usize,
}

/// A name that a `use` declares.
#[derive(Clone, Debug)]
struct Used {
    path: Written,
    name: String,
    /// Whether other modules may import it from here.
    passed_on: bool,
}

#[derive(Default)]
struct File {
    module: Names,
    path: PathBuf,
    uses: Vec<Used>,
    /// `use a::*`, and whether other modules may import from it.
    globs: Vec<(Written, bool)>,
    /// All other paths.
    paths: Vec<Written>,
    /// All words outside `use`.
    words: BTreeSet<String>,
    /// The names declared here.
    declared: BTreeSet<String>,
    /// The macros that `macro_rules!` exports to the crate's root.
    exported: BTreeSet<String>,
    /// Modules for tests only.
    for_tests: Vec<Names>,
}

impl File {
    /// Adds these items of `scope`. Returns whether there is any.
    fn collect(&mut self, items: &[Item], scope: &[String]) -> bool {
        for item in items {
            let (attributes, name) = declaration(item);
            if is_for_tests(attributes) {
                if let Item::Mod(module) = item {
                    let inside = [scope, &[module.ident.to_string()]].concat();
                    self.for_tests.push(inside);
                }
                continue;
            }
            let name = name.map(ToString::to_string);
            match item {
                Item::Use(item) => {
                    let passed_on = !matches!(item.vis, Visibility::Inherited);
                    self.used(&item.tree, scope, &mut Vec::new(), passed_on);
                    continue;
                }
                Item::Mod(module) => {
                    if let Some((_, items)) = &module.content {
                        let inside = [scope, &[module.ident.to_string()]].concat();
                        self.collect(items, &inside);
                    }
                    continue;
                }
                Item::Macro(item) => {
                    let exports = |it: &syn::Attribute| it.path().is_ident("macro_export");
                    if item.attrs.iter().any(exports) {
                        self.exported.extend(name.clone());
                    }
                }
                _ => {}
            }
            self.declared.extend(name);
            self.scan(item.to_token_stream(), scope);
        }
        true
    }

    fn used(&mut self, tree: &UseTree, scope: &[String], path: &mut Names, passed_on: bool) {
        let written = |names: &[String], span: Span| Written {
            scope: scope.to_vec(),
            names: names.to_vec(),
            line: span.start().line,
        };
        match tree {
            UseTree::Path(step) => {
                path.push(step.ident.to_string());
                self.used(&step.tree, scope, path, passed_on);
                path.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.used(tree, scope, path, passed_on);
                }
            }
            UseTree::Glob(glob) => self.globs.push((written(path, glob.span()), passed_on)),
            UseTree::Name(_) | UseTree::Rename(_) => {
                let (last, name) = match tree {
                    UseTree::Rename(it) => (&it.ident, &it.rename),
                    UseTree::Name(it) => (&it.ident, &it.ident),
                    _ => return,
                };
                let mut names = path.clone();
                if last != "self" {
                    names.push(last.to_string());
                }
                let name = match (name == "self", names.last()) {
                    (true, Some(module)) => module.clone(),
                    _ => name.to_string(),
                };
                self.uses.push(Used {
                    path: written(&names, last.span()),
                    name,
                    passed_on,
                });
            }
        }
    }

    /// Adds the paths and words among these tokens.
    fn scan(&mut self, tokens: TokenStream, scope: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.scan(group.stream(), scope),
                TokenTree::Ident(_) => {
                    at = self.path(&tokens, at, scope, &[]);
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Adds the path that begins at this token, with these names in front. Returns its end.
    fn path(
        &mut self,
        tokens: &[TokenTree],
        from: usize,
        scope: &[String],
        before: &[String],
    ) -> usize {
        let colons = |at: usize| {
            let is = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(it)) if it.as_char() == ':');
            is(at) && is(at + 1)
        };
        let mut names = before.to_vec();
        let mut at = from;
        let mut line = 0;
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            self.words.insert(ident.to_string());
            names.push(ident.to_string());
            line = ident.span().start().line;
            at += 1;
            if !colons(at) {
                break;
            }
            at += 2;
            match tokens.get(at) {
                // As in a `use` within a function.
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                    let mut place = 0;
                    while place < inside.len() {
                        place = self.path(&inside, place, scope, &names).max(place + 1);
                    }
                    return at + 1;
                }
                Some(TokenTree::Ident(_)) => {}
                _ => break,
            }
        }
        if at > from && names.len() > 1 {
            self.paths.push(Written {
                scope: scope.to_vec(),
                names,
                line,
            });
        }
        at
    }

    /// The modules that this one imports, and where.
    fn imports(&self, places: &Places) -> Vec<(Names, usize)> {
        // Modules by their local names; imports from them are paths.
        let mut modules: HashMap<&str, Names> = HashMap::new();
        let mut found = Vec::new();
        for used in &self.uses {
            let Some(path) = places.absolute(&used.path, None) else {
                continue;
            };
            let (module, rest) = places.resolve(path);
            if rest.is_empty() {
                modules.insert(&used.name, module);
            } else if !used.passed_on || self.words.contains(&used.name) {
                found.push((module, used.path.line));
            }
        }
        for (path, passed_on) in &self.globs {
            if let Some(path_here) = places.absolute(path, None)
                && !passed_on
            {
                found.push((places.resolve(path_here).0, path.line));
            }
        }
        for path in &self.paths {
            if let Some(names) = places.absolute(path, Some(&modules)) {
                found.push((places.resolve(names).0, path.line));
            }
        }
        found.retain(|(module, _)| *module != self.module);
        found
    }
}

/// The attributes of an item, and its name where it has one.
fn declaration(item: &Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    match item {
        Item::Const(it) => (&it.attrs, Some(&it.ident)),
        Item::Enum(it) => (&it.attrs, Some(&it.ident)),
        Item::Fn(it) => (&it.attrs, Some(&it.sig.ident)),
        Item::Impl(it) => (&it.attrs, None),
        Item::Macro(it) => (&it.attrs, it.ident.as_ref()),
        Item::Mod(it) => (&it.attrs, Some(&it.ident)),
        Item::Static(it) => (&it.attrs, Some(&it.ident)),
        Item::Struct(it) => (&it.attrs, Some(&it.ident)),
        Item::Trait(it) => (&it.attrs, Some(&it.ident)),
        Item::Type(it) => (&it.attrs, Some(&it.ident)),
        Item::Union(it) => (&it.attrs, Some(&it.ident)),
        Item::Use(it) => (&it.attrs, None),
        _ => (&[], None),
    }
}

/// Resolves the names of a crate.
struct Places {
    modules: BTreeSet<Names>,
    /// The declared names, by module.
    declared: HashMap<Names, BTreeSet<String>>,
    /// The re-exported names of a module, and their origins.
    passed_on: HashMap<(Names, String), Names>,
    /// The modules whose names a module re-exports all.
    globs: HashMap<Names, Vec<Names>>,
    /// The modules of the macros at the crate's root.
    macros: HashMap<String, Names>,
}

impl Places {
    fn of(files: &[File]) -> Self {
        let mut places = Self {
            modules: files.iter().map(|file| file.module.clone()).collect(),
            declared: HashMap::new(),
            passed_on: HashMap::new(),
            globs: HashMap::new(),
            macros: HashMap::new(),
        };
        for file in files {
            let module = &file.module;
            places
                .declared
                .insert(module.clone(), file.declared.clone());
            for name in &file.exported {
                places.macros.insert(name.clone(), module.clone());
            }
            // Private imports too: a child may take them by `super::`.
            for used in &file.uses {
                if let Some(path) = places.absolute(&used.path, None) {
                    let name = (used.path.scope.clone(), used.name.clone());
                    places.passed_on.insert(name, path);
                }
            }
            for (path, _) in &file.globs {
                if let Some(names) = places.absolute(path, None) {
                    let from = places.globs.entry(path.scope.clone()).or_default();
                    from.push(names);
                }
            }
        }
        places
    }

    /// The path from the crate's root; `None` where it leads to another crate, or into the same
    /// module.
    fn absolute(&self, path: &Written, modules: Option<&HashMap<&str, Names>>) -> Option<Names> {
        let (first, rest) = path.names.split_first()?;
        let mut start = match first.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => path.scope.clone(),
            name => {
                let child = [&path.scope[..], &[name.to_owned()]].concat();
                let known = modules.and_then(|modules| modules.get(name)).cloned();
                known.or_else(|| self.modules.contains(&child).then_some(child))?
            }
        };
        let supers = path
            .names
            .iter()
            .take_while(|name| *name == "super")
            .count();
        start.truncate(start.len().saturating_sub(supers));
        start.extend(rest.iter().skip(supers.saturating_sub(1)).cloned());
        Some(start)
    }

    /// The module that declares this path, and the rest of the path.
    fn resolve(&self, mut path: Names) -> (Names, Names) {
        // A circle of re-exports is not valid Rust.
        'again: for _ in 0..32 {
            let mut module = Vec::new();
            for (at, name) in path.iter().enumerate() {
                module.push(name.clone());
                if self.modules.contains(&module) {
                    continue;
                }
                module.pop();
                let rest = &path[at + 1..];
                let next = self.next(&module, name);
                if let Some(next) = next.filter(|next| *next != path[..=at]) {
                    path = [next, rest.to_vec()].concat();
                    continue 'again;
                }
                return (module, path[at..].to_vec());
            }
            return (module, Vec::new());
        }
        (path, Vec::new())
    }

    /// The module from which another one has this name; `None` where it declares the name.
    fn next(&self, module: &[String], name: &str) -> Option<Names> {
        let declares = |module: &[String]| {
            self.declared
                .get(module)
                .is_some_and(|names| names.contains(name))
        };
        if declares(module) {
            return None;
        }
        if let Some(path) = self.passed_on.get(&(module.to_vec(), name.to_owned())) {
            return Some(path.clone());
        }
        if let (true, Some(place)) = (module.is_empty(), self.macros.get(name)) {
            return Some([&place[..], &[name.to_owned()]].concat());
        }
        let globs = self.globs.get(module)?;
        let from = globs.iter().map(|glob| self.resolve(glob.clone()).0);
        let mut from = from.filter(|glob| glob != module);
        let glob = from.find(|glob| declares(glob) || self.next(glob, name).is_some())?;
        Some([glob, vec![name.to_owned()]].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of a crate with these files, as "a imports b".
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<(PathBuf, String)> = files
            .iter()
            .map(|(path, text)| (path.into(), (*text).to_owned()))
            .collect();
        let imports = Imports::of(&sources).unwrap();
        let edges = imports.edges.iter();
        edges
            .map(|((from, to), line)| format!("{from} > {to} :{line}"))
            .collect()
    }

    #[test]
    fn an_import_leads_to_where_its_item_is() {
        let files = [
            (
                "lib.rs",
                "mod a;\nmod b;\npub use b::deep::Thing;\npub struct Own;",
            ),
            ("a.rs", "use crate::Thing;\nuse crate::b::Other as O;\n"),
            ("b/mod.rs", "pub mod deep;\npub use deep::*;\n"),
            ("b/deep.rs", "pub struct Thing;\npub struct Other;\n"),
        ];
        assert_eq!(edges(&files), ["a > b::deep :1"]);
        let own = [
            files[0],
            ("a.rs", "fn f() {\n    crate::Own;\n}"),
            files[2],
            files[3],
        ];
        assert_eq!(edges(&own), ["a > crate :2"]);
    }

    #[test]
    fn paths_count_wherever_they_stand() {
        let files = |text| {
            [
                ("lib.rs", ""),
                ("a/mod.rs", ""),
                ("a/b.rs", text),
                ("c.rs", ""),
            ]
        };
        for text in [
            "use crate::c::f;",
            "use super::super::c::{f, g};",
            "use {crate::c::f, std::g};",
            "fn f() -> crate::c::T { }",
            "macro_rules! m { () => { $crate::c::f() } }",
            "use crate::c; fn f() { c::g() }",
            "use crate::c as d; fn f() { d::g() }",
            "fn f() { use crate::c::{self, x}; }",
            "mod inner { use super::super::super::c::f; }",
            "use crate::c::*;",
        ] {
            assert_eq!(edges(&files(text)), ["a::b > c :1"], "{text}");
        }
        for text in [
            "use std::c::f;",
            "pub use crate::c::f;",
            "#[cfg(test)] mod tests { use crate::c::f; }",
            "#[cfg(all(test, unix))] fn f() { crate::c::f() }",
            "// crate::c::f",
            "use self::inner::f; mod inner { pub fn f() {} }",
        ] {
            assert_eq!(edges(&files(text)), [""; 0], "{text}");
        }
        // Re-exported, and used too.
        let text = "pub use crate::c::f; fn g() { f() }";
        assert_eq!(edges(&files(text)), ["a::b > c :1"]);
    }

    #[test]
    fn children_and_parents_import_each_other_only_where_they_say_so() {
        let parent = ("a/mod.rs", "mod b;\npub use b::f;\nfn own() {}\n");
        let lib = ("lib.rs", "mod a;\n");
        assert_eq!(
            edges(&[lib, parent, ("a/b.rs", "use super::own;")]),
            ["a::b > a :1"]
        );
        let uses = ("a/mod.rs", "mod b;\nfn own() { b::f() }\n");
        assert_eq!(
            edges(&[lib, uses, ("a/b.rs", "use super::*;")]),
            ["a > a::b :2", "a::b > a :1"]
        );
    }

    #[test]
    fn macros_are_where_they_are_exported_from() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "#[macro_export]\nmacro_rules! put { () => {} }\n"),
            ("b.rs", "crate::put!();\n"),
        ];
        assert_eq!(edges(&files), ["b > a :1"]);
    }

    #[test]
    fn modules_for_tests_are_left_out() {
        let files = [
            ("lib.rs", "mod a;\n#[cfg(test)]\nmod sample;\n"),
            ("a.rs", ""),
            ("sample.rs", "use crate::a::f;"),
        ];
        assert_eq!(edges(&files), [""; 0]);
    }

    #[test]
    fn circles_are_found_with_what_closes_them() {
        let sources: Vec<(PathBuf, String)> = [
            ("a.rs", "use crate::b::in_b;"),
            ("b.rs", "use crate::c::in_c;"),
            ("c.rs", "use crate::a::in_a;"),
            ("d.rs", "use crate::a::in_a;"),
        ]
        .map(|(path, text)| (path.into(), text.to_owned()))
        .to_vec();
        let imports = Imports::of(&sources).unwrap();
        assert_eq!(imports.edges.len(), 4);
        let circles = imports.circles(|_, _| false);
        assert_eq!(circles.len(), 1);
        assert_eq!(circles[0].members, BTreeSet::from(["a", "b", "c"]));
        assert_eq!(circles[0].imports, [("a", "b"), ("b", "c"), ("c", "a")]);
        assert!(
            imports
                .circles(|from, to| (from, to) == ("b", "c"))
                .is_empty()
        );
        assert_eq!(imports.by("d").collect::<Vec<_>>(), ["a"]);
    }
}
