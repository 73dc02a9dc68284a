//! Runs over several ranks: the measurements, and a model's prediction for more ranks.

use serde::{Deserialize, Serialize};

use crate::record::Environment;
use crate::units::{duration, quantity};

/// A run over several ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScalingRecord {
    /// Where the run took place, and what was run.
    pub environment: Environment,
    /// The most ranks.
    pub ranks: usize,
    /// What the messages went by.
    pub transport: String,
    /// Messages around a ring of the most ranks, smallest first.
    pub messages: Vec<MessageTime>,
    /// One for each problem, way of scaling and number of ranks.
    pub rows: Vec<ScalingRow>,
    /// For how many ranks the model was asked.
    pub project: Option<usize>,
}

/// What a message took, sent by every rank to the next one at once.
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
    /// "heat2d" and the like.
    pub family: String,
    /// The whole problem: "16384x16384, 16 iterations, f32".
    pub problem: String,
    /// Whether each rank has as much as one rank alone, and not a share of it.
    pub weak: bool,
    /// How many ranks.
    pub ranks: usize,
    /// Each rank's part without messages.
    pub compute_s: f64,
    /// The messages alone.
    pub exchange_s: f64,
    /// All of it.
    pub both_s: f64,
    /// Bytes that a rank receives.
    pub halo_bytes: u64,
    /// How the halo of a rank changes with the number of ranks.
    pub halo: Halo,
    /// Whether the result has the bits of one rank; `None` where that was not computed.
    pub equal_bits: Option<bool>,
}

/// How the halo of a rank, whose problem is shared, changes with the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Halo {
    /// The surface of a square: 1 / √ranks.
    Square,
    /// The surface of a cube: ranks^(-2/3).
    Cube,
    /// Everything that the others have.
    All,
    /// A number from each rank.
    Numbers,
}

impl ScalingRow {
    /// The part of the messages, or of the computation where that is shorter, that the other
    /// hides; `None` where one of them takes no time, and where the messages are numbers that
    /// come of the computation, which nothing can hide.
    #[must_use]
    pub fn hidden(&self) -> Option<f64> {
        let less = self.compute_s.min(self.exchange_s);
        (less > 0.0 && self.halo != Halo::Numbers)
            .then(|| (self.compute_s + self.exchange_s - self.both_s) / less)
    }
}

impl ScalingRecord {
    /// Efficiency of this number of ranks relative to one rank; 1 is ideal. `None` without a row of
    /// one rank.
    #[must_use]
    pub fn efficiency(&self, row: &ScalingRow) -> Option<f64> {
        let is_alone =
            |it: &&ScalingRow| it.ranks == 1 && it.family == row.family && it.weak == row.weak;
        let alone = self.rows.iter().find(is_alone)?;
        let shares = if row.weak { 1.0 } else { row.ranks as f64 };
        Some(alone.both_s / (shares * row.both_s))
    }

    /// Latency in seconds and bytes in a second, of the shortest and the longest message.
    #[must_use]
    pub fn line(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.messages.first()?, self.messages.last()?);
        let more = (last.bytes - first.bytes) as f64;
        let longer = last.seconds - first.seconds;
        (more > 0.0 && longer > 0.0).then(|| (first.seconds, more / longer))
    }

    /// The model's prediction for this many ranks, from a row of one rank: computation, messages,
    /// reductions and all of it, in seconds.
    ///
    /// t = max(compute, exchange) + reductions. Computation is that of one rank, or its share.
    /// Messages take a latency for each neighbour and the time of their bytes; a reduction
    /// takes a latency for each doubling of the ranks, as does everything that all ranks
    /// gather.
    #[must_use]
    pub fn model(&self, alone: &ScalingRow, ranks: usize) -> Option<[f64; 4]> {
        let (latency, bandwidth) = self.line()?;
        let r = ranks as f64;
        let compute = if alone.weak {
            alone.compute_s
        } else {
            alone.compute_s / r
        };
        let doublings = r.log2().ceil();
        // The surface that a whole problem of one rank would have, in bytes that come.
        let all = alone.halo_bytes as f64;
        let of_share = |power: f64| if alone.weak { all } else { all / r.powf(power) };
        let (exchange, reductions) = match alone.halo {
            _ if ranks == 1 => (0.0, 0.0),
            Halo::Square => (4.0 * latency + of_share(0.5) / bandwidth, 0.0),
            Halo::Cube => (6.0 * latency + of_share(2.0 / 3.0) / bandwidth, 0.0),
            Halo::All => {
                let whole = if alone.weak { all * r } else { all };
                (doublings * latency + whole * (r - 1.0) / r / bandwidth, 0.0)
            }
            Halo::Numbers => (0.0, doublings * latency),
        };
        Some([
            compute,
            exchange,
            reductions,
            compute.max(exchange) + reductions,
        ])
    }
}

/// The record as tables.
#[must_use]
pub fn to_text(record: &ScalingRecord) -> String {
    let environment = &record.environment;
    let mut text = format!(
        "device     {} ({})\nranks      {}\ntransport  {}\nrun        {}\n",
        environment.device.name,
        environment.device.kind,
        record.ranks,
        record.transport,
        environment.date,
    );
    if record.transport.to_lowercase().contains("tcp") {
        text += "warning    messages go by TCP, where a faster transport may be there\n";
    }
    text += "\nmessages around the ring\n";
    let messages = record.messages.iter().map(|it| {
        // Of short ones it is the latency that counts.
        let rate = match it.bytes {
            ..65_536 => "–".to_owned(),
            bytes => quantity(bytes as f64 / it.seconds, "B/s"),
        };
        vec![it.bytes.to_string(), duration(it.seconds), rate]
    });
    text += &table(&["bytes", "time", "rate"], messages);
    text += "\nscaling: hidden = (compute + exchange - both) / min(compute, exchange)\n";
    let number = |value: Option<f64>| value.map_or("–".to_owned(), |it| format!("{it:.3}"));
    let rows = record.rows.iter().map(|row| {
        vec![
            row.family.clone(),
            row.problem.clone(),
            if row.weak { "weak" } else { "strong" }.to_owned(),
            row.ranks.to_string(),
            duration(row.compute_s),
            duration(row.exchange_s),
            duration(row.both_s),
            number(row.hidden().filter(|_| row.ranks > 1)),
            number(record.efficiency(row)),
            match row.equal_bits {
                None => "–",
                Some(true) => "equal",
                Some(false) => "DIFFER",
            }
            .to_owned(),
        ]
    });
    text += &table(
        &[
            "family",
            "problem",
            "scaling",
            "ranks",
            "compute",
            "exchange",
            "both",
            "hidden",
            "efficiency",
            "bits",
        ],
        rows,
    );
    if let Some(project) = record.project {
        text += &projection(record, project);
    }
    text
}

/// What the model says, for one rank, four, sixteen and so on.
fn projection(record: &ScalingRecord, project: usize) -> String {
    let Some((latency, bandwidth)) = record.line() else {
        return "\nno model: it needs messages of two lengths\n".to_owned();
    };
    let ranks = std::iter::successors(Some(1_usize), |it| it.checked_mul(4));
    let ranks: Vec<usize> = ranks.take_while(|it| *it <= project).collect();
    let alone = record.rows.iter().filter(|row| row.ranks == 1);
    let rows = alone.flat_map(|alone| {
        ranks.iter().filter_map(|&ranks| {
            let [compute, exchange, reductions, all] = record.model(alone, ranks)?;
            let [.., one] = record.model(alone, 1)?;
            let shares = if alone.weak { 1.0 } else { ranks as f64 };
            Some(vec![
                alone.family.clone(),
                if alone.weak { "weak" } else { "strong" }.to_owned(),
                ranks.to_string(),
                duration(compute),
                duration(exchange),
                duration(reductions),
                duration(all),
                format!("{:.3}", one / (shares * all)),
            ])
        })
    });
    format!(
        "\nmodel: t = max(compute, exchange) + reductions, of the times of one rank, a latency of \
         {} and {} as measured above.\nIt takes blocks for square or cubic, all links for equal \
         and free, and exchanges for wholly hidden.\n{}",
        duration(latency),
        quantity(bandwidth, "B/s"),
        table(
            &[
                "family",
                "scaling",
                "ranks",
                "compute",
                "exchange",
                "reductions",
                "all",
                "efficiency",
            ],
            rows,
        )
    )
}

fn table(header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = crate::text::table(header);
    for row in rows {
        table.add_row(row);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn row(ranks: usize, weak: bool, times: [f64; 3]) -> ScalingRow {
        let [compute_s, exchange_s, both_s] = times;
        ScalingRow {
            family: "heat2d".to_owned(),
            problem: "64x64".to_owned(),
            weak,
            ranks,
            compute_s,
            exchange_s,
            both_s,
            halo_bytes: 4000,
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
        assert!((record.efficiency(strong).expect("a number") - 1.0 / 1.04).abs() < 1e-12);
        assert!((record.efficiency(weak).expect("a number") - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_model_is_a_line_of_the_messages() {
        let record = record();
        let (latency, bandwidth) = record.line().expect("two messages");
        assert!(latency == 1e-5 && (bandwidth / 1e11 - 1.0).abs() < 1e-12);
        let [compute, exchange, reductions, all] =
            record.model(&record.rows[0], 4).expect("a model");
        assert!(compute == 0.25 && reductions == 0.0 && all == 0.25);
        assert!((exchange - (4e-5 + 2000.0 / 1e11)).abs() < 1e-15);
        let mut numbers = record.rows[2].clone();
        numbers.halo = Halo::Numbers;
        let [compute, exchange, reductions, all] = record.model(&numbers, 1024).expect("a model");
        assert!(compute == 1.0 && exchange == 0.0 && (reductions - 1e-4).abs() < 1e-15);
        assert!((all - 1.0001).abs() < 1e-12);
    }

    #[test]
    fn tables_have_what_was_measured_and_the_model() {
        let text = to_text(&record());
        assert!(
            text.contains("0.800") && text.contains("equal") && text.contains("0.962"),
            "{text}"
        );
        assert!(text.contains("100.00 GB/s"), "{text}");
        // Twice for 1 and 4 ranks.
        assert_eq!(
            text.split("model")
                .nth(1)
                .map(|it| it.matches("heat2d").count()),
            Some(4)
        );
        let mut without = record();
        without.messages.truncate(1);
        assert!(to_text(&without).contains("no model"));
        let json = serde_json::to_string(&record()).expect("JSON");
        let back: ScalingRecord = serde_json::from_str(&json).expect("a record");
        assert_eq!(back.rows, record().rows);
    }
}
