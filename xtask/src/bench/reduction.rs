//! Rows of reduction: the sum of an array by each of the eight kernels, or by the
//! port for either type on the CPU.
//!
//! What is timed is the kernel, which leaves one partial sum per block; their sum
//! on the host is the same for all and no part of it. `reduction_global` destroys
//! its input: it gets a fresh copy before each launch, outside the time. CUB, which
//! the kernels are compared with, leaves one sum.

use std::cell::{OnceCell, RefCell, RefMut};
use std::rc::Rc;

use halo_gpu::reduction::{self, DEFAULT_BLOCK, Reduction, Summand, Variant};
use halo_gpu::{Buffer, Device, DeviceKind, Errors};

use super::cub;
use super::harness::{Check, Family, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    kernels,
    plan,
    sizes: &[
        "1024",
        "4096",
        "16384",
        "65536",
        "262144",
        "1048576",
        "4194304",
        "16777216",
        "67108864",
        "268435456",
        "1073741824",
    ],
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
    let (integers, floats) = (Shared::<i32>::default(), Shared::<f32>::default());
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    let mut rows_by = |by: By| {
        rows.push(Box::new(Sum::by(n, by, &integers)));
        rows.push(Box::new(Sum::by(n, by, &floats)));
    };
    if device.kind() == DeviceKind::Cpu {
        rows_by(By::Port);
    } else {
        for variant in Variant::ALL {
            rows_by(By::Kernel(Reduction::new(variant, DEFAULT_BLOCK)?));
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
        refused: None,
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
    const CUB: cub::Element;
    /// What a partial sum holds before the launch.
    const POISON: Self;
    /// What sums are exact in, or as good as.
    type Exact: Copy + std::iter::Sum + Send;
    /// Element `i` of the input.
    fn element(i: usize) -> Self;
    fn exact(self) -> Self::Exact;
    /// The sum as this type has it.
    fn rounded(sum: Self::Exact) -> f64;
    /// The most that this sum may be off by, if that is so much of the sum of the
    /// magnitudes where sums round at all.
    fn bound(relative: f64, sum: Self::Exact) -> f64;
    /// The value that begins these bytes of a result.
    fn from_bytes(bytes: [u8; 4]) -> Self;
}

/// 32 bits without a visible pattern. Timings must not depend on values, but
/// memory that holds the same everywhere can be faster than real data.
fn scrambled(i: usize) -> u32 {
    let x = (i as u32).wrapping_mul(0x9e37_79b9);
    (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b)
}

impl Sample for i32 {
    const NAME: &'static str = "i32";
    const CUB: cub::Element = cub::Element::I32;
    const POISON: Self = 0x5a5a_5a5a;
    type Exact = i64;

    fn element(i: usize) -> Self {
        scrambled(i) as Self
    }

    fn exact(self) -> i64 {
        self.into()
    }

    fn rounded(sum: i64) -> f64 {
        // i32 sums wrap around; the exact ones are taken modulo 2³² in the same way.
        f64::from(sum as Self)
    }

    fn bound(_: f64, _: i64) -> f64 {
        0.0
    }

    fn from_bytes(bytes: [u8; 4]) -> Self {
        Self::from_ne_bytes(bytes)
    }
}

impl Sample for f32 {
    const NAME: &'static str = "f32";
    const CUB: cub::Element = cub::Element::F32;
    const POISON: Self = Self::NAN;
    type Exact = f64;

    fn element(i: usize) -> Self {
        // All of [0, 1) that 24 bits can tell apart.
        (scrambled(i) >> 8) as Self / 16_777_216.0
    }

    fn exact(self) -> f64 {
        self.into()
    }

    fn rounded(sum: f64) -> f64 {
        sum
    }

    fn bound(relative: f64, sum: f64) -> f64 {
        // No element is negative, so the sum is that of the magnitudes as well.
        relative * sum
    }

    fn from_bytes(bytes: [u8; 4]) -> Self {
        Self::from_ne_bytes(bytes)
    }
}

/// The input of all rows that sum `T`, made when the first of them is prepared.
struct Input<T: Sample> {
    values: RefCell<Buffer<T>>,
    /// Sums of so many elements each.
    sums: Vec<T::Exact>,
}

/// Divides what a block of any row adds up.
const CHUNK: usize = DEFAULT_BLOCK as usize;

impl<T: Sample> Input<T> {
    fn new(device: &Device, n: usize) -> Result<Self, Error> {
        let mut values = vec![T::POISON; n];
        let mut sums = vec![T::POISON.exact(); n.div_ceil(CHUNK)];
        // Each thread makes a part of its own, a multiple of CHUNK.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let part = sums.len().div_ceil(threads).max(1);
        std::thread::scope(|scope| {
            for (number, (values, sums)) in values
                .chunks_mut(part * CHUNK)
                .zip(sums.chunks_mut(part))
                .enumerate()
            {
                scope.spawn(move || {
                    let first = number * part * CHUNK;
                    for (i, value) in values.iter_mut().enumerate() {
                        *value = T::element(first + i);
                    }
                    for (chunk, sum) in values.chunks(CHUNK).zip(sums) {
                        *sum = chunk.iter().copied().map(T::exact).sum();
                    }
                });
            }
        });
        Ok(Self {
            values: RefCell::new(device.upload(&values)?),
            sums,
        })
    }

    /// The sum of each part of so many elements, which is a multiple of CHUNK.
    fn sums_of(&self, elements: usize) -> impl Iterator<Item = T::Exact> {
        self.sums
            .chunks(elements / CHUNK)
            .map(|chunks| chunks.iter().copied().sum())
    }

    fn sum(&self) -> T::Exact {
        self.sums.iter().copied().sum()
    }
}

/// An input that rows have in common.
struct Shared<T: Sample>(Rc<OnceCell<Input<T>>>);

impl<T: Sample> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T: Sample> Default for Shared<T> {
    fn default() -> Self {
        Self(Rc::default())
    }
}

impl<T: Sample> Shared<T> {
    fn fill(&self, device: &Device, n: usize) -> Result<(), Error> {
        if self.0.get().is_none() {
            // Nobody else sets it: rows are prepared one after the other.
            let _ = self.0.set(Input::new(device, n)?);
        }
        Ok(())
    }

    fn get(&self) -> &Input<T> {
        let Some(input) = self.0.get() else {
            unreachable!("`prepare` has filled it");
        };
        input
    }

    fn values(&self) -> RefMut<'_, Buffer<T>> {
        self.get().values.borrow_mut()
    }
}

struct Sum<T: Sample> {
    n: usize,
    by: By,
    input: Shared<T>,
}

impl<T: Sample> Sum<T> {
    fn by(n: usize, by: By, input: &Shared<T>) -> Self {
        Self {
            n,
            by,
            input: input.clone(),
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
        self.input.fill(device, self.n)?;
        let input = self.input.clone();
        Ok(match self.by {
            By::Kernel(reduction) => {
                let partials = device.alloc_filled(reduction.partials_len(self.n)?, T::POISON)?;
                let copy = match reduction.variant() {
                    Variant::Global => Some(input.values().try_clone()?),
                    _ => None,
                };
                Box::new(OnDevice {
                    reduction,
                    input,
                    copy,
                    partials,
                })
            }
            By::Port => Box::new(OnCpu {
                input,
                sum: T::POISON,
            }),
        })
    }
}

struct OnDevice<T: Sample> {
    reduction: Reduction,
    input: Shared<T>,
    /// What the values were before a launch destroyed them.
    copy: Option<Buffer<T>>,
    partials: Buffer<T>,
}

impl<T: Sample> Drop for OnDevice<T> {
    fn drop(&mut self) {
        // Other rows need the input as it was. Where that fails, so do they.
        let _ = self.restore();
    }
}

impl<T: Sample> Prepared for OnDevice<T> {
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
        let input = self.input.clone();
        let n = input.values().len();
        let address = input.values().device_address();
        // Of whichever order: CUB has at least 2^16 threads where there is work for
        // them, each of which adds its share one by one; then halves are added,
        // more than once.
        let additions = n as f64 / 65_536.0 + 64.0;
        let relative = additions * f64::from(f32::EPSILON) / 2.0;
        Some(cub::Work {
            operation: cub::Operation::Sum,
            element: T::CUB,
            n,
            input: address,
            check: Box::new(move |result| {
                let value = T::from_bytes([result[0], result[1], result[2], result[3]]);
                let exact = input.get().sum();
                let bound = T::bound(relative, exact);
                Check::new(
                    Errors::of(&[value], |_| T::rounded(exact)),
                    Errors {
                        rms: bound,
                        max: bound,
                    },
                )
            }),
        })
    }
}

struct OnCpu<T: Sample> {
    input: Shared<T>,
    sum: T,
}

impl<T: Sample> Prepared for OnCpu<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.sum = T::POISON;
        self.launch()?;
        let exact = self.input.get().sum();
        let n = self.input.values().len();
        let bound = T::bound(Reduction::default().error_bound(n, 1.0), exact);
        Ok(Check::new(
            Errors::of(&[self.sum], |_| T::rounded(exact)),
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.sum = reduction::sum(&self.input.values())?;
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
    fn the_input_is_made_once_and_its_sums_are_right() {
        for n in [1, 127, 128, 129, 1000, 5000] {
            let device = Device::cpu();
            let input = Input::<i32>::new(&device, n).unwrap();
            let values: Vec<i32> = (0..n).map(i32::element).collect();
            assert_eq!(input.values.borrow().to_vec().unwrap(), values);
            let sum = |part: &[i32]| part.iter().map(|&x| i64::from(x)).sum::<i64>();
            assert_eq!(input.sum(), sum(&values));
            let of_512: Vec<i64> = values.chunks(512).map(sum).collect();
            assert_eq!(input.sums_of(512).collect::<Vec<_>>(), of_512);
        }
    }

    #[test]
    fn what_cub_is_asked_for_is_judged() {
        let device = Device::emulator();
        for row in plan(&device, Some(&"1000".parse().unwrap())).unwrap().rows {
            let ready = row.prepare(&device).unwrap();
            let work = ready.cub().unwrap();
            let (is_float, n) = (row.name().ends_with("f32"), 1000);
            assert_eq!((work.operation, work.n), (cub::Operation::Sum, n));
            let mut result = [0x77; 16];
            let right = if is_float {
                assert_eq!(work.element, cub::Element::F32);
                ((0..n).map(|i| f64::from(f32::element(i))).sum::<f64>() as f32).to_ne_bytes()
            } else {
                assert_eq!(work.element, cub::Element::I32);
                (0..n).fold(0_i32, |sum, i| sum.wrapping_add(i32::element(i))).to_ne_bytes()
            };
            result[..4].copy_from_slice(&right);
            assert!((work.check)(result).passes(), "{}", row.name());
            result[2] ^= 1;
            assert!(!(work.check)(result).passes(), "{}", row.name());
        }
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
