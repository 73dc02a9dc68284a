//! The hash that ties committed PTX to its sources, and where it is recorded.

#[path = "../ptx_hash.rs"]
mod ptx_hash;

use std::fs;
use std::path::{Path, PathBuf};

/// A copy of the sources' layout that goes with the test.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("halo-hash-{name}-{}", std::process::id()));
        for source in ptx_hash::SOURCES {
            if Path::new(source).extension().is_some() {
                write(&root, source, "[package]\n");
            } else {
                write(&root, &format!("{source}/lib.rs"), "fn kernel() {}\n");
                write(&root, &format!("{source}/deep/er.rs"), "fn other() {}\n");
            }
        }
        Self(root)
    }

    fn write(&self, path: &str, contents: &str) {
        write(&self.0, path, contents);
    }

    fn hash(&self) -> String {
        ptx_hash::of_sources(&self.0).expect("readable sources")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn write(root: &Path, path: &str, contents: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, contents).expect("a file");
}

#[test]
fn every_source_counts_with_its_name_and_contents() {
    let tree = Tree::new("changes");
    let mut seen = vec![tree.hash()];
    assert_eq!(seen[0].len(), 64);
    for source in ptx_hash::SOURCES {
        let path = if Path::new(source).extension().is_some() {
            source.to_owned()
        } else {
            format!("{source}/deep/er.rs")
        };
        tree.write(&path, "fn changed() {}\n");
        seen.push(tree.hash());
    }
    tree.write("gpu-kernels/src/added.rs", "");
    seen.push(tree.hash());
    let from = tree.0.join("gpu-kernels/src/added.rs");
    fs::rename(from, tree.0.join("gpu-kernels/src/renamed.rs")).expect("the file");
    seen.push(tree.hash());
    let mut different = seen.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), seen.len(), "{seen:#?}");
}

#[test]
fn line_ends_and_stray_files_do_not_count() {
    let tree = Tree::new("line-ends");
    let before = tree.hash();
    tree.write("gpu-kernels/src/lib.rs", "fn kernel() {}\r\n");
    tree.write("gpu-kernels/src/.lib.rs.swp", "an editor's");
    tree.write("gpu-kernels/src/lib.rs~", "another's");
    tree.write("gpu-kernels/tests/kernel.rs", "not a source of PTX");
    assert_eq!(tree.hash(), before);
    tree.write("gpu-kernels/src/lib.rs", "fn kernel() {}\r");
    assert_ne!(tree.hash(), before, "a lone \\r is no line end");
}

#[test]
fn missing_sources_are_named() {
    let tree = Tree::new("missing");
    fs::remove_dir_all(tree.0.join("rust-cuda/cuda_std/src")).expect("the folder");
    let error = ptx_hash::of_sources(&tree.0).expect_err("a folder is missing");
    assert!(error.to_string().contains("cuda_std"), "{error}");
}

#[test]
fn what_the_header_records_is_read_back() {
    let hash = "0123456789abcdef".repeat(4);
    let file = ptx_hash::file(&hash, "a compiler", ".version 8.0\n");
    assert_eq!(ptx_hash::recorded(&file), Some(hash.as_str()));
    assert_eq!(ptx_hash::builder(&file), Some("a compiler"));
    assert_eq!(
        file.lines().nth(ptx_hash::HEADER_LINES),
        Some(".version 8.0")
    );
    let dos = file.replace('\n', "\r\n");
    assert_eq!(ptx_hash::recorded(&dos), Some(hash.as_str()));
    assert!(ptx_hash::is_whole(&dos));
    for other in [
        "",
        "\n.version 8.0\n",
        ".version 8.0\n.target sm_90\n",
        &format!("\n{file}"),
        &ptx_hash::file(&hash[1..], "a compiler", ""),
        &ptx_hash::file(&hash.replace('0', "g"), "a compiler", ""),
    ] {
        assert_eq!(ptx_hash::recorded(other), None, "{other:?}");
    }
}

/// What is left of a file when the disk is full, or one edited by hand.
#[test]
fn a_file_of_which_anything_is_missing_or_changed_is_not_whole() {
    let text = ".version 8.0\n.visible .entry kernel()\n{\n\tret;\n}\n";
    let whole = ptx_hash::file(&"0".repeat(64), "a compiler", text);
    assert!(ptx_hash::is_whole(&whole));
    for length in 0..whole.len() {
        assert!(!ptx_hash::is_whole(&whole[..length]), "{length} bytes");
    }
    for other in [
        whole.replace("ret", "nop"),
        whole.clone() + "\n",
        format!("\n{whole}"),
        whole.replace("sha256", "sha1"),
    ] {
        assert!(!ptx_hash::is_whole(&other), "{other}");
    }
}

#[test]
fn the_committed_files_are_whole() {
    for target in ptx_hash::TARGETS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("ptx")
            .join(ptx_hash::file_name(target));
        let file = fs::read_to_string(&path).expect("a committed file");
        assert!(ptx_hash::recorded(&file).is_some(), "{target}");
        assert!(ptx_hash::is_whole(&file), "{target}");
    }
}
