//! Where a record goes: to the files that the flags name first, then to standard output.
//!
//! What becomes of one of them is no other's concern: a reader of standard output that
//! goes away, or a disk that is full, costs no file that can be written.

use std::io::ErrorKind;

use halo_report::Record;
use halo_report::file::Outputs;

use crate::Outcome;
use crate::error::{Error, chain};
use crate::flags::Bench;
use crate::output;

/// Takes what was measured, as often as there is more of it.
pub(super) struct Sink {
    outputs: Outputs,
    /// What went wrong the last time that files were written.
    failures: Vec<String>,
    /// Whether standard output takes no more, and that is no one's wish.
    lost: bool,
    closed: bool,
}

impl Sink {
    /// The sink that the flags ask for, of which everything can be written to.
    pub(super) fn open(flags: &Bench) -> Result<Self, Error> {
        let outputs = Outputs {
            json: flags.json.clone(),
            csv: flags.csv.clone(),
            html: flags.html.clone(),
            svg: flags.svg.clone(),
        };
        outputs.check()?;
        Ok(Self {
            outputs,
            failures: Vec::new(),
            lost: false,
            closed: false,
        })
    }

    /// Writes the files; says on standard error what could not be written.
    pub(super) fn save(&mut self, record: &Record) {
        let errors = self.outputs.write(record);
        let failures: Vec<String> = errors.iter().map(|error| chain(error)).collect();
        for failure in failures.iter().filter(|it| !self.failures.contains(it)) {
            eprintln!("error: {failure}");
        }
        self.failures = failures;
    }

    /// Prints this text, if there is any.
    ///
    /// Where nobody reads it and no file is written either, nothing is left to be done:
    /// the process ends, as it would by the signal that Rust programs ignore.
    pub(super) fn print(&mut self, text: &str) {
        let text = text.strip_suffix('\n').unwrap_or(text);
        if self.closed || text.is_empty() {
            return;
        }
        if let Err(error) = output::try_line(text) {
            self.closed = true;
            if error.kind() != ErrorKind::BrokenPipe {
                self.lost = true;
                eprintln!("error: cannot write to standard output: {error}");
            } else if self.outputs.is_empty() {
                std::process::exit(1);
            }
        }
    }

    /// What printing and writing this record came to.
    pub(super) fn outcome(self, record: &Record) -> Result<Outcome, Error> {
        let problems = record
            .families
            .iter()
            .flat_map(|family| &family.problems)
            .count();
        if record.rows().next().is_none() {
            let none = match (record.families.len(), problems) {
                (0, _) => "families",
                (_, 0) => "problems",
                _ => "rows",
            };
            return Err(Error::Bench(format!(
                "nothing was measured: the record has no {none}"
            )));
        }
        let written = self.failures.is_empty() && !self.lost;
        Ok(if record.passes() && written {
            Outcome::Clean
        } else {
            Outcome::Findings
        })
    }
}

/// Shows the record that these files hold, in every form that the flags ask for.
pub(super) fn show(flags: &Bench) -> Result<Outcome, Error> {
    let mut sink = Sink::open(flags)?;
    let Some(record) = halo_report::file::read(&flags.from)? else {
        return Ok(Outcome::Clean);
    };
    sink.save(&record);
    sink.print(&halo_report::to_text(&record));
    sink.outcome(&record)
}
