//! Checkpoints: saved states from which any number of ranks, in any decomposition, continue a run
//! with the same bits.
//!
//! [`Checkpoints`] is a folder with one subfolder per checkpoint, numbered from 1. A checkpoint has
//! an .npy file for each field, which all ranks write at once, and `checkpoint.json` with the
//! names, lengths and checksums of these files. The ranks write it under a temporary name and
//! rename it when everything is on the disk. So a checkpoint that a kill or a full disk has left
//! incomplete is never taken for a complete one.
//!
//! You can save and restore [plates](crate::heat2d::Plate::save),
//! [stencils](crate::stencil::Run::save) with all their fields (so also
//! [heat](crate::heat3d::restore) and [waves](crate::wave3d::restore) in space), and
//! [bodies](crate::nbody::Leapfrog::save).
//!
//! ```
//! use halo_distributed::checkpoint::Checkpoints;
//! use halo_distributed::{Decomposition, Error, heat2d, run};
//! use halo_gpu::heat2d::Heat2d;
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("plate");
//! let checkpoints = Checkpoints::new(&folder);
//! let (heat, device) = (Heat2d::dirichlet(Shape2::new(40, 30))?, Device::cpu());
//! let hot = |[i, _]: [usize; 2]| if i == 0 { 1.0_f32 } else { 0.0 };
//! let right = run(3, |communicator| {
//!     let rows = Decomposition::slabs([40, 30], 3)?;
//!     let mut plate = heat2d::Plate::new(&communicator, &device, heat, rows, 4, hot)?;
//!     plate.iterate(60)?;
//!     plate.save(&checkpoints)?;
//!     plate.iterate(40)?;
//!     plate.field()
//! })?;
//! // Later, two ranks continue, in columns.
//! let plates = run(2, |communicator| {
//!     let columns = Decomposition::new([40, 30], [2, 1])?;
//!     let Some(last) = checkpoints.last(&communicator)? else {
//!         unreachable!("one was saved");
//!     };
//!     let mut plate = heat2d::Plate::restore(&communicator, &device, heat, columns, 4, &last)?;
//!     assert_eq!(plate.iterations(), 60);
//!     plate.iterate(40)?;
//!     plate.field()
//! })?;
//! assert!(plates == right[..2]);
//! # Ok(())
//! # }
//! ```

use crate::files::{by_first, digest, failed};
use crate::{Block, Communicator, Error, Share, Stored, npy};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file that describes a checkpoint.
const RECORD: &str = "checkpoint.json";

/// The version of the format: of the record and of its files.
const FORMAT: u32 = 1;

/// A folder with the checkpoints of one run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// The checkpoints in `folder`. The first checkpoint creates it; all ranks must see it.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            keep: usize::MAX,
        }
    }

    /// Keeps only the last `most` checkpoints, and at least one: a new checkpoint, once it is
    /// complete, replaces the oldest.
    #[must_use]
    pub fn keeping(mut self, most: usize) -> Self {
        self.keep = most.max(1);
        self
    }

    /// The last complete checkpoint, if there is one: its record is readable, and its files have
    /// the recorded lengths. Restoring it checks the checksums.
    ///
    /// # Errors
    ///
    /// As [`all`](Self::all).
    pub fn last(&self, communicator: &Communicator) -> Result<Option<Checkpoint>, Error> {
        Ok(self.all(communicator)?.pop())
    }

    /// All complete checkpoints, the oldest first. If one turns out to be
    /// [corrupted](Error::Corrupted), use an earlier one.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same folder; [`Error::Unfit`] for a
    /// checkpoint in a format of another version of this library; [`Error::File`] for an unreadable
    /// folder; [`Error::Elsewhere`] on the other ranks; as
    /// [`Transport::exchange`](crate::Transport::exchange).
    pub fn all(&self, communicator: &Communicator) -> Result<Vec<Checkpoint>, Error> {
        communicator.agree("the folder of checkpoints", &self.folder)?;
        let found = by_first(communicator, || {
            let mut found = Vec::new();
            for number in self.numbers()? {
                let path = self.path_of(number);
                if let Some(record) = Record::whole(&path)? {
                    found.push((number, record));
                }
            }
            serde_json::to_vec(&found).map_err(|error| encoded(&self.folder, error))
        })?;
        // All ranks use the list of the first rank: a shared file system may show them different
        // ones.
        let all = communicator.all_gather(&found.unwrap_or_default())?;
        let all: Vec<(u64, Record)> =
            serde_json::from_slice(&all[0]).map_err(|error| encoded(&self.folder, error))?;
        let checkpoint = |(number, record)| Checkpoint {
            path: self.path_of(number),
            record,
        };
        Ok(all.into_iter().map(checkpoint).collect())
    }

    fn path_of(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}"))
    }

    /// The numbers of all numbered subfolders, in order.
    fn numbers(&self) -> Result<Vec<u64>, Error> {
        let mut numbers: Vec<_> = self.names()?.iter().filter_map(|it| number(it)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The names in the folder; empty if it does not exist.
    fn names(&self) -> Result<Vec<String>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed("read", &self.folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed("read", &self.folder))?.file_name();
            names.extend(name.into_string());
        }
        Ok(names)
    }

    /// Begins to write a checkpoint; [`Writer::finish`] completes it.
    pub(crate) fn begin<'a>(
        &'a self,
        communicator: &'a Communicator,
        of: Of,
        steps: u64,
    ) -> Result<Writer<'a>, Error> {
        communicator.agree("the checkpoint", &(&self.folder, &of, steps))?;
        let number = by_first(communicator, || {
            fs::create_dir_all(&self.folder).map_err(failed("create", &self.folder))?;
            for name in self.names()? {
                // An incomplete checkpoint: no other program writes here.
                if name
                    .strip_suffix(PART)
                    .is_some_and(|it| number(it).is_some())
                {
                    let path = self.folder.join(name);
                    fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
                }
            }
            let number = self.numbers()?.last().map_or(1, |last| last + 1);
            let path = self.part_of(number);
            fs::create_dir(&path).map_err(failed("create", &path))?;
            Ok(number)
        })?;
        let number = communicator.all_reduce(number.unwrap_or(0), u64::max)?;
        Ok(Writer {
            checkpoints: self,
            communicator,
            number,
            record: Record {
                format: FORMAT,
                library: env!("CARGO_PKG_VERSION").to_owned(),
                of,
                steps,
                fields: Vec::new(),
            },
        })
    }

    fn part_of(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:06}{PART}"))
    }
}

/// The suffix of the folder of an incomplete checkpoint.
const PART: &str = ".part";

/// The number of a checkpoint from the name of its folder.
fn number(name: &str) -> Option<u64> {
    let digits = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| digits)
}

fn encoded(path: &Path, error: serde_json::Error) -> Error {
    failed("write the record of", path)(error.into())
}

/// The identity of the computation in a checkpoint: [`Checkpoint::require`] compares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Of {
    /// The family.
    pub(crate) family: String,
    /// The type of the elements.
    pub(crate) element: String,
    /// Points of the whole grid along each axis, or bodies.
    pub(crate) points: Vec<usize>,
    /// The problem, with all parameters that change the bits.
    pub(crate) problem: String,
}

/// The description of a checkpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    format: u32,
    /// The version of this library.
    library: String,
    of: Of,
    steps: u64,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Field {
    file: String,
    bytes: u64,
    /// In hexadecimal digits, because some programs read JSON numbers as f64.
    checksum: String,
}

impl Record {
    /// The record of the checkpoint at `path`, if the checkpoint is complete.
    fn whole(path: &Path) -> Result<Option<Self>, Error> {
        let file = path.join(RECORD);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed("read", &file))?,
        };
        /// The part that records of every version have.
        #[derive(Deserialize)]
        struct Any {
            format: u32,
        }
        let Ok(Any { format }) = serde_json::from_slice(&text) else {
            return Ok(None);
        };
        if format != FORMAT {
            return Err(Error::Unfit {
                path: file,
                what: "the format version of the checkpoint",
                given: format.to_string(),
                required: format!("{FORMAT}, which this library writes"),
            });
        }
        let Ok(record) = serde_json::from_slice::<Self>(&text) else {
            return Ok(None);
        };
        let is_whole = |field: &Field| {
            let len = fs::metadata(path.join(&field.file)).map(|it| it.len());
            len.is_ok_and(|len| len == field.bytes)
        };
        Ok(record.fields.iter().all(is_whole).then_some(record))
    }
}

/// A complete checkpoint.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    path: PathBuf,
    record: Record,
}

impl Checkpoint {
    /// Its folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of steps taken before it was saved.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.record.steps
    }

    /// The version of this library that wrote it.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.record.library
    }

    /// Fails unless the checkpoint is of the family, type, shape and problem `of`.
    pub(crate) fn require(&self, communicator: &Communicator, of: &Of) -> Result<(), Error> {
        communicator.agree("the checkpoint", &(&self.path, of))?;
        let own = &self.record.of;
        let (given, required) = (format!("{:?}", own.points), format!("{:?}", of.points));
        for (what, given, required) in [
            ("the family", &own.family, &of.family),
            ("the type of its numbers", &own.element, &of.element),
            ("its shape", &given, &required),
            ("its problem", &own.problem, &of.problem),
        ] {
            if given != required {
                return Err(Error::Unfit {
                    path: self.path.clone(),
                    what,
                    given: given.clone(),
                    required: required.clone(),
                });
            }
        }
        Ok(())
    }

    /// A rank's own points of the field with this number.
    pub(crate) fn read<T: Stored, const D: usize>(
        &self,
        communicator: &Communicator,
        field: usize,
        points: [usize; D],
        block: Block<D>,
    ) -> Result<Share<T, D>, Error> {
        let Some(Field { file, checksum, .. }) = self.record.fields.get(field) else {
            return Err(Error::Unfit {
                path: self.path.clone(),
                what: "the number of fields",
                given: self.record.fields.len().to_string(),
                required: format!("at least {}", field + 1),
            });
        };
        let path = self.path.join(file);
        let share = npy::read_part(communicator, &path, points, block)?;
        let own = digest(points, block, share.values());
        let given = communicator.all_reduce(own, u64::wrapping_add)?;
        // Every rank has the same record.
        let required = u64::from_str_radix(checksum, 16).unwrap_or(!given);
        if given == required {
            return Ok(share);
        }
        Err(Error::Corrupted {
            path,
            given,
            required,
        })
    }
}

/// A checkpoint that is being written.
pub(crate) struct Writer<'a> {
    checkpoints: &'a Checkpoints,
    communicator: &'a Communicator,
    number: u64,
    record: Record,
}

impl Writer<'_> {
    /// Adds a field; each rank gives its own points.
    pub(crate) fn field<T: Stored, const D: usize>(
        &mut self,
        points: [usize; D],
        block: Block<D>,
        own: &[T],
    ) -> Result<(), Error> {
        let communicator = self.communicator;
        let file = format!("{}.npy", self.record.fields.len());
        let path = self.checkpoints.part_of(self.number).join(&file);
        let bytes = npy::write_part(communicator, &path, points, block, own)?;
        let own = digest(points, block, own);
        let checksum = communicator.all_reduce(own, u64::wrapping_add)?;
        self.record.fields.push(Field {
            file,
            bytes,
            checksum: format!("{checksum:016x}"),
        });
        Ok(())
    }

    /// Completes the checkpoint, and returns its folder.
    pub(crate) fn finish(self) -> Result<PathBuf, Error> {
        let Self {
            checkpoints,
            communicator,
            number,
            record,
        } = self;
        let path = checkpoints.path_of(number);
        by_first(communicator, || {
            let part = checkpoints.part_of(number);
            let text = serde_json::to_vec_pretty(&record).map_err(|it| encoded(&part, it))?;
            let file = part.join(RECORD);
            let written = File::create(&file).and_then(|mut file| {
                file.write_all(&text)?;
                file.sync_all()
            });
            written.map_err(failed("write", &file))?;
            sync_folder(&part)?;
            fs::rename(&part, &path).map_err(failed("rename", &part))?;
            sync_folder(&checkpoints.folder)?;
            let numbers = checkpoints.numbers()?;
            for &old in &numbers[..numbers.len().saturating_sub(checkpoints.keep)] {
                let path = checkpoints.path_of(old);
                fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
            }
            Ok(())
        })?;
        Ok(path)
    }
}

/// Writes the names in a folder to the disk, on systems that can.
fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.map_err(failed("write", path))?;
    }
    Ok(())
}
