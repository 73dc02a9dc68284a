//! The report as files: written in every form that the flags ask for, and read
//! back from JSON, so that a page can be made later and elsewhere.

use std::path::Path;

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

/// Reads a report that `--json` wrote.
pub(super) fn read(path: &Path) -> Result<Report, Error> {
    let json = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    serde_json::from_str(&json).map_err(Error::json("read", path))
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

        let read_back = read(&path("a/b/report.json")).unwrap();
        // All that a report holds is in its text form, NaN included.
        assert!(format!("{read_back:?}") == format!("{report:?}"));
        let start = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert!(start("c/report.csv").starts_with("# device: Fixture GPU"));
        assert!(start("d/report.html").starts_with("<!DOCTYPE html>"));
        assert!(start("e/f/roofline.svg").starts_with("<svg"));
        assert_eq!(std::fs::read_dir(path("e/f")).unwrap().count(), 7);
    }

    #[test]
    fn what_is_no_report_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        std::fs::write(&path, "{\"device\": {}}").unwrap();
        let error = crate::error::chain(&read(&path).unwrap_err());
        assert!(
            error.contains("old.json") && error.contains("missing field"),
            "{error}"
        );
    }
}
