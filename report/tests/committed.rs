//! The committed records can be read, and every output can be made from them.

use std::path::{Path, PathBuf};

use halo_report::file::{AnyRecord, Shown as _};

#[test]
fn every_committed_record_has_its_tables_its_page_and_its_charts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bench");
    let (mut records, mut pictures) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if !name.contains(".json") {
            continue;
        }
        records += 1;
        let stem = name.split('.').next().unwrap().to_owned();
        let record = match halo_report::file::read(&[path]).unwrap().unwrap() {
            AnyRecord::Device(record) => record,
            AnyRecord::Ranks(_) => panic!("records of ranks are in a folder of theirs"),
        };
        assert!(record.passes() && record.missing.is_empty());
        let (text, page) = (halo_report::to_text(&record), halo_report::html(&record));
        let csv = halo_report::to_csv(&record).unwrap();
        for row in record.rows() {
            for made in [&text, &csv] {
                assert!(made.contains(&row.name), "{}", row.name);
            }
        }
        let device = &record.environment.device.name;
        assert!(page.contains(&format!("<h1>Halo benchmark: {device}</h1>")));
        // A family that was measured at one size has no chart over sizes; the page says so.
        let over_sizes = record.families.iter().filter(|it| it.problems.len() > 1);
        let over_sizes = over_sizes.count();
        let says_so = page.contains("Charts left out");
        assert_eq!(says_so, over_sizes < record.families.len());
        if device_kind(&record) == "cpu" {
            // Each row was compared with limits that were measured in turns with it.
            assert!(record.rows().all(|row| row.ceilings.is_some()));
        }
        let charts = halo_report::svg_files(&record);
        // A roofline, limits, one of each baseline and one of each family over its sizes.
        let expect = 2 + record.baselines.len() + over_sizes;
        assert_eq!(charts.len(), expect);
        for (name, svg) in charts {
            // The pictures with a record's name are made from it.
            let picture = folder.join(format!("{stem}-{name}"));
            if let Ok(picture) = std::fs::read_to_string(picture) {
                pictures += 1;
                assert!(
                    picture == svg,
                    "make {name} again, as docs/bench/README.md says"
                );
            }
            let document = roxmltree::Document::parse(&svg).unwrap();
            let marks = document
                .descendants()
                .filter(|it| it.attribute("class") == Some("mark"));
            assert!(marks.count() > 5, "{name}");
        }
    }
    let committed = std::fs::read_dir(&folder).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|extension| extension == "svg")
    });
    assert!(records > 0);
    assert_eq!(pictures, committed.count());
}

#[test]
fn every_committed_record_of_ranks_has_its_tables_its_page_and_its_charts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/bench/ranks");
    let paths = std::fs::read_dir(&folder).unwrap();
    let paths: Vec<PathBuf> = paths.map(|entry| entry.unwrap().path()).collect();
    let is = |path: &PathBuf, kind: &str| path.extension().is_some_and(|it| it == kind);
    let mut pictures = 0;
    for path in paths.iter().filter(|path| is(path, "json")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let record = match halo_report::file::read(std::slice::from_ref(path)) {
            Ok(Some(AnyRecord::Ranks(record))) => record,
            other => panic!("{name}: {other:?}"),
        };
        assert!(record.passes() && record.missing.is_empty(), "{name}");
        let (text, page, csv) = (record.to_text(), record.html(), record.to_csv().unwrap());
        for row in &record.rows {
            assert!(text.contains(&row.problem) && page.contains(&row.problem));
            assert!(csv.contains(&row.family));
        }
        assert!(page.contains("deviation") && csv.contains("4096,model,"));
        let charts = record.svg_files();
        assert_eq!(charts.len(), 2, "{name}");
        for (chart, svg) in charts {
            if let Ok(picture) = std::fs::read_to_string(folder.join(format!("{name}-{chart}"))) {
                pictures += 1;
                assert!(
                    picture == svg,
                    "make {name}-{chart} again, as docs/bench/README.md says"
                );
            }
        }
    }
    assert_eq!(
        pictures,
        paths.iter().filter(|path| is(path, "svg")).count()
    );
}

fn device_kind(record: &halo_report::Record) -> &str {
    &record.environment.device.kind
}
