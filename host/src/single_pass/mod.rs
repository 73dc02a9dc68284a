//! Reduces buffers with one launch each: [`SinglePass`].
//!
//! These reductions belong to the family [`reduction`](crate::reduction), but are here for all
//! families that reduce their results.

mod cpu;
mod gpu;
mod kinds;
mod reduce;

use crate::{Buffer, Device, Element, Error};
pub use gpu::SinglePassKernels;
use gpu::Workspace;
use gpu_kernels::reduction::partition::ALONE;
pub use gpu_kernels::reduction::partition::Partition;
pub use kinds::{Extremum, Moment, Operation};
pub(crate) use reduce::Reduce;

/// Reduces buffers on one device, each with a single launch of a kernel or, on the CPU, with a
/// port; holds the workspace of the kernels.
///
/// Each method takes a buffer of one element for its result. On a CUDA device it enqueues one
/// launch and does not wait.
#[derive(Debug)]
pub(crate) struct SinglePass<T: SinglePassKernels> {
    device: Device,
    /// The most blocks of a launch.
    blocks: u32,
    /// The tiles of a chunk, if they differ from [`Partition::of`].
    tiles: Option<u32>,
    workspace: Workspace,
    element: std::marker::PhantomData<fn(T)>,
}

impl<T: SinglePassKernels> SinglePass<T> {
    /// Reductions of buffers on this device.
    pub(crate) fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            blocks: device.limits().grid.x,
            tiles: None,
            workspace: Workspace::default(),
            element: std::marker::PhantomData,
        }
    }

    /// Sets the most blocks of a launch; a device with smaller grids refuses the launch.
    pub(crate) fn with_blocks(mut self, blocks: u32) -> Self {
        self.blocks = blocks;
        self
    }

    /// Sets chunks of `tiles` tiles: another tree, with other bits.
    pub(crate) fn with_tiles(mut self, tiles: Option<u32>) -> Self {
        self.tiles = tiles;
        self
    }

    /// Allocates the workspace for arrays of up to `n` elements.
    pub(crate) fn reserve(&mut self, n: usize) -> Result<(), Error> {
        let partition = match self.tiles {
            None => most_chunks(n, size_of::<T>()),
            Some(tiles) => Partition::with_tiles(n, size_of::<T>(), tiles),
        };
        self.workspace.reserve::<T>(&self.device, partition)
    }

    /// The device.
    pub(crate) const fn device(&self) -> &Device {
        &self.device
    }

    /// Computes a sum or an extremum.
    pub(crate) fn elements(
        &mut self,
        operation: Operation,
        values: &Buffer<T>,
        result: &mut Buffer<T>,
    ) -> Result<(), Error> {
        self.run(Reduce::Elements {
            operation,
            values,
            result,
        })
    }

    /// The results of the chunks of `tiles` tiles, on a device that runs kernels. Waits for them.
    pub(crate) fn chunks<V: Element>(
        &mut self,
        tiles: u32,
        values: [&Buffer<T>; 2],
        reduce: impl for<'r> FnOnce(&'r mut Buffer<V>, [&'r Buffer<T>; 2]) -> Reduce<'r, T>,
    ) -> Result<Vec<V>, Error> {
        let mut result = self.device.zeros(1)?;
        let Some(checked) = reduce(&mut result, values).check(&self.device)? else {
            return Ok(Vec::new());
        };
        match self.workspace.chunks(checked, tiles, self.blocks)? {
            Some(words) => Ok(bytemuck::pod_collect_to_vec(&words)),
            None => result.to_vec(),
        }
    }

    /// Computes the sum of the elements or of their squares, in f64; each element is first
    /// multiplied by `scale`, a power of two.
    pub(crate) fn moment(
        &mut self,
        moment: Moment,
        scale: f64,
        values: &Buffer<T>,
        result: &mut Buffer<f64>,
    ) -> Result<(), Error> {
        self.run(Reduce::Moment {
            moment,
            scale,
            values,
            result,
        })
    }

    /// Computes a dot product.
    pub(crate) fn dot(
        &mut self,
        x: &Buffer<T>,
        y: &Buffer<T>,
        result: &mut Buffer<T::Product>,
    ) -> Result<(), Error> {
        self.run(Reduce::Dot { x, y, result })
    }

    /// Finds the index of the first extreme element.
    pub(crate) fn arg_extremum(
        &mut self,
        extremum: Extremum,
        values: &Buffer<T>,
        result: &mut Buffer<u64>,
    ) -> Result<(), Error> {
        self.run(Reduce::ArgExtremum {
            extremum,
            values,
            result,
        })
    }

    fn run(&mut self, reduce: Reduce<'_, T>) -> Result<(), Error> {
        let checked = reduce.check(&self.device)?;
        match checked.and_then(|checked| checked.on_host()) {
            None => Ok(()),
            Some(checked) => self.workspace.launch(checked, self.tiles, self.blocks),
        }
    }
}

/// Calls `reduce` with a buffer of one element and returns the number that it leaves there. The
/// buffer is kept in `result` between calls. Waits for the number.
pub(crate) fn read<R: Element>(
    result: &mut Option<Buffer<R>>,
    device: &Device,
    reduce: impl FnOnce(&mut Buffer<R>) -> Result<(), Error>,
) -> Result<R, Error> {
    let result = match result {
        Some(result) => result,
        None => result.insert(device.alloc_filled(1, R::zeroed())?),
    };
    reduce(result)?;
    let mut value = [R::zeroed()];
    result.copy_to_slice(&mut value)?;
    Ok(value[0])
}

/// Of all arrays of at most `n` elements, the partition of the one with the most chunks.
///
/// Each time the number of tiles grows by a factor of 4, chunks become longer and fewer. So the
/// maximum is at `n` elements, or just before the last such step.
fn most_chunks(n: usize, size: usize) -> Partition {
    let whole = Partition::of(n, size);
    let tiles = n.div_ceil(whole.lanes());
    if tiles <= ALONE {
        return whole;
    }
    let before = (1_usize << (tiles.ilog2() / 2 * 2)) - 1;
    let before = Partition::of(before * whole.lanes(), size);
    if before.chunks() > whole.chunks() {
        before
    } else {
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shorter_array_has_more_chunks() {
        for size in [4, 8] {
            let lanes = Partition::of(1, size).lanes();
            let mut most = 0;
            for tiles in 0..70_000 {
                most = most.max(Partition::of(tiles * lanes, size).chunks());
                let told = most_chunks(tiles * lanes, size).chunks();
                assert_eq!(told, most.max(1), "{tiles} tiles of {lanes}");
            }
        }
    }
}
