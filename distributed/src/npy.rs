//! Reads and writes fields as .npy files, all ranks at once.
//!
//! The last axis of a grid is the first of the array, so NumPy accesses the point (x, y, z) as
//! `array[z, y, x]`. Each rank reads and writes its own points at their place in the file, so all
//! ranks must see the same file system.
//!
//! ```
//! use halo_distributed::{Decomposition, Error, heat2d, npy};
//! use halo_gpu::heat2d::Heat2d;
//! use halo_gpu::{Device, Shape2};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (initial, path) = (folder.path().join("initial.npy"), folder.path().join("plate.npy"));
//! // A plate that NumPy could have written: np.save("initial.npy", …), of shape (30, 40).
//! let hot_corner = |[i, j]: [usize; 2]| if i + j < 8 { 1.0 } else { 0.0_f32 };
//! halo_distributed::run(3, |communicator| {
//!     let rows = Decomposition::slabs([40, 30], communicator.size())?;
//!     let field = rows.values(communicator.rank(), hot_corner)?;
//!     npy::write(&communicator, &initial, &rows, &field)
//! })?;
//!
//! halo_distributed::run(2, |communicator| {
//!     let columns = Decomposition::new([40, 30], [2, 1])?;
//!     let initial = npy::read::<f32, 2>(&communicator, &initial, &columns)?;
//!     let heat = Heat2d::dirichlet(Shape2::new(40, 30))?;
//!     let device = Device::cpu();
//!     let value = |point| initial[point];
//!     let mut plate = heat2d::Plate::new(&communicator, &device, heat, columns, 4, value)?;
//!     plate.iterate(100)?;
//!     let own = plate.part().own_values(&communicator)?;
//!     npy::write(&communicator, &path, &columns, &own)
//! })?;
//! assert_eq!(std::fs::metadata(&path)?.len(), 128 + 4 * 40 * 30);
//! # Ok(())
//! # }
//! ```

use crate::files::{by_first, failed, part_of, region_of, require_values};
use crate::region::pieces;
use crate::{Block, Communicator, Decomposition, Error, Share, Stored};
use halo_gpu::allocation;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Writes a field. Each rank gives the values `own` at its own points, the first axis fastest.
///
/// The file is written under a temporary name and then renamed, so no reader sees an incomplete
/// file, and a failure leaves the old one.
///
/// # Errors
///
/// [`Error::Disagreement`] unless all ranks give the same path, decomposition and type;
/// [`Error::InvalidParameter`] unless there are as many ranks as blocks, and as many values as
/// points; [`Error::File`], and [`Error::Elsewhere`] on the other ranks; as
/// [`Transport::exchange`](crate::Transport::exchange).
pub fn write<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: impl AsRef<Path>,
    decomposition: &Decomposition<D>,
    own: &[T],
) -> Result<(), Error> {
    let path = path.as_ref();
    let block = decomposition.block_among(communicator)?;
    let part = part_of(path);
    write_part(communicator, &part, decomposition.points(), block, own)?;
    by_first(communicator, || {
        let moved = fs::rename(&part, path).map_err(failed("replace", path));
        moved.inspect_err(|_| remove(&part))
    })
    .map(drop)
}

/// Removes an incomplete file after an error, and ignores errors of the removal.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Reads a field: each rank gets the values at its own points.
///
/// The file may be in C order or in Fortran order; in Fortran order the axes of the array are those
/// of the grid, not reversed.
///
/// # Errors
///
/// [`Error::Disagreement`] and [`Error::InvalidParameter`] as [`write()`]; [`Error::File`] if the
/// file does not exist or is not an .npy file, [`Error::Unfit`] if it has another element type or
/// shape, [`Error::FileLength`] if it is shorter or longer than its header says, and
/// [`Error::Elsewhere`] on ranks that found nothing wrong; as
/// [`Transport::exchange`](crate::Transport::exchange).
pub fn read<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: impl AsRef<Path>,
    decomposition: &Decomposition<D>,
) -> Result<Share<T, D>, Error> {
    let block = decomposition.block_among(communicator)?;
    read_part(communicator, path.as_ref(), decomposition.points(), block)
}

/// Writes each rank's part of a field, and returns the length of the file in bytes. If one rank
/// fails, all fail.
pub(crate) fn write_part<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: &Path,
    points: [usize; D],
    block: Block<D>,
    own: &[T],
) -> Result<u64, Error> {
    communicator.agree("the file", &(path, points, T::NAME))?;
    communicator.together(require_values(block, own.len()))?;
    let header = Header::bytes::<T, D>(points);
    let len = (header.len() + points.iter().product::<usize>() * size_of::<T>()) as u64;
    by_first(communicator, || {
        let mut file = File::create(path).map_err(failed("create", path))?;
        let written = file.write_all(&header).and_then(|()| file.set_len(len));
        let written = written.map_err(failed("write", path));
        written.inspect_err(|_| remove(path))
    })?;
    let write = || {
        let mut file = OpenOptions::new().write(true).open(path)?;
        let mut rest = own;
        for piece in pieces(points, &region_of(block)) {
            let (these, others) = rest.split_at(piece.len());
            let place = header.len() + piece.start * size_of::<T>();
            file.seek(SeekFrom::Start(place as u64))?;
            file.write_all(bytemuck::cast_slice(these))?;
            rest = others;
        }
        file.sync_data()
    };
    let written = communicator.together(write().map_err(failed("write", path)));
    if written.is_err() && communicator.rank() == 0 {
        remove(path);
    }
    written.map(|()| len)
}

/// Reads each rank's part of a field.
pub(crate) fn read_part<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: &Path,
    points: [usize; D],
    block: Block<D>,
) -> Result<Share<T, D>, Error> {
    communicator.agree("the file", &(path, points, T::NAME))?;
    communicator.together(read_own(path, points, block))
}

fn read_own<T: Stored, const D: usize>(
    path: &Path,
    points: [usize; D],
    block: Block<D>,
) -> Result<Share<T, D>, Error> {
    let mut file = File::open(path).map_err(failed("open", path))?;
    let len = file.metadata().map_err(failed("open", path))?.len();
    let header = Header::read(&mut file).map_err(failed("read the .npy header of", path))?;
    let unfit = |what, given: String, required: String| Error::Unfit {
        path: path.to_owned(),
        what,
        given,
        required,
    };
    let required = type_of::<T>();
    if header.descr != required {
        return Err(unfit("the type of its elements", header.descr, required));
    }
    let required = shape_of(points);
    if header.shape != required {
        let (given, required) = (format!("{:?}", header.shape), format!("{required:?}"));
        return Err(unfit("its shape", given, required));
    }
    let bytes = (points.iter().product::<usize>() * size_of::<T>()) as u64;
    let start = header.len;
    if len != start + bytes {
        return Err(Error::FileLength {
            path: path.to_owned(),
            given: len,
            required: start + bytes,
        });
    }
    let mut values = allocation::zeroed(block.extents.iter().product())?;
    let mut rest = &mut values[..];
    for piece in pieces(points, &region_of(block)) {
        let (these, others) = rest.split_at_mut(piece.len());
        let place = start + (piece.start * size_of::<T>()) as u64;
        let read = file
            .seek(SeekFrom::Start(place))
            .and_then(|_| file.read_exact(bytemuck::cast_slice_mut(these)));
        read.map_err(failed("read", path))?;
        rest = others;
    }
    Ok(Share::new(block, values))
}

/// The header of a file, in the [format of
/// NumPy](https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
struct Header {
    /// The element type, as Python writes it.
    descr: String,
    /// The slowest axis first.
    shape: Vec<u64>,
    /// Bytes before the elements.
    len: u64,
}

const MAGIC: &[u8; 6] = b"\x93NUMPY";

impl Header {
    fn read(file: &mut File) -> io::Result<Self> {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut start = [0; 10];
        file.read_exact(&mut start)?;
        if start[..6] != *MAGIC {
            return Err(bad("it does not start with the .npy magic number"));
        }
        let (low, before) = (u32::from(start[8]) | u32::from(start[9]) << 8, start.len());
        let (before, len) = match start[6] {
            1 => (before, low),
            2 | 3 => {
                let mut high = [0; 2];
                file.read_exact(&mut high)?;
                (before + 2, low | u32::from(u16::from_le_bytes(high)) << 16)
            }
            _ => return Err(bad("its format version is unknown")),
        };
        if len > LONGEST {
            return Err(bad("its header is too long"));
        }
        let mut text = vec![0; len as usize];
        file.read_exact(&mut text)?;
        let text = std::str::from_utf8(&text).map_err(|_| bad("its header is not text"))?;
        let missing = || bad("its header lacks descr, fortran_order or shape");
        let entry = |name| value_of(text, name).ok_or_else(missing);
        // For records it is a list.
        let descr = entry("descr")?;
        let descr = quoted(descr).map_or(descr, |(name, _)| name);
        let mut shape = tuple(entry("shape")?).ok_or_else(missing)?;
        match entry("fortran_order")? {
            "True" => shape.reverse(),
            "False" => {}
            _ => return Err(missing()),
        }
        Ok(Self {
            descr: descr.to_owned(),
            shape,
            len: before as u64 + u64::from(len),
        })
    }

    /// The header of an array with these points.
    fn bytes<T: Stored, const D: usize>(points: [usize; D]) -> Vec<u8> {
        let axes: String = shape_of(points)
            .iter()
            .map(|it| format!("{it}, "))
            .collect();
        let descr = type_of::<T>();
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({axes}), }}");
        // With its line feed the header fills whole blocks, as NumPy requires.
        let len = (MAGIC.len() + 4 + text.len() + 1).next_multiple_of(BLOCK);
        let padding = len - MAGIC.len() - 4 - text.len() - 1;
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend(((len - MAGIC.len() - 4) as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend(std::iter::repeat_n(b' ', padding));
        bytes.push(b'\n');
        bytes
    }
}

/// The value of `name` in a dictionary with string keys, as Python writes it.
fn value_of<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    loop {
        let (found, after) = quoted(rest.trim_start())?;
        let after = after.trim_start().strip_prefix(':')?;
        let value = &after[..len_of_value(after)];
        if found == name {
            return Some(value.trim());
        }
        rest = after[value.len()..].strip_prefix(',')?;
    }
}

/// The contents of the string literal at the beginning of `text`, and the rest of `text`.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
    text[1..].split_once(quote)
}

/// The number of bytes before the first comma outside brackets and strings; the length of `text` if
/// there is none.
fn len_of_value(text: &str) -> usize {
    let (mut depth, mut within) = (0, None);
    let ends = |it: char| {
        match (within, it) {
            (Some(quote), _) if quote == it => within = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => within = Some(it),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, _) => {}
        }
        it == ',' && depth == 0 && within.is_none()
    };
    text.find(ends).unwrap_or(text.len())
}

/// The numbers of a tuple. A tuple of one number has a comma after it.
fn tuple(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.strip_suffix(')')?.trim();
    let numbers = match inner.strip_suffix(',') {
        Some(numbers) => numbers,
        None if inner.is_empty() => return Some(Vec::new()),
        None if inner.contains(',') => inner,
        None => return None,
    };
    let number = |it: &str| it.trim().parse().ok();
    numbers.split(',').map(number).collect()
}

/// The length of a header is a multiple of this, so that elements are aligned.
const BLOCK: usize = 64;

/// The longest header text that is read, in bytes: more than 32 axes need.
const LONGEST: u32 = 1 << 14;

/// The shape of an array, the slowest axis first.
fn shape_of<const D: usize>(points: [usize; D]) -> Vec<u64> {
    points.iter().rev().map(|&it| it as u64).collect()
}

/// The type code of elements in this machine's byte order.
fn type_of<T: Stored>() -> String {
    let order = match size_of::<T>() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    format!("{order}{}", T::NPY)
}
