//! Takes the LLVM bitcode out of a Rust library.
//!
//! An rlib is an `ar` archive. For this target its members are rustc's metadata and one LLVM
//! bitcode file per codegen unit. No linker of the host can use them, and this module reads no more
//! of the format than they need.

/// Why an archive cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("this is not an ar archive")]
    NoArchive,
    #[error("the archive is cut off or damaged at byte {0}")]
    Damaged(usize),
    #[error("it contains native code for another target instead of LLVM bitcode")]
    NotBitcode,
}

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// The bitcode of every codegen unit, in the archive's order.
///
/// # Errors
///
/// When the bytes are not an archive, or an object in it is not bitcode.
pub(crate) fn bitcode(archive: &[u8]) -> Result<Vec<&[u8]>, ArchiveError> {
    let mut objects = Vec::new();
    let mut at = MAGIC.len();
    if !archive.starts_with(MAGIC) {
        return Err(ArchiveError::NoArchive);
    }
    while at < archive.len() {
        let damaged = ArchiveError::Damaged(at);
        let header = archive.get(at..at + HEADER).ok_or(damaged)?;
        if header[58..60] != *b"`\n" {
            return Err(damaged);
        }
        let size: usize = std::str::from_utf8(&header[48..58])
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or(damaged)?;
        let name = std::str::from_utf8(&header[..16])
            .map_err(|_| damaged)?
            .trim_end();
        let start = at + HEADER;
        let mut contents = archive.get(start..start + size).ok_or(damaged)?;
        // BSD archives put a long name in front of the contents.
        if let Some(length) = name.strip_prefix("#1/") {
            let length: usize = length.parse().map_err(|_| damaged)?;
            contents = contents.get(length..).ok_or(damaged)?;
        }
        // `/` is the symbol table and `//` the table of long names. Another member that is no
        // bitcode is rustc's metadata, or else a native object.
        let is_table =
            name == "/" || name == "//" || name == "/SYM64/" || name.starts_with("__.SYMDEF");
        if is_bitcode(contents) {
            objects.push(contents);
        } else if !is_table && is_native_object(contents) {
            return Err(ArchiveError::NotBitcode);
        }
        // Members begin at even offsets.
        at = start + size + size % 2;
    }
    Ok(objects)
}

fn is_bitcode(contents: &[u8]) -> bool {
    // Plain bitcode, and the wrapper that Apple's tools put around it.
    contents.starts_with(b"BC\xC0\xDE") || contents.starts_with(&[0xDE, 0xC0, 0x17, 0x0B])
}

/// Whether a member is an ELF object. For other targets rustc wraps its metadata into an ELF file;
/// for this one it does not.
fn is_native_object(contents: &[u8]) -> bool {
    contents.starts_with(b"\x7FELF")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, contents) in members {
            bytes.extend(
                format!(
                    "{name:<16}0           0     0     644     {:<10}`\n",
                    contents.len()
                )
                .bytes(),
            );
            bytes.extend(*contents);
            if contents.len() % 2 == 1 {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    #[test]
    fn bitcode_members_are_found_and_others_are_not() {
        let bytes = archive(&[
            ("/", b"table"),
            ("//", b"long-name.o/\n"),
            ("lib.rmeta/", b"rust metadata"),
            ("/0", b"BC\xC0\xDEone"),
            ("b.o/", b"BC\xC0\xDEtwo!"),
        ]);
        let objects = bitcode(&bytes).unwrap();
        assert_eq!(objects, [&b"BC\xC0\xDEone"[..], &b"BC\xC0\xDEtwo!"[..]]);
    }

    #[test]
    fn long_names_of_bsd_archives_are_skipped() {
        let bytes = archive(&[("#1/4", b"nameBC\xC0\xDE")]);
        assert_eq!(bitcode(&bytes).unwrap(), [&b"BC\xC0\xDE"[..]]);
    }

    #[test]
    fn damage_is_an_error() {
        assert_eq!(bitcode(b"PK"), Err(ArchiveError::NoArchive));
        let whole = archive(&[("a.o/", b"BC\xC0\xDEone!")]);
        assert_eq!(
            bitcode(&whole[..whole.len() - 1]),
            Err(ArchiveError::Damaged(8))
        );
        let native = archive(&[("a.o/", b"\x7FELF")]);
        assert_eq!(bitcode(&native), Err(ArchiveError::NotBitcode));
    }
}
