//! Minimum, maximum, argmin and argmax of an array that several ranks share.

use crate::{Communicator, Error};
use halo_gpu::reduction::{Number, Plan, Reduction};
use halo_gpu::{Buffer, Device};

/// The minimum of all ranks' elements, by the rules of [`halo_gpu::reduction::min`].
///
/// ```
/// use halo_distributed::{argmax, min, run};
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let found = run(3, |communicator| {
///     let own = [[4, 9], [-1, 7], [9, 0]][communicator.rank()];
///     let own = Device::cpu().upload(&own)?;
///     Ok((min(&communicator, &own)?, argmax(&communicator, &own)?))
/// })?;
/// // The first of the two nines.
/// assert_eq!(found, [(-1, 1); 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Disagreement`] unless all ranks give the same type; [`Error::Device`], also if no rank
/// has an element; as [`Transport::exchange`](crate::Transport::exchange).
pub fn min<T: Number>(communicator: &Communicator, values: &Buffer<T>) -> Result<T, Error> {
    extreme(communicator, values, Plan::min)
}

/// The maximum of all ranks' elements, by the rules of [`halo_gpu::reduction::max`].
///
/// # Errors
///
/// As [`min`].
pub fn max<T: Number>(communicator: &Communicator, values: &Buffer<T>) -> Result<T, Error> {
    extreme(communicator, values, Plan::max)
}

/// The index of the first minimum, by the rules of [`halo_gpu::reduction::argmin`], in the array
/// that joins the elements of all ranks in the order of the ranks.
///
/// # Errors
///
/// As [`min`].
pub fn argmin<T: Number>(communicator: &Communicator, values: &Buffer<T>) -> Result<u64, Error> {
    position(communicator, values, Plan::argmin)
}

/// The index of the first maximum, in the same array as for [`argmin`].
///
/// # Errors
///
/// As [`min`].
pub fn argmax<T: Number>(communicator: &Communicator, values: &Buffer<T>) -> Result<u64, Error> {
    position(communicator, values, Plan::argmax)
}

fn extreme<T: Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
    reduce: impl Fn(&mut Plan<T>, &Buffer<T>) -> Result<T, halo_gpu::Error>,
) -> Result<T, Error> {
    agree::<T>(communicator)?;
    let own = of_some(values, |values| {
        reduce(&mut Reduction::new().plan(values.device())?, values)
    })?;
    let all: Vec<T> = communicator.all_gather(own.as_slice())?.concat();
    // Equal elements have the same bits, so it does not matter which of them is found.
    let cpu = Device::cpu();
    Ok(reduce(
        &mut Reduction::new().plan(&cpu)?,
        &cpu.upload(&all)?,
    )?)
}

fn position<T: Number>(
    communicator: &Communicator,
    values: &Buffer<T>,
    reduce: impl Fn(&mut Plan<T>, &Buffer<T>) -> Result<u64, halo_gpu::Error>,
) -> Result<u64, Error> {
    agree::<T>(communicator)?;
    let own = of_some(values, |values| {
        let place = reduce(&mut Reduction::new().plan(values.device())?, values)?;
        let here = place as usize;
        let value = values.view(here..here + 1)?.to_vec()?;
        Ok((place, value))
    })?;
    let (places, found): (Vec<u64>, Vec<Vec<T>>) = own.into_iter().unzip();
    let places = communicator.all_gather(&[&[values.len() as u64], &places[..]].concat())?;
    // In the order of the ranks, which is also the order of the elements.
    let all: Vec<T> = communicator.all_gather(&found.concat())?.concat();
    let (mut before, mut global) = (0, Vec::new());
    for of_rank in &places {
        global.extend(of_rank.iter().skip(1).map(|place| before + place));
        before += of_rank.first().copied().unwrap_or(0);
    }
    let cpu = Device::cpu();
    let first = reduce(&mut Reduction::new().plan(&cpu)?, &cpu.upload(&all)?)?;
    global
        .get(first as usize)
        .copied()
        .ok_or(Error::MessageLength {
            rank: communicator.rank(),
            peer: first as usize,
            required: 2 * size_of::<u64>(),
            given: size_of::<u64>(),
        })
}

fn agree<T: Number>(communicator: &Communicator) -> Result<(), Error> {
    communicator.agree("the type of the elements", &std::any::type_name::<T>())
}

/// Reduces the elements of a rank; `None` if it has none.
fn of_some<T: Number, R>(
    values: &Buffer<T>,
    reduce: impl FnOnce(&Buffer<T>) -> Result<R, halo_gpu::Error>,
) -> Result<Option<R>, halo_gpu::Error> {
    if values.is_empty() {
        return Ok(None);
    }
    reduce(values).map(Some)
}
