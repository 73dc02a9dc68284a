//! Reads the header of machine code from nvcc or ptxas, before a driver loads it.
//!
//! A cubin is an ELF file of machine type 190. Its flags hold the GPU generation; the position in
//! the flags depends on the ABI version.

use crate::{ComputeCapability, CubinFault};

/// Bytes of the header of a 64-bit ELF file.
const HEADER: usize = 64;
const MACHINE_CUDA: u16 = 190;
/// ABI versions that store the generation in the lowest byte of the flags, and in the next byte.
const ABI_LOW_BYTE: u8 = 7;
const ABI_SECOND_BYTE: u8 = 8;

/// The GPU generation that this machine code is for, or what is wrong with the code.
pub(super) fn capability(image: &[u8]) -> Result<ComputeCapability, CubinFault> {
    let cut_off = |needed| CubinFault::CutOff {
        bytes: image.len(),
        needed,
    };
    if !image.starts_with(b"\x7fELF") {
        return Err(CubinFault::NotElf);
    }
    let Some(header) = image.first_chunk::<HEADER>() else {
        return Err(cut_off(HEADER as u64));
    };
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    // 64-bit, little-endian, and for a GPU.
    if header[4..6] != [2, 1] || half(18) != MACHINE_CUDA {
        return Err(CubinFault::NotForGpu);
    }
    let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;

    // The ends of the two tables; the later one is the end of the file.
    let program_end = table_end(long(32), half(54), half(56));
    let section_end = table_end(long(40), half(58), half(60));
    let needed = program_end.max(section_end);
    if needed > image.len() as u64 {
        return Err(cut_off(needed));
    }
    let flags = word(48);
    let generation = match header[8] {
        ABI_LOW_BYTE => flags & 0xff,
        ABI_SECOND_BYTE => flags >> 8 & 0xff,
        version => return Err(CubinFault::UnknownAbi { version }),
    };
    Ok(ComputeCapability {
        major: generation / 10,
        minor: generation % 10,
    })
}

/// The offset at which a table of this many entries ends.
fn table_end(start: u64, entry_bytes: u16, entries: u16) -> u64 {
    start.saturating_add(u64::from(entry_bytes) * u64::from(entries))
}

/// Whether a device runs machine code for `built_for`: code runs only on devices of the same major
/// generation, with the same or a higher minor number.
pub(super) fn runs_on(built_for: ComputeCapability, device: ComputeCapability) -> bool {
    built_for.major == device.major && built_for.minor <= device.minor
}

/// Cubins for tests, with nothing in them.
#[cfg(test)]
pub(super) mod fake {
    use super::*;

    /// A header for this generation, and a section table of two empty entries.
    pub(crate) fn cubin(abi: u8, generation: u8) -> Vec<u8> {
        let mut image = vec![0; HEADER + 2 * 64];
        image[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0x41, abi]);
        image[18..20].copy_from_slice(&MACHINE_CUDA.to_le_bytes());
        image[40..48].copy_from_slice(&(HEADER as u64).to_le_bytes());
        let byte = if abi == ABI_LOW_BYTE { 48 } else { 49 };
        image[byte] = generation;
        image[58..60].copy_from_slice(&64_u16.to_le_bytes());
        image[60..62].copy_from_slice(&2_u16.to_le_bytes());
        image
    }
}

#[cfg(test)]
mod tests {
    use super::fake::cubin;
    use super::*;

    const fn sm(major: u32, minor: u32) -> ComputeCapability {
        ComputeCapability { major, minor }
    }

    #[test]
    fn the_generation_is_found_in_either_version() {
        assert_eq!(capability(&cubin(7, 86)), Ok(sm(8, 6)));
        assert_eq!(capability(&cubin(8, 90)), Ok(sm(9, 0)));
        assert_eq!(capability(&cubin(8, 100)), Ok(sm(10, 0)));
        let unknown = capability(&cubin(9, 90)).unwrap_err();
        assert_eq!(unknown, CubinFault::UnknownAbi { version: 9 });
    }

    #[test]
    fn flags_as_ptxas_writes_them() {
        // e_flags of cubins by ptxas 13.0 and 12.4.
        let mut image = cubin(8, 0);
        image[48..52].copy_from_slice(&0x0600_5a04_u32.to_le_bytes());
        assert_eq!(capability(&image), Ok(sm(9, 0)));
        let mut image = cubin(7, 0);
        image[48..52].copy_from_slice(&0x005a_055a_u32.to_le_bytes());
        assert_eq!(capability(&image), Ok(sm(9, 0)));
    }

    #[test]
    fn what_is_no_machine_code_for_a_gpu_is_refused() {
        assert_eq!(capability(b""), Err(CubinFault::NotElf));
        assert_eq!(
            capability(b".version 8.0\n.target sm_90\n"),
            Err(CubinFault::NotElf)
        );
        let mut program = cubin(8, 90);
        program[18..20].copy_from_slice(&62_u16.to_le_bytes());
        assert_eq!(capability(&program), Err(CubinFault::NotForGpu));
    }

    #[test]
    fn a_file_cut_off_anywhere_is_refused() {
        let whole = cubin(8, 90);
        for length in 4..whole.len() {
            let fault = capability(&whole[..length]).unwrap_err();
            let cut_off = matches!(fault, CubinFault::CutOff { bytes, needed }
                if bytes == length && needed > length as u64);
            assert!(cut_off, "{length}: {fault}");
        }
        let mut far = whole;
        far[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        let cut_off = Err(CubinFault::CutOff {
            bytes: far.len(),
            needed: u64::MAX,
        });
        assert_eq!(capability(&far), cut_off);
    }

    #[test]
    fn machine_code_runs_within_its_generation() {
        assert!(runs_on(sm(9, 0), sm(9, 0)));
        assert!(runs_on(sm(8, 0), sm(8, 6)));
        assert!(!runs_on(sm(8, 6), sm(8, 0)));
        assert!(!runs_on(sm(8, 0), sm(9, 0)));
        assert!(!runs_on(sm(9, 0), sm(8, 9)));
    }
}
