//! Rows of the textbook's kernels.

use halo_gpu::reduction::{Operation, Reduction, Summand, Variant};
use halo_gpu::{Buffer, Device, Errors};

use super::input::{Shared, by_cub};
use super::samples::Sample;
use super::work;
use crate::bench::cub;
use crate::bench::harness::{Check, Prepared, Row, Work};
use crate::error::Error;

/// A sum by a textbook kernel.
pub(super) struct Textbook<T: Sample> {
    n: usize,
    reduction: Reduction,
    input: Shared<T>,
}

impl<T: Sample> Textbook<T> {
    pub(super) fn by(n: usize, reduction: Reduction, input: &Shared<T>) -> Self {
        Self {
            n,
            reduction,
            input: input.clone(),
        }
    }
}

impl<T: Sample + Summand + Into<f64>> Row for Textbook<T> {
    fn name(&self) -> String {
        self.reduction.variant().kernel::<T>().to_owned()
    }

    fn work(&self) -> Work {
        work(self.reduction.variant().kernel::<T>(), self.n)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.n)?;
        let reduction = self.reduction;
        let partials = device.alloc_filled(reduction.partials_len(self.n)?, T::POISON)?;
        let copy = match reduction.variant() {
            Variant::Global => Some(self.input.values().try_clone()?),
            _ => None,
        };
        Ok(Box::new(Partials {
            reduction,
            input: self.input.clone(),
            copy,
            partials,
        }))
    }
}

struct Partials<T: Sample + Summand + Into<f64>> {
    reduction: Reduction,
    input: Shared<T>,
    /// What the values were before a launch destroyed them.
    copy: Option<Buffer<T>>,
    partials: Buffer<T>,
}

impl<T: Sample + Summand + Into<f64>> Drop for Partials<T> {
    fn drop(&mut self) {
        // Other rows need the input as it was. Where that fails, so do they.
        let _ = self.restore();
    }
}

impl<T: Sample + Summand + Into<f64>> Prepared for Partials<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.restore()?;
        self.partials.fill(T::POISON)?;
        self.launch()?;
        let elements = self.reduction.elements_per_block();
        let relative = self.reduction.error_bound(elements, 1.0);
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
        self.reduction
            .partials_in_place(&mut self.input.values(), &mut self.partials)
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
