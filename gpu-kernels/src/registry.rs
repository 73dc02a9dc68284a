//! The table of kernels: what each entry point computes, and how it is launched.
//!
//! A kernel's [`Entry`] stands in the file of the kernel, written by [`register!`]; the family's
//! `mod.rs` names the kernel in its list, and [`FAMILIES`] names the families. Launches take their
//! geometry from this table; tests, the benchmark and the inspection take their list of kernels
//! from it.
//!
//! ```
//! use gpu_kernels::registry::{self, Problem, Role};
//!
//! let entry = registry::entry("stencil1d_constant").unwrap();
//! assert_eq!((entry.family, entry.variant), ("stencil1d", "constant"));
//! assert_eq!(entry.role, Role::Textbook);
//!
//! let line = Problem::line(1000).with_block(64);
//! let geometry = entry.geometry(&line).unwrap();
//! assert_eq!((geometry.grid, geometry.block), ([16, 1, 1], [64, 1, 1]));
//! assert_eq!(geometry.dynamic_shared_bytes, 4 * (64 + 8));
//! assert_eq!(entry.cost(&line).bytes, 4 * (1000 + 992));
//! ```
//!
//! [`register!`]: crate::register

pub use crate::entry::{
    Cost, Counted, Entry, Family, Geometry, HasScalar, Measured, Problem, Refusal, Registered,
    Role, Scalar, Twin, blocks_for, cost_of_stencil, family_of, march_of_stencil, variant_of,
};

/// All families.
pub const FAMILIES: &[Family] = &[
    // Families, which `cargo xtask tidy --write` lists.
    crate::derivative3d::FAMILY,
    crate::elementwise::FAMILY,
    crate::heat2d::FAMILY,
    crate::heat3d::FAMILY,
    crate::nbody::FAMILY,
    crate::reduction::FAMILY,
    crate::roofline::FAMILY,
    crate::stencil1d::FAMILY,
    crate::wave3d::FAMILY,
];

/// All entries, family by family.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().flat_map(|family| family.kernels)
}

/// The entry of the kernel with this name.
#[must_use]
pub fn entry(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

/// The family with this name.
#[must_use]
pub fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}
