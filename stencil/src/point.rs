//! The update of a point.

use crate::reach::Reach;
use crate::value::{Real, Value};
#[cfg(not(target_arch = "nvptx64"))]
use {
    crate::boundary::Layout,
    cuda_std::host::{In, Kernel, Out},
};

/// What a point becomes, from fields around it.
///
/// `Self` holds the parameters, which go to kernels by value: it is `#[repr(C)]` if it has
/// more than one. There are `INPUTS` fields that are read and `OUTPUTS` that are written. The
/// first inputs are what the outputs become in the next step: output n is input n. If the
/// update has a [`PAST`](Self::PAST), what they were before follows, and then the coefficients,
/// which no step changes.
pub trait PointUpdate<T: Real, const INPUTS: usize, const OUTPUTS: usize>:
    Copy + Send + Sync + 'static
{
    /// 2 or 3.
    const DIMENSIONS: usize;

    /// What it reads of each input.
    const REACH: [Reach; INPUTS];

    /// How many steps back it reads each output, besides the present: 0 for equations of first
    /// order in time, 1 for waves.
    const PAST: usize = 0;

    /// The outputs at a point. To be marked `#[inline(always)]`.
    ///
    /// The order of the operations is part of the definition: it decides about the bits.
    fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; OUTPUTS];
}

/// The fields around a point.
pub trait Neighbourhood<T: Real> {
    /// What is computed with: the values of one point, or of some points at once.
    type Value: Value<T>;

    /// What may be read of each field.
    const REACH: &'static [Reach];

    /// Field number `field` at an offset from the point, along x, y and z.
    ///
    /// To be called with what is constant after loops over constants have been written out:
    /// else kernels keep what they read in memory. In the emulator and on the CPU an offset
    /// that the update does not declare is found where the plan is made.
    fn value(&self, field: usize, offset: [isize; 3]) -> Self::Value;

    /// This number at all points.
    fn splat(&self, number: T) -> Self::Value;

    /// Field `FIELD` at the offset (`DI`, `DJ`, `DK`), which does not compile unless the update
    /// declares it.
    ///
    /// ```compile_fail,E0080
    /// use halo_stencil::{Neighbourhood, PointUpdate, Reach};
    ///
    /// #[derive(Clone, Copy)]
    /// struct Shift;
    /// impl PointUpdate<f32, 1, 1> for Shift {
    ///     const DIMENSIONS: usize = 2;
    ///     const REACH: [Reach; 1] = [Reach::star(1)];
    ///     #[inline(always)]
    ///     fn update<N: Neighbourhood<f32>>(&self, n: &N) -> [N::Value; 1] {
    ///         [n.at::<0, 2, 0, 0>()] // two away, but one is declared
    ///     }
    /// }
    /// halo_stencil::stencil! { pub shift: Shift, f32, (u) -> (v) }
    /// # fn main() {}
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

    /// As [`at`](Self::at), for updates with a constant radius of their own: that the offset is
    /// declared is found where the plan is made.
    #[inline(always)]
    fn near<const FIELD: usize, const DI: isize, const DJ: isize, const DK: isize>(
        &self,
    ) -> Self::Value {
        self.value(FIELD, [DI, DJ, DK])
    }

    /// Field `FIELD` at a distance along `AXIS`, 0 for x: for loops over constant distances.
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

/// An update that has a kernel: [`stencil!`](crate::stencil) implements it.
#[cfg(not(target_arch = "nvptx64"))]
pub trait Compiled<T: Real, const INPUTS: usize, const OUTPUTS: usize>:
    PointUpdate<T, INPUTS, OUTPUTS>
{
    /// The kernel's handle.
    type Kernel: Kernel;

    /// The kernel's arguments.
    fn arguments<'a>(
        self,
        inputs: [In<'a, T>; INPUTS],
        outputs: [Out<'a, T>; OUTPUTS],
        layout: Layout<T, INPUTS>,
    ) -> <Self::Kernel as Kernel>::Args<'a>;
}
