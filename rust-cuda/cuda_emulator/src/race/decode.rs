//! Decodes which memory an instruction reads and writes.

use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpAccess};

use crate::sys;

/// Longest instruction, bytes.
const LONGEST: usize = 15;

/// One operand in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operand {
    pub bytes: usize,
    pub reads: bool,
    pub writes: bool,
    /// Locked: no other thread sees a part of it.
    pub atomic: bool,
}

/// The operands in memory of the instruction at `address`.
///
/// # Safety
///
/// There is an instruction at `address`, which this process has run.
pub(super) unsafe fn operands(address: usize) -> Vec<Operand> {
    // Reads beyond the page only if the instruction does: no page may follow.
    let in_page = sys::page_size() - address % sys::page_size();
    // SAFETY: as the caller promises; code is readable, in whole pages.
    let decode = |bytes: usize| unsafe {
        let code: *const u8 = std::ptr::with_exposed_provenance(address);
        of_code(std::slice::from_raw_parts(code, bytes))
    };
    decode(LONGEST.min(in_page))
        .or_else(|| decode(LONGEST))
        .unwrap_or_default()
}

/// The operands in memory of the first instruction of `code`, if it is
/// complete.
fn of_code(code: &[u8]) -> Option<Vec<Operand>> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    if instruction.code() == Code::INVALID {
        return None;
    }
    let atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    let mut factory = InstructionInfoFactory::new();
    let memory = factory.info(&instruction).used_memory();
    let operand = |memory: &iced_x86::UsedMemory| {
        let access = memory.access();
        Operand {
            bytes: memory.memory_size().size(),
            reads: matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            ),
            writes: matches!(
                access,
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            ),
            atomic,
        }
    };
    Some(memory.iter().map(operand).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_stores_and_both() {
        let operand = |bytes, reads, writes, atomic| Operand {
            bytes,
            reads,
            writes,
            atomic,
        };
        let cases: [(&[u8], Operand); 5] = [
            // mov eax, [rdi]; movups [rdi], xmm0; inc dword [rdi]; lock inc dword [rdi];
            // xchg [rdi], eax
            (&[0x8B, 0x07], operand(4, true, false, false)),
            (&[0x0F, 0x11, 0x07], operand(16, false, true, false)),
            (&[0xFF, 0x07], operand(4, true, true, false)),
            (&[0xF0, 0xFF, 0x07], operand(4, true, true, true)),
            (&[0x87, 0x07], operand(4, true, true, true)),
        ];
        for (code, expected) in cases {
            assert_eq!(of_code(code), Some(vec![expected]), "{code:x?}");
        }
        assert_eq!(of_code(&[0x8B]), None, "cut off");
        // rep movsb reads one place and writes another.
        let copies = of_code(&[0xF3, 0xA4]).unwrap();
        assert!(copies.iter().any(|copy| copy.writes && !copy.reads));
        assert!(copies.iter().any(|copy| copy.reads && !copy.writes));
    }
}
