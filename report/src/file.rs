//! Reads and joins record files, and writes a record in every requested format.
//!
//! A file is written under a temporary name and then renamed: at any time there is the old file or
//! the new one, complete.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde_json::{Value, json};

use crate::Error;
use crate::record::Record;
use crate::scaling::ScalingRecord;
use crate::units::printable;

pub use crate::shown::Shown;

/// The largest size of a decompressed file, in bytes: much more than any record.
const MOST_BYTES: u64 = 1 << 30;

/// A record that was read.
#[derive(Clone, Debug)]
pub enum AnyRecord {
    /// Of one device.
    Device(Box<Record>),
    /// Of several ranks.
    Ranks(Box<ScalingRecord>),
}

/// The files to write a record to, and their formats.
#[derive(Clone, Debug, Default)]
pub struct Outputs {
    /// The whole record, in a form that can be read again; compressed where the name ends in ".gz".
    pub json: Option<PathBuf>,
    /// Comma-separated values.
    pub csv: Option<PathBuf>,
    /// A page.
    pub html: Option<PathBuf>,
    /// A folder for the page's charts.
    pub svg: Option<PathBuf>,
}

impl Outputs {
    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.json, &self.csv, &self.html].into_iter().flatten()
    }

    /// Whether no file is to be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files().next().is_none() && self.svg.is_none()
    }

    /// Makes the folders, and checks that every file can be written.
    ///
    /// # Errors
    ///
    /// The first file that cannot be written.
    pub fn check(&self) -> Result<(), Error> {
        for path in self.files() {
            check_file(path)?;
        }
        match &self.svg {
            Some(folder) => make_folder(folder).and_then(|()| probe(folder, folder)),
            None => Ok(()),
        }
    }

    /// Writes the record in each of its forms. An error of one does not stop the others; returns
    /// all errors.
    #[must_use]
    pub fn write(&self, record: &impl Shown) -> Vec<Error> {
        let mut results = Vec::new();
        let mut write = |path: &Path, contents: Result<Vec<u8>, Error>| {
            // A pipe takes one record: the last, complete one.
            if is_plain(path) || record.missing().is_empty() {
                results.push(contents.and_then(|contents| write_file(path, &contents)));
            }
        };
        if let Some(path) = &self.json {
            write(path, to_json(path, record));
        }
        if let Some(path) = &self.csv {
            write(path, record.to_csv().map(String::into_bytes));
        }
        if let Some(path) = &self.html {
            write(path, Ok(record.html().into_bytes()));
        }
        if let Some(folder) = &self.svg {
            for (name, svg) in record.svg_files() {
                write(&folder.join(name), Ok(svg.into_bytes()));
            }
        }
        results.into_iter().filter_map(Result::err).collect()
    }
}

fn to_json(path: &Path, record: &impl Serialize) -> Result<Vec<u8>, Error> {
    let json = serde_json::to_vec_pretty(record).map_err(|source| json_error(path, source))?;
    if path.extension().is_none_or(|extension| extension != "gz") {
        return Ok(json);
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packed.write_all(&json).and_then(|()| packed.finish());
    packed.map_err(file_error("compress", path))
}

/// Reads these JSON files, compressed or not, as one record; `None` for no files. Its strings are
/// free of control characters.
///
/// # Errors
///
/// If one of them cannot be read, is not a record, or does not belong with the first.
pub fn read(paths: &[PathBuf]) -> Result<Option<AnyRecord>, Error> {
    let mut whole: Option<AnyRecord> = None;
    for path in paths {
        let joined = match (&mut whole, read_one(path)?) {
            (None, record) => {
                whole = Some(record);
                continue;
            }
            (Some(AnyRecord::Device(whole)), AnyRecord::Device(record)) => join(whole, *record),
            (Some(AnyRecord::Ranks(whole)), AnyRecord::Ranks(record)) => whole.join(*record),
            _ => Err("one is for one device, the other for several ranks".to_owned()),
        };
        joined.map_err(|why| Error::Join {
            first: paths[0].clone(),
            second: path.clone(),
            why,
        })?;
    }
    Ok(whole)
}

fn read_one(path: &Path) -> Result<AnyRecord, Error> {
    let mut bytes = fs::read(path).map_err(file_error("read", path))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = Vec::new();
        let mut unpacker = GzDecoder::new(bytes.as_slice()).take(MOST_BYTES);
        unpacker
            .read_to_end(&mut unpacked)
            .map_err(file_error("unpack", path))?;
        bytes = unpacked;
    }
    let parsed = serde_json::from_slice(&bytes)
        .map(first_form)
        .and_then(|mut value| {
            clean(&mut value);
            if value.get("transport").is_some() {
                serde_json::from_value(value).map(|record| AnyRecord::Ranks(Box::new(record)))
            } else {
                serde_json::from_value(value).map(|record| AnyRecord::Device(Box::new(record)))
            }
        });
    parsed.map_err(|source| json_error(path, source))
}

/// Replaces the control characters in all strings.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = printable(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Converts a record of the first format, which also held values derived from the times, to the
/// present one; returns any other as it is.
fn first_form(mut value: Value) -> Value {
    let rivals = take(&mut value, "/rivals");
    if rivals.is_null() {
        return value;
    }
    value["baselines"] = rivals;
    let whole = value["ceilings"].clone();
    for family in objects(value.get_mut("families")) {
        let mut ceilings = whole.clone();
        let problems = objects(family.get_mut("problems"));
        for row in problems.flat_map(|problem| objects(problem.get_mut("rows"))) {
            // Each row was compared with the limits of its own run.
            let (slots, single) = (&row["work"]["slots"], &row["single"]);
            let (rates, roof) = (&single["rates"], &single["roof"]);
            limit(
                &mut ceilings,
                "copy",
                &rates["bytes_per_s"],
                &rates["fraction_of_copy"],
            );
            if let Some(name @ ("fp32" | "fp64")) = roof["roof"].as_str() {
                limit(&mut ceilings, name, &slots[name], &roof["least_s"]);
            }
            row["launches_per_graph"] = take(row, "/replayed/launches_per_timing");
            row["baselines"] = take(row, "/contenders");
            times(row);
            objects(row.get_mut("baselines")).for_each(times);
        }
        if ceilings != whole {
            family["ceilings"] = ceilings;
        }
    }
    value
}

/// Removes and returns the value at this place.
fn take(value: &mut Value, pointer: &str) -> Value {
    value.pointer_mut(pointer).map_or(Value::Null, Value::take)
}

/// The objects of an array, if it is one.
fn objects(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    let values = value.and_then(Value::as_array_mut).into_iter().flatten();
    values.filter(|value| value.is_object())
}

/// Moves the times of a row, or of a baseline's, to their present place.
fn times(row: &mut Value) {
    row["single"] = take(row, "/single/time");
    row["replayed"] = take(row, "/replayed/time");
}

/// Turns a ceiling into this amount per time, unless it is one already.
fn limit(ceilings: &mut Value, name: &str, amount: &Value, over: &Value) {
    let (Some(amount), Some(over)) = (amount.as_f64(), over.as_f64()) else {
        return;
    };
    let ceiling = &ceilings[name];
    let (Some(known), Some(whole)) = (ceiling["per_s"].as_f64(), ceiling["amount"].as_f64()) else {
        return;
    };
    let rate = amount / over;
    if (rate / known - 1.0).abs() > 1e-9 {
        ceilings[name]["per_s"] = json!(rate);
        for time in ["median_s", "min_s", "max_s"] {
            if let Some(time) = ceilings.pointer_mut(&format!("/{name}/time/{time}")) {
                *time = json!(whole / rate);
            }
        }
    }
}

/// Adds the families of another run to a record; an error with the reason if they cannot share one.
/// Each family keeps the limits of its own run.
fn join(whole: &mut Record, other: Record) -> Result<(), String> {
    whole.environment.require_same(&other.environment)?;
    for family in &other.families {
        if whole.families.iter().any(|known| known.name == family.name) {
            return Err(format!("both measured {}", family.name));
        }
    }
    for baseline in other.baselines {
        match whole
            .baselines
            .iter_mut()
            .find(|known| known.name == baseline.name)
        {
            // A baseline that took part in one run took part.
            Some(known) if baseline.why_not.is_none() => known.why_not = None,
            Some(_) => {}
            None => whole.baselines.push(baseline),
        }
    }
    for mut family in other.families {
        if family.ceilings.is_none() && other.ceilings != whole.ceilings {
            family.ceilings = Some(other.ceilings.clone());
        }
        whole.families.push(family);
    }
    whole.families.sort_by(|a, b| a.name.cmp(&b.name));
    whole.missing.extend(other.missing);
    whole.missing.sort();
    whole.missing.dedup();
    let measured = |name: &String| whole.families.iter().any(|family| family.name == *name);
    whole.missing.retain(|name| !measured(name));
    Ok(())
}

/// Whether this is a plain file, which can be replaced, or none yet; a pipe is not.
fn is_plain(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file()) || fs::symlink_metadata(path).is_err()
}

/// The folder of a file, and the file itself where links lead to it.
fn place(path: &Path) -> (PathBuf, PathBuf) {
    let file = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    (folder.unwrap_or(Path::new(".")).to_owned(), file)
}

fn check_file(path: &Path) -> Result<(), Error> {
    let (folder, file) = place(path);
    make_folder(&folder)?;
    match fs::metadata(&file) {
        Ok(found) if !found.is_file() && !found.is_dir() => return Ok(()),
        Ok(_) => {
            let opened = fs::OpenOptions::new().append(true).open(&file);
            opened.map_err(file_error("write", path))?;
        }
        Err(_) => {}
    }
    probe(&folder, path)
}

/// Checks that a new file can be made in this folder; an error names `path`.
fn probe(folder: &Path, path: &Path) -> Result<(), Error> {
    let probed = tempfile::Builder::new()
        .prefix(".halo-bench")
        .tempfile_in(folder);
    probed
        .map(drop)
        .map_err(|error| file_error("write", path)(error))
}

fn write_file(path: &Path, contents: &[u8]) -> Result<(), Error> {
    if !is_plain(path) {
        return fs::write(path, contents).map_err(file_error("write", path));
    }
    let (folder, file) = place(path);
    make_folder(&folder)?;
    let mut beside = tempfile::Builder::new();
    beside.prefix(".halo-bench");
    let old = fs::metadata(&file).map(|found| found.permissions()).ok();
    #[cfg(unix)]
    let old = old.or(Some(std::os::unix::fs::PermissionsExt::from_mode(0o666)));
    if let Some(permissions) = old {
        beside.permissions(permissions);
    }
    let written = beside.tempfile_in(folder).and_then(|mut beside| {
        beside.write_all(contents)?;
        beside.as_file().sync_all()?;
        beside.persist(file).map(drop).map_err(|error| error.error)
    });
    written.map_err(file_error("write", path))
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(file_error("make", folder))
}

fn file_error(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File {
        action,
        path,
        source,
    }
}

fn json_error(path: &Path, source: serde_json::Error) -> Error {
    let path = path.to_owned();
    Error::Json { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Ceilings;
    use crate::sample::whole;

    /// The record of one device that these files hold.
    fn read(paths: &[PathBuf]) -> Result<Option<Record>, Error> {
        Ok(super::read(paths)?.map(|read| match read {
            AnyRecord::Device(record) => *record,
            AnyRecord::Ranks(record) => panic!("{record:?}"),
        }))
    }

    #[test]
    fn every_form_is_written_with_its_folder_and_json_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        for json in ["a/b/record.json", "a/record.json.gz"] {
            let outputs = Outputs {
                json: path(json),
                csv: path("c/record.csv"),
                html: path("d/record.html"),
                svg: path("e/f"),
            };
            outputs.check().unwrap();
            assert!(outputs.write(&whole()).is_empty());
            let read_back = read(&[path(json).unwrap()]).unwrap().unwrap();
            // The debug text contains every field, NaN included.
            assert!(format!("{read_back:?}") == format!("{:?}", whole()));
        }
        let start = |name: &str| fs::read_to_string(path(name).unwrap()).unwrap();
        assert!(start("c/record.csv").starts_with("# device: Fixture GPU"));
        assert!(start("d/record.html").starts_with("<!DOCTYPE html>"));
        assert!(start("e/f/roofline.svg").starts_with("<svg"));
        assert_eq!(fs::read_dir(path("e/f").unwrap()).unwrap().count(), 9);
        assert!(read(&[]).unwrap().is_none());
    }

    #[test]
    fn an_output_that_cannot_be_written_keeps_no_other_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(folder.path().join(name));
        let outputs = Outputs {
            json: path("in/a.json"),
            csv: path("a.csv"),
            ..Outputs::default()
        };
        outputs.check().unwrap();
        fs::remove_dir(folder.path().join("in")).unwrap();
        fs::write(folder.path().join("in"), "in the way").unwrap();
        let errors = outputs.write(&whole());
        let [error] = &errors[..] else {
            panic!("{errors:?}")
        };
        assert!(error.to_string().contains("in"), "{error}");
        assert!(folder.path().join("a.csv").exists());
        assert!(outputs.check().is_err());
    }

    #[test]
    fn a_file_keeps_its_links_and_permissions() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("real.csv"), "old").unwrap();
        fs::set_permissions(path("real.csv"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.csv", path("link.csv")).unwrap();
        let outputs = Outputs {
            csv: Some(path("link.csv")),
            ..Outputs::default()
        };
        outputs.check().unwrap();
        assert!(outputs.write(&whole()).is_empty());
        assert!(fs::symlink_metadata(path("link.csv")).unwrap().is_symlink());
        assert!(
            fs::read_to_string(path("real.csv"))
                .unwrap()
                .starts_with('#')
        );
        let mode = fs::metadata(path("real.csv")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    /// The sample with these families only.
    fn part(families: &[&str]) -> Record {
        let mut record = whole();
        record
            .families
            .retain(|family| families.contains(&family.name.as_str()));
        record
    }

    #[test]
    fn runs_of_different_families_are_one_record() {
        let mut first = part(&["heat2d", "stencil1d"]);
        let mut other = part(&["derivative3d", "nbody", "reduction"]);
        // Only one of the runs had baselines.
        first.baselines.truncate(1);
        first.baselines[0].why_not = Some("not compiled".to_owned());
        first.missing = vec!["nbody".to_owned(), "other".to_owned()];
        other.missing = vec!["heat2d".to_owned()];
        join(&mut first, other).unwrap();
        assert_eq!(first.missing, ["other"]);
        first.missing.clear();
        assert!(format!("{first:?}") == format!("{:?}", whole()));
    }

    #[test]
    fn joined_families_keep_the_limits_of_their_runs() {
        let (mut first, mut other) = (part(&["heat2d"]), part(&["nbody"]));
        let ceilings = Ceilings {
            fp32: None,
            ..other.ceilings.clone()
        };
        other.ceilings = ceilings.clone();
        join(&mut first, other).unwrap();
        assert_eq!(first.families[0].ceilings, None);
        assert_eq!(first.families[1].ceilings, Some(ceilings));
    }

    #[test]
    fn runs_that_do_not_belong_together_are_not_joined() {
        let refused = |other: Record| join(&mut part(&["heat2d"]), other).unwrap_err();
        assert_eq!(refused(part(&["nbody", "heat2d"])), "both measured heat2d");
        let mut other = part(&["nbody"]);
        other.environment.commit = None;
        let why = "the commit of one is \"0123456789ab\", of the other \"\"";
        assert_eq!(refused(other), why);
        let mut other = part(&["nbody"]);
        other.environment.device.name = "another".to_owned();
        assert!(refused(other).contains("the device of one"));
    }

    #[test]
    fn records_of_the_first_form_are_read() {
        let time = json!({
            "launches": 20, "median_s": 1e-5, "min_s": 9e-6, "max_s": 2e-5, "relative_spread": 0.01
        });
        let ceiling = json!({ "amount": 1000, "per_s": 1e12, "time": time, "method": "a copy" });
        let mut value = serde_json::to_value(part(&["nbody"])).unwrap();
        value["ceilings"]["copy"] = ceiling.clone();
        value["ceilings"]["fp32"] = ceiling;
        value["rivals"] = value["baselines"].take();
        let problems = value["families"][0]["problems"].as_array_mut().unwrap();
        problems.truncate(1);
        problems[0]["rows"].as_array_mut().unwrap().truncate(1);
        let row = &mut problems[0]["rows"][0];
        row["within_bounds"] = json!(true);
        row["single"] = json!({
            "time": time, "launches_per_timing": 1,
            "rates": { "bytes_per_s": 2e12, "fraction_of_copy": 0.5 },
            "roof": { "roof": "fp32", "least_s": 1e-6, "fraction": 0.1 }
        });
        row["replayed"] = json!({ "time": time, "launches_per_timing": 40 });
        row["contenders"] = json!([{
            "name": "nvcc", "why_not": null, "check": null, "within_bounds": false,
            "single": { "time": time, "ratio": { "value": 1.0 } }, "replayed": null
        }]);
        let slots = row["work"]["slots"]["fp32"].as_f64().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        fs::write(&path, value.to_string()).unwrap();

        let record = read(&[path]).unwrap().unwrap();
        let row = &record.families[0].problems[0].rows[0];
        assert_eq!(record.baselines.len(), 4);
        assert_eq!(row.single.unwrap().median_s, 1e-5);
        assert_eq!(row.replayed.unwrap().max_s, 2e-5);
        assert_eq!(row.launches_per_graph, Some(40));
        assert_eq!(row.baselines[0].single.unwrap().launches, 20);
        assert!(row.baselines[0].replayed.is_none());
        // The limits of its own run are not the whole record's.
        let ceilings = record.families[0].ceilings.as_ref().unwrap();
        assert!((ceilings.copy.as_ref().unwrap().per_s() / 4e12 - 1.0).abs() < 1e-9);
        assert!((ceilings.fp32.as_ref().unwrap().per_s() / (slots * 1e6) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_word_of_a_file_is_a_command_to_a_terminal() {
        const HOSTILE: &str = "\u{1b}[31mred\u{7}\u{9b}2J\r\u{202e}";
        let mut record = whole();
        record.environment.device.name = HOSTILE.to_owned();
        record.families[0].problems[0].rows[0].name = HOSTILE.to_owned();
        record.families[0].problems[0]
            .notes
            .push(format!("a\n{HOSTILE}"));
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("a.json");
        let outputs = Outputs {
            json: Some(json.clone()),
            ..Outputs::default()
        };
        assert!(outputs.write(&record).is_empty());
        let text = crate::to_text(&read(&[json]).unwrap().unwrap());
        assert!(text.contains("[31mred"), "{text}");
        let obeyed = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(obeyed));

        let path = folder.path().join("wrong.json");
        let wrong = r#"{"environment": {"device": "\u001b[31m"}}"#;
        fs::write(&path, wrong).unwrap();
        let error = read(&[path]).unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            source.contains("[31m") && !source.contains(obeyed),
            "{source:?}"
        );
    }

    #[test]
    fn what_is_no_record_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        for wrong in [
            "",
            "null",
            "[]",
            "3",
            "{\"device\": {}}",
            "{\"rivals\": 3}",
            "{\"rivals\": [], \"ceilings\": [], \"families\": [3, {\"problems\": [{\"rows\": [1, {\"single\": 2, \"replayed\": []}]}]}]}",
            "\u{1f}",
        ] {
            fs::write(&path, wrong).unwrap();
            let error = read(std::slice::from_ref(&path)).unwrap_err();
            assert!(error.to_string().contains("old.json"), "{error}");
        }
        for wrong in [&b"\x1f\x8b"[..], b"\x1f\x8b\x08\x00\x00", b"\xff\xfe"] {
            fs::write(&path, wrong).unwrap();
            assert!(read(std::slice::from_ref(&path)).is_err());
        }
    }
}
