//! A row's errors beside their bounds.

use halo_gpu::Errors;
use halo_report::record;

/// A row's errors and their bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check(pub(super) record::Check);

impl Check {
    /// These errors, against these bounds.
    pub(super) fn new(errors: Errors, bounds: Errors) -> Self {
        Self(record::Check {
            rms_error: errors.rms,
            rms_bound: bounds.rms,
            max_error: errors.max,
            max_bound: bounds.max,
        })
    }

    /// Whether both errors are within their bounds. NaN is not.
    #[cfg(test)]
    pub(super) fn passes(&self) -> bool {
        self.0.passes()
    }
}
