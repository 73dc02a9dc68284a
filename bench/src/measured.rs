//! Which kernels are measured, by the table of kernels.

use gpu_kernels::registry::{self, Entry, Measured};

/// Whether a kernel has a row.
pub(super) fn has_row(entry: &Entry) -> bool {
    entry.measured == Measured::Row
}

/// The families with kernels that are measured, by name.
pub(super) fn families() -> impl Iterator<Item = &'static str> {
    registry::FAMILIES
        .iter()
        .filter(|family| family.kernels.iter().any(has_row))
        .map(|family| family.name)
}

/// The kernels of this family that are measured.
pub(super) fn kernels(family: &str) -> Vec<&'static str> {
    let family = registry::family(family).into_iter();
    let kernels = family.flat_map(|family| family.kernels);
    kernels
        .filter(|entry| has_row(entry))
        .map(|entry| entry.name)
        .collect()
}
