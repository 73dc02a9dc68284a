//! CUDA devices, through the CUDA driver API.
//!
//! Each [`CudaDevice`] enqueues all its work on one stream. Work runs in order, so a buffer can be
//! freed (in stream order) while kernels that use it are still running.
//!
//! A module uses only modules further down in this table:
//!
//! | module | purpose |
//! |---|---|
//! | `launch`, `memory`, `texture`, `event` | what a device can do, and what it returns to the caller |
//! | `recording` | recording work as a graph and replaying it |
//! | `handle` | the device |
//! | `stand_ins`, `loaded`, `module` | loaded code: replacements of the device's own kernels, and modules |
//! | `core` | context, stream and memory pool, and their release |
//! | `queue`, `generation`, `driver` | the stream for new work, the device's properties, the driver's errors |

mod core;
mod driver;
mod event;
mod generation;
mod handle;
mod launch;
mod loaded;
mod locked;
mod memory;
mod module;
mod queue;
mod recording;
mod stand_ins;
mod texture;

pub(super) use driver::count;
pub(super) use event::Event;
pub(super) use handle::CudaDevice;
pub(super) use locked::LockedMemory;
pub(super) use memory::CudaMemory;
pub(super) use recording::Graph;
pub(super) use stand_ins::StandIns;
pub(super) use texture::CudaTexture;

use self::core::Core;
use super::properties::{Priority, Properties};
use super::ptx;
use crate::{Error, Limits};
use driver::said;
use generation::Generation;
use handle::Opened;
use module::Code;
use std::borrow::Cow;

/// Opens CUDA device number `ordinal`, with kernels from `source` and a stream of this priority.
/// Returns its properties, its launch limits, and the device.
pub(super) fn open(
    ordinal: usize,
    source: ptx::Source,
    priority: Priority,
) -> Result<(Properties, Limits, CudaDevice), Error> {
    let count = count()?;
    if count == 0 {
        return Err(Error::NoDevice);
    }
    let number = u32::try_from(ordinal)
        .ok()
        .filter(|_| ordinal < count)
        .ok_or(Error::DeviceOrdinal {
            given: ordinal,
            count,
        })?;
    let device = said("cuDeviceGet", cust::device::Device::get_device(number))?;
    let generation = Generation::of(device)?;
    let mut properties = generation::properties(device, generation)?;
    let limits = generation::limits(device)?;
    let (parts, given) = match &source {
        ptx::Source::Given(text) => (vec![ptx::Submodule::whole(Cow::Owned(text.clone()))], true),
        ptx::Source::Embedded => match ptx::embedded_for(generation.capability) {
            Ok(text) => (ptx::parts(text), false),
            Err(lowest) => {
                return Err(generation.unsupported(lowest, &properties.name, String::new()));
            }
        },
    };
    properties.ptx_target = parts.first().map(|part| ptx::header(&part.text).target);

    let code = Code::Ptx(parts);
    let core = Core::new(
        device,
        properties.name.clone(),
        generation,
        limits,
        priority,
    )?;
    let opened = Opened { ordinal, source };
    let device = CudaDevice::new(core, code, given, opened)?;
    Ok((properties, limits, device))
}
