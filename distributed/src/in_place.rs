//! [`InPlace`]: sends parts of a field in host memory from the field itself, and receives messages
//! into other parts of it, without buffers in between.

use halo_gpu::{Buffer, Element, allocation};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// A field in host memory, taken out of its buffer. Messages are sent from some parts of it, and
/// received into others. When this value is dropped, the field goes back into the buffer, which is
/// empty until then.
pub(crate) struct InPlace<'b, T: Element> {
    buffer: &'b mut Buffer<T>,
    /// `None` once the buffer has the field again.
    owner: Option<Arc<Owner<T>>>,
    /// The elements that messages are received into; no two ranges overlap.
    received: Vec<Range<usize>>,
    /// Whether the received parts have been taken.
    is_taken: bool,
}

/// Keeps the elements of a field until the last part is dropped.
struct Owner<T: Element> {
    field: Buffer<T>,
    start: NonNull<T>,
}

// SAFETY: the pointer alone gives no access to the elements. Only the parts do, and their SAFETY
// comments hold on every thread. The last part may drop the buffer on another thread: it is `Send`.
unsafe impl<T: Element> Send for Owner<T> where Buffer<T>: Send {}
// SAFETY: as above. `InPlace::field` may lend the buffer to several threads: a `Buffer` is `Sync`.
unsafe impl<T: Element> Sync for Owner<T> where Buffer<T>: Send + Sync {}

/// An [`Owner`] of elements of any type. A part holds it, so that its elements stay allocated.
trait Keep: Send + Sync {}

impl<T: Element> Keep for Owner<T> {}

/// The bytes of some elements.
struct Bytes {
    _owner: Arc<dyn Keep>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: any thread may drop the owner, and the pointer alone gives no access to the elements.
unsafe impl Send for Bytes {}

/// A part to send. Nothing writes its elements while it exists.
pub(crate) struct Sent(Bytes);

/// A part to receive into. Nothing else reads or writes its elements while it exists.
pub(crate) struct Received(Bytes);

impl Sent {
    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.0.len
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        let Bytes { start, len, .. } = self.0;
        // SAFETY: the owner keeps the elements, which have no padding. Nobody can write them: no
        // received part overlaps them, and `InPlace` lends the field for reading only, and returns
        // it only when no part is left.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }
    }
}

impl Received {
    /// The number of bytes.
    pub(crate) const fn len(&self) -> usize {
        self.0.len
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        let Bytes { start, len, .. } = self.0;
        // SAFETY: the owner keeps the elements, for which all bit patterns are valid. Nobody else
        // has access to them: no other part overlaps them, and `InPlace` neither lends a field with
        // received parts nor returns it before all parts are dropped.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }
}

impl<'b, T: Element> InPlace<'b, T> {
    /// Takes the field of a buffer, and the ranges of its elements that messages are received into.
    /// `None`, and the buffer keeps its field, if it is not in host memory, or if the ranges overlap
    /// or exceed it.
    ///
    /// # Errors
    ///
    /// As [`Device::zeros`](halo_gpu::Device::zeros), for no elements.
    pub(crate) fn new(
        buffer: &'b mut Buffer<T>,
        received: Vec<Range<usize>>,
    ) -> Result<Option<Self>, halo_gpu::Error> {
        let fit = received.iter().enumerate().all(|(n, range)| {
            is_in(range, buffer.len()) && received[..n].iter().all(|other| are_apart(range, other))
        });
        // A field without received parts may be read as a whole beside its parts, so the pointer
        // must not claim to be the only one.
        let start = if received.is_empty() {
            buffer.as_host_slice().map(|it| it.as_ptr().cast_mut())
        } else {
            buffer.as_host_mut_slice().map(<[T]>::as_mut_ptr)
        };
        let Some(start) = start.and_then(NonNull::new).filter(|_| fit) else {
            return Ok(None);
        };
        let empty = buffer.device().zeros(0)?;
        let field = std::mem::replace(buffer, empty);
        Ok(Some(Self {
            buffer,
            owner: Some(Arc::new(Owner { field, start })),
            received,
            is_taken: false,
        }))
    }

    /// The field. `None` if messages are received into parts of it.
    pub(crate) fn field(&self) -> Option<&Buffer<T>> {
        let owner = self.owner.as_ref().filter(|_| self.received.is_empty());
        owner.map(|owner| &owner.field)
    }

    /// These elements as a part to send. `None` if the field does not have them, or if messages are
    /// received into some of them.
    pub(crate) fn sent(&self, elements: Range<usize>) -> Option<Sent> {
        let apart = self.received.iter().all(|it| are_apart(it, &elements));
        self.bytes(elements).filter(|_| apart).map(Sent)
    }

    /// All parts to receive into, in the order of their ranges. A second call returns none.
    pub(crate) fn take_received(&mut self) -> Vec<Received> {
        if std::mem::replace(&mut self.is_taken, true) {
            return Vec::new();
        }
        let received = self.received.iter();
        let parts = received.filter_map(|range| self.bytes(range.clone()));
        parts.map(Received).collect()
    }

    /// The bytes of these elements, if the field has them.
    fn bytes(&self, elements: Range<usize>) -> Option<Bytes> {
        let owner = self.owner.as_ref()?;
        if !is_in(&elements, owner.field.len()) {
            return None;
        }
        // SAFETY: the elements are in the field.
        let start = unsafe { owner.start.add(elements.start) };
        Some(Bytes {
            _owner: Arc::<Owner<T>>::clone(owner),
            start: start.cast(),
            len: elements.len() * size_of::<T>(),
        })
    }

    /// Puts the field back into its buffer. As long as there are parts, they keep the field, and
    /// the buffer gets a copy with zeros in place of the elements that are received.
    ///
    /// # Errors
    ///
    /// As [`Buffer::from_vec`] and [`allocation::zeroed`], for a copy; then the buffer stays empty.
    pub(crate) fn put_back(mut self) -> Result<(), halo_gpu::Error> {
        self.restore()
    }

    fn restore(&mut self) -> Result<(), halo_gpu::Error> {
        let Some(owner) = self.owner.take() else {
            return Ok(());
        };
        let owner = match Arc::try_unwrap(owner) {
            Ok(owner) => {
                *self.buffer = owner.field;
                return Ok(());
            }
            Err(owner) => owner,
        };
        let len = owner.field.len();
        let mut copy: Vec<T> = allocation::zeroed(len)?;
        self.received.sort_by_key(|range| range.start);
        let ends = self.received.iter().map(|range| range.start).chain([len]);
        let mut begin = 0;
        for (n, end) in ends.enumerate() {
            // SAFETY: these elements are in the field. Messages are received into none of them, so
            // nobody writes them.
            let kept =
                unsafe { std::slice::from_raw_parts(owner.start.add(begin).as_ptr(), end - begin) };
            copy[begin..end].copy_from_slice(kept);
            begin = self.received.get(n).map_or(len, |range| range.end);
        }
        let copy = Buffer::from_vec(owner.field.device(), copy)?;
        *self.buffer = copy.shaped(owner.field.shape())?;
        Ok(())
    }
}

impl<T: Element> Drop for InPlace<'_, T> {
    fn drop(&mut self) {
        // Without memory for a copy the buffer stays empty.
        let _ = self.restore();
    }
}

fn is_in(range: &Range<usize>, len: usize) -> bool {
    range.start <= range.end && range.end <= len
}

fn are_apart(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.end <= other.start || other.end <= one.start
}

impl fmt::Debug for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sent").field(&self.len()).finish()
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Received").field(&self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::InPlace;
    use halo_gpu::{Buffer, Device, Shape2};

    fn numbers() -> Buffer<u16> {
        let numbers: Vec<u16> = (0..10).collect();
        Device::cpu().upload(&numbers).expect("enough memory")
    }

    fn values(field: &Buffer<u16>) -> Vec<u16> {
        field.to_vec().expect("on the host")
    }

    #[test]
    fn parts_are_sent_and_received_where_they_are() {
        let mut buffer = numbers();
        let field = InPlace::new(&mut buffer, vec![7..9, 0..2]);
        let mut field = field.expect("enough memory").expect("the ranges fit");
        assert!(field.field().is_none());
        let sent = field.sent(3..5).expect("not received");
        assert_eq!(sent.as_slice(), bytemuck::bytes_of(&[3_u16, 4]));
        for elements in [1..3, 6..8, 8..10, 9..11, 0..10] {
            assert!(field.sent(elements.clone()).is_none(), "{elements:?}");
        }
        let mut received = field.take_received();
        assert!(field.take_received().is_empty());
        assert_eq!((received.len(), received[0].len()), (2, 4));
        let bytes: &[u8] = bytemuck::bytes_of(&[70_u16, 80]);
        received[0].as_mut_slice().copy_from_slice(bytes);
        received[1]
            .as_mut_slice()
            .copy_from_slice(bytemuck::bytes_of(&[10_u16, 11]));
        drop((sent, received));
        field.put_back().expect("no part is left");
        assert_eq!(values(&buffer), [10, 11, 2, 3, 4, 5, 6, 70, 80, 9]);
    }

    #[test]
    fn a_field_with_parts_left_is_copied() {
        let mut buffer = numbers().shaped(Shape2::new(5, 2)).expect("ten elements");
        let field = InPlace::new(&mut buffer, vec![4..6, 0..1]);
        let mut field = field.expect("enough memory").expect("the ranges fit");
        let sent = field.sent(6..8).expect("not received");
        let mut received = field.take_received();
        field.put_back().expect("enough memory");
        assert_eq!(values(&buffer), [0, 1, 2, 3, 0, 0, 6, 7, 8, 9]);
        assert_eq!(buffer.shape(), Shape2::new(5, 2).into());
        received[0].as_mut_slice().fill(0xff);
        buffer.fill(5).expect("on the host");
        assert_eq!(sent.as_slice(), bytemuck::bytes_of(&[6_u16, 7]));
        assert_eq!(values(&buffer), [5; 10]);
    }

    #[test]
    fn after_a_panic_the_buffer_has_its_field() {
        let mut buffer = numbers();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let field = InPlace::new(&mut buffer, Vec::new());
            let field = field.expect("enough memory").expect("it has no parts");
            assert_eq!(field.field().map(values).map(|it| it.len()), Some(10));
            let _sent = field.sent(0..4);
            panic!("as a caller's work may");
        }));
        assert!(panicked.is_err());
        assert_eq!(values(&buffer), values(&numbers()));
    }

    #[test]
    fn only_fields_on_the_host_have_parts_which_do_not_overlap() {
        let refused = |mut buffer: Buffer<u16>, received| {
            let field = InPlace::new(&mut buffer, received).expect("enough memory");
            assert!(field.is_none());
            drop(field);
            assert_eq!(values(&buffer), values(&numbers()));
        };
        refused(numbers(), vec![0..4, 3..5]);
        refused(numbers(), vec![0..1, 9..11]);
        let elsewhere = Device::emulator().upload(&values(&numbers()));
        refused(elsewhere.expect("enough memory"), Vec::new());
    }
}
