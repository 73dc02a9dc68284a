//! Marks in a device's stream, and the time between them.

use super::core::Core;
use super::driver::said;
use super::handle::CudaDevice;
use crate::Error;
use cust::event::EventFlags;
use std::sync::Arc;
use std::time::Duration;

/// A mark in the device's stream.
pub(in crate::device) struct Event {
    raw: cust::event::Event,
    /// Behind the event, which is destroyed in its context.
    _core: Arc<Core>,
}

impl CudaDevice {
    /// An event behind all work given so far.
    pub(in crate::device) fn record_event(&self) -> Result<Event, Error> {
        let core = &self.core;
        core.refuse("measuring time")?;
        let _current = core.enter()?;
        let event = cust::event::Event::new(EventFlags::DEFAULT);
        let raw = said("cuEventCreate", event)?;
        said("cuEventRecord", raw.record(&core.stream))?;
        Ok(Event {
            raw,
            _core: Arc::clone(core),
        })
    }

    /// Waits for `end` and returns the time since `start`.
    pub(in crate::device) fn elapsed(&self, start: &Event, end: &Event) -> Result<Duration, Error> {
        let _current = self.core.enter()?;
        said("cuEventSynchronize", end.raw.synchronize())?;
        let milliseconds = said("cuEventElapsedTime", end.raw.elapsed_time_f32(&start.raw))?;
        // Finite and not negative: the events were recorded in this order.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) * 1e-3).unwrap_or_default())
    }
}
