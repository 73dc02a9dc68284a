//! Computes the guide's table of equal bits: the result of every family, on any number of ranks, in
//! every decomposition.

use crate::families::{CUTS, FAMILIES, Family, parts};
use halo_distributed::{Communicator, run};
use halo_gpu::{Device, test_cases};
use std::path::Path;

const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 8];

/// The numbers of ranks that this run tries.
fn tried() -> &'static [usize] {
    test_cases::either(&[8], &RANKS)
}

/// The numbers of ranks whose results have the bits of one.
fn equal(family: &Family, cut: usize, one: &[u8], folder: &Path) -> String {
    let is_equal = |ranks: usize| {
        let Some(parts) = parts(cut, family.axes, ranks) else {
            return false;
        };
        let all = run(ranks, |communicator| {
            (family.bits)(&communicator, &Device::cpu(), parts, folder)
        });
        let all = all.unwrap_or_else(|error| panic!("{} on {ranks}: {error}", family.name));
        all.iter().all(|it| it == one)
    };
    listed(tried().iter().copied().filter(|&ranks| is_equal(ranks)))
}

/// A cell of the table.
fn listed(numbers: impl Iterator<Item = usize>) -> String {
    let numbers: Vec<String> = numbers.map(|it| it.to_string()).collect();
    if numbers.is_empty() {
        "–".to_owned()
    } else {
        numbers.join(", ")
    }
}

/// A line of the guide's table, with only those numbers that this run tries.
fn of_tried(line: &str) -> String {
    let cell = |cell: &str| {
        let numbers = cell.split(", ").map(str::parse);
        let Ok(numbers) = numbers.collect::<Result<Vec<usize>, _>>() else {
            return cell.to_owned();
        };
        let tried = numbers.into_iter().filter(|it| tried().contains(it));
        listed(tried)
    };
    let (row, end) = line
        .strip_suffix(" |")
        .map_or((line, ""), |row| (row, " |"));
    let cells: Vec<String> = row.split(" | ").map(cell).collect();
    cells.join(" | ") + end
}

#[test]
fn the_table_of_equal_bits_is_that_of_the_guide() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut table = format!("| | {} |\n|---|---|---|---|\n", CUTS.join(" | "));
    for family in &FAMILIES {
        let alone = Communicator::alone();
        let one = (family.bits)(&alone, &Device::cpu(), [1; 3], folder.path());
        let one = one.unwrap_or_else(|error| panic!("{} alone: {error}", family.name));
        let cells = [0, 1, 2].map(|cut| equal(family, cut, &one, folder.path()));
        table += &format!("| {} | {} |\n", family.name, cells.join(" | "));
    }
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/guide/src/ranks.md");
    let guide = std::fs::read_to_string(guide).expect("the guide");
    let of_tried: String = guide.lines().map(|line| of_tried(line) + "\n").collect();
    assert!(
        of_tried.contains(&table),
        "the guide must have this table:\n{table}"
    );
}
