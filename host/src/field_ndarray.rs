//! Converts between fields and `ndarray` arrays (feature `ndarray`).
//!
//! ndarray names the slowest axis first: point (i, j, k) of a field is element
//! `[[k, j, i]]` of the array. Views share the field's memory.

use crate::{Error, Field2, Field3, Shape2, Shape3};
use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, ShapeError};

macro_rules! reversed {
    ($x:ident, $y:ident) => {
        ($y, $x)
    };
    ($x:ident, $y:ident, $z:ident) => {
        ($z, $y, $x)
    };
}

macro_rules! impl_ndarray {
    (
        $field:ident, $shape:ident, $view:ident, $view_mut:ident, $dim:literal,
        ($($extent:ident),+), $example:literal
    ) => {
        impl<T> $field<T> {
            #[doc = concat!("The field as an array of shape `", $dim, "`, without a copy.")]
            /// ndarray names the slowest axis first.
            ///
            #[doc = $example]
            ///
            /// # Errors
            ///
            /// [`Error::IndexOverflow`] if the product of the nonzero extents exceeds `isize::MAX`,
            /// the most that an ndarray may have.
            pub fn view(&self) -> Result<$view<'_, T>, Error> {
                let $shape { $($extent),+ } = self.shape();
                $view::from_shape(reversed!($($extent),+), self.as_slice())
                    .map_err(|_| too_large(&self.shape()))
            }

            #[doc = concat!("The field as an array of shape `", $dim, "`, for writing.")]
            /// For an example see [`view`](Self::view).
            ///
            /// # Errors
            ///
            /// As for [`view`](Self::view).
            pub fn view_mut(&mut self) -> Result<$view_mut<'_, T>, Error> {
                let shape = self.shape();
                let $shape { $($extent),+ } = shape;
                $view_mut::from_shape(reversed!($($extent),+), self.as_mut_slice())
                    .map_err(|_: ShapeError| too_large(&shape))
            }

            #[doc = concat!("A field with the elements of an array of shape `", $dim, "`, whatever its strides.")]
            /// For an example see [`view`](Self::view).
            ///
            /// # Errors
            ///
            /// [`Error::HostOutOfMemory`].
            pub fn from_view(view: &$view<'_, T>) -> Result<Self, Error>
            where
                T: Clone,
            {
                let reversed!($($extent),+) = view.dim();
                let mut data = crate::allocation::reserve(view.len())?;
                data.extend(view.iter().cloned());
                Self::from_vec($shape::new($($extent),+), data)
            }
        }
    };
}

impl_ndarray!(
    Field2,
    Shape2,
    ArrayView2,
    ArrayViewMut2,
    "(ny, nx)",
    (nx, ny),
    "```
use halo_gpu::{Field2, Shape2};

# fn main() -> Result<(), halo_gpu::Error> {
let mut field = Field2::from_fn(Shape2::new(4, 3), |i, j| 10 * j + i)?;
assert_eq!(field.view()?.shape(), [3, 4]);
assert_eq!(field.view()?[[2, 3]], 23);
field.view_mut()?.row_mut(1).fill(0);
assert_eq!((field[(3, 1)], field[(3, 2)]), (0, 23));

let turned = Field2::from_view(&field.view()?.reversed_axes())?;
assert_eq!((turned.shape(), turned[(2, 3)]), (Shape2::new(3, 4), 23));
# Ok(())
# }
```"
);
impl_ndarray!(
    Field3,
    Shape3,
    ArrayView3,
    ArrayViewMut3,
    "(nz, ny, nx)",
    (nx, ny, nz),
    "```
use halo_gpu::{Field3, Shape3};
use ndarray::s;

# fn main() -> Result<(), halo_gpu::Error> {
let mut field = Field3::from_fn(Shape3::new(4, 3, 2), |i, j, k| 100 * k + 10 * j + i)?;
assert_eq!(field.view()?.shape(), [2, 3, 4]);
assert_eq!(field.view()?[[1, 2, 3]], 123);
field.view_mut()?[[0, 0, 1]] = 7;
assert_eq!(field[(1, 0, 0)], 7);

// Every other point along x.
let coarse = Field3::from_view(&field.view()?.slice(s![.., .., ..;2]))?;
assert_eq!((coarse.shape(), coarse[(1, 2, 1)]), (Shape3::new(2, 3, 2), 122));
# Ok(())
# }
```"
);

fn too_large(shape: &dyn std::fmt::Display) -> Error {
    Error::IndexOverflow {
        quantity: "the shape of an array".into(),
        given: shape.to_string(),
        limit: isize::MAX as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array3, s};

    #[test]
    fn the_slowest_axis_comes_first_and_nothing_is_copied() -> Result<(), Error> {
        let mut field = Field3::from_fn(Shape3::new(4, 3, 2), |i, j, k| 100 * k + 10 * j + i)?;
        let view = field.view()?;
        assert_eq!(view.dim(), (2, 3, 4));
        assert_eq!(view[[1, 2, 3]], 123);
        assert_eq!(view.as_ptr(), field.as_slice().as_ptr());
        field.view_mut()?[[1, 0, 2]] = 7;
        assert_eq!(field[(2, 0, 1)], 7);

        let mut field = Field2::from_fn(Shape2::new(4, 3), |i, j| 10 * j + i)?;
        assert_eq!(field.view()?[[2, 3]], 23);
        field.view_mut()?[[1, 0]] = 7;
        assert_eq!(field[(0, 1)], 7);
        Ok(())
    }

    #[test]
    fn views_of_any_strides_become_fields() -> Result<(), Error> {
        let array = Array3::from_shape_fn((4, 6, 10), |(k, j, i)| 100 * k + 10 * j + i);
        // Every other point along x, y the other way round, z and y exchanged.
        let view = array.slice(s![.., ..;-1, ..;2]);
        let field = Field3::from_view(&view.permuted_axes([1, 0, 2]))?;
        assert_eq!(field.shape(), Shape3::new(5, 4, 6));
        assert_eq!(field[(4, 3, 0)], 358);
        assert_eq!(field[(1, 2, 5)], 202);
        assert_eq!(Field3::from_view(&field.view()?)?, field);
        Ok(())
    }

    #[test]
    fn extents_beyond_an_arrays_are_an_error() -> Result<(), Error> {
        // No element, but extents whose product no array may have.
        let shape = Shape3::new(usize::MAX, 1, 0);
        let mut field = Field3::<f32>::from_vec(shape, Vec::new())?;
        let message = field.view().unwrap_err().to_string();
        assert!(
            message.contains("18446744073709551615 × 1 × 0"),
            "{message}"
        );
        assert!(matches!(field.view_mut(), Err(Error::IndexOverflow { .. })));
        Ok(())
    }
}
