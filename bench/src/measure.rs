//! Checks a row and times it in turns with its baselines and the machine's limits.

use std::cell::RefCell;
use std::time::Duration;

use halo_gpu::{Device, DeviceKind};
use halo_report::record::{BaselineRow, Ceilings, RowRecord};
use halo_report::stats::Times;

use super::baseline::Baseline;
use super::baselines::{self, Baselines};
use super::check::Check;
use super::cpp::Limit;
use super::error::Error;
use super::flags::Bench;
use super::row::{Prepared, Row};
use super::timing::{self, Timed};

/// Checks a row. Where its errors are within bounds, times it in turns with its baselines.
pub(super) fn row(
    device: &Device,
    family: &str,
    row: &dyn Row,
    flags: &Bench,
    baselines: &Baselines,
) -> Result<RowRecord, Error> {
    let mut prepared = row.prepare(device)?;
    let mut record = RowRecord {
        name: row.name(),
        tile: row.tile(),
        check: prepared.check()?.0,
        work: row.work(),
        single: None,
        replayed: None,
        launches_per_graph: None,
        baselines: Vec::new(),
        ceilings: None,
    };
    if !record.check.passes() || device.kind() == DeviceKind::Emulator {
        return Ok(record);
    }
    let limits = baselines.limits(&record.work)?;
    let baselines = baselines.of_row(device, family, row.stand_ins(), prepared.as_ref())?;
    compare(
        device,
        flags,
        prepared.as_mut(),
        baselines,
        limits,
        &mut record,
    )?;
    Ok(record)
}

/// Times a row that has passed its check, the baselines that pass theirs, and the machine's limits,
/// in turns.
fn compare(
    device: &Device,
    flags: &Bench,
    row: &mut dyn Prepared,
    baselines: Vec<Box<dyn Baseline>>,
    mut limits: Vec<Limit>,
    record: &mut RowRecord,
) -> Result<(), Error> {
    let mut taking_part = Vec::new();
    for mut baseline in baselines {
        let check = baseline.check(row);
        let mut judged = judged(baseline.name(), check)?;
        judged.how = baseline.how();
        if judged.check.is_some_and(|check| check.passes()) {
            taking_part.push((record.baselines.len(), baseline));
        }
        record.baselines.push(judged);
    }

    let row = RefCell::new(row);
    let mut own = Own(&row);
    let mut others: Vec<Other<'_, '_>> = taking_part
        .iter_mut()
        .map(|(_, baseline)| Other {
            row: &row,
            baseline: baseline.as_mut(),
        })
        .collect();
    let mut all: Vec<&mut dyn Timed> = vec![&mut own];
    all.extend(others.iter_mut().map(|other| other as &mut dyn Timed));
    all.extend(limits.iter_mut().map(|limit| limit as &mut dyn Timed));

    let single: Vec<Times> = statistics(&timing::single(device, flags, &mut all)?);
    // Only a GPU has gaps between launches that a graph avoids.
    let restores = row.borrow_mut().restore()?;
    record.launches_per_graph = match single.first() {
        Some(time) if flags.compare && device.kind() == DeviceKind::Cuda && !restores => {
            timing::launches_per_graph(Duration::from_secs_f64(time.median_s))
        }
        _ => None,
    };
    let replayed = match record.launches_per_graph {
        Some(launches) => statistics(&timing::replayed(device, flags, launches, &mut all)?),
        None => Vec::new(),
    };

    record.single = single.first().copied();
    record.replayed = replayed.first().copied();
    for (turn, (place, _)) in (1..).zip(&taking_part) {
        record.baselines[*place].single = single.get(turn).copied();
        record.baselines[*place].replayed = replayed.get(turn).copied();
    }
    if !limits.is_empty() {
        let mut ceilings = Ceilings::default();
        for (limit, time) in limits.iter().zip(single.iter().skip(1 + taking_part.len())) {
            limit.put(&mut ceilings, *time);
        }
        record.ceilings = Some(ceilings);
    }
    Ok(())
}

/// The record of a baseline after its check. An error that only means that it cannot do the work
/// becomes its excuse; any other error is returned.
fn judged(name: &str, check: Result<Check, Error>) -> Result<BaselineRow, Error> {
    let (check, why_not) = match check {
        Ok(check) => (Some(check.0), None),
        Err(error) => match baselines::excuse(&error) {
            Some(why_not) => (None, Some(why_not)),
            None => return Err(error),
        },
    };
    Ok(BaselineRow {
        name: name.to_owned(),
        why_not,
        how: None,
        check,
        single: None,
        replayed: None,
    })
}

/// The statistics of these timings; empty where nothing was timed.
fn statistics(timings: &[Vec<Duration>]) -> Vec<Times> {
    timings
        .iter()
        .filter_map(|times| Times::of(times))
        .collect()
}

/// The row itself, timed.
struct Own<'a, 'b>(&'a RefCell<&'b mut dyn Prepared>);

impl Timed for Own<'_, '_> {
    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.0.borrow_mut().launch()
    }

    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        self.0.borrow_mut().restore()
    }
}

/// A baseline, timed.
struct Other<'a, 'b> {
    row: &'a RefCell<&'b mut dyn Prepared>,
    baseline: &'a mut dyn Baseline,
}

impl Timed for Other<'_, '_> {
    fn launch(&mut self) -> Result<(), halo_gpu::Error> {
        self.baseline.launch(&mut **self.row.borrow_mut())
    }

    // A baseline works on the row's data.
    fn restore(&mut self) -> Result<bool, halo_gpu::Error> {
        self.row.borrow_mut().restore()
    }

    fn begin(&mut self) {
        self.baseline.begin();
    }

    fn end(&mut self) {
        self.baseline.end();
    }
}

/// Times the machine's limits in turns, and stores them in the record.
pub(super) fn limits(
    device: &Device,
    flags: &Bench,
    limits: &mut [Limit],
    ceilings: &mut Ceilings,
) -> Result<(), Error> {
    let mut all: Vec<&mut dyn Timed> = Vec::new();
    all.extend(limits.iter_mut().map(|limit| limit as &mut dyn Timed));
    let times = statistics(&timing::single(device, flags, &mut all)?);
    for (limit, time) in limits.iter().zip(times) {
        limit.put(ceilings, time);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use halo_gpu::Errors;
    use halo_report::record::{Metric, Slots, Unit, Work};

    use super::*;
    use crate::flags::tests::flags;

    /// A row that counts its launches and has a given error.
    struct Fake {
        error: f64,
        launches: Rc<Cell<u32>>,
    }

    impl Row for Fake {
        fn name(&self) -> String {
            "fake".to_owned()
        }

        fn tile(&self) -> String {
            String::new()
        }

        fn work(&self) -> Work {
            Work {
                bytes: 1000,
                flops: 1000,
                items: 1000,
                unit: Unit::Points,
                metric: Metric::Bandwidth,
                slots: Slots::default(),
                read_only: false,
            }
        }

        fn prepare(&self, _: &Device) -> Result<Box<dyn Prepared>, Error> {
            Ok(Box::new(Fake {
                error: self.error,
                launches: Rc::clone(&self.launches),
            }))
        }
    }

    impl Prepared for Fake {
        fn check(&mut self) -> Result<Check, Error> {
            let of = |value| Errors {
                rms: value,
                max: value,
            };
            Ok(Check::new(of(self.error), of(1.0)))
        }

        fn launch(&mut self) -> Result<(), halo_gpu::Error> {
            self.launches.set(self.launches.get() + 1);
            Ok(())
        }
    }

    /// The record of a row with this error on this device, and its number of launches.
    fn outcome(error: f64, device: &Device) -> (RowRecord, u32) {
        let row = Fake {
            error,
            launches: Rc::default(),
        };
        let record = super::row(device, "family", &row, &flags(), &Baselines::default());
        (record.unwrap(), row.launches.get())
    }

    #[test]
    fn a_row_within_bounds_is_launched_for_warm_up_and_time() {
        let (record, launches) = outcome(1.0, &Device::cpu());
        assert_eq!(launches, 9);
        assert_eq!(record.single.unwrap().launches, 7);
    }

    #[test]
    fn a_row_out_of_bounds_is_never_timed() {
        for error in [1.5, f64::INFINITY, f64::NAN] {
            let (record, launches) = outcome(error, &Device::cpu());
            assert_eq!(launches, 0, "{error}");
            assert!(!record.check.passes() && record.single.is_none());
        }
    }

    #[test]
    fn nothing_is_timed_on_the_emulator() {
        let (record, launches) = outcome(0.0, &Device::emulator());
        assert_eq!(launches, 0);
        assert!(record.check.passes() && record.single.is_none());
    }

    /// A baseline that counts its launches and has a given error, or has no kernel.
    struct FakeBaseline {
        name: &'static str,
        error: Option<f64>,
        launches: Rc<Cell<u32>>,
    }

    impl Baseline for FakeBaseline {
        fn name(&self) -> &str {
            self.name
        }

        fn check(&mut self, row: &mut dyn Prepared) -> Result<Check, Error> {
            let Some(error) = self.error else {
                return Err(halo_gpu::Error::KernelNotFound { kernel: "fake" }.into());
            };
            let mut check = row.check()?;
            check.0.max_error = error;
            Ok(check)
        }

        fn launch(&mut self, _: &mut dyn Prepared) -> Result<(), halo_gpu::Error> {
            self.launches.set(self.launches.get() + 1);
            Ok(())
        }
    }

    #[test]
    fn baselines_are_checked_and_those_that_pass_are_timed_in_turns() {
        let device = Device::cpu();
        let counts: [Rc<Cell<u32>>; 4] = Default::default();
        let baseline = |name, error, count: &Rc<Cell<u32>>| {
            Box::new(FakeBaseline {
                name,
                error,
                launches: Rc::clone(count),
            }) as Box<dyn Baseline>
        };
        let mut row = Fake {
            error: 0.5,
            launches: Rc::clone(&counts[0]),
        };
        let (mut record, _) = outcome(0.5, &Device::emulator());
        assert!(record.baselines.is_empty());
        let baselines = vec![
            baseline("good", Some(0.25), &counts[1]),
            baseline("wrong", Some(2.0), &counts[2]),
            baseline("lacking", None, &counts[3]),
        ];
        compare(
            &device,
            &flags(),
            &mut row,
            baselines,
            Vec::new(),
            &mut record,
        )
        .unwrap();

        assert_eq!(counts.map(|count| count.get()), [9, 9, 0, 0]);
        assert_eq!(record.single.unwrap().launches, 7);
        assert!(record.replayed.is_none(), "graphs are for CUDA devices");
        let [good, wrong, lacking] = &record.baselines[..] else {
            panic!("{:?}", record.baselines);
        };
        assert!(!good.is_wrong() && good.why_not.is_none());
        assert_eq!(good.single.unwrap().launches, 7);
        assert_eq!(wrong.check.unwrap().max_error, 2.0);
        assert!(wrong.is_wrong() && wrong.single.is_none());
        assert_eq!(lacking.why_not.as_deref(), Some("it has no fake"));
        assert!(lacking.check.is_none() && lacking.single.is_none());
    }

    #[test]
    fn an_error_that_is_no_excuse_ends_the_run() {
        let error: Error = halo_gpu::Error::NoDevice.into();
        assert!(judged("nvcc", Err(error)).is_err());
    }
}
