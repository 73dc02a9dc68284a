//! The GPU architectures that PTX can be written for.

use std::fmt;
use std::str::FromStr;

macro_rules! architectures {
    ($($(#[$note:meta])* $variant:ident = $capability:literal $suffix:literal),+ $(,)?) => {
        /// A virtual GPU architecture, by its compute capability: `Compute75` is 7.5.
        ///
        /// PTX for one architecture runs on it and on every later one, never on an earlier one. So
        /// choose the lowest capability that has what the kernels need. A variant with the letter
        /// `a` runs on exactly that capability, one with `f` on that capability's family.
        ///
        /// All of upstream's variants are here, and all that LLVM 22 knows. What a
        /// given LLVM release lacks, [`CudaBuilder::build`](crate::CudaBuilder::build)
        /// refuses by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum NvvmArch {
            $(
                #[doc = concat!("Compute capability ", $capability, "/10", $suffix, ".")]
                $(#[$note])*
                $variant,
            )+
        }

        impl NvvmArch {
            /// Every architecture, oldest first.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Ten times the compute capability: 75 for `Compute75`, 90 for `Compute90a`.
            #[must_use]
            pub const fn capability_value(self) -> u32 {
                match self { $(Self::$variant => $capability),+ }
            }

            const fn suffix(self) -> &'static str {
                match self { $(Self::$variant => $suffix),+ }
            }
        }
    };
}

architectures! {
    Compute35 = 35 "",
    Compute37 = 37 "",
    Compute50 = 50 "",
    Compute52 = 52 "",
    Compute53 = 53 "",
    Compute60 = 60 "",
    Compute61 = 61 "",
    Compute62 = 62 "",
    Compute70 = 70 "",
    Compute72 = 72 "",
    Compute75 = 75 "",
    Compute80 = 80 "",
    Compute86 = 86 "",
    Compute87 = 87 "",
    Compute88 = 88 "",
    Compute89 = 89 "",
    Compute90 = 90 "",
    Compute90a = 90 "a",
    Compute100 = 100 "",
    Compute100f = 100 "f",
    Compute100a = 100 "a",
    Compute101 = 101 "",
    Compute101f = 101 "f",
    Compute101a = 101 "a",
    Compute103 = 103 "",
    Compute103f = 103 "f",
    Compute103a = 103 "a",
    Compute110 = 110 "",
    Compute110f = 110 "f",
    Compute110a = 110 "a",
    Compute120 = 120 "",
    Compute120f = 120 "f",
    Compute120a = 120 "a",
    Compute121 = 121 "",
    Compute121f = 121 "f",
    Compute121a = 121 "a",
}

impl NvvmArch {
    /// The name that PTX, LLVM, rustc and ptxas use: `sm_75`.
    ///
    /// ```
    /// use cuda_builder::NvvmArch;
    /// assert_eq!(NvvmArch::Compute90a.sm(), "sm_90a");
    /// ```
    #[must_use]
    pub fn sm(self) -> String {
        format!("sm_{}{}", self.capability_value(), self.suffix())
    }

    /// The architectures whose instructions this one has, oldest first: itself; those without a
    /// letter, up to its capability; and, if it has the letter `a` or `f`, those with `f` of its
    /// family. No other architecture includes one with `a`.
    ///
    /// ```
    /// use cuda_builder::NvvmArch::{Compute90, Compute90a, Compute103f};
    /// assert!(Compute90a.includes().any(|arch| arch == Compute90));
    /// assert!(Compute103f.includes().all(|arch| arch != Compute90a));
    /// ```
    pub fn includes(self) -> impl Iterator<Item = Self> {
        let (own, family) = (self.capability_value(), !self.suffix().is_empty());
        Self::ALL.iter().copied().filter(move |other| {
            let capability = other.capability_value();
            *other == self
                || capability <= own
                    && match other.suffix() {
                        "" => true,
                        "f" => family && capability / 10 == own / 10,
                        _ => false,
                    }
        })
    }

    /// The values of `cfg(target_feature = "…")` that one architecture stands for:
    /// `sm_75`, and upstream's `compute_75`.
    pub(crate) fn features(self) -> [String; 2] {
        [self.sm(), self.to_string()]
    }

    /// What the environment variable `CUDA_ARCH` says while the kernel crate is
    /// compiled, and `__CUDA_ARCH__` in CUDA C++: 750 for `Compute75`.
    #[must_use]
    pub const fn cuda_arch(self) -> u32 {
        self.capability_value() * 10
    }
}

impl Default for NvvmArch {
    /// The oldest architecture that CUDA 13 supports. Its memory model has acquire and release.
    fn default() -> Self {
        Self::Compute75
    }
}

/// `compute_75`.
impl fmt::Display for NvvmArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compute_{}{}", self.capability_value(), self.suffix())
    }
}

/// A name that is no [`NvvmArch`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a GPU architecture; write it as sm_75, compute_75 or 75")]
pub struct UnknownArch(pub String);

/// Reads `sm_75`, `compute_75` and `75`.
///
/// ```
/// use cuda_builder::NvvmArch;
/// assert_eq!("sm_90".parse(), Ok(NvvmArch::Compute90));
/// assert!("sm_91".parse::<NvvmArch>().is_err());
/// ```
impl FromStr for NvvmArch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        let bare = name
            .strip_prefix("sm_")
            .or_else(|| name.strip_prefix("compute_"))
            .unwrap_or(name);
        Self::ALL
            .iter()
            .copied()
            .find(|arch| arch.sm()[3..] == *bare)
            .ok_or_else(|| UnknownArch(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for &arch in NvvmArch::ALL {
            assert_eq!(arch.sm().parse(), Ok(arch));
            assert_eq!(arch.to_string().parse(), Ok(arch));
            assert_eq!(
                format!("{arch:?}"),
                arch.to_string().replace("compute_", "Compute")
            );
        }
    }

    #[test]
    fn an_architecture_includes_those_before_it() {
        let check = |arch: NvvmArch, expect: &[&str]| {
            let newest: Vec<_> = arch.includes().map(NvvmArch::sm).collect();
            assert_eq!(newest[newest.len() - expect.len()..], *expect, "{arch}");
        };
        check(NvvmArch::Compute35, &["sm_35"]);
        check(NvvmArch::Compute75, &["sm_70", "sm_72", "sm_75"]);
        check(NvvmArch::Compute90a, &["sm_89", "sm_90", "sm_90a"]);
        check(NvvmArch::Compute100, &["sm_89", "sm_90", "sm_100"]);
        check(
            NvvmArch::Compute103f,
            &[
                "sm_90", "sm_100", "sm_100f", "sm_101", "sm_101f", "sm_103", "sm_103f",
            ],
        );
        check(
            NvvmArch::Compute120a,
            &["sm_110", "sm_120", "sm_120f", "sm_120a"],
        );
    }

    #[test]
    fn unknown_names_say_how_to_write_one() {
        let error = "turing".parse::<NvvmArch>().unwrap_err().to_string();
        assert!(
            error.contains("`turing`") && error.contains("sm_75"),
            "{error}"
        );
    }
}
