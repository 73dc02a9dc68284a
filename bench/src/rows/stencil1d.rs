//! Rows of stencil1d: each kernel, or the port on the CPU. The textbook's coefficients have an
//! exact result, the derivative's an analytic one. The widest stencils of any coefficients, in f32
//! and f64, have an exact result too.

use std::rc::Rc;

use halo_gpu::Scalar;
use halo_gpu::stencil1d::{
    self, MAX_RADIUS, Stencil1d, TEXTBOOK_COEFFICIENTS, Variant, problem,
};
use halo_gpu::{Buffer, Device, DeviceKind, Errors};

use crate::cpp::job::{Element, Job};
use crate::memory;
use crate::check::Check;
use crate::row::{self, Family, LeftOut, Plan, Prepared, Row, Work};
use crate::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    plan,
    sizes: &["65536", "1048576", "16777216", "268435456"],
    cpu_sizes: &[],
    cpu_comparison: &["4096", "65536", "1048576", "67108864"],
    small: "10000",
};

/// The number of points of the widest stencil.
const POINTS: usize = 2 * MAX_RADIUS + 1;

const NAME: &str = "stencil1d";

/// The kernels of the textbook's stencil. (The kernel of any stencil has rows of its own.)
const NINE_POINT: [Variant; 3] = [Variant::Constant, Variant::ReadOnly, Variant::Vector4];

/// The most elements of the row with the derivative of a sine.
const LARGEST_SINE: usize = 1 << 24;

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let n = match size {
        Some(size) => size.length(NAME)?,
        None => problem::N,
    };
    let textbook = Stencil1d::antisymmetric(n, &TEXTBOOK_COEFFICIENTS)?;
    let derivative = problem::derivative(n)?;
    let by = match device.kind() {
        DeviceKind::Cpu => vec![By::Port],
        DeviceKind::Emulator | DeviceKind::Cuda => NINE_POINT.map(By::Kernel).to_vec(),
    };
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    let mut left_out = Vec::new();
    for (stencil, line) in [(textbook, Input::WholeNumbers), (derivative, Input::Sine)] {
        for &by in &by {
            let row = Stencil { stencil, line, by };
            if n > LARGEST_SINE && matches!(line, Input::Sine) {
                left_out.push(LeftOut::new(
                    row.name(),
                    format!(
                        "the kernel is measured with the other coefficients; beyond {LARGEST_SINE} \
                         elements the analytic derivative takes longer than all the rest"
                    ),
                ));
                continue;
            }
            rows.push(Box::new(row));
        }
    }
    if n >= POINTS {
        let on_cpu = device.kind() == DeviceKind::Cpu;
        rows.push(Widest::<f32>::row(n, on_cpu)?);
        rows.push(Widest::<f64>::row(n, on_cpu)?);
    } else {
        for kernel in [widest::<f32>(), widest::<f64>()] {
            let why = format!("its stencil has {POINTS} points");
            left_out.push(LeftOut::new(kernel, why));
        }
    }
    Ok(Plan {
        size: n.to_string(),
        elements: n as u64,
        problem: format!(
            "nine-point stencil on {n} elements, f32, blocks of {}: with the coefficients \
             {TEXTBOOK_COEFFICIENTS:?} on whole numbers, and as 8th-order derivative of a sine",
            textbook.block()
        ),
        boundary: Some("the first and the last four elements are not changed".to_owned()),
        working_set_bytes: textbook.cost().bytes,
        rows,
        left_out,
        refused: None,
    })
}

/// The kernel or port of a row.
#[derive(Clone, Copy)]
enum By {
    Kernel(Variant),
    Port,
}

/// The input, which decides the coefficients.
#[derive(Clone, Copy)]
enum Input {
    /// Textbook's coefficients; exact.
    WholeNumbers,
    /// Coefficients of the derivative; analytic.
    Sine,
}

impl Input {
    /// Checks the result.
    fn judge(self, output: &[f32]) -> Check {
        match self {
            Self::WholeNumbers => Check::new(
                problem::textbook_errors(output),
                Errors { rms: 0.0, max: 0.0 },
            ),
            Self::Sine => Check::new(
                problem::derivative_errors(output),
                problem::derivative_error_bounds(),
            ),
        }
    }
}

/// The work of a row on the CPU, for C++.
fn job<T: Sample + Element>(
    ways: &'static [&'static str],
    input: Vec<T>,
    coefficients: Vec<f64>,
    judge: impl Fn(&[T]) -> Check + 'static,
) -> Result<Job, Error> {
    let n = input.len();
    let mut output = memory::reserve(n)?;
    output.resize(n, T::NAN);
    Ok(Job {
        stem: "stencil1d",
        ways,
        suffix: T::SUFFIX,
        inputs: vec![T::array(input)],
        outputs: vec![T::array(output)],
        sizes: vec![n as u64],
        steps_to_check: None,
        parameters: coefficients,
        judge: Box::new(move |outputs| Ok(judge(T::slice(&outputs[0])))),
    })
}

struct Stencil {
    stencil: Stencil1d<f32>,
    line: Input,
    by: By,
}

impl Row for Stencil {
    fn name(&self) -> String {
        let by = match self.by {
            By::Kernel(variant) => variant.name(),
            By::Port => "stencil1d, CPU port",
        };
        match self.line {
            Input::WholeNumbers => by.to_owned(),
            Input::Sine => format!("{by}, derivative"),
        }
    }

    fn work(&self) -> Work {
        row::points(self.stencil.cost(), self.stencil.inner_len())
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let n = self.stencil.n();
        let line = match self.line {
            Input::WholeNumbers => problem::whole_numbers(n)?,
            Input::Sine => problem::sine(n)?,
        };
        Ok(Box::new(Ready {
            plan: match self.by {
                By::Kernel(variant) => self.stencil.plan_with(device, variant)?,
                By::Port => self.stencil.plan(device)?,
            },
            line: self.line,
            by: self.by,
            input: device.upload(&line)?,
            output: device.alloc_filled(n, f32::NAN)?,
        }))
    }
}

struct Ready {
    plan: stencil1d::Plan<f32>,
    line: Input,
    by: By,
    input: Buffer<f32>,
    output: Buffer<f32>,
}

impl Prepared for Ready {
    fn check(&mut self) -> Result<Check, Error> {
        self.output.fill(f32::NAN)?;
        self.launch()?;
        Ok(self.line.judge(&self.output.to_vec()?))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.apply(&self.input, &mut self.output)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        let line = self.line;
        let coefficients = self.plan.stencil().coefficients().iter().map(|&c| c.into());
        match self.by {
            By::Kernel(_) => Ok(None),
            By::Port => job(
                &["antisymmetric"],
                self.input.to_vec()?,
                coefficients.collect(),
                move |output| line.judge(output),
            )
            .map(Some),
        }
    }
}

/// A type of elements of the widest stencils.
trait Sample: Scalar {
    const NAN: Self;
    fn of(number: f32) -> Self;
}

impl Sample for f32 {
    const NAN: Self = Self::NAN;
    fn of(number: f32) -> Self {
        number
    }
}

impl Sample for f64 {
    const NAN: Self = Self::NAN;
    fn of(number: f32) -> Self {
        number.into()
    }
}

/// The coefficient of the neighbour `place - 8`: a whole number; no two are equal.
fn coefficient(place: usize) -> f32 {
    [3.0, -7.0, 1.0, 12.0, -5.0, 8.0, -2.0, 9.0, -16.0, 4.0, -11.0, 6.0, 13.0, -1.0, 10.0, -3.0, 5.0]
        [place]
}

/// The kernel of stencils of any coefficients.
fn widest<T: Scalar>() -> &'static str {
    Variant::Custom.kernel::<T>().unwrap_or_default()
}

/// A stencil of 17 points, of whole numbers.
struct Widest<T: Scalar> {
    stencil: Stencil1d<T>,
    on_cpu: bool,
}

impl<T: Sample + Element> Widest<T> {
    fn row(n: usize, on_cpu: bool) -> Result<Box<dyn Row>, Error> {
        let coefficients: Vec<T> = (0..POINTS).map(|place| T::of(coefficient(place))).collect();
        let stencil = Stencil1d::any(n, &coefficients)?;
        Ok(Box::new(Self { stencil, on_cpu }))
    }
}

impl<T: Sample + Element> Row for Widest<T> {
    fn name(&self) -> String {
        if self.on_cpu {
            return format!("stencil1d, CPU port, {POINTS} points, {}", T::NAME);
        }
        widest::<T>().to_owned()
    }

    fn work(&self) -> Work {
        row::points(self.stencil.cost(), self.stencil.inner_len())
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        let line = problem::whole_numbers(self.stencil.n())?;
        let mut numbers: Vec<T> = memory::reserve(line.len())?;
        numbers.extend(line.iter().map(|&number| T::of(number)));
        Ok(Box::new(WidestReady {
            plan: self.stencil.plan(device)?,
            line: Rc::new(line),
            on_cpu: self.on_cpu,
            input: device.upload(&numbers)?,
            output: device.alloc_filled(self.stencil.n(), T::NAN)?,
        }))
    }
}

struct WidestReady<T: Scalar> {
    plan: stencil1d::Plan<T>,
    line: Rc<Vec<f32>>,
    on_cpu: bool,
    input: Buffer<T>,
    output: Buffer<T>,
}

impl<T: Sample + Element> Prepared for WidestReady<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.output.fill(T::NAN)?;
        self.launch()?;
        Ok(judge_widest(&self.output.to_vec()?, &self.line))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.plan.apply(&self.input, &mut self.output)
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        let coefficients = (0..POINTS).map(|place| coefficient(place).into());
        let line = Rc::clone(&self.line);
        match self.on_cpu {
            false => Ok(None),
            true => job(
                &["any"],
                self.input.to_vec()?,
                coefficients.collect(),
                move |output: &[T]| judge_widest(output, &line),
            )
            .map(Some),
        }
    }
}

/// Checks the result of the widest stencil on a line.
fn judge_widest<T: Sample>(output: &[T], line: &[f32]) -> Check {
    let inner = &output[MAX_RADIUS..output.len() - MAX_RADIUS];
    // The terms are whole numbers below 251 × 116, so every sum is exact.
    let exact = |i: usize| {
        let terms = (0..POINTS).map(|place| coefficient(place) * line[i + place]);
        f64::from(terms.sum::<f32>())
    };
    Check::new(
        Errors::of(inner, exact),
        Errors { rms: 0.0, max: 0.0 },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_its_rows() {
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        assert_eq!(
            rows.iter().map(|row| row.name()).collect::<Vec<_>>(),
            [
                "stencil1d_constant",
                "stencil1d_readonly",
                "stencil1d_vector4",
                "stencil1d_constant, derivative",
                "stencil1d_readonly, derivative",
                "stencil1d_vector4, derivative",
                "stencil1d_custom_f32",
                "stencil1d_custom_f64",
            ]
        );
    }

    #[test]
    fn every_row_passes_its_check_at_a_size_of_its_own() {
        for device in [Device::cpu(), Device::emulator()] {
            let plan = plan(&device, Some(&"101".parse().unwrap())).unwrap();
            assert!(!plan.rows.is_empty());
            for row in plan.rows {
                let check = row.prepare(&device).unwrap().check().unwrap();
                assert!(check.passes(), "{}: {check:?}", row.name());
            }
        }
    }

    #[test]
    fn a_line_too_short_is_refused_before_anything_runs() {
        let error = plan(&Device::emulator(), Some(&"8".parse().unwrap()))
            .err()
            .unwrap();
        let text = crate::error::chain(&error);
        assert!(text.contains("at least 9"), "{text}");
    }
}
