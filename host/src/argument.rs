//! Names the operation and the parameter that an error is about.

use std::fmt;

/// The subject of an error: an argument of an operation, or a quantity.
///
/// Text converts with `into()`: `"axpy: x"` is the argument x of axpy; `"nx * ny"` is a quantity
/// without an operation.
///
/// ```
/// use halo_gpu::{Device, Error, reduction};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let device = Device::cpu();
/// let (x, y) = (device.upload(&[1.0, 2.0])?, device.upload(&[1.0])?);
/// match reduction::dot(&x, &y) {
///     Err(Error::LengthMismatch { argument, required: 2, given: 1 }) => {
///         assert_eq!((argument.operation, argument.name), ("reduction: dot", "y"));
///     }
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Argument {
    /// The kernel or library operation that refused the argument; empty if unknown.
    pub operation: &'static str,
    /// The name of the argument or of the quantity.
    pub name: &'static str,
    /// Which of several arguments of that name, counted from 0.
    pub number: Option<usize>,
}

impl Argument {
    pub(crate) const fn new(operation: &'static str, name: &'static str) -> Self {
        Self {
            operation,
            name,
            number: None,
        }
    }

    /// The same argument, as number `number` of several.
    pub(crate) const fn numbered(self, number: usize) -> Self {
        Self {
            number: Some(number),
            ..self
        }
    }
}

impl From<&'static str> for Argument {
    fn from(text: &'static str) -> Self {
        let (operation, name) = text.rsplit_once(": ").unwrap_or(("", text));
        Self::new(operation, name)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.operation.is_empty() {
            write!(f, "{}: ", self.operation)?;
        }
        f.write_str(self.name)?;
        match self.number {
            Some(number) => write!(f, " {number}"),
            None => Ok(()),
        }
    }
}
