//! Colours and marks that differ in hue, lightness and shape.
//!
//! Charts are drawn in the light colours, as attributes, so that they are right in programs without
//! style sheets. For a dark background, the style sheet that [`style`] makes from the same table
//! replaces each colour by its dark counterpart. The hues are those that Okabe and Ito (2008) and
//! Tol (2021) propose for readers with any kind of colour vision, darkened or lightened to a
//! contrast of 3 : 1 or more.

/// A colour, named by its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// The background.
    Paper,
    /// Axes and text.
    Ink,
    /// Tick labels and secondary text.
    Faint,
    /// Lines of the grid at labelled ticks.
    Grid,
    /// Lines of the grid between those ticks.
    FineGrid,
    /// A range of values within the noise.
    Band,
    /// One of a few colours that must be distinguishable.
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
    /// All colours that the style sheet replaces.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        use Colour::{Band, Faint, FineGrid, Grid, Hue, Ink, Paper};
        let plain = [Paper, Ink, Faint, Grid, FineGrid, Band];
        plain.into_iter().chain((0..HUES.len()).map(Hue))
    }

    /// Its light and its dark form. No two light forms are equal: the style sheet recognises a
    /// colour by it.
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

    /// Its light form, as in an attribute.
    pub(crate) fn hex(self) -> String {
        format!("#{:06X}", self.pair().0)
    }
}

impl maud::Render for Colour {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str(&self.hex());
    }
}

/// The style sheet of a chart, alone or in a page: the font, and the dark colours. It contains no
/// character with a meaning in XML.
pub(crate) fn style() -> String {
    let dark = Colour::all().map(|colour| {
        let (light, (_, dark)) = (colour.hex(), colour.pair());
        ["fill", "stroke"]
            .map(|it| format!(".chart [{it}=\"{light}\"]{{{it}:#{dark:06X}}}"))
            .concat()
    });
    format!(
        ".chart text{{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}}\
         .chart .mono{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace}}\
         .chart .mark:hover{{stroke-width:4}}\n\
         @media (prefers-color-scheme:dark){{{}}}\n",
        dark.collect::<String>()
    )
}

/// The outline of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Circle,
    Square,
    Triangle,
    Diamond,
    Inverted,
    Cross,
}

impl Shape {
    /// The shape that goes with a hue.
    pub(crate) fn of(hue: usize) -> Self {
        use Shape::{Circle, Cross, Diamond, Inverted, Square, Triangle};
        [Circle, Square, Triangle, Diamond, Inverted, Cross][hue % 6]
    }

    /// The outline as path data, about a point; all shapes look equally large.
    pub(crate) fn path(self, (x, y): (f64, f64), radius: f64) -> String {
        let corners: &[(f64, f64)] = match self {
            Self::Circle => {
                let (left, r, across) = (x - radius, radius, 2.0 * radius);
                return format!(
                    "M{left:.1} {y:.1}a{r:.1} {r:.1} 0 1 0 {across:.1} 0a{r:.1} {r:.1} 0 1 0 -{across:.1} 0Z"
                );
            }
            Self::Square => &[(-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)],
            Self::Triangle => &[(0.0, -1.2), (1.1, 0.85), (-1.1, 0.85)],
            Self::Diamond => &[(0.0, -1.28), (1.28, 0.0), (0.0, 1.28), (-1.28, 0.0)],
            Self::Inverted => &[(0.0, 1.2), (1.1, -0.85), (-1.1, -0.85)],
            Self::Cross => {
                const A: f64 = 0.38;
                const B: f64 = 1.1;
                #[rustfmt::skip]
                const CORNERS: [(f64, f64); 12] = [
                    (-A, -B), (A, -B), (A, -A), (B, -A), (B, A), (A, A),
                    (A, B), (-A, B), (-A, A), (-B, A), (-B, -A), (-A, -A),
                ];
                &CORNERS
            }
        };
        let mut path = String::new();
        for (index, (dx, dy)) in corners.iter().enumerate() {
            let command = if index == 0 { 'M' } else { 'L' };
            path += &format!("{command}{:.1} {:.1}", x + dx * radius, y + dy * radius);
        }
        path + "Z"
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
                // Text needs more contrast than marks.
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
