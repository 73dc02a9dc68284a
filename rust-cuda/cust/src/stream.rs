//! Streams: queues of work that the device runs in order.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::function::{BlockSize, Function, GridSize};
use cuda_loader::sys::{self, CUresult, CUstream};
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

bitflags::bitflags! {
    /// Properties of a stream.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct StreamFlags: u32 {
        /// The stream waits for the work of the default stream, which synchronous copies use.
        const DEFAULT = 0x00;
        /// The stream does not wait for the default stream. [`Stream::new`] ignores this flag, see
        /// there.
        const NON_BLOCKING = 0x01;
    }
}

bitflags::bitflags! {
    /// How a stream waits for an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct StreamWaitEventFlags: u32 {
        /// The only choice.
        const DEFAULT = 0x0;
    }
}

/// Which threads' calls the driver rejects during a capture if they are not allowed in it, such as
/// allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CaptureMode {
    /// The calls of all threads.
    Global = 0,
    /// The calls of the capturing thread.
    ThreadLocal = 1,
    /// None.
    Relaxed = 2,
}

/// A queue of work. The device runs the work of one stream in order, and the work of several at the
/// same time.
#[derive(Debug)]
pub struct Stream {
    raw: CUstream,
    home: Home,
}

impl Stream {
    /// Makes a stream, with a priority in the range of
    /// [`CurrentContext::get_stream_priority_range`](crate::context::CurrentContext::get_stream_priority_range).
    ///
    /// It ignores [`StreamFlags::NON_BLOCKING`]. The reason: synchronous copies, such as
    /// [`DeviceBuffer::from_slice`](crate::memory::DeviceBuffer::from_slice), may return before the
    /// device has the data, and only streams that wait for the default stream are sure to see it.
    /// Programs that make all copies on streams can use [`Stream::new_non_blocking`].
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        Self::make(flags.difference(StreamFlags::NON_BLOCKING), priority)
    }

    /// Makes a stream that does not wait for the default stream. Its work must not use memory that
    /// the default stream may still write; synchronous copies write on the default stream.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new_non_blocking(priority: Option<i32>) -> CudaResult<Self> {
        Self::make(StreamFlags::NON_BLOCKING, priority)
    }

    fn make(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        let home = Home::current()?;
        let mut raw = CUstream::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe {
            sys::cuStreamCreateWithPriority(&raw mut raw, flags.bits(), priority.unwrap_or(0))
        }
        .to_result()?;
        Ok(Self { raw, home })
    }

    /// Its flags.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_flags(&self) -> CudaResult<StreamFlags> {
        let mut flags = 0;
        // SAFETY: the pointer is valid for one number, the stream is alive.
        unsafe { sys::cuStreamGetFlags(self.raw, &raw mut flags) }.to_result()?;
        Ok(StreamFlags::from_bits_truncate(flags))
    }

    /// Its priority; a smaller number is a higher priority.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_priority(&self) -> CudaResult<i32> {
        let mut priority: c_int = 0;
        // SAFETY: the pointer is valid for one number, the stream is alive.
        unsafe { sys::cuStreamGetPriority(self.raw, &raw mut priority) }.to_result()?;
        Ok(priority)
    }

    /// Calls a host function once the earlier work has ended.
    ///
    /// It runs on a thread of the driver, and must not call the driver. If it panics, the message
    /// is printed and the stream continues. It cannot borrow, because it runs later:
    ///
    /// ```compile_fail,E0597
    /// # fn of(stream: &cust::stream::Stream) -> cust::error::CudaResult<()> {
    /// let numbers = vec![1, 2, 3];
    /// stream.add_callback(Box::new(|| println!("{numbers:?}")))
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The error that the driver reports; the function is then dropped and not called.
    pub fn add_callback<T>(&self, callback: Box<T>) -> CudaResult<()>
    where
        T: FnOnce() + Send + 'static,
    {
        unsafe extern "C" fn call<T: FnOnce()>(callback: *mut c_void) {
            // SAFETY: the pointer comes from the box below, which is handed over once.
            let callback = unsafe { Box::from_raw(callback.cast::<T>()) };
            // Unwinding must not reach the driver.
            let _ = catch_unwind(AssertUnwindSafe(callback));
        }

        let callback = Box::into_raw(callback);
        // SAFETY: `call` takes the type that is passed with it, which is `'static` and `Send`, so
        // the driver's thread may use it later.
        let code = unsafe { sys::cuLaunchHostFunc(self.raw, call::<T>, callback.cast()) };
        code.to_result().inspect_err(|_| {
            // SAFETY: the driver has refused the call, so this function still owns the box.
            drop(unsafe { Box::from_raw(callback) });
        })
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    ///
    /// The error of a failed kernel, or another error of the driver.
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamSynchronize(self.raw) }.to_result()
    }

    /// Whether all work is done.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`].
    pub fn query(&self) -> CudaResult<bool> {
        // SAFETY: the stream is alive.
        match unsafe { sys::cuStreamQuery(self.raw) } {
            CUresult::NOT_READY => Ok(false),
            code => code.to_result().map(|()| true),
        }
    }

    /// Begins a capture: the driver records later work of this stream and does not run it.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn begin_capture(&self, mode: CaptureMode) -> CudaResult<()> {
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamBeginCapture_v2(self.raw, mode as u32) }.to_result()
    }

    /// Launches a kernel. Programs use [`launch!`](crate::launch!) instead.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// `args` are pointers to all parameters of the kernel, in order. The kernel uses them
    /// correctly: memory that it uses stays allocated until it has ended, and meanwhile nothing
    /// else uses memory that it writes.
    #[doc(hidden)]
    pub unsafe fn launch<G, B>(
        &self,
        func: &Function<'_>,
        grid_size: G,
        block_size: B,
        shared_mem_bytes: u32,
        args: &[*mut c_void],
    ) -> CudaResult<()>
    where
        G: Into<GridSize>,
        B: Into<BlockSize>,
    {
        let (grid, block) = (grid_size.into(), block_size.into());
        // SAFETY: function and stream are alive, the driver only reads the pointers; the
        // rest is the caller's promise.
        unsafe {
            sys::cuLaunchKernel(
                func.to_raw(),
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                shared_mem_bytes,
                self.raw,
                args.as_ptr().cast_mut(),
                std::ptr::null_mut(),
            )
        }
        .to_result()
    }

    /// The driver's handle, which stays valid as long as the stream lives.
    #[must_use]
    pub fn as_inner(&self) -> CUstream {
        self.raw
    }

    /// Destroys the stream without waiting; the driver still finishes its work. Returns the
    /// driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the stream.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut stream: Self) -> DropResult<Self> {
        stream.destroy().map_err(|error| (error, stream))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw == CUstream::NULL {
            return Ok(());
        }
        let _entered = self.home.enter()?;
        // SAFETY: the stream belongs to this value, and nothing uses it afterwards.
        unsafe { sys::cuStreamDestroy_v2(self.raw) }.to_result()?;
        self.raw = CUstream::NULL;
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.destroy();
    }
}
