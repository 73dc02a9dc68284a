//! Half precision by the hardware's instructions.
//!
//! The crate `half` computes `f16` and `bf16` with integers on every target that it has no assembly
//! for. This pass gives its conversions, operators and comparisons bodies with LLVM's
//! half-precision types, which the backend turns into the hardware's instructions. A function is
//! known by its path. A release of `half` with other names keeps its own bodies, which give the
//! same bits.
//!
//! `cuda_std` only declares its functions on pairs and its fused operations, under names that begin
//! with [`DECLARED`]. This pass defines them: Rust has no such types.
//!
//! The hardware has instructions for `bf16` from compute capability 8.0 on. For older targets its
//! functions stay as they are.

use super::error::IrError;
use super::module::{Function, Module, plain_name};

/// The beginning of the names that `cuda_std` declares.
const DECLARED: &str = "__cuda_std_half_";

/// Gives the functions their bodies, for a target of compute capability
/// `capability / 10`.
///
/// # Errors
///
/// [`IrError::Syntax`] when one of the functions has no parameter list.
pub(crate) fn provide(module: &mut Module, capability: u32) -> Result<(), IrError> {
    let mut needed = Vec::new();
    for function in &mut module.functions {
        let name = plain_name(&function.name);
        let body = if let Some(operation) = name.strip_prefix(DECLARED) {
            declared(operation)
        } else if function.body.is_some() && name.starts_with("_R") {
            let Ok(path) = rustc_demangle::try_demangle(&name) else {
                continue;
            };
            of_crate(&format!("{path:#}"), capability)
        } else {
            None
        };
        if let Some(body) = body {
            define(function, &body.text)?;
            needed.extend(body.intrinsic);
        }
    }
    for line in needed {
        let name = line.split(['@', '(']).nth(1).unwrap_or_default();
        let name = format!("@{name}");
        if !module.functions.iter().any(|f| f.name == name) {
            module.functions.push(Function {
                name,
                head: line,
                body: None,
            });
        }
    }
    Ok(())
}

/// A function's body, and the declaration of the intrinsic that it calls.
struct Body {
    text: String,
    intrinsic: Option<String>,
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self {
            text,
            intrinsic: None,
        }
    }
}

/// LLVM's names of a half-precision type.
struct Kind {
    /// The integer that holds it in Rust: `i16`, `i32` for a pair.
    bits: &'static str,
    /// `half`, `<2 x bfloat>`.
    float: &'static str,
    /// The single-precision type of as many elements.
    single: &'static str,
    /// In the names of LLVM's intrinsics.
    suffix: &'static str,
    /// In the names of NVIDIA's intrinsics.
    nvvm: &'static str,
}

const F16: Kind = Kind {
    bits: "i16",
    float: "half",
    single: "float",
    suffix: "f16",
    nvvm: "f16",
};
const BF16: Kind = Kind {
    bits: "i16",
    float: "bfloat",
    single: "float",
    suffix: "bf16",
    nvvm: "bf16",
};
const F16X2: Kind = Kind {
    bits: "i32",
    float: "<2 x half>",
    single: "<2 x float>",
    suffix: "v2f16",
    nvvm: "f16x2",
};
const BF16X2: Kind = Kind {
    bits: "i32",
    float: "<2 x bfloat>",
    single: "<2 x float>",
    suffix: "v2bf16",
    nvvm: "bf16x2",
};

impl Kind {
    /// A body that makes floats of the parameters, `%a`, `%b`, `%c`, goes on with `rest`, which
    /// defines `%r`, and returns the bits of that.
    fn arithmetic(&self, arguments: usize, rest: &str) -> String {
        let mut text = String::new();
        for (index, name) in ["a", "b", "c"].iter().enumerate().take(arguments) {
            text.push_str(&format!(
                "  %{name} = bitcast {} %{index} to {}\n",
                self.bits, self.float
            ));
        }
        text.push_str(&format!("  {rest}\n"));
        text.push_str(&format!(
            "  %bits = bitcast {} %r to {}\n  ret {} %bits",
            self.float, self.bits, self.bits
        ));
        text
    }

    /// A call of `intrinsic` with so many operands of this type.
    fn call(&self, intrinsic: &str, arguments: usize) -> Body {
        let operands: Vec<_> = ["%a", "%b", "%c"][..arguments]
            .iter()
            .map(|name| format!("{} {name}", self.float))
            .collect();
        let types = vec![self.float; arguments].join(", ");
        Body {
            text: self.arithmetic(
                arguments,
                &format!(
                    "%r = call {} @{intrinsic}({})",
                    self.float,
                    operands.join(", ")
                ),
            ),
            intrinsic: Some(format!("declare {} @{intrinsic}({types})", self.float)),
        }
    }
}

/// The body of one of `cuda_std`'s functions, `fma_bf16x2`.
fn declared(operation: &str) -> Option<Body> {
    let (operation, kind) = operation.rsplit_once('_')?;
    let kind = match kind {
        "f16" => F16,
        "bf16" => BF16,
        "f16x2" => F16X2,
        "bf16x2" => BF16X2,
        _ => return None,
    };
    let (bits, float, single) = (kind.bits, kind.float, kind.single);
    Some(match operation {
        // NVIDIA's own intrinsic: LLVM's may be computed in single precision and be rounded twice.
        "fma" => kind.call(&format!("llvm.nvvm.fma.rn.{}", kind.nvvm), 3),
        "add" | "sub" | "mul" => kind
            .arithmetic(2, &format!("%r = f{operation} {float} %a, %b"))
            .into(),
        "min" => kind.call(&format!("llvm.minimumnum.{}", kind.suffix), 2),
        "max" => kind.call(&format!("llvm.maximumnum.{}", kind.suffix), 2),
        "round" if kind.bits == "i16" => {
            format!("  %r = fptrunc float %0 to {float}\n  %bits = bitcast {float} %r to i16\n  ret i16 %bits").into()
        }
        "round" => format!(
            "  %v = insertelement {single} poison, float %0, i32 0\n  \
             %w = insertelement {single} %v, float %1, i32 1\n  \
             %r = fptrunc {single} %w to {float}\n  \
             %bits = bitcast {float} %r to {bits}\n  ret {bits} %bits"
        )
        .into(),
        "eq" if kind.bits == "i16" => format!(
            "  %a = bitcast i16 %0 to {float}\n  %b = bitcast i16 %1 to {float}\n  \
             %r = fcmp oeq {float} %a, %b\n  ret i1 %r"
        )
        .into(),
        // A mask of 16 bits for each element.
        "lt" | "le" | "eq" if kind.bits == "i32" => format!(
            "  %a = bitcast {bits} %0 to {float}\n  %b = bitcast {bits} %1 to {float}\n  \
             %c = fcmp o{operation} {float} %a, %b\n  %m = sext <2 x i1> %c to <2 x i16>\n  \
             %r = bitcast <2 x i16> %m to i32\n  ret i32 %r"
        )
        .into(),
        _ => return None,
    })
}

/// The body of one of the functions of the crate `half`.
fn of_crate(path: &str, capability: u32) -> Option<Body> {
    // The conversion from double precision stays: `half` looks at the upper half of the number
    // only, and the device must give the host's bits.
    match path {
        "half::binary16::arch::f16_to_f32_fallback" => {
            return Some(widen("half", "float"));
        }
        "half::binary16::arch::f16_to_f64_fallback" => {
            return Some(widen("half", "double"));
        }
        "half::binary16::arch::f32_to_f16_fallback" => {
            return Some(
                "  %r = fptrunc float %0 to half\n  %bits = bitcast half %r to i16\n  ret i16 %bits"
                    .to_owned()
                    .into(),
            );
        }
        "half::bfloat::convert::f32_to_bf16" if capability >= 80 => {
            return Some(
                "  %r = fptrunc float %0 to bfloat\n  %bits = bitcast bfloat %r to i16\n  ret i16 %bits"
                    .to_owned()
                    .into(),
            );
        }
        _ => {}
    }
    let (ty, rest) = path.strip_prefix('<')?.split_once(" as core::")?;
    let float = match ty {
        "half::binary16::f16" => "half",
        "half::bfloat::bf16" if capability >= 80 => "bfloat",
        _ => return None,
    };
    let compare = |predicate: &str| {
        Body::from(format!(
            "  %a = load {float}, ptr %0, align 2\n  %b = load {float}, ptr %1, align 2\n  \
             %r = fcmp {predicate} {float} %a, %b\n  ret i1 %r"
        ))
    };
    // The host computes in `f32` and rounds twice. For sums, differences and products of numbers
    // with 8 significant bits that gives the same, whatever the exponents.
    let bf16 = |operation: &str| {
        (float == "bfloat")
            .then(|| Body::from(BF16.arithmetic(2, &format!("%r = {operation} bfloat %a, %b"))))
    };
    match rest {
        "cmp::PartialOrd>::lt" => Some(compare("olt")),
        "cmp::PartialOrd>::le" => Some(compare("ole")),
        "cmp::PartialOrd>::gt" => Some(compare("ogt")),
        "cmp::PartialOrd>::ge" => Some(compare("oge")),
        "cmp::PartialEq>::eq" => Some(compare("oeq")),
        "ops::arith::Add>::add" => bf16("fadd"),
        "ops::arith::Sub>::sub" => bf16("fsub"),
        "ops::arith::Mul>::mul" => bf16("fmul"),
        _ => None,
    }
}

fn widen(from: &str, to: &str) -> Body {
    format!("  %a = bitcast i16 %0 to {from}\n  %r = fpext {from} %a to {to}\n  ret {to} %r").into()
}

/// Gives a function, declared or defined, this body.
fn define(function: &mut Function, body: &str) -> Result<(), IrError> {
    if let Some(rest) = function.head.strip_prefix("declare ") {
        function.head = format!("define internal {rest} {{");
    }
    // Always inlined, so that LLVM sees the types where the numbers come from.
    let at = function.parts()?.attributes;
    function.head.insert_str(at, " alwaysinline");
    function.body = Some(body.lines().map(str::to_owned).collect());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provided(text: &str, capability: u32) -> Module {
        let mut module = Module::parse(text).unwrap();
        provide(&mut module, capability).unwrap();
        module
    }

    #[test]
    fn the_crates_conversions_get_bodies() {
        let text = "define internal noundef float @_RNvNtNtCsfcja6IMsGVy_4half8binary164arch19f16_to_f32_fallback(i16 noundef %0) unnamed_addr #0 !dbg !5 {\n  ret float 0.0\n}\n";
        let module = provided(text, 75);
        let function = &module.functions[0];
        assert!(
            function
                .head
                .ends_with("unnamed_addr alwaysinline #0 !dbg !5 {"),
            "{}",
            function.head
        );
        assert_eq!(
            function.body.as_ref().unwrap()[1],
            "  %r = fpext half %a to float"
        );
    }

    #[test]
    fn brain_floats_wait_for_their_instructions() {
        let text = "define internal noundef i16 @_RNvXsg_NtCsfcja6IMsGVy_4half6bfloatNtB5_4bf16NtNtNtCsMbgm2pNNdn_4core3ops5arith3Add3add(i16 noundef %0, i16 noundef %1) unnamed_addr #1 {\n  ret i16 0\n}\n";
        assert_eq!(
            provided(text, 75).functions[0].body.as_deref(),
            Some(&["  ret i16 0".to_owned()][..])
        );
        let module = provided(text, 80);
        assert!(module.to_string().contains("fadd bfloat %a, %b"));
    }

    #[test]
    fn pairs_are_vectors() {
        let module = provided(
            "declare i32 @__cuda_std_half_fma_bf16x2(i32, i32, i32) unnamed_addr #1\n\
             declare i32 @__cuda_std_half_lt_f16x2(i32, i32) unnamed_addr #1\n",
            80,
        );
        let text = module.to_string();
        assert!(text.contains("define internal i32 @__cuda_std_half_fma_bf16x2(i32, i32, i32) unnamed_addr alwaysinline #1 {"), "{text}");
        assert!(text.contains("declare <2 x bfloat> @llvm.nvvm.fma.rn.bf16x2(<2 x bfloat>, <2 x bfloat>, <2 x bfloat>)"), "{text}");
        assert!(text.contains("fcmp olt <2 x half> %a, %b"), "{text}");
    }
}
