//! The rule `crates`: no build of the workspace with default features contains certain crates, not
//! even through other crates.

use std::collections::{BTreeMap, BTreeSet};

use cargo_halo::toolchain::Toolchain;
use cargo_metadata::{MetadataCommand, PackageId};

use super::tree::{Findings, Tree};
use crate::error::Error;

/// A crate that must not be in the build.
struct Refused {
    name: &'static str,
    why: &'static str,
    /// A crate that may bring it nevertheless, and why.
    but_by: Option<(&'static str, &'static str)>,
}

const REFUSED: [Refused; 2] = [
    Refused {
        name: "paste",
        why: "it is unmaintained (RUSTSEC-2024-0436); pastey is its successor",
        but_by: Some((
            "pulp",
            "no release of it does without; nothing of the macro is in what is compiled with it",
        )),
    },
    Refused {
        name: "vek",
        why: "it is for kernel crates that ask for it by the feature `vek` of cuda_std",
        but_by: None,
    },
];

pub(super) fn crates(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    const LOCK: &str = "Cargo.lock";
    if tree.has(LOCK) {
        for message in complaints(&REFUSED, &dependencies(tree)?) {
            findings.add(LOCK, 0, message);
        }
    }
    Ok(())
}

/// The dependencies of the default members on this system, each with its dependents.
fn dependencies(tree: &Tree) -> Result<BTreeMap<String, BTreeSet<String>>, Error> {
    let metadata = MetadataCommand::new()
        .manifest_path(tree.root.join("Cargo.toml"))
        // Dependencies for other systems need not be installed here.
        .other_options([
            "--filter-platform".to_owned(),
            Toolchain::of(&tree.root)?.host,
        ])
        .exec()?;
    let resolve = metadata.resolve.as_ref();
    let nodes: BTreeMap<&PackageId, &[PackageId]> = resolve
        .into_iter()
        .flat_map(|resolve| &resolve.nodes)
        .map(|node| (&node.id, &node.dependencies[..]))
        .collect();
    let name = |id: &PackageId| metadata[id].name.to_string();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut pending: Vec<&PackageId> = metadata.workspace_default_members.iter().collect();
    while let Some(id) = pending.pop() {
        if seen.insert(id) {
            for dependency in nodes.get(id).copied().unwrap_or_default() {
                found.entry(name(dependency)).or_default().insert(name(id));
                pending.push(dependency);
            }
        }
    }
    Ok(found)
}

/// The violations among crates of these names and dependents.
fn complaints(
    refused: &[Refused],
    dependencies: &BTreeMap<String, BTreeSet<String>>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    for Refused { name, why, but_by } in refused {
        let none = BTreeSet::new();
        let dependents = dependencies.get(*name).unwrap_or(&none);
        let excused = |dependent: &str| but_by.is_some_and(|(by, _)| by == dependent);
        for dependent in dependents.iter().filter(|it| !excused(it)) {
            complaints.push(format!("{dependent} brings {name}: {why}"));
        }
        if let Some((by, _)) = but_by
            && !dependents.contains(*by)
        {
            complaints.push(format!(
                "{by} is excused for bringing {name}, but does not bring it: xtask/src/tidy/crates.rs"
            ));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(crates: &[(&str, &[&str])]) -> Vec<String> {
        let dependencies = crates
            .iter()
            .map(|(name, dependents)| {
                let dependents = dependents.iter().map(ToString::to_string);
                ((*name).to_owned(), dependents.collect())
            })
            .collect();
        complaints(&REFUSED, &dependencies)
    }

    #[test]
    fn refused_crates_are_found_by_whoever_brings_them() {
        assert_eq!(found(&[("paste", &["pulp"])]), Vec::<String>::new());
        let messages = found(&[("paste", &["pulp", "other"]), ("vek", &["halo-cuda-std"])]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].starts_with("other brings paste"),
            "{messages:?}"
        );
        assert!(
            messages[1].starts_with("halo-cuda-std brings vek"),
            "{messages:?}"
        );
        // An unused exception is reported.
        let messages = found(&[]);
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("pulp is excused"), "{messages:?}");
    }
}
