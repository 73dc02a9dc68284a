//! [`Mutation`], the folders that have mutations, and the suites that are run against them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::operators::Site;
use crate::tidy::KERNELS;

/// A mutation of the kernels.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Mutation {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    /// The family whose tests must notice it; `None` for code that all families share.
    pub(super) family: Option<String>,
    pub(super) site: Site,
    /// The reason that the source gives why the mutation changes nothing, if any.
    pub(super) waived: Option<String>,
    /// Its rank in the order that samples are taken from.
    pub(super) rank: u64,
}

impl Mutation {
    /// "path:line:column operator: what", the text that `--only` searches.
    pub(super) fn describe(&self) -> String {
        format!(
            "{}:{}:{} {}: {}",
            self.path.display(),
            self.site.line,
            self.site.column,
            self.site.operator.name(),
            self.site.what
        )
    }
}

/// The crates with mutations, whose unit tests are run.
pub(super) const UNITS: [&str; 2] = ["gpu_kernels", "halo_stencil"];

/// The folders with mutations.
pub(super) const SOURCES: [&str; 2] = [KERNELS, "stencil/src"];

/// The skeleton of all stencils. Its suite is that of user-written stencils.
pub(super) const STENCIL: &str = "stencil";

/// The families whose kernels are stencils.
const STENCILS: [&str; 2] = ["heat3d", "wave3d"];

/// Whether a test of the family `of` also tests `family`.
pub(super) fn serves(of: &str, family: &str) -> bool {
    of == family || family == STENCIL && STENCILS.contains(&of)
}

/// The suite that tests every kernel of the table.
pub(super) const CONFORMANCE: &str = "conformance";
