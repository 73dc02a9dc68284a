//! Blocks with ghost points around them.

use crate::region::{Region, pieces, points};
use crate::{Block, Communicator, Decomposition, Error, Expected, Parcel, Side};
use halo_gpu::{Buffer, Device, DeviceKind, Element, Priority};
use std::fmt;

/// A rank's block of a field, on its device, with ghost points: copies of the nearest points of
/// the blocks around it.
///
/// There are `width` planes of them on each side on which the block has a neighbour, and none
/// at the ends of the grid. [`exchange`](Self::exchange) brings them up to date, those in the
/// corners included.
///
/// ```
/// use halo_distributed::{Decomposition, Error, Ghosted};
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), Error> {
/// // Eight numbers in a ring, four on each of two ranks.
/// let blocks = halo_distributed::run(2, |communicator| {
///     let ring = Decomposition::slabs([8], 2)?.periodic(0)?;
///     let number = |[i]: [usize; 1]| i as i32;
///     let mut field = Ghosted::new(&communicator, &Device::cpu(), ring, 2, number)?;
///     field.exchange(&communicator)?;
///     Ok(field.buffer().to_vec()?)
/// })?;
/// assert_eq!(blocks[0], [6, 7, 0, 1, 2, 3, 4, 5]);
/// assert_eq!(blocks[1], [2, 3, 4, 5, 6, 7, 0, 1]);
/// # Ok(())
/// # }
/// ```
pub struct Ghosted<T: Element, const D: usize> {
    decomposition: Decomposition<D>,
    block: Block<D>,
    width: usize,
    /// Planes of ghost points below and above the block, along each axis.
    ghosts: [[usize; 2]; D],
    buffer: Buffer<T>,
    /// What messages go by that are exchanged beside other work.
    beside: Option<Device>,
}

impl<T: Element, const D: usize> Ghosted<T, D> {
    /// The rank's block, each point with what `value` says for its place in the grid. Ghost
    /// points are zero before the first exchange.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same decomposition and width;
    /// [`Error::InvalidParameter`] unless there are as many ranks as blocks, and no block that
    /// has neighbours along an axis is thinner than `width`, which is at least 1;
    /// [`Error::Device`]; as [`Transport::exchange`](crate::Transport::exchange).
    pub fn new(
        communicator: &Communicator,
        device: &Device,
        decomposition: Decomposition<D>,
        width: usize,
        mut value: impl FnMut([usize; D]) -> T,
    ) -> Result<Self, Error> {
        communicator.agree("the decomposition", &decomposition)?;
        communicator.agree("the width of the ghosts", &width)?;
        communicator.agree("the type of the elements", &std::any::type_name::<T>())?;
        let invalid = |parameter, given: usize, required| Error::InvalidParameter {
            operation: "a field with ghost points",
            parameter,
            given: given.to_string(),
            required,
        };
        let (rank, ranks) = (communicator.rank(), communicator.size());
        if decomposition.ranks() != ranks {
            let required = format!("{ranks}, the number of ranks");
            return Err(invalid(
                "the number of blocks",
                decomposition.ranks(),
                required,
            ));
        }
        let cut = (0..D).filter(|&axis| decomposition.parts()[axis] > 1);
        let thinnest = cut.map(|axis| decomposition.fewest_points(axis)).min();
        let most = thinnest.unwrap_or(usize::MAX);
        if !(1..=most).contains(&width) {
            let required = format!("from 1 to {most}, the points of the thinnest block");
            return Err(invalid("the width of the ghosts", width, required));
        }
        let block = decomposition.block(rank)?;
        let mut ghosts = [[0; 2]; D];
        for (axis, ghosts) in ghosts.iter_mut().enumerate() {
            for (ghosts, side) in ghosts.iter_mut().zip([Side::Low, Side::High]) {
                if decomposition.neighbour(rank, axis, side)?.is_some() {
                    *ghosts = width;
                }
            }
        }
        let extents = with_ghosts(block.extents, &ghosts);
        let len = extents.iter().product::<usize>();
        let mut values = vec![T::zeroed(); len];
        let own = own(block.extents, &ghosts);
        let mut at = block.start;
        for element in pieces(extents, &own).into_iter().flatten() {
            values[element] = value(at);
            advance(&mut at, &block);
        }
        Ok(Self {
            decomposition,
            block,
            width,
            ghosts,
            buffer: device.upload(&values)?,
            beside: None,
        })
    }

    /// Zeros, cut in the same way, on the same device.
    ///
    /// # Errors
    ///
    /// As [`Device::zeros`].
    pub fn zeros_like(&self) -> Result<Self, Error> {
        Ok(Self {
            buffer: self.buffer.device().zeros(self.buffer.len())?,
            beside: self.beside.clone(),
            ..*self
        })
    }

    /// The elements, ghost points included, the first axis fastest.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements, to be computed with.
    #[must_use]
    pub const fn buffer_mut(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }

    /// Which points of the grid are this rank's own.
    #[must_use]
    pub const fn block(&self) -> Block<D> {
        self.block
    }

    /// How the grid is cut.
    #[must_use]
    pub const fn decomposition(&self) -> &Decomposition<D> {
        &self.decomposition
    }

    /// Planes of ghost points on each side that has any.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Planes of ghost points below and above the block, along each axis.
    #[must_use]
    pub const fn ghosts(&self) -> [[usize; 2]; D] {
        self.ghosts
    }

    /// Points along each axis, ghost points included.
    #[must_use]
    pub fn extents(&self) -> [usize; D] {
        with_ghosts(self.block.extents, &self.ghosts)
    }

    /// Brings the ghost points up to date.
    ///
    /// One axis after the other: along the later ones the ghost points of the earlier ones go
    /// too, so that those in the corners are right. On CUDA devices the host waits for nothing,
    /// unless messages go through it.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`].
    pub fn exchange(&mut self, communicator: &Communicator) -> Result<(), Error> {
        let device = self.buffer.device().clone();
        for axis in 0..D {
            self.exchange_along(communicator, axis, &device, |_| Ok(()))?;
        }
        Ok(())
    }

    /// Brings the ghost points up to date while `meanwhile` reads the field and computes what
    /// does not depend on them. On CUDA devices messages then go on a stream of high priority;
    /// where several axes are cut, `meanwhile` is beside the messages along the first of them.
    ///
    /// ```
    /// use halo_distributed::{Decomposition, Error, Ghosted};
    /// use halo_gpu::{Device, elementwise};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let doubled = halo_distributed::run(2, |communicator| {
    ///     let device = Device::cpu();
    ///     let ring = Decomposition::slabs([4], 2)?.periodic(0)?;
    ///     let mut field = Ghosted::new(&communicator, &device, ring, 1, |[i]| i as f32)?;
    ///     let mut twice = device.zeros(4)?;
    ///     field.exchange_beside(&communicator, |values| {
    ///         Ok(elementwise::axpby(1.0, values, 1.0, &mut twice)?)
    ///     })?;
    ///     Ok((field.buffer().to_vec()?, twice.to_vec()?[1..3].to_vec()))
    /// })?;
    /// assert_eq!(doubled[0], (vec![3.0, 0.0, 1.0, 2.0], vec![0.0, 1.0]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange), and what `meanwhile` fails with.
    pub fn exchange_beside(
        &mut self,
        communicator: &Communicator,
        meanwhile: impl FnOnce(&Buffer<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let device = self.buffer.device().clone();
        let beside = match self.beside.take() {
            Some(beside) => beside,
            None if device.kind() == DeviceKind::Cuda => device.beside_with(Priority::High)?,
            None => device,
        };
        let mut meanwhile = Some(meanwhile);
        let ghosts = self.ghosts;
        for axis in (0..D).filter(|&axis| ghosts[axis] != [0; 2]) {
            self.exchange_along(communicator, axis, &beside, |buffer| {
                meanwhile.take().map_or(Ok(()), |work| work(buffer))
            })?;
        }
        self.beside = Some(beside);
        meanwhile.map_or(Ok(()), |work| work(&self.buffer))
    }

    /// Messages along an axis, which go by way of `via`, a handle of the same device.
    fn exchange_along(
        &mut self,
        communicator: &Communicator,
        axis: usize,
        via: &Device,
        meanwhile: impl FnOnce(&Buffer<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (own, width) = (self.block.extents[axis], self.width);
        let [below, above] = self.ghosts[axis];
        let sides = [
            // What goes up and what goes down have different tags: on a ring of two ranks
            // both go to the same neighbour.
            (Side::Low, below, below..below + width, 0..below, 0, 1),
            (
                Side::High,
                above,
                below + own - width.min(own)..below + own,
                below + own..below + own + above,
                1,
                0,
            ),
        ];
        let (mut outgoing, mut incoming, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for (side, ghosts, rim, ghost, down, up) in sides {
            let rank = communicator.rank();
            let neighbour = self.decomposition.neighbour(rank, axis, side)?;
            let Some(peer) = neighbour.filter(|_| ghosts > 0) else {
                continue;
            };
            let region = |along: std::ops::Range<usize>| -> Region<D> {
                std::array::from_fn(|other| {
                    let [low, high] = self.ghosts[other];
                    let extent = self.block.extents[other];
                    match other.cmp(&axis) {
                        std::cmp::Ordering::Less => 0..low + extent + high,
                        std::cmp::Ordering::Equal => along.clone(),
                        std::cmp::Ordering::Greater => low..low + extent,
                    }
                })
            };
            let tag = |direction: u32| 2 * axis as u32 + direction;
            outgoing.push(Parcel {
                to: peer,
                tag: tag(down),
                bytes: self.pack(&region(rim))?.move_to(via)?,
            });
            let ghost = region(ghost);
            incoming.push(Expected {
                from: peer,
                tag: tag(up),
                bytes: points(&ghost) * size_of::<T>(),
            });
            targets.push(ghost);
        }
        let arrival = communicator.begin(via, outgoing, incoming)?;
        meanwhile(&self.buffer)?;
        let device = self.buffer.device().clone();
        for (ghost, bytes) in targets.iter().zip(arrival()?) {
            self.unpack(ghost, &bytes.move_to(&device)?)?;
        }
        Ok(())
    }

    /// The rank's own points, the first axis fastest.
    ///
    /// # Errors
    ///
    /// [`Error::Device`]; as [`Communicator::settle`].
    pub fn own_values(&self, communicator: &Communicator) -> Result<Vec<T>, Error> {
        communicator.settle()?;
        let bytes = self.pack(&self.own())?.into_vec()?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    /// The whole field, on every rank, the first axis fastest.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::MessageLength`] where a
    /// rank gives another number of points; [`Error::Device`].
    pub fn gather(&self, communicator: &Communicator) -> Result<Vec<T>, Error> {
        let own = self.own_values(communicator)?;
        let points = self.decomposition.points();
        let mut whole = vec![T::zeroed(); points.iter().product()];
        for (peer, values) in communicator.all_gather(&own)?.into_iter().enumerate() {
            let Block { start, extents } = self.decomposition.block(peer)?;
            let region: Region<D> =
                std::array::from_fn(|axis| start[axis]..start[axis] + extents[axis]);
            let required = crate::region::points(&region);
            if values.len() != required {
                return Err(Error::MessageLength {
                    rank: communicator.rank(),
                    peer,
                    required: required * size_of::<T>(),
                    given: size_of_val(&values[..]),
                });
            }
            let mut values = &values[..];
            for piece in pieces(points, &region) {
                let (these, others) = values.split_at(piece.len());
                whole[piece].copy_from_slice(these);
                values = others;
            }
        }
        Ok(whole)
    }

    /// The block in the array with its ghost points.
    pub(crate) fn own(&self) -> Region<D> {
        own(self.block.extents, &self.ghosts)
    }

    /// Whether there are no ghost points.
    pub(crate) fn is_whole(&self) -> bool {
        self.ghosts.iter().flatten().all(|&ghosts| ghosts == 0)
    }

    /// The points of a region, one behind the other, on the device.
    fn pack(&self, region: &Region<D>) -> Result<Buffer<u8>, Error> {
        let mut bytes = self
            .buffer
            .device()
            .zeros(points(region) * size_of::<T>())?;
        let mut done = 0;
        for piece in pieces(self.extents(), region) {
            let next = done + piece.len() * size_of::<T>();
            let mut there = bytes.view_mut(done..next)?;
            there.copy_bytes_from(self.buffer.view(piece)?)?;
            done = next;
        }
        Ok(bytes)
    }

    /// Overwrites the points of a region by those that [`pack`](Self::pack) has made.
    fn unpack(&mut self, region: &Region<D>, bytes: &Buffer<u8>) -> Result<(), Error> {
        let mut done = 0;
        for piece in pieces(self.extents(), region) {
            let next = done + piece.len() * size_of::<T>();
            let mut there = self.buffer.view_mut(piece)?;
            there.copy_bytes_from(bytes.view(done..next)?)?;
            done = next;
        }
        Ok(())
    }
}

fn own<const D: usize>(extents: [usize; D], ghosts: &[[usize; 2]; D]) -> Region<D> {
    std::array::from_fn(|axis| ghosts[axis][0]..ghosts[axis][0] + extents[axis])
}

fn with_ghosts<const D: usize>(extents: [usize; D], ghosts: &[[usize; 2]; D]) -> [usize; D] {
    std::array::from_fn(|axis| ghosts[axis][0] + extents[axis] + ghosts[axis][1])
}

/// The point of a block behind this one.
fn advance<const D: usize>(at: &mut [usize; D], block: &Block<D>) {
    for (axis, at) in at.iter_mut().enumerate() {
        *at += 1;
        if *at < block.start[axis] + block.extents[axis] {
            return;
        }
        *at = block.start[axis];
    }
}

impl<T: Element, const D: usize> fmt::Debug for Ghosted<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ghosted")
            .field("block", &self.block)
            .field("ghosts", &self.ghosts)
            .field("buffer", &self.buffer)
            .finish_non_exhaustive()
    }
}
