//! Printing and assertions on the device.

use core::ffi::c_void;
use core::fmt;

unsafe extern "C" {
    /// The device's `printf`: a format string, ending in zero, and a pointer to
    /// its arguments, packed as C packs a struct of them.
    #[doc(hidden)]
    pub fn vprintf(format: *const u8, valist: *const c_void) -> i32;

    /// Fails the launch with an assertion error and prints the message; the
    /// strings end in zero.
    #[doc(hidden)]
    pub fn __assertfail(
        message: *const u8,
        file: *const u8,
        line: u32,
        function: *const u8,
        char_size: usize,
    );
}

/// Prints like `std::print!`, from a kernel.
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => {
        $crate::io::print(::core::format_args!($($arg)*))
    };
}

/// Prints like `std::println!`, from a kernel.
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($arg:tt)*) => {
        $crate::io::println(::core::format_args!($($arg)*))
    };
}

/// Fails the launch with the driver's assertion error when two expressions are
/// not equal, and prints both.
#[macro_export]
macro_rules! assert_eq {
    ($left:expr, $right:expr $(,)?) => {
        $crate::__assert!(==, $left, $right, ::core::option::Option::None)
    };
    ($left:expr, $right:expr, $($arg:tt)+) => {
        $crate::__assert!(
            ==, $left, $right, ::core::option::Option::Some(::core::format_args!($($arg)+))
        )
    };
}

/// Fails the launch with the driver's assertion error when two expressions are
/// equal, and prints both.
#[macro_export]
macro_rules! assert_ne {
    ($left:expr, $right:expr $(,)?) => {
        $crate::__assert!(!=, $left, $right, ::core::option::Option::None)
    };
    ($left:expr, $right:expr, $($arg:tt)+) => {
        $crate::__assert!(
            !=, $left, $right, ::core::option::Option::Some(::core::format_args!($($arg)+))
        )
    };
}

/// Implements both assertions.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert {
    ($operator:tt, $left:expr, $right:expr, $message:expr) => {
        match (&$left, &$right) {
            (left, right) => {
                if !(*left $operator *right) {
                    $crate::io::fail(
                        ::core::concat!(
                            ::core::stringify!($left),
                            " ",
                            ::core::stringify!($operator),
                            " ",
                            ::core::stringify!($right)
                        ),
                        &left,
                        &right,
                        $message,
                        ::core::concat!(::core::file!(), "\0"),
                        ::core::line!(),
                    )
                }
            }
        }
    };
}

/// Implements [`print!`](crate::print).
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    send(&alloc::format!("{arguments}\0"));
}

/// Implements [`println!`](crate::println).
#[doc(hidden)]
pub fn println(arguments: fmt::Arguments<'_>) {
    send(&alloc::format!("{arguments}\n\0"));
}

/// Passes a text that ends in zero to the device's `printf`.
fn send(text: &str) {
    // The text is an argument, not the format: it may contain per cent signs.
    let arguments = [text.as_ptr()];
    // SAFETY: the format takes one string and gets one; both end in zero.
    unsafe { vprintf(c"%s".as_ptr().cast(), arguments.as_ptr().cast()) };
}

/// Fails the launch with the message of a failed assertion.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn fail(
    condition: &str,
    left: &dyn fmt::Debug,
    right: &dyn fmt::Debug,
    message: Option<fmt::Arguments<'_>>,
    file: &str,
    line: u32,
) -> ! {
    let (separator, message) = match message {
        Some(message) => (": ", message),
        None => ("", format_args!("")),
    };
    let text =
        alloc::format!("({condition}){separator}{message}\n left: {left:?}\nright: {right:?}\n\0");
    // SAFETY: all three strings end in zero (`file` by its caller), and stopping
    // the launch is always allowed.
    unsafe {
        __assertfail(
            text.as_ptr(),
            file.as_ptr(),
            line,
            c"kernel".as_ptr().cast(),
            1,
        );
        core::arch::asm!("trap;", options(noreturn));
    }
}
