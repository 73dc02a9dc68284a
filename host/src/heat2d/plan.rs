//! Iterations on a device, with the memory that they need.

use super::blocked::Setup;
use super::check::{self, Checked, invalid};
use super::cpu::Kept;
use super::ends::all_dirichlet;
use super::gpu::{self, Variant};
use super::heat::{Heat2d, STABLE_RATIO};
use crate::scalar::Scalar;
use crate::{AddressMode, Buffer, Device, DeviceKind, Error, Field2, Shape2, Texture2d};

/// Plans, and the twins of their calls on fields of the host.
impl Heat2d {
    /// A plan for `device`, by the kernels that suit the plate, or on the CPU by the port.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] for a time step that is too short for `T` to hold
    /// α Δt / h²; [`Error::OutOfMemory`] and [`Error::HostOutOfMemory`] for the workspace;
    /// [`Error::Driver`].
    pub fn plan<T: Scalar>(&self, device: &Device) -> Result<Plan<T>, Error> {
        Plan::new(*self, device, None)
    }

    /// A plan for `device`, by the kernel that is named.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, Variant, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// let heat = Heat2d::dirichlet(Shape2::new(5, 3))?;
    /// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
    /// for variant in Variant::TEXTBOOK {
    ///     let mut plate = initial.to_device(&device)?;
    ///     heat.plan_with(&device, variant)?.iterate(&mut plate, 2)?;
    ///     assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0], "{variant}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan); [`Error::InvalidParameter`] for a kernel that is not there in
    /// `T`, that makes no such iterations, or that knows no Neumann boundary where there is
    /// one; [`Error::InvalidSize`] if `variant` is [`Variant::Texture`] and the plate exceeds
    /// what the device can bind to a texture; [`Error::NotLaunchable`] on the CPU, which runs
    /// no kernels.
    pub fn plan_with<T: Scalar>(
        &self,
        device: &Device,
        variant: Variant,
    ) -> Result<Plan<T>, Error> {
        Plan::new(*self, device, Some(variant))
    }

    /// The plate `initial` after `count` iterations, computed on `device`.
    ///
    /// ```
    /// use halo_gpu::heat2d::{Heat2d, problem};
    /// use halo_gpu::{Device, Shape2};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let initial = problem::hot_left_wall::<f64>(Shape2::new(5, 3))?;
    /// let plate = Heat2d::dirichlet(initial.shape())?.iterate_of(&Device::emulator(), &initial, 2)?;
    /// assert_eq!(plate.as_slice()[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan) and [`Plan::iterate`].
    pub fn iterate_of<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
        count: usize,
    ) -> Result<Field2<T>, Error> {
        let plate = self.iterated(device, initial, count)?;
        Field2::from_vec(self.shape(), plate.into_vec()?)
    }

    /// As [`iterate_of`](Self::iterate_of), into `result`.
    ///
    /// # Errors
    ///
    /// As [`iterate_of`](Self::iterate_of), and [`Error::ShapeMismatch`] for a `result` of
    /// another shape.
    pub fn iterate_of_into<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
        count: usize,
        result: &mut Field2<T>,
    ) -> Result<(), Error> {
        check::shape("the initial plate", self.shape(), initial.shape())?;
        check::shape("the result", self.shape(), result.shape())?;
        let plate = self.iterated(device, initial, count)?;
        plate.copy_to_slice(result.as_mut_slice())
    }

    fn iterated<T: Scalar>(
        &self,
        device: &Device,
        initial: &Field2<T>,
        count: usize,
    ) -> Result<Buffer<T>, Error> {
        check::shape("the initial plate", self.shape(), initial.shape())?;
        let mut plan = self.plan(device)?;
        let mut plate = device.upload(initial.as_slice())?;
        plan.iterate(&mut plate, count)?;
        Ok(plate)
    }

    /// Refuses a kernel that does not make these iterations in `T` on `device`, or its form with a
    /// source.
    pub(super) fn check_launchable<T: Scalar>(
        &self,
        variant: Variant,
        heated: bool,
        device: &Device,
    ) -> Result<(), Error> {
        let refused = |given, required| Err(invalid("the kernel", given, required));
        let kernel = match heated {
            true => variant.heated_kernel::<T>(),
            false => variant.kernel::<T>(),
        };
        let Some(kernel) = kernel else {
            let required = "a kernel other than the textbook's, which are only in f32";
            return refused(format!("{variant} for {}", T::NAME), required.to_owned());
        };
        if self.step().is_some() != (variant == Variant::Step) {
            let required = match self.step() {
                Some(_) => format!("{}, because iterations are steps in time", Variant::Step),
                None => "a kernel of Jacobi iterations, because there is no time step".to_owned(),
            };
            return refused(variant.to_string(), required);
        }
        if !all_dirichlet(self.grid()) && !takes_any_plate(variant) {
            let required = format!("{}, because a boundary is Neumann", Variant::March);
            return refused(variant.to_string(), required);
        }
        match device.kind() {
            DeviceKind::Cpu => Err(Error::NotLaunchable { kernel }),
            DeviceKind::Emulator | DeviceKind::Cuda => Ok(()),
        }
    }
}

/// Whether a kernel knows sources and Neumann boundaries.
fn takes_any_plate(variant: Variant) -> bool {
    matches!(variant, Variant::March | Variant::Step)
}

/// Iterations on plates of one shape on one device, with the workspace that they need.
///
/// On CUDA devices calls queue launches and copies within the device, and do not wait for them.
/// They allocate nothing. All plans of the same iterations give the same bits.
///
/// ```
/// use halo_gpu::heat2d::{Heat2d, problem};
/// use halo_gpu::{Device, Shape2};
///
/// # fn main() -> Result<(), halo_gpu::Error> {
/// let heat = Heat2d::dirichlet(Shape2::new(5, 3))?;
/// let initial = problem::hot_left_wall::<f32>(heat.shape())?;
/// for device in [Device::cpu(), Device::emulator()] {
///     let mut plan = heat.plan(&device)?;
///     let mut plate = initial.to_device(&device)?;
///     plan.iterate(&mut plate, 2)?;
///     assert_eq!(plate.to_vec()?[5..10], [1.0, 0.25, 0.0625, 0.0, 0.0]);
///
///     // With a source, h² f at each point.
///     let mut plan = heat.plan(&device)?.with_source(device.alloc_filled(15, 2.0)?)?;
///     let old = device.alloc_filled(15, 1.0)?;
///     let mut new = old.try_clone()?; // which has the boundary's temperatures
///     plan.iterate_into(&old, &mut new)?;
///     assert_eq!(new.to_vec()?[5..10], [1.0, 1.5, 1.5, 1.5, 1.0]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Plan<T: Scalar> {
    heat: Heat2d,
    device: Device,
    /// The kernel that was asked for.
    asked: Option<Variant>,
    source: Option<Buffer<T>>,
    workspace: Workspace<T>,
}

/// What iterations work in.
#[derive(Debug)]
pub(super) enum Workspace<T: Scalar> {
    Port {
        next: Buffer<T>,
        kept: Kept<T>,
    },
    Buffers {
        next: Buffer<T>,
        rims: gpu::Rims,
    },
    /// A plate and the one that it becomes, in `f32`: no other type has a kernel that reads
    /// textures.
    Textures {
        current: Box<Texture2d>,
        next: Box<Texture2d>,
    },
}

impl<T: Scalar> Plan<T> {
    fn new(heat: Heat2d, device: &Device, asked: Option<Variant>) -> Result<Self, Error> {
        if let Some(step) = heat.step()
            && !T::nearest(step.ratio).is_normal_number()
        {
            let required = format!(
                "such that diffusivity · step / spacing², which is {:e}, is a normal number of {}",
                step.ratio,
                T::NAME
            );
            return Err(invalid("the time step", step.length.to_string(), required));
        }
        if let Some(variant) = asked {
            heat.check_launchable::<T>(variant, false, device)?;
        }
        let shape = heat.shape();
        let next = || device.zeros(shape.points()?)?.shaped(shape);
        let workspace = match (device.kind(), asked) {
            (DeviceKind::Cpu, _) => Workspace::Port {
                next: next()?,
                kept: T::kept(setup(&heat, None))?,
            },
            (_, Some(Variant::Texture)) => Workspace::Textures {
                current: Box::new(texture(shape, device)?),
                next: Box::new(texture(shape, device)?),
            },
            (_, asked) => Workspace::Buffers {
                next: next()?,
                rims: match kernel(&heat, asked, None::<&Buffer<T>>, 2) {
                    Variant::Resident => T::rims(device, shape)?,
                    _ => None,
                },
            },
        };
        Ok(Self {
            heat,
            device: device.clone(),
            asked,
            source: None,
            workspace,
        })
    }

    /// The same with a source of heat at each point, in place of the one it had.
    ///
    /// `source` is h² f, in the units of the temperature: h is the distance of two points, and f,
    /// in -∇²u = f, the power per volume over the conductivity. For [steps in
    /// time](Heat2d::with_time_step) it is h² q / α, with q the warming in temperature per time and
    /// α the diffusivity. Its values at points with a fixed temperature are not used. Its elements
    /// may be any number, like temperatures.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and [`Error::DeviceMismatch`] for a
    /// buffer that does not fit; [`Error::InvalidParameter`] if the plan is one with a kernel
    /// that knows no source.
    pub fn with_source(mut self, source: Buffer<T>) -> Result<Self, Error> {
        check::fit(self.heat.shape(), &self.device, "source", &source)?;
        self.check_takes_source()?;
        self.source = Some(source);
        Ok(self)
    }

    /// Refuses a source for a kernel that knows none.
    pub(super) fn check_takes_source(&self) -> Result<(), Error> {
        match self.asked {
            Some(variant) if !takes_any_plate(variant) => {
                let required = format!("{}, because there is a source", Variant::March);
                Err(invalid("the kernel", variant.to_string(), required))
            }
            _ => Ok(()),
        }
    }

    /// The source, to be changed between calls.
    #[must_use]
    pub const fn source_mut(&mut self) -> Option<&mut Buffer<T>> {
        self.source.as_mut()
    }

    /// The source.
    pub(super) const fn source(&self) -> Option<&Buffer<T>> {
        self.source.as_ref()
    }

    /// The description of the computation.
    #[must_use]
    pub const fn heat(&self) -> &Heat2d {
        &self.heat
    }

    /// The device.
    #[must_use]
    pub const fn device(&self) -> &Device {
        &self.device
    }

    /// The kernel of many iterations; `None` on the CPU, where the port makes them. Where none
    /// was named, a single iteration on a plate with Dirichlet boundaries alone and without a
    /// source is [`Variant::March`]'s.
    #[must_use]
    pub fn variant(&self) -> Option<Variant> {
        match self.workspace {
            Workspace::Port { .. } => None,
            _ => Some(self.kernel(2)),
        }
    }

    /// The kernel for this number of iterations, on a device that runs kernels.
    fn kernel(&self, count: usize) -> Variant {
        kernel(&self.heat, self.asked, self.source.as_ref(), count)
    }

    /// `count` iterations on `plate`.
    ///
    /// A copy of the plate within the device comes before them. On devices that run kernels the
    /// buffer's memory stays where it is.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::ShapeMismatch`] and [`Error::DeviceMismatch`] for a
    /// buffer that does not fit, and what a launch can fail with; what the plate holds is then
    /// unspecified.
    pub fn iterate(&mut self, plate: &mut Buffer<T>, count: usize) -> Result<(), Error> {
        check::fit(self.heat.shape(), &self.device, "plate", plate)?;
        if count == 0 {
            return Ok(());
        }
        match &mut self.workspace {
            Workspace::Port { next, .. } => next.copy_from(plate)?,
            Workspace::Textures { current, next } => {
                current.copy_from(plate)?;
                next.copy_from(plate)?;
            }
            Workspace::Buffers { next, .. } => {
                next.copy_from(plate)?;
                return self.iterate_in_place(plate, count);
            }
        }
        let mut left = count;
        while left > 0 {
            left -= self.advance(plate, left)?;
        }
        match &self.workspace {
            Workspace::Textures { current, .. } => current.copy_to(plate),
            _ => Ok(()),
        }
    }

    /// `count` iterations by kernels on `plate`; `next` is a copy of it.
    fn iterate_in_place(&mut self, plate: &mut Buffer<T>, count: usize) -> Result<(), Error> {
        // Both are equal, so the first launch may read either. It reads the one with which the last
        // launch writes the plate.
        let mut from_plate = self.launches(count)?.is_multiple_of(2);
        let (heat, asked, source) = (&self.heat, self.asked, self.source.as_ref());
        let Workspace::Buffers { next, rims } = &mut self.workspace else {
            unreachable!("kernels that take buffers");
        };
        let mut left = count;
        while left > 0 {
            let (old, new) = match from_plate {
                true => (&*plate, &mut *next),
                false => (&*next, &mut *plate),
            };
            let variant = kernel(heat, asked, source, left);
            left -= launch(heat, variant, source, old, new, left, rims)?;
            from_plate = !from_plate;
        }
        if from_plate {
            Ok(())
        } else {
            plate.copy_from(next)
        }
    }

    /// The launches that this number of iterations takes.
    fn launches(&self, count: usize) -> Result<usize, Error> {
        let (mut launches, mut left) = (0, count);
        while left > 0 {
            let variant = self.kernel(left);
            let shape = self.heat.shape();
            let each = T::iterations_of_launch(variant, &self.device, shape, left)?;
            // All that are as long.
            launches += left / each;
            left %= each;
        }
        Ok(launches)
    }

    /// One iteration, from `old` into the unknowns of `new`.
    ///
    /// The points of `new` that keep their temperature are left as they are: both buffers get
    /// them before the first iteration.
    ///
    /// # Errors
    ///
    /// As [`iterate`](Self::iterate).
    pub fn iterate_into(&mut self, old: &Buffer<T>, new: &mut Buffer<T>) -> Result<(), Error> {
        let shape = self.heat.shape();
        check::fit(shape, &self.device, "old", old)?;
        check::fit(shape, &self.device, "new", new)?;
        let variant = kernel(&self.heat, self.asked, self.source.as_ref(), 1);
        match &mut self.workspace {
            Workspace::Port { .. } => {
                let setup = setup(&self.heat, self.source.as_ref());
                let (Some(old), Some(new)) = (old.as_host_slice(), new.as_host_mut_slice()) else {
                    unreachable!("buffers of the CPU device are host memory");
                };
                T::iteration(setup, old, new);
                Ok(())
            }
            Workspace::Buffers { rims, .. } => {
                let source = self.source.as_ref();
                launch(&self.heat, variant, source, old, new, 1, rims).map(drop)
            }
            Workspace::Textures { current, next } => {
                current.copy_from(old)?;
                next.copy_from(new)?;
                gpu::launch_texture(shape, current, next)?;
                next.copy_to(new)
            }
        }
    }

    /// At least one and at most `count` iterations (at least 1) on a plate whose boundary
    /// temperatures the workspace has; returns their number. The plate is `current`, whose memory
    /// is exchanged with the workspace's, or the first texture.
    pub(super) fn advance(
        &mut self,
        current: &mut Buffer<T>,
        count: usize,
    ) -> Result<usize, Error> {
        let (heat, source) = (&self.heat, self.source.as_ref());
        match &mut self.workspace {
            Workspace::Port { next, kept } => {
                let (Some(old), Some(new)) =
                    (current.as_host_mut_slice(), next.as_host_mut_slice())
                else {
                    unreachable!("buffers of the CPU device that are written are host memory");
                };
                if T::iterations(setup(heat, source), kept, old, new, count)? {
                    current.give_way_to(next);
                }
                Ok(count)
            }
            Workspace::Buffers { next, rims } => {
                let variant = kernel(heat, self.asked, source, count);
                let done = launch(heat, variant, source, current, next, count, rims)?;
                current.give_way_to(next);
                Ok(done)
            }
            Workspace::Textures { current, next } => {
                gpu::launch_texture(heat.shape(), current, next)?;
                current.give_way_to(next);
                Ok(1)
            }
        }
    }

    /// What iterations work in.
    pub(super) const fn workspace(&self) -> &Workspace<T> {
        &self.workspace
    }

    /// Has the workspace begin with the temperatures of a plate that is to be
    /// [advanced](Self::advance).
    pub(super) fn begin(&mut self, initial: &Buffer<T>) -> Result<(), Error> {
        match &mut self.workspace {
            Workspace::Port { next, .. } | Workspace::Buffers { next, .. } => {
                next.copy_from(initial)
            }
            Workspace::Textures { current, next } => {
                current.copy_from(initial)?;
                next.copy_from(initial)
            }
        }
    }
}

/// The kernel for this number of iterations: the one that was asked for, or the one that suits.
fn kernel<T: Scalar>(
    heat: &Heat2d,
    asked: Option<Variant>,
    source: Option<&Buffer<T>>,
    count: usize,
) -> Variant {
    match asked {
        Some(variant) => variant,
        None if heat.step().is_some() => Variant::Step,
        None if count == 1 || !all_dirichlet(heat.grid()) || source.is_some() => {
            gpu::SINGLE_ITERATION
        }
        None => gpu::MANY_ITERATIONS,
    }
}

/// Launches a kernel that takes buffers: at least one iteration and at most `count` (at least 1).
/// Returns their number.
pub(super) fn launch<T: Scalar>(
    heat: &Heat2d,
    variant: Variant,
    source: Option<&Buffer<T>>,
    old: &Buffer<T>,
    new: &mut Buffer<T>,
    count: usize,
    rims: &mut gpu::Rims,
) -> Result<usize, Error> {
    let plates = Checked::new(heat.grid(), source, old, new)?;
    match variant {
        Variant::Step => {
            let ratio = T::nearest(heat.step().map_or(STABLE_RATIO, |step| step.ratio));
            T::launch_step(ratio, plates)
        }
        _ => T::launch_iterations(variant, plates, count, rims),
    }
}

/// What the port is told, with a source on the CPU device that has been checked.
fn setup<'a, T: Scalar>(heat: &Heat2d, source: Option<&'a Buffer<T>>) -> Setup<'a, T> {
    let host = |source: &'a Buffer<T>| match source.as_host_slice() {
        Some(source) => source,
        None => unreachable!("buffers of the CPU device are host memory"),
    };
    Setup {
        grid: *heat.grid(),
        source: source.map(host),
        ratio: heat.step().map(|step| T::nearest(step.ratio)),
    }
}

/// No fetch lies outside, so how that is read is moot.
fn texture(shape: Shape2, device: &Device) -> Result<Texture2d, Error> {
    Texture2d::new(device, shape.nx, shape.ny, AddressMode::Clamp)
}
