//! Checks the number of bodies, the buffers and the block of a call.

use crate::argument::Argument;
use crate::{Buffer, Element, Error};

/// The most bodies: 2³¹. Kernels count them with 32 bits.
pub const MAX_BODIES: usize = 1 << 31;

/// The family's name in errors.
pub(super) const OPERATION: &str = "nbody";

/// The name of accelerations in errors.
pub(super) const ACCELERATIONS: &str = "nbody: accelerations";

/// The name of potentials in errors.
pub(super) const POTENTIALS: &str = "nbody: potentials";

/// The name of the potential energy in errors.
pub(super) const ENERGY: &str = "nbody: potential energy";

/// The name of velocities in errors.
pub(super) const VELOCITIES: &str = "nbody: velocities";

/// Checks that there is at least one body, and at most [`MAX_BODIES`].
pub(super) fn count(n: usize) -> Result<(), Error> {
    if n == 0 {
        return Err(Error::EmptyInput {
            operation: OPERATION,
        });
    }
    if n > MAX_BODIES {
        return Err(Error::IndexOverflow {
            quantity: Argument::new(OPERATION, "the number of bodies"),
            given: n.to_string(),
            limit: MAX_BODIES as u64,
        });
    }
    Ok(())
}

/// Checks that there are as many accelerations as bodies, and at most [`MAX_BODIES`].
pub(super) fn lengths(bodies: usize, what: &'static str, given: usize) -> Result<(), Error> {
    count(bodies)?;
    if bodies == given {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        argument: what.into(),
        required: bodies,
        given,
    })
}

/// Checks that there is a value for each body, on the device of the bodies.
pub(super) fn values<B: Element, V: Element>(
    bodies: &Buffer<B>,
    what: &'static str,
    values: &Buffer<V>,
) -> Result<(), Error> {
    lengths(bodies.len(), what, values.len())?;
    bodies.device().require(what, values)
}

/// Checks that blocks of this size, and tiles with as many bodies, can be launched.
pub(super) fn block(block: u32) -> Result<(), Error> {
    if block == 0 || block > 1024 || !block.is_multiple_of(32) {
        return Err(Error::InvalidSize {
            operation: OPERATION,
            axis: "block",
            given: block as usize,
            required: "a multiple of 32 from 32 to 1024".to_owned(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bodies_than_kernels_can_count_are_refused() {
        // No machine of ours holds that many, so this is about the numbers alone.
        assert!(count(MAX_BODIES).is_ok());
        let error = count(MAX_BODIES + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "nbody: the number of bodies is 2147483649, but at most 2147483648 can be indexed here"
        );
        // The index of the last thread of the last block fits u32, whatever the block.
        assert!(u32::try_from(MAX_BODIES + 1024).is_ok());
    }
}
