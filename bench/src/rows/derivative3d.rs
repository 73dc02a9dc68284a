//! Rows of derivative3d: the textbook problem by each kernel, or on the CPU by the port along each
//! axis.

use halo_gpu::derivative3d::{FiniteDifferences3d, Operator, Variant, problem};
use halo_gpu::{Axis, Buffer, Device, DeviceKind, Errors, Shape3};

mod general;
mod textbook;
mod vector_calculus;

use crate::check::Check;
use crate::cpp::job::Job;
use crate::error::Error;
use crate::row::{Family, LeftOut, Plan, Prepared, Row, Work};
use crate::size::Size;
use textbook::{BOUNDARY, grid, work};

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    // The last is too large for the textbook kernels, whose blocks hold whole pencils.
    sizes: &["64", "128", "256", "512"],
    cpu_sizes: &["64", "256"],
    cpu_comparison: &["8", "16", "32", "64", "128", "256"],
    small: "64",
};

const NAME: &str = "derivative3d";

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let [nx, ny, nz] = match size {
        Some(size) => size.cuboid(NAME)?,
        None => [64; 3],
    };
    let shape = Shape3::new(nx, ny, nz);
    let grid = grid(shape)?;
    let differences = FiniteDifferences3d::<f32>::new(&grid)?;

    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    let (mut left_out, mut first_refusal) = (Vec::new(), None);
    let row = |operator, variant| Kernel {
        differences: differences.clone(),
        operator,
        variant,
    };
    let mut operators = Axis::ALL.map(Operator::Derivative).to_vec();
    operators.push(Operator::Gradient);
    let variants = Variant::ALL.map(Some);
    // The kernels for any boundary have rows of their own.
    let variants = variants.iter().filter(|it| !general::VARIANTS.map(Some).contains(it));
    let variants: Vec<_> = match device.kind() {
        DeviceKind::Cpu => vec![None],
        _ => variants.copied().collect(),
    };
    for variant in variants {
        for &operator in &operators {
            let row = row(operator, variant);
            if variant.is_some_and(|variant| variant.kernel::<f32>(operator).is_none()) {
                continue;
            }
            // A refused size is an error before anything is measured.
            match row.plan(device)?.check(operator) {
                Ok(()) => rows.push(Box::new(row)),
                Err(error) => {
                    left_out.push(LeftOut::new(row.name(), error.to_string()));
                    first_refusal.get_or_insert(error);
                }
            }
        }
    }
    let refused = if rows.is_empty() {
        first_refusal.map(Error::from)
    } else {
        None
    };
    rows.extend(general::rows(device, shape, &mut left_out)?);
    rows.extend(vector_calculus::rows(device, shape)?);
    Ok(Plan {
        size: format!("{nx}x{ny}x{nz}"),
        elements: (nx * ny * nz) as u64,
        problem: format!("first derivative of cos(2π i / (n-1)) along one axis, {shape} points, f32 unless the row says otherwise"),
        boundary: Some(format!("{BOUNDARY}, spacing 1/(n-1)")),
        working_set_bytes: differences.cost(Operator::Derivative(Axis::X)).bytes,
        rows,
        left_out,
        refused,
    })
}

/// A row of a kernel, or of the port: a derivative, or all three at once.
struct Kernel {
    differences: FiniteDifferences3d<f32>,
    operator: Operator,
    /// The kernels; `None` on the CPU.
    variant: Option<Variant>,
}

impl Kernel {
    fn plan(&self, device: &Device) -> Result<halo_gpu::derivative3d::Plan<f32>, halo_gpu::Error> {
        match self.variant {
            Some(variant) => self.differences.plan_with(device, variant),
            None => self.differences.plan(device),
        }
    }
}

impl Row for Kernel {
    fn name(&self) -> String {
        let kernel = self.variant.and_then(|it| it.kernel::<f32>(self.operator));
        match (kernel, self.operator) {
            (Some(kernel), _) => kernel.to_owned(),
            (None, Operator::Derivative(axis)) => format!("derivative3d, CPU port, {axis}"),
            (None, operator) => format!("derivative3d, CPU port, {operator}"),
        }
    }

    fn work(&self) -> Work {
        work(&self.differences, self.operator)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let grid = self.differences.grid();
        let plan = self.plan(device)?;
        let Operator::Derivative(axis) = self.operator else {
            let points = grid.shape().points()?;
            let component = || device.alloc_filled(points, f32::NAN);
            return Ok(Box::new(ReadyGradient {
                plan,
                f: component()?,
                df: [component()?, component()?, component()?],
            }));
        };
        let field = problem::cosine(grid, axis)?;
        let f = device.upload(field.as_slice())?;
        let df = device.alloc_filled(f.len(), f32::NAN)?;
        Ok(Box::new(Ready { plan, axis, f, df }))
    }
}

struct ReadyGradient {
    plan: halo_gpu::derivative3d::Plan<f32>,
    f: Buffer<f32>,
    df: [Buffer<f32>; 3],
}

impl Prepared for ReadyGradient {
    /// The cosine along each axis in turn: its derivative along that axis is known, and the others
    /// are zero.
    fn check(&mut self) -> Result<Check, Error> {
        let grid = *self.plan.differences().grid();
        let (mut rms, mut max) = (0.0_f64, 0.0_f64);
        let mut bounds = problem::error_bounds(&grid, Axis::X);
        for along in Axis::ALL {
            let field = problem::cosine(&grid, along)?;
            self.f.copy_from_slice(field.as_slice())?;
            for df in &mut self.df {
                df.fill(f32::NAN)?;
            }
            self.launch()?;
            for (axis, df) in Axis::ALL.into_iter().zip(&self.df) {
                let df = df.to_vec()?;
                let errors = if axis == along {
                    problem::errors(&grid, axis, &df)
                } else {
                    Errors::of(&df, |_| 0.0)
                };
                // This form keeps a NaN.
                rms = if errors.rms <= rms { rms } else { errors.rms };
                max = if errors.max <= max { max } else { errors.max };
            }
            let own = problem::error_bounds(&grid, along);
            bounds = Errors {
                rms: bounds.rms.max(own.rms),
                max: bounds.max.max(own.max),
            };
        }
        Ok(Check::new(Errors { rms, max }, bounds))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.gradient(&self.f, self.df.each_mut())
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        match self.f.as_host_slice() {
            Some(_) => {
                vector_calculus::gradient_in_cpp(self.plan.differences().shape()).map(Some)
            }
            None => Ok(None),
        }
    }
}

struct Ready {
    plan: halo_gpu::derivative3d::Plan<f32>,
    axis: Axis,
    f: Buffer<f32>,
    df: Buffer<f32>,
}

impl Prepared for Ready {
    fn check(&mut self) -> Result<Check, Error> {
        self.df.fill(f32::NAN)?;
        self.launch()?;
        let grid = self.plan.differences().grid();
        let errors = problem::errors(grid, self.axis, &self.df.to_vec()?);
        Ok(Check::new(errors, problem::error_bounds(grid, self.axis)))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.derivative(self.axis, &self.f, &mut self.df)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_a_size_does_not_suit_are_left_out() {
        let left_out = |size: &str| -> Vec<String> {
            let plan = plan(&Device::emulator(), Some(&size.parse().unwrap())).unwrap();
            assert!(plan.refused.is_none() && !plan.rows.is_empty());
            plan.left_out.iter().map(|kernel| format!("{kernel:?}")).collect()
        };
        let kernels = left_out("64x48x64");
        assert_eq!(kernels.len(), 1, "{kernels:?}");
        assert!(kernels[0].contains("multiple of 32"), "{kernels:?}");
        let kernels = left_out("61x59x67");
        assert_eq!(kernels.len(), 12, "{kernels:?}");
        assert!(kernels.iter().any(|kernel| kernel.contains("derivative3d_gradient4")), "{kernels:?}");
    }

    #[test]
    fn a_size_that_suits_no_kernel_is_refused_before_anything_runs() {
        let refusal = |size: &str| match plan(&Device::emulator(), Some(&size.parse().unwrap())) {
            Ok(plan) => plan.refused.unwrap(),
            Err(error) => error,
        };
        let error = refusal("3x3x3");
        assert!(crate::error::chain(&error).contains("nx is 3"), "{error}");
        let error = refusal("64x64");
        assert!(crate::error::chain(&error).contains("NXxNYxNZ"), "{error}");
    }
}
