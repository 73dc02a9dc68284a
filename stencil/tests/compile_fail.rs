//! Stencils that do not compile, and the compiler's messages about them.
//!
//! `TRYBUILD=overwrite cargo test -p halo-stencil --test compile_fail -- --ignored` writes the
//! present messages; read them before you keep them.

#[test]
#[ignore = "checks all dependencies anew; CI runs it"]
fn stencils_that_are_wrong_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
