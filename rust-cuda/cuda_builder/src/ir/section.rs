//! CUDA's memories, and the link sections that name them.

use super::error::IrError;
use super::module::{Module, Variable, plain_name};

/// LLVM's numbers for CUDA's memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Every block's view of the whole device.
    Global = 1,
    /// One instance per block, uninitialised when the block starts.
    Shared = 3,
    /// 64 KiB, written by the host only.
    Constant = 4,
}

/// What a link section says about a static.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) space: Space,
    /// The host shall find the static by its name.
    pub(crate) visible: bool,
}

impl Section {
    /// Reads a section's name.
    ///
    /// # Errors
    ///
    /// [`IrError::UnknownSection`], for a misspelt section would otherwise turn
    /// shared memory into global memory in silence.
    pub(crate) fn parse(static_name: &str, section: &str) -> Result<Self, IrError> {
        let (base, visible) = match section.strip_suffix(".visible") {
            Some(base) => (base, true),
            None => (section, false),
        };
        let space = match base {
            ".global" => Space::Global,
            ".shared" => Space::Shared,
            ".constant" => Space::Constant,
            _ => {
                return Err(IrError::UnknownSection {
                    name: format!("{:#}", rustc_demangle::demangle(static_name)),
                    section: section.to_owned(),
                });
            }
        };
        Ok(Self { space, visible })
    }
}

/// Gives each static in `spaces` the section of the address space with this number.
///
/// # Errors
///
/// [`IrError::UnknownAddressSpace`].
pub(crate) fn by_number(module: &mut Module, spaces: &[(String, u32)]) -> Result<(), IrError> {
    if spaces.is_empty() {
        return Ok(());
    }
    for global in &mut module.globals {
        let plain = plain_name(&global.name);
        let path = format!("{:#}", rustc_demangle::demangle(&plain));
        let name = path.rsplit("::").next().unwrap_or_default();
        let Some((_, number)) = spaces.iter().find(|(said, _)| said == name) else {
            continue;
        };
        let section = match number {
            1 => ".global",
            3 => ".shared",
            4 => ".constant",
            _ => {
                return Err(IrError::UnknownAddressSpace {
                    name: path,
                    number: *number,
                });
            }
        };
        let Some(mut variable) = Variable::parse(&global.line)? else {
            continue;
        };
        if variable.section.is_none() {
            variable.section = Some(section.to_owned());
            global.line = variable.line(&global.name, 0);
        }
    }
    Ok(())
}

/// Takes the statics of a section out of the module, and returns their names and what they are.
/// Macros describe kernels to this crate in such statics.
///
/// # Errors
///
/// [`IrError::Syntax`].
pub(crate) fn take(module: &mut Module, section: &str) -> Result<Vec<(String, Variable)>, IrError> {
    let quoted = format!("\"{section}\"");
    let mut taken = Vec::new();
    let mut others = Vec::with_capacity(module.globals.len());
    for global in std::mem::take(&mut module.globals) {
        // Most globals have no section, and are long.
        let variable = match global.line.contains(&quoted) {
            true => Variable::parse(&global.line)?,
            false => None,
        };
        match variable {
            Some(variable) if variable.section.as_deref() == Some(section) => {
                taken.push((plain_name(&global.name), variable));
            }
            _ => others.push(global),
        }
    }
    module.globals = others;
    Ok(taken)
}

/// The numbers of 32 bits in the initialiser of a static, `[8 x i8] c"\00\01…"`, in a
/// struct or not.
pub(crate) fn numbers(variable: &Variable) -> Option<Vec<u32>> {
    let (_, text) = variable.initialiser.as_deref()?.split_once("c\"")?;
    let mut bytes = Vec::new();
    let mut rest = text;
    while !rest.starts_with('"') {
        let (byte, len) = match rest.strip_prefix('\\') {
            Some(escaped) => (u8::from_str_radix(escaped.get(..2)?, 16).ok()?, 3),
            None => (*rest.as_bytes().first().filter(|byte| byte.is_ascii())?, 1),
        };
        bytes.push(byte);
        rest = &rest[len..];
    }
    let (words, []) = bytes.as_chunks() else {
        return None;
    };
    Some(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}
