//! Ranks that are processes: each case runs this test again under the launcher, `mpirun` or
//! the one that `HALO_MPIRUN` names. `HALO_OTHER_MPIRUN` names that of another MPI.

#[path = "ways/families.rs"]
mod families;
#[allow(dead_code, reason = "processes have no other ways")]
mod ways;

use families::{CUTS, FAMILIES, Family, parts, restored, saved};
use halo_distributed::{Ahead, Communicator, Decomposition, Error, Expected, Ghosted, Parcel};
use halo_gpu::{Device, DeviceKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use ways::{a_failure_leaves_no_messages, own_failure};

const CASE: &str = "HALO_MPI_CASE";
const FOLDER: &str = "HALO_MPI_FOLDER";

/// A case of this suite: the name of its test, and what each of its processes does.
struct Case {
    name: &'static str,
    body: fn() -> Result<(), Error>,
}

impl Case {
    /// Whether this is one of its processes, which is done then.
    fn is_done(&self) -> bool {
        let is_one = std::env::var(CASE).is_ok_and(|case| case == self.name);
        if is_one && let Err(error) = (self.body)() {
            eprintln!("{error}");
            // Without the end of the test that a panic would be.
            std::process::exit(7);
        }
        is_one
    }

    /// Runs it on this many ranks, which find this folder in their environment.
    fn launch(&self, ranks: usize, folder: &Path) -> Output {
        let launcher = std::env::var("HALO_MPIRUN").unwrap_or_else(|_| "mpirun".to_owned());
        self.launch_by(&launcher, ranks, folder)
    }

    fn launch_by(&self, launcher: &str, ranks: usize, folder: &Path) -> Output {
        let mut command = Command::new(launcher);
        if !launcher.contains("mpich") {
            // Open MPI's own: for containers, and for more ranks than processors.
            command.args(["--allow-run-as-root", "--oversubscribe"]);
        }
        // The same numbers on all ranks, and in all launches.
        static SEED: OnceLock<String> = OnceLock::new();
        let seed = SEED.get_or_init(|| {
            std::env::var("HALO_TEST_SEED").unwrap_or_else(|_| rand::random::<u32>().to_string())
        });
        command
            .arg("-n")
            .arg(ranks.to_string())
            .arg(std::env::current_exe().expect("the path of this test"))
            .args(["--exact", self.name, "--nocapture", "--test-threads=1"])
            .env(CASE, self.name)
            .env(FOLDER, folder)
            .env("HALO_TEST_SEED", seed)
            .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
            .output()
            .expect("the launcher")
    }

    /// Runs it on each of these numbers of ranks, with one folder for all, and checks that all ranks
    /// pass. In a process that the launcher has started for it, runs the body instead.
    fn passes(&self, numbers: &[usize]) {
        if self.is_done() {
            return;
        }
        let folder = tempfile::tempdir().expect("a folder");
        for &ranks in numbers {
            assert_passed(ranks, &self.launch(ranks, folder.path()));
        }
    }
}

/// Runs the test `name` on this many ranks, each a process that calls `body`.
fn launched(name: &'static str, ranks: usize, body: fn() -> Result<(), Error>) -> Option<Output> {
    let case = Case { name, body };
    (!case.is_done()).then(|| case.launch(ranks, Path::new("")))
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).expect("a folder").into()
}

fn words(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// That all ranks have passed.
fn assert_passed(ranks: usize, output: &Output) {
    let words = words(output);
    let passed = words.matches("1 passed").count();
    assert!(
        output.status.success() && passed == ranks,
        "{ranks} ranks: {words}"
    );
}

/// Every family in every decomposition.
#[test]
fn processes_have_the_bits_of_one() {
    let case = Case {
        name: "processes_have_the_bits_of_one",
        body: || {
            let communicator = Communicator::mpi()?;
            // On one machine.
            assert_eq!(communicator.local_rank(), communicator.rank());
            has_the_bits_of_one(communicator, &Device::cpu())
        },
    };
    case.passes(&[1, 2, 3, 4, 7]);
}

/// Messages of devices go through the host.
#[test]
fn processes_with_emulators_have_the_bits_of_one() {
    let case = Case {
        name: "processes_with_emulators_have_the_bits_of_one",
        body: || has_the_bits_of_one(Communicator::mpi()?, &Device::emulator()),
    };
    case.passes(&[2, 3]);
}

/// CI has no GPU, and skips this test.
#[test]
#[cfg(feature = "gpu")]
fn processes_with_gpus_have_the_bits_of_one() {
    let case = Case {
        name: "processes_with_gpus_have_the_bits_of_one",
        body: || {
            let communicator = Communicator::mpi()?;
            let count = Device::cuda_count()?.max(1);
            let device = Device::cuda(communicator.local_rank() % count)?;
            has_the_bits_of_one(communicator, &device)
        },
    };
    case.passes(&[2, 3]);
}

fn has_the_bits_of_one(mut communicator: Communicator, device: &Device) -> Result<(), Error> {
    let ranks = communicator.size();
    let folder = folder().join(format!("{ranks} ranks"));
    fs::create_dir_all(&folder).expect("a folder");
    for family in &FAMILIES {
        if device.kind() == DeviceKind::Cuda && family.name == "a stencil of one's own" {
            // Its kernel is in no PTX.
            continue;
        }
        let one = bits_of_one(family, &communicator, device)?;
        for (cut, name) in CUTS.iter().enumerate() {
            let Some(parts) = parts(cut, family.axes, ranks) else {
                continue;
            };
            // Shares of lists have no rims.
            let each = [Ahead::Always, Ahead::Never];
            for ahead in &each[usize::from(family.axes == 0)..] {
                communicator = communicator.with_rims(*ahead);
                let all = (family.bits)(&communicator, device, parts, &folder)?;
                let what = (family.name, ranks, name, ahead);
                assert!(all == one, "{what:?}");
            }
        }
    }
    communicator.barrier()
}

/// The bits of one process. The first launch that wants them puts them into the folder of all.
fn bits_of_one(
    family: &Family,
    communicator: &Communicator,
    device: &Device,
) -> Result<Vec<u8>, Error> {
    let file = folder().join(family.name);
    if communicator.rank() == 0 && !file.exists() {
        let alone = folder().join("alone");
        fs::create_dir_all(&alone).expect("a folder");
        let bits = (family.bits)(&Communicator::alone(), device, [1; 3], &alone)?;
        fs::write(&file, bits).expect("a file");
    }
    communicator.barrier()?;
    Ok(fs::read(&file).expect("the bits of one process"))
}

/// What three processes have saved is taken up by others.
#[test]
fn checkpoints_are_taken_up_by_another_number_of_processes() {
    let case = Case {
        name: "checkpoints_are_taken_up_by_another_number_of_processes",
        body: || {
            let communicator = Communicator::mpi()?;
            let (device, folder) = (Device::cpu(), folder());
            if communicator.size() == 3 {
                return saved(&communicator, &device, &folder);
            }
            let alone = restored(&Communicator::alone(), &device, &folder)?;
            assert!(restored(&communicator, &device, &folder)? == alone);
            communicator.barrier()
        },
    };
    if case.is_done() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for ranks in [3, 2, 4] {
        assert_passed(ranks, &case.launch(ranks, folder.path()));
    }
}

#[test]
fn processes_that_were_given_different_things_learn_it() {
    let output = launched(
        "processes_that_were_given_different_things_learn_it",
        2,
        || {
            let communicator = Communicator::mpi()?;
            let width = 1 + communicator.rank();
            let rows = Decomposition::slabs([8, 8], 2)?;
            Ghosted::new(&communicator, &Device::cpu(), rows, width, |_| 0.0_f32).map(drop)
        },
    );
    let Some(output) = output else { return };
    let words = words(&output);
    assert!(!output.status.success(), "{words}");
    assert!(
        words.contains("the width of the ghosts must be the same on all ranks"),
        "{words}"
    );
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
    assert!(words.contains("rank 0 waited"), "{words}");
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

/// A message of a device, of this length, and one that is expected to be of that length.
fn parcels(
    device: &Device,
    peer: usize,
    bytes: [usize; 2],
) -> Result<(Vec<Parcel>, Vec<Expected>), Error> {
    let outgoing = Parcel {
        to: peer,
        tag: 0,
        bytes: device.alloc_filled(bytes[0], 1 + peer as u8)?.into(),
    };
    let incoming = Expected {
        from: peer,
        tag: 0,
        room: device.zeros(bytes[1])?.into(),
    };
    Ok((vec![outgoing], vec![incoming]))
}

/// So long that the sender has to go on with them until they have come.
const LONG: usize = 16 << 20;

/// One rank computes, and calls nothing, until the other one has everything that was begun.
#[test]
fn messages_go_on_while_a_rank_computes() {
    let case = Case {
        name: "messages_go_on_while_a_rank_computes",
        body: || {
            let communicator = Communicator::mpi()?;
            let (rank, device) = (communicator.rank(), Device::cpu());
            let has_come = folder().join("has come");
            for peer in [1 - rank; 2] {
                let (outgoing, incoming) = parcels(&device, peer, [LONG, LONG])?;
                let arrival = communicator.begin(&device, outgoing, incoming)?;
                let start = Instant::now();
                while rank == 0 && !has_come.exists() {
                    assert!(start.elapsed() < Duration::from_secs(40), "nothing goes on");
                    std::thread::sleep(Duration::from_millis(1));
                }
                let arrived = arrival()?.messages.remove(0).into_vec()?;
                assert!(arrived.len() == LONG && arrived.iter().all(|it| *it == 1 + rank as u8));
                if rank == 1 {
                    fs::write(&has_come, "").expect("a file");
                }
                communicator.barrier()?;
                let _ = fs::remove_file(&has_come);
                communicator.barrier()?;
            }
            Ok(())
        },
    };
    if case.is_done() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    assert_passed(2, &case.launch(2, folder.path()));
}

/// Messages of two exchanges that are under way at once, with the same tag, do not take each
/// other's place, in whatever order they are waited for.
#[test]
fn exchanges_that_are_under_way_at_once_are_told_apart() {
    let output = launched(
        "exchanges_that_are_under_way_at_once_are_told_apart",
        2,
        || {
            let communicator = Communicator::mpi()?;
            let (rank, peer) = (communicator.rank(), 1 - communicator.rank());
            let device = Device::cpu();
            for lengths in [[3, 5], [LONG, 7], [7, LONG]] {
                let begun = lengths.map(|bytes| {
                    let (outgoing, incoming) = parcels(&device, peer, [bytes; 2])?;
                    communicator.begin(&device, outgoing, incoming)
                });
                let [first, second] = begun;
                let (first, second) = (first?, second?);
                let arrived = if rank == 0 {
                    let second = second()?;
                    [first()?, second]
                } else {
                    [first()?, second()?]
                };
                assert_eq!(arrived.map(|it| it.messages[0].len()), lengths);
            }
            communicator.barrier()
        },
    );
    let Some(output) = output else { return };
    assert_passed(2, &output);
}

#[test]
fn messages_of_devices_of_another_length_are_refused() {
    for short in [true, false] {
        let name = "messages_of_devices_of_another_length_are_refused";
        let body: fn() -> Result<(), Error> = || {
            let communicator = Communicator::mpi()?;
            let (rank, device) = (communicator.rank(), Device::cpu());
            // The folder's name is which of both it is.
            let bytes = match (rank, folder().ends_with("short")) {
                (0, true) => 3,
                (0, false) => 5,
                _ => 4,
            };
            let (outgoing, incoming) = parcels(&device, 1 - rank, [bytes, 4])?;
            let done = communicator.begin(&device, outgoing, incoming)?().map(drop);
            assert!(rank == 1 || done.is_ok());
            done
        };
        let case = Case { name, body };
        if case.is_done() {
            return;
        }
        let which = if short { "short" } else { "long" };
        let output = case.launch(2, Path::new(which));
        let words = words(&output);
        assert!(!output.status.success(), "{words}");
        let given = if short { 3 } else { 5 };
        let told = format!("rank 1: the message of rank 0 has {given} bytes, but must have 4");
        assert!(words.contains(&told), "{words}");
    }
}

#[test]
fn a_failure_during_an_exchange_leaves_no_messages() {
    let case = Case {
        name: "a_failure_during_an_exchange_leaves_no_messages",
        body: || {
            let communicator = Communicator::mpi()?;
            a_failure_leaves_no_messages(&communicator, &Device::cpu())?;
            communicator.barrier()
        },
    };
    case.passes(&[2]);
}

/// What fails while messages are under way ends the process, and with it the others.
#[test]
fn a_failure_while_messages_are_under_way_is_no_hang() {
    let start = Instant::now();
    let output = launched(
        "a_failure_while_messages_are_under_way_is_no_hang",
        2,
        || {
            let communicator = Communicator::mpi()?;
            let (rank, device) = (communicator.rank(), Device::cpu());
            let (outgoing, incoming) = parcels(&device, 1 - rank, [LONG, LONG])?;
            let arrival = communicator.begin(&device, outgoing, incoming)?;
            if rank == 0 {
                return Err(own_failure());
            }
            arrival()?;
            communicator.barrier()
        },
    );
    let Some(output) = output else { return };
    let words = words(&output);
    assert!(!output.status.success(), "{words}");
    assert!(words.contains("no rank 77"), "{words}");
    assert!(start.elapsed() < Duration::from_secs(50));
}

/// As of a program that was built with another MPI than the launcher's.
#[test]
fn a_launcher_of_another_make_is_found_out() {
    let name = "a_launcher_of_another_make_is_found_out";
    let case = Case {
        name,
        body: || match Communicator::mpi() {
            Err(error @ Error::Launcher { launched: 5, .. }) => Err(error),
            other => panic!("{other:?}"),
        },
    };
    if case.is_done() {
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

/// Under the launcher of another MPI, where there is one: `HALO_OTHER_MPIRUN` names it.
#[test]
fn another_mpis_launcher_is_found_out() {
    let case = Case {
        name: "another_mpis_launcher_is_found_out",
        body: || Communicator::mpi()?.barrier(),
    };
    if case.is_done() {
        return;
    }
    let Ok(launcher) = std::env::var("HALO_OTHER_MPIRUN") else {
        println!("no HALO_OTHER_MPIRUN: there is no launcher of another MPI");
        return;
    };
    let output = case.launch_by(&launcher, 2, Path::new(""));
    let words = words(&output);
    assert!(!output.status.success(), "{words}");
    assert!(words.contains("says 2 ranks, but MPI reports 1"), "{words}");
}
