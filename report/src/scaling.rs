//! Runs over several ranks: the measurements, and a model's prediction for more ranks.

mod chart;
mod tables;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::file::{Shown, same_environment};
use crate::record::Environment;

pub use tables::{header, model, of_family};

/// A run over several ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScalingRecord {
    /// The environment of the run, and the command.
    pub environment: Environment,
    /// The most ranks.
    pub ranks: usize,
    /// The transport of the messages.
    pub transport: String,
    /// Messages around a ring of the most ranks, smallest first.
    pub messages: Vec<MessageTime>,
    /// One for each problem, way of scaling and number of ranks.
    pub rows: Vec<ScalingRow>,
    /// The largest number of ranks that the model was asked for.
    pub project: Option<usize>,
    /// Families that the run was to measure and did not, because it was cut short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The time of a message, sent by every rank to the next one at once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageTime {
    /// Its length.
    pub bytes: u64,
    /// The median time, on the slowest rank.
    pub seconds: f64,
}

/// One problem on some ranks. Times are medians, in seconds, of the slowest rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingRow {
    /// For example "heat2d".
    pub family: String,
    /// The problem of one rank, in the form of `--size`; it distinguishes problems of a family.
    #[serde(default)]
    pub size: String,
    /// The whole problem: "16384x16384, 16 iterations, f32".
    pub problem: String,
    /// Whether each rank has as much work as one rank alone (weak scaling), instead of a share of
    /// it.
    pub weak: bool,
    /// The number of ranks.
    pub ranks: usize,
    /// Each rank's part without messages.
    pub compute_s: f64,
    /// The messages alone.
    pub exchange_s: f64,
    /// The whole step.
    pub both_s: f64,
    /// How far the times of the computation and of the whole step vary: the range of the middle
    /// half of the samples, the wider one. 0 in older records.
    #[serde(default)]
    pub spread_s: f64,
    /// The bytes that a rank with the whole problem would receive, with neighbours on every side.
    pub halo_bytes: u64,
    /// The bytes of all points, by which the computation on ghost points is estimated; 0 where
    /// ghost points are not computed on, or in older records.
    #[serde(default)]
    pub field_bytes: u64,
    /// A small part of the problem without messages, on one rank.
    #[serde(default)]
    pub part: Option<Part>,
    /// How the halo of a rank changes with the number of ranks.
    pub halo: Halo,
    /// Whether the result has the bits of one rank; `None` where that was not computed.
    pub equal_bits: Option<bool>,
}

/// A part of a problem, computed without messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its fraction of the whole.
    pub share: f64,
    /// The median time.
    pub seconds: f64,
}

/// How the halo of a rank depends on the number of ranks in strong scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Halo {
    /// The surface of a square: 1 / √ranks.
    Square,
    /// The surface of a cube: ranks^(-2/3).
    Cube,
    /// All points of the other ranks.
    All,
    /// One number from each rank.
    Numbers,
}

impl ScalingRow {
    /// The fraction of the messages, or of the computation if that is shorter, that overlaps with
    /// the other. `None` where one of them takes no time, or too little for the measurement, and
    /// where the messages are numbers that the computation must finish first.
    #[must_use]
    pub fn hidden(&self) -> Option<f64> {
        let less = self.compute_s.min(self.exchange_s);
        (less > 0.0 && !self.is_noise() && self.halo != Halo::Numbers)
            .then(|| (self.compute_s + self.exchange_s - self.both_s) / less)
    }

    /// Whether the messages, or the computation, take less time than the times vary by.
    fn is_noise(&self) -> bool {
        self.compute_s.min(self.exchange_s) < self.spread_s
    }

    /// The time of this share of the problem without messages: a line through the times of the
    /// whole and of a small part. Without such a part, the share of the whole's time.
    fn compute_of(&self, share: f64) -> f64 {
        let whole = self.compute_s;
        match self.part {
            Some(part) if part.share < 1.0 => {
                let each = (whole - part.seconds) / (1.0 - part.share);
                (part.seconds + each * (share - part.share)).max(0.0)
            }
            _ => whole * share,
        }
    }

    /// The total work as a multiple of one rank's.
    fn shares(&self, ranks: usize) -> f64 {
        if self.weak { 1.0 } else { ranks as f64 }
    }
}

/// The model's prediction for a problem on some ranks, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modelled {
    /// A rank's part without messages.
    pub compute_s: f64,
    /// The messages.
    pub exchange_s: f64,
    /// The reductions after both.
    pub reductions_s: f64,
}

impl Modelled {
    /// The total: messages overlap with the computation, reductions do not.
    #[must_use]
    pub fn all_s(&self) -> f64 {
        self.compute_s.max(self.exchange_s) + self.reductions_s
    }
}

impl ScalingRecord {
    /// The row of the same problem on this number of ranks.
    fn on(&self, row: &ScalingRow, ranks: usize) -> Option<&ScalingRow> {
        let key = |row: &ScalingRow| (row.family.clone(), row.size.clone(), row.weak);
        self.rows
            .iter()
            .find(|it| it.ranks == ranks && key(it) == key(row))
    }

    /// Efficiency of this number of ranks relative to one rank; 1 is ideal. `None` without a row of
    /// one rank.
    #[must_use]
    pub fn efficiency(&self, row: &ScalingRow) -> Option<f64> {
        let alone = self.on(row, 1)?;
        Some(alone.both_s / (row.shares(row.ranks) * row.both_s))
    }

    /// Latency in seconds and bandwidth in bytes per second: of the quickest message, and of the
    /// longest less that latency. `None` without messages of two lengths.
    #[must_use]
    pub fn line(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.messages.first()?, self.messages.last()?);
        if first.bytes >= last.bytes {
            return None;
        }
        let times = self.messages.iter().map(|it| it.seconds);
        let latency = times.fold(f64::INFINITY, f64::min);
        let beyond = last.seconds - latency;
        // Other work kept the machine busy: the longest message was not slower.
        let seconds = if beyond > 0.0 { beyond } else { last.seconds };
        Some((latency, last.bytes as f64 / seconds))
    }

    /// The model's prediction for this many ranks, from a row of one rank. `None` without messages
    /// of two lengths.
    ///
    /// t = max(compute, exchange) + reductions. The computation is that of a rank's share and of
    /// its copies of the neighbours' points. Messages take one latency for each axis that is cut,
    /// since those along one axis travel at once, and the time of their bytes. A reduction takes
    /// one latency for each doubling of the ranks, and so does a gathering of values on all ranks.
    #[must_use]
    pub fn model(&self, alone: &ScalingRow, ranks: usize) -> Option<Modelled> {
        let (latency, bandwidth) = self.line()?;
        let (r, shares) = (ranks as f64, alone.shares(ranks));
        let doublings = r.log2().ceil();
        let all = alone.halo_bytes as f64;
        // The halo of a share.
        let halo = match alone.halo {
            _ if ranks == 1 => 0.0,
            Halo::Square => all / shares.sqrt(),
            Halo::Cube => all / shares.cbrt().powi(2),
            Halo::All | Halo::Numbers => 0.0,
        };
        let (exchange_s, reductions_s) = match alone.halo {
            _ if ranks == 1 => (0.0, 0.0),
            Halo::Square => (doublings.min(2.0) * latency + halo / bandwidth, 0.0),
            Halo::Cube => (doublings.min(3.0) * latency + halo / bandwidth, 0.0),
            Halo::All => {
                // With equal interactions per rank, the number of bodies grows with the square root
                // of the ranks.
                let whole = if alone.weak { all * r.sqrt() } else { all };
                (doublings * latency + whole * (r - 1.0) / r / bandwidth, 0.0)
            }
            Halo::Numbers => (0.0, doublings * latency),
        };
        let copies = match alone.field_bytes {
            0 => 0.0,
            bytes => halo / bytes as f64,
        };
        Some(Modelled {
            compute_s: alone.compute_of(1.0 / shares + copies),
            exchange_s,
            reductions_s,
        })
    }

    /// The numbers of ranks in the model's table: the measured ones, and powers of four up to the
    /// largest one asked for.
    fn projected(&self) -> Vec<usize> {
        let most = self.project.unwrap_or(0).max(self.ranks);
        let powers = std::iter::successors(Some(1_usize), |it| it.checked_mul(4));
        let powers = powers.take_while(|it| *it <= most);
        let measured = self.rows.iter().map(|row| row.ranks);
        let mut ranks: Vec<usize> = powers.chain(measured).chain([most]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    }

    /// The problems, each by its row of one rank.
    fn alone(&self) -> impl Iterator<Item = &ScalingRow> {
        self.rows.iter().filter(|row| row.ranks == 1)
    }

    /// Adds the problems of another run; an error with the reason if they cannot share a record.
    pub(crate) fn join(&mut self, other: Self) -> Result<(), String> {
        same_environment(&self.environment, &other.environment)?;
        let ranks = |it: &Self| it.ranks.to_string();
        for (what, one, two) in [
            ("number of ranks", ranks(self), ranks(&other)),
            ("transport", self.transport.clone(), other.transport.clone()),
        ] {
            if one != two {
                return Err(format!("the {what} of one is {one}, of the other {two}"));
            }
        }
        for row in &other.rows {
            if self.on(row, row.ranks).is_some() {
                return Err(format!("both measured {} of {}", row.family, row.problem));
            }
        }
        self.rows.extend(other.rows);
        self.missing.extend(other.missing);
        let rows = &self.rows;
        self.missing
            .retain(|name| !rows.iter().any(|row| row.family == *name));
        self.missing.sort();
        self.missing.dedup();
        self.project = self.project.max(other.project);
        Ok(())
    }
}

impl Shown for ScalingRecord {
    fn to_text(&self) -> String {
        tables::text(self)
    }

    fn to_csv(&self) -> Result<String, Error> {
        tables::csv(self)
    }

    fn html(&self) -> String {
        tables::page(self)
    }

    fn svg_files(&self) -> Vec<(String, String)> {
        crate::page::files_of(chart::all(self))
    }

    fn missing(&self) -> &[String] {
        &self.missing
    }

    fn passes(&self) -> bool {
        !self.rows.iter().any(|row| row.equal_bits == Some(false))
    }

    fn lacks(&self) -> Option<&'static str> {
        self.rows.is_empty().then_some("rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn row(ranks: usize, weak: bool, times: [f64; 3]) -> ScalingRow {
        let [compute_s, exchange_s, both_s] = times;
        ScalingRow {
            family: "heat2d".to_owned(),
            size: "64".to_owned(),
            problem: "64x64".to_owned(),
            weak,
            ranks,
            compute_s,
            exchange_s,
            both_s,
            spread_s: 0.05,
            halo_bytes: 4000,
            field_bytes: 0,
            part: None,
            halo: Halo::Square,
            equal_bits: Some(true),
        }
    }

    fn record() -> ScalingRecord {
        let message = |bytes, seconds| MessageTime { bytes, seconds };
        ScalingRecord {
            environment: sample::whole().environment,
            ranks: 2,
            transport: "threads".to_owned(),
            messages: vec![message(0, 1e-5), message(1_000_000, 2e-5)],
            rows: vec![
                row(1, false, [1.0, 0.0, 1.0]),
                row(2, false, [0.5, 0.1, 0.52]),
                row(1, true, [1.0, 0.0, 1.0]),
                row(2, true, [1.0, 0.1, 1.25]),
            ],
            project: Some(4),
            missing: Vec::new(),
        }
    }

    #[test]
    fn what_follows_from_the_times() {
        let record = record();
        let [_, strong, _, weak] = &record.rows[..] else {
            unreachable!()
        };
        assert!((strong.hidden().expect("a number") - 0.8).abs() < 1e-12);
        assert!((weak.hidden().expect("a number") + 1.5).abs() < 1e-12);
        assert_eq!(record.rows[0].hidden(), None);
        let mut noisy = strong.clone();
        noisy.spread_s = 0.11;
        assert_eq!(noisy.hidden(), None);
        assert!((record.efficiency(strong).expect("a number") - 1.0 / 1.04).abs() < 1e-12);
        assert!((record.efficiency(weak).expect("a number") - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_model_is_a_line_of_the_messages() {
        let record = record();
        let (latency, bandwidth) = record.line().expect("two messages");
        assert!(latency == 1e-5 && (bandwidth / 1e11 - 1.0).abs() < 1e-12);
        let mut busy = record.clone();
        busy.messages[0].seconds = 1e-3;
        assert_eq!(busy.line(), Some((2e-5, 1e6 / 2e-5)));
        let four = record.model(&record.rows[0], 4).expect("a model");
        assert!(four.compute_s == 0.25 && four.reductions_s == 0.0 && four.all_s() == 0.25);
        assert!((four.exchange_s - (2e-5 + 2000.0 / 1e11)).abs() < 1e-15);
        let mut numbers = record.rows[2].clone();
        numbers.halo = Halo::Numbers;
        let many = record.model(&numbers, 1024).expect("a model");
        assert!(many.compute_s == 1.0 && many.exchange_s == 0.0);
        assert!((many.reductions_s - 1e-4).abs() < 1e-15);
        assert!((many.all_s() - 1.0001).abs() < 1e-12);
    }

    #[test]
    fn small_parts_take_what_launches_take_and_copies_of_points_are_computed_with() {
        let record = record();
        let mut alone = record.rows[0].clone();
        alone.part = Some(Part {
            share: 0.25,
            seconds: 0.4,
        });
        let compute = |alone: &ScalingRow, ranks| {
            let modelled = record.model(alone, ranks).expect("a model");
            modelled.compute_s
        };
        // 0.2 and 0.8 for the whole.
        assert!((compute(&alone, 4) - 0.4).abs() < 1e-12);
        assert!((compute(&alone, 1_000_000) - 0.2).abs() < 1e-5);
        // 2000 bytes of ghost points beside a quarter of 16000.
        alone.part = None;
        alone.field_bytes = 16_000;
        assert!((compute(&alone, 4) - (0.25 + 0.125)).abs() < 1e-12);
        assert!((compute(&alone, 1) - 1.0).abs() < 1e-12);
        alone.weak = true;
        assert!((compute(&alone, 4) - 1.25).abs() < 1e-12);
    }

    #[test]
    fn runs_of_different_problems_are_one_record() {
        let bodies = || {
            let mut other = record();
            for row in &mut other.rows {
                row.family = "nbody".to_owned();
            }
            other
        };
        let mut first = record();
        first.missing = vec!["nbody".to_owned(), "wave3d".to_owned()];
        first.join(bodies()).expect("they belong together");
        assert_eq!(
            (first.rows.len(), &first.missing[..]),
            (8, &["wave3d".to_owned()][..])
        );
        let why = first.join(bodies()).expect_err("twice the same");
        assert_eq!(why, "both measured nbody of 64x64");
        let mut other = bodies();
        other.transport = "NCCL".to_owned();
        assert!(
            record()
                .join(other)
                .expect_err("others")
                .contains("transport")
        );
    }

    #[test]
    fn pages_charts_and_lines_have_all_problems() {
        let mut record = record();
        record.project = Some(64);
        let files = record.svg_files();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["scaling-strong.svg", "scaling-weak.svg"]);
        for (name, svg) in &files {
            let document = roxmltree::Document::parse(svg).expect(name);
            let is_mark = |it: &roxmltree::Node<'_, '_>| it.attribute("class") == Some("mark");
            // One in the legend, and two measured ones.
            assert_eq!(document.descendants().filter(is_mark).count(), 3, "{name}");
        }
        let page = record.html();
        for words in [
            "scaling-strong-wide",
            "deviation",
            "the parts are squares",
            "0.962",
        ] {
            assert!(page.contains(words), "{words}");
        }
        let csv = record.to_csv().expect("lines");
        // 1, 2, 4, 16 and 64 ranks by the model.
        assert_eq!(csv.matches(",measured,").count(), 4);
        assert_eq!(csv.matches(",model,").count(), 10, "{csv}");
        record.messages.clear();
        record.rows.retain(|row| row.ranks == 1);
        assert!(record.svg_files().is_empty());
        assert!(record.html().contains("Charts left out"));
    }

    #[test]
    fn tables_have_what_was_measured_and_the_model() {
        let text = record().to_text();
        for words in [
            "0.800",
            "equal",
            "0.962",
            "100.00 GB/s",
            "+4.0 %",
            "+25.0 %",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        // Strong and weak, for 1, 2 and 4 ranks.
        let of_model = text.split("\nmodel\n").nth(1).expect("a model");
        assert_eq!(of_model.matches("heat2d 64").count(), 6, "{text}");
        let mut without = record();
        without.messages.truncate(1);
        assert!(without.to_text().contains("no model"));
        let json = serde_json::to_string(&record()).expect("JSON");
        let back: ScalingRecord = serde_json::from_str(&json).expect("a record");
        assert_eq!(back.rows, record().rows);
    }
}
