//! Holds points at given values, which may change from step to step.

use super::cpu::Given;
use super::number::{Number, OPERATION};
use crate::elementwise::{Places, put};
use crate::error::require_finite;
use crate::{Buffer, Device, DeviceKind, Error, HostBuffer};
use std::fmt;

/// The most values kept for points whose values change, and the most steps they are kept for.
const MOST_KEPT: usize = 1 << 22;
const MOST_STEPS: usize = 16;

/// The number of steps by which the host runs ahead of a device, so that neither waits for the
/// other.
const AHEAD: usize = 4;

/// The value of a point, from its index among the held points and the number of steps.
type ValueOf<T> = Box<dyn Fn(usize, u64) -> T + Send + Sync>;

/// Points of an output, with their values after each step.
pub(super) struct Held<T: Number> {
    output: usize,
    places: Places,
    /// The values, indexed by the number of steps modulo the length; a single buffer if they never
    /// change.
    slots: Vec<Buffer<T>>,
    changing: Option<Changing<T>>,
}

/// The values that change from step to step.
struct Changing<T: Number> {
    value: ValueOf<T>,
    /// The host memory from which each slot is copied.
    staged: Vec<HostBuffer<T>>,
}

impl<T: Number> Held<T> {
    /// Holds the elements `at`, which must be ascending, at constant values.
    pub(super) fn fixed(
        device: &Device,
        output: usize,
        at: &[usize],
        values: &[T],
    ) -> Result<Self, Error> {
        values.iter().copied().try_for_each(require_value)?;
        Ok(Self {
            output,
            places: Places::new(device, at)?,
            slots: vec![device.upload(values)?],
            changing: None,
        })
    }

    /// Holds the elements `at`, which must be ascending, at the values that `value` returns after
    /// each step.
    pub(super) fn changing(
        device: &Device,
        output: usize,
        at: &[usize],
        value: ValueOf<T>,
    ) -> Result<Self, Error> {
        let steps = match device.kind() {
            // As many as the steps of a pass.
            DeviceKind::Cpu => (MOST_KEPT / at.len().max(1)).clamp(1, MOST_STEPS),
            _ => AHEAD,
        };
        let (mut slots, mut staged) = (Vec::new(), Vec::new());
        for _ in 0..steps {
            slots.push(device.zeros(at.len())?);
            staged.push(device.alloc_host(at.len())?);
        }
        Ok(Self {
            output,
            places: Places::new(device, at)?,
            slots,
            changing: Some(Changing { value, staged }),
        })
    }

    /// The output whose points are held.
    pub(super) const fn output(&self) -> usize {
        self.output
    }

    /// The number of consecutive steps whose values fit at the same time.
    pub(super) fn most_steps(&self) -> usize {
        match self.changing {
            Some(_) => self.slots.len(),
            None => usize::MAX,
        }
    }

    /// Puts the values after step number `step` on the device. Waits only for steps long before it.
    pub(super) fn prepare(&mut self, step: u64) -> Result<(), Error> {
        let slot = self.slot(step);
        let Some(Changing { value, staged }) = &mut self.changing else {
            return Ok(());
        };
        for (number, target) in staged[slot].as_mut_slice()?.iter_mut().enumerate() {
            *target = value(number, step);
            require_value(*target)?;
        }
        self.slots[slot].copy_from_host(&staged[slot])
    }

    /// Writes the values after step number `step` to the output.
    pub(super) fn put(&self, step: u64, output: &mut Buffer<T>) -> Result<(), Error> {
        put(self.slots[self.slot(step)].view(..)?, &self.places, output)
    }

    /// The elements, with their values after each of the `depth` steps after step `taken`, on the
    /// CPU.
    pub(super) fn in_pass(&self, taken: u64, depth: usize) -> Given<'_, T> {
        let after = |step| self.slots[self.slot(step)].as_host_slice();
        let steps = (taken + 1)..=(taken + depth as u64);
        Given {
            output: self.output,
            at: self.places.at().as_host_slice().unwrap_or_default(),
            values: steps.map(|step| after(step).unwrap_or_default()).collect(),
        }
    }

    const fn slot(&self, step: u64) -> usize {
        (step % self.slots.len() as u64) as usize
    }
}

fn require_value<T: Number>(value: T) -> Result<(), Error> {
    require_finite(OPERATION, "the value of a point", value.into())
}

impl<T: Number> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("output", &self.output)
            .field("points", &self.places.len())
            .field("changing", &self.changing.is_some())
            .finish_non_exhaustive()
    }
}
