//! Tests of ranks that are threads of this process.

#[path = "../ways/families.rs"]
mod families;
#[path = "../turned/mod.rs"]
mod turned;
#[path = "../ways/mod.rs"]
mod ways;

mod equal_bits;
mod files;
mod graphs;
mod grids;
mod guide;
mod ranks;
mod steps;
