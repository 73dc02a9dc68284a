//! The kernels there are: those of the table, [`gpu_kernels::registry`].

mod outside;

use std::path::Path;

use gpu_kernels::registry::{self, Entry};

use crate::error::Error;
pub(crate) use outside::{is_instrument, tidy};

/// All of them, family by family.
pub(crate) fn all(root: &Path) -> Result<Vec<Entry>, Error> {
    let mut all: Vec<Entry> = registry::entries().copied().collect();
    all.extend(outside::entries(root)?);
    Ok(all)
}

/// The names of the families, sorted.
pub(crate) fn families(root: &Path) -> Result<Vec<String>, Error> {
    let table = registry::FAMILIES
        .iter()
        .map(|family| family.name.to_owned());
    let mut families: Vec<String> = table.chain(outside::families(root)?).collect();
    families.sort();
    Ok(families)
}
