//! Launch bounds: statics that `#[launch_bounds]` leaves become attributes of
//! kernels.
//!
//! Rust has no attribute for the size of a kernel's blocks. The macro writes it into a static of
//! section `.launch_bounds`, whose name is [`PREFIX`] and the kernel's name. It has two numbers of
//! 32 bits: the most threads per block, and the least blocks per multiprocessor or 0. LLVM's
//! backend writes the attributes as `.maxntid` and `.minnctapersm`.

use super::error::IrError;
use super::module::{Module, plain_name};
use super::section;

/// What the name of a kernel's static begins with.
const PREFIX: &str = "__launch_bounds.";

/// Moves the bounds from the statics to the kernels, and removes the statics.
///
/// # Errors
///
/// [`IrError::LaunchBounds`].
pub(crate) fn apply(module: &mut Module) -> Result<(), IrError> {
    for (name, variable) in section::take(module, ".launch_bounds")? {
        let wrong = |problem| IrError::LaunchBounds {
            name: name.clone(),
            problem,
        };
        let kernel = name
            .strip_prefix(PREFIX)
            .ok_or_else(|| wrong("its name is no kernel's"))?;
        let function = module
            .functions
            .iter_mut()
            .find(|function| function.is_kernel() && plain_name(&function.name) == kernel)
            .ok_or_else(|| wrong("there is no kernel of that name"))?;
        let numbers = section::numbers(&variable);
        let Some(&[max_threads, min_blocks]) = numbers.as_deref() else {
            return Err(wrong("it does not hold two numbers of 32 bits"));
        };
        if max_threads == 0 {
            return Err(wrong("it allows no thread at all"));
        }
        let mut attributes = format!(" \"nvvm.maxntid\"=\"{max_threads}\"");
        if min_blocks != 0 {
            attributes.push_str(&format!(" \"nvvm.minctasm\"=\"{min_blocks}\""));
        }
        let at = function.parts()?.attributes;
        function.head.insert_str(at, &attributes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "define ptx_kernel void @k(ptr %p) unnamed_addr #0 {\n}\n";

    /// The module after the pass.
    fn applied(globals: &str) -> Result<String, IrError> {
        let mut module = Module::parse(&format!("{globals}\n{KERNEL}")).unwrap();
        apply(&mut module)?;
        Ok(module.to_string())
    }

    fn error(globals: &str) -> String {
        applied(globals).unwrap_err().to_string()
    }

    #[test]
    fn bounds_become_attributes_and_the_static_goes() {
        let text = applied(
            "@other = global i32 0\n\
             @__launch_bounds.k = constant [8 x i8] c\"\\00\\01\\00\\00\\02\\00\\00\\00\", section \".launch_bounds\", align 4",
        )
        .unwrap();
        assert!(
            text.contains("unnamed_addr \"nvvm.maxntid\"=\"256\" \"nvvm.minctasm\"=\"2\" #0 {"),
            "{text}"
        );
        assert!(!text.contains("launch_bounds"), "{text}");
        assert!(text.contains("@other = global i32 0"), "{text}");
    }

    #[test]
    fn no_blocks_are_not_said() {
        // 64 is `@`, 128 is not a character of its own.
        for (bytes, expected) in [
            ("@\\00\\00\\00\\00\\00\\00\\00", "\"64\" #0"),
            ("\\80\\00\\00\\00\\00\\00\\00\\00", "\"128\" #0"),
        ] {
            let text = applied(&format!(
                "@\"__launch_bounds.k\" = constant <{{ [8 x i8] }}> <{{ [8 x i8] c\"{bytes}\" }}>, \
                 section \".launch_bounds\", align 4"
            ))
            .unwrap();
            assert!(
                text.contains(&format!("\"nvvm.maxntid\"={expected}")),
                "{text}"
            );
            assert!(!text.contains("minctasm"), "{text}");
        }
    }

    #[test]
    fn what_is_no_bound_is_an_error() {
        let eight = "[8 x i8] c\"@\\00\\00\\00\\00\\00\\00\\00\"";
        for (name, value, expected) in [
            ("__launch_bounds.other", eight, "no kernel of that name"),
            ("something", eight, "its name is no kernel's"),
            (
                "__launch_bounds.k",
                "[8 x i8] zeroinitializer",
                "two numbers",
            ),
            (
                "__launch_bounds.k",
                "[4 x i8] c\"@\\00\\00\\00\"",
                "two numbers",
            ),
            (
                "__launch_bounds.k",
                "[9 x i8] c\"@\\00\\00\\00\\00\\00\\00\\00\\00\"",
                "two numbers",
            ),
            (
                "__launch_bounds.k",
                "[8 x i8] c\"\\00\\00\\00\\00\\02\\00\\00\\00\"",
                "no thread",
            ),
        ] {
            let message = error(&format!(
                "@{name} = constant {value}, section \".launch_bounds\""
            ));
            assert!(
                message.contains(expected) && message.contains(name),
                "{message}"
            );
        }
    }
}
