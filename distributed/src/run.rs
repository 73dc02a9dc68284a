//! [`run`]: starts ranks that are threads of one process.

use crate::{Communicator, Error};
use std::any::Any;

/// Runs `work` on `ranks` threads, each with a communicator, and returns their results in the order
/// of the ranks.
///
/// ```
/// # fn main() -> Result<(), halo_distributed::Error> {
/// let sums = halo_distributed::run(4, |communicator| {
///     communicator.all_reduce(communicator.rank() as u64, |a, b| a + b)
/// })?;
/// assert_eq!(sums, [6; 4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::InvalidParameter`] if `ranks` is 0. If ranks fail, the error of the first rank that did
/// not fail because of another one; [`Error::Panicked`] for a rank that panics.
pub fn run<R, W>(ranks: usize, work: W) -> Result<Vec<R>, Error>
where
    R: Send,
    W: Fn(Communicator) -> Result<R, Error> + Sync,
{
    let communicators = Communicator::threads(ranks)?;
    let results = std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = communicators
            .into_iter()
            .map(|communicator| scope.spawn(move || work(communicator)))
            .collect();
        let results = threads.into_iter().enumerate().map(|(rank, thread)| {
            thread.join().unwrap_or_else(|panic| {
                Err(Error::Panicked {
                    rank,
                    message: said(panic.as_ref()),
                })
            })
        });
        results.collect::<Vec<_>>()
    });
    let mut done = Vec::with_capacity(ranks);
    let mut consequence = None;
    for result in results {
        match result {
            Ok(value) => done.push(value),
            Err(error @ (Error::Gone { .. } | Error::Elsewhere { .. })) => {
                consequence = consequence.or(Some(error));
            }
            Err(cause) => return Err(cause),
        }
    }
    consequence.map_or(Ok(done), Err)
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    words
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}
