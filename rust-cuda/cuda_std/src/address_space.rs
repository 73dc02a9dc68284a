//! The address spaces of a GPU.

/// The address spaces of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressSpace {
    /// Memory of the device, which all threads read and write.
    Global,
    /// Memory of a block, which its threads read and write.
    Shared,
    /// Memory that the host sets and all threads read.
    Constant,
    /// Memory of one thread.
    Local,
}
