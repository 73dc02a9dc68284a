//! `new`: makes a crate with a kernel and with tests that run without a GPU.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::flags::New;
use crate::kernels::package_of;
use crate::outcome::Outcome;
use crate::output;

/// The files of a new crate and their contents. In them `{{name}}` is the crate's name,
/// `template_name` the same as a Rust identifier, and `{{crate:NAME}}` the source of the library
/// NAME.
const FILES: [(&str, &str); 10] = [
    ("Cargo.toml", include_str!("../template/Cargo.toml.txt")),
    ("README.md", include_str!("../template/README.md.txt")),
    ("build.rs", include_str!("../template/build.rs")),
    (
        "rust-toolchain.toml",
        include_str!("../template/rust-toolchain.toml.txt"),
    ),
    (".gitignore", "/target\n"),
    ("src/lib.rs", include_str!("../template/src/lib.rs")),
    ("src/main.rs", include_str!("../template/src/main.rs")),
    (
        "tests/smooth.rs",
        include_str!("../template/tests/smooth.rs"),
    ),
    (
        "kernels/Cargo.toml",
        include_str!("../template/kernels/Cargo.toml.txt"),
    ),
    (
        "kernels/src/lib.rs",
        include_str!("../template/kernels/src/lib.rs"),
    ),
];

/// A file that the repository has.
const PROBE: &str = "rust-cuda/cuda_std/Cargo.toml";

/// The source of the new crate's dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// A folder with the repository.
    Folder(PathBuf),
    /// An address that git can clone.
    Git(String),
    /// The registry.
    Registry,
}

impl Source {
    /// The argument of `--source`; by default the repository in which this program was built or, for
    /// a program that cargo took from a registry, the registry.
    fn of(said: Option<&str>) -> Result<Self, Error> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let said = match said {
            Some(address) if address.contains("://") || address.starts_with("git@") => {
                return Ok(Self::Git(address.to_owned()));
            }
            Some(folder) => PathBuf::from(folder),
            None if built.join(PROBE).is_file() => built,
            None => return Ok(Self::Registry),
        };
        let folder = said
            .canonicalize()
            .map_err(Error::file("find Halo's repository in", &said))?;
        let probe = folder.join(PROBE);
        match probe.is_file() {
            true => Ok(Self::Folder(folder)),
            false => Err(Error::file("find Halo's repository by", probe)(
                std::io::ErrorKind::NotFound.into(),
            )),
        }
    }

    /// The value of a dependency on the library of this name.
    fn dependency(&self, name: &str) -> String {
        let source = match self {
            Self::Folder(folder) => {
                let path = folder.join("rust-cuda").join(name);
                let path = path.to_string_lossy().replace('\\', "\\\\");
                format!("path = \"{}\"", path.replace('"', "\\\""))
            }
            Self::Git(address) => format!("git = \"{address}\""),
            Self::Registry => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
        };
        format!("package = \"{}\", {source}", package_of(name))
    }
}

/// Makes the folder with everything in it.
pub fn run(flags: &New) -> Result<Outcome, Error> {
    let folder = &flags.folder;
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let name = name_of_crate(&name)?;
    let source = Source::of(flags.source.as_deref())?;
    if folder.exists() {
        return Err(Error::Exists {
            path: folder.clone(),
        });
    }
    for (file, text) in FILES {
        let path = folder.join(file);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(Error::file("make", parent))?;
        std::fs::write(&path, filled(text, name, &source)).map_err(Error::file("write", &path))?;
    }
    output::line(&format!(
        "Made {}. There:\n\
         \n\
         \x20   cargo test                  the kernel in the emulator, against the formula\n\
         \x20   cargo halo check            its machine code, against the gates beside it\n\
         \x20   cargo run --features gpu    on a GPU",
        folder.display()
    ));
    Ok(Outcome::Clean)
}

/// The name, if cargo accepts it.
fn name_of_crate(name: &str) -> Result<&str, Error> {
    let wrong = |why| Error::Name {
        name: name.to_owned(),
        why,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match name {
        "" => Err(wrong("it is empty")),
        "test" | "core" | "std" | "alloc" | "kernels" => Err(wrong("another crate has it")),
        _ if !name.chars().all(plain) => {
            Err(wrong("it may only have letters, digits, `-` and `_`"))
        }
        _ if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Err(wrong("it must start with a letter"))
        }
        _ => Ok(name),
    }
}

fn filled(text: &str, name: &str, source: &Source) -> String {
    let mut text = text
        .replace("{{name}}", name)
        .replace("template_name", &name.replace('-', "_"));
    for dependency in ["cuda_builder", "cuda_emulator", "cuda_std", "cust"] {
        let mark = format!("{{{{crate:{dependency}}}}}");
        text = text.replace(&mark, &source.dependency(dependency));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_cargo_takes() {
        for name in ["a", "my-kernels", "x2_y"] {
            assert_eq!(name_of_crate(name).unwrap(), name);
        }
        for name in ["", "2x", "a b", "ä", "-a", "core", "kernels", "a.b"] {
            let said = name_of_crate(name).unwrap_err().to_string();
            assert!(
                said.contains(&format!("`{name}` cannot name a crate")),
                "{said}"
            );
        }
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        let git = Source::of(Some("https://example.com/halo.git")).unwrap();
        for source in [Source::of(None).unwrap(), git, Source::Registry] {
            for (file, text) in FILES {
                let text = filled(text, "my-crate", &source);
                assert!(!text.contains("{{"), "{file}:\n{text}");
                assert!(!text.contains("template"), "{file}:\n{text}");
            }
        }
    }

    #[test]
    fn a_source_is_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let said = Source::of(folder.path().to_str()).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot find Halo's repository by"),
            "{said}"
        );
        let said = Source::of(Some("no/such/folder")).unwrap_err().to_string();
        assert!(
            said.starts_with("cannot find Halo's repository in"),
            "{said}"
        );
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let flags = New {
            folder: folder.path().join("one"),
            source: None,
        };
        assert_eq!(run(&flags).unwrap(), Outcome::Clean);
        assert!(folder.path().join("one/kernels/src/lib.rs").is_file());
        assert!(matches!(run(&flags), Err(Error::Exists { .. })));
    }
}
