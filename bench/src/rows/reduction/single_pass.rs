//! Rows of the single-pass reduction kernels and of their port.

use halo_gpu::reduction::{Extremum, Moment, Operation, Partition, Plan, Reduction, dot_kernel};
use halo_gpu::{Buffer, Device, Errors};

use super::input::{Shared, by_cub};
use super::samples::Sample;
use super::work;
use crate::cpp::job::{Array, Element as _, Job};
use crate::cub::work as cub;
use crate::memory::reserve;
use crate::check::Check;
use crate::row::{Prepared, Row, Work};
use crate::error::Error;

/// The operation of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Elements(Operation),
    Squares,
    Dot,
    Argmin,
}

impl What {
    /// Each kernel is timed in one of these.
    pub(super) const ALL: [Self; 6] = [
        Self::Elements(Operation::Sum),
        Self::Elements(Operation::Min),
        Self::Elements(Operation::Max),
        Self::Squares,
        Self::Dot,
        Self::Argmin,
    ];

    /// The name of the port's row.
    const fn name(self) -> &'static str {
        match self {
            Self::Elements(operation) => operation.name(),
            Self::Squares => "sum of squares",
            Self::Dot => "dot product",
            Self::Argmin => "argmin",
        }
    }

    fn kernel<T: Sample>(self) -> &'static str {
        match self {
            Self::Elements(operation) => operation.kernel::<T>(),
            Self::Squares => Moment::Second.kernel::<T>(),
            Self::Dot => dot_kernel::<T>(),
            Self::Argmin => Extremum::Min.kernel::<T>(),
        }
    }
}

/// An input of any type.
pub(super) trait Source {
    fn kernel(&self, what: What) -> &'static str;

    fn row(&self, n: usize, what: What, on_cpu: bool) -> Box<dyn Row>;
}

impl<T: Sample + 'static> Source for Shared<T> {
    fn kernel(&self, what: What) -> &'static str {
        what.kernel::<T>()
    }

    fn row(&self, n: usize, what: What, on_cpu: bool) -> Box<dyn Row> {
        Box::new(Whole {
            n,
            what,
            on_cpu,
            input: self.clone(),
        })
    }
}

/// A reduction by a kernel or by the port.
struct Whole<T: Sample> {
    n: usize,
    what: What,
    on_cpu: bool,
    input: Shared<T>,
}

impl<T: Sample + 'static> Row for Whole<T> {
    fn name(&self) -> String {
        if self.on_cpu {
            return format!("reduction, CPU port, {} {}", self.what.name(), T::NAME);
        }
        self.what.kernel::<T>().to_owned()
    }

    fn tile(&self) -> String {
        let partition = Partition::of(self.n, size_of::<T>());
        format!("{} × {}", partition.tiles(), partition.lanes())
    }

    fn work(&self) -> Work {
        work::of_kernel(self.what.kernel::<T>(), self.n)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.n)?;
        let copy = match self.what {
            What::Dot => Some(self.input.values().try_clone()?),
            What::Elements(_) | What::Squares | What::Argmin => None,
        };
        Ok(Box::new(Ready {
            what: self.what,
            on_cpu: self.on_cpu,
            plan: Reduction::new().with_len(self.n).plan(device)?,
            input: self.input.clone(),
            copy,
            total: device.alloc_filled(1, T::POISON)?,
            squares: device.alloc_filled(1, f64::NAN)?,
            product: device.alloc_filled(1, T::POISONED_PRODUCT)?,
            place: device.alloc_filled(1, u64::MAX)?,
        }))
    }
}

struct Ready<T: Sample> {
    what: What,
    on_cpu: bool,
    plan: Plan<T>,
    input: Shared<T>,
    /// The other factor of a dot product.
    copy: Option<Buffer<T>>,
    total: Buffer<T>,
    squares: Buffer<f64>,
    product: Buffer<T::Product>,
    place: Buffer<u64>,
}

impl<T: Sample + 'static> Prepared for Ready<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.total.fill(T::POISON)?;
        self.squares.fill(f64::NAN)?;
        self.product.fill(T::POISONED_PRODUCT)?;
        self.place.fill(u64::MAX)?;
        self.launch()?;
        let input = self.input.get();
        let n = input.values.borrow().len();
        // Once for the reduction and once for the reference.
        let bound = 2.0 * Plan::<T>::f64_error_bound(n, input.squares);
        let (error, bound) = match self.what {
            What::Elements(operation) => {
                let relative = self.plan.error_bound(n, 1.0);
                return Ok(input.check(operation, self.total.to_vec()?[0], relative));
            }
            What::Squares => (self.squares.to_vec()?[0] - input.squares, bound),
            What::Dot => {
                let product = self.product.to_vec()?[0];
                let error = T::off_dot(product, input.squares, input.wrapped_squares);
                (error, if T::HALF_ULP == 0.0 { 0.0 } else { bound })
            }
            What::Argmin => (self.place.to_vec()?[0].abs_diff(input.place) as f64, 0.0),
        };
        Ok(off_by(error, bound))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        let values = self.input.values();
        match self.what {
            What::Elements(operation) => {
                self.plan
                    .elements_into(operation, &values, &mut self.total)
            }
            What::Squares => self.plan.sum_squares_into(1.0, &values, &mut self.squares),
            What::Dot => {
                let copy = self.copy.as_ref().unwrap_or(&values);
                self.plan.dot_into(&values, copy, &mut self.product)
            }
            What::Argmin => self.plan.argmin_into(&values, &mut self.place),
        }
    }

    fn cpp(&self) -> Result<Option<Job>, Error> {
        if self.on_cpu {
            in_cpp(self.what, &self.input, Adds::InTheirType)
        } else {
            Ok(None)
        }
    }

    fn cpp_in_f64(&self) -> Result<Option<Job>, Error> {
        match self.what {
            What::Squares | What::Dot if self.on_cpu && T::NAME == "f32" => {
                in_cpp(self.what, &self.input, Adds::InF64)
            }
            _ => Ok(None),
        }
    }

    fn cub(&self) -> Option<cub::Work> {
        match self.what {
            What::Elements(operation) => by_cub(operation, &self.input),
            What::Squares | What::Dot => None,
            What::Argmin => place_by_cub(&self.input),
        }
    }
}

/// The most elements that C++ adds one after the other in their own type, before it continues in
/// f64.
const CPP_BLOCK: f64 = 8192.0;

/// How C++ adds.
#[derive(Clone, Copy, Debug)]
enum Adds {
    /// In the elements' type, up to [`CPP_BLOCK`] of them.
    InTheirType,
    /// All in f64: sums of squares and dot products of f32, as Halo does.
    InF64,
}

/// The work of a row on the CPU, for C++, if it has a function for it.
fn in_cpp<T: Sample + 'static>(
    what: What,
    input: &Shared<T>,
    adds: Adds,
) -> Result<Option<Job>, Error> {
    let adding: &[&str] = match adds {
        Adds::InTheirType => &["blocked"],
        Adds::InF64 => &["in_f64"],
    };
    let (stem, ways): (_, &[&str]) = match what {
        What::Elements(Operation::Sum) => ("sum", adding),
        What::Elements(Operation::Min) => ("min", &["plain"]),
        What::Elements(Operation::Max) => return Ok(None),
        What::Squares => ("squares", adding),
        What::Dot => ("dot", adding),
        What::Argmin => ("argmin", &["blocked"]),
    };
    let n = input.values().len();
    let elements = || -> Result<Option<Array>, Error> {
        let mut elements = reserve(n)?;
        elements.extend_from_slice(input.values().as_host_slice().unwrap_or(&[]));
        Ok(T::in_cpp(elements))
    };
    let Some(first) = elements()? else {
        return Ok(None);
    };
    let mut inputs = vec![first];
    if what == What::Dot {
        inputs.extend(elements()?);
    }
    let output = match what {
        What::Elements(_) => T::in_cpp(vec![T::POISON]),
        What::Squares | What::Dot | What::Argmin => None,
    };
    let input = input.clone();
    Ok(Some(Job {
        stem,
        ways,
        suffix: T::NAME,
        inputs,
        outputs: vec![output.unwrap_or_else(|| f64::array(vec![f64::NAN]))],
        sizes: vec![n as u64],
        steps_to_check: None,
        parameters: Vec::new(),
        judge: Box::new(move |outputs| {
            let input = input.get();
            // The sums of blocks are added in f64, as the reference is.
            let in_their_type = match adds {
                Adds::InTheirType => (CPP_BLOCK + 2.0) * T::HALF_ULP,
                Adds::InF64 => 0.0,
            };
            let relative = in_their_type + n as f64 * f64::EPSILON;
            let result = f64::slice(&outputs[0]).first().copied().unwrap_or(f64::NAN);
            Ok(match what {
                What::Elements(operation) => {
                    let result = T::from_cpp(&outputs[0]).unwrap_or(T::POISON);
                    input.check(operation, result, relative)
                }
                What::Squares | What::Dot => {
                    off_by(result - input.squares, relative * input.squares)
                }
                What::Argmin => off_by(result - input.place as f64, 0.0),
            })
        }),
    }))
}

/// The index of the least element by CUB.
fn place_by_cub<T: Sample + 'static>(input: &Shared<T>) -> Option<cub::Work> {
    let element = T::CUB?;
    let input = input.clone();
    let n = input.values().len();
    let address = input.values().device_address();
    Some(cub::Work {
        operation: cub::Operation::MinimumAt,
        element,
        n,
        input: address,
        check: Box::new(move |result| {
            let place = u64::from_bytes(&result);
            off_by(place.abs_diff(input.get().place) as f64, 0.0)
        }),
    })
}

/// A check of a number with this error and this bound.
fn off_by(error: f64, bound: f64) -> Check {
    Check::new(
        Errors::of(&[error], |_| 0.0),
        Errors {
            rms: bound,
            max: bound,
        },
    )
}
