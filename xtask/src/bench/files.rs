//! The report as files: written in every form that the flags ask for, and read
//! back from JSON, so that a page can be made later and elsewhere.

use std::path::{Path, PathBuf};

use super::report::Report;
use super::{csv, page};
use crate::error::Error;
use crate::flags::Bench;

/// Writes what the flags ask for.
pub(super) fn write(flags: &Bench, report: &Report) -> Result<(), Error> {
    if let Some(path) = &flags.json {
        let mut json = serde_json::to_string_pretty(report).map_err(Error::json("write", path))?;
        json.push('\n');
        write_file(path, &json)?;
    }
    if let Some(path) = &flags.csv {
        write_file(path, &csv::to_csv(report)?)?;
    }
    if let Some(path) = &flags.html {
        write_file(path, &page::html(report)?)?;
    }
    if let Some(folder) = &flags.svg {
        make_folder(folder)?;
        for (name, svg) in page::svg_files(report)? {
            write_file(&folder.join(name), &svg)?;
        }
    }
    Ok(())
}

/// Reads what `--json` wrote to these files, as one report; `None` for no files.
pub(super) fn read(paths: &[PathBuf]) -> Result<Option<Report>, Error> {
    let mut whole: Option<Report> = None;
    for path in paths {
        let json = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        let report: Report = serde_json::from_str(&json).map_err(Error::json("read", path))?;
        match &mut whole {
            None => whole = Some(report),
            Some(whole) => join(whole, report).map_err(|why| {
                let (first, path) = (paths[0].display(), path.display());
                Error::Bench(format!("{path} does not belong with {first}: {why}"))
            })?,
        }
    }
    Ok(whole)
}

/// Adds the families of another run to a report, or says why they cannot stand in
/// one. Each row keeps the limits that its own run measured; the report keeps
/// those of its first.
fn join(whole: &mut Report, other: Report) -> Result<(), String> {
    let (one, two) = (&whole.environment, &other.environment);
    let same: [(&str, String, String); 6] = [
        ("device", one.device.name.clone(), two.device.name.clone()),
        ("kind", one.device.kind.clone(), two.device.kind.clone()),
        ("driver", text(&one.device.driver), text(&two.device.driver)),
        ("nvcc", text(&one.toolkit.nvcc), text(&two.toolkit.nvcc)),
        ("rustc", one.rustc.clone(), two.rustc.clone()),
        ("commit", text(&one.commit), text(&two.commit)),
    ];
    for (what, one, two) in same {
        if one != two {
            return Err(format!(
                "the {what} of one is {one:?}, of the other {two:?}"
            ));
        }
    }
    for family in &other.families {
        if whole.families.iter().any(|known| known.name == family.name) {
            return Err(format!("both measured {}", family.name));
        }
    }
    for rival in other.rivals {
        match whole
            .rivals
            .iter_mut()
            .find(|known| known.name == rival.name)
        {
            // Who took part in some of it took part.
            Some(known) if rival.why_not.is_none() => known.why_not = None,
            Some(_) => {}
            None => whole.rivals.push(rival),
        }
    }
    whole.families.extend(other.families);
    whole.families.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}

fn text(value: &Option<String>) -> String {
    value.clone().unwrap_or_default()
}

fn write_file(path: &Path, contents: &str) -> Result<(), Error> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        make_folder(folder)?;
    }
    std::fs::write(path, contents).map_err(Error::file("write", path))
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::file("make", folder))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::sample;
    use super::*;
    use crate::flags::HaloBench;

    #[test]
    fn every_form_is_written_with_its_folder_and_json_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let flag = |flag: &str, name: &str| [flag.to_owned(), path(name).display().to_string()];
        let arguments = [
            flag("--json", "a/b/report.json"),
            flag("--csv", "c/report.csv"),
            flag("--html", "d/report.html"),
            flag("--svg", "e/f"),
        ];
        let line = std::iter::once("halo-bench".to_owned()).chain(arguments.into_iter().flatten());
        let flags = HaloBench::try_parse_from(line).unwrap().bench;
        let report = sample::report();
        write(&flags, &report).unwrap();

        let read_back = read(&[path("a/b/report.json")]).unwrap().unwrap();
        // All that a report holds is in its text form, NaN included.
        assert!(format!("{read_back:?}") == format!("{report:?}"));
        let start = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert!(start("c/report.csv").starts_with("# device: Fixture GPU"));
        assert!(start("d/report.html").starts_with("<!DOCTYPE html>"));
        assert!(start("e/f/roofline.svg").starts_with("<svg"));
        assert_eq!(std::fs::read_dir(path("e/f")).unwrap().count(), 9);
    }

    /// The sample with none but these families.
    fn part(families: &[&str]) -> Report {
        let mut report = sample::report();
        report
            .families
            .retain(|family| families.contains(&family.name.as_str()));
        report
    }

    #[test]
    fn runs_of_different_families_are_one_report() {
        let mut whole = part(&["heat2d", "stencil1d"]);
        let mut other = part(&["derivative3d", "nbody", "reduction"]);
        // Only one of the runs had any use for these.
        whole.rivals.truncate(1);
        whole.rivals[0].why_not = Some("not compiled".to_owned());
        other.ceilings = Default::default();
        join(&mut whole, other).unwrap();
        assert!(format!("{whole:?}") == format!("{:?}", sample::report()));
        assert_eq!(read(&[]).unwrap().map(|_| ()), None);
    }

    #[test]
    fn runs_that_do_not_belong_together_are_not_joined() {
        let refused = |other: Report| join(&mut part(&["heat2d"]), other).unwrap_err();
        assert_eq!(refused(part(&["nbody", "heat2d"])), "both measured heat2d");
        let mut other = part(&["nbody"]);
        other.environment.commit = None;
        assert_eq!(
            refused(other),
            "the commit of one is \"0123456789ab\", of the other \"\""
        );
        let mut other = part(&["nbody"]);
        other.environment.device.name = "another".to_owned();
        assert!(refused(other).contains("the device of one"));
    }

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        std::fs::write(&path, "{\"device\": {}}").unwrap();
        let error = crate::error::chain(&read(&[path]).unwrap_err());
        assert!(
            error.contains("old.json") && error.contains("missing field"),
            "{error}"
        );
    }
}
