//! Zarr arrays: written by all ranks, read by any number of them, and refused where they do not fit.

use halo_distributed::{Decomposition, Error, run, zarr};
use std::path::Path;

fn value([i, j, k]: [usize; 3]) -> f64 {
    1.0 + (i + 100 * j + 10_000 * k) as f64
}

fn written(path: &Path, points: [usize; 3], parts: [usize; 3]) {
    let cut = Decomposition::new(points, parts).expect("a cut");
    let written = run(cut.ranks(), |communicator| {
        let own = cut.values(communicator.rank(), value)?;
        zarr::write(&communicator, path, "pressure", &cut, &own)
    });
    written.expect("it is written");
}

/// Chunks of the array, each a file.
fn chunks(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let of_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        if path.is_dir() { chunks(&path) } else { 1 }
    };
    entries.map(of_entry).sum()
}

#[test]
fn arrays_come_back_in_any_cut() {
    // Uneven blocks, and more parts than chunks: 10 points in chunks of 2 are five.
    for (points, parts, files) in [
        ([7, 5, 11], [1, 1, 1], 1),
        ([7, 5, 11], [1, 1, 3], 3),
        ([7, 5, 11], [3, 2, 2], 12),
        ([3, 4, 10], [1, 1, 7], 5),
        ([8, 6, 4], [2, 2, 2], 8),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a/field.zarr");
        // Twice, as the first stands in the place of the second.
        written(&path, points, [1, 1, 2]);
        written(&path, points, parts);
        assert_eq!(
            chunks(&path.join("pressure/c")),
            files,
            "{points:?} {parts:?}"
        );
        assert!(!path.join("pressure.part").exists());
        for to in [[1, 1, 1], [2, 1, 2], [1, 3, 1]] {
            let cut = Decomposition::new(points, to).expect("a cut");
            let read = run(cut.ranks(), |communicator| {
                let share = zarr::read::<f64, 3>(&communicator, &path, "pressure", &cut)?;
                assert!(share.block().points().all(|at| share[at] == value(at)));
                Ok(share.values().len())
            });
            let read: usize = read.expect("it is read").into_iter().sum();
            assert_eq!(read, points.iter().product::<usize>());
        }
    }
}

#[test]
fn what_others_look_for_is_in_the_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.zarr");
    written(&path, [7, 5, 11], [2, 1, 2]);
    let json = |name: &str| -> serde_json::Value {
        let text = std::fs::read(path.join(name)).expect("a record");
        serde_json::from_slice(&text).expect("JSON")
    };
    let group = json("zarr.json");
    assert_eq!(
        (&group["zarr_format"], &group["node_type"]),
        (&3.into(), &"group".into())
    );
    let array = json("pressure/zarr.json");
    assert_eq!(array["shape"], serde_json::json!([11, 5, 7]));
    assert_eq!(array["data_type"], "float64");
    assert_eq!(array["dimension_names"], serde_json::json!(["z", "y", "x"]));
    let chunk = &array["chunk_grid"]["configuration"]["chunk_shape"];
    assert_eq!(*chunk, serde_json::json!([6, 5, 4]));
    let codecs = array["codecs"].as_array().expect("codecs");
    assert!(
        codecs.len() == 1 && codecs[0]["name"] == "bytes",
        "{codecs:?}"
    );
}

#[test]
fn arrays_that_do_not_fit_are_refused_by_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("field.zarr");
    let points = [7, 5, 11];
    written(&path, points, [1, 1, 2]);
    let refused = |name: &str, points: [usize; 3]| {
        let cut = Decomposition::slabs(points, 2).expect("a cut");
        let refused =
            run(2, |communicator| {
                Ok(zarr::read::<f64, 3>(&communicator, &path, name, &cut)
                    .expect_err("it does not fit"))
            });
        refused.expect("both learn it")
    };
    for error in refused("pressure", [7, 5, 12]) {
        assert!(
            matches!(
                error,
                Error::Unfit {
                    what: "its shape",
                    ..
                }
            ),
            "{error}"
        );
    }
    for error in refused("nothing", points) {
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
    for error in refused("a/../b", points) {
        assert!(matches!(error, Error::InvalidParameter { .. }), "{error}");
    }
    let of_another_type = run(2, |communicator| {
        let cut = Decomposition::slabs(points, 2)?;
        Ok(zarr::read::<f32, 3>(&communicator, &path, "pressure", &cut).expect_err("another type"))
    });
    for error in of_another_type.expect("both learn it") {
        assert!(
            error.to_string().contains("the type of its elements"),
            "{error}"
        );
    }
    // A folder that stands in the way is an error everywhere.
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let failed = run(2, |communicator| {
        let cut = Decomposition::slabs(points, 2)?;
        let own = cut.values(communicator.rank(), value)?;
        let path = folder.path().join("file/field.zarr");
        Ok(zarr::write(&communicator, path, "pressure", &cut, &own).expect_err("no folder"))
    });
    for error in failed.expect("both learn it") {
        assert!(
            matches!(error, Error::File { .. } | Error::Elsewhere { .. }),
            "{error}"
        );
    }
}
