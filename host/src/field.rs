//! Fields: arrays on the host with two or three axes.
//!
//! In the whole library x is the fastest axis: of `nx` × `ny` × `nz` points, the point (i, j, k) is
//! element `(k * ny + j) * nx + i`. The constructors check every length and every product, so a
//! field always has exactly as many elements as its shape has points.

use crate::Error;
use crate::allocation::reserve;
use crate::extents::{Shape2, Shape3};
use std::ops::{Index, IndexMut};

fn checked_len(what: &'static str, required: usize, given: usize) -> Result<(), Error> {
    if required == given {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        argument: what.into(),
        required,
        given,
    })
}

/// An owned 2-D array on the host, x fastest: point (i, j) is element `j * nx + i`.
///
/// ```
/// use halo_gpu::{Field2, Shape2};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let ramp = Field2::from_fn(Shape2::new(4, 3), |i, j| (10 * j + i) as f32)?;
/// assert_eq!(ramp[(2, 1)], 12.0);
/// assert_eq!(ramp.as_slice()[1 * 4 + 2], 12.0);
/// assert_eq!((ramp.get(2, 1), ramp.get(4, 0)), (Some(&12.0), None));
///
/// let mut halved = ramp;
/// halved.as_mut_slice().iter_mut().for_each(|value| *value *= 0.5);
/// halved[(0, 0)] = -1.0;
/// assert_eq!(halved.into_vec()[..3], [-1.0, 0.5, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Field2<T> {
    shape: Shape2,
    data: Vec<T>,
}

impl<T> Field2<T> {
    /// A field made of data that is already in memory order.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if `data` does not have `nx * ny` elements,
    /// [`Error::IndexOverflow`] if that product does not fit `usize`.
    pub fn from_vec(shape: Shape2, data: Vec<T>) -> Result<Self, Error> {
        checked_len("the data of a Field2", shape.points()?, data.len())?;
        Ok(Self { shape, data })
    }

    /// A field whose point (i, j) is `value(i, j)`.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] if `nx * ny` elements are more bytes than a Rust object can have,
    /// [`Error::HostOutOfMemory`] if there is not enough memory.
    pub fn from_fn(shape: Shape2, mut value: impl FnMut(usize, usize) -> T) -> Result<Self, Error> {
        let points = shape.points()?;
        let mut data = reserve(points)?;
        // If nx is 0, ny may still be too large to count to.
        for j in 0..shape.ny.min(points) {
            for i in 0..shape.nx {
                data.push(value(i, j));
            }
        }
        Ok(Self { shape, data })
    }

    /// Point (i, j), or `None` outside the field.
    #[must_use]
    pub fn get(&self, i: usize, j: usize) -> Option<&T> {
        self.shape.index(i, j).map(|at| &self.data[at])
    }
}

/// An owned 3-D array on the host, x fastest: point (i, j, k) is element
/// `(k * ny + j) * nx + i`.
///
/// ```
/// use halo_gpu::{Error, Field3, Shape3};
///
/// # fn main() -> Result<(), Error> {
/// let shape = Shape3::new(4, 3, 2);
/// let field = Field3::from_fn(shape, |i, j, k| (100 * k + 10 * j + i) as f32)?;
/// assert_eq!(field[(3, 2, 1)], 123.0);
/// assert_eq!(field.as_slice()[(1 * 3 + 2) * 4 + 3], 123.0);
/// assert_eq!((field.get(3, 2, 1), field.get(0, 3, 0)), (Some(&123.0), None));
///
/// let mut ones = Field3::filled(shape, 1.0_f32)?;
/// ones.as_mut_slice()[4..8].fill(2.0);
/// assert_eq!((ones[(0, 1, 0)], ones[(0, 2, 0)]), (2.0, 1.0));
/// assert_eq!(ones.into_vec().iter().sum::<f32>(), 28.0);
///
/// let short = Field3::from_vec(shape, vec![0.0_f32; 23]);
/// assert!(matches!(short, Err(Error::LengthMismatch { required: 24, given: 23, .. })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Field3<T> {
    shape: Shape3,
    data: Vec<T>,
}

impl<T> Field3<T> {
    /// A field made of data that is already in memory order.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] if `data` does not have `nx * ny * nz` elements,
    /// [`Error::IndexOverflow`] if that product does not fit `usize`.
    pub fn from_vec(shape: Shape3, data: Vec<T>) -> Result<Self, Error> {
        checked_len("the data of a Field3", shape.points()?, data.len())?;
        Ok(Self { shape, data })
    }

    /// A field whose point (i, j, k) is `value(i, j, k)`.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] if `nx * ny * nz` elements are more bytes than a Rust object can
    /// have, [`Error::HostOutOfMemory`] if there is not enough memory.
    pub fn from_fn(
        shape: Shape3,
        mut value: impl FnMut(usize, usize, usize) -> T,
    ) -> Result<Self, Error> {
        let points = shape.points()?;
        let mut data = reserve(points)?;
        // If an extent is 0, the others may still be too large to count to.
        for k in 0..shape.nz.min(points) {
            for j in 0..shape.ny {
                for i in 0..shape.nx {
                    data.push(value(i, j, k));
                }
            }
        }
        Ok(Self { shape, data })
    }

    /// Point (i, j, k), or `None` outside the field.
    #[must_use]
    pub fn get(&self, i: usize, j: usize, k: usize) -> Option<&T> {
        self.shape.index(i, j, k).map(|at| &self.data[at])
    }
}

/// Defines the methods that fields of two and three axes share.
macro_rules! field {
    ($field:ident of $shape:ident: ($($i:ident),+) as $index:ty) => {
        impl<T> $field<T> {
            /// A field with `value` at every point.
            ///
            /// # Errors
            ///
            /// [`Error::IndexOverflow`] if the points are more bytes than a Rust object can have,
            /// [`Error::HostOutOfMemory`] if there is not enough memory.
            pub fn filled(shape: $shape, value: T) -> Result<Self, Error>
            where
                T: Clone,
            {
                let points = shape.points()?;
                let mut data = reserve(points)?;
                data.resize(points, value);
                Ok(Self { shape, data })
            }

            /// The extents.
            #[must_use]
            pub const fn shape(&self) -> $shape {
                self.shape
            }

            /// The points in memory order.
            #[must_use]
            pub fn as_slice(&self) -> &[T] {
                &self.data
            }

            /// The points in memory order, mutable.
            #[must_use]
            pub fn as_mut_slice(&mut self) -> &mut [T] {
                &mut self.data
            }

            /// The points in memory order; drops the shape.
            #[must_use]
            pub fn into_vec(self) -> Vec<T> {
                self.data
            }

            /// The element index of this point.
            ///
            /// # Panics
            ///
            /// If the point is outside the field.
            fn place(&self, point: $index) -> usize {
                let ($($i),+) = point;
                match self.shape.index($($i),+) {
                    Some(at) => at,
                    None => panic!("point {point:?} is outside a field of {}", self.shape),
                }
            }
        }

        /// # Panics
        ///
        /// Indexing panics if the point is outside the field; `get` does not.
        impl<T> Index<$index> for $field<T> {
            type Output = T;
            fn index(&self, point: $index) -> &T {
                &self.data[self.place(point)]
            }
        }

        /// # Panics
        ///
        /// Indexing panics if the point is outside the field.
        impl<T> IndexMut<$index> for $field<T> {
            fn index_mut(&mut self, point: $index) -> &mut T {
                let at = self.place(point);
                &mut self.data[at]
            }
        }
    };
}

field!(Field2 of Shape2: (i, j) as (usize, usize));
field!(Field3 of Shape3: (i, j, k) as (usize, usize, usize));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_multiply_or_report_the_product() {
        assert_eq!(Shape3::new(5, 7, 11).points().unwrap(), 385);
        assert_eq!(Shape3::new(usize::MAX, usize::MAX, 0).points().unwrap(), 0);
        assert_eq!(Shape2::new(usize::MAX, 1).points().unwrap(), usize::MAX);
        let error = Shape3::new(usize::MAX, 2, 1).points().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "nx * ny * nz is {max} * 2 * 1, but at most {max} can be indexed here",
                max = usize::MAX
            )
        );
        let error = Shape2::new(1 << 40, 1 << 40).points().unwrap_err();
        assert!(matches!(error, Error::IndexOverflow { .. }));
    }

    #[test]
    fn x_runs_fastest_then_y_then_z() {
        let shape = Shape3::new(3, 4, 5);
        let field = Field3::from_fn(shape, |i, j, k| (i, j, k)).unwrap();
        let mut at = 0;
        for k in 0..5 {
            for j in 0..4 {
                for i in 0..3 {
                    assert_eq!(shape.index(i, j, k), Some(at));
                    assert_eq!(field.as_slice()[at], (i, j, k));
                    assert_eq!(field[(i, j, k)], (i, j, k));
                    at += 1;
                }
            }
        }
        assert_eq!(at, shape.points().unwrap());
    }

    #[test]
    fn outside_is_none_on_every_axis() {
        let shape = Shape3::new(3, 4, 5);
        assert_eq!(shape.index(3, 0, 0), None);
        assert_eq!(shape.index(0, 4, 0), None);
        assert_eq!(shape.index(0, 0, 5), None);
        assert_eq!(Shape2::new(3, 4).index(3, 0), None);
        assert_eq!(Shape2::new(3, 4).index(0, 4), None);
        assert_eq!(Shape2::new(3, 4).index(2, 3), Some(11));
        let huge = Shape3::new(usize::MAX, usize::MAX, usize::MAX);
        assert_eq!(huge.index(0, 1, 1), None, "an index that overflows is none");
    }

    #[test]
    fn a_vector_of_another_length_is_refused_with_both_lengths() {
        let error = Field2::from_vec(Shape2::new(3, 4), vec![0_u8; 11]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the data of a Field2 has 11 elements, but must have 12"
        );
        assert!(Field3::from_vec(Shape3::cube(2), vec![0_u8; 9]).is_err());
        assert!(Field3::from_vec(Shape3::cube(2), vec![0_u8; 8]).is_ok());
    }

    #[test]
    #[should_panic(expected = "point (3, 0, 0) is outside a field of 3 × 4 × 5")]
    fn indexing_outside_panics_with_the_point_and_the_shape() {
        let field = Field3::filled(Shape3::new(3, 4, 5), 0.0_f32).unwrap();
        let _ = field[(3, 0, 0)];
    }

    #[test]
    fn writing_reaches_the_indexed_element_only() {
        let mut field = Field2::filled(Shape2::new(3, 2), 0_i32).unwrap();
        field[(1, 1)] = 7;
        assert_eq!(field.into_vec(), [0, 0, 0, 0, 7, 0]);
    }
}
