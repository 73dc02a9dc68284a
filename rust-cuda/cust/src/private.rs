//! Reserves traits for this crate.

/// Only this crate implements it, and so only this crate can implement a trait that requires it.
pub trait Sealed {}
