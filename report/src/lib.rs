//! Benchmark records and the forms in which they are shown: text, CSV, HTML and charts.
//!
//! The benchmark measures and fills a [`Record`]; this crate measures nothing. A record holds
//! measurements and no derived values: rates, ratios and limits are computed where they are shown.
//!
//! | file | contents |
//! |---|---|
//! | `record`, `stats` | the results of a run, and the statistics of repeated launches |
//! | `scaling` | runs over several ranks: their record, a model, and their tables, page and charts
//! |
//! | `file` | records on disk: read, joined, written whole or not at all |
//! | `view`, `units` | a record prepared for display, numbers formatted for people |
//! | `text`, `csv` | tables for a terminal, lines for spreadsheets |
//! | `page` | one HTML file with charts and sortable tables |
//! | `figure` | the values and the texts of each chart |
//! | `canvas`, `axis`, `palette` | the drawing of a chart: SVG, scales and ticks, colours and marks
//! |

mod axis;
mod canvas;
mod csv;
mod figure;
pub mod file;
mod page;
mod palette;
pub mod record;
#[cfg(test)]
mod sample;
pub mod scaling;
mod shown;
pub mod stats;
mod text;
mod units;
mod view;

pub use csv::to_csv;
pub use page::{html, svg_files};
pub use record::Record;
pub use text::{header, legend, of_family, to_text};
pub use units::printable;

/// A record could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read, written or made.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The operation that failed, in the infinitive: "read", "write".
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not a record.
    #[error("cannot read {} as a record of the benchmark", path.display())]
    Json {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Two records cannot be joined.
    #[error("{} does not belong with {}: {why}", second.display(), first.display())]
    Join {
        /// The file that the others are added to.
        first: std::path::PathBuf,
        /// The file that could not be added.
        second: std::path::PathBuf,
        /// The difference that prevents joining them.
        why: String,
    },
    /// The lines of a record could not be formatted.
    #[error("cannot write comma-separated values")]
    Csv(#[from] ::csv::Error),
}
