//! Sum, dot product, mean and norm of arrays that several ranks share.

use crate::{Communicator, Error};
use gpu_kernels::reduction::partition::Partition;
use halo_gpu::reduction::{Number, Reduction, mean_by, norm_by};
use halo_gpu::{Buffer, Element, Scalar};
use std::ops::Range;

/// The sum of the array that joins the elements of all ranks in the order of the ranks. Every rank
/// gets the bits of [`halo_gpu::reduction::sum`] of the whole array on one device.
///
/// The array is summed in chunks, whose bounds depend only on its length. Each rank sums the chunks
/// of which it has all elements: by one kernel launch, without a copy if these are all its
/// elements; on the CPU by one thread. Each rank sends its other elements, at most two chunks'
/// worth, to all ranks.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let values: Vec<f32> = (0..100_000).map(|i| (i as f32).sin()).collect();
/// let one = reduction::sum_of(&Device::cpu(), &values)?;
/// let sums = halo_distributed::run(3, |communicator| {
///     let part = &values.chunks(40_000).nth(communicator.rank()).unwrap_or_default();
///     halo_distributed::sum(&communicator, &Device::cpu().upload(part)?)
/// })?;
/// assert_eq!(sums, [one; 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Disagreement`] unless all ranks give the same type; [`Error::Device`]; as
/// [`Transport::exchange`](crate::Transport::exchange).
pub fn sum<T: Scalar + Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
) -> Result<T, Error> {
    let mut plan = Reduction::new().plan(values.device())?;
    let total = Tree {
        communicator,
        len: values.len(),
        element: T::NAME,
        size: size_of::<T>(),
        chunks: |tiles, range: Range<usize>| {
            let values = part(values, range)?;
            Ok(plan.sums_of_chunks(tiles, &values)?)
        },
        read: |range| Ok(values.view(range)?.to_vec()?),
        take: |total: T, element: T| total + element,
    }
    .total()?;
    Ok(match total {
        Some(total) if is_nan(total) => T::nearest(f64::NAN),
        Some(total) => total,
        None => T::from(0.0),
    })
}

/// The dot product of the arrays of all ranks, with the bits of [`halo_gpu::reduction::dot`] of the
/// whole arrays on one device.
///
/// ```
/// use halo_gpu::{Device, reduction};
///
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let values: Vec<f32> = (0..50_000).map(|i| (i as f32).sin()).collect();
/// let one = reduction::dot_of(&Device::cpu(), &values, &values)?;
/// let several = halo_distributed::run(2, |communicator| {
///     let part = values.chunks(30_000).nth(communicator.rank()).unwrap_or_default();
///     let part = Device::cpu().upload(part)?;
///     halo_distributed::dot(&communicator, &part, &part)
/// })?;
/// assert_eq!(several, [one; 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`sum`]; [`Error::Device`] if the two parts have different lengths or devices. Then the other
/// ranks get [`Error::Gone`].
pub fn dot<T: Scalar + Number<Product = f64>>(
    communicator: &Communicator,
    x: &Buffer<T>,
    y: &Buffer<T>,
) -> Result<f64, Error> {
    let mut plan = Reduction::new().plan(x.device())?;
    // Fails before anything is sent if the parts do not fit.
    let (none_of_x, none_of_y) = (part(x, 0..0)?, part(y, 0..0)?);
    plan.dots_of_chunks(1, &none_of_x, &none_of_y)?;
    if x.len() != y.len() {
        plan.dot(x, y)?;
    }
    let total = Tree {
        communicator,
        len: x.len(),
        element: T::NAME,
        size: size_of::<T>(),
        chunks: |tiles, range: Range<usize>| {
            let (x, y) = (part(x, range.clone())?, part(y, range)?);
            Ok(plan.dots_of_chunks(tiles, &x, &y)?)
        },
        read: |range: Range<usize>| {
            let (x, y) = (x.view(range.clone())?.to_vec()?, y.view(range)?.to_vec()?);
            Ok(x.into_iter().zip(y).map(|(x, y)| [x, y]).collect())
        },
        take: |total: f64, [x, y]: [T; 2]| x.into().mul_add(y.into(), total),
    }
    .total()?;
    Ok(one_nan(total.unwrap_or(0.0)))
}

/// The mean of all ranks' elements, with the bits of [`halo_gpu::reduction::mean`] of the whole
/// array on one device.
///
/// # Errors
///
/// As [`sum`]; [`Error::Device`] if no rank has an element.
pub fn mean<T: Scalar + Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
) -> Result<f64, Error> {
    let n = communicator.all_reduce(values.len() as u64, u64::wrapping_add)?;
    if n == 0 {
        // As for an empty array on one device.
        return Ok(halo_gpu::reduction::mean(values)?);
    }
    mean_by(n, |scale| moment(communicator, values, scale, false))
}

/// The L2 norm of all ranks' elements, with the bits of [`halo_gpu::reduction::norm`] of the whole
/// array on one device.
///
/// # Errors
///
/// As [`sum`].
pub fn norm<T: Scalar + Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
) -> Result<f64, Error> {
    let n = communicator.all_reduce(values.len() as u64, u64::wrapping_add)?;
    if n == 0 {
        return Ok(0.0);
    }
    norm_by(|scale| moment(communicator, values, scale, true))
}

/// The sum of the scaled elements, or of their squares, in f64.
fn moment<T: Scalar + Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
    scale: f64,
    squared: bool,
) -> Result<f64, Error> {
    let mut plan = Reduction::new().plan(values.device())?;
    let total = Tree {
        communicator,
        len: values.len(),
        element: T::NAME,
        size: size_of::<T>(),
        chunks: |tiles, range: Range<usize>| {
            let values = part(values, range)?;
            Ok(if squared {
                plan.sums_squares_of_chunks(scale, tiles, &values)?
            } else {
                plan.sums_f64_of_chunks(scale, tiles, &values)?
            })
        },
        read: |range| Ok(values.view(range)?.to_vec()?),
        take: |total: f64, x: T| {
            let x: f64 = x.into() * scale;
            if squared {
                x.mul_add(x, total)
            } else {
                total + x
            }
        },
    }
    .total()?;
    Ok(one_nan(total.unwrap_or(0.0)))
}

fn is_nan<V: PartialOrd>(value: V) -> bool {
    value.partial_cmp(&value).is_none()
}

fn one_nan(total: f64) -> f64 {
    if total.is_nan() { f64::NAN } else { total }
}

/// The elements of a range at the start of a buffer, where they are aligned, as kernels require.
fn part<T: Element>(values: &Buffer<T>, range: Range<usize>) -> Result<PartOfBuffer<'_, T>, Error> {
    if range == (0..values.len()) {
        return Ok(PartOfBuffer::Whole(values));
    }
    let mut copy = values.device().zeros(range.len())?;
    copy.view_mut(..)?.copy_from(values.view(range)?)?;
    Ok(PartOfBuffer::Copy(copy))
}

enum PartOfBuffer<'a, T: Element> {
    Whole(&'a Buffer<T>),
    Copy(Buffer<T>),
}

impl<T: Element> std::ops::Deref for PartOfBuffer<'_, T> {
    type Target = Buffer<T>;

    fn deref(&self) -> &Buffer<T> {
        match self {
            Self::Whole(buffer) => buffer,
            Self::Copy(buffer) => buffer,
        }
    }
}

/// A type of totals.
trait Total: Element + std::ops::Add<Output = Self> {
    /// The neutral element of addition.
    fn nothing() -> Self;
}

impl<T: Scalar> Total for T {
    fn nothing() -> Self {
        T::from(-0.0)
    }
}

/// The tree in which the elements of all ranks are added, the same as in [`halo_gpu::reduction`].
struct Tree<'a, C, R, F> {
    communicator: &'a Communicator,
    /// The number of this rank's elements.
    len: usize,
    /// The element type; `size` is its size in bytes.
    element: &'static str,
    size: usize,
    /// Returns the totals of chunks of `tiles` tiles each; `None` on the CPU.
    chunks: C,
    /// Reads a range of this rank's elements.
    read: R,
    /// Adds an element to a total.
    take: F,
}

impl<C, R, F> Tree<'_, C, R, F> {
    /// The total of all elements; `None` if no rank has any.
    fn total<E: Element, V: Total>(mut self) -> Result<Option<V>, Error>
    where
        C: FnMut(u32, Range<usize>) -> Result<Option<Vec<V>>, Error>,
        R: Fn(Range<usize>) -> Result<Vec<E>, Error>,
        F: Fn(V, E) -> V,
    {
        let communicator = self.communicator;
        let what = "the type of the elements";
        let lengths = communicator.agree_and_gather(what, &self.element, self.len as u64)?;
        let mut bounds = vec![0];
        let mut len = 0;
        for theirs in lengths {
            len += theirs as usize;
            bounds.push(len);
        }
        if len == 0 {
            return Ok(None);
        }
        let partition = Partition::of(len, self.size);
        let span = partition.span();
        let chunk = |number: usize| number * span..len.min((number + 1) * span);

        let own = bounds[communicator.rank()]..bounds[communicator.rank() + 1];
        let whole = whole_chunks(&own, span, len);
        let elements = if whole.is_empty() {
            0..0
        } else {
            chunk(whole.start).start - own.start..chunk(whole.end - 1).end - own.start
        };
        let totals = match (self.chunks)(partition.tiles(), elements.clone())? {
            Some(totals) => totals,
            None => {
                let elements = (self.read)(elements)?;
                let chunks = elements.chunks(span);
                let of_chunk = |chunk| of_rows(chunk, partition.lanes(), &self.take);
                chunks.map(of_chunk).collect()
            }
        };
        let mut message: Vec<u8> = bytemuck::cast_slice(&totals).to_vec();
        for outside in outside(&own, &whole, span, len) {
            let elements = outside.start - own.start..outside.end - own.start;
            message.extend_from_slice(bytemuck::cast_slice(&(self.read)(elements)?));
        }
        let messages = communicator.all_gather(&message)?;

        // The total of each chunk: from the rank that has the whole chunk, or else of the elements
        // that ranks have sent.
        let chunks = len.div_ceil(span);
        let mut all: Vec<Option<V>> = vec![None; chunks];
        let mut shared: Vec<Vec<E>> = vec![Vec::new(); chunks];
        for (peer, message) in messages.iter().enumerate() {
            let own = bounds[peer]..bounds[peer + 1];
            let whole = whole_chunks(&own, span, len);
            let outside = outside(&own, &whole, span, len);
            let pieces = outside.iter().map(Range::len).sum::<usize>();
            let of_totals = whole.len() * size_of::<V>();
            let required = of_totals + pieces * size_of::<E>();
            if message.len() != required {
                return Err(Error::MessageLength {
                    rank: communicator.rank(),
                    peer,
                    required,
                    given: message.len(),
                });
            }
            let (totals, pieces) = message.split_at(of_totals);
            for (number, total) in whole.zip(bytemuck::pod_collect_to_vec::<_, V>(totals)) {
                all[number] = Some(total);
            }
            let mut pieces = &bytemuck::pod_collect_to_vec::<_, E>(pieces)[..];
            for Range { mut start, end } in outside {
                while start < end {
                    let number = start / span;
                    let here = end.min(chunk(number).end) - start;
                    let (these, others) = pieces.split_at(here);
                    shared[number].extend(these);
                    (pieces, start) = (others, start + here);
                }
            }
        }
        let totals = all
            .into_iter()
            .zip(shared)
            .map(|(total, elements)| match total {
                Some(total) => total,
                None => of_rows(&elements, partition.lanes(), &self.take),
            });
        let totals: Vec<V> = totals.collect();
        Ok(Some(match totals[..] {
            [only] => only,
            // The totals are added like the elements of a chunk.
            _ => of_rows(&totals, Partition::of(1, size_of::<V>()).lanes(), &V::add),
        }))
    }
}

/// The total of a chunk: each lane adds its elements in order, and then neighbouring lanes are
/// added until one is left.
fn of_rows<E: Copy, V: Total>(elements: &[E], lanes: usize, take: &impl Fn(V, E) -> V) -> V {
    // Lanes without elements would change nothing.
    let lanes = lanes.min(elements.len().next_power_of_two());
    let mut totals = vec![V::nothing(); lanes];
    for row in elements.chunks(lanes) {
        for (total, element) in totals.iter_mut().zip(row) {
            *total = take(*total, *element);
        }
    }
    while totals.len() > 1 {
        let pairs = totals.chunks_exact(2);
        totals = pairs.map(|pair| pair[0] + pair[1]).collect();
    }
    totals[0]
}

/// The chunks that lie completely in `own`.
fn whole_chunks(own: &Range<usize>, span: usize, len: usize) -> Range<usize> {
    let first = own.start.div_ceil(span);
    let end = if own.end == len {
        len.div_ceil(span)
    } else {
        own.end / span
    };
    // `first` exceeds `end` if no chunk lies completely in `own`.
    first..end.max(first)
}

/// The elements of `own` outside its whole chunks.
fn outside(own: &Range<usize>, whole: &Range<usize>, span: usize, len: usize) -> Vec<Range<usize>> {
    if whole.is_empty() {
        return vec![own.clone()];
    }
    vec![
        own.start..whole.start * span,
        len.min(whole.end * span)..own.end,
    ]
}
