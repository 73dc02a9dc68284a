//! The statistics of repeated timings.

use std::time::Duration;

use serde::Serialize;

/// What repeated launches took, in seconds.
///
/// The median stands for the kernel: one launch that something else delayed
/// moves a mean, not a median. The spread says how far to trust it: a
/// difference between two kernels below it is noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    /// How many launches were timed.
    pub(crate) launches: usize,
    pub(crate) median_s: f64,
    pub(crate) min_s: f64,
    pub(crate) max_s: f64,
    /// Half the distance between the quartiles, divided by the median.
    pub(crate) relative_spread: f64,
}

impl Times {
    /// The statistics of these timings; `None` for none at all.
    pub(crate) fn of(timings: &[Duration]) -> Option<Self> {
        let mut seconds: Vec<f64> = timings.iter().map(Duration::as_secs_f64).collect();
        seconds.sort_by(f64::total_cmp);
        let (&min_s, &max_s) = (seconds.first()?, seconds.last()?);
        let median_s = quantile(&seconds, 0.5);
        let half_quartiles = (quantile(&seconds, 0.75) - quantile(&seconds, 0.25)) / 2.0;
        Some(Self {
            launches: seconds.len(),
            median_s,
            min_s,
            max_s,
            relative_spread: if median_s > 0.0 {
                half_quartiles / median_s
            } else {
                0.0
            },
        })
    }
}

/// The value at this fraction of the way through sorted, non-empty values,
/// interpolated between neighbours.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let position = fraction * (sorted.len() - 1) as f64;
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(milliseconds: &[u64]) -> Times {
        let timings: Vec<Duration> = milliseconds
            .iter()
            .map(|&ms| Duration::from_millis(ms))
            .collect();
        Times::of(&timings).unwrap()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-12
    }

    #[test]
    fn median_of_odd_and_even_counts() {
        assert!(close(times(&[5]).median_s, 0.005));
        assert!(close(times(&[9, 1, 5]).median_s, 0.005));
        assert!(close(times(&[4, 1, 9, 6]).median_s, 0.005));
    }

    #[test]
    fn one_delayed_launch_moves_the_maximum_only() {
        let times = times(&[10, 10, 10, 10, 900]);
        assert!(close(times.median_s, 0.010));
        assert!(close(times.max_s, 0.900) && close(times.min_s, 0.010));
        assert!(close(times.relative_spread, 0.0));
        assert_eq!(times.launches, 5);
    }

    #[test]
    fn spread_is_half_the_quartile_distance_over_the_median() {
        // Quartiles 2 and 4, median 3.
        assert!(close(times(&[1, 2, 3, 4, 5]).relative_spread, 1.0 / 3.0));
    }

    #[test]
    fn no_timings_have_no_statistics() {
        assert_eq!(Times::of(&[]), None);
    }
}
