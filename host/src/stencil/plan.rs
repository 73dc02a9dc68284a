//! Plans a stencil on a device, and runs its steps.

use super::cpu::{self, Given};
use super::gpu::{Checked, Launch};
use super::number::{Number, OPERATION};
use super::operation::Stencil;
use crate::argument::Argument;
use crate::device::Lent;
use crate::{Axis, Boundary, Buffer, Device, DeviceKind, Error};
use gpu_kernels::registry::Cost;
use halo_stencil::{Compiled, overwritten};

/// The steps of a [`Stencil`] on a device.
///
/// On CUDA devices its methods enqueue launches and do not wait. They do not allocate on any
/// device.
#[derive(Debug)]
pub struct Plan<U, T: Number, const D: usize, const INPUTS: usize, const OUTPUTS: usize> {
    stencil: Stencil<U, T, D, INPUTS, OUTPUTS>,
    device: Device,
    by: By<T, INPUTS>,
}

#[derive(Debug)]
enum By<T, const INPUTS: usize> {
    Cpu(Box<cpu::Passes<T, INPUTS>>),
    Kernel(Launch<T, INPUTS>),
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize>
    Stencil<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    /// A plan for `device`.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOverflow`] for a grid that is too large for the kernels' indices,
    /// [`Error::HostOutOfMemory`].
    pub fn plan(&self, device: &Device) -> Result<Plan<U, T, D, INPUTS, OUTPUTS>, Error> {
        let blocks = self.blocks(device.properties().multiprocessors)?;
        let layout = self.layout(blocks.segment);
        let by = match device.kind() {
            DeviceKind::Cpu => {
                let passes = cpu::Passes::new(layout, self.all_ends(), cpu::Limits::default())?;
                passes.reserve::<U, OUTPUTS>(1)?;
                By::Cpu(Box::new(passes))
            }
            _ => By::Kernel(Launch::new(layout, blocks)),
        };
        Ok(Plan {
            stencil: *self,
            device: device.clone(),
            by,
        })
    }

    /// Computes one step on `device` from fields in host memory and returns the outputs.
    ///
    /// # Errors
    ///
    /// As for [`plan`](Self::plan) and [`Plan::step`].
    pub fn step_of(
        &self,
        device: &Device,
        inputs: [&[T]; INPUTS],
    ) -> Result<[Vec<T>; OUTPUTS], Error> {
        let plan = self.plan(device)?;
        let mut lent = Vec::with_capacity(INPUTS);
        let mut made = Vec::with_capacity(OUTPUTS);
        for (field, input) in inputs.into_iter().enumerate() {
            if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() {
                made.push(device.upload(input)?);
                lent.push(None);
            } else {
                lent.push(Some(Lent::new(device, input)?));
            }
        }
        while made.len() < OUTPUTS {
            made.push(device.zeros(self.points())?);
        }
        let inputs = std::array::from_fn(|field| lent[field].as_ref().map(Lent::as_buffer));
        plan.pass(1, &[], inputs, all_of(&mut made))?;
        let mut results = Vec::with_capacity(OUTPUTS);
        for field in made {
            results.push(field.into_vec()?);
        }
        let mut results = results.into_iter();
        Ok(std::array::from_fn(|_| results.next().unwrap_or_default()))
    }
}

/// The first `N` of at least `N` buffers, mutable.
pub(super) fn all_of<T: Number, const N: usize>(buffers: &mut [Buffer<T>]) -> [&mut Buffer<T>; N] {
    let mut buffers = buffers.iter_mut();
    std::array::from_fn(|_| match buffers.next() {
        Some(buffer) => buffer,
        None => unreachable!("there are as many fields as the update has"),
    })
}

impl<U, T, const D: usize, const INPUTS: usize, const OUTPUTS: usize> Plan<U, T, D, INPUTS, OUTPUTS>
where
    T: Number,
    U: Compiled<T, INPUTS, OUTPUTS>,
{
    /// The description of the computation.
    #[must_use]
    pub const fn stencil(&self) -> &Stencil<U, T, D, INPUTS, OUTPUTS> {
        &self.stencil
    }

    /// The device of the plan.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// Like [`Stencil::cost`].
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.stencil.cost()
    }

    /// Replaces the parameters, for example before each step if they change with time.
    ///
    /// # Errors
    ///
    /// As for [`Stencil::with_update`].
    pub fn set_update(&mut self, update: U) -> Result<(), Error> {
        self.stencil = self.stencil.with_update(update)?;
        Ok(())
    }

    /// Replaces the boundaries of one field at the first and the last point of an axis, for example
    /// before each step if they change with time.
    ///
    /// # Errors
    ///
    /// As for [`Stencil::with_ends`], and [`Error::HostOutOfMemory`]; the boundaries are then
    /// unchanged.
    pub fn set_ends(&mut self, field: usize, axis: Axis, ends: [Boundary; 2]) -> Result<(), Error> {
        let stencil = self.stencil.with_ends(field, axis, ends)?;
        let blocks = stencil.blocks(self.device.properties().multiprocessors)?;
        let layout = stencil.layout(blocks.segment);
        match &mut self.by {
            By::Kernel(launch) => *launch = Launch::new(layout, blocks),
            By::Cpu(passes) => passes.set_ends(layout, stencil.all_ends())?,
        }
        self.stencil = stencil;
        Ok(())
    }

    /// Takes one step: applies the update to `inputs` at all points and writes `outputs`. This
    /// method does not compile for an update that is
    /// [`OVER_PAST`](halo_stencil::PointUpdate::OVER_PAST): such an update has
    /// [`step_over`](Self::step_over).
    ///
    /// An output that is also an input does not compile:
    ///
    /// ```compile_fail,E0502
    /// # use halo_gpu::heat3d::Heat3d;
    /// # use halo_gpu::{Device, Grid3, Shape3};
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// # let device = Device::cpu();
    /// # let heat = Heat3d::new(Grid3::new(Shape3::new(4, 1, 1), [1.0; 3])?);
    /// let mut u = device.upload(&[6.0_f32, 0.0, 0.0, 0.0])?;
    /// heat.plan(&device)?.step([&u], [&mut u])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and [`Error::DeviceMismatch`] for
    /// buffers that do not fit; the errors of a launch.
    pub fn step(
        &self,
        inputs: [&Buffer<T>; INPUTS],
        outputs: [&mut Buffer<T>; OUTPUTS],
    ) -> Result<(), Error> {
        const {
            assert!(
                !U::OVER_PAST,
                "the outputs of this update are written over its past fields: use step_over"
            );
        }
        self.pass(1, &[], inputs.map(Some), outputs)
    }

    /// Like [`step`](Self::step), for an update that is
    /// [`OVER_PAST`](halo_stencil::PointUpdate::OVER_PAST): writes the outputs over the past
    /// fields. `inputs` are the others: the present fields and the coefficients.
    ///
    /// ```
    /// use halo_gpu::wave3d::Wave3d;
    /// use halo_gpu::{Device, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::cpu();
    /// let plan = Wave3d::new(Grid3::new(Shape3::new(5, 1, 1), [1.0; 3])?, 2)?.plan(&device)?;
    /// let courant = device.upload(&[0.25_f64; 5])?;
    /// let mut now = device.upload(&[0.0, 0.0, 1.0, 0.0, 0.0])?;
    /// let mut past = device.upload(&[0.0, 0.0, 1.0, 0.0, 0.0])?;
    /// plan.step_over([&now, &courant], [&mut past])?;
    /// assert_eq!(past.to_vec()?, [0.0, 0.25, 0.5, 0.25, 0.0]);
    /// // In the next step the present field becomes the past one.
    /// plan.step_over([&past, &courant], [&mut now])?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`step`](Self::step).
    pub fn step_over<const OTHERS: usize>(
        &self,
        inputs: [&Buffer<T>; OTHERS],
        past: [&mut Buffer<T>; OUTPUTS],
    ) -> Result<(), Error> {
        const {
            assert!(
                U::OVER_PAST,
                "the outputs of this update are not written over its past fields: use step"
            );
            assert!(
                OTHERS + OUTPUTS == INPUTS,
                "the inputs are the present fields and the coefficients"
            );
        }
        let mut inputs = inputs.into_iter();
        let inputs =
            std::array::from_fn(|field| match overwritten::<T, U, INPUTS, OUTPUTS>(field) {
                None => inputs.next(),
                Some(_) => None,
            });
        self.pass(1, &[], inputs, past)
    }

    /// The number of steps, of the remaining `steps`, that the next [`pass`](Self::pass) may take.
    pub(super) fn depth(&self, steps: usize) -> usize {
        match &self.by {
            By::Kernel(_) => 1,
            By::Cpu(passes) => passes.depth::<U, OUTPUTS>(steps),
        }
    }

    /// Allocates the scratch memory for passes of several steps.
    pub(super) fn reserve(&self) -> Result<(), Error> {
        match &self.by {
            By::Kernel(_) => Ok(()),
            By::Cpu(passes) => passes.reserve::<U, OUTPUTS>(usize::MAX),
        }
    }

    /// Like [`step`](Self::step), but takes `depth` steps, where `depth` comes from
    /// [`depth`](Self::depth); the `given` points have their values after all steps but the last.
    /// An input is `None` if and only if an output is written over it.
    pub(super) fn pass(
        &self,
        depth: usize,
        given: &[Given<'_, T>],
        inputs: [Option<&Buffer<T>>; INPUTS],
        outputs: [&mut Buffer<T>; OUTPUTS],
    ) -> Result<(), Error> {
        let shape = self.stencil.shape();
        let fits = |name, field, buffer: &Buffer<T>| {
            let argument = Argument::new(OPERATION, name).numbered(field);
            buffer.require_shape(argument, shape)?;
            self.device.require(argument, buffer)
        };
        for (field, input) in inputs.iter().enumerate() {
            if let Some(input) = input {
                fits("input", field, input)?;
            }
        }
        let name = if U::OVER_PAST { "past field" } else { "output" };
        for (field, output) in outputs.iter().enumerate() {
            fits(name, field, output)?;
        }
        match &self.by {
            By::Kernel(launch) => {
                let fields = Checked { inputs, outputs };
                launch.step(&self.device, self.stencil.update().to_owned(), fields)
            }
            By::Cpu(passes) => {
                let inputs = inputs.map(|input| match input.map(Buffer::as_host_slice) {
                    None => &[],
                    Some(Some(values)) => values,
                    Some(None) => unreachable!("buffers of the CPU device are host memory"),
                });
                let outputs = outputs.map(|output| match output.as_host_mut_slice() {
                    Some(values) => values,
                    None => unreachable!("buffers of the CPU device are host memory"),
                });
                let update = *self.stencil.update();
                self.stencil.pass()(passes, update, depth, given, inputs, outputs)
            }
        }
    }
}
