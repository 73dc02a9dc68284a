//! Static gates: comments beside a kernel that state facts of its machine code, and their check.
//!
//! ```text
//! // gate nbody_shared_f32: registers <= 64, MUFU = 16, FMUL = 48, LD = 0
//! ```
//!
//! A comment of this form states what must hold of the kernel's code for [`ARCH`]. `*` in the
//! kernel's name stands for any characters. A fact is one of
//!
//! | fact | counts |
//! |---|---|
//! | `registers` | per thread |
//! | `spills` | bytes that are stored and loaded again because registers are missing |
//! | `stack` | bytes of local memory per thread, without spills |
//! | `shared` | bytes of static shared memory |
//! | `instructions` | all but padding |
//! | an opcode, `LDG.E.128` | instructions with this opcode, or more suffixes: `LDG.E.128.CONSTANT`, but neither `LD` nor `LDG.128` |
//!
//! compared by `<=`, `>=` or `=` with a whole number. An instruction in a loop counts once. `spills
//! = 0` is demanded of every kernel that states nothing else about spills.

use std::path::{Path, PathBuf};

use super::Compiled;

/// The architecture that gates are checked for.
pub const ARCH: &str = "sm_90";

/// The start of a comment that is a gate.
const MARK: &str = "// gate ";

/// A gate in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    pub path: PathBuf,
    /// From 1; 0 for the facts demanded of every kernel.
    pub line: usize,
    /// A kernel's name; `*` stands for any characters.
    kernel: String,
    demands: Vec<Demand>,
}

/// One comparison of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Demand {
    fact: Fact,
    relation: Relation,
    bound: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Fact {
    Registers,
    Spills,
    Stack,
    Shared,
    Instructions,
    Opcode(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    AtMost,
    AtLeast,
    Equal,
}

impl Relation {
    const ALL: [(&'static str, Self); 3] = [
        ("<=", Self::AtMost),
        (">=", Self::AtLeast),
        ("=", Self::Equal),
    ];

    fn holds(self, found: usize, bound: usize) -> bool {
        match self {
            Self::AtMost => found <= bound,
            Self::AtLeast => found >= bound,
            Self::Equal => found == bound,
        }
    }
}

/// A fault of a gate, or of the code that it describes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    path: PathBuf,
    line: usize,
    message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// The gates in a source file; malformed ones are added to `findings`.
pub fn parse(path: &Path, text: &str, findings: &mut Vec<Finding>) -> Vec<Gate> {
    let mut gates = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some(said) = line.trim_start().strip_prefix(MARK) else {
            continue;
        };
        match parse_gate(said) {
            Ok((kernel, demands)) => gates.push(Gate {
                path: path.to_owned(),
                line: index + 1,
                kernel,
                demands,
            }),
            Err(problem) => findings.push(Finding {
                path: path.to_owned(),
                line: index + 1,
                message: format!(
                    "malformed gate: {problem}; expected `{MARK}KERNEL: FACT <= NUMBER, …` with the relations <=, >= and ="
                ),
            }),
        }
    }
    gates
}

fn parse_gate(said: &str) -> Result<(String, Vec<Demand>), String> {
    let (kernel, facts) = said
        .split_once(':')
        .ok_or_else(|| "no colon behind the kernel's name".to_owned())?;
    let kernel = kernel.trim();
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
    if kernel.is_empty() || !kernel.chars().all(part_of_name) {
        return Err(format!("`{kernel}` is not the name of a kernel"));
    }
    let demands = facts
        .split(',')
        .map(|fact| parse_demand(fact.trim()))
        .collect::<Result<_, _>>()?;
    Ok((kernel.to_owned(), demands))
}

fn parse_demand(text: &str) -> Result<Demand, String> {
    let (symbol, relation) = Relation::ALL
        .into_iter()
        .find(|(symbol, _)| text.contains(symbol))
        .ok_or_else(|| format!("`{text}` has no comparison"))?;
    let (fact, bound) = text.split_once(symbol).unwrap_or((text, ""));
    let bound = bound.trim();
    let bound = bound
        .parse()
        .map_err(|_| format!("`{bound}` is not a whole number"))?;
    let fact = match fact.trim() {
        "registers" => Fact::Registers,
        "spills" => Fact::Spills,
        "stack" => Fact::Stack,
        "shared" => Fact::Shared,
        "instructions" => Fact::Instructions,
        opcode if is_opcode(opcode) => Fact::Opcode(opcode.to_owned()),
        other => {
            return Err(format!(
                "`{other}` is neither registers, spills, stack, shared or instructions nor an opcode"
            ));
        }
    };
    Ok(Demand {
        fact,
        relation,
        bound,
    })
}

fn is_opcode(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.split('.').all(|part| {
            !part.is_empty()
                && part
                    .chars()
                    .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        })
}

impl Fact {
    fn of(&self, kernel: &Compiled) -> usize {
        let resources = &kernel.resources;
        match self {
            Self::Registers => resources.registers as usize,
            Self::Spills => resources.spill_bytes as usize,
            Self::Stack => resources.stack_bytes as usize,
            Self::Shared => resources.shared_bytes as usize,
            Self::Instructions => kernel.counts.total,
            Self::Opcode(opcode) => kernel
                .code
                .iter()
                .filter(|instruction| instruction.is(opcode))
                .count(),
        }
    }
}

impl std::fmt::Display for Demand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fact = match &self.fact {
            Fact::Registers => "registers",
            Fact::Spills => "spills",
            Fact::Stack => "stack",
            Fact::Shared => "shared",
            Fact::Instructions => "instructions",
            Fact::Opcode(opcode) => opcode,
        };
        let symbol = Relation::ALL
            .into_iter()
            .find(|&(_, relation)| relation == self.relation)
            .map_or("", |(symbol, _)| symbol);
        write!(f, "{fact} {symbol} {}", self.bound)
    }
}

impl Gate {
    fn covers(&self, kernel: &str) -> bool {
        matches(&self.kernel, kernel)
    }
}

/// Whether the pattern, with any characters for each `*`, is this text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| matches(tail, &rest[at..]))
        }),
    }
}

/// A kernel, its source file, and its code.
pub struct Subject<'a> {
    pub path: &'a Path,
    pub line: usize,
    pub name: &'a str,
    pub compiled: &'a Compiled,
}

/// The kernels that a gate may concern, among those that its pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The kernels of its own folder.
    Folder,
    /// The kernels of its crate.
    Crate,
}

impl Scope {
    fn has(self, gate: &Gate, kernel: &Subject<'_>) -> bool {
        let near = self == Self::Crate || kernel.path.parent() == gate.path.parent();
        near && gate.covers(kernel.name)
    }
}

/// The number of comparisons; those that fail are added to `findings`.
///
/// A gate without a kernel is a finding.
pub fn check(
    gates: &[Gate],
    scope: Scope,
    kernels: &[Subject<'_>],
    findings: &mut Vec<Finding>,
) -> usize {
    let mut compared = 0;
    for gate in gates {
        let mut covered = false;
        for kernel in kernels {
            if !scope.has(gate, kernel) {
                continue;
            }
            covered = true;
            for demand in &gate.demands {
                compared += 1;
                complain(demand, kernel, &gate.path, gate.line, findings);
            }
        }
        if !covered {
            findings.push(Finding {
                path: gate.path.clone(),
                line: gate.line,
                message: format!("no kernel here is called {}", gate.kernel),
            });
        }
    }
    let no_spills = Demand {
        fact: Fact::Spills,
        relation: Relation::Equal,
        bound: 0,
    };
    for kernel in kernels {
        let says_itself = gates.iter().any(|gate| {
            scope.has(gate, kernel)
                && gate
                    .demands
                    .iter()
                    .any(|demand| demand.fact == Fact::Spills)
        });
        if !says_itself {
            compared += 1;
            complain(&no_spills, kernel, kernel.path, kernel.line, findings);
        }
    }
    compared
}

fn complain(
    demand: &Demand,
    kernel: &Subject<'_>,
    path: &Path,
    line: usize,
    findings: &mut Vec<Finding>,
) {
    let found = demand.fact.of(kernel.compiled);
    if !demand.relation.holds(found, demand.bound) {
        findings.push(Finding {
            path: path.to_owned(),
            line,
            message: format!("{}: {demand} demanded, {found} found", kernel.name),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::resources::Resources;
    use super::super::sass;
    use super::*;

    /// A kernel with 20 registers, 8 bytes of stack, 1024 of shared memory, 5 instructions and this
    /// many spilled bytes.
    fn compiled(spill_bytes: u32) -> Compiled {
        let listing = "\
.text.heat2d_a:
        /*0000*/                   LDG.E.128.CONSTANT R4, desc[UR6][R4.64] ;
        /*0010*/                   LDG.E R3, desc[UR6][R4.64] ;
        /*0020*/                   FFMA R7, R4, R5, R7 ;
        /*0030*/                   STG.E desc[UR6][R2.64], R7 ;
        /*0040*/                   EXIT ;
        /*0050*/                   NOP ;
";
        let code = sass::parse(listing).remove("heat2d_a").unwrap();
        Compiled {
            resources: Resources {
                registers: 20,
                shared_bytes: 1024,
                stack_bytes: 8,
                spill_bytes,
            },
            counts: sass::Counts::of(&code),
            code,
        }
    }

    /// The number of comparisons that hold, and the messages of the others, for kernels `heat2d_a`
    /// and `heat2d_b` with the same code.
    fn checked(text: &str, spill_bytes: u32) -> (usize, Vec<String>) {
        let folder = Path::new("gpu-kernels/src/heat2d");
        let (file, other) = (folder.join("a.rs"), folder.join("b.rs"));
        let mut findings = Vec::new();
        let gates = parse(&file, text, &mut findings);
        let code = compiled(spill_bytes);
        let kernels = [(&file, "heat2d_a"), (&other, "heat2d_b")].map(|(path, name)| Subject {
            path,
            line: 7,
            name,
            compiled: &code,
        });
        let compared = check(&gates, Scope::Folder, &kernels, &mut findings);
        (compared, findings.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn gates_that_hold_are_silent() {
        let text = "\
/// A kernel.
    // gate heat2d_a: registers <= 20, registers >= 20, registers = 20, spills = 0
// gate heat2d_a: stack = 8, shared <= 1024, instructions = 5
// gate heat2d_*: LDG = 2, LDG.E.128 >= 1, LDG.E = 2, LD = 0, FFMA = 1, LDG.128 = 0
// gated memory is something else
";
        // Twelve facts of one kernel or of two, and no spills of the other.
        let (compared, findings) = checked(text, 0);
        assert_eq!(findings, Vec::<String>::new());
        assert_eq!(compared, 4 + 3 + 2 * 6 + 1);
    }

    #[test]
    fn each_kind_of_fact_can_fail() {
        for (fact, found) in [
            ("registers <= 19", 20),
            ("registers >= 21", 20),
            ("registers = 19", 20),
            ("stack = 0", 8),
            ("shared <= 1023", 1024),
            ("instructions <= 4", 5),
            ("LDG = 1", 2),
            ("LDG.E.128 >= 2", 1),
            ("FMUL >= 1", 0),
            ("FFMA = 0", 1),
        ] {
            let (_, findings) = checked(&format!("\n// gate heat2d_a: {fact}"), 0);
            assert_eq!(
                findings,
                [format!(
                    "gpu-kernels/src/heat2d/a.rs:2: heat2d_a: {fact} demanded, {found} found"
                )]
            );
        }
    }

    #[test]
    fn spills_are_an_error_unless_the_source_says_otherwise() {
        let (_, findings) = checked("", 12);
        assert_eq!(
            findings,
            [
                "gpu-kernels/src/heat2d/a.rs:7: heat2d_a: spills = 0 demanded, 12 found",
                "gpu-kernels/src/heat2d/b.rs:7: heat2d_b: spills = 0 demanded, 12 found",
            ]
        );
        let (_, findings) = checked("// gate *: spills <= 12", 12);
        assert_eq!(findings, Vec::<String>::new());
        let (_, findings) = checked("// gate *: spills <= 11", 12);
        assert_eq!(findings.len(), 2);
        // A fact about registers says nothing about spills.
        let (_, findings) = checked("// gate *: registers <= 99", 12);
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn a_gate_must_name_a_kernel_of_its_family() {
        for name in ["heat2d_c", "heat2d", "eat2d_*", "*_c", "nbody_*"] {
            let (_, findings) = checked(&format!("// gate {name}: LD = 0"), 0);
            assert_eq!(findings.len(), 1, "{name}");
            assert!(findings[0].contains("no kernel"), "{findings:?}");
        }
        let mut findings = Vec::new();
        let elsewhere = parse(
            Path::new("gpu-kernels/src/nbody/a.rs"),
            "// gate heat2d_a: LD = 0",
            &mut findings,
        );
        let code = compiled(0);
        let kernel = Subject {
            path: Path::new("gpu-kernels/src/heat2d/a.rs"),
            line: 1,
            name: "heat2d_a",
            compiled: &code,
        };
        let kernels = [kernel];
        check(&elsewhere, Scope::Folder, &kernels, &mut findings);
        assert_eq!(findings.len(), 1);
        findings.clear();
        check(&elsewhere, Scope::Crate, &kernels, &mut findings);
        assert_eq!(findings, []);
    }

    #[test]
    fn malformed_gates_are_errors() {
        for text in [
            "// gate heat2d_a",
            "// gate : LD = 0",
            "// gate heat2d a: LD = 0",
            "// gate heat2d_a:",
            "// gate heat2d_a: LD",
            "// gate heat2d_a: LD =",
            "// gate heat2d_a: LD = x",
            "// gate heat2d_a: LD = -1",
            "// gate heat2d_a: LD < 1",
            "// gate heat2d_a: LD == 1",
            "// gate heat2d_a: LD = 0,",
            "// gate heat2d_a: register <= 3",
            "// gate heat2d_a: ldg = 1",
            "// gate heat2d_a: LDG. = 1",
            "// gate heat2d_a: = 1",
        ] {
            let mut findings = Vec::new();
            let gates = parse(Path::new("a.rs"), text, &mut findings);
            assert!(gates.is_empty(), "{text}");
            assert_eq!(findings.len(), 1, "{text}");
            let said = findings[0].to_string();
            assert!(said.starts_with("a.rs:1: malformed gate: "), "{said}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("a*c", "abc") && matches("a*c", "ac") && matches("*", ""));
        assert!(matches("*b*", "abc") && matches("a*b*c", "a_b_b_c"));
        assert!(!matches("a*c", "abcd") && !matches("*b*", "aac") && !matches("a", "ab"));
    }
}
