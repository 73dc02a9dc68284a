//! Formats numbers for people: a few digits and a suitable unit.

use crate::stats::Times;

/// The text with the replacement character for every character that does not simply show: control
/// characters of terminals, characters that change the direction of text, and characters that XML
/// forbids.
#[must_use]
pub fn printable(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
    };
    text.replace(obeyed, "\u{fffd}")
}

/// A time: "4.80 µs".
pub(crate) fn duration(seconds: f64) -> String {
    let (scale, unit) = match seconds {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{:.2} {unit}", seconds * scale)
}

/// A median with its spread, if there was more than one launch: "4.80 µs ±1.2 %".
pub(crate) fn median(times: &Times) -> String {
    let median = duration(times.median_s);
    if times.launches < 2 {
        return median;
    }
    format!("{median} ±{:.1} %", 100.0 * times.relative_spread)
}

/// A rate: "4.31 TB/s", "12.00 G interactions/s".
pub(crate) fn quantity(value: f64, unit: &str) -> String {
    let (value, prefix) = with_prefix(value);
    // A word is set off by a blank.
    let gap = if prefix.is_empty() || unit.starts_with(char::is_uppercase) {
        ""
    } else {
        " "
    };
    format!("{value:.2} {prefix}{gap}{unit}")
}

/// A number in thousands, millions, … and the prefix for those.
fn with_prefix(value: f64) -> (f64, &'static str) {
    match value.abs() {
        v if v >= 1e12 => (value / 1e12, "T"),
        v if v >= 1e9 => (value / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, "M"),
        v if v >= 1e3 => (value / 1e3, "k"),
        _ => (value, ""),
    }
}

/// A tick's value in its few digits: "0.25", "500", "2 T".
pub(crate) fn tick(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e15).contains(&value.abs()) {
        let power = value.abs().log10().floor();
        let digits = (value / 10f64.powf(power)).round();
        return format!("{digits}·10{}", superscript(power as i32));
    }
    let (scaled, prefix) = with_prefix(value);
    // Six significant digits are more than any tick has, and too few to show the rounding error of
    // its value; converted back, they print without zeros.
    let digits = usize::try_from(5 - scaled.abs().log10().floor() as i32).unwrap_or(0);
    let number: f64 = format!("{scaled:.digits$}").parse().unwrap_or(scaled);
    format!("{number} {prefix}").trim_end().to_owned()
}

/// A power of two with a binary prefix: "512", "16 Ki", "1 Gi".
pub(crate) fn power_of_two(exponent: i32) -> String {
    let prefixes = ["", " Ki", " Mi", " Gi", " Ti", " Pi", " Ei"];
    let prefix = usize::try_from(exponent / 10)
        .ok()
        .and_then(|tens| prefixes.get(tens));
    match prefix {
        Some(prefix) if exponent >= 0 => format!("{}{prefix}", 1 << (exponent % 10)),
        _ => format!("2{}", superscript(exponent)),
    }
}

/// An exponent in raised digits.
fn superscript(exponent: i32) -> String {
    let raised = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    exponent.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_take_a_unit_that_suits_them() {
        assert_eq!(duration(2.5), "2.50 s");
        assert_eq!(duration(2.5e-3), "2.50 ms");
        assert_eq!(duration(2.5e-6), "2.50 µs");
        assert_eq!(duration(2.5e-8), "25.00 ns");
        assert_eq!(quantity(4.312e12, "B/s"), "4.31 TB/s");
        assert_eq!(quantity(1.2e10, "interactions/s"), "12.00 G interactions/s");
        assert_eq!(quantity(5.0, "points/s"), "5.00 points/s");
    }

    #[test]
    fn ticks_have_as_few_digits_as_they_need() {
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
            assert_eq!(tick(value), text);
        }
        assert_eq!(
            [-3, 9, 34, 72].map(power_of_two),
            ["2⁻³", "512", "16 Gi", "2⁷²"]
        );
    }
}
