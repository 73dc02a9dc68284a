//! `Buffer`: an array in the memory of a device.

use super::handle::{Backend, Device};
use super::storage::{Element, Storage};
use crate::Error;
use crate::allocation::{bytes_of, zeroed};
use crate::argument::Argument;
use crate::extents::Shape;
use crate::shape::require_shape;
use cuda_std::host::{In, Out};
use std::fmt;
use std::marker::PhantomData;

/// `len` elements of `T` in the memory of one [`Device`].
///
/// A buffer is always fully initialised. Operations that involve two buffers
/// want both on the same device. Kernels get buffers through `Into`:
/// `&Buffer<T>` becomes an input, `&mut Buffer<T>` an output, so a kernel that
/// writes holds the only reference.
///
/// Dropping a buffer while work that uses it is still pending is fine: its
/// memory goes back in stream order, behind that work.
///
/// ```
/// use halo_gpu::{Device, Error};
///
/// # fn main() -> Result<(), Error> {
/// let device = Device::cpu();
/// let source = device.upload(&[1_i32, 2, 3])?;
/// let mut copy = device.alloc_filled(3, 0_i32)?;
/// copy.copy_from(&source)?;
/// assert_eq!(copy.to_vec()?, [1, 2, 3]);
///
/// let short = copy.copy_from_slice(&[1, 2]);
/// assert!(matches!(short, Err(Error::LengthMismatch { required: 3, given: 2, .. })));
/// # Ok(())
/// # }
/// ```
pub struct Buffer<T: Element> {
    pub(super) storage: Storage<T>,
    len: usize,
    /// Of `len` points.
    shape: Shape,
    // Behind the storage, so that the memory goes before the device can.
    device: Device,
}

impl Device {
    /// A buffer of `len` elements, all equal to `value`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::IndexOverflow`] when the size in bytes
    /// fits no `usize`, [`Error::Driver`].
    pub fn alloc_filled<T: Element>(&self, len: usize, value: T) -> Result<Buffer<T>, Error> {
        Buffer::filled(self, len, value)
    }

    /// A buffer of `len` elements whose bytes are all zero.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let zeros = Device::emulator().zeros::<f64>(3)?;
    /// assert_eq!(zeros.to_vec()?, [0.0; 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`alloc_filled`](Self::alloc_filled).
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::filled(self, len, T::zeroed())
    }

    /// A buffer holding a copy of `values`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        Buffer::from_slice(self, values)
    }

    /// Fails with [`Error::DeviceMismatch`] unless `buffer` is on this device.
    ///
    /// `argument` is what the error calls the buffer, such as `"axpy: x"`. Launch code calls this
    /// for every buffer that it passes to a kernel.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::emulator();
    /// device.require("the input", &device.upload(&[1.0_f32])?)?;
    /// let elsewhere = device.require("the input", &Device::cpu().upload(&[1.0_f32])?);
    /// assert_eq!(
    ///     elsewhere.unwrap_err().to_string(),
    ///     "the input is on cpu, but the operation runs on emulator"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`].
    pub fn require<T: Element>(
        &self,
        argument: impl Into<Argument>,
        buffer: &Buffer<T>,
    ) -> Result<(), Error> {
        self.require_same(argument, buffer.device())
    }
}

impl<T: Element> Buffer<T> {
    fn filled(device: &Device, len: usize, value: T) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(len)?;
        if bytes == 0 {
            return Ok(Self::empty(device, len));
        }
        let storage = Storage::filled(device, len, bytes, value)?;
        Ok(Self {
            storage,
            len,
            shape: Shape::Line(len),
            device: device.clone(),
        })
    }

    fn from_slice(device: &Device, values: &[T]) -> Result<Self, Error> {
        if size_of_val(values) == 0 {
            return Ok(Self::empty(device, values.len()));
        }
        let storage = Storage::of(device, values)?;
        Ok(Self {
            storage,
            len: values.len(),
            shape: Shape::Line(values.len()),
            device: device.clone(),
        })
    }

    /// A buffer of no bytes: without elements, or of a type without size.
    fn empty(device: &Device, len: usize) -> Self {
        let storage = match device.backend() {
            Backend::Cpu => Storage::Host(vec![T::zeroed(); len]),
            _ => Storage::Empty,
        };
        Self {
            storage,
            len,
            shape: Shape::Line(len),
            device: device.clone(),
        }
    }

    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The shape that it was [given](Self::shaped); of `len` elements in a line if it was
    /// given none.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The same buffer with a shape. What works on fields of one shape refuses buffers of
    /// another one, also where they are as long; a buffer without a shape it takes at its
    /// length.
    ///
    /// ```
    /// use halo_gpu::derivative3d::FiniteDifferences3d;
    /// use halo_gpu::{Axis, Device, Error, Grid3, Shape3};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::cpu();
    /// let grid = Grid3::new(Shape3::new(8, 9, 10), [1.0; 3])?;
    /// let plan = FiniteDifferences3d::new(&grid)?.plan(&device)?;
    /// let turned = device.alloc_filled(720, 1.0)?.shaped(Shape3::new(10, 9, 8))?;
    /// let mut df = turned.try_clone()?;
    /// let refused = plan.derivative(Axis::X, &turned, &mut df);
    /// assert!(matches!(refused, Err(Error::ShapeMismatch { .. })));
    /// # let _: f64 = df.to_vec()?[0];
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless the shape has as many points as the buffer has
    /// elements, [`Error::IndexOverflow`] if they cannot be counted.
    pub fn shaped(mut self, shape: impl Into<Shape>) -> Result<Self, Error> {
        let shape = shape.into();
        let points = shape.points()?;
        if points != self.len {
            return Err(Error::LengthMismatch {
                argument: "a buffer to be of that shape".into(),
                required: points,
                given: self.len,
            });
        }
        self.shape = shape;
        Ok(self)
    }

    /// Refuses a shape that `required` is not, and another length.
    pub(crate) fn require_shape(
        &self,
        argument: impl Into<Argument>,
        required: impl Into<Shape>,
    ) -> Result<(), Error> {
        require_shape(argument, required.into(), self.shape)
    }

    /// Whether there is no element.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory this is.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A copy of the elements, in host memory.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also when a kernel that was launched earlier has failed.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut values = zeroed(self.len)?;
        self.copy_to_slice(&mut values)?;
        Ok(values)
    }

    /// The elements, in host memory. On [`Device::cpu`] they are borrowed, from other devices
    /// copied.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](Self::to_vec).
    pub fn into_vec(self) -> Result<Vec<T>, Error> {
        match self.storage {
            Storage::Host(own) => Ok(own),
            _ => self.to_vec(),
        }
    }

    /// A buffer of these elements, [`into_vec`](Self::into_vec) the other way round: on
    /// [`Device::cpu`] it is their memory, to other devices they are copied.
    ///
    /// ```
    /// use halo_gpu::{Buffer, Device};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let values = vec![1, 2, 3];
    /// let place = values.as_ptr();
    /// let buffer = Buffer::from_vec(&Device::cpu(), values)?;
    /// assert_eq!(buffer.into_vec()?.as_ptr(), place);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Device::upload`].
    pub fn from_vec(device: &Device, values: Vec<T>) -> Result<Self, Error> {
        if !matches!(device.backend(), Backend::Cpu) || size_of_val(&values[..]) == 0 {
            return device.upload(&values);
        }
        Ok(Self {
            len: values.len(),
            shape: Shape::Line(values.len()),
            storage: Storage::Host(values),
            device: device.clone(),
        })
    }

    /// Copies all elements to `values`.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let mut buffer = Device::emulator().alloc_filled(3, 0.0_f32)?;
    /// buffer.copy_from_slice(&[1.0, 2.0, 3.0])?;
    /// let mut values = [0.0; 3]; // used again and again, where to_vec allocates
    /// buffer.copy_to_slice(&mut values)?;
    /// assert_eq!(values, [1.0, 2.0, 3.0]);
    /// assert!(buffer.copy_to_slice(&mut values[..2]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless `values` has as many elements;
    /// [`Error::Driver`], also when a kernel that was launched earlier has failed.
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<(), Error> {
        self.require_len("the slice to copy to", values.len())?;
        self.storage.read(0, values)
    }

    /// Overwrites all elements by copies of `values`.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless `values` has as many elements; [`Error::Driver`].
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<(), Error> {
        self.require_len("the slice to copy from", values.len())?;
        self.storage.write(0, values)
    }

    /// Has `newer`, of the same device and length, take the place of this buffer, whose
    /// elements are not needed any more and go to `newer`.
    ///
    /// [`std::mem::swap`] of the elements, but right also within [`Device::record`].
    pub(crate) fn give_way_to(&mut self, newer: &mut Self) {
        // Not the shapes: those are what the caller has given to each.
        std::mem::swap(&mut self.storage, &mut newer.storage);
        #[cfg(halo_cuda)]
        if let (Storage::Cuda(now), Storage::Cuda(before)) = (&self.storage, &newer.storage) {
            now.note_exchange(before);
        }
    }

    /// Overwrites all elements by those of `source`, on the device.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] unless `source` is on the same device,
    /// [`Error::LengthMismatch`] unless it has as many elements; [`Error::Driver`].
    pub fn copy_from(&mut self, source: &Self) -> Result<(), Error> {
        self.device.require("the buffer to copy from", source)?;
        self.require_len("the buffer to copy from", source.len)?;
        self.storage.copy(0, &source.storage, 0..source.len)
    }

    /// Overwrites all elements by those of `source`, which may be on another device.
    ///
    /// Between CUDA devices, or two handles of one, the host does not wait: the copy runs after
    /// earlier work of both and before later work of both. Two GPUs that reach each other's memory
    /// copy without the host. To and from other devices, the elements go through the host.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let (device, other) = (Device::best(), Device::emulator());
    /// let source = device.upload(&[1.0_f32, 2.0, 3.0])?;
    /// let mut target = other.zeros(3)?;
    /// target.copy_across(&source)?;
    /// assert_eq!(target.to_vec()?, [1.0, 2.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Nobody has the elements of the target while they are written:
    ///
    /// ```compile_fail,E0502
    /// # use halo_gpu::{Device, Error};
    /// # fn main() -> Result<(), Error> {
    /// # let device = Device::cpu();
    /// let mut field = device.zeros::<f32>(3)?;
    /// field.copy_across(&field)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless `source` has as many elements,
    /// [`Error::NotReplayable`] while either device records on this thread, unless both are
    /// one; [`Error::HostOutOfMemory`] where the elements go through the host;
    /// [`Error::Driver`].
    pub fn copy_across(&mut self, source: &Self) -> Result<(), Error> {
        self.view_mut(..)?.copy_across(source.into())
    }

    /// Overwrites all elements with `value`.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`].
    pub fn fill(&mut self, value: T) -> Result<(), Error> {
        self.storage.fill(0..self.len, value)
    }

    /// A second buffer on the same device, holding the same elements.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let ones = Device::emulator().alloc_filled(3, 1.0_f32)?;
    /// let mut twos = ones.try_clone()?;
    /// twos.fill(2.0)?;
    /// assert_eq!((ones.to_vec()?, twos.to_vec()?), (vec![1.0; 3], vec![2.0; 3]));
    /// assert_eq!(twos.device(), ones.device());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn try_clone(&self) -> Result<Self, Error> {
        let mut copy = Self::filled(&self.device, self.len, T::zeroed())?;
        copy.copy_from(self)?;
        copy.shape = self.shape;
        Ok(copy)
    }

    /// The same elements for the work of `device`.
    ///
    /// Between two handles of one CUDA device nothing is copied, and the host does not wait:
    /// `device` takes over the memory, and its later work runs after the earlier work of the
    /// buffer's device. Where a [recording](Device::record) may use the memory, `device` gets a
    /// copy of it. Another CUDA device gets a copy in the same order, also without waiting. To and
    /// from other devices the elements are copied through the host.
    ///
    /// With [`Device::beside`], which gives work of its own to the same GPU, a buffer is
    /// used by one after the other, and never by both at the same time:
    ///
    /// ```
    /// use halo_gpu::{Device, reduction};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let beside = device.beside()?;
    /// let first = device.upload(&[1.0_f32; 1000])?;
    /// let second = beside.upload(&[2.0_f32; 1000])?; // while `device` works on the first
    /// let sum = reduction::sum(&first)?;
    /// let both = sum + reduction::sum(&second.move_to(&device)?)?;
    /// assert_eq!(both, 3000.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The handle that has given it away cannot use it:
    ///
    /// ```compile_fail,E0382
    /// # use halo_gpu::{Device, Error, reduction};
    /// # fn main() -> Result<(), Error> {
    /// # let device = Device::cpu();
    /// let mut field = device.zeros::<f32>(3)?;
    /// let moved = field.move_to(&device.beside()?)?;
    /// field.fill(1.0)?;
    /// # let _ = moved;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::NotReplayable`] while either device records on this
    /// thread, [`Error::Driver`].
    pub fn move_to(self, device: &Device) -> Result<Self, Error> {
        if self.device == *device {
            return Ok(self);
        }
        let Self {
            storage,
            len,
            shape,
            device: from,
        } = self;
        let storage = match (storage, device.backend()) {
            (Storage::Host(own), Backend::Cpu) => Storage::Host(own),
            #[cfg(halo_cuda)]
            (Storage::Cuda(memory), Backend::Cuda(cuda)) => Storage::Cuda(memory.hand_to(cuda)?),
            (storage, _) => {
                let source = Self {
                    storage,
                    len,
                    shape,
                    device: from,
                };
                let mut moved = Self::from_slice(device, &source.to_vec()?)?;
                moved.shape = shape;
                return Ok(moved);
            }
        };
        Ok(Self {
            storage,
            len,
            shape,
            device: device.clone(),
        })
    }

    /// The elements themselves, when the buffer is on [`Device::cpu`]; else `None`.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let mut buffer = Device::cpu().upload(&[1, 2, 3])?;
    /// if let Some(values) = buffer.as_host_mut_slice() {
    ///     values[1] = 7; // no copy
    /// }
    /// assert_eq!(buffer.as_host_slice(), Some(&[1, 7, 3][..]));
    /// assert_eq!(Device::emulator().upload(&[1, 2, 3])?.as_host_slice(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_host_slice(&self) -> Option<&[T]> {
        match &self.storage {
            Storage::Host(own) => Some(own),
            Storage::Lent(own) => Some(own),
            _ => None,
        }
    }

    /// The elements themselves for writing, when the buffer is on
    /// [`Device::cpu`]; else `None`.
    #[must_use]
    pub fn as_host_mut_slice(&mut self) -> Option<&mut [T]> {
        match &mut self.storage {
            Storage::Host(own) => Some(own),
            _ => None,
        }
    }

    /// The address of the first element, as kernels see it: on CUDA devices a
    /// `CUdeviceptr`, for [CUDA code of your own](Device::with_cuda_stream). Never
    /// null and always aligned for `T`; there is nothing to be read when the buffer
    /// is empty.
    ///
    /// For the compiler it is a number. The code that uses it must make sure that the buffer still
    /// exists, and that nothing else uses memory that it writes.
    ///
    /// ```
    /// use halo_gpu::Device;
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let buffer = Device::emulator().upload(&[1.0_f64; 3])?;
    /// assert!(buffer.device_address() != 0 && buffer.device_address() % 8 == 0);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn device_address(&self) -> u64 {
        self.storage.address()
    }

    /// Memory that CUDA code of your own has allocated, as a buffer: the other way of
    /// [`device_address`](Self::device_address). Nothing is copied, and nothing is freed
    /// when the buffer is dropped.
    ///
    /// ```
    /// use halo_gpu::{Buffer, Device, Error};
    ///
    /// # fn main() -> Result<(), Error> {
    /// let device = Device::best();
    /// // In place of what cudaMalloc gives:
    /// let theirs = device.upload(&[1.0_f32, 2.0, 3.0])?;
    /// // SAFETY: these are three numbers on this device, which stay until `view` is gone
    /// // and what was done with it is done; it is only read.
    /// match unsafe { Buffer::<f32>::from_device_address(&device, theirs.device_address(), 3) } {
    ///     Ok(view) => assert_eq!(halo_gpu::reduction::sum(&view)?, 6.0),
    ///     Err(error) => assert!(matches!(error, Error::NotCuda { .. }), "{error}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotCuda`] on other devices; [`Error::InvalidParameter`] for an address that
    /// is null, or no multiple of 16 or of `T`'s alignment, if that is more;
    /// [`Error::IndexOverflow`] for more bytes than an object can have.
    ///
    /// # Safety
    ///
    /// - At `address` are `len` initialised elements of `T`, in memory that kernels on
    ///   `device` can read and write, also by the driver's copies.
    /// - They stay there until the buffer has been dropped and the work is done that was
    ///   given to the device before: until [`Device::synchronize`] has returned, or in the
    ///   order of the [device's stream](Device::with_cuda_stream). Work that was
    ///   [recorded](Device::record) counts as given each time that it is replayed.
    /// - Until then nobody else writes them, and nobody else reads them if the buffer is
    ///   written; work of other streams on them is over before, by an event, say.
    pub unsafe fn from_device_address(
        device: &Device,
        address: u64,
        len: usize,
    ) -> Result<Self, Error> {
        let bytes = bytes_of::<T>(len)?;
        #[cfg(halo_cuda)]
        if let Backend::Cuda(cuda) = device.backend() {
            if bytes == 0 {
                return Ok(Self::empty(device, len));
            }
            // Kernels rely on it wherever they read and write vectors.
            let alignment = align_of::<T>().max(VECTOR_BYTES) as u64;
            if address == 0 || !address.is_multiple_of(alignment) {
                return Err(Error::InvalidParameter {
                    operation: "a buffer of memory from elsewhere",
                    parameter: "the address",
                    given: format!("{address:#x}"),
                    required: format!("not 0, and a multiple of {alignment}"),
                });
            }
            // SAFETY: the caller's promise.
            let memory = unsafe { cuda.foreign(address, bytes) };
            return Ok(Self {
                storage: Storage::Cuda(memory),
                len,
                shape: Shape::Line(len),
                device: device.clone(),
            });
        }
        let _ = (address, bytes);
        Err(device.not_cuda("a buffer of memory from elsewhere"))
    }

    pub(super) fn require_len(&self, what: &'static str, given: usize) -> Result<(), Error> {
        require_len(what, self.len, given)
    }
}

/// Refuses another number of elements than `required`.
pub(crate) fn require_len(what: &'static str, required: usize, given: usize) -> Result<(), Error> {
    if given == required {
        return Ok(());
    }
    Err(Error::LengthMismatch {
        argument: what.into(),
        required,
        given,
    })
}

/// The caller's slice as a buffer to read: on [`Device::cpu`] in its place, on other devices
/// a copy.
pub(crate) struct Lent<'a, T: Element> {
    buffer: Buffer<T>,
    slice: PhantomData<&'a [T]>,
}

impl<'a, T: Element> Lent<'a, T> {
    /// The slice for operations on `device`.
    ///
    /// # Errors
    ///
    /// As [`Device::upload`].
    pub(crate) fn new(device: &Device, slice: &'a [T]) -> Result<Self, Error> {
        let buffer = match device.backend() {
            Backend::Cpu => {
                // SAFETY: nobody sees the longer lifetime. The buffer is only given out as
                // `&Buffer` for as long as this value is borrowed, which is within 'a; what
                // reads the storage gives out borrows of the buffer, or copies, and what
                // takes it out of the buffer needs `&mut Buffer` or the buffer itself.
                let longer = unsafe { std::mem::transmute::<&'a [T], &'static [T]>(slice) };
                Buffer {
                    storage: Storage::Lent(longer),
                    len: slice.len(),
                    shape: Shape::Line(slice.len()),
                    device: device.clone(),
                }
            }
            _ => device.upload(slice)?,
        };
        Ok(Self {
            buffer,
            slice: PhantomData,
        })
    }

    /// The slice as a buffer.
    pub(crate) const fn as_buffer(&self) -> &Buffer<T> {
        &self.buffer
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for In<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        // SAFETY: the address is that of `len` initialised elements of `T` on
        // the buffer's device, and the shared borrow keeps them there and
        // unwritten for 'a, or the promise given to `from_device_address`.
        unsafe { In::from_raw(buffer.device_address(), buffer.len) }
    }
}

/// A buffer that is written also serves as input, e.g. of an in-place kernel.
impl<'a, T: Element> From<&'a mut Buffer<T>> for In<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        In::from(&*buffer)
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for Out<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        // SAFETY: as above, and the unique borrow keeps everybody else away
        // from the elements for 'a.
        unsafe { Out::from_raw(buffer.device_address(), buffer.len) }
    }
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("type", &std::any::type_name::<T>())
            .field("shape", &self.shape)
            .field("device", &self.device.name())
            .finish()
    }
}

/// The longest vector that a kernel of the library reads or writes at once: what every
/// buffer is aligned to.
#[cfg(halo_cuda)]
const VECTOR_BYTES: usize = 16;
