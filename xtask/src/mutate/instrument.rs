//! Inserts all mutations of a file at once, each behind a switch.
//!
//! One build then serves every mutation: `a < b` becomes `(if crate::halo_mutation::is(7) { (a) <=
//! (b) } else { a < b })`, and the environment variable [`SWITCH`] has the number of the active
//! one. Lines stay where they are, so that messages name lines of the original.

use std::ops::Range;

use super::operators::Site;

/// The environment variable with the number of the active mutation.
pub(crate) const SWITCH: &str = "HALO_MUTATION";

/// The environment variable with the path of a file. A test program appends the numbers of the
/// mutations that it has executed when it ends.
pub(crate) const REACHED: &str = "HALO_MUTATIONS_REACHED";

/// A file with its mutations inserted.
pub(crate) struct Instrumented {
    pub(crate) text: String,
    expressions: Vec<Expression>,
}

/// The position of an expression's mutations in the instrumented text, in bytes.
struct Expression {
    whole: Range<usize>,
    /// Each mutation's number and the position of its text.
    mutants: Vec<(u32, Range<usize>)>,
}

impl Instrumented {
    /// Inserts these mutations with their numbers. They are in the order of
    /// [`super::operators::sites`].
    pub(crate) fn new(text: &str, sites: &[(u32, &Site)]) -> Self {
        // Outer expressions before the ones inside them.
        let mut sites: Vec<&(u32, &Site)> = sites.iter().collect();
        sites.sort_by(|(_, a), (_, b)| {
            a.range
                .start
                .cmp(&b.range.start)
                .then(b.range.end.cmp(&a.range.end))
        });

        let mut output = Output {
            source: text,
            text: String::with_capacity(2 * text.len()),
            position: 0,
            open: Vec::new(),
            expressions: Vec::new(),
        };
        for same in sites.chunk_by(|(_, a), (_, b)| a.range == b.range) {
            let range = &same[0].1.range;
            output.close_until(range.start);
            output.copy_to(range.start);
            let start = output.text.len();
            let mut mutants = Vec::new();
            output.text.push('(');
            for (number, site) in same {
                output
                    .text
                    .push_str(&format!("if crate::halo_mutation::is({number}) {{ "));
                let before = output.text.len();
                output.text.push_str(&site.replacement);
                mutants.push((*number, before..output.text.len()));
                output.text.push_str(" } else ");
            }
            // In parentheses: `const { A } || b` at the start of a block would be two statements.
            output.text.push_str("{ (");
            output.open.push((range.end, output.expressions.len()));
            output.expressions.push(Expression {
                whole: start..start,
                mutants,
            });
        }
        output.close_until(usize::MAX);
        output.copy_to(text.len());
        Self {
            text: output.text,
            expressions: output.expressions,
        }
    }

    /// The mutations that may have caused a compiler error at these bytes: the one whose text
    /// contains them, else all of the innermost expression around them.
    pub(crate) fn to_blame(&self, error: &Range<usize>) -> Vec<u32> {
        let touches = |range: &Range<usize>| range.start < error.end && error.start < range.end;
        let direct: Vec<u32> = self
            .expressions
            .iter()
            .flat_map(|expression| &expression.mutants)
            .filter(|(_, range)| touches(range))
            .map(|&(number, _)| number)
            .collect();
        if !direct.is_empty() {
            return direct;
        }
        self.expressions
            .iter()
            .filter(|expression| touches(&expression.whole))
            .min_by_key(|expression| expression.whole.len())
            .map(|expression| {
                expression
                    .mutants
                    .iter()
                    .map(|&(number, _)| number)
                    .collect()
            })
            .unwrap_or_default()
    }
}

struct Output<'a> {
    source: &'a str,
    text: String,
    /// The length of the source that has been copied.
    position: usize,
    /// The expressions that have begun but not ended: their ends, and their indices in
    /// `expressions`.
    open: Vec<(usize, usize)>,
    expressions: Vec<Expression>,
}

impl Output<'_> {
    fn copy_to(&mut self, end: usize) {
        self.text.push_str(&self.source[self.position..end]);
        self.position = end;
    }

    /// Ends the open expressions that end at or before `limit`.
    fn close_until(&mut self, limit: usize) {
        while let Some(&(end, expression)) = self.open.last() {
            if end > limit {
                break;
            }
            self.open.pop();
            self.copy_to(end);
            self.text.push_str(") })");
            self.expressions[expression].whole.end = self.text.len();
        }
    }
}

/// The lints that a crate root allows, because mutants may violate them.
const ALLOWED: &str =
    "#![allow(warnings, arithmetic_overflow, unconditional_panic, unexpected_cfgs)]";

/// The instrumented root of a crate that takes the switch from `switch`, a crate that it depends
/// on.
pub(crate) fn dependent_root(instrumented: &str, switch: &str) -> String {
    format!("{ALLOWED} {instrumented}\n#[doc(hidden)]\npub use {switch}::halo_mutation;\n")
}

/// The instrumented root of a crate, with the switch in it, and without the lints that mutants
/// violate. Numbers of mutations are below `count`.
pub(crate) fn crate_root(instrumented: &str, count: u32) -> String {
    format!(
        "{ALLOWED} {instrumented}
/// The active mutation, and the mutations that a test program has executed.
#[doc(hidden)]
pub mod halo_mutation {{
    extern crate std;
    use std::io::Write as _;
    use std::sync::atomic::{{AtomicBool, AtomicU32, Ordering}};
    static REACHED: [AtomicBool; {count}] = [const {{ AtomicBool::new(false) }}; {count}];
    static ACTIVE: AtomicU32 = AtomicU32::new(ASK);
    /// Not read yet: ask the environment.
    const ASK: u32 = u32::MAX;
    /// Record all executed mutations; none is active.
    const NOTE: u32 = u32::MAX - 1;
    const NONE: u32 = u32::MAX - 2;
    unsafe extern \"C\" {{
        safe fn atexit(last: extern \"C\" fn()) -> i32;
    }}
    /// Whether this mutation is active. Never inlined: optimising thousands of these conditions
    /// would take the compiler half an hour.
    #[inline(never)]
    pub fn is(number: u32) -> bool {{
        let active = ACTIVE.load(Ordering::Relaxed);
        if active == NOTE {{
            let reached = &REACHED[number as usize];
            // All threads come here; this stores once.
            if !reached.load(Ordering::Relaxed) {{
                reached.store(true, Ordering::Relaxed);
            }}
            return false;
        }}
        active == number || active == ASK && ask(number)
    }}
    #[cold]
    #[inline(never)]
    fn ask(number: u32) -> bool {{
        static ASKED: std::sync::Once = std::sync::Once::new();
        ASKED.call_once(|| {{
            let active = if std::env::var_os(\"{REACHED}\").is_some() {{
                atexit(write);
                NOTE
            }} else {{
                let number = std::env::var(\"{SWITCH}\").ok();
                number.and_then(|number| number.parse().ok()).unwrap_or(NONE)
            }};
            ACTIVE.store(active, Ordering::Relaxed);
        }});
        is(number)
    }}
    extern \"C\" fn write() {{
        let mut numbers = std::string::String::new();
        for (number, reached) in REACHED.iter().enumerate() {{
            if reached.load(Ordering::Relaxed) {{
                numbers.push_str(&std::format!(\"{{number}}\\n\"));
            }}
        }}
        let file = std::env::var_os(\"{REACHED}\").and_then(|path| {{
            std::fs::OpenOptions::new().append(true).open(path).ok()
        }});
        if let Some(mut file) = file {{
            let _ = file.write_all(numbers.as_bytes());
        }}
    }}
}}
"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::operators::sites;
    use super::*;

    fn instrument(text: &str) -> Instrumented {
        let sites = sites(Path::new("test.rs"), text).unwrap();
        let numbered: Vec<(u32, &Site)> = (0..).zip(&sites).collect();
        Instrumented::new(text, &numbered)
    }

    #[test]
    fn expressions_inside_expressions_are_switched_separately() {
        let text = instrument("fn f() { a + b < c }").text;
        assert_eq!(
            text,
            "fn f() { (if crate::halo_mutation::is(1) { (a + b) <= (c) } else { \
             ((if crate::halo_mutation::is(0) { (a) - (b) } else { (a + b) }) < c) }) }"
        );
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn an_expression_that_begins_with_a_block_stays_one() {
        let text = instrument("fn f() { if const { A } || b { g() } }").text;
        assert!(text.contains("else { (const { A } || b) }"), "{text}");
    }

    #[test]
    fn an_expression_with_two_mutations_has_two_arms() {
        let text = instrument("fn f() { g(RADIUS) }").text;
        assert_eq!(
            text,
            "fn f() { g((if crate::halo_mutation::is(0) { (RADIUS + 1) } else \
             if crate::halo_mutation::is(1) { (RADIUS - 1) } else { (RADIUS) })) }"
        );
    }

    #[test]
    fn lines_stay_where_they_were() {
        let source = "fn f() {\n    a +\n        // why\n        b *\n        c;\n    g(h(RADIUS));\n    thread::sync_threads();\n}\n";
        let text = instrument(source).text;
        assert_eq!(text.lines().count(), source.lines().count());
        assert!(text.lines().nth(5).unwrap().contains("g(h("));
        assert!(text.lines().nth(6).unwrap().contains("sync_threads"));
        syn::parse_file(&text).unwrap();
    }

    #[test]
    fn with_every_switch_off_it_is_the_source() {
        // Removing the arms must give the original text.
        let source = "fn f() { let a = -b.min(c + 1) * d[e - 2]; if a < TILE && !ok { g(a) } }";
        let instrumented = instrument(source);
        let mut text = instrumented.text;
        while let Some(start) = text.find("(if crate::halo_mutation") {
            // The last arm of the innermost expression first: its start has no other inside.
            let start = text[start..]
                .rfind("(if crate::halo_mutation")
                .map_or(start, |at| start + at);
            let open = text[start..].find("else { (").unwrap() + start + "else { (".len();
            let close = text[open..].find(") })").unwrap() + open;
            let kept = text[open..close].to_owned();
            text.replace_range(start..close + ") })".len(), &kept);
        }
        assert_eq!(text, source);
    }

    #[test]
    fn an_error_is_blamed_on_what_it_points_into() {
        let instrumented = instrument("fn f() { a + b < c }");
        let at = |needle: &str| {
            let start = instrumented.text.find(needle).unwrap();
            start..start + needle.len()
        };
        assert_eq!(instrumented.to_blame(&at("(a) - (b)")), [0]);
        assert_eq!(instrumented.to_blame(&at("(a + b) <= (c)")), [1]);
        assert_eq!(instrumented.to_blame(&at("a + b) })")), [0]);
        assert_eq!(instrumented.to_blame(&at("fn f")), Vec::<u32>::new());
    }

    #[test]
    fn the_crate_root_keeps_its_lines() {
        let root = crate_root("//! Docs.\n#![no_std]\nfn f() {}\n", 7);
        assert!(root.lines().nth(2).unwrap().starts_with("fn f"));
        syn::parse_file(&root).unwrap();
        let dependent = dependent_root("//! Docs.\n#![no_std]\nfn f() {}\n", "below");
        assert!(dependent.lines().nth(2).unwrap().starts_with("fn f"));
        syn::parse_file(&dependent).unwrap();
    }
}
