//! [`Ghosted`]: a rank's block of a field with ghost points, and the exchange of these points.

use crate::in_place::InPlace;
use crate::region::{Region, contiguous, pieces, points, rows};
use crate::spare::Spare;
use crate::transport::ended;
use crate::{
    Arrival, Arrived, Block, Communicator, Decomposition, Error, Expected, Message, Parcel, Room,
    Side,
};
use halo_gpu::{Buffer, Device, DeviceKind, Element, Priority, allocation};

/// A rank's block of a field, on its device, with ghost points: copies of the nearest points of
/// the blocks around it.
///
/// Each side with a neighbour has `width` planes of ghost points; the ends of the grid have none.
/// [`exchange`](Self::exchange) updates all ghost points, also at corners.
///
/// ```
/// use halo_distributed::{Decomposition, Error, Ghosted};
/// use halo_gpu::Device;
///
/// # fn main() -> Result<(), Error> {
/// // A ring of eight numbers, four on each of two ranks.
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
#[derive(Debug)]
pub struct Ghosted<T: Element, const D: usize> {
    ghosts: Ghosts<D>,
    buffer: Buffer<T>,
}

impl<T: Element, const D: usize> Ghosted<T, D> {
    /// The rank's block, with the results of `value` for its points in the whole grid. Ghost points
    /// are zero before the first exchange.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same decomposition and width;
    /// [`Error::InvalidParameter`] unless there are as many ranks as blocks, for a `width` of 0,
    /// and for a `width` that exceeds the thinnest block along an axis that is cut;
    /// [`Error::Device`], and [`Error::Elsewhere`] on the other ranks; as
    /// [`Transport::exchange`](crate::Transport::exchange).
    pub fn new(
        communicator: &Communicator,
        device: &Device,
        decomposition: Decomposition<D>,
        width: usize,
        value: impl FnMut([usize; D]) -> T,
    ) -> Result<Self, Error> {
        communicator.agree("the type of the elements", &std::any::type_name::<T>())?;
        let ghosts = Ghosts::new(communicator, decomposition, width)?;
        let buffer = ghosts.values(value).and_then(|it| device.upload(&it));
        Ok(Self {
            ghosts,
            buffer: communicator.together(buffer.map_err(Error::from))?,
        })
    }

    /// A field of zeros with the same decomposition, on the same device.
    ///
    /// # Errors
    ///
    /// As [`Device::zeros`].
    pub fn zeros_like(&self) -> Result<Self, Error> {
        Ok(Self {
            buffer: self.buffer.device().zeros(self.buffer.len())?,
            ghosts: self.ghosts.clone(),
        })
    }

    /// The elements, ghost points included, the first axis fastest.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements, writable.
    #[must_use]
    pub const fn buffer_mut(&mut self) -> &mut Buffer<T> {
        &mut self.buffer
    }

    /// The writable elements, and the ghost points' layout.
    pub(crate) const fn parts_mut(&mut self) -> (&mut Buffer<T>, &Ghosts<D>) {
        (&mut self.buffer, &self.ghosts)
    }

    /// The layout of block and ghost points.
    pub(crate) const fn cut(&self) -> &Ghosts<D> {
        &self.ghosts
    }

    /// The points of the grid that this rank owns.
    #[must_use]
    pub const fn block(&self) -> Block<D> {
        self.ghosts.block()
    }

    /// The decomposition of the grid.
    #[must_use]
    pub const fn decomposition(&self) -> &Decomposition<D> {
        self.ghosts.decomposition()
    }

    /// The number of planes of ghost points on each side that has a neighbour.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.ghosts.width()
    }

    /// Planes of ghost points below and above the block, along each axis.
    #[must_use]
    pub const fn ghosts(&self) -> [[usize; 2]; D] {
        self.ghosts.planes()
    }

    /// Points along each axis, ghost points included.
    #[must_use]
    pub fn extents(&self) -> [usize; D] {
        self.ghosts.extents()
    }

    /// Updates the ghost points.
    ///
    /// A rank exchanges one message with each block around it, also across edges and corners, and
    /// no message waits for another. On CUDA devices the host does not wait, unless messages go
    /// through it.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::Device`]. After an error
    /// the values of the ghost points are unspecified.
    pub fn exchange(&mut self, communicator: &Communicator) -> Result<(), Error> {
        self.require_points()?;
        let in_place = self.is_in_place(communicator);
        let (ghosts, buffer) = (&self.ghosts, &mut self.buffer);
        if in_place {
            let nothing = None::<fn(&Buffer<T>) -> Result<(), Error>>;
            return ghosts.exchange_in_place(communicator, buffer, nothing);
        }
        ghosts.exchange(communicator, buffer, 1)
    }

    /// Whether parts of the field are messages.
    fn is_in_place(&self, communicator: &Communicator) -> bool {
        communicator.is_in_place() && self.buffer.device().kind() == DeviceKind::Cpu
    }

    /// Updates the ghost points while `meanwhile` reads the field and computes what does not depend
    /// on them. On CUDA devices the messages use a stream of high priority.
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
    /// As [`exchange`](Self::exchange), and the errors of `meanwhile`, after the messages have been
    /// received.
    pub fn exchange_beside(
        &mut self,
        communicator: &Communicator,
        meanwhile: impl FnOnce(&Buffer<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.require_points()?;
        let in_place = self.is_in_place(communicator);
        let (ghosts, buffer) = (&mut self.ghosts, &mut self.buffer);
        if in_place {
            return ghosts.exchange_in_place(communicator, buffer, Some(meanwhile));
        }
        ghosts.exchange_beside(communicator, buffer, meanwhile)
    }

    /// Returns an error if the buffer was replaced by one of another length.
    pub(crate) fn require_points(&self) -> Result<(), Error> {
        let points: usize = self.extents().iter().product();
        if self.buffer.len() == points {
            return Ok(());
        }
        Err(Error::InvalidParameter {
            operation: "a field with ghost points",
            parameter: "the length of the buffer",
            given: self.buffer.len().to_string(),
            required: format!("{points}, the points of {:?}", self.extents()),
        })
    }

    /// The rank's own points, the first axis fastest.
    ///
    /// # Errors
    ///
    /// [`Error::Device`]; as [`Communicator::settle`].
    pub fn own_values(&self, communicator: &Communicator) -> Result<Vec<T>, Error> {
        self.ghosts.own_values(communicator, &self.buffer)
    }

    /// The whole field, on every rank, the first axis fastest.
    ///
    /// # Errors
    ///
    /// As [`Transport::exchange`](crate::Transport::exchange); [`Error::MessageLength`] where a
    /// rank gives another number of points; [`Error::Device`].
    pub fn gather(&self, communicator: &Communicator) -> Result<Vec<T>, Error> {
        self.ghosts.gather(communicator, &self.buffer)
    }

    /// As [`Ghosts::own_points`].
    pub(crate) fn own_points(&self, buffer: &Buffer<T>) -> Result<Buffer<T>, Error> {
        self.ghosts.own_points(buffer)
    }

    /// Whether the rank has no ghost points.
    pub(crate) fn is_whole(&self) -> bool {
        self.ghosts.is_whole()
    }
}

/// Fields with the same decomposition on one device.
pub(crate) trait Fields<T: Element> {
    /// One of them.
    fn field(&self, number: usize) -> &Buffer<T>;
    /// The same, writable.
    fn field_mut(&mut self, number: usize) -> &mut Buffer<T>;
}

impl<T: Element> Fields<T> for Buffer<T> {
    fn field(&self, _: usize) -> &Self {
        self
    }

    fn field_mut(&mut self, _: usize) -> &mut Self {
        self
    }
}

/// The layout of a rank's block and its ghost points, and their exchange, for any number of fields.
#[derive(Debug, Clone)]
pub(crate) struct Ghosts<const D: usize> {
    decomposition: Decomposition<D>,
    block: Block<D>,
    width: usize,
    /// Planes of ghost points below and above the block, along each axis.
    planes: [[usize; 2]; D],
    neighbours: Vec<Neighbour<D>>,
    /// The handle of the device for messages that overlap with other work.
    beside: Option<Device>,
    spare: Spare,
}

/// A block next to this one, along an axis or across an edge or a corner.
#[derive(Debug, Clone)]
pub(crate) struct Neighbour<const D: usize> {
    peer: usize,
    sides: [Option<Side>; D],
    /// The tags of the messages to it and from it.
    tags: [u32; 2],
    rim: Region<D>,
    /// The ghost points of this block that copy its points.
    ghosts: Region<D>,
}

impl<const D: usize> Ghosts<D> {
    /// As [`Ghosted::new`].
    pub(crate) fn new(
        communicator: &Communicator,
        decomposition: Decomposition<D>,
        width: usize,
    ) -> Result<Self, Error> {
        communicator.agree("the width of the ghosts", &width)?;
        let block = decomposition.block_among(communicator)?;
        let rank = communicator.rank();
        let cut = (0..D).filter(|&axis| decomposition.parts()[axis] > 1);
        let thinnest = cut.map(|axis| decomposition.fewest_points(axis)).min();
        let most = thinnest.unwrap_or(usize::MAX);
        if !(1..=most).contains(&width) {
            return Err(Error::InvalidParameter {
                operation: "a field with ghost points",
                parameter: "the width of the ghosts",
                given: width.to_string(),
                required: format!("from 1 to {most}, the points of the thinnest block"),
            });
        }
        let mut planes = [[0; 2]; D];
        for (axis, planes) in planes.iter_mut().enumerate() {
            for (planes, side) in planes.iter_mut().zip([Side::Low, Side::High]) {
                if decomposition.neighbour(rank, axis, side)?.is_some() {
                    *planes = width;
                }
            }
        }
        Ok(Self {
            neighbours: Neighbour::all(&decomposition, rank, &block, &planes, width)?,
            spare: Spare::default(),
            block,
            decomposition,
            width,
            planes,
            beside: None,
        })
    }

    /// The results of `value` at the points of the block, and zeros at ghost points.
    pub(crate) fn values<T: Element>(
        &self,
        mut value: impl FnMut([usize; D]) -> T,
    ) -> Result<Vec<T>, halo_gpu::Error> {
        let extents = self.extents();
        let mut values = allocation::zeroed(extents.iter().product())?;
        let places = pieces(extents, &self.own()).into_iter().flatten();
        for (element, point) in places.zip(self.block.points()) {
            values[element] = value(point);
        }
        Ok(values)
    }

    pub(crate) const fn block(&self) -> Block<D> {
        self.block
    }

    pub(crate) const fn decomposition(&self) -> &Decomposition<D> {
        &self.decomposition
    }

    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Planes of ghost points below and above the block, along each axis.
    pub(crate) const fn planes(&self) -> [[usize; 2]; D] {
        self.planes
    }

    /// Points along each axis, ghost points included.
    pub(crate) fn extents(&self) -> [usize; D] {
        std::array::from_fn(|axis| {
            let [below, above] = self.planes[axis];
            below + self.block.extents[axis] + above
        })
    }

    /// The rank's own points as a region of the array with ghost points.
    pub(crate) fn own(&self) -> Region<D> {
        std::array::from_fn(|axis| {
            let [below, _] = self.planes[axis];
            below..below + self.block.extents[axis]
        })
    }

    /// Whether the rank has no ghost points.
    pub(crate) fn is_whole(&self) -> bool {
        self.planes.iter().flatten().all(|&planes| planes == 0)
    }

    /// As [`Ghosted::exchange`], with the first `count` fields (at least one) in each message.
    pub(crate) fn exchange<T: Element>(
        &self,
        communicator: &Communicator,
        fields: &mut impl Fields<T>,
        count: usize,
    ) -> Result<(), Error> {
        let device = fields.field(0).device().clone();
        self.exchange_by(communicator, &device, (fields, count), |_| Ok(()))
    }

    /// As [`Ghosted::exchange_beside`], on the CPU: contiguous points are sent from the field
    /// itself. Without `meanwhile`, which reads the field, contiguous ghost points are received
    /// into it.
    fn exchange_in_place<T: Element>(
        &self,
        communicator: &Communicator,
        buffer: &mut Buffer<T>,
        meanwhile: Option<impl FnOnce(&Buffer<T>) -> Result<(), Error>>,
    ) -> Result<(), Error> {
        let (device, size, extents) = (buffer.device().clone(), size_of::<T>(), self.extents());
        let is_read = meanwhile.is_some();
        // The ghost points that are received in place.
        let place =
            |neighbour: &Neighbour<D>| contiguous(extents, &neighbour.ghosts).filter(|_| !is_read);
        // Points that are not contiguous go through buffers.
        let mut packed = Vec::new();
        for Neighbour { rim, .. } in &self.neighbours {
            packed.push(match contiguous(extents, rim) {
                Some(_) => None,
                None => Some(pack(
                    buffer,
                    1,
                    extents,
                    rim,
                    self.room(&device, size, rim)?,
                )?),
            });
        }
        let places = self.neighbours.iter().filter_map(place).collect();
        let Some(mut field) = InPlace::new(buffer, places)? else {
            unreachable!("the field is on the CPU, and a ghost point has one neighbour");
        };
        let mut received = field.take_received().into_iter();
        let give = || -> Result<Vec<(Message, Room)>, Error> {
            let mut given = Vec::new();
            for (neighbour, packed) in self.neighbours.iter().zip(packed) {
                let part = || field.sent(contiguous(extents, &neighbour.rim)?);
                let message = match packed {
                    Some(bytes) => bytes.into(),
                    None => match part() {
                        Some(part) => part.into(),
                        None => unreachable!("the rank's own points are not received"),
                    },
                };
                let room = match place(neighbour).and_then(|_| received.next()) {
                    Some(part) => part.into(),
                    None => self.room(&device, size, &neighbour.ghosts)?.into(),
                };
                given.push((message, room));
            }
            Ok(given)
        };
        let given = give();
        drop(received);
        let arrived = given.and_then(|given| {
            let arrival = self.begin(communicator, &device, given)?;
            let done = match (meanwhile, field.field()) {
                (Some(meanwhile), Some(field)) => meanwhile(field),
                _ => Ok(()),
            };
            ended(done, arrival)
        });
        field.put_back()?;
        let others = self.neighbours.iter().filter(|it| place(it).is_none());
        self.unpack_all(others, buffer, 1, arrived?)
    }

    /// As [`Ghosted::exchange_beside`].
    fn exchange_beside<T: Element>(
        &mut self,
        communicator: &Communicator,
        buffer: &mut Buffer<T>,
        meanwhile: impl FnOnce(&Buffer<T>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let device = buffer.device().clone();
        if communicator.is_recording() {
            // A recording has one stream: the two run one after the other.
            return self.exchange_by(communicator, &device, (buffer, 1), meanwhile);
        }
        let beside = match self.beside.take() {
            Some(beside) => beside,
            None if device.kind() == DeviceKind::Cuda => device.new_handle_with(Priority::High)?,
            None => device,
        };
        self.exchange_by(communicator, &beside, (buffer, 1), meanwhile)?;
        self.beside = Some(beside);
        Ok(())
    }

    /// Exchanges messages over `via`, a handle of the same device.
    fn exchange_by<T: Element, F: Fields<T>>(
        &self,
        communicator: &Communicator,
        via: &Device,
        (fields, count): (&mut F, usize),
        meanwhile: impl FnOnce(&F) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let size = count * size_of::<T>();
        let device = fields.field(0).device().clone();
        let mut given = Vec::new();
        for Neighbour { rim, ghosts, .. } in &self.neighbours {
            let bytes = self.room(&device, size, rim)?;
            let bytes = pack(fields, count, self.extents(), rim, bytes)?;
            let message = bytes.move_to(via)?.into();
            given.push((message, self.room(via, size, ghosts)?.into()));
        }
        let arrival = self.begin(communicator, via, given)?;
        let done = meanwhile(fields);
        self.finish(fields, count, ended(done, arrival)?)
    }

    /// Begins to exchange messages. `given` has, for each neighbour in order, the message to it and
    /// the space for the message from it.
    pub(crate) fn begin<'a>(
        &self,
        communicator: &'a Communicator,
        via: &'a Device,
        given: Vec<(Message, Room)>,
    ) -> Result<Arrival<'a>, Error> {
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for (neighbour, (bytes, room)) in self.neighbours.iter().zip(given) {
            let ([to, from], peer) = (neighbour.tags, neighbour.peer);
            let tag = to;
            outgoing.push(Parcel {
                to: peer,
                tag,
                bytes,
            });
            let tag = from;
            incoming.push(Expected {
                from: peer,
                tag,
                room,
            });
        }
        communicator.begin(via, outgoing, incoming)
    }

    /// Copies the messages into the ghost points.
    pub(crate) fn finish<T: Element>(
        &self,
        fields: &mut impl Fields<T>,
        count: usize,
        arrived: Arrived,
    ) -> Result<(), Error> {
        self.unpack_all(&self.neighbours, fields, count, arrived)
    }

    /// Copies the messages of these neighbours into their ghost points.
    fn unpack_all<'n, T: Element>(
        &self,
        neighbours: impl IntoIterator<Item = &'n Neighbour<D>>,
        fields: &mut impl Fields<T>,
        count: usize,
        arrived: Arrived,
    ) -> Result<(), Error> {
        let device = fields.field(0).device().clone();
        let Arrived { messages, spare } = arrived;
        self.spare.put(spare);
        for (neighbour, bytes) in neighbours.into_iter().zip(messages) {
            let bytes = bytes.move_to(&device)?;
            unpack(fields, count, self.extents(), &neighbour.ghosts, &bytes)?;
            self.keep(bytes);
        }
        Ok(())
    }

    pub(crate) fn neighbours(&self) -> &[Neighbour<D>] {
        &self.neighbours
    }

    /// Keeps a buffer for later messages.
    pub(crate) fn keep(&self, bytes: Buffer<u8>) {
        self.spare.put([bytes]);
    }

    /// A buffer on `device` for the points of a region, of `size` bytes each, with unspecified
    /// contents.
    pub(crate) fn room(
        &self,
        device: &Device,
        size: usize,
        region: &Region<D>,
    ) -> Result<Buffer<u8>, halo_gpu::Error> {
        self.spare.take(device, size * points(region))
    }

    /// A copy of the rank's own points, without ghost points, on the device.
    pub(crate) fn own_points<T: Element>(&self, buffer: &Buffer<T>) -> Result<Buffer<T>, Error> {
        let own = self.own();
        let mut copy = buffer.device().zeros(points(&own))?;
        let size = size_of::<T>();
        let mut done = 0;
        for rows in rows(self.extents(), &own) {
            let shape = [rows.count, rows.len * size];
            let pitches = [shape[1], rows.distance * size];
            let from = buffer.view(rows.start..)?;
            copy.view_mut(done..)?
                .copy_rows_from(from, shape, pitches)?;
            done += rows.count * rows.len;
        }
        Ok(copy)
    }

    /// As [`Ghosted::own_values`].
    pub(crate) fn own_values<T: Element>(
        &self,
        communicator: &Communicator,
        buffer: &Buffer<T>,
    ) -> Result<Vec<T>, Error> {
        communicator.settle()?;
        Ok(self.own_points(buffer)?.into_vec()?)
    }

    /// As [`Ghosted::gather`].
    pub(crate) fn gather<T: Element>(
        &self,
        communicator: &Communicator,
        buffer: &Buffer<T>,
    ) -> Result<Vec<T>, Error> {
        let own = self.own_values(communicator, buffer)?;
        let points = self.decomposition.points();
        let mut whole = allocation::zeroed(points.iter().product())?;
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
}

impl<const D: usize> Neighbour<D> {
    /// The side on which it lies along an axis; `None` if it lies level with this block.
    pub(crate) const fn side(&self, axis: usize) -> Option<Side> {
        self.sides[axis]
    }

    /// The points of this block that it copies to its ghost points.
    pub(crate) const fn rim(&self) -> &Region<D> {
        &self.rim
    }

    /// The ghost points of this block that copy its points.
    pub(crate) const fn ghosts(&self) -> &Region<D> {
        &self.ghosts
    }

    /// All neighbours of a block with these planes of ghost points.
    fn all(
        decomposition: &Decomposition<D>,
        rank: usize,
        block: &Block<D>,
        planes: &[[usize; 2]; D],
        width: usize,
    ) -> Result<Vec<Self>, Error> {
        let directions = 3_usize.pow(D as u32);
        let mut neighbours = Vec::new();
        for number in (0..directions).filter(|number| 2 * number + 1 != directions) {
            let mut left = number;
            let sides: [Option<Side>; D] = std::array::from_fn(|_| {
                let digit = left % 3;
                left /= 3;
                [Some(Side::Low), None, Some(Side::High)][digit]
            });
            let mut peer = Some(rank);
            for (axis, side) in sides.into_iter().enumerate() {
                if let (Some(from), Some(side)) = (peer, side) {
                    peer = decomposition.neighbour(from, axis, side)?;
                }
            }
            let Some(peer) = peer else { continue };
            let along = |ghosts: bool| -> Region<D> {
                std::array::from_fn(|axis| {
                    let ([below, _], own) = (planes[axis], block.extents[axis]);
                    match (sides[axis], ghosts) {
                        (None, _) => below..below + own,
                        (Some(Side::Low), false) => below..below + width,
                        (Some(Side::High), false) => below + own - width..below + own,
                        (Some(Side::Low), true) => 0..below,
                        (Some(Side::High), true) => below + own..below + own + width,
                    }
                })
            };
            neighbours.push(Self {
                peer,
                sides,
                // The tag is the direction: on a ring of two ranks several directions lead to the
                // same rank.
                tags: [number as u32, (directions - 1 - number) as u32],
                rim: along(false),
                ghosts: along(true),
            });
        }
        Ok(neighbours)
    }
}

/// Copies the points of a region of the first `count` fields to `bytes`, contiguous and field after
/// field. `bytes` must have that length.
pub(crate) fn pack<T: Element, const D: usize>(
    fields: &impl Fields<T>,
    count: usize,
    extents: [usize; D],
    region: &Region<D>,
    mut bytes: Buffer<u8>,
) -> Result<Buffer<u8>, halo_gpu::Error> {
    let size = size_of::<T>();
    let all = rows(extents, region);
    let mut done = 0;
    for number in 0..count {
        for rows in &all {
            let len = rows.len * size;
            bytes.view_mut(done..)?.copy_rows_from(
                fields.field(number).view(rows.start..)?,
                [rows.count, len],
                [len, rows.distance * size],
            )?;
            done += rows.count * len;
        }
    }
    Ok(bytes)
}

/// Copies the points that [`pack`] has packed into a region.
fn unpack<T: Element, const D: usize>(
    fields: &mut impl Fields<T>,
    count: usize,
    extents: [usize; D],
    region: &Region<D>,
    bytes: &Buffer<u8>,
) -> Result<(), Error> {
    let size = size_of::<T>();
    let all = rows(extents, region);
    let mut done = 0;
    for number in 0..count {
        for rows in &all {
            let len = rows.len * size;
            let mut there = fields.field_mut(number).view_mut(rows.start..)?;
            there.copy_rows_from(
                bytes.view(done..)?,
                [rows.count, len],
                [rows.distance * size, len],
            )?;
            done += rows.count * len;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Ghosted, Message, Room};
    use crate::in_place::{Received, Sent};
    use crate::threads::Thread;
    use crate::transport::{Content, Space};
    use crate::{
        Arrival, Communicator, Decomposition, Error, Expected, Incoming, Outgoing, Parcel,
        Transport,
    };
    use halo_gpu::Device;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// The parts that a failed exchange keeps.
    type Kept = Arc<Mutex<(Vec<Sent>, Vec<Received>)>>;

    /// A transport between threads that accepts parts of fields.
    struct OfField {
        thread: Thread,
        /// Whether each message was sent from the field, and received into it.
        parts: Arc<Mutex<Vec<[bool; 2]>>>,
        /// If given, every exchange fails, and its parts stay here.
        kept: Option<Kept>,
    }

    impl Transport for OfField {
        fn rank(&self) -> usize {
            self.thread.rank()
        }

        fn size(&self) -> usize {
            self.thread.size()
        }

        fn is_in_place(&self) -> bool {
            true
        }

        fn name(&self) -> String {
            "in place".to_owned()
        }

        fn exchange(
            &self,
            outgoing: &[Outgoing<'_>],
            incoming: &mut [Incoming<'_>],
            deadline: Duration,
        ) -> Result<(), Error> {
            self.thread.exchange(outgoing, incoming, deadline)
        }

        fn begin<'a>(
            &'a self,
            device: &'a Device,
            outgoing: Vec<Parcel>,
            incoming: Vec<Expected>,
            deadline: Duration,
        ) -> Result<Arrival<'a>, Error> {
            let are_parts = outgoing.iter().zip(&incoming).map(|(parcel, expected)| {
                [
                    matches!(parcel.bytes, Message(Content::Part(_))),
                    matches!(expected.room, Room(Space::Part(_))),
                ]
            });
            self.parts.lock().unwrap().extend(are_parts);
            let Some(kept) = &self.kept else {
                return self.thread.begin(device, outgoing, incoming, deadline);
            };
            let (sent, received) = &mut *kept.lock().unwrap();
            for (parcel, expected) in outgoing.into_iter().zip(incoming) {
                if let Message(Content::Part(part)) = parcel.bytes {
                    sent.push(part);
                }
                if let Room(Space::Part(part)) = expected.room {
                    received.push(part);
                }
            }
            let (rank, peer) = (self.rank(), 1 - self.rank());
            Ok(Box::new(move || Err(Error::Gone { rank, peer })))
        }

        fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error> {
            self.thread.all_gather(own, deadline)
        }
    }

    /// Runs `work` on two ranks.
    fn on_both(
        kept: Option<&Kept>,
        work: impl Fn(&Communicator) -> Result<(), Error> + Sync,
    ) -> Vec<[bool; 2]> {
        let parts = Arc::new(Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for thread in Thread::all(2) {
                let (parts, kept, work) = (Arc::clone(&parts), kept.cloned(), &work);
                scope.spawn(move || {
                    let rank = Communicator::over(OfField {
                        thread,
                        parts,
                        kept,
                    });
                    work(&rank).expect("it works");
                });
            }
        });
        parts.lock().unwrap().clone()
    }

    fn value([i, j]: [usize; 2]) -> f64 {
        (10 * i + j) as f64
    }

    #[test]
    fn contiguous_points_are_sent_and_received_in_place() {
        let exchange = |cut: Decomposition<2>| {
            on_both(None, |communicator| {
                let cpu = Device::cpu();
                let mut field = Ghosted::new(communicator, &cpu, cut, 2, value)?;
                field.exchange(communicator)?;
                let once = field.buffer().to_vec()?;
                let ([nx, ny], [below, above]) = (field.extents(), field.ghosts()[1]);
                for rows in [0..below * nx, (ny - above) * nx..ny * nx] {
                    field.buffer_mut().view_mut(rows)?.fill(-1.0)?;
                }
                let stale = field.buffer().to_vec()?;
                let whole = field.gather(communicator)?;
                let mut beside = None;
                field.exchange_beside(communicator, |values| {
                    beside = Some(values.to_vec()?);
                    Ok(())
                })?;
                assert_eq!(beside, Some(stale));
                assert_eq!(field.buffer().to_vec()?, once);
                // Every point, ghost points included, has the value of its place on the torus.
                let ([nx, _], [ny, along]) = (field.extents(), cut.points());
                let start = field.block().start;
                for (at, &found) in once.iter().enumerate() {
                    let place = [at % nx, at / nx];
                    let ghosts = field.ghosts();
                    let point: [usize; 2] = std::array::from_fn(|axis| {
                        let n = [ny, along][axis];
                        (start[axis] + place[axis] + n - ghosts[axis][0]) % n
                    });
                    assert_eq!(found, value(point), "{place:?}");
                }
                assert_eq!(whole.len(), ny * along);
                Ok(())
            })
        };
        let ring = |parts| Decomposition::new([6, 7], parts)?.periodic(0)?.periodic(1);
        let parts = exchange(ring([1, 2]).expect("a cut"));
        // A field that is read meanwhile receives nothing in place.
        let count = |of: [bool; 2]| parts.iter().filter(|it| **it == of).count();
        assert_eq!(
            (parts.len(), count([true, true]), count([true, false])),
            (8, 4, 4)
        );
        // The points beside a cut along the first axis are not contiguous.
        assert_eq!(exchange(ring([2, 1]).expect("a cut")), [[false; 2]; 8]);
    }

    #[test]
    fn after_an_error_the_field_has_its_values_and_what_was_to_be_sent_stays() {
        let kept = Kept::default();
        let parts = on_both(Some(&kept), |communicator| {
            let cut = Decomposition::new([6, 8], [1, 2])?;
            let mut field = Ghosted::new(communicator, &Device::cpu(), cut, 2, value)?;
            let before = field.buffer().to_vec()?;
            let failed = field.exchange(communicator);
            assert!(matches!(failed, Err(Error::Gone { .. })), "{failed:?}");
            assert_eq!(field.buffer().to_vec()?, before);
            field
                .buffer_mut()
                .copy_from_slice(&vec![f64::NAN; before.len()])?;
            Ok(())
        });
        assert_eq!(parts, [[true; 2]; 2]);
        let (sent, received) = &mut *kept.lock().unwrap();
        for part in received {
            part.as_mut_slice().fill(0xff);
        }
        let mut rims: Vec<Vec<f64>> = sent.iter().map(of_part).collect();
        rims.sort_by(|one, other| one[0].total_cmp(&other[0]));
        let plane = |j| (0..6).map(move |i| value([i, j]));
        let planes = |j| plane(j).chain(plane(j + 1)).collect();
        assert_eq!(rims, [planes(2), planes(4)] as [Vec<f64>; 2]);
    }

    fn of_part(part: &Sent) -> Vec<f64> {
        bytemuck::pod_collect_to_vec(part.as_slice())
    }
}
