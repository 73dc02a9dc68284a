//! Everything of `halo-cust`, under the package name that upstream's `cust` has.

pub use ours::*;
