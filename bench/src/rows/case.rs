//! Rows of kernels whose family describes no row of its own. The data, the expected result and the
//! cost come from the kernel's case and from the table of kernels.

use gpu_kernels::registry::{self, Entry, Problem};
use halo_gpu::case::{Case, Memory, subject};
use halo_gpu::{Device, DeviceKind, Errors};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::check::Check;
use crate::error::Error;
use crate::memory::reserve;
use crate::row::{self, Plan, Prepared, Row, Work};
use crate::size::Size;

/// Extents of problems of one, two and three dimensions, larger than caches.
const EXTENTS: [&[usize]; 3] = [&[1 << 24], &[4096, 4096], &[256, 256, 256]];

/// The same, for the emulator.
const SMALL: [&[usize]; 3] = [&[10_000], &[64, 61], &[20, 21, 22]];

/// The seed of the random data.
const SEED: u64 = 1729;

/// How many dimensions the problems of a kernel have.
fn dimensions(entry: &Entry) -> usize {
    let extents = entry.example.extents;
    1 + extents.iter().rposition(|&extent| extent > 1).unwrap_or(0)
}

/// A problem of this size; everything else is as in the kernel's example. `None` is a large size,
/// but a small one on the emulator.
fn problem(entry: &Entry, device: &Device, size: Option<&Size>) -> Result<Problem, Error> {
    let dimensions = dimensions(entry);
    let extents = match (size, dimensions) {
        (Some(size), 1) => vec![size.length(entry.family)?],
        (Some(size), 2) => size.rectangle(entry.family)?.to_vec(),
        (Some(size), _) => size.cuboid(entry.family)?.to_vec(),
        (None, _) if device.kind() == DeviceKind::Emulator => SMALL[dimensions - 1].to_vec(),
        (None, _) => EXTENTS[dimensions - 1].to_vec(),
    };
    let mut problem = entry.example;
    problem.extents = [1; 3];
    problem.extents[..dimensions].copy_from_slice(&extents);
    Ok(problem)
}

/// The plan of a family that describes no rows; the table adds them.
pub(super) fn plan(
    family: &'static registry::Family,
    device: &Device,
    size: Option<&Size>,
) -> Result<Plan, Error> {
    let mut plan = Plan {
        size: String::new(),
        elements: 0,
        problem: format!("{}, of random numbers", family.computes),
        boundary: None,
        working_set_bytes: 0,
        rows: Vec::new(),
        left_out: Vec::new(),
        refused: None,
    };
    for entry in family.kernels {
        let problem = problem(entry, device, size)?;
        let extents = problem.extents[..dimensions(entry)].iter();
        let extents: Vec<String> = extents.map(usize::to_string).collect();
        plan.size = extents.join("x");
        plan.elements = plan.elements.max(problem.points() as u64);
        plan.working_set_bytes = plan.working_set_bytes.max(entry.cost(&problem).bytes);
    }
    Ok(plan)
}

/// The row of a kernel, at this size.
pub(super) fn row(
    entry: &'static Entry,
    device: &Device,
    size: Option<&Size>,
) -> Result<Box<dyn Row>, Error> {
    let problem = problem(entry, device, size)?;
    // A size that the kernel cannot take is an error before anything is measured.
    entry.geometry(&problem).map_err(halo_gpu::Error::from)?;
    Ok(Box::new(OfCase { entry, problem }))
}

struct OfCase {
    entry: &'static Entry,
    problem: Problem,
}

impl Row for OfCase {
    fn name(&self) -> String {
        self.entry.name.to_owned()
    }

    fn work(&self) -> Work {
        let cost = self.entry.cost(&self.problem);
        row::points(cost, self.problem.points())
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        // The data and the expected result are made without asking for free memory: with the
        // device's copies they are about four times the bytes that the kernel moves.
        let bytes = self.entry.cost(&self.problem).bytes.saturating_mul(4);
        drop(reserve::<u8>(usize::try_from(bytes).unwrap_or(usize::MAX))?);
        let mut rng = StdRng::seed_from_u64(SEED);
        let mut random = || rng.random_range(-1.0..1.0);
        let cases = match subject(self.entry) {
            Some(subject) => subject.cases(self.entry, &self.problem, &mut random)?,
            None => Vec::new(),
        };
        let Some(case) = cases.into_iter().next() else {
            return Err(Error::Bench(format!(
                "{} has no case to be timed",
                self.entry.name
            )));
        };
        let inputs = case.inputs.iter().map(|values| values.upload(device));
        Ok(Box::new(Ready {
            inputs: inputs.collect::<Result<_, _>>()?,
            outputs: Vec::new(),
            case,
            device: device.clone(),
        }))
    }
}

struct Ready {
    case: Case,
    inputs: Vec<Box<dyn Memory>>,
    /// Empty before the first check.
    outputs: Vec<Box<dyn Memory>>,
    device: Device,
}

impl Prepared for Ready {
    /// The result is right or wrong: an error of 0 or 1.
    fn check(&mut self) -> Result<Check, Error> {
        let outputs = self.case.outputs.iter();
        let outputs = outputs.map(|values| values.upload(&self.device));
        self.outputs = outputs.collect::<Result<_, _>>()?;
        self.launch()?;
        let wrong = self.case.expected.check(&self.outputs)?.is_err();
        let errors = Errors::of(&[f64::from(u8::from(wrong))], |_| 0.0);
        Ok(Check::new(errors, Errors { rms: 0.0, max: 0.0 }))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        (self.case.launch)(&self.inputs, &mut self.outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kernel whose case takes its example at another size.
    #[test]
    fn cases_are_launched_and_judged() {
        let device = Device::emulator();
        let family = registry::family("elementwise").unwrap();
        for entry in family.kernels {
            let size = "1000".parse().unwrap();
            let mut ready = row(entry, &device, Some(&size))
                .unwrap()
                .prepare(&device)
                .unwrap();
            assert!(ready.check().unwrap().passes(), "{}", entry.name);
            ready.launch().unwrap();
        }
    }

    #[test]
    fn a_wrong_result_does_not_pass() {
        let device = Device::emulator();
        let entry = registry::entry("elementwise_axpby_f32").unwrap();
        let problem = Problem::line(100);
        let mut cases = Vec::new();
        for number in [0.25, 0.5] {
            let subject = subject(entry).unwrap();
            cases.extend(subject.cases(entry, &problem, &mut || number).unwrap());
        }
        let [mut case, other]: [Case; 2] = cases.try_into().unwrap();
        case.expected = other.expected;
        let mut ready = Ready {
            inputs: case
                .inputs
                .iter()
                .map(|it| it.upload(&device).unwrap())
                .collect(),
            outputs: Vec::new(),
            case,
            device,
        };
        assert!(!ready.check().unwrap().passes());
    }

    #[test]
    fn sizes_are_of_as_many_dimensions_as_the_example() {
        let device = Device::emulator();
        let of = |kernel: &str, size: &str| {
            let entry = registry::entry(kernel).unwrap();
            let size = (!size.is_empty()).then(|| size.parse().unwrap());
            let problem = problem(entry, &device, size.as_ref());
            problem
                .map(|it| it.extents)
                .map_err(|error| crate::error::chain(&error))
        };
        assert_eq!(of("elementwise_clamp_f64", "77"), Ok([77, 1, 1]));
        assert_eq!(of("elementwise_clamp_f64", ""), Ok([10_000, 1, 1]));
        assert_eq!(of("heat2d_march_f32", "64x61"), Ok([64, 61, 1]));
        assert_eq!(of("derivative3d_x_pencil4", "9"), Ok([9, 9, 9]));
        let error = of("elementwise_clamp_f64", "7x7").unwrap_err();
        assert!(error.contains("it takes N"), "{error}");
    }
}
