//! Chart axes: scale, range and ticks.

use crate::units::{power_of_two, tick};

/// The mapping of values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    /// Logarithmic, ticks at 1, 2 and 5 times powers of ten.
    Decades,
    /// Logarithmic, ticks at powers of two.
    Octaves,
}

impl Scale {
    /// The position of a value, in the axis' own units. `None` where the scale has no position for
    /// it.
    pub(crate) fn position(self, value: f64) -> Option<f64> {
        let position = match self {
            Self::Linear => value,
            Self::Decades => value.log10(),
            Self::Octaves => value.log2(),
        };
        // A position this large would make the length of an axis infinite.
        (position.abs() < 1e300).then_some(position)
    }

    /// The value at a position.
    pub(crate) fn value(self, position: f64) -> f64 {
        match self {
            Self::Linear => position,
            Self::Decades => 10f64.powf(position),
            Self::Octaves => position.exp2(),
        }
    }
}

/// A position with its label.
type Tick = (f64, String);

/// One axis of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// Its quantity and unit.
    pub(crate) label: String,
    pub(crate) scale: Scale,
    /// The ends, as positions.
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) ticks: Vec<Tick>,
    /// Positions of grid lines without labels.
    pub(crate) lines: Vec<f64>,
}

impl Axis {
    /// An axis that contains all these values, with room at both ends and about this many ticks.
    /// Values without a position are left out.
    pub(crate) fn around(
        label: &str,
        scale: Scale,
        values: impl IntoIterator<Item = f64>,
        most_ticks: usize,
    ) -> Self {
        let mut ends: Option<(f64, f64)> = None;
        for position in values.into_iter().filter_map(|value| scale.position(value)) {
            let (low, high) = ends.unwrap_or((position, position));
            ends = Some((low.min(position), high.max(position)));
        }
        let Some((low, high)) = ends else {
            return Self::between(label, scale, (0.0, 1.0), most_ticks);
        };
        // An axis of no length has no scale: a single value gets some length.
        let least = match scale {
            Scale::Linear => (low.abs() * 0.2).max(f64::MIN_POSITIVE.sqrt()),
            Scale::Decades => 0.1,
            Scale::Octaves => 2.0,
        };
        let middle = low / 2.0 + high / 2.0;
        let half = (high / 2.0 - low / 2.0).max(least / 2.0) * 1.06;
        Self::between(label, scale, (middle - half, middle + half), most_ticks)
    }

    /// An axis from 0 to a little above the largest of these values.
    pub(crate) fn from_zero(
        label: &str,
        values: impl IntoIterator<Item = f64>,
        most_ticks: usize,
    ) -> Self {
        let values = values.into_iter();
        let most = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .max_by(f64::total_cmp);
        let end = most.map_or(1.0, |most| if most < 1e300 { most * 1.06 } else { most });
        Self::between(label, Scale::Linear, (0.0, end), most_ticks)
    }

    fn between(label: &str, scale: Scale, (start, end): (f64, f64), most_ticks: usize) -> Self {
        let most = most_ticks.max(2);
        let (ticks, lines) = match scale {
            Scale::Linear => (linear_ticks(start, end, most), Vec::new()),
            Scale::Decades => decade_ticks(start, end, most),
            Scale::Octaves => (octave_ticks(start, end, most), Vec::new()),
        };
        Self {
            label: label.to_owned(),
            scale,
            start,
            end,
            ticks,
            lines,
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(start: f64, end: f64, most: usize) -> Vec<Tick> {
    let rough = (end - start) / most as f64;
    let power = 10f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|factor| factor * power);
    let step = steps
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    // The step of a short axis far from zero can be smaller than the rounding error.
    if !(step.is_normal() && (start / step).abs() < 1e12 && (end / step).abs() < 1e12) {
        return Vec::new();
    }
    let first = (start / step - 1e-9).ceil() as i64;
    let last = (end / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|index| index as f64 * step)
        .map(|value| (value, tick(value)))
        .collect()
}

/// Powers of ten where there are enough of them, else 1, 2 and 5 times those, else as many
/// multiples as there is room for. The other multiples of powers of ten are lines without labels.
fn decade_ticks(start: f64, end: f64, most: usize) -> (Vec<Tick>, Vec<f64>) {
    const DIGITS: [i32; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    if end - start < 0.6 {
        // Less than a power of ten looks almost linear.
        let ticks = linear_ticks(10f64.powf(start), 10f64.powf(end), most).into_iter();
        let ticks = ticks.map(|(value, label)| (value.log10(), label));
        return (
            ticks.filter(|tick| tick.0.is_finite()).collect(),
            Vec::new(),
        );
    }
    let multiples = |factors: &[i32], every: i32| -> Vec<Tick> {
        let powers =
            (start.floor() as i32..=end.ceil() as i32).filter(|power| power.rem_euclid(every) == 0);
        powers
            .flat_map(|power| factors.iter().map(move |&factor| (factor, power)))
            .map(|(factor, power)| {
                // From its digits: the logarithm would make 0.09999… of 10^-1.
                let value = format!("{factor}e{power}").parse().unwrap_or(f64::NAN);
                (f64::from(power) + f64::from(factor).log10(), tick(value))
            })
            .filter(|(at, _)| (start - 1e-9..=end + 1e-9).contains(at))
            .collect()
    };
    let lines = |factors, of: &[Tick]| {
        let all = multiples(factors, 1);
        if all.len() == of.len() {
            Vec::new()
        } else {
            all.into_iter().map(|tick| tick.0).collect()
        }
    };
    for factors in [&DIGITS[..], &[1, 2, 5], &[1]] {
        let ticks = multiples(factors, 1);
        if (2..=most).contains(&ticks.len()) {
            let lines = lines(&DIGITS, &ticks);
            return (ticks, lines);
        }
    }
    // More decades than room for labels: every second, third, ...
    let every = multiples(&[1], 1).len().div_ceil(most).max(1);
    let ticks = multiples(&[1], every as i32);
    let lines = lines(&[1], &ticks);
    (ticks, lines)
}

/// Powers of two, every second, third, ... of them where there are many.
fn octave_ticks(start: f64, end: f64, most: usize) -> Vec<Tick> {
    let powers = start.ceil() as i32..=end.floor() as i32;
    let every = powers.clone().count().div_ceil(most).max(1) as i32;
    powers
        .filter(|power| power.rem_euclid(every) == 0)
        .map(|power| (f64::from(power), power_of_two(power)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value is between the ends of an axis.
    fn holds(axis: &Axis, value: f64) -> bool {
        axis.scale
            .position(value)
            .is_some_and(|position| axis.start <= position && position <= axis.end)
    }

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn linear_axes_start_at_zero_and_hold_everything() {
        let axis = Axis::from_zero("B/s", [1.0e12, 4.2e12, f64::NAN, -3.0], 6);
        assert_eq!(labels(&axis), ["0", "1 T", "2 T", "3 T", "4 T"]);
        assert!(holds(&axis, 4.2e12) && holds(&axis, 0.0) && !holds(&axis, 1e13));
    }

    #[test]
    fn decades_are_labelled_and_halved_where_there_is_room() {
        let axis = Axis::around("", Scale::Decades, [0.3, 9e4], 8);
        assert_eq!(labels(&axis), ["1", "10", "100", "1 k", "10 k", "100 k"]);
        let axis = Axis::around("", Scale::Decades, [0.5, 2.2], 8);
        assert_eq!(labels(&axis), ["0.5", "0.6", "0.7", "0.8", "0.9", "1", "2"]);
        let axis = Axis::around("", Scale::Decades, [0.9, 1.2], 8);
        assert_eq!(
            labels(&axis),
            ["0.9", "0.95", "1", "1.05", "1.1", "1.15", "1.2"]
        );
    }

    #[test]
    fn octaves_are_thinned_evenly() {
        let axis = Axis::around("", Scale::Octaves, [1024.0, 1024.0 * 1048576.0], 6);
        assert_eq!(labels(&axis), ["4 Ki", "64 Ki", "1 Mi", "16 Mi", "256 Mi"]);
        let axis = Axis::around("", Scale::Octaves, [0.5, 1e30], 6);
        assert_eq!(
            labels(&axis),
            ["1", "256 Ki", "64 Gi", "16 Pi", "2⁷²", "2⁹⁰"]
        );
    }

    #[test]
    fn every_axis_has_length_and_ticks_within_it() {
        let scales = [Scale::Linear, Scale::Decades, Scale::Octaves];
        let cases: [&[f64]; 5] = [
            &[1.0],
            &[1e-300, 1e300],
            &[1e15, 1e15 + 1.0],
            &[5.0, f64::INFINITY, f64::NAN],
            &[f64::MAX, 1e299, f64::MIN_POSITIVE],
        ];
        for scale in scales {
            for values in cases {
                let axis = Axis::around("", scale, values.iter().copied(), 8);
                let text = format!("{scale:?} {values:?} {axis:?}");
                assert!(axis.start < axis.end && axis.end.is_finite(), "{text}");
                assert!(axis.ticks.len() <= 10, "{text}");
                for (position, _) in &axis.ticks {
                    let slack = 1e-6 * (axis.end - axis.start);
                    assert!(*position >= axis.start - slack, "{text}");
                    assert!(*position <= axis.end + slack, "{text}");
                }
                for value in values.iter().filter(|value| **value < 1e300) {
                    assert!(holds(&axis, *value), "{text}");
                }
            }
        }
    }

    #[test]
    fn an_axis_of_nothing_is_from_nought_to_one() {
        for axis in [
            Axis::around("", Scale::Decades, [0.0, -1.0, f64::NAN], 8),
            Axis::from_zero("", [0.0], 8),
        ] {
            assert_eq!((axis.start, axis.end), (0.0, 1.0));
        }
    }
}
