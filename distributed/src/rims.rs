//! The rows at the cuts of a plate, computed ahead of the others.
//!
//! A round is as many iterations as there are rows of ghost points, k. The rows that the neighbours
//! need after it depend on 3 k rows before it: the ghost rows and the nearest 2 k of the rank's
//! own. These are computed by themselves first, on a stream of high priority, and sent; the whole
//! part is computed meanwhile, and takes what has come at the end. The bits are the same, as each
//! point is computed from the same numbers in the same order.

use crate::{Communicator, Error, Expected, Ghosted, Parcel, Side};
use halo_gpu::heat2d::{Heat2d, Plan};
use halo_gpu::{Axis, Boundary, Buffer, Device, DeviceKind, Grid2, Priority, Scalar, Shape2};
use std::fmt;
use std::ops::Range;

/// The cut sides of a part.
pub(crate) struct Rims<T: Scalar> {
    urgent: Device,
    sides: Vec<Rim<T>>,
}

struct Rim<T: Scalar> {
    peer: usize,
    /// Of what goes to the neighbour, and of what comes from there.
    tags: [u32; 2],
    plan: Plan<T>,
    /// The points of the part that the rim is computed from.
    from: Range<usize>,
    /// The ghost points of the part.
    ghosts: Range<usize>,
    strip: Buffer<T>,
}

impl<T: Scalar> Rims<T> {
    /// Those of `field`, whose iterations are those of `part`. `None` where rims ahead cost more
    /// than they hide, or are not what this is about: on a CPU, which computes one after the
    /// other; for a plate that is cut into columns; for blocks of less than 2 k rows.
    pub(crate) fn new(
        communicator: &Communicator,
        part: &Heat2d,
        field: &Ghosted<T, 2>,
    ) -> Result<Option<Self>, Error> {
        let device = field.buffer().device();
        let is_cpu = device.kind() == DeviceKind::Cpu;
        communicator.agree("whether the device is a CPU", &is_cpu)?;
        let (cut, width) = (field.decomposition(), field.width());
        let [columns, rows] = cut.parts();
        if is_cpu || columns > 1 || rows == 1 || cut.fewest_points(1) < 2 * width {
            return Ok(None);
        }
        let urgent = device.beside_with(Priority::High)?;
        let [nx, ny] = field.extents();
        let strip = Shape2::new(nx, 3 * width);
        let spacing = [Axis::X, Axis::Y].map(|axis| part.grid().spacing(axis));
        let grid = Grid2::new(strip, spacing)?
            .with_ends(Axis::X, part.grid().ends(Axis::X))?
            .with_boundary(Axis::Y, Boundary::DirichletOnPoint)?;
        let heat = part.with_grid(&grid)?;
        let mut sides = Vec::new();
        for (side, first, ghosts, tags) in [
            (Side::Low, 0, 0, [2, 3]),
            (Side::High, ny - 3 * width, ny - width, [3, 2]),
        ] {
            let Some(peer) = cut.neighbour(communicator.rank(), 1, side)? else {
                continue;
            };
            sides.push(Rim {
                peer,
                tags,
                plan: heat.plan(&urgent)?,
                from: nx * first..nx * (first + 3 * width),
                ghosts: nx * ghosts..nx * (ghosts + width),
                strip: urgent.zeros(strip.points()?)?,
            });
        }
        Ok(Some(Self { urgent, sides }))
    }

    /// A round of `field`, whose ghost points are up to date and are so again afterwards;
    /// `iterate` makes the round's iterations on the whole part.
    pub(crate) fn round(
        &mut self,
        communicator: &Communicator,
        field: &mut Ghosted<T, 2>,
        iterate: impl FnOnce(&mut Ghosted<T, 2>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let width = field.width();
        // All copies first: the part's device waits for them alone.
        for rim in &mut self.sides {
            let from = field.buffer().view(rim.from.clone())?;
            rim.strip.view_mut(..)?.copy_across(from)?;
        }
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for rim in &mut self.sides {
            rim.plan.iterate(&mut rim.strip, width)?;
            let points = rim.ghosts.len();
            let mut bytes = self.urgent.zeros(points * size_of::<T>())?;
            let own = rim.strip.view(points..2 * points)?;
            bytes.view_mut(..)?.copy_bytes_from(own)?;
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
        iterate(field)?;
        for (rim, bytes) in self.sides.iter().zip(arrival()?) {
            let mut ghosts = field.buffer_mut().view_mut(rim.ghosts.clone())?;
            ghosts.copy_from_sealed(&mut bytes.seal()?)?;
        }
        Ok(())
    }
}

impl<T: Scalar> fmt::Debug for Rims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rims")
            .field("sides", &self.sides.len())
            .finish_non_exhaustive()
    }
}
