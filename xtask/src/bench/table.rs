//! Which kernels have a row, by the table of kernels.

use gpu_kernels::registry::{self, Measured};

/// The kernels of this family that are measured.
pub(super) fn measured(family: &str) -> Vec<&'static str> {
    registry::family(family)
        .into_iter()
        .flat_map(|family| family.kernels)
        .filter(|entry| entry.measured == Measured::Row)
        .map(|entry| entry.name)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpu_kernels::registry;
    use halo_gpu::Device;

    use super::super::ROWS;
    use super::*;

    #[test]
    fn every_kernel_that_is_measured_has_a_row_and_no_other_has() {
        let mut families = 0;
        for family in ROWS.iter().filter(|it| registry::family(it.name).is_some()) {
            let plan = (family.plan)(&Device::emulator(), None).unwrap();
            let left_out = plan.left_out.iter().map(|row| row.name.clone());
            let rows: BTreeSet<String> = plan
                .rows
                .iter()
                .map(|row| row.name())
                .chain(left_out)
                .collect();
            let kernels: BTreeSet<&str> = registry::entries()
                .map(|entry| entry.name)
                .filter(|name| rows.contains(*name))
                .collect();
            assert_eq!(
                kernels,
                measured(family.name).into_iter().collect(),
                "{}",
                family.name
            );
            families += 1;
        }
        assert!(families > 0, "no family is in the table");
    }

    #[test]
    fn every_family_of_the_table_that_computes_something_has_rows() {
        for family in registry::FAMILIES.iter().filter(|it| !it.is_instrument()) {
            assert!(
                ROWS.iter().any(|rows| rows.name == family.name),
                "{}",
                family.name
            );
        }
    }
}
