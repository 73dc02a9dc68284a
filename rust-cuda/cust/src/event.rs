//! Events: marks in streams, for waiting and for measuring time.

use crate::context::home::Home;
use crate::error::{CudaError, CudaResult, DropResult, ToResult};
use crate::stream::{Stream, StreamWaitEventFlags};
use cuda_loader::sys::{self, CUevent, CUresult};
use std::borrow::Borrow;
use std::time::Duration;

bitflags::bitflags! {
    /// Properties of an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct EventFlags: u32 {
        /// Records the time; threads that wait for the event spin.
        const DEFAULT = 0x0;
        /// Threads that wait for the event sleep.
        const BLOCKING_SYNC = 0x1;
        /// Records no time, which is faster.
        const DISABLE_TIMING = 0x2;
        /// Other processes may use the event. Records no time.
        const INTERPROCESS = 0x4;
    }
}

/// Whether the work before an event is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventStatus {
    /// The work is done.
    Ready,
    /// The work is still running.
    NotReady,
}

/// A mark in a stream.
#[derive(Debug)]
pub struct Event {
    raw: CUevent,
    home: Home,
}

impl Event {
    /// An event that is not yet in a stream.
    ///
    /// # Errors
    ///
    /// The error that the driver reports.
    pub fn new(flags: EventFlags) -> CudaResult<Self> {
        let home = Home::current()?;
        let mut raw = CUevent::NULL;
        // SAFETY: the pointer is valid for one handle.
        unsafe { sys::cuEventCreate(&raw mut raw, flags.bits()) }.to_result()?;
        Ok(Self { raw, home })
    }

    /// Records the event after the earlier work of the stream.
    ///
    /// # Errors
    ///
    /// [`CudaError::InvalidHandle`] if the stream belongs to another context.
    pub fn record(&self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both are alive.
        unsafe { sys::cuEventRecord(self.raw, stream.as_inner()) }.to_result()
    }

    /// Whether the work before the event is done.
    ///
    /// # Errors
    ///
    /// The error of a failed kernel, or another error of the driver.
    pub fn query(&self) -> CudaResult<EventStatus> {
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::NOT_READY => Ok(EventStatus::NotReady),
            code => code.to_result().map(|()| EventStatus::Ready),
        }
    }

    /// Waits until the work before the event is done.
    ///
    /// # Errors
    ///
    /// As [`Event::query`].
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the event is alive.
        unsafe { sys::cuEventSynchronize(self.raw) }.to_result()
    }

    /// Milliseconds from `start` to this event.
    ///
    /// # Errors
    ///
    /// [`CudaError::NotReady`] until the device has reached both, [`CudaError::InvalidHandle`] if
    /// one was not recorded or records no time.
    pub fn elapsed_time_f32(&self, start: &Self) -> CudaResult<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: the pointer is valid for one number, both events are alive.
        unsafe { sys::cuEventElapsedTime(&raw mut milliseconds, start.raw, self.raw) }
            .to_result()?;
        Ok(milliseconds)
    }

    /// The time from `start` to this event.
    ///
    /// # Errors
    ///
    /// As [`Event::elapsed_time_f32`]; [`CudaError::InvalidValue`] if this event was recorded
    /// before `start`.
    pub fn elapsed(&self, start: &Self) -> CudaResult<Duration> {
        let milliseconds = self.elapsed_time_f32(start)?;
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3)
            .map_err(|_| CudaError::InvalidValue)
    }

    /// The driver's handle, which stays valid as long as the event lives.
    #[must_use]
    pub fn as_raw(&self) -> CUevent {
        self.raw
    }

    /// Destroys the event, and returns the driver's error if that fails.
    ///
    /// # Errors
    ///
    /// The error that the driver reports, with the event.
    #[allow(clippy::should_implement_trait, reason = "the name that cust has")]
    pub fn drop(mut event: Self) -> DropResult<Self> {
        event.destroy().map_err(|error| (error, event))
    }

    fn destroy(&mut self) -> CudaResult<()> {
        if self.raw == CUevent::NULL {
            return Ok(());
        }
        let _entered = self.home.enter()?;
        // SAFETY: this value owns the event; the driver destroys a pending event once it is
        // reached.
        unsafe { sys::cuEventDestroy_v2(self.raw) }.to_result()?;
        self.raw = CUevent::NULL;
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // A failure means that the driver is shutting down or that a kernel has failed.
        let _: Result<(), CudaError> = self.destroy();
    }
}

impl Stream {
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
        // SAFETY: both are alive; the driver keeps the state of the event that it needs.
        unsafe { sys::cuStreamWaitEvent(self.as_inner(), event.borrow().as_raw(), flags.bits()) }
            .to_result()
    }
}
