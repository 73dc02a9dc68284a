//! Mistakes that do not compile, and the compiler's messages about them.
//!
//! `TRYBUILD=overwrite cargo test -p halo-cuda-std --test compile_fail -- --ignored` writes the
//! present messages; read them before you keep them.

#[test]
#[ignore = "checks all dependencies anew, twice; CI runs it"]
fn mistakes_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/arguments/*.rs");
    cases.compile_fail("tests/ui/kernel/*.rs");
    cases.compile_fail("tests/ui/other/*.rs");
}
