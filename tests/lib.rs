//! One test suite per kernel family, run over every implementation on every device.
