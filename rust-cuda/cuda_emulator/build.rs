//! Decides, in one place, whether the emulator has guard pages and signals (the cfg
//! `guarded`), and whether it can watch single accesses (`traced`).

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(guarded, traced)");
    let of_target = |name| env::var(name).unwrap_or_default();
    let portable = env::var_os("CARGO_FEATURE_PORTABLE").is_some();
    let arch = of_target("CARGO_CFG_TARGET_ARCH");
    if of_target("CARGO_CFG_TARGET_OS") == "linux"
        && ["x86_64", "aarch64"].contains(&arch.as_str())
        && !portable
    {
        println!("cargo::rustc-cfg=guarded");
        if arch == "x86_64" {
            println!("cargo::rustc-cfg=traced");
        }
    }
}
