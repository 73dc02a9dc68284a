//! Rows of reduction: the sum of an array by each of the eight textbook kernels, its
//! sum, minimum and maximum by the single-pass kernels or, on the CPU, by their port, and
//! in the same way its sum of squares, the place of its minimum and its dot product with a
//! copy of itself.
//!
//! What is timed of the textbook kernels is the kernel, which leaves one partial sum
//! per block; their sum on the host is the same for all and no part of it.
//! `reduction_global` destroys its input: it gets a fresh copy before each launch,
//! outside the time. The single-pass kernels and CUB, which all are compared with,
//! leave one result.

use std::cell::{OnceCell, RefCell, RefMut};
use std::rc::Rc;

use halo_gpu::reduction::{
    self, DEFAULT_BLOCK, Extremum, Moment, Number, Operation, Partition, Reduction, SinglePass,
    Summand, Variant, dot_kernel,
};
use halo_gpu::{Buffer, Device, DeviceKind, Errors};

use super::cub;
use super::harness::{self, Check, Family, Metric, Plan, Prepared, Row, Slots, Unit, Work};
use super::size::Size;
use crate::error::Error;

pub(super) const FAMILY: Family = Family {
    name: NAME,
    kernels,
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
    cpu_sizes: &[],
};

const NAME: &str = "reduction";

fn kernels() -> Vec<&'static str> {
    let textbook = Variant::ALL
        .iter()
        .flat_map(|variant| [variant.kernel::<i32>(), variant.kernel::<f32>()]);
    let single_pass = Operation::ALL.iter().flat_map(|&operation| {
        // Unsigned integers are summed by the kernels of signed ones.
        let unsigned = operation != Operation::Sum;
        [operation.kernel::<i32>()]
            .into_iter()
            .chain(unsigned.then(|| operation.kernel::<u32>()))
            .chain([operation.kernel::<i64>()])
            .chain(unsigned.then(|| operation.kernel::<u64>()))
            .chain([operation.kernel::<f32>(), operation.kernel::<f64>()])
    });
    let terms = [
        Moment::Second.kernel::<i32>(),
        Moment::Second.kernel::<u32>(),
        Moment::Second.kernel::<i64>(),
        Moment::Second.kernel::<u64>(),
        Moment::Second.kernel::<f32>(),
        Moment::Second.kernel::<f64>(),
        dot_kernel::<i32>(),
        dot_kernel::<u32>(),
        dot_kernel::<i64>(),
        dot_kernel::<f32>(),
        dot_kernel::<f64>(),
        Extremum::Min.kernel::<i32>(),
        Extremum::Min.kernel::<i64>(),
        Extremum::Min.kernel::<f32>(),
        Extremum::Min.kernel::<f64>(),
    ];
    textbook.chain(single_pass).chain(terms).collect()
}

fn plan(device: &Device, size: Option<&Size>) -> Result<Plan, Error> {
    let n = match size {
        Some(size) => size.length(NAME)?,
        None => 1 << 24,
    };
    let on_cpu = device.kind() == DeviceKind::Cpu;
    let (integers, floats) = (Shared::<i32>::default(), Shared::<f32>::default());
    let doubles = Shared::<f64>::default();
    let (unsigned, wide) = (Shared::<u32>::default(), Shared::<i64>::default());
    let unsigned_wide = Shared::<u64>::default();
    let mut rows: Vec<Box<dyn Row>> = Vec::new();
    if !on_cpu {
        for variant in Variant::ALL {
            let reduction = Reduction::new(variant, DEFAULT_BLOCK)?;
            rows.push(Box::new(Textbook::by(n, reduction, &integers)));
            rows.push(Box::new(Textbook::by(n, reduction, &floats)));
        }
    }
    for operation in Operation::ALL {
        rows.push(Box::new(Whole::by(n, operation, on_cpu, &integers)));
        if operation != Operation::Sum {
            rows.push(Box::new(Whole::by(n, operation, on_cpu, &unsigned)));
        }
        rows.push(Box::new(Whole::by(n, operation, on_cpu, &wide)));
        if operation != Operation::Sum {
            rows.push(Box::new(Whole::by(n, operation, on_cpu, &unsigned_wide)));
        }
        rows.push(Box::new(Whole::by(n, operation, on_cpu, &floats)));
        rows.push(Box::new(Whole::by(n, operation, on_cpu, &doubles)));
    }
    // Each kernel once, in the order of `kernels`.
    let terms = |what| Terms { n, what, on_cpu };
    rows.push(terms(What::Squares).of(&integers));
    rows.push(terms(What::Squares).of(&unsigned));
    rows.push(terms(What::Squares).of(&wide));
    rows.push(terms(What::Squares).of(&unsigned_wide));
    rows.push(terms(What::Squares).of(&floats));
    rows.push(terms(What::Squares).of(&doubles));
    rows.push(terms(What::Dot).of(&integers));
    rows.push(terms(What::Dot).of(&unsigned));
    rows.push(terms(What::Dot).of(&wide));
    rows.push(terms(What::Dot).of(&floats));
    rows.push(terms(What::Dot).of(&doubles));
    rows.push(terms(What::Place).of(&integers));
    rows.push(terms(What::Place).of(&wide));
    rows.push(terms(What::Place).of(&floats));
    rows.push(terms(What::Place).of(&doubles));
    let mut problem = format!(
        "sum, minimum, maximum, sum of squares, place of the minimum and dot product of {n} elements"
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
        working_set_bytes: reduction::bytes::<f32>(n),
        rows,
        left_out: Vec::new(),
        refused: None,
    })
}

/// A type that is reduced, with the input of the benchmark and what its sum may be
/// off by.
trait Sample: Number + PartialOrd {
    const NAME: &'static str;
    /// The type as CUB is asked for it, if it is.
    const CUB: Option<cub::Element>;
    /// What a result holds before the launch.
    const POISON: Self;
    /// The same for a dot product.
    const POISONED_PRODUCT: Self::Product;
    /// What sums are exact in, or as good as.
    type Exact: Copy + std::iter::Sum + Send;
    /// Half a unit in the last place of 1, or 0 where sums do not round.
    const HALF_ULP: f64;
    /// Element `i` of the input.
    fn element(i: usize) -> Self;
    fn exact(self) -> Self::Exact;
    /// How far it is from another value.
    fn off(self, other: Self) -> f64;
    /// How far it is from the sum.
    fn off_sum(self, sum: Self::Exact) -> f64;
    /// The sum as this type has it.
    fn rounded(sum: Self::Exact) -> f64;
    /// The most that this sum may be off by, if that is so much of the sum of the
    /// magnitudes where sums round at all.
    fn bound(relative: f64, sum: Self::Exact) -> f64;
    /// The nearest f64.
    fn nearest(self) -> f64;
    /// The square of an integer, modulo 2⁶⁴.
    fn wrapped_square(self) -> u64;
    /// How far a dot product is from that of these squares: their sum, and the same of
    /// integers modulo 2⁶⁴.
    fn off_dot(product: Self::Product, squares: f64, wrapped: u64) -> f64;
    /// The value that begins these bytes of a result.
    fn from_bytes(bytes: &[u8; 16]) -> Self;
}

/// The value that begins these bytes.
macro_rules! from_bytes {
    () => {
        fn from_bytes(bytes: &[u8; 16]) -> Self {
            let mut own = [0; size_of::<Self>()];
            own.copy_from_slice(&bytes[..size_of::<Self>()]);
            Self::from_ne_bytes(own)
        }
    };
}

/// 32 bits without a visible pattern. Timings must not depend on values, but
/// memory that holds the same everywhere can be faster than real data.
fn scrambled(i: usize) -> u32 {
    let x = (i as u32).wrapping_mul(0x9e37_79b9);
    (x ^ (x >> 15)).wrapping_mul(0x85eb_ca6b)
}

macro_rules! integer {
    ($($type:ident: $cub:expr, |$i:ident| $element:expr;)*) => {$(
        impl Sample for $type {
            const NAME: &'static str = stringify!($type);
            const CUB: Option<cub::Element> = $cub;
            const POISON: Self = 0x5a5a_5a5a;
            const POISONED_PRODUCT: Self::Product = 0x5a5a_5a5a;
            type Exact = i128;
            const HALF_ULP: f64 = 0.0;

            fn element($i: usize) -> Self {
                $element as Self
            }

            fn exact(self) -> i128 {
                self.into()
            }

            fn off(self, other: Self) -> f64 {
                (self.exact() - other.exact()) as f64
            }

            fn nearest(self) -> f64 {
                self as f64
            }

            fn wrapped_square(self) -> u64 {
                // The sign is lost in the square, and the upper half in the wrapping.
                (self as u64).wrapping_mul(self as u64)
            }

            fn off_dot(product: Self::Product, _: f64, wrapped: u64) -> f64 {
                (product as u64).wrapping_sub(wrapped) as f64
            }

            fn off_sum(self, sum: i128) -> f64 {
                // Sums wrap around; the exact ones are taken modulo 2³² or 2⁶⁴ in the
                // same way.
                self.off(sum as Self)
            }

            fn rounded(sum: i128) -> f64 {
                sum as Self as f64
            }

            fn bound(_: f64, _: i128) -> f64 {
                0.0
            }

            from_bytes!();
        }
    )*};
}

/// 64 bits without a visible pattern.
fn scrambled_64(i: usize) -> u64 {
    u64::from(scrambled(i)) << 32 | u64::from(scrambled(!i))
}

integer! {
    i32: Some(cub::Element::I32), |i| scrambled(i);
    u32: None, |i| scrambled(i);
    i64: None, |i| scrambled_64(i);
    u64: None, |i| scrambled_64(i);
}

impl Sample for f32 {
    const NAME: &'static str = "f32";
    const CUB: Option<cub::Element> = Some(cub::Element::F32);
    const POISON: Self = Self::NAN;
    const POISONED_PRODUCT: f64 = f64::NAN;
    type Exact = f64;
    const HALF_ULP: f64 = Self::EPSILON as f64 / 2.0;

    fn element(i: usize) -> Self {
        // All of [0, 1) that 24 bits can tell apart.
        (scrambled(i) >> 8) as Self / 16_777_216.0
    }

    fn exact(self) -> f64 {
        self.into()
    }

    fn off(self, other: Self) -> f64 {
        (self - other).into()
    }

    fn nearest(self) -> f64 {
        self.into()
    }

    fn wrapped_square(self) -> u64 {
        0
    }

    fn off_dot(product: f64, squares: f64, _: u64) -> f64 {
        product - squares
    }

    fn off_sum(self, sum: Self::Exact) -> f64 {
        f64::from(self) - Self::rounded(sum)
    }

    fn rounded(sum: f64) -> f64 {
        sum
    }

    fn bound(relative: f64, sum: f64) -> f64 {
        // No element is negative, so the sum is that of the magnitudes as well.
        relative * sum
    }

    from_bytes!();
}

/// A sum, and what its additions have lost of it.
#[derive(Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl std::iter::Sum for Compensated {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |total, next| {
            // An addition's own error is exact (Knuth's TwoSum).
            let sum = total.sum + next.sum;
            let second = sum - total.sum;
            let lost = (total.sum - (sum - second)) + (next.sum - second);
            Self {
                sum,
                lost: total.lost + next.lost + lost,
            }
        })
    }
}

impl Sample for f64 {
    const NAME: &'static str = "f64";
    const CUB: Option<cub::Element> = Some(cub::Element::F64);
    const POISON: Self = Self::NAN;
    const POISONED_PRODUCT: f64 = f64::NAN;
    type Exact = Compensated;
    const HALF_ULP: f64 = Self::EPSILON / 2.0;

    fn element(i: usize) -> Self {
        // All of [0, 1) that 32 bits can tell apart, and the index in the bits below.
        (Self::from(scrambled(i)) + (i & 0xf_ffff) as Self / 1_048_576.0) / 4_294_967_296.0
    }

    fn exact(self) -> Compensated {
        Compensated {
            sum: self,
            lost: 0.0,
        }
    }

    fn off(self, other: Self) -> f64 {
        self - other
    }

    fn nearest(self) -> f64 {
        self
    }

    fn wrapped_square(self) -> u64 {
        0
    }

    fn off_dot(product: f64, squares: f64, _: u64) -> f64 {
        product - squares
    }

    fn off_sum(self, sum: Self::Exact) -> f64 {
        self - Self::rounded(sum)
    }

    fn rounded(sum: Compensated) -> f64 {
        sum.sum + sum.lost
    }

    fn bound(relative: f64, sum: Compensated) -> f64 {
        // No element is negative, so the sum is that of the magnitudes as well.
        relative * sum.sum
    }

    from_bytes!();
}

/// The input of all rows that reduce `T`, made when the first of them is prepared.
struct Input<T: Sample> {
    values: RefCell<Buffer<T>>,
    /// Sums of so many elements each.
    sums: Vec<T::Exact>,
    /// The least and the greatest element.
    extrema: [T; 2],
    /// Where the least one is first.
    place: u64,
    /// The sum of the squares, and that of integers modulo 2⁶⁴.
    squares: f64,
    wrapped_squares: u64,
}

/// Divides what a block of any row adds up.
const CHUNK: usize = DEFAULT_BLOCK as usize;

impl<T: Sample> Input<T> {
    fn new(device: &Device, n: usize) -> Result<Self, Error> {
        let (mut values, mut sums) = (harness::reserve(n)?, harness::reserve(n.div_ceil(CHUNK))?);
        values.resize(n, T::POISON);
        sums.resize(n.div_ceil(CHUNK), T::POISON.exact());
        // Each thread makes a part of its own, a multiple of CHUNK.
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

    /// The sum of each part of so many elements, which is a multiple of CHUNK.
    fn sums_of(&self, elements: usize) -> impl Iterator<Item = T::Exact> {
        self.sums
            .chunks(elements / CHUNK)
            .map(|chunks| chunks.iter().copied().sum())
    }

    fn sum(&self) -> T::Exact {
        self.sums.iter().copied().sum()
    }

    /// Judges a result, of whose sum the relative error may be this.
    fn check(&self, operation: Operation, value: T, relative: f64) -> Check {
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

/// An input that rows have in common.
struct Shared<T: Sample>(Rc<OnceCell<Input<T>>>);

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
    fn fill(&self, device: &Device, n: usize) -> Result<(), Error> {
        if self.0.get().is_none() {
            // Nobody else sets it: rows are prepared one after the other.
            let _ = self.0.set(Input::new(device, n)?);
        }
        Ok(())
    }

    fn get(&self) -> &Input<T> {
        let Some(input) = self.0.get() else {
            unreachable!("`prepare` has filled it");
        };
        input
    }

    fn values(&self) -> RefMut<'_, Buffer<T>> {
        self.get().values.borrow_mut()
    }
}

/// The reduction of an input by CUB.
fn by_cub<T: Sample + 'static>(operation: Operation, input: &Shared<T>) -> Option<cub::Work> {
    let element = T::CUB?;
    let input = input.clone();
    let n = input.values().len();
    let address = input.values().device_address();
    // Of whichever order: CUB has at least 2^16 threads where there is work for
    // them, each of which adds its share one by one; then halves are added,
    // more than once.
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

fn work<T: Sample>(n: usize) -> Work {
    Work {
        bytes: reduction::bytes::<T>(n),
        flops: reduction::flops(n),
        items: n as u64,
        unit: Unit::Points,
        metric: Metric::Bandwidth,
        slots: Slots::default(),
    }
}

/// A sum by a textbook kernel.
struct Textbook<T: Sample> {
    n: usize,
    reduction: Reduction,
    input: Shared<T>,
}

impl<T: Sample> Textbook<T> {
    fn by(n: usize, reduction: Reduction, input: &Shared<T>) -> Self {
        Self {
            n,
            reduction,
            input: input.clone(),
        }
    }
}

impl<T: Sample + Summand + Into<f64>> Row for Textbook<T> {
    fn name(&self) -> String {
        self.reduction.variant().kernel::<T>().to_owned()
    }

    fn tile(&self) -> String {
        match self.reduction.variant().elements_per_thread() {
            1 => self.reduction.block().to_string(),
            unroll => format!("{unroll} × {}", self.reduction.block()),
        }
    }

    fn work(&self) -> Work {
        work::<T>(self.n)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.n)?;
        let reduction = self.reduction;
        let partials = device.alloc_filled(reduction.partials_len(self.n)?, T::POISON)?;
        let copy = match reduction.variant() {
            Variant::Global => Some(self.input.values().try_clone()?),
            _ => None,
        };
        Ok(Box::new(Partials {
            reduction,
            input: self.input.clone(),
            copy,
            partials,
        }))
    }
}

struct Partials<T: Sample + Summand + Into<f64>> {
    reduction: Reduction,
    input: Shared<T>,
    /// What the values were before a launch destroyed them.
    copy: Option<Buffer<T>>,
    partials: Buffer<T>,
}

impl<T: Sample + Summand + Into<f64>> Drop for Partials<T> {
    fn drop(&mut self) {
        // Other rows need the input as it was. Where that fails, so do they.
        let _ = self.restore();
    }
}

impl<T: Sample + Summand + Into<f64>> Prepared for Partials<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.restore()?;
        self.partials.fill(T::POISON)?;
        self.launch()?;
        let elements = self.reduction.elements_per_block();
        let relative = self.reduction.error_bound(elements, 1.0);
        let input = self.input.get();
        let expected: Vec<f64> = input.sums_of(elements).map(T::rounded).collect();
        let bound = input
            .sums_of(elements)
            .map(|sum| T::bound(relative, sum))
            .fold(0.0, f64::max);
        Ok(Check::new(
            Errors::of(&self.partials.to_vec()?, |b| expected[b]),
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.reduction
            .partials_in_place(&mut self.input.values(), &mut self.partials)
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        if let Some(copy) = &self.copy {
            self.input.values().copy_from(copy)?;
        }
        Ok(self.copy.is_some())
    }

    fn cub(&self) -> Option<cub::Work> {
        by_cub(Operation::Sum, &self.input)
    }
}

/// A reduction in a single pass, by a kernel or by the port.
struct Whole<T: Sample> {
    n: usize,
    operation: Operation,
    on_cpu: bool,
    input: Shared<T>,
}

impl<T: Sample> Whole<T> {
    fn by(n: usize, operation: Operation, on_cpu: bool, input: &Shared<T>) -> Self {
        Self {
            n,
            operation,
            on_cpu,
            input: input.clone(),
        }
    }
}

impl<T: Sample> Row for Whole<T> {
    fn name(&self) -> String {
        if self.on_cpu {
            return format!("reduction, CPU port, {} {}", self.operation, T::NAME);
        }
        self.operation.kernel::<T>().to_owned()
    }

    fn tile(&self) -> String {
        let partition = Partition::of(self.n, size_of::<T>());
        format!("{} × {}", partition.tiles(), partition.lanes())
    }

    fn work(&self) -> Work {
        work::<T>(self.n)
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.n)?;
        Ok(Box::new(Total {
            operation: self.operation,
            reductions: SinglePass::new(self.input.values().device()),
            input: self.input.clone(),
            result: device.alloc_filled(1, T::POISON)?,
        }))
    }
}

struct Total<T: Sample> {
    operation: Operation,
    reductions: SinglePass<T>,
    input: Shared<T>,
    result: Buffer<T>,
}

impl<T: Sample> Prepared for Total<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.result.fill(T::POISON)?;
        self.launch()?;
        let n = self.input.values().len();
        let relative = SinglePass::<T>::error_bound(n, 1.0);
        let value = self.result.to_vec()?[0];
        Ok(self.input.get().check(self.operation, value, relative))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.reductions
            .launch(self.operation, &self.input.values(), &mut self.result)
    }

    fn cub(&self) -> Option<cub::Work> {
        by_cub(self.operation, &self.input)
    }
}

/// What a row of terms computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Squares,
    Dot,
    Place,
}

/// A reduction of terms, by a kernel or by the port.
struct Terms {
    n: usize,
    what: What,
    on_cpu: bool,
}

impl Terms {
    fn of<T: Sample + 'static>(self, input: &Shared<T>) -> Box<dyn Row> {
        Box::new(TermsOf {
            terms: self,
            input: input.clone(),
        })
    }
}

struct TermsOf<T: Sample> {
    terms: Terms,
    input: Shared<T>,
}

impl<T: Sample + 'static> Row for TermsOf<T> {
    fn name(&self) -> String {
        let (kernel, port) = match self.terms.what {
            What::Squares => (Moment::Second.kernel::<T>(), "sum of squares"),
            What::Dot => (dot_kernel::<T>(), "dot product"),
            What::Place => (Extremum::Min.kernel::<T>(), "place of the min"),
        };
        if self.terms.on_cpu {
            return format!("reduction, CPU port, {port} {}", T::NAME);
        }
        kernel.to_owned()
    }

    fn tile(&self) -> String {
        let partition = Partition::of(self.terms.n, size_of::<T>());
        format!("{} × {}", partition.tiles(), partition.lanes())
    }

    fn work(&self) -> Work {
        let one = work::<T>(self.terms.n);
        match self.terms.what {
            What::Squares => Work {
                flops: 2 * one.items,
                ..one
            },
            What::Dot => Work {
                bytes: 2 * one.bytes,
                flops: 2 * one.items,
                ..one
            },
            What::Place => one,
        }
    }

    fn prepare(&self, device: &Device) -> Result<Box<dyn Prepared>, Error> {
        self.input.fill(device, self.terms.n)?;
        let copy = match self.terms.what {
            What::Dot => Some(self.input.values().try_clone()?),
            What::Squares | What::Place => None,
        };
        Ok(Box::new(TermsReady {
            what: self.terms.what,
            reductions: SinglePass::new(device),
            input: self.input.clone(),
            copy,
            squares: device.alloc_filled(1, f64::NAN)?,
            product: device.alloc_filled(1, T::POISONED_PRODUCT)?,
            place: device.alloc_filled(1, u64::MAX)?,
        }))
    }
}

struct TermsReady<T: Sample> {
    what: What,
    reductions: SinglePass<T>,
    input: Shared<T>,
    /// The other factor of a dot product.
    copy: Option<Buffer<T>>,
    squares: Buffer<f64>,
    product: Buffer<T::Product>,
    place: Buffer<u64>,
}

impl<T: Sample> Prepared for TermsReady<T> {
    fn check(&mut self) -> Result<Check, Error> {
        self.squares.fill(f64::NAN)?;
        self.product.fill(T::POISONED_PRODUCT)?;
        self.place.fill(u64::MAX)?;
        self.launch()?;
        let input = self.input.get();
        // Once for the reduction and once for the reference.
        let n = input.values.borrow().len();
        let bound = 2.0 * SinglePass::<T>::f64_error_bound(n, input.squares);
        let (error, bound) = match self.what {
            What::Squares => (self.squares.to_vec()?[0] - input.squares, bound),
            What::Dot => {
                let product = self.product.to_vec()?[0];
                let error = T::off_dot(product, input.squares, input.wrapped_squares);
                (error, if T::HALF_ULP == 0.0 { 0.0 } else { bound })
            }
            What::Place => (self.place.to_vec()?[0].abs_diff(input.place) as f64, 0.0),
        };
        Ok(Check::new(
            Errors::of(&[error], |_| 0.0),
            Errors {
                rms: bound,
                max: bound,
            },
        ))
    }

    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        let values = self.input.values();
        match self.what {
            What::Squares => {
                self.reductions
                    .launch_moment(Moment::Second, 1.0, &values, &mut self.squares)
            }
            What::Dot => {
                let copy = self.copy.as_ref().unwrap_or(&values);
                self.reductions
                    .launch_dot(&values, copy, &mut self.product)
            }
            What::Place => {
                self.reductions
                    .launch_position(Extremum::Min, &values, &mut self.place)
            }
        }
    }

    fn cub(&self) -> Option<cub::Work> {
        if self.what != What::Place {
            return None;
        }
        let element = T::CUB?;
        let input = self.input.clone();
        let n = input.values().len();
        let address = input.values().device_address();
        Some(cub::Work {
            operation: cub::Operation::MinimumAt,
            element,
            n,
            input: address,
            check: Box::new(move |result| {
                let place = u64::from_bytes(&result);
                let error = place.abs_diff(input.get().place) as f64;
                Check::new(
                    Errors::of(&[error], |_| 0.0),
                    Errors { rms: 0.0, max: 0.0 },
                )
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_row_for_every_kernel() {
        let names = [
            "reduction_global_i32",
            "reduction_global_f32",
            "reduction_shared_i32",
            "reduction_shared_f32",
            "reduction_shared_unroll4_i32",
            "reduction_shared_unroll4_f32",
            "reduction_shared_unroll4_dynamic_i32",
            "reduction_shared_unroll4_dynamic_f32",
            "reduction_single_pass_sum_i32",
            "reduction_single_pass_sum_i64",
            "reduction_single_pass_sum_f32",
            "reduction_single_pass_sum_f64",
            "reduction_single_pass_min_i32",
            "reduction_single_pass_min_u32",
            "reduction_single_pass_min_i64",
            "reduction_single_pass_min_u64",
            "reduction_single_pass_min_f32",
            "reduction_single_pass_min_f64",
            "reduction_single_pass_max_i32",
            "reduction_single_pass_max_u32",
            "reduction_single_pass_max_i64",
            "reduction_single_pass_max_u64",
            "reduction_single_pass_max_f32",
            "reduction_single_pass_max_f64",
            "reduction_moment_i32",
            "reduction_moment_u32",
            "reduction_moment_i64",
            "reduction_moment_u64",
            "reduction_moment_f32",
            "reduction_moment_f64",
            "reduction_dot_i32",
            "reduction_dot_u32",
            "reduction_dot_i64",
            "reduction_dot_f32",
            "reduction_dot_f64",
            "reduction_arg_extremum_u32",
            "reduction_arg_extremum_u64",
            "reduction_arg_extremum_f32",
            "reduction_arg_extremum_f64",
        ];
        assert_eq!(kernels(), names);
        let rows = plan(&Device::emulator(), None).unwrap().rows;
        assert_eq!(rows.iter().map(|row| row.name()).collect::<Vec<_>>(), names);
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
        /// Eight bytes or four, and nothing that matters behind them.
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
                // Of a type that it is not asked for, or what it has no function for.
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
        // Enough for several blocks of every kernel.
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
            // Again, on what the first launch has left.
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
