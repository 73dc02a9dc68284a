//! The chapters of `docs/guide` whose code `cargo test` compiles and runs.

/// A type for each chapter, which has its text as documentation.
macro_rules! chapters {
    ($($chapter:ident: $file:literal,)*) => {
        $(
            #[doc = include_str!(concat!("../docs/guide/src/", $file))]
            pub struct $chapter;
        )*
    };
}

chapters! {
    FirstProgram: "first-program.md",
    Calls: "calls.md",
    Derivatives: "families/derivatives.md",
    Plate: "families/plate.md",
    Heat: "families/heat.md",
    Waves: "families/waves.md",
    Lines: "families/lines.md",
    Reductions: "families/reductions.md",
    Gravity: "families/gravity.md",
    Stencils: "stencils.md",
    Kernels: "kernels.md",
    Emulator: "emulator.md",
    Ranks: "ranks.md",
    ComingFrom: "coming-from.md",
}
