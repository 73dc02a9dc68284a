//! Messages between CUDA devices over NCCL.
//!
//! The host's messages go by the transport that was there before. NCCL's calls return at once
//! and are asked after until the deadline; so are, some exchanges later, the devices' parts.

mod library;

use crate::error::require_rank;
use crate::{
    Arrival, Arrived, Communicator, Error, Expected, Incoming, Outgoing, Parcel, Transport,
};
use halo_gpu::{Device, Event};
use library::{BYTES, Code, Comm, Config, IN_PROGRESS, Nccl, SUCCESS, UniqueId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// How many exchanges the host may be ahead of the device.
const AHEAD: usize = 8;

impl Communicator {
    /// The same ranks, whose devices send each other messages over NCCL. `device` is this
    /// rank's, and no other rank's.
    ///
    /// NCCL is looked for at run time: where the environment variable `HALO_NCCL` says, else as
    /// `libnccl.so.2`; version 2.14 or later. Its own variables (`NCCL_DEBUG`, …) apply. A
    /// message of another length than the receiver expects is nothing that NCCL finds out:
    /// the library's own fields agree on lengths when they are made.
    ///
    /// A rank that fails, or is gone, is an error in the next exchanges of the others or in
    /// [`settle`](Self::settle), at the latest after the deadline. NCCL's communicator is then
    /// aborted, so that its kernels end.
    ///
    /// # Errors
    ///
    /// [`Error::NcclMissing`] where there is no NCCL; [`Error::Nccl`] where it fails, as it does
    /// for ranks that share a device; [`Error::Device`] for another device than a CUDA device; as
    /// [`Transport::exchange`].
    pub fn with_nccl(self, device: &Device) -> Result<Self, Error> {
        let (transport, deadline, rims) = self.into_parts();
        let ring = Ring::new(transport, device, deadline)?;
        Ok(Self::over(ring).with_deadline(deadline).with_rims(rims))
    }
}

/// Ranks with a communicator of NCCL's.
struct Ring {
    host: Box<dyn Transport>,
    nccl: &'static Nccl,
    /// Null when it was aborted.
    comm: Cell<Comm>,
    /// Behind exchanges that may not be done, oldest first.
    under_way: RefCell<VecDeque<Event>>,
    /// How long the end may take.
    deadline: Duration,
}

// SAFETY: a communicator of NCCL's may be used by any thread, by one at a time: this value alone
// has it, and is not `Sync`.
unsafe impl Send for Ring {}

impl Ring {
    fn new(host: Box<dyn Transport>, device: &Device, deadline: Duration) -> Result<Self, Error> {
        // Everybody learns of a rank that has no NCCL or no CUDA device, before they wait in NCCL.
        let nccl = Nccl::load().and_then(|nccl| {
            device.with_cuda_stream(drop)?;
            let mut version = 0;
            // SAFETY: the pointer is good for a number.
            let code = unsafe { (nccl.ncclGetVersion)(&raw mut version) };
            nccl.said("ncclGetVersion", code)?;
            Ok((nccl, version))
        });
        let versions = host.all_gather(
            &nccl
                .as_ref()
                .map_or(0, |(_, version)| *version)
                .to_ne_bytes(),
            deadline,
        )?;
        let (nccl, version) = nccl?;
        for (peer, other) in versions.iter().enumerate() {
            if *other != version.to_ne_bytes() {
                let bytes = <[u8; 4]>::try_from(&other[..]).unwrap_or_default();
                return Err(Error::Disagreement {
                    what: "the version of NCCL (0: none that can be used)",
                    rank: host.rank(),
                    own: version.to_string(),
                    peer,
                    other: i32::from_ne_bytes(bytes).to_string(),
                });
            }
        }
        let mut id = UniqueId([0; 128]);
        let made = if host.rank() == 0 {
            // SAFETY: the pointer is good for an identity.
            let code = unsafe { (nccl.ncclGetUniqueId)(&raw mut id) };
            nccl.said("ncclGetUniqueId", code)
        } else {
            Ok(())
        };
        // Of no bytes where there is none.
        let own: &[u8] = if made.is_ok() { &id.0 } else { &[] };
        let ids = host.all_gather(own, deadline)?;
        made?;
        let first = ids.first().map_or(&[][..], Vec::as_slice);
        id.0 = first.try_into().map_err(|_| Error::Gone {
            rank: host.rank(),
            peer: 0,
        })?;
        let (rank, size) = (host.rank() as c_int, host.size() as c_int);
        let ring = Self {
            host,
            nccl,
            comm: Cell::new(std::ptr::null_mut()),
            under_way: RefCell::default(),
            deadline,
        };
        let mut config = Config::non_blocking();
        let mut comm = std::ptr::null_mut();
        let code = device.with_cuda_stream(|_| {
            // SAFETY: the pointers are good for a communicator and a configuration. The device's
            // context is current.
            unsafe { (nccl.ncclCommInitRankConfig)(&raw mut comm, size, id, rank, &raw mut config) }
        })?;
        ring.comm.set(comm);
        ring.done("ncclCommInitRankConfig", code, deadline)?;
        Ok(ring)
    }

    /// The result of a call that may still be in progress. After a failure there is no
    /// communicator.
    fn done(&self, call: &'static str, code: Code, deadline: Duration) -> Result<(), Error> {
        let start = Instant::now();
        self.noted(self.nccl.said(call, code))?;
        loop {
            match self.state(call)? {
                SUCCESS => return Ok(()),
                _ if start.elapsed() < deadline => pause(start),
                code => return self.noted(Err(self.late(call, code, deadline))),
            }
        }
    }

    /// What the communicator is at: `SUCCESS` or `IN_PROGRESS`.
    fn state(&self, call: &'static str) -> Result<Code, Error> {
        let mut state = SUCCESS;
        // SAFETY: the communicator is there, and the pointer is good for a number.
        let code = unsafe { (self.nccl.ncclCommGetAsyncError)(self.there()?, &raw mut state) };
        let asked = self.nccl.said("ncclCommGetAsyncError", code);
        self.noted(asked.and_then(|()| self.nccl.said(call, state)))?;
        Ok(state)
    }

    fn late(&self, call: &'static str, code: Code, deadline: Duration) -> Error {
        Error::Nccl {
            call,
            code,
            text: format!(
                "rank {} has waited {deadline:?} for the others, which is all that its deadline \
                 allows",
                self.host.rank()
            ),
        }
    }

    /// The communicator, which is gone after an error.
    fn there(&self) -> Result<Comm, Error> {
        match self.comm.get() {
            comm if comm.is_null() => Err(Error::Nccl {
                call: "ncclCommAbort",
                code: SUCCESS,
                text: "after an error there is no communicator any more".to_owned(),
            }),
            comm => Ok(comm),
        }
    }

    /// Aborts the communicator after an error, so that its kernels end.
    fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.abort();
        }
        result
    }

    fn abort(&self) {
        let comm = self.comm.replace(std::ptr::null_mut());
        if !comm.is_null() {
            // SAFETY: the communicator exists, and nothing uses it any more. A failure changes
            // nothing.
            let _ = unsafe { (self.nccl.ncclCommAbort)(comm) };
        }
    }

    /// Notes that what `device` has been given by now may be pending.
    fn is_under_way(&self, device: &Device) -> Result<(), Error> {
        let event = device.record_event()?;
        self.under_way.borrow_mut().push_back(event);
        Ok(())
    }

    /// Waits until at most `ahead` exchanges are pending on the device.
    fn wait_for_all_but(&self, ahead: usize, deadline: Duration) -> Result<(), Error> {
        let start = Instant::now();
        let mut under_way = self.under_way.borrow_mut();
        while under_way.len() > ahead {
            let Some(oldest) = under_way.front() else {
                break;
            };
            if self.noted(oldest.is_complete().map_err(Error::from))? {
                under_way.pop_front();
                continue;
            }
            let code = self.state("an exchange")?;
            if start.elapsed() >= deadline {
                return self.noted(Err(self.late("an exchange", code, deadline)));
            }
            pause(start);
        }
        Ok(())
    }

    /// Gives NCCL the messages as one group.
    ///
    /// NCCL has no tags: messages from one rank to another arrive in the order of the calls. So
    /// both ends call in the order of their tags; otherwise two ranks on a ring would swap their
    /// halos.
    fn group(
        &self,
        outgoing: &[Parcel],
        incoming: &[Expected],
        stream: *mut c_void,
    ) -> Result<Code, Error> {
        let (nccl, comm) = (self.nccl, self.there()?);
        let mut sends: Vec<_> = outgoing.iter().collect();
        sends.sort_by_key(|parcel| (parcel.to, parcel.tag));
        let mut receives: Vec<_> = incoming.iter().collect();
        receives.sort_by_key(|expected| (expected.from, expected.tag));
        // SAFETY: takes nothing.
        nccl.said("ncclGroupStart", unsafe { (nccl.ncclGroupStart)() })?;
        let mut given = Ok(());
        for parcel in sends {
            let from = parcel.bytes.device_address() as *const c_void;
            let (bytes, peer) = (parcel.bytes.len(), parcel.to as c_int);
            // SAFETY: `from` points to `bytes` bytes on this device. They are neither freed nor
            // written before the stream has done its work up to here, because the parcel is
            // used and freed in stream order. The communicator is valid.
            let code = unsafe { (nccl.ncclSend)(from, bytes, BYTES, peer, comm, stream) };
            given = given.and(nccl.said("ncclSend", code));
        }
        for expected in receives {
            let to = expected.room.device_address() as *mut c_void;
            let (bytes, peer) = (expected.room.len(), expected.from as c_int);
            // SAFETY: as above; nothing reads the bytes before, in the order of the stream.
            let code = unsafe { (nccl.ncclRecv)(to, bytes, BYTES, peer, comm, stream) };
            given = given.and(nccl.said("ncclRecv", code));
        }
        // Also after a failure: a group is always ended.
        // SAFETY: a group was started by this thread.
        let code = unsafe { (nccl.ncclGroupEnd)() };
        given.map(|()| code)
    }
}

impl Nccl {
    /// What a call returned, as a result. One that is still going on is none of the errors.
    fn said(&self, call: &'static str, code: Code) -> Result<(), Error> {
        match code {
            SUCCESS | IN_PROGRESS => Ok(()),
            _ => Err(self.error(call, code, std::ptr::null_mut())),
        }
    }
}

/// Lets other threads run for a moment. Most waits are short.
fn pause(start: Instant) {
    if start.elapsed() < Duration::from_micros(200) {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(50));
    }
}

impl Transport for Ring {
    fn rank(&self) -> usize {
        self.host.rank()
    }

    fn local_rank(&self) -> usize {
        self.host.local_rank()
    }

    fn size(&self) -> usize {
        self.host.size()
    }

    fn is_across_machines(&self) -> bool {
        self.host.is_across_machines()
    }

    fn name(&self) -> String {
        format!("NCCL ({}), started by {}", self.nccl.file, self.host.name())
    }

    fn exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        deadline: Duration,
    ) -> Result<(), Error> {
        self.host.exchange(outgoing, incoming, deadline)
    }

    fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Arrival<'a>, Error> {
        let peers = outgoing.iter().map(|it| it.to);
        for given in peers.chain(incoming.iter().map(|it| it.from)) {
            require_rank(given, self.size())?;
        }
        let messages = outgoing.iter().map(|it| &it.bytes);
        for buffer in messages.chain(incoming.iter().map(|it| &it.room)) {
            device.require("a message", buffer)?;
        }
        // A recording contains no question to the driver, and its events tell nothing.
        let is_recording = device.is_recording();
        if !is_recording {
            self.wait_for_all_but(AHEAD, deadline)?;
        }
        let group = device.with_cuda_stream(|stream| self.group(&outgoing, &incoming, stream))?;
        let code = self.noted(group)?;
        // Only then are the messages in the stream, before later work.
        self.done("ncclGroupEnd", code, deadline)?;
        if !is_recording {
            self.is_under_way(device)?;
        }
        Ok(Box::new(move || {
            Ok(Arrived {
                messages: incoming.into_iter().map(|it| it.room).collect(),
                spare: outgoing.into_iter().map(|it| it.bytes).collect(),
            })
        }))
    }

    fn recordable(&self) -> Result<(), &'static str> {
        Ok(())
    }

    fn replayed(&self, device: &Device, deadline: Duration) -> Result<(), Error> {
        self.is_under_way(device)?;
        self.wait_for_all_but(AHEAD, deadline)
    }

    fn settle(&self, deadline: Duration) -> Result<(), Error> {
        self.there()?;
        self.wait_for_all_but(0, deadline)
    }

    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error> {
        self.host.all_gather(own, deadline)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return self.abort();
        }
        if self.comm.get().is_null() {
            return;
        }
        // An error aborts the communicator; here it cannot be reported.
        let ended = self.settle(self.deadline).and_then(|()| {
            // SAFETY: the communicator is there, and nothing is under way.
            let code = unsafe { (self.nccl.ncclCommFinalize)(self.there()?) };
            self.done("ncclCommFinalize", code, self.deadline)
        });
        if ended.is_ok() {
            let comm = self.comm.replace(std::ptr::null_mut());
            // SAFETY: the communicator is finalised, and nothing uses it any more.
            let _ = unsafe { (self.nccl.ncclCommDestroy)(comm) };
        }
    }
}
