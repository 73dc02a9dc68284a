//! Refuses kernels that write to constant memory.
//!
//! A static in constant memory is `static mut`, so that rustc does not take its initialiser for its
//! value. Rust therefore lets a kernel assign to it. LLVM knows that constant memory does not
//! change and silently removes such a store. This pass makes it an error if the store is through
//! the static's name, an index or a field. A store through a pointer that was kept in memory is not
//! found.

use std::collections::HashMap;

use super::error::IrError;
use super::lexer::{Kind, Token, matching, tokens};
use super::module::{Module, plain_name};
use super::section::Space;

/// Looks for writes to the statics that `spaces` puts into constant memory.
///
/// # Errors
///
/// [`IrError::StoreToConstant`].
pub(crate) fn refuse_writes(
    module: &Module,
    spaces: &HashMap<String, Space>,
) -> Result<(), IrError> {
    let constant = |name: &str| spaces.get(name) == Some(&Space::Constant);
    for function in &module.functions {
        // Values of this function that point into a constant, and into which.
        let mut derived: HashMap<&str, &str> = HashMap::new();
        for line in function.body.iter().flatten() {
            if !(line.contains('@') || line.contains('%')) {
                continue;
            }
            let all = tokens(line);
            let Some(operation) = Operation::of(&all) else {
                continue;
            };
            let target = operation.pointer.iter().find_map(|token| match token.kind {
                Kind::Global if constant(token.text) => Some(token.text),
                Kind::Local => derived.get(token.text).copied(),
                _ => None,
            });
            let Some(target) = target else {
                continue;
            };
            match operation.result {
                Some(result) => {
                    derived.insert(result, target);
                }
                None => {
                    return Err(IrError::StoreToConstant {
                        function: plain_name(&function.name),
                        name: plain_name(target),
                    });
                }
            }
        }
    }
    Ok(())
}

/// An instruction that computes a pointer from another, or writes through one.
struct Operation<'a, 'b> {
    /// The computed pointer; `None` for a write.
    result: Option<&'a str>,
    /// The operand that is the pointer.
    pointer: &'b [Token<'a>],
}

impl<'a, 'b> Operation<'a, 'b> {
    fn of(all: &'b [Token<'a>]) -> Option<Self> {
        const WRITING: [&str; 3] = ["@llvm.memcpy.", "@llvm.memmove.", "@llvm.memset."];
        let assigned = all.get(1).is_some_and(|token| token.is_punct(b'='));
        let opcode = if assigned { 2 } else { 0 };
        let first = all.get(opcode)?;
        if first.is("getelementptr") {
            let pointer = operands(&all[opcode + 1..]).nth(1)?;
            return Some(Self {
                result: Some(all[0].text),
                pointer,
            });
        }
        let pointer = if first.is("store") {
            operands(&all[opcode + 1..]).nth(1)?
        } else if first.is("atomicrmw") || first.is("cmpxchg") {
            operands(&all[opcode + 1..]).next()?
        } else {
            let callee = all.iter().position(|token| {
                token.kind == Kind::Global
                    && WRITING.iter().any(|name| token.text.starts_with(name))
            })?;
            operands(&all[callee + 2..]).next()?
        };
        Some(Self {
            result: None,
            pointer,
        })
    }
}

/// What the commas outside of brackets separate.
fn operands<'a, 'b>(all: &'b [Token<'a>]) -> impl Iterator<Item = &'b [Token<'a>]> {
    let mut from = 0;
    std::iter::from_fn(move || {
        if from >= all.len() {
            return None;
        }
        let start = from;
        while from < all.len() && !all[from].is_punct(b',') {
            from = match all[from].kind {
                Kind::Punct(b'(' | b'[' | b'{' | b'<') => matching(all, from) + 1,
                _ => from + 1,
            };
        }
        let end = from.min(all.len());
        from = end + 1;
        Some(&all[start..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> Option<String> {
        let module = Module::parse(&format!("define void @k() {{\n{body}\n}}\n")).unwrap();
        let spaces = HashMap::from([
            ("@C".to_owned(), Space::Constant),
            ("@G".to_owned(), Space::Global),
        ]);
        refuse_writes(&module, &spaces)
            .err()
            .map(|error| error.to_string())
    }

    #[test]
    fn writes_are_refused() {
        for body in [
            "  store float 1.0, ptr @C, align 4",
            "  store <2 x float> <float 1.0, float 2.0>, ptr @C, align 8",
            "  store i32 1, ptr getelementptr inbounds (i8, ptr @C, i64 4), align 4",
            "  %1 = getelementptr inbounds nuw float, ptr @C, i64 %0\n  \
               %2 = getelementptr i8, ptr %1, i64 4\n  store float 1.0, ptr %2, align 4",
            "  %1 = atomicrmw add ptr @C, i32 1 monotonic, align 4",
            "  call void @llvm.memcpy.p0.p0.i64(ptr align 4 @C, ptr align 4 %1, i64 16, i1 false)",
        ] {
            let message = refused(body).unwrap_or_else(|| panic!("accepted:\n{body}"));
            assert!(
                message.contains("`k`") && message.contains("`C`"),
                "{message}"
            );
        }
    }

    #[test]
    fn reads_and_other_writes_are_not() {
        for body in [
            "  %1 = load float, ptr @C, align 4",
            "  store ptr @C, ptr %1, align 8",
            "  store float 1.0, ptr @G, align 4",
            "  %1 = getelementptr float, ptr @G, i64 %0\n  store float 1.0, ptr %1, align 4",
            "  %1 = getelementptr float, ptr @C, i64 %0\n  %2 = load float, ptr %1",
            "  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %1, ptr align 4 @C, i64 16, i1 false)",
            "  ret void",
        ] {
            assert_eq!(refused(body), None, "{body}");
        }
    }
}
