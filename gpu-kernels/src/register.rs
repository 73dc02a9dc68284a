//! The macros that enter kernels into the table, [`registry`](crate::registry).
//!
//! Only the host has the table. The macros exist on both sides, so that the kernels' sources are
//! the same; on the device they expand to nothing.

/// Defines a kernel's entry in the table; it stands beside the kernel.
///
/// ```text
/// register! {
///     stencil1d_constant: f32, Textbook,
///     "coefficients in constant memory",
///     geometry: tiled,   // fn(&'static str, &Problem) -> Result<Geometry, Refusal>
///     cost: cost,        // fn(&Problem) -> Cost
///     example: EXAMPLE,  // a Problem that it takes
///     tile: "block + 8", // where a block has a tile
///     restrictions: "…",             // where there are any
///     twin: same,                    // where baselines/<family>.cu has the same kernel
///     twins: [("sample", "nbody_sample_f32")], // others there, and their style
///     unmeasured: "…",               // where the benchmark has no row, and why
/// }
/// ```
///
/// On the device it expands to nothing.
#[macro_export]
macro_rules! register {
    (
        $kernel:ident: $scalar:ident, $role:ident, $computes:expr,
        geometry: $geometry:expr, cost: $cost:expr, example: $example:expr,
        $(tile: $tile:expr,)?
        $(restrictions: $restrictions:expr,)?
        $(twin: $twin:ident,)?
        $(twins: [$(($style:expr, $other:expr)),+ $(,)?],)?
        $(unmeasured: $why:expr,)?
    ) => {
        #[cfg(not(target_arch = "nvptx64"))]
        const _: () = {
            #[allow(unused_imports)]
            use $crate::registry::{
                Cost, Entry, Geometry, HasScalar, Measured, Problem, Registered, Role, Twin, blocks_for,
                family_of, variant_of,
            };
            const NAME: &str = <$kernel as cuda_std::host::Kernel>::NAME;
            const FAMILY: &str = family_of(module_path!());

            impl Registered for $kernel {
                const ENTRY: Entry = Entry {
                    name: NAME,
                    family: FAMILY,
                    variant: variant_of(NAME, FAMILY, $scalar::SCALAR),
                    scalar: $scalar::SCALAR,
                    role: Role::$role,
                    computes: $computes,
                    tile: $crate::register!(@tile $($tile)?),
                    restrictions: concat!($($restrictions)?),
                    geometry_of: $geometry,
                    cost_of: $cost,
                    example: $example,
                    measured: $crate::register!(@measured $($why)?),
                    twins: &[
                        $($crate::register!(@$twin),)?
                        $($(Twin { entry: $other, style: Some($style) },)+)?
                    ],
                    file: file!(),
                    line: line!(),
                };
            }
        };
    };
    (@tile) => { "–" };
    (@tile $tile:expr) => { $tile };
    (@measured) => { Measured::Row };
    (@measured $why:expr) => { Measured::Not($why) };
    (@same) => { Twin { entry: NAME, style: None } };
}

/// An array of the entries of these kernels, given by path.
#[doc(hidden)]
#[macro_export]
macro_rules! entries {
    ($($kernel:path),* $(,)?) => {
        &[$(<$kernel as $crate::registry::Registered>::ENTRY),*]
    };
}
