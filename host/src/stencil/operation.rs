//! Describes a stencil computation: `Stencil`, an update on a grid.

use super::cpu::{self, Pass};
use super::number::{Number, OPERATION};
use super::trace;
use crate::march::{blocks_of, layout_of, shape_of};
use crate::{Axis, Boundary, Error, Grid, Shape};
use gpu_kernels::registry::Cost;
use halo_stencil::{Blocks, Layout, PointUpdate, furthest};

/// An update of the points of a grid, with a boundary for each end of each field.
///
/// `U` is the update, `D` the number of axes of the grid, 2 or 3; `T`, `INPUTS` and `OUTPUTS`
/// follow from the update.
///
/// ```
/// use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
/// use halo_gpu::{Grid2, Shape2};
///
/// /// The mean of the neighbours along x.
/// #[derive(Debug, Clone, Copy)]
/// struct Mean;
///
/// impl PointUpdate<f32, 1, 1> for Mean {
///     const DIMENSIONS: usize = 2;
///     const REACH: [Reach; 1] = [Reach::axes([1, 0, 0])];
///
///     #[inline(always)]
///     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
///         [(n.at::<0, -1, 0, 0>() + n.at::<0, 1, 0, 0>()) * 0.5]
///     }
/// }
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let mean = Stencil::new(Mean, Grid2::new(Shape2::new(64, 32), [1.0; 2])?)?;
/// assert_eq!(mean.cost().flops, 2 * 64 * 32);
/// assert_eq!(mean.cost().bytes, (4 + 4) * 64 * 32);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Stencil<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    update: U,
    grid: Grid<D>,
    /// The boundaries of each field along each axis.
    ends: [[[Boundary; 2]; D]; INPUTS],
    flops_per_point: u64,
    /// The update on the CPU. It is compiled with [`new`](Self::new). If the library itself calls
    /// `new` with a known type, the code is optimised like the library, whatever the caller's
    /// build.
    pass: Pass<U, T, INPUTS, OUTPUTS>,
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>
    Stencil<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    /// Applies `update` to all points of `grid`; the grid's boundaries hold for all fields.
    ///
    /// [`Boundary::OneSided`] is an open end here: the values beyond it are copies of the last
    /// point. At a place beyond the ends of several axes, a field has the value of x's end if that
    /// is a Dirichlet boundary, else that of z's, else that of y's; other boundaries are images,
    /// one axis after the other.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an update that reads undeclared neighbours or has another
    /// number of dimensions than the grid, for a periodic axis with both ends stored and a single
    /// point, and for [`Boundary::DirichletOnPoint`]; [`Error::IndexOverflow`] for a grid that
    /// kernels cannot index: more than 2³⁰ points along an axis, 2³¹ in a plane.
    pub fn new(update: U, grid: Grid<D>) -> Result<Self, Error> {
        if U::DIMENSIONS != D {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the grid's number of dimensions",
                given: D.to_string(),
                required: format!("{}, the update's", U::DIMENSIONS),
            });
        }
        let flops_per_point = trace::flops(&update)?;
        let axes: [Axis; D] = std::array::from_fn(|axis| Axis::ALL[axis]);
        let ends = axes.map(|axis| grid.ends(axis));
        ends.into_iter().try_for_each(require_updated)?;
        let stencil = Self {
            update,
            grid,
            ends: [ends; INPUTS],
            flops_per_point,
            pass: cpu::pass,
        };
        stencil.shape().points()?;
        stencil.blocks(1)?;
        Ok(stencil)
    }

    /// This stencil with other boundaries for one field, at the first and the last point of an
    /// axis.
    ///
    /// ```
    /// # use halo_gpu::stencil::{Neighbourhood, PointUpdate, Reach, Stencil};
    /// use halo_gpu::{Axis, Boundary, Error, Grid2, Shape2};
    /// # #[derive(Clone, Copy)]
    /// # struct Same;
    /// # impl PointUpdate<f32, 1, 1> for Same {
    /// #     const DIMENSIONS: usize = 2;
    /// #     const REACH: [Reach; 1] = [Reach::POINT];
    /// #     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
    /// #         [n.at::<0, 0, 0, 0>()]
    /// #     }
    /// # }
    ///
    /// # fn main() -> Result<(), Error> {
    /// let channel = Stencil::new(Same, Grid2::new(Shape2::new(64, 32), [1.0; 2])?)?
    ///     .with_ends(0, Axis::Y, [Boundary::Dirichlet(1.0), Boundary::Neumann])?;
    /// let refused = channel.with_ends(1, Axis::Y, [Boundary::Neumann; 2]);
    /// assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
    /// let refused = channel.with_ends(0, Axis::Y, [Boundary::DirichletOnPoint; 2]);
    /// assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`Grid::with_ends`]; [`Error::InvalidParameter`] for a field that the update does not
    /// read, and for [`Boundary::DirichletOnPoint`].
    pub fn with_ends(
        mut self,
        field: usize,
        axis: Axis,
        ends: [Boundary; 2],
    ) -> Result<Self, Error> {
        // The grid checks the axis and the boundaries.
        let grid = self.grid.with_ends(axis, ends)?;
        require_updated(ends)?;
        let Some(of_field) = self.ends.get_mut(field) else {
            return Err(Error::InvalidParameter {
                operation: OPERATION,
                parameter: "the field",
                given: field.to_string(),
                required: format!("below {INPUTS}, the number of inputs"),
            });
        };
        of_field[axis.index()] = grid.ends(axis);
        Ok(self)
    }

    /// The boundaries of a field at the first and the last point of an axis; `None` for a field or
    /// an axis that does not exist.
    #[must_use]
    pub fn ends(&self, field: usize, axis: Axis) -> Option<[Boundary; 2]> {
        self.ends.get(field)?.get(axis.index()).copied()
    }

    /// The update with its parameters.
    #[must_use]
    pub const fn update(&self) -> &U {
        &self.update
    }

    /// This stencil with other parameters of the update.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for an update that reads undeclared neighbours.
    pub fn with_update(mut self, update: U) -> Result<Self, Error> {
        self.flops_per_point = trace::flops(&update)?;
        self.update = update;
        Ok(self)
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> &Grid<D> {
        &self.grid
    }

    /// The boundaries of each field along each axis.
    pub(super) const fn all_ends(&self) -> &[[[Boundary; 2]; D]; INPUTS] {
        &self.ends
    }

    /// The function that takes steps on the CPU.
    pub(super) const fn pass(&self) -> Pass<U, T, INPUTS, OUTPUTS> {
        self.pass
    }

    /// The number of points along x, y and z.
    pub(super) fn extents(&self) -> [usize; 3] {
        Axis::ALL.map(|axis| self.grid.extent(axis))
    }

    /// The shape of every field.
    #[must_use]
    pub fn shape(&self) -> Shape {
        shape_of(self.extents(), D)
    }

    /// The number of points of a field.
    pub(super) fn points(&self) -> usize {
        // `new` has checked that the product fits.
        self.extents().iter().product()
    }

    /// The least cost of a step: each input is read once and each output written once, plus the
    /// update's floating-point operations, where a fused multiply-add counts as two.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let points = self.points() as u64;
        Cost {
            bytes: points * ((INPUTS + OUTPUTS) * size_of::<T>()) as u64,
            flops: points * self.flops_per_point,
        }
    }

    /// The blocks of a launch on a device with this many multiprocessors.
    pub(super) fn blocks(&self, multiprocessors: u32) -> Result<Blocks, Error> {
        let radius = furthest(&U::REACH, D - 1);
        blocks_of::<T, D>(OPERATION, &self.grid, radius, multiprocessors)
    }

    /// The description of the fields for kernels; `segment` is that of [`Blocks`].
    pub(super) fn layout(&self, segment: u32) -> Layout<T, INPUTS> {
        let value = |boundary: Boundary| T::nearest(boundary.dirichlet_value());
        layout_of(&self.grid, &self.ends, segment, value)
    }
}

/// Returns an error for points that keep their values, because a step updates all points.
fn require_updated(ends: [Boundary; 2]) -> Result<(), Error> {
    if ends.contains(&Boundary::DirichletOnPoint) {
        return Err(Error::InvalidParameter {
            operation: OPERATION,
            parameter: "the boundary",
            given: Boundary::DirichletOnPoint.to_string(),
            required: "another boundary, because a step updates all points".to_owned(),
        });
    }
    Ok(())
}
