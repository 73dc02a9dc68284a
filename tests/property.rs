//! Common parts of property tests: the devices and the awkward numbers that they draw, and an
//! oracle for the faults of an input, which is compared with the returned error.

use halo_gpu::{Device, Error, test_cases};
use proptest::prelude::*;
use proptest::sample::select;
use std::ops::Range;

/// This many cases, or a third if only some run. Failures are printed, and not stored in a file.
#[must_use]
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: test_cases::either(cases.div_ceil(3), cases),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The CPU three times in four, else one that runs kernels: the emulator, which runs each
/// launch once, or, with the feature `gpu`, CUDA device 0.
///
/// # Panics
///
/// With the feature `gpu`, where there is no CUDA device.
pub fn device() -> impl Strategy<Value = Device> {
    let emulator = Just(()).prop_map(|()| Device::emulator());
    #[cfg(not(feature = "gpu"))]
    let kernels = emulator;
    #[cfg(feature = "gpu")]
    let kernels = {
        // One for all cases: each handle loads the kernels again.
        static CUDA: std::sync::OnceLock<Device> = std::sync::OnceLock::new();
        prop_oneof![
            emulator,
            Just(()).prop_map(|()| CUDA.get_or_init(crate::cuda).clone())
        ]
    };
    prop_oneof![
        3 => Just(()).prop_map(|()| Device::cpu()),
        1 => kernels,
    ]
}

/// The points of a shape, or a number that is too many.
#[must_use]
pub fn points_of([nx, ny, nz]: [usize; 3]) -> u128 {
    (nx as u128 * ny as u128).saturating_mul(nz as u128)
}

/// An extent from `small` or, one time in eight, one at the limits of integers and memory.
pub fn extent(small: Range<usize>) -> impl Strategy<Value = usize> {
    let limits = vec![
        0,
        1,
        (1 << 31) - 1,
        1 << 31,
        1 << 32,
        1 << 33,
        // Of 8 bytes each they would fill more than memory can have.
        1 << 60,
        isize::MAX as usize,
        usize::MAX,
    ];
    prop_oneof![7 => small, 1 => select(limits)]
}

/// Numbers that few expect: none, infinite, zero, negative, and at the limits of f32 and
/// f64.
pub fn awkward() -> impl Strategy<Value = f64> {
    let tiny = f64::from(f32::from_bits(1));
    let limits = vec![
        1e-200,
        1e-46,
        tiny,
        1e-38,
        1e38,
        // More than f32 has, but half of it is not.
        6e38,
        1e39,
        1e300,
        f64::from_bits(1),
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
    ];
    prop_oneof![
        3 => select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY]),
        2 => select(vec![0.0, -0.0, -1.0]),
        4 => select(limits),
        1 => any::<f64>(),
    ]
}

/// A number from `ordinary` or, one time in eight, an awkward one.
pub fn number(ordinary: Range<f64>) -> impl Strategy<Value = f64> {
    prop_oneof![7 => ordinary, 1 => awkward()]
}

/// True one time in `times`.
pub fn rarely(times: u32) -> impl Strategy<Value = bool> {
    prop_oneof![times - 1 => Just(false), 1 => Just(true)]
}

/// The faults of an input, according to an oracle.
///
/// Each fault is the variant of [`Error`] that speaks of it and words of the text that
/// name it. Of several any may be the one that is reported.
#[derive(Debug, Clone, Default)]
pub struct Faults(Vec<(&'static str, String)>);

impl Faults {
    /// No faults so far.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// These and, where `wrong`, another.
    #[must_use]
    pub fn and(mut self, wrong: bool, variant: &'static str, words: impl Into<String>) -> Self {
        if wrong {
            self.0.push((variant, words.into()));
        }
        self
    }

    /// The faults of two parts of an input together.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The result for the input, or `None` where it was refused for one of its faults.
    ///
    /// # Errors
    ///
    /// When an input with faults was accepted, one without was refused, or the error is
    /// that of another fault.
    pub fn judge<T>(&self, outcome: Result<T, Error>) -> Result<Option<T>, TestCaseError> {
        match outcome {
            Ok(value) => {
                prop_assert!(self.is_empty(), "accepted in spite of {:?}", self.0);
                Ok(Some(value))
            }
            Err(error) => {
                let debug = format!("{error:?}");
                let end = debug.find(|c: char| !c.is_alphanumeric());
                let variant = &debug[..end.unwrap_or(debug.len())];
                let text = error.to_string();
                let right = (self.0.iter())
                    .any(|(expected, words)| *expected == variant && text.contains(words));
                prop_assert!(right, "{variant} ({text}), not one of {:?}", self.0);
                Ok(None)
            }
        }
    }
}
