//! CUDA events: markers in a device's stream, and the time between two of them.

use super::core::Core;
use super::driver::said;
use super::handle::CudaDevice;
use crate::Error;
use cust::event::{EventFlags, EventStatus};
use std::sync::Arc;
use std::time::Duration;

/// A marker in the device's stream.
pub(in crate::device) struct Event {
    raw: cust::event::Event,
    /// After the event, which must be destroyed in the device's context.
    core: Arc<Core>,
}

impl Event {
    /// Whether all work enqueued before the event is complete.
    pub(in crate::device) fn is_complete(&self) -> Result<bool, Error> {
        let _current = self.core.enter()?;
        Ok(said("cuEventQuery", self.raw.query())? == EventStatus::Ready)
    }

    /// Waits until all work enqueued before the event is complete.
    pub(in crate::device) fn synchronize(&self) -> Result<(), Error> {
        self.core.refuse("waiting for an event")?;
        let _current = self.core.enter()?;
        said("cuEventSynchronize", self.raw.synchronize())
    }
}

impl CudaDevice {
    /// Records an event after all work enqueued so far. `what` names the operation in the error for
    /// recordings, which cannot contain it.
    pub(in crate::device) fn record_event(&self, what: &'static str) -> Result<Event, Error> {
        let core = &self.core;
        core.refuse(what)?;
        let _current = core.enter()?;
        let event = cust::event::Event::new(EventFlags::DEFAULT);
        let raw = said("cuEventCreate", event)?;
        said("cuEventRecord", raw.record(&core.stream))?;
        Ok(Event {
            raw,
            core: Arc::clone(core),
        })
    }

    /// Makes later work wait for an event of any CUDA device.
    pub(in crate::device) fn wait_event(&self, event: &Event) -> Result<(), Error> {
        self.core.refuse("waiting for an event")?;
        self.core.wait_event(&event.raw)
    }

    /// Waits for `end` and returns the time since `start`.
    pub(in crate::device) fn elapsed(&self, start: &Event, end: &Event) -> Result<Duration, Error> {
        let _current = self.core.enter()?;
        said("cuEventSynchronize", end.raw.synchronize())?;
        let milliseconds = said("cuEventElapsedTime", end.raw.elapsed_time_f32(&start.raw))?;
        // The duration is finite and not negative, because the events were recorded in this order.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) * 1e-3).unwrap_or_default())
    }
}
