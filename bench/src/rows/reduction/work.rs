//! The work of a reduction's row.

use gpu_kernels::registry::{self, Problem};

use crate::row::{self, Work};

/// The kernel's work, from the table of kernels.
pub(super) fn of_kernel(kernel: &str, n: usize) -> Work {
    let Some(entry) = registry::entry(kernel) else {
        unreachable!("every kernel of the family is in the table")
    };
    let cost = entry.cost(&Problem::line(n));
    Work {
        read_only: true,
        ..row::points(cost, n)
    }
}
