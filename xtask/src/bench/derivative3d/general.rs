//! Rows of the general kernels: the first derivative of the 8th order of the textbook
//! problem, in f32 and f64; by the port on the CPU.

use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Plan};
use halo_gpu::{Axis, Buffer, Device, DeviceKind, Errors, Field3, Shape3};
use std::f64::consts::TAU;

use crate::bench::harness::{Check, Prepared, Row, Work};
use crate::error::Error;

/// The rows for fields of `shape`.
pub(super) fn rows(device: &Device, shape: Shape3) -> Result<Vec<Box<dyn Row>>, Error> {
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    for axis in Axis::ALL {
        rows.push(Box::new(row::<f32>(device, shape, axis)?));
        rows.push(Box::new(row::<f64>(device, shape, axis)?));
    }
    Ok(rows)
}

/// One derivative of a cosine along its axis, whose period is 1.
struct Along<T: Scalar> {
    differences: FiniteDifferences3d<T>,
    axis: Axis,
    port: bool,
}

fn row<T: Scalar>(device: &Device, shape: Shape3, axis: Axis) -> Result<Along<T>, Error> {
    Ok(Along {
        differences: FiniteDifferences3d::new(&super::grid(shape)?)?,
        axis,
        port: device.kind() == DeviceKind::Cpu,
    })
}

impl<T: Scalar> Row for Along<T> {
    fn name(&self) -> String {
        match self.port {
            false => super::general_kernel::<T>(Operator::Derivative(self.axis)),
            true => format!("derivative3d general, CPU port, {} {}", self.axis, T::NAME),
        }
    }

    fn work(&self) -> Work {
        super::work(&self.differences, Operator::Derivative(self.axis))
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let (axis, h) = (self.axis, self.differences.grid().spacing(self.axis));
        let field = Field3::from_fn(self.differences.shape(), |i, j, k| {
            T::nearest((TAU * h * [i, j, k][axis.index()] as f64).cos())
        })?;
        let f = device.upload(field.as_slice())?;
        let df = device.alloc_filled(f.len(), T::nearest(f64::NAN))?;
        Ok(Box::new(Ready {
            plan: super::general_plan(&self.differences, device)?,
            axis,
            f,
            df,
        }))
    }
}

struct Ready<T: Scalar> {
    plan: Plan<T>,
    axis: Axis,
    f: Buffer<T>,
    df: Buffer<T>,
}

impl<T: Scalar> Prepared for Ready<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.df.fill(T::nearest(f64::NAN))?;
        self.launch()?;
        let (axis, grid) = (self.axis, self.plan.differences().grid());
        let (shape, h) = (grid.shape(), grid.spacing(axis));
        let errors = Errors::of(&self.df.to_vec()?, |index| {
            let point = index / axis.stride(shape) % axis.extent(shape);
            -TAU * (TAU * h * point as f64).sin()
        });
        // Truncation; the error of the field times the weights' 2.08 / h; the rounding
        // of eight operations on results up to 2π. The field's values, up to 1, are
        // rounded by the cosine and to T, and its arguments, up to 2π and in f64, each
        // by half an ulp of that; what 2π and h are off by is the same for all points
        // and in the exact derivative as well.
        let roundoff = T::UNIT_ROUNDOFF;
        let half_ulp_of_tau = 2.0_f64.powi(-51);
        let bound = h.powi(8) / 630.0 * TAU.powi(9)
            + 2.08 / h * (2.0 * roundoff + half_ulp_of_tau)
            + 8.0 * TAU * roundoff;
        Ok(Check::new(
            errors,
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.derivative(self.axis, &self.f, &mut self.df)
    }
}
