//! The names of PTX files and the hashes in them, shared with the library's build script.

#[path = "../../host/ptx_hash.rs"]
mod of_library;

pub(crate) use of_library::*;
