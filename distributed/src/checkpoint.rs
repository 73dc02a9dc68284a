//! Checkpoints: states that a run is taken up from again, with the same bits, by any number of
//! ranks and in any decomposition.
//!
//! [`Checkpoints`] is a folder with a folder for each checkpoint, numbered from 1 on. It has an
//! .npy file for each field, which all ranks write at once, and `checkpoint.json` with the fields'
//! names, lengths and checksums. It is written under a temporary name and gets its number when
//! everything is on the disk: an incomplete checkpoint, after a kill or on a full disk, is never
//! taken for a whole one.
//!
//! Saved and restored are [plates](crate::heat2d::Plate::save), [stencils](crate::stencil::Run::save)
//! with all their fields, among them [heat](crate::heat3d::restore) and
//! [waves](crate::wave3d::restore) in space, and [bodies](crate::nbody::Leapfrog::save).
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
//! // Another day, two ranks go on, in columns.
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

/// The name of a checkpoint's description.
const RECORD: &str = "checkpoint.json";

/// The version of the record, and of the files that belong to it.
const FORMAT: u32 = 1;

/// A folder of checkpoints of one run.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    folder: PathBuf,
    keep: usize,
}

impl Checkpoints {
    /// Those in this folder, which is made by the first one. All ranks must see it.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            keep: usize::MAX,
        }
    }

    /// The same, keeping only the last `most` checkpoints, and at least one: each new one, once it
    /// is whole, replaces the oldest.
    #[must_use]
    pub fn keeping(mut self, most: usize) -> Self {
        self.keep = most.max(1);
        self
    }

    /// The last one that is whole, if there is one: its record can be read, and its files have
    /// the lengths that it says. Checksums are looked at when it is restored.
    ///
    /// # Errors
    ///
    /// As [`all`](Self::all).
    pub fn last(&self, communicator: &Communicator) -> Result<Option<Checkpoint>, Error> {
        Ok(self.all(communicator)?.pop())
    }

    /// All that are whole, the oldest first: one that turns out to be [corrupted](Error::Corrupted)
    /// has others before it.
    ///
    /// # Errors
    ///
    /// [`Error::Disagreement`] unless all ranks give the same folder; [`Error::Unfit`] for one
    /// that another version of this library has made, in a form that this one does not know;
    /// [`Error::File`] for a folder that cannot be read; [`Error::Elsewhere`] on the other ranks;
    /// as [`Transport::exchange`](crate::Transport::exchange).
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
        // All ranks take what the first one has found: file systems may show them different things.
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

    /// The numbers of all folders that have one, in order.
    fn numbers(&self) -> Result<Vec<u64>, Error> {
        let mut numbers: Vec<_> = self.names()?.iter().filter_map(|it| number(it)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The names in the folder; empty where there is no folder.
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

    /// Begins one, which [`Writer::finish`] ends.
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

/// How the name of a folder ends that is being written.
const PART: &str = ".part";

/// The number that is a name.
fn number(name: &str) -> Option<u64> {
    let digits = name.len() >= 6 && name.bytes().all(|byte| byte.is_ascii_digit());
    name.parse().ok().filter(|_| digits)
}

fn encoded(path: &Path, error: serde_json::Error) -> Error {
    failed("write the record of", path)(error.into())
}

/// What a checkpoint is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Of {
    /// The family.
    pub(crate) family: String,
    /// The type of its numbers.
    pub(crate) element: String,
    /// Points of the whole grid along each axis, or bodies.
    pub(crate) points: Vec<usize>,
    /// The problem, with all parameters that the bits depend on.
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
    /// In hexadecimal digits: not all programs read numbers of 64 bits.
    checksum: String,
}

impl Record {
    /// That of the checkpoint at `path`, if it is whole.
    fn whole(path: &Path) -> Result<Option<Self>, Error> {
        let file = path.join(RECORD);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed("read", &file))?,
        };
        /// What records of every form have.
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
                what: "the version of the form of the checkpoint",
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

/// A checkpoint that was found to be whole.
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

    /// How many steps had been taken when it was made.
    #[must_use]
    pub const fn steps(&self) -> u64 {
        self.record.steps
    }

    /// The version of this library that has made it.
    #[must_use]
    pub fn library(&self) -> &str {
        &self.record.library
    }

    /// Refuses to be of something else.
    pub(crate) fn require(&self, communicator: &Communicator, of: &Of) -> Result<(), Error> {
        communicator.agree("the checkpoint", &(&self.path, of))?;
        let own = &self.record.of;
        let (given, required) = (format!("{:?}", own.points), format!("{:?}", of.points));
        for (what, given, required) in [
            ("the family", &own.family, &of.family),
            ("the type of its numbers", &own.element, &of.element),
            ("its shape", &given, &required),
            ("what it is of", &own.problem, &of.problem),
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

    /// Makes it a whole one, and returns its folder.
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

/// Has the names in a folder written to the disk, where systems do that for folders.
fn sync_folder(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let synced = File::open(path).and_then(|folder| folder.sync_all());
        synced.map_err(failed("write", path))?;
    }
    Ok(())
}
