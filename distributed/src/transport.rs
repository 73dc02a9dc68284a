//! What moves bytes between ranks.

use crate::Error;
use halo_gpu::{Buffer, Device};
use std::time::Duration;

/// Bytes for another rank.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// The receiver.
    pub to: usize,
    /// Tells messages between the same two ranks apart.
    pub tag: u32,
    /// The message.
    pub bytes: &'a [u8],
}

/// Room for the bytes of another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// The sender.
    pub from: usize,
    /// The sender's tag.
    pub tag: u32,
    /// Where the message goes, which has to be as long.
    pub bytes: &'a mut [u8],
}

/// A message of one device to another.
#[derive(Debug)]
pub struct Parcel {
    /// The receiver.
    pub to: usize,
    /// Tells messages between the same two ranks apart.
    pub tag: u32,
    /// The message.
    pub bytes: Buffer<u8>,
}

/// A message that a device expects.
#[derive(Debug)]
pub struct Expected {
    /// The sender.
    pub from: usize,
    /// The sender's tag.
    pub tag: u32,
    /// Room for the message, which has to be as long. What it holds is lost.
    pub room: Buffer<u8>,
}

/// The end of an exchange.
pub type Arrival<'a> = Box<dyn FnOnce() -> Result<Arrived, Error> + 'a>;

/// What an exchange ends with.
#[derive(Debug)]
pub struct Arrived {
    /// The messages, in the order in which they were expected.
    pub messages: Vec<Buffer<u8>>,
    /// Buffers that the exchange was given and does not need any more. They hold anything.
    pub spare: Vec<Buffer<u8>>,
}

/// What moves bytes between ranks.
///
/// Messages from one rank to another with the same tag arrive in the order in which they were sent;
/// those with different tags are independent. Every rank takes part in each
/// [`all_gather`](Self::all_gather), in the same order.
///
/// No call waits longer than `deadline` for another rank; a rank that is known to be gone is an
/// error at once. After an error the transport may be used no more by this rank, and drops its
/// part of it, so that the others learn of it.
pub trait Transport: Send {
    /// The number of this rank, from 0 on.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

    /// The number of this rank among the ranks of its machine, from 0 on; by default its number, as
    /// if there were one machine.
    fn local_rank(&self) -> usize {
        self.rank()
    }

    /// Whether not all ranks are on one machine; they are, unless something else is said.
    fn is_across_machines(&self) -> bool {
        false
    }

    /// Its name, for people.
    fn name(&self) -> String;

    /// Sends and receives these messages. No order among them can make two ranks wait for each
    /// other.
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

    /// Begins to send and receive messages of devices; [`Arrival`] ends that. The caller's work in
    /// between overlaps with the messages, if the transport can do that. These messages are
    /// independent of those of [`exchange`](Self::exchange).
    ///
    /// Parcels and rooms are on `device`, and so are the messages that arrive. They are sent after
    /// its earlier work; later work on what [`Arrived`] has runs after that. The host waits for no
    /// device, unless messages go through it. A transport allocates no memory of the device.
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

    /// Whether [`begin`](Self::begin) and its end can be recorded as a graph of a CUDA device; if
    /// not, why. They cannot, unless something else is said.
    ///
    /// # Errors
    ///
    /// The reason, as words behind a colon.
    fn recordable(&self) -> Result<(), &'static str> {
        Err("the host takes part in its messages")
    }

    /// A graph with recorded exchanges was given to `device`.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn replayed(&self, device: &Device, deadline: Duration) -> Result<(), Error> {
        let _ = (device, deadline);
        Ok(())
    }

    /// Waits until pending exchanges have ended on the device too, or have failed.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn settle(&self, deadline: Duration) -> Result<(), Error> {
        let _ = deadline;
        Ok(())
    }

    /// What each rank gives, in the order of the ranks, which need not give equally much.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error>;
}
