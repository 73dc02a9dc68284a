//! The transport between threads of one process.

use crate::error::require_rank;
use crate::transport::Space;
use crate::{Arrival, Arrived, Error, Expected, Incoming, Outgoing, Parcel, Transport};
use halo_gpu::{Device, DeviceKind, Sealed};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The transport of a rank that is a thread.
pub(crate) struct Thread {
    rank: usize,
    size: usize,
    office: Arc<Office>,
    /// The number of all-gathers that this rank has made.
    gathers: AtomicU64,
    sent: Counts,
    expected: Counts,
}

/// The numbers of parcels that were sent or expected so far, by rank and tag.
#[derive(Default)]
struct Counts(RefCell<HashMap<(usize, u32), u64>>);

impl Counts {
    /// The next parcel of this rank with this tag.
    fn next(&self, rank: usize, tag: u32) -> Kind {
        let mut counts = self.0.borrow_mut();
        let count = counts.entry((rank, tag)).or_default();
        *count += 1;
        Kind::Parcel(tag, *count)
    }
}

/// How long a rank polls for a message before it sleeps.
const SOON: Duration = Duration::from_micros(100);

/// The place where all ranks leave and fetch messages.
#[derive(Default)]
struct Office {
    desk: Mutex<Desk>,
    /// Signals that a message has arrived, or that a rank has ended.
    news: Condvar,
}

#[derive(Default)]
struct Desk {
    letters: Mail<Vec<u8>>,
    parcels: Mail<Sealed<u8>>,
    gone: Vec<bool>,
}

type Mail<M> = HashMap<Address, VecDeque<M>>;

impl Desk {
    fn letters(&mut self) -> &mut Mail<Vec<u8>> {
        &mut self.letters
    }

    fn parcels(&mut self) -> &mut Mail<Sealed<u8>> {
        &mut self.parcels
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Address {
    from: usize,
    to: usize,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// A message with a tag.
    Tagged(u32),
    /// The parcel with this number among those with this tag. It is not taken for another one if its
    /// exchange is given up, or is waited for later.
    Parcel(u32, u64),
    /// A rank's part of the all-gather with this number.
    Gathered(u64),
}

impl Thread {
    /// Makes `size` ranks.
    pub(crate) fn all(size: usize) -> Vec<Self> {
        let office = Arc::new(Office {
            desk: Mutex::new(Desk {
                gone: vec![false; size],
                ..Desk::default()
            }),
            news: Condvar::new(),
        });
        (0..size)
            .map(|rank| Self {
                rank,
                size,
                office: Arc::clone(&office),
                gathers: AtomicU64::new(0),
                sent: Counts::default(),
                expected: Counts::default(),
            })
            .collect()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // A panic leaves the value consistent.
        let desk = self.office.desk.lock();
        desk.unwrap_or_else(PoisonError::into_inner)
    }

    fn check_length(&self, peer: usize, required: usize, given: usize) -> Result<(), Error> {
        if given == required {
            return Ok(());
        }
        Err(Error::MessageLength {
            rank: self.rank,
            peer,
            required,
            given,
        })
    }

    fn leave<M>(&self, mail: fn(&mut Desk) -> &mut Mail<M>, to: usize, kind: Kind, message: M) {
        let from = self.rank;
        let address = Address { from, to, kind };
        let mut desk = self.desk();
        let queue = mail(&mut desk).entry(address).or_default();
        queue.push_back(message);
        self.office.news.notify_all();
    }

    fn fetch<M>(
        &self,
        mail: fn(&mut Desk) -> &mut Mail<M>,
        from: usize,
        kind: Kind,
        deadline: Duration,
    ) -> Result<M, Error> {
        let (start, to) = (Instant::now(), self.rank);
        let address = Address { from, to, kind };
        let mut desk = self.desk();
        loop {
            let mail = mail(&mut desk);
            if let Some(queue) = mail.get_mut(&address)
                && let Some(message) = queue.pop_front()
            {
                if queue.is_empty() {
                    mail.remove(&address);
                }
                return Ok(message);
            }
            if desk.gone[from] {
                return Err(Error::Gone {
                    rank: to,
                    peer: from,
                });
            }
            let waited = start.elapsed();
            if waited < SOON {
                // Waking a thread takes longer than most messages.
                drop(desk);
                std::thread::yield_now();
                desk = self.desk();
                continue;
            }
            let Some(left) = deadline.checked_sub(waited).filter(|it| !it.is_zero()) else {
                return Err(Error::Deadline {
                    rank: to,
                    peer: from,
                    waited,
                });
            };
            let news = self.office.news.wait_timeout(desk, left);
            desk = news.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Transport for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn name(&self) -> String {
        "threads of one process, copies between its devices".to_owned()
    }

    fn exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        deadline: Duration,
    ) -> Result<(), Error> {
        let peers = outgoing.iter().map(|it| it.to);
        for peer in peers.chain(incoming.iter().map(|it| it.from)) {
            require_rank(peer, self.size)?;
        }
        for Outgoing { to, tag, bytes } in outgoing {
            self.leave(Desk::letters, *to, Kind::Tagged(*tag), bytes.to_vec());
        }
        for Incoming { from, tag, bytes } in incoming {
            let message = self.fetch(Desk::letters, *from, Kind::Tagged(*tag), deadline)?;
            self.check_length(*from, bytes.len(), message.len())?;
            bytes.copy_from_slice(&message);
        }
        Ok(())
    }

    /// Each message is a buffer that the receiver's thread gets, with an event after the work on
    /// it; the receiver's device copies it. On the CPU the receiver keeps the buffer itself.
    fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Arrival<'a>, Error> {
        let peers = outgoing.iter().map(|it| it.to);
        for peer in peers.chain(incoming.iter().map(|it| it.from)) {
            require_rank(peer, self.size)?;
        }
        for Parcel { to, tag, bytes } in outgoing {
            let bytes = bytes.into_buffer(device)?.seal()?;
            self.leave(Desk::parcels, to, self.sent.next(to, tag), bytes);
        }
        let numbered = |it: Expected| (self.expected.next(it.from, it.tag), it);
        let incoming: Vec<_> = incoming.into_iter().map(numbered).collect();
        Ok(Box::new(move || {
            let (mut messages, mut spare) = (Vec::new(), Vec::new());
            for (kind, Expected { from, room, .. }) in incoming {
                let mut parcel = self.fetch(Desk::parcels, from, kind, deadline)?;
                self.check_length(from, room.len(), parcel.len())?;
                match room.0 {
                    Space::Part(mut part) => {
                        parcel.open()?.copy_to_slice(part.as_mut_slice())?;
                    }
                    Space::Buffer(room) if device.kind() == DeviceKind::Cpu => {
                        messages.push(parcel.open()?.move_to(device)?);
                        spare.push(room);
                    }
                    Space::Buffer(mut room) => {
                        room.view_mut(..)?.copy_from_sealed(&mut parcel)?;
                        messages.push(room);
                    }
                }
            }
            Ok(Arrived { messages, spare })
        }))
    }

    fn recordable(&self) -> Result<(), &'static str> {
        Err("each rank has its own thread, and a graph records one thread only")
    }

    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let kind = Kind::Gathered(self.gathers.fetch_add(1, Ordering::Relaxed));
        for to in 0..self.size {
            self.leave(Desk::letters, to, kind, own.to_vec());
        }
        (0..self.size)
            .map(|from| self.fetch(Desk::letters, from, kind, deadline))
            .collect()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.desk().gone[self.rank] = true;
        self.office.news.notify_all();
    }
}
