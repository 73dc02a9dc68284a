//! [`Built`]: the tests and mutations that trials need.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::mutation::Mutation;
use super::suite::Suite;

/// Tests, and the mutations that are built into them.
#[derive(Serialize, Deserialize)]
pub(super) struct Built {
    /// The families whose tests must notice these mutations.
    pub(super) families: Vec<String>,
    pub(super) suites: BTreeMap<String, Suite>,
    /// The selected mutations.
    pub(super) mutations: Vec<Mutation>,
    /// The numbers of the mutations that did not compile.
    pub(super) rejected: Vec<u32>,
    /// A hash of the code of each file.
    pub(super) codes: BTreeMap<PathBuf, String>,
    /// A hash of the workspace.
    pub(super) hash: String,
}
