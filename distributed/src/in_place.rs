//! Parts of a field in the memory of the host that are messages: sent from where they are, and
//! received where they belong.

use halo_gpu::{Buffer, Device, Element, allocation};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// A field on [`Device::cpu`] of which messages are parts.
pub(crate) struct InPlace<T: Element> {
    owner: Arc<Owner<T>>,
    /// The elements that messages are received into; no two ranges overlap.
    received: Vec<Range<usize>>,
    /// Whether they have been taken.
    is_taken: bool,
}

/// Keeps the elements of a field until the last part is dropped.
struct Owner<T: Element> {
    field: Buffer<T>,
    start: NonNull<T>,
}

// SAFETY: the pointer itself gives no access to the elements. Parts do, and what they say of their
// access holds on all threads.
unsafe impl<T: Element> Send for Owner<T> where Buffer<T>: Send {}
// SAFETY: as above.
unsafe impl<T: Element> Sync for Owner<T> where Buffer<T>: Sync {}

/// The owner of a part's elements, of any type.
trait Keep: Send + Sync {}

impl<T: Element> Keep for Owner<T> {}

/// The bytes of some elements.
struct Bytes {
    _owner: Arc<dyn Keep>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: as for `Owner`.
unsafe impl Send for Bytes {}

/// A part that is sent. Nothing writes it while it exists.
pub(crate) struct Sent(Bytes);

/// A part that is received. Nothing else reads or writes it while it exists.
pub(crate) struct Received(Bytes);

impl Sent {
    pub(crate) fn as_slice(&self) -> &[u8] {
        let Bytes { start, len, .. } = self.0;
        // SAFETY: the owner keeps the elements, which have no padding. `InPlace` gives nobody
        // access to write them: no received part overlaps them, and it lends the field for reading.
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
        // SAFETY: the owner keeps the elements, for which all bytes are valid. `InPlace` gives
        // nobody else access to them: no other part overlaps them, and it does not lend a field
        // with received parts.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) }
    }
}

impl<T: Element> InPlace<T> {
    /// A field of which these elements are received. It is returned as it is if it is not on
    /// [`Device::cpu`], or if the ranges overlap or exceed the field.
    pub(crate) fn new(
        mut field: Buffer<T>,
        received: Vec<Range<usize>>,
    ) -> Result<Self, Buffer<T>> {
        let fit = received.iter().enumerate().all(|(n, range)| {
            is_in(range, field.len()) && received[..n].iter().all(|other| are_apart(range, other))
        });
        let start = field.as_host_mut_slice().map(<[T]>::as_mut_ptr);
        match start.and_then(NonNull::new) {
            Some(start) if fit => Ok(Self {
                owner: Arc::new(Owner { field, start }),
                received,
                is_taken: false,
            }),
            _ => Err(field),
        }
    }

    /// The field, unless parts of it are received.
    pub(crate) fn field(&self) -> Option<&Buffer<T>> {
        self.received.is_empty().then_some(&self.owner.field)
    }

    /// The part of these elements, to be sent. `None` if the field does not have them, or some of
    /// them are received.
    pub(crate) fn sent(&self, elements: Range<usize>) -> Option<Sent> {
        let apart = self.received.iter().all(|it| are_apart(it, &elements));
        let fits = apart && is_in(&elements, self.owner.field.len());
        fits.then(|| Sent(self.bytes(elements)))
    }

    /// All parts that are received, in the order of their ranges; the second time, none.
    pub(crate) fn take_received(&mut self) -> Vec<Received> {
        if std::mem::replace(&mut self.is_taken, true) {
            return Vec::new();
        }
        let received = self.received.iter();
        received
            .map(|range| Received(self.bytes(range.clone())))
            .collect()
    }

    /// The bytes of these elements, which the field has.
    fn bytes(&self, elements: Range<usize>) -> Bytes {
        // SAFETY: the elements are in the field.
        let start = unsafe { self.owner.start.add(elements.start) };
        Bytes {
            _owner: Arc::<Owner<T>>::clone(&self.owner),
            start: start.cast(),
            len: elements.len() * size_of::<T>(),
        }
    }

    /// The field, once no part is left. As long as there are parts, they keep the field, and this
    /// is a copy with zeros in place of the elements that are received.
    ///
    /// # Errors
    ///
    /// As [`Buffer::from_vec`] and [`Device::zeros`], where it is a copy.
    pub(crate) fn into_field(self) -> Result<Buffer<T>, halo_gpu::Error> {
        let Self {
            owner,
            mut received,
            ..
        } = self;
        let owner = match Arc::try_unwrap(owner) {
            Ok(owner) => return Ok(owner.field),
            Err(owner) => owner,
        };
        let len = owner.field.len();
        let mut copy: Vec<T> = allocation::zeroed(len)?;
        received.sort_by_key(|range| range.start);
        let ends = received.iter().map(|range| range.start).chain([len]);
        let mut begin = 0;
        for (n, end) in ends.enumerate() {
            // SAFETY: these elements are in the field, and no part that is received has them, so
            // nobody writes them.
            let kept =
                unsafe { std::slice::from_raw_parts(owner.start.add(begin).as_ptr(), end - begin) };
            copy[begin..end].copy_from_slice(kept);
            begin = received.get(n).map_or(len, |range| range.end);
        }
        Buffer::from_vec(&Device::cpu(), copy)
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
        f.debug_tuple("Sent").field(&self.0.len).finish()
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Received").field(&self.0.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::InPlace;
    use halo_gpu::{Buffer, Device};

    fn numbers() -> Buffer<u16> {
        let numbers: Vec<u16> = (0..10).collect();
        Device::cpu().upload(&numbers).expect("enough memory")
    }

    fn values(field: &Buffer<u16>) -> Vec<u16> {
        field.to_vec().expect("on the host")
    }

    #[test]
    fn parts_are_sent_and_received_where_they_are() {
        let Ok(mut field) = InPlace::new(numbers(), vec![7..9, 0..2]) else {
            panic!("the ranges fit");
        };
        assert!(field.field().is_none());
        let sent = field.sent(3..5).expect("not received");
        assert_eq!(sent.as_slice(), bytemuck::bytes_of(&[3_u16, 4]));
        for elements in [1..3, 6..8, 8..10, 9..11, 0..10] {
            assert!(field.sent(elements.clone()).is_none(), "{elements:?}");
        }
        let mut received = field.take_received();
        assert!(field.take_received().is_empty());
        assert_eq!((received.len(), received[0].len()), (2, 4));
        received[0]
            .as_mut_slice()
            .copy_from_slice(bytemuck::bytes_of(&[70_u16, 80]));
        received[1]
            .as_mut_slice()
            .copy_from_slice(bytemuck::bytes_of(&[10_u16, 11]));
        drop((sent, received));
        let field = field.into_field().expect("no part is left");
        assert_eq!(values(&field), [10, 11, 2, 3, 4, 5, 6, 70, 80, 9]);
    }

    #[test]
    fn a_field_with_parts_left_is_copied() {
        let Ok(mut field) = InPlace::new(numbers(), vec![4..6, 0..1]) else {
            panic!("the ranges fit");
        };
        let sent = field.sent(6..8).expect("not received");
        let mut received = field.take_received();
        let mut copy = field.into_field().expect("enough memory");
        assert_eq!(values(&copy), [0, 1, 2, 3, 0, 0, 6, 7, 8, 9]);
        received[0].as_mut_slice().fill(0xff);
        copy.fill(5).expect("on the host");
        assert_eq!(sent.as_slice(), bytemuck::bytes_of(&[6_u16, 7]));
        assert_eq!(values(&copy), [5; 10]);
    }

    #[test]
    fn only_fields_on_the_host_have_parts_which_do_not_overlap() {
        let returned = |field, received| match InPlace::new(field, received) {
            Ok(_) => panic!("that has no such parts"),
            Err(field) => values(&field),
        };
        let all: Vec<u16> = (0..10).collect();
        assert_eq!(returned(numbers(), vec![0..4, 3..5]), all);
        assert_eq!(returned(numbers(), vec![0..1, 9..11]), all);
        let elsewhere = Device::emulator().upload(&all).expect("enough memory");
        assert_eq!(returned(elsewhere, Vec::new()), all);
        let Ok(whole) = InPlace::new(numbers(), Vec::new()) else {
            panic!("it has no parts");
        };
        assert_eq!(whole.field().map(values), Some(all));
    }
}
