//! Items that the macros' expansions use. Not part of the API.

pub use alloc::format;

/// The numbers of a kernel's `#[launch_bounds]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchBounds {
    /// The maximum number of threads in a block of a launch, the product of the
    /// block's extents.
    pub max_threads_per_block: u32,
    /// The minimum number of blocks that one multiprocessor must be able to
    /// hold at a time.
    pub min_blocks_per_multiprocessor: Option<u32>,
}

impl LaunchBounds {
    /// Checks the numbers; `#[launch_bounds]` calls this at compile time.
    ///
    /// # Panics
    ///
    /// When no GPU can meet them.
    #[must_use]
    pub const fn new(max_threads: u32, min_blocks: Option<u32>) -> Self {
        assert!(
            1 <= max_threads && max_threads <= 1024,
            "launch_bounds: a block has 1 to 1024 threads"
        );
        if let Some(min_blocks) = min_blocks {
            assert!(
                1 <= min_blocks && min_blocks <= 32,
                "launch_bounds: a multiprocessor holds 1 to 32 blocks"
            );
            assert!(
                min_blocks * max_threads <= 2048,
                "launch_bounds: a multiprocessor holds 2048 threads at most"
            );
        }
        Self {
            max_threads_per_block: max_threads,
            min_blocks_per_multiprocessor: min_blocks,
        }
    }

    /// The two numbers as `cuda_builder` reads them; 0 where no minimum of
    /// blocks is given.
    #[must_use]
    pub const fn to_array(self) -> [u32; 2] {
        let min_blocks = match self.min_blocks_per_multiprocessor {
            Some(min_blocks) => min_blocks,
            None => 0,
        };
        [self.max_threads_per_block, min_blocks]
    }
}

#[cfg(not(target_arch = "nvptx64"))]
pub use host::*;

#[cfg(not(target_arch = "nvptx64"))]
mod host {
    use cuda_emulator::intrinsics as emulator;
    pub use cuda_emulator::intrinsics::SharedSlot;
    pub use inventory;

    use crate::address_space::AddressSpace;
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::ops::Range;

    /// Ranges of static shared memory, by start address.
    ///
    /// A block runs on one OS thread from start to end, so the ranges recorded
    /// on this thread since its current block began belong to that block.
    #[derive(Default)]
    struct StaticShared {
        /// The launch and block that the ranges belong to.
        block: Option<[u32; 3]>,
        ranges: BTreeMap<usize, usize>,
    }

    thread_local! {
        static STATIC_SHARED: RefCell<StaticShared> = RefCell::default();
    }

    impl StaticShared {
        /// The ranges of the current block; removes those of an earlier block.
        fn of_this_block(&mut self) -> &mut BTreeMap<usize, usize> {
            let block = Some(emulator::block_idx());
            if self.block != block {
                self.block = block;
                self.ranges.clear();
            }
            &mut self.ranges
        }
    }

    /// Records a range of static shared memory that the block uses.
    fn note_shared(start: usize, size: usize) {
        STATIC_SHARED.with_borrow_mut(|shared| shared.of_this_block().insert(start, size));
    }

    /// The memory of a `shared_array!` in the calling thread's block.
    #[track_caller]
    #[must_use]
    pub fn shared_array<T>(slot: &'static SharedSlot) -> *mut T {
        let array = emulator::shared_static(slot, size_of::<T>(), align_of::<T>());
        note_shared(array.addr(), size_of::<T>());
        array.cast()
    }

    /// The bytes of static shared memory recorded for the block, plus its
    /// dynamic shared memory.
    #[must_use]
    pub fn shared_bytes() -> usize {
        let statics =
            STATIC_SHARED.with_borrow_mut(|shared| shared.of_this_block().values().sum::<usize>());
        statics + emulator::dynamic_shared_len()
    }

    /// The address space that an address would be in on a device.
    #[must_use]
    pub fn address_space_of(address: usize) -> AddressSpace {
        let range = |start: usize, size: usize| Range {
            start,
            end: start + size,
        };
        let in_static = STATIC_SHARED.with_borrow_mut(|shared| {
            let shared = shared.of_this_block();
            let below = shared.range(..=address).next_back();
            below.is_some_and(|(&start, &size)| range(start, size).contains(&address))
        });
        let in_dynamic = emulator::dynamic_shared_len() > 0
            && range(
                emulator::dynamic_shared().addr(),
                emulator::dynamic_shared_len(),
            )
            .contains(&address);
        if in_static || in_dynamic {
            return AddressSpace::Shared;
        }
        let in_constant = inventory::iter::<ConstantStatic>()
            .any(|constant| range((constant.address)().addr(), constant.size).contains(&address));
        if in_constant {
            return AddressSpace::Constant;
        }
        // The thread's stack lies above the frame of this function. Its extent
        // is unknown here, but other memory that close would be another
        // thread's stack.
        let frame = 0_u8;
        let stack = range((&raw const frame).addr(), LOCAL_BYTES);
        if stack.contains(&address) {
            AddressSpace::Local
        } else {
            AddressSpace::Global
        }
    }

    /// The bytes of stack that count as the thread's own.
    const LOCAL_BYTES: usize = 16 * 1024;

    /// A static in constant memory.
    pub struct ConstantStatic {
        address: fn() -> *mut u8,
        size: usize,
    }

    impl ConstantStatic {
        /// The static at `address`, of `size` bytes.
        #[must_use]
        pub const fn new(address: fn() -> *mut u8, size: usize) -> Self {
            Self { address, size }
        }
    }

    inventory::collect!(ConstantStatic);

    /// A static in shared memory that kernels use in place.
    pub struct SharedStatic {
        slot: SharedSlot,
        address: fn() -> *mut u8,
        size: usize,
    }

    impl SharedStatic {
        /// The static called `name`, declared at `file`:`line`.
        #[must_use]
        pub const fn new(
            name: &'static str,
            file: &'static str,
            line: u32,
            address: fn() -> *mut u8,
            size: usize,
        ) -> Self {
            Self {
                slot: SharedSlot::new(name, file, line),
                address,
                size,
            }
        }

        /// Registers with the emulator that the calling thread uses this
        /// static.
        ///
        /// # Safety
        ///
        /// `address` is that of a static of `size` bytes in which any bits are
        /// allowed, and which only emulated threads of kernels touch.
        #[track_caller]
        pub unsafe fn enter(&'static self) {
            // SAFETY: as the caller promises.
            unsafe { emulator::register_shared_static(&self.slot, (self.address)(), self.size) };
            note_shared((self.address)().addr(), self.size);
        }
    }

    inventory::collect!(SharedStatic);

    /// Called first by every kernel: registers the shared statics declared
    /// outside a kernel, since the kernel may use any of them through a helper.
    #[track_caller]
    pub fn enter_kernel() {
        let mut statics = inventory::iter::<SharedStatic>().peekable();
        if statics.peek().is_none() || !emulator::in_kernel() {
            return;
        }
        for shared in statics {
            // SAFETY: only `#[address_space(shared)]` submits to the inventory,
            // with the address and the size of its static. Its user promises by
            // `static mut` that only kernels touch it.
            unsafe { shared.enter() };
        }
    }

    /// Registers a shared static declared inside the kernel.
    #[track_caller]
    pub fn enter_shared_static(shared: &'static SharedStatic) {
        if emulator::in_kernel() {
            // SAFETY: as in `enter_kernel`.
            unsafe { shared.enter() };
        }
    }
}

/// Submits a shared static declared outside a kernel to the inventory.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __register_shared_static {
    ($name:literal, $address:expr, $ty:ty) => {
        $crate::__private::inventory::submit! {
            $crate::__private::SharedStatic::new(
                $name, file!(), line!(), $address, ::core::mem::size_of::<$ty>(),
            )
        }
    };
}
#[cfg(not(target_arch = "nvptx64"))]
pub use __register_shared_static as register_shared_static;

/// Submits a static in constant memory to the inventory.
#[cfg(not(target_arch = "nvptx64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __register_constant_static {
    ($address:expr, $ty:ty) => {
        $crate::__private::inventory::submit! {
            $crate::__private::ConstantStatic::new($address, ::core::mem::size_of::<$ty>())
        }
    };
}
#[cfg(not(target_arch = "nvptx64"))]
pub use __register_constant_static as register_constant_static;
