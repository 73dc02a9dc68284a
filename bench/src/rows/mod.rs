//! The rows of all families: those that a family describes, in a file of its own, and those of
//! cases. Each measured kernel in the table of kernels has a row, in the table's order.

mod case;
mod plane;
mod steps;

use gpu_kernels::registry;
use halo_gpu::{Device, DeviceKind};

use crate::error::{Error, chain};
use crate::measured;
use crate::row::{Family, LeftOut, Plan, Row};
use crate::size::Size;

/// Declares the families that describe their rows, each a module here.
macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(
            mod $family;
        )*

        pub(super) const FAMILIES: &[Family] = &[$($family::FAMILY),*];
    };
}

families! {
    // Families, which `cargo xtask tidy --write` lists.
    derivative3d,
    heat2d,
    heat3d,
    nbody,
    reduction,
    stencil1d,
    wave3d,
}

/// The family's own description of its rows, if it has one.
pub(super) fn own(family: &registry::Family) -> Option<&'static Family> {
    FAMILIES.iter().find(|own| own.name == family.name)
}

/// The rows of a family on this device at this size (`None`: its own). Where the device runs
/// kernels, each measured kernel has a row unless the family leaves it out. Rows without a kernel
/// come last.
pub(super) fn plan(
    family: &'static registry::Family,
    device: &Device,
    size: Option<&Size>,
) -> Result<Plan, Error> {
    let mut plan = match own(family) {
        Some(own) => (own.plan)(device, size)?,
        None => case::plan(family, device, size)?,
    };
    if device.kind() == DeviceKind::Cpu {
        return Ok(plan);
    }
    for entry in family.kernels.iter().filter(|it| measured::has_row(it)) {
        let has_row = plan.rows.iter().any(|row| is_of(row.as_ref(), entry.name));
        let left_out = plan.left_out.iter().any(|it| it.name == entry.name);
        if !has_row && !left_out {
            match case::row(entry, device, size) {
                Ok(row) => plan.rows.push(row),
                Err(error) => plan.left_out.push(LeftOut::new(entry.name, chain(&error))),
            }
        }
    }
    plan.rows.sort_by_key(|row| {
        let kernels = family.kernels.iter();
        let place = kernels.map(|entry| is_of(row.as_ref(), entry.name));
        place
            .enumerate()
            .find_map(|(at, is)| is.then_some(at))
            .unwrap_or(usize::MAX)
    });
    Ok(plan)
}

/// Whether a row is this kernel's: its name is the kernel's, with or without an operation behind
/// it.
fn is_of(row: &dyn Row, kernel: &str) -> bool {
    let name = row.name();
    let rest = name.strip_prefix(kernel);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The families with kernels that are measured.
    fn families() -> Vec<&'static registry::Family> {
        let families: Vec<_> = measured::families()
            .map(|it| registry::family(it).unwrap())
            .collect();
        assert!(!families.is_empty());
        families
    }

    #[test]
    fn every_kernel_that_is_measured_has_a_row_and_no_other_has() {
        for family in families() {
            let plan = plan(family, &Device::emulator(), None).unwrap();
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
                measured::kernels(family.name).into_iter().collect(),
                "{}",
                family.name
            );
        }
    }

    #[test]
    fn rows_are_in_the_order_of_the_table() {
        for family in families() {
            let plan = plan(family, &Device::emulator(), None).unwrap();
            let place = |row: &dyn Row| {
                family
                    .kernels
                    .iter()
                    .position(|entry| is_of(row, entry.name))
            };
            let places: Vec<_> = plan.rows.iter().map(|row| place(row.as_ref())).collect();
            let of_kernels = places.iter().flatten();
            assert!(of_kernels.clone().count() > 0, "{}", family.name);
            assert!(of_kernels.is_sorted(), "{}: {places:?}", family.name);
            let first_of_none = places
                .iter()
                .position(Option::is_none)
                .unwrap_or(places.len());
            assert!(
                places[first_of_none..].iter().all(Option::is_none),
                "{}",
                family.name
            );
        }
    }

    #[test]
    fn whoever_says_what_its_rows_are_is_a_family_with_rows() {
        for own in FAMILIES {
            assert!(
                families().iter().any(|family| family.name == own.name),
                "{}",
                own.name
            );
        }
    }
}
