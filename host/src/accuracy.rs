//! Measures the errors of a result against the exact one, in f64.

/// Root-mean-square and maximum of the pointwise errors of a result.
///
/// A NaN in any error makes both NaN. Write a check so that NaN fails: `!(errors.max <= bound)`, or
/// [`Errors::within`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    /// √(mean of the squared errors), in the unit of the values.
    pub rms: f64,
    /// The largest absolute error, in the unit of the values.
    pub max: f64,
}

impl Errors {
    /// The errors of `values` against `exact(index)`.
    ///
    /// No values give NaN, not zero: a check that compared nothing must not pass.
    ///
    /// ```
    /// let errors = halo_gpu::Errors::of(&[1.0_f32, 2.5], |i| [1.0, 2.0][i]);
    /// assert_eq!(errors.max, 0.5);
    /// assert_eq!(errors.rms, (0.25_f64 / 2.0).sqrt());
    /// ```
    pub fn of<T: Copy + Into<f64>>(values: &[T], exact: impl Fn(usize) -> f64) -> Self {
        let (mut sum, mut max) = (0.0, 0.0);
        for (index, &value) in values.iter().enumerate() {
            let error = (value.into() - exact(index)).abs();
            sum += error * error;
            // f64::max would drop a NaN.
            if !(error <= max) {
                max = if f64::is_nan(max) { max } else { error };
            }
        }
        if values.is_empty() {
            max = f64::NAN;
        }
        Self {
            rms: (sum / values.len() as f64).sqrt(),
            max,
        }
    }

    /// Whether both errors are numbers and no larger than their bounds.
    ///
    /// ```
    /// use halo_gpu::Errors;
    ///
    /// let errors = Errors { rms: 0.1, max: 0.5 };
    /// assert!(errors.within(0.1, 0.5) && !errors.within(0.1, 0.4));
    /// assert!(!Errors { rms: f64::NAN, max: 0.0 }.within(1.0, 1.0));
    /// ```
    #[must_use]
    pub fn within(&self, rms: f64, max: f64) -> bool {
        self.rms <= rms && self.max <= max
    }
}

#[cfg(test)]
mod tests {
    use super::Errors;

    #[test]
    fn nan_never_passes() {
        for values in [[f32::NAN, 0.0], [0.0, f32::NAN], [f32::NAN, f32::INFINITY]] {
            let errors = Errors::of(&values, |_| 0.0);
            assert!(errors.rms.is_nan() && errors.max.is_nan(), "{errors:?}");
            assert!(!errors.within(f64::INFINITY, f64::INFINITY));
        }
    }

    #[test]
    fn nothing_never_passes() {
        assert!(!Errors::of::<f32>(&[], |_| 0.0).within(f64::INFINITY, f64::INFINITY));
    }
}
