//! Runs stencils on the CPU: passes over the fields, each of one or several steps, tile by tile on
//! all cores.
//!
//! - A tile consists of some rows of some planes. Each thread walks through a tile along the
//!   slowest axis. The planes being read stay in the thread's part of the last-level cache or, if
//!   a trial tells that narrower tiles are faster, in the second-level cache.
//! - A pass of several steps takes a tile through all of them before the next tile. A plane of
//!   level t has the values after t steps. It is computed as soon as the planes of level t - 1
//!   around it exist. A scratch in the cache keeps the planes of each level that are still needed:
//!
//!   ```text
//!        plane  s-3  s-2  s-1   s
//!   level 0      .    x    x    x    from the old fields
//!   level 1      x    x    x'        the pass to plane s computes the marked planes
//!   level 2      x    x'
//!   level 3      x'                  into the new fields
//!   ```
//!
//!   Around its own points a tile also computes those points of lower levels that they depend on;
//!   its neighbours compute them too. Beyond a periodic end the tile continues as if the axis had
//!   no end.
//! - Fields with two axes are computed row by row or, if some rows of all levels fit in the cache,
//!   level by level.
//! - Results of passes of one step may be written by non-temporal stores, which move fewer bytes.
//!   If rows are long and the fields too large for the cache, a trial tells whether they are faster
//!   (docs/tuning/stencil.md).
//!
//! A point's operations are the update's, on the same numbers, however the pass is divided, so the
//! bits equal those of the kernels.
#![forbid(unsafe_code)]

use super::number::Number;
use super::vectors::{Rows, Run, all_values, most_rows, windows_len};
use crate::caches::{last_cache, last_cache_per_core, second_cache};
use crate::elementwise::cpu::put_among;
use crate::simd::dispatched;
use crate::streaming::{Stores, Streaming, streamed};
use crate::trial::Trial;
use crate::{Boundary, Error, allocation, threads};
use halo_stencil::{Layout, Place, PointUpdate, Reach, furthest, overwritten};
use pulp::{Simd, WithSimd};
use std::mem::take;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most pieces of a pass per thread, enough that one slow thread does not delay the pass.
const PIECES_PER_THREAD: usize = 4;

/// A piece has at least this many times the work for which a thread is worthwhile, unless each thread
/// has only one piece.
const SHARES_PER_PIECE: usize = 2;

/// A piece is at least this many times as thick as the part that its neighbours compute too.
const THICK: usize = 8;

/// Passes of several steps are only for updates with at most this radius.
const NEAR: usize = 2;

/// The most steps of a pass over fields that stay in the last-level cache. With more steps, the
/// points that are computed twice cost more than the passes that are saved.
const SHALLOW: usize = 6;

/// Fields of at most this many second-level caches, on two axes and on three, are read so fast that
/// passes of several steps cost more than they save.
const NEAR_CACHES: [usize; 2] = [4, 1];

/// Where the frames of a plane have at most this many bytes, its rows are copied to them.
const FRAMES_BYTES: usize = 20 << 10;

/// Rows of fewer points are written with ordinary stores: the lines at their ends, which are
/// written so in any case, are a large part of them.
const LONG_ROW: usize = 1024;

/// The limits that determine how a pass is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most steps of a pass, for two axes and for three.
    depth: [usize; 2],
    /// A pass over fields of at most this many bytes, old and new ones together, takes one step;
    /// for two axes and for three.
    near_bytes: [usize; 2],
    /// Results on two axes of at most this many bytes stay in the last-level cache. A pass over
    /// them takes at most [`SHALLOW`] steps.
    stay_bytes: usize,
    /// Bytes for the planes of all levels that a thread keeps.
    scratch_bytes: usize,
    /// Bytes of the planes from which a tile is computed.
    tile_bytes: usize,
    /// The same for narrow tiles, whose planes and results stay in the second-level cache.
    narrow_tile_bytes: usize,
    /// The most bytes of the frames of a plane.
    frames_bytes: usize,
    /// Fields of more bytes, old and new ones together, do not stay in the last-level cache.
    cached_bytes: usize,
    /// The number of values that are read, in all steps, for which another thread is worthwhile.
    values_per_thread: usize,
    /// The stores for rows of this many points, and for inputs and outputs of this many bytes.
    stores: fn(usize, usize) -> Stores,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: [12, 6],
            near_bytes: NEAR_CACHES.map(|caches| caches * second_cache()),
            // The cache holds the new fields, the old ones, and data of other programs.
            stay_bytes: last_cache() / 4,
            scratch_bytes: second_cache() / 2,
            // Wider tiles are read in longer stretches. Half of a core's share of the last-level
            // cache is left to other programs.
            tile_bytes: second_cache().max(last_cache_per_core() / 2) / 2,
            narrow_tile_bytes: second_cache() / 2,
            frames_bytes: FRAMES_BYTES,
            // A quarter of the cache is left to other programs.
            cached_bytes: last_cache() / 4 * 3,
            values_per_thread: 1 << 16,
            stores,
        }
    }
}

/// The fields that are read along y, and how far.
fn framed(reach: &[Reach]) -> impl Iterator<Item = (usize, usize)> {
    let radii = reach.iter().map(|reach| reach.radius(1));
    radii.enumerate().filter(|(_, radius)| *radius > 0)
}

/// The stores of a pass of one step, see [`Limits`].
fn stores(row: usize, bytes: usize) -> Stores {
    match row < LONG_ROW {
        true => Stores::Ordinary,
        false => Stores::of_iterated(bytes),
    }
}

/// The state that all passes over the fields of a plan share.
#[derive(Debug)]
pub(super) struct Passes<T, const INPUTS: usize> {
    layout: Layout<T, INPUTS>,
    dimensions: usize,
    /// The ends of each field along each axis.
    ends: [[End; 3]; INPUTS],
    /// For each field and each end of y and z: a row of the value beyond it, if there is one.
    beyond: Vec<Vec<T>>,
    limits: Limits,
    /// The threads' scratch memory, one each, while no pass uses it. The contents are arbitrary.
    scratches: Mutex<Vec<Vec<T>>>,
    trials: Mutex<Trials>,
}

/// What is tried in passes of one step, one after the other.
#[derive(Debug)]
struct Trials {
    /// Whether narrow tiles are faster than the usual ones, where these are wider.
    tiles: Trial,
    /// Whether non-temporal stores are faster, for results that leave the cache before they are
    /// read.
    stores: Trial,
}

/// How a tile gets the values beyond the ends of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Periodic: the axis continues at its other end.
    Around,
    /// The values are images of points near the end, or a constant.
    Near,
    /// The values are at the other end, but the axis does not continue there: the end point is
    /// stored twice.
    Far,
}

impl End {
    fn of(ends: [Boundary; 2]) -> Self {
        match ends[0] {
            Boundary::Periodic => Self::Around,
            Boundary::PeriodicWithEndpoint => Self::Far,
            _ => Self::Near,
        }
    }
}

/// The rows and planes of fields, as a pass sees them.
#[derive(Debug, Clone, Copy)]
struct Geometry {
    /// Points along x, rows of a plane, and planes.
    extents: [usize; 3],
    /// The axes of rows and of planes.
    axes: [usize; 2],
    /// The radii of updates along these axes.
    radii: [usize; 2],
}

impl Geometry {
    /// For two axes, rows lie either in one plane (`by_rows` is false) or in a plane each.
    fn new(extents: [u32; 3], reach: &[Reach], dimensions: usize, by_rows: bool) -> Self {
        let [nx, ny, nz] = extents.map(|extent| extent as usize);
        let [y, z] = [furthest(reach, 1), furthest(reach, 2)];
        let (extents, axes, radii) = match (dimensions, by_rows) {
            (2, false) => ([nx, ny, 1], [1, 2], [y, 0]),
            (2, true) => ([nx, 1, ny], [2, 1], [0, y]),
            _ => ([nx, ny, nz], [1, 2], [y, z]),
        };
        Self {
            extents,
            axes,
            radii,
        }
    }

    /// The least numbers of rows and planes of a piece in passes of `depth` steps.
    fn thick(&self, depth: usize) -> [usize; 2] {
        self.radii
            .map(|radius| (THICK * radius * (depth - 1)).max(1))
    }

    /// The number of planes of a level that are kept.
    const fn kept(&self) -> usize {
        2 * self.radii[1] + 1
    }

    /// The number of levels that a pass keeps: for planes computed whole, the latest is enough.
    const fn levels(&self, depth: usize) -> usize {
        if self.radii[1] == 0 && depth > 3 {
            2
        } else {
            depth - 1
        }
    }
}

/// How a pass is divided.
#[derive(Debug, Clone, Copy)]
struct Cut {
    geometry: Geometry,
    /// The number of steps, at least one.
    depth: usize,
    /// The rows and planes of a piece.
    piece: [usize; 2],
    threads: usize,
    /// The number of elements of a kept plane.
    plane: usize,
    /// The number of elements of all planes of a level.
    level: usize,
    /// The number of elements of the windows.
    windows: usize,
    /// The number of elements of the frames of a plane; 0 if they would be too large. The frame of a
    /// field has the rows of a piece between those beyond its ends, so that all rows of a small plane
    /// can be computed together.
    frames: usize,
}

impl Cut {
    /// The division of passes of `depth` steps over tiles of up to `tile` rows, with this number of
    /// outputs and without windows and frames. The update reads this number of `values` for each point.
    fn new(
        geometry: Geometry,
        depth: usize,
        tile: usize,
        outputs: usize,
        values: usize,
        limits: &Limits,
    ) -> Self {
        let [nx, rows, planes] = geometry.extents;
        let work = (nx * rows * planes).saturating_mul(depth * values);
        let threads = threads::worth(work, limits.values_per_thread);
        let pieces = match threads {
            1 => 1,
            threads => {
                let each = work / threads / SHARES_PER_PIECE / limits.values_per_thread;
                threads * each.clamp(1, PIECES_PER_THREAD)
            }
        };
        let [thick_rows, thick_planes] = geometry.thick(depth);
        // In a single plane only its rows can be divided among threads.
        let tile = match planes {
            1 => {
                let most = pieces.min((rows / thick_rows).max(1));
                tile.min(rows.div_ceil(threads::full_bands(threads, most, 1)))
            }
            _ => tile,
        };
        let tiles = rows.div_ceil(tile.clamp(1, rows));
        let bands = pieces.div_ceil(tiles).min((planes / thick_planes).max(1));
        let bands = threads::full_bands(threads, bands, tiles);
        let piece = [rows.div_ceil(tiles), planes.div_ceil(bands)];
        let wide = piece[0] + 2 * geometry.radii[0] * (depth - 1);
        let plane = wide * nx;
        Self {
            geometry,
            depth,
            piece,
            threads,
            plane,
            level: outputs * geometry.kept() * plane,
            windows: 0,
            frames: 0,
        }
    }

    fn pieces(&self) -> usize {
        let [_, rows, planes] = self.geometry.extents;
        rows.div_ceil(self.piece[0]) * planes.div_ceil(self.piece[1])
    }

    /// The elements of a thread's scratch.
    const fn scratch(&self) -> usize {
        self.geometry.levels(self.depth) * self.level + self.windows + self.frames
    }
}

/// A function that runs one pass. The update is compiled where the function pointer is made.
pub(super) type Pass<U, T, const INPUTS: usize, const OUTPUTS: usize> = fn(
    &Passes<T, INPUTS>,
    U,
    usize,
    &[Given<'_, T>],
    [&[T]; INPUTS],
    [&mut [T]; OUTPUTS],
) -> Result<(), Error>;

/// Points of an output with given values.
pub(super) struct Given<'a, T> {
    pub(super) output: usize,
    /// The indices of the elements, ascending.
    pub(super) at: &'a [u64],
    /// Their values after each step of the pass.
    pub(super) values: Vec<&'a [T]>,
}

impl<T: Copy> Given<'_, T> {
    /// Overwrites the given points among these rows of a plane, which may be beyond periodic ends.
    /// `out` holds the rows' values after `level` steps.
    fn put(
        &self,
        geometry: &Geometry,
        level: usize,
        (rows, plane): (Range<i32>, i32),
        out: &mut [T],
    ) {
        let [nx, all, planes] = geometry.extents;
        let values = self.values[level - 1];
        let plane = wrapped(plane, planes) as usize;
        let mut left = out;
        let mut j = rows.start;
        while j < rows.end {
            // Rows up to the end of the axis are consecutive.
            let row = wrapped(j, all) as usize;
            let count = ((rows.end - j) as usize).min(all - row);
            let (now, later) = left.split_at_mut(count * nx);
            put_among(values, self.at, (plane * all + row) * nx, now);
            left = later;
            j += count as i32;
        }
    }
}

impl<T: Number, const INPUTS: usize> Passes<T, INPUTS> {
    pub(super) fn new<const D: usize>(
        layout: Layout<T, INPUTS>,
        ends: &[[[Boundary; 2]; D]; INPUTS],
        limits: Limits,
    ) -> Result<Self, Error> {
        let nx = layout.extents[0] as usize;
        let mut beyond = Vec::new();
        for (field, end) in (0..INPUTS).flat_map(|field| (2..6).map(move |end| (field, end))) {
            let mut row = Vec::new();
            if layout.has_value(field, end) {
                row = allocation::reserve(nx)?;
                row.resize(nx, layout.value(field, end));
            }
            beyond.push(row);
        }
        let ends = ends.map(|ends| {
            // A missing third axis counts as a single point with nothing beyond its ends.
            std::array::from_fn(|axis| ends.get(axis).map_or(End::Near, |ends| End::of(*ends)))
        });
        Ok(Self {
            layout,
            dimensions: D,
            ends,
            beyond,
            limits,
            scratches: Mutex::default(),
            trials: Mutex::new(Trials {
                tiles: Trial::of_passes(),
                stores: Trial::of_passes(),
            }),
        })
    }

    /// Replaces the values beyond the ends by those of `layout`, which has the same extents.
    pub(super) fn set_ends<const D: usize>(
        &mut self,
        layout: Layout<T, INPUTS>,
        ends: &[[[Boundary; 2]; D]; INPUTS],
    ) -> Result<(), Error> {
        let Self {
            layout,
            ends,
            beyond,
            ..
        } = Self::new(layout, ends, self.limits)?;
        (self.layout, self.ends, self.beyond) = (layout, ends, beyond);
        Ok(())
    }

    /// The geometry of passes of `depth` steps, and the number of rows of the widest tile whose
    /// levels all fit into the scratch. `None` if such a tile would mostly compute what its
    /// neighbours compute too.
    fn tile<U, const OUTPUTS: usize>(&self, depth: usize) -> Option<(Geometry, usize)>
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        if depth == 1 {
            return Some(self.tile_of_one_step::<U, OUTPUTS>(self.limits.tile_bytes));
        }
        let row = self.layout.extents[0] as usize * size_of::<T>();
        // With two axes there is a second geometry, which keeps fewer rows.
        let geometries: &[bool] = match self.dimensions {
            2 => &[false, true],
            _ => &[false],
        };
        geometries.iter().find_map(|&by_rows| {
            let extents = self.layout.extents;
            let geometry = Geometry::new(extents, &U::REACH, self.dimensions, by_rows);
            let kept = OUTPUTS * geometry.kept() * geometry.levels(depth);
            let margin = 2 * geometry.radii[0] * (depth - 1);
            let tile = (self.limits.scratch_bytes / (row * kept)).saturating_sub(margin);
            let thick = geometry.thick(depth)[0];
            (tile >= thick.min(geometry.extents[1])).then_some((geometry, tile))
        })
    }

    /// The geometry of passes of one step, and the number of rows of the widest tile whose planes
    /// have at most this many bytes.
    fn tile_of_one_step<U, const OUTPUTS: usize>(&self, bytes: usize) -> (Geometry, usize)
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let geometry = Geometry::new(self.layout.extents, &U::REACH, self.dimensions, false);
        let planes: usize = U::REACH.iter().map(|reach| 2 * reach.radius(2) + 1).sum();
        let row = geometry.extents[0] * size_of::<T>();
        let tile = match self.dimensions {
            2 => usize::MAX,
            _ => bytes / (planes * row),
        };
        // The rows next to the tile are read too.
        let tile = tile.saturating_sub(2 * geometry.radii[0]).max(4);
        (geometry, tile)
    }

    /// The division into narrow tiles, if those of `usual` are wider.
    fn narrow<U, const OUTPUTS: usize>(&self, usual: &Cut) -> Option<Cut>
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        if self.dimensions == 2 || usual.depth > 1 {
            return None;
        }
        let tile = self.tile_of_one_step::<U, OUTPUTS>(self.limits.narrow_tile_bytes);
        let narrow = self.cut_into::<U, OUTPUTS>(tile, 1);
        (narrow.piece[0] < usual.piece[0]).then_some(narrow)
    }

    /// The division of passes of `depth` steps over tiles of up to `tile` rows.
    fn cut_into<U, const OUTPUTS: usize>(
        &self,
        (geometry, tile): (Geometry, usize),
        depth: usize,
    ) -> Cut
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let values = all_values(&U::REACH, U::DIMENSIONS);
        let cut = Cut::new(geometry, depth, tile, OUTPUTS, values, &self.limits);
        Cut {
            windows: windows_len::<T, U, INPUTS, OUTPUTS>(self.layout.extents[0] as usize),
            frames: self.frames::<U, OUTPUTS>(&cut),
            ..cut
        }
    }

    /// The number of elements of the frames of a plane, or 0.
    fn frames<U, const OUTPUTS: usize>(&self, cut: &Cut) -> usize
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        if self.dimensions == 2 || cut.depth > 1 || U::REACH.iter().any(|reach| reach.is_box()) {
            return 0;
        }
        let rows: usize = framed(&U::REACH)
            .map(|(_, radius)| cut.piece[0] + 2 * radius)
            .sum();
        let elements = rows * cut.geometry.extents[0];
        match elements * size_of::<T>() <= self.limits.frames_bytes {
            true => elements,
            false => 0,
        }
    }

    /// Whether non-temporal stores may be faster: the results leave the cache before they are read,
    /// and the lines that are overwritten are not read.
    fn may_stream<U, const OUTPUTS: usize>(&self, depth: usize) -> bool
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let (row, bytes) = (
            self.layout.extents[0] as usize,
            self.bytes(INPUTS + OUTPUTS),
        );
        depth == 1 && !U::OVER_PAST && (self.limits.stores)(row, bytes) == Stores::Streaming
    }

    /// The bytes of this many fields.
    fn bytes(&self, fields: usize) -> usize {
        let extents = self.layout.extents.map(|extent| extent as usize);
        fields * extents.iter().product::<usize>() * size_of::<T>()
    }

    /// The division of passes of `depth` steps, where `depth` comes from [`Self::depth`].
    fn cut<U, const OUTPUTS: usize>(&self, depth: usize) -> Cut
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        // `depth` returns no number of steps without a tile. Such a pass would only need more
        // memory.
        let tile = self.tile::<U, OUTPUTS>(depth).unwrap_or_else(|| {
            let extents = self.layout.extents;
            let geometry = Geometry::new(extents, &U::REACH, self.dimensions, false);
            (geometry, usize::MAX)
        });
        self.cut_into::<U, OUTPUTS>(tile, depth)
    }

    /// Whether a pass may take several steps: the outputs are the only changing fields, the
    /// update's radius is small, and a tile contains or knows all values beyond the ends.
    fn may_take_several<U, const OUTPUTS: usize>(&self) -> bool
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let axes = 1..self.dimensions;
        U::PAST == 0
            && axes.into_iter().all(|axis| {
                let radius = furthest(&U::REACH, axis);
                let alike = (0..OUTPUTS).all(|field| self.ends[field][axis] == self.ends[0][axis]);
                radius <= NEAR && alike && self.ends[0][axis] != End::Far
            })
    }

    /// The most steps of a pass.
    fn most_steps(&self, outputs: usize) -> usize {
        let [flat, deep] = self.limits.depth;
        let near_bytes = self.limits.near_bytes[usize::from(self.dimensions > 2)];
        match self.dimensions {
            _ if self.bytes(INPUTS + outputs) <= near_bytes => 1,
            2 if self.bytes(outputs) <= self.limits.stay_bytes => flat.min(SHALLOW),
            2 => flat,
            _ => deep,
        }
    }

    /// The number of steps of the next pass, if `steps` steps remain.
    pub(super) fn depth<U, const OUTPUTS: usize>(&self, steps: usize) -> usize
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        // Passes of more steps have fewer pieces, and each thread needs one.
        let busy = |&depth: &usize| {
            self.tile::<U, OUTPUTS>(depth).is_some_and(|tile| {
                let cut = self.cut_into::<U, OUTPUTS>(tile, depth);
                cut.pieces() >= cut.threads
            })
        };
        let most = match self.may_take_several::<U, OUTPUTS>() {
            true => steps.min(self.most_steps(OUTPUTS)),
            false => 1,
        };
        let most = (2..=most).rev().find(busy).unwrap_or(1);
        // Passes of equal depth, without a short one at the end.
        steps.div_ceil(steps.div_ceil(most))
    }

    /// Allocates the scratch memory for passes of up to `steps` steps.
    pub(super) fn reserve<U, const OUTPUTS: usize>(&self, steps: usize) -> Result<(), Error>
    where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let cut = self.cut::<U, OUTPUTS>(self.depth::<U, OUTPUTS>(steps));
        let lent = self.lend(&cut)?;
        self.scratches().extend(lent);
        Ok(())
    }

    /// A scratch of the required length for each thread of a pass: existing ones, and new ones
    /// where some are missing.
    fn lend(&self, cut: &Cut) -> Result<Vec<Vec<T>>, Error> {
        let len = cut.scratch();
        let mut lent = Vec::new();
        if len == 0 {
            return Ok(lent);
        }
        {
            let mut scratches = self.scratches();
            scratches.retain(|scratch| scratch.len() >= len);
            // In order: each thread gets the one that it had, which is probably in its caches.
            let count = scratches.len().min(cut.threads);
            lent.extend(scratches.drain(..count));
        }
        while lent.len() < cut.threads {
            lent.push(allocation::zeroed(len)?);
        }
        Ok(lent)
    }

    fn scratches(&self) -> MutexGuard<'_, Vec<Vec<T>>> {
        self.scratches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a pass of `depth` steps, where `depth` comes from [`Passes::depth`]. All fields have the
/// layout's points, except that inputs are empty if outputs are written over them. The `given`
/// points have their values after all steps but the last.
pub(super) fn pass<T, U, const INPUTS: usize, const OUTPUTS: usize>(
    passes: &Passes<T, INPUTS>,
    update: U,
    depth: usize,
    given: &[Given<'_, T>],
    inputs: [&[T]; INPUTS],
    outputs: [&mut [T]; OUTPUTS],
) -> Result<(), Error>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let usual = passes.cut::<U, OUTPUTS>(depth);
    let narrow = passes.narrow::<U, OUTPUTS>(&usual);
    let may_stream = passes.may_stream::<U, OUTPUTS>(depth);
    let run = |is_narrow: bool, streaming: bool| {
        let cut = match &narrow {
            Some(narrow) if is_narrow => narrow,
            _ => &usual,
        };
        pass_of(passes, update, given, inputs, outputs, cut, streaming)
    };
    // Another pass that runs now takes no part in the trials.
    let Ok(mut trials) = passes.trials.try_lock() else {
        return run(false, false);
    };
    let Trials { tiles, stores } = &mut *trials;
    // While tiles are tried, stores are not.
    let may_stream = may_stream && (narrow.is_none() || tiles.winner().is_some());
    let in_tiles = |is_narrow: bool| match may_stream {
        true => stores.run(|streaming| run(is_narrow, streaming)),
        false => run(is_narrow, false),
    };
    match narrow {
        Some(_) => tiles.run(in_tiles),
        None => in_tiles(false),
    }
}

/// Runs a pass divided as `cut` says, with non-temporal stores if it is `streaming`.
fn pass_of<'out, T, U, const INPUTS: usize, const OUTPUTS: usize>(
    passes: &Passes<T, INPUTS>,
    update: U,
    given: &[Given<'_, T>],
    inputs: [&[T]; INPUTS],
    outputs: [&'out mut [T]; OUTPUTS],
    cut: &Cut,
    streaming: bool,
) -> Result<(), Error>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    let scratches: Vec<_> = passes.lend(cut)?.into_iter().map(Mutex::new).collect();
    let pieces: Vec<_> = pieces(cut, outputs)
        .into_iter()
        .map(|piece| Mutex::new(Some(piece)))
        .collect();
    threads::share_with_scratch(cut.threads, pieces.len(), &scratches, |mine, scratch| {
        for piece in mine {
            // Each piece is taken once.
            let mut piece = pieces[piece].lock().unwrap_or_else(PoisonError::into_inner);
            let Some(piece) = piece.take() else { continue };
            let work = |stream: Option<&Streaming<'out>>| {
                dispatched(Work {
                    passes,
                    cut,
                    update,
                    given,
                    inputs,
                    piece,
                    scratch,
                    stream,
                });
            };
            match streaming {
                true => streamed(|stream| work(Some(stream))),
                false => work(None),
            }
        }
    });
    let lent = scratches
        .into_iter()
        .map(|scratch| scratch.into_inner().unwrap_or_else(PoisonError::into_inner));
    passes.scratches().extend(lent);
    Ok(())
}

/// Rows of some planes, which one thread computes.
struct Piece<'out, T, const OUTPUTS: usize> {
    rows: Range<usize>,
    planes: Range<usize>,
    outputs: [Planes<'out, T>; OUTPUTS],
}

/// Parts of planes, one after the other.
struct Planes<'out, T> {
    /// The elements of each part.
    len: usize,
    /// The parts; those in one slice are consecutive.
    slices: std::vec::IntoIter<&'out mut [T]>,
    first: &'out mut [T],
}

impl<'out, T> Planes<'out, T> {
    /// The next part; empty after the last.
    #[inline(always)]
    fn next(&mut self) -> &'out mut [T] {
        if self.first.is_empty() {
            self.first = self.slices.next().unwrap_or_default();
        }
        let len = self.len.min(self.first.len());
        let (next, later) = take(&mut self.first).split_at_mut(len);
        self.first = later;
        next
    }
}

fn pieces<'out, T, const OUTPUTS: usize>(
    cut: &Cut,
    outputs: [&'out mut [T]; OUTPUTS],
) -> Vec<Piece<'out, T, OUTPUTS>> {
    let ([nx, rows, planes], [high, thick]) = (cut.geometry.extents, cut.piece);
    let tiles = rows.div_ceil(high);
    let places =
        (0..planes.div_ceil(thick)).flat_map(|band| (0..tiles).map(move |tile| (band, tile)));
    let mut slices: Vec<[Vec<&'out mut [T]>; OUTPUTS]> = places
        .clone()
        .map(|_| [const { Vec::new() }; OUTPUTS])
        .collect();
    for (output, values) in outputs.into_iter().enumerate() {
        for (band, values) in values.chunks_mut(thick * rows * nx).enumerate() {
            if tiles == 1 {
                slices[band][output].push(values);
                continue;
            }
            for plane in values.chunks_mut(rows * nx) {
                for (tile, part) in plane.chunks_mut(high * nx).enumerate() {
                    slices[band * tiles + tile][output].push(part);
                }
            }
        }
    }
    let range =
        |number: usize, size: usize, all: usize| number * size..all.min((number + 1) * size);
    places
        .zip(slices)
        .map(|((band, tile), slices)| {
            let rows = range(tile, high, rows);
            Piece {
                planes: range(band, thick, planes),
                outputs: slices.map(|slices| Planes {
                    len: rows.len() * nx,
                    slices: slices.into_iter(),
                    first: &mut [],
                }),
                rows,
            }
        })
        .collect()
}

/// The work of one thread on one piece.
struct Work<'s, 'out, T, U, const INPUTS: usize, const OUTPUTS: usize> {
    passes: &'s Passes<T, INPUTS>,
    cut: &'s Cut,
    update: U,
    given: &'s [Given<'s, T>],
    inputs: [&'s [T]; INPUTS],
    piece: Piece<'out, T, OUTPUTS>,
    scratch: &'s mut [T],
    /// For non-temporal stores.
    stream: Option<&'s Streaming<'out>>,
}

impl<T, U, const INPUTS: usize, const OUTPUTS: usize> WithSimd
    for Work<'_, '_, T, U, INPUTS, OUTPUTS>
where
    T: Number,
    U: PointUpdate<T, INPUTS, OUTPUTS>,
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self {
            passes,
            cut,
            update,
            given,
            inputs,
            mut piece,
            scratch,
            stream,
        } = self;
        let Geometry {
            extents: [nx, rows, planes],
            axes,
            radii,
        } = cut.geometry;
        let (kept, scratch) = scratch.split_at_mut(cut.geometry.levels(cut.depth) * cut.level);
        let (windows, frames) = scratch[..cut.windows + cut.frames].split_at_mut(cut.windows);
        let around = axes.map(|axis| passes.ends[0][axis] == End::Around);
        // The rows or planes of a piece and those next to it, within the ends of the axis.
        let wider = |axis: usize, range: &Range<usize>, level: usize| {
            let margin = (radii[axis] * (cut.depth - level)) as i32;
            let (begin, end) = (range.start as i32 - margin, range.end as i32 + margin);
            let all = [rows, planes][axis] as i32;
            if around[axis] {
                begin..end
            } else {
                begin.max(0)..end.min(all)
            }
        };
        let first_row = piece.rows.start as i32 - (radii[0] * (cut.depth - 1)) as i32;
        let first = wider(1, &piece.planes, 1);
        // Level t is `radius` planes behind level t - 1.
        for newest in first.start..piece.planes.end as i32 + (radii[1] * (cut.depth - 1)) as i32 {
            for level in 1..=cut.depth {
                let plane = newest - (radii[1] * (level - 1)) as i32;
                if !wider(1, &piece.planes, level).contains(&plane) {
                    continue;
                }
                let rows = wider(0, &piece.rows, level);
                let levels = cut.geometry.levels(cut.depth).max(1);
                let (from, to) = ((level + levels - 2) % levels, (level - 1) % levels);
                let (before, out) = if level == cut.depth {
                    (&kept[from * cut.level..], &mut [][..])
                } else if level == 1 {
                    (&[][..], &mut kept[..cut.level])
                } else {
                    two(kept, cut.level, from, to)
                };
                let level_before = Level {
                    passes,
                    geometry: &cut.geometry,
                    inputs,
                    kept: (level > 1).then_some(Kept {
                        values: before,
                        states: OUTPUTS,
                        plane: cut.plane,
                        first: first_row,
                        around,
                    }),
                };
                let at = Plane {
                    simd,
                    update,
                    level: level_before,
                    rows: rows.clone(),
                    plane,
                };
                if level == cut.depth {
                    let out = piece.outputs.each_mut().map(Planes::next);
                    at.compute(out, windows, frames, stream);
                    continue;
                }
                let slot = plane.rem_euclid(cut.geometry.kept() as i32) as usize;
                let mut fields = out.chunks_exact_mut(cut.level / OUTPUTS);
                let mut out: [&mut [T]; OUTPUTS] = std::array::from_fn(|_| {
                    let field = fields.next().unwrap_or_default();
                    let plane = &mut field[slot * cut.plane..][..cut.plane];
                    &mut plane[(rows.start - first_row) as usize * nx..][..rows.len() * nx]
                });
                at.compute(out.each_mut().map(|out| &mut **out), windows, &mut [], None);
                for given in given {
                    let out = &mut *out[given.output];
                    given.put(&cut.geometry, level, (rows.clone(), plane), out);
                }
            }
        }
    }
}

/// The parts `from` and `to` of `values`, where each part has `len` elements; `from` and `to`
/// differ.
#[inline(always)]
fn two<T>(values: &mut [T], len: usize, from: usize, to: usize) -> (&[T], &mut [T]) {
    let (low, high) = values.split_at_mut(from.max(to) * len);
    if from < to {
        (&low[from * len..][..len], &mut high[..len])
    } else {
        (&high[..len], &mut low[to * len..][..len])
    }
}

/// The values from which a level is computed.
struct Level<'a, T, const INPUTS: usize> {
    passes: &'a Passes<T, INPUTS>,
    geometry: &'a Geometry,
    inputs: [&'a [T]; INPUTS],
    /// The outputs at the level before; `None` at the first level, where they are inputs.
    kept: Option<Kept<'a, T>>,
}

/// The kept planes of a level.
struct Kept<'a, T> {
    /// The planes of each output.
    values: &'a [T],
    states: usize,
    /// Elements of a plane.
    plane: usize,
    /// The first row of each plane.
    first: i32,
    /// Whether rows, and planes, beyond the ends are kept too.
    around: [bool; 2],
}

/// The index on a periodic axis of `n` points that `at` stands for.
#[inline(always)]
fn wrapped(at: i32, n: usize) -> i32 {
    let n = n as i32;
    if (at as u32) < n as u32 {
        at
    } else {
        at.rem_euclid(n)
    }
}

impl<'a, T: Number, const INPUTS: usize> Level<'a, T, INPUTS> {
    /// Row `j + dj` of plane `s + ds` of a field, with the elements after it. The row and the plane
    /// may be beyond the ends.
    #[inline(always)]
    fn row(&self, field: usize, [j, s]: [i32; 2], [dj, ds]: [i32; 2]) -> &'a [T] {
        let Geometry {
            extents: [nx, rows, planes],
            axes: [row_axis, plane_axis],
            ..
        } = *self.geometry;
        let layout = &self.passes.layout;
        let beyond = |end: usize| &self.passes.beyond[4 * field + end - 2][..nx];
        if let Some(kept) = &self.kept
            && field < kept.states
        {
            let [j, s] = [j + dj, s + ds];
            let s = match layout.place(field, plane_axis, s) {
                _ if kept.around[1] => s,
                Place::Point(s) => s as i32,
                Place::End(end) => return beyond(end),
            };
            let j = match layout.place(field, row_axis, j) {
                _ if kept.around[0] => j,
                Place::Point(j) => j as i32,
                Place::End(end) => return beyond(end),
            };
            let planes = self.geometry.kept();
            let plane = field * planes + s.rem_euclid(planes as i32) as usize;
            return &kept.values[plane * kept.plane + (j - kept.first) as usize * nx..];
        }
        let [j, s] = [wrapped(j, rows) + dj, wrapped(s, planes) + ds];
        let s = match layout.place(field, plane_axis, s) {
            Place::Point(s) => s as usize,
            Place::End(end) => return beyond(end),
        };
        match layout.place(field, row_axis, j) {
            Place::Point(j) => &self.inputs[field][(s * rows + j as usize) * nx..],
            Place::End(end) => beyond(end),
        }
    }

    /// Copies rows of plane `s` of a field to a frame. The first is row `j + dj`. Rows may be beyond
    /// the ends.
    #[inline(always)]
    fn copy_rows(&self, field: usize, [j, s]: [i32; 2], mut dj: i32, mut frame: &mut [T]) {
        let [nx, rows, _] = self.geometry.extents;
        while !frame.is_empty() {
            // Rows up to the end of the axis are consecutive.
            let count = match usize::try_from(j + dj) {
                Ok(row) if row < rows => (rows - row).min(frame.len() / nx),
                _ => 1,
            };
            let (copy, later) = frame.split_at_mut(count * nx);
            copy.copy_from_slice(&self.row(field, [j, s], [dj, 0])[..copy.len()]);
            frame = later;
            dj += count as i32;
        }
    }

    /// Whether plane `s` and those from which it is computed have rows of their own, not one that
    /// stands for all of them.
    #[inline(always)]
    fn has_own_rows(&self, s: i32) -> bool {
        let ([.., planes], [_, radius]) = (self.geometry.extents, self.geometry.radii);
        let plane = wrapped(s, planes) as usize;
        plane >= radius && plane + radius < planes || self.passes.beyond.iter().all(Vec::is_empty)
    }

    /// The number of rows from `j` to `end` that are consecutive, together with all rows from which
    /// they are computed; `None` if not even those of row `j` are.
    #[inline(always)]
    fn together(&self, j: i32, s: i32, end: i32) -> Option<usize> {
        let Geometry {
            extents: [_, rows, _],
            radii: [radius, _],
            ..
        } = *self.geometry;
        let row = wrapped(j, rows) as usize;
        if row < radius || row + radius >= rows || !self.has_own_rows(s) {
            return None;
        }
        let inner = rows - radius - row;
        Some(inner.min((end - j) as usize))
    }
}

/// Rows of a plane, to be computed.
struct Plane<'a, S, T, U, const INPUTS: usize> {
    simd: S,
    update: U,
    level: Level<'a, T, INPUTS>,
    rows: Range<i32>,
    plane: i32,
}

impl<S: Simd, T: Number, U, const INPUTS: usize> Plane<'_, S, T, U, INPUTS> {
    /// Computes the rows in runs of consecutive rows, by non-temporal stores if there is a `stream`.
    #[inline(always)]
    fn compute<'out, const OUTPUTS: usize>(
        &self,
        mut out: [&'out mut [T]; OUTPUTS],
        windows: &mut [T],
        mut frames: &mut [T],
        stream: Option<&Streaming<'out>>,
    ) where
        U: PointUpdate<T, INPUTS, OUTPUTS>,
    {
        let Self {
            level, rows, plane, ..
        } = self;
        let nx = level.geometry.extents[0];
        // For two axes, an offset along y is either an offset of rows or of planes.
        let by_rows = level.passes.dimensions == 2 && level.geometry.radii[1] == 0;
        // The radius of each framed field along y, and its frame.
        let mut framed_fields: [Option<(i32, &[T])>; INPUTS] = [None; INPUTS];
        let is_framed = !frames.is_empty() && level.has_own_rows(*plane);
        if is_framed {
            for (field, radius) in framed(&U::REACH) {
                let (frame, others) =
                    take(&mut frames).split_at_mut((rows.len() + 2 * radius) * nx);
                let radius = radius as i32;
                level.copy_rows(field, [rows.start, *plane], -radius, frame);
                framed_fields[field] = Some((radius, frame));
                frames = others;
            }
        }
        let is_far = level.passes.bytes(INPUTS + OUTPUTS) > level.passes.limits.cached_bytes;
        let mut found = Rows::new();
        // The number of rows of the run before, if all that it reads is consecutive.
        let mut before = None;
        let mut j = rows.start;
        while j < rows.end {
            let end = rows
                .end
                .min(j + most_rows::<T, U, INPUTS, OUTPUTS>(nx) as i32);
            let together = match is_framed {
                true => Some((end - j) as usize),
                false => level.together(j, *plane, end),
            };
            if let (Some(count), Some(_)) = (before, together) {
                found.advance(&U::REACH, U::DIMENSIONS, count * nx);
            } else {
                found.find(
                    &U::REACH,
                    U::DIMENSIONS,
                    #[inline(always)]
                    |field, [dj, ds]| {
                        if overwritten::<T, U, INPUTS, OUTPUTS>(field).is_some() {
                            return &[];
                        }
                        let offset = if by_rows { [ds, 0] } else { [dj, ds] };
                        match (framed_fields[field], offset) {
                            (Some((radius, frame)), [dj, 0]) => {
                                &frame[(j - rows.start + radius + dj) as usize * nx..]
                            }
                            _ => level.row(field, [j, *plane], offset),
                        }
                    },
                );
            }
            before = together;
            let count = together.unwrap_or(1);
            let now = out.each_mut().map(|out| {
                let (now, later) = take(out).split_at_mut(count * nx);
                *out = later;
                now
            });
            let run = Run {
                simd: self.simd,
                update: self.update,
                layout: &level.passes.layout,
                rows: &found,
                is_far,
            };
            run.compute(now, windows, stream);
            j += count as i32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Aligned;
    use crate::march::beyond;
    use crate::test_cases;
    use crate::test_numbers::numbers;
    use halo_stencil::{Neighbourhood, Real, Value};

    /// Two fields that change and one that does not. The update reads every value it declares.
    #[derive(Debug, Clone, Copy)]
    struct Mixing<const D: usize, const BOX: bool>;

    impl<T: Real, const D: usize, const BOX: bool> PointUpdate<T, 3, 2> for Mixing<D, BOX> {
        const DIMENSIONS: usize = D;
        const REACH: [Reach; 3] = [
            if BOX {
                Reach::cube(1)
            } else {
                Reach::axes([1; 3])
            },
            Reach::axes([2, 1, 2]),
            Reach::axes([0, 1, 0]),
        ];

        #[inline(always)]
        fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 2] {
            let heights: &[isize] = if D == 3 { &[-1, 0, 1] } else { &[0] };
            let mut first = n.splat(T::from(0.5));
            for &dk in heights {
                for dj in -1..=1 {
                    for di in -1..=1 {
                        if !BOX && [di, dj, dk].iter().filter(|d| **d != 0).count() > 1 {
                            continue;
                        }
                        let weight = T::from(1.0 / (40 + 3 * dk + 7 * dj + 11 * di) as f32);
                        first = n.value(0, [di, dj, dk]).fused(n.splat(weight), first);
                    }
                }
            }
            let mut second = n.pair::<2, 1>(1) * T::from(0.25);
            for (axis, radius) in [2, 1, 2].into_iter().enumerate().take(D) {
                for distance in 1..=radius {
                    let mut offset = [0; 3];
                    for sign in [-1, 1] {
                        offset[axis] = sign * distance;
                        let weight = T::from(1.0 / (20 + 3 * axis as isize + offset[axis]) as f32);
                        second = n.value(1, offset).fused(n.splat(weight), second);
                    }
                }
            }
            let second = second + n.at::<0, 0, 0, 0>() * T::from(0.125);
            [first - n.at::<1, 0, 0, 0>() * T::from(0.25), second]
        }
    }

    const NEAR_ENDS: [Boundary; 4] = [
        Boundary::Dirichlet(0.75),
        Boundary::Neumann,
        Boundary::NeumannHalfway,
        Boundary::OneSided,
    ];

    /// The fields after `steps` steps, and the steps of the longest pass.
    fn after<T: Number, const D: usize, const BOX: bool>(
        layout: Layout<T, 3>,
        ends: &[[[Boundary; 2]; D]; 3],
        limits: Limits,
        fields: &[Vec<T>; 3],
        held: &[(usize, Vec<u64>)],
        steps: usize,
    ) -> ([Vec<T>; 2], usize) {
        let passes = Passes::new(layout, ends, limits).unwrap();
        let [u, v, coefficient] = fields;
        let mut now = [u.clone(), v.clone()];
        let (mut left, mut deepest) = (steps, 0);
        while left > 0 {
            let depth = passes.depth::<Mixing<D, BOX>, 2>(left);
            let mut next = now.each_ref().map(|now| Aligned::copy_of(now).unwrap());
            let outputs = next.each_mut().map(|next| &mut next[..]);
            // Values that differ from point to point and from step to step.
            let values = |(output, at): &(usize, Vec<u64>)| -> Vec<Vec<T>> {
                let of = |step: usize, at: u64| ((at * 7 + step as u64 * 3) % 11) as f32 * 0.125;
                let value = |step: usize, at: u64| T::from(of(step + output, at));
                let steps = (1..=depth).map(|step| steps - left + step);
                steps
                    .map(|step| at.iter().map(|&at| value(step, at)).collect())
                    .collect()
            };
            let values: Vec<Vec<Vec<T>>> = held.iter().map(values).collect();
            let given = held
                .iter()
                .zip(&values)
                .map(|((output, at), values)| Given {
                    output: *output,
                    at,
                    values: values.iter().map(|values| &values[..]).collect(),
                });
            pass(
                &passes,
                Mixing::<D, BOX>,
                depth,
                &given.collect::<Vec<_>>(),
                [&now[0], &now[1], coefficient],
                outputs,
            )
            .unwrap();
            for ((output, at), values) in held.iter().zip(&values) {
                for (&at, &value) in at.iter().zip(&values[depth - 1]) {
                    next[*output][at as usize] = value;
                }
            }
            now = next.map(Aligned::into_vec);
            left -= depth;
            deepest = deepest.max(depth);
        }
        (now, deepest)
    }

    /// Passes cut up as `limits` say have the bits of single steps. Returns whether one was of
    /// several.
    fn check<T: Number, const D: usize, const BOX: bool>(
        next: &mut impl FnMut() -> usize,
        extents: [usize; 3],
        steps: usize,
        limits: Limits,
    ) -> bool {
        let mut layout = Layout::new(extents.map(|n| n as u32), 1);
        let mut ends = [[[Boundary::Periodic; 2]; D]; 3];
        for axis in 0..D {
            // Mostly such that passes may be of several steps.
            let around = next().is_multiple_of(3);
            for (field, ends) in ends.iter_mut().enumerate() {
                ends[axis] = match next() % 20 {
                    0 => [Boundary::PeriodicWithEndpoint; 2],
                    n if around != (field == 2 && n % 2 == 0) => [Boundary::Periodic; 2],
                    _ => [NEAR_ENDS[next() % 4], NEAR_ENDS[next() % 4]],
                };
                let told = ends[axis].map(|end| (beyond(end), T::nearest(end.dirichlet_value())));
                layout = layout.with_ends(field, axis, told);
            }
        }
        let points = extents.iter().product();
        let field = |next: &mut dyn FnMut() -> usize| -> Vec<T> {
            (0..points)
                .map(|_| T::from(next() as f32 / (1 << 24) as f32 - 0.5))
                .collect()
        };
        let fields = std::array::from_fn(|_| field(next));
        // Some points, of one output or of both, or none.
        let held: Vec<(usize, Vec<u64>)> = (0..next() % 3)
            .map(|output| {
                let every = 1 + next() % 40;
                let at = (0..points as u64).filter(|_| next().is_multiple_of(every));
                (output, at.collect())
            })
            .collect();
        let single = Limits {
            depth: [1, 1],
            frames_bytes: 0,
            ..Limits::default()
        };
        let (expected, _) = after::<T, D, BOX>(layout, &ends, single, &fields, &held, steps);
        let (got, depth) = after::<T, D, BOX>(layout, &ends, limits, &fields, &held, steps);
        for (output, (got, expected)) in got.iter().zip(&expected).enumerate() {
            let wrong = (0..points)
                .find(|&at| bytemuck::bytes_of(&got[at]) != bytemuck::bytes_of(&expected[at]));
            assert_eq!(
                wrong, None,
                "output {output} of {extents:?}, {ends:?}, {steps} steps, {limits:?}"
            );
        }
        depth > 1
    }

    #[test]
    fn passes_have_the_bits_of_single_steps_however_they_are_cut_up() {
        let mut next = numbers();
        let mut several = [0, 0];
        let cases = test_cases::either(72, 600);
        for case in 0..cases {
            let mut below = |most: usize| next() % most;
            let [nx, ny, nz] = match case % 2 {
                0 => [1 + below(70), 1 + below(60), 1],
                _ => [1 + below(40), 1 + below(24), 1 + below(24)],
            };
            // Some rows consist of whole vectors.
            let extents = [nx.next_multiple_of([1, 1, 16][below(3)]), ny, nz];
            let limits = Limits {
                depth: [1 + below(9), 1 + below(5)],
                near_bytes: [0; 2],
                stay_bytes: 0,
                scratch_bytes: [2 << 10, 20 << 10, 200 << 10][below(3)],
                tile_bytes: below(20 << 10),
                narrow_tile_bytes: below(10 << 10),
                frames_bytes: below(40 << 10),
                cached_bytes: [0, usize::MAX][below(2)],
                // All threads, or a single one: then passes over small fields take several steps
                // too.
                values_per_thread: [1 << 12, 1 << 25, 1 << 25][below(3)],
                stores: [stores, |_, _| Stores::Streaming][below(2)],
            };
            let steps = [1, 2, 3, 5, 7, 11, 17][below(7)];
            let is_several = match case % 8 {
                0 => check::<f32, 2, true>(&mut next, extents, steps, limits),
                1 => check::<f32, 3, true>(&mut next, extents, steps, limits),
                2 => check::<f64, 2, true>(&mut next, extents, steps, limits),
                3 => check::<f64, 3, true>(&mut next, extents, steps, limits),
                4 => check::<f32, 2, false>(&mut next, extents, steps, limits),
                5 => check::<f32, 3, false>(&mut next, extents, steps, limits),
                6 => check::<f64, 2, false>(&mut next, extents, steps, limits),
                _ => check::<f64, 3, false>(&mut next, extents, steps, limits),
            };
            several[case % 2] += usize::from(is_several);
        }
        assert!(several.iter().all(|&it| it > cases / 12), "{several:?}");
    }

    #[test]
    fn every_thread_has_a_piece_of_a_pass() {
        for extents in [
            [256, 64, 1],
            [256, 256, 1],
            [64, 64, 64],
            [96, 40, 200],
            [128; 3],
        ] {
            let cut = match extents[2] {
                1 => deepest_cut::<2>(extents, far()),
                _ => deepest_cut::<3>(extents, far()),
            };
            assert!(
                cut.depth == 1 || cut.pieces() >= cut.threads,
                "{extents:?}: {} pieces for {} threads",
                cut.pieces(),
                cut.threads
            );
        }
    }

    #[test]
    fn fields_near_the_core_take_one_step_per_pass() {
        // Three old fields and two new ones of f32.
        let near_bytes = [5 * 4 * 256 * 200, 5 * 4 * 32 * 32 * 50];
        let limits = Limits {
            near_bytes,
            values_per_thread: usize::MAX,
            ..Limits::default()
        };
        assert_eq!(deepest_cut::<2>([256, 200, 1], limits).depth, 1);
        assert!(deepest_cut::<2>([256, 201, 1], limits).depth > 1);
        assert_eq!(deepest_cut::<3>([32, 32, 50], limits).depth, 1);
        assert!(deepest_cut::<3>([32, 32, 51], limits).depth > 1);
    }

    #[test]
    fn narrow_tiles_are_tried_where_usual_ones_are_wider() {
        fn rows<const D: usize>(extents: [u32; 3], limits: Limits) -> Option<[usize; 2]> {
            let layout = Layout::<f32, 3>::new(extents, 1);
            let ends = [[[Boundary::Neumann; 2]; D]; 3];
            let passes = Passes::new(layout, &ends, limits).unwrap();
            let usual = passes.cut::<Mixing<D, true>, 2>(1);
            let narrow = passes.narrow::<Mixing<D, true>, 2>(&usual)?;
            Some([usual.piece[0], narrow.piece[0]])
        }
        // For each row, 3 planes of the first field, 5 of the second and 1 of the third.
        let across = 9 * 64 * 4;
        let limits = Limits {
            tile_bytes: 50 * across,
            narrow_tile_bytes: 18 * across,
            values_per_thread: usize::MAX,
            ..Limits::default()
        };
        // Two of the rows are those next to the tile.
        assert_eq!(rows::<3>([64, 96, 5], limits), Some([48, 16]));
        assert_eq!(rows::<3>([64, 35, 5], limits), Some([35, 12]));
        assert_eq!(rows::<3>([64, 16, 5], limits), None);
        assert_eq!(rows::<2>([64, 96, 1], limits), None);
    }

    /// The usual limits, as if all fields were far from the core.
    fn far() -> Limits {
        Limits {
            near_bytes: [0; 2],
            ..Limits::default()
        }
    }

    /// The division of passes of as many steps as possible.
    fn deepest_cut<const D: usize>(extents: [usize; 3], limits: Limits) -> Cut {
        let layout = Layout::<f32, 3>::new(extents.map(|extent| extent as u32), 1);
        let ends = [[[Boundary::Neumann; 2]; D]; 3];
        let passes = Passes::new(layout, &ends, limits).unwrap();
        passes.cut::<Mixing<D, true>, 2>(passes.depth::<Mixing<D, true>, 2>(usize::MAX))
    }

    /// A sum of all points up to `RADIUS` away, and the past. `OVER`: it is written over the past.
    #[derive(Debug, Clone, Copy)]
    struct Wide<const RADIUS: usize, const OVER: bool>;

    impl<T: Real, const RADIUS: usize, const OVER: bool> PointUpdate<T, 2, 1> for Wide<RADIUS, OVER> {
        const DIMENSIONS: usize = 2;
        const REACH: [Reach; 2] = [Reach::star(RADIUS), Reach::POINT];
        const PAST: usize = 1;
        const OVER_PAST: bool = OVER;

        #[inline(always)]
        fn update<N: Neighbourhood<T>>(&self, n: &N) -> [N::Value; 1] {
            let mut sum = n.at::<0, 0, 0, 0>() - n.at::<1, 0, 0, 0>() * T::from(0.75);
            for distance in 1..=RADIUS as isize {
                let weight = T::from(1.0 / (distance + 2) as f32);
                sum = n.pair::<0, 0>(distance).fused(n.splat(weight), sum);
                sum = n.pair::<0, 1>(distance).fused(n.splat(-weight), sum);
            }
            [sum]
        }
    }

    /// A step in vectors of `simd`, by ordinary stores and, where the past is kept, by non-temporal
    /// ones.
    fn wide<T: Number, S: Simd, const RADIUS: usize, const OVER: bool>(
        simd: S,
        passes: &Passes<T, 2>,
        fields: &[Vec<T>; 2],
    ) -> Vec<T> {
        let mut out = Aligned::copy_of(&fields[1]).unwrap();
        wide_into::<T, S, RADIUS, OVER>(simd, passes, fields, &mut out, None);
        if !OVER {
            let mut streamed_out = vec![T::from(f32::NAN); out.len()];
            streamed(|stream| {
                let stream = Some(stream);
                wide_into::<T, S, RADIUS, OVER>(simd, passes, fields, &mut streamed_out, stream);
            });
            let bytes = |values| bytemuck::cast_slice::<T, u8>(values);
            assert!(bytes(&streamed_out[..]) == bytes(&out));
        }
        out.into_vec()
    }

    fn wide_into<'out, T: Number, S: Simd, const RADIUS: usize, const OVER: bool>(
        simd: S,
        passes: &Passes<T, 2>,
        [now, past]: &[Vec<T>; 2],
        out: &'out mut [T],
        stream: Option<&Streaming<'out>>,
    ) {
        let mut cut = passes.cut::<Wide<RADIUS, OVER>, 1>(1);
        cut.threads = 1;
        let mut scratch = passes.lend(&cut).unwrap().pop().unwrap_or_default();
        for piece in pieces(&cut, [out]) {
            simd.vectorize(Work {
                passes,
                cut: &cut,
                update: Wide::<RADIUS, OVER>,
                given: &[],
                inputs: [now, if OVER { &[] } else { past }],
                piece,
                scratch: &mut scratch,
                stream,
            });
        }
    }

    fn wide_in_all_vectors<T: Number, const RADIUS: usize>(
        next: &mut impl FnMut() -> usize,
        extents: [usize; 3],
    ) {
        let ends = [[[Boundary::Dirichlet(0.75), Boundary::Neumann]; 2]; 2];
        let mut layout = Layout::new(extents.map(|n| n as u32), 1);
        for (field, axis) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let told =
                ends[field][axis].map(|end| (beyond(end), T::nearest(end.dirichlet_value())));
            layout = layout.with_ends(field, axis, told);
        }
        let passes = Passes::new(layout, &ends, Limits::default()).unwrap();
        let points = extents.iter().product();
        let fields: [Vec<T>; 2] = std::array::from_fn(|_| {
            let number = |_| T::from(next() as f32 / (1 << 24) as f32 - 0.5);
            (0..points).map(number).collect()
        });
        let expected = wide::<T, _, RADIUS, false>(pulp::Scalar, &passes, &fields);
        let same = |got: Vec<T>, what: &str| {
            let wrong = (0..points)
                .find(|&at| bytemuck::bytes_of(&got[at]) != bytemuck::bytes_of(&expected[at]));
            assert_eq!(wrong, None, "{what} of {extents:?}");
        };
        same(
            wide::<T, _, RADIUS, true>(pulp::Scalar, &passes, &fields),
            "scalars over the past",
        );
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V3::try_new() {
            same(
                wide::<T, _, RADIUS, false>(simd, &passes, &fields),
                "32 bytes",
            );
            same(
                wide::<T, _, RADIUS, true>(simd, &passes, &fields),
                "32 bytes over the past",
            );
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(simd) = pulp::x86::V4::try_new() {
            same(
                wide::<T, _, RADIUS, false>(simd, &passes, &fields),
                "64 bytes",
            );
            same(
                wide::<T, _, RADIUS, true>(simd, &passes, &fields),
                "64 bytes over the past",
            );
        }
        #[cfg(target_arch = "aarch64")]
        if let Some(simd) = pulp::aarch64::Neon::try_new() {
            same(
                wide::<T, _, RADIUS, false>(simd, &passes, &fields),
                "16 bytes",
            );
            same(
                wide::<T, _, RADIUS, true>(simd, &passes, &fields),
                "16 bytes over the past",
            );
        }
    }

    #[test]
    fn vectors_of_all_lengths_have_the_same_bits() {
        let mut next = numbers();
        for nx in [1, 3, 4, 7, 8, 12, 16, 17, 20, 32, 33, 45, 64, 100, 150, 181] {
            for ny in [1, 2, 19, 40] {
                // With windows, and without them where nothing is overwritten.
                wide_in_all_vectors::<f32, 8>(&mut next, [nx, ny, 1]);
                wide_in_all_vectors::<f64, 8>(&mut next, [nx, ny, 1]);
                wide_in_all_vectors::<f32, 2>(&mut next, [nx, ny, 1]);
                wide_in_all_vectors::<f64, 1>(&mut next, [nx, ny, 1]);
            }
        }
    }

    #[test]
    fn large_fields_are_cut_up() {
        let mut next = numbers();
        // Rows of all kinds of places in a line of the cache.
        let ((plane, long), (space, short)) = test_cases::either(
            (([1027, 350, 1], 2), ([67, 50, 90], 2)),
            (([2051, 700, 1], 9), ([131, 100, 90], 5)),
        );
        let limits = far();
        check::<f32, 2, true>(&mut next, plane, long, limits);
        check::<f64, 3, true>(&mut next, space, short, limits);
        for (by_rows, depth) in [(false, 1), (true, 8)] {
            let geometry = Geometry::new([4096, 4096, 1], &[Reach::star(1)], 2, by_rows);
            let cut = Cut::new(geometry, depth, 64, 1, 5, &limits);
            assert!(
                cut.piece[0] * cut.piece[1] < 4096 || cut.threads == 1,
                "{cut:?}"
            );
        }
    }
}
