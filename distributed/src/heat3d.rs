//! Heat in a body that several ranks share.

use crate::checkpoint::Checkpoint;
use crate::{Communicator, Decomposition, Error, Stored, stencil};
use halo_gpu::Device;
use halo_gpu::heat3d::{Heat3d, Kernels};
use std::fmt;

/// A body whose points several ranks share: [`halo_gpu::heat3d::Body`] over several devices, with
/// the bits of one.
pub type Body<'a, T> = stencil::Run<'a, <T as Kernels>::Step, T, 3, 1, 1>;

/// A body with the temperatures that `initial` returns for the points of the whole grid. With
/// `width` planes of ghost points there is an exchange every `width` steps.
///
/// ```
/// use halo_distributed::{Decomposition, Error, heat3d};
/// use halo_gpu::heat3d::Heat3d;
/// use halo_gpu::{Boundary, Device, Grid3, Shape3};
///
/// # fn main() -> Result<(), Error> {
/// // A cube between cold walls, on two ranks.
/// let grid = Grid3::new(Shape3::cube(12), [1.0; 3])?.with_boundaries(Boundary::Dirichlet(0.0))?;
/// let heat = Heat3d::new(grid);
/// let warm = halo_distributed::run(2, |communicator| {
///     let cut = Decomposition::slabs([12; 3], 2)?;
///     let device = Device::cpu();
///     let mut cube = heat3d::start(&communicator, &device, &heat, cut, 4, |_| 1.0_f64)?;
///     cube.steps(8)?;
///     cube.at(0, [6, 6, 6])
/// })?;
/// assert!(warm[0] > 0.5 && warm[0] < 1.0 && warm[0] == warm[1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`stencil::Run::new`]; [`Error::Device`] as [`Heat3d::stencil`].
pub fn start<'a, T: Kernels>(
    communicator: &'a Communicator,
    device: &Device,
    heat: &Heat3d,
    decomposition: Decomposition<3>,
    width: usize,
    mut initial: impl FnMut([usize; 3]) -> T,
) -> Result<Body<'a, T>, Error> {
    communicator.agree("the heat", heat)?;
    let stencil = heat.stencil()?;
    stencil::Run::new(
        communicator,
        device,
        stencil,
        decomposition,
        width,
        |_, point| initial(point),
    )
}

/// A body that continues from a checkpoint of [`stencil::Run::save`].
///
/// # Errors
///
/// As [`stencil::Run::restore`]; [`Error::Device`] as [`Heat3d::stencil`].
pub fn restore<'a, T>(
    communicator: &'a Communicator,
    device: &Device,
    heat: &Heat3d,
    decomposition: Decomposition<3>,
    width: usize,
    checkpoint: &Checkpoint,
) -> Result<Body<'a, T>, Error>
where
    T: Kernels<Step: fmt::Debug> + Stored,
{
    let stencil = heat.stencil()?;
    stencil::Run::restore(
        communicator,
        device,
        stencil,
        decomposition,
        width,
        checkpoint,
    )
}
