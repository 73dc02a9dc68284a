//! Checks that a library's file is complete before the dynamic linker maps it.
//!
//! The dynamic linker maps as much as the file's headers say, and trusts the contents. If the file
//! is shorter, after a full disk or a broken download, the process gets a `SIGBUS`; if zeros
//! replace data that was never written, a `SIGSEGV`.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const CACHE: &str = "/etc/ld.so.cache";
/// The linker's default folders.
const DEFAULT_FOLDERS: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];

/// Describes the damage of the file that the dynamic linker would open under this name. `None` if
/// the file is complete, or if the linker itself reports the problem.
pub(super) fn fault(name: &str) -> Option<String> {
    for path in candidates(name) {
        match examine(&path) {
            // The linker skips it too.
            Ok(Finding::Elsewhere) | Err(_) => {}
            Ok(Finding::Whole) => return None,
            Ok(Finding::Fault(fault)) => return Some(format!("{}: {fault}", path.display())),
        }
    }
    None
}

/// The paths where the linker looks for this name, in its order.
fn candidates(name: &str) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![name.into()];
    }
    let told = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let told = told.as_bytes().split(|byte| matches!(byte, b':' | b';'));
    let told = told.map(|folder| Path::new(std::ffi::OsStr::from_bytes(folder)).join(name));
    // The cache contains its paths as strings that end in a zero byte, among other data.
    let cache = std::fs::read(CACHE).unwrap_or_default();
    let cached = cache
        .split(|byte| *byte == 0)
        .map(|path| Path::new(std::ffi::OsStr::from_bytes(path)))
        .filter(|path| path.is_absolute() && path.ends_with(name))
        .map(Path::to_owned);
    let default = DEFAULT_FOLDERS.map(|folder| Path::new(folder).join(name));
    told.chain(cached).chain(default).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Finding {
    /// The file is complete, or the linker would not map it.
    Whole,
    /// The file is for another kind of processor.
    Elsewhere,
    Fault(String),
}

/// Sizes and constants of 64-bit ELF files.
mod elf {
    pub(super) const HEADER: usize = 64;
    /// The sizes of an entry in the tables of segments and of sections.
    pub(super) const SEGMENT: usize = 56;
    pub(super) const SECTION: usize = 64;
    pub(super) const MAGIC: [u8; 4] = *b"\x7fELF";
    /// 64 bits, little-endian.
    pub(super) const CLASS_AND_ORDER: [u8; 2] = [2, 1];
    #[cfg(target_arch = "x86_64")]
    pub(super) const MACHINE: u64 = 62;
    #[cfg(target_arch = "aarch64")]
    pub(super) const MACHINE: u64 = 183;
    /// Kinds of segments: mapped segments, and the linker's table.
    pub(super) const LOAD: u64 = 1;
    pub(super) const DYNAMIC: u64 = 2;
    /// The kind of a section with names.
    pub(super) const NAMES: u64 = 3;
}

fn examine(path: &Path) -> io::Result<Finding> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        // Opening a pipe would wait for a writer.
        return Ok(Finding::Fault("this is not a regular file".to_owned()));
    }
    let file = File::open(path)?;
    let size = metadata.len();
    let mut header = [0; elf::HEADER];
    // The linker itself rejects a file that is not an ELF file, with a message.
    if size < header.len() as u64 {
        return Ok(Finding::Whole);
    }
    file.read_exact_at(&mut header, 0)?;
    if header[..4] != elf::MAGIC {
        return Ok(Finding::Whole);
    }
    if header[4..6] != elf::CLASS_AND_ORDER || number(&header, 18, 2) != elf::MACHINE {
        return Ok(Finding::Elsewhere);
    }
    Ok(match damage(&file, size, &header)? {
        Some(damage) => Finding::Fault(format!("{damage}; install the driver again")),
        None => Finding::Whole,
    })
}

/// Describes the damage to a library's file: a part that its header names, but the file lacks.
fn damage(file: &File, size: u64, header: &[u8]) -> io::Result<Option<String>> {
    let cut = |end: u64| {
        Some(format!(
            "the file is truncated: it has {size} bytes, but its headers describe {end}"
        ))
    };
    let empty = || Some("the file's tables are overwritten with zeros".to_owned());

    let (table, entry, count) = (32, elf::SEGMENT, number(header, 56, 2));
    for at in 0..count {
        let mut segment = [0; elf::SEGMENT];
        let from = number(header, table, 8).saturating_add(at * entry as u64);
        let end = from.saturating_add(entry as u64);
        if end > size {
            return Ok(cut(end));
        }
        file.read_exact_at(&mut segment, from)?;
        let (kind, from, length) = (
            number(&segment, 0, 4),
            number(&segment, 8, 8),
            number(&segment, 32, 8),
        );
        let end = from.saturating_add(length);
        if kind == elf::LOAD && end > size {
            return Ok(cut(end));
        }
        if kind == elf::DYNAMIC && end <= size && length >= 8 {
            let mut first = [0; 8];
            file.read_exact_at(&mut first, from)?;
            if first == [0; 8] {
                return Ok(empty());
            }
        }
    }

    // Linkers write the table of sections at the end of a file; a fully stripped file has none.
    let (table, count, names) = (
        number(header, 40, 8),
        number(header, 60, 2),
        number(header, 62, 2),
    );
    if table == 0 || names >= count {
        return Ok(None);
    }
    let end = table.saturating_add(count * elf::SECTION as u64);
    if end > size {
        return Ok(cut(end));
    }
    let mut kind = [0; 8];
    file.read_exact_at(&mut kind[..4], table + names * elf::SECTION as u64 + 4)?;
    Ok((u64::from_le_bytes(kind) != elf::NAMES)
        .then(empty)
        .flatten())
}

/// The little-endian number of `length` bytes at `at`.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    let mut number = [0; 8];
    number[..length].copy_from_slice(&bytes[at..at + length]);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A library with a mapped segment at 300..400, which contains the linker's table, and two
    /// sections at 500..628, the second of which has the names.
    fn library() -> Vec<u8> {
        let mut library = vec![0; 640];
        let mut write = |at: usize, number: u64, length: usize| {
            library[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        };
        for (at, number, length) in [(18, elf::MACHINE, 2), (32, 64, 8), (56, 2, 2)] {
            write(at, number, length);
        }
        for (at, number, length) in [(40, 500, 8), (60, 2, 2), (62, 1, 2)] {
            write(at, number, length);
        }
        for (at, kind, from, length) in [(64, elf::LOAD, 300, 100), (120, elf::DYNAMIC, 350, 32)] {
            write(at, kind, 4);
            write(at + 8, from, 8);
            write(at + 32, length, 8);
        }
        write(350, 1, 8);
        write(500 + 64 + 4, elf::NAMES, 4);
        library[..4].copy_from_slice(&elf::MAGIC);
        library[4..6].copy_from_slice(&elf::CLASS_AND_ORDER);
        library
    }

    #[test]
    fn a_damaged_file_is_told_by_its_headers() {
        let path = std::env::temp_dir().join(format!("cuda_loader-file-{}", std::process::id()));
        let examined = |bytes: &[u8]| {
            // A new file each time: the system flushes a file that is overwritten to the disk.
            let _ = std::fs::remove_file(&path);
            std::fs::write(&path, bytes).expect("a file");
            examine(&path).expect("a file that can be read")
        };
        let whole = library();
        for length in 0..=whole.len() {
            // A file without a whole header does not look like an ELF file.
            let expected = !(64..628).contains(&length);
            let cut = examined(&whole[..length]);
            assert_eq!(cut == Finding::Whole, expected, "{length}: {cut:?}");
            let mut zeros = whole[..length].to_vec();
            zeros.resize(whole.len(), 0);
            let zeros = examined(&zeros);
            // A header with zeros may look like another machine's, or not like a header.
            if length >= 64 {
                assert_eq!(zeros == Finding::Whole, length > 568, "{length}: {zeros:?}");
            }
        }
        let changed = |at: std::ops::Range<usize>, byte: u8| {
            let mut library = library();
            library[at].fill(byte);
            examined(&library)
        };
        assert_eq!(changed(18..19, 3), Finding::Elsewhere);
        // Zeros where the linker looks first.
        assert!(matches!(changed(350..400, 0), Finding::Fault(_)));
        // Offsets beyond the end of any file.
        for number in [32..40, 40..48, 72..80, 96..104] {
            assert!(matches!(changed(number, 0xff), Finding::Fault(_)));
        }
        // No sections.
        assert_eq!(changed(40..48, 0), Finding::Whole);
        std::fs::remove_file(&path).expect("the file");
        assert!(examine(&path).is_err());
        assert!(matches!(
            examine(&std::env::temp_dir()),
            Ok(Finding::Fault(_))
        ));
    }

    #[test]
    fn a_name_with_a_folder_is_looked_for_there_alone() {
        assert_eq!(candidates("/a/b.so"), [Path::new("/a/b.so")]);
        assert!(candidates("b.so").contains(&"/usr/lib/b.so".into()));
        // Every machine has a complete C library.
        assert!(candidates("libc.so.6").iter().any(|path| path.is_file()));
        assert_eq!(fault("libc.so.6"), None);
    }
}
