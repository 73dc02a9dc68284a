//! Devices: the CPU with its ports, the emulator, and CUDA devices.
//!
//! A [`Device`] is a cheap handle: clone it freely; it is `Send` and `Sync`. Work on one device
//! runs in the order of the calls, from any thread. On CUDA devices it runs asynchronously, and
//! every operation that returns data to the host waits for it. Handles from separate calls are
//! separate devices: one refuses buffers of the other.
//!
//! A module uses only modules further down in this table:
//!
//! | module | purpose |
//! |---|---|
//! | `fields`, `kernels`, `replay`, `timing`, `event`, `texture`, `view`, `host_buffer`, `sealed`, `buffer` | the operations on a device |
//! | `storage` | the memory behind a buffer |
//! | `handle` | the device itself, of one of three kinds |
//! | `emulator`, `cuda`, `cpu` | the kinds |
//! | `properties`, `layout`, `image`, `tally`, `ptx`, `cubin` | plain data that the kinds share |

mod buffer;
pub(crate) mod call;
mod cpu;
mod emulator;
mod event;
mod fields;
mod handle;
mod host_buffer;
mod image;
mod kernels;
mod layout;
mod properties;
mod replay;
mod sealed;
mod storage;
mod tally;
mod texture;
mod timing;
mod view;

#[cfg(halo_cuda)]
mod cubin;
#[cfg(halo_cuda)]
mod cuda;
#[cfg(halo_cuda)]
mod ptx;

pub use crate::limits::{Limits, TextureLimits};
pub use crate::versions::{ComputeCapability, DriverVersion};
pub use buffer::Buffer;
pub use cuda_emulator::{Blocks, Diagnosis, Placement, Poison, ThreadOrder};
pub use emulator::EmulatorOptions;
pub use event::Event;
pub use handle::{Device, DeviceKind};
pub use host_buffer::HostBuffer;
pub use image::Image;
pub use kernels::{Kernels, ReplaceableKernels};
pub use layout::AddressMode;
pub use properties::{Priority, Properties};
pub use replay::Replay;
pub use sealed::Sealed;
pub use storage::Element;
pub use texture::Texture2d;
pub use view::{View, ViewMut};

pub(crate) use buffer::{Lent, require_len};
pub(crate) use handle::Backend;
pub use tally::Tally;
