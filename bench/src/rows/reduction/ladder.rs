//! Rows of the textbook's reduction kernels.

use halo_gpu::reduction::{Number, Operation, Plan, Reduction, Variant};
use halo_gpu::{Buffer, Device, Errors};

use super::input::{Shared, by_cub};
use super::samples::Sample;
use super::work;
use crate::cub::work as cub;
use crate::check::Check;
use crate::row::{Prepared, Row, Work};
use crate::error::Error;

/// A sum by a textbook kernel.
pub(super) struct Textbook<T: Sample> {
    n: usize,
    variant: Variant,
    input: Shared<T>,
}

impl<T: Sample> Textbook<T> {
    pub(super) fn by(n: usize, variant: Variant, input: &Shared<T>) -> Self {
        Self {
            n,
            variant,
            input: input.clone(),
        }
    }
}

impl<T: Sample + Into<f64>> Row for Textbook<T> {
    fn name(&self) -> String {
        kernel::<T>(self.variant).to_owned()
    }

    fn work(&self) -> Work {
        work::of_kernel(kernel::<T>(self.variant), self.n)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.n)?;
        let plan = Reduction::new().plan_with(device, self.variant)?;
        let partials = device.alloc_filled(plan.sums_len(self.n)?, T::POISON)?;
        let copy = match self.variant {
            Variant::Global => Some(self.input.values().try_clone()?),
            _ => None,
        };
        Ok(Box::new(Partials {
            plan,
            input: self.input.clone(),
            copy,
            partials,
        }))
    }
}

/// The kernel's entry point for elements of `T`.
fn kernel<T: Number>(variant: Variant) -> &'static str {
    let Some(kernel) = variant.kernel::<T>() else {
        unreachable!("there are rows of the types alone that it sums")
    };
    kernel
}

struct Partials<T: Sample + Into<f64>> {
    plan: Plan<T>,
    input: Shared<T>,
    /// The values before a launch destroyed them.
    copy: Option<Buffer<T>>,
    partials: Buffer<T>,
}

impl<T: Sample + Into<f64>> Drop for Partials<T> {
    fn drop(&mut self) {
        // Other rows need the original input. Where this fails, they fail.
        let _ = self.restore();
    }
}

impl<T: Sample + Into<f64>> Prepared for Partials<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.restore()?;
        self.partials.fill(T::POISON)?;
        self.launch()?;
        let n = self.input.values().len();
        let elements = self.plan.elements_per_block().unwrap_or(n);
        let relative = self.plan.error_bound(elements, 1.0);
        let input = self.input.get();
        let expected: Vec<f64> = input.sums_of(elements).map(T::rounded).collect();
        let bound = input
            .sums_of(elements)
            .map(|sum| T::bound(relative, sum))
            .fold(0.0, f64::max);
        Ok(Check::new(
            Errors::of(&self.partials.to_vec()?, |b| expected[b]),
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan
            .sum_in_place_into(&mut self.input.values(), &mut self.partials)
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        if let Some(copy) = &self.copy {
            self.input.values().copy_from(copy)?;
        }
        Ok(self.copy.is_some())
    }

    fn cub(&self) -> Option<cub::Work> {
        by_cub(Operation::Sum, &self.input)
    }
}
