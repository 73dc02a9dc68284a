//! Helpers of the tests: typed buffers and short launch functions.

#![allow(dead_code, reason = "no test uses all of it")]

use cuda_emulator::{
    Allocation, DeviceMemory, Diagnosis, LaunchConfig, Options, Report, ThreadOrder, Verify,
};

/// Values that can be copied to and from device memory.
pub trait Element: Copy + Default + 'static {}
impl Element for u32 {}
impl Element for i32 {}
impl Element for f32 {}
impl Element for f64 {}
impl Element for u64 {}
impl Element for u8 {}

/// A buffer of `T`.
pub struct Buffer<T> {
    pub allocation: Allocation,
    len: usize,
    marker: std::marker::PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// A buffer with these contents.
    pub fn new(memory: &DeviceMemory, label: &str, values: &[T]) -> Self {
        let bytes = size_of_val(values);
        let allocation = memory.alloc(bytes, align_of::<T>(), label).unwrap();
        let mut buffer = Self {
            allocation,
            len: values.len(),
            marker: std::marker::PhantomData,
        };
        buffer.set(values);
        buffer
    }

    pub fn set(&mut self, values: &[T]) {
        assert_eq!(values.len(), self.len);
        // SAFETY: the bytes of plain numbers.
        let bytes = unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        };
        self.allocation.copy_from_bytes(0, bytes);
    }

    pub fn get(&self) -> Vec<T> {
        let mut values = vec![T::default(); self.len];
        // SAFETY: the bytes of plain numbers, for which any pattern is valid.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(
                values.as_mut_ptr().cast::<u8>(),
                self.len * size_of::<T>(),
            )
        };
        self.allocation.copy_to_bytes(0, bytes);
        values
    }

    pub fn ptr(&self) -> Ptr<T> {
        Ptr(self.allocation.addr(), std::marker::PhantomData)
    }
}

/// A device pointer for use in kernels.
#[derive(Clone, Copy)]
pub struct Ptr<T>(u64, std::marker::PhantomData<fn() -> T>);

impl<T: Copy> Ptr<T> {
    pub fn raw(self) -> *mut T {
        std::ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    /// Reads element `i`, which may be out of bounds, because some kernels under test are broken.
    #[track_caller]
    pub fn read(self, i: isize) -> T {
        // SAFETY: none; the emulator must handle the mistakes of kernels.
        unsafe { self.raw().wrapping_offset(i).read_volatile() }
    }

    /// Writes element `i`.
    pub fn write(self, i: isize, value: T) {
        // SAFETY: as `read`.
        unsafe { self.raw().wrapping_offset(i).write_volatile(value) }
    }
}

/// A pointer to a shared array.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub *mut T);

impl<T: Copy> Shared<T> {
    pub fn read(self, i: isize) -> T {
        // SAFETY: as `Ptr::read`.
        unsafe { self.0.wrapping_offset(i).read_volatile() }
    }

    pub fn write(self, i: isize, value: T) {
        // SAFETY: as `Ptr::read`.
        unsafe { self.0.wrapping_offset(i).write_volatile(value) }
    }
}

/// A shared array of `$n` elements of type `$t`, one for each use of the macro in the source.
#[macro_export]
macro_rules! shared {
    ($t:ty; $n:expr) => {{
        static SLOT: cuda_emulator::intrinsics::SharedSlot =
            cuda_emulator::intrinsics::SharedSlot::new("TILE", file!(), line!());
        $crate::common::Shared(
            cuda_emulator::intrinsics::shared_static(&SLOT, size_of::<$t>() * $n, align_of::<$t>())
                .cast::<$t>(),
        )
    }};
}

pub fn config(grid: u32, block: u32) -> LaunchConfig {
    LaunchConfig {
        kernel: "kernel",
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        dynamic_shared_bytes: 0,
    }
}

/// [`cuda_emulator::launch`] of a kernel of these tests.
pub fn launch(
    config: &LaunchConfig,
    options: &Options,
    memory: &DeviceMemory,
    kernel: &(dyn Fn() + Sync),
) -> Result<Report, Diagnosis> {
    // SAFETY: kernels of these tests own nothing that other code relies on, so a launch may cut
    // them short.
    unsafe { cuda_emulator::launch(config, options, memory, kernel) }
}

/// [`cuda_emulator::verify`] of a kernel of these tests.
pub fn verify(
    config: &LaunchConfig,
    how: &Verify,
    memory: &DeviceMemory,
    kernel: &(dyn Fn() + Sync),
) -> Result<Report, Diagnosis> {
    // SAFETY: as in `launch`; meanwhile tests access buffers only by copies.
    unsafe { cuda_emulator::verify(config, how, memory, kernel) }
}

/// Runs with the default options.
pub fn run(
    memory: &DeviceMemory,
    grid: u32,
    block: u32,
    kernel: impl Fn() + Sync,
) -> Result<Report, Diagnosis> {
    launch(&config(grid, block), &Options::default(), memory, &kernel)
}

/// The thread orders in which every diagnosis must be made.
pub const ORDERS: [ThreadOrder; 4] = [
    ThreadOrder::Forward,
    ThreadOrder::Reverse,
    ThreadOrder::Random(7),
    ThreadOrder::Random(8),
];

/// Options with a thread order.
pub fn ordered(order: ThreadOrder) -> Options {
    let mut options = Options::default();
    options.order = order;
    options
}

/// The number of the thread in its block.
pub fn tid() -> u32 {
    cuda_emulator::intrinsics::linear_thread_idx()
}
