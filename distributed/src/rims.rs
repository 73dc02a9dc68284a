//! The planes at the cuts of a part, computed ahead of the others.
//!
//! A round has as many steps as the ghost points allow. The planes that the neighbours need after
//! it depend on 3 w planes before it, where w is the width of the ghosts: the ghost planes and the
//! nearest 2 w of the rank's own. These are computed first, separately, on a stream of high
//! priority, and sent. The whole part is computed meanwhile, and receives the messages at the end.
//! The bits are the same, since each point is computed from the same numbers in the same order.

use crate::ghosts::{Fields, Ghosts};
use crate::{Communicator, Error, Expected, Parcel, Side};
use halo_gpu::{Device, DeviceKind, Element, Priority};
use std::fmt;
use std::ops::Range;

/// Planes that are taken from step to step by themselves.
pub(crate) trait Strip<T: Element>: Fields<T> {
    /// Takes the steps.
    fn steps(&mut self, count: usize) -> Result<(), Error>;
}

/// The cut sides of a part.
pub(crate) struct Rims<S> {
    urgent: Device,
    sides: Vec<Rim<S>>,
}

struct Rim<S> {
    peer: usize,
    /// The tags of the messages to the neighbour and from it.
    tags: [u32; 2],
    strip: S,
    /// The points of the part that the strip is computed from.
    from: Range<usize>,
    /// The ghost points of the part.
    ghosts: Range<usize>,
}

impl<S> Rims<S> {
    /// The rims of a part that is cut as `ghosts` says, on `device`. `strip` makes a strip with
    /// the given number of points along each axis, on the device it is given.
    ///
    /// `None` where rims ahead would hide less than they cost, or do not apply: on a CPU, which
    /// computes one after the other; where an axis other than the last is cut; for blocks of fewer
    /// planes than twice the width.
    pub(crate) fn new<const D: usize>(
        communicator: &Communicator,
        device: &Device,
        ghosts: &Ghosts<D>,
        mut strip: impl FnMut(&Device, [usize; D]) -> Result<S, Error>,
    ) -> Result<Option<Self>, Error> {
        let is_cpu = device.kind() == DeviceKind::Cpu;
        communicator.agree("whether the device is a CPU", &is_cpu)?;
        let (cut, width, last) = (ghosts.decomposition(), ghosts.width(), D - 1);
        let (parts, others) = (cut.parts()[last], &cut.parts()[..last]);
        if is_cpu
            || parts == 1
            || others.iter().any(|&parts| parts > 1)
            || cut.fewest_points(last) < 2 * width
        {
            return Ok(None);
        }
        let urgent = device.beside_with(Priority::High)?;
        let mut extents = ghosts.extents();
        let plane: usize = extents[..last].iter().product();
        let planes = std::mem::replace(&mut extents[last], 3 * width);
        let mut sides = Vec::new();
        for (side, first, ghosts, tags) in [
            (Side::Low, 0, 0, [2, 3]),
            (Side::High, planes - 3 * width, planes - width, [3, 2]),
        ] {
            let Some(peer) = cut.neighbour(communicator.rank(), last, side)? else {
                continue;
            };
            sides.push(Rim {
                peer,
                tags,
                strip: strip(&urgent, extents)?,
                from: plane * first..plane * (first + 3 * width),
                ghosts: plane * ghosts..plane * (ghosts + width),
            });
        }
        Ok(Some(Self { urgent, sides }))
    }

    /// Takes a round of `part`, whose ghost points are up to date before it and after it: the
    /// strips take `steps` steps, while `meanwhile` takes the same steps of the whole part.
    ///
    /// The strips first copy the part's first `taken` fields; the first `sent` fields of the
    /// strips go to the neighbours.
    pub(crate) fn round<T: Element, P: Fields<T>>(
        &mut self,
        communicator: &Communicator,
        part: &mut P,
        [taken, sent]: [usize; 2],
        steps: usize,
        meanwhile: impl FnOnce(&mut P) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        S: Strip<T>,
    {
        // All copies first: the part's device waits for them alone.
        for rim in &mut self.sides {
            for number in 0..taken {
                let from = part.field(number).view(rim.from.clone())?;
                let strip = rim.strip.field_mut(number);
                strip.view_mut(..)?.copy_across(from)?;
            }
        }
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for rim in &mut self.sides {
            rim.strip.steps(steps)?;
            let (points, size) = (rim.ghosts.len(), size_of::<T>());
            let mut bytes = self.urgent.zeros(sent * points * size)?;
            for number in 0..sent {
                let own = rim.strip.field(number).view(points..2 * points)?;
                let there = number * points * size..(number + 1) * points * size;
                bytes.view_mut(there)?.copy_bytes_from(own)?;
            }
            let ([to, from], expected) = (rim.tags, bytes.len());
            outgoing.push(Parcel {
                to: rim.peer,
                tag: to,
                bytes,
            });
            incoming.push(Expected {
                from: rim.peer,
                tag: from,
                bytes: expected,
            });
        }
        let arrival = communicator.begin(&self.urgent, outgoing, incoming)?;
        meanwhile(part)?;
        let device = part.field(0).device().clone();
        for (rim, bytes) in self.sides.iter().zip(arrival()?) {
            let bytes = bytes.move_to(&device)?;
            let size = rim.ghosts.len() * size_of::<T>();
            for number in 0..sent {
                let mut ghosts = part.field_mut(number).view_mut(rim.ghosts.clone())?;
                ghosts.copy_bytes_from(bytes.view(number * size..(number + 1) * size)?)?;
            }
        }
        Ok(())
    }
}

impl<S> fmt::Debug for Rims<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rims")
            .field("sides", &self.sides.len())
            .finish_non_exhaustive()
    }
}
