//! The block size, geometry and cost that launches of these kernels share.

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// The example of the entries: 16 MiB of f32.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const EXAMPLE: crate::registry::Problem = crate::registry::Problem::line(1 << 22);

/// The launch with one thread for each vector of 16 bytes.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) fn vectors<T>(
    kernel: &'static str,
    line: &crate::registry::Problem,
) -> Result<crate::registry::Geometry, crate::registry::Refusal> {
    let elements = BLOCK as usize * 16 / size_of::<T>();
    let blocks = crate::registry::blocks_for(kernel, line.points(), elements)?;
    Ok(crate::registry::Geometry::linear(blocks, BLOCK))
}

/// The cost of `accesses` and `flops` for each element.
#[cfg(not(target_arch = "nvptx64"))]
pub(super) const fn cost<T>(
    line: &crate::registry::Problem,
    accesses: u64,
    flops: u64,
) -> crate::registry::Cost {
    let elements = line.points() as u64;
    crate::registry::Cost {
        bytes: elements.saturating_mul(accesses * size_of::<T>() as u64),
        flops: elements.saturating_mul(flops),
    }
}
