//! [`Transport`]: how bytes move between ranks, and the types of its messages.

use crate::Error;
use crate::in_place::{Received, Sent};
use halo_gpu::{Buffer, Device};
use std::time::Duration;

/// Bytes for another rank.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: usize,
    /// Distinguishes messages between the same two ranks.
    pub tag: u32,
    /// The message.
    pub bytes: &'a [u8],
}

/// Space for bytes from another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: usize,
    /// The sender's tag.
    pub tag: u32,
    /// Where the message goes; it must have the same length.
    pub bytes: &'a mut [u8],
}

/// A message from one device to another.
#[derive(Debug)]
pub struct Parcel {
    /// The receiver.
    pub to: usize,
    /// Distinguishes messages between the same two ranks.
    pub tag: u32,
    /// The message.
    pub bytes: Message,
}

/// The bytes of a [`Parcel`]: a buffer on the device, or a part of a field in host memory, which is
/// sent from the field itself.
#[derive(Debug)]
pub struct Message(pub(crate) Content);

#[derive(Debug)]
pub(crate) enum Content {
    Buffer(Buffer<u8>),
    Part(Sent),
}

impl From<Buffer<u8>> for Message {
    fn from(bytes: Buffer<u8>) -> Self {
        Self(Content::Buffer(bytes))
    }
}

impl From<Sent> for Message {
    fn from(part: Sent) -> Self {
        Self(Content::Part(part))
    }
}

impl Message {
    /// The bytes, if they are in the memory of the host.
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.0 {
            Content::Buffer(bytes) => bytes.as_host_slice(),
            Content::Part(part) => Some(part.as_slice()),
        }
    }

    /// The number of bytes.
    #[cfg(feature = "mpi")]
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Content::Buffer(bytes) => bytes.len(),
            Content::Part(part) => part.len(),
        }
    }

    /// The bytes as a buffer: the buffer itself, or a copy of the part on `device`.
    ///
    /// # Errors
    ///
    /// As [`Device::upload`].
    pub fn into_buffer(self, device: &Device) -> Result<Buffer<u8>, halo_gpu::Error> {
        match self.0 {
            Content::Buffer(bytes) => Ok(bytes),
            Content::Part(part) => device.upload(part.as_slice()),
        }
    }
}

/// Space for a message: a buffer on the device, or a part of a field in host memory, which receives
/// the message itself.
#[derive(Debug)]
pub struct Room(pub(crate) Space);

#[derive(Debug)]
pub(crate) enum Space {
    Buffer(Buffer<u8>),
    Part(Received),
}

impl From<Buffer<u8>> for Room {
    fn from(bytes: Buffer<u8>) -> Self {
        Self(Space::Buffer(bytes))
    }
}

impl From<Received> for Room {
    fn from(part: Received) -> Self {
        Self(Space::Part(part))
    }
}

impl Room {
    /// The space, if it is in the memory of the host.
    pub fn as_mut_slice(&mut self) -> Option<&mut [u8]> {
        match &mut self.0 {
            Space::Buffer(bytes) => bytes.as_host_mut_slice(),
            Space::Part(part) => Some(part.as_mut_slice()),
        }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Space::Buffer(bytes) => bytes.len(),
            Space::Part(part) => part.len(),
        }
    }

    /// The buffer. `None` for a part of a field; only transports that work
    /// [in place](Transport::is_in_place) get parts.
    #[must_use]
    pub fn into_buffer(self) -> Option<Buffer<u8>> {
        match self.0 {
            Space::Buffer(bytes) => Some(bytes),
            Space::Part(_) => None,
        }
    }
}

/// A message that a device expects.
#[derive(Debug)]
pub struct Expected {
    /// The sender.
    pub from: usize,
    /// The sender's tag.
    pub tag: u32,
    /// Space for the message, which must have the same length. The old contents are lost.
    pub room: Room,
}

/// Waits for an exchange of device messages, and returns its result.
pub type Arrival<'a> = Box<dyn FnOnce() -> Result<Arrived, Error> + 'a>;

/// Ends an exchange; `meanwhile` is the result of the rank's own work during it. The messages are
/// received even if that work failed: the next exchange must not take them for its own.
pub(crate) fn ended(meanwhile: Result<(), Error>, arrival: Arrival<'_>) -> Result<Arrived, Error> {
    let arrived = arrival();
    meanwhile.and(arrived)
}

/// The result of an exchange of device messages.
#[derive(Debug)]
pub struct Arrived {
    /// The messages that arrived in buffers, in the order of the expected ones. Those received into
    /// parts of fields are not among them.
    pub messages: Vec<Buffer<u8>>,
    /// Buffers that the exchange was given and no longer needs, with unspecified contents.
    pub spare: Vec<Buffer<u8>>,
}

/// Moves bytes between ranks.
///
/// Messages from one rank to another with the same tag arrive in the order in which they were sent;
/// messages with different tags are independent. Every rank calls [`all_gather`](Self::all_gather)
/// the same number of times, in the same order.
///
/// No call waits longer than `deadline` for another rank; if that rank is known to be gone, the
/// call fails at once. After an error this rank may not use the transport again, and drops it, so
/// that the other ranks get an error too.
pub trait Transport: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The number of this rank among the ranks of its machine, from 0. By default its number among
    /// all ranks, as on one machine.
    fn local_rank(&self) -> usize {
        self.rank()
    }

    /// Whether the ranks are on more than one machine. By default they are not.
    fn is_across_machines(&self) -> bool {
        false
    }

    /// Whether the messages of CUDA devices pass through the memory of the host. By default they do
    /// not.
    fn is_through_host(&self) -> bool {
        false
    }

    /// Whether [`begin`](Self::begin) accepts parts of fields on [`Device::cpu`], to send them from
    /// the field itself and to receive messages into it. By default it does not, and all its
    /// messages are buffers.
    fn is_in_place(&self) -> bool {
        false
    }

    /// Its name, for people.
    fn name(&self) -> String;

    /// Sends and receives these messages. No order of the messages can cause a deadlock.
    ///
    /// # Errors
    ///
    /// [`Error::Deadline`], [`Error::Gone`], [`Error::MessageLength`], [`Error::NoSuchRank`].
    fn exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        deadline: Duration,
    ) -> Result<(), Error>;

    /// Begins to send and receive messages of devices; [`Arrival`] waits for their end. The
    /// caller's work in between overlaps with the messages, if the transport supports that. These
    /// messages are independent of the messages of [`exchange`](Self::exchange). Several exchanges
    /// may be under way at once, and be waited for in any order.
    ///
    /// Parcels and rooms are on `device`, and so are the messages that arrive. Parcels are sent
    /// after the earlier work of the device; later work on the buffers of [`Arrived`] runs after the
    /// messages have arrived. The host does not wait for a device, unless messages go through the
    /// host. A transport allocates no device memory.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange), now or at the end; [`Error::Device`].
    fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Arrival<'a>, Error>;

    /// Whether [`begin`](Self::begin) and its end can be recorded as a graph of a CUDA device; the
    /// error says why not. By default they cannot.
    ///
    /// # Errors
    ///
    /// The reason, worded to follow a colon.
    fn recordable(&self) -> Result<(), &'static str> {
        Err("the host takes part in its messages")
    }

    /// Notes that a graph with recorded exchanges was given to `device`.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn replayed(&self, device: &Device, deadline: Duration) -> Result<(), Error> {
        let _ = (device, deadline);
        Ok(())
    }

    /// Waits until pending exchanges have ended, or failed, on the device too.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn settle(&self, deadline: Duration) -> Result<(), Error> {
        let _ = deadline;
        Ok(())
    }

    /// Collects the bytes of all ranks on every rank, in the order of the ranks. Ranks may give
    /// different numbers of bytes.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error>;
}
