//! The transport between processes, over MPI.
//!
//! It calls `mpi::ffi`, because the safe layer of the crate drops return codes. It sends and
//! receives messages without blocking and tests them until the deadline, so that no call waits for
//! ever for another rank.
//!
//! MPI makes progress only during a call. A separate thread, the courier, tests the exchanges that
//! have begun, so that messages make progress while the rank computes.
//!
//! Messages of devices other than the CPU go through page-locked memory of the host. The rank does
//! not wait for the copies to it: the courier begins to send when they have ended.

use crate::communicator::{Launched, launched_ranks};
use crate::error::require_rank;
use crate::in_place::{Received, Sent};
use crate::spare;
use crate::transport::{Content, Space};
use crate::{
    Arrival, Arrived, Communicator, Error, Expected, Incoming, Outgoing, Parcel, Transport,
};
use halo_gpu::{Buffer, Device, DeviceKind, Event, HostBuffer};
use mpi::ffi;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

impl Communicator {
    /// The rank of this process among the launcher's processes, over MPI; without a launcher, a
    /// single rank.
    ///
    /// This call initialises MPI, and dropping the communicator finalises it, so a process can have
    /// one such communicator in its life. After an error MPI is not finalised, because that would
    /// wait for the other ranks; the launcher ends them when this process ends.
    ///
    /// # Errors
    ///
    /// [`Error::Mpi`] if MPI fails, does not support calls from several threads one at a time, or
    /// was initialised before; [`Error::Launcher`] if launcher and MPI library disagree on the
    /// number of ranks, as they do if they are of different MPI implementations;
    /// [`Error::Disagreement`] if the programs of the ranks have different versions of this
    /// library.
    pub fn mpi() -> Result<Self, Error> {
        let communicator = Self::over(World::new()?);
        communicator.agree_on_version(env!("CARGO_PKG_VERSION"))?;
        Ok(communicator)
    }
}

/// This rank's connection to the ranks that the launcher has started.
struct World {
    rank: usize,
    size: usize,
    /// The number of this rank among the ranks of its machine.
    local_rank: usize,
    is_across_machines: bool,
    /// For messages with tags.
    tagged: ffi::MPI_Comm,
    /// For messages of devices.
    parcels: ffi::MPI_Comm,
    /// For all-gathers, which have no tags: only their order distinguishes them.
    gathers: ffi::MPI_Comm,
    /// Free host memory for messages of devices other than the CPU.
    spare: Cell<Vec<HostBuffer<u8>>>,
    /// Whether a call has failed.
    failed: Cell<bool>,
    desk: Arc<Desk>,
    /// The thread that tests exchanges; started at the first exchange.
    courier: Cell<Option<JoinHandle<()>>>,
}

// SAFETY: with MPI_THREAD_SERIALIZED any thread may use the handles, one thread at a time. `TAKEN`
// makes this the only value of the process that calls MPI, and it calls MPI only while it holds the
// lock of its one `Begun`.
unsafe impl Send for World {}

/// The state that a rank and its courier share.
#[derive(Default)]
struct Desk {
    begun: Mutex<Begun>,
    /// Signals a new exchange, or the end.
    news: Condvar,
}

/// The exchanges that have begun and not ended. Whoever holds its lock may call MPI.
#[derive(Default)]
struct Begun {
    /// By number, the oldest first.
    exchanges: BTreeMap<u64, Exchange>,
    next: u64,
    closing: bool,
}

// SAFETY: as for `World`: only the thread that holds the lock uses the MPI handles of the
// exchanges. Everything else in them is `Send`.
unsafe impl Send for Begun {}

/// How long a rank that waits for a message without bytes tests it without pause, before it sleeps
/// between two tests. For longer messages [`is_soon`] adds time.
const SOON: Duration = Duration::from_micros(200);

/// How long the courier sleeps between two tests.
const ROUND: Duration = Duration::from_micros(100);

impl Desk {
    fn begun(&self) -> MutexGuard<'_, Begun> {
        // A panic may leave exchanges unfinished; then `World` does not finalise MPI.
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tests exchanges until the desk closes.
    fn carry(&self) {
        let mut begun = self.begun();
        while !begun.closing {
            begun = if begun.go_on() {
                drop(begun);
                std::thread::sleep(ROUND);
                self.begun()
            } else {
                let news = self.news.wait(begun);
                news.unwrap_or_else(PoisonError::into_inner)
            };
        }
    }
}

impl Begun {
    /// Tests all exchanges, and returns whether one of them has not ended.
    fn go_on(&mut self) -> bool {
        let mut looked_for = Vec::new();
        let mut under_way = false;
        for exchange in self.exchanges.values_mut() {
            if exchange.failed.is_none()
                && let Err(error) = exchange.go_on(&mut looked_for)
            {
                exchange.failed = Some(error);
            }
            under_way |= exchange.failed.is_none() && exchange.waits_for().is_some();
        }
        under_way
    }
}

/// Messages of devices that were begun together.
struct Exchange {
    rank: usize,
    comm: ffi::MPI_Comm,
    /// The event after the copies of the messages to the host. `None` once the copies have ended;
    /// no send begins before.
    copied: Option<Event>,
    sends: Vec<Sending>,
    receives: Vec<Receive>,
    failed: Option<Error>,
}

/// A message to another rank.
struct Sending {
    tag: c_int,
    pending: Pending,
}

/// A message that is expected.
struct Receive {
    tag: c_int,
    /// The receive, which begins once the message is found.
    pending: Pending,
    is_found: bool,
}

impl Exchange {
    /// Tests its messages. It does not look for a message while an older exchange waits for one
    /// from the same rank with the same tag.
    fn go_on(&mut self, looked_for: &mut Vec<(usize, c_int)>) -> Result<(), Error> {
        for receive in &mut self.receives {
            let which = (receive.pending.peer, receive.tag);
            if !receive.is_found {
                if !looked_for.contains(&which)
                    && let Some(found) = found(self.comm, which.0, which.1)?
                {
                    require_length(self.rank, which.0, receive.pending.bytes.len(), found.bytes)?;
                    receive.pending.receive(found)?;
                    receive.is_found = true;
                } else {
                    looked_for.push(which);
                }
            }
            receive.pending.test()?;
        }
        self.begin_sends()?;
        self.sends
            .iter_mut()
            .try_for_each(|send| send.pending.test().map(drop))
    }

    /// Begins the sends when all messages are on the host. Does nothing if they have begun.
    fn begin_sends(&mut self) -> Result<(), Error> {
        match &self.copied {
            Some(copied) if copied.is_complete()? => self.copied = None,
            _ => return Ok(()),
        }
        let Self { rank, comm, .. } = *self;
        self.sends
            .iter_mut()
            .try_for_each(|send| send.pending.send(rank, comm, send.tag))
    }

    /// The number of bytes of all its messages.
    fn bytes(&self) -> usize {
        let came = self.receives.iter().map(|it| it.pending.bytes.len());
        came.chain(self.sends.iter().map(|it| it.pending.bytes.len()))
            .sum()
    }

    /// A rank that has not yet sent or received a message of this exchange.
    fn waits_for(&self) -> Option<usize> {
        let is_missing = |it: &&Receive| !it.is_found || it.pending.under_way;
        let from = self.receives.iter().find(is_missing);
        let from = from.map(|it| it.pending.peer);
        let is_unsent = |it: &&Sending| self.copied.is_some() || it.pending.under_way;
        let to = self.sends.iter().find(is_unsent);
        from.or_else(|| to.map(|it| it.pending.peer))
    }
}

/// The buffers of an exchange between devices other than CPUs, whose messages go through copies on
/// the host.
#[derive(Default)]
struct OnDevice {
    rooms: Vec<Buffer<u8>>,
    sent: Vec<Buffer<u8>>,
}

/// Removes its exchange when dropped, if that has not ended.
struct Ticket<'a> {
    world: &'a World,
    number: u64,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.world.desk.begun().exchanges.remove(&self.number) {
            self.world.failed.set(true);
            drop(exchange);
        }
    }
}

/// A message that has arrived, and that only the owner of this value can receive.
struct Found {
    message: ffi::MPI_Message,
    bytes: usize,
}

/// The next message from a rank with a tag, if it has arrived.
fn found(comm: ffi::MPI_Comm, from: usize, tag: c_int) -> Result<Option<Found>, Error> {
    let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
    // SAFETY: reads a constant of the MPI library.
    let mut message = unsafe { ffi::RSMPI_MESSAGE_NULL };
    let mut found = 0;
    // SAFETY: the communicator is valid; the pointers are valid for a number, a message and a
    // status.
    let code = unsafe {
        ffi::MPI_Improbe(
            from as c_int,
            tag,
            comm,
            &raw mut found,
            &raw mut message,
            status.as_mut_ptr(),
        )
    };
    said("MPI_Improbe", code)?;
    if found == 0 {
        return Ok(None);
    }
    let mut count = 0;
    // SAFETY: a message was found, so the status is set.
    let code = unsafe { ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &raw mut count) };
    said("MPI_Get_count", code)?;
    let bytes = usize::try_from(count).unwrap_or(0);
    Ok(Some(Found { message, bytes }))
}

fn require_length(rank: usize, peer: usize, required: usize, given: usize) -> Result<(), Error> {
    if given == required {
        return Ok(());
    }
    Err(Error::MessageLength {
        rank,
        peer,
        required,
        given,
    })
}

/// The variables of Open MPI, UCX, libfabric and Intel MPI by which users and launchers choose how
/// messages are sent.
const WAYS: [&str; 5] = [
    "OMPI_MCA_pml",
    "OMPI_MCA_btl",
    "UCX_TLS",
    "FI_PROVIDER",
    "I_MPI_FABRICS",
];

/// Whether this module has initialised MPI.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Turns the return code of a call into a result. `MPI_SUCCESS` is 0 in every MPI.
fn said(call: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    // Longer than MPI_MAX_ERROR_STRING of any MPI; those of MPICH and Open MPI are 256 to 1024.
    let mut text = [0 as c_char; 4096];
    let mut len = 0;
    // SAFETY: the pointers are valid for the longest string and a number.
    let described = unsafe { ffi::MPI_Error_string(code, text.as_mut_ptr(), &raw mut len) };
    let len = usize::try_from(len).unwrap_or(0).min(text.len());
    let bytes: Vec<u8> = text[..len].iter().map(|&byte| byte as u8).collect();
    Err(Error::Mpi {
        call,
        code,
        text: if described == 0 {
            String::from_utf8_lossy(&bytes).into_owned()
        } else {
            "an error without a description".to_owned()
        },
    })
}

fn refused(call: &'static str, text: &str) -> Error {
    Error::Mpi {
        call,
        code: 0,
        text: text.to_owned(),
    }
}

impl World {
    fn new() -> Result<Self, Error> {
        let mut initialised = 0;
        // SAFETY: may be called at any time; the pointer is valid for a number.
        let code = unsafe { ffi::MPI_Initialized(&raw mut initialised) };
        said("MPI_Initialized", code)?;
        if TAKEN.swap(true, Ordering::AcqRel) || initialised != 0 {
            let text = "MPI was initialised before in this process";
            return Err(refused("MPI_Init_thread", text));
        }
        let mut provided = 0;
        // SAFETY: MPI was not initialised before, and `TAKEN` was false, so no other thread of this
        // module initialises it. Null stands for no arguments; the constants are the MPI library's.
        let code = unsafe {
            ffi::MPI_Init_thread(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                ffi::RSMPI_THREAD_SERIALIZED,
                &raw mut provided,
            )
        };
        said("MPI_Init_thread", code)?;
        // SAFETY: reads a constant of the MPI library.
        if provided < unsafe { ffi::RSMPI_THREAD_SERIALIZED } {
            let text = "this MPI allows calls only from its first thread; \
                        MPI_THREAD_SERIALIZED is required";
            return Err(refused("MPI_Init_thread", text));
        }
        let (tagged, parcels, gathers) = (duplicate()?, duplicate()?, duplicate()?);
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the communicator is valid; the pointers are valid for a number each.
        said("MPI_Comm_rank", unsafe {
            ffi::MPI_Comm_rank(tagged, &raw mut rank)
        })?;
        // SAFETY: as above.
        said("MPI_Comm_size", unsafe {
            ffi::MPI_Comm_size(tagged, &raw mut size)
        })?;
        let (rank, size) = (rank as usize, size as usize);
        // Also with Slurm, MPI knows either all ranks or only this one.
        let other = launched_ranks().into_iter().find(|it| it.ranks != size);
        if let Some(Launched { variable, ranks }) = other {
            return Err(Error::Launcher {
                variable,
                launched: ranks,
                ranks: size,
            });
        }
        let [local_rank, local_size] = on_this_machine(tagged)?;
        Ok(Self {
            rank,
            size,
            local_rank,
            is_across_machines: local_size < size,
            tagged,
            parcels,
            gathers,
            spare: Cell::default(),
            failed: Cell::new(false),
            desk: Arc::default(),
            courier: Cell::default(),
        })
    }

    /// Begins to send. The borrowed `Begun` shows that the caller may call MPI.
    fn send(
        &self,
        _: &mut Begun,
        comm: ffi::MPI_Comm,
        (to, tag): (usize, c_int),
        bytes: Vec<u8>,
    ) -> Result<Pending, Error> {
        require_rank(to, self.size)?;
        let mut pending = Pending::new(to, Bytes::Own(bytes));
        pending.send(self.rank, comm, tag)?;
        Ok(pending)
    }

    /// The next message from `from`. If `required` is given, the message must have that many bytes.
    fn receive(
        &self,
        comm: ffi::MPI_Comm,
        from: usize,
        tag: c_int,
        required: Option<usize>,
        until: &Until,
    ) -> Result<Vec<u8>, Error> {
        require_rank(from, self.size)?;
        let start = Instant::now();
        let pending = loop {
            {
                let _right = self.desk.begun();
                if let Some(found) = found(comm, from, tag)? {
                    let mut pending = Pending::new(from, Bytes::Own(vec![0; found.bytes]));
                    pending.receive(found)?;
                    break pending;
                }
            }
            until.pause(self.rank, from, is_soon(start, required.unwrap_or(0)))?;
        };
        let bytes = self.finish(pending, until)?;
        require_length(
            self.rank,
            from,
            required.unwrap_or(bytes.len()),
            bytes.len(),
        )?;
        Ok(bytes)
    }

    /// Waits until MPI is done with the bytes, and returns them.
    fn finish(&self, mut pending: Pending, until: &Until) -> Result<Vec<u8>, Error> {
        let (start, len) = (Instant::now(), pending.bytes.len());
        loop {
            let done = {
                let _right = self.desk.begun();
                pending.test()?
            };
            if done {
                break;
            }
            until.pause(self.rank, pending.peer, is_soon(start, len))?;
        }
        match pending.take() {
            Bytes::Own(bytes) => Ok(bytes),
            other => Ok(other.as_slice()?.to_vec()),
        }
    }

    /// Begins an exchange, which the courier then tests.
    fn begin_exchange(
        &self,
        device: &Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
    ) -> Result<(Ticket<'_>, OnDevice), Error> {
        let is_host = device.kind() == DeviceKind::Cpu;
        let mut on_device = OnDevice::default();
        let mut receives = Vec::new();
        for Expected { from, tag, room } in incoming {
            require_rank(from, self.size)?;
            let bytes = match room.0 {
                Space::Part(part) => Bytes::Received(part),
                Space::Buffer(room) if is_host => Bytes::Own(room.into_vec()?),
                Space::Buffer(room) => {
                    let mut bytes = self.on_host(device, room.len())?;
                    // Waits for an earlier copy from it to the device.
                    bytes.as_mut_slice()?;
                    on_device.rooms.push(room);
                    Bytes::OfDevice(bytes)
                }
            };
            receives.push(Receive {
                tag: tag_of(tag)?,
                pending: Pending::new(from, bytes),
                is_found: false,
            });
        }
        let mut sends = Vec::new();
        for Parcel { to, tag, bytes } in outgoing {
            require_rank(to, self.size)?;
            count_of(bytes.len(), self.rank, to)?;
            let message = if is_host {
                match bytes.0 {
                    Content::Buffer(bytes) => Bytes::Own(bytes.into_vec()?),
                    Content::Part(part) => Bytes::Sent(part),
                }
            } else {
                let bytes = bytes.into_buffer(device)?;
                let mut message = self.on_host(device, bytes.len())?;
                bytes.copy_to_host(&mut message)?;
                on_device.sent.push(bytes);
                Bytes::OfDevice(message)
            };
            let (tag, pending) = (tag_of(tag)?, Pending::new(to, message));
            sends.push(Sending { tag, pending });
        }
        let mut exchange = Exchange {
            rank: self.rank,
            comm: self.parcels,
            copied: Some(device.record_event()?),
            sends,
            receives,
            failed: None,
        };
        let mut begun = self.desk.begun();
        exchange.begin_sends()?;
        let number = begun.next;
        begun.next += 1;
        begun.exchanges.insert(number, exchange);
        drop(begun);
        self.call_courier();
        let ticket = Ticket {
            world: self,
            number,
        };
        Ok((ticket, on_device))
    }

    /// Host memory for a message of this many bytes to or from `device`, with unspecified contents.
    fn on_host(&self, device: &Device, bytes: usize) -> Result<HostBuffer<u8>, halo_gpu::Error> {
        let mut free = self.spare.take();
        let fits = |it: &HostBuffer<u8>| it.len() == bytes && it.device() == device;
        let found = free.iter().position(fits).map(|at| free.remove(at));
        self.spare.set(free);
        found.map_or_else(|| device.alloc_host(bytes), Ok)
    }

    /// The result of an exchange, from the bytes that have arrived and the bytes that were sent.
    fn arrived(
        &self,
        device: &Device,
        [came, sent]: [Vec<Bytes>; 2],
        on_device: OnDevice,
    ) -> Result<Arrived, Error> {
        let mut arrived = Arrived {
            messages: Vec::new(),
            spare: on_device.sent,
        };
        let mut free = self.spare.take();
        let mut rooms = on_device.rooms.into_iter();
        for bytes in came {
            match bytes {
                Bytes::Own(own) => arrived.messages.push(Buffer::from_vec(device, own)?),
                Bytes::OfDevice(bytes) => {
                    let Some(mut room) = rooms.next() else {
                        unreachable!("each message of a device has its room there");
                    };
                    room.copy_from_host(&bytes)?;
                    arrived.messages.push(room);
                    free.push(bytes);
                }
                Bytes::Sent(_) | Bytes::Received(_) => {}
            }
        }
        for bytes in sent {
            match bytes {
                Bytes::Own(own) => arrived.spare.push(Buffer::from_vec(device, own)?),
                Bytes::OfDevice(bytes) => free.push(bytes),
                Bytes::Sent(_) | Bytes::Received(_) => {}
            }
        }
        free.drain(..free.len().saturating_sub(spare::MOST));
        self.spare.set(free);
        Ok(arrived)
    }

    /// Notifies the courier of a new exchange, and starts the courier if necessary. If the system
    /// has no thread for it, messages make progress only while a rank waits for them.
    fn call_courier(&self) {
        let courier = self.courier.take().or_else(|| {
            let desk = Arc::clone(&self.desk);
            let named = std::thread::Builder::new().name("halo-mpi".to_owned());
            named.spawn(move || desk.carry()).ok()
        });
        self.courier.set(courier);
        self.desk.news.notify_one();
    }

    /// Waits for the end of an exchange, and returns the bytes that have arrived and the bytes that
    /// were sent.
    fn end_exchange(&self, ticket: Ticket<'_>, until: &Until) -> Result<[Vec<Bytes>; 2], Error> {
        let start = Instant::now();
        loop {
            let (peer, bytes) = {
                let mut begun = self.desk.begun();
                begun.go_on();
                let Some(exchange) = begun.exchanges.get_mut(&ticket.number) else {
                    unreachable!("its ticket alone takes it away");
                };
                if let Some(error) = exchange.failed.take() {
                    return Err(error);
                }
                match exchange.waits_for() {
                    Some(peer) => (peer, exchange.bytes()),
                    None => {
                        let receives = std::mem::take(&mut exchange.receives).into_iter();
                        let sends = std::mem::take(&mut exchange.sends).into_iter();
                        begun.exchanges.remove(&ticket.number);
                        let came = receives.map(|it| it.pending.take()).collect();
                        return Ok([came, sends.map(|it| it.pending.take()).collect()]);
                    }
                }
            };
            until.pause(self.rank, peer, is_soon(start, bytes))?;
        }
    }

    /// Sets `failed` if `result` is an error.
    fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.failed.set(true);
        }
        result
    }

    fn try_exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        until: &Until,
    ) -> Result<(), Error> {
        let sends = outgoing.iter().map(|it| {
            let (to, right) = ((it.to, tag_of(it.tag)?), &mut self.desk.begun());
            self.send(right, self.tagged, to, it.bytes.to_vec())
        });
        let sends = sends.collect::<Result<Vec<_>, _>>()?;
        for Incoming { from, tag, bytes } in incoming {
            let (tag, required) = (tag_of(*tag)?, Some(bytes.len()));
            let message = self.receive(self.tagged, *from, tag, required, until)?;
            bytes.copy_from_slice(&message);
        }
        for send in sends {
            self.finish(send, until)?;
        }
        Ok(())
    }

    fn try_all_gather(&self, own: &[u8], until: &Until) -> Result<Vec<Vec<u8>>, Error> {
        let others = (0..self.size).filter(|&it| it != self.rank);
        let sends = others.map(|to| {
            let right = &mut self.desk.begun();
            self.send(right, self.gathers, (to, 0), own.to_vec())
        });
        let sends = sends.collect::<Result<Vec<_>, _>>()?;
        let all = (0..self.size).map(|from| {
            if from == self.rank {
                return Ok(own.to_vec());
            }
            self.receive(self.gathers, from, 0, None, until)
        });
        let all = all.collect::<Result<Vec<_>, _>>()?;
        for send in sends {
            self.finish(send, until)?;
        }
        Ok(all)
    }
}

impl Transport for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local_rank(&self) -> usize {
        self.local_rank
    }

    fn is_across_machines(&self) -> bool {
        self.is_across_machines
    }

    fn is_through_host(&self) -> bool {
        true
    }

    fn is_in_place(&self) -> bool {
        true
    }

    fn name(&self) -> String {
        // Longer than MPI_MAX_LIBRARY_VERSION_STRING of any MPI.
        let mut text = [0 as c_char; 1 << 14];
        let mut len = 0;
        // SAFETY: the pointers are valid for the longest string and a number.
        let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &raw mut len) };
        let len = usize::try_from(len).unwrap_or(0).min(text.len());
        let bytes: Vec<u8> = text[..len].iter().map(|&byte| byte as u8).collect();
        let version = String::from_utf8_lossy(&bytes);
        // Open MPI also counts the null byte at the end.
        let mut name = "MPI through the host".to_owned();
        if let Some(version) = version.trim_end_matches('\0').lines().next()
            && code == 0
        {
            name += &format!(": {version}");
        }
        for variable in WAYS {
            if let Ok(way) = std::env::var(variable) {
                name += &format!(", {variable}={way}");
            }
        }
        name
    }

    fn exchange(
        &self,
        outgoing: &[Outgoing<'_>],
        incoming: &mut [Incoming<'_>],
        deadline: Duration,
    ) -> Result<(), Error> {
        let until = Until::now(deadline);
        self.noted(self.try_exchange(outgoing, incoming, &until))
    }

    /// Sends through the host. The courier carries on with the exchange after this returns.
    fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Arrival<'a>, Error> {
        let until = Until::now(deadline);
        let (ticket, on_device) = self.noted(self.begin_exchange(device, outgoing, incoming))?;
        Ok(Box::new(move || {
            let done = self.noted(self.end_exchange(ticket, &until))?;
            self.arrived(device, done, on_device)
        }))
    }

    fn recordable(&self) -> Result<(), &'static str> {
        Err("messages go through the host, and a graph cannot wait for the host")
    }

    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let until = Until::now(deadline);
        self.noted(self.try_all_gather(own, &until))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.desk.begun().closing = true;
        self.desk.news.notify_one();
        if let Some(courier) = self.courier.take() {
            // A panic of the courier changes nothing here.
            let _ = courier.join();
        }
        if self.failed.get() || std::thread::panicking() {
            // MPI_Finalize waits for all ranks, and some may never call it.
            return;
        }
        // SAFETY: this rank does not call MPI again. No call has failed, so all requests have
        // ended. MPI frees the communicators.
        let _ = unsafe { ffi::MPI_Finalize() };
    }
}

/// A duplicate of the communicator of all ranks that returns errors.
fn duplicate() -> Result<ffi::MPI_Comm, Error> {
    // SAFETY: reads constants of the MPI library, which is initialised.
    let (world, mut comm) = unsafe { (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_NULL) };
    // SAFETY: the pointer is valid for a communicator; all ranks make this call.
    said("MPI_Comm_dup", unsafe {
        ffi::MPI_Comm_dup(world, &raw mut comm)
    })?;
    // SAFETY: the communicator is valid, and the handler is a constant of the MPI library.
    said("MPI_Comm_set_errhandler", unsafe {
        ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN)
    })?;
    Ok(comm)
}

/// The number of this rank among the ranks that share its machine's memory, and the number of these
/// ranks.
fn on_this_machine(comm: ffi::MPI_Comm) -> Result<[usize; 2], Error> {
    // SAFETY: reads constants of the MPI library, which is initialised.
    let (shared, info, mut local) = unsafe {
        (
            ffi::RSMPI_COMM_TYPE_SHARED,
            ffi::RSMPI_INFO_NULL,
            ffi::RSMPI_COMM_NULL,
        )
    };
    // SAFETY: the communicator is valid, the pointer is valid for another one, and all ranks make
    // this call. With equal keys ranks keep their order.
    said("MPI_Comm_split_type", unsafe {
        ffi::MPI_Comm_split_type(comm, shared, 0, info, &raw mut local)
    })?;
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the communicator is valid; the pointer is valid for a number.
    said("MPI_Comm_rank", unsafe {
        ffi::MPI_Comm_rank(local, &raw mut rank)
    })?;
    // SAFETY: as above.
    said("MPI_Comm_size", unsafe {
        ffi::MPI_Comm_size(local, &raw mut size)
    })?;
    // SAFETY: the communicator is valid, and is not used again; all its ranks make this call.
    said("MPI_Comm_free", unsafe {
        ffi::MPI_Comm_free(&raw mut local)
    })?;
    Ok([rank as usize, size as usize])
}

/// The tag as MPI's type, if every MPI supports the value.
fn tag_of(tag: u32) -> Result<c_int, Error> {
    if tag < 32_768 {
        return Ok(tag as c_int);
    }
    Err(Error::InvalidParameter {
        operation: "a message",
        parameter: "the tag",
        given: tag.to_string(),
        required: "below 32768".to_owned(),
    })
}

/// A number of bytes as MPI's type.
fn count_of(bytes: usize, rank: usize, peer: usize) -> Result<c_int, Error> {
    c_int::try_from(bytes).map_err(|_| Error::InvalidParameter {
        operation: "a message",
        parameter: "its length",
        given: format!("{bytes} bytes, from rank {rank} to rank {peer}"),
        required: format!("at most {}", c_int::MAX),
    })
}

/// A deadline: when a wait began and how long it may take.
struct Until {
    start: Instant,
    deadline: Duration,
}

impl Until {
    fn now(deadline: Duration) -> Self {
        Self {
            start: Instant::now(),
            deadline,
        }
    }

    /// Yields if the wait is likely to end `soon`, else sleeps for a moment; fails after the
    /// deadline.
    fn pause(&self, rank: usize, peer: usize, soon: bool) -> Result<(), Error> {
        let waited = self.start.elapsed();
        if waited >= self.deadline {
            return Err(Error::Deadline { rank, peer, waited });
        }
        // There may be more ranks than processors.
        if soon {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// Whether a wait that began at `start`, for a message of this many bytes, is likely to end soon.
/// Messages take some microseconds. An MPI that copies a message in pieces copies one piece in each
/// call: if it is called without pause, it moves more than a byte in a nanosecond.
fn is_soon(start: Instant, bytes: usize) -> bool {
    start.elapsed() < SOON + Duration::from_nanos(bytes as u64)
}

/// The bytes of a message on the host.
enum Bytes {
    Own(Vec<u8>),
    /// Memory for copies to and from a device. No copy is under way while MPI uses it.
    OfDevice(HostBuffer<u8>),
    /// A part of a field to send.
    Sent(Sent),
    /// A part of a field to receive into.
    Received(Received),
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Bytes {
    fn len(&self) -> usize {
        match self {
            Self::Own(own) => own.len(),
            Self::OfDevice(bytes) => bytes.len(),
            Self::Sent(part) => part.len(),
            Self::Received(part) => part.len(),
        }
    }

    fn as_slice(&self) -> Result<&[u8], Error> {
        match self {
            Self::Own(own) => Ok(own),
            Self::OfDevice(bytes) => Ok(bytes.as_slice()?),
            Self::Sent(part) => Ok(part.as_slice()),
            Self::Received(_) => unreachable!("a part to receive into is not sent"),
        }
    }

    fn as_mut_slice(&mut self) -> Result<&mut [u8], Error> {
        match self {
            Self::Own(own) => Ok(own),
            Self::OfDevice(bytes) => Ok(bytes.as_mut_slice()?),
            Self::Received(part) => Ok(part.as_mut_slice()),
            Self::Sent(_) => unreachable!("nothing is received into a part to send"),
        }
    }
}

/// A send or receive, and the bytes that MPI reads or writes.
struct Pending {
    peer: usize,
    request: ffi::MPI_Request,
    bytes: Bytes,
    under_way: bool,
}

impl Pending {
    fn new(peer: usize, bytes: Bytes) -> Self {
        Self {
            peer,
            // SAFETY: reads a constant of the MPI library.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            bytes,
            under_way: false,
        }
    }

    /// Begins to send the bytes to the peer, which is one of the ranks.
    fn send(&mut self, rank: usize, comm: ffi::MPI_Comm, tag: c_int) -> Result<(), Error> {
        let count = count_of(self.bytes.len(), rank, self.peer)?;
        // SAFETY: `Pending` keeps the bytes until the request has ended, or for ever, and nothing
        // writes them meanwhile. The communicator is valid.
        let code = unsafe {
            ffi::MPI_Isend(
                self.bytes.as_slice()?.as_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                self.peer as c_int,
                tag,
                comm,
                &raw mut self.request,
            )
        };
        said("MPI_Isend", code)?;
        self.under_way = true;
        Ok(())
    }

    /// Begins to receive a message into the bytes, which have its length.
    fn receive(&mut self, mut found: Found) -> Result<(), Error> {
        let bytes = self.bytes.as_mut_slice()?;
        let count = bytes.len().min(found.bytes) as c_int;
        // SAFETY: there are at least `count` bytes. They stay until the request has ended, or for
        // ever, and nothing reads them before.
        let code = unsafe {
            ffi::MPI_Imrecv(
                bytes.as_mut_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut found.message,
                &raw mut self.request,
            )
        };
        said("MPI_Imrecv", code)?;
        self.under_way = true;
        Ok(())
    }

    /// Whether MPI is done with the bytes.
    fn test(&mut self) -> Result<bool, Error> {
        if !self.under_way {
            return Ok(true);
        }
        let mut done = 0;
        // SAFETY: this value owns the request; the pointer is valid for a number, and MPI ignores
        // the status.
        let code = unsafe {
            ffi::MPI_Test(
                &raw mut self.request,
                &raw mut done,
                ffi::RSMPI_STATUS_IGNORE,
            )
        };
        said("MPI_Test", code)?;
        self.under_way = done == 0;
        Ok(done != 0)
    }

    /// The bytes. MPI must be done with them.
    fn take(mut self) -> Bytes {
        debug_assert!(!self.under_way, "callers test it");
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.under_way {
            // After an error MPI may still use the bytes, so they are never freed.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}
