//! Numbers for unit tests.

/// Numbers below 2²⁴ without a pattern, the same in every run.
pub(crate) fn numbers() -> impl FnMut() -> usize {
    let mut state = 1_u32;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    }
}
