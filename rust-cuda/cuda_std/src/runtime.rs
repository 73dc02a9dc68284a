//! What a device program needs to exist: the panic handler.

/// Stops the launch.
///
/// `cuda_builder` compiles `core` so that panics become a trap on the spot, and
/// this is not even called; it is for other builds, and because there must be one.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: stopping the launch is always allowed.
    unsafe { core::arch::asm!("trap;", options(noreturn)) }
}
