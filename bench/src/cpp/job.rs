//! The work of a row, for functions of C++.

use std::ffi::c_void;

use crate::check::Check;
use crate::error::Error;

/// Elements that a function reads or writes.
#[derive(Clone, Debug)]
pub(crate) enum Array {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U64(Vec<u64>),
}

impl Array {
    pub(super) fn as_ptr(&self) -> *const c_void {
        match self {
            Self::F32(values) => values.as_ptr().cast(),
            Self::F64(values) => values.as_ptr().cast(),
            Self::U64(values) => values.as_ptr().cast(),
        }
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut c_void {
        match self {
            Self::F32(values) => values.as_mut_ptr().cast(),
            Self::F64(values) => values.as_mut_ptr().cast(),
            Self::U64(values) => values.as_mut_ptr().cast(),
        }
    }

    /// Copies the elements of another array of the same type and length.
    pub(super) fn copy_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::F32(own), Self::F32(other)) => own.copy_from_slice(other),
            (Self::F64(own), Self::F64(other)) => own.copy_from_slice(other),
            (Self::U64(own), Self::U64(other)) => own.copy_from_slice(other),
            _ => unreachable!("an array keeps its type"),
        }
    }
}

/// A type of elements.
pub(crate) trait Element: Copy {
    /// The suffix of its functions' names.
    const SUFFIX: &'static str;
    /// Half the distance from 1 to the next number.
    const ROUNDOFF: f64;

    fn array(values: Vec<Self>) -> Array;

    /// The elements of an array of this type; empty for another type.
    fn slice(array: &Array) -> &[Self];
}

macro_rules! element {
    ($($type:ident: $variant:ident;)*) => {$(
        impl Element for $type {
            const SUFFIX: &'static str = stringify!($type);
            const ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;

            fn array(values: Vec<Self>) -> Array {
                Array::$variant(values)
            }

            fn slice(array: &Array) -> &[Self] {
                match array {
                    Array::$variant(values) => values,
                    _ => &[],
                }
            }
        }
    )*};
}

element! {
    f32: F32;
    f64: F64;
}

/// Compares the outputs of a function with the expected result.
pub(crate) type Judge = Box<dyn Fn(&[Array]) -> Result<Check, Error>>;

/// The work of a row, for functions of `baselines/cpu/`. The arrays have the types and lengths that
/// the family's file documents for these sizes.
pub(crate) struct Job {
    /// The start of the functions' names: "heat2d" of `halo_heat2d_plain_f32`.
    pub(crate) stem: &'static str,
    /// The names of the ways to do it: "plain" in that example.
    pub(crate) ways: &'static [&'static str],
    /// The end of the names.
    pub(crate) suffix: &'static str,
    pub(crate) inputs: Vec<Array>,
    /// The outputs' contents before the first call.
    pub(crate) outputs: Vec<Array>,
    pub(crate) sizes: Vec<u64>,
    /// The number of steps of the checked call, if the last size is a number of steps. After a timed
    /// call of an odd number the halves of the outputs change places, so that the next one begins
    /// with the newest fields, as Halo's next launch does.
    pub(crate) steps_to_check: Option<u64>,
    pub(crate) parameters: Vec<f64>,
    pub(crate) judge: Judge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_of_their_type_alone() {
        let array = f32::array(vec![1.0, 2.0]);
        assert_eq!(f32::slice(&array), [1.0, 2.0]);
        assert!(f64::slice(&array).is_empty());
        let mut other = f32::array(vec![0.0; 2]);
        other.copy_from(&array);
        assert_eq!(f32::slice(&other), [1.0, 2.0]);
    }
}
