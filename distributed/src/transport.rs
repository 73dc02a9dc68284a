//! What moves bytes between ranks.

use crate::Error;
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

/// What moves bytes between ranks.
///
/// Messages of one rank to another with the same tag arrive in the order in which they were
/// sent; those with different tags never get into each other's place. Every rank takes part in
/// each [`all_gather`](Self::all_gather), in the same order.
///
/// No call waits longer than `deadline` for another rank; a rank that is known to be gone is an
/// error at once. After an error the transport may be used no more by this rank, and drops its
/// part of it, so that the others learn of it.
pub trait Transport: Send {
    /// The number of this rank, from 0 on.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn size(&self) -> usize;

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

    /// What each rank gives, in the order of the ranks, which need not give equally much.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error>;
}
