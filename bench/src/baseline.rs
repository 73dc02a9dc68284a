//! Baselines: what a row is compared with.

use super::check::Check;
use super::error::Error;
use super::row::Prepared;
#[cfg(doc)]
use super::timing::Timed;

/// Names in records.
pub(super) const NVCC: &str = "nvcc";
pub(super) const CUB: &str = "CUB";
pub(super) const CPP: &str = "C++";
pub(super) const CPP_IN_F64: &str = "C++ in f64";

/// Does the work of a row by other means, on the row's data on the device.
pub(super) trait Baseline {
    /// Its name in the record.
    fn name(&self) -> &str;
    /// As [`Prepared::check`].
    fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error>;
    /// As [`Prepared::launch`].
    fn launch(&mut self, row: &mut dyn Prepared) -> Result<(), halo_gpu::Error>;
    /// The way that its check has chosen, if there are several.
    fn how(&self) -> Option<String> {
        None
    }
    /// As [`Timed::begin`].
    fn begin(&mut self) {}
    /// As [`Timed::end`].
    fn end(&mut self) {}
}
