//! Ranks that are processes, over MPI.
//!
//! The calls are those of `mpi::ffi`, because the crate's safe layer drops return codes. Messages
//! are sent and received without blocking, and tested until the deadline, so that no call waits for
//! a rank that never comes.

use crate::communicator::{Launched, launched_ranks};
use crate::error::require_rank;
use crate::{Arrival, Communicator, Error, Expected, Incoming, Outgoing, Parcel, Transport};
use halo_gpu::Device;
use mpi::ffi;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

impl Communicator {
    /// This process's rank among the processes that the launcher has started, by MPI; a single rank
    /// without a launcher.
    ///
    /// MPI is initialised here and finalised when the communicator is dropped, so that there is
    /// one in the life of a process. After an error it is not finalised, which would wait for
    /// the other ranks: when this process ends, the launcher ends them.
    ///
    /// # Errors
    ///
    /// [`Error::Mpi`] where MPI fails, cannot be used from one thread after another, or was
    /// initialised before; [`Error::Launcher`] where launcher and MPI disagree on the number of
    /// ranks, as they do where they are of different makes; [`Error::Disagreement`] where ranks
    /// are of programs with different versions of this library.
    pub fn mpi() -> Result<Self, Error> {
        let communicator = Self::over(World::new()?);
        communicator.agree_on_version(env!("CARGO_PKG_VERSION"))?;
        Ok(communicator)
    }
}

/// The ranks that the launcher has started.
struct World {
    rank: usize,
    size: usize,
    /// The number of this rank among the ranks of its machine.
    local_rank: usize,
    /// Of messages with tags.
    tagged: ffi::MPI_Comm,
    /// Of messages of devices.
    parcels: ffi::MPI_Comm,
    /// Of all-gathers, which are told apart by their order alone.
    gathers: ffi::MPI_Comm,
    /// Whether a call has failed.
    failed: Cell<bool>,
}

// SAFETY: the handles may be used by any thread, by one at a time: MPI was initialised with
// MPI_THREAD_SERIALIZED, and this is the only value of the process that calls it, as `TAKEN`
// says, and is not `Sync`.
unsafe impl Send for World {}

/// Whether MPI was initialised here.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// What a call returned, as a result. `MPI_SUCCESS` is 0 in every MPI.
fn said(call: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        return Ok(());
    }
    // No MPI's longest string is longer; MPICH's and Open MPI's are 256 to 1024 bytes.
    let mut text = [0 as c_char; 4096];
    let mut len = 0;
    // SAFETY: the pointers are good for the longest string and a number.
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
        // SAFETY: may be called at any time; the pointer is good for a number.
        let code = unsafe { ffi::MPI_Initialized(&raw mut initialised) };
        said("MPI_Initialized", code)?;
        if TAKEN.swap(true, Ordering::AcqRel) || initialised != 0 {
            let text = "MPI was initialised before in this process";
            return Err(refused("MPI_Init_thread", text));
        }
        let mut provided = 0;
        // SAFETY: MPI was not initialised, and is not by another thread, as `TAKEN` was
        // false; it takes no arguments. The constants are the MPI's own.
        let code = unsafe {
            ffi::MPI_Init_thread(
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                ffi::RSMPI_THREAD_SERIALIZED,
                &raw mut provided,
            )
        };
        said("MPI_Init_thread", code)?;
        // SAFETY: a constant of the MPI's.
        if provided < unsafe { ffi::RSMPI_THREAD_SERIALIZED } {
            let text = "this MPI can be used by its first thread alone";
            return Err(refused("MPI_Init_thread", text));
        }
        let (tagged, parcels, gathers) = (duplicate()?, duplicate()?, duplicate()?);
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the communicator is there; the pointers are good for a number each.
        said("MPI_Comm_rank", unsafe {
            ffi::MPI_Comm_rank(tagged, &raw mut rank)
        })?;
        // SAFETY: as above.
        said("MPI_Comm_size", unsafe {
            ffi::MPI_Comm_size(tagged, &raw mut size)
        })?;
        let (rank, size) = (rank as usize, size as usize);
        // Of ranks that Slurm has started MPI knows nothing, or all.
        let other = launched_ranks().into_iter().find(|it| it.ranks != size);
        if let Some(Launched { variable, ranks }) = other {
            return Err(Error::Launcher {
                variable,
                launched: ranks,
                ranks: size,
            });
        }
        Ok(Self {
            rank,
            size,
            local_rank: local_rank(tagged)?,
            tagged,
            parcels,
            gathers,
            failed: Cell::new(false),
        })
    }

    fn number(&self, rank: usize) -> Result<c_int, Error> {
        require_rank(rank, self.size)?;
        Ok(rank as c_int)
    }

    fn send(
        &self,
        comm: ffi::MPI_Comm,
        to: usize,
        tag: c_int,
        bytes: &[u8],
    ) -> Result<Pending, Error> {
        let number = self.number(to)?;
        let count = count_of(bytes.len(), self.rank, to)?;
        let mut pending = Pending::new(to, bytes.to_vec());
        // SAFETY: the bytes stay until the request has ended, or for ever: `Pending` makes sure of
        // that. Nothing writes them. The communicator exists.
        let code = unsafe {
            ffi::MPI_Isend(
                pending.bytes.as_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                number,
                tag,
                comm,
                &raw mut pending.request,
            )
        };
        said("MPI_Isend", code)?;
        pending.under_way = true;
        Ok(pending)
    }

    /// The next message of `from`, which has `required` bytes if that is said.
    fn receive(
        &self,
        comm: ffi::MPI_Comm,
        from: usize,
        tag: c_int,
        required: Option<usize>,
        until: &Until,
    ) -> Result<Vec<u8>, Error> {
        let number = self.number(from)?;
        let mut status = MaybeUninit::<ffi::MPI_Status>::zeroed();
        // SAFETY: a constant of the MPI's.
        let mut message = unsafe { ffi::RSMPI_MESSAGE_NULL };
        loop {
            let mut found = 0;
            // SAFETY: the communicator is there; the pointers are good for a number, a message
            // and a status.
            let code = unsafe {
                ffi::MPI_Improbe(
                    number,
                    tag,
                    comm,
                    &raw mut found,
                    &raw mut message,
                    status.as_mut_ptr(),
                )
            };
            said("MPI_Improbe", code)?;
            if found != 0 {
                break;
            }
            until.pause(self.rank, from)?;
        }
        let mut count = 0;
        // SAFETY: a message was found, so that the status is set.
        let code =
            unsafe { ffi::MPI_Get_count(status.as_ptr(), ffi::RSMPI_UINT8_T, &raw mut count) };
        said("MPI_Get_count", code)?;
        let given = usize::try_from(count).unwrap_or(0);
        let mut pending = Pending::new(from, vec![0; given]);
        // SAFETY: the bytes are as many as the message has, and stay until the request has ended,
        // or for ever; nothing reads them before.
        let code = unsafe {
            ffi::MPI_Imrecv(
                pending.bytes.as_mut_ptr().cast::<c_void>(),
                count,
                ffi::RSMPI_UINT8_T,
                &raw mut message,
                &raw mut pending.request,
            )
        };
        said("MPI_Imrecv", code)?;
        pending.under_way = true;
        let bytes = pending.finish(self.rank, until)?;
        match required {
            Some(required) if required != given => Err(Error::MessageLength {
                rank: self.rank,
                peer: from,
                required,
                given,
            }),
            _ => Ok(bytes),
        }
    }

    /// Notes whether it went well.
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
            let tag = tag_of(it.tag)?;
            self.send(self.tagged, it.to, tag, it.bytes)
        });
        let sends = sends.collect::<Result<Vec<_>, _>>()?;
        for Incoming { from, tag, bytes } in incoming {
            let (tag, required) = (tag_of(*tag)?, Some(bytes.len()));
            let message = self.receive(self.tagged, *from, tag, required, until)?;
            bytes.copy_from_slice(&message);
        }
        for send in sends {
            send.finish(self.rank, until)?;
        }
        Ok(())
    }

    fn try_all_gather(&self, own: &[u8], until: &Until) -> Result<Vec<Vec<u8>>, Error> {
        let others = (0..self.size).filter(|&it| it != self.rank);
        let sends = others.map(|to| self.send(self.gathers, to, 0, own));
        let sends = sends.collect::<Result<Vec<_>, _>>()?;
        let all = (0..self.size).map(|from| {
            if from == self.rank {
                return Ok(own.to_vec());
            }
            self.receive(self.gathers, from, 0, None, until)
        });
        let all = all.collect::<Result<Vec<_>, _>>()?;
        for send in sends {
            send.finish(self.rank, until)?;
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

    fn name(&self) -> String {
        // No MPI's longest string is longer.
        let mut text = [0 as c_char; 1 << 14];
        let mut len = 0;
        // SAFETY: the pointers are good for the longest string and a number.
        let code = unsafe { ffi::MPI_Get_library_version(text.as_mut_ptr(), &raw mut len) };
        let len = usize::try_from(len).unwrap_or(0).min(text.len());
        let bytes: Vec<u8> = text[..len].iter().map(|&byte| byte as u8).collect();
        let version = String::from_utf8_lossy(&bytes);
        // Open MPI counts the end of the string as well.
        match version.trim_end_matches('\0').lines().next() {
            Some(version) if code == 0 => format!("MPI through the host: {version}"),
            _ => "MPI through the host".to_owned(),
        }
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

    /// Through the host: the sends are under way when this returns.
    fn begin<'a>(
        &'a self,
        device: &'a Device,
        outgoing: Vec<Parcel>,
        incoming: Vec<Expected>,
        deadline: Duration,
    ) -> Result<Arrival<'a>, Error> {
        let until = Until::now(deadline);
        let send = |Parcel { to, tag, bytes }: Parcel| {
            self.send(self.parcels, to, tag_of(tag)?, &bytes.into_vec()?)
        };
        let sends = outgoing
            .into_iter()
            .map(send)
            .collect::<Result<Vec<_>, _>>();
        let sends = self.noted(sends)?;
        Ok(Box::new(move || {
            let arrive = |Expected { from, tag, bytes }| {
                let (tag, required) = (tag_of(tag)?, Some(bytes));
                let message = self.receive(self.parcels, from, tag, required, &until)?;
                Ok(device.upload(&message)?)
            };
            let arrived = incoming
                .into_iter()
                .map(arrive)
                .collect::<Result<Vec<_>, _>>();
            let arrived = self.noted(arrived)?;
            for send in sends {
                self.noted(send.finish(self.rank, &until))?;
            }
            Ok(arrived)
        }))
    }

    fn all_gather(&self, own: &[u8], deadline: Duration) -> Result<Vec<Vec<u8>>, Error> {
        let until = Until::now(deadline);
        self.noted(self.try_all_gather(own, &until))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.failed.get() || std::thread::panicking() {
            // Both calls wait for all ranks, and some may never come.
            return;
        }
        // SAFETY: this rank uses MPI no more; all requests are done, as no call has failed. The
        // communicators go with the rest.
        let _ = unsafe { ffi::MPI_Finalize() };
    }
}

/// A communicator of our own, whose errors are returned.
fn duplicate() -> Result<ffi::MPI_Comm, Error> {
    // SAFETY: a constant of the MPI's, which is initialised.
    let (world, mut comm) = unsafe { (ffi::RSMPI_COMM_WORLD, ffi::RSMPI_COMM_NULL) };
    // SAFETY: the pointer is good for a communicator; all ranks come here.
    said("MPI_Comm_dup", unsafe {
        ffi::MPI_Comm_dup(world, &raw mut comm)
    })?;
    // SAFETY: the communicator is there, the handler a constant of the MPI's.
    said("MPI_Comm_set_errhandler", unsafe {
        ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN)
    })?;
    Ok(comm)
}

/// The number of this rank among the ranks that share its machine's memory.
fn local_rank(comm: ffi::MPI_Comm) -> Result<usize, Error> {
    // SAFETY: constants of the MPI's, which is initialised.
    let (shared, info, mut local) = unsafe {
        (
            ffi::RSMPI_COMM_TYPE_SHARED,
            ffi::RSMPI_INFO_NULL,
            ffi::RSMPI_COMM_NULL,
        )
    };
    // SAFETY: the communicator is there, the pointer good for another; all ranks come here. Of
    // equal keys ranks keep their order.
    said("MPI_Comm_split_type", unsafe {
        ffi::MPI_Comm_split_type(comm, shared, 0, info, &raw mut local)
    })?;
    let mut rank = 0;
    // SAFETY: the communicator is there; the pointer is good for a number.
    said("MPI_Comm_rank", unsafe {
        ffi::MPI_Comm_rank(local, &raw mut rank)
    })?;
    // SAFETY: the communicator is there, and used no more; all its ranks come here.
    said("MPI_Comm_free", unsafe {
        ffi::MPI_Comm_free(&raw mut local)
    })?;
    Ok(rank as usize)
}

/// The tag, if every MPI supports it.
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

/// Bytes as MPI counts them.
fn count_of(bytes: usize, rank: usize, peer: usize) -> Result<c_int, Error> {
    c_int::try_from(bytes).map_err(|_| Error::InvalidParameter {
        operation: "a message",
        parameter: "its length",
        given: format!("{bytes} bytes, from rank {rank} to rank {peer}"),
        required: format!("at most {}", c_int::MAX),
    })
}

/// The end of a wait.
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

    /// Lets others work for a moment, if there is time left.
    fn pause(&self, rank: usize, peer: usize) -> Result<(), Error> {
        let waited = self.start.elapsed();
        if waited >= self.deadline {
            return Err(Error::Deadline { rank, peer, waited });
        }
        // Ranks may be more than processors.
        if waited < Duration::from_micros(200) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// Bytes that MPI reads or writes.
struct Pending {
    peer: usize,
    request: ffi::MPI_Request,
    bytes: Vec<u8>,
    under_way: bool,
}

impl Pending {
    fn new(peer: usize, bytes: Vec<u8>) -> Self {
        Self {
            peer,
            // SAFETY: a constant of the MPI's.
            request: unsafe { ffi::RSMPI_REQUEST_NULL },
            bytes,
            under_way: false,
        }
    }

    /// The bytes, when MPI is done with them.
    fn finish(mut self, rank: usize, until: &Until) -> Result<Vec<u8>, Error> {
        loop {
            let mut done = 0;
            // SAFETY: the request is this one's; the pointer is good for a number, and no
            // status is wanted.
            let code = unsafe {
                ffi::MPI_Test(
                    &raw mut self.request,
                    &raw mut done,
                    ffi::RSMPI_STATUS_IGNORE,
                )
            };
            said("MPI_Test", code)?;
            if done != 0 {
                self.under_way = false;
                return Ok(std::mem::take(&mut self.bytes));
            }
            until.pause(rank, self.peer)?;
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.under_way {
            // After an error MPI may still use them: they stay for ever.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}
