//! A record prepared for display: rows in order, times with the values derived from them, and the
//! environment of each measurement.

use crate::record::{
    BaselineRow, Ceiling, Ceilings, Environment, FamilyRecord, Metric, ProblemRecord, Record, Roof,
    RowRecord,
};
use crate::stats::{Ratio, Times};
use crate::units::{median, quantity};

/// How launches were timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Single,
    Replayed,
}

impl Mode {
    pub(crate) const ALL: [Self; 2] = [Self::Single, Self::Replayed];
}

/// A row, and its place in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedRow<'a> {
    pub(crate) record: &'a Record,
    /// The family's number, which gives it its colour.
    pub(crate) hue: usize,
    pub(crate) family: &'a FamilyRecord,
    pub(crate) problem: &'a ProblemRecord,
    pub(crate) row: &'a RowRecord,
}

/// A time for a row's work, by its kernel or by a baseline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed<'a> {
    pub(crate) place: PlacedRow<'a>,
    pub(crate) mode: Mode,
    /// `None` for the row's own kernel.
    pub(crate) by: Option<&'a BaselineRow>,
    pub(crate) time: &'a Times,
}

impl Record {
    /// Rows with their places.
    pub(crate) fn places(&self) -> impl Iterator<Item = PlacedRow<'_>> {
        self.families
            .iter()
            .enumerate()
            .flat_map(move |(hue, family)| {
                family.problems.iter().flat_map(move |problem| {
                    problem.rows.iter().map(move |row| PlacedRow {
                        record: self,
                        hue,
                        family,
                        problem,
                        row,
                    })
                })
            })
    }

    /// For each timed kernel its times at all sizes, the largest first; kernels in the order of the
    /// record. Times of replayed launches are preferred: where they differ, single launches show
    /// the cost of a launch.
    pub(crate) fn kernels(&self) -> Vec<Vec<Timed<'_>>> {
        let mut kernels: Vec<Vec<Timed<'_>>> = Vec::new();
        for timed in self.places().filter_map(|place| place.timed()) {
            let (hue, name) = (timed.place.hue, &timed.place.row.name);
            let same = |sizes: &&mut Vec<Timed<'_>>| {
                sizes[0].place.hue == hue && sizes[0].place.row.name == *name
            };
            match kernels.iter_mut().find(same) {
                Some(sizes) => sizes.push(timed),
                None => kernels.push(vec![timed]),
            }
        }
        for sizes in &mut kernels {
            sizes.sort_by_key(|timed| std::cmp::Reverse(timed.place.problem.elements));
        }
        kernels
    }

    /// The environment and the method, as labels with texts.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let toolkit = &self.environment.toolkit;
        let ceiling = |ceiling: &Option<Ceiling>, unit: &str| {
            let found = ceiling.as_ref()?;
            Some(format!(
                "{}, {}",
                quantity(found.per_s(), unit),
                found.method
            ))
        };
        let launches = match &self.timing {
            Some(timing) => format!(
                "{} timed after {} of warm-up; {timing}",
                self.launches, self.warmup
            ),
            None => {
                "1 per kernel, to check its results; the emulator's speed means nothing and is not shown"
                    .to_owned()
            }
        };
        let nvcc = toolkit.nvcc.as_ref().or(toolkit.why_not.as_ref());
        let Ceilings {
            copy,
            streamed_copy,
            read,
            fp32,
            fp64,
        } = &self.ceilings;
        let facts = [
            ("launches", Some(launches)),
            ("copy", ceiling(copy, "B/s")),
            ("streamed", ceiling(streamed_copy, "B/s")),
            ("read", ceiling(read, "B/s")),
            ("FP32", ceiling(fp32, "instructions/s")),
            ("FP64", ceiling(fp64, "instructions/s")),
            ("nvcc", nvcc.filter(|_| !self.baselines.is_empty()).cloned()),
        ];
        let baselines = self.baselines.iter().map(|baseline| {
            let why_not = baseline.why_not.as_ref();
            let why_not = why_not.map_or(String::new(), |why| format!("; NOT COMPARED: {why}"));
            (
                "against",
                Some(format!("{}: {}{why_not}", baseline.name, baseline.what)),
            )
        });
        let of_run = facts
            .into_iter()
            .chain(baselines)
            .chain([("cut short", cut_short(&self.missing))]);
        let of_run = of_run.filter_map(|(word, rest)| Some((word, rest?)));
        self.environment.facts().into_iter().chain(of_run).collect()
    }
}

/// A note on the families that were not measured, if there are any.
pub(crate) fn cut_short(missing: &[String]) -> Option<String> {
    (!missing.is_empty()).then(|| format!("before {} had been measured", missing.join(", ")))
}

impl Environment {
    /// The environment, as labels with texts.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let device = &self.device;
        let built_by = format!(
            "rustc {}, LLVM {}; from commit {}",
            self.rustc,
            self.llvm,
            self.commit.as_deref().unwrap_or("unknown")
        );
        let facts = [
            ("device", Some(format!("{} ({})", device.name, device.kind))),
            ("why", device.why.clone()),
            ("capability", device.compute_capability.clone()),
            ("driver", device.driver.clone()),
            ("PTX target", device.ptx_target.clone()),
            ("built by", Some(built_by)),
            ("date", Some(self.date.clone())),
        ];
        let facts = facts.into_iter();
        facts
            .filter_map(|(word, rest)| Some((word, rest?)))
            .collect()
    }
}

impl<'a> PlacedRow<'a> {
    /// The row's own time in its most telling mode.
    pub(crate) fn timed(self) -> Option<Timed<'a>> {
        self.own(Mode::Replayed).or(self.own(Mode::Single))
    }

    /// The row's own time.
    pub(crate) fn own(self, mode: Mode) -> Option<Timed<'a>> {
        let row: &'a RowRecord = self.row;
        let time = match mode {
            Mode::Single => row.single.as_ref(),
            Mode::Replayed => row.replayed.as_ref(),
        };
        let (place, by) = (self, None);
        time.map(|time| Timed {
            place,
            mode,
            by,
            time,
        })
    }

    /// A baseline's time.
    pub(crate) fn of(self, baseline: &'a BaselineRow, mode: Mode) -> Option<Timed<'a>> {
        let time = match mode {
            Mode::Single => baseline.single.as_ref(),
            Mode::Replayed => baseline.replayed.as_ref(),
        };
        let (place, by) = (self, Some(baseline));
        time.map(|time| Timed {
            place,
            mode,
            by,
            time,
        })
    }

    /// The limits of the device: measured in turns with the row, or else in its family's run.
    fn ceilings(self) -> &'a Ceilings {
        let (row, family): (&'a RowRecord, &'a FamilyRecord) = (self.row, self.family);
        let own = row.ceilings.as_ref().or(family.ceilings.as_ref());
        own.unwrap_or(&self.record.ceilings)
    }

    /// The limit that binds the row's work, and the least time that it takes.
    pub(crate) fn least(self) -> Option<(Roof, f64)> {
        self.row.work.least(self.ceilings())
    }
}

impl<'a> Timed<'a> {
    /// The other contestants' times for this work, in the same mode.
    pub(crate) fn baselines(self) -> impl Iterator<Item = Timed<'a>> {
        let row: &'a RowRecord = self.place.row;
        row.baselines
            .iter()
            .filter_map(move |baseline| self.place.of(baseline, self.mode))
    }

    /// The contestant's index among the record's baselines, which determines its mark;
    /// `None` for the row's own kernel.
    pub(crate) fn baseline(self) -> Option<usize> {
        let (by, baselines) = (self.by?, &self.place.record.baselines);
        Some(
            baselines
                .iter()
                .position(|baseline| baseline.name == by.name)
                .unwrap_or(baselines.len()),
        )
    }

    /// This amount of work per second.
    pub(crate) fn per_s(self, amount: u64) -> f64 {
        amount as f64 / self.time.median_s
    }

    /// The speed in the row's quantity, and its unit.
    pub(crate) fn speed(self) -> (f64, String) {
        let work = &self.place.row.work;
        match work.metric {
            Metric::Bandwidth => (self.per_s(work.bytes), "B/s".to_owned()),
            Metric::Throughput => (self.per_s(work.items), format!("{}/s", work.unit.plural())),
        }
    }

    /// The bandwidth divided by the copy's.
    pub(crate) fn of_copy(self) -> Option<f64> {
        let copy = self.place.ceilings().copy.as_ref()?;
        Some(self.per_s(self.place.row.work.bytes) / copy.per_s())
    }

    /// The limit that binds the work, and the fraction of it that was reached; more than 1 where a
    /// cache saves memory traffic.
    pub(crate) fn of_limit(self) -> Option<(Roof, f64)> {
        let (roof, least_s) = self.place.least()?;
        Some((roof, least_s / self.time.median_s))
    }

    /// The ratio of the row's time to this baseline's.
    pub(crate) fn ratio(self) -> Option<Ratio> {
        let own = self.place.own(self.mode).filter(|_| self.by.is_some())?;
        Some(Ratio::of(own.time, self.time))
    }

    /// The name of the contestant, if it is not the row's own kernel.
    pub(crate) fn who(self) -> &'a str {
        self.by.map_or("", |baseline| &baseline.name)
    }

    /// The row's name and its size.
    pub(crate) fn name(self) -> String {
        let mode = match self.mode {
            Mode::Single => "",
            Mode::Replayed => ", replayed",
        };
        format!("{}, {}{mode}", self.place.row.name, self.place.problem.size)
    }

    /// The contestant, the row's name and size, and on a second line the time.
    pub(crate) fn title(self) -> String {
        let who = self
            .by
            .map_or(String::new(), |baseline| format!("{}: ", baseline.name));
        format!("{who}{}\n{}", self.name(), median(self.time))
    }

    /// Whether the limit, or else the count of instructions, is of double precision.
    pub(crate) fn is_double(self) -> bool {
        let row = self.place.row;
        match self.place.least() {
            Some((roof, _)) if !roof.is_memory() => roof == Roof::Fp64,
            _ => row.work.slots.fp64 > 0 || row.name.contains("f64"),
        }
    }
}
