//! Mistakes that do not compile, and the compiler's messages about them.
//!
//! `TRYBUILD=overwrite cargo test -p halo-compile-fail` stores the compiler's messages; read them
//! before you commit them.

#[test]
fn mistakes_in_kernels_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/arguments/*.rs");
    cases.compile_fail("tests/ui/kernel/*.rs");
    cases.compile_fail("tests/ui/other/*.rs");
}

#[test]
fn stencils_that_are_wrong_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/stencil/*.rs");
}
