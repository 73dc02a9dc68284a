//! The traits by which a stencil is written: the update of a point, and the fields around it.

use crate::reach::Reach;
use crate::value::{Real, Value};
#[cfg(not(target_arch = "nvptx64"))]
use {
    crate::boundary::Layout,
    cuda_std::host::{In, Kernel, Out},
};

/// The update of a point from the fields around it.
///
/// `Self` holds the parameters, which kernels take by value: it is `#[repr(C)]` if it has more than
/// one. `INPUTS` fields are read and `OUTPUTS` are written. Output n of a step is input n of the
/// next, so the first inputs are the present fields. If the update has a [`PAST`](Self::PAST), the
/// past fields follow, and then the coefficients, which no step changes.
pub trait PointUpdate<T: Real, const INPUTS: usize, const OUTPUTS: usize>:
    Copy + Send + Sync + 'static
{
    /// The number of dimensions, 2 or 3.
    const DIMENSIONS: usize;

    /// The points that the update reads of each input.
    const REACH: [Reach; INPUTS];

    /// The number of past steps of each output that the update reads besides the present: 0 for
    /// equations of first order in time, 1 for waves.
    const PAST: usize = 0;

    /// Whether the outputs are written over the past fields, for equations of second order in time
    /// ([`PAST`](Self::PAST) is 1). A step then moves one field less for each output, and a run
    /// keeps one field less.
    ///
    /// The update may read the past fields at the point itself only ([`Reach::POINT`]), because
    /// their other points may already have their new values. In the macro, `new over past` names
    /// each output and the past field that it replaces:
    ///
    /// ```
    /// use halo_stencil::{Neighbourhood, PointUpdate, Reach};
    ///
    /// /// `∂²u/∂t² = c² ∂²u/∂x²`
    /// #[derive(Clone, Copy)]
    /// pub struct Rope {
    ///     courant_squared: f32,
    /// }
    /// impl PointUpdate<f32, 2, 1> for Rope {
    ///     const DIMENSIONS: usize = 2;
    ///     const REACH: [Reach; 2] = [Reach::axes([1, 0, 0]), Reach::POINT];
    ///     const PAST: usize = 1;
    ///     const OVER_PAST: bool = true;
    ///     #[inline(always)]
    ///     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
    ///         let (u, past) = (n.at::<0, 0, 0, 0>(), n.at::<1, 0, 0, 0>());
    ///         [(u * 2.0 - past) + (n.pair::<0, 0>(1) - u * 2.0) * self.courant_squared]
    ///     }
    /// }
    /// halo_stencil::stencil! { pub rope: Rope, f32, (u, past) -> (new over past) }
    /// # fn main() {}
    /// ```
    ///
    /// An update that reads a past field next to the point does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use halo_stencil::{Neighbourhood, PointUpdate, Reach};
    /// # #[derive(Clone, Copy)]
    /// # pub struct Rope;
    /// impl PointUpdate<f32, 2, 1> for Rope {
    ///     const DIMENSIONS: usize = 2;
    ///     const REACH: [Reach; 2] = [Reach::POINT, Reach::axes([1, 0, 0])];
    ///     const PAST: usize = 1;
    ///     const OVER_PAST: bool = true;
    ///     #[inline(always)]
    ///     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
    ///         [n.at::<0, 0, 0, 0>() - n.at::<1, 1, 0, 0>()]
    ///     }
    /// }
    /// halo_stencil::stencil! { pub rope: Rope, f32, (u, past) -> (new over past) }
    /// # fn main() {}
    /// ```
    const OVER_PAST: bool = false;

    /// The outputs at a point. Mark it `#[inline(always)]`.
    ///
    /// The order of the operations is part of the definition, since it determines the bits.
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; OUTPUTS];
}

/// The fields around a point.
pub trait Neighbourhood<T: Real> {
    /// The type of values: of one point, or of several points at once.
    type Value: Value<T>;

    /// The points that may be read of each field.
    const REACH: &'static [Reach];

    /// The value of field number `field` at an offset from the point, along x, y and z.
    ///
    /// The arguments must be constant once loops over constants are unrolled; otherwise kernels
    /// keep the values in local memory. On the CPU and in the emulator the plan detects an offset
    /// that the update does not declare.
    fn value(&self, field: usize, offset: [isize; 3]) -> Self::Value;

    /// The value with this number at all points.
    fn splat(&self, number: T) -> Self::Value;

    /// Field `FIELD` at the offset (`DI`, `DJ`, `DK`). It does not compile unless the update
    /// declares the offset.
    ///
    /// ```compile_fail,E0080
    /// use halo_stencil::{Neighbourhood, PointUpdate, Reach};
    ///
    /// #[derive(Clone, Copy)]
    /// pub struct Shift;
    /// impl PointUpdate<f32, 1, 1> for Shift {
    ///     const DIMENSIONS: usize = 2;
    ///     const REACH: [Reach; 1] = [Reach::star(1)];
    ///     #[inline(always)]
    ///     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
    ///         [n.at::<0, 2, 0, 0>()] // two away, but one is declared
    ///     }
    /// }
    /// halo_stencil::stencil! { pub shift: Shift, f32, (u) -> (v) }
    /// # fn main() { let _ = shift as *const (); }
    /// ```
    #[inline(always)]
    fn at<const FIELD: usize, const DI: isize, const DJ: isize, const DK: isize>(
        &self,
    ) -> Self::Value {
        const {
            assert!(
                FIELD < Self::REACH.len(),
                "the update declares fewer inputs than this field's number"
            );
            assert!(
                Self::REACH[FIELD].contains([DI, DJ, DK]),
                "the update reads a neighbour that its REACH does not declare"
            );
        }
        self.near::<FIELD, DI, DJ, DK>()
    }

    /// As [`at`](Self::at), for updates whose radius is a constant of their own: the plan, not the
    /// compiler, checks that the offset is declared.
    #[inline(always)]
    fn near<const FIELD: usize, const DI: isize, const DJ: isize, const DK: isize>(
        &self,
    ) -> Self::Value {
        self.value(FIELD, [DI, DJ, DK])
    }

    /// Field `FIELD` at a distance along `AXIS` (0 is x), for loops over constant distances.
    #[inline(always)]
    fn along<const FIELD: usize, const AXIS: usize>(&self, distance: isize) -> Self::Value {
        let mut offset = [0; 3];
        offset[AXIS] = distance;
        self.value(FIELD, offset)
    }

    /// The sum of field `FIELD` at a distance to either side along `AXIS`, the lower side first.
    #[inline(always)]
    fn pair<const FIELD: usize, const AXIS: usize>(&self, distance: isize) -> Self::Value {
        self.along::<FIELD, AXIS>(-distance) + self.along::<FIELD, AXIS>(distance)
    }
}

/// An update with a kernel. [`stencil!`](crate::stencil) implements it.
#[cfg(not(target_arch = "nvptx64"))]
pub trait Compiled<T: Real, const INPUTS: usize, const OUTPUTS: usize>:
    PointUpdate<T, INPUTS, OUTPUTS>
{
    /// The kernel's handle.
    type Kernel: Kernel;

    /// The kernel's arguments. The outputs of an update that is
    /// [`OVER_PAST`](PointUpdate::OVER_PAST) hold the past fields, and `inputs` at their numbers are
    /// ignored.
    fn arguments<'a>(
        self,
        inputs: [In<'a, T>; INPUTS],
        outputs: [Out<'a, T>; OUTPUTS],
        layout: Layout<T, INPUTS>,
    ) -> <Self::Kernel as Kernel>::Args<'a>;
}

/// The number of the output that is written over input number `field`, if one is.
#[must_use]
pub const fn overwritten<T, U, const INPUTS: usize, const OUTPUTS: usize>(
    field: usize,
) -> Option<usize>
where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    if U::OVER_PAST && field >= OUTPUTS && field < 2 * OUTPUTS {
        Some(field - OUTPUTS)
    } else {
        None
    }
}

/// Whether the update may be [`OVER_PAST`](PointUpdate::OVER_PAST). True for one that is not.
#[must_use]
pub const fn may_be_over_past<T, U, const INPUTS: usize, const OUTPUTS: usize>() -> bool
where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let mut field = 0;
    while field < INPUTS {
        if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() && !U::REACH[field].is_point() {
            return false;
        }
        field += 1;
    }
    !U::OVER_PAST || U::PAST == 1
}

/// Does not compile unless [`may_be_over_past`].
#[doc(hidden)]
pub const fn require_over_past<T, U, const INPUTS: usize, const OUTPUTS: usize>()
where
    T: Real,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    assert!(
        may_be_over_past::<T, U, INPUTS, OUTPUTS>(),
        "outputs over past fields need PAST = 1, and past fields that the update reads at the \
         point itself alone (Reach::POINT)"
    );
}
