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

/// An array of `len` elements of `T` in the memory of one [`Device`].
///
/// A buffer is always fully initialised. Operations on two buffers need both on the same device.
/// Kernels take buffers through `Into`: `&Buffer<T>` becomes an input, `&mut Buffer<T>` an output,
/// so a kernel that writes to a buffer holds the only reference to it.
///
/// You may drop a buffer while work that uses it is still pending: its memory is freed in stream
/// order, after that work.
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
    /// Has `len` points.
    shape: Shape,
    // After the storage, so that the memory is freed before the device can be.
    device: Device,
}

impl Device {
    /// A buffer of `len` elements, all equal to `value`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::IndexOverflow`] if the size in bytes does not fit `usize`,
    /// [`Error::Driver`].
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
    /// As for [`alloc_filled`](Self::alloc_filled).
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        Buffer::filled(self, len, T::zeroed())
    }

    /// A buffer with a copy of `values`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn upload<T: Element>(&self, values: &[T]) -> Result<Buffer<T>, Error> {
        Buffer::from_slice(self, values)
    }

    /// Returns an error unless `buffer` is on this device.
    ///
    /// `argument` is the name of the buffer in the error, such as `"axpy: x"`. Call this for every
    /// buffer before you pass it to a kernel.
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
    /// [`Error::DeviceMismatch`] if it is on another device.
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

    /// A buffer of 0 bytes: without elements, or of a zero-sized type.
    fn empty(device: &Device, len: usize) -> Self {
        let storage = match device.backend() {
            Backend::Cpu => Storage::Host(vec![T::zeroed(); len].into()),
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

    /// The shape set with [`shaped`](Self::shaped); without one, a line of `len` elements.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The same buffer with a shape. Operations on fields of one shape refuse buffers of another
    /// shape, even of the same length. They accept a buffer without a shape if its length fits.
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
    /// [`Error::LengthMismatch`] unless the shape has as many points as the buffer has elements,
    /// [`Error::IndexOverflow`] if the number of points does not fit `usize`.
    pub fn shaped(mut self, shape: impl Into<Shape>) -> Result<Self, Error> {
        let shape = shape.into();
        let points = shape.points()?;
        if points != self.len {
            return Err(Error::LengthMismatch {
                argument: "the buffer to be given a shape".into(),
                required: points,
                given: self.len,
            });
        }
        self.shape = shape;
        Ok(self)
    }

    /// Returns an error if the shape does not fit `required`, or the length differs.
    pub(crate) fn require_shape(
        &self,
        argument: impl Into<Argument>,
        required: impl Into<Shape>,
    ) -> Result<(), Error> {
        require_shape(argument, required.into(), self.shape)
    }

    /// Whether the buffer has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that holds the buffer.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A copy of the elements, in host memory.
    ///
    /// # Errors
    ///
    /// [`Error::Driver`], also if an earlier kernel has failed.
    pub fn to_vec(&self) -> Result<Vec<T>, Error> {
        let mut values = zeroed(self.len)?;
        self.copy_to_slice(&mut values)?;
        Ok(values)
    }

    /// The elements in host memory. Those of [`Device::cpu`] stay in the buffer's memory, and in
    /// their place if they come [from a vector](Self::from_vec); those of other devices are copied.
    ///
    /// # Errors
    ///
    /// As for [`to_vec`](Self::to_vec).
    pub fn into_vec(self) -> Result<Vec<T>, Error> {
        match self.storage {
            Storage::Host(own) => Ok(own.into_vec()),
            _ => self.to_vec(),
        }
    }

    /// A buffer of these elements, the inverse of [`into_vec`](Self::into_vec): on [`Device::cpu`]
    /// it takes over their memory, to other devices they are copied.
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
    /// As for [`Device::upload`].
    pub fn from_vec(device: &Device, values: Vec<T>) -> Result<Self, Error> {
        if !matches!(device.backend(), Backend::Cpu) || size_of_val(&values[..]) == 0 {
            return device.upload(&values);
        }
        Ok(Self {
            len: values.len(),
            shape: Shape::Line(values.len()),
            storage: Storage::Host(values.into()),
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
    /// [`Error::LengthMismatch`] unless `values` has as many elements as the buffer;
    /// [`Error::Driver`], also if an earlier kernel has failed.
    pub fn copy_to_slice(&self, values: &mut [T]) -> Result<(), Error> {
        self.require_len("the slice to copy to", values.len())?;
        self.storage.read(0, values)
    }

    /// Overwrites all elements with `values`.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] unless `values` has as many elements as the buffer;
    /// [`Error::Driver`].
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<(), Error> {
        self.require_len("the slice to copy from", values.len())?;
        self.storage.write(0, values)
    }

    /// Makes the elements of `newer` those of this buffer. `newer` must be on the same device and
    /// have the same length; it gets the old elements, which are no longer needed.
    ///
    /// This is [`std::mem::swap`] of the elements, but also correct within [`Device::record`].
    pub(crate) fn give_way_to(&mut self, newer: &mut Self) {
        // The shapes stay, because the caller set them for each buffer.
        std::mem::swap(&mut self.storage, &mut newer.storage);
        #[cfg(halo_cuda)]
        if let (Storage::Cuda(now), Storage::Cuda(before)) = (&self.storage, &newer.storage) {
            now.note_exchange(before);
        }
    }

    /// Overwrites all elements with those of `source`, on the device.
    ///
    /// # Errors
    ///
    /// [`Error::DeviceMismatch`] unless `source` is on the same device, [`Error::LengthMismatch`]
    /// unless it has as many elements; [`Error::Driver`].
    pub fn copy_from(&mut self, source: &Self) -> Result<(), Error> {
        self.device.require("the buffer to copy from", source)?;
        self.require_len("the buffer to copy from", source.len)?;
        self.storage.copy(0, &source.storage, 0..source.len)
    }

    /// Overwrites all elements with those of `source`, which may be on another device.
    ///
    /// Between CUDA devices, or two handles of one device, the host does not wait: the copy runs
    /// after earlier work of both and before later work of both. If two GPUs can access each
    /// other's memory, the copy bypasses the host. For all other devices, the elements go through
    /// the host.
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
    /// The target cannot be used while it is written:
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
    /// [`Error::LengthMismatch`] unless `source` has as many elements; [`Error::NotReplayable`]
    /// while either device records on this thread, unless both are the same device;
    /// [`Error::HostOutOfMemory`] if the elements go through the host; [`Error::Driver`].
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

    /// A second buffer on the same device with the same elements.
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

    /// Moves the elements to `device`, for its work.
    ///
    /// Between two handles of one CUDA device nothing is copied, and the host does not wait:
    /// `device` takes over the memory, and its later work runs after the earlier work of the
    /// buffer's device. If a [recording](Device::record) may use the memory, `device` gets a copy
    /// instead. Another CUDA device gets a copy in the same order, also without waiting. For all
    /// other devices the elements are copied through the host.
    ///
    /// With [`Device::new_handle`], which opens a second stream of work on the same GPU, the two
    /// handles use a buffer one after the other, never at the same time:
    ///
    /// ```
    /// use halo_gpu::{Device, reduction};
    ///
    /// # fn main() -> Result<(), halo_gpu::Error> {
    /// let device = Device::best();
    /// let other = device.new_handle()?;
    /// let first = device.upload(&[1.0_f32; 1000])?;
    /// let second = other.upload(&[2.0_f32; 1000])?; // while `device` works on the first
    /// let sum = reduction::sum(&first)?;
    /// let both = sum + reduction::sum(&second.move_to(&device)?)?;
    /// assert_eq!(both, 3000.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first handle cannot use the buffer after the move:
    ///
    /// ```compile_fail,E0382
    /// # use halo_gpu::{Device, Error, reduction};
    /// # fn main() -> Result<(), Error> {
    /// # let device = Device::cpu();
    /// let mut field = device.zeros::<f32>(3)?;
    /// let moved = field.move_to(&device.new_handle()?)?;
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

    /// The elements themselves if the buffer is on [`Device::cpu`]; else `None`.
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

    /// The elements themselves, mutable, if the buffer is on [`Device::cpu`]; else `None`.
    #[must_use]
    pub fn as_host_mut_slice(&mut self) -> Option<&mut [T]> {
        match &mut self.storage {
            Storage::Host(own) => Some(own),
            _ => None,
        }
    }

    /// The address of the first element, as kernels see it: on CUDA devices a `CUdeviceptr`, for
    /// [your own CUDA code](Device::with_cuda_stream). It is never null and always aligned for `T`;
    /// if the buffer is empty, nothing may be read there.
    ///
    /// The compiler sees only a number. The code that uses it must make sure that the buffer still
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

    /// Makes a buffer of memory that your own CUDA code has allocated, the inverse of
    /// [`device_address`](Self::device_address). It copies nothing, and dropping the buffer frees
    /// nothing.
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
    /// [`Error::NotCuda`] on other devices; [`Error::InvalidParameter`] if the address is null, or
    /// not a multiple of 16 and of `T`'s alignment; [`Error::IndexOverflow`] for more bytes than a
    /// Rust object can have.
    ///
    /// # Safety
    ///
    /// - At `address` are `len` initialised elements of `T`, in memory that kernels and the
    ///   driver's copies on `device` can read and write.
    /// - They stay there until the buffer has been dropped and the work enqueued on the device
    ///   before that is complete: until [`Device::synchronize`] has returned, or in the order of
    ///   the [device's stream](Device::with_cuda_stream). [Recorded](Device::record) work counts as
    ///   enqueued at every replay.
    /// - Until then nobody else writes them, and nobody else reads them if the buffer is written.
    ///   Work of other streams on them is complete before; an event can ensure that.
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
            // Kernels rely on this alignment when they read and write vectors.
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

/// Returns an error unless `given` is `required` elements.
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

/// The caller's slice as a read-only buffer: on [`Device::cpu`] the slice itself, on other devices
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
    /// As for [`Device::upload`].
    pub(crate) fn new(device: &Device, slice: &'a [T]) -> Result<Self, Error> {
        let buffer = match device.backend() {
            Backend::Cpu => {
                // SAFETY: nobody can use the longer lifetime. The buffer is only reachable as
                // `&Buffer` while this value is borrowed, which is within 'a. Methods that read the
                // storage return borrows of the buffer, or copies, and methods that take the
                // storage out of the buffer need `&mut Buffer` or the buffer itself.
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
        // SAFETY: the address is that of `len` initialised elements of `T` on the buffer's device.
        // The shared borrow, or the promise given to `from_device_address`, keeps them there and
        // unwritten for 'a.
        unsafe { In::from_raw(buffer.device_address(), buffer.len) }
    }
}

/// A buffer that is written also serves as input, for example of an in-place kernel.
impl<'a, T: Element> From<&'a mut Buffer<T>> for In<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        In::from(&*buffer)
    }
}

impl<'a, T: Element> From<&'a mut Buffer<T>> for Out<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        // SAFETY: as above, and the unique borrow prevents all other access to the elements for 'a.
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

/// The longest vector that a kernel of the library reads or writes at once; every buffer is aligned
/// to it.
#[cfg(halo_cuda)]
const VECTOR_BYTES: usize = 16;
