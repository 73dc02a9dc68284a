//! [`Shown`]: the forms of a record.

use serde::Serialize;

use crate::Error;
use crate::record::Record;

/// A record in all the forms in which it can be shown.
pub trait Shown: Serialize {
    /// Tables for a terminal.
    fn to_text(&self) -> String;

    /// Comma-separated values.
    ///
    /// # Errors
    ///
    /// If a line cannot be formatted.
    fn to_csv(&self) -> Result<String, Error>;

    /// One page with charts and tables, which needs no other file.
    fn html(&self) -> String;

    /// The charts as files: names and contents.
    fn svg_files(&self) -> Vec<(String, String)>;

    /// The families that the run was to measure and did not.
    fn missing(&self) -> &[String];

    /// Whether every result is correct.
    fn passes(&self) -> bool;

    /// The word for the missing measurements, where nothing was measured: "rows".
    fn lacks(&self) -> Option<&'static str>;
}

impl Shown for Record {
    fn to_text(&self) -> String {
        crate::to_text(self)
    }

    fn to_csv(&self) -> Result<String, Error> {
        crate::to_csv(self)
    }

    fn html(&self) -> String {
        crate::html(self)
    }

    fn svg_files(&self) -> Vec<(String, String)> {
        crate::svg_files(self)
    }

    fn missing(&self) -> &[String] {
        &self.missing
    }

    fn passes(&self) -> bool {
        self.passes()
    }

    fn lacks(&self) -> Option<&'static str> {
        let problems = self.families.iter().map(|family| family.problems.len());
        if self.rows().next().is_some() {
            return None;
        }
        Some(match (self.families.len(), problems.sum()) {
            (0, _) => "families",
            (_, 0_usize) => "problems",
            _ => "rows",
        })
    }
}
