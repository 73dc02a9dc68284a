//! The memory behind a buffer, for each kind of device.
//!
//! Ranges are in elements and lie within the memory: buffers and their views check that.

use super::emulator::EmulatorMemory;
use super::handle::{Backend, Device};
use crate::Error;
use crate::allocation::{Aligned, zeroed};
use bytemuck::{cast_slice, cast_slice_mut};
use std::ops::Range;

#[cfg(halo_cuda)]
use super::cuda::CudaMemory;

/// Element types of a [`Buffer`](crate::Buffer): plain bytes for which every bit pattern is valid
/// (`f32`, `i64`, `[f32; 4]`, `#[derive(Pod)]` structs, …).
pub trait Element: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Element for T {}

pub(super) enum Storage<T: Element> {
    /// No bytes and no memory; not on the CPU device.
    Empty,
    /// The memory of the CPU ports.
    Host(Aligned<T>),
    /// The caller's memory, which the CPU ports read. The buffer is in a [`Lent`](super::Lent).
    Lent(&'static [T]),
    Emulator(EmulatorMemory),
    #[cfg(halo_cuda)]
    Cuda(CudaMemory),
}

impl<T: Element> Storage<T> {
    /// Allocates `bytes` bytes (not zero) and fills them with `len` copies of this value.
    pub(super) fn filled(
        device: &Device,
        len: usize,
        bytes: usize,
        value: T,
    ) -> Result<Self, Error> {
        Ok(match device.backend() {
            Backend::Cpu => {
                let zero = bytemuck::bytes_of(&value).iter().all(|byte| *byte == 0);
                Self::Host(if zero {
                    Aligned::zeroed(len)?
                } else {
                    Aligned::filled(len, value)?
                })
            }
            Backend::Emulator(emulator) => {
                let mut memory = emulator.allocate::<T>(bytes)?;
                memory.fill(0..bytes, value);
                Self::Emulator(memory)
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let mut memory = cuda.allocate(bytes)?;
                memory.fill(0..bytes, bytemuck::bytes_of(&value))?;
                Self::Cuda(memory)
            }
        })
    }

    /// Allocates memory with a copy of these values, at least one.
    pub(super) fn of(device: &Device, values: &[T]) -> Result<Self, Error> {
        let bytes = size_of_val(values);
        Ok(match device.backend() {
            Backend::Cpu => Self::Host(Aligned::copy_of(values)?),
            Backend::Emulator(emulator) => {
                let mut memory = emulator.allocate::<T>(bytes)?;
                memory.write(0, cast_slice(values));
                Self::Emulator(memory)
            }
            #[cfg(halo_cuda)]
            Backend::Cuda(cuda) => {
                let mut memory = cuda.allocate(bytes)?;
                memory.upload(0, cast_slice(values))?;
                Self::Cuda(memory)
            }
        })
    }

    /// Copies the elements from index `at` on to `values`.
    pub(super) fn read(&self, at: usize, values: &mut [T]) -> Result<(), Error> {
        let here = at..at + values.len();
        match self {
            Self::Empty => {}
            Self::Host(own) => values.copy_from_slice(&own[here]),
            Self::Lent(own) => values.copy_from_slice(&own[here]),
            Self::Emulator(memory) => {
                memory.read(at * size_of::<T>(), cast_slice_mut(values));
            }
            #[cfg(halo_cuda)]
            Self::Cuda(memory) => {
                memory.download(at * size_of::<T>(), cast_slice_mut(values))?;
            }
        }
        Ok(())
    }

    /// Overwrites the elements from index `at` on.
    pub(super) fn write(&mut self, at: usize, values: &[T]) -> Result<(), Error> {
        match self {
            Self::Empty => {}
            Self::Host(own) => own[at..at + values.len()].copy_from_slice(values),
            Self::Lent(_) => unreachable!("a lent buffer is read only"),
            Self::Emulator(memory) => {
                memory.write(at * size_of::<T>(), cast_slice(values));
            }
            #[cfg(halo_cuda)]
            Self::Cuda(memory) => {
                memory.upload(at * size_of::<T>(), cast_slice(values))?;
            }
        }
        Ok(())
    }

    /// Overwrites the elements from index `at` on with a range of `source`, memory of the same
    /// device.
    pub(super) fn copy(
        &mut self,
        at: usize,
        source: &Self,
        range: Range<usize>,
    ) -> Result<(), Error> {
        let size = size_of::<T>();
        self.copy_bytes(at * size, source, range.start * size..range.end * size)
    }

    /// Overwrites the bytes from index `at` on with a range of `source`, memory of the same device.
    pub(super) fn copy_bytes<U: Element>(
        &mut self,
        at: usize,
        source: &Storage<U>,
        range: Range<usize>,
    ) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let target = at..at + range.len();
        match (self, source) {
            (Self::Host(own), Storage::Host(other)) => {
                cast_slice_mut::<_, u8>(own)[target].copy_from_slice(&cast_slice(other)[range]);
            }
            (Self::Host(own), Storage::Lent(other)) => {
                cast_slice_mut::<_, u8>(own)[target].copy_from_slice(&cast_slice(other)[range]);
            }
            (Self::Emulator(own), Storage::Emulator(other)) => own.copy_from(at, other, range),
            #[cfg(halo_cuda)]
            (Self::Cuda(own), Storage::Cuda(other)) => own.copy_from(at, other, range)?,
            // The memories of one device are of the same kind; in the other cases they are empty.
            _ => {}
        }
        Ok(())
    }

    /// Overwrites rows of bytes with rows of `source`, memory of the same device: `rows` rows of
    /// `len` bytes, with a start and a pitch for each side.
    pub(super) fn copy_rows<U: Element>(
        &mut self,
        source: &Storage<U>,
        [to, from]: [usize; 2],
        [rows, len]: [usize; 2],
        [to_pitch, from_pitch]: [usize; 2],
    ) -> Result<(), Error> {
        #[cfg(halo_cuda)]
        if let (Self::Cuda(own), Storage::Cuda(other)) = (&mut *self, source) {
            return own.copy_rows(other, [to, from], [rows, len], [to_pitch, from_pitch]);
        }
        for row in 0..rows {
            let start = from + row * from_pitch;
            self.copy_bytes(to + row * to_pitch, source, start..start + len)?;
        }
        Ok(())
    }

    /// Like [`Storage::copy`], from memory of any device.
    pub(super) fn copy_across(
        &mut self,
        at: usize,
        source: &Self,
        range: Range<usize>,
    ) -> Result<(), Error> {
        #[cfg(halo_cuda)]
        if let (Self::Cuda(own), Self::Cuda(other)) = (&mut *self, source) {
            let size = size_of::<T>();
            let bytes = range.start * size..range.end * size;
            return own.copy_across(at * size, other, bytes);
        }
        match (&mut *self, source) {
            (Self::Host(own), _) => source.read(range.start, &mut own[at..at + range.len()]),
            (_, Self::Host(other)) => self.write(at, &other[range]),
            (_, Self::Lent(other)) => self.write(at, &other[range]),
            _ => {
                let mut values = zeroed(range.len())?;
                source.read(range.start, &mut values)?;
                self.write(at, &values)
            }
        }
    }

    /// Overwrites the elements of a range with `value`.
    pub(super) fn fill(&mut self, range: Range<usize>, value: T) -> Result<(), Error> {
        let size = size_of::<T>();
        let bytes = range.start * size..range.end * size;
        match self {
            Self::Empty => {}
            Self::Host(own) => own[range].fill(value),
            Self::Lent(_) => unreachable!("a lent buffer is read only"),
            Self::Emulator(memory) => memory.fill(bytes, value),
            #[cfg(halo_cuda)]
            Self::Cuda(memory) => memory.fill(bytes, bytemuck::bytes_of(&value))?,
        }
        Ok(())
    }

    /// The address of the first element, as kernels see it.
    pub(super) fn address(&self) -> u64 {
        match self {
            Self::Empty => align_of::<T>() as u64,
            Self::Host(own) => own.as_ptr().expose_provenance() as u64,
            Self::Lent(own) => own.as_ptr().expose_provenance() as u64,
            Self::Emulator(memory) => memory.address(),
            #[cfg(halo_cuda)]
            Self::Cuda(memory) => memory.address(),
        }
    }
}
