//! Errors of ranks and of the communication between them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// An error of an operation of several ranks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operation of this rank's own device has failed.
    #[error(transparent)]
    Device(#[from] halo_gpu::Error),

    /// Another rank has not sent an expected message before the deadline: it hangs, or is late.
    #[error("rank {rank} waited {waited:?} for rank {peer}, until its deadline")]
    Deadline {
        /// The rank that has waited.
        rank: usize,
        /// The rank that it has waited for.
        peer: usize,
        /// How long it has waited.
        waited: Duration,
    },

    /// Another rank has ended, failed or panicked, and will send nothing more.
    #[error("rank {rank} cannot continue: rank {peer} has ended")]
    Gone {
        /// The rank that cannot continue.
        rank: usize,
        /// The rank that has ended.
        peer: usize,
    },

    /// Another rank has failed in a collective operation.
    #[error("rank {rank} cannot continue: rank {peer} has failed: {message}")]
    Elsewhere {
        /// The rank that cannot continue.
        rank: usize,
        /// The rank that has failed, the first if there are several.
        peer: usize,
        /// Its message.
        message: String,
    },

    /// A rank has panicked.
    #[error("rank {rank} has panicked: {message}")]
    Panicked {
        /// The rank.
        rank: usize,
        /// Its message.
        message: String,
    },

    /// A message is not as long as the receiver expects.
    #[error("rank {rank}: the message of rank {peer} has {given} bytes, but must have {required}")]
    MessageLength {
        /// The receiver.
        rank: usize,
        /// The sender.
        peer: usize,
        /// Bytes that the receiver expects.
        required: usize,
        /// Bytes that came.
        given: usize,
    },

    /// Two ranks were given different arguments where all must be given the same.
    #[error(
        "{what} must be the same on all ranks, but is {own} on rank {rank} and {other} on rank {peer}"
    )]
    Disagreement {
        /// The argument that differs.
        what: &'static str,
        /// This rank.
        rank: usize,
        /// This rank's argument.
        own: String,
        /// A rank that was given something else.
        peer: usize,
        /// The argument of that rank.
        other: String,
    },

    /// A grid has too few points for the ranks.
    #[error(
        "{points:?} points cannot be cut into {ranks} blocks of at least one point along the axes \
         that may be cut"
    )]
    TooManyRanks {
        /// Points along each axis.
        points: Vec<usize>,
        /// The number of ranks; each has one block.
        ranks: usize,
    },

    /// MPI has failed.
    #[error("{call}: {text} (code {code})")]
    Mpi {
        /// The function.
        call: &'static str,
        /// Its code; 0 where it was not called.
        code: i32,
        /// MPI's description of the error.
        text: String,
    },

    /// NCCL could not be loaded.
    #[error("no NCCL: {reason} (searched: {searched}; HALO_NCCL names another file)")]
    NcclMissing {
        /// The file that was tried. The dynamic linker searches its own folders for a name without
        /// a folder.
        searched: String,
        /// The dynamic linker's message about it.
        reason: String,
    },

    /// NCCL has failed.
    #[error("{call}: {text} (code {code})")]
    Nccl {
        /// The function.
        call: &'static str,
        /// The code that it returned, at once or later.
        code: i32,
        /// NCCL's description of the error.
        text: String,
    },

    /// Messages of CUDA devices cannot be part of a graph: [`Communicator::record`](crate::Communicator::record).
    #[error("exchanges of CUDA devices cannot be recorded over {transport}: {reason}")]
    NotRecordable {
        /// The transport of the messages.
        transport: String,
        /// Why not.
        reason: &'static str,
    },

    /// The launcher has started another number of ranks than MPI reports. Probably launcher and MPI
    /// library are of different MPI implementations.
    #[error(
        "{variable} says {launched} ranks, but MPI reports {ranks}: was the program built with another MPI \
         than the launcher's?"
    )]
    Launcher {
        /// The environment variable with the launcher's number.
        variable: &'static str,
        /// The number of ranks that it has started.
        launched: usize,
        /// The number of ranks that MPI reports.
        ranks: usize,
    },

    /// The launcher has started several ranks of a program that was built without MPI.
    #[error(
        "{variable} says {launched} ranks, but this program was built without MPI, so each \
         process would be a separate single rank: build it with the feature `mpi` of halo-distributed"
    )]
    NoMpi {
        /// The environment variable with the launcher's number.
        variable: &'static str,
        /// The number of ranks that it has started.
        launched: usize,
    },

    /// There is no such rank.
    #[error("there is no rank {given} among {ranks}")]
    NoSuchRank {
        /// The rank that was named.
        given: usize,
        /// The number of ranks.
        ranks: usize,
    },

    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },

    /// A file does not hold the requested data.
    #[error("{}: {what} is {given}, but must be {required}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The property that does not fit.
        what: &'static str,
        /// The value in the file.
        given: String,
        /// The requested value.
        required: String,
    },

    /// A file is shorter or longer than its header says.
    #[error("{} has {given} bytes, but must have {required}", path.display())]
    FileLength {
        /// The file.
        path: PathBuf,
        /// Bytes that it has.
        given: u64,
        /// Bytes that it must have.
        required: u64,
    },

    /// The contents of a file have changed since it was written.
    #[error(
        "{} is corrupted: its checksum is {given:016x}, but was {required:016x} when it was written",
        path.display()
    )]
    Corrupted {
        /// The file.
        path: PathBuf,
        /// Its checksum now.
        given: u64,
        /// The checksum when the file was written.
        required: u64,
    },

    /// A parameter does not suit the operation.
    #[error("{operation}: {parameter} is {given}, but must be {required}")]
    InvalidParameter {
        /// The operation that refused.
        operation: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// Its value.
        given: String,
        /// The requirement, worded to follow "must be".
        required: String,
    },
}

/// Fails unless `given` is below `ranks`.
pub(crate) fn require_rank(given: usize, ranks: usize) -> Result<(), Error> {
    if given < ranks {
        return Ok(());
    }
    Err(Error::NoSuchRank { given, ranks })
}
