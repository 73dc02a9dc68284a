//! The report to look at: one page that needs no other file, and its charts as
//! files of their own.
//!
//! | file | what is in it |
//! |---|---|
//! | `roofline`, `dots`, `sizes` | which values a chart shows, and what is said about it |
//! | `canvas`, `axis`, `palette` | how it is drawn: plotters' grid, marks with tooltips, colours |
//! | `data` | the report as charts need it |
//! | `html`, `markup` | the page and its tables |
//!
//! Every chart is drawn twice, for wide and for narrow places, and the page shows
//! the one that fits. A chart without data is left out, and the page says why.

mod axis;
mod canvas;
mod data;
mod dots;
mod figure;
mod html;
mod markup;
mod palette;
mod roofline;
mod sizes;

use figure::Outcome;

use super::report::Report;
use crate::error::Error;

/// The report as one page that needs no other file.
pub(crate) fn html(report: &Report) -> Result<String, Error> {
    html::page(report, &charts(report))
}

/// The charts as files: their names, and what goes into them.
pub(crate) fn svg_files(report: &Report) -> Result<Vec<(String, String)>, Error> {
    let mut files = Vec::new();
    for chart in charts(report) {
        if let Outcome::Drawn(figure) = chart {
            files.push((format!("{}.svg", figure.slug), figure.to_document()?));
        }
    }
    Ok(files)
}

/// All charts, drawn or left out, in the order of the page.
fn charts(report: &Report) -> Vec<Outcome<'_>> {
    let mut charts = vec![roofline::figure(report)];
    charts.extend(dots::ratios(report));
    charts.push(dots::limits(report));
    charts.extend((0..report.families.len()).map(|hue| sizes::figure(report, hue)));
    charts
}

#[cfg(test)]
mod tests;
