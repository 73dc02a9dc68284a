//! Launches the elementwise kernels, on a CUDA device or on the emulator. Each function checks
//! everything that its kernel relies on, so generic code may call it safely.

use super::places::Places;
use crate::device::{View, require_len};
use crate::variants::launch_registered;
use crate::{Buffer, Constants, Element, Error};
use gpu_kernels::elementwise::{axpby::*, clamp::*, difference::*, put::*};
use gpu_kernels::registry::Problem;

/// Blocks per multiprocessor for the kernel that finds the largest difference.
const DIFFERENCE_BLOCKS: usize = 8;

/// The kernels for one type.
pub trait Kernels: Element {
    /// `y ← a x + b y`.
    fn launch_axpby(a: Self, x: &Buffer<Self>, b: Self, y: &mut Buffer<Self>) -> Result<(), Error>;

    /// `y ← min(max(y, low), high)`.
    fn launch_clamp(y: &mut Buffer<Self>, low: Self, high: Self) -> Result<(), Error>;

    /// Stores the largest absolute difference in `largest` if it exceeds the number there; NaN
    /// counts as larger than all numbers. `largest` has one element, which is not negative.
    fn launch_difference(
        x: &Buffer<Self>,
        y: &Buffer<Self>,
        largest: &mut Buffer<Self>,
    ) -> Result<(), Error>;

    /// `y[at] ← values` at the indices in `places`.
    fn launch_put(
        values: View<'_, Self>,
        places: &Places,
        y: &mut Buffer<Self>,
    ) -> Result<(), Error>;
}

/// Returns an error unless the buffer has `len` elements and is on the other buffer's device.
pub(super) fn require<T: Element, U: Element>(
    what: &'static str,
    len: usize,
    beside: &Buffer<T>,
    buffer: &Buffer<U>,
) -> Result<(), Error> {
    require_len(what, len, buffer.len())?;
    beside.device().require(what, buffer)
}

macro_rules! kernels {
    ($number:ty: $axpby:ident, $clamp:ident, $difference:ident, $put:ident) => {
        impl Kernels for $number {
            fn launch_axpby(
                a: Self,
                x: &Buffer<Self>,
                b: Self,
                y: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                require("elementwise: y", x.len(), x, y)?;
                let (device, n) = (y.device().clone(), y.len());
                let args = $axpby::args(x, y, n, a, b);
                // SAFETY: x and y have n elements, on `device`, where every allocation is aligned
                // to 16 bytes; x and y are distinct, because y is borrowed mutably. The geometry is
                // the table's.
                unsafe {
                    launch_registered::<$axpby>(&device, &Problem::line(n), &Constants::new(), args)
                }
            }

            fn launch_clamp(y: &mut Buffer<Self>, low: Self, high: Self) -> Result<(), Error> {
                let (device, n) = (y.device().clone(), y.len());
                let args = $clamp::args(y, n, low, high);
                // SAFETY: y has n elements, on `device`, where every allocation is aligned to 16
                // bytes, and is borrowed mutably. The geometry is the table's.
                unsafe {
                    launch_registered::<$clamp>(&device, &Problem::line(n), &Constants::new(), args)
                }
            }

            fn launch_difference(
                x: &Buffer<Self>,
                y: &Buffer<Self>,
                largest: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                require("elementwise: y", x.len(), x, y)?;
                require("elementwise: result", 1, x, largest)?;
                let (device, n) = (x.device().clone(), x.len());
                let most = DIFFERENCE_BLOCKS * device.properties().multiprocessors as usize;
                let line = Problem::line(n).with_resident_blocks(most);
                let args = $difference::args(x, y, n, largest);
                // SAFETY: x and y have n elements and largest has one, all on `device`; the
                // geometry is the table's.
                unsafe { launch_registered::<$difference>(&device, &line, &Constants::new(), args) }
            }

            fn launch_put(
                values: View<'_, Self>,
                places: &Places,
                y: &mut Buffer<Self>,
            ) -> Result<(), Error> {
                places.require(values, y)?;
                let (device, n) = (y.device().clone(), places.len());
                let args = $put::args(places.at(), values, y, n);
                // SAFETY: there are n indices, distinct and within y, and n values, all on
                // `device`; y is a distinct buffer, because it is borrowed mutably. The geometry is
                // the table's.
                unsafe {
                    launch_registered::<$put>(&device, &Problem::line(n), &Constants::new(), args)
                }
            }
        }
    };
}

kernels!(f32: elementwise_axpby_f32, elementwise_clamp_f32, elementwise_difference_f32, elementwise_put_f32);
kernels!(f64: elementwise_axpby_f64, elementwise_clamp_f64, elementwise_difference_f64, elementwise_put_f64);
