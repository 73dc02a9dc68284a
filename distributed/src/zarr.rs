//! Reads and writes fields as Zarr arrays (version 3), which xarray and zarr-python open. Each rank
//! writes its own chunk.
//!
//! A group is a folder, and each of its arrays is a folder in it. The last axis of a grid is the
//! first of the array, as in an [.npy file](crate::npy), so xarray shows the dimensions z, y, x.
//! Each rank has one uncompressed chunk. All ranks must see the same file system.
//!
//! ```
//! use halo_distributed::{Decomposition, run, zarr};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("waves.zarr");
//! run(3, |communicator| {
//!     let slabs = Decomposition::slabs([8, 6, 13], communicator.size())?;
//!     let value = |[i, j, k]: [usize; 3]| (i + 10 * j + 100 * k) as f32;
//!     let own = slabs.values(communicator.rank(), value)?;
//!     zarr::write(&communicator, &path, "pressure", &slabs, &own)
//! })?;
//! // Read by another number of ranks. In Python: xarray.open_zarr("waves.zarr")["pressure"]
//! let read = run(2, |communicator| {
//!     let pencils = Decomposition::pencils([8, 6, 13], communicator.size())?;
//!     let share = zarr::read::<f32, 3>(&communicator, &path, "pressure", &pencils)?;
//!     Ok(share.get([7, 5, 12]))
//! })?;
//! assert_eq!(read.into_iter().flatten().collect::<Vec<_>>(), [1257.0]);
//! # Ok(())
//! # }
//! ```

use crate::files::{by_first, failed, region_of, require_values};
use crate::region::{Region, pieces, points};
use crate::{Block, Communicator, Decomposition, Error, Incoming, Outgoing, Share, Stored};
use halo_gpu::allocation;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use zarrs::array::{Array, ArrayBuilder, ArrayBytes, ArraySubset, DataType, FillValue, data_type};
use zarrs::filesystem::FilesystemStore;
use zarrs::group::GroupBuilder;

/// Writes a field as the array `name` of the group at `path`, and creates the group if it does not
/// exist. Each rank gives the values `own` at its own points, the first axis fastest.
///
/// Zarr requires chunks of equal size. If the blocks have different sizes, ranks exchange the
/// points that lie in other ranks' chunks. The array is written under a temporary name and then
/// renamed.
///
/// # Errors
///
/// [`Error::Disagreement`] unless all ranks give the same path, name, decomposition and type;
/// [`Error::InvalidParameter`] for a name with characters other than letters, digits, `_` and `-`,
/// and unless there are as many ranks as blocks, and as many values as points; [`Error::File`], and
/// [`Error::Elsewhere`] on the other ranks; as [`Transport::exchange`](crate::Transport::exchange).
pub fn write<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: impl AsRef<Path>,
    name: &str,
    decomposition: &Decomposition<D>,
    own: &[T],
) -> Result<(), Error> {
    let path = path.as_ref();
    let block = decomposition.block_among(communicator)?;
    communicator.agree("the array", &(path, name, T::NAME))?;
    let fits = require_name(name).and_then(|()| require_values(block, own.len()));
    communicator.together(fits)?;
    let (place, part) = (path.join(name), format!("{name}.part"));
    let node = format!("/{part}");
    let extents = chunk_extents(decomposition);
    by_first(communicator, || {
        let make = || -> Result<(), io::Error> {
            fs::create_dir_all(path)?;
            let store = store_at(path)?;
            if !path.join("zarr.json").exists() {
                let group = GroupBuilder::new().build(store.clone(), "/");
                group
                    .map_err(io::Error::other)?
                    .store_metadata()
                    .map_err(io::Error::other)?;
            }
            remove(&path.join(&part))?;
            let fill = FillValue::new(vec![0; size_of::<T>()]);
            let axes = ["x", "y", "z"];
            let array = ArrayBuilder::new(
                turned(decomposition.points()),
                turned(extents),
                type_of::<T>(),
                fill,
            )
            .dimension_names(Some((0..D).rev().map(|axis| axes.get(axis).copied())))
            .build(store, &node);
            let array = array.map_err(io::Error::other)?;
            array.store_metadata().map_err(io::Error::other)
        };
        make().map_err(failed("make", &place))
    })?;
    let chunk = chunk_of(communicator, decomposition, extents, own)?;
    let write = || -> Result<(), io::Error> {
        let Some(chunk) = chunk else { return Ok(()) };
        let array = Array::open(store_at(path)?, &node).map_err(io::Error::other)?;
        let bytes = ArrayBytes::new_flen(bytemuck::cast_slice::<T, u8>(&chunk).to_vec());
        let number = turned(decomposition.place(communicator.rank()).unwrap_or([0; D]));
        array.store_chunk(&number, bytes).map_err(io::Error::other)
    };
    communicator.together(write().map_err(failed("write", &place)))?;
    by_first(communicator, || {
        let moved = remove(&place).and_then(|()| fs::rename(path.join(&part), &place));
        moved.map_err(failed("replace", &place))
    })
    .map(drop)
}

/// Reads the array `name` of the group at `path`: each rank gets the values at its own points.
/// Chunks may have any size, but must be uncompressed.
///
/// # Errors
///
/// [`Error::Disagreement`] and [`Error::InvalidParameter`] as [`write()`]; [`Error::File`] if the
/// array does not exist or cannot be decoded, [`Error::Unfit`] if it has another element type or
/// shape, and [`Error::Elsewhere`] on ranks that found nothing wrong; as
/// [`Transport::exchange`](crate::Transport::exchange).
pub fn read<T: Stored, const D: usize>(
    communicator: &Communicator,
    path: impl AsRef<Path>,
    name: &str,
    decomposition: &Decomposition<D>,
) -> Result<Share<T, D>, Error> {
    let path = path.as_ref();
    let block = decomposition.block_among(communicator)?;
    communicator.agree("the array", &(path, name, T::NAME))?;
    let read =
        require_name(name).and_then(|()| read_own(path, name, decomposition.points(), block));
    communicator.together(read)
}

fn read_own<T: Stored, const D: usize>(
    path: &Path,
    name: &str,
    points: [usize; D],
    block: Block<D>,
) -> Result<Share<T, D>, Error> {
    let place = path.join(name);
    let read = |error| failed("read", &place)(error);
    let store = store_at(path).map_err(read)?;
    let array = Array::open(store, &format!("/{name}"));
    let array = array.map_err(|error| read(io::Error::other(error)))?;
    let unfit = |what, given, required| Error::Unfit {
        path: place.clone(),
        what,
        given,
        required,
    };
    let required = type_of::<T>();
    if *array.data_type() != required {
        let (given, required) = (format!("{:?}", array.data_type()), format!("{required:?}"));
        return Err(unfit("the type of its elements", given, required));
    }
    if array.shape() != turned(points) {
        let (given, required) = (
            format!("{:?}", array.shape()),
            format!("{:?}", turned(points)),
        );
        return Err(unfit("its shape", given, required));
    }
    let mut ranges = region_of(block).map(|range| range.start as u64..range.end as u64);
    ranges.reverse();
    let subset = ArraySubset::new_with_ranges(&ranges);
    let bytes = array.retrieve_array_subset::<ArrayBytes<'static>>(&subset);
    let bytes = bytes.map_err(|error| read(io::Error::other(error)))?;
    let bytes = bytes.into_fixed();
    let bytes = bytes.map_err(|error| read(io::Error::other(error)))?;
    Ok(Share::new(block, bytemuck::pod_collect_to_vec(&bytes)))
}

fn store_at(path: &Path) -> io::Result<Arc<FilesystemStore>> {
    let store = FilesystemStore::new(path).map_err(io::Error::other)?;
    Ok(Arc::new(store))
}

/// Removes an array, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn require_name(name: &str) -> Result<(), Error> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_plain) && !name.starts_with("__") {
        return Ok(());
    }
    Err(Error::InvalidParameter {
        operation: "a Zarr array",
        parameter: "its name",
        given: format!("{name:?}"),
        required: "of letters, digits, _ and -, without two _ at its start".to_owned(),
    })
}

fn type_of<T: Stored>() -> DataType {
    match T::NAME {
        "f32" => data_type::float32(),
        "f64" => data_type::float64(),
        "i8" => data_type::int8(),
        "i16" => data_type::int16(),
        "i32" => data_type::int32(),
        "i64" => data_type::int64(),
        "u8" => data_type::uint8(),
        "u16" => data_type::uint16(),
        "u32" => data_type::uint32(),
        _ => data_type::uint64(),
    }
}

/// Converts values per axis of the grid to the order of the array's axes.
fn turned<const D: usize>(mut of_axes: [usize; D]) -> Vec<u64> {
    of_axes.reverse();
    of_axes.map(|it| it as u64).to_vec()
}

/// The points of each chunk along each axis: those of the largest block.
fn chunk_extents<const D: usize>(decomposition: &Decomposition<D>) -> [usize; D] {
    let (points, parts) = (decomposition.points(), decomposition.parts());
    std::array::from_fn(|axis| points[axis].div_ceil(parts[axis]))
}

/// The region of the chunk that a rank writes. It is empty along an axis where the earlier chunks
/// already cover all points.
fn chunk_region<const D: usize>(
    decomposition: &Decomposition<D>,
    extents: [usize; D],
    rank: usize,
) -> Result<Region<D>, Error> {
    let (points, place) = (decomposition.points(), decomposition.place(rank)?);
    Ok(std::array::from_fn(|axis| {
        let start = (place[axis] * extents[axis]).min(points[axis]);
        start..(start + extents[axis]).min(points[axis])
    }))
}

/// The intersection of two regions.
fn common<const D: usize>(one: &Region<D>, other: &Region<D>) -> Region<D> {
    std::array::from_fn(|axis| {
        let start = one[axis].start.max(other[axis].start);
        start..one[axis].end.min(other[axis].end).max(start)
    })
}

/// The same region, relative to the start of `from`.
fn within<const D: usize>(region: &Region<D>, from: &Region<D>) -> Region<D> {
    std::array::from_fn(|axis| {
        let start = from[axis].start;
        region[axis].start - start..region[axis].end - start
    })
}

/// The values of the chunk that this rank writes, with zeros beyond the grid; `None` if the chunk
/// has no points. Each rank sends the other ranks the points of their chunks that it has.
fn chunk_of<T: Stored, const D: usize>(
    communicator: &Communicator,
    decomposition: &Decomposition<D>,
    extents: [usize; D],
    own: &[T],
) -> Result<Option<Vec<T>>, Error> {
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let block = decomposition.block(rank)?;
    let (here, chunk) = (
        region_of(block),
        chunk_region(decomposition, extents, rank)?,
    );
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    for peer in 0..ranks {
        let theirs = common(&here, &chunk_region(decomposition, extents, peer)?);
        if points(&theirs) > 0 {
            let places = pieces(block.extents, &within(&theirs, &here));
            let values: Vec<T> = places.into_iter().flatten().map(|it| own[it]).collect();
            sent.push((peer, values));
        }
        let there = region_of(decomposition.block(peer)?);
        let ours = common(&there, &chunk);
        if points(&ours) > 0 {
            let values: Vec<T> = allocation::zeroed(points(&ours))?;
            received.push((peer, ours, values));
        }
    }
    let outgoing = sent.iter().map(|(to, values)| Outgoing {
        to: *to,
        tag: 0,
        bytes: bytemuck::cast_slice(values),
    });
    let outgoing: Vec<_> = outgoing.collect();
    let incoming = received.iter_mut().map(|(from, _, values)| Incoming {
        from: *from,
        tag: 0,
        bytes: bytemuck::cast_slice_mut(values),
    });
    communicator.exchange(&outgoing, &mut incoming.collect::<Vec<_>>())?;
    if points(&chunk) == 0 {
        return Ok(None);
    }
    let mut all = allocation::zeroed(extents.iter().product())?;
    for (_, region, values) in received {
        let places = pieces(extents, &within(&region, &chunk));
        for (place, value) in places.into_iter().flatten().zip(values) {
            all[place] = value;
        }
    }
    Ok(Some(all))
}
