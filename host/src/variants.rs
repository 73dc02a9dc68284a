//! Declares the enum that names a family's kernels, from the table in `gpu_kernels::registry`.

pub(crate) use crate::launch::launch_registered;

/// Declares the enum of a family's kernels: a variant for each kernel, with its entry points, one
/// for each type.
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
/// Defines `ALL` and `TEXTBOOK`, in this order, and `entry`, which returns the entry point for a
/// type.
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

            /// The number of textbook kernels, which are the first of `ALL`.
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
