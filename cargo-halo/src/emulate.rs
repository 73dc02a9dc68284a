//! `emulate`: launches one kernel in the emulator.
//!
//! A kernel in the emulator is an ordinary function. This writes a program that launches it with
//! the arguments of the command line, and has cargo build and run the program.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use cargo_metadata::{Package, TargetKind};

use crate::error::Error;
use crate::flags::Emulate;
use crate::kernels::{Kernels, package_of};
use crate::outcome::Outcome;
use crate::process;

/// The program's fixed part.
const PROGRAM: &str = include_str!("../template/emulate.rs.txt");

/// Writes the program into cargo's target folder and runs it.
pub fn run(flags: &Emulate) -> Result<Outcome, Error> {
    let kernels = Kernels::find(&flags.kernels)?;
    let program = program(&kernels, flags)?;
    let target = kernels.metadata.target_directory.as_std_path();
    let folder = target.join("halo-emulate");
    std::fs::create_dir_all(folder.join("src")).map_err(Error::file("make", &folder))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(Error::file("write", &path))
    };
    write("Cargo.toml", &manifest(&kernels)?)?;
    write("src/main.rs", &program)?;
    // The same versions of common dependencies.
    let lock = kernels.metadata.workspace_root.join("Cargo.lock");
    if lock.is_file() {
        let to = folder.join("Cargo.lock");
        std::fs::copy(&lock, &to).map_err(Error::file("write", &to))?;
    }

    let mut command = Command::new(process::cargo());
    command
        .current_dir(&folder)
        .args(["run", "--quiet", "--target-dir"])
        .arg(target);
    process::outcome(&mut command)
}

fn manifest(kernels: &Kernels) -> Result<String, Error> {
    let missing = |why: &str| Error::NoKernels {
        folder: kernels.folder.clone(),
        why: why.to_owned(),
    };
    let of_library = |name: &str| {
        let mut packages = kernels.metadata.packages.iter();
        packages
            .find(|package| package.name == package_of(name))
            .ok_or_else(|| missing(&format!("{name} is not among its dependencies")))
    };
    let own = kernels
        .package()
        .ok_or_else(|| missing("it is not a package"))?;
    let folder = toml_string(&kernels.folder);
    let mut text = String::from(
        "[workspace]\n\n[package]\nname = \"halo-emulate\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n",
    );
    let _ = writeln!(
        text,
        "kernels = {{ package = \"{}\", path = {folder} }}",
        own.name
    );
    for name in ["cuda_std", "cuda_emulator"] {
        let _ = writeln!(text, "{name} = {}", dependency(of_library(name)?));
    }
    Ok(text)
}

/// A dependency on this package from the same source. (From another source it would be another
/// crate.)
fn dependency(package: &Package) -> String {
    let name = format!("package = \"{}\"", package.name);
    let folder = package.manifest_path.parent().map(|it| it.as_std_path());
    let Some(source) = &package.source else {
        let folder = toml_string(folder.unwrap_or(Path::new(".")));
        return format!("{{ {name}, path = {folder}, default-features = false }}");
    };
    let Some(git) = source.repr.strip_prefix("git+") else {
        return format!(
            "{{ {name}, version = \"={}\", default-features = false }}",
            package.version
        );
    };
    let address = git.split('#').next().unwrap_or(git);
    let (address, at) = address.split_once('?').unwrap_or((address, ""));
    let at = match at.split_once('=') {
        Some((key @ ("branch" | "tag" | "rev"), value)) => format!(", {key} = \"{value}\""),
        _ => String::new(),
    };
    format!("{{ {name}, git = \"{address}\"{at}, default-features = false }}")
}

fn toml_string(path: &Path) -> String {
    let path = path.to_string_lossy();
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An argument of the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    /// A Rust expression.
    Value(String),
    Buffer {
        element: String,
        len: usize,
        /// The value of each element; by default random, or unwritten for outputs.
        value: Option<String>,
        is_output: bool,
    },
}

/// The element types of buffers.
const ELEMENTS: [&str; 12] = [
    "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "usize", "isize",
];

fn parse(text: &str) -> Result<Argument, Error> {
    let wrong = |why: String| Error::Argument {
        argument: text.to_owned(),
        why,
    };
    let (is_output, rest) = match text.strip_prefix("out:") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let buffer = rest.split_once(':').filter(|(element, rest)| {
        is_output || ELEMENTS.contains(element) && !rest.starts_with(':')
    });
    let Some((element, rest)) = buffer else {
        if is_output {
            return Err(wrong("an output is out:TYPE:LENGTH".to_owned()));
        }
        return Ok(Argument::Value(text.to_owned()));
    };
    if !ELEMENTS.contains(&element) {
        let known = ELEMENTS.join(", ");
        return Err(wrong(format!(
            "the type of the elements must be one of {known}, not {element}"
        )));
    }
    let (len, value) = match rest.split_once('=') {
        Some((len, value)) => (len, Some(value.to_owned())),
        None => (rest, None),
    };
    let len = len
        .parse()
        .map_err(|_| wrong(format!("`{len}` is not a number of elements")))?;
    Ok(Argument::Buffer {
        element: element.to_owned(),
        len,
        value,
        is_output,
    })
}

/// The whole program.
fn program(kernels: &Kernels, flags: &Emulate) -> Result<String, Error> {
    let is_path = |text: &str| {
        let part = |part: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        text.split("::").all(part)
    };
    if !is_path(&flags.kernel) {
        return Err(Error::Argument {
            argument: flags.kernel.clone(),
            why: "name the kernel with its modules, like filters::smooth".to_owned(),
        });
    }
    let has_library = kernels.package().is_some_and(|package| {
        let library = |kind: &TargetKind| matches!(kind, TargetKind::Lib | TargetKind::RLib);
        package.targets.iter().any(|it| it.kind.iter().any(library))
    });
    if !has_library {
        return Err(Error::NoKernels {
            folder: kernels.folder.clone(),
            why:
                "it is built only as a cdylib, and no program can depend on that; add \"rlib\" to \
                  its crate-type"
                    .to_owned(),
        });
    }
    let extent = |given: &[u32]| {
        let at = |axis: usize| given.get(axis).copied().unwrap_or(1);
        format!("[{}, {}, {}]", at(0), at(1), at(2))
    };

    let (mut buffers, mut arguments, mut outputs) = (String::new(), String::new(), String::new());
    for (index, text) in flags.arguments.iter().enumerate() {
        match parse(text)? {
            Argument::Value(expression) => {
                let _ = writeln!(arguments, "            {expression},");
            }
            Argument::Buffer {
                element,
                len,
                value,
                is_output,
            } => {
                let name = format!("buffer_{index}");
                let of = if is_output { "Out" } else { "In" };
                let element_of = match (value, is_output) {
                    (Some(value), _) => format!("|_| Some({value})"),
                    (None, true) => "|_| None".to_owned(),
                    (None, false) => "|random| Some(Random::number(random))".to_owned(),
                };
                let _ = writeln!(
                    buffers,
                    "    let {name} = Buffer::<{element}>::of(&memory, {index}, {len}, {element_of});"
                );
                // The kernel's parameter decides whether it is read or written.
                let _ = writeln!(
                    arguments,
                    "            // SAFETY: memory of this length, of this launch alone.\n            unsafe {{ {of}::from_raw({name}.addr(), {len}) }},"
                );
                if is_output {
                    let _ = writeln!(outputs, "    {name}.print({index});");
                }
            }
        }
    }
    Ok(PROGRAM
        .replace("{{kernel}}", &flags.kernel)
        .replace("{{grid}}", &extent(&flags.grid))
        .replace("{{block}}", &extent(&flags.block))
        .replace("{{dynamic_shared}}", &flags.dynamic_shared.to_string())
        .replace("{{seed}}", &flags.seed.to_string())
        .replace("    // {{buffers}}\n", &buffers)
        .replace("            // {{arguments}}\n", &arguments)
        .replace("    // {{outputs}}\n", &outputs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_values_inputs_and_outputs() {
        let buffer = |element: &str, len, value: Option<&str>, is_output| Argument::Buffer {
            element: element.to_owned(),
            len,
            value: value.map(str::to_owned),
            is_output,
        };
        for (text, expected) in [
            ("3.0_f32", Argument::Value("3.0_f32".to_owned())),
            ("u32::MAX", Argument::Value("u32::MAX".to_owned())),
            ("f32:10", buffer("f32", 10, None, false)),
            ("f64:0=1.5", buffer("f64", 0, Some("1.5"), false)),
            ("out:u8:3", buffer("u8", 3, None, true)),
            ("out:i64:3=-1", buffer("i64", 3, Some("-1"), true)),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
        for (text, why) in [
            ("out:3", "out:TYPE:LENGTH"),
            ("out:bool:3", ", not bool"),
            ("f32:x", "`x` is not a number"),
            ("f32:-1", "`-1` is not a number"),
            ("f32:", "`` is not a number"),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
