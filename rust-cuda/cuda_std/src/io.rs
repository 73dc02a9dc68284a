//! Printing from kernels, and assertions that fail the launch.
//!
//! The device keeps what kernels print in a ring buffer (1 MiB unless the host
//! says otherwise; when it is full the oldest goes) and writes it to the
//! program's standard output when the host synchronises, launches, copies
//! blockingly, or ends the context. One call prints as a whole: output of other
//! threads never comes in between. In the emulator printing is immediate.
//!
//! Formatting goes through the device heap and costs registers and code: for
//! finding mistakes, not for kernels in earnest.

#[cfg(target_arch = "nvptx64")]
use core::ffi::c_void;
use core::fmt;

#[cfg(target_arch = "nvptx64")]
unsafe extern "C" {
    /// The device's `printf`: a format string, ending in zero, and a pointer to
    /// its arguments, packed as C packs a struct of them.
    #[doc(hidden)]
    pub fn vprintf(format: *const u8, valist: *const c_void) -> i32;

    /// Fails the launch with an assertion error and prints why; the strings end
    /// in zero.
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
///
/// ```
/// use cuda_std::print;
/// print!("{} of {}", 1, 2);
/// ```
#[macro_export]
macro_rules! print {
    ($($arg:tt)*) => {
        $crate::io::print(::core::format_args!($($arg)*))
    };
}

/// Prints like `std::println!`, from a kernel.
///
/// ```
/// use cuda_std::println;
/// println!();
/// println!("thread {}", 3);
/// ```
#[macro_export]
macro_rules! println {
    () => {
        $crate::print!("\n")
    };
    ($($arg:tt)*) => {
        $crate::io::println(::core::format_args!($($arg)*))
    };
}

/// Fails the launch when two expressions are not equal, and prints both.
///
/// On the device the host gets the driver's assertion error; in the emulator
/// the kernel panics, which the launch reports.
///
/// ```
/// cuda_std::assert_eq!(1 + 1, 2);
/// cuda_std::assert_eq!(1 + 1, 2, "sums in block {}", 0);
/// ```
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

/// Fails the launch when two expressions are equal, and prints both.
///
/// As [`assert_eq!`](crate::assert_eq) otherwise.
///
/// ```
/// cuda_std::assert_ne!(1 + 1, 3);
/// ```
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

/// Both assertions.
#[doc(hidden)]
#[macro_export]
macro_rules! __assert {
    ($operator:tt, $left:expr, $right:expr, $message:expr) => {
        match (&$left, &$right) {
            (left, right) => {
                if !(*left $operator *right) {
                    $crate::io::fail(
                        concat!(stringify!($left), " ", stringify!($operator), " ", stringify!($right)),
                        &left,
                        &right,
                        $message,
                        concat!(file!(), "\0"),
                        line!(),
                    )
                }
            }
        }
    };
}

/// Implements [`print!`](crate::print).
#[doc(hidden)]
pub fn print(arguments: fmt::Arguments<'_>) {
    #[cfg(target_arch = "nvptx64")]
    send(alloc::format!("{arguments}\0"));
    #[cfg(not(target_arch = "nvptx64"))]
    std::print!("{arguments}");
}

/// Implements [`println!`](crate::println).
#[doc(hidden)]
pub fn println(arguments: fmt::Arguments<'_>) {
    #[cfg(target_arch = "nvptx64")]
    send(alloc::format!("{arguments}\n\0"));
    #[cfg(not(target_arch = "nvptx64"))]
    std::println!("{arguments}");
}

/// Hands a text that ends in zero to the device's `printf`.
#[cfg(target_arch = "nvptx64")]
fn send(text: alloc::string::String) {
    // The text is an argument, not the format: it may contain per cent signs.
    let arguments = [text.as_ptr()];
    // SAFETY: the format asks for one string and gets one; both end in zero.
    unsafe { vprintf(c"%s".as_ptr().cast(), arguments.as_ptr().cast()) };
}

/// Fails the launch because of an assertion.
#[doc(hidden)]
#[cold]
#[inline(never)]
#[track_caller]
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
    #[cfg(target_arch = "nvptx64")]
    {
        let text = alloc::format!(
            "({condition}){separator}{message}\n left: {left:?}\nright: {right:?}\n\0"
        );
        // SAFETY: all three strings end in zero (`file` by its caller), and
        // stopping the launch is always allowed.
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
    #[cfg(not(target_arch = "nvptx64"))]
    {
        let _ = (file, line);
        panic!(
            "assertion failed: ({condition}){separator}{message}\n left: {left:?}\nright: {right:?}"
        )
    }
}
