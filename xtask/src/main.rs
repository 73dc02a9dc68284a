//! The project's own tasks: benchmark, PTX build, tidy, mutation check.
fn main() {}
