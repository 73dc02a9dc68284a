//! Runs over several ranks: the measurements, and a model's prediction for more ranks.

mod chart;
mod record;
mod tables;

use crate::Error;
use crate::shown::Shown;

pub use record::{Halo, MessageTime, Modelled, ScalingRecord, ScalingRow, TimedPart};
pub use tables::{header, model, of_family};

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
        alone.part = Some(TimedPart {
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
    fn grids_are_cut_into_slabs_or_blocks_whichever_takes_less_time() {
        let mut record = record();
        // Messages of 1 GB/s, and a halo of one plane on each side of 64 x 32 x 16 points.
        record.messages[1].seconds = 1e-5 + 1e-3;
        let mut alone = record.rows[0].clone();
        alone.size = "64x32x16".to_owned();
        alone.halo = Halo::Cube;
        let faces = 64 * 32 + 64 * 16 + 32 * 16;
        (alone.halo_bytes, alone.field_bytes) = (8 * faces, 4 * 64 * 32 * 16);
        let exchange = |alone: &ScalingRow, ranks| {
            let modelled = record.model(alone, ranks).expect("a model");
            modelled.exchange_s
        };
        let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
        let slab = 1e-5 + (8 * 64 * 32) as f64 / 1e9;
        // A step that takes no time for its computation.
        alone.compute_s = 0.0;
        assert_eq!(exchange(&alone, 1), 0.0);
        assert!(is_near(exchange(&alone, 2), slab));
        // A cube of an eighth has two and a half times fewer ghost points, but three messages.
        assert!(is_near(exchange(&alone, 8), slab));
        alone.halo_bytes *= 100;
        alone.field_bytes *= 100;
        let cube = |ranks: f64| 3e-5 + (800 * faces) as f64 / ranks.cbrt().powi(2) / 1e9;
        assert!(is_near(exchange(&alone, 8), cube(8.0)));
        // Slabs of less than a plane, which would take less time.
        alone.size = "1x1x4096".to_owned();
        (alone.halo_bytes, alone.field_bytes) = (8 * 8193, 4 * 4096);
        assert!(is_near(exchange(&alone, 2048), 1e-5 + 8e-9));
        let blocks = 3e-5 + 8.0 * 8193.0 / 8192_f64.cbrt().powi(2) / 1e9;
        assert!(is_near(exchange(&alone, 8192), blocks));
        // Weak scaling leaves slabs as thick as they are.
        alone.weak = true;
        assert!(is_near(exchange(&alone, 8192), 1e-5 + 8e-9));
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
            "squares or cubes, whichever",
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
