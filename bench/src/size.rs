//! Problem sizes as given on the command line.

use std::fmt;
use std::str::FromStr;

/// One to three extents: `N`, `NXxNY` or `NXxNYxNZ`, none of them zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size(Vec<usize>);

/// A size of the wrong number of dimensions for a family.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--size {given} does not fit {family}: it takes {takes}")]
pub(crate) struct SizeError {
    given: String,
    family: &'static str,
    takes: &'static str,
}

#[allow(dead_code, reason = "each family uses the one that fits its problem")]
impl Size {
    /// For a family on a 3-D field: `N` is a cube, `NXxNYxNZ` three extents.
    pub(crate) fn cuboid(&self, family: &'static str) -> Result<[usize; 3], SizeError> {
        match *self.0 {
            [n] => Ok([n, n, n]),
            [nx, ny, nz] => Ok([nx, ny, nz]),
            _ => Err(self.misfit(family, "N or NXxNYxNZ")),
        }
    }

    /// For a family on a 2-D field: `N` is a square, `NXxNY` two extents.
    pub(crate) fn rectangle(&self, family: &'static str) -> Result<[usize; 2], SizeError> {
        match *self.0 {
            [n] => Ok([n, n]),
            [nx, ny] => Ok([nx, ny]),
            _ => Err(self.misfit(family, "N or NXxNY")),
        }
    }

    /// For a family on a sequence: only `N`.
    pub(crate) fn length(&self, family: &'static str) -> Result<usize, SizeError> {
        match *self.0 {
            [n] => Ok(n),
            _ => Err(self.misfit(family, "N")),
        }
    }

    fn misfit(&self, family: &'static str, takes: &'static str) -> SizeError {
        SizeError {
            given: self.to_string(),
            family,
            takes,
        }
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let extents: Option<Vec<usize>> = text
            .split('x')
            .map(|extent| extent.parse().ok().filter(|&extent| extent > 0))
            .collect();
        match extents {
            Some(extents) if extents.len() <= 3 => Ok(Self(extents)),
            _ => Err("expected N, NXxNY or NXxNYxNZ, each a whole number of at least 1".to_owned()),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, extent) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("x")?;
            }
            write!(f, "{extent}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(text: &str) -> Size {
        text.parse().unwrap()
    }

    #[test]
    fn each_form_is_parsed_and_printed_alike() {
        for text in ["64", "17x301", "64x32x96"] {
            assert_eq!(size(text).to_string(), text);
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "", "0", "64x0", "x", "64x", "1x2x3x4", "-4", "64X64", "6 4", "1.5",
        ] {
            assert!(text.parse::<Size>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_family_takes_the_forms_it_can_use() {
        assert_eq!(size("64").cuboid("f"), Ok([64, 64, 64]));
        assert_eq!(size("1x2x3").cuboid("f"), Ok([1, 2, 3]));
        assert_eq!(size("5").rectangle("f"), Ok([5, 5]));
        assert_eq!(size("5x7").rectangle("f"), Ok([5, 7]));
        assert_eq!(size("5").length("f"), Ok(5));
        assert!(size("5x7x9").rectangle("f").is_err());
        assert!(size("5x7").length("f").is_err());
        assert_eq!(
            size("5x7").cuboid("derivative3d").unwrap_err().to_string(),
            "--size 5x7 does not fit derivative3d: it takes N or NXxNYxNZ"
        );
    }
}
