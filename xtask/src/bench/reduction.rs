//! Rows of reduction: the sum of an array by each of the eight kernels, or by the
//! port for either type on the CPU.
//!
//! What is timed is the kernel, which leaves one partial sum per block; their sum
//! on the host is the same for all and no part of it. `reduction_global` destroys
//! its input: it gets a fresh copy before each launch, outside the time.

use halo_gpu::reduction::{self, DEFAULT_BLOCK, Reduction, Summand, Variant};
use halo_gpu::{Buffer, Device, DeviceKind, Errors};

use super::harness::{Check, Family, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    kernels,
    plan,
};

const NAME: &str = "reduction";

fn kernels() -> Vec<&'static str> {
    Variant::ALL
        .iter()
        .flat_map(|variant| [variant.kernel::<i32>(), variant.kernel::<f32>()])
        .collect()
}

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let n = match size {
        Some(size) => size.length(NAME)?,
        None => 1 << 24,
    };
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    if device.kind() == DeviceKind::Cpu {
        rows.push(Box::new(Sum::<i32>::by(n, By::Port)));
        rows.push(Box::new(Sum::<f32>::by(n, By::Port)));
    } else {
        for variant in Variant::ALL {
            let kernel = By::Kernel(Reduction::new(variant, DEFAULT_BLOCK)?);
            rows.push(Box::new(Sum::<i32>::by(n, kernel)));
            rows.push(Box::new(Sum::<f32>::by(n, kernel)));
        }
    }
    let mut problem = format!("sum of {n} elements");
    if device.kind() != DeviceKind::Cpu {
        problem.push_str(
            "; reduction_global, which destroys them, gets a fresh copy before each launch, untimed",
        );
    }
    Ok(Plan {
        size: n.to_string(),
        elements: n as u64,
        problem,
        boundary: None,
        working_set_bytes: reduction::bytes::<f32>(n),
        rows,
        left_out: Vec::new(),
    })
}

/// What computes a row.
#[derive(Clone, Copy)]
enum By {
    Kernel(Reduction),
    Port,
}

/// A type that is summed, with the input of the benchmark and what its sum may
/// be off by.
trait Sample: Summand + Into<f64> {
    const NAME: &'static str;
    /// What a partial sum holds before the launch.
    const POISON: Self;
    /// Element `i` of the input.
    fn element(i: usize) -> Self;
    /// The sum of this part of the input.
    fn exact(part: &[Self]) -> f64;
    /// The most that a sum of this part may be off by.
    fn bound(reduction: Reduction, part: &[Self]) -> f64;
}

/// 32 bits without a visible pattern. Timings must not depend on values, but
/// memory that holds the same everywhere can be faster than real data.
fn scrambled(i: usize) -> u32 {
    let x = (i as u32).wrapping_mul(0x9e37_79b9);
    (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b)
}

impl Sample for i32 {
    const NAME: &'static str = "i32";
    const POISON: Self = 0x5a5a_5a5a;

    fn element(i: usize) -> Self {
        scrambled(i) as Self
    }

    fn exact(part: &[Self]) -> f64 {
        // i32 sums wrap around; the exact ones are taken modulo 2³² in the same way.
        let sum: i64 = part.iter().copied().map(i64::from).sum();
        f64::from(sum as Self)
    }

    fn bound(_: Reduction, _: &[Self]) -> f64 {
        0.0
    }
}

impl Sample for f32 {
    const NAME: &'static str = "f32";
    const POISON: Self = Self::NAN;

    fn element(i: usize) -> Self {
        // All of [0, 1) that 24 bits can tell apart.
        (scrambled(i) >> 8) as Self / 16_777_216.0
    }

    fn exact(part: &[Self]) -> f64 {
        part.iter().copied().map(f64::from).sum()
    }

    fn bound(reduction: Reduction, part: &[Self]) -> f64 {
        // No element is negative.
        reduction.error_bound(part.len(), Self::exact(part))
    }
}

struct Sum<T> {
    n: usize,
    by: By,
    element: std::marker::PhantomData<T>,
}

impl<T> Sum<T> {
    fn by(n: usize, by: By) -> Self {
        Self {
            n,
            by,
            element: std::marker::PhantomData,
        }
    }
}

impl<T: Sample> Row for Sum<T> {
    fn name(&self) -> String {
        match self.by {
            By::Kernel(reduction) => reduction.variant().kernel::<T>().to_owned(),
            By::Port => format!("reduction, CPU port, {}", T::NAME),
        }
    }

    fn tile(&self) -> String {
        match self.by {
            By::Kernel(reduction) => match reduction.variant().elements_per_thread() {
                1 => reduction.block().to_string(),
                unroll => format!("{unroll} × {}", reduction.block()),
            },
            By::Port => "–".to_owned(),
        }
    }

    fn work(&self) -> Work {
        Work {
            bytes: reduction::bytes::<T>(self.n),
            flops: reduction::flops(self.n),
            items: self.n as u64,
            unit: Unit::Points,
            metric: Metric::Bandwidth,
            slots: Slots::default(),
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let input: Vec<T> = (0..self.n).map(T::element).collect();
        let values = device.upload(&input)?;
        Ok(match self.by {
            By::Kernel(reduction) => {
                let partials = device.alloc_filled(reduction.partials_len(self.n)?, T::POISON)?;
                let copy = match reduction.variant() {
                    Variant::Global => Some(values.try_clone()?),
                    _ => None,
                };
                Box::new(OnDevice {
                    reduction,
                    input,
                    values,
                    copy,
                    partials,
                })
            }
            By::Port => Box::new(OnCpu {
                input,
                values,
                sum: T::POISON,
            }),
        })
    }
}

struct OnDevice<T: Sample> {
    reduction: Reduction,
    input: Vec<T>,
    values: Buffer<T>,
    /// What `values` were before a launch destroyed them.
    copy: Option<Buffer<T>>,
    partials: Buffer<T>,
}

impl<T: Sample> Prepared for OnDevice<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.restore()?;
        self.partials.fill(T::POISON)?;
        self.launch()?;
        let parts = || self.input.chunks(self.reduction.elements_per_block());
        let expected: Vec<f64> = parts().map(T::exact).collect();
        let bound = parts()
            .map(|part| T::bound(self.reduction, part))
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
            .partials_in_place(&mut self.values, &mut self.partials)
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        if let Some(copy) = &self.copy {
            self.values.copy_from(copy)?;
        }
        Ok(self.copy.is_some())
    }
}

struct OnCpu<T: Sample> {
    input: Vec<T>,
    values: Buffer<T>,
    sum: T,
}

impl<T: Sample> Prepared for OnCpu<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.sum = T::POISON;
        self.launch()?;
        let bound = T::bound(Reduction::default(), &self.input);
        Ok(Check::new(
            Errors::of(&[self.sum], |_| T::exact(&self.input)),
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.sum = reduction::sum(&self.values)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_the_eight_textbook_kernels() {
        let names = [
            "reduction_global_i32",
            "reduction_global_f32",
            "reduction_shared_i32",
            "reduction_shared_f32",
            "reduction_shared_unroll4_i32",
            "reduction_shared_unroll4_f32",
            "reduction_shared_unroll4_dynamic_i32",
            "reduction_shared_unroll4_dynamic_f32",
        ];
        assert_eq!(kernels(), names);
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        assert_eq!(rows.iter().map(|row| row.name()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn only_the_kernel_that_works_in_its_input_needs_it_restored() {
        let device = Device::emulator();
        for row in plan(&device, Some(&"1000".parse().unwrap())).unwrap().rows {
            let mut ready = row.prepare(&device).unwrap();
            assert!(ready.check().unwrap().passes(), "{}", row.name());
            assert_eq!(
                ready.restore().unwrap(),
                row.name().contains("global"),
                "{}",
                row.name()
            );
            // Again, on what the first launch has left.
            assert!(ready.check().unwrap().passes(), "{}", row.name());
        }
    }

    #[test]
    fn the_size_is_one_number() {
        let error = plan(&Device::cpu(), Some(&"64x64".parse().unwrap()))
            .err()
            .unwrap();
        assert!(crate::error::chain(&error).contains("--size 64x64"));
    }
}
