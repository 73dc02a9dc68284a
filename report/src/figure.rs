//! Charts: the values they show and their captions.
//!
//! Every chart is drawn twice, for wide and for narrow places, and the page shows
//! the one that fits. A chart without data is left out, with the reason.

mod chart;
mod dots;
mod roofline;
mod sizes;

use crate::record::Record;

pub(crate) use chart::{Figure, LeftOut, Outcome};

/// All charts, drawn or left out, in the order of the page.
pub(crate) fn all(record: &Record) -> Vec<Outcome<'_>> {
    let mut charts = vec![roofline::figure(record)];
    charts.extend(dots::ratios(record));
    charts.push(dots::limits(record));
    charts.extend((0..record.families.len()).map(|hue| sizes::figure(record, hue)));
    charts
}
