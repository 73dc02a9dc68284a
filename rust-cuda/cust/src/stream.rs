//! Streams: work that the device does in order.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::event::Event;
use crate::function::{BlockSize, Function, GridSize};
use crate::graph::Graph;
use crate::sys::{self, CUresult, CUstream};
use std::borrow::Borrow;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

bitflags::bitflags! {
    /// How a stream is made.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct StreamFlags: u32 {
        /// Waits for the work of the default stream, which synchronous copies use.
        const DEFAULT = 0x00;
        /// Does not. [`Stream::new`] leaves this out, see there.
        const NON_BLOCKING = 0x01;
    }
}

bitflags::bitflags! {
    /// How a stream waits for an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct StreamWaitEventFlags: u32 {
        /// The only way.
        const DEFAULT = 0x0;
    }
}

/// Whether the driver refuses calls that a capture cannot have, such as allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CaptureMode {
    /// Forbidden calls of all threads.
    Global = 0,
    /// Forbidden calls of the capturing thread.
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
    /// Makes a stream, of a priority from
    /// [`CurrentContext::get_stream_priority_range`](crate::context::CurrentContext::get_stream_priority_range).
    ///
    /// [`StreamFlags::NON_BLOCKING`] is left out: copies that wait, such as
    /// [`DeviceBuffer::from_slice`](crate::memory::DeviceBuffer::from_slice), may return
    /// before the device has the data, and only streams that wait for the default stream
    /// are sure to see it. [`Stream::new_non_blocking`] is for programs whose copies are
    /// all made on streams.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new(flags: StreamFlags, priority: Option<i32>) -> CudaResult<Self> {
        Self::make(flags.difference(StreamFlags::NON_BLOCKING), priority)
    }

    /// Makes a stream that does not wait for the default stream. Its work must not use memory that
    /// the default stream still writes, as synchronous copies do.
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
        // SAFETY: the pointer is good for one handle.
        unsafe {
            sys::cuStreamCreateWithPriority(&raw mut raw, flags.bits(), priority.unwrap_or(0))
        }
        .to_result()?;
        Ok(Self { raw, home })
    }

    /// How it was made.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_flags(&self) -> CudaResult<StreamFlags> {
        let mut flags = 0;
        // SAFETY: the pointer is good for one number, the stream is alive.
        unsafe { sys::cuStreamGetFlags(self.raw, &raw mut flags) }.to_result()?;
        Ok(StreamFlags::from_bits_truncate(flags))
    }

    /// Its priority; smaller numbers go first.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn get_priority(&self) -> CudaResult<i32> {
        let mut priority: c_int = 0;
        // SAFETY: the pointer is good for one number, the stream is alive.
        unsafe { sys::cuStreamGetPriority(self.raw, &raw mut priority) }.to_result()?;
        Ok(priority)
    }

    /// Calls a function of the host once the earlier work has ended.
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
    /// What the driver says; the function is then dropped without being called.
    pub fn add_callback<T>(&self, callback: Box<T>) -> CudaResult<()>
    where
        T: FnOnce() + Send + 'static,
    {
        unsafe extern "C" fn call<T: FnOnce()>(callback: *mut c_void) {
            // SAFETY: the pointer is that of the box below, handed over once.
            let callback = unsafe { Box::from_raw(callback.cast::<T>()) };
            // Unwinding must not reach the driver.
            let _ = catch_unwind(AssertUnwindSafe(callback));
        }

        let callback = Box::into_raw(callback);
        // SAFETY: the function takes the type that is handed over with it, which outlives
        // every borrow and may be sent to the driver's thread.
        let code = unsafe { sys::cuLaunchHostFunc(self.raw, call::<T>, callback.cast()) };
        code.to_result().inspect_err(|_| {
            // SAFETY: the driver has refused, so that the box is ours still.
            drop(unsafe { Box::from_raw(callback) });
        })
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    ///
    /// That of a kernel that has failed, or what else the driver says.
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

    /// Makes later work wait for an event.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn wait_event(
        &self,
        event: impl Borrow<Event>,
        flags: StreamWaitEventFlags,
    ) -> CudaResult<()> {
        // SAFETY: both are alive; the driver keeps what it needs of the event.
        unsafe { sys::cuStreamWaitEvent(self.raw, event.borrow().as_raw(), flags.bits()) }
            .to_result()
    }

    /// From now on what this stream is given is noted, and not done.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn begin_capture(&self, mode: CaptureMode) -> CudaResult<()> {
        // SAFETY: the stream is alive.
        unsafe { sys::cuStreamBeginCapture_v2(self.raw, mode as u32) }.to_result()
    }

    /// The work captured since [`Stream::begin_capture`].
    ///
    /// # Errors
    ///
    /// What the driver says, also where something could not be noted.
    pub fn end_capture(&self) -> CudaResult<Graph> {
        let mut graph = sys::CUgraph::NULL;
        // SAFETY: the pointer is good for one handle, the stream is alive.
        unsafe { sys::cuStreamEndCapture(self.raw, &raw mut graph) }.to_result()?;
        // SAFETY: the driver has just made it for us.
        Ok(unsafe { Graph::from_raw(graph) })
    }

    /// Launches a kernel; [`launch!`](crate::launch!) is how programs do that.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    ///
    /// # Safety
    ///
    /// `args` are pointers to all of the kernel's parameters, in order. The kernel's use of them is
    /// correct: the addresses stay valid until it has ended, and nothing else uses memory that it
    /// writes meanwhile.
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

    /// The driver's handle, which is one for as long as the stream lives.
    #[must_use]
    pub fn as_inner(&self) -> CUstream {
        self.raw
    }

    /// Destroys the stream once its work is done, without waiting for it, and says whether
    /// that went well.
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
        // SAFETY: the stream is ours, and used by nobody else from here on.
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
