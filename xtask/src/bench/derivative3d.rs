//! Rows of derivative3d: the textbook problem on each kernel, or by the port along
//! each axis on the CPU.

use gpu_kernels::registry::{self, Problem};
use halo_gpu::derivative3d::{
    Axis, Boundary, Derivative3d, GRADIENT_KERNEL, RADIUS, Variant, problem,
};
use halo_gpu::{Buffer, Device, DeviceKind, Errors, Shape3};

mod general;
mod vector_calculus;

use super::cpp::Job;
use super::harness::{Check, Family, LeftOut, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    // The last is beyond the textbook kernels, whose blocks own whole pencils.
    sizes: &["64", "128", "256", "512"],
    cpu_sizes: &["64", "256"],
    cpu_comparison: &["8", "16", "32", "64", "128", "256"],
    small: "64",
};

const NAME: &str = "derivative3d";

/// The convention of the textbook problem.
const BOUNDARY: Boundary = Boundary::PeriodicWithEndpoint;

/// What a kernel of the 8th order has to do for a field, or the port in its place.
fn work(kernel: &str, shape: Shape3) -> Work {
    let field = Problem::volume(shape.nx, shape.ny, shape.nz).with_stencil(RADIUS as u32, 0);
    let Some(entry) = registry::entry(kernel) else {
        unreachable!("every kernel is in the table");
    };
    let cost = entry.cost(&field);
    Work {
        bytes: cost.bytes,
        flops: cost.flops,
        items: field.points() as u64,
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        slots: Slots::default(),
        read_only: false,
    }
}

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let [nx, ny, nz] = match size {
        Some(size) => size.cuboid(NAME)?,
        None => [64; 3],
    };
    let shape = Shape3::new(nx, ny, nz);
    let derivative = Derivative3d::unit_period(shape, BOUNDARY)?;

    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    let (mut left_out, mut first_refusal) = (Vec::new(), None);
    if device.kind() == DeviceKind::Cpu {
        for axis in Axis::ALL {
            rows.push(Box::new(Derivative {
                plan: derivative.clone(),
                by: By::Port(axis),
            }));
        }
    } else {
        for variant in Variant::all() {
            // Here, so that a size is refused before anything is measured.
            if let Err(error) = variant.check(shape, BOUNDARY) {
                left_out.push(LeftOut::new(variant.name(), error.to_string()));
                first_refusal.get_or_insert(error);
                continue;
            }
            rows.push(Box::new(Derivative {
                plan: derivative.clone(),
                by: By::Kernel(variant),
            }));
        }
    }
    if !rows.is_empty() && Axis::ALL.iter().all(|axis| axis.extent(shape) >= RADIUS + BOUNDARY.overlap()) {
        let name = if device.kind() == DeviceKind::Cpu {
            "derivative3d, CPU port, gradient"
        } else {
            derivative.gradient_kernel()
        };
        let plan = derivative.clone();
        // Other rows' kernel has a row among the general ones.
        if device.kind() == DeviceKind::Cpu || name == GRADIENT_KERNEL {
            rows.push(Box::new(Gradient { plan, name }));
        } else {
            left_out.push(LeftOut::new(GRADIENT_KERNEL, format!("{name} is for this shape")));
        }
    }
    let refused = if rows.is_empty() {
        first_refusal.map(Error::from)
    } else {
        None
    };
    rows.extend(general::rows(device, shape)?);
    rows.extend(vector_calculus::rows(device, shape)?);
    Ok(Plan {
        size: format!("{nx}x{ny}x{nz}"),
        elements: (nx * ny * nz) as u64,
        problem: format!("first derivative of cos(2π i / (n-1)) along one axis, {shape} points, f32 where the row says nothing else"),
        boundary: Some(format!("{BOUNDARY}, spacing 1/(n-1)")),
        working_set_bytes: derivative.bytes(),
        rows,
        left_out,
        refused,
    })
}

/// A row of the gradient: all three derivatives at once.
struct Gradient {
    plan: Derivative3d,
    /// The kernel, or the port.
    name: &'static str,
}

impl Row for Gradient {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn work(&self) -> Work {
        work(self.plan.gradient_kernel(), self.plan.shape())
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let points = self.plan.shape().points()?;
        let component = || device.alloc_filled(points, f32::NAN);
        Ok(Box::new(ReadyGradient {
            plan: self.plan.clone(),
            f: component()?,
            df: [component()?, component()?, component()?],
        }))
    }
}

struct ReadyGradient {
    plan: Derivative3d,
    f: Buffer<f32>,
    df: [Buffer<f32>; 3],
}

impl Prepared for ReadyGradient {
    /// The cosine along each axis in turn: its derivative along that axis is known, and
    /// those along the others are zero.
    fn check(&mut self) -> Result<Check, Error> {
        let (mut rms, mut max) = (0.0_f64, 0.0_f64);
        let mut bounds = problem::error_bounds(&self.plan, Axis::X);
        for along in Axis::ALL {
            let field = problem::cosine(self.plan.shape(), along, BOUNDARY)?;
            self.f.copy_from_slice(field.as_slice())?;
            for df in &mut self.df {
                df.fill(f32::NAN)?;
            }
            self.launch()?;
            for (axis, df) in Axis::ALL.into_iter().zip(&self.df) {
                let df = df.to_vec()?;
                let errors = if axis == along {
                    problem::errors(&self.plan, axis, &df)
                } else {
                    Errors::of(&df, |_| 0.0)
                };
                // Written so that NaN is kept.
                rms = if errors.rms <= rms { rms } else { errors.rms };
                max = if errors.max <= max { max } else { errors.max };
            }
            let own = problem::error_bounds(&self.plan, along);
            bounds = Errors {
                rms: bounds.rms.max(own.rms),
                max: bounds.max.max(own.max),
            };
        }
        Ok(Check::new(Errors { rms, max }, bounds))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        let [x, y, z] = &mut self.df;
        self.plan.gradient(&self.f, [x, y, z])
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        match self.f.as_host_slice() {
            Some(_) => vector_calculus::gradient_in_cpp(self.plan.shape()).map(Some),
            None => Ok(None),
        }
    }
}

/// What computes a row.
#[derive(Clone, Copy)]
enum By {
    Kernel(Variant),
    Port(Axis),
}

impl By {
    fn axis(self) -> Axis {
        match self {
            Self::Kernel(variant) => variant.axis(),
            Self::Port(axis) => axis,
        }
    }
}

struct Derivative {
    plan: Derivative3d,
    by: By,
}

impl Row for Derivative {
    fn name(&self) -> String {
        match self.by {
            By::Kernel(variant) => variant.name().to_owned(),
            By::Port(axis) => format!("derivative3d, CPU port, {axis}"),
        }
    }

    fn work(&self) -> Work {
        let shape = self.plan.shape();
        let kernel = match self.by {
            By::Kernel(variant) => variant,
            By::Port(axis) => Variant::tuned(axis, shape),
        };
        work(kernel.name(), shape)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let field = problem::cosine(self.plan.shape(), self.by.axis(), BOUNDARY)?;
        let f = device.upload(field.as_slice())?;
        let df = device.alloc_filled(f.len(), f32::NAN)?;
        Ok(Box::new(Ready {
            plan: self.plan.clone(),
            by: self.by,
            f,
            df,
        }))
    }
}

struct Ready {
    plan: Derivative3d,
    by: By,
    f: Buffer<f32>,
    df: Buffer<f32>,
}

impl Prepared for Ready {
    fn check(&mut self) -> Result<Check, Error> {
        self.df.fill(f32::NAN)?;
        self.launch()?;
        let axis = self.by.axis();
        let errors = problem::errors(&self.plan, axis, &self.df.to_vec()?);
        Ok(Check::new(errors, problem::error_bounds(&self.plan, axis)))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        match self.by {
            By::Kernel(variant) => self.plan.apply_with(variant, &self.f, &mut self.df),
            By::Port(axis) => self.plan.apply(axis, &self.f, &mut self.df),
        }
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
        assert_eq!(kernels.len(), 10, "{kernels:?}");
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
