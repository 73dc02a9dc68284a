//! Formats the results of `inspect` as tables and as JSON.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::resources::{Block, Occupancy, Resources};
use super::sass::{Counts, Kind};

/// A kernel in Rust and, where there is one, its twin in CUDA C++.
#[derive(Debug, Serialize)]
pub struct KernelReport {
    pub kernel: String,
    pub arch: String,
    /// The block for the occupancy, where it is known.
    pub block: Option<Block>,
    pub rust: Side,
    pub cpp: Option<Side>,
}

/// The kernel or its twin.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    pub resources: Resources,
    pub occupancy: Option<Occupancy>,
    pub instructions: Counts,
}

fn table(header: Vec<String>) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn percent(occupancy: Option<Occupancy>) -> String {
    occupancy.map_or_else(
        || "–".to_owned(),
        |occupancy| format!("{:.0} %", 100.0 * occupancy.fraction),
    )
}

/// One line per kernel, `Rust / CUDA C++` in each cell.
pub fn summary(reports: &[KernelReport]) -> String {
    type Column = (&'static str, fn(&Side) -> String);
    const COLUMNS: [Column; 10] = [
        ("registers", |side| side.resources.registers.to_string()),
        ("spills", |side| side.resources.spill_bytes.to_string()),
        ("occupancy", |side| percent(side.occupancy)),
        ("FP32", |side| {
            kinds(side, |kind| {
                matches!(kind, Kind::Ffma | Kind::Fadd | Kind::Fmul)
            })
        }),
        ("FP64", |side| {
            kinds(side, |kind| {
                matches!(kind, Kind::Dfma | Kind::Dadd | Kind::Dmul)
            })
        }),
        ("MUFU", |side| kinds(side, |kind| kind == Kind::Mufu)),
        ("LDG, STG", |side| {
            kinds(side, |kind| matches!(kind, Kind::Ldg(_) | Kind::Stg(_)))
        }),
        ("LDS, STS", |side| {
            kinds(side, |kind| matches!(kind, Kind::Lds(_) | Kind::Sts(_)))
        }),
        ("LD, ST", |side| {
            kinds(side, |kind| {
                matches!(kind, Kind::GenericLoad | Kind::GenericStore)
            })
        }),
        ("all", |side| side.instructions.total.to_string()),
    ];
    let both = reports.iter().any(|report| report.cpp.is_some());
    let mut header = vec!["kernel".to_owned()];
    header.extend(COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    let mut table = table(header);
    for report in reports {
        let mut row = vec![report.kernel.clone()];
        row.extend(COLUMNS.iter().map(|(_, cell)| {
            let own = cell(&report.rust);
            match &report.cpp {
                Some(cpp) => format!("{own} / {}", cell(cpp)),
                None => own,
            }
        }));
        table.add_row(row);
    }
    let arch = reports.first().map_or("", |report| report.arch.as_str());
    let sides = if both { "; Rust / CUDA C++" } else { "" };
    format!(
        "For {arch}{sides}. Instructions count once, however often a loop runs through them.\n{table}\n"
    )
}

fn kinds(side: &Side, wanted: impl Fn(Kind) -> bool) -> String {
    side.instructions.of_kinds(wanted).to_string()
}

/// A table per kernel, with all facts.
pub fn details(reports: &[KernelReport]) -> String {
    reports.iter().map(detail).collect::<Vec<_>>().join("\n")
}

fn detail(report: &KernelReport) -> String {
    let sides: Vec<&Side> = std::iter::once(&report.rust).chain(&report.cpp).collect();
    let mut header = vec![report.kernel.clone(), "Rust".to_owned()];
    if report.cpp.is_some() {
        header.push("CUDA C++".to_owned());
    }
    let mut table = table(header);
    let mut row = |name: &str, cell: &dyn Fn(&Side) -> String| {
        let mut cells = vec![name.to_owned()];
        cells.extend(sides.iter().map(|side| cell(side)));
        table.add_row(cells);
    };
    row("registers", &|side| side.resources.registers.to_string());
    row("static shared memory", &|side| {
        format!("{} B", side.resources.shared_bytes)
    });
    row("stack", &|side| format!("{} B", side.resources.stack_bytes));
    row("spills", &|side| {
        format!("{} B", side.resources.spill_bytes)
    });
    row("occupancy", &|side| percent(side.occupancy));
    row("limited by", &|side| {
        side.occupancy.map_or_else(
            || "–".to_owned(),
            |occupancy| format!("{} ({} blocks)", occupancy.limit, occupancy.blocks),
        )
    });
    let shown: BTreeSet<Kind> = sides
        .iter()
        .flat_map(|side| side.instructions.kinds.keys().copied())
        .collect();
    for kind in shown {
        row(&kind.label(), &|side| {
            side.instructions
                .kinds
                .get(&kind)
                .copied()
                .unwrap_or(0)
                .to_string()
        });
    }
    row("constant operands", &|side| {
        side.instructions.constant_operands.to_string()
    });
    row("all instructions", &|side| {
        side.instructions.total.to_string()
    });

    let block = match report.block {
        Some(block) => format!(
            "Occupancy is for blocks of {} threads with {} bytes of dynamic shared memory.",
            block.threads, block.dynamic_shared_bytes
        ),
        None => {
            "How large its blocks are is not known: --block THREADS, --dynamic-shared BYTES say it."
                .to_owned()
        }
    };
    format!(
        "For {}. {block} Instructions count once, however often a loop runs through them.\n{table}\n",
        report.arch
    )
}

#[cfg(test)]
mod tests {
    use super::super::sass;
    use super::*;

    fn side(registers: u32, code: &str) -> Side {
        let listing: String = std::iter::once(".text.k:\n".to_owned())
            .chain(code.split(';').map(|text| format!("/*0000*/ {text} ;\n")))
            .collect();
        Side {
            resources: Resources {
                registers,
                ..Resources::default()
            },
            occupancy: Some(Occupancy {
                blocks: 4,
                fraction: 0.5,
                limit: "registers",
            }),
            instructions: Counts::of(&sass::parse(&listing)["k"]),
        }
    }

    fn report(cpp: Option<Side>) -> KernelReport {
        KernelReport {
            kernel: "heat2d_a".to_owned(),
            arch: "sm_90".to_owned(),
            block: Some(Block {
                threads: 256,
                dynamic_shared_bytes: 0,
            }),
            rust: side(17, "FADD R1, R2, R3; LDG.E.128 R4, [R2]; EXIT"),
            cpp,
        }
    }

    /// The cells of the line that begins with this word.
    fn cells(text: &str, name: &str) -> Vec<String> {
        text.lines()
            .map(|line| {
                line.split(['│', '┆'])
                    .map(|cell| cell.trim().to_owned())
                    .filter(|cell| !cell.is_empty())
                    .collect::<Vec<_>>()
            })
            .find(|cells| cells.first().is_some_and(|first| first == name))
            .unwrap_or_else(|| panic!("no line {name} in\n{text}"))
    }

    #[test]
    fn both_sides_stand_side_by_side() {
        let report = report(Some(side(19, "FFMA R1, R2, R3, R4; EXIT")));
        let text = details(std::slice::from_ref(&report));
        assert_eq!(cells(&text, "registers"), ["registers", "17", "19"]);
        assert_eq!(cells(&text, "FADD"), ["FADD", "1", "0"]);
        assert_eq!(cells(&text, "FFMA"), ["FFMA", "0", "1"]);
        assert_eq!(cells(&text, "global load (LDG), 128 bits")[1..], ["1", "0"]);
        assert_eq!(cells(&text, "all instructions")[1..], ["3", "2"]);
        assert!(text.contains("blocks of 256 threads"), "{text}");

        let text = summary(&[report]);
        let row = cells(&text, "heat2d_a");
        assert_eq!(row[1], "17 / 19");
        assert_eq!(row[3], "50 % / 50 %");
        assert_eq!(row.last().unwrap(), "3 / 2");
    }

    #[test]
    fn without_a_twin_there_is_one_side() {
        let text = summary(&[report(None)]);
        assert_eq!(cells(&text, "heat2d_a")[1], "17");
        assert!(!text.contains("C++"), "{text}");
    }

    #[test]
    fn json_names_the_kinds() {
        let json = serde_json::to_value([report(None)]).unwrap();
        assert_eq!(json[0]["kernel"], "heat2d_a");
        assert_eq!(json[0]["rust"]["resources"]["registers"], 17);
        assert_eq!(
            json[0]["rust"]["instructions"]["global load (LDG), 128 bits"],
            1
        );
        assert_eq!(json[0]["rust"]["occupancy"]["limit"], "registers");
        assert!(json[0]["cpp"].is_null());
    }
}
