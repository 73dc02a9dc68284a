//! Waves in space, on a grid that several ranks share.

use crate::checkpoint::Checkpoint;
use crate::{Block, Communicator, Decomposition, Error, Share, Stored, stencil};
use halo_gpu::wave3d::{Kernels, Layer, Wave3d};
use halo_gpu::{Device, Field3, Shape3, allocation};
use std::fmt;

/// A field of waves whose points several ranks share: [`halo_gpu::wave3d::Waves`] over several
/// devices, with the bits of one.
pub type Waves<'a, T> = stencil::Run<'a, <T as Kernels>::Closed, T, 3, 3, 1>;

/// The same with damping layers.
pub type AbsorbedWaves<'a, T> = stencil::Run<'a, <T as Kernels>::Absorbing, T, 3, 4, 1>;

/// The initial state at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<T> {
    /// The field.
    pub now: T,
    /// The field one step earlier. If the field is at rest, this equals `now` to first order in Δt.
    pub before: T,
    /// The velocity of waves.
    pub velocity: T,
}

/// A field with the state that `initial` returns for the points of the whole grid, and steps of
/// length `time_step`. With `width` planes of ghost points, at least 4, there is an exchange every
/// `width / 4` steps.
///
/// ```
/// use halo_distributed::{Decomposition, Error, wave3d};
/// use halo_gpu::wave3d::Wave3d;
/// use halo_gpu::{Boundary, Device, Grid3, Shape3};
///
/// # fn main() -> Result<(), Error> {
/// let grid = Grid3::new(Shape3::new(8, 8, 30), [1.0; 3])?;
/// let wave = Wave3d::new(grid.with_boundaries(Boundary::NeumannHalfway)?, 8)?;
/// let heard = halo_distributed::run(3, |communicator| {
///     let cut = Decomposition::slabs([8, 8, 30], 3)?;
///     let still = |_| wave3d::Point { now: 0.0_f32, before: 0.0, velocity: 1.0 };
///     let device = Device::cpu();
///     let mut waves = wave3d::start(&communicator, &device, &wave, cut, 4, 0.4, still)?;
///     waves.add(0, [4, 4, 3], 1.0)?; // on the first rank
///     waves.steps(50)?;
///     waves.at(0, [4, 4, 20]) // on the last
/// })?;
/// assert!(heard[0].abs() > 1e-3 && heard[0] == heard[2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`stencil::Run::new`]; [`Error::Device`] as [`Wave3d::coefficients`] and [`Wave3d::closed`],
/// with [`Error::Elsewhere`] on ranks whose own points are valid.
pub fn start<'a, T: Kernels>(
    communicator: &'a Communicator,
    device: &Device,
    wave: &Wave3d,
    decomposition: Decomposition<3>,
    width: usize,
    time_step: f64,
    initial: impl FnMut([usize; 3]) -> Point<T>,
) -> Result<Waves<'a, T>, Error> {
    communicator.agree("the waves", &(wave, time_step))?;
    let own = Own::new(communicator, &decomposition, initial)?;
    let courant = wave.coefficients_of_part(time_step, &own.velocity);
    let courant = communicator.together(courant.map_err(Error::from))?;
    let inputs = [own.now, own.before, Share::new(own.block, courant)];
    let stencil = wave.closed()?;
    let value = |field: usize, point| inputs[field][point];
    stencil::Run::new(communicator, device, stencil, decomposition, width, value)
}

/// The same with a damping layer before each open end.
///
/// # Errors
///
/// As [`start`]; [`Error::Device`] as [`Wave3d::absorbing_coefficients`].
#[allow(
    clippy::too_many_arguments,
    reason = "those of `start`, and the layer that differs"
)]
pub fn start_absorbing<'a, T: Kernels>(
    communicator: &'a Communicator,
    device: &Device,
    wave: &Wave3d,
    decomposition: Decomposition<3>,
    width: usize,
    time_step: f64,
    layer: Layer,
    initial: impl FnMut([usize; 3]) -> Point<T>,
) -> Result<AbsorbedWaves<'a, T>, Error> {
    communicator.agree("the waves", &(wave, time_step, layer))?;
    let own = Own::new(communicator, &decomposition, initial)?;
    let start = own.block.start;
    let all = wave.absorbing_coefficients_of_part(time_step, start, &own.velocity, layer);
    let all = communicator.together(all.map_err(Error::from))?;
    let [courant, kept] = all.map(|values| Share::new(own.block, values));
    let inputs = [own.now, own.before, courant, kept];
    let stencil = wave.absorbing()?;
    let value = |field: usize, point| inputs[field][point];
    stencil::Run::new(communicator, device, stencil, decomposition, width, value)
}

/// A field that continues from a checkpoint by [`stencil::Run::save`] of a field from [`start`].
/// The checkpoint contains the velocities and the time step.
///
/// # Errors
///
/// As [`stencil::Run::restore`]; [`Error::Device`] as [`Wave3d::closed`].
pub fn restore<'a, T>(
    communicator: &'a Communicator,
    device: &Device,
    wave: &Wave3d,
    decomposition: Decomposition<3>,
    width: usize,
    checkpoint: &Checkpoint,
) -> Result<Waves<'a, T>, Error>
where
    T: Kernels<Closed: fmt::Debug> + Stored,
{
    let stencil = wave.closed()?;
    stencil::Run::restore(
        communicator,
        device,
        stencil,
        decomposition,
        width,
        checkpoint,
    )
}

/// The same for a field from [`start_absorbing`]. The checkpoint contains its damping layers too.
///
/// # Errors
///
/// As [`restore`].
pub fn restore_absorbing<'a, T>(
    communicator: &'a Communicator,
    device: &Device,
    wave: &Wave3d,
    decomposition: Decomposition<3>,
    width: usize,
    checkpoint: &Checkpoint,
) -> Result<AbsorbedWaves<'a, T>, Error>
where
    T: Kernels<Absorbing: fmt::Debug> + Stored,
{
    let stencil = wave.absorbing()?;
    stencil::Run::restore(
        communicator,
        device,
        stencil,
        decomposition,
        width,
        checkpoint,
    )
}

/// The initial state at a rank's own points.
struct Own<T> {
    block: Block<3>,
    now: Share<T, 3>,
    before: Share<T, 3>,
    velocity: Field3<T>,
}

impl<T: Kernels> Own<T> {
    fn new(
        communicator: &Communicator,
        decomposition: &Decomposition<3>,
        mut initial: impl FnMut([usize; 3]) -> Point<T>,
    ) -> Result<Self, Error> {
        communicator.agree("the decomposition", decomposition)?;
        let block = decomposition.block(communicator.rank())?;
        let ([x, y, z], [nx, ny, nz]) = (block.start, block.extents);
        let mut make = || -> Result<_, Error> {
            let points = block.extents.iter().product();
            let (mut now, mut before) =
                (allocation::reserve(points)?, allocation::reserve(points)?);
            let velocity = Field3::from_fn(Shape3::new(nx, ny, nz), |i, j, k| {
                let point = initial([x + i, y + j, z + k]);
                now.push(point.now);
                before.push(point.before);
                point.velocity
            })?;
            Ok(Self {
                block,
                now: Share::new(block, now),
                before: Share::new(block, before),
                velocity,
            })
        };
        communicator.together(make())
    }
}
