//! What the suites share: the devices they run on, fresh random inputs with a
//! printed seed, and comparisons that NaN fails.
//!
//! There is one suite per family, written once. It runs every implementation on
//! every device there is: the CPU ports, the kernels in the emulator, and with
//! the feature `gpu` the kernels on CUDA device 0. With that feature and no
//! device a suite fails; nothing passes by skipping.

use halo_gpu::case::Entry;
use halo_gpu::{Device, EmulatorOptions};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use std::fmt::{Debug, Display};
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

#[cfg(doctest)]
mod chapters;
pub mod property;
pub mod ptx;

pub use halo_gpu::test_cases;

/// Whether launches are verified in suites that ask for it: yes, unless `HALO_TEST_VERIFY` is 0.
/// `cargo xtask mutate` sets it to 0, to see quickly what a single run notices.
#[must_use]
pub fn verify() -> bool {
    std::env::var_os("HALO_TEST_VERIFY").is_none_or(|value| value != "0")
}

/// The devices that run kernels: the emulator, and CUDA device 0 with the feature `gpu`. If all
/// cases run ([`test_cases`]), the emulator repeats every launch in several thread orders and with
/// several poisons, and compares the results.
///
/// # Panics
///
/// With the feature `gpu`, where there is no CUDA device.
#[must_use]
pub fn kernel_devices() -> Vec<Device> {
    let emulator = Device::emulator_with(EmulatorOptions {
        verify: verify() && test_cases::all(),
        ..EmulatorOptions::default()
    });
    #[cfg(not(feature = "gpu"))]
    return vec![emulator];
    #[cfg(feature = "gpu")]
    return vec![emulator, cuda()];
}

/// CUDA device 0.
///
/// # Panics
///
/// Where there is none: a suite asked to run on a GPU must not pass without one.
#[cfg(feature = "gpu")]
#[must_use]
pub fn cuda() -> Device {
    Device::cuda(0).unwrap_or_else(|error| {
        panic!("the feature `gpu` runs the suites on CUDA device 0, which cannot be used: {error}")
    })
}

/// All devices: the CPU and those that run kernels.
#[must_use]
pub fn devices() -> Vec<Device> {
    let mut devices = vec![Device::cpu()];
    devices.extend(kernel_devices());
    devices
}

/// Random numbers from a fresh seed, or from `HALO_TEST_SEED`.
///
/// The seed is printed, which shows when the test fails; setting the variable
/// to it repeats the failure.
#[must_use]
pub fn rng() -> SmallRng {
    let seed = match std::env::var("HALO_TEST_SEED") {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("HALO_TEST_SEED is {text:?}, but must be a u64")),
        Err(_) => rand::random(),
    };
    println!("HALO_TEST_SEED={seed}");
    SmallRng::seed_from_u64(seed)
}

/// `len` numbers in [-1, 1), none of them special.
pub fn uniform(rng: &mut impl Rng, len: usize) -> Vec<f32> {
    (0..len).map(|_| rng.random_range(-1.0..1.0)).collect()
}

/// Whether a family's enum and the table of kernels use the same name for a variant.
#[must_use]
pub fn is_called(entry: &Entry, variant: impl Debug) -> bool {
    entry.variant.replace('_', "") == format!("{variant:?}").to_lowercase()
}

/// Names the case while a panic unwinds past it.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

/// Runs `case` on every item, and fails when there was none.
///
/// Says which item it was when a case panics, and how many there were.
///
/// # Panics
///
/// When `items` is empty.
pub fn for_each<T: Debug>(what: &str, items: impl IntoIterator<Item = T>, mut case: impl FnMut(T)) {
    let mut cases = 0_usize;
    for item in items {
        let _named = Named(format!("{what}: {item:?}"));
        case(item);
        cases += 1;
    }
    assert!(cases > 0, "{what}: no case was run");
    println!("{what}: {cases} cases");
}

/// As [`for_each`], on as many threads as there are processors.
///
/// # Panics
///
/// When `items` is empty, and where a case panics.
pub fn for_each_in_parallel<T: Debug>(
    what: &str,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    case: impl Fn(T) + Sync,
) {
    let items = Mutex::new(items.into_iter());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let cases = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let _named = Named(format!("{what}: {item:?}"));
                    case(item);
                    cases.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let cases = cases.into_inner();
    assert!(cases > 0, "{what}: no case was run");
    println!("{what}: {cases} cases");
}

/// Floats and integers, compared by their bits.
pub trait Bits: Copy + Debug + PartialEq + bytemuck::NoUninit {
    /// The bits, widened.
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($type:ty => $to_bits:expr),+ $(,)?) => {$(
        impl Bits for $type {
            fn bits(self) -> u64 {
                let to_bits: fn($type) -> u64 = $to_bits;
                to_bits(self)
            }
        }
    )+};
}

bits! {
    f32 => |x| u64::from(x.to_bits()),
    f64 => f64::to_bits,
    i32 => |x| u64::from(x as u32),
    u32 => u64::from,
    i64 => |x| x as u64,
    u64 => |x| x,
}

/// Fails unless both have the same length and the same bits everywhere.
///
/// # Panics
///
/// Naming the first element that differs, with `at` to say where it lies.
#[track_caller]
pub fn assert_same_bits<T: Bits, P: Display>(got: &[T], expected: &[T], at: impl Fn(usize) -> P) {
    assert_eq!(got.len(), expected.len(), "lengths differ");
    // Compares all bytes at once: without optimisation, a loop over the elements is slow.
    if bytemuck::cast_slice::<T, u8>(got) == bytemuck::cast_slice::<T, u8>(expected) {
        return;
    }
    let differing = |index: &usize| got[*index].bits() != expected[*index].bits();
    if let Some(first) = (0..got.len()).find(differing) {
        let count = (first..got.len()).filter(differing).count();
        panic!(
            "{count} of {} elements differ; the first, {}, is {:?} (bits {:#x}), expected {:?} (bits {:#x})",
            got.len(),
            at(first),
            got[first],
            got[first].bits(),
            expected[first],
            expected[first].bits(),
        );
    }
}
