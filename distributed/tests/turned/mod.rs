//! A field that recorded exchanges turn.

use halo_distributed::{Communicator, Decomposition, Error, Ghosted};
use halo_gpu::Device;

/// How often the work is recorded, and replayed.
const COUNT: usize = 3;
const RUNS: usize = 2;

/// Numbers in a ring, four for each rank, of at least two, that recorded work moves two places up
/// by way of the ghost points: none is right unless each exchange has been made. The rank's own.
pub fn turned(communicator: &Communicator, device: &Device) -> Result<Vec<u32>, Error> {
    let ranks = communicator.size();
    let ring = Decomposition::slabs([4 * ranks], ranks)?.periodic(0)?;
    let mut field = Ghosted::new(communicator, device, ring, 2, |[i]| i as u32)?;
    let mut moved = device.zeros(4)?;
    let mut replay = communicator.record(device, COUNT, || {
        field.exchange(communicator)?;
        moved.view_mut(..)?.copy_from(field.buffer().view(..4)?)?;
        let own = field.buffer_mut();
        Ok(own.view_mut(2..6)?.copy_from((&moved).into())?)
    })?;
    for _ in 0..RUNS {
        replay.run()?;
    }
    drop(replay);
    field.own_values(communicator)
}

/// What it has to be on all ranks together: once to see that it can be recorded, then the replays.
pub fn after(ranks: usize) -> Vec<u32> {
    let (n, moves) = (4 * ranks, 1 + COUNT * RUNS);
    (0..n)
        .map(|i| ((i + 2 * moves * (n - 1)) % n) as u32)
        .collect()
}
