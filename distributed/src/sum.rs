//! The sum of an array that is shared by ranks.

use crate::{Communicator, Error};
use gpu_kernels::reduction::partition::{ALONE, Partition};
use halo_gpu::reduction::{Number, Plan, Reduction};
use halo_gpu::{Buffer, Device, Scalar, elementwise};
use std::ops::Range;

/// The sum of all ranks' elements, one rank's behind the other's: on every rank the bits that
/// [`halo_gpu::reduction::sum`] gives for the whole array on one device.
///
/// That sum is one of chunks, whose bounds depend on the length of the whole array alone. Each
/// rank sums the chunks that it has all elements of. The elements of the others, at most two
/// chunks' worth of each rank, go to all ranks.
///
/// The kernels sum all of a rank's chunks at once, without a copy where these are all of its
/// elements. On the CPU chunks of arrays of more than about four million elements are summed
/// tile by tile: right, and slower than on one device.
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
    communicator.agree("the type of the elements", &T::NAME)?;
    let mut bounds = vec![0];
    let mut len = 0;
    for theirs in communicator.all_gather(&[values.len() as u64])? {
        len += theirs.iter().sum::<u64>() as usize;
        bounds.push(len);
    }
    let partition = Partition::of(len, size_of::<T>());
    let mut summing = Summing::new(values.device(), partition)?;
    let span = partition.span();
    let chunk = |number: usize| number * span..len.min((number + 1) * span);

    let own = bounds[communicator.rank()]..bounds[communicator.rank() + 1];
    let whole = whole_chunks(&own, span, len);
    let elements = if whole.is_empty() {
        0..0
    } else {
        chunk(whole.start).start - own.start..chunk(whole.end - 1).end - own.start
    };
    let totals = match summing.chunks(values, elements, partition.tiles())? {
        Some(totals) => totals,
        None => {
            let one = |number| {
                let Range { start, end } = chunk(number);
                summing.rows(values, start - own.start..end - own.start)
            };
            whole.clone().map(one).collect::<Result<Vec<_>, _>>()?
        }
    };
    let totals = communicator.all_gather(&totals)?;

    let mut pieces = Vec::new();
    for outside in outside(&own, &whole, span, len) {
        let view = values.view(outside.start - own.start..outside.end - own.start)?;
        pieces.extend(view.to_vec()?);
    }
    let pieces = communicator.all_gather(&pieces)?;

    // The total of each chunk: a rank's, or of the elements that came.
    let chunks = len.div_ceil(span);
    let mut all: Vec<Option<T>> = vec![None; chunks];
    let mut shared: Vec<Vec<T>> = vec![Vec::new(); chunks];
    for (peer, (totals, pieces)) in totals.iter().zip(&pieces).enumerate() {
        let own = bounds[peer]..bounds[peer + 1];
        let whole = whole_chunks(&own, span, len);
        let outside = outside(&own, &whole, span, len);
        let required = outside.iter().map(Range::len).sum::<usize>();
        if totals.len() != whole.len() || pieces.len() != required {
            return Err(Error::MessageLength {
                rank: communicator.rank(),
                peer,
                required: (whole.len() + required) * size_of::<T>(),
                given: (totals.len() + pieces.len()) * size_of::<T>(),
            });
        }
        for (number, total) in whole.zip(totals) {
            all[number] = Some(*total);
        }
        let mut pieces = &pieces[..];
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
    let mut totals = Vec::with_capacity(chunks);
    for (total, elements) in all.into_iter().zip(shared) {
        totals.push(match total {
            Some(total) => total,
            None => {
                let elements = values.device().upload(&elements)?;
                summing.rows(&elements, 0..elements.len())?
            }
        });
    }
    match totals[..] {
        [only] => Ok(only),
        _ => {
            let totals = values.device().upload(&totals)?;
            Ok(summing.rows(&totals, 0..totals.len())?)
        }
    }
}

/// The chunks of which `own` has all elements.
fn whole_chunks(own: &Range<usize>, span: usize, len: usize) -> Range<usize> {
    let first = own.start.div_ceil(span);
    let end = if own.end == len {
        len.div_ceil(span)
    } else {
        own.end / span
    };
    // With no element of a chunk of its own at the end of the array there is none.
    first..end.max(first)
}

/// The elements of `own` that are in no whole chunk.
fn outside(own: &Range<usize>, whole: &Range<usize>, span: usize, len: usize) -> Vec<Range<usize>> {
    if whole.is_empty() {
        return vec![own.clone()];
    }
    vec![
        own.start..whole.start * span,
        len.min(whole.end * span)..own.end,
    ]
}

/// Sums in the order of the tree of a longer array.
struct Summing<T: Scalar + Number> {
    plan: Plan<T>,
    lanes: usize,
}

impl<T: Scalar + Number> Summing<T> {
    fn new(device: &Device, partition: Partition) -> Result<Self, Error> {
        Ok(Self {
            plan: Reduction::new().plan(device)?,
            lanes: partition.lanes(),
        })
    }

    /// The sums of whole chunks, by one launch; `None` on the CPU.
    fn chunks(
        &mut self,
        values: &Buffer<T>,
        elements: Range<usize>,
        tiles: u32,
    ) -> Result<Option<Vec<T>>, Error> {
        if elements == (0..values.len()) {
            return Ok(self.plan.sums_of_chunks(tiles, values)?);
        }
        // Kernels take whole buffers, which are aligned.
        let mut whole = values.device().zeros(elements.len())?;
        whole.view_mut(..)?.copy_from(values.view(elements)?)?;
        Ok(self.plan.sums_of_chunks(tiles, &whole)?)
    }

    /// The sum of rows of lanes: each lane's elements one after the other, and then
    /// neighbouring lanes.
    fn rows(&mut self, values: &Buffer<T>, range: Range<usize>) -> Result<T, Error> {
        let device = values.device();
        if range.len() <= ALONE * self.lanes {
            // So many are one chunk for the plan as well.
            let mut chunk = device.zeros(range.len())?;
            chunk.view_mut(..)?.copy_from(values.view(range)?)?;
            return Ok(self.plan.sum(&chunk)?);
        }
        // -0 is what changes no sum.
        let mut lanes = device.alloc_filled(self.lanes, T::from(-0.0))?;
        let mut row = device.alloc_filled(self.lanes, T::from(-0.0))?;
        let one = T::from(1.0);
        for start in range.clone().step_by(self.lanes) {
            let end = range.end.min(start + self.lanes);
            row.view_mut(..end - start)?
                .copy_from(values.view(start..end)?)?;
            row.view_mut(end - start..)?.fill(T::from(-0.0))?;
            elementwise::axpby(one, &row, one, &mut lanes)?;
        }
        Ok(self.plan.sum(&lanes)?)
    }
}
