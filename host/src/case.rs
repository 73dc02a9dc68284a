//! Test cases: the kernels of the table with their data, which tests run and benchmarks time.
//!
//! Each family describes its kernels once: their arguments, the data, and the expected results
//! ([`Subject`]). Tests and benchmarks iterate over the table and get a [`Case`] for each kernel,
//! whatever its family.

pub use crate::subject::{
    Case, Expected, Judge, Launch, Memory, Random, Subject, Values, Verdict, buffer, buffer_mut,
    random,
};
pub use gpu_kernels::registry::{self, Entry, Problem, Role, Scalar as ScalarType};

/// All families.
pub const SUBJECTS: &[&dyn Subject] = &[
    // Families, which `cargo xtask tidy --write` lists.
    &crate::derivative3d::cases::Cases,
    &crate::elementwise::cases::Cases,
    &crate::heat2d::cases::Cases,
    &crate::heat3d::cases::Cases,
    &crate::nbody::cases::Cases,
    &crate::reduction::cases::Cases,
    &crate::roofline::cases::Cases,
    &crate::stencil1d::cases::Cases,
    &crate::wave3d::cases::Cases,
];

/// The family of a kernel.
#[must_use]
pub fn subject(entry: &Entry) -> Option<&'static dyn Subject> {
    SUBJECTS
        .iter()
        .copied()
        .find(|subject| subject.family() == entry.family)
}
