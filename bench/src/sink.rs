//! Writes a record: first to the files that the flags name, then to standard output.
//!
//! Each output is independent: a reader of standard output that ends, or a full disk, does not keep
//! the other files from being written.

use std::io::ErrorKind;

use halo_report::file::{AnyRecord, Outputs, Shown};

use crate::error::{Error, chain};
use crate::flags::Bench;
use cargo_halo::Outcome;
use cargo_halo::output;

/// Writes a growing record again and again.
pub(super) struct Sink {
    outputs: Outputs,
    /// The errors of the last attempt to write the files.
    failures: Vec<String>,
    /// Whether standard output failed by an error (and not because its reader ended).
    lost: bool,
    closed: bool,
}

impl Sink {
    /// The outputs that the flags ask for; an error where one of them cannot be written.
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

    /// Writes the files; reports on standard error which could not be written.
    pub(super) fn save(&mut self, record: &impl Shown) {
        let errors = self.outputs.write(record);
        let failures: Vec<String> = errors.iter().map(|error| chain(error)).collect();
        for failure in failures.iter().filter(|it| !self.failures.contains(it)) {
            eprintln!("error: {failure}");
        }
        self.failures = failures;
    }

    /// Prints this text, if there is any.
    ///
    /// Where nothing reads it and no file is written either, the process ends, as it would by the
    /// signal that Rust programs ignore.
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

    /// The outcome of printing and writing this record.
    pub(super) fn outcome(self, record: &impl Shown) -> Result<Outcome, Error> {
        if let Some(none) = record.lacks() {
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
    let sink = Sink::open(flags)?;
    match halo_report::file::read(&flags.from)? {
        None => Ok(Outcome::Clean),
        Some(AnyRecord::Device(_)) if flags.project.is_some() => Err(Error::Bench(
            "--project is for records of --ranks, and this is one of a single device".to_owned(),
        )),
        Some(AnyRecord::Device(record)) => show_record(sink, &*record),
        Some(AnyRecord::Ranks(mut record)) => {
            if let Some(ranks) = flags.project {
                record.project = Some(ranks as usize);
            }
            show_record(sink, &*record)
        }
    }
}

fn show_record(mut sink: Sink, record: &impl Shown) -> Result<Outcome, Error> {
    sink.save(record);
    sink.print(&record.to_text());
    sink.outcome(record)
}
