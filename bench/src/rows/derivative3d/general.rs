//! Rows of the kernels for any boundary, and of the port: the first derivative of 8th order of the
//! textbook problem, in f32 and f64.

use halo_gpu::Scalar;
use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Plan, Variant};
use halo_gpu::{Axis, Buffer, Device, DeviceKind, Errors, Field3, Shape3};
use std::f64::consts::TAU;

use super::textbook::{grid, work};
use crate::check::Check;
use crate::row::{LeftOut, Prepared, Row, Work};
use crate::error::Error;

/// The kernels of these rows.
pub(super) const VARIANTS: [Variant; 2] = [Variant::AnyBoundary, Variant::General];

/// The rows for fields of `shape`; kernels that do not take it are left out.
pub(super) fn rows(
    device: &Device,
    shape: Shape3,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Box<dyn Row>>, Error> {
    let mut rows = Vec::new();
    let variants = match device.kind() {
        DeviceKind::Cpu => vec![None],
        _ => VARIANTS.map(Some).to_vec(),
    };
    for variant in variants {
        for axis in Axis::ALL {
            row::<f32>(device, shape, axis, variant, &mut rows, left_out)?;
            row::<f64>(device, shape, axis, variant, &mut rows, left_out)?;
        }
    }
    Ok(rows)
}

/// The derivative of a cosine of period 1 along its axis.
struct Along<T: Scalar> {
    differences: FiniteDifferences3d<T>,
    axis: Axis,
    /// The kernels; `None` on the CPU.
    variant: Option<Variant>,
}

fn row<T: Scalar>(
    device: &Device,
    shape: Shape3,
    axis: Axis,
    variant: Option<Variant>,
    rows: &mut Vec<Box<dyn Row>>,
    left_out: &mut Vec<LeftOut>,
) -> Result<(), Error> {
    let row = Along {
        differences: FiniteDifferences3d::<T>::new(&grid(shape)?)?,
        axis,
        variant,
    };
    match (variant, row.plan(device)?.check(row.operator())) {
        (Some(Variant::AnyBoundary), Err(error)) => {
            left_out.push(LeftOut::new(row.name(), error.to_string()));
        }
        // An unsupported size is reported when the row runs.
        _ => rows.push(Box::new(row)),
    }
    Ok(())
}

impl<T: Scalar> Along<T> {
    fn operator(&self) -> Operator {
        Operator::Derivative(self.axis)
    }

    fn plan(&self, device: &Device) -> Result<Plan<T>, halo_gpu::Error> {
        match self.variant {
            Some(variant) => self.differences.plan_with(device, variant),
            None => self.differences.plan(device),
        }
    }
}

impl<T: Scalar> Row for Along<T> {
    fn name(&self) -> String {
        let kernel = self.variant.and_then(|it| it.kernel::<T>(self.operator()));
        match kernel {
            Some(kernel) => kernel.to_owned(),
            None => format!("derivative3d general, CPU port, {} {}", self.axis, T::NAME),
        }
    }

    fn work(&self) -> Work {
        work(&self.differences, self.operator())
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let (axis, h) = (self.axis, self.differences.grid().spacing(self.axis));
        let field = Field3::from_fn(self.differences.shape(), |i, j, k| {
            T::nearest((TAU * h * [i, j, k][axis.index()] as f64).cos())
        })?;
        let f = device.upload(field.as_slice())?;
        let df = device.alloc_filled(f.len(), T::nearest(f64::NAN))?;
        Ok(Box::new(Ready {
            plan: self.plan(device)?,
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
        // Truncation; the error of the field times the weights' 2.08 / h; the rounding of eight
        // operations on results up to 2π. The field's values are at most 1. The cosine rounds them,
        // and so does the conversion to T; its arguments, at most 2π and in f64, are rounded too,
        // each by half an ulp. The errors of 2π and h are the same at all points and in the exact
        // derivative.
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
