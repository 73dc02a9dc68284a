//! A sum over ranks that are threads.

use halo_distributed::{Error, run, sum};
use halo_gpu::{Device, reduction};

/// Adds numbers on two ranks, and compares the sum with that of one device.
pub fn check() -> Result<(), Error> {
    let numbers: Vec<f64> = (0..1000).map(|i| f64::from(i).sin()).collect();
    let device = Device::cpu();
    let one = reduction::sum(&device.upload(&numbers)?)?;
    let several = run(2, |communicator| {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let own = &numbers[1000 * rank / ranks..1000 * (rank + 1) / ranks];
        sum(&communicator, &Device::cpu().upload(own)?)
    })?;
    assert_eq!(several, [one; 2]);
    Ok(())
}
