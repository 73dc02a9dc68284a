//! How the library uses NCCL, and copies between GPUs, tested with stand-ins for the driver and
//! for NCCL. They are loaded once per process, so each case runs in a process of its own.

#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use halo_distributed::heat2d::Plate;
use halo_distributed::{Communicator, Decomposition, Error, Expected, Ghosted, Parcel, run};
use halo_gpu::heat2d::Heat2d;
use halo_gpu::{Device, Shape2};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use turned::{after, turned};

mod turned;

const CASE: &str = "HALO_NCCL_CASE";
const LOG: &str = "FAKE_NCCL_LOG";

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn compile(source: &str, library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let status = Command::new(rustc)
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "-Cpanic=abort",
            "-o",
        ])
        .args([library, &source])
        .status()
        .expect("rustc");
    assert!(status.success(), "{} does not compile", source.display());
}

/// Runs the test `name` again in a process that finds both stand-ins, the driver and the NCCL of
/// these words; there `body` is called.
fn alone(name: &str, driver: &str, nccl: &str, body: fn()) {
    if std::env::var(CASE).is_ok_and(|case| case == name) {
        return body();
    }
    let folder = Folder(std::env::temp_dir().join(format!("halo-{name}-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).expect("a temporary folder");
    let library = folder.0.join("libnccl.so.2");
    compile("tests/fixtures/fake_nccl.rs", &library);
    compile(
        "../rust-cuda/cust/tests/fixtures/fake_driver.rs",
        &folder.0.join("libcuda.so.1"),
    );
    let output = Command::new(std::env::current_exe().expect("the path of this test"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", &folder.0)
        .env("HALO_NCCL", &library)
        .env("FAKE_CUDA", driver)
        .env("FAKE_NCCL", nccl)
        .env(LOG, folder.0.join("log"))
        .env(CASE, name)
        .output()
        .expect("this test");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{name}:\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn noted(what: &str) -> usize {
    let path = std::env::var(LOG).expect("set by the parent");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter(|line| line.starts_with(what)).count()
}

/// Halos of rings and of plain grids, along each axis, hold what the neighbours have.
fn halos(connect: fn(Communicator, &Device) -> Result<Communicator, Error>) {
    for (ranks, parts, periodic) in [
        (2, [1, 2], true),
        (2, [2, 1], true),
        (2, [1, 2], false),
        (4, [2, 2], true),
    ] {
        let mut cut = Decomposition::new([6, 8], parts).expect("enough points");
        if periodic {
            cut = cut
                .periodic(0)
                .and_then(|cut| cut.periodic(1))
                .expect("two axes");
        }
        let right = run(ranks, |communicator| {
            let value = |[i, j]: [usize; 2]| (100 * j + i) as f64;
            let mut field = Ghosted::new(&communicator, &Device::cpu(), cut, 2, value)?;
            field.exchange(&communicator)?;
            Ok(field.buffer().to_vec()?)
        });
        let found = run(ranks, |communicator| {
            let device = Device::cuda(communicator.rank() % 2)?;
            let communicator = connect(communicator, &device)?;
            let value = |[i, j]: [usize; 2]| (100 * j + i) as f64;
            let mut field = Ghosted::new(&communicator, &device, cut, 2, value)?;
            for _ in 0..3 {
                field.exchange(&communicator)?;
            }
            communicator.settle()?;
            let whole = field.gather(&communicator)?;
            assert_eq!(whole[17], 205.0);
            Ok(field.buffer().to_vec()?)
        });
        assert_eq!(
            found.expect("no rank fails"),
            right.expect("no rank fails"),
            "{cut:?}"
        );
    }
}

#[test]
fn halos_between_gpus_of_a_process() {
    let name = "halos_between_gpus_of_a_process";
    alone(name, "", "", || halos(|communicator, _| Ok(communicator)));
}

#[test]
fn halos_over_nccl() {
    alone("halos_over_nccl", "", "", || {
        halos(|communicator, device| communicator.with_nccl(device));
        // Each rank of each of the four cases ends in order.
        assert_eq!(noted("init"), 10);
        assert_eq!(
            (noted("finalise"), noted("destroy"), noted("abort")),
            (10, 10, 0)
        );
        assert!(noted("group of 2 sends and 2 receives") >= 12);
    });
}

#[test]
fn recorded_exchanges_over_nccl() {
    alone("recorded_exchanges_over_nccl", "", "", || {
        for ranks in [2, 3] {
            let found = run(ranks, |communicator| {
                let device = Device::cuda(communicator.rank() % 2)?;
                turned(&communicator.with_nccl(&device)?, &device)
            });
            assert_eq!(found.expect("no rank fails").concat(), after(ranks));
        }
        // On each rank three in a graph, and seven done: first, and in two replays.
        assert_eq!((noted("recorded group"), noted("group of")), (15, 35));
        assert_eq!((noted("destroy"), noted("abort")), (5, 0));
    });
}

#[test]
fn exchanges_of_a_process_are_not_recorded() {
    alone("exchanges_of_a_process_are_not_recorded", "", "", || {
        let errors = run(2, |communicator| {
            let device = Device::cuda(communicator.rank())?;
            Ok(turned(&communicator, &device).expect_err("two threads"))
        });
        for error in errors.expect("both learn it") {
            assert!(matches!(error, Error::NotRecordable { .. }), "{error}");
        }
        // Nor where nothing was asked beforehand.
        let errors = run(2, |communicator| {
            let device = Device::cuda(communicator.rank())?;
            let ring = Decomposition::slabs([8], 2)?.periodic(0)?;
            let mut field = Ghosted::new(&communicator, &device, ring, 2, |_| 1.0_f32)?;
            let mut error = None;
            let recorded = device.record(1, || {
                error = field.exchange(&communicator).err();
                Ok(())
            });
            drop(recorded);
            Ok(error.expect("an event cannot be recorded"))
        });
        for error in errors.expect("each has its own") {
            assert!(
                matches!(&error, Error::Device(halo_gpu::Error::NotReplayable { .. })),
                "{error}"
            );
        }
    });
}

/// Waiting for a stream would report the fault; with threads nothing waits for a device.
#[test]
fn exchanges_between_gpus_do_not_wait() {
    alone("exchanges_between_gpus_do_not_wait", "fault", "", || {
        let both = Barrier::new(2);
        let done = run(2, |communicator| {
            let device = Device::cuda(communicator.rank())?;
            let (rank, peer) = (communicator.rank() as u8, 1 - communicator.rank());
            let parcel = |tag: u32| -> Result<Parcel, Error> {
                let bytes = device.alloc_filled(5, 10 * rank + tag as u8)?;
                Ok(Parcel {
                    to: peer,
                    tag,
                    bytes: bytes.into(),
                })
            };
            let expected = |tag| -> Result<Expected, Error> {
                Ok(Expected {
                    from: peer,
                    tag,
                    room: device.zeros(5)?.into(),
                })
            };
            let outgoing = vec![parcel(0)?, parcel(1)?];
            let incoming = vec![expected(1)?, expected(0)?];
            let arrived = communicator.begin(&device, outgoing, incoming)?()?;
            let mut host = device.alloc_host(5)?;
            let mut values = Vec::new();
            for bytes in &arrived.messages {
                bytes.copy_to_host(&mut host)?;
                values.push(host.as_slice()?.to_vec());
            }
            both.wait();
            Ok(values)
        });
        let right = [[vec![11; 5], vec![10; 5]], [vec![1; 5], vec![0; 5]]];
        assert_eq!(done.expect("no rank fails"), right);
    });
}

/// The errors of two ranks that connect and exchange twice.
fn errors(deadline: Duration) -> Vec<Result<(), Error>> {
    let done = run(2, |communicator| {
        let work = || -> Result<(), Error> {
            let device = Device::cuda(communicator.rank())?;
            let communicator = communicator.with_deadline(deadline).with_nccl(&device)?;
            let ring = Decomposition::slabs([4, 4], 2)?.periodic(1)?;
            let mut field = Ghosted::new(&communicator, &device, ring, 1, |_| 1.0_f32)?;
            field.exchange(&communicator)?;
            field.exchange(&communicator)?;
            communicator.settle()
        };
        Ok(work())
    });
    done.expect("each rank has its own result")
}

#[test]
fn a_group_that_hangs_is_aborted_in_time() {
    alone("a_group_that_hangs_is_aborted_in_time", "", "hang", || {
        let start = Instant::now();
        // Longer than a busy machine may keep one rank from running: the other then ends first.
        for error in errors(Duration::from_secs(2)) {
            let error = error.expect_err("it hangs");
            assert!(matches!(error, Error::Nccl { code: 7 | 6, .. }), "{error}");
        }
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(
            (noted("abort"), noted("finalise"), noted("destroy")),
            (2, 0, 0)
        );
    });
}

#[test]
fn what_fails_later_is_found_and_aborted() {
    alone(
        "what_fails_later_is_found_and_aborted",
        "",
        "async=99",
        || {
            for error in errors(Duration::from_secs(20)) {
                let error = error.expect_err("it fails");
                // The other's end may be seen first.
                assert!(
                    matches!(&error, Error::Nccl { code: 99 | 6, text, .. } if text.contains("last words")),
                    "{error}"
                );
            }
            assert_eq!(
                (noted("abort"), noted("finalise"), noted("destroy")),
                (2, 0, 0)
            );
        },
    );
}

#[test]
fn calls_that_fail_are_errors() {
    let name = "calls_that_fail_are_errors";
    let is_child = std::env::var(CASE).is_ok_and(|case| case == name);
    let words = [
        "ncclGetUniqueId",
        "ncclCommInitRankConfig",
        "ncclSend",
        "ncclGroupEnd",
    ];
    for word in words {
        alone(name, "", &format!("{word}=1234"), || {
            let errors = errors(Duration::from_secs(2))
                .into_iter()
                .map(|it| it.expect_err("told"));
            let errors: Vec<_> = errors.collect();
            assert!(
                errors
                    .iter()
                    .any(|error| matches!(error, Error::Nccl { code: 1234, .. })),
                "{errors:?}"
            );
        });
        if is_child {
            return;
        }
    }
}

#[test]
fn libraries_that_are_no_nccl_are_refused() {
    alone("libraries_that_are_no_nccl_are_refused", "", "", || {
        // SAFETY: this process has no other thread that reads the environment.
        unsafe { std::env::set_var("HALO_NCCL", "libcuda.so.1") };
        for error in errors(Duration::from_secs(20)) {
            let error = error.expect_err("the driver is no NCCL");
            assert!(
                matches!(&error, Error::NcclMissing { reason, .. } if reason.contains("ncclGetVersion")),
                "{error}"
            );
        }
    });
}

/// One rank's GPU has too little memory, for the field or for the plan beside it: all ranks learn
/// it, and whose it is.
#[test]
fn a_gpu_without_memory_is_an_error_everywhere() {
    alone(
        "a_gpu_without_memory_is_an_error_everywhere",
        "small",
        "",
        || {
            // 128 x 128 points of 4 bytes are 64 KiB, which a part of a fourth is below.
            for (n, what) in [(256, "the field"), (128, "the plan")] {
                let errors = run(3, |communicator| {
                    let device = match communicator.rank() {
                        1 => Device::cuda(0)?,
                        _ => Device::cpu(),
                    };
                    let heat = Heat2d::dirichlet(Shape2::new(n, 3 * n))?;
                    let cut = Decomposition::slabs([n, 3 * n], 3)?;
                    let plate = Plate::new(&communicator, &device, heat, cut, 2, |_| 0.0_f32);
                    Ok(plate.map(drop).expect_err("one rank has too little memory"))
                });
                for (rank, error) in errors.expect("all learn it").into_iter().enumerate() {
                    let is_right = match &error {
                        Error::Device(halo_gpu::Error::OutOfMemory { .. }) => rank == 1,
                        Error::Elsewhere {
                            peer: 1, message, ..
                        } => rank != 1 && message.contains("memory"),
                        _ => false,
                    };
                    assert!(is_right, "{what}: {error}");
                }
            }
        },
    );
}
