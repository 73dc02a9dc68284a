//! The panic handler of device programs.

/// Stops the launch.
///
/// `cuda_builder` compiles `core` so that a panic traps on the spot and never
/// calls this; other builds call it, and a program must have a panic handler.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: stopping the launch is always allowed.
    unsafe { core::arch::asm!("trap;", options(noreturn)) }
}
