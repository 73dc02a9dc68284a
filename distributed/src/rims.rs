//! Computes the planes at the cuts of a part before its other planes, so that messages overlap with
//! computation.
//!
//! A round has as many steps as the ghost points allow. The planes that a neighbour needs after a
//! round depend on 3 w planes before it, where w is the width of the ghosts: the ghost planes and
//! the nearest 2 w planes of the rank's own. Along each axis that is cut these 3 w planes, the rim,
//! are computed first, separately, on a stream of high priority. The results are sent to the
//! neighbours, also across edges and corners. Meanwhile the whole part is computed; it receives the
//! messages at the end. The bits are the same, because each point is computed from the same numbers
//! in the same order.

use crate::ghosts::{Fields, Ghosts, Neighbour, pack};
use crate::region::{Region, pieces, points};
use crate::transport::ended;
use crate::{Ahead, Communicator, Error, Side};
use halo_gpu::{Device, DeviceKind, Element, Priority};
use std::fmt;

/// The most that a CPU computes twice, as a fraction of a part.
const MOST: f64 = 0.125;

/// The planes of a rim, which are stepped separately.
pub(crate) trait Strip<T: Element>: Fields<T> {
    /// Takes `count` steps.
    fn steps(&mut self, count: usize) -> Result<(), Error>;
}

/// The rims of a part: one for each side that is cut.
pub(crate) struct Rims<S, const D: usize> {
    urgent: Device,
    sides: Vec<Rim<S, D>>,
}

struct Rim<S, const D: usize> {
    axis: usize,
    side: Side,
    strip: S,
    extents: [usize; D],
    /// The points of the part that the strip is computed from.
    from: Region<D>,
}

impl<S, const D: usize> Rims<S, D> {
    /// The rims of a part with the layout `ghosts`, on `device`. `strip` makes a strip on the given
    /// device, which is cut at both ends of the given axis, with the given number of points along
    /// each axis.
    ///
    /// `None` without cuts, and for blocks with fewer planes than twice the width. `None` as well
    /// if [`with_rims`](Communicator::with_rims) forbids rims, or leaves the choice and they would
    /// not save time.
    pub(crate) fn new(
        communicator: &Communicator,
        device: &Device,
        ghosts: &Ghosts<D>,
        mut strip: impl FnMut(&Device, usize, [usize; D]) -> Result<S, Error>,
    ) -> Result<Option<Self>, Error> {
        let (cut, width) = (ghosts.decomposition(), ghosts.width());
        let axes = || (0..D).filter(|&axis| cut.parts()[axis] > 1);
        let fit = axes().all(|axis| cut.fewest_points(axis) >= 2 * width);
        let wanted = match communicator.rims() {
            Ahead::Never => false,
            Ahead::Always => true,
            Ahead::Auto => {
                // The CPU itself copies messages to ranks of the same machine, so only messages to
                // other machines can overlap with computation.
                let more = axes().map(|axis| (6 * width) as f64 / cut.fewest_points(axis) as f64);
                device.kind() != DeviceKind::Cpu
                    || communicator.is_across_machines() && more.sum::<f64>() <= MOST
            }
        };
        communicator.agree("whether rims are computed ahead", &wanted)?;
        if !wanted || !fit || axes().next().is_none() {
            return Ok(None);
        }
        let urgent = device.new_handle_with(Priority::High)?;
        let whole = ghosts.extents();
        let mut sides = Vec::new();
        for axis in axes() {
            for (planes, side) in ghosts.planes()[axis]
                .into_iter()
                .zip([Side::Low, Side::High])
            {
                if planes == 0 {
                    continue;
                }
                let mut extents = whole;
                extents[axis] = 3 * width;
                let mut from = whole.map(|extent| 0..extent);
                from[axis] = match side {
                    Side::Low => 0..3 * width,
                    Side::High => whole[axis] - 3 * width..whole[axis],
                };
                sides.push(Rim {
                    axis,
                    side,
                    strip: strip(&urgent, axis, extents)?,
                    extents,
                    from,
                });
            }
        }
        Ok(Some(Self { urgent, sides }))
    }

    /// Takes a round of `steps` steps. The ghost points of `part` must be up to date before, and
    /// are up to date after it. The strips take their steps, while `meanwhile` takes the same steps
    /// of the whole part.
    ///
    /// The strips first copy the first `taken` fields of the part; their first `sent` fields are
    /// sent to the neighbours.
    pub(crate) fn round<T: Element, P: Fields<T>>(
        &mut self,
        communicator: &Communicator,
        (part, ghosts): (&mut P, &Ghosts<D>),
        [taken, sent]: [usize; 2],
        steps: usize,
        meanwhile: impl FnOnce(&mut P) -> Result<(), Error>,
    ) -> Result<(), Error>
    where
        S: Strip<T>,
    {
        // All copies come first, because the part's device waits for the copies but not for the
        // steps.
        for Rim { from, strip, .. } in &mut self.sides {
            if let [piece] = &pieces(ghosts.extents(), from)[..] {
                for number in 0..taken {
                    let points = part.field(number).view(piece.clone())?;
                    strip.field_mut(number).view_mut(..)?.copy_across(points)?;
                }
                continue;
            }
            let each = points(from) * size_of::<T>();
            let device = part.field(0).device();
            let bytes = ghosts.room(device, taken * size_of::<T>(), from)?;
            let packed = pack(part, taken, ghosts.extents(), from, bytes)?.move_to(&self.urgent)?;
            for number in 0..taken {
                let bytes = packed.view(number * each..(number + 1) * each)?;
                strip
                    .field_mut(number)
                    .view_mut(..)?
                    .copy_bytes_from(bytes)?;
            }
            ghosts.keep(packed);
        }
        for rim in &mut self.sides {
            rim.strip.steps(steps)?;
        }
        let sides = &self.sides;
        let size = sent * size_of::<T>();
        let mut given = Vec::new();
        for neighbour in ghosts.neighbours() {
            let Some((rim, region)) = sides
                .iter()
                .find_map(|rim| Some((rim, rim.part_of(neighbour)?)))
            else {
                unreachable!("a neighbour lies beyond a side that is cut");
            };
            let bytes = ghosts.room(&self.urgent, size, &region)?;
            let bytes = pack(&rim.strip, sent, rim.extents, &region, bytes)?;
            let room = ghosts.room(&self.urgent, size, neighbour.ghosts())?;
            given.push((bytes.into(), room.into()));
        }
        let arrival = ghosts.begin(communicator, &self.urgent, given)?;
        let done = meanwhile(part);
        ghosts.finish(part, sent, ended(done, arrival)?)
    }
}

impl<S, const D: usize> Rim<S, D> {
    /// The region of the strip that is sent to a neighbour; `None` unless the neighbour lies beyond
    /// this side.
    fn part_of(&self, neighbour: &Neighbour<D>) -> Option<Region<D>> {
        if neighbour.side(self.axis) != Some(self.side) {
            return None;
        }
        let mut region = neighbour.rim().clone();
        let first = self.from[self.axis].start;
        let along = &mut region[self.axis];
        *along = along.start - first..along.end - first;
        Some(region)
    }
}

impl<S, const D: usize> fmt::Debug for Rims<S, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rims")
            .field("sides", &self.sides.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::Rims;
    use crate::ghosts::Ghosts;
    use crate::{Ahead, Decomposition, run};
    use halo_gpu::Device;

    /// The number of rims of the first block.
    fn sides(device: fn() -> Device, ahead: Ahead, parts: [usize; 3], width: usize) -> usize {
        let sides = run(parts.iter().product(), |communicator| {
            let communicator = communicator.with_rims(ahead);
            let cut = Decomposition::new([16; 3], parts)?.periodic(0)?;
            let ghosts = Ghosts::new(&communicator, cut, width)?;
            let strip = |_: &Device, axis: usize, extents: [usize; 3]| {
                assert_eq!(extents[axis], 3 * width);
                Ok(())
            };
            let rims = Rims::new(&communicator, &device(), &ghosts, strip)?;
            Ok(rims.map_or(0, |rims| rims.sides.len()))
        });
        sides.expect("no rank fails")[0]
    }

    #[test]
    fn each_cut_side_has_a_rim_where_that_is_asked_for() {
        for parts in [[1, 1, 2], [1, 2, 2], [2, 2, 1], [2, 2, 2]] {
            // The first axis is periodic, so a block has two sides that are cut.
            let cut = parts.iter().filter(|&&parts| parts > 1).count();
            let all = cut + usize::from(parts[0] > 1);
            assert_eq!(
                sides(Device::cpu, Ahead::Always, parts, 4),
                all,
                "{parts:?}"
            );
            assert_eq!(sides(Device::emulator, Ahead::Auto, parts, 4), all);
            assert_eq!(sides(Device::emulator, Ahead::Never, parts, 4), 0);
            // All ranks are on one machine; then, the blocks are too thin.
            assert_eq!(sides(Device::cpu, Ahead::Auto, parts, 1), 0);
            assert_eq!(sides(Device::cpu, Ahead::Always, parts, 5), 0);
        }
        assert_eq!(sides(Device::cpu, Ahead::Always, [1; 3], 1), 0);
    }
}
