//! Colours and marks, told apart by hue, by lightness and by shape.
//!
//! Charts are drawn in the light colours, as attributes, so that they look right
//! in programs that know nothing of style sheets. Where dark is preferred, the
//! style sheet that [`style`] makes from the same table replaces each colour by
//! its dark counterpart. The hues are those that Okabe and Ito (2008) and Tol
//! (2021) propose for readers with any kind of colour vision, darkened or
//! lightened to stand out from the background by 3 : 1 or more.

use std::fmt::Write as _;

use plotters::style::RGBColor;

/// A colour by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// Behind everything.
    Paper,
    /// Axes and what is written.
    Ink,
    /// Tick labels, and what matters less.
    Faint,
    /// Lines of the grid at labelled ticks.
    Grid,
    /// Lines of the grid between those.
    FineGrid,
    /// A range of values that does not matter.
    Band,
    /// One of a few that must be told apart.
    Hue(usize),
}

/// The hues, in light and in dark.
const HUES: [(u32, u32); 6] = [
    (0x00_66_a6, 0x5a_b4_ea), // blue
    (0xc8_51_00, 0xff_8f_4a), // vermilion
    (0x00_80_5c, 0x35_c4_9a), // bluish green
    (0xa8_2f_75, 0xf0_8c_c4), // purple
    (0x3b_2c_96, 0xb3_a7_ff), // indigo
    (0x7a_62_00, 0xe0_c0_4a), // olive
];

impl Colour {
    /// Everything there is to restyle.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        [
            Self::Paper,
            Self::Ink,
            Self::Faint,
            Self::Grid,
            Self::FineGrid,
            Self::Band,
        ]
        .into_iter()
        .chain((0..HUES.len()).map(Self::Hue))
    }

    /// As it is in light, and in dark. No two are the same: the style sheet
    /// recognises a colour by its light form.
    fn pair(self) -> (u32, u32) {
        match self {
            Self::Paper => (0xff_ff_ff, 0x14_17_1c),
            Self::Ink => (0x1b_1f_24, 0xe8_ea_ed),
            Self::Faint => (0x5a_62_6c, 0x9d_a5_b0),
            Self::Grid => (0xd5_d9_de, 0x3a_40_4a),
            Self::FineGrid => (0xed_ef_f2, 0x23_28_2f),
            Self::Band => (0xe2_e6_eb, 0x2d_33_3c),
            Self::Hue(hue) => HUES[hue % HUES.len()],
        }
    }

    /// As an attribute has it.
    pub(super) fn hex(self) -> String {
        format!("#{:06X}", self.pair().0)
    }

    /// As plotters takes it.
    pub(super) fn rgb(self) -> RGBColor {
        let [_, r, g, b] = self.pair().0.to_be_bytes();
        RGBColor(r, g, b)
    }
}

/// The style sheet of a chart that stands alone or in a page: the font, and the
/// dark colours.
pub(super) fn style() -> String {
    let mut style = String::from(
        ".chart text{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\
         .chart .mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace}\
         .chart .mark:hover{stroke-width:4}\n\
         @media (prefers-color-scheme:dark){",
    );
    for colour in Colour::all() {
        let (light, (_, dark)) = (colour.hex(), colour.pair());
        let _ = write!(
            style,
            ".chart [fill=\"{light}\"]{{fill:#{dark:06X}}}.chart [stroke=\"{light}\"]{{stroke:#{dark:06X}}}"
        );
    }
    style.push_str("}\n");
    style
}

/// The outline of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Inverted,
    Cross,
}

impl Shape {
    /// The shape that goes with a hue.
    pub(super) fn of(hue: usize) -> Self {
        [
            Self::Circle,
            Self::Square,
            Self::Triangle,
            Self::Diamond,
            Self::Inverted,
            Self::Cross,
        ][hue % 6]
    }

    /// The outline as path data, about a point; all shapes look equally large.
    pub(super) fn path(self, (x, y): (f64, f64), radius: f64) -> String {
        let polygon = |corners: &[(f64, f64)]| {
            let mut path = String::new();
            for (index, (dx, dy)) in corners.iter().enumerate() {
                let command = if index == 0 { 'M' } else { 'L' };
                let _ = write!(
                    path,
                    "{command}{:.1} {:.1}",
                    x + dx * radius,
                    y + dy * radius
                );
            }
            path.push('Z');
            path
        };
        match self {
            Self::Circle => format!(
                "M{:.1} {y:.1}a{radius:.1} {radius:.1} 0 1 0 {:.1} 0a{radius:.1} {radius:.1} 0 1 0 {:.1} 0Z",
                x - radius,
                2.0 * radius,
                -2.0 * radius
            ),
            Self::Square => polygon(&[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)]),
            Self::Triangle => polygon(&[(0.0, -1.2), (1.1, 0.85), (-1.1, 0.85)]),
            Self::Diamond => polygon(&[(0.0, -1.28), (1.28, 0.0), (0.0, 1.28), (-1.28, 0.0)]),
            Self::Inverted => polygon(&[(0.0, 1.2), (1.1, -0.85), (-1.1, -0.85)]),
            Self::Cross => {
                let (a, b) = (0.38, 1.1);
                polygon(&[
                    (-a, -b),
                    (a, -b),
                    (a, -a),
                    (b, -a),
                    (b, a),
                    (a, a),
                    (a, b),
                    (-a, b),
                    (-a, a),
                    (-b, a),
                    (-b, -a),
                    (-a, -a),
                ])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG's relative luminance.
    fn luminance(colour: u32) -> f64 {
        let [_, r, g, b] = colour.to_be_bytes().map(|channel| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.040_45 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: u32, b: u32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn everything_stands_out_from_the_paper() {
        let (light, dark) = Colour::Paper.pair();
        for colour in Colour::all() {
            let least = match colour {
                Colour::Paper | Colour::Grid | Colour::FineGrid | Colour::Band => continue,
                // What is read, and what is seen.
                Colour::Ink | Colour::Faint => 4.5,
                Colour::Hue(_) => 3.0,
            };
            let pair = colour.pair();
            assert!(contrast(pair.0, light) >= least, "{colour:?} in light");
            assert!(contrast(pair.1, dark) >= least, "{colour:?} in dark");
        }
    }

    #[test]
    fn every_colour_has_a_form_of_its_own() {
        let mut seen = Vec::new();
        for colour in Colour::all() {
            assert!(!seen.contains(&colour.hex()), "{colour:?}");
            seen.push(colour.hex());
            assert!(style().contains(&format!("[stroke=\"{}\"]", colour.hex())));
        }
    }
}
