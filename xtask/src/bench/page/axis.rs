//! Axes: scales, ranges that hold all values, and where the ticks go.

/// How values become positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Linear,
    /// Logarithmic, ticks at 1, 2 and 5 times powers of ten.
    Decades,
    /// Logarithmic, ticks at powers of two.
    Octaves,
}

impl Scale {
    /// The position of a value, in the axis' own units: what plotters, which is
    /// told of linear axes only, is given. `None` where there is no such place.
    pub(super) fn position(self, value: f64) -> Option<f64> {
        let position = match self {
            Self::Linear => value,
            Self::Decades => value.log10(),
            Self::Octaves => value.log2(),
        };
        // Nor for what is so large that the length of an axis is no number.
        (position.abs() < 1e300).then_some(position)
    }

    /// The value at a position.
    pub(super) fn value(self, position: f64) -> f64 {
        match self {
            Self::Linear => position,
            Self::Decades => 10f64.powf(position),
            Self::Octaves => position.exp2(),
        }
    }
}

/// One axis of a chart.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    /// What is on it, and its unit.
    pub(super) label: String,
    pub(super) scale: Scale,
    /// The ends, as positions.
    pub(super) start: f64,
    pub(super) end: f64,
    /// Positions of labelled ticks, with their labels.
    pub(super) ticks: Vec<(f64, String)>,
    /// Positions of grid lines without labels.
    pub(super) lines: Vec<f64>,
}

impl Axis {
    /// An axis that all these values are on, with room at both ends and about
    /// this many ticks; values that have no place on it are left out. `None` if
    /// that leaves none.
    pub(super) fn around(
        label: impl Into<String>,
        scale: Scale,
        values: impl IntoIterator<Item = f64>,
        most_ticks: usize,
    ) -> Option<Self> {
        let mut ends: Option<(f64, f64)> = None;
        for position in values.into_iter().filter_map(|value| scale.position(value)) {
            let (low, high) = ends.unwrap_or((position, position));
            ends = Some((low.min(position), high.max(position)));
        }
        let (low, high) = ends?;
        // An axis of no length has no scale: a single value gets some of it.
        let least = match scale {
            Scale::Linear => (low.abs() * 0.2).max(f64::MIN_POSITIVE.sqrt()),
            Scale::Decades => 0.1,
            Scale::Octaves => 2.0,
        };
        let middle = low / 2.0 + high / 2.0;
        let half = (high / 2.0 - low / 2.0).max(least / 2.0) * 1.06;
        Some(Self::between(
            label,
            scale,
            middle - half,
            middle + half,
            most_ticks,
        ))
    }

    /// An axis from 0 to a little above the largest of these values.
    pub(super) fn from_zero(
        label: impl Into<String>,
        values: impl IntoIterator<Item = f64>,
        most_ticks: usize,
    ) -> Option<Self> {
        let most = values
            .into_iter()
            .filter(|value| value.is_finite() && *value > 0.0)
            .max_by(f64::total_cmp)?;
        let end = most * 1.06;
        Some(Self::between(
            label,
            Scale::Linear,
            0.0,
            if end.is_finite() { end } else { most },
            most_ticks,
        ))
    }

    /// An axis between these positions.
    pub(super) fn between(
        label: impl Into<String>,
        scale: Scale,
        start: f64,
        end: f64,
        most_ticks: usize,
    ) -> Self {
        let most_ticks = most_ticks.max(2);
        let (ticks, lines) = match scale {
            Scale::Linear => (linear_ticks(start, end, most_ticks), Vec::new()),
            Scale::Decades => decade_ticks(start, end, most_ticks),
            Scale::Octaves => (octave_ticks(start, end, most_ticks), Vec::new()),
        };
        Self {
            label: label.into(),
            scale,
            start,
            end,
            ticks,
            lines,
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(start: f64, end: f64, most: usize) -> Vec<(f64, String)> {
    let rough = (end - start) / most as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough)
        .unwrap_or(10.0 * power);
    // An axis far from zero and short can have a step below its own precision.
    if !(step.is_normal() && (start / step).abs() < 1e12 && (end / step).abs() < 1e12) {
        return Vec::new();
    }
    let first = (start / step - 1e-9).ceil() as i64;
    let last = (end / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|index| {
            let value = index as f64 * step;
            (value, prefixed(value))
        })
        .collect()
}

const DIGITS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];

/// Powers of ten where there are enough of them, else 1, 2 and 5 times those,
/// else as many multiples as there is room for; the rest of the multiples of
/// powers of ten are lines without labels.
fn decade_ticks(start: f64, end: f64, most: usize) -> (Vec<(f64, String)>, Vec<f64>) {
    let (first, last) = (start.floor() as i32, end.ceil() as i32);
    let inside = |position: f64| start - 1e-9 <= position && position <= end + 1e-9;
    let multiples = |factors: &'static [f64]| {
        (first..=last)
            .flat_map(move |power| {
                factors
                    .iter()
                    .map(move |factor| (f64::from(power) + factor.log10(), (*factor, power)))
            })
            .filter(|(position, _)| inside(*position))
            .collect::<Vec<_>>()
    };
    let labelled = |marks: Vec<(f64, (f64, i32))>| {
        marks
            .into_iter()
            .map(|(position, (factor, power))| {
                // From its digits: 10^-1 by way of a logarithm is 0.09999….
                let value = format!("{factor}e{power}").parse().unwrap_or(f64::NAN);
                (position, prefixed(value))
            })
            .collect::<Vec<_>>()
    };
    if end - start < 0.6 {
        // So little of a power of ten hardly differs from a linear scale.
        let (low, high) = (10f64.powf(start), 10f64.powf(end));
        let ticks = linear_ticks(low, high, most)
            .into_iter()
            .map(|(value, label)| (value.log10(), label));
        return (
            ticks.filter(|tick| tick.0.is_finite()).collect(),
            Vec::new(),
        );
    }
    let finest: [&'static [f64]; 3] = [&DIGITS, &[1.0, 2.0, 5.0], &[1.0]];
    for factors in finest {
        let marks = multiples(factors);
        if marks.len() <= most && marks.len() >= 2 {
            let lines = if factors.len() == DIGITS.len() {
                Vec::new()
            } else {
                multiples(&DIGITS).into_iter().map(|mark| mark.0).collect()
            };
            return (labelled(marks), lines);
        }
    }
    // More decades than there is room for labels: every second, third, ...
    let marks = multiples(&[1.0]);
    let every = marks.len().div_ceil(most).max(1) as i32;
    let lines = marks.iter().map(|mark| mark.0).collect();
    let kept = marks
        .into_iter()
        .filter(|(_, (_, power))| power.rem_euclid(every) == 0)
        .collect();
    (labelled(kept), lines)
}

/// Powers of two, every second, third, ... of them where there are many.
fn octave_ticks(start: f64, end: f64, most: usize) -> Vec<(f64, String)> {
    let (first, last) = (start.ceil() as i32, end.floor() as i32);
    let every = usize::try_from(last - first + 1)
        .unwrap_or(0)
        .div_ceil(most)
        .max(1) as i32;
    (first..=last)
        .filter(|power| power.rem_euclid(every) == 0)
        .map(|power| (f64::from(power), power_of_two(power)))
        .collect()
}

/// A power of two with a binary prefix: "512", "16 Ki", "1 Gi".
fn power_of_two(exponent: i32) -> String {
    let (Ok(exponent), prefixes) = (
        usize::try_from(exponent),
        ["", " Ki", " Mi", " Gi", " Ti", " Pi", " Ei"],
    ) else {
        return format!("2{}", superscript(exponent));
    };
    match prefixes.get(exponent / 10) {
        Some(prefix) => format!("{}{prefix}", 1 << (exponent % 10)),
        None => format!("2{}", superscript(exponent as i32)),
    }
}

/// An exponent in raised digits.
fn superscript(exponent: i32) -> String {
    exponent
        .to_string()
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize % 10],
            None => '⁻',
        })
        .collect()
}

/// A tick's value, with as few digits as it has and a decimal prefix where that
/// is shorter: "0.25", "500", "2 T".
pub(super) fn prefixed(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e18).contains(&magnitude) {
        let power = magnitude.log10().floor();
        let digits = (value / 10f64.powf(power)).round();
        return format!("{digits}·10{}", superscript(power as i32));
    }
    let (scale, prefix) = match magnitude {
        m if m >= 1e15 => (1e15, " P"),
        m if m >= 1e12 => (1e12, " T"),
        m if m >= 1e9 => (1e9, " G"),
        m if m >= 1e6 => (1e6, " M"),
        m if m >= 1e3 => (1e3, " k"),
        _ => (1.0, ""),
    };
    // Six significant digits are more than any tick has, and fewer than the
    // rounding error of its value shows in.
    let digits = 5 - (magnitude / scale).log10().floor() as i32;
    let digits = usize::try_from(digits).unwrap_or(0);
    let number = format!("{:.digits$}", value / scale);
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        &number
    };
    format!("{number}{prefix}")
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
    fn prefixes() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (1.0, "1"),
            (500.0, "500"),
            (2e12, "2 T"),
            (1.5e9, "1.5 G"),
            (0.3 - 0.1, "0.2"),
            (1e300, "1·10³⁰⁰"),
            (2e-7, "2·10⁻⁷"),
        ] {
            assert_eq!(prefixed(value), text);
        }
    }

    #[test]
    fn linear_axes_start_at_zero_and_hold_everything() {
        let axis = Axis::from_zero("B/s", [1.0e12, 4.2e12, f64::NAN, -3.0], 6).unwrap();
        assert_eq!(labels(&axis), ["0", "1 T", "2 T", "3 T", "4 T"]);
        assert!(holds(&axis, 4.2e12) && holds(&axis, 0.0) && !holds(&axis, 1e13));
    }

    #[test]
    fn decades_are_labelled_and_halved_where_there_is_room() {
        let axis = Axis::around("", Scale::Decades, [0.3, 9e4], 8).unwrap();
        assert_eq!(labels(&axis), ["1", "10", "100", "1 k", "10 k", "100 k"]);
        let axis = Axis::around("", Scale::Decades, [0.5, 2.2], 8).unwrap();
        assert_eq!(labels(&axis), ["0.5", "0.6", "0.7", "0.8", "0.9", "1", "2"]);
        let axis = Axis::around("", Scale::Decades, [0.9, 1.2], 8).unwrap();
        assert_eq!(
            labels(&axis),
            ["0.9", "0.95", "1", "1.05", "1.1", "1.15", "1.2"]
        );
    }

    #[test]
    fn octaves_are_thinned_evenly() {
        let axis = Axis::around("", Scale::Octaves, [1024.0, 1024.0 * 1048576.0], 6).unwrap();
        assert_eq!(labels(&axis), ["4 Ki", "64 Ki", "1 Mi", "16 Mi", "256 Mi"]);
        let axis = Axis::around("", Scale::Octaves, [0.5, 1e30], 6).unwrap();
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
                let axis = Axis::around("", scale, values.iter().copied(), 8).unwrap();
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
    fn nothing_has_no_axis() {
        assert!(Axis::around("", Scale::Decades, [0.0, -1.0, f64::NAN], 8).is_none());
        assert!(Axis::from_zero("", [0.0], 8).is_none());
    }
}
