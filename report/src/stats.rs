//! The statistics of repeated timings.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The times of repeated launches, in seconds.
///
/// The median represents the kernel: one delayed launch moves a mean, but not a median. A
/// difference between two kernels below the spread is noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The number of timed launches.
    pub launches: usize,
    /// The median.
    pub median_s: f64,
    /// The shortest.
    pub min_s: f64,
    /// The longest.
    pub max_s: f64,
    /// Half the distance between the quartiles, divided by the median; rounded to a thousandth of a
    /// percent.
    pub relative_spread: f64,
}

impl Times {
    /// The statistics of these timings; `None` for none at all.
    #[must_use]
    pub fn of(timings: &[Duration]) -> Option<Self> {
        // Whole numbers, so that a value between two of them has few digits.
        let mut nanoseconds: Vec<f64> = timings.iter().map(|time| time.as_nanos() as f64).collect();
        nanoseconds.sort_by(f64::total_cmp);
        let (&min, &max) = (nanoseconds.first()?, nanoseconds.last()?);
        let median = quantile(&nanoseconds, 0.5);
        let half_quartiles = (quantile(&nanoseconds, 0.75) - quantile(&nanoseconds, 0.25)) / 2.0;
        let spread = if median > 0.0 {
            half_quartiles / median
        } else {
            0.0
        };
        Some(Self {
            launches: nanoseconds.len(),
            median_s: median / 1e9,
            min_s: min / 1e9,
            max_s: max / 1e9,
            relative_spread: (spread * 1e5).round() / 1e5,
        })
    }
}

/// The ratio of one time to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The first median over the second: below 1 the first is faster.
    pub value: f64,
    /// The part of the difference that may be noise: the sum of both relative spreads.
    pub spread: f64,
    /// The conclusion.
    pub verdict: Verdict,
}

/// The conclusion from a ratio of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first takes less time, by more than the spread.
    Faster,
    /// The difference is within the spread.
    Equal,
    /// The first takes more time, by more than the spread.
    Slower,
}

impl Verdict {
    /// The verdict in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Equal => "equal",
            Self::Slower => "slower",
        }
    }
}

impl Ratio {
    /// The ratio of these times to those.
    #[must_use]
    pub fn of(these: &Times, those: &Times) -> Self {
        let value = these.median_s / those.median_s;
        let spread = these.relative_spread + those.relative_spread;
        // In this form a NaN is never called faster.
        let verdict = if value < 1.0 - spread {
            Verdict::Faster
        } else if value <= 1.0 + spread {
            Verdict::Equal
        } else {
            Verdict::Slower
        };
        Self {
            value,
            spread,
            verdict,
        }
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
        assert!(close(times(&[1, 2, 3, 4, 5]).relative_spread, 0.33333));
    }

    #[test]
    fn a_difference_within_the_spread_is_none() {
        // Spreads of 0.1 each: quartiles at ±10 % of the median.
        let around = |median: u64| {
            times(&[
                median * 8,
                median * 9,
                median * 10,
                median * 11,
                median * 12,
            ])
        };
        let verdict = |one, other| Ratio::of(&around(one), &around(other)).verdict;
        let ratio = Ratio::of(&around(110), &around(100));
        assert!(close(ratio.value, 1.1) && close(ratio.spread, 0.2));
        assert_eq!(verdict(100, 100), Verdict::Equal);
        assert_eq!(verdict(119, 100), Verdict::Equal);
        assert_eq!(verdict(121, 100), Verdict::Slower);
        assert_eq!(verdict(81, 100), Verdict::Equal);
        assert_eq!(verdict(79, 100), Verdict::Faster);
    }

    #[test]
    fn without_spread_any_difference_counts() {
        let verdict = |one: &[u64], other: &[u64]| Ratio::of(&times(one), &times(other)).verdict;
        assert_eq!(verdict(&[1000], &[1000]), Verdict::Equal);
        assert_eq!(verdict(&[1001], &[1000]), Verdict::Slower);
        assert_eq!(verdict(&[999], &[1000]), Verdict::Faster);
    }

    #[test]
    fn no_time_at_all_is_never_faster() {
        assert_eq!(
            Ratio::of(&times(&[0]), &times(&[0])).verdict,
            Verdict::Slower
        );
    }

    #[test]
    fn no_timings_have_no_statistics() {
        assert_eq!(Times::of(&[]), None);
    }
}
