//! A family's choice of kernels, made from the table in `gpu_kernels::registry`, and the
//! launch of a kernel with the geometry that stands there.

use crate::{Constants, Device, Error, LaunchConfig, launch_with_constants};
use gpu_kernels::registry::{Geometry, Problem, Refusal, Registered};

impl From<Geometry> for LaunchConfig {
    fn from(geometry: Geometry) -> Self {
        let ([gx, gy, gz], [bx, by, bz]) = (geometry.grid, geometry.block);
        Self::new((gx, gy, gz), (bx, by, bz))
            .with_dynamic_shared_bytes(geometry.dynamic_shared_bytes)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooMany {
                kernel,
                what,
                given,
                limit,
            } => Self::IndexOverflow {
                what: format!("{kernel}: {what}"),
                given: given.to_string(),
                limit,
            },
            Refusal::NothingPerBlock { kernel } => Self::InvalidParameter {
                operation: kernel,
                parameter: "the number of points per block",
                given: "0".to_owned(),
                required: "at least 1".to_owned(),
            },
        }
    }
}

/// Launches `K` with the geometry that its entry gives for `problem`.
///
/// # Errors
///
/// [`Refusal`]'s, and those of [`launch_with_constants`].
///
/// # Safety
///
/// As [`launch_with_constants`], of the geometry that the entry of `K` gives.
pub(crate) unsafe fn launch_registered<K: Registered>(
    device: &Device,
    problem: &Problem,
    constants: &Constants<'_>,
    args: K::Args<'_>,
) -> Result<(), Error> {
    let config = K::ENTRY.geometry(problem)?.into();
    // SAFETY: the caller's promise, passed on.
    unsafe { launch_with_constants::<K>(device, &config, constants, args) }
}

/// Declares the enum of a family's kernels: a variant for each, with the entry points that
/// it has, one for each type.
///
/// ```text
/// variants! {
///     /// One of the kernels.
///     pub enum Variant {
///         /// What it shows.
///         March: heat2d_march_f32, heat2d_march_f64;
///     }
/// }
/// ```
///
/// Gives `ALL` and `TEXTBOOK`, in this order, and `entry`, which looks the type up.
macro_rules! variants {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$of_variant:meta])* $variant:ident: $($kernel:path),+;)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            const ENTRIES: &'static [(Self, &'static [gpu_kernels::registry::Entry])] =
                &[$((Self::$variant, gpu_kernels::entries![$($kernel),+])),+];

            /// All kernels, the textbook's first.
            pub const ALL: [Self; Self::ENTRIES.len()] = [$(Self::$variant),+];

            /// The textbook's kernels.
            pub const TEXTBOOK: [Self; Self::textbook_len()] = {
                let mut textbook = [Self::ALL[0]; Self::textbook_len()];
                let mut at = 0;
                while at < textbook.len() {
                    textbook[at] = Self::ALL[at];
                    at += 1;
                }
                textbook
            };

            /// How many of the first are the textbook's; none of the others is.
            const fn textbook_len() -> usize {
                let mut len = 0;
                let mut at = 0;
                while at < Self::ENTRIES.len() {
                    if matches!(
                        Self::ENTRIES[at].1[0].role,
                        gpu_kernels::registry::Role::Textbook
                    ) {
                        assert!(at == len, "the textbook's kernels come first");
                        len += 1;
                    }
                    at += 1;
                }
                len
            }

            /// The entry points, one for each type.
            pub(crate) const fn entries(self) -> &'static [gpu_kernels::registry::Entry] {
                Self::ENTRIES[self as usize].1
            }
        }
    };
}

pub(crate) use variants;
