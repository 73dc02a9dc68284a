//! Ranks that are processes: each case runs this test again under the launcher, `mpirun` or
//! the one that `HALO_MPIRUN` names.

use halo_distributed::{Communicator, Decomposition, Error, Ghosted, derivative3d, heat2d, sum};
use halo_gpu::derivative3d::FiniteDifferences3d;
use halo_gpu::heat2d::{Heat2d, problem};
use halo_gpu::{Device, Field3, Grid3, Shape2, Shape3, reduction};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const CASE: &str = "HALO_MPI_CASE";

/// Runs the test `name` on this many ranks, each a process that calls `body`.
fn launched(name: &str, ranks: usize, body: fn() -> Result<(), Error>) -> Option<Output> {
    if std::env::var(CASE).is_ok_and(|case| case == name) {
        if let Err(error) = body() {
            eprintln!("{error}");
            // Without the end of the test that a panic would be.
            std::process::exit(7);
        }
        return None;
    }
    let launcher = std::env::var("HALO_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
    let mut command = Command::new(&launcher);
    if !launcher.contains("mpich") {
        // Open MPI's own: for containers, and for more ranks than processors.
        command.args(["--allow-run-as-root", "--oversubscribe"]);
    }
    let output = command
        .arg("-n")
        .arg(ranks.to_string())
        .arg(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CASE, name)
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .output()
        .expect("the launcher");
    Some(output)
}

fn words(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn bits_of_one_device() -> Result<(), Error> {
    let communicator = Communicator::mpi()?;
    let (device, ranks) = (Device::cpu(), communicator.size());
    let shape = Shape2::new(61, 45);
    let heat = Heat2d::dirichlet(shape)?;
    let initial = problem::hot_left_wall::<f32>(shape)?;
    let one = heat.iterate_of(&device, &initial, 50)?;
    for cut in [
        Decomposition::slabs([61, 45], ranks)?,
        Decomposition::least_surface([61, 45], ranks)?,
    ] {
        let value = |[i, j]: [usize; 2]| initial[(i, j)];
        let mut plate = heat2d::Plate::new(&communicator, &device, heat, cut, 4, value)?;
        plate.iterate(50)?;
        assert_eq!(plate.field()?.as_slice(), one.as_slice());
    }

    // On a ring, of two ranks too.
    let grid = Grid3::new(Shape3::new(8, 9, 32), [0.1; 3])?;
    let grid = FiniteDifferences3d::<f64>::new(&grid)?;
    let wave = Field3::from_fn(grid.shape(), |i, j, k| ((i + 2 * j + 3 * k) as f64).sin())?;
    let right = grid.laplacian_of(&device, &wave)?;
    let ring = Decomposition::slabs([8, 9, 32], ranks)?.periodic(2)?;
    let value = |[i, j, k]: [usize; 3]| wave[(i, j, k)];
    let mut f = Ghosted::new(&communicator, &device, ring, grid.radius(), value)?;
    let mut laplacian = f.zeros_like()?;
    let part = derivative3d::on_part(&communicator, &grid, &f)?;
    f.exchange(&communicator)?;
    part.laplacian(f.buffer(), laplacian.buffer_mut())?;
    assert_eq!(laplacian.gather(&communicator)?, right.as_slice());

    let values: Vec<f32> = (0..100_003).map(|i| (i as f32).sin()).collect();
    let right = reduction::sum_of(&device, &values)?;
    let bound = |rank: usize| values.len() * rank / ranks;
    let own = &values[bound(communicator.rank())..bound(communicator.rank() + 1)];
    assert_eq!(sum(&communicator, &device.upload(own)?)?, right);
    communicator.barrier()
}

#[test]
fn processes_have_the_bits_of_one_device() {
    for ranks in [1, 2, 3, 4, 7] {
        let name = "processes_have_the_bits_of_one_device";
        let Some(output) = launched(name, ranks, bits_of_one_device) else {
            return;
        };
        let passed = words(&output).matches("1 passed").count();
        assert!(
            output.status.success() && passed == ranks,
            "{ranks} ranks: {}",
            words(&output)
        );
    }
}

#[test]
fn a_process_that_dies_ends_all() {
    let start = Instant::now();
    let output = launched("a_process_that_dies_ends_all", 3, || {
        let communicator = Communicator::mpi()?;
        if communicator.rank() == 1 {
            std::process::exit(3);
        }
        communicator.barrier()
    });
    let Some(output) = output else { return };
    assert!(!output.status.success(), "{}", words(&output));
    assert!(start.elapsed() < Duration::from_secs(50));
}

#[test]
fn a_process_that_hangs_is_an_error_in_time() {
    let start = Instant::now();
    let output = launched("a_process_that_hangs_is_an_error_in_time", 2, || {
        let communicator = Communicator::mpi()?.with_deadline(Duration::from_millis(300));
        if communicator.rank() == 1 {
            // The launcher ends this one.
            std::thread::sleep(Duration::from_secs(100));
        }
        communicator.barrier()
    });
    let Some(output) = output else { return };
    let words = words(&output);
    assert!(!output.status.success(), "{words}");
    assert!(words.contains("rank 0 has waited"), "{words}");
    assert!(start.elapsed() < Duration::from_secs(50));
}

#[test]
fn messages_of_another_length_are_refused() {
    let output = launched("messages_of_another_length_are_refused", 2, || {
        use halo_distributed::{Incoming, Outgoing};
        let communicator = Communicator::mpi()?;
        let (rank, peer) = (communicator.rank(), 1 - communicator.rank());
        let outgoing = Outgoing {
            to: peer,
            tag: 0,
            bytes: &[7; 4][..3 + peer],
        };
        let mut room = [0; 3];
        let incoming = Incoming {
            from: peer,
            tag: 0,
            bytes: &mut room,
        };
        let done = communicator.exchange(&[outgoing], &mut [incoming]);
        assert!(rank == 1 || done.is_ok());
        done
    });
    let Some(output) = output else { return };
    let words = words(&output);
    assert!(!output.status.success(), "{words}");
    assert!(
        words.contains("rank 1: the message of rank 0 has 4 bytes, but must have 3"),
        "{words}"
    );
}

/// As of a program that was built with another MPI than the launcher's.
#[test]
fn a_launcher_of_another_make_is_found_out() {
    let name = "a_launcher_of_another_make_is_found_out";
    let body = || match Communicator::mpi() {
        Err(error @ Error::Launcher { launched: 5, .. }) => Err(error),
        other => panic!("{other:?}"),
    };
    if std::env::var(CASE).is_ok_and(|case| case == name) {
        let _ = launched(name, 1, body);
        return;
    }
    let output = Command::new(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", name, "--nocapture"])
        .env(CASE, name)
        .env("PMI_SIZE", "5")
        .output()
        .expect("this test");
    let words = words(&output);
    assert!(words.contains("PMI_SIZE says 5"), "{words}");
}
