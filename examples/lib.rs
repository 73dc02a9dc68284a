//! The examples are the files beside this one; this package exists to hold what
//! they depend on, which the library does not.
