//! Parses nvdisasm's listing of machine code and counts instructions by kind.

use std::collections::BTreeMap;

use serde::Serialize;

/// One machine instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its name with all suffixes: `LDG.E.128.CONSTANT`.
    pub opcode: String,
    /// Its operands.
    operands: String,
    /// The listed line, with the predicate.
    pub text: String,
}

impl Instruction {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut rest = text.trim_start_matches(['{', ' ']);
        if rest.starts_with('@') {
            rest = rest.split_once(' ')?.1.trim_start();
        }
        let (opcode, operands) = rest.split_once(' ').unwrap_or((rest, ""));
        opcode
            .starts_with(|c: char| c.is_ascii_uppercase())
            .then(|| Self {
                opcode: opcode.to_owned(),
                operands: operands.trim().to_owned(),
                text: text.to_owned(),
            })
    }

    /// Whether its opcode matches the pattern: the pattern's components, separated by dots, are its
    /// first ones. `LDG.E` matches `LDG`; `LDG.E.128` matches neither `LD` nor `LDG.128`.
    pub fn is(&self, pattern: &str) -> bool {
        let mut own = self.opcode.split('.');
        pattern.split('.').all(|part| own.next() == Some(part))
    }

    fn has(&self, suffix: &str) -> bool {
        self.opcode.split('.').skip(1).any(|part| part == suffix)
    }

    /// Width of a memory access, by its suffix.
    fn width(&self) -> Width {
        let wide = |width| match width {
            Width::B8 => self.has("U8") || self.has("S8"),
            Width::B16 => self.has("U16") || self.has("S16"),
            Width::B32 => false,
            Width::B64 => self.has("64"),
            Width::B128 => self.has("128"),
        };
        [Width::B8, Width::B16, Width::B64, Width::B128]
            .into_iter()
            .find(|&width| wide(width))
            .unwrap_or(Width::B32)
    }

    /// Whether it reads an operand straight from constant memory.
    fn has_constant_operand(&self) -> bool {
        self.operands.contains("c[0x")
    }
}

/// The instructions of each kernel in nvdisasm's listing, by the kernel's name.
pub fn parse(listing: &str) -> BTreeMap<String, Vec<Instruction>> {
    let mut kernels: BTreeMap<String, Vec<Instruction>> = BTreeMap::new();
    let mut current: Option<&str> = None;
    for line in listing.lines() {
        if let Some(name) = line
            .strip_prefix(".text.")
            .and_then(|rest| rest.strip_suffix(':'))
        {
            current = Some(name);
            kernels.entry(name.to_owned()).or_default();
        } else if let (Some(name), Some(text)) = (current, instruction_text(line))
            && let Some(instruction) = Instruction::parse(text)
            && let Some(instructions) = kernels.get_mut(name)
        {
            instructions.push(instruction);
        }
    }
    kernels
}

/// The text between the address and the semicolon of a line of code.
fn instruction_text(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (address, rest) = rest.split_once("*/")?;
    address
        .chars()
        .all(|c| c.is_ascii_hexdigit())
        .then(|| rest.split(';').next())?
}

/// Bits that one thread moves at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    B8,
    B16,
    B32,
    B64,
    B128,
}

/// The kinds of instructions, in the order in which they are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Ffma,
    Fadd,
    Fmul,
    OtherFp32,
    Dfma,
    Dadd,
    Dmul,
    OtherFp64,
    Fp16,
    Matrix,
    Mufu,
    Ldg(Width),
    Stg(Width),
    Lds(Width),
    Sts(Width),
    GenericLoad,
    GenericStore,
    Local,
    AsyncCopy,
    Atomic,
    Texture,
    ConstantLoad,
    Shuffle,
    Vote,
    Barrier,
    Fence,
    Branch,
    Integer,
    Conversion,
    Move,
    Other,
}

impl Kind {
    /// Its name in a table.
    pub fn label(self) -> String {
        let sized = |what: &str, width: Width| {
            let bits = match width {
                Width::B8 => 8,
                Width::B16 => 16,
                Width::B32 => 32,
                Width::B64 => 64,
                Width::B128 => 128,
            };
            format!("{what}, {bits} bits")
        };
        match self {
            Self::Ffma => "FFMA".to_owned(),
            Self::Fadd => "FADD".to_owned(),
            Self::Fmul => "FMUL".to_owned(),
            Self::OtherFp32 => "other FP32".to_owned(),
            Self::Dfma => "DFMA".to_owned(),
            Self::Dadd => "DADD".to_owned(),
            Self::Dmul => "DMUL".to_owned(),
            Self::OtherFp64 => "other FP64".to_owned(),
            Self::Fp16 => "FP16".to_owned(),
            Self::Matrix => "matrix (MMA)".to_owned(),
            Self::Mufu => "MUFU".to_owned(),
            Self::Ldg(width) => sized("global load (LDG)", width),
            Self::Stg(width) => sized("global store (STG)", width),
            Self::Lds(width) => sized("shared load (LDS)", width),
            Self::Sts(width) => sized("shared store (STS)", width),
            Self::GenericLoad => "generic load (LD)".to_owned(),
            Self::GenericStore => "generic store (ST)".to_owned(),
            Self::Local => "local memory (LDL, STL)".to_owned(),
            Self::AsyncCopy => "asynchronous copy".to_owned(),
            Self::Atomic => "atomic".to_owned(),
            Self::Texture => "texture".to_owned(),
            Self::ConstantLoad => "constant load (LDC, ULDC)".to_owned(),
            Self::Shuffle => "shuffle (SHFL)".to_owned(),
            Self::Vote => "vote, warp reduction".to_owned(),
            Self::Barrier => "barrier (BAR)".to_owned(),
            Self::Fence => "fence, warp barrier".to_owned(),
            Self::Branch => "branch".to_owned(),
            Self::Integer => "integer".to_owned(),
            Self::Conversion => "conversion".to_owned(),
            Self::Move => "move".to_owned(),
            Self::Other => "other".to_owned(),
        }
    }

    /// The kind of this instruction; `None` for padding.
    fn of(instruction: &Instruction) -> Option<Self> {
        let name = instruction.opcode.split('.').next().unwrap_or_default();
        let width = instruction.width();
        Some(match name {
            "NOP" => return None,
            "FFMA" | "FFMA32I" | "FFMA2" => Self::Ffma,
            "FADD" | "FADD32I" | "FADD2" => Self::Fadd,
            "FMUL" | "FMUL32I" | "FMUL2" => Self::Fmul,
            "DFMA" => Self::Dfma,
            "DADD" => Self::Dadd,
            "DMUL" => Self::Dmul,
            "MUFU" => Self::Mufu,
            // Zero plus a constant loads a constant into a register.
            "HFMA2" if instruction.operands.contains("-RZ, RZ") => Self::Move,
            "IMAD" if instruction.has("MOV") => Self::Move,
            "HMMA" | "IMMA" | "DMMA" | "BMMA" | "QMMA" | "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA" => {
                Self::Matrix
            }
            "LDG" => Self::Ldg(width),
            "STG" => Self::Stg(width),
            "LDS" | "LDSM" => Self::Lds(width),
            "STS" | "STSM" => Self::Sts(width),
            "LD" => Self::GenericLoad,
            "ST" => Self::GenericStore,
            "LDL" | "STL" => Self::Local,
            "LDGSTS" | "LDGDEPBAR" | "DEPBAR" | "SYNCS" | "ARRIVES" | "UBLKCP" | "UBLKPF"
            | "UBLKRED" | "UTMACMDFLUSH" => Self::AsyncCopy,
            "ATOM" | "ATOMG" | "ATOMS" | "RED" | "REDG" | "REDAS" => Self::Atomic,
            "TEX" | "TLD" | "TLD4" | "TMML" | "TXD" | "TXQ" | "SULD" | "SUST" | "SUATOM"
            | "SURED" => Self::Texture,
            "LDC" | "ULDC" | "LDCU" => Self::ConstantLoad,
            "SHFL" => Self::Shuffle,
            "VOTE" | "VOTEU" | "MATCH" | "REDUX" | "CREDUX" => Self::Vote,
            "BAR" | "UCGABAR_ARV" | "UCGABAR_WAIT" => Self::Barrier,
            "WARPSYNC" | "MEMBAR" | "ERRBAR" | "CCTL" | "CCTLL" | "CCTLT" | "FENCE"
            | "NANOSLEEP" | "YIELD" => Self::Fence,
            "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "JMXU" | "CALL" | "RET" | "EXIT" | "BSSY"
            | "BSYNC" | "BREAK" | "BMOV" | "BPT" | "KILL" | "RPCMOV" | "WARPEXIT" => Self::Branch,
            "MOV" | "MOV32I" | "UMOV" | "CS2R" | "CS2UR" | "S2R" | "S2UR" | "R2UR" | "R2P"
            | "P2R" | "UP2UR" | "UR2UP" | "SEL" | "USEL" | "FSEL" => Self::Move,
            "F2F" | "F2FP" | "F2I" | "F2IP" | "I2F" | "I2FP" | "I2I" | "I2IP" | "FRND"
            | "UI2FP" | "UF2FP" => Self::Conversion,
            "BREV" | "FLO" | "POPC" | "PRMT" | "SHF" | "SHL" | "SHR" | "LEA" | "LOP" | "LOP3"
            | "PLOP3" | "PSETP" | "BMSK" | "SGXT" | "LEPC" | "GETLMEMBASE" => Self::Integer,
            _ if name.starts_with("UTMA") => Self::AsyncCopy,
            _ if name.starts_with(['I', 'V']) => Self::Integer,
            // One instruction for the whole warp, on the uniform datapath.
            _ if name.starts_with('U') => Self::Integer,
            _ if name.starts_with('F') => Self::OtherFp32,
            _ if name.starts_with('D') => Self::OtherFp64,
            _ if name.starts_with('H') => Self::Fp16,
            _ => Self::Other,
        })
    }
}

/// The number of instructions of each kind in a kernel's code. An instruction in a loop counts
/// once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub kinds: BTreeMap<Kind, usize>,
    /// Instructions, other than constant loads, with an operand in constant
    /// memory.
    pub constant_operands: usize,
    /// All instructions but padding.
    pub total: usize,
}

impl Counts {
    pub fn of(instructions: &[Instruction]) -> Self {
        let mut counts = Self::default();
        for instruction in instructions {
            let Some(kind) = Kind::of(instruction) else {
                continue;
            };
            *counts.kinds.entry(kind).or_default() += 1;
            counts.total += 1;
            if kind != Kind::ConstantLoad && instruction.has_constant_operand() {
                counts.constant_operands += 1;
            }
        }
        counts
    }

    /// The number of instructions of these kinds together.
    pub fn of_kinds(&self, wanted: impl Fn(Kind) -> bool) -> usize {
        self.kinds
            .iter()
            .filter(|&(&kind, _)| wanted(kind))
            .map(|(_, count)| count)
            .sum()
    }
}

impl Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;

        let mut map = serializer.serialize_map(None)?;
        for (kind, count) in &self.kinds {
            map.serialize_entry(&kind.label(), count)?;
        }
        map.serialize_entry("constant operands", &self.constant_operands)?;
        map.serialize_entry("total", &self.total)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"
	.target	sm_90

//--------------------- .text.heat2d_a            --------------------------
	.section	.text.heat2d_a,"ax",@progbits
        .global         heat2d_a
heat2d_a:
.text.heat2d_a:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   ULDC.64 UR6, c[0x0][0x208] ;
        /*0020*/                   HFMA2.MMA R3, -RZ, RZ, 0, 0 ;
        /*0030*/              @!P1 LDG.E.128.CONSTANT R4, desc[UR6][R4.64] ;
        /*0040*/               @P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0050*/                   FFMA R7, R4, c[0x3][0x4], R7 ;
        /*0060*/                   IMAD.MOV.U32 R2, RZ, RZ, R0 ;
        /*0070*/                   IMAD.WIDE.U32 R2, R0, 0x4, R2 ;
        /*0080*/                   STG.E desc[UR6][R2.64], R7 ;
        /*0090*/                   EXIT ;
.L_x_2:
        /*00a0*/                   BRA `(.L_x_2);
        /*00b0*/                   NOP;

//--------------------- .text.heat2d_b            --------------------------
.text.heat2d_b:
        /*0000*/                   LD.E.64 R2, desc[UR4][R2.64] ;
        /*0010*/                   LDS.U8 R2, [R4] ;
        /*0020*/                   EXIT ;
"#;

    #[test]
    fn kernels_and_their_instructions_are_found() {
        let kernels = parse(LISTING);
        assert_eq!(kernels.keys().collect::<Vec<_>>(), ["heat2d_a", "heat2d_b"]);
        assert_eq!(kernels["heat2d_a"].len(), 12);
        let load = &kernels["heat2d_a"][3];
        assert_eq!(load.opcode, "LDG.E.128.CONSTANT");
        assert_eq!(load.text, "@!P1 LDG.E.128.CONSTANT R4, desc[UR6][R4.64]");
    }

    #[test]
    fn opcodes_match_by_whole_components() {
        let load = &parse(LISTING)["heat2d_a"][3];
        for pattern in ["LDG", "LDG.E", "LDG.E.128", "LDG.E.128.CONSTANT"] {
            assert!(load.is(pattern), "{pattern}");
        }
        for pattern in ["LD", "LDG.128", "LDG.E.12", "LDG.E.128.CONSTANT.X", "ldg"] {
            assert!(!load.is(pattern), "{pattern}");
        }
    }

    #[test]
    fn kinds_are_counted() {
        let kernels = parse(LISTING);
        let counts = Counts::of(&kernels["heat2d_a"]);
        let expected = [
            (Kind::Ffma, 1),
            (Kind::Ldg(Width::B128), 1),
            (Kind::Stg(Width::B32), 1),
            (Kind::ConstantLoad, 2),
            (Kind::Branch, 3),
            (Kind::Integer, 1),
            (Kind::Move, 2),
        ];
        assert_eq!(counts.kinds, BTreeMap::from(expected));
        assert_eq!((counts.constant_operands, counts.total), (1, 11));

        let counts = Counts::of(&kernels["heat2d_b"]);
        assert_eq!(counts.kinds[&Kind::GenericLoad], 1);
        assert_eq!(counts.kinds[&Kind::Lds(Width::B8)], 1);
        assert_eq!(counts.of_kinds(|kind| matches!(kind, Kind::Lds(_))), 1);
    }

    #[test]
    fn kinds_by_name() {
        for (text, kind) in [
            ("UIADD3 UR4, UR4, 0x1, URZ", Kind::Integer),
            ("VIADDMNMX R1, R2, 0x1, R3, PT", Kind::Integer),
            ("UTMALDG.2D [UR4], [UR6]", Kind::AsyncCopy),
            ("FSETP.GT.AND P0, PT, R1, R2, PT", Kind::OtherFp32),
            ("DSETP.NEU.AND P0, PT, R28, RZ, PT", Kind::OtherFp64),
            ("HADD2 R1, R2, R3", Kind::Fp16),
            ("REDUX.SUM UR4, R2", Kind::Vote),
            ("RED.E.ADD.STRONG.GPU desc[UR4][R2.64], R5", Kind::Atomic),
            ("DEPBAR.LE SB0, 0x0", Kind::AsyncCopy),
        ] {
            let instruction = Instruction::parse(text).unwrap();
            assert_eq!(Kind::of(&instruction), Some(kind), "{text}");
        }
    }
}
