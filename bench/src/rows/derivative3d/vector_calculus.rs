//! Rows of the general operators, and of the port: gradient, divergence, curl and Laplacian of 8th
//! order, in f32 and f64.

use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Plan, Variant};
use halo_gpu::{Axis, Buffer, Device, DeviceKind, Errors, Field3, Shape3};
use std::f64::consts::TAU;

use crate::cpp::job::{Array, Element, Job};
use crate::memory::reserve;
use super::textbook::{grid, work};
use crate::check::Check;
use crate::row::{Prepared, Row, Work};
use crate::error::Error;

/// The rows for fields of `shape`.
pub(super) fn rows(device: &Device, shape: Shape3) -> Result<Vec<Box<dyn Row>>, Error> {
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    for operator in Operator::VECTOR_CALCULUS {
        rows.push(Box::new(row::<f32>(device, shape, operator)?));
        rows.push(Box::new(row::<f64>(device, shape, operator)?));
    }
    Ok(rows)
}

/// An operator on sums and vectors of cosines along the axes, whose periods are 1.
struct Apply<T: Scalar> {
    differences: FiniteDifferences3d<T>,
    operator: Operator,
    port: bool,
}

fn row<T: Scalar + Element>(device: &Device, shape: Shape3, operator: Operator) -> Result<Apply<T>, Error> {
    Ok(Apply {
        differences: FiniteDifferences3d::new(&grid(shape)?)?,
        operator,
        port: device.kind() == DeviceKind::Cpu,
    })
}

/// The name of a general kernel.
fn general_kernel<T: Scalar>(operator: Operator) -> String {
    let kernel = Variant::General.kernel::<T>(operator);
    kernel.unwrap_or_default().to_owned()
}

/// A plan with the general kernels; on the CPU with the port.
fn general_plan<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    device: &Device,
) -> Result<Plan<T>, halo_gpu::Error> {
    match device.kind() {
        DeviceKind::Cpu => differences.plan(device),
        _ => differences.plan_with(device, Variant::General),
    }
}

impl<T: Scalar + Element> Row for Apply<T> {
    fn name(&self) -> String {
        match self.port {
            false => general_kernel::<T>(self.operator),
            true => format!("derivative3d {:?}, CPU port, {}", self.operator, T::NAME),
        }
    }

    fn work(&self) -> Work {
        work(&self.differences, self.operator)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let (differences, operator) = (&self.differences, self.operator);
        let mut inputs = Vec::new();
        for nth in 0..operator.fields().0 {
            inputs.push(device.upload(input(differences, operator, nth)?.as_slice())?);
        }
        let mut outputs = Vec::new();
        for _ in 0..operator.fields().1 {
            outputs.push(device.alloc_filled(inputs[0].len(), T::nearest(f64::NAN))?);
        }
        Ok(Box::new(Ready {
            plan: general_plan(differences, device)?,
            operator,
            inputs,
            outputs,
            port: self.port,
        }))
    }
}

/// An operator's input field with this number.
fn input<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    operator: Operator,
    nth: usize,
) -> Result<Field3<T>, Error> {
    let [hx, hy, hz] = Axis::ALL.map(|axis| differences.grid().spacing(axis));
    Ok(Field3::from_fn(differences.shape(), |i, j, k| {
        let cosines = [(hx, i), (hy, j), (hz, k)].map(|(h, p)| (TAU * h * p as f64).cos());
        T::nearest(match operator {
            Operator::Curl => cosines[(nth + 1) % 3],
            Operator::Divergence => cosines[nth],
            _ => cosines.into_iter().sum(),
        })
    })?)
}

/// The gradient of a field of `shape` in f32, for C++.
pub(super) fn gradient_in_cpp(shape: Shape3) -> Result<Job, Error> {
    let row = row::<f32>(&Device::cpu(), shape, Operator::Gradient)?;
    job(&row.differences, Operator::Gradient)
}

/// An operator for C++, which has the gradient and the Laplacian.
fn job<T: Scalar + Element>(
    differences: &FiniteDifferences3d<T>,
    operator: Operator,
) -> Result<Job, Error> {
    let shape = differences.shape();
    let (inputs, outputs) = operator.fields();
    let array = |from: Option<&Field3<T>>| -> Result<Array, Error> {
        let mut values = reserve(shape.points()?)?;
        match from {
            Some(field) => values.extend_from_slice(field.as_slice()),
            None => values.resize(shape.points()?, T::nearest(f64::NAN)),
        }
        Ok(T::array(values))
    };
    let judged = differences.clone();
    Ok(Job {
        stem: match operator {
            Operator::Laplacian => "laplacian",
            _ => "gradient",
        },
        ways: &["planes", "slabs"],
        suffix: T::SUFFIX,
        inputs: (0..inputs)
            .map(|nth| array(Some(&input(differences, operator, nth)?)))
            .collect::<Result<_, Error>>()?,
        outputs: (0..outputs).map(|_| array(None)).collect::<Result<_, Error>>()?,
        sizes: [shape.nx, shape.ny, shape.nz].map(|extent| extent as u64).to_vec(),
        steps_to_check: None,
        parameters: Axis::ALL.map(|axis| 1.0 / differences.grid().spacing(axis)).to_vec(),
        judge: Box::new(move |outputs| {
            let outputs: Vec<&[T]> = outputs.iter().map(T::slice).collect();
            Ok(judge(&judged, operator, &outputs))
        }),
    })
}

struct Ready<T: Scalar> {
    plan: Plan<T>,
    operator: Operator,
    inputs: Vec<Buffer<T>>,
    outputs: Vec<Buffer<T>>,
    port: bool,
}

impl<T: Scalar + Element> Prepared for Ready<T> {
    fn check(&mut self) -> Result<Check, Error> {
        for output in &mut self.outputs {
            output.fill(T::nearest(f64::NAN))?;
        }
        self.launch()?;
        let outputs: Vec<Vec<T>> = self
            .outputs
            .iter()
            .map(Buffer::to_vec)
            .collect::<Result<_, _>>()?;
        let outputs: Vec<&[T]> = outputs.iter().map(Vec::as_slice).collect();
        Ok(judge(self.plan.differences(), self.operator, &outputs))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        let plan = &self.plan;
        match (&self.inputs[..], &mut self.outputs[..]) {
            ([f], [x, y, z]) => plan.gradient(f, [x, y, z]),
            ([u, v, w], [out]) => plan.divergence([u, v, w], out),
            ([u, v, w], [x, y, z]) => plan.curl([u, v, w], [x, y, z]),
            ([f], [out]) => plan.laplacian(f, out),
            _ => unreachable!("as many fields as the operator has"),
        }
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        match self.operator {
            Operator::Gradient | Operator::Laplacian if self.port => {
                job(self.plan.differences(), self.operator).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Checks the result of an operator, in any order of its operations.
fn judge<T: Scalar>(
    differences: &FiniteDifferences3d<T>,
    operator: Operator,
    outputs: &[&[T]],
) -> Check {
        let (shape, grid) = (differences.shape(), differences.grid());
        let spacing = Axis::ALL.map(|axis| grid.spacing(axis));
        let mut worst = Errors { rms: 0.0, max: 0.0 };
        for (nth, output) in outputs.iter().enumerate() {
            let errors = Errors::of(output, |index| {
                let angle = |axis: Axis| {
                    let point = index / axis.stride(shape) % axis.extent(shape);
                    TAU * spacing[axis.index()] * point as f64
                };
                match operator {
                    Operator::Derivative(_) | Operator::SecondDerivative(_) => {
                        unreachable!("no operator of vector calculus")
                    }
                    Operator::Gradient => -TAU * angle(Axis::ALL[nth]).sin(),
                    Operator::Divergence => {
                        Axis::ALL.map(|axis| -TAU * angle(axis).sin()).iter().sum()
                    }
                    Operator::Curl => TAU * angle(Axis::ALL[(nth + 2) % 3]).sin(),
                    Operator::Laplacian => Axis::ALL
                        .map(|axis| -TAU * TAU * angle(axis).cos())
                        .iter()
                        .sum(),
                }
            });
            // This form keeps a NaN.
            if !(errors.max <= worst.max) {
                worst = errors;
            }
        }
        // For each of three derivatives: truncation; the rounding of values up to 3, times the sum
        // of the weights' magnitudes; the rounding of the operations on the results.
        let roundoff = T::UNIT_ROUNDOFF;
        let h = spacing.into_iter().fold(0.0, f64::max);
        let finest = spacing.into_iter().fold(1.0, f64::min);
        let bound = match operator {
            Operator::Laplacian => {
                h.powi(8) / 3150.0 * TAU.powi(10)
                    + 4.0 * 3.66 / finest.powi(2) * 6.0 * roundoff
                    + 20.0 * TAU * TAU * roundoff
            }
            _ => {
                h.powi(8) / 630.0 * TAU.powi(9)
                    + 2.08 / finest * 6.0 * roundoff
                    + 20.0 * TAU * roundoff
            }
        };
        let bound = 3.0 * bound;
        Check::new(
            worst,
            Errors {
                rms: bound,
                max: bound,
            },
        )
}
