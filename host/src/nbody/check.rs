//! What every call asks of numbers of bodies, of buffers and of blocks.

use crate::argument::Argument;
use crate::{Buffer, Element, Error};

/// The most bodies: 2³¹. Kernels count them with 32 bits.
pub const MAX_BODIES: usize = 1 << 31;

/// What errors call the family.
pub(super) const OPERATION: &str = "nbody";

/// What errors call them.
pub(super) const ACCELERATIONS: &str = "nbody: accelerations";

/// What errors call them.
pub(super) const POTENTIALS: &str = "nbody: potentials";

/// What errors call it.
pub(super) const ENERGY: &str = "nbody: potential energy";

/// What errors call them.
pub(super) const VELOCITIES: &str = "nbody: velocities";

/// That there are bodies, and no more than can be indexed.
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

/// Checks that there are as many accelerations as bodies, and not too many.
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

/// Whether there is a value for each body, on the device of the bodies.
pub(super) fn values<B: Element, V: Element>(
    bodies: &Buffer<B>,
    what: &'static str,
    values: &Buffer<V>,
) -> Result<(), Error> {
    lengths(bodies.len(), what, values.len())?;
    bodies.device().require(what, values)
}

/// Checks that threads can be launched in blocks of this size, with a tile of as many bodies.
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
