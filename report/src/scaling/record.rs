//! The record of a run over several ranks, and the efficiencies and the model that follow from it.

use serde::{Deserialize, Serialize};

use crate::record::Environment;

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
    pub part: Option<TimedPart>,
    /// How the halo of a rank changes with the number of ranks.
    pub halo: Halo,
    /// Whether the result has the bits of one rank; `None` where that was not computed.
    pub equal_bits: Option<bool>,
}

/// A part of a problem, computed without messages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedPart {
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
    pub(super) fn is_noise(&self) -> bool {
        self.compute_s.min(self.exchange_s) < self.spread_s
    }

    /// The time of this share of the problem without messages: a line through the times of the
    /// whole and of a small part. Without such a part, the share of the whole's time.
    pub(super) fn compute_of(&self, share: f64) -> f64 {
        let whole = self.compute_s;
        match self.part {
            Some(part) if part.share < 1.0 => {
                let each = (whole - part.seconds) / (1.0 - part.share);
                (part.seconds + each * (share - part.share)).max(0.0)
            }
            _ => whole * share,
        }
    }

    /// The halo of a block on this many ranks, if the grid is cut into squares or cubes.
    fn block(&self, ranks: usize) -> Ghosts {
        let (all, shares) = (self.halo_bytes as f64, self.shares(ranks));
        let doublings = (ranks as f64).log2().ceil();
        let (bytes, axes) = match self.halo {
            _ if ranks == 1 => (0.0, 0.0),
            Halo::Square => (all / shares.sqrt(), doublings.min(2.0)),
            Halo::Cube => (all / shares.cbrt().powi(2), doublings.min(3.0)),
            Halo::All | Halo::Numbers => (0.0, 0.0),
        };
        Ghosts { bytes, axes }
    }

    /// The halo of a slab, if the grid is cut along its last axis alone. `None` if the slabs are
    /// thinner than the halo, if the row lacks the size of the grid, or if there is nothing to cut.
    fn slab(&self, ranks: usize) -> Option<Ghosts> {
        if ranks == 1 || !matches!(self.halo, Halo::Square | Halo::Cube) {
            return None;
        }
        let points: Result<Vec<f64>, _> = self.size.split('x').map(str::parse).collect();
        let points = points.ok()?;
        // The points of the face across each axis, divided by all points.
        let faces = points.iter().map(|it| it.recip());
        let bytes = self.halo_bytes as f64 * points.last()?.recip() / faces.sum::<f64>();
        // The halo has two sides.
        let fits = bytes <= 2.0 * self.field_bytes as f64 / self.shares(ranks);
        fits.then_some(Ghosts { bytes, axes: 1.0 })
    }

    /// The model's prediction for blocks with these copies of points.
    fn modelled(&self, line: (f64, f64), ranks: usize, ghosts: Ghosts) -> Modelled {
        let ((latency, bandwidth), r) = (line, ranks as f64);
        let doublings = r.log2().ceil();
        let (exchange_s, reductions_s) = match self.halo {
            Halo::Square | Halo::Cube => (ghosts.axes * latency + ghosts.bytes / bandwidth, 0.0),
            Halo::All => {
                // With equal interactions per rank, the number of bodies grows with the square root
                // of the ranks.
                let all = self.halo_bytes as f64;
                let whole = if self.weak { all * r.sqrt() } else { all };
                (doublings * latency + whole * (r - 1.0) / r / bandwidth, 0.0)
            }
            Halo::Numbers => (0.0, doublings * latency),
        };
        let copies = match self.field_bytes {
            0 => 0.0,
            bytes => ghosts.bytes / bytes as f64,
        };
        Modelled {
            compute_s: self.compute_of(1.0 / self.shares(ranks) + copies),
            exchange_s,
            reductions_s,
        }
    }

    /// The total work as a multiple of one rank's.
    pub(super) fn shares(&self, ranks: usize) -> f64 {
        if self.weak { 1.0 } else { ranks as f64 }
    }
}

/// The copies of the neighbours' points that a block needs.
#[derive(Clone, Copy, Debug)]
struct Ghosts {
    bytes: f64,
    /// The number of axes that are cut.
    axes: f64,
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
    pub(super) fn on(&self, row: &ScalingRow, ranks: usize) -> Option<&ScalingRow> {
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

    /// Latency in seconds and bandwidth in bytes per second: the latency is the time of the
    /// quickest message, and the bandwidth is that of the longest message after the latency. `None`
    /// without messages of two lengths.
    #[must_use]
    pub fn line(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.messages.first()?, self.messages.last()?);
        if first.bytes >= last.bytes {
            return None;
        }
        let times = self.messages.iter().map(|it| it.seconds);
        let latency = times.fold(f64::INFINITY, f64::min);
        let beyond = last.seconds - latency;
        // If other work kept the machine busy, the longest message may not have been slower.
        let seconds = if beyond > 0.0 { beyond } else { last.seconds };
        Some((latency, last.bytes as f64 / seconds))
    }

    /// The model's prediction for this many ranks, from a row of one rank. `None` without messages
    /// of two lengths.
    ///
    /// t = max(compute, exchange) + reductions. The computation is that of a rank's share and of
    /// its copies of the neighbours' points. Messages take one latency for each axis that is cut,
    /// since those along one axis travel at once, and the time of their bytes. A grid is cut into
    /// slabs, or into squares or cubes, whichever takes less time. A reduction takes one latency
    /// for each doubling of the ranks, and so does a gathering of values on all ranks.
    #[must_use]
    pub fn model(&self, alone: &ScalingRow, ranks: usize) -> Option<Modelled> {
        let line = self.line()?;
        let cuts = alone.slab(ranks).into_iter().chain([alone.block(ranks)]);
        cuts.map(|ghosts| alone.modelled(line, ranks, ghosts))
            .min_by(|one, other| one.all_s().total_cmp(&other.all_s()))
    }

    /// The numbers of ranks in the model's table: the measured ones, and powers of four up to the
    /// largest one asked for.
    pub(super) fn projected(&self) -> Vec<usize> {
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
    pub(super) fn alone(&self) -> impl Iterator<Item = &ScalingRow> {
        self.rows.iter().filter(|row| row.ranks == 1)
    }

    /// Adds the problems of another run; an error with the reason if they cannot share a record.
    pub(crate) fn join(&mut self, other: Self) -> Result<(), String> {
        self.environment.require_same(&other.environment)?;
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
