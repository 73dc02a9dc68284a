//! The common input of all rows of a type, and the check of their results.

use std::cell::{OnceCell, RefCell, RefMut};
use std::rc::Rc;

use gpu_kernels::reduction::geometry::DEFAULT_BLOCK;
use halo_gpu::reduction::Operation;
use halo_gpu::{Buffer, Device, Errors};

use super::samples::{Compensated, Sample};
use crate::cub::work as cub;
use crate::memory;
use crate::check::Check;
use crate::error::Error;

/// The input of all rows that reduce `T`, made when the first of them is prepared.
pub(super) struct Input<T: Sample> {
    pub(super) values: RefCell<Buffer<T>>,
    /// Sums of CHUNK elements each.
    sums: Vec<T::Exact>,
    /// The least and the greatest element.
    extrema: [T; 2],
    /// The index of the first least element.
    pub(super) place: u64,
    /// The sum of the squares in f64, and of integers' squares modulo 2⁶⁴.
    pub(super) squares: f64,
    pub(super) wrapped_squares: u64,
}

/// Every row's block adds up a multiple of this many elements.
const CHUNK: usize = DEFAULT_BLOCK as usize;

impl<T: Sample> Input<T> {
    pub(super) fn new(device: &Device, n: usize) -> Result<Self, Error> {
        let (mut values, mut sums) = (memory::reserve(n)?, memory::reserve(n.div_ceil(CHUNK))?);
        values.resize(n, T::POISON);
        sums.resize(n.div_ceil(CHUNK), T::POISON.exact());
        // Each thread makes one part, a multiple of CHUNK.
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
        // No element is NaN.
        let extrema = values.iter().fold([values[0]; 2], |[least, greatest], &value| {
            [
                if value < least { value } else { least },
                if value > greatest { value } else { greatest },
            ]
        });
        let place = values.iter().position(|&value| value == extrema[0]);
        let squares: Compensated = values
            .iter()
            .map(|&value| (value.nearest() * value.nearest()).exact())
            .sum();
        let wrapped_squares = values.iter().fold(0_u64, |sum, &value| {
            sum.wrapping_add(value.wrapped_square())
        });
        Ok(Self {
            values: RefCell::new(device.upload(&values)?),
            sums,
            extrema,
            place: place.map_or(u64::MAX, |place| place as u64),
            squares: f64::rounded(squares),
            wrapped_squares,
        })
    }

    /// The sums of consecutive parts of `elements` elements, a multiple of CHUNK.
    pub(super) fn sums_of(&self, elements: usize) -> impl Iterator<Item = T::Exact> {
        self.sums
            .chunks(elements / CHUNK)
            .map(|chunks| chunks.iter().copied().sum())
    }

    pub(super) fn sum(&self) -> T::Exact {
        self.sums.iter().copied().sum()
    }

    /// Checks a result. `relative` bounds the relative error of a sum.
    pub(super) fn check(&self, operation: Operation, value: T, relative: f64) -> Check {
        let (error, bound) = match operation {
            Operation::Sum => {
                let sum = self.sum();
                (value.off_sum(sum), T::bound(relative, sum))
            }
            Operation::Min => (value.off(self.extrema[0]), 0.0),
            Operation::Max => (value.off(self.extrema[1]), 0.0),
        };
        Check::new(
            Errors::of(&[error], |_| 0.0),
            Errors {
                rms: bound,
                max: bound,
            },
        )
    }
}

/// The common input of several rows.
pub(super) struct Shared<T: Sample>(Rc<OnceCell<Input<T>>>);

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
    pub(super) fn fill(&self, device: &Device, n: usize) -> Result<(), Error> {
        if self.0.get().is_none() {
            // Rows are prepared one after the other: nothing else sets it.
            let _ = self.0.set(Input::new(device, n)?);
        }
        Ok(())
    }

    pub(super) fn get(&self) -> &Input<T> {
        let Some(input) = self.0.get() else {
            unreachable!("`prepare` has filled it");
        };
        input
    }

    pub(super) fn values(&self) -> RefMut<'_, Buffer<T>> {
        self.get().values.borrow_mut()
    }
}

/// The reduction of an input by CUB.
pub(super) fn by_cub<T: Sample + 'static>(
    operation: Operation,
    input: &Shared<T>,
) -> Option<cub::Work> {
    let element = T::CUB?;
    let input = input.clone();
    let n = input.values().len();
    let address = input.values().device_address();
    // In any order: CUB has at least 2^16 threads for a large array, each of which adds its share
    // one by one; then halves are added, more than once.
    let additions = n as f64 / 65_536.0 + 64.0;
    Some(cub::Work {
        operation: match operation {
            Operation::Sum => cub::Operation::Sum,
            Operation::Min => cub::Operation::Minimum,
            Operation::Max => cub::Operation::Maximum,
        },
        element,
        n,
        input: address,
        check: Box::new(move |result| {
            input
                .get()
                .check(operation, T::from_bytes(&result), additions * T::HALF_ULP)
        }),
    })
}
