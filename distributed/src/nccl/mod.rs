//! The transport between CUDA devices, over NCCL.
//!
//! Messages of the host use the transport that the communicator had before. NCCL's calls return at
//! once, and are polled until they end or the deadline is over. The work on the device is polled
//! some exchanges later.

mod library;

use crate::error::require_rank;
use crate::{
    Arrival, Arrived, Communicator, Error, Expected, Incoming, Outgoing, Parcel, Transport,
};
use halo_gpu::{Buffer, Device, Event};
use library::{BYTES, Code, Comm, Config, IN_PROGRESS, Nccl, SUCCESS, UniqueId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

/// A message that is sent.
struct Sent {
    to: usize,
    tag: u32,
    bytes: Buffer<u8>,
}

/// A message that is expected.
struct Awaited {
    from: usize,
    tag: u32,
    room: Buffer<u8>,
}

/// The number of exchanges by which the host may be ahead of the device.
const AHEAD: usize = 8;

impl Communicator {
    /// Makes the devices of the ranks exchange messages over NCCL. `device` is this rank's device;
    /// no other rank may use it.
    ///
    /// NCCL 2.14 or later is loaded at run time, from the file that the environment variable
    /// `HALO_NCCL` names, else as `libnccl.so.2`. NCCL's own variables (`NCCL_DEBUG`, …) apply.
    /// NCCL does not detect a message of another length than the receiver expects; the fields of
    /// this library agree on lengths when they are made.
    ///
    /// If a rank fails or is gone, the next exchanges of the other ranks, or
    /// [`settle`](Self::settle), return an error, at the latest after the deadline. They then abort
    /// NCCL's communicator, which ends its kernels.
    ///
    /// # Errors
    ///
    /// [`Error::NcclMissing`] if NCCL cannot be loaded; [`Error::Nccl`] if it fails, as it does for
    /// ranks that share a device; [`Error::Device`] unless `device` is a CUDA device; as
    /// [`Transport::exchange`].
    pub fn with_nccl(self, device: &Device) -> Result<Self, Error> {
        let (transport, deadline, rims) = self.into_parts();
        let ring = Ring::new(transport, device, deadline)?;
        Ok(Self::over(ring).with_deadline(deadline).with_rims(rims))
    }
}

/// The ranks, with a communicator of NCCL.
struct Ring {
    host: Box<dyn Transport>,
    nccl: &'static Nccl,
    /// Null after it was aborted.
    comm: Cell<Comm>,
    /// Events after the exchanges that may still be pending, oldest first.
    under_way: RefCell<VecDeque<Event>>,
    /// The deadline for dropping it.
    deadline: Duration,
}

// SAFETY: any thread may use a communicator of NCCL, one thread at a time. Only this value has it,
// and it is not `Sync`.
unsafe impl Send for Ring {}

impl Ring {
    fn new(host: Box<dyn Transport>, device: &Device, deadline: Duration) -> Result<Self, Error> {
        // Before any rank waits in NCCL, all ranks learn whether one has no NCCL or no CUDA device.
        let nccl = Nccl::load().and_then(|nccl| {
            device.with_cuda_stream(drop)?;
            let mut version = 0;
            // SAFETY: the pointer is valid for a number.
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
                    what: "the version of NCCL (0: no usable one)",
                    rank: host.rank(),
                    own: version.to_string(),
                    peer,
                    other: i32::from_ne_bytes(bytes).to_string(),
                });
            }
        }
        let mut id = UniqueId([0; 128]);
        let made = if host.rank() == 0 {
            // SAFETY: the pointer is valid for an identity.
            let code = unsafe { (nccl.ncclGetUniqueId)(&raw mut id) };
            nccl.said("ncclGetUniqueId", code)
        } else {
            Ok(())
        };
        // Empty if there is no identity.
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
            // SAFETY: the pointers are valid for a communicator and a configuration. The device's
            // context is current.
            unsafe { (nccl.ncclCommInitRankConfig)(&raw mut comm, size, id, rank, &raw mut config) }
        })?;
        ring.comm.set(comm);
        ring.done("ncclCommInitRankConfig", code, deadline)?;
        Ok(ring)
    }

    /// Waits until a call that may still be in progress has ended. A failure aborts the
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

    /// The state of the communicator: `SUCCESS` or `IN_PROGRESS`.
    fn state(&self, call: &'static str) -> Result<Code, Error> {
        let mut state = SUCCESS;
        // SAFETY: the communicator is valid, and the pointer is valid for a number.
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
                "rank {} waited {deadline:?} for the others, until its deadline",
                self.host.rank()
            ),
        }
    }

    /// The communicator; fails after an earlier error, which has aborted it.
    fn there(&self) -> Result<Comm, Error> {
        match self.comm.get() {
            comm if comm.is_null() => Err(Error::Nccl {
                call: "ncclCommAbort",
                code: SUCCESS,
                text: "the communicator was aborted after an earlier error".to_owned(),
            }),
            comm => Ok(comm),
        }
    }

    /// Aborts the communicator if `result` is an error, which ends its kernels.
    fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.abort();
        }
        result
    }

    fn abort(&self) {
        let comm = self.comm.replace(std::ptr::null_mut());
        if !comm.is_null() {
            // SAFETY: the communicator is valid, and nothing uses it afterwards. A failure changes
            // nothing.
            let _ = unsafe { (self.nccl.ncclCommAbort)(comm) };
        }
    }

    /// Notes that the work given to `device` so far may be pending.
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

    /// Passes the messages to NCCL as one group.
    ///
    /// NCCL has no tags: messages from one rank to another arrive in the order of the calls. So
    /// both ends call in the order of their tags; otherwise two ranks on a ring would swap their
    /// halos.
    fn group(
        &self,
        outgoing: &[Sent],
        incoming: &[Awaited],
        stream: *mut c_void,
    ) -> Result<Code, Error> {
        let (nccl, comm) = (self.nccl, self.there()?);
        let mut sends: Vec<_> = outgoing.iter().collect();
        sends.sort_by_key(|parcel| (parcel.to, parcel.tag));
        let mut receives: Vec<_> = incoming.iter().collect();
        receives.sort_by_key(|expected| (expected.from, expected.tag));
        // SAFETY: the function takes no arguments.
        nccl.said("ncclGroupStart", unsafe { (nccl.ncclGroupStart)() })?;
        let mut given = Ok(());
        for parcel in sends {
            let from = parcel.bytes.device_address() as *const c_void;
            let (bytes, peer) = (parcel.bytes.len(), parcel.to as c_int);
            // SAFETY: `from` points to `bytes` bytes on this device. They are neither freed nor
            // written before the stream has reached this send, because the parcel is used and freed
            // in stream order. The communicator is valid.
            let code = unsafe { (nccl.ncclSend)(from, bytes, BYTES, peer, comm, stream) };
            given = given.and(nccl.said("ncclSend", code));
        }
        for expected in receives {
            let to = expected.room.device_address() as *mut c_void;
            let (bytes, peer) = (expected.room.len(), expected.from as c_int);
            // SAFETY: as above; in stream order nothing reads the bytes before they arrive.
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
    /// Turns the return code of a call into a result. A call in progress is not an error.
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
        let sent = outgoing.into_iter().map(|Parcel { to, tag, bytes }| {
            let bytes = bytes.into_buffer(device)?;
            Ok(Sent { to, tag, bytes })
        });
        let sent: Vec<Sent> = sent.collect::<Result<_, Error>>()?;
        let awaited = incoming.into_iter().map(|Expected { from, tag, room }| {
            let Some(room) = room.into_buffer() else {
                unreachable!("this transport does not work in place");
            };
            Awaited { from, tag, room }
        });
        let awaited: Vec<_> = awaited.collect();
        for buffer in sent
            .iter()
            .map(|it| &it.bytes)
            .chain(awaited.iter().map(|it| &it.room))
        {
            device.require("a message", buffer)?;
        }
        // A recording cannot query the driver, and its events cannot be queried.
        let is_recording = device.is_recording();
        if !is_recording {
            self.wait_for_all_but(AHEAD, deadline)?;
        }
        let group = device.with_cuda_stream(|stream| self.group(&sent, &awaited, stream))?;
        let code = self.noted(group)?;
        // Only after the call has ended are the messages in the stream, before later work.
        self.done("ncclGroupEnd", code, deadline)?;
        if !is_recording {
            self.is_under_way(device)?;
        }
        Ok(Box::new(move || {
            Ok(Arrived {
                messages: awaited.into_iter().map(|it| it.room).collect(),
                spare: sent.into_iter().map(|it| it.bytes).collect(),
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
        // An error aborts the communicator, and cannot be reported here.
        let ended = self.settle(self.deadline).and_then(|()| {
            // SAFETY: the communicator is valid, and nothing is pending.
            let code = unsafe { (self.nccl.ncclCommFinalize)(self.there()?) };
            self.done("ncclCommFinalize", code, self.deadline)
        });
        if ended.is_ok() {
            let comm = self.comm.replace(std::ptr::null_mut());
            // SAFETY: the communicator is finalised, and nothing uses it afterwards.
            let _ = unsafe { (self.nccl.ncclCommDestroy)(comm) };
        }
    }
}
