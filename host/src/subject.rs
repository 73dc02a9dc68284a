//! The interface through which tests and benchmarks run a family's kernels.

use crate::{Axis, Boundary, Buffer, Device, DeviceKind, Element, Error, Grid3, Shape3};
pub use gpu_kernels::registry::{Entry, Problem, Role, Scalar as ScalarType};
use std::any::Any;
use std::fmt;

/// Host values of a type that only the family knows.
pub trait Values: Send + Sync {
    /// The number of values.
    fn len(&self) -> usize;
    /// Whether it has no values.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// A copy in the memory of `device`.
    ///
    /// # Errors
    ///
    /// As for [`Device::upload`].
    fn upload(&self, device: &Device) -> Result<Box<dyn Memory>, Error>;
    /// All values but the last.
    fn shortened(&self) -> Box<dyn Values>;
    /// The first difference in bits from a buffer of the same type: its index, and both values.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::to_vec`].
    fn first_difference(&self, memory: &dyn Memory) -> Result<Option<String>, Error>;
}

/// A [`Buffer`] of a type that only the family knows.
pub trait Memory: Send {
    /// The buffer.
    fn as_any(&self) -> &dyn Any;
    /// The buffer, mutable.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Element> Memory for Buffer<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl<T: Element + fmt::Debug> Values for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn upload(&self, device: &Device) -> Result<Box<dyn Memory>, Error> {
        Ok(Box::new(device.upload(self)?))
    }

    fn shortened(&self) -> Box<dyn Values> {
        Box::new(self[..self.len().saturating_sub(1)].to_vec())
    }

    fn first_difference(&self, memory: &dyn Memory) -> Result<Option<String>, Error> {
        let got = buffer::<T>(memory).to_vec()?;
        if got.len() != self.len() {
            return Ok(Some(format!(
                "{} elements instead of {}",
                got.len(),
                self.len()
            )));
        }
        let differs =
            |index: &usize| bytemuck::bytes_of(&got[*index]) != bytemuck::bytes_of(&self[*index]);
        let count = (0..got.len()).filter(differs).count();
        Ok((0..got.len()).find(differs).map(|first| {
            format!(
                "{count} of {} elements differ; number {first} is {:?} instead of {:?}",
                got.len(),
                got[first],
                self[first]
            )
        }))
    }
}

/// Two grids of the problem's points, with spacings from 0.5 to 2.5: a periodic one, and one with
/// ends of every other kind.
///
/// # Errors
///
/// As for [`Grid3::new`].
pub(crate) fn periodic_and_walled(
    problem: &Problem,
    numbers: &mut Random<'_>,
) -> Result<[Grid3; 2], Error> {
    let [nx, ny, nz] = problem.extents;
    let spacing = [(); 3].map(|()| 1.5 + numbers());
    let periodic = Grid3::new(Shape3::new(nx, ny, nz), spacing)?;
    let value = Boundary::Dirichlet(numbers());
    let walled = periodic
        .with_ends(Axis::X, [Boundary::Neumann, value])?
        .with_ends(Axis::Y, [value, Boundary::NeumannHalfway])?
        .with_ends(Axis::Z, [Boundary::OneSided, Boundary::Neumann])?;
    Ok([periodic, walled])
}

/// The buffer behind `memory`.
///
/// # Panics
///
/// If the buffer has another type. A family only gets back the buffers it made.
#[must_use]
pub fn buffer<T: Element>(memory: &dyn Memory) -> &Buffer<T> {
    match memory.as_any().downcast_ref() {
        Some(buffer) => buffer,
        None => unreachable!("a family knows the types of its arguments"),
    }
}

/// The buffer behind `memory`, mutable.
///
/// # Panics
///
/// As for [`buffer`].
#[must_use]
pub fn buffer_mut<T: Element>(memory: &mut dyn Memory) -> &mut Buffer<T> {
    match memory.as_any_mut().downcast_mut() {
        Some(buffer) => buffer,
        None => unreachable!("a family knows the types of its arguments"),
    }
}

/// The device to plan a kernel on: the first of the buffers' devices that runs kernels, or else the
/// first.
pub fn launching<'a>(devices: impl IntoIterator<Item = &'a Device>) -> &'a Device {
    let mut found: Option<&Device> = None;
    for device in devices {
        if found.is_none_or(|it| it.kind() == DeviceKind::Cpu) {
            found = Some(device);
        }
    }
    match found {
        Some(device) => device,
        None => unreachable!("a kernel has buffers"),
    }
}

/// The outcome of a comparison: nothing, or why it failed.
pub type Verdict = Result<(), String>;

/// Checks the outputs.
pub type Judge = Box<dyn Fn(&[Box<dyn Memory>]) -> Result<Verdict, Error> + Send + Sync>;

/// The result that a launch should leave in the outputs.
pub enum Expected {
    /// These bits, in every output; elements that the kernel does not write must keep their values.
    Bits(Vec<Box<dyn Values>>),
    /// Any result that the function accepts.
    Within(Judge),
}

impl fmt::Debug for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bits(_) => "Bits",
            Self::Within(_) => "Within",
        })
    }
}

impl Expected {
    /// Compares the outputs with the expected result.
    ///
    /// # Errors
    ///
    /// As for [`Buffer::to_vec`].
    pub fn check(&self, outputs: &[Box<dyn Memory>]) -> Result<Verdict, Error> {
        match self {
            Self::Within(check) => check(outputs),
            Self::Bits(expected) => {
                assert_eq!(expected.len(), outputs.len(), "one for each output");
                for (number, (expected, output)) in expected.iter().zip(outputs).enumerate() {
                    if let Some(what) = expected.first_difference(output.as_ref())? {
                        return Ok(Err(format!("output {number}: {what}")));
                    }
                }
                Ok(Ok(()))
            }
        }
    }
}

/// A launch on inputs and outputs.
pub type Launch =
    Box<dyn Fn(&[Box<dyn Memory>], &mut [Box<dyn Memory>]) -> Result<(), Error> + Send + Sync>;

/// One launch of one kernel.
pub struct Case {
    /// The contents of the inputs.
    pub inputs: Vec<Box<dyn Values>>,
    /// The contents of the outputs before the launch: values that the kernel cannot compute.
    pub outputs: Vec<Box<dyn Values>>,
    /// The launch; it checks the buffers.
    pub launch: Launch,
    /// The expected result.
    pub expected: Expected,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = |all: &[Box<dyn Values>]| all.iter().map(|it| it.len()).collect::<Vec<_>>();
        f.debug_struct("Case")
            .field("inputs", &lengths(&self.inputs))
            .field("outputs", &lengths(&self.outputs))
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

/// A source of random numbers from -1 to 1, supplied by the caller.
pub type Random<'a> = dyn FnMut() -> f64 + 'a;

/// `len` random values.
pub fn random<T>(random: &mut Random<'_>, len: usize, convert: impl Fn(f64) -> T) -> Vec<T> {
    (0..len).map(|_| convert(random())).collect()
}

/// A family, as seen by code that iterates over the table of kernels.
pub trait Subject: Sync {
    /// The family's name.
    fn family(&self) -> &'static str;

    /// Small problems that the kernel takes: the smallest ones, sizes around multiples of its
    /// tiles, and irregular sizes.
    fn problems(&self, entry: &Entry) -> Vec<Problem>;

    /// Whether the kernel's blocks wait for each other, so that the device must hold all of them at
    /// the same time.
    fn waits_for_blocks(&self, _entry: &Entry) -> bool {
        false
    }

    /// Whether the caller may choose the length of this argument freely, so that no other length
    /// depends on it. Arguments are numbered from 0, the inputs before the outputs.
    fn takes_any_length(&self, _entry: &Entry, _argument: usize) -> bool {
        false
    }

    /// The kernel on random data, in all its uses: it may serve several types whose bits it treats
    /// alike, or several operations that an argument selects.
    ///
    /// # Errors
    ///
    /// The errors of a plan for this problem, also for a problem that the kernel does not take.
    fn cases(
        &self,
        entry: &Entry,
        problem: &Problem,
        random: &mut Random<'_>,
    ) -> Result<Vec<Case>, Error>;
}
