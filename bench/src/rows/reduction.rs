//! Rows of reduction: the sum of an array by each of the eight textbook kernels; sum, minimum,
//! maximum, sum of squares, argmin and dot product (of the array with a copy of itself) by the
//! single-pass kernels or, on the CPU, by their port.
//!
//! A textbook kernel leaves one partial sum per block, and only the kernel is timed; the sum of
//! those on the host is the same for all. `reduction_global` destroys its input: it gets a fresh
//! copy before each launch, outside the time. The single-pass kernels leave one result, and so does
//! CUB, with which all are compared.

use std::collections::BTreeSet;

use halo_gpu::reduction::{Reduction, Variant};
use halo_gpu::{Device, DeviceKind};

mod input;
mod ladder;
mod samples;
mod single_pass;
mod work;

use crate::row::{Family, Plan, Row};
use crate::size::Size;
use crate::error::Error;
use input::Shared;
use ladder::Textbook;
use single_pass::{Source, What};

pub(super) const FAMILY: Family = Family {
    name: NAME,
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
    cpu_sizes: &["1048576", "16777216"],
    cpu_comparison: &["1024", "65536", "1048576", "67108864"],
    small: "10000",
};

const NAME: &str = "reduction";

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let n = match size {
        Some(size) => size.length(NAME)?,
        None => 1 << 24,
    };
    let on_cpu = device.kind() == DeviceKind::Cpu;
    let (integers, floats) = (Shared::<i32>::default(), Shared::<f32>::default());
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    if !on_cpu {
        for variant in Variant::TEXTBOOK {
            rows.push(Box::new(Textbook::by(n, variant, &integers)));
            rows.push(Box::new(Textbook::by(n, variant, &floats)));
        }
    }
    let inputs: [Box<dyn Source>; 6] = [
        Box::new(integers),
        Box::new(Shared::<u32>::default()),
        Box::new(Shared::<i64>::default()),
        Box::new(Shared::<u64>::default()),
        Box::new(floats),
        Box::new(Shared::<f64>::default()),
    ];
    let mut timed = BTreeSet::new();
    for what in What::ALL {
        for input in &inputs {
            // Some kernels serve two types.
            if timed.insert(input.kernel(what)) {
                rows.push(input.row(n, what, on_cpu));
            }
        }
    }
    let mut problem = format!(
        "sum, minimum, maximum, sum of squares, index of the minimum and dot product of {n} elements"
    );
    if !on_cpu {
        problem.push_str(
            "; reduction_global, which destroys them, gets a fresh copy before each launch, untimed",
        );
    }
    Ok(Plan {
        size: n.to_string(),
        elements: n as u64,
        problem,
        boundary: None,
        working_set_bytes: Reduction::new().cost::<f32>(n).bytes,
        rows,
        left_out: Vec::new(),
        refused: None,
    })
}

#[cfg(test)]
mod tests {
    use crate::cub::work as cub;
    use crate::measured::kernels as measured;
    use super::input::Input;
    use super::samples::Sample;
    use super::*;

    #[test]
    fn there_is_a_row_for_every_kernel() {
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        let names: Vec<_> = rows.iter().map(|row| row.name()).collect();
        assert_eq!(names, measured(NAME));
        // Two arrays of 8 bytes; a product and a sum.
        let dot = rows.iter().find(|row| row.name() == "reduction_dot_f64");
        let work = dot.unwrap().work();
        assert_eq!((work.bytes, work.flops), (2 << 27, 2 << 24));
    }

    #[test]
    fn the_input_is_made_once_and_its_sums_are_right() {
        for n in [1, 127, 128, 129, 1000, 5000] {
            let device = Device::cpu();
            let input = Input::<i32>::new(&device, n).unwrap();
            let values: Vec<i32> = (0..n).map(i32::element).collect();
            assert_eq!(input.values.borrow().to_vec().unwrap(), values);
            let sum = |part: &[i32]| part.iter().map(|&x| i128::from(x)).sum::<i128>();
            assert_eq!(input.sum(), sum(&values));
            let of_512: Vec<i128> = values.chunks(512).map(sum).collect();
            assert_eq!(input.sums_of(512).collect::<Vec<_>>(), of_512);
        }
    }

    #[test]
    fn what_cub_is_asked_for_is_judged() {
        /// Eight bytes or four, and zeros behind them.
        fn result(bytes: &[u8]) -> [u8; 16] {
            let mut result = [0x77; 16];
            result[..bytes.len()].copy_from_slice(bytes);
            result
        }
        let n = 1000;
        let integers: Vec<i32> = (0..n).map(i32::element).collect();
        let floats: Vec<f32> = (0..n).map(f32::element).collect();
        let doubles: Vec<f64> = (0..n).map(f64::element).collect();
        let device = Device::emulator();
        for row in plan(&device, Some(&n.to_string().parse().unwrap())).unwrap().rows {
            let name = row.name();
            let ready = row.prepare(&device).unwrap();
            let Some(work) = ready.cub() else {
                // For another type, or for an operation without a function.
                let type_name = name.rsplit('_').next().unwrap();
                let other = name.contains("moment") || name.contains("dot");
                assert!(other || ["i64", "u32", "u64"].contains(&type_name), "{name}");
                continue;
            };
            if name.contains("arg_extremum") {
                assert_eq!(work.operation, cub::Operation::MinimumAt);
                let least = match work.element {
                    cub::Element::I32 => integers.iter().position(|x| x == integers.iter().min().unwrap()),
                    cub::Element::F32 => floats.iter().position(|&x| floats.iter().all(|&y| x <= y)),
                    cub::Element::F64 => doubles.iter().position(|&x| doubles.iter().all(|&y| x <= y)),
                };
                let least = least.unwrap() as i64;
                assert!((work.check)(result(&least.to_ne_bytes())).passes(), "{name}");
                assert!(!(work.check)(result(&(least + 1).to_ne_bytes())).passes(), "{name}");
                continue;
            }
            assert_eq!(work.n, n);
            let operation = match name.split('_').rev().nth(1).unwrap() {
                "min" => cub::Operation::Minimum,
                "max" => cub::Operation::Maximum,
                _ => cub::Operation::Sum,
            };
            assert_eq!(work.operation, operation, "{name}");
            let (element, size, right) = match name.rsplit('_').next().unwrap() {
                "i32" => {
                    let right = match operation {
                        cub::Operation::Minimum => *integers.iter().min().unwrap(),
                        cub::Operation::Maximum => *integers.iter().max().unwrap(),
                        _ => integers.iter().fold(0_i32, |sum, &x| sum.wrapping_add(x)),
                    };
                    (cub::Element::I32, 4, result(&right.to_ne_bytes()))
                }
                "f32" => {
                    let right = match operation {
                        cub::Operation::Minimum => floats.iter().copied().reduce(f32::min).unwrap(),
                        cub::Operation::Maximum => floats.iter().copied().reduce(f32::max).unwrap(),
                        _ => floats.iter().copied().map(f64::from).sum::<f64>() as f32,
                    };
                    (cub::Element::F32, 4, result(&right.to_ne_bytes()))
                }
                _ => {
                    let right = match operation {
                        cub::Operation::Minimum => doubles.iter().copied().reduce(f64::min).unwrap(),
                        cub::Operation::Maximum => doubles.iter().copied().reduce(f64::max).unwrap(),
                        _ => doubles.iter().sum::<f64>(),
                    };
                    (cub::Element::F64, 8, result(&right.to_ne_bytes()))
                }
            };
            assert_eq!(work.element, element, "{name}");
            assert!((work.check)(right).passes(), "{name}");
            let mut wrong = right;
            wrong[size - 2] ^= 1;
            assert!(!(work.check)(wrong).passes(), "{name}");
        }
    }

    #[test]
    fn the_reference_of_doubles_loses_nothing() {
        // 1 is lost in 2^60, and again in -2^60.
        let exact = |values: &[f64]| f64::rounded(values.iter().copied().map(f64::exact).sum());
        let big = 2.0_f64.powi(60);
        assert_eq!(exact(&[big, 1.0, -big, 1.0]), 2.0);
        assert_eq!(exact(&[1.0, big, 3.0, -big]), 4.0);
    }

    #[test]
    fn only_the_kernel_that_works_in_its_input_needs_it_restored() {
        let device = Device::emulator();
        // More than one block of every kernel.
        let rows = plan(&device, Some(&"20001".parse().unwrap())).unwrap().rows;
        for row in rows {
            let mut ready = row.prepare(&device).unwrap();
            assert!(ready.check().unwrap().passes(), "{}", row.name());
            assert_eq!(
                ready.restore().unwrap(),
                row.name().contains("global"),
                "{}",
                row.name()
            );
            // The second time, the output holds the result of the first.
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
