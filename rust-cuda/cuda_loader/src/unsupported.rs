//! `load` on platforms without support: it returns the reason.

use crate::error::LoadError;
use std::sync::LazyLock;

pub(crate) fn load() -> Result<(), &'static LoadError> {
    static UNSUPPORTED: LazyLock<LoadError> = LazyLock::new(|| LoadError {
        searched: Vec::new(),
        reason: format!(
            "only Linux on x86_64 and aarch64 is supported, not {} on {}",
            std::env::consts::OS,
            std::env::consts::ARCH
        ),
    });
    Err(&UNSUPPORTED)
}
