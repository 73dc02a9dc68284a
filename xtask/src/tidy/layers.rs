//! The rule `layers`: what each module may import, and that modules do not import each other in
//! circles.

use std::path::{Path, PathBuf};

use cargo_halo::output;

use super::lists;
use super::tree::{Findings, Tree};
use crate::error::Error;
use crate::imports::{Circle, Imports, ROOT};

/// Modules that belong together. A pattern covers a module and all below it; `*` stands for one
/// name.
struct Layer {
    name: &'static str,
    /// A module belongs to the layer with the longest pattern that covers it.
    modules: &'static [&'static str],
    /// The layers that its modules may import, beside their own.
    may: &'static [&'static str],
}

/// In `modules`, each family, every one a layer of its own; in `may`, the layers of all families.
const FAMILY: &str = "<family>";

/// A crate with its layers from the ground up.
struct Crate {
    name: &'static str,
    sources: &'static str,
    layers: &'static [Layer],
    /// Further imports that are forbidden, and why.
    never: &'static [(&'static str, &'static str, &'static str)],
    /// Imports that break the rules.
    exceptions: &'static [(&'static str, &'static str)],
}

const fn layer(
    name: &'static str,
    modules: &'static [&'static str],
    may: &'static [&'static str],
) -> Layer {
    Layer { name, modules, may }
}

/// Every module.
const ALL: Layer = layer("all", &["crate", "*"], &[]);

/// A crate without layers: only cycles are forbidden.
const fn without_layers(name: &'static str, sources: &'static str) -> Crate {
    Crate {
        name,
        sources,
        layers: &[ALL],
        never: &[],
        exceptions: &[],
    }
}

#[rustfmt::skip]
static CRATES: &[Crate] = &[
    Crate {
        name: "halo-gpu",
        sources: "host/src",
        layers: &[
            layer("core", &[
                "accuracy", "allocation", "argument", "axis", "caches", "constants", "error", "extents", "field", "field_ndarray",
                "finite_difference", "geometry", "grid", "limits", "pages", "shape", "simd", "streaming",
                "test_cases", "threads", "trial", "variants", "versions",
            ], &[]),
            layer("device", &["device", "launch", "march"], &["core"]),
            // The traits of a scalar type for each family: its kernels and its ports.
            layer("scalar", &["scalar"], &["core", "device", "shared", FAMILY]),
            // Operations on results that several families need.
            layer("shared", &["elementwise", "single_pass", "stencil"], &["core", "device", "scalar"]),
            layer(FAMILY, &[FAMILY], &["core", "device", "scalar", "shared"]),
            // The kernels with data for them, for all who iterate over the table.
            layer("cases", &["case", "subject", "*::cases"], &[
                "core", "device", "scalar", "shared", FAMILY,
            ]),
            layer("root", &["crate"], &["core", "device"]),
        ],
        never: &[
            ("*::cpu", "*::gpu", "a family's port must not use its launches"),
            ("*::cpu", "device::buffer", "a family's port must use slices, not buffers"),
            ("*::cpu", "launch", "a family's port must not use its launches"),
        ],
        exceptions: &[],
    },
    Crate {
        name: "gpu-kernels",
        sources: "gpu-kernels/src",
        layers: &[
            layer("shared", &["loops", "vector", "words"], &[]),
            layer("entry", &["entry", "register"], &[]),
            layer(FAMILY, &[FAMILY], &["shared", "entry"]),
            // The table lists the families.
            layer("registry", &["registry"], &["entry", FAMILY]),
            layer("root", &["crate"], &[]),
        ],
        never: &[],
        exceptions: &[],
    },
    without_layers("cuda_std", "rust-cuda/cuda_std/src"),
    without_layers("cuda_std_macros", "rust-cuda/cuda_std_macros/src"),
    without_layers("cuda_builder", "rust-cuda/cuda_builder/src"),
    without_layers("cuda_emulator", "rust-cuda/cuda_emulator/src"),
    without_layers("cuda_loader", "rust-cuda/cuda_loader/src"),
    without_layers("cust", "rust-cuda/cust/src"),
    without_layers("halo-stencil", "stencil/src"),
    without_layers("halo-distributed", "distributed/src"),
    without_layers("halo-report", "report/src"),
    without_layers("cargo-halo", "cargo-halo/src"),
    without_layers("xtask", "xtask/src"),
    without_layers("halo-baselines", "baselines/src"),
    without_layers("halo-bench", "bench/src"),
];

impl Crate {
    fn imports(&self, tree: &Tree) -> Result<Imports, Error> {
        let mut sources = Vec::new();
        for file in tree.rust_under(self.sources) {
            let path = file.strip_prefix(self.sources).unwrap_or(file);
            sources.push((path.to_owned(), tree.text(file)?));
        }
        Imports::of(&sources)
    }

    /// The layer of a module.
    fn layer_of(&'static self, module: &str, families: &[String]) -> Option<In> {
        let outermost = module.split("::").next().unwrap_or(module);
        let family = families.iter().find(|family| *family == outermost);
        let matching = self.layers.iter().flat_map(|layer| {
            let modules = layer.modules.iter();
            modules
                .filter(|pattern| match **pattern {
                    FAMILY => family.is_some(),
                    pattern => holds(pattern, module),
                })
                .map(move |pattern| (*pattern, layer))
        });
        // The longest pattern; of equals the one without `*`, and a family's name before
        // `<family>`.
        let best = matching.max_by_key(|(pattern, _)| {
            let parts = pattern.split("::").count();
            (parts, !pattern.contains('*'), *pattern != FAMILY)
        });
        best.map(|(pattern, layer)| In {
            layer,
            family: family.filter(|_| pattern == FAMILY).cloned(),
        })
    }

    /// The rule that this import violates.
    fn broken_by(&'static self, from: &str, to: &str, families: &[String]) -> Option<String> {
        let never = self.never.iter();
        let mut never = never.filter(|(by, of, _)| holds(by, from) && holds(of, to));
        if let Some((_, _, why)) = never.next() {
            return Some((*why).to_owned());
        }
        let (by, of) = (self.layer_of(from, families)?, self.layer_of(to, families)?);
        let may = by.name() == of.name() || by.layer.may.contains(&of.layer.name);
        (!may).then(|| format!("the layer {} must not import {}", by.name(), of.name()))
    }

    /// The violations that are not among these exceptions: module, line, and reason.
    fn breaches(
        &'static self,
        imports: &Imports,
        exceptions: &[(&str, &str)],
        families: &[String],
    ) -> Vec<(String, usize, String)> {
        let excepted = |from: &str, to: &str| {
            let mut exceptions = exceptions.iter();
            exceptions.any(|(by, of)| holds(by, from) && holds(of, to))
        };
        let mut breaches = Vec::new();
        for module in imports.files.keys() {
            if self.layer_of(module, families).is_none() {
                let what = format!("{module} is in no layer of {}", self.name);
                breaches.push((module.clone(), 0, what));
            }
        }
        for ((from, to), line) in &imports.edges {
            if !excepted(from, to)
                && let Some(rule) = self.broken_by(from, to, families)
            {
                let what = format!("{from} imports {to}: {rule}");
                breaches.push((from.clone(), *line, what));
            }
        }
        for circle in imports.circles(excepted) {
            let first = circle.members.first().copied().unwrap_or(ROOT);
            breaches.push((first.to_owned(), 0, told(&circle)));
        }
        breaches
    }
}

/// The layer of a module.
struct In {
    layer: &'static Layer,
    /// The module's family, where the layer is `<family>`.
    family: Option<String>,
}

impl In {
    /// The name of the layer; for a family, the family's name.
    fn name(&self) -> &str {
        self.family.as_deref().unwrap_or(self.layer.name)
    }
}

fn told(circle: &Circle<'_>) -> String {
    let imports = circle.imports.iter();
    let imports: Vec<String> = imports.map(|(from, to)| format!("{from} > {to}")).collect();
    format!(
        "{} modules import each other in a cycle: {}",
        circle.members.len(),
        imports.join(", ")
    )
}

/// Whether this pattern covers a module.
fn holds(pattern: &str, module: &str) -> bool {
    let mut names = module.split("::");
    pattern
        .split("::")
        .all(|part| names.next().is_some_and(|name| part == "*" || part == name))
}

pub(super) fn layers(tree: &Tree, findings: &mut Findings) -> Result<(), Error> {
    let families = lists::families(tree);
    for checked in CRATES {
        let imports = checked.imports(tree)?;
        for (module, line, what) in checked.breaches(&imports, checked.exceptions, &families) {
            let file = imports
                .files
                .get(&module)
                .map_or(Path::new(""), PathBuf::as_path);
            findings.add(Path::new(checked.sources).join(file), line, what);
        }
    }
    Ok(())
}

/// Prints the imports of each module, the circles, and the exceptions with their reasons.
pub(super) fn list(tree: &Tree) -> Result<(), Error> {
    let families = lists::families(tree);
    for listed in CRATES {
        let imports = listed.imports(tree)?;
        output::line(&format!("{} ({})", listed.name, listed.sources));
        let width = imports.files.keys().map(String::len).max().unwrap_or(0);
        for module in imports.files.keys() {
            let layer = listed.layer_of(module, &families);
            let layer = layer.as_ref().map_or("none", In::name);
            let of: Vec<&str> = imports.by(module).collect();
            output::line(format!("  {module:width$}  {layer:12}  {}", of.join(", ")).trim_end());
        }
        for circle in imports.circles(|_, _| false) {
            output::line(&format!("  {}", told(&circle)));
        }
        let breaches = listed.breaches(&imports, listed.exceptions, &families);
        for (at, (from, to)) in listed.exceptions.iter().enumerate() {
            let mut others = listed.exceptions.to_vec();
            others.remove(at);
            let more = listed.breaches(&imports, &others, &families);
            let mut more = more
                .iter()
                .filter(|breach| !breaches.contains(breach))
                .peekable();
            if more.peek().is_none() {
                output::line(&format!("  exception {from} > {to}: not needed"));
            }
            for (_, _, what) in more {
                output::line(&format!("  exception {from} > {to}: {what}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    static LAYERED: Crate = Crate {
        name: "example",
        sources: "src",
        layers: &[
            layer("core", &["error", "field"], &[]),
            layer("device", &["device"], &["core"]),
            layer(FAMILY, &[FAMILY], &["core", "device"]),
            layer("cases", &["*::cases"], &[FAMILY]),
        ],
        never: &[("*::cpu", "device", "a port must not use devices")],
        exceptions: &[],
    };

    /// The violations in a crate with these imports, each from one module to another.
    fn breaches(imports: &[(&str, &str)], exceptions: &[(&str, &str)]) -> Vec<String> {
        let modules = imports.iter().flat_map(|(from, to)| [*from, *to]);
        let imports = Imports {
            files: modules.map(|it| (it.to_owned(), PathBuf::new())).collect(),
            edges: imports
                .iter()
                .map(|(from, to)| (((*from).to_owned(), (*to).to_owned()), 1))
                .collect(),
        };
        let families = ["heat2d", "nbody"].map(str::to_owned);
        let breaches = LAYERED
            .breaches(&imports, exceptions, &families)
            .into_iter();
        breaches.map(|(_, _, what)| what).collect()
    }

    #[test]
    fn layers_know_what_is_below_them() {
        for fine in [
            ("field", "error"),
            ("device::buffer", "field"),
            ("heat2d::gpu", "device"),
            ("heat2d::cases", "nbody::cpu"),
            ("heat2d::cpu", "field"),
        ] {
            assert_eq!(breaches(&[fine], &[]), [""; 0]);
        }
        for (import, what) in [
            (
                ("error", "device"),
                "error imports device: the layer core must not import device",
            ),
            (
                ("nbody", "heat2d"),
                "nbody imports heat2d: the layer nbody must not import heat2d",
            ),
            (
                ("heat2d", "heat2d::cases"),
                "heat2d imports heat2d::cases: the layer heat2d must not import cases",
            ),
            (
                ("nbody::cpu", "device::buffer"),
                "nbody::cpu imports device::buffer: a port must not use devices",
            ),
            (("error", "new"), "new is in no layer of example"),
        ] {
            assert_eq!(breaches(&[import], &[]), [what]);
        }
    }

    #[test]
    fn circles_within_a_layer_break_the_rule_too() {
        let circle = [("heat2d", "heat2d::gpu"), ("heat2d::gpu", "heat2d")];
        assert_eq!(
            breaches(&circle, &[]),
            ["2 modules import each other in a cycle: heat2d > heat2d::gpu, heat2d::gpu > heat2d"]
        );
        assert!(breaches(&circle, &[circle[0]]).is_empty());
    }

    #[test]
    fn exceptions_hold_modules_and_what_is_below_them() {
        let imports = [("nbody::energy", "heat2d"), ("error", "device")];
        assert_eq!(breaches(&imports, &[("nbody", "heat2d")]).len(), 1);
        assert_eq!(
            breaches(&imports, &[("nbody", "*"), ("*", "device")]),
            [""; 0]
        );
        assert_eq!(breaches(&imports, &[("nbody::other", "heat2d")]).len(), 2);
    }

    #[test]
    fn layers_are_known_by_their_names() {
        for checked in CRATES {
            let names: Vec<&str> = checked.layers.iter().map(|layer| layer.name).collect();
            for (at, name) in names.iter().enumerate() {
                assert!(
                    !names[..at].contains(name),
                    "{name} is twice in {}",
                    checked.name
                );
            }
        }
    }
}
