//! A value of another type.

use cuda_std::host::{In, Out};
use cuda_std::kernel;

/// A launcher's type of buffer.
struct Buffer<T>(Vec<T>);

impl<'a, T> From<&'a Buffer<T>> for In<'a, T> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        // SAFETY: borrowed for `'a`.
        unsafe { In::from_raw(buffer.0.as_ptr() as u64, buffer.0.len()) }
    }
}

impl<'a, T> From<&'a mut Buffer<T>> for Out<'a, T> {
    fn from(buffer: &'a mut Buffer<T>) -> Self {
        // SAFETY: borrowed mutably for `'a`.
        unsafe { Out::from_raw(buffer.0.as_mut_ptr() as u64, buffer.0.len()) }
    }
}

#[kernel]
unsafe fn scale(x: &[f32], n: usize, out: *mut f32) {
    let _ = (x, n, out);
}

fn main() {
    let (x, mut y) = (Buffer(vec![1.0_f32]), Buffer(vec![1.0_f32]));
    let _ = scale::args(&x, 1.0, &mut y);
}
